//! Cursors: opaque, versioned and authenticated. A cursor holds its service, the seq after which reading continues, and the filter of its feed.
//!
//! Promises: the same position gives the same bytes on every node that shares the master key. A cursor never expires. Any changed, missing or
//! added byte is detected. Layout: version u8, key generation u8, length of the service's name u8, the name, seq u64 big endian, the filter, the
//! first 16 bytes of HMAC-SHA256 over everything before; base64url without padding. Who gets a cursor can read it, so what it holds is public. A place of a
//! list or of a search, which can name a record that is hidden, is sealed in addition.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;
use operation::problem::Problem;
use operation::secrets::{CURSOR_GENERATION, Secrets};
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::Serialize;
use serde::de::DeserializeOwned;

const VERSION: u8 = 1;
const TAG_BYTES: usize = 16;
/// Begins a sealed text. No text begins like this.
const SEALED: &[u8] = b"\xffsealed/";
/// The longest cursor that is accepted, in characters. A cursor with `rebase` holds two filters, each of several hundred characters.
const CHARS_MAX: usize = 16_384;

/// Encodes the cursor after `seq` of a service's changes, for a filter in canonical form (empty for none).
#[must_use]
pub fn encode(secrets: &Secrets, service: &str, seq: Seq, filter: &str) -> String {
    signed(secrets, service, seq, filter.as_bytes())
}

fn signed(secrets: &Secrets, service: &str, seq: Seq, filter: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(3 + service.len() + 8 + filter.len() + TAG_BYTES);
    bytes.extend_from_slice(&[VERSION, CURSOR_GENERATION, u8::try_from(service.len()).unwrap_or(u8::MAX)]);
    bytes.extend_from_slice(service.as_bytes());
    bytes.extend_from_slice(&seq.0.to_be_bytes());
    bytes.extend_from_slice(filter);
    if let Some(mut mac) = secrets.cursor(CURSOR_GENERATION) {
        mac.update(&bytes);
        bytes.extend_from_slice(&mac.finalize().into_bytes()[..TAG_BYTES]);
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a cursor of a filter.
///
/// # Errors
/// `cursor-invalid` with the reason; `filter-changed` if the cursor belongs to another filter.
pub fn decode(secrets: &Secrets, service: &str, filter: &str, cursor: &str) -> Result<Seq, Problem> {
    let (seq, made_under) = read(secrets, service, cursor)?;
    if made_under == filter { Ok(seq) } else { Err(filter_changed(false)) }
}

/// Decodes a cursor. Returns its seq and its filter.
///
/// # Errors
/// `cursor-invalid` with the reason.
pub fn read(secrets: &Secrets, service: &str, cursor: &str) -> Result<(Seq, String), Problem> {
    let (seq, made_under) = read_signed(secrets, service, cursor)?;
    if made_under.starts_with(SEALED) {
        return Err(invalid("it continues a list, not changes"));
    }
    Ok((seq, String::from_utf8(made_under).map_err(|_| foreign())?))
}

/// The problem of a text that no server with this master key issued.
fn foreign() -> Problem {
    invalid("the cursor was not issued by this server, or was altered")
}

/// The seq of a text that can be sealed, and the text. Earlier versions did not seal such texts, only signed them: these are read, too.
fn read_unsealed(secrets: &Secrets, service: &str, text: &str) -> Result<(Seq, String), Problem> {
    let (seq, bytes) = read_signed(secrets, service, text)?;
    let text = match bytes.strip_prefix(SEALED) {
        Some(sealed) => secrets.unseal(sealed).ok_or_else(foreign)?,
        None => bytes,
    };
    Ok((seq, String::from_utf8(text).map_err(|_| foreign())?))
}

/// The seq of a cursor and the bytes after it, once its signature is checked.
fn read_signed(secrets: &Secrets, service: &str, cursor: &str) -> Result<(Seq, Vec<u8>), Problem> {
    if cursor.is_empty() {
        return Err(invalid("the cursor is empty; leave it out to start again"));
    }
    if cursor.len() > CHARS_MAX {
        return Err(invalid("the cursor is too long"));
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| foreign())?;
    let (signed, tag) = bytes.split_last_chunk::<TAG_BYTES>().ok_or_else(foreign)?;
    let (version, generation, rest) = match signed {
        [version, generation, rest @ ..] => (*version, *generation, rest),
        _ => return Err(foreign()),
    };
    if version != VERSION {
        return Err(invalid("the cursor has an unknown version"));
    }
    let mut mac = secrets.cursor(generation).ok_or_else(foreign)?;
    mac.update(signed);
    mac.verify_truncated_left(tag).map_err(|_| foreign())?;
    let (name_len, rest) = rest.split_first().ok_or_else(foreign)?;
    let (name, rest) = rest.split_at_checked(usize::from(*name_len)).ok_or_else(foreign)?;
    let (seq, made_under) = rest.split_first_chunk::<8>().ok_or_else(foreign)?;
    if name != service.as_bytes() {
        return Err(invalid(&format!("the cursor belongs to the service {}, not to {service}", String::from_utf8_lossy(name))));
    }
    Ok((Seq(u64::from_be_bytes(*seq)), made_under.to_vec()))
}

/// Encodes a text that only servers with the master key can read. It is signed as a cursor is. The same text gives the same bytes.
#[must_use]
pub fn encode_sealed(secrets: &Secrets, service: &str, text: &str) -> String {
    sealed(secrets, service, Seq(0), text)
}

fn sealed(secrets: &Secrets, service: &str, seq: Seq, text: &str) -> String {
    signed(secrets, service, seq, &[SEALED, secrets.seal(text.as_bytes()).as_slice()].concat())
}

/// Decodes a text that [`encode_sealed`] encoded, or that an earlier version only signed.
///
/// # Errors
/// `cursor-invalid` with the reason.
pub fn read_sealed(secrets: &Secrets, service: &str, text: &str) -> Result<String, Problem> {
    read_unsealed(secrets, service, text).map(|(_, text)| text)
}

/// Encodes the place after which the pages of a search continue, for `search`: a text that differs between searches with different arguments. Such a
/// place is signed as a cursor is, and sealed, since it can name a record that the caller is not shown. `seq` is the position that all pages show; it can be
/// read.
#[must_use]
pub fn encode_place<P: Serialize>(secrets: &Secrets, service: &str, seq: Seq, search: &str, place: &P) -> String {
    // Places are texts and numbers, so serialization cannot fail.
    let place = serde_json::to_string(place).unwrap_or_default();
    sealed(secrets, service, seq, &format!("{search}\n{place}"))
}

/// Decodes a place that [`encode_place`] encoded for the same search, or that an earlier version only signed, and its position.
///
/// # Errors
/// `cursor-invalid`, naming `after`.
pub fn read_place<P: DeserializeOwned>(secrets: &Secrets, service: &str, search: &str, text: &str) -> Result<(Seq, P), Problem> {
    let (seq, made_for) = read_unsealed(secrets, service, text).map_err(|problem| problem.about("after"))?;
    let place = made_for.strip_prefix(search).and_then(|rest| rest.strip_prefix('\n')).and_then(|place| serde_json::from_str(place).ok());
    let other = || invalid("`after` belongs to a search with other arguments; start again without it").about("after");
    Ok((seq, place.ok_or_else(other)?))
}

/// The problem of a cursor that belongs to another filter. `has_rebase`: the request has `rebase=true`, which does not help here.
pub fn filter_changed(has_rebase: bool) -> Problem {
    let detail = if has_rebase {
        "the cursor belongs to another filter, and `rebase` cannot be used with it; use that filter, or start again without a cursor"
    } else {
        "the cursor belongs to another filter; use that filter, add `rebase=true` where it is supported, or start again without a cursor"
    };
    Problem { parameter: "cursor".to_owned(), ..Problem::new(ErrorCode::FilterChanged, detail) }
}

/// The problem of a cursor that cannot be used.
pub fn invalid(reason: &str) -> Problem {
    Problem { parameter: "cursor".to_owned(), ..Problem::new(ErrorCode::CursorInvalid, reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets::from_master(&[7; 32]).unwrap()
    }

    /// Proves that a cursor reads back, and that the same place gives the same bytes.
    #[test]
    fn reads_back() {
        for (seq, filter) in [(0, ""), (1, "agency=FDA"), (u64::MAX, "x")] {
            let cursor = encode(&secrets(), "recalls", Seq(seq), filter);
            assert_eq!(cursor, encode(&secrets(), "recalls", Seq(seq), filter));
            assert_eq!(decode(&secrets(), "recalls", filter, &cursor), Ok(Seq(seq)));
        }
    }

    /// Proves that a sealed text reads back, that nothing of it can be read by who gets it, that it is no cursor of changes, and that a text which an
    /// earlier version only signed is read.
    #[test]
    fn sealed_texts_cannot_be_read() {
        let text = "place/fmcsa:4312345:CARGO";
        let sealed = encode_sealed(&secrets(), "coverage", text);
        assert_eq!(sealed, encode_sealed(&secrets(), "coverage", text));
        assert_eq!(read_sealed(&secrets(), "coverage", &sealed).as_deref(), Ok(text));
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        assert!(!bytes.windows(5).any(|part| text.as_bytes().windows(5).any(|own| own == part)), "{bytes:?}");
        let problem = read(&secrets(), "coverage", &sealed).unwrap_err();
        assert_eq!((problem.code, problem.detail.as_str()), (ErrorCode::CursorInvalid, "it continues a list, not changes"));
        assert_eq!(read_sealed(&secrets(), "coverage", &encode(&secrets(), "coverage", Seq(0), text)).as_deref(), Ok(text));
        let stranger = Secrets::from_master(&[8; 32]).unwrap();
        for foreign in [encode_sealed(&stranger, "coverage", text), encode_sealed(&secrets(), "labs", text), sealed[1..].to_owned()] {
            assert_eq!(read_sealed(&secrets(), "coverage", &foreign).unwrap_err().code, ErrorCode::CursorInvalid);
        }
    }

    /// Proves that the place of a search reads back with its position, that nothing of it can be read by who gets it, that another search refuses it, and that
    /// a place which an earlier version only signed is read.
    #[test]
    fn places_cannot_be_read() {
        let (search, place) = ("list\nstate=CO", ("2026-11-18".to_owned(), "contract:W912HN25C0007".to_owned()));
        let text = encode_place(&secrets(), "exclusions", Seq(7), search, &place);
        assert_eq!(text, encode_place(&secrets(), "exclusions", Seq(7), search, &place), "the same bytes on every node");
        assert_eq!(read_place(&secrets(), "exclusions", search, &text), Ok((Seq(7), place.clone())));
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for named in [search, place.0.as_str(), place.1.as_str()] {
            assert!(!bytes.windows(5).any(|part| named.as_bytes().windows(5).any(|own| own == part)), "{named}: {bytes:?}");
        }
        for (service, search) in [("exclusions", "list"), ("exclusions", "list\nstate=NY"), ("labs", search)] {
            let problem = read_place::<(String, String)>(&secrets(), service, search, &text).unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::CursorInvalid, "after"), "{service} {search}");
        }
        assert_eq!(read(&secrets(), "exclusions", &text).unwrap_err().code, ErrorCode::CursorInvalid, "it is no cursor of changes");
        let signed_only = encode(&secrets(), "exclusions", Seq(7), &format!("{search}\n{}", serde_json::to_string(&place).unwrap()));
        assert_eq!(read_place(&secrets(), "exclusions", search, &signed_only), Ok((Seq(7), place)));
    }

    /// Proves that every changed, missing or added byte or character is refused as `cursor-invalid`.
    #[test]
    fn forged() {
        let cursor = encode(&secrets(), "recalls", Seq(12_345), "");
        let bytes = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
        let refused = |text: &str| {
            let problem = decode(&secrets(), "recalls", "", text).unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::CursorInvalid, "cursor"), "{text}");
            assert!(!problem.detail.is_empty());
        };
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                refused(&URL_SAFE_NO_PAD.encode(changed));
            }
        }
        for at in 0..cursor.len() {
            refused(&cursor[..at]);
            let other = if &cursor[at..=at] == "A" { "B" } else { "A" };
            refused(&format!("{}{other}{}", &cursor[..at], &cursor[at + 1..]));
        }
        for text in
            ["", " ", "abc", "=", "é", &format!("{cursor}="), &format!("{cursor}A"), &"A".repeat(CHARS_MAX), &"A".repeat(CHARS_MAX + 1)]
        {
            refused(text);
        }
        let stranger = Secrets::from_master(&[8; 32]).unwrap();
        refused(&encode(&stranger, "recalls", Seq(12_345), ""));
    }

    /// Proves that a cursor of another service is refused by name and one of another filter with 409.
    #[test]
    fn foreign_and_other_filter() {
        let cursor = encode(&secrets(), "labs", Seq(1), "");
        let problem = decode(&secrets(), "recalls", "", &cursor).unwrap_err();
        assert_eq!(problem.code, ErrorCode::CursorInvalid);
        assert!(problem.detail.contains("labs"));
        let cursor = encode(&secrets(), "recalls", Seq(1), "a=1");
        assert_eq!(decode(&secrets(), "recalls", "a=2", &cursor).unwrap_err().code, ErrorCode::FilterChanged);
    }
}
