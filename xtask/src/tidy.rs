//! What a reviewer should not have to look for: the crate graph, manifests, sources, test data.

mod circles;
mod graph;
mod manifest;
mod package;
mod source;
mod testdata;
mod text;

use std::{collections::BTreeMap, fmt, fs, io, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{command, output, root, workspace};

/// Prints every violation; an error where there is one.
pub(crate) fn run() -> Result<()> {
    let files = Files::read(&root())?;
    let members = workspace::members()?;
    let mut violations = Vec::new();
    graph::check(&members, &mut violations);
    circles::check(&members, &files, &mut violations);
    manifest::check(&members, &files, &mut violations)?;
    package::check(&members, &files, &mut violations);
    source::check(&members, &files, &mut violations);
    text::check(&files, &mut violations);
    testdata::check(&files, &mut violations)?;
    violations.sort();
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!("violations: {}", violations.len());
    }
    println!("{} files are tidy", files.0.len());
    Ok(())
}

/// One thing that is wrong, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    /// `what is wrong, expected what`
    message: String,
}

impl Violation {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The files of the repository with their bytes, by path from the root with `/` between components.
///
/// These are the files that git tracks, and the new ones that it does not ignore.
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    fn read(root: &Path) -> Result<Self> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let paths = output(command("git").args(list))?;
        let mut files = BTreeMap::new();
        for path in paths.split_terminator('\0') {
            if let Some(bytes) = bytes(&root.join(path))? {
                files.insert(path.to_owned(), bytes);
            }
        }
        Ok(Self(files))
    }

    #[cfg(test)]
    fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        let owned = |(path, text): (&str, &str)| (path.to_owned(), text.as_bytes().to_vec());
        Self(files.into_iter().map(owned).collect())
    }

    /// Returns a file as text; `None` where it is missing or not UTF-8.
    fn text(&self, path: &str) -> Option<&str> {
        let bytes = self.0.get(path)?;
        str::from_utf8(bytes).ok()
    }

    /// Returns the paths below a folder, relative to it, with their bytes.
    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.0.iter().filter_map(move |(path, bytes)| {
            let path = path.strip_prefix(folder)?.strip_prefix('/')?;
            Some((path, bytes.as_slice()))
        })
    }
}

/// Returns the bytes of a file; `None` where it was deleted, or is a link and has none of its own.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => Ok(None),
        Ok(_) => fs::read(path).map(Some).with_context(|| format!("{path:?}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{path:?}")),
    }
}

/// Returns the messages of what a check found.
#[cfg(test)]
fn messages(check: impl FnOnce(&mut Vec<Violation>)) -> Vec<String> {
    let mut violations = Vec::new();
    check(&mut violations);
    violations.iter().map(Violation::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violation_is_one_line() {
        let violation = Violation::new("a/b.rs", "line 1 is wrong, expected better");
        assert_eq!(violation.to_string(), "a/b.rs: line 1 is wrong, expected better");
    }

    #[test]
    fn below_a_folder_is_relative_to_it() {
        let files = Files::of([("a/b/c", ""), ("ab/c", ""), ("a/d", "")]);
        let paths: Vec<&str> = files.below("a").map(|(path, _)| path).collect();
        assert_eq!(paths, ["b/c", "d"]);
    }
}
