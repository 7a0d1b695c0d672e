//! `GET /v1/entity_watch` and the tool `govcon_entity_watch`: the artifact about one entity, for a paid key or a payment.

use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::evidence;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::artifact::Artifact;
use super::filter::{self, Filter};
use super::findings::{Moment, Subject};
use super::followed::Exclusions;
use super::{ARTIFACT_ROUTE, ENTITY_WATCH_MICROS, SOURCE};
use crate::common::read::{Read, Reader};

/// Arguments of `entity_watch`; one of them is required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteArguments {
    /// The whole name of the company. Legal forms, case, accents and signs do not matter.
    #[schemars(length(min = 2, max = 300))]
    pub name: Option<String>,
    /// Unique entity id, 12 letters and digits. It goes before the name.
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
}

/// Arguments of `govcon_entity_watch`; one of them is required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolArguments {
    /// The whole name of the company. Legal forms, case, accents and signs do not matter.
    #[schemars(length(min = 2, max = 300))]
    pub entity: Option<String>,
    /// Unique entity id, 12 letters and digits. It goes before the name.
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
}

/// An artifact with its hash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HashedExclusionArtifact")]
pub struct Document {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// `sha256:` and the SHA-256 of the canonical form (RFC 8785) of this object without `artifactHash`, `permalink`, `receipt` and `note`, as hex digits.
    pub artifact_hash: String,
    /// Where the same artifact can be read again by everybody; empty without a UEI.
    pub permalink: String,
}

impl Document {
    /// Adds hash and permalink to an artifact.
    ///
    /// # Errors
    /// `internal` if the artifact has no canonical form.
    pub(super) fn new(artifact: Artifact, reader: &Reader<Exclusions>) -> Result<Self, Problem> {
        let hashed = evidence::Artifact::new(&artifact).map_err(|error| {
            tracing::error!(%error, "an artifact has no canonical form");
            Problem::new(ErrorCode::Internal, "the artifact cannot be hashed")
        })?;
        let base_url = reader.context().settings.services.get(SOURCE.service).map_or("", |own| own.base_url.as_str());
        let permalink = if artifact.entity.uei.is_empty() {
            String::new()
        } else {
            hashed.permalink(&format!("{base_url}{ARTIFACT_ROUTE}"), &artifact.entity.uei, &artifact.as_of)
        };
        Ok(Self { artifact, artifact_hash: hashed.hash().to_owned(), permalink })
    }
}

/// Reads who is asked about. `name` is the name of the parameter with the name.
fn subject(name: &str, uei: Option<&str>, text: Option<&str>) -> Result<Subject, Problem> {
    match (uei, text) {
        (Some(uei), _) => Ok(Subject::Uei(filter::uei("uei", uei)?)),
        (None, Some(text)) => Ok(Subject::Name(filter::name(name, text)?)),
        (None, None) => Err(Problem::parameter(name, format!("`{name}` or `uei` is required: who is asked about"))),
    }
}

async fn preview(subject: Result<Subject, Problem>, reader: &mut Reader<Exclusions>) -> Result<Option<Value>, Problem> {
    // Arguments are refused when they are paid for; without a subject there is nothing to preview.
    let Ok(subject) = subject else { return Ok(None) };
    let artifact = Moment::of(reader).await?.artifact(reader, &subject).await?;
    Ok(Some(json!({ "signal": artifact.signal, "summary": artifact.summary })))
}

async fn document(subject: Subject, reader: &mut Reader<Exclusions>) -> Result<Document, Problem> {
    let artifact = Moment::of(reader).await?.artifact(reader, &subject).await?;
    Document::new(artifact, reader)
}

fn definition() -> Definition {
    Definition {
        summary: "Evidence about one entity: its exclusion from federal awards, and which of its awards are still running.",
        description: "`EXCLUDED_WHILE_ACTIVE` needs an active exclusion and a running award under one UEI or CAGE code; a name alone gives \
            `NAME_MATCH_ONLY`. `split` says how many of the running awards were signed after the exclusion; those from before may lawfully continue. \
            `artifactHash` can be computed again by anybody, and `permalink` shows the same artifact again. Unpaid calls get the payment terms with a \
            preview: signal and summary.",
        price: Price::PerCall { micros: ENTITY_WATCH_MICROS, free_from: SAVED_ITEMS_MIN_TIER },
        errors: &[ErrorCode::AsOfInvalid],
        ..Definition::read()
    }
}

impl Read for RouteArguments {
    type Service = Exclusions;
    type Answer = Document;

    fn definition() -> Definition {
        Definition {
            name: "entity_watch",
            path: "/v1/entity_watch",
            surface: Surface::Route,
            example: json!({ "uei": "SPPA4G7J3N91" }),
            ..definition()
        }
    }

    async fn preview(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Option<Value>, Problem> {
        preview(subject("name", self.uei.as_deref(), self.name.as_deref()), reader).await
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Document, Problem> {
        document(subject("name", self.uei.as_deref(), self.name.as_deref())?, reader).await
    }
}

impl Read for ToolArguments {
    type Service = Exclusions;
    type Answer = Document;

    fn definition() -> Definition {
        Definition {
            name: "govcon_entity_watch",
            path: "",
            surface: Surface::Tool,
            when: "Use it before work with a federal contractor, for evidence that can be shown to others.",
            example: json!({ "uei": "SPPA4G7J3N91" }),
            ..definition()
        }
    }

    async fn preview(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Option<Value>, Problem> {
        preview(subject("entity", self.uei.as_deref(), self.entity.as_deref()), reader).await
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Document, Problem> {
        document(subject("entity", self.uei.as_deref(), self.entity.as_deref())?, reader).await
    }
}
