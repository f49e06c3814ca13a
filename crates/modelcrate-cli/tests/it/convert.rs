//! Tensors and files from one file into others.

use std::fs;

use modelcrate::{
    AnyReader, Format, NamedTensor, TensorSet,
    rten_format::{self, NodeKind, Rewrite},
};
use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (sample, name) in [
        ("carton/golden/minimal.carton", "m.carton"),
        ("nnpackage/valid/03_two_models_connected.zip", "m.zip"),
        ("nnpackage/valid/everything.circle", "m.circle"),
        ("ptl/valid/torch113/img_extras.ptl", "m.ptl"),
        ("ptl/valid/torch113/img_fb.ptl", "fb.ptl"),
        ("rten/valid/mlp.v2.rten", "m.rten"),
        ("weights/model.gguf", "blocks.gguf"),
        ("ztensor/valid/v1.1-ref/scalars.zt", "m.zt"),
        ("ztensor/valid/v1.1-ref/sparse_csr.zt", "sparse.zt"),
    ] {
        fs::copy(testdata(sample), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("six.bin"), [0; 24]).unwrap();
    folder
}

#[test]
fn models_become_torchscript() {
    let folder = folder();
    let cd = folder.path();
    for input in ["m.ptl", "fb.ptl"] {
        let output = format!("{input}.pt");
        let dry = prints(cd, &["convert", input, &output, "--dry-run"]);
        assert!(!cd.join(&output).exists());
        let said = prints(cd, &["convert", input, &output]);
        assert!(said.starts_with(&format!("{output}: written as TorchScript, ")), "{said}");
        assert_eq!(dry.replace("would be ", ""), said);
        let [before, after] = [input, &*output].map(|file| AnyReader::open(cd.join(file)).unwrap());
        has_all(&before.tensor_set().unwrap(), &after.tensor_set().unwrap());
        let piped = modelcrate(cd, &["convert", input, "-", "--to", "torchscript"]);
        assert!(piped.stdout == fs::read(cd.join(&output)).unwrap());
        let json = ["--to", "torchscript", "--overwrite", "--format", "json"];
        let json = prints(cd, &[&["convert", input, &*output], &json[..]].concat());
        assert!(json.contains(r#""to":"torchscript""#), "{json}");
        prints(cd, &["ptl", "strip", input, "--code"]);
        let (status, message) = fails(cd, &["convert", input, "none.pt"]);
        let expected = format!(
            "error: {input}: the model cannot become TorchScript: it keeps no source, which the full \
             runtime compiles\n"
        );
        assert_eq!((status, message), (2, expected));
        assert!(!cd.join("none.pt").exists());
    }
    let damaged = testdata("ptl/invalid/crc.ptl").display().to_string();
    let (status, message) = fails(cd, &["convert", &damaged, "damaged.pt"]);
    assert_eq!((status, message.contains("has CRC-32")), (1, true), "{message}");
    assert!(!cd.join("damaged.pt").exists());
    prints(cd, &["convert", &damaged, "damaged.pt", "--force"]);
    let (status, message) = fails(cd, &["convert", "m.rten", "m.pt"]);
    assert_eq!(status, 2);
    assert!(message.contains("is an RTen model, which cannot become torchscript"), "{message}");
}

/// Has every tensor of one set in another, with the same bytes.
#[track_caller]
fn has_all(of: &TensorSet<'_>, set: &TensorSet<'_>) {
    assert_eq!(of.tensors().len(), set.tensors().len());
    for tensor in of.tensors() {
        let other = set.tensor(tensor.name()).unwrap();
        assert_eq!(other.elements().unwrap(), tensor.elements().unwrap(), "{}", tensor.name());
        assert_eq!(other.bytes().unwrap(), tensor.bytes().unwrap(), "{}", tensor.name());
    }
}

#[test]
fn tensors_go_from_format_to_format() {
    let folder = folder();
    let cd = folder.path();
    for input in ["m.ptl", "fb.ptl", "m.rten", "m.zt"] {
        let before = AnyReader::open(cd.join(input)).unwrap();
        for (end, format) in [("safetensors", Format::Safetensors), ("zt", Format::ZTensor)] {
            let output = format!("{input}.{end}");
            let dry = prints(cd, &["convert", input, &output, "--dry-run"]);
            assert!(!cd.join(&output).exists());
            let said = prints(cd, &["convert", input, &output]);
            assert_eq!(dry.replace("would be ", ""), said);
            let after = AnyReader::open(cd.join(&output)).unwrap();
            assert_eq!(after.format(), format);
            has_all(&before.tensor_set().unwrap(), &after.tensor_set().unwrap());
            assert_eq!(prints(cd, &["verify", &output]), format!("{output}: valid\n"));
            let piped = modelcrate(cd, &["convert", input, "-", "--to", end]);
            assert!(piped.stdout == fs::read(cd.join(&output)).unwrap());
        }
    }
}

#[test]
fn what_cannot_be_is_listed_before_anything_is_written() {
    let folder = folder();
    let cd = folder.path();
    let (status, text) = fails(cd, &["convert", "m.zt", "new.npz"]);
    assert_eq!(status, 2);
    assert!(text.contains("\n  \"s_bf16\": npz has no element type bf16"), "{text}");
    assert!(!cd.join("new.npz").exists());
    let json = modelcrate(cd, &["convert", "m.zt", "new.npz", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["refused"][0]["tensor"], "s_bf16");
    prints(cd, &["convert", "m.zt", "new.npz", "--tensor", "s_[fiu]*"]);
    assert!(!prints(cd, &["inspect", "--tensors", "new.npz"]).contains("bool"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    let cd = folder.path();
    let before = fs::read_dir(cd).unwrap().count();
    for (line, message) in [
        (
            "convert m.zt new",
            "new: says no format by its end, expected one of .circle, .gguf, .npy",
        ),
        ("convert m.zt -", "-: has no name that says a format: give --to"),
        ("convert m.zt m.zt", "m.zt: is the input, expected another file"),
        ("convert m.zt new.onnx", "m.zt: is a zTensor file, which cannot become onnx"),
        ("convert m.ptl new.circle", "m.ptl: is a PyTorch Live model, which cannot become circle"),
        ("convert m.circle new.circle", "m.circle: is a Circle model, which cannot become circle"),
        ("convert m.rten new.rten", "new.rten: may be of either version: say --to rten1 or --to"),
        (
            "convert m.rten new.onnx --wrap",
            "new.onnx: --wrap is an option of what becomes rten2, not onnx",
        ),
        ("convert m.rten new.onnx --tensor x", "new.onnx: onnx holds a model, of which tensors"),
        ("convert m.rten new.zt --tensor none*", "m.rten: has no tensor \"none*\""),
        ("create new.zt", "nothing to put into the file: give --put or --from"),
        (
            "create new.onnx --from m.zt",
            "new.onnx: onnx holds models, expected a format of tensors",
        ),
        ("create new.zt --put w=f32:7:six.bin", "six.bin: shape [7] of f32 needs 28 bytes, but 24"),
        ("create new.zt --put w=m.zt", "m.zt: has 13 tensors, expected one (NAME=FILE:TENSOR"),
        ("create new.zt --put w=m.zt:none", "m.zt: has no tensor \"none\""),
        ("create new.zt --put w=f32:6:six.bin --put w=u8:24:six.bin", "tensor \"w\" is"),
        ("create new.zt --from m.zt --tensor none", "m.zt: has no tensor \"none\""),
        ("create m.zt --from m.zt --overwrite", "m.zt: is an input, expected another file"),
        ("create new.zt --put a=- --put b=-", "standard input is one file, but is given 2 times"),
        ("convert m.carton new.npz", "new.npz: npz cannot hold 1 of 0 tensors\n  npz has one"),
        ("extract m.zt -o m.zt", "m.zt: "),
        ("extract m.zt -o new --tensor none", "m.zt: has no tensor \"none\""),
        ("extract m.ptl -o new --file none", "m.ptl: has no file \"none\""),
        ("diff m.zt m.zt --map none=x", "m.zt: has no tensor that --map none=x is for"),
        ("extract m.zt -o new --to npy", "m.zt: tensor \"s_bf16\" is of bf16, which npy has not"),
        (
            "cat m.zt none",
            "m.zt: is a zTensor file without files inside: --tensor NAME takes a tensor",
        ),
        ("cat m.ptl none", "m.ptl: has no file \"none\" inside (inspect lists them)"),
        ("cat m.zt --tensor none", "m.zt: has no tensor \"none\""),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let (status, text) = fails(cd, &args);
        assert!(text.starts_with(&format!("error: {message}")), "{line}: {text}");
        assert_eq!(status, 2, "{line}");
        assert_eq!(fs::read_dir(cd).unwrap().count(), before, "{line}");
    }
}

#[test]
fn files_are_created_of_tensors() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["convert", "m.zt", "one.npz", "--tensor", "s_f32"]);
    let put = ["--put", "six=float32:2,3:six.bin", "--put", "one=one.npz", "--put", "u=m.zt:s_u8"];
    let from =
        ["--from", "m.rten", "--tensor", "fc1.*", "--set", "author=me", "--set", "n:=[1, 2]"];
    prints(cd, &[&["create", "new.safetensors"][..], &put, &from].concat());
    let reader = AnyReader::open(cd.join("new.safetensors")).unwrap();
    let set = reader.tensor_set().unwrap();
    let mut names: Vec<&str> = set.tensors().iter().map(NamedTensor::name).collect();
    names.sort_unstable();
    assert_eq!(names, ["fc1.bias", "fc1.weight", "one", "six", "u"]);
    assert_eq!(set.metadata()["author"], "me");
    assert_eq!(set.metadata()["n"], "[1,2]");
}

#[test]
fn what_is_damaged_stays_behind() {
    let folder = folder();
    let cd = folder.path();
    let mut carton = fs::read(testdata("carton/valid/ref_full.carton")).unwrap();
    let name = b"model/sub/b.bin";
    let at = carton.windows(name.len()).position(|window| window == name).unwrap();
    // The last of its 11 bytes as zstd.
    carton[at + name.len() + 10] ^= 1;
    fs::write(cd.join("damaged.carton"), carton).unwrap();
    let extract = ["extract", "damaged.carton", "-o"];
    prints(cd, &[&extract[..], &["out", "--dry-run"]].concat());
    let (status, said) = fails(cd, &[&extract[..], &["out"]].concat());
    let start = "error: damaged.carton: file \"model/sub/b.bin\": ";
    assert!(status == 1 && said.starts_with(start) && said.lines().count() == 1, "{said}");
    assert!(cd.join("out/files/model/a.txt").exists());
    assert!(!cd.join("out/files/model/sub/b.bin").exists());
    let index = fs::read_to_string(cd.join("out/index.json")).unwrap();
    assert!(index.contains("model/a.txt") && !index.contains("model/sub/b.bin"), "{index}");
    let json = modelcrate(cd, &[&extract[..], &["j", "--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["failed"][0]["name"], "model/sub/b.bin");
    let alone = [&extract[..], &["alone", "--file", "model/sub/b.bin"]].concat();
    assert_eq!(fails(cd, &alone).0, 1);
    assert!(!cd.join("alone").exists());
    for name in ["csr_index_range", "digest_crc_wrong", "zstd_cut"] {
        fs::copy(testdata(&format!("ztensor/invalid/{name}.zt")), cd.join("z.zt")).unwrap();
        let output = modelcrate(cd, &["extract", "z.zt", "-o", name]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: z.zt: tensor \""));
    }
}

#[test]
fn folders_are_never_replaced() {
    let folder = folder();
    let cd = folder.path();
    fs::create_dir(cd.join("there.npz")).unwrap();
    fs::write(cd.join("there.npz/kept"), "").unwrap();
    for (args, reason) in [
        (&["convert", "m.rten", "there.npz"][..], "is not a regular file"),
        (
            &["convert", "m.rten", "there.npz", "--to", "safetensors", "--shard-size", "1KiB"],
            "is not empty",
        ),
        (&["create", "there.npz", "--from", "m.rten"], "is not a regular file"),
    ] {
        let said = fails(cd, &[args, &["--overwrite"]].concat());
        assert_eq!(said, (2, format!("error: there.npz: {reason}\n")));
    }
    assert!(cd.join("there.npz/kept").exists());
}

#[test]
fn what_the_output_has_not_is_named() {
    let folder = folder();
    let cd = folder.path();
    let put = ["--put", "x=c64:3:six.bin"];
    let said = prints(cd, &[&["create", "new.zt"], &put[..]].concat());
    assert!(said.contains("\n  \"x\": c64, a file with which Python's ztensor 1.1.1 refuses\n"));
    let put = ["--put", "x=f32:6:six.bin", "--set", "general.alignment:=3"];
    let said = prints(cd, &[&["create", "new.gguf"], &put[..]].concat());
    assert!(said.contains("\n  without metadata general.alignment\n"), "{said}");
    let extra = testdata("ztensor/valid/v1.1-hand/dense_extra_component.zt");
    let said = prints(cd, &["convert", extra.to_str().unwrap(), "new.npz"]);
    assert!(said.contains("\n  without metadata t.mask\n"), "{said}");
    fs::create_dir(cd.join("a=b")).unwrap();
    prints(cd, &["unpack", "m.zip", "package"]);
    let models = fs::read_dir(cd.join("package")).unwrap().map(|entry| entry.unwrap().path());
    let mut models = models.filter(|path| path.extension().is_some_and(|end| end == "circle"));
    fs::copy(models.next().unwrap(), cd.join("a=b/c=d.circle")).unwrap();
    for model in ["a=b/c=d.circle", "n=m.circle=a=b/c=d.circle"] {
        prints(cd, &["pack", model, "new.zip", "--to", "nnpackage", "--overwrite"]);
    }
    assert!(prints(cd, &["inspect", "new.zip"]).contains("n=m.circle"));
}

#[test]
fn every_checksum_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let before = fs::read(testdata("ztensor/golden/empty.zt")).unwrap();
    fs::write(cd.join("m.zt"), &before).unwrap();
    for sample in [
        "carton/valid/ref_noncontiguous.carton",
        "nnpackage/valid/03_two_models_connected.zip",
        "ptl/valid/torch113/img_extras.ptl",
        "weights/arrays.npz",
        "weights/compressed.npz",
        "ztensor/golden/dense_sha256.zt",
        "ztensor/golden/dense_zstd_crc32c.zt",
    ] {
        let mut bytes = fs::read(testdata(sample)).unwrap();
        let name = sample.rsplit('/').next().unwrap();
        let places = AnyReader::from_bytes(bytes.clone()).unwrap();
        let places: Vec<_> =
            places.tensors().unwrap().filter_map(|tensor| tensor.extent().unwrap()).collect();
        // Where no tensor is stored as it is, one is compressed at the start of the file.
        let at = places.iter().find(|extent| !extent.is_empty()).map_or(66, |at| at.offset());
        bytes[at as usize] ^= 1;
        fs::write(cd.join(name), bytes).unwrap();
        for command in [
            vec!["convert", name, "new.npz", "--lossy"],
            vec!["extract", name, "-o", "folder"],
            vec!["hash", name],
            vec!["create", "new.npz", "--from", name, "--lossy"],
            vec!["edit", "m.zt", "--from", name],
        ] {
            let (status, said) = fails(cd, &command);
            assert_eq!(status, 1, "{command:?}: {said}");
            assert!(said.starts_with(&format!("error: {name}: ")), "{command:?}: {said}");
            assert!(!cd.join("new.npz").exists());
            assert!(fs::read(cd.join("m.zt")).unwrap() == before);
        }
        fs::remove_dir_all(cd.join("folder")).ok();
    }
}

#[test]
fn folders_hold_tensors_and_files() {
    let folder = folder();
    let cd = folder.path();
    for (sample, name) in [
        ("carton/valid/ref_strings.carton", "texts.carton"),
        ("nnpackage/valid/everything.tflite", "m.tflite"),
        ("ztensor/valid/v1.1-hand/quantized_group.zt", "groups.zt"),
    ] {
        fs::copy(testdata(sample), cd.join(name)).unwrap();
    }
    prints(cd, &["edit", "groups.zt", "--put", "six=f32:6:six.bin"]);
    let partly = ["m.circle", "m.tflite", "texts.carton", "groups.zt"];
    let whole = ["m.carton", "m.zip", "m.ptl", "fb.ptl", "m.rten", "m.zt", "sparse.zt"];
    for input in partly.iter().chain(&whole).copied() {
        let output = format!("{input}.d");
        let dry = prints(cd, &["extract", input, "-o", &output, "--dry-run"]);
        prints(cd, &["extract", input, "-o", &output, "--dry-run", "--format", "json"]);
        assert!(!cd.join(&output).exists());
        assert_eq!(dry.replace("would be ", ""), prints(cd, &["extract", input, "-o", &output]));
        let index = fs::read(cd.join(&output).join("index.json")).unwrap();
        let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
        let reader = AnyReader::open(cd.join(input)).unwrap();
        let set = reader.tensor_set().unwrap();
        let tensors = index["tensors"].as_array().unwrap();
        // Tensors whose elements cannot be given out.
        let left_out = dry.matches("left without").count();
        assert_eq!(tensors.len() + left_out, set.tensors().len(), "{input}");
        assert_eq!(left_out > 0, partly.contains(&input), "{dry}");
        for entry in tensors {
            let path = cd.join(&output).join(entry["file"].as_str().unwrap());
            let tensor = set.tensor(entry["name"].as_str().unwrap()).unwrap();
            let bytes = if path.extension().unwrap() == "npy" {
                AnyReader::open(&path).unwrap().tensor_set().unwrap().tensors()[0].bytes().unwrap()
            } else {
                fs::read(&path).unwrap().into()
            };
            assert_eq!(bytes, tensor.bytes().unwrap(), "{path:?}");
        }
        for entry in index["files"].as_array().unwrap() {
            let (name, file) = (entry["name"].as_str().unwrap(), entry["file"].as_str().unwrap());
            let shown = modelcrate(cd, &["cat", input, name]);
            assert!(shown.stdout == fs::read(cd.join(&output).join(file)).unwrap(), "{name}");
        }
        let there = fails(cd, &["extract", input, "-o", &output]);
        assert_eq!(there, (2, format!("error: {output}: is not empty\n")));
    }
    let said = prints(cd, &["extract", "m.ptl", "-o", "code", "--file", "code/*"]);
    assert!(said.starts_with("code: extracted, 0 tensors, "), "{said}");
    let said = prints(cd, &["extract", "m.rten", "-o", "fc1", "--tensor", "fc1.*", "--to", "raw"]);
    assert_eq!(said, "fc1: extracted, 2 tensors, 0 files\n");
    assert_eq!(fs::read(cd.join("fc1/tensors/fc1.bias.bin")).unwrap().len(), 32);
}

#[test]
fn one_tensor_goes_to_standard_output() {
    let folder = folder();
    let cd = folder.path();
    let raw = modelcrate(cd, &["cat", "m.rten", "--tensor", "fc1.bias"]).stdout;
    assert_eq!(raw.len(), 32);
    let npy = modelcrate(cd, &["cat", "m.rten", "--tensor", "fc1.bias", "--to", "npy"]).stdout;
    assert!(npy.starts_with(b"\x93NUMPY") && npy.ends_with(&raw));
}

#[cfg(target_os = "linux")]
#[test]
fn full_standard_output_is_not_the_fault_of_the_input() {
    let folder = folder();
    for args in ["m.rten --tensor fc1.bias", "m.ptl extra/model/live.spec.json"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_modelcrate"))
            .current_dir(folder.path())
            .arg("cat")
            .args(args.split(' '))
            .stdout(full)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with("error: -: "), "{text}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn options_make_possible_what_is_refused() {
    let folder = folder();
    let cd = folder.path();
    let args = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    for (line, option, effect) in [
        ("convert sparse.zt new.safetensors", "--densify", "stored with its zeros, 96 bytes"),
        ("convert m.zt new.npz", "--lossy", "bf16 as f32"),
        ("convert blocks.gguf new.safetensors", "--dequantize", "q8_0 as f32"),
    ] {
        let (status, text) = fails(cd, &args(line));
        assert!(status == 2 && text.contains(&format!("({option}: ")), "{text}");
        assert!(!cd.join("new.safetensors").exists() && !cd.join("new.npz").exists());
        let said = prints(cd, &[&args(line)[..], &[option, "--format", "json"]].concat());
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!(said["notes"][0]["effect"].as_str().unwrap().starts_with(effect), "{said}");
        fs::remove_file(cd.join(line.rsplit_once(' ').unwrap().1)).unwrap();
    }
    prints(cd, &args("convert sparse.zt dense.safetensors --densify"));
    assert!(prints(cd, &args("diff sparse.zt dense.safetensors")).contains("equal: "));
    prints(cd, &args("convert m.rten renamed.zt --rename fc1.bias=b --compression zstd"));
    let reader = AnyReader::open(cd.join("renamed.zt")).unwrap();
    assert!(reader.tensor("b").unwrap().is_some() && reader.tensor("fc1.bias").unwrap().is_none());
    let (status, text) = fails(cd, &args("convert m.rten new.npz --compression zstd"));
    assert!(status == 2 && text.contains("npz has only"), "{text}");
}

#[test]
fn shards_are_a_folder() {
    let folder = folder();
    let cd = folder.path();
    let args = ["convert", "m.rten", "shards", "--to", "safetensors", "--shard-size", "64"];
    prints(cd, &[&args[..], &["--dry-run", "--format", "json"]].concat());
    assert!(!cd.join("shards").exists());
    let said = prints(cd, &[&args[..], &["--format", "json"]].concat());
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let files = said["files"].as_array().unwrap();
    assert_eq!(files.len(), fs::read_dir(cd.join("shards")).unwrap().count());
    let index = files.iter().find_map(|file| file.as_str().filter(|name| name.ends_with("json")));
    let index = format!("shards/{}", index.unwrap());
    assert!(prints(cd, &["diff", "m.rten", &index]).contains("equal: "));
    assert_eq!(fails(cd, &args), (2, "error: shards: is not empty\n".to_owned()));
}

#[test]
fn shards_that_cannot_be_written_are_no_folder() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("b.bin"), [0, 1, 2]).unwrap();
    let puts = ["--put", "a=u8:3:b.bin", "--put", "b=bool:3:b.bin"];
    let shards = ["create", "new", "--to", "safetensors", "--shard-size", "3"];
    for args in [&shards[..], &["create", "new.npz"], &["create", "new.zt"]] {
        let (status, text) = fails(cd, &[args, &puts].concat());
        assert_eq!(status, 2, "{text}");
        assert!(text.ends_with("tensor \"b\": element 2 is neither 0 nor 1\n"), "{text}");
        assert!(!cd.join(args[1]).exists());
    }
}

/// What the numbers stand for is missing, not the numbers.
#[test]
fn tensors_whose_scales_cannot_be_read_are_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let reader = rten_format::Reader::open(testdata("rten/valid/quantized.v2.rten")).unwrap();
    let mut model = reader.model().clone();
    let NodeKind::Operator(operator) = &mut model.graph.nodes[35].kind else { panic!() };
    // Codes in the place of scales.
    assert_eq!(operator.inputs[..2], [Some(5), Some(6)]);
    operator.inputs[1] = Some(5);
    Rewrite::new(&reader).model(model).to_v2(cd.join("m.rten")).unwrap();
    let output = modelcrate(cd, &["extract", "m.rten", "-o", "parts"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("tensor \"table.q\": its scales are u8, expected f32 or f64"), "{said}");
    let index = fs::read_to_string(cd.join("parts/index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let tensors = index["tensors"].as_array().unwrap();
    let codes = tensors.iter().find(|tensor| tensor["name"] == "table.q").unwrap();
    assert!(codes.get("quantization").is_none(), "{codes}");
    assert!(cd.join("parts").join(codes["file"].as_str().unwrap()).exists());
}
