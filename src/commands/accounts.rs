//! `highwater accounts`: erases accounts, and moves their secrets between installations.

use access::{Access, ErasedAccount, webhook};
use operation::context::{Context, Part};

use super::args::AccountsCommand;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

pub(super) async fn run(engine: &Engine, command: AccountsCommand, output: &dyn Output) -> Result<(), Failure> {
    let context = &engine.context;
    match command {
        AccountsCommand::Erase { id } => {
            let ErasedAccount { account, keys, saved_items } = Access::of(context).erase(context, &id).await?;
            output.note(&format!("{account} is erased: {keys} keys, {saved_items} filters and watches"));
            Ok(())
        }
        AccountsCommand::ExportSecrets => {
            for (account, secret) in webhook::account_secrets(context).await? {
                output.line(format!("{account}\t{secret}").as_bytes());
            }
            Ok(())
        }
        AccountsCommand::ImportSecrets { secrets } => import_secrets(context, &secrets, output).await,
    }
}

/// Imports every line that can be imported, and fails with the reasons of all others.
async fn import_secrets(context: &Context, secrets: &str, output: &dyn Output) -> Result<(), Failure> {
    let (mut imported, mut refused) = (0, Vec::new());
    for (at, line) in secrets.lines().enumerate() {
        let Some((account, secret)) = line.split_once('\t') else {
            refused.push(Failure::new(format!("line {} is not an account and its secret", at + 1)));
            continue;
        };
        match webhook::import_account_secret(context, account, secret).await {
            Ok(()) => imported += 1,
            Err(problem) => refused.push(problem.into()),
        }
    }
    output.note(&format!("{imported} secrets imported"));
    if refused.is_empty() { Ok(()) } else { Err(Failure::joined(&refused)) }
}
