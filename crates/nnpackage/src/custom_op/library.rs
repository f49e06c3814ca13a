//! What is in a kernel: object files, shared libraries, and archives of the former.

use object::{
    Architecture, BinaryFormat, Object as _, ObjectKind, ObjectSymbol as _,
    read::{
        NameOrOrdinal,
        archive::ArchiveFile,
        elf::{ElfFile, FileHeader},
    },
};

use tensor_core::{Limit, Limits};

use crate::{CustomOp, Error, Result};

impl CustomOp<'_> {
    /// Looks into it, whatever its name says.
    ///
    /// # Errors
    ///
    /// [`Error::Library`] where it is not in an object format, or broken; as for [`File::bytes`](crate::File::bytes).
    pub fn library(self) -> Result<Library> {
        let limits = Limits::default().with_decoded_bytes(MAX_LIBRARY);
        limits.check(Limit::DecodedBytes, "library in bytes", self.file().len()?)?;
        Library::parse(&self.file().bytes()?)
    }
}

/// What is in an object file, a shared library, or an archive of object files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Library {
    /// The format of the file.
    pub format: LibraryFormat,
    /// The architecture, such as `x86_64`; of an archive that of its first object. `None` where it
    /// is not a known one.
    pub arch: Option<String>,
    /// Bits of an address: 32 or 64; 0 where there is no object.
    pub bits: u8,
    /// Tells whether it can be loaded at run time.
    pub is_shared: bool,
    /// The name that a shared library gives itself.
    pub soname: Option<String>,
    /// The object files of an archive, in its order.
    pub members: Vec<String>,
    /// Functions and data that it defines for others, sorted.
    pub exports: Vec<String>,
}

/// The format of a library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LibraryFormat {
    /// An archive of object files.
    Ar,
    /// ELF, of Linux and others.
    #[default]
    Elf,
    /// Mach-O, of Apple systems.
    MachO,
    /// PE or COFF, of Windows.
    Pe,
    /// Another one.
    Other,
}

impl LibraryFormat {
    /// Returns a word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ar => "ar",
            Self::Elf => "elf",
            Self::MachO => "mach-o",
            Self::Pe => "pe",
            Self::Other => "other",
        }
    }
}

impl Library {
    /// Looks into a library in memory. Nothing of it is loaded or run.
    ///
    /// # Errors
    ///
    /// [`Error::Library`] where it is not in an object format, or broken.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut library = match ArchiveFile::parse(bytes) {
            Ok(archive) => Self::of_archive(&archive, bytes)?,
            Err(_) => Self::of_object(bytes)?,
        };
        library.exports.sort();
        library.exports.dedup();
        Ok(library)
    }

    fn of_archive(archive: &ArchiveFile<'_>, bytes: &[u8]) -> Result<Self> {
        let mut library = Self { format: LibraryFormat::Ar, ..Self::default() };
        for member in archive.members().take(MAX_MEMBERS) {
            let member = member.map_err(broken)?;
            library.members.push(String::from_utf8_lossy(member.name()).into_owned());
            let object = member.data(bytes).map_err(broken)?;
            // What is not an object file has nothing to look into.
            let Ok(object) = Self::of_object(object) else { continue };
            if library.arch.is_none() {
                (library.arch, library.bits) = (object.arch, object.bits);
            }
            library.exports.extend(object.exports);
        }
        Ok(library)
    }

    fn of_object(bytes: &[u8]) -> Result<Self> {
        let object = object::File::parse(bytes).map_err(broken)?;
        let is_shared = object.kind() == ObjectKind::Dynamic;
        let exports = match is_shared {
            true => {
                let exports = object.exports().map_err(broken)?.take(MAX_SYMBOLS);
                let names = exports.map(|export| match export.map_err(broken)?.name() {
                    NameOrOrdinal::Name(name) => Ok(text(name)),
                    NameOrOrdinal::Ordinal(number) => Ok(format!("#{number}")),
                });
                names.collect::<Result<_>>()?
            }
            false => {
                let symbols = object.symbols().filter(|symbol| {
                    symbol.is_global() && symbol.is_definition() && symbol.name_bytes().is_ok()
                });
                let names = symbols.filter_map(|symbol| symbol.name_bytes().ok().map(text));
                names.take(MAX_SYMBOLS).collect()
            }
        };
        let soname = match &object {
            object::File::Elf32(file) => soname(file),
            object::File::Elf64(file) => soname(file),
            _ => None,
        };
        Ok(Self {
            format: format(object.format()),
            arch: arch(object.architecture()),
            bits: if object.is_64() { 64 } else { 32 },
            is_shared,
            soname,
            members: Vec::new(),
            exports,
        })
    }
}

/// Returns the name that a shared ELF library gives itself.
fn soname<E: FileHeader>(file: &ElfFile<'_, E>) -> Option<String> {
    let table = file.elf_dynamic_table().ok()?;
    let entry = table.iter().find(|entry| entry.tag == object::elf::DT_SONAME)?;
    table.string(entry).ok().map(text)
}

fn format(format: BinaryFormat) -> LibraryFormat {
    match format {
        BinaryFormat::Elf => LibraryFormat::Elf,
        BinaryFormat::MachO => LibraryFormat::MachO,
        BinaryFormat::Pe | BinaryFormat::Coff => LibraryFormat::Pe,
        _ => LibraryFormat::Other,
    }
}

/// Returns the name of an architecture, as names of files have it.
fn arch(arch: Architecture) -> Option<String> {
    Some(match arch {
        Architecture::Unknown => return None,
        Architecture::X86_64 | Architecture::X86_64_X32 => "x86_64".to_owned(),
        Architecture::I386 => "i386".to_owned(),
        Architecture::Aarch64 | Architecture::Aarch64_Ilp32 => "aarch64".to_owned(),
        Architecture::Arm => "arm".to_owned(),
        Architecture::Riscv64 => "riscv64".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    })
}

/// Tells whether an object of an architecture is what a name of one means.
pub(crate) fn is_same_arch(named: &str, found: &str) -> bool {
    let family = |name: &str| match name {
        "armv7l" | "armv7hl" | "armv7" | "armv6l" | "armhf" | "armel" | "arm" => "arm".to_owned(),
        "aarch64" | "arm64" | "armv8" | "armv8l" => "aarch64".to_owned(),
        "x86_64" | "amd64" | "x64" => "x86_64".to_owned(),
        "i386" | "i486" | "i586" | "i686" | "x86" => "i386".to_owned(),
        other => other.to_lowercase(),
    };
    family(named) == family(found)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn broken(error: object::Error) -> Error {
    let mut reason = error.to_string();
    if let Some(first) = reason.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    Error::Library { reason }
}

/// Bytes of a library that is looked into.
const MAX_LIBRARY: u64 = 1 << 30;
/// Members of an archive that are looked into.
const MAX_MEMBERS: usize = 100_000;
/// Symbols of an object that are listed.
const MAX_SYMBOLS: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_of_one_family() {
        assert!(is_same_arch("armv7l", "arm") && is_same_arch("arm64", "aarch64"));
        assert!(is_same_arch("amd64", "x86_64") && is_same_arch("i686", "i386"));
        assert!(!is_same_arch("x86_64", "aarch64") && !is_same_arch("armv7l", "aarch64"));
    }

    #[test]
    fn what_is_no_library() {
        let error = Library::parse(b"#!/bin/sh\nexit 0\n").unwrap_err();
        assert_eq!(error.to_string(), "library cannot be read: unknown file magic");
        let error = Library::parse(b"").unwrap_err();
        assert_eq!(error.to_string(), "library cannot be read: could not read file magic");
    }
}
