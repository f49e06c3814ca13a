use std::{fmt, str::FromStr};

/// A release of RTen, whose crate and converter share their version numbers.
///
/// A file can be read by the release that added the newest thing in it, and by all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    minor: u8,
    patch: u8,
}

impl Release {
    /// The oldest release whose files are known; earlier ones numbered operators otherwise.
    pub const OLDEST: Self = Self::new(2, 0);

    /// Names release 0.`minor`.`patch`.
    #[must_use]
    pub const fn new(minor: u8, patch: u8) -> Self {
        Self { minor, patch }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0.{}.{}", self.minor, self.patch)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Release {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is not a release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a release of RTen, expected one such as 0.13.1")]
pub struct UnknownRelease {
    /// The text.
    pub text: String,
}

impl FromStr for Release {
    type Err = UnknownRelease;

    /// Reads `0.MINOR` or `0.MINOR.PATCH`.
    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        let parsed = || {
            let rest = text.strip_prefix("0.")?;
            let (minor, patch) = rest.split_once('.').unwrap_or((rest, "0"));
            Some(Self::new(minor.parse().ok()?, patch.parse().ok()?))
        };
        parsed().ok_or_else(|| UnknownRelease { text: text.to_owned() })
    }
}

/// Takes the first of one or two pairs of minor and patch number.
macro_rules! since {
    ($since:tt $($older:tt)?) => {
        $crate::Release::new $since
    };
}
pub(crate) use since;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_number() {
        assert!(Release::new(9, 0) < Release::new(13, 0));
        assert!(Release::new(13, 0) < Release::new(13, 1));
        assert_eq!(Release::new(13, 1).to_string(), "0.13.1");
    }

    #[test]
    fn releases_are_read() {
        assert_eq!("0.13.1".parse(), Ok(Release::new(13, 1)));
        assert_eq!("0.27".parse(), Ok(Release::new(27, 0)));
        for text in ["", "1.0.0", "0.", "0.1.2.3", "0.-1", "0.999"] {
            let message = format!("{text:?} is not a release of RTen, expected one such as 0.13.1");
            assert_eq!(text.parse::<Release>().unwrap_err().to_string(), message);
        }
    }
}
