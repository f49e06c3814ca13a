//! The commands of `modelcrate nnpackage`.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
    time::Instant,
};

use modelcrate::{
    circle_format::{
        Writer,
        model::{
            BuiltinOperator, LossFn, LossOptions, LossReductionType, ModelBuilder, Operator,
            OperatorCode, Optimizer, OptimizerOptions, Schema, Subgraph, Tensor, TensorType,
            TrainingInfo,
        },
    },
    nnpackage::{self, Editor, Reader},
    tensor_core::{Source, output::LockedFile},
};
use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

/// A folder with packages and models.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let valid = testdata("nnpackage/valid");
    for (name, new) in [
        ("01_minimal_circle_stored.zip", "one.zip"),
        ("03_two_models_connected.zip", "two.zip"),
        ("04_top_folder_no_types.zip", "top.zip"),
        ("06_rich_circle_numeric_versions.zip", "rich.zip"),
        ("everything.tflite", "every.tflite"),
    ] {
        fs::copy(valid.join(name), folder.path().join(new)).unwrap();
    }
    for name in ["zip_crc.zip", "zip_absolute.zip", "not_a_zip.zip"] {
        fs::copy(testdata("nnpackage/invalid").join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Makes a package that is a folder.
fn package(folder: &Path, manifest: &str) {
    fs::create_dir_all(folder.join("metadata")).unwrap();
    fs::write(folder.join("metadata/MANIFEST"), manifest).unwrap();
}

fn given(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_modelcrate"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// Packages that are made at once keep no file open, however many they are.
#[cfg(target_os = "linux")]
#[test]
fn more_packages_than_files_may_be_open() {
    const MODELS: usize = 60;
    let folder = folder();
    let cd = folder.path();
    let one = Reader::open(cd.join("one.zip")).unwrap().model(0).unwrap().file().bytes().unwrap();
    let mut builder = nnpackage::Builder::default();
    for index in 0..MODELS {
        builder.model(&format!("m{index}.circle"), Source::from_bytes(one.clone())).unwrap();
    }
    nnpackage::Writer::create(cd.join("all.zip"), &builder).unwrap().finish().unwrap();
    for (options, times) in [("", 2), ("--folders", 1)] {
        for _ in 0..times {
            let script = format!(
                "ulimit -n 40; exec \"$0\" nnpackage split all.zip parts{options} --overwrite {options}"
            );
            let mut command = Command::new("sh");
            command.args(["-c", &script, env!("CARGO_BIN_EXE_modelcrate")]).current_dir(cd);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let parts = fs::read_dir(cd.join(format!("parts{options}"))).unwrap();
            assert_eq!(parts.count(), MODELS);
        }
    }
}

#[test]
fn folders_appear_whole_or_not_at_all() {
    let folder = folder();
    let cd = folder.path();
    for (args, status, message) in [
        (["zip_crc.zip", "new"], 1, "error: zip_crc.zip: "),
        (["zip_absolute.zip", "new"], 1, "error: zip_absolute.zip: "),
        (["not_a_zip.zip", "new"], 2, "error: not_a_zip.zip: is a Circle model, expected "),
        (["none.zip", "new"], 2, "error: none.zip: "),
        (["one.zip", "none/new"], 2, "error: none"),
    ] {
        let (found, text) = fails(cd, &[&["unpack"][..], &args].concat());
        assert_eq!(found, status, "{args:?}: {text}");
        assert!(text.starts_with(message), "{text}");
    }
    let there = fs::read_dir(cd).unwrap().count();
    fs::create_dir(cd.join("full")).unwrap();
    fs::write(cd.join("full/file"), "").unwrap();
    let full = fails(cd, &["unpack", "one.zip", "full"]);
    assert_eq!(full, (2, "error: full: is not empty\n".to_owned()));
    assert_eq!(fs::read_dir(cd).unwrap().count(), there + 1);
}

#[test]
fn dry_runs_write_nothing() {
    let folder = folder();
    let cd = folder.path();
    let dry_run = ["unpack", "--dry-run"];
    let printed = prints(cd, &[&dry_run[..], &["two.zip", "new"]].concat());
    assert_eq!(printed, "new: would be unpacked, 5 files, 15.48 KiB\n");
    assert!(!cd.join("new").exists());
}

#[cfg(unix)]
#[test]
fn dry_runs_are_refused_as_real_runs_are() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    package(&cd.join("full"), "{}");
    fs::write(cd.join("full/m0.zip"), "").unwrap();
    fs::copy(cd.join("one.zip"), cd.join("read.zip")).unwrap();
    fs::copy(cd.join("one/add.circle"), cd.join("read.circle")).unwrap();
    for file in ["read.zip", "read.circle", "two/m0.circle"] {
        fs::set_permissions(cd.join(file), fs::Permissions::from_mode(0o444)).unwrap();
    }
    let add = "one/add.circle";
    let hidden = ["edit", "one.zip", "-o", "hidden.zip", "--put", ".x.abcdef.modelcrate=one.zip"];
    prints(cd, &hidden);
    let refused = |args: &[&str]| {
        let [dry_run, real] =
            [&["--dry-run"][..], &[]].map(|more| fails(cd, &[args, more].concat()));
        assert_eq!(dry_run, real, "{args:?}");
    };
    for args in [
        &["unpack", "one.zip", "full"][..],
        &["unpack", "one.zip", "none/new"],
        &["unpack", "hidden.zip", "new"],
        &["pack", add, "new", "--to=nnpackage", "--file=.x.abcdef.modelcrate=one.zip", "--folder"],
        &["edit", "hidden.zip", "-o", "new", "--folder", "--set", "NUM_THREADS=1"],
        &["edit", "one", "--put", ".x.abcdef.modelcrate=one.zip", "--digests"],
        &["nnpackage", "split", "two.zip", "new", "--level", "77"],
        &["unpack", "one.zip", "read.zip"],
        &["unpack", "zip_crc.zip", "new"],
        &["pack", add, "two.zip"],
        &["pack", add, "none/new.zip"],
        &["pack", add, "read.zip", "--overwrite"],
        &["pack", add, "full", "--to", "nnpackage", "--folder"],
        &["nnpackage", "merge", "one.zip", "two.zip"],
        &["nnpackage", "merge", "one.zip", "none/new", "--folder"],
        &["nnpackage", "split", "two.zip", "one.zip"],
        &["nnpackage", "split", "two.zip", "one.zip/parts"],
        &["nnpackage", "split", "two.zip", "full"],
        &["nnpackage", "split", "two", "two/parts"],
        &["edit", "read.zip", "--set", "NUM_THREADS=1"],
        &["edit", "two.zip", "-o", "one.zip", "--set", "NUM_THREADS=1"],
        &["edit", "two", "--replace-model", "0=one/add.circle", "--force"],
        &["edit", "read.circle", "--description", "new"],
        &["edit", add, "-o", "two.zip", "--description", "new"],
        &["edit", add, "-o", "none/new.circle", "--description", "new"],
    ] {
        refused(args);
    }
    // Nothing is compressed in a folder.
    for args in [
        &[
            "nnpackage",
            "split",
            "two.zip",
            "parts",
            "--folders",
            "--level",
            "77",
            "--format",
            "json",
        ][..],
        &["nnpackage", "merge", "two.zip", "merged", "--folder", "--alignment", "3"],
        &["edit", "two.zip", "-o", "edited", "--folder", "--set", "NUM_THREADS=1", "--level", "77"],
    ] {
        let said = ["--dry-run", "--force"].map(|more| prints(cd, &[args, &[more]].concat()));
        let real = said[0].replace("\"dry_run\":true", "\"dry_run\":false");
        assert_eq!(real.replace("would be ", ""), said[1], "{args:?}");
        let is_json = args.contains(&"json");
        assert!(!is_json || said[0].contains("\"path\":\"parts\",\"dry_run\":true"), "{args:?}");
    }
    let _held = ["two.zip", "one"].map(|place| Editor::open(cd.join(place)).unwrap());
    let _model = LockedFile::open(cd.join(add)).unwrap();
    refused(&["edit", "two.zip", "--set", "NUM_THREADS=1"]);
    refused(&["edit", "one", "--set", "NUM_THREADS=1"]);
    refused(&["edit", add, "--description", "new"]);
}

#[test]
fn standard_input_is_read() {
    let valid = testdata("nnpackage/valid");
    let zip = fs::read(valid.join("03_two_models_connected.zip")).unwrap();
    let package = Reader::from_bytes(zip.clone()).unwrap();
    let model = package.model(0).unwrap().file().bytes().unwrap().to_vec();
    for (args, input) in [
        (&["nnpackage", "onert", "-"][..], &zip),
        (&["nnpackage", "onert", "-"], &model),
        (&["nnpackage", "config", "-"], &zip),
        (&["graph", "-"], &zip),
        (&["graph", "-", "--model", "1"], &zip),
        (&["graph", "-"], &model),
    ] {
        let output = given(args, input);
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert!(output.stdout.starts_with(b"-: ") || output.stdout.starts_with(b"-\n"), "{args:?}");
    }
}

#[test]
fn the_status_says_what_onert_does() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["nnpackage", "onert", "one.zip"]);
    assert_eq!(fails(cd, &["nnpackage", "onert", "top.zip"]), (3, String::new()));

    // The type of a model that is in no package is its extension.
    let package = Reader::open(cd.join("one.zip")).unwrap();
    let model = package.model(0).unwrap().file().bytes().unwrap();
    for (name, said) in [("m.bin", "Failed to open bin loader"), ("m", "invalid path")] {
        fs::write(cd.join(name), &model).unwrap();
        let output = modelcrate(cd, &["nnpackage", "onert", "--format", "json", name]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let forecast = &json["forecast"];
        assert_eq!((&forecast["stage"], &forecast["message"]), (&"load".into(), &said.into()));
        assert!(prints(cd, &["verify", "--for", "onert", name]).contains(said));
        assert!(!prints(cd, &["verify", name]).contains(said));
    }

    // What cannot be opened is not loaded either.
    fs::write(cd.join("broken.circle"), b"\x08\0\0\0CIR0").unwrap();
    let output = modelcrate(cd, &["nnpackage", "onert", "--format", "json", "broken.circle"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["forecast"]["stage"]), (Some(1), &"load".into()));
    assert_eq!(json["findings"][0]["severity"], "error");
}

/// Each change of a model is said, and what is mended already stays as it is.
#[test]
fn models_are_mended_for_a_runtime() {
    let folder = folder();
    let cd = folder.path();
    let mut model = ModelBuilder::new(Schema::Tflite);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x", TensorType::Float32, [2, 2]));
    let y = graph.output(Tensor::new("y", TensorType::Float32, [4]));
    graph.operator(BuiltinOperator::RESHAPE, Operator::new([x], [y]));
    graph.finish();
    Writer::create(cd.join("m.tflite"), &model.finish()).unwrap().finish().unwrap();
    assert_eq!(fails(cd, &["nnpackage", "onert", "m.tflite"]), (3, String::new()));
    let mend = ["edit", "m.tflite", "--mend-for", "onert"];
    let change = "subgraph 0/operator 0: RESHAPE has its shape [4] as an input";
    let said = prints(cd, &mend);
    assert!(said.starts_with(&format!("m.tflite: mended {change}\n")), "{said}");
    prints(cd, &["nnpackage", "onert", "m.tflite"]);
    assert_eq!(prints(cd, &mend), "m.tflite: nothing to change\n");
}

#[test]
fn unknown_dimensions_get_their_size() {
    let folder = folder();
    let cd = folder.path();
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph("main");
    let row = |name: &str| Tensor {
        shape_signature: Some(vec![-1, 4]),
        ..Tensor::new(name, TensorType::Float32, [1, 4])
    };
    let x = graph.input(row("x"));
    let y = graph.output(row("y"));
    graph.operator(BuiltinOperator::LOGISTIC, Operator::new([x], [y]));
    graph.finish();
    Writer::create(cd.join("m.circle"), &model.finish()).unwrap().finish().unwrap();
    let forecast = ["nnpackage", "onert", "m.circle"];
    assert!(prints(cd, &forecast).contains("needs a shape"));
    let said = prints(cd, &["edit", "m.circle", "--fix-shapes"]);
    let tensor = |at| {
        format!(
            "m.circle: mended subgraph 0/tensor {at}: has the shape [1, 4] in the place of [-1, 4]\n"
        )
    };
    assert!(said.starts_with(&[tensor(0), tensor(1)].concat()), "{said}");
    assert!(!prints(cd, &forecast).contains("needs a shape"));
    assert_eq!(prints(cd, &["edit", "m.circle", "--fix-shapes"]), "m.circle: nothing to change\n");
}

/// TFLite has other runtimes: what stops onert alone is said where that is asked for.
#[test]
fn models_are_verified_for_a_runtime() {
    let folder = folder();
    let cd = folder.path();
    let circle = testdata("nnpackage/invalid/model_not_in_onert.circle");
    fs::copy(&circle, cd.join("ceil.circle")).unwrap();
    let mut model = modelcrate::circle_format::Reader::open(circle).unwrap().model().clone();
    (model.schema, model.version) = (Schema::Tflite, 3);
    Writer::create(cd.join("ceil.tflite"), &model).unwrap().finish().unwrap();
    let said = "CEIL, which onert 0.1.0 does not know";
    assert!(prints(cd, &["verify", "ceil.circle"]).contains(said));
    assert_eq!(prints(cd, &["verify", "ceil.tflite"]), "ceil.tflite: valid\n");
    for name in ["ceil.circle", "ceil.tflite"] {
        let found = prints(cd, &["verify", "--for", "onert", name]);
        assert_eq!(found.matches(said).count(), 1, "{found}");
    }
}

#[test]
fn partitions_become_connections() {
    let folder = folder();
    let cd = folder.path();
    let conn = r#"{
      "source": {"file": "net.circle", "inputs": ["a", "b"], "outputs": ["z"]},
      "parts": [
        {"file": "net.0.circle", "inputs": ["a"], "outputs": ["m"]},
        {"file": "net.1.circle", "inputs": ["b", "m"], "outputs": ["z"]}
      ]
    }"#;
    fs::write(cd.join("net.conn.json"), conn).unwrap();
    let from = ["graph", "net.conn.json"];
    let text = "net.conn.json\n\ngraph 0 \"package\"\n  input   \"a\"\n  input   \"b\"\n  \
                output  \"z\"\n       0  model 0 \"net.0.circle\": \"a\" -> \"m\"\n       \
                1  model 1 \"net.1.circle\": \"b\", \"m\" -> \"z\"\n";
    assert_eq!(prints(cd, &from), text);
    let json = prints(cd, &[&from[..], &["--format", "tables"]].concat());
    assert_eq!(
        json,
        "{\"schema\":1,\"path\":\"net.conn.json\",\"manifest\":{\"models\":[\"net.0.circle\",\
         \"net.1.circle\"],\"pkg-inputs\":[\"0:0:0\",\"1:0:0\"],\"pkg-outputs\":[\"1:0:0\"],\
         \"model-connect\":[{\"from\":\"0:0:0\",\"to\":[\"1:0:1\"]}]}}\n"
    );
    fs::write(cd.join("net.conn.json"), conn.replace("\"m\"]}", "\"n\"]}")).unwrap();
    let output = modelcrate(cd, &from);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.ends_with("  \"m\" is made by no part, and is not an input of the source\n"),
        "{text}"
    );
    fs::write(cd.join("net.conn.json"), "{").unwrap();
    assert_eq!(fails(cd, &from).0, 1);
}

/// A manifest of a few bytes a name can have one file looked into over and over.
#[test]
fn one_file_named_often_is_read_once() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["unpack", "one.zip", "often"]);
    let names = vec!["\"add.circle\""; 20_000].join(",");
    package(&cd.join("often"), &format!("{{\"models\": [{names}]}}"));
    let text = prints(cd, &["graph", "often"]);
    assert!(text.contains("   19999  model 19999 \"add.circle\"\n"), "{}", text.len());
    assert_eq!(text.matches("graph 1 ").count(), 1);
}

#[test]
fn texts_of_files_stay_texts() {
    let folder = folder();
    let cd = folder.path();
    let manifest = r#"{"models": ["a\"]\n\u001b[1m`|<b>\\.circle", "b"],
        "model-connect": [{"from": "0:0:0", "to": ["7:0:0"]}]}"#;
    package(&cd.join("odd"), manifest);
    let dot = prints(cd, &["graph", "--format", "dot", "odd"]);
    assert_eq!(
        dot,
        r#"digraph model {
    s0n0 [shape=box, label="model 0\na\"]␊U+001B[1m`|<b>\\.circle"];
    s0n1 [shape=box, label="model 1\nb"];
    s0n2 [shape=box, label="model 7, which there is not"];
  s0n0 -> s0n2 [label="0:0:0"];
}
"#
    );
    let mermaid = prints(cd, &["graph", "--format", "mermaid", "odd"]);
    assert_eq!(
        mermaid,
        "flowchart TD
    s0n0[\"model 0<br>a#34;]␊U+001B[1m#96;#124;#60;b#62;#92;.circle\"]
    s0n1[\"model 1<br>b\"]
    s0n2[\"model 7, which there is not\"]
  s0n0 -->|\"0:0:0\"| s0n2
"
    );
    for command in ["nnpackage onert", "graph", "nnpackage config"] {
        let args: Vec<_> = command.split(' ').chain(["odd"]).collect();
        let output = modelcrate(cd, &args);
        assert!(!output.stdout.contains(&0x1b), "{command}");
    }
}

#[test]
fn models_are_picked_by_position() {
    let folder = folder();
    let cd = folder.path();
    let second = prints(cd, &["graph", "two.zip", "--model", "1"]);
    assert!(second.starts_with("two.zip: \"m1.circle\"\n"), "{second}");
    for (file, message) in [
        ("two.zip", "error: two.zip: has 2 models, so that there is none at position 2\n"),
        (
            "every.tflite",
            "error: every.tflite: is a TFLite model, expected an nnpackage for --model\n",
        ),
    ] {
        let failed = fails(cd, &["graph", file, "--model", "2"]);
        assert_eq!(failed, (2, message.to_owned()));
    }
    package(&cd.join("lost"), r#"{"models": ["lost.circle"]}"#);
    let failed = fails(cd, &["graph", "lost", "--model", "0"]);
    assert_eq!(failed, (1, "error: lost: \"lost.circle\" is not in the package\n".to_owned()));
}

/// onert goes by the manifest, whatever a model says that it is.
#[test]
fn schemas_can_be_chosen() {
    let folder = folder();
    let cd = folder.path();
    let mut bytes = fs::read(cd.join("every.tflite")).unwrap();
    bytes[4..8].copy_from_slice(b"XXXX");
    fs::write(cd.join("other.tflite"), bytes).unwrap();
    assert_eq!(fails(cd, &["graph", "other.tflite"]).0, 1);
    let args = ["graph", "--schema", "tflite", "other.tflite"];
    let [other, same] = [&args[..], &["graph", "every.tflite"]].map(|a| prints(cd, a));
    assert_eq!(other.split_once('\n').unwrap().1, same.split_once('\n').unwrap().1);
}

/// Puts the model of a package beside it.
fn unpacked(cd: &Path) {
    prints(cd, &["unpack", "one.zip", "one"]);
    prints(cd, &["unpack", "two.zip", "two"]);
}

#[test]
fn built_packages_are_sound_and_the_same_each_time() {
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    let build = ["pack", "--mmap", "--digests", "one/add.circle"];
    let text = prints(cd, &[&build[..], &["add.zip"]].concat());
    assert!(text.starts_with("add.zip: packed, version 1.1.0, 1 model, 4 files, "), "{text}");
    let text = prints(cd, &[&build[..], &["add", "--to", "nnpackage", "--folder"]].concat());
    assert_eq!(text, "add: packed, version 1.1.0, 1 model, 4 files\n");
    prints(cd, &["unpack", "add.zip", "extracted"]);
    for name in ["add.circle", "metadata/MANIFEST", "metadata/config.cfg", "metadata/SHA256SUMS"] {
        let [built, extracted] =
            ["add", "extracted"].map(|folder| fs::read(cd.join(folder).join(name)).unwrap());
        assert!(built == extracted, "{name}");
    }
    for path in ["add.zip", "add"] {
        assert!(prints(cd, &["verify", path]).starts_with(&format!("{path}: valid\n")));
    }
    let to_stdout = modelcrate(cd, &[&build[..], &["-", "--to", "nnpackage"]].concat());
    assert!(to_stdout.stdout == fs::read(cd.join("add.zip")).unwrap());
    let model = fs::read(cd.join("one/add.circle")).unwrap();
    let args = ["pack", "add.circle=-", "-", "--to=nnpackage", "--mmap", "--digests"];
    assert!(given(&args, &model).stdout == to_stdout.stdout);
}

#[test]
fn changed_files_fail_verification() {
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    prints(cd, &["pack", "one/add.circle", "add", "--to=nnpackage", "--digests", "--folder"]);
    fs::write(cd.join("add/notes"), "x").unwrap();
    let output = modelcrate(cd, &["verify", "add"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = "error [nnp/digest-unlisted-file] \"notes\": is not listed in \
                \"metadata/SHA256SUMS\"";
    assert!(text.contains(line), "{text}");
}

#[test]
fn outputs_are_not_replaced_unasked() {
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    let build = ["pack", "--to=nnpackage", "one/add.circle"];
    let there = "is there already (--overwrite replaces it)";
    let (code, text) = fails(cd, &[&build[..], &["two.zip"]].concat());
    assert_eq!((code, text), (2, format!("error: two.zip: {there}\n")));
    let (code, text) = fails(cd, &[&build[..], &["two", "--folder"]].concat());
    assert_eq!((code, text.as_str()), (2, "error: two: is not empty\n"));
    let (code, text) = fails(cd, &[&build[..], &["one/add.circle", "--overwrite"]].concat());
    let input = "error: one/add.circle: is an input, expected another file\n";
    assert_eq!((code, text.as_str()), (2, input));
    let (_, text) = fails(cd, &["edit", "one", "-o", "one/new.zip", "--set", "NUM_THREADS=1"]);
    assert_eq!(text, "error: one/new.zip: is in the folder that is read\n");
    let (_, text) = fails(cd, &["edit", "two.zip", "-o", "two.zip", "--set", "NUM_THREADS=1"]);
    assert!(text.ends_with("is the input, which is changed where no output is given\n"), "{text}");
    let (_, text) = fails(cd, &["edit", "-", "--set", "NUM_THREADS=1"]);
    assert_eq!(
        text,
        "error: standard input cannot be edited in place: say with -o where it goes\n"
    );
    prints(cd, &[&build[..], &["two.zip", "--overwrite"]].concat());
    assert_eq!(Reader::open(cd.join("two.zip")).unwrap().models().len(), 1);
}

#[test]
fn edits_are_made_in_place_and_elsewhere() {
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    let changes = [
        // Nothing is connected to it, which is an error where others are.
        "--force",
        "--add-model",
        "more/add.circle=one/add.circle",
        "--set",
        "NUM_THREADS=2",
    ];
    let before = fs::read(cd.join("two.zip")).unwrap();
    let edit = |to: &[&str]| prints(cd, &[&["edit", "two.zip"][..], to, &changes[..]].concat());
    edit(&["-o", "new.zip"]);
    edit(&["-o", "new", "--folder"]);
    assert!(fs::read(cd.join("two.zip")).unwrap() == before);
    let args = ["edit", "-", "-o", "-", "--set", "NUM_THREADS=2", "--put"];
    let put = format!("more/add.circle={}", cd.join("one/add.circle").display());
    let output = given(&[&args[..], &[put.as_str()]].concat(), &before);
    assert_eq!(Reader::from_bytes(output.stdout).unwrap().files().unwrap().count(), 7);
    edit(&[]);
    prints(cd, &[&["edit", "two"][..], &changes[..]].concat());
    let [archive, other, folder, in_place] =
        ["two.zip", "new.zip", "new", "two"].map(|path| Reader::open(cd.join(path)).unwrap());
    for reader in [&other, &folder, &in_place] {
        assert_eq!(reader.manifest(), archive.manifest());
        for (a, b) in reader.files().unwrap().zip(archive.files().unwrap()) {
            assert_eq!(a.path(), b.path());
            assert_eq!(a.bytes().unwrap(), b.bytes().unwrap(), "{}", a.path());
        }
    }
    let text = prints(cd, &["edit", "two", "--set", "NUM_THREADS=2"]);
    assert_eq!(text, "two: nothing to change\n");
}

#[test]
fn split_packages_are_merged_again() {
    let folder = folder();
    let cd = folder.path();
    let text = prints(cd, &["nnpackage", "split", "two.zip", "parts"]);
    assert!(text.contains("parts/m0.zip: written, version 1.0.0, 1 model, 2 files"), "{text}");
    assert!(text.ends_with("parts: without metadata/tc/input.h5\n"), "{text}");
    let (code, text) = fails(cd, &["nnpackage", "split", "two.zip", "parts"]);
    let there = "error: parts/m0.zip: is there already (--overwrite replaces it)\n";
    assert_eq!((code, text.as_str()), (2, there));
    prints(cd, &["nnpackage", "split", "two.zip", "folders", "--folders"]);
    let parts = ["folders/m0", "parts/m1.zip", "again.zip", "--connect", "0:0:0=1:0:0"];
    prints(cd, &[&["nnpackage", "merge"][..], &parts].concat());
    let [again, before] = ["again.zip", "two.zip"].map(|path| Reader::open(cd.join(path)).unwrap());
    assert_eq!(again.manifest(), before.manifest());
    let (code, text) = fails(cd, &["nnpackage", "merge", "two.zip", "two.zip", "four.zip"]);
    assert_eq!((code, text.as_str()), (2, "error: \"m0.circle\" is in the package already\n"));
    let named = ["nnpackage", "merge", "two.zip", "b=two.zip", "four.zip"];
    prints(cd, &named);
    assert_eq!(Reader::open(cd.join("four.zip")).unwrap().models().len(), 4);
}

#[test]
fn broken_models_are_invalid() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("broken.circle"), b"\x20\0\0\0CIR0 and no more than this").unwrap();
    let (code, text) = fails(cd, &["pack", "broken.circle", "broken.zip"]);
    let start = "error: broken.circle: cannot be opened as a model: model is malformed: ";
    assert!(code == 1 && text.starts_with(start), "{code} {text}");
    let missing = fails(cd, &["pack", "none.circle", "none.zip"]).0;
    assert_eq!(missing, 2);
    assert!(!cd.join("broken.zip").exists());
}

/// Returns a model of so many operators of one name, and a constant so many times.
fn large(name: String, operators: usize, constants: usize) -> Vec<u8> {
    let mut model = ModelBuilder::new(Schema::Circle).finish();
    model.operator_codes.push(OperatorCode::custom(name));
    let buffer = model.add_buffer(vec![1; 1 << 20]);
    let constant = Tensor { buffer, ..Tensor::new("c", TensorType::Uint8, [1 << 20]) };
    model.subgraphs.push(Subgraph {
        operators: vec![Operator::default(); operators],
        tensors: vec![constant; constants],
        ..Subgraph::default()
    });
    model.to_bytes().unwrap()
}

/// Each of these took gigabytes, or minutes, once.
#[test]
fn what_is_shared_is_shown_once() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("names.circle"), large("n".repeat(1 << 20), 20_000, 0)).unwrap();
    let shown = prints(cd, &["graph", "--format", "json", "names.circle"]);
    assert!(shown.len() < 32 << 20, "{}", shown.len());
    assert!(shown.contains(&format!("\"CUSTOM:{}…\"", "n".repeat(249))));
    prints(cd, &["inspect", "names.circle"]);
    fs::write(cd.join("constants.circle"), large("n".to_owned(), 0, 100_000)).unwrap();
    let start = Instant::now();
    modelcrate(cd, &["verify", "constants.circle"]);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn training_information() {
    let folder = folder();
    let cd = folder.path();
    let mut model = ModelBuilder::new(Schema::Circle);
    model.subgraph("main").finish();
    let mut model = model.finish();
    let training = TrainingInfo {
        version: 1,
        optimizer: Optimizer::SGD,
        optimizer_options: Some(OptimizerOptions::Sgd { learning_rate: 0.1 }),
        loss: LossFn::MEAN_SQUARED_ERROR,
        loss_options: Some(LossOptions::MeanSquaredError),
        epochs: 5,
        batch_size: 32,
        loss_reduction: LossReductionType::Sum,
        trainable_operators: vec![1, 3],
    };
    model.set_metadata(TrainingInfo::METADATA, training.to_bytes().unwrap());
    Writer::create(cd.join("trained.circle"), &model).unwrap().finish().unwrap();
    let text = prints(cd, &["inspect", "trained.circle"]);
    let line = "training = \"SGD, learning rate 0.1; MEAN_SQUARED_ERROR, Sum; 5 epochs in batches of \
                32; 2 trainable operators\"\n";
    assert!(text.contains(line), "{text}");
    let json = prints(cd, &["graph", "--format", "tables", "trained.circle"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!({
        "version": 1,
        "optimizer": "SGD",
        "optimizer_options": {"kind": "sgd", "learning_rate": 0.1},
        "loss": "MEAN_SQUARED_ERROR",
        "loss_options": {"kind": "mean_squared_error"},
        "epochs": 5,
        "batch_size": 32,
        "loss_reduction": "Sum",
        "trainable_operators": [1, 3],
    });
    assert_eq!(json["model"]["training"].to_string(), expected.to_string());
    model.set_metadata(TrainingInfo::METADATA, &b"it is no information"[..]);
    Writer::create(cd.join("trained.circle"), &model).unwrap().finish().unwrap();
    let text = prints(cd, &["inspect", "trained.circle"]);
    let line = "training information is malformed: identifier at byte 4 is ";
    assert!(text.contains(line), "{text}");
}

#[test]
fn names_of_parts_are_told_apart() {
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    let model = |name: &str| format!("{name}=one/add.circle");
    let models = ["a/m.circle", "b/M.circle", "m-1.circle"].map(model);
    let build = ["pack", &models[0], &models[1], &models[2], "all.zip"];
    prints(cd, &build);
    prints(cd, &["nnpackage", "split", "all.zip", "parts", "--force"]);
    let mut parts: Vec<_> = fs::read_dir(cd.join("parts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    parts.sort();
    assert_eq!(parts, ["M-1-1.zip", "m-0.zip", "m-1.zip"]);
}

/// The parts of a partition are the models, in their order.
#[test]
fn connections_are_those_of_the_models() {
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    let conn = r#"{"source": {"file": "m.circle", "inputs": ["x"], "outputs": ["z"]}, "parts": [
        {"file": "m0.circle", "inputs": ["x"], "outputs": ["y"]},
        {"file": "m1.circle", "inputs": ["y"], "outputs": ["z"]}]}"#;
    fs::write(cd.join("m.conn.json"), conn).unwrap();
    let build = ["pack", "--from-conn", "m.conn.json"];
    let found = fails(cd, &[&build[..], &["two/m1.circle", "two/m0.circle", "new.zip"]].concat());
    let expected =
        "error: m.conn.json: has \"m0.circle\" as part 0, but model 0 is \"m1.circle\"\n";
    assert_eq!(found, (2, expected.to_owned()));
    let found = fails(cd, &[&build[..], &["two/m0.circle", "new.zip"]].concat());
    let expected = "error: m.conn.json: has 2 parts, but the package has 1 models\n";
    assert_eq!(found, (2, expected.to_owned()));
    prints(cd, &[&build[..], &["two/m0.circle", "two/m1.circle", "new.zip"]].concat());
    assert!(Reader::open(cd.join("new.zip")).unwrap().manifest().edges().count() == 1);
}

#[test]
fn what_checks_call_invalid_is_not_written() {
    let folder = folder();
    let cd = folder.path();

    prints(cd, &["edit", "one.zip", "-o", "set.zip", "--set", "NUM_THREADS=1"]);
    fs::write(cd.join("long"), vec![b'#'; 1_200_000]).unwrap();
    fs::write(cd.join("no.h5"), "not HDF5").unwrap();
    prints(cd, &["unpack", "set.zip", "set"]);
    fs::copy(cd.join("set/add.circle"), cd.join("add.circle")).unwrap();
    let written = ["out.zip", "--force"];
    for args in [
        &["edit", "set.zip", "-o", "out.zip", "--set", "NUM_THREADS=abc"][..],
        &["edit", "set.zip", "-o", "out.zip", "--set", "EXECUTOR=linear"],
        &["edit", "set.zip", "-o", "out.zip", "--model-type", "0=tflite"],
        &["edit", "set.zip", "-o", "out.zip", "--put", "metadata/config.cfg=long"],
        &["pack", "add.circle", "b=add.circle", "out.zip", "--connect", "0:0:0=1:0:9"],
    ] {
        for more in [&[][..], &["--dry-run"], &["--format", "json"]] {
            let output = modelcrate(cd, &[args, more].concat());
            assert_eq!(output.status.code(), Some(1), "{args:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            let says = if more.len() == 2 { "\"refused\":true" } else { "out.zip: not written" };
            assert!(text.contains(says) && text.contains("error"), "{args:?}: {text}");
            assert!(!cd.join("out.zip").exists(), "{args:?}");
        }
        prints(cd, &[args, &written[1..]].concat());
        fs::remove_file(cd.join("out.zip")).unwrap();
    }
    for place in ["set.zip", "set"] {
        let edit = ["edit", place, "--set", "NUM_THREADS=abc"];
        assert_eq!(modelcrate(cd, &edit).status.code(), Some(1));
        let config = Reader::open(cd.join(place)).unwrap().config().unwrap().unwrap();
        assert_eq!(config.value("NUM_THREADS"), Some("1"));
        prints(cd, &[&edit[..], &["--force"]].concat());
        // What was wrong before is not new.
        prints(cd, &["edit", place, "--set", "USE_MMAPED_DATA=1"]);
    }
    let warned = prints(cd, &["pack", "add.circle", "w.zip", "--golden-input", "no.h5"]);
    assert!(warned.contains("warning") && warned.contains("golden"), "{warned}");
}

/// Models get other numbers and files other paths; what is wrong with them stays what it is.
#[test]
fn what_was_wrong_before_may_stay() {
    let folder = folder();
    let cd = folder.path();
    // A type that is not that of the model, and a file that a model needs and that is not there.
    prints(cd, &["edit", "two.zip", "-o", "type.zip", "--force", "--model-type", "1=tflite"]);
    let runs = testdata("nnpackage/invalid/run_model_missing");
    let runs = runs.to_str().unwrap();
    let to = ["out.zip", "--overwrite"];
    for args in [
        &["edit", "type.zip", "-o", "out.zip", "--remove-model", "0", "--drop-connections"][..],
        &[&["nnpackage", "merge", "one.zip", "type.zip"], &to[..]].concat(),
        &[&["nnpackage", "merge", "one.zip", "in=type.zip"], &to[..]].concat(),
        &[&["nnpackage", "merge", "two.zip", &format!("in={runs}")], &to[..]].concat(),
        &["nnpackage", "split", "type.zip", "parts"],
    ] {
        prints(cd, args);
        assert!(
            args[1] == "split" || modelcrate(cd, &["verify", "out.zip"]).status.code() == Some(1)
        );
    }
    // A connection that leads nowhere is new, and so is nothing written.
    let connect = ["nnpackage", "merge", "one.zip", "in=type.zip", "no.zip", "--connect"];
    let output = modelcrate(cd, &[&connect[..], &["0:0:0=1:0:9"]].concat());
    assert_eq!((output.status.code(), cd.join("no.zip").exists()), (Some(1), false));
}

/// Of several packages all are written, or none.
#[test]
fn split_packages_are_checked_before_the_first_is_written() {
    let folder = folder();
    let cd = folder.path();
    unpacked(cd);
    // What the second one is cannot be told any more.
    fs::rename(cd.join("two/m1.circle"), cd.join("two/m1")).unwrap();
    fs::write(cd.join("two/m1"), "nothing that is known").unwrap();
    package(&cd.join("two"), r#"{"models": ["m0.circle", "m1"]}"#);
    for more in [&[][..], &["--dry-run"], &["--format", "json"]] {
        let split = ["nnpackage", "split", "two", "parts"];
        let output = modelcrate(cd, &[&split[..], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), cd.join("parts").exists()), (Some(1), false), "{text}");
        assert!(text.contains("parts/m1.zip") && !text.contains("parts/m0.zip"), "{text}");
    }
    prints(cd, &["nnpackage", "split", "two", "parts", "--force"]);
}

/// Runs a command that may only write so many blocks of a file.
#[cfg(target_os = "linux")]
fn limited(cd: &Path, blocks: u32, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("sh");
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_modelcrate")]).args(args);
    let output = command.current_dir(cd).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A package `large` of two models, of which the second one is large, and what is in it.
fn large_package(cd: &Path) {
    unpacked(cd);
    fs::create_dir(cd.join("large")).unwrap();
    package(
        &cd.join("large"),
        r#"{"major-version":"1","minor-version":"0","patch-version":"0",
            "models":["m0.circle","m1.bin"],"model-types":["circle","bin"]}"#,
    );
    fs::copy(cd.join("two/m0.circle"), cd.join("large/m0.circle")).unwrap();
    fs::write(cd.join("large/m1.bin"), test_support::noise(100_000)).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_named_and_leaves_nothing() {
    let folder = folder();
    let cd = folder.path();
    large_package(cd);
    prints(cd, &["edit", "large", "-o", "large.zip", "--set", "NUM_THREADS=1"]);
    let before = test_support::names(cd);
    for (args, named) in [
        (&["nnpackage", "split", "large.zip", "new/parts"][..], "new/parts/m1.zip"),
        (&["nnpackage", "split", "large.zip", "new/parts", "--folders"], "new/parts/m1/m1.bin"),
        (&["unpack", "large.zip", "new"], "new/m1.bin"),
        (&["edit", "large.zip", "-o", "new", "--folder", "--set", "NUM_THREADS=2"], "new/m1.bin"),
        (&["nnpackage", "merge", "large.zip", "new", "--folder"], "new/m1.bin"),
        (&["nnpackage", "merge", "large.zip", "new.zip"], "new.zip"),
    ] {
        let (code, said) = limited(cd, 40, args);
        assert_eq!((code, test_support::names(cd)), (Some(2), before.clone()), "{args:?}: {said}");
        assert!(said.starts_with(&format!("error: {named}: ")), "{args:?}: {said}");
    }
}

#[test]
fn what_cannot_be_read_is_named_and_leaves_nothing() {
    let folder = folder();
    let cd = folder.path();
    large_package(cd);
    fs::write(cd.join("large/text"), vec![7; 10_000]).unwrap();
    prints(cd, &["edit", "large", "-o", "bad.zip", "--set", "NUM_THREADS=1"]);
    let mut bytes = fs::read(cd.join("bad.zip")).unwrap();
    let content = fs::read(cd.join("large/m1.bin")).unwrap();
    let at = bytes.windows(64).position(|found| *found == content[..64]).unwrap();
    bytes[at] ^= 1;
    fs::write(cd.join("bad.zip"), bytes).unwrap();
    let before = test_support::names(cd);
    for args in [
        &["nnpackage", "split", "bad.zip", "parts", "--folders"][..],
        &["nnpackage", "merge", "one.zip", "bad.zip", "new", "--folder"],
        &["nnpackage", "merge", "one.zip", "bad.zip", "new.zip", "--digests"],
        &["edit", "bad.zip", "-o", "new", "--folder", "--set", "NUM_THREADS=2"],
        &["unpack", "bad.zip", "new"],
    ] {
        for more in [&[][..], &["--dry-run"]] {
            let (code, said) = fails(cd, &[args, more].concat());
            assert_eq!((code, test_support::names(cd)), (1, before.clone()), "{args:?}: {said}");
            assert!(said.starts_with("error: bad.zip: "), "{args:?} {more:?}: {said}");
        }
    }
}

#[test]
fn damage_gets_no_new_digests() {
    let folder = folder();
    let cd = folder.path();
    large_package(cd);
    prints(cd, &["edit", "large", "--digests"]);
    fs::write(cd.join("large/m1.bin"), "other weights").unwrap();
    assert_eq!(modelcrate(cd, &["verify", "large"]).status.code(), Some(1));
    for args in [
        &["nnpackage", "split", "large", "new"][..],
        &["nnpackage", "merge", "large", "b=one.zip", "--digests", "new", "--folder"],
    ] {
        for more in [&["--dry-run"][..], &[]] {
            let output = modelcrate(cd, &[args, more].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!((output.status.code(), cd.join("new").exists()), (Some(1), false), "{text}");
            assert!(text.contains("[nnp/digest]") && text.contains("\"m1.bin\""), "{text}");
        }
        prints(cd, &[args, &["--force"]].concat());
        fs::remove_dir_all(cd.join("new")).unwrap();
    }
}

/// As on the small disks that packages go to: only what they need has to be free.
#[test]
fn small_disks_are_large_enough() {
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = |args: &[&str]| Command::new(args[0]).args(&args[1..]).output();
    let target = disk.to_str().unwrap();
    let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", target]);
    if !mounted.is_ok_and(|output| output.status.success()) {
        return;
    }
    let zip = folder.path().join("one.zip");
    let extracted = modelcrate(&disk, &["unpack", zip.to_str().unwrap(), "one"]);
    fs::write(folder.path().join("large"), vec![0; 6 << 20]).unwrap();
    let put = format!("large={}", folder.path().join("large").display());
    let large = folder.path().join("large.zip");
    let args = ["edit", zip.to_str().unwrap(), "-o", large.to_str().unwrap(), "--put", &put];
    prints(&disk, &args);
    let refused = ["--dry-run", "--format=human"].map(|more| {
        let args = ["unpack", large.to_str().unwrap(), "large", more];
        modelcrate(&disk, &args)
    });
    mount(&["umount", target]).unwrap();
    assert!(extracted.status.success(), "{extracted:?}");
    for output in refused {
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.starts_with("error: ") && said.contains("large") && said.contains("free"),
            "{said}"
        );
    }
}
