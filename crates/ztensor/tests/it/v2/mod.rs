//! Generation 2.

mod read;
