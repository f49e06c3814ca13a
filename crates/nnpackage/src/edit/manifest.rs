//! Writing manifests: whole, or into a text that stays as it is where nothing is changed.

use tensor_core::Limits;

use crate::{
    Connection, EditFault, Manifest, Result, VersionPart,
    json::edit::Editing,
    json::style::{NewValue, Style},
};

impl Manifest {
    /// Returns a manifest as the packaging tool writes one: JSON with an indent of two blanks.
    /// Attributes that hold nothing are left out.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let attributes = self.attributes().into_iter();
        let members = attributes.filter_map(|(key, value)| Some((key, value?))).collect();
        let mut text = Style::default().print(&NewValue::Object(members), "");
        text.push('\n');
        text.into_bytes()
    }

    /// Changes the text of a manifest so that it says what this one does, and nothing else in it:
    /// comments, order, indents, line ends, unknown attributes and whatever else onert tolerates
    /// stay as they are.
    ///
    /// Of an attribute that changes, what onert does not read goes away, such as an item of an array
    /// that is not a text. Where nothing changes the text is returned as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Json`](crate::Error::Json) and its like where the text is not a manifest;
    /// [`EditFault::Manifest`] where the result would not read as this manifest, as for one without
    /// models by two names, or with a version that is not a number.
    ///
    /// # Examples
    ///
    /// ```
    /// use nnpackage::{Manifest, tensor_core::Limits};
    ///
    /// let text = br#"{ "models": [ "a.circle" ], // the only one
    ///   "model-types": [ "circle" ] }"#;
    /// let limits = Limits::default();
    /// let mut manifest = Manifest::parse(text, &limits)?;
    /// manifest.configs.push("a.cfg".to_owned());
    /// manifest.models[0] = "b.circle".to_owned();
    /// let expected = r#"{ "configs": [ "a.cfg" ], "models": [ "b.circle" ], // the only one
    ///   "model-types": [ "circle" ] }"#;
    /// assert_eq!(manifest.edit(text, &limits)?, expected.as_bytes());
    /// # Ok::<(), nnpackage::Error>(())
    /// ```
    pub fn edit(&self, text: &[u8], limits: &Limits) -> Result<Vec<u8>> {
        let old = Self::parse(text, limits)?;
        if old == *self {
            return Ok(text.to_owned());
        }
        let mut editing = Editing::new("MANIFEST", text, limits);
        let mut before = Vec::new();
        for ((key, old), (_, new)) in old.attributes().into_iter().zip(self.attributes()) {
            match &new {
                _ if old == new => {}
                Some(value) => editing.set(key, value, &before)?,
                None => editing.remove(key)?,
            }
            before.push(key);
        }
        let edited = editing.finish();
        self.check_text(&edited, limits)?;
        Ok(edited)
    }

    /// Proves that a text reads as this manifest.
    pub(crate) fn check_text(&self, text: &[u8], limits: &Limits) -> Result<()> {
        let found = Self::parse(text, limits)?;
        if found == *self {
            return Ok(());
        }
        let pairs = found.attributes().into_iter().zip(self.attributes());
        let other = pairs.into_iter().find(|((_, found), (_, asked))| found != asked);
        let attribute = other.map_or("models", |((key, _), _)| key);
        Err(EditFault::Manifest { attribute }.into())
    }

    /// Returns every attribute in the order of the tool, absent ones as `None`.
    fn attributes(&self) -> [(&'static str, Option<NewValue>); 12] {
        let part = |part: &Option<VersionPart>| {
            part.as_ref().map(|part| match part.is_number {
                true => NewValue::Number(part.text.clone()),
                false => NewValue::Exactly(part.text.clone()),
            })
        };
        let texts = |texts: &[String]| (!texts.is_empty()).then(|| NewValue::texts(texts));
        let [models, main_model] = match (self.is_main_model, self.models.as_slice()) {
            (true, [model]) => [None, Some(NewValue::Text(model.clone()))],
            _ => [texts(&self.models), None],
        };
        let references =
            |list: &[crate::IoRef]| (!list.is_empty()).then(|| NewValue::references(list));
        let connections = self.connections.iter().map(Connection::to_value).collect();
        let version = &self.version;
        [
            ("major-version", part(&version.major)),
            ("minor-version", part(&version.minor)),
            ("patch-version", part(&version.patch)),
            ("configs", texts(&self.configs)),
            ("main-model", main_model),
            ("models", models),
            ("model-types", self.model_types.as_ref().map(NewValue::texts)),
            ("pkg-inputs", references(&self.pkg_inputs)),
            ("pkg-outputs", references(&self.pkg_outputs)),
            (
                "model-connect",
                (!self.connections.is_empty()).then_some(NewValue::Array(connections)),
            ),
            ("model-infos", texts(&self.model_infos)),
            ("connection", self.connection_file.clone().map(NewValue::Text)),
        ]
    }
}

impl Connection {
    fn to_value(&self) -> NewValue {
        let to = NewValue::references(&self.to);
        NewValue::Object(vec![("from", NewValue::Reference(self.from)), ("to", to)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IoRef, PackageVersion};

    const SHELL: &str = r#"{
  "major-version" : "1",
  "minor-version" : "2",
  "patch-version" : "0",
  "configs"     : [ "model.cfg" ],
  "models"      : [ "a.circle", "b.tflite" ], /* two */
  "model-types" : [ "circle", "tflite" ],
  "vendor" : { "x" : [ 1, 2 ] }
}
"#;

    fn limits() -> Limits {
        Limits::default()
    }

    #[track_caller]
    fn edits(text: &str, change: impl FnOnce(&mut Manifest), expected: &str) {
        let mut manifest = Manifest::parse(text.as_bytes(), &limits()).unwrap();
        change(&mut manifest);
        let edited = manifest.edit(text.as_bytes(), &limits()).unwrap();
        assert_eq!(String::from_utf8(edited).unwrap(), expected);
    }

    #[test]
    fn only_what_changes_is_touched() {
        edits(SHELL, |_| (), SHELL);
        edits(
            SHELL,
            |manifest| {
                manifest.version = PackageVersion::new(1, 3, 0);
                manifest.models.push("c.circle".to_owned());
                manifest.model_types.as_mut().unwrap().push("circle".to_owned());
                manifest.pkg_inputs = vec![IoRef::new(0, 0, 0)];
            },
            &SHELL
                .replace("\"2\"", "\"3\"")
                .replace("\"b.tflite\"", "\"b.tflite\", \"c.circle\"")
                .replace(
                    "\"tflite\" ],",
                    "\"tflite\", \"circle\" ],\n  \"pkg-inputs\" : [ \"0:0:0\" ],",
                ),
        );
        edits(
            SHELL,
            |manifest| manifest.configs.clear(),
            &SHELL.replace("  \"configs\"     : [ \"model.cfg\" ],\n", ""),
        );
        edits(
            SHELL,
            |manifest| manifest.model_types = None,
            &SHELL.replace("  \"model-types\" : [ \"circle\", \"tflite\" ],\n", ""),
        );
    }

    #[test]
    fn leniencies_stay() {
        let text = "\u{feff}{\r\n\t// models\r\n\t\"models\": [5, \"b\",],\r\n\t\"models\": [5, null, \
                    \"b\",], // last\r\n} and more";
        edits(
            text,
            |manifest| manifest.models[2] = "c".to_owned(),
            &text.replacen("null, \"b\"", "null, \"c\"", 1),
        );
    }

    #[test]
    fn draft_of_2019_becomes_a_list() {
        edits(
            "{\"main-model\": \"a\", \"x\": 1}",
            |manifest| manifest.is_main_model = false,
            "{\"models\": [\"a\"], \"x\": 1}",
        );
        edits(
            "{\"main-model\": \"a\"}",
            |manifest| manifest.models[0] = "b".to_owned(),
            "{\"main-model\": \"b\"}",
        );
    }

    #[test]
    fn versions_keep_their_form() {
        edits(
            "{\"major-version\": 1, \"models\": [\"a\"]}",
            |manifest| manifest.version.major.as_mut().unwrap().text = "2".to_owned(),
            "{\"major-version\": 2, \"models\": [\"a\"]}",
        );
        edits(
            "{\"major-version\": 1, \"models\": [\"a\"]}",
            |manifest| manifest.version = PackageVersion::new(1, 0, 0),
            "{\"major-version\": \"1\", \"minor-version\": \"0\", \"patch-version\": \"0\", \
             \"models\": [\"a\"]}",
        );
    }

    #[test]
    fn what_cannot_be_written() {
        let text = br#"{"models": ["a"]}"#;
        let manifest = Manifest::parse(text, &limits()).unwrap();
        let message = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = manifest.clone();
            change(&mut manifest);
            manifest.edit(text, &limits()).unwrap_err().to_string()
        };
        assert_eq!(
            message(&|manifest| manifest.models.clear()),
            "MANIFEST names no model, expected an array \"models\" of at least one path"
        );
        let number = |text: &str| VersionPart { text: text.to_owned(), is_number: true };
        let refused = message(&|manifest| manifest.version.major = Some(number("1 2")));
        assert!(refused.starts_with("MANIFEST line 1 column "), "{refused}");
        let other =
            |attribute: &str| format!("MANIFEST would not hold {attribute} as it is asked for");
        let injected = number("1, \"models\": [\"b\"], \"x\": 2");
        let refused = message(&|manifest| manifest.version.major = Some(injected.clone()));
        assert_eq!(refused, other("major-version"));
        let refused = message(&|manifest| {
            manifest.is_main_model = true;
            manifest.models.push("b".to_owned());
        });
        assert_eq!(refused, other("models"));
    }

    #[test]
    fn whole_manifests() {
        let mut manifest = Manifest {
            version: PackageVersion::new(1, 3, 0),
            models: vec!["a\"\u{1}".to_owned(), "b".to_owned()],
            model_types: Some(vec!["circle".to_owned(), "bin".to_owned()]),
            ..Manifest::default()
        };
        manifest.pkg_inputs = vec![IoRef::new(0, 0, 0)];
        let (from, to) = (IoRef::new(0, 0, 1), vec![IoRef::new(1, 0, 0)]);
        manifest.connections = vec![Connection { from, to }];
        let text = manifest.to_bytes();
        let expected = "{\n  \"major-version\": \"1\",\n  \"minor-version\": \"3\",\n  \"patch-version\": \
                        \"0\",\n  \"models\": [\n    \"a\\\"\\u0001\",\n    \"b\"\n  ],\n  \"model-types\": \
                        [\n    \"circle\",\n    \"bin\"\n  ],\n  \"pkg-inputs\": [\n    \"0:0:0\"\n  ],\n  \
                        \"model-connect\": [\n    {\n      \"from\": \"0:0:1\",\n      \"to\": [\n        \
                        \"1:0:0\"\n      ]\n    }\n  ]\n}\n";
        assert_eq!(String::from_utf8(text.clone()).unwrap(), expected);
        assert_eq!(Manifest::parse(&text, &limits()).unwrap(), manifest);
    }
}
