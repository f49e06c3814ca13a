//! The command `modelcrate`: what is in model files, whether they are sound, and edits of them.
//!
//! Exit status: 0 where all is well (warnings allowed), 1 where a file is invalid, or the result would be and is
//! refused, 2 where the command could not be carried out, 3 where a runtime does not get through a valid file.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(
        feature = "carton",
        feature = "circle",
        feature = "http",
        feature = "nnpackage",
        feature = "ptl",
        feature = "rten",
        feature = "ztensor"
    )),
    allow(
        dead_code,
        unreachable_code,
        unused_imports,
        unused_mut,
        unused_variables,
        clippy::needless_pass_by_value,
        reason = "few commands use a part of what all share"
    )
)]

mod address;
mod args;
#[cfg(feature = "carton")]
mod carton;
mod cat;
mod catalog;
mod checked;
mod compact;
mod convert;
mod create;
mod diff;
mod edit;
mod editing;
mod escape;
mod explain;
mod extract;
mod failure;
mod fit;
mod generate;
mod glob;
mod graph;
mod hash;
mod inspect;
#[cfg(feature = "nnpackage")]
mod nnpackage;
mod only;
mod options;
mod outcome;
mod output;
#[cfg(any(feature = "carton", feature = "nnpackage"))]
mod pack;
mod paths;
mod progress;
#[cfg(feature = "ptl")]
mod ptl;
mod put;
mod recover;
#[cfg(feature = "page")]
mod report;
#[cfg(feature = "rten")]
mod rten;
mod safe_name;
#[cfg(unix)]
mod signals;
#[cfg(any(feature = "carton", feature = "nnpackage"))]
mod unpack;
mod verify;
mod walk;
mod write;

use std::{ffi::OsString, io};

use clap::Parser as _;

pub use crate::graph::graph_json;
use crate::{
    args::Args,
    failure::{bare, chain, is_invalid},
    outcome::{Outcome, print_error},
};

/// Runs the command with these arguments, the first of which is its own name, and returns the exit
/// status. It is meant to be the last thing that a process does: signals end it from now on.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args = match Args::try_parse_from(address::hide(args.into_iter())) {
        Ok(args) => args,
        Err(error) => {
            // Where nobody can hear it, the status still says it.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    match run(args) {
        Ok(outcome) => outcome.status(),
        Err(error) => failed(&error),
    }
}

fn run(args: Args) -> anyhow::Result<Outcome> {
    #[cfg(unix)]
    signals::watch()?;
    let done = args.run();
    #[cfg(feature = "remote")]
    if options::manner().requests {
        address::print_requests();
    }
    done
}

/// Says why a command could not be carried out.
fn failed(error: &anyhow::Error) -> u8 {
    let broken_pipe = bare(error).chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    });
    if broken_pipe {
        // Whoever read our output has seen enough: as a process that SIGPIPE ends.
        return 141;
    }
    print_error(&chain(error));
    if is_invalid(error) { 1 } else { 2 }
}
