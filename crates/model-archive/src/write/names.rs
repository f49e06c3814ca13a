//! Names of the entries that were written, of which no two may fall on one path.

use std::collections::BTreeSet;

use tensor_core::Limits;

use crate::{Kind, Layout, WriteFault, name};

#[derive(Debug, Default)]
pub(crate) struct Names {
    names: BTreeSet<String>,
    /// Whether names may mean something else on some systems, as those of other writers do.
    pub(crate) layout: Layout,
}

impl Names {
    /// Takes in a name, or says why it may not be written; a folder's ends in a slash.
    pub(crate) fn insert(&mut self, name: &str, kind: Kind) -> Result<(), WriteFault> {
        name::check(name, &Limits::default()).map_err(WriteFault::Name)?;
        let path = match kind {
            Kind::Folder => name.strip_suffix('/').unwrap_or(name),
            Kind::File | Kind::Symlink if name.ends_with('/') => {
                return Err(WriteFault::Name(name::NameFault::EmptyComponent));
            }
            Kind::File | Kind::Symlink => name,
        };
        if self.layout == Layout::Plain {
            name::check_portable(path).map_err(WriteFault::Name)?;
        }
        if self.names.contains(name) {
            return Err(WriteFault::Duplicate);
        }
        if let Some(other) = self.clash(path, kind) {
            return Err(WriteFault::FileAndFolder { other: other.to_owned() });
        }
        self.names.insert(name.to_owned());
        Ok(())
    }

    /// Takes in the name of an entry that was written before, whatever it is.
    pub(crate) fn note(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns an entry that is a file where `path` needs a folder, or the other way round.
    fn clash(&self, path: &str, kind: Kind) -> Option<&str> {
        let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        let own = (kind == Kind::Folder).then_some(path);
        if let Some(file) = folders.chain(own).find_map(|folder| self.names.get(folder)) {
            return Some(file);
        }
        if kind == Kind::Folder {
            return None;
        }
        let inside = format!("{path}/");
        let next = self.names.range(inside.clone()..).next();
        next.filter(|name| name.starts_with(&inside)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NameFault;

    fn names(names: &[&str]) -> Names {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Names { names, ..Names::default() }
    }

    #[test]
    fn names_side_by_side() {
        let mut names = names(&["a/b", "a/", "c"]);
        for (name, kind) in [("a/c", Kind::File), ("a-", Kind::Symlink), ("c0/", Kind::Folder)] {
            assert_eq!(names.insert(name, kind), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn one_path_twice() {
        let mut names = names(&["a/b", "a/", "c", "d/e/f"]);
        for (name, kind) in [("a/b", Kind::File), ("a/", Kind::Folder), ("c", Kind::Symlink)] {
            assert_eq!(names.insert(name, kind), Err(WriteFault::Duplicate), "{name:?}");
        }
        for (name, kind, other) in [
            ("a", Kind::File, "a/"),
            ("d", Kind::File, "d/e/f"),
            ("d/e", Kind::Symlink, "d/e/f"),
            ("c/", Kind::Folder, "c"),
            ("c/x/y", Kind::File, "c"),
            ("a/b/", Kind::Folder, "a/b"),
        ] {
            let fault = WriteFault::FileAndFolder { other: other.to_owned() };
            assert_eq!(names.insert(name, kind), Err(fault), "{name:?}");
        }
    }

    #[test]
    fn faulty_names() {
        for (name, kind, fault) in [
            ("../a", Kind::File, NameFault::DotComponent),
            ("a/", Kind::File, NameFault::EmptyComponent),
            ("nul", Kind::File, NameFault::Device),
            ("a./", Kind::Folder, NameFault::TrailingDot),
        ] {
            let mut names = Names::default();
            assert_eq!(names.insert(name, kind), Err(WriteFault::Name(fault)), "{name:?}");
            assert!(!names.contains(name));
        }
    }
}
