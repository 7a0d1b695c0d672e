//! Tests of the projector on the embedded log, and on the embedded store or a real CQL node.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod cql;
mod harness;
mod heads;
mod inputs;
mod interference;
mod interrupted_groups;
mod lag;
mod order;
mod parked_inputs;
mod record_counts;
mod signing;
mod waking;
