//! The tool `county_coverage`: which counties are covered, from which datasets, by which method, and how dense the signal is.

use crate::record::TABLES;
use futures_util::future::try_join_all;
use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::{allegheny, cook};

use super::DISCLAIMER;
use super::filter::Filter;
use super::watchable_feed::Parcels;
use reads::last_run::last_run;
use reads::read::{Read, Reader};

/// The streams of Cook County.
const COOK_STREAMS: &[&str] = &[
    "chicago.permits",
    "cook.addresses",
    "cook.appeals",
    "cook.exempt",
    "cook.permits",
    "cook.ptaxsim",
    "cook.sales",
    "cook.universe",
    "cook.values",
];
/// The stream that reads a file of the operator. Without the file it reads nothing, and earlier positions have no run of it.
const OF_A_FILE: &str = "cook.ptaxsim";
/// The streams of Allegheny County.
const ALLEGHENY_STREAMS: &[&str] = &["allegheny.assessments", "allegheny.liens", "allegheny.pli", "allegheny.sales"];

/// Arguments of `county_coverage`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The counties that are covered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CountyCoverage")]
pub struct Coverage {
    /// The counties.
    pub counties: Vec<County>,
    /// What the answers are not.
    pub disclaimer: &'static str,
}

/// A county.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoveredCounty")]
pub struct County {
    /// The county, as other operations name it.
    pub county: &'static str,
    /// The name of the county.
    pub name: &'static str,
    /// The streams that are read.
    pub streams: &'static [&'static str],
    /// Who buys the leads.
    pub buyers: &'static str,
    /// How parcels are compared.
    pub methodology: &'static str,
    /// How many parcels can be compared, and why others cannot.
    pub density: &'static str,
    /// Under which terms the data is published.
    pub licence: &'static str,
    /// The last day up to which all streams but `cook.ptaxsim` were read completely; empty before the first sync run of each.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = Coverage;

    fn definition() -> Definition {
        Definition {
            name: "county_coverage",
            summary: "The counties that are covered: datasets, buyers, method, how dense the signal is, and up to which day each was read.",
            when: "Use it to learn what the service covers before you pay.",
            description: "`throughDate` is the last day up to which all streams of the county but `cook.ptaxsim` were read completely.",
            list: "counties",
            surface: Surface::Tool,
            example: json!({}),
            ..Definition::read()
        }
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Parcels>) -> Result<Coverage, Problem> {
        let mut counties = vec![COOK, ALLEGHENY];
        for county in &mut counties {
            county.through_date = through_date(reader, county.streams).await?;
        }
        Ok(Coverage { counties, disclaimer: DISCLAIMER })
    }
}

/// The last day up to which all of some streams were read completely, but for that of a file; empty before the first sync run of each.
async fn through_date(reader: &Reader<Parcels>, streams: &[&str]) -> Result<String, Problem> {
    let streams = streams.iter().filter(|stream| **stream != OF_A_FILE);
    let runs = try_join_all(streams.map(|stream| last_run(&reader.at, &TABLES, stream))).await?;
    let days: Option<Vec<String>> = runs.into_iter().map(|run| run.map(|run| run.through_date)).collect();
    Ok(days.and_then(|days| days.into_iter().min()).unwrap_or_default())
}

const COOK: County = County {
    county: cook::COUNTY,
    name: "Cook County, Illinois",
    streams: COOK_STREAMS,
    buyers: "firms for appeals of property tax, owners of commercial property, construction lenders and insurers, and sureties",
    methodology: "The assessed value at the last stage, divided by the level of its class and by the price of the parcel's own arm's-length sale since 3 years \
        before the year of assessment, against the median of sold parcels of its class in its neighbourhood, or in its township where those are fewer than \
        30. Sales below 10,000 dollars, of several parcels, within 365 days, by quit-claim or executor deed, and 5 percent at each end do not count. \
        Permits: the window of construction begins with the issue and has the median months until the assessed value of the building rises, of finished projects \
        of the job code, or 24 where fewer than 30 are finished. Exemptions: by the file PTAXSIM, where this \
        server reads it, rule X4 says what the record shows; without it no parcel is flagged, since homeowner exemptions are in \
        no open table. The table of exempt parcels is read for the reasons of a parcel, which say whether it has it.",
    density: "Only parcels with a sale of their own can be compared, since no table that is read has floor areas: a few percent of them in a year. \
        Classes 6 to 9 have a level that depends on an agreement and are not compared. Permits for which no parcel is published are in no list. A rise of the value \
        of a building is seen once a year at most, and a general reassessment also raises values.",
    licence: "Open data of the Cook County Assessor's Office, without a stated licence, and of the City of Chicago under its terms of use",
    through_date: String::new(),
};

const ALLEGHENY: County = County {
    county: allegheny::COUNTY,
    name: "Allegheny County, Pennsylvania",
    streams: ALLEGHENY_STREAMS,
    buyers: "buyers of tax liens, title companies, lenders, and firms for appeals of property tax",
    methodology: "Over-assessment: the value of the base year 2012, divided by the price of the parcel's own valid sale since 3 years before the tax year, \
        against the median of sold parcels of its use in its municipality or ward, of at least 30. The ratio to the peers alone counts, never that to 1. \
        Without such a sale: the value per square foot of finished living area, against the median of the same peers, of which 30 need a floor area. \
        Exemptions: rules X1 to X6 say what the record shows next to a homestead exclusion or an exempt tax code. Liens: the status follows from the \
        entries of each docket. A satisfaction for one taxing body leaves the lien to the others, with an unknown amount; a satisfaction that a later \
        entry hides counts; a lien that is open 20 years after it was filed is to be reviewed. Permits of the City of Pittsburgh are recorded and are \
        in no list of windows.",
    density: "584,999 parcels, and 503,747 sales, of which those of 5 years are read. Floor areas are those of homes, and unknown for parcels with several \
        buildings. No owner is named. About one million liens since 1995. About one in a hundred has no PIN, and is listed \
        with the parcels that its block and lot can mean. Interest, costs and the effects of sales are not published.",
    licence: "Western Pennsylvania Regional Data Center (WPRDC), Creative Commons CC0 or CC-BY by table",
    through_date: String::new(),
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the streams that are named are those of the upstream.
    #[test]
    fn streams_exist() {
        let streams_of = |upstream: &str| upstreams::by_name(upstream).unwrap().manifest().streams.iter().map(|stream| stream.name);
        let mut streams: Vec<&str> = streams_of("chicago").chain(streams_of("cook")).collect();
        streams.sort_unstable();
        assert_eq!(streams, COOK_STREAMS);
        assert!(streams.contains(&OF_A_FILE));
        let mut streams: Vec<&str> = streams_of("allegheny").collect();
        streams.sort_unstable();
        assert_eq!(streams, ALLEGHENY_STREAMS);
    }

    /// Proves that each county names the publisher whose licence holds, its buyers, its method with what is said of exemptions, and how dense the signal is.
    #[test]
    fn counties_name_licence_and_method() {
        for (county, publisher) in [(COOK, "Cook County Assessor"), (ALLEGHENY, "WPRDC")] {
            assert!(county.licence.contains(publisher) && county.methodology.contains("Exemptions: "), "{}", county.name);
            assert!(!county.buyers.is_empty() && !county.density.is_empty(), "{}", county.name);
        }
    }
}
