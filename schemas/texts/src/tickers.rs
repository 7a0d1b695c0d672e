//! Ticker symbols as people and filers write them: `BRK.B`, `brk-b`, `BF.A, BF.B`, `NYSE: XYZ`, `(HEI)`, `GOOG/GOOGL`, `$TICK`. One rule for parameters,
//! filters, watches and recorded texts. Records keep the text of their source; the rule applies when they are compared.

use unicode_normalization::UnicodeNormalization;

/// The longest symbol, in bytes.
const SYMBOL_BYTES_MAX: usize = 10;
/// The most symbols of a text.
const SYMBOLS_MAX: usize = 20;
/// Words that say that there is no symbol.
const NO_SYMBOLS: [&str; 4] = ["NONE", "N-A", "NOT-APPLICABLE", "NULL"];
/// Words between symbols. Alone they may be symbols.
const JOINTS: [&str; 2] = ["AND", "OR"];
/// Names of exchanges that stand before a symbol.
const EXCHANGES: [&str; 12] =
    ["NYSE", "NASDAQ", "AMEX", "ARCA", "AMERICAN", "NYSEAMERICAN", "NYSEMKT", "NASDAQGS", "NASDAQGM", "NASDAQCM", "OTC", "OTCQB"];
/// What follows the symbol of a company in the symbol of one of its securities, besides a single letter: units, warrants, rights.
const SECURITIES: [&str; 4] = ["WS", "WT", "UN", "RT"];

/// Returns the symbols that a text names, each once, in capitals and with a dash before the class of shares: `BRK-B`. None if it names no symbol.
#[must_use]
pub fn tickers(text: &str) -> Vec<String> {
    let plain: String = text.nfkc().flat_map(char::to_uppercase).collect();
    let mut found = Vec::new();
    for part in plain.split([',', ';', '|', '&', '+', '\n']) {
        // A colon follows the name of an exchange.
        let part = part.rsplit(':').next().unwrap_or_default();
        let words: Vec<&str> =
            part.split(|c: char| c.is_whitespace() || "()[]{}\"'`“”‘’".contains(c)).filter(|word| !word.is_empty()).collect();
        let words: Vec<&str> = if words.len() > 1 { words.into_iter().filter(|word| !EXCHANGES.contains(word)).collect() } else { words };
        let mut symbols: Vec<String> = Vec::new();
        for piece in words.iter().flat_map(|word| pieces(word)) {
            match symbols.last_mut() {
                Some(company) if is_class(&piece) && !company.contains('-') => *company = format!("{company}-{piece}"),
                _ => symbols.push(piece),
            }
        }
        found.extend(symbols.into_iter().filter(|symbol| is_symbol(symbol)));
    }
    let is_list = found.len() > 1;
    let mut unique: Vec<String> = Vec::new();
    for symbol in found {
        let is_joint = is_list && JOINTS.contains(&symbol.as_str());
        if unique.len() < SYMBOLS_MAX && !is_joint && !unique.contains(&symbol) {
            unique.push(symbol);
        }
    }
    unique
}

/// Whether a text names one of these symbols, given in the form of [`tickers`].
#[must_use]
pub fn names_ticker(text: &str, wanted: &[String]) -> bool {
    !text.is_empty() && tickers(text).iter().any(|symbol| wanted.contains(symbol))
}

/// Returns the usual ways to write a symbol, in lower case, as an index of texts holds them.
#[must_use]
pub fn spellings(symbol: &str) -> Vec<String> {
    let symbol = symbol.to_lowercase();
    let mut all = vec![symbol.clone()];
    if symbol.contains('-') {
        all.extend(['.', '/', ' '].map(|separator| symbol.replace('-', &separator.to_string())));
    }
    let plain = all.clone();
    for one in &plain {
        all.extend([format!("${one}"), format!("({one})"), format!("nyse: {one}"), format!("nyse:{one}"), format!("nasdaq: {one}")]);
    }
    all
}

/// The pieces of a word that slashes separate, with dashes for other signs.
fn pieces(word: &str) -> Vec<String> {
    let with_dashes = |piece: &str| {
        let parts: Vec<&str> = piece.split(['.', '-', '_', '–', '—']).filter(|part| !part.is_empty()).collect();
        parts.join("-").trim_start_matches('$').to_owned()
    };
    word.split(['/', '\\']).map(with_dashes).filter(|piece| !piece.is_empty()).collect()
}

/// Whether a piece names a class of shares or another security of the company before it.
fn is_class(piece: &str) -> bool {
    piece.len() == 1 && piece.bytes().all(|byte| byte.is_ascii_uppercase()) || SECURITIES.contains(&piece)
}

fn is_symbol(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=SYMBOL_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part) && !NO_SYMBOLS.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which symbols texts name, as filers and people write them.
    #[test]
    fn symbols() {
        for (text, expected) in [
            ("BRK.B", &["BRK-B"][..]),
            ("brk-b", &["BRK-B"]),
            ("brk.b", &["BRK-B"]),
            ("BRK/B", &["BRK-B"]),
            ("BRK B", &["BRK-B"]),
            ("BF.A, BF.B", &["BF-A", "BF-B"]),
            ("BF.A BF.B", &["BF-A", "BF-B"]),
            ("BF.A and BF.B", &["BF-A", "BF-B"]),
            ("NYSE: XYZ", &["XYZ"]),
            ("(NYSE American: UAMY)", &["UAMY"]),
            ("NASDAQ:ABC", &["ABC"]),
            ("NYSE XYZ", &["XYZ"]),
            ("XYZ (NYSE)", &["XYZ"]),
            ("(HEI)", &["HEI"]),
            ("[HEI; HEI.A]", &["HEI", "HEI-A"]),
            ("GOOG/GOOGL", &["GOOG", "GOOGL"]),
            ("GOOG, GOOGL, GOOG", &["GOOG", "GOOGL"]),
            ("$TICK", &["TICK"]),
            (" \"aapl\" ", &["AAPL"]),
            ("ＡＡＰＬ", &["AAPL"]),
            ("F", &["F"]),
            ("ACME/WS", &["ACME-WS"]),
            ("CTA-PA", &["CTA-PA"]),
            ("NYSE", &["NYSE"]),
            ("NYSE: OR", &["OR"]),
            ("NONE", &[]),
            ("N/A", &[]),
            ("", &[]),
            (" ( ) ", &[]),
            ("!?", &[]),
            ("ABCDEFGHIJK", &[]),
        ] {
            assert_eq!(tickers(text), expected, "{text:?}");
        }
    }

    /// Proves that a text names a symbol in whatever way both are written, that a class of shares is a symbol of its own, and that every spelling is read
    /// as the symbol.
    #[test]
    fn comparisons() {
        let wanted = tickers("brk.b");
        assert!(names_ticker("NYSE: BRK/B", &wanted) && names_ticker("BRK-A, BRK-B", &wanted));
        assert!(!names_ticker("BRK", &wanted) && !names_ticker("BRK.A", &wanted) && !names_ticker("", &wanted));
        for symbol in ["BRK-B", "AAPL"] {
            for spelling in spellings(symbol) {
                assert_eq!(tickers(&spelling), [symbol], "{spelling}");
            }
        }
    }
}
