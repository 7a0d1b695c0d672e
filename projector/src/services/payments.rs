//! Payments: a signed authorization is claimed for one request, and is then settled, refused or lapses. A settled payment remains settled,
//! and a transfer settles one payment.

use schemas::avro;
use schemas::event::Fact;
use schemas::topics::{CHANGES_PAYMENTS, PAYMENTS, Topic};
use schemas::views::payments::{Claim, Payment, PaymentCommand, State as PaymentState, TABLES, TransferKeys, answer_key, transfer_keys};
use schemas::views::records::RecordTables;

use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;
use fold::transfers::claim_transfer;

/// The payments service.
pub type Payments = Records<PaymentsRules>;

/// The rules of the payments service.
pub struct PaymentsRules;

impl Rules for PaymentsRules {
    type Fact = PaymentCommand;
    type Record = Payment;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[PAYMENTS];
    const CHANGES: &'static Topic = &CHANGES_PAYMENTS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<PaymentCommand>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<PaymentCommand>) -> Vec<DecisionRow> {
        let transfer = match &fact.data {
            Some(PaymentCommand::Settled(settlement)) => transfer_keys(settlement).unwrap_or_default(),
            _ => TransferKeys::default(),
        };
        let rows = transfer.all().map(|key| DecisionRow::State(key.to_owned()));
        rows.chain([DecisionRow::Record(fact.key.clone())]).collect()
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<PaymentCommand>) -> Result<(), Undecided> {
        let Some(command) = fact.observed() else { return Ok(()) };
        let changed = match (command, state.record(&fact.key)?) {
            (PaymentCommand::Claim(claim), None) => {
                if !claim.answer.is_empty() {
                    state.remember(&answer_key(&fact.key), Some(&claim.answer))?;
                }
                new_payment(fact, claim)
            }
            (PaymentCommand::Settled(settlement), Some(payment)) => {
                let is_payer = claim_transfer(state, &fact.key, &transfer_keys(settlement).unwrap_or_default())?;
                match payment.state {
                    PaymentState::Settled => return Ok(()),
                    _ if is_payer => Payment {
                        state: PaymentState::Settled,
                        transaction: settlement.transaction.clone(),
                        log_index: settlement.log_index,
                        reason: String::new(),
                        ..payment
                    },
                    PaymentState::Lapsed => return Ok(()),
                    _ => Payment {
                        state: PaymentState::Lapsed,
                        reason: "its transfer already paid for another answer".to_owned(),
                        ..payment
                    },
                }
            }
            (PaymentCommand::Refused { reason }, Some(payment)) if payment.state == PaymentState::Claimed => {
                Payment { state: PaymentState::Refused, reason: reason.clone(), ..payment }
            }
            (PaymentCommand::Lapsed { reason }, Some(payment)) if payment.state.is_open() => {
                Payment { state: PaymentState::Lapsed, reason: reason.clone(), ..payment }
            }
            (PaymentCommand::Unknown { verb }, _) => return Err(Undecided::Poison(format!("verb {verb} is unknown"))),
            (_, None) => return Err(Undecided::Poison("no such payment was claimed".to_owned())),
            // A payment is claimed once; a command that changes nothing publishes nothing.
            (_, Some(_)) => return Ok(()),
        };
        state.put(changed)
    }
}

fn new_payment(fact: &Fact<PaymentCommand>, claim: &Claim) -> Payment {
    let claim = claim.clone();
    Payment {
        id: fact.key.clone(),
        state: PaymentState::Claimed,
        network: claim.network,
        asset: claim.asset,
        pay_to: claim.pay_to,
        payer: claim.payer,
        nonce: claim.nonce,
        amount: claim.amount,
        valid_before: claim.valid_before,
        service: claim.service,
        operation: claim.operation,
        resource: claim.resource,
        request: claim.request,
        effect: claim.effect,
        transaction: String::new(),
        log_index: None,
        reason: String::new(),
        claimed_at: fact.observed_at,
    }
}

#[cfg(test)]
mod tests {
    use schemas::event::FactKind;
    use schemas::views::payments::Settlement;

    use super::*;
    use fold::testing::{self, Folded};

    /// Decides commands in turn. Each call returns the payment if the command changed it.
    #[derive(Default)]
    struct Decisions(Folded<Payments>);

    impl Decisions {
        fn decide(&mut self, payment: &str, command: PaymentCommand) -> Option<Payment> {
            let fact = testing::fact(payment, FactKind::Observed, 1, Some(command));
            let before = self.0.changes.len();
            self.0.decide(&Fact { upstream: "api".to_owned(), ..fact });
            self.0.changes[before..].iter().find_map(|change| change.after.clone())
        }

        fn claim(&mut self, payment: &str) {
            self.decide(payment, PaymentCommand::Claim(Box::default())).unwrap();
        }

        /// Settles a payment by a transfer with a block log index and a receipt log index; older versions do not name the latter.
        fn settle(&mut self, payment: &str, transaction: &str, log_index: Option<i64>, receipt_log_index: Option<i64>) -> Option<Payment> {
            let (network, transaction) = ("eip155:8453".to_owned(), transaction.to_owned());
            let settlement = Settlement { network, transaction, log_index, receipt_log_index, ..Settlement::default() };
            self.decide(payment, PaymentCommand::Settled(Box::new(settlement)))
        }
    }

    /// Proves that a transfer settles only the first payment that names it, whatever the letter case of its hash and the position of the
    /// transaction in its block; that transfers with different receipt log indices are different; and that a payment without a known transfer
    /// is settled by the facilitator's word.
    #[test]
    fn a_transfer_settles_one_payment() {
        let mut decisions = Decisions::default();
        for payment in ["pay_1", "pay_2", "pay_3", "pay_4", "pay_5"] {
            decisions.claim(payment);
        }
        let first = decisions.settle("pay_1", "0xAB", Some(7), Some(1)).unwrap();
        assert_eq!((first.state, first.log_index), (PaymentState::Settled, Some(7)));
        for log_index in [7, 19] {
            let second = decisions.settle("pay_2", "0xab", Some(log_index), Some(1));
            let lapsed = second.map(|second| (second.state, second.reason, second.log_index));
            let expected = (PaymentState::Lapsed, "its transfer already paid for another answer".to_owned(), None);
            assert_eq!(lapsed, Some(expected).filter(|_| log_index == 7), "a lapsed payment remains lapsed");
        }
        assert_eq!(decisions.settle("pay_1", "0xab", Some(7), Some(1)), None, "a settled payment remains settled");
        // The transaction moved within its block: another transfer now has the block log index of the first one.
        assert_eq!(decisions.settle("pay_3", "0xab", Some(7), Some(3)).unwrap().state, PaymentState::Settled);
        for payment in ["pay_4", "pay_5"] {
            assert_eq!(decisions.settle(payment, "0xab", None, None).unwrap().state, PaymentState::Settled);
        }
    }

    /// Proves that a transfer stored under the key of an older version pays for no other payment after the upgrade, and still for its own.
    #[test]
    fn a_transfer_of_an_older_version_settles_one_payment() {
        let mut decisions = Decisions::default();
        for payment in ["pay_1", "pay_2", "pay_3"] {
            decisions.claim(payment);
        }
        assert_eq!(decisions.settle("pay_1", "0xAB", Some(7), None).unwrap().state, PaymentState::Settled);
        assert_eq!(decisions.settle("pay_1", "0xab", Some(7), Some(1)), None, "it remains settled by its own transfer");
        assert_eq!(decisions.settle("pay_2", "0xab", Some(7), Some(1)).unwrap().state, PaymentState::Lapsed);
        assert_eq!(decisions.settle("pay_3", "0xab", Some(9), Some(3)).unwrap().state, PaymentState::Settled);
    }
}
