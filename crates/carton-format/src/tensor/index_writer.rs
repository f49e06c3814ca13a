//! The index of tensors and their files, as they are written. Format text: "`tensor_data`".

use std::{collections::HashSet, fmt::Write as _};

use bytes::Bytes;
use tensor_core::{Limits, Shape};

use crate::{
    Error, Result, Value,
    error::WriteFault,
    paths::TENSOR_DATA,
    tensor::{dtype, index::NESTED},
    text::emit::{Basic, List},
};

/// Collects entries of the index; the files are numbered in the order in which tensors come.
#[derive(Debug, Default)]
pub(crate) struct IndexWriter {
    text: String,
    names: HashSet<String>,
    files: u64,
}

impl IndexWriter {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Prepares a tensor; nothing is changed before it is added.
    pub(crate) fn prepare(&self, name: &str, value: &Value) -> Result<Prepared> {
        let mut prepared = Prepared::default();
        self.put(name, value, Depth::Outer, &mut prepared)?;
        Ok(prepared)
    }

    /// Adds a tensor and returns its files, by their paths in the carton.
    pub(crate) fn add(&mut self, prepared: Prepared) -> Vec<(String, Bytes)> {
        self.text.push_str(&prepared.text);
        self.names.extend(prepared.names);
        self.files = self.files.saturating_add(prepared.files.len() as u64);
        prepared.files
    }

    /// Returns the index. The reference needs the list even where there is no tensor.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        if self.is_empty() {
            return b"tensor = []\n".to_vec();
        }
        self.text.clone().into_bytes()
    }

    fn put(&self, name: &str, value: &Value, depth: Depth, to: &mut Prepared) -> Result<()> {
        let refuse = |fault| {
            let name = name.to_owned();
            Err(Error::WriteTensor { name, fault })
        };
        if self.names.contains(name) {
            return refuse(WriteFault::DuplicateTensor);
        }
        if let Some(shape) = value.shape().filter(|shape| !is_readable(shape)) {
            return refuse(WriteFault::Shape { shape: shape.clone() });
        }
        to.names.push(name.to_owned());
        match value {
            Value::Nested(_) if depth == Depth::Inner => return refuse(WriteFault::NestedInNested),
            Value::Nested(inner) => {
                let names: Vec<String> =
                    (0_u64..).zip(inner).map(|(place, _)| inner_name(name, place)).collect();
                for (inner_name, inner) in names.iter().zip(inner) {
                    self.put(inner_name, inner, Depth::Inner, to)?;
                }
                let _ = writeln!(
                    to.text,
                    "[[tensor]]\nname = {}\ndtype = \"{NESTED}\"\ninner = {}\n",
                    Basic(name),
                    List(names.iter().map(|name| Basic(name)))
                );
            }
            Value::Numeric(tensor) => {
                let Some(dtype) = value.dtype().and_then(dtype::name) else {
                    return refuse(WriteFault::DType { found: tensor.dtype() });
                };
                self.plain(name, dtype, tensor.shape(), "bin", tensor.bytes().clone(), to);
            }
            Value::Strings { shape, strings } => {
                let (found, expected) = (strings.len() as u64, shape.elements()?);
                if found != expected {
                    return refuse(WriteFault::Strings { found, expected, shape: shape.clone() });
                }
                let text = format!("data = {}\n", List(strings.iter().map(|string| Basic(string))));
                self.plain(name, STRINGS, shape, "toml", text.into(), to);
            }
        }
        Ok(())
    }

    /// Prepares an entry of numbers or strings and its file.
    fn plain(
        &self,
        name: &str,
        dtype: &str,
        shape: &Shape,
        extension: &str,
        content: Bytes,
        to: &mut Prepared,
    ) {
        let number = self.files.saturating_add(to.files.len() as u64);
        let file = format!("tensor_{number}.{extension}");
        let _ = writeln!(
            to.text,
            "[[tensor]]\nname = {}\ndtype = \"{dtype}\"\nshape = {}\nfile = \"{file}\"\ninner = []\n",
            Basic(name),
            List(shape.dims())
        );
        to.files.push((format!("{TENSOR_DATA}{file}"), content));
    }
}

/// A tensor that can be added to an index.
#[derive(Default)]
pub(crate) struct Prepared {
    text: String,
    names: Vec<String>,
    pub(crate) files: Vec<(String, Bytes)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outer,
    Inner,
}

/// Tells whether an index may hold a shape.
fn is_readable(shape: &Shape) -> bool {
    shape.rank() as u64 <= Limits::default().rank
        && shape.dims().iter().all(|&dim| i64::try_from(dim).is_ok())
}

/// Names a tensor of a list, with the prefix that the format's own library keeps for them.
fn inner_name(name: &str, place: u64) -> String {
    format!("_carton_nested_inner_{name}_{place}")
}

// The format's name of the type. Format text: "`carton.toml`".
const STRINGS: &str = "string";

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use tensor_core::{DType, TensorBuf};

    use super::*;
    use crate::{
        Manifest, Sha256,
        tensor::index::{Content, Index},
    };

    fn added(writer: &mut IndexWriter, name: &str, value: &Value) -> Result<Vec<(String, Bytes)>> {
        let prepared = writer.prepare(name, value)?;
        Ok(writer.add(prepared))
    }

    #[test]
    fn written_index_reads_back() {
        let mut writer = IndexWriter::default();
        let numbers = || Value::Numeric(TensorBuf::from_slice([2], &[1.0_f32, 2.0]).unwrap());
        let strings =
            Value::Strings { shape: Shape::scalar(), strings: vec!["\u{1b}\"".to_owned()] };
        let mut paths = Vec::new();
        for (name, value) in [
            ("a\"b", numbers()),
            ("s", strings.clone()),
            ("n", Value::Nested(vec![numbers(), strings])),
        ] {
            paths.extend(
                added(&mut writer, name, &value).unwrap().into_iter().map(|(path, _)| path),
            );
        }
        let expected = ["tensor_0.bin", "tensor_1.toml", "tensor_2.bin", "tensor_3.toml"];
        assert_eq!(paths, expected.map(|file| format!("{TENSOR_DATA}{file}")));
        let limits = Limits::default();
        let files = paths.iter().map(|path| (path.clone(), Sha256::digest(b"")));
        let manifest = Manifest::from_files(files, &limits).unwrap();
        let index = Index::parse(&writer.to_bytes(), &limits, &manifest).unwrap();
        assert_eq!(index.entries().len(), 5);
        assert!(index.unknown.is_empty() && index.entries().iter().all(|entry| entry.has_inner));
        assert!(matches!(index.entry("n").unwrap().content, Content::Nested { .. }));
        assert!(index.entry("a\"b").is_some());
        assert_eq!(index.entry("s").unwrap().listed, manifest.position(&paths[1]));
    }

    #[test]
    fn tensors_that_are_refused() {
        let mut writer = IndexWriter::default();
        let half = Value::Numeric(TensorBuf::new(DType::F16, [1], &[0_u8, 0][..]).unwrap());
        let list = || Value::Nested(Vec::new());
        added(&mut writer, "t", &list()).unwrap();
        for (name, value, message) in [
            (
                "h",
                half,
                r#"tensor "h" cannot be written: element type f16 is none of the format's"#,
            ),
            ("t", list(), r#"tensor "t" cannot be written: another tensor has the name"#),
            (
                "m",
                Value::Nested(vec![list()]),
                r#"tensor "_carton_nested_inner_m_0" cannot be written: a nested tensor lies in another"#,
            ),
            (
                "s",
                Value::Strings { shape: [2].into(), strings: Vec::new() },
                r#"tensor "s" cannot be written: there are 0 strings, but shape [2] needs 2"#,
            ),
            (
                "s",
                Value::Strings { shape: [0, 1 << 63].into(), strings: Vec::new() },
                r#"tensor "s" cannot be written: shape is [0, 9223372036854775808], expected up to 64 dimensions below 2^63"#,
            ),
            (
                "s",
                Value::Strings { shape: (&[0_u64; 65][..]).into(), strings: Vec::new() },
                r#"tensor "s" cannot be written: shape is [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, … of rank 65], expected up to 64 dimensions below 2^63"#,
            ),
        ] {
            let error = added(&mut writer, name, &value).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    fn plain() -> impl Strategy<Value = Value> {
        let strings = vec(".*", 0..4).prop_map(|strings| {
            let shape = [strings.len() as u64].into();
            Value::Strings { shape, strings }
        });
        let numbers = (vec(any::<u16>(), 1..5), 0..3_usize).prop_map(|(values, ones)| {
            let mut shape: Shape = std::iter::repeat_n(1, ones).collect();
            shape.push(values.len() as u64);
            Value::Numeric(TensorBuf::from_slice(shape, &values).unwrap())
        });
        prop_oneof![strings, numbers]
    }

    proptest! {
        #[test]
        fn any_index_reads_back(
            plain in proptest::collection::btree_map(".{0,8}", plain(), 0..5),
            nested in vec(plain(), 0..4),
        ) {
            let mut writer = IndexWriter::default();
            let mut files = Vec::new();
            for (name, value) in &plain {
                files.extend(added(&mut writer, name, value).unwrap());
            }
            let list = Value::Nested(nested.clone());
            let has_list = added(&mut writer, "a list of tensors", &list).is_ok();
            let manifest = Manifest::from_files([], &Limits::default()).unwrap();
            let index = Index::parse(&writer.to_bytes(), &Limits::default(), &manifest).unwrap();
            prop_assert!(has_list && index.unknown.is_empty() && index.needs_toml_1_1.is_none());
            prop_assert_eq!(index.entries().len(), plain.len() + nested.len() + 1);
            for ((name, value), (path, content)) in plain.iter().zip(&files) {
                let entry = index.entry(name).unwrap();
                let Content::Plain { dtype, shape, file } = &entry.content else { panic!("{name}") };
                prop_assert_eq!((Some(*dtype), Some(shape)), (value.dtype(), value.shape()));
                prop_assert_eq!(&format!("{TENSOR_DATA}{file}"), path);
                if let Value::Strings { strings, .. } = value {
                    prop_assert_eq!(&crate::tensor::parse_strings(path, content).unwrap(), strings);
                }
            }
        }
    }

    #[test]
    fn no_tensors() {
        // What the format's own library writes.
        assert_eq!(IndexWriter::default().to_bytes(), b"tensor = []\n");
    }
}
