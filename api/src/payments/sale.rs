//! The sale of one answer: the challenge, the admission, the verification, the claim, the settlement, the answer.
//!
//! Nothing is recorded before the facilitator has said that a payment can be settled. What a payment is for is worked out before it is claimed, and
//! nothing of it leaves before it is settled. Claiming and settling go on when the caller hangs up, verifying does not. Only one process at a time
//! claims and settles a payment, by a lease; the next one asks the chain first.

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
use super::facilitator::Said;
use super::signed::{self, Signed, hex_text};
use super::terms::{NETWORKS, Offer, Till, Version};
use crate::access::Refundable;
use crate::access::append::{Once, command};
use crate::access::keys;
use crate::context::{Context, store_problem, stored};
use crate::operation::{Answer, Answering, Body, Stage};
use crate::problem::{Challenge, Problem};
use crate::surfaces::metrics::{self, Paid};

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
pub(crate) struct Goods {
    /// The service's name.
    pub(crate) service: &'static str,
    /// The operation's name.
    pub(crate) operation: &'static str,
    /// Terms of it.
    pub(crate) offer: Offer,
    /// What a key must be of to need no payment.
    pub(crate) free_from: &'static str,
}

/// A payment as it came with a call: its payload, or why that cannot be read.
pub(crate) type Given = Result<Value, String>;

/// What a buyer is told of the money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settlement {
    transaction: String,
    network: String,
    payer: String,
}

impl Settlement {
    /// As a version has it.
    pub(crate) fn document(&self, version: Version) -> Value {
        let own = NETWORKS.iter().find(|network| network.caip == self.network);
        let network = own.map_or(self.network.as_str(), |network| network.name_in(version));
        json!({ "success": true, "transaction": self.transaction, "network": network, "payer": self.payer })
    }

    /// The headers of an answer that was paid for.
    pub(crate) fn headers(&self) -> [(&'static str, String); 2] {
        [("x-payment-response", Version::V1), ("payment-response", Version::V2)]
            .map(|(name, version)| (name, STANDARD.encode(self.document(version).to_string())))
    }
}

/// Sells an answer to a caller at an address. `run` runs the operation.
///
/// # Errors
/// `payment-required` with the terms (with a pause for a copy of a payment that is being settled); what is wrong with the arguments, or with the
/// answer; `rate-limited` when too many payments of the address or the payer were not settled; `unavailable` while nobody knows whether the payment
/// is settled.
pub(crate) async fn sell<R>(
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
    let Some(till) = ctx.payments.till().cloned() else {
        return Err(Problem::new(ErrorCode::PaymentRequired, format!("{needed}; payments are not configured here")));
    };
    let Some(given) = given else {
        let preview = match arguments {
            Ok(arguments) => preview(run(Stage::Preview, arguments).await),
            Err(_) => Value::Null,
        };
        metrics::paid(goods.service, Paid::Asked);
        return Err(challenge(&till, offer, &needed, preview));
    };
    let refused = |reason: String| {
        metrics::paid(goods.service, Paid::Refused);
        challenge(&till, offer, &reason, Value::Null)
    };
    let arguments = arguments?;
    let now_s = u64::try_from(ctx.clock.now_ms() / 1_000).unwrap_or(0);
    let signed =
        given.and_then(|payload| signed::read(&till, offer, payload, now_s).map_err(|wrong| wrong.to_string())).map_err(refused)?;
    if !ctx.payments.can_settle() {
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
            let is_limited = problem.code == ErrorCode::RateLimited;
            metrics::paid(goods.service, if is_limited { Paid::Refused } else { Paid::Unknown });
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
    let error = &keys::hidden(error.to_owned());
    let [v1, v2] = Version::ALL.map(|version| till.challenge(version, offer, error));
    let header = STANDARD.encode(v2.to_string());
    Problem { challenge: Some(Box::new(Challenge { v1, v2, preview })), ..Problem::new(ErrorCode::PaymentRequired, error.as_str()) }
        .header("payment-required", header)
}

/// What is said while nobody knows whether a payment is settled.
pub(crate) fn unknown(why: &str) -> Problem {
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
        let turn = ctx.payments.turn(&self.id).ok_or(Failed::Busy)?;
        let spent = ctx.access.admit_payment(ctx, self.address, &self.claim.payer).await?;
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
    /// only if it turns out to be claimed or paid meanwhile.
    async fn verify_new(&self, ctx: &Context) -> Result<bool, Failed> {
        match self.verify(ctx).await? {
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

    /// What the facilitator says of the payment, once it is this address's turn to ask.
    async fn verify(&self, ctx: &Context) -> Result<Said, Failed> {
        let facilitator = ctx.payments.facilitator.as_ref().ok_or_else(|| unknown("no facilitator is configured"))?;
        let _slot = ctx.payments.verifications.enter(self.address).await?;
        Ok(facilitator.verify(&self.till, &self.offer, &self.signed).await)
    }

    /// Whether the chain has the transfer of a payment that is not claimed.
    async fn is_on_chain(&self, ctx: &Context) -> bool {
        let PaymentCommand { network, asset, pay_to, payer, nonce, amount, valid_before, .. } = self.claim.clone();
        let claimed_at = ctx.clock.now_ms();
        let payment = Payment { network, asset, pay_to, payer, nonce, amount, valid_before, claimed_at, ..Payment::default() };
        match &ctx.payments.chain {
            Some(chain) => matches!(chain.find(&payment).await, Ok(Found::Paid(_))),
            None => false,
        }
    }

    /// Claims the payment and has it settled, while no other process does. What was spent on it is given back when it is settled, and when it is a
    /// copy of one that another process settles.
    async fn pay(self, ctx: Arc<Context>, _turn: Turn, spent: Refundable, claimed: Option<Answering>) -> Result<Payment, Failed> {
        let outcome = self.pay_by_lease(&ctx, claimed).await;
        if matches!(outcome, Ok(_) | Err(Failed::Busy)) {
            ctx.access.refund(spent).await;
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
        match self.verify(ctx).await? {
            Said::Yes(_) => self.settle(ctx, payment).await,
            // Anybody may have brought it to the chain.
            Said::No(reason) => match by_chain(ctx, &payment).await? {
                Some(outcome) => outcome,
                None => refuse(ctx, &payment, reason).await,
            },
            Said::Unknown(why) => Err(unknown(&format!("the facilitator: {why}")).into()),
        }
    }

    async fn settle(&self, ctx: &Context, payment: Payment) -> Result<Payment, Failed> {
        let facilitator = ctx.payments.facilitator.as_ref().ok_or_else(|| unknown("no facilitator is configured"))?;
        let mut said = Said::Unknown(String::new());
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            said = facilitator.settle(&self.till, &self.offer, &self.signed).await;
            match &said {
                Said::Yes(transaction) if ctx.payments.chain.is_none() => {
                    let transfer = Transfer { transaction: transaction.clone(), log_index: None };
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
    let Some(chain) = ctx.payments.chain.as_ref().filter(|chain| chain.has(payment)) else { return Ok(None) };
    Ok(match chain.find(payment).await {
        Ok(Found::Paid(transfer)) => Some(outcome_of(record_settled(ctx, payment, &transfer).await?)),
        Ok(Found::Spent) => Some(lapsed(ctx, payment, SPENT).await),
        Ok(Found::Late) => Some(lapsed(ctx, payment, LATE).await),
        Ok(Found::Nothing) | Err(_) => None,
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
    let Transfer { transaction, log_index } = transfer.clone();
    let verb = SETTLED.to_owned();
    let done = PaymentCommand { verb, payer, network, service, operation, effect, transaction, log_index, ..PaymentCommand::default() };
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
