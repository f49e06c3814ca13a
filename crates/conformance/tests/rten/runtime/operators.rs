//! What our table says of each operator is what the runtime does.

use std::collections::HashMap;

use rten_format::{
    Attributes, AttributesUse, Graph, Model, Node, Operator, OperatorType, Reader, Value,
    attributes::{IsInfAttrs, TriluAttrs},
    topology::Topology,
};
use test_support::files;

use super::client::load;

/// Returns attributes of each operator that has some, as a sample has them.
fn attributes() -> HashMap<OperatorType, Attributes> {
    let mut attributes = HashMap::new();
    for path in files("rten/valid", "rten") {
        let reader = Reader::open(path).unwrap();
        let topology = Topology::of(reader.model());
        for node in topology.scopes().iter().flat_map(|scope| &scope.graph().nodes) {
            if let rten_format::NodeKind::Operator(operator) = &node.kind
                && let Some(found) = &operator.attributes
            {
                attributes.entry(operator.operator_type).or_insert_with(|| found.clone());
            }
        }
    }
    attributes
}

/// Loads a model of one operator with so many inputs.
fn load_one(
    operator_type: OperatorType,
    attributes: Option<Attributes>,
    inputs: u32,
) -> Result<(), String> {
    let mut nodes: Vec<Node> =
        (0..=inputs).map(|id| Node::named(format!("value{id}"), Value::default())).collect();
    let operator = Operator {
        operator_type,
        attributes,
        inputs: (0..inputs).map(Some).collect(),
        outputs: vec![Some(inputs)],
    };
    nodes.push(Node::named("operator", operator));
    let (inputs, outputs) = ((0..inputs).collect(), vec![inputs]);
    let graph = Graph { nodes, inputs, outputs, captures: vec![] };
    let model = Model { graph, metadata: None };
    load(model.to_bytes().unwrap()).map(drop)
}

fn refused(reason: &str) -> Result<(), String> {
    Err(format!("in node \"operator\": operator error: {reason}"))
}

#[test]
fn inputs_up_to_the_maximum() {
    let attributes = attributes();
    for &operator in OperatorType::ALL {
        let load = |inputs| load_one(operator, attributes.get(&operator).cloned(), inputs);
        assert_eq!(load(0), Ok(()), "{operator}");
        match operator.info().unwrap().max_inputs {
            Some(max) => {
                assert_eq!(load(max), Ok(()), "{operator}");
                let one_more = max + 1;
                let reason = format!("operator has {one_more} inputs but maximum is {max}");
                assert_eq!(load(one_more), refused(&reason), "{operator}");
            }
            None => assert_eq!(load(100), Ok(()), "{operator}"),
        }
    }
}

#[test]
fn attributes_that_are_required() {
    let attributes = attributes();
    for &operator in OperatorType::ALL {
        let usage = operator.info().unwrap().attributes;
        let expected = match usage {
            AttributesUse::None | AttributesUse::Optional(_) => Ok(()),
            AttributesUse::Required(_) => refused("attributes are missing"),
        };
        assert_eq!(load_one(operator, None, 0), expected, "{operator}");
        let (first, second) = (TriluAttrs::default().into(), IsInfAttrs::default().into());
        let is_first = usage.attributes_type() == Some(Attributes::attributes_type(&first));
        let wrong = if is_first { second } else { first };
        assert_eq!(load_one(operator, Some(wrong), 0), expected, "{operator}");
        let Some(right) = usage.attributes_type() else { continue };
        let sample = attributes.get(&operator).map(Attributes::attributes_type);
        if usage.is_required() || sample.is_some() {
            assert_eq!(sample, Some(right), "{operator}");
        }
    }
}

#[test]
fn unknown_operators() {
    for code in 0..=u8::MAX {
        let operator = OperatorType::from_code(code);
        if operator.info().is_none() {
            assert_eq!(load_one(operator, None, 0), refused("operator not supported"), "{code}");
        }
    }
}
