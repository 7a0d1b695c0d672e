//! What an explorer lists, and the addresses that say so.

use operation::{Operation, Price};

use crate::{Pairs, SiteService, url};

/// What an explorer lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// The records of a service.
    Records,
    /// The changes of its feed.
    Changes,
}

impl ListKind {
    /// The value of `view` in the address, which is also the word of the pages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Changes => "changes",
        }
    }
}

impl<'a> SiteService<'a> {
    /// What the explorer lists without a key by an operation that `takes` accepts, and the operation: the list of records, else the filtered feed.
    pub(crate) fn free_list(&self, takes: impl Fn(&Operation) -> bool) -> Option<(ListKind, &'a Operation)> {
        let is_open = |operation: &&Operation| operation.price == Price::Free && takes(operation);
        let list = self.operation(self.service.page.list).filter(is_open).map(|list| (ListKind::Records, list));
        list.or_else(|| self.filtered_feed().filter(is_open).map(|feed| (ListKind::Changes, feed)))
    }

    /// Whether a caller without a key may read the changes.
    pub(crate) fn has_free_changes(&self) -> bool {
        self.operation("changes").is_some_and(|changes| changes.price == Price::Free)
    }

    /// The address of the explorer that lists something under a filter.
    pub(crate) fn explorer_of(&self, kind: ListKind, filter: impl IntoIterator<Item = (String, String)>) -> String {
        let view = ("view".to_owned(), kind.name().to_owned());
        let pairs: Pairs = std::iter::once(view).chain(filter).collect();
        format!("{}{}", self.explorer(), url::query(&pairs))
    }
}

#[cfg(test)]
mod tests {
    use schemas::views::accounts::Tier;

    use super::*;
    use crate::Reads;
    use crate::testing::{Made, searched_by_feed};

    fn found(made: &Made, takes: impl Fn(&Operation) -> bool) -> Option<(ListKind, &str)> {
        made.services()[0].free_list(takes).map(|(kind, operation)| (kind, operation.name))
    }

    /// Proves that the records come first, then the changes if they are free, and that an operation that does not take the filter lists nothing.
    #[test]
    fn what_is_listed_without_a_key() {
        let mut made = Made::new();
        assert_eq!(found(&made, |_| true), Some((ListKind::Records, "list")));
        assert_eq!(found(&made, |_| false), None);
        made.remove_operation("list");
        assert_eq!(found(&made, |_| true), None, "the filtered feed needs a key");
        assert_eq!(found(&searched_by_feed(), |_| true), Some((ListKind::Changes, "whats_changed_since")));
    }

    /// Proves that an explorer leads to the changes only if they are free, and says otherwise that they need a key.
    #[test]
    fn changes_that_need_a_key() {
        let mut made = Made::new();
        let (link, words) = ("href=\"/explore/made?view=changes\"", "A key is needed to read the changes.");
        let html = made.page("/explore/made").html;
        assert!(html.contains(link) && !html.contains(words), "{html}");
        let changes = made.service.operations.iter_mut().find(|operation| operation.name == "changes").unwrap();
        changes.price = Price::Tier(Tier::Pro);
        let html = made.page("/explore/made").html;
        assert!(!html.contains(link) && html.contains(words), "{html}");
    }

    /// Proves that addresses name what is listed before the filter.
    #[test]
    fn addresses_name_what_is_listed() {
        let made = Made::new();
        let shown = made.services()[0];
        assert_eq!(shown.explorer_of(ListKind::Records, []), "/explore/made?view=records");
        let filter = [("keyword".to_owned(), "x y".to_owned())];
        assert_eq!(shown.explorer_of(ListKind::Changes, filter), "/explore/made?view=changes&keyword=x+y");
    }
}
