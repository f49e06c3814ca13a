use std::{cell::RefCell, path::Path, sync::Arc};

use modelcrate::carton_format::{self, Error, Place, Reader};
use serde::Serialize;

use super::{
    http::Http,
    rewrite::{Done, Rewrite},
    store::Store,
};
use crate::{failure::About, outcome::Outcome, output, progress::Progress};

/// Fetch the files that a carton only links to, and hold them
///
/// Only https is spoken, and only with hosts that have public addresses, unless options say
/// otherwise: the URLs come from whoever made the carton. Digests are compared, and the model hash
/// stays as it is. A dry run asks nobody: it says what would be fetched and, with
/// --offline, what the cache does not have.
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
        if self.rewrite.editing.write.dry_run {
            return self.dry_run();
        }
        let bar = Arc::new(Progress::of_files(0, 0));
        let fetcher = self.http.fetcher(Some(Arc::clone(&bar)))?;
        let reader = self.rewrite.open(Reader::options().fetch(Arc::new(fetcher)))?;
        if self.rewrite.is_in_place() && reader.files().all(|file| file.place() == Place::Here) {
            bar.finish();
            return self.rewrite.nothing(&reader, self.nothing(), false);
        }
        bar.expect(reader.files().filter(|file| file.place() == Place::Linked).count());
        let fetched = RefCell::new(Vec::new());
        let begin = |path: &str| {
            fetched.borrow_mut().push(path.to_owned());
            bar.begin(Path::new(path));
            bar.set(0, None);
        };
        let outcome = self.rewrite.run(&reader, options, |writer| {
            let finished = carton_format::fill(&reader, writer, begin)?;
            bar.finish();
            Ok((finished, self.done(fetched.take())))
        });
        bar.finish();
        outcome
    }

    /// Says what would be fetched.
    fn dry_run(&self) -> anyhow::Result<Outcome> {
        let fetcher = self.http.fetcher(None)?;
        let reader = self.rewrite.open(Reader::options().fetch(Arc::new(fetcher)))?;
        self.rewrite.check()?;
        let mut fetched = Vec::new();
        for file in reader.files() {
            let path = file.path().to_owned();
            match file.place() {
                Place::Here => {}
                Place::Linked => {
                    if self.http.offline {
                        file.reader().about(&self.rewrite.input)?;
                    }
                    fetched.push(path);
                }
                Place::Missing => {
                    return Err(Error::MissingFile { path }).about(&self.rewrite.input);
                }
            }
        }
        match self.rewrite.is_in_place() && fetched.is_empty() {
            true => self.rewrite.nothing(&reader, self.nothing(), false),
            false => self.rewrite.nothing(&reader, self.done(fetched), true),
        }
    }

    /// Says that all files are here.
    fn nothing(&self) -> Done<Changes> {
        Done { what: "left as it is: nothing to fill".to_owned(), ..self.done(Vec::new()) }
    }

    fn done(&self, fetched: Vec<String>) -> Done<Changes> {
        let from = if self.http.offline { "taken from the cache:" } else { "fetched" };
        let lines = fetched.iter().map(|path| format!("{from} {path}")).collect();
        let what = format!("filled by {}", output::count(fetched.len(), "file"));
        Done { what, changes: Changes { fetched }, lines }
    }
}
