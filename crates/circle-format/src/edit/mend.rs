//! Other forms of what stops onert 0.1.0, in which it runs.

use std::collections::{BTreeSet, HashMap, HashSet};

use tensor_core::Budget;

use crate::{
    Reader, Result, Tensor,
    model::{
        self, Buffer, BuiltinOperator, BuiltinOptions, Model, Operator, Subgraph, TensorType,
        TrainingInfo,
    },
};

/// One change that [`Reader::mended_for_onert`] or [`Model::fix_shapes`] makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The operator or tensor, such as `subgraph 0/operator 3`, as the file counts.
    pub path: String,
    /// What becomes of it.
    pub change: String,
}

impl Reader {
    /// Returns the model in a form that onert 0.1.0 gets further with, and each change.
    ///
    /// `RESHAPE` gets its shape as an input. Constants of 16-bit floats that `DEQUANTIZE` widens
    /// become those of 32 bits that it makes, and the operator goes, unless the model has metadata that
    /// name operators by position: training information, or control dependencies of TFLite. Nothing
    /// else changes, and no value does.
    ///
    /// # Errors
    ///
    /// As for [`Tensor::bytes`]; [`tensor_core::Error::OverLimit`] where constants that share bytes
    /// become too many.
    pub fn mended_for_onert(&self) -> Result<(Model, Vec<Mended>)> {
        let mut mend = Mend::new(self);
        let mut graphs = Vec::with_capacity(mend.model.subgraphs.len());
        for (at, subgraph) in (0_u32..).zip(&self.model().subgraphs) {
            let mut graph = subgraph.clone();
            mend.give_shapes(at, &mut graph);
            if !mend.is_counted {
                mend.widen(at, &mut graph)?;
            }
            graphs.push(graph);
        }
        mend.model.subgraphs = graphs;
        mend.empty_buffers();
        Ok((mend.model, mend.changes))
    }
}

/// Metadata that name operators by their position.
const BY_POSITION: [&str; 2] = [TrainingInfo::METADATA, "model_control_dependencies"];

impl Model {
    /// Gives dimensions that are not known the size that the file has for them, which is mostly 1, and
    /// returns each change: a runtime that does not infer shapes needs that.
    pub fn fix_shapes(&mut self) -> Vec<Mended> {
        let mut changes = Vec::new();
        for (graph, subgraph) in self.subgraphs.iter_mut().enumerate() {
            for (at, tensor) in subgraph.tensors.iter_mut().enumerate() {
                let (shape, is_unknown) = (&tensor.shape, |dim: &i32| *dim < 0);
                let fixed = tensor.shape_signature.take_if(|signature| {
                    let is_said = signature.len() == shape.len() && !shape.iter().any(is_unknown);
                    is_said && signature.iter().any(is_unknown)
                });
                changes.extend(fixed.map(|signature| Mended {
                    path: format!("subgraph {graph}/tensor {at}"),
                    change: format!("has the shape {shape:?} in the place of {signature:?}"),
                }));
            }
        }
        changes
    }
}

struct Mend<'a> {
    /// By graph and position.
    constants: HashMap<(u32, u32), Tensor<'a>>,
    budget: Budget,
    is_counted: bool,
    model: Model,
    /// Buffers of constants that are no longer used.
    freed: BTreeSet<u32>,
    changes: Vec<Mended>,
}

impl<'a> Mend<'a> {
    fn new(reader: &'a Reader) -> Self {
        let model = reader.model().clone();
        let place = |constant: Tensor<'_>| (constant.subgraph(), constant.index());
        let constants = reader.tensors().map(|constant| (place(constant), constant)).collect();
        let len = reader.source().len();
        let budget = Budget::sharing("bytes of constants that become wider", reader.limits(), len);
        let mut names = model.metadata.iter().filter_map(|entry| entry.name.as_deref());
        let is_counted = names.any(|name| BY_POSITION.contains(&name));
        let (freed, changes) = (BTreeSet::new(), Vec::new());
        Self { constants, budget, is_counted, model, freed, changes }
    }

    /// Gives every reshape of one input its shape as the second one.
    fn give_shapes(&mut self, graph: u32, subgraph: &mut Subgraph) {
        let names = subgraph.tensors.iter().filter_map(|tensor| tensor.name.clone());
        let mut names: HashSet<String> = names.collect();
        let mut shapes = HashMap::<Vec<i32>, i32>::new();
        for at in 0..subgraph.operators.len() {
            let Some(shape) = self.missing_shape(subgraph, at) else { continue };
            let Ok(next) = i32::try_from(subgraph.tensors.len()) else { return };
            let input = *shapes.entry(shape.clone()).or_insert(next);
            if input == next {
                let mut name = format!("shape {shape:?}");
                while !names.insert(name.clone()) {
                    name.push('_');
                }
                let data: Vec<u8> = shape.iter().flat_map(|dim| dim.to_le_bytes()).collect();
                let rank = i32::try_from(shape.len()).unwrap_or(i32::MAX);
                let buffer = self.model.add_buffer(data);
                let tensor = model::Tensor::new(name, TensorType::Int32, [rank]);
                subgraph.tensors.push(model::Tensor { buffer, ..tensor });
            }
            if let Some(operator) = subgraph.operators.get_mut(at) {
                operator.inputs.push(input);
            }
            self.changed(graph, at, format!("RESHAPE has its shape {shape:?} as an input"));
        }
    }

    /// Returns the shape that a reshape has nowhere but in its options or its output.
    fn missing_shape(&self, subgraph: &Subgraph, at: usize) -> Option<Vec<i32>> {
        let operator = subgraph.operators.get(at)?;
        let ([_], [output]) = (&*operator.inputs, &*operator.outputs) else { return None };
        self.is(operator, BuiltinOperator::RESHAPE).then_some(())?;
        let output = subgraph.tensor(*output)?;
        let shape = match &operator.options {
            Some(BuiltinOptions::Reshape(options)) if !options.new_shape.is_empty() => {
                &options.new_shape
            }
            _ => {
                let signature = output.shape_signature.as_ref();
                signature.filter(|signature| !signature.is_empty()).unwrap_or(&output.shape)
            }
        };
        // One dimension at most follows from the others. A tensor without elements says nothing to
        // onert, so there is no input for the shape of a scalar, which old options have as [0].
        let unknown = shape.iter().filter(|dim| **dim == -1).count();
        let is_shape = unknown <= 1 && shape.iter().all(|dim| *dim >= -1);
        (is_shape && !shape.is_empty() && **shape != [0]).then(|| shape.clone())
    }

    /// Stores constants of 16 bits as what is made of them.
    fn widen(&mut self, graph: u32, subgraph: &mut Subgraph) -> Result<()> {
        let (mut widened, mut dropped) = (HashMap::new(), HashSet::new());
        for at in 0..subgraph.operators.len() {
            let Some((half, output)) = self.half(graph, subgraph, at) else { continue };
            let buffer = match widened.get(&half.index()) {
                Some(buffer) => *buffer,
                None => self.wide(half)?,
            };
            widened.insert(half.index(), buffer);
            if let Some(tensor) = subgraph.tensors.get_mut(output) {
                tensor.buffer = buffer;
            }
            dropped.insert(at);
            let change = "DEQUANTIZE of a constant goes, whose elements are stored as FLOAT32";
            self.changed(graph, at, change.to_owned());
        }
        let mut places = 0..;
        subgraph.operators.retain(|_| places.next().is_none_or(|at| !dropped.contains(&at)));
        let used = subgraph.operators.iter().flat_map(|operator| &operator.inputs);
        let used = used.chain(&subgraph.inputs).chain(&subgraph.outputs);
        let used: HashSet<u32> = used.filter_map(|&input| u32::try_from(input).ok()).collect();
        for index in widened.into_keys().filter(|index| !used.contains(index)) {
            let at = usize::try_from(index).ok();
            let tensor = at.and_then(|at| subgraph.tensors.get_mut(at));
            self.freed.extend(tensor.map(|tensor| std::mem::take(&mut tensor.buffer)));
        }
        Ok(())
    }

    /// Returns the constant that an operator widens, and the position of what it makes.
    fn half(&self, graph: u32, subgraph: &Subgraph, at: usize) -> Option<(Tensor<'a>, usize)> {
        let operator = subgraph.operators.get(at)?;
        let (&[input], &[output]) = (&*operator.inputs, &*operator.outputs) else { return None };
        self.is(operator, BuiltinOperator::DEQUANTIZE).then_some(())?;
        let (from, to) = (subgraph.tensor(input)?, subgraph.tensor(output)?);
        let is_half =
            from.tensor_type == TensorType::Float16 && to.tensor_type == TensorType::Float32;
        let is_plain = from.sparsity.is_none() && from.shape == to.shape;
        // Some converters give each tensor a buffer of its own, without bytes.
        let is_made = self.model.buffer(to.buffer).is_some_and(Buffer::is_empty);
        let is_inside =
            ![&subgraph.inputs, &subgraph.outputs].iter().any(|side| side.contains(&output));
        let constant = self.constants.get(&(graph, u32::try_from(input).ok()?))?;
        (is_half && is_plain && is_made && is_inside)
            .then_some((*constant, usize::try_from(output).ok()?))
    }

    /// Adds a buffer with the elements of a constant in 32 bits; returns its position.
    fn wide(&mut self, half: Tensor<'_>) -> Result<u32> {
        self.budget.take(half.stored_extent()?.len().saturating_mul(2))?;
        let elements = half.read()?.to_f32()?;
        let data: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        Ok(self.model.add_buffer(data))
    }

    /// Takes the bytes out of buffers that nothing refers to any more.
    fn empty_buffers(&mut self) {
        for used in self.model.buffer_references() {
            self.freed.remove(used);
        }
        for buffer in std::mem::take(&mut self.freed) {
            let at = usize::try_from(buffer).ok();
            if let Some(place) = at.and_then(|at| self.model.buffers.get_mut(at)) {
                *place = Buffer::default();
            }
        }
    }

    fn is(&self, operator: &Operator, builtin: BuiltinOperator) -> bool {
        self.model.operator_code(operator).is_some_and(|code| code.operator() == builtin)
    }

    fn changed(&mut self, graph: u32, at: usize, change: String) {
        self.changes.push(Mended { path: format!("subgraph {graph}/operator {at}"), change });
    }
}
