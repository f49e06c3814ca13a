//! Which values are floats, integers or sequences, over all graphs at once.
//!
//! Files of releases before 0.15.0 have no element types at all, and later ones need not. So what
//! constants, attributes and operators prove is carried along everything that has to be equal, in
//! both directions.

use std::fmt::Display;

use crate::{
    NodeKind, Operator, OperatorType, Reader,
    topology::{Topology, node},
};

use super::{
    attributes,
    classes::{Clash, Classes},
    element::{Element, Kind},
    error::{Error, Result},
    rules::{Rule, Slot, VARIABLES, Variable, rule},
    scopes::Scopes,
};

/// What every value and constant of a model holds.
#[derive(Debug)]
pub(super) struct Kinds {
    /// Where the nodes of each graph start.
    starts: Vec<usize>,
    kinds: Classes<Kind>,
    forms: Classes<Form>,
}

/// Whether a value is one tensor or a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Tensor,
    Sequence,
}

impl Form {
    const fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Sequence => "sequence",
        }
    }
}

impl Kinds {
    /// Infers what is in a model.
    ///
    /// # Errors
    ///
    /// Where the types of something contradict each other, or a constant has none.
    pub(super) fn infer(reader: &Reader, scopes: &Scopes<'_>) -> Result<Self> {
        let topology = scopes.topology();
        let mut starts = Vec::new();
        let mut count = 0_usize;
        for scope in topology.scopes() {
            starts.push(count);
            count = count.saturating_add(scope.graph().nodes.len());
        }
        let (kinds, forms) = (Classes::new(count), Classes::new(count));
        let mut this = Self { starts, kinds, forms };
        this.constants(reader)?;
        this.inputs(topology)?;
        this.captures(topology)?;
        for (index, scope) in topology.scopes().iter().enumerate() {
            for (id, node) in (0..).zip(&scope.graph().nodes) {
                if let NodeKind::Operator(operator) = &node.kind {
                    Inference { kinds: &mut this, scopes, scope: index, id, operator }.run()?;
                }
            }
        }
        this.declared(topology);
        Ok(this)
    }

    /// Returns what the elements of a value are; floats where nothing tells.
    pub(super) fn kind(&self, scope: usize, id: u32) -> Kind {
        self.known(scope, id).unwrap_or(Kind::Float)
    }

    /// Returns what the elements of a value are, where something tells.
    pub(super) fn known(&self, scope: usize, id: u32) -> Option<Kind> {
        self.kinds.get(self.key(scope, id)?)
    }

    /// Returns whether a value is a tensor or a sequence.
    pub(super) fn form(&self, scope: usize, id: u32) -> Form {
        let key = self.key(scope, id);
        key.and_then(|key| self.forms.get(key)).unwrap_or(Form::Tensor)
    }

    fn key(&self, scope: usize, id: u32) -> Option<usize> {
        self.starts.get(scope)?.checked_add(usize::try_from(id).ok()?)
    }

    /// Makes two values one in what they hold.
    fn join(&mut self, left: usize, right: usize) -> Result<(), Misfit> {
        self.kinds.join(left, right).map_err(Misfit::Kind)?;
        self.forms.join(left, right).map_err(Misfit::Form)
    }

    fn constants(&mut self, reader: &Reader) -> Result<()> {
        for tensor in reader.tensors() {
            let kind = Kind::of_constant(tensor.info()?.dtype);
            if let Some(key) = self.key(tensor.scope(), tensor.node()) {
                // No class has anything yet that could be in the way.
                let _ = self.kinds.set(key, kind);
                let _ = self.forms.set(key, Form::Tensor);
            }
        }
        Ok(())
    }

    /// Takes what the file says about the inputs of the main graph.
    fn inputs(&mut self, topology: &Topology<'_>) -> Result<()> {
        let Some(scope) = topology.scopes().first() else { return Ok(()) };
        for &id in &scope.graph().inputs {
            let declared = declared(scope.graph(), id);
            let Some(dtype) = declared else { continue };
            let kind = Kind::of(dtype).ok_or_else(|| Error::Unsupported {
                path: scope.node_path(id),
                what: "dtype",
                found: dtype.to_string(),
                expected: "Int32, Float, Int8 or UInt8",
            })?;
            if let Some(key) = self.key(0, id) {
                // An input that is a constant is what the constant is.
                let _ = self.kinds.set(key, kind);
            }
        }
        Ok(())
    }

    /// Lets captured values be what they are outside.
    fn captures(&mut self, topology: &Topology<'_>) -> Result<()> {
        for (index, scope) in topology.scopes().iter().enumerate() {
            for &id in &scope.graph().captures {
                let source = topology.capture_source(index, id);
                let source = source.and_then(|(scope, id)| self.key(scope, id));
                if let Some((key, source)) = self.key(index, id).zip(source) {
                    let at = |misfit: Misfit| misfit.at(scope.node_path(id), "Capture", "value");
                    self.join(key, source).map_err(at)?;
                }
            }
        }
        Ok(())
    }

    /// Takes what the file says about other values, where nothing else tells.
    fn declared(&mut self, topology: &Topology<'_>) {
        for (index, scope) in topology.scopes().iter().enumerate() {
            for (id, _) in (0..).zip(&scope.graph().nodes) {
                let kind = declared(scope.graph(), id).and_then(Kind::of);
                if let Some((key, kind)) = self.key(index, id).zip(kind)
                    && self.kinds.get(key).is_none()
                {
                    let _ = self.kinds.set(key, kind);
                }
            }
        }
    }
}

fn declared(graph: &crate::Graph, id: u32) -> Option<crate::DataType> {
    match &node(graph, id)?.kind {
        NodeKind::Value(value) => value.dtype,
        _ => None,
    }
}

/// One operator, whose inputs and outputs become what it makes of them.
struct Inference<'a, 'm> {
    kinds: &'a mut Kinds,
    scopes: &'a Scopes<'m>,
    scope: usize,
    id: u32,
    operator: &'m Operator,
}

impl Inference<'_, '_> {
    fn run(&mut self) -> Result<()> {
        let code = self.operator.operator_type.code();
        let unknown = || Error::UnknownOperator { path: self.path(), code };
        let rule = rule(self.operator.operator_type).ok_or_else(unknown)?;
        match self.operator.operator_type {
            OperatorType::If => self.branches(&rule),
            OperatorType::Loop => self.body(&rule),
            _ => self.slots(&rule),
        }
    }

    /// Joins what has the same variable.
    fn slots(&mut self, rule: &Rule) -> Result<()> {
        let named = attributes::element(self.operator);
        let variables: [usize; VARIABLES] = std::array::from_fn(|_| self.kinds.kinds.add());
        for (variable, key) in variables.into_iter().enumerate() {
            if let Some(kind) = rule.elements(variable).only() {
                // Nothing is known of a new variable that could be in the way.
                let _ = self.kinds.kinds.set(key, kind);
            }
        }
        let is_given = matches!(rule.output(0), Some(Slot::Given(_)));
        if let Some(element) = named.filter(|_| !is_given) {
            let first = variables.first().copied().unwrap_or_default();
            let seeded = self.kinds.kinds.set(first, element.kind()).map_err(Misfit::Kind);
            seeded.map_err(self.at(rule, "output 0"))?;
        }
        let forms: [usize; VARIABLES] = std::array::from_fn(|_| self.kinds.forms.add());
        let variables = Variables { kinds: variables, forms, named };
        for (index, id) in self.operator.inputs.iter().enumerate() {
            let joined = self.slot(*id, rule.input(index), &variables);
            joined.map_err(self.at(rule, format_args!("input {index}")))?;
        }
        for (index, id) in self.operator.outputs.iter().enumerate() {
            let joined = self.slot(*id, rule.output(index), &variables);
            joined.map_err(self.at(rule, format_args!("output {index}")))?;
        }
        Ok(())
    }

    fn slot(
        &mut self,
        id: Option<u32>,
        slot: Option<Slot>,
        variables: &Variables,
    ) -> Result<(), Misfit> {
        let Some((id, slot)) = id.zip(slot) else { return Ok(()) };
        let Some(key) = self.kinds.key(self.scope, id) else { return Ok(()) };
        let kinds = &mut self.kinds.kinds;
        let joined = match (slot, variables.named) {
            (Slot::Is(element), _) | (Slot::Given(_), Some(element)) => {
                kinds.set(key, element.kind())
            }
            (Slot::Of(at) | Slot::Given(at) | Slot::Sequence(at) | Slot::Same(at), _) => {
                kinds.join(key, variables.kind(at))
            }
        };
        joined.map_err(Misfit::Kind)?;
        let forms = &mut self.kinds.forms;
        let joined = match slot {
            Slot::Sequence(_) => forms.set(key, Form::Sequence),
            Slot::Same(at) => forms.join(key, variables.form(at)),
            _ => forms.set(key, Form::Tensor),
        };
        joined.map_err(Misfit::Form)
    }

    /// Joins the outputs of an If with those of its branches.
    fn branches(&mut self, rule: &Rule) -> Result<()> {
        self.fixed(rule, 0, Kind::Int)?;
        let mut others: &[u32] = &[];
        let mut other = self.scope;
        for branch in ["then_branch", "else_branch"] {
            let Some(inner) = self.scopes.child(self.scope, self.id, branch) else { continue };
            let outputs = self.scopes.graph(inner).map_or(&[][..], |graph| &graph.outputs);
            for (index, &inside) in outputs.iter().enumerate() {
                let outside = self.operator.outputs.get(index).copied().flatten();
                let outside = outside.map(|id| (self.scope, id));
                self.join(rule, index, outside, Some((inner, inside)))?;
                // Nothing need read it, and still both branches have to give the same.
                let same = others.get(index).map(|id| (other, *id));
                self.join(rule, index, same, Some((inner, inside)))?;
            }
            (others, other) = (outputs, inner);
        }
        Ok(())
    }

    /// Joins what a Loop carries from one iteration to the next.
    fn body(&mut self, rule: &Rule) -> Result<()> {
        self.fixed(rule, 0, Kind::Int)?;
        self.fixed(rule, 1, Kind::Int)?;
        let Some(inner) = self.scopes.child(self.scope, self.id, "body") else { return Ok(()) };
        let Some(body) = self.scopes.graph(inner) else { return Ok(()) };
        let number = [body.inputs.first(), body.inputs.get(1), body.outputs.first()];
        for &id in number.into_iter().flatten() {
            let Some(key) = self.kinds.key(inner, id) else { continue };
            let set = self.kinds.kinds.set(key, Kind::Int).map_err(Misfit::Kind);
            set.map_err(self.at(rule, "condition"))?;
        }
        let carried = self.operator.inputs.len().saturating_sub(2);
        for index in 0..body.outputs.len().saturating_sub(1) {
            let made = body.outputs.get(index.saturating_add(1)).map(|id| (inner, *id));
            let output = self.operator.outputs.get(index).copied().flatten();
            let output = output.map(|id| (self.scope, id));
            if index >= carried {
                // Both are tensors: the output is what each iteration adds to it.
                if let Some(key) = made.and_then(|(scope, id)| self.kinds.key(scope, id)) {
                    let set = self.kinds.forms.set(key, Form::Tensor).map_err(Misfit::Form);
                    set.map_err(self.at(rule, format_args!("output {index}")))?;
                }
                self.join(rule, index, output, made)?;
                continue;
            }
            let start = self.operator.inputs.get(index.saturating_add(2)).copied().flatten();
            let start = start.map(|id| (self.scope, id));
            let inside = body.inputs.get(index.saturating_add(2)).map(|id| (inner, *id));
            self.join(rule, index, start, inside)?;
            self.join(rule, index, inside, made)?;
            self.join(rule, index, output, made)?;
        }
        Ok(())
    }

    /// Joins two values that are an output of the operator.
    fn join(
        &mut self,
        rule: &Rule,
        output: usize,
        left: Option<(usize, u32)>,
        right: Option<(usize, u32)>,
    ) -> Result<()> {
        let key = |end: Option<(usize, u32)>| end.and_then(|(scope, id)| self.kinds.key(scope, id));
        let Some((left, right)) = key(left).zip(key(right)) else { return Ok(()) };
        let joined = self.kinds.join(left, right);
        joined.map_err(self.at(rule, format_args!("output {output}")))
    }

    /// Sets an input to one kind, and to a tensor.
    fn fixed(&mut self, rule: &Rule, index: usize, kind: Kind) -> Result<()> {
        let id = self.operator.inputs.get(index).copied().flatten();
        let Some(key) = id.and_then(|id| self.kinds.key(self.scope, id)) else { return Ok(()) };
        let set = self.kinds.kinds.set(key, kind).map_err(Misfit::Kind);
        let set = set.and_then(|()| self.kinds.forms.set(key, Form::Tensor).map_err(Misfit::Form));
        set.map_err(self.at(rule, format_args!("input {index}")))
    }

    /// Returns what says that an input or output does not fit.
    fn at(&self, rule: &Rule, what: impl Display) -> impl FnOnce(Misfit) -> Error {
        move |misfit| misfit.at(self.path(), rule.name, &what.to_string())
    }

    fn path(&self) -> String {
        self.scopes.node_path(self.scope, self.id)
    }
}

/// What the type variables of one operator are.
struct Variables {
    kinds: [usize; VARIABLES],
    forms: [usize; VARIABLES],
    named: Option<Element>,
}

impl Variables {
    fn kind(&self, variable: Variable) -> usize {
        self.kinds.get(variable).copied().unwrap_or(usize::MAX)
    }

    fn form(&self, variable: Variable) -> usize {
        self.forms.get(variable).copied().unwrap_or(usize::MAX)
    }
}

/// Two things that have to be equal, and are not.
enum Misfit {
    Kind(Clash<Kind>),
    Form(Clash<Form>),
}

impl Misfit {
    fn at(self, path: String, operator: &'static str, what: &str) -> Error {
        let what = what.to_owned();
        match self {
            Self::Kind(Clash { found, expected }) => {
                let (found, expected) = (found.to_string(), expected.to_string());
                Error::ElementType { path, operator, what, found, expected }
            }
            Self::Form(Clash { found, expected }) => {
                let (found, expected) = (found.name(), expected.name());
                Error::Form { path, operator, what, found, expected }
            }
        }
    }
}
