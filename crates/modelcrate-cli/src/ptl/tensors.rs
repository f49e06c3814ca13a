//! Files that the tensors of an input are written to.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, ensure};
use modelcrate::{
    tensor_core::{TensorBuf, output::Hidden},
    weights::{npy, npz},
    ztensor,
};

use crate::{failure::About, options::is_stdio, write::Writing};

/// Writes tensors, by their places, as the name of the output says; returns the files.
pub(super) fn write(
    tensors: &[(&str, &TensorBuf)],
    output: &Path,
    write: Writing,
) -> anyhow::Result<Vec<PathBuf>> {
    let name = output.to_string_lossy();
    let end = output.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
    let written = match end.as_deref() {
        _ if is_stdio(output) => write_one(tensors, output, write),
        _ if output.is_dir() || name.ends_with(['/', '\\']) => {
            return write_all(tensors, output, write);
        }
        None => return write_all(tensors, output, write),
        Some("npy") => write_one(tensors, output, write),
        Some("npz") => write_npz(tensors, output, write),
        Some("zt") => write_zt(tensors, output, write),
        Some(end) => Err(anyhow!(
            "ends in .{end}, expected .npy, .npz or .zt, or a folder, with / at its end"
        )),
    };
    written.about(output)?;
    Ok(vec![output.to_owned()])
}

/// Writes all into one file.
fn write_zt(tensors: &[(&str, &TensorBuf)], output: &Path, write: Writing) -> anyhow::Result<()> {
    let mut writer = ztensor::Writer::new(write.create(output)?);
    for (place, tensor) in tensors {
        writer.add(place, tensor)?;
    }
    writer.finish()?.commit(output)?;
    Ok(())
}

/// Writes all into one archive.
fn write_npz(tensors: &[(&str, &TensorBuf)], output: &Path, write: Writing) -> anyhow::Result<()> {
    let mut writer = npz::Writer::new(write.create(output)?);
    for (place, tensor) in tensors {
        writer.add(place, tensor)?;
    }
    writer.finish()?.commit(output)?;
    Ok(())
}

/// Writes the only one.
fn write_one(tensors: &[(&str, &TensorBuf)], output: &Path, write: Writing) -> anyhow::Result<()> {
    let [(_, tensor)] = tensors else {
        let count = tensors.len();
        anyhow::bail!(
            "takes one tensor, but there are {count}: give a folder, or a file .npz or .zt"
        );
    };
    let mut sink = write.create(output)?;
    npy::write(tensor, &mut sink)?;
    sink.commit(output)?;
    Ok(())
}

/// Writes each into a file of its own. None appears where one of them cannot be written.
fn write_all(
    tensors: &[(&str, &TensorBuf)],
    folder: &Path,
    write: Writing,
) -> anyhow::Result<Vec<PathBuf>> {
    let paths = tensors.iter().map(|(place, _)| folder.join(format!("{place}.npy")));
    let paths: Vec<PathBuf> = paths.collect();
    if !folder.is_dir() {
        let is_free = folder.symlink_metadata().is_err();
        ensure!(is_free, "{}: is there already, and is not a folder", folder.display());
        let made = if write.dry_run { Hidden::check(folder) } else { fs::create_dir(folder) };
        made.context("making a folder failed").about(folder)?;
        if write.dry_run {
            return Ok(paths);
        }
    }
    let mut sinks = Vec::new();
    for ((_, tensor), path) in tensors.iter().zip(&paths) {
        let mut sink = write.create(path).about(path)?;
        npy::write(tensor, &mut sink).about(path)?;
        sinks.push(sink);
    }
    for (sink, path) in sinks.into_iter().zip(&paths) {
        sink.commit(path)?;
    }
    Ok(paths)
}
