//! The attributes of operators, one struct for each table of the format.
//!
//! `Default` gives what an absent field means in a file. That is often not what the ONNX operator
//! takes for an attribute that is left out: in [`GemmAttrs`] both factors are 0, not 1.

use bytes::Bytes;
use flatbuffers::{UnionWIPOffset, VOffsetT, WIPOffset};
#[cfg(test)]
use proptest::strategy::{BoxedStrategy, Just, Strategy as _, Union};

#[cfg(test)]
use crate::model::tests::any::{Any as _, set};
use crate::{
    AttributeValue, AttributesType, AutoPad, CoordTransformMode, DataType, DepthToSpaceMode,
    GeluApproximation, Graph, GraphFault, NMSBoxOrder, NearestMode, PadMode, RNNDirection, Release,
    ResizeMode, Result, ScatterReduction,
    generated::rten as stored,
    model::{
        builder::{Builder, Size},
        field::Field,
        release::since,
        visit::{Checked, Place, Visit, missing, unknown},
    },
};
use flat_tables::{Fields, UnknownTable};

/// Declares everything about attribute tables but their numbers. An entry has the generated getter
/// and arguments that it is stored by; a field has its default value, and a release where it is
/// newer than its table.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $name:ident from $stored_as:ident:
        struct $table:ident for $args:ident $body:tt
    )*) => {
        /// The attributes of an operator.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Attributes {
            $(
                #[doc = concat!("See [`", stringify!($table), "`].")]
                $name($table),
            )*
            /// A table that this crate does not know, kept as it is.
            Unknown(UnknownTable),
        }

        impl Attributes {
            /// Returns which table they are stored in.
            #[must_use]
            pub const fn attributes_type(&self) -> AttributesType {
                match self {
                    $( Self::$name(_) => AttributesType::$name, )*
                    Self::Unknown(table) => AttributesType::Unknown(table.tag()),
                }
            }

            /// Returns every field with its name, in the order of the format; none for an unknown
            /// table.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, AttributeValue<'_>)> {
                match self {
                    $( Self::$name(table) => table.fields(), )*
                    Self::Unknown(_) => Vec::new(),
                }
            }

            /// Sets a field to what a text says: `true`, `-1`, `0.5`, `1,2`, the name of an
            /// enumerator, `none` for what may be absent.
            ///
            /// # Errors
            ///
            /// [`GraphFault::NoAttribute`] where it has no such field, [`GraphFault::AttributeText`]
            /// where the text is not one of its values.
            pub fn set(&mut self, field: &str, text: &str) -> Result<(), GraphFault> {
                let found = match self {
                    $( Self::$name(table) => table.set(field, text), )*
                    Self::Unknown(_) => Ok(false),
                };
                let (found, name) = (found, || field.to_owned());
                let is_known = found.map_err(|expected| GraphFault::AttributeText {
                    name: name(),
                    found: text.to_owned(),
                    expected,
                })?;
                if is_known {
                    return Ok(());
                }
                let known: Vec<_> = self.fields().into_iter().map(|(name, _)| name).collect();
                Err(GraphFault::NoAttribute { name: name(), known: known.join(", ") })
            }

            /// Returns the first release that reads the table and all fields that are set to
            /// something else than their default; `None` where it is not known.
            ///
            /// Subgraphs do not count.
            #[must_use]
            pub fn since(&self) -> Option<Release> {
                let oldest = self.attributes_type().since()?;
                match self {
                    $( Self::$name(table) => table.newest(oldest), )*
                    Self::Unknown(_) => None,
                }
            }

            /// Checks the attributes of an operator, to which a reference of this place leads.
            pub(crate) fn check<'a>(
                tag: u8,
                reference: usize,
                walk: &mut impl Visit<'a>,
            ) -> Checked {
                match AttributesType::from_code(tag) {
                    $( Some(AttributesType::$name) => {
                        let table = walk.checker().enter(reference)?;
                        $table::check(table, walk)?;
                        walk.checker().leave();
                        Ok(())
                    } )*
                    _ => walk.unknown("operator attributes", tag, reference),
                }
            }

            /// Reads the attributes of an operator in proved model data.
            pub(crate) fn parse(
                operator: &stored::OperatorNode<'_>,
                model: &Bytes,
            ) -> Result<Option<Self>> {
                Ok(match AttributesType::from_code(operator.attrs_type().0) {
                    $( Some(AttributesType::$name) => match operator.$stored_as() {
                        Some(table) => Some(Self::$name($table::parse(&table, model)?)),
                        None => None,
                    }, )*
                    None => None,
                    Some(AttributesType::Unknown(tag)) => {
                        let field = stored::OperatorNode::VT_ATTRS;
                        unknown("operator attributes", tag, operator._tab, field, model)?
                            .map(Self::Unknown)
                    }
                })
            }

            pub(crate) fn build(
                &self,
                builder: &mut Builder,
            ) -> Result<WIPOffset<UnionWIPOffset>> {
                match self {
                    $( Self::$name(table) => table.build(builder), )*
                    Self::Unknown(table) => builder.unknown(table),
                }
            }
        }

        #[cfg(test)]
        impl Attributes {
            /// Returns the tables with nothing set.
            pub(crate) fn defaults() -> Vec<Self> {
                vec![$( Self::$name($table::default()), )*]
            }

            /// Returns any of the tables with anything in it.
            pub(crate) fn any() -> BoxedStrategy<Self> {
                Union::new([$( $table::any().prop_map(Self::$name).boxed(), )*]).boxed()
            }
        }

        $(
            table! {
                #[doc = concat!("Attributes of `", stringify!($name), "`.")]
                $(#[$doc])*
                struct $table for $args $body
            }

            impl From<$table> for Attributes {
                fn from(table: $table) -> Self {
                    Self::$name(table)
                }
            }
        )*
    };
}

/// Declares one struct, except where it is written by hand.
macro_rules! table {
    ($(#[$doc:meta])* struct $table:ident for $args:ident { by hand }) => {};
    ($(#[$doc:meta])* struct $table:ident for $args:ident {
        $(
            $(#[$field_doc:meta])*
            $field:ident: $type:ty = $default:expr $(, since $since:tt)?;
        )*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $table {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        #[allow(unused_variables, unused_mut, reason = "some tables are empty")]
        impl $table {
            fn check<'a>(table: Fields<'_>, walk: &mut impl Visit<'a>) -> Checked {
                let mut field = FIRST_FIELD;
                $(
                    let place = walk.checker().field(table, field)?;
                    let place = Place { name: stringify!($field), table, place };
                    <$type as Field<'_>>::check(place, walk)?;
                    field = field.saturating_add(2);
                )*
                walk.look_beyond(table, field);
                Ok(())
            }

            fn parse(table: &stored::$table<'_>, model: &Bytes) -> Result<Self> {
                Ok(Self { $( $field: Field::parse(table.$field(), model)?, )* })
            }

            fn build(&self, builder: &mut Builder) -> Result<WIPOffset<UnionWIPOffset>> {
                let args = stored::$args { $( $field: self.$field.build(builder)?, )* };
                Ok(stored::$table::create(builder.fbb(), &args).as_union_value())
            }

            fn fields(&self) -> Vec<(&'static str, AttributeValue<'_>)> {
                vec![$( (stringify!($field), self.$field.value()), )*]
            }

            /// Sets a field and tells whether there is one; what it can be where the text is none
            /// of that.
            fn set(&mut self, field: &str, text: &str) -> std::result::Result<bool, String> {
                $(
                    if field == stringify!($field) {
                        self.$field = Field::from_text(text)?;
                        return Ok(true);
                    }
                )*
                Ok(false)
            }

            /// Returns the first release that reads everything in a table of this age.
            fn newest(&self, table: Release) -> Option<Release> {
                let default = Self::default();
                let mut newest = table;
                $(
                    if self.$field != default.$field {
                        newest = newest.max(self.$field.since()?);
                        $( newest = newest.max(since!($since)); )?
                    }
                )*
                Some(newest)
            }

            #[cfg(test)]
            fn any() -> BoxedStrategy<Self> {
                let any = Just(Self::default()).boxed();
                $( let any = set!(any, $field: $type); )*
                any
            }
        }
    };
}

tables! {
    /// `ArgMin` has the same.
    ArgMax from attrs_as_arg_max_attrs: struct ArgMaxAttrs for ArgMaxAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// Tells whether reduced dimensions stay, with one element.
        keep_dims: bool = false;
    }
    AveragePool from attrs_as_average_pool_attrs: struct AveragePoolAttrs for AveragePoolAttrsArgs {
        /// Elements of the window along each spatial dimension.
        kernel_size: Vec<u32> = Vec::new();
        /// Where the padding comes from.
        auto_pad: AutoPad = AutoPad::Same;
        /// Padding in elements: first that before each spatial dimension, then that behind each.
        /// Where absent, zeros.
        pads: Option<Vec<u32>> = None;
        /// Steps of the window in elements, one per spatial dimension. Where absent, ones.
        strides: Option<Vec<u32>> = None;
        /// Tells whether padding counts in the average.
        count_include_pad: bool = false, since (4, 0);
        /// Tells whether a last window that is not full gives an element.
        ceil_mode: bool = false, since (22, 0);
    }
    /// `InstanceNormalization` has the same.
    BatchNormalization from attrs_as_batch_normalization_attrs:
    struct BatchNormalizationAttrs for BatchNormalizationAttrsArgs {
        /// What is added to the variance.
        epsilon: f32 = 0.0;
    }
    Cast from attrs_as_cast_attrs: struct CastAttrs for CastAttrsArgs {
        /// The element type of the output.
        to: DataType = DataType::Int32;
    }
    Concat from attrs_as_concat_attrs: struct ConcatAttrs for ConcatAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    ConstantOfShape from attrs_as_constant_of_shape_attrs:
    struct ConstantOfShapeAttrs for ConstantOfShapeAttrsArgs { by hand }
    /// `ConvInteger` has the same.
    Conv from attrs_as_conv_attrs: struct ConvAttrs for ConvAttrsArgs {
        /// Where the padding comes from.
        auto_pad: AutoPad = AutoPad::Same;
        /// Padding in elements: first that before each spatial dimension, then that behind each.
        /// Where absent, zeros.
        pads: Option<Vec<u32>> = None;
        /// Into how many groups the channels are divided.
        groups: u32 = 0;
        /// Steps of the window in elements, one per spatial dimension. Where absent, ones.
        strides: Option<Vec<u32>> = None;
        /// Distance between elements under the window, one per spatial dimension. Where absent,
        /// ones.
        dilations: Option<Vec<u32>> = None;
    }
    ConvTranspose from attrs_as_conv_transpose_attrs:
    struct ConvTransposeAttrs for ConvTransposeAttrsArgs {
        /// Steps of the window in elements, one per spatial dimension. Where absent, ones.
        strides: Option<Vec<u32>> = None;
        /// Where the padding comes from.
        auto_pad: AutoPad = AutoPad::NotSet, since (9, 0);
        /// Padding in elements: first that before each spatial dimension, then that behind each.
        /// Where absent, zeros.
        pads: Option<Vec<u32>> = None, since (9, 0);
        /// Into how many groups the channels are divided.
        groups: u32 = 1, since (22, 0);
        /// Elements added behind each spatial dimension of the output. Where absent, zeros.
        output_padding: Option<Vec<u32>> = None, since (22, 0);
        /// Distance between elements under the window, one per spatial dimension. Where absent,
        /// ones.
        dilations: Option<Vec<u32>> = None, since (26, 0);
    }
    Flatten from attrs_as_flatten_attrs: struct FlattenAttrs for FlattenAttrsArgs {
        /// The first dimension of the inner part.
        axis: i32 = 0;
    }
    /// `GatherElements` has the same.
    Gather from attrs_as_gather_attrs: struct GatherAttrs for GatherAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    Gemm from attrs_as_gemm_attrs: struct GemmAttrs for GemmAttrsArgs {
        /// Factor of the product.
        alpha: f32 = 0.0;
        /// Factor of the third input.
        beta: f32 = 0.0;
        /// Tells whether the first matrix is transposed.
        transpose_a: bool = false;
        /// Tells whether the second matrix is transposed.
        transpose_b: bool = false;
    }
    GRU from attrs_as_gruattrs: struct GRUAttrs for GRUAttrsArgs {
        /// The way along the sequence.
        direction: RNNDirection = RNNDirection::Forward;
        /// Elements of the hidden state.
        hidden_size: u32 = 0;
        /// Tells whether the reset gate is applied behind the linear transformation.
        linear_before_reset: bool = false;
    }
    LeakyRelu from attrs_as_leaky_relu_attrs: struct LeakyReluAttrs for LeakyReluAttrsArgs {
        /// Slope of negative elements.
        alpha: f32 = 0.0;
    }
    LSTM from attrs_as_lstmattrs: struct LSTMAttrs for LSTMAttrsArgs {
        /// The way along the sequence.
        direction: RNNDirection = RNNDirection::Forward;
        /// Elements of the hidden state.
        hidden_size: u32 = 0;
    }
    MaxPool from attrs_as_max_pool_attrs: struct MaxPoolAttrs for MaxPoolAttrsArgs {
        /// Elements of the window along each spatial dimension.
        kernel_size: Vec<u32> = Vec::new();
        /// Where the padding comes from.
        auto_pad: AutoPad = AutoPad::Same;
        /// Padding in elements: first that before each spatial dimension, then that behind each.
        /// Where absent, zeros.
        pads: Option<Vec<u32>> = None;
        /// Steps of the window in elements, one per spatial dimension. Where absent, ones.
        strides: Option<Vec<u32>> = None;
        /// Tells whether a last window that is not full gives an element.
        ceil_mode: bool = false, since (22, 0);
    }
    /// All operators whose names start with `Reduce` have the same.
    ReduceMean from attrs_as_reduce_mean_attrs: struct ReduceMeanAttrs for ReduceMeanAttrsArgs {
        /// The dimensions to reduce. Where absent, the second input gives them, or all are.
        axes: Option<Vec<i32>> = None;
        /// Tells whether reduced dimensions stay, with one element.
        keep_dims: bool = false;
        /// Tells whether no axes mean that nothing is reduced, and not everything.
        noop_with_empty_axes: bool = false, since (24, 0);
    }
    Reshape from attrs_as_reshape_attrs: struct ReshapeAttrs for ReshapeAttrsArgs {
        /// Tells whether a 0 in the new shape is an empty dimension, and not a copied one.
        allow_zero: bool = false;
    }
    Resize from attrs_as_resize_attrs: struct ResizeAttrs for ResizeAttrsArgs {
        /// How elements are filled in.
        mode: ResizeMode = ResizeMode::Nearest;
        /// How coordinates are mapped.
        coord_mode: CoordTransformMode = CoordTransformMode::HalfPixel;
        /// How coordinates are rounded in mode `Nearest`.
        nearest_mode: NearestMode = NearestMode::Floor;
    }
    Split from attrs_as_split_attrs: struct SplitAttrs for SplitAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// Into how many equal parts to split, where no input gives their sizes.
        num_outputs: Option<i32> = None, since (17, 0);
    }
    /// `LogSoftmax` has the same.
    Softmax from attrs_as_softmax_attrs: struct SoftmaxAttrs for SoftmaxAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    Transpose from attrs_as_transpose_attrs: struct TransposeAttrs for TransposeAttrsArgs {
        /// The dimension of the input that each dimension of the output is. Where absent, all in
        /// reverse.
        perm: Option<Vec<u32>> = None;
    }
    Mod from attrs_as_mod_attrs: struct ModAttrs for ModAttrsArgs {
        /// Tells whether the result has the sign of the dividend.
        fmod: bool = false;
    }
    /// `Scatter` has the same.
    ScatterElements from attrs_as_scatter_elements_attrs:
    struct ScatterElementsAttrs for ScatterElementsAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// How an update and the element that is there are joined.
        reduction: ScatterReduction = ScatterReduction::None;
    }
    OneHot from attrs_as_one_hot_attrs: struct OneHotAttrs for OneHotAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    TopK from attrs_as_top_kattrs: struct TopKAttrs for TopKAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// Tells whether the largest elements are asked for, and not the smallest.
        largest: bool = false;
        /// Tells whether the output is sorted.
        sorted: bool = false;
    }
    HardSigmoid from attrs_as_hard_sigmoid_attrs: struct HardSigmoidAttrs for HardSigmoidAttrsArgs {
        /// Slope.
        alpha: f32 = 0.0;
        /// Offset.
        beta: f32 = 0.0;
    }
    Trilu from attrs_as_trilu_attrs: struct TriluAttrs for TriluAttrsArgs {
        /// Tells whether the upper triangle is kept, and not the lower.
        upper: bool = false;
    }
    ScatterND from attrs_as_scatter_ndattrs: struct ScatterNDAttrs for ScatterNDAttrsArgs {
        /// How an update and the element that is there are joined.
        reduction: ScatterReduction = ScatterReduction::None;
    }
    NonMaxSuppression from attrs_as_non_max_suppression_attrs:
    struct NonMaxSuppressionAttrs for NonMaxSuppressionAttrsArgs {
        /// What the four numbers of a box are.
        box_order: NMSBoxOrder = NMSBoxOrder::TopLeftBottomRight;
    }
    LayerNormalization from attrs_as_layer_normalization_attrs:
    struct LayerNormalizationAttrs for LayerNormalizationAttrsArgs {
        /// The first dimension that is normalised.
        axis: i32 = 0;
        /// What is added to the variance.
        epsilon: f32 = 0.0;
    }
    RandomUniform from attrs_as_random_uniform_attrs:
    struct RandomUniformAttrs for RandomUniformAttrsArgs {
        /// The shape of the output, outermost dimension first.
        shape: Option<Vec<u32>> = None;
        /// Upper bound of the distribution.
        high: f32 = 0.0;
        /// Lower bound of the distribution.
        low: f32 = 0.0;
        /// Start of the random numbers. Where absent, they differ each time.
        seed: Option<f32> = None;
    }
    Elu from attrs_as_elu_attrs: struct EluAttrs for EluAttrsArgs {
        /// Bound of negative elements, with the sign changed.
        alpha: f32 = 0.0;
    }
    RandomUniformLike from attrs_as_random_uniform_like_attrs:
    struct RandomUniformLikeAttrs for RandomUniformLikeAttrsArgs {
        /// Upper bound of the distribution.
        high: f32 = 0.0;
        /// Lower bound of the distribution.
        low: f32 = 0.0;
        /// Start of the random numbers. Where absent, they differ each time.
        seed: Option<f32> = None;
    }
    RandomNormal from attrs_as_random_normal_attrs:
    struct RandomNormalAttrs for RandomNormalAttrsArgs {
        /// Mean of the distribution.
        mean: f32 = 0.0;
        /// Standard deviation.
        scale: f32 = 0.0;
        /// Start of the random numbers. Where absent, they differ each time.
        seed: Option<f32> = None;
        /// The shape of the output, outermost dimension first.
        shape: Option<Vec<u32>> = None;
    }
    RandomNormalLike from attrs_as_random_normal_like_attrs:
    struct RandomNormalLikeAttrs for RandomNormalLikeAttrsArgs {
        /// Mean of the distribution.
        mean: f32 = 0.0;
        /// Standard deviation.
        scale: f32 = 0.0;
        /// Start of the random numbers. Where absent, they differ each time.
        seed: Option<f32> = None;
    }
    GatherND from attrs_as_gather_ndattrs: struct GatherNDAttrs for GatherNDAttrsArgs {
        /// Leading dimensions that data and indices share.
        batch_dims: i32 = 0;
    }
    Gelu from attrs_as_gelu_attrs: struct GeluAttrs for GeluAttrsArgs {
        /// The formula.
        approximate: GeluApproximation = GeluApproximation::None, since (19, 0);
    }
    Einsum from attrs_as_einsum_attrs: struct EinsumAttrs for EinsumAttrsArgs {
        /// The equation in the notation of Einstein. Where absent, empty.
        equation: Option<String> = None;
    }
    If from attrs_as_if_attrs: struct IfAttrs for IfAttrsArgs {
        /// What runs where the condition holds. Needed, although a file may leave it out.
        then_branch: Option<Box<Graph>> = None;
        /// What runs where it does not. Needed, although a file may leave it out.
        else_branch: Option<Box<Graph>> = None;
    }
    Pad from attrs_as_pad_attrs: struct PadAttrs for PadAttrsArgs {
        /// What the padding is filled with.
        mode: PadMode = PadMode::Constant;
    }
    DequantizeLinear from attrs_as_dequantize_linear_attrs:
    struct DequantizeLinearAttrs for DequantizeLinearAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
    }
    QuantizeLinear from attrs_as_quantize_linear_attrs:
    struct QuantizeLinearAttrs for QuantizeLinearAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// The element type of the output. Where absent, that of the zero point.
        output_dtype: Option<DataType> = None;
    }
    DepthToSpace from attrs_as_depth_to_space_attrs:
    struct DepthToSpaceAttrs for DepthToSpaceAttrsArgs {
        /// The order of the channels.
        mode: DepthToSpaceMode = DepthToSpaceMode::DCR;
        /// Elements along each side of a block.
        block_size: u32 = 0;
    }
    /// There are none, but the empty table is needed.
    CastLike from attrs_as_cast_like_attrs: struct CastLikeAttrs for CastLikeAttrsArgs {}
    Shape from attrs_as_shape_attrs: struct ShapeAttrs for ShapeAttrsArgs {
        /// The first dimension, counted from the end where negative. Where absent, 0.
        start: Option<i32> = None;
        /// The first dimension that is left out. Where absent, none is.
        end: Option<i32> = None;
    }
    Dropout from attrs_as_dropout_attrs: struct DropoutAttrs for DropoutAttrsArgs {
        /// Start of the random numbers. Where absent, they differ each time.
        seed: Option<i32> = None;
    }
    EyeLike from attrs_as_eye_like_attrs: struct EyeLikeAttrs for EyeLikeAttrsArgs {
        /// The element type of the output. Where absent, that of the input.
        dtype: Option<DataType> = None;
        /// The diagonal that holds ones: above the main one where positive.
        k: i32 = 0;
    }
    /// There are none, but the empty table is needed.
    IsInf from attrs_as_is_inf_attrs: struct IsInfAttrs for IsInfAttrsArgs {}
    Loop from attrs_as_loop_attrs: struct LoopAttrs for LoopAttrsArgs {
        /// What runs in each iteration. Needed, although a file may leave it out.
        body: Option<Box<Graph>> = None;
    }
    SequenceEmpty from attrs_as_sequence_empty_attrs:
    struct SequenceEmptyAttrs for SequenceEmptyAttrsArgs {
        /// The element type of what goes into the sequence.
        dtype: Option<DataType> = None;
    }
    ConcatFromSequence from attrs_as_concat_from_sequence_attrs:
    struct ConcatFromSequenceAttrs for ConcatFromSequenceAttrsArgs {
        /// The dimension along which tensors are joined.
        axis: i32 = 0;
        /// Tells whether the tensors are stacked along a new dimension.
        new_axis: bool = false;
    }
    SplitToSequence from attrs_as_split_to_sequence_attrs:
    struct SplitToSequenceAttrs for SplitToSequenceAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = 0;
        /// Tells whether parts of one element keep the dimension.
        keep_dims: bool = true;
    }
    GridSample from attrs_as_grid_sample_attrs: struct GridSampleAttrs for GridSampleAttrsArgs {
        /// Tells whether −1 and 1 are the centres of the outer elements, and not their edges.
        align_corners: bool = false;
    }
    STFT from attrs_as_stftattrs: struct STFTAttrs for STFTAttrsArgs {
        /// Tells whether only the half of the spectrum that is not redundant is made.
        onesided: bool = true;
    }
    Multinomial from attrs_as_multinomial_attrs: struct MultinomialAttrs for MultinomialAttrsArgs {
        /// Samples to draw. A negative number counts as 0.
        sample_size: i32 = 0;
        /// Start of the random numbers. Where absent, they differ each time.
        seed: Option<f32> = None;
    }
    ReverseSequence from attrs_as_reverse_sequence_attrs:
    struct ReverseSequenceAttrs for ReverseSequenceAttrsArgs {
        /// The dimension of the batch.
        batch_axis: i32 = 1;
        /// The dimension of time.
        time_axis: i32 = 0;
    }
    DFT from attrs_as_dftattrs: struct DFTAttrs for DFTAttrsArgs {
        /// Tells whether the inverse transformation is made.
        inverse: bool = false;
        /// Tells whether only the half of the spectrum that is not redundant is made.
        onesided: bool = false;
    }
    Upsample from attrs_as_upsample_attrs: struct UpsampleAttrs for UpsampleAttrsArgs {
        /// How elements are filled in.
        mode: ResizeMode = ResizeMode::Nearest;
    }
    RotaryEmbedding from attrs_as_rotary_embedding_attrs:
    struct RotaryEmbeddingAttrs for RotaryEmbeddingAttrsArgs {
        /// Tells whether the two halves of a rotation alternate.
        interleaved: bool = false;
        /// Heads, where the input has three dimensions.
        num_heads: u32 = 0;
        /// Elements of each head that are rotated; 0 for all.
        rotary_embedding_dim: u32 = 0;
    }
    Attention from attrs_as_attention_attrs: struct AttentionAttrs for AttentionAttrsArgs {
        /// Tells whether positions see only those before them.
        is_causal: bool = false;
        /// Heads of the queries, where the input has three dimensions.
        q_num_heads: Option<u32> = None;
        /// Heads of keys and values, where the input has three dimensions.
        kv_num_heads: Option<u32> = None;
        /// Factor of the scores. Where absent, one over the root of the head size.
        scale: Option<f32> = None;
        /// Bound of the scores; 0 for none.
        softcap: f32 = 0.0;
    }
    CumSum from attrs_as_cum_sum_attrs: struct CumSumAttrs for CumSumAttrsArgs {
        /// Tells whether a sum leaves out the element at its own place.
        exclusive: bool = false;
        /// Tells whether sums run from the end.
        reverse: bool = false;
    }
    LpNormalization from attrs_as_lp_normalization_attrs:
    struct LpNormalizationAttrs for LpNormalizationAttrsArgs {
        /// The dimension, counted from the end where negative.
        axis: i32 = -1;
        /// The norm, 1 or 2.
        p: u32 = 2;
    }
}

/// Attributes of `ConstantOfShape`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConstantOfShapeAttrs {
    /// The element that is repeated.
    pub value: Scalar,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scalar {
    /// A whole number.
    Int(i32),
    /// A number of 32 bits.
    Float(f32),
    /// A table that this crate does not know, kept as it is.
    Unknown(UnknownTable),
}

impl Default for Scalar {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl ConstantOfShapeAttrs {
    fn check<'a>(table: Fields<'_>, walk: &mut impl Visit<'a>) -> Checked {
        type Attrs = stored::ConstantOfShapeAttrs<'static>;
        let value = walk.checker().union(table, Attrs::VT_VALUE_TYPE, Attrs::VT_VALUE)?;
        walk.look_beyond(table, Attrs::VT_VALUE.saturating_add(2));
        let (tag, reference) = value.ok_or_else(|| missing("value", table))?;
        if !matches!(stored::Scalar(tag), stored::Scalar::IntScalar | stored::Scalar::FloatScalar) {
            return walk.unknown("scalar", tag, reference);
        }
        let scalar = walk.checker().enter(reference)?;
        // Both tables have one field of one id.
        if let Some(number) = walk.checker().field(scalar, stored::IntScalar::VT_VALUE)? {
            walk.checker().read::<4>(number)?;
        }
        walk.look_beyond(scalar, stored::IntScalar::VT_VALUE.saturating_add(2));
        walk.checker().leave();
        Ok(())
    }

    fn parse(table: &stored::ConstantOfShapeAttrs<'_>, model: &Bytes) -> Result<Self> {
        let value = match table.value_type() {
            stored::Scalar::IntScalar => {
                Scalar::Int(table.value_as_int_scalar().map_or(0, |scalar| scalar.value()))
            }
            stored::Scalar::FloatScalar => {
                Scalar::Float(table.value_as_float_scalar().map_or(0.0, |scalar| scalar.value()))
            }
            // The verifier asks for a value, but lets it have no type. RTen 0.27.0 takes 0.
            stored::Scalar::NONE => Scalar::default(),
            stored::Scalar(tag) => {
                let field = stored::ConstantOfShapeAttrs::VT_VALUE;
                unknown("scalar", tag, table._tab, field, model)?
                    .map_or_else(Scalar::default, Scalar::Unknown)
            }
        };
        Ok(Self { value })
    }

    fn build(&self, builder: &mut Builder) -> Result<WIPOffset<UnionWIPOffset>> {
        let (value_type, value) = match &self.value {
            &Scalar::Int(value) => {
                let args = stored::IntScalarArgs { value };
                let table = stored::IntScalar::create(builder.fbb(), &args);
                (stored::Scalar::IntScalar, table.as_union_value())
            }
            &Scalar::Float(value) => {
                let args = stored::FloatScalarArgs { value };
                let table = stored::FloatScalar::create(builder.fbb(), &args);
                (stored::Scalar::FloatScalar, table.as_union_value())
            }
            Scalar::Unknown(table) => (stored::Scalar(table.tag()), builder.unknown(table)?),
        };
        let args = stored::ConstantOfShapeAttrsArgs { value_type, value: Some(value) };
        Ok(stored::ConstantOfShapeAttrs::create(builder.fbb(), &args).as_union_value())
    }

    fn fields(&self) -> Vec<(&'static str, AttributeValue<'_>)> {
        let value = match &self.value {
            Scalar::Int(value) => AttributeValue::Int((*value).into()),
            Scalar::Float(value) => AttributeValue::Float(*value),
            Scalar::Unknown(table) => AttributeValue::Unknown(table),
        };
        vec![("value", value)]
    }

    fn set(&mut self, field: &str, text: &str) -> std::result::Result<bool, String> {
        if field != "value" {
            return Ok(false);
        }
        match &mut self.value {
            Scalar::Int(value) => *value = Field::from_text(text)?,
            Scalar::Float(value) => *value = Field::from_text(text)?,
            Scalar::Unknown(_) => return Err("a table that is not known".to_owned()),
        }
        Ok(true)
    }

    fn newest(&self, table: Release) -> Option<Release> {
        match self.value {
            Scalar::Int(_) | Scalar::Float(_) => Some(table),
            Scalar::Unknown(_) => None,
        }
    }

    #[cfg(test)]
    fn any() -> BoxedStrategy<Self> {
        let int = i32::any().prop_map(Scalar::Int).boxed();
        let float = f32::any().prop_map(Scalar::Float).boxed();
        Union::new([int, float]).prop_map(|value| Self { value }).boxed()
    }
}

impl Attributes {
    pub(crate) fn measure(&self, size: &mut Size) -> Result<()> {
        size.table();
        if let Self::Unknown(table) = self {
            size.unknown(table);
        }
        for (_, value) in self.fields() {
            match value {
                AttributeValue::Ints(numbers) => size.words(numbers.len()),
                AttributeValue::Uints(numbers) => size.words(numbers.len()),
                AttributeValue::Text(text) => size.bytes(text.len() as u64),
                AttributeValue::Graph(graph) => size.subgraph(|size| graph.measure(size))?,
                AttributeValue::Unknown(table) => size.unknown(table),
                _ => size.table(),
            }
        }
        Ok(())
    }

    /// Returns the graphs in them with the names of the fields, in the order of the format.
    pub fn subgraphs(&self) -> impl DoubleEndedIterator<Item = (&'static str, &Graph)> {
        let branches = match self {
            Self::If(table) => [
                ("then_branch", table.then_branch.as_deref()),
                ("else_branch", table.else_branch.as_deref()),
            ],
            Self::Loop(table) => [("body", table.body.as_deref()), ("", None)],
            _ => [("", None); 2],
        };
        branches.into_iter().filter_map(|(branch, graph)| Some((branch, graph?)))
    }

    /// Like [`subgraphs`](Self::subgraphs), but for graphs that are to be changed.
    pub fn subgraphs_mut(&mut self) -> impl DoubleEndedIterator<Item = (&'static str, &mut Graph)> {
        let branches = match self {
            Self::If(table) => [
                ("then_branch", table.then_branch.as_deref_mut()),
                ("else_branch", table.else_branch.as_deref_mut()),
            ],
            Self::Loop(table) => [("body", table.body.as_deref_mut()), ("", None)],
            _ => [("", None), ("", None)],
        };
        branches.into_iter().filter_map(|(branch, graph)| Some((branch, graph?)))
    }
}

/// Where the list of fields of a table has its entries, each of 2 bytes, behind two lengths.
const FIRST_FIELD: VOffsetT = 4;

#[cfg(test)]
mod tests {
    use flatbuffers::FlatBufferBuilder;
    use proptest::{prop_assert_eq, proptest};
    use tensor_core::Limits;

    use super::*;
    use crate::{Error, Model, Node, NodeKind, Operator, OperatorType};

    fn model_with(attributes: Option<Attributes>) -> Model {
        let operator_type = OperatorType::Add;
        let operator = Operator { operator_type, attributes, inputs: vec![], outputs: vec![] };
        let nodes = vec![Node { name: None, kind: operator.into() }];
        Model { graph: Graph { nodes, ..Graph::default() }, metadata: None }
    }

    fn attributes_of(mut model: Model) -> Option<Attributes> {
        match model.graph.nodes.remove(0).kind {
            NodeKind::Operator(operator) => operator.attributes,
            kind => panic!("{kind:?}"),
        }
    }

    fn written_and_read(attributes: &Attributes) -> Attributes {
        let bytes = model_with(Some(attributes.clone())).to_bytes().unwrap();
        attributes_of(Model::parse(bytes, &Limits::default()).unwrap()).unwrap()
    }

    /// Builds model data of one operator whose attributes are what `build` makes.
    fn model_data(
        tag: u8,
        build: impl FnOnce(&mut FlatBufferBuilder<'static>) -> WIPOffset<UnionWIPOffset>,
    ) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let attrs = build(&mut builder);
        let args = stored::OperatorNodeArgs {
            attrs_type: stored::OperatorAttrs(tag),
            attrs: Some(attrs),
            ..Default::default()
        };
        let operator = stored::OperatorNode::create(&mut builder, &args).as_union_value();
        let args = stored::NodeArgs {
            data_type: stored::NodeKind::OperatorNode,
            data: Some(operator),
            name: None,
        };
        let node = stored::Node::create(&mut builder, &args);
        let nodes = Some(builder.create_vector(&[node]));
        let args = stored::GraphArgs { nodes, ..Default::default() };
        let graph = Some(stored::Graph::create(&mut builder, &args));
        let args = stored::ModelArgs { schema_version: 1, graph, metadata: None };
        let model = stored::Model::create(&mut builder, &args);
        builder.finish(model, None);
        builder.finished_data().to_vec()
    }

    /// A table of a kind that no release has: a number of 8 bytes, and a text.
    fn later_table(builder: &mut FlatBufferBuilder<'static>) -> WIPOffset<UnionWIPOffset> {
        let text = builder.create_string("later");
        let table = builder.start_table();
        builder.push_slot_always::<u64>(4, 0x1122_3344_5566_7788);
        builder.push_slot_always(6, text);
        let table = builder.end_table(table);
        WIPOffset::new(table.value())
    }

    proptest! {
        #[test]
        fn tables_read_back(attributes in Attributes::any()) {
            prop_assert_eq!(written_and_read(&attributes), attributes);
        }
    }

    #[test]
    fn every_table_reads_back() {
        let defaults = Attributes::defaults();
        assert_eq!(defaults.len(), AttributesType::ALL.len());
        for attributes in defaults {
            assert_eq!(written_and_read(&attributes), attributes);
        }
    }

    #[test]
    fn default_is_what_an_empty_table_means() {
        for attributes in Attributes::defaults() {
            let table = attributes.attributes_type();
            let has_required = matches!(
                table,
                AttributesType::AveragePool
                    | AttributesType::MaxPool
                    | AttributesType::ConstantOfShape
            );
            if has_required {
                continue;
            }
            let bytes = model_data(table.code(), |builder| {
                let empty = builder.start_table();
                WIPOffset::new(builder.end_table(empty).value())
            });
            let read = attributes_of(Model::parse(bytes, &Limits::default()).unwrap());
            assert_eq!(read, Some(attributes));
        }
    }

    #[test]
    fn age_is_that_of_the_newest_part() {
        let since = |attributes: Attributes| attributes.since().unwrap().to_string();
        assert_eq!(since(AveragePoolAttrs::default().into()), "0.2.0");
        let pool = AveragePoolAttrs { ceil_mode: true, ..Default::default() };
        assert_eq!(since(pool.into()), "0.22.0");
        assert_eq!(since(PadAttrs::default().into()), "0.13.1");
        assert_eq!(since(PadAttrs { mode: PadMode::Edge }.into()), "0.22.0");
        assert_eq!(since(CastAttrs { to: DataType::UInt8 }.into()), "0.14.0");
        let unknown = Attributes::from(PadAttrs { mode: PadMode::Unknown(9) });
        assert_eq!(unknown.since(), None);
    }

    #[test]
    fn fields_have_names_and_values() {
        let attributes = Attributes::from(SplitAttrs { axis: -1, num_outputs: None });
        assert_eq!(
            attributes.fields(),
            [("axis", AttributeValue::Int(-1)), ("num_outputs", AttributeValue::Absent)]
        );
        let attributes = Attributes::from(PadAttrs { mode: PadMode::Unknown(9) });
        let mode = AttributeValue::Enum { of: "PadMode", name: None, code: 9 };
        assert_eq!(attributes.fields(), [("mode", mode)]);
    }

    #[test]
    fn absent_vectors_are_told_from_empty_ones() {
        for perm in [None, Some(vec![])] {
            let attributes = Attributes::from(TransposeAttrs { perm });
            assert_eq!(written_and_read(&attributes), attributes);
        }
    }

    #[test]
    fn scalar_without_a_type_is_zero() {
        let bytes = model_data(AttributesType::ConstantOfShape.code(), |builder| {
            let scalar = stored::IntScalar::create(builder, &stored::IntScalarArgs { value: 7 });
            builder.force_defaults(true);
            let args = stored::ConstantOfShapeAttrsArgs {
                value_type: stored::Scalar::NONE,
                value: Some(scalar.as_union_value()),
            };
            let table = stored::ConstantOfShapeAttrs::create(builder, &args);
            builder.force_defaults(false);
            table.as_union_value()
        });
        let read = attributes_of(Model::parse(bytes, &Limits::default()).unwrap());
        assert_eq!(read, Some(ConstantOfShapeAttrs { value: Scalar::Int(0) }.into()));
    }

    #[test]
    fn unknown_tables_are_kept() {
        let bytes = model_data(200, later_table);
        let mut model = Model::parse(bytes, &Limits::default()).unwrap();
        model.graph.nodes.insert(0, Node::named("before", crate::Value::default()));
        for _ in 0..3 {
            let bytes = model.to_bytes().unwrap();
            let root = flatbuffers::root::<stored::Model<'_>>(&bytes).unwrap();
            let operator = root.graph().nodes().unwrap().get(1).data_as_operator_node().unwrap();
            assert_eq!(operator.attrs_type().0, 200);
            assert_later_table(&bytes, operator.attrs().unwrap().loc());
            let read = Model::parse(bytes, &Limits::default()).unwrap();
            assert_eq!(read, model);
            model = read;
        }
    }

    /// Follows the offsets of what [`later_table`] made.
    fn assert_later_table(bytes: &[u8], table: usize) {
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let distance = u32_at(table).cast_signed() as isize;
        let list = table.checked_add_signed(-distance).unwrap();
        let number = table + u16_at(list + 4);
        assert_eq!(number % 8, 0, "the number is not on its boundary");
        assert_eq!(bytes[number..number + 8], 0x1122_3344_5566_7788_u64.to_le_bytes());
        let reference = table + u16_at(list + 6);
        let text = reference + u32_at(reference) as usize;
        assert_eq!(&bytes[text + 4..text + 10], b"later\0");
    }

    #[test]
    fn unknown_table_outside_is_refused() {
        let bytes = model_data(200, |_| WIPOffset::new(0));
        let error = Model::parse(bytes.clone(), &Limits::default()).unwrap_err();
        let len = bytes.len();
        assert_eq!(
            error.to_string(),
            format!(
                "operator attributes of unknown type 200 at byte {len} of the model data does not \
                 lie within its {len} bytes"
            )
        );
        assert!(matches!(error, Error::UnknownTable { tag: 200, .. }));
    }
}
