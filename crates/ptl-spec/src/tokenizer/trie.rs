//! A vocabulary as a tree of bytes: the longest token at the start of a text, in one walk.

use std::ops::Range;

/// Tokens by their bytes. Nodes lie in the order of their depth, children beside each other.
#[derive(Debug)]
pub(crate) struct Trie {
    nodes: Vec<Node>,
    /// The byte that leads to each node.
    labels: Vec<u8>,
}

/// A place in a [`Trie`]: what has been walked so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At(u32);

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Where its children start.
    first: u32,
    children: u16,
    /// The number of the token that ends here.
    token: u32,
}

impl Trie {
    pub(crate) const ROOT: At = At(0);

    /// Builds the tree of tokens, which are numbered from 0; of equal ones the last counts. Tokens
    /// of more than 1,024 bytes are left out, so that no walk is longer.
    pub(crate) fn new<'t>(tokens: impl Iterator<Item = &'t str>) -> Self {
        let numbered = tokens.map(str::as_bytes).zip(0_u32..);
        let mut tokens: Vec<(&[u8], u32)> =
            numbered.filter(|(token, _)| token.len() <= MAX_TOKEN).collect();
        tokens.sort_unstable();
        let mut trie = Self { nodes: vec![Node::EMPTY], labels: vec![0] };
        let mut ranges = Vec::new();
        ranges.push(0..tokens.len());
        let (mut at, mut depth, mut level_end) = (0_usize, 0_usize, 1_usize);
        while let Some(range) = ranges.get_mut(at).map(std::mem::take) {
            if at == level_end {
                (depth, level_end) = (depth.saturating_add(1), ranges.len());
            }
            trie.grow(at, depth, &tokens, range, &mut ranges);
            at = at.saturating_add(1);
        }
        trie
    }

    /// Gives a node its token and its children.
    fn grow(
        &mut self,
        at: usize,
        depth: usize,
        tokens: &[(&[u8], u32)],
        range: Range<usize>,
        ranges: &mut Vec<Range<usize>>,
    ) {
        let (mut start, end) = (range.start, range.end);
        let mut node = Node { first: index(self.nodes.len()), ..Node::EMPTY };
        while let Some((_, token)) =
            tokens.get(start).filter(|(t, _)| start < end && t.len() == depth)
        {
            (node.token, start) = (*token, start.saturating_add(1));
        }
        while start < end {
            let label = label_at(tokens, start, depth);
            let rest = tokens.get(start..end).unwrap_or_default();
            let same = rest.partition_point(|(token, _)| token.get(depth).copied() <= Some(label));
            let next = start.saturating_add(same);
            self.nodes.push(Node::EMPTY);
            self.labels.push(label);
            ranges.push(start..next);
            node.children = node.children.saturating_add(1);
            start = next;
        }
        if let Some(slot) = self.nodes.get_mut(at) {
            *slot = node;
        }
    }

    /// Goes on by one byte.
    pub(crate) fn step(&self, at: At, byte: u8) -> Option<At> {
        let node = self.node(at)?;
        let first = node.first as usize;
        let labels = self.labels.get(first..first.checked_add(node.children.into())?)?;
        let child = match labels {
            // Far down there is mostly one way.
            [label] => (*label == byte).then_some(0)?,
            labels => labels.binary_search(&byte).ok()?,
        };
        Some(At(node.first.checked_add(index(child))?))
    }

    /// Goes on by several bytes.
    pub(crate) fn walk(&self, at: At, bytes: &[u8]) -> Option<At> {
        bytes.iter().try_fold(at, |at, &byte| self.step(at, byte))
    }

    /// Returns the number of the token that ends here.
    pub(crate) fn token(&self, at: At) -> Option<usize> {
        self.node(at).filter(|node| node.token != NONE).map(|node| node.token as usize)
    }

    /// Returns the number and the length in bytes of the longest token that `bytes` start with.
    pub(crate) fn longest(&self, from: At, bytes: &[u8]) -> Option<(usize, usize)> {
        let (mut at, mut longest) = (from, None);
        for (walked, &byte) in bytes.iter().enumerate() {
            match self.step(at, byte) {
                Some(next) => at = next,
                None => break,
            }
            if let Some(token) = self.token(at) {
                longest = Some((token, walked.saturating_add(1)));
            }
        }
        longest
    }

    fn node(&self, at: At) -> Option<&Node> {
        self.nodes.get(at.0 as usize)
    }
}

impl Node {
    const EMPTY: Self = Self { first: 0, children: 0, token: NONE };
}

fn label_at(tokens: &[(&[u8], u32)], index: usize, depth: usize) -> u8 {
    tokens.get(index).and_then(|(token, _)| token.get(depth)).copied().unwrap_or_default()
}

/// Numbers of nodes fit, as vocabularies are far below 4 GiB.
fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

const NONE: u32 = u32::MAX;
/// Bytes of the longest token that is looked for.
const MAX_TOKEN: usize = 1024;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_token_is_found() {
        let trie = Trie::new(["a", "abc", "##", "##b", "abc", "é"].into_iter());
        assert_eq!(trie.longest(Trie::ROOT, b"abd"), Some((0, 1)));
        assert_eq!(trie.longest(Trie::ROOT, b"abcd"), Some((4, 3)));
        assert_eq!(trie.longest(Trie::ROOT, b"xa"), None);
        assert_eq!(trie.longest(Trie::ROOT, "éa".as_bytes()), Some((5, 2)));
        let inner = trie.walk(Trie::ROOT, b"##").unwrap();
        assert_eq!(trie.longest(inner, b"bc"), Some((3, 1)));
        assert_eq!(trie.token(inner), Some(2));
    }

    #[test]
    fn no_tokens_and_empty_ones() {
        assert_eq!(Trie::new([].into_iter()).longest(Trie::ROOT, b"a"), None);
        let trie = Trie::new(["", "a"].into_iter());
        assert_eq!(trie.token(Trie::ROOT), Some(0));
        assert_eq!(trie.longest(Trie::ROOT, b"ab"), Some((1, 1)));
        assert_eq!(trie.longest(Trie::ROOT, b""), None);
    }

    #[test]
    fn long_tokens_are_left_out() {
        let (long, longer) = ("a".repeat(1024), "a".repeat(1025));
        let trie = Trie::new([longer.as_str(), long.as_str()].into_iter());
        assert_eq!(trie.longest(Trie::ROOT, longer.as_bytes()), Some((1, 1024)));
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(tokens in prop::collection::vec("[ab]{0,4}", 0..20), text in "[abc]{0,8}") {
            let trie = Trie::new(tokens.iter().map(String::as_str));
            let map: HashMap<&str, usize> = tokens.iter().map(String::as_str).zip(0..).collect();
            let expected = (1..=text.len()).rev().find_map(|len| Some((*map.get(&text[..len])?, len)));
            prop_assert_eq!(trie.longest(Trie::ROOT, text.as_bytes()), expected);
        }
    }
}
