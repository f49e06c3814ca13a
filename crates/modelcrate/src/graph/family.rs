//! Kinds of operators, by which drawings colour them.

/// What kind of operator a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Family {
    /// Convolutions.
    Conv,
    /// Products of matrices, embeddings, recurrent cells.
    Dense,
    /// Normalisations.
    Norm,
    /// Functions of single elements that make a network more than a product.
    Activation,
    /// Pooling and resizing.
    Pool,
    /// Changes of shape and order; no arithmetic.
    Shape,
    /// Arithmetic on single elements.
    Elementwise,
    /// Sums, means, extremes.
    Reduce,
    /// Reads parts: gathers, slices, looks up.
    Data,
    /// Branches, loops, calls.
    Control,
    /// Between numbers and their codes, and between element types.
    Quantize,
    /// What stands for others: a collapsed group of names, a module, a model of a package, a runner.
    Group,
    /// Anything else.
    #[default]
    Other,
}

impl Family {
    /// Returns the family of an operator, by its name in any of the formats: `Conv`, `CONV_2D`,
    /// `aten::conv2d`.
    #[must_use]
    pub fn of(operator: &str) -> Self {
        let name = operator.rsplit("::").next().unwrap_or_default();
        let name = name.split('.').next().unwrap_or_default();
        // Longer names are of no operator that there is.
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
        let name = name.to_ascii_lowercase();
        let is_named = |(names, _): &&(&[&str], Self)| {
            names.iter().any(|part| match part.strip_prefix('=') {
                Some(whole) => name == whole,
                None => name.contains(part),
            })
        };
        FAMILIES.iter().find(is_named).map_or(Self::Other, |(_, family)| *family)
    }

    /// Returns the name, as JSON and the classes of drawings have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conv => "conv",
            Self::Dense => "dense",
            Self::Norm => "norm",
            Self::Activation => "activation",
            Self::Pool => "pool",
            Self::Shape => "shape",
            Self::Elementwise => "elementwise",
            Self::Reduce => "reduce",
            Self::Data => "data",
            Self::Control => "control",
            Self::Quantize => "quantize",
            Self::Group => "group",
            Self::Other => "other",
        }
    }
}

/// Parts of names, or whole ones behind `=`, in lower case without `_`; the first that fits counts.
const FAMILIES: &[(&[&str], Family)] = &[
    (&["quantize", "=cast", "=to", "=castlike", "typeas"], Family::Quantize),
    (
        &["=if", "loop", "while", "=call", "callonce", "callmethod", "partitionedcall", "=scan"],
        Family::Control,
    ),
    (&["norm", "lrn"], Family::Norm),
    (&["conv"], Family::Conv),
    (
        &[
            "matmul",
            "gemm",
            "=linear",
            "fullyconnected",
            "=addmm",
            "=baddbmm",
            "=mm",
            "=bmm",
            "lstm",
            "gru",
            "rnn",
            "embedding",
            "einsum",
            "attention",
            "svdf",
        ],
        Family::Dense,
    ),
    (&["pool", "resize", "upsample", "interpolate", "gridsample"], Family::Pool),
    (
        &[
            "relu",
            "sigmoid",
            "tanh",
            "softmax",
            "gelu",
            "silu",
            "swish",
            "elu",
            "mish",
            "softplus",
            "hardtanh",
            "logistic",
            "clip",
            "clamp",
            "dropout",
            "softsign",
            "thresholded",
        ],
        Family::Activation,
    ),
    (
        &[
            "reshape",
            "transpose",
            "squeeze",
            "flatten",
            "=view",
            "permute",
            "concat",
            "=cat",
            "=stack",
            "=split",
            "splitv",
            "=pack",
            "unpack",
            "=unbind",
            "expand",
            "=tile",
            "=pad",
            "padv2",
            "mirrorpad",
            "=shape",
            "=size",
            "=rank",
            "depthtospace",
            "spacetodepth",
            "spacetobatch",
            "batchtospace",
            "contiguous",
            "broadcast",
            "=identity",
            "reverse",
            "chunk",
            "tuple",
            "list",
            "constructed",
            "detach",
        ],
        Family::Shape,
    ),
    (
        &[
            "reduce", "=sum", "=mean", "argmax", "argmin", "topk", "cumsum", "=prod", "cumprod",
            "=any", "=all", "nonzero",
        ],
        Family::Reduce,
    ),
    (
        &[
            "gather", "slice", "scatter", "select", "=where", "onehot", "lookup", "=range",
            "=fill", "constant", "attr", "index", "trilu", "random", "eyelike", "zeros", "ones",
        ],
        Family::Data,
    ),
    (
        &[
            "add",
            "sub",
            "mul",
            "div",
            "pow",
            "=exp",
            "=log",
            "sqrt",
            "=neg",
            "=abs",
            "maximum",
            "minimum",
            "=max",
            "=min",
            "floor",
            "ceil",
            "round",
            "=sin",
            "=cos",
            "=erf",
            "equal",
            "greater",
            "less",
            "=not",
            "=and",
            "=or",
            "=xor",
            "logical",
            "reciprocal",
            "square",
            "=sign",
            "=mod",
            "remainder",
            "=eq",
            "=ne",
            "=lt",
            "=le",
            "=gt",
            "=ge",
            "isnan",
            "isinf",
        ],
        Family::Elementwise,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_all_formats_have_families() {
        for (operator, family) in [
            ("Conv", Family::Conv),
            ("DEPTHWISE_CONV_2D", Family::Conv),
            ("aten::conv2d", Family::Conv),
            ("FULLY_CONNECTED", Family::Dense),
            ("aten::linear", Family::Dense),
            ("BatchNormalization", Family::Norm),
            ("aten::layer_norm", Family::Norm),
            ("HARD_SWISH", Family::Activation),
            ("aten::relu_", Family::Activation),
            ("MAX_POOL_2D", Family::Pool),
            ("RESHAPE", Family::Shape),
            ("aten::add.Tensor", Family::Elementwise),
            ("ReduceMean", Family::Reduce),
            ("Gather", Family::Data),
            ("If", Family::Control),
            ("WHILE", Family::Control),
            ("DequantizeLinear", Family::Quantize),
            ("Cast", Family::Quantize),
            ("", Family::Other),
            ("FlexBogus", Family::Other),
        ] {
            assert_eq!(Family::of(operator), family, "{operator}");
        }
    }

    #[test]
    fn names_are_those_of_json() {
        let families =
            FAMILIES.iter().map(|(_, family)| *family).chain([Family::Group, Family::Other]);
        for family in families {
            assert_eq!(serde_json::to_value(family).unwrap(), family.as_str());
        }
    }
}
