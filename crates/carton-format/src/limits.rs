use crate::Result;

/// Refuses what is larger than a limit allows.
pub(crate) fn check_bytes(
    what: &'static str,
    found: u64,
    limit: u64,
    field: &'static str,
) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    Err(tensor_core::Error::OverLimit { what, found, limit, field }.into())
}
