use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use clap::{Subcommand, ValueEnum};
use modelcrate::{
    Verdict,
    tensor_core::{
        DType, Extent, Profile, Report, Source,
        digest::Algorithm,
        output::{Edited, Existing, NewFile},
    },
    ztensor::{
        self, Compression, Editor, Format as Layout, Reader, Role, Storage, Tensor, WriteOptions,
        Writer,
    },
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Print, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
    tensor_file::TensorFile,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Ztensor {
    Append(Append),
    Replace(Replace),
    Remove(Remove),
    Compact(Compact),
    Migrate(Migrate),
    Recover(Recover),
}

impl Ztensor {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Append(command) => command.run(),
            Self::Replace(command) => command.run(),
            Self::Remove(command) => command.run(),
            Self::Compact(command) => command.run(),
            Self::Migrate(command) => command.run(),
            Self::Recover(command) => command.run(),
        }
    }
}

/// Add tensors to a file, in place: the bytes that are there stay where they are
///
/// A process that is killed meanwhile leaves the file as it was.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ztensor append model.zt --from adapter.zt
  modelcrate ztensor append model.zt --raw bias=f32:128:bias.bin --digest sha256")]
pub(crate) struct Append {
    /// The file to add to
    file: PathBuf,
    #[command(flatten)]
    source: TensorSource,
    #[command(flatten)]
    edit: Edit,
}

impl Append {
    fn run(self) -> anyhow::Result<Outcome> {
        self.source.put(&self.file, self.edit, Put::New)
    }
}

/// Replace tensors of a file by others of the same names, in place
///
/// The bytes of the old ones stay in the file until it is compacted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  modelcrate ztensor replace model.zt --raw bias=f32:128:bias.bin")]
pub(crate) struct Replace {
    /// The file to change
    file: PathBuf,
    #[command(flatten)]
    source: TensorSource,
    #[command(flatten)]
    edit: Edit,
}

impl Replace {
    fn run(self) -> anyhow::Result<Outcome> {
        self.source.put(&self.file, self.edit, Put::InPlaceOf)
    }
}

/// Remove tensors from a file, in place
///
/// Their bytes stay in the file until it is compacted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  modelcrate ztensor remove model.zt optimizer.step optimizer.state")]
pub(crate) struct Remove {
    /// The file to change
    file: PathBuf,
    /// The names of the tensors
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    edit: Edit,
}

impl Remove {
    fn run(self) -> anyhow::Result<Outcome> {
        let mut editor = self.edit.open(&self.file, WriteOptions::default()).about(&self.file)?;
        for name in &self.names {
            editor.remove(name).about(&self.file)?;
        }
        self.edit.finish(&self.file, editor, Changes { removed: self.names, ..Changes::default() })
    }
}

/// Rewrite a file without the bytes that belong to no tensor
///
/// The file is replaced once the new one is complete.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  modelcrate ztensor compact model.zt")]
pub(crate) struct Compact {
    /// The file to rewrite
    file: PathBuf,
    #[command(flatten)]
    print: Print,
}

impl Compact {
    fn run(self) -> anyhow::Result<Outcome> {
        let edited = ztensor::compact(&self.file, WriteOptions::default()).about(&self.file)?;
        let size = Lengths::of(edited, &self.file)?;
        let Lengths { before, after } = size;
        let result = Size { path: self.file.display().to_string(), size };
        let text = format!(
            "{}: {} → {}, {} bytes saved\n",
            escape(&result.path),
            output::size(before),
            output::size(after),
            before.saturating_sub(after)
        );
        output::print_result(self.print, &result, &text)?;
        Ok(Outcome::Fine)
    }
}

#[derive(Serialize)]
struct Size {
    path: String,
    #[serde(flatten)]
    size: Lengths,
}

#[derive(Clone, Copy, Serialize)]
struct Lengths {
    #[serde(rename = "bytes_before")]
    before: u64,
    #[serde(rename = "bytes_after")]
    after: u64,
}

impl Lengths {
    /// Returns the lengths of a file before and after an edit.
    fn of(edited: Edited, file: &Path) -> anyhow::Result<Self> {
        Ok(match edited {
            Edited::Appended { before, after }
            | Edited::Replaced { before, after }
            | Edited::Truncated { before, after } => Self { before, after },
            _ => {
                let len = Source::open(file).about(file)?.len();
                Self { before: len, after: len }
            }
        })
    }
}

/// Bring a file of any generation from 0.1 to 1.2 to 1.1
///
/// Nothing is lost; what cannot be carried over as it was is reported.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ztensor migrate old.zt new.zt
  modelcrate ztensor migrate old.zt - | sha256sum")]
pub(crate) struct Migrate {
    /// The file to read
    input: PathBuf,
    /// The file to write; - is standard output
    output: PathBuf,
    /// Replace the output where it is there already
    #[arg(long)]
    force: bool,
    /// Report what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Migrated {
    path: String,
    from: String,
    tensors: usize,
    findings: Report,
}

impl Migrate {
    fn run(self) -> anyhow::Result<Outcome> {
        let reader = Reader::open(&self.input).about(&self.input)?;
        let to_stdout = is_stdio(&self.output);
        let findings = if self.dry_run {
            self.migrate(&reader, Writer::new(io::sink()))?
        } else if to_stdout {
            let out = io::BufWriter::with_capacity(1 << 20, io::stdout().lock());
            self.migrate(&reader, Writer::new(out))?
        } else {
            self.migrate(&reader, self.create().about(&self.output)?)?
        };
        let verdict = Verdict::from(&findings);
        let path = self.output.display().to_string();
        let (from, tensors) = (reader.generation().to_string(), reader.manifest().len());
        let result = Migrated { path, from, tensors, findings };
        let would = if self.dry_run { "would be " } else { "" };
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{}: {would}migrated from {} to 1.1, {tensors} tensors",
            escape(&result.path),
            result.from
        );
        for finding in result.findings.findings() {
            text.push_str(&output::finding_text(finding));
        }
        if !to_stdout {
            output::print_result(self.print, &result, &text)?;
        }
        Ok(if verdict == Verdict::Invalid { Outcome::Invalid } else { Outcome::Fine })
    }

    fn create(&self) -> anyhow::Result<Writer<NewFile>> {
        ensure!(!same_file(&self.input, &self.output), "is the input, expected another file");
        let there = self.output.exists() && !self.force;
        ensure!(!there, "is there already (--force replaces it)");
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        Ok(WriteOptions::default().existing(existing).create(&self.output)?)
    }

    fn migrate<W: Write>(&self, reader: &Reader, mut writer: Writer<W>) -> anyhow::Result<Report> {
        let migrated = ztensor::migrate(reader, &mut writer);
        let fault = migrated.as_ref().is_err_and(is_write);
        let findings = migrated.about(if fault { &self.output } else { &self.input })?;
        writer.finish().about(&self.output)?;
        Ok(findings)
    }
}

/// Cut a file whose end is missing back to the last complete one inside it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ztensor recover --dry-run model.zt
  modelcrate ztensor recover model.zt")]
pub(crate) struct Recover {
    /// The file to mend
    file: PathBuf,
    /// Say what would be cut off and what would remain, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Recovered {
    path: String,
    dry_run: bool,
    /// Tensors of the file that remains.
    tensors: usize,
    #[serde(flatten)]
    size: Lengths,
}

impl Recover {
    fn run(self) -> anyhow::Result<Outcome> {
        let (size, tensors) = self.recover().about(&self.file)?;
        let (after, lost) = (size.after, size.before.saturating_sub(size.after));
        let path = self.file.display().to_string();
        let result = Recovered { path, dry_run: self.dry_run, tensors, size };
        let path = escape(&result.path);
        let (be, remain) =
            if self.dry_run { (" would be", "would remain") } else { ("", "remain") };
        let text = match lost {
            0 => format!("{path}: is complete\n"),
            _ => format!("{path}: {lost} bytes{be} cut off, {after} {remain}, {tensors} tensors\n"),
        };
        output::print_result(self.print, &result, &text)?;
        Ok(Outcome::Fine)
    }

    /// Returns the lengths of the file, and how many tensors the one that remains has.
    fn recover(&self) -> anyhow::Result<(Lengths, usize)> {
        if !self.dry_run {
            let size = Lengths::of(ztensor::recover(&self.file)?, &self.file)?;
            return Ok((size, Reader::open(&self.file)?.manifest().len()));
        }
        let reader = Reader::options().profile(Profile::Lenient).open(&self.file)?;
        let (after, lost) = (reader.source().len(), reader.recovered().unwrap_or_default());
        Ok((Lengths { before: after.saturating_add(lost), after }, reader.manifest().len()))
    }
}

/// Options of every edit.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Edit {
    /// Check everything, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Default, Serialize)]
struct Changes {
    added: Vec<String>,
    replaced: Vec<String>,
    removed: Vec<String>,
}

#[derive(Serialize)]
struct EditedFile {
    path: String,
    dry_run: bool,
    #[serde(flatten)]
    changes: Changes,
    #[serde(flatten)]
    lengths: Lengths,
}

impl Edit {
    fn open(self, file: &Path, options: WriteOptions) -> ztensor::Result<Editor> {
        if self.dry_run { Editor::dry_run(file, options) } else { Editor::open_with(file, options) }
    }

    fn finish(self, file: &Path, editor: Editor, changes: Changes) -> anyhow::Result<Outcome> {
        let edited = editor.commit().about(file)?;
        let lengths = Lengths::of(edited, file)?;
        let (path, dry_run) = (file.display().to_string(), self.dry_run);
        let result = EditedFile { path, dry_run, changes, lengths };
        let mut text = String::new();
        for (names, what) in [
            (&result.changes.added, "added"),
            (&result.changes.replaced, "replaced"),
            (&result.changes.removed, "removed"),
        ] {
            let would = if dry_run { "would be " } else { "" };
            for name in names {
                let _ = writeln!(text, "{}: {would}{what} {}", escape(&result.path), escape(name));
            }
        }
        output::print_result(self.print, &result, &text)?;
        Ok(Outcome::Fine)
    }
}

/// Whether a name is to be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Put {
    New,
    InPlaceOf,
}

/// Where tensors come from and how they are stored.
#[derive(Debug, clap::Args)]
struct TensorSource {
    /// Take tensors from another zTensor file; their stored bytes are copied as they are
    #[arg(long, value_name = "FILE", required_unless_present = "raw")]
    from: Option<PathBuf>,
    /// Take only this tensor from that file; may be given several times
    #[arg(long = "tensor", value_name = "NAME", requires = "from")]
    tensors: Vec<String>,
    /// Take a tensor from a file of its elements, little-endian, row-major: NAME=DTYPE:SHAPE:PATH,
    /// with the dimensions separated by commas, none for a scalar
    #[arg(long, value_name = "SPEC")]
    raw: Vec<Raw>,
    /// Compress what comes from raw files by zstd at this level
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true)]
    zstd: Option<i32>,
    /// Add a digest to what comes from raw files
    #[arg(long, value_enum)]
    digest: Option<DigestName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DigestName {
    Sha256,
    Crc32c,
}

impl TensorSource {
    fn put(self, file: &Path, edit: Edit, put: Put) -> anyhow::Result<Outcome> {
        let mut editor = edit.open(file, self.options()).about(file)?;
        let mut names = Vec::new();
        if let Some(from) = &self.from {
            let reader = self.open(from, file).about(from)?;
            for tensor in self.wanted(&reader).about(from)? {
                make_room(&mut editor, tensor.name(), put).about(file)?;
                let copied = editor.writer().copy(tensor);
                let fault = copied.as_ref().is_err_and(is_write);
                copied.about(if fault { file } else { from })?;
                names.push(tensor.name().to_owned());
            }
        }
        for raw in &self.raw {
            make_room(&mut editor, &raw.name, put).about(file)?;
            raw.add(editor.writer()).about(file)?;
            names.push(raw.name.clone());
        }
        let changes = match put {
            Put::New => Changes { added: names, ..Changes::default() },
            Put::InPlaceOf => Changes { replaced: names, ..Changes::default() },
        };
        edit.finish(file, editor, changes)
    }

    fn open(&self, from: &Path, file: &Path) -> anyhow::Result<Reader> {
        ensure!(!same_file(from, file), "is the file that is edited");
        Ok(Reader::open(from)?)
    }

    /// Returns the tensors that were asked for, all where none was named.
    fn wanted<'r>(&self, reader: &'r Reader) -> anyhow::Result<Vec<Tensor<'r>>> {
        let wanted: BTreeSet<&str> = self.tensors.iter().map(String::as_str).collect();
        for name in &wanted {
            ensure!(reader.tensor(name).is_some(), "has no tensor {name:?}");
        }
        let is_wanted = |name| wanted.is_empty() || wanted.contains(name);
        Ok(reader.tensors().filter(|tensor| is_wanted(tensor.name())).collect())
    }

    fn options(&self) -> WriteOptions {
        let mut storage = Storage::default();
        if let Some(level) = self.zstd {
            storage = storage.compression(Compression::Zstd { level, frame: None });
        }
        storage = match self.digest {
            Some(DigestName::Sha256) => storage.digest(Algorithm::Sha256),
            Some(DigestName::Crc32c) => storage.digest(Algorithm::Crc32c),
            None => storage,
        };
        WriteOptions::default().storage(storage)
    }
}

fn make_room(editor: &mut Editor, name: &str, put: Put) -> anyhow::Result<()> {
    if put == Put::InPlaceOf {
        editor.remove(name)?;
    }
    Ok(())
}

/// A tensor in a file of its own.
type Raw = TensorFile<DType>;

impl Raw {
    /// Writes the tensor in memory that does not grow with its size.
    fn add(&self, writer: &mut Writer<impl Write>) -> anyhow::Result<()> {
        let source = self.open(self.dtype).about(&self.path)?;
        let mut object = writer.object(&self.name)?;
        let mut component = object.component(Role::Data, self.dtype)?;
        let mut elements = source.stream(Extent::first(source.len()), "elements")?;
        io::copy(&mut elements, &mut component).about(&self.path)?;
        component.finish()?;
        Ok(object.finish(Layout::Dense, self.shape.clone())?)
    }
}

/// Tells whether a copy failed because of the file that is written, not the one that is read.
const fn is_write(error: &ztensor::Error) -> bool {
    use ztensor::Error;
    matches!(error, Error::DuplicateObject { .. } | Error::Unfinished { .. } | Error::Write { .. })
}
