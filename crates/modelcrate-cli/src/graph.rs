#[cfg(feature = "circle")]
mod model;
#[cfg(feature = "nnpackage")]
mod wiring;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{bail, ensure};
use clap::ValueEnum;
use modelcrate::{AnyReader, Format as ModelFormat, ReadOptions};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Format, Input, Print, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
    write::Writing,
};

/// Show what computes what in a model, or how the models of a package are connected
///
/// Of RTen, Circle and TFLite models it shows every operator with what goes in and what comes out,
/// subgraphs included; as text and JSON everything else that is in them, too, but for the elements of
/// large constants. Of an nnpackage it shows what goes from one model into another: a reference such
/// as 1:0:2 is model 1, subgraph 0, input or output 2. Of a file of circle-partitioner, .conn.json,
/// which names the inputs and outputs of the parts of a model, it shows what connections follow; the
/// exit status is 1 where nothing makes one of them. Only documents are read, whatever the size of the
/// constants.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate graph model.rten
  modelcrate graph --format dot model.tflite | dot -Tsvg > model.svg
  modelcrate graph models.zip -o models.mmd
  modelcrate graph --model 1 models.zip
  modelcrate graph --format json model.rten | jq '.model.graph.nodes[].name'")]
pub(crate) struct Graph {
    /// The model or nnpackage, or a file .conn.json; - is standard input
    #[arg(value_name = "FILE")]
    input: Input,
    /// How the graph is written; text, or what the end of OUT says: .dot, .gv, .mmd, .json
    #[arg(long, value_enum)]
    format: Option<Language>,
    /// The file to write, instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace the output where it is a file that is there
    #[arg(long)]
    overwrite: bool,
    /// Of an nnpackage show this model, by its position in the manifest, from 0
    #[cfg(feature = "nnpackage")]
    #[arg(long, value_name = "INDEX")]
    model: Option<usize>,
    /// Read a model by this schema, whatever its identifier says, as onert does
    #[cfg(feature = "circle")]
    #[arg(long, value_enum)]
    schema: Option<SchemaName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// For people
    Text,
    /// One JSON object, with every table
    Json,
    /// DOT, for Graphviz
    Dot,
    /// Mermaid, for Markdown
    Mermaid,
}

#[cfg(feature = "circle")]
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SchemaName {
    /// What nnpackages are made for
    Circle,
    /// What Circle was made from
    Tflite,
}

impl Graph {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (text, outcome) = self.drawn().about(&self.input)?;
        match &self.output {
            None => output::print_text(&text)?,
            Some(path) => self.write(path, &text)?,
        }
        Ok(outcome)
    }

    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let print = Print { format: Format::Human };
        let write = Writing { overwrite: self.overwrite, dry_run: false, print };
        let is_input = !is_stdio(path) && same_file(&self.input, path);
        ensure!(!is_input, "{}: is the input, expected another file", path.display());
        let mut sink = write.create(path).about(path)?;
        sink.write_all(text.as_bytes()).about(path)?;
        let bytes = output::size(sink.commit(path)?);
        let shown = path.display().to_string();
        write.report(path, &(), &format!("{}: written, {bytes}\n", escape(&shown)))
    }

    fn language(&self) -> Language {
        let end = self.output.as_ref().and_then(|path| path.extension()?.to_str());
        let named = match end.map(str::to_ascii_lowercase).as_deref() {
            Some("dot" | "gv") => Language::Dot,
            Some("mmd" | "mermaid") => Language::Mermaid,
            Some("json") => Language::Json,
            _ => Language::Text,
        };
        self.format.unwrap_or(named)
    }

    /// Returns the drawing, and whether all is there that it is to show.
    fn drawn(&self) -> anyhow::Result<(String, Outcome)> {
        let (path, language) = (self.input.display().to_string(), self.language());
        #[cfg(feature = "nnpackage")]
        if path.ends_with(".conn.json") {
            return wiring::of_partition(&self.input, path, language);
        }
        #[cfg(feature = "circle")]
        if let Some(reader) = self.by_schema()? {
            return Ok((model::draw(path, None, &reader, language)?, Outcome::Fine));
        }
        let text = match output::open(&self.input, ReadOptions::default())? {
            #[cfg(feature = "nnpackage")]
            AnyReader::NnPackage(package) if let Some(index) = self.model => {
                let (entry, reader) = model::of_package(&package, index, self.schema)?;
                model::draw(path, Some(&entry), &reader, language)?
            }
            #[cfg(feature = "nnpackage")]
            other if self.model.is_some() => {
                bail!("is {}, expected an nnpackage for --model", other.format().title())
            }
            reader => of_reader(&reader, path, language)?,
        };
        Ok((text, Outcome::Fine))
    }

    /// Opens a model by a schema, where one is given for what is no package.
    #[cfg(feature = "circle")]
    fn by_schema(&self) -> anyhow::Result<Option<modelcrate::circle_format::Reader>> {
        #[cfg(feature = "nnpackage")]
        if self.model.is_some() {
            return Ok(None);
        }
        let Some(schema) = self.schema else { return Ok(None) };
        Ok(Some(model::by_schema(schema).from_source(output::source(&self.input)?)?))
    }
}

/// Returns what `graph --format json` prints of a file that was opened from `path`.
///
/// # Errors
///
/// Where the format has no graph.
pub fn graph_json(reader: &AnyReader, path: String) -> anyhow::Result<String> {
    of_reader(reader, path, Language::Json)
}

fn of_reader(reader: &AnyReader, path: String, language: Language) -> anyhow::Result<String> {
    match reader {
        #[cfg(feature = "nnpackage")]
        AnyReader::NnPackage(package) => wiring::of_package(package, path, language),
        #[cfg(feature = "circle")]
        AnyReader::Circle(reader) => model::draw(path, None, reader, language),
        #[cfg(feature = "rten")]
        AnyReader::Rten(reader) => of_rten(reader, path, language),
        other => refused(other.format()),
    }
}

#[cfg(feature = "rten")]
fn of_rten(
    reader: &modelcrate::rten_format::Reader,
    path: String,
    language: Language,
) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Shown<'a> {
        path: String,
        version: u8,
        model: &'a modelcrate::rten_format::Model,
    }
    let model = reader.model();
    let version = 1_u8.saturating_add(reader.header().is_some().into());
    Ok(match language {
        Language::Text => model.dump().to_string(),
        Language::Json => output::json(&Shown { path, version, model })?,
        Language::Dot => model.dot(),
        Language::Mermaid => model.mermaid(),
    })
}

fn refused<T>(format: ModelFormat) -> anyhow::Result<T> {
    bail!(
        "is {}, which has no graph to be drawn, expected an RTen, Circle or TFLite model or an nnpackage",
        format.title()
    )
}
