use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use clap::ValueEnum;
use modelcrate::{
    AnyReader, DiffOptions, ReadOptions,
    page::{Page, PageOptions},
    tensor_core::{Profile, Report as Findings},
};

use crate::{
    escape::escape,
    failure::{self, About, is_invalid},
    options::{Format, Input, Print, is_stdio, manner},
    outcome::Outcome,
    output,
    paths::{check_shards, same_file},
    progress::{Progress, busy},
    walk::Found,
    write::Writing,
};

/// Make one page about a model file, or about what differs between two
///
/// The page is one HTML file that works without a network and without scripts: what is in the model,
/// what verify finds and what that means, inputs and outputs, tensors, files. With --stats it shows what
/// the values of tensors are like, and which ones someone should look at: those with NaN or infinite
/// values, those that are all zero or one number, those that are cut off at the ends of their type, and
/// those that are equal. Of two files it shows what differs, too, and where in the tensors.
///
/// Of a file that is invalid, or does not open, the page says so: that is no failure of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 the page is written, whatever it says of the file; 2 the command could not be carried
out.

Examples:
  modelcrate report model.rten -o model.html
  modelcrate report --stats model.safetensors -o model.html
  modelcrate report old.tflite new.tflite -o changes.html
  modelcrate report --format markdown model.zt >> notes.md")]
pub(crate) struct Report {
    /// The file; of two, the older one first; - is standard input
    #[arg(value_name = "FILE")]
    file: Input,
    /// The newer file
    #[arg(value_name = "NEW")]
    new: Option<Input>,
    /// How the page is written; html, or what the end of OUT says: .html, .htm, .md
    #[arg(long, value_enum)]
    format: Option<Language>,
    /// The file to write, instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace the output where it is a file that is there
    #[arg(long)]
    overwrite: bool,
    /// Compute statistics of the elements of every tensor, and find those that are equal
    #[arg(long)]
    stats: bool,
    /// Compute the SHA-256 of the decoded bytes of every tensor
    #[arg(long)]
    digests: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// One file for a browser
    Html,
    /// Text with tables, as GitHub shows it
    Markdown,
}

/// What is known of a file before a page is made.
struct Opened {
    name: String,
    findings: Findings,
    /// None of a file that does not open.
    reader: Option<AnyReader>,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let writing = self.writing();
        if let Some(path) = &self.output {
            let mut inputs = std::iter::once(&self.file).chain(&self.new);
            let is_input = !is_stdio(path) && inputs.any(|input| same_file(input, path));
            ensure!(!is_input, "{}: is an input, expected another file", path.display());
            writing.check(path).about(path)?;
        }
        let language = self.language()?;
        let options = PageOptions::default().stats(self.stats).digests(self.digests);
        // Of two files the newer one is shown.
        let first = if self.new.is_some() { PageOptions::default() } else { options };
        let first = self.open(&self.file, first)?;
        let second = self.new.as_ref().map(|new| self.open(new, options)).transpose()?;
        if let Some(path) = &self.output {
            let inputs = std::iter::once(&self.file).chain(&self.new);
            for (input, opened) in inputs.zip(std::iter::once(&first).chain(&second)) {
                if let Some(reader) = &opened.reader {
                    check_shards(input, reader, path)?;
                }
            }
        }
        busy(self.new.as_ref().unwrap_or(&self.file));
        let page = match &second {
            None => first.page(options),
            Some(new) => first.compared(new, options)?,
        };
        match &self.output {
            None => {
                crate::progress::idle();
                language.write(&page, io::stdout().lock())?;
            }
            Some(path) => {
                let mut sink = writing.create(path).about(path)?;
                language.write(&page, &mut sink).about(path)?;
                let bytes = output::size(sink.commit(path)?);
                let shown = path.display().to_string();
                writing.report(path, &(), &format!("{}: written, {bytes}\n", escape(&shown)))?;
            }
        }
        Ok(Outcome::Fine)
    }

    const fn writing(&self) -> Writing {
        let print = Print { format: Format::Human };
        Writing { overwrite: self.overwrite, dry_run: false, print }
    }

    /// Opens a file and checks it as `verify` does; one that is broken as far as it goes.
    fn open(&self, input: &Path, page: PageOptions) -> anyhow::Result<Opened> {
        let name = output::path_text(input);
        let mut opened = Opened { name, findings: Findings::default(), reader: None };
        let found = Found::meant(input);
        let [found] = found.as_slice() else {
            anyhow::bail!("{}: is several files, expected one", input.display());
        };
        if let Some(fault) = &found.fault {
            anyhow::bail!("{}: {fault}", input.display());
        }
        let options = AnyReader::options().threads(manner().threads());
        let open = |options: ReadOptions| found.open(options).about(input);
        let (reader, faults) = match open(options.profile(Profile::Strict)) {
            Ok(opened) => opened,
            Err(error) if !is_invalid(&error) => return Err(error),
            Err(error) => {
                opened.findings.add(failure::finding(&error));
                match open(options.profile(Profile::Lenient)) {
                    Ok(opened) => opened,
                    Err(_) => return Ok(opened),
                }
            }
        };
        let bar = Progress::new(input, reader.byte_len());
        let known = opened.findings.clone();
        opened.findings.append(page.validate(&reader, |bytes| bar.inc(bytes)).without(&known));
        bar.finish();
        if let Some(fault) = faults.first() {
            anyhow::bail!("{}: {fault}", input.display());
        }
        if found.has_neighbours() {
            let hashes = reader.check_sidecar(input, manner().threads(), |_| ());
            opened.findings.append(hashes);
        }
        opened.reader = Some(reader);
        Ok(opened)
    }

    fn language(&self) -> anyhow::Result<Language> {
        let ends = [
            ("html", Language::Html),
            ("htm", Language::Html),
            ("md", Language::Markdown),
            ("markdown", Language::Markdown),
        ];
        output::by_end(self.format, self.output.as_deref(), &ends)
    }
}

impl Opened {
    fn page(&self, options: PageOptions) -> Page<'_> {
        Page::of(&self.name, self.reader.as_ref(), self.findings.clone(), options)
    }

    /// Describes a newer file, with what differs from this one.
    fn compared<'a>(&'a self, new: &'a Self, options: PageOptions) -> anyhow::Result<Page<'a>> {
        let (Some(before), Some(after)) = (&self.reader, &new.reader) else {
            let broken = if self.reader.is_none() { self } else { new };
            anyhow::bail!("{}: does not open, expected two files to be compared", broken.name);
        };
        let mut differ = DiffOptions::default();
        differ.threads = manner().threads();
        let diff = before.diff(after, &differ, |_| true, |_| ()).about(Path::new(&new.name))?;
        Ok(new.page(options).compared_with(self.page(PageOptions::default()), diff))
    }
}

impl Language {
    fn write(self, page: &Page<'_>, out: impl Write) -> io::Result<()> {
        let mut out = io::BufWriter::new(out);
        match self {
            Self::Html => page.html(&mut out)?,
            Self::Markdown => page.markdown(&mut out)?,
        }
        out.flush()
    }
}
