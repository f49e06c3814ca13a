//! Checks a file from a stranger: in bounded memory and time, and it says all that is wrong.
//!
//! ```sh
//! cargo run -p rten-format --example validate -- upload.rten
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::process::ExitCode;

use rten_format::{Reader, tensor_core::Limits};

fn main() -> ExitCode {
    let sample = "testdata/rten/invalid/undefined_value.rten";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    // No model data over 64 MiB, no constant over 1 GiB.
    let limits = Limits::default().with_manifest_bytes(64 << 20).with_decoded_bytes(1 << 30);
    let reader = match Reader::options().limits(limits).open(path) {
        Ok(reader) => reader,
        Err(error) => {
            println!("{} {:?}: {error}", error.rule(), error.kind());
            return ExitCode::FAILURE;
        }
    };
    let report = reader.validate();
    for finding in report.findings() {
        let path = finding.at.path.as_deref().unwrap_or_default();
        println!("{} {} {path}: {}", finding.severity, finding.rule, finding.message);
    }
    if report.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
