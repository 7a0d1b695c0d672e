//! Query strings, parsed as leniently as the upstreams parse them.

/// The decoded names and values of the parameters in order, and the raw text.
pub struct Query<'a> {
    /// The text as it is sent.
    pub raw: &'a str,
    pairs: Vec<(String, String)>,
}

impl<'a> Query<'a> {
    /// Decodes a query.
    #[must_use]
    pub fn new(raw: &'a str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self { raw, pairs: pairs.collect() }
    }

    /// Returns the first value of a name; case-sensitive.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all names and values, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Decodes a text.
pub fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let rest = bytes.as_slice();
                let pair = rest.get(..2).and_then(|pair| std::str::from_utf8(pair).ok()).and_then(|pair| u8::from_str_radix(pair, 16).ok());
                match pair {
                    Some(value) => {
                        out.push(value);
                        bytes.nth(1);
                    }
                    None => out.push(b'%'),
                }
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that escapes, plus signs and broken escapes are decoded, and that nothing is lost.
    #[test]
    fn queries_are_decoded() {
        let query = Query::new("a=1+2&b=%5B%22%5D&c=%zz&d&=x&e=%e");
        let pairs: Vec<_> = query.pairs().collect();
        assert_eq!(pairs, [("a", "1 2"), ("b", "[\"]"), ("c", "%zz"), ("d", ""), ("", "x"), ("e", "%e")]);
        assert_eq!(query.get("A"), None);
    }
}
