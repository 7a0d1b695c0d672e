//! What lets a reader check this log: the trees over changes, their signed checkpoints, proofs that a tree holds an earlier one, the memory of what
//! was signed, and witnesses.
//!
//! The crate knows no service. It is given the trees to sign and to have cosigned.

pub mod change_tree;
pub mod checkpoints;
pub mod consistency;
pub mod memory;
pub mod note;
pub mod prover;
pub mod trees;
pub mod witness;
