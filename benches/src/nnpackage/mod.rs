//! nnpackages: a Circle model of many layers, bare and in archives.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
};

use ::nnpackage::model_archive::{ArchiveWriter, EntryOptions};
use anyhow::Result;
use flatbuffers::FlatBufferBuilder;

use crate::fixture::{self, slot};

pub mod open;
pub mod write;

/// Where the weights of a model are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// In the tables, each before the tensor that has it, as converters write them.
    InTables,
    /// Behind the tables, as in models of more than 2 GiB.
    Behind,
}

/// Returns a Circle model of fully connected layers, each of which has `size × size` weights.
#[must_use]
pub fn circle(size: usize, weights: Weights) -> Vec<u8> {
    let data = fixture::elements(size * size * 4);
    if weights == Weights::InTables {
        return tables(size, &|_| Stored::Data(&data));
    }
    // The tables have the same length wherever the weights are.
    let start = tables(size, &|_| Stored::At(u64::MAX, 1)).len().next_multiple_of(64);
    let (start, len) = (start as u64, data.len() as u64);
    let mut model = tables(size, &|layer| Stored::At(start + layer * len, len));
    model.resize(start as usize, 0);
    for _ in 0..LAYERS {
        model.extend_from_slice(&data);
    }
    model
}

/// What the buffer of a layer has.
enum Stored<'d> {
    Data(&'d [u8]),
    At(u64, u64),
}

fn tables<'d>(size: usize, weights: &dyn Fn(u64) -> Stored<'d>) -> Vec<u8> {
    let mut out = FlatBufferBuilder::new();
    // Buffer 0 is empty: that of all tensors that are no constants.
    let table = out.start_table();
    let mut buffers = vec![out.end_table(table)];
    let (mut tensors, mut operators) = (Vec::new(), Vec::new());
    let tensor = |out: &mut FlatBufferBuilder<'_>, name: &str, shape: [i32; 2], buffer: u32| {
        let (shape, name) = (out.create_vector(&shape), out.create_string(name));
        let table = out.start_table();
        out.push_slot_always(slot(0), shape);
        out.push_slot_always(slot(2), buffer);
        out.push_slot_always(slot(3), name);
        out.end_table(table)
    };
    let side = size as i32;
    tensors.push(tensor(&mut out, "input", [1, side], 0));
    for layer in 0..LAYERS {
        let table = match weights(layer) {
            Stored::Data(data) => {
                let data = out.create_vector(data);
                let table = out.start_table();
                out.push_slot_always(slot(0), data);
                table
            }
            Stored::At(offset, len) => {
                let table = out.start_table();
                out.push_slot_always(slot(1), offset);
                out.push_slot_always(slot(2), len);
                table
            }
        };
        buffers.push(out.end_table(table));
        let buffer = buffers.len() as u32 - 1;
        tensors.push(tensor(&mut out, &format!("layers.{layer}.weight"), [side, side], buffer));
        tensors.push(tensor(&mut out, &format!("layers.{layer}.output"), [1, side], 0));

        let table = out.start_table();
        let options = out.end_table(table);
        let result = tensors.len() as i32 - 1;
        // The input, the weights, no bias.
        let inputs = out.create_vector(&[(result - 2).max(0), result - 1, -1]);
        let outputs = out.create_vector(&[result]);
        let table = out.start_table();
        out.push_slot_always(slot(1), inputs);
        out.push_slot_always(slot(2), outputs);
        out.push_slot_always(slot(3), FULLY_CONNECTED_OPTIONS);
        out.push_slot_always(slot(4), options);
        operators.push(out.end_table(table));
    }
    let last = tensors.len() as i32 - 1;
    let (inputs, outputs) = (out.create_vector(&[0]), out.create_vector(&[last]));
    let (tensors, operators) = (out.create_vector(&tensors), out.create_vector(&operators));
    let name = out.create_string("main");
    let table = out.start_table();
    out.push_slot_always(slot(0), tensors);
    out.push_slot_always(slot(1), inputs);
    out.push_slot_always(slot(2), outputs);
    out.push_slot_always(slot(3), operators);
    out.push_slot_always(slot(4), name);
    let subgraphs = [out.end_table(table)];
    let subgraphs = out.create_vector(&subgraphs);
    let table = out.start_table();
    out.push_slot_always(slot(0), FULLY_CONNECTED as i8);
    out.push_slot_always(slot(3), FULLY_CONNECTED);
    let codes = [out.end_table(table)];
    let (codes, buffers) = (out.create_vector(&codes), out.create_vector(&buffers));
    let table = out.start_table();
    out.push_slot_always(slot(0), VERSION);
    out.push_slot_always(slot(1), codes);
    out.push_slot_always(slot(2), subgraphs);
    out.push_slot_always(slot(4), buffers);
    let model = out.end_table(table);
    out.finish(model, Some("CIR0"));
    out.finished_data().to_vec()
}

/// Writes a model into an archive as it is, with the manifest of a package.
///
/// # Errors
///
/// Where a file cannot be read or written.
pub fn write_package(path: &Path, model: &Path) -> Result<()> {
    let mut archive = ArchiveWriter::new(BufWriter::new(File::create(path)?));
    archive.add("metadata/MANIFEST", MANIFEST.as_bytes(), &EntryOptions::default())?;
    archive.add("model.circle", &fs::read(model)?, &EntryOptions::default().alignment(64))?;
    archive.finish()?.flush()?;
    Ok(())
}

/// How many layers a model has.
pub const LAYERS: u64 = 128;
const VERSION: u32 = 0;
/// The operator, and the table of its options.
const FULLY_CONNECTED: i32 = 9;
const FULLY_CONNECTED_OPTIONS: u8 = 8;

const MANIFEST: &str = r#"{
  "major-version": "1",
  "minor-version": "2",
  "patch-version": "0",
  "models": ["model.circle"],
  "model-types": ["circle"]
}
"#;
