//! Golden data: what goes into a package and what has to come out. Format text: "nnpkg-tc".

#[cfg(feature = "golden")]
mod hdf5;

#[cfg(feature = "golden")]
use tensor_core::TensorBuf;

use crate::{
    File, Reader,
    layout::{GOLDEN_EXPECTED, GOLDEN_INPUT},
};
#[cfg(feature = "golden")]
use crate::{Result, golden::hdf5::Hdf5};

/// A handle on one of the two files of golden data.
#[derive(Clone, Copy, Debug)]
pub struct GoldenData<'a> {
    file: File<'a>,
}

impl<'a> GoldenData<'a> {
    pub(crate) fn of(reader: &'a Reader, path: &'static str) -> Option<Self> {
        reader.file(path).map(|file| Self { file })
    }

    /// Returns the file.
    #[must_use]
    pub const fn file(self) -> File<'a> {
        self.file
    }

    /// Reads the values, in the order of inputs or outputs. The tool that compares takes a
    /// difference of 0.001 for none.
    ///
    /// # Errors
    ///
    /// [`Error::Hdf5`](crate::Error::Hdf5) where the file is not one, broken, or in a form that the
    /// library of HDF5 writes only when it is told to; as for [`File::bytes`].
    #[cfg(feature = "golden")]
    pub fn values(self) -> Result<Vec<TensorBuf>> {
        let (file, root) = Hdf5::open(self.file.bytes()?)?;
        let Some((_, group)) = root.into_iter().find(|(name, _)| name == "value") else {
            return Ok(Vec::new());
        };
        let mut links: Vec<(u32, u64)> = file
            .group(group)?
            .into_iter()
            .filter_map(|(name, header)| Some((name.parse().ok()?, header)))
            .collect();
        links.sort_unstable();
        links.into_iter().map(|(_, header)| file.dataset(header)).collect()
    }
}

impl Reader {
    /// Returns a handle on the golden data that go in; `None` where there are none.
    #[must_use]
    pub fn golden_input(&self) -> Option<GoldenData<'_>> {
        GoldenData::of(self, GOLDEN_INPUT)
    }

    /// Returns a handle on the golden data that have to come out; `None` where there are none.
    #[must_use]
    pub fn golden_expected(&self) -> Option<GoldenData<'_>> {
        GoldenData::of(self, GOLDEN_EXPECTED)
    }
}
