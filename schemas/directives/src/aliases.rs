//! Makers and the names of their products: a data file (`data/aircraft_aliases.json`), and the compact form in which models are compared.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;
use texts::company_names::{folded, normal_form};
use texts::data_file::{DataEntry, DataFile, ShownFile};

/// The longest name of a make or model that is read, in characters.
const NAME_CHARS_MAX: usize = 80;
/// From so many letters on, the first word of a make that the file does not know is its key.
const FIRST_WORD_CHARS_MIN: usize = 4;
/// The shortest marketing name that may begin a longer one, in bytes: the "JetRanger" of "JetRanger III".
const MARKETING_BYTES_MIN: usize = 4;
/// How many makes or models are offered for one that is unknown.
const NEAREST_MAX: usize = 5;

/// A maker and its products.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maker {
    /// The key.
    pub name: String,
    /// The names of the maker, in capitals without legal forms, sorted.
    pub names: Vec<String>,
    /// The keys of makers whose products it holds now.
    pub also: Vec<String>,
    /// Other names under which models of its series are known: "Hughes 269C", which Schweizer made later.
    #[serde(default)]
    pub sold_as: Vec<String>,
    /// Marketing words that may stand before a designation, or after it: "Bonanza A36", "172 Skyhawk".
    pub words: Vec<String>,
    /// Letters that people write before a designation of its series: the `C` of "C172".
    #[serde(default)]
    pub letters: Vec<String>,
    /// Series in compact form.
    pub series: Vec<String>,
    /// Marketing names of models, and the models, both in compact form.
    pub models: BTreeMap<String, String>,
    /// Names that mean models of several series, and the beginnings of those models, all in compact form: `PW11` for `PW1100G`, `PA28` and `PA32` for `CHEROKEE`.
    #[serde(default)]
    pub families: BTreeMap<String, Vec<String>>,
}

impl DataEntry for Maker {
    fn name(&self) -> &str {
        &self.name
    }

    fn values(&self) -> &[String] {
        &self.names
    }
}

/// The makers of this version of the program.
pub static ALIASES: LazyLock<DataFile<Maker>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/aircraft_aliases.json")).unwrap_or_default()
});

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Maker>>> = LazyLock::new(|| {
    let mut makers: HashMap<&str, Vec<&Maker>> = HashMap::new();
    for maker in &ALIASES.entries {
        for name in &maker.names {
            makers.entry(name.as_str()).or_default().push(maker);
        }
    }
    makers
});
static BY_KEY: LazyLock<HashMap<&'static str, &'static Maker>> =
    LazyLock::new(|| ALIASES.entries.iter().map(|maker| (maker.name.as_str(), maker)).collect());
/// The most words that a name of the file has.
static NAME_WORDS_MAX: LazyLock<usize> = LazyLock::new(|| BY_NAME.keys().map(|name| name.split(' ').count()).max().unwrap_or_default());

/// The version of the data file of makes and models.
#[must_use]
pub fn aliases_version() -> u32 {
    ALIASES.version
}

/// The data file of makes and models as documents show it.
#[must_use]
pub fn shown_aliases() -> ShownFile {
    ALIASES.shown("aircraft_aliases.json")
}

/// Returns the compact form of a model: capitals and digits without blanks, dashes, points and slashes. A plus sign counts.
#[must_use]
pub fn compact_form(model: &str) -> String {
    let short: String = model.chars().take(NAME_CHARS_MAX).collect();
    folded(&short).chars().filter(|c| c.is_ascii_alphanumeric() || *c == '+').collect()
}

/// Returns the keys of a make, sorted: those of the makers with this name, and of the makers whose products they hold. A make that the file
/// does not know is its own key: its first word, or all words if the first is short. Empty if the name has no letter or digit.
#[must_use]
pub fn resolve_makes(make: &str) -> Vec<String> {
    let name = normal_form(make);
    let mut words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
    let mut keys = BTreeSet::new();
    // The name itself, or the longest beginning of it that is known: "Airbus Helicopters Deutschland" before "Airbus".
    words.truncate(*NAME_WORDS_MAX);
    for count in (1..=words.len()).rev() {
        if let Some(makers) = BY_NAME.get(words.get(..count).unwrap_or_default().join(" ").as_str()) {
            for maker in makers {
                keys.insert(maker.name.clone());
                keys.extend(maker.also.iter().cloned());
            }
            break;
        }
    }
    // The beginning of a longer name: "Quartz Mountain" of "Quartz Mountain Aerospace".
    if keys.is_empty() && words.len() > 1 {
        let own = words.join(" ");
        let is_longer = |maker: &&Maker| maker.names.iter().any(|other| is_beginning(&own, other));
        keys.extend(ALIASES.entries.iter().filter(is_longer).map(|maker| maker.name.clone()));
    }
    if keys.is_empty() && !words.is_empty() {
        let first = words.first().copied().unwrap_or_default();
        keys.insert(if first.chars().count() >= FIRST_WORD_CHARS_MIN { first.to_owned() } else { name.clone() });
    }
    keys.into_iter().collect()
}

/// Returns the keys of the make of a model, sorted: those of the make, and of the makers that are known under its name, or under a longer name with the same
/// first word, if the model is one of theirs. `AIRBUS HELICOPTERS` for "Airbus AS350B3", `SCHWEIZER` for "Hughes 269C".
#[must_use]
pub(crate) fn makes_of_model(make: &str, form: &str) -> Vec<String> {
    let mut keys: BTreeSet<String> = resolve_makes(make).into_iter().collect();
    let name = normal_form(make);
    let first = name.split(' ').next().unwrap_or_default();
    if first.is_empty() {
        return keys.into_iter().collect();
    }
    for maker in &ALIASES.entries {
        let is_known_as = maker.sold_as.iter().any(|other| is_beginning(other, &name))
            || maker.names.iter().any(|other| first.len() >= FIRST_WORD_CHARS_MIN && is_beginning(first, other));
        if is_known_as && !keys.contains(&maker.name) && has_model(maker, &name, form) {
            keys.insert(maker.name.clone());
        }
    }
    keys.into_iter().collect()
}

/// Returns the keys of the makers that have a model by its compact form alone, sorted.
pub(crate) fn makers_of_form(form: &str) -> Vec<String> {
    ALIASES.entries.iter().filter(|maker| has_model(maker, "", form)).map(|maker| maker.name.clone()).collect()
}

/// Whether several makers have the longest series or marketing name with which a compact form begins: the `IO360` of Continental and of Lycoming.
pub(crate) fn has_several_makers(form: &str) -> bool {
    let longest = |maker: &Maker| {
        let names = maker.series.iter().chain(maker.models.keys());
        names.filter(|name| form.starts_with(name.as_str())).map(String::len).max()
    };
    let found: Vec<usize> = ALIASES.entries.iter().filter_map(longest).collect();
    let most = found.iter().max();
    found.iter().filter(|length| Some(*length) == most).count() > 1
}

/// Whether a name begins with the words of another one.
fn is_beginning(words: &str, name: &str) -> bool {
    name.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether a compact form, with or without the name of its make, is a model of a maker by the series and the marketing names of the file.
fn has_model(maker: &Maker, name: &str, form: &str) -> bool {
    let without_name = name.split(' ').next().and_then(|word| rest_of(form, word));
    let without_words = maker.names.iter().chain(&maker.words).filter_map(|word| rest_of(form, word));
    let is_its = |form: &str| {
        maker.models.contains_key(form)
            || marketed(maker, form).is_some()
            || family(maker, form).is_some()
            || maker.series.iter().any(|series| form.starts_with(series.as_str()))
    };
    std::iter::once(form).chain(without_name).chain(without_words).any(is_its)
}

/// The longest marketing name with which a compact form begins, and the model that it means.
fn marketed<'m>(maker: &'m Maker, form: &str) -> Option<(&'m str, &'m str)> {
    let names = maker.models.iter().map(|(name, model)| (name.as_str(), model.as_str()));
    names.filter(|(name, _)| name.len() >= MARKETING_BYTES_MIN && form.starts_with(*name)).max_by_key(|(name, _)| name.len())
}

/// Returns the series of the models whose marketing names a form begins with: `206` for `JETRANGERIII`, `MBBBK117` for `H145D3`. The rest of the name is
/// not understood, so that this is not the model.
pub(crate) fn marketed_series(makes: &[String], form: &str) -> BTreeSet<String> {
    let makers = makes.iter().filter_map(|key| BY_KEY.get(key.as_str()));
    makers.filter_map(|maker| marketed(maker, form)).map(|(_, model)| series_of(makes, model)).collect()
}

/// The longest family name that a compact form is, or that it begins with if neither the name nor the rest has a digit, and the beginnings of the models of
/// that family.
fn family<'m>(maker: &'m Maker, form: &str) -> Option<(&'m str, &'m [String])> {
    let has_digit = |part: &str| part.bytes().any(|byte| byte.is_ascii_digit());
    let is_named = |name: &str| form == name || (!has_digit(form) && form.starts_with(name));
    let families = maker.families.iter().filter(|(name, _)| is_named(name.as_str()));
    families.max_by_key(|(name, _)| name.len()).map(|(name, beginnings)| (name.as_str(), beginnings.as_slice()))
}

/// Returns the beginnings of the models that the name of a family means: `PW11` for `PW1100G`, `PA28` and `PA32` for `CHEROKEE`. A marketing name that has more
/// of the form than the name of the family means its own model.
pub(crate) fn family_of(makes: &[String], form: &str) -> BTreeSet<String> {
    let makers = makes.iter().filter_map(|key| BY_KEY.get(key.as_str()));
    let families = makers.filter_map(|maker| {
        let (name, beginnings) = family(maker, form)?;
        let is_longest = marketed(maker, form).is_none_or(|(other, _)| other.len() <= name.len());
        is_longest.then_some(beginnings)
    });
    families.flatten().cloned().collect()
}

/// Whether the data file knows one of the keys of a make, see [`resolve_makes`].
#[must_use]
pub fn is_known_make(keys: &[String]) -> bool {
    keys.iter().any(|key| is_known(key))
}

/// Whether a name is that of a maker that the file knows.
pub(crate) fn is_maker(name: &str) -> bool {
    is_known_make(&resolve_makes(name))
}

/// Whether the file knows a maker with this key.
pub(crate) fn is_known(key: &str) -> bool {
    BY_KEY.contains_key(key)
}

/// Returns the names of the file that are nearest to an unknown make, nearest first.
#[must_use]
pub fn nearest_makes(make: &str) -> Vec<&'static str> {
    let name = normal_form(make);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for maker in &ALIASES.entries {
        let distance = maker.names.iter().map(|known| strsim::osa_distance(&name, known)).min().unwrap_or(usize::MAX);
        near.push((distance, maker.name.as_str()));
    }
    nearest_of(near, &name)
}

/// Returns the models that are nearest to the compact form of one of some makes, nearest first: of the models that have a marketing name in the file, and of
/// those that texts name, each with its compact form and its name. The form itself is not one of them.
#[must_use]
pub fn nearest_models<'a>(makes: &[String], form: &str, named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let mut known: BTreeMap<&'a str, &'a str> = BTreeMap::new();
    for maker in makes.iter().filter_map(|key| BY_KEY.get(key.as_str())) {
        for model in maker.models.values() {
            known.insert(model.as_str(), model.as_str());
        }
    }
    // A text writes a model as people do, the file in compact form.
    known.extend(named);
    known.remove(form);
    nearest_of(known.into_iter().map(|(other, name)| (strsim::osa_distance(form, other), name)).collect(), form)
}

/// The first names by distance, without those that differ from the given one in more than half of its letters.
fn nearest_of<'a>(mut near: Vec<(usize, &'a str)>, given: &str) -> Vec<&'a str> {
    near.sort_unstable();
    near.truncate(NEAREST_MAX);
    near.into_iter().filter(|(distance, _)| *distance * 2 <= given.chars().count().max(4)).map(|(_, name)| name).collect()
}

/// Returns the other compact forms of a model of some makes: without the name of the make, without marketing words before or after the designation, without the
/// letters that people write before it, and the model that a marketing name means.
pub(crate) fn other_forms(makes: &[String], form: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let makers: Vec<&Maker> = makes.iter().filter_map(|key| BY_KEY.get(key.as_str()).copied()).collect();
    let mut bare: BTreeSet<&str> = makes.iter().filter_map(|key| rest_of(form, key)).collect();
    bare.insert(form);
    // Twice: "MD Helicopters MD 902".
    for _ in 0..2 {
        let names = || makers.iter().flat_map(|maker| maker.names.iter().map(move |name| (*maker, name)));
        let rests: Vec<&str> =
            bare.iter().flat_map(|&form| names().filter_map(move |(maker, name)| rest_after(maker, form, name))).collect();
        bare.extend(rests);
    }
    for own in bare {
        forms.insert(own.to_owned());
        for maker in &makers {
            for name in std::iter::once(own).chain(without_marketing(maker, own)) {
                forms.insert(name.to_owned());
                forms.extend(maker.models.get(name).cloned());
                forms.extend(maker.words.iter().filter_map(|word| rest_of(name, word)).map(str::to_owned));
                forms.extend(without_letters(maker, name).map(str::to_owned));
            }
        }
    }
    forms.remove(form);
    forms
}

/// The rest of a compact form that ends with a marketing word or name of its maker: `902` of `902EXPLORER`, `PA28140` of `PA28140CHEROKEE`. `None` if the rest
/// has no digit.
fn without_marketing<'f>(maker: &Maker, form: &'f str) -> Option<&'f str> {
    let letters = form.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
    if letters < MARKETING_BYTES_MIN || letters == form.len() {
        return None;
    }
    let words = maker.words.iter().map(|word| compact_form(word)).filter(|word| word.len() >= MARKETING_BYTES_MIN);
    let rest = words.filter_map(|word| form.strip_suffix(word.as_str())).min_by_key(|rest| rest.len());
    let names = maker.models.keys().filter(|name| name.len() >= MARKETING_BYTES_MIN && name.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let rest = rest.or_else(|| names.filter_map(|name| form.strip_suffix(name.as_str())).min_by_key(|rest| rest.len()));
    rest.filter(|rest| rest.bytes().any(|byte| byte.is_ascii_digit()))
}

/// The rests of a compact form without the letters that people write before a designation, where a series of the maker follows: `172S` of `C172S`.
fn without_letters<'f>(maker: &'f Maker, form: &'f str) -> impl Iterator<Item = &'f str> {
    let rests = maker.letters.iter().filter_map(move |letters| form.strip_prefix(letters.as_str()));
    rests.filter(move |rest| maker.series.iter().any(|series| rest.starts_with(series.as_str())))
}

/// Returns the names and marketing words of a maker in compact form.
fn prefixes(maker: &Maker) -> impl Iterator<Item = String> {
    maker.names.iter().chain(&maker.words).map(|name| compact_form(name))
}

/// Returns the compact forms of a model with the name of the make before it, for makers whose designations begin with their name: `ATR72212A` for
/// `72212A`, `CFM567B` for `567B`.
pub(crate) fn forms_with_name(makes: &[String], form: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for maker in makes.iter().filter_map(|key| BY_KEY.get(key.as_str())) {
        for name in maker.names.iter().map(|name| compact_form(name)) {
            let mut rests = maker.series.iter().filter_map(|series| series.strip_prefix(name.as_str()));
            if rests.any(|rest| !rest.is_empty() && form.starts_with(rest)) {
                forms.insert(format!("{name}{form}"));
            }
        }
    }
    forms
}

/// Whether a compact form begins with a series of the makes that itself begins with a name or marketing word of its maker: `ATR72212A` with `ATR72`. In such
/// a form the name is a part of the designation.
fn has_name_in_series(makes: &[String], form: &str) -> bool {
    let mut makers = makes.iter().filter_map(|key| BY_KEY.get(key.as_str()));
    makers.any(|maker| {
        let of_form = || maker.series.iter().filter(|series| form.starts_with(series.as_str()));
        prefixes(maker).any(|prefix| of_form().any(|series| series.len() > prefix.len() && series.starts_with(&prefix)))
    })
}

/// Returns the designation among the forms of a model, see [`other_forms`] and [`forms_with_name`]; `form` is the one as it was given. A name of the make is a
/// part of it only where the series of the make begin with that name.
pub(crate) fn designation_of(makes: &[String], form: &str, forms: &BTreeSet<String>) -> String {
    if has_name_in_series(makes, form) {
        return form.to_owned();
    }
    let others = || forms.iter().filter(|other| *other != form);
    // The other form of a marketing name or of a name with the make is the designation; the longest of several is the one with its letters.
    let named = others().filter(|other| other.ends_with(form) && has_name_in_series(makes, other)).min_by_key(|other| other.len());
    named.or_else(|| others().max_by_key(|other| other.len())).map_or(form, String::as_str).to_owned()
}

/// Returns what follows the words of a name at the beginning of a compact form.
fn without_words<'f>(form: &'f str, name: &str) -> Option<&'f str> {
    let mut rest = form;
    for word in name.split(' ') {
        rest = rest.strip_prefix(word)?;
    }
    Some(rest)
}

/// Returns what follows a name of a maker at the beginning of a compact form, see [`rest_of`], also if it begins with a marketing word or name of the maker: the
/// `CHEROKEE140` of `PIPERCHEROKEE140`.
fn rest_after<'f>(maker: &Maker, form: &'f str, name: &str) -> Option<&'f str> {
    rest_of(form, name).or_else(|| {
        let rest = without_words(form, name)?;
        let begins = |known: &str| known.len() >= MARKETING_BYTES_MIN && rest.starts_with(known);
        let is_marketed = maker.models.keys().chain(maker.families.keys()).any(|known| begins(known));
        (is_marketed || maker.words.iter().any(|word| begins(&compact_form(word)))).then_some(rest)
    })
}

/// Returns what follows a name at the beginning of a compact form, if it begins with a digit, or has a digit after at most three letters.
fn rest_of<'f>(form: &'f str, name: &str) -> Option<&'f str> {
    let rest = without_words(form, name)?;
    let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    (letters <= 3 && rest.len() > letters).then_some(rest)
}

/// Returns the series of a model of some makes, from its compact form: the longest series of the file that it begins with, else its first
/// letters and digits. `PA28` for `PA28140`, `737` for `7378H4`.
#[must_use]
pub fn series_of(makes: &[String], form: &str) -> String {
    let makers = makes.iter().filter_map(|key| BY_KEY.get(key.as_str()));
    let known = makers.flat_map(|maker| &maker.series).filter(|series| form.starts_with(series.as_str())).max_by_key(|series| series.len());
    match known {
        Some(series) => series.clone(),
        None => first_part(form).to_owned(),
    }
}

/// The letters and digits with which a form begins: `AS355` of `AS355F1`. All of a form without digits.
fn first_part(form: &str) -> &str {
    let letters = form.bytes().take_while(|byte| !byte.is_ascii_digit()).count();
    let digits = form.bytes().skip(letters).take_while(u8::is_ascii_digit).count();
    if digits == 0 { form } else { form.get(..letters + digits).unwrap_or(form) }
}

/// The shortest end of a compact form that can be taken for the whole, in bytes.
const TAIL_BYTES_MIN: usize = 4;

/// The ends of a compact form that have a digit and begin where letters follow digits, or digits letters: `300B4600`, `B4600` and `4600` of `A300B4600`.
/// Texts and owners leave out the first part of some models.
pub(crate) fn tails(form: &str) -> impl Iterator<Item = &str> {
    let bytes = form.as_bytes();
    let is_start = |at: &usize| bytes[*at - 1].is_ascii_digit() != bytes[*at].is_ascii_digit();
    let starts: Vec<usize> = (1..(form.len() + 1).saturating_sub(TAIL_BYTES_MIN)).filter(is_start).collect();
    let ends = starts.into_iter().filter_map(|at| form.get(at..));
    ends.filter(|end| end.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Returns the series of a model as a text writes it, with its separators: `PA28` for `PA-28-140`, `A300` for `A300 B4-600`.
pub(crate) fn written_series(name: &str) -> String {
    let mut series = String::new();
    let mut has_digit = false;
    for c in folded(name).chars() {
        match c {
            c if c.is_ascii_digit() => has_digit = true,
            c if c.is_ascii_alphabetic() && !has_digit => {}
            _ if has_digit => break,
            _ => continue,
        }
        series.push(c);
    }
    if series.len() < 2 { compact_form(name) } else { series }
}
