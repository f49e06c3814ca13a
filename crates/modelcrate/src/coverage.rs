use crate::AnyReader;
#[cfg(feature = "ztensor")]
use crate::ztensor;

/// How many of the bytes of a file have a digest or a checksum to compare them with: what damage to
/// them would be found by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Coverage {
    /// The bytes of weights; of formats with one answer for all, the bytes of the file.
    pub bytes: u64,
    /// Those that a digest or checksum covers.
    pub covered: u64,
}

impl Coverage {
    /// Adds up what is known of several files.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            covered: self.covered.saturating_add(other.covered),
        }
    }

    /// Returns how many of a hundred bytes are covered, rounded down; `None` where there are none.
    #[must_use]
    pub fn percent(self) -> Option<u64> {
        let percent =
            u128::from(self.covered).saturating_mul(100).checked_div(self.bytes.into())?;
        u64::try_from(percent).ok()
    }
}

impl AnyReader {
    /// Tells how many bytes a digest or checksum covers, whether it matches or not.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let bytes = self.byte_len();
        let all = |are_covered| Coverage { bytes, covered: if are_covered { bytes } else { 0 } };
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(_) => all(true),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(package) => {
                all(package.archive().is_some() || matches!(package.sums(), Ok(Some(_))))
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(model) => all(model.container() == ptl_spec::ContainerKind::Zip),
            #[cfg(feature = "ptl")]
            Self::PtlSpec(_) => Coverage::default(),
            Self::Weights(file) => all(file.format() == crate::Format::Npz),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(file) => of_blobs(file),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => all(false),
        }
    }
}

#[cfg(feature = "ztensor")]
fn of_blobs(file: &ztensor::Reader) -> Coverage {
    let objects = file.tensors().filter_map(|tensor| tensor.object().ok());
    objects.fold(Coverage::default(), |coverage, object| {
        object.components.iter().fold(coverage, |coverage, (_, component)| {
            let digest = component.digest.as_deref().unwrap_or_default();
            let is_known = KNOWN.iter().any(|known| digest.starts_with(known));
            let bytes = component.length;
            coverage.and(Coverage { bytes, covered: if is_known { bytes } else { 0 } })
        })
    })
}

/// Digests that are compared. Before generation 2, `xxh3` is none of them; nor do its files have it.
#[cfg(feature = "ztensor")]
const KNOWN: [&str; 3] = ["sha256:", "crc32c:", "xxh3:"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_formats_cover() {
        for (path, percent) in [
            ("carton/valid/ref_minimal.carton", Some(100)),
            ("rten/valid/mlp.v1.rten", Some(0)),
            ("ztensor/valid/v1.1-ref/digests.zt", Some(100)),
            ("ztensor/valid/v1.1-ref/scalars.zt", Some(0)),
            ("ztensor/valid/v1.1-ref/sparse_csr.zt", Some(68)),
            ("ztensor/valid/v1.1-ref/empty_file.zt", None),
        ] {
            let reader = AnyReader::open(test_support::testdata(path)).unwrap();
            assert_eq!(reader.coverage().percent(), percent, "{path}");
        }
    }
}
