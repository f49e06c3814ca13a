//! Checks a package from a stranger: in bounded memory, and it says all that is wrong, what would
//! mend it, and what onert does about it.
//!
//! ```sh
//! cargo run -p nnpackage --example validate -- model.zip
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use nnpackage::{
    Diagnosis, Reader,
    tensor_core::{Limits, Severity},
};

fn main() -> nnpackage::Result<()> {
    let sample = "testdata/nnpackage/invalid/types_capital";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let limits = Limits::default()
        .with_document_bytes(64 << 10)
        .with_decoded_bytes(1 << 30)
        .with_expansion(20);
    let reader = match Reader::options().limits(limits).open(path) {
        Ok(reader) => reader,
        Err(error) => {
            println!("refused by {}: {error}", error.rule());
            return Ok(());
        }
    };
    let diagnoses = reader.diagnoses();
    for found in &diagnoses {
        let finding = &found.finding;
        println!("{} {}: {}", finding.severity, finding.rule, finding.message);
        if let Some(hint) = &found.hint {
            println!("  {hint}");
        }
    }
    if let Some(reaction) = Diagnosis::forecast(&diagnoses) {
        println!("onert 0.1.0 {reaction}");
    }
    // Every byte, checksums and digests included.
    let report = reader.validate();
    println!("valid: {}", report.worst() != Some(Severity::Error));
    Ok(())
}
