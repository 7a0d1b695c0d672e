//! What a service sets for its webhooks.

use access::saved_items::SavedItems;
use access::token::WatchToken;
use operation::problem::Problem;
use operation::{Call, Price};
use schemas::views::accounts::Tier;

use crate::NewMatcher;

/// Who may use the webhooks of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookAccess {
    /// Keys of this tier or above.
    Tier(Tier),
    /// The owner of each watch, which may be the holder of a token: watches are sold.
    Owner,
}

/// How a service offers its webhook operations.
#[derive(Clone, Copy, Debug)]
pub struct WebhookConfig {
    /// The name of the service.
    pub service: &'static str,
    /// Who may use webhooks.
    pub access: WebhookAccess,
    /// Creates the matcher of the service, which also renders the bodies of its messages.
    pub matcher: NewMatcher,
    /// The paths of the operations, in the order of [`super::operations`].
    pub paths: [&'static str; 6],
}

impl WebhookConfig {
    pub(super) fn price(&self) -> Price {
        match self.access {
            WebhookAccess::Tier(tier) => Price::Tier(tier),
            WebhookAccess::Owner => Price::Free,
        }
    }

    /// The watches that a call may use: those of its token, where watches are sold, or those of its account.
    ///
    /// # Errors
    /// `key-invalid` without a token and a key; `parameter-invalid` for a malformed token.
    pub(super) fn owned<'a>(&self, call: &'a Call) -> Result<SavedItems<'a>, Problem> {
        match self.access {
            WebhookAccess::Tier(_) => Ok(SavedItems::watches(call, self.service)),
            WebhookAccess::Owner => {
                let token = WatchToken::of_call(call.watch_token.as_deref(), None)?;
                SavedItems::of_owner(call, self.service, token.as_ref())
            }
        }
    }
}
