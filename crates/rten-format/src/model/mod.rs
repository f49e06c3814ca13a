pub mod attributes;
pub(crate) mod attributes_type;
pub(crate) mod builder;
pub(crate) mod enums;
pub(crate) mod field;
pub(crate) mod graph;
pub(crate) mod graph_builder;
pub(crate) mod operators;
pub(crate) mod release;
#[cfg(test)]
pub(crate) mod tests;
pub mod topology;
pub(crate) mod visit;

use flatbuffers::WIPOffset;

use crate::{
    Graph, Result,
    generated::rten as stored,
    model::builder::{Builder, Size},
    model::field::Field as _,
};

/// The model data of a file, as plain values.
///
/// The whole file in version 1, and what its header points to in version 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The main graph.
    pub graph: Graph,
    /// Where the model comes from.
    pub metadata: Option<Metadata>,
}

/// Where a model comes from; nothing of it changes what the model computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// SHA-256 of the ONNX file without its external data, in lower-case hex digits.
    pub onnx_hash: Option<String>,
    /// What the model does.
    pub description: Option<String>,
    /// An SPDX expression.
    pub license: Option<String>,
    /// The revision of the code that trained the model.
    pub commit: Option<String>,
    /// An address of that code.
    pub code_repository: Option<String>,
    /// An address that the model is published at.
    pub model_repository: Option<String>,
    /// The id of the training run.
    pub run_id: Option<String>,
    /// An address of the training run.
    pub run_url: Option<String>,
}

/// The only version of the schema. Format text: "Model data".
pub(crate) const SCHEMA_VERSION: i32 = 1;

impl Model {
    /// Returns model data that [`parse`](Self::parse) reads as this model.
    ///
    /// The same model gives the same bytes.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`](crate::Error::TooLarge) where it could be 2 GiB or more;
    /// [`Error::SubgraphDepth`](crate::Error::SubgraphDepth),
    /// [`Error::NodeId`](crate::Error::NodeId) and
    /// [`Error::PartialElement`](crate::Error::PartialElement) where the format has no room for
    /// something.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.measure(0)?;
        let mut builder = Builder::new();
        let metadata = self.metadata.as_ref();
        let metadata = metadata.map(|metadata| metadata.build(&mut builder)).transpose()?;
        let graph = self.graph.build(&mut builder)?;
        let args =
            stored::ModelArgs { schema_version: SCHEMA_VERSION, graph: Some(graph), metadata };
        let root = stored::Model::create(builder.fbb(), &args);
        Ok(builder.finish(root))
    }
}

impl Model {
    /// Refuses what would not fit into model data, with so many bytes of elements that it has not
    /// got yet.
    pub(crate) fn measure(&self, more: u64) -> Result<()> {
        let mut size = Size::default();
        size.table();
        size.bytes(more);
        if let Some(metadata) = &self.metadata {
            metadata.measure(&mut size);
        }
        self.graph.measure(&mut size)?;
        size.require()
    }
}

macro_rules! metadata {
    ($($field:ident)*) => {
        impl Metadata {
            pub(crate) fn parse(metadata: &stored::Metadata<'_>) -> Self {
                Self { $( $field: metadata.$field().map(str::to_owned), )* }
            }

            fn build(
                &self,
                builder: &mut Builder,
            ) -> Result<WIPOffset<stored::Metadata<'static>>> {
                let args = stored::MetadataArgs { $( $field: self.$field.build(builder)?, )* };
                Ok(stored::Metadata::create(builder.fbb(), &args))
            }

            /// Returns every field with its name, in the order of the format.
            #[must_use]
            pub fn fields(&self) -> [(&'static str, Option<&str>); 8] {
                [$( (stringify!($field), self.$field.as_deref()), )*]
            }
        }
    };
}

metadata! {
    onnx_hash description license commit code_repository model_repository run_id run_url
}

impl Metadata {
    fn measure(&self, size: &mut Size) {
        size.table();
        for (_, text) in self.fields() {
            size.bytes(text.map_or(0, str::len) as u64);
        }
    }
}
