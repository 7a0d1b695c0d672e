//! The index of names.
