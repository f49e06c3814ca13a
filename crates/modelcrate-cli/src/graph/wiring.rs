//! How the models of a package are connected.

use std::path::Path;

use anyhow::ensure;
use modelcrate::{
    nnpackage::{Connection, Diagram, IoRef, ModelFile, Partition, Reader},
    tensor_core::{Extent, Limits},
};
use serde::{Serialize, Serializer};

use super::Language;
use crate::{escape::escape, outcome::Outcome, output};

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

/// Draws the connections of a package.
pub(super) fn of_package(
    reader: &Reader,
    path: String,
    language: Language,
) -> anyhow::Result<String> {
    let manifest = reader.manifest().clone();
    let manifest = Attributes {
        models: reader.models().map(ModelFile::path).map(str::to_owned).collect(),
        pkg_inputs: manifest.pkg_inputs,
        pkg_outputs: manifest.pkg_outputs,
        model_connect: pairs(manifest.connections),
    };
    let connected = Connected { path, manifest, missing: Vec::new() };
    draw(&reader.diagram(), &connected, language)
}

/// Reads a file of circle-partitioner, matches its names, and draws what follows.
pub(super) fn of_partition(
    file: &Path,
    path: String,
    language: Language,
) -> anyhow::Result<(String, Outcome)> {
    let source = output::source(file)?;
    let len = source.len();
    ensure!(len <= MAX_CONN, "has {len} bytes, over the limit of {MAX_CONN}");
    let text = source.read(Extent::first(len), "file")?;
    let partition = Partition::parse(&text, &Limits::default())?;
    let wiring = partition.wiring()?;
    let manifest = Attributes {
        models: partition.parts.iter().map(|part| part.file.clone()).collect(),
        pkg_inputs: wiring.pkg_inputs,
        pkg_outputs: wiring.pkg_outputs,
        model_connect: pairs(wiring.connections),
    };
    let is_whole = wiring.missing.is_empty();
    let connected = Connected { path, manifest, missing: wiring.missing };
    let text = draw(&partition.diagram()?, &connected, language)?;
    Ok((text, if is_whole { Outcome::Fine } else { Outcome::Invalid }))
}

fn draw(diagram: &Diagram, connected: &Connected, language: Language) -> anyhow::Result<String> {
    Ok(match language {
        Language::Text => format!("{}\n{diagram}", escape(&connected.path)),
        Language::Json => output::json(connected)?,
        Language::Dot => diagram.dot(),
        Language::Mermaid => diagram.mermaid(),
    })
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

/// Bytes that a file of circle-partitioner may have.
const MAX_CONN: u64 = 16 << 20;
