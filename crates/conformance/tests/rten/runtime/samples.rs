//! The samples, as the converter wrote them and as we write what we read of them.

use std::{fs, path::Path};

use rten_format::{
    Attributes, ConstantData, ConstantDataType, Graph, Header, NodeKind, Reader, Tensor,
    tensor_core::Extent,
};
use test_support::files;

use super::client::{file_runs_like, load_both_ways, runs_like};

/// Calls `check` with every sample, and with the name of what it computes where that is known.
fn for_each_sample(mut check: impl FnMut(&Path, Option<&str>)) {
    for path in files("rten/valid", "rten") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (model, _) = name.split_once('.').unwrap();
        let is_known = path.with_file_name(format!("{model}.run.json")).exists();
        // Nothing can be said of what the operators of random numbers give.
        assert_eq!(is_known, model != "random_ops");
        check(&path, is_known.then_some(model));
    }
}

/// Returns what we read of a file, as a file of version 1: all constants are in the model data.
fn rewritten(reader: &Reader) -> Vec<u8> {
    let mut model = reader.model().clone();
    let mut tensors = reader.tensors();
    move_into(&mut model.graph, &mut tensors);
    assert_eq!(tensors.len(), 0);
    model.to_bytes().unwrap()
}

/// Gives the constants of a graph and of those in it their elements, which come in the same order.
fn move_into<'r>(graph: &mut Graph, tensors: &mut impl Iterator<Item = Tensor<'r>>) {
    for node in &mut graph.nodes {
        match &mut node.kind {
            NodeKind::Constant(constant) => {
                let tensor = tensors.next().unwrap();
                assert_eq!(tensor.name(), node.name.as_deref());
                let bytes = tensor.bytes().unwrap();
                if constant.data_offset.take().is_some() {
                    constant.data = Some(match constant.dtype.unwrap() {
                        ConstantDataType::Float32 => ConstantData::Float(bytes),
                        ConstantDataType::Int32 => ConstantData::Int32(bytes),
                        ConstantDataType::Int8 => ConstantData::Int8(bytes),
                        ConstantDataType::UInt8 => ConstantData::UInt8(bytes),
                        other => panic!("{other:?}"),
                    });
                }
            }
            NodeKind::Operator(operator) => {
                let (first, second) = match &mut operator.attributes {
                    Some(Attributes::If(table)) => {
                        (table.then_branch.as_deref_mut(), table.else_branch.as_deref_mut())
                    }
                    Some(Attributes::Loop(table)) => (table.body.as_deref_mut(), None),
                    _ => continue,
                };
                for graph in first.into_iter().chain(second) {
                    move_into(graph, tensors);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn samples_give_their_outputs() {
    for_each_sample(|path, model| match model {
        Some(model) => file_runs_like(path, model),
        None => drop(load_both_ways(path)),
    });
}

#[test]
fn rewritten_samples_give_the_same() {
    for_each_sample(|path, model| {
        let file = rewritten(&Reader::open(path).unwrap());
        let reader = Reader::from_bytes(file.clone()).unwrap();
        assert!(reader.validate().is_valid(), "{path:?}");
        if let Some(model) = model {
            runs_like(&file, model);
        }
    });
}

/// A header in front of version 1 makes version 2.
#[test]
fn wrapped_samples_give_the_same() {
    for_each_sample(|path, model| {
        let reader = Reader::open(path).unwrap();
        let (None, Some(model)) = (reader.header(), model) else { return };
        let model_data = fs::read(path).unwrap();
        let extent = Extent::new(Header::LEN, model_data.len() as u64).unwrap();
        let header = Header { model_data: extent, tensor_data_offset: extent.end() };
        let file = [header.to_bytes(), model_data].concat();
        runs_like(file, model);
    });
}
