//! Changes of a JSON text that leave alone what they are not about: comments, order, indents, line
//! ends, and whatever else onert tolerates.
//!
//! A text is parsed into values with their ranges, and a change of an attribute becomes a few
//! replacements of ranges that do not overlap.
//!
//! `jsonc_parser::cst` is not used for it. It refuses bytes that are not UTF-8 and text behind the
//! end, breaks an object on one line into lines where a member comes, lays out what is new as it
//! likes (`"key": ["x"]` in a text of `"key" : [ "x" ]`), and numbers all items behind a new one
//! again, so that a long list takes the square of its length.

use std::{borrow::Cow, ops::Range};

use tensor_core::Limits;

use crate::{
    Result,
    json::{
        self, Document, Node, Value,
        style::{NewValue, Style, blanks_start, indent},
    },
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
        let root = self.parse()?;
        let mut edits = Edits::new(&self.text, &root);
        if let Some(member) = root.member(key) {
            edits.reconcile(&member.value, value);
        } else if let Value::Object(members) = &root.value {
            let behind = members.iter().rposition(|member| before.contains(&member.key.as_str()));
            let index = behind.map_or(0, |index| index.saturating_add(1));
            edits.insert(&root, index, &[(Some(key), value)]);
        }
        self.text = edits.apply();
        Ok(())
    }

    /// Takes away an attribute of the root, however often it stands there.
    pub(crate) fn remove(&mut self, key: &str) -> Result<()> {
        let root = self.parse()?;
        let Value::Object(members) = &root.value else { return Ok(()) };
        let mut edits = Edits::new(&self.text, &root);
        let children = children(&root);
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

    fn parse(&self) -> Result<Node> {
        let text = lettered(&self.text);
        Ok(Document::parse(self.what, text.as_bytes(), self.limits)?.root)
    }
}

/// Returns a text of the same length in which bytes that are not UTF-8 are question marks.
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

/// Returns where items or members stand, with their keys.
fn children(node: &Node) -> Vec<Range<usize>> {
    match &node.value {
        Value::Array(items) => items.iter().map(|item| item.range.clone()).collect(),
        Value::Object(members) => {
            let ranges =
                members.iter().map(|member| member.key_range.start..member.value.range.end);
            ranges.collect()
        }
        _ => Vec::new(),
    }
}

/// Replacements of ranges of a text that do not overlap.
struct Edits<'t> {
    text: &'t [u8],
    style: Style,
    list: Vec<(Range<usize>, String)>,
    /// Where lines start: one may be as long as the text.
    lines: Vec<usize>,
}

impl<'t> Edits<'t> {
    fn new(text: &'t [u8], root: &Node) -> Self {
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let lines = ends.map(|(at, _)| at.saturating_add(1)).collect();
        Self { text, style: Style::of(text, root), list: Vec::new(), lines }
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

    /// Returns the blanks that the line of a byte starts with.
    fn line_indent(&self, at: usize) -> String {
        let line = self.lines.partition_point(|start| *start <= at).checked_sub(1);
        let start = line.and_then(|line| self.lines.get(line)).copied().unwrap_or_default();
        let end = blanks_end(self.text, start).min(at);
        String::from_utf8_lossy(slice(self.text, start..end)).into_owned()
    }

    /// Makes a value another one, and leaves alone what is in both.
    fn reconcile(&mut self, node: &Node, value: &NewValue) {
        match (&node.value, value) {
            _ if value.is_read_from(node) => {}
            (Value::Array(items), NewValue::Array(values)) => self.items(node, items, values),
            (Value::Object(_), NewValue::Object(members)) => {
                let mut new = Vec::new();
                for (key, value) in members {
                    match node.member(key) {
                        Some(member) => self.reconcile(&member.value, value),
                        None => new.push((Some(*key), value)),
                    }
                }
                self.insert(node, usize::MAX, &new);
            }
            _ => {
                let new = self.style.print(value, &self.line_indent(node.range.start));
                self.list.push((node.range.clone(), new));
            }
        }
    }

    fn items(&mut self, node: &Node, items: &[Node], values: &[NewValue]) {
        let is_same = |(item, value): &(&Node, &NewValue)| value.is_read_from(item);
        let first = items.iter().zip(values).take_while(is_same).count();
        let (rest, new) = (items.get(first..), values.get(first..));
        let (rest, new) = (rest.unwrap_or_default(), new.unwrap_or_default());
        let last = rest.iter().rev().zip(new.iter().rev()).take_while(is_same).count();
        let olds = rest.get(..rest.len().saturating_sub(last)).unwrap_or_default();
        let news = new.get(..new.len().saturating_sub(last)).unwrap_or_default();
        for (item, value) in olds.iter().zip(news) {
            self.reconcile(item, value);
        }
        let both = olds.len().min(news.len());
        let more = news.get(both..).unwrap_or_default().iter().map(|value| (None, value));
        let index = first.saturating_add(both);
        self.insert(node, index, &more.collect::<Vec<_>>());
        self.remove(&children(node), index..first.saturating_add(olds.len()));
    }

    /// Puts in items or members in front of that of a position, or behind the last one.
    fn insert(&mut self, node: &Node, index: usize, new: &[(Option<&str>, &NewValue)]) {
        if new.is_empty() {
            return;
        }
        let children = children(node);
        let print = |style: &Style, indent: &str| -> Vec<String> {
            let one = |(key, value): &(Option<&str>, &NewValue)| match key {
                Some(key) => style.member(key, value, indent),
                None => style.print(value, indent),
            };
            new.iter().map(one).collect()
        };
        let Some(first) = children.first() else { return self.fill(node, print) };
        let indent = indent(self.text, first.start);
        let (gap, items) = match &indent {
            Some(indent) => (format!("{}{indent}", self.style.newline), print(&self.style, indent)),
            None => (" ".to_owned(), print(&self.style, &self.line_indent(node.range.start))),
        };
        let joined = items.join(&format!(",{gap}"));
        let last = index.min(children.len()).checked_sub(1);
        let Some(before) = last.and_then(|last| children.get(last)) else {
            self.list.push((first.start..first.start, format!("{joined},{gap}")));
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

    /// Puts something into brackets that hold no value.
    fn fill(&mut self, node: &Node, print: impl Fn(&Style, &str) -> Vec<String>) {
        let inside = node.range.start.saturating_add(1)..node.range.end.saturating_sub(1);
        let outer = self.line_indent(node.range.start);
        let is_blank = slice(self.text, inside.clone()).iter().all(u8::is_ascii_whitespace);
        let is_object = matches!(node.value, Value::Object(_));
        let style = match &self.style.padding {
            Some(padding) if is_object && !padding.is_empty() => self.style.on_lines(),
            _ => self.style.clone(),
        };
        let text = style.list(&print(&style, &style.inner(&outer)), &outer);
        // Comments stay in front.
        let range = if is_blank { inside } else { inside.end..inside.end };
        self.list.push((range, text));
    }

    /// Takes away the items or members of some positions, with the comments behind them.
    fn remove(&mut self, children: &[Range<usize>], which: Range<usize>) {
        let gone = children.get(which.clone()).unwrap_or_default();
        let [first, ..] = gone else { return };
        let last = gone.last().unwrap_or(first);
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
            // Of two blanks beside each other one is enough.
            None if is_tail && before.is_some() => blanks_start(self.text, first.start)..end,
            None if is_tail => first.start..end,
            None => first.start..blanks_end(self.text, end),
        };
        self.list.push((range, String::new()));
    }
}

fn slice(text: &[u8], range: Range<usize>) -> &[u8] {
    text.get(range).unwrap_or_default()
}

fn blanks_end(text: &[u8], at: usize) -> usize {
    let rest = slice(text, at..text.len());
    at.saturating_add(rest.iter().take_while(|byte| b" \t".contains(byte)).count())
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

    /// Each list is changed inside, and all stand in one line: a search of that line for each took
    /// minutes.
    #[test]
    fn many_changes_of_one_long_line() {
        let object = |to: &[IoRef]| {
            NewValue::Object(vec![
                ("from", NewValue::Reference(IoRef::new(0, 0, 0))),
                ("to", NewValue::references(to)),
            ])
        };
        let (one, two) = (IoRef::new(1, 0, 0), IoRef::new(2, 0, 1));
        let count = 20_000;
        let item = |to: &str| format!(r#"{{"from": "0:0:0", "to": [{to}]}}"#);
        let text = |to: &str| format!(r#"{{"b": [{}]}}"#, vec![item(to); count].join(", "));
        let start = std::time::Instant::now();
        let both = NewValue::Array(vec![object(&[one, two]); count]);
        sets(&text("\"1:0:0\""), "b", &both, &text("\"1:0:0\", \"2:0:1\""));
        let first = NewValue::Array(vec![object(&[one]); count]);
        sets(&text("\"1:0:0\", \"2:0:1\""), "b", &first, &text("\"1:0:0\""));
        assert!(start.elapsed().as_secs() < 15, "{:?}", start.elapsed());
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
