//! Checks an upload of a stranger within limits: `validate MODEL`.
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{env, error::Error, process::ExitCode};

use circle_format::{Reader, tensor_core::Limits};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("expected the path of a model")?;
    let limits = Limits::default().with_decoded_bytes(256 << 20).with_tensors(100_000);
    let report = match Reader::options().limits(limits).open(path) {
        Ok(reader) => reader.validate(),
        // Not every error is the fault of the file.
        Err(error) if error.kind().is_file_fault() => {
            println!("{}: {error}", error.rule());
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    for finding in report.findings() {
        println!("{} {}: {}", finding.severity, finding.rule, finding.message);
    }
    Ok(if report.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
