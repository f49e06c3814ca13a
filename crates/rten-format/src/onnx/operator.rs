//! Operators as nodes.

use tensor_core::Finding;

use crate::{
    Attributes, NodeKind, Operator, OperatorType, Value,
    attributes::ModAttrs,
    topology::node,
    types::{Element, Kind, Rule, Slot, VARIABLES, Variable, named, rule},
};

use super::{
    attributes,
    error::{Error, Result},
    lower::{Body, Lowering, Operand},
    proto::{AttributeProto, NodeProto},
    shapes::{self, Dims},
    window::Window,
};

/// An operator that becomes a node.
#[derive(Clone)]
pub(super) struct Call<'a> {
    pub(super) id: u32,
    pub(super) operator: &'a Operator,
    pub(super) rule: Rule,
    pub(super) path: String,
    /// Ids of what it makes, and `None` for what nothing reads.
    pub(super) outputs: Vec<Option<u32>>,
}

/// One of the outputs of an operator.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) element: Element,
    pub(super) dims: Option<Dims>,
}

impl From<Element> for Made {
    fn from(element: Element) -> Self {
        Self { element, dims: None }
    }
}

impl<'a> Lowering<'a> {
    /// Makes the node of an operator, unless nothing reads what it makes.
    pub(super) fn operator(
        &mut self,
        body: &mut Body,
        id: u32,
        operator: &'a Operator,
    ) -> Result<()> {
        let outputs = self.last_made(body.scope, id, operator);
        if outputs.iter().all(Option::is_none) {
            return Ok(());
        }
        let path = self.scopes.node_path(body.scope, id);
        let code = operator.operator_type.code();
        let unknown = || Error::UnknownOperator { path: path.clone(), code };
        let rule = rule(operator.operator_type).ok_or_else(unknown)?;
        self.opset = self.opset.max(rule.opset_for(operator.inputs.len()));
        let call = Call { id, operator, rule, path, outputs };
        match operator.operator_type {
            OperatorType::If => self.branches(body, call),
            OperatorType::Loop => self.iteration(body, call),
            _ => self.plain(body, &call),
        }
    }

    /// Returns the outputs of an operator but for those that it or a later one makes again, which is
    /// what RTen takes.
    fn last_made(&mut self, scope: usize, id: u32, operator: &Operator) -> Vec<Option<u32>> {
        let mut outputs = operator.outputs.clone();
        for at in 0..outputs.len() {
            let Some((output, later)) = outputs.get_mut(at..).and_then(<[_]>::split_first_mut)
            else {
                break;
            };
            let producers = output.map(|output| self.scopes.topology().producers(scope, output));
            let is_last = producers.and_then(<[_]>::last).is_none_or(|last| *last == id);
            if (!is_last || later.contains(output))
                && let Some(again) = output.take()
            {
                let message = "is made more than once, taken from the last operator that makes it";
                let path = self.scopes.node_path(scope, again);
                self.report.add(Finding::warning(MADE_AGAIN, message).path(path));
            }
        }
        outputs
    }

    /// Makes the node of an operator without graphs.
    fn plain(&mut self, body: &mut Body, call: &Call<'a>) -> Result<()> {
        let Call { operator, rule, .. } = call;
        let mut operands = self.operands(body.scope, call)?;
        let shapes = self.shapes(body.scope, operator, &operands);
        let attribute = self.attributes(body.scope, call, &shapes)?;
        self.adjust(body.scope, call, &mut operands);
        let variables = self.variables(body.scope, call, &operands)?;
        let mut input = Vec::new();
        for (index, operand) in operands.into_iter().enumerate() {
            let slot = rule.input(index);
            input.push(match operand.zip(slot) {
                Some((operand, slot)) => {
                    let element = slot_element(slot, &variables).unwrap_or(operand.element);
                    self.cast(body, &operand, element)?.name
                }
                None => String::new(),
            });
        }
        self.complete(body, call, &shapes, &mut input)?;
        let made = self.made(call, &variables, &shapes)?;
        match &operator.attributes {
            Some(Attributes::Mod(ModAttrs { fmod: false })) if is_float(&variables) => {
                self.remainder(body, call, input, made)
            }
            _ => self.node(body, call, input, attribute, made),
        }
    }

    /// Returns the attributes of an operator, and reports which of them are not as in the file.
    fn attributes(
        &mut self,
        scope: usize,
        call: &Call<'_>,
        shapes: &[Option<Dims>],
    ) -> Result<Vec<AttributeProto>> {
        let Call { operator, path, .. } = call;
        let weights = operator.inputs.get(1).copied().flatten();
        let weights = weights.and_then(|id| node(self.scopes.graph(scope)?, id));
        let weights = weights.and_then(|node| match &node.kind {
            NodeKind::Constant(constant) => Some(&constant.shape[..]),
            _ => None,
        });
        let window = Window::of(operator, shapes, weights);
        let (attributes, cut) = attributes::convert(operator, &window, || path.clone())?;
        if !cut.is_empty() {
            let message = format!("has defaults of another rank, cut: {}", cut.join(", "));
            self.report.add(Finding::note(CUT, message).path(path.clone()));
        }
        Ok(attributes)
    }

    /// Finds out what an operator makes.
    fn made(
        &self,
        call: &Call<'_>,
        variables: &[Option<Element>; VARIABLES],
        shapes: &[Option<Dims>],
    ) -> Result<Vec<Made>> {
        let Call { operator, rule, path, .. } = call;
        let count =
            call.outputs.iter().rposition(Option::is_some).map_or(0, |last| last.saturating_add(1));
        let count = if rule.makes_many() { call.outputs.len() } else { count.max(rule.made) };
        let named = named(operator);
        let inputs: Vec<Option<&Dims>> = shapes.iter().map(Option::as_ref).collect();
        let mut made = Vec::new();
        for index in 0..count {
            let element = rule.output(index).and_then(|slot| match slot {
                Slot::Given(_) if named.is_some() => named,
                slot => slot_element(slot, variables),
            });
            let element = element.ok_or_else(|| Error::TooMany {
                path: path.clone(),
                operator: rule.name,
                what: "outputs",
                found: count,
                max: index,
            })?;
            made.push(Made { element, dims: shapes::infer(operator, &inputs, index) });
        }
        Ok(made)
    }

    /// Finds out what the type variables of an operator stand for.
    fn variables(
        &self,
        scope: usize,
        call: &Call<'_>,
        operands: &[Option<Operand>],
    ) -> Result<[Option<Element>; VARIABLES]> {
        let mut variables = [None; VARIABLES];
        for (variable, element) in variables.iter_mut().enumerate() {
            let has_it = |slot: Option<Slot>| slot.is_some_and(|slot| slot.is_of(variable));
            let inputs = operands.iter().enumerate();
            let inputs = inputs.filter(|(index, _)| has_it(call.rule.input(*index)));
            let found: Vec<(usize, &Operand)> =
                inputs.filter_map(|(index, operand)| Some((index, operand.as_ref()?))).collect();
            *element = match found.first() {
                Some(_) => Some(join(call, variable, &found)?),
                None => self.unread(scope, call, has_it),
            };
        }
        Ok(variables)
    }

    /// Returns what a variable stands for that only outputs have.
    fn unread(
        &self,
        scope: usize,
        call: &Call<'_>,
        has_it: impl Fn(Option<Slot>) -> bool,
    ) -> Option<Element> {
        let named = named(call.operator);
        let outputs = call.operator.outputs.iter().enumerate();
        let mut outputs = outputs.filter(|(index, _)| has_it(call.rule.output(*index)));
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

    /// Adds the node of an operator, which makes what is given, used or not.
    pub(super) fn node(
        &mut self,
        body: &mut Body,
        call: &Call<'_>,
        input: Vec<String>,
        attribute: Vec<AttributeProto>,
        made: Vec<Made>,
    ) -> Result<()> {
        let mut output = Vec::new();
        for (index, made) in made.into_iter().enumerate() {
            let is_needed = index < call.rule.made || call.rule.makes_many();
            output.push(match call.outputs.get(index).copied().flatten() {
                Some(id) => self.result(body, call, id, made)?,
                None if is_needed => self.values.fresh(&format!("unused_{}", call.id)),
                None => String::new(),
            });
        }
        let graph = self.scopes.graph(body.scope);
        let name = graph.and_then(|graph| node(graph, call.id)?.name.as_deref());
        let otherwise = format!("{}_{}", call.rule.name, call.id);
        let name = Some(self.nodes.claim(name, &otherwise));
        let op_type = Some(call.rule.name.to_owned());
        self.add(body, NodeProto { input, output, name, op_type, attribute })
    }

    /// Names what an operator makes.
    fn result(&mut self, body: &mut Body, call: &Call<'_>, id: u32, made: Made) -> Result<String> {
        let graph = self.scopes.graph(body.scope);
        let node = graph.and_then(|graph| node(graph, id));
        let reference = || Error::Reference { path: call.path.clone(), id };
        let node = node.ok_or_else(reference)?;
        let operand = self.define(body.scope, id, node, made)?;
        let has_shape = matches!(&node.kind, NodeKind::Value(Value { shape: Some(_), .. }));
        if has_shape && !body.outputs.contains(&id) {
            let info = self.value_info(node, &operand)?;
            body.graph.value_info.push(info);
        }
        Ok(operand.name)
    }
}

/// Returns the element type that inputs with the same variable are cast to.
fn join(call: &Call<'_>, variable: Variable, found: &[(usize, &Operand)]) -> Result<Element> {
    let elements: Vec<Element> = found.iter().map(|(_, operand)| operand.element).collect();
    let kind = elements.first().map_or(Kind::Float, |first| first.kind());
    let allowed = call.rule.elements(variable);
    allowed.join(&elements, kind).ok_or_else(|| Error::ElementType {
        path: call.path.clone(),
        operator: call.rule.name,
        what: format!("input {}", found.first().map_or(0, |(index, _)| *index)),
        found: kind.to_string(),
        expected: allowed.to_string(),
    })
}

fn is_float(variables: &[Option<Element>; VARIABLES]) -> bool {
    variables.first().copied().flatten() == Some(Element::Float)
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

/// Rule of a value that several operators make.
const MADE_AGAIN: &str = "rten/onnx-made-again";

/// Rule of a window whose steps or pads had defaults for another number of dimensions.
const CUT: &str = "rten/onnx-defaults";
