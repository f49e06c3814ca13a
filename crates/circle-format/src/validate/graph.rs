//! Graphs: their tensors, and what flows between operators.

use std::collections::{BTreeSet, HashMap};

use tensor_core::text;

use crate::{
    Diagnoses, Diagnosis, Need, Reaction, Reader, Stage,
    model::{Subgraph, Tensor, TensorType},
};

use super::{operators, quantization, runtime::Operators};

/// Checks all graphs.
pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    let model = reader.model();
    let external = model.external_buffers.iter().map(|buffer| buffer.id).collect();
    let known = Operators::of(model, &operators::called(model));
    for (index, subgraph) in model.subgraphs.iter().enumerate() {
        check_one(reader, index, subgraph, &external, &known, findings);
    }
}

fn check_one(
    reader: &Reader,
    index: usize,
    subgraph: &Subgraph,
    external: &BTreeSet<u32>,
    known: &Operators,
    findings: &mut Diagnoses,
) {
    let mut check = Check { reader, index, subgraph, external, findings };
    check.tensors();
    check.lists();
    for (at, operator) in subgraph.operators.iter().enumerate() {
        operators::check(reader, index, subgraph, at, operator, check.findings);
        known.while_loading(index, at).into_iter().for_each(|found| check.findings.push(found));
    }
    known.after_loading(index).for_each(|found| check.findings.push(found));
    check.flow();
}

struct Check<'a, 'f> {
    reader: &'a Reader,
    index: usize,
    subgraph: &'a Subgraph,
    /// The ids of buffers in other files.
    external: &'a BTreeSet<u32>,
    findings: &'f mut Diagnoses,
}

impl<'a> Check<'a, '_> {
    fn tensors(&mut self) {
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (at, tensor) in self.subgraph.tensors.iter().enumerate() {
            self.name(at, tensor, &mut names);
            self.tensor_type(at, tensor);
            self.shape(at, tensor);
            self.buffer(at, tensor);
            let path = self.path(at, tensor);
            quantization::check(self.subgraph, tensor, &path, self.findings);
        }
    }

    fn name(&mut self, at: usize, tensor: &'a Tensor, names: &mut HashMap<&'a str, usize>) {
        let Some(name) = tensor.name.as_deref() else {
            let message = "has no name, which the schema allows";
            let diagnosis = Diagnosis::warning("model/tensor-name", message);
            self.push(at, tensor, diagnosis.crashes(Stage::Load));
            return;
        };
        if let Some(before) = names.insert(name, at) {
            let message = format!("has the name of tensor {before}");
            self.push(at, tensor, Diagnosis::warning("model/duplicate-name", message).ignored());
        }
    }

    fn tensor_type(&mut self, at: usize, tensor: &Tensor) {
        let found = tensor.tensor_type;
        if let TensorType::Unknown(code) = found {
            let schema = self.reader.model().schema;
            let message = format!("has element type {code}, which {schema} does not have");
            let diagnosis = Diagnosis::error("model/element-type", message);
            self.push(at, tensor, diagnosis.load_fails("Unsupported tensor type: "));
        } else if !LOADED.contains(&found) {
            let message = format!("has elements of {found}, which onert 0.1.0 does not load");
            let diagnosis = Diagnosis::warning("model/onert-element-type", message);
            self.push(
                at,
                tensor,
                diagnosis.load_fails(format!("Unsupported tensor type: {found}")),
            );
        }
    }

    fn shape(&mut self, at: usize, tensor: &Tensor) {
        let rank = tensor.shape.len();
        if let Some(dim) = tensor.shape.iter().find(|dim| **dim < 0) {
            let message = format!("has the dimension {dim} in its shape, expected 0 or more");
            self.push(at, tensor, Diagnosis::error("model/shape", message));
        }
        let limit = self.reader.limits().rank;
        if rank as u64 > limit {
            let message = format!("has rank {rank}, over the limit of {limit} (Limits::rank)");
            self.push(at, tensor, Diagnosis::error("model/limit", message));
        }
        let Some(signature) = &tensor.shape_signature else { return };
        let pairs = signature.iter().zip(&tensor.shape);
        let fits = |(known, dim): (&i32, &i32)| *known == -1 || known == dim;
        // Writers leave an empty one for what has no unknown dimension.
        if !signature.is_empty() && (signature.len() != rank || !pairs.into_iter().all(fits)) {
            let message = format!(
                "has a shape signature of rank {} that does not fit its shape of rank {rank}",
                signature.len()
            );
            self.push(at, tensor, Diagnosis::error("model/shape-signature", message));
        }
    }

    fn buffer(&mut self, at: usize, tensor: &Tensor) {
        let model = self.reader.model();
        if model.buffer(tensor.buffer).is_none() {
            let count = model.buffers.len();
            let message = format!("has buffer {}, but the model has {count}", tensor.buffer);
            let diagnosis = Diagnosis::error("model/buffer-index", message);
            self.push(at, tensor, diagnosis.undefined(Stage::Load));
        }
        let id = tensor.external_buffer;
        if id != 0 && !self.external.contains(&id) {
            let message = format!("has external buffer {id}, which the model does not have");
            self.push(at, tensor, Diagnosis::error("model/external-buffer", message));
        }
    }

    /// Checks inputs and outputs of the graph.
    fn lists(&mut self) {
        let (subgraph, is_main) = (self.subgraph, self.index == 0);
        for (side, list) in [("inputs", &subgraph.inputs), ("outputs", &subgraph.outputs)] {
            let mut seen = BTreeSet::new();
            for (at, &index) in list.iter().enumerate() {
                let Some(tensor) = subgraph.tensor(index) else {
                    let count = subgraph.tensors.len();
                    let message =
                        format!("{side}[{at}] is tensor {index}, but the graph has {count}");
                    let diagnosis = Diagnosis::error("model/tensor-index", message);
                    self.at_graph(match index {
                        0.. => diagnosis.undefined(Stage::Load),
                        _ => diagnosis.crashes(Stage::Prepare),
                    });
                    continue;
                };
                if !seen.insert(index) {
                    let message = format!("{side}[{at}] is tensor {index}, which is listed before");
                    self.at_graph(Diagnosis::warning("model/listed-twice", message));
                }
                if is_main {
                    self.interface(side, at, index, tensor);
                }
            }
        }
        if !operators::metadata_exists(self.reader.model(), subgraph.debug_metadata_index) {
            let (index, count) =
                (subgraph.debug_metadata_index, self.reader.model().metadata.len());
            let message = format!("has metadata {index}, but the model has {count}");
            self.at_graph(Diagnosis::warning("model/debug-metadata", message).ignored());
        }
        if subgraph.outputs.is_empty() {
            self.at_graph(Diagnosis::warning("model/no-outputs", "has no outputs"));
        }
    }

    /// Checks what onert's interface can say of an input or output.
    fn interface(&mut self, side: &str, at: usize, index: i32, tensor: &Tensor) {
        let found = tensor.tensor_type;
        let what = format!("{side}[{at}], tensor {index},");
        if LOADED.contains(&found) && !REPRESENTABLE.contains(&found) {
            let message =
                format!("{what} has elements of {found}, which onert's interface has not");
            let diagnosis = Diagnosis::warning("model/onert-interface-type", message);
            let failed = "Error: Model has type that runtime API does not support.";
            self.at_graph(diagnosis.run_fails(failed));
        }
        if tensor.shape.len() > MAX_RANK {
            let rank = tensor.shape.len();
            let message =
                format!("{what} has rank {rank}, but onert's interface has room for {MAX_RANK}");
            let diagnosis = Diagnosis::warning("model/onert-interface-rank", message);
            self.at_graph(diagnosis.undefined(Stage::Prepare));
        }
        if tensor.is_dynamic() {
            let message = format!("{what} has a dimension that is only known at run time");
            let diagnosis = Diagnosis::note("model/dynamic-dimension", message);
            self.at_graph(diagnosis.onert(Reaction::Needs(Need::Shape)));
        }
    }

    /// Checks that each value is made once, and before it is read.
    fn flow(&mut self) {
        let (mut state, makers) = (self.initial(), self.makers());
        for (at, operator) in self.subgraph.operators.iter().enumerate() {
            for &input in &operator.inputs {
                let Some(slot) = slot(&mut state, input) else { continue };
                if *slot == Value::Empty {
                    *slot = Value::Reported;
                    let message =
                        format!("operator {at} reads tensor {input}, which has no elements");
                    let diagnosis = Diagnosis::warning("model/onert-empty", message);
                    self.at_graph(diagnosis.crashes(Stage::Run));
                    continue;
                }
                if *slot == Value::Missing {
                    // Reported once.
                    *slot = Value::Reported;
                    let made = makers.get(&input).copied();
                    let message = match made {
                        Some(later) => format!(
                            "operator {at} reads tensor {input}, which operator {later} makes later"
                        ),
                        None => format!("operator {at} reads tensor {input}, which nothing makes"),
                    };
                    self.at_graph(match made {
                        Some(_) => Diagnosis::error("model/order", message),
                        None => Diagnosis::error("model/undefined-tensor", message)
                            .undefined(Stage::Prepare),
                    });
                }
            }
            for &output in &operator.outputs {
                let Some(slot) = slot(&mut state, output) else { continue };
                let before = std::mem::replace(slot, Value::Made);
                let message = match before {
                    Value::Made => {
                        format!("operator {at} makes tensor {output}, which is made before")
                    }
                    Value::Input => {
                        format!("operator {at} makes tensor {output}, an input of the graph")
                    }
                    Value::Constant => format!("operator {at} makes tensor {output}, a constant"),
                    _ => continue,
                };
                self.at_graph(Diagnosis::error("model/made-twice", message));
            }
        }
        for (at, &output) in self.subgraph.outputs.iter().enumerate() {
            if slot(&mut state, output).is_some_and(|slot| *slot == Value::Missing) {
                let message = format!("outputs[{at}] is tensor {output}, which nothing makes");
                self.at_graph(Diagnosis::error("model/undefined-tensor", message));
            }
        }
    }

    /// Returns what has a value before the first operator runs.
    fn initial(&self) -> Vec<Value> {
        let model = self.reader.model();
        let has_bytes = |tensor: &Tensor| {
            tensor.external_buffer != 0
                || model.buffer(tensor.buffer).is_some_and(|buffer| !buffer.is_empty())
        };
        let value = |tensor: &Tensor| {
            let elements = tensor.shape().and_then(|shape| shape.elements().ok());
            if tensor.is_variable {
                Value::Variable
            } else if has_bytes(tensor) {
                Value::Constant
            } else if elements == Some(0) {
                Value::Empty
            } else {
                Value::Missing
            }
        };
        let mut state: Vec<Value> = self.subgraph.tensors.iter().map(value).collect();
        for &input in &self.subgraph.inputs {
            if let Some(slot) = slot(&mut state, input) {
                *slot = Value::Input;
            }
        }
        state
    }

    /// Returns the first operator that makes each tensor.
    fn makers(&self) -> HashMap<i32, usize> {
        let mut makers = HashMap::new();
        for (at, operator) in self.subgraph.operators.iter().enumerate() {
            for &output in &operator.outputs {
                makers.entry(output).or_insert(at);
            }
        }
        makers
    }

    fn path(&self, at: usize, tensor: &Tensor) -> String {
        let name = tensor.name.as_deref().map(|name| format!(" {:?}", text::short(name)));
        format!("subgraph {}/tensor {at}{}", self.index, name.unwrap_or_default())
    }

    fn push(&mut self, at: usize, tensor: &Tensor, diagnosis: Diagnosis) {
        let diagnosis = diagnosis.path(self.path(at, tensor));
        self.findings.push(match &tensor.name {
            Some(name) => diagnosis.at(|at| at.tensor(text::short(name))),
            None => diagnosis,
        });
    }

    fn at_graph(&mut self, diagnosis: Diagnosis) {
        self.findings.push(diagnosis.path(format!("subgraph {}", self.index)));
    }
}

/// Where a tensor has its value from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Missing,
    Reported,
    Constant,
    /// Has no elements, and may be made: as the output of a split, say.
    Empty,
    Input,
    Variable,
    Made,
}

fn slot(state: &mut [Value], index: i32) -> Option<&mut Value> {
    state.get_mut(usize::try_from(index).ok()?)
}

/// Element types that onert 0.1.0 loads.
const LOADED: &[TensorType] = &[
    TensorType::Float32,
    TensorType::Float16,
    TensorType::Int32,
    TensorType::Uint8,
    TensorType::Int64,
    TensorType::Bool,
    TensorType::Int16,
    TensorType::Int8,
    TensorType::Uint32,
    TensorType::GgmlQ4_0,
    TensorType::GgmlQ8_0,
];

/// Those that inputs and outputs can have.
const REPRESENTABLE: &[TensorType] = &[
    TensorType::Float32,
    TensorType::Int32,
    TensorType::Uint8,
    TensorType::Bool,
    TensorType::Int64,
    TensorType::Int8,
];

/// Dimensions of an input or output.
const MAX_RANK: usize = 6;
