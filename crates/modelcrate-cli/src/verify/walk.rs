//! The files that an argument means.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use modelcrate::{Format, detect, is_model_folder, tensor_core::Source};

use crate::options::is_stdio;

/// What an argument means: itself, or the model files of a folder, sorted.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) files: Vec<Found>,
    pub(super) skipped: Vec<PathBuf>,
    /// Folders that are still to be walked.
    folders: Vec<PathBuf>,
    /// Where links are followed, all folders that there were, so that none is walked twice.
    seen: HashSet<PathBuf>,
}

/// A file, or a folder that is a model or cannot be read.
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Why it cannot be read, where that is known already.
    pub(super) fault: Option<String>,
}

impl Walked {
    pub(super) fn of(input: &Path, follow: bool) -> Self {
        let mut walked = Self::default();
        if is_stdio(input) || !input.is_dir() || is_model_folder(input) {
            walked.found(input.to_owned());
            return walked;
        }
        walked.folders.push(input.to_owned());
        while let Some(folder) = walked.folders.pop() {
            if let Err(error) = walked.folder(&folder, follow) {
                walked.unread(folder, &error);
            }
        }
        walked.files.sort_by(|a, b| a.path.cmp(&b.path));
        walked.skipped.sort();
        walked
    }

    fn folder(&mut self, folder: &Path, follow: bool) -> io::Result<()> {
        if follow && !self.seen.insert(folder.canonicalize()?) {
            return Ok(());
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            // So is what a command that was killed may have left.
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // A link may lead out of the folder.
            let followed = || fs::metadata(&path).map(|found| found.file_type());
            match if follow { followed() } else { entry.file_type() } {
                _ if is_hidden => self.skipped.push(path),
                Ok(kind) if kind.is_dir() && !is_model_folder(&path) => self.folders.push(path),
                Ok(kind) if kind.is_dir() || kind.is_file() && is_model(&path) => self.found(path),
                Ok(_) => self.skipped.push(path),
                Err(error) => self.unread(path, &error),
            }
        }
        Ok(())
    }

    fn found(&mut self, path: PathBuf) {
        self.files.push(Found { path, fault: None });
    }

    fn unread(&mut self, path: PathBuf, error: &io::Error) {
        self.files.push(Found { path, fault: Some(error.to_string()) });
    }
}

/// Tells whether a file is worth opening: what is named as a model is, so that damage to its start
/// does not hide it, and what cannot be read is, so that it is reported.
fn is_model(path: &Path) -> bool {
    let detected = || anyhow::Ok(detect(&Source::open(path)?)?);
    Format::from_path(path).is_some() || detected().map_or(true, |format| format.is_some())
}
