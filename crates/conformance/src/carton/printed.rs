//! Samples as clients print them.

use carton_format::{
    Description, Example, Named, OptionValue, Platform, Reference, SelfTest, TensorSpec, Value,
    dtype,
};
use serde_json::{Map, Value as Json, json};
use tensor_core::symbolic::{Dim, SymbolicShape};
use test_support::hex;

use crate::carton::Sample;

impl Sample {
    /// Returns `carton.toml` as a parser of TOML has to find it.
    #[must_use]
    pub fn document(&self) -> Json {
        let mut document = self.described(&|reference| reference.to_string().into());
        document["spec_version"] = Description::SPEC_VERSION.into();
        document
    }

    /// Returns what the reference implementation has to find: versions and platforms in their normal
    /// form, and in place of references what they lead to.
    ///
    /// # Panics
    ///
    /// Where a reference leads nowhere.
    #[must_use]
    pub fn resolved(&self) -> Json {
        let misc = self.below("misc/");
        let mut resolved = self.described(&|reference| match reference {
            Reference::Tensor(name) => {
                let found = self.tensors.iter().find(|(other, _)| other == name);
                value(&found.expect("a tensor of the sample").1)
            }
            Reference::Misc(path) => json!({ "misc": hex(misc[path]) }),
        });
        let requirement = self.description.runner.required_framework_version.requirement();
        resolved["runner"]["required_framework_version"] = requirement.to_string().into();
        if let Some(platforms) = &self.description.required_platforms {
            resolved["required_platforms"] = platforms.iter().map(Platform::normalized).collect();
        }
        resolved
    }

    /// Returns the options as clients print them; null where there is no table.
    #[must_use]
    pub fn options(&self) -> Json {
        let options = self.description.runner.options.as_ref();
        let table = |options: &Named<OptionValue>| options.iter().map(option).collect::<Json>();
        options.map_or(Json::Null, table)
    }

    fn described(&self, resolve: &dyn Fn(&Reference) -> Json) -> Json {
        let description = &self.description;
        let specs = |specs: &Vec<TensorSpec>| specs.iter().map(spec).collect();
        let tests =
            |tests: &Vec<SelfTest>| tests.iter().map(|test| self_test(test, resolve)).collect();
        let examples = |list: &Vec<Example>| list.iter().map(|one| example(one, resolve)).collect();
        let platforms = description.required_platforms.as_ref();
        table([
            ("model_name", text(description.model_name.as_ref())),
            ("short_description", text(description.short_description.as_ref())),
            ("model_description", text(description.model_description.as_ref())),
            ("license", text(description.license.as_ref())),
            ("repository", text(description.repository.as_ref())),
            ("homepage", text(description.homepage.as_ref())),
            (
                "required_platforms",
                platforms.map(|list| list.iter().map(Platform::as_str).collect()),
            ),
            ("input", description.inputs.as_ref().map(specs)),
            ("output", description.outputs.as_ref().map(specs)),
            ("self_test", description.self_tests.as_ref().map(tests)),
            ("example", description.examples.as_ref().map(examples)),
            ("runner", Some(self.runner())),
        ])
    }

    fn runner(&self) -> Json {
        let runner = &self.description.runner;
        let requirement = runner.required_framework_version.as_str();
        table([
            ("runner_name", text(Some(&runner.name))),
            ("required_framework_version", Some(requirement.into())),
            ("runner_compat_version", runner.compat_version.map(Json::from)),
            ("opts", Some(self.options()).filter(|options| !options.is_null())),
        ])
    }
}

/// Returns a tensor that is not nested.
fn value(value: &Value) -> Json {
    let (dtype, shape) = (value.dtype().expect("not nested"), value.shape().expect("not nested"));
    let data = match value {
        Value::Numeric(tensor) => hex(tensor.bytes()).into(),
        Value::Strings { strings, .. } => json!(strings),
        Value::Nested(_) => Json::Null,
    };
    json!({ "dtype": dtype::name(dtype), "shape": shape.dims(), "data": data })
}

fn spec(spec: &TensorSpec) -> Json {
    let dim = |dim: &Dim| match dim {
        Dim::Fixed(elements) => Json::from(*elements),
        Dim::Symbol(symbol) => symbol.as_str().into(),
        Dim::Any => "*".into(),
    };
    let shape = match &spec.shape {
        SymbolicShape::Any => "*".into(),
        SymbolicShape::Symbol(symbol) => symbol.as_str().into(),
        SymbolicShape::Dims(dims) => dims.iter().map(dim).collect(),
    };
    table([
        ("name", text(Some(&spec.name))),
        ("dtype", dtype::name(spec.dtype).map(Json::from)),
        ("shape", Some(shape)),
        ("description", text(spec.description.as_ref())),
        ("internal_name", text(spec.internal_name.as_ref())),
    ])
}

fn self_test(test: &SelfTest, resolve: &dyn Fn(&Reference) -> Json) -> Json {
    let tensors = |tensors: &Named<String>| -> Json {
        let resolved = |name: &String| resolve(&Reference::Tensor(name.clone()));
        tensors.iter().map(|(key, name)| (key, resolved(name))).collect()
    };
    table([
        ("name", text(test.name.as_ref())),
        ("description", text(test.description.as_ref())),
        ("inputs", Some(tensors(&test.inputs))),
        ("expected_out", test.expected_out.as_ref().map(tensors)),
    ])
}

fn example(example: &Example, resolve: &dyn Fn(&Reference) -> Json) -> Json {
    let values = |values: &Named<Reference>| -> Json {
        values.iter().map(|(key, reference)| (key, resolve(reference))).collect()
    };
    table([
        ("name", text(example.name.as_ref())),
        ("description", text(example.description.as_ref())),
        ("inputs", example.inputs.as_ref().map(values)),
        ("sample_out", example.sample_out.as_ref().map(values)),
    ])
}

fn option<'a>((name, value): (&'a str, &OptionValue)) -> (&'a str, Json) {
    let value = match value {
        OptionValue::Integer(integer) => (*integer).into(),
        OptionValue::Float(float) if float.is_nan() => json!({ "float": "nan" }),
        OptionValue::Float(float) => json!({ "float": hex(&float.to_be_bytes()) }),
        OptionValue::String(text) => text.as_str().into(),
        OptionValue::Boolean(boolean) => (*boolean).into(),
    };
    (name, value)
}

fn text(text: Option<&String>) -> Option<Json> {
    text.map(|text| text.as_str().into())
}

/// Makes a table of what is there.
fn table<const N: usize>(pairs: [(&str, Option<Json>); N]) -> Json {
    let pairs = pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Json::Object(pairs.collect::<Map<_, _>>())
}
