//! Whatever is written has no error that was not there before.
#![cfg(all(feature = "digest", feature = "zstd"))]

use std::{fs, sync::LazyLock};

use proptest::{prelude::*, sample::Index};
use ztensor::{
    Compression, Editor, Error, Format, Reader, Role, Storage, Version, WriteOptions,
    tensor_core::{DType, Finding, Severity, TensorBuf, output::Durability},
};

/// Files of every generation, sound and broken ones.
static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folders = ["invalid", "valid/legacy", "valid/v1.1-hand"];
    let files = folders.map(|folder| test_support::files(&format!("ztensor/{folder}"), "zt"));
    files.iter().flatten().map(|path| fs::read(path).unwrap()).collect()
});

/// A file, of which bytes near the end may be changed, where the manifest is.
fn any_file() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((0..400_usize, any::<u8>()), 0..3);
    (any::<Index>(), changes).prop_map(|(file, changes)| {
        let mut bytes = file.get(&FILES).clone();
        for (back, byte) in changes {
            let at = bytes.len().saturating_sub(17 + back);
            bytes[at] = byte;
        }
        bytes
    })
}

/// Returns the errors of a file that it was not made with.
fn new_errors(after: Vec<u8>, before: &Reader) -> Vec<Finding> {
    let new = Reader::from_bytes(after).unwrap().lint().new_since(&before.lint());
    new.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
}

fn edit(editor: &mut Editor, (kind, at): (u8, Index), other: &Reader) -> Result<(), Error> {
    let tensors: Vec<_> =
        editor.reader().tensors().map(|tensor| tensor.name().to_owned()).collect();
    let name = if tensors.is_empty() { "none" } else { at.get(&tensors) };
    let new = TensorBuf::from_slice([2], &[1_u8, 2]).unwrap();
    match kind {
        0 => editor.writer().add(&format!("new {}", at.index(9)), &new),
        1 => editor.replace(name, &new),
        2 => editor.remove(name),
        3 => editor.set_attribute("bits", at.index(20) as u64),
        4 => editor.set_tensor_attribute(name, "bits", at.index(20) as u64),
        5 => editor.remove_tensor_attribute(name, "group_size"),
        _ => other.tensors().try_for_each(|tensor| editor.writer().copy(tensor)),
    }
}

proptest! {
    #[test]
    fn edits_add_no_error(
        (file, other) in (any_file(), any_file()),
        edits in prop::collection::vec((0..7_u8, any::<Index>()), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.zt");
        fs::write(&path, &file).unwrap();
        let options = WriteOptions::default().durability(Durability::Cached);
        if let (Ok(mut editor), Ok(other)) =
            (Editor::open_with(&path, options), Reader::from_bytes(other))
        {
            let before = Reader::from_bytes(file).unwrap();
            for change in edits {
                // What is refused is not written.
                let _ = edit(&mut editor, change, &other);
            }
            let _ = editor.commit();
            prop_assert_eq!(new_errors(fs::read(&path).unwrap(), &before), []);
            let _ = ztensor::compact(&path, options);
            prop_assert_eq!(new_errors(fs::read(&path).unwrap(), &before), []);
        }
    }

    #[test]
    fn migrations_add_no_error(file in any_file(), is_later in any::<bool>()) {
        let version = if is_later { Version::V1_2 } else { Version::V1_1 };
        let mut writer = WriteOptions::default().version(version).write_to(Vec::new()).unwrap();
        if let Ok(before) = Reader::from_bytes(file)
            && ztensor::migrate(&before, &mut writer).is_ok()
        {
            prop_assert_eq!(new_errors(writer.finish().unwrap(), &before), []);
        }
    }

    #[test]
    fn objects_are_sound_or_refused(
        format in prop::sample::select(FORMATS.to_vec()),
        shape in prop::collection::vec(0..5_u64, 0..4),
        parts in prop::collection::vec((0..ROLES.len(), 0..DTYPES.len(), 0..5_usize), 0..4),
        attributes in prop::collection::vec(0..9_u64, 2),
        (is_later, is_compressed) in any::<(bool, bool)>(),
    ) {
        let version = if is_later { Version::V1_2 } else { Version::V1_1 };
        let mut storage = Storage::default();
        if is_compressed {
            storage.compression = Compression::Zstd { level: 1, frame: None };
        }
        let options = WriteOptions::default().version(version).storage(storage);
        let mut writer = options.write_to(Vec::new()).unwrap();
        let mut object = writer.object("w").unwrap();
        object.set_attributes(&["bits", "group_size"].into_iter().zip(attributes).collect());
        for (role, dtype, elements) in parts {
            let (role, bytes) = (Role::Other(ROLES[role].to_owned()), vec![1; elements * 4]);
            let _ = object.put(role, DTYPES[dtype], &bytes);
        }
        if object.finish(Format::Other(format.to_owned()), shape).is_ok() {
            let report = Reader::from_bytes(writer.finish().unwrap()).unwrap().validate();
            prop_assert!(report.is_valid(), "{:?}", report);
        }
    }
}

const FORMATS: [&str; 6] =
    ["dense", "sparse_csr", "sparse_coo", "quantized_group", "sparsecoo", "other"];
const ROLES: [&str; 5] = ["data", "values", "packed_weight", "scales", "zeros"];
const DTYPES: [DType; 6] =
    [DType::U8, DType::U32, DType::F32, DType::Bool, DType::F8E4M3, DType::I4];
