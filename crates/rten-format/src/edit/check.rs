//! Whether constants that are to be written have their elements, and models no new errors.

use tensor_core::Report;

use crate::{Constant, Error, Fault, Model, NodeKind, Reader, Result, topology};

/// Refuses what has an error that was not there before.
pub(crate) fn sound(after: &Report, before: &Report) -> Result<()> {
    match after.new_error_since(before) {
        None => Ok(()),
        Some(finding) => {
            let path = finding.at.path.unwrap_or_else(|| "model".to_owned());
            Err(Error::Invalid { path, message: finding.message })
        }
    }
}

/// What becomes of constants of an unknown element type, whose length nobody can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They stay where they are.
    Kept,
    /// They would have to be moved.
    Refused,
}

/// Proves that every constant of a model has the elements that its shape needs, in itself or by a
/// data offset in the file of `reader`.
pub(crate) fn elements(reader: &Reader, model: &Model, unknown: Unknown) -> Result<()> {
    let mut first = None;
    let scopes = topology::walk(&model.graph, |scope, id, node| {
        if let (None, NodeKind::Constant(constant)) = (&first, &node.kind)
            && let Err(fault) = constant_has_elements(reader, constant)
            && (unknown == Unknown::Refused || !matches!(fault, Fault::UnknownDtype { .. }))
        {
            first = Some((scope, id, fault));
        }
    });
    let Some((scope, id, fault)) = first else { return Ok(()) };
    let path = scopes.get(scope).map(|scope| scope.node_path(id)).unwrap_or_default();
    Err(Error::Constant { path: path.into(), fault })
}

fn constant_has_elements(reader: &Reader, constant: &Constant) -> Result<(), Fault> {
    match (constant.data_offset, &constant.data) {
        (None, None) => Err(Fault::NoData),
        (None, Some(_)) => constant.inline().map(drop),
        (Some(offset), _) => {
            let len = constant.info()?.map_or(Ok(0), |info| info.byte_len())?;
            let header = reader.header().ok_or(Fault::NoTensorData { offset })?;
            header.tensor(offset, len, reader.source().len()).map(drop)
        }
    }
}
