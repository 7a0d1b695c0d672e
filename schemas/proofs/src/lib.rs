//! What anyone can verify offline: hashes, JSON without ambiguities and its types, receipts, the trees over them, and evidence documents.
//!
//! This crate knows no topic and no table, does no input or output and reads no clock.

pub mod evidence;
pub mod hash;
pub mod i_json;
pub mod json_type;
pub mod receipt;
pub mod tree;
