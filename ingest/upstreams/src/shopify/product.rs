//! The mapping of one page of products.

use jiff::Timestamp;
use schemas::facts::FactData;
use schemas::facts::stock::{StockFact, kind};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Field, Part};
use crate::{Answer, Observation, Reject, Stream, text};

/// The longest title, in characters.
const TITLE_CHARS_MAX: usize = 300;
/// The title of the only variant of a product.
const ONLY_VARIANT: &str = "Default Title";
/// The longest id, in digits.
const ID_DIGITS_MAX: usize = 20;

/// The products of one page.
pub(super) struct PageOfProducts {
    pub(super) products: Vec<Product>,
    pub(super) rejects: Vec<Reject>,
}

/// A product with the observations of its variants.
pub(super) struct Product {
    pub(super) id: String,
    pub(super) variants: Vec<Observation>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    products: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Rejected<'a> {
    shop: String,
    #[serde(borrow)]
    product: &'a RawValue,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShownProduct<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    title: Field<'a>,
    #[serde(borrow)]
    handle: Field<'a>,
    #[serde(borrow)]
    vendor: Field<'a>,
    #[serde(borrow)]
    published_at: Field<'a>,
    #[serde(borrow)]
    updated_at: Field<'a>,
    #[serde(borrow)]
    variants: Part<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShownVariant<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    title: Field<'a>,
    #[serde(borrow)]
    available: Field<'a>,
    #[serde(borrow)]
    price: Field<'a>,
    #[serde(borrow)]
    updated_at: Field<'a>,
}

/// Reads the products of an answer.
///
/// # Errors
/// Why the answer as a whole says nothing about the store's products.
pub(super) fn products(stream: &Stream, host: &str, answer: &Answer) -> Result<PageOfProducts, String> {
    if answer.status != 200 {
        return Err(format!("status {}", answer.status));
    }
    let body = text::decode(answer.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&answer.body));
    if body.trim_start().starts_with('<') {
        return Err("a page instead of the list, for example a password page".to_owned());
    }
    let shown: Body<'_> = serde_json::from_str(&body).map_err(|error| format!("not the JSON it should be: {error}"))?;
    let shown = shown.products.ok_or("no list of products")?;
    let (mut products, mut rejects, total) = (Vec::with_capacity(shown.len()), Vec::new(), shown.len());
    for raw in shown {
        match product(stream, host, raw) {
            Ok(product) => products.push(product),
            Err((reference, reason)) => {
                let raw = format!("{{\"shop\":{},\"product\":{}}}", serde_json::Value::from(host), raw.get()).into_bytes();
                rejects.push(Reject { reference: format!("{host}/{reference}"), reason, raw });
            }
        }
    }
    // One product may be malformed. If most are, the format is another one, and nothing of it is read.
    match rejects.first() {
        Some(reject) if rejects.len() * 2 > total => {
            Err(format!("{} of {total} products are not readable: {}", rejects.len(), reject.reason))
        }
        _ => Ok(PageOfProducts { products, rejects }),
    }
}

/// The store and the list that a rejected product belongs to.
pub(super) fn rejected(raw: &[u8]) -> Option<(String, Vec<u8>)> {
    let Rejected { shop, product } = serde_json::from_slice(raw).ok()?;
    Some((shop, format!("{{\"products\":[{}]}}", product.get()).into_bytes()))
}

/// Maps a product, or says which one is wrong and why.
fn product(stream: &Stream, host: &str, raw: &RawValue) -> Result<Product, (String, String)> {
    let shown: ShownProduct<'_> = serde_json::from_str(raw.get()).map_err(|error| (String::new(), format!("not readable: {error}")))?;
    let id = id(&shown.id).ok_or_else(|| (String::new(), "id is not a whole number".to_owned()))?;
    let refuse = |reason: String| (id.clone(), reason);
    if !shown.title.is_text() {
        return Err(refuse("title is absent or not a text".to_owned()));
    }
    let mut problem = None;
    let variants: Vec<ShownVariant<'_>> = shown.variants.list("variants", &mut problem);
    if let Some(problem) = problem {
        return Err(refuse(problem));
    }
    if variants.is_empty() {
        return Err(refuse("variants is absent or empty".to_owned()));
    }
    let common = StockFact {
        stream: stream.name.to_owned(),
        kind: kind::VARIANT.to_owned(),
        host: host.to_owned(),
        product_id: id.clone(),
        title: text::cut(shown.title.clean(), TITLE_CHARS_MAX),
        vendor: text::cut(shown.vendor.clean(), TITLE_CHARS_MAX),
        handle: handle(&shown.handle),
        published_at: time(&shown.published_at),
        ..StockFact::default()
    };
    let product_updated = time(&shown.updated_at);
    let variants = variants.iter().map(|variant| observation(stream, host, &common, &product_updated, variant));
    Ok(Product { variants: variants.collect::<Result<_, String>>().map_err(refuse)?, id: id.clone() })
}

fn observation(
    stream: &Stream,
    host: &str,
    common: &StockFact,
    product_updated: &str,
    variant: &ShownVariant<'_>,
) -> Result<Observation, String> {
    let variant_id = id(&variant.id).ok_or("id of a variant is not a whole number")?;
    let Field::Bool(available) = variant.available else { return Err(format!("available of variant {variant_id} is not true or false")) };
    if matches!(variant.price, Field::Number(_)) {
        // The `.js` form of a product counts in cents. Read as this form, every price would be wrong a hundredfold.
        return Err(format!("price of variant {variant_id} is a number, as in the .js form"));
    }
    let (title, own_updated) = (variant.title.clean(), time(&variant.updated_at));
    let fact = StockFact {
        variant_title: if title == ONLY_VARIANT { String::new() } else { text::cut(title, TITLE_CHARS_MAX) },
        available,
        price_cents: cents(variant.price.text()),
        updated_at: if own_updated.is_empty() { product_updated.to_owned() } else { own_updated },
        variant_id: variant_id.clone(),
        ..common.clone()
    };
    Ok(Observation::new(format!("{}/{host}/v/{variant_id}", stream.name), FactData::Stock(Box::new(fact))))
}

/// An id as text: 64 bits, more than a JSON number holds in many clients.
fn id(field: &Field<'_>) -> Option<String> {
    let text = field.text().trim();
    let is_id = field.is_integer() && text.len() <= ID_DIGITS_MAX && text.parse::<u64>().is_ok_and(|id| id > 0);
    is_id.then(|| text.trim_start_matches('0').to_owned())
}

/// The name of a product in URLs; empty if it could lead elsewhere.
fn handle(field: &Field<'_>) -> String {
    let text = field.clean();
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if is_plain { text::cut(text, TITLE_CHARS_MAX) } else { String::new() }
}

/// A time with an offset, in UTC to the second; empty if it cannot be read.
fn time(field: &Field<'_>) -> String {
    field.text().trim().parse::<Timestamp>().map_or_else(|_| String::new(), |at| format!("{at:.0}"))
}

/// A decimal number with up to two decimals, in hundredths.
fn cents(text: &str) -> Option<i64> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 15 || fraction.len() > 2 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<2}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how prices, ids and times are read.
    #[test]
    fn values() {
        let prices = ["1075.00", "0.00", "7", "3.5", "", "1,5", "-1.00", "1.234", "."].map(cents);
        assert_eq!(prices, [Some(107_500), Some(0), Some(700), Some(350), None, None, None, None, None]);
        let read = |json: &str| id(&serde_json::from_str(json).unwrap());
        assert_eq!(read("18446744073709551615").as_deref(), Some("18446744073709551615"));
        assert_eq!(
            [read("\"45132974882944\""), read("1.5"), read("0"), read("\"x\"")],
            [Some("45132974882944".to_owned()), None, None, None]
        );
        let at = |text: &str| time(&Field::Text(text.into()));
        assert_eq!([at("2025-07-09T00:42:45-04:00"), at("yesterday")], ["2025-07-09T04:42:45Z".to_owned(), String::new()]);
    }
}
