//! Pages of a list that is read whole: the arguments `limit` and `after`, and `next` in the answer.

use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Deserialize;

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
        for limit in [0, 201] {
            let page = ListPage { limit, after: None };
            assert_eq!(page.of(all(), |item| (*item).to_owned(), |_, _| Ok(true)).unwrap_err().parameter, "limit");
        }
    }
}
