//! Pieces of text that are written once and read often.

/// `N` pieces of text in one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces<const N: usize> {
    /// The pieces, one after another.
    text: Box<str>,
    /// Where each piece ends in the text.
    ends: [usize; N],
}

impl<const N: usize> Pieces<N> {
    /// Writes the pieces: `write` adds the piece with a position to a text. It must add UTF-8, else all pieces are empty.
    pub(crate) fn written(mut write: impl FnMut(usize, &mut Vec<u8>)) -> Self {
        let (mut text, mut ends) = (Vec::with_capacity(128), [0; N]);
        for (at, end) in ends.iter_mut().enumerate() {
            write(at, &mut text);
            *end = text.len();
        }
        Self { text: String::from_utf8(text).unwrap_or_default().into(), ends }
    }

    /// The piece with a position; empty if there is none.
    pub(crate) fn piece(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(at).copied().unwrap_or_default();
        self.text.as_bytes().get(start..end).unwrap_or_default()
    }

    /// How many bytes the pieces up to the one with a position have, with that one.
    pub(crate) fn bytes_to(&self, at: usize) -> usize {
        self.ends.get(at).copied().unwrap_or_default()
    }

    /// How many bytes all pieces have.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each piece is read back, also an empty one, that there is none after the last one, and how many bytes the pieces have.
    #[test]
    fn pieces_are_read_back() {
        let pieces = Pieces::<3>::written(|at, out| out.extend_from_slice(["first", "", "third"][at].as_bytes()));
        let read: Vec<&[u8]> = (0..4).map(|at| pieces.piece(at)).collect();
        assert_eq!(read, [&b"first"[..], b"", b"third", b""]);
        assert_eq!((pieces.bytes_to(0), pieces.bytes_to(1), pieces.bytes_to(2), pieces.bytes()), (5, 5, 10, 10));
    }

    /// Proves that bytes that are no text give empty pieces.
    #[test]
    fn other_bytes_are_no_pieces() {
        let pieces = Pieces::<1>::written(|_, out| out.push(0xff));
        assert_eq!((pieces.piece(0), pieces.bytes()), (&b""[..], 0));
    }
}
