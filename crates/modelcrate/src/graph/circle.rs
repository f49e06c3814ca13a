//! Graphs of Circle and TFLite models.

use std::collections::{BTreeMap, HashMap};

use circle_format::{
    Reader,
    model::{self, BuiltinOptions, Operator, options::OptionValue},
};
use serde_json::{Value as Json, json};
use tensor_core::{
    digest::Algorithm,
    symbolic::{Dim, SymbolicShape},
};

use super::{Constant, Graph, Node, Subgraph, Value, float, group_of};
use crate::summary::spelled;

pub(super) fn graph(reader: &Reader) -> Graph {
    let constants: HashMap<(u32, u32), Constant> = reader
        .tensors()
        .map(|tensor| {
            let bytes = tensor.stored_extent().ok().map(tensor_core::Extent::len);
            ((tensor.subgraph(), tensor.index()), Constant { bytes, text: None })
        })
        .collect();
    let graphs = (0..).zip(&reader.model().subgraphs);
    Graph { subgraphs: graphs.map(|(at, graph)| subgraph(reader, &constants, at, graph)).collect() }
}

fn subgraph(
    reader: &Reader,
    constants: &HashMap<(u32, u32), Constant>,
    index: u32,
    graph: &model::Subgraph,
) -> Subgraph {
    let values = (0..).zip(&graph.tensors).map(|(at, tensor)| {
        let mut value = value(tensor);
        value.id = at as usize;
        value.constant = constants.get(&(index, at)).cloned();
        value
    });
    let values: Vec<Value> = values.collect();
    // -1 is one that is left out.
    let position = |id: &i32| usize::try_from(*id).ok().filter(|id| *id < values.len());
    let codes = reader.model().operator_codes.iter();
    let codes: Vec<Node> = codes.map(|code| Node::new(code.name())).collect();
    let node = |(id, operator): (usize, &Operator)| {
        let code = usize::try_from(operator.opcode_index).ok().and_then(|code| codes.get(code));
        let mut node = code.cloned().unwrap_or_else(|| Node::new("?"));
        node.id = id;
        node.inputs = operator.inputs.iter().map(position).collect();
        node.outputs = operator.outputs.iter().map(position).collect();
        let made = node.outputs.iter().flatten().next().and_then(|at| values.get(*at));
        node.group = made.and_then(|value| value.name.as_deref()).map(group_of).unwrap_or_default();
        node.attributes = attributes(operator);
        node.bodies = bodies(&node.attributes, reader.model().subgraphs.len());
        node
    };
    let nodes = graph.operators.iter().enumerate().map(node).collect();
    let [inputs, outputs] =
        [&graph.inputs, &graph.outputs].map(|ids| ids.iter().filter_map(position).collect());
    Subgraph {
        name: graph.name.clone().filter(|name| !name.is_empty()).unwrap_or(format!("#{index}")),
        inputs,
        outputs,
        nodes,
        values,
    }
}

fn value(tensor: &model::Tensor) -> Value {
    let dtype = spelled(tensor.dtype(), &tensor.tensor_type);
    // Where a dimension is unknown, the signature says so.
    let dims = tensor.shape_signature.as_ref().unwrap_or(&tensor.shape).iter();
    let dims = dims.map(|dim| u64::try_from(*dim).map_or(Dim::Any, Dim::Fixed)).collect();
    Value::new(tensor.name.as_deref(), Some(dtype), Some(SymbolicShape::Dims(dims)))
}

/// Returns the graphs that options name.
fn bodies(attributes: &BTreeMap<String, Json>, graphs: usize) -> Vec<usize> {
    let named = attributes.iter().filter(|(key, _)| {
        key.ends_with("subgraph_index") || key.ends_with("subgraph_indices") || *key == "subgraph"
    });
    let indices = named.flat_map(|(_, value)| match value {
        Json::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    });
    let indices = indices.filter_map(|index| usize::try_from(index.as_u64()?).ok());
    indices.filter(|index| *index < graphs).collect()
}

fn attributes(operator: &Operator) -> BTreeMap<String, Json> {
    let first = operator.options.iter().flat_map(BuiltinOptions::fields);
    let second = operator.options_2.iter().flat_map(|options| options.fields());
    let fields = first.chain(second).map(|(name, value)| (name.to_owned(), option(value)));
    let custom = operator.custom_options.iter().map(|bytes| {
        let digest = Algorithm::Sha256.digest(bytes).to_string();
        ("custom_options".to_owned(), json!(digest))
    });
    fields.chain(custom).collect()
}

fn option(value: OptionValue<'_>) -> Json {
    let number = |(name, code): (Option<&'static str>, i64)| match name {
        Some(name) => json!(name),
        None => json!(code),
    };
    match value {
        OptionValue::Bool(value) => json!(value),
        OptionValue::Int(value) => json!(value),
        OptionValue::Float(value) => float(value),
        OptionValue::Number { name, code } => number((name, code)),
        OptionValue::Bools(values) => json!(values),
        OptionValue::Ints(values) => json!(values),
        OptionValue::Floats(values) => values.iter().copied().map(float).collect(),
        OptionValue::Numbers(values) => values.into_iter().map(number).collect(),
        OptionValue::Text(text) => json!(text),
        OptionValue::Bytes(bytes) => json!(Algorithm::Sha256.digest(bytes).to_string()),
        other => json!(format!("{other:?}")),
    }
}
