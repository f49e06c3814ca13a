//! The files that an argument means.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use modelcrate::{AnyReader, Format, ReadOptions, detect, is_model_folder, tensor_core::Source};
#[cfg(feature = "remote")]
use modelcrate::{is_address, remote::Opened};

#[cfg(feature = "remote")]
use crate::address::{self, AtAddress};
#[cfg(feature = "remote")]
use crate::failure::{About as _, finding};
use crate::{options::is_stdio, output};

/// What an argument means: itself, or the model files of a folder, sorted.
#[derive(Default)]
pub(crate) struct Walked {
    pub(crate) files: Vec<Found>,
    pub(crate) skipped: Vec<PathBuf>,
    /// Whether it means one file alone, be it there or not.
    pub(crate) is_one: bool,
    /// Folders that are still to be walked.
    folders: Vec<PathBuf>,
    /// Where links are followed, all folders that there were, so that none is walked twice.
    seen: HashSet<PathBuf>,
}

/// A file, or a folder that is a model or cannot be read.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Why it cannot be read, where that is known already.
    pub(crate) fault: Option<String>,
    /// Where it is not at the path.
    #[cfg(feature = "remote")]
    pub(crate) address: Option<AtAddress>,
}

impl Found {
    pub(crate) fn unread(path: PathBuf, error: &impl ToString) -> Self {
        let mut found = Self::at(path);
        found.fault = Some(error.to_string());
        found
    }

    fn at(path: PathBuf) -> Self {
        Self {
            path,
            fault: None,
            #[cfg(feature = "remote")]
            address: None,
        }
    }

    /// Returns the files that an argument means which is not walked where it is a folder: itself, or those
    /// of a folder or pattern at an address.
    pub(crate) fn meant(input: &Path) -> Vec<Self> {
        #[cfg(feature = "remote")]
        if let Some(path) = address::local(input) {
            return vec![Self::at(path)];
        }
        #[cfg(feature = "remote")]
        if input.to_str().is_some_and(is_address) {
            let walked = Walked::of(input, false);
            let nothing = || Self::unread(input.to_owned(), &"has no model file");
            return if walked.files.is_empty() { vec![nothing()] } else { walked.files };
        }
        vec![Self::at(input.to_owned())]
    }

    /// Returns the length of a file in bytes, where that takes no request.
    pub(crate) fn len(&self) -> Option<u64> {
        #[cfg(feature = "remote")]
        if let Some(file) = &self.address {
            return file.len;
        }
        let file = fs::metadata(&self.path).ok()?;
        (!file.is_dir()).then_some(file.len())
    }

    /// Opens the model; what is wrong with its address later is told by what comes along.
    pub(crate) fn open(&self, options: ReadOptions) -> anyhow::Result<(AnyReader, Faults)> {
        #[cfg(feature = "remote")]
        if let Some(file) = &self.address {
            let (reader, opened) = file.reader(options)?;
            return Ok((reader, Faults { opened: Some(opened) }));
        }
        Ok((output::open(&self.path, options)?, Faults::default()))
    }

    /// Tells whether other files may be beside it.
    pub(crate) fn has_neighbours(&self) -> bool {
        #[cfg(feature = "remote")]
        if self.address.is_some() {
            return false;
        }
        !is_stdio(&self.path)
    }
}

/// What went wrong when bytes were read of a file at an address: no fault of the file.
#[derive(Default)]
pub(crate) struct Faults {
    #[cfg(feature = "remote")]
    opened: Option<Opened>,
}

impl Faults {
    pub(crate) fn first(&self) -> Option<&str> {
        #[cfg(feature = "remote")]
        if let Some(opened) = &self.opened {
            return opened.fault();
        }
        None
    }
}

impl Walked {
    pub(crate) fn of(input: &Path, follow: bool) -> Self {
        #[cfg(feature = "remote")]
        if let Some(path) = address::local(input) {
            return Self::of(&path, follow);
        }
        let mut walked = Self::default();
        #[cfg(feature = "remote")]
        if let Some(listing) = address::listing(input).about(input).transpose() {
            match listing {
                Ok(listing) => {
                    (walked.skipped, walked.is_one) = (listing.skipped, listing.is_one);
                    walked.files.extend(listing.files.into_iter().map(|file| Found {
                        path: file.path(),
                        fault: None,
                        address: Some(file),
                    }));
                }
                Err(error) => walked.unread(input.to_owned(), &finding(&error).message),
            }
            return walked;
        }
        if is_stdio(input) || !input.is_dir() || is_model_folder(input) {
            walked.found(input.to_owned());
            walked.is_one = true;
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
        self.files.push(Found::at(path));
    }

    fn unread(&mut self, path: PathBuf, error: &impl ToString) {
        self.files.push(Found::unread(path, error));
    }
}

/// Tells whether a file is worth opening: what is named as a model is, so that damage to its start
/// does not hide it, and what cannot be read is, so that it is reported.
fn is_model(path: &Path) -> bool {
    let detected = || anyhow::Ok(detect(&Source::open(path)?)?);
    Format::from_path(path).is_some() || detected().map_or(true, |format| format.is_some())
}
