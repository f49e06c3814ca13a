use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, BufRead as _, Write},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use clap::{Subcommand, ValueEnum};
use modelcrate::{
    tensor_core::{
        DType, Extent, Finding, Profile, Report, Severity, Source, TensorInfo, digest::Algorithm,
        output::Edited,
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
    options::{Force, InPlace, Print},
    outcome::Outcome,
    output,
    paths::same_file,
    tensor_file::TensorFile,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Ztensor {
    /// Add tensors to a file, in place: the bytes that are there stay where they are
    ///
    /// The file is the old one or the new one at every moment, for readers too, and where the
    /// process is killed. The one exception: while a copy of a manifest of more than 4096 bytes is
    /// written, once or a few times in an edit and for microseconds per MiB, the end of the file is
    /// missing; a process killed just then leaves what `recover` cuts back to the old file. What a
    /// killed process had written stays behind a complete file, until that is compacted.
    #[command(after_help = "\
Examples:
  modelcrate ztensor append model.zt --from adapter.zt
  modelcrate ztensor append model.zt --raw bias=f32:128:bias.bin --digest sha256")]
    Append(Given),
    /// Replace tensors of a file by others of the same names, in place
    ///
    /// A warning says where the element type or the shape is another. The bytes of the old tensors
    /// stay in the file until it is compacted. As with `append`, the file is the old one or the new
    /// one at every moment.
    #[command(after_help = "\
Example:
  modelcrate ztensor replace model.zt --raw bias=f32:128:bias.bin")]
    Replace(Given),
    Remove(Remove),
    Compact(Compact),
    Recover(Recover),
}

impl Ztensor {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Append(Given { file, source, edit }) => source.put(&file, edit, Put::New),
            Self::Replace(Given { file, source, edit }) => source.put(&file, edit, Put::InPlaceOf),
            Self::Remove(command) => command.run(),
            Self::Compact(command) => command.run(),
            Self::Recover(command) => command.run(),
        }
    }
}

/// Tensors for a file
#[derive(Debug, clap::Args)]
pub(crate) struct Given {
    /// The file to change
    file: PathBuf,
    #[command(flatten)]
    source: TensorSource,
    #[command(flatten)]
    edit: Edit,
}

/// Remove tensors from a file, in place
///
/// Their bytes stay in the file until it is compacted. As with `append`, the file is the old one or
/// the new one at every moment.
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
        let changes = Changes { removed: self.names, ..Changes::default() };
        self.edit.finish(&self.file, editor, changes, Report::default())
    }
}

/// Rewrite a file without the bytes that belong to no tensor
///
/// The file is replaced once the new one is complete. Stored bytes are compared with their digests on
/// the way; where they differ, or the new file would have another fault, it stays as it is without
/// --force, which reports each fault.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  modelcrate ztensor compact model.zt")]
pub(crate) struct Compact {
    /// The file to rewrite
    file: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    edit: Edit,
}

impl Compact {
    fn run(self) -> anyhow::Result<Outcome> {
        let options = WriteOptions::default().output(self.edit.in_place.output());
        let options = options.verify(self.force.verify());
        let mut findings = Report::default();
        if self.force.force {
            findings.extend(errors(Reader::open(&self.file).about(&self.file)?.validate()));
        }
        let edited = if self.edit.dry_run {
            ztensor::compact_dry_run(&self.file, options)
        } else {
            ztensor::compact(&self.file, options)
        };
        let lengths = Lengths::of(edited.about(&self.file)?, &self.file)?;
        let Lengths { before, after } = lengths;
        let text = format!(
            "{}: {} → {}, {} bytes {}saved\n",
            escape(&self.file.display().to_string()),
            output::size(before),
            output::size(after),
            before.saturating_sub(after),
            self.edit.would_be(),
        );
        self.edit.print(&self.file, Nothing {}, lengths, findings, text)
    }
}

/// Returns what is written only where that is forced.
fn errors(report: Report) -> impl Iterator<Item = Finding> {
    report.into_iter().filter(|finding| finding.severity == Severity::Error)
}

/// What a command that changes a file has done.
#[derive(Serialize)]
struct Done<T> {
    path: String,
    dry_run: bool,
    #[serde(flatten)]
    what: T,
    #[serde(flatten)]
    lengths: Lengths,
    #[serde(skip_serializing_if = "Report::is_empty")]
    findings: Report,
}

#[derive(Serialize)]
struct Nothing {}

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

/// Cut a file whose end is missing back to the last complete one inside it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ztensor recover --dry-run model.zt
  modelcrate ztensor recover model.zt")]
pub(crate) struct Recover {
    /// The file to mend
    file: PathBuf,
    #[command(flatten)]
    edit: Edit,
}

#[derive(Serialize)]
struct Recovered {
    /// Tensors of the file that remains.
    tensors: usize,
}

impl Recover {
    fn run(self) -> anyhow::Result<Outcome> {
        let (lengths, tensors) = self.recover().about(&self.file)?;
        let (after, lost) = (lengths.after, lengths.before.saturating_sub(lengths.after));
        let path = escape(&self.file.display().to_string()).into_owned();
        let (be, remain) =
            if self.edit.dry_run { (" would be", "would remain") } else { ("", "remain") };
        let text = match lost {
            0 => format!("{path}: is complete\n"),
            _ => format!("{path}: {lost} bytes{be} cut off, {after} {remain}, {tensors} tensors\n"),
        };
        self.edit.print(&self.file, Recovered { tensors }, lengths, Report::default(), text)
    }

    /// Returns the lengths of the file, and how many tensors the one that remains has.
    fn recover(&self) -> anyhow::Result<(Lengths, usize)> {
        let output = self.edit.in_place.output();
        let edited = if self.edit.dry_run {
            ztensor::recoverable(&output.check(&self.file)?)?
        } else {
            ztensor::recover(&self.file, WriteOptions::default().output(output))?
        };
        let reader = Reader::options().profile(Profile::Lenient).open(&self.file)?;
        Ok((Lengths::of(edited, &self.file)?, reader.manifest().len()))
    }
}

/// Options of every edit.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Edit {
    /// Check everything, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    in_place: InPlace,
    #[command(flatten)]
    print: Print,
}

#[derive(Default, Serialize)]
struct Changes {
    added: Vec<String>,
    replaced: Vec<String>,
    removed: Vec<String>,
}

impl Edit {
    fn open(self, file: &Path, options: WriteOptions) -> ztensor::Result<Editor> {
        let options = options.output(self.in_place.output());
        if self.dry_run { Editor::dry_run(file, options) } else { Editor::open_with(file, options) }
    }

    const fn would_be(self) -> &'static str {
        if self.dry_run { "would be " } else { "" }
    }

    fn finish(
        self,
        file: &Path,
        editor: Editor,
        changes: Changes,
        findings: Report,
    ) -> anyhow::Result<Outcome> {
        let lengths = Lengths::of(editor.commit().about(file)?, file)?;
        let path = escape(&file.display().to_string()).into_owned();
        let would_be = self.would_be();
        let mut text = String::new();
        for (names, what) in [
            (&changes.added, "added"),
            (&changes.replaced, "replaced"),
            (&changes.removed, "removed"),
        ] {
            for name in names {
                let _ = writeln!(text, "{path}: {would_be}{what} {}", escape(name));
            }
        }
        self.print(file, changes, lengths, findings, text)
    }

    fn print<T: Serialize>(
        self,
        file: &Path,
        what: T,
        lengths: Lengths,
        findings: Report,
        mut text: String,
    ) -> anyhow::Result<Outcome> {
        text.extend(findings.findings().iter().map(output::finding_text));
        let (path, dry_run) = (file.display().to_string(), self.dry_run);
        let done = Done { path, dry_run, what, lengths, findings };
        output::print_done(self.print, file, dry_run, &done, &text)?;
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
    /// Take tensors from another zTensor file; their stored bytes are checked as `verify` does and
    /// copied as they are
    #[arg(long, value_name = "FILE", required_unless_present = "raw")]
    from: Option<PathBuf>,
    /// Take only this tensor from that file; may be given several times
    #[arg(long = "tensor", value_name = "NAME", requires = "from")]
    tensors: Vec<String>,
    /// Take tensors from that file despite faults or wrong digests, and report each
    #[arg(long, requires = "from")]
    force: bool,
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
        let (mut names, mut findings) = (Vec::new(), Report::default());
        if let Some(from) = &self.from {
            let reader = self.open(from, file).about(from)?;
            let budget = reader.budget();
            for tensor in self.wanted(&reader).about(from)? {
                let found = tensor.validate_within(&budget);
                findings.extend(self.accepted(found).about(from)?);
                let room = make_room(&mut editor, tensor.name(), put, tensor.info().ok());
                findings.extend(room.about(file)?);
                let copied = editor.writer().copy(tensor);
                let fault = copied.as_ref().is_err_and(is_write);
                copied.about(if fault { file } else { from })?;
                names.push(tensor.name().to_owned());
            }
        }
        for raw in &self.raw {
            let info = TensorInfo { dtype: raw.dtype, shape: raw.shape.clone() };
            findings.extend(make_room(&mut editor, &raw.name, put, Some(info)).about(file)?);
            raw.add(editor.writer()).about(file)?;
            names.push(raw.name.clone());
        }
        let changes = match put {
            Put::New => Changes { added: names, ..Changes::default() },
            Put::InPlaceOf => Changes { replaced: names, ..Changes::default() },
        };
        edit.finish(file, editor, changes, findings)
    }

    /// Returns what is to be said of a tensor that is taken from another file; refuses errors that
    /// are not forced.
    fn accepted(&self, found: Report) -> ztensor::Result<impl Iterator<Item = Finding> + use<>> {
        let mut all = found.findings().iter();
        match all.find(|fault| fault.severity == Severity::Error && !self.force) {
            Some(Finding { message, .. }) => {
                Err(ztensor::Error::Faulty { message: message.clone() })
            }
            None => Ok(found.into_iter().filter(|found| found.severity > Severity::Note)),
        }
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
        WriteOptions::default().storage(storage).verify(Force { force: self.force }.verify())
    }
}

/// Removes the tensor that another takes the place of; says where that is of another kind.
fn make_room(
    editor: &mut Editor,
    name: &str,
    put: Put,
    new: Option<TensorInfo>,
) -> anyhow::Result<Option<Finding>> {
    if put == Put::New {
        return Ok(None);
    }
    editor.remove(name)?;
    let old = editor.reader().tensor(name).and_then(|tensor| tensor.info().ok());
    Ok(old.zip(new).filter(|(old, new)| old != new).map(|(old, new)| {
        let message = format!("{} {} became {} {}", old.dtype, old.shape, new.dtype, new.shape);
        Finding::warning("zt/replaced-type", message).tensor(name)
    }))
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
        loop {
            let ready = elements.fill_buf().about(&self.path)?;
            if ready.is_empty() {
                break;
            }
            match component.write_all(ready) {
                // Elements that no tensor can have are the fault of their file.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    return Err(error).about(&self.path);
                }
                written => written?,
            }
            let taken = ready.len();
            elements.consume(taken);
        }
        component.finish()?;
        Ok(object.finish(Layout::Dense, self.shape.clone())?)
    }
}

/// Tells whether a copy failed because of the file that is written, not the one that is read.
const fn is_write(error: &ztensor::Error) -> bool {
    use ztensor::Error;
    matches!(error, Error::DuplicateObject { .. } | Error::Unfinished { .. } | Error::Write { .. })
}
