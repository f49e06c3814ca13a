//! Files inside containers.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use super::Differing;
use crate::{AnyReader, FileSummary, Result, Summary, weights};

pub(super) fn differences(
    old: &AnyReader,
    new: &AnyReader,
    old_summary: &Summary,
    new_summary: &Summary,
) -> Result<Vec<Differing<FileSummary>>> {
    if old_summary.format != new_summary.format {
        return Ok(Vec::new());
    }
    let [old_files, new_files] = [old_summary, new_summary].map(|summary| {
        let files = summary.files.iter().map(|file| (file.path.clone(), file));
        files.collect::<BTreeMap<String, &FileSummary>>()
    });
    let mut differing = super::differences(&old_files, &new_files, |_, _| false);
    let mut unlike = Vec::new();
    for Differing { name, old: one, new: other } in differing.drain(..) {
        if let (Some(one), Some(other)) = (one, other)
            && is_same(old, new, one, other)?
        {
            continue;
        }
        unlike.push(Differing { name, old: one.cloned(), new: other.cloned() });
    }
    Ok(unlike)
}

fn is_same(
    old: &AnyReader,
    new: &AnyReader,
    one: &FileSummary,
    other: &FileSummary,
) -> Result<bool> {
    if one.target != other.target || one.bytes != other.bytes {
        return Ok(false);
    }
    if let (Some(one), Some(other)) = (&one.sha256, &other.sha256) {
        return Ok(one == other);
    }
    match (old.file(&one.path)?, new.file(&other.path)?) {
        (Some(one), Some(other)) => {
            Ok(same_bytes(one.reader()?, other.reader()?).map_err(weights::Error::Read)?)
        }
        _ => Ok(true),
    }
}

fn same_bytes(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    loop {
        ours.clear();
        theirs.clear();
        one.by_ref().take(PIECE).read_to_end(&mut ours)?;
        other.by_ref().take(PIECE).read_to_end(&mut theirs)?;
        if ours != theirs {
            return Ok(false);
        }
        if ours.is_empty() {
            return Ok(true);
        }
    }
}

const PIECE: u64 = 256 << 10;
