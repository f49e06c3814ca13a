//! Documents with every table, as JSON.

use modelcrate::AnyReader;
use serde::Serialize;
#[cfg(feature = "nnpackage")]
use {
    crate::options::Input,
    anyhow::ensure,
    modelcrate::{
        nnpackage::{Connection, IoRef, ModelFile, Partition, Reader, Wiring},
        tensor_core::{Extent, Limits},
    },
    serde::Serializer,
};

use crate::output;

/// Returns all that the document of a file says.
pub(super) fn of(reader: &AnyReader, path: String) -> anyhow::Result<String> {
    match reader {
        #[cfg(feature = "nnpackage")]
        AnyReader::NnPackage(package) => of_package(package, path),
        #[cfg(feature = "circle")]
        AnyReader::Circle(reader) => of_circle(reader, path),
        #[cfg(feature = "rten")]
        AnyReader::Rten(reader) => of_rten(reader, path),
        other => anyhow::bail!(
            "is {}, expected an RTen, Circle or TFLite model or an nnpackage for --format tables",
            other.format().title()
        ),
    }
}

#[cfg(feature = "rten")]
fn of_rten(reader: &modelcrate::rten_format::Reader, path: String) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Shown<'a> {
        path: String,
        version: u8,
        model: &'a modelcrate::rten_format::Model,
    }
    let version = 1_u8.saturating_add(reader.header().is_some().into());
    Ok(output::json(&Shown { path, version, model: reader.model() })?)
}

#[cfg(feature = "circle")]
fn of_circle(reader: &modelcrate::circle_format::Reader, path: String) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Shown<T> {
        path: String,
        model: T,
    }
    Ok(output::json(&Shown { path, model: reader.dump() })?)
}

/// How models are connected.
#[cfg(feature = "nnpackage")]
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
#[cfg(feature = "nnpackage")]
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

#[cfg(feature = "nnpackage")]
#[derive(Serialize)]
struct Pair {
    #[serde(serialize_with = "reference")]
    from: IoRef,
    #[serde(serialize_with = "references")]
    to: Vec<IoRef>,
}

#[cfg(feature = "nnpackage")]
fn of_package(reader: &Reader, path: String) -> anyhow::Result<String> {
    let manifest = reader.manifest().clone();
    let manifest = Attributes {
        models: reader.models().map(ModelFile::path).map(str::to_owned).collect(),
        pkg_inputs: manifest.pkg_inputs,
        pkg_outputs: manifest.pkg_outputs,
        model_connect: pairs(manifest.connections),
    };
    Ok(output::json(&Connected { path, manifest, missing: Vec::new() })?)
}

/// Reads a file of circle-partitioner.
#[cfg(feature = "nnpackage")]
pub(super) fn partition(file: &Input) -> anyhow::Result<Partition> {
    let source = output::source(file)?;
    let len = source.len();
    ensure!(len <= MAX_CONN, "has {len} bytes, over the limit of {MAX_CONN}");
    let text = source.read(Extent::first(len), "file")?;
    Ok(Partition::parse(&text, &Limits::default())?)
}

/// Returns the manifest that follows from a file of circle-partitioner.
#[cfg(feature = "nnpackage")]
pub(super) fn of_partition(
    path: String,
    partition: &Partition,
    wiring: Wiring,
) -> anyhow::Result<String> {
    let manifest = Attributes {
        models: partition.parts.iter().map(|part| part.file.clone()).collect(),
        pkg_inputs: wiring.pkg_inputs,
        pkg_outputs: wiring.pkg_outputs,
        model_connect: pairs(wiring.connections),
    };
    Ok(output::json(&Connected { path, manifest, missing: wiring.missing })?)
}

#[cfg(feature = "nnpackage")]
fn pairs(connections: Vec<Connection>) -> Vec<Pair> {
    connections.into_iter().map(|Connection { from, to }| Pair { from, to }).collect()
}

#[cfg(feature = "nnpackage")]
fn reference<S: Serializer>(of: &IoRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(of)
}

#[cfg(feature = "nnpackage")]
fn references<S: Serializer>(of: &[IoRef], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(of.iter().map(IoRef::to_string))
}

/// Bytes that a file of circle-partitioner may have.
#[cfg(feature = "nnpackage")]
const MAX_CONN: u64 = 16 << 20;
