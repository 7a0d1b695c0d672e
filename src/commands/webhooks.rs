//! `highwater webhooks`: lists, resends and resumes webhooks of all accounts.

use webhooks::operate;
use webhooks::operations::DeliveryStatus;

use super::args::WebhooksCommand;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

pub(super) async fn run(engine: &Engine, command: WebhooksCommand, output: &dyn Output) -> Result<(), Failure> {
    let context = &engine.context;
    match command {
        WebhooksCommand::List => {
            for at in operate::list(context).await? {
                let DeliveryStatus { state, delivered_seq, delivered, skipped, failing_since, reason, .. } = DeliveryStatus::from(&at);
                let failing = if failing_since.is_empty() { String::new() } else { format!("\tfailing since {failing_since}: {reason}") };
                let line = format!(
                    "{}\t{}\t{}\t{state}\tacknowledged {delivered_seq}\t{delivered} delivered\t{skipped} skipped{failing}",
                    at.id, at.service, at.account
                );
                output.line(line.as_bytes());
            }
        }
        WebhooksCommand::Resend { id, message } => {
            let posted = operate::resend_message(context, &services::matchers(&context.settings), &id, &message).await?;
            if !posted.accepted {
                return Err(Failure::new(posted.reason));
            }
            output.note(&format!("{message} was delivered, status {}", posted.status));
        }
        WebhooksCommand::Replay { id, after, upto } => {
            let status = operate::replay_from(context, &id, after, upto).await?;
            output.note(&format!("{id} resumes after change {}", status.delivered_seq));
        }
    }
    Ok(())
}
