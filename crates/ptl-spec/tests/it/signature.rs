//! Signatures of real specs, and what cannot be known before a call.

use std::fs;

use ptl_spec::{
    JSON_SCHEMA, Json, Pack, PackString, ParamKind, Slot, Spec, Tokenizer, Unpack,
    tensor_core::Limits,
};
use test_support::{files, testdata};

use crate::json::{self, members};

#[test]
fn every_spec_has_its_signature() {
    let signatures = json::read(testdata("ptl/calls/signatures.json"));
    let mut checked = 0;
    for (name, expected) in members(&signatures).iter().filter(|(name, _)| name != "comment") {
        let text = fs::read(testdata("ptl/calls/specs").join(format!("{name}.json"))).unwrap();
        let spec = Spec::parse(text).unwrap();
        let parameters = spec.signature().parameters;
        let found = parameters.iter().map(|p| (p.name.as_str(), p.kind.name()));
        let expected = members(expected).iter();
        let expected = expected.map(|(key, kind)| (key.as_str(), kind.as_str().unwrap()));
        assert!(found.eq(expected), "{name}: {}", spec.signature());
        assert!(spec.lint().is_valid(), "{name}: {:?}", spec.lint());
        checked += 1;
    }
    assert_eq!(checked, 11);
}

#[test]
fn specs_are_written_as_they_were_read() {
    for path in files("ptl/calls/specs", "json") {
        let spec = Spec::parse(fs::read(&path).unwrap()).unwrap();
        assert_eq!(*Spec::parse(spec.to_text()).unwrap().json(), *spec.json(), "{path:?}");
        let again = Spec::options().from_json(rebuilt(&spec)).unwrap();
        assert_eq!((again.pack(), again.unpack()), (spec.pack(), spec.unpack()), "{path:?}");
    }
}

/// Returns the document with both parts written again from their typed values.
fn rebuilt(spec: &Spec) -> Json {
    let part = |(key, value): &(String, Json)| {
        let value = match key.as_str() {
            "pack" => spec.pack().to_json(),
            "unpack" => spec.unpack().to_json(),
            _ => value.clone(),
        };
        (key.clone(), value)
    };
    Json::Object(members(spec.json()).iter().map(part).collect())
}

#[test]
fn the_schema_names_every_type() {
    Json::parse(JSON_SCHEMA.as_bytes(), &Limits::default()).unwrap();
    let report = Spec::options().lint(r#"{"pack": {"type": "?"}, "unpack": {"type": "?"}}"#);
    assert_eq!(report.findings().len(), 2);
    for finding in report.findings() {
        let (_, types) = finding.message.split_once("expected").unwrap();
        for name in types.split('"').skip(1).step_by(2) {
            assert!(JSON_SCHEMA.contains(&format!("\"const\": \"{name}\"")), "{name}");
        }
    }
}

#[test]
fn specs_are_built_with_their_vocabulary() {
    let string =
        PackString { string: Slot::stub("text"), tokenizer: Tokenizer::Bert { length: 4.into() } };
    let (pack, unpack) =
        (Pack::String(string), Unpack::BertAnswer { key: "answer".to_owned().into() });
    let missing = Spec::new(&pack, &unpack).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "pack needs the vocabulary \"vocabulary_bert\", which the spec does not have"
    );
    let vocabulary = [("vocabulary_bert", Json::from("[PAD]\n[UNK]\nhello"))];
    let spec = Spec::options().build(vocabulary, &pack, &unpack).unwrap();
    assert!(spec.lint().is_empty(), "{:?}", spec.lint());
    assert_eq!(
        spec.json().to_string(),
        concat!(
            r#"{"vocabulary_bert":"[PAD]\n[UNK]\nhello","pack":{"type":"tensor_from_string","#,
            r#""tokenizer":"bert","string":"$text","model_input_length":4},"#,
            r#""unpack":{"type":"bert_decode_qa_answer","key":"answer"}}"#
        )
    );
}

#[test]
fn both_sides_are_printed() {
    let spec = Spec::parse(fs::read(testdata("ptl/calls/specs/mnist_like.json")).unwrap()).unwrap();
    assert_eq!(
        spec.signature().to_string(),
        "(image: image, bg: colour, fg: colour) -> (maxIdx: integer, confidence: number)"
    );
}

#[test]
fn a_stub_may_decide_the_type() {
    let spec = Spec::parse(
        r#"{"pack": {"type": "$k", "value": "$v"}, "unpack": {"type": "string", "key": "$name"}}"#,
    )
    .unwrap();
    let signature = spec.signature();
    assert_eq!(signature.to_string(), "(k: any, v: any, name: string) -> ($name: string)");
    assert_eq!(signature.deferred, ["pack"]);
    assert_eq!(signature.parameter("v").unwrap().places, ["pack.value"]);
}

#[test]
fn uses_narrow_a_parameter() {
    let spec = Spec::parse(
        r#"{"pack": {"type": "tensor", "dtype": "float", "sizes": ["$n"], "items": ["$n", "$x"]},
            "unpack": {"type": "scalar_long", "key": "k"}}"#,
    )
    .unwrap();
    let signature = spec.signature();
    assert_eq!(signature.parameter("n").unwrap().kind, ParamKind::Integer);
    assert_eq!(signature.parameter("n").unwrap().places, ["pack.sizes[0]", "pack.items[0]"]);
    assert_eq!(signature.parameter("x").unwrap().kind, ParamKind::Number);
    assert_eq!(
        signature.json_schema().to_string(),
        concat!(
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","#,
            r#""properties":{"n":{"description":"integer","type":"integer"},"#,
            r#""x":{"description":"number","type":"number"}},"required":["n","x"]}"#
        )
    );
}

#[test]
fn parameters_of_two_kinds_are_found() {
    let spec = Spec::parse(
        r#"{"pack": {"type": "tuple", "items": [{"type": "scalar_bool", "value": "$x"},
                                               {"type": "scalar_long", "value": "$x"}]},
            "unpack": {"type": "scalar_long", "key": "k"}}"#,
    )
    .unwrap();
    let report = spec.lint();
    assert_eq!(
        report.findings()[0].message,
        "pack.items[1].value takes the parameter \"x\" for integer, \
         but pack.items[0].value takes it for boolean"
    );
}
