//! What validation finds in real files, and in files with one fault.

use std::fs;

use bytes::Bytes;
use ptl_spec::{
    Reader, SPEC,
    tensor_core::{Report, Severity},
    with_extra_files,
};
use test_support::{files, testdata};

use crate::model;

fn grave(report: &Report) -> Vec<String> {
    let grave = report.findings().iter().filter(|finding| finding.severity > Severity::Note);
    grave.map(|f| format!("{} {}: {}", f.severity, f.rule, f.message)).collect()
}

#[test]
fn real_files_are_valid() {
    for folder in ["torch113", "torch251", "backport"] {
        for path in files(&format!("ptl/valid/{folder}"), "ptl") {
            let report = Reader::open(&path).unwrap().validate();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let has_spec = Reader::open(&path).unwrap().spec().unwrap().is_some();
            let expected: &[&str] = match has_spec {
                true => &[],
                false => &["warning ptl/no-spec: there is no spec in the file"],
            };
            assert_eq!(grave(&report), expected, "{name}");
        }
    }
}

#[test]
fn versions_say_who_reads_them() {
    let report = Reader::from_bytes(model("img.ptl")).unwrap().validate();
    let messages: Vec<&str> = report.findings().iter().map(|f| f.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "1 debug records, such as \"code/__torch__.py.debug_pkl\", may hold source lines and \
             paths of the author",
            "bytecode version 8 is read by PyTorch 1.13 to 2.5"
        ]
    );
}

#[test]
fn edited_files_have_no_warnings() {
    for name in ["img_nospec.ptl", "img_nospec_fb.ptl", "img.ptl"] {
        let spec = fs::read(testdata("ptl/calls/specs/img.json")).unwrap();
        let edited = with_extra_files(&model(name), [(SPEC, Some(Bytes::from(spec)))]).unwrap();
        let report = Reader::from_bytes(edited).unwrap().validate();
        assert_eq!(grave(&report), [""; 0], "{name}");
    }
}

#[test]
fn pickles_that_are_no_part_of_the_model_are_looked_at() {
    let calls: [&[u8]; 2] = [
        b"\x80\x02cposix\nsystem\nX\x02\0\0\0id\x85R.",
        b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    ];
    for (name, file) in [("evil.pkl", "img.ptl"), ("evil", "img.ptl"), ("evil", "img_fb.ptl")] {
        for content in calls {
            let content = Some(Bytes::from_static(content));
            let edited = with_extra_files(&model(file), [(name, content)]).unwrap();
            let reader = Reader::from_bytes(edited).unwrap();
            let said = "warning ptl/foreign-pickle: is a pickle that names \"posix.system\", which no \
                        model needs";
            assert_eq!(grave(&reader.validate()), [said], "{file}");
            assert_eq!(grave(&reader.lint()), [""; 0], "{file}");
        }
    }
}

/// Embeds a spec and returns what validation finds of it.
fn with_spec(model_name: &str, spec: &str) -> Vec<String> {
    let spec = Bytes::from(spec.to_owned());
    let edited = with_extra_files(&model(model_name), [(SPEC, Some(spec))]).unwrap();
    grave(&Reader::from_bytes(edited).unwrap().validate())
}

#[test]
fn specs_have_to_fit_the_method() {
    let long =
        r#"{"pack":{"type":"scalar_long","value":1},"unpack":{"type":"scalar_long","key":"k"}}"#;
    assert_eq!(
        with_spec("img.ptl", long),
        [
            "error ptl/spec-type: pack makes an int, but forward takes Tensor",
            "error ptl/spec-type: unpack wants an int, but forward gives Tensor"
        ]
    );
    let tuple = r#"{"pack":{"type":"tuple","items":[{"type":"scalar_bool","value":true},
        {"type":"scalar_double","value":1},{"type":"scalar_double","value":1}]},
        "unpack":{"type":"tuple","items":[{"type":"scalar_long","key":"a"}]}}"#;
    assert_eq!(
        with_spec("scalars.ptl", tuple),
        [
            "error ptl/spec-type: pack.items[1] makes a float, but forward takes Tuple[bool, int, float]",
            "error ptl/spec-type: unpack wants a tuple of 1, but forward gives Tuple[int, float, bool]"
        ]
    );
}

#[test]
fn faults_of_specs_are_all_found() {
    let spec = r#"{"pack":{"type":"tuple","items":[
        {"type":"tensor","dtype":"float","sizes":[2],"items":[1]},
        {"type":"tensor_from_string","tokenizer":"bert","string":"x","model_input_length":"4"},
        {"type":"tensor_from_image","image":"i","transforms":[
            {"type":"image_to_tensor","name":"rgb_norm","mean":[0,0,0],"std":[1,0,1]}]}]},
        "unpack":{"type":"foo","key":"k"}}"#;
    assert_eq!(
        with_spec("str.ptl", spec),
        [
            "error ptl/spec-items: pack.items[0] has 1 items, but sizes [2] need 2",
            "error ptl/spec-vocabulary: pack.items[1] needs the vocabulary \"vocabulary_bert\", \
             which the spec does not have",
            "error ptl/spec-value: pack.items[2].transforms[0].std[1] is 0, expected a number other \
             than 0",
            "error ptl/spec-value: unpack.type is \"foo\", expected \"tuple\", \"list\", \
             \"dict_string_key\", \"tensor\", \"scalar_long\", \"scalar_float\", \"scalar_bool\", \
             \"string\", \"tensor_to_string\", \"bert_decode_qa_answer\", \"argmax\", \
             \"bounding_boxes\" or \"tensor_to_image\"",
            "warning ptl/spec-number-as-text: pack.items[1].model_input_length is the text \"4\", \
             read as a number"
        ]
    );
}

#[test]
fn results_of_one_name_are_found() {
    let spec = r#"{"pack":{"type":"tensor","dtype":"float","sizes":[1],"items":[1]},
        "unpack":{"type":"tuple","items":[{"type":"tensor","dtype":"float","key":"a"},
        {"type":"tensor","dtype":"float","key":"a"}]}}"#;
    let found = with_spec("list.ptl", spec);
    assert_eq!(
        found[0],
        "error ptl/spec-duplicate-key: unpack.items[1] writes the result \"a\", which another \
         output writes too"
    );
}

#[test]
fn variants_are_graded() {
    let grades = |name: &str| {
        let path = testdata("ptl/valid/variants").join(name);
        grave(&Reader::open(path).unwrap().validate())
    };
    assert_eq!(grades("append_new_spec.ptl").len(), 2, "{:?}", grades("append_new_spec.ptl"));
    assert_eq!(
        grades("trailing_junk.ptl"),
        ["warning zip/suffix: archive at byte 5385: 10 bytes stand behind the archive"]
    );
    assert!(grades("all_deflated.ptl").iter().all(|f| f.starts_with("warning ptl/compressed")));
    assert!(grades("spec_bad_crc.ptl")[0].starts_with("error zip/crc: "));
    assert_eq!(
        grades("spec_empty.ptl"),
        ["warning ptl/no-spec: the spec is empty, which runtimes take for none"]
    );
    assert_eq!(grades("zip_comment.ptl").len(), 2, "{:?}", grades("zip_comment.ptl"));
}
