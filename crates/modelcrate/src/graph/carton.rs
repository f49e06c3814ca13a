//! Graphs of cartons: the runner, what it takes and what it gives.

use carton_format::{Reader, TensorSpec};
use serde_json::json;

use super::{Family, Graph, Node, Subgraph, Value};
use crate::Result;

pub(super) fn graph(reader: &Reader) -> Result<Graph> {
    let description = reader.description()?;
    let mut values: Vec<Value> = Vec::new();
    let mut ports = |specs: Option<&[TensorSpec]>| {
        let start = values.len();
        values.extend(specs.unwrap_or_default().iter().map(|spec| {
            let shape = Some(spec.shape.clone());
            Value::new(Some(&spec.name), Some(spec.dtype.to_string()), shape)
        }));
        (start..values.len()).collect::<Vec<_>>()
    };
    let (inputs, outputs) =
        (ports(description.inputs.as_deref()), ports(description.outputs.as_deref()));
    let runner = &description.runner;
    let mut node = Node::new(&runner.name).named(description.model_name.as_deref());
    node.group.clear();
    node.family = Family::Group;
    node.inputs = inputs.iter().copied().map(Some).collect();
    node.outputs = outputs.iter().copied().map(Some).collect();
    let version = runner.required_framework_version.as_str();
    node.attributes.insert("required_framework_version".to_owned(), json!(version));
    let name = description.model_name.clone().unwrap_or_default();
    let main = Subgraph { name, inputs, outputs, nodes: vec![node], values };
    Ok(Graph { subgraphs: vec![main] })
}
