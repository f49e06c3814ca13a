//! Texts become token ids, and token ids texts.

pub(crate) mod bert;
pub(crate) mod gpt2;
mod trie;

/// Keys of the vocabularies in the root object of a spec.
pub(crate) const BERT: &str = "vocabulary_bert";
pub(crate) const GPT2: &str = "vocabulary_gpt2";
