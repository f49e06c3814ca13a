use std::{fmt::Display, path::PathBuf, str::FromStr};

use anyhow::{Context, bail, ensure};
use modelcrate::tensor_core::{DType, Shape, Source};

/// A tensor in a file of its own, as `NAME=DTYPE:SHAPE:PATH` says; the names of element types are
/// those of a format.
#[derive(Clone, Debug)]
pub(crate) struct TensorFile<D> {
    pub(crate) name: String,
    pub(crate) dtype: D,
    pub(crate) shape: Shape,
    pub(crate) path: PathBuf,
}

impl<D: Display> TensorFile<D> {
    /// Opens the file, whose length has to be that of the shape.
    pub(crate) fn open(&self, dtype: DType) -> anyhow::Result<Source> {
        let source = Source::open(&self.path)?;
        let (expected, found) = (self.shape.byte_len(dtype)?, source.len());
        let (shape, dtype) = (&self.shape, &self.dtype);
        ensure!(
            expected == found,
            "is {found} bytes long, but shape {shape} of {dtype} needs {expected}"
        );
        Ok(source)
    }
}

impl<D: FromStr> FromStr for TensorFile<D>
where
    anyhow::Error: From<D::Err>,
{
    type Err = anyhow::Error;

    fn from_str(spec: &str) -> anyhow::Result<Self> {
        let parts = spec.rsplit_once('=').and_then(|(name, rest)| {
            let (dtype, rest) = rest.split_once(':')?;
            let (shape, path) = rest.split_once(':')?;
            Some((name, dtype, shape, path))
        });
        let Some((name, dtype, shape, path)) = parts else {
            bail!("{spec:?} is not NAME=DTYPE:SHAPE:PATH, with a SHAPE such as 2,64");
        };
        let dims = shape.trim_matches(['[', ']']).split(',').filter(|dim| !dim.is_empty());
        let shape: Result<Shape, _> = dims.map(|dim| dim.trim().parse::<u64>()).collect();
        Ok(Self {
            name: name.to_owned(),
            dtype: dtype.parse()?,
            shape: shape.with_context(|| format!("shape of {spec:?}"))?,
            path: path.into(),
        })
    }
}
