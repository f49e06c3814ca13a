//! Self tests: a model is run on the inputs of a carton, and what comes out is compared with what
//! the carton expects. Format text: "`carton.toml`", `[[self_test]]`.
//!
//! How a model is run is the caller's: [`Runner`] takes named tensors and returns named tensors.

use std::collections::HashSet;

use tensor_core::{
    DType, Shape,
    compare::{CompareError, Comparison, Tolerance, compare},
    symbolic::{BindError, Bindings},
};

use crate::{Description, Named, Reader, Result, SelfTest, TensorSpec, Value, tensor::dtype::Name};

/// Runs a model: what a caller implements.
pub trait Runner {
    /// Why a run failed.
    type Error: Into<Box<dyn std::error::Error + Send + Sync>>;

    /// Runs the model once.
    ///
    /// # Errors
    ///
    /// Whatever stands in the way; the test is reported as failed with it.
    fn run(&mut self, inputs: Named<Value>) -> Result<Named<Value>, Self::Error>;
}

/// Runs all self tests of a carton, in their order.
///
/// The inputs of a test are checked first: their types, and their shapes by unifying symbols over
/// all inputs; then the outputs, with the same symbols. A test without expected outputs passes where
/// the run does and its outputs are as declared.
///
/// # Errors
///
/// Where the documents or tensors of the carton cannot be read. What a run or a comparison finds is
/// in the outcomes.
pub fn run<R: Runner>(
    reader: &Reader,
    runner: &mut R,
    tolerance: Tolerance,
) -> Result<Vec<Outcome>> {
    let description = reader.description()?;
    let tests = description.self_tests.iter().flatten().enumerate();
    tests
        .map(|(number, test)| {
            let inputs = load(reader, &test.inputs)?;
            let expected = test.expected_out.as_ref();
            let expected = expected.map(|expected| load(reader, expected)).transpose()?;
            let result = run_one(description, runner, inputs, expected.as_ref(), tolerance);
            Ok(Outcome::new(number, test, result))
        })
        .collect()
}

/// Checks named tensors against the inputs that a description declares, and binds their symbols.
///
/// Nothing is checked where it declares none.
///
/// # Errors
///
/// [`CallError`] with the first disagreement; it names both places where two shapes disagree.
pub fn check_inputs(
    description: &Description,
    inputs: &Named<Value>,
) -> Result<Bindings, CallError> {
    let mut bindings = Bindings::default();
    check(Side::Input, description.inputs.as_deref(), inputs, &mut bindings)?;
    Ok(bindings)
}

/// Checks named tensors against the outputs that a description declares, with the symbols that the
/// inputs have bound.
///
/// # Errors
///
/// As for [`check_inputs`].
pub fn check_outputs(
    description: &Description,
    outputs: &Named<Value>,
    bindings: &mut Bindings,
) -> Result<(), CallError> {
    check(Side::Output, description.outputs.as_deref(), outputs, bindings)
}

/// What became of a self test.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Which one it is, counted from 0.
    pub number: usize,
    /// Its name.
    pub name: Option<String>,
    /// What was compared, in the order of the expected outputs; empty where it did not come so far.
    pub tensors: Vec<TensorOutcome>,
    /// Why there is nothing to compare.
    pub failure: Option<Failure>,
}

impl Outcome {
    /// Tells whether the model did as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failure.is_none() && self.tensors.iter().all(TensorOutcome::passed)
    }

    fn new(number: usize, test: &SelfTest, result: Result<Vec<TensorOutcome>, Failure>) -> Self {
        let (tensors, failure) = match result {
            Ok(tensors) => (tensors, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        Self { number, name: test.name.clone(), tensors, failure }
    }
}

/// Why a self test did not come to a comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The inputs or outputs are not as declared.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The run failed.
    #[error("run failed")]
    Run(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What became of one expected output.
#[derive(Debug)]
#[non_exhaustive]
pub struct TensorOutcome {
    /// Its name.
    pub name: String,
    /// What the comparison found.
    pub result: TensorResult,
}

impl TensorOutcome {
    /// Tells whether it is as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        match &self.result {
            TensorResult::Numeric { comparison, .. } => comparison.is_close(),
            TensorResult::Strings { mismatches, .. } => *mismatches == 0,
            TensorResult::Nested(results) => results.iter().all(Self::passed),
            TensorResult::Missing | TensorResult::Kind { .. } | TensorResult::Compare(_) => false,
        }
    }
}

/// How an output compares with what is expected.
#[derive(Debug)]
#[non_exhaustive]
pub enum TensorResult {
    /// Both are numbers of one shape.
    Numeric {
        /// How many elements differ, by how much at most, and where.
        comparison: Comparison,
        /// The shape, by which indices of the comparison become coordinates.
        shape: Shape,
    },
    /// Both are texts of one shape.
    Strings {
        /// How many differ.
        mismatches: u64,
        /// The first that does, counted in row-major order.
        first_mismatch: Option<u64>,
        /// The shape.
        shape: Shape,
    },
    /// Both are lists of as many tensors; each is named by its place in the list.
    Nested(Vec<TensorOutcome>),
    /// The model returned no such output.
    Missing,
    /// One is of another kind or shape than the other.
    Kind {
        /// What the model returned.
        found: String,
        /// What the carton has.
        expected: String,
    },
    /// They cannot be compared.
    Compare(CompareError),
}

/// Why named tensors are not what a description declares.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// A declared tensor was not given.
    #[error("{side} {name:?} is missing")]
    Missing {
        /// Input or output.
        side: Side,
        /// Its name.
        name: String,
    },
    /// A tensor is given that is not declared.
    #[error("{side} {name:?} is not declared")]
    Unknown {
        /// Input or output.
        side: Side,
        /// Its name.
        name: String,
    },
    /// A tensor is of another type.
    #[error("{side} {name:?} is of {found}, expected {}", Name(*.expected))]
    DType {
        /// Input or output.
        side: Side,
        /// Its name.
        name: String,
        /// What it is of.
        found: String,
        /// What is declared.
        expected: DType,
    },
    /// A shape is not as declared, or disagrees with another of the same call.
    #[error(transparent)]
    Shape(#[from] BindError),
}

/// On which side of a call a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Given to the model.
    Input,
    /// Returned by the model.
    Output,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

fn load(reader: &Reader, references: &Named<String>) -> Result<Named<Value>> {
    let mut values = Named::default();
    for (name, tensor) in references.iter() {
        let Some(tensor) = reader.tensor(tensor)? else {
            return Err(crate::Error::UnknownTensor { name: tensor.clone() });
        };
        values.insert(name, tensor.value()?);
    }
    Ok(values)
}

fn run_one<R: Runner>(
    description: &Description,
    runner: &mut R,
    inputs: Named<Value>,
    expected: Option<&Named<Value>>,
    tolerance: Tolerance,
) -> Result<Vec<TensorOutcome>, Failure> {
    let mut bindings = check_inputs(description, &inputs)?;
    let outputs = runner.run(inputs).map_err(|error| Failure::Run(error.into()))?;
    check_outputs(description, &outputs, &mut bindings)?;
    let expected = expected.into_iter().flat_map(Named::iter);
    Ok(expected
        .map(|(name, expected)| TensorOutcome {
            name: name.to_owned(),
            result: match outputs.get(name) {
                Some(output) => compare_values(output, expected, tolerance),
                None => TensorResult::Missing,
            },
        })
        .collect())
}

fn check(
    side: Side,
    specs: Option<&[TensorSpec]>,
    values: &Named<Value>,
    bindings: &mut Bindings,
) -> Result<(), CallError> {
    let Some(specs) = specs.filter(|specs| !specs.is_empty()) else { return Ok(()) };
    let declared: HashSet<&str> = specs.iter().map(|spec| &*spec.name).collect();
    if let Some((name, _)) = values.iter().find(|(name, _)| !declared.contains(name)) {
        return Err(CallError::Unknown { side, name: name.to_owned() });
    }
    for spec in specs {
        let name = || spec.name.clone();
        let Some(value) = values.get(&spec.name) else {
            return Err(CallError::Missing { side, name: name() });
        };
        check_dtype(side, spec, value)?;
        if let Some(shape) = value.shape() {
            bindings.bind(format!("{side} {:?}", spec.name), &spec.shape, shape)?;
        }
    }
    Ok(())
}

/// All tensors of a nested one are of the declared type.
fn check_dtype(side: Side, spec: &TensorSpec, value: &Value) -> Result<(), CallError> {
    if let Value::Nested(inner) = value {
        return inner.iter().try_for_each(|value| check_dtype(side, spec, value));
    }
    if value.dtype() == Some(spec.dtype) {
        return Ok(());
    }
    let (name, found, expected) = (spec.name.clone(), dtype_text(value), spec.dtype);
    Err(CallError::DType { side, name, found, expected })
}

fn dtype_text(value: &Value) -> String {
    match (value.dtype(), value) {
        (Some(dtype), _) => Name(dtype).to_string(),
        (None, Value::Numeric(tensor)) => tensor.dtype().to_string(),
        (None, _) => "nested".to_owned(),
    }
}

fn compare_values(found: &Value, expected: &Value, tolerance: Tolerance) -> TensorResult {
    match (found, expected) {
        (Value::Numeric(found), Value::Numeric(expected)) => {
            match compare(&found.view(), &expected.view(), tolerance) {
                Ok(comparison) => {
                    TensorResult::Numeric { comparison, shape: expected.shape().clone() }
                }
                Err(error) => TensorResult::Compare(error),
            }
        }
        (
            Value::Strings { shape: found_shape, strings: found },
            Value::Strings { shape, strings: expected },
        ) if found_shape == shape && found.len() == expected.len() => {
            let pairs = (0_u64..).zip(found.iter().zip(expected));
            let mut differing = pairs.filter(|(_, (found, expected))| found != expected);
            let first_mismatch = differing.next().map(|(index, _)| index);
            let others = differing.count() as u64;
            let mismatches = others.saturating_add(u64::from(first_mismatch.is_some()));
            TensorResult::Strings { mismatches, first_mismatch, shape: shape.clone() }
        }
        (Value::Nested(found), Value::Nested(expected)) if found.len() == expected.len() => {
            let pairs = found.iter().zip(expected).enumerate();
            let results = pairs.map(|(place, (found, expected))| TensorOutcome {
                name: place.to_string(),
                result: compare_values(found, expected, tolerance),
            });
            TensorResult::Nested(results.collect())
        }
        _ => TensorResult::Kind { found: describe(found), expected: describe(expected) },
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Numeric(tensor) => tensor.info().to_string(),
        Value::Strings { shape, strings } => format!("{} strings of shape {shape}", strings.len()),
        Value::Nested(inner) => format!("a nested tensor of {}", inner.len()),
    }
}

#[cfg(test)]
mod tests {
    use tensor_core::{
        TensorBuf,
        symbolic::{Dim, SymbolicShape},
    };

    use super::*;
    use crate::Runner as RunnerTable;

    fn value(shape: impl Into<Shape>, elements: &[f32]) -> Value {
        Value::Numeric(TensorBuf::from_slice(shape, elements).unwrap())
    }

    fn named<const N: usize>(values: [(&str, Value); N]) -> Named<Value> {
        let mut named = Named::default();
        for (name, value) in values {
            named.insert(name, value);
        }
        named
    }

    fn description() -> Description {
        let shape = || SymbolicShape::Dims(vec![Dim::Symbol("batch".to_owned()), Dim::Fixed(2)]);
        let mut description = Description::new(RunnerTable::new("noop", "=1".parse().unwrap()));
        let spec = |name| TensorSpec::new(name, DType::F32, shape());
        description.inputs = Some(vec![spec("x"), spec("y")]);
        description.outputs = Some(vec![spec("out")]);
        description
    }

    struct Sum;

    impl Runner for Sum {
        type Error = String;

        fn run(&mut self, inputs: Named<Value>) -> Result<Named<Value>, String> {
            let elements = |name: &str| match inputs.get(name) {
                Some(Value::Numeric(tensor)) => tensor.view().to_vec::<f32>().unwrap(),
                other => panic!("{other:?}"),
            };
            let sum: Vec<f32> =
                elements("x").iter().zip(elements("y")).map(|(x, y)| x + y).collect();
            if sum.iter().any(|element| element.is_nan()) {
                return Err("not a number".to_owned());
            }
            Ok(named([("out", value([1, 2], &sum))]))
        }
    }

    fn outcome(x: Value, y: Value, out: Value) -> Result<Vec<TensorOutcome>, Failure> {
        let (inputs, expected) = (named([("x", x), ("y", y)]), named([("out", out)]));
        run_one(&description(), &mut Sum, inputs, Some(&expected), Tolerance::default())
    }

    #[test]
    fn equal_outputs_pass() {
        let tensors = outcome(
            value([1, 2], &[1.0, 2.0]),
            value([1, 2], &[3.0, 4.0]),
            value([1, 2], &[4.0, 6.0]),
        );
        assert!(tensors.unwrap().iter().all(TensorOutcome::passed));
    }

    #[test]
    fn the_worst_difference_is_named() {
        let tensors = outcome(
            value([1, 2], &[1.0, 2.0]),
            value([1, 2], &[3.0, 4.0]),
            value([1, 2], &[4.0, 7.0]),
        );
        let tensors = tensors.unwrap();
        let [TensorOutcome { result: TensorResult::Numeric { comparison, shape }, .. }] =
            &tensors[..]
        else {
            panic!("{tensors:?}");
        };
        let worst = comparison.max_abs.unwrap();
        assert_eq!((worst.value, worst.index), (1.0, 1));
        assert_eq!(Comparison::coordinates(worst.index, shape), [0, 1]);
        assert!(!tensors[0].passed());
    }

    #[track_caller]
    fn fails(result: Result<Vec<TensorOutcome>, Failure>, message: &str) {
        assert_eq!(tensor_core::Chain(&result.unwrap_err()).to_string(), message);
    }

    #[test]
    fn inputs_are_checked_first() {
        let pair = || value([1, 2], &[0.0, 0.0]);
        fails(
            outcome(pair(), value([2, 2], &[0.0; 4]), pair()),
            r#"input "y" dimension 0: symbol "batch" is 2, but input "x" dimension 0 bound it to 1"#,
        );
        let whole = Value::Numeric(TensorBuf::from_slice([1, 2], &[1_i64, 2]).unwrap());
        fails(outcome(pair(), whole, pair()), r#"input "y" is of int64, expected float32"#);
        fails(outcome(pair(), value([1, 2], &[f32::NAN; 2]), pair()), "run failed: not a number");
        let (x, both) = (named([("x", pair())]), description());
        let error = check_inputs(&both, &x).unwrap_err();
        assert_eq!(error.to_string(), r#"input "y" is missing"#);
        let three = named([("x", pair()), ("y", pair()), ("z", pair())]);
        let error = check_inputs(&both, &three).unwrap_err();
        assert_eq!(error.to_string(), r#"input "z" is not declared"#);
    }

    #[test]
    fn outputs_share_the_symbols_of_inputs() {
        let twice = || value([2, 2], &[0.0; 4]);
        // The runner returns one row whatever it is given.
        let (x, y) = (twice(), twice());
        let inputs = named([("x", x), ("y", y)]);
        let mut bindings = check_inputs(&description(), &inputs).unwrap();
        let outputs = named([("out", value([1, 2], &[0.0; 2]))]);
        let error = check_outputs(&description(), &outputs, &mut bindings).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"output "out" dimension 0: symbol "batch" is 1, but input "x" dimension 0 bound it to 2"#
        );
    }

    #[test]
    fn strings_and_lists() {
        let strings = |texts: &[&str]| Value::Strings {
            shape: [texts.len() as u64].into(),
            strings: texts.iter().map(|&text| text.to_owned()).collect(),
        };
        let tolerance = Tolerance::default();
        let passes = |found: &Value, expected: &Value| {
            let result = compare_values(found, expected, tolerance);
            TensorOutcome { name: String::new(), result }.passed()
        };
        assert!(passes(&strings(&["a", "b"]), &strings(&["a", "b"])));
        assert!(!passes(&strings(&["a", "b"]), &strings(&["a", "c"])));
        assert!(!passes(&strings(&["a"]), &strings(&["a", "b"])));
        let list = |values: Vec<Value>| Value::Nested(values);
        assert!(passes(&list(vec![strings(&["a"])]), &list(vec![strings(&["a"])])));
        assert!(!passes(&list(vec![]), &list(vec![strings(&["a"])])));
        assert!(!passes(&strings(&["a"]), &value([1], &[0.0])));
    }
}
