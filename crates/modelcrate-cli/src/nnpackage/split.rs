use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    nnpackage::{File, Reader, Sums, model_archive::name::fold, split},
    tensor_core::{
        Report,
        output::{Aside, Hidden, sweep},
    },
};
use serde::Serialize;

use super::{
    given::{Store, about_culprit},
    pack::{Built, To, check, damage},
};
use crate::{
    checked::Checked,
    escape::escape,
    failure::About,
    options::{Force, Input, is_stdio},
    outcome::Outcome,
    output,
    paths::is_inside,
    write::{Writing, check_folder},
};

/// Make one package of each model of a package
///
/// With a model come the configuration, the information about it, the files that it needs and the
/// kernels of its custom operators; golden data where they are for that model alone. Packages are
/// named after their models. Where one has errors that were not there before, or a file that is not
/// what its digest says, none is written without --force. All are complete before the first takes its
/// place; where a step fails then, those before it stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage split models.zip parts/
  modelcrate nnpackage split models.zip parts/ --folders --dry-run")]
pub(crate) struct Split {
    /// The package, as an archive or a folder; - is standard input
    package: Input,
    /// The folder that the packages come into, which is made where it is missing
    into: PathBuf,
    /// Write folders, not archives
    #[arg(long)]
    folders: bool,
    #[command(flatten)]
    store: Store,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
}

#[derive(Serialize)]
struct Done {
    path: String,
    dry_run: bool,
    /// Where some are refused, these alone: none is written.
    packages: Vec<Built>,
    /// Files that are in none of them.
    left_out: Vec<String>,
}

impl Split {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let package = super::package(&self.package)?;
        let place = || {
            ensure!(!is_stdio(&self.into), "standard output takes no folder");
            let mut there = self.into.ancestors();
            let there = there.find(|folder| folder.exists()).unwrap_or(Path::new("."));
            ensure!(there.is_dir(), "is not a folder");
            let inside = there.join("x");
            ensure!(!is_inside(&inside, &self.package), "is in the folder that is read");
            Ok(Hidden::check(&inside)?)
        };
        place().about(&self.into)?;
        if !self.write.dry_run {
            // What a process left that was killed here is no package, whatever becomes of this one.
            sweep(&self.into);
        }
        let builders = split(&package).about(&self.package)?;
        let targets = self.targets(&package);
        let mut left: BTreeSet<&str> =
            package.files().about(&self.package)?.map(File::path).collect();
        left.remove("metadata/MANIFEST");
        left.remove(Sums::PATH);
        // All are looked at before the first is written.
        let (before, mut checks) = (package.lint(), Vec::new());
        let (damage, parts) = (damage(&self.package, &package), [(&*self.package, &package)]);
        let to = |path| To { path, is_folder: self.folders, store: self.store, write: self.write };
        for (builder, target) in builders.iter().zip(&targets) {
            self.check(target).about(target)?;
            let mut here = Report::default();
            for found in damage.findings() {
                let is_here = |path: &str| builder.paths().any(|put| put == path);
                let is_missing = |path: &str| package.file(path).is_none();
                let path = found.at.entry.as_deref();
                if path.is_none_or(|path| is_here(path) || is_missing(path)) {
                    here.add(found.clone());
                }
            }
            checks.push(check(builder, &before, here, &to(target), &parts, self.force)?);
            for path in builder.paths() {
                left.remove(path);
            }
        }
        let is_refused = checks.iter().any(Checked::is_refused);
        let mut bytes = vec![None; builders.len()];
        if self.write.dry_run && !is_refused {
            // The folder that they come into may not be there.
            let options = self.store.options();
            for (builder, target) in builders.iter().zip(&targets) {
                let tried = match self.folders {
                    true => options.try_folder(target, builder),
                    false => options.write_to(io::sink(), builder).finish().map(drop),
                };
                tried.or_else(|error| about_culprit(error, &self.package, target))?;
            }
        } else if !is_refused {
            let made = MadeFolder::create(&self.into).about(&self.into)?;
            let (aside, mut begun) = (Aside::create(&self.into)?, Vec::new());
            for ((builder, target), checked) in builders.iter().zip(&targets).zip(&checks) {
                let mut part = to(target).begin(builder, checked, &parts)?;
                part.set_aside(&aside, target)?;
                begun.push(part);
            }
            for ((begun, target), bytes) in begun.into_iter().zip(&targets).zip(&mut bytes) {
                *bytes = begun.commit(target)?;
            }
            drop(aside);
            made.keep();
        }
        let mut packages = Vec::new();
        for (((builder, target), checked), bytes) in
            builders.iter().zip(&targets).zip(checks).zip(bytes)
        {
            if !is_refused || checked.is_refused() {
                let files = builder.paths().len().saturating_add(1);
                let built = Built::of(builder.manifest(), target, self.write, checked);
                packages.push(Built { files, bytes, ..built });
            }
        }
        let path = self.into.display().to_string();
        let left_out = left.into_iter().map(str::to_owned).collect();
        let done = Done { path, dry_run: self.write.dry_run, packages, left_out };
        let Writing { print, dry_run, .. } = self.write;
        output::print_done(print, &self.into, dry_run, &done, &done.text())?;
        Ok(if is_refused { Outcome::Invalid } else { Outcome::Fine })
    }

    /// Returns where each package goes: by the name of its model, with its number where another is
    /// alike, or it is not a name.
    fn targets(&self, package: &Reader) -> Vec<PathBuf> {
        let stem = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
        };
        let stems: Vec<String> = package.models().map(|model| stem(model.path())).collect();
        let folded: Vec<String> = stems.iter().map(|stem| fold(stem)).collect();
        let mut taken: BTreeSet<String> = folded.iter().cloned().collect();
        let mut targets = Vec::new();
        for (index, stem) in stems.iter().enumerate() {
            let alike = folded.iter().filter(|other| **other == fold(stem)).count();
            let mut name = stem.clone();
            if alike > 1 || matches!(stem.as_str(), "" | "." | "..") {
                name = format!("{stem}-{index}");
                while !taken.insert(fold(&name)) {
                    name = format!("{name}-{index}");
                }
            }
            let end = if self.folders { "" } else { ".zip" };
            targets.push(self.into.join(format!("{name}{end}")));
        }
        targets
    }

    fn check(&self, target: &Path) -> anyhow::Result<()> {
        if !self.into.is_dir() {
            return Ok(());
        }
        if self.folders {
            return check_folder(target);
        }
        self.write.check(target)
    }
}

/// Folders that were made, which are removed if nothing came into them.
struct MadeFolder(Vec<PathBuf>);

impl MadeFolder {
    /// Makes a folder and those that it lies in.
    fn create(folder: &Path) -> io::Result<Self> {
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        let missing = missing.filter(|folder| !folder.as_os_str().is_empty());
        let made = Self(missing.map(Path::to_owned).collect());
        fs::create_dir_all(folder)?;
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Those that something is in stay.
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Done {
    fn text(&self) -> String {
        let mut text = String::new();
        for package in &self.packages {
            text.push_str(&package.text("written"));
        }
        for path in &self.left_out {
            let _ = writeln!(text, "{}: without {}", escape(&self.path), escape(path));
        }
        text
    }
}
