//! What layouts ask of the parts of an object, as far as the definitions tell.

use super::{
    Rule,
    document::{Entry, Part},
};
use tensor_core::DType;

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
            let (found, shape) = (data.decoded(), &entry.shape);
            Err((Rule::DenseSize, format!("has {found} bytes, but shape {shape} needs {needed}")))
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
        return Err(fault("has indptr of another type than indices".to_owned()));
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
        return Err(fault(format!("has {found} bytes of indptr, but {rows} rows need {pointers}")));
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
    if elements.byte_len(nnz) == Some(values.decoded()) {
        return Ok(());
    }
    Err(fault(format!("has {} bytes of values for {nnz} indices", values.decoded())))
}

fn plain_index(part: &Part<'_>, role: &str) -> Result<u64, Fault> {
    match (part.dtype, part.logical) {
        (DType::U32, None) => Ok(4),
        (DType::U64, None) => Ok(8),
        _ => Err(fault(format!("has {role} of another type than u32 and u64"))),
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
            let names = roles.map(|role| std::str::from_utf8(role).unwrap_or_default());
            let names = names.join(", ");
            Err(fault(format!("has other parts than its layout asks for: exactly {names}")))
        }
    }
}

fn fault(problem: String) -> Fault {
    (Rule::LayoutRule, problem)
}
