//! What opening a ZIP file does not prove. What readers of other archives would refuse is a warning
//! here where PyTorch tolerates it.

use tensor_core::{Finding, Profile, Report, Severity};

use super::{BYTE_ORDER, DATA, DATA_VERSION, VERSION, Zip, starts_with_a_record};
use crate::{File, Strip, container::Container as _};

impl Zip {
    pub(super) fn report(&self, report: &mut Report) {
        for mut finding in self.archive.lint_with(Profile::Lenient) {
            finding.severity = match &*finding.rule {
                // Edits leave bytes that nothing lists.
                "zip/unlisted-bytes" => Severity::Note,
                // So they do where the first record was replaced: its header stays at the start.
                "zip/prefix" if starts_with_a_record(self.archive.source()) => Severity::Note,
                // PyTorch does not open such a file.
                "zip/prefix" => Severity::Error,
                _ => finding.severity,
            };
            report.add(finding);
        }
        for name in &self.collisions {
            let message =
                format!("record {name:?} has a name that PyTorch takes for that of another");
            report.add(Finding::error("ptl/name-case", message).entry(name));
        }
        self.records().for_each(|record| placement(record, report));
        self.version(report);
        let mut debug =
            self.records().map(File::path).filter(|name| Strip::DebugRecords.removes(name));
        if let Some(first) = debug.next() {
            let count = debug.count().saturating_add(1);
            let message = format!(
                "{count} debug records, such as {first:?}, may hold source lines and paths of the \
                 author"
            );
            report.add(Finding::note("ptl/debug-records", message).entry(first));
        }
        if self.record(DATA).is_none() {
            let message = "there is no record \"data.pkl\", without which PyTorch opens nothing";
            report.add(Finding::error("ptl/no-data", message).entry(DATA));
        }
    }

    /// Reports on the version of the file format, and the order of bytes.
    fn version(&self, report: &mut Report) {
        let record = self.record(VERSION).or_else(|| self.record(DATA_VERSION));
        let text = record.filter(|record| record.size() <= 32).map(File::bytes);
        let number = match &text {
            Some(Ok(text)) => {
                std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok())
            }
            _ => None,
        };
        let message = match (record, number) {
            (_, Some(1..=10_u64)) => return self.byte_order(report),
            (_, Some(found)) => format!("file format version is {found}, expected 1 to 10"),
            (Some(_), None) => "file format version is not a number, expected 1 to 10".to_owned(),
            (None, None) => {
                "there is no record \"version\", without which PyTorch opens nothing".to_owned()
            }
        };
        report.add(Finding::error("ptl/version", message).entry("version"));
    }

    fn byte_order(&self, report: &mut Report) {
        let Some(record) = self.record(BYTE_ORDER) else { return };
        let text = if record.size() <= 16 { record.bytes().ok() } else { None };
        let message = match text.as_deref().map(<[u8]>::trim_ascii) {
            Some(b"little") => return,
            Some(b"big") => "byte order is \"big\": numbers are swapped here, but not by PyTorch",
            _ => "byte order is neither \"little\" nor \"big\"",
        };
        report.add(Finding::warning("ptl/byteorder", message).entry(BYTE_ORDER));
    }
}

/// Reports records that PyTorch cannot map, or not as it likes.
fn placement(record: File<'_>, report: &mut Report) {
    let name = record.path();
    let Ok(extent) = record.stored_extent() else { return };
    let is_storage = ["data/", "constants/"].iter().any(|folder| name.starts_with(folder));
    if is_storage && record.is_compressed() {
        let message = format!("record {name:?} is compressed: it cannot be mapped");
        report.add(Finding::warning("ptl/compressed-storage", message).entry(name));
    } else if !record.is_compressed() && !extent.is_aligned(ALIGNMENT) {
        let offset = extent.offset();
        let message = format!("record {name:?} starts at byte {offset}, expected a multiple of 64");
        report.add(Finding::warning("ptl/alignment", message).entry(name).offset(offset));
    }
}

/// What PyTorch starts the data of every record at a multiple of, in bytes.
const ALIGNMENT: u64 = 64;
