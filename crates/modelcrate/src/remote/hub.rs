//! Repositories of a model hub, by the layout of its web server.

use std::env;

use serde::Deserialize;
use tensor_core::{Limit, Limits, text::Quoted};
use url::Url;

use super::{
    Error, RemoteOptions, Result, error::foreign, location::odd_part, stats::Counters, web::Web,
};

/// Returns the server of the hub: of the options, of `HF_ENDPOINT`, or the usual one.
pub(super) fn base(options: &RemoteOptions) -> Result<Url> {
    let named = options.endpoint.clone().or_else(|| env::var("HF_ENDPOINT").ok());
    let named = named.filter(|base| !base.is_empty());
    let base = named.unwrap_or_else(|| "https://huggingface.co".to_owned());
    let wrong = |reason: String| Error::Setting { what: "endpoint", reason };
    let url = Url::parse(&base).map_err(|error| wrong(error.to_string()))?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    if url.cannot_be_a_base() || has_user || !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it is not the URL of a web server".to_owned()));
    }
    Ok(url)
}

/// Returns the URL of a file.
pub(super) fn file(base: &Url, repository: &str, revision: &str, path: &str) -> Url {
    let mut url = base.clone();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop_if_empty().extend(repository.split('/'));
        parts.extend(["resolve", revision]).extend(path.split('/'));
    }
    url
}

/// A file of a repository.
#[derive(Deserialize)]
pub(super) struct Entry {
    #[serde(rename = "type")]
    kind: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) size: u64,
}

/// Returns all files of a repository below a folder, whose path ends in a slash or is empty.
pub(super) async fn list(
    web: &Web,
    base: &Url,
    (repository, revision): (&str, &str),
    folder: &str,
    counters: &Counters,
    limits: &Limits,
) -> Result<Vec<Entry>> {
    let mut url = base.clone();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop_if_empty().extend(["api", "models"]).extend(repository.split('/'));
        parts.extend(["tree", revision]).extend(folder.split_terminator('/'));
    }
    url.set_query(Some("recursive=true"));
    let (mut entries, mut next) = (Vec::new(), Some(url));
    for _ in 0..PAGES {
        let Some(url) = next else { break };
        let (document, page) = web.document(&url, counters).await?;
        let page_entries: Vec<Entry> =
            serde_json::from_slice(&document).map_err(|error| Error::Range {
                found: foreign(&error.to_string()),
                expected: "a list of files".to_owned(),
            })?;
        for entry in page_entries.into_iter().filter(|entry| entry.kind == "file") {
            if let Some(reason) = odd_part(&entry.path) {
                return Err(Error::list(format!("name {} {reason}", Quoted(&entry.path))));
            }
            entries.push(entry);
        }
        let files = entries.len() as u64;
        limits
            .check(Limit::Entries, "number of files", files)
            .map_err(|error| Error::list(error.to_string()))?;
        next = page;
    }
    if next.is_some() {
        return Err(Error::list(format!("has more than {PAGES} pages")));
    }
    Ok(entries)
}

/// How many pages a list has at most.
const PAGES: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_files() {
        let options = RemoteOptions::default().endpoint("http://127.0.0.1:8080/hub/");
        let base = base(&options).unwrap();
        assert_eq!(
            file(&base, "owner/name", "refs/pr/1", "a b/c.zt").as_str(),
            "http://127.0.0.1:8080/hub/owner/name/resolve/refs%2Fpr%2F1/a%20b/c.zt"
        );
        for wrong in ["hub", "ftp://h/", "https://user:s3cret@h/"] {
            let error = super::base(&RemoteOptions::default().endpoint(wrong)).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
