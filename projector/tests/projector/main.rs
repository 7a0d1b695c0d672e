//! The projector on the embedded log and store: which facts are there, what they mean, whatever the order and whoever interferes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod harness;
mod heads;
mod interference;
mod lag;
mod order;
