//! A bucket on this machine, in the dialect of S3, which that of GCS is like, as far as the tests ask for it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Read as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::server::{Served, Server, Stream, answer, header, ok};

/// A server of one bucket. Names are in lower case.
#[derive(Debug)]
pub struct BucketServer {
    server: Server,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    /// The parts of uploads that are not finished, by their ids.
    uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    /// How many uploads were begun.
    begun: u32,
    /// From which part on uploads are refused.
    refused: Option<u32>,
    /// How many parts came.
    parts: u32,
    /// How many more writes get no answer.
    lost: u32,
}

impl BucketServer {
    /// Starts an empty bucket.
    #[must_use]
    pub fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let server = Server::serve(move |request, stream| respond(&shared, request, stream));
        Self { server, state }
    }

    /// Returns its address, for `AWS_ENDPOINT_URL` or `GOOGLE_BASE_URL`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port())
    }

    /// Puts an object into it.
    pub fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        lock(&self.state).objects.insert(key.to_owned(), bytes.into());
    }

    /// Returns an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        lock(&self.state).objects.get(key).cloned()
    }

    /// Refuses all parts of uploads from this number on.
    pub fn refuse_parts(&self, from: u32) {
        lock(&self.state).refused = Some(from);
    }

    /// Does what the next so many writes ask for, and answers none of them.
    pub fn lose_answers(&self, count: u32) {
        lock(&self.state).lost = count;
    }

    /// Returns how many uploads are not finished, how many were begun, and how many parts came.
    #[must_use]
    pub fn uploads(&self) -> (usize, u32, u32) {
        let state = lock(&self.state);
        (state.uploads.len(), state.begun, state.parts)
    }

    /// Returns the heads of the requests so far, in lower case.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        self.server.seen()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn respond(state: &Mutex<State>, request: &str, stream: &mut dyn Stream) -> io::Result<()> {
    let mut words = request.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
    let key = decoded(key);
    let query: BTreeMap<&str, &str> =
        query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    let len = header(request, "content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    (&mut *stream).take(len).read_to_end(&mut body)?;
    let id = query.get("uploadid").map(|id| (*id).to_owned());
    match (method, id) {
        ("get" | "head", _) if key.is_empty() => {
            let prefix = decoded(query.get("prefix").copied().unwrap_or_default());
            ok("Content-Type: application/xml", list(&lock(state), &prefix))(request, stream)
        }
        ("get" | "head", _) => {
            let Some(bytes) = lock(state).objects.get(&key).cloned() else {
                return answer("404 Not Found", "", "")(request, stream);
            };
            let mut served = Served::new(bytes, &etag(&key));
            served.headers.push_str("\nLast-Modified: Mon, 02 Nov 2026 10:00:00 GMT");
            if method == "head" {
                let len = served.bytes.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n");
                let head = head + &served.headers.replace('\n', "\r\n");
                return stream.write_all((head + "\r\nConnection: close\r\n\r\n").as_bytes());
            }
            served.answer(request, stream)
        }
        ("put", None) => {
            let is_new = header(request, "if-none-match") == Some("*")
                || header(request, "x-goog-if-generation-match") == Some("0");
            if is_new && lock(state).objects.contains_key(&key) {
                return answer("412 Precondition Failed", "", "")(request, stream);
            }
            let tag = format!("ETag: \"{}\"", etag(&key));
            lock(state).objects.insert(key, body);
            if is_lost(state) {
                return Ok(());
            }
            ok(&tag, "")(request, stream)
        }
        ("post", None) => {
            let id = {
                let mut state = lock(state);
                state.begun += 1;
                let id = format!("upload-{}", state.begun);
                state.uploads.insert(id.clone(), BTreeMap::new());
                id
            };
            ok("", format!("<R><Bucket>b</Bucket><Key>{key}</Key><UploadId>{id}</UploadId></R>"))(
                request, stream,
            )
        }
        ("put", Some(id)) => {
            let number = query.get("partnumber").and_then(|number| number.parse().ok());
            let number = number.unwrap_or_default();
            let is_refused = {
                let mut state = lock(state);
                state.parts += 1;
                let is_refused = state.refused.is_some_and(|from| number >= from);
                if let Some(parts) = state.uploads.get_mut(&id) {
                    parts.insert(number, body);
                }
                is_refused
            };
            match is_refused {
                true => answer("500 Internal Server Error", "", "")(request, stream),
                false => ok("ETag: \"part\"", "")(request, stream),
            }
        }
        ("post", Some(id)) => {
            let Some(parts) = lock(state).uploads.remove(&id) else {
                return answer("404 Not Found", "", "<Code>NoSuchUpload</Code>")(request, stream);
            };
            let whole: Vec<u8> = parts.into_values().flatten().collect();
            lock(state).objects.insert(key, whole);
            if is_lost(state) {
                return Ok(());
            }
            ok("", "<R><ETag>whole</ETag></R>")(request, stream)
        }
        ("delete", Some(id)) => {
            lock(state).uploads.remove(&id);
            answer("204 No Content", "", "")(request, stream)
        }
        _ => answer("400 Bad Request", "", "")(request, stream),
    }
}

/// Tells whether the answer to a write gets lost.
fn is_lost(state: &Mutex<State>) -> bool {
    let mut state = lock(state);
    let is_lost = state.lost > 0;
    state.lost = state.lost.saturating_sub(1);
    is_lost
}

/// Returns a part of a URL without its escapes.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        bytes.extend(u8::from_str_radix(code, 16));
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the entity tag of an object, which changes with its name alone: nothing here is written twice
/// while it is read.
fn etag(key: &str) -> String {
    format!("tag-{}", key.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-"))
}

fn list(state: &State, prefix: &str) -> String {
    let mut text = String::from("<ListBucketResult>");
    for (key, bytes) in state.objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
        let (len, etag) = (bytes.len(), etag(key));
        let _ = write!(
            text,
            "<Contents><Key>{key}</Key><LastModified>2026-11-02T10:00:00.000Z</LastModified>\
             <ETag>\"{etag}\"</ETag><Size>{len}</Size></Contents>"
        );
    }
    text + "</ListBucketResult>"
}
