//! Specs, wherever they are.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{anyhow, bail};
use bytes::Bytes;
use clap::ValueEnum;
use modelcrate::{
    ptl_spec::{self, BertMode, Gpt2Mode, Json, Reader, Spec, SpecOptions, sidecar},
    tensor_core::{Extent, Limit, Limits, Source},
};
use serde::Serialize;

use crate::{
    failure::{About, malformed},
    options::{Input, is_stdio},
    output,
};

/// A spec, or a model that has one.
#[derive(Debug, clap::Args)]
pub(super) struct SpecFile {
    /// The model or spec; - is standard input
    #[arg(value_name = "MODEL|SPEC")]
    file: Input,
}

/// How a spec is read and run.
#[derive(Debug, clap::Args)]
pub(super) struct Meaning {
    /// Whose meaning the spec has
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
    #[command(flatten)]
    vocabularies: Vocabularies,
}

/// How texts are cut into tokens.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct Tokenizers {
    /// How the tokenizer bert cuts texts
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    bert: Mode,
    /// How the tokenizer gpt2 cuts texts
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    gpt2: Mode,
}

/// Whose tokens a tokenizer makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Those of phones: words between blanks, the longest token first
    #[default]
    Original,
    /// Those that models are trained with: `WordPiece` without case for bert, byte pairs for gpt2
    Standard,
}

/// Vocabularies that are not in the spec.
#[derive(Debug, clap::Args)]
pub(super) struct Vocabularies {
    /// Use a vocabulary instead of that of the spec, if it has one: bert=FILE with one token a
    /// line, or gpt2=FILE with an object from tokens to ids
    #[arg(long, value_name = "TOKENIZER=FILE")]
    vocab: Vec<Vocabulary>,
}

/// Whose meaning a spec has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    /// What the format's text says
    #[default]
    Documented,
    /// What phones did
    Android,
}

/// The text of a spec.
pub(super) struct Found {
    /// The file that it is in, to be named in errors.
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
    pub(super) text: Bytes,
}

/// Where a spec was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// In the model file.
    Embedded,
    /// In a file beside the model.
    Sidecar,
    /// It was given itself.
    Spec,
}

impl SpecFile {
    /// Finds the spec as runtimes do: in the model, else in the file beside it.
    pub(super) fn find(&self) -> anyhow::Result<Found> {
        self.found().about(&self.file)
    }

    fn found(&self) -> anyhow::Result<Found> {
        let path = self.file.clone();
        let source = output::source(&path)?;
        if is_text(&source)? {
            return Ok(Found { path, origin: Origin::Spec, text: text(&source)? });
        }
        if let Some(text) = Reader::from_source(source)?.spec_text()? {
            return Ok(Found { path, origin: Origin::Embedded, text });
        }
        let side = sidecar(&path);
        if is_stdio(&path) || !side.exists() {
            return Err(anyhow!("has no spec in it, and there is no {}", side.display()));
        }
        Ok(Found { origin: Origin::Sidecar, ..Found::spec(&side)? })
    }
}

/// Tells whether a file is the text of a spec, not a model.
fn is_text(source: &Source) -> anyhow::Result<bool> {
    let start = source.read(Extent::first(source.len().min(START)), "first bytes")?;
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&start);
    // The offset at the start of a FlatBuffer may look like a brace.
    Ok(start.trim_ascii_start().starts_with(b"{") && !ptl_spec::sniff(source)?)
}

/// Reads the text of a spec, up to a limit.
fn text(source: &Source) -> anyhow::Result<Bytes> {
    limits().check(Limit::ManifestBytes, "spec in bytes", source.len())?;
    Ok(source.read(Extent::first(source.len()), "spec")?)
}

fn limits() -> Limits {
    Limits::default().with_manifest_bytes(TEXT)
}

impl Meaning {
    /// Returns what specs are to be read with.
    pub(super) fn options(&self) -> SpecOptions {
        Spec::options().dialect(self.profile.into()).limits(limits())
    }

    /// Reads a spec, with the vocabularies and tokenizers that it is to have.
    pub(super) fn read(&self, found: &Found, tokenizers: Tokenizers) -> anyhow::Result<Spec> {
        let options = tokenizers.set(self.options());
        options.from_json(self.vocabularies.json(found)?).about(&found.path)
    }
}

impl Tokenizers {
    fn set(self, options: SpecOptions) -> SpecOptions {
        let bert = match self.bert {
            Mode::Original => BertMode::Reference,
            Mode::Standard => BertMode::WordPiece,
        };
        let gpt2 = match self.gpt2 {
            Mode::Original => Gpt2Mode::Reference,
            Mode::Standard => Gpt2Mode::ByteLevelBpe,
        };
        options.bert(bert).gpt2(gpt2)
    }
}

impl Vocabularies {
    /// Reads a spec with these, and checks nothing but that it is JSON.
    pub(super) fn json(&self, found: &Found) -> anyhow::Result<Json> {
        let mut json = found.json()?;
        for vocabulary in &self.vocab {
            let value = vocabulary.read().about(&vocabulary.path)?;
            put(&mut json, vocabulary.key, value);
        }
        Ok(json)
    }
}

/// Sets a member of an object; anything else is left to be refused as a spec.
pub(super) fn put(json: &mut Json, key: &str, value: Json) {
    let Json::Object(members) = json else { return };
    match members.iter_mut().find(|(known, _)| known == key) {
        Some((_, slot)) => *slot = value,
        None => members.push((key.to_owned(), value)),
    }
}

impl Found {
    /// Reads a file that is a spec.
    pub(super) fn spec(file: &Path) -> anyhow::Result<Self> {
        let text = output::source(file).and_then(|source| text(&source)).about(file)?;
        Ok(Self { path: file.to_owned(), origin: Origin::Spec, text })
    }

    /// Reads the text as JSON, whatever it says.
    pub(super) fn json(&self) -> anyhow::Result<Json> {
        Json::parse(&self.text, &limits()).about(&self.path)
    }
}

impl Origin {
    /// Says it for people.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Embedded => "spec in the model",
            Self::Sidecar => "spec beside the model",
            Self::Spec => "spec",
        }
    }
}

impl From<Profile> for ptl_spec::Dialect {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Documented => Self::Documented,
            Profile::Android => Self::Android,
        }
    }
}

/// `TOKENIZER=FILE`.
#[derive(Clone, Debug)]
struct Vocabulary {
    /// The member of the spec that holds such vocabularies.
    key: &'static str,
    path: PathBuf,
}

impl Vocabulary {
    fn read(&self) -> anyhow::Result<Json> {
        let text = text(&output::stored(&self.path)?)?;
        if self.key == GPT2 {
            return Ok(Json::parse(&text, &limits())?);
        }
        // Lines end as those of a spec do.
        let text = String::from_utf8(text.into()).or_else(|_| malformed("is not UTF-8"))?;
        Ok(text.replace("\r\n", "\n").trim_end_matches('\n').into())
    }
}

impl FromStr for Vocabulary {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (key, path) = match text.split_once('=') {
            Some(("bert", path)) => (BERT, path),
            Some(("gpt2", path)) => (GPT2, path),
            _ => bail!("{text:?} is neither bert=FILE nor gpt2=FILE"),
        };
        Ok(Self { key, path: path.into() })
    }
}

/// Keys of a spec's vocabularies. Format text: type `tensor_from_string`.
const BERT: &str = "vocabulary_bert";
const GPT2: &str = "vocabulary_gpt2";
/// What a spec may have, in bytes.
const TEXT: u64 = 64 << 20;
/// What tells specs and models apart, in bytes from the start.
const START: u64 = 4096;
