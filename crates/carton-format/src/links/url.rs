//! What can be told of a URL without asking for it.

/// Returns what may be shown of a text that should be a URL: no credentials, no query, no fragment,
/// and not more than fits a message. Either of the first two may be a secret.
#[must_use]
pub fn redact(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let (scheme, slashes, authority, path) = parts(text);
    let authority = authority.rsplit('@').next().unwrap_or_default();
    shortened(&format!("{scheme}{slashes}{authority}{path}"))
}

/// Returns the start of a text that somebody else wrote.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the scheme of a URL, without its colon; `None` where it has none.
#[must_use]
pub fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let starts = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    (starts && scheme.bytes().all(is_part)).then_some(scheme)
}

/// Splits what should be a URL into scheme with colon, slashes, authority and path. Some readers
/// take a backslash for a slash, and slashes for granted.
fn parts(text: &str) -> (&str, &str, &str, &str) {
    let (scheme, rest) = match scheme(text) {
        Some(scheme) => text.split_at(scheme.len().saturating_add(1)),
        None => ("", text),
    };
    let host = rest.trim_start_matches(['/', '\\']);
    let slashes = rest.strip_suffix(host).unwrap_or_default();
    let end = host.find(['/', '\\']).unwrap_or(host.len());
    let (authority, path) = host.split_at(end);
    (scheme, slashes, authority, path)
}

/// Tells whether a URL has a user or a password.
pub(crate) fn has_credentials(url: &str) -> bool {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (_, _, authority, _) = parts(url);
    authority.contains('@')
}

/// Tells whether a text is an absolute URL of one of some schemes, as far as that takes no parser.
pub(crate) fn is_url(text: &str, schemes: &[&str]) -> bool {
    let is_clean = !text.chars().any(|char| char.is_whitespace() || char.is_control());
    is_clean
        && schemes.iter().any(|scheme| {
            let (start, rest) = text.split_at_checked(scheme.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(scheme) && !rest.is_empty() && !rest.starts_with('/')
        })
}

/// Characters of a URL that a message shows.
const SHOWN: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for (text, shown) in [
            ("https://a.example/x?token=s3cret#part", "https://a.example/x"),
            ("https://user:s3cret@a.example/x", "https://a.example/x"),
            ("https://user:s3@cret@a.example", "https://a.example"),
            ("https:\\\\user:s3cret@a.example\\x", "https:\\\\a.example\\x"),
            ("https:user:s3cret@a.example/x", "https:a.example/x"),
            ("user:s3cret@a.example/x", "user:a.example/x"),
            ("no URL at all", "no URL at all"),
            ("https://a.example/x@y", "https://a.example/x@y"),
        ] {
            assert_eq!(redact(text), shown);
        }
        assert_eq!(redact(&"x".repeat(1000)).chars().count(), SHOWN + 1);
    }
}
