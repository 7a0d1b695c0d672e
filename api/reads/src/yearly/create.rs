//! `POST /api/watch`: creates or renews a watch, for a payment or with a key.

use access::sign::SigningSecret;
use access::token::WatchToken;
use access::yearly::{NewYearlyWatch, YearlyWatch, YearlyWatches};
use feed::filter::Filter;
use feed::position::position;
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Method, Operation, Price, Stage, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webhooks::parse::parse_target;

use super::sold_watches::watched_entity;
use super::{FREE_FROM, SoldWatches, TimedWatch};

/// Arguments of the operation that creates a watch.
#[derive(Clone, Deserialize, JsonSchema)]
pub struct Arguments<N> {
    /// What is watched.
    #[serde(flatten)]
    pub named: N,
    /// Where matches are delivered: an https URL without user name or password. It is stored encrypted and never shown again. Without a webhook, poll the
    /// matches. A renewal without one leaves the webhook as it is.
    #[schemars(length(min = 1, max = 2000), extend("writeOnly" = true))]
    pub webhook: Option<String>,
    /// The secret that signs the messages: `whsec_` and 24 to 64 bytes in base64. If none is given, one is generated. The answer to this request is the
    /// only one that shows it.
    #[schemars(length(min = 1, max = 200), extend("writeOnly" = true))]
    pub secret: Option<String>,
    /// To renew a watch that was bought without a key: its token. The header `X-Watch-Token` can carry it as well.
    #[schemars(length(min = 46, max = 46), extend("writeOnly" = true))]
    pub token: Option<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: SoldWatches>() -> Operation {
    let mut example = S::example_entity();
    if let Some(fields) = example.as_object_mut() {
        fields.insert("webhook".to_owned(), json!("https://hooks.example.com/highwater"));
    }
    let words = Definition {
        name: S::OPERATION,
        method: Method::Post,
        path: "/api/watch",
        summary: S::SUMMARY,
        when: S::WHEN,
        description: S::DESCRIPTION,
        price: Price::PerCall { micros: S::MICROS, free_from: FREE_FROM },
        surface: Surface::Both,
        counted: true,
        list: "",
        errors: &[ErrorCode::LimitReached, ErrorCode::IdempotencyMismatch, ErrorCode::NotFound],
        example,
        aliases: S::ALIASES,
    };
    Operation::define::<Arguments<S::WatchedEntity>, TimedWatch<S::WatchedEntity>, _, _>(words, answer::<S>).with_watch_token()
}

async fn answer<S: SoldWatches>(call: Call, arguments: Arguments<S::WatchedEntity>) -> Result<Answer, Problem> {
    let Arguments { named, webhook, secret, token } = arguments;
    let (entity, _) = S::parse_entity(named.clone())?;
    if call.stage == Stage::Preview {
        return S::preview(call, entity).await;
    }
    let token = WatchToken::of_call(call.watch_token.as_deref(), token.as_deref())?;
    let secret = parse_secret(secret.as_deref(), webhook.is_some())?;
    let watches = YearlyWatches::new(&call, S::FEED.source.service, token);
    let ctx = &call.context;
    let done = match &call.stage {
        Stage::Order { payment, .. } => {
            let new = request::<S>(ctx, &watches, named, webhook.as_deref(), secret).await?;
            let effect = watches.order(payment, new).await?;
            return Ok(Answer { body: Body::Effect(effect), ..Answer::json(&Value::Null)? });
        }
        Stage::Claimed(_) => {
            watches.check_claimed(&S::renewed_by(&entity)).await?;
            return Answer::json(&Value::Null);
        }
        // The settled payment decided it. What could be refused was checked before.
        Stage::Paid(payment) => watches.bought(payment, webhook.is_some(), secret.as_ref()).await?,
        Stage::Whole | Stage::Preview => {
            let new = request::<S>(ctx, &watches, named, webhook.as_deref(), secret).await?;
            watches.create_or_renew(new).await?
        }
    };
    let YearlyWatch { item, token, secret } = done;
    let shown = TimedWatch::<S::WatchedEntity> {
        token: token.map(|token| token.reveal().to_owned()),
        secret: secret.map(|secret| secret.reveal()),
        ..TimedWatch::of(ctx, S::FEED.source.service, &item).await?
    };
    Ok(Answer { status: 201, ..Answer::json(&shown)? })
}

/// Checks what a request names, and returns the watch that it asks for: a new one, or the active one that it renews.
async fn request<S: SoldWatches>(
    ctx: &Context,
    watches: &YearlyWatches<'_>,
    named: S::WatchedEntity,
    webhook: Option<&str>,
    secret: Option<SigningSecret>,
) -> Result<NewYearlyWatch, Problem> {
    let (mut entity, mut filter) = S::parse_entity(named.clone())?;
    // As the request has it: what it leaves out is the default of a new watch, and in a renewal what the active watch has. So a request that names the
    // default is another one.
    let (name, given, given_with_defaults) = (S::renewed_by(&entity), written(&named)?, written(&entity)?);
    if let Some(active) = watches.find_active(&name).await? {
        (entity, filter) = S::parse_entity(S::renewed(named, watched_entity(&active)?))?;
    }
    S::check(ctx, &filter).await?;
    let webhook = match webhook {
        Some(url) => Some(parse_target(ctx, "webhook", url).await?),
        None => None,
    };
    let after = position(ctx, &S::FEED.source, None).await?.last;
    let (entity, filter) = (written(&entity)?, filter.canonical());
    Ok(NewYearlyWatch { name, given, given_with_defaults, entity, filter, webhook, secret, after, months: S::MONTHS })
}

/// Writes what a watch names as JSON.
fn written<N: Serialize>(entity: &N) -> Result<String, Problem> {
    serde_json::to_string(entity).map_err(|error| {
        tracing::error!(%error, "a watch cannot be written");
        Problem::new(ErrorCode::Internal, "the watch could not be saved")
    })
}

fn parse_secret(secret: Option<&str>, has_webhook: bool) -> Result<Option<SigningSecret>, Problem> {
    let refused = |reason| Problem::parameter("secret", format!("secret: {reason}"));
    let secret = secret.map(SigningSecret::parse).transpose().map_err(refused)?;
    if secret.is_some() && !has_webhook {
        return Err(refused("a secret needs a webhook"));
    }
    Ok(secret)
}
