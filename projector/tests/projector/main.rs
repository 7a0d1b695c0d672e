//! The projector on the embedded log and store: which facts are there, what they mean, whatever the order and whoever interferes.

mod harness;
mod heads;
mod interference;
mod order;
