//! Which facts of an annual report are its revenue, and its revenue from the government.
//!
//! Companies name their customers themselves, so the government is found by the words of a customer's name and labels. A share of receivables is no share
//! of revenue, and a customer without a name is none that can be found.

use jiff::civil::Date;
use schemas::facts::company_facts::ReportedFact;

use crate::record::CustomerPart;

/// Tags of revenue, in the order in which they are tried.
const REVENUE: [&str; 3] = ["us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax", "us-gaap:Revenues", "us-gaap:SalesRevenueNet"];
/// Tags of a share.
const SHARE: [&str; 2] = ["us-gaap:ConcentrationRiskPercentage1", "us-gaap:ConcentrationRiskPercentage"];
/// How many days a fiscal year has, also one of 52 or 53 weeks.
const YEAR_DAYS: std::ops::RangeInclusive<i32> = 350..=380;
/// The type of risk that is about contracts of the government.
const GOVERNMENT_RISK: &str = "GovernmentContractsConcentrationRiskMember";
/// The part of a whole, for shares.
const MILLIONTHS: i128 = 1_000_000;
/// The most further facts that are shown.
const PARTS_MAX: usize = 10;
/// Words of a customer that is the government of the United States, between blanks and in lower case.
const GOVERNMENT: [&str; 13] = [
    " government ",
    " governments ",
    " governmental ",
    " federal ",
    " defense ",
    " dod ",
    " do d ",
    " nasa ",
    " army ",
    " navy ",
    " air force ",
    " homeland security ",
    " marine corps ",
];
/// Words of customers that are not.
const OTHERS: [&str; 8] =
    [" foreign ", " international ", " state and local ", " state local ", " commercial ", " non us ", " non u s ", " treasury "];
/// Words that leave out other governments; they do not make a customer another one.
const EXCLUDED: [&str; 2] = [" excluding foreign military sales ", " excluding foreign "];
/// Words by which a customer is the government of the United States and no other.
const OF_THE_US: [&str; 11] = [
    " us ",
    " u s ",
    " united states ",
    " federal ",
    " dod ",
    " do d ",
    " nasa ",
    " department of defense ",
    " army ",
    " navy ",
    " air force ",
];

/// What the facts of a report say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) revenue_cents: Option<i64>,
    pub(super) revenue_tag: String,
    pub(super) government: Option<Government>,
    /// Further facts about the government, the largest first.
    pub(super) parts: Vec<CustomerPart>,
}

/// The fact that is the revenue from the government.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Government {
    pub(super) cents: i64,
    /// The share that the report states instead of an amount.
    pub(super) share_millionths: Option<i64>,
    pub(super) member: String,
    pub(super) label: String,
    pub(super) tag: String,
    pub(super) context: String,
}

/// Selects the facts of the year that ends on a day.
pub(super) fn select(facts: &[ReportedFact], period_end: &str) -> Selected {
    let annual: Vec<&ReportedFact> = facts.iter().filter(|fact| is_annual(fact, period_end)).collect();
    let mut out = Selected::default();
    for tag in REVENUE {
        let plain = annual.iter().filter(|fact| fact.tag == tag && fact.dimensions.is_empty() && fact.unit == "USD");
        if let Some(cents) = plain.filter_map(|fact| cents(&fact.value)).max() {
            (out.revenue_cents, out.revenue_tag) = (Some(cents), tag.to_owned());
            break;
        }
    }
    let mut found: Vec<Government> = annual.iter().filter_map(|fact| amount(fact)).collect();
    if found.is_empty() {
        let revenue = out.revenue_cents.unwrap_or_default();
        found = annual.iter().filter_map(|fact| share(fact, revenue)).collect();
    }
    // More than the whole is not a part of it.
    found.retain(|one| out.revenue_cents.is_none_or(|revenue| one.cents <= revenue));
    found.sort_by(|one, other| (other.cents, &one.member, &one.context).cmp(&(one.cents, &other.member, &other.context)));
    found.dedup_by(|one, other| one.cents == other.cents && one.member == other.member);
    let mut found = found.into_iter();
    out.government = found.next();
    let part = |one: Government| CustomerPart { member: one.member, label: one.label, cents: one.cents };
    out.parts = found.map(part).take(PARTS_MAX).collect();
    out
}

/// Whether a fact is about the fiscal year that ends on a day.
fn is_annual(fact: &ReportedFact, period_end: &str) -> bool {
    let days = |start: &str, end: &str| Some((end.parse::<Date>().ok()? - start.parse::<Date>().ok()?).get_days() + 1);
    fact.end == period_end && days(&fact.start, &fact.end).is_some_and(|days| YEAR_DAYS.contains(&days))
}

/// The name of an axis or a member without its prefix.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or_default()
}

/// The revenue from the government that a fact states as an amount: its only dimension is the customer, or it is limited to the operating segments.
fn amount(fact: &ReportedFact) -> Option<Government> {
    if !REVENUE.contains(&fact.tag.as_str()) || fact.unit != "USD" {
        return None;
    }
    let mut customer = None;
    for (axis, member) in fact.dimensions() {
        match local(axis) {
            "MajorCustomersAxis" if customer.is_none() => customer = Some(member),
            "ConsolidationItemsAxis" if local(member) == "OperatingSegmentsMember" => {}
            _ => return None,
        }
    }
    let member = customer.filter(|member| is_government(member, &fact.label))?;
    Some(Government { cents: cents(&fact.value)?, share_millionths: None, ..of_fact(fact, member) })
}

/// The revenue from the government that a fact states as a share of revenue.
fn share(fact: &ReportedFact, revenue_cents: i64) -> Option<Government> {
    if !SHARE.contains(&fact.tag.as_str()) || fact.unit != "pure" {
        return None;
    }
    let (mut customer, mut is_of_revenue, mut is_risk) = (None, false, false);
    for (axis, member) in fact.dimensions() {
        let name = local(member);
        match local(axis) {
            "MajorCustomersAxis" if customer.is_none() => customer = Some(member),
            "ConcentrationRiskByBenchmarkAxis" => {
                is_of_revenue = ["Revenue", "Sales"].iter().any(|word| name.contains(word)) && !name.contains("Receivable")
            }
            "ConcentrationRiskByTypeAxis" => is_risk = name == GOVERNMENT_RISK,
            _ => return None,
        }
    }
    let member = match customer {
        // A risk by contracts of the government that is about another customer is not the government's share.
        Some(member) => Some(member).filter(|member| is_government(member, &fact.label))?,
        None if is_risk => GOVERNMENT_RISK,
        None => return None,
    };
    let millionths = decimal(&fact.value, 6).filter(|millionths| is_of_revenue && (0..=MILLIONTHS).contains(millionths))?;
    let cents = (i128::from(revenue_cents) * millionths + MILLIONTHS / 2) / MILLIONTHS;
    let cents = i64::try_from(cents).ok().filter(|cents| *cents > 0)?;
    Some(Government { cents, share_millionths: i64::try_from(millionths).ok(), ..of_fact(fact, member) })
}

fn of_fact(fact: &ReportedFact, member: &str) -> Government {
    Government {
        member: member.to_owned(),
        label: fact.label.clone(),
        tag: fact.tag.clone(),
        context: fact.context.clone(),
        ..Government::default()
    }
}

/// The words of a member and of its labels, in lower case and between blanks.
fn words(member: &str, label: &str) -> String {
    let name = local(member).strip_suffix("Member").unwrap_or(local(member));
    let mut out = String::from(" ");
    let signs: Vec<char> = name.chars().collect();
    for (at, sign) in signs.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| signs.get(before));
        let is_next_small = signs.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins = sign.is_uppercase() && before.is_some_and(|before| !before.is_uppercase() || is_next_small);
        if begins {
            out.push(' ');
        }
        out.extend(sign.to_lowercase());
    }
    out.push(' ');
    out.extend(label.chars().flat_map(char::to_lowercase));
    out.push(' ');
    let plain: String = out.chars().map(|sign| if sign.is_alphanumeric() { sign } else { ' ' }).collect();
    format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Whether a customer is the government, by the words of its name and of its labels.
fn is_government(member: &str, label: &str) -> bool {
    let mut words = words(member, label);
    for phrase in EXCLUDED {
        words = words.replace(phrase, " ");
    }
    GOVERNMENT.iter().any(|word| words.contains(word)) && !OTHERS.iter().any(|word| words.contains(word))
}

/// Whether the words of a customer say that it is the government of the United States and not governments in general.
#[must_use]
pub(crate) fn names_the_us(member: &str, label: &str) -> bool {
    let words = words(member, label);
    local(member) == GOVERNMENT_RISK || OF_THE_US.iter().any(|word| words.contains(word))
}

/// A decimal number with so many digits after the point; further digits are cut. `None` for a number that is too large.
fn decimal(text: &str, digits: usize) -> Option<i128> {
    let (is_negative, number) = text.strip_prefix('-').map_or((false, text), |number| (true, number));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 16 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let value: i128 = format!("{whole}{:0<digits$}", fraction.get(..digits).unwrap_or(fraction)).parse().ok()?;
    Some(if is_negative { -value } else { value })
}

/// An amount in US cents.
fn cents(text: &str) -> Option<i64> {
    i64::try_from(decimal(text, 2)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = "2022-12-31";

    fn fact(tag: &str, value: &str, dimensions: &str) -> ReportedFact {
        let is_share = tag.starts_with("Concentration");
        ReportedFact {
            context: format!("c-{value}"),
            start: "2022-01-01".into(),
            end: END.into(),
            tag: format!("us-gaap:{tag}"),
            value: value.into(),
            unit: if is_share { "pure" } else { "USD" }.into(),
            dimensions: dimensions.into(),
            label: String::new(),
        }
    }

    /// Proves which customers are the government, by name and by label.
    #[test]
    fn government_customers() {
        for (member, label, is) in [
            ("ba:USGovernmentContractsMember", "Revenue from the U.S. government", true),
            ("ba:GovernmentCustomersMember", "Government", true),
            ("x:USGovernmentMember", "", true),
            ("x:DepartmentOfDefenseMember", "", true),
            ("x:DoDMember", "", true),
            ("x:NASAMember", "", true),
            ("x:CustomerAMember", "U.S. Army", true),
            ("x:USGovernmentSalesExcludingForeignMilitarySalesMember", "", true),
            ("x:ForeignMilitarySalesThroughTheUSGovernmentMember", "", false),
            ("x:ForeignGovernmentMember", "", false),
            ("x:StateAndLocalGovernmentMember", "", false),
            ("x:InternationalGovernmentsMember", "", false),
            ("x:CommercialCustomersMember", "", false),
            ("x:NonUSGovernmentMember", "", false),
            ("us-gaap:USTreasuryAndGovernmentMember", "", false),
            ("x:CustomerAMember", "", false),
            ("x:FederationMember", "", false),
        ] {
            assert_eq!(is_government(member, label), is, "{member} {label}: {}", words(member, label));
        }
        assert!(names_the_us("ba:USGovernmentContractsMember", "") && names_the_us("x:AMember", "U.S. Navy"));
        assert!(!names_the_us("ba:GovernmentCustomersMember", "Government"));
    }

    const GOVERNMENT: &str = "srt:MajorCustomersAxis=ba:USGovernmentContractsMember";

    /// Proves that the largest amount of a government customer that is not above the revenue is taken, that the others are parts, and that an amount with
    /// another dimension, another year or another length is none.
    #[test]
    fn amounts() {
        let segment = format!("srt:ConsolidationItemsAxis=us-gaap:OperatingSegmentsMember {GOVERNMENT}");
        let facts = [
            fact("Revenues", "66608000000", ""),
            fact("Revenues", "30478000000", &segment),
            fact("Revenues", "99999000000", GOVERNMENT),
            fact("Revenues", "5000000000.125", "srt:MajorCustomersAxis=ba:NASAMember"),
            fact("Revenues", "40000000000", &format!("{GOVERNMENT} us-gaap:StatementBusinessSegmentsAxis=ba:DefenseMember")),
            fact("Revenues", "41000000000", "srt:MajorCustomersAxis=ba:AirlinesMember"),
            ReportedFact { end: "2021-12-31".into(), start: "2021-01-01".into(), ..fact("Revenues", "42000000000", GOVERNMENT) },
            ReportedFact { start: "2022-10-01".into(), ..fact("Revenues", "43000000000", GOVERNMENT) },
            fact(
                "ConcentrationRiskPercentage1",
                "0.99",
                &format!("{GOVERNMENT} us-gaap:ConcentrationRiskByBenchmarkAxis=us-gaap:SalesRevenueNetMember"),
            ),
        ];
        let found = select(&facts, END);
        assert_eq!((found.revenue_cents, found.revenue_tag.as_str()), (Some(6_660_800_000_000), "us-gaap:Revenues"));
        let government = found.government.unwrap();
        assert_eq!((government.cents, government.share_millionths), (3_047_800_000_000, None));
        assert_eq!((government.member.as_str(), government.context.as_str()), ("ba:USGovernmentContractsMember", "c-30478000000"));
        assert_eq!(found.parts.iter().map(|part| part.cents).collect::<Vec<_>>(), [500_000_000_012]);
    }

    /// Proves that a share of revenue of the government counts where no amount does, and that a share of receivables and of an unnamed customer does not.
    #[test]
    fn shares() {
        let revenue = fact("SalesRevenueNet", "1000000.01", "");
        let selected = |dimensions: &str, value: &str| {
            select(&[revenue.clone(), fact("ConcentrationRiskPercentage1", value, dimensions)], END).government
        };
        let (sales, risk) = (
            "us-gaap:ConcentrationRiskByBenchmarkAxis=us-gaap:SalesRevenueNetMember",
            "us-gaap:ConcentrationRiskByTypeAxis=us-gaap:GovernmentContractsConcentrationRiskMember",
        );
        let found = selected(&format!("{sales} {risk}"), "0.44").unwrap();
        assert_eq!((found.cents, found.share_millionths), (44_000_000, Some(440_000)));
        assert_eq!(found.member, GOVERNMENT_RISK);
        assert!(
            selected(&format!("{GOVERNMENT} {sales} us-gaap:ConcentrationRiskByTypeAxis=us-gaap:CustomerConcentrationRiskMember"), "0.44")
                .is_some()
        );
        for (dimensions, value) in [
            (format!("us-gaap:ConcentrationRiskByBenchmarkAxis=us-gaap:AccountsReceivableMember {risk}"), "0.44"),
            (
                format!(
                    "srt:MajorCustomersAxis=aapl:CustomerOneMember {sales} us-gaap:ConcentrationRiskByTypeAxis=us-gaap:CreditConcentrationRiskMember"
                ),
                "0.44",
            ),
            (format!("srt:MajorCustomersAxis=aapl:CustomerOneMember {sales} {risk}"), "0.44"),
            (format!("{sales} {risk} srt:ProductOrServiceAxis=x:AMember"), "0.44"),
            (risk.to_owned(), "0.44"),
            (format!("{sales} {risk}"), "44"),
            (format!("{sales} {risk}"), "0"),
        ] {
            assert_eq!(selected(&dimensions, value), None, "{dimensions} {value}");
        }
        assert_eq!(select(&[], END), Selected::default());
    }

    /// Proves which tag is the revenue, and that years of 52 and 53 weeks are years.
    #[test]
    fn revenue() {
        let contract = fact("RevenueFromContractWithCustomerExcludingAssessedTax", "5", "");
        assert_eq!(select(&[fact("Revenues", "7", ""), contract.clone()], END).revenue_cents, Some(500));
        for (start, is_year) in
            [("2022-01-02", true), ("2021-12-26", true), ("2022-01-16", true), ("2022-01-17", false), ("2021-12-16", false)]
        {
            let found = select(&[ReportedFact { start: start.into(), ..contract.clone() }], END);
            assert_eq!(found.revenue_cents.is_some(), is_year, "{start}");
        }
    }
}
