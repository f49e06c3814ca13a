//! The export as a whole: the model around the graph, and the files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message as _;
use tensor_core::{
    DType, Report,
    output::{Durability, Existing, LockedFile, Output},
};

use crate::{Metadata, Reader, types::Kind};

use super::{
    constants::{Store, byte_len},
    error::{Error, Result},
    lower::{Lowered, Lowering},
    proto::{MAX_MESSAGE, ModelProto, OperatorSetIdProto, StringStringEntryProto},
};

/// An export of a model to ONNX.
///
/// # Examples
///
/// ```no_run
/// use rten_format::{Reader, onnx::Export};
///
/// let reader = Reader::open("model.rten")?;
/// let exported = Export::new(&reader).write("model.onnx")?;
/// for finding in exported.report.findings() {
///     println!("{}: {}", finding.severity, finding.message);
/// }
/// # Ok::<(), rten_format::onnx::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is exported before it is written"]
pub struct Export<'a> {
    reader: &'a Reader,
    external: ExternalData,
    existing: Existing,
    durability: Durability,
    input_types: &'a [(String, DType)],
}

/// Which constants go into a data file beside the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternalData {
    /// Those of 1024 bytes or more, where the model would otherwise have 2 GiB or more, which is
    /// what protobuf allows; else none.
    #[default]
    Automatic,
    /// Those of so many bytes or more. Constants of less than 256 bytes are always in the model:
    /// shapes and axes are among them, which ONNX's tools cannot follow into another file.
    From(u64),
    /// None; a model that is too large is an error.
    Never,
}

impl ExternalData {
    /// Returns from how many bytes on constants are external, in a model with so many bytes of
    /// them; `None` where none is.
    const fn threshold(self, constants: u64) -> Option<u64> {
        match self {
            Self::From(bytes) if bytes < LEAST => Some(LEAST),
            Self::From(bytes) => Some(bytes),
            Self::Automatic if constants > MAX_MESSAGE => Some(AUTOMATIC),
            Self::Automatic | Self::Never => None,
        }
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The model.
    pub model: PathBuf,
    /// Constants beside it, where there are any.
    pub data: Option<PathBuf>,
    /// The release of ONNX's operator set that the model needs: 20, unless an operator is newer.
    pub opset: i64,
    /// What is not as in the file, none of which changes what the model computes.
    pub report: Report,
}

impl<'a> Export<'a> {
    /// Starts an export with external data where it is needed.
    pub const fn new(reader: &'a Reader) -> Self {
        Self {
            reader,
            external: ExternalData::Automatic,
            existing: Existing::Replace,
            durability: Durability::Synced,
            input_types: &[],
        }
    }

    /// Sets what inputs are, by their names: `bool`, `i32` or `i64`, which the format does not tell
    /// apart. Others are `i64`, or `bool` or `i32` where all that reads them takes that.
    pub const fn input_types(mut self, types: &'a [(String, DType)]) -> Self {
        self.input_types = types;
        self
    }

    /// Sets which constants go into a data file.
    pub const fn external_data(mut self, external: ExternalData) -> Self {
        self.external = external;
        self
    }

    /// Sets what happens to files that are there already.
    pub const fn existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }

    /// Sets whether the files are forced to the disk.
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Returns the model with all constants in it, whatever is set for external data.
    ///
    /// The same file gives the same bytes.
    ///
    /// # Errors
    ///
    /// Where something has no counterpart in ONNX, a constant is broken, or the model is too large.
    pub fn to_bytes(self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes, "")?;
        Ok(bytes)
    }

    /// Writes the model with all constants in it, piece by piece, and says what
    /// [`write`](Self::write) would say of a path.
    ///
    /// # Errors
    ///
    /// As for [`to_bytes`](Self::to_bytes); where nothing can be written.
    pub fn write_to(self, sink: impl io::Write, path: impl AsRef<Path>) -> Result<Exported> {
        let made = self.external_data(ExternalData::Never).make(path.as_ref())?;
        made.store.write_model(&made.model, self.reader.source(), sink, path.as_ref())?;
        Ok(made.exported)
    }

    /// Writes the model, and where constants are external, a data file with `.data` behind its
    /// name.
    ///
    /// Files appear under their names when all of them are complete, the data file first: where a
    /// process is killed between the two, or the model cannot take its place, a data file that was
    /// replaced stands beside the model from before, which it does not fit. Constants are written
    /// piece by piece, whatever their size.
    ///
    /// # Errors
    ///
    /// As for [`to_bytes`](Self::to_bytes), and where a file cannot be written, or its folder not be
    /// synchronised: then the files may be in their places; [`Error::Exists`], before anything is
    /// written; where an editor has a file that is to be replaced.
    pub fn write(self, path: impl AsRef<Path>) -> Result<Exported> {
        let path = path.as_ref();
        self.require_free(path)?;
        let Made { model: content, store, exported } = self.make(path)?;
        let mut model = Output { durability: self.durability, ..Output::default() }.create(path)?;
        let _model_lock = self.lock(path)?;
        store.write_model(&content, self.reader.source(), &mut model, path)?;
        let Some(data) = &exported.data else {
            model.commit(self.existing)?;
            return Ok(exported);
        };
        let mut file = Output { durability: self.durability, ..Output::default() }.create(data)?;
        let _data_lock = self.lock(data)?;
        store.write_data(self.reader.source(), &mut file, data)?;
        let was_there = fs::symlink_metadata(data).is_ok();
        file.commit(self.existing)?;
        if let Err(error) = model.commit(self.existing) {
            if !was_there && !may_hold(path, content.encoded_len() as u64) {
                // The first error says more than a second one.
                let _ = fs::remove_file(data);
            }
            return Err(error.into());
        }
        Ok(exported)
    }

    /// Does everything that [`write`](Self::write) does but for writing.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write), whatever keeps files from being created included.
    pub fn check(self, path: impl AsRef<Path>) -> Result<Exported> {
        self.require_free(path.as_ref())?;
        let exported = self.make(path.as_ref())?.exported;
        for file in [Some(&exported.model), exported.data.as_ref()].into_iter().flatten() {
            Output::default().check_create(file)?;
            if self.replaces(file) {
                Output::default().check(file)?;
            }
        }
        Ok(exported)
    }

    /// Makes the model for a path, with constants in another file where that is wanted or needed.
    fn make(self, path: &Path) -> Result<Made<'a>> {
        let constants = self.constants()?;
        let made = match self.external.threshold(constants) {
            Some(threshold) => self.make_beside(path, threshold),
            None => require(constants).and_then(|()| self.make_with(path, Store::inline())),
        };
        match made {
            // Not the constants are too large, but they are with all that is around them.
            Err(Error::TooLarge { .. }) if self.external == ExternalData::Automatic => {
                self.make_beside(path, AUTOMATIC)
            }
            made => made,
        }
    }

    fn make_beside(self, path: &Path, threshold: u64) -> Result<Made<'a>> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::FileName { path: path.to_owned() })?;
        let location = format!("{name}.data");
        let data = path.with_file_name(&location);
        let mut made = self.make_with(path, Store::beside(location, threshold))?;
        if !made.store.is_empty() {
            self.require_free(&data)?;
            made.exported.data = Some(data);
        }
        Ok(made)
    }

    /// Keeps editors out of a file that is to be replaced.
    fn lock(self, path: &Path) -> Result<Option<LockedFile>> {
        Ok(self.replaces(path).then(|| LockedFile::open(path)).transpose()?)
    }

    fn replaces(self, path: &Path) -> bool {
        self.existing == Existing::Replace && path.exists()
    }

    /// Refuses a path where a file is that is to be kept.
    fn require_free(self, path: &Path) -> Result<()> {
        if self.existing == Existing::Keep && fs::symlink_metadata(path).is_ok() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        Ok(())
    }

    /// Returns the most bytes that all constants may take.
    fn constants(self) -> Result<u64> {
        let mut total = 0_u64;
        for tensor in self.reader.tensors() {
            // What has too many elements to be counted is refused with its path.
            tensor.place()?;
            let info = tensor.info()?;
            let widest = Kind::of_constant(info.dtype).widest();
            total = total.saturating_add(byte_len(&info, widest)?);
        }
        Ok(total)
    }

    /// Puts the model around its graph.
    fn make_with(self, path: &Path, store: Store<'a>) -> Result<Made<'a>> {
        let Lowered { graph, store, opset, report } =
            Lowering::run(self.reader, store, self.input_types)?;
        let metadata = self.reader.model().metadata.as_ref();
        let model = ModelProto {
            ir_version: Some(ir_version(opset)),
            producer_name: Some(env!("CARGO_PKG_NAME").to_owned()),
            producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            doc_string: metadata.and_then(|metadata| metadata.description.clone()),
            graph: Some(graph),
            opset_import: vec![OperatorSetIdProto {
                domain: Some(String::new()),
                version: Some(opset),
            }],
            metadata_props: metadata.map(properties).unwrap_or_default(),
        };
        require(model.encoded_len() as u64)?;
        let exported = Exported { model: path.to_owned(), data: None, opset, report };
        Ok(Made { model, store, exported })
    }
}

/// A model that is not written yet.
struct Made<'a> {
    model: ModelProto,
    store: Store<'a>,
    exported: Exported,
}

/// Tells whether a file is the model, for all that its length tells: a commit that fails may have put
/// it in its place.
fn may_hold(path: &Path, bytes: u64) -> bool {
    match fs::metadata(path) {
        Ok(there) => there.len() == bytes,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn properties(metadata: &Metadata) -> Vec<StringStringEntryProto> {
    let fields = metadata.fields().into_iter().filter_map(|(name, text)| Some((name, text?)));
    let entry = |(name, text): (&str, &str)| StringStringEntryProto {
        key: Some(name.to_owned()),
        value: Some(text.to_owned()),
    };
    fields.map(entry).collect()
}

/// Returns the version of ONNX's file format that came with a release of the operator set.
const fn ir_version(opset: i64) -> i64 {
    match opset {
        ..=20 => 9,
        21..=22 => 10,
        23 => 11,
        _ => 12,
    }
}

/// Refuses what a protobuf message cannot hold.
const fn require(bytes: u64) -> Result<()> {
    if bytes > MAX_MESSAGE {
        return Err(Error::TooLarge { found: bytes });
    }
    Ok(())
}

/// Constants of less bytes are always in the model.
const LEAST: u64 = 256;

/// From how many bytes constants are external where they have to be: so do ONNX's own tools.
const AUTOMATIC: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_leave_where_they_have_to() {
        let automatic = ExternalData::Automatic;
        assert_eq!(automatic.threshold(0), None);
        assert_eq!(automatic.threshold((1 << 31) - 1), None);
        assert_eq!(automatic.threshold(1 << 31), Some(1024));
        assert_eq!(ExternalData::Never.threshold(u64::MAX), None);
    }

    #[test]
    fn small_constants_always_stay() {
        assert_eq!(ExternalData::From(0).threshold(0), Some(256));
        assert_eq!(ExternalData::From(5000).threshold(0), Some(5000));
    }

    #[test]
    fn data_goes_only_where_no_model_is_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        assert!(!may_hold(&path, 3));
        fs::write(&path, b"older").unwrap();
        assert!(!may_hold(&path, 3));
        fs::write(&path, b"new").unwrap();
        assert!(may_hold(&path, 3));
    }

    /// As the list of releases in ONNX's repository pairs them.
    #[test]
    fn versions_belong_together() {
        let versions = [20, 21, 22, 23, 24].map(ir_version);
        assert_eq!(versions, [9, 10, 10, 11, 12]);
    }
}
