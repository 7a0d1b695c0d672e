//! Checks the webhook that a request names, before it is registered.

use access::sign::SigningSecret;
use access::webhook::Webhook;
use operation::context::Context;
use operation::problem::Problem;

use crate::post::poster;

/// The webhook that is asked for, and what it is signed with.
///
/// # Errors
/// What is wrong with either, by the field.
pub async fn webhook_of(
    ctx: &Context,
    field: &'static str,
    url: Option<&str>,
    secret: Option<&str>,
) -> Result<Option<(Webhook, SigningSecret)>, Problem> {
    let refused = |field: &'static str| move |reason| Problem::parameter(field, format!("{field}: {reason}"));
    let secret = secret.map(SigningSecret::parse).transpose().map_err(refused("secret"))?;
    match url {
        Some(url) => {
            let webhook = target_of(ctx, field, url).await?;
            Ok(Some((webhook, secret.unwrap_or_else(SigningSecret::random))))
        }
        None if secret.is_some() => Err(Problem::parameter("secret", "secret: there is no webhook to sign for")),
        None => Ok(None),
    }
}

/// Where is to be delivered.
///
/// # Errors
/// What is wrong with it, by the field.
pub async fn target_of(ctx: &Context, field: &'static str, url: &str) -> Result<Webhook, Problem> {
    let refused = |reason| Problem::parameter(field, format!("{field}: {reason}"));
    poster(ctx).await?.target(url).await.map_err(refused)
}
