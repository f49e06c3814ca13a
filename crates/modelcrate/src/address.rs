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

/// Returns where an address starts in a text such as `--put=NAME=https://host/path`, be it written with one
/// slash.
#[must_use]
pub fn find_address(text: &str) -> Option<usize> {
    text.match_indices(":/").find_map(|(colon, _)| {
        let before = text.get(..colon)?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let run = before.trim_end_matches(is_part).len();
        let run = before.get(run..)?.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        // What is joined to an option, as in -ohttps://host, is no part of it.
        let known = KNOWN.iter().find(|scheme| {
            let end = run.len().checked_sub(scheme.len()).and_then(|start| run.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(scheme))
        });
        let has_two = text.get(colon..)?.starts_with("://");
        let scheme = match known {
            Some(scheme) => scheme.len(),
            None if has_two && run.len() > 1 => run.len(),
            None => return None,
        };
        colon.checked_sub(scheme)
    })
}

/// Returns an address as it may be shown: without user and password, query and fragment, which may be
/// secrets. In the addresses of buckets and hubs, `?` is a wildcard where no `name=` follows.
#[must_use]
pub fn without_secrets(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once(':') else { return address.to_owned() };
    let path = rest.trim_start_matches('/');
    let slashes = rest.get(..rest.len().saturating_sub(path.len())).unwrap_or_default();
    let end = match &*scheme.to_ascii_lowercase() {
        "file" => None,
        "s3" | "gs" | "az" | "hf" => path.find('?').filter(|at| is_query(path.get(*at..))),
        _ => path.find(['?', '#']),
    };
    let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
    let host_end = path.find('/').unwrap_or(path.len());
    let host = path.get(..host_end).unwrap_or_default();
    // A password may have slashes, which end what looks like a port.
    let port = host.split_once(':').filter(|_| !host.starts_with('['));
    let is_port = port.is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let user = host.rfind('@').or_else(|| path.rfind('@').filter(|_| !is_port));
    let path = user.and_then(|at| path.get(at.saturating_add(1)..)).unwrap_or(path);
    format!("{scheme}:{slashes}{path}")
}

/// Tells whether a text starts as `?name=` does.
pub(crate) fn is_query(text: Option<&str>) -> bool {
    let name = text.and_then(|text| text.strip_prefix('?')?.split_once('=')).map(|(name, _)| name);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~%".contains(&byte);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(is_part))
}

/// The schemes of addresses that are read; a longer one before the one that it ends in.
const KNOWN: [&str; 7] = ["https", "http", "file", "s3", "gs", "az", "hf"];

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

    #[test]
    fn addresses_are_found_behind_others() {
        for (text, found) in [
            ("s3://b/k", Some("s3://b/k")),
            ("-ohttps://h/x", Some("https://h/x")),
            ("-oHTTPS://h/x", Some("HTTPS://h/x")),
            ("--put=w=https://h/x", Some("https://h/x")),
            ("https:/h/x", Some("https:/h/x")),
            ("w=ftp://h/x", Some("ftp://h/x")),
            ("a:/b=s3://b/k", Some("s3://b/k")),
            ("dir:/x#1", None),
            ("C:/x", None),
            ("model.zt", None),
            ("ä:/://", None),
        ] {
            assert_eq!(find_address(text).map(|start| &text[start..]), found, "{text}");
        }
    }

    #[test]
    fn secrets_of_addresses() {
        for (address, shown) in [
            ("https://h/x?sig=s3cret#s3cret", "https://h/x"),
            ("https://user:s3cret@h:80/x@y", "https://h:80/x@y"),
            ("https://user:s3c/ret@h/x", "https://h/x"),
            ("https://[::1]:80/x", "https://[::1]:80/x"),
            ("https:/h/x?s3cret", "https:/h/x"),
            ("ftp://user:s3cret@h/x?s3cret", "ftp://h/x"),
            ("s3://key:s3cret@b/x", "s3://b/x"),
            ("s3://b/x?X-Amz-Signature=s3cret", "s3://b/x"),
            ("s3://b/?.zt", "s3://b/?.zt"),
            ("s3://b/a#b", "s3://b/a#b"),
            ("hf://owner/name@v1/x", "hf://owner/name@v1/x"),
            ("file:///a?b", "file:///a?b"),
        ] {
            assert_eq!(without_secrets(address), shown);
        }
    }
}
