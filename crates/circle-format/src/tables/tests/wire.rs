//! What the formats say about bytes, against the code that is generated from the schemas.
//!
//! The tables here were taken from the formats, not from the schemas: places of fields in the list
//! of a table (4 + 2 × id), types, and what an absent field means. What has no default value here
//! is absent by itself.

use std::collections::BTreeSet;

use flatbuffers::FlatBufferBuilder;

use crate::model::{self, BuiltinOptions, BuiltinOptions2, Schema, TensorType};

/// Checks each table of one schema: its fields, and what an empty one reads as.
macro_rules! tables {
    ($schema:ident {$(
        $table:ident by $args:ident {
            $( $vt:literal $constant:ident $field:ident: $type:ty $(= $default:expr)?; )*
        }
    )*}) => {
        mod $schema {
            use std::collections::BTreeSet;

            #[allow(unused_imports, reason = "one schema has no list of tables")]
            use flatbuffers::{ForwardsUOffset, Table, Vector};

            use super::{empty_table, generated_fields};
            use crate::generated::$schema::*;

            const SOURCE: &str =
                include_str!(concat!("../../generated/", stringify!($schema), ".rs"));

            #[test]
            fn fields_are_at_their_places() {
                $($( assert_eq!($table::$constant, $vt, stringify!($table.$field)); )*)*
            }

            #[test]
            fn fields_have_their_types() {
                $($( let _: fn(&$table<'static>) -> $type = $table::<'static>::$field; )*)*
            }

            #[test]
            #[allow(unused_variables, reason = "some tables are empty")]
            fn absent_fields_are_read_as_defaults() {
                let bytes = empty_table();
                $(
                    let table = flatbuffers::root::<$table<'_>>(&bytes).unwrap();
                    $( assert!(absent!(table.$field() $(, $default)?), stringify!($table.$field)); )*
                )*
            }

            #[test]
            #[allow(unused_variables, reason = "some tables are empty")]
            fn absent_fields_are_built_from_defaults() {
                $(
                    let args = $args::default();
                    $( assert!(absent!(args.$field $(, $default)?), stringify!($table.$field)); )*
                )*
            }

            #[test]
            fn nothing_else_is_generated() {
                let mut expected = BTreeSet::new();
                $($( expected.insert((stringify!($table), stringify!($constant))); )*)*
                assert_eq!(generated_fields(SOURCE), expected);
                let tables = [$( stringify!($table), )*];
                for table in &tables {
                    assert!(SOURCE.contains(&format!("pub struct {table}<'a> {{")), "{table}");
                }
                let structs = SOURCE.matches("pub _tab: ::flatbuffers::Table<'a>").count();
                assert_eq!(structs, tables.len());
            }
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

tables! { circle {
    // Both schemas have these; what is marked in `schemas/circle.fbs` only one.
    Operator by OperatorArgs {
        4 VT_OPCODE_INDEX opcode_index: u32 = 0;
        6 VT_INPUTS inputs: Option<Vector<'static, i32>>;
        8 VT_OUTPUTS outputs: Option<Vector<'static, i32>>;
        10 VT_BUILTIN_OPTIONS_TYPE builtin_options_type: BuiltinOptions = BuiltinOptions(0);
        12 VT_BUILTIN_OPTIONS builtin_options: Option<Table<'static>>;
        14 VT_CUSTOM_OPTIONS custom_options: Option<Vector<'static, u8>>;
        16 VT_CUSTOM_OPTIONS_FORMAT custom_options_format:
            CustomOptionsFormat = CustomOptionsFormat(0);
        18 VT_MUTATING_VARIABLE_INPUTS mutating_variable_inputs:
            Option<Vector<'static, bool>>;
        20 VT_INTERMEDIATES intermediates: Option<Vector<'static, i32>>;
        22 VT_LARGE_CUSTOM_OPTIONS_OFFSET large_custom_options_offset: u64 = 0;
        24 VT_LARGE_CUSTOM_OPTIONS_SIZE large_custom_options_size: u64 = 0;
        26 VT_BUILTIN_OPTIONS_2_TYPE builtin_options_2_type:
            BuiltinOptions2 = BuiltinOptions2(0);
        28 VT_BUILTIN_OPTIONS_2 builtin_options_2: Option<Table<'static>>;
        30 VT_DEBUG_METADATA_INDEX debug_metadata_index: i32 = -1;
    }
    OperatorCode by OperatorCodeArgs {
        4 VT_DEPRECATED_BUILTIN_CODE deprecated_builtin_code: i8 = 0;
        6 VT_CUSTOM_CODE custom_code: Option<&'static str>;
        8 VT_VERSION version: i32 = 1;
        10 VT_BUILTIN_CODE builtin_code: BuiltinOperator = BuiltinOperator(0);
    }
    Buffer by BufferArgs {
        4 VT_DATA data: Option<Vector<'static, u8>>;
        6 VT_OFFSET offset: u64 = 0;
        8 VT_SIZE size: u64 = 0;
    }
    Metadata by MetadataArgs {
        4 VT_NAME name: Option<&'static str>;
        6 VT_BUFFER buffer: u32 = 0;
    }
    SignatureDef by SignatureDefArgs {
        4 VT_INPUTS inputs: Option<Vector<'static, ForwardsUOffset<TensorMap<'static>>>>;
        6 VT_OUTPUTS outputs: Option<Vector<'static, ForwardsUOffset<TensorMap<'static>>>>;
        8 VT_SIGNATURE_KEY signature_key: Option<&'static str>;
        10 VT_TAG tag: Option<&'static str>;
        12 VT_SUBGRAPH_INDEX subgraph_index: u32 = 0;
    }
    TensorMap by TensorMapArgs {
        4 VT_NAME name: Option<&'static str>;
        6 VT_TENSOR_INDEX tensor_index: u32 = 0;
    }
    QuantizationParameters by QuantizationParametersArgs {
        4 VT_MIN min: Option<Vector<'static, f32>>;
        6 VT_MAX max: Option<Vector<'static, f32>>;
        8 VT_SCALE scale: Option<Vector<'static, f32>>;
        10 VT_ZERO_POINT zero_point: Option<Vector<'static, i64>>;
        12 VT_DETAILS_TYPE details_type: QuantizationDetails = QuantizationDetails(0);
        14 VT_DETAILS details: Option<Table<'static>>;
        16 VT_QUANTIZED_DIMENSION quantized_dimension: i32 = 0;
    }
    CustomQuantization by CustomQuantizationArgs {
        4 VT_CUSTOM custom: Option<Vector<'static, u8>>;
    }
    SparsityParameters by SparsityParametersArgs {
        4 VT_TRAVERSAL_ORDER traversal_order: Option<Vector<'static, i32>>;
        6 VT_BLOCK_MAP block_map: Option<Vector<'static, i32>>;
        8 VT_DIM_METADATA dim_metadata:
            Option<Vector<'static, ForwardsUOffset<DimensionMetadata<'static>>>>;
    }
    DimensionMetadata by DimensionMetadataArgs {
        4 VT_FORMAT format: DimensionType = DimensionType(0);
        6 VT_DENSE_SIZE dense_size: i32 = 0;
        8 VT_ARRAY_SEGMENTS_TYPE array_segments_type:
            SparseIndexVector = SparseIndexVector(0);
        10 VT_ARRAY_SEGMENTS array_segments: Option<Table<'static>>;
        12 VT_ARRAY_INDICES_TYPE array_indices_type:
            SparseIndexVector = SparseIndexVector(0);
        14 VT_ARRAY_INDICES array_indices: Option<Table<'static>>;
    }
    Int32Vector by Int32VectorArgs {
        4 VT_VALUES values: Option<Vector<'static, i32>>;
    }
    Uint16Vector by Uint16VectorArgs {
        4 VT_VALUES values: Option<Vector<'static, u16>>;
    }
    Uint8Vector by Uint8VectorArgs {
        4 VT_VALUES values: Option<Vector<'static, u8>>;
    }
    VariantSubType by VariantSubTypeArgs {
        4 VT_SHAPE shape: Option<Vector<'static, i32>>;
        6 VT_TYPE_ type_: TensorType = TensorType(0);
        8 VT_HAS_RANK has_rank: bool = false;
    }
    Conv2DOptions by Conv2DOptionsArgs {
        4 VT_PADDING padding: Padding = Padding(0);
        6 VT_STRIDE_W stride_w: i32 = 0;
        8 VT_STRIDE_H stride_h: i32 = 0;
        10 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        12 VT_DILATION_W_FACTOR dilation_w_factor: i32 = 1;
        14 VT_DILATION_H_FACTOR dilation_h_factor: i32 = 1;
        16 VT_QUANTIZED_BIAS_TYPE quantized_bias_type: TensorType = TensorType(0);
    }
    DepthwiseConv2DOptions by DepthwiseConv2DOptionsArgs {
        4 VT_PADDING padding: Padding = Padding(0);
        6 VT_STRIDE_W stride_w: i32 = 0;
        8 VT_STRIDE_H stride_h: i32 = 0;
        10 VT_DEPTH_MULTIPLIER depth_multiplier: i32 = 0;
        12 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        14 VT_DILATION_W_FACTOR dilation_w_factor: i32 = 1;
        16 VT_DILATION_H_FACTOR dilation_h_factor: i32 = 1;
    }
    ConcatEmbeddingsOptions by ConcatEmbeddingsOptionsArgs {
        4 VT_NUM_CHANNELS num_channels: i32 = 0;
        6 VT_NUM_COLUMNS_PER_CHANNEL num_columns_per_channel: Option<Vector<'static, i32>>;
        8 VT_EMBEDDING_DIM_PER_CHANNEL embedding_dim_per_channel:
            Option<Vector<'static, i32>>;
    }
    LSHProjectionOptions by LSHProjectionOptionsArgs {
        4 VT_TYPE_ type_: LSHProjectionType = LSHProjectionType(0);
    }
    Pool2DOptions by Pool2DOptionsArgs {
        4 VT_PADDING padding: Padding = Padding(0);
        6 VT_STRIDE_W stride_w: i32 = 0;
        8 VT_STRIDE_H stride_h: i32 = 0;
        10 VT_FILTER_WIDTH filter_width: i32 = 0;
        12 VT_FILTER_HEIGHT filter_height: i32 = 0;
        14 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
    }
    SVDFOptions by SVDFOptionsArgs {
        4 VT_RANK rank: i32 = 0;
        6 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        8 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
    }
    RNNOptions by RNNOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
    }
    SoftmaxOptions by SoftmaxOptionsArgs {
        4 VT_BETA beta: f32 = 0.0;
    }
    ConcatenationOptions by ConcatenationOptionsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
    }
    AddOptions by AddOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_POT_SCALE_INT16 pot_scale_int16: bool = true;
    }
    L2NormOptions by L2NormOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
    }
    LocalResponseNormalizationOptions by LocalResponseNormalizationOptionsArgs {
        4 VT_RADIUS radius: i32 = 0;
        6 VT_BIAS bias: f32 = 0.0;
        8 VT_ALPHA alpha: f32 = 0.0;
        10 VT_BETA beta: f32 = 0.0;
    }
    LSTMOptions by LSTMOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_CELL_CLIP cell_clip: f32 = 0.0;
        8 VT_PROJ_CLIP proj_clip: f32 = 0.0;
        10 VT_KERNEL_TYPE kernel_type: LSTMKernelType = LSTMKernelType(0);
        12 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
    }
    ResizeBilinearOptions by ResizeBilinearOptionsArgs {
        4 VT_NEW_HEIGHT new_height: i32 = 0;
        6 VT_NEW_WIDTH new_width: i32 = 0;
        8 VT_ALIGN_CORNERS align_corners: bool = false;
        10 VT_HALF_PIXEL_CENTERS half_pixel_centers: bool = false;
    }
    CallOptions by CallOptionsArgs {
        4 VT_SUBGRAPH subgraph: u32 = 0;
    }
    ReshapeOptions by ReshapeOptionsArgs {
        4 VT_NEW_SHAPE new_shape: Option<Vector<'static, i32>>;
    }
    SkipGramOptions by SkipGramOptionsArgs {
        4 VT_NGRAM_SIZE ngram_size: i32 = 0;
        6 VT_MAX_SKIP_SIZE max_skip_size: i32 = 0;
        8 VT_INCLUDE_ALL_NGRAMS include_all_ngrams: bool = false;
    }
    SpaceToDepthOptions by SpaceToDepthOptionsArgs {
        4 VT_BLOCK_SIZE block_size: i32 = 0;
    }
    EmbeddingLookupSparseOptions by EmbeddingLookupSparseOptionsArgs {
        4 VT_COMBINER combiner: CombinerType = CombinerType(0);
    }
    MulOptions by MulOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
    }
    PadOptions by PadOptionsArgs {}
    GatherOptions by GatherOptionsArgs {
        4 VT_AXIS axis: i32 = 0;
        6 VT_BATCH_DIMS batch_dims: i32 = 0;
    }
    BatchToSpaceNDOptions by BatchToSpaceNDOptionsArgs {}
    SpaceToBatchNDOptions by SpaceToBatchNDOptionsArgs {}
    TransposeOptions by TransposeOptionsArgs {}
    ReducerOptions by ReducerOptionsArgs {
        4 VT_KEEP_DIMS keep_dims: bool = false;
    }
    SubOptions by SubOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_POT_SCALE_INT16 pot_scale_int16: bool = true;
    }
    DivOptions by DivOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
    }
    SqueezeOptions by SqueezeOptionsArgs {
        4 VT_SQUEEZE_DIMS squeeze_dims: Option<Vector<'static, i32>>;
    }
    SequenceRNNOptions by SequenceRNNOptionsArgs {
        4 VT_TIME_MAJOR time_major: bool = false;
        6 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        8 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
    }
    StridedSliceOptions by StridedSliceOptionsArgs {
        4 VT_BEGIN_MASK begin_mask: i32 = 0;
        6 VT_END_MASK end_mask: i32 = 0;
        8 VT_ELLIPSIS_MASK ellipsis_mask: i32 = 0;
        10 VT_NEW_AXIS_MASK new_axis_mask: i32 = 0;
        12 VT_SHRINK_AXIS_MASK shrink_axis_mask: i32 = 0;
        14 VT_OFFSET offset: bool = false;
    }
    ExpOptions by ExpOptionsArgs {}
    TopKV2Options by TopKV2OptionsArgs {}
    SplitOptions by SplitOptionsArgs {
        4 VT_NUM_SPLITS num_splits: i32 = 0;
    }
    LogSoftmaxOptions by LogSoftmaxOptionsArgs {}
    CastOptions by CastOptionsArgs {
        4 VT_IN_DATA_TYPE in_data_type: TensorType = TensorType(0);
        6 VT_OUT_DATA_TYPE out_data_type: TensorType = TensorType(0);
    }
    DequantizeOptions by DequantizeOptionsArgs {}
    MaximumMinimumOptions by MaximumMinimumOptionsArgs {}
    ArgMaxOptions by ArgMaxOptionsArgs {
        4 VT_OUTPUT_TYPE output_type: TensorType = TensorType(0);
    }
    LessOptions by LessOptionsArgs {}
    NegOptions by NegOptionsArgs {}
    PadV2Options by PadV2OptionsArgs {}
    GreaterOptions by GreaterOptionsArgs {}
    GreaterEqualOptions by GreaterEqualOptionsArgs {}
    LessEqualOptions by LessEqualOptionsArgs {}
    SelectOptions by SelectOptionsArgs {}
    SliceOptions by SliceOptionsArgs {}
    TransposeConvOptions by TransposeConvOptionsArgs {
        4 VT_PADDING padding: Padding = Padding(0);
        6 VT_STRIDE_W stride_w: i32 = 0;
        8 VT_STRIDE_H stride_h: i32 = 0;
        10 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        12 VT_QUANTIZED_BIAS_TYPE quantized_bias_type: TensorType = TensorType(0);
    }
    SparseToDenseOptions by SparseToDenseOptionsArgs {
        4 VT_VALIDATE_INDICES validate_indices: bool = false;
    }
    TileOptions by TileOptionsArgs {}
    ExpandDimsOptions by ExpandDimsOptionsArgs {}
    EqualOptions by EqualOptionsArgs {}
    NotEqualOptions by NotEqualOptionsArgs {}
    ShapeOptions by ShapeOptionsArgs {
        4 VT_OUT_TYPE out_type: TensorType = TensorType(0);
    }
    PowOptions by PowOptionsArgs {}
    ArgMinOptions by ArgMinOptionsArgs {
        4 VT_OUTPUT_TYPE output_type: TensorType = TensorType(0);
    }
    FakeQuantOptions by FakeQuantOptionsArgs {
        4 VT_MIN min: f32 = 0.0;
        6 VT_MAX max: f32 = 0.0;
        8 VT_NUM_BITS num_bits: i32 = 0;
        10 VT_NARROW_RANGE narrow_range: bool = false;
    }
    PackOptions by PackOptionsArgs {
        4 VT_VALUES_COUNT values_count: i32 = 0;
        6 VT_AXIS axis: i32 = 0;
    }
    LogicalOrOptions by LogicalOrOptionsArgs {}
    OneHotOptions by OneHotOptionsArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    LogicalAndOptions by LogicalAndOptionsArgs {}
    LogicalNotOptions by LogicalNotOptionsArgs {}
    UnpackOptions by UnpackOptionsArgs {
        4 VT_NUM num: i32 = 0;
        6 VT_AXIS axis: i32 = 0;
    }
    FloorDivOptions by FloorDivOptionsArgs {}
    SquareOptions by SquareOptionsArgs {}
    ZerosLikeOptions by ZerosLikeOptionsArgs {}
    FillOptions by FillOptionsArgs {}
    BidirectionalSequenceLSTMOptions by BidirectionalSequenceLSTMOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_CELL_CLIP cell_clip: f32 = 0.0;
        8 VT_PROJ_CLIP proj_clip: f32 = 0.0;
        10 VT_MERGE_OUTPUTS merge_outputs: bool = false;
        12 VT_TIME_MAJOR time_major: bool = true;
        14 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
    }
    BidirectionalSequenceRNNOptions by BidirectionalSequenceRNNOptionsArgs {
        4 VT_TIME_MAJOR time_major: bool = false;
        6 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        8 VT_MERGE_OUTPUTS merge_outputs: bool = false;
        10 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
    }
    UnidirectionalSequenceLSTMOptions by UnidirectionalSequenceLSTMOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_CELL_CLIP cell_clip: f32 = 0.0;
        8 VT_PROJ_CLIP proj_clip: f32 = 0.0;
        10 VT_TIME_MAJOR time_major: bool = false;
        12 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
        14 VT_DIAGONAL_RECURRENT_TENSORS diagonal_recurrent_tensors: bool = false;
    }
    FloorModOptions by FloorModOptionsArgs {}
    RangeOptions by RangeOptionsArgs {}
    ResizeNearestNeighborOptions by ResizeNearestNeighborOptionsArgs {
        4 VT_ALIGN_CORNERS align_corners: bool = false;
        6 VT_HALF_PIXEL_CENTERS half_pixel_centers: bool = false;
    }
    LeakyReluOptions by LeakyReluOptionsArgs {
        4 VT_ALPHA alpha: f32 = 0.0;
    }
    SquaredDifferenceOptions by SquaredDifferenceOptionsArgs {}
    MirrorPadOptions by MirrorPadOptionsArgs {
        4 VT_MODE mode: MirrorPadMode = MirrorPadMode(0);
    }
    AbsOptions by AbsOptionsArgs {}
    SplitVOptions by SplitVOptionsArgs {
        4 VT_NUM_SPLITS num_splits: i32 = 0;
    }
    UniqueOptions by UniqueOptionsArgs {
        4 VT_IDX_OUT_TYPE idx_out_type: TensorType = TensorType(2);
    }
    ReverseV2Options by ReverseV2OptionsArgs {}
    AddNOptions by AddNOptionsArgs {}
    GatherNdOptions by GatherNdOptionsArgs {}
    CosOptions by CosOptionsArgs {}
    WhereOptions by WhereOptionsArgs {}
    RankOptions by RankOptionsArgs {}
    ReverseSequenceOptions by ReverseSequenceOptionsArgs {
        4 VT_SEQ_DIM seq_dim: i32 = 0;
        6 VT_BATCH_DIM batch_dim: i32 = 0;
    }
    MatrixDiagOptions by MatrixDiagOptionsArgs {}
    QuantizeOptions by QuantizeOptionsArgs {}
    MatrixSetDiagOptions by MatrixSetDiagOptionsArgs {}
    HardSwishOptions by HardSwishOptionsArgs {}
    IfOptions by IfOptionsArgs {
        4 VT_THEN_SUBGRAPH_INDEX then_subgraph_index: i32 = 0;
        6 VT_ELSE_SUBGRAPH_INDEX else_subgraph_index: i32 = 0;
    }
    WhileOptions by WhileOptionsArgs {
        4 VT_COND_SUBGRAPH_INDEX cond_subgraph_index: i32 = 0;
        6 VT_BODY_SUBGRAPH_INDEX body_subgraph_index: i32 = 0;
    }
    DepthToSpaceOptions by DepthToSpaceOptionsArgs {
        4 VT_BLOCK_SIZE block_size: i32 = 0;
    }
    NonMaxSuppressionV4Options by NonMaxSuppressionV4OptionsArgs {}
    NonMaxSuppressionV5Options by NonMaxSuppressionV5OptionsArgs {}
    ScatterNdOptions by ScatterNdOptionsArgs {}
    SelectV2Options by SelectV2OptionsArgs {}
    DensifyOptions by DensifyOptionsArgs {}
    SegmentSumOptions by SegmentSumOptionsArgs {}
    CumsumOptions by CumsumOptionsArgs {
        4 VT_EXCLUSIVE exclusive: bool = false;
        6 VT_REVERSE reverse: bool = false;
    }
    CallOnceOptions by CallOnceOptionsArgs {
        4 VT_INIT_SUBGRAPH_INDEX init_subgraph_index: i32 = 0;
    }
    BroadcastToOptions by BroadcastToOptionsArgs {}
    Rfft2dOptions by Rfft2dOptionsArgs {}
    Conv3DOptions by Conv3DOptionsArgs {
        4 VT_PADDING padding: Padding = Padding(0);
        6 VT_STRIDE_D stride_d: i32 = 0;
        8 VT_STRIDE_W stride_w: i32 = 0;
        10 VT_STRIDE_H stride_h: i32 = 0;
        12 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        14 VT_DILATION_D_FACTOR dilation_d_factor: i32 = 1;
        16 VT_DILATION_W_FACTOR dilation_w_factor: i32 = 1;
        18 VT_DILATION_H_FACTOR dilation_h_factor: i32 = 1;
    }
    HashtableOptions by HashtableOptionsArgs {
        4 VT_TABLE_ID table_id: i32 = 0;
        6 VT_KEY_DTYPE key_dtype: TensorType = TensorType(0);
        8 VT_VALUE_DTYPE value_dtype: TensorType = TensorType(0);
    }
    HashtableFindOptions by HashtableFindOptionsArgs {}
    HashtableImportOptions by HashtableImportOptionsArgs {}
    HashtableSizeOptions by HashtableSizeOptionsArgs {}
    VarHandleOptions by VarHandleOptionsArgs {
        4 VT_CONTAINER container: Option<&'static str>;
        6 VT_SHARED_NAME shared_name: Option<&'static str>;
    }
    ReadVariableOptions by ReadVariableOptionsArgs {}
    AssignVariableOptions by AssignVariableOptionsArgs {}
    RandomOptions by RandomOptionsArgs {
        4 VT_SEED seed: i64 = 0;
        6 VT_SEED2 seed2: i64 = 0;
    }
    BucketizeOptions by BucketizeOptionsArgs {
        4 VT_BOUNDARIES boundaries: Option<Vector<'static, f32>>;
    }
    GeluOptions by GeluOptionsArgs {
        4 VT_APPROXIMATE approximate: bool = false;
    }
    DynamicUpdateSliceOptions by DynamicUpdateSliceOptionsArgs {}
    UnsortedSegmentProdOptions by UnsortedSegmentProdOptionsArgs {}
    UnsortedSegmentMaxOptions by UnsortedSegmentMaxOptionsArgs {}
    UnsortedSegmentMinOptions by UnsortedSegmentMinOptionsArgs {}
    UnsortedSegmentSumOptions by UnsortedSegmentSumOptionsArgs {}
    ATan2Options by ATan2OptionsArgs {}
    SignOptions by SignOptionsArgs {}
    BitcastOptions by BitcastOptionsArgs {}
    BitwiseXorOptions by BitwiseXorOptionsArgs {}
    RightShiftOptions by RightShiftOptionsArgs {}
    StablehloConcatenateOptions by StablehloConcatenateOptionsArgs {
        4 VT_DIMENSION dimension: i64 = 0;
    }
    StablehloBroadcastInDimOptions by StablehloBroadcastInDimOptionsArgs {
        4 VT_BROADCAST_DIMENSIONS broadcast_dimensions: Option<Vector<'static, i64>>;
    }
    StablehloSliceOptions by StablehloSliceOptionsArgs {
        4 VT_START_INDICES start_indices: Option<Vector<'static, i64>>;
        6 VT_LIMIT_INDICES limit_indices: Option<Vector<'static, i64>>;
        8 VT_STRIDES strides: Option<Vector<'static, i64>>;
    }
    StablehloConvolutionOptions by StablehloConvolutionOptionsArgs {
        4 VT_WINDOW_STRIDES window_strides: Option<Vector<'static, i64>>;
        6 VT_PADDING padding: Option<Vector<'static, i64>>;
        8 VT_LHS_DILATION lhs_dilation: Option<Vector<'static, i64>>;
        10 VT_RHS_DILATION rhs_dilation: Option<Vector<'static, i64>>;
        12 VT_WINDOW_REVERSAL window_reversal: Option<Vector<'static, bool>>;
        14 VT_INPUT_BATCH_DIMENSION input_batch_dimension: i64 = 0;
        16 VT_INPUT_FEATURE_DIMENSION input_feature_dimension: i64 = 0;
        18 VT_INPUT_SPATIAL_DIMENSIONS input_spatial_dimensions:
            Option<Vector<'static, i64>>;
        20 VT_KERNEL_INPUT_FEATURE_DIMENSION kernel_input_feature_dimension: i64 = 0;
        22 VT_KERNEL_OUTPUT_FEATURE_DIMENSION kernel_output_feature_dimension: i64 = 0;
        24 VT_KERNEL_SPATIAL_DIMENSIONS kernel_spatial_dimensions:
            Option<Vector<'static, i64>>;
        26 VT_OUTPUT_BATCH_DIMENSION output_batch_dimension: i64 = 0;
        28 VT_OUTPUT_FEATURE_DIMENSION output_feature_dimension: i64 = 0;
        30 VT_OUTPUT_SPATIAL_DIMENSIONS output_spatial_dimensions:
            Option<Vector<'static, i64>>;
        32 VT_FEATURE_GROUP_COUNT feature_group_count: i64 = 0;
        34 VT_BATCH_GROUP_COUNT batch_group_count: i64 = 0;
        36 VT_PRECISION_CONFIG precision_config:
            Option<Vector<'static, StablehloPrecisionConfig>>;
    }
    StablehloCustomCallOptions by StablehloCustomCallOptionsArgs {
        4 VT_CALL_TARGET_NAME call_target_name: Option<&'static str>;
        6 VT_HAS_SIDE_EFFECT has_side_effect: bool = false;
        8 VT_BACKEND_CONFIG backend_config: Option<&'static str>;
        10 VT_API_VERSION api_version: i32 = 0;
        12 VT_CALLED_COMPUTATIONS called_computations: Option<Vector<'static, i32>>;
        14 VT_CUSTOM_ATTRIBUTES custom_attributes: Option<Vector<'static, u8>>;
    }
    StablehloReduceOptions by StablehloReduceOptionsArgs {
        4 VT_DIMENSIONS dimensions: Option<Vector<'static, i64>>;
        6 VT_BODY_SUBGRAPH_INDEX body_subgraph_index: i32 = 0;
    }
    StablehloScatterOptions by StablehloScatterOptionsArgs {
        4 VT_INDICES_ARE_SORTED indices_are_sorted: bool = false;
        6 VT_UPDATE_WINDOW_DIMS update_window_dims: Option<Vector<'static, i64>>;
        8 VT_INSERTED_WINDOW_DIMS inserted_window_dims: Option<Vector<'static, i64>>;
        10 VT_SCATTER_DIMS_TO_OPERAND_DIMS scatter_dims_to_operand_dims:
            Option<Vector<'static, i64>>;
        12 VT_INDEX_VECTOR_DIM index_vector_dim: i64 = 0;
        14 VT_UNIQUE_INDICES unique_indices: bool = false;
        16 VT_UPDATE_COMPUTATION_SUBGRAPH_INDEX update_computation_subgraph_index: i32 = 0;
    }
    StablehloCompareOptions by StablehloCompareOptionsArgs {
        4 VT_COMPARISON_DIRECTION comparison_direction:
            StablehloComparisonDirection = StablehloComparisonDirection(0);
        6 VT_COMPARE_TYPE compare_type:
            StablehloComparisonType = StablehloComparisonType(0);
    }
    StablehloDynamicSliceOptions by StablehloDynamicSliceOptionsArgs {
        4 VT_SLICE_SIZES slice_sizes: Option<Vector<'static, i64>>;
    }
    StablehloPadOptions by StablehloPadOptionsArgs {
        4 VT_EDGE_PADDING_LOW edge_padding_low: Option<Vector<'static, i64>>;
        6 VT_EDGE_PADDING_HIGH edge_padding_high: Option<Vector<'static, i64>>;
        8 VT_INTERIOR_PADDING interior_padding: Option<Vector<'static, i64>>;
    }
    StablehloIotaOptions by StablehloIotaOptionsArgs {
        4 VT_IOTA_DIMENSION iota_dimension: i64 = 0;
    }
    StablehloDotGeneralOptions by StablehloDotGeneralOptionsArgs {
        4 VT_LHS_BATCHING_DIMENSIONS lhs_batching_dimensions: Option<Vector<'static, i64>>;
        6 VT_RHS_BATCHING_DIMENSIONS rhs_batching_dimensions: Option<Vector<'static, i64>>;
        8 VT_LHS_CONTRACTING_DIMENSIONS lhs_contracting_dimensions:
            Option<Vector<'static, i64>>;
        10 VT_RHS_CONTRACTING_DIMENSIONS rhs_contracting_dimensions:
            Option<Vector<'static, i64>>;
        12 VT_PRECISION_CONFIG precision_config:
            Option<Vector<'static, StablehloPrecisionConfig>>;
    }
    StablehloReduceWindowOptions by StablehloReduceWindowOptionsArgs {
        4 VT_WINDOW_DIMENSIONS window_dimensions: Option<Vector<'static, i64>>;
        6 VT_WINDOW_STRIDES window_strides: Option<Vector<'static, i64>>;
        8 VT_BASE_DILATIONS base_dilations: Option<Vector<'static, i64>>;
        10 VT_WINDOW_DILATIONS window_dilations: Option<Vector<'static, i64>>;
        12 VT_PADDING padding: Option<Vector<'static, i64>>;
        14 VT_BODY_SUBGRAPH_INDEX body_subgraph_index: i32 = 0;
    }
    StablehloSortOptions by StablehloSortOptionsArgs {
        4 VT_DIMENSION dimension: i64 = 0;
        6 VT_IS_STABLE is_stable: bool = false;
        8 VT_COMPARATOR_SUBGRAPH_INDEX comparator_subgraph_index: i32 = 0;
    }
    StablehloWhileOptions by StablehloWhileOptionsArgs {
        4 VT_COND_SUBGRAPH_INDEX cond_subgraph_index: i32 = 0;
        6 VT_BODY_SUBGRAPH_INDEX body_subgraph_index: i32 = 0;
    }
    StablehloGatherOptions by StablehloGatherOptionsArgs {
        4 VT_OFFSET_DIMS offset_dims: Option<Vector<'static, i64>>;
        6 VT_COLLAPSED_SLICE_DIMS collapsed_slice_dims: Option<Vector<'static, i64>>;
        8 VT_START_INDEX_MAP start_index_map: Option<Vector<'static, i64>>;
        10 VT_INDEX_VECTOR_DIM index_vector_dim: i64 = 0;
        12 VT_SLICE_SIZES slice_sizes: Option<Vector<'static, i64>>;
        14 VT_INDICES_ARE_SORTED indices_are_sorted: bool = false;
    }
    StablehloTransposeOptions by StablehloTransposeOptionsArgs {
        4 VT_PERMUTATION permutation: Option<Vector<'static, i64>>;
    }
    DilateOptions by DilateOptionsArgs {}
    StablehloRngBitGeneratorOptions by StablehloRngBitGeneratorOptionsArgs {
        4 VT_ALGORITHM algorithm: RngAlgorithm = RngAlgorithm(0);
    }
    ReduceWindowOptions by ReduceWindowOptionsArgs {
        4 VT_REDUCE_FUNCTION reduce_function:
            ReduceWindowFunction = ReduceWindowFunction(0);
    }
    StableHLOCompositeOptions by StableHLOCompositeOptionsArgs {
        4 VT_NAME name: Option<&'static str>;
        6 VT_DECOMPOSITION_SUBGRAPH_INDEX decomposition_subgraph_index: i32 = 0;
        8 VT_COMPOSITE_ATTRIBUTES composite_attributes: Option<Vector<'static, u8>>;
        10 VT_COMPOSITE_ATTRIBUTES_FORMAT composite_attributes_format:
            CustomOptionsFormat = CustomOptionsFormat(0);
        12 VT_VERSION version: i32 = 0;
    }
    StablehloShiftLeftOptions by StablehloShiftLeftOptionsArgs {}
    StablehloCaseOptions by StablehloCaseOptionsArgs {
        4 VT_BRANCH_SUBGRAPH_INDICES branch_subgraph_indices: Option<Vector<'static, i32>>;
    }
    // Circle.
    Model by ModelArgs {
        4 VT_VERSION version: u32 = 0;
        6 VT_OPERATOR_CODES operator_codes:
            Option<Vector<'static, ForwardsUOffset<OperatorCode<'static>>>>;
        8 VT_SUBGRAPHS subgraphs: Option<Vector<'static, ForwardsUOffset<SubGraph<'static>>>>;
        10 VT_DESCRIPTION description: Option<&'static str>;
        12 VT_BUFFERS buffers: Option<Vector<'static, ForwardsUOffset<Buffer<'static>>>>;
        14 VT_METADATA_BUFFER metadata_buffer: Option<Vector<'static, i32>>;
        16 VT_METADATA metadata: Option<Vector<'static, ForwardsUOffset<Metadata<'static>>>>;
        18 VT_SIGNATURE_DEFS signature_defs:
            Option<Vector<'static, ForwardsUOffset<SignatureDef<'static>>>>;
    }
    SubGraph by SubGraphArgs {
        4 VT_TENSORS tensors: Option<Vector<'static, ForwardsUOffset<Tensor<'static>>>>;
        6 VT_INPUTS inputs: Option<Vector<'static, i32>>;
        8 VT_OUTPUTS outputs: Option<Vector<'static, i32>>;
        10 VT_OPERATORS operators: Option<Vector<'static, ForwardsUOffset<Operator<'static>>>>;
        12 VT_NAME name: Option<&'static str>;
        14 VT_DATA_FORMAT data_format: DataFormat = DataFormat(0);
        16 VT_DEBUG_METADATA_INDEX debug_metadata_index: i32 = -1;
    }
    Tensor by TensorArgs {
        4 VT_SHAPE shape: Option<Vector<'static, i32>>;
        6 VT_TYPE_ type_: TensorType = TensorType(0);
        8 VT_BUFFER buffer: u32 = 0;
        10 VT_NAME name: Option<&'static str>;
        12 VT_QUANTIZATION quantization: Option<QuantizationParameters<'static>>;
        14 VT_IS_VARIABLE is_variable: bool = false;
        16 VT_SPARSITY sparsity: Option<SparsityParameters<'static>>;
        18 VT_SHAPE_SIGNATURE shape_signature: Option<Vector<'static, i32>>;
        20 VT_HAS_RANK has_rank: bool = false;
        22 VT_VARIANT_TENSORS variant_tensors:
            Option<Vector<'static, ForwardsUOffset<VariantSubType<'static>>>>;
        24 VT_COMPRESSION_TYPE compression_type: CompressionType = CompressionType(0);
    }
    MXQuantization by MXQuantizationArgs {
        4 VT_AXIS axis: i32 = 0;
    }
    BlockwiseQuantization by BlockwiseQuantizationArgs {
        4 VT_SCALES scales: i32 = 0;
        6 VT_ZERO_POINTS zero_points: i32 = 0;
        8 VT_BLOCK_SIZE block_size: i32 = 0;
    }
    BatchMatMulOptions by BatchMatMulOptionsArgs {
        4 VT_ADJOINT_LHS adjoint_lhs: bool = false;
        6 VT_ADJOINT_RHS adjoint_rhs: bool = false;
        8 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
    }
    AttentionOptions by AttentionOptionsArgs {}
    RunModelOptions by RunModelOptionsArgs {
        4 VT_LOCATION location: Option<&'static str>;
        6 VT_SIGNATURE signature: Option<&'static str>;
    }
    RoPEOptions by RoPEOptionsArgs {
        4 VT_MODE mode: RoPEMode = RoPEMode(0);
    }
    RmsNormOptions by RmsNormOptionsArgs {
        4 VT_EPSILON epsilon: f32 = 0.0;
    }
    GRUOptions by GRUOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_RETURN_SEQUENCES return_sequences: bool = false;
        8 VT_TIME_MAJOR time_major: bool = false;
    }
    BCQGatherOptions by BCQGatherOptionsArgs {
        4 VT_INPUT_HIDDEN_SIZE input_hidden_size: i32 = 0;
        6 VT_AXIS axis: i32 = 0;
    }
    BCQFullyConnectedOptions by BCQFullyConnectedOptionsArgs {
        4 VT_WEIGHTS_HIDDEN_SIZE weights_hidden_size: i32 = 0;
        6 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
    }
    InstanceNormOptions by InstanceNormOptionsArgs {
        4 VT_EPSILON epsilon: f32 = 0.0;
        6 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
    }
    // TFLite.
    TfliteModel by TfliteModelArgs {
        4 VT_VERSION version: u32 = 0;
        6 VT_OPERATOR_CODES operator_codes:
            Option<Vector<'static, ForwardsUOffset<OperatorCode<'static>>>>;
        8 VT_SUBGRAPHS subgraphs: Option<Vector<'static, ForwardsUOffset<TfliteSubGraph<'static>>>>;
        10 VT_DESCRIPTION description: Option<&'static str>;
        12 VT_BUFFERS buffers: Option<Vector<'static, ForwardsUOffset<Buffer<'static>>>>;
        14 VT_METADATA_BUFFER metadata_buffer: Option<Vector<'static, i32>>;
        16 VT_METADATA metadata: Option<Vector<'static, ForwardsUOffset<Metadata<'static>>>>;
        18 VT_SIGNATURE_DEFS signature_defs:
            Option<Vector<'static, ForwardsUOffset<SignatureDef<'static>>>>;
        20 VT_EXTERNAL_BUFFER_GROUPS external_buffer_groups:
            Option<Vector<'static, ForwardsUOffset<ExternalBufferGroup<'static>>>>;
        22 VT_EXTERNAL_BUFFERS external_buffers:
            Option<Vector<'static, ForwardsUOffset<ExternalBuffer<'static>>>>;
    }
    TfliteSubGraph by TfliteSubGraphArgs {
        4 VT_TENSORS tensors: Option<Vector<'static, ForwardsUOffset<TfliteTensor<'static>>>>;
        6 VT_INPUTS inputs: Option<Vector<'static, i32>>;
        8 VT_OUTPUTS outputs: Option<Vector<'static, i32>>;
        10 VT_OPERATORS operators: Option<Vector<'static, ForwardsUOffset<Operator<'static>>>>;
        12 VT_NAME name: Option<&'static str>;
        14 VT_DEBUG_METADATA_INDEX debug_metadata_index: i32 = -1;
    }
    TfliteTensor by TfliteTensorArgs {
        4 VT_SHAPE shape: Option<Vector<'static, i32>>;
        6 VT_TYPE_ type_: TensorType = TensorType(0);
        8 VT_BUFFER buffer: u32 = 0;
        10 VT_NAME name: Option<&'static str>;
        12 VT_QUANTIZATION quantization: Option<TfliteQuantizationParameters<'static>>;
        14 VT_IS_VARIABLE is_variable: bool = false;
        16 VT_SPARSITY sparsity: Option<SparsityParameters<'static>>;
        18 VT_SHAPE_SIGNATURE shape_signature: Option<Vector<'static, i32>>;
        20 VT_HAS_RANK has_rank: bool = false;
        22 VT_VARIANT_TENSORS variant_tensors:
            Option<Vector<'static, ForwardsUOffset<VariantSubType<'static>>>>;
        24 VT_EXTERNAL_BUFFER external_buffer: u32 = 0;
    }
    TfliteBlockwiseQuantization by TfliteBlockwiseQuantizationArgs {
        4 VT_SCALES scales: i32 = 0;
        6 VT_ZERO_POINTS zero_points: i32 = 0;
        8 VT_BLOCK_SIZE block_size: i32 = 0;
        10 VT_BLOCK_SHAPE block_shape: Option<Vector<'static, i32>>;
    }
    MultiAxisQuantization by MultiAxisQuantizationArgs {
        4 VT_SCALES scales: i32 = 0;
        6 VT_ZERO_POINTS zero_points: i32 = 0;
        8 VT_BLOCK_SIZE block_size: i32 = 0;
        10 VT_QUANTIZED_DIMENSIONS quantized_dimensions: Option<Vector<'static, i32>>;
    }
    ExternalBuffer by ExternalBufferArgs {
        4 VT_ID id: u32 = 0;
        6 VT_GROUP group: u32 = 0;
        8 VT_OFFSET offset: u64 = 0;
        10 VT_LENGTH length: u64 = 0;
        12 VT_PACKING packing: Option<&'static str>;
    }
    ExternalBufferGroup by ExternalBufferGroupArgs {
        4 VT_NAME name: Option<&'static str>;
    }
    FullyConnectedOptions by FullyConnectedOptionsArgs {
        4 VT_FUSED_ACTIVATION_FUNCTION fused_activation_function:
            ActivationFunctionType = ActivationFunctionType(0);
        6 VT_WEIGHTS_FORMAT weights_format:
            FullyConnectedOptionsWeightsFormat = FullyConnectedOptionsWeightsFormat(0);
        8 VT_KEEP_NUM_DIMS keep_num_dims: bool = false;
        10 VT_ASYMMETRIC_QUANTIZE_INPUTS asymmetric_quantize_inputs: bool = false;
        12 VT_QUANTIZED_BIAS_TYPE quantized_bias_type: TensorType = TensorType(0);
        14 VT_QUANT_SPEC quant_spec: Option<Vector<'static, u8>>;
    }

    TfliteQuantizationParameters by TfliteQuantizationParametersArgs {
        4 VT_MIN min: Option<Vector<'static, f32>>;
        6 VT_MAX max: Option<Vector<'static, f32>>;
        8 VT_SCALE scale: Option<Vector<'static, f32>>;
        10 VT_ZERO_POINT zero_point: Option<Vector<'static, i64>>;
        12 VT_DETAILS_TYPE details_type: TfliteQuantizationDetails = TfliteQuantizationDetails(0);
        14 VT_DETAILS details: Option<Table<'static>>;
        16 VT_QUANTIZED_DIMENSION quantized_dimension: i32 = 0;
    }
} }

tables! { training {
    ModelTraining by ModelTrainingArgs {
        4 VT_VERSION version: u32 = 0;
        6 VT_OPTIMIZER optimizer: Optimizer = Optimizer(0);
        8 VT_OPTIMIZER_OPT_TYPE optimizer_opt_type: OptimizerOptions = OptimizerOptions(0);
        10 VT_OPTIMIZER_OPT optimizer_opt: Option<Table<'static>>;
        12 VT_LOSSFN lossfn: LossFn = LossFn(0);
        14 VT_LOSSFN_OPT_TYPE lossfn_opt_type: LossFnOptions = LossFnOptions(0);
        16 VT_LOSSFN_OPT lossfn_opt: Option<Table<'static>>;
        18 VT_EPOCHS epochs: i32 = 0;
        20 VT_BATCH_SIZE batch_size: i32 = 0;
        22 VT_LOSS_REDUCTION_TYPE loss_reduction_type: LossReductionType = LossReductionType(0);
        24 VT_TRAINABLE_OPS trainable_ops: Option<Vector<'static, i32>>;
    }
    SGDOptions by SGDOptionsArgs {
        4 VT_LEARNING_RATE learning_rate: f32 = 0.0;
    }
    AdamOptions by AdamOptionsArgs {
        4 VT_LEARNING_RATE learning_rate: f32 = 0.0;
        6 VT_BETA_1 beta_1: f32 = 0.0;
        8 VT_BETA_2 beta_2: f32 = 0.0;
        10 VT_EPSILON epsilon: f32 = 0.0;
    }
    SparseCategoricalCrossentropyOptions by SparseCategoricalCrossentropyOptionsArgs {
        4 VT_FROM_LOGITS from_logits: bool = false;
    }
    CategoricalCrossentropyOptions by CategoricalCrossentropyOptionsArgs {
        4 VT_FROM_LOGITS from_logits: bool = false;
    }
    MeanSquaredErrorOptions by MeanSquaredErrorOptionsArgs {}
} }

/// Returns a buffer whose root is a table without fields.
fn empty_table() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let table = builder.start_table();
    let table = builder.end_table(table);
    builder.finish_minimal(table);
    builder.finished_data().to_vec()
}

/// Returns tables and constants of all fields in generated code.
fn generated_fields(source: &str) -> BTreeSet<(&str, &str)> {
    let mut fields = BTreeSet::new();
    let mut table = "";
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("impl<'a> ") {
            table = rest.split('<').next().unwrap();
        }
        if let Some(rest) = line.trim_start().strip_prefix("pub const VT_") {
            let start = line.len() - rest.len() - "VT_".len();
            fields.insert((table, line[start..].split(':').next().unwrap()));
        }
    }
    fields
}

/// Compares numbers and names with those of the generated code.
macro_rules! same_numbers {
    ($( $schema:ident $name:ident; )*) => {$(
        let known = model::$name::KNOWN.iter().map(|known| (known.code(), known.name()));
        let generated = crate::generated::$schema::$name::ENUM_VALUES.iter();
        let generated = generated.map(|value| (value.0, value.variant_name()));
        assert_eq!(
            known.collect::<Vec<_>>(),
            generated.collect::<Vec<_>>(),
            concat!(stringify!($schema), " ", stringify!($name))
        );
    )*};
}

#[test]
fn numbers_stand_for_the_same() {
    same_numbers! {
        circle ActivationFunctionType;
        circle BuiltinOperator;
        circle CombinerType;
        circle CompressionType;
        circle CustomOptionsFormat;
        circle DataFormat;
        circle DimensionType;
        circle FullyConnectedOptionsWeightsFormat;
        circle LSHProjectionType;
        circle LSTMKernelType;
        training LossFn;
        training LossReductionType;
        training Optimizer;
        circle MirrorPadMode;
        circle Padding;
        circle ReduceWindowFunction;
        circle RngAlgorithm;
        circle RoPEMode;
        circle StablehloComparisonDirection;
        circle StablehloComparisonType;
        circle StablehloPrecisionConfig;
    }
    // TFLite has all that are not below zero, without a gap.
    let codes = model::BuiltinOperator::KNOWN.iter().map(|known| known.code());
    assert!(codes.filter(|code| *code >= 0).eq(0..=209));
}

#[test]
fn element_types_stand_for_the_same() {
    let (mut circle, mut tflite) = (0, 0);
    for value in crate::generated::circle::TensorType::ENUM_VALUES {
        if value.0 <= 18 {
            let ours = TensorType::from_code(value.0, Schema::Circle);
            assert_eq!(ours.name(), value.variant_name());
            circle += 1;
        }
        if value.0 >= 0 {
            let ours = TensorType::from_code(value.0, Schema::Tflite);
            let name = value.variant_name().map(|name| name.trim_start_matches("TFLITE_"));
            assert_eq!(ours.name(), name);
            tflite += 1;
        }
    }
    let known = |schema| TensorType::ALL.iter().filter_map(|known| known.code(schema)).count();
    assert_eq!((known(Schema::Circle), known(Schema::Tflite)), (circle, tflite));
    assert_eq!((circle, tflite), (26, 23));
}

#[test]
fn unions_have_the_same_members() {
    fn members(
        values: impl Iterator<Item = (u8, Option<&'static str>)>,
    ) -> Vec<(u8, &'static str)> {
        values.filter_map(|(tag, name)| Some((tag, name?))).skip(1).collect()
    }
    let circle = crate::generated::circle::BuiltinOptions::ENUM_VALUES.iter();
    let circle = members(circle.map(|value| (value.0, value.variant_name())));
    assert_eq!(circle, BuiltinOptions::ALL);
    // From 247 on they are of Circle alone.
    assert!(BuiltinOptions::ALL[..126].iter().map(|(tag, _)| *tag).eq(1..=126));
    assert!(BuiltinOptions::ALL[126..].iter().map(|(tag, _)| *tag).eq(247..=254));
    let second = crate::generated::circle::BuiltinOptions2::ENUM_VALUES.iter();
    let second = members(second.map(|value| (value.0, value.variant_name())));
    assert_eq!(second, BuiltinOptions2::ALL);
    let details = crate::generated::circle::QuantizationDetails::ENUM_VALUES.iter();
    let details = members(details.map(|value| (value.0, value.variant_name())));
    let expected = [(1, "CustomQuantization"), (2, "MXQuantization"), (3, "BlockwiseQuantization")];
    assert_eq!(details, expected);
    let details = crate::generated::circle::TfliteQuantizationDetails::ENUM_VALUES.iter();
    let details = members(details.map(|value| (value.0, value.variant_name())));
    let expected = [
        (1, "CustomQuantization"),
        (2, "TfliteBlockwiseQuantization"),
        (3, "MultiAxisQuantization"),
    ];
    assert_eq!(details, expected);
}

#[test]
fn unions_of_training_have_their_members() {
    use crate::generated::training::{LossFnOptions, OptimizerOptions};
    let optimizers = OptimizerOptions::ENUM_VALUES.iter();
    let optimizers = optimizers.filter_map(|value| Some((value.0, value.variant_name()?)));
    assert!(optimizers.eq([(0, "NONE"), (1, "SGDOptions"), (2, "AdamOptions")]));
    let losses = LossFnOptions::ENUM_VALUES.iter();
    let losses = losses.filter_map(|value| Some((value.0, value.variant_name()?)));
    assert!(losses.eq([
        (0, "NONE"),
        (1, "SparseCategoricalCrossentropyOptions"),
        (2, "CategoricalCrossentropyOptions"),
        (3, "MeanSquaredErrorOptions"),
    ]));
}
