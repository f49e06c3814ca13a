//! The opcodes of pickle protocol 2 that models use, on a stack.

use std::collections::HashMap;

use bytes::Bytes;

use super::{Function, Global, Id, Node, Pickle, PickleFault};

/// A fault and the byte of the opcode.
type Faulty = (u64, PickleFault);

impl Pickle {
    /// Reads a pickle.
    pub(crate) fn parse(bytes: Bytes) -> Result<Self, Faulty> {
        let mut machine = Machine {
            rest: &bytes,
            at: 0,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        let root = machine.run()?;
        let nodes = machine.nodes;
        Ok(Self { bytes, nodes, root })
    }
}

struct Machine<'b> {
    rest: &'b [u8],
    /// Where `rest` starts in the pickle.
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Where on the stack marks are.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

type Step<T> = Result<T, PickleFault>;

impl Machine<'_> {
    fn run(&mut self) -> Result<Id, Faulty> {
        loop {
            let at = self.at as u64;
            match self.step() {
                Ok(None) => {}
                Ok(Some(root)) if self.rest.is_empty() => return Ok(root),
                Ok(Some(_)) => {
                    let bytes = self.rest.len() as u64;
                    return Err((self.at as u64, PickleFault::Trailing { bytes }));
                }
                Err(fault) => return Err((at, fault)),
            }
        }
    }

    /// Does one opcode; returns the value where it is the last.
    fn step(&mut self) -> Step<Option<Id>> {
        let [opcode] = self.take("the opcode STOP")?;
        match opcode {
            b'.' => return self.pop("a value").map(Some),
            0x80 => match self.take("a protocol")? {
                [2] => {}
                [found] => return Err(PickleFault::Protocol { found }),
            },
            b']' => self.push(Node::List(Vec::new())),
            b')' => self.push(Node::Tuple(Vec::new())),
            b'}' => self.push(Node::Dict(Vec::new())),
            b'N' => self.push(Node::None),
            0x88 => self.push(Node::Bool(true)),
            0x89 => self.push(Node::Bool(false)),
            b'K' => {
                let [number] = self.take("a number")?;
                self.push(Node::Int(number.into()));
            }
            b'M' => {
                let number = u16::from_le_bytes(self.take("a number")?);
                self.push(Node::Int(number.into()));
            }
            b'J' => {
                let number = i32::from_le_bytes(self.take("a number")?);
                self.push(Node::Int(number.into()));
            }
            0x8a => self.long()?,
            b'G' => {
                let number = f64::from_be_bytes(self.take("a number")?);
                self.push(Node::Float(number));
            }
            b'X' => self.text()?,
            b'c' => self.global()?,
            b'(' => self.marks.push(self.stack.len()),
            b't' => {
                let items = self.pop_mark()?;
                self.push(Node::Tuple(items));
            }
            0x85..=0x87 => {
                let len = usize::from(opcode.saturating_sub(0x84));
                let items = self.pop_many(len)?;
                self.push(Node::Tuple(items));
            }
            b'l' => {
                let items = self.pop_mark()?;
                self.push(Node::List(items));
            }
            b'd' => {
                let pairs = self.pop_pairs()?;
                self.push(Node::Dict(pairs));
            }
            b'a' => {
                let item = self.pop("an item")?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.append(items)?;
            }
            b'u' => self.set_items()?,
            b'q' | b'r' | b'h' | b'j' => {
                let what = "the number of a memo";
                let index = match opcode {
                    b'q' | b'h' => u8::from_le_bytes(self.take(what)?).into(),
                    _ => u32::from_le_bytes(self.take(what)?),
                };
                if matches!(opcode, b'q' | b'r') { self.store(index)? } else { self.load(index)? }
            }
            0x81 => self.new_object()?,
            b'b' => self.build()?,
            b'R' => self.reduce()?,
            b'Q' => {
                let id = self.pop("a storage")?;
                self.push(Node::Persistent(id));
            }
            found => return Err(PickleFault::Opcode { found }),
        }
        Ok(None)
    }

    fn long(&mut self) -> Step<()> {
        let [bytes] = self.take("the length of a number")?;
        if bytes > 8 {
            return Err(PickleFault::Number { bytes });
        }
        let digits = self.bytes(bytes.into(), "a number")?;
        let is_negative = digits.last().is_some_and(|last| last & 0x80 != 0);
        let mut number = [if is_negative { 0xff } else { 0 }; 8];
        for (to, from) in number.iter_mut().zip(digits) {
            *to = *from;
        }
        self.push(Node::Int(i64::from_le_bytes(number)));
        Ok(())
    }

    fn text(&mut self) -> Step<()> {
        let len = u32::from_le_bytes(self.take("the length of a text")?);
        let start = self.at;
        let text = self.bytes(len as usize, "a text")?;
        std::str::from_utf8(text).map_err(|_| PickleFault::Text)?;
        self.push(Node::Text(start..self.at));
        Ok(())
    }

    fn global(&mut self) -> Step<()> {
        let (module, name) = (self.line()?, self.line()?);
        let Some(global) = Global::of(module, name) else {
            return Err(PickleFault::Name { name: format!("{module}.{name}") });
        };
        self.push(Node::Global(global));
        Ok(())
    }

    /// Appends items to the list below them.
    fn append(&mut self, items: Vec<Id>) -> Step<()> {
        let list = self.top()?;
        match self.nodes.get_mut(list as usize) {
            Some(Node::List(list)) => list.extend(items),
            other => return Err(stack(other.as_deref(), "a list")),
        }
        Ok(())
    }

    fn set_items(&mut self) -> Step<()> {
        let pairs = self.pop_pairs()?;
        let dict = self.top()?;
        match self.nodes.get_mut(dict as usize) {
            Some(Node::Dict(dict)) => dict.extend(pairs),
            other => return Err(stack(other.as_deref(), "a dictionary")),
        }
        Ok(())
    }

    fn new_object(&mut self) -> Step<()> {
        let (arguments, class) = (self.pop("arguments")?, self.pop("a class")?);
        match (self.node(class), self.node(arguments)) {
            (Some(Node::Global(Global::Class(_))), Some(Node::Tuple(_))) => {
                self.push(Node::Object { class, state: None });
                Ok(())
            }
            (other, _) => Err(stack(other, "a class of the model and a tuple")),
        }
    }

    fn build(&mut self) -> Step<()> {
        let (built, object) = (self.pop("a state")?, self.top()?);
        match self.nodes.get_mut(object as usize) {
            Some(Node::Object { state, .. }) => *state = Some(built),
            other => return Err(stack(other.as_deref(), "an object")),
        }
        Ok(())
    }

    fn reduce(&mut self) -> Step<()> {
        let (arguments, called) = (self.pop("arguments")?, self.pop("a function")?);
        let function = match (self.node(called), self.node(arguments)) {
            (Some(Node::Global(Global::Function(function))), Some(Node::Tuple(_))) => *function,
            // An enumerator, by its value.
            (Some(Node::Global(Global::Class(_))), _) => {
                self.push(Node::Object { class: called, state: Some(arguments) });
                return Ok(());
            }
            (other, _) => return Err(stack(other, "a function and a tuple, or an enumeration")),
        };
        self.push(match function {
            Function::OrderedDict => Node::Dict(Vec::new()),
            function => Node::Call { function, arguments },
        });
        Ok(())
    }

    fn store(&mut self, index: u32) -> Step<()> {
        let top = self.top()?;
        self.memo.insert(index, top);
        Ok(())
    }

    fn load(&mut self, index: u32) -> Step<()> {
        let id = *self.memo.get(&index).ok_or(PickleFault::Memo { index })?;
        self.stack.push(id);
        Ok(())
    }

    fn push(&mut self, node: Node) {
        // There are at most as many values as bytes, and no pickle of 4 GiB is read.
        self.stack.push(Id::try_from(self.nodes.len()).unwrap_or(Id::MAX));
        self.nodes.push(node);
    }

    fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// Returns what is uppermost above the last mark.
    fn top(&self) -> Step<Id> {
        let floor = self.marks.last().copied().unwrap_or_default();
        let top = self.stack.get(floor..).and_then(<[Id]>::last).copied();
        top.ok_or(PickleFault::Stack { found: "nothing", expected: "a value" })
    }

    fn pop(&mut self, expected: &'static str) -> Step<Id> {
        let top = self.top().map_err(|_| PickleFault::Stack { found: "nothing", expected })?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_many(&mut self, count: usize) -> Step<Vec<Id>> {
        let floor = self.marks.last().copied().unwrap_or_default();
        match self.stack.len().checked_sub(count).filter(|&start| start >= floor) {
            Some(start) => Ok(self.stack.split_off(start)),
            None => Err(PickleFault::Stack { found: "too little", expected: "items" }),
        }
    }

    /// Takes everything above the last mark, and the mark.
    fn pop_mark(&mut self) -> Step<Vec<Id>> {
        let mark = self.marks.pop();
        let mark = mark.ok_or(PickleFault::Stack { found: "no mark", expected: "a mark" })?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn pop_pairs(&mut self) -> Step<Vec<(Id, Id)>> {
        let items = self.pop_mark()?;
        let (pairs, rest) = items.as_chunks::<2>();
        match rest {
            [] => Ok(pairs.iter().map(|&[key, value]| (key, value)).collect()),
            _ => Err(PickleFault::Stack { found: "a key alone", expected: "keys and values" }),
        }
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Step<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(PickleFault::Cut { what })?;
        (self.rest, self.at) = (rest, self.at.saturating_add(N));
        Ok(*taken)
    }
}

impl<'b> Machine<'b> {
    fn bytes(&mut self, len: usize, what: &'static str) -> Step<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(PickleFault::Cut { what })?;
        (self.rest, self.at) = (rest, self.at.saturating_add(len));
        Ok(taken)
    }

    fn line(&mut self) -> Step<&'b str> {
        let len = self.rest.iter().position(|&byte| byte == b'\n');
        let line =
            self.bytes(len.ok_or(PickleFault::Cut { what: "the end of a name" })?, "a name")?;
        self.take::<1>("the end of a name")?;
        std::str::from_utf8(line).map_err(|_| PickleFault::Text)
    }
}

fn stack(found: Option<&Node>, expected: &'static str) -> PickleFault {
    PickleFault::Stack { found: found.map_or("nothing", Node::kind), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &'static [u8]) -> Result<Pickle, Faulty> {
        Pickle::parse(Bytes::from_static(bytes))
    }

    fn fault(bytes: &'static [u8]) -> String {
        let (at, fault) = parse(bytes).unwrap_err();
        format!("{at}: {fault}")
    }

    #[test]
    fn numbers_and_texts() {
        let pickle = parse(b"\x80\x02(K\x05M\x01\x02J\xff\xff\xff\xff\x8a\x02\x00\xff\x8a\x00X\x02\0\0\0\xc3\xbct.").unwrap();
        let items = pickle.tuple(pickle.root()).unwrap();
        let numbers: Vec<_> = items.iter().filter_map(|id| pickle.int(*id)).collect();
        assert_eq!(numbers, [5, 513, -1, -256, 0]);
        assert_eq!(pickle.text(items[5]), Some("ü"));
    }

    #[test]
    fn shared_values_are_there_once() {
        let pickle = parse(b"\x80\x02]q\x00K\x01ah\x00\x86.").unwrap();
        let [one, other] = pickle.tuple(pickle.root()).unwrap() else { panic!("a pair") };
        assert_eq!(one, other);
        assert_eq!(pickle.items(*one).unwrap().len(), 1);
    }

    #[test]
    fn a_list_may_hold_itself() {
        let pickle = parse(b"\x80\x02]q\x00h\x00a.").unwrap();
        assert_eq!(pickle.items(pickle.root()), Some(&[pickle.root()][..]));
    }

    #[test]
    fn an_enumerator_is_an_object_of_its_value() {
        let pickle = parse(b"\x80\x02c__torch__\nColor\nK\x02R.").unwrap();
        let Node::Object { state: Some(state), .. } = *pickle.node(pickle.root()) else { panic!() };
        assert_eq!(pickle.int(state), Some(2));
    }

    #[test]
    fn what_models_do_not_need() {
        assert_eq!(
            fault(b"\x80\x02cos\nsystem\nX\x02\0\0\0id\x85R."),
            "2: names \"os.system\", which no model needs"
        );
        assert_eq!(fault(b"\x80\x02i"), "2: opcode is 0x69, which no model needs");
        assert_eq!(fault(b"\x80\x04N."), "0: protocol is 4, expected 2");
    }

    #[test]
    fn broken_pickles() {
        for (bytes, message) in [
            (&b""[..], "0: ends before the opcode STOP"),
            (b"\x80\x02X\xff\xff\xff\xffabc.", "2: ends before a text"),
            (b"X\x01\0\0\0\xff.", "0: text is not UTF-8"),
            (b"\x8a\x09123456789.", "0: number has 9 bytes, expected at most 8"),
            (b".", "0: finds nothing on the stack, expected a value"),
            (b"t.", "0: finds no mark on the stack, expected a mark"),
            (b"N(a.", "2: finds nothing on the stack, expected an item"),
            (b"K\x01K\x02a.", "4: finds a whole number on the stack, expected a list"),
            (b"h\x07.", "0: refers to memo 7, which was not stored"),
            (b"N.N", "2: is followed by 1 bytes"),
            (b"}(K\x01u.", "4: finds a key alone on the stack, expected keys and values"),
            (
                b"N)R.",
                "2: finds None on the stack, expected a function and a tuple, or an enumeration",
            ),
            (b"N\x86.", "1: finds too little on the stack, expected items"),
        ] {
            assert_eq!(fault(bytes), message);
        }
    }
}
