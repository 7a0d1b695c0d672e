//! The rows of the coverage service: one lead for each line of insurance that a business has just come to need.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use schemas::details::{ChangeRecord, NoDetails};
use schemas::position::Seq;
use schemas::suppression::{COMPANY, Hides, PERSON, RECORD};
use schemas::views::accounts::Tier;
use schemas::views::records::{Place, Record, Redact, Term};

/// The days of the free window: today and the 6 days before. Triggers of later days are within it, too.
pub const FREE_DAYS: i64 = 7;
/// A lead is `hot` if its trigger is fewer than so many days old.
pub const HOT_DAYS: i64 = 7;
/// A lead is `warm` if its trigger is fewer than so many days old, and not `hot`.
pub const WARM_DAYS: i64 = 30;
/// The tiers of leads by time, the newest first.
pub const TIERS: [&str; 3] = ["hot", "warm", "cool"];
/// The field of the evidence of a lead that was not compared with others of its name, since these are too many.
pub const NOT_COMPARED: &str = "not_compared";
/// The dimension of the index of counts, see [`counts_term`].
pub const COUNTS: &str = "counts";

/// A business that has just come to need a line of insurance, with the rule and the facts from which that follows. `""` and empty lists mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "CoverageLead")]
pub struct Lead {
    /// Id of the lead: source, number at the source, line, trigger and day.
    pub id: String,
    /// The name of the business.
    pub business: String,
    /// The name under which it does business, if that is another one.
    pub dba: String,
    /// State of the registration, two letters.
    pub state: String,
    /// City.
    pub city: String,
    /// ZIP code, five digits.
    pub zip: String,
    /// `new_carrier`, `authority_granted`, `insurance_lapse`, `entity_formed` or `foreign_registration`.
    pub trigger: String,
    /// Day of the trigger, `YYYY-MM-DD`. It can be later than today.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub trigger_date: String,
    /// The source of the earliest trigger: `fmcsa`, `sos-co`, `sos-ct`, `sos-ia`, `sos-ny` or `sos-or`.
    pub source: String,
    /// All sources of which records are merged in this lead, in the order of their triggers.
    pub sources: Vec<String>,
    /// The line of insurance.
    pub coverage_line: String,
    /// The rule from which the line follows.
    pub mandate: Mandate,
    /// How firmly the line follows: `MANDATED` by a cited rule and a fact, `CONDITIONAL`, `LIKELY` or `POSSIBLE`.
    pub basis: String,
    /// The facts that the rule read, then those that identify the record that is the trigger: its number, its type and its day.
    pub evidence: Vec<Evidence>,
    /// The numbers of the business.
    pub ids: BusinessIds,
    /// The record of the trigger at its source.
    pub url: String,
    /// The records of other sources that are about the same business, with the reason.
    pub joined: Vec<JoinedLead>,
    /// The id of the lead that this one became a part of; only then it is in no list.
    pub merged_into: String,
    /// Whether the trigger was taken back, or does not count as a trigger any more.
    pub withdrawn: bool,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// The rule from which a line follows. No part says that a business has no insurance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Mandate {
    /// What the rule says, in a phrase.
    pub rule: String,
    /// The id of the rule in the data file, which `/docs` shows.
    pub rule_id: String,
    /// The rule and the fact from which the line follows, in a sentence.
    pub follows: String,
    /// The law; empty if none demands the line.
    pub citation: String,
    /// The least amount in dollars; null if it depends on facts that are not known, or if there is none.
    pub amount: Option<i64>,
    /// The form of the filing; empty if there is none.
    pub form: String,
    /// Where the law can be read; empty without a citation.
    pub url: String,
}

/// A fact: the value of a field of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "CoverageEvidence")]
pub struct Evidence {
    /// The field, as the dataset names it.
    pub field: String,
    /// The value.
    pub value: String,
    /// The dataset.
    pub dataset: String,
}

/// The numbers of a business at its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BusinessIds {
    /// USDOT number.
    pub dot: String,
    /// Docket number.
    pub mc: String,
    /// Number in the register of the state.
    pub entity_id: String,
}

/// A record of another source that is about the same business.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JoinedLead {
    /// The id that its own lead would have.
    pub id: String,
    /// The source of the record.
    pub source: String,
    /// Why it is about the same business.
    pub reason: String,
}

/// A lead as callers without a paid key see it: nothing of the business but the first letters of its name. `withdrawn`, `merged` and `suppressed` say
/// what became of it, so that free callers of `changes` see that a lead was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedactedLead {
    /// The first letter of each word of the name, each with `***`.
    pub business: String,
    /// State of the registration, two letters.
    pub state: String,
    /// The trigger.
    pub trigger: String,
    /// Day of the trigger, `YYYY-MM-DD`.
    pub trigger_date: String,
    /// The source of the earliest trigger.
    pub source: String,
    /// All sources.
    pub sources: Vec<String>,
    /// The line of insurance.
    pub coverage_line: String,
    /// The rule from which the line follows.
    pub mandate: RedactedMandate,
    /// How firmly the line follows.
    pub basis: String,
    /// Whether the trigger was taken back, or does not count as a trigger any more. Lists leave such a lead out.
    pub withdrawn: bool,
    /// Whether the lead became a part of another one, which is not named here. Lists leave such a lead out.
    pub merged: bool,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// The rule of a redacted lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedactedMandate {
    /// What the rule says, in a phrase.
    pub rule: String,
    /// The law; empty if none demands the line.
    pub citation: String,
    /// The least amount in dollars; null if it depends on facts that are not known, or if there is none.
    pub amount: Option<i64>,
    /// The form of the filing; empty if there is none.
    pub form: String,
}

/// Returns the first letter of each word of a name, each with `***`: `B*** M***`. A word of one letter is `***`.
#[must_use]
pub fn masked(name: &str) -> String {
    let word = |word: &str| match word.chars().next().filter(|first| first.is_alphanumeric() && word.chars().nth(1).is_some()) {
        Some(first) => format!("{first}***"),
        None => "***".to_owned(),
    };
    name.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

impl Lead {
    /// The tier on a day; empty if the trigger has no day.
    #[must_use]
    pub fn tier(&self, today: Date) -> &'static str {
        self.trigger_date.parse().map_or("", |trigger| tier(trigger, today))
    }

    /// Whether the lead was compared with others of its name.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        self.evidence.iter().all(|fact| fact.field != NOT_COMPARED)
    }
}

/// Returns the tier of a trigger's day on a day: `hot` for fewer than 7 days and for later days, `warm` for fewer than 30, else `cool`.
#[must_use]
pub fn tier(trigger: Date, today: Date) -> &'static str {
    let days = i64::from((today - trigger).get_days());
    if days < HOT_DAYS {
        "hot"
    } else if days < WARM_DAYS {
        "warm"
    } else {
        "cool"
    }
}

/// The name of the list of a state and a line of insurance; `None` for all.
#[must_use]
pub fn list(state: Option<&str>, line: Option<&str>) -> String {
    match (state, line) {
        (None, None) => "all".to_owned(),
        (Some(state), None) => format!("state/{state}"),
        (None, Some(line)) => format!("line/{line}"),
        (Some(state), Some(line)) => format!("state+line/{state}/{line}"),
    }
}

/// The term of the index under which the counts of leads are. Its buckets are days, and each entry is the counts of the day from its seq on: a map from
/// `SOURCE/LINE` to a number, as JSON.
#[must_use]
pub fn counts_term() -> String {
    format!("{COUNTS}/day")
}

/// The term of the index under which the last counts of each day are, as [`LastCounts`]. It has one bucket, in which the number of the day stands in place of
/// a seq, so that the counts of any days are one range of rows. A view has the row of a day that a decision counted since the version that writes such rows.
#[must_use]
pub fn last_counts_term() -> String {
    format!("{COUNTS}/last")
}

/// How many numbers [`counts_version`] has for each day of triggers: one for each day on which changes are recorded.
const RECORDED_DAYS: i64 = 1 << 20;

/// The term of the index under which the counts of each day are as they were at the end of each day on which they changed, as [`LastCounts`]. It has one
/// bucket, in which the number of [`counts_version`] stands in place of a seq, so that all versions of any days are one range of rows.
#[must_use]
pub fn counts_versions_term() -> String {
    format!("{COUNTS}/versions")
}

/// The number of the counts of a day as they were at the end of a day on which they changed. Both are numbers of days.
#[must_use]
pub fn counts_version(day: i64, recorded: i64) -> i64 {
    day * RECORDED_DAYS + recorded
}

/// The day of triggers and the recorded day of a number of [`counts_version`].
#[must_use]
pub fn days_of_version(number: i64) -> (i64, i64) {
    (number.div_euclid(RECORDED_DAYS), number.rem_euclid(RECORDED_DAYS))
}

/// The last counts of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCounts {
    /// The seq of the change that made them.
    pub seq: Seq,
    /// The counts, see [`counts_term`].
    pub counts: BTreeMap<String, i64>,
}

impl ChangeRecord for Lead {
    type Details = NoDetails;

    fn is_in_tables(&self) -> bool {
        self.is_listed()
    }
}

impl Record for Lead {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        !self.withdrawn && self.merged_into.is_empty()
    }

    fn terms(&self) -> Vec<Term> {
        let own = [("state", &self.state), ("line", &self.coverage_line), ("trigger", &self.trigger), ("basis", &self.basis)];
        let sources = self.sources.iter().map(|source| ("source", source));
        own.into_iter().chain(sources).filter_map(|(dimension, value)| Term::new(dimension, value)).collect()
    }

    fn places(&self) -> Vec<Place> {
        let (state, line) = (Some(self.state.as_str()), Some(self.coverage_line.as_str()));
        let lists = [list(None, None), list(state, None), list(None, line), list(state, line)];
        lists.into_iter().filter_map(|list| Place::newest_first(list, &self.trigger_date)).collect()
    }
}

impl Redact for Lead {
    type Redacted = RedactedLead;

    const WHOLE_FROM: Tier = Tier::Pro;
    const FREE_DAYS: i64 = FREE_DAYS;
    const MARKS_UNLISTED: bool = true;

    fn is_free(&self, today: Date) -> bool {
        let first = today.saturating_sub((FREE_DAYS - 1).days());
        self.trigger_date.parse::<Date>().is_ok_and(|day| day >= first)
    }

    fn redacted(&self) -> RedactedLead {
        RedactedLead {
            business: masked(&self.business),
            state: self.state.clone(),
            trigger: self.trigger.clone(),
            trigger_date: self.trigger_date.clone(),
            source: self.source.clone(),
            sources: self.sources.clone(),
            coverage_line: self.coverage_line.clone(),
            mandate: RedactedMandate {
                rule: self.mandate.rule.clone(),
                citation: self.mandate.citation.clone(),
                amount: self.mandate.amount,
                form: self.mandate.form.clone(),
            },
            basis: self.basis.clone(),
            withdrawn: self.withdrawn,
            merged: !self.merged_into.is_empty(),
            suppressed: self.suppressed,
        }
    }

    /// The newest trigger first.
    fn order(one: &RedactedLead, other: &RedactedLead) -> Ordering {
        other.trigger_date.cmp(&one.trigger_date)
    }
}

/// What is hidden of a suppressed lead: everything that says which business it is. Ids of leads have the number of the business.
const HIDDEN: &[&str] = &["id", "business", "dba", "city", "zip", "ids", "url", "evidence", "mandate", "joined", "mergedInto"];

/// The keys that hide a lead.
const HIDES: &[Hides] = &[
    Hides { kind: &COMPANY, field: "business", hidden: HIDDEN },
    Hides { kind: &COMPANY, field: "dba", hidden: HIDDEN },
    Hides { kind: &PERSON, field: "business", hidden: HIDDEN },
    Hides { kind: &PERSON, field: "dba", hidden: HIDDEN },
    Hides { kind: &RECORD, field: "id", hidden: HIDDEN },
    // Leads that are about the same business have its numbers.
    Hides { kind: &RECORD, field: "joined.id", hidden: HIDDEN },
    Hides { kind: &RECORD, field: "mergedInto", hidden: HIDDEN },
];

schemas::record_tables!("coverage", places, hides: HIDES);

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::suppressed_keys::SuppressedKeys;
    use schemas::views::testing;

    fn lead() -> Lead {
        let text = |text: &str| text.to_owned();
        Lead {
            id: text("fmcsa:4312345:AUTO_LIABILITY_BIPD:new_carrier:2026-11-18"),
            business: text("BLUE MESA FREIGHT LLC"),
            dba: text("MESA X"),
            state: text("CO"),
            city: text("DENVER"),
            zip: text("80202"),
            trigger: text("new_carrier"),
            trigger_date: text("2026-11-18"),
            source: text("fmcsa"),
            sources: vec![text("fmcsa"), text("sos-co")],
            coverage_line: text("AUTO_LIABILITY_BIPD"),
            mandate: Mandate {
                rule: text("for-hire interstate property, 10,001 lb or more"),
                rule_id: text("property-for-hire"),
                follows: text("AUTO_LIABILITY_BIPD follows from 49 CFR 387.9 and classdef AUTHORIZED FOR HIRE"),
                citation: text("49 CFR 387.9; 387.303"),
                amount: Some(750_000),
                form: text("BMC-91/91X"),
                url: text("https://www.ecfr.gov/current/title-49/section-387.303"),
            },
            basis: text("MANDATED"),
            evidence: vec![Evidence { field: text("classdef"), value: text("AUTHORIZED FOR HIRE"), dataset: text("az4n-8mr2") }],
            ids: BusinessIds { dot: text("4312345"), mc: text("MC1234567"), entity_id: text("20261812345") },
            url: text("https://data.transportation.gov/resource/az4n-8mr2.json?dot_number=4312345"),
            joined: vec![JoinedLead { id: text("sos-co:1"), source: text("sos-co"), reason: text("the same name and state") }],
            merged_into: text("fmcsa:4399999:AUTO_LIABILITY_BIPD:new_carrier:2026-11-17"),
            withdrawn: true,
            suppressed: false,
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = lead();
        let before = Lead { withdrawn: false, ..record.clone() };
        testing::assert_change_reads_back("changes.coverage", &record.id.clone(), before, record);
    }

    /// Proves the boundaries of the tiers, with later days as hot, and of the free window.
    #[test]
    fn tiers_and_the_free_window() {
        let today = Date::constant(2026, 11, 20);
        for (day, expected) in [
            (Date::constant(2026, 12, 5), "hot"),
            (today, "hot"),
            (Date::constant(2026, 11, 14), "hot"),
            (Date::constant(2026, 11, 13), "warm"),
            (Date::constant(2026, 10, 22), "warm"),
            (Date::constant(2026, 10, 21), "cool"),
            (Date::constant(2020, 1, 1), "cool"),
        ] {
            assert_eq!(tier(day, today), expected, "{day}");
        }
        let free = |day: &str| Lead { trigger_date: day.to_owned(), ..Lead::default() }.is_free(today);
        assert_eq!(["2026-11-13", "2026-11-14", "2026-12-01", ""].map(free), [false, true, true, false]);
    }

    /// Proves that a lead is in the list of all, of its state, of its line and of both; and in none if it is withdrawn or a part of another.
    #[test]
    fn lists() {
        let lists: Vec<String> = lead().places().into_iter().map(|place| place.list).collect();
        assert_eq!(lists, ["all", "state/CO", "line/AUTO_LIABILITY_BIPD", "state+line/CO/AUTO_LIABILITY_BIPD"]);
        let listed = |withdrawn, merged_into: &str| Lead { withdrawn, merged_into: merged_into.to_owned(), ..lead() }.is_listed();
        assert_eq!([listed(false, ""), listed(true, ""), listed(false, "a")], [true, false, false]);
    }

    /// Every text of a lead that only paying callers see.
    fn protected(lead: &Lead) -> Vec<&str> {
        let Lead { id, business, dba, city, zip, mandate, evidence, ids, url, joined, merged_into, .. } = lead;
        let own = [id, business, dba, city, zip, url, merged_into, &ids.dot, &ids.mc, &ids.entity_id];
        let of_rule = [&mandate.rule_id, &mandate.follows, &mandate.url];
        let facts = evidence.iter().flat_map(|fact| [&fact.field, &fact.value, &fact.dataset]);
        let others = joined.iter().flat_map(|joined| [&joined.id, &joined.reason]);
        own.into_iter().chain(of_rule).chain(facts).chain(others).map(String::as_str).collect()
    }

    /// Proves that the redacted form of a lead has exactly the fields that it should have, and that none of them contains a text that only paying callers
    /// see; also of short and hostile names.
    #[test]
    fn redacted_leads_name_no_business() {
        let record = lead();
        let shown = serde_json::to_value(record.redacted()).unwrap();
        let expected = serde_json::json!({
            "business": "B*** M*** F*** L***", "state": "CO", "trigger": "new_carrier", "triggerDate": "2026-11-18", "source": "fmcsa",
            "sources": ["fmcsa", "sos-co"], "coverageLine": "AUTO_LIABILITY_BIPD",
            "mandate": {
                "rule": "for-hire interstate property, 10,001 lb or more", "citation": "49 CFR 387.9; 387.303", "amount": 750_000, "form": "BMC-91/91X",
            },
            "basis": "MANDATED", "withdrawn": true, "merged": true,
        });
        assert_eq!(shown, expected);
        let (text, protected) = (shown.to_string(), protected(&record));
        assert_eq!((protected.len(), protected.contains(&"")), (18, false), "each protected field of the test's lead has a value");
        for protected in protected {
            assert!(!text.contains(protected), "{protected} in {text}");
        }
        assert!(!text.contains("MESA") && !text.contains("FREIGHT"), "{text}");
        for (name, expected) in
            [("BLUE MESA FREIGHT LLC", "B*** M*** F*** L***"), ("X", "***"), ("A & B", "*** *** ***"), ("\"Q\" Ünal", "*** Ü***"), ("", "")]
        {
            assert_eq!(masked(name), expected);
        }
    }

    /// Proves that a lead is hidden by its company's name however the legal form is spelled, and not by a name with another form.
    #[test]
    fn leads_of_suppressed_companies_are_hidden() {
        let is_hidden = |key: &str, business: &str, dba: &str| {
            let keys = SuppressedKeys::new([(&COMPANY, COMPANY.normalize(key).unwrap())]);
            let record = Lead { business: business.to_owned(), dba: dba.to_owned(), ..lead() };
            let row = serde_json::json!({ "record": record }).to_string();
            let hidden = keys.hide(TABLES.view, row.as_bytes()).unwrap();
            hidden.is_some_and(|row| !String::from_utf8(row).unwrap().contains("MESA"))
        };
        let (short, long) = ("Blue Mesa Freight LLC", "BLUE MESA FREIGHT L.L.C.");
        assert!(is_hidden(short, long, "MESA X") && is_hidden(long, short, "MESA X") && is_hidden("Mesa X", short, "MESA X LLC"));
        assert!(is_hidden("blue mesa freight", long, "MESA X"), "a key without a form hides the name with any");
        assert!(!is_hidden("Blue Mesa Freight Inc", long, "MESA X") && !is_hidden("Blue Mesa LLC", long, "MESA X"));
    }

    /// Proves that nothing that readers see of a hidden lead has the number of its business, in whichever way it is hidden, and that it still says that it
    /// became a part of another one. A lead is hidden by its own id, by that of a part of it, and by that of the lead that it became a part of.
    #[test]
    fn hidden_leads_have_no_number() {
        for (kind, key) in [
            (&COMPANY, "Blue Mesa Freight LLC"),
            (&PERSON, "Mesa X"),
            (&RECORD, &*format!("coverage/{}", lead().id)),
            (&RECORD, &*format!("coverage/{}", lead().joined[0].id)),
            (&RECORD, &*format!("coverage/{}", lead().merged_into)),
        ] {
            let keys = SuppressedKeys::new([(kind, kind.normalize(key).unwrap())]);
            let row = serde_json::json!({ "record": lead() }).to_string();
            let hidden = String::from_utf8(keys.hide(TABLES.view, row.as_bytes()).unwrap().unwrap()).unwrap();
            for number in ["4312345", "4399999", "20261812345", "sos-co:1"] {
                assert!(!hidden.contains(number), "{number} in {hidden}");
            }
            let shown: Lead = serde_json::from_value(serde_json::from_str::<serde_json::Value>(&hidden).unwrap()["record"].take()).unwrap();
            assert_eq!((&*shown.id, shown.suppressed, shown.is_listed()), ("", true, false), "{key}");
            assert!(shown.redacted().merged, "{key}");
        }
    }

    /// Proves that the redacted form says whether a lead was withdrawn, is a part of another one, or has hidden fields.
    #[test]
    fn redacted_leads_say_what_became_of_them() {
        let shown_with = |withdrawn, merged_into: &str, suppressed| {
            let shown =
                serde_json::to_value(Lead { withdrawn, merged_into: merged_into.to_owned(), suppressed, ..lead() }.redacted()).unwrap();
            ["withdrawn", "merged", "suppressed"].map(|name| shown.get(name).and_then(serde_json::Value::as_bool))
        };
        assert_eq!(shown_with(false, "", false), [Some(false), Some(false), None]);
        assert_eq!(shown_with(true, "", false), [Some(true), Some(false), None]);
        assert_eq!(shown_with(false, "fmcsa:1", true), [Some(false), Some(true), Some(true)]);
    }
}
