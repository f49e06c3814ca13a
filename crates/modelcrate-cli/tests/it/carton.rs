//! The commands of `modelcrate carton` that change files.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use modelcrate::{
    carton_format::{OptionValue, Place, Reader, Sha256, Value},
    tensor_core::{Severity, output::LockedFile},
};
use test_support::{assert_bytes, names, testdata};

use crate::run::{fails, in_group, modelcrate, prints};

const WEIGHTS: &[u8] = &[7; 2 << 20];

/// The options that every model needs.
const RUNNER: [&str; 4] = ["--runner", "noop", "--framework-version", "=1.0.0"];

/// A folder with a model, and what else a carton may be made of.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::create_dir_all(cd.join("model/sub")).unwrap();
    fs::write(cd.join("model/weights.bin"), WEIGHTS).unwrap();
    fs::write(cd.join("model/sub/a.txt"), "a").unwrap();
    fs::create_dir(cd.join("pictures")).unwrap();
    fs::write(cd.join("pictures/1.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(cd.join("numbers.bin"), [0; 24]).unwrap();
    fs::write(cd.join("lines.txt"), "one\ntwo\n").unwrap();
    fs::write(cd.join("list.json"), r#"["one\n", "two"]"#).unwrap();
    fs::write(cd.join("about.md"), "# About\n").unwrap();
    folder
}

/// A folder with the model packed as `model.carton`.
fn packed() -> tempfile::TempDir {
    let folder = folder();
    let out = ["pack", "model", "model.carton", "--runner-compat-version", "1"];
    prints(folder.path(), &[&out[..], &RUNNER].concat());
    folder
}

#[track_caller]
fn is_sound(path: &Path) -> Reader {
    let reader = Reader::open(path).unwrap();
    let report = reader.validate();
    assert!(report.worst().is_none_or(|worst| worst < Severity::Warning), "{report:?}");
    reader
}

/// Runs a command that says on standard output why it did not do what it was asked for.
fn fails_saying(cd: &Path, args: &[&str]) -> (i32, String) {
    let output = modelcrate(cd, args);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn hash(path: &Path) -> String {
    Reader::open(path).unwrap().model_hash().to_string()
}

#[test]
fn models_are_packed_with_all_that_is_said() {
    let folder = folder();
    let cd = folder.path();
    let options = [
        "pack model m.carton --runner-compat-version 2 --opt threads=4 --opt scale=0.5",
        "--opt fast=true --opt name=fast --opt number=\"4\" --name A --short-description B",
        "--description-file about.md --license MIT --repository https://a.example",
        "--homepage https://b.example --platform x86_64-linux-gnu --platform aarch64-apple-darwin",
        "--misc pictures --misc-file notes/2.txt=lines.txt --put x=float32:2,3:numbers.bin",
        "--put l=string:2:lines.txt --put j=string:1,2:list.json --compression deflate",
    ]
    .join(" ");
    let args: Vec<&str> = options.split(' ').chain(RUNNER).collect();
    let text = prints(cd, &args);
    let reader = is_sound(&cd.join("m.carton"));
    let hash = reader.model_hash();
    assert!(text.starts_with("m.carton: packed, 9 files, 2.00 MiB → "), "{text}");
    assert!(text.ends_with(&format!("\nm.carton: model hash {hash}\n")), "{text}");
    let description = reader.description().unwrap();
    let options = description.runner.options.as_ref().unwrap();
    for (name, value) in [
        ("threads", OptionValue::Integer(4)),
        ("scale", OptionValue::Float(0.5)),
        ("fast", OptionValue::Boolean(true)),
        ("name", OptionValue::from("fast")),
        ("number", OptionValue::from("4")),
    ] {
        assert_eq!(options.get(name), Some(&value), "{name}");
    }
    assert_eq!(description.model_description.as_deref(), Some("# About\n"));
    assert_eq!(description.runner.compat_version, Some(2));
    assert_eq!(description.required_platforms.as_ref().map(Vec::len), Some(2));
    assert_eq!(description.license.as_deref(), Some("MIT"));
    assert_bytes(&reader.file("misc/notes/2.txt").unwrap().bytes().unwrap(), b"one\ntwo\n", "misc");
    let strings = |name| match reader.tensor(name).unwrap().unwrap().value().unwrap() {
        Value::Strings { strings, .. } => strings,
        other => panic!("{other:?}"),
    };
    assert_eq!(strings("l"), ["one", "two"]);
    assert_eq!(strings("j"), ["one\n", "two"]);
}

#[test]
fn descriptions_are_kept_as_they_are() {
    let folder = folder();
    let cd = folder.path();
    let text = "spec_version = 1 # one\n\n[runner]\nrunner_name='noop'\n\
        required_framework_version = \"1\"\nextra = 1\n";
    fs::write(cd.join("c.toml"), text).unwrap();
    prints(cd, &["pack", "lines.txt", "m.carton", "--toml", "c.toml"]);
    let reader = Reader::open(cd.join("m.carton")).unwrap();
    assert_bytes(&reader.file("carton.toml").unwrap().bytes().unwrap(), text.as_bytes(), "text");
    assert!(reader.file("model/lines.txt").is_some());
}

#[test]
fn standard_output_takes_a_carton() {
    let folder = packed();
    let cd = folder.path();
    let pack = ["pack", "model", "-", "--to=carton", "--runner-compat-version", "1"];
    let output = modelcrate(cd, &[&pack[..], &RUNNER].concat());
    let expected = fs::read(cd.join("model.carton")).unwrap();
    assert_bytes(&output.stdout, &expected, "standard output");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("-: model hash "), "{text}");
    let json = ["compact", "model.carton", "-o", "-", "--format", "json"];
    let message = "error: -: standard output takes either a file or JSON, not both\n";
    assert_eq!(fails(cd, &json), (2, message.to_owned()));
}

#[test]
fn unpacked_cartons_are_packed_again() {
    for name in ["ref_full", "ref_symlinks", "ref_strings"] {
        let folder = tempfile::tempdir().unwrap();
        let cd = folder.path();
        let packed = testdata("carton/valid").join(name).with_extension("carton");
        let packed = packed.to_str().unwrap();
        let text = prints(cd, &["unpack", packed, "unpacked"]);
        let hash = hash(Path::new(packed));
        assert!(text.starts_with("unpacked: unpacked, "), "{text}");
        assert!(text.ends_with(&format!("\nunpacked: model hash {hash}\n")), "{text}");
        let found = prints(cd, &["verify", "unpacked"]);
        assert!(found.contains(&format!("\n  model hash {hash}\n")), "{found}");
        fs::write(cd.join("unpacked/LINKS"), "version = 1\n[urls]\n").unwrap();
        prints(cd, &["pack", "unpacked", "m.carton"]);
        let found = prints(cd, &["verify", "m.carton"]);
        assert!(found.contains(&format!("\n  model hash {hash}\n")), "{found}");
    }
}

#[test]
fn linked_files_are_left_out_or_fetched() {
    let folder = packed();
    let cd = folder.path();
    prints(cd, &["carton", "shrink", "model.carton", "--url-prefix", "https://a.example"]);
    let text = prints(cd, &["unpack", "model.carton", "unpacked"]);
    let expected = "unpacked: left without model/weights.bin\nunpacked: unpacked, 3 files, 125 B\n";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(names(&cd.join("unpacked")).len(), 5);

    // What is only linked stays so, and the model is the same.
    prints(cd, &["pack", "unpacked", "linked.carton"]);
    assert_eq!(hash(&cd.join("linked.carton")), hash(&cd.join("model.carton")));
    let from_cache = ["--offline", "--cache", cache(cd)];
    prints(cd, &[&["carton", "fill", "unpacked", "-o", "n.carton"], &from_cache[..]].concat());
    assert_eq!(hash(&cd.join("n.carton")), hash(&cd.join("model.carton")));

    let unpack = ["unpack", "model.carton", "whole", "--fetch", "--format", "json"];
    let text = prints(cd, &[&unpack[..], &from_cache].concat());
    assert!(text.contains("\"files\":4,") && !text.contains("left_out"), "{text}");
    assert_bytes(&fs::read(cd.join("whole/model/weights.bin")).unwrap(), WEIGHTS, "fetched");
}

#[test]
fn what_cannot_be_unpacked_leaves_nothing() {
    let folder = packed();
    let cd = folder.path();
    prints(cd, &["compact", "model.carton", "-o", "stored.carton", "--compression", "stored"]);
    let mut damaged = fs::read(cd.join("stored.carton")).unwrap();
    let weights = damaged.windows(9).position(|bytes| bytes == [7; 9]).unwrap();
    damaged[weights] ^= 1;
    fs::write(cd.join("damaged.carton"), damaged).unwrap();
    let before = names(cd);
    for (args, status, message) in [
        (&["damaged.carton", "new"][..], 1, "damaged.carton: entry \"model/weights.bin\""),
        (&["damaged.carton", "new", "--dry-run"], 1, "damaged.carton: entry \"model/weights.bin\""),
        (&["none", "new"], 2, "none: opening failed: "),
        (&["about.md", "new"], 1, "about.md: file is bytes that start with"),
    ] {
        let (found, text) = fails(cd, &[&["unpack"], args].concat());
        let expected = format!("error: {message}");
        assert!(found == status && text.starts_with(&expected), "{args:?}: {found} {text}");
        assert_eq!(names(cd), before, "{args:?}");
    }
    let text = prints(cd, &["unpack", "model.carton", "new", "--dry-run"]);
    assert!(text.starts_with("new: would be unpacked, 4 files, 2.00 MiB\n"), "{text}");
    assert_eq!(names(cd), before);
}

#[test]
fn what_cannot_be_packed_leaves_nothing() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("broken.toml"), "spec_version = 1\n").unwrap();
    fs::write(cd.join("there.carton"), "there").unwrap();
    fs::create_dir(cd.join("there")).unwrap();
    let before = names(cd);
    let model = ["pack", "model"];
    for (args, status, message) in [
        (&["m.carton"][..], 2, "model: is not an unpacked carton: --runner and "),
        (&["m.carton", "--runner", "x"], 2, "--framework-version <REQUIREMENT>"),
        (&["m.carton", "--name", "x"], 2, "--runner <NAME>"),
        (&["m.carton", "--toml", "broken.toml"], 1, "broken.toml: carton.toml: runner is m"),
        (&["m.carton", "--toml", "none"], 2, "none: opening failed: "),
        (&["m.carton", "--toml", "broken.toml", "--runner", "x"], 2, "cannot be used with"),
    ] {
        let (found, text) = fails(cd, &[&model[..], args].concat());
        assert!(found == status && text.contains(message), "{args:?}: {found} {text}");
    }
    for (args, message) in [
        (&["none", "m.carton"][..], "none: cannot be packed: No such file"),
        (&["model", "there.carton"], "there.carton: is there already (--overwrite replaces it)"),
        (&["model", "there", "--to=carton", "--overwrite"], "there: is not a regular file"),
        (&["model", "model/m.carton"], "model/m.carton: is in \"model\", which is packed"),
        (
            &["lines.txt", "lines.txt", "--to=carton", "--overwrite"],
            "lines.txt: is an input, expected another",
        ),
        (&["model", "none/m.carton"], "is in a folder that does not exist"),
        (&["model", "m.carton", "--misc", "none"], "none: No such file"),
        (&["model", "m.carton", "--misc", "lines.txt"], "lines.txt: is a file, expected a f"),
        (&["model", "m.carton", "--misc-file", "x"], "is not NAME=PATH, such as"),
        (&["model", "m.carton", "--misc-file", "../x=lines.txt"], "\"misc/../x\" cannot be"),
        (&["model", "m.carton", "--opt", "x"], "is not KEY=VALUE, such as"),
        (&["model", "m.carton", "--opt", "x=[1]"], "description would be refused: carton.t"),
        (&["model", "m.carton", "--platform", "x"], "\"x\" is not a target triple"),
        (
            &["model", "m.carton", "--put", "x=f16:12:numbers.bin"],
            "numbers.bin: is of f16, expected one of f32, f64, st",
        ),
        (&["model", "m.carton", "--put", "x=int8:2:numbers.bin"], "numbers.bin: "),
        (&["model", "m.carton", "--put", "x=string:1:lines.txt"], "there are 2 strings, b"),
        (&["model", "m.carton", "--level", "99"], "level is 99, expected"),
        (&["model", "m.carton", "--alignment", "3"], "alignment is 3, expected a power of t"),
    ] {
        let (found, text) = fails(cd, &[&["pack"][..], args, &RUNNER].concat());
        assert!(found == 2 && text.contains(message), "{args:?}: {found} {text}");
    }
    assert_eq!(names(cd), before);
    assert_eq!(fs::read(cd.join("there.carton")).unwrap(), b"there");
    let overwrite = ["pack", "model", "there.carton", "--overwrite"];
    prints(cd, &[&overwrite[..], &RUNNER].concat());
    assert!(Reader::open(cd.join("there.carton")).is_ok());
}

#[cfg(unix)]
#[test]
fn pipes_and_broken_links_are_named() {
    let folder = folder();
    let cd = folder.path();
    std::os::unix::fs::symlink("nowhere", cd.join("model/link")).unwrap();
    let pack = ["pack", "model", "m.carton"];
    let (status, text) = fails(cd, &[&pack[..], &RUNNER].concat());
    assert!(text.contains("model/link: cannot be packed: No such file"), "{text}");
    assert_eq!(status, 2);
}

/// A cache that holds the weights.
fn cache(cd: &Path) -> &'static str {
    let home = cd.join("cache/files").join(Sha256::digest(WEIGHTS).to_string());
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("file"), WEIGHTS).unwrap();
    "cache"
}

#[test]
fn shrunk_cartons_are_filled_from_the_cache() {
    let folder = packed();
    let cd = folder.path();
    let before = hash(&cd.join("model.carton"));
    let prefix = ["--url-prefix", "https://a.example/files/", "--url-prefix", "https://b.example"];
    let shrink = ["carton", "shrink", "model.carton", "-o", "small.carton"];
    let text = prints(cd, &[&shrink[..], &prefix].concat());
    assert!(text.starts_with("small.carton: linked model/weights.bin\nsmall.carton: shrunk by 1 "));
    assert!(text.ends_with(&format!("\nsmall.carton: model hash {before}, as before\n")), "{text}");
    let small = Reader::open(cd.join("small.carton")).unwrap();
    assert_eq!(small.file("model/weights.bin").unwrap().place(), Place::Linked);
    let sha256 = Sha256::digest(WEIGHTS);
    let urls = small.links().unwrap().urls(sha256).unwrap();
    assert_eq!(urls[0], format!("https://a.example/files/{sha256}"));
    assert_eq!(urls[1], format!("https://b.example/{sha256}"));

    let fill = ["carton", "fill", "small.carton", "--offline", "--cache"];
    let message = "is not in the cache, and fetching is offline";
    let missing = format!(
        "small.carton: \"model/weights.bin\" could not be fetched: sha256:{sha256} {message}"
    );
    fails_alike(cd, &[&fill[..], &["empty"]].concat(), 2, &missing);
    let large = [&fill[..], &[cache(cd), "--max-bytes", "3"]].concat();
    fails_alike(cd, &large, 2, &missing.replace(message, "has 2097152 bytes, over the limit of 3"));
    assert_eq!(small.manifest().as_str().lines().count(), 4);

    let text = prints(cd, &[&fill[..], &[cache(cd), "--format", "json"]].concat());
    let expected = format!("\"model_hash_before\":\"{before}\",\"model_hash\":\"{before}\"");
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("\"fetched\":[\"model/weights.bin\"]"), "{text}");
    let filled = is_sound(&cd.join("small.carton"));
    assert_eq!(filled.model_hash().to_string(), before);
    assert!(filled.links().is_none());
    let bytes = fs::read(cd.join("small.carton")).unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let text = prints(cd, &[&fill[..], &["empty"], more].concat());
        assert!(text.contains("left as it is: nothing to fill\n"), "{text}");
        assert!(fs::read(cd.join("small.carton")).unwrap() == bytes);
    }
}

#[test]
fn files_are_linked_as_was_said() {
    let folder = packed();
    let cd = folder.path();
    let linked = |args: &[&str]| {
        let shrink = ["carton", "shrink", "model.carton", "-o", "small.carton", "--overwrite"];
        prints(cd, &[&shrink[..], args].concat());
        let reader = Reader::open(cd.join("small.carton")).unwrap();
        let linked = reader.files().filter(|file| file.place() == Place::Linked);
        linked.map(|file| file.path().to_owned()).collect::<Vec<_>>()
    };
    let prefix = ["--url-prefix", "https://a.example"];
    assert_eq!(linked(&prefix), ["model/weights.bin"]);
    let all = ["model/sub/a.txt", "model/weights.bin"];
    assert_eq!(linked(&[&prefix[..], &["--min-size", "1"]].concat()), all);
    assert!(linked(&[&prefix[..], &["--min-size", "3MiB"]].concat()).is_empty());
    assert_eq!(linked(&[&prefix[..], &["--only", "model/*.txt"]].concat()), [all[0]]);
    assert_eq!(linked(&[&prefix[..], &["--only", "model/"]].concat()), all);
    let links = format!(
        "version = 1\n[urls]\n{} = ['https://a.example/a']\n{} = ['https://a.example/none']\n",
        Sha256::digest(b"a"),
        Sha256::digest(b"not in the carton"),
    );
    fs::write(cd.join("links.toml"), links).unwrap();
    assert_eq!(linked(&["--links", "links.toml"]), [all[0]]);
    let reader = Reader::open(cd.join("small.carton")).unwrap();
    assert_eq!(reader.links().unwrap().iter().len(), 1);
    assert_eq!(linked(&[&["--links", "links.toml"], &prefix[..]].concat()), all);

    fs::write(cd.join("broken.toml"), "version = 1\n").unwrap();
    for (args, status, message) in [
        (&["--links", "broken.toml"][..], 1, "broken.toml: LINKS: urls is missing\n"),
        (&["--links", "none"], 2, "none: opening failed: "),
        (&["--url-prefix", "file:///etc"], 2, "is not an https URL"),
        (&["--url-prefix", "https://a.example", "--only", "modle"], 2, "has no file \"modle\"\n"),
        (&["--only", "model"], 2, "required arguments were not provided"),
    ] {
        let (found, text) = fails(cd, &[&["carton", "shrink", "model.carton"][..], args].concat());
        assert!(found == status && text.contains(message), "{args:?}: {found} {text}");
    }
}

/// Answers one request with the weights.
fn server() -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let length = WEIGHTS.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"\r\n").unwrap();
        stream.write_all(WEIGHTS).unwrap();
    });
    (url, server)
}

#[test]
fn cartons_are_filled_from_a_server_that_was_allowed() {
    let folder = packed();
    let cd = folder.path();
    let (url, server) = server();
    let before = hash(&cd.join("model.carton"));
    prints(cd, &["carton", "shrink", "model.carton", "--url-prefix", &url]);
    let small = fs::read(cd.join("model.carton")).unwrap();
    assert!(small.len() < 4096);
    let fill = ["carton", "fill", "model.carton", "--cache", "cache"];
    for (args, message) in [
        (&[][..], "scheme is \"http\", expected \"https\" (--allow-http takes it)"),
        (&["--allow-http"], "expected a public one (--allow-private-hosts takes it)"),
        (&["--ca-file", "about.md"], "certificate authorities is without any"),
        (&["--ca-file", "none"], "none: opening failed: "),
    ] {
        let (status, text) = fails(cd, &[&fill[..], args].concat());
        assert!(status == 2 && text.contains(message), "{args:?}: {status} {text}");
        assert_eq!(fs::read(cd.join("model.carton")).unwrap(), small);
    }
    let text = prints(cd, &[&fill[..], &["--allow-http", "--allow-private-hosts"]].concat());
    server.join().unwrap();
    assert!(text.starts_with("model.carton: fetched model/weights.bin\n"), "{text}");
    assert_eq!(is_sound(&cd.join("model.carton")).model_hash().to_string(), before);
    assert!(
        cd.join("cache/files").join(Sha256::digest(WEIGHTS).to_string()).join("file").is_file()
    );
}

#[test]
fn repacked_cartons_keep_their_hash() {
    let folder = packed();
    let cd = folder.path();
    let before = hash(&cd.join("model.carton"));
    let mut lens = Vec::new();
    for compression in ["stored", "zstd", "deflate", "auto"] {
        let text = prints(cd, &["compact", "model.carton", "--compression", compression]);
        assert!(text.contains("model.carton: compacted, "), "{text}");
        assert!(text.ends_with(&format!("{before}, as before\n")), "{text}");
        lens.push(fs::metadata(cd.join("model.carton")).unwrap().len());
        assert_eq!(is_sound(&cd.join("model.carton")).model_hash().to_string(), before);
    }
    assert!(lens[0] > 2 << 20 && lens[1..].iter().all(|&len| len < 100_000), "{lens:?}");
    let levels = ["compact", "model.carton", "--compression", "stored", "--level", "3"];
    let message = "error: --level means nothing with --compression stored\n";
    assert_eq!(fails(cd, &levels), (2, message.to_owned()));
}

#[test]
fn edits_keep_what_they_do_not_change() {
    let folder = packed();
    let cd = folder.path();
    let text = "# mine\nspec_version = 1 # one\nlicense = 'MIT'\nextra = 1\n\n[runner] # noop\n\
        runner_name = 'noop'\nrequired_framework_version = '=1'\nrunner_compat_version = 1\n";
    fs::write(cd.join("c.toml"), text).unwrap();
    let description = || {
        let reader = is_sound(&cd.join("model.carton"));
        String::from_utf8(reader.file("carton.toml").unwrap().bytes().unwrap().into()).unwrap()
    };
    prints(cd, &["edit", "model.carton", "--toml", "c.toml"]);
    assert_eq!(description(), text);
    let before = hash(&cd.join("model.carton"));
    let edit = ["edit", "model.carton", "--set", "runner.opts.threads=4"];
    let more = ["--set", "runner.required_framework_version==2.0", "--unset", "license"];
    let said = prints(cd, &[&edit[..], &more].concat());
    let after = hash(&cd.join("model.carton"));
    assert!(said.ends_with(&format!("model.carton: model hash {before} → {after}\n")), "{said}");
    let expected = "# mine\nspec_version = 1 # one\nextra = 1\n\n[runner] # noop\n\
        runner_name = 'noop'\nrequired_framework_version = \"=2.0\"\nrunner_compat_version = 1\n\n\
        [runner.opts]\nthreads = 4\n";
    assert_eq!(description(), expected);
    let same = ["edit", "model.carton", "--set", "runner.opts.threads=4"];
    let old = fs::read(cd.join("model.carton")).unwrap();
    let expected =
        format!("model.carton: unchanged\nmodel.carton: model hash {after}, as before\n");
    assert_eq!(prints(cd, &same), expected);
    assert!(prints(cd, &[&same[..], &["--format", "json"]].concat()).contains("\"changed\":false"));
    assert_eq!(fs::read(cd.join("model.carton")).unwrap(), old);
}

#[test]
fn refused_edits_change_nothing() {
    let folder = packed();
    let cd = folder.path();
    fs::write(cd.join("broken.toml"), "spec_version = 1\n").unwrap();
    fs::hard_link(cd.join("model.carton"), cd.join("hard.carton")).unwrap();
    let before = (fs::read(cd.join("model.carton")).unwrap(), names(cd));
    let refused = "model.carton: would not be a description any more: carton.toml";
    for (args, status, message) in [
        (&["edit", "model.carton", "--set", "runner.runner_name=4"][..], 2, refused),
        (&["edit", "model.carton", "--unset", "runner"], 2, refused),
        (&["edit", "model.carton", "--unset", "x"], 2, "\"x\" cannot be edited: x is missing"),
        (&["edit", "model.carton", "--set", "x"], 2, "\"x\" is not PATH=VALUE, such as"),
        (&["edit", "model.carton", "--toml", "broken.toml"], 1, "broken.toml: carton.toml: runner"),
        (&["edit", "model.carton"], 2, "nothing is to be changed"),
        (&["compact", "model.carton", "--level", "99"], 2, "level is 99"),
        (
            &["compact", "model.carton", "-o", "hard.carton", "--overwrite"],
            2,
            "hard.carton: is the input, ",
        ),
        (&["compact", "none"], 2, "none: opening failed: "),
        (&["compact", "model"], 2, "model: is a folder"),
        (&["compact", "-"], 2, "standard input cannot be edited in place"),
        (&["fill", "broken.toml", "--cache", "cache"], 1, "broken.toml: directory of the archive"),
    ] {
        let (found, text) = fails(cd, &in_group("carton", args));
        assert!(found == status && text.contains(message), "{args:?}: {found} {text}");
        assert!((fs::read(cd.join("model.carton")).unwrap(), names(cd)) == before, "{args:?}");
    }
}

/// In place, the digest of a link is not made right in passing.
#[test]
fn links_with_a_wrong_digest_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let bytes = fs::read(testdata("carton/invalid/symlink_digest.carton")).unwrap();
    fs::write(cd.join("m.carton"), &bytes).unwrap();
    for args in [&["edit", "m.carton", "--set", "license=MIT"][..], &["compact", "m.carton"]] {
        for force in [&[][..], &["--force"]] {
            let (status, text) = fails(cd, &[&in_group("carton", args)[..], force].concat());
            assert!(status == 1 && text.contains("\"model/l\" has digest "), "{status} {text}");
            assert_bytes(&fs::read(cd.join("m.carton")).unwrap(), &bytes, "m.carton");
        }
    }
}

/// Files of strings are small, so that packing can look at them.
#[test]
fn broken_strings_are_not_packed() {
    let folder = folder();
    let cd = folder.path();
    let description = "spec_version = 1\n[runner]\nrunner_name = 'r'\n\
                       required_framework_version = '*'\nrunner_compat_version = 1\n";
    let index = "[[tensor]]\nname = 's'\ndtype = 'string'\nshape = [4]\nfile = 's'\ninner = []\n";
    fs::write(cd.join("carton.toml"), description).unwrap();
    fs::create_dir(cd.join("tensor_data")).unwrap();
    fs::write(cd.join("tensor_data/index.toml"), index).unwrap();
    let pack = |force: &[&'static str]| [&["pack", ".", "-", "--to=carton"], force].concat();
    for (strings, rule) in [
        ("data = ['a', 'b']", "[carton/tensor-length]"),
        ("garbage", "[carton/toml-syntax]"),
        ("data = [1, 2, 3, 4]", "[carton/toml-value]"),
    ] {
        fs::write(cd.join("tensor_data/s"), strings).unwrap();
        let output = modelcrate(cd, &pack(&[]));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && text.contains(rule), "{strings}: {text}");
        assert!(output.stdout.is_empty());
        assert!(modelcrate(cd, &pack(&["--force"])).status.success());
    }
    fs::write(cd.join("tensor_data/s"), "data = ['a', 'b', 'c', 'd']").unwrap();
    assert!(modelcrate(cd, &pack(&[])).status.success());
}

#[test]
fn cartons_that_others_edit_are_not_copied() {
    let folder = packed();
    let cd = folder.path();
    let locked = LockedFile::open(cd.join("model.carton")).unwrap();
    let (status, text) = fails(cd, &["compact", "model.carton", "-o", "other.carton"]);
    let expected = "error: model.carton: is locked, expected no other writer\n";
    assert_eq!((status, text.as_str()), (2, expected));
    drop(locked);
    prints(cd, &["edit", "model.carton", "--set", "license=MIT"]);
    assert_eq!(
        is_sound(&cd.join("model.carton")).description().unwrap().license.as_deref(),
        Some("MIT")
    );
}

/// Of many processes that edit a carton at once, none loses what another did.
#[test]
fn edits_at_once_are_all_there() {
    let folder = packed();
    let cd = folder.path();
    thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let set = format!("runner.opts.o{number}={number}");
                prints(cd, &["edit", "model.carton", "--wait", "60", "--set", &set]);
            });
        }
    });
    let reader = is_sound(&cd.join("model.carton"));
    assert_eq!(reader.description().unwrap().runner.options.as_ref().unwrap().len(), 8);
    assert!(names(cd).iter().all(|name| !name.starts_with('.')));
}

/// A dry run fails where the real run does, and says the same.
#[cfg(unix)]
#[test]
fn dry_runs_fail_as_real_runs_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = packed();
    let cd = folder.path();
    let shrink = ["carton", "shrink", "model.carton", "-o", "small.carton"];
    prints(cd, &[&shrink[..], &["--url-prefix", "https://a.example"]].concat());
    for name in ["locked.carton", "read_only.carton", "there"] {
        fs::copy(cd.join("small.carton"), cd.join(name)).unwrap();
    }
    let permissions = fs::Permissions::from_mode(0o444);
    fs::set_permissions(cd.join("read_only.carton"), permissions).unwrap();
    let put = ["--misc-file", ".x.abcdef.modelcrate=there"];
    let pack = ["pack", "model", "hidden.carton", "--runner-compat-version", "1"];
    prints(cd, &[&pack[..], &RUNNER, &put].concat());
    let _locked = LockedFile::open(cd.join("locked.carton")).unwrap();
    let before = names(cd);
    for (from, to, message) in [
        ("locked.carton", None, "locked.carton: is locked, expected no other writer"),
        ("read_only.carton", None, "read_only.carton: opening for writing failed"),
        ("small.carton", Some("there"), "there: is there already"),
        ("small.carton", Some("none/x"), "none/x: is in a folder that does not exist"),
        ("small.carton", Some("small.carton"), "small.carton: is the input"),
    ] {
        for (command, options) in [
            ("edit", &["--set", "license=MIT"][..]),
            ("compact", &["--compression", "stored"]),
            ("shrink", &["--url-prefix", "https://b.example"]),
            ("fill", &["--cache", "cache", "--offline"]),
        ] {
            let to = to.map_or(vec![], |to| vec!["-o", to]);
            let args = [&[command, from], &to[..], options].concat();
            fails_alike(cd, &in_group("carton", &args), 2, message);
        }
    }
    let fill = ["carton", "fill", "small.carton", "--ca-file", "none"];
    fails_alike(cd, &fill, 2, "none: opening failed");
    let unpack = ["unpack", "model.carton"];
    fails_alike(cd, &[&unpack[..], &["model"]].concat(), 2, "model: is not empty");
    let message = "none/x: is in a folder that does not exist";
    fails_alike(cd, &[&unpack[..], &["none/x"]].concat(), 2, message);
    // They would be swept.
    let hidden = ["unpack", "hidden.carton", "new"];
    fails_alike(cd, &hidden, 1, "has a name as files have until they are complete");
    let pack = ["pack", "--to=carton", "--runner=", "--framework-version", "=1", "model"];
    fails_alike(cd, &[&pack[..], &["there"]].concat(), 2, "there: is there already");
    fails_alike(cd, &[&pack[..], &["new"]].concat(), 1, "new: not written, as it would be invalid");
    fails_alike(cd, &[&pack[..], &["-"]].concat(), 1, "-: not written, as it would be invalid");
    assert_eq!(names(cd), before);
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_unpacked_is_named() {
    let folder = packed();
    let cd = folder.path();
    let script = "ulimit -f 0; exec \"$0\" unpack model.carton new";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_modelcrate")]);
    let output = command.current_dir(cd).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), cd.join("new").exists()), (Some(2), false), "{said}");
    assert!(said.starts_with("error: new/"), "{said}");
}

#[test]
fn nobody_is_asked_but_by_fill() {
    let folder = packed();
    let cd = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let prefix = format!("http://{}/", listener.local_addr().unwrap());
    let shrink = ["carton", "shrink", "model.carton", "-o", "small.carton", "--url-prefix"];
    prints(cd, &[&shrink[..], &[&prefix]].concat());
    listener.set_nonblocking(true).unwrap();
    let is_asked = || listener.accept().is_ok();
    let fill = ["carton", "fill", "small.carton", "--cache", "none"];
    for args in [
        &["inspect", "small.carton", "--digests"][..],
        &["verify", "small.carton"],
        &[&fill[..], &["--dry-run"]].concat(),
        &[&fill[..], &["--offline", "--allow-http", "--allow-private-hosts"]].concat(),
        &[&fill[..], &["--allow-private-hosts"]].concat(),
        &[&fill[..], &["--allow-http"]].concat(),
    ] {
        modelcrate(cd, args);
        assert!(!is_asked(), "{args:?}");
    }
    thread::scope(|scope| {
        let allowed = [&fill[..], &["--allow-http", "--allow-private-hosts"]].concat();
        let filling = scope.spawn(move || modelcrate(cd, &allowed).status.success());
        let mut was_asked = false;
        while !filling.is_finished() {
            was_asked |= is_asked();
            thread::park_timeout(Duration::from_millis(1));
        }
        assert!(was_asked && !filling.join().unwrap());
    });
}

#[track_caller]
fn fails_alike(cd: &Path, args: &[&str], status: i32, message: &str) {
    let said = |more: &[&str]| {
        let output = modelcrate(cd, &[args, more].concat());
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (dry, real) = (said(&["--dry-run"]), said(&[]));
    assert_eq!(dry, real, "{args:?}");
    assert!(real.0 == Some(status) && real.1.contains(message), "{args:?}: {real:?}");
}

/// What verify would call an error that was not there is not written, also in a dry run.
#[test]
fn worse_cartons_are_not_written() {
    let folder = folder();
    let cd = folder.path();
    let specs = ["input", "output"]
        .map(|list| format!("[[{list}]]\nname = 'x'\ndtype = 'float32'\nshape = [2, 3]\n"));
    let text = format!(
        "spec_version = 1\n{}[[self_test]]\ninputs = {{}}\n[[self_test]]\ninputs = {{ x = '@tensor_data/x' }}\n[runner]\n\
         runner_name = 'noop'\nrequired_framework_version = '=1'\nrunner_compat_version = 1\n",
        specs.concat()
    );
    fs::write(cd.join("c.toml"), text).unwrap();
    let pack = ["pack", "model", "m.carton", "--toml", "c.toml", "--put"];
    let (status, text) = fails_saying(cd, &[&pack[..], &["x=float64:3:numbers.bin"]].concat());
    let refused = "m.carton: not written, as it would be invalid (--force writes it)\n";
    assert!(status == 1 && text.starts_with(refused), "{text}");
    assert!(
        text.contains("is tensor \"x\" of float64, but \"x\" is declared as float32"),
        "{text}"
    );
    assert!(!cd.join("m.carton").exists());
    prints(cd, &[&pack[..], &["x=float32:2,3:numbers.bin"]].concat());
    let before = (fs::read(cd.join("m.carton")).unwrap(), names(cd));
    let edit = ["edit", "m.carton", "--set", "input[0].dtype=int32"];
    for dry_run in [&[][..], &["--dry-run"]] {
        let (status, text) = fails_saying(cd, &[&edit[..], dry_run].concat());
        assert!(status == 1 && text.starts_with(refused), "{text}");
        assert!((fs::read(cd.join("m.carton")).unwrap(), names(cd)) == before);
    }
    let passed_on = ["edit", "m.carton", "-o", "-", "--set", "input[0].dtype=int32"];
    let output = modelcrate(cd, &passed_on);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty());
    let (_, text) = fails_saying(cd, &[&edit[..], &["--format", "json"]].concat());
    assert!(text.contains("\"changed\":false") && text.contains("\"refused\":true"), "{text}");
    assert!(text.contains("carton/dtype") && !text.contains("\"model_hash\":"), "{text}");
    let text = prints(cd, &[&edit[..], &["--force"]].concat());
    assert!(
        text.starts_with("m.carton: set input[0].dtype\nm.carton: edited, ")
            && text.contains("carton/dtype"),
        "{text}"
    );
    // What is wrong by now is no news.
    for args in [&["compact", "m.carton"][..], &["edit", "m.carton", "--unset", "self_test[0]"]] {
        let text = prints(cd, &in_group("carton", args));
        assert!(!text.contains("carton/dtype"), "{text}");
    }
}

#[test]
fn what_verify_would_warn_of_is_said() {
    let folder = folder();
    let cd = folder.path();
    fs::create_dir(cd.join("nothing")).unwrap();
    let pack = ["pack", "nothing", "m.carton"];
    let text = prints(cd, &[&pack[..], &RUNNER].concat());
    for rule in ["carton/no-model", "carton/no-compat-version"] {
        assert_eq!(text.matches(rule).count(), 1, "{text}");
    }
    let unnamed = ["--runner", "", "--framework-version", "=1", "--force"];
    let text = prints(cd, &[&pack[..], &["--overwrite"], &unnamed].concat());
    assert!(text.contains("carton/empty-runner-name"), "{text}");
}

/// What is not listed is no part of the model: that it is gone is said.
#[test]
fn what_is_not_listed_is_left_out_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::copy(testdata("carton/invalid/symlink_unlisted.carton"), cd.join("m.carton")).unwrap();
    let text = prints(cd, &["compact", "m.carton", "-o", "new.carton", "--dry-run"]);
    let left_out = "new.carton: would be left without model/n, which is not listed\n";
    assert!(text.starts_with(left_out), "{text}");
    let json = ["edit", "m.carton", "--set", "license=MIT", "--format", "json"];
    assert!(prints(cd, &json).contains("\"left_out\":[\"model/n\"]"));
}

#[test]
fn damaged_cartons_stay_as_they_are() {
    let folder = packed();
    let cd = folder.path();
    prints(cd, &["compact", "model.carton", "--compression", "stored"]);
    let whole = fs::read(cd.join("model.carton")).unwrap();
    let weights = whole.windows(9).position(|bytes| bytes == [7; 9]).unwrap();
    let digest = whole.windows(17).position(|bytes| bytes == b"model/weights.bin").unwrap();
    let manifest = whole.windows(9).rposition(|bytes| bytes == b"model/sub").unwrap();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (what, bytes, message) in [
        ("content", changed(weights + 1), "content has CRC-32"),
        ("local header", changed(digest), "local header has name"),
        ("directory", changed(manifest), "is listed in MANIFEST, but is neither in the carton nor"),
        ("end", whole[..whole.len() - 1].to_vec(), "directory of the archive cannot be read"),
    ] {
        fs::write(cd.join("model.carton"), &bytes).unwrap();
        let before = names(cd);
        let (status, text) = fails(cd, &["compact", "model.carton"]);
        assert!(text.starts_with("error: model.carton: "), "{what}: {text}");
        assert!(status == 1 && text.contains(message), "{what}: {status} {text}");
        assert_bytes(&fs::read(cd.join("model.carton")).unwrap(), &bytes, what);
        assert_eq!(names(cd), before);
    }
}

#[test]
fn dry_runs_change_nothing() {
    let folder = packed();
    let cd = folder.path();
    let state = || {
        let path = cd.join("model.carton");
        (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap(), names(cd))
    };
    prints(
        cd,
        &["carton", "shrink", "model.carton", "-o", "s", "--url-prefix", "https://a.example"],
    );
    let before = state();
    let pack = ["pack", "model", "new.carton"];
    for args in [
        &[&pack[..], &RUNNER].concat()[..],
        &["carton", "shrink", "model.carton", "--url-prefix", "https://a.example"],
        &["carton", "fill", "s", "-o", "new.carton", "--cache", "cache"],
        &["compact", "model.carton", "--compression", "stored"],
        &["compact", "model.carton", "-o", "-", "--format", "json"],
        &["edit", "model.carton", "--set", "license=MIT"],
    ] {
        let text = prints(cd, &[args, &["--dry-run"]].concat());
        assert!(text.contains(": would be ") || text.contains("\"dry_run\":true"), "{text}");
        assert!(state() == before, "{args:?}");
    }
}

#[test]
fn hashes_are_compared() {
    let folder = packed();
    let cd = folder.path();
    let full = testdata("carton/valid/ref_full.carton");
    fs::copy(full, cd.join("full.carton")).unwrap();
    let list = prints(cd, &["carton", "hash", "model.carton", "full.carton"]);
    // What the reference read back, as expected.json has it.
    let expected = "e08d59e1fdffac36a34c621e00b336231e1144cb7d718c68bc4645c4c5eac666  full.carton";
    assert_eq!(list.lines().nth(1), Some(expected));
    fs::write(cd.join("HASHES"), &list).unwrap();
    let check = ["carton", "hash", "--check", "HASHES"];
    assert_eq!(prints(cd, &check), "model.carton: OK\nfull.carton: OK\n");
    prints(cd, &["edit", "model.carton", "--set", "license=MIT"]);
    let output = modelcrate(cd, &check);
    let found = hash(&cd.join("model.carton"));
    let expected = format!("model.carton: FAILED, has {found}\nfull.carton: OK\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(1));
    fs::remove_file(cd.join("full.carton")).unwrap();
    let output = modelcrate(cd, &["carton", "hash", "--check", "--format", "jsonl", "HASHES"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("{\"schema\":1,\"path\":\"full.carton\",\"hash\":null,\"expected\":"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(2));
    fs::write(cd.join("HASHES"), "").unwrap();
    let message = "error: no hash is given, expected one at least\n";
    assert_eq!(fails(cd, &check), (2, message.to_owned()));
    fs::write(cd.join("HASHES"), "abc  model.carton\n").unwrap();
    let (status, said) = fails(cd, &check);
    let message = "error: HASHES: line 1 is none of a hash, two spaces and a path\n";
    assert!(status == 2 && said.starts_with(message), "{said}");
}

#[test]
fn names_cannot_reach_the_terminal() {
    let folder = packed();
    let cd = folder.path();
    fs::write(cd.join("model/\u{202e}gpj.txt"), WEIGHTS).unwrap();
    let pack = ["pack", "model", "m.carton"];
    prints(cd, &[&pack[..], &RUNNER].concat());
    let text = prints(cd, &["carton", "shrink", "m.carton", "--url-prefix", "https://a.example"]);
    assert!(text.contains("linked model/\\u{202e}gpj.txt\n"), "{text}");
    let set = "required_platforms=[\"x86_64-\\u001b[31m-linux-gnu\"]";
    let (_, text) = fails(cd, &["edit", "m.carton", "--set", set]);
    assert!(text.contains("\"x86_64-\\u{1b}[31m-linux-gnu\""), "{text}");
}
