//! Payments: a signed authorization is claimed for one request, and is then settled, refused or lapses. What was settled stays settled.

use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::topics::{CHANGES_PAYMENTS, PAYMENTS, Topic};
use schemas::views::payments::{CLAIM, LAPSED, Payment, PaymentCommand, REFUSED, SETTLED, State as Became, TABLES, answer_of};
use schemas::views::records::RecordTables;

use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// The two folds of the payments.
pub type Payments = Records<PaymentsRules>;

/// What the service states.
pub struct PaymentsRules;

impl Rules for PaymentsRules {
    type Fact = PaymentCommand;
    type Record = Payment;

    const NAME: &'static str = "payments";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[PAYMENTS];
    const CHANGES: &'static Topic = &CHANGES_PAYMENTS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<PaymentCommand>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<PaymentCommand>) -> Vec<Read> {
        vec![Read::Record(fact.key.clone())]
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<PaymentCommand>) -> Result<(), Undecided> {
        let Some(command) = fact.data.as_ref().filter(|_| fact.kind == FactKind::Observed) else { return Ok(()) };
        let moved = match (command.verb.as_str(), state.record(&fact.key)?) {
            (CLAIM, None) => {
                if !command.answer.is_empty() {
                    state.remember(&answer_of(&fact.key), Some(&command.answer))?;
                }
                claimed(fact, command)
            }
            (SETTLED, Some(payment)) if payment.state != Became::Settled => {
                Payment { state: Became::Settled, transaction: command.transaction.clone(), reason: String::new(), ..payment }
            }
            (REFUSED, Some(payment)) if payment.state == Became::Claimed => {
                Payment { state: Became::Refused, reason: command.reason.clone(), ..payment }
            }
            (LAPSED, Some(payment)) if matches!(payment.state, Became::Claimed | Became::Refused) => {
                Payment { state: Became::Lapsed, reason: command.reason.clone(), ..payment }
            }
            // A payment is claimed once, and what is known of it already is no news.
            (CLAIM | SETTLED | REFUSED | LAPSED, Some(_)) => return Ok(()),
            (SETTLED | REFUSED | LAPSED, None) => return Err(Undecided::Poison("no such payment was claimed".to_owned())),
            (verb, _) => return Err(Undecided::Poison(format!("verb {verb} is unknown"))),
        };
        state.put(moved)
    }
}

fn claimed(fact: &Fact<PaymentCommand>, command: &PaymentCommand) -> Payment {
    let command = command.clone();
    Payment {
        id: fact.key.clone(),
        state: Became::Claimed,
        network: command.network,
        asset: command.asset,
        pay_to: command.pay_to,
        payer: command.payer,
        nonce: command.nonce,
        amount: command.amount,
        valid_before: command.valid_before,
        service: command.service,
        operation: command.operation,
        resource: command.resource,
        request: command.request,
        effect: command.effect,
        transaction: String::new(),
        reason: String::new(),
        claimed_at: fact.observed_at,
    }
}
