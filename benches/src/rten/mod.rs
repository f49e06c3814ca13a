//! RTen files: models as converters make them, in files of version 2.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result};
use rten_format::{
    Attributes, AutoPad, Constant, ConstantData, ConstantDataType, DataType, Dim, Graph, Header,
    Metadata, Model, Node, Operator, OperatorType, Value,
    attributes::{ConcatAttrs, ConvAttrs, HardSigmoidAttrs, ReduceMeanAttrs, ReshapeAttrs},
    tensor_core::Extent,
};

use crate::{Scale, fixture};

pub mod open;
#[allow(unsafe_code, warnings, reason = "flatc writes it so")]
#[path = "../../../crates/rten-format/src/generated/rten.rs"]
mod stored;
pub mod write;

/// A network in the making, of the size and with the names that exported image models have.
struct Network {
    nodes: Vec<Node>,
    /// Bytes of tensor data that the constants take so far.
    tensor_data: u64,
}

impl Network {
    /// Makes a model of convolutions, and the length of its tensor data in bytes: at full scale 1,214
    /// nodes and 20 MB.
    fn of_scale(scale: Scale) -> (Model, u64) {
        let stages = if scale == Scale::TEST { 8 } else { 118 };
        let mut network = Self { nodes: Vec::new(), tensor_data: 0 };
        let input = network.value("image", [3, 224, 224]);
        let mut last = input;
        for stage in 0..stages {
            last = network.stage(stage, last);
        }
        let metadata = Metadata {
            onnx_hash: Some("0f".repeat(32)),
            description: Some("Finds text in an image".to_owned()),
            ..Metadata::default()
        };
        let Self { nodes, tensor_data } = network;
        let graph = Graph { nodes, inputs: vec![input], outputs: vec![last], captures: vec![] };
        (Model { graph, metadata: Some(metadata) }, tensor_data)
    }

    fn stage(&mut self, stage: u64, input: u32) -> u32 {
        let at = format!("backbone.stages.{}.blocks.{}", stage / 8, stage % 8);
        let wide = self.conv(&format!("{at}.conv1"), input, [80, 60, 3, 3]);
        let active = self.operator(&format!("{at}.act"), OperatorType::Relu, None, [wide]);
        match stage % 4 {
            0 => self.attention(&at, active),
            1 => {
                let attributes = Some(ConcatAttrs { axis: 1 }.into());
                let inputs = [input, active];
                self.operator(&format!("{at}.cat"), OperatorType::Concat, attributes, inputs)
            }
            2 => {
                let shape = self.small(&format!("{at}.shape"), [0, 80, -1]);
                let attributes = Some(ReshapeAttrs { allow_zero: false }.into());
                let inputs = [active, shape];
                self.operator(&format!("{at}.view"), OperatorType::Reshape, attributes, inputs)
            }
            _ => self.operator(&format!("{at}.add"), OperatorType::Add, None, [input, active]),
        }
    }

    /// Weighs the channels by what is in all of them.
    fn attention(&mut self, at: &str, input: u32) -> u32 {
        let mean =
            ReduceMeanAttrs { axes: Some(vec![2, 3]), keep_dims: true, ..Default::default() };
        let mean = self.operator(
            &format!("{at}.se.avg"),
            OperatorType::ReduceMean,
            Some(mean.into()),
            [input],
        );
        let squeezed = self.conv(&format!("{at}.se.fc1"), mean, [20, 80, 1, 1]);
        let gate = HardSigmoidAttrs { alpha: 1.0 / 6.0, beta: 0.5 };
        let gate = self.operator(
            &format!("{at}.se.gate"),
            OperatorType::HardSigmoid,
            Some(gate.into()),
            [squeezed],
        );
        self.operator(&format!("{at}.se.mul"), OperatorType::Mul, None, [input, gate])
    }

    fn conv(&mut self, name: &str, input: u32, shape: [u32; 4]) -> u32 {
        let weight = self.large(&format!("{name}.weight"), &shape);
        let bias = self.large(&format!("{name}.bias"), &shape[..1]);
        let attributes = ConvAttrs {
            auto_pad: AutoPad::NotSet,
            pads: Some(vec![1; 4]),
            groups: 1,
            strides: Some(vec![1; 2]),
            dilations: Some(vec![1; 2]),
        };
        self.operator(name, OperatorType::Conv, Some(attributes.into()), [input, weight, bias])
    }

    /// Adds an operator behind the value that it makes, and returns that.
    fn operator(
        &mut self,
        name: &str,
        operator_type: OperatorType,
        attributes: Option<Attributes>,
        inputs: impl IntoIterator<Item = u32>,
    ) -> u32 {
        let name = format!("/{}/{operator_type:?}", name.replace('.', "/"));
        let output = self.value(&format!("{name}_output_0"), [80, 56, 56]);
        let operator = Operator {
            operator_type,
            attributes,
            inputs: inputs.into_iter().map(Some).collect(),
            outputs: vec![Some(output)],
        };
        self.push(Node::named(name, operator));
        output
    }

    fn value(&mut self, name: &str, dims: [u32; 3]) -> u32 {
        let batch = Dim::Symbol("batch".to_owned());
        let shape = [batch].into_iter().chain(dims.map(Dim::Fixed)).collect();
        self.push(Node::named(name, Value { shape: Some(shape), dtype: Some(DataType::Float) }))
    }

    /// Adds a constant in the tensor data.
    fn large(&mut self, name: &str, shape: &[u32]) -> u32 {
        let bytes = shape.iter().map(|dim| u64::from(*dim)).product::<u64>() * 4;
        let data_offset = self.tensor_data.next_multiple_of(ALIGNMENT);
        self.tensor_data = data_offset + bytes;
        let constant = Constant::described(shape, ConstantDataType::Float32);
        self.push(Node::named(name, Constant { data_offset: Some(data_offset), ..constant }))
    }

    /// Adds a constant in the model data.
    fn small(&mut self, name: &str, values: [i32; 3]) -> u32 {
        let bytes: Vec<u8> = values.into_iter().flat_map(i32::to_le_bytes).collect();
        let data = Some(ConstantData::Int32(bytes.into()));
        let constant = Constant::described([3], ConstantDataType::Int32);
        self.push(Node::named(name, Constant { data, ..constant }))
    }

    fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        // A network has thousands of nodes.
        (self.nodes.len() - 1) as u32
    }
}

/// Writes a file of version 2 as converters lay it out. Tensor data beyond `stored` bytes is a hole
/// in the file.
fn write(path: &Path, model: &Model, tensor_data: u64, stored: u64) -> Result<()> {
    let model_data = model.to_bytes()?;
    let extent = Extent::new(Header::LEN, model_data.len() as u64)?;
    let tensor_data_offset = extent.end().next_multiple_of(ALIGNMENT);
    let header = Header { model_data: extent, tensor_data_offset };
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&header.to_bytes())?;
    file.write_all(&model_data)?;
    file.write_all(&vec![0; usize::try_from(tensor_data_offset - extent.end())?])?;
    file.write_all(&fixture::elements(usize::try_from(stored)?))?;
    let file = file.into_inner().context("flush")?;
    Ok(file.set_len(tensor_data_offset + tensor_data)?)
}

/// Writes a model with tensor data of so many bytes, and a tensor of 4 GiB behind it, as holes.
fn write_huge(path: &Path, mut model: Model, tensor_data: u64) -> Result<()> {
    let data_offset = tensor_data.next_multiple_of(ALIGNMENT);
    let table = Constant::described([1 << 20, 1 << 10], ConstantDataType::Float32);
    let table = Constant { data_offset: Some(data_offset), ..table };
    model.graph.nodes.push(Node::named("embedding.weight", table));
    write(path, &model, data_offset + (4 << 30), 0)
}

/// Bytes on which tensor data and each tensor in it start.
const ALIGNMENT: u64 = 64;
