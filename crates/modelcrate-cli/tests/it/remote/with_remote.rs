use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
};

use test_support::{
    bucket::BucketServer,
    noise,
    server::{Served, Server, answer, header, redirect},
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
    ] {
        let output = run(None, args);
        for text in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(text).contains("s3cret"), "{args:?}");
        }
    }
    // The server did get the query.
    assert!(server.seen().iter().any(|request| request.contains("signature=s3cret")));
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
