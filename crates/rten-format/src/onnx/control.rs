//! Operators that hold graphs: If and Loop.

use crate::{Graph, OperatorType, types::Element};

use super::{
    attributes,
    error::{Error, Result},
    lower::{Body, Lowering, Role},
    operator::{Call, Made},
    shapes::{Dims, unknown},
};

impl<'a> Lowering<'a> {
    /// Makes an If with both of its branches.
    pub(super) fn branches(&mut self, body: &mut Body, mut call: Call<'a>) -> Result<()> {
        let input = self.fixed_inputs(body, &call)?;
        let mut attribute = Vec::new();
        let mut made: Vec<Made> = Vec::new();
        let mut count = None;
        for branch in ["then_branch", "else_branch"] {
            let (scope, graph) = self.subgraph(body.scope, &call, branch)?;
            self.require(scope, "inputs", graph.inputs.len(), 0..=0)?;
            let least = call.outputs.len();
            let wanted = count.map_or(least..=usize::MAX, |count| count..=count);
            self.require(scope, "outputs", graph.outputs.len(), wanted)?;
            count = Some(graph.outputs.len());
            attribute.push(attributes::graph(branch, self.graph(scope, Role::Branch)?));
            let others = std::mem::replace(&mut made, self.given(scope, &graph.outputs));
            for (made, other) in made.iter_mut().zip(others) {
                made.dims = agreed(made.dims.as_ref(), other.dims.as_ref());
            }
        }
        call.outputs.resize(made.len(), None);
        self.node(body, &call, input, attribute, made)
    }

    /// Makes a Loop with its body.
    pub(super) fn iteration(&mut self, body: &mut Body, mut call: Call<'a>) -> Result<()> {
        let mut input = self.fixed_inputs(body, &call)?;
        // Both may be left out, but not their places.
        input.resize(input.len().max(2), String::new());
        let (scope, graph) = self.subgraph(body.scope, &call, "body")?;
        let carried = input.len().saturating_sub(2);
        let inputs = carried.saturating_add(2);
        self.require(scope, "inputs", graph.inputs.len(), inputs..=inputs)?;
        let least = carried.max(call.outputs.len()).saturating_add(1);
        self.require(scope, "outputs", graph.outputs.len(), least..=usize::MAX)?;
        let lowered = self.graph(scope, Role::Body)?;
        let outputs = graph.outputs.get(1..).unwrap_or_default();
        let mut made = self.given(scope, outputs);
        let started = self.given(scope, graph.inputs.get(2..).unwrap_or_default());
        for (index, made) in made.iter_mut().enumerate() {
            made.dims = match started.get(index) {
                // What is carried along has as many dimensions as it had before, if the file says
                // so, and what is collected over all iterations one more.
                Some(started) => agreed(made.dims.as_ref(), started.dims.as_ref()),
                None => made.dims.as_ref().and_then(|dims| unknown(dims.len().saturating_add(1))),
            };
        }
        call.outputs.resize(made.len(), None);
        let attribute = vec![attributes::graph("body", lowered)];
        self.node(body, &call, input, attribute, made)
    }

    /// Casts the inputs: conditions to truth values, and what a Loop carries to the widest type.
    fn fixed_inputs(&mut self, body: &mut Body, call: &Call<'a>) -> Result<Vec<String>> {
        let is_loop = call.operator.operator_type == OperatorType::Loop;
        let mut names = Vec::new();
        for (index, operand) in self.operands(body.scope, call)?.into_iter().enumerate() {
            let Some(operand) = operand else {
                if index > 1 {
                    let path = call.path.clone();
                    return Err(Error::MissingInput { path, operator: "Loop", input: index });
                }
                names.push(String::new());
                continue;
            };
            let element = match (is_loop, index) {
                (false, _) | (true, 1) => Element::Bool,
                (true, _) => operand.element.kind().widest(),
            };
            names.push(self.cast(body, &operand, element)?.name);
        }
        Ok(names)
    }

    /// Returns what a graph gives out.
    fn given(&self, scope: usize, ids: &[u32]) -> Vec<Made> {
        let made = |id: &u32| Made {
            element: self.kinds.kind(scope, *id).widest(),
            dims: self.operands.get(&(scope, *id)).and_then(|operand| operand.dims.clone()),
        };
        ids.iter().map(made).collect()
    }

    /// Finds a graph of an operator.
    fn subgraph(
        &self,
        scope: usize,
        call: &Call<'_>,
        branch: &'static str,
    ) -> Result<(usize, &'a Graph)> {
        let missing = || Error::Unsupported {
            path: call.path.clone(),
            what: branch,
            found: "nothing".to_owned(),
            expected: "a graph",
        };
        let found = self.scopes.child(scope, call.id, branch);
        let found = found.and_then(|scope| Some((scope, self.scopes.graph(scope)?)));
        found.ok_or_else(missing)
    }

    /// Refuses a graph with another number of inputs or outputs than its operator needs.
    fn require(
        &self,
        scope: usize,
        what: &'static str,
        found: usize,
        wanted: std::ops::RangeInclusive<usize>,
    ) -> Result<()> {
        if wanted.contains(&found) {
            return Ok(());
        }
        let path = self.scopes.path(scope).to_owned();
        let expected = match (wanted.start(), wanted.end()) {
            (least, most) if least == most => least.to_string(),
            (least, _) => format!("at least {least}"),
        };
        Err(Error::Subgraph { path, what, found, expected })
    }
}

/// Returns a shape of the rank that two shapes have.
fn agreed(left: Option<&Dims>, right: Option<&Dims>) -> Option<Dims> {
    let (left, right) = left.zip(right)?;
    if left.len() == right.len() { unknown(left.len()) } else { None }
}
