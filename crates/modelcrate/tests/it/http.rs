//! Linked files over HTTP from servers that misbehave, each of them on this machine.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, UNIX_EPOCH},
};

use modelcrate::carton_format::{
    Sha256,
    fetch::{Fetch, FetchError, Link, UrlFault},
};
use modelcrate::http::{Cache, Hosts, HttpFetcher, HttpOptions, Network, Proxy, Schemes};
use tensor_core::{Chain, Extent, digest::Algorithm};
use test_support::server::{Answer, Server, answer, lines, ok, raw, read_head, redirect, stalled};

/// How long bodies may send nothing where a test waits for that.
const STALL: Duration = Duration::from_millis(300);

/// Half of the bodies below.
const HALF: usize = 50_000;

fn content() -> Vec<u8> {
    (0..2 * HALF).map(|at| (at % 251) as u8).collect()
}

/// The first half of the content, where all of it was announced.
fn cut_off(headers: &str) -> Answer {
    let head = format!("200 OK\r\nContent-Length: {}{}", 2 * HALF, lines(headers));
    raw(head, &content()[..HALF])
}

/// The second half of the content.
fn rest(headers: &str) -> Answer {
    let headers = format!("{}\nContent-Range: bytes {HALF}-{}/{}", headers, 2 * HALF - 1, 2 * HALF);
    answer("206 Partial Content", &headers, &content()[HALF..])
}

fn options() -> HttpOptions {
    HttpOptions::default()
        .schemes(Schemes::HttpsAndHttp)
        .hosts(Hosts::Any)
        .first_byte(Duration::from_secs(2))
        .stall(Duration::from_secs(2))
}

/// A cache of its own, and what is fetched into it.
struct Client {
    folder: tempfile::TempDir,
    fetcher: HttpFetcher,
}

impl Client {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: HttpOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fetcher = HttpFetcher::with_options(Cache::new(folder.path()), options).unwrap();
        Self { folder, fetcher }
    }

    fn try_fetch(&self, sha256: Sha256, urls: &[String]) -> Result<Vec<u8>, FetchError> {
        let fetched = self.fetcher.fetch(&Link::new(sha256, urls))?;
        assert!(fetched.is_checked());
        let source = fetched.source().clone();
        Ok(source.read(Extent::first(source.len()), "content").unwrap().to_vec())
    }

    /// Fetches what hashes like `expected`, and shows what went wrong.
    fn fetch(&self, expected: &[u8], urls: &[String]) -> Result<Vec<u8>, String> {
        self.try_fetch(sha256(expected), urls).map_err(|error| Chain(&error).to_string())
    }

    #[track_caller]
    fn gets(&self, expected: &[u8], urls: &[String]) {
        let found = self.fetch(expected, urls).unwrap();
        assert!(found == expected, "{} bytes of other content", found.len());
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new());
    }

    /// Returns what is wrong with the only URL.
    #[track_caller]
    fn fault(&self, expected: &[u8], url: String) -> UrlFault {
        match self.try_fetch(sha256(expected), &[url]) {
            Err(FetchError::NoneWorks { mut failures, .. }) => failures.remove(0).fault,
            other => panic!("{other:?}"),
        }
    }

    fn file(&self, content: &[u8]) -> PathBuf {
        self.folder.path().join("files").join(hex(content)).join("file")
    }

    /// Everything in the cache folder that is not content.
    fn leftovers(&self) -> Vec<PathBuf> {
        let entries = |folder: &str| fs::read_dir(self.folder.path().join(folder));
        let partial = entries("partial").into_iter().flatten();
        let files = entries("files").into_iter().flatten();
        let hidden = files
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
        partial.chain(hidden).map(|entry| entry.unwrap().path()).collect()
    }
}

fn sha256(content: &[u8]) -> Sha256 {
    Sha256::digest(content)
}

fn hex(content: &[u8]) -> String {
    Algorithm::Sha256.digest(content).to_string().replace("sha256:", "")
}

// What a server sends

#[test]
fn each_content_coding() {
    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };
    let content = content();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&content).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&content).unwrap();
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(&content).unwrap();
    // "hello\n", a test vector of the decoder: there is no encoder here.
    let brotli = b"\x8f\x02\x80hello\n\x03".to_vec();
    for (coding, body, expected) in [
        ("identity", content.clone(), &content[..]),
        ("zstd", zstd::bulk::compress(&content, 1).unwrap(), &content),
        ("gzip", gzip.finish().unwrap(), &content),
        ("br", brotli, b"hello\n"),
        ("deflate", zlib.finish().unwrap(), &content),
        ("deflate", deflate.finish().unwrap(), &content),
    ] {
        let server = Server::start(vec![ok(&format!("Content-Encoding: {coding}"), body)]);
        Client::new().gets(expected, &[server.url("file")]);
        let requests = server.requests();
        assert!(requests[0].starts_with("get /file http/1.1\r\n"), "{requests:?}");
        assert!(requests[0].contains("accept-encoding: zstd, gzip, br, deflate\r\n"));
    }
}

#[test]
fn body_that_is_not_what_its_coding_says() {
    for coding in ["zstd", "gzip", "br", "deflate"] {
        let server = Server::start(vec![ok(&format!("Content-Encoding: {coding}"), content())]);
        let client = Client::new();
        let fault = client.fault(&content(), server.url(""));
        assert!(matches!(fault, UrlFault::Decoding { .. }), "{fault}");
        assert_eq!(client.leftovers(), Vec::<PathBuf>::new());
    }
}

#[test]
fn no_content_length() {
    let mut chunked = Vec::new();
    for chunk in content().chunks(999) {
        chunked.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let until_close = Server::start(vec![raw("200 OK", content())]);
    Client::new().gets(&content(), &[until_close.url("")]);
    let chunks = Server::start(vec![raw("200 OK\r\nTransfer-Encoding: chunked", chunked)]);
    Client::new().gets(&content(), &[chunks.url("")]);
}

#[test]
fn one_connection_for_two_files() {
    let both: Answer = Box::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")?;
        assert!(read_head(stream)?.starts_with("get /two "));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo")
    });
    let server = Server::start(vec![both]);
    let client = Client::new();
    client.gets(b"one", &[server.url("one")]);
    client.gets(b"two", &[server.url("two")]);
}

#[test]
fn empty_content() {
    let server = Server::start(vec![ok("", "")]);
    Client::new().gets(b"", &[server.url("")]);
}

#[test]
fn wrong_content_and_then_the_next_url() {
    let bad = Server::start(vec![ok("ETag: \"1\"", "something else")]);
    let good = Server::start(vec![ok("", content())]);
    let client = Client::new();
    client.gets(&content(), &[bad.url("file"), good.url("file")]);
    let contents = fs::read_dir(client.folder.path().join("files")).unwrap().count();
    assert_eq!(contents, 1, "nothing but the right content");
    assert_eq!(bad.requests().len(), 1, "wrong content is not asked for twice");
}

#[test]
fn body_of_an_error_is_no_content() {
    for status in ["404 Not Found", "500 Oops", "206 Partial Content", "204 None", "203 Else"] {
        let server = Server::start(vec![answer(status, "", "")]);
        let fault = Client::new().fault(b"", server.url(""));
        assert!(matches!(fault, UrlFault::Status { .. }), "{status}: {fault}");
    }
}

#[test]
fn all_failures_in_one_error() {
    let server = Server::start(vec![answer("404 Not Found", "", ""), ok("", "else")]);
    let urls = [
        server.url("a?token=s3cret"),
        server.url("b?token=s3cret"),
        "https://user:s3cret@example.com/c".to_owned(),
        "ftp://example.com/d".to_owned(),
        "\u{202e}\u{1b}]0;".to_owned(),
    ];
    let error = Client::new().fetch(b"hello\n", &urls).unwrap_err();
    let base = server.url("");
    assert_eq!(
        error,
        format!(
            "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 cannot be \
             fetched: \"{base}a\": status is 404, expected 200; \"{base}b\": content hashes to {}; \
             \"https://example.com/c\": URL has credentials, which are refused; \
             \"ftp://example.com/d\": scheme is \"ftp\", expected \"https\" or \"http\"; \
             \"\\u{{202e}}\\u{{1b}}]0;\": URL has no scheme",
            Algorithm::Sha256.digest(b"else")
        )
    );
}

#[test]
fn only_so_many_urls() {
    let urls = vec!["ftp://example.com".to_owned(); 20];
    let error = Client::new().try_fetch(Sha256([0; 32]), &urls).unwrap_err();
    let FetchError::NoneWorks { failures, untried, .. } = &error else { panic!("{error}") };
    assert_eq!((failures.len(), *untried), (16, 4));
    assert!(error.to_string().ends_with("; 4 more were not tried"));
    let error = Client::new().try_fetch(Sha256([0; 32]), &[]).unwrap_err();
    assert!(matches!(error, FetchError::NoUrl { .. }));
}

#[test]
fn progress_is_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let client = Client::with(options().progress(move |progress| {
        seen.lock().unwrap().push(progress);
    }));
    let server = Server::start(vec![ok("", content())]);
    client.gets(&content(), &[server.url("")]);
    let told = told.lock().unwrap();
    let last = told.last().unwrap();
    assert_eq!((last.received, last.total), (2 * HALF as u64, Some(2 * HALF as u64)));
    assert_eq!(last.sha256, sha256(&content()));
    assert!(told.is_sorted_by_key(|progress| progress.received));
}

// Limits

#[test]
fn body_over_the_limit() {
    let client = Client::with(options().max_bytes(1000));
    let announced = Server::start(vec![ok("", content())]);
    let endless: Answer = Box::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        (0..10_000).try_for_each(|_| stream.write_all(&[0; 1000]))
    });
    let endless = Server::start(vec![endless]);
    for url in [announced.url(""), endless.url("")] {
        let fault = client.fault(&content(), url);
        assert_eq!(fault.to_string(), "body has more than 1000 bytes, which is the limit");
        assert_eq!(client.leftovers(), Vec::<PathBuf>::new());
    }
}

#[test]
fn decompression_bomb() {
    let bomb = zstd::bulk::compress(&vec![0; 1 << 20], 1).unwrap();
    let server = Server::start(vec![ok("Content-Encoding: zstd", bomb)]);
    let client = Client::with(options().max_bytes(1000));
    let fault = client.fault(&content(), server.url(""));
    assert_eq!(fault.to_string(), "decoded content has more than 1000 bytes, which is the limit");
    assert_eq!(client.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn known_length_is_the_limit() {
    let server = Server::start(vec![ok("", content()), ok("", content())]);
    let (client, urls) = (Client::new(), [server.url("")]);
    let link = Link::new(sha256(&content()), &urls);
    let error = client.fetcher.fetch(&link.with_len(2 * HALF as u64 - 1)).unwrap_err();
    assert!(error.to_string().ends_with("more than 99999 bytes, which is the limit"), "{error}");
    client.fetcher.fetch(&link.with_len(2 * HALF as u64)).unwrap();
}

#[test]
fn no_answer() {
    let silent: Answer = Box::new(|_, stream| stream.read(&mut [0]).map(drop));
    let server = Server::start(vec![silent]);
    let client = Client::with(options().first_byte(STALL).stall(Duration::from_secs(9)));
    let fault = client.fault(&content(), server.url(""));
    assert_eq!(fault.to_string(), "no answer within 300ms (receive response)");
}

#[test]
fn refused_connection() {
    let fault = Client::new().fault(&content(), "http://127.0.0.1:1/".to_owned());
    assert!(matches!(fault, UrlFault::Connection(_)), "{fault}");
}

// Bodies that stop

#[test]
fn rest_of_a_cut_off_body() {
    let server = Server::start(vec![cut_off("ETag: \"1\""), rest("ETag: \"1\"")]);
    Client::new().gets(&content(), &[server.url("")]);
    let requests = server.requests();
    assert!(!requests[0].contains("range"), "{requests:?}");
    assert!(requests[1].contains("\r\nrange: bytes=50000-\r\n"), "{requests:?}");
    assert!(requests[1].contains("\r\nif-range: \"1\"\r\n"), "{requests:?}");
    assert!(requests[1].contains("\r\naccept-encoding: identity\r\n"), "{requests:?}");
}

#[test]
fn rest_of_a_stalled_body() {
    let modified = "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT";
    let head = format!("200 OK\r\nContent-Length: {}\r\n{modified}", 2 * HALF);
    let stall = stalled(head, content()[..HALF].to_vec());
    let server = Server::start(vec![stall, rest(modified)]);
    Client::with(options().stall(STALL)).gets(&content(), &[server.url("")]);
    let requests = server.requests();
    assert!(requests[1].contains("\r\nif-range: thu, 01 jan 1970 00:00:00 gmt\r\n"));
}

#[test]
fn body_that_keeps_stalling() {
    let head = format!("200 OK\r\nContent-Length: {}", 2 * HALF);
    let script = (0..5).map(|_| stalled(head.clone(), vec![1])).collect();
    let server = Server::start(script);
    let fault = Client::with(options().stall(STALL)).fault(&content(), server.url(""));
    assert_eq!(fault.to_string(), "body at byte 1 sent nothing for 300ms");
    assert_eq!(server.requests().len(), 4);
}

/// Without a bound of its own, a byte now and then keeps a body alive for ever.
#[test]
fn body_that_drips() {
    let drip: Answer = Box::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        (0..400).try_for_each(|_| {
            thread::park_timeout(Duration::from_millis(10));
            stream.write_all(&[1])
        })
    });
    let server = Server::start(vec![drip, ok("", content())]);
    let client = Client::with(options().stall(STALL).min_rate(10_000));
    let fault = client.fault(&content(), server.url(""));
    let UrlFault::Slow { offset, found, expected: 10_000 } = fault else { panic!("{fault}") };
    assert!(offset < 100 && found < 200, "{offset} {found}");
    // The same server is not asked again.
    assert_eq!(server.requests().len(), 1);
}

/// A process that was stopped, as by Ctrl-Z, has not waited for the server meanwhile.
#[cfg(unix)]
#[test]
fn time_of_a_stopped_process_does_not_count() {
    let ((sent, was_sent), (go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
    let pieces: Answer = Box::new(move |_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 2 * HALF)?;
        for piece in content().chunks(40_000) {
            stream.write_all(piece)?;
            sent.send(()).unwrap();
            let _ = may_go.recv();
        }
        Ok(())
    });
    let server = Server::start(vec![pieces]);
    let folder = tempfile::tempdir().unwrap();
    let mut child = child(&server.url(""), folder.path(), "none").spawn().unwrap();
    let signal = |signal: &str| {
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
    };
    // Longer together than a body may stall, and each of them shorter.
    for pieces in 1..=2 {
        was_sent.recv().unwrap();
        // Else both stops might be in one read.
        wait_for_bytes(folder.path(), pieces * 40_000);
        signal("-STOP");
        thread::park_timeout(Duration::from_millis(600));
        signal("-CONT");
        go.send(()).unwrap();
    }
    drop(go);
    assert!(child.wait().unwrap().success());
}

/// Waits until so many bytes are in the files of a folder.
#[cfg(unix)]
fn wait_for_bytes(folder: &Path, bytes: u64) {
    fn found(folder: &Path) -> u64 {
        let len = |entry: fs::DirEntry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => found(&entry.path()),
            metadata => metadata.map_or(0, |metadata| metadata.len()),
        };
        fs::read_dir(folder).unwrap().flatten().map(len).sum()
    }
    let mut attempts = 0..1000;
    while found(folder) < bytes {
        attempts.next().expect("the child reads what was sent");
        thread::park_timeout(Duration::from_millis(10));
    }
}

/// A read that the stop was longer than costs no attempt.
#[cfg(unix)]
#[test]
fn a_stop_during_a_read_is_not_a_failure() {
    let (sent, was_sent) = mpsc::channel();
    let part = format!("ETag: \"1\"\nContent-Range: bytes {HALF}-{}/{}", 2 * HALF - 1, 2 * HALF);
    let head = format!("206 Partial Content\r\nContent-Length: {HALF}{}", lines(&part));
    let begun = format!("HTTP/1.1 {head}\r\n\r\n");
    let waiting: Answer = Box::new(move |_, stream| {
        stream.write_all(begun.as_bytes())?;
        stream.flush()?;
        // So that the body is being read when the process is stopped.
        thread::park_timeout(Duration::from_millis(300));
        sent.send(()).unwrap();
        stream.read(&mut [0]).map(drop)
    });
    let cut_off_again = || raw(head.clone(), "");
    let script = vec![
        cut_off("ETag: \"1\""),
        cut_off_again(),
        cut_off_again(),
        waiting,
        rest("ETag: \"1\""),
    ];
    let server = Server::start(script);
    let folder = tempfile::tempdir().unwrap();
    let mut child = child(&server.url(""), folder.path(), "none").spawn().unwrap();
    was_sent.recv().unwrap();
    for (signal, pause) in [("-STOP", 1300), ("-CONT", 0)] {
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        thread::park_timeout(Duration::from_millis(pause));
    }
    assert!(child.wait().unwrap().success());
}

#[test]
fn cut_off_without_a_length() {
    let head = "200 OK\r\nTransfer-Encoding: chunked";
    let server = Server::start(vec![raw(head, "5\r\nhello"), ok("", content())]);
    Client::new().gets(&content(), &[server.url("")]);
    let server = Server::start(vec![raw("200 OK", "hello"), ok("", content())]);
    let fault = Client::new().fault(&content(), server.url(""));
    assert!(matches!(fault, UrlFault::Digest { .. }), "{fault}");
}

#[test]
fn what_an_earlier_process_left() {
    for (left, requests) in [(content(), 0), (vec![0; 2 * HALF], 1)] {
        let server = Server::start(vec![ok("", content())]);
        let client = Client::new();
        let key = Algorithm::Sha256.digest(server.url("").as_bytes());
        let head = format!(
            r#"{{"url":"{key}","coding":"identity","validator":{{"etag":"\"1\""}},"total":{}}}"#,
            left.len()
        );
        let partial = client.folder.path().join("partial").join(hex(&content()));
        fs::create_dir_all(partial.parent().unwrap()).unwrap();
        fs::write(&partial, &left).unwrap();
        fs::write(partial.with_extension("json"), head).unwrap();
        fs::write(partial.with_extension("lock"), "").unwrap();
        let staged = client.folder.path().join("files").join(format!(".tmp-{}", hex(&content())));
        fs::create_dir_all(&staged).unwrap();
        fs::write(staged.join("file"), "half").unwrap();
        client.gets(&content(), &[server.url("")]);
        assert_eq!(server.requests().len(), requests);
    }
}

#[test]
fn rest_in_several_parts() {
    let part = |start: usize, end: usize| {
        let range = format!("ETag: \"1\"\nContent-Range: bytes {start}-{}/{}", end - 1, 2 * HALF);
        answer("206 Partial Content", &range, &content()[start..end])
    };
    let server =
        Server::start(vec![cut_off("ETag: \"1\""), part(HALF, 60_000), part(60_000, 100_000)]);
    Client::new().gets(&content(), &[server.url("")]);
}

#[test]
fn rest_by_a_later_fetcher() {
    let script = vec![
        cut_off("ETag: \"1\""),
        answer("503 Busy", "", ""),
        answer("503 Busy", "", ""),
        rest("ETag: \"1\""),
    ];
    let server = Server::start(script);
    let client = Client::new();
    client.fetch(&content(), &[server.url("?a")]).unwrap_err();
    let left = client.leftovers();
    assert_eq!(left.len(), 2, "{left:?}");
    // Not of the same URL, so it starts over, but does not take away what is there.
    client.fetch(&content(), &[server.url("?b")]).unwrap_err();
    let later = HttpFetcher::with_options(Cache::new(client.folder.path()), options()).unwrap();
    later.fetch(&Link::new(sha256(&content()), &[server.url("?a")])).unwrap();
    assert_eq!(client.leftovers(), Vec::<PathBuf>::new());
    let requests = server.requests();
    assert!(requests[1].contains("range: bytes=50000-"));
    assert!(!requests[2].contains("range"));
    assert!(requests[3].contains("range: bytes=50000-"));
}

#[test]
fn ranges_that_are_ignored() {
    let server = Server::start(vec![cut_off("ETag: \"1\""), ok("ETag: \"1\"", content())]);
    Client::new().gets(&content(), &[server.url("")]);
}

#[test]
fn ranges_that_lie() {
    for (headers, found) in [
        ("Content-Range: bytes 0-49999/100000", "bytes 0-49999/100000"),
        ("Content-Range: bytes 50001-99999/100000", "bytes 50001-99999/100000"),
        ("Content-Range: bytes 50000-99999/99999", "bytes 50000-99999/99999"),
        ("Content-Range: bytes */100000", "bytes */100000"),
        ("Content-Range: lines 50000-99999/100000", "lines 50000-99999/100000"),
        ("", ""),
        ("Content-Type: multipart/byteranges; boundary=x", "multipart/byteranges; boundary=x"),
    ] {
        let wrong = answer("206 Partial Content", headers, &content()[HALF..]);
        let server = Server::start(vec![cut_off("ETag: \"1\""), wrong]);
        let client = Client::new();
        let fault = client.fault(&content(), server.url(""));
        let expected = format!("content range is {found:?}, expected the bytes from 50000 on");
        assert_eq!(fault.to_string(), expected);
        assert_eq!(client.leftovers(), Vec::<PathBuf>::new());
    }
}

#[test]
fn longer_rest_than_its_range() {
    let range = "ETag: \"1\"\nContent-Range: bytes 50000-50001/100000";
    let wrong = answer("206 Partial Content", range, &content()[HALF..]);
    let server = Server::start(vec![cut_off("ETag: \"1\""), wrong]);
    let fault = Client::new().fault(&content(), server.url(""));
    assert!(matches!(fault, UrlFault::Range { .. }), "{fault}");
}

#[test]
fn bodies_that_are_asked_for_anew() {
    let etag = || cut_off("ETag: \"1\"");
    let part = |headers: &str, body: &[u8]| answer("206 Partial Content", headers, body);
    let range = format!("ETag: \"1\"\nContent-Range: bytes {HALF}-{}/{}", 2 * HALF - 1, 2 * HALF);
    for mut script in [
        // Nothing to ask for the rest with.
        vec![cut_off("")],
        vec![cut_off("ETag: W/\"1\"")],
        vec![cut_off("ETag: \"1\"\nAccept-Ranges: none")],
        // A rest that does not fit.
        vec![etag(), part(&range, &[0; HALF])],
        // Content that has changed meanwhile.
        vec![etag(), rest("ETag: \"2\"")],
        vec![etag(), rest("ETag: \"1\"\nContent-Encoding: gzip")],
        vec![etag(), part("Content-Range: bytes 50000-50002/50003", b"abc")],
        vec![etag(), answer("416 Range Not Satisfiable", "Content-Range: bytes */10", "")],
    ] {
        script.push(ok("ETag: \"2\"", content()));
        let server = Server::start(script);
        Client::new().gets(&content(), &[server.url("")]);
        assert!(!server.requests().last().unwrap().contains("range"));
    }
}

#[test]
fn rest_of_an_encoded_body() {
    let coded = zstd::bulk::compress(&content(), 1).unwrap();
    let half = coded.len() / 2;
    let start = |etag: &str| {
        let length = coded.len();
        let head = format!("200 OK\r\nContent-Length: {length}\r\nContent-Encoding: zstd");
        raw(format!("{head}\r\nETag: {etag}"), &coded[..half])
    };
    let range = format!(
        "ETag: \"1\"\nContent-Encoding: zstd\nContent-Range: bytes {half}-{}/{}",
        coded.len() - 1,
        coded.len()
    );
    let end = answer("206 Partial Content", &range, &coded[half..]);
    let server = Server::start(vec![start("\"1\""), end]);
    Client::new().gets(&content(), &[server.url("")]);
    let requests = server.requests();
    assert!(requests[1].contains(&format!("\r\nrange: bytes={half}-\r\n")), "{requests:?}");
    assert!(requests[1].contains("\r\naccept-encoding: zstd\r\n"), "{requests:?}");
    let whole = ok("Content-Encoding: zstd", coded.clone());
    let server = Server::start(vec![start("W/\"1\""), whole]);
    Client::new().gets(&content(), &[server.url("")]);
    assert!(!server.requests()[1].contains("range"));
}

// Redirects

#[test]
fn redirects_are_followed() {
    let other = Server::start(vec![ok("", content())]);
    let server = Server::start(vec![
        redirect("../b?x=1"),
        redirect("/c"),
        redirect(other.url("e").replace("http:", "")),
    ]);
    let first = Server::start(vec![redirect(server.url("a/a"))]);
    Client::new().gets(&content(), &[first.url("")]);
    let requests = server.requests();
    let lines: Vec<_> = requests.iter().map(|head| head.lines().next().unwrap()).collect();
    assert_eq!(lines, ["get /a/a http/1.1", "get /b?x=1 http/1.1", "get /c http/1.1"]);
}

#[test]
fn redirects_in_a_circle() {
    let server = Server::start((0..10).map(|_| redirect("/again")).collect());
    let fault = Client::new().fault(&content(), server.url(""));
    assert_eq!(fault.to_string(), "more than 5 redirects");
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn redirects_that_are_refused() {
    for (location, message) in [
        ("ftp://example.com/x", "scheme is \"ftp\", expected \"https\" or \"http\""),
        ("file:///etc/passwd", "scheme is \"file\", expected \"https\" or \"http\""),
        ("http://user:s3cret@127.0.0.1/", "URL has credentials, which are refused"),
        ("http://2130706433/", "URL has a number as its host, expected four with dots"),
        // Also where private hosts are allowed.
        ("http://169.254.169.254/latest/meta-data/", NO_STORE),
        ("http://[fe80::1]/", NO_STORE),
        ("http://[::ffff:169.254.169.254]/", NO_STORE),
        ("http://[fd00:ec2::254]/", NO_STORE),
    ] {
        let server = Server::start(vec![redirect(location)]);
        let fault = Client::new().fault(&content(), server.url(""));
        assert!(fault.to_string().starts_with("redirected to "), "{fault}");
        assert!(fault.to_string().ends_with(message), "{fault}");
        assert!(!fault.to_string().contains("s3cret"), "{fault}");
    }
}

const NO_STORE: &str = "expected one that is neither link-local nor a metadata service";

#[test]
fn redirect_without_a_location() {
    let server = Server::start(vec![answer("302 Found", "", "")]);
    let fault = Client::new().fault(&content(), server.url(""));
    assert_eq!(fault.to_string(), "status is 302, expected 200");
}

#[test]
fn failure_behind_a_redirect() {
    let server = Server::start(vec![redirect("/b?token=s3cret"), answer("404 None", "", "")]);
    let fault = Client::new().fault(&content(), server.url("a"));
    let expected = format!("redirected to {:?}: status is 404, expected 200", server.url("b"));
    assert_eq!(fault.to_string(), expected);
}

// The cache

#[test]
fn second_fetch_asks_nobody() {
    let server = Server::start(vec![ok("", content()), ok("", content())]);
    let client = Client::new();
    client.gets(&content(), &[server.url("x?token=s3cret")]);
    client.gets(&content(), &[server.url("x")]);
    let shown = server.url("x");
    assert_eq!(server.requests().len(), 1);
    let info = client.file(&content()).with_file_name("info.json");
    let info: serde_json::Value = serde_json::from_slice(&fs::read(info).unwrap()).unwrap();
    assert_eq!(info["url"], shown);
    assert_eq!(info["checked_bytes"], 2 * HALF);
}

#[test]
fn content_that_the_reference_fetched() {
    let client = Client::with(options().network(Network::Offline));
    let file = client.file(b"hello\n");
    let info = file.with_file_name("info.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "hello\n").unwrap();
    fs::write(&info, "{\n  \"url\": \"https://example.com/x\"\n}").unwrap();
    for _ in 0..2 {
        client.gets(b"hello\n", &[]);
        let info: serde_json::Value = serde_json::from_slice(&fs::read(&info).unwrap()).unwrap();
        assert_eq!(info["url"], "https://example.com/x");
        assert_eq!(info["checked_bytes"], 6);
    }
    fs::remove_file(&info).unwrap();
    client.gets(b"hello\n", &[]);
    assert!(info.exists());
}

#[test]
fn poisoned_content_is_fetched_again() {
    let server = Server::start((0..3).map(|_| ok("", content())).collect());
    let client = Client::new();
    client.gets(&content(), &[server.url("")]);
    let path = client.file(&content());
    // As long as before, and of another time.
    fs::write(&path, vec![0; 2 * HALF]).unwrap();
    fs::File::options().append(true).open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
    client.gets(&content(), &[server.url("")]);
    fs::write(&path, "poison").unwrap();
    let offline = options().network(Network::Offline);
    let offline = HttpFetcher::with_options(Cache::new(client.folder.path()), offline).unwrap();
    let error = offline.fetch(&Link::new(sha256(&content()), &[])).unwrap_err();
    assert!(matches!(error, FetchError::Offline { .. }));
    client.gets(&content(), &[server.url("")]);
    assert!(fs::read(client.file(&content())).unwrap() == content());
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn folder_in_the_place_of_content() {
    let server = Server::start(vec![ok("", content())]);
    let client = Client::new();
    fs::create_dir_all(client.file(&content()).join("x")).unwrap();
    client.gets(&content(), &[server.url("")]);
}

#[test]
fn offline() {
    let client = Client::with(options().network(Network::Offline));
    let error = client.fetch(b"hello\n", &["http://127.0.0.1:1/".to_owned()]).unwrap_err();
    assert_eq!(
        error,
        "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 is not in the \
         cache, and fetching is offline"
    );
    assert_eq!(fs::read_dir(client.folder.path()).unwrap().count(), 0);
}

#[test]
fn cache_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    let fetcher = HttpFetcher::with_options(Cache::new(&path), options()).unwrap();
    let urls = ["http://127.0.0.1:1/".to_owned()];
    let error = fetcher.fetch(&Link::new(Sha256([0; 32]), &urls)).unwrap_err();
    assert!(matches!(error, FetchError::Cache { .. }), "{error}");
}

#[test]
fn two_threads_fetch_once() {
    let server = Server::start(vec![ok("", content()), ok("", content())]);
    let (client, url) = (Client::new(), [server.url("")]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(client.fetch(&content(), &url).unwrap() == content()));
        }
    });
    assert_eq!(server.requests().len(), 1);
    assert_eq!(client.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn two_processes_fetch_once() {
    let server = Server::start(vec![ok("", content()), ok("", content())]);
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> =
        (0..2).map(|_| child(&server.url(""), folder.path(), "none").spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(server.requests().len(), 1);
}

// Where it may connect to

#[test]
fn private_hosts_are_refused() {
    let client = Client::with(options().hosts(Hosts::Public));
    for host in [
        "127.0.0.1",
        "127.1",
        "0",
        "0x7f000001",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fd00::1]",
        "localhost",
        "169.254.169.254",
        "10.0.0.1",
    ] {
        let fault = client.fault(b"", format!("http://{host}:1/"));
        let is_expected = matches!(
            fault,
            UrlFault::Address { .. }
                | UrlFault::Malformed("has a number as its host, expected four with dots")
        );
        assert!(is_expected, "{host}: {fault}");
    }
}

#[test]
fn only_https_by_default() {
    let client = Client::with(HttpOptions::default());
    for scheme in ["http", "file", "ftp", "gopher", "data"] {
        let fault = client.fault(b"", format!("{scheme}://example.com/"));
        assert_eq!(fault.to_string(), format!("scheme is {scheme:?}, expected \"https\""));
    }
}

#[test]
fn proxy_of_the_environment_is_not_asked() {
    let (server, proxy) = (Server::start(vec![ok("", content())]), Server::start(vec![]));
    let folder = tempfile::tempdir().unwrap();
    let mut child = child(&server.url(""), folder.path(), "none");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        child.env(name, proxy.url(""));
    }
    assert!(child.status().unwrap().success());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn proxy_of_the_environment_is_asked_when_wanted() {
    let connect: Answer = Box::new(|head, stream| {
        assert!(head.starts_with("connect files.example:80 http/1.1\r\n"), "{head}");
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        read_head(stream)?;
        ok("", content())(head, stream)
    });
    let proxy = Server::start(vec![connect]);
    let folder = tempfile::tempdir().unwrap();
    let mut child = child("http://files.example/", folder.path(), "environment");
    assert!(child.env("ALL_PROXY", proxy.url("")).status().unwrap().success());
}

/// A process that fetches the content into a folder.
fn child(url: &str, folder: &Path, proxy: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "http::in_a_child", "--nocapture"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env("CHILD_URL", url).env("CHILD_FOLDER", folder).env("CHILD_PROXY", proxy);
    command
}

#[test]
fn in_a_child() {
    let Ok(url) = std::env::var("CHILD_URL") else { return };
    let mut options = options().stall(Duration::from_secs(1)).min_rate(2 * HALF as u64);
    if std::env::var("CHILD_PROXY").unwrap() == "environment" {
        options = options.proxy(Proxy::Environment).hosts(Hosts::Public);
    }
    let cache = Cache::new(std::env::var("CHILD_FOLDER").unwrap());
    let fetcher = HttpFetcher::with_options(cache, options).unwrap();
    let fetched = fetcher.fetch(&Link::new(sha256(&content()), &[url])).unwrap();
    assert_eq!(fetched.source().len(), 2 * HALF as u64);
}

// TLS

/// A server with a certificate for `localhost`, and its authority in PEM.
fn tls_server(script: Vec<Answer>) -> (Server, String) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let server = Server::start_with(script, move |stream| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        Box::new(rustls::StreamOwned::new(connection, stream))
    });
    (server, pem)
}

#[test]
fn own_authority() {
    let (server, pem) = tls_server(vec![ok("", content())]);
    let client = Client::with(options().schemes(Schemes::Https).authorities(pem));
    client.gets(&content(), &[format!("https://localhost:{}/", server.port())]);
}

#[test]
fn unknown_issuer() {
    let (server, _) = tls_server(vec![ok("", content())]);
    let url = format!("https://localhost:{}/", server.port());
    let error = Client::new().fetch(&content(), &[url]).unwrap_err();
    assert!(error.ends_with("invalid peer certificate: UnknownIssuer"), "{error}");
}

#[test]
fn certificate_of_another_host() {
    let (server, pem) = tls_server(vec![ok("", content())]);
    let client = Client::with(options().authorities(pem));
    let url = format!("https://127.0.0.1:{}/", server.port());
    let error = client.fetch(&content(), &[url]).unwrap_err();
    assert!(error.contains("invalid peer certificate: certificate not valid for name"), "{error}");
}

#[test]
fn https_never_becomes_http() {
    let plain = Server::start(vec![ok("", content())]);
    let (server, pem) = tls_server(vec![redirect(plain.url("x"))]);
    let client = Client::with(options().authorities(pem));
    let fault = client.fault(&content(), format!("https://localhost:{}/", server.port()));
    let expected = format!("redirected to {:?}: redirect leads from https to http", plain.url("x"));
    assert_eq!(fault.to_string(), expected);
    assert_eq!(plain.requests().len(), 0);
}

#[test]
fn authorities_that_are_none() {
    for (pem, found) in [("", "without any"), ("-----BEGIN CERTIFICATE-----\nx", "malformed")] {
        let error = HttpFetcher::with_options(Cache::new("none"), options().authorities(pem));
        let expected =
            format!("text of certificate authorities is {found}, expected certificates in PEM");
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
}
