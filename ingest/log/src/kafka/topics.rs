//! Creates missing topics and checks the settings of existing ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::metadata::MetadataTopic;
use rdkafka::types::RDKafkaErrorCode;

use super::settings::{ConnectionState, Options, failed};
use crate::Error;

/// How long brokers may take to create topics or to answer, as long as Kafka's own clients wait: the topics of all services are created at once.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How long a topic that was just created may be unknown to the asked broker.
const KNOWN_MAX: Duration = Duration::from_secs(60);
/// Why a topic has no compaction and no retention limit.
const KEPT: &str = "records must never be deleted";

/// Creates the missing topics, then checks all of them.
pub(super) async fn make(options: &Options) -> Result<(), Error> {
    let admin: AdminClient<ConnectionState> = options
        .client()
        .create_with_context(ConnectionState::default())
        .map_err(|error| failed(options, "the client cannot be made", Some(error)))?;
    let admin = Arc::new(admin);
    let requested = AdminOptions::new().request_timeout(Some(ANSWER_MAX)).operation_timeout(Some(ANSWER_MAX));
    let names: Vec<String> = options.topics.iter().map(|topic| options.name_of(topic)).collect();
    let (in_sync_min, batch_bytes_max) = (options.in_sync_min.to_string(), options.batch_bytes_max().to_string());
    let wanted: Vec<NewTopic<'_>> = options
        .topics
        .iter()
        .zip(&names)
        .map(|(topic, name)| {
            let partitions = i32::try_from(topic.partitions).unwrap_or(i32::MAX);
            let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(options.replication))
                .set("cleanup.policy", "delete")
                .set("retention.ms", "-1")
                .set("retention.bytes", "-1")
                .set("min.insync.replicas", &in_sync_min)
                .set("max.message.bytes", &batch_bytes_max)
                // Some managed brokers elect a replica that lacks acknowledged records by default, rather than none.
                .set("unclean.leader.election.enable", "false")
                .set("message.timestamp.type", "CreateTime")
                // Times come from the appender, and some are far from the broker's clock.
                .set("message.timestamp.after.max.ms", "9223372036854775807");
            // With a single replica, at least every append is synced.
            if options.replication == 1 { topic.set("flush.messages", "1") } else { topic }
        })
        .collect();
    let made = admin.create_topics(&wanted, &requested).await.map_err(|error| failed(options, "topics cannot be made", Some(error)))?;
    for result in made {
        match result {
            Ok(name) => tracing::info!(topic = name, "topic created"),
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => return Err(failed(options, &format!("topic {name} cannot be made: {code}"), None)),
        }
    }
    let copies_max = check_partitions(options, &admin, &names).await?;
    check_settings(options, &admin, &names, &copies_max, &requested).await
}

/// Checks the number of partitions, and warns about missing copies. With another number of partitions, keys would be in partitions where no reader expects
/// them. Returns for each topic the most copies that one of its partitions has.
async fn check_partitions(options: &Options, admin: &Arc<AdminClient<ConnectionState>>, names: &[String]) -> Result<Vec<usize>, Error> {
    let mut copies_max = Vec::with_capacity(names.len());
    for (topic, name) in options.topics.iter().zip(names) {
        let begun = Instant::now();
        let copies = loop {
            let (admin, requested) = (Arc::clone(admin), name.clone());
            let looked_up = move || {
                let metadata = admin.inner().fetch_metadata(Some(&requested), ANSWER_MAX)?;
                let topic = metadata.topics().iter().find(|found| found.name() == requested);
                let partitions = topic.map(MetadataTopic::partitions).unwrap_or_default();
                Ok(partitions.iter().map(|partition| partition.replicas().len()).collect::<Vec<usize>>())
            };
            let copies = tokio::task::spawn_blocking(looked_up)
                .await
                .map_err(|_| failed(options, "looking up topics was interrupted", None))?
                .map_err(|error| failed(options, &format!("topic {name} cannot be looked up"), Some(error)))?;
            if !copies.is_empty() || begun.elapsed() >= KNOWN_MAX {
                break copies;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        if copies.len() != topic.partitions as usize {
            let what = format!(
                "topic {name} has {} partitions, not {}: another program or version created it; choose another [kafka] topic_prefix, or copy it by `highwater export`",
                copies.len(),
                topic.partitions
            );
            return Err(failed(options, &what, None));
        }
        let copies_min = copies.iter().copied().min().unwrap_or_default();
        if usize::try_from(options.replication).is_ok_and(|wanted| copies_min < wanted) {
            tracing::warn!(
                topic = name,
                copies = copies_min,
                wanted = options.replication,
                "a topic has fewer copies than kafka.replication, reassign its partitions"
            );
        }
        copies_max.push(copies.into_iter().max().unwrap_or_default());
    }
    Ok(copies_max)
}

/// Whether an election can make acknowledged records of a topic disappear. `copies_max`: the most copies that one of its partitions has. A single copy has
/// all records, so it may always become the leader.
fn elections_lose_records(is_unclean_enabled: &str, copies_max: usize) -> bool {
    is_unclean_enabled == "true" && copies_max > 1
}

async fn check_settings(
    options: &Options,
    admin: &AdminClient<ConnectionState>,
    names: &[String],
    copies_max: &[usize],
    requested: &AdminOptions,
) -> Result<(), Error> {
    let resources: Vec<ResourceSpecifier<'_>> = names.iter().map(|name| ResourceSpecifier::Topic(name)).collect();
    let described =
        admin.describe_configs(&resources, requested).await.map_err(|error| failed(options, "topics cannot be looked up", Some(error)))?;
    for ((result, name), copies_max) in described.into_iter().zip(names).zip(copies_max) {
        let found = result.map_err(|code| failed(options, &format!("the settings of topic {name} cannot be read: {code}"), None))?;
        let value = |key: &str| found.get(key).and_then(|entry| entry.value.as_deref()).unwrap_or_default();
        let wrong = |key: &str, must: &str, why: &str| {
            failed(options, &format!("topic {name} has {key}={}, but must have {must}: {why}", value(key)), None)
        };
        if value("cleanup.policy") != "delete" {
            return Err(wrong("cleanup.policy", "delete", KEPT));
        }
        for key in ["retention.ms", "retention.bytes"] {
            if value(key) != "-1" {
                return Err(wrong(key, "-1", KEPT));
            }
        }
        if elections_lose_records(value("unclean.leader.election.enable"), *copies_max) {
            let why = "otherwise a replica that lacks acknowledged records can become the leader";
            return Err(wrong("unclean.leader.election.enable", "false", why));
        }
        if value("max.message.bytes").parse::<usize>().is_ok_and(|bytes| bytes < options.batch_bytes_max()) {
            let what = format!(
                "topic {name} refuses records over {} bytes; it must accept {}",
                value("max.message.bytes"),
                options.batch_bytes_max()
            );
            return Err(failed(options, &what, None));
        }
        if value("min.insync.replicas").parse::<i32>().is_ok_and(|copies| copies < options.in_sync_min) {
            let why = "an acknowledged record must be on kafka.in_sync_min brokers";
            return Err(wrong("min.insync.replicas", &options.in_sync_min.to_string(), why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that unclean elections lose records where a partition has several copies, and nowhere else.
    #[test]
    fn unclean_elections_matter_with_several_copies() {
        let cases = [("true", 3, true), ("true", 2, true), ("true", 1, false), ("false", 3, false), ("", 3, false)];
        for (setting, copies, expected) in cases {
            assert_eq!(elections_lose_records(setting, copies), expected, "{setting:?} with {copies} copies");
        }
    }
}
