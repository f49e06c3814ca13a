//! What layouts ask of the parts of an object, as far as the definitions tell.

use super::{
    Rule,
    document::{Entry, Part},
};
use tensor_core::{DType, text::Quoted};

/// What is broken, and how.
type Fault = (Rule, String);

/// Checks an object of `elements` elements: its layout, where opening has to.
pub(crate) fn check(entry: &Entry<'_>, elements: u64) -> Result<(), Fault> {
    match entry.layout {
        b"dense" => dense(entry, elements),
        b"zt.sparse_csr/1" => csr(entry),
        _ => Ok(()),
    }
}

fn dense(entry: &Entry<'_>, elements: u64) -> Result<(), Fault> {
    let [data] = exactly(entry, [b"data"])?;
    let Some(expected) = data.elements().map(|elements_of| elements_of.byte_len(elements)) else {
        return Ok(());
    };
    match expected {
        Some(expected) if expected == data.decoded() => Ok(()),
        expected => {
            let needed = expected.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
            let (found, shape, of) = (data.decoded(), &entry.shape, said(data));
            let problem = format!("has {found} bytes of data, expected {needed} for {of} {shape}");
            Err((Rule::DenseSize, problem))
        }
    }
}

fn csr(entry: &Entry<'_>) -> Result<(), Fault> {
    let &[rows, _] = entry.shape.dims() else {
        return Err(fault(format!("has shape {}, expected one of rank 2", entry.shape)));
    };
    let [values, indices, indptr] = exactly(entry, [b"values", b"indices", b"indptr"])?;
    let width = plain_index(indices, "indices")?;
    if indptr.dtype != indices.dtype || indptr.logical.is_some() {
        let (found, expected) = (said(indptr), said(indices));
        return Err(fault(format!("has indptr of {found}, expected {expected} as indices are")));
    }
    let pointers =
        rows.checked_add(1).and_then(|rows| rows.checked_mul(width)).ok_or_else(|| {
            (
                Rule::Shape,
                format!("has shape {}, whose row pointers do not fit 64 bits", entry.shape),
            )
        })?;
    if indptr.decoded() != pointers {
        let found = indptr.decoded();
        return Err(fault(format!(
            "has {found} bytes of indptr, expected {pointers} for {rows} rows"
        )));
    }
    let (Some(nnz), Some(0)) =
        (indices.decoded().checked_div(width), indices.decoded().checked_rem(width))
    else {
        let found = indices.decoded();
        return Err(fault(format!("has {found} bytes of indices, expected whole ones of {width}")));
    };
    values_of(values, nnz)
}

/// Proves that values are as many as there are indices.
fn values_of(values: &Part<'_>, nnz: u64) -> Result<(), Fault> {
    let Some(elements) = values.elements() else { return Ok(()) };
    match elements.byte_len(nnz) {
        Some(expected) if expected == values.decoded() => Ok(()),
        expected => {
            let expected = expected.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
            let found = values.decoded();
            Err(fault(format!(
                "has {found} bytes of values, expected {expected} for {nnz} indices"
            )))
        }
    }
}

fn plain_index(part: &Part<'_>, role: &str) -> Result<u64, Fault> {
    match (part.dtype, part.logical) {
        (DType::U32, None) => Ok(4),
        (DType::U64, None) => Ok(8),
        _ => Err(fault(format!("has {role} of {}, expected u32 or u64", said(part)))),
    }
}

/// Returns the parts of some roles, once it is proved that there are no others.
fn exactly<'e, 'a, const N: usize>(
    entry: &'e Entry<'a>,
    roles: [&[u8]; N],
) -> Result<[&'e Part<'a>; N], Fault> {
    let found: Vec<&Part<'_>> = roles.iter().filter_map(|role| entry.part(role)).collect();
    let all = entry.parts.len();
    match found.try_into() {
        Ok(parts) if all == N => Ok(parts),
        _ => {
            let name = |role| Quoted(std::str::from_utf8(role).unwrap_or_default()).to_string();
            let found: Vec<String> = entry.parts.iter().map(|part| name(part.role)).collect();
            let (found, expected) = (found.join(", "), roles.map(name).join(", "));
            Err(fault(format!("has the parts {found}, expected {expected}")))
        }
    }
}

/// Names the elements of a part.
fn said(part: &Part<'_>) -> String {
    match part.elements() {
        Some(elements) => elements.to_string(),
        None => format!("type {}", Quoted(part.logical.unwrap_or_default())),
    }
}

fn fault(problem: String) -> Fault {
    (Rule::LayoutRule, problem)
}
