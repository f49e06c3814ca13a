//! The tokenizer and decoder `gpt2` and their vocabulary: an object from tokens to ids.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

use crate::{
    Dialect, Error, Fault, Json, Result,
    spec::path::Path,
    tokenizer::GPT2,
    tokenizer::trie::{At, Trie},
};

/// How texts are cut into tokens of a GPT-2 vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gpt2Mode {
    /// As the original runtime did: words between blanks, and of each the longest token from the
    /// left. Blanks are lost, and what is beyond ASCII goes wrong.
    #[default]
    Reference,
    /// As GPT-2 was trained: byte pairs, joined in the order of their ids. Nothing is lost.
    ByteLevelBpe,
}

/// A vocabulary, indexed.
#[derive(Debug)]
pub(crate) struct Gpt2Vocabulary {
    tokens: Vec<(String, i64)>,
    trie: Trie,
    by_id: HashMap<i64, usize>,
    unknown: Option<i64>,
    /// What stands for each byte in tokens.
    bytes: [char; 256],
}

impl Gpt2Vocabulary {
    pub(crate) fn parse(vocabulary: &Json, dialect: Dialect) -> Result<Self> {
        let Json::Object(members) = vocabulary else {
            let (found, expected) = (vocabulary.described(), "an object from tokens to ids");
            return Err(Error::spec(GPT2, Fault::Value { found, expected }));
        };
        let mut tokens = Vec::with_capacity(members.len());
        for (token, id) in members {
            let Some((id, _)) = dialect.long(id) else {
                let fault = Fault::Value { found: id.described(), expected: "a token id" };
                let at = Path::root(GPT2).member(token, |path| path.to_string());
                return Err(Error::spec(at, fault));
            };
            tokens.push((token.clone(), id));
        }
        let trie = Trie::new(tokens.iter().map(|(token, _)| token.as_str()));
        let by_id = tokens.iter().zip(0..).map(|((_, id), index)| (*id, index)).collect();
        let unknown = tokens.iter().rfind(|(token, _)| token == UNKNOWN).map(|(_, id)| *id);
        Ok(Self { tokens, trie, by_id, unknown, bytes: byte_symbols() })
    }

    /// Returns the ids of a text.
    pub(crate) fn encode(&self, text: &str, mode: Gpt2Mode) -> Result<Vec<i64>, Fault> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        match mode {
            Gpt2Mode::Reference => self.encode_words(text, &mut ids)?,
            Gpt2Mode::ByteLevelBpe => {
                let mut joiner = Joiner::default();
                for piece in Pieces(text) {
                    self.encode_piece(piece, &mut joiner, &mut ids)?;
                }
            }
        }
        Ok(ids)
    }

    fn encode_words(&self, text: &str, ids: &mut Vec<i64>) -> Result<(), Fault> {
        let leads = text.starts_with(char::is_whitespace);
        let mut word = String::new();
        for (index, plain) in text.split_whitespace().enumerate() {
            word.clear();
            if index > 0 || leads {
                word.push(SPACE);
            }
            word.push_str(plain);
            self.encode_word(&word, ids)?;
        }
        Ok(())
    }

    /// Cuts a word into the longest tokens from the left; one that leaves a rest is unknown as a
    /// whole.
    fn encode_word(&self, word: &str, ids: &mut Vec<i64>) -> Result<(), Fault> {
        let (before, mut rest) = (ids.len(), word);
        while let Some(first) = rest.chars().next() {
            let len = match self.trie.longest(Trie::ROOT, rest.as_bytes()) {
                Some((token, len)) => {
                    ids.push(self.id(token));
                    len
                }
                None => {
                    // Each half of a character beyond the first plane was a question mark.
                    let Some(mark) = self.question_mark().filter(|_| first > '\u{ffff}') else {
                        ids.truncate(before);
                        ids.push(self.unknown()?);
                        return Ok(());
                    };
                    ids.extend([mark, mark]);
                    first.len_utf8()
                }
            };
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(())
    }

    fn question_mark(&self) -> Option<i64> {
        let at = self.trie.step(Trie::ROOT, b'?')?;
        self.trie.token(at).map(|token| self.id(token))
    }

    /// Joins the bytes of a piece, pair by pair.
    fn encode_piece(
        &self,
        piece: &str,
        joiner: &mut Joiner,
        ids: &mut Vec<i64>,
    ) -> Result<(), Fault> {
        // Most words are tokens.
        let whole = piece.bytes().try_fold(Trie::ROOT, |at, byte| self.step(at, byte));
        if let Some(token) = whole.and_then(|at| self.trie.token(at)) {
            ids.push(self.id(token));
            return Ok(());
        }
        joiner.text.clear();
        joiner.text.extend(piece.bytes().map(|byte| self.symbol(byte)));
        joiner.join(self);
        for at in joiner.nodes() {
            match at.and_then(|at| self.trie.token(at)) {
                Some(token) => ids.push(self.id(token)),
                None => ids.push(self.unknown()?),
            }
        }
        Ok(())
    }

    /// Goes on by the symbol of a byte.
    fn step(&self, at: At, byte: u8) -> Option<At> {
        match byte {
            b'!'..=b'~' => self.trie.step(at, byte),
            _ => self.trie.walk(at, self.symbol(byte).encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    fn symbol(&self, byte: u8) -> char {
        self.bytes.get(usize::from(byte)).copied().unwrap_or(SPACE)
    }

    /// Returns the text of ids. An unknown one is an error, or `null` where the text is made as on
    /// Android.
    pub(crate) fn decode(
        &self,
        ids: &[i64],
        mode: Gpt2Mode,
        dialect: Dialect,
    ) -> Result<String, Fault> {
        let mut text = String::new();
        for &id in ids {
            match (self.token(id), dialect) {
                (Some(token), _) => text.push_str(token),
                (None, Dialect::Android) => text.push_str("null"),
                (None, Dialect::Documented) => return Err(Fault::UnknownId { id }),
            }
        }
        Ok(match mode {
            Gpt2Mode::Reference => text.replace(SPACE, " "),
            Gpt2Mode::ByteLevelBpe => self.to_plain(&text),
        })
    }

    /// Turns the symbols of bytes back into bytes; what is not one stays.
    fn to_plain(&self, text: &str) -> String {
        let symbols: HashMap<char, u8> = self.bytes.iter().copied().zip(0..=255).collect();
        let mut bytes = Vec::with_capacity(text.len());
        for character in text.chars() {
            match symbols.get(&character) {
                Some(&byte) => bytes.push(byte),
                None => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn token(&self, id: i64) -> Option<&str> {
        let index = self.by_id.get(&id)?;
        self.tokens.get(*index).map(|(token, _)| token.as_str())
    }

    fn id(&self, token: usize) -> i64 {
        self.tokens.get(token).map(|(_, id)| *id).unwrap_or_default()
    }

    fn unknown(&self) -> Result<i64, Fault> {
        self.unknown.ok_or(Fault::MissingToken { token: UNKNOWN })
    }

    /// Returns the node and the id of the token that two neighbours make.
    fn joined(&self, left: Option<At>, right: &[u8]) -> Option<(At, i64)> {
        let at = self.trie.walk(left?, right)?;
        Some((at, self.id(self.trie.token(at)?)))
    }
}

/// Symbols of one piece, joined in the order of the ids of what they make.
#[derive(Default)]
struct Joiner {
    text: String,
    symbols: Vec<Symbol>,
    heap: BinaryHeap<Reverse<Pair>>,
}

/// A part of the text; one that was joined to its left neighbour is empty.
#[derive(Clone, Copy)]
struct Symbol {
    start: usize,
    end: usize,
    previous: Option<usize>,
    next: Option<usize>,
    at: Option<At>,
}

/// Two neighbours that make a token; ordered by its id, then by place. Of those that were found at
/// one place at different times, all but one are out of date.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    id: i64,
    left: usize,
    right: usize,
    /// Where the right one ended when the pair was found: it may have grown since.
    end: usize,
    /// Where the left one ended.
    middle: usize,
    /// What they make.
    at: At,
}

impl Joiner {
    fn join(&mut self, vocabulary: &Gpt2Vocabulary) {
        self.symbols.clear();
        self.heap.clear();
        for (index, (start, character)) in self.text.char_indices().enumerate() {
            let end = start.saturating_add(character.len_utf8());
            let bytes = self.text.as_bytes().get(start..end).unwrap_or_default();
            let at = vocabulary.trie.walk(Trie::ROOT, bytes);
            let (previous, next) = (index.checked_sub(1), index.checked_add(1));
            self.symbols.push(Symbol { start, end, previous, next, at });
        }
        if let Some(last) = self.symbols.last_mut() {
            last.next = None;
        }
        for left in 0..self.symbols.len() {
            self.propose(Some(left), vocabulary);
        }
        while let Some(Reverse(pair)) = self.heap.pop() {
            self.merge(pair, vocabulary);
        }
    }

    /// Notes what a symbol and its right neighbour make.
    fn propose(&mut self, left: Option<usize>, vocabulary: &Gpt2Vocabulary) {
        let Some(left) = left else { return };
        let Some(one) = self.symbols.get(left).copied() else { return };
        let Some(right) = one.next else { return };
        let Some(other) = self.symbols.get(right).copied() else { return };
        let bytes = self.text.as_bytes().get(other.start..other.end).unwrap_or_default();
        if let Some((at, id)) = vocabulary.joined(one.at, bytes) {
            let (end, middle) = (other.end, one.end);
            self.heap.push(Reverse(Pair { id, left, right, end, middle, at }));
        }
    }

    fn merge(&mut self, pair: Pair, vocabulary: &Gpt2Vocabulary) {
        let Pair { left, right, end, middle, at, .. } = pair;
        let (Some(one), Some(other)) =
            (self.symbols.get(left).copied(), self.symbols.get(right).copied())
        else {
            return;
        };
        let is_there = one.next == Some(right) && one.end == middle && other.end == end;
        if !is_there || one.start == one.end {
            return;
        }
        if let Some(one) = self.symbols.get_mut(left) {
            (one.end, one.next, one.at) = (end, other.next, Some(at));
        }
        if let Some(gone) = self.symbols.get_mut(right) {
            (gone.start, gone.next) = (gone.end, None);
        }
        if let Some(next) = other.next.and_then(|next| self.symbols.get_mut(next)) {
            next.previous = Some(left);
        }
        self.propose(one.previous, vocabulary);
        self.propose(Some(left), vocabulary);
    }

    fn nodes(&self) -> impl Iterator<Item = Option<At>> {
        let left = self.symbols.iter().filter(|symbol| symbol.start < symbol.end);
        left.map(|symbol| symbol.at)
    }
}

/// Cuts a text where GPT-2 does before it joins bytes: at contractions, and between letters,
/// numbers, blanks and all else, a single blank going with what follows.
struct Pieces<'t>(&'t str);

impl<'t> Iterator for Pieces<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let len = piece(self.0);
        let (piece, rest) = self.0.split_at_checked(len).filter(|(piece, _)| !piece.is_empty())?;
        self.0 = rest;
        Some(piece)
    }
}

/// What kind of piece a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Blank,
    Other,
}

fn class(character: char) -> Class {
    match character {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Number,
        _ if character.is_whitespace() => Class::Blank,
        _ if character.is_ascii() => Class::Other,
        _ => match character.general_category_group() {
            GeneralCategoryGroup::Letter => Class::Letter,
            GeneralCategoryGroup::Number => Class::Number,
            _ => Class::Other,
        },
    }
}

/// Returns the bytes of the first piece of a text.
fn piece(text: &str) -> usize {
    if text.starts_with('\'') {
        let contraction = CONTRACTIONS.iter().find(|contraction| text.starts_with(**contraction));
        if let Some(contraction) = contraction {
            return contraction.len();
        }
    }
    let behind = text.strip_prefix(' ').unwrap_or(text);
    let lead = text.len().saturating_sub(behind.len());
    match behind.chars().next().map(class) {
        Some(Class::Blank) | None => blanks(text),
        Some(kind) => lead.saturating_add(run(behind, kind)),
    }
}

/// Returns the bytes of a run of blanks; the last of several goes with what follows.
fn blanks(text: &str) -> usize {
    let len = run(text, Class::Blank);
    if len == text.len() {
        return len;
    }
    let blanks = text.get(..len).unwrap_or_default();
    let last = blanks.chars().next_back().map_or(0, char::len_utf8);
    match len.saturating_sub(last) {
        0 => len,
        shorter => shorter,
    }
}

fn run(text: &str, kind: Class) -> usize {
    let is_in = |byte: u8| byte.is_ascii() && class(char::from(byte)) == kind;
    let len = text.bytes().position(|byte| !is_in(byte)).unwrap_or(text.len());
    let (_, rest) = text.split_at(len);
    if rest.bytes().next().is_none_or(|byte| byte.is_ascii()) {
        return len;
    }
    let more = rest.find(|character| class(character) != kind).unwrap_or(rest.len());
    len.saturating_add(more)
}

/// Returns the character that stands for each byte in tokens: itself where it can be seen, one from
/// U+0100 on elsewhere.
fn byte_symbols() -> [char; 256] {
    let mut symbols = ['\0'; 256];
    let mut next = 0x100_u32;
    for (symbol, byte) in symbols.iter_mut().zip(0_u8..=255) {
        let is_seen = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        *symbol = match is_seen {
            true => char::from(byte),
            false => char::from_u32(next).unwrap_or_default(),
        };
        next = next.saturating_add(u32::from(!is_seen));
    }
    symbols
}

const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];
const UNKNOWN: &str = "<|endoftext|>";
/// What stands for a blank in tokens.
const SPACE: char = '\u{120}';

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(tokens: &[&str]) -> Gpt2Vocabulary {
        let members =
            tokens.iter().zip(0..).map(|(token, id)| ((*token).to_owned(), Json::Int(id)));
        Gpt2Vocabulary::parse(&Json::Object(members.collect()), Dialect::Documented).unwrap()
    }

    #[test]
    fn pieces_of_gpt2() {
        let split = |text| Pieces(text).collect::<Vec<_>>();
        assert_eq!(split("Hello world's  2nd"), ["Hello", " world", "'s", " ", " 2", "nd"]);
        assert_eq!(split("a \n\n b "), ["a", " \n\n", " b", " "]);
        assert_eq!(split("I'll!? '9"), ["I", "'ll", "!?", " '", "9"]);
        assert_eq!(split("é 中文 ½"), ["é", " 中文", " ½"]);
        assert_eq!(split("a\tb"), ["a", "\t", "b"]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn symbols_of_bytes() {
        let symbols = byte_symbols();
        let at = [b' ', b'\n', b'A', 0x7f, 0xad, 0xff, 0];
        assert_eq!(at.map(|byte| symbols[usize::from(byte)]), ['Ġ', 'Ċ', 'A', 'ġ', 'Ń', 'ÿ', 'Ā']);
    }

    #[test]
    fn the_lowest_id_is_joined_first() {
        let v = vocabulary(&["a", "b", "c", "bc", "ab", "abc", "<|endoftext|>"]);
        let ids = |text| v.encode(text, Gpt2Mode::ByteLevelBpe).unwrap();
        assert_eq!(ids("abc"), [5]);
        assert_eq!(ids("abcab"), [5, 4]);
        assert_eq!(ids("bcc"), [3, 2]);
        assert_eq!(ids("ax"), [0, 6]);
    }

    #[test]
    fn longest_tokens_from_the_left() {
        let v = vocabulary(&["H", "Hello", "Ġ", "Ġworld", "é", "?", "<|endoftext|>"]);
        let ids = |text| v.encode(text, Gpt2Mode::Reference).unwrap();
        assert_eq!(ids("Hello  world"), [1, 3]);
        assert_eq!(ids(" Hello"), [2, 1]);
        assert_eq!(ids("Hellozz H"), [6, 2, 0]);
        assert_eq!(ids("😀é"), [5, 5, 4]);
        assert_eq!(ids(""), [0; 0]);
    }

    #[test]
    fn texts_come_back_from_bytes() {
        let symbols: Vec<String> = byte_symbols().iter().map(char::to_string).collect();
        let v = vocabulary(&symbols.iter().map(String::as_str).collect::<Vec<_>>());
        for text in ["Hello\n wörld 😀", "\u{0}\u{7f}", ""] {
            let ids = v.encode(text, Gpt2Mode::ByteLevelBpe).unwrap();
            assert_eq!(ids.len(), text.len());
            let decoded = v.decode(&ids, Gpt2Mode::ByteLevelBpe, Dialect::Documented).unwrap();
            assert_eq!(decoded, text);
        }
    }

    #[test]
    fn long_texts_take_nearly_linear_time() {
        let tokens: Vec<String> = (0..10).map(|power| "a".repeat(1 << power)).collect();
        let v = vocabulary(&tokens.iter().map(String::as_str).collect::<Vec<_>>());
        for mode in [Gpt2Mode::Reference, Gpt2Mode::ByteLevelBpe] {
            let start = std::time::Instant::now();
            let ids = v.encode(&"a".repeat(1 << 17), mode).unwrap();
            assert_eq!(ids, vec![9; 1 << 8]);
            // With every pair looked at for each that is joined, it would be hours.
            assert!(start.elapsed().as_secs() < 30, "{mode:?}: {:?}", start.elapsed());
        }
    }
}
