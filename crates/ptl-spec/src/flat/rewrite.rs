//! FlatBuffer files rewritten without bytes that nothing leads to.
//!
//! Offsets lead forward, so all parts keep their order; they move together, by multiples of 32
//! bytes, and only offsets across what is left out change.
//!
//! ```text
//! [root][tables][texts]xxxxxxx[storages][values]xxx[extra files]     before
//! [root][tables][texts][storages][values][extra files]               after
//! ```

use std::{collections::HashMap, io};

use flat_tables::{Buffer, Fault, Problem, Table, Vector};
use tensor_core::{Budget, Extent, Limit, Limits, ReadAt, Source};

use super::{TEXT, extra_record, kind, source_record};
use crate::{Error, Result};

/// Returns all that the root of a file leads to, but for the files of source and the extra files that
/// `keep` does not name by the records that a ZIP file would have them in, and how many those are.
pub(super) fn rewrite(
    source: Source,
    limits: &Limits,
    keep: &dyn Fn(&str) -> bool,
) -> Result<(Source, u64)> {
    let buffer = Buffer::new(&source);
    let mut parts = Parts::new(&buffer, limits);
    parts.collect(keep)?;
    let removed = parts.removed;
    let (runs, changes) = parts.placed()?;
    Ok((Source::from_read_at(Placed { source, runs, changes }), removed))
}

/// What a place of the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Table(Layout),
    /// The length, and elements of so many bytes each.
    Vector(usize),
    /// The length, bytes, and one that is 0.
    Text,
    /// Tables, by their offsets.
    Tables(Layout),
    /// Texts, by their offsets.
    Texts,
    /// So many bytes.
    Struct(usize),
}

/// The tables that there are. [`Layout::fields`] says what is in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Layout {
    Module,
    ExtraFile,
    Storage,
    Value,
    Tensor,
    Quantization,
    /// One text: a text as a value, or the name of a device.
    Text,
    /// Items that are values.
    Values,
    /// Items that are numbers of 8 bytes.
    Longs,
    Bools,
    Dict,
    Object,
    ObjectType,
    EnumValue,
    Function,
    Operator,
    Schema,
    Argument,
}

/// What a field of a table is.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// It stands in the table, and has so many bytes.
    Scalar(usize),
    /// Its offset does.
    Part(Part),
    /// Its offset does, and the field before says what it is.
    Union,
    /// The offset of a list of files, whose records in a ZIP file would have these names.
    Files(fn(&str) -> String),
}

impl Layout {
    /// Returns the fields, in the order of their numbers.
    const fn fields(self) -> &'static [Field] {
        use Field::{Files, Part as At, Scalar, Union};
        use Part::{Table, Tables, Text, Texts, Vector};
        const BYTE: Field = Scalar(1);
        const WORD: Field = Scalar(4);
        const WORDS: Field = At(Vector(4));
        match self {
            Self::Module => &[
                WORD,
                Files(extra_record),
                WORDS,
                WORD,
                At(Tables(Self::Value)),
                WORD,
                At(Tables(Self::Storage)),
                At(Tables(Self::ObjectType)),
                Files(source_record),
                WORDS,
                WORD,
                WORD,
            ],
            Self::ExtraFile => &[At(Text), At(Text)],
            Self::Storage | Self::Bools => &[At(Vector(1))],
            Self::Value => &[BYTE, Union],
            Self::Tensor => &[WORD, BYTE, WORD, WORDS, WORDS, BYTE, At(Table(Self::Quantization))],
            Self::Quantization => {
                &[BYTE, Scalar(8), WORD, At(Table(Self::Tensor)), At(Table(Self::Tensor)), WORD]
            }
            Self::Text => &[At(Text)],
            Self::Values => &[WORDS, At(Text)],
            Self::Longs => &[At(Vector(8))],
            Self::Dict => &[WORDS, WORDS, At(Text)],
            Self::Object => &[WORD, WORD, WORDS, WORD],
            Self::ObjectType => &[At(Text), BYTE, At(Texts)],
            Self::EnumValue => &[At(Text), WORD],
            Self::Function => &[
                At(Text),
                At(Vector(8)),
                At(Tables(Self::Operator)),
                WORDS,
                At(Texts),
                WORD,
                At(Table(Self::Schema)),
                At(Table(Self::Longs)),
                WORD,
            ],
            Self::Operator => &[At(Text), At(Text), WORD],
            Self::Schema => &[At(Tables(Self::Argument)), At(Tables(Self::Argument))],
            Self::Argument => &[At(Text), At(Text), WORD],
        }
    }

    /// Returns what a value of a type is.
    const fn of(kind: u8) -> Option<Part> {
        Some(match kind {
            kind::INT | kind::DOUBLE => Part::Struct(8),
            kind::BOOL => Part::Struct(1),
            kind::COMPLEX => Part::Struct(16),
            kind::TENSOR => Part::Table(Self::Tensor),
            kind::TEXT | kind::DEVICE => Part::Table(Self::Text),
            kind::LIST | kind::TUPLE => Part::Table(Self::Values),
            kind::DICT => Part::Table(Self::Dict),
            kind::OBJECT => Part::Table(Self::Object),
            kind::INT_LIST | kind::DOUBLE_LIST => Part::Table(Self::Longs),
            kind::BOOL_LIST => Part::Table(Self::Bools),
            kind::ENUM => Part::Table(Self::EnumValue),
            kind::FUNCTION => Part::Table(Self::Function),
            _ => return None,
        })
    }
}

/// A number that stands in the file, and what it says.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// How far it is to a part behind it.
    Offset { at: u32, target: u32 },
    /// That, where another offset stands in the old file.
    Moved { at: u32, target: u32 },
    /// How far it is back to the vtable of the table that starts here.
    Vtable { at: u32, vtable: u32 },
    /// A length that changes.
    Count { at: u32, count: u32 },
}

/// The parts of a file that its root leads to.
struct Parts<'b> {
    buffer: &'b Buffer<'b>,
    /// Start and end of each.
    extents: Vec<(u32, u32)>,
    numbers: Vec<Number>,
    /// What is at each place.
    seen: HashMap<u32, Part>,
    /// Parts that were not looked at yet.
    stack: Vec<(u32, Part)>,
    visits: Budget,
    names: Budget,
    removed: u64,
}

impl<'b> Parts<'b> {
    fn new(buffer: &'b Buffer<'b>, limits: &Limits) -> Self {
        Self {
            buffer,
            extents: Vec::new(),
            numbers: Vec::new(),
            seen: HashMap::new(),
            stack: Vec::new(),
            visits: Budget::new("number of parts", limits.tensors, Limit::Tensors),
            names: super::names(limits),
            removed: 0,
        }
    }

    fn collect(&mut self, keep: &dyn Fn(&str) -> bool) -> Result<()> {
        // The offset of the root, and the identifier.
        self.add(0, 8)?;
        self.link(0, Part::Table(Layout::Module))?;
        while let Some((at, part)) = self.stack.pop() {
            self.visit(at as usize, part, keep)?;
        }
        Ok(())
    }

    fn visit(&mut self, at: usize, part: Part, keep: &dyn Fn(&str) -> bool) -> Result<()> {
        match part {
            Part::Table(layout) => self.table(at, layout, keep),
            Part::Struct(len) => self.add(at, len),
            Part::Text => {
                let text = Vector::new(self.buffer, at, 1, "text")?;
                // The last one of a file need not end in 0.
                let len = text.count().saturating_add(5).min(self.buffer.len().saturating_sub(at));
                self.add(at, len)
            }
            Part::Vector(width) => {
                // Instructions are structs of 8 bytes that start at multiples of 4.
                let vector = Vector::new(self.buffer, at, width.min(4), "vector")?;
                self.add(at, vector.count().saturating_mul(width).saturating_add(4))
            }
            Part::Tables(layout) => self.offsets(at, Part::Table(layout)),
            Part::Texts => self.offsets(at, Part::Text),
        }
    }

    fn offsets(&mut self, at: usize, part: Part) -> Result<()> {
        let vector = Vector::new(self.buffer, at, 4, "vector")?;
        self.add(at, vector.count().saturating_mul(4).saturating_add(4))?;
        (0..vector.count())
            .filter_map(|index| vector.element(index))
            .try_for_each(|at| self.link(at, part))
    }

    fn table(&mut self, at: usize, layout: Layout, keep: &dyn Fn(&str) -> bool) -> Result<()> {
        let table = Table::new(self.buffer, at, "table")?;
        let (len, vtable) = (place(table.extent().len()), table.vtable());
        self.add(at, len)?;
        let (vtable, vtable_len) = (narrow(place(vtable.offset())), place(vtable.len()));
        self.numbers.push(Number::Vtable { at: narrow(at), vtable });
        self.lead(vtable, Part::Struct(vtable_len))?;
        let fields = layout.fields();
        for id in fields.len()..table.field_count() {
            if table.field(id)?.is_some() {
                return Err(refused("it has a table with a field that is not known"));
            }
        }
        // The offset of the vtable comes first.
        let mut taken = vec![(at, at.saturating_add(4))];
        for (id, field) in fields.iter().enumerate() {
            let Some(start) = table.field(id)? else { continue };
            let width = if let Field::Scalar(width) = field { *width } else { 4 };
            taken.push((start, start.saturating_add(width)));
            match field {
                Field::Scalar(_) => {}
                Field::Part(part) => self.link(start, *part)?,
                Field::Union => match Layout::of(table.u8(0, "type of a value")?) {
                    Some(part) => self.link(start, part)?,
                    None => return Err(refused("it has a value of a type that is not known")),
                },
                Field::Files(record) => {
                    let is_kept = |name: &str| keep(&record(name));
                    self.files(start, table.vector(id, 4, "files")?, &is_kept)?;
                }
            }
        }
        taken.push((at.saturating_add(len), usize::MAX));
        taken.sort_unstable();
        let ends = taken.iter().map(|(_, end)| *end);
        let is_apart = ends.zip(taken.iter().skip(1)).all(|(end, (start, _))| end <= *start);
        if is_apart { Ok(()) } else { Err(refused(OVERLAP)) }
    }

    fn files(
        &mut self,
        field: usize,
        files: Option<Vector<'_>>,
        is_kept: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let Some(files) = files else { return Ok(()) };
        let first = place(files.extent().offset());
        let at = first.saturating_sub(4);
        self.numbers.push(Number::Offset { at: narrow(field), target: narrow(at) });
        let (mut count, mut next) = (0_usize, first);
        for (index, file) in files.tables("file").enumerate() {
            let name = file?.text(0, TEXT, "name of a file")?.unwrap_or_default();
            self.names.take(name.len().saturating_add(1) as u64)?;
            let element = files.element(index).unwrap_or_default();
            if !is_kept(&name) {
                self.removed = self.removed.saturating_add(1);
                continue;
            }
            let target = self.buffer.follow(element, "file")?;
            let (at, target) = (narrow(next), narrow(target));
            self.numbers.push(Number::Moved { at, target });
            self.lead(target, Part::Table(Layout::ExtraFile))?;
            (count, next) = (count.saturating_add(1), next.saturating_add(4));
        }
        self.numbers.push(Number::Count { at: narrow(at), count: narrow(count) });
        self.add(at, next.saturating_sub(at))
    }

    /// Follows the offset at a place.
    fn link(&mut self, at: usize, part: Part) -> Result<()> {
        let (at, target) = (narrow(at), narrow(self.buffer.follow(at, "offset")?));
        self.numbers.push(Number::Offset { at, target });
        self.lead(target, part)
    }

    fn lead(&mut self, target: u32, part: Part) -> Result<()> {
        self.visits.take(1)?;
        match self.seen.insert(target, part) {
            None => self.stack.push((target, part)),
            Some(known) if known == part => {}
            Some(_) => return Err(refused(OVERLAP)),
        }
        Ok(())
    }

    fn add(&mut self, at: usize, len: usize) -> Result<()> {
        let end = at.saturating_add(len);
        if end > self.buffer.len() {
            let remaining = self.buffer.len().saturating_sub(at) as u64;
            let problem = Problem::OutOfBounds { needed: len as u64, remaining };
            return Err(Fault::new("part", at as u64, problem).into());
        }
        self.extents.push((narrow(at), narrow(end)));
        Ok(())
    }

    /// Finds the place of each part in the new file, and the numbers that are others there.
    fn placed(mut self) -> Result<(Vec<Run>, Vec<Change>)> {
        self.extents.sort_unstable();
        let len = narrow(self.buffer.len());
        let (mut end, mut shift, mut runs) = (0_u32, 0_u32, Vec::<Run>::new());
        for (start, next) in self.extents.into_iter().chain([(len, len)]) {
            let Some(gap) = start.checked_sub(end) else {
                return Err(refused(OVERLAP));
            };
            let cut = gap.checked_div(ALIGNMENT).unwrap_or_default().saturating_mul(ALIGNMENT);
            shift = shift.saturating_add(cut);
            match runs.last_mut() {
                Some(run) if gap == 0 => run.end = next,
                _ => runs.push(Run { start, end: next, shift }),
            }
            end = next;
        }
        let mut changes: Vec<Change> =
            self.numbers.iter().filter_map(|number| number.changed(&runs)).collect();
        changes.sort_unstable();
        Ok((runs, changes))
    }
}

/// Bytes that move together.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u32,
    end: u32,
    /// How far they move to the front.
    shift: u32,
}

/// A place in the new file, and the number of 4 bytes that stands there.
type Change = (u32, u32);

impl Number {
    /// Returns its place in the new file and what stands there, unless that is as before.
    fn changed(self, runs: &[Run]) -> Option<Change> {
        let new = |at: u32| {
            let behind = runs.partition_point(|run| run.start <= at);
            let run = behind.checked_sub(1).and_then(|index| runs.get(index));
            at.saturating_sub(run.map_or(0, |run| run.shift))
        };
        let number = |place: &dyn Fn(u32) -> u32| match self {
            Self::Offset { at, target } | Self::Moved { at, target } => {
                place(target).wrapping_sub(place(at))
            }
            Self::Vtable { at, vtable } => place(at).wrapping_sub(place(vtable)),
            Self::Count { count, .. } => count,
        };
        let (Self::Offset { at, .. }
        | Self::Moved { at, .. }
        | Self::Vtable { at, .. }
        | Self::Count { at, .. }) = self;
        let is_kept = matches!(self, Self::Offset { .. } | Self::Vtable { .. });
        let is_kept = is_kept && number(&new) == number(&|at| at);
        (!is_kept).then(|| (new(at), number(&new)))
    }
}

/// A file of which only some parts are left, at other places.
struct Placed {
    source: Source,
    runs: Vec<Run>,
    /// In the order of their places.
    changes: Vec<Change>,
}

impl ReadAt for Placed {
    fn len(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end.saturating_sub(run.shift).into())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (start, end) = (offset, offset.saturating_add(buffer.len() as u64));
        let bounds = |from: u64, to: u64| {
            let [from, to] = [from, to].map(|at| at.clamp(start, end).saturating_sub(start));
            usize::try_from(from).unwrap_or_default()..usize::try_from(to).unwrap_or_default()
        };
        // Less than what is aligned to is filled up.
        buffer.fill(0);
        let moved =
            |run: &Run| [run.start, run.end].map(|at| u64::from(at.saturating_sub(run.shift)));
        let first = self.runs.partition_point(|run| moved(run)[1] <= start);
        for run in self.runs.iter().skip(first) {
            let [from, to] = moved(run);
            if from >= end {
                break;
            }
            let shift = u64::from(run.shift);
            let old = |at: u64| at.clamp(start, end).saturating_add(shift);
            let part = buffer.get_mut(bounds(from, to)).unwrap_or_default();
            let extent = Extent::between(old(from), old(to));
            self.source.read_into(extent, part, "FlatBuffer").map_err(io::Error::other)?;
        }
        let first =
            self.changes.partition_point(|(at, _)| u64::from(*at) < start.saturating_sub(3));
        for (at, number) in self.changes.iter().skip(first) {
            if u64::from(*at) >= end {
                break;
            }
            for (at, byte) in (u64::from(*at)..).zip(number.to_le_bytes()) {
                buffer.get_mut(bounds(at, at.saturating_add(1))).unwrap_or_default().fill(byte);
            }
        }
        Ok(())
    }
}

const fn refused(reason: &'static str) -> Error {
    Error::NotEditable { reason }
}

/// No place in a FlatBuffer is beyond 2 GiB.
fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// No FlatBuffer is longer than 2 GiB.
fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

const OVERLAP: &str = "its parts overlap";
/// What the places of all parts keep their remainder of, in bytes: storages start at multiples of it.
const ALIGNMENT: u32 = 32;
