use std::{fs, path::PathBuf};

use crate::workspace;

/// Runs a fuzz target on every file of some folders of the workspace, at any depth; what fuzzing has
/// found nothing for has no folder. Returns on how many.
///
/// # Panics
///
/// Where a file cannot be read.
pub fn replay(folders: &[&str], mut run: impl FnMut(&[u8])) -> usize {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| workspace().join(folder)).collect();
    let mut count = 0;
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir().into_iter().flatten() {
            let path = entry.unwrap_or_else(|error| panic!("{folder:?}: {error}")).path();
            if path.is_dir() {
                open.push(path);
            } else {
                run(&fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")));
                count += 1;
            }
        }
    }
    count
}
