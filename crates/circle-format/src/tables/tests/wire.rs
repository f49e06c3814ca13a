//! What the formats say about bytes, against the code that is generated from the schemas.
//!
//! The tables here were taken from the formats, not from the schemas: fields by their ids, types,
//! and what an absent field means.

use test_support::flatc_tables;

use crate::model::{self, BuiltinOptions, BuiltinOptions2, Schema, TensorType};

flatc_tables! { circle, include_str!("../../generated/circle.rs"), {
    // Both schemas have these; what is marked in `schemas/circle.fbs` only one.
    Operator by OperatorArgs {
        opcode_index: u32 = 0; inputs: Numbers<i32>; outputs: Numbers<i32>;
        builtin_options_type: BuiltinOptions = BuiltinOptions(0); builtin_options: AnyTable;
        custom_options: Numbers<u8>;
        custom_options_format: CustomOptionsFormat = CustomOptionsFormat(0);
        mutating_variable_inputs: Numbers<bool>; intermediates: Numbers<i32>;
        large_custom_options_offset: u64 = 0; large_custom_options_size: u64 = 0;
        builtin_options_2_type: BuiltinOptions2 = BuiltinOptions2(0); builtin_options_2: AnyTable;
        debug_metadata_index: i32 = -1;
    }
    OperatorCode by OperatorCodeArgs {
        deprecated_builtin_code: i8 = 0; custom_code: Text; version: i32 = 1;
        builtin_code: BuiltinOperator = BuiltinOperator(0);
    }
    Buffer by BufferArgs { data: Numbers<u8>; offset: u64 = 0; size: u64 = 0; }
    Metadata by MetadataArgs { name: Text; buffer: u32 = 0; }
    SignatureDef by SignatureDefArgs {
        inputs: Tables<TensorMap<'static>>; outputs: Tables<TensorMap<'static>>;
        signature_key: Text; tag: Text; subgraph_index: u32 = 0;
    }
    TensorMap by TensorMapArgs { name: Text; tensor_index: u32 = 0; }
    QuantizationParameters by QuantizationParametersArgs {
        min: Numbers<f32>; max: Numbers<f32>; scale: Numbers<f32>; zero_point: Numbers<i64>;
        details_type: QuantizationDetails = QuantizationDetails(0); details: AnyTable;
        quantized_dimension: i32 = 0;
    }
    CustomQuantization by CustomQuantizationArgs { custom: Numbers<u8>; }
    SparsityParameters by SparsityParametersArgs {
        traversal_order: Numbers<i32>; block_map: Numbers<i32>;
        dim_metadata: Tables<DimensionMetadata<'static>>;
    }
    DimensionMetadata by DimensionMetadataArgs {
        format: DimensionType = DimensionType(0); dense_size: i32 = 0;
        array_segments_type: SparseIndexVector = SparseIndexVector(0); array_segments: AnyTable;
        array_indices_type: SparseIndexVector = SparseIndexVector(0); array_indices: AnyTable;
    }
    Int32Vector by Int32VectorArgs { values: Numbers<i32>; }
    Uint16Vector by Uint16VectorArgs { values: Numbers<u16>; }
    Uint8Vector by Uint8VectorArgs { values: Numbers<u8>; }
    VariantSubType by VariantSubTypeArgs {
        shape: Numbers<i32>; type_: TensorType = TensorType(0); has_rank: bool = false;
    }
    Conv2DOptions by Conv2DOptionsArgs {
        padding: Padding = Padding(0); stride_w: i32 = 0; stride_h: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        dilation_w_factor: i32 = 1; dilation_h_factor: i32 = 1;
        quantized_bias_type: TensorType = TensorType(0);
    }
    DepthwiseConv2DOptions by DepthwiseConv2DOptionsArgs {
        padding: Padding = Padding(0); stride_w: i32 = 0; stride_h: i32 = 0;
        depth_multiplier: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        dilation_w_factor: i32 = 1; dilation_h_factor: i32 = 1;
    }
    ConcatEmbeddingsOptions by ConcatEmbeddingsOptionsArgs {
        num_channels: i32 = 0; num_columns_per_channel: Numbers<i32>;
        embedding_dim_per_channel: Numbers<i32>;
    }
    LSHProjectionOptions by LSHProjectionOptionsArgs {
        type_: LSHProjectionType = LSHProjectionType(0);
    }
    Pool2DOptions by Pool2DOptionsArgs {
        padding: Padding = Padding(0); stride_w: i32 = 0; stride_h: i32 = 0; filter_width: i32 = 0;
        filter_height: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
    }
    SVDFOptions by SVDFOptionsArgs {
        rank: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        asymmetric_quantize_inputs: bool = false;
    }
    RNNOptions by RNNOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        asymmetric_quantize_inputs: bool = false;
    }
    SoftmaxOptions by SoftmaxOptionsArgs { beta: f32 = 0.0; }
    ConcatenationOptions by ConcatenationOptionsArgs {
        axis: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
    }
    AddOptions by AddOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        pot_scale_int16: bool = true;
    }
    L2NormOptions by L2NormOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
    }
    LocalResponseNormalizationOptions by LocalResponseNormalizationOptionsArgs {
        radius: i32 = 0; bias: f32 = 0.0; alpha: f32 = 0.0; beta: f32 = 0.0;
    }
    LSTMOptions by LSTMOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        cell_clip: f32 = 0.0; proj_clip: f32 = 0.0; kernel_type: LSTMKernelType = LSTMKernelType(0);
        asymmetric_quantize_inputs: bool = false;
    }
    ResizeBilinearOptions by ResizeBilinearOptionsArgs {
        new_height: i32 = 0; new_width: i32 = 0; align_corners: bool = false;
        half_pixel_centers: bool = false;
    }
    CallOptions by CallOptionsArgs { subgraph: u32 = 0; }
    ReshapeOptions by ReshapeOptionsArgs { new_shape: Numbers<i32>; }
    SkipGramOptions by SkipGramOptionsArgs {
        ngram_size: i32 = 0; max_skip_size: i32 = 0; include_all_ngrams: bool = false;
    }
    SpaceToDepthOptions by SpaceToDepthOptionsArgs { block_size: i32 = 0; }
    EmbeddingLookupSparseOptions by EmbeddingLookupSparseOptionsArgs {
        combiner: CombinerType = CombinerType(0);
    }
    MulOptions by MulOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
    }
    PadOptions by PadOptionsArgs {}
    GatherOptions by GatherOptionsArgs { axis: i32 = 0; batch_dims: i32 = 0; }
    BatchToSpaceNDOptions by BatchToSpaceNDOptionsArgs {}
    SpaceToBatchNDOptions by SpaceToBatchNDOptionsArgs {}
    TransposeOptions by TransposeOptionsArgs {}
    ReducerOptions by ReducerOptionsArgs { keep_dims: bool = false; }
    SubOptions by SubOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        pot_scale_int16: bool = true;
    }
    DivOptions by DivOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
    }
    SqueezeOptions by SqueezeOptionsArgs { squeeze_dims: Numbers<i32>; }
    SequenceRNNOptions by SequenceRNNOptionsArgs {
        time_major: bool = false;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        asymmetric_quantize_inputs: bool = false;
    }
    StridedSliceOptions by StridedSliceOptionsArgs {
        begin_mask: i32 = 0; end_mask: i32 = 0; ellipsis_mask: i32 = 0; new_axis_mask: i32 = 0;
        shrink_axis_mask: i32 = 0; offset: bool = false;
    }
    ExpOptions by ExpOptionsArgs {} TopKV2Options by TopKV2OptionsArgs {}
    SplitOptions by SplitOptionsArgs { num_splits: i32 = 0; }
    LogSoftmaxOptions by LogSoftmaxOptionsArgs {}
    CastOptions by CastOptionsArgs {
        in_data_type: TensorType = TensorType(0); out_data_type: TensorType = TensorType(0);
    }
    DequantizeOptions by DequantizeOptionsArgs {}
    MaximumMinimumOptions by MaximumMinimumOptionsArgs {}
    ArgMaxOptions by ArgMaxOptionsArgs { output_type: TensorType = TensorType(0); }
    LessOptions by LessOptionsArgs {} NegOptions by NegOptionsArgs {}
    PadV2Options by PadV2OptionsArgs {} GreaterOptions by GreaterOptionsArgs {}
    GreaterEqualOptions by GreaterEqualOptionsArgs {} LessEqualOptions by LessEqualOptionsArgs {}
    SelectOptions by SelectOptionsArgs {} SliceOptions by SliceOptionsArgs {}
    TransposeConvOptions by TransposeConvOptionsArgs {
        padding: Padding = Padding(0); stride_w: i32 = 0; stride_h: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        quantized_bias_type: TensorType = TensorType(0);
    }
    SparseToDenseOptions by SparseToDenseOptionsArgs { validate_indices: bool = false; }
    TileOptions by TileOptionsArgs {} ExpandDimsOptions by ExpandDimsOptionsArgs {}
    EqualOptions by EqualOptionsArgs {} NotEqualOptions by NotEqualOptionsArgs {}
    ShapeOptions by ShapeOptionsArgs { out_type: TensorType = TensorType(0); }
    PowOptions by PowOptionsArgs {}
    ArgMinOptions by ArgMinOptionsArgs { output_type: TensorType = TensorType(0); }
    FakeQuantOptions by FakeQuantOptionsArgs {
        min: f32 = 0.0; max: f32 = 0.0; num_bits: i32 = 0; narrow_range: bool = false;
    }
    PackOptions by PackOptionsArgs { values_count: i32 = 0; axis: i32 = 0; }
    LogicalOrOptions by LogicalOrOptionsArgs {}
    OneHotOptions by OneHotOptionsArgs { axis: i32 = 0; }
    LogicalAndOptions by LogicalAndOptionsArgs {} LogicalNotOptions by LogicalNotOptionsArgs {}
    UnpackOptions by UnpackOptionsArgs { num: i32 = 0; axis: i32 = 0; }
    FloorDivOptions by FloorDivOptionsArgs {} SquareOptions by SquareOptionsArgs {}
    ZerosLikeOptions by ZerosLikeOptionsArgs {} FillOptions by FillOptionsArgs {}
    BidirectionalSequenceLSTMOptions by BidirectionalSequenceLSTMOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        cell_clip: f32 = 0.0; proj_clip: f32 = 0.0; merge_outputs: bool = false;
        time_major: bool = true; asymmetric_quantize_inputs: bool = false;
    }
    BidirectionalSequenceRNNOptions by BidirectionalSequenceRNNOptionsArgs {
        time_major: bool = false;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        merge_outputs: bool = false; asymmetric_quantize_inputs: bool = false;
    }
    UnidirectionalSequenceLSTMOptions by UnidirectionalSequenceLSTMOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        cell_clip: f32 = 0.0; proj_clip: f32 = 0.0; time_major: bool = false;
        asymmetric_quantize_inputs: bool = false; diagonal_recurrent_tensors: bool = false;
    }
    FloorModOptions by FloorModOptionsArgs {} RangeOptions by RangeOptionsArgs {}
    ResizeNearestNeighborOptions by ResizeNearestNeighborOptionsArgs {
        align_corners: bool = false; half_pixel_centers: bool = false;
    }
    LeakyReluOptions by LeakyReluOptionsArgs { alpha: f32 = 0.0; }
    SquaredDifferenceOptions by SquaredDifferenceOptionsArgs {}
    MirrorPadOptions by MirrorPadOptionsArgs { mode: MirrorPadMode = MirrorPadMode(0); }
    AbsOptions by AbsOptionsArgs {}
    SplitVOptions by SplitVOptionsArgs { num_splits: i32 = 0; }
    UniqueOptions by UniqueOptionsArgs { idx_out_type: TensorType = TensorType(2); }
    ReverseV2Options by ReverseV2OptionsArgs {} AddNOptions by AddNOptionsArgs {}
    GatherNdOptions by GatherNdOptionsArgs {} CosOptions by CosOptionsArgs {}
    WhereOptions by WhereOptionsArgs {} RankOptions by RankOptionsArgs {}
    ReverseSequenceOptions by ReverseSequenceOptionsArgs { seq_dim: i32 = 0; batch_dim: i32 = 0; }
    MatrixDiagOptions by MatrixDiagOptionsArgs {} QuantizeOptions by QuantizeOptionsArgs {}
    MatrixSetDiagOptions by MatrixSetDiagOptionsArgs {} HardSwishOptions by HardSwishOptionsArgs {}
    IfOptions by IfOptionsArgs { then_subgraph_index: i32 = 0; else_subgraph_index: i32 = 0; }
    WhileOptions by WhileOptionsArgs { cond_subgraph_index: i32 = 0; body_subgraph_index: i32 = 0; }
    DepthToSpaceOptions by DepthToSpaceOptionsArgs { block_size: i32 = 0; }
    NonMaxSuppressionV4Options by NonMaxSuppressionV4OptionsArgs {}
    NonMaxSuppressionV5Options by NonMaxSuppressionV5OptionsArgs {}
    ScatterNdOptions by ScatterNdOptionsArgs {} SelectV2Options by SelectV2OptionsArgs {}
    DensifyOptions by DensifyOptionsArgs {} SegmentSumOptions by SegmentSumOptionsArgs {}
    CumsumOptions by CumsumOptionsArgs { exclusive: bool = false; reverse: bool = false; }
    CallOnceOptions by CallOnceOptionsArgs { init_subgraph_index: i32 = 0; }
    BroadcastToOptions by BroadcastToOptionsArgs {} Rfft2dOptions by Rfft2dOptionsArgs {}
    Conv3DOptions by Conv3DOptionsArgs {
        padding: Padding = Padding(0); stride_d: i32 = 0; stride_w: i32 = 0; stride_h: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        dilation_d_factor: i32 = 1; dilation_w_factor: i32 = 1; dilation_h_factor: i32 = 1;
    }
    HashtableOptions by HashtableOptionsArgs {
        table_id: i32 = 0; key_dtype: TensorType = TensorType(0);
        value_dtype: TensorType = TensorType(0);
    }
    HashtableFindOptions by HashtableFindOptionsArgs {}
    HashtableImportOptions by HashtableImportOptionsArgs {}
    HashtableSizeOptions by HashtableSizeOptionsArgs {}
    VarHandleOptions by VarHandleOptionsArgs { container: Text; shared_name: Text; }
    ReadVariableOptions by ReadVariableOptionsArgs {}
    AssignVariableOptions by AssignVariableOptionsArgs {}
    RandomOptions by RandomOptionsArgs { seed: i64 = 0; seed2: i64 = 0; }
    BucketizeOptions by BucketizeOptionsArgs { boundaries: Numbers<f32>; }
    GeluOptions by GeluOptionsArgs { approximate: bool = false; }
    DynamicUpdateSliceOptions by DynamicUpdateSliceOptionsArgs {}
    UnsortedSegmentProdOptions by UnsortedSegmentProdOptionsArgs {}
    UnsortedSegmentMaxOptions by UnsortedSegmentMaxOptionsArgs {}
    UnsortedSegmentMinOptions by UnsortedSegmentMinOptionsArgs {}
    UnsortedSegmentSumOptions by UnsortedSegmentSumOptionsArgs {}
    ATan2Options by ATan2OptionsArgs {} SignOptions by SignOptionsArgs {}
    BitcastOptions by BitcastOptionsArgs {} BitwiseXorOptions by BitwiseXorOptionsArgs {}
    RightShiftOptions by RightShiftOptionsArgs {}
    StablehloConcatenateOptions by StablehloConcatenateOptionsArgs { dimension: i64 = 0; }
    StablehloBroadcastInDimOptions by StablehloBroadcastInDimOptionsArgs {
        broadcast_dimensions: Numbers<i64>;
    }
    StablehloSliceOptions by StablehloSliceOptionsArgs {
        start_indices: Numbers<i64>; limit_indices: Numbers<i64>; strides: Numbers<i64>;
    }
    StablehloConvolutionOptions by StablehloConvolutionOptionsArgs {
        window_strides: Numbers<i64>; padding: Numbers<i64>; lhs_dilation: Numbers<i64>;
        rhs_dilation: Numbers<i64>; window_reversal: Numbers<bool>; input_batch_dimension: i64 = 0;
        input_feature_dimension: i64 = 0; input_spatial_dimensions: Numbers<i64>;
        kernel_input_feature_dimension: i64 = 0; kernel_output_feature_dimension: i64 = 0;
        kernel_spatial_dimensions: Numbers<i64>; output_batch_dimension: i64 = 0;
        output_feature_dimension: i64 = 0; output_spatial_dimensions: Numbers<i64>;
        feature_group_count: i64 = 0; batch_group_count: i64 = 0;
        precision_config: Numbers<StablehloPrecisionConfig>;
    }
    StablehloCustomCallOptions by StablehloCustomCallOptionsArgs {
        call_target_name: Text; has_side_effect: bool = false; backend_config: Text;
        api_version: i32 = 0; called_computations: Numbers<i32>; custom_attributes: Numbers<u8>;
    }
    StablehloReduceOptions by StablehloReduceOptionsArgs {
        dimensions: Numbers<i64>; body_subgraph_index: i32 = 0;
    }
    StablehloScatterOptions by StablehloScatterOptionsArgs {
        indices_are_sorted: bool = false; update_window_dims: Numbers<i64>;
        inserted_window_dims: Numbers<i64>; scatter_dims_to_operand_dims: Numbers<i64>;
        index_vector_dim: i64 = 0; unique_indices: bool = false;
        update_computation_subgraph_index: i32 = 0;
    }
    StablehloCompareOptions by StablehloCompareOptionsArgs {
        comparison_direction: StablehloComparisonDirection = StablehloComparisonDirection(0);
        compare_type: StablehloComparisonType = StablehloComparisonType(0);
    }
    StablehloDynamicSliceOptions by StablehloDynamicSliceOptionsArgs { slice_sizes: Numbers<i64>; }
    StablehloPadOptions by StablehloPadOptionsArgs {
        edge_padding_low: Numbers<i64>; edge_padding_high: Numbers<i64>;
        interior_padding: Numbers<i64>;
    }
    StablehloIotaOptions by StablehloIotaOptionsArgs { iota_dimension: i64 = 0; }
    StablehloDotGeneralOptions by StablehloDotGeneralOptionsArgs {
        lhs_batching_dimensions: Numbers<i64>; rhs_batching_dimensions: Numbers<i64>;
        lhs_contracting_dimensions: Numbers<i64>; rhs_contracting_dimensions: Numbers<i64>;
        precision_config: Numbers<StablehloPrecisionConfig>;
    }
    StablehloReduceWindowOptions by StablehloReduceWindowOptionsArgs {
        window_dimensions: Numbers<i64>; window_strides: Numbers<i64>; base_dilations: Numbers<i64>;
        window_dilations: Numbers<i64>; padding: Numbers<i64>; body_subgraph_index: i32 = 0;
    }
    StablehloSortOptions by StablehloSortOptionsArgs {
        dimension: i64 = 0; is_stable: bool = false; comparator_subgraph_index: i32 = 0;
    }
    StablehloWhileOptions by StablehloWhileOptionsArgs {
        cond_subgraph_index: i32 = 0; body_subgraph_index: i32 = 0;
    }
    StablehloGatherOptions by StablehloGatherOptionsArgs {
        offset_dims: Numbers<i64>; collapsed_slice_dims: Numbers<i64>;
        start_index_map: Numbers<i64>; index_vector_dim: i64 = 0; slice_sizes: Numbers<i64>;
        indices_are_sorted: bool = false;
    }
    StablehloTransposeOptions by StablehloTransposeOptionsArgs { permutation: Numbers<i64>; }
    DilateOptions by DilateOptionsArgs {}
    StablehloRngBitGeneratorOptions by StablehloRngBitGeneratorOptionsArgs {
        algorithm: RngAlgorithm = RngAlgorithm(0);
    }
    ReduceWindowOptions by ReduceWindowOptionsArgs {
        reduce_function: ReduceWindowFunction = ReduceWindowFunction(0);
    }
    StableHLOCompositeOptions by StableHLOCompositeOptionsArgs {
        name: Text; decomposition_subgraph_index: i32 = 0; composite_attributes: Numbers<u8>;
        composite_attributes_format: CustomOptionsFormat = CustomOptionsFormat(0); version: i32 = 0;
    }
    StablehloShiftLeftOptions by StablehloShiftLeftOptionsArgs {}
    StablehloCaseOptions by StablehloCaseOptionsArgs { branch_subgraph_indices: Numbers<i32>; }
    // Circle.
    Model by ModelArgs {
        version: u32 = 0; operator_codes: Tables<OperatorCode<'static>>;
        subgraphs: Tables<SubGraph<'static>>; description: Text; buffers: Tables<Buffer<'static>>;
        metadata_buffer: Numbers<i32>; metadata: Tables<Metadata<'static>>;
        signature_defs: Tables<SignatureDef<'static>>;
    }
    SubGraph by SubGraphArgs {
        tensors: Tables<Tensor<'static>>; inputs: Numbers<i32>; outputs: Numbers<i32>;
        operators: Tables<Operator<'static>>; name: Text; data_format: DataFormat = DataFormat(0);
        debug_metadata_index: i32 = -1;
    }
    Tensor by TensorArgs {
        shape: Numbers<i32>; type_: TensorType = TensorType(0); buffer: u32 = 0; name: Text;
        quantization: Option<QuantizationParameters<'static>>; is_variable: bool = false;
        sparsity: Option<SparsityParameters<'static>>; shape_signature: Numbers<i32>;
        has_rank: bool = false; variant_tensors: Tables<VariantSubType<'static>>;
        compression_type: CompressionType = CompressionType(0);
    }
    MXQuantization by MXQuantizationArgs { axis: i32 = 0; }
    BlockwiseQuantization by BlockwiseQuantizationArgs {
        scales: i32 = 0; zero_points: i32 = 0; block_size: i32 = 0;
    }
    BatchMatMulOptions by BatchMatMulOptionsArgs {
        adjoint_lhs: bool = false; adjoint_rhs: bool = false;
        asymmetric_quantize_inputs: bool = false;
    }
    AttentionOptions by AttentionOptionsArgs {}
    RunModelOptions by RunModelOptionsArgs { location: Text; signature: Text; }
    RoPEOptions by RoPEOptionsArgs { mode: RoPEMode = RoPEMode(0); }
    RmsNormOptions by RmsNormOptionsArgs { epsilon: f32 = 0.0; }
    GRUOptions by GRUOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        return_sequences: bool = false; time_major: bool = false;
    }
    BCQGatherOptions by BCQGatherOptionsArgs { input_hidden_size: i32 = 0; axis: i32 = 0; }
    BCQFullyConnectedOptions by BCQFullyConnectedOptionsArgs {
        weights_hidden_size: i32 = 0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
    }
    InstanceNormOptions by InstanceNormOptionsArgs {
        epsilon: f32 = 0.0;
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
    }
    // TFLite.
    TfliteModel by TfliteModelArgs {
        version: u32 = 0; operator_codes: Tables<OperatorCode<'static>>;
        subgraphs: Tables<TfliteSubGraph<'static>>; description: Text;
        buffers: Tables<Buffer<'static>>; metadata_buffer: Numbers<i32>;
        metadata: Tables<Metadata<'static>>; signature_defs: Tables<SignatureDef<'static>>;
        external_buffer_groups: Tables<ExternalBufferGroup<'static>>;
        external_buffers: Tables<ExternalBuffer<'static>>;
    }
    TfliteSubGraph by TfliteSubGraphArgs {
        tensors: Tables<TfliteTensor<'static>>; inputs: Numbers<i32>; outputs: Numbers<i32>;
        operators: Tables<Operator<'static>>; name: Text; debug_metadata_index: i32 = -1;
    }
    TfliteTensor by TfliteTensorArgs {
        shape: Numbers<i32>; type_: TensorType = TensorType(0); buffer: u32 = 0; name: Text;
        quantization: Option<TfliteQuantizationParameters<'static>>; is_variable: bool = false;
        sparsity: Option<SparsityParameters<'static>>; shape_signature: Numbers<i32>;
        has_rank: bool = false; variant_tensors: Tables<VariantSubType<'static>>;
        external_buffer: u32 = 0;
    }
    TfliteBlockwiseQuantization by TfliteBlockwiseQuantizationArgs {
        scales: i32 = 0; zero_points: i32 = 0; block_size: i32 = 0; block_shape: Numbers<i32>;
    }
    MultiAxisQuantization by MultiAxisQuantizationArgs {
        scales: i32 = 0; zero_points: i32 = 0; block_size: i32 = 0;
        quantized_dimensions: Numbers<i32>;
    }
    ExternalBuffer by ExternalBufferArgs {
        id: u32 = 0; group: u32 = 0; offset: u64 = 0; length: u64 = 0; packing: Text;
    }
    ExternalBufferGroup by ExternalBufferGroupArgs { name: Text; }
    FullyConnectedOptions by FullyConnectedOptionsArgs {
        fused_activation_function: ActivationFunctionType = ActivationFunctionType(0);
        weights_format: FullyConnectedOptionsWeightsFormat = FullyConnectedOptionsWeightsFormat(0);
        keep_num_dims: bool = false; asymmetric_quantize_inputs: bool = false;
        quantized_bias_type: TensorType = TensorType(0); quant_spec: Numbers<u8>;
    }
    TfliteQuantizationParameters by TfliteQuantizationParametersArgs {
        min: Numbers<f32>; max: Numbers<f32>; scale: Numbers<f32>; zero_point: Numbers<i64>;
        details_type: TfliteQuantizationDetails = TfliteQuantizationDetails(0); details: AnyTable;
        quantized_dimension: i32 = 0;
    }
} }

flatc_tables! { training, include_str!("../../generated/training.rs"), {
    ModelTraining by ModelTrainingArgs {
        version: u32 = 0; optimizer: Optimizer = Optimizer(0);
        optimizer_opt_type: OptimizerOptions = OptimizerOptions(0); optimizer_opt: AnyTable;
        lossfn: LossFn = LossFn(0); lossfn_opt_type: LossFnOptions = LossFnOptions(0);
        lossfn_opt: AnyTable; epochs: i32 = 0; batch_size: i32 = 0;
        loss_reduction_type: LossReductionType = LossReductionType(0); trainable_ops: Numbers<i32>;
    }
    SGDOptions by SGDOptionsArgs { learning_rate: f32 = 0.0; }
    AdamOptions by AdamOptionsArgs {
        learning_rate: f32 = 0.0; beta_1: f32 = 0.0; beta_2: f32 = 0.0; epsilon: f32 = 0.0;
    }
    SparseCategoricalCrossentropyOptions by SparseCategoricalCrossentropyOptionsArgs {
        from_logits: bool = false;
    }
    CategoricalCrossentropyOptions by CategoricalCrossentropyOptionsArgs {
        from_logits: bool = false;
    }
    MeanSquaredErrorOptions by MeanSquaredErrorOptionsArgs {}
} }

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
