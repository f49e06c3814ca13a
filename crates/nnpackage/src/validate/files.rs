//! Files of a package that are neither models nor kernels.

use std::collections::BTreeSet;

use circle_format::Diagnoses;
use model_archive::name;
use tensor_core::{At, Chain, text::short};

use super::golden;
use crate::{
    Diagnosis, Error, File, ModelFile, Reader, Sums,
    edit::needs,
    layout::{self, GOLDEN_EXPECTED, GOLDEN_INPUT, KERNELS, MANIFEST, is_model_info},
    read::storage::outside,
};

pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    for path in outside(reader.storage()) {
        let message = "is in the archive, but outside of the package";
        findings.push(Diagnosis::warning("nnp/stray-file", message).entry(path));
    }
    let root = reader.root();
    if !root.is_empty() {
        let message = format!(
            "package is in the folder {:?} of the archive, not at its root",
            short(root.trim_end_matches('/'))
        );
        findings.push(Diagnosis::warning("nnp/top-folder", message));
    }
    compressed(reader, findings);
    infos(reader, findings);
    needed(reader, findings);
    golden::check(reader, findings);
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

/// Other files that models need: that they are there, and as long as what is read from them.
fn needed(reader: &Reader, findings: &mut Diagnoses) {
    for file in reader.distinct_models() {
        let Some(model) = file.opened().map(circle_format::Reader::model) else { continue };
        findings.enter(Some(file.path().to_owned()));
        for location in model.run_models() {
            if let Err(fault) = found(reader, file, location) {
                let message = format!("runs the model {fault}");
                findings.push(Diagnosis::error("nnp/run-model", message));
            }
        }
        let groups = model.external_groups.iter();
        let found = |location: &Option<String>| Some(found(reader, file, location.as_deref()?));
        let groups: Vec<_> = groups.map(found).collect();
        for fault in groups.iter().flatten().filter_map(|found| found.as_ref().err()) {
            let message = format!("has weights in {fault}");
            findings.push(Diagnosis::error("nnp/weights", message));
        }
        for buffer in &model.external_buffers {
            let group = usize::try_from(buffer.group).ok().and_then(|group| groups.get(group));
            let Some(Some(Ok((path, len)))) = group else { continue };
            let (offset, needed) = (buffer.offset, buffer.len);
            if offset.checked_add(needed).is_none_or(|end| end > *len) {
                let message = format!(
                    "needs {needed} bytes at byte {offset} of {:?}, which has {len}",
                    short(path)
                );
                findings.push(Diagnosis::error("nnp/weights", message));
            }
        }
        findings.enter(None);
    }
}

/// Returns the path and the length of a file that a model names, or reads on from what it is.
fn found(reader: &Reader, file: ModelFile<'_>, location: &str) -> Result<(String, u64), String> {
    let Ok(path) = name::resolve(file.path(), location) else {
        return Err(format!("{:?}, which leads out of it", short(location)));
    };
    match File::new(reader, &path).len() {
        Ok(len) => Ok((path, len)),
        Err(_) => Err(format!("{:?}, which is not in the package", short(&path))),
    }
}

/// Information about models: that it is there, and JSON.
fn infos(reader: &Reader, findings: &mut Diagnoses) {
    let manifest = reader.manifest();
    for (index, name) in manifest.model_infos.iter().enumerate() {
        let path = layout::document(name);
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
            let diagnosis = Diagnosis::warning("nnp/model-info", reason(&error));
            findings.push(placed(diagnosis, &error).entry(file.path()).ignored());
        }
    }
}

/// Adds where in a text an error is.
fn placed(diagnosis: Diagnosis, error: &Error) -> Diagnosis {
    let At { line, column, .. } = error.at();
    match line.zip(column) {
        Some(place) => diagnosis.position(place),
        None => diagnosis,
    }
}

/// Returns what is wrong without the place in a text, which the finding has.
fn reason(error: &Error) -> String {
    match error {
        Error::Json { reason, .. } => reason.clone(),
        Error::Document { found, expected, .. } => format!("is {found}, expected {expected}"),
        error => Chain(error).to_string(),
    }
}

/// The list of digests: that it can be read. Verifying compares it with the files.
fn digests(reader: &Reader, findings: &mut Diagnoses) {
    let diagnosis = match reader.sums() {
        Ok(None) => return,
        Ok(Some(sums)) => {
            let message = format!("lists the digests of {} files", sums.iter().len());
            Diagnosis::note("nnp/digests", message)
        }
        Err(error) => placed(Diagnosis::error("nnp/digests", reason(&error)), &error),
    };
    findings.push(diagnosis.entry(Sums::PATH).ignored());
}

/// Files that nothing refers to.
fn unused(reader: &Reader, findings: &mut Diagnoses) {
    let manifest = reader.manifest();
    let mut used: BTreeSet<String> = manifest.models.iter().cloned().collect();
    used.extend([MANIFEST, Sums::PATH].map(str::to_owned));
    let named = manifest.configs.iter().chain(&manifest.model_infos);
    used.extend(named.chain(&manifest.connection_file).map(|name| layout::document(name)));
    used.extend(GOLDEN.map(str::to_owned));
    used.extend(needs::of_package(reader));
    let files = match reader.files() {
        Ok(files) => files,
        Err(error) => {
            let message = Chain(&error).to_string();
            findings.push(Diagnosis::error(error.rule(), message));
            return;
        }
    };
    for file in files {
        let path = file.path();
        if used.contains(path) || path.starts_with(KERNELS) {
            continue;
        }
        if reader.storage().is_folder(path) {
            let message = "is a symbolic link to a folder, which no archive can hold";
            findings.push(Diagnosis::warning("nnp/folder-link", message).entry(path).ignored());
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

const GOLDEN: [&str; 2] = [GOLDEN_INPUT, GOLDEN_EXPECTED];
