//! The paths of the portal.

use pages::ACCOUNT;

use crate::url::{decoded, segment};

/// Where the form to sign in is sent.
pub const SIGN_IN: &str = "/account/sign-in";
/// Where the form to sign out is sent.
pub const SIGN_OUT: &str = "/account/sign-out";
/// Where the form that creates a key is sent.
pub const KEYS: &str = "/account/keys";
/// The page of saved filters and watches.
pub(super) const SAVED: &str = "/account/saved";
/// The page that saves a filter.
pub(super) const NEW_FILTER: &str = "/account/filters/new";
/// The page that creates a watch, with or without a webhook.
pub(super) const NEW_WATCH: &str = "/account/watches/new";
/// The path below which each watch has its page.
const WATCHES: &str = "/account/watches";
/// The page of the webhooks.
pub const WEBHOOKS: &str = "/account/webhooks";
/// The page that registers a webhook.
pub(super) const REGISTER: &str = "/account/webhooks/new";

/// A page of the portal that is only for a person who signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Tier, quota and keys.
    Overview,
    /// Saved filters and watches.
    Saved,
    /// All webhooks.
    Webhooks,
    /// The form that saves a filter.
    NewFilter,
    /// The form that creates a watch.
    NewWatch,
    /// The form that registers a webhook.
    Register,
    /// One watch with its matches.
    Watch {
        /// The name of the service.
        service: String,
        /// The id of the watch.
        id: String,
    },
    /// One webhook.
    Webhook {
        /// The name of the service.
        service: String,
        /// The id of the webhook.
        id: String,
    },
}

impl Route {
    /// The page at a path without a slash at the end; `None` if the portal has none there.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        match path {
            ACCOUNT => Some(Self::Overview),
            SAVED => Some(Self::Saved),
            WEBHOOKS => Some(Self::Webhooks),
            NEW_FILTER => Some(Self::NewFilter),
            NEW_WATCH => Some(Self::NewWatch),
            REGISTER => Some(Self::Register),
            _ => {
                let watch = || below(WATCHES, path).map(|(service, id)| Self::Watch { service, id });
                below(WEBHOOKS, path).map(|(service, id)| Self::Webhook { service, id }).or_else(watch)
            }
        }
    }
}

/// The service and the id that a path names below another one.
fn below(above: &str, path: &str) -> Option<(String, String)> {
    let (service, id) = path.strip_prefix(above)?.strip_prefix('/')?.split_once('/')?;
    let id = decoded(id).filter(|id| !id.is_empty() && !id.contains('/'))?;
    Some((decoded(service)?, id))
}

/// The path of the page of a watch.
pub(super) fn watch_path(service: &str, id: &str) -> String {
    format!("{WATCHES}/{}/{}", segment(service), segment(id))
}

/// The path of the page of a webhook.
pub(super) fn webhook_path(service: &str, id: &str) -> String {
    format!("{WEBHOOKS}/{}/{}", segment(service), segment(id))
}
