//! Web servers and model hubs, by `reqwest`.

use std::{ops::Range, sync::Once, time::SystemTime};

use bytes::Bytes;
use reqwest::{
    Client, Response, StatusCode,
    header::{
        AUTHORIZATION, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue,
        IF_MATCH, LAST_MODIFIED, RANGE,
    },
    redirect::Policy,
};
use url::Url;

use super::{
    Error, RemoteOptions, Result,
    answer::{Answer, Body, Pin, Version, clipped},
    error::causes,
    location::is_loopback,
    stats::Counters,
};

/// A client of web servers.
#[derive(Clone, Debug)]
pub(super) struct Web {
    client: Client,
    allow_http: bool,
    /// The most bytes of a file that is read whole.
    whole: u64,
    /// How long an answer may bring nothing, in seconds.
    patience: u64,
}

impl Web {
    /// Makes a client that shows this token to the servers that it is told to ask.
    pub(super) fn new(options: &RemoteOptions, token: Option<&str>) -> Result<Self> {
        install_tls();
        let wrong = |reason: String| Error::Setting { what: "client of web servers", reason };
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| wrong("the token has odd characters".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client = Client::builder()
            .user_agent(AGENT)
            .default_headers(headers)
            .connect_timeout(options.timeout)
            .read_timeout(options.timeout)
            .referer(false)
            // A token goes to no other host: the client takes it off where one is redirected to.
            .redirect(Policy::custom(|attempt| {
                let is_https = |url: &Url| url.scheme() == "https";
                let from_https = attempt.previous().last().is_some_and(is_https);
                if attempt.previous().len() > REDIRECTS {
                    attempt.error(format!("more than {REDIRECTS} redirects"))
                } else if from_https && !is_https(attempt.url()) {
                    attempt.error("redirect from https to another scheme")
                } else {
                    attempt.follow()
                }
            }))
            .build()
            .map_err(|error| wrong(reason(&error)))?;
        let (allow_http, whole) = (options.allow_http, options.kept());
        Ok(Self { client, allow_http, whole, patience: options.timeout.as_secs() })
    }

    /// Refuses what anybody between could read and change.
    pub(super) fn check(&self, url: &Url) -> Result<()> {
        match url.scheme() {
            "http" if !self.allow_http && !is_loopback(url) => {
                Err(Error::Unsupported { what: INSECURE })
            }
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
        let mut request = self.client.get(url.clone());
        request = request.header(RANGE, format!("bytes={}-{last}", range.start));
        if let Some(etag) = pin.and_then(|pin| pin.version.strong_etag()) {
            request = request.header(IF_MATCH, etag);
        }
        counters.request();
        let response = request.send().await.map_err(|error| self.error(&error))?;
        let headers = response.headers();
        if let Some(found) = text(headers, &CONTENT_ENCODING).filter(|found| *found != "identity") {
            return Err(Error::Encoded { found: tensor_core::text::short(found).into_owned() });
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
                let bytes = self.body(response, bytes, counters).await?;
                Ok(Answer { bytes, len, version })
            }
            StatusCode::OK if pin.is_none() => {
                let bytes = self.whole(response, counters).await?;
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
        let response = self.client.get(url.clone()).send().await;
        let response = response.map_err(|error| self.error(&error))?;
        if response.status() != StatusCode::OK {
            return Err(refused(response.status()));
        }
        let next = text(response.headers(), &reqwest::header::LINK).and_then(next_page);
        let next = next.and_then(|next| url.join(next).ok());
        // A page of another host would get the token.
        let next = next.filter(|next| next.origin() == url.origin());
        Ok((self.whole(response, counters).await?, next))
    }

    async fn body(&self, mut response: Response, len: u64, counters: &Counters) -> Result<Bytes> {
        let mut body = Body::new(len, counters);
        while let Some(piece) = response.chunk().await.map_err(|error| self.error(&error))? {
            body.add(&piece)?;
        }
        body.finish()
    }

    /// Reads a whole body, up to a limit.
    async fn whole(&self, mut response: Response, counters: &Counters) -> Result<Bytes> {
        let limit = self.whole;
        if let Some(len) = response.content_length() {
            if len > limit {
                return Err(Error::NoRanges { limit });
            }
            return self.body(response, len, counters).await;
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.error(&error))? {
            counters.bytes(piece.len());
            if (bytes.len() as u64).saturating_add(piece.len() as u64) > limit {
                return Err(Error::NoRanges { limit });
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.into())
    }

    fn error(&self, error: &reqwest::Error) -> Error {
        if error.is_timeout() {
            return Error::Timeout { seconds: self.patience };
        }
        if error.is_redirect() {
            return Error::Range { found: reason(error), expected: "the file".to_owned() };
        }
        Error::Connection { reason: reason(error) }
    }
}

/// Returns the last cause of an error, which has no URL.
fn reason(error: &reqwest::Error) -> String {
    without_queries(&causes(error).last().unwrap_or(error).to_string())
}

/// Cuts the queries off whatever may be an address in a text of others, and the text where it is long.
pub(super) fn without_queries(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        match word.split_once('?').filter(|(start, _)| start.contains("://")) {
            Some((start, rest)) => {
                out.push_str(start);
                out.extend(rest.chars().last().filter(|last| last.is_whitespace()));
            }
            None => out.push_str(word),
        }
    }
    tensor_core::text::short(out.trim_end()).into_owned()
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
        found: format!("{:?}", tensor_core::text::short(found)),
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

/// How many redirects are followed.
const REDIRECTS: usize = 5;

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    fn texts_of_others_lose_their_queries() {
        let text = "cannot reach https://h/x?token=s3cret twice";
        assert_eq!(without_queries(text), "cannot reach https://h/x twice");
        assert_eq!(without_queries("why? because"), "why? because");
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
