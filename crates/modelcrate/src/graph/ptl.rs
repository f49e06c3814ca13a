//! Graphs of PyTorch Live models: one for each method, and the tree of modules.
//!
//! Code for the lite interpreter is a list of instructions for a machine with registers and a stack.
//! Nothing of it is run: each instruction is gone through once, with names of values in the place of
//! values. Branches and loops stand as the compiler of `TorchScript` writes them, a jump over each arm;
//! what jumps otherwise is drawn as what it is.

use std::{collections::HashMap, ops::Range, rc::Rc};

use ptl_spec::{Attribute, Code, Error, Instruction, Object, Reader};
use serde_json::json;
use tensor_core::symbolic::SymbolicShape;

use super::{Constant, Family, Graph, Node, Outer, Subgraph, Value, group_of};
use crate::Result;

pub(super) fn graph(reader: &Reader) -> Result<Graph> {
    let code = match reader.code() {
        // Source alone, for the full runtime.
        Err(Error::NotLite) => Vec::new(),
        code => code?,
    };
    let objects = reader.objects()?;
    let tensors = tensors(reader)?;
    let mut graph = Graph::default();
    let mut heads = Vec::new();
    for (index, method) in code.iter().enumerate() {
        let parameters = reader.bytecode()?.methods.get(index);
        let parameters = parameters.and_then(|method| method.parameters());
        let arguments = parameters.unwrap_or_default().iter();
        let arguments: Vec<Value> = arguments
            .map(|of| Value::new(Some(&of.name), Some(of.type_name.clone()), None))
            .collect();
        let name = method.name.rsplit('.').next().unwrap_or_default();
        let mut drawing = Drawing {
            code: method,
            objects: &objects,
            tensors: &tensors,
            graph: std::mem::take(&mut graph),
            registers: HashMap::new(),
            places: HashMap::new(),
            values_left: method.instructions.len().saturating_mul(4).saturating_add(256),
        };
        heads.push(drawing.method(name, arguments, parameters.is_none()));
        graph = drawing.graph;
    }
    if !objects.is_empty() {
        graph.subgraphs.push(modules(&objects, &tensors, heads));
    }
    Ok(graph)
}

fn tensors(reader: &Reader) -> Result<HashMap<String, Value>> {
    let mut tensors = HashMap::new();
    for tensor in reader.tensors()? {
        let shape = SymbolicShape::from(tensor.shape());
        let info = tensor.info().ok();
        let dtype = info.as_ref().map(|info| info.dtype.to_string());
        let dtype = dtype.unwrap_or_else(|| tensor.scalar_type().to_string());
        let mut value = Value::new(Some(tensor.name()), Some(dtype), Some(shape));
        let bytes = info.and_then(|info| info.byte_len().ok());
        value.constant = Some(Constant { bytes, text: None });
        tensors.entry(tensor.name().to_owned()).or_insert(value);
    }
    Ok(tensors)
}

/// Draws the tree of modules: a node for each object, which makes those that its attributes are.
fn modules(objects: &[Object], tensors: &HashMap<String, Value>, heads: Vec<usize>) -> Subgraph {
    let mut graph = Subgraph { name: "modules".to_owned(), ..Subgraph::default() };
    // Of each object the value that leads to it.
    let mut links: Vec<Option<usize>> = vec![None; objects.len()];
    for (id, object) in objects.iter().enumerate() {
        let mut node = Node::new(object.class.rsplit('.').next().unwrap_or_default());
        node.id = id;
        node.family = Family::Group;
        node = node.named(Some(&object.path));
        node.attributes.insert("class".to_owned(), json!(object.class));
        for (name, attribute) in &object.attributes {
            match attribute {
                Attribute::Object(other) => {
                    let is_new = links.get(*other).is_some_and(Option::is_none);
                    let value = match links.get(*other).copied().flatten() {
                        Some(value) => value,
                        None => graph.add(Value::new(Some(name), None, None)),
                    };
                    if let Some(link) = links.get_mut(*other) {
                        *link = Some(value);
                    }
                    // One that is shared comes from the first that has it.
                    if is_new {
                        node.outputs.push(Some(value));
                    }
                }
                Attribute::Tensor => {
                    let value = tensor(tensors, &object.path, name);
                    node.inputs.push(Some(graph.add(value)));
                }
                Attribute::Value(text) => {
                    node.attributes.insert(name.clone(), json!(text));
                }
                _ => {}
            }
        }
        graph.nodes.push(node);
    }
    for (node, link) in graph.nodes.iter_mut().zip(links) {
        node.inputs.splice(0..0, link.map(Some));
    }
    if let Some(root) = graph.nodes.first_mut() {
        root.bodies = heads;
    }
    graph
}

/// Returns what is known of a tensor that is an attribute.
fn tensor(tensors: &HashMap<String, Value>, path: &str, name: &str) -> Value {
    let name = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    tensors.get(&name).cloned().unwrap_or_else(|| {
        let constant = Some(Constant::default());
        Value { constant, ..Value::new(Some(&name), None, None) }
    })
}

impl Subgraph {
    /// Adds a value; returns its place.
    fn add(&mut self, value: Value) -> usize {
        let id = self.values.len();
        self.values.push(Value { id, ..value });
        id
    }
}

/// What stands in the place of a value.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Held {
    /// A value of a graph.
    Wire { graph: usize, value: usize },
    /// An object of the model.
    Object(usize),
    /// A tensor of an object: its attribute of this place.
    Tensor { object: usize, slot: usize },
    /// A constant of the code: its place among all.
    Constant(usize),
    /// A number, a text or a list of them, as source has it.
    Text(Rc<str>),
    /// Something of which nothing is known.
    Unknown,
}

/// A method that is being drawn.
struct Drawing<'a> {
    code: &'a Code,
    objects: &'a [Object],
    tensors: &'a HashMap<String, Value>,
    graph: Graph,
    /// Each is written once, so that those of an arm are nobody else's.
    registers: HashMap<i64, Held>,
    /// Where in a graph what is from elsewhere has a value of its own.
    places: HashMap<(usize, Held), usize>,
    /// How many values may still be made: code can ask for very many with one instruction.
    values_left: usize,
}

type Stack = Vec<Held>;

impl Drawing<'_> {
    /// Draws all of the method; returns its graph.
    fn method(&mut self, name: &str, arguments: Vec<Value>, is_untyped: bool) -> usize {
        let index = self.start(name.to_owned());
        let mut stack = vec![if self.objects.is_empty() { Held::Unknown } else { Held::Object(0) }];
        stack.extend(arguments.into_iter().map(|value| self.made(index, value)));
        if is_untyped {
            // Old files do not say what a method takes, but it stores that first.
            let first = self.code.instructions.first().filter(|first| first.name == "STOREN");
            let count = first.map_or(0, |first| usize::from(first.n));
            for at in 1..count {
                let name = format!("argument {at}");
                stack.push(self.made(index, Value::new(Some(&name), None, None)));
            }
        }
        let inputs = self.places(index, stack.get(1..).unwrap_or_default());
        self.run(index, 0..self.code.instructions.len(), &mut stack, 0);
        let outputs = self.places(index, &stack);
        self.finish(index, inputs, outputs);
        index
    }

    fn start(&mut self, name: String) -> usize {
        self.graph.subgraphs.push(Subgraph { name, ..Subgraph::default() });
        self.graph.subgraphs.len().saturating_sub(1)
    }

    fn finish(&mut self, graph: usize, inputs: Vec<Option<usize>>, outputs: Vec<Option<usize>>) {
        if let Some(graph) = self.graph.subgraphs.get_mut(graph) {
            graph.inputs = inputs.into_iter().flatten().collect();
            graph.outputs = outputs.into_iter().flatten().collect();
        }
    }

    /// Goes through instructions, with what is on the stack above what is not theirs.
    fn run(&mut self, graph: usize, range: Range<usize>, stack: &mut Stack, depth: u32) {
        let mut at = range.start;
        while at < range.end {
            let Some(instruction) = self.code.instructions.get(at).copied() else { return };
            at = match instruction.name {
                "JF" if depth < MAX_DEPTH => self.branch(graph, at, range.end, stack, depth),
                "LOOP" if depth < MAX_DEPTH => self.repeat(graph, at, range.end, stack, depth),
                "RET" => return,
                _ => {
                    self.step(graph, at, instruction, stack);
                    at.saturating_add(1)
                }
            };
        }
    }

    /// Draws a branch: `JF`, one arm, `JMP` over the other, the other. Returns what comes behind it.
    fn branch(
        &mut self,
        graph: usize,
        at: usize,
        end: usize,
        stack: &mut Stack,
        depth: u32,
    ) -> usize {
        let next = at.saturating_add(1);
        let condition = pop(stack);
        let Some((jump, other, after)) = self.arms(at, end) else {
            self.node(graph, Node::new("JF"), &[condition], 0);
            return next;
        };
        let mut node = Node::new("If");
        let mut made = 0;
        for (name, range) in [("then", next..jump), ("else", other..after)] {
            let body = self.start(name.to_owned());
            let mut inner = Stack::new();
            self.run(body, range, &mut inner, depth.saturating_add(1));
            made = made.max(inner.len());
            let outputs = self.places(body, &inner);
            self.finish(body, Vec::new(), outputs);
            node.bodies.push(body);
        }
        let made = self.node(graph, node, &[condition], made);
        stack.extend(made);
        after
    }

    /// Returns where the jump over the second arm is, where that arm starts and where it ends.
    fn arms(&self, at: usize, end: usize) -> Option<(usize, usize, usize)> {
        let other = self.target(at)?;
        let jump = other.checked_sub(1).filter(|jump| *jump > at)?;
        let is_jump = self.code.instructions.get(jump)?.name == "JMP";
        let after = self.target(jump)?;
        (is_jump && after >= other && after <= end).then_some((jump, other, after))
    }

    fn target(&self, at: usize) -> Option<usize> {
        let steps = self.code.instructions.get(at)?.x;
        at.checked_add_signed(isize::try_from(steps).ok()?)
    }

    /// Draws a loop: `LOOP`, whose operands are a count, a limit, a condition and what is carried
    /// over, the body, and `JMP` back. Returns what comes behind it.
    fn repeat(
        &mut self,
        graph: usize,
        at: usize,
        end: usize,
        stack: &mut Stack,
        depth: u32,
    ) -> usize {
        let next = at.saturating_add(1);
        let after = self.target(at).filter(|after| *after > next && *after <= end);
        let jump = after.and_then(|after| after.checked_sub(1));
        let is_loop = jump.is_some_and(|jump| {
            let is_jump = self.code.instructions.get(jump).is_some_and(|of| of.name == "JMP");
            is_jump && self.target(jump) == Some(at)
        });
        let (Some(after), Some(jump), true) = (after, jump, is_loop) else {
            self.node(graph, Node::new("LOOP"), &[], 0);
            return next;
        };
        let count = self.code.instructions.get(at).map_or(0, |of| usize::from(of.n));
        let operands = pop_many(stack, count.saturating_add(1));
        let carried = count.saturating_sub(2);
        let body = self.start("body".to_owned());
        let mut inner = Stack::new();
        for index in 0..=carried.min(operands.len()) {
            let name = if index == 0 { "iteration".to_owned() } else { format!("carried {index}") };
            inner.push(self.made(body, Value::new(Some(&name), None, None)));
        }
        let inputs = self.places(body, &inner);
        self.run(body, next..jump, &mut inner, depth.saturating_add(1));
        let outputs = self.places(body, &inner);
        self.finish(body, inputs, outputs);
        let mut node = Node::new("Loop");
        node.bodies.push(body);
        // The count of iterations starts at 0, which says nothing.
        let operands = operands.get(1..).unwrap_or_default();
        let made = self.node(graph, node, operands, carried);
        stack.extend(made);
        after
    }

    /// Draws an instruction that does not jump.
    fn step(&mut self, graph: usize, at: usize, instruction: Instruction, stack: &mut Stack) {
        let Instruction { name, x, n, .. } = instruction;
        let (place, count) = (usize::try_from(x).unwrap_or(usize::MAX), usize::from(n));
        let register = i64::from(x);
        match name {
            "OP" | "OPN" => self.call(graph, at, instruction, stack),
            "LOAD" | "MOVE" => {
                let held = self.registers.get(&register).cloned();
                stack.push(held.unwrap_or(Held::Unknown));
            }
            "STORE" => {
                let held = pop(stack);
                self.registers.insert(register, held);
            }
            "STOREN" => {
                let held = pop_many(stack, count);
                self.registers.extend((register..).zip(held));
            }
            "DROP" => drop(pop(stack)),
            "DROPR" => drop(self.registers.remove(&register)),
            "LOADC" => stack.push(Held::Constant(place)),
            "GET_ATTR" => {
                let object = pop(stack);
                let held = self.attribute(graph, object, place);
                stack.push(held);
            }
            "SET_ATTR" => {
                let (held, object) = (pop(stack), pop(stack));
                let mut node = Node::new("set attribute");
                if let Held::Object(object) = object
                    && let Some((name, _)) =
                        self.objects.get(object).and_then(|object| object.attributes.get(place))
                {
                    node.attributes.insert("name".to_owned(), json!(name));
                }
                self.node(graph, node, &[held], 0);
            }
            // What it says of the type is for the compiler.
            "UNCHECKED_CAST" | "JMP" => {}
            "LIST_CONSTRUCT" | "NAMED_TUPLE_CONSTRUCT" | "DICT_CONSTRUCT" => {
                let items = pop_many(stack, count);
                self.construct(graph, name, &items, stack);
            }
            "TUPLE_CONSTRUCT" => {
                let items = pop_many(stack, place);
                self.construct(graph, name, &items, stack);
            }
            "CALL" | "TAIL_CALL" => {
                // How much it takes stands in another method, and all that is there is for it.
                let held = std::mem::take(stack);
                let made = self.node(graph, Node::new("call"), &held, 1);
                stack.extend(made);
            }
            "INTERFACE_CALL" => {
                let held = pop_many(stack, count);
                let mut node = Node::new("call");
                let method = self.code.constants.get(place);
                node.attributes.extend(method.map(|name| ("method".to_owned(), json!(name))));
                let made = self.node(graph, node, &held, 1);
                stack.extend(made);
            }
            name => {
                let (takes, gives) = match name {
                    "LIST_UNPACK" => (1, place),
                    "FORMAT" => (place, 1),
                    "CREATE_OBJECT" | "UN_INITIALIZED" => (0, 1),
                    "ISINSTANCE" | "TUPLE_SLICE" | "DEVICE" | "DTYPE" | "DIM" | "__NOT__"
                    | "NUM_TO_TENSOR" | "IS_CUDA" | "WAIT" => (1, 1),
                    "TUPLE_INDEX" | "DICT_INDEX" | "__IS__" | "__ISNOT__" => (2, 1),
                    "TO_LIST" => (3, 1),
                    "FORK" | "AWAITABLE" => (count, 1),
                    "RAISE_EXCEPTION" => (1, 0),
                    "WARN" => (2, 0),
                    _ => (0, 0),
                };
                let held = pop_many(stack, takes);
                let made = self.node(graph, Node::new(label(name)), &held, gives);
                stack.extend(made);
            }
        }
    }

    /// Draws the call of an operator.
    fn call(&mut self, graph: usize, at: usize, instruction: Instruction, stack: &mut Stack) {
        let place = usize::try_from(instruction.x).unwrap_or(usize::MAX);
        let operator = self.code.operators.get(place);
        let takes = match (instruction.name, operator) {
            ("OPN", _) => usize::from(instruction.n),
            (_, Some((_, Some(takes)))) => usize::try_from(*takes).unwrap_or(usize::MAX),
            // Where the file does not say, it is mostly all that is there.
            _ => stack.len(),
        };
        // A single value may stay on the stack; any other number is stored at once.
        let next = self.code.instructions.get(at.saturating_add(1));
        let gives = match next {
            Some(Instruction { name: "STOREN", n, .. }) => usize::from(*n),
            _ => 1,
        };
        let name = operator.map_or_else(|| "?".to_owned(), |(operator, _)| operator.to_string());
        let mut node = Node::new(name);
        if instruction.name == "OP" && operator.is_none_or(|(_, takes)| takes.is_none()) {
            let note = "inputs are guessed, as the file does not count them";
            node.attributes.insert("note".to_owned(), json!(note));
        }
        let held = pop_many(stack, takes);
        let made = self.node(graph, node, &held, gives);
        stack.extend(made);
    }

    /// Draws what makes a list or the like; one of numbers and texts is a text itself.
    fn construct(&mut self, graph: usize, name: &str, items: &[Held], stack: &mut Stack) {
        let texts: Option<Vec<&str>> = items.iter().map(|item| self.text(item)).collect();
        let text = texts.filter(|_| name != "DICT_CONSTRUCT").map(|texts| texts.join(", "));
        match text.filter(|text| text.len() <= MAX_TEXT) {
            Some(text) if name == "LIST_CONSTRUCT" => {
                stack.push(Held::Text(format!("[{text}]").into()));
            }
            Some(text) => stack.push(Held::Text(format!("({text})").into())),
            None => {
                let made = self.node(graph, Node::new(label(name)), items, 1);
                stack.extend(made);
            }
        }
    }

    /// Returns what is a number, a text or a list of them.
    fn text<'h>(&'h self, held: &'h Held) -> Option<&'h str> {
        match held {
            Held::Text(text) => Some(text),
            Held::Constant(place) => {
                let text = self.code.constants.get(*place).map(String::as_str);
                text.filter(|text| *text != TENSOR)
            }
            _ => None,
        }
    }

    fn attribute(&mut self, graph: usize, object: Held, slot: usize) -> Held {
        let Held::Object(index) = object else {
            let mut node = Node::new("attribute");
            node.attributes.insert("slot".to_owned(), json!(slot));
            let made = self.node(graph, node, &[object], 1);
            return made.into_iter().next().unwrap_or(Held::Unknown);
        };
        let found = self.objects.get(index).and_then(|object| object.attributes.get(slot));
        match found {
            Some((_, Attribute::Object(other))) => Held::Object(*other),
            Some((_, Attribute::Tensor)) => Held::Tensor { object: index, slot },
            Some((_, Attribute::Value(text))) => Held::Text(text.as_str().into()),
            _ => Held::Unknown,
        }
    }

    /// Adds a node that takes and gives some values.
    fn node(&mut self, graph: usize, mut node: Node, held: &[Held], gives: usize) -> Vec<Held> {
        let owner = held.iter().find_map(|held| match held {
            Held::Object(object) => {
                self.objects.get(*object).map(|object| group_of(&format!("{}.it", object.path)))
            }
            Held::Tensor { object, slot } => {
                let object = self.objects.get(*object)?;
                let (name, _) = object.attributes.get(*slot)?;
                Some(group_of(&format!("{}.{name}", object.path)))
            }
            _ => None,
        });
        node.group = owner.unwrap_or_default();
        node.inputs = self.places(graph, held);
        let mut made = Vec::new();
        for _ in 0..gives {
            match self.made(graph, Value::default()) {
                Held::Unknown => break,
                held => made.push(held),
            }
        }
        node.outputs = self.places(graph, &made);
        if let Some(graph) = self.graph.subgraphs.get_mut(graph) {
            node.id = graph.nodes.len();
            graph.nodes.push(node);
        }
        made
    }

    /// Adds a value to a graph.
    fn made(&mut self, graph: usize, value: Value) -> Held {
        let Some(left) = self.values_left.checked_sub(1) else { return Held::Unknown };
        self.values_left = left;
        match self.graph.subgraphs.get_mut(graph) {
            Some(of) => Held::Wire { graph, value: of.add(value) },
            None => Held::Unknown,
        }
    }

    /// Returns the places of values in a graph.
    fn places(&mut self, graph: usize, held: &[Held]) -> Vec<Option<usize>> {
        held.iter().map(|held| self.place(graph, held)).collect()
    }

    fn place(&mut self, graph: usize, held: &Held) -> Option<usize> {
        match held {
            Held::Unknown => return None,
            Held::Wire { graph: own, value } if *own == graph => return Some(*value),
            _ => {}
        }
        if let Some(place) = self.places.get(&(graph, held.clone())) {
            return Some(*place);
        }
        let constant = |text: &str| Some(Constant { bytes: None, text: Some(text.to_owned()) });
        let value = match held {
            Held::Wire { graph: subgraph, value } => {
                let from = self.graph.subgraphs.get(*subgraph)?.values.get(*value)?;
                let outer = Some(Outer { subgraph: *subgraph, value: *value });
                Value { outer, ..from.clone() }
            }
            Held::Object(object) => {
                let object = self.objects.get(*object)?;
                let name = if object.path.is_empty() { "self" } else { object.path.as_str() };
                let class = object.class.rsplit('.').next().unwrap_or_default();
                Value { constant: constant(class), ..Value::new(Some(name), None, None) }
            }
            Held::Tensor { object, slot } => {
                let object = self.objects.get(*object)?;
                tensor(self.tensors, &object.path, &object.attributes.get(*slot)?.0)
            }
            Held::Constant(place) => {
                let text = self.code.constants.get(*place)?;
                Value { constant: constant(text), ..Value::default() }
            }
            Held::Text(text) => Value { constant: constant(text), ..Value::default() },
            Held::Unknown => return None,
        };
        let place = self.graph.subgraphs.get_mut(graph)?.add(value);
        self.places.insert((graph, held.clone()), place);
        Some(place)
    }
}

/// Returns what an instruction is called in a drawing, such as `tuple index`.
fn label(name: &str) -> String {
    name.trim_matches('_').to_lowercase().replace('_', " ")
}

fn pop(stack: &mut Stack) -> Held {
    stack.pop().unwrap_or(Held::Unknown)
}

/// Takes some values off the stack, the lowest first; fewer, where there are not as many.
fn pop_many(stack: &mut Stack, count: usize) -> Vec<Held> {
    stack.split_off(stack.len().saturating_sub(count))
}

/// What the code calls a constant that is a tensor.
const TENSOR: &str = "Tensor";

/// Branches and loops inside of each other that are drawn as such.
const MAX_DEPTH: u32 = 64;

/// Bytes of a list that stands as a text.
const MAX_TEXT: usize = 120;
