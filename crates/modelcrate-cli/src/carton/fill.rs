use std::{cell::RefCell, path::PathBuf, sync::Arc};

use indicatif::ProgressBar;
use modelcrate::carton_format::{
    self, Error, Place, Reader,
    fetch::FetchError,
    http::{Cache, Hosts, HttpFetcher, HttpOptions, Network, Proxy, Schemes},
};
use serde::Serialize;

use super::{
    rewrite::{Done, Rewrite},
    write::Store,
};
use crate::{Outcome, args::Size, escape::escape, failure::About, output};

/// Fetch the files that a carton only links to, and hold them
///
/// Only https is spoken, and only with hosts that have public addresses, unless options say
/// otherwise: the URLs come from whoever made the carton. Digests are compared, and the model hash
/// stays as it is. A dry run asks nobody: it says what would be fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton fill small.carton model.carton
  modelcrate carton fill small.carton model.carton --cache /var/cache/carton --offline")]
pub(crate) struct Fill {
    #[command(flatten)]
    http: Http,
    #[command(flatten)]
    store: Store,
    #[command(flatten)]
    rewrite: Rewrite,
}

/// What may be asked, and how much.
#[derive(Debug, clap::Args)]
struct Http {
    /// Keep what is fetched in this folder; by default where Carton itself does: `CARTON_CACHE_DIR`,
    /// or what its configuration says, or ~/.carton/cache
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Take files from the cache alone
    #[arg(long)]
    offline: bool,
    /// Fetch by http too, whose answers anybody on the way can read
    #[arg(long)]
    allow_http: bool,
    /// Connect to any host, as a store inside a company needs
    #[arg(long)]
    allow_private_hosts: bool,
    /// Use the proxy that the environment names
    #[arg(long)]
    use_env_proxy: bool,
    /// Trust the certificate authorities of this file, in PEM, and no others
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Refuse files with more bytes; KiB, MiB or GiB may stand behind the number
    #[arg(long, value_name = "BYTES", default_value = "16GiB")]
    max_bytes: Size,
}

#[derive(Serialize)]
struct Changes {
    fetched: Vec<String>,
}

impl Fill {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let options = self.store.options()?;
        if self.rewrite.write.dry_run {
            return self.rehearse();
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
    fn rehearse(&self) -> anyhow::Result<Outcome> {
        let reader = self.rewrite.open(Reader::options())?;
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
        self.rewrite.rehearse(&reader, done(fetched))
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

impl Http {
    fn fetcher(&self, bar: &ProgressBar) -> anyhow::Result<HttpFetcher> {
        let mut options = HttpOptions::default().max_bytes(self.max_bytes.0);
        if self.offline {
            options = options.network(Network::Offline);
        }
        if self.allow_http {
            options = options.schemes(Schemes::HttpsAndHttp);
        }
        if self.allow_private_hosts {
            options = options.hosts(Hosts::Any);
        }
        if self.use_env_proxy {
            options = options.proxy(Proxy::Environment);
        }
        if let Some(path) = &self.ca_file {
            options = options.authorities(super::read(path)?);
        }
        let bar = bar.clone();
        let options = options.progress(move |progress| {
            if let Some(total) = progress.total {
                bar.set_length(total);
            }
            bar.set_position(progress.received);
        });
        Ok(HttpFetcher::with_options(self.cache()?, options)?)
    }

    fn cache(&self) -> Result<Cache, FetchError> {
        match &self.cache {
            Some(folder) => Ok(Cache::new(folder)),
            None => Cache::open_default(),
        }
    }
}
