mod draw;
mod wiring;

use std::path::Path;

use anyhow::ensure;
use clap::ValueEnum;
use modelcrate::{nnpackage::Partition, tensor_core::Limits};
use serde::Serialize;

use self::wiring::{Attributes, Wiring};
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
struct Connected<'a> {
    path: String,
    /// What stands in a manifest.
    manifest: Attributes<'a>,
    /// Names that are read or put out, and that nothing makes.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    missing: &'a [String],
}

impl Connect {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (path, wiring) = match (&self.package, &self.from_conn) {
            (Some(package), _) => (package, Wiring::of_package(&super::package(package)?)),
            (None, Some(file)) => (file, partition(file).about(file)?),
            (None, None) => anyhow::bail!("there is neither a package nor --from-conn"),
        };
        let path = path.display().to_string();
        let is_whole = wiring.missing.is_empty();
        match self.print.format {
            Format::Human => {
                let wiring = wiring.in_effect();
                let text = match self.language {
                    Language::Text => format!("{}\n{}", escape(&path), draw::text(&wiring)),
                    Language::Dot => draw::dot(&wiring),
                    Language::Mermaid => draw::mermaid(&wiring),
                };
                output::print_text(&text)?;
            }
            Format::Json | Format::Jsonl => {
                let manifest = wiring.attributes();
                let connected = Connected { path, manifest, missing: &wiring.missing };
                output::print_result(self.print, &connected, "")?;
            }
        }
        Ok(if is_whole { Outcome::Fine } else { Outcome::Invalid })
    }
}

/// Reads a file of circle-partitioner and matches its names.
fn partition(file: &Path) -> anyhow::Result<Wiring> {
    let source = super::source(file)?;
    let len = source.len();
    ensure!(len <= MAX_CONN, "has {len} bytes, over the limit of {MAX_CONN} for a *.conn.json");
    let extent = modelcrate::tensor_core::Extent::first(len);
    let partition = Partition::parse(&source.read(extent, "conn.json")?, &Limits::default())?;
    Ok(Wiring::of_partition(&partition, partition.wiring()?))
}

/// Bytes that a file of circle-partitioner may have.
const MAX_CONN: u64 = 16 << 20;
