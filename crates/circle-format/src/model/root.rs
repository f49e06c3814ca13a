use bytes::Bytes;

use super::{BuiltinOptions, Operator, OperatorCode, Schema, Subgraph};

/// A Circle or TFLite model, as plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Which schema it has.
    pub schema: Schema,
    /// The version: 0 in Circle, 3 in TFLite.
    pub version: u32,
    /// What operators are of, which refer to these by position.
    pub operator_codes: Vec<OperatorCode>,
    /// The graphs; the first is where the model starts.
    pub subgraphs: Vec<Subgraph>,
    /// What it says about itself.
    pub description: Option<String>,
    /// The buffers, which tensors and metadata refer to by position. The first is empty.
    pub buffers: Vec<Buffer>,
    /// Positions of buffers with metadata; out of use.
    pub metadata_buffer: Vec<i32>,
    /// Named buffers.
    pub metadata: Vec<Metadata>,
    /// Names for the inputs and outputs of graphs.
    pub signatures: Vec<Signature>,
    /// The files of external buffers; of TFLite alone.
    pub external_groups: Vec<Option<String>>,
    /// Buffers in other files; of TFLite alone.
    pub external_buffers: Vec<ExternalBuffer>,
}

/// Bytes of constants or metadata: in the tables, or elsewhere in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The bytes, where they are in the tables and were read.
    pub data: Bytes,
    /// Where they start otherwise, in bytes from the start of the file; 0 and 1 for nowhere.
    pub offset: u64,
    /// Their length there, in bytes.
    pub size: u64,
    /// Tells whether offset and size lead into the tables: of a file that is read by position,
    /// 64 KiB and more of a constant are read when they are asked for.
    pub is_unread: bool,
}

impl Buffer {
    /// Tells whether the bytes stand outside of the tables.
    #[must_use]
    pub const fn is_external(&self) -> bool {
        self.offset > 1 && !self.is_unread
    }

    /// Tells whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes there are said to be.
    #[must_use]
    pub const fn len(&self) -> u64 {
        if self.is_in_file() { self.size } else { self.data.len() as u64 }
    }

    /// Tells whether the bytes are to be read from the file.
    pub(crate) const fn is_in_file(&self) -> bool {
        self.is_external() || self.is_unread
    }
}

/// A named buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The name.
    pub name: Option<String>,
    /// The position of the buffer.
    pub buffer: u32,
}

/// Names for the inputs and outputs of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The inputs.
    pub inputs: Vec<SignatureTensor>,
    /// The outputs.
    pub outputs: Vec<SignatureTensor>,
    /// The name of the signature.
    pub key: Option<String>,
    /// The tag of what it was converted from; out of use.
    pub tag: Option<String>,
    /// The position of the graph.
    pub subgraph_index: u32,
}

/// One name of a signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureTensor {
    /// The name.
    pub name: Option<String>,
    /// The position of the tensor in the graph of the signature.
    pub tensor_index: u32,
}

/// A buffer in another file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalBuffer {
    /// What tensors refer to it by.
    pub id: u32,
    /// The position of its file among the groups.
    pub group: u32,
    /// Where it starts there, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// How its elements are packed.
    pub packing: Option<String>,
}

impl Model {
    /// Returns the code of an operator; `None` where it refers to none.
    #[must_use]
    pub fn operator_code(&self, operator: &Operator) -> Option<&OperatorCode> {
        self.operator_codes.get(usize::try_from(operator.opcode_index).ok()?)
    }

    /// Returns the models that operators `RUN_MODEL` run, as the model names them: from the folder
    /// that it is in.
    pub fn run_models(&self) -> impl Iterator<Item = &str> {
        let operators = self.subgraphs.iter().flat_map(|graph| &graph.operators);
        operators.filter_map(|operator| match &operator.options {
            Some(BuiltinOptions::RunModel(options)) => options.location.as_deref(),
            _ => None,
        })
    }

    /// Returns every file that the model names: other models, and those of external buffers.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.run_models().chain(self.external_groups.iter().flatten().map(String::as_str))
    }

    /// Counts for each operator code how many operators are of it, in all graphs.
    #[must_use]
    pub fn operator_counts(&self) -> Vec<u64> {
        let mut counts = vec![0_u64; self.operator_codes.len()];
        for operator in self.subgraphs.iter().flat_map(|graph| &graph.operators) {
            let index = usize::try_from(operator.opcode_index).ok();
            if let Some(count) = index.and_then(|index| counts.get_mut(index)) {
                *count = count.saturating_add(1);
            }
        }
        counts
    }

    /// Returns a buffer by its position; `None` where there are not as many.
    #[must_use]
    pub fn buffer(&self, index: u32) -> Option<&Buffer> {
        self.buffers.get(usize::try_from(index).ok()?)
    }
}
