//! Generation 2.

mod read;
mod write;
