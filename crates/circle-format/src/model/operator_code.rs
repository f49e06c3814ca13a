use std::{borrow::Cow, fmt};

use super::{BuiltinOperator, Schema};

/// What operators refer to by its position: a number, or a name where the number is CUSTOM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCode {
    /// The number in the field of old files, which has 8 bits: 127 for all that are larger.
    pub deprecated_builtin_code: i8,
    /// The name of a custom operator.
    pub custom_code: Option<String>,
    /// The version of the operator, from 1.
    pub version: i32,
    /// The number; 0 in old files, which have only the other field.
    pub builtin_code: BuiltinOperator,
}

impl OperatorCode {
    /// Returns what the operator computes.
    ///
    /// Of the two fields `builtin_code` counts from 127 on, and the other one below: so does onert.
    /// TFLite takes the larger one, which is the same for all files that are as they should be.
    #[must_use]
    pub fn operator(&self) -> BuiltinOperator {
        if self.builtin_code.code() >= 127 {
            return self.builtin_code;
        }
        BuiltinOperator::from_code(self.deprecated_builtin_code.into())
    }

    /// Returns what TFLite takes it for: the larger number of both fields.
    #[must_use]
    pub fn operator_in_tflite(&self) -> BuiltinOperator {
        self.builtin_code.max(BuiltinOperator::from_code(self.deprecated_builtin_code.into()))
    }

    /// Returns what the clients of a schema take it for.
    pub(crate) fn operator_in(&self, schema: Schema) -> BuiltinOperator {
        match schema {
            Schema::Circle => self.operator(),
            Schema::Tflite => self.operator_in_tflite(),
        }
    }

    /// Tells whether it is an operator that only its name tells from others.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.operator() == BuiltinOperator::CUSTOM
    }

    /// Returns the name in the format; of a custom operator with its own, such as `CUSTOM:MyOp`.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        let operator = self.operator();
        match (operator.name(), &self.custom_code) {
            (Some(name), Some(custom)) if self.is_custom() => format!("{name}:{custom}").into(),
            (Some(name), _) => name.into(),
            (None, _) => operator.to_string().into(),
        }
    }
}

impl Default for OperatorCode {
    /// Returns what a table without fields reads as.
    fn default() -> Self {
        Self {
            deprecated_builtin_code: 0,
            custom_code: None,
            version: 1,
            builtin_code: BuiltinOperator::ADD,
        }
    }
}

impl fmt::Display for OperatorCode {
    /// Writes the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs that facts about onert name, and what conforming writers store.
    #[test]
    fn two_fields_make_one_number() {
        for (deprecated, builtin, onert, tflite) in [
            (0, 41, "ADD", "SUB"),
            (41, 41, "SUB", "SUB"),
            (41, 0, "SUB", "SUB"),
            (127, 150, "GELU", "GELU"),
            (127, 0, "PLACEHOLDER_FOR_GREATER_OP_CODES", "PLACEHOLDER_FOR_GREATER_OP_CODES"),
            (-6, -6, "RMS_NORM", "RMS_NORM"),
            (-1, -1, "unknown -1", "unknown -1"),
        ] {
            let code = OperatorCode {
                deprecated_builtin_code: deprecated,
                builtin_code: BuiltinOperator::from_code(builtin),
                ..OperatorCode::default()
            };
            assert_eq!(code.name(), onert, "{deprecated}, {builtin}");
            assert_eq!(code.operator_in_tflite().to_string(), tflite, "{deprecated}, {builtin}");
        }
    }
}
