//! The routes of a service. Paths without parameters are found by one look-up, the others by trying the patterns in order.

use std::borrow::Cow;
use std::collections::HashMap;

use operation::{Method, Operation};

/// The operations of one path by method, as indexes into the service's operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) get: Option<usize>,
    pub(crate) post: Option<usize>,
    pub(crate) patch: Option<usize>,
    pub(crate) delete: Option<usize>,
    /// Whether `get` is answered with an Atom document, and nothing else has this path.
    pub(crate) is_atom: bool,
}

impl Route {
    /// The value of `Allow`.
    pub(crate) fn allow(&self) -> String {
        let read = self.get.is_some() || (self.post.is_none() && self.patch.is_none() && self.delete.is_none());
        let methods = [
            ("GET, HEAD", read),
            ("POST", self.post.is_some()),
            ("PATCH", self.patch.is_some()),
            ("DELETE", self.delete.is_some()),
            ("OPTIONS", true),
        ];
        methods.into_iter().filter(|(_, is_supported)| *is_supported).map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    }
}

/// The parameters of a path.
pub(crate) type PathParameters<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The routes of a service, below its prefix.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    plain: HashMap<Cow<'static, str>, Route>,
    patterns: Vec<(&'static str, Route)>,
}

impl Routes {
    pub(crate) fn new(operations: &[Operation]) -> Self {
        let mut routes = Self::default();
        for (index, operation) in operations.iter().enumerate().filter(|(_, operation)| operation.has_route()) {
            let route = if !operation.path.contains('{') {
                routes.plain.entry(Cow::Borrowed(operation.path)).or_default()
            } else {
                let at = routes.patterns.iter().position(|(path, _)| *path == operation.path).unwrap_or_else(|| {
                    routes.patterns.push((operation.path, Route::default()));
                    routes.patterns.len() - 1
                });
                &mut routes.patterns[at].1
            };
            match operation.method {
                Method::Get => route.get = Some(index),
                Method::Post => route.post = Some(index),
                Method::Patch => route.patch = Some(index),
                Method::Delete => route.delete = Some(index),
            }
            if let Some(path) = operation.atom_path() {
                routes.plain.insert(Cow::Owned(path), Route { get: Some(index), is_atom: true, ..Route::default() });
            }
        }
        routes
    }

    /// The route of a path below the prefix, and its decoded parameters.
    pub(crate) fn find<'a>(&self, path: &'a str) -> Option<(&Route, PathParameters<'a>)> {
        if let Some(route) = self.plain.get(path) {
            return Some((route, Vec::new()));
        }
        self.patterns.iter().find_map(|(pattern, route)| Some((route, matches(pattern, path)?)))
    }

    /// The paths, for suggestions.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.plain.keys().map(Cow::as_ref).chain(self.patterns.iter().map(|(path, _)| *path))
    }
}

fn matches<'a>(pattern: &'static str, path: &'a str) -> Option<PathParameters<'a>> {
    let mut found = Vec::new();
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(found),
            (Some(wanted), Some(given)) => match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) if !given.is_empty() => found.push((Cow::Borrowed(name), percent_decode(given))),
                None if wanted == given => {}
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// Decodes a path segment. Bytes that are not UTF-8 become U+FFFD, which the validation of arguments refuses.
fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (source, mut decoded, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = source.get(at) {
        match (byte, hex(source.get(at + 1)), hex(source.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that patterns match whole paths only, and that their parameters are decoded once.
    #[test]
    fn patterns() {
        let found = matches("/v1/items/{id}/parts/{part}", "/v1/items/a%20b%2Fc/parts/100%25+").unwrap();
        assert_eq!(found, [("id".into(), "a b/c".into()), ("part".into(), "100%+".into())] as [(Cow<str>, Cow<str>); 2]);
        for other in ["/v1/items/7", "/v1/items//parts/1", "/v1/items/7/parts/1/", "/v1/items/7/parts/1/2", "/v2/items/7/parts/1"] {
            assert_eq!(matches("/v1/items/{id}/parts/{part}", other), None, "{other}");
        }
        assert_eq!(percent_decode("%ff%zz%4"), "\u{FFFD}%zz%4");
    }
}
