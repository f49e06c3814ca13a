//! The document: `live.spec.json`.

use std::sync::{Arc, OnceLock};

use tensor_core::{Limit, Limits, Report};

#[cfg(feature = "image")]
use crate::Filter;
use crate::{
    BertMode, Dialect, Error, Fault, Gpt2Mode, Json, Pack, Result, Unpack,
    spec::{
        parse::{Parser, Stubs, Vocabularies},
        path::Path,
    },
    tokenizer::{BERT, GPT2, bert::BertVocabulary, gpt2::Gpt2Vocabulary},
};

pub(crate) mod colour;
pub(crate) mod dialect;
pub(crate) mod emit;
pub(crate) mod fit;
pub(crate) mod json;
pub(crate) mod lint;
pub(crate) mod number;
pub(crate) mod pack;
pub(crate) mod parse;
pub(crate) mod path;
pub(crate) mod signature;
pub(crate) mod slot;
pub(crate) mod unpack;

/// A specification: how parameters become the model's input, and its output the results.
///
/// Unknown members of the root object are kept, in their place. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Spec {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    root: Json,
    pack: Pack,
    unpack: Unpack,
    pub(super) lints: Report,
    options: SpecOptions,
    /// Indexed when the first text is made into tokens.
    bert: OnceLock<BertVocabulary>,
    gpt2: OnceLock<Gpt2Vocabulary>,
}

impl Spec {
    /// Reads a spec in the dialect [`Dialect::Documented`].
    ///
    /// # Errors
    ///
    /// [`Error::Json`] where the text is not strict JSON; [`Error::Spec`] with the first fault.
    /// [`SpecOptions::lint`] returns all.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self> {
        Self::options().parse(text)
    }

    /// Returns the options of reading and running, to be set and parsed with.
    #[must_use]
    pub fn options() -> SpecOptions {
        SpecOptions::default()
    }

    /// Makes a spec from its two parts, in the dialect [`Dialect::Documented`].
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] with the first fault. What needs a vocabulary goes to
    /// [`SpecOptions::build`].
    pub fn new(pack: &Pack, unpack: &Unpack) -> Result<Self> {
        Self::options().build([], pack, unpack)
    }

    /// Returns the whole document.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.inner.root
    }

    /// Returns the text of the document, one member a line.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.json().to_pretty()
    }

    /// Returns what becomes of the parameters.
    #[must_use]
    pub fn pack(&self) -> &Pack {
        &self.inner.pack
    }

    /// Returns what becomes of the model's output.
    #[must_use]
    pub fn unpack(&self) -> &Unpack {
        &self.inner.unpack
    }

    /// Returns the dialect that the spec is read and run in.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.inner.options.dialect
    }

    pub(crate) fn run_options(&self) -> &SpecOptions {
        &self.inner.options
    }

    /// Returns the vocabulary of the tokenizer `bert`.
    pub(crate) fn bert(&self) -> Result<&BertVocabulary> {
        if let Some(vocabulary) = self.inner.bert.get() {
            return Ok(vocabulary);
        }
        let missing = || Error::spec("spec", Fault::MissingVocabulary { key: BERT });
        let text = self.json().get(BERT).and_then(Json::as_str).ok_or_else(missing)?;
        self.within_limit(text.len())?;
        let vocabulary = BertVocabulary::parse(text).map_err(|fault| Error::spec(BERT, fault))?;
        Ok(self.inner.bert.get_or_init(|| vocabulary))
    }

    /// Returns the vocabulary of the tokenizer and decoder `gpt2`.
    pub(crate) fn gpt2(&self) -> Result<&Gpt2Vocabulary> {
        if let Some(vocabulary) = self.inner.gpt2.get() {
            return Ok(vocabulary);
        }
        let missing = || Error::spec("spec", Fault::MissingVocabulary { key: GPT2 });
        let tokens = self.json().get(GPT2).ok_or_else(missing)?;
        if let Json::Object(members) = tokens {
            let sum = members.iter().fold(0, |sum: usize, (key, _)| sum.saturating_add(key.len()));
            self.within_limit(sum)?;
        }
        let vocabulary = Gpt2Vocabulary::parse(tokens, self.dialect())?;
        Ok(self.inner.gpt2.get_or_init(|| vocabulary))
    }

    /// Refuses vocabularies whose index would take too much memory.
    fn within_limit(&self, len: usize) -> Result<()> {
        let (limits, found) = (&self.inner.options.limits, len as u64);
        Ok(limits.check(Limit::DocumentBytes, "vocabulary in bytes", found)?)
    }

    pub(crate) fn parser(&self) -> Parser {
        Parser::new(self.dialect(), Stubs::Replaced, vocabularies(self.json()))
    }
}

/// How a spec is read and run.
#[derive(Clone, Debug)]
pub struct SpecOptions {
    pub(crate) dialect: Dialect,
    pub(crate) bert: BertMode,
    pub(crate) gpt2: Gpt2Mode,
    #[cfg(feature = "image")]
    pub(crate) filter: Option<Filter>,
    pub(crate) limits: Limits,
}

impl SpecOptions {
    /// Sets whose meaning the spec has; that of the format's text by default.
    #[must_use]
    pub const fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets how texts are cut into tokens of a BERT vocabulary; as by the original runtime by
    /// default.
    #[must_use]
    pub const fn bert(mut self, mode: BertMode) -> Self {
        self.bert = mode;
        self
    }

    /// Sets how texts are cut into tokens of a GPT-2 vocabulary, and put together again; as by the
    /// original runtime by default.
    #[must_use]
    pub const fn gpt2(mut self, mode: Gpt2Mode) -> Self {
        self.gpt2 = mode;
        self
    }

    /// Sets how pictures are scaled; by default [`Filter::Bilinear`], and on Android
    /// [`Filter::Nearest`].
    #[cfg(feature = "image")]
    #[must_use]
    pub const fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets what a spec may make the reader do; 64 MiB of text and 64 levels by default.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Like [`Spec::parse`], but with these options.
    ///
    /// # Errors
    ///
    /// As for [`Spec::parse`].
    pub fn parse(self, text: impl AsRef<[u8]>) -> Result<Spec> {
        let root = Json::parse(text.as_ref(), &self.limits)?;
        self.from_json(root)
    }

    /// Makes a spec from its two parts and what else the root object holds, such as the vocabularies
    /// of tokenizers, which come first.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] with the first fault.
    pub fn build<'m>(
        self,
        members: impl IntoIterator<Item = (&'m str, Json)>,
        pack: &Pack,
        unpack: &Unpack,
    ) -> Result<Spec> {
        let parts = [("pack", pack.to_json()), ("unpack", unpack.to_json())];
        self.from_json(emit::object(members.into_iter().chain(parts)))
    }

    /// Reads a spec from a document in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] with the first fault.
    pub fn from_json(self, root: Json) -> Result<Spec> {
        let mut parser = Parser::new(self.dialect, Stubs::Kept, vocabularies(&root));
        let parts = self.parts(&root, &mut parser);
        let lints = std::mem::take(&mut parser.lints);
        match (parser.faults.into_iter().next(), parts) {
            (None, Some((pack, unpack))) => {
                let inner = Inner {
                    root,
                    pack,
                    unpack,
                    lints,
                    options: self,
                    bert: OnceLock::new(),
                    gpt2: OnceLock::new(),
                };
                Ok(Spec { inner: Arc::new(inner) })
            }
            (Some(fault), _) => Err(fault),
            // No part is missing without a fault that says so.
            (None, None) => Err(Error::spec("spec", Fault::Missing { field: "pack" })),
        }
    }

    /// Reads both parts, whatever is wrong with either.
    pub(super) fn parts(&self, root: &Json, parser: &mut Parser) -> Option<(Pack, Unpack)> {
        let Json::Object(_) = root else {
            let (found, expected) = (root.described(), "an object");
            parser.faults.push(Error::spec("spec", Fault::Value { found, expected }));
            return None;
        };
        vocabulary_kinds(root, parser);
        let mut missing = |field| parser.faults.push(Error::spec("spec", Fault::Missing { field }));
        let (pack, unpack) = (root.get("pack"), root.get("unpack"));
        if pack.is_none() {
            missing("pack");
        }
        if unpack.is_none() {
            missing("unpack");
        }
        let pack = pack.and_then(|node| parser.pack(node, &mut Path::root("pack")).ok());
        let unpack = unpack.and_then(|node| parser.unpack(node, &mut Path::root("unpack")).ok());
        pack.zip(unpack)
    }
}

impl Default for SpecOptions {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            bert: BertMode::default(),
            gpt2: Gpt2Mode::default(),
            #[cfg(feature = "image")]
            filter: None,
            limits: Limits::default().with_manifest_bytes(64 << 20),
        }
    }
}

/// A JSON Schema (draft 2020-12) of `live.spec.json`, for editors and other tools.
///
/// It describes what the dialect of the format's text reads, stubs included. What no schema can say
/// is left to [`Spec::lint`]: sizes against items, vocabularies against tokenizers, parameters of two
/// kinds.
pub const JSON_SCHEMA: &str = include_str!("live.spec.schema.json");

pub(super) fn vocabularies(root: &Json) -> Vocabularies {
    Vocabularies { bert: root.get(BERT).is_some(), gpt2: root.get(GPT2).is_some() }
}

/// Refuses vocabularies of the wrong kind. Format text: type `tensor_from_string`.
fn vocabulary_kinds(root: &Json, parser: &mut Parser) {
    let mut wrong = |key, value: &Json, expected| {
        parser.faults.push(Error::spec(key, Fault::Value { found: value.described(), expected }));
    };
    match root.get(BERT) {
        None | Some(Json::String(_)) => {}
        Some(other) => wrong(BERT, other, "a text with one token a line"),
    }
    match root.get(GPT2) {
        None | Some(Json::Object(_)) => {}
        Some(other) => wrong(GPT2, other, "an object from tokens to ids"),
    }
}
