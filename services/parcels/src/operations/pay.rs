//! `GET /x402/pay`: the answers of the paid tools, for a payment per call.

use std::borrow::Cow;

use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::exemption_flags::{self, Flags};
use super::filter::Filter;
use super::leads::{self, PaidLeads};
use super::lien_bundle::{self, LienBundle};
use super::watchable_feed::Parcels;
use super::{FLAGS_MICROS, LEADS_MICROS, LIENS_MICROS, PERMITS_MICROS};
use super::{construction, stalled};
use reads::read::{Read, Reader, properties_of};

/// The name of the tool that is sold by default.
const LEADS: &str = "overassessment_leads";
/// The paid tools, with what a call costs in millionths of a US dollar.
pub const PRICES: &[(&str, u64)] = &[
    (LEADS, LEADS_MICROS),
    (lien_bundle::NAME, LIENS_MICROS),
    (exemption_flags::NAME, FLAGS_MICROS),
    (construction::NAME, PERMITS_MICROS),
    (stalled::NAME, PERMITS_MICROS),
];
/// The names of the paid tools.
const TOOLS: [&str; PRICES.len()] = [LEADS, lien_bundle::NAME, exemption_flags::NAME, construction::NAME, stalled::NAME];

/// Arguments of `x402_pay`: the name of a tool, and its arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// The paid tool.
    #[serde(default = "tool_default")]
    #[schemars(length(min = 1, max = 60), extend("enum" = TOOLS))]
    pub tool: String,
    /// The county, which `overassessment_leads` and `exemption_flags` require: `cook-il` or `allegheny-pa`.
    #[schemars(length(min = 1, max = 20))]
    pub county: Option<String>,
    /// The number of the parcel, which `lien_bundle_report` requires: 16 characters.
    #[schemars(length(min = 1, max = 40))]
    pub pin: Option<String>,
    /// Of `exemption_flags`: only flags of this rule, `X1` to `X6`.
    #[schemars(length(min = 1, max = 10))]
    pub rule: Option<String>,
    /// Of `construction_window_leads`: permits that were issued in the last so many days.
    #[schemars(range(min = 1, max = 730))]
    pub days: Option<i64>,
    /// Of `construction_window_leads` and `stalled_surety`: the least reported cost in dollars.
    #[schemars(range(min = 0))]
    pub min_amount: Option<i64>,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

fn tool_default() -> String {
    LEADS.to_owned()
}

/// The answer of a paid tool.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Paid {
    /// Of `overassessment_leads`.
    Leads(Box<PaidLeads>),
    /// Of `lien_bundle_report`.
    Liens(Box<LienBundle>),
    /// Of `exemption_flags`.
    Flags(Box<Flags>),
    /// Of `construction_window_leads`.
    Construction(Box<construction::Leads>),
    /// Of `stalled_surety`.
    Stalled(Box<stalled::Stalled>),
}

/// One object with the fields of every answer, none of them required, so that the list of leads is one of its fields.
impl JsonSchema for Paid {
    fn schema_name() -> Cow<'static, str> {
        "PaidAnswer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = PaidLeads::json_schema(generator);
        let others = [
            LienBundle::json_schema(generator),
            Flags::json_schema(generator),
            construction::Leads::json_schema(generator),
            stalled::Stalled::json_schema(generator),
        ];
        for mut other in others {
            for (name, property) in std::mem::take(properties_of(&mut other)) {
                properties_of(&mut schema).entry(name).or_insert(property);
            }
        }
        // The rows of each tool are others.
        let rows = json!({ "type": "array", "items": { "type": "object" }, "description": "The rows, as the tool has them." });
        properties_of(&mut schema).insert("leads".to_owned(), rows);
        // Of permits the total can be unknown.
        properties_of(&mut schema)
            .insert("total".to_owned(), json!({ "type": ["integer", "null"], "description": "How many rows match, over all pages." }));
        schema.remove("required");
        schema
    }
}

/// A tool with its arguments.
enum Sold {
    Leads { county: String, arguments: leads::Arguments },
    Liens(lien_bundle::Arguments),
    Flags(exemption_flags::Arguments),
    Construction(construction::Arguments),
    Stalled(stalled::Arguments),
}

impl Arguments {
    /// The value of an argument that the tool requires.
    fn required(&self, name: &'static str, value: &Option<String>) -> Result<String, Problem> {
        value.clone().ok_or_else(|| Problem::parameter(name, format!("{name}: {} requires it", self.tool)))
    }

    /// Refuses an argument that the tool does not have.
    fn refuse(&self, arguments: &[(&'static str, bool)]) -> Result<(), Problem> {
        match arguments.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Problem::parameter(*name, format!("{name}: {} has no such argument", self.tool))),
            None => Ok(()),
        }
    }

    /// The tool that is called.
    fn sold(self, filter: &Filter) -> Result<Sold, Problem> {
        let of_leads = [("township", filter.township.is_some()), ("class", filter.class.is_some()), ("minTier", filter.min_tier.is_some())];
        let (county, pin, rule) = (("county", self.county.is_some()), ("pin", self.pin.is_some()), ("rule", self.rule.is_some()));
        let (days, min_amount) = (("days", self.days.is_some()), ("minAmount", self.min_amount.is_some()));
        if self.tool == lien_bundle::NAME {
            self.refuse(&[county, rule, days, min_amount, ("after", self.after.is_some())])?;
            self.refuse(&of_leads)?;
            return Ok(Sold::Liens(lien_bundle::Arguments { pin: self.required("pin", &self.pin)? }));
        }
        if self.tool == exemption_flags::NAME {
            self.refuse(&[pin, days, min_amount])?;
            self.refuse(&of_leads)?;
            let county = self.required("county", &self.county)?;
            return Ok(Sold::Flags(exemption_flags::Arguments { county, rule: self.rule, after: self.after }));
        }
        self.refuse(&[pin, rule])?;
        if self.tool == construction::NAME {
            self.refuse(&[county])?;
            self.refuse(&of_leads[1..])?;
            let days = self.days.unwrap_or(construction::DAYS);
            return Ok(Sold::Construction(construction::Arguments { days, min_amount: self.min_amount, after: self.after }));
        }
        self.refuse(&[days])?;
        if self.tool == stalled::NAME {
            self.refuse(&[county])?;
            self.refuse(&of_leads[1..])?;
            let min_amount = self.min_amount.unwrap_or(stalled::MIN_AMOUNT);
            return Ok(Sold::Stalled(stalled::Arguments { min_amount, after: self.after }));
        }
        self.refuse(&[min_amount])?;
        Ok(Sold::Leads { county: self.required("county", &self.county)?, arguments: leads::Arguments { after: self.after } })
    }
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = Paid;

    const FILTER: &'static [&'static str] = &["township", "class", "minTier"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "x402_pay",
            path: "/x402/pay",
            summary: "The answer of a paid tool with its arguments, paid per call: `overassessment_leads`, `lien_bundle_report` for 0.50 USD, or for 0.02 USD \
                `exemption_flags`, `construction_window_leads` or `stalled_surety`.",
            description: "Arguments, answer, price and preview are those of the tool that `tool` names. An argument that the tool does not have is refused.",
            surface: Surface::Route,
            example: json!({ "tool": "overassessment_leads", "county": "cook-il", "limit": 10 }),
            aliases: &[("min_tier", "minTier"), ("min_amount", "minAmount")],
            ..leads::paid_definition()
        }
    }

    fn filter(&self, given: Filter) -> Result<Filter, Problem> {
        match self.clone().sold(&given)? {
            Sold::Leads { county, arguments } => arguments.filter(Filter { county: Some(county), ..given }),
            Sold::Liens(tool) => tool.filter(given),
            Sold::Flags(tool) => tool.filter(given),
            Sold::Construction(tool) => tool.filter(given),
            Sold::Stalled(tool) => tool.filter(given),
        }
    }

    async fn preview(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Option<Value>, Problem> {
        match self.sold(&Filter::default())? {
            Sold::Leads { arguments, .. } => arguments.preview(filter, reader).await,
            Sold::Liens(tool) => tool.preview(filter, reader).await,
            Sold::Flags(tool) => tool.preview(filter, reader).await,
            Sold::Construction(tool) => tool.preview(filter, reader).await,
            Sold::Stalled(tool) => tool.preview(filter, reader).await,
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Paid, Problem> {
        Ok(match self.sold(&Filter::default())? {
            Sold::Leads { arguments, .. } => Paid::Leads(Box::new(PaidLeads::from(arguments.answer(filter, reader).await?))),
            Sold::Liens(tool) => Paid::Liens(Box::new(tool.answer(filter, reader).await?)),
            Sold::Flags(tool) => Paid::Flags(Box::new(tool.answer(filter, reader).await?)),
            Sold::Construction(tool) => Paid::Construction(Box::new(tool.answer(filter, reader).await?)),
            Sold::Stalled(tool) => Paid::Stalled(Box::new(tool.answer(filter, reader).await?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(value: Value) -> Arguments {
        serde_json::from_value(value).unwrap()
    }

    /// Proves that each tool takes its own arguments only, names the one that is missing, and that every tool that is sold has a price.
    #[test]
    fn each_tool_has_its_arguments() {
        let refused = |value: Value| arguments(value).sold(&Filter::default()).err().map(|problem| problem.parameter);
        for value in [
            json!({ "county": "cook-il" }),
            json!({ "tool": "construction_window_leads" }),
            json!({ "tool": "construction_window_leads", "days": 30, "minAmount": 0 }),
            json!({ "tool": "stalled_surety", "minAmount": 1_000 }),
        ] {
            assert_eq!(refused(value.clone()), None, "{value}");
        }
        for (value, parameter) in [
            (json!({}), "county"),
            (json!({ "county": "cook-il", "days": 30 }), "days"),
            (json!({ "county": "cook-il", "minAmount": 30 }), "minAmount"),
            (json!({ "tool": "construction_window_leads", "county": "cook-il" }), "county"),
            (json!({ "tool": "stalled_surety", "days": 30 }), "days"),
        ] {
            assert_eq!(refused(value.clone()).as_deref(), Some(parameter), "{value}");
        }
        let filter = Filter { class: Some("517".into()), ..Filter::default() };
        let of_permits = arguments(json!({ "tool": "stalled_surety" }));
        assert_eq!(of_permits.filter(filter).unwrap_err().parameter, "class");
        assert_eq!(refused(json!({ "county": "cook-il" })), None);
        assert_eq!(refused(json!({ "tool": "lien_bundle_report", "pin": "0028F00194000000" })), None);
        for (value, parameter) in [
            (json!({}), "county"),
            (json!({ "county": "cook-il", "pin": "0028F00194000000" }), "pin"),
            (json!({ "tool": "lien_bundle_report" }), "pin"),
            (json!({ "tool": "exemption_flags" }), "county"),
            (json!({ "tool": "exemption_flags", "county": "allegheny-pa", "pin": "0028F00194000000" }), "pin"),
            (json!({ "county": "cook-il", "rule": "X1" }), "rule"),
            (json!({ "tool": "lien_bundle_report", "pin": "0028F00194000000", "county": "cook-il" }), "county"),
        ] {
            assert_eq!(refused(value.clone()).as_deref(), Some(parameter), "{value}");
        }
        let filter = Filter { township: Some("77".into()), ..Filter::default() };
        let of_liens = arguments(json!({ "tool": "lien_bundle_report", "pin": "0028F00194000000" }));
        assert_eq!(of_liens.filter(filter).unwrap_err().parameter, "township");
        assert_eq!(PRICES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), TOOLS);
    }
}
