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
use rten_format::{Constant, ConstantDataType, Header, Node, Reader, tensor_core::Source};
use tempfile::TempDir;

use super::{ALIGNMENT, Network, stored, write};
use crate::{Bound, Case, Scale, Topic, case::time, fixture};

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
        let (mut model, len) = Network::of_stages(if scale == Scale::FULL { 118 } else { 8 });
        let nodes = model.graph.nodes.len() as u64;
        write(&model_path, &model, len, len)?;
        fixture::warm(&model_path)?;
        let data_offset = len.next_multiple_of(ALIGNMENT);
        let table = Constant {
            shape: vec![1 << 20, 1 << 10],
            dtype: Some(ConstantDataType::Float32),
            data: None,
            data_offset: Some(data_offset),
        };
        model.graph.nodes.push(Node::named("embedding.weight", table));
        write(&huge, &model, data_offset + (4 << 30), 0)?;
        Ok(Self { model: model_path, nodes, huge, _folder: folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.open(), self.huge()])
    }
}

impl RtenOpen {
    fn open(&self) -> Case<'_> {
        Case::new("open", Throughput::Elements(self.nodes))
            .side("ours", || time(|| map(&self.model)))
            .side("and the model", || {
                time(|| {
                    let reader = map(&self.model)?;
                    ensure!(reader.model().graph.nodes.len() as u64 == self.nodes, "nodes");
                    Ok(reader)
                })
            })
            .side("rten 0.27", || time(|| load(&self.model)))
            .side("verification", || time(|| verify(&self.model)))
            .check(
                "rten: open a mapped file of 20 MB and 1,200 nodes",
                "ours",
                &["rten 0.27"],
                Bound::TimeAtMost(0.4),
            )
            .check(
                "the same, against FlatBuffers verification alone",
                "ours",
                &["verification"],
                Bound::TimeAtMost(1.3),
            )
            .check("the same, and the model", "and the model", &["rten 0.27"], Bound::Informative)
    }

    fn huge(&self) -> Case<'_> {
        Case::new("huge", Throughput::Elements(1))
            .side("mapped", || time(|| map(&self.huge)))
            .side("by position", || time(|| Ok(Reader::open(&self.huge)?)))
            .side("20 MB, mapped", || time(|| map(&self.model)))
            .side("20 MB, by position", || time(|| Ok(Reader::open(&self.model)?)))
            .check("rten: open a file of 4 GiB", "mapped", &["20 MB, mapped"], Bound::Within(1.0))
            .check(
                "the same, read by position",
                "by position",
                &["20 MB, by position"],
                Bound::Within(1.0),
            )
    }
}

#[expect(unsafe_code, reason = "mapping is what is measured")]
fn map(path: &Path) -> Result<Reader> {
    // SAFETY: nothing changes the file, which is in a folder of this process.
    let source = unsafe { Source::map(path) }?;
    Ok(Reader::from_source(source)?)
}

#[expect(unsafe_code, reason = "mapping is what is measured")]
fn load(path: &Path) -> Result<PeerModel> {
    let mut options = ModelOptions::with_all_ops();
    // SAFETY: as above.
    Ok(unsafe { options.enable_optimization(false).load_mmap(path) }?)
}

/// Does what no reader can do without: checks the header, and that the model data is a FlatBuffer
/// of the schema.
#[expect(unsafe_code, reason = "mapping is what is measured")]
fn verify(path: &Path) -> Result<Mmap> {
    // SAFETY: as above.
    let map = unsafe { Mmap::map(&File::open(path)?) }?;
    let header = Header::parse(&map, map.len() as u64)?;
    let model_data = header.model_data.of(&map).context("model data")?;
    stored::root_as_model_with_opts(&VerifierOptions::default(), model_data)?;
    Ok(map)
}
