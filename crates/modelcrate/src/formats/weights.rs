//! safetensors and GGUF files, described as any other.

use tensor_core::{Budget, Chain, Extent, Finding, Report, digest::Algorithm};

use crate::{
    Stats, Summary, SummaryOptions, TensorSummary,
    weights::{ElementType, Error, Reader, Result, Tensor},
};

super::described!(Weights);

pub(crate) fn summary(reader: &Reader, options: SummaryOptions) -> Summary {
    let mut summary = Summary::new(reader.format(), reader.version().to_owned());
    summary.metadata.clone_from(reader.metadata());
    summary.findings = reader.lint();
    let budget = Budget::sharing(READ, reader.limits(), reader.byte_len());
    for tensor in reader.tensors() {
        let described = describe(tensor, options, &budget, &mut summary.findings);
        summary.tensors.push(described);
    }
    summary
}

fn describe(
    tensor: Tensor<'_>,
    options: SummaryOptions,
    budget: &Budget,
    findings: &mut Report,
) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name());
    summary.shape = tensor.shape().clone();
    summary.bytes = tensor.byte_len();
    let extent = tensor.stored_extent().filter(|_| tensor.reader().source().is_some());
    summary.offset = extent.map(Extent::offset);
    summary.encoding = tensor.stored_extent().is_none().then(|| "deflate".to_owned());
    match tensor.element_type() {
        ElementType::Plain(dtype) => summary.dtype = Some(dtype),
        other => summary.logical_type = Some(other.to_string()),
    }
    if let Err(error) = contents(tensor, options, budget, &mut summary) {
        let message = format!("tensor {:?}: {}", tensor.name(), Chain(&error));
        findings.add(Finding::error(error.rule(), message).at(error.at().tensor(tensor.name())));
    }
    summary
}

fn contents(
    tensor: Tensor<'_>,
    options: SummaryOptions,
    budget: &Budget,
    summary: &mut TensorSummary,
) -> Result<()> {
    if options.digests || options.stats {
        budget.take(summary.bytes)?;
    }
    if options.digests {
        let is_plain = summary.dtype.is_some();
        let bytes = if is_plain { tensor.bytes()? } else { tensor.stored_bytes()? };
        let found = Algorithm::Sha256.digest(&bytes);
        summary.sha256 = found.to_string().strip_prefix("sha256:").map(str::to_owned);
    }
    if let (true, Some(dtype)) = (options.stats, summary.dtype) {
        summary.stats = Stats::read(dtype, &tensor.bytes()?[..]).map_err(Error::Read)?;
    }
    Ok(())
}

/// What a limit on reading is about.
const READ: &str = "bytes of all tensors";
