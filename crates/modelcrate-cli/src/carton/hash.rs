use modelcrate::{Format, carton_format::Reader};

use crate::{failure::of_other_format, hash::Files, outcome::Outcome};

/// Print the model hash of cartons, or compare it
///
/// The model hash is the SHA-256 of MANIFEST, which lists the digest of every file: it is the same
/// however a carton is compressed, whether its files are held or linked, and for a folder with the
/// files of one. Only MANIFEST is read; verify compares the files with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton hash *.carton > HASHES
  modelcrate carton hash --check HASHES")]
pub(crate) struct Hash {
    #[command(flatten)]
    files: Files,
}

impl Hash {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        self.files.run(|path| {
            let reader = super::open(path, Reader::options())
                .map_err(|error| of_other_format(error, &[Format::Carton]))?;
            Ok((reader.model_hash(), None))
        })
    }
}
