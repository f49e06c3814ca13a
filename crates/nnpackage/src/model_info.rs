//! Information about models in `metadata/*.json`. Format text: "Packaging Structure".

use tensor_core::Limits;

use crate::{
    Error, File, Reader, Result,
    json::{Document, Member, Value},
    layout::is_model_info,
};

/// What a package says about one of its models, for whom nothing else does, such as a binary of a
/// backend. The format leaves the form open; this is that of its example, where a document has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The kind of the model, such as `dlib`.
    pub kind: Option<String>,
    /// The inputs, in order.
    pub inputs: Vec<TensorDescription>,
    /// The outputs, in order.
    pub outputs: Vec<TensorDescription>,
    /// The names of everything else that is said.
    pub others: Vec<String>,
}

/// What a package says about an input or output of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorDescription {
    /// Dimensions in elements, outermost first; -1 where one is unknown.
    pub shape: Vec<i64>,
    /// The element type, such as `float`.
    pub element_type: Option<String>,
}

impl ModelInfo {
    /// Reads a document. What is in another form than the example's is left out.
    ///
    /// # Errors
    ///
    /// [`Error::Json`] where it is not JSON; [`Error::Document`] where it is not an object.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let document = Document::parse(WHAT, bytes, limits)?;
        let Value::Object(members) = &document.root.value else {
            let (what, at, path) = (WHAT, document.root.at, "root".to_owned());
            let (found, expected) = (document.root.value.describe().into_owned(), "an object");
            return Err(Error::Document { what, at, path, found, expected });
        };
        let mut info = Self::default();
        for member in members {
            match (member.key.as_str(), &member.value.value) {
                ("type", Value::Text(kind)) => info.kind = Some(kind.clone()),
                ("inputs", Value::Array(_)) => info.inputs = tensors(member),
                ("outputs", Value::Array(_)) => info.outputs = tensors(member),
                (other, _) => info.others.push(other.to_owned()),
            }
        }
        Ok(info)
    }
}

impl Reader {
    /// Reads the information about models in `metadata/*.json`, sorted by path.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a folder cannot be listed; for each file as for [`ModelInfo::parse`].
    pub fn model_infos(&self) -> Result<impl Iterator<Item = (File<'_>, Result<ModelInfo>)>> {
        let read = |file: File<'_>| {
            let bytes = file.document("model information in bytes")?;
            ModelInfo::parse(&bytes, self.limits())
        };
        let files = self.files()?.filter(|file| is_model_info(file.path()));
        Ok(files.map(move |file| (file, read(file))))
    }
}

fn tensors(member: &Member) -> Vec<TensorDescription> {
    let Value::Array(items) = &member.value.value else { return Vec::new() };
    let mut tensors = Vec::with_capacity(items.len());
    for item in items {
        let mut tensor = TensorDescription::default();
        let Value::Object(members) = &item.value else { continue };
        for member in members {
            match (member.key.as_str(), &member.value.value) {
                ("type", Value::Text(found)) => tensor.element_type = Some(found.clone()),
                ("shape", Value::Array(dims)) => {
                    let dims = dims.iter().filter_map(|dim| match &dim.value {
                        Value::Number(number) => number.parse().ok(),
                        _ => None,
                    });
                    tensor.shape = dims.collect();
                }
                _ => {}
            }
        }
        tensors.push(tensor);
    }
    tensors
}

const WHAT: &str = "model information";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_of_the_example() {
        let text = br#"{
            "type": "dlib",
            "inputs": [{"shape": [1, 4], "type": "float"}],
            "outputs": [{"shape": [-1], "type": "float"}, {"type": 7}],
            "note": "x"
        }"#;
        let info = ModelInfo::parse(text, &Limits::default()).unwrap();
        assert_eq!(info.kind.as_deref(), Some("dlib"));
        let float = Some("float".to_owned());
        let input = TensorDescription { shape: vec![1, 4], element_type: float.clone() };
        assert_eq!(info.inputs, [input]);
        let output = TensorDescription { shape: vec![-1], element_type: float };
        assert_eq!(info.outputs, [output, TensorDescription::default()]);
        assert_eq!(info.others, ["note"]);
    }

    #[test]
    fn other_documents() {
        let error = ModelInfo::parse(b"[]", &Limits::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "model information line 1 column 1: root is an array, expected an object"
        );
    }
}
