//! Fetches linked files over HTTPS into a cache. Format text: "LINKS".
//!
//! The URLs of a carton come from whoever made it, so they are strangers: only https, only hosts
//! with public addresses and no proxy, unless [`HttpOptions`] say otherwise; redirects are checked
//! like the first URL. Nothing is handed out before its digest was compared, after decoding.
//!
//! # Data path
//!
//! ```text
//! 1. HttpFetcher::fetch  asks the cache, then each URL in turn     mod.rs
//! 2. Url, Gate           refuse what must not be asked for         url.rs, address.rs
//! 3. Download            redirects, ranges, limits; the body ...   download.rs
//! 4. Part                ... as it comes, to be completed later    partial.rs
//! 5. Coding              undoes zstd, gzip, br or deflate          coding.rs
//! 6. Cache               compares digests and keeps the content    cache.rs
//! ```

use carton_format::fetch::{Fetch, FetchError, Fetched, Link, UrlError};
use ureq::Agent;

mod address;
mod cache;
mod coding;
mod download;
mod options;
mod partial;
mod url;

pub use cache::Cache;
pub use options::{Hosts, HttpOptions, Network, Progress, Proxy, Schemes};

use self::download::{Download, Failure};
use crate::hosts::Rule;

/// Fetches linked files into a cache, one URL after the other until one gives the content.
///
/// A body that stops is taken up where it stopped, if the server allows, at once and by a later
/// process. Two threads or processes that want the same content fetch it once. Memory does not grow
/// with the content.
///
/// # Examples
///
/// ```no_run
/// use modelcrate::{
///     carton_format::{
///         Sha256,
///         fetch::{Fetch, FetchError, Link},
///     },
///     http::{Cache, HttpFetcher},
/// };
///
/// let urls = ["https://example.com/weights.bin".to_owned()];
/// let fetcher = HttpFetcher::new(Cache::open_default()?)?;
/// let fetched = fetcher.fetch(&Link::new(Sha256([0xab; 32]), &urls))?;
/// println!("{} bytes", fetched.source().len());
/// # Ok::<(), FetchError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HttpFetcher {
    cache: Cache,
    options: HttpOptions,
    rule: Rule,
    agent: Agent,
}

impl HttpFetcher {
    /// Fetches into a cache with the defaults of [`HttpOptions`].
    ///
    /// # Errors
    ///
    /// As for [`with_options`](Self::with_options).
    pub fn new(cache: Cache) -> Result<Self, FetchError> {
        Self::with_options(cache, HttpOptions::default())
    }

    /// Fetches into a cache.
    ///
    /// # Errors
    ///
    /// [`FetchError::Setting`] where the certificate authorities are none.
    pub fn with_options(cache: Cache, options: HttpOptions) -> Result<Self, FetchError> {
        let rule = options.rule();
        Self::with_rule(cache, options, rule)
    }

    fn with_rule(cache: Cache, options: HttpOptions, rule: Rule) -> Result<Self, FetchError> {
        let agent = options.agent(rule)?;
        Ok(Self { cache, options, rule, agent })
    }

    /// Returns content that is in the cache, which has to be as short as what is fetched.
    fn cached(&self, link: &Link<'_>) -> Result<Option<Fetched>, FetchError> {
        let Some(source) = self.cache.get(link.sha256)? else { return Ok(None) };
        let (found, limit) = (source.len(), link.len.unwrap_or(self.options.max_bytes));
        if found > limit {
            return Err(FetchError::TooLarge { sha256: link.sha256, found, limit });
        }
        Ok(Some(Fetched::checked(source)))
    }
}

impl Fetch for HttpFetcher {
    /// Returns the content from the cache, or fetches it; blocks until it is there.
    ///
    /// # Errors
    ///
    /// [`FetchError::NoneWorks`] with what is wrong with each URL; [`FetchError::NoUrl`];
    /// [`FetchError::Offline`]; [`FetchError::TooLarge`]; [`FetchError::Cache`] and [`FetchError::Core`] where the cache
    /// cannot be read or written.
    fn fetch(&self, link: &Link<'_>) -> Result<Fetched, FetchError> {
        let sha256 = link.sha256;
        if let Some(cached) = self.cached(link)? {
            return Ok(cached);
        }
        if self.options.network == Network::Offline {
            return Err(FetchError::Offline { sha256 });
        }
        if link.urls.is_empty() {
            return Err(FetchError::NoUrl { sha256 });
        }
        let mut part = self.cache.part(sha256)?;
        // Whoever had the lock before may have fetched it.
        if let Some(cached) = self.cached(link)? {
            return Ok(cached);
        }
        self.cache.evict(sha256)?;
        let mut failures = Vec::new();
        for url in link.urls.iter().take(URLS) {
            let download = Download::new(self, link, url).map_err(Failure::from);
            match download.and_then(|download| download.content(&mut part)) {
                Ok(source) => return Ok(Fetched::checked(source)),
                Err(Failure::Local(error)) => return Err(error),
                Err(Failure::Url(fault)) => {
                    failures.push(UrlError::new(url, fault));
                }
            }
        }
        let untried = link.urls.len().saturating_sub(URLS);
        Err(FetchError::NoneWorks { sha256, failures, untried })
    }
}

/// How many URLs of a link are tried.
const URLS: usize = 16;

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{IpAddr, Ipv4Addr, TcpListener},
        thread,
        time::Duration,
    };

    use super::*;
    use carton_format::{Sha256, fetch::UrlFault};

    /// Answers one request with a redirect.
    fn redirect_to(location: &'static str) -> (String, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(b"Content-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        });
        (url, server)
    }

    #[test]
    fn redirect_to_a_private_host() {
        for location in ["http://127.0.0.2:1/", "http://[::1]:1/", "//169.254.169.254/latest"] {
            let (url, server) = redirect_to(location);
            let folder = tempfile::tempdir().unwrap();
            let rule = |address| address == IpAddr::V4(Ipv4Addr::LOCALHOST);
            let options = HttpOptions::default().schemes(Schemes::HttpsAndHttp);
            let fetcher = HttpFetcher::with_rule(Cache::new(folder.path()), options, rule);
            let urls = [url];
            let error = fetcher.unwrap().fetch(&Link::new(Sha256([0; 32]), &urls)).unwrap_err();
            server.join().unwrap();
            let FetchError::NoneWorks { mut failures, .. } = error else { panic!("{error}") };
            let UrlFault::Redirected { fault, .. } = failures.remove(0).fault else { panic!() };
            assert!(matches!(*fault, UrlFault::Address { .. }), "{fault}");
        }
    }
}
