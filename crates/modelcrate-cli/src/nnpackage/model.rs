mod text;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use modelcrate::{
    circle_format::{self, Schema},
    nnpackage::{Error, Reader},
};
use serde::Serialize;

use super::Opened;
use crate::{
    failure::About,
    options::{Format, Input, Print},
    outcome::Outcome,
    output,
};

/// Show a Circle or TFLite model: graphs, inputs and outputs, operators, signatures, constants
///
/// Only tables are read, whatever the size of the constants. JSON has every table of the model, but
/// not the bytes of buffers. Of a package the first model is shown, which is the one that onert
/// takes for the default.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage model model.circle
  modelcrate nnpackage model package.zip 1
  modelcrate nnpackage model --format json model.tflite | jq '.model.operator_codes'")]
pub(crate) struct Model {
    /// The model, or the package that it is in, as an archive or a folder; - is standard input
    #[arg(value_name = "PACKAGE|MODEL")]
    input: Input,
    /// The position of the model in the manifest of the package
    index: Option<usize>,
    /// Read the model by this schema, whatever its identifier says, as onert does
    #[arg(long, value_enum)]
    schema: Option<SchemaName>,
    /// List every constant; without it at most 40 are shown to people
    #[arg(long)]
    tensors: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SchemaName {
    /// What nnpackages are made for
    Circle,
    /// What Circle was made from
    Tflite,
}

#[derive(Serialize)]
struct Shown<T> {
    path: String,
    /// Of a model in a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    model: T,
}

/// A model, and where in a package it is.
struct Picked {
    entry: Option<String>,
    reader: circle_format::Reader,
}

impl Model {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let Picked { entry, reader } = self.pick()?;
        let path = self.input.display().to_string();
        match self.print.format {
            Format::Human => {
                let shown = if self.tensors { usize::MAX } else { SHOWN };
                let text = text::describe(&path, entry.as_deref(), &reader, shown);
                output::print_text(&text)?;
            }
            Format::Json | Format::Jsonl => {
                let model = reader.dump();
                output::print_result(self.print, &Shown { path, entry, model }, "")?;
            }
        }
        Ok(Outcome::Fine)
    }

    fn pick(&self) -> anyhow::Result<Picked> {
        let schema = self.schema.map(Schema::from);
        match super::open_as(&self.input, schema)? {
            Opened::Package(package) => self.of_package(&package, schema).about(&self.input),
            Opened::Model(reader) => {
                let index: anyhow::Result<()> = match self.index {
                    Some(_) => Err(anyhow!("is a model by itself, which has no position")),
                    None => Ok(()),
                };
                index.about(&self.input)?;
                Ok(Picked { entry: None, reader })
            }
        }
    }

    fn of_package(&self, package: &Reader, schema: Option<Schema>) -> anyhow::Result<Picked> {
        let (index, count) = (self.index.unwrap_or_default(), package.models().len());
        let Some(model) = package.model(index) else {
            let models = if count == 1 { "model" } else { "models" };
            bail!("has {count} {models}, so that there is none at position {index}")
        };
        let opened = match schema {
            Some(_) => {
                let source = model.file().source();
                source.and_then(|source| Ok(super::model_options(schema).from_source(source)?))
            }
            None => model.open().cloned(),
        };
        let entry = model.path().to_owned();
        let reader = opened.map_err(|error| match error {
            // It names the file itself.
            error @ Error::File { .. } => anyhow::Error::from(error),
            error => anyhow::Error::from(error).context(format!("{entry:?}")),
        })?;
        Ok(Picked { entry: Some(entry), reader })
    }
}

impl From<SchemaName> for Schema {
    fn from(name: SchemaName) -> Self {
        match name {
            SchemaName::Circle => Self::Circle,
            SchemaName::Tflite => Self::Tflite,
        }
    }
}

/// Constants that are listed when not all were asked for.
const SHOWN: usize = 40;
