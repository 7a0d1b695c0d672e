//! Companies with annual reports and federal awards: the list of their filings, the instance and the label file of each report, and the sums of what was
//! obligated to their groups. The figures of the last five fiscal years; everything is simulated, also the companies.
//!
//! The first company states amounts by customer, next to customers that look like the government and are not, in contexts of a quarter, of the year before
//! and of a segment; its reports are amended without figures. The second one states a share of sales and one of receivables, and was obligated much more in
//! its last year. The third one names no customer, and every other report of it has no instance.

use std::fmt::Write;

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::world::World;

/// A company.
struct Company {
    cik: u64,
    /// The beginning of the names of its files.
    stem: &'static str,
    name: &'static str,
    /// Month and day on which its fiscal year ends.
    end: (i8, i8),
    /// The id of the parent of its recipients.
    recipient_id: &'static str,
    parent: &'static str,
}

static COMPANIES: [Company; 3] = [
    Company {
        cik: 999_999_901,
        stem: "demoa",
        name: "Example Aerostructures (simulated)",
        end: (9, 30),
        recipient_id: "00000000-0000-0000-0000-000000000001-P",
        parent: "DEMAPARENT01",
    },
    Company {
        cik: 999_999_902,
        stem: "demob",
        name: "Example Data Services (simulated)",
        end: (12, 31),
        recipient_id: "00000000-0000-0000-0000-000000000002-P",
        parent: "DEMBPARENT02",
    },
    Company {
        cik: 999_999_903,
        stem: "democ",
        name: "Example Instruments (simulated)",
        end: (6, 30),
        recipient_id: "00000000-0000-0000-0000-000000000003-P",
        parent: "DEMCPARENT03",
    },
];
/// How many fiscal years have figures.
const YEARS: i16 = 5;
/// How many days after the end of a fiscal year its report is filed.
const FILED_AFTER_DAYS: i64 = 75;
/// The recipients of the first company's contracts: more than a page shows.
const RECIPIENTS: i64 = 120;
/// A million dollars in cents.
const MILLION: i64 = 100_000_000;
/// What the first recipient of a group was obligated in addition, and the second one less.
const SHIFTED: i64 = 10 * MILLION;

/// A file of an annual report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    company: usize,
    end: Date,
    is_amendment: bool,
    is_label_file: bool,
}

impl Company {
    fn last_day(&self, year: i16) -> Option<Date> {
        Date::new(year, self.end.0, self.end.1).ok()
    }

    /// The last days of the fiscal years with figures, the newest first.
    fn years(&self, world: &World) -> impl Iterator<Item = Date> {
        let newest = world.first_today.year();
        (0..=YEARS).filter_map(move |back| self.last_day(newest - back)).filter(move |end| *end < world.first_today).take(YEARS as usize)
    }

    fn accession(&self, filed: Date, number: u32) -> String {
        format!("{:010}-{:02}-{number:06}", self.cik, filed.year() % 100)
    }
}

fn filed(end: Date) -> Date {
    end.saturating_add(FILED_AFTER_DAYS.days())
}

/// The document at a path below the archive.
pub(crate) fn document_at(file: &str) -> Option<Document> {
    let mut parts = file.strip_prefix("data/")?.split('/');
    let (cik, _, name) = (parts.next()?, parts.next()?, parts.next()?);
    let company = COMPANIES.iter().position(|company| company.cik.to_string() == cik)?;
    let (name, is_label_file) = match name.strip_suffix("_lab.xml") {
        Some(name) => (name, true),
        None => (name.strip_suffix("_htm.xml")?, false),
    };
    let day = name.strip_prefix(COMPANIES[company].stem)?.strip_prefix('-')?;
    let end = Date::strptime("%Y%m%d", day.trim_end_matches('a')).ok()?;
    Some(Document { company, end, is_amendment: day.ends_with('a'), is_label_file })
}

/// The list of a company's filings; `None` for any other filer.
pub(crate) fn list(world: &World, cik: u64) -> Option<Value> {
    let company = COMPANIES.iter().find(|company| company.cik == cik)?;
    let mut rows: Vec<[String; 5]> = Vec::new();
    for end in company.years(world).filter(|end| filed(*end) <= world.today) {
        let (day, stem) = (filed(end), format!("{}-{}", company.stem, end.strftime("%Y%m%d")));
        let row = |number, form: &str, filed: Date, file: String| {
            [company.accession(filed, number), form.to_owned(), filed.to_string(), end.to_string(), file]
        };
        let amended = day.saturating_add(20.days());
        if cik == COMPANIES[0].cik && amended <= world.today {
            rows.push(row(9, "10-K/A", amended, format!("{stem}a.htm")));
        }
        rows.push(row(1, "10-K", day, format!("{stem}.htm")));
        rows.push(row(2, "10-Q", day.saturating_sub(100.days()), format!("{stem}q.htm")));
    }
    let column = |at: usize| rows.iter().map(|row| row[at].clone()).collect::<Vec<_>>();
    Some(json!({
        "cik": format!("{cik:010}"),
        "name": company.name,
        "filings": {"recent": {
            "accessionNumber": column(0), "form": column(1), "filingDate": column(2), "reportDate": column(3), "primaryDocument": column(4),
            "items": vec![""; rows.len()],
        }, "files": []},
    }))
}

/// A file of an annual report; `None` if there is none.
pub(crate) fn document(world: &World, document: Document) -> Option<String> {
    let company = &COMPANIES[document.company];
    if !company.years(world).any(|end| end == document.end) || filed(document.end) > world.today {
        return None;
    }
    match (document.company, document.is_label_file) {
        // Every other report of the third company is too old for an instance of its own.
        (2, false) if document.end.year() % 2 == 1 => None,
        (2, true) => None,
        (_, true) => Some(labels(company)),
        (_, false) => Some(instance(company, document)),
    }
}

/// The name of the regulator's taxonomy for customers.
const CUSTOMERS: &str = "srt:MajorCustomersAxis";

/// An instance that is being written.
struct Writer {
    text: String,
    contexts: u32,
}

impl Writer {
    /// Adds a fact with a context of its own.
    fn fact(&mut self, tag: &str, unit: &str, value: &str, period: &str, dimensions: &[(&str, &str)]) {
        self.contexts += 1;
        let id = format!("c-{}", self.contexts);
        let member =
            |(axis, member): &(&str, &str)| format!("<xbrldi:explicitMember dimension=\"{axis}\">{member}</xbrldi:explicitMember>");
        let segment: String = dimensions.iter().map(member).collect();
        let segment = if segment.is_empty() { segment } else { format!("<segment>{segment}</segment>") };
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.text,
            "<context id=\"{id}\"><entity><identifier scheme=\"http://www.sec.gov/CIK\">0</identifier>{segment}</entity><period>{period}</period></context>\n\
             <us-gaap:{tag} contextRef=\"{id}\" decimals=\"-6\" id=\"f-{}\" unitRef=\"{unit}\">{value}</us-gaap:{tag}>",
            self.contexts
        );
    }
}

fn instance(company: &Company, document: Document) -> String {
    let end = document.end;
    let span = |first: Date, last: Date| format!("<startDate>{first}</startDate><endDate>{last}</endDate>");
    let year_before = end.saturating_sub(1.year());
    let first = year_before.saturating_add(1.day());
    let (year, before) = (span(first, end), span(year_before.saturating_sub(1.year()).saturating_add(1.day()), year_before));
    let quarter = span(end.saturating_sub(91.days()), end);
    let mut out = Writer { text: String::new(), contexts: 0 };
    let revenue = "RevenueFromContractWithCustomerExcludingAssessedTax";
    match (document.company, document.is_amendment) {
        (0, false) => {
            let member_named = |name: &str| format!("demoa:{name}Member");
            out.fact(revenue, "usd", "2000000000", &year, &[]);
            out.fact(revenue, "usd", "2000000000", &year, &[]);
            out.fact(revenue, "usd", "1900000000", &before, &[]);
            out.fact(revenue, "usd", "510000000", &quarter, &[]);
            out.fact(revenue, "usd", "2000000000", &format!("<instant>{end}</instant>"), &[]);
            for (member, value) in [
                ("DepartmentOfDefense", "700000000"),
                ("ForeignMilitarySalesThroughTheUSGovernment", "1200000000"),
                ("StateAndLocalGovernment", "1300000000"),
                ("CustomerA", "1400000000"),
            ] {
                out.fact(revenue, "usd", value, &year, &[(CUSTOMERS, &member_named(member))]);
            }
            let government = member_named("USGovernment");
            let segments = ("srt:ConsolidationItemsAxis", "us-gaap:OperatingSegmentsMember");
            out.fact(revenue, "usd", "1000000000", &year, &[segments, (CUSTOMERS, &government)]);
            out.fact(revenue, "usd", "980000000", &before, &[segments, (CUSTOMERS, &government)]);
            out.fact(
                revenue,
                "usd",
                "1500000000",
                &year,
                &[("us-gaap:StatementBusinessSegmentsAxis", "demoa:SpaceMember"), (CUSTOMERS, &government)],
            );
            out.fact(revenue, "usd", "1600000000", &quarter, &[(CUSTOMERS, &government)]);
        }
        (1, _) => {
            let (benchmark, kind) = ("us-gaap:ConcentrationRiskByBenchmarkAxis", "us-gaap:ConcentrationRiskByTypeAxis");
            out.fact("Revenues", "usd", "1200000000", &year, &[]);
            let sales = [(benchmark, "us-gaap:SalesRevenueNetMember"), (kind, "us-gaap:GovernmentContractsConcentrationRiskMember")];
            out.fact("ConcentrationRiskPercentage1", "number", "0.40", &year, &sales);
            let receivables = [
                (benchmark, "us-gaap:AccountsReceivableMember"),
                (kind, "us-gaap:CreditConcentrationRiskMember"),
                (CUSTOMERS, "demob:CustomerOneMember"),
            ];
            out.fact("ConcentrationRiskPercentage1", "number", "0.90", &year, &receivables);
        }
        (2, _) => {
            out.fact("SalesRevenueNet", "usd", "300000000", &year, &[]);
            out.fact("SalesRevenueNet", "usd", "90000000", &year, &[(CUSTOMERS, "democ:CustomerAMember")]);
        }
        // An amendment without figures.
        _ => {}
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<xbrl xmlns=\"http://www.xbrl.org/2003/instance\" xmlns:dei=\"http://xbrl.sec.gov/dei/2023\" \
         xmlns:us-gaap=\"http://fasb.org/us-gaap/2023\" xmlns:xbrldi=\"http://xbrl.org/2006/xbrldi\">\n<context id=\"d\"><entity><identifier \
         scheme=\"http://www.sec.gov/CIK\">{:010}</identifier></entity><period>{year}</period></context>\n<unit id=\"usd\"><measure>iso4217:USD\
         </measure></unit>\n<unit id=\"number\"><measure>pure</measure></unit>\n<dei:DocumentType contextRef=\"d\">10-K</dei:DocumentType>\n\
         <dei:DocumentFiscalYearFocus contextRef=\"d\">{}</dei:DocumentFiscalYearFocus>\n<dei:DocumentPeriodEndDate contextRef=\"d\">{end}\
         </dei:DocumentPeriodEndDate>\n{}</xbrl>\n",
        company.cik,
        end.year(),
        out.text,
    )
}

fn labels(company: &Company) -> String {
    let members = match company.stem {
        "demoa" => &[
            ("USGovernment", "U.S. Government [Member]"),
            ("DepartmentOfDefense", "Department of Defense [Member]"),
            ("ForeignMilitarySalesThroughTheUSGovernment", "Foreign military sales through the U.S. Government [Member]"),
            ("StateAndLocalGovernment", "State and local governments [Member]"),
            ("CustomerA", "Customer A [Member]"),
        ][..],
        _ => &[("CustomerOne", "Customer One [Member]")][..],
    };
    let one = |(member, label): &(&str, &str)| {
        let name = format!("{}_{member}Member", company.stem);
        format!(
            "<link:loc xlink:type=\"locator\" xlink:label=\"loc_{name}\" xlink:href=\"{}.xsd#{name}\"/>\n<link:label xlink:type=\"resource\" \
             xlink:label=\"lab_{name}\" xlink:role=\"http://www.xbrl.org/2003/role/label\" xml:lang=\"en-US\">{label}</link:label>\n\
             <link:labelArc xlink:type=\"arc\" xlink:from=\"loc_{name}\" xlink:to=\"lab_{name}\"/>\n",
            company.stem
        )
    };
    let all: String = members.iter().map(one).collect();
    format!(
        "<link:linkbase xmlns:link=\"http://www.xbrl.org/2003/linkbase\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"><link:labelLink>\n{all}\
         </link:labelLink></link:linkbase>\n"
    )
}

/// What was obligated to a company's group in the fiscal year that ends on a day, in cents.
fn obligated(world: &World, company: &Company, end: Date, is_vehicles: bool) -> i64 {
    let is_newest = company.years(world).next() == Some(end);
    if company.years(world).all(|own| own != end) {
        return 0;
    }
    match (company.stem, is_vehicles) {
        ("demoa", false) => 750 * MILLION,
        ("demoa", true) => 50 * MILLION,
        ("demob", false) if is_newest => 6_000 * MILLION,
        ("demob", false) => 400 * MILLION,
        ("democ", false) => 100 * MILLION,
        _ => 0,
    }
}

/// The recipients of a group and fiscal year, as the search by category shows them: all rows of the results.
pub(crate) fn recipients(world: &World, filters: &Value) -> Vec<Value> {
    let Some(company) = COMPANIES.iter().find(|company| filters["recipient_id"] == company.recipient_id) else { return Vec::new() };
    let Some(end) = filters["time_period"][0]["end_date"].as_str().and_then(|day| day.parse::<Date>().ok()) else { return Vec::new() };
    let is_vehicles = filters["award_type_codes"][0].as_str().is_some_and(|code| code.starts_with("IDV"));
    let total = obligated(world, company, end, is_vehicles);
    if total == 0 {
        return Vec::new();
    }
    let count = if company.stem == "demoa" && !is_vehicles { RECIPIENTS } else { 2 };
    let row = |number: i64| {
        let rest = if number == 0 { total % count + SHIFTED } else { 0 };
        // The second one gave money back.
        let cents = total / count + rest - if number == 1 { SHIFTED } else { 0 };
        let outlays = if is_vehicles && number == 0 { Value::Null } else { json!((cents / 2) as f64 / 100.0) };
        json!({
            "amount": cents as f64 / 100.0, "recipient_id": format!("{number:08}-0000-0000-0000-000000000000-['C']"),
            "name": format!("{} UNIT {number}", company.parent), "code": null, "uei": format!("DEM{number:09}"), "total_outlays": outlays,
        })
    };
    (0..count).map(row).collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use simulated_world::options::Options;

    /// Proves that reports are listed once they are filed, that their documents are found by their paths, and that the sums of the recipients are those of the
    /// group.
    #[test]
    fn reports_and_sums() {
        let world = World::new(&Options { today: date(2026, 11, 28), ..Options::default() });
        let listed = list(&world, 999_999_901).unwrap();
        let recent = &listed["filings"]["recent"];
        // The report of the year that ended in September is not filed yet.
        assert_eq!(
            (&recent["reportDate"][0], &recent["form"][0], &recent["form"][1]),
            (&json!("2025-09-30"), &json!("10-K/A"), &json!("10-K"))
        );
        assert_eq!(recent["form"].as_array().unwrap().len(), 12);
        assert_eq!(list(&world, 900_001), None);
        let found = document_at("data/999999901/099999990125000001/demoa-20250930_htm.xml").unwrap();
        assert!(document(&world, found).unwrap().contains("USGovernmentMember"));
        let labels = document_at("data/999999901/099999990125000001/demoa-20250930_lab.xml").unwrap();
        assert!(document(&world, labels).unwrap().contains("U.S. Government"));
        let early = document_at("data/999999901/1/demoa-20260930_htm.xml").unwrap();
        assert_eq!(document(&world, early), None);
        assert_eq!(document(&world, document_at("data/999999903/1/democ-20250630_htm.xml").unwrap()), None);
        assert_eq!(document_at("data/900001/1/a.txt"), None);
        let rows = recipients(
            &world,
            &json!({"recipient_id": COMPANIES[0].recipient_id, "award_type_codes": ["A"], "time_period": [{"end_date": "2025-09-30"}]}),
        );
        let sum: f64 = rows.iter().map(|row| row["amount"].as_f64().unwrap()).sum();
        assert_eq!((rows.len(), sum.round()), (120, 750_000_000.0));
        assert!(rows[1]["amount"].as_f64().unwrap() < 0.0);
    }
}
