//! Graphs, their tensors and their operators.

use bytes::Bytes;
use tensor_core::{DType, Shape};

use super::{
    BuiltinOptions, BuiltinOptions2, CompressionType, CustomOptionsFormat, DataFormat,
    Quantization, Sparsity, TensorType,
};

/// A graph of a model. The first one is where it starts; others are branches, bodies, and what
/// further signatures run.
#[derive(Clone, Debug, PartialEq)]
pub struct Subgraph {
    /// The tensors, which everything else refers to by position.
    pub tensors: Vec<Tensor>,
    /// Positions of the inputs, in the order of the interface.
    pub inputs: Vec<i32>,
    /// Positions of the outputs, in the order of the interface.
    pub outputs: Vec<i32>,
    /// The operators, in the order in which they run.
    pub operators: Vec<Operator>,
    /// The name.
    pub name: Option<String>,
    /// Where the channels are; of Circle alone, and out of use since schema 0.7.
    pub data_format: DataFormat,
    /// The position of a metadata entry about the graph; -1 for none.
    pub debug_metadata_index: i32,
}

impl Subgraph {
    /// Returns the tensor of a stored position; `None` where it is -1 or there is none.
    #[must_use]
    pub fn tensor(&self, index: i32) -> Option<&Tensor> {
        self.tensors.get(usize::try_from(index).ok()?)
    }

    /// Returns the inputs, in the order of the interface; `None` for a position without a tensor.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn input_tensors(&self) -> impl ExactSizeIterator<Item = Option<&Tensor>> {
        self.inputs.iter().map(|&index| self.tensor(index))
    }

    /// Returns the outputs, in the order of the interface; `None` for a position without a tensor.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn output_tensors(&self) -> impl ExactSizeIterator<Item = Option<&Tensor>> {
        self.outputs.iter().map(|&index| self.tensor(index))
    }
}

impl Default for Subgraph {
    /// Returns what a table without fields reads as.
    fn default() -> Self {
        Self {
            tensors: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            operators: Vec::new(),
            name: None,
            data_format: DataFormat::CHANNELS_LAST,
            debug_metadata_index: -1,
        }
    }
}

/// A value of a graph: an input, a constant, a variable, or what an operator makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensor {
    /// Dimensions in elements, outermost first; none for a scalar. Where a dimension is unknown,
    /// this has 1 for it, and [`shape_signature`](Self::shape_signature) -1.
    pub shape: Vec<i32>,
    /// Tells whether no shape is stored at all, which some tools take for an unknown rank.
    pub is_unshaped: bool,
    /// The element type.
    pub tensor_type: TensorType,
    /// The position of its buffer in the model; 0, an empty one, for what is not a constant.
    pub buffer: u32,
    /// The name.
    pub name: Option<String>,
    /// How stored numbers become real ones.
    pub quantization: Option<Box<Quantization>>,
    /// Tells whether it keeps its value from one run to the next.
    pub is_variable: bool,
    /// How zeros are left out.
    pub sparsity: Option<Box<Sparsity>>,
    /// The shape with -1 for each unknown dimension; absent where all are known.
    pub shape_signature: Option<Vec<i32>>,
    /// Tells whether a shape without dimensions is that of a scalar, and not unknown. Only newer
    /// converters say so.
    pub has_rank: bool,
    /// What a tensor of type VARIANT holds.
    pub variant_tensors: Vec<VariantSubtype>,
    /// How the elements are packed; of Circle alone.
    pub compression: CompressionType,
    /// The id of an external buffer; of TFLite alone, 0 for none.
    pub external_buffer: u32,
}

impl Tensor {
    /// Returns the shape; `None` where a dimension is negative.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        self.shape.iter().map(|&dim| u64::try_from(dim).ok()).collect()
    }

    /// Returns the element type that the crates of this workspace share; `None` where they have
    /// none.
    #[must_use]
    pub const fn dtype(&self) -> Option<DType> {
        self.tensor_type.dtype()
    }

    /// Tells whether a dimension is known at run time only.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        let signature = self.shape_signature.as_deref().unwrap_or(&self.shape);
        signature.iter().any(|&dim| dim < 0)
    }
}

/// What a tensor of type VARIANT holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariantSubtype {
    /// Dimensions in elements, outermost first.
    pub shape: Vec<i32>,
    /// The element type.
    pub tensor_type: TensorType,
    /// Tells whether a shape without dimensions is that of a scalar.
    pub has_rank: bool,
}

/// One step of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// The position of its code in the model.
    pub opcode_index: u32,
    /// Positions of its inputs; -1 for one that is left out.
    pub inputs: Vec<i32>,
    /// Positions of its outputs.
    pub outputs: Vec<i32>,
    /// Its options.
    pub options: Option<BuiltinOptions>,
    /// Its options, where they are of the second union.
    pub options_2: Option<Box<BuiltinOptions2>>,
    /// The options of a custom operator, in the format that the next field names.
    pub custom_options: Option<Bytes>,
    /// The format of the custom options.
    pub custom_options_format: CustomOptionsFormat,
    /// For each input whether the operator changes it.
    pub mutating_variable_inputs: Vec<bool>,
    /// Positions of tensors that it uses while it runs.
    pub intermediates: Vec<i32>,
    /// Where custom options stand that are not in the tables, in bytes from the start of the file;
    /// 0 for nowhere.
    pub large_custom_options_offset: u64,
    /// The length of those, in bytes.
    pub large_custom_options_size: u64,
    /// The position of a metadata entry about the operator; -1 for none.
    pub debug_metadata_index: i32,
}

impl Default for Operator {
    /// Returns what a table without fields reads as.
    fn default() -> Self {
        Self {
            opcode_index: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            options: None,
            options_2: None,
            custom_options: None,
            custom_options_format: CustomOptionsFormat::FLEXBUFFERS,
            mutating_variable_inputs: Vec::new(),
            intermediates: Vec::new(),
            large_custom_options_offset: 0,
            large_custom_options_size: 0,
            debug_metadata_index: -1,
        }
    }
}
