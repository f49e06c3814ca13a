use std::{path::PathBuf, sync::Arc};

use modelcrate::{
    carton_format::fetch::FetchError,
    http::{Cache, Hosts, HttpFetcher, HttpOptions, Network, Proxy, Schemes},
};

use crate::{options::Size, progress::Progress};

/// What may be asked, and how much.
#[derive(Debug, clap::Args)]
pub(super) struct Http {
    /// Keep what is fetched in this folder; by default where Carton itself does: `CARTON_CACHE_DIR`,
    /// or what its configuration says, or ~/.carton/cache
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Take files from the cache alone
    #[arg(long)]
    pub(super) offline: bool,
    /// Fetch by http too, whose answers anybody on the way can read
    #[arg(long)]
    allow_http: bool,
    /// Connect to private hosts, as a store inside a company needs; never to link-local addresses
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

impl Http {
    /// Makes what fetches linked files; a bar shows how far one has come.
    pub(super) fn fetcher(&self, bar: Option<Arc<Progress>>) -> anyhow::Result<HttpFetcher> {
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
        if let Some(bar) = bar {
            options = options.progress(move |progress| bar.set(progress.received, progress.total));
        }
        Ok(HttpFetcher::with_options(self.cache()?, options)?)
    }

    fn cache(&self) -> Result<Cache, FetchError> {
        match &self.cache {
            Some(folder) => Ok(Cache::new(folder)),
            None => Cache::open_default(),
        }
    }
}
