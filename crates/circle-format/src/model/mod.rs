//! What is in a Circle or a TFLite model, as plain values.
//!
//! Both schemas read into one [`Model`]; what only one of them has is empty for the other.
//! Positions are kept as they are stored, whether there is something at them or not: validation
//! looks at that.

mod builder;
mod graph;
mod numbers;
mod operator_code;
pub mod options;
mod quantization;
mod root;
mod schema;
mod tensor_type;
mod training;

pub use flat_tables::UnknownTable;

pub use builder::{ModelBuilder, SubgraphBuilder};
pub use graph::{Operator, Subgraph, Tensor, VariantSubtype};
pub use numbers::{
    ActivationFunctionType, BuiltinOperator, CombinerType, CompressionType, CustomOptionsFormat,
    DataFormat, DimensionType, FullyConnectedOptionsWeightsFormat, LSHProjectionType,
    LSTMKernelType, LossFn, LossReductionType, MirrorPadMode, Optimizer, Padding,
    ReduceWindowFunction, RngAlgorithm, RoPEMode, StablehloComparisonDirection,
    StablehloComparisonType, StablehloPrecisionConfig,
};
pub use operator_code::OperatorCode;
pub use options::{BuiltinOptions, BuiltinOptions2};
pub use quantization::{Quantization, QuantizationDetails, SparseIndices, SparseLevel, Sparsity};
pub use root::{Buffer, ExternalBuffer, Metadata, Model, Signature, SignatureTensor};
pub use schema::Schema;
pub use tensor_type::TensorType;
pub use training::{LossOptions, OptimizerOptions, TrainingInfo};
