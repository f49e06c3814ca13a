//! The commands of `modelcrate rten` that write files.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use modelcrate::{
    rten_format::{
        Constant, ConstantData, ConstantDataType, Dim, GraphBuilder, Header, Model, NodeKind,
        Reader, Rewrite, Tensor, Value, Version, onnx::Export,
    },
    tensor_core::{Extent, output::LockedFile},
};
use test_support::testdata;

use crate::run::{fails, in_group, modelcrate, prints};

/// A folder with a model in both versions.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, new) in [("mlp.v1.rten", "v1.rten"), ("mlp.v2.rten", "v2.rten")] {
        fs::copy(testdata("rten/valid").join(name), folder.path().join(new)).unwrap();
    }
    let zeros = [0_u8; 128];
    fs::write(folder.path().join("zeros.bin"), zeros).unwrap();
    folder
}

#[track_caller]
fn is_sound(path: &Path) -> Reader {
    let reader = Reader::open(path).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    reader
}

#[test]
fn versions_are_converted() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["convert", "v1.rten", "new.rten", "--to", "rten2"]);
    assert_eq!(fs::read(cd.join("new.rten")).unwrap().len() % 64, 32);
    assert_eq!(is_sound(&cd.join("new.rten")).version(), Version::V2);
    prints(cd, &["convert", "new.rten", "old.rten", "--to", "rten1"]);
    let old = is_sound(&cd.join("old.rten"));
    for tensor in is_sound(&cd.join("v1.rten")).tensors() {
        let copy = old.tensor(tensor.name().unwrap()).unwrap();
        assert_eq!(copy.bytes().unwrap(), tensor.bytes().unwrap());
    }
    prints(cd, &["convert", "--to", "rten2", "--wrap", "v1.rten", "wrapped.rten"]);
    prints(cd, &["convert", "wrapped.rten", "unwrapped.rten", "--to", "rten1"]);
    let same =
        fs::read(cd.join("unwrapped.rten")).unwrap() == fs::read(cd.join("v1.rten")).unwrap();
    assert!(same);
    let wide = ["convert", "v1.rten", "wide.rten", "--to", "rten2", "--alignment", "4096"];
    prints(cd, &[&wide[..], &["--inline-elements", "0"]].concat());
    let wide = is_sound(&cd.join("wide.rten"));
    assert!(wide.tensors().all(|tensor| tensor.extent().unwrap().unwrap().offset() % 4096 == 0));
}

#[test]
fn outputs_are_not_overwritten() {
    let folder = folder();
    let cd = folder.path();
    for (args, message) in [
        (
            &["convert", "v1.rten", "v2.rten", "--to", "rten2"][..],
            "error: v2.rten: is there already (--overwrite replaces it)\n",
        ),
        (
            &["convert", "v1.rten", "v1.rten", "--to", "rten2", "--overwrite"],
            "error: v1.rten: is the input, expected another file\n",
        ),
        (
            &["convert", "--to", "rten2", "--wrap", "v2.rten", "new.rten"],
            "error: v2.rten: the file has a header already, expected one of version 1\n",
        ),
        (
            &["rten", "cut", "v1.rten", "new.rten", "--outputs", "nothing"],
            "error: v1.rten: no value or constant is called \"nothing\"\n",
        ),
    ] {
        assert_eq!(fails(cd, args), (2, message.to_owned()));
    }
    assert!(!cd.join("new.rten").exists());
    prints(cd, &["convert", "v2.rten", "v1.rten", "--to", "rten1", "--overwrite"]);
}

#[test]
fn models_are_edited() {
    let folder = folder();
    let cd = folder.path();
    for file in ["v1.rten", "v2.rten"] {
        let changes = ["--set", "license=MIT", "--unset", "run_id", "--rename", "x=image"];
        prints(cd, &[&["edit", file, "--dim", "x:0=n"], &changes[..]].concat());
        prints(cd, &["edit", file, "--outputs", "logits"]);
        let reader = is_sound(&cd.join(file));
        let metadata = reader.model().metadata.as_ref().unwrap();
        assert_eq!((metadata.license.as_deref(), &metadata.run_id), (Some("MIT"), &None));
        let [(0, image)] = reader.model().find("image")[..] else { panic!() };
        let NodeKind::Value(value) = &reader.model().graph.nodes[image as usize].kind else {
            panic!()
        };
        let expected = [Dim::Symbol("n".to_owned()), Dim::Fixed(4)];
        assert_eq!(value.shape.as_deref(), Some(&expected[..]));
        assert_eq!(reader.model().graph.outputs.len(), 1);
        let unchanged = prints(cd, &["edit", file, "--set", "license=MIT"]);
        assert_eq!(unchanged, format!("{file}: nothing to change\n"));
    }
}

#[test]
fn dry_runs_change_nothing() {
    let folder = folder();
    let cd = folder.path();
    let state = |file: &str| fs::read(cd.join(file)).unwrap();
    for file in ["v1.rten", "v2.rten"] {
        let before = state(file);
        for args in [
            &["edit", file, "--set", "license=none"][..],
            &["edit", file, "--put", "fc1.weight=f32:8,4:zeros.bin"],
            &["rten", "fix-dims", file],
            &["convert", file, "new.rten", "--to", "rten2"],
            &["rten", "cut", file, "new.rten", "--outputs", "h1"],
        ] {
            prints(cd, &[args, &["--dry-run"]].concat());
            assert!(state(file) == before, "{args:?}");
        }
    }
    assert_eq!(fs::read_dir(cd).unwrap().count(), 3);
}

/// What stands in the way of a run stands in the way of a dry run, too, with the same words.
#[cfg(unix)]
#[test]
fn dry_runs_say_what_runs_say() {
    use std::os::unix::fs::PermissionsExt as _;
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let ways = ["", "read-only", "locked", "there", "read-only output", "read-only folder"];
    let commands = [
        "edit v1.rten --set license=MIT",
        "edit v2.rten --set onnx_hash=1",
        "edit v2.rten --put fc1.weight=f32:8,4:zeros.bin",
        "rten fix-dims v2.rten",
        "convert v2.rten new --to rten1",
        "convert v2.rten new --to rten1 --overwrite",
        "convert v1.rten new --to rten2 --alignment 1",
        "convert v1.rten new --to rten2 --wrap --overwrite",
        "convert --to rten2 v1.rten -",
        "rten cut v2.rten new --outputs h1",
        "rten cut v2.rten new --outputs h1 --overwrite",
        "convert v2.rten new --to onnx",
        "convert v2.rten new --to onnx --overwrite --external-data 256",
        "convert --to onnx v2.rten -",
    ];
    let mut refused = 0;
    for (way, command) in ways.iter().flat_map(|way| commands.map(|command| (*way, command))) {
        let folder = folder();
        let cd = folder.path();
        let [v1, v2, new] = ["v1.rten", "v2.rten", "new"].map(|name| cd.join(name));
        let mut locks = Vec::new();
        match way {
            "read-only" => [&v1, &v2].into_iter().for_each(|path| chmod(path, 0o400).unwrap()),
            "locked" => locks.extend([&v1, &v2].map(|path| LockedFile::open(path).unwrap())),
            "there" | "read-only output" => fs::write(&new, "old").unwrap(),
            _ => {}
        }
        if way == "read-only output" {
            chmod(&new, 0o400).unwrap();
        }
        if way == "read-only folder" {
            chmod(cd, 0o500).unwrap();
        }
        let said = |more: &[&str]| {
            let args: Vec<&str> = command.split(' ').collect();
            let output = modelcrate(cd, &[&args, more].concat());
            let out = if command.ends_with(" -") { Vec::new() } else { output.stdout };
            let text = String::from_utf8([out, output.stderr].concat()).unwrap();
            (output.status.code(), text)
        };
        let (status, text) = said(&["--dry-run"]);
        let (real, expected) = said(&[]);
        chmod(cd, 0o700).unwrap();
        assert_eq!(status, real, "{command}, {way}: {text}{expected}");
        if !command.ends_with(" -") || real != Some(0) {
            assert_eq!(text.replace("would be ", ""), expected, "{command}, {way}");
        }
        refused += u32::from(real != Some(0));
    }
    // Root may write into any folder.
    assert!(refused >= 4 + 4 + 4 + 8, "{refused}");
}

#[test]
fn refused_edits_change_nothing() {
    let folder = folder();
    let cd = folder.path();
    let before = fs::read(cd.join("v2.rten")).unwrap();
    for (args, message) in [
        (
            &["--rename", "x=h1"][..],
            "error: v2.rten: graph/node 4 \"x\" has the name of node 7, expected one of its own\n",
        ),
        (
            &["--dim", "x:2=n"],
            "error: v2.rten: graph/node 4 has 2 dimensions, so there is no dimension 2\n",
        ),
        (
            &["--outputs", "x,x"],
            "error: v2.rten: outputs[1] is node 4, which is an output already\n",
        ),
        (
            &["--put", "fc1.weight=f32:4,8:zeros.bin"],
            "error: zeros.bin: \"fc1.weight\": its shape is [4, 8], expected [8, 4]\n",
        ),
        (
            &["--put", "fc1.weight=f64:4,4:zeros.bin"],
            "error: zeros.bin: \"fc1.weight\": its elements are f64, expected f32 (--lossy: f64 as f32, \
             loses precision; values that do not fit are refused)\n",
        ),
        (
            &["--put", "x=f32:8,4:zeros.bin"],
            "error: zeros.bin: \"x\": there is no constant of this name\n",
        ),
    ] {
        let refused = fails(cd, &[&["edit", "v2.rten"], args].concat());
        assert_eq!(refused, (2, message.to_owned()));
        assert!(fs::read(cd.join("v2.rten")).unwrap() == before, "{args:?}");
    }
}

#[test]
fn edits_say_what_verify_will_find_anew() {
    let folder = folder();
    let cd = folder.path();
    fs::copy(testdata("rten/invalid/attributes_missing.rten"), cd.join("old.rten")).unwrap();
    for file in ["v1.rten", "v2.rten", "old.rten"] {
        let edit = ["edit", file, "--set", "onnx_hash=1", "--dry-run"];
        let dry_run = prints(cd, &edit);
        let edited = prints(cd, &edit[..4]);
        assert_eq!(edited, dry_run.replace("would be ", ""));
        let found: Vec<_> = edited.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(found.len(), 1, "{edited}");
        assert!(found[0].starts_with("  warning [rten/onnx-hash] metadata: "), "{edited}");
        // What was there before is not said again, nor in the way.
        let again = prints(cd, &["edit", file, "--set", "license=MIT"]);
        assert!(!again.contains("warning"), "{again}");
    }
    let zero = ["edit", "v2.rten", "--dim", "x:0=0", "--put", "fc1.weight=f32:8,4:zeros.bin"];
    let edited = prints(cd, &zero);
    assert!(edited.contains("  warning [rten/fixed-zero-input] "), "{edited}");
}

#[test]
fn weights_come_from_other_files() {
    let folder = folder();
    let cd = folder.path();
    for file in ["v1.rten", "v2.rten"] {
        let raw = ["--put", "fc1.weight=f32:8,4:zeros.bin"];
        let printed = prints(cd, &[&["edit", file], &raw[..]].concat());
        assert!(printed.starts_with(&format!("{file}: replaced fc1.weight\n")), "{printed}");
        let reader = is_sound(&cd.join(file));
        assert_eq!(reader.tensor("fc1.weight").unwrap().bytes().unwrap(), [0; 128][..]);
    }
    let original = testdata("rten/valid/mlp.v1.rten");
    prints(cd, &["edit", "v2.rten", "--from", original.to_str().unwrap()]);
    let edited = is_sound(&cd.join("v2.rten"));
    for tensor in is_sound(&original).tensors() {
        let copy = edited.tensor(tensor.name().unwrap()).unwrap();
        assert_eq!(copy.bytes().unwrap(), tensor.bytes().unwrap());
    }
    let zt = testdata("ztensor/valid/v1.1-ref/scalars.zt");
    let (status, message) = fails(cd, &["edit", "v2.rten", "--from", zt.to_str().unwrap()]);
    assert_eq!(status, 2);
    assert!(message.ends_with("there is no tensor that is called as one of these\n"), "{message}");
}

/// Constants of several graphs may share a name.
#[test]
fn weights_of_the_same_model_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    for name in ["control_flow.v1.rten", "control_flow.v2.rten"] {
        fs::copy(testdata("rten/valid").join(name), cd.join("model.rten")).unwrap();
        let before = is_sound(&cd.join("model.rten"));
        let contents = |reader: &Reader| -> Vec<_> {
            let content = |tensor: Tensor<'_>| (tensor.path(), tensor.bytes().unwrap());
            reader.tensors().map(content).collect()
        };
        let before = contents(&before);
        let original = testdata("rten/valid").join(name);
        prints(cd, &["edit", "model.rten", "--from", original.to_str().unwrap()]);
        assert_eq!(contents(&is_sound(&cd.join("model.rten"))), before);
    }
}

#[test]
fn nodes_are_named_by_number() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["edit", "v2.rten", "--rename", "#4=a=b,c", "--outputs", "#7,probs"]);
    let reader = is_sound(&cd.join("v2.rten"));
    assert_eq!(reader.model().graph.nodes[4].name.as_deref(), Some("a=b,c"));
    assert_eq!(reader.model().graph.outputs, [7, 5]);
    prints(cd, &["edit", "v2.rten", "--rename", "h1=a1", "--rename", "a1=h1"]);
    for (args, message) in [
        (
            &["edit", "-", "--set", "license=MIT"][..],
            "standard input cannot be edited in place: say with -o where it goes",
        ),
        (
            &["fix-dims", "v2.rten", "--symbol", "#4:0=n"],
            "dimension 0 of \"#4\" is not a 0 of an input",
        ),
    ] {
        let (status, said) = fails(cd, &in_group("rten", args));
        assert_eq!(status, 2);
        assert!(said.ends_with(&format!("{message}\n")), "{said}");
    }
    for dim in ["x:0=-1", "x:0=4294967296", "x:0=+5", "x=1", "x:n=1"] {
        assert_eq!(fails(cd, &["edit", "v2.rten", "--dim", dim]).0, 2, "{dim}");
    }
}

#[test]
fn attributes_are_edited() {
    let folder = folder();
    let cd = folder.path();
    for file in ["v1.rten", "v2.rten"] {
        let said = prints(cd, &["edit", file, "--attribute", "softmax.axis=0"]);
        assert!(said.starts_with(&format!("{file}: set softmax.axis\n")), "{said}");
        assert!(prints(cd, &["verify", file]).contains("note [rten/softmax-axis]"));
        prints(cd, &["edit", file, "--attribute", "#12.axis=-1", "--attribute", "fc1.beta=0.5"]);
        let graph = prints(cd, &["graph", file]);
        assert!(graph.contains("axis = -1\n") && graph.contains("beta = 0.5\n"), "{graph}");
        for (attribute, message) in [
            ("none.axis=1", "no operator is called \"none\""),
            ("softmax.axes=1", "has no attribute \"axes\", expected one of: axis"),
            ("softmax.axis=x", "has attribute axis \"x\", expected a whole number of 32 bits"),
        ] {
            let (status, said) = fails(cd, &["edit", file, "--attribute", attribute]);
            assert_eq!(status, 2);
            assert!(said.ends_with(&format!("{message}\n")), "{said}");
        }
    }
    assert_eq!(fails(cd, &["edit", "v2.rten", "--attribute", "axis=1"]).0, 2);
}

/// A list of inputs may repeat a long name without end.
#[test]
fn what_is_listed_again_is_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.rten");
    let mut graph = GraphBuilder::new();
    let id = graph.input("x".repeat(1 << 20), Value::default()).unwrap();
    let mut graph = graph.finish();
    graph.inputs = vec![id; 200_000];
    let model = Model { graph, metadata: None };
    fs::write(&path, model.to_bytes().unwrap()).unwrap();
    let shown = prints(folder.path(), &["inspect", "model.rten"]);
    assert_eq!(shown.matches("input ").count(), 1);
}

/// Constants may overlap, so that a small file could ask for any amount of work.
#[test]
fn shared_bytes_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.rten");
    let (count, len) = (5000_u32, 200_000_u32);
    let mut graph = GraphBuilder::new();
    for at in 0..count {
        let described = Constant::described([len], ConstantDataType::UInt8);
        let constant = Constant { data_offset: Some(at.into()), ..described };
        graph.constant(format!("c{at}"), constant).unwrap();
    }
    let model_data = Model { graph: graph.finish(), metadata: None }.to_bytes().unwrap();
    let extent = Extent::new(32, model_data.len() as u64).unwrap();
    let header = Header { model_data: extent, tensor_data_offset: extent.end() };
    fs::write(&path, [header.to_bytes(), model_data].concat()).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(extent.end() + u64::from(count + len)).unwrap();
    let started = Instant::now();
    prints(folder.path(), &["verify", "model.rten"]);
    prints(folder.path(), &["convert", "model.rten", "new.rten", "--to", "rten2"]);
    let (before, after) = (fs::metadata(&path), fs::metadata(folder.path().join("new.rten")));
    assert!(after.unwrap().len() < before.unwrap().len() + 4096);
    let stats = modelcrate(folder.path(), &["inspect", "--stats", "model.rten"]);
    let said = String::from_utf8(stats.stdout).unwrap();
    assert!(said.contains("over the limit of"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn zeros_become_symbols() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["edit", "v2.rten", "--dim", "x:0=0", "--dim", "x:1=0"]);
    let warned = prints(cd, &["verify", "v2.rten"]);
    assert!(warned.contains("rten/fixed-zero-input"), "{warned}");
    prints(cd, &["rten", "fix-dims", "v2.rten", "--symbol", "x:0=batch"]);
    let reader = is_sound(&cd.join("v2.rten"));
    let inspected = prints(cd, &["inspect", "v2.rten"]);
    assert!(inspected.contains("input     x: f32 [batch, x_1]\n"), "{inspected}");
    assert!(reader.model().zero_dims().is_empty());
}

#[test]
fn parts_are_written() {
    let folder = folder();
    let cd = folder.path();
    for file in ["v1.rten", "v2.rten"] {
        let cut = ["--outputs", "probs", "--inputs", "a1", "--overwrite"];
        prints(cd, &[&["rten", "cut", file, "part.rten"], &cut[..]].concat());
        let (part, whole) = (is_sound(&cd.join("part.rten")), is_sound(&cd.join(file)));
        assert_eq!(part.version(), whole.version());
        assert_eq!(part.tensors().len(), 2);
        assert!(part.source().len() < whole.source().len());
        for tensor in part.tensors() {
            let old = whole.tensor(tensor.name().unwrap()).unwrap();
            assert_eq!(tensor.bytes().unwrap(), old.bytes().unwrap());
        }
    }
}

#[test]
fn models_are_exported() {
    let folder = folder();
    let cd = folder.path();
    let printed = prints(cd, &["convert", "v2.rten", "model.onnx"]);
    assert_eq!(printed, "model.onnx: exported to ONNX, operator set 20\n");
    let model = fs::read(cd.join("model.onnx")).unwrap();
    prints(cd, &["convert", "v1.rten", "other.onnx"]);
    assert!(fs::read(cd.join("other.onnx")).unwrap() == model);
    let output = modelcrate(cd, &["convert", "v2.rten", "-", "--to", "onnx"]);
    assert!(output.status.success() && output.stdout == model);
    let reader = Reader::open(cd.join("v2.rten")).unwrap();
    assert!(Export::new(&reader).to_bytes().unwrap() == model);
    assert_eq!(
        fails(cd, &["convert", "v2.rten", "model.onnx"]),
        (2, "error: model.onnx: is there already (--overwrite replaces it)\n".to_owned())
    );
    let dry_run = ["convert", "v2.rten", "new.onnx", "--dry-run", "--format", "json"];
    let json = prints(cd, &dry_run);
    let expected = "{\"schema\":1,\"path\":\"new.onnx\",\"to\":\"onnx\",\"data\":null,\"dry_run\":true,\"opset\":20";
    assert!(json.starts_with(expected), "{json}");
    assert!(!cd.join("new.onnx").exists());
}

/// The element type of an input shows in the notes, and what was asked for is not noted.
#[test]
fn inputs_are_exported_as_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::copy(testdata("rten/valid/control_flow.v2.rten"), cd.join("m.rten")).unwrap();
    let export = ["convert", "m.rten", "m.onnx", "--dry-run"];
    let line = "is INT64 in ONNX, where the file says Int32";
    assert!(prints(cd, &export).contains(line));
    let inputs = Reader::open(cd.join("m.rten")).unwrap();
    let graph = &inputs.model().graph;
    let names = graph.inputs.iter().map(|id| graph.nodes[*id as usize].name.clone().unwrap());
    let is_whole = |name: &String| prints(cd, &export).contains(&format!("\"{name}\": {line}"));
    let whole: Vec<String> = names.filter(is_whole).collect();
    let asked: Vec<String> =
        whole.iter().map(|name| format!("--input-type={name}=int32")).collect();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    assert!(!prints(cd, &[&export[..], &asked].concat()).contains("is INT"));
    for (value, message) in [
        ("x", "expected NAME=TYPE"),
        ("x=complex", "complex"),
        ("nosuch=bool", "model has no input \"nosuch\", expected"),
    ] {
        let (status, said) = fails(cd, &[&export[..], &["--input-type", value]].concat());
        assert!(status == 2 && said.contains(message), "{said}");
    }
}

#[test]
fn folders_of_models_are_exported() {
    let folder = folder();
    let cd = folder.path();
    let printed = prints(cd, &["convert", "v2.rten", "--to", "onnx"]);
    assert_eq!(printed, "v2.onnx: exported to ONNX, operator set 20\n");
    let model = fs::read(cd.join("v2.onnx")).unwrap();
    for name in ["models", "exports"] {
        fs::create_dir(cd.join(name)).unwrap();
    }
    fs::write(cd.join("models/note.txt"), "no model").unwrap();
    let folder_of = ["convert", "models", "--to", "onnx"];
    assert_eq!(
        fails(cd, &folder_of),
        (2, "error: models: has no file .rten, and --to is for those\n".to_owned())
    );
    for name in ["a", "b"] {
        fs::copy(cd.join("v2.rten"), cd.join(format!("models/{name}.rten"))).unwrap();
    }
    fs::write(cd.join("models/a.rten"), "no model").unwrap();
    let output = modelcrate(cd, &folder_of);
    assert_eq!(output.status.code(), Some(1));
    assert!(fs::read(cd.join("models/b.onnx")).unwrap() == model);
    fs::remove_file(cd.join("models/a.rten")).unwrap();
    prints(cd, &["convert", "models", "exports", "--to", "onnx"]);
    assert!(fs::read(cd.join("exports/b.onnx")).unwrap() == model);
    let (status, said) = fails(cd, &["convert", "-", "--to", "onnx"]);
    assert!(status == 2 && said.contains("expected an output, or --to for a file"), "{said}");

    // Folders are none of the models, whatever their names are.
    fs::create_dir(cd.join("models/folder.rten")).unwrap();
    fs::rename(cd.join("models/b.rten"), cd.join("models/c.RTEN")).unwrap();
    let printed = prints(cd, &["convert", "models", "--to", "onnx"]);
    assert_eq!(printed, "models/c.onnx: exported to ONNX, operator set 20\n");
    for (more, message) in [
        (&["-", "--to", "onnx"][..], "-: is not a folder"),
        (&["missing", "--to", "onnx"], "missing: is not a folder"),
        (&["--to", "rten1"], "models: models stay .rten: expected an output folder"),
        (
            &["exports", "--to", "rten1", "--input-type", "x=bool"],
            "--input-type is an option of what becomes onnx, not rten1",
        ),
        (&["--to", "onnx", "--input-type", "none=bool"], "models: no model has an input \"none\""),
    ] {
        let said = fails(cd, &[&["convert", "models", "--overwrite"], more].concat());
        assert_eq!(said, (2, format!("error: {message}\n")));
    }
    fs::copy(cd.join("models/c.RTEN"), cd.join("models/c.rten")).unwrap();
    let said = fails(cd, &["convert", "models", "exports", "--to", "onnx"]);
    assert_eq!(said, (2, "error: exports/c.onnx: two models become it\n".to_owned()));
    fs::write(cd.join("models/c.rten"), "no model").unwrap();
    fs::remove_file(cd.join("models/c.RTEN")).unwrap();
    let (status, said) = fails(
        cd,
        &["convert", "models", "--to", "onnx", "--overwrite", "--input-type", "none=bool"],
    );
    assert!(status == 1 && said.contains("models/c.rten: "), "{said}");
}

#[test]
fn input_types_are_for_models_that_have_the_input() {
    let folder = folder();
    let cd = folder.path();
    fs::create_dir(cd.join("models")).unwrap();
    fs::copy(cd.join("v2.rten"), cd.join("models/a.rten")).unwrap();
    fs::copy(testdata("rten/valid/control_flow.v2.rten"), cd.join("models/b.rten")).unwrap();
    let said = prints(cd, &["convert", "models", "--to", "onnx", "--dry-run"]);
    let said = said.lines().find(|line| line.contains("is INT64 in ONNX")).unwrap();
    let name = said.split('"').nth(1).unwrap();
    let asked = format!("--input-type={name}=int32");
    let said = prints(cd, &["convert", "models", "--to", "onnx", &asked]);
    assert!(said.contains("a.onnx: exported") && said.contains("b.onnx: exported"), "{said}");
    assert!(!said.contains(&format!("\"{name}\": is INT64")), "{said}");
}

#[test]
fn large_constants_are_exported_beside_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::copy(testdata("rten/valid/convnet.v2.rten"), cd.join("model.rten")).unwrap();
    prints(cd, &["convert", "model.rten", "model.onnx", "--external-data", "256"]);
    assert!(fs::metadata(cd.join("model.onnx.data")).unwrap().len() > 256);
    assert_eq!(fs::read_dir(cd).unwrap().count(), 3);
    // One of both is enough to be in the way, and nothing is written then.
    let export = ["convert", "model.rten", "model.onnx", "--external-data", "256"];
    for file in ["model.onnx", "model.onnx.data"] {
        for folder in ["model.onnx", "model.onnx.data"] {
            fs::write(cd.join(folder), "other").unwrap();
        }
        let there = if file == "model.onnx" { "model.onnx.data" } else { "model.onnx" };
        fs::remove_file(cd.join(file)).unwrap();
        for dry_run in [&[][..], &["--dry-run"]] {
            let expected = format!("error: {there}: is there already (--overwrite replaces it)\n");
            assert_eq!(fails(cd, &[&export, dry_run].concat()), (2, expected));
        }
        assert!(!cd.join(file).exists());
        assert_eq!(fs::read(cd.join(there)).unwrap(), b"other");
    }
    let dry_run = prints(cd, &[&export[..], &["--overwrite", "--dry-run"]].concat());
    assert_eq!(
        prints(cd, &[&export[..], &["--overwrite"]].concat()),
        dry_run.replace("would be ", "")
    );
}

/// Errors of writing name what is written, not what is read.
#[cfg(unix)]
#[test]
fn files_that_grow_too_large_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let mut graph = GraphBuilder::new();
    let constant = Constant {
        data: Some(ConstantData::UInt8(vec![7; 100_000].into())),
        ..Constant::described([100_000], ConstantDataType::UInt8)
    };
    let weights = graph.constant("w", constant).unwrap();
    graph.output(weights).unwrap();
    let model = Model { graph: graph.finish(), metadata: None };
    fs::write(cd.join("model.rten"), model.to_bytes().unwrap()).unwrap();
    prints(cd, &["convert", "model.rten", "v2.rten", "--to", "rten2"]);
    let state = || ["model.rten", "v2.rten"].map(|file| fs::read(cd.join(file)).unwrap());
    let before = state();
    for (args, output) in [
        ("edit model.rten --set license=MIT", "model.rten"),
        ("edit v2.rten --set license=MIT", "v2.rten"),
        ("convert model.rten new --to onnx", "new"),
        ("convert model.rten new --to onnx --external-data 256", "new.data"),
        ("convert model.rten new --to rten1", "new"),
        ("convert model.rten new --to rten2", "new"),
    ] {
        // Without the signal that the limit comes with, as commands are run that ignore it.
        let script = format!("trap '' XFSZ; ulimit -f 64; exec \"$0\" {args}");
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_modelcrate")).current_dir(cd);
        let failed = shell.output().unwrap();
        let said = String::from_utf8(failed.stderr).unwrap();
        assert_eq!(failed.status.code(), Some(2), "{said}");
        assert!(said.starts_with(&format!("error: {output}: ")), "{said}");
        assert!(said.contains("File too large"), "{said}");
        assert!(fs::read_dir(cd).unwrap().count() == 2 && state() == before, "{args}");
    }
}

#[test]
fn what_cannot_be_exported_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let invalid = testdata("rten/invalid");
    for (file, status, message) in [
        ("operator_type.rten", 2, "has operator type"),
        ("tensors_cut.rten", 1, "needs 96 bytes at byte 128 of the tensor data"),
        ("attributes_missing.rten", 2, "has attributes of type none, but Softmax needs"),
    ] {
        let path = invalid.join(file);
        let failed = fails(cd, &["convert", path.to_str().unwrap(), "new.onnx"]);
        assert_eq!(failed.0, status, "{file}");
        assert!(failed.1.contains(message), "{}", failed.1);
        assert_eq!(fs::read_dir(cd).unwrap().count(), 0);
    }
}

#[test]
fn models_go_through_pipes() {
    let folder = folder();
    let cd = folder.path();
    let output = modelcrate(cd, &["convert", "v2.rten", "-", "--to", "rten1"]);
    let reader = Reader::open(cd.join("v2.rten")).unwrap();
    assert!(output.status.success());
    assert!(output.stdout == Rewrite::new(&reader).to_v1_bytes().unwrap());
}
