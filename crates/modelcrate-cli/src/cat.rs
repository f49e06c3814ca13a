use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{anyhow, ensure};
use bytes::Bytes;
use modelcrate::{AnyFile, AnyReader, tensor_core::Verify, weights};

use crate::{
    extract::{As, tensor_bytes},
    failure::About,
    options::Input,
    outcome::Outcome,
    output,
};

/// Write a file inside a container, or a tensor, to standard output
///
/// Files are called as `inspect` shows them. A tensor is written as its elements alone, little-endian and
/// row-major, unless --to says otherwise. Checksums and digests are compared; a file is written as it is
/// read, so that of a damaged one the start may be written before that is found. A terminal gets text only.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate cat model.ptl extra/model/live.spec.json
  modelcrate cat model.carton carton.toml | head
  modelcrate cat model.zt --tensor bias --to npy > bias.npy")]
pub(crate) struct Cat {
    /// The file to read; - is standard input
    input: Input,
    /// The name of a file inside
    #[arg(required_unless_present = "tensor", conflicts_with = "tensor")]
    entry: Option<String>,
    /// The name of a tensor
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// How the tensor is written: raw, unless it is to be npy
    #[arg(long, value_enum, value_name = "FORMAT", requires = "tensor")]
    to: Option<As>,
}

impl Cat {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = output::open(&self.input, AnyReader::options().verify(Verify::Once));
        let reader = reader.about(&self.input)?;
        match (&self.tensor, &self.entry) {
            (Some(name), _) => print(&self.tensor(&reader, name).about(&self.input)?)?,
            (None, Some(name)) => self.file(&reader, name)?,
            (None, None) => {}
        }
        Ok(Outcome::Fine)
    }

    fn tensor(&self, reader: &AnyReader, name: &str) -> anyhow::Result<Bytes> {
        let set = reader.tensor_set()?;
        let tensor = set.tensor(name).ok_or_else(|| anyhow!("has no tensor {name:?}"))?;
        tensor_bytes(tensor, self.to.unwrap_or(As::Raw))
    }

    fn file(&self, reader: &AnyReader, name: &str) -> anyhow::Result<()> {
        let file = Self::find(reader, name).about(&self.input)?;
        if io::stdout().is_terminal() {
            let mut content = Vec::new();
            file.copy_to(&mut content).about(&self.input)?;
            return print(&content);
        }
        let mut out = io::stdout().lock();
        match file.copy_to(&mut out) {
            Err(modelcrate::Error::Weights(weights::Error::Write(error))) => Err(error),
            copied => copied.about(&self.input).map(|_| out.flush())?,
        }
        .about(STDOUT.as_ref())
    }

    fn find<'r>(reader: &'r AnyReader, name: &str) -> anyhow::Result<AnyFile<'r>> {
        let title = reader.format().title();
        let has_files = !reader.files()?.is_empty();
        ensure!(has_files, "is {title} without files inside: --tensor NAME takes a tensor");
        let file = reader.file(name)?;
        let file =
            file.ok_or_else(|| anyhow!("has no file {name:?} inside (inspect lists them)"))?;
        ensure!(!file.is_elsewhere(), "has only a link to {name:?}");
        Ok(file)
    }
}

/// Writes to standard output what a terminal can take.
fn print(content: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let is_text = || {
        let text = std::str::from_utf8(content).ok();
        text.is_some_and(|text| {
            !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
        })
    };
    let can_take = !out.is_terminal() || is_text();
    ensure!(can_take, "is not text, which a terminal cannot take: write it to a file with >");
    out.write_all(content).and_then(|()| out.flush()).about(STDOUT.as_ref())
}

/// What errors of writing are about.
const STDOUT: &str = "-";
