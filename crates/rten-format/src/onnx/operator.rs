//! Operators as nodes.

use crate::{NodeKind, Operator, OperatorType, Value, topology::node};

use super::{
    attributes,
    element::Element,
    error::{Error, Result},
    lower::{Body, Lowering, Operand},
    proto::{AttributeProto, NodeProto},
    rules::{Rule, Slot, VARIABLES, rule},
};

/// An operator that becomes a node.
pub(super) struct Call<'a> {
    pub(super) id: u32,
    pub(super) operator: &'a Operator,
    pub(super) rule: Rule,
    pub(super) path: String,
    /// Ids of what it makes, and `None` for what nothing reads.
    pub(super) outputs: Vec<Option<u32>>,
}

impl<'a> Lowering<'a> {
    pub(super) fn operator(
        &mut self,
        body: &mut Body,
        id: u32,
        operator: &'a Operator,
    ) -> Result<()> {
        if operator.outputs.iter().all(Option::is_none) {
            // Nothing reads what it makes.
            return Ok(());
        }
        let path = self.scopes.node_path(body.scope, id);
        let code = operator.operator_type.code();
        let unknown = || Error::UnknownOperator { path: path.clone(), code };
        let rule = rule(operator.operator_type).ok_or_else(unknown)?;
        self.opset = self.opset.max(rule.opset_for(operator.inputs.len()));
        let outputs = operator.outputs.clone();
        let call = Call { id, operator, rule, path, outputs };
        match operator.operator_type {
            OperatorType::If => self.branches(body, call),
            OperatorType::Loop => self.iteration(body, call),
            _ => self.plain(body, &call),
        }
    }

    /// Makes the node of an operator without graphs.
    fn plain(&mut self, body: &mut Body, call: &Call<'a>) -> Result<()> {
        let Call { operator, rule, path, .. } = call;
        let attribute = attributes::convert(operator, || path.clone())?;
        let mut operands = self.operands(body.scope, call)?;
        self.adjust(body.scope, call, &mut operands);
        let variables = self.variables(body.scope, call, &operands)?;
        let mut input = Vec::new();
        for (index, operand) in operands.into_iter().enumerate() {
            let slot = rule.input(index);
            input.push(match operand.zip(slot) {
                Some((operand, slot)) => {
                    let element = slot_element(slot, &variables).unwrap_or(operand.element);
                    self.cast(body, &operand, element).name
                }
                None => String::new(),
            });
        }
        self.complete(body, call, &mut input);
        let named = attributes::element(operator);
        let elements = |index| match rule.output(index)? {
            Slot::Given(_) if named.is_some() => named,
            slot => slot_element(slot, &variables),
        };
        self.node(body, call, input, attribute, elements)
    }

    /// Finds out what the type variables of an operator stand for.
    fn variables(
        &self,
        scope: usize,
        call: &Call<'_>,
        operands: &[Option<Operand>],
    ) -> Result<[Option<Element>; VARIABLES]> {
        let mut variables = [None; VARIABLES];
        for (variable, slot) in variables.iter_mut().enumerate() {
            let is_of = |found: Slot| match found {
                Slot::Of(at) | Slot::Sequence(at) | Slot::Same(at) => at == variable,
                Slot::Is(_) | Slot::Given(_) => false,
            };
            let found: Vec<(usize, &Operand)> = operands
                .iter()
                .enumerate()
                .filter(|(index, _)| call.rule.input(*index).is_some_and(is_of))
                .filter_map(|(index, operand)| Some((index, operand.as_ref()?)))
                .collect();
            let elements: Vec<Element> = found.iter().map(|(_, operand)| operand.element).collect();
            let Some((index, first)) = found.first() else {
                *slot = self.made(scope, call, is_of);
                continue;
            };
            let (kind, allowed) = (first.element.kind(), call.rule.elements(variable));
            *slot = Some(allowed.join(&elements, kind).ok_or_else(|| Error::ElementType {
                path: call.path.clone(),
                operator: call.rule.name,
                what: format!("input {index}"),
                found: kind.to_string(),
                expected: allowed.to_string(),
            })?);
        }
        Ok(variables)
    }

    /// Returns what a variable stands for that only outputs have.
    fn made(&self, scope: usize, call: &Call<'_>, is_of: impl Fn(Slot) -> bool) -> Option<Element> {
        let named = attributes::element(call.operator);
        let outputs = call.operator.outputs.iter().enumerate();
        let mut outputs = outputs.filter(|(index, _)| call.rule.output(*index).is_some_and(&is_of));
        let id = outputs.find_map(|(_, id)| *id)?;
        named.or_else(|| Some(self.kinds.kind(scope, id).widest()))
    }

    /// Looks up the inputs of an operator, which are all that it needs.
    pub(super) fn operands(&self, scope: usize, call: &Call<'_>) -> Result<Vec<Option<Operand>>> {
        let Call { operator, rule, path, .. } = call;
        let mut inputs = &operator.inputs[..];
        while let [rest @ .., None] = inputs {
            inputs = rest;
        }
        if let Some(max) = rule.max_inputs().filter(|max| inputs.len() > *max) {
            return Err(Error::TooMany {
                path: path.clone(),
                operator: rule.name,
                what: "inputs",
                found: inputs.len(),
                max,
            });
        }
        let needed = match rule.max_inputs() {
            None if rule.required > 0 => inputs.len().max(rule.required),
            _ => rule.required,
        };
        let missing = (0..needed).find(|index| !inputs.get(*index).is_some_and(Option::is_some));
        if let Some(input) = missing {
            return Err(Error::MissingInput { path: path.clone(), operator: rule.name, input });
        }
        let operands = inputs.iter().map(|id| id.map(|id| self.operand(scope, path, id)));
        operands.map(Option::transpose).collect()
    }

    /// Adds the node of an operator.
    pub(super) fn node(
        &mut self,
        body: &mut Body,
        call: &Call<'_>,
        input: Vec<String>,
        attribute: Vec<AttributeProto>,
        elements: impl Fn(usize) -> Option<Element>,
    ) -> Result<()> {
        let output = self.results(body, call, elements)?;
        let graph = self.scopes.graph(body.scope);
        let name = graph.and_then(|graph| node(graph, call.id)?.name.as_deref());
        let otherwise = format!("{}_{}", call.rule.name, call.id);
        let name = Some(self.nodes.claim(name, &otherwise));
        let op_type = Some(call.rule.name.to_owned());
        body.graph.node.push(NodeProto { input, output, name, op_type, attribute });
        Ok(())
    }

    /// Names the outputs of an operator.
    fn results(
        &mut self,
        body: &mut Body,
        call: &Call<'_>,
        elements: impl Fn(usize) -> Option<Element>,
    ) -> Result<Vec<String>> {
        let Call { rule, path, .. } = call;
        let mut outputs = call.outputs.clone();
        while outputs.len() > rule.made && outputs.last() == Some(&None) && !rule.makes_many() {
            outputs.pop();
        }
        outputs.resize(outputs.len().max(rule.made), None);
        let mut names = Vec::new();
        for (index, id) in outputs.iter().enumerate() {
            let element = elements(index).filter(|_| rule.output(index).is_some());
            let Some(element) = element else {
                let (found, max) = (outputs.len(), index);
                let (path, operator, what) = (path.clone(), rule.name, "outputs");
                return Err(Error::TooMany { path, operator, what, found, max });
            };
            names.push(match id {
                Some(id) => self.result(body, path, *id, element)?,
                None if index < rule.made || rule.makes_many() => {
                    self.values.fresh(&format!("unused_{}", call.id))
                }
                None => String::new(),
            });
        }
        Ok(names)
    }

    fn result(&mut self, body: &mut Body, path: &str, id: u32, element: Element) -> Result<String> {
        let graph = self.scopes.graph(body.scope);
        let node = graph.and_then(|graph| node(graph, id));
        let Some(node) = node.filter(|node| matches!(node.kind, NodeKind::Value(_))) else {
            return Err(Error::Reference { path: path.to_owned(), id });
        };
        let operand = self.define(body.scope, id, node, element)?;
        let is_output = graph.is_some_and(|graph| graph.outputs.contains(&id));
        let has_shape = matches!(&node.kind, NodeKind::Value(Value { shape: Some(_), .. }));
        if has_shape && !is_output {
            let info = self.value_info(body.scope, id, node, &operand);
            body.graph.value_info.push(info);
        }
        Ok(operand.name)
    }
}

/// Returns the element type that an input is cast to, or that an output has; `None` where it stays
/// what it is.
fn slot_element(slot: Slot, variables: &[Option<Element>; VARIABLES]) -> Option<Element> {
    match slot {
        Slot::Is(element) => Some(element),
        Slot::Of(at) | Slot::Given(at) | Slot::Sequence(at) | Slot::Same(at) => {
            variables.get(at).copied().flatten()
        }
    }
}
