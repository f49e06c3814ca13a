//! The models that a manifest names: that they are there, and what they are declared to be.

use std::collections::BTreeMap;

use circle_format::Diagnoses;
use tensor_core::text::short;

use crate::{
    Content, Diagnosis, Error, FileFault, ModelFile, ModelType, Reader, Stage, layout::MANIFEST,
    nearest::nearest,
};

pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    names(reader, findings);
    types(reader, findings);
    for file in reader.models() {
        let content = present(reader, file, findings);
        declared(reader, file, content, findings);
    }
    for file in reader.distinct_models() {
        if file.is_model() {
            structure(reader, file, findings);
        }
    }
}

/// Names that stand twice, or that are one once a tool drops their folders.
fn names(reader: &Reader, findings: &mut Diagnoses) {
    let (mut paths, mut names) = (BTreeMap::new(), BTreeMap::new());
    for file in reader.models() {
        let (path, index) = (file.path(), file.index());
        let name = path.rsplit('/').next().unwrap_or(path);
        let message = if let Some(before) = paths.insert(path, index) {
            format!("models[{index}] is {:?}, as models[{before}] is", short(path))
        } else if let Some(before) = names.insert(name, index) {
            format!(
                "models[{index}] has the name {:?} of models[{before}], which the packaging tool \
                 puts into one file",
                short(name)
            )
        } else {
            continue;
        };
        let diagnosis = Diagnosis::warning("nnp/model-name", message);
        findings.push(place(reader, diagnosis, index).ignored());
    }
}

/// Whether there are as many types as models.
fn types(reader: &Reader, findings: &mut Diagnoses) {
    let manifest = reader.manifest();
    let models = manifest.models.len();
    let Some(types) = &manifest.model_types else {
        let message = "has no model-types, which 1.3.1 allows; extensions tell the types";
        let diagnosis = Diagnosis::warning("nnp/model-types-missing", message);
        let diagnosis = diagnosis.hint("name them, as onert 0.1.0 does not look at extensions");
        findings.push(at_manifest(diagnosis.load_fails("Failed to open  loader"), "/model-types"));
        return;
    };
    let found = types.len();
    if found < models {
        let message = format!("has {found} model-types for {models} models");
        let diagnosis = Diagnosis::error("nnp/model-types-count", message);
        findings.push(at_manifest(diagnosis.load_fails("Failed to open  loader"), "/model-types"));
    } else if found > models {
        let message = format!("has {found} model-types for {models} models");
        let diagnosis = Diagnosis::warning("nnp/model-types-count", message).ignored();
        findings.push(at_manifest(diagnosis, "/model-types"));
    }
}

/// Finds out whether a model is there, and what it is.
fn present(reader: &Reader, file: ModelFile<'_>, findings: &mut Diagnoses) -> Option<Content> {
    let path = file.path();
    let error = match file.content() {
        Ok(Content::Empty) if path.is_empty() => return None,
        Ok(Content::Empty) => {
            let diagnosis = Diagnosis::error("nnp/empty-model", "is empty, expected a model");
            let diagnosis = diagnosis.load_fails("mmap failed - Invalid argument");
            findings.push(place(reader, diagnosis, file.index()).entry(path));
            return None;
        }
        Ok(content) => return Some(content),
        Err(error) => error,
    };
    let diagnosis = Diagnosis::error(error.rule(), tensor_core::Chain(&error).to_string());
    let diagnosis = place(reader, diagnosis, file.index());
    findings.push(match &error {
        Error::File { fault: FileFault::Path(_), .. } if path.is_empty() => {
            diagnosis.load_fails("mmap failed - No such device")
        }
        Error::File { fault: FileFault::Path(_) | FileFault::Outside, .. } => {
            diagnosis.onert(crate::Reaction::Follows)
        }
        Error::File { fault: FileFault::Missing, .. } => {
            // What is not listed needs no hint, and there may be very many.
            let is_full = findings.is_full(error.rule());
            let other = (!is_full).then(|| other_case(reader, path)).flatten();
            let diagnosis = match other {
                Some(other) => diagnosis.hint(format!("{other:?} may have been meant")),
                None => diagnosis,
            };
            // It names the whole path, which is another one on every machine.
            diagnosis.load_fails("Failed to open file")
        }
        Error::File { fault: FileFault::Folder, .. } => {
            diagnosis.load_fails("mmap failed - No such device")
        }
        _ => diagnosis,
    });
    None
}

/// Returns a file that has nearly this path.
fn other_case<'a>(reader: &'a Reader, path: &str) -> Option<&'a str> {
    let paths = reader.paths().ok()?;
    let last = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    let same = paths.iter().find(|found| found.eq_ignore_ascii_case(path));
    let same = same.or_else(|| paths.iter().find(|found| last(found).eq_ignore_ascii_case(path)));
    same.map(String::as_str).or_else(|| nearest(path, paths.iter().take(256).map(String::as_str)))
}

/// Compares the declared type with what the file is.
fn declared(
    reader: &Reader,
    file: ModelFile<'_>,
    content: Option<Content>,
    findings: &mut Diagnoses,
) {
    let index = file.index();
    let diagnosis = match (file.model_type(), content) {
        (None, _) if file.declared_type().is_none() && reader.manifest().model_types.is_none() => {
            let message = format!(
                "models[{index}] is {:?}, of which neither model-types nor an extension says what \
                 it is",
                short(file.path())
            );
            Diagnosis::error("nnp/model-type", message).load_fails("Failed to open  loader")
        }
        (Some(ModelType::Other(name)), _) => unknown_type(index, name),
        (Some(found @ (ModelType::Bin | ModelType::Tvn)), _) => {
            let message = format!(
                "model-types[{index}] is \"{found}\", which the format has, but no released onert \
                 loads without a library lib{found}_loader.so"
            );
            let diagnosis = Diagnosis::warning("nnp/model-type-loader", message);
            diagnosis.load_fails(format!("Failed to open {found} loader"))
        }
        (Some(found), Some(content)) => match (found.schema(), content.schema()) {
            (Some(declared), Some(schema)) if declared != schema => {
                let message = format!(
                    "models[{index}] is declared \"{declared}\", but its identifier says \
                     \"{schema}\""
                );
                Diagnosis::error("nnp/model-type-differs", message).ignored()
            }
            (Some(declared), None) => {
                let message =
                    format!("models[{index}] is declared \"{declared}\", but is {content}");
                Diagnosis::error("nnp/model-content", message).undefined(Stage::Load)
            }
            _ => return,
        },
        _ => return,
    };
    let place = reader.parsed().type_places.get(index).copied();
    let diagnosis = at_manifest(diagnosis, &format!("/model-types/{index}"));
    findings.push(match place {
        Some(position) => diagnosis.position(position),
        None => diagnosis,
    });
}

fn unknown_type(index: usize, name: &str) -> Diagnosis {
    let shown = short(name).into_owned();
    let message =
        format!("model-types[{index}] is {shown:?}, expected \"tflite\", \"circle\" or \"bin\"");
    let failed = format!("Failed to open {shown} loader");
    if name.contains('/') {
        let message = format!(
            "model-types[{index}] is {shown:?}, which makes onert load a library from a path of the \
             package's choosing"
        );
        return Diagnosis::error("nnp/model-type-path", message).load_fails(failed);
    }
    let diagnosis = Diagnosis::error("nnp/model-type", message).load_fails(failed);
    let known = ["tflite", "circle", "bin", "tvn"];
    match nearest(name.trim(), known.into_iter()) {
        Some(known) => diagnosis.hint(format!("{known:?} may have been meant")),
        None => diagnosis,
    }
}

/// Opens a model and checks what is in it.
fn structure(reader: &Reader, file: ModelFile<'_>, findings: &mut Diagnoses) {
    match file.open() {
        Ok(model) => {
            findings.enter(Some(file.path().to_owned()));
            model.diagnose(findings);
            findings.enter(None);
        }
        Err(error) => {
            let message = tensor_core::Chain(&error).to_string();
            let diagnosis = Diagnosis::error(error.rule(), message).entry(file.path());
            findings.push(place(reader, diagnosis, file.index()).undefined(Stage::Load));
        }
    }
}

/// Adds where the manifest names a model.
fn place(reader: &Reader, diagnosis: Diagnosis, index: usize) -> Diagnosis {
    let place = reader.parsed().model_places.get(index).copied();
    let diagnosis = match &diagnosis.finding.at.entry {
        Some(_) => return diagnosis,
        None => at_manifest(diagnosis, &format!("/models/{index}")),
    };
    match place {
        Some(position) => diagnosis.position(position),
        None => diagnosis,
    }
}

pub(super) fn at_manifest(diagnosis: Diagnosis, pointer: &str) -> Diagnosis {
    diagnosis.entry(MANIFEST).path(pointer)
}
