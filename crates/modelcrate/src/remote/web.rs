//! Web servers and model hubs, by `reqwest`.

use std::{
    collections::HashMap,
    net::SocketAddr,
    ops::Range,
    sync::{Arc, Mutex, Once, PoisonError},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use reqwest::{
    Client, ClientBuilder, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{
        AUTHORIZATION, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue,
        IF_MATCH, LAST_MODIFIED, LOCATION, RANGE,
    },
    redirect::Policy,
};
use tensor_core::{Chain, text::Quoted};
use url::{Host, Url};

use super::{
    Error, RemoteOptions, Result,
    answer::{Answer, Body, Pace, Pin, Version, clipped},
    error::foreign,
    location::{is_loopback, shown},
    stats::Counters,
};
use crate::hosts::{self, Rule};

/// What asks web servers.
#[derive(Clone, Debug)]
pub(super) struct Web {
    clients: Arc<Clients>,
    /// What the servers are shown that it is told to ask.
    token: Option<HeaderValue>,
    options: Arc<RemoteOptions>,
}

/// Clients by where they may connect to.
#[derive(Debug, Default)]
struct Clients(Mutex<HashMap<Gate, Client>>);

/// Where may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Gate {
    /// Wherever the user said.
    Open,
    /// Where an answer of a host leads that is not public itself.
    Store,
    /// Where any other answer leads.
    Public,
}

impl Gate {
    const fn rule(self) -> Option<Rule> {
        match self {
            Self::Open => None,
            Self::Store => Some(hosts::is_store),
            Self::Public => Some(hosts::is_public),
        }
    }
}

impl Web {
    /// Stands for clients that show this token to the servers that they are told to ask.
    pub(super) fn new(options: &Arc<RemoteOptions>, token: Option<&str>) -> Result<Self> {
        let wrong =
            |_| Error::Setting { what: SETTING, reason: "the token has odd characters".into() };
        let token = token.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let mut token = token.transpose().map_err(wrong)?;
        token.iter_mut().for_each(|token| token.set_sensitive(true));
        Ok(Self { clients: Arc::default(), token, options: Arc::clone(options) })
    }

    fn client(&self, gate: Gate) -> Result<Client> {
        let mut clients = self.clients.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&gate) {
            return Ok(client.clone());
        }
        let mut builder = builder(&self.options, self.options.timeout);
        // A proxy resolves names itself.
        if let Some(rule) = gate.rule().filter(|_| !self.options.env_proxy) {
            builder = builder.dns_resolver(Arc::new(Gated(rule)));
        }
        let wrong = |error| Error::Setting { what: SETTING, reason: reason(&error) };
        let client = builder.build().map_err(wrong)?;
        clients.insert(gate, client.clone());
        Ok(client)
    }

    /// Refuses what anybody between could read and change.
    pub(super) fn check(&self, url: &Url) -> Result<()> {
        match url.scheme() {
            "http" if !self.options.allow_http && !is_loopback(url) => {
                Err(Error::Unsupported { what: INSECURE })
            }
            _ => Ok(()),
        }
    }

    /// Sends a request, and follows where answers lead.
    async fn send(&self, url: &Url, headers: HeaderMap, pace: &Pace) -> Result<Response> {
        let (mut at, mut gate) = (url.clone(), Gate::Open);
        for _ in 0..=REDIRECTS {
            let mut request = self.client(gate)?.get(at.clone()).headers(headers.clone());
            // A token goes to no other host.
            if let Some(token) = self.token.as_ref().filter(|_| at.origin() == url.origin()) {
                request = request.header(AUTHORIZATION, token);
            }
            let response = pace.next(request.send()).await?.map_err(|error| self.error(&error))?;
            let is_redirect = matches!(response.status().as_u16(), 301..=303 | 307 | 308);
            let next = response.headers().get(LOCATION).filter(|_| is_redirect);
            let Some(next) = next else { return Ok(response) };
            let next = next.to_str().ok().and_then(|next| at.join(next).ok());
            let next = next.ok_or_else(|| redirect("leads to no address"))?;
            if next.origin() != at.origin() {
                let is_private = |address: SocketAddr| !hosts::is_public(address.ip());
                gate = match response.remote_addr().is_some_and(is_private) {
                    true if gate != Gate::Public => Gate::Store,
                    _ => Gate::Public,
                };
                self.check_redirect(&at, &next, gate)?;
            }
            at = next;
        }
        Err(redirect(format!("leads to another more than {REDIRECTS} times")))
    }

    /// Refuses a redirect to where a stranger must not send us.
    fn check_redirect(&self, from: &Url, to: &Url, gate: Gate) -> Result<()> {
        let wrong = |reason: &str| redirect(format!("leads to {:?}: {reason}", shown(to)));
        match to.scheme() {
            "https" => {}
            "http" if from.scheme() == "http" => {
                self.check(to).map_err(|error| wrong(&error.to_string()))?;
            }
            scheme => return Err(wrong(&format!("scheme is {scheme:?}, expected \"https\""))),
        }
        if !to.username().is_empty() || to.password().is_some() {
            return Err(wrong("has a user or a password"));
        }
        let address = match to.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            _ => None,
        };
        let rule = gate.rule().filter(|_| !self.options.env_proxy);
        match address.zip(rule) {
            Some((address, rule)) if !rule(address) => Err(wrong("is not public")),
            _ => Ok(()),
        }
    }

    /// Returns a part of a file, of the pinned version where there is one; the whole file where the
    /// server sends that instead of its start.
    pub(super) async fn get(
        &self,
        url: &Url,
        range: Range<u64>,
        pin: Option<&Pin>,
        counters: &Counters,
    ) -> Result<Answer> {
        let last = range.end.saturating_sub(1);
        let mut wanted = HeaderMap::new();
        let mut want = |name: HeaderName, value: String| {
            // Of a tag that no header can have, the answer is compared alone.
            wanted.extend(HeaderValue::try_from(value).ok().map(|value| (name, value)));
        };
        want(RANGE, format!("bytes={}-{last}", range.start));
        if let Some(etag) = pin.and_then(|pin| pin.version.strong_etag()) {
            want(IF_MATCH, etag.to_owned());
        }
        counters.request();
        let pace = Pace::new(self.options.timeout);
        let response = self.send(url, wanted, &pace).await?;
        let headers = response.headers();
        if let Some(found) = text(headers, &CONTENT_ENCODING).filter(|found| *found != "identity") {
            return Err(Error::Encoded { found: foreign(found) });
        }
        let version = Version {
            etag: text(headers, &ETAG).map(str::to_owned),
            modified: text(headers, &LAST_MODIFIED).and_then(date),
        };
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let (found, len) = content_range(headers)?;
                if let Some(pin) = pin {
                    pin.check(&version, len)?;
                }
                let expected = clipped(&range, len);
                if found != expected {
                    let [found, expected] = [found, expected].map(|range| format!("{range:?}"));
                    return Err(Error::Range { found, expected });
                }
                let bytes = expected.end.saturating_sub(expected.start);
                let bytes = self.body(response, bytes, counters, pace).await?;
                Ok(Answer { bytes, len, version })
            }
            StatusCode::OK if pin.is_none() => {
                let limit = self.options.kept();
                let bytes = self.whole(response, limit, counters, pace).await?;
                let bytes = bytes.ok_or(Error::NoRanges { limit })?;
                Ok(Answer { len: bytes.len() as u64, bytes, version })
            }
            // It had ranges before.
            StatusCode::OK => Err(Error::Changed),
            StatusCode::RANGE_NOT_SATISFIABLE
                if pin.is_none() && text(headers, &CONTENT_RANGE) == Some("bytes */0") =>
            {
                Ok(Answer { bytes: Bytes::new(), len: 0, version })
            }
            StatusCode::RANGE_NOT_SATISFIABLE if pin.is_some() => Err(Error::Changed),
            status => Err(refused(status)),
        }
    }

    /// Returns a document, such as a list of files, and where its next page is.
    pub(super) async fn document(
        &self,
        url: &Url,
        counters: &Counters,
    ) -> Result<(Bytes, Option<Url>)> {
        counters.request();
        let pace = Pace::new(self.options.timeout);
        let response = self.send(url, HeaderMap::new(), &pace).await?;
        if response.status() != StatusCode::OK {
            return Err(refused(response.status()));
        }
        let next = text(response.headers(), &reqwest::header::LINK).and_then(next_page);
        let next = next.and_then(|next| url.join(next).ok());
        // A page of another host would get the token.
        let next = next.filter(|next| next.origin() == url.origin());
        let limit = self.options.limits.document_bytes;
        let document = self.whole(response, limit, counters, pace).await?;
        Ok((document.ok_or_else(|| Error::too_long(limit))?, next))
    }

    async fn body(
        &self,
        mut response: Response,
        len: u64,
        counters: &Counters,
        mut pace: Pace,
    ) -> Result<Bytes> {
        if let Some(found) = response.content_length().filter(|found| *found != len) {
            return Err(Error::Length { found, expected: len });
        }
        let mut body = Body::new(len, counters);
        loop {
            match pace.next(response.chunk()).await? {
                Ok(Some(piece)) => {
                    pace.add(piece.len());
                    body.add(&piece)?;
                }
                Ok(None) => return body.finish(),
                Err(error) if error.is_timeout() => return Err(self.error(&error)),
                // It broke off.
                Err(_) => return body.finish(),
            }
        }
    }

    /// Reads a whole body; `None` where it is over a limit.
    async fn whole(
        &self,
        mut response: Response,
        limit: u64,
        counters: &Counters,
        mut pace: Pace,
    ) -> Result<Option<Bytes>> {
        if let Some(len) = response.content_length() {
            if len > limit {
                return Ok(None);
            }
            return self.body(response, len, counters, pace).await.map(Some);
        }
        let mut bytes = Vec::new();
        let failed = |error| self.error(&error);
        while let Some(piece) = pace.next(response.chunk()).await?.map_err(failed)? {
            pace.add(piece.len());
            counters.bytes(piece.len());
            if (bytes.len() as u64).saturating_add(piece.len() as u64) > limit {
                return Ok(None);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Some(bytes.into()))
    }

    fn error(&self, error: &reqwest::Error) -> Error {
        if error.is_timeout() {
            return Error::Timeout { seconds: self.options.timeout.as_secs() };
        }
        Error::Connection { reason: reason(error) }
    }
}

/// Starts a client of any server, which follows no redirects.
pub(super) fn builder(options: &RemoteOptions, connect: Duration) -> ClientBuilder {
    install_tls();
    let builder = Client::builder()
        .user_agent(AGENT)
        .connect_timeout(connect)
        .read_timeout(options.timeout)
        .referer(false)
        .redirect(Policy::none());
    if options.env_proxy { builder } else { builder.no_proxy() }
}

/// Resolves names to addresses that a rule allows: what is connected to is what was checked.
struct Gated(Rule);

impl Resolve for Gated {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.0;
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<_> = found.iter().copied().filter(|at| rule(at.ip())).collect();
            match found.first() {
                Some(first) if allowed.is_empty() => {
                    Err(format!("redirect leads to {}, which is not public", first.ip()).into())
                }
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

fn redirect(reason: impl Into<String>) -> Error {
    Error::Redirect { reason: reason.into() }
}

/// Returns the last cause of an error, which has no URL.
fn reason(error: &reqwest::Error) -> String {
    foreign(&Chain(error).errors().last().unwrap_or(error).to_string())
}

fn refused(status: StatusCode) -> Error {
    match status.as_u16() {
        404 | 410 => Error::NotFound { hint: "" },
        401 | 403 => Error::Denied {
            status: status.as_u16(),
            hint: "only a hub is shown a token: that of HF_TOKEN or its usual file",
        },
        412 => Error::Changed,
        found => Error::Status { found, code: String::new() },
    }
}

/// Reads `bytes 0-99/1000`.
fn content_range(headers: &HeaderMap) -> Result<(Range<u64>, u64)> {
    let found = text(headers, &CONTENT_RANGE).unwrap_or_default();
    let parse = || {
        let (range, len) = found.strip_prefix("bytes ")?.split_once('/')?;
        let (start, last) = range.split_once('-')?;
        let (start, last, len): (u64, u64, u64) =
            (start.parse().ok()?, last.parse().ok()?, len.parse().ok()?);
        (start <= last && last < len).then_some((start..last.checked_add(1)?, len))
    };
    parse().ok_or_else(|| Error::Range {
        found: Quoted(found).to_string(),
        expected: "a range of a file of known length".to_owned(),
    })
}

/// Reads the address of the next page out of `<address>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    let mut links = link.split(',');
    let next = links.find(|link| link.contains("rel=\"next\""))?;
    next.trim().strip_prefix('<')?.split_once('>').map(|(address, _)| address)
}

/// Reads the date of a header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Says which cryptography TLS uses, where the program has not said so yet.
pub(super) fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where there is one already, it stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

pub(super) const AGENT: &str = concat!("modelcrate/", env!("CARGO_PKG_VERSION"));

pub(super) const INSECURE: &str =
    "scheme is \"http\", expected \"https\": only this machine is asked without encryption";

const SETTING: &str = "client of web servers";

/// How many redirects are followed.
const REDIRECTS: usize = 5;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn range(text: &'static str) -> Result<(Range<u64>, u64)> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_RANGE, HeaderValue::from_static(text));
        content_range(&headers)
    }

    #[test]
    fn ranges_of_answers() {
        assert_eq!(range("bytes 2-9/10").unwrap(), (2..10, 10));
        for text in ["", "bytes 2-9/*", "bytes 9-2/10", "bytes 0-10/10", "items 0-1/2", "bytes */9"]
        {
            let error = range(text).unwrap_err().to_string();
            let expected = "expected a range of a file of known length";
            assert_eq!(error, format!("answer is of {text:?}, {expected}"));
        }
        let largest = "bytes 0-18446744073709551614/18446744073709551615";
        assert_eq!(range(largest).unwrap().1, u64::MAX);
    }

    #[test]
    fn names_lead_where_they_may() {
        let resolve = |rule| {
            let found = super::super::runtime::wait(async move {
                Ok(Gated(rule)
                    .resolve("localhost".parse().unwrap())
                    .await
                    .map_err(|error| error.to_string()))
            });
            found
                .unwrap()
                .map(|addresses| addresses.map(|address| address.ip()).collect::<Vec<_>>())
        };
        let refused = resolve(hosts::is_public).unwrap_err();
        assert!(refused.ends_with(", which is not public"), "{refused}");
        assert!(resolve(hosts::is_store).unwrap().iter().all(IpAddr::is_loopback));
    }

    #[test]
    fn redirects_from_public_hosts() {
        let web = Web::new(&Arc::default(), None).unwrap();
        let url = |text: &str| Url::parse(text).unwrap();
        let from = url("https://h.example/x");
        for (to, gate, reason) in [
            ("https://other.example/x", Gate::Public, None),
            ("https://8.8.8.8/x", Gate::Public, None),
            ("https://10.0.0.1/x", Gate::Store, None),
            ("https://10.0.0.1/x", Gate::Public, Some("is not public")),
            ("https://127.0.0.1/x", Gate::Public, Some("is not public")),
            ("https://2130706433/x", Gate::Public, Some("is not public")),
            ("https://0x7f.1/x", Gate::Public, Some("is not public")),
            ("https://[::ffff:10.0.0.1]/x", Gate::Public, Some("is not public")),
            ("https://169.254.169.254/x", Gate::Store, Some("is not public")),
            ("https://u:p@h.example:1/x", Gate::Public, Some("has a user or a password")),
            ("http://h.example/x", Gate::Public, Some("scheme is \"http\", expected \"https\"")),
            ("http://127.0.0.1/x", Gate::Store, Some("scheme is \"http\", expected \"https\"")),
        ] {
            let found = web.check_redirect(&from, &url(to), gate).err().map(|e| e.to_string());
            let found = found.as_deref().and_then(|found| found.split_once("\": "));
            assert_eq!(found.map(|(_, reason)| reason), reason, "{to}");
        }
    }

    #[test]
    fn dates_and_pages() {
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(expected));
        assert_eq!(date("yesterday"), None);
        let link = "<https://h/a?cursor=1>; rel=\"prev\", <https://h/a?cursor=3>; rel=\"next\"";
        assert_eq!(next_page(link), Some("https://h/a?cursor=3"));
        assert_eq!(next_page(""), None);
    }
}
