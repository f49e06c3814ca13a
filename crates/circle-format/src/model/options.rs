//! The options of operators, one struct for each table of the format.
//!
//! `Default` gives what an absent field means in a file. A list that is absent reads as an empty
//! one.

use bytes::Bytes;
use flat_tables::UnknownTable;

use super::{
    Schema, TensorType,
    numbers::{
        ActivationFunctionType, CombinerType, CustomOptionsFormat,
        FullyConnectedOptionsWeightsFormat, LSHProjectionType, LSTMKernelType, MirrorPadMode,
        Padding, ReduceWindowFunction, RngAlgorithm, RoPEMode, StablehloComparisonDirection,
        StablehloComparisonType, StablehloPrecisionConfig,
    },
};

/// The value of one option, for whoever shows or compares options of every kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionValue<'a> {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number of 32 bits.
    Float(f32),
    /// A number that stands for something.
    Number {
        /// Its name in the format; `None` where it has no meaning.
        name: Option<&'static str>,
        /// The number.
        code: i64,
    },
    /// Truth values.
    Bools(&'a [bool]),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Numbers of 32 bits.
    Floats(&'a [f32]),
    /// Numbers that stand for something.
    Numbers(Vec<(Option<&'static str>, i64)>),
    /// Text; `None` where it is absent.
    Text(Option<&'a str>),
    /// Bytes in a form of their own.
    Bytes(&'a Bytes),
}

/// A type of option that can be shown.
trait Show {
    fn show(&self) -> OptionValue<'_>;
}

macro_rules! show {
    ($( $type:ty: $value:ident => $shown:expr; )*) => {$(
        impl Show for $type {
            fn show(&self) -> OptionValue<'_> {
                let $value = self;
                $shown
            }
        }
    )*};
}

show! {
    bool: value => OptionValue::Bool(*value);
    i32: value => OptionValue::Int((*value).into());
    i64: value => OptionValue::Int(*value);
    u32: value => OptionValue::Int((*value).into());
    f32: value => OptionValue::Float(*value);
    Vec<bool>: value => OptionValue::Bools(value);
    Vec<i32>: value => OptionValue::Ints(value.iter().map(|&number| number.into()).collect());
    Vec<i64>: value => OptionValue::Ints(value.clone());
    Vec<f32>: value => OptionValue::Floats(value);
    Vec<StablehloPrecisionConfig>: value => OptionValue::Numbers(
        value.iter().map(|number| (number.name(), number.code().into())).collect()
    );
    Option<String>: value => OptionValue::Text(value.as_deref());
    Bytes: value => OptionValue::Bytes(value);
    TensorType: value => OptionValue::Number {
        name: value.name(),
        // One that both schemas have has one number.
        code: value.code(Schema::Circle).unwrap_or_default().into(),
    };
}

macro_rules! show_numbers {
    ($($type:ident)*) => {
        show! { $(
            $type: value => OptionValue::Number { name: value.name(), code: value.code().into() };
        )* }
    };
}

show_numbers! {
    ActivationFunctionType CombinerType CustomOptionsFormat FullyConnectedOptionsWeightsFormat
    LSHProjectionType LSTMKernelType MirrorPadMode Padding ReduceWindowFunction RngAlgorithm
    RoPEMode
    StablehloComparisonDirection StablehloComparisonType
}

/// Hands every union of option tables to a macro: of a member its number, its generated getter and
/// its table; of a field its default value where that is not zero, empty or absent, and whether
/// only TFLite has it.
macro_rules! option_tables {
    ($then:ident) => { $then! {
    /// The options of an operator.
    union BuiltinOptions, builtin_options_type at VT_BUILTIN_OPTIONS for "options of an operator":
    1 Conv2D builtin_options_as_conv_2_doptions Conv2DOptions {
        padding: Padding => "How a window over the edge is dealt with.";
        stride_w: i32 => "The step of the window in elements, in width.";
        stride_h: i32 => "The step of the window in elements, in height.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        dilation_w_factor: i32 = 1 => "Distance between elements under the window, in width.";
        dilation_h_factor: i32 = 1 => "Distance between elements under the window, in height.";
        quantized_bias_type: TensorType => "The element type of a bias that is quantized.";
    }
    2 DepthwiseConv2D builtin_options_as_depthwise_conv_2_doptions DepthwiseConv2DOptions {
        padding: Padding => "How a window over the edge is dealt with.";
        stride_w: i32 => "The step of the window in elements, in width.";
        stride_h: i32 => "The step of the window in elements, in height.";
        depth_multiplier: i32 => "How many outputs a channel of the input has.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        dilation_w_factor: i32 = 1 => "Distance between elements under the window, in width.";
        dilation_h_factor: i32 = 1 => "Distance between elements under the window, in height.";
    }
    3 ConcatEmbeddings builtin_options_as_concat_embeddings_options ConcatEmbeddingsOptions {
        num_channels: i32 => "How many channels there are.";
        num_columns_per_channel: Vec<i32> => "Columns, one number per channel.";
        embedding_dim_per_channel: Vec<i32> => "Elements of an embedding, one number per channel.";
    }
    4 LSHProjection builtin_options_as_lshprojection_options LSHProjectionOptions {
        type_: LSHProjectionType => "What is put out.";
    }
    5 Pool2D builtin_options_as_pool_2_doptions Pool2DOptions {
        padding: Padding => "How a window over the edge is dealt with.";
        stride_w: i32 => "The step of the window in elements, in width.";
        stride_h: i32 => "The step of the window in elements, in height.";
        filter_width: i32 => "Elements of the window in width.";
        filter_height: i32 => "Elements of the window in height.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
    }
    6 SVDF builtin_options_as_svdfoptions SVDFOptions {
        rank: i32 => "The rank of the filter.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
    }
    7 RNN builtin_options_as_rnnoptions RNNOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
    }
    8 FullyConnected builtin_options_as_fully_connected_options FullyConnectedOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        weights_format: FullyConnectedOptionsWeightsFormat =>
            "The order in which weights are stored.";
        keep_num_dims: bool => "Tells whether the result has as many dimensions as the input.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
        quantized_bias_type: TensorType => "The element type of a bias that is quantized.";
        quant_spec: Bytes, only Tflite =>
            "How it is quantized, in a form of the converter; of TFLite alone.";
    }
    9 Softmax builtin_options_as_softmax_options SoftmaxOptions {
        beta: f32 => "The factor of the exponent.";
    }
    10 Concatenation builtin_options_as_concatenation_options ConcatenationOptions {
        axis: i32 => "The dimension, counted from the end where negative.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
    }
    11 Add builtin_options_as_add_options AddOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        pot_scale_int16: bool = true => "Tells whether scales of 16-bit numbers are powers of two.";
    }
    12 L2Norm builtin_options_as_l2_norm_options L2NormOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
    }
    13 LocalResponseNormalization
    builtin_options_as_local_response_normalization_options LocalResponseNormalizationOptions {
        radius: i32 => "How many channels on each side count.";
        bias: f32 => "What is added to the sum.";
        alpha: f32 => "The factor of the sum.";
        beta: f32 => "The exponent of the sum.";
    }
    14 LSTM builtin_options_as_lstmoptions LSTMOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        cell_clip: f32 => "The largest value of a cell; 0 for any.";
        proj_clip: f32 => "The largest value of the projection; 0 for any.";
        kernel_type: LSTMKernelType => "Which operands it has.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
    }
    15 ResizeBilinear builtin_options_as_resize_bilinear_options ResizeBilinearOptions {
        new_height: i32 => "The height of the result; out of use.";
        new_width: i32 => "The width of the result; out of use.";
        align_corners: bool =>
            "Tells whether the centres of the elements at the corners are mapped to each other.";
        half_pixel_centers: bool => "Tells whether centres of elements lie at halves.";
    }
    16 Call builtin_options_as_call_options CallOptions {
        subgraph: u32 => "The position of the graph that is called.";
    }
    17 Reshape builtin_options_as_reshape_options ReshapeOptions {
        new_shape: Vec<i32> =>
            "The shape of the result, where no input says it; -1 for what follows from the rest.";
    }
    18 SkipGram builtin_options_as_skip_gram_options SkipGramOptions {
        ngram_size: i32 => "Words of a sequence.";
        max_skip_size: i32 => "How many words may be left out between two.";
        include_all_ngrams: bool => "Tells whether shorter sequences are put out, too.";
    }
    19 SpaceToDepth builtin_options_as_space_to_depth_options SpaceToDepthOptions {
        block_size: i32 => "Elements along each side of a block.";
    }
    20 EmbeddingLookupSparse
    builtin_options_as_embedding_lookup_sparse_options EmbeddingLookupSparseOptions {
        combiner: CombinerType => "How rows are joined.";
    }
    21 Mul builtin_options_as_mul_options MulOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
    }
    22 Pad builtin_options_as_pad_options PadOptions {}
    23 Gather builtin_options_as_gather_options GatherOptions {
        axis: i32 => "The dimension, counted from the end where negative.";
        batch_dims: i32 => "How many dimensions at the front are those of a batch.";
    }
    24 BatchToSpaceND builtin_options_as_batch_to_space_ndoptions BatchToSpaceNDOptions {}
    25 SpaceToBatchND builtin_options_as_space_to_batch_ndoptions SpaceToBatchNDOptions {}
    26 Transpose builtin_options_as_transpose_options TransposeOptions {}
    27 Reducer builtin_options_as_reducer_options ReducerOptions {
        keep_dims: bool => "Tells whether reduced dimensions stay, with one element.";
    }
    28 Sub builtin_options_as_sub_options SubOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        pot_scale_int16: bool = true => "Tells whether scales of 16-bit numbers are powers of two.";
    }
    29 Div builtin_options_as_div_options DivOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
    }
    30 Squeeze builtin_options_as_squeeze_options SqueezeOptions {
        squeeze_dims: Vec<i32> =>
            "Dimensions of one element that are left out; none for all of them.";
    }
    31 SequenceRNN builtin_options_as_sequence_rnnoptions SequenceRNNOptions {
        time_major: bool => "Tells whether time is the first dimension, before the batch.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
    }
    32 StridedSlice builtin_options_as_strided_slice_options StridedSliceOptions {
        begin_mask: i32 => "Bits of dimensions whose begin does not count.";
        end_mask: i32 => "Bits of dimensions whose end does not count.";
        ellipsis_mask: i32 => "The bit of what stands for all dimensions in between.";
        new_axis_mask: i32 => "Bits of dimensions that are new, with one element.";
        shrink_axis_mask: i32 => "Bits of dimensions that are left out of the result.";
        offset: bool => "Tells whether ends count from the begin.";
    }
    33 Exp builtin_options_as_exp_options ExpOptions {}
    34 TopKV2 builtin_options_as_top_kv2_options TopKV2Options {}
    35 Split builtin_options_as_split_options SplitOptions {
        num_splits: i32 => "How many outputs there are.";
    }
    36 LogSoftmax builtin_options_as_log_softmax_options LogSoftmaxOptions {}
    37 Cast builtin_options_as_cast_options CastOptions {
        in_data_type: TensorType => "The element type of the input.";
        out_data_type: TensorType => "The element type of the output.";
    }
    38 Dequantize builtin_options_as_dequantize_options DequantizeOptions {}
    39 MaximumMinimum builtin_options_as_maximum_minimum_options MaximumMinimumOptions {}
    40 ArgMax builtin_options_as_arg_max_options ArgMaxOptions {
        output_type: TensorType => "The element type of the output.";
    }
    41 Less builtin_options_as_less_options LessOptions {}
    42 Neg builtin_options_as_neg_options NegOptions {}
    43 PadV2 builtin_options_as_pad_v2_options PadV2Options {}
    44 Greater builtin_options_as_greater_options GreaterOptions {}
    45 GreaterEqual builtin_options_as_greater_equal_options GreaterEqualOptions {}
    46 LessEqual builtin_options_as_less_equal_options LessEqualOptions {}
    47 Select builtin_options_as_select_options SelectOptions {}
    48 Slice builtin_options_as_slice_options SliceOptions {}
    49 TransposeConv builtin_options_as_transpose_conv_options TransposeConvOptions {
        padding: Padding => "How a window over the edge is dealt with.";
        stride_w: i32 => "The step of the window in elements, in width.";
        stride_h: i32 => "The step of the window in elements, in height.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        quantized_bias_type: TensorType => "The element type of a bias that is quantized.";
    }
    50 SparseToDense builtin_options_as_sparse_to_dense_options SparseToDenseOptions {
        validate_indices: bool => "Tells whether indices are to be checked.";
    }
    51 Tile builtin_options_as_tile_options TileOptions {}
    52 ExpandDims builtin_options_as_expand_dims_options ExpandDimsOptions {}
    53 Equal builtin_options_as_equal_options EqualOptions {}
    54 NotEqual builtin_options_as_not_equal_options NotEqualOptions {}
    55 Shape builtin_options_as_shape_options ShapeOptions {
        out_type: TensorType => "The element type of the output.";
    }
    56 Pow builtin_options_as_pow_options PowOptions {}
    57 ArgMin builtin_options_as_arg_min_options ArgMinOptions {
        output_type: TensorType => "The element type of the output.";
    }
    58 FakeQuant builtin_options_as_fake_quant_options FakeQuantOptions {
        min: f32 => "The smallest real value.";
        max: f32 => "The largest real value.";
        num_bits: i32 => "Bits of a stored number.";
        narrow_range: bool => "Tells whether the smallest stored number is left out.";
    }
    59 Pack builtin_options_as_pack_options PackOptions {
        values_count: i32 => "How many inputs there are.";
        axis: i32 => "The dimension, counted from the end where negative.";
    }
    60 LogicalOr builtin_options_as_logical_or_options LogicalOrOptions {}
    61 OneHot builtin_options_as_one_hot_options OneHotOptions {
        axis: i32 => "The dimension, counted from the end where negative.";
    }
    62 LogicalAnd builtin_options_as_logical_and_options LogicalAndOptions {}
    63 LogicalNot builtin_options_as_logical_not_options LogicalNotOptions {}
    64 Unpack builtin_options_as_unpack_options UnpackOptions {
        num: i32 => "How many outputs there are.";
        axis: i32 => "The dimension, counted from the end where negative.";
    }
    65 FloorDiv builtin_options_as_floor_div_options FloorDivOptions {}
    66 Square builtin_options_as_square_options SquareOptions {}
    67 ZerosLike builtin_options_as_zeros_like_options ZerosLikeOptions {}
    68 Fill builtin_options_as_fill_options FillOptions {}
    69 BidirectionalSequenceLSTM
    builtin_options_as_bidirectional_sequence_lstmoptions BidirectionalSequenceLSTMOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        cell_clip: f32 => "The largest value of a cell; 0 for any.";
        proj_clip: f32 => "The largest value of the projection; 0 for any.";
        merge_outputs: bool => "Tells whether both directions are joined in one output.";
        time_major: bool = true => "Tells whether time is the first dimension, before the batch.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
    }
    70 BidirectionalSequenceRNN
    builtin_options_as_bidirectional_sequence_rnnoptions BidirectionalSequenceRNNOptions {
        time_major: bool => "Tells whether time is the first dimension, before the batch.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        merge_outputs: bool => "Tells whether both directions are joined in one output.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
    }
    71 UnidirectionalSequenceLSTM
    builtin_options_as_unidirectional_sequence_lstmoptions UnidirectionalSequenceLSTMOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        cell_clip: f32 => "The largest value of a cell; 0 for any.";
        proj_clip: f32 => "The largest value of the projection; 0 for any.";
        time_major: bool => "Tells whether time is the first dimension, before the batch.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
        diagonal_recurrent_tensors: bool => "Tells whether recurrent weights are diagonals.";
    }
    72 FloorMod builtin_options_as_floor_mod_options FloorModOptions {}
    73 Range builtin_options_as_range_options RangeOptions {}
    74 ResizeNearestNeighbor
    builtin_options_as_resize_nearest_neighbor_options ResizeNearestNeighborOptions {
        align_corners: bool =>
            "Tells whether the centres of the elements at the corners are mapped to each other.";
        half_pixel_centers: bool => "Tells whether centres of elements lie at halves.";
    }
    75 LeakyRelu builtin_options_as_leaky_relu_options LeakyReluOptions {
        alpha: f32 => "The factor below zero.";
    }
    76 SquaredDifference
    builtin_options_as_squared_difference_options SquaredDifferenceOptions {}
    77 MirrorPad builtin_options_as_mirror_pad_options MirrorPadOptions {
        mode: MirrorPadMode => "Whether the element at the edge is mirrored, too.";
    }
    78 Abs builtin_options_as_abs_options AbsOptions {}
    79 SplitV builtin_options_as_split_voptions SplitVOptions {
        num_splits: i32 => "How many outputs there are.";
    }
    80 Unique builtin_options_as_unique_options UniqueOptions {
        idx_out_type: TensorType = TensorType::Int32 => "The element type of the indices.";
    }
    81 ReverseV2 builtin_options_as_reverse_v2_options ReverseV2Options {}
    82 AddN builtin_options_as_add_noptions AddNOptions {}
    83 GatherNd builtin_options_as_gather_nd_options GatherNdOptions {}
    84 Cos builtin_options_as_cos_options CosOptions {}
    85 Where builtin_options_as_where_options WhereOptions {}
    86 Rank builtin_options_as_rank_options RankOptions {}
    87 ReverseSequence builtin_options_as_reverse_sequence_options ReverseSequenceOptions {
        seq_dim: i32 => "The dimension that is turned round.";
        batch_dim: i32 => "The dimension that a length belongs to.";
    }
    88 MatrixDiag builtin_options_as_matrix_diag_options MatrixDiagOptions {}
    89 Quantize builtin_options_as_quantize_options QuantizeOptions {}
    90 MatrixSetDiag builtin_options_as_matrix_set_diag_options MatrixSetDiagOptions {}
    91 HardSwish builtin_options_as_hard_swish_options HardSwishOptions {}
    92 If builtin_options_as_if_options IfOptions {
        then_subgraph_index: i32 => "The position of the graph for true.";
        else_subgraph_index: i32 => "The position of the graph for false.";
    }
    93 While builtin_options_as_while_options WhileOptions {
        cond_subgraph_index: i32 => "The position of the graph that is the condition.";
        body_subgraph_index: i32 => "The position of the graph that is the body.";
    }
    94 DepthToSpace builtin_options_as_depth_to_space_options DepthToSpaceOptions {
        block_size: i32 => "Elements along each side of a block.";
    }
    95 NonMaxSuppressionV4
    builtin_options_as_non_max_suppression_v4_options NonMaxSuppressionV4Options {}
    96 NonMaxSuppressionV5
    builtin_options_as_non_max_suppression_v5_options NonMaxSuppressionV5Options {}
    97 ScatterNd builtin_options_as_scatter_nd_options ScatterNdOptions {}
    98 SelectV2 builtin_options_as_select_v2_options SelectV2Options {}
    99 Densify builtin_options_as_densify_options DensifyOptions {}
    100 SegmentSum builtin_options_as_segment_sum_options SegmentSumOptions {}
    101 BatchMatMul builtin_options_as_batch_mat_mul_options BatchMatMulOptions {
        adjoint_lhs: bool =>
            "Tells whether the last two dimensions of the first operand are swapped.";
        adjoint_rhs: bool =>
            "Tells whether the last two dimensions of the second operand are swapped.";
        asymmetric_quantize_inputs: bool => "Whether inputs quantized on the fly get a zero point.";
    }
    102 Cumsum builtin_options_as_cumsum_options CumsumOptions {
        exclusive: bool => "Tells whether an element counts only for those behind it.";
        reverse: bool => "Tells whether it starts at the end.";
    }
    103 CallOnce builtin_options_as_call_once_options CallOnceOptions {
        init_subgraph_index: i32 => "The position of the graph that is called once.";
    }
    104 BroadcastTo builtin_options_as_broadcast_to_options BroadcastToOptions {}
    105 Rfft2d builtin_options_as_rfft_2d_options Rfft2dOptions {}
    106 Conv3D builtin_options_as_conv_3_doptions Conv3DOptions {
        padding: Padding => "How a window over the edge is dealt with.";
        stride_d: i32 => "The step of the window in elements, in depth.";
        stride_w: i32 => "The step of the window in elements, in width.";
        stride_h: i32 => "The step of the window in elements, in height.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        dilation_d_factor: i32 = 1 => "Distance between elements under the window, in depth.";
        dilation_w_factor: i32 = 1 => "Distance between elements under the window, in width.";
        dilation_h_factor: i32 = 1 => "Distance between elements under the window, in height.";
    }
    107 Hashtable builtin_options_as_hashtable_options HashtableOptions {
        table_id: i32 => "The number of the table.";
        key_dtype: TensorType => "The element type of keys.";
        value_dtype: TensorType => "The element type of values.";
    }
    108 HashtableFind builtin_options_as_hashtable_find_options HashtableFindOptions {}
    109 HashtableImport builtin_options_as_hashtable_import_options HashtableImportOptions {}
    110 HashtableSize builtin_options_as_hashtable_size_options HashtableSizeOptions {}
    111 VarHandle builtin_options_as_var_handle_options VarHandleOptions {
        container: Option<String> => "The name of the container; absent where it has none.";
        shared_name: Option<String> => "The name of the variable.";
    }
    112 ReadVariable builtin_options_as_read_variable_options ReadVariableOptions {}
    113 AssignVariable builtin_options_as_assign_variable_options AssignVariableOptions {}
    114 Random builtin_options_as_random_options RandomOptions {
        seed: i64 => "The seed.";
        seed2: i64 => "The second seed.";
    }
    115 Bucketize builtin_options_as_bucketize_options BucketizeOptions {
        boundaries: Vec<f32> => "Where buckets meet, in ascending order.";
    }
    116 Gelu builtin_options_as_gelu_options GeluOptions {
        approximate: bool =>
            "Tells whether the hyperbolic tangent stands in for the error function.";
    }
    117 DynamicUpdateSlice
    builtin_options_as_dynamic_update_slice_options DynamicUpdateSliceOptions {}
    118 UnsortedSegmentProd
    builtin_options_as_unsorted_segment_prod_options UnsortedSegmentProdOptions {}
    119 UnsortedSegmentMax
    builtin_options_as_unsorted_segment_max_options UnsortedSegmentMaxOptions {}
    120 UnsortedSegmentMin
    builtin_options_as_unsorted_segment_min_options UnsortedSegmentMinOptions {}
    121 UnsortedSegmentSum
    builtin_options_as_unsorted_segment_sum_options UnsortedSegmentSumOptions {}
    122 ATan2 builtin_options_as_atan_2_options ATan2Options {}
    123 Sign builtin_options_as_sign_options SignOptions {}
    124 Bitcast builtin_options_as_bitcast_options BitcastOptions {}
    125 BitwiseXor builtin_options_as_bitwise_xor_options BitwiseXorOptions {}
    126 RightShift builtin_options_as_right_shift_options RightShiftOptions {}
    247 Attention builtin_options_as_attention_options AttentionOptions {}
    248 RunModel builtin_options_as_run_model_options RunModelOptions {
        location: Option<String> =>
            "The path of the other model, relative to the folder of this one.";
        signature: Option<String> =>
            "The signature that is run; absent or empty for the first graph.";
    }
    249 RoPE builtin_options_as_ro_peoptions RoPEOptions {
        mode: RoPEMode => "Which elements are turned together.";
    }
    250 RmsNorm builtin_options_as_rms_norm_options RmsNormOptions {
        epsilon: f32 => "What is added to the mean of squares.";
    }
    251 GRU builtin_options_as_gruoptions GRUOptions {
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
        return_sequences: bool => "Tells whether every step is put out, not only the last.";
        time_major: bool => "Tells whether time is the first dimension, before the batch.";
    }
    252 BCQGather builtin_options_as_bcqgather_options BCQGatherOptions {
        input_hidden_size: i32 => "Elements of a row before it was coded.";
        axis: i32 => "The dimension, counted from the end where negative.";
    }
    253 BCQFullyConnected
    builtin_options_as_bcqfully_connected_options BCQFullyConnectedOptions {
        weights_hidden_size: i32 => "Elements of a row of the weights before it was coded.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
    }
    254 InstanceNorm builtin_options_as_instance_norm_options InstanceNormOptions {
        epsilon: f32 => "What is added to the variance.";
        fused_activation_function: ActivationFunctionType => "What is applied to the result.";
    }

    /// The options of an operator for which [`BuiltinOptions`] has no room.
    union BuiltinOptions2, builtin_options_2_type at VT_BUILTIN_OPTIONS_2
    for "options of an operator":
    1 StablehloConcatenate
    builtin_options_2_as_stablehlo_concatenate_options StablehloConcatenateOptions {
        dimension: i64 => "The dimension.";
    }
    2 StablehloBroadcastInDim
    builtin_options_2_as_stablehlo_broadcast_in_dim_options StablehloBroadcastInDimOptions {
        broadcast_dimensions: Vec<i64> => "For each dimension of the operand that of the result.";
    }
    3 StablehloSlice builtin_options_2_as_stablehlo_slice_options StablehloSliceOptions {
        start_indices: Vec<i64> => "The begin in each dimension.";
        limit_indices: Vec<i64> => "The end in each dimension.";
        strides: Vec<i64> => "The step in elements, one per dimension.";
    }
    4 StablehloConvolution
    builtin_options_2_as_stablehlo_convolution_options StablehloConvolutionOptions {
        window_strides: Vec<i64> => "The step of the window in elements, one per dimension.";
        padding: Vec<i64> => "Elements added before and behind each spatial dimension, in pairs.";
        lhs_dilation: Vec<i64> =>
            "Distance between elements of the input, one per spatial dimension.";
        rhs_dilation: Vec<i64> =>
            "Distance between elements of the kernel, one per spatial dimension.";
        window_reversal: Vec<bool> =>
            "Tells for each spatial dimension whether the kernel is turned round.";
        input_batch_dimension: i64 => "The dimension of the batch in the input.";
        input_feature_dimension: i64 => "The dimension of the features in the input.";
        input_spatial_dimensions: Vec<i64> => "The spatial dimensions of the input.";
        kernel_input_feature_dimension: i64 => "The dimension of the input features in the kernel.";
        kernel_output_feature_dimension: i64 =>
            "The dimension of the output features in the kernel.";
        kernel_spatial_dimensions: Vec<i64> => "The spatial dimensions of the kernel.";
        output_batch_dimension: i64 => "The dimension of the batch in the output.";
        output_feature_dimension: i64 => "The dimension of the features in the output.";
        output_spatial_dimensions: Vec<i64> => "The spatial dimensions of the output.";
        feature_group_count: i64 => "Into how many groups the features are divided.";
        batch_group_count: i64 => "Into how many groups the batch is divided.";
        precision_config: Vec<StablehloPrecisionConfig> => "How exact each operand is.";
    }
    5 StablehloCustomCall
    builtin_options_2_as_stablehlo_custom_call_options StablehloCustomCallOptions {
        call_target_name: Option<String> => "The name of what is called.";
        has_side_effect: bool => "Tells whether it does more than compute its results.";
        backend_config: Option<String> => "Text for the target.";
        api_version: i32 => "The version of the calling convention.";
        called_computations: Vec<i32> => "The positions of graphs that the target may call.";
        custom_attributes: Bytes => "Its attributes.";
    }
    6 StablehloReduce builtin_options_2_as_stablehlo_reduce_options StablehloReduceOptions {
        dimensions: Vec<i64> => "The dimensions that are reduced.";
        body_subgraph_index: i32 => "The position of the graph that joins two elements.";
    }
    7 StablehloScatter builtin_options_2_as_stablehlo_scatter_options StablehloScatterOptions {
        indices_are_sorted: bool => "Tells whether indices are in ascending order.";
        update_window_dims: Vec<i64> => "Dimensions of the updates that hold windows.";
        inserted_window_dims: Vec<i64> => "Dimensions of the operand that the updates leave out.";
        scatter_dims_to_operand_dims: Vec<i64> =>
            "For each part of an index the dimension of the operand.";
        index_vector_dim: i64 => "The dimension of the indices that makes up one index.";
        unique_indices: bool => "Tells whether no index stands twice.";
        update_computation_subgraph_index: i32 =>
            "The position of the graph that joins an element with its update.";
    }
    8 StablehloCompare builtin_options_2_as_stablehlo_compare_options StablehloCompareOptions {
        comparison_direction: StablehloComparisonDirection => "The question.";
        compare_type: StablehloComparisonType => "As what operands are taken.";
    }
    9 StablehloDynamicSlice
    builtin_options_2_as_stablehlo_dynamic_slice_options StablehloDynamicSliceOptions {
        slice_sizes: Vec<i64> => "Elements of a slice, one number per dimension.";
    }
    10 StablehloPad builtin_options_2_as_stablehlo_pad_options StablehloPadOptions {
        edge_padding_low: Vec<i64> => "Elements added before each dimension; fewer where negative.";
        edge_padding_high: Vec<i64> =>
            "Elements added behind each dimension; fewer where negative.";
        interior_padding: Vec<i64> => "Elements added between any two, one number per dimension.";
    }
    11 StablehloIota builtin_options_2_as_stablehlo_iota_options StablehloIotaOptions {
        iota_dimension: i64 => "The dimension along which the numbers grow.";
    }
    12 StablehloDotGeneral
    builtin_options_2_as_stablehlo_dot_general_options StablehloDotGeneralOptions {
        lhs_batching_dimensions: Vec<i64> => "The dimensions of the batch in the first operand.";
        rhs_batching_dimensions: Vec<i64> => "The dimensions of the batch in the second operand.";
        lhs_contracting_dimensions: Vec<i64> =>
            "The dimensions of the first operand that are summed over.";
        rhs_contracting_dimensions: Vec<i64> =>
            "The dimensions of the second operand that are summed over.";
        precision_config: Vec<StablehloPrecisionConfig> => "How exact each operand is.";
    }
    13 StablehloReduceWindow
    builtin_options_2_as_stablehlo_reduce_window_options StablehloReduceWindowOptions {
        window_dimensions: Vec<i64> => "Elements of the window, one number per dimension.";
        window_strides: Vec<i64> => "The step of the window in elements, one per dimension.";
        base_dilations: Vec<i64> => "Distance between elements of the operand, one per dimension.";
        window_dilations: Vec<i64> =>
            "Distance between elements under the window, one per dimension.";
        padding: Vec<i64> => "Elements added before and behind each dimension, in pairs.";
        body_subgraph_index: i32 => "The position of the graph that joins two elements.";
    }
    14 StablehloSort builtin_options_2_as_stablehlo_sort_options StablehloSortOptions {
        dimension: i64 => "The dimension.";
        is_stable: bool => "Tells whether equal elements keep their order.";
        comparator_subgraph_index: i32 => "The position of the graph that compares.";
    }
    15 StablehloWhile builtin_options_2_as_stablehlo_while_options StablehloWhileOptions {
        cond_subgraph_index: i32 => "The position of the graph that is the condition.";
        body_subgraph_index: i32 => "The position of the graph that is the body.";
    }
    16 StablehloGather builtin_options_2_as_stablehlo_gather_options StablehloGatherOptions {
        offset_dims: Vec<i64> => "Dimensions of the result that hold slices.";
        collapsed_slice_dims: Vec<i64> => "Dimensions of the operand that the result leaves out.";
        start_index_map: Vec<i64> => "For each part of an index the dimension of the operand.";
        index_vector_dim: i64 => "The dimension of the indices that makes up one index.";
        slice_sizes: Vec<i64> => "Elements of a slice, one number per dimension.";
        indices_are_sorted: bool => "Tells whether indices are in ascending order.";
    }
    17 StablehloTranspose
    builtin_options_2_as_stablehlo_transpose_options StablehloTransposeOptions {
        permutation: Vec<i64> => "For each dimension of the result that of the operand.";
    }
    18 Dilate builtin_options_2_as_dilate_options DilateOptions {}
    19 StablehloRngBitGenerator
    builtin_options_2_as_stablehlo_rng_bit_generator_options StablehloRngBitGeneratorOptions {
        algorithm: RngAlgorithm => "The generator.";
    }
    20 ReduceWindow builtin_options_2_as_reduce_window_options ReduceWindowOptions {
        reduce_function: ReduceWindowFunction => "What is done to the elements of a window.";
    }
    21 StableHLOComposite
    builtin_options_2_as_stable_hlocomposite_options StableHLOCompositeOptions {
        name: Option<String> => "The name of what is composed.";
        decomposition_subgraph_index: i32 =>
            "The position of the graph that does the same by other operators.";
        composite_attributes: Bytes => "Its attributes, in the form that the next field names.";
        composite_attributes_format: CustomOptionsFormat => "The form of the attributes.";
        version: i32 => "The version of what is composed.";
    }
    22 StablehloShiftLeft
    builtin_options_2_as_stablehlo_shift_left_options StablehloShiftLeftOptions {}
    23 StablehloCase builtin_options_2_as_stablehlo_case_options StablehloCaseOptions {
        branch_subgraph_indices: Vec<i32> => "The positions of the graphs that are the branches.";
    }
    } };
}
pub(crate) use option_tables;

macro_rules! default {
    ($type:ty) => {
        <$type>::default()
    };
    ($type:ty, $default:expr) => {
        $default
    };
}

/// Declares unions and tables.
macro_rules! declare {
    ($(
        $(#[$union_doc:meta])*
        union $union:ident, $tag_field:ident at $vt:ident for $what:literal:
        $(
            $tag:literal $name:ident $getter:ident $table:ident {
                $(
                    $field:ident: $type:ty $(= $default:expr)? $(, only $schema:ident)? =>
                        $doc:literal;
                )*
            }
        )*
    )*) => {
        $(
            $(#[$union_doc])*
            #[derive(Clone, Debug, PartialEq)]
            #[non_exhaustive]
            pub enum $union {
                $(
                    #[doc = concat!("Table ", $tag, ", [`", stringify!($table), "`].")]
                    $name($table),
                )*
                /// A table that this crate does not know, kept as it is.
                Unknown(UnknownTable),
            }

            impl $union {
                /// The number and the name of every known table, ascending.
                pub const ALL: &'static [(u8, &'static str)] =
                    &[$( ($tag, stringify!($table)), )*];

                /// Returns the number of the table in its union.
                #[must_use]
                pub const fn tag(&self) -> u8 {
                    match self {
                        $( Self::$name(_) => $tag, )*
                        Self::Unknown(table) => table.tag(),
                    }
                }

                /// Returns the name of the table in the format; `None` for an unknown one.
                #[must_use]
                pub const fn name(&self) -> Option<&'static str> {
                    match self {
                        $( Self::$name(_) => Some(stringify!($table)), )*
                        Self::Unknown(_) => None,
                    }
                }

                /// Returns every field with its name, in the order of the format; none for an
                /// unknown table.
                #[must_use]
                pub fn fields(&self) -> Vec<(&'static str, OptionValue<'_>)> {
                    match self {
                        $( Self::$name(table) => table.fields(), )*
                        Self::Unknown(_) => Vec::new(),
                    }
                }
            }

            $(
                #[doc = concat!(
                    "Table `", stringify!($table), "`, number ", $tag, " of its union."
                )]
                #[derive(Clone, Debug, PartialEq)]
                pub struct $table {
                    $( #[doc = $doc] pub $field: $type, )*
                }

                impl Default for $table {
                    fn default() -> Self {
                        Self { $( $field: default!($type $(, $default)?), )* }
                    }
                }

                impl $table {
                    fn fields(&self) -> Vec<(&'static str, OptionValue<'_>)> {
                        vec![$(
                            (stringify!($field).trim_end_matches('_'), self.$field.show()),
                        )*]
                    }
                }

                impl From<$table> for $union {
                    fn from(table: $table) -> Self {
                        Self::$name(table)
                    }
                }
            )*
        )*
    };
}

option_tables! { declare }
