//! Packages that are built, edited and merged, of the models of the packages that are checked in.

use std::fs;

use anyhow::{Context as _, Result};
use nnpackage::{
    Builder, ConfigChange, Connected, Edit, IoRef, Merge, ModelType, Reader, WriteOptions,
};
use tensor_core::Source;

use super::Golden;
use crate::root;

pub(super) fn goldens() -> Vec<Golden> {
    let golden = |path, make| Golden { path, make };
    vec![
        golden("nnpackage/golden/minimal.zip", || {
            let mut builder = Builder::default();
            builder.model("add.circle", part("01_minimal_circle_stored", "add.circle")?)?;
            written(&builder, WriteOptions::default())
        }),
        golden("nnpackage/golden/everything.zip", || {
            written(&everything()?, WriteOptions::default().alignment(64))
        }),
        golden("nnpackage/golden/stored.zip", || {
            written(&everything()?, WriteOptions::default().alignment(16).level(0))
        }),
        golden("nnpackage/golden/edited.zip", edited),
        golden("nnpackage/golden/merged.zip", merged),
    ]
}

fn written(builder: &Builder, options: WriteOptions) -> Result<Vec<u8>> {
    Ok(options.write_to(Vec::new(), builder).finish()?)
}

fn package(name: &str) -> Result<Reader> {
    let path = root().join("testdata/nnpackage/valid").join(format!("{name}.zip"));
    Ok(Reader::from_bytes(fs::read(&path).with_context(|| format!("{path:?}"))?)?)
}

fn part(name: &str, path: &str) -> Result<Source> {
    let package = package(name)?;
    let file = package.file(path).with_context(|| format!("{name} has no {path}"))?;
    Ok(Source::from_bytes(file.bytes()?))
}

/// Everything that a package can have.
fn everything() -> Result<Builder> {
    let pair = "03_two_models_connected";
    let kernel = "libMyOp.x86_64-linux.release.a";
    let mut builder = Builder::default();
    builder.model("m0.circle", part(pair, "m0.circle")?)?;
    builder.model("parts/m1.model", part(pair, "m1.circle")?)?;
    let binary = Source::from_bytes(&b"binary of a backend"[..]);
    builder.model_as("parts/m2", binary, ModelType::Bin)?;
    builder.input(IoRef::new(0, 0, 0));
    builder.connect(IoRef::new(0, 0, 0), IoRef::new(1, 0, 0));
    builder.output(IoRef::new(1, 0, 0));
    builder.config("model.cfg", "# of the whole package\nNUM_THREADS = 2 # cores\n")?;
    builder.mmap()?;
    builder.model_info(2, "m2.json", &br#"{"type": "dlib"}"#[..])?;
    let from = format!("custom_op/{kernel}");
    builder.custom_op(kernel, part("05_three_types_custom_op", &from)?)?;
    builder.golden_input(part(pair, "metadata/tc/input.h5")?)?;
    builder.golden_expected(part(pair, "metadata/tc/expected.h5")?)?;
    builder.file("LICENSE", Source::from_bytes(&b"MIT\n"[..]))?;
    builder.digests(true);
    Ok(builder)
}

/// A change of everything that can be changed; what is not touched keeps its bytes.
fn edited() -> Result<Vec<u8>> {
    let mut edit = Edit::new(&package("05_three_types_custom_op")?);
    edit.add_model("more/add.circle", part("01_minimal_circle_stored", "add.circle")?)?;
    edit.replace_model(0, part("04_top_folder_no_types", "add.circle")?)?;
    edit.connect(IoRef::new(0, 0, 0), IoRef::new(3, 0, 0));
    edit.remove_model(2, Connected::Refuse)?;
    edit.change_config(&[ConfigChange::set("USE_MMAPED_DATA", "1")])?;
    edit.remove("custom_op/libMyOp.x86_64-linux.release.so")?;
    edit.put("LICENSE", Source::from_bytes(&b"MIT\n"[..]))?;
    edit.digests(true);
    Ok(WriteOptions::default().alignment(64).write_to(Vec::new(), &edit).finish()?)
}

fn merged() -> Result<Vec<u8>> {
    let mut merge = Merge::default();
    let pair = package("03_two_models_connected")?;
    merge.package(&package("02_tflite_deflate_config")?).package(&pair);
    merge.package_in("again", &pair).connect(IoRef::new(0, 0, 0), IoRef::new(1, 0, 0));
    written(&merge.build()?, WriteOptions::default().alignment(64))
}
