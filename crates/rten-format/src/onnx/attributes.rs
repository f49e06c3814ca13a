//! Attributes of operators, as ONNX has them.
//!
//! What an absent attribute means differs between the two, so everything that has a default is
//! written.

use std::borrow::Cow;

use bytes::Bytes;

use crate::{
    Attributes, AutoPad, CoordTransformMode, DataType, DepthToSpaceMode, GeluApproximation,
    NMSBoxOrder, NearestMode, Operator, OperatorType, PadMode, RNNDirection, ResizeMode, Scalar,
    ScatterReduction,
    attributes::{
        AttentionAttrs, CumSumAttrs, PadAttrs, ResizeAttrs, RotaryEmbeddingAttrs, ShapeAttrs,
    },
    types::{Element, Kind},
};

use super::{
    error::{Error, Result},
    proto::{AttributeProto, GraphProto, TensorProto, attribute_type},
    window::{Listed, Window},
};

/// Returns the attributes of an operator, but for its graphs and what ONNX has as inputs; and which
/// of them had defaults for another number of dimensions than the window has.
///
/// # Errors
///
/// Where they are missing, belong to another operator, or have no counterpart; `path` names the
/// operator.
pub(super) fn convert(
    operator: &Operator,
    window: &Window,
    path: impl Fn() -> String,
) -> Result<(Vec<AttributeProto>, Vec<&'static str>)> {
    let Some(table) = table(operator, &path)? else { return Ok((Vec::new(), Vec::new())) };
    let mut list = List { attributes: Vec::new(), window, cut: Vec::new() };
    list.table(operator, &table).map_err(|refused| refused.at(path()))?;
    Ok((list.attributes, list.cut))
}

/// Returns the table that an operator needs, or the one that stands for a table that is left out.
fn table<'a>(
    operator: &'a Operator,
    path: impl Fn() -> String,
) -> Result<Option<Cow<'a, Attributes>>> {
    let Some(info) = operator.operator_type.info() else { return Ok(None) };
    let Some(expected) = info.attributes.attributes_type() else { return Ok(None) };
    let found = operator.attributes.as_ref();
    if let Some(table) = found.filter(|table| table.attributes_type() == expected) {
        return Ok(Some(Cow::Borrowed(table)));
    }
    // RTen looks only for the table that it needs.
    Ok(Some(Cow::Owned(match operator.operator_type {
        OperatorType::CumSum => CumSumAttrs::default().into(),
        OperatorType::Pad => PadAttrs::default().into(),
        OperatorType::Shape => ShapeAttrs::default().into(),
        _ => {
            let found = found.map(|table| table.attributes_type().to_string());
            return Err(Error::Attributes {
                path: path(),
                operator: info.name,
                found: found.unwrap_or_else(|| "none".to_owned()),
                expected: expected.to_string(),
            });
        }
    })))
}

/// Something that ONNX does not have.
struct Refused {
    what: &'static str,
    found: String,
    expected: &'static str,
}

impl Refused {
    fn new(what: &'static str, found: &dyn ToString, expected: &'static str) -> Self {
        Self { what, found: found.to_string(), expected }
    }

    fn at(self, path: String) -> Error {
        let Self { what, found, expected } = self;
        Error::Unsupported { path, what, found, expected }
    }
}

/// Attributes in the making.
struct List<'a> {
    attributes: Vec<AttributeProto>,
    window: &'a Window,
    cut: Vec<&'static str>,
}

impl List<'_> {
    /// Adds what is in a table, which is the one that the operator needs.
    fn table(&mut self, operator: &Operator, table: &Attributes) -> Result<(), Refused> {
        use Attributes as A;
        let _ = match table {
            A::ArgMax(table) => self.int("axis", table.axis).flag("keepdims", table.keep_dims),
            A::AveragePool(table) => self
                .window(table.auto_pad, &table.pads, &table.strides)?
                .flag("count_include_pad", table.count_include_pad)
                .flag("ceil_mode", table.ceil_mode),
            A::BatchNormalization(table) => self.float("epsilon", table.epsilon),
            A::Cast(table) => self.int("to", code("to", table.to)?),
            A::Concat(table) => self.int("axis", table.axis),
            A::ConstantOfShape(table) => self.scalar(&table.value)?,
            A::Conv(table) => self
                .window(table.auto_pad, &table.pads, &table.strides)?
                .int("group", table.groups)
                .steps("dilations", &table.dilations, 1, 1),
            A::ConvTranspose(table) => self
                .window(table.auto_pad, &table.pads, &table.strides)?
                .int("group", table.groups)
                .optional_steps("output_padding", &table.output_padding, 0)
                .steps("dilations", &table.dilations, 1, 1),
            A::Flatten(table) => self.int("axis", table.axis),
            A::Gather(table) => self.int("axis", table.axis),
            A::Gemm(table) => self
                .float("alpha", table.alpha)
                .float("beta", table.beta)
                .flag("transA", table.transpose_a)
                .flag("transB", table.transpose_b),
            A::GRU(table) => self
                .text("direction", direction(table.direction)?)
                .int("hidden_size", table.hidden_size)
                .flag("linear_before_reset", table.linear_before_reset),
            A::LeakyRelu(table) => self.float("alpha", table.alpha),
            A::LSTM(table) => self
                .text("direction", direction(table.direction)?)
                .int("hidden_size", table.hidden_size),
            A::MaxPool(table) => self
                .window(table.auto_pad, &table.pads, &table.strides)?
                .flag("ceil_mode", table.ceil_mode),
            // The axes are an input in ONNX.
            A::ReduceMean(table) => self
                .flag("keepdims", table.keep_dims)
                .flag("noop_with_empty_axes", table.noop_with_empty_axes),
            A::Reshape(table) => self.flag("allowzero", table.allow_zero),
            A::Resize(table) => self.resize(table)?,
            A::Split(table) => self.split(operator, table.axis, table.num_outputs),
            A::Softmax(table) => self.int("axis", table.axis),
            A::Transpose(table) => self.sizes("perm", table.perm.as_deref()),
            A::Mod(table) => self.flag("fmod", table.fmod),
            A::ScatterElements(table) => {
                // RTen's Scatter takes the axis from the table and nothing else.
                let is_plain = operator.operator_type == OperatorType::Scatter;
                let joined = if is_plain { ScatterReduction::None } else { table.reduction };
                self.int("axis", table.axis).text("reduction", reduction(joined)?)
            }
            A::OneHot(table) => self.int("axis", table.axis),
            A::TopK(table) => self
                .int("axis", table.axis)
                .flag("largest", table.largest)
                .flag("sorted", table.sorted),
            A::HardSigmoid(table) => self.float("alpha", table.alpha).float("beta", table.beta),
            A::Trilu(table) => self.flag("upper", table.upper),
            A::ScatterND(table) => self.text("reduction", reduction(table.reduction)?),
            A::NonMaxSuppression(table) => {
                self.flag("center_point_box", centered(table.box_order)?)
            }
            A::LayerNormalization(table) => {
                self.int("axis", table.axis).float("epsilon", table.epsilon)
            }
            A::RandomUniform(table) => self
                .sizes("shape", Some(table.shape.as_deref().unwrap_or_default()))
                .uniform(table.low, table.high, table.seed),
            A::Elu(table) => self.float("alpha", table.alpha),
            A::RandomUniformLike(table) => self.uniform(table.low, table.high, table.seed),
            A::RandomNormal(table) => self
                .sizes("shape", Some(table.shape.as_deref().unwrap_or_default()))
                .normal(table.mean, table.scale, table.seed),
            A::RandomNormalLike(table) => self.normal(table.mean, table.scale, table.seed),
            A::GatherND(table) => self.int("batch_dims", table.batch_dims),
            A::Gelu(table) => self.text("approximate", gelu(table.approximate)?),
            A::Einsum(table) => {
                self.text("equation", table.equation.as_deref().unwrap_or_default())
            }
            A::Pad(table) => self.text("mode", pad_mode(table.mode)?),
            A::DequantizeLinear(table) => self.int("axis", table.axis),
            // The zero point tells the element type.
            A::QuantizeLinear(table) => {
                table.output_dtype.map(|dtype| code("output_dtype", dtype)).transpose()?;
                self.int("axis", table.axis)
            }
            A::DepthToSpace(table) => {
                self.int("blocksize", table.block_size).text("mode", depth_mode(table.mode)?)
            }
            A::Shape(table) => {
                self.int("start", table.start.unwrap_or(0)).optional_int("end", table.end)
            }
            A::Dropout(table) => self.optional_int("seed", table.seed),
            A::EyeLike(table) => {
                let dtype = table.dtype.map(|dtype| code("dtype", dtype)).transpose()?;
                self.int("k", table.k).optional_int("dtype", dtype)
            }
            A::IsInf(_) => self.int("detect_negative", 1).int("detect_positive", 1),
            A::SequenceEmpty(table) => {
                self.int("dtype", code("dtype", table.dtype.unwrap_or(DataType::Float))?)
            }
            A::ConcatFromSequence(table) => {
                self.int("axis", table.axis).flag("new_axis", table.new_axis)
            }
            A::SplitToSequence(table) => {
                self.int("axis", table.axis).flag("keepdims", table.keep_dims)
            }
            A::GridSample(table) => self
                .flag("align_corners", table.align_corners)
                .text("mode", "linear")
                .text("padding_mode", "zeros"),
            A::STFT(table) => self.flag("onesided", table.onesided),
            A::Multinomial(table) => self
                .int("sample_size", table.sample_size.max(0))
                .int("dtype", Element::Int64.code())
                .optional_float("seed", table.seed),
            A::ReverseSequence(table) => {
                self.int("batch_axis", table.batch_axis).int("time_axis", table.time_axis)
            }
            A::DFT(table) => self.flag("inverse", table.inverse).flag("onesided", table.onesided),
            // ONNX has no Upsample any more: this is what its Resize did then.
            A::Upsample(table) => self.resize(&ResizeAttrs {
                mode: table.mode,
                coord_mode: CoordTransformMode::Asymmetric,
                nearest_mode: NearestMode::Floor,
            })?,
            A::RotaryEmbedding(table) => self.rotary(table),
            A::Attention(table) => self.attention(table),
            A::CumSum(table) => {
                self.flag("exclusive", table.exclusive).flag("reverse", table.reverse)
            }
            A::LpNormalization(table) => {
                if !matches!(table.p, 1 | 2) {
                    return Err(Refused::new("p", &table.p, "1 or 2"));
                }
                self.int("axis", table.axis).int("p", table.p)
            }
            // Their graphs are attributes as well, and made elsewhere.
            A::If(_) | A::Loop(_) | A::CastLike(_) => self,
            A::Unknown(table) => {
                return Err(Refused::new("attributes", &table.tag(), "a table that is known"));
            }
        };
        Ok(())
    }

    /// Adds the lengths of a window, its padding and steps.
    fn window(
        &mut self,
        auto_pad: AutoPad,
        pads: &Option<Vec<u32>>,
        strides: &Option<Vec<u32>>,
    ) -> Result<&mut Self, Refused> {
        let kernel = self.window.kernel.as_deref();
        let padded = match auto_pad {
            // ONNX has no padding of its own beside the automatic one, and RTen does not look at it.
            AutoPad::Same => self.sizes("kernel_shape", kernel).text("auto_pad", "SAME_UPPER"),
            AutoPad::NotSet => self
                .sizes("kernel_shape", kernel)
                .text("auto_pad", "NOTSET")
                .steps("pads", pads, 2, 0),
            AutoPad::Unknown(_) => {
                return Err(Refused::new("auto_pad", &auto_pad, "Same or NotSet"));
            }
        };
        Ok(padded.steps("strides", strides, 1, 1))
    }

    /// Adds a list with `sides` numbers for each dimension of the window.
    fn steps(
        &mut self,
        name: &'static str,
        found: &Option<Vec<u32>>,
        sides: usize,
        default: u32,
    ) -> &mut Self {
        let Listed { values, is_cut } = self.window.list(found.as_deref(), sides, default);
        self.cut.extend(is_cut.then_some(name));
        self.sizes(name, Some(&values))
    }

    fn optional_steps(
        &mut self,
        name: &'static str,
        found: &Option<Vec<u32>>,
        default: u32,
    ) -> &mut Self {
        if found.is_some() { self.steps(name, found, 1, default) } else { self }
    }

    fn resize(&mut self, table: &ResizeAttrs) -> Result<&mut Self, Refused> {
        self.text("mode", resize_mode(table.mode)?)
            .text("coordinate_transformation_mode", coordinates(table.coord_mode)?);
        Ok(self.text("nearest_mode", nearest(table.nearest_mode)?))
    }

    /// Adds how a tensor is split: into as many parts as there are outputs, where nothing says.
    fn split(&mut self, operator: &Operator, axis: i32, parts: Option<i32>) -> &mut Self {
        let has_sizes = operator.inputs.get(1).is_some_and(Option::is_some);
        let outputs = i32::try_from(operator.outputs.len()).unwrap_or(i32::MAX);
        let parts = (!has_sizes).then_some(parts.unwrap_or(outputs));
        self.int("axis", axis).optional_int("num_outputs", parts)
    }

    fn uniform(&mut self, low: f32, high: f32, seed: Option<f32>) -> &mut Self {
        self.int("dtype", Element::Float.code()).float("low", low).float("high", high);
        self.optional_float("seed", seed)
    }

    fn normal(&mut self, mean: f32, scale: f32, seed: Option<f32>) -> &mut Self {
        self.int("dtype", Element::Float.code()).float("mean", mean).float("scale", scale);
        self.optional_float("seed", seed)
    }

    fn rotary(&mut self, table: &RotaryEmbeddingAttrs) -> &mut Self {
        // ONNX has no value for tensors that have a dimension of heads already.
        let heads = Some(table.num_heads).filter(|heads| *heads > 0);
        self.flag("interleaved", table.interleaved).optional_int("num_heads", heads);
        self.int("rotary_embedding_dim", table.rotary_embedding_dim)
    }

    fn attention(&mut self, table: &AttentionAttrs) -> &mut Self {
        self.flag("is_causal", table.is_causal)
            .optional_int("q_num_heads", table.q_num_heads)
            .optional_int("kv_num_heads", table.kv_num_heads)
            .optional_float("scale", table.scale)
            .float("softcap", table.softcap)
    }

    /// Adds the tensor of one element that `ConstantOfShape` repeats.
    fn scalar(&mut self, scalar: &Scalar) -> Result<&mut Self, Refused> {
        let (element, bytes) = match scalar {
            Scalar::Int(value) => (Element::Int64, i64::from(*value).to_le_bytes().to_vec()),
            Scalar::Float(value) => (Element::Float, value.to_le_bytes().to_vec()),
            Scalar::Unknown(table) => {
                return Err(Refused::new("value of type", &table.tag(), "1 or 2"));
            }
        };
        Ok(self.push(one_element("value", element, bytes)))
    }

    fn optional_int(&mut self, name: &str, value: Option<impl Into<i64>>) -> &mut Self {
        match value {
            Some(value) => self.int(name, value),
            None => self,
        }
    }

    fn optional_float(&mut self, name: &str, value: Option<f32>) -> &mut Self {
        match value {
            Some(value) => self.float(name, value),
            None => self,
        }
    }

    fn sizes(&mut self, name: &str, values: Option<&[u32]>) -> &mut Self {
        let Some(values) = values else { return self };
        let ints = values.iter().map(|value| i64::from(*value)).collect();
        let value = AttributeProto { ints, ..Default::default() };
        self.push(named(name, attribute_type::INTS, value))
    }

    fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.int(name, value)
    }

    fn int(&mut self, name: &str, value: impl Into<i64>) -> &mut Self {
        self.push(int(name, value))
    }

    fn float(&mut self, name: &str, value: f32) -> &mut Self {
        let value = AttributeProto { f: Some(value), ..Default::default() };
        self.push(named(name, attribute_type::FLOAT, value))
    }

    fn text(&mut self, name: &str, value: &str) -> &mut Self {
        let s = Some(Bytes::copy_from_slice(value.as_bytes()));
        let value = AttributeProto { s, ..Default::default() };
        self.push(named(name, attribute_type::STRING, value))
    }

    fn push(&mut self, attribute: AttributeProto) -> &mut Self {
        self.attributes.push(attribute);
        self
    }
}

/// Returns an attribute that is a graph.
pub(super) fn graph(name: &str, graph: GraphProto) -> AttributeProto {
    let value = AttributeProto { g: Some(graph), ..Default::default() };
    named(name, attribute_type::GRAPH, value)
}

/// Returns an attribute that is a number.
pub(super) fn int(name: &str, value: impl Into<i64>) -> AttributeProto {
    let value = AttributeProto { i: Some(value.into()), ..Default::default() };
    named(name, attribute_type::INT, value)
}

/// Returns an attribute that is a tensor of one element.
pub(super) fn one_element(name: &str, element: Element, bytes: Vec<u8>) -> AttributeProto {
    let tensor = TensorProto {
        dims: vec![1],
        data_type: Some(element.code()),
        raw_data: Some(bytes.into()),
        ..Default::default()
    };
    let value = AttributeProto { t: Some(tensor), ..Default::default() };
    named(name, attribute_type::TENSOR, value)
}

fn named(name: &str, r#type: i32, value: AttributeProto) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(r#type), ..value }
}

/// Returns the number of an element type in ONNX.
fn code(what: &'static str, dtype: DataType) -> Result<i32, Refused> {
    let kind = Kind::of(dtype);
    let refused = || Refused::new(what, &dtype, "Int32, Float, Int8 or UInt8");
    kind.map(|kind| kind.widest().code()).ok_or_else(refused)
}

fn centered(order: NMSBoxOrder) -> Result<bool, Refused> {
    match order {
        NMSBoxOrder::TopLeftBottomRight => Ok(false),
        NMSBoxOrder::CenterWidthHeight => Ok(true),
        NMSBoxOrder::Unknown(_) => Err(Refused::new("box_order", &order, "an order up to 1")),
    }
}

/// Declares how ONNX calls the values of enumerations; an unknown one is refused by the name of its
/// attribute, with what is expected.
macro_rules! names {
    ($(
        $function:ident($type:ident) $what:literal $expected:literal:
        $($value:ident $name:literal)*;
    )*) => {$(
        fn $function(value: $type) -> Result<&'static str, Refused> {
            match value {
                $( $type::$value => Ok($name), )*
                $type::Unknown(_) => Err(Refused::new($what, &value, $expected)),
            }
        }
    )*};
}

names! {
    direction(RNNDirection) "direction" "a direction up to 2":
        Forward "forward" Reverse "reverse" Bidirectional "bidirectional";
    reduction(ScatterReduction) "reduction" "a reduction up to 4":
        None "none" Add "add" Mul "mul" Min "min" Max "max";
    gelu(GeluApproximation) "approximate" "None or Tanh": None "none" Tanh "tanh";
    pad_mode(PadMode) "mode" "a mode up to 3":
        Constant "constant" Reflect "reflect" Edge "edge" Wrap "wrap";
    depth_mode(DepthToSpaceMode) "mode" "DCR or CRD": DCR "DCR" CRD "CRD";
    resize_mode(ResizeMode) "mode" "Nearest or Linear": Nearest "nearest" Linear "linear";
    coordinates(CoordTransformMode) "coord_mode" "a mode up to 3":
        HalfPixel "half_pixel" Asymmetric "asymmetric" AlignCorners "align_corners"
        PytorchHalfPixel "pytorch_half_pixel";
    nearest(NearestMode) "nearest_mode" "a mode up to 3":
        Floor "floor" Ceil "ceil" RoundPreferFloor "round_prefer_floor"
        RoundPreferCeil "round_prefer_ceil";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::*;

    /// Writes attributes as `name=value`, floats with a point.
    fn text(attributes: &[AttributeProto]) -> String {
        let one = |attribute: &AttributeProto| {
            let name = attribute.name.as_deref().unwrap();
            let (r#type, value) = match attribute {
                AttributeProto { i: Some(i), .. } => (attribute_type::INT, i.to_string()),
                AttributeProto { f: Some(f), .. } => (attribute_type::FLOAT, format!("{f:?}")),
                AttributeProto { s: Some(s), .. } => {
                    (attribute_type::STRING, String::from_utf8(s.to_vec()).unwrap())
                }
                AttributeProto { t: Some(t), .. } => {
                    let (element, bytes) = (t.data_type.unwrap(), t.raw_data.as_ref().unwrap());
                    (attribute_type::TENSOR, format!("{element}:{:?}:{bytes:?}", t.dims))
                }
                AttributeProto { ints, .. } => (attribute_type::INTS, format!("{ints:?}")),
            };
            assert_eq!(attribute.r#type, Some(r#type), "{name}");
            format!("{name}={value}")
        };
        attributes.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn operator(operator_type: OperatorType, attributes: Option<Attributes>) -> Operator {
        Operator { operator_type, attributes, inputs: vec![], outputs: vec![Some(0)] }
    }

    /// Converts attributes of an operator of which no shape is known.
    fn convert(operator: &Operator, path: impl Fn() -> String) -> Result<Vec<AttributeProto>> {
        let window = Window::of(operator, &[], None);
        super::convert(operator, &window, path).map(|(attributes, _)| attributes)
    }

    fn converted(operator_type: OperatorType, table: impl Into<Attributes>) -> String {
        let operator = operator(operator_type, Some(table.into()));
        text(&convert(&operator, || "graph/node 0".to_owned()).unwrap())
    }

    #[track_caller]
    fn refused(operator_type: OperatorType, table: impl Into<Attributes>, message: &str) {
        let operator = operator(operator_type, Some(table.into()));
        let error = convert(&operator, || "graph/node 7 \"a\"".to_owned()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    /// Empty tables mean what the format says, whatever ONNX takes for an absent attribute.
    #[test]
    fn empty_tables_are_written_out() {
        use OperatorType as O;
        for (operator_type, expected) in [
            (O::ArgMin, "axis=0 keepdims=0"),
            (
                O::AveragePool,
                "kernel_shape=[] auto_pad=SAME_UPPER strides=[] count_include_pad=0 ceil_mode=0",
            ),
            (O::BatchNormalization, "epsilon=0.0"),
            (O::Cast, "to=7"),
            (O::Concat, "axis=0"),
            (O::ConstantOfShape, r#"value=7:[1]:b"\0\0\0\0\0\0\0\0""#),
            (O::Conv, "auto_pad=SAME_UPPER strides=[1, 1] group=0 dilations=[1, 1]"),
            (O::ConvInteger, "auto_pad=SAME_UPPER strides=[1, 1] group=0 dilations=[1, 1]"),
            (
                O::ConvTranspose,
                "auto_pad=NOTSET pads=[0, 0, 0, 0] strides=[1, 1] group=1 dilations=[1, 1]",
            ),
            (O::Flatten, "axis=0"),
            (O::GatherElements, "axis=0"),
            (O::Gemm, "alpha=0.0 beta=0.0 transA=0 transB=0"),
            (O::GRU, "direction=forward hidden_size=0 linear_before_reset=0"),
            (O::LeakyRelu, "alpha=0.0"),
            (O::LSTM, "direction=forward hidden_size=0"),
            (O::MaxPool, "kernel_shape=[] auto_pad=SAME_UPPER strides=[] ceil_mode=0"),
            (O::ReduceSum, "keepdims=0 noop_with_empty_axes=0"),
            (O::Reshape, "allowzero=0"),
            (
                O::Resize,
                "mode=nearest coordinate_transformation_mode=half_pixel nearest_mode=floor",
            ),
            (O::Split, "axis=0 num_outputs=1"),
            (O::LogSoftmax, "axis=0"),
            (O::Transpose, ""),
            (O::Mod, "fmod=0"),
            (O::ScatterElements, "axis=0 reduction=none"),
            (O::OneHot, "axis=0"),
            (O::TopK, "axis=0 largest=0 sorted=0"),
            (O::HardSigmoid, "alpha=0.0 beta=0.0"),
            (O::Trilu, "upper=0"),
            (O::ScatterND, "reduction=none"),
            (O::NonMaxSuppression, "center_point_box=0"),
            (O::LayerNormalization, "axis=0 epsilon=0.0"),
            (O::RandomUniform, "shape=[] dtype=1 low=0.0 high=0.0"),
            (O::Elu, "alpha=0.0"),
            (O::RandomNormalLike, "dtype=1 mean=0.0 scale=0.0"),
            (O::GatherND, "batch_dims=0"),
            (O::Gelu, "approximate=none"),
            (O::Einsum, "equation="),
            (O::Pad, "mode=constant"),
            (O::DequantizeLinear, "axis=0"),
            (O::QuantizeLinear, "axis=0"),
            (O::DepthToSpace, "blocksize=0 mode=DCR"),
            (O::Shape, "start=0"),
            (O::Dropout, ""),
            (O::EyeLike, "k=0"),
            (O::IsInf, "detect_negative=1 detect_positive=1"),
            (O::SequenceEmpty, "dtype=1"),
            (O::GridSample, "align_corners=0 mode=linear padding_mode=zeros"),
            (O::RotaryEmbedding, "interleaved=0 rotary_embedding_dim=0"),
            (O::Attention, "is_causal=0 softcap=0.0"),
            (O::DFT, "inverse=0 onesided=0"),
            (O::CumSum, "exclusive=0 reverse=0"),
            (O::LpNormalization, "axis=-1 p=2"),
        ] {
            let used = operator_type.info().unwrap().attributes.attributes_type();
            let mut tables = Attributes::defaults().into_iter();
            let table = tables.find(|table| Some(table.attributes_type()) == used).unwrap();
            assert_eq!(converted(operator_type, table), expected, "{operator_type}");
        }
    }

    #[test]
    fn padding_is_automatic_or_given() {
        let (pads, strides) = (Some(vec![1, 2, 3, 4]), Some(vec![2, 1]));
        let conv = |auto_pad| ConvAttrs {
            auto_pad,
            pads: pads.clone(),
            groups: 3,
            strides: strides.clone(),
            dilations: Some(vec![1, 1]),
        };
        assert_eq!(
            converted(OperatorType::Conv, conv(AutoPad::Same)),
            "auto_pad=SAME_UPPER strides=[2, 1] group=3 dilations=[1, 1]"
        );
        assert_eq!(
            converted(OperatorType::Conv, conv(AutoPad::NotSet)),
            "auto_pad=NOTSET pads=[1, 2, 3, 4] strides=[2, 1] group=3 dilations=[1, 1]"
        );
    }

    /// A kernel of one dimension, and what converters fill in for two.
    #[test]
    fn defaults_are_cut_to_the_rank_of_the_kernel() {
        let pool = |pads| MaxPoolAttrs {
            kernel_size: vec![3],
            auto_pad: AutoPad::NotSet,
            pads: Some(pads),
            strides: Some(vec![1, 1]),
            ceil_mode: false,
        };
        let pool = |pads| operator(OperatorType::MaxPool, Some(pool(pads).into()));
        let convert = |operator: &Operator| {
            let window = Window::of(operator, &[], None);
            let (attributes, cut) = super::convert(operator, &window, String::new).unwrap();
            (text(&attributes), cut)
        };
        assert_eq!(
            convert(&pool(vec![0; 4])),
            (
                "kernel_shape=[3] auto_pad=NOTSET pads=[0, 0] strides=[1] ceil_mode=0".to_owned(),
                vec!["pads", "strides"]
            )
        );
        assert_eq!(
            convert(&pool(vec![0, 0, 1, 1])),
            (
                "kernel_shape=[3] auto_pad=NOTSET pads=[0, 0, 1, 1] strides=[1] ceil_mode=0"
                    .to_owned(),
                vec!["strides"]
            )
        );
    }

    #[test]
    fn what_is_set_is_written() {
        use OperatorType as O;
        let seed = Some(2.5);
        let uniform = RandomUniformLikeAttrs { low: -1.0, high: 1.0, seed };
        assert_eq!(converted(O::RandomUniformLike, uniform), "dtype=1 low=-1.0 high=1.0 seed=2.5");
        let normal = RandomNormalAttrs { mean: 1.0, scale: 2.0, seed, shape: Some(vec![2, 3]) };
        assert_eq!(
            converted(O::RandomNormal, normal),
            "shape=[2, 3] dtype=1 mean=1.0 scale=2.0 seed=2.5"
        );
        let multinomial = MultinomialAttrs { sample_size: -3, seed };
        assert_eq!(converted(O::Multinomial, multinomial), "sample_size=0 dtype=7 seed=2.5");
        let shape = ShapeAttrs { start: Some(-2), end: Some(3) };
        assert_eq!(converted(O::Shape, shape), "start=-2 end=3");
        let attention = AttentionAttrs {
            is_causal: true,
            q_num_heads: Some(4),
            kv_num_heads: Some(2),
            scale: Some(0.5),
            softcap: 1.5,
        };
        assert_eq!(
            converted(O::Attention, attention),
            "is_causal=1 q_num_heads=4 kv_num_heads=2 scale=0.5 softcap=1.5"
        );
        let rotary =
            RotaryEmbeddingAttrs { interleaved: true, num_heads: 4, rotary_embedding_dim: 8 };
        assert_eq!(
            converted(O::RotaryEmbedding, rotary),
            "interleaved=1 num_heads=4 rotary_embedding_dim=8"
        );
        let eye = EyeLikeAttrs { dtype: Some(DataType::UInt8), k: -1 };
        assert_eq!(converted(O::EyeLike, eye), "k=-1 dtype=2");
        let float = ConstantOfShapeAttrs { value: Scalar::Float(1.0) };
        assert_eq!(converted(O::ConstantOfShape, float), r#"value=1:[1]:b"\0\0\x80?""#);
    }

    #[test]
    fn operators_that_onnx_dropped_become_others() {
        let upsample = UpsampleAttrs { mode: ResizeMode::Linear };
        assert_eq!(
            converted(OperatorType::Upsample, upsample),
            "mode=linear coordinate_transformation_mode=asymmetric nearest_mode=floor"
        );
        let scatter = ScatterElementsAttrs { axis: 1, reduction: ScatterReduction::Add };
        assert_eq!(converted(OperatorType::Scatter, scatter), "axis=1 reduction=none");
    }

    #[test]
    fn sizes_of_parts_leave_no_number() {
        let attributes = Some(SplitAttrs { axis: 1, num_outputs: Some(2) }.into());
        let mut split = operator(OperatorType::Split, attributes);
        split.inputs = vec![Some(0), Some(1)];
        let found = convert(&split, String::new).unwrap();
        assert_eq!(text(&found), "axis=1");
    }

    /// Files of releases that had no such attributes have no table either.
    #[test]
    fn some_tables_may_be_absent() {
        for (operator_type, expected) in [
            (OperatorType::CumSum, "exclusive=0 reverse=0"),
            (OperatorType::Pad, "mode=constant"),
            (OperatorType::Shape, "start=0"),
            (OperatorType::Add, ""),
        ] {
            let found = convert(&operator(operator_type, None), String::new).unwrap();
            assert_eq!(text(&found), expected, "{operator_type}");
        }
    }

    #[test]
    fn tables_that_are_needed_are_asked_for() {
        let error = convert(&operator(OperatorType::Cast, None), || "graph/node 0".to_owned());
        assert_eq!(
            error.unwrap_err().to_string(),
            "graph/node 0 has attributes of type none, but Cast needs CastAttrs"
        );
        refused(
            OperatorType::Cast,
            ConcatAttrs::default(),
            "graph/node 7 \"a\" has attributes of type ConcatAttrs, but Cast needs CastAttrs",
        );
    }

    #[test]
    fn unknown_numbers_are_refused() {
        use OperatorType as O;
        let at = |message: &str| format!("graph/node 7 \"a\" has {message}");
        let dtype = DataType::Unknown(9);
        let kinds = "expected Int32, Float, Int8 or UInt8";
        refused(O::Cast, CastAttrs { to: dtype }, &at(&format!("to unknown 9, {kinds}")));
        let eye = EyeLikeAttrs { dtype: Some(dtype), k: 0 };
        refused(O::EyeLike, eye, &at(&format!("dtype unknown 9, {kinds}")));
        let quantize = QuantizeLinearAttrs { axis: 0, output_dtype: Some(dtype) };
        refused(O::QuantizeLinear, quantize, &at(&format!("output_dtype unknown 9, {kinds}")));
        let pad = PadAttrs { mode: PadMode::Unknown(9) };
        refused(O::Pad, pad, &at("mode unknown 9, expected a mode up to 3"));
        let conv = ConvAttrs { auto_pad: AutoPad::Unknown(9), ..ConvAttrs::default() };
        refused(O::Conv, conv, &at("auto_pad unknown 9, expected Same or NotSet"));
        let gru = GRUAttrs { direction: RNNDirection::Unknown(9), ..GRUAttrs::default() };
        refused(O::GRU, gru, &at("direction unknown 9, expected a direction up to 2"));
        let scatter = ScatterNDAttrs { reduction: ScatterReduction::Unknown(9) };
        refused(O::ScatterND, scatter, &at("reduction unknown 9, expected a reduction up to 4"));
        let gelu = GeluAttrs { approximate: GeluApproximation::Unknown(9) };
        refused(O::Gelu, gelu, &at("approximate unknown 9, expected None or Tanh"));
        let boxes = NonMaxSuppressionAttrs { box_order: NMSBoxOrder::Unknown(9) };
        refused(O::NonMaxSuppression, boxes, &at("box_order unknown 9, expected an order up to 1"));
        let depth = DepthToSpaceAttrs { mode: DepthToSpaceMode::Unknown(9), block_size: 2 };
        refused(O::DepthToSpace, depth, &at("mode unknown 9, expected DCR or CRD"));
        let norm = LpNormalizationAttrs { axis: 0, p: 3 };
        refused(O::LpNormalization, norm, &at("p 3, expected 1 or 2"));
        let default = ResizeAttrs::default;
        let resize = ResizeAttrs { mode: ResizeMode::Unknown(9), ..default() };
        refused(O::Resize, resize, &at("mode unknown 9, expected Nearest or Linear"));
        let resize = ResizeAttrs { coord_mode: CoordTransformMode::Unknown(9), ..default() };
        refused(O::Resize, resize, &at("coord_mode unknown 9, expected a mode up to 3"));
        let resize = ResizeAttrs { nearest_mode: NearestMode::Unknown(9), ..default() };
        refused(O::Resize, resize, &at("nearest_mode unknown 9, expected a mode up to 3"));
    }
}
