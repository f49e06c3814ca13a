//! What the format says about bytes, against the code that is generated from the schema.
//!
//! The tables here were taken from the format, not from the schema: places of fields in the list of
//! a table (4 + 2 × id), types, and what an absent field means. What has no default value here is
//! absent by itself. Releases 0.2.0 to 0.27.0 of RTen agree in all of them.

use std::collections::BTreeSet;

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, InvalidFlatbuffer, Table, Vector};

use crate::{
    AttributesType, AutoPad, ConstantDataType, CoordTransformMode, DataType, DepthToSpaceMode,
    GeluApproximation, NMSBoxOrder, NearestMode, OperatorType, PadMode, RNNDirection, ResizeMode,
    ScatterReduction, generated::rten,
};

/// Checks each table of the format: its fields, and what an empty one reads as.
macro_rules! tables {
    ($(
        $table:ident by $args:ident $(requires $required:ident)? {
            $( $vt:literal $constant:ident $field:ident: $type:ty $(= $default:expr)?; )*
        }
    )*) => {
        #[test]
        fn fields_are_at_their_places() {
            use rten::*;
            $($( assert_eq!($table::$constant, $vt, stringify!($table.$field)); )*)*
        }

        #[test]
        fn fields_have_their_types() {
            use rten::*;
            $($( let _: fn(&$table<'static>) -> $type = $table::<'static>::$field; )*)*
        }

        #[test]
        #[allow(unused_variables, reason = "some tables are empty")]
        fn absent_fields_are_built_from_defaults() {
            use rten::*;
            $(
                let args = $args::default();
                $( assert!(absent!(args.$field $(, $default)?), stringify!($table.$field)); )*
            )*
        }

        #[test]
        #[allow(unused_variables, reason = "some tables are empty")]
        fn absent_fields_are_read_as_defaults() {
            use rten::*;
            let bytes = empty_table();
            $(
                let read = flatbuffers::root::<$table<'_>>(&bytes);
                empty!(
                    read, $(requires $required)?
                    { $( (stringify!($table.$field), $field $(, $default)?) )* }
                );
            )*
        }

        #[test]
        fn nothing_else_is_generated() {
            let mut expected = BTreeSet::new();
            $($( expected.insert((stringify!($table), stringify!($constant))); )*)*
            let tables = [$( stringify!($table), )*];
            assert_eq!(generated_fields(), expected);
            assert_eq!(tables.len(), 76);
            for table in &tables {
                assert!(SOURCE.contains(&format!("pub struct {table}<'a> {{")), "{table}");
            }
            let structs = SOURCE.matches("pub _tab: ::flatbuffers::Table<'a>").count();
            assert_eq!(structs, tables.len());
        }
    };
}

macro_rules! absent {
    ($found:expr) => {
        $found.is_none()
    };
    ($found:expr, $default:expr) => {
        $found == $default
    };
}

macro_rules! empty {
    ($read:ident, requires $required:ident $fields:tt) => {
        let Err(InvalidFlatbuffer::MissingRequiredField { required, .. }) = $read else {
            panic!("{} is not required", stringify!($required));
        };
        assert_eq!(required, stringify!($required));
    };
    ($read:ident, { $( ($name:expr, $field:ident $(, $default:expr)?) )* }) => {
        let table = $read.unwrap();
        $( assert!(absent!(table.$field() $(, $default)?), "{}", $name); )*
    };
}

tables! {
    Model by ModelArgs requires graph {
        4 VT_SCHEMA_VERSION schema_version: i32 = 0;
        6 VT_GRAPH graph: Graph<'static>;
        8 VT_METADATA metadata: Option<Metadata<'static>>;
    }
    Metadata by MetadataArgs {
        4 VT_ONNX_HASH onnx_hash: Option<&'static str>;
        6 VT_DESCRIPTION description: Option<&'static str>;
        8 VT_LICENSE license: Option<&'static str>;
        10 VT_COMMIT commit: Option<&'static str>;
        12 VT_CODE_REPOSITORY code_repository: Option<&'static str>;
        14 VT_MODEL_REPOSITORY model_repository: Option<&'static str>;
        16 VT_RUN_ID run_id: Option<&'static str>;
        18 VT_RUN_URL run_url: Option<&'static str>;
    }
    Graph by GraphArgs {
        4 VT_NODES nodes: Option<Vector<'static, ForwardsUOffset<Node<'static>>>>;
        6 VT_INPUTS inputs: Option<Vector<'static, u32>>;
        8 VT_OUTPUTS outputs: Option<Vector<'static, u32>>;
        10 VT_CAPTURES captures: Option<Vector<'static, u32>>;
    }
    Node by NodeArgs {
        4 VT_NAME name: Option<&'static str>;
        6 VT_DATA_TYPE data_type: NodeKind = NodeKind(0);
        8 VT_DATA data: Option<Table<'static>>;
    }
    OperatorNode by OperatorNodeArgs {
        4 VT_TYPE_ type_: OperatorType = OperatorType(0);
        6 VT_ATTRS_TYPE attrs_type: OperatorAttrs = OperatorAttrs(0);
        8 VT_ATTRS attrs: Option<Table<'static>>;
        10 VT_INPUTS inputs: Option<Vector<'static, i32>>;
        12 VT_OUTPUTS outputs: Option<Vector<'static, i32>>;
    }
    ConstantNode by ConstantNodeArgs requires shape {
        4 VT_SHAPE shape: Vector<'static, u32>;
        6 VT_DATA_TYPE data_type: ConstantData = ConstantData(0);
        8 VT_DATA data: Option<Table<'static>>;
        10 VT_DTYPE dtype: Option<ConstantDataType>;
        12 VT_DATA_OFFSET data_offset: Option<u64>;
    }
    ValueNode by ValueNodeArgs {
        4 VT_SHAPE shape: Option<Vector<'static, ForwardsUOffset<Dim<'static>>>>;
        6 VT_DTYPE dtype: Option<DataType>;
    }
    Dim by DimArgs {
        4 VT_VALUE value: u32 = 0;
        6 VT_NAME name: Option<&'static str>;
    }
    FloatData by FloatDataArgs requires data {
        4 VT_DATA data: Vector<'static, f32>;
    }
    Int32Data by Int32DataArgs requires data {
        4 VT_DATA data: Vector<'static, i32>;
    }
    Int8Data by Int8DataArgs requires data {
        4 VT_DATA data: Vector<'static, i8>;
    }
    UInt8Data by UInt8DataArgs requires data {
        4 VT_DATA data: Vector<'static, u8>;
    }
    IntScalar by IntScalarArgs {
        4 VT_VALUE value: i32 = 0;
    }
    FloatScalar by FloatScalarArgs {
        4 VT_VALUE value: f32 = 0.0;
    }
    ArgMaxAttrs by ArgMaxAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_KEEP_DIMS keep_dims: bool = false;
    }
    AttentionAttrs by AttentionAttrsArgs {
        4 VT_IS_CAUSAL is_causal: bool = false;
        6 VT_Q_NUM_HEADS q_num_heads: Option<u32>;
        8 VT_KV_NUM_HEADS kv_num_heads: Option<u32>;
        10 VT_SCALE scale: Option<f32>;
        12 VT_SOFTCAP softcap: f32 = 0.0;
    }
    AveragePoolAttrs by AveragePoolAttrsArgs requires kernel_size {
        4 VT_KERNEL_SIZE kernel_size: Vector<'static, u32>;
        6 VT_AUTO_PAD auto_pad: AutoPad = AutoPad(0);
        8 VT_PADS pads: Option<Vector<'static, u32>>;
        10 VT_STRIDES strides: Option<Vector<'static, u32>>;
        12 VT_COUNT_INCLUDE_PAD count_include_pad: bool = false;
        14 VT_CEIL_MODE ceil_mode: bool = false;
    }
    BatchNormalizationAttrs by BatchNormalizationAttrsArgs {
        4 VT_EPSILON epsilon: f32 = 0.0;
    }
    CastAttrs by CastAttrsArgs {
        4 VT_TO to: DataType = DataType(0);
    }
    CastLikeAttrs by CastLikeAttrsArgs {}
    ConcatAttrs by ConcatAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    ConcatFromSequenceAttrs by ConcatFromSequenceAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_NEW_AXIS new_axis: bool = false;
    }
    ConstantOfShapeAttrs by ConstantOfShapeAttrsArgs requires value {
        4 VT_VALUE_TYPE value_type: Scalar = Scalar(0);
        6 VT_VALUE value: Table<'static>;
    }
    ConvAttrs by ConvAttrsArgs {
        4 VT_AUTO_PAD auto_pad: AutoPad = AutoPad(0);
        6 VT_PADS pads: Option<Vector<'static, u32>>;
        8 VT_GROUPS groups: u32 = 0;
        10 VT_STRIDES strides: Option<Vector<'static, u32>>;
        12 VT_DILATIONS dilations: Option<Vector<'static, u32>>;
    }
    ConvTransposeAttrs by ConvTransposeAttrsArgs {
        4 VT_STRIDES strides: Option<Vector<'static, u32>>;
        6 VT_AUTO_PAD auto_pad: AutoPad = AutoPad(1);
        8 VT_PADS pads: Option<Vector<'static, u32>>;
        10 VT_GROUPS groups: u32 = 1;
        12 VT_OUTPUT_PADDING output_padding: Option<Vector<'static, u32>>;
        14 VT_DILATIONS dilations: Option<Vector<'static, u32>>;
    }
    CumSumAttrs by CumSumAttrsArgs {
        4 VT_EXCLUSIVE exclusive: bool = false;
        6 VT_REVERSE reverse: bool = false;
    }
    DFTAttrs by DFTAttrsArgs {
        4 VT_INVERSE inverse: bool = false;
        6 VT_ONESIDED onesided: bool = false;
    }
    DepthToSpaceAttrs by DepthToSpaceAttrsArgs {
        4 VT_MODE mode: DepthToSpaceMode = DepthToSpaceMode(0);
        6 VT_BLOCK_SIZE block_size: u32 = 0;
    }
    DequantizeLinearAttrs by DequantizeLinearAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    DropoutAttrs by DropoutAttrsArgs {
        4 VT_SEED seed: Option<i32>;
    }
    EinsumAttrs by EinsumAttrsArgs {
        4 VT_EQUATION equation: Option<&'static str>;
    }
    EluAttrs by EluAttrsArgs {
        4 VT_ALPHA alpha: f32 = 0.0;
    }
    EyeLikeAttrs by EyeLikeAttrsArgs {
        4 VT_DTYPE dtype: Option<DataType>;
        6 VT_K k: i32 = 0;
    }
    FlattenAttrs by FlattenAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    GRUAttrs by GRUAttrsArgs {
        4 VT_DIRECTION direction: RNNDirection = RNNDirection(0);
        6 VT_HIDDEN_SIZE hidden_size: u32 = 0;
        8 VT_LINEAR_BEFORE_RESET linear_before_reset: bool = false;
    }
    GatherAttrs by GatherAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    GatherNDAttrs by GatherNDAttrsArgs {
        4 VT_BATCH_DIMS batch_dims: i32 = 0;
    }
    GeluAttrs by GeluAttrsArgs {
        4 VT_APPROXIMATE approximate: GeluApproximation = GeluApproximation(0);
    }
    GemmAttrs by GemmAttrsArgs {
        4 VT_ALPHA alpha: f32 = 0.0;
        6 VT_BETA beta: f32 = 0.0;
        8 VT_TRANSPOSE_A transpose_a: bool = false;
        10 VT_TRANSPOSE_B transpose_b: bool = false;
    }
    GridSampleAttrs by GridSampleAttrsArgs {
        4 VT_ALIGN_CORNERS align_corners: bool = false;
    }
    HardSigmoidAttrs by HardSigmoidAttrsArgs {
        4 VT_ALPHA alpha: f32 = 0.0;
        6 VT_BETA beta: f32 = 0.0;
    }
    IfAttrs by IfAttrsArgs {
        4 VT_THEN_BRANCH then_branch: Option<Graph<'static>>;
        6 VT_ELSE_BRANCH else_branch: Option<Graph<'static>>;
    }
    IsInfAttrs by IsInfAttrsArgs {}
    LSTMAttrs by LSTMAttrsArgs {
        4 VT_DIRECTION direction: RNNDirection = RNNDirection(0);
        6 VT_HIDDEN_SIZE hidden_size: u32 = 0;
    }
    LayerNormalizationAttrs by LayerNormalizationAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_EPSILON epsilon: f32 = 0.0;
    }
    LeakyReluAttrs by LeakyReluAttrsArgs {
        4 VT_ALPHA alpha: f32 = 0.0;
    }
    LoopAttrs by LoopAttrsArgs {
        4 VT_BODY body: Option<Graph<'static>>;
    }
    LpNormalizationAttrs by LpNormalizationAttrsArgs {
        4 VT_AXIS axis: i32 = -1;
        6 VT_P p: u32 = 2;
    }
    MaxPoolAttrs by MaxPoolAttrsArgs requires kernel_size {
        4 VT_KERNEL_SIZE kernel_size: Vector<'static, u32>;
        6 VT_AUTO_PAD auto_pad: AutoPad = AutoPad(0);
        8 VT_PADS pads: Option<Vector<'static, u32>>;
        10 VT_STRIDES strides: Option<Vector<'static, u32>>;
        12 VT_CEIL_MODE ceil_mode: bool = false;
    }
    ModAttrs by ModAttrsArgs {
        4 VT_FMOD fmod: bool = false;
    }
    MultinomialAttrs by MultinomialAttrsArgs {
        4 VT_SAMPLE_SIZE sample_size: i32 = 0;
        6 VT_SEED seed: Option<f32>;
    }
    NonMaxSuppressionAttrs by NonMaxSuppressionAttrsArgs {
        4 VT_BOX_ORDER box_order: NMSBoxOrder = NMSBoxOrder(0);
    }
    OneHotAttrs by OneHotAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    PadAttrs by PadAttrsArgs {
        4 VT_MODE mode: PadMode = PadMode(0);
    }
    QuantizeLinearAttrs by QuantizeLinearAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_OUTPUT_DTYPE output_dtype: Option<DataType>;
    }
    RandomNormalAttrs by RandomNormalAttrsArgs {
        4 VT_MEAN mean: f32 = 0.0;
        6 VT_SCALE scale: f32 = 0.0;
        8 VT_SEED seed: Option<f32>;
        10 VT_SHAPE shape: Option<Vector<'static, u32>>;
    }
    RandomNormalLikeAttrs by RandomNormalLikeAttrsArgs {
        4 VT_MEAN mean: f32 = 0.0;
        6 VT_SCALE scale: f32 = 0.0;
        8 VT_SEED seed: Option<f32>;
    }
    RandomUniformAttrs by RandomUniformAttrsArgs {
        4 VT_SHAPE shape: Option<Vector<'static, u32>>;
        6 VT_HIGH high: f32 = 0.0;
        8 VT_LOW low: f32 = 0.0;
        10 VT_SEED seed: Option<f32>;
    }
    RandomUniformLikeAttrs by RandomUniformLikeAttrsArgs {
        4 VT_HIGH high: f32 = 0.0;
        6 VT_LOW low: f32 = 0.0;
        8 VT_SEED seed: Option<f32>;
    }
    ReduceMeanAttrs by ReduceMeanAttrsArgs {
        4 VT_AXES axes: Option<Vector<'static, i32>>;
        6 VT_KEEP_DIMS keep_dims: bool = false;
        8 VT_NOOP_WITH_EMPTY_AXES noop_with_empty_axes: bool = false;
    }
    ReshapeAttrs by ReshapeAttrsArgs {
        4 VT_ALLOW_ZERO allow_zero: bool = false;
    }
    ResizeAttrs by ResizeAttrsArgs {
        4 VT_MODE mode: ResizeMode = ResizeMode(0);
        6 VT_COORD_MODE coord_mode: CoordTransformMode = CoordTransformMode(0);
        8 VT_NEAREST_MODE nearest_mode: NearestMode = NearestMode(0);
    }
    ReverseSequenceAttrs by ReverseSequenceAttrsArgs {
        4 VT_BATCH_AXIS batch_axis: i32 = 1;
        6 VT_TIME_AXIS time_axis: i32 = 0;
    }
    RotaryEmbeddingAttrs by RotaryEmbeddingAttrsArgs {
        4 VT_INTERLEAVED interleaved: bool = false;
        6 VT_NUM_HEADS num_heads: u32 = 0;
        8 VT_ROTARY_EMBEDDING_DIM rotary_embedding_dim: u32 = 0;
    }
    STFTAttrs by STFTAttrsArgs {
        4 VT_ONESIDED onesided: bool = true;
    }
    ScatterElementsAttrs by ScatterElementsAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_REDUCTION reduction: ScatterReduction = ScatterReduction(0);
    }
    ScatterNDAttrs by ScatterNDAttrsArgs {
        4 VT_REDUCTION reduction: ScatterReduction = ScatterReduction(0);
    }
    SequenceEmptyAttrs by SequenceEmptyAttrsArgs {
        4 VT_DTYPE dtype: Option<DataType>;
    }
    ShapeAttrs by ShapeAttrsArgs {
        4 VT_START start: Option<i32>;
        6 VT_END end: Option<i32>;
    }
    SoftmaxAttrs by SoftmaxAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    SplitAttrs by SplitAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_NUM_OUTPUTS num_outputs: Option<i32>;
    }
    SplitToSequenceAttrs by SplitToSequenceAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_KEEP_DIMS keep_dims: bool = true;
    }
    TopKAttrs by TopKAttrsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_LARGEST largest: bool = false;
        8 VT_SORTED sorted: bool = false;
    }
    TransposeAttrs by TransposeAttrsArgs {
        4 VT_PERM perm: Option<Vector<'static, u32>>;
    }
    TriluAttrs by TriluAttrsArgs {
        4 VT_UPPER upper: bool = false;
    }
    UpsampleAttrs by UpsampleAttrsArgs {
        4 VT_MODE mode: ResizeMode = ResizeMode(0);
    }
}

const SOURCE: &str = include_str!("../../generated/rten.rs");

/// Returns table and constant of every place of a field in the generated code.
fn generated_fields() -> BTreeSet<(&'static str, &'static str)> {
    let mut table = "";
    let mut fields = BTreeSet::new();
    for line in SOURCE.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("impl<'a> ") {
            table = name.split("<'a>").next().unwrap();
        }
        if let Some(constant) = line.strip_prefix("pub const VT_") {
            let len = constant.find(':').unwrap();
            let start = line.len() - constant.len() - "VT_".len();
            fields.insert((table, &line[start..start + "VT_".len() + len]));
        }
    }
    fields
}

/// Returns a FlatBuffer whose root has no field.
fn empty_table() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let table = builder.start_table();
    let table = builder.end_table(table);
    builder.finish(table, None);
    builder.finished_data().to_vec()
}

/// Checks that generated and typed enumerations have the same names and numbers.
macro_rules! enums {
    ($($name:ident)*) => {
        #[test]
        fn enumerators_have_their_numbers() {
            $(
                let generated: Vec<_> = rten::$name::ENUM_VALUES
                    .iter()
                    .map(|value| (value.0, value.variant_name().unwrap()))
                    .collect();
                let typed: Vec<_> =
                    $name::ALL.iter().map(|value| (value.code(), value.name().unwrap())).collect();
                assert_eq!(generated, typed, stringify!($name));
                for (code, _) in typed {
                    assert_eq!($name::from_code(code).code(), code);
                }
            )*
        }
    };
}

enums! {
    AutoPad ConstantDataType CoordTransformMode DataType DepthToSpaceMode GeluApproximation
    NMSBoxOrder NearestMode OperatorType PadMode RNNDirection ResizeMode ScatterReduction
}

#[test]
fn members_of_unions_have_their_numbers() {
    let generated = rten::OperatorAttrs::ENUM_VALUES.iter().skip(1);
    let generated: Vec<_> = generated.map(|tag| (tag.0, tag.variant_name().unwrap())).collect();
    let typed = AttributesType::ALL.iter();
    let typed: Vec<_> = typed.map(|table| (table.code(), table.name().unwrap())).collect();
    assert_eq!(generated, typed);
    assert_eq!(typed.len(), 62);

    let names = |names: &[Option<&'static str>]| -> Vec<&'static str> {
        names.iter().map(|name| name.unwrap()).collect()
    };
    let scalar: Vec<_> = rten::Scalar::ENUM_VALUES.iter().map(|tag| tag.variant_name()).collect();
    assert_eq!(names(&scalar), ["NONE", "IntScalar", "FloatScalar"]);
    let kind: Vec<_> = rten::NodeKind::ENUM_VALUES.iter().map(|tag| tag.variant_name()).collect();
    assert_eq!(names(&kind), ["NONE", "OperatorNode", "ConstantNode", "ValueNode"]);
    let data: Vec<_> =
        rten::ConstantData::ENUM_VALUES.iter().map(|tag| tag.variant_name()).collect();
    assert_eq!(names(&data), ["NONE", "FloatData", "Int32Data", "Int8Data", "UInt8Data"]);
}

#[test]
fn file_identifier_and_extension_are_declared() {
    assert_eq!(rten::MODEL_IDENTIFIER, "RTEN");
    assert_eq!(rten::MODEL_EXTENSION, "rten");
}
