//! Checks a file from a stranger: in bounded memory and time, and it says all that is wrong.
//!
//! ```sh
//! cargo run -p modelcrate --example validate -- upload.carton
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{env, error::Error, process::ExitCode};

use modelcrate::{AnyReader, tensor_core::Limits};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("expected the path of a model")?;
    // No document over 64 MiB, no tensor over 1 GiB, and no more than 10 times the file in all.
    let limits = Limits::default()
        .with_manifest_bytes(64 << 20)
        .with_decoded_bytes(1 << 30)
        .with_expansion(10);
    let reader = match AnyReader::options().limits(limits).open(&path) {
        Ok(reader) => reader,
        // Not every error is the fault of the file.
        Err(error) if error.kind().is_file_fault() => {
            println!("{path}: refused, {error} ({})", error.rule());
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    // Cheap first: what can be said without reading a tensor.
    let mut report = reader.lint();
    if report.is_valid() {
        report = reader.validate();
    }
    for finding in report.findings() {
        println!("{} {}: {}", finding.severity, finding.rule, finding.message);
    }
    Ok(if report.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
