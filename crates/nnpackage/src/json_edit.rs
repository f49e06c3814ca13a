//! Changes of a JSON text that leave alone what they are not about: comments, order, indents, line
//! ends, and whatever else onert puts up with.
//!
//! A text is parsed into values with their ranges, a change becomes a few replacements of ranges,
//! and the result is parsed again for the next one.

use std::{borrow::Cow, ops::Range};

use jsonc_parser::parse_to_ast;
use tensor_core::Limits;

use crate::{
    Result,
    json::{self, Document},
    json_tree::{Shape, Tree},
    json_write::{NewValue, Style},
};

/// An object as a text that is changed attribute by attribute.
pub(crate) struct Editing<'l> {
    what: &'static str,
    text: Vec<u8>,
    limits: &'l Limits,
}

impl<'l> Editing<'l> {
    pub(crate) fn new(what: &'static str, text: &[u8], limits: &'l Limits) -> Self {
        Self { what, text: text.to_owned(), limits }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.text
    }

    /// Makes an attribute of the root have a value; where there is none, it comes behind the last of
    /// those `before` it that there are.
    pub(crate) fn set(&mut self, key: &str, value: &NewValue, before: &[&str]) -> Result<()> {
        for _ in 0..STEPS {
            let tree = self.parse()?;
            let Some((_, member)) = tree.last(key) else {
                return self.insert(&tree, key, value, before);
            };
            let style = Style::of(&self.text, &tree);
            let mut edits = Edits::new(&self.text, style);
            let progress = edits.reconcile(member, value);
            self.text = edits.apply();
            if progress == Progress::Done {
                return Ok(());
            }
        }
        // So many places have to change that the whole value may as well.
        let tree = self.parse()?;
        let Some((_, member)) = tree.last(key) else { return Ok(()) };
        let mut edits = Edits::new(&self.text, Style::of(&self.text, &tree));
        edits.replace(member, value);
        self.text = edits.apply();
        Ok(())
    }

    /// Takes away an attribute of the root, however often it stands there.
    pub(crate) fn remove(&mut self, key: &str) -> Result<()> {
        let tree = self.parse()?;
        let Shape::Object(members) = &tree.shape else { return Ok(()) };
        let mut edits = Edits::new(&self.text, Style::of(&self.text, &tree));
        let children = tree.children();
        let mut start = 0_usize;
        // Between two runs there is something that stays, so that their ranges do not meet.
        for run in members.chunk_by(|a, b| (a.key == key) == (b.key == key)) {
            let end = start.saturating_add(run.len());
            if run.first().is_some_and(|member| member.key == key) {
                edits.remove(&children, start..end);
            }
            start = end;
        }
        self.text = edits.apply();
        Ok(())
    }

    fn insert(&mut self, tree: &Tree, key: &str, value: &NewValue, before: &[&str]) -> Result<()> {
        let Shape::Object(members) = &tree.shape else { return Ok(()) };
        let behind = members.iter().rposition(|member| before.contains(&member.key.as_str()));
        let index = behind.map_or(0, |index| index.saturating_add(1));
        let mut edits = Edits::new(&self.text, Style::of(&self.text, tree));
        edits.insert(tree, index, &[(Some(key), value)]);
        self.text = edits.apply();
        Ok(())
    }

    fn parse(&self) -> Result<Tree> {
        // Bytes that are no UTF-8 become letters: offsets stay those of the text.
        let (mark, body) = match self.text.strip_prefix(b"\xef\xbb\xbf") {
            Some(body) => (3, body),
            None => (0, self.text.as_slice()),
        };
        let text = lettered(body);
        let parse = |text| {
            let collect = jsonc_parser::CollectOptions::default();
            parse_to_ast(text, &collect, &json::options()).ok()?.value
        };
        match json::first_value(&text, self.limits).and_then(parse) {
            Some(root) => Ok(Tree::of(&root, mark)),
            // What was put in has broken it; this says where.
            None => Document::parse(self.what, text.as_bytes(), self.limits).map(|_| Tree::NONE),
        }
    }
}

/// Returns a text of the same length in which bytes that are no UTF-8 are question marks.
fn lettered(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    Cow::Owned(text)
}

/// Replacements of ranges of a text that do not overlap.
struct Edits<'t> {
    text: &'t [u8],
    style: Style,
    list: Vec<(Range<usize>, String)>,
    /// A place that was looked at, and where its line starts.
    line: (usize, usize),
}

impl<'t> Edits<'t> {
    fn new(text: &'t [u8], style: Style) -> Self {
        Self { text, style, list: Vec::new(), line: (0, 0) }
    }

    fn apply(mut self) -> Vec<u8> {
        // Stable: what is put into one place stays in order.
        self.list.sort_by_key(|(range, _)| range.start);
        let mut out = Vec::with_capacity(self.text.len());
        let mut at = 0;
        for (range, new) in &self.list {
            out.extend_from_slice(slice(self.text, at..range.start));
            out.extend_from_slice(new.as_bytes());
            at = at.max(range.end);
        }
        out.extend_from_slice(slice(self.text, at..self.text.len()));
        out
    }

    /// Returns the blanks that the line of a byte starts with. What comes behind a place that was
    /// looked at before is found from there: a line may be as long as the text.
    fn line_indent(&mut self, at: usize) -> String {
        let (from, start) = if self.line.0 <= at { self.line } else { (0, 0) };
        let newline = slice(self.text, from..at).iter().rposition(|byte| *byte == b'\n');
        let start = newline.map_or(start, |newline| from.saturating_add(newline).saturating_add(1));
        self.line = (at, start);
        let end = blanks_end(self.text, start).min(at);
        String::from_utf8_lossy(slice(self.text, start..end)).into_owned()
    }

    /// Makes a value another one: by replacements, as many as there are, and by no more than one
    /// insertion or removal.
    fn reconcile(&mut self, tree: &Tree, value: &NewValue) -> Progress {
        if tree.is(value) {
            return Progress::Done;
        }
        match (&tree.shape, value) {
            (Shape::Array(items), NewValue::Array(values)) => self.items(tree, items, values),
            (Shape::Object(_), NewValue::Object(members)) => {
                for (key, value) in members {
                    let done = match tree.last(key) {
                        Some((_, found)) => self.reconcile(found, value),
                        None => {
                            self.insert(tree, tree.children().len(), &[(Some(*key), value)]);
                            Progress::Moved
                        }
                    };
                    if done == Progress::Moved {
                        return done;
                    }
                }
                Progress::Done
            }
            _ => {
                self.replace(tree, value);
                Progress::Done
            }
        }
    }

    fn items(&mut self, tree: &Tree, items: &[Tree], values: &[NewValue]) -> Progress {
        let pairs = items.iter().zip(values);
        let first = pairs.take_while(|(item, value)| item.is(value)).count();
        let (rest, new) = (items.get(first..), values.get(first..));
        let (rest, new) = (rest.unwrap_or_default(), new.unwrap_or_default());
        let pairs = rest.iter().rev().zip(new.iter().rev());
        let last = pairs.take_while(|(item, value)| item.is(value)).count();
        let olds = rest.get(..rest.len().saturating_sub(last)).unwrap_or_default();
        let news = new.get(..new.len().saturating_sub(last)).unwrap_or_default();
        let both = olds.len().min(news.len());
        if olds.len() > both {
            let start = first.saturating_add(both);
            self.remove(&tree.children(), start..first.saturating_add(olds.len()));
            return if both == 0 { Progress::Done } else { Progress::Moved };
        }
        if let Some(more @ [_, ..]) = news.get(both..) {
            let more: Vec<_> = more.iter().map(|value| (None, value)).collect();
            self.insert(tree, first.saturating_add(both), &more);
            return if both == 0 { Progress::Done } else { Progress::Moved };
        }
        for (item, value) in olds.iter().zip(news) {
            if self.reconcile(item, value) == Progress::Moved {
                return Progress::Moved;
            }
        }
        Progress::Done
    }

    fn replace(&mut self, tree: &Tree, value: &NewValue) {
        let indent = self.line_indent(tree.range.start);
        let mut new = String::new();
        self.style.print(value, &indent, &mut new);
        self.list.push((tree.range.clone(), new));
    }

    /// Puts in items or members in front of that of a position, or behind the last one.
    fn insert(&mut self, tree: &Tree, index: usize, new: &[(Option<&str>, &NewValue)]) {
        let children = tree.children();
        let indent = children.first().and_then(|first| indent(self.text, first.start));
        let print = |style: &Style, indent: &str| -> Vec<String> {
            let one = |(key, value): &(Option<&str>, &NewValue)| {
                let mut out = String::new();
                match key {
                    Some(key) => style.member(key, value, indent, &mut out),
                    None => style.print(value, indent, &mut out),
                }
                out
            };
            new.iter().map(one).collect()
        };
        let inside = tree.range.start.saturating_add(1)..tree.range.end.saturating_sub(1);
        if children.is_empty() {
            let outer = self.line_indent(tree.range.start);
            let inner = format!("{outer}{}", self.style.unit);
            let is_blank = slice(self.text, inside.clone()).iter().all(u8::is_ascii_whitespace);
            let Style { newline, padding, .. } = &self.style;
            let is_object = matches!(tree.shape, Shape::Object(_));
            let text = match padding {
                Some(padding) if !is_object || padding.is_empty() => {
                    format!("{padding}{}{padding}", print(&self.style, &outer).join(", "))
                }
                _ => {
                    let items = print(&self.style, &inner).join(&format!(",{newline}{inner}"));
                    format!("{newline}{inner}{items}{newline}{outer}")
                }
            };
            // Comments stay in front.
            let range = if is_blank { inside } else { inside.end..inside.end };
            self.list.push((range, text));
            return;
        }
        let (gap, items) = match &indent {
            Some(indent) => (format!("{}{indent}", self.style.newline), print(&self.style, indent)),
            None => {
                let outer = self.line_indent(tree.range.start);
                (" ".to_owned(), print(&self.style, &outer))
            }
        };
        let joined = items.join(&format!(",{gap}"));
        let Some(before) = index.checked_sub(1).and_then(|index| children.get(index)) else {
            let first = children.first().map_or(inside.start, |first| first.start);
            self.list.push((first..first, format!("{joined},{gap}")));
            return;
        };
        let comma = comma(self.text, before.end);
        let end = comma.map_or(before.end, |comma| comma.saturating_add(1));
        // Comments behind a value on its line stay with it.
        let place = if indent.is_some() { comments_end(self.text, end) } else { end };
        if comma.is_none() {
            self.list.push((before.end..before.end, ",".to_owned()));
        }
        let behind = if comma.is_some() { "," } else { "" };
        self.list.push((place..place, format!("{gap}{joined}{behind}")));
    }

    /// Takes away the items or members of some positions, with the comments behind them.
    fn remove(&mut self, children: &[Range<usize>], which: Range<usize>) {
        let (Some(first), Some(last)) = (
            children.get(which.start),
            which.end.checked_sub(1).and_then(|last| children.get(last)),
        ) else {
            return;
        };
        let comma_behind = comma(self.text, last.end);
        let end = comma_behind.map_or(last.end, |comma| comma.saturating_add(1));
        let is_tail = which.end >= children.len();
        let before = which.start.checked_sub(1).and_then(|before| children.get(before));
        if is_tail
            && comma_behind.is_none()
            && let Some(comma) = before.and_then(|before| comma(self.text, before.end))
        {
            self.list.push((comma..comma.saturating_add(1), String::new()));
        }
        let range = match whole_lines(self.text, first.start, end) {
            Some(lines) => lines,
            None if is_tail => {
                let start = blanks_start(self.text, first.start);
                // Of two blanks beside each other one is enough.
                let start = if before.is_none() { first.start } else { start };
                start..end
            }
            None => first.start..blanks_end(self.text, end),
        };
        self.list.push((range, String::new()));
    }
}

/// How far a value has become another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It is the other one.
    Done,
    /// Items were put in or taken away: the text has to be parsed again for what is left to do.
    Moved,
}

pub(crate) fn slice(text: &[u8], range: Range<usize>) -> &[u8] {
    text.get(range).unwrap_or_default()
}

/// Returns what stands in front of a byte in its line, where that is only blanks; `None` elsewhere,
/// and in the first line.
pub(crate) fn indent(text: &[u8], at: usize) -> Option<String> {
    let start = blanks_start(text, at);
    let is_line = slice(text, 0..start).ends_with(b"\n");
    is_line.then(|| String::from_utf8_lossy(slice(text, start..at)).into_owned())
}

fn blanks_end(text: &[u8], at: usize) -> usize {
    let rest = slice(text, at..text.len());
    at.saturating_add(rest.iter().take_while(|byte| b" \t".contains(byte)).count())
}

fn blanks_start(text: &[u8], at: usize) -> usize {
    let before = slice(text, 0..at).iter().rev();
    at.saturating_sub(before.take_while(|byte| b" \t".contains(byte)).count())
}

/// Returns where the comma behind a value stands; `None` where there is none.
fn comma(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(byte) = text.get(at) {
        match byte {
            b',' => return Some(at),
            b'/' => at = at.saturating_add(json::token_len(slice(text, at..text.len()))),
            byte if byte.is_ascii_whitespace() => at = at.saturating_add(1),
            _ => return None,
        }
    }
    None
}

/// Returns where comments end that stand in the line of a byte from there on; that byte without any.
fn comments_end(text: &[u8], from: usize) -> usize {
    let mut end = from;
    loop {
        let start = blanks_end(text, end);
        let rest = slice(text, start..text.len());
        let len = json::token_len(rest);
        let comment = slice(rest, 0..len);
        let trimmed = comment.strip_suffix(b"\n").unwrap_or(comment);
        let trimmed = trimmed.strip_suffix(b"\r").unwrap_or(trimmed);
        if !comment.starts_with(b"/") || len < 2 || trimmed.contains(&b'\n') {
            return end;
        }
        end = start.saturating_add(trimmed.len());
        if comment.starts_with(b"//") {
            return end;
        }
    }
}

/// Returns whole lines where nothing else stands in them than a range and comments behind it.
fn whole_lines(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    indent(text, start)?;
    let line = blanks_start(text, start);
    let end = blanks_end(text, comments_end(text, end));
    match slice(text, end..text.len()) {
        [b'\n', ..] => Some(line..end.saturating_add(1)),
        [b'\r', b'\n', ..] => Some(line..end.saturating_add(2)),
        _ => None,
    }
}

/// How often a value is changed step by step before it is written anew.
const STEPS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IoRef;

    fn texts(items: &[&str]) -> NewValue {
        NewValue::Array(items.iter().map(|item| NewValue::Text((*item).to_owned())).collect())
    }

    #[track_caller]
    fn sets(text: &str, key: &str, value: &NewValue, expected: &str) {
        let limits = Limits::default();
        let mut editing = Editing::new("MANIFEST", text.as_bytes(), &limits);
        editing.set(key, value, &["a", "b"]).unwrap();
        assert_eq!(String::from_utf8(editing.finish()).unwrap(), expected);
    }

    #[track_caller]
    fn removes(text: &str, key: &str, expected: &str) {
        let limits = Limits::default();
        let mut editing = Editing::new("MANIFEST", text.as_bytes(), &limits);
        editing.remove(key).unwrap();
        assert_eq!(String::from_utf8(editing.finish()).unwrap(), expected);
    }

    #[test]
    fn items_on_one_line() {
        let text = r#"{"a" : [ "x", "y" ]}"#;
        sets(text, "a", &texts(&["x", "y"]), text);
        sets(text, "a", &texts(&["x", "z"]), r#"{"a" : [ "x", "z" ]}"#);
        sets(text, "a", &texts(&["x", "y", "z"]), r#"{"a" : [ "x", "y", "z" ]}"#);
        sets(text, "a", &texts(&["w", "x", "y"]), r#"{"a" : [ "w", "x", "y" ]}"#);
        sets(text, "a", &texts(&["x", "w", "v", "y"]), r#"{"a" : [ "x", "w", "v", "y" ]}"#);
        sets(text, "a", &texts(&["x"]), r#"{"a" : [ "x" ]}"#);
        sets(text, "a", &texts(&["y"]), r#"{"a" : [ "y" ]}"#);
        sets(text, "a", &texts(&[]), r#"{"a" : [  ]}"#);
        sets(
            r#"{"a": ["x",], "b": []}"#,
            "b",
            &texts(&["y", "z"]),
            r#"{"a": ["x",], "b": ["y", "z"]}"#,
        );
        sets(r#"{"a": ["x",]}"#, "a", &texts(&["x", "y"]), r#"{"a": ["x", "y",]}"#);
        sets(r#"{"a": ["x",]}"#, "a", &texts(&[]), r#"{"a": []}"#);
        sets(r#"{"a": ["x", "y",]}"#, "a", &texts(&["x"]), r#"{"a": ["x",]}"#);
    }

    #[test]
    fn items_on_lines() {
        let text = "{\n  // first\n  \"a\": [\n    \"x\", // of x\n    // of y\n    \"y\" // end\n  ]\n}\n";
        let expected = text.replace("// end\n", "// end\n    \"z\"\n").replace("\"y\"", "\"y\",");
        sets(text, "a", &texts(&["x", "y", "z"]), &expected);
        let expected = text.replace("// of x\n", "// of x\n    \"w\",\n");
        sets(text, "a", &texts(&["x", "w", "y"]), &expected);
        let expected = text.replace("    \"y\" // end\n", "").replace("\"x\",", "\"x\"");
        sets(text, "a", &texts(&["x"]), &expected);
        let expected = text.replace("    \"x\", // of x\n", "");
        sets(text, "a", &texts(&["y"]), &expected);
        let expected = text.replace("    \"x\",", "    \"w\",\n    \"x\",");
        sets(text, "a", &texts(&["w", "x", "y"]), &expected);
    }

    #[test]
    fn members_come_behind_those_before_them() {
        sets(
            r#"{"a": "1", "c": "2"}"#,
            "b",
            &NewValue::Text("x".into()),
            r#"{"a": "1", "b": "x", "c": "2"}"#,
        );
        sets("{}", "b", &texts(&["x"]), "{\n  \"b\": [\n    \"x\"\n  ]\n}");
        sets(
            "{\r\n\t\"a\": 1 // one\r\n}",
            "b",
            &texts(&["x"]),
            "{\r\n\t\"a\": 1, // one\r\n\t\"b\": [\r\n\t\t\"x\"\r\n\t]\r\n}",
        );
        let objects = NewValue::Array(vec![NewValue::Object(vec![
            ("from", NewValue::Reference(IoRef::new(0, 0, 0))),
            ("to", NewValue::references(&[IoRef::new(1, 0, 0)])),
        ])]);
        let expected =
            "{\n  \"a\": [\"x\"],\n  \"b\": [{\"from\": \"0:0:0\", \"to\": [\"1:0:0\"]}]\n}";
        sets("{\n  \"a\": [\"x\"]\n}", "b", &objects, expected);
    }

    #[test]
    fn objects_are_changed_inside() {
        let object = |to: &[IoRef]| {
            NewValue::Array(vec![NewValue::Object(vec![
                ("from", NewValue::Reference(IoRef::new(0, 0, 0))),
                ("to", NewValue::references(to)),
            ])])
        };
        let text = r#"{"b": [{"note": 1, "from": " 0:0:0", "to": ["1:0:0 "]}]}"#;
        sets(text, "b", &object(&[IoRef::new(1, 0, 0)]), text);
        let expected = r#"{"b": [{"note": 1, "from": " 0:0:0", "to": ["1:0:0 ", "2:0:1"]}]}"#;
        sets(text, "b", &object(&[IoRef::new(1, 0, 0), IoRef::new(2, 0, 1)]), expected);
    }

    #[test]
    fn removed_members() {
        removes(r#"{"a": 1, "b": 2, "c": 3}"#, "a", r#"{"b": 2, "c": 3}"#);
        removes(r#"{"a": 1, "b": 2, "c": 3}"#, "b", r#"{"a": 1, "c": 3}"#);
        removes(r#"{"a": 1, "b": 2, "c": 3}"#, "c", r#"{"a": 1, "b": 2}"#);
        removes(r#"{"a": 1, "a": 2}"#, "a", "{}");
        removes(r#"{"a": 1, "b": 2, "a": 3, "a": 4, "c": 5, "a": 6}"#, "a", r#"{"b": 2, "c": 5}"#);
        removes(r#"{ "a": 1 }"#, "a", "{  }");
        removes("{\n  \"a\": 1, // x\n  \"b\": 2\n}", "a", "{\n  \"b\": 2\n}");
        removes(
            "{\n  \"a\": 1, /* , */ // x\n  \"b\": 2, // y\n}",
            "b",
            "{\n  \"a\": 1, /* , */ // x\n}",
        );
        removes(
            "{\n  \"a\": 1 /* , */, // x\n  \"b\": 2 // y\n}",
            "b",
            "{\n  \"a\": 1 /* , */ // x\n}",
        );
    }

    #[test]
    fn what_is_around_stays() {
        let text = b"\xef\xbb\xbf{\"a\": [\"\xff\", \"x\"], /* \xfe */ } rest \xff";
        let limits = Limits::default();
        let mut editing = Editing::new("MANIFEST", text, &limits);
        editing.set("b", &texts(&["y"]), &["a"]).unwrap();
        let expected =
            b"\xef\xbb\xbf{\"a\": [\"\xff\", \"x\"], \"b\": [\"y\"], /* \xfe */ } rest \xff";
        assert_eq!(editing.finish(), expected);
    }
}
