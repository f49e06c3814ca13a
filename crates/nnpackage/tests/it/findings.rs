//! What is found in sound packages, each thing with its reason in the README of the corpus.

use nnpackage::{
    Reader, Stage,
    tensor_core::{Finding, Severity},
};
use test_support::{files, testdata};

use crate::common::open;

/// Asserts severity, rule and place of every finding of a package, and what stops onert.
#[track_caller]
fn finds(name: &str, expected: &[&str], onert: Option<&str>) {
    let reader = open(name);
    let found = reader.validate().into_iter().map(|Finding { severity, rule, at, .. }| {
        let parts = [at.entry, at.path, at.line.map(|line| line.to_string())];
        let place: Vec<String> = parts.into_iter().flatten().collect();
        format!("{severity} {rule} {}", place.join(" "))
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let stops = reader.forecast().map(|reaction| reaction.to_string());
    assert_eq!(stops.as_deref(), onert);
}

#[test]
fn empty_name_of_a_configuration() {
    finds("01", &["note nnp/config-empty metadata/MANIFEST /configs/0 6"], None);
}

#[test]
fn keys_that_come_too_late() {
    let expected = [
        "warning nnp/config-no-effect metadata/model.cfg BACKENDS 2",
        "warning nnp/config-no-effect metadata/model.cfg EXECUTOR 3",
        "warning nnp/config-no-effect metadata/model.cfg OP_BACKEND_Conv2D 7",
        "note nnp/model-compressed mymodel.model",
        "note nnp/unreferenced-file metadata/mymodel.json",
    ];
    finds("02", &expected, None);
}

#[test]
fn connected_models() {
    let expected = [
        "note nnp/multi-model metadata/MANIFEST /model-connect",
        "note nnp/model-compressed m0.circle",
        "note nnp/model-compressed m1.circle",
    ];
    finds("03", &expected, None);
}

#[test]
fn types_by_extension() {
    let expected = [
        "warning nnp/model-types-missing metadata/MANIFEST /model-types",
        "warning nnp/unconnected-models metadata/MANIFEST /model-connect",
        "warning nnp/top-folder ",
        "note nnp/model-compressed sub/add.tflite",
        "note nnp/model-compressed add.circle",
    ];
    finds("04", &expected, Some(r#"fails to load: "Failed to open  loader""#));
}

#[test]
fn types_without_a_loader() {
    let expected = [
        "note nnp/draft-attribute metadata/MANIFEST /model-infos 7",
        "warning nnp/model-type-loader metadata/MANIFEST /model-types/2 8",
        "warning nnp/unconnected-models metadata/MANIFEST /model-connect",
        "note nnp/custom-operator yourmodel.model",
        "note nnp/model-compressed mymodel.model",
        "note nnp/model-compressed yourmodel.model",
        "note nnp/model-compressed pre-compiled.model",
    ];
    finds("05", &expected, Some(r#"fails to load: "Failed to open bin loader""#));
}

#[test]
fn what_onert_cannot_run() {
    let expected = [
        "warning nnp/version metadata/MANIFEST /major-version 2",
        "warning nnp/version metadata/MANIFEST /minor-version 3",
        "warning nnp/version metadata/MANIFEST /patch-version 4",
        "note model/dynamic-dimension rich.circle subgraph 0",
        "note model/dynamic-dimension rich.circle subgraph 0",
        r#"warning model/external-constant rich.circle subgraph 0/tensor 1 "bias""#,
        "note nnp/model-compressed rich.circle",
    ];
    finds("06", &expected, Some("crashes or goes on with wrong data"));
    let stage = open("06").forecast().and_then(|reaction| reaction.stops_at());
    assert_eq!(stage, Some(Stage::Prepare));
}

/// Sound packages have no errors, and their models none by themselves.
#[test]
fn sound_packages_are_valid() {
    for path in files("nnpackage/valid", "zip") {
        let reader = Reader::open(&path).unwrap();
        assert!(reader.validate().is_valid(), "{path:?}");
        for model in reader.models() {
            if let Ok(model) = model.open() {
                assert!(model.validate().is_valid(), "{path:?}");
            }
        }
    }
}

/// A finding has its column, a hint, and what onert does, and the report says all of it.
#[test]
fn diagnoses_say_what_to_do() {
    let reader = Reader::open(testdata("nnpackage/invalid/types_capital")).unwrap();
    let diagnoses = reader.diagnoses();
    let [diagnosis] = &diagnoses[..] else { panic!("{diagnoses:?}") };
    assert_eq!(
        (diagnosis.finding.severity, &*diagnosis.finding.rule),
        (Severity::Error, "nnp/model-type")
    );
    assert_eq!(diagnosis.finding.at.path.as_deref(), Some("/model-types/0"));
    assert_eq!((diagnosis.finding.at.line, diagnosis.finding.at.column), (Some(9), Some(5)));
    assert_eq!(diagnosis.hint.as_deref(), Some("\"circle\" may have been meant"));
    let message = "model-types[0] is \"Circle\", expected \"tflite\", \"circle\" or \"bin\"; \"circle\" \
                   may have been meant (onert fails to load: \"Failed to open Circle loader\")";
    assert_eq!(reader.lint().findings()[0].message, message);
}

/// Millions of faults are counted, not listed.
#[test]
fn many_faults_of_one_kind() {
    let reader = open("01");
    let bytes = reader.models().next().unwrap().file().bytes().unwrap();
    let model = circle_format::Reader::from_bytes(bytes).unwrap();
    assert!(model.diagnoses().is_empty());
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("metadata")).unwrap();
    let names = vec!["\"no.circle\""; 1936].join(",");
    let manifest = format!("{{\"models\": [{names}], \"model-types\": [{names}]}}");
    std::fs::write(folder.path().join("metadata/MANIFEST"), manifest).unwrap();
    let diagnoses = Reader::open(folder.path()).unwrap().diagnoses();
    let missing: Vec<_> =
        diagnoses.iter().filter(|found| found.finding.rule == "nnp/missing-file").collect();
    assert_eq!(missing.len(), 1001);
    assert_eq!(missing[1000].finding.message, "936 more are not listed");
}
