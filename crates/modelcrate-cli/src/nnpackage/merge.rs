use std::path::{Path, PathBuf};

use anyhow::ensure;
use modelcrate::{nnpackage, tensor_core::Report};

use super::{
    given::{Edge, Store, check_output},
    pack::{self, Built, To, check},
};
use crate::{
    options::{Force, is_stdio},
    outcome::Outcome,
    paths,
    put::split_named,
    write::Writing,
};

/// Merge packages into one
///
/// Models are numbered through in the order of the packages, and connections keep their models.
/// Where there are connections, the inputs and outputs of a package of one model become those of the
/// new package, but for those that are connected here. Golden data and lists of digests are left
/// behind. Packages that have files of one path need a folder for one of them. Errors that were not
/// in the packages, and files that are not what their digests say, are not written without --force.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "modelcrate nnpackage merge [OPTIONS] <[FOLDER=]PACKAGE>... <OUT>",
    after_help = "\
Examples:
  modelcrate nnpackage merge encoder.zip decoder.zip both.zip --connect 0:0:0=1:0:0
  modelcrate nnpackage merge a.zip second=a.zip twice.zip
  modelcrate nnpackage merge a.zip b.zip both/ --config-of 1 --folder"
)]
pub(crate) struct Merge {
    /// The packages, as archives or folders; files of one with a FOLDER come into that. Last the
    /// archive or folder to write; - is standard output
    #[arg(required = true, value_name = "[FOLDER=]PACKAGE")]
    paths: Vec<PathBuf>,
    /// Write a folder, which must not be there, or be empty
    #[arg(long)]
    folder: bool,
    /// Lead an output of a model into an input of another, by their numbers in the new package; may
    /// be given several times
    #[arg(long, value_name = "FROM=TO")]
    connect: Vec<Edge>,
    /// Take the configuration of this package; packages count from 0
    #[arg(long, value_name = "INDEX")]
    config_of: Option<usize>,
    /// List the SHA-256 of every file in metadata/SHA256SUMS
    #[arg(long)]
    digests: bool,
    #[command(flatten)]
    store: Store,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
}

/// A package, as `[FOLDER=]PACKAGE` says.
#[derive(Clone, Debug)]
struct Part {
    folder: Option<String>,
    path: PathBuf,
}

impl Part {
    fn of(path: &Path) -> anyhow::Result<Self> {
        let Some((folder, rest)) = path.to_str().and_then(split_named) else {
            return Ok(Self { folder: None, path: path.to_owned() });
        };
        let folder = folder.trim_end_matches('/');
        ensure!(!folder.is_empty() && !rest.is_empty(), "{path:?} is not FOLDER=PACKAGE");
        Ok(Self { folder: Some(folder.to_owned()), path: rest.into() })
    }
}

impl Merge {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (packages, output) = paths::last(&self.paths)?;
        let packages = packages.iter().map(|path| Part::of(path));
        let packages = packages.collect::<anyhow::Result<Vec<_>>>()?;
        let inputs = || packages.iter().map(|part| part.path.as_path());
        check_output(output, inputs())?;
        ensure!(
            inputs().filter(|path| is_stdio(path)).count() < 2,
            "standard input can only be one package"
        );
        let (mut merge, mut damage) = (nnpackage::Merge::default(), Report::default());
        let readers = packages.iter().map(|part| super::package(&part.path));
        let readers = readers.collect::<anyhow::Result<Vec<_>>>()?;
        for (Part { folder, path }, reader) in packages.iter().zip(&readers) {
            match folder {
                Some(folder) => merge.package_in(folder, reader),
                None => merge.package(reader),
            };
            damage.append(pack::damage(path, reader));
        }
        let parts: Vec<_> = inputs().zip(&readers).collect();
        if let Some(package) = self.config_of {
            merge.config(package);
        }
        for edge in &self.connect {
            merge.connect(edge.from, edge.to);
        }
        let mut builder = merge.build()?;
        builder.digests(self.digests);
        let files = builder.paths().len().saturating_add(1).saturating_add(self.digests.into());
        let to = To { path: output, is_folder: self.folder, store: self.store, write: self.write };
        let checked = check(&builder, &merge.lint(), damage, &to, &parts, self.force)?;
        let bytes = to.begin(&builder, &checked, &parts)?.commit(output)?;
        let built = Built::of(builder.manifest(), output, self.write, checked);
        Built { files, bytes, ..built }.report("merged", output, self.write)
    }
}
