//! What only PyTorch Live models have: code, specs, extra files, calls.

mod code;
mod embed;
mod given;
mod inputs;
mod outputs;
mod params;
mod results;
mod signature;
mod spec;
mod strip;
mod tensors;

use clap::Subcommand;
use modelcrate::{ptl_spec, tensor_core::Chain};

use crate::outcome::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Ptl {
    Code(code::ShowCode),
    Spec(spec::ShowSpec),
    Signature(signature::ShowSignature),
    Embed(embed::Embed),
    Strip(strip::Strip),
    Inputs(Box<inputs::Inputs>),
    Results(Box<results::Results>),
}

impl Ptl {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Code(command) => command.run(),
            Self::Spec(command) => command.run(),
            Self::Signature(command) => command.run(),
            Self::Embed(command) => command.run(),
            Self::Strip(command) => command.run(),
            Self::Inputs(command) => command.run(),
            Self::Results(command) => command.run(),
        }
    }
}

/// Takes an error of a call for what it is: the spec is sound, and what was asked of it is not.
fn called<T>(result: ptl_spec::Result<T>) -> anyhow::Result<T> {
    result.map_err(|error| anyhow::Error::msg(Chain(&error).to_string()))
}

/// Returns the place of a part of what has a place itself, which is empty for the whole.
fn joined(place: &str, part: &str) -> String {
    if place.is_empty() { part.to_owned() } else { format!("{place}.{part}") }
}

/// Returns the place of a value without parts.
fn leaf(place: &str) -> &str {
    if place.is_empty() { "0" } else { place }
}
