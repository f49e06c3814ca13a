#[cfg(feature = "circle")]
mod model;
mod tables;

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{bail, ensure};
use clap::ValueEnum;
use modelcrate::{
    AnyReader, Format as ModelFormat, ReadOptions,
    graph::{Graph as ModelGraph, Selection},
    tensor_core::text::Quoted,
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    glob::Glob,
    options::{Format, Input, Print, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
    write::Writing,
};

/// Show what computes what in a model, or how the models of a package are connected
///
/// Of RTen, Circle and TFLite models it shows every operator with what goes in and what comes out,
/// subgraphs included. Of an nnpackage it shows what goes from one model into another, and the graphs
/// of each; of a carton what its runner takes and gives; of a PyTorch Live model its modules and, for
/// each method, what it calls. A file whose name ends in .onnx is read as an ONNX model, such as convert
/// makes. Of a file of circle-partitioner, .conn.json, which names the inputs and
/// outputs of the parts of a model, it shows what connections follow; the exit status is 1 where
/// nothing makes one of them. Only documents are read, whatever the size of the constants.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate graph model.rten
  modelcrate graph model.tflite -o model.svg
  modelcrate graph model.rten --collapse 2 -o model.svg
  modelcrate graph model.rten --from /encoder/Conv --depth 3
  modelcrate graph --format dot model.ptl | dot -Tpdf > model.pdf
  modelcrate graph models.zip -o models.mmd
  modelcrate graph --model 1 models.zip
  modelcrate graph --format json model.rten | jq -r '.subgraphs[].nodes[].operator'")]
pub(crate) struct Graph {
    /// The model or nnpackage, or a file .conn.json; - is standard input
    #[arg(value_name = "FILE")]
    input: Input,
    /// How the graph is written; text, or what the end of OUT says: .txt, .dot, .gv, .mmd, .svg, .json
    #[arg(long, value_enum)]
    format: Option<Language>,
    /// Show only what these nodes lead to: names of nodes or of what they make, or patterns with * and ?
    #[arg(long, value_name = "NODE")]
    from: Option<Glob>,
    /// Show only what leads to these nodes; with --from what lies between
    #[arg(long, value_name = "NODE")]
    to: Option<Glob>,
    /// Show only what is at most N steps away from --from or --to
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Show all nodes as one whose names share their first N parts, as encoder/layer.3/MatMul has two
    /// before the last
    #[arg(long, value_name = "N")]
    collapse: Option<usize>,
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
    /// One JSON object: nodes, and the values between them
    Json,
    /// DOT, for Graphviz
    Dot,
    /// Mermaid, for Markdown
    Mermaid,
    /// A picture, for browsers
    #[cfg(feature = "svg")]
    Svg,
    /// One JSON object with every table of the file, as the format has them
    Tables,
}

#[cfg(feature = "circle")]
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SchemaName {
    /// What nnpackages are made for
    Circle,
    /// What Circle was made from
    Tflite,
}

/// What is to be written, and how.
struct Drawn {
    path: String,
    graph: ModelGraph,
    /// Names that are read or put out, and that nothing makes.
    missing: Vec<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    path: &'a str,
    #[serde(flatten)]
    graph: &'a ModelGraph,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    missing: &'a [String],
}

impl Graph {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        if let Some(path) = &self.output {
            let is_input = !is_stdio(path) && same_file(&self.input, path);
            ensure!(!is_input, "{}: is the input, expected another file", path.display());
        }
        let language = self.language()?;
        let (text, outcome) = self.drawn(language).about(&self.input)?;
        match &self.output {
            None => output::print_text(&text)?,
            Some(path) => self.write(path, &text)?,
        }
        Ok(outcome)
    }

    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let print = Print { format: Format::Human };
        let write = Writing { overwrite: self.overwrite, dry_run: false, print };
        let mut sink = write.create(path).about(path)?;
        sink.write_all(text.as_bytes()).about(path)?;
        let bytes = output::size(sink.commit(path)?);
        let shown = path.display().to_string();
        write.report(path, &(), &format!("{}: written, {bytes}\n", escape(&shown)))
    }

    fn language(&self) -> anyhow::Result<Language> {
        let ends = [
            ("txt", Language::Text),
            ("dot", Language::Dot),
            ("gv", Language::Dot),
            ("mmd", Language::Mermaid),
            ("json", Language::Json),
            #[cfg(feature = "svg")]
            ("svg", Language::Svg),
        ];
        output::by_end(self.format, self.output.as_deref(), &ends)
    }

    /// Returns the drawing, and whether all is there that it is to show.
    fn drawn(&self, language: Language) -> anyhow::Result<(String, Outcome)> {
        let path = self.input.display().to_string();
        let is_part = self.from.is_some() || self.to.is_some() || self.depth.is_some();
        ensure!(
            language != Language::Tables || !(is_part || self.collapse.is_some()),
            "tables are those of the whole file: expected no --from, --to, --depth or --collapse"
        );
        #[cfg(feature = "nnpackage")]
        if path.ends_with(".conn.json") {
            let partition = tables::partition(&self.input)?;
            let wiring = partition.wiring()?;
            let outcome = if wiring.missing.is_empty() { Outcome::Fine } else { Outcome::Invalid };
            if language == Language::Tables {
                return Ok((tables::of_partition(path, &partition, wiring)?, outcome));
            }
            let graph = ModelGraph::of_partition(&partition)?;
            let drawn = Drawn { path, graph, missing: wiring.missing };
            return Ok((self.text(drawn, language)?, outcome));
        }
        if self.input.extension().is_some_and(|end| end.eq_ignore_ascii_case("onnx")) {
            ensure!(language != Language::Tables, "is an ONNX model, which has no tables");
            let graph = ModelGraph::of_onnx(&output::source(&self.input)?)?;
            return Ok((
                self.text(Drawn { path, graph, missing: Vec::new() }, language)?,
                Outcome::Fine,
            ));
        }
        let (reader, path) = self.reader(path)?;
        let text = match language {
            Language::Tables => tables::of(&reader, path)?,
            _ => match ModelGraph::of(&reader)? {
                Some(graph) => self.text(Drawn { path, graph, missing: Vec::new() }, language)?,
                None => return refused(reader.format()),
            },
        };
        Ok((text, Outcome::Fine))
    }

    /// Opens the file, or the model that is meant of it; returns what that is called, too.
    fn reader(&self, path: String) -> anyhow::Result<(AnyReader, String)> {
        #[cfg(feature = "circle")]
        if let Some(reader) = self.by_schema()? {
            return Ok((AnyReader::Circle(reader), path));
        }
        match output::open(&self.input, ReadOptions::default())? {
            #[cfg(feature = "nnpackage")]
            AnyReader::NnPackage(package) if let Some(index) = self.model => {
                let (entry, reader) = model::of_package(&package, index, self.schema)?;
                Ok((AnyReader::Circle(reader), format!("{path}: {entry:?}")))
            }
            #[cfg(feature = "nnpackage")]
            other if self.model.is_some() => {
                bail!("is {}, expected an nnpackage for --model", other.format().title())
            }
            reader => Ok((reader, path)),
        }
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

    /// Writes the part of a graph that is meant.
    fn text(&self, mut drawn: Drawn, language: Language) -> anyhow::Result<String> {
        if self.from.is_some() || self.to.is_some() {
            let mut selection = Selection::default();
            if let Some(glob) = &self.from {
                selection = selection.from(|name| glob.matches(name));
            }
            if let Some(glob) = &self.to {
                selection = selection.to(|name| glob.matches(name));
            }
            if let Some(steps) = self.depth {
                selection = selection.depth(steps);
            }
            drawn.graph = match drawn.graph.select(&selection) {
                Some(graph) => graph,
                None => bail!("has no such node for --from or --to, or nothing between them"),
            };
        } else {
            ensure!(
                self.depth.is_none(),
                "--depth is counted from a node: expected --from or --to"
            );
        }
        if let Some(levels) = self.collapse {
            drawn.graph = drawn.graph.collapsed(levels);
        }
        drawn.text(language)
    }
}

impl Drawn {
    fn text(&self, language: Language) -> anyhow::Result<String> {
        let Self { path, graph, missing } = self;
        Ok(match language {
            Language::Text => {
                let mut text = format!("{}\n\n{graph}", escape(path));
                for name in missing {
                    let name = Quoted(name);
                    let _ = writeln!(
                        text,
                        "  {name} is made by no part, and is not an input of the source"
                    );
                }
                text
            }
            Language::Json => output::json(&Shown { path, graph, missing })?,
            Language::Dot => graph.dot(),
            Language::Mermaid => graph.mermaid(),
            #[cfg(feature = "svg")]
            Language::Svg => graph.svg().map_err(|error| {
                anyhow::Error::from(error)
                    .context("cannot be drawn: try --collapse, --from or --to")
            })?,
            Language::Tables => bail!("tables are not a drawing"),
        })
    }
}

/// Returns what `graph --format json` prints of a file that was opened from `path`.
///
/// # Errors
///
/// Where the format has no graph, or the part of the file cannot be read that has it.
pub fn graph_json(reader: &AnyReader, path: String) -> anyhow::Result<String> {
    match ModelGraph::of(reader)? {
        Some(graph) => Drawn { path, graph, missing: Vec::new() }.text(Language::Json),
        None => refused(reader.format()),
    }
}

fn refused<T>(format: ModelFormat) -> anyhow::Result<T> {
    bail!("is {}, which has no graph to be drawn, expected a model", format.title())
}
