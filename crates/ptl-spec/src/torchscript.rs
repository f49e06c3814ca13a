//! Models as archives for the full runtime.

use std::io::Write;

use crate::{Error, Reader, Result, TorchScriptFault, edit::rewrite::noted};

/// Writes a model as the archive of `TorchScript` that `torch.jit.load` opens: its source, parameters
/// and constants, and its extra files.
///
/// Of a ZIP file everything stays but what the lite interpreter alone reads. Of a FlatBuffer file the
/// values become pickles, with the opcodes that PyTorch writes; nothing is run. All that is needed for
/// that is checked before the first byte is written.
///
/// # Errors
///
/// [`Error::NotTorchScript`] where the model keeps no source, or has a value that such an archive
/// cannot have; [`Error::Tensor`] where a tensor does not lie in its storage; [`Error::Archive`] where
/// a file cannot have its name there; [`Error::Write`] where the sink fails.
pub fn torchscript<W: Write>(reader: &Reader, sink: W) -> Result<()> {
    if reader.sources()?.next().is_none() {
        return Err(Error::NotTorchScript { fault: TorchScriptFault::NoSource });
    }
    for tensor in reader.tensors()? {
        for part in [Some(tensor), tensor.scales(), tensor.zero_points()].into_iter().flatten() {
            part.check()?;
        }
    }
    noted(sink, |mut sink| reader.body().torchscript(reader.limits(), &mut sink))
}
