//! The tokenizer `bert` and its vocabulary: one token a line, ids counted from 0.

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

use crate::{
    Fault,
    tokenizer::trie::{At, Trie},
};

/// How texts are cut into tokens of a BERT vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BertMode {
    /// As the original runtime did: words between blanks, lower case unless they start with `[`, and
    /// of each the longest token from the left. Punctuation and accents are parts of words.
    #[default]
    Reference,
    /// As BERT was trained (uncased): punctuation and Chinese characters are words of their own,
    /// accents are removed.
    WordPiece,
}

/// A vocabulary, indexed.
#[derive(Debug)]
pub(crate) struct BertVocabulary {
    tokens: Vec<String>,
    trie: Trie,
    /// Where pieces inside a word start.
    inner: Option<At>,
    unknown: usize,
    padding: Option<usize>,
}

impl BertVocabulary {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let tokens: Vec<String> = lines(text).map(str::to_owned).collect();
        let trie = Trie::new(tokens.iter().map(String::as_str));
        let find = |token: &str| trie.token(trie.walk(Trie::ROOT, token.as_bytes())?);
        let unknown = find(UNKNOWN).ok_or(Fault::MissingToken { token: UNKNOWN })?;
        let (padding, inner) = (find(PADDING), trie.walk(Trie::ROOT, b"##"));
        Ok(Self { tokens, trie, inner, unknown, padding })
    }

    /// Returns the ids of a text.
    pub(crate) fn encode(&self, text: &str, mode: BertMode) -> Vec<i64> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        match mode {
            BertMode::Reference => self.encode_words(text, &mut ids),
            BertMode::WordPiece => self.encode_pieces(text, &mut ids),
        }
        ids
    }

    /// Returns the id that fills up a tensor.
    pub(crate) fn padding(&self) -> Result<i64, Fault> {
        self.padding.map(id).ok_or(Fault::MissingToken { token: PADDING })
    }

    /// Returns the token of an id.
    pub(crate) fn token(&self, id: i64) -> Option<&str> {
        self.tokens.get(usize::try_from(id).ok()?).map(String::as_str)
    }

    fn encode_words(&self, text: &str, ids: &mut Vec<i64>) {
        let mut lower = String::new();
        for word in text.split_whitespace() {
            if word.starts_with('[') {
                self.encode_word(word, ids);
            } else if word.is_ascii() {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                self.encode_word(&lower, ids);
            } else {
                self.encode_word(&word.to_lowercase(), ids);
            }
        }
    }

    fn encode_pieces(&self, text: &str, ids: &mut Vec<i64>) {
        let mut rest = text;
        while let Some((before, special, behind)) = next_special(rest) {
            self.encode_plain(before, ids);
            self.encode_word(special, ids);
            rest = behind;
        }
        self.encode_plain(rest, ids);
    }

    /// Encodes text in which no special token is.
    fn encode_plain(&self, text: &str, ids: &mut Vec<i64>) {
        let mut word = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            // Nothing in a run of ASCII is decomposed, or an accent of what is around it.
            let len = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
            let (plain, behind) = rest.split_at(len);
            for byte in plain.bytes() {
                self.take(char::from(byte.to_ascii_lowercase()), &mut word, ids);
            }
            let len = behind.bytes().position(is_plain).unwrap_or(behind.len());
            let (other, behind) = behind.split_at(len);
            let lower = other.chars().filter(|&c| !is_control(c)).nfd().filter(|c| !is_accent(*c));
            for character in lower.flat_map(char::to_lowercase) {
                self.take(character, &mut word, ids);
            }
            rest = behind;
        }
        self.take_word(&mut word, ids);
    }

    /// Adds a character to a word, or ends it there.
    fn take(&self, character: char, word: &mut String, ids: &mut Vec<i64>) {
        if character.is_whitespace() {
            self.take_word(word, ids);
        } else if is_punctuation(character) || is_chinese(character) {
            self.take_word(word, ids);
            word.push(character);
            self.take_word(word, ids);
        } else {
            word.push(character);
        }
    }

    fn take_word(&self, word: &mut String, ids: &mut Vec<i64>) {
        if word.len() > MAX_WORD && word.chars().nth(MAX_WORD).is_some() {
            ids.push(id(self.unknown));
        } else if !word.is_empty() {
            self.encode_word(word, ids);
        }
        word.clear();
    }

    /// Cuts a word into the longest tokens from the left; one that leaves a rest is unknown as a
    /// whole.
    fn encode_word(&self, word: &str, ids: &mut Vec<i64>) {
        let (before, mut rest, mut from) = (ids.len(), word.as_bytes(), Some(Trie::ROOT));
        while !rest.is_empty() {
            let Some((token, len)) = from.and_then(|from| self.trie.longest(from, rest)) else {
                ids.truncate(before);
                ids.push(id(self.unknown));
                return;
            };
            ids.push(id(token));
            rest = rest.get(len..).unwrap_or_default();
            from = self.inner;
        }
    }
}

/// Splits as Java's readers of lines do: a last line break makes no further line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = text.find(['\n', '\r']) else { return Some(text) };
        let (line, behind) = text.split_at(end);
        let behind = behind.strip_prefix("\r\n").unwrap_or_else(|| behind.get(1..).unwrap_or(""));
        rest = Some(behind).filter(|behind| !behind.is_empty());
        Some(line)
    })
}

/// Finds the first special token: what stands before it, itself, what stands behind.
fn next_special(text: &str) -> Option<(&str, &str, &str)> {
    let starts = text.match_indices('[');
    starts
        .filter_map(|(at, _)| {
            let (before, from) = text.split_at(at);
            let special = SPECIAL.iter().find(|special| from.starts_with(**special))?;
            let (special, behind) = from.split_at(special.len());
            Some((before, special, behind))
        })
        .next()
}

fn id(token: usize) -> i64 {
    i64::try_from(token).unwrap_or(i64::MAX)
}

/// Tells whether a byte is an ASCII character other than a control character.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

fn is_control(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        _ => {
            character.general_category_group() == GeneralCategoryGroup::Other
                && character.general_category() != GeneralCategory::Unassigned
        }
    }
}

fn is_accent(character: char) -> bool {
    character.general_category() == GeneralCategory::NonspacingMark
}

fn is_punctuation(character: char) -> bool {
    match character.is_ascii() {
        true => character.is_ascii_punctuation(),
        false => character.general_category_group() == GeneralCategoryGroup::Punctuation,
    }
}

fn is_chinese(character: char) -> bool {
    matches!(character,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2ceaf}' | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

const UNKNOWN: &str = "[UNK]";
const PADDING: &str = "[PAD]";
const SPECIAL: [&str; 5] = [UNKNOWN, PADDING, "[CLS]", "[SEP]", "[MASK]"];
/// Characters of the longest word that BERT looks up.
const MAX_WORD: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> BertVocabulary {
        let tokens = "[PAD]\n[UNK]\n[CLS]\nwho\njim\nhen\n##son\n?\n##?\ncafe\n中\na\n##a";
        BertVocabulary::parse(tokens).unwrap()
    }

    #[test]
    fn lines_end_as_in_java() {
        let split = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(split("a\nb\r\nc\rd"), ["a", "b", "c", "d"]);
        assert_eq!(split("a\n\nb\n"), ["a", "", "b"]);
        assert_eq!(split("\n"), [""]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn words_between_blanks() {
        let ids = |text: &str| vocabulary().encode(text, BertMode::Reference);
        assert_eq!(ids("[CLS] Who  Henson?"), [2, 3, 5, 6, 8]);
        assert_eq!(ids(" \t[cls]\n"), [1]);
        assert_eq!(ids(""), [0; 0]);
    }

    #[test]
    fn a_rest_makes_the_word_unknown() {
        for mode in [BertMode::Reference, BertMode::WordPiece] {
            assert_eq!(vocabulary().encode("jimzz who", mode), [1, 3]);
        }
    }

    #[test]
    fn punctuation_and_accents() {
        let ids = |text: &str| vocabulary().encode(text, BertMode::WordPiece);
        assert_eq!(ids("[CLS]Who? Café中a"), [2, 3, 7, 9, 10, 11]);
        assert_eq!(ids(&"a".repeat(200)).len(), 200);
        assert_eq!(ids(&"a".repeat(201)), [1]);
    }

    /// As one pass over all characters makes it, wherever runs of ASCII end.
    #[test]
    fn accents_and_controls_beside_ascii() {
        let vocabulary = BertVocabulary::parse("[UNK]\ncafe\n##s\na\nab\n東\n.").unwrap();
        let ids = |text: &str| vocabulary.encode(text, BertMode::WordPiece);
        assert_eq!(ids("cafe\u{301}s CAFÉS caf\u{1}e\u{301}\u{7f}s"), [1, 2, 1, 2, 1, 2]);
        assert_eq!(ids("a\u{301}\u{1}\u{316}b \u{301}a"), [4, 3]);
        assert_eq!(ids("a\u{a0}a\u{200b}b a\u{3000}a\u{b}b"), [3, 4, 3, 4]);
        assert_eq!(ids("a東.a\r\n\tab"), [3, 5, 6, 3, 4]);
    }

    #[test]
    fn missing_tokens() {
        let fault = BertVocabulary::parse("a\nb").unwrap_err();
        assert_eq!(fault.to_string(), "lacks the token \"[UNK]\"");
        let fault = BertVocabulary::parse("[UNK]").unwrap().padding().unwrap_err();
        assert_eq!(fault.to_string(), "lacks the token \"[PAD]\"");
    }

    #[test]
    fn of_equal_lines_the_last_encodes_and_both_decode() {
        let vocabulary = BertVocabulary::parse("[UNK]\na\na").unwrap();
        assert_eq!(vocabulary.encode("a", BertMode::Reference), [2]);
        assert_eq!((vocabulary.token(1), vocabulary.token(2)), (Some("a"), Some("a")));
        assert_eq!((vocabulary.token(3), vocabulary.token(-1)), (None, None));
    }

    #[test]
    fn long_texts_take_linear_time() {
        let vocabulary = vocabulary();
        for mode in [BertMode::Reference, BertMode::WordPiece] {
            let start = std::time::Instant::now();
            vocabulary.encode(&"a".repeat(1 << 17), mode);
            assert!(start.elapsed().as_secs() < 30, "{mode:?}: {:?}", start.elapsed());
        }
    }
}
