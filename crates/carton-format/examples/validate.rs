//! Checks a carton from a stranger: in bounded memory and time, and it says all that is wrong.
//!
//! ```sh
//! cargo run -p carton-format --example validate -- upload.carton
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::process::ExitCode;

use carton_format::{Reader, tensor_core::Limits};

fn main() -> ExitCode {
    let sample = "testdata/carton/invalid/digest_model.carton";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    // No MANIFEST over 1 MiB, no tensor over 1 GiB, and no more than 10 times the file in all.
    let limits = Limits::default()
        .with_manifest_bytes(1 << 20)
        .with_decoded_bytes(1 << 30)
        .with_expansion(10);
    let reader = match Reader::options().limits(limits).open(&path) {
        Ok(reader) => reader,
        Err(error) if error.kind().is_file_fault() => {
            println!("{path}: refused, {error} ({})", error.rule());
            return ExitCode::from(1);
        }
        Err(error) => {
            println!("{path}: cannot be checked, {error}");
            return ExitCode::from(2);
        }
    };
    // Cheap first: what can be said without reading the model.
    let mut report = reader.lint();
    if report.is_valid() {
        report = reader.validate();
    }
    for finding in report.findings() {
        println!("{}: {}: {}", finding.severity, finding.rule, finding.message);
    }
    ExitCode::from(u8::from(!report.is_valid()))
}
