//! RTen models that cover what the writers can do, each as small as it shows that.

use anyhow::Result;
use rten_format::{
    Attributes, Constant, ConstantDataType, DataType, GraphBuilder, Metadata, Model, OperatorType,
    Reader, Rewrite, Value, WriteOptions, Writer,
    attributes::{ConcatAttrs, GemmAttrs, IfAttrs, SoftmaxAttrs},
    tensor_core::TensorBuf,
};

use super::Golden;

pub(super) fn goldens() -> Vec<Golden> {
    let golden = |path, make| Golden { path, make };
    vec![
        golden("rten/golden/empty.v1.rten", || Ok(Model::default().to_bytes()?)),
        golden("rten/golden/empty.v2.rten", || {
            Ok(Writer::new(Vec::new(), &Model::default())?.finish()?)
        }),
        golden("rten/golden/model.v2.rten", || written(WriteOptions::default())),
        golden("rten/golden/inline.v2.rten", || {
            written(WriteOptions::default().inline_elements(u64::MAX))
        }),
        golden("rten/golden/external.v2.rten", || {
            written(WriteOptions::default().inline_elements(0).alignment(256))
        }),
        golden("rten/golden/model.v1.rten", || {
            let reader = Reader::from_bytes(written(WriteOptions::default())?)?;
            Ok(Rewrite::new(&reader).to_v1_bytes()?)
        }),
        golden("rten/golden/wrapped.v2.rten", || {
            let reader = Reader::from_bytes(written(WriteOptions::default())?)?;
            let first = Reader::from_bytes(Rewrite::new(&reader).to_v1_bytes()?)?;
            Ok(Rewrite::new(&first).write_wrapped(Vec::new())?)
        }),
        golden("rten/golden/part.v2.rten", || {
            let reader = Reader::from_bytes(written(WriteOptions::default())?)?;
            let part = reader.model().extract(&[], &[HIDDEN])?;
            Ok(Rewrite::new(&reader).model(part).write_v2(Vec::new())?)
        }),
    ]
}

fn written(options: WriteOptions) -> Result<Vec<u8>> {
    let mut writer = options.write_to(Vec::new(), &model()?)?;
    writer.add(&[7; 20])?;
    Ok(writer.finish()?)
}

/// The id of the value between the two halves of the model.
const HIDDEN: u32 = 6;

/// A Gemm, and an If whose branches capture what it makes.
fn model() -> Result<Model> {
    let mut graph = GraphBuilder::new();
    let weights: Vec<f32> = (0..24_u8).map(|n| f32::from(n) / 8.0).collect();
    let weights = Constant::from_tensor(&TensorBuf::from_slice([4, 6], &weights)?)?;
    let weights = graph.constant("weights", weights)?;
    let bias = Constant::from_tensor(&TensorBuf::from_slice([6], &[0.5_f32; 6])?)?;
    let bias = graph.constant("bias", bias)?;
    let table = graph.constant("table", Constant::described([20], ConstantDataType::UInt8))?;
    let condition = graph.input("condition", Value::new([], DataType::Int32))?;
    let input = graph.input("x", Value::new(["batch".into(), 4.into()], DataType::Float))?;
    let output = graph.value("y", Value::new(["batch".into(), 6.into()], DataType::Float))?;
    let hidden = graph.value("hidden", Value::default())?;
    let gemm = GemmAttrs { alpha: 1.0, beta: 1.0, ..GemmAttrs::default() };
    let inputs = [Some(input), Some(weights), Some(bias)];
    graph.operator("gemm", OperatorType::Gemm, Some(gemm.into()), &inputs, &[Some(hidden)])?;
    let branches = IfAttrs {
        then_branch: Some(Box::new(branch(
            OperatorType::Softmax,
            Some(SoftmaxAttrs { axis: -1 }.into()),
        )?)),
        else_branch: Some(Box::new(branch(OperatorType::Relu, None)?)),
    };
    let inputs = [Some(condition)];
    graph.operator("if", OperatorType::If, Some(branches.into()), &inputs, &[Some(output)])?;
    graph.output(output)?;
    graph.output(table)?;
    let metadata = Metadata {
        description: Some("Everything that a writer may have to write".to_owned()),
        license: Some("MIT".to_owned()),
        ..Metadata::default()
    };
    Ok(Model { graph: graph.finish(), metadata: Some(metadata) })
}

/// A branch with a constant of its own and an input that is left out.
fn branch(operator: OperatorType, attributes: Option<Attributes>) -> Result<rten_format::Graph> {
    let mut graph = GraphBuilder::new();
    let hidden = graph.capture("hidden", Value::default())?;
    let more = Constant::from_tensor(&TensorBuf::from_slice([0, 6], &[0.0_f32; 0])?)?;
    let more = graph.constant(format!("{operator}.more"), more)?;
    let joined = graph.value(format!("{operator}.joined"), Value::default())?;
    let output = graph.value(format!("{operator}.y"), Value::default())?;
    let concat = Some(ConcatAttrs { axis: 0 }.into());
    let inputs = [Some(hidden), Some(more)];
    graph.operator("", OperatorType::Concat, concat, &inputs, &[Some(joined)])?;
    graph.operator("", operator, attributes, &[Some(joined)], &[Some(output)])?;
    graph.output(output)?;
    Ok(graph.finish())
}
