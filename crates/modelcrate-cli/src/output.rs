//! Results as JSON, tables and text.

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal as _, Read, Write},
    path::Path,
};

use anyhow::Context as _;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use modelcrate::{
    AnyReader, Error, ReadOptions,
    tensor_core::{At, Finding, Severity, Source},
};
use serde::Serialize;
use tempfile::{SpooledData, SpooledTempFile};

use crate::{
    address,
    escape::{escape, escape_up_to},
    failure::About,
    options::{Format, Input, Print, is_stdio, manner},
    progress::idle,
};

/// The version of the JSON that this command prints.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct One<'a, T> {
    schema: u32,
    #[serde(flatten)]
    result: &'a T,
}

/// Writes one result as an object on a line of its own.
pub(crate) fn json<T: Serialize>(result: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string(&One { schema: SCHEMA, result })? + "\n")
}

/// Prints one result as an object on a line of its own.
pub(crate) fn print_line<T: Serialize>(result: &T) -> io::Result<()> {
    idle();
    io::stdout().lock().write_all(json(result)?.as_bytes())
}

/// Prints one result as an object of several lines.
pub(crate) fn print_json<T: Serialize>(result: &T) -> io::Result<()> {
    print_value(&One { schema: SCHEMA, result })
}

/// Prints a document of another schema than ours.
pub(crate) fn print_value<T: Serialize>(document: &T) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)? + "\n";
    idle();
    io::stdout().lock().write_all(text.as_bytes())
}

/// Prints all results as one object.
pub(crate) fn print_document<T: Serialize>(files: &[T]) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        files: &'a [T],
    }
    print_json(&Document { files })
}

/// Prints text for people; colours are left out where they are not wanted.
pub(crate) fn print_text(text: &str) -> io::Result<()> {
    idle();
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says something beside the result, unless that is not wanted.
pub(crate) fn print_aside(text: &str) {
    if !manner().quiet {
        print_problem(text);
    }
}

/// Says what is wrong; where nobody can hear it, that is no error.
pub(crate) fn print_problem(text: &str) {
    idle();
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Prints what a command has done to a file or folder, which stays where that cannot be printed.
pub(crate) fn print_done<T: Serialize>(
    print: Print,
    path: &Path,
    dry_run: bool,
    result: &T,
    text: &str,
) -> anyhow::Result<()> {
    let done = if dry_run { "" } else { "everything is done, but " };
    let text = if manner().quiet { "" } else { text };
    let printed = print_result(print, result, text);
    printed.with_context(|| format!("{done}writing to standard output failed")).about(path)
}

/// Prints the result of a command that has one.
pub(crate) fn print_result<T: Serialize>(print: Print, result: &T, text: &str) -> io::Result<()> {
    match print.format {
        Format::Human => print_text(text),
        Format::Json | Format::Jsonl => print_line(result),
    }
}

/// Starts a table without borders.
pub(crate) fn table<'h>(header: impl IntoIterator<Item = &'h str>, right: &[usize]) -> Table {
    let mut table = Table::new();
    // As wide as the terminal; in a pipe nothing is cut.
    table.load_style(presets::NOTHING).set_header(header);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Writes a table, indented and without blanks at the ends of lines.
pub(crate) fn table_text(table: &Table) -> String {
    table.lines().map(|line| format!("  {}\n", line.trim_end())).collect()
}

/// Returns how many columns there are where standard output is a terminal.
fn width() -> Option<u16> {
    io::stdout().is_terminal().then(|| Table::new().width()).flatten()
}

/// Escapes a text from a file, and cuts it where it is longer than the terminal is wide.
pub(crate) fn fitted(text: &str) -> Cow<'_, str> {
    match width() {
        Some(width) => escape_up_to(usize::from(width.saturating_sub(LABEL)), text),
        None => escape(text),
    }
}

/// Writes a finding in one line.
pub(crate) fn finding_text(finding: &Finding) -> String {
    found_text(finding.severity, &finding.rule, &finding.at, &finding.message)
}

/// Writes in one line what was found, also with the place in a line of a text.
pub(crate) fn found_text(severity: Severity, rule: &str, at: &At, message: &str) -> String {
    let place = at.to_string();
    let joint = if place.is_empty() { "" } else { ": " };
    line_text(severity, rule, &format!("{place}{joint}{message}"))
}

/// Writes a line that starts with a severity and a rule.
pub(crate) fn line_text(severity: Severity, rule: &str, text: &str) -> String {
    let style = match severity {
        Severity::Error => anstyle::AnsiColor::Red.on_default(),
        Severity::Warning => anstyle::AnsiColor::Yellow.on_default(),
        Severity::Note => anstyle::AnsiColor::Cyan.on_default(),
    };
    format!("  {style}{severity}{style:#} [{rule}] {}\n", escape(text))
}

/// Writes a path into JSON: bytes that are no UTF-8 as `\\xff`, which no two paths share that differ in
/// them alone.
pub(crate) fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// Returns the language of an output: the one that is given, or else that of the end of its path; the
/// first one for standard output and for a path without an end.
pub(crate) fn by_end<L: Copy>(
    given: Option<L>,
    output: Option<&Path>,
    ends: &[(&str, L)],
) -> anyhow::Result<L> {
    let path = output.filter(|path| !is_stdio(path));
    let end = path.and_then(|path| Some((path, path.extension()?)));
    let named = match end {
        None => ends.first(),
        Some((_, end)) => ends.iter().find(|(known, _)| end.eq_ignore_ascii_case(known)),
    };
    given.or(named.map(|(_, language)| *language)).with_context(|| {
        let path = path.unwrap_or(Path::new("-")).display();
        let ends: Vec<String> = ends.iter().map(|(end, _)| format!(".{end}")).collect();
        format!("{path}: says no format, expected --format or an end of {}", ends.join(", "))
    })
}

/// Writes a number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    humansize::format_size(bytes, humansize::BINARY)
}

/// Writes a number of things.
pub(crate) fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// Opens a file, or reads standard input.
pub(crate) fn open(input: &Input, options: ReadOptions) -> anyhow::Result<AnyReader> {
    if is_stdio(input) {
        return Ok(options.from_source(stdin_model()?)?);
    }
    match address::reader(input, options)? {
        Some(reader) => Ok(reader),
        None => Ok(options.open(input)?),
    }
}

/// Opens a file of any kind, or reads standard input, as [`open`] does.
pub(crate) fn source(input: &Path) -> anyhow::Result<Source> {
    Ok(if is_stdio(input) { stdin_model()? } else { stored(input)? })
}

/// Opens a file of any kind, or reads standard input into memory.
pub(crate) fn file(input: &Path) -> anyhow::Result<Source> {
    Ok(if is_stdio(input) { Source::from_bytes(stdin()?) } else { stored(input)? })
}

/// Opens a file of any kind at a path or an address.
pub(crate) fn stored(input: &Path) -> anyhow::Result<Source> {
    match address::source(input)? {
        Some(source) => Ok(source),
        None => Ok(Source::open(input)?),
    }
}

/// Reads a model from standard input: into memory, or where it is large into a file without a name
/// among the temporary ones. What starts as no model is read no further.
pub(crate) fn stdin_model() -> anyhow::Result<Source> {
    let mut input = io::stdin().lock();
    let mut start = Vec::new();
    input.by_ref().take(LOOKED_AT).read_to_end(&mut start)?;
    let is_whole = (start.len() as u64) < LOOKED_AT;
    let start = bytes::Bytes::from(start);
    if is_whole {
        return Ok(Source::from_bytes(start));
    }
    if let Err(error @ Error::UnknownFormat { .. }) = AnyReader::from_bytes(start.clone()) {
        return Err(error.into());
    }
    let mut spool = SpooledTempFile::new(IN_MEMORY);
    spool.write_all(&start).map_err(|error| spooling(&error))?;
    let mut chunk = vec![0; CHUNK];
    loop {
        match input.read(&mut chunk)? {
            0 => return spooled(spool),
            len => spool
                .write_all(chunk.get(..len).unwrap_or_default())
                .map_err(|error| spooling(&error))?,
        }
    }
}

/// Returns what was written to a spool.
pub(crate) fn spooled(spool: SpooledTempFile) -> anyhow::Result<Source> {
    Ok(match spool.into_inner() {
        SpooledData::InMemory(bytes) => Source::from_bytes(bytes.into_inner()),
        SpooledData::OnDisk(file) => Source::from_file(file)?,
    })
}

/// Says where there is no room, or nothing at all.
pub(crate) fn spooling(error: &io::Error) -> io::Error {
    let text = format!("in the folder for temporary files, {:?}: {error}", env::temp_dir());
    io::Error::new(error.kind(), text)
}

/// How many bytes of what goes to or comes from a pipe are held in memory.
pub(crate) const IN_MEMORY: usize = 64 << 20;

/// How many bytes of standard input tell whether it is a model.
const LOOKED_AT: u64 = 1 << 20;

const CHUNK: usize = 1 << 18;

/// Reads what is not a model from standard input into memory, up to a limit.
pub(crate) fn stdin() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = STDIN_LIMIT.saturating_add(1);
    io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > STDIN_LIMIT {
        anyhow::bail!("is over the limit of {STDIN_LIMIT} bytes for standard input: give a file");
    }
    Ok(bytes)
}

/// What standard input may hold: it is read into memory.
const STDIN_LIMIT: u64 = 1 << 30;

/// Columns in front of a text, and for the mark of a cut behind it.
const LABEL: u16 = 13;
