//! The tables, read into one model.

use flatbuffers::VOffsetT;

use super::scan::Scan;
use crate::{
    Result,
    generated::circle as stored,
    model::{
        Buffer, BuiltinOptions, BuiltinOptions2, ExternalBuffer, Metadata, Model, Operator,
        OperatorCode, Quantization, QuantizationDetails, Schema, Signature, SignatureTensor,
        SparseIndices, SparseLevel, Sparsity, Subgraph, Tensor, VariantSubtype,
    },
};

/// Makes the readers of the tables that differ between the schemas. What one has for itself is read
/// by the functions in the braces.
macro_rules! readers {
    ($schema:ident $variant:ident:
        $Model:ident $SubGraph:ident $Tensor:ident $Quantization:ident { $($own:item)* }
    ) => {
        pub(super) mod $schema {
            use super::*;

            pub(in crate::tables) fn model(
                model: &stored::$Model<'_>,
                scan: &Scan<'_>,
            ) -> Result<Model> {
                scan.table(model._tab, LAST_OF_MODEL);
                let mut read = Model {
                    schema: Schema::$variant,
                    version: model.version(),
                    operator_codes: scan.tables(model.operator_codes(), operator_code)?,
                    subgraphs: scan.tables(model.subgraphs(), subgraph)?,
                    description: scan.read(model.description()),
                    buffers: scan.tables(model.buffers(), buffer)?,
                    metadata_buffer: scan.read(model.metadata_buffer()),
                    metadata: scan.tables(model.metadata(), metadata)?,
                    signatures: scan.tables(model.signature_defs(), signature)?,
                    external_groups: Vec::new(),
                    external_buffers: Vec::new(),
                };
                model_rest(model, scan, &mut read)?;
                Ok(read)
            }

            fn subgraph(subgraph: stored::$SubGraph<'_>, scan: &Scan<'_>) -> Result<Subgraph> {
                scan.table(subgraph._tab, stored::$SubGraph::VT_DEBUG_METADATA_INDEX);
                let mut read = Subgraph {
                    tensors: scan.tables(subgraph.tensors(), tensor)?,
                    inputs: scan.read(subgraph.inputs()),
                    outputs: scan.read(subgraph.outputs()),
                    operators: scan.tables(subgraph.operators(), operator)?,
                    name: scan.read(subgraph.name()),
                    debug_metadata_index: subgraph.debug_metadata_index(),
                    ..Subgraph::default()
                };
                subgraph_rest(&subgraph, scan, &mut read);
                Ok(read)
            }

            fn tensor(tensor: stored::$Tensor<'_>, scan: &Scan<'_>) -> Result<Tensor> {
                scan.table(tensor._tab, LAST_OF_TENSOR);
                let quantization = tensor.quantization();
                let sparsity = tensor.sparsity();
                let mut read = Tensor {
                    shape: scan.read(tensor.shape()),
                    is_unshaped: tensor.shape().is_none(),
                    tensor_type: scan.read(tensor.type_()),
                    buffer: tensor.buffer(),
                    name: scan.read(tensor.name()),
                    quantization: quantization
                        .map(|found| quantized(found, scan).map(Box::new))
                        .transpose()?,
                    is_variable: tensor.is_variable(),
                    sparsity: sparsity
                        .map(|found| sparse(found, scan).map(Box::new))
                        .transpose()?,
                    shape_signature: scan.read(tensor.shape_signature()),
                    has_rank: tensor.has_rank(),
                    variant_tensors: scan.tables(tensor.variant_tensors(), variant)?,
                    ..Tensor::default()
                };
                tensor_rest(&tensor, scan, &mut read);
                Ok(read)
            }

            fn quantized(
                quantization: stored::$Quantization<'_>,
                scan: &Scan<'_>,
            ) -> Result<Quantization> {
                scan.table(quantization._tab, stored::$Quantization::VT_QUANTIZED_DIMENSION);
                Ok(Quantization {
                    min: scan.read(quantization.min()),
                    max: scan.read(quantization.max()),
                    scale: scan.read(quantization.scale()),
                    zero_point: scan.read(quantization.zero_point()),
                    details: details(&quantization, scan)?,
                    quantized_dimension: quantization.quantized_dimension(),
                })
            }

            fn unknown_quantization(
                tag: u8,
                quantization: &stored::$Quantization<'_>,
                scan: &Scan<'_>,
            ) -> Result<Option<QuantizationDetails>> {
                let field = stored::$Quantization::VT_DETAILS;
                let found = scan.unknown("quantization details", tag, quantization._tab, field)?;
                Ok(found.map(QuantizationDetails::Unknown))
            }

            $($own)*
        }
    };
}

readers! { circle Circle: Model SubGraph Tensor QuantizationParameters {
    const LAST_OF_MODEL: VOffsetT = stored::Model::VT_SIGNATURE_DEFS;
    const LAST_OF_TENSOR: VOffsetT = stored::Tensor::VT_COMPRESSION_TYPE;

    #[expect(clippy::unnecessary_wraps, reason = "the other schema has tables here")]
    fn model_rest(_: &stored::Model<'_>, _: &Scan<'_>, _: &mut Model) -> Result<()> {
        Ok(())
    }

    fn subgraph_rest(subgraph: &stored::SubGraph<'_>, scan: &Scan<'_>, read: &mut Subgraph) {
        read.data_format = scan.read(subgraph.data_format());
    }

    fn tensor_rest(tensor: &stored::Tensor<'_>, scan: &Scan<'_>, read: &mut Tensor) {
        read.compression = scan.read(tensor.compression_type());
    }

    fn details(
        quantization: &stored::QuantizationParameters<'_>,
        scan: &Scan<'_>,
    ) -> Result<Option<QuantizationDetails>> {
        Ok(match quantization.details_type().0 {
            0 => None,
            1 => quantization
                .details_as_custom_quantization()
                .map(|table| custom_quantization(&table, scan)),
            2 => quantization.details_as_mxquantization().map(|table| {
                scan.table(table._tab, stored::MXQuantization::VT_AXIS);
                QuantizationDetails::Mx { axis: table.axis() }
            }),
            3 => quantization.details_as_blockwise_quantization().map(|table| {
                scan.table(table._tab, stored::BlockwiseQuantization::VT_BLOCK_SIZE);
                QuantizationDetails::Blockwise {
                    scales: table.scales(),
                    zero_points: table.zero_points(),
                    block_size: table.block_size(),
                    block_shape: Vec::new(),
                }
            }),
            tag => unknown_quantization(tag, quantization, scan)?,
        })
    }
} }

readers! { tflite Tflite:
    TfliteModel TfliteSubGraph TfliteTensor TfliteQuantizationParameters
{
    const LAST_OF_MODEL: VOffsetT = stored::TfliteModel::VT_EXTERNAL_BUFFERS;
    const LAST_OF_TENSOR: VOffsetT = stored::TfliteTensor::VT_EXTERNAL_BUFFER;

    fn model_rest(model: &stored::TfliteModel<'_>, scan: &Scan<'_>, read: &mut Model) -> Result<()> {
        read.external_groups = scan.tables(model.external_buffer_groups(), |group, scan| {
            scan.table(group._tab, stored::ExternalBufferGroup::VT_NAME);
            Ok(scan.read(group.name()))
        })?;
        read.external_buffers = scan.tables(model.external_buffers(), |buffer, scan| {
            scan.table(buffer._tab, stored::ExternalBuffer::VT_PACKING);
            Ok(ExternalBuffer {
                id: buffer.id(),
                group: buffer.group(),
                offset: buffer.offset(),
                len: buffer.length(),
                packing: scan.read(buffer.packing()),
            })
        })?;
        Ok(())
    }

    fn subgraph_rest(_: &stored::TfliteSubGraph<'_>, _: &Scan<'_>, _: &mut Subgraph) {}

    fn tensor_rest(tensor: &stored::TfliteTensor<'_>, _: &Scan<'_>, read: &mut Tensor) {
        read.external_buffer = tensor.external_buffer();
    }

    fn details(
        quantization: &stored::TfliteQuantizationParameters<'_>,
        scan: &Scan<'_>,
    ) -> Result<Option<QuantizationDetails>> {
        Ok(match quantization.details_type().0 {
            0 => None,
            1 => quantization
                .details_as_custom_quantization()
                .map(|table| custom_quantization(&table, scan)),
            2 => quantization.details_as_tflite_blockwise_quantization().map(|table| {
                scan.table(table._tab, stored::TfliteBlockwiseQuantization::VT_BLOCK_SHAPE);
                QuantizationDetails::Blockwise {
                    scales: table.scales(),
                    zero_points: table.zero_points(),
                    block_size: table.block_size(),
                    block_shape: scan.read(table.block_shape()),
                }
            }),
            3 => quantization.details_as_multi_axis_quantization().map(|table| {
                scan.table(table._tab, stored::MultiAxisQuantization::VT_QUANTIZED_DIMENSIONS);
                QuantizationDetails::MultiAxis {
                    scales: table.scales(),
                    zero_points: table.zero_points(),
                    block_size: table.block_size(),
                    quantized_dimensions: scan.read(table.quantized_dimensions()),
                }
            }),
            tag => unknown_quantization(tag, quantization, scan)?,
        })
    }
} }

fn operator_code(code: stored::OperatorCode<'_>, scan: &Scan<'_>) -> Result<OperatorCode> {
    scan.table(code._tab, stored::OperatorCode::VT_BUILTIN_CODE);
    Ok(OperatorCode {
        deprecated_builtin_code: code.deprecated_builtin_code(),
        custom_code: scan.read(code.custom_code()),
        version: code.version(),
        builtin_code: scan.read(code.builtin_code()),
    })
}

fn variant(variant: stored::VariantSubType<'_>, scan: &Scan<'_>) -> Result<VariantSubtype> {
    scan.table(variant._tab, stored::VariantSubType::VT_HAS_RANK);
    Ok(VariantSubtype {
        shape: scan.read(variant.shape()),
        tensor_type: scan.read(variant.type_()),
        has_rank: variant.has_rank(),
    })
}

fn custom_quantization(
    table: &stored::CustomQuantization<'_>,
    scan: &Scan<'_>,
) -> QuantizationDetails {
    scan.table(table._tab, stored::CustomQuantization::VT_CUSTOM);
    QuantizationDetails::Custom(scan.read(table.custom()))
}

fn sparse(sparsity: stored::SparsityParameters<'_>, scan: &Scan<'_>) -> Result<Sparsity> {
    scan.table(sparsity._tab, stored::SparsityParameters::VT_DIM_METADATA);
    Ok(Sparsity {
        traversal_order: scan.read(sparsity.traversal_order()),
        block_map: scan.read(sparsity.block_map()),
        levels: scan.tables(sparsity.dim_metadata(), level)?,
    })
}

fn level(level: stored::DimensionMetadata<'_>, scan: &Scan<'_>) -> Result<SparseLevel> {
    scan.table(level._tab, stored::DimensionMetadata::VT_ARRAY_INDICES);
    let i32s = |table: stored::Int32Vector<'_>| {
        scan.table(table._tab, stored::Int32Vector::VT_VALUES);
        SparseIndices::I32(scan.read(table.values()))
    };
    let u16s = |table: stored::Uint16Vector<'_>| {
        scan.table(table._tab, stored::Uint16Vector::VT_VALUES);
        SparseIndices::U16(scan.read(table.values()))
    };
    let u8s = |table: stored::Uint8Vector<'_>| {
        scan.table(table._tab, stored::Uint8Vector::VT_VALUES);
        SparseIndices::U8(scan.read(table.values()))
    };
    let unknown = |tag, field| -> Result<Option<SparseIndices>> {
        let found = scan.unknown("numbers of a sparse level", tag, level._tab, field)?;
        Ok(found.map(SparseIndices::Unknown))
    };
    let segments = match level.array_segments_type().0 {
        0 => None,
        1 => level.array_segments_as_int_32_vector().map(i32s),
        2 => level.array_segments_as_uint_16_vector().map(u16s),
        3 => level.array_segments_as_uint_8_vector().map(u8s),
        tag => unknown(tag, stored::DimensionMetadata::VT_ARRAY_SEGMENTS)?,
    };
    let indices = match level.array_indices_type().0 {
        0 => None,
        1 => level.array_indices_as_int_32_vector().map(i32s),
        2 => level.array_indices_as_uint_16_vector().map(u16s),
        3 => level.array_indices_as_uint_8_vector().map(u8s),
        tag => unknown(tag, stored::DimensionMetadata::VT_ARRAY_INDICES)?,
    };
    let (format, dense_size) = (scan.read(level.format()), level.dense_size());
    Ok(SparseLevel { format, dense_size, segments, indices })
}

fn operator(operator: stored::Operator<'_>, scan: &Scan<'_>) -> Result<Operator> {
    scan.table(operator._tab, stored::Operator::VT_DEBUG_METADATA_INDEX);
    Ok(Operator {
        opcode_index: operator.opcode_index(),
        inputs: scan.read(operator.inputs()),
        outputs: scan.read(operator.outputs()),
        options: BuiltinOptions::from_stored(&operator, scan)?,
        options_2: BuiltinOptions2::from_stored(&operator, scan)?.map(Box::new),
        custom_options: scan.read(operator.custom_options()),
        custom_options_format: scan.read(operator.custom_options_format()),
        mutating_variable_inputs: scan.read(operator.mutating_variable_inputs()),
        intermediates: scan.read(operator.intermediates()),
        large_custom_options_offset: operator.large_custom_options_offset(),
        large_custom_options_size: operator.large_custom_options_size(),
        debug_metadata_index: operator.debug_metadata_index(),
    })
}

fn buffer(buffer: stored::Buffer<'_>, scan: &Scan<'_>) -> Result<Buffer> {
    scan.table(buffer._tab, stored::Buffer::VT_SIZE);
    let (offset, size) = (buffer.offset(), buffer.size());
    if let Some(hole) = buffer.data().and_then(|data| scan.hole(data.bytes())) {
        let (offset, size) = (hole.start as u64, hole.len() as u64);
        return Ok(Buffer { offset, size, is_unread: true, ..Buffer::default() });
    }
    let data = scan.read(buffer.data());
    Ok(Buffer { data, offset, size, is_unread: false })
}

fn metadata(metadata: stored::Metadata<'_>, scan: &Scan<'_>) -> Result<Metadata> {
    scan.table(metadata._tab, stored::Metadata::VT_BUFFER);
    Ok(Metadata { name: scan.read(metadata.name()), buffer: metadata.buffer() })
}

fn signature(signature: stored::SignatureDef<'_>, scan: &Scan<'_>) -> Result<Signature> {
    scan.table(signature._tab, stored::SignatureDef::VT_SUBGRAPH_INDEX);
    Ok(Signature {
        inputs: scan.tables(signature.inputs(), signature_tensor)?,
        outputs: scan.tables(signature.outputs(), signature_tensor)?,
        key: scan.read(signature.signature_key()),
        tag: scan.read(signature.tag()),
        subgraph_index: signature.subgraph_index(),
    })
}

fn signature_tensor(tensor: stored::TensorMap<'_>, scan: &Scan<'_>) -> Result<SignatureTensor> {
    scan.table(tensor._tab, stored::TensorMap::VT_TENSOR_INDEX);
    let name = scan.read(tensor.name());
    Ok(SignatureTensor { name, tensor_index: tensor.tensor_index() })
}
