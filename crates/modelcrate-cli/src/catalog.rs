use std::{collections::HashSet, path::PathBuf};

use anyhow::ensure;
use modelcrate::catalog::{Catalog as Rows, CatalogOptions, Counts, Entry, Shard, tensors_path};
use serde::Serialize;

use crate::{
    address,
    escape::escape,
    failure::About,
    options::{Input, Print, is_stdio, manner},
    outcome::Outcome,
    output::{self, count, path_text},
    progress::Progress,
    walk::{Found, Walked},
};

/// Make or update a table of model files: a row each
///
/// Rows have path, length, entity tag, time of change, format, version, verdict, rules that something
/// was found by, counts of errors and warnings, tensors, bytes of weights, licence, inputs and outputs;
/// schemas/catalog-file.schema.json describes them. They are sorted by path, and written once all are
/// there. A file that is broken or cannot be read is a row that says so. Folders are walked as verify
/// does; where one cannot be listed, an old catalogue stays as it is.
///
/// A file that has not changed since an old catalogue was made is not read again, if its shards have not
/// either: its row is taken from there. That is told by length and the entity tag that its store has for
/// it, or else by length and time of change. A run that was killed leaves what it found in a file
/// beside the catalogue, models.jsonl.part beside models.jsonl, from where the next run goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 the catalogue is written, whatever its rows say, 2 it is not, or a folder or file that was \
named could not be read.

Examples:
  modelcrate catalog models/ -o models.jsonl
  modelcrate catalog models/ -o models.jsonl --tensors --hash
  modelcrate catalog models/ -o part2.jsonl --shard 2/8 --from all.jsonl")]
pub(crate) struct Catalog {
    /// Files or folders; a build that reads addresses also takes those, and folders and patterns of buckets
    #[arg(required = true, value_name = "FILE|FOLDER")]
    files: Vec<Input>,
    /// The catalogue, .jsonl or, in a build that has it, .parquet; one that is there is updated
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Make a row for each tensor, too, in a file beside it: catalog.tensors.jsonl beside catalog.jsonl
    #[arg(long)]
    tensors: bool,
    /// Hash the content of files, as modelcrate hash does, and of tensors that have rows
    #[arg(long)]
    hash: bool,
    /// Compute statistics of the tensors
    #[arg(long, requires = "tensors")]
    stats: bool,
    /// Check every byte; else only what needs no tensor data
    #[arg(long)]
    verify: bool,
    /// Take rows of unchanged files from this catalogue; from the one that is there by default
    #[arg(long, value_name = "OLD")]
    from: Option<PathBuf>,
    /// Describe only the files of a part: those whose path, hashed, has this remainder
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Follow links in folders
    #[arg(short = 'L', long)]
    follow: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Done {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensors_path: Option<String>,
    skipped: u64,
    #[serde(flatten)]
    counts: Counts,
}

impl Catalog {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        for path in [Some(&self.output), self.from.as_ref()].into_iter().flatten() {
            address::refuse(path, "expected a path of this machine").about(path)?;
            ensure!(!is_stdio(path), "-: a catalogue is a file, expected its path");
        }
        // Rows of tensors would stay as they are, whatever the files are by now.
        let beside = tensors_path(&self.output);
        ensure!(
            self.tensors || !beside.exists(),
            "{}: has rows of tensors in {beside:?}, expected --tensors, or that file to be away",
            self.output.display()
        );
        let there = Some(&self.output).filter(|output| output.exists());
        let old = self.from.as_ref().or(there);
        let (mut entries, mut skipped, mut outcome) = (Vec::new(), 0_u64, Outcome::Fine);
        let mut named = HashSet::new();
        for input in &self.files {
            ensure!(!is_stdio(input), "-: standard input has no path, as a row has");
            let walked = Walked::of(input, self.follow);
            skipped = skipped.saturating_add(walked.skipped.len() as u64);
            for found in walked.files {
                if let Some(fault) = &found.fault {
                    // The rows of what is in there would be lost.
                    ensure!(old.is_none(), "{}: {fault}", found.path.display());
                    outcome = Outcome::Failed;
                }
                let entry = entry(found);
                named.extend(walked.is_one.then(|| entry.path().to_owned()));
                entries.push(entry);
            }
        }
        if let Some(shard) = self.shard {
            entries.retain(|entry| shard.has(entry.path()));
        }
        let options = CatalogOptions::default()
            .tensors(self.tensors)
            .hash(self.hash)
            .stats(self.stats)
            .verify(self.verify)
            .threads(manner().threads());
        let mut catalog = Rows::create(&self.output, options).about(&self.output)?;
        if let Some(old) = old {
            catalog.update_from(old).about(old)?;
        }
        let bar = Progress::of_files(entries.len() as u64, 0);
        let is_named = |path: &str| {
            let alike = path.rsplit_once('#').map(|(path, _)| path);
            named.contains(path) || alike.is_some_and(|path| named.contains(path))
        };
        let counts = catalog.run(entries, |row, _| {
            bar.begin(row.path.as_ref());
            if row.verdict == "unread" && is_named(&row.path) {
                outcome = Outcome::Failed;
            }
        });
        bar.finish();
        let tensors = self.tensors.then_some(beside);
        let done = Done {
            path: path_text(&self.output),
            tensors_path: tensors.as_deref().map(path_text),
            skipped,
            counts: counts.about(&self.output)?,
        };
        output::print_done(self.print, &self.output, false, &done, &done.text())?;
        Ok(outcome)
    }
}

fn entry(found: Found) -> Entry {
    if let Some(fault) = found.fault {
        return Entry::unread(&found.path, fault);
    }
    #[cfg(feature = "remote")]
    if let Some(file) = found.address {
        return file.entry();
    }
    Entry::at_path(found.path)
}

impl Done {
    fn text(&self) -> String {
        let Counts { files, unchanged, invalid, unread, tensors, .. } = self.counts;
        let rows = |number: u64, one: &str| count(usize::try_from(number).unwrap_or(0), one);
        let mut parts = vec![rows(files, "file")];
        for (number, what) in [
            (unchanged, "unchanged"),
            (invalid, "invalid"),
            (unread, "not read"),
            (self.skipped, "skipped"),
        ] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        let mut text = format!("{}: {}\n", escape(&self.path), parts.join(", "));
        if let Some(path) = &self.tensors_path {
            text.push_str(&format!("{}: {}\n", escape(path), rows(tensors, "tensor")));
        }
        text
    }
}
