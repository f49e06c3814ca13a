use std::path::Path;

use modelcrate::carton_format::{self, Linked, Place, Reader, UnpackOptions};

use super::about_culprit;
#[cfg(feature = "http")]
use super::http::Http;
use crate::{options::manner, progress::Progress, unpack};

/// How a carton is unpacked.
#[derive(Debug, clap::Args)]
#[group(id = "unpacked_carton")]
pub(crate) struct Unpack {
    /// Fetch what is only linked
    #[cfg(feature = "http")]
    #[arg(long)]
    fetch: bool,
    #[cfg(feature = "http")]
    #[command(flatten)]
    http: Http,
}

impl Unpack {
    pub(crate) fn run(
        &self,
        input: &Path,
        reader: &Reader,
        folder: &Path,
        command: &unpack::Unpack,
    ) -> anyhow::Result<unpack::Unpacked> {
        let reader = &self.reader(input, reader, command.dry_run)?;
        let is_left_out = |place| place == Place::Linked && !self.fetches();
        let (left_out, put): (Vec<_>, Vec<_>) =
            reader.files().partition(|file| is_left_out(file.place()));
        let bytes = put.iter().filter_map(|file| file.len().ok()).fold(0, u64::saturating_add);
        let linked = if self.fetches() { Linked::Fetch } else { Linked::LeaveOut };
        let mut options = UnpackOptions::default().linked(linked).threads(manner().threads());
        if command.dry_run {
            options = options.dry_run();
        }
        let bar = Progress::new(input, bytes);
        let done = carton_format::unpack(reader, folder, &options, |bytes| bar.inc(bytes));
        bar.finish();
        done.or_else(|error| about_culprit(error, input))?;
        Ok(unpack::Unpacked {
            files: put.len(),
            bytes,
            model_hash: Some(reader.model_hash().to_string()),
            left_out: left_out.iter().map(|file| file.path().to_owned()).collect(),
            ..unpack::Unpacked::default()
        })
    }

    /// Returns a reader that fetches, where that was asked for.
    #[cfg(feature = "http")]
    fn reader(&self, input: &Path, reader: &Reader, dry_run: bool) -> anyhow::Result<Reader> {
        use crate::failure::About;
        if !self.fetch || dry_run {
            return Ok(reader.clone());
        }
        let fetcher = self.http.fetcher(None)?;
        let options = Reader::options().fetch(std::sync::Arc::new(fetcher));
        match reader.source() {
            Some(source) => options.from_source(source.clone()).about(input),
            None => options.open(input).about(input),
        }
    }

    #[cfg(not(feature = "http"))]
    fn reader(&self, _: &Path, reader: &Reader, _: bool) -> anyhow::Result<Reader> {
        Ok(reader.clone())
    }

    /// Tells whether what is only linked is to be fetched.
    const fn fetches(&self) -> bool {
        #[cfg(feature = "http")]
        return self.fetch;
        #[cfg(not(feature = "http"))]
        false
    }
}
