//! The names that pickles of models may use.

use crate::ScalarType;

/// What a name in a pickle stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Global {
    /// A storage of elements of one type.
    Storage(ScalarType),
    /// Something that is called.
    Function(Function),
    /// How a tensor is quantized.
    Scheme(Scheme),
    /// A class of the model.
    Class(String),
}

/// What a pickle would call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// Makes a tensor of a storage.
    Tensor,
    /// Makes a quantized tensor.
    QuantizedTensor,
    /// Makes a sparse tensor.
    SparseTensor,
    /// Makes an empty dictionary.
    OrderedDict,
    /// Makes a list of what it is given.
    List,
    /// Gives a value the name of its type.
    TypeTag,
    /// Makes a tensor of a number.
    TensorFromId,
    /// Makes a complex number.
    Complex,
    /// Makes a device of its name.
    Device,
}

/// How the integers of a quantized tensor stand for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// One scale and zero point.
    PerTensorAffine,
    /// One scale and zero point for each slice along an axis.
    PerChannelAffine,
    /// One scale.
    PerTensorSymmetric,
    /// One scale for each slice along an axis.
    PerChannelSymmetric,
    /// As `PerChannelAffine` with zero points that are not integers.
    PerChannelAffineFloatQParams,
}

impl Scheme {
    pub(crate) const ALL: [Self; 5] = [
        Self::PerTensorAffine,
        Self::PerChannelAffine,
        Self::PerTensorSymmetric,
        Self::PerChannelSymmetric,
        Self::PerChannelAffineFloatQParams,
    ];

    /// Returns the name that PyTorch has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerTensorAffine => "per_tensor_affine",
            Self::PerChannelAffine => "per_channel_affine",
            Self::PerTensorSymmetric => "per_tensor_symmetric",
            Self::PerChannelSymmetric => "per_channel_symmetric",
            Self::PerChannelAffineFloatQParams => "per_channel_affine_float_qparams",
        }
    }
}

impl Global {
    /// Returns what a name stands for; `None` for one that models do not need.
    pub(crate) fn of(module: &str, name: &str) -> Option<Self> {
        let function = |function| Some(Self::Function(function));
        match (module, name) {
            ("torch._utils", "_rebuild_tensor_v2") => function(Function::Tensor),
            ("torch._utils", "_rebuild_qtensor") => function(Function::QuantizedTensor),
            ("torch._utils", "_rebuild_sparse_tensor") => function(Function::SparseTensor),
            ("collections", "OrderedDict") => function(Function::OrderedDict),
            (
                "torch.jit._pickle",
                "build_intlist" | "build_tensorlist" | "build_doublelist" | "build_boollist",
            ) => function(Function::List),
            ("torch.jit._pickle", "build_tensor_from_id") => function(Function::TensorFromId),
            ("torch.jit._pickle", "restore_type_tag") => function(Function::TypeTag),
            ("builtins" | "__builtin__", "complex") => function(Function::Complex),
            ("torch", "device") => function(Function::Device),
            ("torch", name) => {
                let storage = ScalarType::from_storage(name).map(Self::Storage);
                let scheme = || Scheme::ALL.into_iter().find(|scheme| scheme.name() == name);
                storage.or_else(|| scheme().map(Self::Scheme))
            }
            (module, name) if module == CLASSES || module.starts_with("__torch__.") => {
                Some(Self::Class(format!("{module}.{name}")))
            }
            _ => None,
        }
    }
}

/// The module of the classes of a model.
const CLASSES: &str = "__torch__";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models() {
        let class = |name: &str| Some(Global::Class(name.to_owned()));
        assert_eq!(Global::of("torch", "HalfStorage"), Some(Global::Storage(ScalarType::Half)));
        assert_eq!(Global::of("__torch__", "Net"), class("__torch__.Net"));
        assert_eq!(Global::of("__torch__.a.b", "C"), class("__torch__.a.b.C"));
        let scheme = Global::Scheme(Scheme::PerChannelAffine);
        assert_eq!(Global::of("torch", "per_channel_affine"), Some(scheme));
    }

    #[test]
    fn names_that_no_model_needs() {
        for (module, name) in [
            ("os", "system"),
            ("builtins", "eval"),
            ("torch", "load"),
            ("torch._utils", "_rebuild_parameter"),
            ("__torch__evil", "x"),
            ("torch.distributed.rpc", "rref"),
        ] {
            assert_eq!(Global::of(module, name), None, "{module}.{name}");
        }
    }
}
