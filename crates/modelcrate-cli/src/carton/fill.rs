use std::{cell::RefCell, sync::Arc};

use indicatif::ProgressBar;
use modelcrate::carton_format::{self, Error, Place, Reader};
use serde::Serialize;

use super::{
    http::Http,
    rewrite::{Done, Rewrite},
    store::Store,
};
use crate::{escape::escape, failure::About, outcome::Outcome, output};

/// Fetch the files that a carton only links to, and hold them
///
/// Only https is spoken, and only with hosts that have public addresses, unless options say
/// otherwise: the URLs come from whoever made the carton. Digests are compared, and the model hash
/// stays as it is. A dry run asks nobody: it says what would be fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton fill small.carton -o model.carton
  modelcrate carton fill small.carton -o model.carton --cache /var/cache/carton --offline")]
pub(crate) struct Fill {
    #[command(flatten)]
    http: Http,
    #[command(flatten)]
    store: Store,
    #[command(flatten)]
    rewrite: Rewrite,
}

#[derive(Serialize)]
struct Changes {
    fetched: Vec<String>,
}

impl Fill {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let options = self.store.options()?;
        if self.rewrite.write.dry_run {
            return self.dry_run();
        }
        let template = "{prefix} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {msg}";
        let bar = output::progress_like(self.rewrite.write.print, template);
        let fetcher = self.http.fetcher(&bar)?;
        let reader = self.rewrite.open(Reader::options().fetch(Arc::new(fetcher)))?;
        let missing = reader.files().filter(|file| file.place() == Place::Linked).count();
        let fetched = RefCell::new(Vec::new());
        let begin = |path: &str| {
            let mut fetched = fetched.borrow_mut();
            fetched.push(path.to_owned());
            bar.set_prefix(format!("{}/{missing}", fetched.len()));
            bar.set_message(escape(path).into_owned());
            bar.unset_length();
            bar.set_position(0);
        };
        let outcome = self.rewrite.run(&reader, options, |writer| {
            let finished = carton_format::fill(&reader, writer, begin)?;
            bar.finish_and_clear();
            Ok((finished, done(fetched.take())))
        });
        bar.finish_and_clear();
        outcome
    }

    /// Says what would be fetched.
    fn dry_run(&self) -> anyhow::Result<Outcome> {
        self.http.fetcher(&ProgressBar::hidden())?;
        let reader = self.rewrite.open(Reader::options())?;
        self.rewrite.check()?;
        let mut fetched = Vec::new();
        for file in reader.files() {
            let path = file.path().to_owned();
            match file.place() {
                Place::Here => {}
                Place::Linked => fetched.push(path),
                Place::Missing => {
                    return Err(Error::MissingFile { path }).about(&self.rewrite.input);
                }
            }
        }
        self.rewrite.nothing(&reader, done(fetched), true)
    }
}

fn done(fetched: Vec<String>) -> Done<Changes> {
    let lines = fetched.iter().map(|path| format!("fetched {path}")).collect();
    let what = match fetched.len() {
        1 => "filled by 1 file".to_owned(),
        files => format!("filled by {files} files"),
    };
    Done { what, changes: Changes { fetched }, lines }
}
