//! The instance and the label file of an annual report (XBRL): facts about revenue and about customers, and what the company calls its customers.
//!
//! Every list is bounded. Facts with typed dimensions, of other units and of single days are left out: none of them is a revenue of a year.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemas::facts::company_facts::ReportedFact;
use texts::numbers::has_only_digits;

use crate::text;
use crate::xml::Element;

/// Tags of revenue.
const REVENUE: [&str; 3] = ["RevenueFromContractWithCustomerExcludingAssessedTax", "Revenues", "SalesRevenueNet"];
/// Tags of the share of a customer; the value is a fraction.
const SHARE: [&str; 2] = ["ConcentrationRiskPercentage1", "ConcentrationRiskPercentage"];
/// The dimension of customers, without its prefix, which has changed.
const CUSTOMERS: &str = "MajorCustomersAxis";
/// The most facts that are kept of a report.
const FACTS_MAX: usize = 200;
/// The longest id, tag, number or member, in bytes.
const TEXT_BYTES_MAX: usize = 200;
/// The longest labels of a customer, in characters.
const LABEL_CHARS_MAX: usize = 300;
/// The most dimensions of a context.
const DIMENSIONS_MAX: usize = 8;

/// What an instance says.
#[derive(Debug, Default)]
pub(super) struct Instance {
    /// The fiscal year as the report names it.
    pub(super) fiscal_year: Option<i64>,
    /// Last day of the fiscal year, `YYYY-MM-DD`; empty if it is not named.
    pub(super) period_end: String,
    /// The facts, each once.
    pub(super) facts: Vec<ReportedFact>,
    /// How many facts were left out, since there are more than are kept.
    pub(super) left_out: i64,
    /// Whether a fact names a customer.
    pub(super) has_customers: bool,
}

/// When and of what a fact is.
struct Context {
    start: String,
    end: String,
    dimensions: Vec<String>,
}

impl Instance {
    /// Reads an instance.
    ///
    /// # Errors
    /// Why it is none.
    pub(super) fn read(source: &str) -> Result<Self, String> {
        let root = Element::parse(source)?;
        if root.name != "xbrl" {
            return Err(format!("the root element is {} instead of xbrl", text::cut(root.name, 60)));
        }
        let contexts: HashMap<&str, Context> =
            root.all("context").filter_map(|context| Some((id_of(context)?, context_of(context)?))).collect();
        let units: HashMap<&str, String> = root.all("unit").filter_map(|unit| Some((id_of(unit)?, unit_of(unit)?))).collect();
        let (mut out, mut seen) = (Self::default(), HashSet::new());
        for element in &root.children {
            match element.name.as_str() {
                "DocumentFiscalYearFocus" => {
                    let year = element.raw_text().trim().parse().ok().filter(|year: &i64| (2000..=2100).contains(year));
                    out.fiscal_year = out.fiscal_year.or(year);
                }
                "DocumentPeriodEndDate" if out.period_end.is_empty() => {
                    out.period_end = text::date(element.raw_text().trim()).map(|day| day.to_string()).unwrap_or_default();
                }
                name if REVENUE.contains(&name) || SHARE.contains(&name) => {
                    let Some(fact) = fact_of(element, source, &contexts, &units) else { continue };
                    if !seen.insert((fact.context.clone(), fact.tag.clone(), fact.value.clone())) {
                        continue;
                    }
                    if out.facts.len() == FACTS_MAX {
                        out.left_out += 1;
                        continue;
                    }
                    out.has_customers |= fact.dimensions.contains(CUSTOMERS);
                    out.facts.push(fact);
                }
                _ => {}
            }
        }
        Ok(out)
    }
}

fn id_of(element: &Element) -> Option<&str> {
    Some(element.attribute("id")).filter(|id| !id.is_empty() && id.len() <= TEXT_BYTES_MAX)
}

/// The context of a span of days; `None` for one of a single day, or with a typed dimension.
fn context_of(element: &Element) -> Option<Context> {
    let day = |path: &str| text::date(&element.text(path)).map(|day| day.to_string());
    let (start, end) = (day("period/startDate")?, day("period/endDate")?);
    let mut dimensions = Vec::new();
    for part in ["entity/segment", "scenario"].iter().filter_map(|path| element.at(path)) {
        for member in &part.children {
            let (axis, value) = (member.attribute("dimension"), member.raw_text().trim());
            let is_plain = |text: &str| !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.contains([' ', '=']);
            if member.name != "explicitMember" || !is_plain(axis) || !is_plain(value) {
                return None;
            }
            dimensions.push(format!("{axis}={value}"));
        }
    }
    dimensions.sort();
    (dimensions.len() <= DIMENSIONS_MAX).then_some(Context { start, end, dimensions })
}

/// The measure of a unit without its prefix; `None` for a quotient.
fn unit_of(element: &Element) -> Option<String> {
    let measure = element.text("measure");
    let plain = measure.rsplit(':').next().unwrap_or_default();
    (!plain.is_empty() && plain.len() <= TEXT_BYTES_MAX).then(|| plain.to_owned())
}

/// A fact about revenue or a share; `None` for one without a value, and for a revenue by anything but customers.
fn fact_of(element: &Element, source: &str, contexts: &HashMap<&str, Context>, units: &HashMap<&str, String>) -> Option<ReportedFact> {
    let context_id = element.attribute("contextRef");
    let context = contexts.get(context_id)?;
    let unit = units.get(element.attribute("unitRef"))?;
    let value = element.raw_text().trim();
    let is_share = SHARE.contains(&element.name.as_str());
    let has_customer = context.dimensions.iter().any(|pair| pair.split('=').next().is_some_and(|axis| axis.ends_with(CUSTOMERS)));
    if !is_decimal(value) || !(is_share || context.dimensions.is_empty() || has_customer) {
        return None;
    }
    Some(ReportedFact {
        context: context_id.to_owned(),
        start: context.start.clone(),
        end: context.end.clone(),
        tag: tag_of(element, source),
        value: value.to_owned(),
        unit: unit.clone(),
        dimensions: context.dimensions.join(" "),
        label: String::new(),
    })
}

/// The name of an element with its prefix, as the document has it.
fn tag_of(element: &Element, source: &str) -> String {
    let start = source.get(element.span.start..).and_then(|rest| rest.strip_prefix('<')).unwrap_or_default();
    let name = start.split(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).next().unwrap_or_default();
    if name.len() <= TEXT_BYTES_MAX { name.to_owned() } else { element.name.clone() }
}

/// Whether a text is a decimal number.
fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| part.len() <= 18 && has_only_digits(part);
    is_number(whole) && is_number(fraction)
}

/// Reads the labels of a label file, by member in the form `ba_USGovernmentContractsMember`; several labels of one are joined.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn labels(source: &str) -> Result<BTreeMap<String, String>, String> {
    let root = Element::parse(source)?;
    let (mut located, mut arcs, mut texts) = (HashMap::new(), Vec::new(), HashMap::<&str, Vec<String>>::new());
    let links = if root.name == "labelLink" { vec![&root] } else { root.all("labelLink").collect() };
    for element in links.into_iter().flat_map(|link| &link.children) {
        match element.name.as_str() {
            "loc" => drop(located.insert(element.attribute("label"), element.attribute("href").rsplit('#').next().unwrap_or_default())),
            "labelArc" => arcs.push((element.attribute("from"), element.attribute("to"))),
            // The documentation is a sentence about the member, not its name.
            "label" if !element.attribute("role").ends_with("/documentation") => {
                texts.entry(element.attribute("label")).or_default().push(text::clean(element.raw_text()));
            }
            _ => {}
        }
    }
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (from, to) in arcs {
        if let (Some(member), Some(texts)) = (located.get(from), texts.get(to)) {
            out.entry((*member).to_owned()).or_default().extend(texts.iter().filter(|text| !text.is_empty()).cloned());
        }
    }
    Ok(out.into_iter().map(|(member, texts)| (member, text::cut(text::join_distinct(texts, " | "), LABEL_CHARS_MAX))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANCE: &str = r#"<?xml version="1.0"?><xbrl xmlns="http://www.xbrl.org/2003/instance" xmlns:us-gaap="g" xmlns:dei="d" xmlns:xbrldi="x">
        <context id="y"><entity><identifier>1</identifier></entity><period><startDate>2021-01-01</startDate><endDate>2021-12-31</endDate></period></context>
        <context id="g"><entity><identifier>1</identifier><segment>
            <xbrldi:explicitMember dimension="srt:MajorCustomersAxis">ba:USGovernmentContractsMember</xbrldi:explicitMember></segment></entity>
            <period><startDate>2021-01-01</startDate><endDate>2021-12-31</endDate></period></context>
        <context id="p"><entity><identifier>1</identifier><segment>
            <xbrldi:explicitMember dimension="srt:ProductOrServiceAxis">us-gaap:ProductMember</xbrldi:explicitMember></segment></entity>
            <period><startDate>2021-01-01</startDate><endDate>2021-12-31</endDate></period></context>
        <context id="t"><entity><identifier>1</identifier><segment>
            <xbrldi:typedMember dimension="srt:MajorCustomersAxis"><a>x</a></xbrldi:typedMember></segment></entity>
            <period><startDate>2021-01-01</startDate><endDate>2021-12-31</endDate></period></context>
        <context id="i"><entity><identifier>1</identifier></entity><period><instant>2021-12-31</instant></period></context>
        <unit id="usd"><measure>iso4217:USD</measure></unit><unit id="number"><measure>xbrli:pure</measure></unit>
        <unit id="q"><divide><unitNumerator><measure>iso4217:USD</measure></unitNumerator></divide></unit>
        <dei:DocumentFiscalYearFocus contextRef="y">2021</dei:DocumentFiscalYearFocus>
        <dei:DocumentPeriodEndDate contextRef="y">2021-12-31</dei:DocumentPeriodEndDate>
        <us-gaap:Revenues contextRef="y" unitRef="usd" decimals="-6">62286000000</us-gaap:Revenues>
        <us-gaap:Revenues contextRef="y" unitRef="usd" decimals="-6">62286000000</us-gaap:Revenues>
        <us-gaap:Revenues contextRef="g" unitRef="usd">30478000000</us-gaap:Revenues>
        <us-gaap:Revenues contextRef="p" unitRef="usd">1</us-gaap:Revenues>
        <us-gaap:Revenues contextRef="t" unitRef="usd">2</us-gaap:Revenues>
        <us-gaap:Revenues contextRef="i" unitRef="usd">3</us-gaap:Revenues>
        <us-gaap:Revenues contextRef="y" unitRef="q">4</us-gaap:Revenues>
        <us-gaap:Revenues contextRef="y" unitRef="usd" xsi:nil="true"/>
        <us-gaap:Revenues contextRef="y" unitRef="usd">5e9</us-gaap:Revenues>
        <us-gaap:ConcentrationRiskPercentage1 contextRef="p" unitRef="number" decimals="2">0.44</us-gaap:ConcentrationRiskPercentage1>
        <us-gaap:Assets contextRef="y" unitRef="usd">6</us-gaap:Assets></xbrl>"#;

    /// Proves which facts of an instance are kept: those of spans of days, without a dimension or of a customer, with a number and a plain unit, each once.
    #[test]
    fn instances() {
        let read = Instance::read(INSTANCE).unwrap();
        assert_eq!((read.fiscal_year, read.period_end.as_str(), read.left_out, read.has_customers), (Some(2021), "2021-12-31", 0, true));
        let facts: Vec<_> = read.facts.iter().map(|fact| (fact.tag.as_str(), fact.value.as_str(), fact.unit.as_str())).collect();
        assert_eq!(
            facts,
            [
                ("us-gaap:Revenues", "62286000000", "USD"),
                ("us-gaap:Revenues", "30478000000", "USD"),
                ("us-gaap:ConcentrationRiskPercentage1", "0.44", "pure")
            ]
        );
        assert_eq!(read.facts[1].dimensions, "srt:MajorCustomersAxis=ba:USGovernmentContractsMember");
        assert_eq!((read.facts[1].start.as_str(), read.facts[1].end.as_str()), ("2021-01-01", "2021-12-31"));
    }

    /// Proves that what is no instance is refused with the reason.
    #[test]
    fn refused() {
        for (source, reason) in [("<html/>", "html instead of xbrl"), ("<xbrl><a></xbrl>", "not well formed"), ("", "no element")] {
            let error = Instance::read(source).unwrap_err();
            assert!(error.contains(reason), "{source}: {error}");
        }
    }

    /// Proves that facts beyond the limit are counted.
    #[test]
    fn many_facts() {
        let one = |n: usize| format!(r#"<us-gaap:Revenues contextRef="y" unitRef="usd">{n}</us-gaap:Revenues>"#);
        let more: String = (0..FACTS_MAX).map(one).collect();
        let read = Instance::read(&INSTANCE.replace("<us-gaap:Assets", &format!("{more}<us-gaap:Assets"))).unwrap();
        assert_eq!((read.facts.len(), read.left_out), (FACTS_MAX, 3));
    }

    /// Proves that a member has its labels through locator and arc, without documentation.
    #[test]
    fn labels_of_members() {
        let source = r##"<link:linkbase xmlns:link="l" xmlns:xlink="x"><link:labelLink>
            <link:loc xlink:type="locator" xlink:label="loc_1" xlink:href="ba-20221231.xsd#ba_USGovernmentContractsMember"/>
            <link:label xlink:label="lab_1" xlink:role="http://www.xbrl.org/2003/role/terseLabel">U.S. government contracts</link:label>
            <link:label xlink:label="lab_1" xlink:role="http://www.xbrl.org/2003/role/verboseLabel">Revenue from the U.S. government</link:label>
            <link:label xlink:label="lab_1" xlink:role="http://www.xbrl.org/2003/role/documentation">Sentence</link:label>
            <link:labelArc xlink:from="loc_1" xlink:to="lab_1"/></link:labelLink></link:linkbase>"##;
        let expected = "U.S. government contracts | Revenue from the U.S. government";
        assert_eq!(labels(source).unwrap(), BTreeMap::from([("ba_USGovernmentContractsMember".to_owned(), expected.to_owned())]));
        assert!(labels("<a").is_err());
    }
}
