//! The Food Safety and Inspection Service: all records in one array, two languages, two types of the same fields.

use simulated_world::answer::Answer;
use simulated_world::expected_changes::{ExpectedChange, Kind};
use simulated_world::faults::{Fault, Plan};
use simulated_world::json::Json;
use simulated_world::query::Query;
use simulated_world::world::{Feed, World, brand, day_before, update};

use crate::openfda;
use crate::words::{MEAT_REASONS, MEATS, STATES};

struct Recall {
    /// Formats a text as it is sent: sometimes with blanks around it.
    number: String,
    date: jiff::civil::Date,
    title: String,
    title_es: String,
    /// Returns the brand that the mapping should find.
    brand: String,
    establishment: Option<String>,
    product: &'static str,
    product_es: &'static str,
    reasons: Vec<String>,
    alert: bool,
    spanish: bool,
}

/// Whether the recall is no longer active.
pub(crate) fn is_closed(world: &World, index: u64) -> bool {
    let random = world.random(Feed::Fsis, index);
    let old = world.date(Feed::Fsis, index) < day_before(world.first_today, 120);
    world.fate(Feed::Fsis, index).closed.is_some() || (old && !world.is_born(Feed::Fsis, index)) || alert(random)
}

fn alert(random: simulated_world::random::Random) -> bool {
    random.once_in(0, 7)
}

/// Returns the food report of the other agency about the same recall; one recall in twenty has one.
fn twin(world: &World, index: u64) -> Option<u64> {
    let random = world.random(Feed::Fsis, index);
    let (here, there) = (world.begun_with(Feed::Fsis), world.begun_with(Feed::Food));
    let is = !world.is_born(Feed::Fsis, index) && !alert(random) && random.once_in(1, 20);
    // Uses the initial counts, so that records added later do not change the pairs.
    is.then(|| (index * there.saturating_sub(1) / here.max(1)).min(there.saturating_sub(1)))
}

fn recall(world: &World, index: u64) -> Recall {
    let random = world.random(Feed::Fsis, index);
    let own = world.date(Feed::Fsis, index);
    let (product, product_es) = MEATS[random.below(2, MEATS.len() as u64) as usize];
    let (reason, due, due_es) = MEAT_REASONS[random.below(3, MEAT_REASONS.len() as u64) as usize];
    let alert = alert(random);
    let firm = format!("{} {}", brand(random, 4), random.pick(6, &["Packing Company", "Provisions", "Foods", "Meats"]));
    let mut reasons = vec![reason.to_owned()];
    if random.once_in(7, 8) {
        reasons.push("Misbranding".to_owned());
    }
    // An edit that changes the reason changes the hazard.
    let more = ["Mislabeling", "Processing Defect", "Residue", "Insanitary Conditions"];
    match world.fate(Feed::Fsis, index).edits {
        0 => {}
        edits @ 1..=4 => reasons.push(more[edits as usize - 1].to_owned()),
        edits => reasons.push(format!("{} ({edits})", more[edits as usize % 4])),
    }
    let mut out = Recall {
        number: String::new(),
        date: own,
        title: if alert {
            format!("FSIS Issues Public Health Alert for {product} {due}")
        } else {
            format!("{firm} Recalls {product} {due}")
        },
        title_es: if alert {
            format!("FSIS emite alerta de salud pública para {product_es} {due_es}")
        } else {
            format!("{firm} retira {product_es} {due_es}")
        },
        brand: if alert { String::new() } else { firm.clone() },
        establishment: (!alert && random.once_in(8, 2)).then_some(firm),
        product,
        product_es,
        reasons,
        alert,
        spanish: random.below(9, 100) < 64,
    };
    if let Some(there) = twin(world, index) {
        let report = openfda::report(world, Feed::Food, there);
        out.title = format!("{}: {}", report.firm, report.product);
        out.title_es = format!("{} retira {product_es} {due_es}", report.firm);
        out.date = report.date;
        out.establishment = Some(report.brand.clone());
        out.brand = report.brand;
    }
    let date = out.date;
    out.number = if alert {
        format!("PHA-{:02}{:02}{}-{:02}", date.month(), date.day(), date.year(), index)
    } else if random.once_in(10, 200) {
        format!(" {:03}-{} ", index, date.year())
    } else {
        format!("{:03}-{}{}", index, date.year(), if random.once_in(11, 40) { "-EXP" } else { "" })
    };
    out
}

fn url(recall: &Recall, lang: &str) -> String {
    let (title, root) = if lang == "es" { (&recall.title_es, "/es/retirada/") } else { (&recall.title, "/recalls-alerts/") };
    let mut slug = String::with_capacity(title.len() + 16);
    for letter in title.chars() {
        match letter {
            ' ' => slug.push('-'),
            letter if letter.is_ascii_alphanumeric() => slug.push(letter.to_ascii_lowercase()),
            _ => {}
        }
    }
    format!("www.fsis.usda.gov{root}{slug}-{}", recall.number.trim().to_ascii_lowercase())
}

/// Returns the expected entries of one recall: one fact per language.
pub(crate) fn entries(world: &World, index: u64) -> Vec<ExpectedChange> {
    let recall = recall(world, index);
    let number = recall.number.trim().to_owned();
    let langs: &[&'static str] = if recall.spanish { &["en", "es"] } else { &["en"] };
    let entry = |lang: &'static str| ExpectedChange {
        n: 0,
        upstream: "fsis",
        stream: "fsis",
        key: format!("fsis/{number}/{lang}"),
        kind: Kind::Current,
        agency: "USDA",
        number: number.clone(),
        lang,
        title: Some(if lang == "es" { recall.title_es.clone() } else { recall.title.clone() }),
        // The Spanish title does not contain `Recalls`, so without an establishment the exact value cannot be stated.
        brand: (lang == "en" || recall.establishment.is_some()).then(|| recall.brand.clone()),
        hazard: None,
        date: Some(recall.date.to_string()),
        url: Some(format!("https://{}", url(&recall, lang))),
        remedy: Some(String::new()),
        visible: true,
        at_ms: 0,
    };
    langs.iter().map(|lang| entry(lang)).collect()
}

/// Handles `/fsis/api/recall/v/1`. Other filters than these two are ignored, as in the real service.
#[must_use]
pub fn answer(world: &World, query: &Query, plan: &Plan) -> Answer {
    let (number, language) = (query.get("field_recall_number"), query.get("field_translation_language"));
    let end = if plan.has(Fault::Outage) { 0 } else { world.len(Feed::Fsis) };
    let mut json = Json::new(&plan.schema, end as usize * 4_000);
    json.array(|json| {
        for _ in 0..if plan.has(Fault::DuplicatedPage) { 2 } else { 1 } {
            for index in (0..end).rev() {
                if world.fate(Feed::Fsis, index).withdrawn || plan.vanishes(world.random(Feed::Fsis, index)) {
                    continue;
                }
                let recall = recall(world, index);
                if number.is_some_and(|number| number != recall.number.trim()) {
                    continue;
                }
                for lang in ["en", "es"] {
                    if (lang == "en" || recall.spanish) && language.is_none_or(|wanted| wanted == lang) {
                        write(json, world, index, &recall, lang, plan);
                    }
                }
            }
        }
    });
    let etag = (plan.is_clean() && query.raw.is_empty()).then(|| format!("\"fsis-{:x}-{:x}\"", world.seed, world.changes()));
    Answer { etag, ..Answer::json(json.finish()) }
}

fn write(json: &mut Json<'_>, world: &World, index: u64, recall: &Recall, lang: &str, plan: &Plan) {
    let (random, fate) = (world.random(Feed::Fsis, index), world.fate(Feed::Fsis, index));
    let spanish = lang == "es";
    let old_shape = plan.has(Fault::FsisFlip);
    let list = |json: &mut Json<'_>, name: &str, values: &[&str], joint: &str| {
        if old_shape {
            json.text(name, &values.join(joint));
        } else {
            json.list(name, |json| values.iter().for_each(|value| json.item(value)));
        }
    };
    let flag = |value: bool| if value { "True" } else { "False" };
    let closed = is_closed(world, index);
    let number = recall.number.trim();
    let class = if recall.alert { "Public Health Alert" } else { random.pick(20, &["Class I", "Class I", "Class II", "Class III"]) };
    json.object(|json| {
        json.text("field_title", if spanish { &recall.title_es } else { &recall.title });
        if !old_shape {
            json.text("field_recall_number_export", number);
        }
        json.text("field_recall_number", &recall.number);
        json.text("field_recall_url", &format!("http://{}", url(recall, lang)));
        json.text("field_active_notice", if random.once_in(21, 10) { "" } else { flag(!closed) });
        let archived = recall.date < day_before(world.first_today, 365);
        json.text("field_archive_recall", flag(archived));
        let states: Vec<&str> = (0..random.below(22, 5)).map(|state| random.pick(23 + state, STATES)).collect();
        list(json, "field_states", &states, ", ");
        list(json, "field_distro_list", &[], ", ");
        list(json, "field_establishment", recall.establishment.as_deref().as_slice(), ", ");
        list(json, "field_labels", &[&format!("Recall-{number}-Labels.pdf ")], ", ");
        list(json, "field_processing", &[random.pick(30, &["Fully Cooked - Not Shelf Stable", "Raw - Intact", "Heat Treated - Not Fully Cooked - Not Shelf Stable"])], ", ");
        let product = if spanish { recall.product_es } else { recall.product };
        let items: Vec<String> = (0..=random.below(31, 3))
            .map(|item| {
                format!(
                    "{}-oz. {} containing \u{201c}{} {product}\u{201d} with &quot;Sell By&quot; dates from {} to {} &amp; lot code {:05} represented on the label.",
                    4 + random.below(32 + item, 60),
                    random.pick(36 + item, &["plastic trays", "cardboard boxes", "vacuum-packed bags", "glass jars"]),
                    random.pick(40 + item, simulated_world::words::BRAND_HEADS),
                    day_before(recall.date, 30),
                    recall.date.checked_add(jiff::Span::new().days(200)).unwrap_or(recall.date),
                    random.below(44 + item, 100_000)
                )
            })
            .collect();
        list(json, "field_product_items", &items.iter().map(String::as_str).collect::<Vec<_>>(), " ");
        json.text("field_recall_classification", class);
        let risk = match class {
            "Class I" => "High - Class I",
            "Class II" => "Low - Class II",
            "Class III" => "Marginal - Class III",
            other => other,
        };
        json.text("field_risk_level", risk);
        json.text("field_recall_date", &recall.date.to_string());
        let touched = plan.has(Fault::Touch);
        let modified = if touched { world.today } else { recall.date.checked_add(jiff::Span::new().days(i64::from(spanish))).unwrap_or(recall.date) };
        json.text("field_last_modified_date", &if archived && !touched { String::new() } else { modified.to_string() });
        if old_shape {
            json.text("field_closed_date", &fate.closed.map(|day| day.to_string()).unwrap_or_default());
        }
        json.text("field_closed_year", &fate.closed.map(|day| day.year().to_string()).unwrap_or_default());
        list(json, "field_recall_reason", &recall.reasons.iter().map(String::as_str).collect::<Vec<_>>(), ", ");
        json.text("field_recall_type", if recall.alert { "Public Health Alert" } else if closed { "Closed Recall" } else { "Active Recall" });
        json.text("field_related_to_outbreak", flag(random.once_in(48, 30)));
        let firm = if recall.brand.is_empty() { "An establishment" } else { &recall.brand };
        let summary = if spanish {
            format!("<p><strong>WASHINGTON, {}</strong> &ndash; {firm} retira aproximadamente {} libras de {product}, anunció hoy el FSIS.</p><p>Los productos llevan el número de establecimiento &ldquo;EST. {}&rdquo;.</p>", recall.date, 500 + random.below(49, 90_000), 100 + random.below(50, 40_000))
        } else {
            format!(
                "<p><strong>WASHINGTON, {}</strong> &ndash; {firm} is recalling approximately {} pounds of {product}, the Food Safety and Inspection Service announced today.{}</p><p>The products bear establishment number &ldquo;EST. {}&rdquo; inside the USDA mark of inspection. These items were shipped to retail locations.</p><p>There have been no confirmed reports of adverse reactions. Anyone concerned about an injury or illness should contact a healthcare provider. Consumers who have purchased these products are urged not to consume them. These products should be thrown away or returned to the place of purchase.</p><p><a href=\"/sites/default/files/food_label_pdf/Recall-{number}-Labels.pdf\">View labels</a></p>",
                recall.date,
                500 + random.below(49, 90_000),
                update(random, fate.edits),
                100 + random.below(50, 40_000)
            )
        };
        json.text("field_summary", &summary);
        json.text("field_year", &recall.date.year().to_string());
        json.text("langcode", if spanish { "Spanish" } else { "English" });
        json.text("field_has_spanish", flag(recall.spanish));
        json.text("field_qty_recovered", "");
        json.text("field_media_contact", " ");
        list(json, "field_company_media_contact", &[], ", ");
        list(json, "field_press_release", &[], ", ");
        list(json, "field_en_press_release", &[], ", ");
    });
}
