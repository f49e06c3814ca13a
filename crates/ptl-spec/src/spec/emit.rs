//! From typed values to JSON trees, in the order in which the format's text names the fields.

use crate::{
    BoundingBoxes, Colour, ImageStep, Items, Json, Pack, Slot, TensorStep, Tokenizer, Unpack,
};

impl Pack {
    /// Returns the object as it stands in a spec.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let scalar = |name: &str, value: Json| typed(name, [("value", value)]);
        match self {
            Self::Tuple(items) => typed("tuple", [("items", array(items, Self::to_json))]),
            Self::Bool(value) => scalar("scalar_bool", slot(value, |value| (*value).into())),
            Self::Long(value) => scalar("scalar_long", slot(value, |value| (*value).into())),
            Self::Double(value) => scalar("scalar_double", slot(value, |value| (*value).into())),
            Self::Tensor(tensor) => typed(
                "tensor",
                [
                    ("dtype", tensor.items.element_type().name().into()),
                    (
                        "sizes",
                        slot(&tensor.sizes, |sizes| array(sizes, |size| slot(size, unsigned))),
                    ),
                    ("items", items(&tensor.items)),
                ],
            ),
            Self::Image(picture) => {
                let steps = picture.steps.iter().map(image_step);
                let transforms = steps.chain([tensor_step(&picture.tensor)]).collect();
                let image = named(&picture.image);
                typed(
                    "tensor_from_image",
                    [("image", image), ("transforms", Json::Array(transforms))],
                )
            }
            Self::String(string) => {
                let (name, length) = match &string.tokenizer {
                    Tokenizer::Bert { length } => ("bert", Some(length)),
                    Tokenizer::Gpt2 => ("gpt2", None),
                };
                let fields = [("tokenizer", name.into()), ("string", named(&string.string))];
                let length =
                    length.map(|length| ("model_input_length", slot(length, |&n| n.into())));
                typed("tensor_from_string", fields.into_iter().chain(length))
            }
            Self::Audio { audio } => typed("tensor_from_audio", [("audio", named(audio))]),
            Self::Deferred(json) => json.clone(),
        }
    }
}

fn items(items: &Items) -> Json {
    match items {
        Items::Float(items) => slot(items, |items| array(items, |item| slot(item, |&n| n.into()))),
        Items::Long(items) => slot(items, |items| array(items, |item| slot(item, |&n| n.into()))),
    }
}

fn image_step(step: &ImageStep) -> Json {
    let side = |&side: &i64| side.into();
    match step {
        ImageStep::CenterCrop { width, height } => {
            let width = width.as_ref().map(|width| ("width", slot(width, side)));
            let height = height.as_ref().map(|height| ("height", slot(height, side)));
            transform("image_to_image", "center_crop", width.into_iter().chain(height))
        }
        ImageStep::Scale { width, height } => transform(
            "image_to_image",
            "scale",
            [("width", slot(width, side)), ("height", slot(height, side))],
        ),
    }
}

fn tensor_step(step: &TensorStep) -> Json {
    let number = |&number: &f64| number.into();
    match step {
        TensorStep::RgbNorm { mean, std } => {
            let channels = |values: &[Slot<f64>; 3]| array(values, |value| slot(value, number));
            let fields = [("mean", slot(mean, channels)), ("std", slot(std, channels))];
            transform("image_to_tensor", "rgb_norm", fields)
        }
        TensorStep::GreyscaleNorm { background, foreground, mean, std } => {
            let colour = |colour: &Colour| colour.to_string().into();
            let fields = [
                ("colorBackground", slot(background, colour)),
                ("colorForeground", slot(foreground, colour)),
                ("mean", slot(mean, number)),
                ("std", slot(std, number)),
            ];
            transform("image_to_tensor", "greyscale_norm", fields)
        }
    }
}

impl Unpack {
    /// Returns the object as it stands in a spec.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let keyed = |name: &str, key: &Slot<String>| typed(name, [("key", named(key))]);
        let with = |mut object: Json, field: &str, value: Json| {
            if let Json::Object(members) = &mut object {
                members.push((field.to_owned(), value));
            }
            object
        };
        match self {
            Self::Tuple(items) => typed("tuple", [("items", array(items, Self::to_json))]),
            Self::List(items) => typed("list", [("items", array(items, Self::to_json))]),
            Self::Dict(items) => typed("dict_string_key", [("items", array(items, dict_item))]),
            Self::Tensor { key, dtype } => with(keyed("tensor", key), "dtype", dtype.name().into()),
            Self::Long { key } => keyed("scalar_long", key),
            Self::Float { key } => keyed("scalar_float", key),
            Self::Bool { key } => keyed("scalar_bool", key),
            Self::String { key } => keyed("string", key),
            Self::TensorToString { key } => {
                with(keyed("tensor_to_string", key), "decoder", "gpt2".into())
            }
            Self::BertAnswer { key } => keyed("bert_decode_qa_answer", key),
            Self::Argmax { key, dtype, value_key } => {
                let object = with(keyed("argmax", key), "dtype", dtype.name().into());
                match value_key {
                    Some(value_key) => with(object, "valueKey", named(value_key)),
                    None => object,
                }
            }
            Self::BoundingBoxes(BoundingBoxes { key, threshold, classes }) => {
                let threshold = slot(threshold, |&threshold| threshold.into());
                let object = with(keyed("bounding_boxes", key), "probabilityThreshold", threshold);
                let classes = slot(classes, |classes| array(classes, named));
                with(object, "classes", classes)
            }
            Self::TensorToImage { key } => keyed("tensor_to_image", key),
            Self::Deferred(json) => json.clone(),
        }
    }
}

fn dict_item((key, unpack): &(Slot<String>, Unpack)) -> Json {
    let mut members = vec![("dict_key".to_owned(), named(key))];
    if let Json::Object(fields) = unpack.to_json() {
        // A deferred object has its own key already.
        members.extend(fields.into_iter().filter(|(field, _)| field != "dict_key"));
    }
    Json::Object(members)
}

fn transform<'f>(
    kind: &str,
    name: &str,
    fields: impl IntoIterator<Item = (&'f str, Json)>,
) -> Json {
    typed(kind, [("name", name.into())].into_iter().chain(fields))
}

fn typed<'f>(kind: &str, fields: impl IntoIterator<Item = (&'f str, Json)>) -> Json {
    object([("type", kind.into())].into_iter().chain(fields))
}

pub(crate) fn object<'f>(members: impl IntoIterator<Item = (&'f str, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn array<T>(items: &[T], to_json: impl Fn(&T) -> Json) -> Json {
    Json::Array(items.iter().map(to_json).collect())
}

fn slot<T>(slot: &Slot<T>, to_json: impl FnOnce(&T) -> Json) -> Json {
    match slot {
        Slot::Value(value) => to_json(value),
        Slot::Stub(key) => format!("${key}").into(),
    }
}

fn named(name: &Slot<String>) -> Json {
    slot(name, |name| name.as_str().into())
}

fn unsigned(&size: &u64) -> Json {
    i64::try_from(size).map_or(Json::Float(size as f64), Json::Int)
}
