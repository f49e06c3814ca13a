//! Which element types the values of a model have, and what its operators make of them.

mod classes;
mod element;
mod kinds;
mod rules;
mod scopes;

pub(crate) use classes::Clash;
pub(crate) use kinds::{Contradiction, Kinds, Misfit};
pub(crate) use scopes::Scopes;
#[cfg(feature = "onnx")]
pub(crate) use {
    element::{Element, Kind},
    kinds::{Form, declared, named},
    rules::{Rule, Slot, VARIABLES, Variable, rule},
};
