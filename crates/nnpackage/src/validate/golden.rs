//! Golden data, against the inputs and outputs that they are for.

use circle_format::Diagnoses;
#[cfg(feature = "golden")]
use circle_format::model::Tensor;
#[cfg(feature = "golden")]
use tensor_core::{Chain, DType, TensorBuf};

use crate::{
    Diagnosis, Reader,
    layout::{GOLDEN_EXPECTED, GOLDEN_INPUT},
};
#[cfg(feature = "golden")]
use crate::{GoldenData, IoRef};

/// Golden data come in pairs, one value for each input and output of the package.
pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    let found = [reader.golden_input(), reader.golden_expected()];
    if let [Some(_), None] | [None, Some(_)] = found {
        let missing = if found[0].is_some() { GOLDEN_EXPECTED } else { GOLDEN_INPUT };
        let message = format!("golden data are not complete: {missing:?} is missing");
        findings.push(Diagnosis::warning("nnp/golden-incomplete", message).entry(missing));
    }
    #[cfg(feature = "golden")]
    values(reader, found, findings);
}

/// Compares golden data with the inputs and outputs of the package.
#[cfg(feature = "golden")]
fn values(reader: &Reader, found: [Option<GoldenData<'_>>; 2], findings: &mut Diagnoses) {
    let interface = interface(reader);
    for (side, data) in found.into_iter().enumerate() {
        let Some(data) = data else { continue };
        let path = data.file().path();
        let values = match data.values() {
            Ok(values) => values,
            Err(error) => {
                let message = Chain(&error).to_string();
                findings.push(Diagnosis::warning(error.rule(), message).entry(path));
                continue;
            }
        };
        let Some(expected) = interface.as_ref().and_then(|sides| sides.get(side)) else { continue };
        for message in differences(&values, expected) {
            findings.push(Diagnosis::warning("nnp/golden-differs", message).entry(path));
        }
    }
}

/// Compares golden data with the tensors that they are for.
#[cfg(feature = "golden")]
fn differences(values: &[TensorBuf], expected: &[&Tensor]) -> Vec<String> {
    if values.len() != expected.len() {
        return vec![format!("has {} values, expected {}", values.len(), expected.len())];
    }
    let mut messages = Vec::new();
    for (index, (value, tensor)) in values.iter().zip(expected).enumerate() {
        let (found, info) = (value.info(), tensor.shape());
        let shape_differs = info.is_some_and(|shape| shape != found.shape) && !tensor.is_dynamic();
        // Bool and asymmetric 8-bit numbers are both stored as bytes.
        let dtype = match tensor.dtype() {
            Some(DType::Bool) => Some(DType::U8),
            dtype => dtype,
        };
        if shape_differs || dtype.is_some_and(|dtype| dtype != found.dtype) {
            let (dims, types) =
                (tensor.shape.iter().take(16).collect::<Vec<_>>(), tensor.tensor_type);
            messages.push(format!("has value {index} of {found}, expected {types} {dims:?}"));
        }
    }
    messages
}

/// Returns the inputs and the outputs of the package; `None` where that cannot be told.
#[cfg(feature = "golden")]
fn interface(reader: &Reader) -> Option<[Vec<&Tensor>; 2]> {
    let manifest = reader.manifest();
    let tensor = |reference: &IoRef, is_input: bool| {
        let model = reader.model(reference.model.into())?.open().ok()?.model();
        let graph = model.subgraphs.get(usize::from(reference.subgraph))?;
        let list = if is_input { &graph.inputs } else { &graph.outputs };
        graph.tensor(*list.get(usize::try_from(reference.io).ok()?)?)
    };
    if reader.models().len() == 1 {
        let graph = reader.model(0)?.open().ok()?.model().subgraphs.first()?;
        let inputs = graph.input_tensors().collect::<Option<_>>()?;
        return Some([inputs, graph.output_tensors().collect::<Option<_>>()?]);
    }
    let inputs = manifest.pkg_inputs.iter().map(|input| tensor(input, true));
    let outputs = manifest.pkg_outputs.iter().map(|output| tensor(output, false));
    Some([inputs.collect::<Option<_>>()?, outputs.collect::<Option<_>>()?])
}
