use std::fmt;

/// Why a tensor, or all of them, cannot be in a file of the target.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The name of the tensor; `None` where it is about the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// What the target does not have.
    pub reason: String,
    /// What would make it possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// What makes a conversion possible that is refused.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Remedy {
    /// The option of [`ConvertOptions`](crate::ConvertOptions): `densify`, `dequantize` or `lossy`.
    pub option: &'static str,
    /// What it would do.
    pub effect: String,
}

/// What becomes of a tensor that is not written as it is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Note {
    /// The name of the tensor.
    pub tensor: String,
    /// What becomes of it.
    pub effect: String,
}

impl Refusal {
    pub(super) fn file(reason: impl fmt::Display) -> Self {
        Self { tensor: None, reason: reason.to_string(), remedy: None }
    }

    pub(crate) fn of(tensor: &str, reason: impl Into<String>) -> Self {
        Self { tensor: Some(tensor.to_owned()), reason: reason.into(), remedy: None }
    }

    pub(super) fn or(self, option: &'static str, effect: String) -> Self {
        Self { remedy: Some(Remedy { option, effect }), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tensor) = &self.tensor {
            write!(f, "{tensor:?}: ")?;
        }
        f.write_str(&self.reason)?;
        match &self.remedy {
            Some(Remedy { option, effect }) => write!(f, " (--{option}: {effect})"),
            None => Ok(()),
        }
    }
}
