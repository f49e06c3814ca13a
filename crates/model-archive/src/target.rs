//! Targets of symbolic links: which stay inside the archive.

use tensor_core::Limits;

use crate::{TargetFault, name};

/// Checks that the target of the link at `link` leads to a place inside the archive, whatever other
/// links lie on the way: `..` stands at its start only, so that it is taken from real folders.
pub(crate) fn check(link: &str, target: &str) -> Result<(), TargetFault> {
    let limits = Limits::default();
    if target.len() as u64 > limits.name_bytes {
        return Err(TargetFault::Long(limits.name_bytes));
    }
    if target.starts_with('/') {
        return Err(TargetFault::Absolute);
    }
    let mut path = target;
    let mut folder = link.rsplit_once('/').map(|(folder, _)| folder);
    while let Some(rest) = path.strip_prefix("../") {
        let Some(inner) = folder else {
            return Err(TargetFault::Outside);
        };
        folder = inner.rsplit_once('/').map(|(outer, _)| outer);
        path = rest;
    }
    // What is left is the name of an entry as seen from that folder; it is not a folder's.
    if path.ends_with('/') || name::check(path, &limits).is_err() {
        return Err(TargetFault::Malformed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_inside() {
        for (link, target) in
            [("a", "b"), ("a/b", "../c"), ("a/b/c", "../../d/e"), ("a/b", "c/d"), ("a", "..b")]
        {
            assert_eq!(check(link, target), Ok(()), "{link:?} to {target:?}");
        }
    }

    #[test]
    fn targets_that_are_refused() {
        for (link, target, fault) in [
            ("a", "/etc/passwd", TargetFault::Absolute),
            ("a", "../b", TargetFault::Outside),
            ("a/b", "../../c", TargetFault::Outside),
            ("a/b", "..", TargetFault::Malformed),
            ("a/b/c", "d/../../../../e", TargetFault::Malformed),
            ("a/b", ".././../c", TargetFault::Malformed),
            ("a", "./b", TargetFault::Malformed),
            ("a", "", TargetFault::Malformed),
            ("a", "b/", TargetFault::Malformed),
            ("a", "C:\\b", TargetFault::Malformed),
            ("a", "b\0", TargetFault::Malformed),
        ] {
            assert_eq!(check(link, target), Err(fault), "{link:?} to {target:?}");
        }
        assert_eq!(check("a", &"b".repeat(4097)), Err(TargetFault::Long(4096)));
    }
}
