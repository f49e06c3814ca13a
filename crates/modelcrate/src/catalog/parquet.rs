//! Rows as columns, by `parquet`, and their way from and to what serde writes, by `arrow-json`.

use std::{fs::File, io, marker::PhantomData, sync::Arc};

use arrow_json::{LineDelimitedWriter, ReaderBuilder};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::Compression,
    file::{
        metadata::{ColumnChunkMetaData, RowGroupMetaData},
        properties::WriterProperties,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use tensor_core::{output::NewFile, text::short};

use super::{
    error::Result,
    old::RowsOf,
    row::{FileRow, TensorRow},
};

/// The columns that rows have.
pub(super) trait Columns {
    fn columns() -> Vec<Field>;
}

impl Columns for FileRow {
    fn columns() -> Vec<Field> {
        let port = Fields::from(vec![
            always("name", DataType::Utf8),
            always("dtype", DataType::Utf8),
            always("shape", DataType::Utf8),
        ]);
        let ports = list(DataType::Struct(port));
        let part = Fields::from(vec![
            always("name", DataType::Utf8),
            maybe("bytes", DataType::UInt64),
            maybe("etag", DataType::Utf8),
            maybe("modified", DataType::Utf8),
        ]);
        vec![
            always("schema", DataType::UInt32),
            always("path", DataType::Utf8),
            maybe("bytes", DataType::UInt64),
            maybe("etag", DataType::Utf8),
            maybe("modified", DataType::Utf8),
            always("parts", list(DataType::Struct(part))),
            maybe("format", DataType::Utf8),
            maybe("version", DataType::Utf8),
            always("verdict", DataType::Utf8),
            always("verified", DataType::Boolean),
            always("rules", list(DataType::Utf8)),
            always("errors", DataType::UInt64),
            always("warnings", DataType::UInt64),
            maybe("tensors", DataType::UInt64),
            maybe("weight_bytes", DataType::UInt64),
            maybe("hash", DataType::Utf8),
            maybe("license", DataType::Utf8),
            always("inputs", ports.clone()),
            always("outputs", ports),
            maybe("error", DataType::Utf8),
        ]
    }
}

impl Columns for TensorRow {
    fn columns() -> Vec<Field> {
        vec![
            always("schema", DataType::UInt32),
            always("path", DataType::Utf8),
            always("name", DataType::Utf8),
            maybe("dtype", DataType::Utf8),
            always("shape", list(DataType::UInt64)),
            always("bytes", DataType::UInt64),
            maybe("sha256", DataType::Utf8),
            maybe("min", DataType::Float64),
            maybe("max", DataType::Float64),
            maybe("mean", DataType::Float64),
            maybe("std", DataType::Float64),
            maybe("zeros", DataType::UInt64),
            maybe("nan", DataType::UInt64),
            maybe("infinite", DataType::UInt64),
        ]
    }
}

fn always(name: &str, of: DataType) -> Field {
    Field::new(name, of, false)
}

fn maybe(name: &str, of: DataType) -> Field {
    Field::new(name, of, true)
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", of, false)))
}

/// A file of columns in the making.
pub(super) struct Writer<T> {
    columns: Arc<Schema>,
    out: ArrowWriter<NewFile>,
    rows: Vec<T>,
    of: PhantomData<fn(T)>,
}

impl<T> std::fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<T: Serialize + Columns> Writer<T> {
    pub(super) fn new(file: NewFile) -> Result<Self> {
        let columns = Arc::new(Schema::new(T::columns()));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let properties = properties.set_max_row_group_row_count(Some(GROUP)).build();
        let out = ArrowWriter::try_new(file, Arc::clone(&columns), Some(properties));
        Ok(Self { columns, out: out.map_err(failed)?, rows: Vec::new(), of: PhantomData })
    }

    pub(super) fn add(&mut self, row: &T) -> Result<()>
    where
        T: Clone,
    {
        self.rows.push(row.clone());
        if self.rows.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let builder = ReaderBuilder::new(Arc::clone(&self.columns)).with_batch_size(BATCH);
        let mut decoder = builder.build_decoder().map_err(failed)?;
        decoder.serialize(&self.rows).map_err(failed)?;
        self.rows.clear();
        if let Some(batch) = decoder.flush().map_err(failed)? {
            self.out.write(&batch).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<NewFile> {
        self.flush()?;
        Ok(self.out.into_inner().map_err(failed)?)
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

/// Reads the rows of a file of columns, some at a time.
pub(super) fn read<T: DeserializeOwned + Send + 'static>(
    file: File,
) -> std::result::Result<RowsOf<T>, String> {
    let malformed =
        |error: &dyn std::error::Error| format!("is malformed: {}", short(&error.to_string()));
    let len = file.metadata().map_err(|error| malformed(&error))?.len();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file);
    let builder = builder.map_err(|error| malformed(&error))?;
    let mut columns = builder.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
    if !columns.all(|column| is_within(column, len)) {
        return Err("is malformed: a column is not in the file".to_owned());
    }
    let batches = builder.with_batch_size(BATCH).build().map_err(|error| malformed(&error))?;
    Ok(Box::new(batches.flat_map(move |batch| {
        let rows = || {
            let batch = batch.map_err(|error| malformed(&error))?;
            let mut text = Vec::new();
            let mut lines = LineDelimitedWriter::new(&mut text);
            lines.write(&batch).and_then(|()| lines.finish()).map_err(|error| malformed(&error))?;
            let rows = serde_json::Deserializer::from_slice(&text).into_iter();
            rows.collect::<std::result::Result<Vec<T>, _>>().map_err(|error| malformed(&error))
        };
        match rows() {
            Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(reason) => vec![Err(reason)],
        }
    })))
}

/// Tells whether a column is where a file can have it: the reader takes that for granted.
fn is_within(column: &ColumnChunkMetaData, len: u64) -> bool {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let [start, bytes, values] = [start, column.compressed_size(), column.num_values()]
        .map(|number| u64::try_from(number).ok());
    let end = start.zip(bytes).and_then(|(start, bytes)| start.checked_add(bytes));
    end.is_some_and(|end| end <= len) && values.is_some()
}

/// How many rows become columns at once.
const BATCH: usize = 4096;

/// How many rows are one group of a file.
const GROUP: usize = 1 << 16;
