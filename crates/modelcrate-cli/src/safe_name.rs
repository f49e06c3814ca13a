//! Names from files as names of files.

use std::collections::{HashMap, HashSet};

/// Names of new files, of which no two are one on any system.
#[derive(Default)]
pub(crate) struct SafeNames {
    /// In lower case, as some systems tell them apart.
    taken: HashSet<String>,
    /// The last number of each path that was taken already.
    numbers: HashMap<String, u64>,
}

impl SafeNames {
    /// Returns a path below a folder for a name: what file systems disagree about is written as `%XX`,
    /// by its bytes in UTF-8; a name that is cut, or taken in letters of the other case, ends in `~`
    /// and a number. Folders in the name stay where `folders` says so.
    pub(crate) fn path(&mut self, folder: &str, name: &str, end: &str, folders: Folders) -> String {
        let escaped = match folders {
            Folders::Keep => name.split('/').map(escape).collect::<Vec<_>>().join("/"),
            Folders::Escape => escape(name),
        };
        let (mut stem, mut is_cut) = (escaped.as_str(), false);
        if let Some((at, _)) = escaped.char_indices().nth(LONGEST) {
            (stem, is_cut) = (escaped.get(..at).unwrap_or_default(), true);
        }
        let mut path = format!("{folder}/{stem}{end}");
        let number = self.numbers.entry(path.to_lowercase()).or_insert(1);
        while is_cut || !self.taken.insert(path.to_lowercase()) {
            *number = number.saturating_add(1);
            path = format!("{folder}/{stem}~{number}{end}");
            is_cut = false;
        }
        path
    }
}

/// What becomes of `/` in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folders {
    Keep,
    Escape,
}

/// Writes a name so that it is one of a file anywhere, and is told back from what it became.
fn escape(name: &str) -> String {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_device = DEVICES.contains(&stem.trim_end_matches(|c: char| c.is_ascii_digit()));
    let last = name.len().saturating_sub(1);
    let mut text = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        let is_end = at == 0 || at == last;
        let is_plain = byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'+' | b'@' | b',' | b'(' | b')' | b'[' | b']' | b'=')
            || (matches!(byte, b'.' | b' ') && !is_end);
        if is_plain && !(is_device && at == 0) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    if text.is_empty() { "%".to_owned() } else { text }
}

/// What Windows takes for devices, with or without a number.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// Characters of a name, which with an end have room in any file system.
const LONGEST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_back() {
        for (name, file) in [
            ("layer.0.weight", "layer.0.weight"),
            ("a/b", "a%2Fb"),
            ("..", "%2E%2E"),
            (".hidden", "%2Ehidden"),
            ("ends.", "ends%2E"),
            ("a\\b:c\0\n%~", "a%5Cb%3Ac%00%0A%25%7E"),
            ("重み", "%E9%87%8D%E3%81%BF"),
            ("con", "%63on"),
            ("Lpt1.x", "%4Cpt1.x"),
            ("constant", "constant"),
            ("", "%"),
        ] {
            assert_eq!(escape(name), file, "{name:?}");
        }
    }

    #[test]
    fn no_two_are_one() {
        let mut names = SafeNames::default();
        let mut path = |name: &str| names.path("t", name, ".npy", Folders::Escape);
        assert_eq!(path("w"), "t/w.npy");
        assert_eq!(path("W"), "t/W~2.npy");
        assert_eq!(path("w"), "t/w~3.npy");
        let long = "x".repeat(1000);
        assert_eq!(path(&long), format!("t/{}~2.npy", "x".repeat(200)));
        assert_eq!(path(&long), format!("t/{}~3.npy", "x".repeat(200)));
        let kept = SafeNames::default().path("files", "model/../a//b", "", Folders::Keep);
        assert_eq!(kept, "files/model/%2E%2E/a/%/b");
        // In time that does not grow with the square of how many there are.
        let mut names = SafeNames::default();
        for at in 0..20_000 {
            names.path("t", &format!("{long}{at}"), ".npy", Folders::Escape);
        }
        assert_eq!(names.path("t", &long, "", Folders::Escape), format!("t/{}~2", "x".repeat(200)));
    }
}
