//! Writing RTen files that are not forced to the disk, and editing them.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Result;
use criterion::Throughput;
use rten_format::{
    Constant, ConstantDataType, Editor, GraphBuilder, Model, Reader, Rewrite, WriteOptions,
    tensor_core::output::Durability,
};
use tempfile::TempDir;

use super::{Network, write_huge};
use crate::{
    Bound::{TimeAtMost, Within},
    Case, Scale, Topic,
    case::time,
    fixture,
    fixture::PIECE,
};

/// A model of large weights, in memory and in a file, and one beside a tensor of 4 GiB.
#[derive(Debug)]
pub struct RtenWrite {
    model: Model,
    /// The elements of one constant.
    weights: Vec<u8>,
    file: PathBuf,
    huge: PathBuf,
    /// Replaced by every run: the file that was there is removed before the clock runs.
    target: PathBuf,
    _folder: TempDir,
}

impl Topic for RtenWrite {
    const NAME: &'static str = "rten_write";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [file, huge, target] =
            ["large.rten", "huge.rten", "a.rten"].map(|name| folder.path().join(name));
        let weights = fixture::elements(scale.large / CONSTANTS);
        let model = large(weights.len())?;
        let this = Self { model, weights, file, huge, target, _folder: folder };
        this.write(&this.file)?;
        let (model, len) = Network::of_scale(scale);
        write_huge(&this.huge, model, len)?;
        Ok(this)
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.weights(), self.rewrite(), self.edit()])
    }
}

impl RtenWrite {
    fn weights(&self) -> Case<'_> {
        Case::new("weights", self.throughput())
            .make("ours", &self.target, || self.write(&self.target))
            .make("plain writes", &self.target, || self.copy())
            .check("rten: write 1 GiB of weights, no sync", "ours", "plain writes", TimeAtMost(1.1))
    }

    fn rewrite(&self) -> Case<'_> {
        Case::new("rewrite", self.throughput())
            .make("ours", &self.target, || {
                let reader = Reader::open(&self.file)?;
                Ok(Rewrite::new(&reader).options(unsynced()).to_v2(&self.target)?)
            })
            .make("copy loop", &self.target, || fixture::copy_file(&self.file, &self.target, PIECE))
            .check("rten: rewrite a file of 1 GiB, no sync", "ours", "copy loop", TimeAtMost(1.1))
    }

    /// Sets the description to another text each time, with what forces it to the disk. The file
    /// grows by its model data.
    fn edit(&self) -> Case<'_> {
        let mut turn = 0_u64;
        let edit = move || {
            turn += 1;
            time(|| {
                let mut editor = Editor::open(&self.huge)?;
                let metadata = editor.model_mut().metadata.get_or_insert_default();
                metadata.description = Some(format!("edited {turn} times"));
                Ok(editor.commit()?)
            })
        };
        Case::new("edit", Throughput::Elements(1))
            .side("4 GiB", edit)
            .run("write and sync", || {
                let mut file = File::create(&self.target)?;
                file.write_all(&self.weights[..4096])?;
                file.sync_data()?;
                file.write_all(&self.weights[..16])?;
                Ok(file.sync_data()?)
            })
            .check(
                "rten: edit metadata in a file of 4 GiB, synced",
                "4 GiB",
                "write and sync",
                Within(20.0),
            )
    }

    fn throughput(&self) -> Throughput {
        Throughput::Bytes((self.weights.len() * CONSTANTS) as u64)
    }

    fn write(&self, path: &Path) -> Result<()> {
        let mut writer = unsynced().create(path, &self.model)?;
        while writer.pending().is_some() {
            writer.add(&self.weights)?;
        }
        writer.finish()?;
        Ok(())
    }

    /// Writes the same weights one after another.
    fn copy(&self) -> Result<()> {
        let mut file = File::create(&self.target)?;
        for _ in 0..CONSTANTS {
            file.write_all(&self.weights)?;
        }
        Ok(())
    }
}

/// Makes a model of constants of so many bytes each, whose elements are given later.
fn large(bytes: usize) -> Result<Model> {
    let mut graph = GraphBuilder::new();
    for number in 0..CONSTANTS {
        let elements = u32::try_from(bytes / 4)?;
        let constant = Constant::described([elements], ConstantDataType::Float32);
        let id = graph.constant(format!("layers.{number}.weight"), constant)?;
        graph.output(id)?;
    }
    Ok(Model { graph: graph.finish(), metadata: None })
}

fn unsynced() -> WriteOptions {
    WriteOptions::default().durability(Durability::Cached)
}

/// How many constants the weights are in.
const CONSTANTS: usize = 64;
