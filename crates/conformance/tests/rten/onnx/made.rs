//! Models of our own.
