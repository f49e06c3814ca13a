//! Opening RTen files, whatever the length of their tensor data.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use criterion::Throughput;
use flatbuffers::VerifierOptions;
use memmap2::Mmap;
use rten::{Model as PeerModel, ModelOptions};
use rten_format::{Header, Reader};
use tempfile::TempDir;

use super::{Network, stored, write, write_huge};
use crate::{
    Bound::{TimeAtMost, Within},
    Case, Scale, Topic, fixture,
};

/// A model of the size that third parties ship, and the same one beside a tensor of 4 GiB.
#[derive(Debug)]
pub struct RtenOpen {
    model: PathBuf,
    nodes: u64,
    huge: PathBuf,
    _folder: TempDir,
}

impl Topic for RtenOpen {
    const NAME: &'static str = "rten_open";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [model_path, huge] = ["model.rten", "huge.rten"].map(|name| folder.path().join(name));
        let (model, len) = Network::of_scale(scale);
        let nodes = model.graph.nodes.len() as u64;
        write(&model_path, &model, len, len)?;
        fixture::warm(&model_path)?;
        write_huge(&huge, model, len)?;
        Ok(Self { model: model_path, nodes, huge, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.open(), self.huge()])
    }
}

impl RtenOpen {
    fn open(&self) -> Case<'_> {
        Case::new("open", Throughput::Elements(self.nodes))
            .run("ours", || map(&self.model))
            .run("and the model", || {
                let reader = map(&self.model)?;
                ensure!(reader.model().graph.nodes.len() as u64 == self.nodes, "nodes");
                Ok(reader)
            })
            .run("rten 0.27", || load(&self.model))
            .run("verification", || verify(&self.model))
            .check(
                "rten: open a mapped file of 20 MB and 1,200 nodes",
                "ours",
                "rten 0.27",
                TimeAtMost(0.4),
            )
            .check(
                "the same, against FlatBuffers verification alone",
                "ours",
                "verification",
                TimeAtMost(1.3),
            )
            .check("the same, and the model", "and the model", "rten 0.27", TimeAtMost(1.1))
    }

    fn huge(&self) -> Case<'_> {
        Case::new("huge", Throughput::Elements(1))
            .run("mapped", || map(&self.huge))
            .run("by position", || Ok(Reader::open(&self.huge)?))
            .run("20 MB, mapped", || map(&self.model))
            .run("20 MB, by position", || Ok(Reader::open(&self.model)?))
            .check("rten: open a file of 4 GiB", "mapped", "20 MB, mapped", Within(1.0))
            .check("the same, read by position", "by position", "20 MB, by position", Within(1.0))
    }
}

fn map(path: &Path) -> Result<Reader> {
    Ok(Reader::from_source(fixture::map(path)?)?)
}

#[expect(unsafe_code, reason = "mapping is what is measured")]
fn load(path: &Path) -> Result<PeerModel> {
    let mut options = ModelOptions::with_all_ops();
    // SAFETY: nothing changes the file, which is in a folder of this process.
    Ok(unsafe { options.enable_optimization(false).load_mmap(path) }?)
}

/// Does what no reader can do without: checks the header, and that the model data is a FlatBuffer
/// of the schema.
#[expect(unsafe_code, reason = "mapping is what is measured")]
fn verify(path: &Path) -> Result<Mmap> {
    // SAFETY: as above.
    let map = unsafe { Mmap::map(&File::open(path)?) }?;
    let header = Header::parse(&map, map.len() as u64)?;
    let model_data = header.model_data.slice(&map).context("model data")?;
    stored::root_as_model_with_opts(&VerifierOptions::default(), model_data)?;
    Ok(map)
}
