//! What this crate adds to the readers of the formats: a file each, with functions of the same
//! names.

#[cfg(feature = "archive")]
use model_archive::Archive;
use tensor_core::Source;

use crate::{AnyTensor, Format, Result};

#[cfg(feature = "carton")]
pub(crate) mod carton;
#[cfg(feature = "circle")]
pub(crate) mod circle;
#[cfg(feature = "nnpackage")]
pub(crate) mod nnpackage;
#[cfg(feature = "ptl")]
pub(crate) mod ptl;
#[cfg(feature = "ptl")]
pub(crate) mod ptl_spec;
#[cfg(feature = "rten")]
pub(crate) mod rten;
#[cfg(feature = "ztensor")]
pub(crate) mod ztensor;

/// The tensors of a file.
pub(crate) type Tensors<'a> = Box<dyn Iterator<Item = AnyTensor<'a>> + 'a>;

/// Makes the two functions that look tensors up; `?` where the list of them can be broken.
macro_rules! tensors {
    ($Variant:ident $($fallible:tt)?) => {
        pub(crate) fn tensors(reader: &Reader) -> $crate::Result<$crate::formats::Tensors<'_>> {
            Ok(Box::new(reader.tensors()$($fallible)?.map($crate::AnyTensor::$Variant)))
        }

        pub(crate) fn tensor<'a>(
            reader: &'a Reader,
            name: &str,
        ) -> $crate::Result<Option<$crate::AnyTensor<'a>>> {
            Ok(reader.tensor(name)$($fallible)?.map($crate::AnyTensor::$Variant))
        }
    };
}
pub(crate) use tensors;

/// Matches on an [`AnyReader`](crate::AnyReader), an [`AnyTensor`](crate::AnyTensor) or an
/// [`Error`](crate::Error) with one expression for all formats that this build knows, in which
/// `$format` is the module of the format and `$part` its reader, handle or error.
macro_rules! each {
    (AnyReader: $any:expr, $format:ident, $part:ident => $body:expr) => {
        $crate::formats::each!(@ AnyReader: $any, $format, $part => $body;
            "carton" Carton carton, "circle" Circle circle, "nnpackage" NnPackage nnpackage,
            "ptl" Ptl ptl, "ptl" PtlSpec ptl_spec, "rten" Rten rten, "ztensor" ZTensor ztensor;
            #[cfg(not(any(
                feature = "carton", feature = "circle", feature = "ptl", feature = "rten",
                feature = "ztensor"
            )))]
            $crate::AnyReader::None(never) => match *never {},
        )
    };
    (AnyTensor: $any:expr, $format:ident, $part:ident => $body:expr) => {
        $crate::formats::each!(@ AnyTensor: $any, $format, $part => $body;
            "carton" Carton carton, "circle" Circle circle, "ptl" Ptl ptl, "rten" Rten rten,
            "ztensor" ZTensor ztensor;
            #[cfg(not(any(
                feature = "carton", feature = "circle", feature = "ptl", feature = "rten",
                feature = "ztensor"
            )))]
            $crate::AnyTensor::None(never) => match *never {},
        )
    };
    (Error: $any:expr, $part:ident => $body:expr, $($other:tt)*) => {
        $crate::formats::each!(@ Error: $any, _format, $part => $body;
            "carton" Carton carton, "circle" Circle circle, "nnpackage" NnPackage nnpackage,
            "ptl" Ptl ptl, "rten" Rten rten, "circle" TfLite circle, "ztensor" ZTensor ztensor;
            $($other)*
        )
    };
    (@ $Any:ident: $any:expr, $format:ident, $part:ident => $body:expr;
        $($feature:literal $Variant:ident $module:ident),*; $($other:tt)*
    ) => {
        match $any {
            $(
                #[cfg(feature = $feature)]
                $crate::$Any::$Variant($part) => {
                    #[allow(unused_imports, reason = "an expression may need the part alone")]
                    use $crate::formats::$module as $format;
                    $body
                }
            )*
            $($other)*
        }
    };
}
pub(crate) use each;

/// Tells which format some bytes are, archives apart.
pub(crate) fn sniff(source: &Source) -> Result<Option<Format>> {
    #[cfg(feature = "ztensor")]
    if ::ztensor::sniff(source)? {
        return Ok(Some(Format::ZTensor));
    }
    #[cfg(feature = "circle")]
    if let Some(schema) = circle_format::sniff(source)? {
        return Ok(Some(circle::format_of(schema)));
    }
    #[cfg(feature = "ptl")]
    if ::ptl_spec::sniff(source)? {
        return Ok(Some(Format::Ptl));
    }
    #[cfg(feature = "rten")]
    if rten_format::sniff(source)? {
        return Ok(Some(Format::Rten));
    }
    #[cfg(feature = "ptl")]
    if ::ptl_spec::Spec::sniff(source)? {
        return Ok(Some(Format::PtlSpec));
    }
    Ok(None)
}

/// Tells which format an archive is. A carton may hold what is called as a part of a package, and a
/// package what is called as one of a model.
#[cfg(feature = "archive")]
pub(crate) fn sniff_archive(archive: &Archive) -> Option<Format> {
    #[cfg(feature = "carton")]
    if carton_format::sniff_archive(archive) {
        return Some(Format::Carton);
    }
    #[cfg(feature = "nnpackage")]
    if ::nnpackage::sniff_archive(archive) {
        return Some(Format::NnPackage);
    }
    #[cfg(feature = "ptl")]
    if ::ptl_spec::sniff_archive(archive) {
        return Some(Format::Ptl);
    }
    None
}

/// Tells which format an archive is that cannot be opened.
#[cfg(feature = "archive")]
pub(crate) fn sniff_damaged(source: &Source) -> Result<Option<Format>> {
    #[cfg(feature = "carton")]
    if carton_format::sniff(source)? {
        return Ok(Some(Format::Carton));
    }
    #[cfg(feature = "nnpackage")]
    if ::nnpackage::sniff(source)? {
        return Ok(Some(Format::NnPackage));
    }
    #[cfg(feature = "ptl")]
    if ::ptl_spec::sniff(source)? {
        return Ok(Some(Format::Ptl));
    }
    Ok(None)
}
