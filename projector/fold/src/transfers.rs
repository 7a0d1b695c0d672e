//! Which payment a transfer pays for: the rule that all services follow that read payments.

use schemas::views::payments::TransferKeys;

use crate::records::{Rules, State};
use crate::service::Undecided;

/// Records that a transfer pays for a payment. Returns whether it does: a transfer pays for the first payment that names it, under its key or
/// under the key of older versions. All services that read payments use this rule, so that they agree. An unknown transfer (without keys)
/// always counts as paying.
///
/// # Errors
/// As [`State::get`].
pub fn claim_transfer<T: Rules>(state: &mut State<'_, T>, payment: &str, transfer: &TransferKeys) -> Result<bool, Undecided> {
    for key in transfer.all() {
        if let Some(first) = state.get::<String>(key)? {
            return Ok(first == payment);
        }
    }
    if transfer.key.is_empty() {
        return Ok(true);
    }
    state.remember(&transfer.key, Some(&payment)).map(|()| true)
}
