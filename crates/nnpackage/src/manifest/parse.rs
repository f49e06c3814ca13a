//! Manifests as onert reads them, and what is not as it should be in one.

use std::borrow::Cow;

use circle_format::Diagnoses;
use tensor_core::{Limits, text::short};

use crate::{
    Connection, Diagnosis, Error, IoRef, Manifest, PackageVersion, Position, Result, VersionPart,
    json::{Document, Leniency, Member, Node, Value},
    layout::MANIFEST,
    manifest::io_ref,
    nearest::nearest,
};

impl Manifest {
    /// Reads a manifest, also one that is only JSON to onert.
    ///
    /// # Errors
    ///
    /// [`Error::Json`] where it is not even that, [`Error::Document`] where it is not an object,
    /// [`Error::ModelsMissing`]; [`Error::Core`] where it is nested too deeply.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        Ok(Parsed::of(bytes, limits)?.manifest)
    }
}

/// A manifest, where its parts stand, and what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) manifest: Manifest,
    pub(crate) findings: Diagnoses,
    /// Where each model is named.
    pub(crate) model_places: Vec<Position>,
    /// Where each type is.
    pub(crate) type_places: Vec<Position>,
    /// Where each configuration file is named.
    pub(crate) config_places: Vec<Position>,
}

impl Parsed {
    pub(crate) fn of(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let document = Document::parse(WHAT, bytes, limits)?;
        let mut parsed = Self {
            manifest: Manifest::default(),
            findings: Diagnoses::default(),
            model_places: Vec::new(),
            type_places: Vec::new(),
            config_places: Vec::new(),
        };
        parsed.leniencies(document.leniencies);
        match document.root.value {
            Value::Object(members) => parsed.attributes(&members),
            // onert takes it for an empty object.
            Value::Null => {}
            ref value => {
                let (what, at, path) = (WHAT, document.root.at, "root".to_owned());
                let (found, expected) = (value.describe().into_owned(), "an object");
                return Err(Error::Document { what, at, path, found, expected });
            }
        }
        if parsed.manifest.models.is_empty() {
            return Err(Error::ModelsMissing);
        }
        let count = parsed.manifest.models.len();
        if count > MAX_MODELS {
            let (what, at, path) = (WHAT, document.root.at, "models".to_owned());
            let (found, expected) = (format!("{count} paths"), "at most 65535");
            return Err(Error::Document { what, at, path, found, expected });
        }
        Ok(parsed)
    }

    fn leniencies(&mut self, leniencies: Vec<(Position, Leniency)>) {
        for (at, leniency) in leniencies {
            let (rule, message): (_, Cow<'static, str>) = match leniency {
                Leniency::ByteOrderMark => ("nnp/json-bom", "starts with a byte order mark".into()),
                Leniency::NotUtf8 => ("nnp/json-utf8", "is not UTF-8".into()),
                Leniency::Comment => ("nnp/json-comment", "has a comment".into()),
                Leniency::TrailingComma => {
                    ("nnp/json-trailing-comma", "has a comma behind the last value".into())
                }
                Leniency::TextAfterEnd => {
                    ("nnp/json-text-after-end", "has text behind its end".into())
                }
                Leniency::RepeatedKey(key) => {
                    let key = short(&key);
                    let message = format!("has {key:?} twice; the last one counts");
                    ("nnp/json-repeated-key", message.into())
                }
                Leniency::Other(reason) => {
                    ("nnp/json-lenient", format!("is not strict JSON: {reason}").into())
                }
            };
            self.push(Diagnosis::warning(rule, message).position(at).ignored());
        }
    }

    fn attributes(&mut self, members: &[Member]) {
        let get = |name: &str| members.iter().rev().find(|member| member.key == name);
        self.version(&get);
        let configs = get("configs").map(|member| self.paths(member));
        (self.manifest.configs, self.config_places) = configs.unwrap_or_default();
        if let Some(extra) = self.config_places.get(1) {
            let count = self.manifest.configs.len();
            let message =
                format!("names {count} configuration files, of which only the first counts");
            let diagnosis = Diagnosis::warning("nnp/several-configs", message);
            self.push(diagnosis.path("/configs/1").position(*extra).ignored());
        }
        match get("models") {
            Some(member) => {
                (self.manifest.models, self.model_places) = self.paths(member);
            }
            None => self.main_model(get("main-model")),
        }
        if let Some(member) = get("model-types").filter(|member| !member.value.is_null()) {
            let (types, places) = self.paths(member);
            (self.manifest.model_types, self.type_places) = (Some(types), places);
        }
        self.manifest.pkg_inputs = get("pkg-inputs").map_or_else(Vec::new, |m| self.references(m));
        self.manifest.pkg_outputs =
            get("pkg-outputs").map_or_else(Vec::new, |m| self.references(m));
        self.manifest.connections =
            get("model-connect").map_or_else(Vec::new, |member| self.connections(member));
        if let Some(member) = get("model-infos") {
            self.draft(member);
            self.manifest.model_infos = self.paths(member).0;
        }
        if let Some(member) = get("connection") {
            self.draft(member);
            self.manifest.connection_file = member.value.value.to_text();
        }
        self.version_is_enough();
        for member in members.iter().filter(|member| !ATTRIBUTES.contains(&member.key.as_str())) {
            self.unknown(member);
        }
    }

    fn version<'m>(&mut self, get: &impl Fn(&str) -> Option<&'m Member>) {
        let mut missing = Vec::new();
        let mut part = |name: &'static str| {
            let Some(member) = get(name) else {
                missing.push(name);
                return None;
            };
            let whole = "one whole number";
            let text = "a text that holds one whole number";
            let part = |text: &str, is_number| VersionPart { text: text.to_owned(), is_number };
            let part = match &member.value.value {
                Value::Text(text) => Some(part(text, false)),
                Value::Number(text) => Some(part(text, true)),
                _ => None,
            };
            let is_whole = part.as_ref().is_some_and(VersionPart::is_whole);
            let expected = match &part {
                Some(VersionPart { is_number: false, .. }) if is_whole => return part,
                Some(VersionPart { is_number: false, .. }) => whole,
                _ => text,
            };
            let found = member.value.value.describe();
            let message = format!("{name} is {found}, expected {expected}");
            // Numbers are in files of the field; what is no number is not.
            let diagnosis = match is_whole {
                true => Diagnosis::warning("nnp/version", message),
                false => Diagnosis::error("nnp/version", message),
            };
            self.push(diagnosis.path(pointer(name)).position(member.value.at).ignored());
            part
        };
        let [major, minor, patch] =
            ["major-version", "minor-version", "patch-version"].map(&mut part);
        self.manifest.version = PackageVersion { major, minor, patch };
        if !missing.is_empty() {
            let message = format!("has no {}", missing.join(", no "));
            self.push(Diagnosis::warning("nnp/version-missing", message).ignored());
        }
        if self.manifest.version.numbers().is_some_and(|numbers| numbers > NEWEST) {
            let message =
                format!("version is {}, but 1.3.1 is the newest known", self.manifest.version);
            let diagnosis = Diagnosis::warning("nnp/version-newer", message);
            self.push(diagnosis.path("/major-version").ignored());
        }
    }

    /// Notes a version that does not have everything that is used.
    fn version_is_enough(&mut self) {
        let lowest = self.manifest.lowest_version();
        let found = &self.manifest.version;
        if let (Some(numbers), Some(needed)) = (found.numbers(), lowest.numbers())
            && numbers < needed
        {
            let message = format!("version is {found}, but what is used is as of {lowest}");
            let diagnosis = Diagnosis::note("nnp/version-older", message).path("/major-version");
            self.push(diagnosis.ignored());
        }
    }

    /// Reads an array of texts; what onert converts to text is converted.
    fn paths(&mut self, member: &Member) -> (Vec<String>, Vec<Position>) {
        let name = member.key.as_str();
        let (mut paths, mut places) = (Vec::new(), Vec::new());
        for (index, node) in self.array(member).iter().enumerate() {
            let path = format!("{}/{index}", pointer(name));
            let found = node.value.describe();
            let message = format!("{name}[{index}] is {found}, expected a text");
            let Some(text) = node.value.to_text() else {
                let diagnosis = Diagnosis::error("nnp/attribute-type", message);
                let diagnosis = diagnosis.path(path).position(node.at);
                self.push(diagnosis.load_fails("Type is not convertible to string"));
                continue;
            };
            if !matches!(node.value, Value::Text(_)) {
                let diagnosis = Diagnosis::warning("nnp/attribute-type", message);
                let hint = format!("onert reads it as {:?}", short(&text));
                self.push(diagnosis.path(path).position(node.at).hint(hint));
            }
            paths.push(text);
            places.push(node.at);
        }
        (paths, places)
    }

    fn array<'m>(&mut self, member: &'m Member) -> &'m [Node] {
        let (name, node) = (member.key.as_str(), &member.value);
        match &node.value {
            Value::Array(items) => items,
            Value::Null => &[],
            value => {
                let found = value.describe();
                let message = format!("{name} is {found}, expected an array");
                let diagnosis = Diagnosis::error("nnp/attribute-type", message);
                let diagnosis = diagnosis.path(pointer(name)).position(node.at);
                let is_skipped = WALKED.contains(&name) && !matches!(value, Value::Object(_));
                self.push(match is_skipped {
                    true => diagnosis.ignored(),
                    false => diagnosis.load_fails(NO_ARRAY),
                });
                &[]
            }
        }
    }

    fn main_model(&mut self, member: Option<&Member>) {
        let Some(member) = member else { return };
        let Some(path) = member.value.value.to_text().filter(|path| !path.is_empty()) else {
            return;
        };
        self.manifest.is_main_model = true;
        self.manifest.models = vec![path];
        self.model_places = vec![member.value.at];
        let message = "names its model by main-model, as in the draft of 2019";
        let diagnosis = Diagnosis::error("nnp/draft-attribute", message).path("/main-model");
        let diagnosis = diagnosis.position(member.at).hint("name it in an array \"models\"");
        self.push(diagnosis.load_fails("Invalid model size - 0"));
    }

    fn references(&mut self, member: &Member) -> Vec<IoRef> {
        let name = member.key.as_str();
        let items = self.array(member);
        let items = items.iter().enumerate();
        items
            .filter_map(|(index, node)| self.reference(&format!("{name}[{index}]"), node))
            .collect()
    }

    fn reference(&mut self, path: &str, node: &Node) -> Option<IoRef> {
        let at = pointer(&path.replace('[', "/").replace(']', ""));
        let Some(text) = node.value.to_text() else {
            let found = node.value.describe();
            let message = format!("{path} is {found}, expected a text");
            let diagnosis = Diagnosis::error("nnp/reference", message).path(at).position(node.at);
            self.push(diagnosis.load_fails("Type is not convertible to string"));
            return None;
        };
        let shown = short(&text).into_owned();
        match text.parse::<IoRef>() {
            Ok(reference) => {
                if !io_ref::is_exact(&text) {
                    let message =
                        format!("{path} is {shown:?}, which onert reads as \"{reference}\"");
                    let diagnosis = Diagnosis::warning("nnp/reference-form", message);
                    self.push(diagnosis.path(at).position(node.at).ignored());
                }
                Some(reference)
            }
            Err(fault) => {
                let message = format!("{path}: {shown:?} {fault}");
                let diagnosis = Diagnosis::error("nnp/reference", message);
                let diagnosis = diagnosis.path(at).position(node.at);
                let diagnosis = match fault {
                    io_ref::IoRefFault::Number => diagnosis.load_fails("stoi"),
                    _ => diagnosis.prepare_fails("unordered_map::at"),
                };
                self.push(diagnosis);
                None
            }
        }
    }

    fn connections(&mut self, member: &Member) -> Vec<Connection> {
        let mut connections = Vec::new();
        for (index, node) in self.array(member).iter().enumerate() {
            let path = format!("model-connect[{index}]");
            let Value::Object(members) = &node.value else {
                let found = node.value.describe();
                let message =
                    format!("{path} is {found}, expected an object with \"from\" and \"to\"");
                let diagnosis = Diagnosis::error("nnp/connection", message);
                self.push(diagnosis.path(format!("/model-connect/{index}")).position(node.at));
                continue;
            };
            let get = |name: &str| members.iter().rev().find(|member| member.key == name);
            let (Some(from), Some(to)) = (get("from"), get("to")) else {
                let message = format!("{path} does not have both \"from\" and \"to\"");
                let diagnosis = Diagnosis::error("nnp/connection", message);
                let diagnosis = diagnosis.path(format!("/model-connect/{index}")).position(node.at);
                let failed = "NYI: Multi model execution for this edge set is not supported yet";
                self.push(match (get("from"), get("to")) {
                    (None, Some(_)) => diagnosis.run_fails(failed),
                    _ => diagnosis,
                });
                continue;
            };
            let from = self.reference(&format!("{path}/from"), &from.value);
            let to = self.array(to).iter().enumerate();
            let to = to.filter_map(|(at, to)| self.reference(&format!("{path}/to[{at}]"), to));
            let to = to.collect();
            if let Some(from) = from {
                connections.push(Connection { from, to });
            }
        }
        connections
    }

    fn draft(&mut self, member: &Member) {
        let name = member.key.as_str();
        let message = format!("{name} is an attribute of a draft, which was not published");
        let diagnosis = Diagnosis::note("nnp/draft-attribute", message).path(pointer(name));
        self.push(diagnosis.position(member.at).ignored());
    }

    fn unknown(&mut self, member: &Member) {
        let rule = "nnp/unknown-attribute";
        let name = short(&member.key);
        let message = format!("attribute {name:?} is not one of the format");
        let diagnosis = Diagnosis::warning(rule, message).path(pointer(&name));
        let diagnosis = diagnosis.position(member.at).ignored();
        // What is not listed needs no hint, and there may be very many.
        let is_full = self.findings.is_full(rule);
        let known = (!is_full).then(|| nearest(&member.key, ATTRIBUTES.iter().copied())).flatten();
        self.push(match known {
            Some(known) => diagnosis.hint(format!("{known:?} may have been meant")),
            None => diagnosis,
        });
    }

    fn push(&mut self, diagnosis: Diagnosis) {
        self.findings.push(diagnosis.entry(MANIFEST));
    }
}

impl Node {
    fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }
}

/// Returns the JSON pointer of a path that has slashes between its parts.
fn pointer(path: &str) -> String {
    format!("/{path}")
}

const WHAT: &str = "MANIFEST";

/// Every attribute of a version or a draft.
const ATTRIBUTES: [&str; 12] = [
    "major-version",
    "minor-version",
    "patch-version",
    "configs",
    "models",
    "model-types",
    "pkg-inputs",
    "pkg-outputs",
    "model-connect",
    "model-infos",
    "connection",
    "main-model",
];

/// Models that a reference has numbers for.
const MAX_MODELS: usize = 65_535;

/// The newest published version.
const NEWEST: [u64; 3] = [1, 3, 1];

/// Arrays that onert walks, and takes for empty ones where they are no arrays or objects.
const WALKED: [&str; 4] = ["pkg-inputs", "pkg-outputs", "model-connect", "to"];

/// What jsoncpp says.
const NO_ARRAY: &str = "in Json::Value::operator[](ArrayIndex)const: requires arrayValue";
