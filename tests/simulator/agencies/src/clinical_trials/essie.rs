//! The registry's query language, as far as it is simulated: `AREA[Piece]value`, `AREA[Piece]RANGE[from,to]` with MIN and MAX, words and
//! phrases, AND, OR, NOT and parentheses.

use super::pieces;
use super::study::Study;

/// Deeper nesting of parentheses and NOTs is refused.
const DEPTH_MAX: u32 = 40;
/// The pieces that are searched for words without an area.
pub(super) const ANYWHERE: &[&str] =
    &["NCTId", "BriefTitle", "OfficialTitle", "Condition", "Keyword", "InterventionName", "LeadSponsorName", "BriefSummary", "OrgStudyId"];

/// A parsed filter.
pub(super) enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    /// One of the piece's values is in this range; an open bound is `None`.
    Range {
        piece: String,
        from: Option<String>,
        to: Option<String>,
    },
    /// One of the piece's values equals this.
    Is {
        piece: String,
        value: String,
    },
    /// One of the pieces contains the words.
    Holds {
        pieces: &'static [&'static str],
        words: String,
    },
}

impl Expression {
    /// Parses a filter. The error is its message.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Self::words(text, ANYWHERE)
    }

    /// Parses a query whose words are searched in the given pieces.
    pub(super) fn words(text: &str, area: &'static [&'static str]) -> Result<Self, String> {
        let mut reader = Reader { rest: text.trim(), area };
        let expression = reader.any(0)?;
        if reader.rest.is_empty() { Ok(expression) } else { Err(format!("unexpected {:?}", reader.rest)) }
    }

    pub(super) fn fits(&self, study: &Study) -> bool {
        match self {
            Self::All(all) => all.iter().all(|one| one.fits(study)),
            Self::Any(all) => all.iter().any(|one| one.fits(study)),
            Self::Not(one) => !one.fits(study),
            Self::Range { piece, from, to } => {
                pieces::texts(study, piece).iter().any(|own| is_between(own, from.as_deref(), to.as_deref()))
            }
            Self::Is { piece, value } => pieces::texts(study, piece).iter().any(|own| own.eq_ignore_ascii_case(value)),
            Self::Holds { pieces, words } => {
                pieces.iter().any(|piece| pieces::texts(study, piece).iter().any(|own| own.to_lowercase().contains(words)))
            }
        }
    }
}

fn is_between(own: &str, from: Option<&str>, to: Option<&str>) -> bool {
    if let Ok(own) = own.parse::<f64>() {
        let bound = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        return bound(from).is_none_or(|from| own >= from) && bound(to).is_none_or(|to| own <= to);
    }
    // A month contains all of its days.
    let until = |to: &str| own <= to || own.starts_with(to);
    from.is_none_or(|from| own >= from) && to.is_none_or(until)
}

struct Reader<'a> {
    rest: &'a str,
    area: &'static [&'static str],
}

impl<'a> Reader<'a> {
    fn any(&mut self, depth: u32) -> Result<Expression, String> {
        let mut all = vec![self.all(depth)?];
        while self.takes("OR") {
            all.push(self.all(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expression::Any(all) })
    }

    fn all(&mut self, depth: u32) -> Result<Expression, String> {
        let mut all = vec![self.one(depth)?];
        loop {
            self.takes("AND");
            if self.rest.is_empty() || self.rest.starts_with(')') || self.is_at("OR") {
                break;
            }
            all.push(self.one(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expression::All(all) })
    }

    fn one(&mut self, depth: u32) -> Result<Expression, String> {
        if depth > DEPTH_MAX {
            return Err("too many parentheses".to_owned());
        }
        if self.takes("NOT") {
            return Ok(Expression::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes_sign("(") {
            let inner = self.any(depth + 1)?;
            return if self.takes_sign(")") { Ok(inner) } else { Err("a parenthesis does not end".to_owned()) };
        }
        if self.takes_sign("AREA[") {
            let piece = self.until(']')?.to_owned();
            if pieces::path_of(&piece).is_none() {
                return Err(format!("unknown area `{piece}`"));
            }
            if self.takes_sign("RANGE[") {
                let range = self.until(']')?;
                let (from, to) = range.split_once(',').ok_or_else(|| format!("`{range}` is no range"))?;
                let bound = |text: &str, open: &str| Some(text.trim().to_owned()).filter(|text| text != open);
                return Ok(Expression::Range { piece, from: bound(from, "MIN"), to: bound(to, "MAX") });
            }
            return Ok(Expression::Is { piece, value: self.term()?.to_owned() });
        }
        Ok(Expression::Holds { pieces: self.area, words: self.term()?.to_lowercase() })
    }

    /// A word, or the text between quotation marks.
    fn term(&mut self) -> Result<&'a str, String> {
        if self.takes_sign("\"") {
            return self.until('"');
        }
        let end = self.rest.find([' ', '(', ')']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(format!("a word is missing before {rest:?}"));
        }
        self.rest = rest.trim_start();
        Ok(word)
    }

    fn until(&mut self, end: char) -> Result<&'a str, String> {
        let (inner, rest) = self.rest.split_once(end).ok_or_else(|| format!("`{end}` is missing"))?;
        self.rest = rest.trim_start();
        Ok(inner)
    }

    fn is_at(&self, word: &str) -> bool {
        self.rest.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '(']))
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_at = self.is_at(word);
        if is_at {
            self.takes_sign(word);
        }
        is_at
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }
}
