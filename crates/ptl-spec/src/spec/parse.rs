//! From JSON trees to typed values: every fault is collected, with its place.

use tensor_core::{Finding, Report, Shape};

use crate::{
    BoundingBoxes, Colour, Dialect, ElementType, Error, Fault, ImageStep, Items, Json, Pack,
    PackImage, PackString, PackTensor, Slot, TensorStep, Tokenizer, Unpack, spec::number::Read,
    spec::path::Path, spec::slot::stub_of,
};

/// Reads `pack` and `unpack`, of a spec as it stands or of one whose stubs were replaced.
#[derive(Debug)]
pub(crate) struct Parser {
    pub(crate) dialect: Dialect,
    pub(crate) stubs: Stubs,
    /// Which vocabularies the root object has.
    pub(crate) vocabularies: Vocabularies,
    pub(crate) faults: Vec<Error>,
    pub(crate) lints: Report,
}

/// Whether texts that look like stubs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stubs {
    /// They stand for parameters.
    Kept,
    /// They were replaced; what looks like one is a parameter's text.
    Replaced,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vocabularies {
    pub(crate) bert: bool,
    pub(crate) gpt2: bool,
}

/// Why an object has no typed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A fault was noted.
    Faulty,
    /// What it is depends on a parameter.
    Deferred,
}

type Parsed<T> = Result<T, Stop>;

impl Parser {
    pub(crate) fn new(dialect: Dialect, stubs: Stubs, vocabularies: Vocabularies) -> Self {
        Self { dialect, stubs, vocabularies, faults: Vec::new(), lints: Report::default() }
    }

    /// Reads an object of `pack`.
    pub(crate) fn pack(&mut self, node: &Json, path: &mut Path) -> Parsed<Pack> {
        match self.pack_object(node, path) {
            Err(Stop::Deferred) => Ok(Pack::Deferred(node.clone())),
            parsed => parsed,
        }
    }

    fn pack_object(&mut self, node: &Json, path: &mut Path) -> Parsed<Pack> {
        self.object(node, path)?;
        Ok(match self.word(node, "type", path)? {
            "tuple" => Pack::Tuple(self.items(node, path, Self::pack)?),
            "scalar_bool" => Pack::Bool(self.field(node, "value", path, Self::bool)?),
            "scalar_long" => Pack::Long(self.field(node, "value", path, Self::long)?),
            "scalar_double" => Pack::Double(self.field(node, "value", path, Self::double)?),
            "tensor" => Pack::Tensor(self.tensor(node, path)?),
            "tensor_from_image" => Pack::Image(self.image(node, path)?),
            "tensor_from_string" => Pack::String(self.string(node, path)?),
            "tensor_from_audio" => {
                Pack::Audio { audio: self.field(node, "audio", path, Self::text)? }
            }
            found => return Err(self.unknown(found, PACK_TYPES, "type", path)),
        })
    }

    fn tensor(&mut self, node: &Json, path: &mut Path) -> Parsed<PackTensor> {
        let dtype = self.dtype(node, path);
        let sizes = self.list(node, "sizes", path, Self::size);
        let items = match dtype? {
            ElementType::Float => Items::Float(self.list(node, "items", path, Self::float)?),
            ElementType::Long => Items::Long(self.list(node, "items", path, Self::long)?),
        };
        let tensor = PackTensor { sizes: sizes?, items };
        self.check_count(&tensor, path)?;
        Ok(tensor)
    }

    /// Compares sizes and items, where both stand there.
    fn check_count(&mut self, tensor: &PackTensor, path: &Path) -> Parsed<()> {
        let Slot::Value(sizes) = &tensor.sizes else { return Ok(()) };
        let sizes: Option<Shape> = sizes.iter().map(|size| size.value().copied()).collect();
        let found = match &tensor.items {
            Items::Float(items) => items.value().map(Vec::len),
            Items::Long(items) => items.value().map(Vec::len),
        };
        let (Some(sizes), Some(found)) = (sizes, found) else { return Ok(()) };
        let found = found as u64;
        match sizes.elements() {
            Ok(expected) if expected == found => Ok(()),
            Ok(expected) => Err(self.fault(path, Fault::ItemCount { found, sizes, expected })),
            Err(error) => Err(self.fault(path, error.into())),
        }
    }

    fn image(&mut self, node: &Json, path: &mut Path) -> Parsed<PackImage> {
        let image = self.field(node, "image", path, Self::text);
        let transforms = self.required(node, "transforms", path)?;
        let (steps, tensor) =
            path.member("transforms", |path| self.transforms(transforms, path))?;
        Ok(PackImage { image: image?, steps, tensor })
    }

    fn transforms(&mut self, node: &Json, path: &mut Path) -> Parsed<(Vec<ImageStep>, TensorStep)> {
        let transforms = self.array(node, path, Self::transform)?;
        let chain = |found| Fault::Chain { found };
        let (mut steps, mut tensor) = (Vec::new(), None);
        for transform in transforms {
            match (transform, &tensor) {
                (Transform::Unknown, _) => {}
                (Transform::Image(step), None) => steps.push(step),
                (Transform::Tensor(step), None) => tensor = Some(step),
                (Transform::Image(_), Some(_)) => {
                    return Err(self.fault(path, chain("an image_to_image behind image_to_tensor")));
                }
                (Transform::Tensor(_), Some(_)) => {
                    return Err(self.fault(path, chain("two image_to_tensor")));
                }
            }
        }
        match tensor {
            Some(tensor) => Ok((steps, tensor)),
            None => Err(self.fault(path, chain("no image_to_tensor"))),
        }
    }

    fn transform(&mut self, node: &Json, path: &mut Path) -> Parsed<Transform> {
        self.object(node, path)?;
        match self.word(node, "type", path)? {
            "image_to_image" => self.image_step(node, path).map(Transform::Image),
            "image_to_tensor" => self.tensor_step(node, path).map(Transform::Tensor),
            // Phones go on with the next one.
            _ if self.dialect == Dialect::Android => Ok(Transform::Unknown),
            found => {
                Err(self.unknown(found, "\"image_to_image\" or \"image_to_tensor\"", "type", path))
            }
        }
    }

    fn image_step(&mut self, node: &Json, path: &mut Path) -> Parsed<ImageStep> {
        match self.word(node, "name", path)? {
            "center_crop" => {
                let width = self.optional(node, "width", path, Self::side);
                let height = self.optional(node, "height", path, Self::side);
                let alone = |field, other| Fault::Alone { field, other };
                match (width?, height?) {
                    (None, Some(_)) if self.dialect == Dialect::Documented => {
                        Err(self.fault(path, alone("height", "width")))
                    }
                    (Some(_), None) if self.dialect == Dialect::Documented => {
                        Err(self.fault(path, alone("width", "height")))
                    }
                    (width, height) => Ok(ImageStep::CenterCrop { width, height }),
                }
            }
            "scale" => {
                let width = self.field(node, "width", path, Self::side);
                let height = self.field(node, "height", path, Self::side);
                Ok(ImageStep::Scale { width: width?, height: height? })
            }
            found => Err(self.unknown(found, "\"center_crop\" or \"scale\"", "name", path)),
        }
    }

    fn tensor_step(&mut self, node: &Json, path: &mut Path) -> Parsed<TensorStep> {
        match self.word(node, "name", path)? {
            "rgb_norm" => {
                let mean = self.channels(node, "mean", path, Self::double);
                let std = self.channels(node, "std", path, Self::divisor);
                Ok(TensorStep::RgbNorm { mean: mean?, std: std? })
            }
            "greyscale_norm" => self.greyscale(node, path),
            found => Err(self.unknown(found, "\"rgb_norm\" or \"greyscale_norm\"", "name", path)),
        }
    }

    fn greyscale(&mut self, node: &Json, path: &mut Path) -> Parsed<TensorStep> {
        let background = self.field(node, "colorBackground", path, Self::colour);
        let foreground = self.field(node, "colorForeground", path, Self::colour);
        let mean = self.field(node, "mean", path, Self::double);
        let std = self.field(node, "std", path, Self::divisor);
        let (background, foreground) = (background?, foreground?);
        if let (Some(&colour), Dialect::Documented) = (background.value(), self.dialect)
            && foreground.value() == Some(&colour)
        {
            return Err(self.fault(path, Fault::SameColours { colour }));
        }
        Ok(TensorStep::GreyscaleNorm { background, foreground, mean: mean?, std: std? })
    }

    fn string(&mut self, node: &Json, path: &mut Path) -> Parsed<PackString> {
        let tokenizer = match self.word(node, "tokenizer", path)? {
            "bert" => {
                self.need("vocabulary_bert", self.vocabularies.bert, path);
                let length = self.field(node, "model_input_length", path, Self::length)?;
                Tokenizer::Bert { length }
            }
            "gpt2" => {
                self.need("vocabulary_gpt2", self.vocabularies.gpt2, path);
                Tokenizer::Gpt2
            }
            found => return Err(self.unknown(found, "\"bert\" or \"gpt2\"", "tokenizer", path)),
        };
        Ok(PackString { string: self.field(node, "string", path, Self::text)?, tokenizer })
    }

    /// Reads an object of `unpack`.
    pub(crate) fn unpack(&mut self, node: &Json, path: &mut Path) -> Parsed<Unpack> {
        match self.unpack_object(node, path) {
            Err(Stop::Deferred) => Ok(Unpack::Deferred(node.clone())),
            parsed => parsed,
        }
    }

    fn unpack_object(&mut self, node: &Json, path: &mut Path) -> Parsed<Unpack> {
        self.object(node, path)?;
        let kind = self.word(node, "type", path)?;
        match kind {
            "tuple" => return Ok(Unpack::Tuple(self.items(node, path, Self::unpack)?)),
            "list" => return Ok(Unpack::List(self.items(node, path, Self::unpack)?)),
            "dict_string_key" => {
                return Ok(Unpack::Dict(self.items(node, path, Self::dict_item)?));
            }
            _ if !UNPACK_TYPES.contains(&format!("{kind:?}")) => {
                return Err(self.unknown(kind, UNPACK_TYPES, "type", path));
            }
            _ => {}
        }
        let key = self.field(node, "key", path, Self::text);
        Ok(match kind {
            "tensor" => Unpack::Tensor { dtype: self.dtype(node, path)?, key: key? },
            "scalar_long" => Unpack::Long { key: key? },
            "scalar_float" => Unpack::Float { key: key? },
            "scalar_bool" => Unpack::Bool { key: key? },
            "tensor_to_string" => {
                match self.word(node, "decoder", path)? {
                    "gpt2" => self.need("vocabulary_gpt2", self.vocabularies.gpt2, path),
                    found => return Err(self.unknown(found, "\"gpt2\"", "decoder", path)),
                }
                Unpack::TensorToString { key: key? }
            }
            "bert_decode_qa_answer" => {
                self.need("vocabulary_bert", self.vocabularies.bert, path);
                Unpack::BertAnswer { key: key? }
            }
            "argmax" => {
                let dtype = self.dtype(node, path)?;
                let value_key = self.optional(node, "valueKey", path, Self::text)?;
                Unpack::Argmax { key: key?, dtype, value_key }
            }
            "bounding_boxes" => Unpack::BoundingBoxes(BoundingBoxes {
                threshold: self.field(node, "probabilityThreshold", path, Self::double)?,
                classes: self.list(node, "classes", path, Self::text)?,
                key: key?,
            }),
            "tensor_to_image" => Unpack::TensorToImage { key: key? },
            _ => Unpack::String { key: key? },
        })
    }

    fn dict_item(&mut self, node: &Json, path: &mut Path) -> Parsed<(Slot<String>, Unpack)> {
        self.object(node, path)?;
        let key = self.field(node, "dict_key", path, Self::text);
        let unpack = self.unpack(node, path);
        Ok((key?, unpack?))
    }

    fn need(&mut self, key: &'static str, is_there: bool, path: &Path) {
        if !is_there {
            self.fault(path, Fault::MissingVocabulary { key });
        }
    }

    fn dtype(&mut self, node: &Json, path: &mut Path) -> Parsed<ElementType> {
        match self.word(node, "dtype", path)? {
            "float" => Ok(ElementType::Float),
            "long" => Ok(ElementType::Long),
            found => Err(self.unknown(found, "\"float\" or \"long\"", "dtype", path)),
        }
    }

    /// Reads the objects of the field `items`.
    fn items<T>(
        &mut self,
        node: &Json,
        path: &mut Path,
        read: impl FnMut(&mut Self, &Json, &mut Path) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let items = self.required(node, "items", path)?;
        path.member("items", |path| self.array(items, path, read))
    }

    /// Reads every item of an array, also behind a faulty one.
    fn array<T>(
        &mut self,
        node: &Json,
        path: &mut Path,
        mut read: impl FnMut(&mut Self, &Json, &mut Path) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let Json::Array(items) = node else {
            if self.is_stub(node) {
                return Err(Stop::Deferred);
            }
            return Err(self.wrong(node, "an array", path));
        };
        let (mut parsed, mut stop) = (Vec::with_capacity(items.len()), None);
        for (index, item) in items.iter().enumerate() {
            match path.item(index, |path| read(self, item, path)) {
                Ok(item) => parsed.push(item),
                Err(Stop::Faulty) => stop = Some(Stop::Faulty),
                Err(Stop::Deferred) => stop = stop.or(Some(Stop::Deferred)),
            }
        }
        stop.map_or(Ok(parsed), Err)
    }

    fn channels(
        &mut self,
        node: &Json,
        field: &'static str,
        path: &mut Path,
        read: impl Fn(&mut Self, &Json, &mut Path) -> Parsed<f64>,
    ) -> Parsed<Slot<[Slot<f64>; 3]>> {
        self.field(node, field, path, |parser, node, path| {
            let values = parser.slots(node, path, &read)?;
            let expected = "an array of 3, one for each channel";
            values.try_into().map_err(|_| parser.wrong(node, expected, path))
        })
    }

    fn list<T>(
        &mut self,
        node: &Json,
        field: &'static str,
        path: &mut Path,
        read: impl Fn(&mut Self, &Json, &mut Path) -> Parsed<T>,
    ) -> Parsed<Slot<Vec<Slot<T>>>> {
        self.field(node, field, path, |parser, node, path| parser.slots(node, path, &read))
    }

    fn slots<T>(
        &mut self,
        node: &Json,
        path: &mut Path,
        read: &impl Fn(&mut Self, &Json, &mut Path) -> Parsed<T>,
    ) -> Parsed<Vec<Slot<T>>> {
        self.array(node, path, |parser, value, path| parser.slot(value, path, read))
    }

    fn field<T>(
        &mut self,
        node: &Json,
        field: &'static str,
        path: &mut Path,
        read: impl FnMut(&mut Self, &Json, &mut Path) -> Parsed<T>,
    ) -> Parsed<Slot<T>> {
        let value = self.required(node, field, path)?;
        path.member(field, |path| self.slot(value, path, read))
    }

    fn optional<T>(
        &mut self,
        node: &Json,
        field: &'static str,
        path: &mut Path,
        read: impl FnMut(&mut Self, &Json, &mut Path) -> Parsed<T>,
    ) -> Parsed<Option<Slot<T>>> {
        let Some(value) = node.get(field) else { return Ok(None) };
        path.member(field, |path| self.slot(value, path, read)).map(Some)
    }

    fn slot<T>(
        &mut self,
        value: &Json,
        path: &mut Path,
        mut read: impl FnMut(&mut Self, &Json, &mut Path) -> Parsed<T>,
    ) -> Parsed<Slot<T>> {
        match stub_of(value) {
            Some(key) if self.stubs == Stubs::Kept => Ok(Slot::stub(key)),
            _ => read(self, value, path).map(Slot::Value),
        }
    }

    fn is_stub(&self, value: &Json) -> bool {
        self.stubs == Stubs::Kept && stub_of(value).is_some()
    }

    fn object(&mut self, node: &Json, path: &Path) -> Parsed<()> {
        match node {
            Json::Object(_) => Ok(()),
            stub if self.is_stub(stub) => Err(Stop::Deferred),
            other => Err(self.wrong(other, "an object", path)),
        }
    }

    fn required<'j>(
        &mut self,
        node: &'j Json,
        field: &'static str,
        path: &Path,
    ) -> Parsed<&'j Json> {
        if let Some(value) = node.get(field) {
            return Ok(value);
        }
        match node {
            // On phones a parameter may give the name of the field.
            Json::Object(members)
                if self.dialect == Dialect::Android
                    && self.stubs == Stubs::Kept
                    && members.iter().any(|(key, _)| key.starts_with('$')) =>
            {
                Err(Stop::Deferred)
            }
            _ => Err(self.fault(path, Fault::Missing { field })),
        }
    }

    /// Reads a field that decides what the object is.
    fn word<'j>(
        &mut self,
        node: &'j Json,
        field: &'static str,
        path: &mut Path,
    ) -> Parsed<&'j str> {
        match self.required(node, field, path)? {
            stub if self.is_stub(stub) => Err(Stop::Deferred),
            Json::String(word) => Ok(word),
            other => Err(path.member(field, |path| self.wrong(other, "a text", path))),
        }
    }

    fn bool(&mut self, value: &Json, path: &mut Path) -> Parsed<bool> {
        let read = self.dialect.bool(value);
        self.read(read, value, "true or false", path)
    }

    fn long(&mut self, value: &Json, path: &mut Path) -> Parsed<i64> {
        let read = self.dialect.long(value);
        self.read(read, value, "a whole number of 64 bits", path)
    }

    fn double(&mut self, value: &Json, path: &mut Path) -> Parsed<f64> {
        let read = self.dialect.double(value);
        self.read(read, value, "a number", path)
    }

    /// Reads a number that is to become an f32.
    #[expect(clippy::cast_possible_truncation, reason = "what is lost is looked at")]
    fn float(&mut self, value: &Json, path: &mut Path) -> Parsed<f64> {
        let number = self.double(value, path)?;
        if self.dialect == Dialect::Documented && number.is_finite() && !(number as f32).is_finite()
        {
            let (found, target) = (value.described(), "a 32-bit float");
            return Err(self.fault(path, Fault::Range { found, target }));
        }
        Ok(number)
    }

    fn divisor(&mut self, value: &Json, path: &mut Path) -> Parsed<f64> {
        let number = self.double(value, path)?;
        if self.dialect == Dialect::Documented && number == 0.0 {
            return Err(self.wrong(value, "a number other than 0", path));
        }
        Ok(number)
    }

    fn size(&mut self, value: &Json, path: &mut Path) -> Parsed<u64> {
        let read = self.dialect.long(value);
        let number = self.read(read, value, "a whole number from 0 on", path)?;
        u64::try_from(number).map_err(|_| self.wrong(value, "a whole number from 0 on", path))
    }

    /// Reads the width or height of a picture.
    fn side(&mut self, value: &Json, path: &mut Path) -> Parsed<i64> {
        let number = self.long(value, path)?;
        if self.dialect == Dialect::Documented && !(1..=MAX_SIDE).contains(&number) {
            return Err(self.wrong(value, "1 to 16384 pixels", path));
        }
        Ok(number)
    }

    fn length(&mut self, value: &Json, path: &mut Path) -> Parsed<i64> {
        let number = self.long(value, path)?;
        if !(0..=MAX_TOKENS).contains(&number) {
            return Err(self.wrong(value, "0 to 1048576 tokens", path));
        }
        Ok(number)
    }

    fn text(&mut self, value: &Json, path: &mut Path) -> Parsed<String> {
        self.dialect.text(value).ok_or_else(|| self.wrong(value, "a text", path))
    }

    fn colour(&mut self, value: &Json, path: &mut Path) -> Parsed<Colour> {
        let colour = value.as_str().and_then(|text| text.parse().ok());
        let expected = "\"#RRGGBB\", \"#AARRGGBB\" or a colour word of Android";
        colour.ok_or_else(|| self.wrong(value, expected, path))
    }

    fn read<T>(
        &mut self,
        read: Read<T>,
        value: &Json,
        expected: &'static str,
        path: &Path,
    ) -> Parsed<T> {
        let Some((number, was_text)) = read else {
            return Err(self.wrong(value, expected, path));
        };
        if was_text {
            let message = format!("{path} is the text {}, read as a number", value.described());
            let finding = Finding::warning("ptl/spec-number-as-text", message);
            self.lints.add(finding.path(path.to_string()));
        }
        Ok(number)
    }

    fn unknown(
        &mut self,
        found: &str,
        expected: &'static str,
        field: &'static str,
        path: &mut Path,
    ) -> Stop {
        path.member(field, |path| self.wrong(&found.into(), expected, path))
    }

    fn wrong(&mut self, found: &Json, expected: &'static str, path: &Path) -> Stop {
        self.fault(path, Fault::Value { found: found.described(), expected })
    }

    fn fault(&mut self, path: &Path, fault: Fault) -> Stop {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Error::spec(path, fault));
        }
        Stop::Faulty
    }
}

/// A transform of any type.
enum Transform {
    Image(ImageStep),
    Tensor(TensorStep),
    /// One that phones skip.
    Unknown,
}

const PACK_TYPES: &str = "\"tuple\", \"scalar_bool\", \"scalar_long\", \"scalar_double\", \
    \"tensor\", \"tensor_from_image\", \"tensor_from_string\" or \"tensor_from_audio\"";
const UNPACK_TYPES: &str = "\"tuple\", \"list\", \"dict_string_key\", \"tensor\", \"scalar_long\", \
    \"scalar_float\", \"scalar_bool\", \"string\", \"tensor_to_string\", \
    \"bert_decode_qa_answer\", \"argmax\", \"bounding_boxes\" or \"tensor_to_image\"";
/// Pixels of the longest side of a picture.
pub(crate) const MAX_SIDE: i64 = 1 << 14;
/// Token ids that one text is made to have.
const MAX_TOKENS: i64 = 1 << 20;
/// A spec of nothing but faults must not become a report of gigabytes.
const MAX_FAULTS: usize = Report::PER_RULE;
