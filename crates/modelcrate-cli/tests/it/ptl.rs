//! The commands of `modelcrate ptl` that write files, or read many.

use std::{fs, ops::Deref, path::Path};

use modelcrate::{
    ptl_spec::{Editor, Reader, SPEC, Spec},
    tensor_core::DType,
};
use test_support::testdata;

use crate::run::{fails, in_group, modelcrate, prints};

const SPEC_TEXT: &str = r#"{
    "pack": {"type": "tensor", "dtype": "float", "sizes": [1, 2], "items": ["$a", 0.5]},
    "unpack": {"type": "tensor", "dtype": "float", "key": "scores"}
}"#;

struct Folder(tempfile::TempDir);

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

/// Makes a folder with models in both containers, a spec and another file.
fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    for name in ["img", "img_fb", "img_nospec", "img_extras"] {
        let name = format!("{name}.ptl");
        fs::copy(testdata("ptl/valid/torch113").join(&name), folder.path().join(&name)).unwrap();
    }
    fs::write(folder.path().join("new.json"), SPEC_TEXT).unwrap();
    fs::write(folder.path().join("labels.txt"), "cat\ndog\n").unwrap();
    Folder(folder)
}

fn calls(name: &str) -> String {
    testdata("ptl/calls").join(name).to_str().unwrap().to_owned()
}

#[track_caller]
fn is_sound(path: &Path) -> Reader {
    let reader = Reader::open(path).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    reader
}

#[test]
fn specs_are_embedded() {
    let cd = &folder();
    let expected = Spec::parse(SPEC_TEXT).unwrap();
    for (file, what) in
        [("img.ptl", "replaced"), ("img_fb.ptl", "replaced"), ("img_nospec.ptl", "added")]
    {
        let printed = prints(cd, &["ptl", "embed", file, "new.json", "--replace"]);
        assert!(printed.starts_with(&format!("{file}: {what} {SPEC}\n")), "{printed}");
        assert_eq!(is_sound(&cd.join(file)).spec().unwrap().unwrap().json(), expected.json());
        let again = prints(cd, &["ptl", "embed", file, "new.json"]);
        assert_eq!(again, format!("{file}: nothing to change\n"));
        let shown = prints(cd, &["ptl", "spec", file]);
        assert_eq!(shown, format!("{}\n", expected.to_text()));
    }
}

#[test]
fn extra_files_come_and_go() {
    let cd = &folder();
    for file in ["img.ptl", "img_fb.ptl"] {
        prints(cd, &["ptl", "embed", file, "labels.txt", "--name", "labels.txt"]);
        assert_eq!(prints(cd, &["cat", file, "labels.txt"]), "cat\ndog\n");
        let removed = prints(cd, &["edit", file, "--remove", "labels.txt", "--remove", SPEC]);
        assert!(removed.starts_with(&format!("{file}: removed labels.txt\n")), "{removed}");
        assert_eq!(is_sound(&cd.join(file)).extra_files().count(), 0);
    }
}

#[test]
fn specs_beside_models_are_found() {
    let cd = &folder();
    let (status, message) = fails(cd, &["ptl", "signature", "img_nospec.ptl"]);
    let expected = "error: img_nospec.ptl: has no spec in it, and there is no \
                    img_nospec.ptl.live.spec.json\n";
    assert_eq!((status, message.as_str()), (2, expected));
    fs::copy(cd.join("new.json"), cd.join("img_nospec.ptl.live.spec.json")).unwrap();
    let json = prints(cd, &["ptl", "signature", "img_nospec.ptl", "--format", "json"]);
    let expected = r#"{"schema":1,"path":"img_nospec.ptl.live.spec.json","origin":"sidecar","parameters":[{"name":"a","kind":"number","places":["pack.items[0]"]}],"results":[{"key":"scores","kind":"number_list","place":"unpack"}],"deferred":[]}"#;
    assert_eq!(json, format!("{expected}\n"));
}

#[test]
fn dry_runs_change_nothing() {
    let cd = &folder();
    let state = || ["img.ptl", "img_fb.ptl"].map(|file| fs::read(cd.join(file)).unwrap());
    let (before, files) = (state(), fs::read_dir(&**cd).unwrap().count());
    let pack = ["--param", "a=1", "-o"];
    for args in [
        &["embed", "img.ptl", "new.json", "--replace"][..],
        &["embed", "img_fb.ptl", "new.json", "--replace"],
        &["embed", "img.ptl", "labels.txt", "--name", "labels.txt"],
        &["edit", "img.ptl", "--remove", SPEC],
        &["strip", "img.ptl"],
        &["strip", "img.ptl", "-o", "new.ptl", "--code"],
        &["compact", "img.ptl"],
        &[&["inputs", "new.json"], &pack[..], &["out"]].concat(),
        &[&["inputs", "new.json"], &pack[..], &["out.zt"]].concat(),
    ] {
        prints(cd, &[&in_group("ptl", args)[..], &["--dry-run"]].concat());
        assert!(state() == before, "{args:?}");
    }
    assert_eq!(fs::read_dir(&**cd).unwrap().count(), files);
    let args = ["ptl", "embed", "img.ptl", "new.json", "--replace", "--format", "json"];
    let planned = prints(cd, &[&args[..], &["--dry-run"]].concat());
    let done = prints(cd, &args);
    assert_eq!(planned.replace("\"dry_run\":true", "\"dry_run\":false"), done);
    let len = fs::metadata(cd.join("img.ptl")).unwrap().len();
    assert!(done.ends_with(&format!("\"bytes_after\":{len}}}\n")), "{done}");
}

/// What is locked, and what may not be written.
#[test]
fn dry_runs_are_refused_like_edits() {
    let cd = &folder();
    let refused = |expected: &str| {
        for args in [
            &["embed", "img.ptl", "new.json", "--replace"][..],
            &["embed", "img_fb.ptl", "new.json", "--replace"],
            &["edit", "img.ptl", "--remove", SPEC],
            &["strip", "img.ptl"],
            &["compact", "img_fb.ptl"],
            &["recover", "img.ptl"],
        ] {
            let args = in_group("ptl", args);
            let said = fails(cd, &args);
            assert!(said.0 == 2 && said.1.contains(expected), "{args:?}: {said:?}");
            assert_eq!(fails(cd, &[&args[..], &["--dry-run"]].concat()), said);
        }
    };
    let paths = ["img.ptl", "img_fb.ptl"].map(|name| cd.join(name));
    let editors = paths.each_ref().map(|path| Editor::open(path).unwrap());
    refused(": is locked, expected no other writer\n");
    drop(editors);
    for path in paths {
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(path, permissions).unwrap();
    }
    refused(": opening for writing failed: ");
}

#[test]
fn refused_edits_change_nothing() {
    let cd = &folder();
    fs::write(cd.join("bad.json"), r#"{"pack": {"type": "image"}}"#).unwrap();
    let before = fs::read(cd.join("img.ptl")).unwrap();
    for (args, status, message) in [
        (
            &["embed", "img.ptl", "new.json"][..],
            2,
            "error: img.ptl: has a \"model/live.spec.json\" already (--replace replaces it)\n",
        ),
        (&["embed", "img.ptl", "bad.json", "--replace"], 1, ""),
        (
            &["embed", "img.ptl", "labels.txt", "--replace"],
            1,
            "error: labels.txt: spec is malformed: expected value at line 1 column 1\n",
        ),
        (
            &["embed", "img.ptl", "labels.txt", "--name", "../x"],
            2,
            "error: img.ptl: extra file \"../x\": name has a component \".\" or \"..\"\n",
        ),
        (
            &["edit", "img.ptl", "--remove", "none"],
            2,
            "error: img.ptl: there is no extra file \"none\"\n",
        ),
        (
            &["edit", "-", "--remove", "none"],
            2,
            "error: standard input cannot be edited in place: say with -o where it goes\n",
        ),
        (
            &["strip", "img_fb.ptl"],
            2,
            "error: img_fb.ptl: the file cannot be edited: a FlatBuffer has no debug records, only \
             source\n",
        ),
        (
            &["strip", "img.ptl", "-o", "img.ptl", "--overwrite"],
            2,
            "error: img.ptl: is the input, which is replaced where no output is given\n",
        ),
    ] {
        assert_eq!(fails(cd, &in_group("ptl", args)), (status, message.to_owned()));
        assert!(fs::read(cd.join("img.ptl")).unwrap() == before, "{args:?}");
    }
    assert!(!cd.join("out").exists());
}

#[test]
fn models_are_stripped_and_compacted() {
    let cd = &folder();
    let original = fs::read(cd.join("img.ptl")).unwrap();
    prints(cd, &["ptl", "embed", "img.ptl", "labels.txt", "--name", "labels.txt"]);
    prints(cd, &["edit", "img.ptl", "--remove", "labels.txt"]);
    assert!(fs::metadata(cd.join("img.ptl")).unwrap().len() > original.len() as u64);
    prints(cd, &["compact", "img.ptl"]);
    assert!(fs::read(cd.join("img.ptl")).unwrap() == original);
    let stripped = prints(cd, &["ptl", "strip", "img.ptl", "-o", "phone.ptl", "--code"]);
    assert!(stripped.contains("phone.ptl: removed code/"), "{stripped}");
    let printed = modelcrate(cd, &["ptl", "strip", "img.ptl", "-o", "-", "--code"]).stdout;
    assert!(printed == fs::read(cd.join("phone.ptl")).unwrap());
    assert!(fs::read(cd.join("img.ptl")).unwrap() == original);
    prints(cd, &["ptl", "strip", "img.ptl", "--code"]);
    let one = fs::read(cd.join("img.ptl")).unwrap();
    assert!(one == fs::read(cd.join("phone.ptl")).unwrap());
    let reader = is_sound(&cd.join("phone.ptl"));
    assert!(reader.records().all(|record| !record.path().starts_with("code/")));
}

#[test]
fn flatbuffers_are_stripped_and_compacted() {
    let cd = &folder();
    let original = fs::read(cd.join("img_fb.ptl")).unwrap();
    let stripped = prints(cd, &["ptl", "strip", "img_fb.ptl", "-o", "phone.ptl", "--code"]);
    assert!(stripped.starts_with("phone.ptl: removed code/__torch__"), "{stripped}");
    assert!(fs::read(cd.join("img_fb.ptl")).unwrap() == original);
    assert_eq!(is_sound(&cd.join("phone.ptl")).sources().unwrap().count(), 0);
    fs::write(cd.join("big.txt"), "x".repeat(10_000)).unwrap();
    prints(cd, &["ptl", "embed", "img_fb.ptl", "big.txt", "--name", "big.txt"]);
    prints(cd, &["edit", "img_fb.ptl", "--remove", "big.txt"]);
    prints(cd, &["compact", "img_fb.ptl"]);
    let len = fs::metadata(cd.join("img_fb.ptl")).unwrap().len();
    assert!(len < original.len() as u64 + 96, "{len}");
    is_sound(&cd.join("img_fb.ptl"));
}

/// What an editor has locked is not copied in between.
#[test]
fn locked_models_are_not_copied() {
    let cd = &folder();
    let editor = Editor::open(cd.join("img.ptl")).unwrap();
    for args in
        [&["compact", "img.ptl", "-o", "new.ptl"][..], &["strip", "img.ptl", "-o", "new.ptl"]]
    {
        let said = fails(cd, &in_group("ptl", args));
        assert_eq!(said, (2, "error: img.ptl: is locked, expected no other writer\n".to_owned()));
    }
    drop(editor);
    assert!(!cd.join("new.ptl").exists());
}

#[test]
fn torn_models_are_recovered() {
    let cd = &folder();
    let original = fs::read(cd.join("img.ptl")).unwrap();
    fs::write(cd.join("big.txt"), "x".repeat(100_000)).unwrap();
    prints(cd, &["ptl", "embed", "img.ptl", "big.txt", "--name", "big.txt"]);
    let mut torn = fs::read(cd.join("img.ptl")).unwrap();
    torn.truncate(torn.len() - 1);
    fs::write(cd.join("img.ptl"), &torn).unwrap();
    let (status, said) = fails(cd, &["ptl", "spec", "img.ptl"]);
    assert_eq!(status, 1);
    assert!(said.contains("`modelcrate recover`"), "{said}");
    let (status, said) = fails(cd, &["verify", "img.ptl"]);
    assert_eq!((status, said.as_str()), (1, ""));
    let cut = torn.len() - original.len();
    let planned = prints(cd, &["recover", "img.ptl", "--dry-run"]);
    let remain = original.len();
    assert_eq!(planned, format!("img.ptl: would be cut by {cut} bytes, {remain} remain\n"));
    assert!(fs::read(cd.join("img.ptl")).unwrap() == torn);
    let done = prints(cd, &["recover", "img.ptl"]);
    assert_eq!(done, format!("img.ptl: cut by {cut} bytes, {remain} remain\n"));
    assert!(fs::read(cd.join("img.ptl")).unwrap() == original);
    for file in ["img.ptl", "img_fb.ptl"] {
        assert_eq!(prints(cd, &["recover", file]), format!("{file}: is complete\n"));
    }
    let said = fails(cd, &["recover", "labels.txt"]);
    let nothing = "error: labels.txt: is neither a zTensor file nor a PyTorch Live model\n";
    assert_eq!(said, (1, nothing.to_owned()));
}

#[test]
fn specs_are_compared_with_the_model() {
    let cd = &folder();
    let spec = r#"{
        "pack": {"type": "scalar_long", "value": 1},
        "unpack": {"type": "tensor", "dtype": "float", "key": "k"}
    }"#;
    fs::write(cd.join("other.json"), spec).unwrap();
    let misfit = "pack makes an int, but forward takes Tensor";
    // What is found is what verify would find, as grave as there.
    for file in ["img_nospec.ptl", "img_fb.ptl"] {
        let before = fs::read(cd.join(file)).unwrap();
        let args = ["ptl", "embed", file, "other.json", "--replace"];
        for more in [&[][..], &["--dry-run"]] {
            let refused = modelcrate(cd, &[&args[..], more].concat());
            assert_eq!(refused.status.code(), Some(1));
            let said = String::from_utf8(refused.stdout).unwrap();
            let new =
                format!("{file}: not written, as it would be invalid (--force writes it)\n  error");
            assert!(said.starts_with(&new) && said.contains(misfit), "{said}");
            assert!(fs::read(cd.join(file)).unwrap() == before);
        }
        let forced = prints(cd, &[&args[..], &["--force"]].concat());
        assert!(forced.contains("  error") && forced.contains(misfit), "{forced}");
        let verified = modelcrate(cd, &["verify", file]);
        assert_eq!(verified.status.code(), Some(1));
        let verified = String::from_utf8(verified.stdout).unwrap();
        assert!(verified.contains("error") && verified.contains(misfit), "{verified}");
    }
    let fits = prints(cd, &["ptl", "embed", "img.ptl", "new.json", "--replace"]);
    assert!(!fits.contains("warning"), "{fits}");
    let warned = prints(cd, &["edit", "img.ptl", "--remove", SPEC]);
    assert!(warned.contains("  warning") && warned.contains("there is no spec"), "{warned}");
}

/// Numbers that no reader of specs knows keep all their digits.
#[test]
fn unknown_keys_of_specs_stay() {
    let cd = &folder();
    let text =
        SPEC_TEXT.replacen('{', r#"{"id": [12345678901234567890, 3.14159265358979323846],"#, 1);
    fs::write(cd.join("new.json"), text).unwrap();
    prints(cd, &["ptl", "embed", "img_nospec.ptl", "new.json"]);
    let embedded = prints(cd, &["cat", "img_nospec.ptl", SPEC]);
    let shown = prints(cd, &["ptl", "spec", "img_nospec.ptl", "--format", "json"]);
    for text in [embedded, shown] {
        for number in ["12345678901234567890", "3.14159265358979323846"] {
            assert!(text.contains(number), "{text}");
        }
    }
}

#[test]
fn pictures_are_packed() {
    let cd = &folder();
    let picture = format!("image=@{}", calls("images/rand8x8.png"));
    let sizes = ["cropWidth=8", "cropHeight=8", "scaleWidth=4", "scaleHeight=2"];
    let mut args = vec!["ptl", "inputs", "img.ptl", "--param", &picture];
    args.extend(sizes.iter().flat_map(|size| ["--param", size]));
    let printed = prints(cd, &[&args[..], &["-o", "inputs"]].concat());
    assert!(printed.contains("f32 [1, 3, 2, 4]"), "{printed}");
    let npy = fs::read(cd.join("inputs/0.npy")).unwrap();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 2, 4), }";
    assert_eq!(npy[10..128], *format!("{header:117}\n").as_bytes());
    assert_eq!(npy.len(), 128 + 24 * 4);
    let again = fails(cd, &[&args[..], &["-o", "inputs"]].concat());
    let there = "error: inputs/0.npy: is there already (--overwrite replaces it)\n".to_owned();
    assert_eq!(again, (2, there));
    let out = modelcrate(cd, &[&args[..], &["-o", "-"]].concat());
    assert!(out.status.success() && out.stdout == npy);
    prints(cd, &[&args[..], &["-o", "one.npy"]].concat());
    assert!(fs::read(cd.join("one.npy")).unwrap() == npy);
    prints(cd, &[&args[..], &["-o", "inputs.zt"]].concat());
    prints(cd, &[&args[..], &["-o", "inputs.npz"]].concat());
    let same = ["inputs.zt", "inputs.npz", "one.npy"].map(|file| {
        let reader = modelcrate::AnyReader::open(cd.join(file)).unwrap();
        let tensor = reader.tensors().unwrap().next().unwrap();
        (tensor.info().unwrap(), tensor.bytes().unwrap())
    });
    assert!(same[0] == same[1] && same[1] == same[2]);
    let other = fails(cd, &[&args[..], &["-o", "inputs.txt"]].concat());
    let message = "error: inputs.txt: ends in .txt, expected .npy, .npz or .zt, or a folder, with / at \
                   its end\n";
    assert_eq!(other, (2, message.to_owned()));
    let zt = modelcrate::AnyReader::open(cd.join("inputs.zt")).unwrap();
    let tensor = zt.tensor("0").unwrap().unwrap();
    assert_eq!(tensor.info().unwrap().dtype, DType::F32);
    assert_eq!(tensor.bytes().unwrap()[..], npy[128..]);
}

#[test]
fn phones_pack_otherwise() {
    let cd = &folder();
    let picture = format!("image=@{}", calls("images/rand37x23.png"));
    let spec = calls("specs/detect.json");
    let args = ["ptl", "inputs", &spec, "--param", &picture, "--param", "w=4", "--param", "h=4"];
    let args = [&args[..], &["--param", "t=0.5"]].concat();
    let ours = prints(cd, &args);
    let phones = prints(cd, &[&args[..], &["--profile", "android"]].concat());
    assert_ne!(ours, phones);
}

/// What a model gives that returns what it gets.
#[test]
fn packed_tensors_are_unpacked() {
    let cd = &folder();
    prints(cd, &["ptl", "inputs", "new.json", "--param", "a=2", "-o", "inputs"]);
    let unpacked = prints(cd, &["ptl", "results", "new.json", "--input", "0=inputs/0.npy"]);
    assert_eq!(unpacked, "{\n \"scores\": [\n  2.0,\n  0.5\n ]\n}\n");
}

#[test]
fn scalars_are_unpacked() {
    let spec = calls("specs/scalars.json");
    let cd = tempfile::tempdir().unwrap();
    let cd = cd.path();
    let given = ["--input", "0=3", "--input", "1=0.5", "--input", "2=true"];
    let args = [&["ptl", "results", &spec, "--format", "json"], &given[..]].concat();
    let unpacked = prints(cd, &args);
    let results = "\"results\":{\"n1\":3,\"d2\":0.5,\"notflag\":true}}\n";
    assert!(unpacked.ends_with(results), "{unpacked}");
    for (given, message) in [
        (&["0=3", "1=0.5"][..], "the model's output has no place 2: expected --input 2=VALUE"),
        (&["0=3.5", "1=0.5", "2=true"], "--input 0 is \"3.5\", expected a whole number"),
        (&["0=3", "1=0.5", "2=true", "0=4"], "--input 0 is given twice"),
        (
            &["0=3", "1=0.5", "2=true", "3=4"],
            "--input \"3=4\" is for no value of the model, expected one of 0, 1, 2",
        ),
    ] {
        let given: Vec<&str> = given.iter().flat_map(|given| ["--input", given]).collect();
        let (status, said) = fails(cd, &[&["ptl", "results", &spec], &given[..]].concat());
        assert_eq!((status, said), (2, format!("error: {message}\n")));
    }
}

/// Writes a file of f32 as version 1.0.
fn npy(path: &Path, shape: &str, elements: &[f32]) {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let len = u16::try_from(header.len()).unwrap().to_le_bytes();
    let elements: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
    let bytes = [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), &elements].concat();
    fs::write(path, bytes).unwrap();
}

#[test]
fn answers_are_unpacked() {
    let cd = &folder();
    npy(&cd.join("start.npy"), "(1, 6)", &[0.0, 0.0, 9.0, 0.0, 0.0, 0.0]);
    npy(&cd.join("end.npy"), "(1, 6)", &[0.0, 0.0, 0.0, 9.0, 0.0, 0.0]);
    fs::write(cd.join("text.txt"), "who was jim henson").unwrap();
    let spec = calls("specs/bert.json");
    let text = ["--param", "string=@text.txt", "--param", "model_input_length=6"];
    let logits = ["--input", "start_logits=start.npy", "--input", "end_logits=end.npy"];
    let answer = prints(cd, &[&["ptl", "results", &spec], &text[..], &logits].concat());
    assert_eq!(answer, "{\n \"bert_answer\": \"jim hen\"\n}\n");
    let (status, said) = fails(cd, &[&["ptl", "results", &spec], &logits[..]].concat());
    assert_eq!(status, 2);
    assert!(said.contains("is the stub \"$"), "{said}");
}

/// A parameter may say what a result is.
#[test]
fn results_of_a_kind_that_a_parameter_says() {
    let cd = &folder();
    let spec = r#"{
        "pack": {"type": "scalar_long", "value": "$unused"},
        "unpack": {"type": "dict_string_key", "items": [
            {"dict_key": "$from", "type": "$kind", "key": "k"}]}
    }"#;
    fs::write(cd.join("spec.json"), spec).unwrap();
    let args = ["ptl", "results", "spec.json", "--param", "from=a"];
    let results =
        prints(cd, &[&args[..], &["--param", "kind=\"scalar_long\"", "--input", "a=7"]].concat());
    assert_eq!(results, "{\n \"k\": 7\n}\n");
    let results =
        prints(cd, &[&args[..], &["--param", "kind=\"string\"", "--input", "a=x"]].concat());
    assert_eq!(results, "{\n \"k\": \"x\"\n}\n");
    let said = fails(cd, &[&args[..], &["--input", "a=x"]].concat());
    let unbound = "error: spec.json: unpack.items[0].type is the stub \"$kind\", but the call has no \
                   parameter \"kind\"\n";
    assert_eq!(said, (2, unbound.to_owned()));
}

#[test]
fn malformed_values() {
    let cd = &folder();
    let args = ["ptl", "results", "new.json", "--input", "0=labels.txt"];
    let (status, said) = fails(cd, &args);
    assert_eq!(status, 1);
    assert!(said.starts_with("error: labels.txt: magic at byte 0 is "), "{said}");
    let spec = calls("specs/audio.json");
    fs::write(cd.join("cut.wav"), b"RIFF\0\0\0\0WAVE").unwrap();
    let name =
        Spec::parse(fs::read(&spec).unwrap()).unwrap().signature().parameters[0].name.clone();
    let param = format!("{name}=@cut.wav");
    let said = fails(cd, &["ptl", "inputs", &spec, "--param", &param]);
    assert_eq!(said, (1, "error: cut.wav: has no data\n".to_owned()));
    assert_eq!(fails(cd, &["ptl", "results", "new.json", "--input", "0=none.npy"]).0, 2);
}

#[test]
fn vocabularies_come_from_files() {
    let cd = &folder();
    let spec = r#"{
        "pack": {"type": "tensor_from_string", "tokenizer": "bert", "string": "$s",
                 "model_input_length": 3},
        "unpack": {"type": "tensor", "dtype": "long", "key": "ids"}
    }"#;
    fs::write(cd.join("bert.json"), spec).unwrap();
    fs::write(cd.join("vocab.txt"), "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\ncat\r\n").unwrap();
    assert_eq!(fails(cd, &["ptl", "inputs", "bert.json", "--param", "s=cat"]).0, 1);
    let vocab = ["--vocab", "bert=vocab.txt"];
    let args = ["ptl", "inputs", "bert.json", "--param", "s=cat", "--format", "json"];
    let packed = prints(cd, &[&args[..], &vocab].concat());
    assert!(packed.contains("\"dtype\":\"i64\",\"shape\":[1,3]"), "{packed}");
    prints(cd, &[&["ptl", "embed", "img.ptl", "bert.json", "--replace"], &vocab[..]].concat());
    let embedded =
        prints(cd, &["ptl", "inputs", "img.ptl", "--param", "s=cat", "--format", "json"]);
    assert_eq!(packed.replace("bert.json", "img.ptl"), embedded);
}

#[test]
fn parameters_that_do_not_fit() {
    let cd = &folder();
    let spec = calls("specs/img.json");
    for (param, message) in [
        ("image=1", "--param image is of kind image, expected @FILE"),
        (
            "scaleWidth=wide",
            "--param scaleWidth is \"wide\", expected JSON of kind integer, such as 224 or [1, 2]",
        ),
        ("image=@none.png", "none.png: opening failed: No such file or directory (os error 2)"),
    ] {
        let said = fails(cd, &["ptl", "inputs", &spec, "--param", param]);
        assert_eq!(said, (2, format!("error: {message}\n")));
    }
    let (status, said) = fails(cd, &["ptl", "inputs", &spec, "--param", "image=@labels.txt"]);
    assert_eq!(status, 1);
    assert!(said.starts_with("error: labels.txt: picture "), "{said}");
    assert_eq!(fails(cd, &["ptl", "inputs", &spec, "--param", "image"]).0, 2);
}

#[test]
fn models_come_from_standard_input() {
    let cd = &folder();
    let run = |args: &[&str], file: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_modelcrate"));
        let stdin = fs::File::open(cd.join(file)).unwrap();
        let output = command.args(args).current_dir(&**cd).stdin(stdin).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let from_file = prints(cd, &["ptl", "spec", "img.ptl"]);
    assert_eq!(run(&["ptl", "spec", "-"], "img.ptl"), from_file.as_bytes());
    let signature = String::from_utf8(run(&["ptl", "signature", "-"], "new.json")).unwrap();
    assert!(signature.starts_with("-: (a: number) -> (scores: number_list)\n"), "{signature}");
    run(&["ptl", "strip", "-", "-o", "stripped.ptl"], "img.ptl");
    prints(cd, &["ptl", "strip", "img.ptl"]);
    assert!(fs::read(cd.join("stripped.ptl")).unwrap() == fs::read(cd.join("img.ptl")).unwrap());
}

#[test]
fn code_of_both_containers() {
    let cd = &folder();
    for file in ["img.ptl", "img_fb.ptl"] {
        let code = prints(cd, &["cat", file, "code/__torch__.py"]);
        assert_eq!(prints(cd, &["ptl", "code", file]), format!("# code/__torch__.py\n{code}"));
        let json = prints(cd, &["ptl", "code", file, "--file", "code/*", "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let files = serde_json::json!([{ "name": "code/__torch__.py", "text": code }]);
        assert_eq!((&json["schema"], &json["files"]), (&1.into(), &files));
        prints(cd, &["extract", file, "-o", file.trim_end_matches(".ptl"), "--file", "code/*"]);
        let extracted = cd.join(file.trim_end_matches(".ptl")).join("files/code/__torch__.py");
        assert_eq!(fs::read_to_string(extracted).unwrap(), code);
        prints(cd, &["ptl", "strip", file, "--code"]);
        let (status, message) = fails(cd, &["ptl", "code", file]);
        let none =
            format!("error: {file}: keeps no source: it is for the lite interpreter alone\n");
        assert_eq!((status, message), (2, none));
    }
    let (status, message) = fails(cd, &["ptl", "code", "img_extras.ptl", "--file", "Net"]);
    let expected = "error: img_extras.ptl: has no file of source \"Net\"\n";
    assert_eq!((status, message.as_str()), (2, expected));
    let (status, message) = fails(cd, &["ptl", "code", "new.json"]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("is a PyTorch Live spec, expected a PyTorch Live model"), "{message}");
}

#[test]
fn methods_are_shown_with_their_types() {
    let file = testdata("ptl/valid/torch113/scalars.ptl").display().to_string();
    let cd = Path::new(".");
    let signature = "forward(x: Tuple[bool, int, float]) -> Tuple[int, float, bool]";
    let text = prints(cd, &["inspect", &file]);
    assert!(text.contains(&format!("\n  method    {signature}\n")), "{text}");
    let json = prints(cd, &["inspect", "--format", "jsonl", &file]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!([{
        "name": "forward",
        "signature": signature,
        "parameters": [{ "name": "x", "type": "Tuple[bool, int, float]" }],
        "returns": [{ "name": "", "type": "Tuple[int, float, bool]" }],
    }]);
    assert_eq!(json["methods"], expected);
}

/// Scales and zero points are those that the model was made with: `testdata/ptl/README.md`.
#[test]
fn quantization_is_shown() {
    let file = testdata("ptl/valid/torch251/quant.ptl").display().to_string();
    let folder = folder();
    let cd = &*folder;
    let text = prints(cd, &["inspect", &file, "--tensor", "q_*"]);
    for shown in ["scale 0.5, zero point 10\n", "scales 0.1 0.2, zero points 0 1, axis 0\n"] {
        assert!(text.contains(shown), "{text}");
    }
    let json = prints(cd, &["inspect", "--format", "jsonl", &file]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    prints(cd, &["extract", &file, "-o", "out"]);
    let index = fs::read_to_string(cd.join("out/index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    for described in [json, index] {
        let tensors = described["tensors"].as_array().unwrap();
        let found: Vec<_> = tensors.iter().map(|tensor| tensor["quantization"].clone()).collect();
        let expected = [
            serde_json::json!({ "scale": [0.5], "zero_point": [10] }),
            serde_json::json!({ "scale": [0.25], "zero_point": [3] }),
            serde_json::json!({ "scale": [0.1, 0.2], "zero_point": [0, 1], "axis": 0 }),
        ];
        assert_eq!(found, expected);
    }
}

/// What punctuation and accents, and blanks and line breaks, become: `tokenizer_oracles.json` of the
/// corpus has more of both modes.
#[test]
fn tokenizers_are_chosen() {
    let cd = &folder();
    let bert = r###"{"vocabulary_bert": "[PAD]\n[UNK]\nhenson\n?\ncafe\ncaf\n##e",
        "pack": {"type": "tensor_from_string", "tokenizer": "bert", "string": "$text", "model_input_length": 4},
        "unpack": {"type": "tensor", "dtype": "long", "key": "k"}}"###;
    let gpt2 = r#"{"vocabulary_gpt2": {"a": 0, "b": 1, "\u0120": 2, "\u010a": 3, "\u0120b": 4, "<|endoftext|>": 5},
        "pack": {"type": "tensor_from_string", "tokenizer": "gpt2", "string": "$text"},
        "unpack": {"type": "tensor", "dtype": "long", "key": "k"}}"#;
    fs::write(cd.join("bert.json"), bert).unwrap();
    fs::write(cd.join("gpt2.json"), gpt2).unwrap();
    let ids = |spec: &str, text: &str, more: &[&str]| {
        let text = format!("text={text}");
        let args = ["ptl", "inputs", spec, "--param", &text, "--format", "json"];
        let json = prints(cd, &[&args[..], more].concat());
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["values"][0]["preview"].to_string()
    };
    assert_eq!(ids("bert.json", "Henson? Café", &[]), "[1,1,0,0]");
    assert_eq!(ids("bert.json", "Henson? Café", &["--bert", "original"]), "[1,1,0,0]");
    assert_eq!(ids("bert.json", "Henson? Café", &["--bert", "standard"]), "[2,3,4,0]");
    assert_eq!(ids("gpt2.json", "a  b\n", &[]), "[0,4]");
    assert_eq!(ids("gpt2.json", "a  b\n", &["--gpt2", "standard"]), "[0,2,4,3]");
}
