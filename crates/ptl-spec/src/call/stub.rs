//! Parameters in the place of their stubs.

use std::collections::BTreeSet;

use crate::{
    Dialect, Error, Fault, Json, Param, Params, Result, spec::path::Path, spec::slot::stub_of,
};

/// Replaces the stubs of a tree, once: what a parameter brings is not looked at again.
pub(crate) struct Binder<'p> {
    pub(crate) params: &'p Params,
    pub(crate) dialect: Dialect,
    /// The names of the parameters that were used.
    pub(crate) used: BTreeSet<&'p str>,
}

impl<'p> Binder<'p> {
    pub(crate) fn new(params: &'p Params, dialect: Dialect) -> Result<Self> {
        if dialect == Dialect::Android {
            params.names().try_for_each(check_key)?;
        }
        Ok(Self { params, dialect, used: BTreeSet::new() })
    }

    pub(crate) fn bind(&mut self, node: &Json, path: &mut Path) -> Result<Json> {
        if let Some(key) = stub_of(node) {
            return self.replace(key, node, path);
        }
        match node {
            Json::Array(items) => {
                let bound = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| path.item(index, |path| self.bind(item, path)));
                Ok(Json::Array(bound.collect::<Result<_>>()?))
            }
            Json::Object(members) => {
                let mut bound = Vec::with_capacity(members.len());
                for (key, value) in members {
                    let value = path.member(key, |path| self.bind(value, path))?;
                    bound.push((self.key(key)?, value));
                }
                Ok(Json::Object(bound))
            }
            other => Ok(other.clone()),
        }
    }

    fn replace(&mut self, key: &str, stub: &Json, path: &Path) -> Result<Json> {
        let Some((name, param)) = self.params.entry(key) else {
            return match self.dialect {
                Dialect::Documented => {
                    Err(Error::spec(path, Fault::Unbound { key: key.to_owned() }))
                }
                Dialect::Android => Ok(stub.clone()),
            };
        };
        self.used.insert(name);
        match (param, self.dialect) {
            (Param::Json(json), Dialect::Documented) => Ok(json.clone()),
            (Param::Json(json), Dialect::Android) => substituted(json).map_err(|reason| {
                Error::spec(path, Fault::Replacement { name: name.to_owned(), reason })
            }),
            (other, _) => {
                let (found, expected) = (other.described(), "a JSON value in the place of a stub");
                Err(Error::spec(path, Fault::Value { found, expected }))
            }
        }
    }

    /// Returns the key of a member; on Android it may be a stub as well.
    fn key(&mut self, key: &str) -> Result<String> {
        if self.dialect == Dialect::Android
            && let Some(name) = key.strip_prefix('$')
            && let Some((name, Param::Json(Json::String(text)))) = self.params.entry(name)
        {
            self.used.insert(name);
            return Ok(text.clone());
        }
        Ok(key.to_owned())
    }
}

/// Refuses a name that breaks the pattern which Android makes of it.
fn check_key(name: &str) -> Result<()> {
    if !name.contains(['\\', '^', '$', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}']) {
        return Ok(());
    }
    let reason = "its name is not a plain pattern";
    Err(Error::spec("call", Fault::Replacement { name: name.to_owned(), reason }))
}

/// Returns what is left of a value that went through Android's replacement in the text: numbers as
/// doubles, texts without what is special to `String.replaceAll`.
fn substituted(value: &Json) -> Result<Json, &'static str> {
    Ok(match value {
        Json::Null => return Err("it is null"),
        Json::Int(number) => Json::Float(*number as f64),
        Json::String(text) => Json::String(replaced(text)?),
        Json::Array(items) => Json::Array(items.iter().map(substituted).collect::<Result<_, _>>()?),
        Json::Object(members) => {
            let member = |(key, value): &(String, Json)| {
                substituted(value).map(|value| (key.clone(), value))
            };
            Json::Object(members.iter().map(member).collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    })
}

/// Reads a text first as a replacement of `String.replaceAll`, then as the inside of a JSON text.
fn replaced(text: &str) -> Result<String, &'static str> {
    let mut replacement = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '$' => return Err("a dollar sign refers to a group that there is not"),
            '\\' => replacement.push(characters.next().ok_or("a backslash ends it")?),
            other => replacement.push(other),
        }
    }
    let mut value = String::with_capacity(replacement.len());
    let mut characters = replacement.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Err("a quotation mark ends the JSON text"),
            '\\' => match characters.next().ok_or("a backslash ends it")? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                'b' => value.push('\u{8}'),
                'f' => value.push('\u{c}'),
                'u' => {
                    let digits: String = characters.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                    value.push(code.and_then(char::from_u32).ok_or("it has a broken escape")?);
                }
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use tensor_core::Limits;

    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes(), &Limits::default()).unwrap()
    }

    fn bind(node: &str, params: &str, dialect: Dialect) -> Result<String> {
        let params = Params::from_json(json(params)).unwrap();
        let mut binder = Binder::new(&params, dialect)?;
        binder.bind(&json(node), &mut Path::root("pack")).map(|bound| bound.to_string())
    }

    #[test]
    fn types_are_kept() {
        let params = r#"{"a":1,"b":"x","c":[1,2.5],"d":null,"e":9007199254740993}"#;
        let node = r#"["$a",{"k":"$b"},"$c","$d","$e","x$a"]"#;
        let bound = bind(node, params, Dialect::Documented).unwrap();
        assert_eq!(bound, r#"[1,{"k":"x"},[1,2.5],null,9007199254740993,"x$a"]"#);
    }

    #[test]
    fn values_are_not_looked_at_again() {
        let bound = bind(r#"["$a"]"#, r#"{"a":"$b","b":3}"#, Dialect::Documented);
        assert_eq!(bound.unwrap(), r#"["$b"]"#);
    }

    #[test]
    fn a_stub_without_parameter_is_named() {
        let error = bind(r#"{"items":["$zz"]}"#, "{}", Dialect::Documented).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pack.items[0] is the stub \"$zz\", but the call has no parameter \"zz\""
        );
        assert_eq!(bind(r#"["$zz"]"#, "{}", Dialect::Android).unwrap(), r#"["$zz"]"#);
    }

    #[test]
    fn keys_are_stubs_on_android_only() {
        let (node, params) = (r#"{"$k":1}"#, r#"{"k":"type"}"#);
        assert_eq!(bind(node, params, Dialect::Documented).unwrap(), node);
        assert_eq!(bind(node, params, Dialect::Android).unwrap(), r#"{"type":1}"#);
    }

    #[test]
    fn texts_go_through_two_parsers_on_android() {
        let android = |text: &str| replaced(text);
        assert_eq!(android(r"o\o").as_deref(), Ok("oo"));
        assert_eq!(android(r"\$5").as_deref(), Ok("$5"));
        assert_eq!(android(r"a\\nb\\u0041").as_deref(), Ok("a\nbA"));
        assert_eq!(android("$5"), Err("a dollar sign refers to a group that there is not"));
        assert_eq!(android("\"x"), Err("a quotation mark ends the JSON text"));
        let error = bind("[]", r#"{"a(b":1}"#, Dialect::Android).unwrap_err();
        assert_eq!(
            error.to_string(),
            "call cannot take the parameter \"a(b\" on Android: its name is not a plain pattern"
        );
    }
}
