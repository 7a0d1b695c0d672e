//! Pages of a list that is read whole: the arguments `limit` and `after`, and `next` in the answer.

use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Deserialize;
use texts::folding::reading_order;

/// The most items of a page, and how many it has by default.
const LIMIT_MAX: usize = 200;

/// Which part of a list to return.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListPage {
    /// How many items to return at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// The `next` of an earlier answer, to get the items after it.
    #[schemars(length(min = 1, max = 200))]
    pub after: Option<String>,
}

fn limit_default() -> usize {
    LIMIT_MAX
}

impl ListPage {
    /// The items of a page, and the value of `next` if there are more. `is_past` says whether an item is after the one that an `after` names, and
    /// `name` names an item.
    ///
    /// # Errors
    /// `parameter-invalid` for a limit out of range, or the error of `is_past`.
    pub fn of<T>(
        &self,
        items: Vec<T>,
        name: impl Fn(&T) -> String,
        is_past: impl Fn(&T, &str) -> Result<bool, Problem>,
    ) -> Result<(Vec<T>, Option<String>), Problem> {
        if self.limit == 0 || self.limit > LIMIT_MAX {
            return Err(Problem::parameter("limit", format!("{} is not between 1 and {LIMIT_MAX}", self.limit)));
        }
        let mut rest = Vec::with_capacity(items.len());
        for item in items {
            if self.after.as_deref().map_or(Ok(true), |after| is_past(&item, after))? {
                rest.push(item);
            }
        }
        let has_more = rest.len() > self.limit;
        rest.truncate(self.limit);
        let next = rest.last().filter(|_| has_more).map(name);
        Ok((rest, next))
    }

    /// The items of a page, the last created first, and the value of `next` if there are more. `place` is when an item was created, and its id.
    ///
    /// # Errors
    /// `parameter-invalid` for a limit out of range, or an `after` that no answer gave.
    pub fn newest_first<T>(&self, mut items: Vec<T>, place: impl Fn(&T) -> (i64, &str)) -> Result<(Vec<T>, Option<String>), Problem> {
        items.sort_by(|a, b| place(b).cmp(&place(a)));
        let name = |item: &T| {
            let (created_at, id) = place(item);
            format!("{created_at}/{id}")
        };
        let is_past = |item: &T, after: &str| {
            let named = after.split_once('/').and_then(|(created_at, id)| Some((created_at.parse::<i64>().ok()?, id)));
            let named = named.ok_or_else(|| Problem::parameter("after", "after: is not the `next` of an earlier answer"))?;
            Ok(place(item) < named)
        };
        self.of(items, name, is_past)
    }

    /// The items of a page in the reading order of their names, and the value of `next` if there are more. No two items have the same name.
    ///
    /// # Errors
    /// `parameter-invalid` for a limit out of range.
    pub fn by_name<T>(&self, mut items: Vec<T>, name: impl Fn(&T) -> &str) -> Result<(Vec<T>, Option<String>), Problem> {
        items.sort_by(|a, b| reading_order(name(a)).cmp(&reading_order(name(b))));
        self.of(items, |item| name(item).to_owned(), |item, after| Ok(reading_order(name(item)) > reading_order(after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that pages join without a gap, also when the item that a page ended with is gone, and that the last page names no next one.
    #[test]
    fn pages_join() {
        let all = || vec!["a", "b", "c", "d", "e"];
        let page = |items: Vec<&'static str>, after: Option<&str>| {
            let page = ListPage { limit: 2, after: after.map(str::to_owned) };
            page.of(items, |item| (*item).to_owned(), |item, after| Ok(*item > after)).unwrap()
        };
        assert_eq!(page(all(), None), (vec!["a", "b"], Some("b".to_owned())));
        assert_eq!(page(all(), Some("b")), (vec!["c", "d"], Some("d".to_owned())));
        assert_eq!(page(all(), Some("d")), (vec!["e"], None));
        assert_eq!(page(vec!["a", "c", "e"], Some("b")), (vec!["c", "e"], None));
        // By name, spellings of one name are next to each other, also across the end of a page.
        let mut names = vec!["Zoo", "cafe\u{301}", "bar", "Caf\u{e9}", "CAFE", "dune"];
        let (mut read, mut after) = (Vec::new(), None);
        while !names.is_empty() {
            let (found, next) = ListPage { limit: 2, after }.by_name(names.clone(), |name| name).unwrap();
            read.extend(found);
            after = next;
            if after.is_none() {
                names.clear();
            }
        }
        assert_eq!(read, ["bar", "CAFE", "Caf\u{e9}", "cafe\u{301}", "dune", "Zoo"]);
        for limit in [0, 201] {
            let page = ListPage { limit, after: None };
            assert_eq!(page.of(all(), |item| (*item).to_owned(), |_, _| Ok(true)).unwrap_err().parameter, "limit");
        }
    }
}
