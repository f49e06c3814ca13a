//! ZIP archives that hold models.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod error;
mod method;
pub mod name;

pub use error::{Class, Error, Fault, Flaw, Result, TargetFault, WriteFault};
pub use method::Method;
