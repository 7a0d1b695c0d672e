//! The operations on one webhook, the same in every service: its delivery status, a test message, a new URL or secret, the body of an
//! earlier message, resume and replay.

mod config;
pub mod deliveries;
mod delivery_status;
pub mod message;
pub mod ping;
pub mod replay;
pub mod resend;
pub mod update;

use operation::Operation;

pub use self::config::{WebhookAccess, WebhookConfig};
pub use self::delivery_status::{ById, DeliveryStatus, Posted};
pub(crate) use self::delivery_status::{delivery_state, post_now, read, state_row, target};

/// The operations of one service. Those that change something, and the status, are actions of the MCP tool `manage`.
#[must_use]
pub fn operations(config: WebhookConfig) -> Vec<Operation> {
    let [deliveries, ping, replay, resend, update, message] = config.paths;
    let all = vec![
        deliveries::operation(config, deliveries).managed(),
        ping::operation(config, ping).managed(),
        replay::operation(config, replay).managed(),
        resend::operation(config, resend).managed(),
        update::operation(config, update).managed(),
        message::operation(config, message),
    ];
    match config.access {
        WebhookAccess::Tier(_) => all,
        WebhookAccess::Owner => all.into_iter().map(Operation::with_watch_token).collect(),
    }
}
