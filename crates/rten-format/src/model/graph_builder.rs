//! Graphs in the making.

use std::collections::{HashMap, HashSet};

use crate::{
    AttributeValue, Attributes, AttributesUse, Constant, Error, Graph, GraphFault, Node, NodeKind,
    Operator, OperatorType, Result, Value,
};

/// Makes a graph of which RTen accepts everything that can be told without running it: names are
/// unique, values are made once and before they are read, operators have the attributes they need
/// and no more inputs than they take.
///
/// Nodes get their ids in the order of the calls. A call that fails adds nothing.
///
/// # Examples
///
/// ```
/// use rten_format::{
///     Constant, DataType, GraphBuilder, Model, OperatorType, Value, attributes::GemmAttrs,
///     tensor_core::TensorBuf,
/// };
///
/// let mut graph = GraphBuilder::new();
/// let input = graph.input("x", Value::new(["batch".into(), 4.into()], DataType::Float))?;
/// let weights = TensorBuf::from_slice([4, 2], &[0.5_f32; 8])?;
/// let weights = graph.constant("w", Constant::from_tensor(&weights)?)?;
/// let gemm = GemmAttrs { alpha: 1.0, beta: 1.0, ..GemmAttrs::default() };
/// let output = graph.value("y", Value::new(["batch".into(), 2.into()], DataType::Float))?;
/// graph.operator(
///     "gemm", OperatorType::Gemm, Some(gemm.into()), &[Some(input), Some(weights)], &[Some(output)],
/// )?;
/// graph.output(output)?;
/// let model = Model { graph: graph.finish(), metadata: None };
/// assert!(model.lint().is_empty());
/// # Ok::<(), rten_format::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
    /// Values and constants by name.
    names: HashMap<String, u32>,
    outputs: HashSet<u32>,
    /// For each node, whether an operator may read it.
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is an operator.
    NoData,
    /// It is a value that nothing makes so far.
    Unmade,
    /// It is a constant, or a value that is given or made.
    There,
}

impl GraphBuilder {
    /// Starts a graph without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value that a caller of the graph gives, and returns its id.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where a value or constant has the name.
    pub fn input(&mut self, name: impl Into<String>, value: Value) -> Result<u32> {
        let id = self.named(name.into(), value.into(), State::There)?;
        self.graph.inputs.push(id);
        Ok(id)
    }

    /// Adds a value that is found by its name in the graphs around this one, and returns its id.
    ///
    /// # Errors
    ///
    /// As for [`input`](Self::input).
    pub fn capture(&mut self, name: impl Into<String>, value: Value) -> Result<u32> {
        let id = self.named(name.into(), value.into(), State::There)?;
        self.graph.captures.push(id);
        Ok(id)
    }

    /// Adds a constant and returns its id.
    ///
    /// # Errors
    ///
    /// As for [`input`](Self::input); [`Error::Constant`] where it has another number of elements
    /// than its shape needs, more than 64 dimensions, or no element type.
    pub fn constant(&mut self, name: impl Into<String>, constant: Constant) -> Result<u32> {
        let name = name.into();
        // Elements that are given later are described, by type and shape.
        let sized =
            constant.info().and_then(|info| Ok(info.map(|info| info.byte_len()).transpose()?));
        let checked = sized.and_then(|_| constant.inline()).and_then(|_| constant.require_rank());
        checked
            .map_err(|fault| Error::Constant { path: format!("node {name:?}").into(), fault })?;
        self.named(name, constant.into(), State::There)
    }

    /// Adds a value that an operator is to make, and returns its id.
    ///
    /// # Errors
    ///
    /// As for [`input`](Self::input).
    pub fn value(&mut self, name: impl Into<String>, value: Value) -> Result<u32> {
        self.named(name.into(), value.into(), State::Unmade)
    }

    /// Adds an operator and returns its id. Names of operators need not be unique.
    ///
    /// `None` stands for an input that is left out and an output that nobody reads.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where something is read that is not there yet, or made that is there; where
    /// the operator has other attributes or more inputs than RTen accepts.
    pub fn operator(
        &mut self,
        name: impl Into<String>,
        operator_type: OperatorType,
        attributes: Option<Attributes>,
        inputs: &[Option<u32>],
        outputs: &[Option<u32>],
    ) -> Result<u32> {
        let name = name.into();
        self.check_operator(operator_type, attributes.as_ref(), inputs, outputs)
            .map_err(|fault| Error::Graph { path: format!("operator {name:?}"), fault })?;
        for output in outputs.iter().flatten() {
            self.set_state(*output, State::There);
        }
        let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
        let operator = Operator { operator_type, attributes, inputs, outputs };
        Ok(self.push(Node::named(name, operator), State::NoData))
    }

    /// Makes a value or constant an output of the graph, behind those that are outputs already.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where it is not a value or constant, nothing makes it, or it is an output
    /// already.
    pub fn output(&mut self, id: u32) -> Result<()> {
        let fault = match self.check_there(id) {
            Ok(()) if self.outputs.insert(id) => {
                self.graph.outputs.push(id);
                return Ok(());
            }
            Ok(()) => GraphFault::OutputTwice { id },
            Err(fault) => fault,
        };
        Err(Error::Graph { path: "output".to_owned(), fault })
    }

    /// Returns the graph.
    #[must_use]
    pub fn finish(self) -> Graph {
        self.graph
    }

    fn named(&mut self, name: String, kind: NodeKind, state: State) -> Result<u32> {
        if let Some(&by) = self.names.get(&name) {
            let fault = GraphFault::NameTaken { by };
            return Err(Error::Graph { path: format!("node {name:?}"), fault });
        }
        let id = self.push(Node { name: Some(name.clone()), kind }, state);
        self.names.insert(name, id);
        Ok(id)
    }

    fn push(&mut self, node: Node, state: State) -> u32 {
        // Nodes without end would not fit in memory, which holds far fewer than 2^32 of them.
        let id = u32::try_from(self.graph.nodes.len()).unwrap_or(u32::MAX);
        self.graph.nodes.push(node);
        self.states.push(state);
        id
    }

    fn state(&self, id: u32) -> Option<State> {
        self.states.get(usize::try_from(id).ok()?).copied()
    }

    fn set_state(&mut self, id: u32, new: State) {
        let id = usize::try_from(id).ok();
        if let Some(state) = id.and_then(|id| self.states.get_mut(id)) {
            *state = new;
        }
    }

    fn check_there(&self, id: u32) -> Result<(), GraphFault> {
        match self.state(id) {
            Some(State::There) => Ok(()),
            Some(State::Unmade) => Err(GraphFault::Unmade { id }),
            Some(State::NoData) => Err(GraphFault::NotAValue { id }),
            None => Err(GraphFault::NoNode { id, nodes: self.states.len() as u64 }),
        }
    }

    fn check_operator(
        &self,
        operator_type: OperatorType,
        attributes: Option<&Attributes>,
        inputs: &[Option<u32>],
        outputs: &[Option<u32>],
    ) -> Result<(), GraphFault> {
        check_use(operator_type, attributes, inputs.len())?;
        inputs.iter().flatten().try_for_each(|id| self.check_there(*id))?;
        for (at, &id) in outputs.iter().enumerate() {
            let Some(id) = id else { continue };
            match self.check_there(id) {
                Err(GraphFault::Unmade { .. }) => {}
                Ok(()) => return Err(GraphFault::MadeTwice { id }),
                Err(fault) => return Err(fault),
            }
            if outputs.get(..at).unwrap_or_default().contains(&Some(id)) {
                return Err(GraphFault::MadeTwice { id });
            }
        }
        Ok(())
    }
}

/// Checks what an operator has against what the format says about it.
fn check_use(
    operator_type: OperatorType,
    attributes: Option<&Attributes>,
    inputs: usize,
) -> Result<(), GraphFault> {
    let Some(info) = operator_type.info() else {
        return Err(GraphFault::UnknownOperator { code: operator_type.code() });
    };
    let found = attributes.map(Attributes::attributes_type);
    let expected = info.attributes.attributes_type();
    let left_out = found.is_none() && !matches!(info.attributes, AttributesUse::Required(_));
    if found != expected && !left_out {
        return Err(GraphFault::Attributes { name: info.name, found, expected });
    }
    let mut fields = attributes.into_iter().flat_map(Attributes::fields);
    let branches = ["then_branch", "else_branch", "body"];
    if let Some((branch, _)) = fields
        .find(|(field, value)| branches.contains(field) && matches!(value, AttributeValue::Absent))
    {
        return Err(GraphFault::NoBranch { branch });
    }
    match info.max_inputs {
        Some(max) if inputs as u64 > u64::from(max) => {
            Err(GraphFault::TooManyInputs { name: info.name, found: inputs as u64, max })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DataType, Model,
        attributes::{IfAttrs, SoftmaxAttrs},
    };

    fn builder() -> GraphBuilder {
        let mut graph = GraphBuilder::new();
        graph.input("x", Value::default()).unwrap();
        graph.value("y", Value::default()).unwrap();
        graph
    }

    #[track_caller]
    fn rejects<T: std::fmt::Debug>(result: Result<T>, message: &str) {
        assert_eq!(result.unwrap_err().to_string(), message);
    }

    #[test]
    fn everything_is_valid() {
        let mut branch = GraphBuilder::new();
        let captured = branch.capture("x", Value::default()).unwrap();
        let made = branch.value("z", Value::default()).unwrap();
        branch.operator("", OperatorType::Relu, None, &[Some(captured)], &[Some(made)]).unwrap();
        branch.output(made).unwrap();
        let branch = Some(Box::new(branch.finish()));
        let branches = IfAttrs { then_branch: branch.clone(), else_branch: branch };
        let mut graph = builder();
        let condition = Value::new([], DataType::Int32);
        let condition = graph.input("condition", condition).unwrap();
        let operator = OperatorType::If;
        let attributes = Some(branches.into());
        graph.operator("if", operator, attributes, &[Some(condition)], &[Some(1)]).unwrap();
        graph.output(1).unwrap();
        let model = Model { graph: graph.finish(), metadata: None };
        assert!(model.lint().is_empty(), "{:?}", model.lint());
    }

    #[test]
    fn names_are_unique() {
        let message = "node \"x\" has the name of node 0, expected one of its own";
        rejects(builder().value("x", Value::default()), message);
    }

    #[test]
    fn values_are_made_before_they_are_read() {
        let mut graph = builder();
        let relu = |graph: &mut GraphBuilder, from, to| {
            graph.operator("relu", OperatorType::Relu, None, &[Some(from)], &[Some(to)])
        };
        rejects(relu(&mut graph, 1, 0), "operator \"relu\" reads node 1, which nothing makes");
        rejects(
            relu(&mut graph, 7, 1),
            "operator \"relu\" refers to node 7, but the graph has 2 nodes",
        );
        rejects(relu(&mut graph, 0, 0), "operator \"relu\" makes node 0, which is there already");
        rejects(graph.output(1), "output reads node 1, which nothing makes");
        relu(&mut graph, 0, 1).unwrap();
        rejects(relu(&mut graph, 0, 1), "operator \"relu\" makes node 1, which is there already");
        rejects(relu(&mut graph, 2, 1), "operator \"relu\" refers to node 2, an operator");
        graph.output(1).unwrap();
        rejects(graph.output(1), "output is node 1, which is an output already");
    }

    #[test]
    fn operators_are_as_the_format_says() {
        let mut graph = builder();
        let mut add = |operator, attributes, inputs: &[_]| {
            graph.operator("op", operator, attributes, inputs, &[Some(1)])
        };
        rejects(
            add(OperatorType::Softmax, None, &[Some(0)]),
            "operator \"op\" has no attributes, but Softmax needs SoftmaxAttrs",
        );
        let attributes = Some(SoftmaxAttrs::default().into());
        rejects(
            add(OperatorType::Relu, attributes, &[Some(0)]),
            "operator \"op\" has SoftmaxAttrs, but Relu takes no attributes",
        );
        rejects(
            add(OperatorType::Relu, None, &[Some(0), None]),
            "operator \"op\" has 2 inputs, but Relu takes up to 1",
        );
        rejects(
            add(OperatorType::Unknown(200), None, &[]),
            "operator \"op\" has type 200, which is not known",
        );
        rejects(
            add(OperatorType::If, Some(IfAttrs::default().into()), &[Some(0)]),
            "operator \"op\" has no then_branch",
        );
        add(OperatorType::Shape, None, &[Some(0)]).unwrap();
    }

    #[test]
    fn outputs_are_made_once() {
        let mut graph = builder();
        let twice = &[Some(1), Some(1)];
        let result = graph.operator("topk", OperatorType::Split, None, &[Some(0)], twice);
        rejects(result, "operator \"topk\" has no attributes, but Split needs SplitAttrs");
        let result = graph.operator("", OperatorType::DynamicQuantizeLinear, None, &[None], twice);
        rejects(result, "operator \"\" makes node 1, which is there already");
        assert_eq!(graph.finish().nodes.len(), 2);
    }
}
