//! Parcels of Allegheny County, Pennsylvania: their numbers (PINs), and the block-lots of its courts.

/// The county as answers name it.
pub const COUNTY: &str = "allegheny-pa";
/// The characters of a PIN.
pub const PIN_CHARS: usize = 16;
/// The longest part of a block-lot that a PIN has room for: map, lot, and what follows the lot.
const PARTS_CHARS_MAX: [usize; 3] = [4, 5, 6];
/// Reads a PIN as people write it: 16 characters, or with dashes (`0028-F-00194-0000-00`).
///
/// # Errors
/// What is wrong with the text, in words that follow the name of the parameter.
pub fn parse_pin(text: &str) -> Result<String, &'static str> {
    let pin: String = text.trim().chars().filter(|letter| *letter != '-').map(|letter| letter.to_ascii_uppercase()).collect();
    if pin.chars().count() != PIN_CHARS {
        return Err("a PIN of Allegheny County has 16 characters, such as 0028F00194000000");
    }
    if !is_pin(&pin) {
        return Err("a PIN of Allegheny County has 4 digits, a letter, 5 digits, and 6 digits or letters, such as 0028F00194000000");
    }
    Ok(pin)
}

fn is_pin(pin: &str) -> bool {
    let is_right = |(at, letter): (usize, u8)| match at {
        4 => letter.is_ascii_uppercase(),
        0..=9 => letter.is_ascii_digit(),
        _ => letter.is_ascii_digit() || letter.is_ascii_uppercase(),
    };
    pin.len() == PIN_CHARS && pin.bytes().enumerate().all(is_right)
}

/// The parts of a block-lot: map, letter of the block, lot, and what follows it. `None` if the text has another form.
fn block_lot_parts(text: &str) -> Option<(String, char, String, String)> {
    let text = text.trim().to_ascii_uppercase();
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    // Between the map and the letter, or between the letter and the lot, there is nothing, a dash or a blank; not both of them.
    let gap = |text: &str| usize::from(text.starts_with(['-', ' ']));
    let (map, rest) = text.split_at(digits(&text));
    let is_apart = rest.starts_with(' ');
    let rest = &rest[gap(rest)..];
    let letter = rest.chars().next().filter(char::is_ascii_uppercase)?;
    let rest = &rest[1..];
    let rest = &rest[gap(rest)..];
    let (lot, rest) = rest.split_at(digits(rest));
    let tail = match rest.strip_prefix([' ', '-']) {
        Some(tail) => tail,
        None if rest.is_empty() => "",
        None => return None,
    };
    let fits = [map, lot, tail].iter().zip(PARTS_CHARS_MAX).all(|(part, most)| part.len() <= most);
    // A dash separates what is the fourth part of the PIN from what is the fifth: `9-2`.
    let (fourth, fifth) = tail.split_once('-').unwrap_or((tail, "0"));
    let is_part = |part: &str| part.bytes().all(|letter| letter.is_ascii_digit() || letter.is_ascii_uppercase());
    let is_tail = is_part(fourth) && is_part(fifth) && !fifth.is_empty() && (tail.is_empty() || !fourth.is_empty());
    // A map that is apart from its letter is written from the left: `2 E1` is in map 2000.
    let map = if is_apart { format!("{map:0<4}") } else { format!("{map:0>4}") };
    (fits && is_tail && map != "0000" && !lot.is_empty()).then(|| (map, letter, lot.to_owned(), tail.to_owned()))
}

/// The PINs that a block-lot of a court can mean, the most usual first; none if the text has another form. What follows the lot can be the fourth part of
/// a PIN, its fifth, or both (`232L374 2`, `233J211 2` and `99B175 21`), so only a PIN that a parcel has is right.
#[must_use]
pub fn pins_of_block_lot(text: &str) -> Vec<String> {
    let Some((map, letter, lot, tail)) = block_lot_parts(text) else { return Vec::new() };
    let mut pins: Vec<String> = Vec::new();
    let mut add = |fourth: &str, fifth: &str| {
        let pin = format!("{map}{letter}{lot:0>5}{fourth:0>4}{fifth:0>2}");
        if is_pin(&pin) && !pins.contains(&pin) {
            pins.push(pin);
        }
    };
    if let Some((fourth, fifth)) = tail.split_once('-') {
        if fourth.len() <= 4 && fifth.len() <= 2 {
            add(fourth, fifth);
        }
        return pins;
    }
    if tail.len() <= 4 {
        add(&tail, "");
    }
    if tail.len() <= 2 {
        add("", &tail);
    }
    // Zeros at the end of letters were added by those who wrote it.
    let short = tail.trim_end_matches('0');
    if short.len() < tail.len() && short.bytes().any(|letter| letter.is_ascii_uppercase()) {
        add(short, "");
    }
    for split in 1..tail.len() {
        let (fourth, fifth) = tail.split_at(split);
        if fourth.len() <= 4 && fifth.len() <= 2 {
            add(fourth, fifth);
        }
    }
    pins
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Proves which texts are PINs, and what is said about the others.
    #[test]
    fn pins() {
        for text in ["0028F00194000000", "0028-F-00194-0000-00", " 0028f00194000000 "] {
            assert_eq!(parse_pin(text).as_deref(), Ok("0028F00194000000"), "{text}");
        }
        assert_eq!(parse_pin("0236G00099000A00").as_deref(), Ok("0236G00099000A00"));
        for (text, words) in [
            ("16012160010000", "16 characters"),
            ("", "16 characters"),
            ("0028F0019400000", "16 characters"),
            ("00280001940000000", "16 characters"),
            ("0028000194000000", "a letter"),
            ("0028F0019400000\u{661}", "a letter"),
            ("0028F001940 0000", "a letter"),
        ] {
            assert!(parse_pin(text).unwrap_err().contains(words), "{text}");
        }
    }

    /// Proves that the only parcel that exists is found, for each way in which what follows the lot is written, and that other forms mean no PIN.
    #[test]
    fn block_lots() {
        let cases = [
            ("1360a268", "1360A00268000000"),
            ("352B94", "0352B00094000000"),
            ("159C221", "0159C00221000000"),
            ("159D250", "0159D00250000000"),
            ("2014E81", "2014E00081000000"),
            ("233F181", "0233F00181000000"),
            ("214G46", "0214G00046000000"),
            ("558H67", "0558H00067000000"),
            ("2013J377", "2013J00377000000"),
            ("214L128", "0214L00128000000"),
            ("430M330", "0430M00330000000"),
            ("215N56", "0215N00056000000"),
            ("161P50", "0161P00050000000"),
            ("214R184", "0214R00184000000"),
            ("161S334", "0161S00334000000"),
            ("232L374 2", "0232L00374000200"),
            ("233J211 2", "0233J00211000002"),
            ("214L167 1", "0214L00167000100"),
            ("236G99 A", "0236G00099000A00"),
            ("160A154 307", "0160A00154030700"),
            ("160A132 104", "0160A00132010400"),
            ("160J60 708", "0160J00060070800"),
            ("329G20 27D", "0329G00020027D00"),
            ("58P100 T1", "0058P0010000T100"),
            ("215J110 01", "0215J00110000001"),
            ("307G395 99", "0307G00395000909"),
            ("99B175 21", "0099B00175000201"),
            ("10G235 21", "0010G00235000201"),
            ("236G132 A000", "0236G00132000A00"),
            ("37N210 A463", "0037N00210A46300"),
            ("100C50 4099", "0100C00050409900"),
            ("2 E1", "2000E00001000000"),
            ("968-C-147", "0968C00147000000"),
            ("887N398 9-2", "0887N00398000902"),
        ];
        let existing: BTreeSet<&str> = cases.iter().map(|(_, pin)| *pin).collect();
        for (text, pin) in cases {
            let found: Vec<String> = pins_of_block_lot(text).into_iter().filter(|pin| existing.contains(pin.as_str())).collect();
            assert_eq!(found, [pin], "{text}");
        }
        for text in [
            "887N398 9-",
            "887N398 -2",
            "887N398 9-2-1",
            "887N398 9-212",
            "296- N-1-1",
            "",
            "H67",
            "558H",
            "558H67/2",
            "12345A1",
            "558H123456",
            "558H67 1234567",
            "558H67 a\u{e9}",
            "0A1",
        ] {
            assert_eq!(pins_of_block_lot(text), Vec::<String>::new(), "{text}");
        }
    }

    /// Proves that candidates are PINs and differ, whatever is written.
    #[test]
    fn candidates_are_pins() {
        for tail in ["", "2", "21", "A000", "27D", "12345", "123456", "0000"] {
            let pins = pins_of_block_lot(&format!("233J211 {tail}"));
            assert!(pins.iter().all(|pin| parse_pin(pin).as_deref() == Ok(pin.as_str())), "{pins:?}");
            assert_eq!(pins.iter().collect::<BTreeSet<_>>().len(), pins.len());
            assert!(!pins.is_empty() && pins.len() <= 6, "{tail}: {pins:?}");
        }
    }
}
