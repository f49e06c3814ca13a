//! One URL: its redirects, its body or the rest of it, and whether that is the content.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read},
    net::IpAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use carton_format::{
    Sha256,
    fetch::{FetchError, Link, UrlFault, redact},
};
use tensor_core::{
    Source,
    digest::{Algorithm, Digest},
    text::short,
};
use ureq::{
    Body,
    http::{
        HeaderMap, Response,
        header::{
            ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderName,
            IF_RANGE, LAST_MODIFIED, LOCATION, RANGE,
        },
    },
};

use super::{
    HttpFetcher, HttpOptions, Progress,
    address::Refused,
    cache::failed,
    coding::{Coding, DecodeError},
    partial::{Head, Part, Validator},
    url::Url,
};

/// What is fetched, and the URL that is asked for it.
pub(super) struct Download<'a> {
    fetcher: &'a HttpFetcher,
    link: &'a Link<'a>,
    url: Url,
    /// As it is shown.
    shown: String,
    /// As it is remembered.
    key: String,
    /// Whether the last read took so long because this process stood.
    stood: Cell<bool>,
}

impl<'a> Download<'a> {
    pub(super) fn new(
        fetcher: &'a HttpFetcher,
        link: &'a Link<'a>,
        url: &str,
    ) -> Result<Self, UrlFault> {
        let key = Algorithm::Sha256.digest(url.as_bytes()).to_string();
        let parsed = Url::parse(url, fetcher.options.schemes)?;
        Ok(Self { fetcher, link, url: parsed, shown: redact(url), key, stood: Cell::default() })
    }

    /// Returns the content, whose digest was compared and which is in the cache then. What was
    /// begun, here or by an earlier process, is completed; a body that stops is taken up again a
    /// few times.
    pub(super) fn content(&self, part: &mut Part) -> Result<Source, Failure> {
        let mut retries = 0..RETRIES;
        loop {
            let fault = match self.attempt(part).and_then(|()| self.finish(part)) {
                Err(Failure::Url(fault)) => fault,
                done => return done,
            };
            // Bytes of several answers may be of several versions: all of them are fetched again.
            let is_mixed = part.is_joined()
                && matches!(fault, UrlFault::Digest { .. } | UrlFault::Decoding { .. });
            let may_retry = is_mixed || is_transient(&fault);
            if is_wrong(&fault) {
                part.discard()?;
            }
            let is_free = self.stood.take();
            if !may_retry || !is_free && retries.next().is_none() {
                return Err(fault.into());
            }
        }
    }

    /// Asks once and writes down the body.
    fn attempt(&self, part: &mut Part) -> Result<(), Failure> {
        let head = part.head(&self.key).cloned();
        if head.as_ref().is_some_and(|head| head.total == Some(part.len())) {
            part.join();
            return Ok(());
        }
        let answer = self.ask(head.as_ref(), part.len())?;
        let received = match (answer.response.status().as_u16(), head) {
            (200, _) => self.receive_all(answer.response, part),
            (206, Some(head)) => self.receive_rest(&head, answer.response, part),
            (416, Some(_)) => Err(UrlFault::Changed.into()),
            (found, head) => {
                let expected = if head.is_some() { "200 or 206" } else { "200" };
                Err(UrlFault::Status { found, expected }.into())
            }
        };
        received.map_err(|failure| match failure {
            Failure::Url(fault) => behind(answer.redirected_to, fault).into(),
            local @ Failure::Local(_) => local,
        })
    }

    /// Follows redirects until there is an answer.
    fn ask(&self, head: Option<&Head>, offset: u64) -> Result<Answer, UrlFault> {
        let mut url = self.url.clone();
        let mut redirected_to = None;
        for _ in 0..=REDIRECTS {
            let asked = self.ask_one(&url, head, offset);
            let response = asked.map_err(|fault| behind(redirected_to.clone(), fault))?;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = text(response.headers(), &LOCATION).filter(|_| is_redirect);
            let Some(location) = location else {
                return Ok(Answer { response, redirected_to });
            };
            redirected_to = Some(redact(location));
            url = match url.join(location, self.fetcher.options.schemes) {
                Ok(url) => url,
                Err(fault) => return Err(behind(redirected_to, fault)),
            };
            redirected_to = Some(redact(&url.uri().to_string()));
        }
        Err(UrlFault::Redirects { limit: REDIRECTS })
    }

    fn ask_one(
        &self,
        url: &Url,
        head: Option<&Head>,
        offset: u64,
    ) -> Result<Response<Body>, UrlFault> {
        // A proxy would not know our rule.
        if let Ok(address) = url.host().parse::<IpAddr>()
            && !(self.fetcher.rule)(address)
        {
            return Err(self.refused(url, address));
        }
        let mut request = self.fetcher.agent.get(url.uri());
        let codings = head.map_or(CODINGS, |head| head.coding.name());
        request = request.header(ACCEPT_ENCODING, codings);
        if let Some(Head { validator: Some(validator), .. }) = head {
            let (Validator::Etag(value) | Validator::Modified(value)) = validator;
            request = request.header(RANGE, format!("bytes={offset}-")).header(IF_RANGE, value);
        }
        request.call().map_err(|error| self.fault(error, url))
    }

    fn receive_all(&self, response: Response<Body>, part: &mut Part) -> Result<(), Failure> {
        let coding = Coding::from_headers(response.headers())?;
        let validator = validator(response.headers(), coding);
        let total = response.body().content_length();
        self.check_length(total, coding)?;
        part.start(Head { url: self.key.clone(), coding, validator, total })?;
        self.receive(response, part, total)
    }

    fn receive_rest(
        &self,
        head: &Head,
        response: Response<Body>,
        part: &mut Part,
    ) -> Result<(), Failure> {
        let rest = Rest::parse(response.headers(), head, part.len())?;
        self.check_length(rest.total, head.coding)?;
        part.join();
        self.receive(response, part, Some(rest.end))?;
        if part.len() > rest.end {
            return Err(UrlFault::Range { found: rest.shown, expected: rest.start }.into());
        }
        match rest.total {
            Some(total) if part.len() < total => {
                Err(UrlFault::Truncated { found: part.len(), expected: Some(total) }.into())
            }
            _ => Ok(()),
        }
    }

    /// Writes a body behind what there is; `end` is where it should end, counted from the start of
    /// the whole.
    fn receive(
        &self,
        response: Response<Body>,
        part: &mut Part,
        end: Option<u64>,
    ) -> Result<(), Failure> {
        let limit = self.body_limit(part.coding());
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; BUFFER];
        let clock = Clock::start(self.fetcher.options.stall);
        let clock = clock.map_err(|error| FetchError::Other(Box::new(error)))?;
        let mut pace = Pace { from: part.len(), ..Pace::default() };
        loop {
            let began = clock.now();
            let read = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let fault = self.body_fault(error, part.len(), end);
                    let (waited, stall) =
                        (clock.now().saturating_sub(began), self.fetcher.options.stall);
                    let has_waited = waited.saturating_mul(4) > stall.saturating_mul(3);
                    self.stood.set(matches!(fault, UrlFault::Stalled { .. }) && !has_waited);
                    return Err(fault.into());
                }
            };
            if part.len().saturating_add(read as u64) > limit {
                return Err(UrlFault::OverLimit { what: "body", limit }.into());
            }
            part.write(buffer.get(..read).unwrap_or_default())?;
            let (sha256, received) = (self.link.sha256, part.len());
            self.fetcher.options.tell(Progress { sha256, received, total: end });
            pace.check(received, clock.now(), &self.fetcher.options)?;
        }
        match end {
            Some(end) if part.len() < end => {
                Err(UrlFault::Truncated { found: part.len(), expected: Some(end) }.into())
            }
            _ => Ok(()),
        }
    }

    /// Undoes the coding, compares the digest, and puts the content into the cache.
    fn finish(&self, part: &mut Part) -> Result<Source, Failure> {
        let (cache, sha256) = (&self.fetcher.cache, self.link.sha256);
        if part.coding() == Coding::Identity {
            self.check_digest(part.digest()?)?;
            let staged = cache.stage(sha256)?;
            part.rename(&staged.path())?;
            return Ok(staged.commit(self.shown.clone())?);
        }
        let staged = cache.stage(sha256)?;
        self.check_digest(self.decode(part, &staged.path())?)?;
        let source = staged.commit(self.shown.clone())?;
        part.discard()?;
        Ok(source)
    }

    /// Undoes the coding into a new file.
    fn decode(&self, part: &mut Part, path: &Path) -> Result<Digest, Failure> {
        let coding = part.coding();
        let out = File::options().read(true).write(true).create_new(true).open(path);
        let mut out = out.map_err(|error| failed(path, "creation", error))?;
        let limit = self.link.len.unwrap_or(self.fetcher.options.max_bytes);
        coding.decode(part.file(), &mut out, limit).map_err(|error| match error {
            DecodeError::Coded(source) => {
                UrlFault::Decoding { coding: coding.name(), source }.into()
            }
            DecodeError::OverLimit => UrlFault::OverLimit { what: "decoded content", limit }.into(),
            DecodeError::Local(error) => failed(path, "decoding", error).into(),
        })
    }

    fn check_digest(&self, found: Digest) -> Result<(), UrlFault> {
        match found {
            Digest::Sha256(found) if found != self.link.sha256.0 => {
                Err(UrlFault::Digest { found: Sha256(found) })
            }
            _ => Ok(()),
        }
    }

    fn check_length(&self, total: Option<u64>, coding: Coding) -> Result<(), UrlFault> {
        let limit = self.body_limit(coding);
        match total {
            Some(total) if total > limit => Err(UrlFault::OverLimit { what: "body", limit }),
            _ => Ok(()),
        }
    }

    fn body_limit(&self, coding: Coding) -> u64 {
        match self.link.len {
            None => self.fetcher.options.max_bytes,
            Some(len) if coding == Coding::Identity => len,
            // What does not compress becomes a little longer.
            Some(len) => len.saturating_add(len >> 6).saturating_add(4096),
        }
    }

    /// Says what is wrong where there is no answer. No message of ureq that may hold a URL is shown.
    fn fault(&self, error: ureq::Error, url: &Url) -> UrlFault {
        let options = &self.fetcher.options;
        match error {
            ureq::Error::Io(error) => UrlFault::Connection(error),
            ureq::Error::Timeout(step) => {
                let after = match step {
                    ureq::Timeout::PerRead => options.stall,
                    _ => options.first_byte,
                };
                UrlFault::Timeout { after, step: step.to_string() }
            }
            ureq::Error::Other(error) => match error.downcast::<Refused>() {
                Ok(refused) => self.refused(url, refused.0),
                Err(error) => UrlFault::Protocol(short(&error.to_string()).into_owned()),
            },
            ureq::Error::BadUri(_) | ureq::Error::RequireHttpsOnly(_) => {
                UrlFault::Malformed("cannot be asked for")
            }
            other => UrlFault::Protocol(short(&other.to_string()).into_owned()),
        }
    }

    fn refused(&self, url: &Url, address: IpAddr) -> UrlFault {
        let (host, expected) = (url.host().to_owned(), self.fetcher.options.hosts.expected());
        UrlFault::Address { host, address, expected }
    }

    fn body_fault(&self, error: io::Error, found: u64, expected: Option<u64>) -> UrlFault {
        match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => {
                UrlFault::Stalled { offset: found, after: self.fetcher.options.stall }
            }
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                UrlFault::Truncated { found, expected }
            }
            ureq::Error::Io(error) => UrlFault::Connection(error),
            other => UrlFault::Protocol(short(&other.to_string()).into_owned()),
        }
    }
}

/// Why a URL gives no content.
pub(super) enum Failure {
    /// It does not, another may.
    Url(UrlFault),
    /// This machine fails, so no other will do either.
    Local(FetchError),
}

impl From<UrlFault> for Failure {
    fn from(fault: UrlFault) -> Self {
        Self::Url(fault)
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::Local(error)
    }
}

/// How fast a body comes: a read that brings a byte now and then would never end.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// When it was looked at last, by the clock of the body.
    since: Duration,
    /// Bytes that there were then.
    from: u64,
}

impl Pace {
    /// Refuses a body that brought too little since it was looked at last.
    fn check(
        &mut self,
        received: u64,
        now: Duration,
        options: &HttpOptions,
    ) -> Result<(), UrlFault> {
        let elapsed = now.saturating_sub(self.since);
        if elapsed < options.stall {
            return Ok(());
        }
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let thousandfold = received.saturating_sub(self.from).saturating_mul(1000);
        let found = thousandfold.checked_div(millis).unwrap_or(u64::MAX);
        if found < options.min_rate {
            return Err(UrlFault::Slow { offset: received, found, expected: options.min_rate });
        }
        *self = Self { since: now, from: received };
        Ok(())
    }
}

/// A clock that stands still while the process does, as it does after Ctrl-Z.
struct Clock {
    micros: Arc<AtomicU64>,
}

impl Clock {
    /// Starts a clock for periods of about this length, by a thread that ends with it.
    fn start(period: Duration) -> io::Result<Self> {
        let micros = Arc::new(AtomicU64::new(0));
        let clock = Arc::downgrade(&micros);
        let tick = period.checked_div(64).unwrap_or_default();
        let tick = tick.clamp(Duration::from_millis(1), Duration::from_secs(1));
        thread::Builder::new().spawn(move || {
            let mut last = Instant::now();
            while let Some(micros) = clock.upgrade() {
                // A longer time is that of a process which stood, however busy the machine is.
                let passed = last.elapsed().min(tick.saturating_mul(8)).as_micros();
                last = Instant::now();
                micros.fetch_add(u64::try_from(passed).unwrap_or(u64::MAX), Ordering::Relaxed);
                drop(micros);
                thread::sleep(tick);
            }
        })?;
        Ok(Self { micros })
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

struct Answer {
    response: Response<Body>,
    redirected_to: Option<String>,
}

/// Which part of a body an answer is said to be.
struct Rest {
    start: u64,
    /// Behind the last byte.
    end: u64,
    /// Length of the whole, where it is known.
    total: Option<u64>,
    /// What the server says.
    shown: String,
}

impl Rest {
    /// Checks that an answer goes on behind what there is of the same version.
    fn parse(headers: &HeaderMap, head: &Head, start: u64) -> Result<Self, UrlFault> {
        let kind = text(headers, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        let shown = match text(headers, &CONTENT_RANGE) {
            _ if kind.starts_with("multipart/") => short(&kind).into_owned(),
            range => short(range.unwrap_or_default()).into_owned(),
        };
        let range = parse_range(&shown).filter(|(first, _, _)| *first == start);
        let Some((_, last, total)) = range else {
            return Err(UrlFault::Range { found: shown, expected: start });
        };
        let etag = text(headers, &ETAG);
        let is_other_version = match &head.validator {
            Some(Validator::Etag(expected)) => etag.is_some_and(|found| found != expected),
            _ => false,
        };
        let is_other_length = total.is_some() && head.total.is_some() && total != head.total;
        if is_other_version || is_other_length || Coding::from_headers(headers)? != head.coding {
            return Err(UrlFault::Changed);
        }
        let end = last.saturating_add(1);
        Ok(Self { start, end, total: total.or(head.total), shown })
    }
}

fn behind(redirected_to: Option<String>, fault: UrlFault) -> UrlFault {
    match redirected_to {
        Some(to) => UrlFault::Redirected { to, fault: Box::new(fault) },
        None => fault,
    }
}

/// Tells faults after which what is there can be completed, or fetched again, from the same URL.
fn is_transient(fault: &UrlFault) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match fault {
        UrlFault::Redirected { fault, .. } => is_transient(fault),
        UrlFault::Stalled { .. } | UrlFault::Truncated { .. } | UrlFault::Changed => true,
        UrlFault::Connection(error) => {
            matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
        }
        _ => false,
    }
}

/// Tells faults of the bytes that are there, which are worth nothing then.
fn is_wrong(fault: &UrlFault) -> bool {
    match fault {
        UrlFault::Redirected { fault, .. } => is_wrong(fault),
        UrlFault::Digest { .. }
        | UrlFault::Decoding { .. }
        | UrlFault::OverLimit { .. }
        | UrlFault::Range { .. }
        | UrlFault::Changed => true,
        _ => false,
    }
}

/// Finds what the rest of a body can be asked for with. RFC 9110, section 13.1.5.
fn validator(headers: &HeaderMap, coding: Coding) -> Option<Validator> {
    if text(headers, &ACCEPT_RANGES).is_some_and(|unit| unit.eq_ignore_ascii_case("none")) {
        return None;
    }
    if let Some(etag) = text(headers, &ETAG).filter(|etag| etag.starts_with('"')) {
        return Some(Validator::Etag(etag.to_owned()));
    }
    // A time does not say how a body is encoded, and one that is as young as the answer does not
    // tell two versions of the same second apart.
    let modified = text(headers, &LAST_MODIFIED).filter(|_| coding == Coding::Identity)?;
    (text(headers, &DATE) != Some(modified)).then(|| Validator::Modified(modified.to_owned()))
}

/// Reads `bytes 5-9/10`: the first byte, the last one, and the length of the whole unless that is
/// `*`. RFC 9110, section 14.4.
fn parse_range(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (unit, range) = text.trim().split_once(' ')?;
    let (bounds, total) = range.split_once('/')?;
    let (first, last) = bounds.split_once('-')?;
    let total = match total {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let is_whole = first <= last && total.is_none_or(|total| last < total);
    (unit.eq_ignore_ascii_case("bytes") && is_whole).then_some((first, last, total))
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// How often a URL is asked again after its body stopped.
const RETRIES: usize = 3;

const REDIRECTS: usize = 5;

const CODINGS: &str = "zstd, gzip, br, deflate";

const BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        assert_eq!(parse_range("bytes 5-9/10"), Some((5, 9, Some(10))));
        assert_eq!(parse_range("Bytes 5-9/*"), Some((5, 9, None)));
        for text in ["", "bytes */10", "bytes 9-5/10", "items 5-9/10", "bytes 5-9", "bytes 5-9/9"] {
            assert_eq!(parse_range(text), None, "{text:?}");
        }
    }

    #[test]
    fn validators_that_tell_versions_apart() {
        let of = |headers: &[(HeaderName, &'static str)], coding| {
            let headers =
                headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
            validator(&headers.collect(), coding)
        };
        let etag = |text: &str| Some(Validator::Etag(text.to_owned()));
        let (strong, weak) = ((ETAG, "\"1\""), (ETAG, "W/\"1\""));
        let time = (LAST_MODIFIED, "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(of(&[strong.clone(), time.clone()], Coding::Gzip), etag("\"1\""));
        assert_eq!(of(&[weak.clone(), time.clone()], Coding::Gzip), None);
        let modified = Some(Validator::Modified(time.1.to_owned()));
        assert_eq!(of(&[weak, time.clone()], Coding::Identity), modified);
        assert_eq!(of(&[time.clone(), (DATE, time.1)], Coding::Identity), None);
        assert_eq!(of(&[strong, (ACCEPT_RANGES, "none")], Coding::Identity), None);
    }
}
