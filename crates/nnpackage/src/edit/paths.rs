//! The paths of a package that is written, of which no two may be one file on any system.

use std::collections::BTreeMap;

use model_archive::name;
use tensor_core::Limits;

use crate::{
    BuildFault, Error, Result,
    layout::{MANIFEST, SUMS},
};

/// Paths by what they are where case does not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths(BTreeMap<String, String>);

impl Paths {
    /// Takes paths that are there as they are.
    pub(crate) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        Self(paths.map(|path| (name::fold(path), path.to_owned())).collect())
    }

    /// Takes in a path, or says why no file can be there.
    pub(crate) fn insert(&mut self, path: &str) -> Result<()> {
        let refuse = |fault| Err(Error::Build { path: path.to_owned(), fault });
        let checked = name::check(path, &Limits::default());
        if let Err(fault) = checked.and_then(|()| name::check_portable(path)) {
            return refuse(BuildFault::Path(fault));
        }
        if path.ends_with('/') {
            return refuse(BuildFault::Path(name::NameFault::EmptyComponent));
        }
        let folded = name::fold(path);
        if [MANIFEST, SUMS].iter().any(|made| name::fold(made) == folded) {
            return refuse(BuildFault::Reserved);
        }
        match self.0.get(&folded) {
            Some(other) if other == path => return refuse(BuildFault::Taken),
            Some(other) => return refuse(BuildFault::Case { other: other.clone() }),
            None => {}
        }
        if let Some(other) = self.clash(&folded) {
            return refuse(BuildFault::FileAndFolder { other });
        }
        self.0.insert(folded, path.to_owned());
        Ok(())
    }

    /// Returns a path that is a file where a folded one needs a folder, or the other way round.
    fn clash(&self, folded: &str) -> Option<String> {
        if name::fold(MANIFEST).starts_with(&format!("{folded}/")) {
            return Some(MANIFEST.to_owned());
        }
        let folders = folded.match_indices('/').filter_map(|(at, _)| folded.get(..at));
        let made = [MANIFEST, SUMS].map(|made| (name::fold(made), made.to_owned()));
        for folder in folders {
            if let Some((_, made)) = made.iter().find(|(made, _)| made == folder) {
                return Some(made.clone());
            }
            if let Some(file) = self.0.get(folder) {
                return Some(file.clone());
            }
        }
        let inside = format!("{folded}/");
        let next = self.0.range(inside.clone()..).next();
        next.filter(|(path, _)| path.starts_with(&inside)).map(|(_, path)| path.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(there: &[&str], path: &str, message: &str) {
        let mut paths = Paths::default();
        for path in there {
            paths.insert(path).unwrap();
        }
        assert_eq!(paths.insert(path).unwrap_err().to_string(), message);
    }

    #[test]
    fn paths_side_by_side() {
        let mut paths = Paths::default();
        for path in ["a.circle", "models/a.circle", "metadata/a.cfg", "models-2/a", "metadata/x/y"]
        {
            paths.insert(path).unwrap();
        }
    }

    #[test]
    fn one_file_on_some_system() {
        refuses(&["a"], "a", "\"a\" is in the package already");
        refuses(&["Ab"], "aB", "\"aB\" is one file with \"Ab\" where case does not count");
        refuses(
            &["e\u{301}"],
            "\u{c9}",
            "\"\u{c9}\" is one file with \"e\\u{301}\" where case does not count",
        );
        let clash = |a: &str, b: &str| {
            format!("{a:?} and {b:?} cannot both be there: one would be a file inside of the other")
        };
        refuses(&["a/b"], "A", &clash("A", "a/b"));
        refuses(&["a"], "A/b/c", &clash("A/b/c", "a"));
        refuses(&[], "Metadata", &clash("Metadata", "metadata/MANIFEST"));
        refuses(&[], "metadata/MANIFEST/x", &clash("metadata/MANIFEST/x", "metadata/MANIFEST"));
    }

    #[test]
    fn paths_that_no_package_has() {
        let made = "is made with the package, expected another path";
        refuses(&[], "metadata/manifest", &format!("\"metadata/manifest\" {made}"));
        refuses(&[], "metadata/SHA256SUMS", &format!("\"metadata/SHA256SUMS\" {made}"));
        for (path, reason) in [
            ("", "is empty"),
            ("../a", "has a component \".\" or \"..\""),
            ("/a", "is absolute, expected a relative path"),
            ("a/", "has an empty component"),
            ("nul.cfg", "has a component that is a device on Windows"),
        ] {
            refuses(
                &[],
                path,
                &format!("{path:?} is not a path for a file of a package: it {reason}"),
            );
        }
    }
}
