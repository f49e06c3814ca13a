//! Servers on this machine that answer as a test says, wrongly where it says so.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A server that answers connections as a script or a function says, and then ends.
#[derive(Debug)]
pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A connection.
pub trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// What is done to one connection, from the head of its request on.
pub type Answer = Box<dyn FnOnce(&str, &mut dyn Stream) -> io::Result<()> + Send>;

impl Server {
    /// Answers one connection after the other as the script says.
    ///
    /// # Panics
    ///
    /// Where no port is free.
    #[must_use]
    pub fn start(script: Vec<Answer>) -> Self {
        Self::start_with(script, |stream| Box::new(stream))
    }

    /// Like [`start`](Self::start), but over what wraps each connection, such as TLS.
    ///
    /// # Panics
    ///
    /// Where no port is free.
    pub fn start_with(
        script: Vec<Answer>,
        wrap: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static,
    ) -> Self {
        Self::run(move |listener, seen, stop| {
            for answer in script {
                let Some(stream) = accept(listener, stop, PATIENCE) else { return };
                let mut stream = wrap(stream);
                let Ok(request) = read_head(&mut stream) else { continue };
                note(seen, &request);
                let _ = answer(&request, &mut stream);
                let _ = stream.flush();
            }
        })
    }

    /// Answers all connections alike, several at a time, for two minutes at most. Each has one request.
    ///
    /// # Panics
    ///
    /// Where no port is free.
    #[must_use]
    pub fn serve(
        answer: impl Fn(&str, &mut dyn Stream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::run(move |listener, seen, stop| {
            let end = Instant::now() + LIFETIME;
            while let Some(mut stream) =
                accept(listener, stop, end.saturating_duration_since(Instant::now()))
            {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(seen));
                thread::spawn(move || {
                    let Ok(request) = read_head(&mut stream) else { return };
                    note(&seen, &request);
                    let _ = answer(&request, &mut stream);
                    let _ = stream.flush();
                });
            }
        })
    }

    fn run(
        work: impl FnOnce(&TcpListener, &Arc<Mutex<Vec<String>>>, &AtomicBool) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("the system has such sockets");
        let port = listener.local_addr().expect("it is bound").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let thread = thread::spawn(move || work(&listener, &seen, &stopped));
        Self { port, requests, stop, thread: Some(thread) }
    }

    /// Returns the port that it listens at.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the heads of the requests so far, in lower case.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Ends the server; returns the heads of the requests, in lower case.
    #[must_use]
    pub fn requests(mut self) -> Vec<String> {
        self.end();
        self.seen()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn note(seen: &Mutex<Vec<String>>, request: &str) {
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.to_owned());
}

fn accept(listener: &TcpListener, stop: &AtomicBool, patience: Duration) -> Option<TcpStream> {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        match listener.accept() {
            Ok((stream, _)) => {
                let set = stream.set_nonblocking(false);
                let set = set.and_then(|()| stream.set_read_timeout(Some(STEP)));
                let set = set.and_then(|()| stream.set_write_timeout(Some(STEP)));
                return set.ok().map(|()| stream);
            }
            Err(_) if stop.load(Ordering::Relaxed) => return None,
            Err(_) => thread::park_timeout(Duration::from_millis(1)),
        }
    }
    None
}

/// Reads the head of a request, in lower case.
///
/// # Errors
///
/// Where the connection ends before.
pub fn read_head(stream: &mut dyn Stream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 64 << 10 {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).to_ascii_lowercase())
}

/// Exactly this head, and this body.
pub fn raw(head: impl Into<String>, body: impl Into<Vec<u8>>) -> Answer {
    let (head, body) = (head.into(), body.into());
    Box::new(move |_, stream| {
        stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes())?;
        stream.write_all(&body)
    })
}

/// An answer with a status, headers, one a line, and a body.
pub fn answer(status: &str, headers: &str, body: impl Into<Vec<u8>>) -> Answer {
    let body = body.into();
    raw(format!("{status}\r\nContent-Length: {}{}", body.len(), lines(headers)), body)
}

/// An answer with status 200.
pub fn ok(headers: &str, body: impl Into<Vec<u8>>) -> Answer {
    answer("200 OK", headers, body)
}

/// An answer that leads elsewhere.
pub fn redirect(location: impl Into<String>) -> Answer {
    answer("302 Found", &format!("Location: {}", location.into()), "elsewhere")
}

/// Sends the start of an answer and then nothing, until the client goes away.
#[must_use]
pub fn stalled(head: String, body: Vec<u8>) -> Answer {
    Box::new(move |_, stream| {
        stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes())?;
        stream.write_all(&body)?;
        stream.flush()?;
        stream.read(&mut [0]).map(drop)
    })
}

/// Returns headers, one a line, as they stand behind others.
#[must_use]
pub fn lines(headers: &str) -> String {
    headers.split('\n').filter(|line| !line.is_empty()).map(|line| format!("\r\n{line}")).collect()
}

/// A file that a server has.
#[derive(Clone, Debug)]
pub struct Served {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Headers that every answer has, one a line, such as its `ETag`.
    pub headers: String,
}

impl Served {
    /// A file with an `ETag`.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>, etag: &str) -> Self {
        Self { bytes: bytes.into(), headers: format!("ETag: \"{etag}\"") }
    }

    /// Answers as a server does that has ranges and compares what `If-Match` says.
    ///
    /// # Errors
    ///
    /// Where the connection ends before.
    pub fn answer(&self, request: &str, stream: &mut dyn Stream) -> io::Result<()> {
        let etag = self.headers.lines().find_map(|line| line.strip_prefix("ETag: "));
        let wanted = header(request, "if-match");
        let len = self.bytes.len();
        if wanted.is_some_and(|wanted| etag.map(str::to_ascii_lowercase).as_deref() != Some(wanted))
        {
            return answer("412 Precondition Failed", &self.headers, "")(request, stream);
        }
        let range = header(request, "range").and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            let last = last.parse().unwrap_or(usize::MAX).min(len.saturating_sub(1));
            Some((first.parse::<usize>().ok()?, last))
        });
        let Some((first, last)) = range else {
            return answer("200 OK", &self.headers, &self.bytes[..])(request, stream);
        };
        if first >= len {
            let headers = format!("{}\nContent-Range: bytes */{len}", self.headers);
            return answer("416 Range Not Satisfiable", &headers, "")(request, stream);
        }
        let headers = format!("{}\nContent-Range: bytes {first}-{last}/{len}", self.headers);
        answer("206 Partial Content", &headers, &self.bytes[first..=last])(request, stream)
    }
}

/// Returns the value of a header of a request.
#[must_use]
pub fn header<'r>(request: &'r str, name: &str) -> Option<&'r str> {
    let mut pairs = request.lines().filter_map(|line| line.split_once(": "));
    pairs.find_map(|(found, value)| (found == name).then_some(value.trim()))
}

/// How long a script waits for its next connection.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long a server answers that has no script.
const LIFETIME: Duration = Duration::from_secs(120);

/// How long one read or write of a connection may take.
const STEP: Duration = Duration::from_secs(2);
