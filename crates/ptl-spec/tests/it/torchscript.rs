//! Archives for the full runtime. That PyTorch opens them is seen by the conformance tests.

use ptl_spec::{
    Error, File, Place, Reader, TorchScriptFault, rewrite,
    tensor_core::{ErrorKind, Limits, Severity},
    torchscript,
};
use test_support::{mutations, testdata};

use crate::model;

fn written(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut written = Vec::new();
    torchscript(&Reader::from_bytes(bytes.to_vec())?, &mut written)?;
    Ok(written)
}

fn tensors(reader: &Reader) -> Vec<(String, Vec<u8>)> {
    let tensors = reader.tensors().unwrap().filter(|tensor| tensor.place() != Place::Bytecode);
    tensors.map(|tensor| (tensor.name().to_owned(), tensor.bytes().unwrap().to_vec())).collect()
}

fn files(reader: &Reader, is_meant: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
    let files = reader.files().unwrap().filter(|file| is_meant(file.path()));
    files.map(|file| (file.path().to_owned(), file.bytes().unwrap().to_vec())).collect()
}

#[test]
fn flatbuffers_keep_what_they_hold() {
    for name in ["img_fb.ptl", "img_opt_fb.ptl", "zoo_fb.ptl"] {
        let bytes = model(name);
        let after = written(&bytes).unwrap();
        assert_eq!(written(&bytes).unwrap(), after);
        let (before, after) =
            (Reader::from_bytes(bytes).unwrap(), Reader::from_bytes(after).unwrap());
        assert_eq!(after.root(), Some("archive"));
        assert_eq!(tensors(&after), tensors(&before), "{name}");
        let is_file = |name: &str| name.starts_with("extra/") || name.starts_with("code/");
        assert_eq!(files(&after, is_file), files(&before, is_file), "{name}");
        let report = after.validate();
        let errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
        let errors: Vec<_> = errors.map(|found| &*found.rule).collect();
        assert_eq!(errors, ["ptl/not-lite"], "{name}");
    }
}

#[test]
fn archives_lose_what_is_for_the_lite_interpreter() {
    for path in ["torch113/img.ptl", "backport/img_opt_v4.ptl", "variants/all_deflated.ptl"] {
        let before = std::fs::read(testdata("ptl/valid").join(path)).unwrap();
        let after = Reader::from_bytes(written(&before).unwrap()).unwrap();
        let before = Reader::from_bytes(before).unwrap();
        let is_kept = |name: &str| !name.starts_with("bytecode");
        assert_eq!(files(&after, |_| true), files(&before, is_kept), "{path}");
        assert!(files(&before, |_| true).len() > files(&after, |_| true).len(), "{path}");
    }
}

#[test]
fn what_cannot_be_written_is_named() {
    for name in ["img.ptl", "img_fb.ptl"] {
        let reader = Reader::from_bytes(model(name)).unwrap();
        let mut bare = Vec::new();
        rewrite(&reader, |record| !record.starts_with("code/"), &mut bare).unwrap();
        let error = written(&bare).unwrap_err();
        assert!(matches!(error, Error::NotTorchScript { fault: TorchScriptFault::NoSource }));
        let message = "the model cannot become TorchScript: it keeps no source, which the full \
                       runtime compiles";
        assert_eq!((error.to_string().as_str(), error.rule()), (message, "ptl/torchscript"));
    }
    let reader = Reader::from_bytes(model("img.ptl")).unwrap();
    for name in ["data.pkl", "constants.pkl", "version"] {
        let mut bare = Vec::new();
        rewrite(&reader, |record| record != name, &mut bare).unwrap();
        let message = format!("the model cannot become TorchScript: it has no record {name:?}");
        assert_eq!(written(&bare).unwrap_err().to_string(), message);
    }
    // A name that would end its line in a pickle, and go on with opcodes.
    let mut bytes = model("img_fb.ptl");
    let places: Vec<usize> = bytes
        .windows(14)
        .enumerate()
        .filter(|(_, w)| w == b"__torch__.Net3")
        .map(|(at, _)| at)
        .collect();
    for at in places {
        bytes[at + 10] = b'\n';
    }
    let message = "the model cannot become TorchScript: \"state\" is an object of the class \
                   \"__torch__.\\net3\"";
    assert_eq!(written(&bytes).unwrap_err().to_string(), message);
}

/// Storages may share bytes: what comes of a small file is bounded.
#[test]
fn records_are_bounded() {
    let limits = Limits::default().with_expansion(0);
    let reader = Reader::options().limits(limits).from_bytes(model("img_fb.ptl")).unwrap();
    let error = torchscript(&reader, Vec::new()).unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("ptl/limit", ErrorKind::OverLimit));
    assert!(error.to_string().starts_with("records in bytes"), "{error}");
    // A text that is met any number of times is stored as often.
    let limits = Limits::default().with_document_bytes(200);
    let reader = Reader::options().limits(limits).from_bytes(model("img_fb.ptl")).unwrap();
    let error = torchscript(&reader, Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("pickle in bytes"), "{error}");
}

/// However a file is broken, what is written of it opens and has its tensors.
#[test]
fn broken_files_are_written_or_refused() {
    let (mut turn, mut count) = (0_u32, 0);
    mutations(&model("img_opt_fb.ptl"), |changed| {
        turn += 1;
        if turn % 8 != 0 {
            return;
        }
        let Ok(after) = written(changed) else { return };
        let before = Reader::from_bytes(changed.to_vec()).unwrap();
        let after = Reader::from_bytes(after).unwrap();
        assert_eq!(tensors(&after), tensors(&before));
        assert!(after.sources().unwrap().map(File::path).count() > 0);
        count += 1;
    });
    assert!(count > 500, "{count}");
}
