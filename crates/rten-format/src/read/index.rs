//! What a reader knows of model data from one look at all of it: where the constants are.

use flat_tables::{Bounds, Checker, Fields, Problem};
use flatbuffers::VOffsetT;
use tensor_core::{DType, Extent};

use crate::{
    Attributes, ConstantDataType, Error, Result,
    generated::rten as stored,
    model::SCHEMA_VERSION,
    model::visit::{Checked, Visit, missing},
    topology::{self, Place},
};

/// All graphs and constants of model data, in the order of the file.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) places: Vec<Place>,
    pub(crate) constants: Vec<Entry>,
    pub(crate) newer: Newer,
}

/// Tables with fields that this crate does not know: what a later release added to them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newer {
    /// How many tables.
    pub(crate) count: u64,
    /// Graph and node of the first one that belongs to a node.
    pub(crate) first: Option<(usize, u32)>,
}

/// Where the parts of a constant are; extents are counted from the start of the model data.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The graph, as an index into all graphs.
    pub(crate) scope: usize,
    pub(crate) node: u32,
    pub(crate) name: Option<Extent>,
    /// Numbers of 4 bytes.
    pub(crate) shape: Extent,
    pub(crate) dtype: Option<ConstantDataType>,
    pub(crate) data: Option<Inline>,
    pub(crate) data_offset: Option<u64>,
}

/// Elements in the model data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inline {
    Elements(DType, Extent),
    /// A table that this crate does not know, by its number.
    Unknown(u8),
}

impl Index {
    /// Looks through model data, and proves all of it.
    pub(crate) fn new(model_data: &[u8], bounds: Bounds) -> Result<Self> {
        let checker = Checker::new(model_data, bounds)?;
        let newer = Newer::default();
        let (places, constants) = (Vec::new(), Vec::new());
        let mut walk = Walk { checker, node: None, places, constants, newer, refused: None };
        if let Err(fault) = walk.model() {
            return Err(walk.refused.unwrap_or_else(|| fault.into()));
        }
        let Walk { mut places, constants, newer, .. } = walk;
        topology::name_paths(&mut places);
        Ok(Self { places, constants, newer })
    }
}

/// A walk over all tables of model data, as deep as the checker allows them to be nested.
struct Walk<'a> {
    checker: Checker<'a>,
    /// The node that is visited, and the graph that it is in.
    node: Option<(usize, u32)>,
    places: Vec<Place>,
    constants: Vec<Entry>,
    newer: Newer,
    /// What is wrong, where a fault alone would not say it.
    refused: Option<Error>,
}

impl<'a> Visit<'a> for Walk<'a> {
    fn checker(&mut self) -> &mut Checker<'a> {
        &mut self.checker
    }

    fn look_beyond(&mut self, table: Fields<'_>, field: VOffsetT) {
        if table.has_from(field) {
            self.newer.count = self.newer.count.saturating_add(1);
            self.newer.first = self.newer.first.or(self.node);
        }
    }

    fn unknown(&mut self, what: &'static str, tag: u8, reference: usize) -> Checked {
        if tag == 0 {
            return Ok(());
        }
        let found = self.checker.unknown(reference);
        if let Err(fault) = &found {
            let offset = match fault.problem() {
                Problem::Dangling { target, .. } => target,
                _ => fault.at(),
            };
            let len = self.checker.bytes().len() as u64;
            self.refused = Some(Error::UnknownTable { what, tag, offset, len });
        }
        found
    }

    fn graph(&mut self, branch: &'static str, reference: usize) -> Checked {
        type Graph = stored::Graph<'static>;
        let graph = self.checker.enter(reference)?;
        let (scope, parent) = (self.places.len(), self.node);
        self.places.push(Place::new(&self.places, parent, branch));
        if let Some(nodes) = self.checker.field(graph, Graph::VT_NODES)? {
            for (id, reference) in (0..).zip(self.checker.tables(nodes)?) {
                self.node = Some((scope, id));
                self.visit(reference)?;
            }
        }
        self.node = parent;
        for ids in [Graph::VT_INPUTS, Graph::VT_OUTPUTS, Graph::VT_CAPTURES] {
            self.words(graph, ids)?;
        }
        self.look_beyond(graph, behind(Graph::VT_CAPTURES));
        self.checker.leave();
        Ok(())
    }
}

impl Walk<'_> {
    fn model(&mut self) -> Checked {
        type Model = stored::Model<'static>;
        let model = self.checker.enter(0)?;
        let version = match self.checker.field(model, Model::VT_SCHEMA_VERSION)? {
            Some(version) => i32::from_le_bytes(self.checker.read(version)?),
            None => 0,
        };
        if version != SCHEMA_VERSION {
            self.refused = Some(Error::SchemaVersion { found: version });
            return Err(missing("schema version", model));
        }
        let graph = self.checker.required(model, Model::VT_GRAPH, "graph")?;
        self.graph("graph", graph)?;
        if let Some(metadata) = self.checker.field(model, Model::VT_METADATA)? {
            let metadata = self.checker.enter(metadata)?;
            for field in METADATA {
                self.text(metadata, field)?;
            }
            self.look_beyond(metadata, behind(stored::Metadata::VT_RUN_URL));
        }
        self.look_beyond(model, behind(Model::VT_METADATA));
        Ok(())
    }

    fn visit(&mut self, reference: usize) -> Checked {
        type Node = stored::Node<'static>;
        let node = self.checker.enter(reference)?;
        let name = self.text(node, Node::VT_NAME)?;
        let data = self.checker.union(node, Node::VT_DATA_TYPE, Node::VT_DATA)?;
        if let Some((tag, data)) = data {
            match stored::NodeKind(tag) {
                stored::NodeKind::OperatorNode => self.operator(data)?,
                stored::NodeKind::ConstantNode => self.constant(name, data)?,
                stored::NodeKind::ValueNode => self.value(data)?,
                _ => self.unknown("node", tag, data)?,
            }
        }
        self.look_beyond(node, behind(Node::VT_DATA));
        self.checker.leave();
        Ok(())
    }

    fn operator(&mut self, reference: usize) -> Checked {
        type Operator = stored::OperatorNode<'static>;
        let operator = self.checker.enter(reference)?;
        if let Some(operator_type) = self.checker.field(operator, Operator::VT_TYPE_)? {
            self.checker.read::<1>(operator_type)?;
        }
        let attributes =
            self.checker.union(operator, Operator::VT_ATTRS_TYPE, Operator::VT_ATTRS)?;
        if let Some((tag, attributes)) = attributes {
            Attributes::check(tag, attributes, self)?;
        }
        for ids in [Operator::VT_INPUTS, Operator::VT_OUTPUTS] {
            self.words(operator, ids)?;
        }
        self.look_beyond(operator, behind(Operator::VT_OUTPUTS));
        self.checker.leave();
        Ok(())
    }

    fn constant(&mut self, name: Option<Extent>, reference: usize) -> Checked {
        type Constant = stored::ConstantNode<'static>;
        let constant = self.checker.enter(reference)?;
        let shape = self.checker.required(constant, Constant::VT_SHAPE, "shape")?;
        let shape = self.checker.vector::<4>(shape)?;
        let data = self.checker.union(constant, Constant::VT_DATA_TYPE, Constant::VT_DATA)?;
        let data = match data {
            Some((tag, data)) => self.inline(tag, data)?,
            None => None,
        };
        let dtype = match self.checker.field(constant, Constant::VT_DTYPE)? {
            Some(dtype) => Some(u16::from_le_bytes(self.checker.read(dtype)?)),
            None => None,
        };
        let data_offset = match self.checker.field(constant, Constant::VT_DATA_OFFSET)? {
            Some(offset) => Some(u64::from_le_bytes(self.checker.read(offset)?)),
            None => None,
        };
        self.look_beyond(constant, behind(Constant::VT_DATA_OFFSET));
        self.checker.leave();
        let (scope, node) = self.node.ok_or_else(|| missing("node", constant))?;
        let dtype = dtype.map(ConstantDataType::from_code);
        self.constants.push(Entry { scope, node, name, shape, dtype, data, data_offset });
        Ok(())
    }

    fn inline(&mut self, tag: u8, reference: usize) -> Checked<Option<Inline>> {
        let dtype = match stored::ConstantData(tag) {
            stored::ConstantData::FloatData => DType::F32,
            stored::ConstantData::Int32Data => DType::I32,
            stored::ConstantData::Int8Data => DType::I8,
            stored::ConstantData::UInt8Data => DType::U8,
            _ => {
                self.unknown("constant data", tag, reference)?;
                return Ok((tag != 0).then_some(Inline::Unknown(tag)));
            }
        };
        let table = self.checker.enter(reference)?;
        // All four tables have one field of one id.
        let data = self.checker.required(table, stored::FloatData::VT_DATA, "data")?;
        let elements = match dtype {
            DType::F32 | DType::I32 => self.checker.vector::<4>(data)?,
            _ => self.checker.vector::<1>(data)?,
        };
        self.look_beyond(table, behind(stored::FloatData::VT_DATA));
        self.checker.leave();
        Ok(Some(Inline::Elements(dtype, elements)))
    }

    fn value(&mut self, reference: usize) -> Checked {
        type Value = stored::ValueNode<'static>;
        type Dim = stored::Dim<'static>;
        let value = self.checker.enter(reference)?;
        if let Some(shape) = self.checker.field(value, Value::VT_SHAPE)? {
            for dim in self.checker.tables(shape)? {
                let dim = self.checker.enter(dim)?;
                if let Some(value) = self.checker.field(dim, Dim::VT_VALUE)? {
                    self.checker.read::<4>(value)?;
                }
                self.text(dim, Dim::VT_NAME)?;
                self.look_beyond(dim, behind(Dim::VT_NAME));
                self.checker.leave();
            }
        }
        if let Some(dtype) = self.checker.field(value, Value::VT_DTYPE)? {
            self.checker.read::<1>(dtype)?;
        }
        self.look_beyond(value, behind(Value::VT_DTYPE));
        self.checker.leave();
        Ok(())
    }

    fn text(&mut self, table: Fields<'_>, field: u16) -> Checked<Option<Extent>> {
        match self.checker.field(table, field)? {
            Some(text) => self.checker.text(text).map(Some),
            None => Ok(None),
        }
    }

    fn words(&mut self, table: Fields<'_>, field: u16) -> Checked<Option<Extent>> {
        match self.checker.field(table, field)? {
            Some(words) => self.checker.vector::<4>(words).map(Some),
            None => Ok(None),
        }
    }
}

impl Entry {
    pub(crate) fn name<'a>(&self, model_data: &'a [u8]) -> Option<&'a [u8]> {
        self.name?.slice(model_data)
    }

    pub(crate) fn dims<'a>(
        &self,
        model_data: &'a [u8],
    ) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let shape = self.shape.slice(model_data).unwrap_or_default();
        let (dims, _) = shape.as_chunks();
        dims.iter().map(|dim| u32::from_le_bytes(*dim))
    }
}

/// Returns the field behind the last one that is known.
const fn behind(last: VOffsetT) -> VOffsetT {
    last.saturating_add(2)
}

/// The fields of the table of metadata, all texts.
const METADATA: [u16; 8] = {
    type Metadata = stored::Metadata<'static>;
    [
        Metadata::VT_ONNX_HASH,
        Metadata::VT_DESCRIPTION,
        Metadata::VT_LICENSE,
        Metadata::VT_COMMIT,
        Metadata::VT_CODE_REPOSITORY,
        Metadata::VT_MODEL_REPOSITORY,
        Metadata::VT_RUN_ID,
        Metadata::VT_RUN_URL,
    ]
};

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, fs};

    use bytes::Bytes;
    use flatbuffers::VerifierOptions;
    use proptest::{prelude::ProptestConfig, proptest};
    use tensor_core::Limits;
    use test_support::{files, mutations, truncations};

    use super::*;
    use crate::{
        Constant, ConstantData, Graph, Model, Node, NodeKind, Operator, OperatorType, Reader,
        Value, attributes::LoopAttrs, read::model_data::bounds,
    };

    /// Returns the model data of every valid file.
    fn samples() -> impl Iterator<Item = Bytes> {
        files("rten/valid", "rten").into_iter().map(|path| {
            let reader = Reader::from_bytes(fs::read(path).unwrap()).unwrap();
            reader.source().read(reader.model_data(), "model data").unwrap()
        })
    }

    fn model_of(nodes: Vec<Node>) -> Model {
        Model { graph: Graph { nodes, ..Graph::default() }, metadata: None }
    }

    fn operator_with(attributes: Attributes) -> NodeKind {
        NodeKind::Operator(Operator {
            operator_type: OperatorType::Identity,
            attributes: Some(attributes),
            inputs: vec![Some(0), None],
            outputs: vec![Some(1)],
        })
    }

    /// Tells whether the verifier of the crate `flatbuffers` accepts model data.
    fn is_verified(model_data: &[u8], bounds: Bounds) -> bool {
        let options = VerifierOptions {
            max_depth: bounds.depth,
            max_tables: bounds.tables,
            max_apparent_size: bounds.apparent_size,
            ignore_missing_null_terminator: false,
        };
        stored::root_as_model_with_opts(&options, model_data).is_ok()
    }

    /// Tells whether an error is about what the verifier does not look at.
    fn is_own(error: &Error) -> bool {
        match error {
            Error::SchemaVersion { .. } | Error::UnknownTable { .. } => true,
            Error::Malformed { fault } => matches!(
                fault.problem(),
                Problem::NoOffset | Problem::VtableLength { .. } | Problem::TableLength { .. }
            ),
            _ => false,
        }
    }

    /// Asserts that model data is refused that the verifier of the crate `flatbuffers` refuses, or
    /// else for a reason that it does not know, and that the index has in it what the model has.
    #[track_caller]
    fn agree(model_data: &[u8]) {
        let limits = Limits::default();
        // A buffer of its own, which ends where the model data does.
        let model_data: Box<[u8]> = model_data.into();
        let bounds = bounds(model_data.len(), &limits);
        let index = Index::new(&model_data, bounds);
        let verified = is_verified(&model_data, bounds);
        let index = match index {
            Ok(index) => index,
            Err(error) if verified => return assert!(is_own(&error), "{error}"),
            Err(_) => return,
        };
        assert!(verified);
        let model_data = Bytes::from(model_data);
        let model = Model::parse(model_data.clone(), &limits).unwrap();
        let mut entries: VecDeque<_> = index.constants.iter().collect();
        let scopes = topology::walk(&model.graph, |scope, id, node| {
            if let NodeKind::Constant(constant) = &node.kind {
                let entry = entries.pop_front().unwrap();
                assert_eq!((entry.scope, entry.node), (scope, id));
                assert_eq!(entry.name(&model_data), node.name.as_deref().map(str::as_bytes));
                assert_constant(entry, constant, &model_data);
            }
        });
        assert!(entries.is_empty());
        let paths = index.places.iter().map(|place| place.path.as_str());
        assert!(paths.eq(scopes.iter().map(topology::Scope::path)));
    }

    #[track_caller]
    fn assert_constant(entry: &Entry, constant: &Constant, model_data: &[u8]) {
        assert!(entry.dims(model_data).eq(constant.shape.iter().copied()));
        assert_eq!((entry.dtype, entry.data_offset), (constant.dtype, constant.data_offset));
        match (entry.data, &constant.data) {
            (None, None) => {}
            (Some(Inline::Unknown(tag)), Some(ConstantData::Unknown(table))) => {
                assert_eq!(tag, table.tag());
            }
            (Some(Inline::Elements(dtype, extent)), Some(data)) => {
                assert_eq!(Some(dtype), data.dtype());
                assert_eq!(extent.slice(model_data), data.bytes().map(Bytes::as_ref));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_are_indexed_as_they_are_read() {
        for model_data in samples() {
            agree(&model_data);
            Index::new(&model_data, bounds(model_data.len(), &Limits::default())).unwrap();
        }
    }

    #[test]
    fn cut_and_changed_files() {
        for model_data in samples().filter(|model_data| model_data.len() < 1000) {
            truncations(&model_data, agree);
            mutations(&model_data, agree);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn changed_attributes(attributes in Attributes::any()) {
            let node = Node::named("operator", operator_with(attributes));
            let model_data = model_of(vec![node]).to_bytes().unwrap();
            agree(&model_data);
            mutations(&model_data, agree);
        }
    }

    #[test]
    fn changed_unknown_tables() {
        let value = Node::named("value", Value::default());
        let data = Some(ConstantData::Int8(vec![1, 2, 3].into()));
        let constant = Constant { shape: vec![3], dtype: None, data, data_offset: None };
        let body = Graph { nodes: vec![Node::named("inner", constant)], ..Graph::default() };
        let body = Some(Box::new(body));
        let body = Node::named("loop", operator_with(LoopAttrs { body }.into()));
        let model_data = model_of(vec![value, body]).to_bytes().unwrap();
        // Among the changes are those of tags to numbers that stand for nothing.
        mutations(&model_data, agree);
    }

    /// Builds model data whose root has a field that nobody knows, as a later release may add it.
    fn with_a_field_more() -> Vec<u8> {
        let mut fbb = flatbuffers::FlatBufferBuilder::new();
        let graph = stored::Graph::create(&mut fbb, &stored::GraphArgs::default());
        let root = fbb.start_table();
        fbb.push_slot_always::<i32>(stored::Model::VT_SCHEMA_VERSION, SCHEMA_VERSION);
        fbb.push_slot_always(stored::Model::VT_GRAPH, graph);
        fbb.push_slot_always::<u32>(behind(stored::Model::VT_METADATA), 7);
        let root = fbb.end_table(root);
        fbb.finish(root, None);
        fbb.finished_data().to_vec()
    }

    #[test]
    fn fields_of_later_releases_are_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.rten");
        let file = with_a_field_more();
        fs::write(&path, &file).unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.unknown_fields(), Some((1, "model".to_owned())));
        assert_eq!(reader.required_release(), None);
        let rules: Vec<_> = reader.validate().findings().iter().map(|f| f.rule.clone()).collect();
        assert_eq!(rules, ["rten/unknown-field"]);
        let message = "1 tables have fields of a later release, which would be lost, the first one \
                       at model";
        let rewritten = crate::Rewrite::new(&reader).write_v2(Vec::new());
        assert_eq!(rewritten.unwrap_err().to_string(), message);
        let mut editor = crate::Editor::open(&path).unwrap();
        editor.model_mut().metadata = Some(crate::Metadata::default());
        assert_eq!(editor.commit().unwrap_err().to_string(), message);
        // What keeps its bytes loses nothing.
        assert_eq!(crate::Rewrite::new(&reader).to_v1_bytes().unwrap(), file);
        crate::Rewrite::new(&reader).write_wrapped(Vec::new()).unwrap();
    }

    /// Returns the least number that is accepted.
    fn least(accepts: impl Fn(usize) -> bool) -> usize {
        let mut range = 0..1_usize << 31;
        while range.start < range.end {
            let middle = range.start.midpoint(range.end);
            if accepts(middle) { range.end = middle } else { range.start = middle + 1 }
        }
        range.start
    }

    #[test]
    fn limits_are_those_of_the_verifier() {
        type Set = fn(&mut Bounds, usize);
        let set: [Set; 3] = [
            |bounds, limit| bounds.tables = limit,
            |bounds, limit| bounds.depth = limit,
            |bounds, limit| bounds.apparent_size = limit,
        ];
        for model_data in samples() {
            for set in set {
                let bounds = |limit| {
                    let mut bounds = Bounds::default();
                    set(&mut bounds, limit);
                    bounds
                };
                let verified = least(|limit| is_verified(&model_data, bounds(limit)));
                let indexed = least(|limit| Index::new(&model_data, bounds(limit)).is_ok());
                assert_eq!(indexed, verified);
            }
        }
    }
}
