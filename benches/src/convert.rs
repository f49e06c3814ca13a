//! Converting files of weights, not forced to the disk: those that stand in them as they are, four
//! tensors of a `large` each, and compressed ones.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, anyhow, ensure};
use criterion::Throughput;
use modelcrate::{AnyReader, ConvertOptions, Target};
use rten_format::{Constant, ConstantDataType, Graph, Model, Node, NodeKind, Reader, onnx::Export};
use tempfile::TempDir;
use ztensor::{
    Compression, Storage,
    tensor_core::output::{Durability, Output},
};

use crate::{
    Bound::{SpeedAtLeast, TimeAtMost},
    Case, Scale, Topic, fixture,
};

/// Files to convert, and where to.
#[derive(Debug)]
pub struct Convert {
    zt: PathBuf,
    safetensors: PathBuf,
    rten: PathBuf,
    /// A model of one tensor, which fits into one file of ONNX.
    model: PathBuf,
    zstd: PathBuf,
    /// Replaced by every run: the file that was there is removed before the clock runs.
    target: PathBuf,
    bytes: u64,
    _folder: TempDir,
}

impl Topic for Convert {
    const NAME: &'static str = "convert";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let path = |name: &str| folder.path().join(name);
        let elements = fixture::elements(scale.large);
        let names = fixture::names(TENSORS);
        let tensors = || names.iter().map(|name| (name.as_str(), elements.as_slice()));
        let shape = [4, scale.large as u64 / 16];
        let (zt, zstd) = (path("in.zt"), path("zstd.zt"));
        fixture::write_ztensor(
            fixture::unsynced(Storage::default()).create(&zt)?,
            &shape,
            tensors(),
        )?;
        let level = Compression::Zstd { level: 3, frame: None };
        let storage = Storage::default().compression(level);
        let weights = fixture::weights(scale.large / PARTS);
        let parts = (0..PARTS).map(|part| format!("part.{part}")).collect::<Vec<_>>();
        let parts = parts.iter().map(|name| (name.as_str(), weights.as_slice()));
        let shape = [4, weights.len() as u64 / 16];
        fixture::write_ztensor(fixture::unsynced(storage).create(&zstd)?, &shape, parts)?;
        let (safetensors, rten) = (path("in.safetensors"), path("in.rten"));
        convert(&zt, Target::Safetensors, 1, &safetensors)?;
        write_rten(&names, &elements, &rten)?;
        let model = path("model.rten");
        write_rten(&names[..1], &elements, &model)?;
        let (target, bytes) = (path("out"), (scale.large * TENSORS) as u64);
        Ok(Self { zt, safetensors, rten, model, zstd, target, bytes, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let copied = [
            ("zt to safetensors", "convert 4 GiB zt to safetensors", &self.zt, Target::Safetensors),
            (
                "safetensors to zt",
                "convert 4 GiB safetensors to zt",
                &self.safetensors,
                Target::ZTensor,
            ),
            (
                "rten to safetensors",
                "convert 4 GiB rten to safetensors",
                &self.rten,
                Target::Safetensors,
            ),
        ];
        let mut cases = Vec::new();
        for (name, check, from, target) in copied {
            let case = Case::new(name, Throughput::Bytes(self.bytes))
                .make("ours", &self.target, move || convert(from, target, 2, &self.target))
                .make("cp", &self.target, move || cp(from, &self.target))
                .make("copy loop", &self.target, move || {
                    fixture::copy_file(from, &self.target, fixture::PIECE)
                });
            cases.push(case.check(check, "ours", "cp", TimeAtMost(1.15)));
        }
        let bytes = Throughput::Bytes(self.bytes / TENSORS as u64);
        cases.push(
            Case::new("rten to onnx", bytes.clone())
                .make("ours", &self.target, || export(&self.model, &self.target))
                .make("cp", &self.target, || cp(&self.model, &self.target))
                .check("convert 1 GiB rten to onnx", "ours", "cp", TimeAtMost(1.15)),
        );
        let zstd =
            |threads| move || convert(&self.zstd, Target::Safetensors, threads, &self.target);
        cases.push(
            Case::new("zstd zt to safetensors", bytes)
                .make("2 threads", &self.target, zstd(2))
                .make("1 thread", &self.target, zstd(1))
                .check(
                    "convert 1 GiB of zstd, 2 threads",
                    "2 threads",
                    "1 thread",
                    SpeedAtLeast(1.8),
                ),
        );
        Ok(cases)
    }
}

/// Converts a file to another one, which is not forced to the disk.
///
/// # Errors
///
/// Where a file cannot be read or written.
pub fn convert(from: &Path, target: Target, threads: usize, to: &Path) -> Result<()> {
    let reader = AnyReader::open(from)?;
    let set = reader.tensor_set()?;
    let options = ConvertOptions::default().threads(fixture::threads(threads));
    let conversion = set.convert_to(target, &options);
    let conversion = conversion.map_err(|refused| anyhow!("{refused:?}"))?;
    let file = conversion.files().next().ok_or_else(|| anyhow!("no file"))?;
    let output = Output { durability: Durability::Cached, ..Output::default() };
    Ok(file.write(output.create(to)?, |_| ())?.commit(output.existing)?)
}

/// Exports a model of RTen to ONNX, which is not forced to the disk.
///
/// # Errors
///
/// Where a file cannot be read or written.
pub fn export(from: &Path, to: &Path) -> Result<()> {
    Export::new(&Reader::open(from)?).durability(Durability::Cached).write(to)?;
    Ok(())
}

fn cp(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("--reflink=never").arg(from).arg(to).status()?;
    ensure!(status.success(), "cp failed: {status}");
    Ok(())
}

/// Writes a model of version 2 that has nothing but constants.
///
/// # Errors
///
/// Where the file cannot be written.
pub fn write_rten(names: &[String], elements: &[u8], path: &Path) -> Result<()> {
    let columns = u32::try_from(elements.len() / 16)?;
    let mut graph = Graph::default();
    for name in names {
        let constant = Constant::described([4, columns], ConstantDataType::Float32);
        graph.nodes.push(Node::named(name, NodeKind::Constant(constant)));
    }
    let model = Model { graph, ..Model::default() };
    let options = rten_format::WriteOptions::default();
    let mut writer = options.durability(Durability::Cached).create(path, &model)?;
    while writer.pending().is_some() {
        writer.add(elements)?;
    }
    writer.finish()?;
    Ok(())
}

/// Tensors of the files that are copied.
const TENSORS: usize = 4;

/// Tensors of the file that is compressed.
const PARTS: usize = 64;
