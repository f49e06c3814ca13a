/// Tells whether a text is an address, such as `s3://bucket/key`, and not a path: whether it starts
/// with a scheme of two characters or more and `://`. The module `remote` reads them.
#[must_use]
pub fn is_address(text: &str) -> bool {
    split_address(text).is_some()
}

/// Splits an address at `://`. One letter is a drive, not a scheme.
pub(crate) fn split_address(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let starts = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    (starts && scheme.len() > 1 && scheme.bytes().all(is_part)).then_some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        for text in ["model.zt", "C:\\models\\a.zt", "c://x", "a:b", "://x", "./s3://b/k", "-"] {
            assert!(!is_address(text), "{text}");
        }
        for text in ["s3://b/k", "HTTPS://h/p", "hf://o/n/p", "file:///x", "ftp://h/p"] {
            assert!(is_address(text), "{text}");
        }
    }
}
