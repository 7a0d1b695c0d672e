//! Numbers in seven bits a byte: small ones take one byte.

/// Writes a number in seven bits a byte.
pub(super) fn write_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 1 << 7 {
        out.push(number as u8 | 1 << 7);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what [`write_number`] wrote; `None` at the end.
pub(super) fn read_number(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    let (mut number, mut shift) = (0_u32, 0);
    loop {
        let byte = match bytes.next() {
            Some(byte) => *byte,
            None if shift == 0 => return None,
            None => return Some(number),
        };
        number |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
        shift += 7;
        if byte >> 7 == 0 {
            return Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that numbers of any size are read as they were written, and that a number that was cut is not read beyond its end.
    #[test]
    fn numbers_are_read_as_written() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, u32::MAX - 1, u32::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| write_number(&mut bytes, *number));
        let mut input = bytes.iter();
        assert_eq!(std::iter::from_fn(|| read_number(&mut input)).collect::<Vec<u32>>(), numbers);
        assert_eq!((read_number(&mut [0x81].iter()), read_number(&mut [].iter())), (Some(1), None));
    }
}
