//! What a call is made with.

#[cfg(feature = "image")]
use crate::image::Image;
use crate::{Error, Fault, Json, Result, call::named::Named};

/// The parameters of a call, by name.
///
/// # Examples
///
/// ```
/// use ptl_spec::{Json, Params};
///
/// let params = Params::new().with("scale", 0.5).with("rois", Json::from(vec![0, 0, 20, 20]));
/// assert_eq!(params.names().collect::<Vec<_>>(), ["scale", "rois"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Params(Named<Param>);

/// A parameter of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Param {
    /// A JSON value, for stubs.
    Json(Json),
    /// A picture.
    #[cfg(feature = "image")]
    Image(Image),
    /// Samples of sound, one channel of 16 bits.
    Audio(Vec<i16>),
}

impl Params {
    /// Starts without any.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes every member of a JSON object as a parameter.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] where it is not an object.
    pub fn from_json(json: Json) -> Result<Self> {
        match json {
            Json::Object(members) => {
                let mut params = Self::new();
                for (name, value) in members {
                    params.insert(name, value);
                }
                Ok(params)
            }
            other => {
                let (found, expected) = (other.described(), "an object");
                Err(Error::spec("call", Fault::Value { found, expected }))
            }
        }
    }

    /// Adds a parameter, in the place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, param: impl Into<Param>) -> Self {
        self.insert(name, param);
        self
    }

    /// Like [`with`](Self::with), but in place.
    pub fn insert(&mut self, name: impl Into<String>, param: impl Into<Param>) {
        self.0.put(name.into(), param.into());
    }

    /// Returns the parameter of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Param> {
        self.entry(name).map(|(_, param)| param)
    }

    /// Returns a parameter with its name.
    pub(crate) fn entry(&self, name: &str) -> Option<(&str, &Param)> {
        self.0.get(name)
    }

    /// Returns all names, in the order in which they were added.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(name, _)| name)
    }
}

impl Param {
    /// Describes the parameter for a message.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Json(json) => json.described(),
            #[cfg(feature = "image")]
            Self::Image(_) => "a picture".to_owned(),
            Self::Audio(_) => "sound".to_owned(),
        }
    }
}

impl<T: Into<Json>> From<T> for Param {
    fn from(value: T) -> Self {
        Self::Json(value.into())
    }
}

#[cfg(feature = "image")]
impl From<Image> for Param {
    fn from(image: Image) -> Self {
        Self::Image(image)
    }
}

impl From<Vec<i16>> for Param {
    fn from(samples: Vec<i16>) -> Self {
        Self::Audio(samples)
    }
}
