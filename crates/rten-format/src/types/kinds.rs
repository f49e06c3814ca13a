//! Which values are floats, integers or sequences, over all graphs at once.
//!
//! Files of releases before 0.15.0 have no element types at all, and later ones need not. So what
//! constants, attributes and operators prove is carried along everything that has to be equal, in
//! both directions.

use std::fmt::Display;

use crate::{
    Attributes, Constant, DataType, Graph, NodeKind, Operator, OperatorType, Scalar,
    topology::{Topology, node},
};

use super::{
    classes::{Clash, Classes},
    element::{Element, Kind},
    rules::{Rule, Slot, VARIABLES, Variable, rule},
    scopes::Scopes,
};

/// What every value and constant of a model holds.
#[derive(Debug)]
pub(crate) struct Kinds {
    /// Where the nodes of each graph start.
    starts: Vec<usize>,
    kinds: Classes<Kind>,
    forms: Classes<Form>,
}

/// Whether a value is one tensor or a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Tensor,
    Sequence,
}

impl Form {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Sequence => "sequence",
        }
    }
}

impl Kinds {
    /// Infers what is in a model, and lists where its operators contradict that, one place for each.
    pub(crate) fn infer(scopes: &Scopes<'_>) -> (Self, Vec<Contradiction>) {
        let topology = scopes.topology();
        let mut starts = Vec::new();
        let mut count = 0_usize;
        for scope in topology.scopes() {
            starts.push(count);
            count = count.saturating_add(scope.graph().nodes.len());
        }
        let (kinds, forms) = (Classes::new(count), Classes::new(count));
        let mut this = Self { starts, kinds, forms };
        let mut found = Vec::new();
        this.constants(topology);
        this.inputs(topology);
        this.captures(topology, &mut found);
        for (index, scope) in topology.scopes().iter().enumerate() {
            for (id, node) in (0..).zip(&scope.graph().nodes) {
                if let NodeKind::Operator(operator) = &node.kind
                    && let Some(rule) = rule(operator.operator_type)
                {
                    let kinds = &mut this;
                    let fits = Inference { kinds, scopes, scope: index, id, operator, rule }.run();
                    found.extend(fits.err());
                }
            }
        }
        this.declared(topology);
        (this, found)
    }

    /// Returns what the elements of a value are; floats where nothing tells.
    pub(crate) fn kind(&self, scope: usize, id: u32) -> Kind {
        self.known(scope, id).unwrap_or(Kind::Float)
    }

    /// Returns what the elements of a value are, where something tells.
    pub(crate) fn known(&self, scope: usize, id: u32) -> Option<Kind> {
        self.kinds.get(self.key(scope, id)?)
    }

    /// Returns whether a value is a tensor or a sequence.
    pub(crate) fn form(&self, scope: usize, id: u32) -> Form {
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

    fn constants(&mut self, topology: &Topology<'_>) {
        for (index, scope) in topology.scopes().iter().enumerate() {
            for (id, node) in (0..).zip(&scope.graph().nodes) {
                let NodeKind::Constant(constant) = &node.kind else { continue };
                let Some(key) = self.key(index, id) else { continue };
                // No class has anything yet that could be in the way.
                if let Some(kind) = of_constant(constant) {
                    let _ = self.kinds.set(key, kind);
                }
                let _ = self.forms.set(key, Form::Tensor);
            }
        }
    }

    /// Takes what the file says about the inputs of the main graph.
    fn inputs(&mut self, topology: &Topology<'_>) {
        let Some(scope) = topology.scopes().first() else { return };
        for &id in &scope.graph().inputs {
            let kind = declared(scope.graph(), id).and_then(Kind::of);
            if let Some((key, kind)) = self.key(0, id).zip(kind) {
                // An input that is a constant is what the constant is.
                let _ = self.kinds.set(key, kind);
            }
        }
    }

    /// Lets captured values be what they are outside.
    fn captures(&mut self, topology: &Topology<'_>, found: &mut Vec<Contradiction>) {
        for (index, scope) in topology.scopes().iter().enumerate() {
            for &id in &scope.graph().captures {
                let source = topology.capture_source(index, id);
                let source = source.and_then(|(scope, id)| self.key(scope, id));
                if let Some((key, source)) = self.key(index, id).zip(source)
                    && let Err(misfit) = self.join(key, source)
                {
                    let (operator, what) = ("Capture", "value".to_owned());
                    found.push(Contradiction { scope: index, id, operator, what, misfit });
                }
            }
        }
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

/// Returns what the elements of a constant are: those in place say it themselves.
fn of_constant(constant: &Constant) -> Option<Kind> {
    let dtype = match (constant.data_offset, &constant.data) {
        (Some(_), _) => constant.dtype?.dtype(),
        (None, data) => data.as_ref()?.dtype(),
    };
    dtype.map(Kind::of_constant)
}

/// Returns the element type that the attributes of an operator name, or leave to a default.
pub(crate) fn named(operator: &Operator) -> Option<Element> {
    let dtype = match (operator.operator_type, operator.attributes.as_ref()?) {
        (OperatorType::Cast, Attributes::Cast(table)) => table.to,
        (OperatorType::EyeLike, Attributes::EyeLike(table)) => table.dtype?,
        (OperatorType::SequenceEmpty, Attributes::SequenceEmpty(table)) => {
            table.dtype.unwrap_or(DataType::Float)
        }
        (OperatorType::QuantizeLinear, Attributes::QuantizeLinear(table)) => {
            let has_zero_point = operator.inputs.get(2).is_some_and(Option::is_some);
            let default = (!has_zero_point).then_some(DataType::UInt8);
            table.output_dtype.or(default)?
        }
        (OperatorType::ConstantOfShape, Attributes::ConstantOfShape(table)) => match table.value {
            Scalar::Int(_) => DataType::Int32,
            Scalar::Float(_) => DataType::Float,
            Scalar::Unknown(_) => return None,
        },
        _ => return None,
    };
    Kind::of(dtype).map(Kind::widest)
}

/// Returns the element type that the file says of a value.
pub(crate) fn declared(graph: &Graph, id: u32) -> Option<DataType> {
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
    rule: Rule,
}

impl Inference<'_, '_> {
    fn run(&mut self) -> Result<()> {
        match self.operator.operator_type {
            OperatorType::If => self.branches(),
            OperatorType::Loop => self.body(),
            _ => self.slots(),
        }
    }

    /// Joins what has the same variable.
    fn slots(&mut self) -> Result<()> {
        let named = named(self.operator);
        let variables: [usize; VARIABLES] = std::array::from_fn(|_| self.kinds.kinds.add());
        for (variable, key) in variables.into_iter().enumerate() {
            if let Some(kind) = self.rule.elements(variable).only() {
                // Nothing is known of a new variable that could be in the way.
                let _ = self.kinds.kinds.set(key, kind);
            }
        }
        let is_given = matches!(self.rule.output(0), Some(Slot::Given(_)));
        if let Some(element) = named.filter(|_| !is_given) {
            let first = variables.first().copied().unwrap_or_default();
            let seeded = self.kinds.kinds.set(first, element.kind()).map_err(Misfit::Kind);
            seeded.map_err(self.at("output 0"))?;
        }
        let forms: [usize; VARIABLES] = std::array::from_fn(|_| self.kinds.forms.add());
        let variables = Variables { kinds: variables, forms, named };
        for (index, id) in self.operator.inputs.iter().enumerate() {
            let joined = self.slot(*id, self.rule.input(index), &variables);
            joined.map_err(self.at(format_args!("input {index}")))?;
        }
        for (index, id) in self.operator.outputs.iter().enumerate() {
            let joined = self.slot(*id, self.rule.output(index), &variables);
            joined.map_err(self.at(format_args!("output {index}")))?;
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
    fn branches(&mut self) -> Result<()> {
        self.fixed(0, Kind::Int)?;
        let mut others: &[u32] = &[];
        let mut other = self.scope;
        for branch in ["then_branch", "else_branch"] {
            let Some(inner) = self.scopes.child(self.scope, self.id, branch) else { continue };
            let outputs = self.scopes.graph(inner).map_or(&[][..], |graph| &graph.outputs);
            for (index, &inside) in outputs.iter().enumerate() {
                let outside = self.operator.outputs.get(index).copied().flatten();
                let outside = outside.map(|id| (self.scope, id));
                self.join(index, outside, Some((inner, inside)))?;
                // Nothing need read it, and still both branches have to give the same.
                let same = others.get(index).map(|id| (other, *id));
                self.join(index, same, Some((inner, inside)))?;
            }
            (others, other) = (outputs, inner);
        }
        Ok(())
    }

    /// Joins what a Loop carries from one iteration to the next.
    fn body(&mut self) -> Result<()> {
        self.fixed(0, Kind::Int)?;
        self.fixed(1, Kind::Int)?;
        let Some(inner) = self.scopes.child(self.scope, self.id, "body") else { return Ok(()) };
        let Some(body) = self.scopes.graph(inner) else { return Ok(()) };
        let number = [body.inputs.first(), body.inputs.get(1), body.outputs.first()];
        for &id in number.into_iter().flatten() {
            let Some(key) = self.kinds.key(inner, id) else { continue };
            let set = self.kinds.kinds.set(key, Kind::Int).map_err(Misfit::Kind);
            set.map_err(self.at("condition"))?;
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
                    set.map_err(self.at(format_args!("output {index}")))?;
                }
                self.join(index, output, made)?;
                continue;
            }
            let start = self.operator.inputs.get(index.saturating_add(2)).copied().flatten();
            let start = start.map(|id| (self.scope, id));
            let inside = body.inputs.get(index.saturating_add(2)).map(|id| (inner, *id));
            self.join(index, start, inside)?;
            self.join(index, inside, made)?;
            self.join(index, output, made)?;
        }
        Ok(())
    }

    /// Joins two values that are an output of the operator.
    fn join(
        &mut self,
        output: usize,
        left: Option<(usize, u32)>,
        right: Option<(usize, u32)>,
    ) -> Result<()> {
        let key = |end: Option<(usize, u32)>| end.and_then(|(scope, id)| self.kinds.key(scope, id));
        let Some((left, right)) = key(left).zip(key(right)) else { return Ok(()) };
        let joined = self.kinds.join(left, right);
        joined.map_err(self.at(format_args!("output {output}")))
    }

    /// Sets an input to one kind, and to a tensor.
    fn fixed(&mut self, index: usize, kind: Kind) -> Result<()> {
        let id = self.operator.inputs.get(index).copied().flatten();
        let Some(key) = id.and_then(|id| self.kinds.key(self.scope, id)) else { return Ok(()) };
        let set = self.kinds.kinds.set(key, kind).map_err(Misfit::Kind);
        let set = set.and_then(|()| self.kinds.forms.set(key, Form::Tensor).map_err(Misfit::Form));
        set.map_err(self.at(format_args!("input {index}")))
    }

    /// Returns what says that an input or output does not fit.
    fn at(&self, what: impl Display) -> impl FnOnce(Misfit) -> Contradiction {
        let (scope, id, operator, what) = (self.scope, self.id, self.rule.name, what.to_string());
        move |misfit| Contradiction { scope, id, operator, what, misfit }
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

/// An operator has something that does not fit the rest of the model.
#[derive(Debug)]
pub(crate) struct Contradiction {
    pub(crate) scope: usize,
    pub(crate) id: u32,
    pub(crate) operator: &'static str,
    /// Which input or output, such as `input 1`.
    pub(crate) what: String,
    pub(crate) misfit: Misfit,
}

/// Two things that have to be equal, and are not.
#[derive(Debug)]
pub(crate) enum Misfit {
    Kind(Clash<Kind>),
    Form(Clash<Form>),
}

type Result<T, E = Contradiction> = std::result::Result<T, E>;
