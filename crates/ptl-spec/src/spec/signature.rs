//! What a call takes and gives, read off a spec without running it.

use std::{collections::HashMap, fmt};

use crate::{
    BoundingBoxes, ElementType, Error, Fault, ImageStep, Items, Json, Pack, PackImage, PackTensor,
    Slot, Spec, TensorStep, Tokenizer, Unpack, spec::emit::object, spec::path::Path,
    spec::slot::stub_of,
};

/// Kinds with the names that are printed.
macro_rules! named {
    ($(#[$meta:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        pub enum $kind {
            $($(#[$doc])* $variant,)*
        }

        impl $kind {
            /// Returns the name that is printed, such as `number_list`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// The parameters and results of a spec, each in the order in which the spec names them first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Signature {
    /// What a call takes.
    pub parameters: Vec<Parameter>,
    /// What it gives.
    pub results: Vec<Output>,
    /// Places where a parameter decides which parameters or results there are besides.
    pub deferred: Vec<String>,
}

impl Spec {
    /// Returns which parameters a call takes and which results it gives, without running anything.
    #[must_use]
    pub fn signature(&self) -> Signature {
        Signature::with_conflicts(self.pack(), self.unpack()).0
    }
}

/// A parameter of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name, without the dollar sign.
    pub name: String,
    /// What it has to be.
    pub kind: ParamKind,
    /// Where the spec uses it, such as `pack.items[0].image`; of a spec with very many places, the
    /// first.
    pub places: Vec<String>,
}

named! {
    /// What a parameter has to be.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    ParamKind {
        /// A picture.
        Image = "image",
        /// Samples of sound.
        Audio = "audio",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A text.
        String = "string",
        /// A text that names a colour.
        Colour = "colour",
        /// Numbers.
        NumberList = "number_list",
        /// Whole numbers.
        IntegerList = "integer_list",
        /// Texts.
        StringList = "string_list",
        /// A JSON value, whatever the spec makes of it.
        Any = "any",
    }
}

impl ParamKind {
    /// Returns the kind that is both; `None` where nothing is.
    fn meet(self, other: Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Self::Any, kind) | (kind, Self::Any) => Some(kind),
            (Self::Integer, Self::Number) | (Self::Number, Self::Integer) => Some(Self::Integer),
            (Self::String, Self::Colour) | (Self::Colour, Self::String) => Some(Self::Colour),
            (Self::IntegerList, Self::NumberList) | (Self::NumberList, Self::IntegerList) => {
                Some(Self::IntegerList)
            }
            _ => None,
        }
    }

    fn schema(self) -> Json {
        let simple = |name: &str| object([("type", name.into())]);
        let list = |name: &str| object([("type", "array".into()), ("items", simple(name))]);
        match self {
            // How a picture or a sound is given is the host's affair.
            Self::Image | Self::Audio | Self::Any => object([]),
            Self::Integer => simple("integer"),
            Self::Number => simple("number"),
            Self::Boolean => simple("boolean"),
            Self::String | Self::Colour => simple("string"),
            Self::NumberList => list("number"),
            Self::IntegerList => list("integer"),
            Self::StringList => list("string"),
        }
    }
}

/// A result of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Its name, which a parameter may give.
    pub key: Slot<String>,
    /// What it is.
    pub kind: ResultKind,
    /// Where the spec says so.
    pub place: String,
}

named! {
    /// What a result is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    ResultKind {
        /// The elements of a tensor of floats.
        NumberList = "number_list",
        /// The elements of a tensor of integers.
        IntegerList = "integer_list",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A text.
        String = "string",
        /// A text, or nothing.
        Answer = "string?",
        /// A list of classes with bounds.
        Boxes = "boxes",
        /// A picture.
        Image = "image",
    }
}

impl Signature {
    /// Returns the signature, and a fault for each parameter that is used as what excludes what it
    /// is used as elsewhere.
    pub(crate) fn with_conflicts(pack: &Pack, unpack: &Unpack) -> (Self, Vec<Error>) {
        let signature = Self { parameters: vec![], results: vec![], deferred: vec![] };
        let mut walk =
            Walk { signature, conflicts: Vec::new(), indices: HashMap::new(), places_left: PLACES };
        walk.pack(pack, &mut Path::root("pack"));
        walk.unpack(unpack, &mut Path::root("unpack"));
        (walk.signature, walk.conflicts)
    }

    /// Returns the parameter of a name; `None` where a call takes none of it.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Returns a JSON Schema (draft 2020-12) of the object that holds a call's parameters.
    #[must_use]
    pub fn json_schema(&self) -> Json {
        let described = |parameter: &Parameter| {
            let Json::Object(mut members) = parameter.kind.schema() else { return Json::Null };
            members.insert(0, ("description".to_owned(), parameter.kind.name().into()));
            Json::Object(members)
        };
        let properties = self.parameters.iter().map(|p| (p.name.clone(), described(p))).collect();
        let names: Vec<&str> = self.parameters.iter().map(|p| p.name.as_str()).collect();
        object([
            ("$schema", "https://json-schema.org/draft/2020-12/schema".into()),
            ("type", "object".into()),
            ("properties", Json::Object(properties)),
            ("required", names.into()),
        ])
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (index, Parameter { name, kind, .. }) in self.parameters.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name}: {kind}")?;
        }
        f.write_str(") -> (")?;
        for (index, Output { key, kind, .. }) in self.results.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{key}: {kind}")?;
        }
        f.write_str(")")
    }
}

struct Walk {
    signature: Signature,
    conflicts: Vec<Error>,
    /// Where parameters are among all, by name.
    indices: HashMap<String, usize>,
    /// How many bytes the names of further places may have.
    places_left: usize,
}

impl Walk {
    /// Names a place; nothing where too many were named.
    fn place(&mut self, path: &Path) -> Option<String> {
        let place = path.to_string();
        self.places_left = self.places_left.checked_sub(place.len())?;
        Some(place)
    }

    fn pack(&mut self, pack: &Pack, path: &mut Path) {
        match pack {
            Pack::Tuple(items) => self.items(items, path, Self::pack),
            Pack::Bool(value) => self.slot(value, "value", ParamKind::Boolean, path),
            Pack::Long(value) => self.slot(value, "value", ParamKind::Integer, path),
            Pack::Double(value) => self.slot(value, "value", ParamKind::Number, path),
            Pack::Tensor(tensor) => self.tensor(tensor, path),
            Pack::Image(picture) => self.image(picture, path),
            Pack::String(string) => {
                self.slot(&string.string, "string", ParamKind::String, path);
                if let Tokenizer::Bert { length } = &string.tokenizer {
                    self.slot(length, "model_input_length", ParamKind::Integer, path);
                }
            }
            Pack::Audio { audio } => self.named(audio, "audio", ParamKind::Audio, path),
            Pack::Deferred(json) => self.deferred(json, path),
        }
    }

    fn tensor(&mut self, PackTensor { sizes, items }: &PackTensor, path: &mut Path) {
        self.list(sizes, "sizes", (ParamKind::IntegerList, ParamKind::Integer), path);
        match items {
            Items::Float(items) => {
                self.list(items, "items", (ParamKind::NumberList, ParamKind::Number), path);
            }
            Items::Long(items) => {
                self.list(items, "items", (ParamKind::IntegerList, ParamKind::Integer), path);
            }
        }
    }

    fn image(&mut self, picture: &PackImage, path: &mut Path) {
        self.named(&picture.image, "image", ParamKind::Image, path);
        path.member("transforms", |path| {
            for (index, step) in picture.steps.iter().enumerate() {
                path.item(index, |path| self.image_step(step, path));
            }
            path.item(picture.steps.len(), |path| self.tensor_step(&picture.tensor, path));
        });
    }

    fn image_step(&mut self, step: &ImageStep, path: &mut Path) {
        let (width, height) = match step {
            ImageStep::CenterCrop { width, height } => (width.as_ref(), height.as_ref()),
            ImageStep::Scale { width, height } => (Some(width), Some(height)),
        };
        for (field, side) in [("width", width), ("height", height)] {
            if let Some(side) = side {
                self.slot(side, field, ParamKind::Integer, path);
            }
        }
    }

    fn tensor_step(&mut self, step: &TensorStep, path: &mut Path) {
        match step {
            TensorStep::RgbNorm { mean, std } => {
                for (field, values) in [("mean", mean), ("std", std)] {
                    match values {
                        Slot::Stub(key) => self.stub(key, field, ParamKind::NumberList, path),
                        Slot::Value(values) => path.member(field, |path| {
                            self.each(values, ParamKind::Number, path);
                        }),
                    }
                }
            }
            TensorStep::GreyscaleNorm { background, foreground, mean, std } => {
                self.slot(background, "colorBackground", ParamKind::Colour, path);
                self.slot(foreground, "colorForeground", ParamKind::Colour, path);
                self.slot(mean, "mean", ParamKind::Number, path);
                self.slot(std, "std", ParamKind::Number, path);
            }
        }
    }

    fn unpack(&mut self, unpack: &Unpack, path: &mut Path) {
        let elements = |dtype: &ElementType| match dtype {
            ElementType::Float => ResultKind::NumberList,
            ElementType::Long => ResultKind::IntegerList,
        };
        match unpack {
            Unpack::Tuple(items) | Unpack::List(items) => self.items(items, path, Self::unpack),
            Unpack::Dict(items) => self.items(items, path, |walk, (key, unpack), path| {
                walk.slot(key, "dict_key", ParamKind::String, path);
                walk.unpack(unpack, path);
            }),
            Unpack::Tensor { key, dtype } => self.result(key, "key", elements(dtype), path),
            Unpack::Long { key } => self.result(key, "key", ResultKind::Integer, path),
            Unpack::Float { key } => self.result(key, "key", ResultKind::Number, path),
            Unpack::Bool { key } => self.result(key, "key", ResultKind::Boolean, path),
            Unpack::String { key } | Unpack::TensorToString { key } => {
                self.result(key, "key", ResultKind::String, path);
            }
            Unpack::BertAnswer { key } => self.result(key, "key", ResultKind::Answer, path),
            Unpack::Argmax { key, value_key, .. } => {
                self.result(key, "key", ResultKind::Integer, path);
                if let Some(key) = value_key {
                    self.result(key, "valueKey", ResultKind::Number, path);
                }
            }
            Unpack::BoundingBoxes(BoundingBoxes { key, threshold, classes }) => {
                self.result(key, "key", ResultKind::Boxes, path);
                self.slot(threshold, "probabilityThreshold", ParamKind::Number, path);
                self.list(classes, "classes", (ParamKind::StringList, ParamKind::String), path);
            }
            Unpack::TensorToImage { key } => self.result(key, "key", ResultKind::Image, path),
            Unpack::Deferred(json) => self.deferred(json, path),
        }
    }

    fn items<T>(
        &mut self,
        items: &[T],
        path: &mut Path,
        mut visit: impl FnMut(&mut Self, &T, &mut Path),
    ) {
        path.member("items", |path| {
            for (index, item) in items.iter().enumerate() {
                path.item(index, |path| visit(self, item, path));
            }
        });
    }

    fn result(&mut self, key: &Slot<String>, field: &str, kind: ResultKind, path: &mut Path) {
        self.slot(key, field, ParamKind::String, path);
        let (key, place) = (key.clone(), self.place(path).unwrap_or_default());
        self.signature.results.push(Output { key, kind, place });
    }

    /// Visits a field that holds the name of a parameter.
    fn named(&mut self, name: &Slot<String>, field: &str, kind: ParamKind, path: &mut Path) {
        path.member(field, |path| match name {
            Slot::Value(name) => self.parameter(name, kind, path),
            Slot::Stub(key) => {
                self.parameter(key, ParamKind::String, path);
                let place = self.place(path);
                self.signature.deferred.extend(place);
            }
        });
    }

    fn list<T>(
        &mut self,
        list: &Slot<Vec<Slot<T>>>,
        field: &str,
        (whole, each): (ParamKind, ParamKind),
        path: &mut Path,
    ) {
        match list {
            Slot::Stub(key) => self.stub(key, field, whole, path),
            Slot::Value(items) => path.member(field, |path| self.each(items, each, path)),
        }
    }

    fn each<T>(&mut self, items: &[Slot<T>], kind: ParamKind, path: &mut Path) {
        for (index, item) in items.iter().enumerate() {
            if let Slot::Stub(key) = item {
                path.item(index, |path| self.parameter(key, kind, path));
            }
        }
    }

    fn slot<T>(&mut self, slot: &Slot<T>, field: &str, kind: ParamKind, path: &mut Path) {
        if let Slot::Stub(key) = slot {
            self.stub(key, field, kind, path);
        }
    }

    fn stub(&mut self, key: &str, field: &str, kind: ParamKind, path: &mut Path) {
        path.member(field, |path| self.parameter(key, kind, path));
    }

    fn deferred(&mut self, json: &Json, path: &mut Path) {
        let place = self.place(path);
        self.signature.deferred.extend(place);
        self.stubs_in(json, path);
    }

    /// Notes the stubs of an object that is not known before the call.
    fn stubs_in(&mut self, json: &Json, path: &mut Path) {
        if let Some(key) = stub_of(json) {
            return self.parameter(key, ParamKind::Any, path);
        }
        match json {
            Json::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.item(index, |path| self.stubs_in(item, path));
                }
            }
            Json::Object(members) => {
                for (key, value) in members {
                    path.member(key, |path| self.stubs_in(value, path));
                }
            }
            _ => {}
        }
    }

    fn parameter(&mut self, name: &str, kind: ParamKind, path: &Path) {
        let place = self.place(path);
        let known = self.indices.get(name).copied();
        let Some(parameter) = known.and_then(|index| self.signature.parameters.get_mut(index))
        else {
            self.indices.insert(name.to_owned(), self.signature.parameters.len());
            let places = place.into_iter().collect();
            let parameter = Parameter { name: name.to_owned(), kind, places };
            return self.signature.parameters.push(parameter);
        };
        match parameter.kind.meet(kind) {
            Some(kind) => parameter.kind = kind,
            None if self.conflicts.len() < CONFLICTS => {
                let fault = Fault::ParamKinds {
                    name: name.to_owned(),
                    found: kind.name(),
                    other: parameter.places.first().cloned().unwrap_or_default(),
                    expected: parameter.kind.name(),
                };
                self.conflicts.push(Error::spec(path, fault));
            }
            None => {}
        }
        parameter.places.extend(place);
    }
}

/// Bytes of all places that a signature names. A spec may be nested deep, and name a stub everywhere.
const PLACES: usize = 16 << 20;
/// How many parameters of two kinds are reported.
const CONFLICTS: usize = 1000;
