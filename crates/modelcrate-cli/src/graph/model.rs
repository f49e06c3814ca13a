//! Circle and TFLite models, by themselves and in packages.

use modelcrate::circle_format::{ReadOptions, Reader, Schema};

use super::SchemaName;
#[cfg(feature = "nnpackage")]
use crate::output;

/// Returns how a model is opened whose identifier does not count.
pub(super) fn by_schema(schema: SchemaName) -> ReadOptions {
    Reader::options().schema(match schema {
        SchemaName::Circle => Schema::Circle,
        SchemaName::Tflite => Schema::Tflite,
    })
}

/// Opens a model of a package, by its position; returns its path there, too.
#[cfg(feature = "nnpackage")]
pub(super) fn of_package(
    package: &modelcrate::nnpackage::Reader,
    index: usize,
    schema: Option<SchemaName>,
) -> anyhow::Result<(String, Reader)> {
    use modelcrate::nnpackage::Error;
    let count = package.models().len();
    let Some(model) = package.model(index) else {
        let models = output::count(count, "model");
        anyhow::bail!("has {models}, so that there is none at position {index}")
    };
    let opened = match schema {
        Some(schema) => {
            let source = model.file().source();
            source.and_then(|source| Ok(by_schema(schema).from_source(source)?))
        }
        None => model.open().cloned(),
    };
    let entry = model.path().to_owned();
    match opened {
        Ok(reader) => Ok((entry, reader)),
        // It names the file itself.
        Err(error @ Error::File { .. }) => Err(error.into()),
        Err(error) => Err(anyhow::Error::from(error).context(format!("{entry:?}"))),
    }
}
