//! Quantization and sparsity of one tensor.

use crate::{
    Diagnoses, Diagnosis, Reaction, Stage,
    model::{
        DimensionType, Quantization, QuantizationDetails, SparseIndices, SparseLevel, Sparsity,
        Subgraph, Tensor, TensorType,
    },
};

pub(super) fn check(subgraph: &Subgraph, tensor: &Tensor, path: &str, findings: &mut Diagnoses) {
    let mut push = |diagnosis: Diagnosis| {
        let diagnosis = diagnosis.path(path);
        findings.push(match &tensor.name {
            Some(name) => diagnosis.at(|at| at.tensor(tensor_core::text::short(name))),
            None => diagnosis,
        });
    };
    if let Some(quantization) = &tensor.quantization {
        quantized(subgraph, tensor, quantization, &mut push);
    }
    if let Some(sparsity) = &tensor.sparsity {
        if let Some(message) = sparse_fault(tensor, sparsity) {
            push(Diagnosis::error("model/sparsity", message));
        }
        if let Some(reaction) = sparse_reaction(tensor, sparsity) {
            let message = "is sparse in a way that onert 0.1.0 does not read";
            push(Diagnosis::warning("model/onert-sparsity", message).onert(reaction));
        }
    }
}

/// Returns why onert does not read a sparse tensor, in the order in which it looks.
fn sparse_reaction(tensor: &Tensor, sparsity: &Sparsity) -> Option<Reaction> {
    let fails = |stage, message: &'static str| {
        let message = message.into();
        Some(Reaction::Fails { stage, message })
    };
    let fails_to_load = |message| fails(Stage::Load, message);
    let (levels, blocks) = (&sparsity.levels, sparsity.block_map.len());
    let in_order = |numbers: &[i32]| numbers.iter().zip(0..).all(|(number, at)| *number == at);
    let level = |at: usize| levels.get(at);
    let is_dense = |level: &SparseLevel| level.format == DimensionType::DENSE;
    if !in_order(&sparsity.traversal_order) {
        return fails_to_load("traversal_order [0, 1, ..., n-1] is only supported.");
    }
    if !in_order(&sparsity.block_map) {
        return fails_to_load("block_map [0, 1, ..., n-1] is only supported.");
    }
    if levels.len() != tensor.shape.len().saturating_add(blocks) {
        return fails_to_load("sparsity dim_metadata length is wrong.");
    }
    // Matrices without blocks are meant to pass, and do not.
    if levels.len() != 1 && (levels.len(), blocks) != (4, 2) {
        return fails_to_load(
            "sparsity is supported only for 2D tensor with random or 16x1 block sparsity.",
        );
    }
    if !level(0).is_some_and(is_dense) {
        return fails_to_load("sparse tensor dim[0] is not DENSE");
    }
    // The one of a vector is looked for behind the last level.
    let Some(rows) = level(1) else { return Some(Reaction::Undefined { stage: Stage::Load }) };
    if rows.format != DimensionType::SPARSE_CSR {
        return fails_to_load("sparse tensor dim[0] is not SPARSE_CSR");
    }
    if matches!(rows.segments, Some(SparseIndices::I32(_))) {
        return fails_to_load("sparse tensor with int32 segment type is not supported");
    }
    if matches!(rows.indices, Some(SparseIndices::I32(_))) {
        return fails_to_load("sparse tensor with int32 indices type is not supported");
    }
    let block = [level(2)?, level(3)?];
    if !block.into_iter().all(is_dense) {
        return fails_to_load("block dimension must be DENSE.");
    }
    let is_known = block.map(|level| level.dense_size) == [16, 1];
    if is_known { None } else { fails(Stage::Run, "FullyConnected: unsupported sparsity") }
}

fn quantized(
    subgraph: &Subgraph,
    tensor: &Tensor,
    quantization: &Quantization,
    push: &mut impl FnMut(Diagnosis),
) {
    let (scales, zeros) = (quantization.scale.len(), quantization.zero_point.len());
    if zeros != 0 && zeros != scales {
        let message =
            format!("has {scales} scales and {zeros} zero points, expected as many of both");
        let diagnosis = Diagnosis::error("model/quantization", message);
        push(diagnosis.load_fails("Quantization params: scale size != zero_point size"));
    }
    let mut fault = |message: String| push(Diagnosis::error("model/quantization", message));
    if quantization.is_per_axis() {
        let dimension = quantization.quantized_dimension;
        let dim = usize::try_from(dimension).ok().and_then(|at| tensor.shape.get(at));
        match dim {
            None => {
                let rank = tensor.shape.len();
                fault(format!("is quantized along dimension {dimension}, but has rank {rank}"));
            }
            Some(&dim) if usize::try_from(dim).ok() != Some(scales) => fault(format!(
                "has {scales} scales for dimension {dimension}, which has {dim} elements"
            )),
            Some(_) => {}
        }
    }
    let strange = quantization.scale.iter().find(|scale| !scale.is_finite() || **scale <= 0.0);
    if let Some(scale) = strange {
        push(Diagnosis::warning(
            "model/scale",
            format!("has the scale {scale}, expected more than 0"),
        ));
    }
    let range = range(tensor.tensor_type);
    let outside = quantization
        .zero_point
        .iter()
        .find(|zero| range.is_some_and(|(least, most)| **zero < least || **zero > most));
    if let Some(zero) = outside {
        let message =
            format!("has the zero point {zero}, which {} cannot hold", tensor.tensor_type);
        push(Diagnosis::warning("model/zero-point", message));
    }
    if let Some(details) = &quantization.details {
        check_details(subgraph, tensor, details, push);
    }
}

fn check_details(
    subgraph: &Subgraph,
    tensor: &Tensor,
    details: &QuantizationDetails,
    push: &mut impl FnMut(Diagnosis),
) {
    let (tensors, size) = match details {
        QuantizationDetails::Mx { axis } => {
            if usize::try_from(*axis).ok().and_then(|axis| tensor.shape.get(axis)).is_none() {
                let rank = tensor.shape.len();
                let message = format!("is quantized along dimension {axis}, but has rank {rank}");
                push(Diagnosis::error("model/quantization", message));
            }
            return;
        }
        QuantizationDetails::Blockwise { scales, zero_points, block_size, .. }
        | QuantizationDetails::MultiAxis { scales, zero_points, block_size, .. } => {
            ([("scales", *scales), ("zero points", *zero_points)], *block_size)
        }
        QuantizationDetails::Unknown(table) => {
            let message = format!("is quantized by details of unknown type {}", table.tag());
            push(Diagnosis::warning("model/unknown-table", message));
            return;
        }
        QuantizationDetails::Custom(_) => return,
    };
    for (what, index) in tensors {
        // Zero points may be left out.
        let is_absent = what == "zero points" && index <= 0;
        if !is_absent && subgraph.tensor(index).is_none() {
            let count = subgraph.tensors.len();
            let message = format!("has its {what} in tensor {index}, but the graph has {count}");
            push(Diagnosis::error("model/quantization", message));
        }
    }
    if size < 0 {
        let message = format!("has blocks of {size} elements, expected 0 or more");
        push(Diagnosis::error("model/quantization", message));
    }
}

/// Returns the numbers that a stored element can be.
const fn range(tensor_type: TensorType) -> Option<(i64, i64)> {
    Some(match tensor_type {
        TensorType::Int4 => (-8, 7),
        TensorType::Uint4 => (0, 15),
        TensorType::Int8 => (-128, 127),
        TensorType::Uint8 => (0, 255),
        TensorType::Int16 => (-32_768, 32_767),
        _ => return None,
    })
}

/// Returns what is wrong with the levels of a sparse tensor.
fn sparse_fault(tensor: &Tensor, sparsity: &Sparsity) -> Option<String> {
    let rank = tensor.shape.len();
    let blocks = sparsity.block_map.len();
    let walked = rank.saturating_add(blocks);
    let order = &sparsity.traversal_order;
    if order.len() != walked || sparsity.levels.len() != walked {
        return Some(format!(
            "is sparse with {} levels in an order of {}, expected {walked}: its rank and {blocks} \
             blocks",
            sparsity.levels.len(),
            order.len()
        ));
    }
    let mut seen = vec![false; walked];
    for &dim in order {
        let slot = usize::try_from(dim).ok().and_then(|dim| seen.get_mut(dim));
        match slot {
            Some(slot) if !*slot => *slot = true,
            _ => return Some(format!("is sparse in an order that has {dim} where it cannot be")),
        }
    }
    let strange = sparsity
        .block_map
        .iter()
        .find(|dim| usize::try_from(**dim).map_or(true, |dim| dim >= rank));
    if let Some(dim) = strange {
        return Some(format!("is sparse in blocks of dimension {dim}, but has rank {rank}"));
    }
    let mut parents = Some(1_u64);
    for (at, level) in sparsity.levels.iter().enumerate() {
        match level_len(level, parents) {
            Ok(len) => parents = len,
            Err(fault) => return Some(format!("is sparse, and level {at} {fault}")),
        }
    }
    None
}

/// Returns how many indices a level has for all of its parents; `None` where that cannot be told.
fn level_len(level: &SparseLevel, parents: Option<u64>) -> Result<Option<u64>, String> {
    if level.format == DimensionType::DENSE {
        let size = u64::try_from(level.dense_size)
            .map_err(|_| format!("has the size {}, expected 0 or more", level.dense_size))?;
        return Ok(parents.and_then(|parents| parents.checked_mul(size)));
    }
    if level.format != DimensionType::SPARSE_CSR {
        return Err(format!("has format {}, expected DENSE or SPARSE_CSR", level.format));
    }
    let (Some(segments), Some(indices)) = (&level.segments, &level.indices) else {
        return Err("has no segments or no indices".to_owned());
    };
    let (Some(found), Some(count)) = (segments.len(), indices.len()) else { return Ok(None) };
    let expected = parents.and_then(|parents| parents.checked_add(1));
    if expected.is_some_and(|expected| expected != found as u64) {
        return Err(format!("has {found} segments for {} parents", parents.unwrap_or_default()));
    }
    ascending(segments, found)?;
    let last = found.checked_sub(1).and_then(|last| segments.get(last));
    if last != i64::try_from(count).ok() {
        return Err(format!("has {count} indices, but its segments end elsewhere"));
    }
    if (0..count).any(|at| indices.get(at).is_none_or(|index| index < 0)) {
        return Err("has a negative index".to_owned());
    }
    Ok(Some(count as u64))
}

fn ascending(segments: &SparseIndices, count: usize) -> Result<(), String> {
    let mut before = 0;
    for at in 0..count {
        let number = segments.get(at).unwrap_or_default();
        if number < before || (at == 0 && number != 0) {
            return Err(format!("has segment {at} that is {number}, expected {before} or more"));
        }
        before = number;
    }
    Ok(())
}
