//! Changes of configuration files that leave everything else in them as it is.

use crate::{Config, EditFault, Result, config::BLANKS};

/// One change of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigChange {
    /// Makes a key have a value.
    Set {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// Takes away every line that sets a key.
    Unset {
        /// The key.
        key: String,
    },
    /// Gives a key another name, in every line that sets it.
    Rename {
        /// The key.
        key: String,
        /// Its new name.
        to: String,
    },
}

impl ConfigChange {
    /// Makes a [`ConfigChange::Set`].
    #[must_use]
    pub fn set(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Set { key: key.into(), value: value.into() }
    }

    /// Makes a [`ConfigChange::Unset`].
    #[must_use]
    pub fn unset(key: impl Into<String>) -> Self {
        Self::Unset { key: key.into() }
    }

    /// Makes a [`ConfigChange::Rename`].
    #[must_use]
    pub fn rename(key: impl Into<String>, to: impl Into<String>) -> Self {
        Self::Rename { key: key.into(), to: to.into() }
    }

    fn apply(&self, text: &[u8]) -> Result<Vec<u8>, EditFault> {
        match self {
            Self::Set { key, value } => set(text, key, value),
            Self::Unset { key } => unset(text, key),
            Self::Rename { key, to } => rename(text, key, to),
        }
    }

    /// Tells whether a configuration says what was asked for.
    fn is_done(&self, config: &Config) -> bool {
        let is_set = |key: &str| config.entries().iter().any(|entry| entry.key == key);
        match self {
            Self::Set { key, value } => config.get(key).is_some_and(|entry| entry.value == *value),
            Self::Unset { key } => !is_set(key),
            Self::Rename { key, to } => !is_set(key) && is_set(to),
        }
    }
}

impl Config {
    /// Makes changes of a configuration file, in order, and returns the new one.
    ///
    /// Comments, blanks, order and line ends stay. Of several lines of one key the last one is
    /// changed, which is the one that counts; a new key comes as the last line. A carriage return
    /// that onert takes for the end of a value goes away with the value. What is taken away takes
    /// the comment in its line with it.
    ///
    /// # Errors
    ///
    /// [`Error::Edit`](crate::Error::Edit) where a key or a value cannot be written in a
    /// configuration, where a key that is to be taken away or renamed is not set, and where the new
    /// name is that of another key.
    ///
    /// # Examples
    ///
    /// ```
    /// use nnpackage::{Config, ConfigChange};
    ///
    /// let text = b"NUM_THREADS = 1 # for now\n";
    /// let edited = Config::edit(text, &[ConfigChange::set("NUM_THREADS", "4")])?;
    /// assert_eq!(edited, b"NUM_THREADS = 4 # for now\n");
    /// # Ok::<(), nnpackage::Error>(())
    /// ```
    pub fn edit(text: &[u8], changes: &[ConfigChange]) -> Result<Vec<u8>> {
        let mut text = text.to_owned();
        for change in changes {
            text = change.apply(&text)?;
            if !change.is_done(&Self::parse(&text)) {
                let (ConfigChange::Set { key, .. }
                | ConfigChange::Unset { key }
                | ConfigChange::Rename { key, .. }) = change;
                let reason = "would not be read back";
                return Err(EditFault::ConfigKey { key: key.clone(), reason }.into());
            }
        }
        Ok(text)
    }
}

/// A line that sets something, and where its parts are in it.
struct Line<'t> {
    text: &'t [u8],
    /// Bytes in front of the key, and of the key itself.
    key: (usize, usize),
    /// Bytes in front of the value, and of the value itself.
    value: (usize, usize),
}

impl<'t> Line<'t> {
    /// Reads a line as onert does; `None` for one that sets nothing.
    fn parse(text: &'t [u8]) -> Option<Self> {
        let cut = text.split(|byte| *byte == b'#').next().unwrap_or_default();
        let equals = cut.iter().position(|byte| *byte == b'=')?;
        let (key, value) = cut.split_at_checked(equals)?;
        let value = value.get(1..).filter(|value| !value.is_empty())?;
        let key = trimmed(key);
        let (start, len) = trimmed(value);
        let before = equals.saturating_add(1);
        Some(Self { text, key, value: (before.saturating_add(start), len) })
    }

    fn is(&self, key: &str) -> bool {
        self.part(self.key) == key.as_bytes()
    }

    fn part(&self, (start, len): (usize, usize)) -> &'t [u8] {
        self.text.get(start..start.saturating_add(len)).unwrap_or_default()
    }

    /// Returns the line with other bytes in the place of a part.
    fn with(&self, (start, len): (usize, usize), new: &str) -> Vec<u8> {
        let [before, behind] = [self.text.get(..start), self.text.get(start.saturating_add(len)..)];
        [before.unwrap_or_default(), new.as_bytes(), behind.unwrap_or_default()].concat()
    }
}

/// Returns how many blanks are in front of a text, and the length of the text without those around.
fn trimmed(text: &[u8]) -> (usize, usize) {
    let is_blank = |byte: &&u8| BLANKS.contains(&char::from(**byte));
    let before = text.iter().take_while(is_blank).count();
    let behind = text.iter().rev().take_while(is_blank).count();
    (before.min(text.len()), text.len().saturating_sub(before).saturating_sub(behind))
}

fn set(text: &[u8], key: &str, value: &str) -> Result<Vec<u8>, EditFault> {
    check_key(key)?;
    let refuse = |reason| {
        let (key, value) = (key.to_owned(), value.to_owned());
        Err(EditFault::ConfigValue { key, value, reason })
    };
    match value {
        "" => return refuse("is empty, which means not set"),
        _ if value.trim_matches(BLANKS) != value => return refuse("has blanks around it"),
        _ if value.contains('#') => return refuse("has a # in it, which starts a comment"),
        _ if value.contains(['\n', '\r', '\0']) => return refuse("has a line end in it"),
        _ => {}
    }
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let found = lines
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, line)| Some((at, Line::parse(line).filter(|line| line.is(key))?)));
    if let Some((at, line)) = found {
        let new = line.with(line.value, value);
        let lines = lines.iter().enumerate();
        let lines: Vec<&[u8]> =
            lines.map(|(other, line)| if other == at { new.as_slice() } else { line }).collect();
        return Ok(lines.join(&b'\n'));
    }
    let mut text = text.to_owned();
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(format!("{key}={value}\n").as_bytes());
    Ok(text)
}

fn unset(text: &[u8], key: &str) -> Result<Vec<u8>, EditFault> {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let sets = |line: &&[u8]| Line::parse(line).is_some_and(|line| line.is(key));
    if !lines.iter().any(sets) {
        return Err(EditFault::NotSet { key: key.to_owned() });
    }
    let kept: Vec<&[u8]> = lines.into_iter().filter(|line| !sets(line)).collect();
    Ok(kept.join(&b'\n'))
}

fn rename(text: &[u8], key: &str, to: &str) -> Result<Vec<u8>, EditFault> {
    check_key(to)?;
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let sets =
        |name: &str| lines.iter().any(|line| Line::parse(line).is_some_and(|line| line.is(name)));
    if !sets(key) {
        return Err(EditFault::NotSet { key: key.to_owned() });
    }
    if sets(to) {
        return Err(EditFault::AlreadySet { key: to.to_owned() });
    }
    let lines = lines.iter().map(|line| match Line::parse(line).filter(|line| line.is(key)) {
        Some(line) => line.with(line.key, to),
        None => line.to_vec(),
    });
    Ok(lines.collect::<Vec<_>>().join(&b'\n'))
}

fn check_key(key: &str) -> Result<(), EditFault> {
    let reason = match key {
        "" => "is empty",
        _ if key.trim_matches(BLANKS) != key => "has blanks around it",
        _ if key.contains(['#', '=']) => "has a # or = in it",
        _ if key.contains(['\n', '\r', '\0']) => "has a line end in it",
        _ => return Ok(()),
    };
    Err(EditFault::ConfigKey { key: key.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn edits(text: &str, change: ConfigChange, expected: &str) {
        let edited = Config::edit(text.as_bytes(), &[change]).unwrap();
        assert_eq!(String::from_utf8(edited).unwrap(), expected);
    }

    #[track_caller]
    fn refuses(text: &str, change: ConfigChange, message: &str) {
        assert_eq!(Config::edit(text.as_bytes(), &[change]).unwrap_err().to_string(), message);
    }

    #[test]
    fn values_are_set_in_their_place() {
        let set = |value: &str| ConfigChange::set("A", value);
        edits("", set("1"), "A=1\n");
        edits("B=1", set("1"), "B=1\nA=1\n");
        edits("A=1\n", set("2"), "A=2\n");
        edits("# top\n\t A =  1  # one\nB=2", set("3=4"), "# top\n\t A =  3=4  # one\nB=2");
        edits("A=1\nA=2\nB=3\n", set("4"), "A=1\nA=4\nB=3\n");
        edits("A= \n", set("4"), "A= 4\n");
        edits("A=\n", set("4"), "A=\nA=4\n");
        edits("a=1\n#A=1\n", set("4"), "a=1\n#A=1\nA=4\n");
        edits("\u{feff}A=1\n", set("4"), "\u{feff}A=1\nA=4\n");
    }

    #[test]
    fn carriage_returns_of_values_go_away() {
        edits("A=1\r\nB=2 # x\r\n", ConfigChange::set("A", "3"), "A=3\nB=2 # x\r\n");
        edits("A=1\r\nB=2 # x\r\n", ConfigChange::set("B", "3"), "A=1\r\nB=3 # x\r\n");
    }

    #[test]
    fn keys_are_taken_away_and_renamed() {
        let unset = || ConfigChange::unset("A");
        edits("A=1\nB=2\n A = 3 # x\n# A=\n", unset(), "B=2\n# A=\n");
        edits("A=1", unset(), "");
        refuses("B=1\nA=\n", unset(), "key \"A\" is not set");
        let rename = || ConfigChange::rename("A", "C");
        edits("\tA = 1 # A\nB=A\nA=2\n", rename(), "\tC = 1 # A\nB=A\nC=2\n");
        refuses("A=1\nC=2\n", rename(), "key \"C\" is set already");
        refuses("C=2\n", rename(), "key \"A\" is not set");
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let edited = Config::edit(b"X=\xff\nA=1 # \xfe\n", &[ConfigChange::set("A", "2")]).unwrap();
        assert_eq!(edited, b"X=\xff\nA=2 # \xfe\n");
    }

    #[test]
    fn what_cannot_be_written() {
        let set = |key: &str, value: &str| ConfigChange::set(key, value);
        refuses("", set("", "1"), "key \"\" cannot be written: it is empty");
        refuses("", set("A=B", "1"), "key \"A=B\" cannot be written: it has a # or = in it");
        refuses("", set(" A", "1"), "key \" A\" cannot be written: it has blanks around it");
        refuses("", set("A\n", "1"), "key \"A\\n\" cannot be written: it has a line end in it");
        let value = |value: &str, reason: &str| {
            let message = format!("value {value:?} of A cannot be written: it {reason}");
            refuses("", set("A", value), &message);
        };
        value("", "is empty, which means not set");
        value("1 ", "has blanks around it");
        value("a#b", "has a # in it, which starts a comment");
        value("a\r", "has a line end in it");
    }
}
