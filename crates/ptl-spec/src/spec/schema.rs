//! A JSON Schema of specs, for editors and other tools.

use crate::{Json, spec::emit::object};

/// Returns a JSON Schema (draft 2020-12) of `live.spec.json`.
///
/// It describes what the dialect of the format's text reads, stubs included. What no schema can say
/// is left to [`Spec::lint`](crate::Spec::lint): sizes against items, vocabularies against
/// tokenizers, parameters of two kinds.
#[must_use]
pub fn json_schema() -> Json {
    object([
        ("$schema", "https://json-schema.org/draft/2020-12/schema".into()),
        ("title", "PyTorch Live model specification".into()),
        ("type", "object".into()),
        ("required", vec!["pack", "unpack"].into()),
        (
            "properties",
            object([
                ("pack", reference("pack")),
                ("unpack", reference("unpack")),
                ("vocabulary_bert", described("string", "one token a line, ids from 0")),
                (
                    "vocabulary_gpt2",
                    object([
                        ("type", "object".into()),
                        ("description", "from tokens to ids".into()),
                        ("additionalProperties", reference("integer")),
                    ]),
                ),
            ]),
        ),
        ("$defs", definitions()),
    ])
}

fn definitions() -> Json {
    let plain = [
        ("stub", matching("^\\$.", "takes the value of the parameter of that name")),
        ("string", described("string", "a text, or a stub")),
        ("boolean", either([typed("boolean"), reference("stub")])),
        ("number", either([typed("number"), decimal(), reference("stub")])),
        ("integer", either([typed("integer"), whole(), reference("stub")])),
        ("size", either([bounded(0, i64::MAX), whole(), reference("stub")])),
        ("side", either([bounded(1, 16_384), whole(), reference("stub")])),
        ("dtype", one_of(["float", "long"])),
        ("colour", described("string", "#RRGGBB, #AARRGGBB, a colour word of Android, or a stub")),
        ("channels", either([triple(), reference("stub")])),
    ];
    let packs = either(pack_types());
    let unpacks = either(unpack_types());
    let rest = [
        ("pack", packs),
        ("unpack", unpacks),
        ("image_to_image", either(image_steps())),
        ("image_to_tensor", either(tensor_steps())),
    ];
    object(plain.into_iter().chain(rest))
}

fn pack_types() -> Vec<Json> {
    let scalar = |name, value| kind(name, &[("value", reference(value))], &[]);
    vec![
        kind("tuple", &[("items", array(reference("pack")))], &[]),
        scalar("scalar_bool", "boolean"),
        scalar("scalar_long", "integer"),
        scalar("scalar_double", "number"),
        tensor("float", "number"),
        tensor("long", "integer"),
        kind(
            "tensor_from_image",
            &[("image", reference("string")), ("transforms", transforms())],
            &[],
        ),
        kind(
            "tensor_from_string",
            &[
                ("tokenizer", constant("bert")),
                ("string", reference("string")),
                ("model_input_length", reference("size")),
            ],
            &[],
        ),
        kind(
            "tensor_from_string",
            &[("tokenizer", constant("gpt2")), ("string", reference("string"))],
            &[],
        ),
        kind("tensor_from_audio", &[("audio", reference("string"))], &[]),
        deferred(),
        reference("stub"),
    ]
}

fn tensor(dtype: &str, item: &str) -> Json {
    kind(
        "tensor",
        &[
            ("dtype", constant(dtype)),
            ("sizes", either([array(reference("size")), reference("stub")])),
            ("items", either([array(reference(item)), reference("stub")])),
        ],
        &[],
    )
}

/// An object whose type the call gives.
fn deferred() -> Json {
    object([
        ("type", "object".into()),
        ("required", vec!["type"].into()),
        ("properties", object([("type", reference("stub"))])),
    ])
}

/// Any number of transforms of the picture, then one that makes the tensor. What the last one is
/// can only be said by what there must be one of.
fn transforms() -> Json {
    object([
        ("type", "array".into()),
        ("items", either([reference("image_to_image"), reference("image_to_tensor")])),
        ("contains", reference("image_to_tensor")),
        ("minContains", 1.into()),
        ("maxContains", 1.into()),
    ])
}

fn image_steps() -> Vec<Json> {
    let sides = [("width", reference("side")), ("height", reference("side"))];
    // Nothing is what no value matches: neither side may be there.
    let no_sides = [("width", Json::Bool(false)), ("height", Json::Bool(false))];
    let name = [("name", constant("center_crop"))];
    vec![
        step("image_to_image", "center_crop", &sides),
        kind("image_to_image", &name, &no_sides),
        step("image_to_image", "scale", &sides),
    ]
}

fn tensor_steps() -> Vec<Json> {
    vec![
        step(
            "image_to_tensor",
            "rgb_norm",
            &[("mean", reference("channels")), ("std", reference("channels"))],
        ),
        step(
            "image_to_tensor",
            "greyscale_norm",
            &[
                ("colorBackground", reference("colour")),
                ("colorForeground", reference("colour")),
                ("mean", reference("number")),
                ("std", reference("number")),
            ],
        ),
    ]
}

fn unpack_types() -> Vec<Json> {
    let key = ("key", reference("string"));
    let keyed = |name| kind(name, &[("key", reference("string"))], &[]);
    let item = object([
        ("allOf", Json::Array(vec![reference("unpack")])),
        ("required", vec!["dict_key"].into()),
        ("properties", object([("dict_key", reference("string"))])),
    ]);
    vec![
        kind("tuple", &[("items", array(reference("unpack")))], &[]),
        kind("list", &[("items", array(reference("unpack")))], &[]),
        kind("dict_string_key", &[("items", array(item))], &[]),
        kind("tensor", &[key.clone(), ("dtype", reference("dtype"))], &[]),
        keyed("scalar_long"),
        keyed("scalar_float"),
        keyed("scalar_bool"),
        keyed("string"),
        kind("tensor_to_string", &[key.clone(), ("decoder", constant("gpt2"))], &[]),
        keyed("bert_decode_qa_answer"),
        kind(
            "argmax",
            &[key.clone(), ("dtype", reference("dtype"))],
            &[("valueKey", reference("string"))],
        ),
        kind(
            "bounding_boxes",
            &[
                key,
                ("probabilityThreshold", reference("number")),
                ("classes", either([array(reference("string")), reference("stub")])),
            ],
            &[],
        ),
        keyed("tensor_to_image"),
        deferred(),
        reference("stub"),
    ]
}

fn step(kind_name: &str, name: &str, fields: &[(&str, Json)]) -> Json {
    let fields: Vec<_> =
        [("name", constant(name))].into_iter().chain(fields.iter().cloned()).collect();
    kind(kind_name, &fields, &[])
}

/// Describes an object of a type: the fields that it must have, and those that it may have.
fn kind(name: &str, required: &[(&str, Json)], optional: &[(&str, Json)]) -> Json {
    let names: Vec<&str> =
        ["type"].into_iter().chain(required.iter().map(|(field, _)| *field)).collect();
    let fields = required.iter().chain(optional).cloned();
    object([
        ("type", "object".into()),
        ("required", names.into()),
        ("properties", object([("type", constant(name))].into_iter().chain(fields))),
    ])
}

fn reference(name: &str) -> Json {
    object([("$ref", format!("#/$defs/{name}").into())])
}

fn typed(name: &str) -> Json {
    object([("type", name.into())])
}

fn described(name: &str, description: &str) -> Json {
    object([("type", name.into()), ("description", description.into())])
}

fn matching(pattern: &str, description: &str) -> Json {
    object([
        ("type", "string".into()),
        ("pattern", pattern.into()),
        ("description", description.into()),
    ])
}

fn decimal() -> Json {
    matching("^-?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?$", "a number as text, which draws a warning")
}

fn whole() -> Json {
    matching("^-?[0-9]+$", "a whole number as text, which draws a warning")
}

fn bounded(least: i64, most: i64) -> Json {
    object([("type", "integer".into()), ("minimum", least.into()), ("maximum", most.into())])
}

fn triple() -> Json {
    object([
        ("type", "array".into()),
        ("items", reference("number")),
        ("minItems", 3.into()),
        ("maxItems", 3.into()),
    ])
}

fn array(items: Json) -> Json {
    object([("type", "array".into()), ("items", items)])
}

fn constant(value: &str) -> Json {
    object([("const", value.into())])
}

fn one_of<const N: usize>(values: [&str; N]) -> Json {
    object([("enum", values.to_vec().into())])
}

fn either(choices: impl Into<Vec<Json>>) -> Json {
    object([("anyOf", Json::Array(choices.into()))])
}
