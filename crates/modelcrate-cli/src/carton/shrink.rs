use std::path::PathBuf;

use anyhow::{bail, ensure};
use modelcrate::{
    carton_format::{self, File, Links, Place, Reader, WriteOptions},
    tensor_core::Limits,
};
use serde::Serialize;

use super::rewrite::{Done, Rewrite};
use crate::{address, failure::About, options::Size, outcome::Outcome};

/// Link files of a carton instead of holding them
///
/// The files named by --links are linked to the URLs that stand there. With --url-prefix, those of
/// the model that have at least 1 MiB are, or others if --only or --min-size say so: a file is
/// fetched from the prefix and its SHA-256. The model hash stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton shrink model.carton -o small.carton --url-prefix https://models.example.com/files
  modelcrate carton shrink model.carton --links urls.toml --dry-run
  modelcrate carton shrink model.carton --url-prefix https://example.com --only 'model/*.bin'")]
pub(crate) struct Shrink {
    #[command(flatten)]
    urls: Urls,
    /// Link only what has this path, lies in this folder, or fits this pattern, in which * stands
    /// for any characters; may be given several times
    #[arg(long, value_name = "PATH")]
    only: Vec<String>,
    /// Link only what has at least so many bytes; KiB, MiB or GiB may stand behind the number
    #[arg(long, value_name = "BYTES")]
    min_size: Option<Size>,
    #[command(flatten)]
    rewrite: Rewrite,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Urls {
    /// Link files to this URL, a slash, and their SHA-256; may be given several times, for mirrors
    #[arg(long, value_name = "URL", value_parser = url_prefix)]
    url_prefix: Vec<String>,
    /// Link files as this file says, which is written as LINKS in a carton is
    #[arg(long, value_name = "FILE")]
    links: Option<PathBuf>,
}

#[derive(Serialize)]
struct Changes {
    linked: Vec<Linked>,
}

#[derive(Serialize)]
struct Linked {
    path: String,
    sha256: String,
    bytes: Option<u64>,
}

impl Shrink {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let given = self.urls.links()?;
        let reader = self.rewrite.open(Reader::options())?;
        self.check_patterns(&reader).about(&self.rewrite.input)?;
        let (mut links, mut linked) = (Links::default(), Vec::new());
        for file in reader.files().filter(|file| file.place() == Place::Here) {
            let named = given.urls(file.sha256()).unwrap_or_default();
            if !self.is_wanted(file, !named.is_empty()) {
                continue;
            }
            for url in named {
                links.add(file.sha256(), url);
            }
            for prefix in &self.urls.url_prefix {
                links.add(file.sha256(), format!("{prefix}/{}", file.sha256()));
            }
            let (path, sha256) = (file.path().to_owned(), file.sha256().to_string());
            linked.push(Linked { path, sha256, bytes: file.len().ok() });
        }
        let lines = linked.iter().map(|file| format!("linked {}", file.path)).collect();
        let what = match linked.len() {
            1 => "shrunk by 1 file".to_owned(),
            files => format!("shrunk by {files} files"),
        };
        self.rewrite.run(&reader, WriteOptions::default(), |writer| {
            let finished = carton_format::shrink(&reader, &links, writer)?;
            Ok((finished, Done { what, changes: Changes { linked }, lines }))
        })
    }

    /// Tells whether a file is to be linked; `is_named` says that there is a link for it.
    fn is_wanted(&self, file: File<'_>, is_named: bool) -> bool {
        if self.urls.url_prefix.is_empty() && !is_named {
            return false;
        }
        let is_chosen = !self.only.is_empty();
        let fits = |pattern: &String| matches(pattern, file.path());
        if is_chosen && !self.only.iter().any(fits) {
            return false;
        }
        let by_default = !is_chosen && !is_named;
        if by_default && !file.path().starts_with("model/") {
            return false;
        }
        let default = if by_default { MIN_SIZE } else { 0 };
        let least = self.min_size.map_or(default, |size| size.0);
        file.len().is_ok_and(|len| len >= least)
    }

    fn check_patterns(&self, reader: &Reader) -> anyhow::Result<()> {
        for pattern in &self.only {
            let fits = reader.files().any(|file| matches(pattern, file.path()));
            ensure!(fits, "has no file {pattern:?}");
        }
        Ok(())
    }
}

impl Urls {
    /// Returns the links of the file that was given; none where there is none.
    fn links(&self) -> anyhow::Result<Links> {
        let Some(path) = &self.links else { return Ok(Links::default()) };
        Links::parse(&super::read(path)?, &Limits::default()).about(path)
    }
}

/// Takes a URL that a path can be put behind.
fn url_prefix(text: &str) -> anyhow::Result<String> {
    let lower = text.to_ascii_lowercase();
    if !lower.starts_with("https://") && !lower.starts_with("http://") {
        bail!("is not an https URL");
    }
    ensure!(
        !address::text(text)?.contains(['?', '#']),
        "has a query or a fragment, which cannot go on"
    );
    Ok(text.trim_end_matches('/').to_owned())
}

/// Tells whether a path is one that a pattern means: it, or what lies in it, where it has no `*`.
fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.trim_end_matches('/').split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty() || rest.starts_with('/');
    };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Files of the model below this many bytes are not worth a link.
const MIN_SIZE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_paths() {
        for (pattern, fitting, others) in [
            ("model/a", &["model/a", "model/a/b"][..], &["model/ab", "model"][..]),
            ("model/", &["model/a", "model/x/b"], &["misc/a", "models/a"]),
            ("model/*.bin", &["model/a.bin", "model/x/a.bin", "model/.bin"], &["model/a.bin2"]),
            ("*", &["carton.toml", "model/a"], &[]),
            ("m*a*a", &["maa", "misc/abba"], &["ma", "mab"]),
            ("*a", &["a", "ba"], &["ab"]),
        ] {
            for path in fitting {
                assert!(matches(pattern, path), "{pattern} {path}");
            }
            for path in others {
                assert!(!matches(pattern, path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn prefixes_take_a_path() {
        assert_eq!(url_prefix("https://a.example/x/").unwrap(), "https://a.example/x");
        for text in ["", "a.example", "file:///x", "https://a.example/?x=", "https://a#b"] {
            assert!(url_prefix(text).is_err(), "{text}");
        }
    }
}
