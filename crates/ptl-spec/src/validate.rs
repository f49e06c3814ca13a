//! What opening a file does not prove.

use model_archive::Profile as Strictness;
use tensor_core::{At, Chain, Report, Severity};

use crate::{
    Bytecode, Error, Reader, Record, SPEC, Spec, Strip,
    flat::Flat,
    read::{BYTECODE, Body, DATA},
    spec::lint,
    zip::layout::ALIGNMENT,
    zip::{Container, starts_with_a_record},
};

pub(crate) fn file(reader: &Reader) -> Report {
    let mut report = Report::default();
    match reader.body() {
        Body::Zip(container) => zip(reader, container, &mut report),
        Body::Flat(flat) => flat_buffer(reader, flat, &mut report),
    }
    let bytecode = code(reader, &mut report);
    tensors(reader, &mut report);
    spec(reader, bytecode, &mut report);
    report
}

/// Reports on the container and its records. What readers of other archives would refuse is a
/// warning here: PyTorch puts up with it.
fn zip(reader: &Reader, container: &Container, report: &mut Report) {
    for finding in container.archive.check_as(Strictness::Lenient) {
        let severity = match &*finding.rule {
            // Edits leave bytes that nothing lists.
            "zip/unlisted-bytes" => Severity::Note,
            // So they do where the first record was replaced: its header stays at the start.
            "zip/prefix" if starts_with_a_record(reader.source()) => Severity::Note,
            // PyTorch does not open such a file.
            "zip/prefix" => Severity::Error,
            _ => finding.severity,
        };
        report.push(severity, finding.rule, finding.at, finding.message);
    }
    for name in &container.collisions {
        let message = format!("record {name:?} has a name that PyTorch takes for that of another");
        report.push(Severity::Error, "ptl/name-case", At::file().entry(name), message);
    }
    records(reader, report);
    version(reader, report);
    let debug = reader.records().filter(|record| Strip::DebugRecords.takes(record.name()));
    let (count, first) = debug.fold((0_u64, None), |(count, first), record| {
        (count.saturating_add(1), first.or(Some(record.name())))
    });
    if let Some(first) = first {
        let message = format!(
            "{count} debug records, such as {first:?}, may hold source lines and paths of the author"
        );
        report.push(Severity::Note, "ptl/debug-records", At::file().entry(first), message);
    }
}

fn records(reader: &Reader, report: &mut Report) {
    for record in reader.records() {
        let at = || At::file().entry(record.name());
        if let Err(error) = record.verify() {
            let rule = match &error {
                Error::Archive(error) => error.rule(),
                other => other.rule(),
            };
            report.push(Severity::Error, rule, at(), Chain(&error).to_string());
            continue;
        }
        let Ok(extent) = record.extent() else { continue };
        let is_storage =
            ["data/", "constants/"].iter().any(|folder| record.name().starts_with(folder));
        if is_storage && record.is_compressed() {
            let message = format!("record {:?} is compressed: it cannot be mapped", record.name());
            report.push(Severity::Warning, "ptl/compressed-storage", at(), message);
        } else if !record.is_compressed() && !extent.is_aligned(ALIGNMENT) {
            let (name, offset) = (record.name(), extent.offset());
            let message =
                format!("record {name:?} starts at byte {offset}, expected a multiple of 64");
            report.push(Severity::Warning, "ptl/alignment", at().offset(offset), message);
        }
    }
}

/// Reports on the version of the file format, and the order of bytes.
fn version(reader: &Reader, report: &mut Report) {
    let record = reader.record("version").or_else(|| reader.record(".data/version"));
    let text = record.filter(|record| record.size() <= 32).map(Record::bytes);
    let number = match &text {
        Some(Ok(text)) => std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()),
        _ => None,
    };
    let message = match (record, number) {
        (_, Some(1..=10_u64)) => return byte_order(reader, report),
        (_, Some(found)) => format!("file format version is {found}, expected 1 to 10"),
        (Some(_), None) => "file format version is no number, expected 1 to 10".to_owned(),
        (None, None) => {
            "there is no record \"version\", without which PyTorch opens nothing".to_owned()
        }
    };
    report.push(Severity::Error, "ptl/version", At::file().entry("version"), message);
}

fn byte_order(reader: &Reader, report: &mut Report) {
    let Some(record) = reader.record("byteorder") else { return };
    let text = if record.size() <= 16 { record.bytes().ok() } else { None };
    if !text.is_some_and(|text| [&b"little"[..], b"big"].contains(&text.trim_ascii())) {
        let message = "byte order is neither \"little\" nor \"big\"";
        report.push(Severity::Warning, "ptl/byteorder", At::file().entry("byteorder"), message);
    }
}

fn flat_buffer(reader: &Reader, flat: &Flat, report: &mut Report) {
    let mut names: Vec<&str> = flat.extra_files.iter().map(|file| file.name.as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        if let [one, other] = pair
            && one == other
        {
            let message = format!("two extra files have the name {one:?}");
            report.push(Severity::Error, "ptl/duplicate-file", At::file().entry(*one), message);
        }
    }
    match flat.sources(reader.limits()) {
        Ok(sources) if sources.is_empty() => {}
        Ok(sources) => {
            let message = format!("{} files of source are kept with the model", sources.len());
            report.push(Severity::Note, "ptl/sources", At::file(), message);
        }
        Err(error) => push(report, &error),
    }
}

/// Reports on the bytecode and returns it, where it can be read.
fn code<'r>(reader: &'r Reader, report: &mut Report) -> Option<&'r Bytecode> {
    let bytecode = match reader.bytecode() {
        Ok(bytecode) => bytecode,
        Err(error) => {
            push_at(report, At::file().entry(BYTECODE), &error);
            return None;
        }
    };
    let version = bytecode.version;
    match bytecode.readers() {
        Some(readers) => {
            let message = format!("bytecode version {version} is read by {readers}");
            report.push(Severity::Note, "ptl/bytecode-version", At::file(), message);
        }
        None => {
            let message = format!("bytecode version is {version}, expected 4 to 9");
            report.push(Severity::Error, "ptl/bytecode-version", At::file(), message);
        }
    }
    if bytecode.forward().is_none() {
        let message = "there is no method forward, which calls go to";
        report.push(Severity::Warning, "ptl/no-forward", At::file(), message);
    }
    Some(bytecode)
}

fn tensors(reader: &Reader, report: &mut Report) {
    if matches!(reader.body(), Body::Zip(_)) && reader.record(DATA).is_none() {
        let message = "there is no record \"data.pkl\", without which PyTorch opens nothing";
        report.push(Severity::Error, "ptl/no-data", At::file().entry(DATA), message);
    }
    let tensors = match reader.tensors() {
        Ok(tensors) => tensors,
        Err(error) => return push(report, &error),
    };
    for tensor in tensors {
        if let Err(error) = tensor.check() {
            push_at(report, At::file().tensor(tensor.name()), &error);
        }
        let channels = [tensor.scales(), tensor.zero_points()];
        for part in channels.into_iter().flatten() {
            if let Err(error) = part.check() {
                push_at(report, At::file().tensor(part.name()), &error);
            }
        }
    }
    for sparse in reader.sparse_tensors().into_iter().flatten() {
        // PyTorch stores them as they are: what is longer than the file is a bomb, or next to it.
        let is_long = sparse.index_len() > reader.source().len();
        match if is_long { sparse.check() } else { sparse.verify() } {
            // What is wrong with a part alone was reported with the others.
            Err(ref error @ Error::Tensor { ref name, .. }) if *name == sparse.name() => {
                push_at(report, At::file().tensor(name), error);
            }
            _ if is_long => {
                let name = sparse.name();
                let message =
                    format!("indices of {name:?} are longer than the file: not looked at");
                report.push(
                    Severity::Warning,
                    "ptl/long-indices",
                    At::file().tensor(name),
                    message,
                );
            }
            _ => {}
        }
    }
}

/// Reports on the spec, and whether it fits the method that it is for.
fn spec(reader: &Reader, bytecode: Option<&Bytecode>, report: &mut Report) {
    let at = || At::file().entry(SPEC);
    let missing = |message: &str, report: &mut Report| {
        report.push(Severity::Warning, "ptl/no-spec", at(), message);
    };
    let text = match reader.spec_text() {
        Ok(Some(text)) => text,
        Ok(None) if reader.extra_file(SPEC).is_some() => {
            return missing("the spec is empty, which runtimes take for none", report);
        }
        Ok(None) => {
            let elsewhere =
                reader.records().find(|record| record.name().ends_with("live.spec.json"));
            return match elsewhere {
                Some(record) => missing(
                    &format!("the spec is {:?}, expected \"extra/{SPEC}\"", record.name()),
                    report,
                ),
                None => missing("there is no spec in the file", report),
            };
        }
        // Its checksum was reported with the other records.
        Err(Error::Archive(_)) => return,
        Err(error) => return push_at(report, at(), &error),
    };
    if text.starts_with("\u{feff}".as_bytes()) {
        let message = "the spec starts with a byte order mark, which strict JSON does not have";
        report.push(Severity::Warning, "ptl/spec-byte-order-mark", at(), message);
    }
    for mut finding in Spec::options().check(&text) {
        finding.at.entry = Some(SPEC.to_owned());
        report.push(finding.severity, finding.rule, finding.at, finding.message);
    }
    if let (Ok(spec), Some(forward)) = (Spec::parse(&text), bytecode.and_then(Bytecode::forward)) {
        report.append(spec.check_method(forward));
    }
}

fn push(report: &mut Report, error: &Error) {
    lint::push(report, error);
}

fn push_at(report: &mut Report, at: At, error: &Error) {
    report.push(Severity::Error, error.rule(), at, Chain(error).to_string());
}
