//! Files of all formats through one interface.

mod detect;
#[cfg(feature = "http")]
mod http;
mod read;
