//! What is made of a file has no errors that the file has not.

use std::{collections::BTreeMap, fs, sync::OnceLock};

use proptest::{
    collection::vec,
    option,
    prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest},
    sample::{Index, select},
};
use rten_format::{
    Constant, ConstantData, ConstantDataType, Dim, Editor, Model, NodeKind, Operator, OperatorType,
    Reader, Rewrite, Value, WriteOptions,
    tensor_core::{Report, Severity, output::Durability},
};
use test_support::files;

/// One change of a model, which may be refused.
#[derive(Clone, Debug)]
enum Change {
    Rename(usize, u32, &'static str),
    Outputs(Vec<u32>),
    Dim(u32, usize, Dim),
    Describe(String),
    Extract(Vec<u32>, Vec<u32>),
    /// Inputs, outputs and captures, whatever they are.
    Lists([Vec<u32>; 3]),
    /// What a node is, whatever reads it.
    Node(usize, NodeKind),
}

impl Change {
    fn any() -> impl Strategy<Value = Self> {
        // Files of the tests have few nodes; some ids lead nowhere.
        let id = || 0..24_u32;
        let ids = || vec(id(), 0..3);
        let name = select(vec!["", "x", "y", "h1", "probs", "condition", "inner_y", "new"]);
        let dim = prop_oneof![any::<u32>().prop_map(Dim::Fixed), Just(Dim::from("n"))];
        prop_oneof![
            (0..4_usize, id(), name).prop_map(|(scope, id, name)| Self::Rename(scope, id, name)),
            ids().prop_map(Self::Outputs),
            (id(), 0..3_usize, dim).prop_map(|(id, axis, dim)| Self::Dim(id, axis, dim)),
            any::<String>().prop_map(Self::Describe),
            (ids(), ids()).prop_map(|(inputs, outputs)| Self::Extract(inputs, outputs)),
            (ids(), ids(), ids()).prop_map(|(a, b, c)| Self::Lists([a, b, c])),
            (0..16_usize, Self::kind()).prop_map(|(at, kind)| Self::Node(at, kind)),
        ]
    }

    fn kind() -> impl Strategy<Value = NodeKind> {
        let ids = || vec(option::of(0..16_u32), 0..3);
        let operator = (any::<u8>(), ids(), ids()).prop_map(|(code, inputs, outputs)| {
            let operator_type = OperatorType::from_code(code);
            Operator { operator_type, attributes: None, inputs, outputs }.into()
        });
        let constant = Constant {
            data: ConstantData::new(ConstantDataType::UInt8, vec![0]),
            ..Constant::described([1; 65], ConstantDataType::UInt8)
        };
        let others = [NodeKind::Missing, Value::default().into(), constant.into()];
        prop_oneof![operator, select(others.to_vec())]
    }

    fn apply(self, model: &mut Model) {
        let _ = match self {
            Self::Rename(scope, id, name) => model.rename(scope, id, name),
            Self::Outputs(ids) => model.set_outputs(&ids),
            Self::Dim(id, axis, dim) => model.set_dim(id, axis, dim),
            Self::Describe(text) => {
                model.metadata.get_or_insert_default().description = Some(text);
                Ok(())
            }
            Self::Extract(inputs, outputs) => {
                model.extract(&inputs, &outputs).map(|part| *model = part)
            }
            Self::Lists(lists) => {
                let graph = &mut model.graph;
                [graph.inputs, graph.outputs, graph.captures] = lists;
                Ok(())
            }
            Self::Node(at, kind) => {
                if let Some(node) = model.graph.nodes.get_mut(at) {
                    node.kind = kind;
                }
                Ok(())
            }
        };
    }
}

/// Returns small files of either version, sound or not, and a model with graphs in graphs.
fn sources() -> &'static [Vec<u8>] {
    static SOURCES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let paths = ["rten/valid", "rten/invalid"].map(|folder| files(folder, "rten")).concat();
        let bytes = paths.iter().map(|path| fs::read(path).unwrap());
        let open = bytes
            .filter(|bytes| bytes.len() < 1 << 16 && Reader::from_bytes(bytes.clone()).is_ok());
        open.chain([super::edit::nested().to_bytes().unwrap()]).collect()
    })
}

/// Counts errors by their rules.
fn errors(report: &Report) -> BTreeMap<String, usize> {
    let mut errors = BTreeMap::new();
    for found in report.findings().iter().filter(|found| found.severity == Severity::Error) {
        *errors.entry(found.rule.to_string()).or_default() += 1;
    }
    errors
}

fn is_no_worse(after: &Report, before: &Report) -> bool {
    let before = errors(before);
    errors(after).iter().all(|(rule, count)| before.get(rule).is_some_and(|old| count <= old))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn changes_add_no_errors(source in any::<Index>(), changes in vec(Change::any(), 1..4)) {
        let bytes = source.get(sources());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.rten");
        fs::write(&path, bytes).unwrap();
        let options = WriteOptions::default().durability(Durability::Cached);
        let mut editor = Editor::open_with(&path, options).unwrap();
        let (before, old) = (editor.reader().lint(), editor.reader().clone());
        changes.into_iter().for_each(|change| change.apply(editor.model_mut()));
        let model = editor.model().clone();
        // What has no elements, or fields that are not known, is refused.
        if editor.commit().is_ok() {
            let after = Reader::open(&path).unwrap().lint();
            prop_assert!(is_no_worse(&after, &before), "{after:?}");
        }
        let rewrite = || Rewrite::new(&old).model(model.clone());
        for written in [rewrite().write_v1(Vec::new()), rewrite().write_v2(Vec::new())] {
            let Ok(written) = written else { continue };
            let after = Reader::from_bytes(written).unwrap().validate();
            prop_assert!(is_no_worse(&after, &before), "{after:?}");
        }
    }
}
