//! The aviation service's rows: one record per airworthiness directive, with what was read of its text. The crate `directives` writes and reads
//! them; texts that were read are kept word for word next to what they mean.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::records::{Place, Record, Term, day_number};
use crate::details::{ChangeRecord, NoDetails};
use crate::news::{DIRECTIVE_NEWS_DAYS, News};

/// The status of a directive that is in force as published.
pub const CURRENT: &str = "current";
/// The status of a directive that a later document corrected.
pub const CORRECTED: &str = "corrected";
/// The status of a directive that another one replaces.
pub const SUPERSEDED: &str = "superseded";
/// The statuses.
pub const STATUSES: [&str; 3] = [CURRENT, CORRECTED, SUPERSEDED];
/// The bucket of every list: a list holds the directives of one key, which are at most a few thousand.
pub const BUCKET: i64 = 0;

/// An airworthiness directive. `""` and empty lists mean unknown or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AirworthinessDirective {
    /// The id of the record: its number.
    pub id: String,
    /// The number of the directive: `2026-15-05`, `87-20-03 R2`.
    pub ad_number: String,
    /// Title of the document.
    pub title: String,
    /// The holder of the type certificate as the text names it.
    pub make: String,
    /// Keys of the makes: those of the text, of the title and of former holders.
    pub makes: Vec<String>,
    /// `aircraft`, `engine`, `propeller` or `appliance`.
    pub product: String,
    /// `all`, `certain` (serial numbers, parts or modifications) or `unknown`.
    pub scope: String,
    /// The models that the text names, in its order.
    pub models: Vec<DirectiveModel>,
    /// Words of the text that look like models and are in no list that was read.
    pub mentions: Vec<ModelMention>,
    /// Serial numbers.
    pub serials: Vec<SerialList>,
    /// The text that limits the affected aircraft other than by serial numbers: "equipped with".
    pub condition: String,
    /// Models of the abstract, in compact form.
    pub named_in_summary: Vec<String>,
    /// The words of the abstract for `namedInSummary`, in its order; empty in records of earlier rules.
    pub summary_spans: Vec<String>,
    /// ATA chapter: 2 digits.
    pub ata: String,
    /// Effective date, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub effective_date: String,
    /// `current`, `corrected` or `superseded`.
    pub status: String,
    /// Numbers of the directives that this one replaces.
    pub supersedes: Vec<String>,
    /// Number of the directive that replaces this one.
    pub superseded_by: String,
    /// Whether the actions recur: `yes`, `no` or `unknown`.
    pub recurring: String,
    /// The limits that the text states, in its order.
    pub limits: Vec<DirectiveLimit>,
    /// The text that says that an action ends the repetitions.
    pub terminating_action: String,
    /// The text that takes actions or times from another document.
    pub referenced_document: String,
    /// The paragraph on the unsafe condition.
    pub unsafe_condition: String,
    /// How the text is arranged: `lettered`, or `older`.
    pub layout: String,
    /// Parts of the text that could not be read.
    pub unread: Vec<UnreadText>,
    /// URL of the document that counts: the latest correction, else the original.
    pub url: String,
    /// Number of that document.
    pub document_number: String,
    /// All documents about the directive, by day and number.
    pub documents: Vec<DirectiveDocument>,
    /// Version of the rules that read the text.
    pub rules_version: i64,
    /// The lists of the directive: keys under which a comparison finds it.
    pub keys: Vec<String>,
}

/// A model that a directive names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DirectiveModel {
    /// The model in full: `A319-112` for the `-112` of a list.
    pub name: String,
    /// The compact form: `A319112`.
    pub form: String,
    /// The series: `A319`.
    pub series: String,
    /// Whether the text names a whole series.
    pub is_series: bool,
    /// Compact forms that the text gives in parentheses.
    pub also: Vec<String>,
    /// `applies`, `installed_on`, `equipment`, `excepted` or `excepted_if`.
    pub role: String,
    /// The text that names the model.
    pub span: String,
}

/// A word that looks like a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelMention {
    /// The compact form.
    pub form: String,
    /// The word.
    pub span: String,
}

/// The serial numbers of some of the models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SerialList {
    /// The ranges; none for all serial numbers.
    pub ranges: Vec<SerialNumbers>,
    /// Whether the text says that all serial numbers are affected.
    pub is_all: bool,
    /// Whether the whole list could be read.
    pub is_complete: bool,
    /// Positions in `models`, from 0 on.
    pub models: Vec<i64>,
    /// The text.
    pub span: String,
}

/// A range of serial numbers, first and last included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SerialNumbers {
    /// The first one.
    pub from: String,
    /// The last one; empty for "and subsequent".
    pub to: String,
}

/// A limit of time in service, flights or calendar time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DirectiveLimit {
    /// `initial` or `recurring`.
    pub kind: String,
    /// The value.
    pub value: i64,
    /// `hours`, `flight_hours`, `cycles`, `landings`, `days`, `months`, `calendar_months` or `years`.
    pub unit: String,
    /// From when it counts: `effective_date`, `last_done` or `total`.
    pub anchor: String,
    /// How it is joined with the other limits of its group: `FIRST`, `LATER` or empty.
    pub joiner: String,
    /// Limits with the same number belong to one phrase.
    pub group: i64,
    /// The phrase.
    pub quote: String,
}

/// A part of the text that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UnreadText {
    /// Why: `NO_APPLICABILITY`, `NO_MODELS`, `OLDER_LAYOUT`, `SERIALS`, `EFFECTIVE_DATE`, `NO_ACTIONS` or `TOO_LONG`.
    pub reason: String,
    /// The beginning of the part.
    pub span: String,
}

/// A document about a directive.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DirectiveDocument {
    /// Day of publication, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub published: String,
    /// Number of the document.
    pub number: String,
    /// Whether it corrects an earlier document.
    pub is_correction: bool,
    /// Where it is in the journal: `91 FR 62307`.
    pub citation: String,
    /// URL.
    pub url: String,
}

impl AirworthinessDirective {
    /// Whether another directive replaces this one.
    #[must_use]
    pub fn is_superseded(&self) -> bool {
        self.status == SUPERSEDED
    }

    /// The rank in lists: the newest effective date first, and the latest publication where the date is unknown.
    fn rank(&self) -> i64 {
        let published = self.documents.last().map(|document| document.published.as_str()).unwrap_or_default();
        [self.effective_date.as_str(), published].iter().find_map(|day| day.parse().ok()).map_or(0, |day| -day_number(day))
    }
}

impl ChangeRecord for AirworthinessDirective {
    type Details = NoDetails;

    /// By the publication of its first document.
    fn news(&self) -> Option<News> {
        News::of_text(&self.documents.first()?.published, DIRECTIVE_NEWS_DAYS)
    }
}

impl Record for AirworthinessDirective {
    fn id(&self) -> &str {
        &self.id
    }

    fn terms(&self) -> Vec<Term> {
        let single = [("product", &self.product), ("recurring", &self.recurring), ("status", &self.status), ("ata", &self.ata)];
        let makes = self.makes.iter().map(|make| Term::new("make", make));
        let keys = makes.chain(self.keys.iter().map(|key| Term::new("key", key)));
        single.into_iter().map(|(dimension, value)| Term::new(dimension, value)).chain(keys).flatten().collect()
    }

    fn places(&self) -> Vec<Place> {
        let rank = self.rank();
        self.keys.iter().map(|key| Place { list: key.clone(), bucket: BUCKET, rank }).collect()
    }
}

crate::record_tables!("aviation", places);

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::views::testing;

    fn directive() -> AirworthinessDirective {
        let text = str::to_owned;
        AirworthinessDirective {
            id: text("2026-15-05"),
            ad_number: text("2026-15-05"),
            title: text("t"),
            make: text("m"),
            makes: vec![text("PIPER")],
            product: text("aircraft"),
            scope: text("certain"),
            models: vec![DirectiveModel {
                name: text("PA-28-140"),
                form: text("PA28140"),
                series: text("PA28"),
                is_series: true,
                also: vec![text("X1")],
                role: text("applies"),
                span: text("PA-28-140"),
            }],
            mentions: vec![ModelMention { form: text("PA32"), span: text("PA-32") }],
            serials: vec![SerialList {
                ranges: vec![SerialNumbers { from: text("1"), to: text("2") }],
                is_all: true,
                is_complete: true,
                models: vec![0],
                span: text("serial"),
            }],
            condition: text("equipped"),
            named_in_summary: vec![text("PA28")],
            summary_spans: vec![text("PA-28")],
            ata: text("57"),
            effective_date: text("2026-08-24"),
            status: text(SUPERSEDED),
            supersedes: vec![text("2011-10-09")],
            superseded_by: text("2026-20-08"),
            recurring: text("yes"),
            limits: vec![DirectiveLimit {
                kind: text("recurring"),
                value: 100,
                unit: text("hours"),
                anchor: text("last_done"),
                joiner: text("FIRST"),
                group: 1,
                quote: text("every 100 hours"),
            }],
            terminating_action: text("ends"),
            referenced_document: text("EASA"),
            unsafe_condition: text("u"),
            layout: text("lettered"),
            unread: vec![UnreadText { reason: text("NO_ACTIONS"), span: text("s") }],
            url: text("https://a.example/"),
            document_number: text("2026-17553"),
            documents: vec![DirectiveDocument {
                published: text("2026-08-20"),
                number: text("2026-17553"),
                is_correction: true,
                citation: text("91 FR 1"),
                url: text("https://a.example/"),
            }],
            rules_version: 1,
            keys: vec![text("PIPER/PA")],
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = directive();
        let before = AirworthinessDirective { status: CURRENT.into(), ..record.clone() };
        testing::assert_change_reads_back("changes.aviation", &record.id.clone(), before, record);
    }

    /// Proves by which terms changes are found, and where a directive is in its lists: by its effective date, else by its last publication.
    #[test]
    fn terms_and_places() {
        let record = directive();
        let terms: Vec<String> = record.terms().iter().map(Term::text).collect();
        assert_eq!(terms, ["product/aircraft", "recurring/yes", "status/superseded", "ata/57", "make/piper", "key/piper/pa"]);
        let place = |record: &AirworthinessDirective| record.places().remove(0);
        assert_eq!(place(&record).list, "PIPER/PA");
        let without = AirworthinessDirective { effective_date: String::new(), ..record.clone() };
        let unknown = AirworthinessDirective { documents: Vec::new(), ..without.clone() };
        assert!(place(&record) < place(&without) && place(&without) < place(&unknown));
    }

    /// Proves that a directive is late by its first document, also if it was corrected lately.
    #[test]
    fn late_directives() {
        let document = |published: &str| DirectiveDocument { published: published.into(), ..DirectiveDocument::default() };
        for (published, is_late) in
            [(&["1998-02-03", "2026-11-20"][..], true), (&["2026-09-24"], true), (&["2026-09-25"], false), (&[], false)]
        {
            let documents = published.iter().map(|day| document(day)).collect();
            let directive = AirworthinessDirective { documents, ..AirworthinessDirective::default() };
            assert_eq!(directive.is_backfill(&NoDetails {}, true, date(2026, 11, 24)), is_late, "{published:?}");
        }
    }
}
