//! Configuration files: lines of `key=value`. Format text: "Configuration file".

use std::fmt;

use crate::{File, Reader, Result, layout, manifest::io_ref::stoi};

/// A configuration file, read as onert reads it.
///
/// Lines end at a line feed; `#` and what follows it do not count, wherever it stands; the key ends
/// at the first `=`; blanks and tabs around key and value do not count. Lines without a key or a
/// value are skipped, and of several lines of one key the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    entries: Vec<ConfigEntry>,
    /// Lines with something in them that set nothing.
    skipped: Vec<u64>,
    has_bom: bool,
}

/// One line of a configuration file that sets something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigEntry {
    /// The key; case counts.
    pub key: String,
    /// The value, which may hold `=`, quotes, and a carriage return at its end.
    pub value: String,
    /// The line, counted from 1.
    pub line: u64,
}

impl Config {
    /// Reads a configuration file. Nothing in one is an error: what onert skips is
    /// skipped. Bytes that are not UTF-8 read as U+FFFD.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut config = Self { has_bom: text.starts_with('\u{feff}'), ..Self::default() };
        for (number, line) in (1_u64..).zip(text.split('\n')) {
            let cut = line.split('#').next().unwrap_or_default();
            let pair = cut.split_once('=').filter(|(_, value)| !value.is_empty());
            let Some((key, value)) = pair else {
                if !cut.trim_matches(BLANKS).is_empty() && cut.trim_matches(BLANKS) != "\r" {
                    config.skipped.push(number);
                }
                continue;
            };
            let [key, value] = [key, value].map(|part| part.trim_matches(BLANKS).to_owned());
            config.entries.push(ConfigEntry { key, value, line: number });
        }
        config
    }

    /// Returns every line that sets something, in order.
    #[must_use]
    pub fn entries(&self) -> &[ConfigEntry] {
        &self.entries
    }

    /// Returns the entry of a key that counts: the last one. `None` where there is none, or its
    /// value is empty, which stands for unset.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ConfigEntry> {
        let entry = self.entries.iter().rev().find(|entry| entry.key == key);
        entry.filter(|entry| !entry.value.is_empty())
    }

    /// Returns the text of a key: what is set, or else its default. `None` for a key that onert
    /// does not know.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        let default = ConfigKey::find(key)?.default;
        Some(self.get(key).map_or(default, |entry| &entry.value))
    }

    /// Returns the lines that hold something and set nothing.
    #[must_use]
    pub fn skipped_lines(&self) -> &[u64] {
        &self.skipped
    }

    /// Tells whether the file starts with a byte order mark, which becomes part of its first key.
    #[must_use]
    pub const fn has_bom(&self) -> bool {
        self.has_bom
    }
}

impl Reader {
    /// Returns the configuration that onert reads: the first one of the manifest. `None` where it
    /// names none.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) where it is not in the package;
    /// [`Error::Core`](crate::Error::Core) where it is over the limit.
    pub fn config(&self) -> Result<Option<Config>> {
        let Some(path) = self.config_path() else { return Ok(None) };
        Ok(Some(Config::parse(&File::new(self, &path).document("configuration file in bytes")?)))
    }

    /// Returns the path of that configuration from the root of the package.
    #[must_use]
    pub fn config_path(&self) -> Option<String> {
        self.manifest().config().map(layout::document)
    }
}

/// A key that onert knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigKey {
    /// The name; of the keys that name an operator without it, `OP_BACKEND_`.
    pub name: &'static str,
    /// What its value is.
    pub value_type: ConfigType,
    /// What it is where nothing sets it.
    pub default: &'static str,
    /// What it does for the package that sets it.
    pub effect: ConfigEffect,
}

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigType {
    /// Any text.
    Text,
    /// One of these words; what onert does with any other is said by the rules of validation.
    Word(&'static [&'static str]),
    /// Names of backends with `;` between them; each is loaded as a library of the system.
    Backends,
    /// A whole number, as `stoi` reads it: blanks before and anything behind it do not count.
    Int,
    /// A truth value: false for `0`, `OFF`, `FALSE`, `N` and `NO`, true for anything else.
    Bool,
    /// `index=backend` with `;` between them.
    BackendMap,
    /// The path of a folder.
    Folder,
}

/// When a key takes effect that stands in the configuration of a package.
///
/// onert copies its options when a session is created, before the package is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigEffect {
    /// On the session that loads the package.
    ThisSession,
    /// On sessions that are created later in the same process, whatever they load.
    LaterSessions,
    /// Half on this session, which then does not run.
    Half,
    /// Never.
    Never,
}

impl ConfigKey {
    /// Returns what onert knows of a key; `None` for any other.
    #[must_use]
    pub fn find(key: &str) -> Option<Self> {
        let known = KEYS.iter().copied().find(|known| known.name == key);
        known.or_else(|| {
            let operator = key.strip_prefix(OPERATOR_PREFIX)?;
            OPERATORS.contains(&operator).then_some(OPERATOR_BACKEND)
        })
    }

    /// Returns every key but those that name an operator.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        KEYS
    }

    /// Returns the operators that `OP_BACKEND_` and their name make keys of.
    #[must_use]
    pub const fn operators() -> &'static [&'static str] {
        OPERATORS
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        KEYS.iter().map(|key| key.name)
    }
}

/// Reads a truth value as onert does.
pub(crate) fn is_true(value: &str) -> bool {
    !FALSE.contains(&value)
}

/// Says what is wrong with a value; `None` for one that does what it seems to. It reads on from the
/// value.
pub(crate) fn fault(value_type: ConfigType, value: &str) -> Option<ValueFault> {
    match value_type {
        ConfigType::Int => match stoi(value) {
            None => Some(ValueFault::NoNumber),
            Some(number) if number.to_string() != value => Some(ValueFault::ReadAs(number)),
            Some(_) => None,
        },
        ConfigType::Bool => {
            let seems_false = ["false", "off", "no", "n", "00", "disable", "disabled"]
                .iter()
                .any(|word| word.eq_ignore_ascii_case(value));
            (is_true(value) && seems_false).then_some(ValueFault::CountsAsTrue)
        }
        ConfigType::Word(words) => (!words.contains(&value)).then_some(ValueFault::NoneOf(words)),
        ConfigType::BackendMap => {
            let is_pair = |pair: &str| {
                pair.split_once('=')
                    .is_some_and(|(index, backend)| stoi(index).is_some() && !backend.is_empty())
            };
            let mut pairs = value.split(';').filter(|pair| !pair.is_empty());
            (!pairs.all(is_pair)).then_some(ValueFault::NoPairs)
        }
        ConfigType::Backends => {
            let has_path = value.contains(['/', '\\']);
            has_path.then_some(ValueFault::LibraryPath)
        }
        ConfigType::Text | ConfigType::Folder => None,
    }
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueFault {
    NoNumber,
    ReadAs(i32),
    CountsAsTrue,
    NoneOf(&'static [&'static str]),
    NoPairs,
    LibraryPath,
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => f.write_str("is not a number of 32 bits, expected a whole number"),
            Self::ReadAs(number) => write!(f, "is not a plain number; it is read as {number}"),
            Self::CountsAsTrue => {
                f.write_str("counts as true, expected one of 0, OFF, FALSE, N, NO")
            }
            Self::NoneOf(words) => write!(f, "is not one of {}", words.join(", ")),
            Self::NoPairs => f.write_str("is not a list of pairs, expected \"index=backend;…\""),
            Self::LibraryPath => f.write_str("has a slash, which leads to a library anywhere"),
        }
    }
}

const fn key(
    name: &'static str,
    value_type: ConfigType,
    default: &'static str,
    effect: ConfigEffect,
) -> ConfigKey {
    ConfigKey { name, value_type, default, effect }
}

/// Every key of onert 0.1.0, and what its next releases renamed.
const KEYS: &[ConfigKey] = {
    use ConfigEffect::{Half, LaterSessions, Never, ThisSession};
    use ConfigType::{BackendMap, Backends, Bool, Folder, Int, Text, Word};
    const BACKENDS: &str = "cpu;acl_cl;acl_neon;ruy;xnnpack;gpu_cl;trix;bcq";
    &[
        key("BACKENDS", Backends, BACKENDS, LaterSessions),
        key("EXECUTOR", Word(&["Linear", "Dataflow", "Parallel"]), "Linear", LaterSessions),
        key("CPU_MEMORY_PLANNER", Word(&["WIC", "FirstFit", "Bump"]), "WIC", LaterSessions),
        key("NUM_THREADS", Int, "-1", ThisSession),
        key("GRAPH_DOT_DUMP", Int, "0", LaterSessions),
        key("USE_SCHEDULER", Bool, "0", LaterSessions),
        key("PROFILING_MODE", Bool, "0", Half),
        key("TRACING_MODE", Bool, "0", LaterSessions),
        key("MINMAX_DUMP", Bool, "0", LaterSessions),
        key("FP16_ENABLE", Bool, "0", LaterSessions),
        key("INTERNAL_OUTPUT_ALLOC", Bool, "0", LaterSessions),
        key("USE_MMAPED_DATA", Bool, "0", ThisSession),
        key("ONERT_LOG_ENABLE", Bool, "0", Never),
        key("ENABLE_LOG", Bool, "0", Never),
        key("WORKSPACE_DIR", Folder, ".", LaterSessions),
        key("OP_BACKEND_ALLOPS", Text, "", LaterSessions),
        key("OP_BACKEND_MAP", BackendMap, "", LaterSessions),
    ]
};

/// The keys that name an operator.
const OPERATOR_BACKEND: ConfigKey =
    key("OP_BACKEND_", ConfigType::Text, "", ConfigEffect::LaterSessions);
const OPERATOR_PREFIX: &str = "OP_BACKEND_";

macro_rules! words {
    ($( $word:ident )*) => {
        &[$( stringify!($word), )*]
    };
}

/// Operators under onert's own names.
const OPERATORS: &[&str] = words! {
    AddN ArgMinMax BCQFullyConnected BCQGather BatchMatMul BatchToSpaceND BinaryArithmetic
    BroadcastTo Bulk Comparison Concat Conv2D ConvertFp16ToFp32 ConvertFp32ToFp16 Custom
    DepthToSpace DepthwiseConv2D DetectionPostProcess ElementwiseActivation ElementwiseBinary
    ElementwiseUnary EmbeddingLookup ExpandDims Fill FullyConnected FusedBatchNorm Gather
    HashtableLookup If InstanceNorm L2Normalization LSTM LocalResponseNormalization LogSoftmax Loss
    OneHot PReLU Pack Pad Permute Pool2D Pow RNN Range Rank Reduce Reshape ResizeBilinear
    ResizeNearestNeighbor Reverse RmsNorm RoPE Select Shape Slice Softmax SpaceToBatchND
    SpaceToDepth Split SplitV SquaredDifference Squeeze StatelessRandomUniform StridedSlice Tile
    TopKV2 Transpose TransposeConv Unpack While
};

/// The only values that count as false.
const FALSE: [&str; 5] = ["0", "OFF", "FALSE", "N", "NO"];

/// What is taken away around keys and values.
pub(crate) const BLANKS: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &[(&str, &str)]) {
        let config = Config::parse(text.as_bytes());
        let found: Vec<_> =
            config.entries().iter().map(|entry| (&*entry.key, &*entry.value)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn grammar() {
        reads(
            "BACKENDS=cpu\n# x\n EXCUTOR=Linear # y\n",
            &[("BACKENDS", "cpu"), ("EXCUTOR", "Linear")],
        );
        reads("A = b = c ", &[("A", "b = c")]);
        reads("A=\"x#y\"", &[("A", "\"x")]);
        reads("A=1\r\nB=2", &[("A", "1\r"), ("B", "2")]);
        reads("\t A\t=\t1\t", &[("A", "1")]);
        reads("A=", &[]);
        reads("A= ", &[("A", "")]);
        reads("A\n\n=\n#A=1", &[]);
        reads("=1", &[("", "1")]);
        reads("a=1\nA=2", &[("a", "1"), ("A", "2")]);
        reads("\u{feff}A=1", &[("\u{feff}A", "1")]);
    }

    #[test]
    fn last_line_of_a_key_counts() {
        let config = Config::parse(b"A=1\nNUM_THREADS=2\nNUM_THREADS=3\nEXECUTOR= \nEXECUTOR");
        assert_eq!(config.get("NUM_THREADS").map(|entry| entry.line), Some(3));
        assert_eq!(config.value("NUM_THREADS"), Some("3"));
        assert_eq!((config.get("EXECUTOR"), config.value("EXECUTOR")), (None, Some("Linear")));
        assert_eq!((config.get("A").is_some(), config.value("A")), (true, None));
        assert_eq!(config.skipped_lines(), [5]);
    }

    #[test]
    fn values_that_are_not_what_they_seem() {
        use ConfigType::{Backends, Bool, Int, Word};
        for (value_type, value, expected) in [
            (Int, "3", None),
            (Int, "-1", None),
            (Int, "3x", Some(ValueFault::ReadAs(3))),
            (Int, "abc", Some(ValueFault::NoNumber)),
            (Int, "99999999999", Some(ValueFault::NoNumber)),
            (Bool, "0", None),
            (Bool, "OFF", None),
            (Bool, "1", None),
            (Bool, "false", Some(ValueFault::CountsAsTrue)),
            (Bool, "no", Some(ValueFault::CountsAsTrue)),
            (Word(&["A"]), "A", None),
            (Word(&["A"]), "a", Some(ValueFault::NoneOf(&["A"]))),
            (ConfigType::BackendMap, "0=cpu;1=ruy", None),
            (ConfigType::BackendMap, "0:cpu", Some(ValueFault::NoPairs)),
            (Backends, "cpu;ruy", None),
            (Backends, "../evil", Some(ValueFault::LibraryPath)),
        ] {
            assert_eq!(fault(value_type, value), expected, "{value:?}");
        }
    }

    #[test]
    fn keys_of_operators() {
        let key = ConfigKey::find("OP_BACKEND_Conv2D").unwrap();
        assert_eq!((key.name, key.effect), ("OP_BACKEND_", ConfigEffect::LaterSessions));
        assert_eq!(ConfigKey::find("OP_BACKEND_Add"), None);
        assert_eq!(ConfigKey::find("EXCUTOR"), None);
        assert_eq!((KEYS.len(), OPERATORS.len()), (17, 70));
    }
}
