//! JSON as packages in the field have it: read strictly first, then with everything that onert puts
//! up with, each such thing with its place.

pub(crate) mod edit;
pub(crate) mod style;

use std::{borrow::Cow, collections::HashSet, ops::Range};

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, ast,
    common::Ranged,
    tokens::{Token, TokenAndRange},
};
use serde::de::IgnoredAny;
use tensor_core::{Error as Core, Limits};

use crate::{Error, Position, Result};

/// A document: its root, and what is not strict JSON in it.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) root: Node,
    pub(crate) leniencies: Vec<(Position, Leniency)>,
}

/// Something that strict JSON does not have, or that its readers disagree about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leniency {
    ByteOrderMark,
    NotUtf8,
    Comment,
    TrailingComma,
    TextAfterEnd,
    RepeatedKey(String),
    Other(String),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Position,
    /// In bytes of the document, where that is UTF-8.
    pub(crate) range: Range<usize>,
    pub(crate) value: Value,
}

impl Node {
    /// Returns the member of a key that counts: the last one.
    pub(crate) fn member(&self, key: &str) -> Option<&Member> {
        let Value::Object(members) = &self.value else { return None };
        members.iter().rev().find(|member| member.key == key)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As it is written.
    Number(String),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_range: Range<usize>,
    pub(crate) at: Position,
    pub(crate) value: Node,
}

impl Value {
    /// Describes the value in a message.
    pub(crate) fn describe(&self) -> Cow<'static, str> {
        match self {
            Self::Null => "null".into(),
            Self::Bool(value) => value.to_string().into(),
            Self::Number(number) => tensor_core::text::short(number).into_owned().into(),
            Self::Text(text) => format!("{:?}", tensor_core::text::short(text)).into(),
            Self::Array(_) => "an array".into(),
            Self::Object(_) => "an object".into(),
        }
    }

    /// Returns the text that onert converts it to; `None` for what it refuses to convert.
    pub(crate) fn to_text(&self) -> Option<String> {
        match self {
            Self::Null => Some(String::new()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Number(text) | Self::Text(text) => Some(text.clone()),
            Self::Array(_) | Self::Object(_) => None,
        }
    }
}

impl Document {
    /// Reads a document; `what` names it in errors.
    pub(crate) fn parse(what: &'static str, bytes: &[u8], limits: &Limits) -> Result<Self> {
        let mut leniencies = Vec::new();
        let start = Position { line: 1, column: 1 };
        let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if body.len() < bytes.len() {
            leniencies.push((start, Leniency::ByteOrderMark));
        }
        let text = match str::from_utf8(body) {
            Ok(text) => Cow::Borrowed(text),
            Err(error) => {
                let before = body.get(..error.valid_up_to()).unwrap_or_default();
                let before = String::from_utf8_lossy(before);
                let at = Lines::of(&before).position(before.len());
                leniencies.push((at, Leniency::NotUtf8));
                String::from_utf8_lossy(body)
            }
        };
        let lines = Lines::of(&text);
        let scanned = Scanned::of(&text);
        if scanned.depth > u64::from(limits.depth) {
            let (what, found, limit) = ("nesting of JSON", scanned.depth, limits.depth.into());
            return Err(Core::OverLimit { what, found, limit, field: "depth" }.into());
        }
        let strict = serde_json::from_str::<IgnoredAny>(&text);
        let kept = text.get(..scanned.end).unwrap_or(&text);
        let parsed = jsonc_parser::parse_to_ast(kept, &collect(), &options());
        let parsed = parsed.map_err(|error| {
            let at = lines.position(error.range().start);
            Error::Json { what, at, reason: lower(&error.kind().to_string()) }
        })?;
        let Some(root) = parsed.value else {
            let reason = "there is no value".to_owned();
            return Err(Error::Json { what, at: lines.position(kept.len()), reason });
        };
        if let Err(error) = strict {
            let before = leniencies.len();
            leniencies.extend(lenient_parts(&parsed.tokens.unwrap_or_default(), &lines));
            if let Some(at) = scanned.rest {
                leniencies.push((lines.position(at), Leniency::TextAfterEnd));
            }
            if leniencies.len() == before {
                let at = Position { line: error.line() as u64, column: error.column() as u64 };
                let reason = error.to_string();
                let reason = reason.split(" at line ").next().unwrap_or_default();
                leniencies.push((at, Leniency::Other(reason.to_owned())));
            }
        }
        let mark = bytes.len().saturating_sub(body.len());
        let root = node(&root, &lines, mark, &mut leniencies);
        leniencies.sort_by_key(|(at, _)| *at);
        Ok(Self { root, leniencies })
    }
}

/// What is accepted beyond strict JSON; jsoncpp, which onert reads with, accepts no more.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn collect() -> CollectOptions {
    CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true }
}

/// Finds comments and trailing commas.
fn lenient_parts(tokens: &[TokenAndRange<'_>], lines: &Lines<'_>) -> Vec<(Position, Leniency)> {
    let mut found = Vec::new();
    let mut comma = None;
    for token in tokens {
        let at = token.start();
        match token.token {
            Token::CommentLine(_) | Token::CommentBlock(_) => {
                found.push((lines.position(at), Leniency::Comment));
            }
            Token::Comma => comma = Some(at),
            Token::CloseBrace | Token::CloseBracket => {
                if let Some(comma) = comma.take() {
                    found.push((lines.position(comma), Leniency::TrailingComma));
                }
            }
            _ => comma = None,
        }
    }
    found
}

/// Turns a value into one of ours; `mark` is the length of the byte order mark. The parser has
/// limited the depth.
fn node(
    value: &ast::Value<'_>,
    lines: &Lines<'_>,
    mark: usize,
    leniencies: &mut Vec<(Position, Leniency)>,
) -> Node {
    let range =
        |part: &dyn Ranged| part.start().saturating_add(mark)..part.end().saturating_add(mark);
    let (at, place) = (lines.position(value.start()), range(value));
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.clone().into_owned()),
        ast::Value::Array(array) => {
            let items = array.elements.iter().map(|item| node(item, lines, mark, leniencies));
            Value::Array(items.collect())
        }
        ast::Value::Object(object) => {
            let mut seen = HashSet::new();
            let mut members = Vec::with_capacity(object.properties.len());
            for property in &object.properties {
                let (key, at) = (property.name.as_str(), lines.position(property.start()));
                if !seen.insert(key) {
                    leniencies.push((at, Leniency::RepeatedKey(key.to_owned())));
                }
                let key_range = range(&property.name);
                let value = node(&property.value, lines, mark, leniencies);
                members.push(Member { key: key.to_owned(), key_range, at, value });
            }
            Value::Object(members)
        }
    };
    Node { at, range: place, value }
}

fn lower(text: &str) -> String {
    let mut text = text.trim_end_matches('.').to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}

/// Where the lines of a text start, and how many characters stand before each block of it.
struct Lines<'a> {
    text: &'a [u8],
    starts: Vec<usize>,
    /// Characters before each block.
    blocks: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.as_bytes();
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let behind = ends.map(|(at, _)| at.saturating_add(1));
        let starts = std::iter::once(0).chain(behind).collect();
        let mut before = 0_usize;
        let blocks = text.chunks(BLOCK).map(|block| {
            let this = before;
            before = before.saturating_add(characters(block));
            this
        });
        Self { text, starts, blocks: blocks.collect() }
    }

    /// Returns the line and the column, in characters, of a byte.
    fn position(&self, at: usize) -> Position {
        let line = self.starts.partition_point(|&start| start <= at);
        let start = line.checked_sub(1).and_then(|line| self.starts.get(line)).copied();
        let before = self.before(at).saturating_sub(self.before(start.unwrap_or_default()));
        Position { line: line as u64, column: (before as u64).saturating_add(1) }
    }

    /// Returns how many characters stand before a byte.
    fn before(&self, at: usize) -> usize {
        let block = at / BLOCK;
        let Some(before) = self.blocks.get(block) else { return self.before_end() };
        let part = self.text.get(block.saturating_mul(BLOCK)..at).unwrap_or_default();
        before.saturating_add(characters(part))
    }

    fn before_end(&self) -> usize {
        let last = self.text.chunks(BLOCK).next_back().map_or(0, characters);
        self.blocks.last().map_or(0, |before| before.saturating_add(last))
    }
}

/// Counts the characters that start in bytes of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Bytes of a block, which are looked at for each position.
const BLOCK: usize = 256;

/// What can be told without parsing: how deep values are nested, and where the first one ends.
struct Scanned {
    depth: u64,
    /// The length of the text up to the end of the first value and of the comments behind it.
    end: usize,
    /// Where anything else stands behind that.
    rest: Option<usize>,
}

impl Scanned {
    fn of(text: &str) -> Self {
        let mut scanned = Self { depth: 0, end: text.len(), rest: None };
        let (mut open, mut is_done) = (0_u64, false);
        let mut at = 0_usize;
        while let Some(&byte) = text.as_bytes().get(at) {
            let token = token_len(text.as_bytes().get(at..).unwrap_or_default());
            let is_comment = byte == b'/' && token > 1;
            if is_done && !is_comment && !byte.is_ascii_whitespace() {
                (scanned.end, scanned.rest) = (at, Some(at));
                return scanned;
            }
            match byte {
                b'{' | b'[' => {
                    open = open.saturating_add(1);
                    scanned.depth = scanned.depth.max(open);
                }
                b'}' | b']' => {
                    open = open.saturating_sub(1);
                    is_done = open == 0;
                }
                _ => {}
            }
            at = at.saturating_add(token);
        }
        scanned
    }
}

/// Returns the length of a text or a comment, and 1 for every other byte.
pub(crate) fn token_len(rest: &[u8]) -> usize {
    let found = |position: Option<usize>, more: usize| {
        position.map_or(rest.len(), |position| position.saturating_add(more))
    };
    match rest {
        [b'"', inside @ ..] => {
            let mut is_escaped = false;
            let end = inside.iter().position(|&byte| {
                let is_end = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                is_end
            });
            found(end, 2)
        }
        [b'/', b'/', ..] => found(rest.iter().position(|&byte| byte == b'\n'), 0).max(2),
        [b'/', b'*', inside @ ..] => found(inside.windows(2).position(|pair| pair == b"*/"), 4),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<Document> {
        Document::parse("MANIFEST", text, &Limits::default())
    }

    #[track_caller]
    fn finds(text: &[u8], expected: &[(u64, u64, Leniency)]) {
        let found = parse(text).unwrap().leniencies;
        let found: Vec<_> =
            found.into_iter().map(|(at, kind)| (at.line, at.column, kind)).collect();
        assert_eq!(found, expected, "{}", text.escape_ascii());
    }

    #[test]
    fn strict_json() {
        finds(b"{\"a\": [1, \"//\", \"/*\", {\"b\": null}], \"c\": -1.5e3}\n", &[]);
        finds(b" null ", &[]);
    }

    #[test]
    fn everything_that_onert_tolerates() {
        use Leniency::*;
        finds(b"\xef\xbb\xbf{}", &[(1, 1, ByteOrderMark)]);
        finds(b"// x\n{}", &[(1, 1, Comment)]);
        finds(b"{ /* x */ }", &[(1, 3, Comment)]);
        finds(b"{}\n// the end", &[(2, 1, Comment)]);
        finds(b"{\"a\": [1,\n 2,],}", &[(2, 3, TrailingComma), (2, 5, TrailingComma)]);
        finds(b"{} more", &[(1, 4, TextAfterEnd)]);
        finds(b"{}}", &[(1, 3, TextAfterEnd)]);
        finds(b"{\"a\": 1, \"a\": 2}", &[(1, 10, RepeatedKey("a".to_owned()))]);
        finds("{\"é\": \"\\u00e9\", \"é\": 2}".as_bytes(), &[(1, 17, RepeatedKey("é".to_owned()))]);
        finds(b"{\"a\": \"\xff\"}", &[(1, 8, NotUtf8)]);
        let reason = "control character (\\u0000-\\u001F) found while parsing a string".to_owned();
        finds(b"{\"a\": \"\t\"}", &[(1, 7, Other(reason.clone()))]);
        finds(b"\xef\xbb\xbf{\"a\": \"\t\"}", &[(1, 1, ByteOrderMark), (1, 7, Other(reason))]);
    }

    #[test]
    fn what_onert_refuses() {
        for (text, message) in [
            (&b""[..], "MANIFEST line 1 column 1: there is no value"),
            (b"{\"a\": 1 \"b\": 2}", "MANIFEST line 1 column 8: expected comma"),
            (b"# x\n{}", "MANIFEST line 1 column 1: unexpected token"),
            (b"{'a': 1}", "MANIFEST line 1 column 2: single-quoted strings are not allowed"),
            (b"{\"a\": NaN}", "MANIFEST line 1 column 7: unexpected token"),
            (
                b"{\"a\": ",
                "MANIFEST line 1 column 7: expected value after colon in object property",
            ),
            (b"{\n  \"a\": [ \"x ],\n}", "MANIFEST line 2 column 10: unterminated string literal"),
            (b"{\0}", "MANIFEST line 1 column 2: unexpected token"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn nesting_is_limited_before_parsing() {
        for open in ["[", "{\"a\":"] {
            let error = parse(open.repeat(100_000).as_bytes()).unwrap_err();
            assert_eq!(
                error.to_string(),
                "nesting of JSON is 100000, over the limit of 64 (Limits::depth)"
            );
        }
        parse("[".repeat(64).as_bytes()).unwrap_err();
        let deep = ["[".repeat(64), "]".repeat(64)].concat();
        parse(deep.as_bytes()).unwrap();
    }
}
