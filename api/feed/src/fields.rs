//! The table of a filter's fields: each row says how a given value is checked, which records it selects, and how their changes are found.

use operation::known::known_value;
use operation::problem::Problem;
use schemas::views::records::normal;

use crate::terms::{Named, TermQuery, contains};

/// One row of the table of a filter's fields: how a given value is checked, which records it selects, and how their changes are found. Without
/// further calls a field selects every record, and a text is normalized as terms are, so that a blank one counts as not given.
pub struct Field<F, R> {
    pub(crate) name: &'static str,
    pub(crate) text: Option<Text<F>>,
    reading: Reading,
    condition: Condition<F, R>,
    search: Option<(u8, Search<F>)>,
    pub(crate) named: Option<Named>,
}

/// Where a filter holds the text of a field.
pub(crate) struct Text<F> {
    get: fn(&F) -> Option<&str>,
    pub(crate) slot: fn(&mut F) -> &mut Option<String>,
}

/// How the text of a field is checked and normalized.
enum Reading {
    Normalized,
    AsGiven,
    Known(&'static [&'static str]),
    By(fn(&'static str, &str) -> Result<String, Problem>),
    ByUnlessBlank(fn(&'static str, &str) -> Result<String, Problem>),
}

/// Which records a field selects.
enum Condition<F, R> {
    Any,
    Equal(fn(&R) -> &str),
    SameTerm(fn(&R) -> &str),
    Containing(fn(&R) -> &str),
    OfText(fn(&R, &str) -> bool),
    OfFilter(fn(&F, &R) -> bool),
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
        Self { name, text: None, reading: Reading::Normalized, condition: Condition::Any, search: None, named: None }
    }

    /// A field that is an optional text. [`text_field!`](crate::text_field) calls it.
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

    /// Checks and normalizes a text, given the name of the field. A blank text counts as not given.
    #[must_use]
    pub const fn read_unless_blank_by(self, read: fn(&'static str, &str) -> Result<String, Problem>) -> Self {
        Self { reading: Reading::ByUnlessBlank(read), ..self }
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

    /// Says that values are names, or parts of names, that are recorded in a dimension: see [`Named`].
    #[must_use]
    pub const fn with_names(self, dimension: &'static str) -> Self {
        Self { named: Some(Named::name(self.name, dimension)), ..self }
    }

    /// Says that values are codes that are recorded in a dimension: see [`Named`].
    #[must_use]
    pub const fn with_codes(self, dimension: &'static str) -> Self {
        Self { named: Some(Named::code(self.name, dimension)), ..self }
    }

    /// The name of the field in queries.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Checks and normalizes the field.
    pub(crate) fn read(&self, filter: &mut F) -> Result<(), Problem> {
        let Some(text) = &self.text else { return Ok(()) };
        let slot = (text.slot)(filter);
        let Some(given) = slot.take() else { return Ok(()) };
        *slot = match self.reading {
            Reading::Normalized => Some(normal(&given)).filter(|text| !text.is_empty()),
            Reading::AsGiven => Some(given),
            Reading::Known(known) => Some(known_value(self.name, self.name, &given, known)?.to_owned()),
            Reading::ByUnlessBlank(_) if given.trim().is_empty() => None,
            Reading::By(read) | Reading::ByUnlessBlank(read) => Some(read(self.name, &given)?),
        };
        Ok(())
    }

    /// Whether the field selects a record.
    pub(crate) fn selects(&self, filter: &F, record: &R) -> bool {
        let fits = |rule: &dyn Fn(&str) -> bool| self.given(filter).is_none_or(rule);
        match self.condition {
            Condition::Any => true,
            Condition::Equal(own) => fits(&|wanted| own(record) == wanted),
            Condition::SameTerm(own) => fits(&|wanted| normal(own(record)) == normal(wanted)),
            Condition::Containing(own) => fits(&|wanted| contains(own(record), wanted)),
            Condition::OfText(rule) => fits(&|wanted| rule(record, wanted)),
            Condition::OfFilter(rule) => rule(filter, record),
        }
    }

    /// The order and the query of the search, if the field is given and is one by which changes are found.
    pub(crate) fn query(&self, filter: &F) -> Option<(u8, TermQuery)> {
        let (order, search) = self.search.as_ref()?;
        let query = match search {
            Search::Term(dimension) => TermQuery::Exact(dimension, vec![self.given(filter)?.to_owned()]),
            Search::Part(dimension) => TermQuery::Part(dimension, self.given(filter)?.to_owned()),
            Search::By(query) => query(filter)?,
        };
        Some((*order, query))
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
        assert_eq!((read(text().read_unless_blank_by(upper), "tx"), read(text().read_unless_blank_by(upper), " ")), (some("TX"), Ok(None)));
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
