//! What a catalogue says of a file.

use std::{
    collections::BTreeSet,
    fmt::Display,
    num::NonZeroUsize,
    path::Path,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use tensor_core::{Chain, Report, Severity};

use super::options::CatalogOptions;
use crate::{
    AnyReader, Error, Port, ReadOptions, SummaryOptions, TensorSummary, Verdict, common_key,
};

/// A row of a catalogue: a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileRow {
    /// The version of this layout.
    pub schema: u32,
    /// Its path or address, as it was given or found.
    pub path: String,
    /// Its length in bytes, where it is known.
    pub bytes: Option<u64>,
    /// The entity tag of its version, where its store has one.
    pub etag: Option<String>,
    /// When it was changed last, by RFC 3339 in UTC.
    pub modified: Option<String>,
    /// The files beside it that the row is about, too: its shards, by their names.
    pub parts: Vec<PartRow>,
    /// Its format, where that was made out.
    pub format: Option<String>,
    /// The version of the format.
    pub version: Option<String>,
    /// `valid`, `warnings`, `invalid`, or `unread` where it could not be looked at.
    pub verdict: String,
    /// Whether every byte was checked, and not only what needs no tensor data.
    pub verified: bool,
    /// The ids of the rules that something was found by, sorted.
    #[serde(default)]
    pub rules: Vec<String>,
    /// How many errors there are, of at most 1,000 of a rule.
    pub errors: u64,
    /// How many warnings there are, of at most 1,000 of a rule.
    pub warnings: u64,
    /// How many tensors it has.
    pub tensors: Option<u64>,
    /// The bytes of their decoded elements.
    pub weight_bytes: Option<u64>,
    /// The digest of its tensors, whatever they are stored in; where that was asked for.
    pub hash: Option<String>,
    /// Its licence, as it says.
    pub license: Option<String>,
    /// What the model takes.
    #[serde(default)]
    pub inputs: Vec<PortRow>,
    /// What the model returns.
    #[serde(default)]
    pub outputs: Vec<PortRow>,
    /// Why it does not open, its first error, or why it has no digest.
    pub error: Option<String>,
}

/// A file beside another one, which that one is not whole without.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartRow {
    /// Its name.
    pub name: String,
    /// Its length in bytes; none where it is not there.
    pub bytes: Option<u64>,
    /// The entity tag of its version, where its store has one.
    pub etag: Option<String>,
    /// When it was changed last, by RFC 3339 in UTC.
    pub modified: Option<String>,
}

/// An input or an output of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PortRow {
    /// Its name.
    pub name: String,
    /// The type of its elements, as the format calls it.
    pub dtype: String,
    /// Its shape as JSON: a list with a number, a symbol or `*` for each dimension, or one of the latter
    /// for all of it.
    pub shape: String,
}

/// A row of the second file of a catalogue: a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TensorRow {
    /// The version of this layout.
    pub schema: u32,
    /// The path of its file.
    pub path: String,
    /// Its name.
    pub name: String,
    /// The type of its elements; none where that is unknown.
    pub dtype: Option<String>,
    /// Its dimensions, outermost first.
    #[serde(default)]
    pub shape: Vec<u64>,
    /// The bytes of its decoded components.
    pub bytes: u64,
    /// The SHA-256 of its decoded bytes, where that was asked for.
    pub sha256: Option<String>,
    /// The smallest finite element; this and what follows where it was asked for.
    pub min: Option<f64>,
    /// The largest finite element.
    pub max: Option<f64>,
    /// The mean of the finite elements.
    pub mean: Option<f64>,
    /// How far they are from it.
    pub std: Option<f64>,
    /// How many elements are zero.
    pub zeros: Option<u64>,
    /// How many elements are NaN.
    pub nan: Option<u64>,
    /// How many elements are infinite.
    pub infinite: Option<u64>,
}

/// What tells one version of a file from another.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamp {
    pub(super) bytes: Option<u64>,
    pub(super) etag: Option<String>,
    pub(super) modified: Option<SystemTime>,
}

impl Stamp {
    /// Returns what is known of a file of this machine. What is in a folder may change without it.
    pub(super) fn of_path(path: &Path) -> Self {
        match path.metadata() {
            Ok(file) if file.is_file() => {
                Self { bytes: Some(file.len()), etag: None, modified: file.modified().ok() }
            }
            _ => Self::default(),
        }
    }

    #[cfg(feature = "remote")]
    pub(super) fn of(opened: &crate::remote::Opened) -> Self {
        Self {
            bytes: Some(opened.source().len()),
            etag: opened.etag().map(str::to_owned),
            modified: opened.modified(),
        }
    }

    /// Tells whether it tells versions apart: lists of hubs do not.
    #[cfg(feature = "remote")]
    pub(super) const fn names_a_version(&self) -> bool {
        self.etag.is_some() || self.modified.is_some()
    }

    /// Tells whether a row is of this version.
    fn is_of(&self, bytes: Option<u64>, etag: Option<&str>, modified: Option<&str>) -> bool {
        let is_same = match (etag, &self.etag) {
            // Some stores leave out the quotes in lists.
            (Some(old), Some(new)) => old.trim_matches('"') == new.trim_matches('"'),
            _ => modified.is_some() && modified == self.modified.map(rfc3339).as_deref(),
        };
        is_same && bytes == self.bytes
    }
}

impl PartRow {
    pub(super) fn new(name: &str, stamp: &Stamp) -> Self {
        Self {
            name: name.to_owned(),
            bytes: stamp.bytes,
            etag: stamp.etag.clone(),
            modified: stamp.modified.map(rfc3339),
        }
    }

    /// Tells whether it is of the same version of the file.
    pub(super) fn holds(&self, stamp: &Stamp) -> bool {
        stamp.is_of(self.bytes, self.etag.as_deref(), self.modified.as_deref())
    }
}

impl FileRow {
    /// Starts with what is known of a file without opening it.
    pub(super) fn new(path: &str, stamp: &Stamp) -> Self {
        Self {
            schema: SCHEMA,
            path: path.to_owned(),
            bytes: stamp.bytes,
            etag: stamp.etag.clone(),
            modified: stamp.modified.map(rfc3339),
            ..Self::default()
        }
    }

    /// Says why the file does not open.
    pub(super) fn refused(mut self, error: &Error) -> Self {
        self.format = error.format().map(|format| format.to_string());
        if !error.kind().is_file_fault() {
            return self.unread(Chain(error));
        }
        self.verdict = Verdict::Invalid.to_string();
        self.rules = vec![error.rule().to_owned()];
        self.errors = 1;
        self.error = Some(Chain(error).to_string());
        self
    }

    /// Says why the file could not be looked at.
    pub(super) fn unread(self, reason: impl Display) -> Self {
        let Self { schema, path, bytes, etag, modified, .. } = self;
        let (verdict, error) = ("unread".to_owned(), Some(reason.to_string()));
        Self { schema, path, bytes, etag, modified, verdict, error, ..Self::default() }
    }

    /// Says what is in the file.
    pub(super) fn describe(
        &mut self,
        reader: &AnyReader,
        options: CatalogOptions,
    ) -> Vec<TensorRow> {
        let reads = options.tensors;
        let wanted =
            SummaryOptions::default().digests(reads && options.hash).stats(reads && options.stats);
        let summary = reader.summary(wanted);
        let findings = match options.verify {
            true => reader.validate(),
            false => reader.lint(),
        };
        self.verified = options.verify;
        self.format = Some(summary.format.to_string());
        self.version = Some(summary.version).filter(|version| !version.is_empty());
        self.tensors = Some(summary.tensors.len() as u64);
        let bytes = summary.tensors.iter().map(|tensor| tensor.bytes);
        self.weight_bytes = Some(bytes.fold(0, u64::saturating_add));
        let license = summary
            .metadata
            .iter()
            .find(|(key, _)| common_key(summary.format, key) == "license")
            .and_then(|(_, value)| value.as_str());
        self.license = license.map(str::to_owned);
        self.inputs = summary.inputs.iter().map(PortRow::from).collect();
        self.outputs = summary.outputs.iter().map(PortRow::from).collect();
        if options.hash {
            let hash =
                reader.tensor_set().and_then(|set| set.content_hash(NonZeroUsize::MIN, |_| ()));
            match hash {
                Ok(hash) => self.hash = Some(hash.digest.to_string()),
                Err(error) => self.error = Some(Chain(&error).to_string()),
            }
        }
        self.find(&findings);
        let row = |tensor: &TensorSummary| TensorRow::new(&self.path, tensor);
        if reads { summary.tensors.iter().map(row).collect() } else { Vec::new() }
    }

    fn find(&mut self, report: &Report) {
        let count = |wanted| {
            let found = report.findings().iter().filter(|finding| finding.severity == wanted);
            found.count() as u64
        };
        self.verdict = Verdict::from(report).to_string();
        (self.errors, self.warnings) = (count(Severity::Error), count(Severity::Warning));
        let rules: BTreeSet<&str> =
            report.findings().iter().map(|finding| &*finding.rule).collect();
        self.rules = rules.into_iter().map(str::to_owned).collect();
        let mut errors = report.findings().iter();
        if let Some(first) = errors.find(|finding| finding.severity == Severity::Error) {
            self.error = Some(first.message.clone());
        }
    }

    /// Tells whether the row says what is asked for, of the same version of the file. Of one that does not
    /// open, there is no more to say.
    pub(super) fn holds(&self, stamp: &Stamp, options: CatalogOptions) -> bool {
        let is_whole = (self.verified || !options.verify) && (self.hash.is_some() || !options.hash);
        stamp.is_of(self.bytes, self.etag.as_deref(), self.modified.as_deref())
            && (is_whole || self.tensors.is_none())
            && self.verdict != "unread"
    }
}

impl From<&Port> for PortRow {
    fn from(port: &Port) -> Self {
        let shape = port.shape.to_string();
        Self { name: port.name.clone(), dtype: port.dtype.clone(), shape }
    }
}

impl TensorRow {
    fn new(path: &str, tensor: &TensorSummary) -> Self {
        let stats = tensor.stats.as_ref();
        Self {
            schema: SCHEMA,
            path: path.to_owned(),
            name: tensor.name.clone(),
            dtype: tensor.dtype.map(|dtype| dtype.to_string()),
            shape: tensor.shape.dims().to_vec(),
            bytes: tensor.bytes,
            sha256: tensor.sha256.clone(),
            min: stats.and_then(|stats| stats.min).map(crate::Number::to_f64),
            max: stats.and_then(|stats| stats.max).map(crate::Number::to_f64),
            mean: stats.and_then(|stats| stats.mean),
            std: stats.and_then(|stats| stats.std),
            zeros: stats.map(|stats| stats.zeros),
            nan: stats.map(|stats| stats.nan),
            infinite: stats.map(|stats| stats.infinite),
        }
    }
}

/// Returns how files are opened: each by one thread, as several are at once.
pub(super) fn read_options() -> ReadOptions {
    ReadOptions::default().threads(NonZeroUsize::MIN)
}

/// Writes a time as `2026-11-23T18:54:41.123456789Z`; that of before 1970 as its start.
fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let nanos = since.subsec_nanos();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// Returns the year, month and day that so many days after the first of 1970 is.
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "no time has more than 2^48 days, and no year more than its months"
)]
const fn civil(days: u64) -> (u64, u64, u64) {
    let (mut year, mut rest) = (1970, days);
    // Four centuries have as many days each time.
    year += rest / 146_097 * 400;
    rest %= 146_097;
    loop {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = if is_leap { 366 } else { 365 };
        if rest < length {
            let mut month = 0;
            let february = if is_leap { 29 } else { 28 };
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            while rest >= lengths[month] {
                rest -= lengths[month];
                month += 1;
            }
            return (year, month as u64 + 1, rest + 1);
        }
        rest -= length;
        year += 1;
    }
}

pub(super) const SCHEMA: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        // As `date -u -d @… +%FT%T.%NZ` writes them.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000007Z"),
            (951_782_400, "2000-02-29T00:00:00.000000007Z"),
            (1_793_613_600, "2026-11-02T10:00:00.000000007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000007Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000000007Z"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, 7);
            assert_eq!(rfc3339(time), expected);
        }
    }
}
