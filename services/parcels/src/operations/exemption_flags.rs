//! The tool `exemption_flags`: parcels whose record shows an exemption next to something that a residence of its owner usually does not have.

use crate::record::flag::{Flag, RULES, flag_list};
use crate::record::{COUNTIES, Parcel};
use feed::places::{Segment, Selects, Walk};
use operation::known_values::known_value;
use operation::problem::Problem;
use operation::{Definition, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use texts::cook;

use super::counts;
use super::filter::Filter;
use super::hidden_records::{is_shown, may_be_hidden, note_hidden};
use super::watchable_feed::Parcels;
use super::{DISCLAIMER, FLAGS_MICROS};
use reads::read::{Read, Reader};

/// The name of the tool.
pub const NAME: &str = "exemption_flags";
/// The name of the rules, with their version.
const RULE: &str = "exemptions/5";
/// Why there are none in Cook County, of which no exemptions were read.
const COOK_NOTE: &str =
    "cook-il: no parcel is flagged, since homeowner exemptions are in no open table, only in the file PTAXSIM, which is not read here";
/// Why only one rule flags parcels of Cook County.
const COOK_RULES: &str = "only X4 is decided: the others need mailing addresses, owners and buyers, which are not requested, or the use of an \
    exempt parcel, which is not published";

/// Arguments of `exemption_flags`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The county: `allegheny-pa`, or `cook-il`, of which only rule `X4` is decided, where its exemptions are read.
    #[schemars(length(min = 1, max = 20))]
    pub county: String,
    /// Only flags of this rule: `X1` to `X6`.
    #[schemars(length(min = 1, max = 10))]
    pub rule: Option<String>,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// A flag: what the record of a parcel shows about its exemption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExemptionFlag")]
pub struct FlagRow {
    /// The number of the parcel.
    pub pin: String,
    /// The county.
    pub county: String,
    /// The rule.
    pub rule: String,
    /// What the record shows, as a sentence. It draws no conclusion.
    pub statement: String,
    /// The fields of the record that it follows from.
    pub evidence: Vec<String>,
    /// The kind of the owner, as published: `CORPORATION`. No name is published.
    pub owner: String,
    /// The city and state of the mailing address; empty if the rule is not about them.
    pub mailing: String,
    /// The first day on which the homestead exclusion was read; empty without one.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub exempt_since: String,
}

impl FlagRow {
    fn new(parcel: Parcel) -> Self {
        let Flag { rule, statement, evidence, owner, mailing, exempt_since, .. } = parcel.flag.map(|flag| *flag).unwrap_or_default();
        Self { pin: parcel.pin, county: parcel.county, rule, statement, evidence, owner, mailing, exempt_since }
    }
}

/// A rule, and how many parcels it flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExemptionRule")]
pub struct RuleCount {
    /// The rule.
    pub rule: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// How many parcels it flags.
    pub count: i64,
}

/// Flags of exemptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExemptionFlags")]
pub struct Flags {
    /// The county.
    pub county: &'static str,
    /// The rules, with how many parcels each flags.
    pub rules: Vec<RuleCount>,
    /// How many flags match, over all pages.
    pub total: i64,
    /// The number of flags in this answer.
    pub count: usize,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
    /// The flags, by PIN.
    pub flags: Vec<FlagRow>,
    /// The name of the rules, with their version.
    pub rule: &'static str,
    /// What flags are not.
    pub disclaimer: &'static str,
}

impl Arguments {
    /// The county and the rule.
    fn known(&self) -> Result<(&'static str, Option<&'static str>), Problem> {
        let county = known_value("county", &self.county, &COUNTIES)?;
        let names = RULES.map(|(rule, _)| rule);
        let rule = self.rule.as_deref().map(|rule| known_value("rule", rule, &names)).transpose()?;
        Ok((county, rule))
    }
}

/// How many parcels each rule flags. Decisions keep these counts, so that a call counts nothing.
async fn rule_counts(reader: &Reader<Parcels>, county: &str) -> Result<Vec<RuleCount>, Problem> {
    let counts = counts::flags(&reader.at, county).await?;
    let rule_count = |(rule, about): (&'static str, &'static str)| RuleCount { rule, about, count: counts.get(rule).copied().unwrap_or(0) };
    Ok(RULES.into_iter().map(rule_count).collect())
}

/// What is not decided in Cook County, and why; `None` for the other county.
async fn note_of(reader: &Reader<Parcels>, county: &str) -> Result<Option<String>, Problem> {
    if county != cook::COUNTY {
        return Ok(None);
    }
    let year = counts::exemptions_until(&reader.at, county).await?;
    Ok(Some(year.map_or_else(|| COOK_NOTE.to_owned(), |year| format!("cook-il: exemptions up to the tax year {year}; {COOK_RULES}"))))
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = Flags;

    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: NAME,
            summary: "Parcels whose record shows an exemption next to an address elsewhere, a company as owner, or another use, with the fields.",
            when: "Use it to find exemptions that a county may want to look at.",
            description: "Each row names its rule and what the record shows: it is no conclusion about a person or a right. `owner` is the kind of the owner, since no \
                name is published; of a mailing address only city and state are shown. Unpaid calls get the payment terms with a preview: the rules, with \
                how many parcels each flags. Page with `after`.",
            list: "flags",
            price: Price::PerCall { micros: FLAGS_MICROS, free_from: Tier::Pro },
            surface: Surface::Tool,
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "county": "allegheny-pa", "rule": "X3", "limit": 10 }),
            ..Definition::read()
        }
    }

    async fn preview(self, _: Filter, reader: &mut Reader<Parcels>) -> Result<Option<Value>, Problem> {
        let (county, rule) = self.known()?;
        reader.check_after(&flag_list(county, rule), NAME, self.after.as_deref())?;
        // Nobody should pay for an answer that is known to be empty.
        if let Some(note) = note_of(reader, county).await? {
            reader.note(note);
        }
        Ok(Some(json!({ "county": county, "rules": rule_counts(reader, county).await? })))
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Parcels>) -> Result<Flags, Problem> {
        let (county, rule) = self.known()?;
        if let Some(note) = note_of(reader, county).await? {
            reader.note(note);
        }
        let (list, limit) = (flag_list(county, rule), reader.limit());
        let part = Segment { buckets: 0..=0, ranks: 0..=0 };
        // Without hidden records only those of the page are read.
        let selects: Option<Selects<'_, Parcel>> = if may_be_hidden(reader) { Some(&is_shown) } else { None };
        let walk = Walk { list: &list, part: part.clone(), filter: NAME, limit, after: self.after.as_deref() };
        // What matches is counted by decisions, so the walk need not.
        let found = reader.ranked_page(walk, selects).await?;
        note_hidden(reader, "flags of any rule", &flag_list(county, None), part).await?;
        reader.note_empty_page(found.items.len(), found.next.as_deref());
        let rules = rule_counts(reader, county).await?;
        let is_counted = |counted: &&RuleCount| rule.is_none_or(|rule| rule == counted.rule);
        Ok(Flags {
            county,
            total: rules.iter().filter(is_counted).map(|counted| counted.count).sum(),
            rules,
            count: found.items.len(),
            next: found.next,
            flags: found.items.into_iter().map(FlagRow::new).collect(),
            rule: RULE,
            disclaimer: DISCLAIMER,
        })
    }
}

#[cfg(test)]
mod tests {
    use feed::testing::{HOUR_MS, START_MS, World, call, text, value};
    use operation::{Call, Stage};
    use reads::read::operation;

    use super::*;
    use crate::operations::lead_tests::keep_counts;
    use crate::operations::permit_tests::hide;
    use crate::record::TABLES;
    use crate::record::flag::{exemption_year, flag_counts};

    /// Proves that totals are the counts that decisions keep, and that an unpaid call gets these and no row, of Cook County with why there are none.
    #[tokio::test]
    async fn totals_are_kept_counts() {
        let world = World::new().await;
        let flagged = |number: u32, rule: &str| {
            let pin = format!("0028F{number:05}000000");
            let flag =
                Flag { rule: rule.into(), statement: "the record shows a fact".into(), owner: "CORPORATION".into(), ..Flag::default() };
            Parcel { id: format!("flag/{pin}/{rule}"), pin, county: "allegheny-pa".into(), flag: Some(Box::new(flag)), ..Parcel::default() }
        };
        world.fill_records(&TABLES, &[flagged(1, "X1"), flagged(2, "X3"), flagged(3, "X3")]).await;
        keep_counts(&world, &[(flag_counts("allegheny-pa"), json!({ "X1": 1, "X3": 250_000 }))]).await;
        let context = world.context(START_MS + 24 * HOUR_MS);
        let tool = operation::<Arguments>();
        for (arguments, total, rows) in [
            (json!({ "county": "allegheny-pa" }), 250_001, 3),
            (json!({ "county": "allegheny-pa", "rule": "x3" }), 250_000, 2),
            (json!({ "county": "allegheny-pa", "rule": "X6" }), 0, 0),
            (json!({ "county": "cook-il" }), 0, 0),
        ] {
            let found = value(&context, &tool, arguments.clone()).await;
            assert_eq!((&found["total"], &found["count"]), (&json!(total), &json!(rows)), "{arguments}");
            let is_cook = arguments["county"] == "cook-il";
            assert_eq!(
                found["note"].as_str().is_some_and(|note| note.contains("no open table") && note.contains("PTAXSIM")),
                is_cook,
                "{found}"
            );
        }
        let unpaid = || Call { stage: Stage::Preview, ..call(&context) };
        let preview = text((tool.run)(unpaid(), json!({ "county": "allegheny-pa", "rule": "X3" })).await.unwrap());
        assert!(preview.contains("250000") && !preview.contains("0028F") && !preview.contains("CORPORATION"), "{preview}");
        assert!(!preview.contains(COOK_NOTE), "{preview}");
        let preview = text((tool.run)(unpaid(), json!({ "county": "cook-il" })).await.unwrap());
        assert!(preview.contains(COOK_NOTE), "{preview}");
        keep_counts(&world, &[(exemption_year("cook-il"), json!({ "taxYear": 2024 }))]).await;
        let note = value(&context, &tool, json!({ "county": "cook-il" })).await["note"].to_string();
        assert!(note.contains("2024") && note.contains(COOK_RULES), "{note}");
    }

    /// Proves that a flag that operators hide is in no list, so that no rule tells what it is about, and that answers say how many are hidden, whatever rule they
    /// are asked for.
    #[tokio::test]
    async fn hidden_flags_are_left_out() {
        let world = World::new().await;
        let flagged = |number: u32, rule: &str| {
            let (pin, flag) = (format!("0028F{number:05}000000"), Flag { rule: rule.into(), ..Flag::default() });
            Parcel { id: format!("flag/{pin}/{rule}"), pin, county: "allegheny-pa".into(), flag: Some(Box::new(flag)), ..Parcel::default() }
        };
        let records = [flagged(1, "X1"), flagged(2, "X3"), flagged(3, "X3")];
        world.fill_records(&TABLES, &records).await;
        let context = world.context(START_MS + 24 * HOUR_MS);
        let tool = operation::<Arguments>();
        let shown = async |arguments: Value| {
            let found = value(&context, &tool, arguments).await;
            let pins: Vec<String> =
                found["flags"].as_array().unwrap().iter().map(|flag| flag["pin"].as_str().unwrap().to_owned()).collect();
            (pins, found["note"].as_str().unwrap_or_default().to_owned())
        };
        let (all, x1) = (json!({ "county": "allegheny-pa" }), json!({ "county": "allegheny-pa", "rule": "X1" }));
        let (x3, first) = (json!({ "county": "allegheny-pa", "rule": "X3" }), json!({ "county": "allegheny-pa", "limit": 1 }));
        assert_eq!((shown(all.clone()).await.0.len(), shown(x3.clone()).await.0.len()), (3, 2));
        hide(&context, &records[1..2]).await;
        for (arguments, expected) in [
            (all, vec![&records[0].pin, &records[2].pin]),
            (x1, vec![&records[0].pin]),
            (x3, vec![&records[2].pin]),
            (first, vec![&records[0].pin]),
        ] {
            let (pins, note) = shown(arguments.clone()).await;
            assert_eq!(pins.iter().collect::<Vec<_>>(), expected, "{arguments}");
            assert!(note.contains("flags of any rule that are hidden on request and left out: 1"), "{note}");
        }
    }

    /// Proves that counties and rules are read in any case, and that unknown ones name their argument.
    #[test]
    fn arguments() {
        let known = |county: &str, rule: Option<&str>| {
            let arguments = Arguments { county: county.to_owned(), rule: rule.map(str::to_owned), after: None };
            arguments.known().map_err(|problem| problem.parameter)
        };
        assert_eq!(known("Allegheny-PA", Some("x3")), Ok(("allegheny-pa", Some("X3"))));
        assert_eq!(known("cook-il", None), Ok(("cook-il", None)));
        assert_eq!(known("lake-il", None).unwrap_err(), "county");
        assert_eq!(known("cook-il", Some("X7")).unwrap_err(), "rule");
    }
}
