//! One match for all formats.

/// Matches on an [`AnyReader`](crate::AnyReader), an [`AnyTensor`](crate::AnyTensor) or an
/// [`Error`](crate::Error) with one expression for all formats that this build knows, in which
/// `$part` is the reader, handle or error of the format.
macro_rules! each {
    (AnyReader: $any:expr, $part:ident => $body:expr) => {
        $crate::each::each!(@ AnyReader: $any, $part => $body;
            "carton" Carton, "circle" Circle, "nnpackage" NnPackage, "ptl" Ptl, "ptl" PtlSpec,
            "rten" Rten, "ztensor" ZTensor;
        )
    };
    (AnyTensor: $any:expr, $part:ident => $body:expr) => {
        $crate::each::each!(@ AnyTensor: $any, $part => $body;
            "carton" Carton, "circle" Circle, "ptl" Ptl, "rten" Rten, "ztensor" ZTensor;
        )
    };
    (Error: $any:expr, $part:ident => $body:expr, $($other:tt)*) => {
        $crate::each::each!(@ Error: $any, $part => $body;
            "carton" Carton, "circle" Circle, "nnpackage" NnPackage, "ptl" Ptl, "rten" Rten,
            "circle" TfLite, "ztensor" ZTensor;
            $($other)*
        )
    };
    (@ $Any:ident: $any:expr, $part:ident => $body:expr;
        $($feature:literal $Variant:ident),*; $($other:tt)*
    ) => {
        match $any {
            $crate::$Any::Weights($part) => $body,
            $(
                #[cfg(feature = $feature)]
                $crate::$Any::$Variant($part) => $body,
            )*
            $($other)*
        }
    };
}
pub(crate) use each;
