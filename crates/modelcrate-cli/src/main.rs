//! The command `modelcrate`: what is in model files, whether they are sound, and edits of them.
//!
//! Exit status: 0 where all is well (warnings allowed), 1 where a file is invalid, 2 where the
//! command could not be carried out.

#![forbid(unsafe_code)]

mod args;
mod carton;
mod escape;
mod failure;
mod generate;
mod inspect;
mod nnpackage;
mod output;
mod paths;
mod ptl;
mod rten;
mod tensor_file;
mod verify;
mod write;
mod zt;

use std::{io, process::ExitCode};

use anstream::eprintln;
use clap::Parser as _;

use crate::{
    args::Args,
    escape::escape,
    failure::{bare, chain, is_invalid},
};

fn main() -> ExitCode {
    let args = Args::parse();
    match args.run() {
        Ok(outcome) => outcome.into(),
        Err(error) => failed(&error),
    }
}

/// What became of a command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Fine,
    Invalid,
    /// Some file could not be looked at.
    Failed,
}

impl Outcome {
    /// Returns the graver of two.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Invalid, _) | (_, Self::Invalid) => Self::Invalid,
            _ => Self::Fine,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Invalid => Self::from(1),
            Outcome::Failed => Self::from(2),
        }
    }
}

/// Says why a command could not be carried out.
fn failed(error: &anyhow::Error) -> ExitCode {
    let broken_pipe = bare(error).chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    });
    if broken_pipe {
        // Whoever read our output has seen enough: as a process that SIGPIPE ends.
        return ExitCode::from(141);
    }
    print_error(&chain(error));
    ExitCode::from(if is_invalid(error) { 1 } else { 2 })
}

fn print_error(message: &str) {
    let style = anstyle::AnsiColor::Red.on_default().bold();
    eprintln!("{style}error{style:#}: {}", escape(message));
}
