//! The table of a filter's fields: each row says how a given value is checked, which records it selects, and how their changes are found.

use operation::known_values::known_value;
use operation::problem::Problem;
use schemas::views::records::normal;

use crate::terms::{Named, TermQuery, contains};

/// One row of the table of a filter's fields: how a given value is checked, which records it selects, and how their changes are found. Without
/// further calls a field selects every record, and a text is normalized as terms are, so that a blank one counts as not given.
pub struct Field<F, R> {
    name: &'static str,
    text: Option<Text<F>>,
    reading: Reading,
    is_unset_if_blank: bool,
    condition: Condition<F, R>,
    search: Option<(u8, Search<F>)>,
    named: Option<Named>,
    words: Option<fn(&str) -> Vec<String>>,
    backfill: Option<fn(&F) -> bool>,
}

/// The lower and the upper bound of a range, as far as they are given.
pub type Bounds = (Option<f64>, Option<f64>);

/// Where a filter holds the text of a field.
struct Text<F> {
    get: fn(&F) -> Option<&str>,
    slot: fn(&mut F) -> &mut Option<String>,
}

/// How the text of a field is checked and normalized.
enum Reading {
    Normalized,
    AsGiven,
    Known(&'static [&'static str]),
    By(fn(&'static str, &str) -> Result<String, Problem>),
}

/// Which records a field selects.
enum Condition<F, R> {
    Any,
    Equal(fn(&R) -> &str),
    SameTerm(fn(&R) -> &str),
    Containing(fn(&R) -> &str),
    OfText(fn(&R, &str) -> bool),
    OfFilter(fn(&F, &R) -> bool),
    Within { most: &'static str, bounds: fn(&F) -> Bounds, own: fn(&R) -> Option<f64> },
}

/// How the changes that a field selects are found.
enum Search<F> {
    Term(&'static str),
    Part(&'static str),
    By(fn(&F) -> Option<TermQuery>),
}

impl<F, R> Field<F, R> {
    /// A field of any type, by its name in queries.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            text: None,
            reading: Reading::Normalized,
            is_unset_if_blank: false,
            condition: Condition::Any,
            search: None,
            named: None,
            words: None,
            backfill: None,
        }
    }

    /// The field `includeBackfill`: whether late news is selected as well.
    #[must_use]
    pub const fn backfill(includes: fn(&F) -> bool) -> Self {
        Self { backfill: Some(includes), ..Self::new("includeBackfill") }
    }

    /// Two fields that are the bounds of a range, by their names in queries. They select the records with a number within the bounds; a record without a
    /// number is selected only if neither bound is given. A range that ends before it begins is refused.
    #[must_use]
    pub const fn range(least: &'static str, most: &'static str, bounds: fn(&F) -> Bounds, own: fn(&R) -> Option<f64>) -> Self {
        Self { condition: Condition::Within { most, bounds, own }, ..Self::new(least) }
    }

    /// A field that is an optional text. `feed::text_field!` calls it.
    #[must_use]
    pub const fn text(name: &'static str, get: fn(&F) -> Option<&str>, slot: fn(&mut F) -> &mut Option<String>) -> Self {
        Self { text: Some(Text { get, slot }), ..Self::new(name) }
    }

    /// Leaves a text as it is given.
    #[must_use]
    pub const fn left_as_given(self) -> Self {
        Self { reading: Reading::AsGiven, ..self }
    }

    /// Refuses a text that is none of a closed list, and gives the others the spelling of the list.
    #[must_use]
    pub const fn one_of(self, known: &'static [&'static str]) -> Self {
        Self { reading: Reading::Known(known), ..self }
    }

    /// Checks and normalizes a text, given the name of the field.
    #[must_use]
    pub const fn read_by(self, read: fn(&'static str, &str) -> Result<String, Problem>) -> Self {
        Self { reading: Reading::By(read), ..self }
    }

    /// Counts a blank text as not given, before it is checked.
    #[must_use]
    pub const fn unset_if_blank(self) -> Self {
        Self { is_unset_if_blank: true, ..self }
    }

    /// Selects the records with exactly the text.
    #[must_use]
    pub const fn equal_to(self, own: fn(&R) -> &str) -> Self {
        Self { condition: Condition::Equal(own), ..self }
    }

    /// Selects the records with the text, under the normalization of terms.
    #[must_use]
    pub const fn same_term_as(self, own: fn(&R) -> &str) -> Self {
        Self { condition: Condition::SameTerm(own), ..self }
    }

    /// Selects the records with a value that [`contains`] the text.
    #[must_use]
    pub const fn part_of(self, own: fn(&R) -> &str) -> Self {
        Self { condition: Condition::Containing(own), ..self }
    }

    /// Selects the records that a rule selects for the text.
    #[must_use]
    pub const fn selecting(self, rule: fn(&R, &str) -> bool) -> Self {
        Self { condition: Condition::OfText(rule), ..self }
    }

    /// Selects the records that a rule selects for the whole filter, whether or not the field is given.
    #[must_use]
    pub const fn selecting_by(self, rule: fn(&F, &R) -> bool) -> Self {
        Self { condition: Condition::OfFilter(rule), ..self }
    }

    /// Finds changes by the text as a value of a dimension. Searches of a lower `order` are more selective and come first.
    #[must_use]
    pub const fn found_by_term(self, order: u8, dimension: &'static str) -> Self {
        Self { search: Some((order, Search::Term(dimension))), ..self }
    }

    /// Finds changes by the text as a part of a value of a dimension. Searches of a lower `order` are more selective and come first.
    #[must_use]
    pub const fn found_by_part(self, order: u8, dimension: &'static str) -> Self {
        Self { search: Some((order, Search::Part(dimension))), ..self }
    }

    /// Finds changes by the query that a rule makes of the whole filter. Searches of a lower `order` are more selective and come first.
    #[must_use]
    pub const fn found_by(self, order: u8, query: fn(&F) -> Option<TermQuery>) -> Self {
        Self { search: Some((order, Search::By(query))), ..self }
    }

    /// Names words, as [`folded_words`](texts::folding::folded_words) returns them, each of which every record that the field selects for a text has in its
    /// own texts. A search without an index passes over the changes that lack one, without decoding them.
    #[must_use]
    pub const fn needing_words(self, words: fn(&str) -> Vec<String>) -> Self {
        Self { words: Some(words), ..self }
    }

    /// Says that values are names, or parts of names, that are recorded in a dimension: see [`Named`].
    #[must_use]
    pub const fn with_names(self, dimension: &'static str) -> Self {
        Self { named: Some(Named::name(self.name, dimension)), ..self }
    }

    /// As [`Self::with_names`], for a dimension that has the values of several fields of records.
    #[must_use]
    pub const fn with_names_of(self, dimension: &'static str, fields: &'static [&'static str]) -> Self {
        let named = Named { fields, ..Named::name(self.name, dimension) };
        Self { named: Some(named), ..self }
    }

    /// Says that values are codes that are recorded in a dimension: see [`Named`].
    #[must_use]
    pub const fn with_codes(self, dimension: &'static str) -> Self {
        Self { named: Some(Named::code(self.name, dimension)), ..self }
    }

    /// The name of the field in queries; of a range, that of its lower bound.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The name of the field in queries, or both names of a range.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let most = if let Condition::Within { most, .. } = self.condition { Some(most) } else { None };
        [self.name].into_iter().chain(most)
    }

    /// The field as one whose values are recorded ones; `None` if it does not say so.
    #[must_use]
    pub const fn named(&self) -> Option<Named> {
        self.named
    }

    /// Gives a filter a text in the field. Returns false if the field is no text.
    #[must_use]
    pub fn set(&self, filter: &mut F, text: &str) -> bool {
        let Some(own) = &self.text else { return false };
        *(own.slot)(filter) = Some(text.to_owned());
        true
    }

    /// Checks and normalizes the field.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the field.
    pub fn read(&self, filter: &mut F) -> Result<(), Problem> {
        let Some(text) = &self.text else { return Ok(()) };
        let slot = (text.slot)(filter);
        let Some(given) = slot.take() else { return Ok(()) };
        *slot = match self.reading {
            _ if self.is_unset_if_blank && given.trim().is_empty() => None,
            Reading::Normalized => Some(normal(&given)).filter(|text| !text.is_empty()),
            Reading::AsGiven => Some(given),
            Reading::Known(known) => Some(known_value(self.name, &given, known)?.to_owned()),
            Reading::By(read) => Some(read(self.name, &given)?),
        };
        Ok(())
    }

    /// Whether the field selects a record.
    #[must_use]
    pub fn selects(&self, filter: &F, record: &R) -> bool {
        let fits = |rule: &dyn Fn(&str) -> bool| self.given(filter).is_none_or(rule);
        match self.condition {
            Condition::Any => true,
            Condition::Equal(own) => fits(&|wanted| own(record) == wanted),
            Condition::SameTerm(own) => fits(&|wanted| normal(own(record)) == normal(wanted)),
            Condition::Containing(own) => fits(&|wanted| contains(own(record), wanted)),
            Condition::OfText(rule) => fits(&|wanted| rule(record, wanted)),
            Condition::OfFilter(rule) => rule(filter, record),
            Condition::Within { bounds, own, .. } => {
                let (least, most) = bounds(filter);
                least.is_none_or(|least| own(record).is_some_and(|number| number >= least))
                    && most.is_none_or(|most| own(record).is_some_and(|number| number <= most))
            }
        }
    }

    /// Checks that the field, if it is a range, does not end before it begins.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the lower bound.
    pub fn check_range(&self, filter: &F) -> Result<(), Problem> {
        let (name, Condition::Within { most, bounds, .. }) = (self.name, &self.condition) else { return Ok(()) };
        match bounds(filter) {
            (Some(low), Some(high)) if low > high => {
                Err(Problem::parameter(name, format!("{name}: {low} is more than {high}, which is given as {most}")))
            }
            _ => Ok(()),
        }
    }

    /// Whether the field is the one by which late news is included.
    #[must_use]
    pub fn is_for_backfill(&self) -> bool {
        self.backfill.is_some()
    }

    /// Whether the field asks for late news.
    #[must_use]
    pub fn includes_backfill(&self, filter: &F) -> bool {
        self.backfill.is_some_and(|includes| includes(filter))
    }

    /// The order and the query of the search, if the field is given and is one by which changes are found.
    #[must_use]
    pub fn query(&self, filter: &F) -> Option<(u8, TermQuery)> {
        let (order, search) = self.search.as_ref()?;
        let query = match search {
            Search::Term(dimension) => TermQuery::Exact(dimension, vec![self.given(filter)?.to_owned()]),
            Search::Part(dimension) => TermQuery::Part(dimension, self.given(filter)?.to_owned()),
            Search::By(query) => query(filter)?,
        };
        Some((*order, query))
    }

    /// The words that every record has which the field selects, as far as the field names them.
    #[must_use]
    pub fn words(&self, filter: &F) -> Vec<String> {
        self.words.zip(self.given(filter)).map_or_else(Vec::new, |(words, text)| words(text))
    }

    fn given<'a>(&self, filter: &'a F) -> Option<&'a str> {
        self.text.as_ref().and_then(|text| (text.get)(filter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Given {
        text: Option<String>,
        least: i64,
        bounds: Bounds,
    }

    struct Owned {
        text: &'static str,
        size: i64,
    }

    type Row = Field<Given, Owned>;

    fn text() -> Row {
        Row::text("text", |given| given.text.as_deref(), |given| &mut given.text)
    }

    fn given(text: &str) -> Given {
        Given { text: Some(text.to_owned()), ..Given::default() }
    }

    /// Proves that a field that is not given selects every record, and which records each kind of condition selects.
    #[test]
    fn conditions() {
        let record = Owned { text: "Acme  Holdings", size: 3 };
        let own: fn(&Owned) -> &str = |record| record.text;
        for (row, fitting, other) in [
            (text().equal_to(own), "Acme  Holdings", "acme holdings"),
            (text().same_term_as(own), " ACME holdings", "acme"),
            (text().part_of(own), "ME hold", "me holder"),
            (text().selecting(|record, wanted| record.text.len() == wanted.len()), "as long as one", "shorter"),
        ] {
            assert!(row.selects(&given(fitting), &record) && !row.selects(&given(other), &record), "{fitting}");
            assert!(row.selects(&Given::default(), &record), "{fitting}");
        }
        let least = Row::new("least").selecting_by(|given, record| record.size >= given.least);
        assert!(least.selects(&given("any"), &record) && !least.selects(&Given { least: 4, ..Given::default() }, &record));
        assert!(text().selects(&given("any"), &record));
    }

    /// Proves how texts are checked and normalized, and that a refusal names the field.
    #[test]
    fn readings() {
        fn upper(name: &'static str, text: &str) -> Result<String, Problem> {
            if text.trim().is_empty() { Err(Problem::parameter(name, "is blank")) } else { Ok(text.to_uppercase()) }
        }
        let read = |row: Row, text: &str| {
            let mut filter = given(text);
            row.read(&mut filter).map(|()| filter.text).map_err(|problem| problem.parameter)
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        let refused = Err("text".to_owned());
        assert_eq!((read(text(), " Two  Words "), read(text(), " ")), (some("two words"), Ok(None)));
        assert_eq!(read(text().left_as_given(), " Two  Words "), some(" Two  Words "));
        assert_eq!((read(text().one_of(&["CA", "TX"]), "tx"), read(text().one_of(&["CA", "TX"]), "t")), (some("TX"), refused.clone()));
        assert_eq!((read(text().read_by(upper), "tx"), read(text().read_by(upper), " ")), (some("TX"), refused));
        let optional = [text().read_by(upper).unset_if_blank(), text().one_of(&["CA", "TX"]).unset_if_blank()];
        for row in optional {
            let mut blank = given(" ");
            assert_eq!((row.read(&mut blank).map(|()| blank.text), read(row, "tx")), (Ok(None), some("TX")));
        }
    }

    /// Proves that a text is given to the filter by the field that holds it, and by no other one.
    #[test]
    fn texts_are_set() {
        let mut filter = Given::default();
        assert!(text().set(&mut filter, "a") && filter.text.as_deref() == Some("a"));
        assert!(!Row::new("least").set(&mut filter, "b") && filter.text.as_deref() == Some("a"));
    }

    /// Proves which records a range selects, that it has the names of both bounds, and that one that ends before it begins is refused with its lower bound.
    #[test]
    fn ranges() {
        let row = Row::range("minSize", "maxSize", |given| given.bounds, |record| (record.size > 0).then_some(3.0));
        let known = Owned { text: "", size: 1 };
        let unknown = Owned { text: "", size: 0 };
        for (bounds, fits) in [
            ((None, None), true),
            ((Some(3.0), None), true),
            ((None, Some(3.0)), true),
            ((Some(3.0), Some(3.0)), true),
            ((Some(3.5), None), false),
            ((None, Some(2.5)), false),
        ] {
            let filter = Given { bounds, ..Given::default() };
            assert_eq!(row.check_range(&filter), Ok(()), "{bounds:?}");
            assert_eq!(row.selects(&filter, &known), fits, "{bounds:?}");
            assert_eq!(row.selects(&filter, &unknown), bounds == (None, None), "{bounds:?}");
        }
        assert_eq!((row.names().collect::<Vec<_>>(), text().names().collect::<Vec<_>>()), (vec!["minSize", "maxSize"], vec!["text"]));
        let problem = row.check_range(&Given { bounds: (Some(2.5), Some(1.0)), ..Given::default() }).unwrap_err();
        assert_eq!(
            (problem.parameter.as_str(), problem.detail.as_str()),
            ("minSize", "minSize: 2.5 is more than 1, which is given as maxSize")
        );
    }

    /// Proves that only the field of late news asks for it, and only if it is given.
    #[test]
    fn backfill() {
        let row = Row::backfill(|given| given.least > 0);
        let asked = Given { least: 1, ..Given::default() };
        assert!(row.includes_backfill(&asked) && !row.includes_backfill(&Given::default()));
        assert!(!text().includes_backfill(&asked) && row.is_for_backfill() && !text().is_for_backfill());
    }

    /// Proves that a field names the words of its text if it is given.
    #[test]
    fn words() {
        let row = text().needing_words(|text| text.split(' ').map(str::to_owned).collect());
        assert_eq!((row.words(&given("a b")), row.words(&Given::default())), (vec!["a".to_owned(), "b".to_owned()], vec![]));
        assert_eq!(text().words(&given("a b")), Vec::<String>::new());
    }

    /// Proves that a field that is given has the query of its search with its order, and no other field has one.
    #[test]
    fn queries() {
        let exact = TermQuery::Exact("dimension", vec!["a".to_owned()]);
        let part = TermQuery::Part("dimension", "a".to_owned());
        for (row, expected) in [
            (text(), None),
            (text().found_by_term(2, "dimension"), Some((2, exact.clone()))),
            (text().found_by_part(1, "dimension"), Some((1, part))),
            (text().found_by(3, |given| Some(TermQuery::Exact("dimension", vec![given.text.clone()?]))), Some((3, exact))),
        ] {
            assert_eq!((row.query(&given("a")), row.query(&Given::default())), (expected, None));
        }
    }
}
