//! `GET /v1/artifact/{uei}`: an artifact again, by the permalink that it names.

use operation::problem::Problem;
use operation::{Definition, Surface};
use proofs::evidence::{Artifact, HashPrefix};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::json;

use super::ARTIFACT_PATH;
use super::artifact::Artifact as ExclusionArtifact;
use super::entity_watch::Document;
use super::filter::{self, Filter};
use super::findings::{Moment, Subject};
use super::watchable_feed::Exclusions;
use reads::read::{Read, Reader};

/// Arguments of `artifact`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Unique entity id, 12 letters and digits.
    #[schemars(length(min = 12, max = 12))]
    pub uei: String,
    /// The name that the caller of the artifact gave, if the artifact has it because the entity is not on the index.
    #[schemars(length(min = 2, max = 300))]
    pub name: Option<String>,
    /// The first 16 hex digits of the hash.
    #[schemars(length(min = 16, max = 16))]
    pub hash: String,
}

impl Read for Arguments {
    type Service = Exclusions;
    type Answer = Document;

    fn definition() -> Definition {
        Definition {
            name: "artifact",
            path: ARTIFACT_PATH,
            surface: Surface::Route,
            summary: "An artifact again, by its entity, its time and the beginning of its hash.",
            description: "Artifacts are not stored: the artifact is made again of the records as of `asOf`, which is required, and its hash is compared. \
                Only a paid artifact shows its hash. Another hash is not found.",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::NotFound],
            example: json!({ "uei": "SPPA4G7J3N91", "asOf": "2026-11-20", "hash": "0000000000000000" }),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Document, Problem> {
        let uei = filter::uei("uei", &self.uei)?;
        let asked = self.name.as_deref().map(|name| filter::name("name", name)).transpose()?.unwrap_or_default();
        let subject = Subject::Uei { uei, asked };
        let wanted = HashPrefix::read(&self.hash)
            .ok_or_else(|| Problem::parameter("hash", "`hash` is not the beginning of a hash: 16 hex digits in lower case"))?;
        if reader.is_current() {
            return Err(Problem::parameter("asOf", "`asOf` is required: the time of the artifact"));
        }
        let forms = Moment::of(reader).await?.forms(reader, &subject).await?;
        let is_wanted = |artifact: &ExclusionArtifact| Artifact::new(artifact).is_ok_and(|hashed| hashed.prefix() == wanted);
        let Some(artifact) = forms.into_iter().find(is_wanted) else {
            return Err(Problem::new(ErrorCode::NotFound, "no artifact of this entity and time has this hash").about("hash"));
        };
        Document::new(artifact, reader)
    }
}
