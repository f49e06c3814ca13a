//! The kernels in `custom_op`, against their names and the operators that the models use.

use std::collections::{BTreeMap, BTreeSet};

use circle_format::{Diagnoses, Need, is_builtin_custom};
use tensor_core::text::short;

#[cfg(feature = "kernels")]
use crate::custom_op::library::{LibraryFormat, is_same_arch};
use crate::{CustomOp, Diagnosis, Reaction, Reader};

pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    let used = used(reader);
    let mut provided = BTreeSet::new();
    // A folder that cannot be listed has its own finding.
    if let Ok(kernels) = reader.custom_ops() {
        for kernel in kernels {
            findings.enter(Some(kernel.file().path().to_owned()));
            check_kernel(kernel, &used, findings);
            provided.extend(kernel.name().map(|name| name.op));
            findings.enter(None);
        }
    }
    for (op, path) in &used {
        let shown = short(op).into_owned();
        let missing =
            if provided.contains(op.as_str()) { "" } else { "; custom_op has none for it" };
        let message = format!(
            "uses the custom operator {shown:?}, whose kernel the application has to \
             register{missing}"
        );
        let diagnosis = Diagnosis::note("nnp/custom-operator", message).entry(*path);
        findings.push(diagnosis.onert(Reaction::Needs(Need::Kernel)));
    }
}

/// Returns the custom operators of all models that need a kernel, with one model of each.
fn used(reader: &Reader) -> BTreeMap<String, &str> {
    let mut used = BTreeMap::new();
    for file in reader.distinct_models() {
        let Some(model) = file.opened() else { continue };
        let codes = model.model().operator_codes.iter().filter(|code| code.is_custom());
        for name in codes.filter_map(|code| code.custom_code.as_deref()) {
            if !is_builtin_custom(name) {
                used.entry(name.to_owned()).or_insert_with(|| file.path());
            }
        }
    }
    used
}

fn check_kernel(kernel: CustomOp<'_>, used: &BTreeMap<String, &str>, findings: &mut Diagnoses) {
    #[cfg(feature = "kernels")]
    if !check_library(kernel, findings) {
        return;
    }
    let Some(name) = kernel.name() else {
        let message = "has a name that is not \"lib<operator>.<arch>-<os>.<build>.a\"";
        findings.push(Diagnosis::warning("nnp/kernel-name", message).ignored());
        return;
    };
    if !used.contains_key(name.op) {
        let message = format!("is for operator {:?}, which no model uses", short(name.op));
        findings.push(Diagnosis::warning("nnp/kernel-unused", message).ignored());
    }
}

/// Looks into a kernel; tells whether it is a library.
#[cfg(feature = "kernels")]
fn check_library(kernel: CustomOp<'_>, findings: &mut Diagnoses) -> bool {
    let library = match kernel.library() {
        Ok(library) => library,
        Err(error) => {
            let message = tensor_core::Chain(&error).to_string();
            findings.push(Diagnosis::warning(error.rule(), message).ignored());
            return false;
        }
    };
    let Some(name) = kernel.name() else { return true };
    let format = library.format;
    let is_archive = format == LibraryFormat::Ar;
    if is_archive != (name.extension == "a") {
        let message =
            format!("is named \".{}\", but its format is {}", name.extension, format.name());
        findings.push(Diagnosis::warning("nnp/kernel-format", message).ignored());
    }
    if let Some(arch) = library.arch.as_deref().filter(|arch| !is_same_arch(name.arch, arch)) {
        let message = format!("is named for {:?}, but built for {arch:?}", short(name.arch));
        findings.push(Diagnosis::error("nnp/kernel-arch", message).ignored());
    }
    if is_archive && library.members.is_empty() {
        findings.push(Diagnosis::error("nnp/kernel-empty", "is an archive of no files").ignored());
    } else if library.exports.is_empty() {
        let message = "defines nothing that could be registered as a kernel";
        findings.push(Diagnosis::error("nnp/kernel-symbols", message).ignored());
    }
    true
}
