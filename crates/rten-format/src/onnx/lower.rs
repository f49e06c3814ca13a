//! Graphs of the format as graphs of ONNX: names, order, element types, casts.

use std::collections::{HashMap, HashSet};

use tensor_core::{DType, Finding, Report, text::short};

use crate::{
    DataType, Graph, Node, NodeKind, Operator, Reader, Tensor,
    topology::{Scope, node},
    types::{Element, Form, Kind, Kinds, Scopes, declared},
};

use super::{
    attributes,
    constants::Store,
    demands::Demands,
    error::{Error, Result},
    names::Names,
    operator::Made,
    proto::{AttributeProto, GraphProto, MAX_MESSAGE, NodeProto},
    shapes::{self, Dims},
};

/// Makes ONNX graphs of the graphs of a model.
pub(super) struct Lowering<'a> {
    pub(super) scopes: Scopes<'a>,
    pub(super) kinds: Kinds,
    pub(super) demands: Demands,
    pub(super) tensors: HashMap<(usize, u32), Tensor<'a>>,
    pub(super) store: Store<'a>,
    /// What values and constants have become so far.
    pub(super) operands: HashMap<(usize, u32), Operand>,
    pub(super) values: Names,
    pub(super) nodes: Names,
    pub(super) opset: i64,
    pub(super) report: Report,
    /// Element types that were asked for, by the names of inputs.
    input_types: &'a [(String, DType)],
    /// Names of constants that are given out, which what gives them out has.
    kept: HashMap<u32, String>,
    /// Bytes of nodes and types so far, at least.
    spent: u64,
}

/// A value of an ONNX graph.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) name: String,
    pub(super) element: Element,
    pub(super) form: Form,
    /// Its dimensions, or those of each member of a sequence.
    pub(super) dims: Option<Dims>,
}

/// What became of a model.
pub(super) struct Lowered<'a> {
    pub(super) graph: GraphProto,
    pub(super) store: Store<'a>,
    /// The release of the operator set that all its operators are in.
    pub(super) opset: i64,
    pub(super) report: Report,
}

/// Where a graph is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Main,
    Branch,
    Body,
}

impl Role {
    /// Returns what an input is.
    fn input(self, index: usize, kind: Kind) -> Made {
        let scalar = |element| Made { element, dims: Some(Vec::new()) };
        match (self, index) {
            (Self::Body, 0) => scalar(Element::Int64),
            (Self::Body, 1) => scalar(Element::Bool),
            _ => kind.widest().into(),
        }
    }

    /// Returns the element type that an output has to have.
    ///
    /// What a subgraph gives out is always of the widest type: both branches of an If agree then,
    /// and each iteration of a Loop with the one before.
    const fn output(self, index: usize, element: Element) -> Element {
        match (self, index) {
            (Self::Main, _) => element,
            (Self::Body, 0) => Element::Bool,
            _ => element.kind().widest(),
        }
    }
}

/// An ONNX graph in the making.
pub(super) struct Body {
    pub(super) scope: usize,
    pub(super) graph: GraphProto,
    /// Ids of what it gives out.
    pub(super) outputs: HashSet<u32>,
    /// Names of casts that are there, by what is cast and to what.
    casts: HashMap<(String, Element), String>,
}

impl<'a> Lowering<'a> {
    /// Makes the main graph, with all others in it.
    pub(super) fn run(
        reader: &'a Reader,
        store: Store<'a>,
        input_types: &'a [(String, DType)],
    ) -> Result<Lowered<'a>> {
        let scopes = Scopes::of(reader.model());
        check_inputs(&reader.model().graph, input_types)?;
        check_nodes(&scopes)?;
        check_declared(&scopes)?;
        let (kinds, contradictions) = Kinds::infer(&scopes);
        if let Some(first) = contradictions.into_iter().next() {
            let path = scopes.node_path(first.scope, first.id);
            return Err(Error::contradiction(path, first));
        }
        let demands = Demands::of(&scopes);
        let tensors =
            reader.tensors().map(|tensor| ((tensor.scope(), tensor.node()), tensor)).collect();
        let (values, nodes) = (names(&scopes, is_value), names(&scopes, is_operator));
        let mut this = Self {
            scopes,
            kinds,
            demands,
            tensors,
            store,
            operands: HashMap::new(),
            values,
            nodes,
            opset: OLDEST_OPSET,
            report: Report::default(),
            input_types,
            kept: HashMap::new(),
            spent: 0,
        };
        let graph = this.graph(0, Role::Main)?;
        Ok(Lowered { graph, store: this.store, opset: this.opset, report: this.report })
    }

    pub(super) fn graph(&mut self, scope: usize, role: Role) -> Result<GraphProto> {
        let Some(graph) = self.scopes.graph(scope) else { return Ok(GraphProto::default()) };
        let name = Some(self.scopes.path(scope).to_owned());
        let proto = GraphProto { name, ..Default::default() };
        let outputs = graph.outputs.iter().copied().collect();
        let mut body = Body { scope, graph: proto, outputs, casts: HashMap::new() };
        self.inputs(&mut body, graph, role)?;
        self.constants(&mut body, graph)?;
        self.captures(scope, graph);
        let order = self.scopes.topology().order(scope);
        if let Some(first) = order.cycle.first() {
            let operators = order.cycle.len();
            return Err(Error::Cycle { path: self.scopes.node_path(scope, *first), operators });
        }
        for id in order.operators {
            if let Some(NodeKind::Operator(operator)) = node(graph, id).map(|node| &node.kind) {
                self.operator(&mut body, id, operator)?;
            }
        }
        self.outputs(&mut body, graph, role)?;
        Ok(body.graph)
    }

    fn inputs(&mut self, body: &mut Body, graph: &'a Graph, role: Role) -> Result<()> {
        for (index, &id) in graph.inputs.iter().enumerate() {
            let path = || self.scopes.node_path(body.scope, id);
            let Some(node) = node(graph, id).filter(|node| is_value(node)) else {
                let path = self.scopes.path(body.scope).to_owned();
                return Err(Error::Reference { path, id });
            };
            if self.operands.contains_key(&(body.scope, id)) {
                return Err(Error::MadeTwice { path: path() });
            }
            if role == Role::Main && self.kinds.known(body.scope, id).is_none() {
                let message = "has an element type that nothing tells, taken as Float".to_owned();
                self.report.add(Finding::warning(UNKNOWN, message).path(path()));
            }
            let kind = self.kinds.kind(body.scope, id);
            let made = match role {
                Role::Main => self.input(body.scope, id, node, kind)?.into(),
                _ if matches!(node.kind, NodeKind::Constant(_)) => kind.widest().into(),
                _ => role.input(index, kind),
            };
            let operand = self.define(body.scope, id, node, made)?;
            body.graph.input.push(match role {
                Role::Main => self.interface(body.scope, id, node, &operand)?,
                Role::Branch | Role::Body => self.value_info(node, &operand)?,
            });
        }
        Ok(())
    }

    /// Returns the element type of an input of the main graph: what was asked for, or what all that
    /// reads it takes.
    fn input(&mut self, scope: usize, id: u32, node: &Node, kind: Kind) -> Result<Element> {
        let mut asked = self.input_types.iter().rev();
        let asked = asked.find(|(name, _)| node.name.as_ref() == Some(name));
        let path = || self.scopes.node_path(scope, id);
        let Some((_, dtype)) = asked else {
            let element = self.demands.element(scope, id, kind);
            if kind == Kind::Int && element != Element::Int32 {
                let message = format!("is {} in ONNX, where the file says Int32", element.name());
                self.report.add(Finding::note(INPUT, message).path(path()));
            }
            return Ok(element);
        };
        // The members of a sequence are not cast one by one.
        let is_sequence = self.kinds.form(scope, id) == Form::Sequence;
        let fits = |element: &Element| {
            element.kind() == kind && (!is_sequence || *element == kind.widest())
        };
        Element::of(*dtype).filter(fits).ok_or_else(|| Error::Unsupported {
            path: path(),
            what: "an input type",
            found: dtype.to_string(),
            expected: match kind {
                Kind::Float => "f32",
                Kind::Int8 => "i8",
                Kind::UInt8 => "u8",
                Kind::Int if is_sequence => "i64, as it is a sequence",
                Kind::Int => "bool, i32 or i64",
            },
        })
    }

    /// Makes initialisers of all constants; one that is an input as well is its default.
    fn constants(&mut self, body: &mut Body, graph: &'a Graph) -> Result<()> {
        for (id, node) in (0..).zip(&graph.nodes) {
            let Some(&tensor) = self.tensors.get(&(body.scope, id)) else { continue };
            let operand = match self.operands.get(&(body.scope, id)) {
                Some(operand) => operand.clone(),
                None => {
                    let kind = self.kinds.kind(body.scope, id);
                    let element = self.demands.element(body.scope, id, kind);
                    self.constant(body, id, node, element)?
                }
            };
            let tensor = self.store.add(tensor, operand.element, operand.name)?;
            body.graph.initializer.push(tensor);
        }
        Ok(())
    }

    /// Gives a constant its name, or another one where an output of the model has that.
    fn constant(&mut self, body: &Body, id: u32, node: &Node, element: Element) -> Result<Operand> {
        let operand = self.define(body.scope, id, node, element)?;
        if body.scope > 0 || !body.outputs.contains(&id) {
            return Ok(operand);
        }
        let name = self.values.fresh(&format!("{}_constant", operand.name));
        self.kept.insert(id, operand.name.clone());
        let operand = Operand { name, ..operand };
        self.operands.insert((body.scope, id), operand.clone());
        Ok(operand)
    }

    /// Gives captured values the names that they have outside.
    fn captures(&mut self, scope: usize, graph: &Graph) {
        for &id in &graph.captures {
            let source = self.scopes.topology().capture_source(scope, id);
            let source = source.and_then(|source| self.operands.get(&source)).cloned();
            // What is there already is a constant of this graph. What is found nowhere may not be
            // read either.
            if let Some(operand) = source {
                self.operands.entry((scope, id)).or_insert(operand);
            }
        }
    }

    fn outputs(&mut self, body: &mut Body, graph: &'a Graph, role: Role) -> Result<()> {
        let made: HashSet<String> =
            body.graph.node.iter().flat_map(|node| node.output.iter().cloned()).collect();
        let mut given = HashSet::new();
        for (index, &id) in graph.outputs.iter().enumerate() {
            let path = self.scopes.path(body.scope).to_owned();
            let operand = self.operand(body.scope, &path, id)?;
            let element = role.output(index, operand.element);
            let mut output = self.cast(body, &operand, element)?;
            let is_own = made.contains(&output.name) || output.name != operand.name;
            let kept = if role == Role::Main { self.kept.remove(&id) } else { None };
            let is_kept = kept.is_some();
            if !is_own || !given.insert(output.name.clone()) {
                let fresh = |this: &mut Self| this.values.fresh(&format!("{}_output", output.name));
                let name = kept.unwrap_or_else(|| fresh(self));
                output = self.identity(body, &output, name)?;
                given.insert(output.name.clone());
            }
            if role == Role::Main && output.name != operand.name && !is_kept {
                let message = format!("is given out as {:?}", short(&output.name));
                let path = self.scopes.node_path(body.scope, id);
                self.report.add(Finding::note(RENAMED, message).path(path));
            }
            let Some(node) = node(graph, id) else { continue };
            body.graph.output.push(match role {
                Role::Main => self.interface(body.scope, id, node, &output)?,
                Role::Branch | Role::Body => self.value_info(node, &output)?,
            });
        }
        Ok(())
    }

    /// Looks up a value or constant.
    pub(super) fn operand(&self, scope: usize, path: &str, id: u32) -> Result<Operand> {
        if let Some(operand) = self.operands.get(&(scope, id)) {
            return Ok(operand.clone());
        }
        let graph = self.scopes.graph(scope);
        let is_value = graph.and_then(|graph| node(graph, id)).is_some_and(is_value);
        Err(if is_value {
            Error::Undefined { path: self.scopes.node_path(scope, id) }
        } else {
            Error::Reference { path: path.to_owned(), id }
        })
    }

    /// Gives a value or constant its name.
    pub(super) fn define(
        &mut self,
        scope: usize,
        id: u32,
        node: &Node,
        made: impl Into<Made>,
    ) -> Result<Operand> {
        if self.operands.contains_key(&(scope, id)) {
            return Err(Error::MadeTwice { path: self.scopes.node_path(scope, id) });
        }
        let otherwise = match node.kind {
            NodeKind::Constant(_) => format!("constant_{id}"),
            _ => format!("value_{id}"),
        };
        let name = self.values.claim(node.name.as_deref(), &otherwise);
        let Made { element, dims } = made.into();
        let form = self.kinds.form(scope, id);
        let dims = match (shapes::declared(node), dims) {
            (Some(declared), Some(dims)) if declared.len() != dims.len() => {
                let (found, made) = (declared.len(), dims.len());
                let message = format!("has a shape of {found} dimensions, but {made} are made");
                let path = self.scopes.node_path(scope, id);
                self.report.add(Finding::note(SHAPE, message).path(path));
                Some(dims)
            }
            (declared, dims) => declared.or(dims),
        };
        let operand = Operand { name, element, form, dims };
        self.operands.insert((scope, id), operand.clone());
        Ok(operand)
    }

    /// Returns a value in another element type, by a node unless there is one already.
    pub(super) fn cast(
        &mut self,
        body: &mut Body,
        operand: &Operand,
        element: Element,
    ) -> Result<Operand> {
        if operand.element == element || operand.form == Form::Sequence {
            return Ok(operand.clone());
        }
        let key = (operand.name.clone(), element);
        if let Some(name) = body.casts.get(&key) {
            return Ok(Operand { name: name.clone(), element, ..operand.clone() });
        }
        let name = self.values.fresh(&format!("{}_as_{}", operand.name, element.suffix()));
        let to = vec![attributes::int("to", element.code())];
        self.push(body, "Cast", vec![operand.name.clone()], vec![name.clone()], to)?;
        body.casts.insert(key, name.clone());
        Ok(Operand { name, element, ..operand.clone() })
    }

    /// Gives a value another name.
    fn identity(&mut self, body: &mut Body, operand: &Operand, name: String) -> Result<Operand> {
        let (input, output) = (vec![operand.name.clone()], vec![name.clone()]);
        self.push(body, "Identity", input, output, Vec::new())?;
        Ok(Operand { name, ..operand.clone() })
    }

    /// Adds a node that no operator of the format stands for.
    pub(super) fn push(
        &mut self,
        body: &mut Body,
        op_type: &str,
        input: Vec<String>,
        output: Vec<String>,
        attribute: Vec<AttributeProto>,
    ) -> Result<()> {
        let name = output.first().map_or(op_type, String::as_str);
        let name = Some(self.nodes.fresh(name));
        let op_type = Some(op_type.to_owned());
        self.add(body, NodeProto { input, output, name, op_type, attribute })
    }

    pub(super) fn add(&mut self, body: &mut Body, node: NodeProto) -> Result<()> {
        let names = node.input.iter().chain(&node.output).map(String::len).sum();
        self.spend(names)?;
        body.graph.node.push(node);
        Ok(())
    }

    /// Refuses to make more than fits into a message: a file may read one long name a million
    /// times.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.spent = self.spent.saturating_add(bytes as u64);
        if self.spent > MAX_MESSAGE {
            return Err(Error::TooLarge { found: self.spent });
        }
        Ok(())
    }
}

/// Refuses element types for inputs that are not there.
fn check_inputs(graph: &Graph, input_types: &[(String, DType)]) -> Result<()> {
    let names = graph.inputs.iter().filter_map(|id| node(graph, *id)?.name.as_ref());
    let names: Vec<&String> = names.collect();
    match input_types.iter().find(|(name, _)| !names.contains(&name)) {
        Some((name, _)) => {
            let names: Vec<_> = names.into_iter().take(SHOWN).map(|name| short(name)).collect();
            Err(Error::NoInput { name: name.clone(), expected: names.join(", ") })
        }
        None => Ok(()),
    }
}

/// Refuses inputs of the main graph whose element type is not known.
fn check_declared(scopes: &Scopes<'_>) -> Result<()> {
    let Some(main) = scopes.topology().scopes().first() else { return Ok(()) };
    for &id in &main.graph().inputs {
        if let Some(dtype @ DataType::Unknown(_)) = declared(main.graph(), id) {
            return Err(Error::Unsupported {
                path: main.node_path(id),
                what: "dtype",
                found: dtype.to_string(),
                expected: "Int32, Float, Int8 or UInt8",
            });
        }
    }
    Ok(())
}

/// Refuses nodes that are nothing, or of a kind that is not known.
fn check_nodes(scopes: &Scopes<'_>) -> Result<()> {
    for scope in scopes.topology().scopes() {
        for (id, node) in (0..).zip(&scope.graph().nodes) {
            let tag = match &node.kind {
                NodeKind::Missing => 0,
                NodeKind::Unknown(table) => table.tag(),
                NodeKind::Operator(operator) => {
                    check_references(scope, id, operator)?;
                    continue;
                }
                NodeKind::Constant(_) | NodeKind::Value(_) => continue,
            };
            return Err(Error::UnknownNode { path: scope.node_path(id), tag });
        }
    }
    Ok(())
}

/// Refuses inputs and outputs that are not values, which no order has a place for.
fn check_references(scope: &Scope<'_>, id: u32, operator: &Operator) -> Result<()> {
    let is_value = |id: u32| node(scope.graph(), id).is_some_and(is_value);
    let mut ids = operator.inputs.iter().chain(&operator.outputs).flatten();
    match ids.find(|id| !is_value(**id)) {
        Some(wrong) => Err(Error::Reference { path: scope.node_path(id), id: *wrong }),
        None => Ok(()),
    }
}

pub(super) fn is_value(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Value(_) | NodeKind::Constant(_))
}

fn is_operator(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Operator(_))
}

/// Reserves the names of some nodes of all graphs.
fn names(scopes: &Scopes<'_>, of: impl Fn(&Node) -> bool) -> Names {
    let nodes = scopes.topology().scopes().iter().flat_map(|scope| &scope.graph().nodes);
    Names::reserving(nodes.filter(|node| of(node)).filter_map(|node| node.name.as_deref()))
}

/// The release of the operator set that has all operators but those that name a later one.
const OLDEST_OPSET: i64 = 20;

/// Names of inputs in an error.
const SHOWN: usize = 10;

/// Rule of an input of integers, which is of one of three types in ONNX.
const INPUT: &str = "rten/onnx-input-type";

/// Rule of a shape that contradicts the operator that makes the value.
const SHAPE: &str = "rten/onnx-shape";

/// Rule of an input whose element type nothing tells.
const UNKNOWN: &str = "rten/onnx-unknown-type";

/// Rule of an output that has another name than in the file.
const RENAMED: &str = "rten/onnx-renamed";
