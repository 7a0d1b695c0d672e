//! `GET /v1/entity_watch` and the tool `govcon_entity_watch`: the artifact about one entity, for a paid key or a payment.

use operation::document_receipt::{self, Documented, ShownReceipt};
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price, Surface};
use proofs::evidence;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ARTIFACT_ROUTE;
use super::artifact::Artifact;
use super::filter::{self, Filter};
use super::findings::{Moment, Subject};
use super::unrecorded_contracts;
use super::watchable_feed::Exclusions;
use crate::rules::ExclusionsRules;
use fold::records::Rules;
use reads::read::{Difference, Read, Reader, Tool};

/// The price of an artifact in millionths of a US dollar.
const ENTITY_WATCH_MICROS: u64 = 100_000;
/// The action that receipts name.
const ACTION: &str = "entity_watch";

/// Arguments of `entity_watch`; one of them is required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The whole name of the company. Legal forms, case, accents and signs do not matter.
    #[schemars(length(min = 2, max = 300))]
    pub name: Option<String>,
    /// Unique entity id, 12 letters and digits. It takes precedence over the name.
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
    /// Whether the artifact gets a receipt over `artifactHash`, which the receipts service issues and signs.
    #[serde(default)]
    pub receipt: bool,
}

/// An artifact with its hash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HashedExclusionArtifact")]
pub struct Document {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// `sha256:` and the SHA-256 of the canonical form (RFC 8785) of this object without `artifactHash`, `permalink` and `receipt`, as hex digits.
    pub artifact_hash: String,
    /// Where the same artifact can be read again by everybody, without its receipt; empty without a UEI.
    pub permalink: String,
    /// The receipt over `artifactHash`, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShownReceipt")]
    pub receipt: Option<ShownReceipt>,
    /// What the receipt will be issued over when the payment is settled. Only the recorded answer of a payment has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub pending_receipt: Option<Documented>,
}

impl Document {
    /// Adds hash and permalink to an artifact.
    ///
    /// # Errors
    /// `internal` if the artifact has no canonical form.
    pub(crate) fn new(artifact: Artifact, reader: &Reader<Exclusions>) -> Result<Self, Problem> {
        let hashed = evidence::Artifact::new(&artifact).map_err(|error| {
            tracing::error!(%error, "an artifact has no canonical form");
            Problem::new(ErrorCode::Internal, "the artifact cannot be hashed")
        })?;
        let base_url = reader.context().settings.services.get(ExclusionsRules::NAME).map_or("", |own| own.base_url.as_str());
        let permalink = if artifact.entity.uei.is_empty() {
            String::new()
        } else {
            let link = hashed.permalink(&format!("{base_url}{ARTIFACT_ROUTE}"), &artifact.entity.uei, &artifact.as_of);
            match artifact.name_asked() {
                Some(name) => format!("{link}&{}", form_urlencoded::Serializer::new(String::new()).append_pair("name", name).finish()),
                None => link,
            }
        };
        Ok(Self { artifact, artifact_hash: hashed.hash().to_owned(), permalink, receipt: None, pending_receipt: None })
    }
}

/// Reads who is asked about. `name` is the name of the parameter with the name.
fn subject(name: &str, uei: Option<&str>, text: Option<&str>) -> Result<Subject, Problem> {
    match (uei, text) {
        (Some(uei), asked) => {
            // The UEI identifies the entity, so a name that is none changes nothing.
            let asked = asked.and_then(|asked| filter::name(name, asked).ok()).unwrap_or_default();
            Ok(Subject::Uei { uei: filter::uei("uei", uei)?, asked })
        }
        (None, Some(text)) => Ok(Subject::Name(filter::name(name, text)?)),
        (None, None) => Err(Problem::parameter(name, format!("`{name}` or `uei` is required: who is asked about"))),
    }
}

/// What the receipt of an artifact is issued over.
fn documented(document: &Document) -> Documented {
    let Document { artifact, artifact_hash, .. } = document;
    Documented {
        service: ExclusionsRules::NAME.to_owned(),
        action: ACTION.to_owned(),
        inputs: json!({ "asOf": artifact.as_of, "entity": artifact.entity }),
        hash: artifact_hash.clone(),
    }
}

impl Arguments {
    /// Who is asked about.
    fn subject(&self, reader: &Reader<Exclusions>) -> Result<Subject, Problem> {
        subject(reader.argument("name"), self.uei.as_deref(), self.name.as_deref())
    }
}

impl Read for Arguments {
    type Service = Exclusions;
    type Answer = Document;

    fn definition() -> Definition {
        Definition {
            name: "entity_watch",
            path: "/v1/entity_watch",
            summary: "Evidence about one entity: its exclusion from federal awards, and which of its awards are still running.",
            description: "`EXCLUDED_WHILE_ACTIVE` needs an active exclusion and a running award under one UEI or CAGE code; a name alone gives \
                `NAME_MATCH_ONLY`. `split` says how many of the running awards were signed after the exclusion; those from before may lawfully continue. \
                `artifactHash` can be computed again by anybody, and `permalink` shows the same artifact again. With `receipt` it has a signed receipt \
                over `artifactHash`. What to know about the answer is not in it: over REST it is the header `Answer-Note`, over MCP a second text. \
                Unpaid calls get the payment terms with a preview: signal and summary.",
            surface: Surface::Route,
            price: Price::PerCall { micros: ENTITY_WATCH_MICROS, free_from: SAVED_ITEMS_MIN_TIER },
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({ "uei": "SPPA4G7J3N91" }),
            ..Definition::read()
        }
    }

    async fn preview(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Option<Value>, Problem> {
        let subject = self.subject(reader)?;
        let artifact = Moment::of(reader).await?.artifact(reader, &subject).await?;
        Ok(Some(json!({ "signal": artifact.signal, "summary": artifact.summary })))
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Document, Problem> {
        let subject = self.subject(reader)?;
        let artifact = Moment::of(reader).await?.artifact(reader, &subject).await?;
        let note = unrecorded_contracts::note(reader, &artifact).await;
        reader.note(note);
        let mut document = Document::new(artifact, reader)?;
        if self.receipt && reader.is_unsettled() {
            document_receipt::check(reader.context()).await?;
            document.pending_receipt = Some(documented(&document));
        } else if self.receipt {
            document.receipt = Some(document_receipt::issue(reader.context(), &documented(&document)).await?);
        }
        Ok(document)
    }
}

impl Tool for Arguments {
    type ToolAnswer = Document;

    const TOOL_DIFFERENCES: &'static [Difference] = &[Difference::Renamed { argument: "name", name: "entity" }];
    const ABOUT_ARGUMENTS: &'static str = "Arguments of `govcon_entity_watch`; one of them is required.";

    fn tool() -> Definition {
        Definition {
            name: "govcon_entity_watch",
            path: "",
            surface: Surface::Tool,
            when: "Use it before work with a federal contractor, for evidence that can be shown to others.",
            ..Self::definition()
        }
    }
}

#[cfg(test)]
mod tests {
    use proofs::receipt::Receipt;
    use reads::read::{operation, tool};

    use super::super::artifact::{Entity, Findings};
    use super::super::permalink;
    use super::*;

    const UEI: &str = "ABCDEF123456";

    /// Proves that the UEI goes before the name, that the name is remembered as the caller gave it, and that a wrong name without a UEI is refused.
    #[test]
    fn subjects() {
        let refused_parameter = |uei: Option<&str>, name: Option<&str>| subject("name", uei, name).map_err(|problem| problem.parameter);
        let by_uei = |asked: &str| Ok(Subject::Uei { uei: UEI.to_owned(), asked: asked.to_owned() });
        assert_eq!(refused_parameter(Some("abcdef123456"), None), by_uei(""));
        assert_eq!(refused_parameter(Some(UEI), Some(" Acme  LLC")), by_uei("Acme LLC"));
        assert_eq!(refused_parameter(None, Some("Acme")), Ok(Subject::Name("Acme".to_owned())));
        assert_eq!(refused_parameter(Some(UEI), Some("?!")), by_uei(""));
        assert_eq!([refused_parameter(None, Some("?!")), refused_parameter(None, None)], [Err("name".to_owned()), Err("name".to_owned())]);
    }

    /// Proves that a receipt is asked for by `receipt`, and that none is the default.
    #[test]
    fn no_receipt_is_the_default() {
        for (given, wanted) in [
            (json!({ "uei": UEI }), false),
            (json!({ "uei": UEI, "receipt": false }), false),
            (json!({ "uei": UEI, "receipt": true }), true),
        ] {
            assert_eq!(serde_json::from_value::<Arguments>(given).unwrap().receipt, wanted);
        }
    }

    /// Proves that the tool has the arguments of the route, of which it calls one `entity`, and that documents name the tool.
    #[test]
    fn arguments_of_route_and_tool() {
        let [mut route, tool] = [operation::<Arguments>(), tool::<Arguments>()].map(|operation| operation.input);
        assert_eq!(route["description"], "Arguments of `entity_watch`; one of them is required.");
        assert_eq!(tool["description"], "Arguments of `govcon_entity_watch`; one of them is required.");
        let name = route["properties"].as_object_mut().unwrap().remove("name").unwrap();
        route["properties"]["entity"] = name;
        assert_eq!((&tool["properties"], tool.get("required")), (&route["properties"], None));
    }

    /// Proves that no answer with an artifact has a field for a note, which would have to be hashed.
    #[test]
    fn artifacts_have_no_note() {
        for operation in [operation::<Arguments>(), tool::<Arguments>(), operation::<permalink::Arguments>()] {
            let properties = operation.output.pointer("/properties").unwrap();
            assert!(properties.get("artifactHash").is_some() && properties.get("note").is_none(), "{}", operation.name);
        }
    }

    /// Proves that what a receipt is issued over can be computed again from the artifact that has it, and that the receipt is not part of the hash.
    #[test]
    fn receipts_follow_from_artifacts() {
        let artifact = Artifact::new(Findings { entity: Entity { uei: UEI.into(), ..Entity::default() }, ..Findings::default() }, 0);
        let hash = evidence::Artifact::new(&artifact).unwrap().hash().to_owned();
        let receipt = Some(ShownReceipt::from(Receipt::default()));
        let document = Document { artifact, artifact_hash: hash.clone(), permalink: "/x".to_owned(), receipt, pending_receipt: None };
        let over = documented(&document);
        let shown = serde_json::to_value(&document).unwrap();
        assert_eq!(over.inputs, json!({ "asOf": shown["asOf"], "entity": shown["entity"] }));
        assert_eq!((&*over.service, &*over.action, &over.hash), ("exclusions", "entity_watch", &hash));
        assert!(evidence::verify(&shown).unwrap().is_valid && shown["receipt"].is_object());
        // The recorded answer of a payment that is not settled has the document in place of the receipt.
        let recorded = serde_json::to_value(Document { receipt: None, pending_receipt: Some(over.clone()), ..document }).unwrap();
        assert_eq!(recorded[document_receipt::PENDING_RECEIPT], serde_json::to_value(&over).unwrap());
        assert!(recorded.get("receipt").is_none());
    }
}
