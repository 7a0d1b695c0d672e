//! What pages know of each service without reading it again: how many changes it recorded on each past day, and how its streams do. A day that has ended
//! does not change any more, so each is counted once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::civil::Date;
use serde_json::Value;

/// The most days that are held, over all services. Above it they are counted again.
const HELD_MAX: usize = 10_000;
/// For how long the states of streams are shown that were read, in milliseconds. Reading them takes longer than all the rest of a page, because it reads the
/// sync runs of 90 days.
const STREAMS_MS_MAX: i64 = 15_000;

/// What pages know without reading it again.
#[derive(Debug, Default)]
pub struct Activity {
    /// By service and past day, how many changes were recorded on it.
    days: Mutex<HashMap<(&'static str, Date), u64>>,
    /// By service, the states of its streams, and when they were read, in milliseconds since 1970.
    streams: Mutex<HashMap<&'static str, (i64, Value)>>,
}

impl Activity {
    pub(crate) fn known(&self, service: &'static str, day: Date) -> Option<u64> {
        self.days.lock().unwrap_or_else(PoisonError::into_inner).get(&(service, day)).copied()
    }

    pub(crate) fn hold(&self, service: &'static str, day: Date, changes: u64) {
        let mut held = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= HELD_MAX {
            held.clear();
        }
        held.insert((service, day), changes);
    }

    /// The states of the streams of a service, if they were read a short time ago.
    pub(crate) fn streams(&self, service: &'static str, now_ms: i64) -> Option<Value> {
        let held = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, streams) = held.get(service).filter(|(at_ms, _)| (0..STREAMS_MS_MAX).contains(&(now_ms - at_ms)))?;
        Some(streams.clone())
    }

    pub(crate) fn hold_streams(&self, service: &'static str, now_ms: i64, streams: Value) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).insert(service, (now_ms, streams));
    }
}
