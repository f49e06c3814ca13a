//! Files of a package that are neither models nor kernels.

use std::collections::BTreeSet;

use circle_format::{Diagnoses, model::Tensor};
use model_archive::name;
use tensor_core::{DType, text::short};

use crate::{
    Diagnosis, Error, IoRef, ModelFile, Reader, Sums, edit::needs, golden, read::is_model_info,
};

pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    let root = reader.root();
    if !root.is_empty() {
        let message = format!(
            "package is in the folder {:?} of the archive, not at its root",
            short(root.trim_end_matches('/'))
        );
        findings.push(Diagnosis::note("nnp/top-folder", message));
    }
    for stray in reader.storage().strays() {
        let message = "is in the archive, but outside of the package";
        findings.push(Diagnosis::warning("nnp/stray-file", message).entry(stray));
    }
    compressed(reader, findings);
    infos(reader, findings);
    other_models(reader, findings);
    golden(reader, findings);
    digests(reader, findings);
    unused(reader, findings);
}

/// Models that cannot be used where they lie.
fn compressed(reader: &Reader, findings: &mut Diagnoses) {
    if reader.archive().is_none() {
        return;
    }
    for model in reader.distinct_models() {
        if model.file().extent().is_ok_and(|extent| extent.is_none()) {
            let message = "is a model that is compressed, so that it has to be unpacked to be read";
            findings.push(Diagnosis::note("nnp/model-compressed", message).entry(model.path()));
        }
    }
}

/// Files that models run by `RUN_MODEL`: that they are there.
fn other_models(reader: &Reader, findings: &mut Diagnoses) {
    for (file, location) in locations(reader) {
        let path = match &location {
            Ok(path) if reader.file(path).is_some() => continue,
            Ok(path) | Err(path) => short(path),
        };
        let fault = if location.is_ok() { "is not in the package" } else { "leads out of it" };
        let message = format!("runs the model {path:?}, which {fault}");
        findings.push(Diagnosis::error("nnp/run-model", message).entry(file.path()));
    }
}

/// Returns the models of a package that run another one, with its path in the package; as it is
/// stored where that leads out.
fn locations(reader: &Reader) -> Vec<(ModelFile<'_>, Result<String, String>)> {
    let mut found = Vec::new();
    for file in reader.distinct_models() {
        let is_model = file.content().is_ok_and(|content| content.schema().is_some());
        let Some(model) = is_model.then(|| file.open().ok()).flatten() else { continue };
        for location in model.model().run_models() {
            let path = name::resolve(file.path(), location);
            found.push((file, path.map_err(|_| location.to_owned())));
        }
    }
    found
}

/// Information about models: that it is there, and JSON.
fn infos(reader: &Reader, findings: &mut Diagnoses) {
    let manifest = reader.manifest();
    for (index, name) in manifest.model_infos.iter().enumerate() {
        let path = format!("metadata/{name}");
        if !name.is_empty() && reader.file(&path).is_none() {
            let message =
                format!("model-infos[{index}] is {:?}, which is not in metadata", short(name));
            let diagnosis = Diagnosis::warning("nnp/model-info", message).ignored();
            findings.push(super::models::at_manifest(diagnosis, &format!("/model-infos/{index}")));
        }
    }
    let Ok(infos) = reader.model_infos() else { return };
    for (file, info) in infos {
        if let Err(error) = info {
            let diagnosis = Diagnosis::warning("nnp/model-info", error.message());
            findings.push(placed(diagnosis, &error).entry(file.path()).ignored());
        }
    }
}

/// Adds where in a text an error is.
fn placed(mut diagnosis: Diagnosis, error: &Error) -> Diagnosis {
    (diagnosis.at.line, diagnosis.at.column) = (error.at().line, error.column());
    diagnosis
}

/// The list of digests: that it can be read. Verifying compares it with the files.
fn digests(reader: &Reader, findings: &mut Diagnoses) {
    let diagnosis = match reader.sums() {
        Ok(None) => return,
        Ok(Some(sums)) => {
            let message = format!("lists the digests of {} files", sums.iter().len());
            Diagnosis::note("nnp/digests", message)
        }
        Err(error) => placed(Diagnosis::error("nnp/digests", error.message()), &error),
    };
    findings.push(diagnosis.entry(Sums::PATH).ignored());
}

/// Golden data come in pairs, one value for each input and output of the package.
fn golden(reader: &Reader, findings: &mut Diagnoses) {
    let found = [reader.golden_input(), reader.golden_expected()];
    if let [Some(_), None] | [None, Some(_)] = found {
        let missing = if found[0].is_some() { golden::EXPECTED } else { golden::INPUT };
        let message = format!("golden data are not complete: {missing:?} is missing");
        findings.push(Diagnosis::warning("nnp/golden-incomplete", message).entry(missing));
    }
    let interface = interface(reader);
    for (side, data) in found.into_iter().enumerate() {
        let Some(data) = data else { continue };
        let path = data.file().path();
        let values = match data.values() {
            Ok(values) => values,
            Err(error) => {
                let message = tensor_core::Chain(&error).to_string();
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
fn differences(values: &[tensor_core::Tensor], expected: &[&Tensor]) -> Vec<String> {
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

/// Files that nothing refers to.
fn unused(reader: &Reader, findings: &mut Diagnoses) {
    let manifest = reader.manifest();
    let mut used: BTreeSet<String> = manifest.models.iter().cloned().collect();
    used.extend([crate::read::storage::MANIFEST, Sums::PATH].map(str::to_owned));
    let named = manifest.configs.iter().chain(&manifest.model_infos);
    used.extend(named.chain(&manifest.connection_file).map(|name| format!("metadata/{name}")));
    used.extend(GOLDEN.map(str::to_owned));
    used.extend(needs::of_package(reader));
    let files = match reader.files() {
        Ok(files) => files,
        Err(error) => {
            let message = tensor_core::Chain(&error).to_string();
            findings.push(Diagnosis::error(error.rule(), message));
            return;
        }
    };
    for file in files {
        let path = file.path();
        if used.contains(path) || path.starts_with("custom_op/") {
            continue;
        }
        let message = if is_model_info(path) {
            "is information about a model that nothing reads and the manifest does not name"
        } else {
            "is in the package, but the manifest does not name it"
        };
        findings.push(Diagnosis::note("nnp/unreferenced-file", message).entry(path).ignored());
    }
}

const GOLDEN: [&str; 2] = [golden::INPUT, golden::EXPECTED];
