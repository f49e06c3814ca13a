use std::{fmt::Write as _, fs, io, num::NonZeroUsize, path::PathBuf, sync::Arc};

use anyhow::{bail, ensure};
use indicatif::ProgressBar;
use modelcrate::carton_format::{self, Linked, Place, Reader, UnpackOptions};
use serde::Serialize;

use super::about_culprit;
#[cfg(feature = "http")]
use super::http::Http;
use crate::{
    escape::escape,
    failure::About,
    options::{Input, Print},
    outcome::Outcome,
    output,
    paths::is_inside,
};

/// Unpack the files of a carton into a folder
///
/// The folder appears once everything is in it, and every digest is compared. It opens as the
/// carton does, and pack makes a carton of it again. What is only linked is left out, unless it is
/// to be fetched; then the same holds as for fill.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton unpack model.carton model/
  modelcrate carton unpack small.carton model/ --fetch --cache /var/cache/carton")]
pub(crate) struct Unpack {
    /// The carton, or a folder with the files of one; - is standard input
    input: Input,
    /// The folder to make, which must not be there, or be empty
    folder: PathBuf,
    /// Fetch what is only linked
    #[cfg(feature = "http")]
    #[arg(long)]
    fetch: bool,
    #[cfg(feature = "http")]
    #[command(flatten)]
    http: Http,
    /// How many threads decode, hash and write; as many as the system offers by default
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Check everything that is in the carton, and neither fetch nor write anything
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Unpacked {
    path: String,
    dry_run: bool,
    model_hash: String,
    /// Those that are in the folder.
    files: usize,
    /// Those that are only linked.
    left_out: Vec<String>,
}

impl Unpack {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        #[cfg_attr(not(feature = "http"), expect(unused_mut, reason = "nothing is fetched"))]
        let mut options = Reader::options();
        #[cfg(feature = "http")]
        if self.fetch && !self.dry_run {
            options = options.fetch(Arc::new(self.http.fetcher(&ProgressBar::hidden())?));
        }
        let reader = super::open(&self.input, options)?;
        self.check_folder().about(&self.folder)?;
        let bytes = reader.files().filter_map(|file| file.len().ok()).fold(0, u64::saturating_add);
        let bar = output::progress(self.print, bytes);
        let done = self.unpack(&reader, &bar);
        bar.finish_and_clear();
        done.or_else(|error| about_culprit(error, &self.input))?;
        let result = self.result(&reader);
        output::print_done(self.print, &self.folder, self.dry_run, &result, &result.text())?;
        Ok(Outcome::Fine)
    }

    /// Refuses a place where no folder can be made.
    fn check_folder(&self) -> anyhow::Result<()> {
        ensure!(!is_inside(&self.folder, &self.input), "is in the folder that is read");
        match fs::read_dir(&self.folder) {
            Ok(mut entries) => ensure!(entries.next().is_none(), "is not empty"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => bail!(error),
        }
        Ok(())
    }

    /// Tells whether what is only linked is to be fetched.
    const fn fetches(&self) -> bool {
        #[cfg(feature = "http")]
        return self.fetch;
        #[cfg(not(feature = "http"))]
        false
    }

    fn unpack(&self, reader: &Reader, bar: &ProgressBar) -> carton_format::Result<()> {
        let linked = if self.fetches() { Linked::Fetch } else { Linked::LeaveOut };
        let mut options = UnpackOptions::default().linked(linked);
        if let Some(threads) = self.threads {
            options = options.threads(threads);
        }
        if self.dry_run {
            options = options.dry_run();
        }
        carton_format::unpack(reader, &self.folder, &options, |bytes| bar.inc(bytes))
    }

    fn result(&self, reader: &Reader) -> Unpacked {
        let is_left_out = |place| place == Place::Linked && !self.fetches();
        let left_out = reader.files().filter(|file| is_left_out(file.place()));
        let left_out: Vec<String> = left_out.map(|file| file.path().to_owned()).collect();
        Unpacked {
            path: self.folder.display().to_string(),
            dry_run: self.dry_run,
            model_hash: reader.model_hash().to_string(),
            files: reader.manifest().len().saturating_sub(left_out.len()),
            left_out,
        }
    }
}

impl Unpacked {
    fn text(&self) -> String {
        let (path, would_be) = (escape(&self.path), if self.dry_run { "would be " } else { "" });
        let mut text = String::new();
        for left_out in &self.left_out {
            let _ = writeln!(text, "{path}: {would_be}left without {}", escape(left_out));
        }
        let files = if self.files == 1 { "file" } else { "files" };
        let _ = writeln!(text, "{path}: {would_be}unpacked, {} {files}", self.files);
        let _ = writeln!(text, "{path}: model hash {}", self.model_hash);
        text
    }
}
