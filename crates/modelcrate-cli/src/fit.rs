//! Tensors that fit into a file once they have become others, and those that do not.

use std::{fmt, path::PathBuf};

use modelcrate::{ConvertOptions, Refusal};

use crate::{
    escape::escape,
    failure::bare,
    outcome::{Outcome, print_error},
    output,
};

/// What may become of tensors that do not fit as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Fit {
    /// Store sparse tensors with their zeros
    #[arg(long)]
    densify: bool,
    /// Turn quantized tensors into f32
    #[arg(long)]
    dequantize: bool,
    /// Turn elements of a type that the target does not have into those of the nearest that it has
    #[arg(long)]
    lossy: bool,
}

impl Fit {
    /// Tells whether nothing was asked for.
    pub(crate) fn is_default(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn options(self) -> ConvertOptions {
        let Self { densify, dequantize, lossy } = self;
        ConvertOptions::default().densify(densify).dequantize(dequantize).lossy(lossy)
    }
}

/// Files, and why tensors of each do not fit.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Vec<(PathBuf, Vec<Refusal>)>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensors do not fit")
    }
}

impl std::error::Error for Refused {}

/// Says of every tensor why it does not fit, where that is what went wrong.
pub(crate) fn said(result: anyhow::Result<Outcome>) -> anyhow::Result<Outcome> {
    let refused = result.as_ref().err().and_then(|error| bare(error).downcast_ref());
    let Some(Refused(files)) = refused else { return result };
    for (path, refused) in files {
        let path = path.display();
        match refused.as_slice() {
            [refusal] => print_error(&format!("{path}: {refusal}")),
            _ => print(&format!("{path}: {} tensors do not fit", refused.len()), refused, ""),
        }
    }
    Ok(Outcome::Failed)
}

/// Prints a headline, and below it why each tensor is refused.
pub(crate) fn print(headline: &str, refused: &[Refusal], hint: &str) {
    print_error(headline);
    let shown = refused.iter().take(SHOWN);
    let mut lines: String =
        shown.map(|refusal| format!("  {}\n", escape(&refusal.to_string()))).collect();
    if let Some(left @ 1..) = refused.len().checked_sub(SHOWN) {
        lines.push_str(&format!("  … and {left} more{hint}\n"));
    }
    output::print_problem(&lines);
}

/// How many refusals or notes people see.
pub(crate) const SHOWN: usize = 40;
