use modelcrate::carton_format::{self, Reader};
use serde::Serialize;

use super::{
    rewrite::{Done, Rewrite},
    store::Store,
};
use crate::{outcome::Outcome, progress::Progress};

/// Compress the files of a carton in another way
///
/// Every digest is compared. What is only linked stays linked, and the model hash stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton repack model.carton --compression stored
  modelcrate carton repack model.carton -o small.carton --compression zstd --level 19")]
pub(crate) struct Repack {
    #[command(flatten)]
    store: Store,
    #[command(flatten)]
    rewrite: Rewrite,
}

#[derive(Serialize)]
struct Changes {
    files: usize,
}

impl Repack {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let options = self.store.options()?;
        let reader = self.rewrite.open(Reader::options())?;
        let bytes = reader.files().filter_map(|file| file.len().ok()).fold(0, u64::saturating_add);
        let bar = Progress::new(&self.rewrite.input, bytes);
        let outcome = self.rewrite.run(&reader, options, |writer| {
            let finished = carton_format::repack(&reader, writer, |bytes| bar.inc(bytes))?;
            bar.finish();
            let changes = Changes { files: reader.manifest().len() };
            Ok((finished, Done { what: "repacked".to_owned(), changes, lines: Vec::new() }))
        });
        bar.finish();
        outcome
    }
}
