//! Export to ONNX.

mod adjust;
mod attributes;
mod classes;
mod constants;
mod control;
mod demands;
mod element;
mod error;
mod export;
mod kinds;
mod lower;
mod names;
mod operator;
mod proto;
mod rules;
mod scopes;
mod shapes;
mod types;

pub use error::{Error, Result};
pub use export::{Export, Exported, ExternalData};

/// What a protobuf message may have, in bytes.
const MAX_MESSAGE: u64 = i32::MAX as u64;
