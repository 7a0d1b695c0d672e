//! The sale of one answer: payment terms, admission, verification, claim, settlement, answer.
//!
//! Nothing is recorded before the facilitator has confirmed that a payment can be settled. The answer is computed before the payment is claimed, and
//! nothing of it is sent before the payment is settled. Claiming and settling continue when the caller disconnects, verifying does not. A lease
//! ensures that only one process at a time claims and settles a payment; the next process asks the chain first.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use access::Access;
use access::Refundable;
use access::append::{CommandPolicy, append_command};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use operation::context::Part;
use operation::context::{Context, store_problem, stored};
use operation::document_receipt;
use operation::metrics::{self, PaymentOutcome};
use operation::problem::{Challenge, Problem};
use operation::redaction::hide_keys;
use operation::{Answer, AnswerFuture, Body, Stage};
use proofs::evidence::ARTIFACT_HASH;
use proofs::hash::{Hash32, hex};
use proofs::receipt::commitment;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::payments::{self, Claim, Payment, PaymentCommand, State, TABLES, answer_key};
use schemas::views::records::Row;
use serde::de::DeserializeOwned;
use serde_json::Value;
use view_store::lease::Lease;

use super::ProcessingGuard;
use super::chain::{AuthorizationUse, Transfer};
use super::facilitator::{Facilitator, FacilitatorReply};
use super::goods::{GivenPayment, Goods, Preview, preview, sellable};
use super::repeats::{self, Buyer};
use super::settlement::Settlement;
use super::signed_payment::{Signed, hex_text};
use super::terms::{Offer, PaymentTerms, Version, requirement};
use super::verifications::Slot;
use crate::Payments;

/// How often the facilitator is asked to settle: a settlement may fail because of payments of others.
const SETTLE_ATTEMPTS: usize = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How many times the chain is asked for a transfer that the facilitator reports as settled.
const CHAIN_LOOKUPS_MAX: usize = 20;
/// After how many seconds a copy of a payment that is being settled may be retried.
const BUSY_S: u64 = 1;
/// After how many seconds a payment with unknown status may be retried.
const UNKNOWN_RETRY_S: u64 = 5;

/// Sells an answer to a caller. `run` runs the operation. Calls without a payment, or with one that its payer did not sign, share a limit per address.
/// Calls with a payment that its payer signed have their own limits, per address and per payer.
///
/// # Errors
/// `payment-required` with the terms (with a pause for a copy of a payment that is being settled); what is wrong with the arguments or the answer;
/// `rate-limited` when the address has too many unpaid calls, or the address or payer has too many unsettled payments; `unavailable` while it is
/// unknown whether the payment is settled.
pub async fn sell<R>(
    ctx: &Arc<Context>,
    address: IpAddr,
    goods: Goods,
    arguments: Result<Value, Problem>,
    given: Option<GivenPayment>,
    run: R,
) -> Result<(Answer, Settlement), Problem>
where
    R: Fn(Stage, Value) -> AnswerFuture,
{
    let Goods { offer, .. } = &goods;
    let requirement = requirement(goods.operation, goods.free_from, &ctx.settings);
    let Some(terms) = Payments::of(ctx).terms().cloned() else {
        Access::of(ctx).admit_unpaid(ctx, address).await?;
        return Err(Problem::new(ErrorCode::PaymentRequired, format!("{requirement}; payments are not configured on this server")));
    };
    let Some(given) = given else {
        Access::of(ctx).admit_unpaid(ctx, address).await?;
        let preview = match arguments {
            Ok(arguments) => preview(goods.operation, run(Stage::Preview, arguments), goods.preview_time_max).await,
            Err(problem) => Preview::failed(&problem),
        };
        metrics::count_payment(goods.service, PaymentOutcome::TermsSent);
        return Err(challenge(&terms, offer, &requirement, preview));
    };
    let spent = Access::of(ctx).admit_call_with_payment(ctx, address).await?;
    let sold = sell_for(ctx, address, &goods, terms, arguments, given, run).await;
    // A call counts if its payment bought nothing. A caller who only has to wait does not count.
    let is_unpaid = sold.as_ref().is_err_and(|problem| match problem.code {
        ErrorCode::PaymentRequired => problem.retry_after_s == 0,
        code => code == ErrorCode::RateLimited,
    });
    if !is_unpaid {
        Access::of(ctx).refund(spent).await;
    }
    sold
}

/// Sells an answer for the payment of a call.
///
/// # Errors
/// As [`sell`].
async fn sell_for<R>(
    ctx: &Arc<Context>,
    address: IpAddr,
    goods: &Goods,
    terms: PaymentTerms,
    arguments: Result<Value, Problem>,
    given: GivenPayment,
    run: R,
) -> Result<(Answer, Settlement), Problem>
where
    R: Fn(Stage, Value) -> AnswerFuture,
{
    let Goods { offer, .. } = goods;
    let refused = |reason: String| {
        metrics::count_payment(goods.service, PaymentOutcome::Refused);
        challenge(&terms, offer, &reason, Preview::default())
    };
    let arguments = arguments?;
    let now_s = u64::try_from(ctx.clock.now_ms() / 1_000).unwrap_or(0);
    let signed = match Payments::of(ctx).readers.read(&terms, offer, given.payload, now_s).await? {
        Ok(signed) => signed,
        // An invalid payment is not signed by its payer, so this counts as an unpaid call.
        Err(wrong) => {
            Access::of(ctx).admit_unpaid(ctx, address).await?;
            return Err(refused(wrong.to_string()));
        }
    };
    if !Payments::of(ctx).can_settle() {
        let detail = "payments cannot be settled because no facilitator is configured (payments.facilitator_url); nothing was charged";
        return Err(Problem::new(ErrorCode::Unavailable, detail).retry_after(60));
    }
    let canonical =
        commitment(&arguments).map_err(|_| Problem::new(ErrorCode::ParameterInvalid, "the arguments have no canonical form"))?;
    let request = Hash32::of_parts(&[goods.service.as_bytes(), goods.operation.as_bytes(), canonical.as_bytes()]);
    let payer = hex_text(&signed.from);
    let id = payments::id(terms.network.caip, &terms.asset, &payer, &hex_text(&signed.nonce));
    let buyer = match given.repeat_token {
        None => Buyer::at(&ctx.secrets, address),
        Some(token) => Buyer::of_token(&ctx.secrets, &id, &token).ok_or_else(|| {
            Problem::new(ErrorCode::RequestInvalid, "the token is not of this payment; it is in the first answer").about(repeats::HEADER)
        })?,
    };
    let claim = Claim {
        network: terms.network.caip.to_owned(),
        asset: terms.asset.clone(),
        pay_to: terms.pay_to.clone(),
        payer,
        nonce: hex_text(&signed.nonce),
        amount: i64::try_from(offer.micros).unwrap_or(i64::MAX),
        valid_before: i64::try_from(signed.valid_before).unwrap_or(i64::MAX),
        service: goods.service.to_owned(),
        operation: goods.operation.to_owned(),
        resource: offer.resource.clone(),
        request: hex(&buyer.bind(&request).0),
        ..Claim::default()
    };
    let older_request = hex(&request.0);
    let order = Order { id, claim, older_request, signed, offer: offer.clone(), terms: terms.clone(), address, is_verified: false };
    let bought = match order.buy(ctx, |stage| run(stage, arguments.clone())).await {
        Ok(bought) => bought,
        Err(Failed::Refused(reason)) => return Err(refused(reason)),
        Err(Failed::Forbidden(problem)) => {
            metrics::count_payment(goods.service, PaymentOutcome::Refused);
            return Err(problem);
        }
        Err(Failed::Busy) => {
            metrics::count_payment(goods.service, PaymentOutcome::Busy);
            let reason = "an earlier request with this payment is being settled";
            return Err(challenge(&terms, offer, reason, Preview::default()).retry_after(BUSY_S));
        }
        Err(Failed::Problem(problem)) => {
            // Errors that must not be retried occur before anything is claimed.
            let is_refused = problem.code == ErrorCode::RateLimited || !problem.code.may_retry();
            metrics::count_payment(goods.service, if is_refused { PaymentOutcome::Refused } else { PaymentOutcome::Unknown });
            return Err(problem);
        }
    };
    let Bought { payment, is_repeated } = bought;
    metrics::count_payment(goods.service, if is_repeated { PaymentOutcome::Repeated } else { PaymentOutcome::Settled });
    let settlement = Settlement::new(ctx, &payment, buyer);
    let answer = if payment.effect.is_empty() {
        let text: String =
            read(ctx, TABLES.state, &answer_key(&payment.id)).await?.ok_or_else(|| unknown("the answer is not available"))?;
        let text = document_receipt::complete(ctx, text).await?;
        Answer { body: recorded(text), etag: String::new(), next_cursor: String::new(), has_more: false, status: 200 }
    } else {
        run(Stage::Paid(payment.id), arguments).await?
    };
    Ok((answer, settlement))
}

/// The body of a recorded answer. One that states its own hash is a value, because its note is shown next to it.
fn recorded(text: String) -> Body {
    if text.contains(ARTIFACT_HASH)
        && let Ok(value) = serde_json::from_str(&text)
    {
        return Body::Json(value);
    }
    Body::Parts(vec![Bytes::from(text)])
}

/// The problem of an unpaid call, with the payment terms.
fn challenge(terms: &PaymentTerms, offer: &Offer, error: &str, preview: Preview) -> Problem {
    let error = &hide_keys(error.to_owned());
    let [v1, v2] = Version::ALL.map(|version| terms.challenge(version, offer, error));
    let header = STANDARD.encode(v2.to_string());
    let Preview { value: preview, note: preview_note } = preview;
    Problem {
        challenge: Some(Box::new(Challenge { v1, v2, preview, preview_note })),
        ..Problem::new(ErrorCode::PaymentRequired, error.as_str())
    }
    .header("payment-required", header)
}

/// The problem while it is unknown whether a payment is settled.
pub fn unknown(reason: &str) -> Problem {
    let detail =
        format!("it is not known yet whether the payment is settled ({reason}); send the same payment again, do not sign another one");
    Problem::new(ErrorCode::Unavailable, detail).retry_after(UNKNOWN_RETRY_S)
}

/// Why a payment bought nothing.
enum Failed {
    /// The payment was refused; the buyer may sign another one.
    Refused(String),
    /// The purchase cannot take effect. The problem is the answer to the call, and nothing is settled.
    Forbidden(Problem),
    /// A copy of the payment is being settled.
    Busy,
    /// Any other problem.
    Problem(Problem),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// A payment that bought an answer.
struct Bought {
    payment: Payment,
    /// Whether an earlier call bought it.
    is_repeated: bool,
}

/// A payment for one request.
struct Order {
    id: String,
    /// The claim. Answer and effect are empty until they are known.
    claim: Claim,
    /// The hash of the request as older versions recorded it, for any buyer.
    older_request: String,
    signed: Signed,
    offer: Offer,
    terms: PaymentTerms,
    /// The address of the caller.
    address: IpAddr,
    /// Whether the facilitator confirmed, before the claim, that the payment can be settled.
    is_verified: bool,
}

impl Order {
    /// Processes the payment until it is settled. `run` computes what is sold and, once the payment is claimed, checks whether it can take effect. A
    /// payment that is not verified is not recorded.
    async fn buy<R>(mut self, ctx: &Arc<Context>, run: R) -> Result<Bought, Failed>
    where
        R: Fn(Stage) -> AnswerFuture,
    {
        let known = payment(ctx, &self.id).await?;
        // A settled payment needs no further processing.
        if let Some(payment) = &known
            && self.check_request(payment.clone())?.state == State::Settled
        {
            Access::of(ctx).admit_repeat(ctx, &self.id).await?;
            return Ok(Bought { payment: payment.clone(), is_repeated: true });
        }
        if known.is_none() && !self.terms.versions.contains(&self.signed.version) {
            return Err(Failed::Refused(format!("payments of x402 version {} are not supported", self.signed.version.number())));
        }
        let guard = Payments::of(ctx).begin_processing(&self.id).ok_or(Failed::Busy)?;
        let spent = Access::of(ctx).admit_payment(ctx, self.address, &self.claim.payer).await?;
        if known.is_none() {
            self.is_verified = self.verify_new(ctx).await?;
            let order = Stage::Order { payment: self.id.clone(), payer: self.claim.payer.clone() };
            (self.claim.answer, self.claim.effect) = sellable(&self.claim.operation, run(order).await?.body)?;
        }
        let effect = known.as_ref().map_or(&self.claim.effect, |payment| &payment.effect);
        let claimed = (!effect.is_empty()).then(|| run(Stage::Claimed(self.id.clone())));
        let paying = tokio::spawn(self.pay(Arc::clone(ctx), guard, spent, claimed));
        // The settlement itself continues after that.
        match tokio::time::timeout(ctx.settings.call_times.settlement(), paying).await {
            Ok(Ok(outcome)) => outcome.map(|payment| Bought { payment, is_repeated: false }),
            Ok(Err(error)) => {
                tracing::error!(%error, "the task that settles a payment panicked");
                Err(unknown("the settlement was interrupted").into())
            }
            Err(_) => Err(unknown("the settlement takes longer than usual").into()),
        }
    }

    /// Asks the facilitator whether a payment that is not claimed can be settled. If not, processing continues only if the payment was claimed or paid in
    /// the meantime. All of this uses one slot of the verifications, so that refused payments cause no more requests to the chain node than to the
    /// facilitator.
    async fn verify_new(&self, ctx: &Context) -> Result<bool, Failed> {
        let payments = Payments::of(ctx);
        let (facilitator, _slot) = self.enter_verification(ctx, &payments).await?;
        match facilitator.verify(&self.terms, &self.offer, &self.signed).await {
            FacilitatorReply::Yes(_) => Ok(true),
            FacilitatorReply::No(reason) => {
                // Another process may be settling a copy of the payment, or anybody may have submitted it to the chain.
                let can_continue = payment(ctx, &self.id).await?.is_some() || self.is_on_chain(ctx).await;
                if can_continue { Ok(false) } else { Err(Failed::Refused(refusal_text(&reason))) }
            }
            FacilitatorReply::Unknown(reason) => {
                let detail =
                    format!("the payment could not be verified (facilitator: {reason}); nothing was charged, send the same payment again");
                Err(Problem::new(ErrorCode::Unavailable, detail).retry_after(UNKNOWN_RETRY_S).into())
            }
        }
    }

    /// The facilitator, and the slot to ask it.
    async fn enter_verification<'a>(&self, ctx: &Context, payments: &'a Payments) -> Result<(&'a Facilitator, Slot), Problem> {
        let facilitator = payments.facilitator.as_ref().ok_or_else(|| unknown("no facilitator is configured"))?;
        Ok((facilitator, payments.verifications.enter(self.address, ctx.settings.call_times.verification_turn()).await?))
    }

    /// Whether the chain has the transfer of a payment that is not claimed. One request is enough if the authorization was not used; using it costs
    /// somebody a transaction.
    async fn is_on_chain(&self, ctx: &Context) -> bool {
        let Claim { network, asset, pay_to, payer, nonce, amount, valid_before, .. } = self.claim.clone();
        let claimed_at = ctx.clock.now_ms();
        let payment = Payment { network, asset, pay_to, payer, nonce, amount, valid_before, claimed_at, ..Payment::default() };
        match &Payments::of(ctx).chain {
            Some(chain) if matches!(chain.is_used(&payment).await, Ok(true)) => {
                matches!(chain.find(&payment).await, Ok(AuthorizationUse::Paid(_)))
            }
            _ => false,
        }
    }

    /// Claims the payment and settles it, unless another process does. The payment is refunded from the rate limits when it is settled, and when it is a
    /// copy of one that another process is settling.
    async fn pay(
        self,
        ctx: Arc<Context>,
        _guard: ProcessingGuard,
        spent: Refundable,
        claimed: Option<AnswerFuture>,
    ) -> Result<Payment, Failed> {
        let outcome = self.pay_under_lease(&ctx, claimed).await;
        if matches!(outcome, Ok(_) | Err(Failed::Busy)) {
            Access::of(&ctx).refund(spent).await;
        }
        outcome
    }

    async fn pay_under_lease(&self, ctx: &Context, claimed: Option<AnswerFuture>) -> Result<Payment, Failed> {
        let mut lease = Lease::new(&ctx.store, lease_of(&self.id), &hex(&rand::random::<[u8; 8]>()));
        if !lease.renew().await.map_err(store_problem)? {
            return Err(Failed::Busy);
        }
        let outcome = tokio::select! {
            outcome = self.process(ctx, claimed) => outcome,
            () = lease.lost() => Err(unknown("another process is settling it").into()),
        };
        lease.release().await;
        outcome
    }

    async fn process(&self, ctx: &Context, claimed: Option<AnswerFuture>) -> Result<Payment, Failed> {
        let is_known = payment(ctx, &self.id).await?.is_some();
        if !is_known {
            if self.claim.answer.is_empty() && self.claim.effect.is_empty() {
                return Err(unknown("the claim is not available").into());
            }
            append_command(ctx, TABLES.view, &self.id, CommandPolicy::OncePerSubject, &PaymentCommand::Claim(Box::new(self.claim.clone())))
                .await?;
        }
        let payment = payment(ctx, &self.id).await?.ok_or_else(|| unknown("the claim is not available"))?;
        let payment = self.check_request(payment)?;
        if payment.state == State::Settled {
            return Ok(payment);
        }
        let is_new = !is_known && self.is_verified;
        if !is_new && let Some(outcome) = look_up_on_chain(ctx, &payment).await? {
            return outcome;
        }
        if let Some(claimed) = claimed {
            check_effect(ctx, &payment, claimed).await?;
        }
        if is_new {
            return self.settle(ctx, payment).await;
        }
        let payments = Payments::of(ctx);
        let (facilitator, slot) = self.enter_verification(ctx, &payments).await?;
        match facilitator.verify(&self.terms, &self.offer, &self.signed).await {
            FacilitatorReply::Yes(_) => {
                drop(slot);
                self.settle(ctx, payment).await
            }
            // Anybody may have submitted the payment to the chain since it was looked up. The slot is held during the look-up.
            FacilitatorReply::No(reason) => match look_up_on_chain(ctx, &payment).await? {
                Some(outcome) => outcome,
                None => refuse(ctx, &payment, reason).await,
            },
            FacilitatorReply::Unknown(reason) => Err(unknown(&format!("facilitator: {reason}")).into()),
        }
    }

    async fn settle(&self, ctx: &Context, payment: Payment) -> Result<Payment, Failed> {
        let payments = Payments::of(ctx);
        let facilitator = payments.facilitator.as_ref().ok_or_else(|| unknown("no facilitator is configured"))?;
        let mut reply = FacilitatorReply::Unknown(String::new());
        for attempt in 0..SETTLE_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            reply = facilitator.settle(&self.terms, &self.offer, &self.signed).await;
            match &reply {
                FacilitatorReply::Yes(transaction) if Payments::of(ctx).chain.is_none() => {
                    let transfer = Transfer { transaction: transaction.clone(), ..Transfer::default() };
                    return outcome_of(record_settled(ctx, &payment, &transfer).await?);
                }
                FacilitatorReply::Yes(_) => return self.wait_for_chain(ctx, payment).await,
                // The chain decides over what a facilitator says.
                FacilitatorReply::No(_) | FacilitatorReply::Unknown(_) => {
                    if let Some(outcome) = look_up_on_chain(ctx, &payment).await? {
                        return outcome;
                    }
                }
            }
        }
        match reply {
            FacilitatorReply::No(reason) => refuse(ctx, &payment, reason).await,
            FacilitatorReply::Yes(reason) | FacilitatorReply::Unknown(reason) => Err(unknown(&format!("facilitator: {reason}")).into()),
        }
    }

    /// Waits until the chain has the transfer that the facilitator reports as settled.
    async fn wait_for_chain(&self, ctx: &Context, payment: Payment) -> Result<Payment, Failed> {
        for _ in 0..CHAIN_LOOKUPS_MAX {
            if let Some(outcome) = look_up_on_chain(ctx, &payment).await? {
                return outcome;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        tracing::warn!(payment = payment.id, "the facilitator reports a payment as settled, but the chain does not have it");
        Err(unknown("the facilitator reports it as settled, but the chain does not have it yet").into())
    }

    /// The payment, if it was claimed for this request of this buyer and has not lapsed.
    fn check_request(&self, payment: Payment) -> Result<Payment, Failed> {
        let Self { claim, older_request, .. } = self;
        if payment.state == State::Lapsed {
            return Err(Failed::Refused(lapse_text(&payment.reason)));
        }
        // The resource URL may differ between surfaces and base URLs. The request identifies what is sold.
        let is_own = [&claim.request, older_request].contains(&&payment.request) && payment.amount == claim.amount;
        is_own.then_some(payment).ok_or_else(|| Failed::Refused(USED.to_owned()))
    }
}

/// The text for a payment that somebody used already.
const USED: &str = "this payment was already used for another request, or from another network address; its answer is repeated to the address that used \
                    it first, or with the header Payment-Repeat-Token of the first answer";

/// Ends the sale before settlement if the claimed purchase cannot take effect.
async fn check_effect(ctx: &Context, payment: &Payment, claimed: AnswerFuture) -> Result<(), Failed> {
    let Err(problem) = claimed.await else { return Ok(()) };
    if problem.code.may_retry() {
        return Err(problem.into());
    }
    // The facilitator is not asked to settle the payment. If somebody else submits it to the chain, that is recorded.
    record_refusal(ctx, payment, &problem.detail).await?;
    Err(Failed::Forbidden(problem))
}

/// The name of the lease for processing a payment.
pub(super) fn lease_of(id: &str) -> String {
    format!("payment/{id}")
}

/// Looks a payment up on the chain; `None` while the chain has no result, or the look-up fails.
async fn look_up_on_chain(ctx: &Context, payment: &Payment) -> Result<Option<Result<Payment, Failed>>, Problem> {
    let payments = Payments::of(ctx);
    let Some(chain) = payments.chain.as_ref().filter(|chain| chain.has(payment)) else { return Ok(None) };
    Ok(match chain.find(payment).await {
        Ok(AuthorizationUse::Paid(transfer)) => Some(outcome_of(record_settled(ctx, payment, &transfer).await?)),
        Ok(AuthorizationUse::Spent) => Some(lapse_and_refuse(ctx, payment, SPENT).await),
        Ok(AuthorizationUse::Late) => Some(lapse_and_refuse(ctx, payment, LATE).await),
        Ok(AuthorizationUse::Unknown) | Err(_) => None,
    })
}

/// The lapse reason of a payment whose authorization was used for another transfer.
pub(super) const SPENT: &str = "its nonce was used for another transfer";
/// The lapse reason of a payment that was not settled in time.
pub(super) const LATE: &str = "it was not settled while it was valid";

/// The outcome of a payment whose transfer was recorded. It lapses if the transfer pays for another payment.
fn outcome_of(payment: Payment) -> Result<Payment, Failed> {
    match payment.state {
        State::Settled => Ok(payment),
        State::Lapsed => Err(Failed::Refused(lapse_text(&payment.reason))),
        State::Claimed | State::Refused => Err(unknown("it is settled, but not recorded yet").into()),
    }
}

/// Records that a transfer pays for a payment. Returns the payment: settled, or lapsed if the transfer pays for another payment.
pub(super) async fn record_settled(ctx: &Context, claimed: &Payment, transfer: &Transfer) -> Result<Payment, Problem> {
    let Payment { payer, network, service, operation, effect, .. } = claimed.clone();
    let Transfer { transaction, log_index, receipt_log_index } = transfer.clone();
    let settlement = payments::Settlement { network, payer, service, operation, effect, transaction, log_index, receipt_log_index };
    let done = PaymentCommand::Settled(Box::new(settlement));
    append_command(ctx, TABLES.view, &claimed.id, CommandPolicy::Always, &done).await?;
    let payment = payment(ctx, &claimed.id).await?.ok_or_else(|| unknown("it is settled, but not recorded yet"))?;
    if payment.state == State::Lapsed {
        tracing::warn!(
            payment = payment.id,
            transaction = payment.transaction,
            "two payments name the same transfer, which pays for the first one"
        );
        // Recorded as a command, too, for consumers that read only commands.
        lapse(ctx, &payment, &payment.reason).await?;
    }
    Ok(payment)
}

/// Records that a payment has lapsed: its money can no longer move.
pub(super) async fn lapse(ctx: &Context, payment: &Payment, reason: &str) -> Result<(), Problem> {
    let done = PaymentCommand::Lapsed { reason: reason.to_owned() };
    append_command(ctx, TABLES.view, &payment.id, CommandPolicy::Always, &done).await
}

async fn lapse_and_refuse(ctx: &Context, payment: &Payment, reason: &str) -> Result<Payment, Failed> {
    lapse(ctx, payment, reason).await?;
    Err(Failed::Refused(lapse_text(reason)))
}

fn lapse_text(reason: &str) -> String {
    format!("this payment has lapsed: {reason}")
}

/// The text for a buyer whose payment the facilitator refused.
fn refusal_text(reason: &str) -> String {
    format!("the facilitator refused the payment: {reason}")
}

/// Records that the facilitator refused a payment. It is followed up until it lapses, because it may be settled anyway.
async fn refuse(ctx: &Context, payment: &Payment, reason: String) -> Result<Payment, Failed> {
    record_refusal(ctx, payment, &reason).await?;
    Err(Failed::Refused(refusal_text(&reason)))
}

/// Records that a payment was refused.
async fn record_refusal(ctx: &Context, payment: &Payment, reason: &str) -> Result<(), Problem> {
    let done = PaymentCommand::Refused { reason: reason.to_owned() };
    append_command(ctx, TABLES.view, &payment.id, CommandPolicy::Always, &done).await
}

/// Reads a payment.
async fn payment(ctx: &Context, id: &str) -> Result<Option<Payment>, Problem> {
    Ok(read::<Row<Payment>>(ctx, TABLES.records, id).await?.map(|row| row.record))
}

async fn read<T: DeserializeOwned>(ctx: &Context, table: &'static schemas::tables::Table, id: &str) -> Result<Option<T>, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let row = view.get(table, &key![id]).await.map_err(store_problem)?;
    row.map(|bytes| stored(table, &bytes)).transpose()
}
