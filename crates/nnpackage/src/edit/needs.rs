//! Files that models need beside their own.

use std::collections::BTreeSet;

use model_archive::name;

use crate::{BuildFault, Error, Reader, Result};

/// Returns the paths of all files that models of a package need, and that these need, as far as they
/// can be read.
pub(crate) fn of_package(reader: &Reader) -> BTreeSet<String> {
    let models = reader.distinct_models();
    let models = models.filter_map(|file| Some((file.path().to_owned(), file.opened()?.clone())));
    let mut found = BTreeSet::new();
    for (path, model) in models {
        follow(reader, path, model, &mut found);
    }
    found
}

/// Adds what a model needs to what is found.
pub(crate) fn follow(
    reader: &Reader,
    path: String,
    model: circle_format::Reader,
    found: &mut BTreeSet<String>,
) {
    let mut open = vec![(path, model)];
    while let Some((path, model)) = open.pop() {
        for location in model.model().files() {
            let Ok(needed) = name::resolve(&path, location) else { continue };
            if !found.insert(needed.clone()) {
                continue;
            }
            let options = circle_format::Reader::options().limits(*reader.limits());
            let file = reader
                .file(&needed)
                .filter(|file| file.content().is_ok_and(|content| content.schema().is_some()));
            let model = file.and_then(|file| options.from_source(file.source().ok()?).ok());
            if let Some(model) = model {
                open.push((needed, model));
            }
        }
    }
}

/// Returns every file that a model needs, once each: as it names it, and its path in the package
/// where the model is at `path` there.
pub(crate) fn needs(path: &str, reader: &circle_format::Reader) -> Result<Vec<(String, String)>> {
    let (mut needs, mut seen) = (Vec::new(), BTreeSet::new());
    for location in reader.model().files() {
        if !seen.insert(location) {
            continue;
        }
        let found = name::resolve(path, location).map_err(|_| {
            let (location, out_of) = (location.to_owned(), "the package");
            let fault = BuildFault::NeedsOutside { location, out_of };
            Error::Build { path: path.to_owned(), fault }
        })?;
        needs.push((location.to_owned(), found));
    }
    Ok(needs)
}
