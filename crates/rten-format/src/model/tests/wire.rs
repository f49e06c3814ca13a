//! What the format says about bytes, against the code that is generated from the schema.
//!
//! The tables here were taken from the format, not from the schema: fields by their ids, types, and
//! what an absent field means. Releases 0.2.0 to 0.27.0 of RTen agree in all of them.

use test_support::flatc_tables;

use crate::{
    AttributesType, AutoPad, ConstantDataType, CoordTransformMode, DataType, DepthToSpaceMode,
    GeluApproximation, NMSBoxOrder, NearestMode, OperatorType, PadMode, RNNDirection, ResizeMode,
    ScatterReduction, generated::rten as stored,
};

flatc_tables! { rten, include_str!("../../generated/rten.rs"), {
    Model by ModelArgs requires graph {
        schema_version: i32 = 0; graph: Graph<'static>; metadata: Option<Metadata<'static>>;
    }
    Metadata by MetadataArgs {
        onnx_hash: Text; description: Text; license: Text; commit: Text; code_repository: Text;
        model_repository: Text; run_id: Text; run_url: Text;
    }
    Graph by GraphArgs {
        nodes: Tables<Node<'static>>; inputs: Numbers<u32>; outputs: Numbers<u32>;
        captures: Numbers<u32>;
    }
    Node by NodeArgs { name: Text; data_type: NodeKind = NodeKind(0); data: AnyTable; }
    OperatorNode by OperatorNodeArgs {
        type_: OperatorType = OperatorType(0); attrs_type: OperatorAttrs = OperatorAttrs(0);
        attrs: AnyTable; inputs: Numbers<i32>; outputs: Numbers<i32>;
    }
    ConstantNode by ConstantNodeArgs requires shape {
        shape: flatbuffers::Vector<'static, u32>; data_type: ConstantData = ConstantData(0);
        data: AnyTable; dtype: Option<ConstantDataType>; data_offset: Option<u64>;
    }
    ValueNode by ValueNodeArgs { shape: Tables<Dim<'static>>; dtype: Option<DataType>; }
    Dim by DimArgs { value: u32 = 0; name: Text; }
    FloatData by FloatDataArgs requires data { data: flatbuffers::Vector<'static, f32>; }
    Int32Data by Int32DataArgs requires data { data: flatbuffers::Vector<'static, i32>; }
    Int8Data by Int8DataArgs requires data { data: flatbuffers::Vector<'static, i8>; }
    UInt8Data by UInt8DataArgs requires data { data: flatbuffers::Vector<'static, u8>; }
    IntScalar by IntScalarArgs { value: i32 = 0; }
    FloatScalar by FloatScalarArgs { value: f32 = 0.0; }
    ArgMaxAttrs by ArgMaxAttrsArgs { axis: i32 = 0; keep_dims: bool = false; }
    AttentionAttrs by AttentionAttrsArgs {
        is_causal: bool = false; q_num_heads: Option<u32>; kv_num_heads: Option<u32>;
        scale: Option<f32>; softcap: f32 = 0.0;
    }
    AveragePoolAttrs by AveragePoolAttrsArgs requires kernel_size {
        kernel_size: flatbuffers::Vector<'static, u32>; auto_pad: AutoPad = AutoPad(0);
        pads: Numbers<u32>; strides: Numbers<u32>; count_include_pad: bool = false;
        ceil_mode: bool = false;
    }
    BatchNormalizationAttrs by BatchNormalizationAttrsArgs { epsilon: f32 = 0.0; }
    CastAttrs by CastAttrsArgs { to: DataType = DataType(0); }
    CastLikeAttrs by CastLikeAttrsArgs {}
    ConcatAttrs by ConcatAttrsArgs { axis: i32 = 0; }
    ConcatFromSequenceAttrs by ConcatFromSequenceAttrsArgs {
        axis: i32 = 0; new_axis: bool = false;
    }
    ConstantOfShapeAttrs by ConstantOfShapeAttrsArgs requires value {
        value_type: Scalar = Scalar(0); value: flatbuffers::Table<'static>;
    }
    ConvAttrs by ConvAttrsArgs {
        auto_pad: AutoPad = AutoPad(0); pads: Numbers<u32>; groups: u32 = 0; strides: Numbers<u32>;
        dilations: Numbers<u32>;
    }
    ConvTransposeAttrs by ConvTransposeAttrsArgs {
        strides: Numbers<u32>; auto_pad: AutoPad = AutoPad(1); pads: Numbers<u32>; groups: u32 = 1;
        output_padding: Numbers<u32>; dilations: Numbers<u32>;
    }
    CumSumAttrs by CumSumAttrsArgs { exclusive: bool = false; reverse: bool = false; }
    DFTAttrs by DFTAttrsArgs { inverse: bool = false; onesided: bool = false; }
    DepthToSpaceAttrs by DepthToSpaceAttrsArgs {
        mode: DepthToSpaceMode = DepthToSpaceMode(0); block_size: u32 = 0;
    }
    DequantizeLinearAttrs by DequantizeLinearAttrsArgs { axis: i32 = 0; }
    DropoutAttrs by DropoutAttrsArgs { seed: Option<i32>; }
    EinsumAttrs by EinsumAttrsArgs { equation: Text; }
    EluAttrs by EluAttrsArgs { alpha: f32 = 0.0; }
    EyeLikeAttrs by EyeLikeAttrsArgs { dtype: Option<DataType>; k: i32 = 0; }
    FlattenAttrs by FlattenAttrsArgs { axis: i32 = 0; }
    GRUAttrs by GRUAttrsArgs {
        direction: RNNDirection = RNNDirection(0); hidden_size: u32 = 0;
        linear_before_reset: bool = false;
    }
    GatherAttrs by GatherAttrsArgs { axis: i32 = 0; }
    GatherNDAttrs by GatherNDAttrsArgs { batch_dims: i32 = 0; }
    GeluAttrs by GeluAttrsArgs { approximate: GeluApproximation = GeluApproximation(0); }
    GemmAttrs by GemmAttrsArgs {
        alpha: f32 = 0.0; beta: f32 = 0.0; transpose_a: bool = false; transpose_b: bool = false;
    }
    GridSampleAttrs by GridSampleAttrsArgs { align_corners: bool = false; }
    HardSigmoidAttrs by HardSigmoidAttrsArgs { alpha: f32 = 0.0; beta: f32 = 0.0; }
    IfAttrs by IfAttrsArgs {
        then_branch: Option<Graph<'static>>; else_branch: Option<Graph<'static>>;
    }
    IsInfAttrs by IsInfAttrsArgs {}
    LSTMAttrs by LSTMAttrsArgs { direction: RNNDirection = RNNDirection(0); hidden_size: u32 = 0; }
    LayerNormalizationAttrs by LayerNormalizationAttrsArgs { axis: i32 = 0; epsilon: f32 = 0.0; }
    LeakyReluAttrs by LeakyReluAttrsArgs { alpha: f32 = 0.0; }
    LoopAttrs by LoopAttrsArgs { body: Option<Graph<'static>>; }
    LpNormalizationAttrs by LpNormalizationAttrsArgs { axis: i32 = -1; p: u32 = 2; }
    MaxPoolAttrs by MaxPoolAttrsArgs requires kernel_size {
        kernel_size: flatbuffers::Vector<'static, u32>; auto_pad: AutoPad = AutoPad(0);
        pads: Numbers<u32>; strides: Numbers<u32>; ceil_mode: bool = false;
    }
    ModAttrs by ModAttrsArgs { fmod: bool = false; }
    MultinomialAttrs by MultinomialAttrsArgs { sample_size: i32 = 0; seed: Option<f32>; }
    NonMaxSuppressionAttrs by NonMaxSuppressionAttrsArgs {
        box_order: NMSBoxOrder = NMSBoxOrder(0);
    }
    OneHotAttrs by OneHotAttrsArgs { axis: i32 = 0; }
    PadAttrs by PadAttrsArgs { mode: PadMode = PadMode(0); }
    QuantizeLinearAttrs by QuantizeLinearAttrsArgs {
        axis: i32 = 0; output_dtype: Option<DataType>;
    }
    RandomNormalAttrs by RandomNormalAttrsArgs {
        mean: f32 = 0.0; scale: f32 = 0.0; seed: Option<f32>; shape: Numbers<u32>;
    }
    RandomNormalLikeAttrs by RandomNormalLikeAttrsArgs {
        mean: f32 = 0.0; scale: f32 = 0.0; seed: Option<f32>;
    }
    RandomUniformAttrs by RandomUniformAttrsArgs {
        shape: Numbers<u32>; high: f32 = 0.0; low: f32 = 0.0; seed: Option<f32>;
    }
    RandomUniformLikeAttrs by RandomUniformLikeAttrsArgs {
        high: f32 = 0.0; low: f32 = 0.0; seed: Option<f32>;
    }
    ReduceMeanAttrs by ReduceMeanAttrsArgs {
        axes: Numbers<i32>; keep_dims: bool = false; noop_with_empty_axes: bool = false;
    }
    ReshapeAttrs by ReshapeAttrsArgs { allow_zero: bool = false; }
    ResizeAttrs by ResizeAttrsArgs {
        mode: ResizeMode = ResizeMode(0); coord_mode: CoordTransformMode = CoordTransformMode(0);
        nearest_mode: NearestMode = NearestMode(0);
    }
    ReverseSequenceAttrs by ReverseSequenceAttrsArgs { batch_axis: i32 = 1; time_axis: i32 = 0; }
    RotaryEmbeddingAttrs by RotaryEmbeddingAttrsArgs {
        interleaved: bool = false; num_heads: u32 = 0; rotary_embedding_dim: u32 = 0;
    }
    STFTAttrs by STFTAttrsArgs { onesided: bool = true; }
    ScatterElementsAttrs by ScatterElementsAttrsArgs {
        axis: i32 = 0; reduction: ScatterReduction = ScatterReduction(0);
    }
    ScatterNDAttrs by ScatterNDAttrsArgs { reduction: ScatterReduction = ScatterReduction(0); }
    SequenceEmptyAttrs by SequenceEmptyAttrsArgs { dtype: Option<DataType>; }
    ShapeAttrs by ShapeAttrsArgs { start: Option<i32>; end: Option<i32>; }
    SoftmaxAttrs by SoftmaxAttrsArgs { axis: i32 = 0; }
    SplitAttrs by SplitAttrsArgs { axis: i32 = 0; num_outputs: Option<i32>; }
    SplitToSequenceAttrs by SplitToSequenceAttrsArgs { axis: i32 = 0; keep_dims: bool = true; }
    TopKAttrs by TopKAttrsArgs { axis: i32 = 0; largest: bool = false; sorted: bool = false; }
    TransposeAttrs by TransposeAttrsArgs { perm: Numbers<u32>; }
    TriluAttrs by TriluAttrsArgs { upper: bool = false; }
    UpsampleAttrs by UpsampleAttrsArgs { mode: ResizeMode = ResizeMode(0); }
}}

/// Checks that generated and typed enumerations have the same names and numbers.
macro_rules! enums {
    ($($name:ident)*) => {
        #[test]
        fn enumerators_have_their_numbers() {
            $(
                let generated: Vec<_> = stored::$name::ENUM_VALUES
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
    let generated = stored::OperatorAttrs::ENUM_VALUES.iter().skip(1);
    let generated: Vec<_> = generated.map(|tag| (tag.0, tag.variant_name().unwrap())).collect();
    let typed = AttributesType::ALL.iter();
    let typed: Vec<_> = typed.map(|table| (table.code(), table.name().unwrap())).collect();
    assert_eq!(generated, typed);
    assert_eq!(typed.len(), 62);

    macro_rules! names {
        ($union:ident) => {
            stored::$union::ENUM_VALUES.iter().map(|tag| tag.variant_name().unwrap()).collect()
        };
    }
    let names: [Vec<&str>; 3] = [names!(Scalar), names!(NodeKind), names!(ConstantData)];
    assert_eq!(names[0], ["NONE", "IntScalar", "FloatScalar"]);
    assert_eq!(names[1], ["NONE", "OperatorNode", "ConstantNode", "ValueNode"]);
    assert_eq!(names[2], ["NONE", "FloatData", "Int32Data", "Int8Data", "UInt8Data"]);
}

#[test]
fn file_identifier_and_extension_are_declared() {
    assert_eq!(stored::MODEL_IDENTIFIER, "RTEN");
    assert_eq!(stored::MODEL_EXTENSION, "rten");
}
