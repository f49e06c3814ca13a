//! One call of a model: parameters in, results out.

use std::{collections::HashSet, error::Error as StdError};

use tensor_core::{Finding, Report};

use crate::{
    Error, Pack, Params, Result, Results, Signature, Spec, Unpack, Value, call::stub::Binder,
    spec::parse::Stop, spec::path::Path,
};

mod named;
pub(crate) mod packer;
pub(crate) mod params;
pub(crate) mod stub;
pub(crate) mod unpacker;
pub(crate) mod value;

/// Something that executes a model: what a caller implements for a runtime.
///
/// Closures are models.
pub trait Model {
    /// Runs the model's `forward` with the one value that `pack` has made.
    ///
    /// # Errors
    ///
    /// Whatever stands in the way; [`Error::Model`] carries it.
    fn forward(&self, input: &Value) -> Result<Value, Box<dyn StdError + Send + Sync>>;
}

impl<F> Model for F
where
    F: Fn(&Value) -> Result<Value, Box<dyn StdError + Send + Sync>>,
{
    fn forward(&self, input: &Value) -> Result<Value, Box<dyn StdError + Send + Sync>> {
        self(input)
    }
}

/// Packs the parameters, runs the model, and unpacks its output.
///
/// # Errors
///
/// As for [`Spec::call`], [`Call::pack`] and [`Call::unpack`]; [`Error::Model`].
pub fn run(spec: &Spec, params: &Params, model: &impl Model) -> Result<Results> {
    let mut call = spec.call(params)?;
    let input = call.pack()?;
    let output = model.forward(&input).map_err(|source| Error::Model { source })?;
    call.unpack(&output)
}

/// A spec whose stubs are replaced by the parameters of a call.
#[derive(Debug)]
pub struct Call<'c> {
    pub(crate) spec: &'c Spec,
    pub(crate) params: &'c Params,
    pub(super) pack: Pack,
    pub(super) unpack: Unpack,
    report: Report,
    /// The ids of the text that was packed last with the tokenizer `bert`.
    pub(crate) tokens: Option<Vec<i64>>,
}

impl Spec {
    /// Puts the parameters of a call in the place of their stubs, and checks what comes of it.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] for a stub without parameter, or a parameter of the wrong kind.
    pub fn call<'c>(&'c self, params: &'c Params) -> Result<Call<'c>> {
        let mut binder = Binder::new(params, self.dialect())?;
        let mut parser = self.parser();
        let mut bind = |part: &str| {
            let node = self.json().get(part).unwrap_or(&crate::Json::Null);
            binder.bind(node, &mut Path::root(part))
        };
        let (pack, unpack) = (bind("pack")?, bind("unpack")?);
        let pack = parser.pack(&pack, &mut Path::root("pack"));
        let unpack = parser.unpack(&unpack, &mut Path::root("unpack"));
        let mut report = std::mem::take(&mut parser.lints);
        let (pack, unpack) = match (parser.faults.into_iter().next(), pack, unpack) {
            (None, Ok(pack), Ok(unpack)) => (pack, unpack),
            (Some(fault), ..) => return Err(fault),
            // Whatever stopped the parser is among the faults.
            (None, Err(Stop::Faulty | Stop::Deferred), _) | (None, _, Err(_)) => {
                let fault = crate::Fault::Missing { field: "pack" };
                return Err(Error::spec("spec", fault));
            }
        };
        // Pictures and sound are named, not stubs.
        let named = Signature::with_conflicts(&pack, &unpack).0.parameters;
        let named: HashSet<&str> = named.iter().map(|parameter| parameter.name.as_str()).collect();
        for name in params.names() {
            if !binder.used.contains(name) && !named.contains(name) {
                let message = format!("parameter {name:?} is used nowhere in the spec");
                report.add(Finding::warning("ptl/unused-parameter", message));
            }
        }
        Ok(Call { spec: self, params, pack, unpack, report, tokens: None })
    }
}

impl Call<'_> {
    /// Returns what becomes of the model's output, without stubs: also where a parameter decides what
    /// it is.
    #[must_use]
    pub const fn unpack_spec(&self) -> &Unpack {
        &self.unpack
    }

    /// Returns what is worth mending about the call: parameters that are not used, numbers that are
    /// texts.
    #[must_use]
    pub fn lint(&self) -> Report {
        self.report.clone()
    }
}
