//! What graphs are made of, one operator after the other.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tensor_core::text::short;

use crate::AnyReader;

/// An operator of a graph. Names that are long are cut.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct OperatorSummary {
    /// Which graph it is in, as the format calls it.
    pub graph: String,
    /// Its name, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it computes.
    pub operator: String,
    /// The names of what it reads; `None` for an input that is left out.
    pub inputs: Vec<Option<String>>,
    /// The names of what it makes; `None` for an output that nothing reads.
    pub outputs: Vec<Option<String>>,
    /// How it computes, by the names that the format has for that.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
}

impl AnyReader {
    /// Returns the operators of all graphs, in the order of the file: those of `RTen`, Circle and
    /// TFLite models and of the models in packages that can be opened; none of other formats.
    #[must_use]
    pub fn operators(&self) -> Vec<OperatorSummary> {
        match self {
            #[cfg(feature = "circle")]
            Self::Circle(reader) => circle::operators(reader, ""),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(reader) => {
                let (mut operators, mut seen) = (Vec::new(), std::collections::HashSet::new());
                // A manifest may name one model without end.
                for file in reader.models().filter(|file| seen.insert(file.path())) {
                    // What cannot be opened is in the findings of a summary.
                    let Ok(model) = file.open() else { continue };
                    let path = format!("{}/", short(file.path()));
                    operators.extend(circle::operators(model, &path));
                }
                operators
            }
            #[cfg(feature = "rten")]
            Self::Rten(reader) => rten::operators(reader),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => Vec::new(),
        }
    }
}

/// Returns what something is called: by its name, or else by its place.
fn called(name: Option<&str>, place: impl std::fmt::Display) -> String {
    match name {
        Some(name) if !name.is_empty() => short(name).into_owned(),
        _ => format!("#{place}"),
    }
}

/// Returns a number as JSON has it; texts for those that it lacks.
fn float(value: f32) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

#[cfg(feature = "circle")]
mod circle {
    use circle_format::{
        Reader,
        model::{BuiltinOptions, Operator, Subgraph, options::OptionValue},
    };
    use tensor_core::digest::Algorithm;

    use super::{BTreeMap, OperatorSummary, Value, called, float, json};

    pub(super) fn operators(reader: &Reader, before: &str) -> Vec<OperatorSummary> {
        let graphs = reader.model().subgraphs.iter().enumerate();
        graphs.flat_map(|(index, graph)| of_graph(reader, graph, before, index)).collect()
    }

    fn of_graph(
        reader: &Reader,
        graph: &Subgraph,
        before: &str,
        index: usize,
    ) -> Vec<OperatorSummary> {
        let name = format!("{before}{}", called(graph.name.as_deref(), index));
        let tensor = |id: &i32| {
            // -1 is one that is left out.
            let id = u32::try_from(*id).ok()?;
            let tensor = usize::try_from(id).ok().and_then(|id| graph.tensors.get(id));
            Some(called(tensor.and_then(|tensor| tensor.name.as_deref()), id))
        };
        let describe = |operator: &Operator| {
            let code = reader.model().operator_code(operator);
            OperatorSummary {
                graph: name.clone(),
                name: None,
                operator: code.map_or_else(|| "?".to_owned(), |code| called(Some(&code.name()), 0)),
                inputs: operator.inputs.iter().map(tensor).collect(),
                outputs: operator.outputs.iter().map(tensor).collect(),
                attributes: attributes(operator),
            }
        };
        graph.operators.iter().map(describe).collect()
    }

    fn attributes(operator: &Operator) -> BTreeMap<String, Value> {
        let first = operator.options.iter().flat_map(BuiltinOptions::fields);
        let second = operator.options_2.iter().flat_map(|options| options.fields());
        let fields = first.chain(second).map(|(name, value)| (name.to_owned(), option(value)));
        let custom = operator.custom_options.iter().map(|bytes| {
            let digest = Algorithm::Sha256.digest(bytes).to_string();
            ("custom_options".to_owned(), json!(digest))
        });
        fields.chain(custom).collect()
    }

    fn option(value: OptionValue<'_>) -> Value {
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
}

#[cfg(feature = "rten")]
mod rten {
    use rten_format::{
        AttributeValue, Attributes, Graph, NodeKind, Operator, Reader,
        topology::{Scope, Topology},
    };

    use super::{BTreeMap, OperatorSummary, Value, called, float, json};

    pub(super) fn operators(reader: &Reader) -> Vec<OperatorSummary> {
        let topology = Topology::of(reader.model());
        topology.scopes().iter().flat_map(of_scope).collect()
    }

    fn of_scope(scope: &Scope<'_>) -> Vec<OperatorSummary> {
        let nodes = scope.graph().nodes.iter();
        let operators = nodes.filter_map(|node| match &node.kind {
            NodeKind::Operator(operator) => Some((node.name.as_deref(), operator)),
            _ => None,
        });
        operators.map(|(name, operator)| describe(scope, name, operator)).collect()
    }

    fn describe(scope: &Scope<'_>, name: Option<&str>, operator: &Operator) -> OperatorSummary {
        let ids = |ids: &[Option<u32>]| {
            ids.iter().map(|id| id.map(|id| node(scope.graph(), id))).collect()
        };
        let fields = operator.attributes.iter().flat_map(Attributes::fields);
        let set = fields.filter(|(_, value)| !matches!(value, AttributeValue::Absent));
        let attributes: BTreeMap<String, Value> =
            set.map(|(name, value)| (name.to_owned(), attribute(value))).collect();
        OperatorSummary {
            graph: scope.path().to_owned(),
            name: name.filter(|name| !name.is_empty()).map(|name| called(Some(name), 0)),
            operator: operator.operator_type.to_string(),
            inputs: ids(&operator.inputs),
            outputs: ids(&operator.outputs),
            attributes,
        }
    }

    fn node(graph: &Graph, id: u32) -> String {
        let node = usize::try_from(id).ok().and_then(|id| graph.nodes.get(id));
        called(node.and_then(|node| node.name.as_deref()), id)
    }

    fn attribute(value: AttributeValue<'_>) -> Value {
        match value {
            AttributeValue::Absent => Value::Null,
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
}
