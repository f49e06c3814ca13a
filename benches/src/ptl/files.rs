//! Model files of 512 MiB in both containers: listing tensors, and replacing the spec in them.

use std::{
    fs::{self, File},
    io::{BufWriter, Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use criterion::Throughput;
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};
use nnpackage::model_archive::{ArchiveWriter, EntryOptions};
use ptl_spec::{Editor, Reader, Spec};
use tempfile::TempDir;

use crate::{
    Bound::{TimeAtMost, Within},
    Case, Scale, Topic, fixture,
    fixture::slot,
};

/// One model in both containers.
#[derive(Debug)]
pub struct PtlFiles {
    zip: PathBuf,
    flat: PathBuf,
    /// Written by the peer of edits.
    other: PathBuf,
    _folder: TempDir,
}

impl Topic for PtlFiles {
    const NAME: &'static str = "ptl_files";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let [zip, flat, other] =
            ["zip.ptl", "flat.ptl", "other"].map(|name| folder.path().join(name));
        let len = scale.large / 2 / TENSORS;
        write_zip(&zip, len)?;
        write_flat(&flat, len)?;
        let this = Self { zip, flat, other, _folder: folder };
        for path in [&this.zip, &this.flat] {
            // Else the first edit would wait until the disk has all of it.
            File::open(path)?.sync_all()?;
            fixture::warm(path)?;
            let reader = Reader::open(path)?;
            for tensor in reader.tensors()? {
                tensor.extent()?;
            }
            ensure!(list(&reader)? == TENSORS, "tensors");
        }
        Ok(this)
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(vec![self.list(), self.edit()])
    }
}

impl PtlFiles {
    fn list(&self) -> Case<'_> {
        Case::new("list", Throughput::Elements(TENSORS as u64))
            .run("zip", || list(&Reader::open(&self.zip)?))
            .run("zip, mapped", || list(&map(&self.zip)?))
            .run("flatbuffer", || list(&Reader::open(&self.flat)?))
            .run("flatbuffer, mapped", || list(&map(&self.flat)?))
            .run("zip crate", || self.pickle())
            .run("file read whole", || Ok(fs::read(&self.flat)?))
            .check("ptl: list the tensors of 512 MiB, ZIP file", "zip", "zip crate", Within(10.0))
            .check("the same, mapped", "zip, mapped", "zip crate", Within(10.0))
            .check(
                "ptl: list the tensors of 512 MiB, FlatBuffer",
                "flatbuffer",
                "file read whole",
                Within(10.0),
            )
            .check("the same, mapped", "flatbuffer, mapped", "file read whole", Within(10.0))
    }

    /// Replaces the spec by another one each time. The ZIP file grows by what is appended; a
    /// FlatBuffer is another file each time.
    fn edit(&self) -> Case<'_> {
        let edit = |path: &'_ Path, turn: u64| -> Result<()> {
            let text = SPEC.replace("\"scores\"", &format!("\"scores {turn}\""));
            let mut editor = Editor::open(path)?;
            editor.set_spec(&Spec::parse(text)?)?;
            editor.commit()?;
            Ok(())
        };
        let (mut zip_turn, mut flat_turn) = (0, 0);
        Case::new("edit", Throughput::Elements(1))
            .run("zip", move || {
                zip_turn += 1;
                edit(&self.zip, zip_turn)
            })
            .run("flatbuffer", move || {
                flat_turn += 1;
                edit(&self.flat, flat_turn)
            })
            .run("write and sync", || {
                let mut file = File::create(&self.other)?;
                file.write_all(SPEC.as_bytes())?;
                file.sync_data()?;
                file.write_all(&[0; 4])?;
                Ok(file.sync_data()?)
            })
            .run("copy and sync", || {
                fs::copy(&self.flat, &self.other)?;
                Ok(File::open(&self.other)?.sync_data()?)
            })
            .check(
                "ptl: replace the spec in 512 MiB, ZIP file, synced",
                "zip",
                "write and sync",
                Within(20.0),
            )
            .check(
                "ptl: replace the spec in 512 MiB, FlatBuffer, another file, synced",
                "flatbuffer",
                "copy and sync",
                TimeAtMost(1.5),
            )
    }

    /// Reads what lists the tensors, and does not look into it.
    fn pickle(&self) -> Result<Vec<u8>> {
        let mut archive = zip::ZipArchive::new(File::open(&self.zip)?)?;
        let mut pickle = Vec::new();
        archive.by_name("model/data.pkl")?.read_to_end(&mut pickle)?;
        Ok(pickle)
    }
}

/// Names all tensors with their types and shapes; returns how many there are.
///
/// # Errors
///
/// Where the file is malformed.
pub fn list(reader: &Reader) -> Result<usize> {
    let mut listed = 0;
    for tensor in reader.tensors()? {
        ensure!(!tensor.name().is_empty() && tensor.info()?.shape.rank() == 2, "tensor");
        listed += 1;
    }
    Ok(listed)
}

fn map(path: &Path) -> Result<Reader> {
    Ok(Reader::from_source(fixture::map(path)?)?)
}

/// Writes a model of tensors of `len` bytes each, as PyTorch lays it out.
///
/// # Errors
///
/// Where it cannot be written.
pub fn write_zip(path: &Path, len: usize) -> Result<()> {
    let data = fixture::elements(len);
    let mut archive = ArchiveWriter::new(BufWriter::new(File::create(path)?));
    let options = EntryOptions::default().alignment(64);
    archive.add("model/extra/model/live.spec.json", SPEC.as_bytes(), &options)?;
    for index in 0..TENSORS {
        archive.add(&format!("model/data/{index}"), &data, &options)?;
    }
    archive.add("model/data.pkl", &pickle(len), &options)?;
    archive.add("model/version", b"3\n", &options)?;
    archive.finish()?.flush()?;
    Ok(())
}

/// Writes the state of a module in the opcodes that PyTorch uses.
fn pickle(len: usize) -> Vec<u8> {
    let text = |text: &str| {
        let len = (text.len() as u32).to_le_bytes();
        [b"X", &len[..], text.as_bytes()].concat()
    };
    let int = |number: usize| [b"J", &(number as u32).to_le_bytes()[..]].concat();
    let (rows, columns) = shape(len);
    let mut out = b"\x80\x02c__torch__\nNet\n)\x81}(".to_vec();
    for (index, name) in names().iter().enumerate() {
        out.extend(text(name));
        out.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        out.extend(text("storage"));
        out.extend(b"ctorch\nFloatStorage\n");
        out.extend([text(&index.to_string()), text("cpu"), int(len / 4)].concat());
        out.extend(b"tQK\x00(");
        out.extend([int(rows), int(columns)].concat());
        out.extend(b"t(");
        out.extend([int(columns), int(1)].concat());
        out.extend(b"t\x89ccollections\nOrderedDict\n)RtR");
    }
    out.extend(b"ub.");
    out
}

/// Writes the same model as one FlatBuffer: data in front, what lists it behind.
///
/// # Errors
///
/// Where it cannot be written.
pub fn write_flat(path: &Path, len: usize) -> Result<()> {
    type Part = WIPOffset<TableFinishedWIPOffset>;
    let data = fixture::elements(len);
    let mut out = FlatBufferBuilder::with_capacity(len * TENSORS + (1 << 20));
    let (name, content) = (out.create_string("model/live.spec.json"), out.create_string(SPEC));
    let table = out.start_table();
    out.push_slot_always(slot(0), name);
    out.push_slot_always(slot(1), content);
    let extra_files = [out.end_table(table)];
    let extra_files = out.create_vector(&extra_files);

    let value = |out: &mut FlatBufferBuilder<'_>, kind: u8, part: Option<Part>| {
        let table = out.start_table();
        out.push_slot_always(slot(0), kind);
        if let Some(part) = part {
            out.push_slot_always(slot(1), part);
        }
        out.end_table(table)
    };
    let (rows, columns) = shape(len);
    let mut values = vec![value(&mut out, NONE, None)];
    for index in 0..TENSORS as u32 {
        let sizes = out.create_vector(&[rows as i32, columns as i32]);
        let strides = out.create_vector(&[columns as i32, 1]);
        let table = out.start_table();
        out.push_slot_always(slot(0), index);
        out.push_slot_always(slot(1), F32);
        out.push_slot_always(slot(3), sizes);
        out.push_slot_always(slot(4), strides);
        let tensor = out.end_table(table);
        values.push(value(&mut out, TENSOR, Some(tensor)));
    }
    let ids: Vec<u32> = (1..=TENSORS as u32).collect();
    let attributes = out.create_vector(&ids);
    let table = out.start_table();
    out.push_slot_always(slot(0), 0_u32);
    out.push_slot_always(slot(2), attributes);
    let object = out.end_table(table);
    let state = values.len() as u32;
    values.push(value(&mut out, OBJECT, Some(object)));
    let values = out.create_vector(&values);

    let names: Vec<_> = names().iter().map(|name| out.create_string(name)).collect();
    let (class, names) = (out.create_string("__torch__.Net"), out.create_vector(&names));
    let table = out.start_table();
    out.push_slot_always(slot(0), class);
    out.push_slot_always(slot(1), 1_u8);
    out.push_slot_always(slot(2), names);
    let types = [out.end_table(table)];
    let types = out.create_vector(&types);

    let mut storages = Vec::new();
    for _ in 0..TENSORS {
        let data = out.create_vector(&data);
        let table = out.start_table();
        out.push_slot_always(slot(0), data);
        storages.push(out.end_table(table));
    }
    let storages = out.create_vector(&storages);
    let table = out.start_table();
    out.push_slot_always(slot(0), 9_u32);
    out.push_slot_always(slot(1), extra_files);
    out.push_slot_always(slot(3), state);
    out.push_slot_always(slot(4), values);
    out.push_slot_always(slot(6), storages);
    out.push_slot_always(slot(7), types);
    out.push_slot_always(slot(10), 1_u32);
    let module = out.end_table(table);
    out.finish(module, Some("PTMF"));
    fs::write(path, out.finished_data()).context("FlatBuffer")
}

fn names() -> Vec<String> {
    fixture::names(TENSORS).iter().map(|name| name.replace('.', "_")).collect()
}

/// Returns the shape of `f32` tensors of so many bytes.
fn shape(len: usize) -> (usize, usize) {
    (8, len / 32)
}

/// How many tensors a file has.
pub const TENSORS: usize = 512;
/// Types of values, and of elements, in a FlatBuffer file.
const NONE: u8 = 0;
const TENSOR: u8 = 5;
const OBJECT: u8 = 10;
const F32: i8 = 6;

const SPEC: &str = r#"{
    "pack": {"type": "tensor_from_string", "tokenizer": "gpt2", "string": "$text"},
    "unpack": {"type": "tensor", "dtype": "float", "key": "scores"},
    "vocabulary_gpt2": {"a": 0, "b": 1, "<|endoftext|>": 2}
}"#;
