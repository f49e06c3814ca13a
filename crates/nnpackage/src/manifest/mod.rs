//! The manifest of a package. Format text: "Manifest".

pub(crate) mod io_ref;
pub(crate) mod parse;
pub(crate) mod partition;

use std::fmt;

use crate::IoRef;

/// What a package says about itself.
///
/// This is what onert reads out of a manifest, where it reads one at all: numbers in the place of
/// texts are converted as it converts them, and what it refuses is left out. What was not as it
/// should be is in the [diagnoses](crate::Reader::diagnoses) of the package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The version of the format that the package follows.
    pub version: PackageVersion,
    /// Names of configuration files in the folder `metadata`; only the first one counts, and an
    /// empty name stands for none.
    pub configs: Vec<String>,
    /// Paths of models from the root of the package; the first one is the default.
    pub models: Vec<String>,
    /// The type of each model; absent where extensions tell them (1.3.1).
    pub model_types: Option<Vec<String>>,
    /// The inputs of the package, in order (1.3.0).
    pub pkg_inputs: Vec<IoRef>,
    /// The outputs of the package, in order (1.3.0).
    pub pkg_outputs: Vec<IoRef>,
    /// Which outputs of models go into which inputs of others (1.3.0).
    pub connections: Vec<Connection>,
    /// Names of files in `metadata` about each model, empty for none; of a draft.
    pub model_infos: Vec<String>,
    /// The name of a file in `metadata` about connections; of a draft.
    pub connection_file: Option<String>,
    /// Tells whether the only model is named by `main-model`, as in the draft of 2019.
    pub is_main_model: bool,
}

impl Manifest {
    /// Returns the declared type of a model; `None` where there is none.
    #[must_use]
    pub fn model_type(&self, model: usize) -> Option<&str> {
        self.model_types.as_ref()?.get(model).map(String::as_str)
    }

    /// Returns the first configuration file, by its name in `metadata`; `None` without one.
    #[must_use]
    pub fn config(&self) -> Option<&str> {
        self.configs.first().map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns connections one by one, in order.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn edges(&self) -> impl Iterator<Item = (IoRef, IoRef)> {
        let pairs = |connection: &Connection| {
            let from = connection.from;
            connection.to.clone().into_iter().map(move |to| (from, to))
        };
        self.connections.iter().flat_map(pairs)
    }

    /// Returns the lowest version of the format that has everything that is used here.
    #[must_use]
    pub fn lowest_version(&self) -> PackageVersion {
        let types = self.model_types.as_deref();
        let is_late = |name: &String| !matches!(name.as_str(), "tflite" | "circle");
        let has_io = !self.pkg_inputs.is_empty()
            || !self.pkg_outputs.is_empty()
            || !self.connections.is_empty();
        let (minor, patch) = match types {
            None => (3, 1),
            Some(_) if has_io => (3, 0),
            Some(types) if types.iter().any(is_late) => (2, 0),
            Some(_) if !self.configs.is_empty() => (1, 0),
            Some(_) => (0, 0),
        };
        PackageVersion::new(1, minor, patch)
    }
}

/// One output of a model and the inputs of others that it goes into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// The output.
    pub from: IoRef,
    /// The inputs.
    pub to: Vec<IoRef>,
}

/// The version of the format that a package says it follows. Nothing that reads packages looks at
/// it. Format text: "version".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageVersion {
    /// The attribute `major-version`.
    pub major: Option<VersionPart>,
    /// The attribute `minor-version`.
    pub minor: Option<VersionPart>,
    /// The attribute `patch-version`.
    pub patch: Option<VersionPart>,
}

impl PackageVersion {
    /// Makes a version of three texts, as the format has them.
    #[must_use]
    pub fn new(major: u64, minor: u64, patch: u64) -> Self {
        let [major, minor, patch] = [major, minor, patch]
            .map(|number| Some(VersionPart { text: number.to_string(), is_number: false }));
        Self { major, minor, patch }
    }

    /// Returns the three numbers; `None` where one is absent or none.
    #[must_use]
    pub fn numbers(&self) -> Option<[u64; 3]> {
        let number = |part: &Option<VersionPart>| part.as_ref()?.number();
        Some([number(&self.major)?, number(&self.minor)?, number(&self.patch)?])
    }
}

impl fmt::Display for PackageVersion {
    /// Writes it as it stands in the manifest, with `?` for what is absent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |part: &Option<VersionPart>| {
            part.as_ref().map_or_else(|| "?".to_owned(), |part| part.text.clone())
        };
        let [major, minor, patch] = [&self.major, &self.minor, &self.patch].map(part);
        f.pad(&format!("{major}.{minor}.{patch}"))
    }
}

/// One number of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionPart {
    /// What stands in the manifest.
    pub text: String,
    /// Tells whether it is a number in JSON, and not a text as it should be.
    pub is_number: bool,
}

impl VersionPart {
    /// Returns the number; `None` where the text is none, or one of more than 64 bits.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.text.parse().ok().filter(|_| self.is_whole())
    }

    /// Returns whether it is a whole number, of 64 bits or more.
    pub(crate) fn is_whole(&self) -> bool {
        !self.text.is_empty() && self.text.bytes().all(|byte| byte.is_ascii_digit())
    }
}
