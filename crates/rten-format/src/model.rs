use bytes::Bytes;
use flatbuffers::{InvalidFlatbuffer, VerifierOptions, WIPOffset};
use tensor_core::Limits;

use crate::{
    Error, Graph, Result,
    builder::{Builder, Size},
    field::Field as _,
    generated::rten as stored,
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
    /// Reads model data. Constants in it are slices of `model`, without a copy.
    ///
    /// What nodes refer to, and whether constants have as many elements as their shapes say, is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] and its like where it is no FlatBuffer of the schema.
    pub fn parse(model: impl Into<Bytes>, limits: &Limits) -> Result<Self> {
        let model = model.into();
        let options = verifier_options(model.len(), limits);
        let root = stored::root_as_model_with_opts(&options, &model)
            .map_err(|error| malformed(&error, &options))?;
        if root.schema_version() != SCHEMA_VERSION {
            return Err(Error::SchemaVersion { found: root.schema_version() });
        }
        Ok(Self {
            graph: Graph::parse(&root.graph(), &model)?,
            metadata: root.metadata().map(|metadata| Metadata::parse(&metadata)),
        })
    }

    /// Returns model data that [`parse`](Self::parse) reads as this model.
    ///
    /// The same model gives the same bytes.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where it could be 2 GiB or more, [`Error::SubgraphDepth`],
    /// [`Error::NodeId`] and [`Error::PartialElement`] where the format has no room for something.
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

/// Returns what bounds the verifier, for model data of this many bytes.
///
/// A table takes at least 4 bytes where it is and as many where it is referred to. Beyond what is
/// there for each of them, tables are shared, of which typed values would be copies.
pub(crate) fn verifier_options(len: usize, limits: &Limits) -> VerifierOptions {
    let depth = usize::try_from(limits.depth).unwrap_or(MAX_DEPTH);
    VerifierOptions {
        max_depth: depth.min(MAX_DEPTH),
        max_tables: (len / 4).min(MAX_TABLES),
        max_apparent_size: len.saturating_mul(16).clamp(1 << 20, 1 << 31),
        ignore_missing_null_terminator: false,
    }
}

/// What RTen itself allows, in tables.
const MAX_DEPTH: usize = 64;

/// Ten times what RTen itself allows.
const MAX_TABLES: usize = 10_000_000;

fn malformed(error: &InvalidFlatbuffer, options: &VerifierOptions) -> Error {
    match error {
        InvalidFlatbuffer::DepthLimitReached => Error::TooDeep { limit: options.max_depth },
        InvalidFlatbuffer::TooManyTables => Error::TooManyTables { limit: options.max_tables },
        _ => {
            let text = error.to_string();
            let words: Vec<&str> = text.split_whitespace().collect();
            let mut reason = words.join(" ").trim_end_matches('.').to_owned();
            if let Some(first) = reason.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            Error::Malformed { reason }
        }
    }
}

macro_rules! metadata {
    ($($field:ident)*) => {
        impl Metadata {
            fn parse(metadata: &stored::Metadata<'_>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Constant, ConstantData, Dim, Node, NodeKind, Operator, OperatorType, Value,
        attributes::{EinsumAttrs, IfAttrs, LoopAttrs},
    };

    #[track_caller]
    fn rejects(bytes: Vec<u8>, message: &str) {
        let error = Model::parse(bytes, &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    fn operator(attributes: impl Into<crate::Attributes>) -> Operator {
        Operator {
            operator_type: OperatorType::If,
            attributes: Some(attributes.into()),
            inputs: vec![Some(0), None],
            outputs: vec![None, Some(1)],
        }
    }

    fn constant(data: ConstantData) -> Constant {
        Constant { shape: vec![2], dtype: None, data: Some(data), data_offset: None }
    }

    /// A model with something of everything.
    fn model() -> Model {
        let branch = Graph {
            nodes: vec![Node { name: None, kind: NodeKind::Missing }],
            captures: vec![0],
            ..Graph::default()
        };
        let external = Constant {
            shape: vec![2, 3],
            dtype: Some(crate::ConstantDataType::Float32),
            data: None,
            data_offset: Some(1 << 32),
        };
        let dims = vec![Dim::Symbol("batch".to_owned()), Dim::Fixed(4)];
        let nodes = vec![
            Node::named("float", constant(ConstantData::Float(vec![1; 8].into()))),
            Node::named("int32", constant(ConstantData::Int32(vec![2; 8].into()))),
            Node::named("int8", constant(ConstantData::Int8(vec![3; 2].into()))),
            Node::named("uint8", constant(ConstantData::UInt8(vec![4; 2].into()))),
            Node::named("external", external),
            Node::named("value", Value { shape: Some(dims), dtype: Some(crate::DataType::Int8) }),
            Node::named("unknown", Value::default()),
            Node::named("", operator(EinsumAttrs { equation: Some("i,i->".to_owned()) })),
            Node::named(
                "if",
                operator(IfAttrs { then_branch: Some(Box::new(branch)), else_branch: None }),
            ),
        ];
        let graph = Graph { nodes, inputs: vec![5], outputs: vec![6], captures: vec![] };
        let license = Some("MIT".to_owned());
        Model { graph, metadata: Some(Metadata { license, ..Metadata::default() }) }
    }

    /// A model with loops in loops.
    fn nested(depth: u32) -> Model {
        let mut graph = Graph::default();
        for _ in 0..depth {
            let kind = operator(LoopAttrs { body: Some(Box::new(graph)) }).into();
            graph = Graph { nodes: vec![Node { name: None, kind }], ..Graph::default() };
        }
        Model { graph, metadata: None }
    }

    #[test]
    fn everything_reads_back() {
        let bytes = model().to_bytes().unwrap();
        assert_eq!(bytes, model().to_bytes().unwrap());
        assert_eq!(Model::parse(bytes, &Limits::default()).unwrap(), model());
    }

    #[test]
    fn bytes_are_fewer_than_measured() {
        let mut size = Size::default();
        model().graph.measure(&mut size).unwrap();
        size.require().unwrap();
        size.bytes(i32::MAX as u64);
        let error = size.require().unwrap_err().to_string();
        assert!(error.ends_with(" bytes, over the FlatBuffers limit of 2147483647"), "{error}");
    }

    #[test]
    fn subgraphs_are_as_deep_as_readers_allow() {
        let bytes = nested(15).to_bytes().unwrap();
        assert_eq!(Model::parse(bytes, &Limits::default()).unwrap(), nested(15));
        let error = nested(16).to_bytes().unwrap_err();
        assert_eq!(
            error.to_string(),
            "subgraphs are nested deeper than 15 levels, which no reader of RTen allows"
        );
    }

    #[test]
    fn deeper_tables() {
        let mut builder = Builder::new();
        let graph = Some(nested(16).graph.build(&mut builder).unwrap());
        let args = stored::ModelArgs { schema_version: 1, graph, metadata: None };
        let root = stored::Model::create(builder.fbb(), &args);
        rejects(
            builder.finish(root),
            "model data has tables nested deeper than the limit of 64 (Limits::depth)",
        );
        let bytes = nested(15).to_bytes().unwrap();
        let error = Model::parse(bytes, &Limits::default().with_depth(8)).unwrap_err();
        assert!(matches!(error, Error::TooDeep { limit: 8 }), "{error}");
    }

    /// Builds model data in which a graph holds one node many times.
    fn repeated(node: &Node, times: usize) -> Vec<u8> {
        let mut builder = Builder::new();
        let node = node.build(&mut builder).unwrap();
        let nodes = Some(builder.fbb().create_vector(&vec![node; times]));
        let args = stored::GraphArgs { nodes, ..Default::default() };
        let graph = Some(stored::Graph::create(builder.fbb(), &args));
        let args = stored::ModelArgs { schema_version: 1, graph, metadata: None };
        let root = stored::Model::create(builder.fbb(), &args);
        builder.finish(root)
    }

    #[test]
    fn tables_shared_too_often() {
        let shape = Some(vec![Dim::Fixed(1); 20]);
        let bytes = repeated(&Node::named("shared", Value { shape, dtype: None }), 1000);
        let limit = bytes.len() / 4;
        rejects(
            bytes,
            &format!(
                "model data has more than {limit} tables, expected one in 4 bytes, at most 10000000"
            ),
        );
    }

    #[test]
    fn vectors_shared_too_often() {
        let bytes = vec![0; 1 << 20];
        let node = Node::named("shared", constant(ConstantData::UInt8(bytes.into())));
        rejects(repeated(&node, 17), "model data is malformed: apparent size too large");
    }

    #[test]
    fn other_schema_version() {
        let mut builder = Builder::new();
        let graph = Some(Graph::default().build(&mut builder).unwrap());
        let args = stored::ModelArgs { graph, ..Default::default() };
        let root = stored::Model::create(builder.fbb(), &args);
        rejects(builder.finish(root), "schema_version of the model is 0, expected 1");
    }

    #[test]
    fn missing_graph() {
        let mut builder = Builder::new();
        let table = builder.fbb().start_table();
        let table = builder.fbb().end_table(table);
        rejects(builder.finish(table), "model data is malformed: missing required field `graph`");
    }

    #[test]
    fn node_ids_beyond_the_format() {
        let mut model = model();
        let mut operator = operator(EinsumAttrs::default());
        operator.inputs = vec![Some(1 << 31)];
        model.graph.nodes.push(Node { name: None, kind: operator.into() });
        assert_eq!(
            model.to_bytes().unwrap_err().to_string(),
            "node id 2147483648 is over the limit of the format, 2147483647"
        );
    }

    #[test]
    fn constants_of_whole_elements() {
        let data = ConstantData::Float(vec![0; 7].into());
        let nodes = vec![Node { name: None, kind: constant(data).into() }];
        let model = Model { graph: Graph { nodes, ..Graph::default() }, metadata: None };
        assert_eq!(
            model.to_bytes().unwrap_err().to_string(),
            "constant data of 7 bytes is not a whole number of elements of 4 bytes"
        );
    }

    #[test]
    fn constants_are_slices_of_model_data() {
        let bytes = Bytes::from(model().to_bytes().unwrap());
        let read = Model::parse(bytes.clone(), &Limits::default()).unwrap();
        let NodeKind::Constant(constant) = &read.graph.nodes[0].kind else { panic!() };
        let Some(ConstantData::Float(data)) = &constant.data else { panic!() };
        assert!(bytes.as_ptr_range().contains(&data.as_ptr()));
    }

    #[test]
    fn every_truncation() {
        let bytes = model().to_bytes().unwrap();
        test_support::truncations(&bytes, |bytes| {
            let _ = Model::parse(bytes.to_vec(), &Limits::default());
        });
    }

    #[test]
    fn changed_bytes_never_panic() {
        let bytes = model().to_bytes().unwrap();
        test_support::mutations(&bytes, |bytes| {
            let Ok(model) = Model::parse(bytes.to_vec(), &Limits::default()) else {
                return;
            };
            if let Ok(bytes) = model.to_bytes() {
                Model::parse(bytes, &Limits::default()).unwrap();
            }
        });
    }
}
