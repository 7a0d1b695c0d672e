//! What filters and watches of the filings service follow: a company by its number.

use crate::filing_events::WEIGHTS;
use crate::record::Filing;
use schemars::JsonSchema;
use schemas::facts::FactData;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{FORMS_MAX, Filter};
use super::records::Changed;
use crate::rules::FilingsRules;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use reads::numbers::read_cik;
use reads::read::{UpstreamRecords, filled};
use webhooks::matchers::WatchMessages;

/// The filings service's feed.
pub struct Filings;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// The number (CIK) of the company, with or without leading zeros.
    #[schemars(length(min = 1, max = 10))]
    pub cik: String,
}

impl WatchableFeed for Filings {
    type Rules = FilingsRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    fn parameters() -> Vec<(&'static str, Value)> {
        let form = json!({
            "type": ["string", "array"],
            "minLength": 1,
            "maxLength": 200,
            "pattern": "[A-Za-z0-9]",
            "items": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": "[A-Za-z0-9]" },
            "maxItems": FORMS_MAX,
        });
        vec![("form", form)]
    }

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let cik = read_cik("cik", &entity.cik)?;
        Ok((WatchedEntity { cik: cik.clone() }, Filter { cik: Some(cik), ..Filter::default() }))
    }

    fn example_filter() -> Value {
        json!({ "form": ["8-K"], "minEventScore": 50 })
    }

    fn example_entity() -> Value {
        json!({ "cik": "0000320193" })
    }
}

impl UpstreamRecords for Filings {
    fn record_of(fact: &FactData) -> Option<Filing> {
        let FactData::Filing(fact) = fact else { return None };
        Some(scored(Filing {
            id: format!("filing/{}", fact.identity()),
            kind: "filing".to_owned(),
            form: fact.form.clone(),
            base_form: fact.base_form.clone(),
            filing_date: fact.filing_date.clone(),
            company: fact.company.clone(),
            cik: fact.cik.clone(),
            accession: fact.accession.clone(),
            url: fact.url(),
            items: fact.items.clone(),
            roles: fact.roles.clone(),
            report_date: fact.report_date.clone(),
            ..Filing::default()
        }))
    }

    /// The score follows from the items, which this answer may not have.
    fn complete(now: Filing, recorded: &Filing) -> Filing {
        scored(filled(now, recorded))
    }
}

/// A filing with the event of its items.
fn scored(filing: Filing) -> Filing {
    let event = WEIGHTS.event(&filing.base_form, &filing.items);
    Filing { top_item: event.item, top_label: event.label, event_score: event.score, ..filing }
}

impl WatchMessages for Filings {
    const EVENT: &'static str = "new_filing";
    const CHANGES_MAX: usize = 1;

    fn members(entity: WatchedEntity, mut changes: Vec<Changed>) -> Value {
        let filing = changes.pop();
        let company = filing.as_ref().map_or("", |filing| filing.record.company.as_str());
        json!({ "cik": entity.cik, "company": company, "filing": filing })
    }
}
