//! Attributes of operators, as ONNX has them.
//!
//! What an absent attribute means differs between the two, so everything that has a default is
//! written. Only lists that are absent stay absent: they mean the same in both.

use std::borrow::Cow;

use bytes::Bytes;

use crate::{
    Attributes, AutoPad, CoordTransformMode, DataType, DepthToSpaceMode, GeluApproximation,
    NMSBoxOrder, NearestMode, Operator, OperatorType, PadMode, RNNDirection, ResizeMode, Scalar,
    ScatterReduction,
    attributes::{
        AttentionAttrs, CumSumAttrs, PadAttrs, ResizeAttrs, RotaryEmbeddingAttrs, ShapeAttrs,
    },
};

use super::{
    element::{Element, Kind},
    error::{Error, Result},
    proto::{AttributeProto, GraphProto, TensorProto, attribute_type},
};

/// Returns the element type that the attributes of an operator name for what it makes.
pub(super) fn element(operator: &Operator) -> Option<Element> {
    let dtype = match (operator.operator_type, operator.attributes.as_ref()?) {
        (OperatorType::Cast, Attributes::Cast(table)) => table.to,
        (OperatorType::EyeLike, Attributes::EyeLike(table)) => table.dtype?,
        (OperatorType::SequenceEmpty, Attributes::SequenceEmpty(table)) => {
            table.dtype.unwrap_or(DataType::Float)
        }
        (OperatorType::QuantizeLinear, Attributes::QuantizeLinear(table)) => {
            let has_zero_point = operator.inputs.get(2).is_some_and(Option::is_some);
            let default = (!has_zero_point).then_some(DataType::UInt8);
            table.output_dtype.or(default)?
        }
        (OperatorType::ConstantOfShape, Attributes::ConstantOfShape(table)) => match table.value {
            Scalar::Int(_) => DataType::Int32,
            Scalar::Float(_) => DataType::Float,
            Scalar::Unknown(_) => return None,
        },
        _ => return None,
    };
    Kind::of(dtype).map(Kind::widest)
}

/// Returns the attributes of an operator, but for its graphs and what ONNX has as inputs.
///
/// # Errors
///
/// Where they are missing, belong to another operator, or have no counterpart; `path` names the
/// operator.
pub(super) fn convert(
    operator: &Operator,
    path: impl Fn() -> String,
) -> Result<Vec<AttributeProto>> {
    let Some(table) = table(operator, &path)? else { return Ok(Vec::new()) };
    let mut list = List::default();
    list.table(operator, &table).map_err(|refused| refused.at(path()))?;
    Ok(list.0)
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
#[derive(Default)]
struct List(Vec<AttributeProto>);

impl List {
    /// Adds what is in a table, which is the one that the operator needs.
    fn table(&mut self, operator: &Operator, table: &Attributes) -> Result<(), Refused> {
        use Attributes as A;
        match table {
            A::ArgMax(table) => {
                self.int("axis", table.axis);
                self.flag("keepdims", table.keep_dims);
            }
            A::AveragePool(table) => {
                self.sizes("kernel_shape", Some(&table.kernel_size));
                self.window(table.auto_pad, table.pads.as_deref(), table.strides.as_deref())?;
                self.flag("count_include_pad", table.count_include_pad);
                self.flag("ceil_mode", table.ceil_mode);
            }
            A::BatchNormalization(table) => self.float("epsilon", table.epsilon),
            A::Cast(table) => self.dtype("to", "to", table.to)?,
            A::Concat(table) => self.int("axis", table.axis),
            A::ConstantOfShape(table) => self.scalar(&table.value)?,
            A::Conv(table) => {
                self.window(table.auto_pad, table.pads.as_deref(), table.strides.as_deref())?;
                self.int("group", table.groups);
                self.sizes("dilations", table.dilations.as_deref());
            }
            A::ConvTranspose(table) => {
                self.window(table.auto_pad, table.pads.as_deref(), table.strides.as_deref())?;
                self.int("group", table.groups);
                self.sizes("output_padding", table.output_padding.as_deref());
                self.sizes("dilations", table.dilations.as_deref());
            }
            A::Flatten(table) => self.int("axis", table.axis),
            A::Gather(table) => self.int("axis", table.axis),
            A::Gemm(table) => {
                self.float("alpha", table.alpha);
                self.float("beta", table.beta);
                self.flag("transA", table.transpose_a);
                self.flag("transB", table.transpose_b);
            }
            A::GRU(table) => {
                self.direction(table.direction)?;
                self.int("hidden_size", table.hidden_size);
                self.flag("linear_before_reset", table.linear_before_reset);
            }
            A::LeakyRelu(table) => self.float("alpha", table.alpha),
            A::LSTM(table) => {
                self.direction(table.direction)?;
                self.int("hidden_size", table.hidden_size);
            }
            A::MaxPool(table) => {
                self.sizes("kernel_shape", Some(&table.kernel_size));
                self.window(table.auto_pad, table.pads.as_deref(), table.strides.as_deref())?;
                self.flag("ceil_mode", table.ceil_mode);
            }
            // The axes are an input in ONNX.
            A::ReduceMean(table) => {
                self.flag("keepdims", table.keep_dims);
                self.flag("noop_with_empty_axes", table.noop_with_empty_axes);
            }
            A::Reshape(table) => self.flag("allowzero", table.allow_zero),
            A::Resize(table) => self.resize(table)?,
            A::Split(table) => self.split(operator, table.axis, table.num_outputs),
            A::Softmax(table) => self.int("axis", table.axis),
            A::Transpose(table) => self.sizes("perm", table.perm.as_deref()),
            A::Mod(table) => self.flag("fmod", table.fmod),
            A::ScatterElements(table) => {
                self.int("axis", table.axis);
                // RTen's Scatter takes the axis from the table and nothing else.
                let is_plain = operator.operator_type == OperatorType::Scatter;
                self.reduction(if is_plain { ScatterReduction::None } else { table.reduction })?;
            }
            A::OneHot(table) => self.int("axis", table.axis),
            A::TopK(table) => {
                self.int("axis", table.axis);
                self.flag("largest", table.largest);
                self.flag("sorted", table.sorted);
            }
            A::HardSigmoid(table) => {
                self.float("alpha", table.alpha);
                self.float("beta", table.beta);
            }
            A::Trilu(table) => self.flag("upper", table.upper),
            A::ScatterND(table) => self.reduction(table.reduction)?,
            A::NonMaxSuppression(table) => {
                self.flag("center_point_box", centered(table.box_order)?);
            }
            A::LayerNormalization(table) => {
                self.int("axis", table.axis);
                self.float("epsilon", table.epsilon);
            }
            A::RandomUniform(table) => {
                self.sizes("shape", Some(table.shape.as_deref().unwrap_or_default()));
                self.uniform(table.low, table.high, table.seed);
            }
            A::Elu(table) => self.float("alpha", table.alpha),
            A::RandomUniformLike(table) => self.uniform(table.low, table.high, table.seed),
            A::RandomNormal(table) => {
                self.sizes("shape", Some(table.shape.as_deref().unwrap_or_default()));
                self.normal(table.mean, table.scale, table.seed);
            }
            A::RandomNormalLike(table) => self.normal(table.mean, table.scale, table.seed),
            A::GatherND(table) => self.int("batch_dims", table.batch_dims),
            A::Gelu(table) => self.text("approximate", gelu(table.approximate)?),
            A::Einsum(table) => {
                self.text("equation", table.equation.as_deref().unwrap_or_default());
            }
            A::Pad(table) => self.text("mode", pad_mode(table.mode)?),
            A::DequantizeLinear(table) => self.int("axis", table.axis),
            // The zero point tells the element type.
            A::QuantizeLinear(table) => {
                self.int("axis", table.axis);
                if let Some(dtype) = table.output_dtype {
                    code("output_dtype", dtype)?;
                }
            }
            A::DepthToSpace(table) => {
                self.int("blocksize", table.block_size);
                self.text("mode", depth_mode(table.mode)?);
            }
            A::Shape(table) => {
                self.int("start", table.start.unwrap_or(0));
                self.optional_int("end", table.end);
            }
            A::Dropout(table) => self.optional_int("seed", table.seed),
            A::EyeLike(table) => {
                self.int("k", table.k);
                if let Some(dtype) = table.dtype {
                    self.dtype("dtype", "dtype", dtype)?;
                }
            }
            A::IsInf(_) => {
                self.int("detect_negative", 1);
                self.int("detect_positive", 1);
            }
            A::SequenceEmpty(table) => {
                self.dtype("dtype", "dtype", table.dtype.unwrap_or(DataType::Float))?;
            }
            A::ConcatFromSequence(table) => {
                self.int("axis", table.axis);
                self.flag("new_axis", table.new_axis);
            }
            A::SplitToSequence(table) => {
                self.int("axis", table.axis);
                self.flag("keepdims", table.keep_dims);
            }
            A::GridSample(table) => {
                self.flag("align_corners", table.align_corners);
                self.text("mode", "linear");
                self.text("padding_mode", "zeros");
            }
            A::STFT(table) => self.flag("onesided", table.onesided),
            A::Multinomial(table) => {
                self.int("sample_size", table.sample_size.max(0));
                self.int("dtype", Element::Int64.code());
                self.optional_float("seed", table.seed);
            }
            A::ReverseSequence(table) => {
                self.int("batch_axis", table.batch_axis);
                self.int("time_axis", table.time_axis);
            }
            A::DFT(table) => {
                self.flag("inverse", table.inverse);
                self.flag("onesided", table.onesided);
            }
            // Upsample is no more in ONNX: this is what its Resize did then.
            A::Upsample(table) => self.resize(&ResizeAttrs {
                mode: table.mode,
                coord_mode: CoordTransformMode::Asymmetric,
                nearest_mode: NearestMode::Floor,
            })?,
            A::RotaryEmbedding(table) => self.rotary(table),
            A::Attention(table) => self.attention(table),
            A::CumSum(table) => {
                self.flag("exclusive", table.exclusive);
                self.flag("reverse", table.reverse);
            }
            A::LpNormalization(table) => {
                if !matches!(table.p, 1 | 2) {
                    return Err(Refused::new("p", &table.p, "1 or 2"));
                }
                self.int("axis", table.axis);
                self.int("p", table.p);
            }
            // Their graphs are attributes as well, and made elsewhere.
            A::If(_) | A::Loop(_) | A::CastLike(_) => {}
            A::Unknown(table) => {
                return Err(Refused::new("attributes", &table.tag(), "a table that is known"));
            }
        }
        Ok(())
    }

    /// Adds padding and steps of a window.
    fn window(
        &mut self,
        auto_pad: AutoPad,
        pads: Option<&[u32]>,
        strides: Option<&[u32]>,
    ) -> Result<(), Refused> {
        match auto_pad {
            // ONNX has no padding of its own beside the automatic one, and RTen does not look at it.
            AutoPad::Same => self.text("auto_pad", "SAME_UPPER"),
            AutoPad::NotSet => {
                self.text("auto_pad", "NOTSET");
                self.sizes("pads", pads);
            }
            AutoPad::Unknown(_) => {
                return Err(Refused::new("auto_pad", &auto_pad, "Same or NotSet"));
            }
        }
        self.sizes("strides", strides);
        Ok(())
    }

    fn resize(&mut self, table: &ResizeAttrs) -> Result<(), Refused> {
        self.text(
            "mode",
            match table.mode {
                ResizeMode::Nearest => "nearest",
                ResizeMode::Linear => "linear",
                mode => return Err(Refused::new("mode", &mode, "Nearest or Linear")),
            },
        );
        self.text(
            "coordinate_transformation_mode",
            match table.coord_mode {
                CoordTransformMode::HalfPixel => "half_pixel",
                CoordTransformMode::Asymmetric => "asymmetric",
                CoordTransformMode::AlignCorners => "align_corners",
                CoordTransformMode::PytorchHalfPixel => "pytorch_half_pixel",
                mode => return Err(Refused::new("coord_mode", &mode, "a mode up to 3")),
            },
        );
        self.text(
            "nearest_mode",
            match table.nearest_mode {
                NearestMode::Floor => "floor",
                NearestMode::Ceil => "ceil",
                NearestMode::RoundPreferFloor => "round_prefer_floor",
                NearestMode::RoundPreferCeil => "round_prefer_ceil",
                mode => return Err(Refused::new("nearest_mode", &mode, "a mode up to 3")),
            },
        );
        Ok(())
    }

    /// Adds how a tensor is split: into as many parts as there are outputs, where nothing says.
    fn split(&mut self, operator: &Operator, axis: i32, parts: Option<i32>) {
        self.int("axis", axis);
        if !operator.inputs.get(1).is_some_and(Option::is_some) {
            let outputs = i32::try_from(operator.outputs.len()).unwrap_or(i32::MAX);
            self.int("num_outputs", parts.unwrap_or(outputs));
        }
    }

    fn direction(&mut self, direction: RNNDirection) -> Result<(), Refused> {
        self.text(
            "direction",
            match direction {
                RNNDirection::Forward => "forward",
                RNNDirection::Reverse => "reverse",
                RNNDirection::Bidirectional => "bidirectional",
                other => return Err(Refused::new("direction", &other, "a direction up to 2")),
            },
        );
        Ok(())
    }

    fn reduction(&mut self, reduction: ScatterReduction) -> Result<(), Refused> {
        self.text(
            "reduction",
            match reduction {
                ScatterReduction::None => "none",
                ScatterReduction::Add => "add",
                ScatterReduction::Mul => "mul",
                ScatterReduction::Min => "min",
                ScatterReduction::Max => "max",
                other => return Err(Refused::new("reduction", &other, "a reduction up to 4")),
            },
        );
        Ok(())
    }

    fn uniform(&mut self, low: f32, high: f32, seed: Option<f32>) {
        self.int("dtype", Element::Float.code());
        self.float("low", low);
        self.float("high", high);
        self.optional_float("seed", seed);
    }

    fn normal(&mut self, mean: f32, scale: f32, seed: Option<f32>) {
        self.int("dtype", Element::Float.code());
        self.float("mean", mean);
        self.float("scale", scale);
        self.optional_float("seed", seed);
    }

    fn rotary(&mut self, table: &RotaryEmbeddingAttrs) {
        self.flag("interleaved", table.interleaved);
        // ONNX has no value for tensors that have a dimension of heads already.
        self.optional_int("num_heads", Some(table.num_heads).filter(|heads| *heads > 0));
        self.int("rotary_embedding_dim", table.rotary_embedding_dim);
    }

    fn attention(&mut self, table: &AttentionAttrs) {
        self.flag("is_causal", table.is_causal);
        self.optional_int("q_num_heads", table.q_num_heads);
        self.optional_int("kv_num_heads", table.kv_num_heads);
        self.optional_float("scale", table.scale);
        self.float("softcap", table.softcap);
    }

    /// Adds the tensor of one element that `ConstantOfShape` repeats.
    fn scalar(&mut self, scalar: &Scalar) -> Result<(), Refused> {
        let (element, bytes) = match scalar {
            Scalar::Int(value) => (Element::Int64, i64::from(*value).to_le_bytes().to_vec()),
            Scalar::Float(value) => (Element::Float, value.to_le_bytes().to_vec()),
            Scalar::Unknown(table) => {
                return Err(Refused::new("value of type", &table.tag(), "1 or 2"));
            }
        };
        self.0.push(one_element("value", element, bytes));
        Ok(())
    }

    fn dtype(&mut self, name: &str, what: &'static str, dtype: DataType) -> Result<(), Refused> {
        self.int(name, code(what, dtype)?);
        Ok(())
    }

    fn optional_int(&mut self, name: &str, value: Option<impl Into<i64>>) {
        if let Some(value) = value {
            self.int(name, value);
        }
    }

    fn optional_float(&mut self, name: &str, value: Option<f32>) {
        if let Some(value) = value {
            self.float(name, value);
        }
    }

    fn sizes(&mut self, name: &str, values: Option<&[u32]>) {
        let Some(values) = values else { return };
        let ints = values.iter().map(|value| i64::from(*value)).collect();
        self.push(name, attribute_type::INTS, AttributeProto { ints, ..Default::default() });
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.int(name, value);
    }

    fn int(&mut self, name: &str, value: impl Into<i64>) {
        let value = AttributeProto { i: Some(value.into()), ..Default::default() };
        self.push(name, attribute_type::INT, value);
    }

    fn float(&mut self, name: &str, value: f32) {
        let value = AttributeProto { f: Some(value), ..Default::default() };
        self.push(name, attribute_type::FLOAT, value);
    }

    fn text(&mut self, name: &str, value: &str) {
        let s = Some(Bytes::copy_from_slice(value.as_bytes()));
        self.push(name, attribute_type::STRING, AttributeProto { s, ..Default::default() });
    }

    fn push(&mut self, name: &str, r#type: i32, value: AttributeProto) {
        self.0.push(named(name, r#type, value));
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

fn gelu(formula: GeluApproximation) -> Result<&'static str, Refused> {
    match formula {
        GeluApproximation::None => Ok("none"),
        GeluApproximation::Tanh => Ok("tanh"),
        GeluApproximation::Unknown(_) => Err(Refused::new("approximate", &formula, "None or Tanh")),
    }
}

fn pad_mode(mode: PadMode) -> Result<&'static str, Refused> {
    match mode {
        PadMode::Constant => Ok("constant"),
        PadMode::Reflect => Ok("reflect"),
        PadMode::Edge => Ok("edge"),
        PadMode::Wrap => Ok("wrap"),
        PadMode::Unknown(_) => Err(Refused::new("mode", &mode, "a mode up to 3")),
    }
}

fn depth_mode(mode: DepthToSpaceMode) -> Result<&'static str, Refused> {
    match mode {
        DepthToSpaceMode::DCR => Ok("DCR"),
        DepthToSpaceMode::CRD => Ok("CRD"),
        DepthToSpaceMode::Unknown(_) => Err(Refused::new("mode", &mode, "DCR or CRD")),
    }
}
