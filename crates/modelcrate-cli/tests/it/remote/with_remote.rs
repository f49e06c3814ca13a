use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
};

use test_support::{
    bucket::BucketServer,
    noise,
    server::{Served, Server, answer, header, ok, redirect, stalled},
    testdata,
};

/// Returns a command that finds the bucket, and no credentials of whoever runs the tests.
fn command(bucket: Option<&BucketServer>, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modelcrate"));
    command.current_dir(std::env::temp_dir()).args(args);
    command.env("AWS_SKIP_SIGNATURE", "true").env("AWS_CONFIG_FILE", "/none");
    command.env_remove("HF_TOKEN").env("HF_TOKEN_PATH", "/none");
    if let Some(bucket) = bucket {
        command.env("AWS_ENDPOINT_URL", bucket.endpoint());
    }
    command
}

fn run(bucket: Option<&BucketServer>, args: &[&str]) -> Output {
    let output = command(bucket, args).output().unwrap();
    crate::schema::check(args, &output.stdout);
    output
}

/// Runs a command that has to succeed; returns what it printed.
#[track_caller]
fn prints(bucket: Option<&BucketServer>, args: &[&str]) -> String {
    let output = run(bucket, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that has to fail; returns its status and what it said.
#[track_caller]
fn fails(bucket: Option<&BucketServer>, args: &[&str]) -> (Option<i32>, String) {
    let output = run(bucket, args);
    assert!(!output.status.success(), "{args:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A server of all test data, by their paths in lower case.
fn site() -> Server {
    Server::serve(|request, stream| {
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        let path = path.trim_start_matches('/').split('?').next().unwrap_or_default();
        match fs::read(testdata(path)) {
            Ok(bytes) => Served::new(bytes, path).answer(request, stream),
            Err(_) => answer("404 Not Found", "", "")(request, stream),
        }
    })
}

#[test]
fn commands_read_addresses_as_they_do_paths() {
    let (server, folder) = (site(), tempfile::tempdir().unwrap());
    let out = |name: &str| folder.path().join(name).display().to_string();
    let (safetensors, rten, zt) =
        ("weights/model.safetensors", "rten/valid/mlp.v2.rten", "ztensor/golden/aligned_4096.zt");
    let (carton, ptl, zip) = (
        "carton/valid/ref_minimal.carton",
        "ptl/valid/torch251/zoo.ptl",
        "nnpackage/valid/01_minimal_circle_stored.zip",
    );
    let npy = "weights/rows.npy";
    for (file, args) in [
        (safetensors, &["inspect", "--format", "json", "--stats", "--digests", "FILE"][..]),
        (zt, &["verify", "--format", "json", "FILE"]),
        (zt, &["hash", "FILE"]),
        (safetensors, &["diff", "FILE", "FILE"]),
        (carton, &["cat", "FILE", "carton.toml"]),
        (ptl, &["extract", "FILE", "-o", "OUT"]),
        (rten, &["graph", "FILE"]),
        (safetensors, &["convert", "FILE", "OUT.zt"]),
        (rten, &["convert", "FILE", "OUT.onnx"]),
        (npy, &["create", "OUT.zt", "--put", "w=FILE"]),
        (safetensors, &["create", "OUT.zt", "--from", "FILE"]),
        (zt, &["edit", "FILE", "-o", "OUT.zt", "--set", "a=b"]),
        (carton, &["unpack", "FILE", "OUT"]),
        (rten, &["rten", "requires", "FILE"]),
        (carton, &["carton", "hash", "FILE"]),
        (carton, &["carton", "platforms", "FILE"]),
        (zip, &["nnpackage", "config", "FILE"]),
        (ptl, &["ptl", "code", "FILE"]),
        (ptl, &["ptl", "spec", "FILE"]),
    ] {
        let of = |file: &str, made: &str| {
            let made = out(made);
            let args: Vec<String> =
                args.iter().map(|arg| arg.replace("FILE", file).replace("OUT", &made)).collect();
            let printed = prints(None, &args.iter().map(String::as_str).collect::<Vec<_>>());
            // Whatever was made is thrown away for the next one.
            let parts = args.iter().filter(|arg| arg.starts_with(&made));
            let bytes = parts.map(|path| content(Path::new(path))).collect::<Vec<_>>();
            (printed.replace(file, "FILE").replace(&made, "OUT"), bytes)
        };
        let local = of(&testdata(file).display().to_string(), "local");
        let remote = of(&server.url(file), "remote");
        assert_eq!(remote, local, "{args:?}");
    }
}

/// Returns the content of a file or folder, which is gone then.
fn content(path: &Path) -> Vec<(String, Vec<u8>)> {
    if path.is_file() {
        let bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        return vec![(String::new(), bytes)];
    }
    let mut found = Vec::new();
    for name in test_support::names(path) {
        let inside = content(&path.join(&name)).into_iter();
        found.extend(inside.map(|(rest, bytes)| (format!("{name}/{rest}"), bytes)));
    }
    fs::remove_dir(path).unwrap();
    found
}

#[test]
fn requests_are_counted_where_that_is_asked() {
    let server = site();
    let url = server.url("weights/model.safetensors");
    let output = run(None, &["inspect", "--requests", &url]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "1 requests, 268 B, 0 made again\n");
}

#[test]
fn secrets_are_never_printed() {
    let server = site();
    let file = server.url("weights/model.safetensors?signature=s3cret");
    let none = server.url("none.zt?signature=s3cret");
    let put = format!("w={none}");
    let user = "https://user:s3cret@h.example/x";
    let (joined, joined_put) = (format!("-o{none}"), format!("--put={put}"));
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("c.jsonl").display().to_string();
    // The same name without a secret is another file.
    let bare = server.url("none.zt");
    for args in [
        &["inspect", &file][..],
        &["inspect", "--format", "json", &file],
        &["verify", "-v", &file, &none],
        &["verify", "--format", "sarif", &file, &none],
        &["hash", &file, &none],
        &["diff", &file, &none],
        &["convert", &file, "x.none"],
        &["create", "/none/x.zt", "--put", &put],
        &["edit", &file, "--set", "a=b"],
        &["inspect", user],
        &["inspect", "https://127.0.0.1:1/x?signature=s3cret"],
        &["unknown", &file],
        &["verify", &bare, &none],
        &["catalog", &file, &none, "-o", &rows],
        &["catalog", &file, &joined],
        &["edit", &file, &joined, "--set", "a=b"],
        &["create", "/none/x.zt", &joined_put],
        &["create", "/none/x.zt", "--put", "w=ftp://user:s3cret@h/x"],
        &["create", "/none/x.zt", "--set", "a:=https://h/x?s3cret"],
        &["inspect", "--unknown=https://h.example/x?s3cret"],
        &["inspect", "--format=https://h.example/x?s3cret", "x"],
        &["inspect", "ftp://user:s3cret@h.example/x?s3cret"],
        &["inspect", "s3://b/x?X-Amz-Signature=s3cret"],
        &["verify", "s3://b/*.zt?X-Amz-Signature=s3cret"],
        &["inspect", "s3://key:s3cret@b/x"],
        &["inspect", "https:/h.example/x?signature=s3cret"],
        &["inspect", "https://user:s3/cret@h.example/x", "https://user:s3c/s3cret@h.example/x"],
        &["convert", &file, "s3://key:s3cret@b/x.zt"],
        &["hash", "hf://owner/name/x?token=s3cret"],
        &["hash", "hf://owner/name@v1?token=s3cret"],
        &["hash", "s3://b?X-Amz-Signature=s3cret"],
    ] {
        let output = run(None, args);
        for text in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(text).contains("s3cret"), "{args:?}");
        }
    }
    assert!(!fs::read_to_string(rows).unwrap().contains("s3cret"));
    // The server did get the query, and of one address only that.
    assert!(server.seen().iter().any(|request| request.contains("get /none.zt http")));
    assert!(server.seen().iter().any(|request| request.contains("signature=s3cret")));
}

#[test]
fn what_is_kept_of_an_address_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let zt = folder.path().join("x.zt").display().to_string();
    let source = "https://h.example/model?revision=2#top";
    let npy = testdata("weights/rows.npy").display().to_string();
    let sets = [format!("source={source}"), format!("also:=[\"{source}\", 1]")];
    let put = format!("w={npy}");
    prints(None, &["create", &zt, "--put", &put, "--set", &sets[0], "--set", &sets[1]]);
    let shown = prints(None, &["inspect", "--format", "json", &zt]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let metadata = &shown["files"][0]["metadata"];
    assert_eq!(metadata["source"], source);
    assert_eq!(metadata["also"], serde_json::json!([source, 1]).to_string());
}

#[test]
fn no_proxy_stands_between_unless_that_is_asked_for() {
    let (bucket, server) = (bucket(), site());
    let proxy = Server::serve(|request, stream| {
        let bytes = fs::read(testdata("weights/model.safetensors")).unwrap();
        assert!(request.starts_with("get http://"), "as proxies are asked");
        Served::new(bytes, "v1").answer(request, stream)
    });
    let url = server.url("weights/model.safetensors");
    for address in [&url, "s3://bucket/models/a.safetensors"] {
        for option in [None, Some("--use-env-proxy")] {
            let args: Vec<&str> = ["hash", address].into_iter().chain(option).collect();
            let before = proxy.seen().len();
            let mut command = command(Some(&bucket), &args);
            for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
                command.env(name, proxy.url(""));
            }
            command.env_remove("no_proxy").env_remove("NO_PROXY").env_remove("REQUEST_METHOD");
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(proxy.seen().len() > before, option.is_some(), "{args:?}");
        }
    }
}

#[test]
fn http_is_for_this_machine_unless_that_is_asked_for() {
    // Nobody answers at an address for documentation; only the first is refused before it is asked.
    let (status, said) = fails(None, &["inspect", "http://192.0.2.1:9/x"]);
    let expected = "error: http://192.0.2.1:9/x: scheme is \"http\", expected \"https\": only this machine \
                    is asked without encryption (--allow-http takes it)\n";
    assert_eq!((status, &*said), (Some(2), expected));
    let server = Server::serve(|request, stream| redirect("http://h.invalid/x")(request, stream));
    let url = server.url("x");
    let (_, said) = fails(None, &["inspect", &url]);
    assert!(said.contains("redirect leads to \"http://h.invalid/x\": scheme is"), "{said}");
    let (status, said) = fails(None, &["inspect", "--allow-http", &url]);
    assert!(status == Some(2) && said.contains("connection failed: "), "{said}");
}

#[test]
fn folders_at_file_addresses_are_walked() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("a b");
    fs::create_dir(&models).unwrap();
    fs::copy(testdata("weights/model.safetensors"), models.join("m.safetensors")).unwrap();
    fs::copy(testdata("ztensor/golden/aligned_4096.zt"), models.join("m.zt")).unwrap();
    let url = format!("file://{}", models.display()).replace(' ', "%20");
    let local = models.display().to_string();
    let output = folder.path().join("c.jsonl").display().to_string();
    for args in [&["verify", "FILE"][..], &["catalog", "FILE", "-o", &output, "--format", "json"]] {
        let of = |at: &str| {
            let args: Vec<&str> =
                args.iter().map(|arg| arg.replace("FILE", at).leak() as &str).collect();
            prints(None, &args)
        };
        let first = of(&url);
        assert_eq!(first.replace("\"unchanged\":0", "\"unchanged\":2"), of(&local));
    }
    assert_eq!(fs::read_to_string(&output).unwrap().lines().count(), 2);
    let file = format!("{url}/m.zt");
    assert_eq!(
        prints(None, &["hash", &file]).split_whitespace().next(),
        prints(None, &["hash", &format!("{local}/m.zt")]).split_whitespace().next()
    );
    let (status, said) = fails(None, &["verify", "file:///none/x.zt"]);
    assert!(status == Some(2) && said.starts_with("error: /none/x.zt: "), "{said}");
}

#[test]
fn a_token_goes_to_the_hub_alone() {
    let content = Server::serve(|request, stream| {
        let bytes = fs::read(testdata("weights/model.safetensors")).unwrap();
        Served::new(bytes, "v1").answer(request, stream)
    });
    // Another host for the client, as it has another name.
    let there = content.url("file").replace("127.0.0.1", "localhost");
    let hub = Server::serve(move |request, stream| redirect(there.as_str())(request, stream));
    let mut command = command(None, &["inspect", "hf://owner/name/model.safetensors"]);
    let output = command.env("HF_TOKEN", "s3cret").env("HF_ENDPOINT", hub.url("")).output();
    assert!(output.unwrap().status.success());
    assert_eq!(header(&hub.requests()[0], "authorization"), Some("bearer s3cret"));
    assert_eq!(header(&content.requests()[0], "authorization"), None);
}

#[test]
fn an_address_is_no_place_for_an_edit() {
    for (args, said) in [
        (
            &["edit", "s3://b/x.zt", "--set", "a=b"][..],
            "s3://b/x.zt: is an address, which cannot be edited in place: say with -o where the \
             result goes",
        ),
        (
            &["compact", "s3://b/x.zt"],
            "s3://b/x.zt: is an address, which cannot be edited in place",
        ),
        (
            &["recover", "s3://b/x.zt"],
            "s3://b/x.zt: is an address, which cannot be edited in place",
        ),
        (
            &["extract", "s3://b/x.zt", "-o", "s3://b/y"],
            "s3://b/y: is an address, expected a folder of this machine",
        ),
        (
            &["unpack", "s3://b/x.carton", "s3://b/y"],
            "s3://b/y: is an address, expected a folder of this machine",
        ),
        (
            &["convert", "s3://b/x.zt", "https://h.example/x.npz"],
            "https://h.example/x.npz: is an address that cannot be written, expected one of a bucket",
        ),
        (
            &["convert", "s3://b/x.zt", "s3://b/y/", "--to", "npz"],
            "s3://b/y/: is a folder or a pattern, expected the address of a file",
        ),
        (
            &["convert", "s3://b/x.zt", "s3://b/x.zt"],
            "s3://b/x.zt: is the input, expected another file",
        ),
    ] {
        let (status, found) = fails(None, args);
        assert_eq!(status, Some(2), "{found}");
        assert!(found.starts_with(&format!("error: {said}")), "{args:?}: {found}");
    }
}

#[test]
fn what_cannot_be_read_is_no_fault_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let zt = folder.path().join("x.zt").display().to_string();
    prints(None, &["convert", &large(folder.path()), &zt]);
    let (old, count) = (Served::new(fs::read(zt).unwrap(), "v1"), AtomicUsize::new(0));
    let new = Served { headers: "ETag: \"v2\"".to_owned(), ..old.clone() };
    let server = Server::serve(move |request, stream| {
        // It opens, and then it is another one.
        let is_old = count.fetch_add(1, Ordering::Relaxed) % 3 < 2;
        if is_old { &old } else { &new }.answer(request, stream)
    });
    for args in [&["verify"][..], &["inspect", "--stats"]] {
        let url = server.url("x.zt");
        let (status, said) = fails(None, &[args, &[&url]].concat());
        assert_eq!(status, Some(2), "{said}");
        let expected = format!("error: {url}: changed while it was read\n");
        assert!(said.starts_with(&expected), "{said}");
    }
}

// Buckets

fn bucket() -> BucketServer {
    let bucket = BucketServer::start();
    for (key, file) in [
        ("models/a.safetensors", "weights/model.safetensors"),
        ("models/b/c.zt", "ztensor/golden/aligned_4096.zt"),
        ("models/b/broken.zt", "ztensor/invalid/digest_crc_wrong.zt"),
        ("models/readme.txt", "weights/README.md"),
        ("models/.hidden.zt", "ztensor/golden/aligned_4096.zt"),
    ] {
        bucket.put(key, fs::read(testdata(file)).unwrap());
    }
    bucket
}

#[test]
fn folders_and_patterns_of_buckets() {
    let bucket = bucket();
    let (status, said) = fails(Some(&bucket), &["verify", "-q", "s3://bucket/models/"]);
    assert_eq!((status, &*said), (Some(1), ""));
    let report = run(Some(&bucket), &["verify", "--format", "json", "s3://bucket/models/"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let files = report["files"].as_array().unwrap();
    let text = |file: &serde_json::Value, key: &str| file[key].as_str().unwrap().to_owned();
    let found = files.iter().map(|file| (text(file, "path"), text(file, "verdict")));
    let expected = [
        ("s3://bucket/models/a.safetensors", "valid"),
        ("s3://bucket/models/b/broken.zt", "invalid"),
        ("s3://bucket/models/b/c.zt", "valid"),
    ];
    let expected = expected.map(|(path, verdict)| (path.to_owned(), verdict.to_owned()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(report["summary"]["skipped"], 2);
    let shown = prints(Some(&bucket), &["inspect", "s3://bucket/models/*.safetensors"]);
    assert!(shown.starts_with("s3://bucket/models/a.safetensors\n"), "{shown}");
    let (status, said) = fails(Some(&bucket), &["verify", "s3://bucket/none/"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("s3://bucket/none/: has no model file"), "{said}");
    let (status, said) = fails(Some(&bucket), &["inspect", "s3://bucket/models"]);
    assert_eq!(status, Some(2));
    assert_eq!(said, "error: s3://bucket/models: is not there (a folder ends in a slash)\n");
}

#[test]
fn catalogues_of_buckets_ask_once() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    let output = folder.path().join("c.jsonl").display().to_string();
    let args = ["catalog", "s3://bucket/models/", "-o", &output, "--tensors", "--requests"];
    let made = |said: &str| {
        let output = run(Some(&bucket), &args);
        assert!(output.status.success());
        assert!(String::from_utf8(output.stderr).unwrap().starts_with(said), "{said}");
    };
    // A list, and one for each of three short files.
    made("4 requests, ");
    let first = fs::read_to_string(&output).unwrap();
    crate::schema::check_rows("catalog-file", &first);
    assert!(first.contains("\"etag\":\"\\\"tag-models-a.safetensors\\\"\""), "{first}");
    // Only a list, as nothing has changed.
    made("1 requests, 0 B");
    assert_eq!(fs::read_to_string(&output).unwrap(), first);
}

#[test]
fn a_list_that_fails_keeps_the_old_catalogue() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (output, other) = (path("c.jsonl"), path("other.jsonl"));
    prints(Some(&bucket), &["catalog", "s3://bucket/models/", "-o", &output]);
    let before = fs::read_to_string(&output).unwrap();
    let broken =
        Server::serve(|request, stream| answer("400 Bad Request", "", "")(request, stream));
    for more in [&["-o", &*output][..], &["-o", &other, "--from", &output]] {
        let args = [&["catalog", "s3://bucket/models/"], more].concat();
        let refused =
            command(None, &args).env("AWS_ENDPOINT_URL", broken.url("")).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert_eq!(said, "error: s3://bucket/models/: status is 400\n");
    }
    assert_eq!(fs::read_to_string(&output).unwrap(), before);
    assert_eq!(test_support::names(folder.path()), ["c.jsonl"]);
}

#[test]
fn what_a_store_says_beyond_a_status_is_not_printed() {
    for status in ["401 x", "403 x", "404 x", "409 x", "412 x", "400 x", "500 x"] {
        let server = Server::serve(move |request, stream| {
            answer(status, "", "<Error><Message>s3cret</Message></Error>")(request, stream)
        });
        for args in [&["hash", "s3://b/x.zt"][..], &["verify", "s3://b/"]] {
            let mut command = command(None, args);
            let output = command.env("AWS_ENDPOINT_URL", server.url("")).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(2) && !said.contains("s3cret"), "{said}");
        }
    }
}

#[test]
fn odd_keys_are_told_and_hide_no_others() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    let output = folder.path().join("c.jsonl").display().to_string();
    let bytes = fs::read(testdata("ztensor/golden/aligned_4096.zt")).unwrap();
    for key in ["models//empty.zt", "models/../up.zt", "models/b/"] {
        bucket.put(key, bytes.clone());
    }
    let made = run(Some(&bucket), &["catalog", "s3://bucket/models/", "-o", &output]);
    assert!(made.status.success());
    let rows = fs::read_to_string(&output).unwrap();
    let rows = rows.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let rows: Vec<_> =
        rows.map(|row| (text(&row["path"]), text(&row["verdict"]), text(&row["error"]))).collect();
    let paths: Vec<_> = rows.iter().map(|(path, verdict, _)| (&**path, &**verdict)).collect();
    let expected = [
        ("s3://bucket/models/../up.zt", "unread"),
        ("s3://bucket/models//empty.zt", "unread"),
        ("s3://bucket/models/a.safetensors", "valid"),
        ("s3://bucket/models/b/broken.zt", "valid"),
        ("s3://bucket/models/b/c.zt", "valid"),
    ];
    assert_eq!(paths, expected);
    let reason = "key has a part that is empty, \".\" or \"..\"";
    assert!(rows[..2].iter().all(|(.., error)| error.ends_with(reason)), "{rows:?}");
    let (status, said) = fails(Some(&bucket), &["verify", "-q", "s3://bucket/models/*/*.zt"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains(&format!("s3://bucket/models//empty.zt: {reason}")), "{said}");
}

#[test]
fn keys_with_wildcards_have_addresses() {
    let bucket = bucket();
    let bytes = fs::read(testdata("weights/model.safetensors")).unwrap();
    for key in ["odd/a?b.safetensors", "odd/[x]*.safetensors"] {
        bucket.put(key, bytes.clone());
    }
    let listed = prints(Some(&bucket), &["verify", "--format", "jsonl", "s3://bucket/odd/"]);
    let paths = listed.lines().map(|line| {
        let file: serde_json::Value = serde_json::from_str(line).unwrap();
        file["path"].as_str().unwrap().to_owned()
    });
    let paths: Vec<String> = paths.collect();
    let expected = ["s3://bucket/odd/[[]x][*].safetensors", "s3://bucket/odd/a[?]b.safetensors"];
    assert_eq!(paths, expected);
    // What is printed can be asked for, and written.
    prints(Some(&bucket), &["diff", &paths[0], &paths[1]]);
    prints(Some(&bucket), &["convert", &paths[0], "s3://bucket/odd/new[?].zt"]);
    assert!(bucket.get("odd/new?.zt").is_some());
}

#[test]
fn a_list_without_end_is_an_error() {
    let server = Server::serve(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n<ListBucketResult>")?;
        let object = "<Contents><Key>a.zt</Key><Size>1</Size></Contents>".repeat(1_000);
        (0..1_000).try_for_each(|_| stream.write_all(object.as_bytes()))
    });
    let mut command = command(None, &["verify", "s3://bucket/"]);
    let output = command.env("AWS_ENDPOINT_URL", server.url("")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = "error: s3://bucket/: document of the server: is over the limit of 16777216 bytes \
                    (Limits::document_bytes)\n";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(server.requests().len(), 1, "it would be no shorter the next time");
}

#[test]
fn a_shard_that_cannot_be_read_is_no_fault_of_the_model() {
    let server = Server::serve(|request, stream| {
        let path = request.split_whitespace().nth(1).unwrap_or_default().trim_start_matches('/');
        match path {
            "weights/model-00002-of-00002.safetensors" => {
                answer("400 Bad Request", "", "")(request, stream)
            }
            _ => Served::new(fs::read(testdata(path)).unwrap(), path).answer(request, stream),
        }
    });
    let url = server.url("weights/model.safetensors.index.json");
    let (status, said) = fails(None, &["verify", &url]);
    let shard = server.url("weights/model-00002-of-00002.safetensors");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains(&format!("{url}: {shard:?}: opening failed: status is 400")), "{said}");
}

#[test]
fn a_catalogue_that_is_killed_is_taken_up() {
    use std::sync::{Arc, atomic::AtomicBool};
    let is_stalled = Arc::new(AtomicBool::new(true));
    let stalls = Arc::clone(&is_stalled);
    let server = Server::serve(move |request, stream| {
        if request.contains("/c.zt") && stalls.load(Ordering::Relaxed) {
            return stalled("200 OK".to_owned(), Vec::new())(request, stream);
        }
        let bytes = fs::read(testdata("ztensor/golden/aligned_4096.zt")).unwrap();
        Served::new(bytes, "v1").answer(request, stream)
    });
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("c.jsonl").display().to_string();
    let urls = ["a.zt", "b.zt", "c.zt"].map(|name| server.url(name));
    let args = [&["catalog", "-o", &output][..], &urls.each_ref().map(|url| &**url)].concat();
    let mut child = command(None, &args).spawn().unwrap();
    let journal = folder.path().join("c.jsonl.part");
    let has_two = || fs::read_to_string(&journal).is_ok_and(|text| text.lines().count() == 2);
    let came = (0..1_000).any(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(10));
        has_two()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(came && !Path::new(&output).exists());
    is_stalled.store(false, Ordering::Relaxed);
    let before = server.seen().len();
    let made = prints(None, &args);
    assert!(made.contains("3 files, 2 unchanged"), "{made}");
    assert!(!journal.exists());
    // Web servers have no lists: two are asked whether they have changed, and the third is read.
    assert_eq!(server.seen().len() - before, 3);
}

#[test]
fn results_go_to_buckets() {
    let bucket = bucket();
    let args = ["convert", "s3://bucket/models/a.safetensors", "s3://bucket/new/a.zt"];
    let printed = prints(Some(&bucket), &args);
    assert!(
        printed.starts_with("s3://bucket/new/a.zt: written as ztensor, 3 tensors"),
        "{printed}"
    );
    prints(Some(&bucket), &["diff", args[1], args[2]]);
    let (status, said) = fails(Some(&bucket), &args);
    assert_eq!(status, Some(2));
    let expected = "error: s3://bucket/new/a.zt: is there already (--overwrite replaces it)\n";
    assert_eq!(said, expected);
    prints(Some(&bucket), &[&args[..], &["--overwrite"]].concat());
    let dry = ["convert", args[1], "s3://bucket/dry.zt", "--dry-run"];
    prints(Some(&bucket), &dry);
    assert_eq!(bucket.get("dry.zt"), None);
}

/// A file of 20 MiB, which is uploaded in three parts.
fn large(folder: &Path) -> String {
    let path = folder.join("large.npy");
    let shape = "{'descr': '|u1', 'fortran_order': False, 'shape': (20971520,), }";
    let header = format!("\x01\0v\0{shape:<117}\n");
    fs::write(&path, [b"\x93NUMPY", header.as_bytes(), &noise(20 << 20)].concat()).unwrap();
    path.display().to_string()
}

#[test]
fn uploads_are_whole_or_not_at_all() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    let args = ["convert", &large(folder.path()), "s3://bucket/large.safetensors"];
    prints(Some(&bucket), &args);
    assert_eq!(bucket.uploads(), (0, 1, 3));
    prints(Some(&bucket), &["diff", args[1], args[2]]);
    bucket.refuse_parts(2);
    let (status, said) = fails(Some(&bucket), &["convert", args[1], "s3://bucket/torn.zt"]);
    assert_eq!((status, &*said), (Some(2), "error: s3://bucket/torn.zt: status is 500\n"));
    let (unfinished, begun, _) = bucket.uploads();
    assert_eq!((unfinished, begun, bucket.get("torn.zt")), (0, 2, None));
}

#[test]
fn results_go_to_gcs() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    let run = |args: &[&str]| {
        let mut command = command(None, args);
        command.env("GOOGLE_BASE_URL", bucket.endpoint()).env("GOOGLE_SKIP_SIGNATURE", "true");
        for name in ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_BUCKET"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let large = large(folder.path());
    for (input, output, key) in [
        ("gs://bucket/models/a.safetensors", "gs://bucket/new/a.zt", "new/a.zt"),
        (&*large, "gs://bucket/large.safetensors", "large.safetensors"),
    ] {
        bucket.lose_answers(1);
        assert_eq!(run(&["convert", input, output]), (Some(0), String::new()));
        assert!(bucket.get(key).is_some());
        assert_eq!(run(&["diff", input, output]).0, Some(0));
        let expected = format!("error: {output}: is there already (--overwrite replaces it)\n");
        assert_eq!(run(&["convert", input, output]), (Some(2), expected));
    }
    assert_eq!(bucket.uploads(), (0, 1, 3));
    let (status, said) = run(&["verify", "-q", "gs://bucket/models/b/"]);
    assert_eq!((status, &*said), (Some(1), ""));
}

/// A command that looks for credentials, with none of whoever runs the tests.
fn with_credentials(bucket: &BucketServer) -> Command {
    let mut command = command(Some(bucket), &["hash", "s3://bucket/models/a.safetensors"]);
    for name in [
        "AWS_SKIP_SIGNATURE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ] {
        command.env_remove(name);
    }
    command.env("AWS_SHARED_CREDENTIALS_FILE", "/none");
    command
}

/// Returns by which key, and for which region, the first request was signed.
fn signed(bucket: &BucketServer) -> String {
    let request = bucket.seen().remove(0);
    let (_, scope) = header(&request, "authorization").unwrap().split_once("credential=").unwrap();
    let parts: Vec<&str> = scope.split('/').collect();
    format!("{}/{}", parts[0], parts[2])
}

#[test]
fn credentials_come_from_profiles() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let keys = "[default]\naws_access_key_id=other\naws_secret_access_key=x\n\
                [models]\naws_access_key_id = akid\naws_secret_access_key = s3cret\n";
    let config = path("config", "[profile models]\nregion = eu-west-1\n");
    let output = with_credentials(&bucket)
        .env("AWS_SHARED_CREDENTIALS_FILE", path("credentials", keys))
        .env("AWS_CONFIG_FILE", config)
        .env("AWS_PROFILE", "models")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(signed(&bucket), "akid/eu-west-1");
    assert!(bucket.seen().iter().all(|request| !request.contains("s3cret")));
}

#[test]
fn credentials_come_from_the_machine() {
    let bucket = bucket();
    let machine = Server::serve(|request, stream| {
        let mut words = request.split_whitespace();
        match (words.next(), words.next()) {
            (Some("put"), Some("/latest/api/token")) => ok("", "of-the-session")(request, stream),
            (_, Some("/latest/meta-data/iam/security-credentials/")) => {
                ok("", "role")(request, stream)
            }
            (_, Some("/latest/meta-data/iam/security-credentials/role")) => {
                assert_eq!(header(request, "x-aws-ec2-metadata-token"), Some("of-the-session"));
                let keys = r#"{"AccessKeyId":"akid","SecretAccessKey":"x","Token":"y","#;
                let times = r#""Code":"Success","Expiration":"2100-01-01T00:00:00Z"}"#;
                ok("", format!("{keys}{times}"))(request, stream)
            }
            _ => answer("404 Not Found", "", "")(request, stream),
        }
    });
    let endpoint = machine.url("");
    let output = with_credentials(&bucket)
        .env("AWS_METADATA_ENDPOINT", endpoint.trim_end_matches('/'))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(signed(&bucket), "akid/us-east-1");
}

#[test]
fn an_upload_whose_answer_is_lost_is_there() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    let small = "s3://bucket/models/a.safetensors";
    for (input, output, key) in [
        (small.to_owned(), "s3://bucket/lost.safetensors", "lost.safetensors"),
        (large(folder.path()), "s3://bucket/large.safetensors", "large.safetensors"),
    ] {
        bucket.lose_answers(1);
        prints(Some(&bucket), &["convert", &input, output]);
        assert!(bucket.get(key).is_some());
        prints(Some(&bucket), &["diff", &input, output]);
        // It is still not replaced by another.
        let (status, said) = fails(Some(&bucket), &["convert", &input, output]);
        let expected = format!("error: {output}: is there already (--overwrite replaces it)\n");
        assert_eq!((status, said), (Some(2), expected));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_upload_leaves_nothing() {
    let (bucket, folder) = (bucket(), tempfile::tempdir().unwrap());
    // Parts are refused again and again meanwhile.
    bucket.refuse_parts(1);
    let input = large(folder.path());
    let mut child =
        command(Some(&bucket), &["convert", &input, "s3://bucket/torn.zt"]).spawn().unwrap();
    while bucket.uploads().2 < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    let (unfinished, begun, _) = bucket.uploads();
    assert_eq!((unfinished, begun, bucket.get("torn.zt")), (0, 1, None));
}
