//! Turns a path, a query and a body into the bytes of an answer, with the faults of its content. Faults of the transport are in the server.

use simulated_agencies::{
    clinical_trials, cpsc, edgar, faa_drs, federal_register, fsis, nhtsa, nih_reporter, openfda, sam_exclusions, usaspending,
    uspto_trademarks,
};
use simulated_world::answer::Answer;
use simulated_world::faults::Plan;
use simulated_world::query::Query;
use simulated_world::world::{Feed, World};

use crate::{allegheny, businesses, cook, hacker_news, iowa, permits, shopify, wikimedia};

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The path as it is sent, encoded.
    pub(crate) path: &'a str,
    /// The query, encoded.
    pub(crate) query: &'a str,
    /// The body of a POST; empty for a GET.
    pub(crate) body: &'a [u8],
    /// The key that the request carries.
    pub(crate) key: Option<&'a str>,
    /// The visit of a store, for upstreams of many hosts.
    pub(crate) visit: shopify::Visit<'a>,
}

/// One endpoint of one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Allegheny(allegheny::Action),
    Business(businesses::Register),
    Cpsc,
    Edgar(edgar::Route),
    FaaDrs,
    FederalRegister,
    FederalRegisterText,
    OpenFda(Feed),
    Parcels(cook::Roll),
    Permits(permits::Register),
    Socrata,
    FlatPost,
    FlatPre,
    Fsis,
    HackerNews,
    Iowa(iowa::Route),
    NihReporter,
    SamExclusions,
    Shopify(shopify::Route),
    Trademarks(uspto_trademarks::Route),
    Trials(clinical_trials::Route),
    UsaSpending(usaspending::Route),
    Wikimedia,
}

impl Endpoint {
    pub(crate) fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/RestWebServices/Recall" => Self::Cpsc,
            "/food/enforcement.json" => Self::OpenFda(Feed::Food),
            "/drug/enforcement.json" => Self::OpenFda(Feed::Drug),
            "/device/enforcement.json" => Self::OpenFda(Feed::Device),
            "/resource/6axg-epim.json" => Self::Socrata,
            "/odi/ffdd/rcl/FLAT_RCL_POST_2010.zip" => Self::FlatPost,
            "/odi/ffdd/rcl/FLAT_RCL_PRE_2010.zip" => Self::FlatPre,
            "/fsis/api/recall/v/1" => Self::Fsis,
            nih_reporter::PATH => Self::NihReporter,
            faa_drs::PATH => Self::FaaDrs,
            federal_register::PATH => Self::FederalRegister,
            hacker_news::PATH => Self::HackerNews,
            path if federal_register::is_text(path) => Self::FederalRegisterText,
            sam_exclusions::PATH => Self::SamExclusions,
            path if wikimedia::is_list(path) => Self::Wikimedia,
            _ => {
                let edgar = || edgar::Route::at(path).map(Self::Edgar);
                let trials = || clinical_trials::Route::at(path).map(Self::Trials);
                let shopify = || shopify::Route::at(path).map(Self::Shopify);
                let trademarks = || uspto_trademarks::Route::at(path).map(Self::Trademarks);
                let business = || businesses::Register::at(path).map(Self::Business);
                let allegheny = || allegheny::Action::at(path).map(Self::Allegheny);
                let parcels = || cook::Roll::at(path).map(Self::Parcels);
                let permits = || permits::Register::at(path).map(Self::Permits);
                return edgar()
                    .or_else(business)
                    .or_else(|| iowa::Route::at(path).map(Self::Iowa))
                    .or_else(parcels)
                    .or_else(permits)
                    .or_else(allegheny)
                    .or_else(trademarks)
                    .or_else(trials)
                    .or_else(shopify)
                    .or_else(|| usaspending::Route::at(path).map(Self::UsaSpending));
            }
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Allegheny(_) => "allegheny.liens",
            Self::Business(register) => register.name(),
            Self::Cpsc => "cpsc",
            Self::Edgar(route) => route.name(),
            Self::FaaDrs => "faa_drs",
            Self::FederalRegister => "federal_register.fda",
            Self::FederalRegisterText => "federal_register.ads",
            Self::OpenFda(Feed::Drug) => "openfda.drug",
            Self::OpenFda(Feed::Device) => "openfda.device",
            Self::OpenFda(_) => "openfda.food",
            Self::Parcels(roll) => roll.name(),
            Self::Permits(register) => register.name(),
            Self::Socrata => "nhtsa.socrata",
            Self::FlatPost => "nhtsa.flat",
            Self::FlatPre => "nhtsa.flat_pre_2010",
            Self::Fsis => "fsis",
            Self::HackerNews => "hacker_news",
            Self::Iowa(_) => "sos.ia",
            Self::NihReporter => "nih_reporter",
            Self::SamExclusions => "sam_exclusions",
            Self::Shopify(_) => "shopify",
            Self::Trademarks(route) => route.name(),
            Self::Trials(_) => "clinical_trials",
            Self::UsaSpending(route) => route.name(),
            Self::Wikimedia => "wikimedia",
        }
    }

    /// The field that the schema faults change by default.
    pub(crate) fn date_field(self) -> &'static str {
        match self {
            Self::Allegheny(_) => "filing_date",
            Self::Business(register) => register.date_field(),
            Self::Cpsc => "RecallDate",
            Self::Edgar(_) => "filingDate",
            Self::FaaDrs => "drs:effectiveDate",
            Self::FederalRegister | Self::FederalRegisterText => "publication_date",
            Self::OpenFda(_) => "report_date",
            Self::Parcels(roll) => roll.date_field(),
            Self::Permits(register) => register.date_field(),
            Self::Socrata => "report_received_date",
            Self::FlatPost | Self::FlatPre => "RCDATE",
            Self::Fsis => "field_recall_date",
            Self::HackerNews => "created_at_i",
            Self::Iowa(_) => "effective_date",
            Self::NihReporter => "date_added",
            Self::SamExclusions => "Active Date",
            Self::Shopify(_) => "published_at",
            Self::Trademarks(_) => "fileName",
            Self::Trials(_) => "lastUpdatePostDateStruct",
            Self::UsaSpending(route) => route.date_field(),
            Self::Wikimedia => "views",
        }
    }

    /// Whether it is requested with POST; all others with GET.
    pub(crate) fn takes_body(self) -> bool {
        match self {
            Self::NihReporter => true,
            Self::UsaSpending(route) => route.takes_body(),
            _ => false,
        }
    }

    /// Whether consecutive answers differ without a change, for example by a build number.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::FlatPost | Self::FlatPre | Self::NihReporter)
    }
}

/// Builds the answer of an endpoint. `build` counts the answers of the endpoints whose answers differ: each flat file numbers its rows
/// again.
pub(crate) fn answer(world: &World, endpoint: Endpoint, request: Request<'_>, plan: &Plan, build: u64) -> Answer {
    let query = Query::new(request.query);
    match endpoint {
        Endpoint::Allegheny(action) => allegheny::answer(world, action, &query, plan),
        Endpoint::Business(register) => businesses::answer(world, register, &query, request.key, plan),
        Endpoint::Cpsc => cpsc::answer(world, &query, plan),
        Endpoint::Edgar(route) => edgar::answer(world, route, &query, plan),
        Endpoint::FaaDrs => faa_drs::answer(world, &query, request.key),
        Endpoint::FederalRegister => federal_register::answer(world, request.query, &query, plan),
        Endpoint::FederalRegisterText => federal_register::text(world, request.path),
        Endpoint::Parcels(roll) => cook::answer(world, roll, &query, request.key, plan),
        Endpoint::Permits(register) => permits::answer(world, register, &query, request.key, plan),
        Endpoint::OpenFda(feed) => openfda::answer(world, feed, &query, plan),
        Endpoint::Socrata => nhtsa::socrata(world, &query, plan),
        Endpoint::FlatPost => nhtsa::flat(world, true, plan, build),
        Endpoint::FlatPre => nhtsa::flat(world, false, plan, build),
        Endpoint::Fsis => fsis::answer(world, &query, plan),
        Endpoint::HackerNews => hacker_news::answer(world, &query, request.visit.at_ms, plan),
        Endpoint::Iowa(route) => iowa::answer(world, route, request.key),
        Endpoint::NihReporter => nih_reporter::answer(world, request.body, plan, build),
        Endpoint::SamExclusions => sam_exclusions::answer(world, &query, simulated_world::KEY),
        Endpoint::Shopify(route) => shopify::answer(world.seed, route, request.visit, &query),
        Endpoint::Trademarks(route) => uspto_trademarks::answer(world, route, request.path, request.key),
        Endpoint::Trials(route) => clinical_trials::answer(world, route, request.path, &query, plan),
        Endpoint::UsaSpending(route) => usaspending::answer(world, route, request.path, request.body, plan),
        Endpoint::Wikimedia => wikimedia::answer(world, request.path, request.visit.at_ms, plan),
    }
}
