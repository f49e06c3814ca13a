use std::path::Path;

use clap::ValueEnum;
use modelcrate::{
    nnpackage::{Connection, Diagram, IoRef, ModelFile, Partition},
    tensor_core::Limits,
};
use serde::{Serialize, Serializer};

use super::given::{MAX_CONN, read_all};
use crate::{
    escape::escape,
    failure::About,
    options::{Format, Input, Print},
    outcome::Outcome,
    output,
};

/// Draw how the models of a package are connected
///
/// Models are boxes; what goes into the package, from one model into another, and out of the package
/// are the arrows. A reference such as 1:0:2 is model 1, subgraph 0, input or output 2. Of a single
/// model the inputs and outputs are those of the package.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage connect models.zip
  modelcrate nnpackage connect --language dot models.zip | dot -Tsvg > models.svg
  modelcrate nnpackage connect --from-conn net.conn.json --format json | jq .manifest")]
pub(crate) struct Connect {
    /// The package, as an archive or a folder; - is standard input
    #[arg(required_unless_present = "from_conn")]
    package: Option<Input>,
    /// Instead of a package, show what connections follow from this file of circle-partitioner, which
    /// names the inputs and outputs of the parts of a model; - is standard input
    #[arg(long, value_name = "FILE.conn.json", conflicts_with = "package")]
    from_conn: Option<Input>,
    /// The language of the drawing
    #[arg(long, value_enum, default_value_t, conflicts_with = "format")]
    language: Language,
    #[command(flatten)]
    print: Print,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Language {
    /// One line for each connection
    #[default]
    Text,
    /// DOT, for Graphviz
    Dot,
    /// Mermaid, for Markdown
    Mermaid,
}

#[derive(Serialize)]
struct Connected {
    path: String,
    /// What stands in a manifest.
    manifest: Attributes,
    /// Names that are read or put out, and that nothing makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

/// The attributes of a manifest, under their names there.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes {
    models: Vec<String>,
    #[serde(serialize_with = "references")]
    pkg_inputs: Vec<IoRef>,
    #[serde(serialize_with = "references")]
    pkg_outputs: Vec<IoRef>,
    model_connect: Vec<Pair>,
}

#[derive(Serialize)]
struct Pair {
    #[serde(serialize_with = "reference")]
    from: IoRef,
    #[serde(serialize_with = "references")]
    to: Vec<IoRef>,
}

impl Connect {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (path, diagram, connected) = match (&self.package, &self.from_conn) {
            (Some(package), _) => of_package(package)?,
            (None, Some(file)) => of_partition(file).about(file)?,
            (None, None) => anyhow::bail!("there is neither a package nor --from-conn"),
        };
        match self.print.format {
            Format::Human => {
                let text = match self.language {
                    Language::Text => format!("{}\n{diagram}", escape(&path)),
                    Language::Dot => diagram.dot().to_string(),
                    Language::Mermaid => diagram.mermaid().to_string(),
                };
                output::print_text(&text)?;
            }
            Format::Json | Format::Jsonl => output::print_result(self.print, &connected, "")?,
        }
        Ok(if connected.missing.is_empty() { Outcome::Fine } else { Outcome::Invalid })
    }
}

fn of_package(package: &Path) -> anyhow::Result<(String, Diagram, Connected)> {
    let (reader, path) = (super::package(package)?, package.display().to_string());
    let manifest = reader.manifest().clone();
    let models = reader.models().map(ModelFile::path).map(str::to_owned);
    let manifest = Attributes {
        models: models.collect(),
        pkg_inputs: manifest.pkg_inputs,
        pkg_outputs: manifest.pkg_outputs,
        model_connect: pairs(manifest.connections),
    };
    let connected = Connected { path: path.clone(), manifest, missing: Vec::new() };
    Ok((path, reader.diagram(), connected))
}

/// Reads a file of circle-partitioner and matches its names.
fn of_partition(file: &Path) -> anyhow::Result<(String, Diagram, Connected)> {
    let text = read_all(file, MAX_CONN)?;
    let partition = Partition::parse(&text, &Limits::default())?;
    let (wiring, path) = (partition.wiring()?, file.display().to_string());
    let manifest = Attributes {
        models: partition.parts.iter().map(|part| part.file.clone()).collect(),
        pkg_inputs: wiring.pkg_inputs,
        pkg_outputs: wiring.pkg_outputs,
        model_connect: pairs(wiring.connections),
    };
    let connected = Connected { path: path.clone(), manifest, missing: wiring.missing };
    Ok((path, partition.diagram()?, connected))
}

fn pairs(connections: Vec<Connection>) -> Vec<Pair> {
    connections.into_iter().map(|Connection { from, to }| Pair { from, to }).collect()
}

fn reference<S: Serializer>(of: &IoRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(of)
}

fn references<S: Serializer>(of: &[IoRef], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(of.iter().map(IoRef::to_string))
}
