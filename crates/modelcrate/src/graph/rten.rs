//! Graphs of RTen models.

use std::collections::{BTreeMap, HashSet};

use rten_format::{
    AttributeValue, Attributes, Dim, NodeKind, Operator, Reader, Tensor,
    topology::{Scope, Topology},
};
use serde_json::{Value as Json, json};
use tensor_core::symbolic::{self, SymbolicShape};

use super::{Constant, Graph, Node, Outer, Subgraph, Value, float};
use crate::summary::spelled;

/// Where the nodes of a file went: constants and values to the values of a graph, operators to its
/// nodes.
type Positions = Vec<Option<usize>>;

pub(super) fn graph(reader: &Reader) -> Graph {
    let topology = Topology::of(reader.model());
    let positions: Vec<Positions> = topology.scopes().iter().map(positions).collect();
    let at = |scope: usize, id: u32| {
        let scope = positions.get(scope)?;
        *scope.get(usize::try_from(id).ok()?)?
    };
    let mut subgraphs: Vec<Subgraph> = Vec::new();
    for (index, scope) in topology.scopes().iter().enumerate() {
        let captures: HashSet<u32> = scope.graph().captures.iter().copied().collect();
        let mut subgraph = Subgraph { name: scope.path().to_owned(), ..Subgraph::default() };
        for (id, node) in (0..).zip(&scope.graph().nodes) {
            let name = node.name.as_deref();
            match &node.kind {
                NodeKind::Operator(operator) => {
                    let ids = |ids: &[Option<u32>]| {
                        ids.iter().map(|id| value_at(scope, (*id)?, |id| at(index, id))).collect()
                    };
                    let mut drawn = Node::new(operator.operator_type.to_string()).named(name);
                    drawn.id = id as usize;
                    drawn.inputs = ids(&operator.inputs);
                    drawn.outputs = ids(&operator.outputs);
                    drawn.attributes = attributes(operator);
                    subgraph.nodes.push(drawn);
                }
                NodeKind::Constant(constant) => {
                    let dims = constant.shape.iter().map(|dim| symbolic::Dim::Fixed((*dim).into()));
                    let inline = constant.data.as_ref().filter(|_| constant.data_offset.is_none());
                    let dtype = match inline {
                        Some(data) => data.dtype(),
                        None => constant.dtype.and_then(rten_format::ConstantDataType::dtype),
                    };
                    let dtype = dtype.map(|dtype| dtype.to_string());
                    let shape = SymbolicShape::Dims(dims.collect());
                    let mut value = Value::new(name, dtype, Some(shape));
                    value.id = id as usize;
                    value.constant = Some(Constant::default());
                    subgraph.values.push(value);
                }
                NodeKind::Value(value) => {
                    let dtype = value.dtype.map(|of| spelled(of.dtype(), &of));
                    let shape = value.shape.as_deref().map(symbolic);
                    let mut value = Value::new(name, dtype, shape);
                    value.id = id as usize;
                    let source = captures.contains(&id).then(|| topology.capture_source(index, id));
                    value.outer = source.flatten().and_then(|(subgraph, id)| {
                        Some(Outer { subgraph, value: at(subgraph, id)? })
                    });
                    subgraph.values.push(value);
                }
                _ => {}
            }
        }
        let lists = [&scope.graph().inputs, &scope.graph().outputs];
        [subgraph.inputs, subgraph.outputs] = lists.map(|ids| {
            ids.iter().filter_map(|id| value_at(scope, *id, |id| at(index, id))).collect()
        });
        subgraphs.push(subgraph);
    }
    for tensor in reader.tensors() {
        if let Some(at) = at(tensor.scope(), tensor.node())
            && let Some(graph) = subgraphs.get_mut(tensor.scope())
            && let Some(value) = graph.values.get_mut(at)
        {
            value.constant = Some(Constant { bytes: byte_len(tensor), text: None });
        }
    }
    constants_of_bodies(&mut subgraphs);
    for (index, scope) in topology.scopes().iter().enumerate() {
        if let Some((parent, operator)) = scope.parent()
            && let Some(at) = at(parent, operator)
            && let Some(node) = subgraphs.get_mut(parent).and_then(|graph| graph.nodes.get_mut(at))
        {
            node.bodies.push(index);
        }
    }
    Graph { subgraphs }
}

/// Gives what a body takes from outside what is known of it there, where that is a constant.
fn constants_of_bodies(subgraphs: &mut [Subgraph]) {
    let constant = |outer: Outer| {
        let value = subgraphs.get(outer.subgraph)?.values.get(outer.value)?;
        value.constant.is_some().then(|| value.clone())
    };
    let bodies = subgraphs.iter().map(|body| body.values.iter());
    let known: Vec<Vec<Option<Value>>> =
        bodies.map(|values| values.map(|value| constant(value.outer?)).collect()).collect();
    for (value, known) in
        subgraphs.iter_mut().zip(known).flat_map(|(body, known)| body.values.iter_mut().zip(known))
    {
        if let Some(Value { dtype, shape, constant, .. }) = known {
            (value.dtype, value.shape, value.constant) = (dtype, shape, constant);
        }
    }
}

fn positions(scope: &Scope<'_>) -> Positions {
    let (mut nodes, mut values) = (0_usize, 0_usize);
    let next = |count: &mut usize| {
        let position = *count;
        *count = count.saturating_add(1);
        Some(position)
    };
    let position = |node: &rten_format::Node| match &node.kind {
        NodeKind::Operator(_) => next(&mut nodes),
        NodeKind::Constant(_) | NodeKind::Value(_) => next(&mut values),
        _ => None,
    };
    scope.graph().nodes.iter().map(position).collect()
}

/// Returns where a value or constant went; `None` for what is neither.
fn value_at(scope: &Scope<'_>, id: u32, position: impl Fn(u32) -> Option<usize>) -> Option<usize> {
    let node = scope.graph().nodes.get(usize::try_from(id).ok()?)?;
    match node.kind {
        NodeKind::Constant(_) | NodeKind::Value(_) => position(id),
        _ => None,
    }
}

fn byte_len(tensor: Tensor<'_>) -> Option<u64> {
    tensor.info().ok()?.byte_len().ok()
}

fn symbolic(dims: &[Dim]) -> SymbolicShape {
    let dims = dims.iter().map(|dim| match dim {
        Dim::Fixed(elements) => symbolic::Dim::Fixed(u64::from(*elements)),
        Dim::Symbol(symbol) => symbolic::Dim::Symbol(symbol.clone()),
    });
    SymbolicShape::Dims(dims.collect())
}

fn attributes(operator: &Operator) -> BTreeMap<String, Json> {
    let fields = operator.attributes.iter().flat_map(Attributes::fields);
    let set = fields.filter(|(_, value)| !matches!(value, AttributeValue::Absent));
    set.map(|(name, value)| (name.to_owned(), attribute(value))).collect()
}

fn attribute(value: AttributeValue<'_>) -> Json {
    match value {
        AttributeValue::Absent => Json::Null,
        AttributeValue::Bool(value) => json!(value),
        AttributeValue::Int(value) => json!(value),
        AttributeValue::Float(value) => float(value),
        AttributeValue::Enum { name: Some(name), .. } => json!(name),
        AttributeValue::Enum { name: None, code, .. } => json!(code),
        AttributeValue::Ints(values) => json!(values),
        AttributeValue::Uints(values) => json!(values),
        AttributeValue::Text(text) => json!(text),
        // Its operators are in a graph of their own.
        AttributeValue::Graph(_) => json!("graph"),
        AttributeValue::Unknown(table) => json!({ "unknown": table.tag() }),
        other => json!(format!("{other:?}")),
    }
}
