//! Runs PyTorch, where the system has it: it is too large to be installed for these tests.

use std::{ffi::OsStr, path::Path, process::Command, time::Duration};

use serde_json::Value;

use crate::process::{output, output_within};

/// Runs a script of the folder `python/` and returns the JSON that it prints.
///
/// `None`, with a line that says so, where no Python of the system has PyTorch.
///
/// # Panics
///
/// Where the script fails, does not end, or prints something else.
#[must_use]
#[track_caller]
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub fn run<A: AsRef<OsStr>>(script: &str, args: &[A]) -> Option<Value> {
    let Some(mut command) = python() else {
        eprintln!("skipped: no Python here has torch (Debian's package is python3-torch)");
        return None;
    };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    // No compiled scripts beside the sources.
    command.arg("-B").arg(scripts.join(script)).args(args);
    let printed = output_within(command, LIMIT).unwrap_or_else(|error| panic!("{script}: {error}"));
    let json = serde_json::from_slice(&printed);
    Some(json.unwrap_or_else(|error| panic!("{script} printed no JSON: {error}")))
}

/// Returns a Python that can import PyTorch; what stands first in `PATH` need not be the system's.
fn python() -> Option<Command> {
    let has_torch = |program: &&str| {
        let mut probe = interpreter(program);
        probe.args(["-c", "import torch.jit.mobile"]);
        output(probe).is_ok()
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_torch).map(interpreter)
}

fn interpreter(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env("PYTHONUTF8", "1");
    command
}

/// How long a script may run: one loads hundreds of models, some of them twice.
const LIMIT: Duration = Duration::from_secs(300);
