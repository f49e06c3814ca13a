//! TOML documents as a tree in which every fault knows its document, its line and its key.

use std::{
    borrow::Cow,
    cell::OnceCell,
    collections::HashMap,
    fmt::{self, Write as _},
    str::FromStr,
};

use toml::{
    Spanned,
    de::{DeInteger, DeString, DeTable, DeValue},
};

use tensor_core::{
    Finding, Limit, Limits, Report,
    text::{Quoted, short},
};

use crate::{DocumentError, DocumentFault, Error, InvalidText, Result};

pub(crate) mod emit;

/// A parsed document. Nesting is limited and keys are unique; how long the text may be is for the
/// caller to say.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    file: Cow<'static, str>,
    text: &'a str,
    root: DeTable<'a>,
    newlines: OnceCell<Vec<usize>>,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> Document<'a> {
    /// Parses a document; `file` is its path in the carton. A byte order mark is skipped.
    pub(crate) fn parse(file: impl Into<Cow<'static, str>>, bytes: &'a [u8]) -> Result<Self> {
        let file = file.into();
        let fail = |file, line, fault| Err(error(file, line, String::new(), fault));
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let line = line(good.iter().filter(|&&byte| byte == b'\n').count());
                let fault = DocumentFault::NotUtf8 { offset: good.len() as u64 };
                return fail(file, Some(line), fault);
            }
        };
        match DeTable::parse(text) {
            Ok(root) => Ok(Self { file, text, root: root.into_inner(), newlines: OnceCell::new() }),
            Err(error) => {
                // The parser does not say where it gave up on keys of too many parts.
                let line = error.span().map(|span| {
                    let good = bytes.get(..span.start).unwrap_or(bytes);
                    line(good.iter().filter(|&&byte| byte == b'\n').count())
                });
                fail(file, line, DocumentFault::Syntax(error.message().to_owned()))
            }
        }
    }

    /// Returns the text of the document.
    #[cfg(feature = "edit")]
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the table that the document is.
    pub(crate) fn root(&self) -> Table<'_> {
        Table { document: self, value: None, entries: &self.root, used: Vec::new() }
    }

    /// Returns the first line that readers of TOML 1.0 refuse; `None` where there is none.
    pub(crate) fn needs_toml_1_1(&self) -> Option<u64> {
        Lexer { text: self.text.as_bytes(), at: 0 }.find_1_1().map(|offset| self.line_at(offset))
    }

    /// Returns the line, counted from 1, of a byte offset.
    fn line_at(&self, offset: usize) -> u64 {
        let newlines = self.newlines.get_or_init(|| {
            let bytes = self.text.bytes().enumerate();
            bytes.filter(|&(_, byte)| byte == b'\n').map(|(offset, _)| offset).collect()
        });
        line(newlines.partition_point(|&newline| newline < offset))
    }

    /// Finds the paths of values, in one walk however many they are.
    ///
    /// Values carry no path, so that a document without faults pays for none.
    fn paths(&self, values: impl IntoIterator<Item = *const ()>) -> HashMap<*const (), String> {
        let mut paths = values.into_iter().map(|value| (value, String::new())).collect();
        find_in_table(&self.root, &mut String::new(), &mut paths);
        paths
    }

    fn path(&self, value: Option<&Value<'_>>) -> String {
        self.paths(value.map(address)).into_values().next().unwrap_or_default()
    }
}

/// A table of a document, which notes the keys that are asked for.
#[derive(Debug)]
pub(crate) struct Table<'d> {
    document: &'d Document<'d>,
    /// `None` where it is the document as a whole.
    value: Option<&'d Value<'d>>,
    entries: &'d DeTable<'d>,
    used: Vec<&'d Value<'d>>,
}

impl<'d> Table<'d> {
    /// Returns the value of a key that has to be there.
    pub(crate) fn required(&mut self, key: &str) -> Result<Node<'d>> {
        self.optional(key).ok_or_else(|| self.key_error(key, DocumentFault::Missing))
    }

    /// Returns the value of a key.
    pub(crate) fn optional(&mut self, key: &str) -> Option<Node<'d>> {
        let value = match self.entries.len() {
            // To compare a few keys is faster than to hash one.
            0..=FEW => self.entries.iter().find(|(other, _)| other.get_ref() == key)?.1,
            _ => self.entries.get(key)?,
        };
        self.used.push(value);
        Some(Node { document: self.document, value })
    }

    /// Returns the text of a key that may be absent.
    pub(crate) fn optional_string(&mut self, key: &str) -> Result<Option<String>> {
        self.optional(key).map(|node| node.string().map(str::to_owned)).transpose()
    }

    /// Returns all keys and values, in the order of the document.
    pub(crate) fn entries(
        &mut self,
    ) -> impl ExactSizeIterator<Item = (&'d str, Node<'d>)> + use<'d> {
        let document = self.document;
        self.used = self.entries.values().collect();
        self.entries.iter().map(move |(key, value)| (&**key.get_ref(), Node { document, value }))
    }

    /// Returns the keys and values that nobody asked for.
    pub(crate) fn unused(&self) -> impl Iterator<Item = (&'d str, Node<'d>)> {
        self.unknown()
            .map(|(key, value)| (&**key.get_ref(), Node { document: self.document, value }))
    }

    /// Adds the keys that nobody asked for to a list.
    pub(crate) fn finish(self, unknown: &mut Unknown<'d>) {
        if let Some(known) = &mut unknown.known {
            known.extend(self.value.into_iter().chain(self.used.iter().copied()));
        }
        if self.used.len() < self.entries.len() {
            let keys = self.unknown();
            unknown.keys.extend(keys.map(|(key, value)| (key.span().start, value)));
        }
    }

    fn unknown(&self) -> impl Iterator<Item = (&'d Spanned<DeString<'d>>, &'d Value<'d>)> {
        let is_used = |value: &Value<'_>| self.used.iter().any(|&used| std::ptr::eq(used, value));
        self.entries.iter().filter(move |(_, value)| !is_used(value))
    }

    /// Makes an error about a key that is or is not in this table.
    pub(crate) fn key_error(&self, key: &str, fault: DocumentFault) -> Error {
        let mut path = self.document.path(self.value);
        push_key(&mut path, key);
        let line = match self.entries.get_key_value(key) {
            Some((key, _)) => Some(self.document.line_at(key.span().start)),
            None => self.value.map(|value| self.document.line_at(value.span().start)),
        };
        error(self.document.file.clone(), line, path, fault)
    }
}

/// A value of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'d> {
    document: &'d Document<'d>,
    value: &'d Value<'d>,
}

/// What a value is, for those who take more than one type.
#[derive(Debug)]
pub(crate) enum Kind<'d> {
    String(&'d str),
    /// Whole numbers that do not fit are `Other`.
    Integer(i64),
    /// Floats that do not fit are `Other`.
    Float(f64),
    Boolean(bool),
    Array,
    Table,
    Other,
}

impl<'d> Node<'d> {
    pub(crate) fn kind(self) -> Kind<'d> {
        match self.value.get_ref() {
            DeValue::String(text) => Kind::String(text),
            DeValue::Integer(integer) => integer_of(integer).map_or(Kind::Other, Kind::Integer),
            DeValue::Float(float) => {
                let text = float.as_str();
                // A float that is too large parses as infinite, although it is not written so.
                let fits = |float: &f64| float.is_finite() || !text.contains(['.', 'e', 'E']);
                text.parse().ok().filter(fits).map_or(Kind::Other, Kind::Float)
            }
            DeValue::Boolean(boolean) => Kind::Boolean(*boolean),
            DeValue::Array(_) => Kind::Array,
            DeValue::Table(_) => Kind::Table,
            DeValue::Datetime(_) => Kind::Other,
        }
    }

    pub(crate) fn string(self) -> Result<&'d str> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.fault("a string")),
        }
    }

    /// Returns a whole number from 0 to 2⁶³ − 1, the largest that every reader of TOML takes.
    pub(crate) fn unsigned(self) -> Result<u64> {
        match self.kind() {
            Kind::Integer(integer) => u64::try_from(integer).ok(),
            _ => None,
        }
        .ok_or_else(|| self.fault("a whole number from 0 to 9223372036854775807"))
    }

    pub(crate) fn table(self) -> Result<Table<'d>> {
        let Self { document, value } = self;
        match value.get_ref() {
            DeValue::Table(entries) => {
                let used = Vec::with_capacity(entries.len());
                Ok(Table { document, value: Some(value), entries, used })
            }
            _ => Err(self.fault("a table")),
        }
    }

    pub(crate) fn array(self) -> Result<impl ExactSizeIterator<Item = Node<'d>>> {
        let document = self.document;
        match self.value.get_ref() {
            DeValue::Array(items) => Ok(items.iter().map(move |value| Node { document, value })),
            _ => Err(self.fault("an array")),
        }
    }

    /// Writes the value as TOML, on one line.
    pub(crate) fn to_toml(self) -> String {
        emit::Parsed(self.value.get_ref()).to_string()
    }

    /// Returns what a text stands for.
    pub(crate) fn parse<T: FromStr<Err = InvalidText>>(self) -> Result<T> {
        self.string()?.parse().map_err(|error: InvalidText| self.fault(error.expected))
    }

    /// Returns what the items of an array stand for.
    pub(crate) fn list<T>(self, item: impl FnMut(Node<'d>) -> Result<T>) -> Result<Vec<T>> {
        self.array()?.map(item).collect()
    }

    /// Refuses more items of an array than a limit allows.
    pub(crate) fn check_count(
        self,
        what: &'static str,
        found: usize,
        limits: &Limits,
        limit: Limit,
    ) -> Result<()> {
        let (found, allowed) = (found as u64, limits.get(limit));
        if found <= allowed {
            return Ok(());
        }
        let field = limit.name();
        Err(self.error(DocumentFault::OverLimit { what, found, limit: allowed, field }))
    }

    /// Returns the line, counted from 1, on which the value starts.
    pub(crate) fn line(self) -> u64 {
        self.document.line_at(self.value.span().start)
    }

    /// Makes an error that says what this value is and what is expected.
    pub(crate) fn fault(self, expected: impl Into<Cow<'static, str>>) -> Error {
        self.error(DocumentFault::Value { found: self.found(), expected: expected.into() })
    }

    pub(crate) fn error(self, fault: DocumentFault) -> Error {
        let path = self.document.path(Some(self.value));
        error(self.document.file.clone(), Some(self.line()), path, fault)
    }

    /// Names the value in a message: as it is written where it is short, by its type otherwise.
    fn found(self) -> String {
        match self.value.get_ref() {
            DeValue::String(text) => Quoted(text).to_string(),
            DeValue::Boolean(boolean) => boolean.to_string(),
            DeValue::Array(_) => "an array".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => {
                let written = self.document.text.get(self.value.span()).unwrap_or_default();
                short(written).into_owned()
            }
        }
    }
}

/// Keys that nobody asked for. Readers skip them. Format text: "`carton.toml`".
#[derive(Debug)]
pub(crate) struct Unknown<'d> {
    document: &'d Document<'d>,
    keys: Vec<(usize, &'d Value<'d>)>,
    /// The others, where someone will ask for their lines.
    known: Option<Vec<&'d Value<'d>>>,
}

impl<'d> Unknown<'d> {
    pub(crate) fn new(document: &'d Document<'d>) -> Self {
        Self { document, keys: Vec::new(), known: None }
    }

    /// Notes also where the keys are that were asked for.
    pub(crate) fn with_lines(document: &'d Document<'d>) -> Self {
        Self { known: Some(Vec::new()), ..Self::new(document) }
    }

    /// Returns the lines, counted from 1, on which the values are that were asked for, by path.
    pub(crate) fn lines(&self) -> HashMap<String, u64> {
        let known = self.known.as_deref().unwrap_or_default();
        let mut paths = self.document.paths(known.iter().map(|value| address(value)));
        let line = |value: &&Value<'_>| {
            let path = paths.remove(&address(value))?;
            Some((path, self.document.line_at(value.span().start)))
        };
        known.iter().filter_map(line).collect()
    }

    /// Returns where they are, in the order of the document.
    pub(crate) fn into_keys(mut self) -> Vec<UnknownKey> {
        if self.keys.is_empty() {
            return Vec::new();
        }
        self.keys.sort_by_key(|&(offset, _)| offset);
        let mut paths = self.document.paths(self.keys.iter().map(|&(_, value)| address(value)));
        let key = |(offset, value)| UnknownKey {
            path: paths.remove(&address(value)).unwrap_or_default(),
            line: self.document.line_at(offset),
        };
        self.keys.into_iter().map(key).collect()
    }
}

/// A key that the format's text does not name. Readers skip it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownKey {
    /// The path of the key, such as `input[1].unit`.
    pub path: String,
    /// The line, counted from 1.
    pub line: u64,
}

/// Warns of a line of a document that readers of TOML 1.0 refuse.
pub(crate) fn report_toml_1_1(line: Option<u64>, file: &str, report: &mut Report) {
    if let Some(line) = line {
        let message = "document needs TOML 1.1, expected TOML 1.0";
        report.add(Finding::warning("carton/toml-1-1", message).entry(file).line(line));
    }
}

/// Notes the keys of a document that the format's text does not name.
pub(crate) fn report_unknown(keys: &[UnknownKey], file: &str, report: &mut Report) {
    for key in keys {
        let finding = Finding::note("carton/unknown-key", "is a key that the format does not name");
        report.add(finding.entry(file).path(&*key.path).line(key.line));
    }
}

/// A key as it stands in a path: bare, or quoted and escaped where it has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a>(pub(crate) &'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !self.0.is_empty() && self.0.bytes().all(is_bare) {
            return f.write_str(self.0);
        }
        write!(f, "\"{}\"", Escaped(self.0))
    }
}

/// The inside of a basic string of TOML 1.0. Besides what has to be escaped, this escapes what
/// would reorder or hide text where it is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                _ if is_hidden(char) => write!(f, "\\u{:04X}", u32::from(char))?,
                _ => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

/// Tells whether a character is a control character or an invisible one that reorders text.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
        )
}

fn push_key(path: &mut String, key: &str) {
    let dot = if path.is_empty() { "" } else { "." };
    // Writing to a string cannot fail.
    let _ = write!(path, "{dot}{}", Key(key));
}

/// Fills in the paths of the values that are in `wanted`. Parsing has limited the depth.
fn find_in_table(table: &DeTable<'_>, path: &mut String, wanted: &mut HashMap<*const (), String>) {
    let len = path.len();
    for (key, value) in table {
        push_key(path, key.get_ref());
        find_in_value(value, path, wanted);
        path.truncate(len);
    }
}

fn find_in_value(value: &Value<'_>, path: &mut String, wanted: &mut HashMap<*const (), String>) {
    if let Some(found) = wanted.get_mut(&address(value)) {
        found.clone_from(path);
    }
    match value.get_ref() {
        DeValue::Table(table) => find_in_table(table, path, wanted),
        DeValue::Array(items) => {
            let len = path.len();
            for (index, item) in items.iter().enumerate() {
                let _ = write!(path, "[{index}]");
                find_in_value(item, path, wanted);
                path.truncate(len);
            }
        }
        _ => {}
    }
}

/// What tells a value of a document from all others.
fn address(value: &Value<'_>) -> *const () {
    std::ptr::from_ref(value).cast()
}

fn integer_of(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Returns the line, counted from 1, that has so many lines before it.
fn line(before: usize) -> u64 {
    (before as u64).saturating_add(1)
}

fn error(file: Cow<'static, str>, line: Option<u64>, at: String, fault: DocumentFault) -> Error {
    Error::Document(Box::new(DocumentError { file, line, at, fault }))
}

/// Looks for what only TOML 1.1 has, in a text that is known to be valid: newlines and trailing
/// commas in inline tables, `\e` and `\x`, and times without seconds.
struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    fn find_1_1(mut self) -> Option<usize> {
        let mut open = Vec::new();
        let mut comma = None;
        while let Some(byte) = self.bump() {
            let is_inline = open.last() == Some(&b'{');
            match byte {
                b'\n' if is_inline => return Some(self.at.saturating_sub(1)),
                b' ' | b'\t' | b'\r' | b'\n' => continue,
                b'#' => {
                    self.skip_while(|byte| byte != b'\n');
                    continue;
                }
                b'}' if comma.is_some() => return comma,
                b'{' | b'[' => open.push(byte),
                b'}' | b']' => drop(open.pop()),
                b'"' | b'\'' => {
                    if let Some(offset) = self.string(byte) {
                        return Some(offset);
                    }
                }
                b':' if !self.has_seconds() => return Some(self.at.saturating_sub(1)),
                // Minutes, seconds and what may be left of a time.
                b':' => self.skip_while(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'.' | b'+' | b'-')
                }),
                _ => {}
            }
            comma = (byte == b',' && is_inline).then(|| self.at.saturating_sub(1));
        }
        None
    }

    /// Skips a string whose first quote has been read; stops at an escape of TOML 1.1.
    fn string(&mut self, quote: u8) -> Option<usize> {
        let is_long = self.rest().starts_with(&[quote, quote]);
        if is_long {
            self.skip(2);
        }
        while let Some(byte) = self.bump() {
            if byte == b'\\' && quote == b'"' {
                if matches!(self.rest().first(), Some(b'e' | b'x')) {
                    return Some(self.at.saturating_sub(1));
                }
                self.skip(1);
            } else if byte == quote && !is_long {
                return None;
            } else if byte == quote && self.rest().starts_with(&[quote, quote]) {
                // Up to two more quotes belong to the text.
                self.skip_while(|byte| byte == quote);
                return None;
            }
        }
        None
    }

    /// Tells whether minutes and another colon follow.
    fn has_seconds(&self) -> bool {
        self.rest().get(2) == Some(&b':')
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = self.rest().first().copied()?;
        self.skip(1);
        Some(byte)
    }

    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn skip_while(&mut self, mut is_skipped: impl FnMut(u8) -> bool) {
        let skipped = self.rest().iter().take_while(|&&byte| is_skipped(byte)).count();
        self.skip(skipped);
    }
}

/// Keys of a table that are looked through one by one.
const FEW: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Document<'_> {
        Document::parse("carton.toml", text.as_bytes()).unwrap()
    }

    #[track_caller]
    fn refuses(bytes: &[u8], message: &str) {
        assert_eq!(Document::parse("LINKS", bytes).unwrap_err().to_string(), message);
    }

    /// Follows keys and indices from the root.
    fn node<'d>(document: &'d Document<'d>, steps: &[&str]) -> Node<'d> {
        let (first, rest) = steps.split_first().unwrap();
        let first = document.root().required(first).unwrap();
        rest.iter().fold(first, |node, step| match step.parse() {
            Ok(index) => node.array().unwrap().nth(index).unwrap(),
            Err(_) => node.table().unwrap().required(step).unwrap(),
        })
    }

    #[track_caller]
    fn faulty(text: &str, steps: &[&str], message: &str) {
        let error = node(&parse(text), steps).fault("a thing");
        assert_eq!(error.to_string(), format!("carton.toml {message}, expected a thing"));
    }

    #[test]
    fn faults_name_line_and_path() {
        let text = "[[input]]\nname = 'x'\n\n[[input]]\nname = 'y'\nshape = [\n  'n',\n  -3,\n]";
        faulty(text, &["input", "1", "shape", "1"], "line 8: input[1].shape[1] is -3");
        faulty(text, &["input", "1", "shape"], "line 6: input[1].shape is an array");
        faulty(text, &["input", "0"], "line 1: input[0] is a table");
        faulty(text, &["input", "1", "name"], "line 5: input[1].name is \"y\"");
    }

    #[test]
    fn faults_quote_keys_that_are_not_bare() {
        let text = "[runner.opts]\n'a b' = 1\nb-_2 = 2\n'' = 3";
        faulty(text, &["runner", "opts", "a b"], "line 2: runner.opts.\"a b\" is 1");
        faulty(text, &["runner", "opts", "b-_2"], "line 3: runner.opts.b-_2 is 2");
        faulty(text, &["runner", "opts", ""], "line 4: runner.opts.\"\" is 3");
        assert_eq!(Key("\"\u{1b}\u{202e}é\n").to_string(), r#""\"\u001B\u202Eé\n""#);
        assert_eq!(Key("हिन्दी'👩‍💻\t").to_string(), r#""हिन्दी'👩‍💻\t""#);
    }

    #[test]
    fn faults_show_values_as_written() {
        for (value, found) in [
            ("0x0F", "0x0F"),
            ("1_000.5", "1_000.5"),
            ("1979-05-27", "1979-05-27"),
            ("true", "true"),
            ("{}", "a table"),
            (r#""\u001b[m\n""#, r#""\u{1b}[m\n""#),
        ] {
            faulty(&format!("a = {value}"), &["a"], &format!("line 1: a is {found}"));
        }
        let long = "é".repeat(1000);
        let found = format!("line 1: a is \"{}…\"", "é".repeat(120));
        faulty(&format!("a = '{long}'"), &["a"], &found);
    }

    #[test]
    fn missing_keys() {
        let document = parse("a = 1\n\n[runner.'b c']\nx = 1\n");
        let error = document.root().required("spec_version").unwrap_err();
        assert_eq!(error.to_string(), "carton.toml: spec_version is missing");
        let error = node(&document, &["runner", "b c"]).table().unwrap().required("y").unwrap_err();
        assert_eq!(error.to_string(), "carton.toml line 3: runner.\"b c\".y is missing");
    }

    #[test]
    fn unknown_keys_in_order() {
        let text = "known = 1\nz = 2\n[t]\nx = 1\n'y z' = { a = 1 }\n[u.v]\nw = 1\n";
        let document = parse(text);
        let mut unknown = Unknown::new(&document);
        let mut root = document.root();
        root.required("known").unwrap();
        let mut table = root.optional("t").unwrap().table().unwrap();
        table.required("x").unwrap();
        table.finish(&mut unknown);
        root.finish(&mut unknown);
        let found: Vec<_> = unknown.into_keys().into_iter().map(|k| (k.path, k.line)).collect();
        let expected = [("z", 2), ("t.\"y z\"", 5), ("u", 6)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }

    #[test]
    fn whole_numbers() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("+1_000", Some(1000)),
            ("0xfF", Some(255)),
            ("9223372036854775807", Some(i64::MAX as u64)),
            ("9223372036854775808", None),
            ("-1", None),
            ("1.0", None),
            ("1e3", None),
            ("'1'", None),
            ("true", None),
        ] {
            let text = format!("a = {text}");
            let document = parse(&text);
            let found = node(&document, &["a"]).unsigned();
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{text}");
        }
        let document = parse("a = -1");
        assert_eq!(
            node(&document, &["a"]).unsigned().unwrap_err().to_string(),
            "carton.toml line 1: a is -1, expected a whole number from 0 to 9223372036854775807"
        );
    }

    #[test]
    fn floats() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("+inf", Some(f64::INFINITY)),
            ("1_0e3", Some(1e4)),
            ("1e999", None),
        ] {
            let text = format!("a = {text}");
            let document = parse(&text);
            let found = match node(&document, &["a"]).kind() {
                Kind::Float(float) => Some(float),
                _ => None,
            };
            assert_eq!(found, expected, "{text}");
        }
        let document = parse("a = nan");
        assert!(matches!(node(&document, &["a"]).kind(), Kind::Float(f) if f.is_nan()));
    }

    #[test]
    fn other_types() {
        let document = parse("a = 1");
        let node = node(&document, &["a"]);
        let message = |error: Error| error.to_string();
        assert_eq!(
            message(node.string().unwrap_err()),
            "carton.toml line 1: a is 1, expected a string"
        );
        assert_eq!(
            message(node.table().unwrap_err()),
            "carton.toml line 1: a is 1, expected a table"
        );
        assert_eq!(
            message(node.array().err().unwrap()),
            "carton.toml line 1: a is 1, expected an array"
        );
    }

    #[test]
    fn syntax_faults() {
        refuses(b"a = 'x", "LINKS line 1: invalid literal string, expected `'`");
        refuses(b"a = \"\xff\"", "LINKS line 1: text is not UTF-8 from byte 5 on");
        refuses(b"a = 1\nb = '\xc3'", "LINKS line 2: text is not UTF-8 from byte 11 on");
    }

    #[test]
    fn byte_order_mark_is_passed_over() {
        faulty("\u{feff}a = 1\nb = 2", &["b"], "line 2: b is 2");
    }

    #[test]
    fn constructs_of_toml_1_1() {
        for (text, line) in [
            ("a = {\n}", Some(1)),
            ("a = { b = 1,\n c = 2 }", Some(1)),
            ("\na = { b = 1, }", Some(2)),
            ("a = { b = 1 # }\n}", Some(1)),
            ("a = [\n{ b = 1, }\n]", Some(2)),
            ("a = { b = [{ c = 1, }] }", Some(1)),
            ("a = \"\\e\"", Some(1)),
            ("a = \"\"\"\n\\x41\"\"\"", Some(2)),
            ("\"\\x41\" = 1", Some(1)),
            ("a = 1\nb = 07:32", Some(2)),
            ("a = 1979-05-27T07:32Z", Some(1)),
            ("a = 1979-05-27 07:32+01:00", Some(1)),
            // All of these are TOML 1.0.
            ("a = { b = [\n1,\n2,\n] , c = 1 }", None),
            ("a = { b = \"\"\"\n\"\"\", c = '''\n,'''}", None),
            ("a = { b = [ { c = 1 }, ] }", None),
            ("a = [1, # }\n2,]\n[b]\n[[c]]\nd = {}", None),
            ("a = \"\\\\e, \\\"}\" # \\e {\n", None),
            ("a = '\\e'\nb = '''\\x\n{,}'''", None),
            ("a = \"\"\"\"{\"\"\"\"\"\nb = ''''{'''''\nc = \"\"\nd = ''\n", None),
            ("a = \"\"\"\\\"\"\"{,}\n\"\"\"", None),
            ("a = \"{,}\"\n'{' = 1\n\"\\\"{\" = 2\n", None),
            ("a = 07:32:00.5\nb = 1979-05-27T07:32:00-07:00\nc = 1979-05-27 07:32:00Z", None),
            ("a = { b = 07:32:00 }\r\n", None),
        ] {
            assert_eq!(parse(text).needs_toml_1_1(), line, "{text}");
        }
    }
}
