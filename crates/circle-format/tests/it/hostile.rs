//! Cuts, changes and sizes that lie: nothing but errors comes of them.

use std::{fs, time::Instant};

use bytes::Bytes;
use circle_format::{
    Reader, Writer,
    model::{ExternalBuffer, Model, ModelBuilder, Operator, OperatorCode, Schema, Signature},
    tensor_core::{Limits, Severity, Source},
};
use test_support::{mutations, truncations};

use crate::{common::packed_models, fuzz_corpus::circle_read};

fn models() -> Vec<Bytes> {
    packed_models().into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn every_truncation_of_a_model() {
    for model in models() {
        truncations(&model, |cut| {
            circle_read::run(cut);
            let is_sound =
                Reader::from_bytes(cut.to_vec()).is_ok_and(|reader| reader.validate().is_valid());
            // The last bytes of the tables may be padding.
            assert!(!is_sound || model.len() - cut.len() < 16, "{} of {}", cut.len(), model.len());
        });
    }
}

#[test]
fn changed_models_break_nothing() {
    for model in models() {
        some_mutations(&model, circle_read::run);
    }
    mutations(&models()[0], circle_read::run);
}

/// Changes a few thousand places: the files are long, and most of them zeros.
fn some_mutations(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    let mut changed = bytes.to_vec();
    for at in (0..bytes.len()).step_by(bytes.len().div_ceil(1000)) {
        check(&bytes[..at]);
        for new in [bytes[at] ^ 1, 0xff] {
            changed[at] = new;
            check(&changed);
        }
        changed[at] = bytes[at];
    }
}

#[test]
fn models_over_the_limit() {
    let model = models().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.circle");
    fs::write(&path, &model).unwrap();
    let open = |limits| Reader::options().limits(limits).open(&path).unwrap_err().to_string();
    assert_eq!(
        open(Limits::default().with_decoded_bytes(100)),
        "bytes of a model is 368, over the limit of 100 (Limits::decoded_bytes)"
    );
    assert_eq!(
        open(Limits::default().with_tensors(2)),
        "tensors of the model is 3, over the limit of 2 (Limits::tensors)"
    );
    assert_eq!(
        open(Limits::default().with_depth(2)),
        "model has tables nested deeper than the limit of 2 (Limits::depth)"
    );
}

/// A file that has no bytes where it says so takes no memory for them.
#[test]
fn sparse_files_are_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.circle");
    fs::write(&path, &models()[0]).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    if file.set_len(1 << 40).is_err() {
        return;
    }
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.source().len(), 1 << 40);
    assert_eq!(reader.model().subgraphs.len(), 1);
    drop(Source::open(&path).unwrap());
}

/// Returns the model of a file with what is set in it.
fn written(set: impl FnOnce(&mut Model)) -> Reader {
    let mut model = ModelBuilder::new(Schema::Circle);
    model.subgraph("main").finish();
    let mut model = model.finish();
    set(&mut model);
    Reader::from_bytes(model.to_bytes().unwrap()).unwrap()
}

/// Makes sure that a check takes no more than seconds; each of these took minutes once.
#[track_caller]
fn checks_soon(reader: &Reader) {
    let start = Instant::now();
    assert!(!reader.diagnoses().is_empty());
    assert!(start.elapsed().as_secs() < 15, "{:?}", start.elapsed());
}

#[test]
fn many_signatures_of_many_inputs() {
    checks_soon(&written(|model| {
        model.subgraphs[0].inputs = (0..50_000).collect();
        model.signatures = vec![Signature::default(); 50_000];
    }));
}

#[test]
fn many_graphs_and_buffers_in_other_files() {
    checks_soon(&written(|model| {
        model.schema = Schema::Tflite;
        model.external_buffers = vec![ExternalBuffer::default(); 30_000];
        model.subgraphs = vec![model.subgraphs[0].clone(); 30_000];
    }));
}

#[test]
fn many_operators_of_a_long_name() {
    checks_soon(&written(|model| {
        model.operator_codes.push(OperatorCode::custom("n".repeat(32 << 20)));
        model.subgraphs[0].operators = vec![Operator::default(); 20_000];
    }));
}

#[test]
fn large_options_past_the_end() {
    let reader = written(|model| {
        model.operator_codes.push(OperatorCode::custom("x"));
        model.subgraphs[0].operators.push(Operator::default());
    });
    let mut model = reader.model().clone();
    let operator = &mut model.subgraphs[0].operators[0];
    (operator.large_custom_options_offset, operator.large_custom_options_size) = (8, 32);
    let bytes = Writer::new(Vec::new(), &model).origin(&reader).finish().unwrap();
    let (len, start) = (bytes.len() - 1, bytes.len() - 32);
    let found = |bytes: &[u8]| {
        let found = Reader::from_bytes(bytes.to_vec()).unwrap().diagnoses();
        let of = found.into_iter().find(|found| found.finding.rule == "model/large-custom-options");
        of.map(|found| (found.finding.severity, found.finding.message)).unwrap()
    };
    let message = "has custom options outside of the tables, where onert does not look";
    assert_eq!(found(&bytes), (Severity::Warning, message.to_owned()));
    let message = format!("needs 32 bytes of options at byte {start} of a file of {len} bytes");
    assert_eq!(found(&bytes[..len]), (Severity::Error, message));
}

#[test]
fn metadata_of_graphs_that_there_are_not() {
    let reader = written(|model| model.subgraphs[0].debug_metadata_index = 7);
    let message = "has metadata 7, but the model has 0";
    assert!(reader.diagnoses().iter().any(|found| found.finding.message == message));
}
