//! Prints the status as aligned tables for people, and as lines of fields separated by tabs for scripts.

use super::report::{Cosignature, DisabledService, Report, Stream, TopicSize};

/// The first line: whether all is well, and the most important numbers.
fn summary(report: &Report) -> Vec<(&'static str, String)> {
    let count = |is_counted: fn(&Stream) -> bool| report.upstreams.iter().filter(|stream| is_counted(stream)).count().to_string();
    let sum = |number: fn(&Stream) -> i64| report.upstreams.iter().map(number).sum::<i64>().to_string();
    vec![
        ("streams", count(|stream| stream.enabled || !stream.state.is_empty())),
        ("failed", count(Stream::has_failed)),
        ("never run", count(|stream| stream.enabled && stream.state.is_empty())),
        ("rejected", sum(|stream| stream.rejected)),
        ("services", served(report).to_string()),
        ("changes", report.services.iter().map(|service| service.seq).sum::<u64>().to_string()),
        ("parked", report.services.iter().map(|service| service.parked).sum::<u64>().to_string()),
        ("lag", report.views.iter().map(|view| view.lag).max().unwrap_or(0).to_string()),
    ]
}

/// How many services readers can be served: all but those that only the engine needs, such as accounts and payments.
fn served(report: &Report) -> usize {
    report.services.iter().filter(|service| services::names().any(|name| name == service.service)).count()
}

/// The status for scripts: the kind and the name of an item, then its fields, separated by tabs.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let state = if report.is_ok { "ok" } else { "attention" };
    let fields: Vec<String> = summary(report).into_iter().map(|(name, value)| format!("\t{name} {value}")).collect();
    let mut lines = vec![format!("summary {state}{}", fields.concat())];
    lines.extend(report.problems.iter().map(|problem| format!("problem\t{problem}")));
    lines.extend(report.upstreams.iter().map(|stream| format!("upstream {}\t{}", stream.stream, run_fields(stream))));
    lines.extend(report.topics.iter().map(|topic| {
        let sizes = topic.bytes.zip(topic.bytes_a_year).map(|(bytes, year)| format!("\tbytes {bytes}\tbytes a year {year}"));
        format!("topic {}\trecords {}\tlag {}{}", topic.topic, topic.records, topic.lag, sizes.unwrap_or_default())
    }));
    lines.extend(report.views.iter().map(|view| format!("view {}\tlag {}\tseconds {}", view.view, view.lag, view.seconds)));
    lines.extend(report.refused_signatures.iter().map(|refused| {
        let what = if refused.service.is_empty() { "receipts and checkpoints" } else { &format!("checkpoints of {}", refused.service) };
        format!("signing of {what}\trefused: {}", refused.reason)
    }));
    lines.extend(report.witnesses.iter().map(cosignature_line));
    if !report.witness_key.is_empty() {
        lines.push(format!("this witness\tvkey {}", report.witness_key));
    }
    lines.extend(report.services.iter().map(|service| {
        let recorded = or(&service.recorded, "never");
        format!("service {}\tseq {}\trecorded {recorded}\tparked {}", service.service, service.seq, service.parked)
    }));
    lines.extend(
        report.disabled_services.iter().map(|disabled| format!("disabled {}{}", disabled.service, needed_by(disabled, "\tneeded by "))),
    );
    lines
}

/// The service that needs a disabled one, if one does.
fn needed_by(disabled: &DisabledService, words: &str) -> String {
    if disabled.needed_by.is_empty() { String::new() } else { format!("{words}{}", disabled.needed_by) }
}

fn run_fields(stream: &Stream) -> String {
    if stream.state.is_empty() {
        return if stream.enabled { "never run" } else { "disabled" }.to_owned();
    }
    let finished = match stream.last_finished_age_s {
        Some(age_s) => format!("{} ({age_s} s ago)", stream.last_finished),
        None => "never".to_owned(),
    };
    // Records that were rejected with the same bytes before.
    let known = if stream.known_rejected == 0 { String::new() } else { format!(" ({} known)", stream.known_rejected) };
    let reason = if stream.reason.is_empty() { String::new() } else { format!(" ({})", stream.reason) };
    let Stream { state, at, seen, appended, rejected, .. } = stream;
    format!("{state} {at}\tlast finished {finished}\tseen {seen}\tappended {appended}\trejected {rejected}{known}{reason}")
}

fn cosignature_line(cosignature: &Cosignature) -> String {
    let Cosignature { witness, service, checkpoint, cosigned, cosigned_at, behind, reason } = cosignature;
    let cosigned = cosigned.map_or_else(|| "none".to_owned(), |leaves| format!("{leaves} at {cosigned_at}"));
    let behind = match (behind, reason.as_str()) {
        (false, "") => String::new(),
        (true, "") => "\tbehind".to_owned(),
        (_, reason) => format!("\tbehind: {reason}"),
    };
    format!("witness {witness}\tof {service}\tcheckpoint {checkpoint}\tcosigned {cosigned}{behind}")
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// The status for people.
pub(super) fn tables(report: &Report) -> Vec<String> {
    let mut lines = vec![if report.is_ok { "OK: nothing is stopped or parked".to_owned() } else { "ATTENTION".to_owned() }];
    lines.extend(report.problems.iter().map(|problem| format!("  {problem}")));
    let numbers: Vec<String> = summary(report).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    lines.push(numbers.join(", "));
    let streams = report.upstreams.iter().map(|stream| {
        let state = match (stream.state.strip_prefix("run_"), stream.enabled) {
            (Some(state), true) => state.to_owned(),
            (Some(state), false) => format!("{state}, disabled"),
            (None, true) => "never run".to_owned(),
            (None, false) => "disabled".to_owned(),
        };
        let finished = stream.last_finished_age_s.map_or_else(String::new, |age_s| format!("{} ago", duration(age_s)));
        let known = if stream.known_rejected == 0 { String::new() } else { format!(" ({} known)", stream.known_rejected) };
        let count = |count: i64| if stream.state.is_empty() { String::new() } else { count.to_string() };
        let rejected = count(stream.rejected) + &known;
        vec![stream.stream.to_owned(), state, finished, count(stream.seen), count(stream.appended), rejected, stream.reason.clone()]
    });
    lines.extend(table(["STREAM", "NEWEST RUN", "LAST FINISHED", "SEEN", "APPENDED", "REJECTED", "NOTE"], streams, &[3, 4, 5]));
    let services = report.services.iter().map(|service| {
        let lag = report.views.iter().find(|view| view.view == service.service);
        let (lag, seconds) = lag.map_or((0, 0), |lag| (lag.lag, lag.seconds));
        let recorded = or(&service.recorded, "never").to_owned();
        vec![
            service.service.to_owned(),
            service.seq.to_string(),
            recorded,
            service.parked.to_string(),
            lag.to_string(),
            seconds.to_string(),
        ]
    });
    lines.extend(table(["SERVICE", "CHANGES", "LAST CHANGE", "PARKED", "LAG", "LAG SECONDS"], services, &[1, 3, 4, 5]));
    if !report.disabled_services.is_empty() {
        let names =
            report.disabled_services.iter().map(|disabled| format!("{}{}", disabled.service, needed_by(disabled, ", projected for ")));
        lines.extend([String::new(), format!("disabled services: {}", names.collect::<Vec<_>>().join("; "))]);
    }
    let topics = report.topics.iter().map(|topic| vec![topic.topic.to_owned(), topic.records.to_string(), topic.lag.to_string()]);
    if report.topics.iter().all(|topic| topic.bytes.is_none()) {
        lines.extend(table(["TOPIC", "RECORDS", "NOT INDEXED"], topics, &[1, 2]));
    } else {
        let size = |bytes: Option<u64>| bytes.map(bytes_text).unwrap_or_default();
        let sizes = report.topics.iter().map(|topic| vec![size(topic.bytes), size(topic.bytes_a_year)]);
        let sum = |bytes: fn(&TopicSize) -> Option<u64>| bytes_text(report.topics.iter().filter_map(bytes).fold(0, u64::saturating_add));
        let total = vec!["all".to_owned(), String::new(), String::new(), sum(|topic| topic.bytes), sum(|topic| topic.bytes_a_year)];
        let rows = topics.zip(sizes).map(|(row, sizes)| [row, sizes].concat()).chain([total]);
        lines.extend(table(["TOPIC", "RECORDS", "NOT INDEXED", "BYTES", "A YEAR ADDS"], rows, &[1, 2, 3, 4]));
    }
    let witnesses = report.witnesses.iter().map(|cosignature| {
        let Cosignature { witness, service, checkpoint, cosigned, behind, reason, .. } = cosignature;
        let cosigned = cosigned.map_or_else(|| "none".to_owned(), |leaves| leaves.to_string());
        let note = if *behind { or(reason, "behind") } else { reason };
        vec![witness.clone(), (*service).to_owned(), checkpoint.to_string(), cosigned, note.to_owned()]
    });
    lines.extend(table(["WITNESS", "SERVICE", "CHECKPOINT", "COSIGNED", "NOTE"], witnesses, &[2, 3]));
    if !report.witness_key.is_empty() {
        lines.extend([String::new(), format!("verifier key of this witness: {}", report.witness_key)]);
    }
    lines
}

/// A table with aligned columns below an empty line; nothing without rows. The columns in `right` are aligned to the right.
fn table<const COLUMNS: usize>(head: [&str; COLUMNS], rows: impl Iterator<Item = Vec<String>>, right: &[usize]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let rows: Vec<Vec<String>> = std::iter::once(head.map(str::to_owned).to_vec()).chain(rows).collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            if right.contains(&column) { padding + cell } else { cell.clone() + &padding }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    std::iter::once(String::new()).chain(rows.iter().map(line)).collect()
}

/// A number of bytes in the largest decimal unit of which there is at least one.
fn bytes_text(bytes: u64) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let found = units.into_iter().find(|(unit, _)| bytes >= *unit);
    found.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{}.{} {name}", bytes / unit, bytes % unit / (unit / 10)))
}

/// A duration in its largest unit.
fn duration(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{RefusedSignature, ServiceProgress, ViewLag};
    use super::*;

    fn report() -> Report {
        let finished = Stream {
            stream: "openfda.food",
            enabled: true,
            state: "run_finished".to_owned(),
            at: "2026-11-20T12:00:00.000Z".to_owned(),
            last_finished: "2026-11-20T12:00:00.000Z".to_owned(),
            last_finished_age_s: Some(7_300),
            seen: 28_000,
            appended: 7,
            rejected: 2,
            known_rejected: 1,
            reason: String::new(),
        };
        let never = Stream { stream: "cpsc", enabled: true, ..Stream::default() };
        let disabled = Stream { stream: "fsis", ..Stream::default() };
        let mut report = Report {
            upstreams: vec![finished, never, disabled],
            topics: vec![TopicSize { topic: "recalls", records: 12, lag: 0, bytes: None, bytes_a_year: None }],
            views: vec![ViewLag { view: "recalls", lag: 3, seconds: 1 }],
            services: vec![ServiceProgress { service: "recalls", seq: 9, recorded: String::new(), parked: 0 }],
            ..Report::default()
        };
        report.conclude();
        report
    }

    fn failing() -> Report {
        let mut report = report();
        report.upstreams[1].state = "run_failed".to_owned();
        report.upstreams[1].reason = "field RecallID vanished".to_owned();
        report.services[0].parked = 2;
        report.refused_signatures.push(RefusedSignature { service: "awards".to_owned(), reason: "older than what was signed".to_owned() });
        report.conclude();
        report
    }

    /// Proves that the lines for scripts begin with the summary, and that the other lines have the fields that scripts read.
    #[test]
    fn lines_keep_their_fields() {
        let all = lines(&report());
        assert_eq!(
            all,
            [
                "summary ok\tstreams 2\tfailed 0\tnever run 1\trejected 2\tservices 1\tchanges 9\tparked 0\tlag 3",
                "upstream openfda.food\trun_finished 2026-11-20T12:00:00.000Z\tlast finished 2026-11-20T12:00:00.000Z (7300 s ago)\tseen 28000\tappended 7\trejected 2 (1 known)",
                "upstream cpsc\tnever run",
                "upstream fsis\tdisabled",
                "topic recalls\trecords 12\tlag 0",
                "view recalls\tlag 3\tseconds 1",
                "service recalls\tseq 9\trecorded never\tparked 0",
            ]
        );
    }

    /// Proves that what is stopped or parked comes first in each form, and that an upstream that is switched off is no problem.
    #[test]
    fn problems_come_first() {
        let mut report = failing();
        let expected = [
            "the newest run of cpsc failed: field RecallID vanished",
            "2 keys of recalls are parked",
            "checkpoints of awards are not signed: older than what was signed",
        ];
        assert_eq!((report.is_ok, &report.problems[..]), (false, &expected.map(str::to_owned)[..]));
        assert_eq!(lines(&report)[1..4], expected.map(|problem| format!("problem\t{problem}")));
        assert!(lines(&report)[0].starts_with("summary attention\t"));
        let tables = tables(&report);
        assert_eq!((tables[0].as_str(), tables[1].trim()), ("ATTENTION", expected[0]));
        report.upstreams[1].enabled = false;
        report.conclude();
        assert_eq!(report.problems, expected[1..]);
    }

    /// Proves that the summary counts the services that have readers, and not those of the engine, which have lines like all others.
    #[test]
    fn services_of_the_engine_are_not_counted() {
        let mut report = report();
        report.services.push(ServiceProgress { service: "accounts", seq: 1, recorded: String::new(), parked: 0 });
        let all = lines(&report);
        assert!(all[0].contains("\tservices 1\tchanges 10\t"), "{}", all[0]);
        assert!(all.iter().any(|line| line.starts_with("service accounts\t")), "{all:?}");
    }

    /// Proves that each form names the services that are disabled, and which one needs them.
    #[test]
    fn disabled_services_are_named() {
        let mut report = report();
        report.disabled_services =
            [("awards", "exclusions"), ("labs", "")].map(|(service, needed_by)| DisabledService { service, needed_by }).into();
        report.conclude();
        assert!(report.is_ok, "{:?}", report.problems);
        assert!(
            lines(&report).ends_with(&["disabled awards\tneeded by exclusions", "disabled labs"].map(str::to_owned)),
            "{:?}",
            lines(&report)
        );
        let line = "disabled services: awards, projected for exclusions; labs";
        assert!(tables(&report).iter().any(|shown| shown == line), "{:?}", tables(&report));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(
            (&json["disabledServices"][0]["neededBy"], &json["disabledServices"][1]["service"]),
            (&"exclusions".into(), &"labs".into())
        );
    }

    /// Proves that the columns of a table are aligned, whatever the length of a cell.
    #[test]
    fn columns_are_aligned() {
        let tables = tables(&report());
        let streams: Vec<&String> = tables.iter().skip_while(|line| !line.starts_with("STREAM")).take(3).collect();
        assert_eq!(
            streams,
            [
                "STREAM        NEWEST RUN  LAST FINISHED   SEEN  APPENDED     REJECTED  NOTE",
                "openfda.food  finished    2 h ago        28000         7  2 (1 known)",
                "cpsc          never run",
            ]
        );
        assert!(tables[0].starts_with("OK") && tables[1].starts_with("streams 2, failed 0"), "{tables:?}");
    }

    /// Proves that the bytes of topics are shown only if they are known, with their sum.
    #[test]
    fn sizes() {
        let mut report = report();
        report.topics.push(TopicSize { topic: "awards", records: 3, lag: 0, bytes: Some(999), bytes_a_year: Some(1_960_000) });
        (report.topics[0].bytes, report.topics[0].bytes_a_year) = (Some(25_000_000_000), Some(0));
        assert!(lines(&report).contains(&"topic recalls\trecords 12\tlag 0\tbytes 25000000000\tbytes a year 0".to_owned()));
        let tables = tables(&report);
        let topics: Vec<&String> = tables.iter().skip_while(|line| !line.starts_with("TOPIC")).take(4).collect();
        assert_eq!(
            topics,
            [
                "TOPIC    RECORDS  NOT INDEXED    BYTES  A YEAR ADDS",
                "recalls       12            0  25.0 GB          0 B",
                "awards         3            0    999 B       1.9 MB",
                "all                            25.0 GB       1.9 MB",
            ]
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["topics"][1]["bytes"], &json["topics"][1]["bytesAYear"]), (&999.into(), &1_960_000.into()));
    }

    /// Proves that the JSON has the problems and every item with typed fields.
    #[test]
    fn json_has_every_item() {
        let json = serde_json::to_value(failing()).unwrap();
        assert_eq!((&json["ok"], json["problems"].as_array().unwrap().len()), (&false.into(), 3));
        let stream = &json["upstreams"][0];
        assert_eq!(
            (&stream["stream"], &stream["lastFinishedAgeS"], &stream["knownRejected"]),
            (&"openfda.food".into(), &7_300.into(), &1.into())
        );
        assert_eq!((&json["upstreams"][1]["lastFinishedAgeS"], &json["services"][0]["parked"]), (&serde_json::Value::Null, &2.into()));
    }
}
