use std::fmt::Write as _;

use anyhow::{bail, ensure};
use modelcrate::{
    AnyReader,
    tensor_core::{Limit, Verify},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::{About, malformed},
    glob::{Glob, check_meant, is_meant},
    options::{Input, Print},
    outcome::Outcome,
    output,
};

/// Show the source that a model keeps
///
/// It is the `TorchScript` of the model's classes and functions, which the full runtime compiles and
/// the lite interpreter does not read. Each file stands behind a comment with its name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl code model.ptl | less
  modelcrate ptl code model.ptl --file 'code/__torch__/torch/nn/*'
  modelcrate extract model.ptl -o folder/ --file 'code/*'")]
pub(crate) struct ShowCode {
    /// The model; - is standard input
    model: Input,
    /// Show only these files: names, or patterns with * and ?; may be given several times
    #[arg(long, value_name = "GLOB")]
    file: Vec<Glob>,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Shown {
    path: String,
    files: Vec<Source>,
}

#[derive(Serialize)]
struct Source {
    name: String,
    text: String,
}

impl ShowCode {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let shown = Shown {
            path: self.model.display().to_string(),
            files: self.sources().about(&self.model)?,
        };
        output::print_result(self.print, &shown, &shown.text())?;
        Ok(Outcome::Fine)
    }

    fn sources(&self) -> anyhow::Result<Vec<Source>> {
        let reader = output::open(&self.model, AnyReader::options().verify(Verify::Once))?;
        let AnyReader::Ptl(reader) = &reader else {
            bail!("is {}, expected a PyTorch Live model", reader.format().title());
        };
        let files: Vec<_> = reader.sources()?.collect();
        ensure!(!files.is_empty(), "keeps no source: it is for the lite interpreter alone");
        check_meant(&self.file, "file of source", files.iter().map(|file| file.path()))?;
        let (mut bytes, mut shown) = (0_u64, Vec::new());
        for file in files.into_iter().filter(|file| is_meant(&self.file, file.path())) {
            bytes = bytes.saturating_add(file.len()?);
            reader.limits().check(Limit::DocumentBytes, "source in bytes", bytes)?;
            let name = file.path().to_owned();
            let text = String::from_utf8(file.bytes()?.into());
            let text = text.or_else(|_| malformed(format!("file {name:?} is not UTF-8")))?;
            shown.push(Source { name, text });
        }
        Ok(shown)
    }
}

impl Shown {
    fn text(&self) -> String {
        let mut text = String::new();
        for (index, file) in self.files.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n" };
            let _ = writeln!(text, "{gap}# {}", escape(&file.name));
            for line in file.text.lines() {
                let _ = writeln!(text, "{}", escape(line));
            }
        }
        text
    }
}
