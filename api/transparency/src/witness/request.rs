//! The body of an `add-checkpoint` request (C2SP tlog-witness): the old size, the consistency proof, an empty line, the checkpoint.

use crate::note::decimal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofs::hash::Hash32;

/// The longest consistency proof that is accepted, in lines.
pub(super) const PROOF_LINES_MAX: usize = 63;
/// The start of the first line.
const OLD: &str = "old ";

/// A submitted checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AddCheckpoint<'a> {
    /// The number of leaves of the tree that the witness cosigned last.
    pub(super) old: u64,
    /// The proof that the checkpoint's tree holds that tree.
    pub(super) proof: Vec<Hash32>,
    /// The checkpoint, a signed note.
    pub(super) note: &'a str,
}

impl<'a> AddCheckpoint<'a> {
    /// Reads a body; `None` if it does not have the form of a request.
    pub(super) fn parse(body: &'a str) -> Option<Self> {
        let (head, note) = body.split_once("\n\n")?;
        let mut lines = head.split('\n');
        let old = decimal(lines.next()?.strip_prefix(OLD)?)?;
        let hash = |line: &str| STANDARD.decode(line).ok()?.try_into().ok().map(Hash32);
        // One more than are taken is enough to refuse them.
        let proof: Vec<Hash32> = lines.take(PROOF_LINES_MAX + 1).map(hash).collect::<Option<_>>()?;
        (proof.len() <= PROOF_LINES_MAX).then_some(Self { old, proof, note })
    }

    /// Writes the body.
    pub(super) fn body(&self) -> String {
        let mut body = format!("{OLD}{}\n", self.old);
        for hash in &self.proof {
            body.push_str(&STANDARD.encode(hash.0));
            body.push('\n');
        }
        body.push('\n');
        body.push_str(self.note);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    const EXAMPLE: &str = "old 20852014
PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=
jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=
5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=
/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=

example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
";

    /// Proves that the specification's example is read and written again to the byte, and a request without a proof as well.
    #[test]
    fn example_of_the_specification() {
        let read = AddCheckpoint::parse(EXAMPLE).unwrap();
        assert_eq!((read.old, read.proof.len()), (20_852_014, 4));
        assert!(read.note.starts_with("example.com/behind-the-sofa\n") && read.note.ends_with("YQ8=\n"));
        assert_eq!(read.body(), EXAMPLE);
        let first = AddCheckpoint { old: 0, proof: Vec::new(), note: read.note };
        assert_eq!(AddCheckpoint::parse(&first.body()), Some(first));
    }

    /// Proves that other forms are refused: no size, one with a sign, zeros or too large, lines that are no hashes, more lines than are allowed.
    #[test]
    fn other_forms_are_refused() {
        let line = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n";
        let many = |lines: usize| format!("old 1\n{}\nx\n", line.repeat(lines));
        assert_eq!(AddCheckpoint::parse(&many(PROOF_LINES_MAX)).unwrap().proof.len(), PROOF_LINES_MAX);
        assert_eq!(AddCheckpoint::parse(&many(PROOF_LINES_MAX + 1)), None);
        for (from, to) in [
            ("old 20852014", "20852014"),
            ("old 20852014", "old  20852014"),
            ("old 20852014", "old 020852014"),
            ("old 20852014", "old +20852014"),
            ("old 20852014", "old -1"),
            ("old 20852014", "old "),
            ("old 20852014", "old 20852014\r"),
            ("old 20852014", "old 9223372036854775808"),
            ("PlRN", "PlR"),
            ("Kj/0=", "Kj/0"),
            ("Kj/0=", "Kj/1="),
            ("PlRN", "PlRNAAAA"),
        ] {
            assert_eq!(AddCheckpoint::parse(&EXAMPLE.replacen(from, to, 1)), None, "{from:?} to {to:?}");
        }
        for body in ["", "old 0", "old 0\n", "\n\nold 0\n"] {
            assert_eq!(AddCheckpoint::parse(body), None, "{body:?}");
        }
    }
}
