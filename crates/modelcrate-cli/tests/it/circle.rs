//! `modelcrate edit` of Circle and TFLite models.

use std::{fs, path::Path};

use modelcrate::circle_format::{
    Reader, Writer,
    model::{
        BuiltinOperator, ModelBuilder, Operator, Schema, Tensor, TensorType, options::AddOptions,
    },
};

use crate::run::{fails, modelcrate, prints};

/// Writes a model of one operator: `sum = x + one`.
fn add(path: &Path, schema: Schema, tensor_type: TensorType) {
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x:0", tensor_type, [1, 2]));
    let one = graph.constant(Tensor::new("one", TensorType::Float32, [1]), vec![0, 0, 128, 63]);
    let sum = graph.output(Tensor::new("sum", TensorType::Float32, [1, 2]));
    let add = Operator::new([x, one], [sum]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    graph.finish();
    Writer::create(path, &model.finish()).unwrap().finish().unwrap();
}

fn edit<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["edit"], args].concat()
}

#[test]
fn models_are_edited_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    add(&cd.join("m.circle"), Schema::Circle, TensorType::Float32);
    fs::write(cd.join("labels.txt"), "cat\ndog\n").unwrap();
    let args = [
        "m.circle",
        "--set",
        "license=MIT",
        "--set",
        "labels=@labels.txt",
        "--rename",
        "x:0=x",
        "--signature",
        "serve",
        "--description",
        "adds one",
        "--buffers",
        "outside",
    ];
    let printed = prints(cd, &edit(&args));
    assert!(printed.starts_with("m.circle: renamed x:0 → x\n"), "{printed}");
    let reader = Reader::open(cd.join("m.circle")).unwrap();
    let model = reader.model();
    assert_eq!(model.metadata("license").unwrap(), &b"MIT"[..]);
    assert_eq!(model.metadata("labels").unwrap(), &b"cat\ndog\n"[..]);
    assert_eq!(model.description.as_deref(), Some("adds one"));
    let signature = model.signature("serve").unwrap();
    assert_eq!(signature.inputs[0].name.as_deref(), Some("x"));
    assert_eq!((signature.outputs[0].tensor_index, model.buffers[1].is_external()), (2, true));
    assert!(!model.buffers[2].is_external(), "onert looks for metadata in the tables alone");
    assert_eq!(reader.tensor("one").unwrap().bytes().unwrap(), [0, 0, 128, 63][..]);
    drop(reader);

    let args = ["m.circle", "--unset", "labels", "--remove-signature", "serve", "--drop-unused"];
    prints(cd, &edit(&[&args[..], &["--description", "", "--buffers", "inline"]].concat()));
    let reader = Reader::open(cd.join("m.circle")).unwrap();
    let model = reader.model();
    assert_eq!((model.metadata.len(), model.signatures.len()), (1, 0));
    assert_eq!((model.buffers.len(), model.description.as_deref()), (3, None));
    assert_eq!(reader.diagnoses(), []);
}

#[test]
fn tflite_becomes_circle() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    add(&cd.join("m.tflite"), Schema::Tflite, TensorType::Float32);
    add(&cd.join("two.tflite"), Schema::Tflite, TensorType::Int2);
    prints(cd, &["convert", "m.tflite", "m.circle"]);
    let reader = Reader::open(cd.join("m.circle")).unwrap();
    assert_eq!((reader.identifier(), reader.diagnoses()), (Some(Schema::Circle), vec![]));
    let args = ["convert", "two.tflite", "two.circle"];
    let expected = "error: two.tflite: subgraph 0/tensor 0 has the element type INT2, which circle \
                    has not\n";
    assert_eq!(fails(cd, &args), (2, expected.to_owned()));
    assert!(!cd.join("two.circle").exists());
    prints(cd, &["convert", "m.circle", "--to", "tflite", "back.tflite"]);
    let [before, back] =
        ["m.tflite", "back.tflite"].map(|name| Reader::open(cd.join(name)).unwrap());
    assert_eq!(back.model(), before.model());
    add(&cd.join("ggml.circle"), Schema::Circle, TensorType::GgmlQ4_0);
    let expected = "error: ggml.circle: subgraph 0/tensor 0 has the element type GGML_Q4_0, which \
                    tflite has not\n";
    let args = ["convert", "ggml.circle", "ggml.tflite"];
    assert_eq!(fails(cd, &args), (2, expected.to_owned()));
    assert!(!cd.join("ggml.tflite").exists());
}

#[test]
fn what_checks_call_invalid_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    add(&cd.join("m.circle"), Schema::Circle, TensorType::Float32);
    let before = fs::read(cd.join("m.circle")).unwrap();
    let set = ["--set", "CIRCLE_TRAINING=it is no information"];
    for place in [&["m.circle"][..], &["m.circle", "-o", "new.circle"], &["m.circle", "-o", "-"]] {
        for more in [&[][..], &["--dry-run"]] {
            let output = modelcrate(cd, &edit(&[place, &set, more].concat()));
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            let start = format!("{}: not written, as it would be invalid", place[place.len() - 1]);
            assert!(text.starts_with(&start) && text.contains("[model/training-info]"), "{text}");
            assert_eq!(fs::read(cd.join("m.circle")).unwrap(), before);
            assert_eq!(fs::read_dir(cd).unwrap().count(), 1);
        }
    }
    prints(cd, &edit(&[&["m.circle", "--force"][..], &set].concat()));
    // What was wrong before is not new.
    prints(cd, &edit(&["m.circle", "--set", "a=b"]));
}

#[test]
fn refused_edits_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    add(&cd.join("m.circle"), Schema::Circle, TensorType::Float32);
    let before = fs::read(cd.join("m.circle")).unwrap();
    for (args, message) in [
        (&["--unset", "none"][..], "error: m.circle: has no metadata \"none\", and no other\n"),
        (&["--rename", "none=x"], "error: m.circle: has no tensor \"none\"\n"),
        (
            &["--rename", "x:0=a", "--rename", "x:0=b"],
            "error: m.circle: \"x:0\" is renamed twice\n",
        ),
        (&["--remove-signature", "none"], "error: m.circle: has no signature \"none\"\n"),
        (&["--signature", "serve:7"], "error: m.circle: has 1 graphs, none at 7\n"),
        (
            &["--set", "a=@none"],
            "error: none: opening failed: No such file or directory (os error 2)\n",
        ),
    ] {
        let found = fails(cd, &edit(&[&["m.circle"], args].concat()));
        assert_eq!(found, (2, message.to_owned()));
        assert_eq!(fs::read(cd.join("m.circle")).unwrap(), before);
    }
    let args = edit(&["m.circle", "-o", "m.circle", "--drop-unused"]);
    let expected = "error: m.circle: is the input, which is replaced where no output is given\n";
    assert_eq!(fails(cd, &args), (2, expected.to_owned()));
    prints(cd, &edit(&["m.circle", "--set", "a=b", "--dry-run"]));
    assert_eq!(fs::read(cd.join("m.circle")).unwrap(), before);
    assert_eq!(fs::read_dir(cd).unwrap().count(), 1);
}
