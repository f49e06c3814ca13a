use std::{fmt, str::FromStr};

use target_lexicon::Triple;

use crate::InvalidText;

/// A target triple, checked, and as it is written.
///
/// Triples are equal where their texts are; [`normalized`](Self::normalized) tells those apart that mean
/// different platforms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Platform(String);

impl Platform {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the triple with all its parts, such as `x86_64-unknown-linux-gnu` for
    /// `x86_64-linux-gnu`.
    #[must_use]
    pub fn normalized(&self) -> String {
        // The text was parsed when this was made.
        Triple::from_str(&self.0).map_or_else(|_| self.0.clone(), |triple| triple.to_string())
    }

    /// Tells whether what needs this platform runs on another: architecture, system and environment
    /// are the same, whoever the vendor is.
    #[must_use]
    pub fn runs_on(&self, host: &Self) -> bool {
        let parts = |platform: &Self| {
            let triple = Triple::from_str(&platform.0).ok()?;
            Some((triple.architecture, triple.operating_system, triple.environment))
        };
        parts(self) == parts(host)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Platform {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        match Triple::from_str(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err(InvalidText::new(text, EXPECTED)),
        }
    }
}

const EXPECTED: &str = "a target triple, such as x86_64-unknown-linux-gnu";

#[cfg(test)]
mod tests {
    use super::*;

    /// Verdicts of the reference implementation, which has target-lexicon 0.12.11.
    #[test]
    fn triples_of_the_reference() {
        for text in [
            "unknown",
            "x86_64",
            "x86_64-linux",
            "x86_64-linux-gnu",
            "aarch64-linux-android",
            "x86_64-pc-windows-msvc",
            "wasm32-unknown-unknown",
            "wasm32-wasi",
            "riscv64gc-unknown-linux-gnu",
            "armv7-unknown-linux-gnueabihf",
            "aarch64-apple-ios-sim",
            "arm64-apple-darwin",
            "x86_64-foo-linux-gnu",
            "x86_64-apple-macosx10.15.0",
            "thumbv7em-none-eabihf",
            "nvptx64-nvidia-cuda",
            "x86_64-unknown-none",
            "s390x-unknown-linux-gnu",
            "powerpc64le-unknown-linux-gnu",
            "loongarch64-unknown-linux-gnu",
        ] {
            let platform: Platform = text.parse().unwrap();
            assert_eq!(platform.as_str(), text);
            let normal: Platform = platform.normalized().parse().unwrap();
            assert_eq!(normal.normalized(), normal.as_str(), "{text}");
        }
    }

    #[test]
    fn vendors_do_not_count() {
        let runs_on =
            |a: &str, b: &str| a.parse::<Platform>().unwrap().runs_on(&b.parse().unwrap());
        assert!(runs_on("x86_64-unknown-linux-gnu", "x86_64-pc-linux-gnu"));
        assert!(runs_on("x86_64-linux-gnu", "x86_64-unknown-linux-gnu"));
        assert!(!runs_on("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"));
        assert!(!runs_on("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"));
    }

    /// What the reference implementation writes back.
    #[test]
    fn normal_forms_of_the_reference() {
        for (text, normal) in [
            ("x86_64-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("arm64-apple-darwin", "aarch64-apple-darwin"),
            ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
        ] {
            assert_eq!(text.parse::<Platform>().unwrap().normalized(), normal);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "linux",
            "X86_64-unknown-linux-gnu",
            "amd64-unknown-linux-gnu",
            "arm64e-apple-darwin",
            "x86_64-unknown-foo",
            "x86_64-unknown-linux-gnu-extra",
            "aarch64-apple-macos",
            "x86_64-unknown-linux-gnu ",
            "aninvalidplatform",
        ] {
            assert_eq!(
                text.parse::<Platform>().unwrap_err().to_string(),
                format!("{text:?} is not a target triple, such as x86_64-unknown-linux-gnu")
            );
        }
    }

    /// The reference implementation refuses these: its target-lexicon is older than the platforms,
    /// or than the rule that parts of a version may be left out. They name platforms that exist, so
    /// a carton that asks for one is readable here.
    #[test]
    fn triples_of_later_platforms() {
        for text in
            ["aarch64-apple-macosx", "x86_64-apple-macosx10.15", "aarch64-unknown-linux-ohos"]
        {
            assert_eq!(text.parse::<Platform>().unwrap().as_str(), text);
        }
    }
}
