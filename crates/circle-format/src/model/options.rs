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
/// its table; of a field its default value, and whether only TFLite has it.
macro_rules! option_tables {
    ($then:ident) => { $then! {
    /// The options of an operator.
    union BuiltinOptions, builtin_options_type at VT_BUILTIN_OPTIONS for "options of an operator":
    1 Conv2D builtin_options_as_conv_2_doptions Conv2DOptions {
        /// How a window over the edge is dealt with.
        padding: Padding = Padding::SAME;
        /// The step of the window in elements, in width.
        stride_w: i32 = 0;
        /// The step of the window in elements, in height.
        stride_h: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Distance between elements under the window, in width.
        dilation_w_factor: i32 = 1;
        /// Distance between elements under the window, in height.
        dilation_h_factor: i32 = 1;
        /// The element type of a bias that is quantized.
        quantized_bias_type: TensorType = TensorType::Float32;
    }
    2 DepthwiseConv2D builtin_options_as_depthwise_conv_2_doptions DepthwiseConv2DOptions {
        /// How a window over the edge is dealt with.
        padding: Padding = Padding::SAME;
        /// The step of the window in elements, in width.
        stride_w: i32 = 0;
        /// The step of the window in elements, in height.
        stride_h: i32 = 0;
        /// How many outputs a channel of the input has.
        depth_multiplier: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Distance between elements under the window, in width.
        dilation_w_factor: i32 = 1;
        /// Distance between elements under the window, in height.
        dilation_h_factor: i32 = 1;
    }
    3 ConcatEmbeddings builtin_options_as_concat_embeddings_options ConcatEmbeddingsOptions {
        /// How many channels there are.
        num_channels: i32 = 0;
        /// Columns, one number per channel.
        num_columns_per_channel: Vec<i32> = Vec::new();
        /// Elements of an embedding, one number per channel.
        embedding_dim_per_channel: Vec<i32> = Vec::new();
    }
    4 LSHProjection builtin_options_as_lshprojection_options LSHProjectionOptions {
        /// What is put out.
        type_: LSHProjectionType = LSHProjectionType::UNKNOWN;
    }
    5 Pool2D builtin_options_as_pool_2_doptions Pool2DOptions {
        /// How a window over the edge is dealt with.
        padding: Padding = Padding::SAME;
        /// The step of the window in elements, in width.
        stride_w: i32 = 0;
        /// The step of the window in elements, in height.
        stride_h: i32 = 0;
        /// Elements of the window in width.
        filter_width: i32 = 0;
        /// Elements of the window in height.
        filter_height: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
    }
    6 SVDF builtin_options_as_svdfoptions SVDFOptions {
        /// The rank of the filter.
        rank: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
    }
    7 RNN builtin_options_as_rnnoptions RNNOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
    }
    8 FullyConnected builtin_options_as_fully_connected_options FullyConnectedOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// The order in which weights are stored.
        weights_format: FullyConnectedOptionsWeightsFormat =
            FullyConnectedOptionsWeightsFormat::DEFAULT;
        /// Tells whether the result has as many dimensions as the input.
        keep_num_dims: bool = false;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
        /// The element type of a bias that is quantized.
        quantized_bias_type: TensorType = TensorType::Float32;
        /// How it is quantized, in a form of the converter; of TFLite alone.
        quant_spec: Bytes = Bytes::new(), only Tflite;
    }
    9 Softmax builtin_options_as_softmax_options SoftmaxOptions {
        /// The factor of the exponent.
        beta: f32 = 0.0;
    }
    10 Concatenation builtin_options_as_concatenation_options ConcatenationOptions {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
    }
    11 Add builtin_options_as_add_options AddOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Tells whether scales of 16-bit numbers are powers of two.
        pot_scale_int16: bool = true;
    }
    12 L2Norm builtin_options_as_l2_norm_options L2NormOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
    }
    13 LocalResponseNormalization
    builtin_options_as_local_response_normalization_options LocalResponseNormalizationOptions {
        /// How many channels on each side count.
        radius: i32 = 0;
        /// What is added to the sum.
        bias: f32 = 0.0;
        /// The factor of the sum.
        alpha: f32 = 0.0;
        /// The exponent of the sum.
        beta: f32 = 0.0;
    }
    14 LSTM builtin_options_as_lstmoptions LSTMOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// The largest value of a cell; 0 for any.
        cell_clip: f32 = 0.0;
        /// The largest value of the projection; 0 for any.
        proj_clip: f32 = 0.0;
        /// Which operands it has.
        kernel_type: LSTMKernelType = LSTMKernelType::FULL;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
    }
    15 ResizeBilinear builtin_options_as_resize_bilinear_options ResizeBilinearOptions {
        /// The height of the result; out of use.
        new_height: i32 = 0;
        /// The width of the result; out of use.
        new_width: i32 = 0;
        /// Tells whether the centres of the elements at the corners are mapped to each other.
        align_corners: bool = false;
        /// Tells whether centres of elements lie at halves.
        half_pixel_centers: bool = false;
    }
    16 Call builtin_options_as_call_options CallOptions {
        /// The position of the graph that is called.
        subgraph: u32 = 0;
    }
    17 Reshape builtin_options_as_reshape_options ReshapeOptions {
        /// The shape of the result, where no input says it; -1 for what follows from the rest.
        new_shape: Vec<i32> = Vec::new();
    }
    18 SkipGram builtin_options_as_skip_gram_options SkipGramOptions {
        /// Words of a sequence.
        ngram_size: i32 = 0;
        /// How many words may be left out between two.
        max_skip_size: i32 = 0;
        /// Tells whether shorter sequences are put out, too.
        include_all_ngrams: bool = false;
    }
    19 SpaceToDepth builtin_options_as_space_to_depth_options SpaceToDepthOptions {
        /// Elements along each side of a block.
        block_size: i32 = 0;
    }
    20 EmbeddingLookupSparse
    builtin_options_as_embedding_lookup_sparse_options EmbeddingLookupSparseOptions {
        /// How rows are joined.
        combiner: CombinerType = CombinerType::SUM;
    }
    21 Mul builtin_options_as_mul_options MulOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
    }
    22 Pad builtin_options_as_pad_options PadOptions {}
    23 Gather builtin_options_as_gather_options GatherOptions {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// How many dimensions at the front are those of a batch.
        batch_dims: i32 = 0;
    }
    24 BatchToSpaceND builtin_options_as_batch_to_space_ndoptions BatchToSpaceNDOptions {}
    25 SpaceToBatchND builtin_options_as_space_to_batch_ndoptions SpaceToBatchNDOptions {}
    26 Transpose builtin_options_as_transpose_options TransposeOptions {}
    27 Reducer builtin_options_as_reducer_options ReducerOptions {
        /// Tells whether reduced dimensions stay, with one element.
        keep_dims: bool = false;
    }
    28 Sub builtin_options_as_sub_options SubOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Tells whether scales of 16-bit numbers are powers of two.
        pot_scale_int16: bool = true;
    }
    29 Div builtin_options_as_div_options DivOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
    }
    30 Squeeze builtin_options_as_squeeze_options SqueezeOptions {
        /// Dimensions of one element that are left out; none for all of them.
        squeeze_dims: Vec<i32> = Vec::new();
    }
    31 SequenceRNN builtin_options_as_sequence_rnnoptions SequenceRNNOptions {
        /// Tells whether time is the first dimension, before the batch.
        time_major: bool = false;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
    }
    32 StridedSlice builtin_options_as_strided_slice_options StridedSliceOptions {
        /// Bits of dimensions whose begin does not count.
        begin_mask: i32 = 0;
        /// Bits of dimensions whose end does not count.
        end_mask: i32 = 0;
        /// The bit of what stands for all dimensions in between.
        ellipsis_mask: i32 = 0;
        /// Bits of dimensions that are new, with one element.
        new_axis_mask: i32 = 0;
        /// Bits of dimensions that are left out of the result.
        shrink_axis_mask: i32 = 0;
        /// Tells whether ends count from the begin.
        offset: bool = false;
    }
    33 Exp builtin_options_as_exp_options ExpOptions {}
    34 TopKV2 builtin_options_as_top_kv2_options TopKV2Options {}
    35 Split builtin_options_as_split_options SplitOptions {
        /// How many outputs there are.
        num_splits: i32 = 0;
    }
    36 LogSoftmax builtin_options_as_log_softmax_options LogSoftmaxOptions {}
    37 Cast builtin_options_as_cast_options CastOptions {
        /// The element type of the input.
        in_data_type: TensorType = TensorType::Float32;
        /// The element type of the output.
        out_data_type: TensorType = TensorType::Float32;
    }
    38 Dequantize builtin_options_as_dequantize_options DequantizeOptions {}
    39 MaximumMinimum builtin_options_as_maximum_minimum_options MaximumMinimumOptions {}
    40 ArgMax builtin_options_as_arg_max_options ArgMaxOptions {
        /// The element type of the output.
        output_type: TensorType = TensorType::Float32;
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
        /// How a window over the edge is dealt with.
        padding: Padding = Padding::SAME;
        /// The step of the window in elements, in width.
        stride_w: i32 = 0;
        /// The step of the window in elements, in height.
        stride_h: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// The element type of a bias that is quantized.
        quantized_bias_type: TensorType = TensorType::Float32;
    }
    50 SparseToDense builtin_options_as_sparse_to_dense_options SparseToDenseOptions {
        /// Tells whether indices are to be checked.
        validate_indices: bool = false;
    }
    51 Tile builtin_options_as_tile_options TileOptions {}
    52 ExpandDims builtin_options_as_expand_dims_options ExpandDimsOptions {}
    53 Equal builtin_options_as_equal_options EqualOptions {}
    54 NotEqual builtin_options_as_not_equal_options NotEqualOptions {}
    55 Shape builtin_options_as_shape_options ShapeOptions {
        /// The element type of the output.
        out_type: TensorType = TensorType::Float32;
    }
    56 Pow builtin_options_as_pow_options PowOptions {}
    57 ArgMin builtin_options_as_arg_min_options ArgMinOptions {
        /// The element type of the output.
        output_type: TensorType = TensorType::Float32;
    }
    58 FakeQuant builtin_options_as_fake_quant_options FakeQuantOptions {
        /// The smallest real value.
        min: f32 = 0.0;
        /// The largest real value.
        max: f32 = 0.0;
        /// Bits of a stored number.
        num_bits: i32 = 0;
        /// Tells whether the smallest stored number is left out.
        narrow_range: bool = false;
    }
    59 Pack builtin_options_as_pack_options PackOptions {
        /// How many inputs there are.
        values_count: i32 = 0;
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    60 LogicalOr builtin_options_as_logical_or_options LogicalOrOptions {}
    61 OneHot builtin_options_as_one_hot_options OneHotOptions {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    62 LogicalAnd builtin_options_as_logical_and_options LogicalAndOptions {}
    63 LogicalNot builtin_options_as_logical_not_options LogicalNotOptions {}
    64 Unpack builtin_options_as_unpack_options UnpackOptions {
        /// How many outputs there are.
        num: i32 = 0;
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    65 FloorDiv builtin_options_as_floor_div_options FloorDivOptions {}
    66 Square builtin_options_as_square_options SquareOptions {}
    67 ZerosLike builtin_options_as_zeros_like_options ZerosLikeOptions {}
    68 Fill builtin_options_as_fill_options FillOptions {}
    69 BidirectionalSequenceLSTM
    builtin_options_as_bidirectional_sequence_lstmoptions BidirectionalSequenceLSTMOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// The largest value of a cell; 0 for any.
        cell_clip: f32 = 0.0;
        /// The largest value of the projection; 0 for any.
        proj_clip: f32 = 0.0;
        /// Tells whether both directions are joined in one output.
        merge_outputs: bool = false;
        /// Tells whether time is the first dimension, before the batch.
        time_major: bool = true;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
    }
    70 BidirectionalSequenceRNN
    builtin_options_as_bidirectional_sequence_rnnoptions BidirectionalSequenceRNNOptions {
        /// Tells whether time is the first dimension, before the batch.
        time_major: bool = false;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Tells whether both directions are joined in one output.
        merge_outputs: bool = false;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
    }
    71 UnidirectionalSequenceLSTM
    builtin_options_as_unidirectional_sequence_lstmoptions UnidirectionalSequenceLSTMOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// The largest value of a cell; 0 for any.
        cell_clip: f32 = 0.0;
        /// The largest value of the projection; 0 for any.
        proj_clip: f32 = 0.0;
        /// Tells whether time is the first dimension, before the batch.
        time_major: bool = false;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
        /// Tells whether recurrent weights are diagonals.
        diagonal_recurrent_tensors: bool = false;
    }
    72 FloorMod builtin_options_as_floor_mod_options FloorModOptions {}
    73 Range builtin_options_as_range_options RangeOptions {}
    74 ResizeNearestNeighbor
    builtin_options_as_resize_nearest_neighbor_options ResizeNearestNeighborOptions {
        /// Tells whether the centres of the elements at the corners are mapped to each other.
        align_corners: bool = false;
        /// Tells whether centres of elements lie at halves.
        half_pixel_centers: bool = false;
    }
    75 LeakyRelu builtin_options_as_leaky_relu_options LeakyReluOptions {
        /// The factor below zero.
        alpha: f32 = 0.0;
    }
    76 SquaredDifference
    builtin_options_as_squared_difference_options SquaredDifferenceOptions {}
    77 MirrorPad builtin_options_as_mirror_pad_options MirrorPadOptions {
        /// Whether the element at the edge is mirrored, too.
        mode: MirrorPadMode = MirrorPadMode::REFLECT;
    }
    78 Abs builtin_options_as_abs_options AbsOptions {}
    79 SplitV builtin_options_as_split_voptions SplitVOptions {
        /// How many outputs there are.
        num_splits: i32 = 0;
    }
    80 Unique builtin_options_as_unique_options UniqueOptions {
        /// The element type of the indices.
        idx_out_type: TensorType = TensorType::Int32;
    }
    81 ReverseV2 builtin_options_as_reverse_v2_options ReverseV2Options {}
    82 AddN builtin_options_as_add_noptions AddNOptions {}
    83 GatherNd builtin_options_as_gather_nd_options GatherNdOptions {}
    84 Cos builtin_options_as_cos_options CosOptions {}
    85 Where builtin_options_as_where_options WhereOptions {}
    86 Rank builtin_options_as_rank_options RankOptions {}
    87 ReverseSequence builtin_options_as_reverse_sequence_options ReverseSequenceOptions {
        /// The dimension that is turned round.
        seq_dim: i32 = 0;
        /// The dimension that a length belongs to.
        batch_dim: i32 = 0;
    }
    88 MatrixDiag builtin_options_as_matrix_diag_options MatrixDiagOptions {}
    89 Quantize builtin_options_as_quantize_options QuantizeOptions {}
    90 MatrixSetDiag builtin_options_as_matrix_set_diag_options MatrixSetDiagOptions {}
    91 HardSwish builtin_options_as_hard_swish_options HardSwishOptions {}
    92 If builtin_options_as_if_options IfOptions {
        /// The position of the graph for true.
        then_subgraph_index: i32 = 0;
        /// The position of the graph for false.
        else_subgraph_index: i32 = 0;
    }
    93 While builtin_options_as_while_options WhileOptions {
        /// The position of the graph that is the condition.
        cond_subgraph_index: i32 = 0;
        /// The position of the graph that is the body.
        body_subgraph_index: i32 = 0;
    }
    94 DepthToSpace builtin_options_as_depth_to_space_options DepthToSpaceOptions {
        /// Elements along each side of a block.
        block_size: i32 = 0;
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
        /// Tells whether the last two dimensions of the first operand are swapped.
        adjoint_lhs: bool = false;
        /// Tells whether the last two dimensions of the second operand are swapped.
        adjoint_rhs: bool = false;
        /// Tells whether inputs that are quantized on the fly get a zero point.
        asymmetric_quantize_inputs: bool = false;
    }
    102 Cumsum builtin_options_as_cumsum_options CumsumOptions {
        /// Tells whether an element counts only for those behind it.
        exclusive: bool = false;
        /// Tells whether it starts at the end.
        reverse: bool = false;
    }
    103 CallOnce builtin_options_as_call_once_options CallOnceOptions {
        /// The position of the graph that is called once.
        init_subgraph_index: i32 = 0;
    }
    104 BroadcastTo builtin_options_as_broadcast_to_options BroadcastToOptions {}
    105 Rfft2d builtin_options_as_rfft_2d_options Rfft2dOptions {}
    106 Conv3D builtin_options_as_conv_3_doptions Conv3DOptions {
        /// How a window over the edge is dealt with.
        padding: Padding = Padding::SAME;
        /// The step of the window in elements, in depth.
        stride_d: i32 = 0;
        /// The step of the window in elements, in width.
        stride_w: i32 = 0;
        /// The step of the window in elements, in height.
        stride_h: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Distance between elements under the window, in depth.
        dilation_d_factor: i32 = 1;
        /// Distance between elements under the window, in width.
        dilation_w_factor: i32 = 1;
        /// Distance between elements under the window, in height.
        dilation_h_factor: i32 = 1;
    }
    107 Hashtable builtin_options_as_hashtable_options HashtableOptions {
        /// The number of the table.
        table_id: i32 = 0;
        /// The element type of keys.
        key_dtype: TensorType = TensorType::Float32;
        /// The element type of values.
        value_dtype: TensorType = TensorType::Float32;
    }
    108 HashtableFind builtin_options_as_hashtable_find_options HashtableFindOptions {}
    109 HashtableImport builtin_options_as_hashtable_import_options HashtableImportOptions {}
    110 HashtableSize builtin_options_as_hashtable_size_options HashtableSizeOptions {}
    111 VarHandle builtin_options_as_var_handle_options VarHandleOptions {
        /// The name of the container; absent where it has none.
        container: Option<String> = None;
        /// The name of the variable.
        shared_name: Option<String> = None;
    }
    112 ReadVariable builtin_options_as_read_variable_options ReadVariableOptions {}
    113 AssignVariable builtin_options_as_assign_variable_options AssignVariableOptions {}
    114 Random builtin_options_as_random_options RandomOptions {
        /// The seed.
        seed: i64 = 0;
        /// The second seed.
        seed2: i64 = 0;
    }
    115 Bucketize builtin_options_as_bucketize_options BucketizeOptions {
        /// Where buckets meet, in ascending order.
        boundaries: Vec<f32> = Vec::new();
    }
    116 Gelu builtin_options_as_gelu_options GeluOptions {
        /// Tells whether the hyperbolic tangent stands in for the error function.
        approximate: bool = false;
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
        /// The path of the other model, relative to the folder of this one.
        location: Option<String> = None;
        /// The signature that is run; absent or empty for the first graph.
        signature: Option<String> = None;
    }
    249 RoPE builtin_options_as_ro_peoptions RoPEOptions {
        /// Which elements are turned together.
        mode: RoPEMode = RoPEMode::GPT_NEOX;
    }
    250 RmsNorm builtin_options_as_rms_norm_options RmsNormOptions {
        /// What is added to the mean of squares.
        epsilon: f32 = 0.0;
    }
    251 GRU builtin_options_as_gruoptions GRUOptions {
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
        /// Tells whether every step is put out, not only the last.
        return_sequences: bool = false;
        /// Tells whether time is the first dimension, before the batch.
        time_major: bool = false;
    }
    252 BCQGather builtin_options_as_bcqgather_options BCQGatherOptions {
        /// Elements of a row before it was coded.
        input_hidden_size: i32 = 0;
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    253 BCQFullyConnected
    builtin_options_as_bcqfully_connected_options BCQFullyConnectedOptions {
        /// Elements of a row of the weights before it was coded.
        weights_hidden_size: i32 = 0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
    }
    254 InstanceNorm builtin_options_as_instance_norm_options InstanceNormOptions {
        /// What is added to the variance.
        epsilon: f32 = 0.0;
        /// What is applied to the result.
        fused_activation_function: ActivationFunctionType = ActivationFunctionType::NONE;
    }

    /// The options of an operator for which [`BuiltinOptions`] has no room.
    union BuiltinOptions2, builtin_options_2_type at VT_BUILTIN_OPTIONS_2
    for "options of an operator":
    1 StablehloConcatenate
    builtin_options_2_as_stablehlo_concatenate_options StablehloConcatenateOptions {
        /// The dimension.
        dimension: i64 = 0;
    }
    2 StablehloBroadcastInDim
    builtin_options_2_as_stablehlo_broadcast_in_dim_options StablehloBroadcastInDimOptions {
        /// For each dimension of the operand that of the result.
        broadcast_dimensions: Vec<i64> = Vec::new();
    }
    3 StablehloSlice builtin_options_2_as_stablehlo_slice_options StablehloSliceOptions {
        /// The begin in each dimension.
        start_indices: Vec<i64> = Vec::new();
        /// The end in each dimension.
        limit_indices: Vec<i64> = Vec::new();
        /// The step in elements, one per dimension.
        strides: Vec<i64> = Vec::new();
    }
    4 StablehloConvolution
    builtin_options_2_as_stablehlo_convolution_options StablehloConvolutionOptions {
        /// The step of the window in elements, one per dimension.
        window_strides: Vec<i64> = Vec::new();
        /// Elements added before and behind each spatial dimension, in pairs.
        padding: Vec<i64> = Vec::new();
        /// Distance between elements of the input, one per spatial dimension.
        lhs_dilation: Vec<i64> = Vec::new();
        /// Distance between elements of the kernel, one per spatial dimension.
        rhs_dilation: Vec<i64> = Vec::new();
        /// Tells for each spatial dimension whether the kernel is turned round.
        window_reversal: Vec<bool> = Vec::new();
        /// The dimension of the batch in the input.
        input_batch_dimension: i64 = 0;
        /// The dimension of the features in the input.
        input_feature_dimension: i64 = 0;
        /// The spatial dimensions of the input.
        input_spatial_dimensions: Vec<i64> = Vec::new();
        /// The dimension of the input features in the kernel.
        kernel_input_feature_dimension: i64 = 0;
        /// The dimension of the output features in the kernel.
        kernel_output_feature_dimension: i64 = 0;
        /// The spatial dimensions of the kernel.
        kernel_spatial_dimensions: Vec<i64> = Vec::new();
        /// The dimension of the batch in the output.
        output_batch_dimension: i64 = 0;
        /// The dimension of the features in the output.
        output_feature_dimension: i64 = 0;
        /// The spatial dimensions of the output.
        output_spatial_dimensions: Vec<i64> = Vec::new();
        /// Into how many groups the features are divided.
        feature_group_count: i64 = 0;
        /// Into how many groups the batch is divided.
        batch_group_count: i64 = 0;
        /// How exact each operand is.
        precision_config: Vec<StablehloPrecisionConfig> = Vec::new();
    }
    5 StablehloCustomCall
    builtin_options_2_as_stablehlo_custom_call_options StablehloCustomCallOptions {
        /// The name of what is called.
        call_target_name: Option<String> = None;
        /// Tells whether it does more than compute its results.
        has_side_effect: bool = false;
        /// Text for the target.
        backend_config: Option<String> = None;
        /// The version of the calling convention.
        api_version: i32 = 0;
        /// The positions of graphs that the target may call.
        called_computations: Vec<i32> = Vec::new();
        /// Its attributes.
        custom_attributes: Bytes = Bytes::new();
    }
    6 StablehloReduce builtin_options_2_as_stablehlo_reduce_options StablehloReduceOptions {
        /// The dimensions that are reduced.
        dimensions: Vec<i64> = Vec::new();
        /// The position of the graph that joins two elements.
        body_subgraph_index: i32 = 0;
    }
    7 StablehloScatter builtin_options_2_as_stablehlo_scatter_options StablehloScatterOptions {
        /// Tells whether indices are in ascending order.
        indices_are_sorted: bool = false;
        /// Dimensions of the updates that hold windows.
        update_window_dims: Vec<i64> = Vec::new();
        /// Dimensions of the operand that the updates leave out.
        inserted_window_dims: Vec<i64> = Vec::new();
        /// For each part of an index the dimension of the operand.
        scatter_dims_to_operand_dims: Vec<i64> = Vec::new();
        /// The dimension of the indices that makes up one index.
        index_vector_dim: i64 = 0;
        /// Tells whether no index stands twice.
        unique_indices: bool = false;
        /// The position of the graph that joins an element with its update.
        update_computation_subgraph_index: i32 = 0;
    }
    8 StablehloCompare builtin_options_2_as_stablehlo_compare_options StablehloCompareOptions {
        /// The question.
        comparison_direction: StablehloComparisonDirection =
            StablehloComparisonDirection::STABLEHLO_COMPARISON_DIRECTION_EQ;
        /// As what operands are taken.
        compare_type: StablehloComparisonType =
            StablehloComparisonType::STABLEHLO_COMPARISON_TYPE_NOTYPE;
    }
    9 StablehloDynamicSlice
    builtin_options_2_as_stablehlo_dynamic_slice_options StablehloDynamicSliceOptions {
        /// Elements of a slice, one number per dimension.
        slice_sizes: Vec<i64> = Vec::new();
    }
    10 StablehloPad builtin_options_2_as_stablehlo_pad_options StablehloPadOptions {
        /// Elements added before each dimension; fewer where negative.
        edge_padding_low: Vec<i64> = Vec::new();
        /// Elements added behind each dimension; fewer where negative.
        edge_padding_high: Vec<i64> = Vec::new();
        /// Elements added between any two, one number per dimension.
        interior_padding: Vec<i64> = Vec::new();
    }
    11 StablehloIota builtin_options_2_as_stablehlo_iota_options StablehloIotaOptions {
        /// The dimension along which the numbers grow.
        iota_dimension: i64 = 0;
    }
    12 StablehloDotGeneral
    builtin_options_2_as_stablehlo_dot_general_options StablehloDotGeneralOptions {
        /// The dimensions of the batch in the first operand.
        lhs_batching_dimensions: Vec<i64> = Vec::new();
        /// The dimensions of the batch in the second operand.
        rhs_batching_dimensions: Vec<i64> = Vec::new();
        /// The dimensions of the first operand that are summed over.
        lhs_contracting_dimensions: Vec<i64> = Vec::new();
        /// The dimensions of the second operand that are summed over.
        rhs_contracting_dimensions: Vec<i64> = Vec::new();
        /// How exact each operand is.
        precision_config: Vec<StablehloPrecisionConfig> = Vec::new();
    }
    13 StablehloReduceWindow
    builtin_options_2_as_stablehlo_reduce_window_options StablehloReduceWindowOptions {
        /// Elements of the window, one number per dimension.
        window_dimensions: Vec<i64> = Vec::new();
        /// The step of the window in elements, one per dimension.
        window_strides: Vec<i64> = Vec::new();
        /// Distance between elements of the operand, one per dimension.
        base_dilations: Vec<i64> = Vec::new();
        /// Distance between elements under the window, one per dimension.
        window_dilations: Vec<i64> = Vec::new();
        /// Elements added before and behind each dimension, in pairs.
        padding: Vec<i64> = Vec::new();
        /// The position of the graph that joins two elements.
        body_subgraph_index: i32 = 0;
    }
    14 StablehloSort builtin_options_2_as_stablehlo_sort_options StablehloSortOptions {
        /// The dimension.
        dimension: i64 = 0;
        /// Tells whether equal elements keep their order.
        is_stable: bool = false;
        /// The position of the graph that compares.
        comparator_subgraph_index: i32 = 0;
    }
    15 StablehloWhile builtin_options_2_as_stablehlo_while_options StablehloWhileOptions {
        /// The position of the graph that is the condition.
        cond_subgraph_index: i32 = 0;
        /// The position of the graph that is the body.
        body_subgraph_index: i32 = 0;
    }
    16 StablehloGather builtin_options_2_as_stablehlo_gather_options StablehloGatherOptions {
        /// Dimensions of the result that hold slices.
        offset_dims: Vec<i64> = Vec::new();
        /// Dimensions of the operand that the result leaves out.
        collapsed_slice_dims: Vec<i64> = Vec::new();
        /// For each part of an index the dimension of the operand.
        start_index_map: Vec<i64> = Vec::new();
        /// The dimension of the indices that makes up one index.
        index_vector_dim: i64 = 0;
        /// Elements of a slice, one number per dimension.
        slice_sizes: Vec<i64> = Vec::new();
        /// Tells whether indices are in ascending order.
        indices_are_sorted: bool = false;
    }
    17 StablehloTranspose
    builtin_options_2_as_stablehlo_transpose_options StablehloTransposeOptions {
        /// For each dimension of the result that of the operand.
        permutation: Vec<i64> = Vec::new();
    }
    18 Dilate builtin_options_2_as_dilate_options DilateOptions {}
    19 StablehloRngBitGenerator
    builtin_options_2_as_stablehlo_rng_bit_generator_options StablehloRngBitGeneratorOptions {
        /// The generator.
        algorithm: RngAlgorithm = RngAlgorithm::DEFAULT;
    }
    20 ReduceWindow builtin_options_2_as_reduce_window_options ReduceWindowOptions {
        /// What is done to the elements of a window.
        reduce_function: ReduceWindowFunction = ReduceWindowFunction::UNSUPPORTED;
    }
    21 StableHLOComposite
    builtin_options_2_as_stable_hlocomposite_options StableHLOCompositeOptions {
        /// The name of what is composed.
        name: Option<String> = None;
        /// The position of the graph that does the same by other operators.
        decomposition_subgraph_index: i32 = 0;
        /// Its attributes, in the form that the next field names.
        composite_attributes: Bytes = Bytes::new();
        /// The form of the attributes.
        composite_attributes_format: CustomOptionsFormat = CustomOptionsFormat::FLEXBUFFERS;
        /// The version of what is composed.
        version: i32 = 0;
    }
    22 StablehloShiftLeft
    builtin_options_2_as_stablehlo_shift_left_options StablehloShiftLeftOptions {}
    23 StablehloCase builtin_options_2_as_stablehlo_case_options StablehloCaseOptions {
        /// The positions of the graphs that are the branches.
        branch_subgraph_indices: Vec<i32> = Vec::new();
    }
    } };
}
pub(crate) use option_tables;

/// Declares unions and tables.
macro_rules! declare {
    ($(
        $(#[$union_doc:meta])*
        union $union:ident, $tag_field:ident at $vt:ident for $what:literal:
        $(
            $tag:literal $name:ident $getter:ident $table:ident {
                $(
                    $(#[$field_doc:meta])*
                    $field:ident: $type:ty = $default:expr $(, only $schema:ident)?;
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
                    $( $(#[$field_doc])* pub $field: $type, )*
                }

                impl Default for $table {
                    fn default() -> Self {
                        Self { $( $field: $default, )* }
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
