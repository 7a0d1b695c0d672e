//! The recall service of the Consumer Product Safety Commission: one JSON array, no paging, ignored parameters, errors as records.

use std::fmt::Write;

use jiff::civil::Date;
use simulated_world::answer::Answer;
use simulated_world::expected_changes::{ExpectedChange, Kind};
use simulated_world::faults::{Fault, Plan};
use simulated_world::json::Json;
use simulated_world::query::Query;
use simulated_world::world::{Feed, World, brand, day_before, update};

use crate::words::{BABY_PRODUCTS, COLORS, HAZARDS, PLACES, PRODUCTS, REMEDIES};

struct Recall {
    number: String,
    date: Date,
    published: Date,
    brand: String,
    product: &'static str,
    sold_by: bool,
    title: String,
    url: String,
    hazard: String,
    remedies: Vec<(&'static str, &'static str)>,
    units: u64,
    edits: u32,
}

fn published(world: &World, index: u64) -> Date {
    let (random, date) = (world.random(Feed::Cpsc, index), world.date(Feed::Cpsc, index));
    // Some old records are published again decades later, unchanged.
    if date.year() < 2005 && random.once_in(40, 8) {
        return day_before(world.first_today, random.below(41, 200) as i64);
    }
    date.checked_add(jiff::Span::new().days(random.below(42, 8) as i64)).unwrap_or(date).min(world.today.max(date))
}

fn recall(world: &World, index: u64) -> Recall {
    let random = world.random(Feed::Cpsc, index);
    let (date, edits) = (world.date(Feed::Cpsc, index), world.fate(Feed::Cpsc, index).edits);
    let brand = brand(random, 0);
    let product = if random.once_in(2, 4) { random.pick(3, BABY_PRODUCTS) } else { random.pick(3, PRODUCTS) };
    let (risk, sentence) = HAZARDS[random.below(4, HAZARDS.len() as u64) as usize];
    let sold_by = random.below(5, 10) < 3;
    let title = if sold_by {
        format!("{product} Recalled Due to {risk}; Sold Exclusively Online by {brand}")
    } else if random.once_in(6, 6) {
        format!("{brand}\u{ae} Recalls {product} Due to {risk}")
    } else {
        format!("{brand} Recalls {product} Due to {risk}")
    };
    let brand = if !sold_by && title.contains('\u{ae}') { format!("{brand}\u{ae}") } else { brand };
    let mut url = format!("https://www.cpsc.gov/Recalls/{}/", date.year());
    url.extend(title.chars().filter(|c| c.is_ascii_alphanumeric() || *c == ' ').map(|c| if c == ' ' { '-' } else { c }));
    let hazard = format!("The recalled {} {sentence}.{}", product.to_lowercase(), update(random, edits));
    let first = random.below(7, REMEDIES.len() as u64);
    let mut remedies = vec![REMEDIES[first as usize]];
    if random.once_in(8, 6) {
        remedies.push(REMEDIES[((first + 1 + random.below(9, 3)) % REMEDIES.len() as u64) as usize]);
    }
    Recall {
        number: format!("{:02}{:03}", date.year() % 100, index),
        date,
        published: published(world, index),
        brand,
        product,
        sold_by,
        title,
        url,
        hazard,
        remedies,
        units: 100 + random.below(10, 500) * 90 + u64::from(edits) * 1_000,
        edits,
    }
}

/// Returns the expected entries of one recall.
pub(crate) fn entry(world: &World, index: u64) -> ExpectedChange {
    let recall = recall(world, index);
    // The upstream promises no order of the options, so the mapping sorts them.
    let mut options: Vec<&str> = recall.remedies.iter().map(|(option, _)| *option).collect();
    options.sort_unstable();
    ExpectedChange {
        n: 0,
        upstream: "cpsc",
        stream: "cpsc",
        key: format!("cpsc/{}", index + 1),
        kind: Kind::Current,
        agency: "CPSC",
        lang: "en",
        title: Some(recall.title),
        brand: Some(recall.brand),
        hazard: Some(recall.hazard),
        date: Some(recall.date.to_string()),
        url: Some(recall.url),
        remedy: Some(options.join("/")),
        number: recall.number,
        visible: true,
        at_ms: 0,
    }
}

/// Handles `/RestWebServices/Recall`.
#[must_use]
pub fn answer(world: &World, query: &Query, plan: &Plan) -> Answer {
    let day = |name: &str| query.get(name).filter(|value| !value.is_empty()).map(str::parse::<Date>).transpose();
    let (Ok(from), Ok(to), Ok(published_from), Ok(published_to)) =
        (day("RecallDateStart"), day("RecallDateEnd"), day("LastPublishDateStart"), day("LastPublishDateEnd"))
    else {
        let error = r#"[{"RecallID":0,"RecallNumber":null,"RecallDate":null,"Title":"Error retrieving Recalls: String was not recognized as a valid DateTime.","Products":[]}]"#;
        return Answer::json(error.into());
    };
    let touched = plan.has(Fault::Touch);
    let text = |name: &str| query.get(name).map(str::to_lowercase);
    let (id, number, title) = (query.get("RecallID"), query.get("RecallNumber"), text("RecallTitle"));
    // These three parameters exist but never match anything.
    let broken = ["Hazard", "UPC", "ManufacturerCountry"].iter().any(|name| query.get(name).is_some());
    let wanted = |index: u64| {
        let published = if touched { world.today } else { published(world, index) };
        !broken
            && published_from.is_none_or(|from| published >= from)
            && published_to.is_none_or(|to| published <= to)
            && id.is_none_or(|id| id.parse() == Ok(index + 1))
            && (number.is_none() && title.is_none() || {
                let recall = recall(world, index);
                number.is_none_or(|part| recall.number.contains(part))
                    && title.as_deref().is_none_or(|part| recall.title.to_lowercase().contains(part))
            })
            && !plan.vanishes(world.random(Feed::Cpsc, index))
    };
    let window = if plan.has(Fault::Outage) { 0..0 } else { world.window(Feed::Cpsc, from, to) };
    if query.get("format") != Some("json") {
        return xml(world, window.rev().filter(|&index| wanted(index)));
    }
    let mut json = Json::new(&plan.schema, (window.end - window.start) as usize * 2_600);
    json.array(|json| {
        for _ in 0..if plan.has(Fault::DuplicatedPage) { 2 } else { 1 } {
            for index in window.clone().rev().filter(|&index| wanted(index)) {
                write(json, world, index, touched);
            }
        }
    });
    Answer::json(json.finish())
}

fn xml(world: &World, indexes: impl Iterator<Item = u64>) -> Answer {
    let mut out = String::from("<ArrayOfRecall xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\">");
    for index in indexes {
        let recall = recall(world, index);
        out.push_str(&format!(
            "<Recall><RecallID>{}</RecallID><RecallNumber>{}</RecallNumber><Title>{}</Title></Recall>",
            index + 1,
            recall.number,
            recall.title
        ));
    }
    out.push_str("</ArrayOfRecall>");
    Answer { content_type: Some("text/xml; charset=utf-8"), ..Answer::json(out.into_bytes()) }
}

fn write(json: &mut Json<'_>, world: &World, index: u64, touched: bool) {
    let random = world.random(Feed::Cpsc, index);
    let recall = recall(world, index);
    let (brand, product) = (&recall.brand, recall.product);
    let lower = product.to_lowercase();
    let model = format!("{}{}-{:03}", &brand[..2].to_uppercase(), random.below(20, 90) + 10, random.below(21, 1000));
    let (color, place) = (random.pick(22, COLORS), random.pick(23, PLACES));
    let mut buffer = String::with_capacity(1024);
    json.object(|json| {
        json.raw("RecallID", &(index + 1).to_string());
        json.text("RecallNumber", &recall.number);
        let day = |buffer: &mut String, day: Date| {
            buffer.clear();
            let _infallible = write!(buffer, "{day}T00:00:00");
        };
        // Very old records have no time of day.
        day(&mut buffer, recall.date);
        json.text("RecallDate", if recall.date.year() < 1990 { &buffer[..10] } else { &buffer });
        buffer.clear();
        let _infallible = write!(
            buffer,
            "This recall involves {brand} {lower} with model number {model}. The recalled products were sold in {color} and measure about {} inches wide by {} inches tall. The brand name \"{brand}\" is printed on the front, and the model number and date code are on a silver label on the underside. Only units with date codes from {:02}-{} through {:02}-{} are included in this recall; units with a green dot on the packaging have been inspected and are not affected. Consumers can compare the serial number with the list on the firm\u{2019}s website.",
            10 + random.below(24, 40),
            12 + random.below(25, 50),
            1 + random.below(26, 12),
            recall.date.year() - 2,
            1 + random.below(27, 12),
            recall.date.year() - 1
        );
        json.text("Description", &buffer);
        json.text("URL", &recall.url);
        json.text("Title", &recall.title);
        buffer.clear();
        let slug: String = brand.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let _infallible = write!(
            buffer,
            "{brand} toll-free at 800-555-{:04} from 9 a.m. to 5 p.m. ET Monday through Friday, email at recall@{slug}.example, or online at https://www.{slug}.example/recall or https://www.{slug}.example and click on \"Recall\" at the bottom of the page for more information.",
            random.below(28, 10_000)
        );
        json.text("ConsumerContact", &buffer);
        day(&mut buffer, if touched { world.today } else { recall.published });
        json.text("LastPublishDate", &buffer);
        json.list("Products", |json| {
            for part in 0..if random.once_in(29, 12) { 3 } else { 1 } {
                json.object(|json| {
                    json.text("Name", &if part == 0 { format!("{brand} {product}") } else { format!("{brand} {product}, series {part}") });
                    json.text("Description", "");
                    json.text("Model", "");
                    json.text("Type", if random.once_in(30, 10) { product } else { "" });
                    json.text("CategoryID", if random.once_in(30, 10) { "1995" } else { "" });
                    let units = thousands(recall.units);
                    json.text("NumberOfUnits", &if random.once_in(31, 4) { format!("About {units} (in addition, about 700 were sold in Canada)") } else { format!("About {units}") });
                });
            }
        });
        json.list("Inconjunctions", |json| {
            if random.once_in(31, 4) {
                json.object(|json| json.text("URL", &format!("https://recalls-rappels.canada.ca/en/alert-recall/{slug}-{}", recall.number)));
            }
        });
        json.list("Images", |json| {
            for image in 1..=2 {
                json.object(|json| {
                    json.text("URL", &format!("https://www.cpsc.gov/s3fs-public/{slug}-{}-{image}.png?VersionId={:x}", recall.number, random.roll(32)));
                    json.text("Caption", &format!("Recalled {brand} {product}, model number: {model}"));
                });
            }
        });
        json.list("Injuries", |json| {
            let reports = random.below(33, 30) + u64::from(recall.edits);
            json.object(|json| {
                json.text("Name", &if reports < 12 { "None reported".to_owned() } else { format!("The firm has received {reports} reports of incidents, including {} minor injuries. No deaths have been reported.", reports / 4) });
            });
        });
        let firm = |json: &mut Json<'_>, name: &str| {
            json.object(|json| {
                json.text("Name", name);
                json.text("CompanyID", "");
            });
        };
        json.list("Manufacturers", |json| {
            if !recall.sold_by && random.once_in(34, 2) {
                firm(json, &format!("{brand} Manufacturing Co., Ltd., of {place}"));
            }
        });
        json.list("Retailers", |json| {
            let (from, to, low) = (recall.date.year() - 2, recall.date.year() - 1, 10 + random.below(35, 200));
            firm(json, &if random.once_in(36, 9) {
                format!("Sold Online At:\n{slug}.example from March {from} through February {to} for between ${low} and ${}.", low * 2)
            } else {
                format!("Specialty and department stores nationwide and online at www.{slug}.example from March {from} through February {to} for about ${low}.")
            });
        });
        json.list("Importers", |json| {
            if random.once_in(37, 2) {
                firm(json, &format!("{brand} Import LLC, of Richfield, Minnesota"));
            }
        });
        json.list("Distributors", |json| {
            if recall.sold_by {
                firm(json, &format!("Ningbo {} Trading Co. Ltd., dba {brand}, of China", random.pick(38, simulated_world::words::BRAND_HEADS)));
            }
        });
        json.raw("SoldAtLabel", "null");
        json.list("ManufacturerCountries", |json| {
            if !random.once_in(39, 4) {
                json.object(|json| json.text("Country", place));
            }
        });
        json.list("ProductUPCs", |_| {});
        json.list("Hazards", |json| {
            json.object(|json| {
                json.text("Name", &recall.hazard);
                json.text("HazardType", "");
                json.text("HazardTypeID", "");
            });
        });
        json.list("Remedies", |json| {
            for (_, words) in &recall.remedies {
                json.object(|json| json.text("Name", words));
            }
        });
        json.list("RemedyOptions", |json| {
            for (option, _) in &recall.remedies {
                json.object(|json| json.text("Option", option));
            }
            if random.once_in(43, 50) {
                json.object(|json| json.text("Option", recall.remedies[0].0));
            }
        });
    });
}

fn thousands(number: u64) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}
