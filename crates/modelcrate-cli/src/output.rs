//! Results as JSON, tables and progress.

use std::{
    io::{self, IsTerminal, Read, Write},
    path::Path,
};

use anyhow::Context as _;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use modelcrate::{
    AnyReader, ReadOptions,
    tensor_core::{At, Finding, Severity, Source},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Format, Input, Print, is_stdio},
};

/// The version of the JSON that this command prints.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    files: &'a [T],
}

/// Prints one result: now where each has its own line, else with the others.
pub(crate) fn print_line<T: Serialize>(result: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(result)?;
    line.push(b'\n');
    io::stdout().lock().write_all(&line)
}

/// Prints all results as one object.
pub(crate) fn print_document<T: Serialize>(files: &[T]) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(&Document { schema: SCHEMA, files })?;
    text.push(b'\n');
    io::stdout().lock().write_all(&text)
}

/// Prints text for people; colours are left out where they are not wanted.
pub(crate) fn print_text(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says something beside the result; where nobody can hear it, that is no error.
pub(crate) fn print_aside(text: &str) {
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
    let printed = print_result(print, result, text);
    printed.with_context(|| format!("{done}writing to standard output failed")).about(path)
}

/// Prints the result of a command that has one.
pub(crate) fn print_result<T: Serialize>(print: Print, result: &T, text: &str) -> io::Result<()> {
    match print.format {
        Format::Human => print_text(text),
        Format::Json | Format::Jsonl => io::stdout().lock().write_all(json(result)?.as_bytes()),
    }
}

/// Writes the result of a command that has one as JSON.
pub(crate) fn json<T: Serialize>(result: &T) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct One<'a, T> {
        schema: u32,
        #[serde(flatten)]
        result: &'a T,
    }
    Ok(serde_json::to_string(&One { schema: SCHEMA, result })? + "\n")
}

/// Starts a table without borders.
pub(crate) fn table<const N: usize>(header: [&str; N], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
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

/// Writes a finding in one line.
pub(crate) fn finding_text(finding: &Finding) -> String {
    found_text(finding.severity, &finding.rule, &finding.at, &finding.message)
}

/// Writes in one line what was found, also with the place in a line of a text.
pub(crate) fn found_text(severity: Severity, rule: &str, at: &At, message: &str) -> String {
    let style = match severity {
        Severity::Error => anstyle::AnsiColor::Red.on_default(),
        Severity::Warning => anstyle::AnsiColor::Yellow.on_default(),
        Severity::Note => anstyle::AnsiColor::Cyan.on_default(),
    };
    let tensor = at.tensor.as_ref().map(|tensor| format!("{tensor:?}"));
    let place = [
        at.entry.as_ref().map(|entry| format!("{entry:?}")),
        // A path may end with the name.
        tensor.filter(|tensor| !at.path.as_ref().is_some_and(|path| path.contains(tensor))),
        at.path.clone(),
        at.line.map(|line| format!("line {line}")),
        at.column.map(|column| format!("column {column}")),
        at.offset.map(|offset| format!("byte {offset}")),
    ];
    let place = place.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let joint = if place.is_empty() { "" } else { ": " };
    let text = format!("{place}{joint}{message}");
    format!("  {style}{severity}{style:#} [{rule}] {}\n", escape(&text))
}

/// Writes a number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    humansize::format_size(bytes, humansize::BINARY)
}

/// Writes a number of things.
pub(crate) fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// Opens a file, or reads standard input, which is held in memory up to a limit.
pub(crate) fn open(input: &Input, options: ReadOptions) -> anyhow::Result<AnyReader> {
    if !is_stdio(input) {
        return Ok(options.open(input)?);
    }
    Ok(options.from_source(source(input)?)?)
}

/// Opens a file of any kind, or reads standard input, as [`open`] does.
pub(crate) fn source(input: &Path) -> anyhow::Result<Source> {
    Ok(if is_stdio(input) { Source::from_bytes(stdin()?) } else { Source::open(input)? })
}

/// Reads standard input into memory, up to a limit.
pub(crate) fn stdin() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = STDIN_LIMIT.saturating_add(1);
    io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > STDIN_LIMIT {
        anyhow::bail!("is over the limit of {STDIN_LIMIT} bytes for standard input: give a file");
    }
    Ok(bytes)
}

/// A bar on standard error while bytes are read, where that is a terminal.
pub(crate) fn progress(print: Print, bytes: u64) -> ProgressBar {
    let bar = progress_like(print, "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec}");
    bar.set_length(bytes);
    bar
}

/// A bar of another form, whose length is not known yet.
pub(crate) fn progress_like(print: Print, template: &str) -> ProgressBar {
    let shown = print.format == Format::Human && !print.no_progress && io::stderr().is_terminal();
    if !shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style))
}

/// What standard input may hold: it is read into memory.
const STDIN_LIMIT: u64 = 8 << 30;
