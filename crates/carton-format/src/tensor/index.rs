//! `tensor_data/index.toml`: which tensors there are and where. Format text: "`tensor_data`".

use std::collections::HashMap;

use model_archive::name;
use tensor_core::{At, DType, Limit, Limits, Shape};

use crate::{
    DocumentFault, Error, Manifest, Result,
    error::TensorFault,
    paths::{INDEX, INDEX_BYTES, TENSOR_DATA},
    tensor::dtype,
    text::{Document, Node, Table, Unknown, UnknownKey},
};

/// The tensors of a carton by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    entries: Vec<IndexEntry>,
    by_name: HashMap<String, usize>,
    pub(crate) unknown: Vec<UnknownKey>,
    /// The first line that readers of TOML 1.0 refuse.
    pub(crate) needs_toml_1_1: Option<u64>,
}

/// What the index says of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct IndexEntry {
    pub(crate) name: String,
    pub(crate) line: u64,
    pub(crate) content: Content,
    /// Whether the key `inner` is there, without which the reference does not read the entry.
    pub(crate) has_inner: bool,
    /// The line of `MANIFEST` that has its file, counted from 0.
    pub(crate) listed: Option<usize>,
}

/// What a tensor holds and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Elements in a file of `tensor_data/`: little-endian, row-major, or as strings in TOML.
    Plain { dtype: DType, shape: Shape, file: String },
    /// The names of other tensors, none of them nested.
    Nested { inner: Vec<String> },
}

impl Index {
    pub(crate) fn parse(bytes: &[u8], limits: &Limits, manifest: &Manifest) -> Result<Self> {
        limits.check(Limit::MetadataBytes, INDEX_BYTES, bytes.len() as u64)?;
        let document = Document::parse(INDEX, bytes)?;
        let mut unknown = Unknown::new(&document);
        let mut root = document.root();
        let mut index = Self { needs_toml_1_1: document.needs_toml_1_1(), ..Self::default() };
        if let Some(tensors) = root.optional("tensor") {
            let items = tensors.array()?;
            tensors.check_count("tensors", items.len(), limits, Limit::Tensors)?;
            index.entries.reserve(items.len());
            index.by_name.reserve(items.len());
            for node in items {
                index.add(node, limits, &mut unknown)?;
            }
        }
        root.finish(&mut unknown);
        index.unknown = unknown.into_keys();
        index.check_inner()?;
        index.find_files(manifest);
        Ok(index)
    }

    pub(crate) fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&IndexEntry> {
        self.entries.get(*self.by_name.get(name)?)
    }

    fn add<'d>(
        &mut self,
        node: Node<'d>,
        limits: &Limits,
        unknown: &mut Unknown<'d>,
    ) -> Result<()> {
        let mut table = node.table()?;
        let name_node = table.required("name")?;
        let name = name_node.string()?.to_owned();
        let dtype = table.required("dtype")?;
        let inner = table.optional("inner");
        let content = if dtype.string()? == NESTED {
            let inner = inner.ok_or_else(|| table.key_error("inner", DocumentFault::Missing))?;
            let inner = inner.array()?.map(|node| node.string().map(str::to_owned));
            Content::Nested { inner: inner.collect::<Result<_>>()? }
        } else {
            if let Some(inner) = inner
                && inner.array()?.len() > 0
            {
                return Err(inner.fault("an empty list, as the tensor is not nested"));
            }
            Content::Plain {
                dtype: dtype_of(dtype)?,
                shape: shape_of(table.required("shape")?, limits)?,
                file: file_of(&mut table, &name, limits)?,
            }
        };
        table.finish(unknown);
        if self.by_name.insert(name.clone(), self.entries.len()).is_some() {
            return Err(name_node.fault("a name that no other tensor has"));
        }
        let (line, has_inner) = (node.line(), inner.is_some());
        self.entries.push(IndexEntry { name, line, content, has_inner, listed: None });
        Ok(())
    }

    /// Returns the index beside another manifest.
    pub(crate) fn listed_in(&self, manifest: &Manifest) -> Self {
        let mut index = self.clone();
        index.find_files(manifest);
        index
    }

    /// Notes where the manifest has the files, by a table: most of it is asked for.
    fn find_files(&mut self, manifest: &Manifest) {
        let mut files = HashMap::with_capacity(manifest.len());
        for (line, (path, _)) in manifest.files().enumerate() {
            files.extend(path.strip_prefix(TENSOR_DATA).map(|file| (file, line)));
        }
        for entry in &mut self.entries {
            if let Content::Plain { file, .. } = &entry.content {
                entry.listed = files.get(&**file).copied();
            }
        }
    }

    /// Proves that nested tensors hold plain ones that there are.
    fn check_inner(&self) -> Result<()> {
        for entry in &self.entries {
            let Content::Nested { inner } = &entry.content else { continue };
            for name in inner {
                let inner = name.clone();
                let fault = match self.entry(name) {
                    None => TensorFault::NoInner { inner },
                    Some(IndexEntry { content: Content::Nested { .. }, .. }) => {
                        TensorFault::NestedInNested { inner }
                    }
                    Some(_) => continue,
                };
                return Err(Error::Tensor { name: entry.name.clone(), fault });
            }
        }
        Ok(())
    }
}

impl IndexEntry {
    /// Returns the line of `MANIFEST` that has its file; `None` of a nested tensor.
    pub(crate) fn line_of_file(&self) -> Result<Option<usize>> {
        match &self.content {
            Content::Plain { file, .. } if self.listed.is_none() => {
                Err(self.fault(TensorFault::NoFile { file: file.clone() }))
            }
            _ => Ok(self.listed),
        }
    }

    /// Returns how many bytes its numbers need; `None` where it holds something else.
    pub(crate) fn byte_len(&self) -> Result<Option<u64>> {
        match &self.content {
            Content::Plain { dtype: DType::Str, shape, .. } => {
                Ok(shape.elements().map(|_| None)?)
            }
            Content::Plain { dtype, shape, .. } => Ok(Some(shape.byte_len(*dtype)?)),
            Content::Nested { .. } => Ok(None),
        }
    }

    /// Compares the length of its file with what its numbers need.
    pub(crate) fn check_len(&self, found: u64, expected: u64) -> Result<()> {
        match &self.content {
            Content::Plain { dtype, shape, file } if found != expected => {
                let (file, shape, dtype) = (file.clone(), shape.clone(), *dtype);
                Err(self.fault(TensorFault::Length { file, shape, dtype, found, expected }))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn fault(&self, fault: TensorFault) -> Error {
        Error::Tensor { name: self.name.clone(), fault }
    }

    pub(crate) fn at(&self) -> At {
        At::file().entry(INDEX).tensor(&self.name).line(self.line)
    }
}

fn dtype_of(node: Node<'_>) -> Result<DType> {
    let expected = "an element type such as \"float32\", \"string\" or \"nested\"";
    dtype::parse(node.string()?).ok_or_else(|| node.fault(expected))
}

fn shape_of(node: Node<'_>, limits: &Limits) -> Result<Shape> {
    let dims = node.array()?;
    node.check_count("dimensions", dims.len(), limits, Limit::Rank)?;
    dims.map(Node::unsigned).collect()
}

fn file_of(table: &mut Table<'_>, tensor: &str, limits: &Limits) -> Result<String> {
    let file = table.required("file")?.string()?;
    name::check(file, limits).map_err(|fault| {
        let (name, file) = (tensor.to_owned(), file.to_owned());
        Error::Tensor { name, fault: TensorFault::FileName { file, fault } }
    })?;
    Ok(file.to_owned())
}

/// The element type of a tensor that holds others.
pub(crate) const NESTED: &str = "nested";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Index> {
        let manifest = Manifest::from_files([], &Limits::default()).unwrap();
        Index::parse(text.as_bytes(), &Limits::default(), &manifest)
    }

    const PLAIN: &str =
        "[[tensor]]\nname = \"a\"\ndtype = \"float32\"\nshape = [2]\nfile = \"x\"\n";

    #[test]
    fn both_styles_of_plain_entries() {
        for inner in ["", "inner = []\n"] {
            let index = parse(&format!("{PLAIN}{inner}")).unwrap();
            let entry = index.entry("a").unwrap();
            assert_eq!(entry.has_inner, !inner.is_empty());
            let (dtype, shape) = (DType::F32, [2].into());
            assert_eq!(entry.content, Content::Plain { dtype, shape, file: "x".to_owned() });
        }
    }

    #[test]
    fn no_tensors() {
        for text in ["", "tensor = []\n"] {
            assert!(parse(text).unwrap().entries().is_empty());
        }
    }

    #[test]
    fn inner_tensors_may_be_shared() {
        let nested = |name| {
            format!("[[tensor]]\nname = \"{name}\"\ndtype = \"nested\"\ninner = [\"a\", \"a\"]\n")
        };
        let index = parse(&format!("{}{}{PLAIN}", nested("n"), nested("m"))).unwrap();
        assert_eq!(index.entries().len(), 3);
    }
}
