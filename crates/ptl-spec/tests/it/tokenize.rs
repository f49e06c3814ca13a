//! Token ids with the vocabularies of BERT and GPT-2, in all modes. The vocabularies are not part of
//! the workspace: `cargo xtask oracles` fetches the package that holds them.

use std::{fs, path::PathBuf, time::Instant};

use ptl_spec::{BertMode, Gpt2Mode, Json, Params, Spec, Value, tensor_core::Severity};
use test_support::{testdata, workspace};

use crate::json::{self, array, long, text};

/// Returns the text of a spec of the package; `None`, with a line that says so, where it is absent.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn original(name: &str) -> Option<String> {
    let package = "target/oracles/react-native-pytorch-core-0.2.4/package";
    let folder: PathBuf = workspace().join(package).join("android/src/androidTest/assets");
    let text = fs::read_to_string(folder.join(name));
    if text.is_err() {
        eprintln!("skipped: {package} is absent; `cargo xtask oracles` installs it");
    }
    text.ok()
}

fn oracles(name: &str) -> Vec<Json> {
    array(&json::read(testdata("ptl/calls/tokenizer_oracles.json")), name).to_vec()
}

/// Returns the ids that a spec packs, without padding.
fn ids(spec: &Spec, text: &str, length: i64) -> Vec<i64> {
    let params = Params::new().with("string", text).with("model_input_length", length);
    match spec.call(&params).unwrap().pack().unwrap() {
        Value::Tensor(tensor) => tensor.view().to_vec::<i64>().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn numbers(json: Option<&Json>) -> Option<Vec<i64>> {
    let Some(Json::Array(items)) = json else { return None };
    Some(items.iter().map(long).collect())
}

#[test]
fn bert_ids_are_those_of_others() {
    let Some(original) = original("bert_qa_spec.json") else { return };
    let report = Spec::parse(&original).unwrap().lint();
    assert_eq!(report.worst(), None::<Severity>, "{report:?}");
    for (mode, key) in [(BertMode::Reference, "reference"), (BertMode::WordPiece, "wordpiece")] {
        let spec = Spec::options().bert(mode).parse(&original).unwrap();
        for row in oracles("bert") {
            let words = text(&row, "text");
            let mut found = ids(&spec, words, 64);
            let len = found.iter().rposition(|id| *id != 0).map_or(0, |last| last + 1);
            found.truncate(len);
            let expected = row.get(key).unwrap();
            // Where the reference did not end, the word is unknown.
            match numbers(expected.get("ids").or(Some(expected))) {
                Some(expected) => assert_eq!(found, expected, "{mode:?} {words:?}"),
                None => assert!(found.contains(&100), "{mode:?} {words:?}: {found:?}"),
            }
        }
    }
}

#[test]
fn gpt2_ids_are_those_of_others() {
    let Some(original) = original("gpt2_spec.json") else { return };
    let modes = [(Gpt2Mode::Reference, "reference"), (Gpt2Mode::ByteLevelBpe, "bpe")];
    for (mode, key) in modes {
        let spec = Spec::options().gpt2(mode).parse(&original).unwrap();
        for row in oracles("gpt2") {
            let words = text(&row, "text");
            let found = ids(&spec, words, 0);
            let Some(expected) = row.get(key) else { panic!("{row}") };
            match numbers(expected.get("ids").or(Some(expected))) {
                Some(expected) => assert_eq!(found, expected, "{mode:?} {words:?}"),
                None => assert!(found.contains(&50256), "{mode:?} {words:?}: {found:?}"),
            }
        }
    }
}

#[test]
fn decoding_undoes_byte_pairs() {
    let Some(original) = original("gpt2_spec.json") else { return };
    let spec = Spec::options().gpt2(Gpt2Mode::ByteLevelBpe).parse(&original).unwrap();
    for row in oracles("gpt2") {
        let words = text(&row, "text");
        let params = Params::new().with("string", words);
        let mut call = spec.call(&params).unwrap();
        let packed = call.pack().unwrap();
        let results = call.unpack(&packed).unwrap();
        let (key, found) = results.iter().next().unwrap();
        assert_eq!(found.to_json().as_str(), Some(words), "{key}");
    }
}

#[test]
fn a_mebibyte_of_one_letter() {
    let modes =
        [(BertMode::Reference, Gpt2Mode::Reference), (BertMode::WordPiece, Gpt2Mode::ByteLevelBpe)];
    for (name, length) in [("bert_qa_spec.json", 64), ("gpt2_spec.json", 0)] {
        let Some(original) = original(name) else { return };
        for (bert, gpt2) in modes {
            let spec = Spec::options().bert(bert).gpt2(gpt2).parse(&original).unwrap();
            ids(&spec, "a", length);
            let start = Instant::now();
            let found = ids(&spec, &"a".repeat(1 << 20), length);
            assert!(!found.is_empty() && start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
        }
    }
}
