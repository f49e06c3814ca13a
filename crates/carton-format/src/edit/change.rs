//! Edits of `carton.toml` as text: comments, order and unknown keys stay as they are.

use tensor_core::Limits;
use toml_edit::{
    Array, ArrayOfTables, DocumentMut, InlineTable, Item, Key, Table, TableLike, TomlError, Value,
};

use crate::{Description, DocumentFault, EditFault, Error, Result, text::Document};

/// One change of a document.
///
/// Paths are written as errors and findings write them: keys with dots between them, bare or in
/// quotes, and items of arrays by their index, such as `input[0].description` or
/// `runner.opts."a b"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Puts a value in place of another, or where there is none. Tables and arrays on the way are
    /// made where they are missing; an index that is the length of its array adds an item.
    Set {
        /// Where.
        path: String,
        /// What.
        value: NewValue,
    },
    /// Takes away a value with the comments that belong to it.
    Remove {
        /// Where.
        path: String,
    },
}

impl Change {
    /// Makes a [`Change::Set`].
    #[must_use]
    pub fn set(path: impl Into<String>, value: NewValue) -> Self {
        Self::Set { path: path.into(), value }
    }

    /// Makes a [`Change::Remove`].
    #[must_use]
    pub fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }

    fn path(&self) -> &str {
        match self {
            Self::Set { path, .. } | Self::Remove { path } => path,
        }
    }

    fn apply(&self, document: &mut DocumentMut) -> Result<(), EditFault> {
        let path = Path::parse(self.path())?;
        match self {
            Self::Set { value, .. } => path.set(document, value.to_value()?),
            Self::Remove { .. } => path.remove(document),
        }
    }
}

/// A value to be put into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// A value as TOML 1.0 writes it, such as `4`, `true`, `"text"` or `{ a = 1 }`.
    Toml(String),
    /// A string.
    Text(String),
}

impl NewValue {
    /// Takes a text for TOML where it is that, and for a string where it is not.
    #[must_use]
    pub fn guess(text: &str) -> Self {
        match text.parse::<Value>() {
            Ok(_) => Self::Toml(text.to_owned()),
            Err(_) => Self::Text(text.to_owned()),
        }
    }

    fn to_value(&self) -> Result<Value, EditFault> {
        let text = match self {
            Self::Text(text) => return Ok(Value::from(text)),
            Self::Toml(text) => text,
        };
        let fault = |error: TomlError| EditFault::Value { reason: error.message().to_owned() };
        let value: Value = text.parse().map_err(fault)?;
        let line = format!("value = {text}");
        if Document::parse("value", line.as_bytes()).is_ok_and(|d| d.needs_toml_1_1().is_some()) {
            return Err(EditFault::Value {
                reason: "needs TOML 1.1, expected TOML 1.0".to_owned(),
            });
        }
        Ok(value)
    }
}

impl Description {
    /// Makes changes of the text of a `carton.toml`, in order, and returns the new text: comments,
    /// order and unknown keys stay as they are.
    ///
    /// # Errors
    ///
    /// [`Error::Edit`] where a change cannot be made; any error of [`parse`](Self::parse) where the result is
    /// not a description. Edits mend as well: the document as it was need not be one.
    ///
    /// # Examples
    ///
    /// ```
    /// use carton_format::{Change, Description, NewValue};
    /// use tensor_core::Limits;
    ///
    /// let text = "\
    /// spec_version = 1 # of Carton
    /// [runner]
    /// runner_name = \"python\"
    /// required_framework_version = \"=3.11\"
    /// ";
    /// let changes = [
    ///     Change::set("runner.runner_name", NewValue::guess("torchscript")),
    ///     Change::set("runner.opts.num_threads", NewValue::guess("4")),
    /// ];
    /// let edited = Description::edit(text.as_bytes(), &changes, &Limits::default())?;
    /// assert_eq!(
    ///     String::from_utf8(edited)?,
    ///     "\
    /// spec_version = 1 # of Carton
    /// [runner]
    /// runner_name = \"torchscript\"
    /// required_framework_version = \"=3.11\"
    ///
    /// [runner.opts]
    /// num_threads = 4
    /// "
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edit(bytes: &[u8], changes: &[Change], limits: &Limits) -> Result<Vec<u8>> {
        Self::check_len(bytes.len() as u64, limits)?;
        let parsed = Document::parse(Self::PATH, bytes)?;
        let mut document: DocumentMut = parsed.text().parse().map_err(|error: TomlError| {
            Self::error(String::new(), DocumentFault::Syntax(error.message().to_owned()))
        })?;
        for change in changes {
            change
                .apply(&mut document)
                .map_err(|fault| Error::Edit { path: change.path().to_owned(), fault })?;
        }
        let edited = like(parsed.text(), document.to_string()).into_bytes();
        Self::parse(&edited, limits)?;
        Ok(edited)
    }
}

/// Gives a text the byte order mark and the line ends of another: `toml_edit` writes neither.
///
/// Where the other has line ends of both kinds, they all become line feeds.
fn like(old: &str, mut new: String) -> String {
    if old.contains("\r\n") && old.matches("\r\n").count() == old.matches('\n').count() {
        new = new.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    if old.starts_with(MARK) {
        new.insert(0, MARK);
    }
    new
}

/// A path, parsed.
#[derive(Debug)]
struct Path<'a> {
    text: &'a str,
    first: Vec<Segment>,
    last: Segment,
}

#[derive(Debug)]
struct Segment {
    step: Step,
    /// Where it ends in the path, in bytes.
    end: usize,
}

#[derive(Debug)]
enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    /// Makes what may hold the value that this step leads to.
    fn holder(&self, is_inline: bool, is_last: bool) -> Item {
        match self {
            Self::Key(_) if is_inline => Item::Value(InlineTable::new().into()),
            Self::Key(_) => {
                let mut table = Table::new();
                // Its header is only written where it holds more than other tables.
                table.set_implicit(true);
                Item::Table(table)
            }
            Self::Index(_) if is_inline || is_last => Item::Value(Array::new().into()),
            Self::Index(_) => Item::ArrayOfTables(ArrayOfTables::new()),
        }
    }
}

/// What becomes of a step that leads to nothing.
#[derive(Clone, Copy)]
enum Missing {
    Made,
    Refused,
}

impl<'a> Path<'a> {
    fn parse(text: &'a str) -> Result<Self, EditFault> {
        let mut first = Vec::new();
        let mut last = Segment::key(text, 0)?;
        while let Some(rest) = text.get(last.end..).filter(|rest| !rest.is_empty()) {
            let next = match rest.strip_prefix('.') {
                Some(_) => Segment::key(text, last.end.saturating_add(1))?,
                None => Segment::index(text, last.end)?,
            };
            first.push(std::mem::replace(&mut last, next));
            if first.len() >= STEPS {
                let expected = "the end: no path has more than 64 steps";
                return Err(EditFault::Path { offset: last.end, expected });
            }
        }
        Ok(Self { text, first, last })
    }

    /// Goes to what holds the last step, and returns where that ends in the path too.
    fn walk<'d>(
        &self,
        document: &'d mut DocumentMut,
        missing: Missing,
    ) -> Result<(Place<'d>, usize), EditFault> {
        let (mut place, mut at) = (Place::Table(document.as_table_mut()), 0);
        let next = self.first.iter().skip(1).chain([&self.last]);
        for (segment, next) in self.first.iter().zip(next) {
            let is_last = next.end == self.last.end;
            let found = match &segment.step {
                Step::Key(key) => {
                    let is_inline = place.is_inline();
                    let table = place.table().ok_or_else(|| self.wrong(at, TABLE))?;
                    let holder = || next.step.holder(is_inline, is_last);
                    match missing {
                        Missing::Made => Some(table.entry(key).or_insert_with(holder)),
                        Missing::Refused => table.get_mut(key),
                    }
                    .map(Place::Item)
                }
                Step::Index(index) => {
                    let list = place.list().ok_or_else(|| self.wrong(at, ARRAY))?;
                    match missing {
                        Missing::Made => list.get_or_push(*index),
                        Missing::Refused => list.get(*index),
                    }
                }
            };
            place = found.ok_or_else(|| self.missing(segment))?;
            at = segment.end;
        }
        Ok((place, at))
    }

    fn set(&self, document: &mut DocumentMut, value: Value) -> Result<(), EditFault> {
        let (place, at) = self.walk(document, Missing::Made)?;
        match &self.last.step {
            Step::Key(key) => {
                let table = place.table().ok_or_else(|| self.wrong(at, TABLE))?;
                match table.get_mut(key) {
                    Some(item) if !item.is_none() => replace(item, value),
                    _ => drop(table.insert(key, Item::Value(value))),
                }
                Ok(())
            }
            Step::Index(index) => {
                let list = place.list().ok_or_else(|| self.wrong(at, ARRAY))?;
                if *index > list.len() {
                    return Err(self.missing(&self.last));
                }
                list.set(*index, value).ok_or_else(|| EditFault::Value {
                    reason: "items of an array of tables have to be tables".to_owned(),
                })
            }
        }
    }

    fn remove(&self, document: &mut DocumentMut) -> Result<(), EditFault> {
        let (place, at) = self.walk(document, Missing::Refused)?;
        match &self.last.step {
            Step::Key(key) => {
                let table = place.table().ok_or_else(|| self.wrong(at, TABLE))?;
                table.remove(key).map(drop)
            }
            Step::Index(index) => {
                let list = place.list().ok_or_else(|| self.wrong(at, ARRAY))?;
                list.remove(*index)
            }
        }
        .ok_or_else(|| self.missing(&self.last))
    }

    fn missing(&self, segment: &Segment) -> EditFault {
        EditFault::Missing { at: self.text.get(..segment.end).unwrap_or_default().to_owned() }
    }

    fn wrong(&self, end: usize, expected: &'static str) -> EditFault {
        EditFault::WrongType { at: self.text.get(..end).unwrap_or_default().to_owned(), expected }
    }
}

impl Segment {
    fn key(path: &str, start: usize) -> Result<Self, EditFault> {
        let rest = path.get(start..).unwrap_or_default();
        let len = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => quoted_len(rest, quote),
            _ => rest.find(['.', '[']).unwrap_or(rest.len()),
        };
        let end = start.saturating_add(len);
        let keys = Key::parse(path.get(start..end).unwrap_or_default());
        match keys.as_deref() {
            Ok([key]) => Ok(Self { step: Step::Key(key.get().to_owned()), end }),
            _ => Err(EditFault::Path { offset: start, expected: "a key" }),
        }
    }

    fn index(path: &str, start: usize) -> Result<Self, EditFault> {
        let rest = path.get(start..).unwrap_or_default();
        let digits = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')?.0.into());
        let index = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let end = start.saturating_add(digits.map_or(0, str::len)).saturating_add(2);
        match index.and_then(|digits| digits.parse().ok()) {
            Some(index) => Ok(Self { step: Step::Index(index), end }),
            None => Err(EditFault::Path { offset: start, expected: "a dot, an index or the end" }),
        }
    }
}

/// Returns the length in bytes of a quoted key at the start of a text, or of all the text where it
/// has no end.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = quote == '"',
            _ if char == quote => return at.saturating_add(1),
            _ => {}
        }
    }
    text.len()
}

/// A value of a document, by whatever the parser keeps it in.
enum Place<'d> {
    Item(&'d mut Item),
    Value(&'d mut Value),
    Table(&'d mut Table),
}

impl<'d> Place<'d> {
    fn is_inline(&self) -> bool {
        matches!(self, Self::Value(_) | Self::Item(Item::Value(_)))
    }

    fn table(self) -> Option<&'d mut dyn TableLike> {
        match self {
            Self::Item(item) => item.as_table_like_mut(),
            Self::Value(value) => match value.as_inline_table_mut() {
                Some(table) => Some(table),
                None => None,
            },
            Self::Table(table) => Some(table),
        }
    }

    fn list(self) -> Option<List<'d>> {
        match self {
            Self::Item(Item::ArrayOfTables(tables)) => Some(List::Tables(tables)),
            Self::Item(Item::Value(Value::Array(array))) | Self::Value(Value::Array(array)) => {
                Some(List::Array(array))
            }
            _ => None,
        }
    }
}

enum List<'d> {
    Array(&'d mut Array),
    Tables(&'d mut ArrayOfTables),
}

impl<'d> List<'d> {
    fn len(&self) -> usize {
        match self {
            Self::Array(array) => array.len(),
            Self::Tables(tables) => tables.len(),
        }
    }

    fn get(self, index: usize) -> Option<Place<'d>> {
        match self {
            Self::Array(array) => array.get_mut(index).map(Place::Value),
            Self::Tables(tables) => tables.get_mut(index).map(Place::Table),
        }
    }

    /// Returns an item, where need be a new one at the end, which is a table.
    fn get_or_push(mut self, index: usize) -> Option<Place<'d>> {
        if index == self.len() {
            match &mut self {
                Self::Array(array) => array.push(InlineTable::new()),
                Self::Tables(tables) => tables.push(Table::new()),
            }
        }
        self.get(index)
    }

    /// Puts a value in place of an item, or at the end; `None` where it has to be a table and is
    /// not.
    fn set(self, index: usize, value: Value) -> Option<()> {
        match self {
            Self::Array(array) if index < array.len() => drop(array.replace(index, value)),
            Self::Array(array) => array.push(value),
            Self::Tables(tables) => {
                let Value::InlineTable(table) = value else { return None };
                match tables.get_mut(index) {
                    Some(old) => replace_table(old, table),
                    None => tables.push(table.into_table()),
                }
            }
        }
        Some(())
    }

    fn remove(self, index: usize) -> Option<()> {
        if index >= self.len() {
            return None;
        }
        match self {
            Self::Array(array) => drop(array.remove(index)),
            Self::Tables(tables) => drop(tables.remove(index)),
        }
        Some(())
    }
}

/// Puts a value in place of another, with the comments of the other.
fn replace(item: &mut Item, new: Value) {
    match (item, new) {
        (Item::Table(table), Value::InlineTable(new)) => replace_table(table, new),
        (item, mut new) => {
            if let Some(old) = item.as_value() {
                *new.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(new);
        }
    }
}

/// Puts a table in place of another, with its header and the comments there.
fn replace_table(table: &mut Table, new: InlineTable) {
    let mut new = new.into_table();
    *new.decor_mut() = table.decor().clone();
    new.set_position(table.position());
    *table = new;
}

/// Steps of a path. Deeper documents are not read, and to make one takes stack.
const STEPS: usize = 64;

/// The byte order mark.
const MARK: char = '\u{feff}';

const TABLE: &str = "a table";
const ARRAY: &str = "an array";

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A model.
spec_version = 1 # of Carton
extra.key = [1, 2] # kept

[[input]] # first
name = 'x'  # a name
dtype = \"int8\"
shape = ['n', 3]

# About the runner.
[runner]
required_framework_version = '*'
runner_name = \"r\" # last

[later]
\"a b\" = { c = 1 }
";

    fn edit(changes: &[Change]) -> Result<String> {
        let edited = Description::edit(TEXT.as_bytes(), changes, &Limits::default())?;
        Ok(String::from_utf8(edited).unwrap())
    }

    fn toml(text: &str) -> NewValue {
        NewValue::Toml(text.to_owned())
    }

    /// Changes the lines `old` of the document into `new`, and nothing else.
    #[track_caller]
    fn changes(change: Change, old: &str, new: &str) {
        assert!(TEXT.contains(old), "{old}");
        assert_eq!(edit(&[change]).unwrap(), TEXT.replacen(old, new, 1));
    }

    #[track_caller]
    fn refuses(change: Change, message: &str) {
        assert_eq!(edit(&[change]).unwrap_err().to_string(), message);
    }

    #[test]
    fn no_change() {
        assert_eq!(edit(&[]).unwrap(), TEXT);
        let marked = format!("\u{feff}{}", TEXT.replace('\n', "\r\n"));
        let edited = Description::edit(marked.as_bytes(), &[], &Limits::default()).unwrap();
        assert_eq!(String::from_utf8(edited).unwrap(), marked);
        let text = "'''a\r\nb'''";
        let change = Change::set("model_description", NewValue::Toml(text.to_owned()));
        let edited = Description::edit(marked.as_bytes(), &[change], &Limits::default()).unwrap();
        let expected = format!("# kept\r\nmodel_description = {text}\r\n");
        assert_eq!(String::from_utf8(edited).unwrap(), marked.replacen("# kept\r\n", &expected, 1));
    }

    #[test]
    fn values_are_replaced() {
        let set = |path, value| Change::set(path, NewValue::guess(value));
        changes(set("input[0].name", "y"), "'x'  # a", "\"y\"  # a");
        changes(set("input[0].shape[1]", "4"), "3]", "4]");
        changes(set("input[0].shape[2]", "*"), "3]", "3, \"*\"]");
        changes(set("input[0].shape", "[ ]"), "['n', 3]", "[ ]");
        changes(set("later.\"a b\".c", "2"), "c = 1", "c = 2");
        changes(set("later.'a b'.d", "2"), "c = 1 ", "c = 1 , d = 2 ");
        changes(set("extra", "1"), "extra.key = [1, 2] # kept", "extra = 1");
        changes(
            Change::set("runner.runner_name", NewValue::Text("1".to_owned())),
            "\"r\" #",
            "\"1\" #",
        );
    }

    #[test]
    fn values_are_added() {
        let set = |path, value| Change::set(path, NewValue::guess(value));
        changes(set("model_name", "m"), "# kept\n", "# kept\nmodel_name = \"m\"\n");
        changes(
            set("runner.opts.'x y'", "2.5"),
            "# last\n",
            "# last\n\n[runner.opts]\n\"x y\" = 2.5\n",
        );
        changes(set("runner.opts", "{ a = 1 }"), "# last\n", "# last\nopts = { a = 1 }\n");
        changes(
            set("required_platforms[0]", "x86_64"),
            "# kept\n",
            "# kept\nrequired_platforms = [\"x86_64\"]\n",
        );
        changes(set("later.'a b'.d.e[0].f", "2"), "c = 1 ", "c = 1 , d = { e = [{ f = 2 }] } ");
        changes(set("later.deep.er.x", "2"), "c = 1 }\n", "c = 1 }\n\n[later.deep.er]\nx = 2\n");
    }

    #[test]
    fn items_are_added() {
        let added = "['n', 3]\n\n[[input]]\nname = \"y\"\ndtype = \"int8\"\nshape = \"*\"\n";
        let spec = toml("{ name = \"y\", dtype = \"int8\", shape = \"*\" }");
        changes(Change::set("input[1]", spec.clone()), "['n', 3]\n", added);
        let set = |path, value| Change::set(path, NewValue::guess(value));
        let by_key =
            [set("input[1].name", "y"), set("input[1].dtype", "int8"), set("input[1].shape", "*")];
        assert_eq!(edit(&by_key).unwrap(), TEXT.replacen("['n', 3]\n", added, 1));
        let replaced = "[[input]] # first\nname = \"y\"\ndtype = \"int8\"\nshape = \"*\"\n";
        let old = "[[input]] # first\nname = 'x'  # a name\ndtype = \"int8\"\nshape = ['n', 3]\n";
        changes(Change::set("input[0]", spec), old, replaced);
    }

    #[test]
    fn values_are_removed() {
        changes(Change::remove("extra.key"), "extra.key = [1, 2] # kept\n", "");
        changes(Change::remove("input[0].shape[0]"), "['n', 3]", "[ 3]");
        changes(Change::remove("later.\"a b\".c"), "{ c = 1 }", "{}");
        changes(
            Change::remove("input[0]"),
            "[[input]] # first\nname = 'x'  # a name\ndtype = \"int8\"\nshape = ['n', 3]\n\n",
            "",
        );
        changes(Change::remove("later"), "\n[later]\n\"a b\" = { c = 1 }\n", "");
    }

    #[test]
    fn paths_that_lead_nowhere() {
        for (path, message) in [
            ("", "path at byte 0 is not a key"),
            ("a..b", "path at byte 2 is not a key"),
            ("a b", "path at byte 0 is not a key"),
            ("a.\"b", "path at byte 2 is not a key"),
            ("input[x]", "path at byte 5 is not a dot, an index or the end"),
            ("input[0", "path at byte 5 is not a dot, an index or the end"),
            ("input[-1]", "path at byte 5 is not a dot, an index or the end"),
            ("input[]", "path at byte 5 is not a dot, an index or the end"),
            ("input[0]name", "path at byte 8 is not a dot, an index or the end"),
            ("[0]", "path at byte 0 is not a key"),
            ("input[2]", "input[2] is missing"),
            ("input[2].name", "input[2] is missing"),
            ("input.name", "input is not a table"),
            ("runner[0]", "runner is not an array"),
            ("spec_version.x", "spec_version is not a table"),
            ("later.\"a b\"[0].x", "later.\"a b\" is not an array"),
        ] {
            let message = format!("{path:?} cannot be edited: {message}");
            refuses(Change::remove(path), &message);
            refuses(Change::set(path, toml("{}")), &message);
        }
        refuses(
            Change::remove("runner.opts.x"),
            "\"runner.opts.x\" cannot be edited: runner.opts is missing",
        );
        let long = ["a", &".a".repeat(100_000)].concat();
        let message = format!(
            "{long:?} cannot be edited: path at byte 129 is not the end: no path has more than 64 \
             steps"
        );
        refuses(Change::set(long, toml("1")), &message);
        refuses(Change::remove("'x'"), "\"'x'\" cannot be edited: 'x' is missing");
    }

    #[test]
    fn values_that_are_no_toml() {
        for (text, reason) in [
            ("", "string values must be quoted, expected literal string"),
            ("1\nb = 2", "unexpected content, expected nothing"),
            ("1 # c", "unexpected content, expected nothing"),
            ("{ a = 1, }", "needs TOML 1.1, expected TOML 1.0"),
            ("\"\\e\"", "needs TOML 1.1, expected TOML 1.0"),
        ] {
            refuses(
                Change::set("extra", toml(text)),
                &format!("\"extra\" cannot be edited: value is refused: {reason}"),
            );
        }
        refuses(
            Change::set("input[0]", toml("1")),
            "\"input[0]\" cannot be edited: value is refused: items of an array of tables have to \
             be tables",
        );
    }

    #[test]
    fn result_that_is_no_description() {
        refuses(
            Change::set("input[0].dtype", NewValue::guess("int9")),
            "carton.toml line 7: input[0].dtype is \"int9\", expected one of float32, float64, \
             string, int8, int16, int32, int64, uint8, uint16, uint32, uint64",
        );
        refuses(Change::remove("runner"), "carton.toml: runner is missing");
    }

    #[test]
    fn broken_documents_are_mended() {
        let text = TEXT.replace("int8", "int9");
        let change = Change::set("input[0].dtype", NewValue::guess("int8"));
        assert_eq!(
            Description::edit(text.as_bytes(), &[change], &Limits::default()).unwrap(),
            TEXT.as_bytes()
        );
        let error = Description::edit(b"a = 1\na = 2", &[], &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "carton.toml line 2: duplicate key");
    }
}
