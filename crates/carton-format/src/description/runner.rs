//! Which runner runs a model, and how. Format text: "`carton.toml`", `[runner]`.

use std::{fmt, str::FromStr};

use semver::VersionReq;

use crate::{
    InvalidText, Result,
    description::named::Named,
    text::emit::{Emitter, Text},
    text::{Kind, Node, Unknown},
};

/// The runner that a model needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Runner {
    /// Its name, such as `torchscript`.
    pub name: String,
    /// The versions of the framework behind it that are accepted.
    pub required_framework_version: FrameworkVersion,
    /// The version of what is in the folder `model`. The reference implementation does not read a
    /// carton without it.
    pub compat_version: Option<u64>,
    /// Settings that are the runner's own affair. None and no table are two things in the document.
    pub options: Option<Named<OptionValue>>,
}

impl Runner {
    /// Makes a runner of the two things that have to be known.
    #[must_use]
    pub fn new(name: impl Into<String>, required: FrameworkVersion) -> Self {
        Self {
            name: name.into(),
            required_framework_version: required,
            compat_version: None,
            options: None,
        }
    }

    pub(crate) fn parse<'d>(node: Node<'d>, unknown: &mut Unknown<'d>) -> Result<Self> {
        let mut table = node.table()?;
        let runner = Self {
            name: table.required("runner_name")?.string()?.to_owned(),
            required_framework_version: table.required("required_framework_version")?.parse()?,
            compat_version: table
                .optional("runner_compat_version")
                .map(Node::unsigned)
                .transpose()?,
            options: table
                .optional("opts")
                .map(|node| Named::parse(node, unknown, OptionValue::parse))
                .transpose()?,
        };
        table.finish(unknown);
        Ok(runner)
    }

    pub(crate) fn emit(&self, emitter: &mut Emitter) {
        emitter
            .table("runner")
            .text("runner_name", &self.name)
            .text("required_framework_version", self.required_framework_version.as_str());
        if let Some(version) = self.compat_version {
            emitter.pair("runner_compat_version", version);
        }
        if let Some(options) = &self.options {
            emitter.table("runner.opts");
            for (name, value) in options.iter() {
                emitter.pair(name, value);
            }
        }
    }
}

/// Which versions of a framework are accepted: a semver requirement, and the text that it was read from.
///
/// The text is kept because a requirement may mean something else than it seems to: `1.2.3` stands
/// for `^1.2.3`.
///
/// # Examples
///
/// ```
/// use carton_format::FrameworkVersion;
///
/// let version: FrameworkVersion = "=1.12.1".parse()?;
/// assert!(version.requirement().matches(&semver::Version::new(1, 12, 1)));
/// # Ok::<(), carton_format::InvalidText>(())
/// ```
#[derive(Clone, Debug)]
pub struct FrameworkVersion {
    text: String,
    requirement: VersionReq,
}

impl FrameworkVersion {
    /// Returns the text as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the requirement.
    #[must_use]
    pub const fn requirement(&self) -> &VersionReq {
        &self.requirement
    }
}

impl PartialEq for FrameworkVersion {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for FrameworkVersion {}

impl fmt::Display for FrameworkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for FrameworkVersion {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        match VersionReq::parse(text) {
            Ok(requirement) => Ok(Self { text: text.to_owned(), requirement }),
            Err(error) => {
                let expected = format!("a version requirement, such as \"=1.2.3\" ({error})");
                Err(InvalidText::new(text, expected))
            }
        }
    }
}

/// The value of an option of a runner.
///
/// Floats are equal where their bits are, and every NaN equals every other: TOML has only one.
#[derive(Clone, Debug)]
pub enum OptionValue {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent, an infinity, or none.
    Float(f64),
    /// A text.
    String(String),
    /// True or false.
    Boolean(bool),
}

impl OptionValue {
    fn parse(node: Node<'_>) -> Result<Self> {
        Ok(match node.kind() {
            Kind::Integer(integer) => Self::Integer(integer),
            Kind::Float(float) => Self::Float(float),
            Kind::String(text) => Self::String(text.to_owned()),
            Kind::Boolean(boolean) => Self::Boolean(boolean),
            Kind::Array | Kind::Table | Kind::Other => {
                return Err(node.fault("a 64-bit integer, a 64-bit float, a string or a boolean"));
            }
        })
    }
}

impl PartialEq for OptionValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for OptionValue {}

impl fmt::Display for OptionValue {
    /// Writes the value as TOML does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(float) if float.is_nan() => f.write_str("nan"),
            // The shortest digits that read back, with a point or an exponent.
            Self::Float(float) => write!(f, "{float:?}"),
            Self::String(text) => write!(f, "{}", Text(text)),
            Self::Boolean(boolean) => write!(f, "{boolean}"),
        }
    }
}

macro_rules! from {
    ($($Type:ty => $Variant:ident)*) => {$(
        impl From<$Type> for OptionValue {
            fn from(value: $Type) -> Self {
                Self::$Variant(value.into())
            }
        }
    )*};
}

from! { i64 => Integer f64 => Float bool => Boolean &str => String String => String }

#[cfg(test)]
mod tests {
    use super::*;

    /// Verdicts of the reference implementation, and the requirement that it understands.
    #[test]
    fn requirements_of_the_reference() {
        for (text, requirement) in [
            ("=1.2.3", "=1.2.3"),
            ("1.2.3", "^1.2.3"),
            ("^1", "^1"),
            ("~1.2", "~1.2"),
            (">=1.10, <2", ">=1.10, <2"),
            ("*", "*"),
            ("x", "*"),
            ("1.x", "1.*"),
            ("1.*", "1.*"),
            ("=1", "=1"),
            ("=3.11", "=3.11"),
            ("  =1.2.3 ", "=1.2.3"),
            (">=1.*", ">=1"),
            ("=2.0.1+cu118", "=2.0.1"),
        ] {
            let version: FrameworkVersion = text.parse().unwrap();
            assert_eq!(version.as_str(), text);
            assert_eq!(version.requirement().to_string(), requirement, "{text}");
        }
    }

    #[test]
    fn other_requirements_are_refused() {
        for (text, reason) in [
            ("!=1.2", "unexpected character '!' while parsing major version number"),
            ("=1.*.3", "unexpected character after wildcard in version req"),
        ] {
            assert_eq!(
                text.parse::<FrameworkVersion>().unwrap_err().to_string(),
                format!("{text:?} is not a version requirement, such as \"=1.2.3\" ({reason})")
            );
        }
    }

    #[test]
    fn floats_keep_their_bits() {
        for (float, text) in [
            (2.0, "2.0"),
            (-0.0, "-0.0"),
            (1e300, "1e300"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::NEG_INFINITY, "-inf"),
            (-f64::NAN, "nan"),
        ] {
            assert_eq!(OptionValue::Float(float).to_string(), text);
        }
        assert_ne!(OptionValue::Float(0.0), OptionValue::Float(-0.0));
        assert_ne!(OptionValue::Float(2.0), OptionValue::Integer(2));
    }
}
