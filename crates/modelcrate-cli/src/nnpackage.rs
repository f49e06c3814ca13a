//! What only nnpackages have: a runtime that checks nothing, and models that are wired together.

mod build;
mod check;
mod config;
mod connect;
mod edit;
mod edit_model;
mod extract;
mod given;
mod merge;
mod model;
mod split;

use std::path::Path;

use clap::Subcommand;
use modelcrate::{
    circle_format::{self, Schema},
    nnpackage::{Content, Reader},
    tensor_core::{Extent, Source},
};

use crate::{failure::About, options::is_stdio, outcome::Outcome, output};

#[derive(Debug, Subcommand)]
pub(crate) enum Nnpackage {
    Build(Box<build::Build>),
    Check(check::Check),
    Config(config::Config),
    Connect(connect::Connect),
    Edit(Box<edit::Edit>),
    EditModel(Box<edit_model::EditModel>),
    Extract(extract::Extract),
    Merge(merge::Merge),
    Model(model::Model),
    Split(split::Split),
}

impl Nnpackage {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Build(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Config(command) => command.run(),
            Self::Connect(command) => command.run(),
            Self::Edit(command) => command.run(),
            Self::EditModel(command) => command.run(),
            Self::Extract(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::Model(command) => command.run(),
            Self::Split(command) => command.run(),
        }
    }
}

/// What an argument leads to.
enum Opened {
    Package(Reader),
    Model(circle_format::Reader),
}

/// Opens a package or a model by itself, or reads either from standard input.
fn open(input: &Path) -> anyhow::Result<Opened> {
    open_as(input, None)
}

/// Like [`open`], but takes what is not an archive for a model of a schema, if one is given.
fn open_as(input: &Path, schema: Option<Schema>) -> anyhow::Result<Opened> {
    let opened = || {
        if !is_stdio(input) && input.is_dir() {
            return Ok(Opened::Package(Reader::open(input)?));
        }
        let source = source(input)?;
        let start = source.read(Extent::first(source.len().min(START)), "start of the file")?;
        let found = Content::of(&start);
        let is_model = schema.or(found.schema()).is_some() || is_called_model(input);
        if found != Content::Zip && is_model {
            return Ok(Opened::Model(model_options(schema).from_source(source)?));
        }
        anyhow::Ok(Opened::Package(Reader::from_source(source)?))
    };
    opened().about(input)
}

/// Tells whether a file is meant to be a model, whatever is in it.
fn is_called_model(input: &Path) -> bool {
    input.extension().is_some_and(|extension| extension == "circle" || extension == "tflite")
}

/// Returns how a model is opened: by its identifier, or by a schema that is given.
fn model_options(schema: Option<Schema>) -> circle_format::ReadOptions {
    let options = circle_format::Reader::options();
    schema.map_or(options, |schema| options.schema(schema))
}

/// Opens a package, or reads the archive of one from standard input.
fn package(input: &Path) -> anyhow::Result<Reader> {
    let reader = || {
        if is_stdio(input) {
            return Ok(Reader::from_source(source(input)?)?);
        }
        anyhow::Ok(Reader::open(input)?)
    };
    reader().about(input)
}

fn source(input: &Path) -> anyhow::Result<Source> {
    if is_stdio(input) {
        return Ok(Source::from_bytes(output::stdin()?));
    }
    Ok(Source::open(input)?)
}

/// Bytes that tell a model from a package.
const START: u64 = 8;
