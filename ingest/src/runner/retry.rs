//! Maps rejected records again.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use upstreams::{Answer, Settings, Stream, Upstream, Window};

use super::Runner;
use super::fetch::map;
use crate::Error;
use crate::facts::{Hashed, Writer};

impl Runner {
    /// Maps rejected records again with the mapping of this version and appends those that succeed. `rejected` holds the time of rejection
    /// and the raw bytes, oldest first. Returns how many records were accepted. A record that the upstream has shown readable since its
    /// rejection is skipped, because the newer content counts.
    ///
    /// # Errors
    /// [`Error::Busy`] while another process syncs the upstream; otherwise when the log or the store fails.
    pub async fn retry_rejected(
        &self,
        upstream: &'static dyn Upstream,
        stream: &'static Stream,
        settings: &Settings,
        rejected: Vec<(i64, Vec<u8>)>,
    ) -> Result<u64, Error> {
        let state = self.state(upstream).await;
        let _one = state.lock().await;
        let mut lease = self.acquire_lease(upstream, stream).await?;
        let retrying = async {
            let topic = stream.topic;
            let mut writer = Writer::new(upstream.manifest(), stream, Arc::clone(&self.engine))?;
            let today = self.clock.now().to_zoned(TimeZone::UTC).date();
            let cursor = upstream.start(stream, &Window { from: None, to: today }, settings);
            let mut page: HashMap<String, (i64, Hashed)> = HashMap::new();
            for (rejected_at, raw) in rejected {
                let answer = Answer { status: 200, link: None, body: upstream.single(stream, &raw).into() };
                // Records that still cannot be mapped remain in the topic `rejected`.
                let Ok((records, _)) = map(upstream, stream, &cursor, &answer, today) else { continue };
                page.extend(records.into_iter().map(|hashed| (hashed.observation.key.clone(), (rejected_at, hashed))));
            }
            self.wait_until_projected_to_end(topic).await?;
            let (keys, page): (Vec<String>, Vec<(i64, Hashed)>) = page.into_iter().unzip();
            let heads = writer.heads(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
            let older =
                page.into_iter().zip(heads).filter(|((rejected_at, _), row)| row.head.version == 0 || row.observed_at <= *rejected_at);
            let page: Vec<Hashed> = older.map(|((_, hashed), _)| hashed).collect();
            let mut facts = writer.changed(&page, self.clock.now_ms()).await?;
            let accepted = facts.len() as u64;
            let replaced = writer.replaced(&page).await?.into_iter().collect();
            facts.extend(writer.superseded(&replaced, self.clock.now_ms()).await?);
            if !facts.is_empty() {
                self.log.append(facts).await?;
            }
            Ok(accepted)
        };
        let accepted = tokio::select! {
            biased;
            accepted = retrying => accepted,
            () = lease.lost() => Err(Error::Overtaken { stream: stream.name }),
        };
        lease.release().await;
        accepted
    }
}
