//! Tests of the Avro encoding: values read back, here and with another library; new schema versions are compatible.

use apache_avro::Schema;
use apache_avro::schema_compatibility::SchemaCompatibility;
use proofs::hash::Hash32;
use schemas::avro::{self, Encoder};
use schemas::change::{Change, ChangeKind, Input, Through};
use schemas::event::{Fact, FactKind, FieldCount, Run, content_hash, fact_id};
use schemas::facts::awards::AwardFact;
use schemas::facts::filings::FilingFact;
use schemas::facts::grants::GrantFact;
use schemas::facts::insider_trades::{InsiderTradeFact, Owner};
use schemas::facts::recalls::RecallFact;
use schemas::facts::trials::{Intervention, TrialFact};
use schemas::facts::{self, FactData};
use schemas::position::{LogOffset, Seq};
use schemas::topics;
use schemas::views::recalls::{Recall, RecallChange, RememberedFact, RememberedSet};

fn fact() -> Fact<RecallFact> {
    let data =
        RecallFact { stream: "cpsc".into(), number: "26606".into(), vehicles: vec!["A B 2020".into()], alert: true, ..Default::default() };
    let content_hash = content_hash(FactKind::Observed, &data.canonical());
    Fact {
        id: fact_id("recalls", "cpsc/26606", 1, &Hash32::ZERO, &content_hash),
        kind: FactKind::Observed,
        key: "cpsc/26606".into(),
        version: 1,
        prev_hash: Hash32::ZERO,
        content_hash,
        upstream: "cpsc".into(),
        observed_at: 1_790_000_000_000,
        superseded_by: String::new(),
        data: Some(data),
        run: None,
    }
}

/// Proves that facts of every shape read back as written, and that a value of another topic is refused.
#[test]
fn facts_read_back() {
    let run = Fact {
        kind: FactKind::RunFinished,
        data: None,
        run: Some(Run {
            ends: vec![LogOffset(1), LogOffset(2)],
            missing: vec!["x".into()],
            withheld: vec!["y".into()],
            rejects: vec!["z".into()],
            known_rejected: 3,
            fields: vec![FieldCount { name: "Title".into(), filled: 4, records: 5, absent: 1 }],
            ..Default::default()
        }),
        ..fact()
    };
    let mut encoder = Encoder::new("recalls").unwrap();
    for fact in [fact(), run] {
        let bytes = encoder.encode(&fact).unwrap();
        assert_eq!(avro::decode::<Fact<RecallFact>>("recalls", &bytes).unwrap(), fact);
        assert!(matches!(avro::decode::<Fact<RecallFact>>("accounts", &bytes), Err(avro::Error::OtherTopic { .. })));
    }
}

/// Proves that records of every kind are written as their topic's schema says and read back whole, with their numbers and without.
#[test]
fn every_kind_reads_back() {
    let award = AwardFact {
        award_id: "CONT_IDV_1_8000".into(),
        business_categories: vec!["Small Business".into()],
        amount_cents: Some(i64::MAX),
        exercised_cents: Some(0),
        action_cents: Some(-1),
        last_modified: "2026-09-28".into(),
        ..Default::default()
    };
    for data in [AwardFact::default(), award] {
        assert_eq!(through_avro::<AwardFact>(FactData::Award(Box::new(data.clone()))), data);
    }
    let filing = FilingFact {
        stream: "a".into(),
        accession: "b".into(),
        cik: "c".into(),
        company: "d".into(),
        form: "e".into(),
        base_form: "f".into(),
        amendment: true,
        filing_date: "g".into(),
        items: vec!["h".into()],
        roles: vec!["i".into(), "j".into()],
        report_date: "k".into(),
        primary_document: "l".into(),
    };
    assert_eq!(through_avro::<FilingFact>(FactData::Filing(Box::new(filing.clone()))), filing);
    let owner =
        Owner { cik: "a".into(), name: "b".into(), director: true, officer: true, ten_percent: true, other: true, title: "c".into() };
    let trade = InsiderTradeFact {
        stream: "a".into(),
        accession: "b".into(),
        table: "c".into(),
        row: 7,
        form: "d".into(),
        amendment: true,
        filing_date: "e".into(),
        original_date: "f".into(),
        period_of_report: "g".into(),
        issuer_cik: "h".into(),
        issuer_name: "i".into(),
        issuer_symbol: "j".into(),
        owners: vec![owner, Owner::default()],
        security: "k".into(),
        date: "l".into(),
        code: "m".into(),
        acquired_disposed: "n".into(),
        shares: "o".into(),
        price: "p".into(),
        shares_after: "q".into(),
        ownership: "r".into(),
        ownership_nature: "s".into(),
        underlying: "t".into(),
        planned: true,
    };
    assert_eq!(through_avro::<InsiderTradeFact>(FactData::InsiderTrade(Box::new(trade.clone()))), trade);
    let grant = GrantFact { number: "1".into(), pi: "A B".into(), terms: vec!["t".into()], notice_from_budget: true, ..Default::default() };
    let full = GrantFact { amount: Some(444_000), fiscal_year: Some(2026), ..grant.clone() };
    for data in [grant, full] {
        assert_eq!(through_avro::<GrantFact>(FactData::Grant(Box::new(data.clone()))), data);
    }
    let drug = Intervention { kind: "DRUG".into(), name: "HW-101".into() };
    let trial = TrialFact { number: "NCT00000001".into(), interventions: vec![drug], states: vec!["MA".into()], ..Default::default() };
    let full = TrialFact { enrollment: Some(120), sites: Some(3), updated: "2026-01-01".into(), ..trial.clone() };
    for data in [trial, full] {
        assert_eq!(through_avro::<TrialFact>(FactData::Trial(Box::new(data.clone()))), data);
    }
}

/// Encodes a record as a fact of its topic, and decodes it again.
#[expect(clippy::unwrap_used, reason = "a failure fails the calling test")]
fn through_avro<T: serde::de::DeserializeOwned>(data: FactData) -> T {
    let topic = data.topic().name;
    let schema = avro::ALL.iter().find(|schema| schema.topic == topic).unwrap().json;
    for field in serde_json::to_value(&data).unwrap().as_object().unwrap().keys() {
        assert!(schema.contains(&format!("{{\"name\": \"{field}\"")), "{topic}: {field}");
    }
    let Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, .. } = fact();
    let (key, upstream, superseded_by) = (key.as_str(), upstream.as_str(), superseded_by.as_str());
    let written =
        Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data: Some(&data), run: None };
    let bytes = facts::encode(&mut Encoder::new(topic).unwrap(), written).unwrap();
    avro::decode::<Fact<T>>(topic, &bytes).unwrap().data.unwrap()
}

/// Proves that changes of every shape read back as written, and that the hash covers the datum without the frame.
#[test]
fn changes_read_back() {
    let recall = Recall { id: "CPSC:26606".into(), urls: vec!["https://x".into()], ..Default::default() };
    let change: RecallChange = Change {
        seq: Seq(1),
        prev_hash: Hash32::of(b"x"),
        event: ChangeKind::Modified,
        id: recall.id.clone(),
        recorded_at: 5,
        input: Input { topic: "recalls".into(), partition: 3, offset: Some(LogOffset(9)) },
        following: 0,
        before_seq: Seq(0),
        before_since: Seq(0),
        after: Some(recall.clone()),
        before: Some(recall),
        note: Some(RememberedFact {
            key: "cpsc/26606".into(),
            version: 2,
            gone: false,
            recall: fact().data,
            superseded_by: String::new(),
            sets: vec![RememberedSet { name: "member/x".into(), items: vec!["a".into()] }],
        }),
        through: Some(Through { upstream: "cpsc".into(), through_date: "2026-01-01".into(), finished_at: 1 }),
        reason: String::new(),
    };
    let framed = Encoder::new("changes.recalls").unwrap().encode(&change).unwrap();
    assert_eq!(avro::decode::<RecallChange>("changes.recalls", &framed).unwrap(), change);
    assert_eq!(avro::datum_hash("changes.recalls", &framed).unwrap(), Hash32::of(&framed[10..]));
    let (fingerprint, datum) = avro::split(&framed).unwrap();
    assert_eq!((datum, avro::join(&fingerprint, datum)), (&framed[10..], framed.clone()));
}

/// Proves that values of a newer schema are read once the schema is learned, without the fields that it added.
#[test]
fn newer_schemas_are_learned() {
    let text = avro::ALL.iter().find(|text| text.topic == "recalls").unwrap().json;
    let newer = text.replacen(r#"{"name": "key""#, r#"{"name": "added", "type": "string", "default": ""}, {"name": "key""#, 1);
    assert_ne!(newer, text);
    let mut datum = Encoder::new("recalls").unwrap().encode(&fact()).unwrap()[10..].to_vec();
    // The new field follows the id and the kind: a text of three letters.
    datum.splice(33..33, *b"\x06new");
    let schema: serde_avro_fast::Schema = newer.parse().unwrap();
    let value = avro::join(schema.rabin_fingerprint(), &datum);
    assert!(matches!(avro::decode::<Fact<RecallFact>>("recalls", &value), Err(avro::Error::UnknownFingerprint(_))));
    let fingerprint = avro::learn(&newer).unwrap();
    assert_eq!(avro::decode::<Fact<RecallFact>>("recalls", &value).unwrap(), fact());
    assert!(avro::is_of(&fingerprint, "recalls") && !avro::is_of(&fingerprint, "accounts"));
    assert!(avro::learn("{").is_err());
}

/// Proves that another Avro library reads our single objects with the schema alone, and that the fingerprint is the one
/// that a third library (fastavro, of Python) computes for the schema's canonical form.
#[test]
fn other_libraries_read_our_values() {
    let bytes = Encoder::new("recalls").unwrap().encode(&fact()).unwrap();
    let text = avro::ALL.iter().find(|schema| schema.topic == "recalls").unwrap().json;
    let schema = Schema::parse_str(text).unwrap();
    let value = apache_avro::reader::datum::GenericDatumReader::builder(&schema).build().unwrap().read_value(&mut &bytes[10..]).unwrap();
    let apache_avro::types::Value::Record(fields) = value else { panic!("not a record") };
    assert!(fields.iter().any(|(name, value)| name == "key" && *value == apache_avro::types::Value::String("cpsc/26606".into())));
    let versions: Vec<_> = avro::ALL.iter().filter(|schema| schema.topic == "recalls").collect();
    assert_eq!(bytes[2..10], versions[0].fingerprint().unwrap());
    // The value that fastavro computes for the first version.
    assert_eq!(proofs::hash::hex(&versions[1].fingerprint().unwrap()), "95df61b2f2a04946");
}

/// Proves that bytes that are not framed Avro are refused with a reason.
#[test]
fn broken_values_are_refused() {
    let bytes = Encoder::new("recalls").unwrap().encode(&fact()).unwrap();
    for broken in [&b""[..], b"\x01\x02", b"\xc3\x01\x00\x00\x00\x00\x00\x00\x00\x00", &bytes[..bytes.len() / 2]] {
        assert!(avro::decode::<Fact<RecallFact>>("recalls", broken).is_err());
    }
}

/// Proves that schema versions are compatible: every version of a topic's schema reads data of every other version, both ways; and every topic has one.
#[test]
fn schema_versions_read_each_other() {
    for topic in topics::ALL {
        let versions: Vec<Schema> =
            avro::ALL.iter().filter(|text| text.topic == topic.name).map(|text| Schema::parse_str(text.json).unwrap()).collect();
        assert!(!versions.is_empty(), "{} has no schema", topic.name);
        for writer in &versions {
            for reader in &versions {
                SchemaCompatibility::can_read(writer, reader).unwrap_or_else(|error| panic!("{}: {error}", topic.name));
            }
        }
    }
}

/// Proves that the check detects a field added without a default.
#[test]
fn the_check_detects_a_field_without_default() {
    let text = avro::ALL.iter().find(|schema| schema.topic == "rejected").unwrap().json;
    let newer = text.replacen(r#"{"name": "door""#, r#"{"name": "added", "type": "string"}, {"name": "door""#, 1);
    let (old, new) = (Schema::parse_str(text).unwrap(), Schema::parse_str(&newer).unwrap());
    assert!(SchemaCompatibility::can_read(&old, &new).is_err());
}

/// Proves that the list of topics has no duplicates.
#[test]
fn names_are_unique() {
    let mut topics: Vec<&str> = topics::ALL.iter().map(|topic| topic.name).collect();
    let all_topics = topics.len();
    topics.sort_unstable();
    topics.dedup();
    assert_eq!(topics.len(), all_topics);
}
