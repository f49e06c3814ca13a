//! Building packages, and writing models, that are not forced to the disk.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ::nnpackage::{
    Builder, ConfigChange, Edit, Reader, WriteOptions,
    circle_format::{BufferPlacement, Reader as ModelReader, WriteOptions as ModelWriteOptions},
    tensor_core::output::Durability,
};
use anyhow::{Result, ensure};
use criterion::Throughput;
use tempfile::TempDir;

use super::{Weights, circle};
use crate::{Bound::TimeAtMost, Case, Scale, Topic, fixture, fixture::PIECE};

/// A model with weights of 512 MiB, and a package of it.
#[derive(Debug)]
pub struct NnpackageWrite {
    model: PathBuf,
    package: PathBuf,
    len: u64,
    /// Replaced by every run: the file that was there is removed before the clock runs.
    target: PathBuf,
    _folder: TempDir,
}

impl Topic for NnpackageWrite {
    const NAME: &'static str = "nnpackage_write";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [model, package, target] =
            ["model.circle", "package.zip", "target"].map(|name| folder.path().join(name));
        let size = if scale == Scale::TEST { 64 } else { 1024 };
        let bytes = circle(size, Weights::InTables);
        let len = bytes.len() as u64;
        fs::write(&model, bytes)?;
        fixture::warm(&model)?;
        let this = Self { model, package, len, target, _folder: folder };
        this.build(&this.package)?;
        fixture::warm(&this.package)?;
        ensure!(Reader::open(&this.package)?.validate().is_valid(), "the package is not valid");
        Ok(this)
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.packages(), self.edits(), self.models()])
    }
}

impl NnpackageWrite {
    fn packages(&self) -> Case<'_> {
        Case::new("build", Throughput::Bytes(self.len))
            .make("ours", &self.target, || self.build(&self.target))
            .make("copy loop", &self.target, || {
                fixture::copy_file(&self.model, &self.target, PIECE)
            })
            .check(
                "nnpackage: build a package of a model of 512 MiB, no sync",
                "ours",
                "copy loop",
                TimeAtMost(1.3),
            )
    }

    fn edits(&self) -> Case<'_> {
        let edit = || {
            let mut edit = Edit::new(&Reader::open(&self.package)?);
            edit.change_config(&[ConfigChange::set("USE_MMAPED_DATA", "1")])?;
            Ok(unsynced().create(&self.target, &edit)?.finish().map(drop)?)
        };
        Case::new("edit", Throughput::Bytes(self.len))
            .make("ours", &self.target, edit)
            .make("copy loop", &self.target, || {
                fixture::copy_file(&self.package, &self.target, PIECE)
            })
            .check(
                "nnpackage: set a key of its configuration, into another file, no sync",
                "ours",
                "copy loop",
                TimeAtMost(1.3),
            )
    }

    fn models(&self) -> Case<'_> {
        let write = |placement| {
            let options =
                ModelWriteOptions::default().durability(Durability::Cached).placement(placement);
            let reader = ModelReader::open(&self.model)?;
            let writer = options.create(&self.target, reader.model())?;
            writer.origin(&reader).finish()?;
            Ok(())
        };
        Case::new("model", Throughput::Bytes(self.len))
            .make("inline", &self.target, move || write(BufferPlacement::Keep))
            .make("outside", &self.target, move || write(BufferPlacement::Outside))
            .make("copy loop", &self.target, || {
                fixture::copy_file(&self.model, &self.target, PIECE)
            })
            .check(
                "nnpackage: rewrite a Circle model of 512 MiB, no sync",
                "inline",
                "copy loop",
                TimeAtMost(1.3),
            )
            .check(
                "the same, weights moved behind the tables",
                "outside",
                "copy loop",
                TimeAtMost(1.3),
            )
    }

    fn build(&self, path: &Path) -> Result<()> {
        let mut builder = Builder::default();
        builder.model_from("model.circle", &self.model)?;
        Ok(unsynced().create(path, &builder)?.finish().map(drop)?)
    }
}

fn unsynced() -> WriteOptions {
    WriteOptions::default().durability(Durability::Cached)
}
