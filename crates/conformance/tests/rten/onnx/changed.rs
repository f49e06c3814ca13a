//! Files that someone has changed: whatever is exported has types that fit.

use std::{collections::HashSet, fs};

use conformance::python::Client;
use rten_format::{Reader, onnx::Export};
use serde_json::Value as Json;

use super::NO_SHAPE;

/// Files of which changes are exported; together they have every operator.
const FILES: [&str; 7] = [
    "all_ops.v1",
    "control_flow.v2",
    "convnet.v1",
    "dtypes.v1",
    "mlp.v1",
    "new_ops.v1",
    "quantized.v1",
];

/// How many different exports of changes of each file are looked at.
const EXPORTS: usize = 40;

/// Random numbers that are the same each time: xorshift with 64 bits.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

#[test]
fn types_fit_in_whatever_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(0x5274_656e);
    for name in FILES {
        let path = test_support::testdata("rten/valid").join(format!("{name}.rten"));
        let bytes = fs::read(path).unwrap();
        let mut exports = HashSet::new();
        while exports.len() < EXPORTS {
            let mut changed = bytes.clone();
            for _ in 0..2 {
                let at = numbers.below(changed.len());
                let by = [1, 255, 2, 128][numbers.below(4)];
                changed[at] = changed[at].wrapping_add(by);
            }
            let Ok(reader) = Reader::from_bytes(changed) else { continue };
            let Ok(export) = Export::new(&reader).to_bytes() else { continue };
            let target = folder.path().join(format!("{name}.{}.onnx", exports.len()));
            fs::write(target, &export).unwrap();
            exports.insert(export);
        }
    }
    let Some(found) = Client::ONNX_RUNTIME.run("onnx_check.py", &[folder.path()]) else { return };
    // An axis or a shape may have become one that its operator does not take, and a shape may be
    // gone, which the report of an export warns of.
    let is_of_types = |reason: &Json| {
        let reason = reason.as_str().unwrap();
        let is_of_shapes = reason.contains("ShapeInferenceError") && !reason.contains("Type");
        !is_of_shapes && reason != NO_SHAPE
    };
    let found: Vec<_> =
        found.as_object().unwrap().iter().filter(|(_, reason)| is_of_types(reason)).collect();
    assert!(found.is_empty(), "{found:?}");
}
