//! The command `modelcrate`, which is all in the library, for programs that bring it along.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    ExitCode::from(modelcrate_cli::main(env::args_os()))
}
