//! One page about a file, or about what differs between two: for a browser, or as Markdown.
//!
//! The page is one HTML file that asks for nothing: style, script and data are in it, and a policy in it
//! keeps a browser from loading or running anything else. All of it can be read without the script,
//! which sorts, filters and searches. What a file says is shown as text, whatever it is.

mod changes;
mod graph;
mod heat;
mod html;
mod markdown;
mod suspects;
mod tensors;
mod text;

use std::io;

use tensor_core::Report;

use crate::{AnyReader, Coverage, Diff, Summary, SummaryOptions, Verdict};

pub use self::suspects::{Suspect, Suspicion};

/// What is looked at beyond the document of a file.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PageOptions {
    /// Compute statistics of the elements of every tensor, and which tensors are equal: tensors are read
    /// once, piece by piece.
    pub stats: bool,
    /// Compute the SHA-256 of the decoded bytes of every tensor.
    pub digests: bool,
}

impl PageOptions {
    /// Sets whether statistics are computed.
    #[must_use]
    pub const fn stats(mut self, stats: bool) -> Self {
        self.stats = stats;
        self
    }

    /// Sets whether digests are computed.
    #[must_use]
    pub const fn digests(mut self, digests: bool) -> Self {
        self.digests = digests;
        self
    }
}

impl PageOptions {
    /// Checks a file as [`AnyReader::validate_with`] does, but leaves bytes out that nothing proves
    /// and that a page with statistics reads itself.
    #[must_use]
    pub fn validate(&self, reader: &AnyReader, progress: impl Fn(u64) + Sync) -> Report {
        match reader {
            AnyReader::Weights(reader) if self.stats => reader.validate_beside_reads(progress),
            #[cfg(feature = "ztensor")]
            AnyReader::ZTensor(reader) if self.stats => reader.validate_beside_reads(progress),
            reader => reader.validate_with(progress),
        }
    }
}

/// What is to be shown of a file, or of two.
///
/// # Examples
///
/// ```
/// use modelcrate::{
///     AnyReader,
///     page::{Page, PageOptions},
/// };
///
/// let header = br#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
/// let mut file = (header.len() as u64).to_le_bytes().to_vec();
/// file.extend_from_slice(header);
/// file.extend_from_slice(&0.5_f32.to_le_bytes());
/// let reader = AnyReader::from_bytes(file)?;
///
/// let page = Page::of("w.safetensors", Some(&reader), reader.validate(), PageOptions::default());
/// let mut html = Vec::new();
/// page.html(&mut html).unwrap();
/// assert!(html.starts_with(b"<!DOCTYPE html>"));
/// # Ok::<(), modelcrate::Error>(())
/// ```
#[derive(Debug)]
pub struct Page<'a> {
    /// What the file is called.
    name: String,
    /// What [`AnyReader::validate`] says of it.
    findings: Report,
    /// `None` of a file that does not open.
    content: Option<Content<'a>>,
    compared: Option<Box<Compared<'a>>>,
}

/// What is in a file that opens.
#[derive(Debug)]
struct Content<'a> {
    reader: &'a AnyReader,
    summary: Summary,
    coverage: Coverage,
    suspects: Vec<Suspect>,
    has_stats: bool,
}

/// What differs from an older file.
#[derive(Debug)]
struct Compared<'a> {
    old: Page<'a>,
    diff: Diff,
    /// Where values differ, of the tensors of [`Diff::tensors`], in that order.
    heat: Vec<Option<heat::Strip>>,
}

impl<'a> Page<'a> {
    /// Describes a file under a name, with what [`PageOptions::validate`] found in it, or why it does not
    /// open, where there is no reader.
    ///
    /// Tensors are read only where the options ask for what is in them.
    #[must_use]
    pub fn of(
        name: &str,
        reader: Option<&'a AnyReader>,
        findings: Report,
        options: PageOptions,
    ) -> Self {
        let name = name.to_owned();
        let Some(reader) = reader else {
            return Self { name, findings, content: None, compared: None };
        };
        let PageOptions { stats, digests } = options;
        let read = SummaryOptions::default().stats(stats).digests(digests);
        let summary = reader.summary(read);
        let suspects = suspects::find(reader, &summary);
        let coverage = reader.coverage();
        let mut all = findings;
        // What reading the tensors found, and nothing twice.
        let found = summary.findings.without(&all);
        all.append(found);
        let content = Content { reader, summary, coverage, suspects, has_stats: stats };
        Self { name, findings: all, content: Some(content), compared: None }
    }

    /// Adds what differs from an older file, and where in its tensors: those whose values differ are
    /// read once more.
    #[must_use]
    pub fn compared_with(mut self, old: Self, diff: Diff) -> Self {
        let readers = [&old, &self].map(|page| page.content.as_ref().map(|content| content.reader));
        let heat = match readers {
            [Some(old), Some(new)] => heat::strips(old, new, &diff),
            _ => Vec::new(),
        };
        self.compared = Some(Box::new(Compared { old, diff, heat }));
        self
    }

    /// Returns what the findings say about the file.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::from(&self.findings)
    }

    /// Returns the tensors that someone should look at.
    #[must_use]
    pub fn suspects(&self) -> &[Suspect] {
        self.content.as_ref().map_or(&[], |content| &content.suspects)
    }

    /// Writes the page as HTML.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn html(&self, out: impl io::Write) -> io::Result<()> {
        html::write(self, out)
    }

    /// Writes the page as Markdown, with tables as GitHub has them and without HTML.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn markdown(&self, out: impl io::Write) -> io::Result<()> {
        markdown::write(self, out)
    }
}

/// Tensors that have a row of their own; more are counted.
const TENSORS: usize = 5000;

/// Rows of all other tables.
const ROWS: usize = 500;
