//! From a path, a query and a body to the bytes of an answer, with the faults of its content; those of its transport are the server's.

use crate::faults::Plan;
use crate::query::Query;
use crate::world::{Feed, World};
use crate::{clinical_trials, cpsc, edgar, fsis, nhtsa, nih_reporter, openfda, usaspending};

/// An answer as an upstream would give it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The media type, if one is named.
    pub content_type: Option<&'static str>,
    /// The `Link` header.
    pub link: Option<String>,
    /// The `ETag` header.
    pub etag: Option<String>,
    /// The `Last-Modified` header.
    pub last_modified: Option<String>,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(body: Vec<u8>) -> Self {
        Self { status: 200, content_type: Some("application/json; charset=utf-8"), body, ..Self::default() }
    }

    pub(crate) fn html(status: u16, words: &str) -> Self {
        let body = format!("<!DOCTYPE html>\n<html><head><title>{words}</title></head><body><h1>{words}</h1></body></html>\n").into_bytes();
        Self { status, content_type: Some("text/html; charset=utf-8"), body, ..Self::default() }
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// As it is sent, encoded.
    pub(crate) path: &'a str,
    /// Encoded.
    pub(crate) query: &'a str,
    /// The body of a POST; empty for a GET.
    pub(crate) body: &'a [u8],
}

/// One path of one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Cpsc,
    Edgar(edgar::Ask),
    OpenFda(Feed),
    Socrata,
    FlatPost,
    FlatPre,
    Fsis,
    NihReporter,
    Trials(clinical_trials::Ask),
    UsaSpending(usaspending::Ask),
}

impl Door {
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
            _ => {
                let edgar = || edgar::Ask::at(path).map(Self::Edgar);
                let trials = || clinical_trials::Ask::at(path).map(Self::Trials);
                return edgar().or_else(trials).or_else(|| usaspending::Ask::at(path).map(Self::UsaSpending));
            }
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpsc => "cpsc",
            Self::Edgar(ask) => ask.name(),
            Self::OpenFda(Feed::Drug) => "openfda.drug",
            Self::OpenFda(Feed::Device) => "openfda.device",
            Self::OpenFda(_) => "openfda.food",
            Self::Socrata => "nhtsa.socrata",
            Self::FlatPost => "nhtsa.flat",
            Self::FlatPre => "nhtsa.flat_pre_2010",
            Self::Fsis => "fsis",
            Self::NihReporter => "nih_reporter",
            Self::Trials(_) => "clinical_trials",
            Self::UsaSpending(ask) => ask.name(),
        }
    }

    /// The field that the schema faults strike unless one is named.
    pub(crate) fn date_field(self) -> &'static str {
        match self {
            Self::Cpsc => "RecallDate",
            Self::Edgar(_) => "filingDate",
            Self::OpenFda(_) => "report_date",
            Self::Socrata => "report_received_date",
            Self::FlatPost | Self::FlatPre => "RCDATE",
            Self::Fsis => "field_recall_date",
            Self::NihReporter => "date_added",
            Self::Trials(_) => "lastUpdatePostDateStruct",
            Self::UsaSpending(ask) => ask.date_field(),
        }
    }

    /// Whether it is asked by POST; all others by GET.
    pub(crate) fn takes_body(self) -> bool {
        match self {
            Self::NihReporter => true,
            Self::UsaSpending(ask) => ask.takes_body(),
            _ => false,
        }
    }

    /// Whether each of its answers is told apart from the one before, as by a number.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::FlatPost | Self::FlatPre | Self::NihReporter)
    }
}

/// The answer of a door. `build` counts the answers of the doors that tell theirs apart: each flat file numbers its rows anew.
pub(crate) fn answer(world: &World, door: Door, asked: Asked<'_>, plan: &Plan, build: u64) -> Answer {
    let query = Query::new(asked.query);
    match door {
        Door::Cpsc => cpsc::answer(world, &query, plan),
        Door::Edgar(ask) => edgar::answer(world, ask, &query),
        Door::OpenFda(feed) => openfda::answer(world, feed, &query, plan),
        Door::Socrata => nhtsa::socrata(world, &query, plan),
        Door::FlatPost => nhtsa::flat(world, true, plan, build),
        Door::FlatPre => nhtsa::flat(world, false, plan, build),
        Door::Fsis => fsis::answer(world, &query, plan),
        Door::NihReporter => nih_reporter::answer(world, asked.body, plan, build),
        Door::Trials(ask) => clinical_trials::answer(world, ask, asked.path, &query, plan),
        Door::UsaSpending(ask) => usaspending::answer(world, ask, asked.path, asked.body, plan),
    }
}
