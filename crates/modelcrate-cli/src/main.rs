//! The command `modelcrate`: what is in model files, whether they are sound, and edits of them.
//!
//! Exit status: 0 where all is well (warnings allowed), 1 where a file is invalid, or the result would be and is
//! refused, 2 where the command could not be carried out, 3 where a runtime does not get through a valid file.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(
        feature = "carton",
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

use std::{env, io, process::ExitCode};

use clap::Parser as _;

use crate::{
    args::Args,
    failure::{bare, chain, is_invalid},
    outcome::{Outcome, print_error},
};

fn main() -> ExitCode {
    match run(Args::parse_from(address::hide(env::args_os()))) {
        Ok(outcome) => outcome.into(),
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
