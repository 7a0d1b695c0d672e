//! The tool `lien_bundle_report`: the tax liens of one parcel of Allegheny County that survive, and what is known of a redemption.

use std::collections::BTreeMap;

use crate::record::lien::{EXPIRED_REVIEW, Lien, OPEN, PARTIAL, SATISFIED, STRUCK, lien_list, unmatched_list};
use crate::record::{Parcel, TABLES, id};
use feed::places::{Segment, Walk};
use jiff::civil::Date;
use operation::problem::Problem;
use operation::{Definition, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use texts::allegheny::{COUNTY, parse_pin};
use texts::dollars::Dollars;

use super::filter::Filter;
use super::watchable_feed::Parcels;
use super::{DISCLAIMER, LIENS_MICROS};
use crate::rules::ParcelsRules;
use feed::RecordFeed;
use reads::last_run::last_run;
use reads::read::{Read, Reader, hidden_note};

/// The name of the tool.
pub const NAME: &str = "lien_bundle_report";
/// The name of the rule, with its version.
const RULE: &str = "tax-liens/2";
/// The most liens of a report.
const LIENS_MAX: usize = 500;
/// The stream of the liens.
const STREAM: &str = "allegheny.liens";
/// Says that nothing is known of the parcel.
const UNKNOWN: &str = "no lien and no assessment of this PIN is recorded: check the number";
/// Says that the liens of the parcel may not be recorded.
const UNREAD: &str = "the table of liens had not been read completely by then, so liens can be missing";

/// Arguments of `lien_bundle_report`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The number of a parcel of Allegheny County: 16 characters, also with dashes (`0028-F-00194-0000-00`).
    #[schemars(length(min = 1, max = 40))]
    pub pin: String,
}

/// A tax lien as of the day of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BundledLien")]
pub struct BundledLien {
    /// The number of the docket.
    pub dtd: String,
    /// The taxing bodies that the lien is left for. Empty if it is satisfied or struck off; `description` names the bodies then.
    pub body: Vec<String>,
    /// The description, which names all taxing bodies.
    pub description: String,
    /// The tax year.
    pub tax_year: Option<i64>,
    /// The day of filing; empty if it is not known.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filed: String,
    /// The amount in dollars, without interest and costs; null if it is not known, or not known how much of it is left.
    pub amount: Option<f64>,
    /// `OPEN`, `SATISFIED`, `PARTIAL`, `STRUCK`, or `EXPIRED_REVIEW`: open 20 years after it was filed.
    pub status: &'static str,
    /// Whether it appears unsatisfied; null if that needs a review.
    pub survives: Option<bool>,
    /// Which entry or field gives the status.
    pub why: String,
    /// The last entry of the docket. Of words that are not usual in dockets, such as names, the initials are shown.
    pub last_entry: String,
    /// Who bought the lien: a company, or the initials of a person; empty if nobody did.
    pub assignee: String,
    /// The block and lot, as courts write them.
    pub block_lot: String,
}

/// The sum of the liens of a taxing body, or of bodies that are named together, or of a tax year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LienSum")]
pub struct Sum {
    /// How many liens.
    pub count: usize,
    /// The sum of the amounts that are known, in dollars.
    pub total: Dollars,
    /// How many of them have an unknown amount, which `total` leaves out.
    pub unknown_amounts: usize,
}

/// The liens that appear unsatisfied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LienSummary")]
pub struct Summary {
    /// How many.
    pub count: usize,
    /// The sum of the amounts that are known, in dollars.
    pub total: Dollars,
    /// How many liens are to be reviewed. They count nowhere else.
    pub review: usize,
    /// By taxing body. A lien of several bodies counts once, under all of them: `City & School`; how it is split is not published.
    pub per_body: BTreeMap<String, Sum>,
    /// By tax year; under `unknown` those without.
    pub per_year: BTreeMap<String, Sum>,
}

/// What is known of a redemption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LienRedemption")]
pub struct Redemption {
    /// `none_open`, `open_liens`, or `review_needed`: a lien is older than 20 years, has an unknown amount, or has no PIN and can belong to the parcel; or
    /// nothing is recorded of the PIN, or the table of liens had not been read completely.
    pub posture: &'static str,
    /// The posture as a sentence, and why nothing can be said of the parcel, if that is so.
    pub statement: String,
}

/// The tax liens of one parcel.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LienBundle")]
pub struct LienBundle {
    /// The number of the parcel.
    pub pin: String,
    /// The county.
    pub county: &'static str,
    /// The address of the parcel; empty if it is not recorded.
    pub address: String,
    /// The liens of the parcel, the newest tax year first.
    pub liens: Vec<BundledLien>,
    /// The liens that appear unsatisfied.
    pub summary: Summary,
    /// What is known of a redemption.
    pub redemption: Redemption,
    /// Liens without a PIN whose block and lot can mean the parcel. They count nowhere else.
    pub unmatched: Vec<BundledLien>,
    /// The day of the answer.
    #[schemars(with = "proofs::json_type::Day")]
    pub as_of: String,
    /// The rule by which the status of a lien follows from its docket.
    pub rule: &'static str,
    /// What the report is not.
    pub disclaimer: &'static str,
}

impl BundledLien {
    /// The lien as of a day.
    fn new(mut lien: Lien, today: Date) -> Self {
        lien.set_day(today);
        let (status, survives) = match lien.status.as_str() {
            EXPIRED_REVIEW => (EXPIRED_REVIEW, None),
            OPEN => (OPEN, Some(true)),
            PARTIAL => (PARTIAL, Some(true)),
            STRUCK => (STRUCK, Some(false)),
            _ => (SATISFIED, Some(false)),
        };
        Self {
            dtd: lien.dtd,
            body: lien.body,
            description: lien.description,
            tax_year: lien.tax_year,
            filed: lien.filed,
            amount: lien.amount_cents.map(|cents| Dollars { cents }.as_f64()),
            status,
            survives,
            why: lien.why,
            last_entry: lien.last_entry,
            assignee: lien.assignee,
            block_lot: lien.block_lot,
        }
    }
}

/// The sums of the liens that appear unsatisfied.
fn summary(liens: &[(BundledLien, Option<i64>)]) -> Summary {
    let mut summary = Summary { review: liens.iter().filter(|(lien, _)| lien.survives.is_none()).count(), ..Summary::default() };
    for (lien, cents) in liens.iter().filter(|(lien, _)| lien.survives == Some(true)) {
        let year = lien.tax_year.map_or_else(|| "unknown".to_owned(), |year| year.to_string());
        let amount = Dollars { cents: cents.unwrap_or(0) };
        summary.count += 1;
        summary.total = Dollars::total([summary.total, amount]);
        for sum in [summary.per_body.entry(lien.body.join(" & ")).or_default(), summary.per_year.entry(year).or_default()] {
            sum.count += 1;
            sum.total = Dollars::total([sum.total, amount]);
            sum.unknown_amounts += usize::from(cents.is_none());
        }
    }
    summary
}

/// `doubt` says why liens can be missing.
fn redemption(summary: &Summary, has_unmatched: bool, doubt: Option<&str>, today: Date) -> Redemption {
    let unknown = summary.per_body.values().any(|sum| sum.unknown_amounts > 0);
    let posture = match summary.count {
        _ if summary.review > 0 || unknown || has_unmatched || doubt.is_some() => "review_needed",
        0 => "none_open",
        _ => "open_liens",
    };
    let bodies: std::collections::BTreeSet<&str> = summary.per_body.keys().flat_map(|bodies| bodies.split(" & ")).collect();
    let statement = format!(
        "{} lien(s) of {} bodies appear unsatisfied in the public table as of {today}; interest, costs and sale effects are not in the data.{}",
        summary.count,
        bodies.len(),
        doubt.map(|doubt| format!(" A review is needed: {doubt}.")).unwrap_or_default()
    );
    Redemption { posture, statement }
}

/// The report of a parcel as of a day. `doubt` says why liens can be missing.
fn bundle(pin: &str, address: String, liens: Vec<Lien>, unmatched: Vec<Lien>, doubt: Option<&str>, today: Date) -> LienBundle {
    let liens: Vec<(BundledLien, Option<i64>)> = liens
        .into_iter()
        .map(|lien| {
            let cents = lien.amount_cents;
            (BundledLien::new(lien, today), cents)
        })
        .collect();
    let unmatched: Vec<BundledLien> = unmatched.into_iter().map(|lien| BundledLien::new(lien, today)).collect();
    let summary = summary(&liens);
    let can_be_open = unmatched.iter().any(|lien| lien.survives != Some(false));
    LienBundle {
        pin: pin.to_owned(),
        county: COUNTY,
        address,
        liens: liens.into_iter().map(|(lien, _)| lien).collect(),
        redemption: redemption(&summary, can_be_open, doubt, today),
        summary,
        unmatched,
        as_of: today.to_string(),
        rule: RULE,
        disclaimer: DISCLAIMER,
    }
}

/// Reads the PIN of the argument.
fn pin(text: &str) -> Result<String, Problem> {
    parse_pin(text).map_err(|reason| {
        Problem::parameter(
            "pin",
            format!("pin: {text:?}: {reason}. Liens are reported for Allegheny County, Pennsylvania ({COUNTY}), only"),
        )
    })
}

/// The liens of a list that are not hidden.
async fn liens(reader: &mut Reader<Parcels>, list: &str) -> Result<Vec<Lien>, Problem> {
    let part = Segment { buckets: 0..=0, ranks: i64::MIN..=i64::MAX };
    let found = reader.ranked(Walk { list, part, filter: NAME, limit: LIENS_MAX, after: None }, None).await?;
    if found.next.is_some() {
        reader
            .note(format!("the parcel has more than {LIENS_MAX} liens: only those of the newest tax years are in the report and its sums"));
    }
    let count = found.items.len();
    let shown: Vec<Lien> =
        found.items.into_iter().filter(|record| !record.suppressed).filter_map(|record| record.lien).map(|lien| *lien).collect();
    reader.note(hidden_note("liens", count - shown.len()));
    Ok(shown)
}

/// The report of the parcel with a PIN. A note says if nothing is recorded of it, or if the liens had not been read: nobody should pay for a report that is
/// known to be empty, or take it for one of a parcel without liens.
async fn report(text: &str, reader: &mut Reader<Parcels>) -> Result<LienBundle, Problem> {
    let pin = pin(text)?;
    let (own, unmatched) = (liens(reader, &lien_list(&pin)).await?, liens(reader, &unmatched_list(&pin)).await?);
    let parcel: Option<Parcel> = ParcelsRules::FEED.records_by_id(&reader.at, &[id(COUNTY, &pin)]).await?.into_iter().next().flatten();
    let doubt = if last_run(&reader.at, &TABLES, STREAM).await?.is_none() {
        Some(UNREAD)
    } else {
        (parcel.is_none() && own.is_empty()).then_some(UNKNOWN)
    };
    reader.note(doubt.map(str::to_owned));
    let address = parcel.map(|parcel| parcel.address).unwrap_or_default();
    Ok(bundle(&pin, address, own, unmatched, doubt, reader.today()))
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = LienBundle;

    fn definition() -> Definition {
        Definition {
            name: NAME,
            summary: "The tax liens of one parcel of Allegheny County that appear unsatisfied, by taxing body and year, and its redemption posture.",
            when: "Use it before you buy, insure or redeem a parcel in Allegheny County.",
            description: "`status` follows from the entries of each docket; an earlier satisfaction counts although a later entry hides it. A lien that is satisfied for one \
                of its bodies is `PARTIAL`: its amount is null, since how much is left is not published. `summary` has the liens that survive only. Unpaid \
                calls get the payment terms with a preview: number, total, and split by taxing body. Not a title report.",
            price: Price::PerCall { micros: LIENS_MICROS, free_from: Tier::Pro },
            surface: Surface::Tool,
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({ "pin": "0028F00194000000" }),
            ..Definition::read()
        }
    }

    async fn preview(self, _: Filter, reader: &mut Reader<Parcels>) -> Result<Option<Value>, Problem> {
        let LienBundle { summary: Summary { count, total, per_body, .. }, .. } = report(&self.pin, reader).await?;
        Ok(Some(json!({ "count": count, "total": total, "perBody": per_body })))
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Parcels>) -> Result<LienBundle, Problem> {
        report(&self.pin, reader).await
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use feed::testing::records::RecordView;
    use feed::testing::{HOUR_MS, START_MS, World, call, text, value};
    use jiff::civil::date;
    use operation::{Call, Stage};
    use reads::read::operation;
    use schemas::change::Through;
    use schemas::key;
    use schemas::position::Seq;
    use schemas::tables::Write;

    use super::*;

    const TODAY: Date = date(2026, 11, 20);

    fn lien(body: &[&str], status: &str, cents: Option<i64>) -> Lien {
        Lien {
            body: body.iter().map(|body| (*body).to_owned()).collect(),
            tax_year: Some(2018),
            filed: "2019-05-01".into(),
            amount_cents: cents,
            status: status.into(),
            why: "an entry".into(),
            ..Lien::default()
        }
    }

    fn of(liens: Vec<Lien>) -> LienBundle {
        bundle("0028F00194000000", String::new(), liens, Vec::new(), None, TODAY)
    }

    /// Proves the sums of the contract: they agree, only liens that survive count, a partial one counts without an amount, and one that is older than 20
    /// years counts as to be reviewed only.
    #[test]
    fn sums_agree() {
        let old = Lien { filed: "2003-05-01".into(), ..lien(&["County"], OPEN, Some(64_050)) };
        let found = of(vec![
            lien(&["City"], PARTIAL, None),
            lien(&["City", "School"], OPEN, Some(120_010)),
            lien(&["City"], OPEN, Some(5_020)),
            lien(&[], "SATISFIED", Some(80_000)),
            lien(&[], "STRUCK", Some(9_000)),
            old,
        ]);
        let statuses: Vec<_> = found.liens.iter().map(|lien| (lien.status, lien.survives)).collect();
        let expected = [
            ("PARTIAL", Some(true)),
            ("OPEN", Some(true)),
            ("OPEN", Some(true)),
            ("SATISFIED", Some(false)),
            ("STRUCK", Some(false)),
            ("EXPIRED_REVIEW", None),
        ];
        assert_eq!(statuses, expected);
        let Summary { count, total, review, per_body, per_year } = found.summary;
        assert_eq!((count, total.cents, review), (3, 125_030, 1));
        for sums in [&per_body, &per_year] {
            assert_eq!(Dollars::total(sums.values().map(|sum| sum.total)), total);
            assert_eq!(sums.values().map(|sum| sum.count).sum::<usize>(), count);
        }
        assert_eq!(per_body["City"], Sum { count: 2, total: Dollars { cents: 5_020 }, unknown_amounts: 1 });
        assert_eq!(per_body["City & School"].total.cents, 120_010);
        assert_eq!(found.redemption.posture, "review_needed");
        assert_eq!(
            found.redemption.statement,
            "3 lien(s) of 2 bodies appear unsatisfied in the public table as of 2026-11-20; interest, costs and sale effects are not in the data."
        );
    }

    /// Proves that a lien expires on the day 20 years after it was filed, and not if it is satisfied or if that day is not known.
    #[test]
    fn liens_expire() {
        for (filed, status, expected) in [
            ("2006-11-20", OPEN, "EXPIRED_REVIEW"),
            ("2006-11-21", OPEN, "OPEN"),
            ("2003-05-01", PARTIAL, "EXPIRED_REVIEW"),
            ("2003-05-01", "SATISFIED", "SATISFIED"),
            ("2003-05-01", "STRUCK", "STRUCK"),
            ("", OPEN, "OPEN"),
        ] {
            let lien = Lien { filed: filed.into(), ..lien(&["County"], status, Some(1)) };
            assert_eq!(BundledLien::new(lien, TODAY).status, expected, "{filed} {status}");
        }
    }

    /// Proves each posture, that a lien without a PIN which can belong to the parcel needs a review, and counts nowhere else.
    #[test]
    fn postures() {
        assert_eq!(of(Vec::new()).redemption.posture, "none_open");
        assert_eq!(of(vec![lien(&["County"], OPEN, Some(1))]).redemption.posture, "open_liens");
        assert_eq!(of(vec![lien(&["County"], OPEN, None)]).redemption.posture, "review_needed");
        let unmatched = |status: &str| bundle("x", String::new(), Vec::new(), vec![lien(&["County"], status, Some(1))], None, TODAY);
        assert_eq!((unmatched(OPEN).redemption.posture, unmatched(OPEN).summary.count), ("review_needed", 0));
        assert_eq!(unmatched("SATISFIED").redemption.posture, "none_open");
    }

    /// Records that the liens were read completely, as of the first change.
    async fn read_liens(world: &World) {
        let view = RecordView::<Parcel>::new(&*world.store, &TABLES).await.view;
        let checkpoint = view.checkpoint().await.unwrap();
        let through = Through { upstream: STREAM.to_owned(), through_date: "2026-10-31".to_owned(), finished_at: START_MS };
        let row = Write::put(TABLES.through, key![STREAM, Seq(1)], Bytes::from(serde_json::to_vec(&through).unwrap()));
        view.commit(vec![row], &checkpoint).await.unwrap();
    }

    /// Proves that the preview and the report of a parcel of which nothing is recorded say so, as do those from before the liens were read, that neither of
    /// them clears the parcel, and that those of a parcel without liens do.
    #[tokio::test]
    async fn unknown_parcels_are_noted() {
        const KNOWN: &str = "0028F00194000000";
        let world = World::new().await;
        let parcel = Parcel { id: id(COUNTY, KNOWN), pin: KNOWN.into(), county: COUNTY.into(), ..Parcel::default() };
        world.fill_records(&TABLES, &[parcel]).await;
        let context = world.context(START_MS + 24 * HOUR_MS);
        let tool = operation::<Arguments>();
        for (number, is_read, doubt) in [(KNOWN, false, Some(UNREAD)), (KNOWN, true, None), ("0028F00195000000", true, Some(UNKNOWN))] {
            if is_read {
                read_liens(&world).await;
            }
            let unpaid = Call { stage: Stage::Preview, ..call(&context) };
            let preview = text((tool.run)(unpaid, json!({ "pin": number })).await.unwrap());
            let found = value(&context, &tool, json!({ "pin": number })).await;
            for note in [UNREAD, UNKNOWN] {
                let shown = [&preview, &found["note"].to_string(), &found["redemption"]["statement"].to_string()];
                assert_eq!(shown.map(|shown| shown.contains(note)), [doubt == Some(note); 3], "{preview} {found}");
            }
            let posture = if doubt.is_some() { "review_needed" } else { "none_open" };
            assert_eq!((&found["summary"]["count"], &found["redemption"]["posture"]), (&json!(0), &json!(posture)));
        }
        let before = value(&context, &tool, json!({ "pin": KNOWN, "asOf": "2020-01-01" })).await;
        assert_eq!(before["redemption"]["posture"], "review_needed", "{before}");
    }

    /// Proves that a preview that is asked for as of an earlier time says that it is about now, and that the report is as of that time.
    #[tokio::test]
    async fn previews_are_about_now() {
        const PIN: &str = "0028F00194000000";
        let world = World::new().await;
        let first = Parcel { id: "cook-il/1".into(), pin: "1".into(), county: "cook-il".into(), ..Parcel::default() };
        let owed = Parcel { id: "lien/1".into(), pin: PIN.into(), county: COUNTY.into(), ..Parcel::default() };
        let owed = Parcel { lien: Some(Box::new(lien(&["County"], OPEN, Some(1)))), ..owed };
        world.fill_records(&TABLES, &[first, owed]).await;
        let context = world.context(START_MS + 24 * HOUR_MS);
        let tool = operation::<Arguments>();
        for (arguments, count, is_noted) in
            [(json!({ "pin": PIN }), 1, false), (json!({ "pin": PIN, "asOf": "2026-11-01T00:30:00Z" }), 0, true)]
        {
            let unpaid = Call { stage: Stage::Preview, ..call(&context) };
            let preview: Value = serde_json::from_str(&text((tool.run)(unpaid, arguments.clone()).await.unwrap())).unwrap();
            let note = preview["note"].as_str().unwrap_or_default();
            assert_eq!((&preview["count"], note.contains("this preview is about now")), (&json!(1), is_noted), "{preview}");
            let paid = value(&context, &tool, arguments).await;
            assert_eq!(paid["summary"]["count"], count, "{paid}");
            assert!(!paid["note"].as_str().unwrap_or_default().contains("preview"), "{paid}");
        }
    }

    /// Proves that a PIN of Cook County is refused with the name of the argument and of the county that is covered.
    #[test]
    fn other_pins_are_refused() {
        let problem = pin("16012160010000").unwrap_err();
        assert_eq!(problem.parameter, "pin");
        assert!(problem.detail.contains("Allegheny County") && problem.detail.contains("16 characters"), "{}", problem.detail);
        assert_eq!(pin("0028-F-00194-0000-00").unwrap(), "0028F00194000000");
    }
}
