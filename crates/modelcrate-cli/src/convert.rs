//! `convert`: tensors of any file as one of another format, and models in formats that live.

mod model;
#[cfg(feature = "rten")]
mod onnx;
#[cfg(feature = "rten")]
mod rten;
pub(crate) mod sets;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail, ensure};
use modelcrate::{
    AnyReader, Becoming, ConvertOptions, Error, Format::Rten, Product, Request, Target, TensorSet,
    is_model_folder,
};

pub(crate) use self::sets::Tensors;
use crate::{
    failure::{About, chain, is_invalid},
    glob::{Glob, check_meant, is_meant},
    options::{Force, Format, Input, is_stdio},
    outcome::{Outcome, print_error},
    output,
    paths::{check_shards, same_file},
    write::{Writing, check_folder},
};

/// Write the tensors of a file, or a model, in another format
///
/// The format of the output is what its name ends in, or --to. Tensors of any file become safetensors,
/// npz, npy, zt (zTensor 1.1), zt2 (zTensor 2) or GGUF, with the metadata that the format can hold. Models become what
/// lives: RTen models ONNX, or the other version of their own format; TFLite models Circle, and Circle models
/// TFLite; PyTorch Live models `TorchScript` that torch.jit.load opens, where they keep their source; zTensor
/// files of any generation 1.1, as they are stored, or with --to zt2 the canonical form of 2.
///
/// Checksums and digests in the input are compared, unless --force is given. What the output cannot hold is listed for all tensors before
/// anything is written, with the option that would help, and exit status 2. The result is opened and
/// checked before it takes its place; a folder of shards is once all of them are written.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate convert model.ptl weights.safetensors
  modelcrate convert old.rten model.onnx
  modelcrate convert models/ --to onnx --input-type mask=bool
  modelcrate convert model.carton - --to npz --tensor 'layer.0.*' | sha256sum
  modelcrate convert model.circle model.tflite
  modelcrate convert model.ptl model.pt
  modelcrate convert old.zt new.zt
  modelcrate convert old.zt new.zt --to zt2
  modelcrate convert model.rten old.rten --to rten1")]
pub(crate) struct Convert {
    /// The file to read; - is standard input; or a folder of models, all of which --to is for
    input: Input,
    /// The file to write; - is standard output; left out, the input's name with the end that --to says
    output: Option<PathBuf>,
    /// The format of the output: circle, gguf, npy, npz, onnx, rten1, rten2, safetensors, tflite,
    /// torchscript, zt or zt2
    #[arg(long, value_name = "FORMAT")]
    to: Option<Product>,
    /// Convert only these tensors: names, or patterns with * and ?; may be given several times
    #[arg(long, value_name = "GLOB")]
    tensor: Vec<Glob>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
    #[command(flatten)]
    tensors: Tensors,
    #[cfg(feature = "rten")]
    #[command(flatten)]
    rten: rten::Options,
}

impl Convert {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let models = self.to.and_then(|to| Some((to, to.source_end()?)));
        match models {
            Some((to, end)) if self.input.is_dir() && !is_model_folder(&self.input) => {
                self.folder(to, end)
            }
            _ => self.file(),
        }
    }

    /// Converts every model of a folder, into another one or beside it.
    fn folder(&self, to: Product, end: &str) -> anyhow::Result<Outcome> {
        let single = self.write.print.format != Format::Json;
        ensure!(single, "a folder has many results: expected --format jsonl, not json");
        #[cfg(feature = "rten")]
        self.rten.check(to)?;
        match &self.output {
            Some(folder) => ensure!(folder.is_dir(), "{}: is not a folder", folder.display()),
            None => ensure!(
                to.end() != end,
                "{}: models stay .{end}: expected an output folder",
                self.input.display()
            ),
        }
        let files = models(&self.input, end).about(&self.input)?;
        let (mut jobs, mut outputs) = (Vec::with_capacity(files.len()), HashSet::new());
        for input in files {
            let folder = self.output.as_ref().unwrap_or(&self.input);
            let output = self.renamed(&folder.join(input.file_name().unwrap_or_default()));
            ensure!(outputs.insert(output.clone()), "{}: two models become it", output.display());
            jobs.push(Self { input, output: Some(output), ..self.clone() });
        }
        #[cfg(feature = "rten")]
        rten::choose_input_types(&mut jobs).about(&self.input)?;
        let mut outcome = Outcome::Fine;
        for job in jobs {
            outcome = outcome.and(job.file().unwrap_or_else(|error| {
                print_error(&chain(&error));
                if is_invalid(&error) { Outcome::Invalid } else { Outcome::Failed }
            }));
        }
        Ok(outcome)
    }

    /// Returns a path with the end of what is made.
    fn renamed(&self, path: &Path) -> PathBuf {
        self.to.map_or_else(|| path.to_owned(), |to| path.with_extension(to.end()))
    }

    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(&self.input)
    }

    fn file(mut self) -> anyhow::Result<Outcome> {
        if self.output.is_none() {
            let is_named = self.to.is_some() && !is_stdio(&self.input);
            let missing = "becomes a file without a name: expected an output, or --to for a file";
            ensure!(is_named, "{}: {missing}", self.input.display());
            self.output = Some(self.renamed(&self.input));
        }
        let to = product(self.to, self.output()).about(self.output())?;
        self.check_output(to).about(self.output())?;
        let reader = output::open(&self.input, AnyReader::options().verify(self.force.verify()));
        let reader = reader.about(&self.input)?;
        check_shards(&self.input, &reader, self.output())?;
        let request = self.request(to).about(self.output())?;
        match reader.convert(&request) {
            Ok(Becoming::Tensors(set, target, options)) => self.sets(set, target, &options),
            #[cfg(feature = "rten")]
            Ok(Becoming::Onnx(export)) => self.onnx(export),
            Ok(Becoming::Model(model)) => self.model(&reader, &model),
            Err(Error::Impossible { format: Rten, to: Product::Rten(None) }) => {
                Err(anyhow!("may be of either version: say --to rten1 or --to rten2"))
                    .about(self.output())
            }
            Err(error) => Err(error).about(&self.input),
        }
    }

    fn request(&self, to: Product) -> anyhow::Result<Request> {
        let mut request = Request::new(to);
        request.verify = self.force.verify();
        if let Some(target) = to.tensors().filter(|_| self.chooses()) {
            request.tensors = Some(self.tensors.options(target)?);
        }
        #[cfg(feature = "rten")]
        self.rten.ask(&mut request);
        Ok(request)
    }

    fn sets(
        &self,
        mut set: TensorSet<'_>,
        target: Target,
        options: &ConvertOptions,
    ) -> anyhow::Result<Outcome> {
        let names = set.tensors().iter().map(modelcrate::NamedTensor::name);
        check_meant(&self.tensor, "tensor", names).about(&self.input)?;
        set.retain(|name| is_meant(&self.tensor, name));
        let job = sets::Job {
            target,
            output: self.output(),
            force: self.force,
            write: self.write,
            is_folder: self.tensors.is_folder(),
        };
        job.run(&set, options, &self.input)
    }

    /// Tells whether tensors are chosen or changed.
    fn chooses(&self) -> bool {
        !self.tensor.is_empty() || !self.tensors.is_default()
    }

    /// Refuses before all the work what cannot be.
    fn check_output(&self, to: Product) -> anyhow::Result<()> {
        let is_input = !is_stdio(self.output())
            && (self.input == self.output() || same_file(&self.input, self.output()));
        ensure!(!is_input, "is the input, expected another file");
        ensure!(
            to.tensors().is_some() || !self.chooses(),
            "{to} holds a model, of which tensors cannot be chosen"
        );
        #[cfg(feature = "rten")]
        self.rten.check(to)?;
        if self.tensors.is_folder() {
            return check_folder(self.output());
        }
        self.write.check(self.output())
    }
}

/// Returns the format that was asked for, or that the name of the output says.
pub(crate) fn product(to: Option<Product>, output: &Path) -> anyhow::Result<Product> {
    if to.is_none() && is_stdio(output) {
        bail!("has no name that says a format: give --to");
    }
    to.or_else(|| Product::from_path(output)).ok_or_else(|| {
        let known: Vec<String> = Product::ENDS.into_iter().map(|end| format!(".{end}")).collect();
        anyhow!("says no format by its end, expected one of {}, or --to", known.join(", "))
    })
}

/// Returns the files of a folder whose names end in `end`, by name.
fn models(folder: &Path, end: &str) -> anyhow::Result<Vec<Input>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = path.extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
        if found && path.is_file() {
            files.push(path);
        }
    }
    ensure!(!files.is_empty(), "has no file .{end}, and --to is for those");
    files.sort();
    Ok(files)
}
