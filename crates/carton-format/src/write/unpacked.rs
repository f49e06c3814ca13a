//! Models that were never packed: a folder, a runner and a version are enough. Format text: the
//! last paragraph.

use std::path::{Path, PathBuf};

use model_archive::{FileFault, Folder, name};
use tensor_core::{Limits, Source};

use crate::{Description, Error, Pack, Result, Runner, paths::MODEL};

/// A folder that is the `model` of a carton, and what would stand in its `carton.toml`.
///
/// There is no `MANIFEST`, so nothing is compared with digests and there is no model hash: a carton
/// of it, which [`pack`](Self::pack) begins, has both.
///
/// # Examples
///
/// ```no_run
/// use carton_format::{Runner, UnpackedModel};
///
/// let runner = Runner::new("torchscript", "=1.12.1".parse()?);
/// let model = UnpackedModel::open("model_folder", runner)?;
/// for path in model.paths()? {
///     println!("{path}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnpackedModel {
    path: PathBuf,
    folder: Folder,
    description: Description,
}

impl UnpackedModel {
    /// Opens a folder with nothing but the two fields that a user has to give: the name of the
    /// runner and the framework version that it requires.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where it cannot be opened, or is not a folder.
    pub fn open(path: impl AsRef<Path>, runner: Runner) -> Result<Self> {
        Self::with_description(path, Description::new(runner))
    }

    /// Opens a folder with all that is known of the model.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn with_description(path: impl AsRef<Path>, description: Description) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let folder = Folder::open(&path)?;
        Ok(Self { path, folder, description })
    }

    /// Returns what is known of the model.
    #[must_use]
    pub const fn description(&self) -> &Description {
        &self.description
    }

    /// Returns the paths of all files as they are in a carton, sorted: each starts with `model/`.
    /// Links to folders are not followed.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a folder cannot be listed.
    pub fn paths(&self) -> Result<Vec<String>> {
        let paths = self.folder.paths()?;
        Ok(paths.into_iter().map(|path| format!("{MODEL}{path}")).collect())
    }

    /// Returns the content of a file, which is read when it is asked for; `None` where there is no
    /// such file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the path is unsafe, leads out of the folder, or to what is not a file.
    pub fn file(&self, path: &str) -> Result<Option<Source>> {
        name::check(path, &Limits::default()).map_err(|fault| {
            let (path, fault) = (path.to_owned(), FileFault::Name(fault));
            Error::File { path, fault }
        })?;
        match path.strip_prefix(MODEL) {
            Some(inside) => Ok(self.folder.file(inside)?),
            None => Ok(None),
        }
    }

    /// Begins a carton of the model.
    ///
    /// # Errors
    ///
    /// As for [`Pack::new`] and [`Pack::model`].
    pub fn pack(&self) -> Result<Pack> {
        let mut pack = Pack::new(&self.description)?;
        pack.model(&self.path)?;
        Ok(pack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Writer};

    fn runner() -> Runner {
        Runner::new("torchscript", "=1.12.1".parse().unwrap())
    }

    #[test]
    fn a_folder_and_two_fields_are_enough() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("code")).unwrap();
        std::fs::write(folder.path().join("model.pt"), b"weights").unwrap();
        std::fs::write(folder.path().join("code/a.py"), b"").unwrap();
        let model = UnpackedModel::open(folder.path(), runner()).unwrap();
        assert_eq!(model.description().runner.name, "torchscript");
        assert_eq!(model.paths().unwrap(), ["model/code/a.py", "model/model.pt"]);
        let weights = model.file("model/model.pt").unwrap().unwrap();
        assert_eq!(weights.len(), 7);
        assert!(model.file("model/none").unwrap().is_none());
        assert!(model.file("misc/a").unwrap().is_none());
        let packed = model.pack().unwrap().write(Writer::new(Vec::new())).unwrap();
        let reader = Reader::from_bytes(packed.sink).unwrap();
        assert_eq!(reader.description().unwrap(), model.description());
    }

    #[cfg(unix)]
    #[test]
    fn nothing_outside_is_read() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::write(outer.path().join("secret"), b"s").unwrap();
        std::fs::create_dir(outer.path().join("model")).unwrap();
        std::os::unix::fs::symlink("../secret", outer.path().join("model/link")).unwrap();
        let model = UnpackedModel::open(outer.path().join("model"), runner()).unwrap();
        assert_eq!(
            model.file("model/../secret").unwrap_err().to_string(),
            r#""model/../secret" has a component "." or "..""#
        );
        assert_eq!(
            model.file("model/link").unwrap_err().to_string(),
            r#""link" leads out of the folder"#
        );
    }
}
