//! Checks a file from a stranger: in bounded memory and time, and it says all that is wrong.
//!
//! ```sh
//! cargo run -p ptl-spec --example validate -- upload.ptl
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::process::ExitCode;

use ptl_spec::{Reader, tensor_core::Limits};

fn main() -> ExitCode {
    let sample = "testdata/ptl/invalid/pickle_system.ptl";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    // No spec over 1 MiB, no tensor over 1 GiB.
    let limits = Limits::default().with_manifest_bytes(1 << 20).with_decoded_bytes(1 << 30);
    let reader = match Reader::options().limits(limits).open(path) {
        Ok(reader) => reader,
        Err(error) => {
            println!("{} {:?}: {error}", error.rule(), error.kind());
            return ExitCode::FAILURE;
        }
    };
    let report = reader.validate();
    for finding in report.findings() {
        println!("{} {}: {}", finding.severity, finding.rule, finding.message);
    }
    if report.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
