//! Graphs of nodes, as model data holds them.

use bytes::Bytes;
use flat_tables::UnknownTable;
use flatbuffers::{UnionWIPOffset, Vector, WIPOffset};
use tensor_core::{DType, Limit, Limits, Shape, TensorBuf, TensorInfo};

use crate::{
    Attributes, ConstantDataType, DataType, Error, Fault, OperatorType, Result,
    generated::rten as stored,
    model::builder::{Builder, MAX_SUBGRAPH_DEPTH, Size},
    model::field::Field as _,
    model::visit::unknown,
};

/// A graph: the main one of a model, or a branch or body of an operator.
///
/// Nodes refer to each other by their index in [`nodes`](Self::nodes), which counts from 0 in each
/// graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Constants, values and operators; an operator stands behind all nodes that it refers to.
    pub nodes: Vec<Node>,
    /// Ids of the nodes that a caller gives.
    pub inputs: Vec<u32>,
    /// Ids of the nodes that a caller gets.
    pub outputs: Vec<u32>,
    /// Ids of values that are found by their names in the graphs around this one.
    pub captures: Vec<u32>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name; that of an operator may be empty or another node's.
    pub name: Option<String>,
    /// What it is.
    pub kind: NodeKind,
}

impl Node {
    /// Names something.
    #[must_use]
    pub fn named(name: impl Into<String>, kind: impl Into<NodeKind>) -> Self {
        Self { name: Some(name.into()), kind: kind.into() }
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NodeKind {
    /// A computation.
    Operator(Operator),
    /// A tensor that is part of the model.
    Constant(Constant),
    /// What an input or a computation gives.
    Value(Value),
    /// A table that this crate does not know, kept as it is.
    Unknown(UnknownTable),
    /// Nothing: the file does not say.
    Missing,
}

/// A computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// What is computed.
    pub operator_type: OperatorType,
    /// How, where the operator has attributes.
    pub attributes: Option<Attributes>,
    /// Ids of the nodes that it reads; `None` for an input that is left out.
    pub inputs: Vec<Option<u32>>,
    /// Ids of the values that it makes; `None` for one that nothing reads.
    pub outputs: Vec<Option<u32>>,
}

/// A tensor that is part of the model, as the file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Elements along each dimension, outermost first; empty for a scalar.
    pub shape: Vec<u32>,
    /// The element type of external data. Files of releases before 0.11.0 have none.
    pub dtype: Option<ConstantDataType>,
    /// The elements, where they are part of the model data.
    pub data: Option<ConstantData>,
    /// Where the elements start, in bytes from the start of the tensor data. It takes precedence
    /// over [`data`](Self::data).
    pub data_offset: Option<u64>,
}

/// Elements inside the model data: little-endian, in row-major order.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConstantData {
    /// IEEE 754, 32 bits.
    Float(Bytes),
    /// Signed, 32 bits.
    Int32(Bytes),
    /// Signed, 8 bits.
    Int8(Bytes),
    /// Unsigned, 8 bits.
    UInt8(Bytes),
    /// A table that this crate does not know, kept as it is.
    Unknown(UnknownTable),
}

/// What an input or a computation gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// One entry per dimension, outermost first; empty for a scalar, `None` where nothing is known.
    pub shape: Option<Vec<Dim>>,
    /// The element type, where it is known.
    pub dtype: Option<DataType>,
}

/// One dimension of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// This many elements. Converters up to 0.22.0 write 0 where they know nothing.
    Fixed(u32),
    /// Any number of elements, the same wherever the symbol stands.
    Symbol(String),
}

impl Graph {
    /// Returns the id of the value or constant of a name, the last where several have it: so does
    /// RTen.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        let at = self.nodes.iter().rposition(|node| {
            matches!(node.kind, NodeKind::Value(_) | NodeKind::Constant(_))
                && node.name.as_deref() == Some(name)
        });
        at.and_then(|at| u32::try_from(at).ok())
    }

    /// Calls `visit` with every constant, those of subgraphs where their operator is: the order in
    /// which [`topology::walk`](crate::topology::walk) comes to them.
    pub(crate) fn visit_constants(
        &mut self,
        visit: &mut impl FnMut(&mut Constant) -> Result<()>,
    ) -> Result<()> {
        self.visit_nodes(0, &mut |node| match &mut node.kind {
            NodeKind::Constant(constant) => visit(constant),
            _ => Ok(()),
        })
    }

    fn visit_nodes(
        &mut self,
        depth: u32,
        visit: &mut impl FnMut(&mut Node) -> Result<()>,
    ) -> Result<()> {
        if depth > MAX_SUBGRAPH_DEPTH {
            return Err(Error::SubgraphDepth { limit: MAX_SUBGRAPH_DEPTH });
        }
        for node in &mut self.nodes {
            visit(node)?;
            if let NodeKind::Operator(Operator { attributes: Some(attributes), .. }) =
                &mut node.kind
            {
                for (_, graph) in attributes.subgraphs_mut() {
                    graph.visit_nodes(depth.saturating_add(1), visit)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a graph of verified model data, of which constants keep slices.
    pub(crate) fn parse(graph: &stored::Graph<'_>, model: &Bytes) -> Result<Self> {
        let stored = graph.nodes().unwrap_or_default();
        let mut nodes = Vec::with_capacity(stored.len());
        for node in stored {
            nodes.push(Node::parse(&node, model)?);
        }
        Ok(Self {
            nodes,
            inputs: ids(graph.inputs()),
            outputs: ids(graph.outputs()),
            captures: ids(graph.captures()),
        })
    }

    pub(crate) fn build(&self, builder: &mut Builder) -> Result<WIPOffset<stored::Graph<'static>>> {
        let nodes = self.nodes.iter().map(|node| node.build(builder));
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        let has_captures = !self.captures.is_empty();
        let args = stored::GraphArgs {
            nodes: Some(builder.fbb().create_vector(&nodes)),
            inputs: Some(builder.fbb().create_vector(&self.inputs)),
            outputs: Some(builder.fbb().create_vector(&self.outputs)),
            captures: has_captures.then(|| builder.fbb().create_vector(&self.captures)),
        };
        Ok(stored::Graph::create(builder.fbb(), &args))
    }

    pub(crate) fn measure(&self, size: &mut Size) -> Result<()> {
        size.table();
        for ids in [&self.inputs, &self.outputs, &self.captures] {
            size.words(ids.len());
        }
        size.words(self.nodes.len());
        self.nodes.iter().try_for_each(|node| node.measure(size))
    }
}

fn ids(vector: Option<Vector<'_, u32>>) -> Vec<u32> {
    vector.map(|vector| vector.iter().collect()).unwrap_or_default()
}

impl Node {
    fn parse(node: &stored::Node<'_>, model: &Bytes) -> Result<Self> {
        let name = node.name().map(str::to_owned);
        let kind = match node.data_type() {
            stored::NodeKind::OperatorNode => match node.data_as_operator_node() {
                Some(operator) => NodeKind::Operator(Operator::parse(&operator, model)?),
                None => NodeKind::Missing,
            },
            stored::NodeKind::ConstantNode => match node.data_as_constant_node() {
                Some(constant) => NodeKind::Constant(Constant::parse(&constant, model)?),
                None => NodeKind::Missing,
            },
            stored::NodeKind::ValueNode => match node.data_as_value_node() {
                Some(value) => NodeKind::Value(Value::parse(&value)),
                None => NodeKind::Missing,
            },
            stored::NodeKind::NONE => NodeKind::Missing,
            stored::NodeKind(tag) => unknown("node", tag, node._tab, stored::Node::VT_DATA, model)?
                .map_or(NodeKind::Missing, NodeKind::Unknown),
        };
        Ok(Self { name, kind })
    }

    pub(crate) fn build(&self, builder: &mut Builder) -> Result<WIPOffset<stored::Node<'static>>> {
        let (data_type, data) = match &self.kind {
            NodeKind::Operator(operator) => {
                (stored::NodeKind::OperatorNode, Some(operator.build(builder)?))
            }
            NodeKind::Constant(constant) => {
                (stored::NodeKind::ConstantNode, Some(constant.build(builder)?))
            }
            NodeKind::Value(value) => (stored::NodeKind::ValueNode, Some(value.build(builder)?)),
            NodeKind::Unknown(table) => {
                (stored::NodeKind(table.tag()), Some(builder.unknown(table)?))
            }
            NodeKind::Missing => (stored::NodeKind::NONE, None),
        };
        let name = self.name.build(builder)?;
        Ok(stored::Node::create(builder.fbb(), &stored::NodeArgs { name, data_type, data }))
    }

    fn measure(&self, size: &mut Size) -> Result<()> {
        size.table();
        size.bytes(self.name.as_ref().map_or(0, String::len) as u64);
        match &self.kind {
            NodeKind::Operator(operator) => operator.measure(size)?,
            NodeKind::Constant(constant) => constant.measure(size),
            NodeKind::Value(value) => value.measure(size),
            NodeKind::Unknown(table) => size.unknown(table),
            NodeKind::Missing => {}
        }
        Ok(())
    }
}

impl Operator {
    /// Returns the graphs in its attributes with the names of the fields, in the order of the
    /// format.
    pub fn subgraphs(&self) -> impl DoubleEndedIterator<Item = (&'static str, &Graph)> {
        self.attributes.iter().flat_map(Attributes::subgraphs)
    }

    fn parse(operator: &stored::OperatorNode<'_>, model: &Bytes) -> Result<Self> {
        Ok(Self {
            operator_type: OperatorType::from_code(operator.type_().0),
            attributes: Attributes::parse(operator, model)?,
            inputs: optional_ids(operator.inputs()),
            outputs: optional_ids(operator.outputs()),
        })
    }

    fn build(&self, builder: &mut Builder) -> Result<WIPOffset<UnionWIPOffset>> {
        let attrs = self.attributes.as_ref().map(|table| table.build(builder)).transpose()?;
        let attrs_type = self.attributes.as_ref().map_or(0, |table| table.attributes_type().code());
        let inputs = stored_ids(&self.inputs)?;
        let outputs = stored_ids(&self.outputs)?;
        let args = stored::OperatorNodeArgs {
            type_: stored::OperatorType(self.operator_type.code()),
            attrs_type: stored::OperatorAttrs(attrs_type),
            attrs,
            inputs: Some(builder.fbb().create_vector(&inputs)),
            outputs: Some(builder.fbb().create_vector(&outputs)),
        };
        Ok(stored::OperatorNode::create(builder.fbb(), &args).as_union_value())
    }

    fn measure(&self, size: &mut Size) -> Result<()> {
        size.table();
        size.words(self.inputs.len());
        size.words(self.outputs.len());
        self.attributes.as_ref().map_or(Ok(()), |attributes| attributes.measure(size))
    }
}

/// Reads ids of which a negative one stands for nothing.
fn optional_ids(vector: Option<Vector<'_, i32>>) -> Vec<Option<u32>> {
    vector.into_iter().flatten().map(|id| u32::try_from(id).ok()).collect()
}

fn stored_ids(ids: &[Option<u32>]) -> Result<Vec<i32>> {
    let stored = |id: u32| i32::try_from(id).map_err(|_| Error::NodeId { found: id });
    ids.iter().map(|id| id.map_or(Ok(ABSENT), stored)).collect()
}

/// What RTen's converter writes for an input or output that is not there.
const ABSENT: i32 = -1;

impl Constant {
    /// Describes a constant whose elements are given to a [`Writer`](crate::Writer) when it comes
    /// to them.
    #[must_use]
    pub fn described(shape: impl Into<Vec<u32>>, dtype: ConstantDataType) -> Self {
        Self { shape: shape.into(), dtype: Some(dtype), data: None, data_offset: None }
    }

    /// Makes a constant of a tensor, whose bytes it shares.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] for an element type that constants have not, [`Error::Dimension`] for one
    /// that is too large for the format.
    ///
    /// # Examples
    ///
    /// ```
    /// use rten_format::{Constant, ConstantDataType, tensor_core::TensorBuf};
    ///
    /// let bias = Constant::from_tensor(&TensorBuf::from_slice([3], &[0.5_f32, 1.0, 1.5])?)?;
    /// assert_eq!(bias.dtype, Some(ConstantDataType::Float32));
    /// # Ok::<(), rten_format::Error>(())
    /// ```
    pub fn from_tensor(tensor: &TensorBuf) -> Result<Self> {
        let TensorInfo { dtype, shape } = tensor.info();
        let described = Self::described(dims(shape)?, ConstantDataType::from_dtype(*dtype)?);
        let data =
            described.dtype.and_then(|dtype| ConstantData::new(dtype, tensor.bytes().clone()));
        Ok(Self { data, ..described })
    }

    /// Returns the element type and the shape: of inline data its own type, whatever `dtype` says,
    /// so does RTen. `None` where the data is in a table that is not known.
    pub(crate) fn info(&self) -> Result<Option<TensorInfo>, Fault> {
        let shape = self.shape.iter().map(|dim| u64::from(*dim)).collect();
        let dtype = match &self.data {
            Some(data) if self.data_offset.is_none() => data.dtype(),
            _ => {
                let dtype = self.dtype.ok_or(Fault::NoDtype)?;
                Some(dtype.dtype().ok_or(Fault::UnknownDtype { code: dtype.code() })?)
            }
        };
        Ok(dtype.map(|dtype| TensorInfo { dtype, shape }))
    }

    /// Refuses more dimensions than readers take.
    pub(crate) fn require_rank(&self) -> Result<(), Fault> {
        Ok(Limits::default().check(Limit::Rank, "rank", self.shape.len() as u64)?)
    }

    /// Returns the inline data where it is what counts and is known.
    ///
    /// # Errors
    ///
    /// [`Fault::WrongLength`] where the shape needs another number of bytes.
    pub(crate) fn inline(&self) -> Result<Option<&Bytes>, Fault> {
        let data = self.data.as_ref().filter(|_| self.data_offset.is_none());
        let Some(bytes) = data.and_then(ConstantData::bytes) else { return Ok(None) };
        let Some(info) = self.info()? else { return Ok(None) };
        let (expected, found) = (info.byte_len()?, bytes.len() as u64);
        if found != expected {
            return Err(Fault::WrongLength { shape: info.shape, expected, found });
        }
        Ok(Some(bytes))
    }

    fn parse(constant: &stored::ConstantNode<'_>, model: &Bytes) -> Result<Self> {
        Ok(Self {
            shape: constant.shape().iter().collect(),
            dtype: constant.dtype().map(|dtype| ConstantDataType::from_code(dtype.0)),
            data: ConstantData::parse(constant, model)?,
            data_offset: constant.data_offset(),
        })
    }

    fn build(&self, builder: &mut Builder) -> Result<WIPOffset<UnionWIPOffset>> {
        let data = self.data.as_ref().map(|data| data.build(builder)).transpose()?;
        let args = stored::ConstantNodeArgs {
            shape: Some(builder.fbb().create_vector(&self.shape)),
            data_type: self.data.as_ref().map_or(stored::ConstantData::NONE, ConstantData::tag),
            data,
            dtype: self.dtype.build(builder)?,
            data_offset: self.data_offset,
        };
        Ok(stored::ConstantNode::create(builder.fbb(), &args).as_union_value())
    }

    fn measure(&self, size: &mut Size) {
        size.table();
        size.words(self.shape.len());
        if let Some(data) = &self.data {
            data.measure(size);
        }
    }
}

/// Returns the dimensions of a shape as the format has them.
pub(crate) fn dims(shape: &Shape) -> Result<Vec<u32>> {
    let dim = |found: &u64| u32::try_from(*found).map_err(|_| Error::Dimension { found: *found });
    shape.dims().iter().map(dim).collect()
}

impl ConstantDataType {
    /// Returns what the format calls an element type.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] for one that constants have not.
    pub const fn from_dtype(dtype: DType) -> Result<Self> {
        match dtype {
            DType::I32 => Ok(Self::Int32),
            DType::F32 => Ok(Self::Float32),
            DType::I8 => Ok(Self::Int8),
            DType::U8 => Ok(Self::UInt8),
            found => Err(Error::DType { found }),
        }
    }
}

impl ConstantData {
    /// Takes little-endian elements of a type; `None` for an unknown type.
    #[must_use]
    pub fn new(dtype: ConstantDataType, elements: impl Into<Bytes>) -> Option<Self> {
        match dtype {
            ConstantDataType::Int32 => Some(Self::Int32(elements.into())),
            ConstantDataType::Float32 => Some(Self::Float(elements.into())),
            ConstantDataType::Int8 => Some(Self::Int8(elements.into())),
            ConstantDataType::UInt8 => Some(Self::UInt8(elements.into())),
            ConstantDataType::Unknown(_) => None,
        }
    }

    fn parse(constant: &stored::ConstantNode<'_>, model: &Bytes) -> Result<Option<Self>> {
        Ok(match constant.data_type() {
            stored::ConstantData::FloatData => constant
                .data_as_float_data()
                .map(|table| Self::Float(model.slice_ref(table.data().bytes()))),
            stored::ConstantData::Int32Data => constant
                .data_as_int_32_data()
                .map(|table| Self::Int32(model.slice_ref(table.data().bytes()))),
            stored::ConstantData::Int8Data => constant
                .data_as_int_8_data()
                .map(|table| Self::Int8(model.slice_ref(table.data().bytes()))),
            stored::ConstantData::UInt8Data => constant
                .data_as_uint_8_data()
                .map(|table| Self::UInt8(model.slice_ref(table.data().bytes()))),
            stored::ConstantData::NONE => None,
            stored::ConstantData(tag) => {
                let field = stored::ConstantNode::VT_DATA;
                unknown("constant data", tag, constant._tab, field, model)?.map(Self::Unknown)
            }
        })
    }

    const fn tag(&self) -> stored::ConstantData {
        match self {
            Self::Float(_) => stored::ConstantData::FloatData,
            Self::Int32(_) => stored::ConstantData::Int32Data,
            Self::Int8(_) => stored::ConstantData::Int8Data,
            Self::UInt8(_) => stored::ConstantData::UInt8Data,
            Self::Unknown(table) => stored::ConstantData(table.tag()),
        }
    }

    fn build(&self, builder: &mut Builder) -> Result<WIPOffset<UnionWIPOffset>> {
        Ok(match self {
            Self::Float(bytes) => {
                let args = stored::FloatDataArgs { data: Some(builder.words(bytes)?) };
                stored::FloatData::create(builder.fbb(), &args).as_union_value()
            }
            Self::Int32(bytes) => {
                let args = stored::Int32DataArgs { data: Some(builder.words(bytes)?) };
                stored::Int32Data::create(builder.fbb(), &args).as_union_value()
            }
            Self::Int8(bytes) => {
                let bytes = builder.fbb().create_vector::<u8>(bytes);
                let args = stored::Int8DataArgs { data: Some(WIPOffset::new(bytes.value())) };
                stored::Int8Data::create(builder.fbb(), &args).as_union_value()
            }
            Self::UInt8(bytes) => {
                let args =
                    stored::UInt8DataArgs { data: Some(builder.fbb().create_vector::<u8>(bytes)) };
                stored::UInt8Data::create(builder.fbb(), &args).as_union_value()
            }
            Self::Unknown(table) => builder.unknown(table)?,
        })
    }

    fn measure(&self, size: &mut Size) {
        size.table();
        match self {
            Self::Float(bytes) | Self::Int32(bytes) | Self::Int8(bytes) | Self::UInt8(bytes) => {
                size.bytes(bytes.len() as u64);
            }
            Self::Unknown(table) => size.unknown(table),
        }
    }
}

impl Value {
    /// Describes a value of a shape and an element type.
    #[must_use]
    pub fn new(shape: impl Into<Vec<Dim>>, dtype: DataType) -> Self {
        Self { shape: Some(shape.into()), dtype: Some(dtype) }
    }

    fn parse(value: &stored::ValueNode<'_>) -> Self {
        let shape = value.shape().map(|dims| dims.iter().map(|dim| Dim::parse(&dim)).collect());
        Self { shape, dtype: value.dtype().map(|dtype| DataType::from_code(dtype.0)) }
    }

    fn build(&self, builder: &mut Builder) -> Result<WIPOffset<UnionWIPOffset>> {
        let shape = self.shape.as_ref().map(|dims| {
            let dims: Vec<_> = dims.iter().map(|dim| dim.build(builder)).collect();
            builder.fbb().create_vector(&dims)
        });
        let args = stored::ValueNodeArgs { shape, dtype: self.dtype.build(builder)? };
        Ok(stored::ValueNode::create(builder.fbb(), &args).as_union_value())
    }

    fn measure(&self, size: &mut Size) {
        size.table();
        for dim in self.shape.iter().flatten() {
            size.table();
            if let Dim::Symbol(name) = dim {
                size.bytes(name.len() as u64);
            }
        }
    }
}

impl Dim {
    fn parse(dim: &stored::Dim<'_>) -> Self {
        dim.name().map_or_else(|| Self::Fixed(dim.value()), |name| Self::Symbol(name.to_owned()))
    }

    fn build(&self, builder: &mut Builder) -> WIPOffset<stored::Dim<'static>> {
        let args = match self {
            Self::Fixed(value) => stored::DimArgs { value: *value, name: None },
            Self::Symbol(name) => {
                stored::DimArgs { value: 0, name: Some(builder.fbb().create_string(name)) }
            }
        };
        stored::Dim::create(builder.fbb(), &args)
    }
}

impl From<u32> for Dim {
    fn from(elements: u32) -> Self {
        Self::Fixed(elements)
    }
}

impl From<&str> for Dim {
    fn from(symbol: &str) -> Self {
        Self::Symbol(symbol.to_owned())
    }
}

macro_rules! kinds {
    ($($kind:ident)*) => {$(
        impl From<$kind> for NodeKind {
            fn from(node: $kind) -> Self {
                Self::$kind(node)
            }
        }
    )*};
}

kinds! { Operator Constant Value }
