//! Kernels of custom operators, which are looked at and never loaded. Format text: "Packaging
//! Structure"; the names of files follow the document about custom operators.

#[cfg(feature = "kernels")]
pub(crate) mod library;

use crate::{File, Reader, Result, layout::KERNELS};

/// A handle on a file in the folder `custom_op`.
#[derive(Clone, Copy, Debug)]
pub struct CustomOp<'a> {
    file: File<'a>,
}

impl<'a> CustomOp<'a> {
    pub(crate) const fn new(file: File<'a>) -> Self {
        Self { file }
    }

    /// Returns the file.
    #[must_use]
    pub const fn file(self) -> File<'a> {
        self.file
    }

    /// Returns what its name says; `None` where that does not follow the rule.
    #[must_use]
    pub fn name(self) -> Option<CustomOpName<'a>> {
        let name = self.file.path().rsplit('/').next().unwrap_or_default();
        CustomOpName::parse(name)
    }
}

impl Reader {
    /// Returns handles on the files in the folder `custom_op`, sorted by path.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) where a folder cannot be listed.
    pub fn custom_ops(&self) -> Result<impl Iterator<Item = CustomOp<'_>>> {
        let files = self.files()?;
        Ok(files.filter(|file| file.path().starts_with(KERNELS)).map(CustomOp::new))
    }
}

/// What the name of a kernel says: `lib<operator>.<arch>-<os>.<build>.a`, or `.so`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CustomOpName<'a> {
    /// The operator.
    pub op: &'a str,
    /// The architecture, such as `armv7l`.
    pub arch: &'a str,
    /// The system, such as `linux`.
    pub os: &'a str,
    /// The kind of build, such as `release`.
    pub build: &'a str,
    /// The extension: `a` or `so`.
    pub extension: &'a str,
}

impl<'a> CustomOpName<'a> {
    /// Reads the name of a file; `None` where it does not follow the rule.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let (rest, extension) = name.strip_prefix("lib")?.rsplit_once('.')?;
        let (rest, build) = rest.rsplit_once('.')?;
        let (op, target) = rest.rsplit_once('.')?;
        let (arch, os) = target.rsplit_once('-')?;
        let is_known = matches!(extension, "a" | "so");
        let parts = [op, arch, os, build];
        let is_full = parts.iter().all(|part| !part.is_empty());
        (is_known && is_full).then_some(Self { op, arch, os, build, extension })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_follow_the_rule() {
        let name = CustomOpName::parse("libFillFrom.armv7l-linux.debug.a").unwrap();
        assert_eq!(
            (name.op, name.arch, name.os, name.build, name.extension),
            ("FillFrom", "armv7l", "linux", "debug", "a")
        );
        let name = CustomOpName::parse("liba.b.x86_64-linux.release.so").unwrap();
        assert_eq!((name.op, name.arch), ("a.b", "x86_64"));
        for name in [
            "FillFrom.armv7l-linux.debug.a",
            "libFillFrom.a",
            "libFillFrom.armv7l.debug.a",
            "lib.armv7l-linux.debug.a",
            "libFillFrom.armv7l-linux.debug.dll",
            "libX.-linux.debug.a",
        ] {
            assert_eq!(CustomOpName::parse(name), None, "{name}");
        }
    }
}
