//! Parses and checks the webhook URL and the signing secret of a request.

use access::sign::SigningSecret;
use access::webhook::Webhook;
use operation::context::Context;
use operation::problem::Problem;

use crate::post::poster;

/// Parses the webhook of a request: its URL, and its secret or a random one. `None` if the request has no URL.
///
/// # Errors
/// `parameter-invalid`, naming the field.
pub async fn parse_webhook(
    ctx: &Context,
    field: &'static str,
    url: Option<&str>,
    secret: Option<&str>,
) -> Result<Option<(Webhook, SigningSecret)>, Problem> {
    let refused = |field: &'static str| move |reason| Problem::parameter(field, format!("{field}: {reason}"));
    let secret = secret.map(SigningSecret::parse).transpose().map_err(refused("secret"))?;
    match url {
        Some(url) => {
            let webhook = parse_target(ctx, field, url).await?;
            Ok(Some((webhook, secret.unwrap_or_else(SigningSecret::random))))
        }
        None if secret.is_some() => Err(Problem::parameter("secret", "secret: a secret needs a webhook")),
        None => Ok(None),
    }
}

/// Parses the URL of a webhook and checks that its form may be delivered to. Its host name is resolved at each attempt.
///
/// # Errors
/// `parameter-invalid`, naming the field.
pub async fn parse_target(ctx: &Context, field: &'static str, url: &str) -> Result<Webhook, Problem> {
    let refused = |reason| Problem::parameter(field, format!("{field}: {reason}"));
    poster(ctx).await?.target(url).map_err(refused)
}
