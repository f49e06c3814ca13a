//! Cartons: four topics, and what they share.

use std::path::Path;

use anyhow::Result;
use bytes::Bytes;
use carton_format::{
    Pack, WriteOptions, model_archive::Compression, tensor_core::output::Durability,
};

pub mod open;
pub mod pack;
pub mod tensors;
pub mod verify;

/// Returns the options of cartons that are not forced to the disk.
fn unsynced(compression: Compression) -> WriteOptions {
    WriteOptions::default().durability(Durability::Cached).compression(compression)
}

/// Writes a carton of files that are stored as they are.
fn write_stored(path: &Path, files: impl IntoIterator<Item = (String, Bytes)>) -> Result<()> {
    let mut pack = Pack::from_toml(DESCRIPTION)?;
    for (name, content) in files {
        pack.file(&format!("model/{name}"), content)?;
    }
    pack.write(unsynced(Compression::Stored).create(path)?)?;
    Ok(())
}

/// The description of a model, as long as they usually are.
const DESCRIPTION: &str = r#"spec_version = 1
model_name = "Example"
short_description = "Answers questions about a text"
model_description = """
# Example

Answers questions about a text, as [the paper](https://example.com/paper) says.

- **question**: what is asked
- **text**: where the answer is
"""
license = "Apache-2.0"
repository = "https://example.com/example.git"
homepage = "https://example.com"
required_platforms = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]

[[input]]
name = "tokens"
dtype = "int64"
shape = ["batch", "tokens"]
description = "Ids of the words"

[[input]]
name = "mask"
dtype = "uint8"
shape = ["batch", "tokens"]

[[output]]
name = "scores"
dtype = "float32"
shape = ["batch", "tokens", 2]
description = "Where the answer starts and ends"

[runner]
runner_name = "torchscript"
required_framework_version = ">=1.12.0, <2"

[runner.opts]
num_threads = 4
device = "cpu"
"#;
