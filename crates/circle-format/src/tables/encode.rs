//! From values of ours to FlatBuffers: the way back of [`scan`](super::scan).

use bytes::Bytes;
use flat_tables::UnknownTable;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Push, Vector, WIPOffset};

use crate::{Error, Result, WriteFault, model::Schema};

/// A value that a field is written from.
pub(crate) trait ToStored<S> {
    fn to_stored(&self, encoder: &mut Encoder) -> Result<S, WriteFault>;
}

/// Tables in the making. They are built from the end to the start: what a table refers to comes
/// before it.
pub(crate) struct Encoder {
    builder: FlatBufferBuilder<'static>,
    schema: Schema,
    /// An upper bound of the bytes that were built. Beyond what offsets reach the builder would
    /// panic.
    len: u64,
    /// What is being built: names of lists, and positions in them.
    path: Vec<(&'static str, usize)>,
}

impl Encoder {
    pub(crate) fn new(schema: Schema) -> Self {
        Self { builder: FlatBufferBuilder::new(), schema, len: 0, path: Vec::new() }
    }

    /// Returns which schema the model is to have.
    pub(crate) const fn schema(&self) -> Schema {
        self.schema
    }

    /// Says that the schema has no place for something.
    pub(crate) fn missing(&self, what: impl Into<String>) -> WriteFault {
        WriteFault::NotInSchema { what: what.into(), schema: self.schema }
    }

    /// Refuses what the schema has no place for.
    pub(crate) fn only(&self, is_so: bool, what: &str) -> Result<(), WriteFault> {
        if is_so { Ok(()) } else { Err(self.missing(what)) }
    }

    /// Writes a list of numbers.
    pub(crate) fn vector<T>(
        &mut self,
        numbers: &[T],
    ) -> Result<Option<WIPOffset<Vector<'static, T>>>, WriteFault>
    where
        T: Push<Output = T> + Copy,
    {
        self.take(size_of::<T>(), numbers.len())?;
        let vector = self.builder.create_vector(numbers);
        Ok(Some(WIPOffset::new(vector.value())))
    }

    /// Writes what a table refers to, or the value of a field.
    pub(crate) fn write<S, T: ToStored<S>>(&mut self, value: &T) -> Result<S, WriteFault> {
        value.to_stored(self)
    }

    /// Writes a list only where there is something in it.
    pub(crate) fn write_some<S, T>(&mut self, values: &Vec<T>) -> Result<Option<S>, WriteFault>
    where
        Vec<T>: ToStored<Option<S>>,
    {
        if values.is_empty() { Ok(None) } else { self.write(values) }
    }

    /// Writes a list of tables, of which `what` names each.
    pub(crate) fn tables<T, S>(
        &mut self,
        what: &'static str,
        tables: &[T],
        mut build: impl FnMut(&T, &mut Self) -> Result<WIPOffset<S>, WriteFault>,
    ) -> Result<Option<TableList<S>>, WriteFault> {
        let mut built = Vec::with_capacity(tables.len());
        for (index, table) in tables.iter().enumerate() {
            self.path.push((what, index));
            built.push(build(table, self)?);
            self.path.pop();
        }
        self.take(size_of::<u32>(), built.len())?;
        let list = self.builder.create_vector(&built);
        Ok(Some(WIPOffset::new(list.value())))
    }

    /// Writes a list of tables only where there is one.
    pub(crate) fn some_tables<T, S>(
        &mut self,
        what: &'static str,
        tables: &[T],
        build: impl FnMut(&T, &mut Self) -> Result<WIPOffset<S>, WriteFault>,
    ) -> Result<Option<TableList<S>>, WriteFault> {
        if tables.is_empty() { Ok(None) } else { self.tables(what, tables, build) }
    }

    /// Returns the builder, for one table.
    pub(crate) fn table(&mut self) -> Result<&mut FlatBufferBuilder<'static>, WriteFault> {
        self.take(1, TABLE)?;
        Ok(&mut self.builder)
    }

    /// Ends the tables with their root.
    pub(crate) fn finish<T>(mut self, root: WIPOffset<T>, identifier: &str) -> Vec<u8> {
        self.builder.finish(root, Some(identifier));
        let (mut bytes, start) = self.builder.collapse();
        bytes.drain(..start);
        bytes
    }

    /// Says what was being built when something was wrong with it.
    pub(crate) fn failed(&self, fault: WriteFault) -> Error {
        let parts: Vec<_> = self.path.iter().map(|(what, at)| format!("{what} {at}")).collect();
        let path = if parts.is_empty() { "model".to_owned() } else { parts.join("/") };
        Error::Unwritable { path, fault }
    }

    /// Makes sure that there is room for a list of `count` elements of `width` bytes.
    fn take(&mut self, width: usize, count: usize) -> Result<(), WriteFault> {
        let len = (width as u64).saturating_mul(count as u64).saturating_add(LIST);
        self.len = self.len.saturating_add(len);
        if self.len > MAX_TABLES {
            return Err(WriteFault::TooLarge { found: self.len, limit: MAX_TABLES });
        }
        Ok(())
    }
}

/// Says that a table cannot be written: what it refers to is somewhere around it.
pub(crate) const fn unknown(what: &'static str, table: &UnknownTable) -> WriteFault {
    WriteFault::Unknown { what, tag: table.tag() }
}

/// Returns what a function that creates a table takes, with every field absent.
///
/// Generated names cannot be put together by macros; this finds one by its function.
pub(crate) fn arguments<'b, 'a, A: Default + 'a, S>(
    _: impl FnOnce(&'b mut FlatBufferBuilder<'static>, &'a A) -> S,
) -> A {
    A::default()
}

/// A list of tables that is built.
pub(crate) type TableList<S> = WIPOffset<Vector<'static, ForwardsUOffset<S>>>;

macro_rules! plain {
    ($($type:ident)*) => {$(
        impl ToStored<$type> for $type {
            fn to_stored(&self, _: &mut Encoder) -> Result<$type, WriteFault> {
                Ok(*self)
            }
        }

        impl ToStored<Option<WIPOffset<Vector<'static, $type>>>> for Vec<$type> {
            fn to_stored(
                &self,
                encoder: &mut Encoder,
            ) -> Result<Option<WIPOffset<Vector<'static, $type>>>, WriteFault> {
                encoder.take(size_of::<$type>(), self.len())?;
                Ok(Some(encoder.builder.create_vector(self)))
            }
        }

        impl ToStored<Option<WIPOffset<Vector<'static, $type>>>> for Option<Vec<$type>> {
            fn to_stored(
                &self,
                encoder: &mut Encoder,
            ) -> Result<Option<WIPOffset<Vector<'static, $type>>>, WriteFault> {
                self.as_ref().map_or(Ok(None), |values| encoder.write(values))
            }
        }
    )*};
}

plain! { bool f32 i32 i64 u16 u32 u64 }

impl ToStored<Option<WIPOffset<&'static str>>> for Option<String> {
    fn to_stored(
        &self,
        encoder: &mut Encoder,
    ) -> Result<Option<WIPOffset<&'static str>>, WriteFault> {
        let Some(text) = self else { return Ok(None) };
        encoder.take(1, text.len())?;
        Ok(Some(WIPOffset::new(encoder.builder.create_string(text).value())))
    }
}

impl ToStored<Option<WIPOffset<Vector<'static, u8>>>> for Bytes {
    fn to_stored(
        &self,
        encoder: &mut Encoder,
    ) -> Result<Option<WIPOffset<Vector<'static, u8>>>, WriteFault> {
        encoder.take(1, self.len())?;
        let vector = encoder.builder.create_vector::<u8>(self);
        Ok(Some(WIPOffset::new(vector.value())))
    }
}

impl ToStored<Option<WIPOffset<Vector<'static, u8>>>> for Option<Bytes> {
    fn to_stored(
        &self,
        encoder: &mut Encoder,
    ) -> Result<Option<WIPOffset<Vector<'static, u8>>>, WriteFault> {
        self.as_ref().map_or(Ok(None), |bytes| encoder.write(bytes))
    }
}

/// What signed offsets of 32 bits reach, in bytes.
pub(crate) const MAX_TABLES: u64 = i32::MAX as u64;

/// No table has more than 17 fields, each with up to 8 bytes, and 2 in the list of fields; with the
/// distance between the two, and padding.
const TABLE: usize = 192;

/// What a list or a text has besides its elements: their number, a closing zero, and padding.
const LIST: u64 = 24;
