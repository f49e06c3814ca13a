//! Files that the tensors of an input are written to.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use modelcrate::{
    tensor_core::{TensorBuf, output::Hidden},
    weights::npy,
    ztensor,
};

use crate::{failure::About, options::is_stdio, write::Writing};

/// Writes tensors, by their places, as the name of the output says; returns the files.
pub(super) fn write(
    tensors: &[(&str, &TensorBuf)],
    output: &Path,
    write: Writing,
) -> anyhow::Result<Vec<PathBuf>> {
    let extension = output.extension().unwrap_or_default();
    if extension == "zt" && !output.is_dir() {
        write_zt(tensors, output, write).about(output)?;
    } else if is_stdio(output) || extension == "npy" && !output.is_dir() {
        write_one(tensors, output, write).about(output)?;
    } else {
        return write_all(tensors, output, write);
    }
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

/// Writes the only one.
fn write_one(tensors: &[(&str, &TensorBuf)], output: &Path, write: Writing) -> anyhow::Result<()> {
    let [(_, tensor)] = tensors else {
        let count = tensors.len();
        anyhow::bail!("takes one tensor, but there are {count}: give a folder, or a file .zt");
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
