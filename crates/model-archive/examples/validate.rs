//! Checks an archive from a stranger: in bounded memory and time, and it says all that is wrong.
//!
//! ```sh
//! cargo run -p model-archive --example validate -- upload.zip
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::process::ExitCode;

use model_archive::{
    Archive,
    tensor_core::{Limits, Profile},
};

fn main() -> ExitCode {
    let sample = "testdata/ptl/valid/torch251/img.ptl";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    // No entry over 1 GiB, and no more than 10 times the archive in all.
    let limits = Limits::default().with_decoded_bytes(1 << 30).with_expansion(10);
    let archive = match Archive::options().profile(Profile::Lenient).limits(limits).open(&path) {
        Ok(archive) => archive,
        Err(error) if error.kind().is_file_fault() => {
            println!("{path}: refused, {error} ({})", error.rule());
            return ExitCode::from(1);
        }
        Err(error) => {
            println!("{path}: cannot be checked, {error}");
            return ExitCode::from(2);
        }
    };
    let report = archive.validate();
    for finding in report.findings() {
        println!("{}: {}: {}", finding.severity, finding.rule, finding.message);
    }
    ExitCode::from(u8::from(!report.is_valid()))
}
