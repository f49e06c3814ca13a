use std::fmt::Write as _;

use modelcrate::carton_format::{Platform, Reader};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Input, Print},
    outcome::Outcome,
    output,
};

/// Show which platforms a carton is for, or whether one is among them
///
/// A carton that names none is for any. The exit status is 1 where the host is not among them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton platforms model.carton
  modelcrate carton platforms model.carton --host x86_64-unknown-linux-gnu")]
pub(crate) struct Platforms {
    /// The carton, or a folder with the files of one; - is standard input
    file: Input,
    /// Say whether the model runs on this platform
    #[arg(long, value_name = "TRIPLE")]
    host: Option<Platform>,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Listed {
    path: String,
    /// Any where there are none.
    platforms: Vec<Required>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<bool>,
}

#[derive(Serialize)]
struct Required {
    /// As it is written.
    triple: String,
    /// With all its parts.
    normal: String,
}

impl Platforms {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = super::open(&self.file, Reader::options())?;
        let description = reader.description().about(&self.file)?;
        let platforms = || description.required_platforms.iter().flatten();
        let runs = self.host.as_ref().map(|host| {
            platforms().next().is_none() || platforms().any(|platform| platform.runs_on(host))
        });
        let host = self.host.as_ref().map(Platform::normalized);
        let platforms: Vec<Required> = platforms().map(Required::from).collect();
        let path = self.file.display().to_string();
        let listed = Listed { path, platforms, host, runs };
        output::print_result(self.print, &listed, &listed.text())?;
        Ok(if runs == Some(false) { Outcome::Invalid } else { Outcome::Fine })
    }
}

impl From<&Platform> for Required {
    fn from(platform: &Platform) -> Self {
        Self { triple: platform.to_string(), normal: platform.normalized() }
    }
}

impl Listed {
    fn text(&self) -> String {
        let path = escape(&self.path);
        let mut text = String::new();
        if self.platforms.is_empty() {
            let _ = writeln!(text, "{path}: any platform");
        }
        for Required { triple, normal } in &self.platforms {
            let _ = write!(text, "{path}: {}", escape(triple));
            let _ = match triple == normal {
                true => writeln!(text),
                false => writeln!(text, ", in full {}", escape(normal)),
            };
        }
        if let (Some(host), Some(runs)) = (&self.host, self.runs) {
            let runs = if runs { "runs" } else { "does not run" };
            let _ = writeln!(text, "{path}: {runs} on {}", escape(host));
        }
        text
    }
}
