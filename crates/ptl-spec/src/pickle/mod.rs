//! A reader of pickles that calls nothing: opcodes and names that models do not need are refused,
//! and what would be called becomes a value that says so.

mod global;
mod machine;
mod names;
mod node;
mod write;

pub use global::Scheme;
pub(crate) use global::{Function, Global};
pub(crate) use names::foreign;
pub(crate) use node::{Id, Node, Pickle};
pub(crate) use write::{Memo, Pickler, class};

/// What is wrong with a pickle, at some byte of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickleFault {
    /// The protocol is another one.
    #[error("protocol is {found}, expected 2")]
    Protocol {
        /// Its number.
        found: u8,
    },
    /// The opcode is one that models do not need.
    #[error("opcode is {found:#04x}, which no model needs")]
    Opcode {
        /// Its number.
        found: u8,
    },
    /// The name would be looked up in Python, and models do not need it.
    #[error("names {:?}, which no model needs", tensor_core::text::short(.name))]
    Name {
        /// The module and the name in it.
        name: String,
    },
    /// The pickle ends inside an opcode, or before the one that stops it.
    #[error("ends before {what}")]
    Cut {
        /// What should be there.
        what: &'static str,
    },
    /// A text is not UTF-8.
    #[error("text is not UTF-8")]
    Text,
    /// A number has more than 64 bits.
    #[error("number has {bytes} bytes, expected at most 8")]
    Number {
        /// Its length.
        bytes: u8,
    },
    /// An opcode finds something else on the stack than it needs.
    #[error("finds {found} on the stack, expected {expected}")]
    Stack {
        /// What is there.
        found: &'static str,
        /// What should be.
        expected: &'static str,
    },
    /// A value is referred to that was never stored.
    #[error("refers to memo {index}, which was not stored")]
    Memo {
        /// Its number.
        index: u32,
    },
    /// Bytes stand behind the end.
    #[error("is followed by {bytes} bytes")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// A value is one that does not stand at this place of a model.
    #[error("has {found} as {what}, expected {expected}")]
    Value {
        /// Where in the model.
        what: &'static str,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
}
