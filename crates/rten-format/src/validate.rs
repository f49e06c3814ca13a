//! What opening does not prove, as a report.
//!
//! An error is what RTen refuses, when it loads a model or at the latest when it plans a run, and
//! what says something that is not so. A warning is what it tolerates.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use tensor_core::{
    At, Chain, DType, Extent, Finding, Report, Severity, Source, Verified, text::short,
};

use crate::{
    AttributeValue, Attributes, AttributesType, AttributesUse, AutoPad, Constant, ConstantData,
    DataType, Dim, Error, Graph, Header, Metadata, Model, Node, NodeKind, Operator, OperatorInfo,
    OperatorType, Reader, Result, Tensor, Value,
    attributes::{AveragePoolAttrs, MaxPoolAttrs},
    topology::{Scope, Topology, node},
    types::{Clash, Contradiction, Kinds, Misfit, Scopes},
    write::MAX_ALIGNMENT,
};

impl Model {
    /// Reports every fault of the graphs and of the metadata.
    ///
    /// Where constants lie and how many bytes they have is for [`Reader::lint`] to tell.
    #[must_use]
    pub fn lint(&self) -> Report {
        let mut report = Report::default();
        model(self, &mut report);
        report
    }
}

impl Reader {
    /// Reads everything and reports every fault: what [`lint`](Self::lint) reports, and constants
    /// that cannot be read. The format has no digests that could be compared.
    ///
    /// Memory does not grow with the size of the constants. What constants share is read once.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many bytes were done each time a
    /// constant is.
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        let mut report = self.lint();
        progress(self.model_data().end());
        // What has no place in the file was reported already.
        let placed = self.tensors().filter(|tensor| tensor.is_external());
        let mut tensors: Vec<(Extent, Tensor<'_>)> =
            placed.filter_map(|tensor| Some((tensor.place().ok()?, tensor))).collect();
        tensors.sort_by_key(|(extent, _)| *extent);
        let mut end = 0;
        for (extent, tensor) in tensors {
            let rest = Extent::between(extent.offset().max(end), extent.end());
            if let Err(error) = read(self.source(), rest) {
                let at = place(tensor).offset(error.at().offset);
                report.add(Finding::error("rten/read", Chain(&error).to_string()).at(at));
            }
            end = end.max(extent.end());
            progress(rest.len());
        }
        report
    }

    /// Reports what can be said without reading a constant in the tensor data: see [`Model::lint`],
    /// and for the file itself where its parts and constants lie, whether they fit their shapes, and
    /// what stands between them.
    ///
    /// It takes as long however large the constants are.
    #[must_use]
    pub fn lint(&self) -> Report {
        let mut report = self.model().lint();
        if let Some((tables, path)) = self.unknown_fields() {
            let message = format!(
                "{tables} tables have fields of a later release, which this crate does not know"
            );
            report.add(Finding::warning("rten/unknown-field", message).path(path));
        }
        let parts = constants(self, &mut report);
        if let Some(header) = self.header() {
            container(self, header, parts, &mut report);
        }
        report
    }
}

impl Tensor<'_> {
    /// Reads all of its bytes, in memory that does not grow with them.
    ///
    /// The format has no digests, so all that this proves is that the bytes are there.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn verify(self) -> Result<Verified> {
        read(self.reader().source(), self.place()?)?;
        Ok(Verified::NoDigest)
    }
}

/// Reads bytes, and drops them.
fn read(source: &Source, extent: Extent) -> tensor_core::Result<()> {
    let mut stream = source.stream(extent, "tensor data")?;
    let copied = io::copy(&mut stream, &mut io::sink());
    let (what, offset) = ("tensor data", extent.offset());
    copied.map_err(|source| tensor_core::Error::Read { what, offset, source })?;
    Ok(())
}

fn model(model: &Model, report: &mut Report) {
    if let Some(metadata) = &model.metadata {
        check_metadata(metadata, report);
    }
    let scopes = Scopes::of(model);
    let topology = scopes.topology();
    let mut tables = 1_u64.saturating_add(model.metadata.is_some().into());
    for index in 0..topology.scopes().len() {
        let Some(scope) = topology.scopes().get(index) else { break };
        let mut check = Check { topology, index, scope, report: &mut *report };
        check.run();
        tables = tables.saturating_add(table_count(scope.graph()));
    }
    element_types(&scopes, report);
    if tables > MAX_TABLES {
        let message = format!("model data has {tables} tables, but RTen reads up to {MAX_TABLES}");
        report.add(Finding::warning("rten/table-count", message));
    }
}

/// Reports operators whose element types cannot be those of the rest of the model.
fn element_types(scopes: &Scopes<'_>, report: &mut Report) {
    let (_, contradictions) = Kinds::infer(scopes);
    for Contradiction { scope, id, operator, what, misfit } in contradictions {
        let message = match misfit {
            Misfit::Kind(Clash { found, expected }) => {
                format!("has {what} of element type {found}, but {operator} needs {expected}")
            }
            Misfit::Form(Clash { found, expected }) => {
                let (found, expected) = (found.name(), expected.name());
                format!("has {what} that is a {found}, but {operator} needs a {expected}")
            }
        };
        let at = At::file().path(scopes.node_path(scope, id));
        report.add(Finding::warning("rten/element-type", message).at(at));
    }
}

fn check_metadata(metadata: &Metadata, report: &mut Report) {
    let Some(hash) = &metadata.onnx_hash else { return };
    let is_hex = hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if hash.len() != 64 || !is_hex {
        let message = format!(
            "onnx_hash is {:?}, expected a SHA-256 in 64 lower-case hex digits",
            short(hash)
        );
        report.add(Finding::warning("rten/onnx-hash", message).path("metadata"));
    }
}

/// Returns how many dimensions a value or constant has, where the file says.
fn rank(node: &Node) -> Option<usize> {
    match &node.kind {
        NodeKind::Value(value) => value.shape.as_ref().map(Vec::len),
        NodeKind::Constant(constant) => Some(constant.shape.len()),
        _ => None,
    }
}

/// Counts the tables that the verifier of RTen looks at, those of subgraphs not included.
fn table_count(graph: &Graph) -> u64 {
    graph.nodes.iter().fold(1, |count: u64, node| {
        let more = match &node.kind {
            NodeKind::Operator(operator) => match &operator.attributes {
                None | Some(Attributes::Unknown(_)) => 2,
                Some(Attributes::ConstantOfShape(_)) => 4,
                Some(_) => 3,
            },
            NodeKind::Constant(constant) => match &constant.data {
                None | Some(ConstantData::Unknown(_)) => 2,
                Some(_) => 3,
            },
            NodeKind::Value(value) => {
                let dims = value.shape.as_ref().map_or(0, Vec::len);
                2_u64.saturating_add(dims as u64)
            }
            NodeKind::Unknown(_) | NodeKind::Missing => 1,
        };
        count.saturating_add(more)
    })
}

/// The check of one graph.
struct Check<'t, 'a> {
    topology: &'t Topology<'a>,
    index: usize,
    scope: &'t Scope<'a>,
    report: &'t mut Report,
}

impl<'a> Check<'_, 'a> {
    fn run(&mut self) {
        let graph = self.scope.graph();
        if self.scope.depth() > MAX_DEPTH {
            let message = format!(
                "graph is {} levels below the main one, but RTen reads up to {MAX_DEPTH}",
                self.scope.depth()
            );
            self.at_graph(Severity::Error, "rten/subgraph-depth", message);
        }
        self.ids("inputs", &graph.inputs);
        self.ids("outputs", &graph.outputs);
        self.ids("captures", &graph.captures);
        let mut names: HashMap<&str, u32> = HashMap::new();
        let listed = Listed {
            inputs: graph.inputs.iter().copied().collect(),
            outputs: graph.outputs.iter().copied().collect(),
            captures: graph.captures.iter().copied().collect(),
            needed: self.needed(),
        };
        for (id, node) in (0..).zip(&graph.nodes) {
            match &node.kind {
                NodeKind::Operator(operator) => self.operator(id, operator, &listed),
                NodeKind::Constant(constant) => {
                    self.name(id, node, &mut names);
                    self.constant(id, constant);
                    self.constant_use(id, &listed);
                }
                NodeKind::Value(value) => {
                    self.name(id, node, &mut names);
                    self.value(id, value, &listed);
                    self.value_use(id, &listed);
                }
                NodeKind::Unknown(table) => {
                    let message = format!(
                        "is of unknown type {}, expected an operator (1), a constant (2) or a \
                         value (3)",
                        table.tag()
                    );
                    self.at_node(id, Severity::Error, "rten/node-type", message);
                }
                NodeKind::Missing => {
                    let message = "is empty, expected an operator, a constant or a value";
                    self.at_node(id, Severity::Error, "rten/node-type", message.to_owned());
                }
            }
        }
        self.captures(&listed);
        self.cycle();
    }

    /// Checks a list of ids of the graph itself.
    fn ids(&mut self, list: &str, ids: &[u32]) {
        let mut seen = HashSet::new();
        for (at, &id) in ids.iter().enumerate() {
            let kind = node(self.scope.graph(), id).map(|node| &node.kind);
            let fault = match kind {
                None => Some((Severity::Error, "rten/node-id", self.no_node(id))),
                Some(NodeKind::Value(_)) => None,
                Some(NodeKind::Constant(_)) if list != "captures" => None,
                Some(NodeKind::Constant(_)) => {
                    // RTen's converter lists some of them, which has no effect.
                    let message = format!("node {id}, a constant, which is there already");
                    Some((Severity::Note, "rten/captured-constant", message))
                }
                Some(kind) => {
                    let message = format!("node {id}, {}, expected a value", describe(kind));
                    Some((Severity::Error, "rten/id-kind", message))
                }
            };
            if let Some((severity, rule, fault)) = fault {
                self.at_graph(severity, rule, format!("{list}[{at}] is {fault}"));
            }
            if !seen.insert(id) {
                let severity = if list == "outputs" { Severity::Error } else { Severity::Warning };
                let message = format!("{list}[{at}] is node {id}, which is listed before");
                self.at_graph(severity, "rten/id-twice", message);
            }
        }
    }

    /// Describes an id that no node has.
    fn no_node(&self, id: u32) -> String {
        if id > i32::MAX.unsigned_abs() {
            return format!("node {id}, over the limit of the format, {}", i32::MAX);
        }
        format!("node {id}, but the graph has {} nodes", self.scope.graph().nodes.len())
    }

    fn name(&mut self, id: u32, node: &'a Node, names: &mut HashMap<&'a str, u32>) {
        let Some(name) = node.name.as_deref().filter(|name| !name.is_empty()) else { return };
        if let Some(before) = names.insert(name, id) {
            let message =
                format!("has the name of node {before}; by its name only the last one is found");
            self.at_node(id, Severity::Warning, "rten/duplicate-name", message);
        }
    }

    fn operator(&mut self, id: u32, operator: &'a Operator, listed: &Listed) {
        match operator.operator_type.info() {
            None => {
                let message = format!(
                    "has operator type {}, expected 0 to {}",
                    operator.operator_type.code(),
                    OperatorType::ALL.len().saturating_sub(1)
                );
                self.at_node(id, Severity::Error, "rten/operator-type", message);
            }
            Some(info) => self.against_info(id, operator, info, listed),
        }
        for (field, value) in operator.attributes.iter().flat_map(Attributes::fields) {
            if let AttributeValue::Enum { of, name: None, code } = value {
                self.unknown_enum(id, field, of, code);
            }
        }
        for (list, ids) in [("inputs", &operator.inputs), ("outputs", &operator.outputs)] {
            for (at, other) in ids.iter().enumerate() {
                if let Some(other) = *other {
                    self.link(id, list, at, other);
                }
            }
        }
        self.softmax(id, operator);
        self.window(id, operator);
        self.branches(id, operator);
        let mut outputs = operator.outputs.iter().flatten().peekable();
        if outputs.peek().is_some() && !outputs.any(|output| self.is_read(*output, listed)) {
            let message = "makes nothing that is read".to_owned();
            self.at_node(id, Severity::Note, "rten/unused", message);
        }
    }

    fn against_info(&mut self, id: u32, operator: &Operator, info: &OperatorInfo, listed: &Listed) {
        let found = operator.attributes.as_ref().map(Attributes::attributes_type);
        if found != info.attributes.attributes_type() {
            let shown = found.map_or_else(|| "none".to_owned(), table_name);
            let (name, wanted) = (info.name, info.attributes.attributes_type().map(table_name));
            match (info.attributes, wanted) {
                (AttributesUse::Required(_), Some(wanted)) => {
                    let message = format!("has attributes {shown}, but {name} needs {wanted}");
                    self.at_node(id, Severity::Error, "rten/attributes", message);
                }
                _ if found.is_some() => {
                    let message = format!("has attributes {shown}, which {name} ignores");
                    self.at_node(id, Severity::Warning, "rten/attributes-ignored", message);
                }
                _ => {}
            }
        }
        let inputs = operator.inputs.len();
        if let Some(max) = info.max_inputs
            && inputs as u64 > u64::from(max)
        {
            let message = format!("has {inputs} inputs, but {} takes up to {max}", info.name);
            self.at_node(id, Severity::Error, "rten/too-many-inputs", message);
        }
        let is_left_out = |index: &u32| {
            let index = usize::try_from(*index).ok();
            index.and_then(|index| operator.inputs.get(index)).is_none_or(Option::is_none)
        };
        // RTen does not run what no output needs, and takes out outputs that nothing reads.
        let is_run = operator.outputs.iter().flatten().any(|output| listed.needed.contains(output));
        if let Some(index) = (0..info.min_inputs).find(|index| is_run && is_left_out(index)) {
            let message = format!("has no input {index}, without which {} cannot run", info.name);
            self.at_node(id, Severity::Warning, "rten/missing-input", message);
        }
        let is_read = |output: &Option<u32>| output.is_some_and(|id| self.is_read(id, listed));
        let made = operator.outputs.iter().rposition(is_read);
        if let Some((max, last)) = info.max_outputs.zip(made)
            && last as u64 >= u64::from(max)
        {
            let message = format!("has an output {last}, but {} makes {max}", info.name);
            self.at_node(id, Severity::Warning, "rten/too-many-outputs", message);
        }
    }

    /// Reports a number of no meaning, as gravely as RTen takes it.
    fn unknown_enum(&mut self, id: u32, field: &str, of: &'static str, code: u16) {
        let (severity, reaction) = match of {
            "RNNDirection" | "ResizeMode" | "NearestMode" | "CoordTransformMode"
            | "NMSBoxOrder" => (Severity::Warning, "which RTen takes for another one"),
            "AutoPad" => (Severity::Warning, "which RTen takes for no padding"),
            _ => (Severity::Error, "which RTen refuses"),
        };
        let message = format!("has attribute {field} of unknown {of} {code}, {reaction}");
        self.at_node(id, severity, "rten/unknown-number", message);
    }

    /// Checks one id of an operator.
    fn link(&mut self, id: u32, list: &str, at: usize, other: u32) {
        if other >= id {
            let known = node(self.scope.graph(), other).is_some();
            let (rule, fault) = if known {
                ("rten/order", format!("node {other}, expected one before the operator"))
            } else {
                ("rten/node-id", self.no_node(other))
            };
            self.at_node(id, Severity::Error, rule, format!("has {list}[{at}] that is {fault}"));
        }
        let kind = node(self.scope.graph(), other).map(|node| &node.kind);
        let (severity, expected) = match (kind, list) {
            (None | Some(NodeKind::Value(_)), _) | (Some(NodeKind::Constant(_)), "inputs") => {
                return;
            }
            (Some(NodeKind::Constant(_)), _) => (Severity::Warning, "a value"),
            (_, "inputs") => (Severity::Error, "a value or a constant"),
            _ => (Severity::Error, "a value"),
        };
        let found = kind.map_or("nothing", describe);
        let message =
            format!("has {list}[{at}] that is node {other}, {found}, expected {expected}");
        self.at_node(id, severity, "rten/id-kind", message);
    }

    /// Notes an axis that converters up to 0.22.0 write where the original has none, which stands for
    /// the last one there.
    fn softmax(&mut self, id: u32, operator: &Operator) {
        let (OperatorType::Softmax | OperatorType::LogSoftmax, Some(Attributes::Softmax(table))) =
            (operator.operator_type, &operator.attributes)
        else {
            return;
        };
        let ends = operator.inputs.first().into_iter().chain(operator.outputs.first());
        let ranks = ends.flatten().filter_map(|id| rank(node(self.scope.graph(), *id)?));
        if let Some(rank) = ranks.max()
            && table.axis == 0
            && rank > 1
        {
            let message = format!(
                "has axis 0 of a tensor of rank {rank}, which converters up to 0.22.0 write for a \
                 missing axis: the last one"
            );
            self.at_node(id, Severity::Note, "rten/softmax-axis", message);
        }
    }

    /// Checks that the lists of a convolution or pooling have as many numbers as its window, which RTen
    /// finds out when it runs.
    fn window(&mut self, id: u32, operator: &Operator) {
        // Kernels lie behind two dimensions of channels; one that is no constant may be of any rank.
        let kernel = || {
            let id = (*operator.inputs.get(1)?)?;
            let NodeKind::Constant(kernel) = &node(self.scope.graph(), id)?.kind else {
                return None;
            };
            kernel.shape.len().checked_sub(2)
        };
        let pads = |auto_pad, pads| (auto_pad == AutoPad::NotSet).then_some(pads).flatten();
        let (rank, lists) = match &operator.attributes {
            Some(
                Attributes::AveragePool(AveragePoolAttrs {
                    kernel_size,
                    auto_pad,
                    pads: sides,
                    strides,
                    ..
                })
                | Attributes::MaxPool(MaxPoolAttrs {
                    kernel_size,
                    auto_pad,
                    pads: sides,
                    strides,
                    ..
                }),
            ) => {
                let lists =
                    [("pads", pads(*auto_pad, sides.as_ref())), ("strides", strides.as_ref())];
                (Some(kernel_size.len()), lists.to_vec())
            }
            Some(Attributes::Conv(table)) => {
                let pads = pads(table.auto_pad, table.pads.as_ref());
                let (strides, dilations) = (table.strides.as_ref(), table.dilations.as_ref());
                (kernel(), vec![("pads", pads), ("strides", strides), ("dilations", dilations)])
            }
            Some(Attributes::ConvTranspose(table)) => {
                let pads = pads(table.auto_pad, table.pads.as_ref());
                let (strides, dilations) = (table.strides.as_ref(), table.dilations.as_ref());
                let output = ("output_padding", table.output_padding.as_ref());
                let lists =
                    [("pads", pads), ("strides", strides), ("dilations", dilations), output];
                (kernel(), lists.to_vec())
            }
            _ => return,
        };
        let Some(rank) = rank else { return };
        for (name, list) in lists {
            let Some(found) = list.map(Vec::len) else { continue };
            let expected = if name == "pads" { rank.saturating_mul(2) } else { rank };
            if found != expected {
                let message = format!(
                    "has {name} of {found} numbers, expected {expected} for a window of {rank} \
                     dimensions: RTen opens the model, and cannot run it"
                );
                self.at_node(id, Severity::Warning, "rten/window", message);
            }
        }
    }

    /// Checks the subgraphs of If and Loop.
    fn branches(&mut self, id: u32, operator: &Operator) {
        let (inputs, outputs) = (operator.inputs.len(), operator.outputs.len());
        let fields = operator.attributes.iter().flat_map(Attributes::fields);
        let names = ["then_branch", "else_branch", "body"];
        for (branch, value) in fields.filter(|(field, _)| names.contains(field)) {
            let AttributeValue::Graph(graph) = value else {
                let message = format!("has no {branch}, which RTen refuses");
                self.at_node(id, Severity::Error, "rten/branch-missing", message);
                continue;
            };
            // A body gets the number of the turn and the condition before what it carries on, and
            // returns the condition first.
            let (takes, gives) = match branch {
                "body" => (inputs, outputs.saturating_add(1)),
                _ => (0, outputs),
            };
            if graph.inputs.len() != takes {
                let found = graph.inputs.len();
                let message = format!("has a {branch} of {found} inputs, expected {takes}");
                self.at_node(id, Severity::Warning, "rten/branch", message);
            }
            if graph.outputs.len() < gives {
                let found = graph.outputs.len();
                let message =
                    format!("has a {branch} of {found} outputs, expected {gives} or more");
                self.at_node(id, Severity::Warning, "rten/branch", message);
            }
        }
    }

    fn constant(&mut self, id: u32, constant: &Constant) {
        let Constant { dtype, data, data_offset, .. } = constant;
        if data_offset.is_some() {
            if data.is_some() {
                let message = "has inline data and a data offset, which takes precedence";
                self.at_node(id, Severity::Warning, "rten/inline-and-external", message.to_owned());
            }
            return;
        }
        let (Some(dtype), Some(data)) = (dtype, data) else { return };
        let of_data = data.dtype();
        if of_data.is_some() && of_data != dtype.dtype() {
            let stored = of_data.map_or_else(String::new, |dtype| dtype.to_string());
            let message = format!("has dtype {dtype}, but its inline data is {stored}");
            self.at_node(id, Severity::Warning, "rten/dtype-mismatch", message);
        }
    }

    fn constant_use(&mut self, id: u32, listed: &Listed) {
        if self.topology.consumers(self.index, id).is_empty() && !listed.outputs.contains(&id) {
            self.at_node(id, Severity::Note, "rten/unused", "is read by nothing".to_owned());
        }
    }

    fn value(&mut self, id: u32, value: &Value, listed: &Listed) {
        if let Some(DataType::Unknown(code)) = value.dtype {
            let message = format!("has unknown dtype {code}, which RTen refuses");
            self.at_node(id, Severity::Error, "rten/unknown-number", message);
        }
        let dims = value.shape.as_deref().unwrap_or_default();
        if dims.len() > MAX_RANK {
            let message = format!("has rank {}, expected up to {MAX_RANK}", dims.len());
            self.at_node(id, Severity::Warning, "rten/rank", message);
        }
        let zero = dims.iter().position(|dim| *dim == Dim::Fixed(0));
        if let Some(dim) = zero
            && self.index == 0
            && listed.inputs.contains(&id)
        {
            let message = format!(
                "is an input whose dimension {dim} is fixed at 0: converters write that for an \
                 unknown one, and RTen since 0.25.0 takes only empty tensors for it"
            );
            self.at_node(id, Severity::Warning, "rten/fixed-zero-input", message);
        }
    }

    /// Checks who makes a value and who reads it.
    fn value_use(&mut self, id: u32, listed: &Listed) {
        let producers = self.topology.producers(self.index, id);
        let is_read = self.is_read(id, listed);
        let is_given = listed.inputs.contains(&id) || listed.captures.contains(&id);
        match producers {
            [] if !is_given && is_read => {
                let message = "is read, but nothing makes it: it is neither an input nor a capture";
                let (severity, message) = match listed.needed.contains(&id) {
                    true => (Severity::Error, message.to_owned()),
                    false => (Severity::Warning, format!("{message}; no output needs it")),
                };
                self.at_node(id, severity, "rten/undefined-value", message);
            }
            [] if !is_read => {
                let what = if listed.inputs.contains(&id) {
                    "is an input that nothing reads"
                } else if is_given {
                    "is a capture that nothing reads"
                } else {
                    "is made and read by nothing"
                };
                self.at_node(id, Severity::Note, "rten/unused", what.to_owned());
            }
            [first, .., last] => {
                let message = format!("is made by nodes {first} and {last}; the last one wins");
                self.at_node(id, Severity::Warning, "rten/two-producers", message);
            }
            _ => {}
        }
        if is_given && let [first, ..] = producers {
            let what = if listed.inputs.contains(&id) { "an input" } else { "a capture" };
            let message = format!("is {what}, but node {first} makes it");
            self.at_node(id, Severity::Warning, "rten/given-and-made", message);
        }
    }

    /// Returns the values and constants that the outputs of the graph are made of.
    fn needed(&self) -> HashSet<u32> {
        let mut needed: HashSet<u32> = HashSet::new();
        let mut operators: HashSet<u32> = HashSet::new();
        let mut left = self.scope.graph().outputs.clone();
        while let Some(id) = left.pop() {
            if !needed.insert(id) {
                continue;
            }
            for &operator in self.topology.producers(self.index, id) {
                if operators.insert(operator) {
                    left.extend(self.topology.reads(self.index, operator));
                }
            }
        }
        needed
    }

    fn is_read(&self, id: u32, listed: &Listed) -> bool {
        listed.outputs.contains(&id) || !self.topology.consumers(self.index, id).is_empty()
    }

    /// Checks that captured values are somewhere around the graph.
    fn captures(&mut self, listed: &Listed) {
        for &id in &self.scope.graph().captures {
            let kind = node(self.scope.graph(), id).map(|node| &node.kind);
            if !matches!(kind, Some(NodeKind::Value(_)))
                || self.topology.capture_source(self.index, id).is_some()
            {
                continue;
            }
            let is_read = self.is_read(id, listed);
            let severity = if is_read { Severity::Error } else { Severity::Warning };
            let message = match self.scope.parent() {
                None => "is captured, but nothing is around the main graph",
                Some(_) => "is captured, but no graph around has a value of its name",
            };
            self.at_node(id, severity, "rten/dangling-capture", message.to_owned());
        }
    }

    fn cycle(&mut self) {
        let cycle = self.topology.order(self.index).cycle;
        let Some(&first) = cycle.first() else { return };
        let mut through: Vec<String> = cycle.iter().take(SHOWN).map(u32::to_string).collect();
        if cycle.len() > SHOWN {
            through.push("…".to_owned());
        }
        let message = format!("waits for its own output, through nodes {}", through.join(", "));
        self.at_node(first, Severity::Error, "rten/cycle", message);
    }

    fn at_node(&mut self, id: u32, severity: Severity, rule: &'static str, message: String) {
        let finding = Finding::new(severity, rule, message);
        // Of what is only counted nobody sees the path: there may be millions.
        let is_listed = !self.report.is_full(rule);
        self.report.add(if is_listed { finding.path(self.scope.node_path(id)) } else { finding });
    }

    fn at_graph(&mut self, severity: Severity, rule: &'static str, message: String) {
        self.report.add(Finding::new(severity, rule, message).path(self.scope.path()));
    }
}

/// What a graph lists.
struct Listed {
    inputs: HashSet<u32>,
    outputs: HashSet<u32>,
    captures: HashSet<u32>,
    /// What outputs are made of.
    needed: HashSet<u32>,
}

fn describe(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Operator(_) => "an operator",
        NodeKind::Constant(_) => "a constant",
        NodeKind::Value(_) => "a value",
        NodeKind::Unknown(_) => "of unknown type",
        NodeKind::Missing => "empty",
    }
}

fn table_name(table: AttributesType) -> String {
    table.name().map_or_else(|| format!("of unknown type {}", table.code()), str::to_owned)
}

/// Checks all constants; returns where those are that lie in the tensor data.
fn constants(reader: &Reader, report: &mut Report) -> Vec<(Extent, usize)> {
    let mut external = Vec::new();
    for (index, tensor) in reader.tensors().enumerate() {
        let extent = match tensor.place() {
            Ok(extent) => extent,
            Err(error) => {
                report.add(unplaced(tensor, &error));
                continue;
            }
        };
        if tensor.is_external() && !extent.is_empty() {
            alignment(tensor, extent, report);
            external.push((extent, index));
        }
    }
    external
}

/// Says why a constant cannot be read. The place of it is not said again.
fn unplaced(tensor: Tensor<'_>, error: &Error) -> Finding {
    let message = match error {
        Error::Constant { fault, .. } => Chain(fault).to_string(),
        error => Chain(error).to_string(),
    };
    Finding::error(error.rule(), message).at(place(tensor).offset(error.at().offset))
}

fn alignment(tensor: Tensor<'_>, extent: Extent, report: &mut Report) {
    let width = tensor.info().ok().and_then(|info| DType::width(info.dtype)).unwrap_or(1);
    let (severity, boundary) = match extent.offset() {
        offset if !offset.is_multiple_of(width) => (Severity::Warning, width),
        offset if !offset.is_multiple_of(ALIGNMENT) => (Severity::Note, ALIGNMENT),
        _ => return,
    };
    let message = format!("tensor at byte {} is not on a multiple of {boundary}", extent.offset());
    let at = place(tensor).offset(extent.offset());
    report.add(Finding::new(severity, "rten/tensor-misaligned", message).at(at));
}

fn place(tensor: Tensor<'_>) -> At {
    let at = At::file().path(tensor.path());
    match tensor.name() {
        Some(name) => at.tensor(short(name)),
        None => at,
    }
}

/// Checks how the parts of a file of version 2 lie.
fn container(
    reader: &Reader,
    header: &Header,
    mut tensors: Vec<(Extent, usize)>,
    report: &mut Report,
) {
    let Header { model_data, tensor_data_offset } = *header;
    let at_header = || At::file().path("header").offset(24);
    let inside = Extent::between(tensor_data_offset, tensor_data_offset.saturating_add(1));
    if model_data.overlaps(inside) {
        let message = format!(
            "tensor data starts at byte {tensor_data_offset}, inside the model data, {} bytes at \
             byte {}",
            model_data.len(),
            model_data.offset()
        );
        report.add(Finding::warning("rten/segment-overlap", message).at(at_header()));
    }
    if !model_data.offset().is_multiple_of(TABLES) {
        let message = format!(
            "model data starts at byte {}, which is not a multiple of {TABLES}",
            model_data.offset()
        );
        report.add(Finding::note("rten/segment-misaligned", message).at(at_header()));
    }
    if !tensor_data_offset.is_multiple_of(ALIGNMENT) {
        let message = format!(
            "tensor data starts at byte {tensor_data_offset}, which is not a multiple of {ALIGNMENT}"
        );
        report.add(Finding::note("rten/segment-misaligned", message).at(at_header()));
    }
    tensors.sort_unstable();
    overlaps(reader, model_data, &tensors, report);
    let mut parts: Vec<Extent> = tensors.into_iter().map(|(extent, _)| extent).collect();
    parts.extend([Extent::first(Header::LEN), model_data]);
    parts.sort_unstable();
    gaps(reader, &parts, report);
}

/// Reports tensors that share bytes: a note where they are the same, a warning where they are not.
fn overlaps(reader: &Reader, model_data: Extent, tensors: &[(Extent, usize)], report: &mut Report) {
    let handles: Vec<Tensor<'_>> = reader.tensors().collect();
    // The tensor that reaches furthest so far.
    let mut widest: Option<(Extent, usize)> = None;
    for &(extent, index) in tensors {
        let Some(&tensor) = handles.get(index) else { continue };
        let at = || place(tensor).offset(extent.offset());
        let (offset, len) = (extent.offset(), extent.len());
        if extent.overlaps(model_data) {
            let message = format!("tensor of {len} bytes at byte {offset} overlaps the model data");
            report.add(Finding::warning("rten/tensor-overlap", message).at(at()));
        }
        if let Some((before, owner)) = widest
            && before.overlaps(extent)
            && let Some(other) = handles.get(owner)
        {
            let other = other.path();
            if before == extent {
                let message = format!("tensor has the bytes of {other}");
                report.add(Finding::note("rten/tensor-shared", message).at(at()));
            } else {
                let message = format!(
                    "tensor of {len} bytes at byte {offset} overlaps {other}, {} bytes at byte {}",
                    before.len(),
                    before.offset()
                );
                report.add(Finding::warning("rten/tensor-overlap", message).at(at()));
            }
        }
        if widest.is_none_or(|(before, _)| extent.end() > before.end()) {
            widest = Some((extent, index));
        }
    }
}

/// Reports bytes that belong to nothing, and padding that is not zero. Only what is short enough to
/// be padding is read.
fn gaps(reader: &Reader, parts: &[Extent], report: &mut Report) {
    let mut end = 0;
    for part in parts {
        let start = part.offset();
        // Writers may align tensors to more than RTen's converter does.
        let boundary = 1_u64.checked_shl(start.trailing_zeros()).unwrap_or(ALIGNMENT);
        let boundary = boundary.clamp(ALIGNMENT, MAX_ALIGNMENT.into());
        gap(reader, Extent::between(end, start), boundary, "rten/gap", report);
        end = end.max(part.end());
    }
    let rest = Extent::between(end, reader.source().len());
    gap(reader, rest, ALIGNMENT, "rten/trailing-bytes", report);
}

/// Reports bytes that belong to nothing, unless they are zeros in front of a boundary.
fn gap(reader: &Reader, gap: Extent, boundary: u64, rule: &'static str, report: &mut Report) {
    let (at, len) = (At::file().offset(gap.offset()), gap.len());
    if len >= boundary {
        return unused(gap, rule, report);
    }
    if gap.is_empty() {
        return;
    }
    match reader.source().read(gap, "padding") {
        Ok(bytes) if bytes.iter().all(|byte| *byte == 0) => {}
        Ok(_) if len >= ALIGNMENT => unused(gap, rule, report),
        Ok(_) => {
            let message = format!(
                "padding of {len} bytes at byte {} is not zero, which hides bytes from every reader",
                gap.offset()
            );
            report.add(Finding::warning("rten/padding", message).at(at));
        }
        Err(error) => {
            report.add(Finding::error("rten/read", Chain(&error).to_string()).at(at));
        }
    }
}

/// Reports bytes that nothing refers to, such as the model data before an edit.
fn unused(gap: Extent, rule: &'static str, report: &mut Report) {
    let (offset, len) = (gap.offset(), gap.len());
    let message = format!("{len} bytes at byte {offset} belong to nothing");
    report.add(Finding::note(rule, message).offset(offset));
}

/// Nodes of a cycle that are listed.
const SHOWN: usize = 8;

/// Levels of subgraphs below the main graph that the verifier of RTen goes down.
const MAX_DEPTH: u32 = 15;

/// Tables that the verifier of RTen looks at.
const MAX_TABLES: u64 = 1_000_000;

/// Dimensions that any known operator can make something of.
const MAX_RANK: usize = 64;

/// What RTen's converter puts tensors on, in bytes.
const ALIGNMENT: u64 = 64;
/// What the widest fields of FlatBuffers start at a multiple of, in bytes.
const TABLES: u64 = 8;

#[cfg(test)]
mod tests {
    use flatbuffers::{InvalidFlatbuffer, VerifierOptions};
    use tensor_core::Limits;

    use super::*;
    use crate::generated::rten;

    #[test]
    fn tables_are_counted_as_the_verifier_does() {
        for path in test_support::files("rten/valid", "rten") {
            let reader = Reader::open(&path).unwrap();
            let bytes = reader.source().read(reader.model_data(), "model data").unwrap();
            let model = Model::parse(bytes.clone(), &Limits::default()).unwrap();
            let topology = Topology::of(&model);
            let graphs = topology.scopes().iter().map(|scope| table_count(scope.graph()));
            let tables = 1 + u64::from(model.metadata.is_some()) + graphs.sum::<u64>();
            let verify = |max_tables: u64| {
                let max_tables = max_tables as usize;
                let options = VerifierOptions { max_tables, ..VerifierOptions::default() };
                rten::root_as_model_with_opts(&options, &bytes).map(drop)
            };
            verify(tables).unwrap();
            let error = verify(tables - 1).unwrap_err();
            assert!(matches!(error, InvalidFlatbuffer::TooManyTables), "{path:?}: {error}");
        }
    }
}
