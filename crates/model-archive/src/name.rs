//! Names of entries: which are safe to read and to unpack.

use std::fmt;

use tensor_core::{ErrorKind, Limits};

/// Checks that a name is the normal form of a relative path: UTF-8 with `/` between components, of
/// which none is empty, `.` or `..`, and no byte that means something else on some system.
///
/// A folder's name may end in one `/`.
///
/// # Errors
///
/// The first fault from the left, or the limit that is exceeded.
pub fn check(name: &str, limits: &Limits) -> Result<(), NameFault> {
    if name.len() as u64 > limits.name_bytes {
        return Err(NameFault::Long { bytes: name.len() as u64, limit: limits.name_bytes });
    }
    if name.is_empty() {
        return Err(NameFault::Empty);
    }
    if name.starts_with('/') {
        return Err(NameFault::Absolute);
    }
    if let Some(found) = name.chars().find(|&found| is_unsafe(found)) {
        return Err(NameFault::Character(found));
    }
    let path = name.strip_suffix('/').unwrap_or(name);
    let mut components = 0_u64;
    for component in path.split('/') {
        components = components.saturating_add(1);
        match component {
            "" => return Err(NameFault::EmptyComponent),
            "." | ".." => return Err(NameFault::DotComponent),
            _ if component.len() > COMPONENT => return Err(NameFault::LongComponent),
            _ => {}
        }
    }
    if components > limits.name_components {
        return Err(NameFault::Deep { components, limit: limits.name_components });
    }
    Ok(())
}

/// Checks that a name that passed [`check`] means the same on every system.
///
/// # Errors
///
/// The first component that Windows takes for a device, or stores under another name.
pub fn check_portable(name: &str) -> Result<(), NameFault> {
    for component in name.split('/') {
        if component.ends_with(['.', ' ']) {
            return Err(NameFault::TrailingDot);
        }
        if is_device(component) {
            return Err(NameFault::Device);
        }
    }
    Ok(())
}

/// Returns the path that a link means, counted from the root of the archive.
///
/// # Errors
///
/// Where it is absolute, leads out, or is not a path of plain components.
pub fn resolve(link: &str, target: &str) -> Result<String, TargetFault> {
    if target.starts_with('/') {
        return Err(TargetFault::Absolute);
    }
    let is_plain = |character: char| !character.is_control() && !['\\', ':'].contains(&character);
    if target.is_empty() || !target.chars().all(is_plain) {
        return Err(TargetFault::Malformed);
    }
    let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut path: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                path.pop().ok_or(TargetFault::Outside)?;
            }
            part => path.push(part),
        }
    }
    Ok(path.join("/"))
}

/// Makes names that differ in case or in the composition of letters equal.
#[must_use]
pub fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    use unicode_normalization::UnicodeNormalization as _;
    // Upper case first: what has no lower case of its own, such as the Kelvin sign, meets there.
    name.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

fn is_unsafe(found: char) -> bool {
    found.is_control() || found == '\\' || found == ':'
}

/// Tells whether Windows opens a device under this name, whatever its folder and extension.
fn is_device(component: &str) -> bool {
    let stem = component.split_once('.').map_or(component, |(stem, _)| stem).trim_end();
    let is_numbered = |prefix: &str| {
        let head = stem.get(..prefix.len());
        let number = stem.get(prefix.len()..).unwrap_or_default();
        let digit = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"].contains(&number);
        head.is_some_and(|head| head.eq_ignore_ascii_case(prefix)) && digit
    };
    let devices = ["con", "prn", "aux", "nul", "conin$", "conout$"];
    devices.iter().any(|device| stem.eq_ignore_ascii_case(device))
        || is_numbered("com")
        || is_numbered("lpt")
}

/// What is wrong with a name. It reads on from "name".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameFault {
    /// There is none.
    Empty,
    /// It is not UTF-8.
    NotUtf8,
    /// It starts with a slash.
    Absolute,
    /// A control character, a backslash or a colon.
    Character(char),
    /// Two slashes beside each other.
    EmptyComponent,
    /// A component is `.` or `..`.
    DotComponent,
    /// A component is over 255 bytes.
    LongComponent,
    /// It is over the limit.
    Long {
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// It has more components than the limit allows.
    Deep {
        /// How many.
        components: u64,
        /// The limit.
        limit: u64,
    },
    /// A component ends in a dot or a blank, which Windows takes away.
    TrailingDot,
    /// A component is the name of a device on Windows.
    Device,
}

impl NameFault {
    /// Returns what it means for whoever meets it in a file.
    #[must_use]
    pub const fn kind(self) -> ErrorKind {
        match self {
            Self::Long { .. } | Self::Deep { .. } => ErrorKind::OverLimit,
            Self::Empty
            | Self::NotUtf8
            | Self::Absolute
            | Self::Character(_)
            | Self::EmptyComponent
            | Self::DotComponent
            | Self::LongComponent
            | Self::TrailingDot
            | Self::Device => ErrorKind::Malformed,
        }
    }
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::NotUtf8 => f.write_str("is not UTF-8"),
            Self::Absolute => f.write_str("is absolute, expected a relative path"),
            Self::Character(found) => write!(f, "has the character {found:?}"),
            Self::EmptyComponent => f.write_str("has an empty component"),
            Self::DotComponent => f.write_str("has a component \".\" or \"..\""),
            Self::LongComponent => write!(f, "has a component of more than {COMPONENT} bytes"),
            Self::Long { bytes, limit } => {
                write!(f, "is {bytes} bytes long, over the limit of {limit} (Limits::name_bytes)")
            }
            Self::Deep { components, limit } => write!(
                f,
                "has {components} components, over the limit of {limit} (Limits::name_components)"
            ),
            Self::TrailingDot => f.write_str("has a component that ends in a dot or a blank"),
            Self::Device => f.write_str("has a component that is a device on Windows"),
        }
    }
}

/// Why the target of a symbolic link is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetFault {
    /// It starts at the root of a file system.
    #[error("is absolute, expected a path relative to the link")]
    Absolute,
    /// It leads out of the archive.
    #[error("leads out of the archive")]
    Outside,
    /// There is no such entry.
    #[error("is not in the archive")]
    Missing,
    /// It is a folder.
    #[error("is a folder, expected a file")]
    Folder,
    /// It leads back to itself, or on over more links than systems follow.
    #[error("leads back to itself or over more than 40 links")]
    Loop,
    /// It is longer than a path may be.
    #[error("is over the limit of {0} bytes (Limits::name_bytes)")]
    Long(u64),
    /// It is not a path in normal form.
    #[error("is not UTF-8 text of plain path components")]
    Malformed,
}

/// Bytes of a component that every file system takes.
const COMPONENT: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_names() {
        let limits = Limits::default();
        for name in ["a", "model/.hidden/x=1", "model/ünï.txt", "folder/", "a b", "...", "a..b"] {
            assert_eq!(check(name, &limits), Ok(()), "{name:?}");
        }
        for name in ["a", "console", "com", "com10", "model/nulls", "lpt"] {
            assert_eq!(check_portable(name), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn unsafe_names() {
        let limits = Limits::default();
        for (name, fault) in [
            ("", NameFault::Empty),
            ("/etc/passwd", NameFault::Absolute),
            ("//host/share", NameFault::Absolute),
            ("../x", NameFault::DotComponent),
            ("a/../../b", NameFault::DotComponent),
            ("a/..", NameFault::DotComponent),
            ("./a", NameFault::DotComponent),
            ("a/./b", NameFault::DotComponent),
            (".", NameFault::DotComponent),
            ("a//b", NameFault::EmptyComponent),
            ("a//", NameFault::EmptyComponent),
            ("C:\\x", NameFault::Character(':')),
            ("c:x", NameFault::Character(':')),
            ("a:stream", NameFault::Character(':')),
            ("\\\\h\\s", NameFault::Character('\\')),
            ("a\\..\\b", NameFault::Character('\\')),
            ("a\0b", NameFault::Character('\0')),
            ("a\nb", NameFault::Character('\n')),
            ("a\x7f", NameFault::Character('\x7f')),
            ("a\u{85}", NameFault::Character('\u{85}')),
        ] {
            assert_eq!(check(name, &limits), Err(fault), "{name:?}");
        }
        assert_eq!(check(&"a".repeat(256), &limits), Err(NameFault::LongComponent));
        let deep = "a/".repeat(65);
        assert_eq!(check(&deep, &limits), Err(NameFault::Deep { components: 65, limit: 64 }));
        let long = "a".repeat(5000);
        assert_eq!(check(&long, &limits), Err(NameFault::Long { bytes: 5000, limit: 4096 }));
    }

    #[test]
    fn names_that_windows_takes_for_others() {
        for name in ["NUL", "con.txt", "a/AUX", "Com1.tar.gz", "lpt9", "com¹", "nul .txt", "CONIN$"]
        {
            assert_eq!(check_portable(name), Err(NameFault::Device), "{name:?}");
        }
        for name in ["a.", "a ", "a./b", "b/c "] {
            assert_eq!(check_portable(name), Err(NameFault::TrailingDot), "{name:?}");
        }
    }

    #[test]
    fn targets_are_relative_to_the_folder_of_the_link() {
        for (link, target, path) in [
            ("model/a", "b", "model/b"),
            ("model/x/a", "../b", "model/b"),
            ("a", "./b/../c", "c"),
            ("model/a", "../carton.toml", "carton.toml"),
        ] {
            assert_eq!(resolve(link, target).as_deref(), Ok(path));
        }
    }

    #[test]
    fn targets_that_lead_elsewhere() {
        for (target, fault) in [
            ("/etc/passwd", TargetFault::Absolute),
            ("../../etc/passwd", TargetFault::Outside),
            ("x/../../../y", TargetFault::Outside),
            ("", TargetFault::Malformed),
            ("C:\\x", TargetFault::Malformed),
            ("a\0b", TargetFault::Malformed),
        ] {
            assert_eq!(resolve("model/a", target), Err(fault), "{target:?}");
        }
    }

    #[test]
    fn folded_names() {
        for (a, b) in [
            ("Model/A", "model/a"),
            ("\u{212a}", "k"),
            ("e\u{301}", "\u{e9}"),
            ("STRASSE", "strasse"),
            ("\u{3a3}", "\u{3c2}"),
        ] {
            assert_eq!(fold(a), fold(b), "{a:?} and {b:?}");
        }
        for (a, b) in [("a", "b"), ("\u{131}x", "jx"), ("model/a", "model/b")] {
            assert_ne!(fold(a), fold(b), "{a:?} and {b:?}");
        }
    }
}
