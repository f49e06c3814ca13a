//! Constants that are used as one element type alone, and are stored as that.

use std::collections::HashMap;

use crate::{
    NodeKind, OperatorType,
    topology::node,
    types::{Element, Kind, Scopes, Slot, rule},
};

/// What all readers of a 32-bit constant of the format want it to be.
#[derive(Debug, Default)]
pub(super) struct Demands(HashMap<(usize, u32), Element>);

impl Demands {
    pub(super) fn of(scopes: &Scopes<'_>) -> Self {
        let mut demands = Self::default();
        for (index, scope) in scopes.topology().scopes().iter().enumerate() {
            for id in &scope.graph().outputs {
                demands.add(scopes, index, *id, Element::Int64);
            }
            for node in &scope.graph().nodes {
                let NodeKind::Operator(operator) = &node.kind else { continue };
                for (at, id) in operator.inputs.iter().enumerate() {
                    if let Some(id) = id {
                        demands.add(scopes, index, *id, wanted(operator.operator_type, at));
                    }
                }
            }
        }
        demands
    }

    /// Returns what a constant is stored as.
    pub(super) fn element(&self, scope: usize, id: u32, kind: Kind) -> Element {
        let wanted = self.0.get(&(scope, id)).copied();
        wanted.filter(|_| kind == Kind::Int).unwrap_or(kind.widest())
    }

    fn add(&mut self, scopes: &Scopes<'_>, scope: usize, id: u32, element: Element) {
        let is_value = scopes
            .graph(scope)
            .and_then(|graph| node(graph, id))
            .is_some_and(|node| matches!(node.kind, NodeKind::Value(_)));
        let source = if is_value { scopes.topology().capture_source(scope, id) } else { None };
        let wanted = self.0.entry(source.unwrap_or((scope, id))).or_insert(element);
        if *wanted != element {
            *wanted = Element::Int64;
        }
    }
}

/// Returns what an operator takes best of the integers.
fn wanted(operator: OperatorType, input: usize) -> Element {
    let elements = rule(operator).and_then(|rule| match rule.input(input)? {
        Slot::Is(element) => Some(element),
        Slot::Of(at) | Slot::Given(at) => rule.elements(at).preferred(Kind::Int),
        Slot::Sequence(_) | Slot::Same(_) => None,
    });
    elements.unwrap_or(Element::Int64)
}
