//! One model, written into tables: the way back of [`read`](super::read).

use bytes::Bytes;
use flat_tables::Bounds;
use flatbuffers::{Table, VOffsetT, WIPOffset};

use super::{
    encode::{Encoder, TableList, unknown},
    malformed,
};
use crate::{
    Result, WriteFault,
    generated::{self, circle as stored},
    model::{
        Buffer, CompressionType, DataFormat, ExternalBuffer, Metadata, Model, Operator,
        OperatorCode, Quantization, QuantizationDetails, Schema, Signature, SignatureTensor,
        SparseIndices, SparseLevel, Sparsity, Subgraph, Tensor, VariantSubtype,
    },
};

/// Returns the tables of a model without the bytes of its buffers, and what is to be filled in.
pub(crate) fn tables(model: &Model, buffers: &[Placed]) -> Result<(Vec<u8>, Places)> {
    let mut encoder = Encoder::new(model.schema);
    let buffers: Vec<_> = model.buffers.iter().zip(buffers.iter().copied()).collect();
    match model.schema {
        Schema::Circle => {
            let root = circle::model(model, &buffers, &mut encoder);
            let root = root.map_err(|fault| encoder.failed(fault))?;
            let tables = encoder.finish(root, "CIR0");
            let places = generated::circle_model(&tables, BOUNDS).map(|root| circle::places(&root));
            let places = places.map_err(malformed)?;
            Ok((tables, places))
        }
        Schema::Tflite => {
            let root = tflite::model(model, &buffers, &mut encoder);
            let root = root.map_err(|fault| encoder.failed(fault))?;
            let tables = encoder.finish(root, "TFL3");
            let places = generated::tflite_model(&tables, BOUNDS).map(|root| tflite::places(&root));
            let places = places.map_err(malformed)?;
            Ok((tables, places))
        }
    }
}

/// Where the bytes of a buffer go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Nowhere: there are none.
    Nowhere,
    /// Behind the tables, as a list that the table of the buffer refers to.
    Inline,
    /// Behind all that is referred to, by an offset from the start of the file.
    Outside {
        /// How many there are.
        size: u64,
    },
}

/// Fields of built tables that are to be filled in, as positions in bytes from the start.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// For each buffer its reference to a list of bytes, or its offset; `None` without bytes.
    pub(crate) buffers: Vec<Option<usize>>,
    /// For each operator of each graph the offset of its large custom options; `None` without any.
    pub(crate) options: Vec<Vec<Option<usize>>>,
}

type Built<T> = Result<WIPOffset<T>, WriteFault>;

/// Makes the writers of the tables that differ between the schemas. What one has for itself is
/// written by the functions in the braces.
macro_rules! writers {
    ($schema:ident:
        $Model:ident $ModelArgs:ident $SubGraph:ident $SubGraphArgs:ident
        $Tensor:ident $TensorArgs:ident $Quantization:ident $QuantizationArgs:ident $Details:ident
        { $($own:item)* }
    ) => {
        mod $schema {
            use super::*;

            pub(super) fn model(
                model: &Model,
                buffers: &[(&Buffer, Placed)],
                out: &mut Encoder,
            ) -> Built<stored::$Model<'static>> {
                let mut args = stored::$ModelArgs { version: model.version, ..Default::default() };
                model_rest(model, out, &mut args)?;
                args.signature_defs =
                    out.some_tables("signature", &model.signatures, signature)?;
                args.metadata = out.some_tables("metadata", &model.metadata, metadata)?;
                args.metadata_buffer = out.write_some(&model.metadata_buffer)?;
                args.buffers = self::buffers(buffers, out)?;
                args.description = out.write(&model.description)?;
                args.subgraphs = out.tables("subgraph", &model.subgraphs, subgraph)?;
                args.operator_codes =
                    out.tables("operator code", &model.operator_codes, operator_code)?;
                Ok(stored::$Model::create(out.table()?, &args))
            }

            pub(super) fn places(model: &stored::$Model<'_>) -> Places {
                let buffers = model.buffers().into_iter().flatten().map(|buffer| {
                    let data = place(buffer._tab, stored::Buffer::VT_DATA);
                    data.or_else(|| place(buffer._tab, stored::Buffer::VT_OFFSET))
                });
                let options = model.subgraphs().into_iter().flatten().map(|graph| {
                    let operators = graph.operators().into_iter().flatten();
                    let field = stored::Operator::VT_LARGE_CUSTOM_OPTIONS_OFFSET;
                    operators.map(|operator| place(operator._tab, field)).collect()
                });
                Places { buffers: buffers.collect(), options: options.collect() }
            }

            #[allow(clippy::needless_update, reason = "one schema has a field of its own")]
            fn subgraph(graph: &Subgraph, out: &mut Encoder) -> Built<stored::$SubGraph<'static>> {
                let mut args = stored::$SubGraphArgs {
                    tensors: out.tables("tensor", &graph.tensors, tensor)?,
                    inputs: out.write(&graph.inputs)?,
                    outputs: out.write(&graph.outputs)?,
                    operators: out.tables("operator", &graph.operators, operator)?,
                    name: out.write(&graph.name)?,
                    debug_metadata_index: graph.debug_metadata_index,
                    ..Default::default()
                };
                subgraph_rest(graph, out, &mut args)?;
                Ok(stored::$SubGraph::create(out.table()?, &args))
            }

            fn tensor(tensor: &Tensor, out: &mut Encoder) -> Built<stored::$Tensor<'static>> {
                let mut args = stored::$TensorArgs {
                    type_: out.write(&tensor.tensor_type)?,
                    buffer: tensor.buffer,
                    name: out.write(&tensor.name)?,
                    quantization: tensor
                        .quantization
                        .as_ref()
                        .map(|found| quantized(found, out))
                        .transpose()?,
                    is_variable: tensor.is_variable,
                    sparsity: tensor
                        .sparsity
                        .as_ref()
                        .map(|found| sparse(found, out))
                        .transpose()?,
                    shape_signature: out.write(&tensor.shape_signature)?,
                    has_rank: tensor.has_rank,
                    variant_tensors: out.some_tables(
                        "variant",
                        &tensor.variant_tensors,
                        variant,
                    )?,
                    ..Default::default()
                };
                if !tensor.is_unshaped || !tensor.shape.is_empty() {
                    args.shape = out.write(&tensor.shape)?;
                }
                tensor_rest(tensor, out, &mut args)?;
                Ok(stored::$Tensor::create(out.table()?, &args))
            }

            fn quantized(
                quantization: &Quantization,
                out: &mut Encoder,
            ) -> Built<stored::$Quantization<'static>> {
                let mut args = stored::$QuantizationArgs {
                    min: out.write_some(&quantization.min)?,
                    max: out.write_some(&quantization.max)?,
                    scale: out.write_some(&quantization.scale)?,
                    zero_point: out.write_some(&quantization.zero_point)?,
                    quantized_dimension: quantization.quantized_dimension,
                    ..Default::default()
                };
                if let Some(found) = &quantization.details {
                    let (tag, table) = details(found, out)?;
                    args.details_type = stored::$Details(tag);
                    args.details = Some(WIPOffset::new(table));
                }
                Ok(stored::$Quantization::create(out.table()?, &args))
            }

            $($own)*
        }
    };
}

writers! { circle:
    Model ModelArgs SubGraph SubGraphArgs Tensor TensorArgs QuantizationParameters
    QuantizationParametersArgs QuantizationDetails
{
    fn model_rest(
        model: &Model,
        out: &mut Encoder,
        _: &mut stored::ModelArgs<'_>,
    ) -> Result<(), WriteFault> {
        let is_circle = model.external_groups.is_empty() && model.external_buffers.is_empty();
        out.only(is_circle, "buffers in other files")
    }

    fn subgraph_rest(
        graph: &Subgraph,
        _: &Encoder,
        args: &mut stored::SubGraphArgs<'_>,
    ) -> Result<(), WriteFault> {
        args.data_format = stored::DataFormat(graph.data_format.code());
        Ok(())
    }

    fn tensor_rest(
        tensor: &Tensor,
        out: &Encoder,
        args: &mut stored::TensorArgs<'_>) -> Result<(), WriteFault> {
        args.compression_type = stored::CompressionType(tensor.compression.code());
        out.only(tensor.external_buffer == 0, "a buffer in another file")
    }

    fn details(
        details: &QuantizationDetails,
        out: &mut Encoder,
    ) -> Result<(u8, u32), WriteFault> {
        Ok(match details {
            QuantizationDetails::Custom(custom) => {
                let args = stored::CustomQuantizationArgs { custom: out.write(custom)? };
                (1, stored::CustomQuantization::create(out.table()?, &args).value())
            }
            QuantizationDetails::Mx { axis } => {
                let args = stored::MXQuantizationArgs { axis: *axis };
                (2, stored::MXQuantization::create(out.table()?, &args).value())
            }
            QuantizationDetails::Blockwise { scales, zero_points, block_size, block_shape } => {
                out.only(block_shape.is_empty(), "a shape of blocks")?;
                let args = stored::BlockwiseQuantizationArgs {
                    scales: *scales,
                    zero_points: *zero_points,
                    block_size: *block_size,
                };
                (3, stored::BlockwiseQuantization::create(out.table()?, &args).value())
            }
            QuantizationDetails::MultiAxis { .. } => {
                return Err(out.missing("quantization over several dimensions"));
            }
            QuantizationDetails::Unknown(table) => {
                return Err(unknown("quantization details", table));
            }
        })
    }
} }

writers! { tflite:
    TfliteModel TfliteModelArgs TfliteSubGraph TfliteSubGraphArgs TfliteTensor TfliteTensorArgs
    TfliteQuantizationParameters TfliteQuantizationParametersArgs TfliteQuantizationDetails
{
    fn model_rest(
        model: &Model,
        out: &mut Encoder,
        args: &mut stored::TfliteModelArgs<'_>,
    ) -> Result<(), WriteFault> {
        args.external_buffer_groups =
            out.some_tables("external group", &model.external_groups, group)?;
        args.external_buffers =
            out.some_tables("external buffer", &model.external_buffers, external)?;
        Ok(())
    }

    fn group(
        name: &Option<String>,
        out: &mut Encoder,
    ) -> Built<stored::ExternalBufferGroup<'static>> {
        let args = stored::ExternalBufferGroupArgs { name: out.write(name)? };
        Ok(stored::ExternalBufferGroup::create(out.table()?, &args))
    }

    fn external(
        buffer: &ExternalBuffer,
        out: &mut Encoder,
    ) -> Built<stored::ExternalBuffer<'static>> {
        let args = stored::ExternalBufferArgs {
            id: buffer.id,
            group: buffer.group,
            offset: buffer.offset,
            length: buffer.len,
            packing: out.write(&buffer.packing)?,
        };
        Ok(stored::ExternalBuffer::create(out.table()?, &args))
    }

    fn subgraph_rest(
        graph: &Subgraph,
        out: &Encoder,
        _: &mut stored::TfliteSubGraphArgs<'_>,
    ) -> Result<(), WriteFault> {
        let is_usual = graph.data_format == DataFormat::CHANNELS_LAST;
        out.only(is_usual, "a place of the channels")
    }

    fn tensor_rest(
        tensor: &Tensor,
        out: &Encoder,
        args: &mut stored::TfliteTensorArgs<'_>) -> Result<(), WriteFault> {
        args.external_buffer = tensor.external_buffer;
        out.only(tensor.compression == CompressionType::NONE, "compressed elements")
    }

    fn details(
        details: &QuantizationDetails,
        out: &mut Encoder,
    ) -> Result<(u8, u32), WriteFault> {
        Ok(match details {
            QuantizationDetails::Custom(custom) => {
                let args = stored::CustomQuantizationArgs { custom: out.write(custom)? };
                (1, stored::CustomQuantization::create(out.table()?, &args).value())
            }
            QuantizationDetails::Blockwise { scales, zero_points, block_size, block_shape } => {
                let args = stored::TfliteBlockwiseQuantizationArgs {
                    scales: *scales,
                    zero_points: *zero_points,
                    block_size: *block_size,
                    block_shape: out.write_some(block_shape)?,
                };
                (2, stored::TfliteBlockwiseQuantization::create(out.table()?, &args).value())
            }
            QuantizationDetails::MultiAxis {
                scales,
                zero_points,
                block_size,
                quantized_dimensions,
            } => {
                let args = stored::MultiAxisQuantizationArgs {
                    scales: *scales,
                    zero_points: *zero_points,
                    block_size: *block_size,
                    quantized_dimensions: out.write(quantized_dimensions)?,
                };
                (3, stored::MultiAxisQuantization::create(out.table()?, &args).value())
            }
            QuantizationDetails::Mx { .. } => {
                return Err(out.missing("quantization by MX blocks"));
            }
            QuantizationDetails::Unknown(table) => {
                return Err(unknown("quantization details", table));
            }
        })
    }
} }

fn operator_code(code: &OperatorCode, out: &mut Encoder) -> Built<stored::OperatorCode<'static>> {
    let args = stored::OperatorCodeArgs {
        deprecated_builtin_code: code.deprecated_builtin_code,
        custom_code: out.write(&code.custom_code)?,
        version: code.version,
        builtin_code: out.write(&code.builtin_code)?,
    };
    Ok(stored::OperatorCode::create(out.table()?, &args))
}

fn variant(variant: &VariantSubtype, out: &mut Encoder) -> Built<stored::VariantSubType<'static>> {
    let shape = &variant.shape;
    let args = stored::VariantSubTypeArgs {
        shape: if variant.has_rank { out.write(shape) } else { out.write_some(shape) }?,
        type_: out.write(&variant.tensor_type)?,
        has_rank: variant.has_rank,
    };
    Ok(stored::VariantSubType::create(out.table()?, &args))
}

fn sparse(sparsity: &Sparsity, out: &mut Encoder) -> Built<stored::SparsityParameters<'static>> {
    let args = stored::SparsityParametersArgs {
        traversal_order: out.write(&sparsity.traversal_order)?,
        block_map: out.write_some(&sparsity.block_map)?,
        dim_metadata: out.tables("sparse level", &sparsity.levels, level)?,
    };
    Ok(stored::SparsityParameters::create(out.table()?, &args))
}

fn level(level: &SparseLevel, out: &mut Encoder) -> Built<stored::DimensionMetadata<'static>> {
    let mut args = stored::DimensionMetadataArgs {
        format: out.write(&level.format)?,
        dense_size: level.dense_size,
        ..Default::default()
    };
    if let Some(segments) = &level.segments {
        let (tag, table) = indices(segments, out)?;
        args.array_segments_type = stored::SparseIndexVector(tag);
        args.array_segments = Some(WIPOffset::new(table));
    }
    if let Some(found) = &level.indices {
        let (tag, table) = indices(found, out)?;
        args.array_indices_type = stored::SparseIndexVector(tag);
        args.array_indices = Some(WIPOffset::new(table));
    }
    Ok(stored::DimensionMetadata::create(out.table()?, &args))
}

/// Returns the number of a table in its union, and where it was built.
fn indices(indices: &SparseIndices, out: &mut Encoder) -> Result<(u8, u32), WriteFault> {
    Ok(match indices {
        SparseIndices::I32(numbers) => {
            let args = stored::Int32VectorArgs { values: out.write(numbers)? };
            (1, stored::Int32Vector::create(out.table()?, &args).value())
        }
        SparseIndices::U16(numbers) => {
            let args = stored::Uint16VectorArgs { values: out.write(numbers)? };
            (2, stored::Uint16Vector::create(out.table()?, &args).value())
        }
        SparseIndices::U8(numbers) => {
            let args = stored::Uint8VectorArgs { values: out.write(numbers)? };
            (3, stored::Uint8Vector::create(out.table()?, &args).value())
        }
        SparseIndices::Unknown(table) => {
            return Err(unknown("numbers of a sparse level", table));
        }
    })
}

fn operator(operator: &Operator, out: &mut Encoder) -> Built<stored::Operator<'static>> {
    let mut args = stored::OperatorArgs {
        opcode_index: operator.opcode_index,
        inputs: out.write(&operator.inputs)?,
        outputs: out.write(&operator.outputs)?,
        custom_options: out.write(&operator.custom_options)?,
        custom_options_format: out.write(&operator.custom_options_format)?,
        mutating_variable_inputs: out.write_some(&operator.mutating_variable_inputs)?,
        intermediates: out.write_some(&operator.intermediates)?,
        large_custom_options_offset: operator.large_custom_options_offset,
        large_custom_options_size: operator.large_custom_options_size,
        debug_metadata_index: operator.debug_metadata_index,
        ..Default::default()
    };
    if let Some(options) = &operator.options {
        let (tag, table) = options.to_stored(out)?;
        (args.builtin_options_type, args.builtin_options) = (tag, Some(table));
    }
    if let Some(options) = &operator.options_2 {
        let (tag, table) = options.to_stored(out)?;
        (args.builtin_options_2_type, args.builtin_options_2) = (tag, Some(table));
    }
    Ok(stored::Operator::create(out.table()?, &args))
}

fn buffers(
    buffers: &[(&Buffer, Placed)],
    out: &mut Encoder,
) -> Result<Option<TableList<stored::Buffer<'static>>>, WriteFault> {
    // What all references lead to until they are filled in.
    let has_inline = buffers.iter().any(|(_, placed)| *placed == Placed::Inline);
    let nothing = out.write(&has_inline.then(Bytes::new))?;
    out.tables("buffer", buffers, |(buffer, placed), out| {
        let (data, offset, size) = match *placed {
            Placed::Nowhere => (None, buffer.offset, buffer.size),
            Placed::Inline => (nothing, 0, 0),
            Placed::Outside { size } => (None, u64::MAX, size),
        };
        let args = stored::BufferArgs { data, offset, size };
        Ok(stored::Buffer::create(out.table()?, &args))
    })
}

fn metadata(metadata: &Metadata, out: &mut Encoder) -> Built<stored::Metadata<'static>> {
    let (name, buffer) = (out.write(&metadata.name)?, metadata.buffer);
    let args = stored::MetadataArgs { name, buffer };
    Ok(stored::Metadata::create(out.table()?, &args))
}

fn signature(signature: &Signature, out: &mut Encoder) -> Built<stored::SignatureDef<'static>> {
    let args = stored::SignatureDefArgs {
        inputs: out.tables("input", &signature.inputs, signature_tensor)?,
        outputs: out.tables("output", &signature.outputs, signature_tensor)?,
        signature_key: out.write(&signature.key)?,
        tag: out.write(&signature.tag)?,
        subgraph_index: signature.subgraph_index,
    };
    Ok(stored::SignatureDef::create(out.table()?, &args))
}

fn signature_tensor(
    tensor: &SignatureTensor,
    out: &mut Encoder,
) -> Built<stored::TensorMap<'static>> {
    let (name, tensor_index) = (out.write(&tensor.name)?, tensor.tensor_index);
    let args = stored::TensorMapArgs { name, tensor_index };
    Ok(stored::TensorMap::create(out.table()?, &args))
}

/// Returns where a field of a table is; `None` where it is absent.
fn place(table: Table<'_>, field: VOffsetT) -> Option<usize> {
    let at = usize::from(table.vtable().get(field));
    (at > 0).then(|| table.loc().saturating_add(at))
}

/// What was just built is proved as files are.
const BOUNDS: Bounds = Bounds { depth: 64, tables: usize::MAX, apparent_size: usize::MAX };
