//! Rows in the making of a file.

use std::{
    io::{BufWriter, Write as _},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use serde::Serialize;
use tensor_core::output::{NewFile, Output};

use super::error::{Error, Result};
#[cfg(feature = "parquet")]
use super::parquet::{Columns, Writer};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One JSON object a line.
    Jsonl,
    /// Columns.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Kind {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        match end.to_ascii_lowercase().as_str() {
            "jsonl" => Ok(Self::Jsonl),
            #[cfg(feature = "parquet")]
            "parquet" => Ok(Self::Parquet),
            _ => Err(Error::Extension { path: path.to_owned(), found: end }),
        }
    }
}

/// A file of rows.
#[derive(Debug)]
pub(super) struct Rows<T> {
    sink: Sink<T>,
}

#[derive(Debug)]
enum Sink<T> {
    Jsonl(BufWriter<NewFile>, PhantomData<fn(T)>),
    #[cfg(feature = "parquet")]
    Parquet(Box<Writer<T>>),
}

/// What a row has to be.
#[cfg(feature = "parquet")]
pub(super) trait Row: Serialize + Columns {}
#[cfg(feature = "parquet")]
impl<T: Serialize + Columns> Row for T {}

/// What a row has to be.
#[cfg(not(feature = "parquet"))]
pub(super) trait Row: Serialize {}
#[cfg(not(feature = "parquet"))]
impl<T: Serialize> Row for T {}

impl<T: Row> Rows<T> {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let kind = Kind::of(path)?;
        let file = Output::default().create(path)?;
        let sink = match kind {
            Kind::Jsonl => Sink::Jsonl(BufWriter::new(file), PhantomData),
            #[cfg(feature = "parquet")]
            Kind::Parquet => Sink::Parquet(Box::new(Writer::new(file)?)),
        };
        Ok(Self { sink })
    }

    pub(super) fn add(&mut self, row: &T) -> Result<()>
    where
        T: Clone,
    {
        match &mut self.sink {
            Sink::Jsonl(out, _) => {
                serde_json::to_writer(&mut *out, row).map_err(std::io::Error::from)?;
                Ok(out.write_all(b"\n")?)
            }
            #[cfg(feature = "parquet")]
            Sink::Parquet(writer) => writer.add(row),
        }
    }

    /// Returns the whole file, which is to be put in its place.
    pub(super) fn finish(self) -> Result<NewFile> {
        match self.sink {
            Sink::Jsonl(out, _) => {
                Ok(out.into_inner().map_err(std::io::IntoInnerError::into_error)?)
            }
            #[cfg(feature = "parquet")]
            Sink::Parquet(writer) => writer.finish(),
        }
    }
}

/// Returns where the rows of tensors are beside those of files: of `a.jsonl` in `a.tensors.jsonl`.
#[must_use]
pub fn tensors_path(path: &Path) -> PathBuf {
    let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    path.with_extension(format!("tensors.{end}"))
}
