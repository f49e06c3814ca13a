//! Parameters of a call, as arguments of the command.

use std::{path::Path, str::FromStr};

use anyhow::{anyhow, bail, ensure};
use bytes::Bytes;
use modelcrate::{
    ptl_spec::{Image, Json, Param, ParamKind, Params, Signature},
    tensor_core::{Extent, Limits},
    wav,
};

use crate::{
    address,
    failure::{About, malformed},
    output,
};

/// The parameters of a call.
#[derive(Debug, clap::Args)]
pub(super) struct Parameters {
    /// A parameter of the call; may be given several times. A text stands as it is, anything else
    /// as JSON, and @FILE for what a file holds: a picture (PNG or JPEG), sound (WAV), text, JSON.
    /// A text that starts with @ has two of them
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<Parameter>,
}

/// `NAME=VALUE`.
#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    value: String,
}

impl Parameters {
    /// Reads all parameters as what a signature takes them for.
    pub(super) fn read(&self, signature: &Signature) -> anyhow::Result<Params> {
        let mut params = Params::new();
        for Parameter { name, value } in &self.params {
            ensure!(params.get(name).is_none(), "--param {name} is given twice");
            let kind = signature.parameter(name).map_or(ParamKind::Any, |parameter| parameter.kind);
            params.insert(name, param(name, value, kind)?);
        }
        Ok(params)
    }
}

fn param(name: &str, value: &str, kind: ParamKind) -> anyhow::Result<Param> {
    let text = match value.strip_prefix('@') {
        Some(path) if !path.starts_with('@') => {
            return read(Path::new(path), kind).about(Path::new(path));
        }
        text => text.unwrap_or(value),
    };
    match kind {
        ParamKind::String | ParamKind::Colour => Ok(text.into()),
        ParamKind::Image | ParamKind::Audio => {
            bail!("--param {name} is of kind {kind}, expected @FILE")
        }
        kind => Json::parse(text.as_bytes(), &Limits::default()).map(Param::Json).map_err(|_| {
            anyhow!(
                "--param {name} is {text:?}, expected JSON of kind {kind}, such as 224 or [1, 2]"
            )
        }),
    }
}

fn read(path: &Path, kind: ParamKind) -> anyhow::Result<Param> {
    let source = output::source(path)?;
    let len = source.len();
    ensure!(len <= FILE, "is {len} bytes long, expected at most {FILE}");
    let bytes = source.read(Extent::first(len), "parameter")?;
    Ok(match kind {
        ParamKind::Image => Image::decode(&bytes)?.into(),
        ParamKind::Audio => wav::samples(&bytes)?.into(),
        ParamKind::String | ParamKind::Colour => text(bytes)?.into(),
        ParamKind::Any if is_picture(&bytes) => Image::decode(&bytes)?.into(),
        ParamKind::Any if bytes.starts_with(b"RIFF") => wav::samples(&bytes)?.into(),
        _ => Json::parse(&bytes, &Limits::default())?.into(),
    })
}

fn text(bytes: Bytes) -> anyhow::Result<String> {
    String::from_utf8(bytes.into()).or_else(|error| {
        malformed(format!("text at byte {} is not UTF-8", error.utf8_error().valid_up_to()))
    })
}

fn is_picture(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff")
}

impl FromStr for Parameter {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                let is_file = value.starts_with('@');
                let value = if is_file { value.to_owned() } else { address::text(value)? };
                Ok(Self { name: name.to_owned(), value })
            }
            _ => bail!("{text:?} is not NAME=VALUE, such as side=224 or image=@photo.jpg"),
        }
    }
}

/// What the file of a parameter may have, in bytes.
const FILE: u64 = 1 << 30;
