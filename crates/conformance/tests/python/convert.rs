//! What our conversions write, as the clients of the formats read it.

use std::{collections::BTreeMap, path::Path};

use conformance::python::Client;
use modelcrate::{
    AnyReader, ConvertOptions, NamedTensor, Target,
    weights::{ElementType, Layout, Planned},
};
use serde_json::{Map, Value as Json, json};
use tensor_core::{DType, Shape, digest::Algorithm};
use test_support::files;

/// Converts what a target can hold of every set of testdata into one file.
fn converted(
    target: Target,
    folder: &Path,
    knows: impl Fn(&NamedTensor<'_>) -> bool,
    check: impl Fn(&Path, &Path),
) {
    let mut count = 0;
    for (from, extension) in [
        ("carton/valid", "carton"),
        ("nnpackage/valid", "tflite"),
        ("ptl/valid/torch251", "ptl"),
        ("rten/valid", "rten"),
        ("weights", "safetensors"),
        ("weights", "npz"),
        ("weights", "gguf"),
        ("ztensor/valid/v1.1-ref", "zt"),
    ] {
        for path in files(from, extension) {
            let reader = AnyReader::open(&path).unwrap();
            if reader.byte_len() > 1 << 20 {
                continue;
            }
            let Ok(mut set) = reader.tensor_set() else { continue };
            let unknown = set.tensors().iter().filter(|tensor| !knows(tensor));
            let unknown: Vec<String> = unknown.map(|tensor| tensor.name().to_owned()).collect();
            set.retain(|name| !unknown.iter().any(|unknown| unknown == name));
            let options = ConvertOptions::default().lossy(true).densify(true);
            if let Err(refused) = set.convert_to(target, &options) {
                let names: Vec<_> = refused.into_iter().filter_map(|one| one.tensor).collect();
                set.retain(|name| names.iter().all(|refused| refused != name));
            }
            if set.tensors().is_empty() {
                continue;
            }
            let conversion = set.convert_to(target, &options).unwrap();
            let file = conversion.files().next().unwrap();
            let to = folder.join(file.name());
            let written = file.write(Vec::new(), |_| ());
            // Numbers that do not fit are refused late.
            let Ok(bytes) = written else { continue };
            std::fs::write(&to, bytes).unwrap();
            check(&path, &to);
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

/// Says what is in a file as the script does, with the names of a client for element types.
fn ours(path: &Path, name_of: impl Fn(&str) -> String) -> Json {
    let reader = AnyReader::open(path).unwrap();
    let set = reader.tensor_set().unwrap();
    let described = set.tensors().iter().map(|tensor| {
        let (element_type, shape) = tensor.elements().unwrap();
        let digest = Algorithm::Sha256.digest(&tensor.bytes().unwrap()).to_string();
        let digits = digest.trim_start_matches("sha256:");
        let found = json!([name_of(&element_type.to_string()), shape.dims(), digits]);
        (tensor.name().to_owned(), found)
    });
    Json::Object(described.collect::<Map<_, _>>())
}

fn read_by(client: Client, word: &str, target: Target, name_of: impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let knows = |tensor: &NamedTensor<'_>| word != "ztensor" || is_of_ztensor_1_1(tensor);
    converted(target, folder.path(), knows, |from, to| {
        let arguments = [word, to.to_str().unwrap()];
        let Some(theirs) = client.run("read_tensors.py", &arguments) else { return };
        assert_eq!(theirs, ours(to, &name_of), "{from:?}");
    });
}

#[test]
fn safetensors_reads_equal_tensors() {
    read_by(Client::SAFETENSORS, "safetensors", Target::Safetensors, str::to_ascii_uppercase);
}

#[test]
fn numpy_reads_equal_tensors() {
    let name_of = |name: &str| match (name, name.split_at(1)) {
        ("bool", _) => "bool".to_owned(),
        ("c64", _) => "complex64".to_owned(),
        ("c128", _) => "complex128".to_owned(),
        (_, ("f", bits)) => format!("float{bits}"),
        (_, ("i", bits)) => format!("int{bits}"),
        (_, (_, bits)) => format!("uint{bits}"),
    };
    read_by(Client::NUMPY, "numpy", Target::Npz, name_of);
}

/// Tells whether the client lists a tensor: it opens no file that has a later type in it, and passes
/// over names with NUL.
fn is_of_ztensor_1_1(tensor: &NamedTensor<'_>) -> bool {
    let later = [DType::C64, DType::C128, DType::F8E4M3, DType::F8E5M2].map(ElementType::Plain);
    let is_later = tensor.elements().is_ok_and(|(found, _)| later.contains(&found));
    !is_later && !tensor.name().contains('\0')
}

#[test]
fn ztensor_reads_equal_tensors() {
    let name_of = |name: &str| match (name, name.split_at(1)) {
        ("bool", _) => "bool".to_owned(),
        ("bf16", _) => "bfloat16".to_owned(),
        (_, ("f", bits)) => format!("float{bits}"),
        (_, ("i", bits)) => format!("int{bits}"),
        (_, (_, bits)) => format!("uint{bits}"),
    };
    read_by(Client::ZTENSOR_1_1, "ztensor", Target::ZTensor, name_of);
}

#[test]
fn gguf_reads_equal_tensors() {
    read_by(Client::GGUF, "gguf", Target::Gguf, str::to_ascii_uppercase);
}

/// Every kind of block, with all bits of it set somewhere and no scale that is not a number.
fn blocks() -> Vec<u8> {
    let types = [
        ("q4_0", 32, 18),
        ("q4_1", 32, 20),
        ("q5_0", 32, 22),
        ("q5_1", 32, 24),
        ("q8_0", 32, 34),
        ("q4_k", 256, 144),
        ("q5_k", 256, 176),
        ("q6_k", 256, 210),
    ];
    let shape = Shape::from([8_u64, 256]);
    let tensors: Vec<_> = types
        .into_iter()
        .flat_map(|(name, elements, bytes)| {
            let element_type = ElementType::Blocks { name, elements, bytes };
            // One of these bits is clear in an exponent that is not that of infinities.
            [0xbf, 0xfb].map(|mask| (format!("{name}/{mask}"), mask, element_type))
        })
        .collect();
    let planned = tensors.iter().map(|(name, _, element_type)| Planned {
        name,
        element_type: *element_type,
        shape: &shape,
    });
    let layout = Layout::gguf(&BTreeMap::new(), &planned.collect::<Vec<_>>()).unwrap();
    let (mut written, mut state) = (Vec::new(), 1_u64);
    layout
        .write(&mut written, |index, sink| {
            let (_, mask, element_type) = tensors[index];
            let len = element_type.byte_len(&shape).unwrap().unwrap();
            let random = (0..len).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_le_bytes()[7] & mask
            });
            Ok::<(), modelcrate::weights::Error>(sink.write_all(&random.collect::<Vec<u8>>())?)
        })
        .unwrap();
    written
}

#[test]
fn blocks_stand_for_the_numbers_of_gguf() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from.gguf", "to.gguf"].map(|name| folder.path().join(name));
    std::fs::write(&from, blocks()).unwrap();
    let reader = AnyReader::open(&from).unwrap();
    let set = reader.tensor_set().unwrap();
    let options = ConvertOptions::default().dequantize(true);
    let conversion = set.convert_to(Target::Gguf, &options).unwrap();
    let bytes = conversion.files().next().unwrap().write(Vec::new(), |_| ()).unwrap();
    std::fs::write(&to, bytes).unwrap();
    let arguments = ["gguf", from.to_str().unwrap(), "dequantize"];
    let Some(theirs) = Client::GGUF.run("read_tensors.py", &arguments) else { return };
    assert_eq!(theirs, ours(&to, str::to_ascii_uppercase));
}
