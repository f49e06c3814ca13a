//! `modelcrate edit`, `compact` and `recover`: what is the same for all formats, and what is new.

use std::fs;

use modelcrate::{AnyReader, ztensor};
use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

/// A file of each format that can be edited, and an edit of it.
const EDITS: [(&str, &str, &[&str]); 6] = [
    ("carton/golden/minimal.carton", "m.carton", &["--set", "license=MIT"]),
    ("nnpackage/valid/everything.circle", "m.circle", &["--set", "license=MIT"]),
    ("nnpackage/valid/01_minimal_circle_stored.zip", "m.zip", &["--set", "NUM_THREADS=2"]),
    ("ptl/valid/torch113/img_extras.ptl", "m.ptl", &["--put", "extra/notes.txt=notes"]),
    ("rten/valid/mlp.v2.rten", "m.rten", &["--set", "license=MIT"]),
    ("ztensor/valid/v1.1-ref/scalars.zt", "m.zt", &["--set", "license=MIT"]),
];

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (sample, name, _) in EDITS {
        fs::copy(testdata(sample), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("notes"), "12345678").unwrap();
    folder
}

#[test]
fn inputs_stay_where_an_output_is_given() {
    let folder = folder();
    let cd = folder.path();
    for (_, name, options) in EDITS {
        let before = fs::read(cd.join(name)).unwrap();
        let new = format!("new-{name}");
        let args = [&["edit", name, "-o", &new], options].concat();
        let planned = prints(cd, &[&args[..], &["--dry-run"]].concat());
        assert!(!cd.join(&new).exists());
        assert_eq!(planned.replace("would be ", ""), prints(cd, &args));
        assert!(fs::read(cd.join(name)).unwrap() == before, "{name}");
        let there = format!("error: {new}: is there already (--overwrite replaces it)\n");
        assert_eq!(fails(cd, &args), (2, there));
        let piped = modelcrate(cd, &[&["edit", name, "-o", "-"], options].concat());
        assert!(piped.stdout == fs::read(cd.join(&new)).unwrap(), "{name}");
        prints(cd, &[&["edit", name], options].concat());
        let [a, b] = [name, &new].map(|name| AnyReader::open(cd.join(name)).unwrap());
        let summary = |reader: &AnyReader| serde_json::to_value(reader.summary(Default::default()));
        let [a, b] = [summary(&a).unwrap(), summary(&b).unwrap()];
        assert_eq!(a["metadata"], b["metadata"], "{name}");
    }
}

#[test]
fn what_a_format_has_not_is_refused() {
    let folder = folder();
    let cd = folder.path();
    fs::copy(cd.join("m.zt"), cd.join("m2.zt")).unwrap();
    for (args, message) in [
        (&["m.zt"][..], "nothing is to be changed: say what, such as --set KEY=VALUE"),
        (
            &["m.ptl", "--digests"],
            "m.ptl: is a PyTorch Live model, for which there is no --digests, only --remove, --put",
        ),
        (
            &["m.rten", "--set", "nosuch=1"],
            "m.rten: has no field \"nosuch\", expected one of onnx_hash, description, license, commit, \
             code_repository, model_repository, run_id, run_url",
        ),
        (&["m.zt", "--unset", "none"], "m.zt: has no attribute \"none\", and no other"),
        (
            &["m.circle", "--put", "none=u8:8:notes"],
            "notes: \"none\": there is no constant of this name",
        ),
        (&["notes", "--set", "a=b"], "notes: file is "),
        (&["-", "-o", "new", "--put", "a=-"], "standard input is one file, but is given 2 times"),
        (&["m.ptl", "--put", "a=-", "--put", "b=-"], "standard input is one file, but is given 2"),
        (&["m.zt", "--put", "=notes"], "\"=notes\" is none of NAME=FILE, "),
        (&["m.circle", "--set", "a=@/dev/zero"], "/dev/zero: is a pipe or a device, "),
    ] {
        let (_, text) = fails(cd, &[&["edit"], args].concat());
        assert!(text.starts_with(&format!("error: {message}")), "{text}");
    }
    for (name, key) in [("m.zip", "FOO"), ("m.carton", "nosuch")] {
        let set = format!("{key}=1");
        let (status, text) = fails(cd, &["edit", name, "--set", &set]);
        let start = format!("error: {name}: has no key {key:?}, expected one of ");
        assert!(status == 2 && text.starts_with(&start), "{text}");
        prints(cd, &["edit", name, "--set", &set, "--force"]);
    }
}

#[test]
fn tensors_get_names_and_attributes() {
    let folder = folder();
    let cd = folder.path();
    let names = ["--rename", "s_u8=s_i8", "--rename", "s_i8=s_u8"];
    let set = ["--set", "license=MIT", "--set", "s_u8.unit=mV", "--set", "a.b=c"];
    let before = AnyReader::open(cd.join("m.zt")).unwrap();
    let before = |name: &str| before.tensor(name).unwrap().unwrap().bytes().unwrap();
    for more in [&["-o", "new.zt"][..], &[]] {
        prints(cd, &[&["edit", "m.zt"], &names[..], &set[..], more].concat());
    }
    for file in ["new.zt", "m.zt"] {
        let reader = ztensor::Reader::open(cd.join(file)).unwrap();
        let attributes = reader.manifest().attributes().unwrap().unwrap();
        assert_eq!(attributes.get("license"), Some(&"MIT".into()));
        assert_eq!(attributes.get("a.b"), Some(&"c".into()));
        // It was set by the name that the tensor had before.
        let tensor = reader.tensor("s_i8").unwrap();
        assert_eq!(tensor.attributes().unwrap().unwrap().get("unit"), Some(&"mV".into()));
        assert_eq!(tensor.bytes().unwrap(), before("s_u8"));
        assert_eq!(reader.tensor("s_u8").unwrap().bytes().unwrap(), before("s_i8"));
        assert!(prints(cd, &["verify", file]).starts_with(&format!("{file}: valid\n")));
    }
    let note = "note: \"s_i9.unit\" is an attribute of the file: there is no tensor \"s_i9\"\n";
    for (key, said) in [("s_i9.unit=mV", note), ("s_i9.unit=V", ""), ("s_i8.unit=V", "")] {
        let output = modelcrate(cd, &["edit", "new.zt", "--set", key]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
    }
    prints(cd, &["edit", "new.zt", "--unset", "license", "--unset", "s_i8.unit"]);
    let (_, text) = fails(cd, &["edit", "new.zt", "--unset", "s_i8.unit"]);
    assert!(text.contains("has no attribute \"s_i8.unit\""), "{text}");
}

#[test]
fn tensors_come_from_files_of_other_formats() {
    let folder = folder();
    let cd = folder.path();
    let from = testdata("weights/model.safetensors");
    let args = ["edit", "m.zt", "--from", from.to_str().unwrap()];
    let planned = prints(cd, &[&args[..], &["--dry-run"]].concat());
    assert_eq!(prints(cd, &args), planned.replace("would be ", ""));
    let [old, new] = [from, cd.join("m.zt")].map(|path| AnyReader::open(path).unwrap());
    for tensor in old.tensors().unwrap() {
        let copy = new.tensor(tensor.name().unwrap()).unwrap().unwrap();
        assert_eq!(copy.bytes().unwrap(), tensor.bytes().unwrap());
    }
    assert!(prints(cd, &["verify", "m.zt"]).starts_with("m.zt: valid\n"));
}

#[test]
fn paths_with_the_sign_of_options_are_found() {
    let folder = folder();
    let cd = folder.path();
    fs::create_dir(cd.join("a=b")).unwrap();
    fs::copy(cd.join("notes"), cd.join("a=b/notes")).unwrap();
    for (file, put) in [("m.zt", "n=m=u8:8:a=b/notes"), ("m.ptl", "n=m=a=b/notes")] {
        assert!(prints(cd, &["edit", file, "--put", put]).contains("added n=m\n"), "{file}");
    }
}

#[test]
fn what_is_put_twice_is_refused() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("carton.toml"), "").unwrap();
    for (args, message) in [
        (["m.ptl", "--put", "q=notes", "--put", "extra/q=notes"], "file \"q\""),
        (["m.carton", "--put", "misc/q=notes", "--put", "misc/q=notes"], "file \"misc/q\""),
        (
            ["m.carton", "--toml", "carton.toml", "--put", "carton.toml=notes"],
            "file \"carton.toml\"",
        ),
        (["m.zt", "--put", "q=u8:8:notes", "--put", "q=u8:2,4:notes"], "tensor \"q\""),
    ] {
        let before = fs::read(cd.join(args[0])).unwrap();
        let (status, said) = fails(cd, &[&["edit"], &args[..]].concat());
        let end = format!("{message} is given twice\n");
        assert!(status == 2 && said.ends_with(&end) && said.lines().count() == 1, "{said}");
        assert!(fs::read(cd.join(args[0])).unwrap() == before);
    }
}

#[test]
fn one_tensor_is_put_in_once() {
    let folder = folder();
    let cd = folder.path();
    let model = modelcrate::rten_format::Reader::open(cd.join("m.rten")).unwrap();
    let constant = model.tensors().find(|constant| constant.name().is_some()).unwrap();
    let (name, shape) = (constant.name().unwrap(), constant.info().unwrap().shape);
    fs::write(cd.join("elements"), constant.bytes().unwrap()).unwrap();
    let [first, second] = [name.to_owned(), format!("#{}", constant.node())]
        .map(|name| format!("{name}=f32:{shape}:elements"));
    let reason = format!("is the tensor that {name:?} is put in the place of");
    for more in [&["-o", "new.rten"][..], &[]] {
        let (status, said) =
            fails(cd, &[&["edit", "m.rten", "--put", &first, "--put", &second], more].concat());
        assert!(status == 2 && said.contains(&reason), "{said}");
    }
    prints(cd, &["edit", "m.rten", "--put", &second]);

    // What is damaged is not put in, and named.
    let put = format!("{name}=f32:{shape}:elements");
    prints(cd, &["create", "new.npz", "--put", &put]);
    let mut bytes = fs::read(cd.join("new.npz")).unwrap();
    let npz = AnyReader::open(cd.join("new.npz")).unwrap();
    let place = npz.tensors().unwrap().next().unwrap().extent().unwrap().unwrap();
    bytes[place.offset() as usize] ^= 1;
    fs::write(cd.join("new.npz"), bytes).unwrap();
    let before = fs::read(cd.join("m.rten")).unwrap();
    for more in [&["-o", "new.rten"][..], &[]] {
        let edit = [&["edit", "m.rten", "--from", "new.npz"], more].concat();
        let (status, said) = fails(cd, &edit);
        assert!(status == 1 && said.starts_with("error: new.npz: "), "{said}");
        assert!(!cd.join("new.rten").exists());
        assert!(fs::read(cd.join("m.rten")).unwrap() == before);
    }
    prints(cd, &["edit", "m.rten", "--from", "new.npz", "--force"]);

    for name in ["a.carton", "b.carton"] {
        fs::copy(testdata("carton/valid/ref_noncontiguous.carton"), cd.join(name)).unwrap();
    }
    let AnyReader::Carton(carton) = AnyReader::open(cd.join("a.carton")).unwrap() else {
        panic!("is no carton");
    };
    let tensor = carton.tensors().unwrap().find_map(|tensor| tensor.file().unwrap()).unwrap();
    let put = format!("{}=notes", tensor.path());
    let (status, said) = fails(cd, &["edit", "a.carton", "--from", "b.carton", "--put", &put]);
    let end = format!("file {:?} is given twice\n", tensor.path());
    assert!(status == 2 && said.ends_with(&end), "{said}");
}

#[test]
fn what_does_not_fit_is_said_before_anything_changes() {
    let folder = folder();
    let cd = folder.path();
    let from = testdata("weights/model.gguf");
    let from = from.to_str().unwrap();
    let before = fs::read(cd.join("m.zt")).unwrap();
    let edit = ["edit", "m.zt", "--remove", "s_u8", "--put", "n=u8:8:notes", "--from", from];
    let (status, text) = fails(cd, &edit);
    let reason = "\"q\": ztensor has no element type q8_0 (--dequantize: q8_0 as f32, 256 bytes)";
    assert_eq!((status, text), (2, format!("error: {from}: {reason}\n")));
    assert!(fs::read(cd.join("m.zt")).unwrap() == before);
    let text = prints(cd, &[&edit[..], &["--dequantize"]].concat());
    assert!(text.contains("m.zt: converted q: q8_0 as f32, 256 bytes\n"), "{text}");
    fs::write(cd.join("double"), [0; 64]).unwrap();
    let puts =
        ["--put", "fc1.bias=f64:8:double", "--put", "#1=f64:8:double", "--put", "x=u8:8:notes"];
    let (status, text) = fails(cd, &[&["edit", "m.rten"], &puts[..]].concat());
    assert_eq!((status, text.lines().count()), (2, 3), "{text}");
    let double = ["edit", "m.rten", "--put", "#1=f64:8:double"];
    assert_eq!(fails(cd, &double).0, 2);
    let text = prints(cd, &[&double[..], &["--lossy"]].concat());
    assert!(text.contains("m.rten: replaced #1\n"), "{text}");
}

#[test]
fn tensors_of_cartons_come_from_other_files() {
    let folder = folder();
    let cd = folder.path();
    fs::copy(testdata("carton/golden/everything.carton"), cd.join("m.carton")).unwrap();
    let globs = ["--tensor", "float*", "--tensor", "*int*"];
    prints(cd, &[&["convert", "m.carton", "new.npz"], &globs[..]].concat());
    // They are as they were.
    let text = prints(cd, &["edit", "m.carton", "--from", "new.npz"]);
    assert!(text.starts_with("m.carton: unchanged\n"), "{text}");
    fs::write(cd.join("two"), [0; 8]).unwrap();
    prints(cd, &["create", "one.npz", "--put", "float32=f32:2,1:two"]);
    let text = prints(cd, &["edit", "m.carton", "--from", "one.npz"]);
    assert!(text.contains("m.carton: replaced float32\n"), "{text}");
    let edited = AnyReader::open(cd.join("m.carton")).unwrap();
    assert_eq!(edited.tensor("float32").unwrap().unwrap().bytes().unwrap(), [0; 8][..]);
    assert!(prints(cd, &["verify", "m.carton"]).starts_with("m.carton: valid\n"));
}

#[test]
fn files_are_put_and_removed_under_the_names_that_inspect_shows() {
    let folder = folder();
    let cd = folder.path();
    for (name, entry) in [("m.ptl", "extra/notes.txt"), ("m.carton", "misc/notes.txt")] {
        let put = format!("{entry}=notes");
        fs::write(cd.join("notes"), "first").unwrap();
        let text = prints(cd, &["edit", name, "--put", &put]);
        assert!(text.contains(": added "), "{text}");
        assert!(prints(cd, &["inspect", name]).contains(entry), "{name}");
        fs::write(cd.join("notes"), "other").unwrap();
        assert!(prints(cd, &["edit", name, "--put", &put]).contains(": replaced "));
        prints(cd, &["edit", name, "--remove", entry]);
        assert!(!prints(cd, &["inspect", name]).contains(entry), "{name}");
        assert_eq!(modelcrate(cd, &["verify", name]).status.code(), Some(0));
    }
}

#[test]
fn unused_bytes_of_rten_models_go() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["edit", "m.rten", "--set", "license=none"]);
    prints(cd, &["edit", "m.rten", "--set", "license=MIT"]);
    let long = fs::metadata(cd.join("m.rten")).unwrap().len();
    let text = prints(cd, &["compact", "m.rten"]);
    assert!(text.starts_with("m.rten: compacted, "), "{text}");
    assert!(fs::metadata(cd.join("m.rten")).unwrap().len() < long);
    let [old, new] = [testdata("rten/valid/mlp.v2.rten"), cd.join("m.rten")]
        .map(|path| AnyReader::open(path).unwrap());
    for (old, new) in old.tensors().unwrap().zip(new.tensors().unwrap()) {
        assert_eq!(old.bytes().unwrap(), new.bytes().unwrap());
    }
    assert_eq!(fails(cd, &["compact", "m.circle"]).0, 2);
}
