//! The sale of one answer: the challenge, the admission, the verification, the claim, the settlement, the answer.
//!
//! Nothing is recorded before the facilitator has said that a payment can be settled. What a payment is for is worked out before it is claimed, and
//! nothing of it leaves before it is settled. Claiming and settling go on when the caller hangs up, verifying does not. Only one process at a time
//! claims and settles a payment, by a lease; the next one asks the chain first.

use crate::Payments;
use access::Access;
use operation::context::Part;
use operation::redaction::hide_keys;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use schemas::error_code::ErrorCode;
use schemas::hash::{Hash32, hex};
use schemas::key;
use schemas::receipt::commitment;
use schemas::views::payments::{self, CLAIM, LAPSED, Payment, PaymentCommand, REFUSED, SETTLED, State, TABLES, answer_key};
use schemas::views::records::Row;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use view_store::lease::Lease;

use super::Turn;
use super::chain::{Found, Transfer};
use super::facilitator::{Facilitator, Said};
use super::signed::{Signed, hex_text};
use super::terms::{NETWORKS, Offer, Till, Version};
use super::verifications::Slot;
use access::Refundable;
use access::append::{Once, command};
use operation::context::{Context, store_problem, stored};
use operation::metrics::{self, Paid};
use operation::problem::{Challenge, Problem};
use operation::{Answer, Answering, Body, Stage};

/// How long a caller waits for a settlement at most; it goes on by itself.
const PAID_WITHIN: Duration = Duration::from_secs(40);
/// How often a facilitator is asked to settle: it may stumble over payments of others.
const TRIES: usize = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// How long the chain may take to show what a facilitator says is settled.
const SHOWN_WITHIN: usize = 20;
/// The largest answer that is sold, in bytes: it is kept in the log.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// After how many seconds a copy of a payment that is being settled may come again.
const BUSY_S: u64 = 1;
/// After how many seconds to ask again where nobody knows yet.
const ASK_AGAIN_S: u64 = 5;

/// What is sold.
pub struct Goods {
    /// The service's name.
    pub service: &'static str,
    /// The operation's name.
    pub operation: &'static str,
    /// Terms of it.
    pub offer: Offer,
    /// What a key must be of to need no payment.
    pub free_from: &'static str,
}

/// A payment as it came with a call: its payload, or why that cannot be read.
pub type Given = Result<Value, String>;

/// What a buyer is told of the money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    transaction: String,
    network: String,
    payer: String,
}

impl Settlement {
    /// As a version has it.
    pub fn document(&self, version: Version) -> Value {
        let own = NETWORKS.iter().find(|network| network.caip == self.network);
        let network = own.map_or(self.network.as_str(), |network| network.name_in(version));
        json!({ "success": true, "transaction": self.transaction, "network": network, "payer": self.payer })
    }

    /// The headers of an answer that was paid for.
    pub fn headers(&self) -> [(&'static str, String); 2] {
        [("x-payment-response", Version::V1), ("payment-response", Version::V2)]
            .map(|(name, version)| (name, STANDARD.encode(self.document(version).to_string())))
    }
}

/// Sells an answer to a caller at an address. `run` runs the operation. Calls without a payment, or with one that its payer did not sign, share one
/// limit of their address. Calls with a payment that its payer signed have limits of their own, by address and by payer.
///
/// # Errors
/// `payment-required` with the terms (with a pause for a copy of a payment that is being settled); what is wrong with the arguments, or with the
/// answer; `rate-limited` when too many calls of the address were not paid for, or too many payments of the address or the payer were not settled;
/// `unavailable` while nobody knows whether the payment is settled.
pub async fn sell<R>(
    ctx: &Arc<Context>,
    address: IpAddr,
    goods: Goods,
    arguments: Result<Value, Problem>,
    given: Option<Given>,
    run: R,
) -> Result<(Answer, Settlement), Problem>
where
    R: Fn(Stage, Value) -> Answering,
{
    let Goods { offer, .. } = &goods;
    let needed = format!("{} is paid for by the call, or opened by a key of tier {} or higher", goods.operation, goods.free_from);
    let Some(till) = Payments::of(ctx).till().cloned() else {
        Access::of(ctx).admit_unpaid(ctx, address).await?;
        return Err(Problem::new(ErrorCode::PaymentRequired, format!("{needed}; payments are not configured here")));
    };
    let Some(given) = given else {
        Access::of(ctx).admit_unpaid(ctx, address).await?;
        let preview = match arguments {
            Ok(arguments) => preview(run(Stage::Preview, arguments).await),
            Err(_) => Value::Null,
        };
        metrics::paid(goods.service, Paid::Asked);
        return Err(challenge(&till, offer, &needed, preview));
    };
    let spent = Access::of(ctx).admit_call_with_payment(ctx, address).await?;
    let sold = sell_for(ctx, address, &goods, till, arguments, given, run).await;
    // A call whose payment bought nothing counts. A caller who only has to wait is a buyer.
    let is_unpaid = sold.as_ref().is_err_and(|problem| match problem.code {
        ErrorCode::PaymentRequired => problem.retry_after_s == 0,
        code => code == ErrorCode::RateLimited,
    });
    if !is_unpaid {
        Access::of(ctx).refund(spent).await;
    }
    sold
}

/// Sells an answer for a payment that came with the call.
///
/// # Errors
/// As [`sell`].
async fn sell_for<R>(
    ctx: &Arc<Context>,
    address: IpAddr,
    goods: &Goods,
    till: Till,
    arguments: Result<Value, Problem>,
    given: Given,
    run: R,
) -> Result<(Answer, Settlement), Problem>
where
    R: Fn(Stage, Value) -> Answering,
{
    let Goods { offer, .. } = goods;
    let refused = |reason: String| {
        metrics::paid(goods.service, Paid::Refused);
        challenge(&till, offer, &reason, Value::Null)
    };
    let arguments = arguments?;
    let now_s = u64::try_from(ctx.clock.now_ms() / 1_000).unwrap_or(0);
    let checked = match given {
        Ok(payload) => Payments::of(ctx).readers.read(&till, offer, payload, now_s).await?.map_err(|wrong| wrong.to_string()),
        Err(reason) => Err(reason),
    };
    let signed = match checked {
        Ok(signed) => signed,
        // Nobody signed it: it is an unpaid call.
        Err(reason) => {
            Access::of(ctx).admit_unpaid(ctx, address).await?;
            return Err(refused(reason));
        }
    };
    if !Payments::of(ctx).can_settle() {
        let words = "payments cannot be settled here: no facilitator is configured (payments.facilitator_url); nothing was charged";
        return Err(Problem::new(ErrorCode::Unavailable, words).retry_after(60));
    }
    let canonical =
        commitment(&arguments).map_err(|_| Problem::new(ErrorCode::ParameterInvalid, "the arguments have no canonical form"))?;
    let request = Hash32::of_parts(&[goods.service.as_bytes(), goods.operation.as_bytes(), canonical.as_bytes()]);
    let payer = hex_text(&signed.from);
    let id = payments::id(till.network.caip, &till.asset, &payer, &hex_text(&signed.nonce));
    let claim = PaymentCommand {
        verb: CLAIM.to_owned(),
        network: till.network.caip.to_owned(),
        asset: till.asset.clone(),
        pay_to: till.pay_to.clone(),
        payer,
        nonce: hex_text(&signed.nonce),
        amount: i64::try_from(offer.micros).unwrap_or(i64::MAX),
        valid_before: i64::try_from(signed.valid_before).unwrap_or(i64::MAX),
        service: goods.service.to_owned(),
        operation: goods.operation.to_owned(),
        resource: offer.resource.clone(),
        request: hex(&request.0),
        ..PaymentCommand::default()
    };
    let order = Order { id, claim, signed, offer: offer.clone(), till: till.clone(), address, is_verified: false };
    let payment = match order.buy(ctx, |stage| run(stage, arguments.clone())).await {
        Ok(payment) => payment,
        Err(Failed::Refused(reason)) => return Err(refused(reason)),
        Err(Failed::Forbidden(problem)) => {
            metrics::paid(goods.service, Paid::Refused);
            return Err(problem);
        }
        Err(Failed::Busy) => {
            metrics::paid(goods.service, Paid::Busy);
            let reason = "this payment is being settled for an earlier copy of it";
            return Err(challenge(&till, offer, reason, Value::Null).retry_after(BUSY_S));
        }
        Err(Failed::Problem(problem)) => {
            // What may not be retried was refused before anything was claimed.
            let is_refused = problem.code == ErrorCode::RateLimited || !problem.code.may_retry();
            metrics::paid(goods.service, if is_refused { Paid::Refused } else { Paid::Unknown });
            return Err(problem);
        }
    };
    metrics::paid(goods.service, Paid::Settled);
    let settlement = Settlement { transaction: payment.transaction, network: payment.network, payer: payment.payer };
    let answer = if payment.effect.is_empty() {
        let text: String =
            read(ctx, TABLES.sources, &answer_key(&payment.id)).await?.ok_or_else(|| unknown("the answer is not at hand"))?;
        Answer { body: Body::Parts(vec![Bytes::from(text)]), etag: String::new(), next_cursor: String::new(), status: 200 }
    } else {
        run(Stage::Paid(payment.id), arguments).await?
    };
    Ok((answer, settlement))
}

/// What an operation sells: the answer of a read, or the effect of a write; the other one is empty.
fn sold(operation: &str, body: Body) -> Result<(String, String), Problem> {
    let (answer, effect) = match body {
        Body::Effect(effect) => (String::new(), effect),
        Body::Json(value) => (value.to_string(), String::new()),
        Body::Parts(parts) => (String::from_utf8(parts.concat()).unwrap_or_default(), String::new()),
        Body::Lines(_) | Body::Events(_) | Body::NotModified => (String::new(), String::new()),
    };
    if (answer.is_empty() && effect.is_empty()) || answer.len() > ANSWER_BYTES_MAX {
        tracing::error!(operation, bytes = answer.len(), "a handler gave nothing that can be sold");
        return Err(Problem::new(ErrorCode::Internal, "the answer could not be written; nothing was charged"));
    }
    Ok((answer, effect))
}

/// What is shown for free: nothing, where it cannot be told.
fn preview(previewed: Result<Answer, Problem>) -> Value {
    match previewed.map(|answer| answer.body) {
        Ok(Body::Json(value)) => value,
        _ => Value::Null,
    }
}

/// The answer to a call that is not paid for.
fn challenge(till: &Till, offer: &Offer, error: &str, preview: Value) -> Problem {
    let error = &hide_keys(error.to_owned());
    let [v1, v2] = Version::ALL.map(|version| till.challenge(version, offer, error));
    let header = STANDARD.encode(v2.to_string());
    Problem { challenge: Some(Box::new(Challenge { v1, v2, preview })), ..Problem::new(ErrorCode::PaymentRequired, error.as_str()) }
        .header("payment-required", header)
}

/// What is said while nobody knows whether a payment is settled.
pub fn unknown(why: &str) -> Problem {
    let words = format!("it is not known yet whether the payment is settled ({why}): send the same payment again, do not sign another one");
    Problem::new(ErrorCode::Unavailable, words).retry_after(ASK_AGAIN_S)
}

/// Why a payment bought nothing.
enum Failed {
    /// It was refused; another may be signed.
    Refused(String),
    /// What it is for cannot take effect: the answer to the call. Nothing is settled.
    Forbidden(Problem),
    /// A copy of it is being settled.
    Busy,
    /// Something else.
    Problem(Problem),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// One payment for one request.
struct Order {
    id: String,
    /// Without an answer and an effect until they are known.
    claim: PaymentCommand,
    signed: Signed,
    offer: Offer,
    till: Till,
    /// Where the caller is.
    address: IpAddr,
    /// Whether the facilitator said, before the claim, that the payment can be settled.
    is_verified: bool,
}

impl Order {
    /// Brings the payment forward until it is settled. `run` makes what is sold, and says once it is claimed whether it can take effect. Nothing is
    /// recorded of a payment that is not verified.
    async fn buy<R>(mut self, ctx: &Arc<Context>, run: R) -> Result<Payment, Failed>
    where
        R: Fn(Stage) -> Answering,
    {
        let known = payment(ctx, &self.id).await?;
        // What is settled needs nobody's turn.
        if let Some(payment) = &known
            && self.own(payment.clone())?.state == State::Settled
        {
            return Ok(payment.clone());
        }
        if known.is_none() && !self.till.versions.contains(&self.signed.version) {
            return Err(Failed::Refused(format!("payments of version {} are not settled here", self.signed.version.number())));
        }
        let turn = Payments::of(ctx).turn(&self.id).ok_or(Failed::Busy)?;
        let spent = Access::of(ctx).admit_payment(ctx, self.address, &self.claim.payer).await?;
        if known.is_none() {
            self.is_verified = self.verify_new(ctx).await?;
            let order = Stage::Order { payment: self.id.clone(), payer: self.claim.payer.clone() };
            (self.claim.answer, self.claim.effect) = sold(&self.claim.operation, run(order).await?.body)?;
        }
        let effect = known.as_ref().map_or(&self.claim.effect, |payment| &payment.effect);
        let claimed = (!effect.is_empty()).then(|| run(Stage::Claimed(self.id.clone())));
        let paying = tokio::spawn(self.pay(Arc::clone(ctx), turn, spent, claimed));
        match tokio::time::timeout(PAID_WITHIN, paying).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                tracing::error!(%error, "the task that settles a payment panicked");
                Err(unknown("the settlement was cut off").into())
            }
            Err(_) => Err(unknown("the settlement takes long").into()),
        }
    }

    /// Asks the facilitator about a payment that is not claimed: whether it says that the payment can be settled. Without that the payment goes on
    /// only if it turns out to be claimed or paid meanwhile. All of this is done in one slot of the verifications, so that refused payments cost the
    /// chain's node no more than they cost the facilitator.
    async fn verify_new(&self, ctx: &Context) -> Result<bool, Failed> {
        let payments = Payments::of(ctx);
        let (facilitator, _slot) = self.turn_to_verify(&payments).await?;
        match facilitator.verify(&self.till, &self.offer, &self.signed).await {
            Said::Yes(_) => Ok(true),
            Said::No(reason) => {
                // Another process may be settling a copy of it, or anybody may have brought it to the chain.
                let goes_on = payment(ctx, &self.id).await?.is_some() || self.is_on_chain(ctx).await;
                if goes_on { Ok(false) } else { Err(Failed::Refused(refusal(&reason))) }
            }
            Said::Unknown(why) => {
                let words =
                    format!("the payment could not be verified (the facilitator: {why}); nothing was charged, send the same payment again");
                Err(Problem::new(ErrorCode::Unavailable, words).retry_after(ASK_AGAIN_S).into())
            }
        }
    }

    /// The facilitator, and the slot in which it may be asked.
    async fn turn_to_verify<'a>(&self, payments: &'a Payments) -> Result<(&'a Facilitator, Slot), Problem> {
        let facilitator = payments.facilitator.as_ref().ok_or_else(|| unknown("no facilitator is configured"))?;
        Ok((facilitator, payments.verifications.enter(self.address).await?))
    }

    /// Whether the chain has the transfer of a payment that is not claimed. One request says that it has not, unless the authorization was used: that
    /// has cost somebody a transaction.
    async fn is_on_chain(&self, ctx: &Context) -> bool {
        let PaymentCommand { network, asset, pay_to, payer, nonce, amount, valid_before, .. } = self.claim.clone();
        let claimed_at = ctx.clock.now_ms();
        let payment = Payment { network, asset, pay_to, payer, nonce, amount, valid_before, claimed_at, ..Payment::default() };
        match &Payments::of(ctx).chain {
            Some(chain) if matches!(chain.is_used(&payment).await, Ok(true)) => matches!(chain.find(&payment).await, Ok(Found::Paid(_))),
            _ => false,
        }
    }

    /// Claims the payment and has it settled, while no other process does. What was spent on it is given back when it is settled, and when it is a
    /// copy of one that another process settles.
    async fn pay(self, ctx: Arc<Context>, _turn: Turn, spent: Refundable, claimed: Option<Answering>) -> Result<Payment, Failed> {
        let outcome = self.pay_by_lease(&ctx, claimed).await;
        if matches!(outcome, Ok(_) | Err(Failed::Busy)) {
            Access::of(&ctx).refund(spent).await;
        }
        outcome
    }

    async fn pay_by_lease(&self, ctx: &Context, claimed: Option<Answering>) -> Result<Payment, Failed> {
        let mut lease = Lease::new(&ctx.store, lease_of(&self.id), &hex(&rand::random::<[u8; 8]>()));
        if !lease.renew().await.map_err(store_problem)? {
            return Err(Failed::Busy);
        }
        let outcome = tokio::select! {
            outcome = self.bring_forward(ctx, claimed) => outcome,
            () = lease.lost() => Err(unknown("another process has taken it over").into()),
        };
        lease.release().await;
        outcome
    }

    async fn bring_forward(&self, ctx: &Context, claimed: Option<Answering>) -> Result<Payment, Failed> {
        let is_known = payment(ctx, &self.id).await?.is_some();
        if !is_known {
            if self.claim.answer.is_empty() && self.claim.effect.is_empty() {
                return Err(unknown("the claim is not at hand").into());
            }
            command(ctx, TABLES.view, &self.id, Once::Yes, &self.claim).await?;
        }
        let payment = payment(ctx, &self.id).await?.ok_or_else(|| unknown("the claim is not at hand"))?;
        let payment = self.own(payment)?;
        if payment.state == State::Settled {
            return Ok(payment);
        }
        let is_new = !is_known && self.is_verified;
        if !is_new && let Some(outcome) = by_chain(ctx, &payment).await? {
            return outcome;
        }
        if let Some(claimed) = claimed {
            check_effect(ctx, &payment, claimed).await?;
        }
        if is_new {
            return self.settle(ctx, payment).await;
        }
        let payments = Payments::of(ctx);
        let (facilitator, slot) = self.turn_to_verify(&payments).await?;
        match facilitator.verify(&self.till, &self.offer, &self.signed).await {
            Said::Yes(_) => {
                drop(slot);
                self.settle(ctx, payment).await
            }
            // Anybody may have brought it to the chain since it was looked up. The slot is held meanwhile.
            Said::No(reason) => match by_chain(ctx, &payment).await? {
                Some(outcome) => outcome,
                None => refuse(ctx, &payment, reason).await,
            },
            Said::Unknown(why) => Err(unknown(&format!("the facilitator: {why}")).into()),
        }
    }

    async fn settle(&self, ctx: &Context, payment: Payment) -> Result<Payment, Failed> {
        let payments = Payments::of(ctx);
        let facilitator = payments.facilitator.as_ref().ok_or_else(|| unknown("no facilitator is configured"))?;
        let mut said = Said::Unknown(String::new());
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            said = facilitator.settle(&self.till, &self.offer, &self.signed).await;
            match &said {
                Said::Yes(transaction) if Payments::of(ctx).chain.is_none() => {
                    let transfer = Transfer { transaction: transaction.clone(), ..Transfer::default() };
                    return outcome_of(record_settled(ctx, &payment, &transfer).await?);
                }
                Said::Yes(_) => return self.shown(ctx, payment).await,
                // What the chain has stands above what a facilitator says.
                Said::No(_) | Said::Unknown(_) => {
                    if let Some(outcome) = by_chain(ctx, &payment).await? {
                        return outcome;
                    }
                }
            }
        }
        match said {
            Said::No(reason) => refuse(ctx, &payment, reason).await,
            Said::Yes(why) | Said::Unknown(why) => Err(unknown(&format!("the facilitator: {why}")).into()),
        }
    }

    /// Waits until the chain shows what a facilitator says is settled.
    async fn shown(&self, ctx: &Context, payment: Payment) -> Result<Payment, Failed> {
        for _ in 0..SHOWN_WITHIN {
            if let Some(outcome) = by_chain(ctx, &payment).await? {
                return outcome;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        tracing::warn!(payment = payment.id, "the facilitator says that a payment is settled, and the chain does not show it");
        Err(unknown("the facilitator says that it is settled, the chain does not show it yet").into())
    }

    /// The payment, if it was claimed for this request and has not lapsed.
    fn own(&self, payment: Payment) -> Result<Payment, Failed> {
        let Self { claim, .. } = self;
        if payment.state == State::Lapsed {
            return Err(Failed::Refused(lapse_words(&payment.reason)));
        }
        // The resource may be told otherwise: by another surface, or under another base address. What is asked for is in the request.
        let is_own = (&payment.request, payment.amount) == (&claim.request, claim.amount);
        is_own.then_some(payment).ok_or_else(|| Failed::Refused("this payment was already used for another request".to_owned()))
    }
}

/// Ends the sale before anything is settled if what a claimed payment is for cannot take effect.
async fn check_effect(ctx: &Context, payment: &Payment, claimed: Answering) -> Result<(), Failed> {
    let Err(problem) = claimed.await else { return Ok(()) };
    if problem.code.may_retry() {
        return Err(problem.into());
    }
    // It is not sent to the facilitator to be settled. Should somebody else bring it to the chain, that is recorded.
    record_refusal(ctx, payment, &problem.detail).await?;
    Err(Failed::Forbidden(problem))
}

/// The name of the lease under which a payment is brought forward.
pub(super) fn lease_of(id: &str) -> String {
    format!("payment/{id}")
}

/// What the chain decides; `None` while it has nothing, or does not say.
async fn by_chain(ctx: &Context, payment: &Payment) -> Result<Option<Result<Payment, Failed>>, Problem> {
    let payments = Payments::of(ctx);
    let Some(chain) = payments.chain.as_ref().filter(|chain| chain.has(payment)) else { return Ok(None) };
    Ok(match chain.find(payment).await {
        Ok(Found::Paid(transfer)) => Some(outcome_of(record_settled(ctx, payment, &transfer).await?)),
        Ok(Found::Spent) => Some(lapsed(ctx, payment, SPENT).await),
        Ok(Found::Late) => Some(lapsed(ctx, payment, LATE).await),
        Ok(Found::Unknown) | Err(_) => None,
    })
}

/// Why a payment has lapsed whose authorization was used otherwise.
pub(super) const SPENT: &str = "its nonce was used for another transfer";
/// Why a payment has lapsed that nobody settled.
pub(super) const LATE: &str = "it was not settled while it was valid";

/// What a payment comes to whose transfer was recorded: it lapses where the transfer already paid for another one.
fn outcome_of(payment: Payment) -> Result<Payment, Failed> {
    match payment.state {
        State::Settled => Ok(payment),
        State::Lapsed => Err(Failed::Refused(lapse_words(&payment.reason))),
        State::Claimed | State::Refused => Err(unknown("it is settled and not yet recorded").into()),
    }
}

/// Records that a transfer pays for a payment. The payment as it is then: settled, or lapsed if the transfer already paid for another one.
pub(super) async fn record_settled(ctx: &Context, of: &Payment, transfer: &Transfer) -> Result<Payment, Problem> {
    let Payment { payer, network, service, operation, effect, .. } = of.clone();
    let Transfer { transaction, log_index, receipt_log_index } = transfer.clone();
    let transferred = PaymentCommand { transaction, log_index, receipt_log_index, ..PaymentCommand::default() };
    let done = PaymentCommand { verb: SETTLED.to_owned(), payer, network, service, operation, effect, ..transferred };
    command(ctx, TABLES.view, &of.id, Once::No, &done).await?;
    let payment = payment(ctx, &of.id).await?.ok_or_else(|| unknown("it is settled and not yet recorded"))?;
    if payment.state == State::Lapsed {
        tracing::warn!(
            payment = payment.id,
            transaction = payment.transaction,
            "a transfer was named by two payments, it pays for the first one"
        );
        // Whoever reads the commands alone learns of it, too.
        lapse(ctx, &payment, &payment.reason).await?;
    }
    Ok(payment)
}

/// Records that the money can no longer move.
pub(super) async fn lapse(ctx: &Context, of: &Payment, reason: &str) -> Result<(), Problem> {
    let done = PaymentCommand { verb: LAPSED.to_owned(), reason: reason.to_owned(), ..PaymentCommand::default() };
    command(ctx, TABLES.view, &of.id, Once::No, &done).await
}

async fn lapsed(ctx: &Context, payment: &Payment, reason: &str) -> Result<Payment, Failed> {
    lapse(ctx, payment, reason).await?;
    Err(Failed::Refused(lapse_words(reason)))
}

fn lapse_words(reason: &str) -> String {
    format!("this payment has lapsed: {reason}")
}

/// What a buyer is told of a facilitator's no.
fn refusal(reason: &str) -> String {
    format!("the facilitator refuses the payment: {reason}")
}

/// Records a facilitator's no. The payment is looked after until it lapses: it may be settled all the same.
async fn refuse(ctx: &Context, payment: &Payment, reason: String) -> Result<Payment, Failed> {
    record_refusal(ctx, payment, &reason).await?;
    Err(Failed::Refused(refusal(&reason)))
}

/// Records that a payment was refused.
async fn record_refusal(ctx: &Context, payment: &Payment, reason: &str) -> Result<(), Problem> {
    let done = PaymentCommand { verb: REFUSED.to_owned(), reason: reason.to_owned(), ..PaymentCommand::default() };
    command(ctx, TABLES.view, &payment.id, Once::No, &done).await
}

/// A payment as it stands.
async fn payment(ctx: &Context, id: &str) -> Result<Option<Payment>, Problem> {
    Ok(read::<Row<Payment>>(ctx, TABLES.records, id).await?.map(|row| row.record))
}

async fn read<T: DeserializeOwned>(ctx: &Context, table: &'static schemas::tables::Table, id: &str) -> Result<Option<T>, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let row = view.get(table, &key![id]).await.map_err(store_problem)?;
    row.map(|bytes| stored(table, &bytes)).transpose()
}
