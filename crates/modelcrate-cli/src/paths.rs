//! What paths lead to.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use modelcrate::AnyReader;

/// Returns what is read, and the last path, which is written.
pub(crate) fn last(paths: &[PathBuf]) -> anyhow::Result<(&[PathBuf], &Path)> {
    match paths {
        [sources @ .., output] if !sources.is_empty() => Ok((sources, output)),
        _ => bail!("what is to be written is missing: give it behind what is read"),
    }
}

/// Tells whether two paths lead to one file, be it by a link of either kind.
#[cfg(unix)]
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Tells whether two paths lead to one file; a hard link is taken for another.
#[cfg(not(unix))]
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Refuses a place where a file stands that a model is read from besides its own.
pub(crate) fn check_shards(model: &Path, reader: &AnyReader, output: &Path) -> anyhow::Result<()> {
    let shards = reader.shards(model.file_name().unwrap_or_default());
    let is_shard = shards.iter().any(|shard| same_file(&model.with_file_name(shard), output));
    ensure!(!is_shard, "{}: is a shard of the input, expected another file", output.display());
    Ok(())
}

/// Tells whether a path, of a file that may not be there yet, leads into a folder.
pub(crate) fn is_inside(path: &Path, folder: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    match (parent.canonicalize(), folder.canonicalize()) {
        (Ok(parent), Ok(folder)) => folder.is_dir() && parent.starts_with(folder),
        _ => false,
    }
}
