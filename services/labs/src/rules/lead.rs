//! Which grants are leads, when their money is likely to be spent, and in which band their amount is.

use crate::record::{Lead, SpendWindow};
use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::grants::GrantFact;

use super::category::{CLASSIFIER, Texts};

/// Activity codes whose first letter is one of these are intramural work, fellowships and training.
const NOT_LABORATORIES: [char; 3] = ['Z', 'F', 'T'];
/// Activity codes of international training and of conferences.
const NOT_LABORATORY_CODES: [&str; 3] = ["D43", "R13", "U13"];
/// The days of the peak of spending after the first day. The number is an assumption.
const PEAK_DAYS: i64 = 90;
/// The month in which a fiscal year of the government begins.
const FISCAL_YEAR_MONTH: i8 = 10;

/// Whether a grant is a new award to a laboratory.
#[must_use]
pub fn is_lead(grant: &GrantFact) -> bool {
    let code = grant.activity_code.trim().to_ascii_uppercase();
    let mechanism = grant.mechanism.to_ascii_uppercase();
    grant.award_type == "1"
        && !code.starts_with(NOT_LABORATORIES)
        && !NOT_LABORATORY_CODES.contains(&code.as_str())
        && !mechanism.contains("INTRAMURAL")
        // `Non-SBIR/STTR` is the mechanism of all other research grants.
        && !mechanism.starts_with("SBIR")
        && !mechanism.starts_with("STTR")
        && !grant.org_type.eq_ignore_ascii_case("Domestic For-Profits")
        && grant.country.eq_ignore_ascii_case("UNITED STATES")
        && !grant.state.is_empty()
        && grant.amount.is_some_and(|amount| amount > 0)
}

/// The fiscal year of a grant: the funder's, or that of the notice of award. `None` if neither is known.
#[must_use]
pub fn fiscal_year(grant: &GrantFact) -> Option<i64> {
    grant.fiscal_year.or_else(|| {
        let day: Date = grant.notice_date.parse().ok()?;
        Some(i64::from(day.year()) + i64::from(day.month() >= FISCAL_YEAR_MONTH))
    })
}

/// Builds the lead of a grant, without its signal; `None` if the grant is no lead, or if no day says when its money can be spent.
#[must_use]
pub fn lead(id: String, grant: &GrantFact) -> Option<Lead> {
    let amount = grant.amount.filter(|_| is_lead(grant))?;
    let spend_window = spend_window(&grant.notice_date, &grant.budget_start, &grant.budget_end)?;
    let found = CLASSIFIER.classify(&Texts { title: &grant.title, terms: &grant.terms, summary: &grant.summary });
    Some(Lead {
        id,
        pi: grant.pi.clone(),
        org: grant.org.clone(),
        city: grant.city.clone(),
        state: grant.state.clone(),
        amount,
        notice_date: if grant.notice_date.is_empty() { grant.budget_start.clone() } else { grant.notice_date.clone() },
        project_number: grant.project_number.clone(),
        title: grant.title.clone(),
        activity_code: grant.activity_code.clone(),
        category: found.category,
        category_evidence: found.evidence,
        other_categories: found.others,
        signal: String::new(),
        signal_evidence: String::new(),
        spend_window,
        amount_band: amount_band(amount).to_owned(),
        url: grant.url.clone(),
        withdrawn: false,
        suppressed: false,
    })
}

/// The days in which the money is likely to be spent; `None` if neither the notice of award nor the start of the budget has a day.
#[must_use]
pub fn spend_window(notice_date: &str, budget_start: &str, budget_end: &str) -> Option<SpendWindow> {
    let day = |text: &str| text.parse::<Date>().ok();
    let from = day(notice_date).max(day(budget_start))?;
    let to = day(budget_end).filter(|end| *end >= from).or_else(|| from.checked_add(1.year()).ok()?.checked_sub(1.day()).ok());
    let to = to.unwrap_or(from);
    let peak_to = from.checked_add(PEAK_DAYS.days()).map_or(to, |peak| peak.min(to));
    Some(SpendWindow { from: from.to_string(), to: to.to_string(), peak_to: peak_to.to_string() })
}

/// The band of an amount in dollars. The lower end belongs to a band.
#[must_use]
pub fn amount_band(amount: i64) -> &'static str {
    match amount {
        ..100_000 => "<100k",
        100_000..250_000 => "100k-250k",
        250_000..500_000 => "250k-500k",
        500_000..1_000_000 => "500k-1M",
        _ => "1M+",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grant that is a lead.
    fn grant() -> GrantFact {
        GrantFact {
            award_type: "1".into(),
            activity_code: "R01".into(),
            mechanism: "Non-SBIR/STTR".into(),
            org_type: "SCHOOLS OF MEDICINE".into(),
            country: "UNITED STATES".into(),
            state: "OH".into(),
            amount: Some(1),
            notice_date: "2026-11-14".into(),
            ..GrantFact::default()
        }
    }

    /// Proves the worked examples of spend windows and amount bands.
    #[test]
    fn windows_and_bands() {
        for (notice, start, end, expected) in [
            ("2026-08-14", "2026-09-01", "2027-08-31", ("2026-09-01", "2027-08-31", "2026-11-30")),
            ("2026-10-10", "2026-09-01", "2027-08-31", ("2026-10-10", "2027-08-31", "2027-01-08")),
            ("2026-03-01", "2026-03-01", "", ("2026-03-01", "2027-02-28", "2026-05-30")),
            ("2026-03-01", "2026-03-01", "2026-02-01", ("2026-03-01", "2027-02-28", "2026-05-30")),
            ("", "2026-03-01", "2026-03-10", ("2026-03-01", "2026-03-10", "2026-03-10")),
        ] {
            let SpendWindow { from, to, peak_to } = spend_window(notice, start, end).unwrap();
            assert_eq!((from.as_str(), to.as_str(), peak_to.as_str()), expected, "{notice} {start} {end}");
        }
        assert_eq!(spend_window("", "", "2027-01-01"), None);
        let bands = [1, 99_999, 100_000, 249_999, 250_000, 499_999, 500_000, 999_999, 1_000_000].map(amount_band);
        let expected = ["<100k", "<100k", "100k-250k", "100k-250k", "250k-500k", "250k-500k", "500k-1M", "500k-1M", "1M+"];
        assert_eq!(bands, expected);
    }

    /// Proves which grants are leads: one condition broken at a time makes it none, and S10 passes.
    #[test]
    fn which_grants_are_leads() {
        type Change = fn(&mut GrantFact);
        let lead_all_the_same: [(&str, Change); 3] = [
            ("as it is", |_| {}),
            ("an instrument", |grant| grant.activity_code = "S10".into()),
            ("no investigator", |grant| grant.pi_number.clear()),
        ];
        for (name, change) in lead_all_the_same {
            let mut grant = grant();
            change(&mut grant);
            assert!(is_lead(&grant), "{name}");
        }
        let no_lead: [(&str, Change); 16] = [
            ("a continuation", |grant| grant.award_type = "5".into()),
            ("a supplement", |grant| grant.award_type = "3".into()),
            ("intramural", |grant| grant.activity_code = "ZIA".into()),
            ("a fellowship", |grant| grant.activity_code = "F31".into()),
            ("training", |grant| grant.activity_code = "T32".into()),
            ("international training", |grant| grant.activity_code = "D43".into()),
            ("a conference", |grant| grant.activity_code = "R13".into()),
            ("a conference by agreement", |grant| grant.activity_code = "U13".into()),
            ("intramural mechanism", |grant| grant.mechanism = "INTRAMURAL RESEARCH".into()),
            ("a small business", |grant| grant.mechanism = "SBIR/STTR".into()),
            ("a company", |grant| grant.org_type = "Domestic For-Profits".into()),
            ("abroad", |grant| grant.country = "CANADA".into()),
            ("no state", |grant| grant.state.clear()),
            ("no amount", |grant| grant.amount = None),
            ("nothing", |grant| grant.amount = Some(0)),
            ("no type", |grant| grant.award_type.clear()),
        ];
        for (name, change) in no_lead {
            let mut grant = grant();
            change(&mut grant);
            assert!(!is_lead(&grant) && lead(String::new(), &grant).is_none(), "{name}");
        }
    }

    /// Proves that the fiscal year begins in October where the funder gives none.
    #[test]
    fn fiscal_years() {
        let year_of = |day: &str, year| fiscal_year(&GrantFact { notice_date: day.into(), fiscal_year: year, ..GrantFact::default() });
        assert_eq!(year_of("2026-09-30", None), Some(2026));
        assert_eq!(year_of("2026-10-01", None), Some(2027));
        assert_eq!((year_of("2026-10-01", Some(2020)), year_of("", None)), (Some(2020), None));
    }
}
