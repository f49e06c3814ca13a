//! A writer of the opcodes that PyTorch writes: protocol 2.

use std::collections::HashMap;

use super::Global;

/// A pickle that is being written, opcode by opcode.
#[derive(Debug)]
pub(crate) struct Pickler {
    bytes: Vec<u8>,
    /// Under which number a text or a name is stored.
    known: HashMap<Vec<u8>, u32>,
    stored: u32,
}

/// A value under whose number what was written last is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memo(u32);

impl Pickler {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![PROTO, 2], known: HashMap::new(), stored: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.op(b'.');
        self.bytes
    }

    pub(crate) fn none(&mut self) {
        self.op(b'N');
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.op(if value { 0x88 } else { 0x89 });
    }

    pub(crate) fn int(&mut self, value: i64) {
        if let Ok(value) = u8::try_from(value) {
            self.with(b'K', [value]);
        } else if let Ok(value) = u16::try_from(value) {
            self.with(b'M', value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.with(b'J', value.to_le_bytes());
        } else {
            self.with(0x8a, [8]);
            self.bytes.extend(value.to_le_bytes());
        }
    }

    pub(crate) fn float(&mut self, value: f64) {
        self.with(b'G', value.to_be_bytes());
    }

    /// Writes a text, of which there are fewer bytes than 32 bits count.
    pub(crate) fn text(&mut self, text: &str) {
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.once([b"X", &len.to_le_bytes()[..], text.as_bytes()].concat());
    }

    /// Writes a name that is looked up in a module; neither has a line break.
    pub(crate) fn global(&mut self, module: &str, name: &str) {
        self.once(format!("c{module}\n{name}\n").into_bytes());
    }

    pub(crate) fn mark(&mut self) {
        self.op(b'(');
    }

    /// Makes a tuple of what stands above the mark.
    pub(crate) fn tuple(&mut self) {
        self.op(b't');
    }

    /// Makes a tuple of the last value.
    pub(crate) fn tuple_of_1(&mut self) {
        self.op(0x85);
    }

    /// Makes a tuple of the last two values.
    pub(crate) fn tuple_of_2(&mut self) {
        self.op(0x86);
    }

    pub(crate) fn empty_tuple(&mut self) {
        self.op(b')');
    }

    /// Starts a list, whose items follow until [`append`](Self::append).
    pub(crate) fn list(&mut self) {
        self.op(b']');
        self.mark();
    }

    pub(crate) fn append(&mut self) {
        self.op(b'e');
    }

    /// Starts a dictionary, whose keys and values follow until [`set_items`](Self::set_items).
    pub(crate) fn dict(&mut self) {
        self.op(b'}');
        self.mark();
    }

    pub(crate) fn set_items(&mut self) {
        self.op(b'u');
    }

    /// Calls a function with a tuple.
    pub(crate) fn reduce(&mut self) {
        self.op(b'R');
    }

    /// Makes an object of a class and an empty tuple.
    pub(crate) fn object(&mut self) {
        self.empty_tuple();
        self.op(0x81);
    }

    /// Gives an object its state.
    pub(crate) fn build(&mut self) {
        self.op(b'b');
    }

    /// Makes what a tuple identifies.
    pub(crate) fn persistent(&mut self) {
        self.op(b'Q');
    }

    /// Stores what was written last.
    pub(crate) fn store(&mut self) -> Memo {
        let memo = self.stored;
        self.stored = memo.saturating_add(1);
        match u8::try_from(memo) {
            Ok(short) => self.with(b'q', [short]),
            Err(_) => self.with(b'r', memo.to_le_bytes()),
        }
        Memo(memo)
    }

    /// Writes again what was stored.
    pub(crate) fn load(&mut self, Memo(memo): Memo) {
        match u8::try_from(memo) {
            Ok(short) => self.with(b'h', [short]),
            Err(_) => self.with(b'j', memo.to_le_bytes()),
        }
    }

    /// Writes an opcode with its argument, and only refers to it the next time.
    fn once(&mut self, opcode: Vec<u8>) {
        if let Some(&memo) = self.known.get(&opcode) {
            return self.load(Memo(memo));
        }
        self.bytes.extend(&opcode);
        let Memo(memo) = self.store();
        self.known.insert(opcode, memo);
    }

    fn op(&mut self, opcode: u8) {
        self.bytes.push(opcode);
    }

    fn with<const N: usize>(&mut self, opcode: u8, argument: [u8; N]) {
        self.op(opcode);
        self.bytes.extend(argument);
    }
}

/// Returns the module and the name of a class of a model; `None` for what can be neither.
pub(crate) fn class(name: &str) -> Option<(&str, &str)> {
    let (module, class) = name.rsplit_once('.')?;
    let is_word =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_class = matches!(Global::of(module, class), Some(Global::Class(_)));
    (is_class && name.split('.').all(is_word)).then_some((module, class))
}

const PROTO: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pickle::{Node, Pickle};

    #[test]
    fn what_is_written_reads_back() {
        let mut out = Pickler::new();
        out.mark();
        let ints = [0, 255, 256, 65_535, 65_536, -1, i64::from(i32::MIN), i64::MAX, i64::MIN];
        ints.iter().for_each(|int| out.int(*int));
        out.text("ü");
        let list = {
            out.list();
            out.text("ü");
            out.append();
            out.store()
        };
        out.load(list);
        out.tuple();
        let pickle = Pickle::parse(out.finish().into()).unwrap();
        let items = pickle.tuple(pickle.root()).unwrap();
        let read: Vec<i64> = items.iter().filter_map(|id| pickle.int(*id)).collect();
        assert_eq!(read, ints);
        let [text, list, again] = items[9..] else { panic!("{items:?}") };
        assert_eq!((pickle.text(text), list), (Some("ü"), again));
        assert!(matches!(pickle.node(list), Node::List(items) if *items == [text]));
    }

    #[test]
    fn many_values_are_stored() {
        let mut out = Pickler::new();
        out.mark();
        (0..300).for_each(|number| out.text(&number.to_string()));
        (0..300).for_each(|number| out.text(&number.to_string()));
        out.tuple();
        let pickle = Pickle::parse(out.finish().into()).unwrap();
        let (first, again) = pickle.tuple(pickle.root()).unwrap().split_at(300);
        assert_eq!(first, again);
    }

    #[test]
    fn names_of_classes() {
        assert_eq!(class("__torch__.a.b_0.C"), Some(("__torch__.a.b_0", "C")));
        for name in
            ["os.system", "__torch__", "__torch__.a\nos\nsystem", "__torch__..C", "__torch__.C "]
        {
            assert_eq!(class(name), None, "{name:?}");
        }
    }
}
