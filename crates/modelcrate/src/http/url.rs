//! URLs of links and of redirects: what may be asked for, and what may be shown of it.

use std::net::Ipv4Addr;

use carton_format::fetch::{UrlFault, scheme};
use ureq::http::Uri;

use super::Schemes;

/// A URL that may be asked for: its scheme is allowed, it has a host and no credentials.
#[derive(Clone, Debug)]
pub(crate) struct Url(Uri);

impl Url {
    pub(crate) fn parse(text: &str, schemes: Schemes) -> Result<Self, UrlFault> {
        let Some(scheme) = scheme(text) else {
            return Err(UrlFault::Malformed("has no scheme"));
        };
        let scheme = scheme.to_ascii_lowercase();
        if !schemes.allow(&scheme) {
            return Err(UrlFault::Scheme { found: scheme, expected: schemes.text() });
        }
        let uri: Uri = text.parse().map_err(|_| UrlFault::Malformed("has malformed syntax"))?;
        let Some(authority) = uri.authority() else {
            return Err(UrlFault::Malformed("has no host"));
        };
        if authority.as_str().contains('@') {
            return Err(UrlFault::Malformed("has credentials, which are refused"));
        }
        let host = authority.host();
        if host.is_empty() {
            return Err(UrlFault::Malformed("has no host"));
        }
        let port = authority.as_str().strip_prefix(host).unwrap_or_default();
        if authority.port_u16().is_none() && !matches!(port, "" | ":") {
            return Err(UrlFault::Malformed("has a malformed port"));
        }
        if is_odd_address(host) {
            return Err(UrlFault::Malformed("has a number as its host, expected four with dots"));
        }
        Ok(Self(uri))
    }

    /// Finds what a `Location` stands for. RFC 3986, section 5.2.
    pub(crate) fn join(&self, location: &str, schemes: Schemes) -> Result<Self, UrlFault> {
        let location = location.split('#').next().unwrap_or_default();
        let target = if scheme(location).is_some() {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{}:{location}", self.scheme())
        } else {
            let base = self.0.path_and_query().map_or("/", |path| path.as_str());
            let path = resolve_path(base, location);
            let authority = self.0.authority().map_or("", |authority| authority.as_str());
            format!("{}://{authority}{path}", self.scheme())
        };
        let target = Self::parse(&target, schemes)?;
        if self.scheme() == "https" && target.scheme() != "https" {
            return Err(UrlFault::Downgrade);
        }
        Ok(target)
    }

    pub(crate) const fn uri(&self) -> &Uri {
        &self.0
    }

    /// Returns the host, an IPv6 address without its brackets.
    pub(crate) fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    fn scheme(&self) -> &str {
        self.0.scheme_str().unwrap_or_default()
    }
}

/// Tells a host that resolvers take for an IPv4 address though it is not spelt as one: `127.1`,
/// `0x7f000001`, `2130706433`, `010.0.0.1`.
fn is_odd_address(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_hex = last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    (is_hex || is_number) && host.parse::<Ipv4Addr>().is_err()
}

/// Joins a path, or a query alone, to the path and query of a base.
fn resolve_path(base: &str, reference: &str) -> String {
    let (base_path, _) = base.split_once('?').unwrap_or((base, ""));
    if reference.is_empty() {
        return base.to_owned();
    }
    if reference.starts_with('?') {
        return format!("{base_path}{reference}");
    }
    let (path, query) = reference.find('?').map_or((reference, ""), |at| reference.split_at(at));
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        let folder = base_path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{path}")
    };
    let mut parts = Vec::new();
    let mut rest = whole.split('/').skip(1).peekable();
    while let Some(part) = rest.next() {
        if part == ".." {
            parts.pop();
        }
        let is_dots = matches!(part, "." | "..");
        if !is_dots {
            parts.push(part);
        } else if rest.peek().is_none() {
            parts.push("");
        }
    }
    format!("/{}{query}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, message: &str) {
        assert_eq!(
            Url::parse(text, Schemes::HttpsAndHttp).unwrap_err().to_string(),
            message,
            "{text}"
        );
    }

    #[test]
    fn other_schemes_are_refused() {
        for (text, scheme) in [
            ("file:///etc/passwd", "file"),
            ("ftp://a.example/x", "ftp"),
            ("gopher://a.example/x", "gopher"),
            ("data:text/plain,x", "data"),
            ("FILE:///x", "file"),
        ] {
            refused(text, &format!("scheme is {scheme:?}, expected \"https\" or \"http\""));
        }
        let error = Url::parse("http://a.example/", Schemes::Https).unwrap_err();
        assert_eq!(error.to_string(), "scheme is \"http\", expected \"https\"");
    }

    #[test]
    fn broken_urls_are_refused() {
        for text in ["", "a.example/x", "//a.example/x", "/x", "://x"] {
            refused(text, "URL has no scheme");
        }
        for text in ["https://a.example/ x", "https://a b/", "https:///x", "https:x"] {
            let error = Url::parse(text, Schemes::Https).unwrap_err();
            assert!(matches!(error, UrlFault::Malformed(_)), "{text}: {error}");
        }
        refused("https://a.example:99999/", "URL has a malformed port");
    }

    #[test]
    fn credentials_are_refused() {
        for text in ["https://user@a.example/", "https://user:pw@a.example/x", "https://:@b/"] {
            refused(text, "URL has credentials, which are refused");
        }
    }

    #[test]
    fn numbers_are_no_hosts() {
        for host in ["0x7f000001", "2130706433", "127.1", "0", "010.0.0.1", "127.0.0.1.", "0x7F.1"]
        {
            refused(
                &format!("https://{host}/"),
                "URL has a number as its host, expected four with dots",
            );
        }
        for host in ["127.0.0.1", "1.example", "[::1]", "a.example:443", "a.example:"] {
            Url::parse(&format!("https://{host}/"), Schemes::Https).unwrap();
        }
    }

    #[test]
    fn locations_are_joined() {
        let base = Url::parse("http://a.example:8080/b/c/d?q=1", Schemes::HttpsAndHttp).unwrap();
        // The reference resolution examples of RFC 3986, section 5.4, that are for hierarchies.
        for (location, expected) in [
            ("http://b.example/x", "http://b.example/x"),
            ("https://b.example/x#part", "https://b.example/x"),
            ("//b.example/x", "http://b.example/x"),
            ("/x?y=2", "http://a.example:8080/x?y=2"),
            ("x", "http://a.example:8080/b/c/x"),
            ("./x", "http://a.example:8080/b/c/x"),
            ("../x", "http://a.example:8080/b/x"),
            ("../../../x", "http://a.example:8080/x"),
            ("..", "http://a.example:8080/b/"),
            ("x/", "http://a.example:8080/b/c/x/"),
            ("?y=2", "http://a.example:8080/b/c/d?y=2"),
            ("", "http://a.example:8080/b/c/d?q=1"),
            ("/x//https://y/", "http://a.example:8080/x//https://y/"),
            ("x?y=../z", "http://a.example:8080/b/c/x?y=../z"),
        ] {
            let joined = base.join(location, Schemes::HttpsAndHttp).unwrap();
            assert_eq!(joined.uri().to_string(), expected, "{location:?}");
        }
    }
}
