//! Models that are put into a package: what they are, and the files of the disk that they need.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use tensor_core::Source;

use crate::{BuildFault, Content, EditFault, Error, ModelType, Result, edit::needs::needs};

/// A file of the disk that a model needs.
pub(crate) struct Needed {
    /// In the package.
    pub(crate) path: String,
    /// On the disk, with every link resolved.
    pub(crate) from: PathBuf,
    /// Where it is a model itself.
    pub(crate) reader: Option<circle_format::Reader>,
}

/// Finds the files that a model of the disk needs, and that these need, each once.
pub(crate) fn needed_from(
    path: &str,
    from: &Path,
    reader: &circle_format::Reader,
) -> Result<Vec<Needed>> {
    let folder = match from.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let looking = |source| {
        let (path, what) = (folder.to_owned(), "looking up the folder");
        Error::Core(tensor_core::Error::File { path, what, source })
    };
    let folder = folder.canonicalize().map_err(looking)?;
    let base = path.rsplit_once('/').map_or("", |(base, _)| base);
    let (mut found, mut seen) = (Vec::new(), BTreeSet::from([path.to_owned()]));
    let mut open = vec![(path.to_owned(), reader.clone())];
    while let Some((path, reader)) = open.pop() {
        for (location, needed) in needs(&path, &reader)? {
            let fail = |fault| Error::Build { path: path.clone(), fault };
            if !seen.insert(needed.clone()) {
                continue;
            }
            let place = "the folder of the model";
            let outside =
                || fail(BuildFault::NeedsOutside { location: location.clone(), out_of: place });
            let below = match base {
                "" => Some(needed.as_str()),
                base => needed.strip_prefix(base).and_then(|rest| rest.strip_prefix('/')),
            };
            let below = folder.join(below.ok_or_else(outside)?);
            let missing = |_| fail(BuildFault::NeedsFile { location: location.clone(), place });
            let from = below.canonicalize().map_err(missing)?;
            if !from.starts_with(&folder) {
                return Err(outside());
            }
            let source = Source::open(&from)?;
            let is_model = Content::of_source(&source)?.schema().is_some();
            let reader = is_model.then(|| open_model(&needed, &source)).transpose()?;
            let reader = reader.map(|(reader, _)| reader);
            if let Some(reader) = &reader {
                open.push((needed.clone(), reader.clone()));
            }
            found.push(Needed { path: needed, from, reader });
            check_count(found.len())?;
        }
    }
    Ok(found)
}

/// Opens a model; returns it with its type by its identifier.
pub(crate) fn open_model(path: &str, source: &Source) -> Result<(circle_format::Reader, String)> {
    let fail = |fault| Error::Build { path: path.to_owned(), fault };
    let found = Content::of_source(source)?;
    let Some(schema) = found.schema() else {
        return Err(fail(BuildFault::NotAModel { found }));
    };
    let opened = circle_format::Reader::from_source(source.clone());
    let reader = opened.map_err(|error| fail(BuildFault::Model(Box::new(error.into()))))?;
    Ok((reader, schema.name().to_owned()))
}

/// Refuses a number of models that a manifest cannot have.
pub(crate) fn check_count(count: usize) -> Result<(), EditFault> {
    match count {
        0 => Err(EditFault::NoModels),
        1..=65_535 => Ok(()),
        _ => Err(EditFault::ManyModels { count }),
    }
}

/// Refuses a type that a model has not.
pub(crate) fn check_type(path: &str, source: &Source, model_type: ModelType<'_>) -> Result<()> {
    let refuse = |fault| Err(Error::Build { path: path.to_owned(), fault });
    let given = model_type.name().to_owned();
    match model_type {
        ModelType::Circle | ModelType::Tflite => {
            let found = Content::of_source(source)?;
            if found.schema() != model_type.schema() {
                return refuse(BuildFault::OtherType { found, given });
            }
            Ok(())
        }
        ModelType::Bin | ModelType::Tvn => Ok(()),
        ModelType::Other(_) => refuse(BuildFault::NoType { given }),
    }
}
