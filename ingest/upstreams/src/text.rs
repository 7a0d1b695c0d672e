//! Normalises the texts and dates of upstreams: resolves tags and entities, collapses white space, checks dates.
//!
//! Every function accepts any input. A text without tags, entities and unusual spaces is returned unchanged.

use std::borrow::Cow;

use jiff::ToSpan;
use jiff::civil::Date;

/// The longest tag recognised, in bytes; anything longer is text.
const TAG_BYTES_MAX: usize = 4_096;
/// Tags that separate the text before and after them.
const BLOCK_TAGS: &str = "p br div li ul ol table tr td th tbody thead h1 h2 h3 h4 h5 h6 hr img blockquote center html head body title \
    meta link section article header footer nav figure iframe dl dt dd pre";
/// Tags within a word or a line.
const INLINE_TAGS: &str = "a b i em strong span u font sup sub small big abbr code s strike mark wbr";
/// Tags whose content is not text.
const SILENT_TAGS: &str = "script style";
/// Named entities that occur in notices, each followed by its character.
const ENTITIES: &str = "amp & lt < gt > quot \" apos ' ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ hellip … bull • middot · \
    reg ® trade ™ copy © deg ° plusmn ± times × divide ÷ frac12 ½ frac14 ¼ frac34 ¾ sup1 ¹ sup2 ² sup3 ³ cent ¢ pound £ \
    euro € sect § para ¶ micro µ ordm º ordf ª laquo « raquo » lsaquo ‹ rsaquo › iexcl ¡ iquest ¿ aacute á eacute é \
    iacute í oacute ó uacute ú ntilde ñ uuml ü ouml ö auml ä szlig ß egrave è agrave à ccedil ç ecirc ê acirc â icirc î \
    ocirc ô Aacute Á Eacute É Iacute Í Oacute Ó Uacute Ú Ntilde Ñ Uuml Ü Ouml Ö Auml Ä";
/// Entities that are a space.
const SPACES: &str = "nbsp ensp emsp thinsp";
/// Entities that are invisible.
const NOTHING: &str = "shy zwj";
/// The characters of Windows-1252 at 0x80 to 0x9f, which old notices use as if they were Unicode; a space where it defines none.
const WINDOWS_1252: &str = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ";
/// Control characters that are what a faulty conversion left of a quotation mark or dash: the low byte of its code (U+2019 became U+0019).
const LOW_BYTES: &[(char, char)] = &[('\u{13}', '–'), ('\u{14}', '—'), ('\u{18}', '‘'), ('\u{19}', '’'), ('\u{1c}', '“'), ('\u{1d}', '”')];
/// The longest number of a notice, in bytes.
const NUMBER_BYTES_MAX: usize = 64;

/// Cleans a text: removes tags, resolves entities once, trims, and collapses white space and control characters to single spaces. Only
/// names of HTML elements are tags: `<5 lbs>` and `a < b` are text.
#[must_use]
pub fn clean(text: &str) -> String {
    if is_clean(text.as_bytes()) {
        return text.to_owned();
    }
    let mut out = Collapsed { text: String::with_capacity(text.len()), space: false };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let plain = rest.bytes().take_while(|byte| matches!(byte, 0x21..0x7f) && !matches!(byte, b'<' | b'&')).count();
        if plain > 0 {
            out.push_plain(&rest[..plain]);
            rest = &rest[plain..];
            continue;
        }
        let used = match c {
            '<' => tag(rest).map(|(length, separates)| {
                out.space |= separates;
                length
            }),
            '&' => entity(rest).map(|(length, value)| {
                value.chars().for_each(|c| out.push(c));
                length
            }),
            'â' => punctuation(rest).map(|(length, c)| {
                out.push(c);
                length
            }),
            _ => None,
        };
        rest = &rest[used.unwrap_or_else(|| {
            out.push(c);
            c.len_utf8()
        })..];
    }
    out.text
}

/// Whether [`clean`] would return the text unchanged, decided without a copy; `false` is always a safe answer.
fn is_clean(bytes: &[u8]) -> bool {
    let mut before = b' ';
    for (at, &byte) in bytes.iter().enumerate() {
        let plain = match byte {
            b' ' => before != b' ',
            0..0x20 | 0x7f | b'<' | b'&' => false,
            // The lead bytes of no-break space, soft hyphen and C1 controls; of the spaces and marks around U+2000; of U+3000 and U+FEFF.
            0xc2 => bytes.get(at + 1).is_some_and(|next| *next > 0xad),
            0xe1 => bytes.get(at + 1) != Some(&0x9a),
            0xe2 => match bytes.get(at + 1) {
                Some(0x80) => bytes.get(at + 2).is_some_and(|third| (0x90..0xa8).contains(third) || (0xb0..).contains(third)),
                Some(0x81) => false,
                _ => true,
            },
            0xe3 => bytes.get(at + 1) != Some(&0x80),
            0xef => bytes.get(at + 1) != Some(&0xbb),
            _ => true,
        };
        if !plain {
            return false;
        }
        before = byte;
    }
    before != b' ' || bytes.is_empty()
}

/// A text that collapses white space while it is built.
struct Collapsed {
    text: String,
    space: bool,
}

impl Collapsed {
    fn push(&mut self, c: char) {
        let c = match c {
            '\u{80}'..='\u{9f}' if c != '\u{85}' => WINDOWS_1252.chars().nth(c as usize - 0x80).unwrap_or(' '),
            c => LOW_BYTES.iter().find(|(low, _)| *low == c).map_or(c, |(_, sign)| *sign),
        };
        match c {
            '\u{200b}' | '\u{feff}' | '\u{ad}' => {}
            c if c.is_whitespace() || c.is_control() => self.space = true,
            c => self.push_plain(c.encode_utf8(&mut [0; 4])),
        }
    }

    /// Adds text that has no white space and nothing to replace.
    fn push_plain(&mut self, text: &str) {
        if std::mem::take(&mut self.space) && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }
}

/// Reads the three bytes of a punctuation mark's UTF-8 (U+2000 to U+203F: quotation marks, dashes, the ellipsis) that were decoded one by
/// one, so that each became a character. Returns their length and the mark.
fn punctuation(text: &str) -> Option<(usize, char)> {
    let last = text.strip_prefix("\u{e2}\u{80}")?.chars().next().filter(|last| ('\u{80}'..='\u{bf}').contains(last))?;
    Some(("\u{e2}\u{80}\u{80}".len(), char::from_u32(0x2000 + (u32::from(last) - 0x80))?))
}

/// Decodes bytes as UTF-8. Bytes that are not UTF-8 become the character with their code; [`clean`] then reads those below 0xa0 as
/// Windows-1252.
#[must_use]
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|byte| char::from(*byte)));
    }
    Cow::Owned(out)
}

/// Normalises the printed number of a notice so that it can be part of a key and of an address: white space and slashes between its parts
/// become one hyphen (`027-2016 EXP` becomes `027-2016-EXP`, as the agency itself prints other expansions). A number without them is not
/// changed. `None` if there is no number or it is too long.
#[must_use]
pub fn number(printed: &str) -> Option<String> {
    let parts: Vec<&str> = printed.split(|c: char| c.is_whitespace() || c == '/').filter(|part| !part.is_empty()).collect();
    let number = match parts.as_slice() {
        [one] => (*one).to_owned(),
        parts => parts.iter().map(|part| part.trim_matches('-')).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-"),
    };
    (!number.is_empty() && number.len() <= NUMBER_BYTES_MAX && !number.contains(char::is_control)).then_some(number)
}

/// Returns the length of the tag or comment at the start of the text, and whether it separates words.
fn tag(text: &str) -> Option<(usize, bool)> {
    if let Some(comment) = text.strip_prefix("<!--") {
        return comment.find("-->").map(|end| (4 + end + 3, true));
    }
    let inner = text.get(1..)?;
    let named = inner.strip_prefix('/').unwrap_or(inner);
    let length = named.bytes().take_while(u8::is_ascii_alphanumeric).take(12).count();
    let (name, behind) = named.split_at(length);
    if !behind.starts_with(['>', '/', ' ', '\t', '\r', '\n', '\u{a0}']) {
        return None;
    }
    let end = text.bytes().take(TAG_BYTES_MAX).position(|byte| byte == b'>')? + 1;
    let is = |tags: &str| tags.split_ascii_whitespace().any(|tag| tag.eq_ignore_ascii_case(name));
    if is(SILENT_TAGS) {
        let close = format!("</{}", name.to_ascii_lowercase());
        let tail = text.get(end..)?;
        // Only ASCII letters change, so positions stay valid.
        let closed = tail.to_ascii_lowercase().find(&close).and_then(|at| Some(at + tail.get(at..)?.find('>')? + 1));
        return Some((end + closed.unwrap_or(0), true));
    }
    if is(BLOCK_TAGS) {
        Some((end, true))
    } else if is(INLINE_TAGS) {
        Some((end, false))
    } else {
        None
    }
}

/// Returns the length of the entity at the start of the text, and its replacement.
fn entity(text: &str) -> Option<(usize, Cow<'static, str>)> {
    let end = text.bytes().take(12).position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let value = if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        Cow::Owned(char::from_u32(code).filter(|c| *c != '\0')?.to_string())
    } else {
        let is = |names: &str| names.split_ascii_whitespace().any(|known| known == name);
        let mut signs = ENTITIES.split_ascii_whitespace();
        loop {
            match (signs.next(), signs.next()) {
                (Some(known), Some(sign)) if known == name => break Cow::Borrowed(sign),
                (Some(_), Some(_)) => {}
                _ if is(SPACES) => break Cow::Borrowed(" "),
                _ if is(NOTHING) => break Cow::Borrowed(""),
                _ => return None,
            }
        }
    };
    Some((end + 1, value))
}

/// Cuts a text to a number of characters. A cut text ends with an ellipsis, which counts.
#[must_use]
pub fn cut(text: String, chars_max: usize) -> String {
    if text.len() <= chars_max {
        return text;
    }
    let mut ends = text.char_indices().map(|(at, _)| at);
    let Some(end) = ends.by_ref().nth(chars_max.saturating_sub(1)) else { return text };
    if ends.next().is_none() {
        return text;
    }
    format!("{}…", text[..end].trim_end())
}

/// Joins the distinct non-empty values in order of appearance.
#[must_use]
pub fn join_distinct(values: impl IntoIterator<Item = String>, separator: &str) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for value in values {
        if !value.is_empty() && !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct.join(separator)
}

/// Joins sentences: with a space after a full stop, else with "; ".
#[must_use]
pub fn join_prose(values: impl IntoIterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    let mut out = String::new();
    for value in values {
        if value.is_empty() || distinct.contains(&value) {
            continue;
        }
        if !out.is_empty() {
            out.push_str(if out.ends_with(['.', '!', '?']) { " " } else { "; " });
        }
        out.push_str(&value);
        distinct.push(value);
    }
    out
}

/// Normalises a URL to an absolute https URL: `http` becomes `https`, and a path is put below `site` (scheme and host). User name and
/// password are dropped, because they make a link look as if it led to another host. Empty when the text is not a URL, has no host or has
/// another scheme.
#[must_use]
pub fn https(url: &str, site: &str) -> String {
    let url = url.trim();
    let scheme = |scheme: &str| url.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme)).map(|_| &url[scheme.len()..]);
    let rest = scheme("https://").or_else(|| scheme("http://")).or_else(|| url.strip_prefix("//"));
    let absolute = match rest {
        Some(rest) => format!("https://{rest}"),
        None if url.starts_with('/') => format!("{site}{url}"),
        None if url.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www.")) => format!("https://{url}"),
        None => return String::new(),
    };
    if absolute.contains(['<', '>', '"', '\\']) || absolute.contains(char::is_control) {
        return String::new();
    }
    let behind = &absolute["https://".len()..];
    let (authority, path) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return String::new();
    }
    format!("https://{host}{path}").replace(' ', "%20")
}

/// Parses the day at the start of a text: `YYYY-MM-DD` with any text after it, or `YYYYMMDD` alone.
#[must_use]
pub fn date(text: &str) -> Option<Date> {
    let bytes = text.trim().as_bytes();
    let digits: Vec<u8> = match bytes {
        [year @ .., b'-', m1, m2, b'-', d1, d2] if year.len() == 4 => [year, &[*m1, *m2, *d1, *d2]].concat(),
        [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, behind, ..] if !behind.is_ascii_digit() => {
            vec![*y1, *y2, *y3, *y4, *m1, *m2, *d1, *d2]
        }
        compact if compact.len() == 8 => compact.to_vec(),
        _ => return None,
    };
    let number = |digits: &[u8]| digits.iter().try_fold(0_i16, |sum, d| d.is_ascii_digit().then(|| sum * 10 + i16::from(d - b'0')));
    let (year, month, day) = (number(&digits[..4])?, number(&digits[4..6])?, number(&digits[6..])?);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Whether a day is plausible for a publication: not before 1900 and not after tomorrow.
#[must_use]
pub fn is_past(date: Date, today: Date) -> bool {
    date.year() >= 1900 && date <= today.saturating_add(1.day())
}

/// Whether a day is possible at all: from 1900 to the end of next year. For upstreams without known errors, so that a notice with a future
/// date, or one read under a fixed clock, retains its date.
#[must_use]
pub fn is_plausible(date: Date, today: Date) -> bool {
    date.year() >= 1900 && date.year() <= today.year().saturating_add(1)
}

/// Formats a plausible date as `YYYY-MM-DD`; otherwise empty.
#[must_use]
pub fn plausible_date(text: &str, today: Date) -> String {
    date(text).filter(|date| is_plausible(*date, today)).map(|date| date.to_string()).unwrap_or_default()
}

/// Finds the name after "dba" (doing business as) in a firm's name, without its location.
pub(crate) fn doing_business_as(firm: &str) -> Option<String> {
    let lower = firm.to_ascii_lowercase();
    let name = ["dba", "d/b/a", "d.b.a."].iter().find_map(|mark| {
        let (at, _) = lower.match_indices(mark).find(|(at, _)| {
            let before = lower[..*at].chars().next_back();
            let behind = lower[at + mark.len()..].chars().next();
            before.is_none_or(|c| !c.is_alphanumeric()) && behind.is_some_and(|c| !c.is_alphanumeric())
        })?;
        firm.get(at + mark.len()..)
    })?;
    let name = without_place(name.trim_start_matches([' ', ':', ',', '.']));
    let name = if firm.contains('(') { name.trim_end_matches(')') } else { name };
    Some(name.trim_end_matches([',', ' ']).to_owned()).filter(|name| !name.is_empty())
}

/// Returns the name of a firm without its location.
pub(crate) fn without_place(firm: &str) -> &str {
    firm.split_once(", of ").map_or(firm, |(name, _)| name).trim()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date as day;

    use super::*;

    /// Proves that tags are removed, entities are resolved once, white space collapses, and text that only looks like a tag is preserved.
    #[test]
    fn cleans() {
        for (raw, expected) in [
            ("", ""),
            ("  a \n\t b ", "a b"),
            ("<p>one</p><p>two<br/>three</p>", "one two three"),
            ("H<sub>2</sub>O", "H2O"),
            ("SEE <A HREF=HTTP://WWW.SAFERCAR.GOV>WWW.SAFERCAR.GOV</A>.", "SEE WWW.SAFERCAR.GOV."),
            ("weight <5 lbs and > 3, a < b, <unknown>", "weight <5 lbs and > 3, a < b, <unknown>"),
            ("&quot;A&amp;B&quot; &#174; &#x2019; &#146;", "\"A&B\" ® ’ ’"),
            ("&amp;lt;", "&lt;"),
            ("a&nbsp;b&shy;c&frac12;&ntilde;", "a bc½ñ"),
            ("\u{92}\u{80}\u{9f}\u{81}x", "’€Ÿ x"),
            ("\u{1c}Kid\u{19}s\u{1d} toys 2\u{13}3 \u{14} \u{18}all\u{19}\u{1}.", "“Kid’s” toys 2–3 — ‘all’ ."),
            ("\u{e2}\u{80}\u{9c}Kid\u{e2}\u{80}\u{99}s\u{e2}\u{80}\u{9d} \u{e2}\u{80} \u{e2}", "“Kid’s” â€ â"),
            ("AT&T; R&D &bogus; &#xD800; &", "AT&T; R&D &bogus; &#xD800; &"),
            ("a\u{a0}b\u{200b}c\u{ad}d\u{2003}e\u{feff}", "a bcd e"),
            ("x<script>var a = '<p>';</script>y<!-- z -->w", "x y w"),
            ("<p", "<p"),
            ("<a href=\"x", "<a href=\"x"),
        ] {
            assert_eq!(clean(raw), expected, "{raw:?}");
        }
    }

    /// Proves that bytes that are not UTF-8 are read as Windows-1252 once they are cleaned, and that all others are not changed.
    #[test]
    fn decodes() {
        assert!(matches!(decode("Café ’".as_bytes()), Cow::Borrowed("Café ’")));
        assert_eq!(clean(&decode(b"Kid\x92s Caf\xe9 \xc3\xa9")), "Kid’s Café é");
    }

    /// Proves that a number with blanks or slashes becomes one word, that every other number is not changed, and that no text is a number
    /// by accident.
    #[test]
    fn numbers_are_one_word() {
        for (printed, expected) in [
            ("018-2026", Some("018-2026")),
            ("PHA-08082026-01", Some("PHA-08082026-01")),
            ("007-2020-EXP", Some("007-2020-EXP")),
            ("027-2016 EXP", Some("027-2016-EXP")),
            ("110-2015 expansion", Some("110-2015-expansion")),
            (" 021-2020 - EXP ", Some("021-2020-EXP")),
            ("F-0001-2026/F-0002-2026", Some("F-0001-2026-F-0002-2026")),
            ("-x-", Some("-x-")),
            ("", None),
            (" / ", None),
            ("a\u{1}b", None),
        ] {
            assert_eq!(number(printed).as_deref(), expected, "{printed}");
        }
        assert_eq!((number(&"9".repeat(64)).map(|number| number.len()), number(&"9".repeat(65))), (Some(64), None));
    }

    /// Proves that the quick check agrees with the full cleaning.
    #[test]
    fn quick_check_agrees() {
        for code in (0..0x3100).chain(0xfe00..0x1_0000) {
            let Some(c) = char::from_u32(code) else { continue };
            let text = format!("a{c}b");
            if is_clean(text.as_bytes()) {
                let mut slow = Collapsed { text: String::new(), space: false };
                text.chars().for_each(|c| slow.push(c));
                assert_eq!(slow.text, text, "U+{code:04X}");
            }
        }
        assert!(is_clean("Best Buy Recalls Insignia® Gas Ranges – “now”".as_bytes()));
    }

    /// Proves that cutting counts characters, not bytes, and adds an ellipsis only when something is cut.
    #[test]
    fn cuts() {
        assert_eq!(cut("ééééé".to_owned(), 5), "ééééé");
        assert_eq!(cut("éééééé".to_owned(), 5), "éééé…");
        assert_eq!(cut("abcd efgh".to_owned(), 6), "abcd…");
        assert_eq!(cut(String::new(), 0), "");
    }

    /// Proves which forms are dates, and that placeholders and impossible days are not.
    #[test]
    fn reads_dates() {
        let today = day(2026, 9, 1);
        for (raw, expected) in [
            ("2026-07-09T00:00:00", Some(day(2026, 7, 9))),
            ("2026-06-24T00:00:00.000", Some(day(2026, 6, 24))),
            ("2026-07-09", Some(day(2026, 7, 9))),
            (" 20260722 ", Some(day(2026, 7, 22))),
            ("11111111", Some(day(1111, 11, 11))),
            ("2026-02-30", None),
            ("20261301", None),
            ("2026-07-091", None),
            ("2026", None),
            ("07/09/2026", None),
            ("２０２６-07-09", None),
        ] {
            assert_eq!(date(raw), expected, "{raw}");
        }
        assert!(is_past(day(2026, 9, 2), today) && !is_past(day(2026, 9, 3), today) && !is_past(day(1899, 12, 31), today));
        assert_eq!(plausible_date("30190101", today), "");
        assert_eq!(plausible_date("20270101", today), "2027-01-01");
    }

    /// Proves that URLs become absolute https URLs, and that other texts become empty.
    #[test]
    fn raises_urls() {
        let site = "https://www.cpsc.gov";
        for (raw, expected) in [
            ("http://www.fsis.usda.gov/a", "https://www.fsis.usda.gov/a"),
            ("HTTPS://cpsc.gov/Recalls/x y", "https://cpsc.gov/Recalls/x%20y"),
            ("//cpsc.gov/a", "https://cpsc.gov/a"),
            ("/Recalls/2026/a", "https://www.cpsc.gov/Recalls/2026/a"),
            ("www.cpsc.gov/a", "https://www.cpsc.gov/a"),
            ("javascript:alert(1)", ""),
            ("https://", ""),
            ("https://a/<script>", ""),
            ("https://www.cpsc.gov@evil.example.org/a", "https://evil.example.org/a"),
            ("http://user:pass@www.cpsc.gov/a?b=c@d#e@f", "https://www.cpsc.gov/a?b=c@d#e@f"),
            ("//a@b@www.cpsc.gov", "https://www.cpsc.gov"),
            ("www.cpsc.gov@evil.example.org", "https://evil.example.org"),
            ("https://www.cpsc.gov/@a", "https://www.cpsc.gov/@a"),
            ("https://user@", ""),
            ("https://user:pass@/a", ""),
            ("https://:443/a", ""),
            ("https:////evil.example.org", ""),
            ("https:///a", ""),
            ("data:text/html,a", ""),
            ("ftp://cpsc.gov/a", ""),
            ("file:///etc/passwd", ""),
            ("java\tscript:alert(1)", ""),
            (" JavaScript://www.cpsc.gov/%0aalert(1)", ""),
            ("https://www.cpsc.gov\\@evil.example.org/", ""),
            ("/\\evil.example.org", ""),
            ("", ""),
            ("é", ""),
        ] {
            assert_eq!(https(raw, site), expected, "{raw}");
        }
    }
}
