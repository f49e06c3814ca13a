//! Model files that were edited, from those that PyTorch has written.

use std::fs;

use anyhow::{Context as _, Result};
use ptl_spec::{Pack, Reader, SPEC, Slot, Spec, Strip, Unpack, rewrite, with_extra_files};

use super::Golden;
use crate::root;

pub(super) fn goldens() -> Vec<Golden> {
    vec![
        Golden { path: "ptl/golden/embedded.ptl", make: || embedded("img_nospec.ptl") },
        Golden { path: "ptl/golden/embedded_fb.ptl", make: || embedded("img_nospec_fb.ptl") },
        Golden { path: "ptl/golden/replaced.ptl", make: || embedded("img.ptl") },
        Golden { path: "ptl/golden/replaced_fb.ptl", make: || embedded("img_fb.ptl") },
        Golden { path: "ptl/golden/stripped.ptl", make: stripped },
        Golden { path: "ptl/golden/built.spec.json", make: built },
    ]
}

/// Puts a spec and another file in.
fn embedded(name: &str) -> Result<Vec<u8>> {
    let spec = fs::read(root().join("testdata/ptl/calls/specs/mnist_like.json"))?;
    let changes = [(SPEC, Some(spec.into())), ("labels.txt", Some("none\ncat\ndog\n".into()))];
    Ok(with_extra_files(&model(name)?, changes)?)
}

/// Takes the source of the model's classes out.
fn stripped() -> Result<Vec<u8>> {
    let reader = Reader::from_bytes(model("img_opt.ptl")?)?;
    let mut file = Vec::new();
    rewrite(&reader, |record| !Strip::Code.removes(record), &mut file)?;
    Ok(file)
}

/// Writes a spec that was built, not read.
fn built() -> Result<Vec<u8>> {
    let pack = Pack::Tuple(vec![Pack::Bool(true.into()), Pack::Long(Slot::stub("n"))]);
    let unpack = Unpack::List(vec![Unpack::String { key: "text".to_owned().into() }]);
    Ok(Spec::new(&pack, &unpack)?.to_text().into_bytes())
}

fn model(name: &str) -> Result<Vec<u8>> {
    let path = root().join("testdata/ptl/valid/torch251").join(name);
    fs::read(&path).with_context(|| format!("{path:?}"))
}
