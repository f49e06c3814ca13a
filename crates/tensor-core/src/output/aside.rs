//! Where finished files wait for others, closed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{hidden::Hidden, options::file_error};
use crate::Result;

/// A [hidden folder](Hidden) for what is complete and has to wait until all that belongs to it is: it
/// keeps no file open meanwhile, however many they are. What is in it when it is dropped is removed.
#[derive(Debug)]
pub struct Aside {
    hidden: Arc<Hidden>,
    next: AtomicU64,
}

impl Aside {
    /// Makes one in the folder that the files are for.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) where nothing can be made there.
    pub fn create(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let make = || {
            let hidden = Hidden::folder(&folder.join(PARTS))?;
            fs::create_dir(hidden.path().join(NEW))?;
            Ok(hidden)
        };
        let hidden = make().map_err(|source| file_error(folder, "creation", source))?;
        Ok(Self { hidden: Arc::new(hidden), next: AtomicU64::new(0) })
    }

    /// Returns the hidden folder, which is there as long as anybody has it.
    #[must_use]
    pub fn hidden(&self) -> &Arc<Hidden> {
        &self.hidden
    }

    /// Moves something in, by a function of its new path, which is returned.
    ///
    /// # Errors
    ///
    /// Those of `move_to`.
    pub fn take(&self, move_to: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.hidden.path().join(NEW).join(number.to_string());
        move_to(&path).map(|()| path)
    }
}

/// What the hidden folder would be for.
const PARTS: &str = "parts";
/// Everything of ours is in a folder of this name, which may be swept.
const NEW: &str = "new";
