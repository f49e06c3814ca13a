//! Files at addresses of servers on this machine, which misbehave where a test says so.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use modelcrate::{
    AnyReader, Format, ReadOptions, SummaryOptions,
    carton_format::Pack,
    model_archive::{Archive, ArchiveWriter, EntryOptions},
    remote::{Location, Remote, RemoteOptions, Stats},
};
use tensor_core::{Chain, ErrorKind, Extent, Profile, TensorBuf, output::Existing};
use test_support::{
    assert_bytes, noise,
    server::{Answer, Served, Server, answer, header, ok, raw, redirect, stalled},
};

const BLOCK: usize = 4 << 10;

/// Blocks as small as they can be, and no patience.
fn options() -> RemoteOptions {
    RemoteOptions::default()
        .block_size(BLOCK as u64)
        .cache_size(64 << 10)
        .pause(Duration::from_millis(1))
        .timeout(Duration::from_secs(2))
}

fn remote() -> Remote {
    Remote::new(options())
}

fn location(text: impl AsRef<str>) -> Location {
    Location::parse(text.as_ref()).unwrap()
}

/// A server of one file with ranges.
fn serve(bytes: &[u8]) -> Server {
    let file = Served::new(bytes, "v1");
    Server::serve(move |request, stream| file.answer(request, stream))
}

fn read(remote: &Remote, url: &str) -> Result<Vec<u8>, String> {
    let opened = remote.open(&location(url)).map_err(|error| error.to_string())?;
    let whole = Extent::first(opened.source().len());
    let bytes = opened.source().read(whole, "file").map_err(|e| Chain(&e).to_string())?;
    Ok(bytes.to_vec())
}

#[track_caller]
fn fails(remote: &Remote, url: &str, message: &str) {
    let shown = url.split('?').next().unwrap_or_default();
    let error = read(remote, url).unwrap_err();
    assert_eq!(error.replace(&format!("{shown:?}: "), ""), message);
}

fn requests(remote: &Remote) -> u64 {
    remote.stats().requests
}

// What is read

#[test]
fn short_files_come_with_one_request() {
    for len in [0, 1, BLOCK - 1, BLOCK] {
        let bytes = noise(len);
        let (server, remote) = (serve(&bytes), remote());
        assert_bytes(&read(&remote, &server.url("file")).unwrap(), &bytes, "file");
        let seen = server.requests();
        assert_eq!(seen.len(), 1);
        assert_eq!(header(&seen[0], "range"), Some("bytes=0-4095"));
        let expected = (1, len as u64, 0);
        let Stats { requests, bytes, retries, .. } = remote.stats();
        assert_eq!((requests, bytes, retries), expected);
    }
}

#[test]
fn any_extent_reads_as_the_file_does() {
    let bytes = noise(BLOCK * 37 + 1234);
    let (server, remote) = (serve(&bytes), remote());
    let opened = remote.open(&location(server.url("file"))).unwrap();
    let source = opened.source();
    assert_eq!(source.len(), bytes.len() as u64);
    assert_eq!((opened.etag(), opened.fault()), (Some("\"v1\""), None));
    let mut state = 7_u64;
    for _ in 0..300 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let start = (state >> 33) as usize % bytes.len();
        let len = (state >> 7) as usize % (BLOCK * 4);
        let end = (start + len).min(bytes.len());
        let extent = Extent::between(start as u64, end as u64);
        assert_bytes(&source.read(extent, "part").unwrap(), &bytes[start..end], "part");
    }
    let beyond = Extent::between(0, bytes.len() as u64 + 1);
    assert!(source.read(beyond, "part").is_err());
}

#[test]
fn large_reads_are_made_of_several_requests() {
    let bytes = noise((40 << 20) + 5);
    let (server, remote) = (serve(&bytes), remote());
    assert_bytes(&read(&remote, &server.url("file")).unwrap(), &bytes, "file");
    // The start, and six parts of 8 MiB.
    assert_eq!(server.requests().len(), 7);
}

#[test]
fn streams_ask_for_more_and_more() {
    let bytes = noise(BLOCK * 256);
    let (server, remote) = (serve(&bytes), Remote::new(options().cache_size(4 << 20)));
    let opened = remote.open(&location(server.url("file"))).unwrap();
    for at in 0..256 {
        let extent = Extent::new(at * BLOCK as u64, BLOCK as u64).unwrap();
        let part = at as usize * BLOCK;
        assert_bytes(
            &opened.source().read(extent, "part").unwrap(),
            &bytes[part..part + BLOCK],
            "part",
        );
    }
    // 1, 2, 4, 8, 16 and then 32 blocks at a time: not one request a block.
    assert!(requests(&remote) <= 14, "{}", requests(&remote));
    assert_eq!(remote.stats().bytes, bytes.len() as u64, "nothing came twice");
}

#[test]
fn threads_share_what_comes() {
    let bytes = noise(BLOCK * 64);
    let (server, remote) = (serve(&bytes), Remote::new(options().cache_size(4 << 20)));
    let opened = remote.open(&location(server.url("file"))).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for at in (0..bytes.len()).step_by(1000) {
                    let end = (at + 1000).min(bytes.len());
                    let part = opened.source().read(Extent::between(at as u64, end as u64), "part");
                    assert_bytes(&part.unwrap(), &bytes[at..end], "part");
                }
            });
        }
    });
    assert_eq!(remote.stats().bytes, bytes.len() as u64, "nothing came twice");
}

#[test]
fn memory_is_bounded_by_the_cache() {
    let bytes = noise(BLOCK * 64);
    let (server, remote) = (serve(&bytes), Remote::new(options().cache_size(0)));
    let opened = remote.open(&location(server.url("file"))).unwrap();
    let first = |source: &tensor_core::Source| source.read(Extent::new(0, 10).unwrap(), "x");
    first(opened.source()).unwrap();
    let before = requests(&remote);
    first(opened.source()).unwrap();
    assert_eq!(requests(&remote), before, "eight blocks are kept");
    for at in (0..64).rev() {
        opened.source().read(Extent::new(at * BLOCK as u64, 1).unwrap(), "x").unwrap();
    }
    for at in 20..40 {
        opened.source().read(Extent::new(at * BLOCK as u64, 1).unwrap(), "x").unwrap();
    }
    let before = requests(&remote);
    first(opened.source()).unwrap();
    assert_eq!(requests(&remote), before + 1, "others took its place");
}

#[test]
fn no_runtime_is_in_the_way() {
    let (server, remote) = (serve(b"hello"), remote());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let found = runtime.block_on(async { read(&remote, &server.url("file")) });
    assert_eq!(found.unwrap(), b"hello");
}

// What opening costs

/// Opens a file as anybody does, and describes it; returns how many requests that took.
fn opened(bytes: &[u8], format: Format) -> u64 {
    opened_by(&Remote::new(RemoteOptions::default()), bytes, format)
}

fn opened_by(remote: &Remote, bytes: &[u8], format: Format) -> u64 {
    let server = serve(bytes);
    let options = ReadOptions::default().profile(Profile::Lenient);
    let reader = remote.reader(&location(server.url("m")), options).unwrap();
    assert_eq!(reader.format(), format);
    let opened = requests(remote);
    let summary = |reader: &AnyReader| {
        serde_json::to_value(reader.summary(SummaryOptions::default())).unwrap()
    };
    assert_eq!(summary(&reader), summary(&options.from_bytes(bytes.to_vec()).unwrap()));
    assert_eq!(requests(remote), opened, "{format}: a description costs nothing more");
    opened
}

/// Large tensors of a zTensor file, as one of another format.
fn large(target: &str) -> Vec<u8> {
    let elements: Vec<f32> = (0..1 << 18).map(|element| (element % 97) as f32).collect();
    let mut writer = ztensor::Writer::new(Vec::new());
    for at in 0..4 {
        let tensor = TensorBuf::from_slice([512, 512], &elements).unwrap();
        writer.add(&format!("layer.{at}"), &tensor).unwrap();
    }
    let reader = AnyReader::from_bytes(writer.finish().unwrap()).unwrap();
    let set = reader.tensor_set().unwrap();
    let options = modelcrate::ConvertOptions::default();
    let conversion = set.convert_to(target.parse().unwrap(), &options).unwrap();
    let mut bytes = Vec::new();
    for file in conversion.files() {
        file.write(&mut bytes, |_| ()).unwrap();
    }
    assert!(bytes.len() > 4 << 20);
    bytes
}

fn testdata(path: &str) -> Vec<u8> {
    std::fs::read(test_support::testdata(path)).unwrap()
}

/// An archive with an entry of 4 MiB among its others.
fn padded(archive: &[u8], name: &str) -> Vec<u8> {
    let archive = Archive::from_bytes(archive.to_vec()).unwrap();
    let mut writer = ArchiveWriter::new(Vec::new());
    let options = EntryOptions::default();
    for (at, entry) in archive.entries_by_offset().enumerate() {
        if at == archive.entries().len() / 2 {
            writer.add(name, &noise(4 << 20), &options).unwrap();
        }
        writer.add(entry.name(), &entry.bytes().unwrap(), &options).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn opening_asks_twice_at_most() {
    assert_eq!(opened(&large("zt"), Format::ZTensor), 2);
    assert_eq!(opened(&large("safetensors"), Format::Safetensors), 1);
    assert_eq!(opened(&large("gguf"), Format::Gguf), 1);
    // What follows the model data of version 2 is tensor data.
    let rten = testdata("rten/valid/all_ops.v2.rten");
    assert!(rten.len() > 10 * BLOCK);
    assert_eq!(opened_by(&remote(), &[&rten[..], &[0; 1 << 20]].concat(), Format::Rten), 2);
    assert_eq!(opened(&[&rten[..], &[0; 4 << 20]].concat(), Format::Rten), 1);
    let ptl = padded(&testdata("ptl/valid/torch251/zoo.ptl"), "zoo/extra/blob");
    assert_eq!(opened(&ptl, Format::Ptl), 2);
    let carton = testdata("carton/valid/ref_minimal.carton");
    let carton = carton_format::Reader::from_bytes(carton).unwrap();
    let mut pack = Pack::new(carton.description().unwrap()).unwrap();
    pack.file("model/weights", noise(4 << 20)).unwrap();
    let carton = pack.write(carton_format::Writer::new(Vec::new())).unwrap().sink;
    assert_eq!(opened(&carton, Format::Carton), 2);
    let package = testdata("nnpackage/valid/01_minimal_circle_stored.zip");
    let package = padded(&package, "metadata/blob");
    assert_eq!(opened(&package, Format::NnPackage), 2);
}

#[test]
fn arrays_of_npz_have_their_headers_beside_them() {
    // Start and end, and three of four arrays of 1 MiB, which neither has.
    assert_eq!(opened(&large("npz"), Format::Npz), 2 + 3);
}

// What servers do wrong

/// A server that answers the first requests by a script, and all others as it should.
fn faulty(bytes: &[u8], script: Vec<Answer>) -> Server {
    let file = Served::new(bytes, "v1");
    let script: Vec<_> = script.into_iter().map(|answer| Mutex::new(Some(answer))).collect();
    let next = AtomicUsize::new(0);
    Server::serve(move |request, stream| {
        let answer = script.get(next.fetch_add(1, Ordering::Relaxed));
        match answer.and_then(|answer| answer.lock().unwrap().take()) {
            Some(answer) => answer(request, stream),
            None => file.answer(request, stream),
        }
    })
}

/// An answer that is right, and comes in its turn.
fn right(bytes: &[u8]) -> Answer {
    let file = Served::new(bytes, "v1");
    Box::new(move |request, stream| file.answer(request, stream))
}

#[test]
fn what_fails_once_is_asked_for_again() {
    let bytes = noise(BLOCK * 3);
    let half = || {
        let range = "206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes 0-4095/12288";
        raw(format!("{range}\r\nContent-Length: 4096"), &bytes[..2000])
    };
    for (script, retries) in [
        (vec![answer("503 Service Unavailable", "", "")], 1),
        (vec![answer("429 Too Many Requests", "", ""), answer("500 Oops", "", "")], 2),
        (vec![half(), half()], 2),
        (vec![raw("HTTP", "")], 1),
        (vec![stalled("200 OK".to_owned(), Vec::new())], 1),
        (vec![right(&bytes), answer("503 Service Unavailable", "", "")], 1),
    ] {
        let server = faulty(&bytes, script);
        let remote = Remote::new(options().timeout(Duration::from_millis(300)));
        assert_bytes(&read(&remote, &server.url("file")).unwrap(), &bytes, "file");
        assert_eq!(remote.stats().retries, retries);
    }
}

#[test]
fn what_fails_always_is_an_error() {
    let remote = Remote::new(options().retries(2).timeout(Duration::from_millis(200)));
    let server =
        Server::serve(|request, stream| answer("503 Service Unavailable", "", "")(request, stream));
    fails(&remote, &server.url("file?token=s3cret"), "status is 503");
    assert_eq!(server.requests().len(), 3);
    let server =
        Server::serve(|request, stream| stalled("200 OK".to_owned(), Vec::new())(request, stream));
    fails(&remote, &server.url("file"), "no answer within 0 s");
    let short = Server::serve(|request, stream| {
        let head = "206 Partial Content\r\nContent-Range: bytes 0-4095/9999";
        raw(format!("{head}\r\nTransfer-Encoding: chunked"), "3\r\nabc\r\n0\r\n\r\n")(
            request, stream,
        )
    });
    fails(&remote, &short.url("file"), "answer has 3 bytes, expected 4096");
    let long = Server::serve(|request, stream| {
        let head = "206 Partial Content\r\nContent-Range: bytes 0-9/10";
        raw(format!("{head}\r\nTransfer-Encoding: chunked"), "b\r\nabcdefghijk\r\n0\r\n\r\n")(
            request, stream,
        )
    });
    fails(&remote, &long.url("file"), "answer has 11 bytes, expected 10");
    let nobody = Server::start(Vec::new());
    let url = nobody.url("file?token=s3cret");
    drop(nobody);
    let error = read(&remote, &url).unwrap_err();
    assert!(error.contains("connection failed") && !error.contains("s3cret"), "{error}");
}

#[test]
fn slow_answers_are_given_up() {
    // A byte now and then keeps the connection alive, but the answer takes too long as a whole.
    let slow = Server::serve(|_, stream| {
        let head = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4095/4096\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        (0..100).try_for_each(|_| {
            thread::park_timeout(Duration::from_millis(50));
            stream.write_all(b"x").and_then(|()| stream.flush())
        })
    });
    let remote = Remote::new(options().retries(0).timeout(Duration::from_millis(200)));
    let began = Instant::now();
    fails(&remote, &slow.url("file"), "no answer within 0 s");
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn slow_answers_that_come_on_are_read() {
    // Longer in all than the time that nothing may come, with and without ranges.
    let bytes = noise(BLOCK * 15);
    for status in ["200 OK", "206 Partial Content"] {
        let slow = bytes.clone();
        let server = Server::serve(move |_, stream| {
            let (end, len) = (BLOCK - 1, slow.len());
            let (body, range) = match status {
                "200 OK" => (&slow[..], String::new()),
                _ => (&slow[..BLOCK], format!("Content-Range: bytes 0-{end}/{len}\r\n")),
            };
            stream.write_all(format!("HTTP/1.1 {status}\r\n{range}\r\n").as_bytes())?;
            body.chunks(body.len().div_ceil(12)).try_for_each(|piece| {
                thread::park_timeout(Duration::from_millis(100));
                stream.write_all(piece).and_then(|()| stream.flush())
            })
        });
        let timeout = if status == "200 OK" { 400 } else { 2_000 };
        let options = options().retries(0).timeout(Duration::from_millis(timeout));
        let began = Instant::now();
        let opened = Remote::new(options).open(&location(server.url("file"))).unwrap();
        assert_eq!(opened.source().len(), bytes.len() as u64);
        assert!(began.elapsed() > Duration::from_millis(1_000));
    }
}

#[test]
fn lengths_that_lie() {
    let remote = Remote::new(options().retries(1));
    for (head, len, message) in [
        // Less came than was said.
        ("200 OK\r\nContent-Length: 500", 400, "answer has 400 bytes, expected 500"),
        (
            "206 Partial Content\r\nContent-Length: 500\r\nContent-Range: bytes 0-499/500",
            400,
            "answer has 400 bytes, expected 500",
        ),
        // What was said is not what the range has.
        (
            "206 Partial Content\r\nContent-Length: 400\r\nContent-Range: bytes 0-499/500",
            400,
            "answer has 400 bytes, expected 500",
        ),
        (
            "206 Partial Content\r\nContent-Length: 600\r\nContent-Range: bytes 0-499/500",
            600,
            "answer has 600 bytes, expected 500",
        ),
    ] {
        let server = Server::serve(move |request, stream| raw(head, vec![7; len])(request, stream));
        fails(&remote, &server.url("file"), message);
        assert_eq!(server.requests().len(), 2, "it may be whole the next time");
    }
}

#[test]
fn texts_of_servers_are_cut_and_escaped() {
    let odd = format!("bytes \u{1b}[2J{}", "x".repeat(10_000));
    for headers in [
        "Content-Encoding: gz\u{9b}ip".to_owned() + &"x".repeat(10_000),
        format!("Content-Range: {}", odd.replace('\u{1b}', "\t")),
    ] {
        let server = Server::serve(move |request, stream| {
            answer("206 Partial Content", &headers, "x")(request, stream)
        });
        let error = read(&remote(), &server.url("file")).unwrap_err();
        assert!(error.len() < 400 && !error.contains(char::is_control), "{error:?}");
    }
    let server = Server::serve(|request, stream| {
        let list =
            format!("[{{\"type\":\"file\",\"path\":1,\"x\":\"\\u001b{}\"}}]", "x".repeat(9_000));
        let text = list.replace("1,", &format!("{{\"{}\":1}},", "\\u001b".repeat(1_000)));
        ok("", if request.contains("/one/") { list } else { text })(request, stream)
    });
    let remote = Remote::new(options().endpoint(server.url("")));
    for repository in ["hf://owner/one", "hf://owner/two"] {
        let error = remote.list(&location(repository)).unwrap_err().to_string();
        assert!(error.len() < 400 && !error.contains(char::is_control), "{error:?}");
    }
}

#[test]
fn what_is_not_there_is_not_asked_for_again() {
    for (status, message, kind) in [
        ("404 Not Found", "is not there", ErrorKind::NotFound),
        ("410 Gone", "is not there", ErrorKind::NotFound),
        (
            "403 Forbidden",
            "access is denied (status 403): only a hub is shown a token: that of HF_TOKEN or its \
             usual file",
            ErrorKind::Io,
        ),
        ("400 Bad Request", "status is 400", ErrorKind::Io),
        (
            "206 Partial Content",
            "answer is of \"\", expected a range of a file of known length",
            ErrorKind::Io,
        ),
    ] {
        let server = Server::serve(move |request, stream| answer(status, "", "x")(request, stream));
        let remote = remote();
        fails(&remote, &server.url("file"), message);
        assert_eq!(remote.open(&location(server.url("file"))).unwrap_err().kind(), kind);
        assert_eq!((server.requests().len(), remote.stats().retries), (2, 0));
    }
}

#[test]
fn answers_of_another_range() {
    for (range, message) in [
        ("bytes 1-4096/9999", "answer is of 1..4097, expected 0..4096"),
        ("bytes 0-4094/9999", "answer is of 0..4095, expected 0..4096"),
        (
            "bytes 0-4095/*",
            "answer is of \"bytes 0-4095/*\", expected a range of a file of known length",
        ),
        (
            "bytes 0-4095/100",
            "answer is of \"bytes 0-4095/100\", expected a range of a file of known length",
        ),
    ] {
        let headers = format!("Content-Range: {range}");
        let server = Server::serve(move |request, stream| {
            answer("206 Partial Content", &headers, vec![0; 4096])(request, stream)
        });
        fails(&remote(), &server.url("file"), message);
    }
    let headers = "Content-Encoding: gzip\nContent-Range: bytes 0-4095/4096";
    let server = Server::serve(move |request, stream| {
        answer("206 Partial Content", headers, vec![0; 4096])(request, stream)
    });
    let message = "answer has content encoding \"gzip\", expected none";
    fails(&remote(), &server.url("file"), message);
}

#[test]
fn servers_without_ranges() {
    let bytes = noise(60_000);
    let whole = bytes.clone();
    let server = Server::serve(move |request, stream| ok("", &whole[..])(request, stream));
    let kept = remote();
    assert_bytes(&read(&kept, &server.url("file")).unwrap(), &bytes, "file");
    assert_eq!(server.requests().len(), 1);
    let chunked = Server::serve(|request, stream| {
        let body = "5\r\nhello\r\n0\r\n\r\n";
        raw("200 OK\r\nTransfer-Encoding: chunked", body)(request, stream)
    });
    assert_eq!(read(&kept, &chunked.url("file")).unwrap(), b"hello");
    let limit = "server sends no ranges, and the file is over the limit of 65536 bytes that are \
                 read whole";
    let announced = Server::serve(|request, stream| ok("", vec![0; 65_537])(request, stream));
    fails(&kept, &announced.url("file"), limit);
    let endless = Server::serve(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        (0..10_000).try_for_each(|_| stream.write_all(&[0; 1000]))
    });
    fails(&kept, &endless.url("file"), limit);
}

/// A server whose file becomes another one after so many requests.
fn changing(first: Served, second: Served, after: usize) -> Server {
    let count = AtomicUsize::new(0);
    Server::serve(move |request, stream| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) < after;
        if is_first { &first } else { &second }.answer(request, stream)
    })
}

#[test]
fn a_file_that_changes_is_an_error() {
    let (old, new) = (noise(BLOCK * 4), vec![0; BLOCK * 4]);
    let dated = |bytes: &[u8], headers: &str| Served {
        headers: headers.to_owned(),
        ..Served::new(bytes, "")
    };
    let (monday, tuesday) = (
        "Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT",
        "Last-Modified: Tue, 03 Nov 2026 10:00:00 GMT",
    );
    for (first, second, sends_match) in [
        (Served::new(&old[..], "v1"), Served::new(&new[..], "v2"), true),
        // Weak tags match nothing: they are compared by us.
        (dated(&old, "ETag: W/\"1\""), dated(&new, "ETag: W/\"2\""), false),
        (dated(&old, monday), dated(&new, tuesday), false),
        (dated(&old, monday), dated(&old[..BLOCK * 3], monday), false),
    ] {
        let server = changing(first, second, 1);
        let (remote, location) = (remote(), location(server.url("file")));
        let opened = remote.open(&location).unwrap();
        let read = opened.source().read(Extent::new(BLOCK as u64, 10).unwrap(), "tensor data");
        let error = Chain(&read.unwrap_err()).to_string();
        let message = "tensor data at byte 4096 could not be read: changed while it was read";
        assert_eq!(error, message);
        assert_eq!(opened.fault(), Some("changed while it was read"));
        let seen = server.requests();
        assert_eq!(seen.len(), 2, "a change is for good");
        assert_eq!(header(&seen[1], "if-match").is_some(), sends_match);
    }
    // A server that does not know If-Match.
    let ignoring = Server::serve({
        let (first, second, count) =
            (dated(&old, "ETag: \"1\""), dated(&new, "ETag: \"2\""), AtomicUsize::new(0));
        move |request, stream| {
            let request = request.replace("if-match", "x");
            let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
            if is_first { &first } else { &second }.answer(&request, stream)
        }
    });
    fails(
        &remote(),
        &ignoring.url("file"),
        "file at byte 0 could not be read: changed while it was read",
    );
}

#[test]
fn answers_that_prove_nothing() {
    let bytes = noise(BLOCK * 4);
    let with =
        |headers: &str| Served { headers: headers.to_owned(), ..Served::new(&bytes[..], "") };
    let monday = "Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT";
    let both = format!("ETag: W/\"1\"\n{monday}");
    for (first, then, message) in [
        ("ETag: W/\"1\"", "", "answer has no entity tag, which earlier ones had"),
        (&both, monday, "answer has no entity tag, which earlier ones had"),
        (monday, "", "answer has no time of change, which earlier ones had"),
        ("", monday, "changed while it was read"),
        ("", "ETag: W/\"1\"", "changed while it was read"),
    ] {
        let server = changing(with(first), with(then), 1);
        let (remote, location) = (remote(), location(server.url("file")));
        let opened = remote.open(&location).unwrap();
        let read = opened.source().read(Extent::new(BLOCK as u64, 10).unwrap(), "data");
        read.unwrap_err();
        assert_eq!(opened.fault(), Some(message));
    }
    // Where nothing names a version, the length is all there is.
    let server = changing(with(""), Served::new(&bytes[1..], ""), 1);
    let longer = Served { headers: String::new(), ..Served::new(&bytes[1..], "") };
    drop(server);
    let server = changing(with(""), longer, 1);
    fails(
        &remote(),
        &server.url("file"),
        "file at byte 0 could not be read: changed while it was read",
    );
}

#[test]
fn the_same_version_is_read_on() {
    let bytes = noise(BLOCK * 4);
    let monday = "Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT";
    for headers in ["ETag: W/\"1\"", monday, ""] {
        let file = Served { headers: headers.to_owned(), ..Served::new(&bytes[..], "") };
        let server = Server::serve(move |request, stream| file.answer(request, stream));
        let remote = remote();
        assert_bytes(&read(&remote, &server.url("file")).unwrap(), &bytes, headers);
        let opened = remote.open(&location(server.url("file"))).unwrap();
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_613_600);
        assert_eq!(opened.modified(), (headers == monday).then_some(expected));
    }
}

#[test]
fn redirects_are_followed() {
    let bytes = noise(BLOCK * 3);
    let file = serve(&bytes);
    let url = file.url("file?signature=s3cret");
    let server = Server::serve(move |request, stream| redirect(url.as_str())(request, stream));
    assert_bytes(&read(&remote(), &server.url("file")).unwrap(), &bytes, "file");
    let seen = file.requests();
    assert!(seen.len() == 2 && header(&seen[1], "if-match") == Some("\"v1\""), "{seen:?}");
    let circle = Server::serve(|request, stream| redirect("/again?s3cret")(request, stream));
    fails(&remote(), &circle.url("file"), "redirect leads to another more than 5 times");
}

#[test]
fn redirects_lead_nowhere_private() {
    for (to, message) in [
        (
            "http://192.0.2.1/x?s3cret",
            "redirect leads to \"http://192.0.2.1/x\": scheme is \"http\", expected \"https\": only \
             this machine is asked without encryption",
        ),
        (
            "https://169.254.169.254/latest?s3cret",
            "redirect leads to \"https://169.254.169.254/latest\": is not public",
        ),
        ("https://[fe80::1]/x", "redirect leads to \"https://[fe80::1]/x\": is not public"),
        ("ftp://h/x", "redirect leads to \"ftp://h/x\": scheme is \"ftp\", expected \"https\""),
        (
            "file:///etc/passwd",
            "redirect leads to \"file:///etc/passwd\": scheme is \"file\", expected \"https\"",
        ),
        ("http://[", "redirect leads to no address"),
    ] {
        let server = Server::serve(move |request, stream| redirect(to)(request, stream));
        let error = remote().open(&location(server.url("file"))).unwrap_err();
        assert_eq!(error.to_string(), format!("{:?}: {message}", server.url("file")));
        assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Io, 1));
    }
    // With the option, other hosts are asked by http, but none of the secrets of a cloud.
    let server =
        Server::serve(|request, stream| redirect("http://169.254.169.254/latest")(request, stream));
    let remote = Remote::new(options().allow_http(true));
    let error = remote.open(&location(server.url("file"))).unwrap_err().to_string();
    assert!(error.ends_with("\"http://169.254.169.254/latest\": is not public"), "{error}");
}

// Addresses

#[test]
fn only_this_machine_is_asked_without_encryption() {
    let error = remote().open(&location("http://192.0.2.1/file?s3cret")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"http://192.0.2.1/file\": scheme is \"http\", expected \"https\": only this machine is \
         asked without encryption"
    );
    assert_eq!(error.kind(), ErrorKind::Usage);
    for bucket in ["s3://bucket/key", "gs://bucket/key"] {
        let remote = Remote::new(options().endpoint("http://192.0.2.1:9000"));
        let error = remote.open(&location(bucket)).unwrap_err().to_string();
        assert!(error.contains("expected \"https\""), "{error}");
    }
}

#[test]
fn what_cannot_be_listed_or_written() {
    let remote = remote();
    let nothing = tensor_core::Source::from_bytes(Vec::new());
    for address in ["https://h.example/folder/", "folder"] {
        let error = remote.list(&location(address)).unwrap_err().to_string();
        assert_eq!(error, format!("{address:?}: cannot be listed: only buckets and hubs can"));
        let put = remote.put(&location(address), &nothing, Existing::Keep, |_| ());
        let expected = format!("{address:?}: cannot be written: only buckets can");
        assert_eq!(put.unwrap_err().to_string(), expected);
    }
    let error = remote.open(&location("s3://bucket/*.zt")).unwrap_err().to_string();
    assert_eq!(error, "\"s3://bucket/*.zt\": stands for several files, expected one");
}

#[test]
fn paths_are_opened_too() {
    let path = test_support::testdata("weights/model.safetensors");
    let remote = remote();
    let location = Location::from_path(&path);
    let opened = remote.open(&location).unwrap();
    assert!(opened.modified().is_some() && opened.etag().is_none());
    let reader = remote.reader(&location, ReadOptions::default()).unwrap();
    assert_eq!((reader.format(), remote.stats()), (Format::Safetensors, Stats::default()));
}

#[test]
fn shards_are_beside_their_index() {
    let files = ["model.safetensors.index.json", "model-00001-of-00002.safetensors"];
    let files = files.into_iter().chain(["model-00002-of-00002.safetensors"]);
    let files: Vec<_> =
        files.map(|name| (name, Served::new(testdata(&format!("weights/{name}")), name))).collect();
    let server = Server::serve(move |request, stream| {
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        match files.iter().find(|(name, _)| path == format!("/m/{name}?key=s3cret")) {
            Some((_, file)) => file.answer(request, stream),
            None => answer("404 Not Found", "", "")(request, stream),
        }
    });
    let index = location(server.url("m/model.safetensors.index.json?key=s3cret"));
    let reader = remote().reader(&index, ReadOptions::default()).unwrap();
    let local = test_support::testdata("weights/model.safetensors.index.json");
    let local = AnyReader::open(local).unwrap();
    let hash = |reader: &AnyReader| {
        let set = reader.tensor_set().unwrap();
        set.content_hash(tensor_core::parallel::available(), |_| ()).unwrap().digest
    };
    assert_eq!(hash(&reader), hash(&local));
}

#[test]
fn shards_of_ztensor_files_are_beside_them() {
    let server = Server::serve(move |request, stream| {
        let path = request.split_whitespace().nth(1).unwrap_or_default().trim_start_matches('/');
        match path {
            "shards.zt" | "shards-00001.zt" => {
                let bytes = testdata(&format!("ztensor/v2/valid/{path}"));
                Served::new(bytes, path).answer(request, stream)
            }
            _ => answer("404 Not Found", "", "")(request, stream),
        }
    });
    let reader =
        remote().reader(&location(server.url("shards.zt")), ReadOptions::default()).unwrap();
    assert!(reader.validate().is_empty(), "{:?}", reader.validate());
    let local = AnyReader::open(test_support::testdata("ztensor/v2/valid/shards.zt")).unwrap();
    let hash = |reader: &AnyReader| {
        let set = reader.tensor_set().unwrap();
        set.content_hash(tensor_core::parallel::available(), |_| ()).unwrap().digest
    };
    assert_eq!(hash(&reader), hash(&local));
}

#[test]
fn a_shard_that_cannot_be_read_is_a_fault() {
    let large = large("safetensors");
    let names: Vec<String> = (0..4).map(|at| format!("\"layer.{at}\":\"s.safetensors\"")).collect();
    let index = format!("{{\"weight_map\":{{{}}}}}", names.join(","));
    let (index, shard) = (Served::new(index.into_bytes(), "i"), Served::new(large, "s"));
    let count = AtomicUsize::new(0);
    let server = Server::serve(move |request, stream| {
        if request.contains("index") {
            return index.answer(request, stream);
        }
        // It opens, and then it cannot be read.
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => shard.answer(request, stream),
            _ => answer("503 Service Unavailable", "", "")(request, stream),
        }
    });
    let remote = Remote::new(options().retries(0));
    let index = location(server.url("m.safetensors.index.json"));
    let opened = remote.open(&index).unwrap();
    let reader = remote.reader_of(&opened, &index, ReadOptions::default()).unwrap();
    assert_eq!(opened.fault(), None);
    let set = reader.tensor_set().unwrap();
    set.content_hash(std::num::NonZeroUsize::MIN, |_| ()).unwrap_err();
    let shard = format!("{:?}: status is 503", server.url("s.safetensors"));
    assert_eq!(opened.fault(), Some(&*shard));
    let entry = modelcrate::catalog::Entry::at_address(&remote, &index);
    let (row, _) = entry.rows(modelcrate::catalog::CatalogOptions::default().hash(true));
    assert!(row.verdict == "unread" && row.error.unwrap().contains("status is 503"));
}

#[test]
fn addresses_that_differ_by_what_is_hidden_have_rows_of_their_own() {
    use modelcrate::catalog::{Catalog, CatalogOptions, Entry};
    let files = ["weights/model.safetensors", "ztensor/golden/aligned_4096.zt"].map(testdata);
    let server = Server::serve(move |request, stream| {
        let file = usize::from(request.contains("?key=2 "));
        Served::new(&files[file][..], &format!("v{file}")).answer(request, stream)
    });
    let folder = tempfile::tempdir().unwrap();
    let (output, remote) = (folder.path().join("c.jsonl"), remote());
    let make = |queries: &[&str]| {
        let entry =
            |query: &&str| Entry::at_address(&remote, &location(server.url(&format!("m{query}"))));
        let mut catalog = Catalog::create(&output, CatalogOptions::default()).unwrap();
        if output.exists() {
            catalog.update_from(&output).unwrap();
        }
        let unchanged =
            catalog.run(queries.iter().map(entry).collect(), |_, _| ()).unwrap().unchanged;
        let text = std::fs::read_to_string(&output).unwrap();
        assert!(!text.contains("key="), "{text}");
        let row = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let path = row["path"].as_str().unwrap().replace(&server.url("m"), "m");
            (path, row["format"].as_str().unwrap().to_owned())
        };
        (text.lines().map(row).collect::<Vec<_>>(), unchanged)
    };
    let row = |path: &str, format: &str| (path.to_owned(), format.to_owned());
    let both = vec![row("m", "safetensors"), row("m#1", "ztensor")];
    assert_eq!(make(&["?key=1", "?key=2", "?key=1"]), (both.clone(), 0));
    assert_eq!(make(&["?key=1", "?key=2"]), (both, 2));
    // What has nothing to hide is first.
    let three = [row("m", "safetensors"), row("m#1", "ztensor"), row("m#2", "safetensors")];
    assert_eq!(make(&["?key=2", "?key=1", ""]).0, three);
}

/// What is at a hub, and what its server is asked.
#[test]
fn hubs_have_files_and_lists() {
    let bytes = testdata("weights/model.safetensors");
    let file = Served::new(bytes.clone(), "v1");
    let server = Server::serve(move |request, stream| {
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        let host = header(request, "host").unwrap_or_default();
        match path {
            "/owner/name/resolve/main/a/model.safetensors"
            | "/owner/name/resolve/refs%2fpr%2f1/model.safetensors" => file.answer(request, stream),
            "/api/models/owner/name/tree/main?recursive=true" => {
                let next = format!("Link: <http://{host}/page2>; rel=\"next\"");
                let page =
                    r#"[{"type":"directory","path":"a"},{"type":"file","path":"x.txt","size":1}]"#;
                ok(&next, page)(request, stream)
            }
            "/page2" => ok("", r#"[{"type":"file","path":"a/model.safetensors","size":712}]"#)(
                request, stream,
            ),
            _ => answer("404 Not Found", "", "")(request, stream),
        }
    });
    let remote = Remote::new(options().endpoint(server.url("")));
    assert_bytes(&read(&remote, "hf://owner/name/a/model.safetensors").unwrap(), &bytes, "file");
    let names = |pattern: &str| {
        let listed = remote.list(&location(pattern)).unwrap();
        listed.iter().map(|listed| listed.location.to_string()).collect::<Vec<_>>()
    };
    let all = ["hf://owner/name/a/model.safetensors", "hf://owner/name/x.txt"];
    assert_eq!(names("hf://owner/name"), all);
    assert_eq!(names("hf://owner/name/**/*.safetensors"), all[..1]);
    let error = remote.list(&location("hf://owner/none/")).unwrap_err();
    assert_eq!(error.to_string(), "\"hf://owner/none/\": is not there");
    assert!(error.kind() == ErrorKind::NotFound);
}

#[test]
fn lists_of_hubs_that_are_refused() {
    for (name, reason) in [
        ("../a.zt", "\"../a.zt\" has a part that is empty, \".\" or \"..\""),
        ("a/../../b.zt", "\"a/../../b.zt\" has a part that is empty, \".\" or \"..\""),
        ("/etc/x.zt", "\"/etc/x.zt\" has a part that is empty, \".\" or \"..\""),
        ("a\\u001b[2J.zt", "\"a\\u{1b}[2J.zt\" has a control character"),
        ("a\\n.zt", "\"a\\n.zt\" has a control character"),
    ] {
        let page = format!(
            "[{{\"type\":\"file\",\"path\":\"b.zt\"}},{{\"type\":\"file\",\"path\":\"{name}\"}}]"
        );
        let server = Server::serve(move |request, stream| ok("", page.as_str())(request, stream));
        let remote = Remote::new(options().endpoint(server.url("")));
        let error = remote.list(&location("hf://owner/name")).unwrap_err();
        let expected = format!("\"hf://owner/name/\": list of files: name {reason}");
        assert_eq!((error.to_string(), error.kind()), (expected, ErrorKind::Io));
    }
}

/// Writes without end, until nobody listens.
fn endless(
    head: &str,
    piece: &str,
    stream: &mut dyn test_support::server::Stream,
) -> std::io::Result<()> {
    stream.write_all(head.as_bytes())?;
    (0..1 << 20).try_for_each(|_| stream.write_all(piece.as_bytes()))
}

#[test]
fn lists_without_end() {
    let limits = tensor_core::Limits::default().with_document_bytes(1 << 20).with_entries(500);
    let options = options().retries(0).limits(limits);
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    // One page that does not end, of a hub.
    let server = Server::serve(move |_, stream| {
        endless(head, "[{\"type\":\"file\",\"path\":\"a\"},", stream)
    });
    let list = |options: &RemoteOptions, server: &Server, address: &str| {
        let remote = Remote::new(options.clone().endpoint(server.url("")));
        remote.list(&location(address)).unwrap_err().to_string()
    };
    let too_long =
        "document of the server: is over the limit of 1048576 bytes (Limits::document_bytes)";
    let hub = "\"hf://owner/name/\": ";
    assert_eq!(list(&options, &server, "hf://owner/name"), format!("{hub}{too_long}"));
    // Pages that lead to themselves.
    let server = Server::serve(|request, stream| {
        let host = header(request, "host").unwrap_or_default();
        let next = format!("Link: <http://{host}/again>; rel=\"next\"");
        ok(&next, r#"[{"type":"file","path":"a.zt"}]"#)(request, stream)
    });
    let many = "list of files: number of files is 501, over the limit of 500 (Limits::entries)";
    assert_eq!(list(&options, &server, "hf://owner/name"), format!("{hub}{many}"));
}
