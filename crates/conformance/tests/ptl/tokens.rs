//! Standard tokenizers make the ids that Hugging Face's `tokenizers` makes.

use std::fs;

use conformance::python::Client;
use ptl_spec::{BertMode, Gpt2Mode, Params, Spec, SpecOptions, Value};
use serde_json::{Value as Json, json};

/// Texts of words, signs and letters of several scripts, the same each time.
fn texts() -> Vec<String> {
    let pieces = [
        "models",
        "Outlive",
        "Henson?",
        "puppeteer",
        "Zürich",
        "CAFÉ",
        "naïve",
        "straße",
        "he'll",
        "it's",
        "'s",
        "3.14",
        "42",
        "1234567890123",
        "数える",
        "言葉",
        "Слова",
        "ελληνικά",
        "🦀",
        "e\u{301}",
        "...",
        "--",
        "#tag",
        "@",
        "(a)",
        "[UNK]",
        "[SEP]",
        "[x]",
        "\u{a0}",
        "\t",
        "\n",
        "\r\n",
        " ",
        "  ",
        "   \n ",
        "\u{ad}",
        "\u{200b}",
        "i\u{307}",
        "ﬁ",
        "½",
        "x_y",
        "a/b",
        "$5",
    ];
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut text = || {
        let joints = [" ", " ", "", "\n"];
        let words =
            (0..next(12)).map(|_| format!("{}{}", pieces[next(pieces.len())], joints[next(4)]));
        words.collect::<String>()
    };
    let mut texts: Vec<String> = (0..400).map(|_| text()).collect();
    texts.extend(pieces.map(str::to_owned));
    texts
}

/// Packs a text, without the padding that is its own length.
fn ids(spec: &Spec, text: &str, expected: usize) -> Vec<i64> {
    let params = Params::new().with("text", text).with("length", expected as i64 + PADDING);
    match spec.call(&params).unwrap().pack().unwrap() {
        Value::Tensor(tensor) => tensor.view().to_vec().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_same(options: SpecOptions, spec: &Json, texts: &[String], expected: &Json, padding: i64) {
    let spec = options.parse(spec.to_string()).unwrap();
    for (text, expected) in texts.iter().zip(expected.as_array().unwrap()) {
        let mut expected: Vec<i64> =
            expected.as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
        let found = ids(&spec, text, expected.len());
        let padded = usize::try_from(padding).unwrap();
        expected.extend(std::iter::repeat_n(0, padded));
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn ids_of_standard_tokenizers() {
    let folder = tempfile::tempdir().unwrap();
    let (path, texts) = (folder.path().join("texts.json"), texts());
    fs::write(&path, json!(texts).to_string()).unwrap();
    let Some(made) = Client::TOKENIZERS.run("ptl_tokens.py", &[path]) else { return };
    let unpack = json!({ "type": "tensor", "dtype": "long", "key": "k" });
    let bert = json!({
        "vocabulary_bert": made["bert"]["vocabulary"],
        "pack": { "type": "tensor_from_string", "tokenizer": "bert", "string": "$text",
            "model_input_length": "$length" },
        "unpack": unpack,
    });
    let options = Spec::options().bert(BertMode::WordPiece);
    assert_same(options, &bert, &texts, &made["bert"]["ids"], PADDING);
    let gpt2 = json!({
        "vocabulary_gpt2": made["gpt2"]["vocabulary"],
        "pack": { "type": "tensor_from_string", "tokenizer": "gpt2", "string": "$text" },
        "unpack": unpack,
    });
    let options = Spec::options().gpt2(Gpt2Mode::ByteLevelBpe);
    assert_same(options, &gpt2, &texts, &made["gpt2"]["ids"], 0);
}

/// Ids of `[PAD]` behind those of a text: what would be cut off is not missed.
const PADDING: i64 = 3;
