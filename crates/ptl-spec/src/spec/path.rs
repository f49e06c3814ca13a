use std::fmt::{self, Write as _};

use tensor_core::text::short;

use crate::{Error, Fault, Result};

/// Where in a spec something is, such as `pack.items[2].dtype`; grows and shrinks with a walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    /// Starts at a member of the root.
    pub(crate) fn root(key: &str) -> Self {
        Self(key.to_owned())
    }

    /// Calls `visit` with the path of a member.
    pub(crate) fn member<T>(&mut self, key: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.longer(|path| push_member(path, key), visit)
    }

    /// Calls `visit` with the path of an item, counted from 0.
    pub(crate) fn item<T>(&mut self, index: usize, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.longer(|path| _ = write!(path, "[{index}]"), visit)
    }

    fn longer<T>(
        &mut self,
        grow: impl FnOnce(&mut String),
        visit: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let len = self.0.len();
        grow(&mut self.0);
        let result = visit(self);
        self.0.truncate(len);
        result
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn push_member(path: &mut String, key: &str) {
    let plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let separator = if path.is_empty() { "" } else { "." };
    let _ = match key.chars().all(plain) && !key.is_empty() {
        true => write!(path, "{separator}{key}"),
        false => write!(path, "{separator}{:?}", short(key)),
    };
}

/// Adds the place to a fault.
pub(crate) fn at<T>(path: &Path, result: Result<T, Fault>) -> Result<T> {
    result.map_err(|fault| Error::spec(path, fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_every_step() {
        let mut path = Path::root("pack");
        let deep = path.member("items", |path| {
            path.item(2, |path| path.member("a.b", |path| path.to_string()))
        });
        assert_eq!(deep, "pack.items[2].\"a.b\"");
        assert_eq!(path.to_string(), "pack");
    }
}
