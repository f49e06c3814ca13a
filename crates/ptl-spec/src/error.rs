use std::fmt;

use tensor_core::{At, Chain, ErrorKind, Finding, Shape, text::short};

use crate::ScalarType;
pub use crate::pickle::PickleFault;

/// What can be wrong with a spec, a call, or a model file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of a spec is not JSON, or nested too deep, or has a key twice in one object.
    #[error("spec is malformed: {reason}")]
    Json {
        /// What was found, with line and column.
        reason: String,
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1; 0 for the end of the line before it.
        column: u64,
    },
    /// Something in a spec, or in a call that runs it, is not as it must be.
    #[error("{at} {fault}")]
    Spec {
        /// Where, such as `pack.items[0].dtype`.
        at: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The caller's model failed.
    #[error("model failed")]
    Model {
        /// What the model said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file that starts as a ZIP file and has no directory at its end.
    #[error(
        "the ZIP file has no end: what an interrupted edit has appended is cut off by \
         `modelcrate recover` (ptl_spec::recover)"
    )]
    NoEnd {
        /// What is wrong with the end.
        source: model_archive::Error,
    },
    /// A ZIP file whose first record lies in no folder: PyTorch takes its root from there.
    #[error("first record {:?} is in no folder, expected a root folder", short(.entry))]
    NoRoot {
        /// The name of the record; empty where there is none.
        entry: String,
    },
    /// A record that PyTorch does not find, or refuses the file for.
    #[error("record {:?} is not below the root folder {:?}", short(.entry), short(.root))]
    OutsideRoot {
        /// The whole name of the record.
        entry: String,
        /// The root folder.
        root: String,
    },
    /// A file without `bytecode.pkl`: it was saved for the full runtime, not for phones.
    #[error(
        "there is no record \"bytecode.pkl\": the model was not saved for the lite interpreter \
         (_save_for_lite_interpreter)"
    )]
    NotLite,
    /// A pickle holds what no model needs, or is broken.
    #[error("record {:?} at byte {at}: pickle {fault}", short(.record))]
    Pickle {
        /// The name of the record.
        record: String,
        /// The byte of the opcode in the record; 0 for what concerns all of it.
        at: u64,
        /// What is wrong.
        fault: PickleFault,
    },
    /// A FlatBuffer is broken.
    #[error(transparent)]
    FlatBuffer(#[from] flat_tables::Fault),
    /// A part of a FlatBuffer says what no module can.
    #[error("{what} at byte {at} {problem}")]
    Module {
        /// The part.
        what: &'static str,
        /// Where it is, in bytes from the start of the file.
        at: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A tensor does not lie in its storage.
    #[error("tensor {:?} {fault}", short(.name))]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong with it.
        fault: TensorFault,
    },
    /// The file cannot be edited as it was asked for.
    #[error("the file cannot be edited: {reason}")]
    NotEditable {
        /// Why.
        reason: &'static str,
    },
    /// The model cannot be written for the full runtime.
    #[error("the model cannot become TorchScript: {fault}")]
    NotTorchScript {
        /// What it cannot have.
        fault: TorchScriptFault,
    },
    /// An edit would put in a spec that [`Reader::lint`](crate::Reader::lint) finds errors in.
    #[error("spec would be faulty: {message}")]
    Faulty {
        /// The first of them.
        message: String,
    },
    /// An extra file is to be taken out that is not there.
    #[error("there is no extra file {:?}", short(.name))]
    MissingFile {
        /// Its name.
        name: String,
    },
    /// An extra file is to have a name that is not safe to read.
    #[error("extra file {:?}: name {fault}", short(.name))]
    FileName {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: model_archive::name::NameFault,
    },
    /// A write failed.
    #[error("writing the file failed")]
    Write {
        /// What the system said.
        source: std::io::Error,
    },
    /// The ZIP file is broken, or a record of it.
    #[error(transparent)]
    Archive(#[from] model_archive::Error),
    /// Bytes could not be read, a limit is exceeded, or a shape is impossible.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line() as u64, error.column() as u64);
        Self::Json { reason: error.to_string(), line, column }
    }

    #[expect(clippy::needless_pass_by_value, reason = "so that both texts and paths are accepted")]
    pub(crate) fn spec(at: impl ToString, fault: Fault) -> Self {
        Self::Spec { at: at.to_string(), fault }
    }

    /// Returns the stable id of the rule that is broken, as reports have it.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Json { .. } => "ptl/spec-json",
            Self::Spec { fault, .. } => fault.rule(),
            Self::Model { .. } => "ptl/model",
            Self::NoRoot { .. } | Self::OutsideRoot { .. } => "ptl/root",
            Self::NotLite => "ptl/not-lite",
            Self::Pickle { .. } => "ptl/pickle",
            Self::FlatBuffer(_) | Self::Module { .. } => "ptl/flatbuffer",
            Self::Tensor { .. } => "ptl/tensor",
            Self::NotTorchScript { .. } => "ptl/torchscript",
            Self::Archive(_) | Self::NoEnd { .. } => "ptl/archive",
            Self::NotEditable { .. }
            | Self::Faulty { .. }
            | Self::MissingFile { .. }
            | Self::FileName { .. }
            | Self::Write { .. } => "ptl/edit",
            Self::Core(error) => match error.kind() {
                ErrorKind::OverLimit => "ptl/limit",
                ErrorKind::Busy => "ptl/edit",
                _ => "ptl/read",
            },
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Json { .. }
            | Self::NoEnd { .. }
            | Self::NoRoot { .. }
            | Self::OutsideRoot { .. }
            | Self::Pickle { .. }
            | Self::Module { .. }
            | Self::Faulty { .. } => ErrorKind::Malformed,
            Self::NotLite => ErrorKind::Unsupported,
            Self::Spec { fault, .. } => fault.kind(),
            Self::FlatBuffer(fault) => fault.kind(),
            Self::Tensor { fault, .. } => fault.kind(),
            Self::Model { .. }
            | Self::NotEditable { .. }
            | Self::NotTorchScript { .. }
            | Self::FileName { .. } => ErrorKind::Usage,
            Self::MissingFile { .. } => ErrorKind::NotFound,
            Self::Write { .. } => ErrorKind::Io,
            Self::Archive(error) => error.kind(),
            Self::Core(error) => error.kind(),
        }
    }

    /// Returns the place that the error is about, as far as it is known.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::Json { line, column, .. } => At::file().line(*line).column(*column),
            Self::Spec { at, .. } => At::file().path(at),
            Self::NoRoot { entry } | Self::OutsideRoot { entry, .. } => At::file().entry(entry),
            Self::NotLite => At::file().entry("bytecode.pkl"),
            Self::Pickle { record, at, .. } => At::file().entry(record).offset(*at),
            Self::FlatBuffer(fault) => At::file().offset(fault.at()),
            Self::Module { at, .. } => At::file().offset(*at),
            Self::Tensor { name, .. } => At::file().tensor(name),
            Self::MissingFile { name } | Self::FileName { name, .. } => At::file().entry(name),
            Self::Faulty { .. } => At::file().entry("model/live.spec.json"),
            Self::NoEnd { source } | Self::Archive(source) => source.at(),
            Self::Core(error) => error.at(),
            Self::NotTorchScript { fault } => fault.at(),
            Self::Model { .. } | Self::NotEditable { .. } | Self::Write { .. } => At::file(),
        }
    }

    /// Returns the error as a report has it.
    pub(crate) fn finding(&self) -> Finding {
        Finding::error(self.rule(), Chain(self).to_string()).at(self.at())
    }
}

impl From<flat_tables::Error> for Error {
    fn from(error: flat_tables::Error) -> Self {
        match error {
            flat_tables::Error::Fault(fault) => fault.into(),
            flat_tables::Error::Core(error) => error.into(),
        }
    }
}

/// Why a model cannot be written for the full runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TorchScriptFault {
    /// It keeps no source.
    #[error("it keeps no source, which the full runtime compiles")]
    NoSource,
    /// A record is absent that the full runtime reads.
    #[error("it has no record {name:?}")]
    NoRecord {
        /// The name of the record.
        name: &'static str,
    },
    /// A value has no place in such an archive.
    #[error("{:?} is {found}", short(.path))]
    Value {
        /// Where it is in the model.
        path: String,
        /// What it is.
        found: String,
    },
}

impl TorchScriptFault {
    fn at(&self) -> At {
        match self {
            Self::NoSource => At::file().entry("code"),
            Self::NoRecord { name } => At::file().entry(*name),
            Self::Value { path, .. } => At::file().path(path),
        }
    }
}

/// What is wrong with a tensor. It reads on from its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFault {
    /// Nothing holds its storage.
    #[error("has its elements in {storage}, which is absent")]
    NoStorage {
        /// The record or the number of the storage.
        storage: String,
    },
    /// Its storage has another length than its elements.
    #[error("has a storage of {found} bytes, expected {elements} elements of {width} bytes")]
    Storage {
        /// Bytes that there are.
        found: u64,
        /// Elements that there should be.
        elements: u64,
        /// Bytes of each.
        width: u64,
    },
    /// It reaches out of its storage.
    #[error("reaches element {} of a storage of {elements}", Last(*.last))]
    OutOfBounds {
        /// The last element that it has in its storage, counted from 0.
        last: Option<u64>,
        /// Elements of the storage.
        elements: u64,
    },
    /// A part of a sparse tensor has another shape than belongs to it.
    #[error("has {part} of shape {found}, expected {expected}")]
    Part {
        /// The part.
        part: &'static str,
        /// Its shape.
        found: Shape,
        /// What is expected, in brackets.
        expected: String,
    },
    /// The indices of a sparse tensor are not whole numbers.
    #[error("has {part} of {found}, expected Long or Int")]
    IndexType {
        /// The part.
        part: &'static str,
        /// The element type.
        found: ScalarType,
    },
    /// An index of a sparse tensor leads out of it.
    #[error("has {found} among its {part}, expected 0 to {limit}, exclusive")]
    Index {
        /// The part.
        part: &'static str,
        /// The index.
        found: i64,
        /// The size of the dimension.
        limit: u64,
    },
    /// The rows of a sparse matrix do not follow each other.
    #[error("has crow_indices that do not rise from 0 to {elements}")]
    Rows {
        /// How many elements are stored.
        elements: u64,
    },
    /// Its element type has no name here.
    #[error("has elements of {found}, which no reader here knows")]
    Scalar {
        /// The type.
        found: ScalarType,
    },
}

impl TensorFault {
    const fn kind(&self) -> ErrorKind {
        match self {
            Self::Scalar { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Malformed,
        }
    }
}

/// What is wrong at one place of a spec. It reads on from the place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A field that the type needs is absent. Format text: the lists of types.
    #[error("has no {field:?}")]
    Missing {
        /// The name of the field.
        field: &'static str,
    },
    /// A value is of the wrong kind or out of its range.
    #[error("is {found}, expected {expected}")]
    Value {
        /// The value, shortened.
        found: String,
        /// What is expected.
        expected: &'static str,
    },
    /// A field that the type has to have together with another stands alone.
    #[error("has {field:?} but no {other:?}, expected both or none")]
    Alone {
        /// The field.
        field: &'static str,
        /// The other one.
        other: &'static str,
    },
    /// Transforms do not end in exactly one of type `image_to_tensor`.
    #[error("has {found}, expected image_to_image transforms and one image_to_tensor at the end")]
    Chain {
        /// What is there.
        found: &'static str,
    },
    /// A stub has no parameter. Format text: "Model Specification".
    #[error("is the stub \"${}\", but the call has no parameter {:?}", short(.key), short(.key))]
    Unbound {
        /// The name of the parameter.
        key: String,
    },
    /// A field names a picture or sound that the call does not have.
    #[error("names the parameter {:?}, which the call does not have", short(.name))]
    MissingParam {
        /// The name of the parameter.
        name: String,
    },
    /// One parameter is used as two kinds that exclude each other.
    #[error("takes the parameter {:?} for {found}, but {other} takes it for {expected}", short(.name))]
    ParamKinds {
        /// The name of the parameter.
        name: String,
        /// What it is here.
        found: &'static str,
        /// The other place.
        other: String,
        /// What it is there.
        expected: &'static str,
    },
    /// The value of a parameter breaks the text substitution of the `Android` dialect.
    #[error("cannot take the parameter {:?} on Android: {reason}", short(.name))]
    Replacement {
        /// The name of the parameter.
        name: String,
        /// What breaks.
        reason: &'static str,
    },
    /// A tensor has another number of items than its sizes say. Format text: type `tensor`.
    #[error("has {found} items, but sizes {sizes} need {expected}")]
    ItemCount {
        /// How many there are.
        found: u64,
        /// The sizes.
        sizes: Shape,
        /// How many there should be.
        expected: u64,
    },
    /// A size, a number or the like has no room where it goes.
    #[error("is {found}, which does not fit {target}")]
    Range {
        /// The value.
        found: String,
        /// What it should fit.
        target: &'static str,
    },
    /// A crop is larger than the picture. Format text: transform `center_crop`.
    #[error("crops {width} x {height} pixels from a picture of {picture_width} x {picture_height}")]
    Crop {
        /// Of the crop.
        width: i64,
        /// Of the crop.
        height: i64,
        /// Of the picture at this step.
        picture_width: u32,
        /// Of the picture at this step.
        picture_height: u32,
    },
    /// A crop leaves no pixel.
    #[error("leaves {width} x {height} pixels of the picture, expected at least one")]
    NoPixels {
        /// What remains.
        width: i64,
        /// What remains.
        height: i64,
    },
    /// Background and foreground are one colour: every distance is divided by zero.
    #[error("has {colour} as background and as foreground, expected two colours")]
    SameColours {
        /// The colour.
        colour: crate::Colour,
    },
    /// A vocabulary that a tokenizer or decoder needs is absent. Format text: types
    /// `tensor_from_string`, `tensor_to_string`, `bert_decode_qa_answer`.
    #[error("needs the vocabulary {key:?}, which the spec does not have")]
    MissingVocabulary {
        /// Its key in the root object.
        key: &'static str,
    },
    /// A vocabulary lacks a token without which texts cannot be encoded.
    #[error("lacks the token {token:?}")]
    MissingToken {
        /// The token.
        token: &'static str,
    },
    /// An id is not in the vocabulary.
    #[error("gets the token id {id}, which the vocabulary does not have")]
    UnknownId {
        /// The id.
        id: i64,
    },
    /// The model's output is of another kind.
    #[error("gets {found} from the model, expected {expected}")]
    ModelOutput {
        /// What the model gave.
        found: String,
        /// What is expected.
        expected: &'static str,
    },
    /// A tuple or list of the model has another length.
    #[error("gets {found} items from the model, expected {expected}")]
    OutputCount {
        /// How many came.
        found: usize,
        /// How many the spec has.
        expected: usize,
    },
    /// The model's dictionary lacks a key.
    #[error("gets no {key:?} in the dictionary of the model", key = short(.key))]
    MissingOutput {
        /// The key.
        key: String,
    },
    /// Two outputs have one key.
    #[error("writes the result {key:?}, which another output writes too", key = short(.key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// An answer is asked for, but the call has packed no text with the tokenizer `bert`.
    #[error("needs the token ids of a text that the same call packed with the tokenizer \"bert\"")]
    NoTokens,
    /// An answer ends before it starts, or outside the text.
    #[error("gets an answer from token {start} to {end} of {tokens}")]
    Answer {
        /// The first token, counted from 0.
        start: usize,
        /// The last token.
        end: usize,
        /// How many there are.
        tokens: usize,
    },
    /// The crate was built without what this needs.
    #[error("needs the feature {feature:?} of ptl-spec")]
    Feature {
        /// The name of the feature.
        feature: &'static str,
    },
    /// A picture cannot be decoded.
    #[error("is not a picture that can be decoded: {reason}")]
    Picture {
        /// What the decoder said.
        reason: String,
    },
    /// A limit of `tensor_core` is exceeded.
    #[error("cannot be made: {reason}")]
    Core {
        /// What `tensor_core` said.
        reason: String,
        /// What that means.
        kind: ErrorKind,
    },
}

impl Fault {
    /// Returns the stable id of the rule that is broken, as reports have it.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::Alone { .. } => "ptl/spec-field",
            Self::Value { .. } | Self::Range { .. } => "ptl/spec-value",
            Self::Chain { .. } => "ptl/spec-transforms",
            Self::Unbound { .. } | Self::MissingParam { .. } => "ptl/spec-parameter",
            Self::ParamKinds { .. } => "ptl/spec-parameter-kinds",
            Self::ItemCount { .. } => "ptl/spec-items",
            Self::SameColours { .. } => "ptl/spec-colours",
            Self::MissingVocabulary { .. } | Self::MissingToken { .. } => "ptl/spec-vocabulary",
            Self::DuplicateKey { .. } => "ptl/spec-duplicate-key",
            Self::NoTokens => "ptl/spec-answer",
            // What only a call meets.
            _ => "ptl/call",
        }
    }

    /// Returns what the fault means: a spec that its parameters do not fit counts as a broken one.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Feature { .. } => ErrorKind::Unsupported,
            Self::Core { kind, .. } => *kind,
            _ => ErrorKind::Malformed,
        }
    }
}

impl From<tensor_core::Error> for Fault {
    fn from(error: tensor_core::Error) -> Self {
        Self::Core { reason: Chain(&error).to_string(), kind: error.kind() }
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Shows the place of an element that 64 bits may not hold.
struct Last(Option<u64>);

impl fmt::Display for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(last) => last.fmt(f),
            None => f.write_str("2^64 or later"),
        }
    }
}
