use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{anyhow, bail, ensure};
use modelcrate::{
    carton_format::{
        self, Change, Description, Error, FrameworkVersion, NewValue, Platform, Reader, Runner,
        Value, dtype,
    },
    tensor_core::{DType, Limits, Report, Source, TensorBuf},
};
use serde::Serialize;

use super::{about_culprit, store::Compress};
use crate::{
    address,
    checked::Checked,
    escape::escape,
    failure::About,
    options::{Force, is_stdio},
    outcome::Outcome,
    output,
    pack::To,
    paths::{is_inside, same_file},
    progress::Progress,
    put::{Put, split_path},
    write::Sink,
};

/// How a carton is packed.
#[derive(Debug, clap::Args)]
#[group(id = "packed_carton")]
pub(crate) struct Pack {
    #[command(flatten)]
    about: AboutModel,
    #[command(flatten)]
    beside: Beside,
    #[command(flatten)]
    how: Compress,
}

/// What the description says.
#[derive(Debug, clap::Args)]
struct AboutModel {
    /// Describe the model by this file, which is kept as it is
    #[arg(long, value_name = "FILE", conflicts_with = "runner")]
    toml: Option<PathBuf>,
    /// The runner that the model needs
    #[arg(long, value_name = "NAME", requires = "framework_version")]
    runner: Option<String>,
    /// The versions of the framework that will do, such as =1.12.1
    #[arg(long, value_name = "REQUIREMENT", requires = "runner")]
    framework_version: Option<FrameworkVersion>,
    /// The version of what is in the model's folder; Carton's own library needs it
    #[arg(long, value_name = "N", requires = "runner")]
    runner_compat_version: Option<u64>,
    /// An option of the runner; may be given several times
    #[arg(long, value_name = "KEY=VALUE", requires = "runner")]
    opt: Vec<RunnerOption>,
    /// The name of the model
    #[arg(long, value_name = "TEXT", requires = "runner", value_parser = address::text)]
    name: Option<String>,
    /// The model in at most 100 characters
    #[arg(long, value_name = "TEXT", requires = "runner", value_parser = address::text)]
    short_description: Option<String>,
    /// The model at any length, in Markdown
    #[arg(long, value_name = "FILE", requires = "runner")]
    description_file: Option<PathBuf>,
    /// The license, as an SPDX expression
    #[arg(long, value_name = "TEXT", requires = "runner", value_parser = address::text)]
    license: Option<String>,
    /// The URL of the source
    #[arg(long, value_name = "URL", requires = "runner", value_parser = address::text)]
    repository: Option<String>,
    /// The URL of the project
    #[arg(long, value_name = "URL", requires = "runner", value_parser = address::text)]
    homepage: Option<String>,
    /// A platform that the model runs on; may be given several times, any without it
    #[arg(long, value_name = "TRIPLE", requires = "runner")]
    platform: Vec<Platform>,
}

/// What is packed beside the model.
#[derive(Debug, clap::Args)]
#[group(id = "beside_carton")]
struct Beside {
    /// Pack the files of this folder as what belongs to examples
    #[arg(long, value_name = "FOLDER")]
    misc: Option<PathBuf>,
    /// Pack a file as what belongs to examples; may be given several times
    #[arg(long, value_name = "NAME=PATH")]
    misc_file: Vec<MiscFile>,
    /// Pack a tensor: the only one of a file of any format (NAME=FILE), one of several
    /// (NAME=FILE:TENSOR), or the elements alone, little-endian and row-major
    /// (NAME=DTYPE:SHAPE:FILE, with commas between the dimensions, none for a scalar). Strings are the
    /// lines of a file, or a list in JSON where its name ends in .json; may be given several times
    #[arg(long, value_name = "SPEC")]
    put: Vec<Put>,
}

#[derive(Serialize)]
struct Packed {
    path: String,
    dry_run: bool,
    /// None where it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_hash: Option<String>,
    /// All that are listed.
    files: usize,
    /// Of all files, before compression.
    content_bytes: u64,
    /// Of the carton; none where it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(flatten)]
    checked: Checked,
}

impl Pack {
    pub(crate) fn run(&self, source: &Path, to: &To) -> anyhow::Result<Outcome> {
        let To { output, write, .. } = to;
        let options = self.how.options(to.level, to.alignment)?;
        let pack = self.collect(source)?;
        let content_bytes = pack.content_len();
        let sink = self.sink(source, to).about(output)?;
        let failed = sink.failed();
        let bar = Progress::new(source, content_bytes);
        let written = pack.write_with(options.unchecked().write_to(sink), |bytes| bar.inc(bytes));
        bar.finish();
        let finished = if failed.get() {
            written.about(output)?
        } else {
            written.or_else(|error| about_culprit(error, source))?
        };
        let kept = finished.sink.keep(output, &Report::default(), to.force, lint)?;
        let model_hash = finished.manifest.model_hash();
        let result = Packed {
            path: output.display().to_string(),
            dry_run: write.dry_run,
            model_hash: (!kept.checked.is_refused()).then(|| model_hash.to_string()),
            files: finished.manifest.len(),
            content_bytes,
            bytes: kept.bytes_after,
            checked: kept.checked,
        };
        let (path, would_be) = (escape(&result.path), write.would_be());
        let (from, to) =
            (output::size(content_bytes), output::size(result.bytes.unwrap_or_default()));
        let files = output::count(result.files, "file");
        let mut text = String::new();
        let _ = writeln!(text, "{path}: {would_be}packed, {files}, {from} → {to}");
        let _ = writeln!(text, "{path}: model hash {model_hash}");
        write.report(output, &result, &result.checked.text(&path, &text))?;
        Ok(result.checked.outcome())
    }

    /// Finds everything that is to be packed; contents are read later.
    fn collect(&self, source: &Path) -> anyhow::Result<carton_format::Pack> {
        let mut pack = match self.about.text()? {
            Some((text, from)) => {
                let mut pack = carton_format::Pack::from_toml(text).about(from)?;
                pack.model(source).or_else(|error| about_culprit(error, source))?;
                pack
            }
            None => unpacked(source)?,
        };
        self.beside.add_to(&mut pack)?;
        Ok(pack)
    }

    fn sink(&self, source: &Path, To { output, write, .. }: &To) -> anyhow::Result<Sink> {
        if !is_stdio(output) {
            let folders = [Some(source), self.beside.misc.as_deref()];
            for folder in folders.into_iter().flatten() {
                let inside = is_inside(output, folder);
                ensure!(!inside, "is in {folder:?}, which is packed: expected another folder");
            }
            let mut inputs = self.inputs().map(PathBuf::as_path).chain([source]);
            let is_input = inputs.any(|input| same_file(input, output));
            ensure!(!is_input, "is an input, expected another file");
        }
        write.create(output)
    }

    fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        let (about, beside) = (&self.about, &self.beside);
        let texts = about.toml.iter().chain(&about.description_file);
        let misc = beside.misc_file.iter().map(|file| &file.path);
        let tensors = beside.put.iter().map(|put| &put.path);
        texts.chain(misc).chain(tensors)
    }
}

impl AboutModel {
    /// Returns the description and where it comes from; `None` where nothing was said.
    fn text(&self) -> anyhow::Result<Option<(Vec<u8>, &Path)>> {
        if let Some(path) = &self.toml {
            return Ok(Some((super::read(path)?, path)));
        }
        let (Some(runner), Some(version)) = (&self.runner, &self.framework_version) else {
            return Ok(None);
        };
        let mut description = Description::new(Runner::new(runner, version.clone()));
        description.runner.compat_version = self.runner_compat_version;
        description.model_name.clone_from(&self.name);
        description.short_description.clone_from(&self.short_description);
        description.license.clone_from(&self.license);
        description.repository.clone_from(&self.repository);
        description.homepage.clone_from(&self.homepage);
        if !self.platform.is_empty() {
            description.required_platforms = Some(self.platform.clone());
        }
        if let Some(path) = &self.description_file {
            let text = String::from_utf8(super::read(path)?).about(path)?;
            description.model_description = Some(text);
        }
        let text = self.with_options(&description).map_err(|error| match error {
            // No file is to blame for what the command line says.
            Error::Document(error) => anyhow!("description would be refused: {error}"),
            error => error.into(),
        })?;
        Ok(Some((text, Path::new(Description::PATH))))
    }

    fn with_options(&self, description: &Description) -> carton_format::Result<Vec<u8>> {
        let text = description.to_bytes()?;
        let options: Vec<Change> = self.opt.iter().map(|option| option.0.clone()).collect();
        if options.is_empty() {
            return Ok(text);
        }
        Description::edit(&text, &options, &Limits::default())
    }
}

impl Beside {
    fn add_to(&self, pack: &mut carton_format::Pack) -> anyhow::Result<()> {
        if let Some(folder) = &self.misc {
            ensure_folder(folder).about(folder)?;
            pack.misc_folder(folder).or_else(|error| about_culprit(error, folder))?;
        }
        for MiscFile { name, path } in &self.misc_file {
            pack.file_from(&format!("misc/{name}"), path).about(path)?;
        }
        for put in &self.put {
            let value = value_of(put).about(&put.path)?;
            pack.tensor(&put.name, &value).about(&put.path)?;
        }
        Ok(())
    }
}

/// Looks through a carton that was written, and through the strings in it: their files come from
/// the user, and are small.
fn lint(carton: Source) -> anyhow::Result<Report> {
    let reader = Reader::from_source(carton)?;
    let mut report = reader.lint();
    report.append(reader.lint_strings());
    Ok(report)
}

/// Collects an unpacked carton.
fn unpacked(folder: &Path) -> anyhow::Result<carton_format::Pack> {
    if !folder.join(Description::PATH).is_file() || !folder.join("model").is_dir() {
        fs::metadata(folder).about(folder)?;
        let needed = "--runner and --framework-version, or --toml, say how the model is run";
        return Err(anyhow!("is not an unpacked carton: {needed}")).about(folder);
    }
    carton_format::Pack::unpacked(folder).or_else(|error| about_culprit(error, folder))
}

fn ensure_folder(path: &Path) -> anyhow::Result<()> {
    ensure!(fs::metadata(path)?.is_dir(), "is a file, expected a folder");
    Ok(())
}

fn value_of(put: &Put) -> anyhow::Result<Value> {
    if let Some((DType::Str, shape)) = put.elements() {
        let text = String::from_utf8(super::read(&put.path)?)?;
        let is_json = put.path.extension().is_some_and(|extension| extension == "json");
        let strings = if is_json {
            serde_json::from_str(&text)?
        } else {
            text.lines().map(str::to_owned).collect()
        };
        return Ok(Value::Strings { shape: shape.clone(), strings });
    }
    let reader = put.open(Force { force: false })?;
    let tensor = put.tensor(&reader)?;
    let info = tensor.info()?;
    let names = || dtype::STORED.map(|(dtype, _)| dtype.to_string()).join(", ");
    let is_stored = dtype::name(info.dtype).is_some();
    ensure!(is_stored, "is of {}, expected one of {}", info.dtype, names());
    Ok(Value::Numeric(TensorBuf::new(info.dtype, info.shape, tensor.bytes()?)?))
}

/// An option of a runner, as `KEY=VALUE` says: TOML, or a string where it is none.
#[derive(Clone, Debug)]
struct RunnerOption(Change);

impl FromStr for RunnerOption {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((key, value)) = super::split_pair(text) else {
            bail!("{text:?} is not KEY=VALUE, such as num_threads=4");
        };
        let value = address::text(value)?;
        Ok(Self(Change::set(format!("runner.opts.{}", key.trim()), NewValue::guess(&value))))
    }
}

/// A file that examples refer to, as `NAME=PATH` says.
#[derive(Clone, Debug)]
struct MiscFile {
    name: String,
    path: PathBuf,
}

impl FromStr for MiscFile {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((name, path)) = split_path(text) else {
            bail!("{text:?} is not NAME=PATH, such as cat.png=pictures/1.png");
        };
        Ok(Self { name: name.to_owned(), path: path.into() })
    }
}
