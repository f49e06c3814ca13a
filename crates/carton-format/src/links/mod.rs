//! `LINKS`: where the content of files may be fetched. Format text: "LINKS".

use std::collections::BTreeMap;

use tensor_core::{Finding, Limit, Limits, Report, Severity};

use crate::{
    DocumentFault, Error, Result, Sha256, WriteFault,
    links::url::{has_credentials, is_url, redact},
    paths::{LINKS, LINKS_BYTES},
    text::emit::{Basic, Emitter, List},
    text::{Document, Unknown, UnknownKey, report_toml_1_1, report_unknown},
};

pub mod fetch;
pub(crate) mod url;

/// URLs by the digest of what they give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    urls: BTreeMap<Sha256, Vec<String>>,
    /// What else the file says, as TOML by key.
    others: BTreeMap<String, String>,
    unknown: Vec<UnknownKey>,
    /// Keys with capital letters, which the reference does not find, and their lines.
    upper_case: Vec<(Sha256, u64)>,
    /// The first line that readers of TOML 1.0 refuse.
    needs_toml_1_1: Option<u64>,
}

impl Links {
    /// Reads the bytes of a `LINKS` file.
    ///
    /// # Errors
    ///
    /// [`Error::Document`](crate::Error::Document) where it is not TOML, has no `version` 1 or no
    /// `urls`, or where a key is not a digest or a value not a list of strings.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        limits.check(Limit::MetadataBytes, LINKS_BYTES, bytes.len() as u64)?;
        let document = Document::parse(LINKS, bytes)?;
        let mut unknown = Unknown::new(&document);
        let mut root = document.root();
        let version = root.required("version")?;
        if version.unsigned().ok() != Some(VERSION) {
            return Err(version.fault("1"));
        }
        let mut links = Self { needs_toml_1_1: document.needs_toml_1_1(), ..Self::default() };
        for (key, node) in root.required("urls")?.table()?.entries() {
            let Ok(sha256) = key.parse() else {
                let (found, expected) =
                    ("not a digest".to_owned(), "64 lower-case hex digits".into());
                return Err(node.error(DocumentFault::Value { found, expected }));
            };
            if key.contains(|digit: char| digit.is_ascii_uppercase()) {
                links.upper_case.push((sha256, node.line()));
            }
            let urls = links.urls.entry(sha256).or_default();
            for url in node.array()? {
                urls.push(url.string()?.to_owned());
            }
        }
        links.others = root.unused().map(|(key, node)| (key.to_owned(), node.to_toml())).collect();
        root.finish(&mut unknown);
        links.unknown = unknown.into_keys();
        Ok(links)
    }

    /// Writes the file: keys sorted, one a line, as the reference writes it. Keys that the format's
    /// text does not name stay.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut emitter = Emitter::default();
        emitter.pair("version", VERSION);
        for (key, value) in &self.others {
            emitter.pair(key, value);
        }
        emitter.table("urls");
        for (sha256, urls) in &self.urls {
            emitter.pair(&sha256.to_string(), List(urls.iter().map(|url| Basic(url))));
        }
        emitter.finish()
    }

    /// Adds a URL for the content of a digest, behind those that there are, unless it is one.
    pub fn add(&mut self, sha256: Sha256, url: impl Into<String>) {
        let (url, urls) = (url.into(), self.urls.entry(sha256).or_default());
        if !urls.contains(&url) {
            urls.push(url);
        }
    }

    /// Adds what other links have behind what there is, as far as `is_kept` says so of a digest; one
    /// without a URL stays one.
    pub(crate) fn merge(&mut self, other: &Self, is_kept: impl Fn(Sha256) -> bool) {
        for (sha256, urls) in other.iter().filter(|(sha256, _)| is_kept(*sha256)) {
            self.urls.entry(sha256).or_default();
            for url in urls {
                self.add(sha256, url.as_str());
            }
        }
        for (key, value) in &other.others {
            self.others.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Returns the URLs for the content of a digest, in the order in which they are tried; `None`
    /// where it is not linked.
    #[must_use]
    pub fn urls(&self, sha256: Sha256) -> Option<&[String]> {
        self.urls.get(&sha256).map(Vec::as_slice)
    }

    /// Returns all digests and their URLs, sorted by digest.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Sha256, &[String])> {
        self.urls.iter().map(|(sha256, urls)| (*sha256, urls.as_slice()))
    }

    /// Tells whether nothing is linked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    /// Adds what does not stop a reader to a report.
    pub(crate) fn report_to(&self, report: &mut Report) {
        report_toml_1_1(self.needs_toml_1_1, LINKS, report);
        report_unknown(&self.unknown, LINKS, report);
        for (sha256, line) in &self.upper_case {
            let message = "is written with capital letters, which the format's own library does \
                           not find";
            let finding = Finding::warning("carton/links-digest", message).entry(LINKS);
            report.add(finding.path(format!("urls.{sha256}")).line(*line));
        }
        for (sha256, urls) in self.iter() {
            let mut add = |severity, path, message: String| {
                let finding = Finding::new(severity, "carton/links-url", message);
                report.add(finding.entry(LINKS).path(path));
            };
            if urls.is_empty() {
                let message = "has no URL, expected one".to_owned();
                add(Severity::Warning, format!("urls.{sha256}"), message);
            }
            for (index, url) in urls.iter().enumerate() {
                let (severity, expected) = match () {
                    () if has_credentials(url) => (Severity::Error, "no user or password in it"),
                    () if is_url(url, &["https://"]) => continue,
                    () if is_url(url, &["http://"]) => (Severity::Warning, "an https URL"),
                    () => (Severity::Error, "an https URL"),
                };
                let message = format!("is {:?}, expected {expected}", redact(url));
                add(severity, format!("urls.{sha256}[{index}]"), message);
            }
        }
    }
}

/// Refuses a URL from which nothing can be fetched, before it is written.
pub(crate) fn check_fetchable(url: &str) -> Result<()> {
    if is_url(url, &["http://", "https://"]) && !has_credentials(url) {
        return Ok(());
    }
    let (path, fault) = (LINKS.to_owned(), WriteFault::Url { url: redact(url) });
    Err(Error::Write { path, fault })
}

const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const KEY: &str = "e550f6224a5133f597d823ab4590f369e0b20e3c6446488225fc6f7a372b9fe2";

    fn parse(text: &str) -> Result<Links> {
        Links::parse(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn written_links_read_back() {
        let mut links = Links::default();
        let sha256 = KEY.parse().unwrap();
        links.add(sha256, "https://a.example/x");
        links.add(sha256, "https://b.example/\"\\\u{1}");
        links.add(sha256, "https://a.example/x");
        let bytes = links.to_bytes();
        assert_eq!(Links::parse(&bytes, &Limits::default()).unwrap(), links);
        assert_eq!(links.urls(sha256).unwrap().len(), 2);
        let expected = format!(
            "version = 1\n\n[urls]\n{KEY} = [\"https://a.example/x\", \"https://b.example/\\\"\\\\\\u0001\"]\n"
        );
        test_support::assert_bytes(&bytes, expected.as_bytes(), LINKS);
    }

    #[test]
    fn unknown_keys_are_written_again() {
        let text = format!(
            "made_by = \"x\\u001B\"\nlist = [0x1F, 1.50, {{ a = true }}]\nversion = 1\nat = 1979-05-27T07:32:00Z\n\
             [urls]\n{KEY} = [\"https://a.example/x\"]\n[more.'a b']\nkey = 1\n"
        );
        let links = parse(&text).unwrap();
        let expected = format!(
            "version = 1\nat = 1979-05-27T07:32:00Z\nlist = [0x1F, 1.50, {{ a = true }}]\n\
             made_by = \"x\\u001B\"\nmore = {{ \"a b\" = {{ key = 1 }} }}\n\n[urls]\n{KEY} = \
             [\"https://a.example/x\"]\n"
        );
        test_support::assert_bytes(&links.to_bytes(), expected.as_bytes(), LINKS);
        let mut merged = Links::default();
        merged.merge(&parse(&expected).unwrap(), |_| false);
        let without = expected.split_once(KEY).unwrap().0;
        test_support::assert_bytes(&merged.to_bytes(), without.as_bytes(), LINKS);
    }

    proptest! {
        #[test]
        fn any_links_read_back(
            links in proptest::collection::btree_map(any::<[u8; 32]>(), vec(".*", 0..4), 0..6)
        ) {
            let mut written = Links::default();
            for (digest, urls) in &links {
                for url in urls {
                    written.add(Sha256(*digest), url);
                }
            }
            let read = Links::parse(&written.to_bytes(), &Limits::default()).unwrap();
            prop_assert_eq!(read, written);
        }
    }

    #[test]
    fn urls_that_can_be_fetched() {
        for url in ["https://a.example", "HTTP://a.example/x?y@z", "https://[::1]:8/"] {
            check_fetchable(url).unwrap();
        }
        for url in
            ["", "no url", "ftp://a", "https://", "https://u:p@a/x", "https:// a", "https:///x"]
        {
            check_fetchable(url).unwrap_err();
        }
    }
}
