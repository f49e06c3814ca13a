//! Buffers and what is in them, without a look at the bytes.

use std::collections::BTreeMap;

use tensor_core::{Extent, text};

use crate::{ConstantFault, Diagnoses, Diagnosis, Reaction, Reader, Stage, Tensor, model::Buffer};

/// Checks the list of buffers.
pub(super) fn buffers(reader: &Reader, findings: &mut Diagnoses) {
    let model = reader.model();
    if model.buffers.first().is_some_and(|buffer| !buffer.is_empty()) {
        let message = "has bytes, expected none: tensors without a value have this buffer";
        findings.push(Diagnosis::warning("model/first-buffer", message).path("buffer 0"));
    }
    let mut external = BTreeMap::new();
    for (index, buffer) in model.buffers.iter().enumerate() {
        if buffer.is_external() {
            check_external(reader, index, buffer, findings);
            external.insert((buffer.offset, index), buffer.size);
        } else if buffer.offset == 1 || (buffer.offset == 0 && buffer.size != 0) {
            let message = format!(
                "has the offset {} and the size {}, which stand for no bytes",
                buffer.offset, buffer.size
            );
            let diagnosis = Diagnosis::warning("model/buffer-placeholder", message);
            findings.push(diagnosis.path(format!("buffer {index}")));
        }
    }
    overlaps(&external, findings);
}

fn check_external(reader: &Reader, index: usize, buffer: &Buffer, findings: &mut Diagnoses) {
    let (offset, size) = (buffer.offset, buffer.size);
    let mut fault = |rule, message: String| {
        let diagnosis = Diagnosis::error(rule, message).path(format!("buffer {index}"));
        findings.push(diagnosis.at(|at| at.offset(offset)));
    };
    if index == 0 {
        fault(
            "model/buffer-external",
            "is outside of the tables, expected an empty buffer".to_owned(),
        );
    }
    if !buffer.data.is_empty() {
        let message = "has bytes in the tables and outside of them, expected one of them";
        fault("model/buffer-external", message.to_owned());
    }
    if size == 0 {
        fault("model/buffer-external", format!("has no bytes at byte {offset}"));
    }
    if offset < 8 {
        fault("model/buffer-external", format!("starts at byte {offset}, inside the header"));
    }
    if reader.tables_len().is_some_and(|tables| offset >= 8 && offset < tables) {
        fault("model/buffer-external", format!("starts at byte {offset}, inside the tables"));
    }
    let file_len = reader.source().len();
    let fits = Extent::new(offset, size).is_ok_and(|extent| extent.end() <= file_len);
    if !fits {
        let message = format!("needs {size} bytes at byte {offset} of a file of {file_len} bytes");
        fault("model/buffer-out-of-bounds", message);
    }
    if !offset.is_multiple_of(ALIGNMENT) {
        let message = format!("starts at byte {offset}, which is not a multiple of {ALIGNMENT}");
        let diagnosis = Diagnosis::note("model/buffer-alignment", message);
        findings.push(diagnosis.path(format!("buffer {index}")));
    }
}

/// Finds bytes of two buffers, which are legal but seldom meant.
fn overlaps(external: &BTreeMap<(u64, usize), u64>, findings: &mut Diagnoses) {
    let mut before: Option<(u64, usize, u64)> = None;
    for (&(offset, index), &size) in external {
        let end = offset.saturating_add(size);
        if let Some((start, other, last)) = before
            && offset < last
            && (start, last) != (offset, end)
        {
            let message = format!("shares bytes with buffer {other}");
            let diagnosis = Diagnosis::note("model/buffer-overlap", message);
            findings.push(diagnosis.path(format!("buffer {index}")));
        }
        if before.is_none_or(|(_, _, last)| end > last) {
            before = Some((offset, index, end));
        }
    }
}

/// Checks every constant against its shape.
pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    for constant in reader.tensors() {
        let at = |diagnosis: Diagnosis| {
            let diagnosis = diagnosis.path(constant.path());
            match constant.name() {
                Some(name) => diagnosis.at(|at| at.tensor(text::short(name))),
                None => diagnosis,
            }
        };
        if let Err(fault) = length(constant) {
            let is_short = matches!(
                &fault,
                ConstantFault::WrongLength { expected, found, .. } if found < expected
            );
            let is_long = matches!(fault, ConstantFault::WrongLength { .. }) && !is_short;
            let (rule, message) = (fault.rule(), fault.to_string());
            let diagnosis = at(Diagnosis::error(rule, &*message));
            findings.push(match fault {
                ConstantFault::OtherFile { .. } => at(Diagnosis::warning(rule, message)),
                ConstantFault::Core(_) => diagnosis.undefined(Stage::Prepare),
                _ if is_short => diagnosis.onert(Reaction::Garbage),
                _ if is_long => diagnosis.ignored(),
                _ => diagnosis,
            });
        }
        if constant.is_external() {
            let message = "has its elements outside of the tables, where onert 0.1.0 does not look";
            let diagnosis = Diagnosis::warning("model/external-constant", message);
            findings.push(at(diagnosis).undefined(Stage::Prepare));
        }
    }
}

fn length(constant: Tensor<'_>) -> Result<(), ConstantFault> {
    let extent = match constant.place() {
        // The buffer has a finding of its own.
        Err(ConstantFault::OutOfBounds { .. } | ConstantFault::NoBuffer { .. }) => return Ok(()),
        extent => extent?,
    };
    match constant.check_length(extent.len()) {
        // Its levels are checked instead; a negative dimension has a finding of its own.
        Err(ConstantFault::Sparse | ConstantFault::Shape { .. }) => Ok(()),
        result => result,
    }
}

/// What writers align buffers outside of the tables to.
const ALIGNMENT: u64 = 16;
