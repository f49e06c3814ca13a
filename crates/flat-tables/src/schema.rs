use std::fmt;

use crate::{Bounds, Checker, Fault, Fields, Problem, Result};

/// What a schema says of a type of tables: its fields, in the order of their ids.
///
/// # Examples
///
/// ```
/// use flat_tables::{Bounds, Field, FieldType, TableType};
///
/// // table Node { name: string (required); size: uint; children: [Node]; }
/// static NODE: TableType = TableType {
///     name: "Node",
///     fields: &[
///         Field::required("name", FieldType::Text),
///         Field::new("size", FieldType::scalar(4)),
///         Field::new("children", FieldType::Tables(&NODE)),
///     ],
/// };
///
/// let fault = NODE.verify(&[4, 0, 0, 0, 0, 0, 0, 0], Bounds::default()).unwrap_err();
/// let message = "table at byte 4 has a vtable of 0 bytes, expected an even number from 4 on";
/// assert_eq!(fault.to_string(), message);
/// ```
pub struct TableType {
    /// Its name, for faults.
    pub name: &'static str,
    /// Its fields, in the order of their ids.
    pub fields: &'static [Field],
}

/// A field of a table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name, for faults.
    pub name: &'static str,
    /// What stands there.
    pub field_type: FieldType,
    /// Whether each table must have it.
    pub is_required: bool,
}

/// What stands in a field of a table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FieldType {
    /// What no accessor looks at: a field that is out of use.
    Unused,
    /// A number or struct in the table itself.
    Inline {
        /// Its length in bytes.
        size: u8,
        /// What its place is a multiple of.
        alignment: u8,
    },
    /// A reference to a text.
    Text,
    /// A reference to a vector of references to texts.
    Texts,
    /// A reference to a vector of numbers or structs.
    Vector {
        /// Bytes of an element.
        size: u8,
        /// What the place of the first one is a multiple of.
        alignment: u8,
    },
    /// A reference to a table.
    Table(&'static TableType),
    /// A reference to a vector of references to tables.
    Tables(&'static TableType),
    /// The tag of the union whose value is the next field.
    Tag,
    /// A reference to what the tag before says.
    Union(&'static Union),
}

/// What a schema says of a union.
#[derive(Clone, Copy, Debug)]
pub struct Union {
    /// What each tag stands for; further ones are of a later schema.
    pub members: &'static [Member],
    /// What is made of one of which one of the two fields is absent.
    pub halves: Halves,
}

/// What a tag of a union stands for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Member {
    /// Nothing: no accessor looks at the value.
    Nothing,
    /// A table of a later schema.
    Unknown,
    /// A table.
    Table(&'static TableType),
    /// A struct.
    Struct {
        /// Its length in bytes.
        size: u8,
        /// What its place is a multiple of.
        alignment: u8,
    },
    /// A text.
    Text,
}

/// What is made of a union of which one of the two fields is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// The buffer is malformed, as the crate `flatbuffers` has it.
    Refused,
    /// The union has no value, as every other verifier has it.
    Absent,
}

impl Field {
    /// Describes a field that may be absent.
    #[must_use]
    pub const fn new(name: &'static str, field_type: FieldType) -> Self {
        Self { name, field_type, is_required: false }
    }

    /// Describes a field that must be there.
    #[must_use]
    pub const fn required(name: &'static str, field_type: FieldType) -> Self {
        Self { name, field_type, is_required: true }
    }
}

impl FieldType {
    /// Describes a number of so many bytes.
    #[must_use]
    pub const fn scalar(size: u8) -> Self {
        Self::Inline { size, alignment: size }
    }

    /// Describes a vector of numbers of so many bytes.
    #[must_use]
    pub const fn scalars(size: u8) -> Self {
        Self::Vector { size, alignment: size }
    }
}

impl TableType {
    /// Proves that a buffer has a table of this type as its root, and that everything is in place
    /// which the accessors of the schema can get at, at any depth.
    ///
    /// Tables with a tag of a later schema have to be there, with their lists of fields.
    ///
    /// # Errors
    ///
    /// A [`Fault`] with the first part that is not in place, or where a bound is reached.
    pub fn verify(&self, bytes: &[u8], bounds: Bounds) -> Result<(), Fault> {
        self.visit(0, &mut Checker::new(bytes, bounds)?)
    }

    /// Proves the table that a reference leads to, as a part of a walk of the caller's own.
    ///
    /// # Errors
    ///
    /// As for [`verify`](Self::verify).
    pub fn visit(&self, reference: usize, checker: &mut Checker<'_>) -> Result<(), Fault> {
        let table = checker.enter(reference)?;
        for (offset, field) in (4..).step_by(2).zip(self.fields) {
            let found = self.visit_field(field, table, offset, checker);
            found.map_err(|fault| fault.in_field(self.name, field.name))?;
        }
        checker.leave();
        Ok(())
    }

    fn visit_field(
        &self,
        field: &Field,
        table: Fields<'_>,
        offset: u16,
        checker: &mut Checker<'_>,
    ) -> Result<(), Fault> {
        match field.field_type {
            FieldType::Unused | FieldType::Tag => return Ok(()),
            FieldType::Union(union) => return union.visit(table, offset, field, checker),
            _ => {}
        }
        let Some(at) = checker.field(table, offset)? else {
            return absent(field, table);
        };
        match field.field_type {
            FieldType::Unused | FieldType::Tag | FieldType::Union(_) => {}
            FieldType::Inline { size, alignment } => {
                checker.inline(at, size.into(), alignment.into())?;
            }
            FieldType::Text => drop(checker.text(at)?),
            FieldType::Texts => {
                for text in checker.tables(at)? {
                    checker.text(text)?;
                }
            }
            FieldType::Vector { size, alignment } => {
                checker.elements(at, size.into(), alignment.into())?;
            }
            FieldType::Table(table) => table.visit(at, checker)?,
            FieldType::Tables(table) => {
                for at in checker.tables(at)? {
                    table.visit(at, checker)?;
                }
            }
        }
        Ok(())
    }
}

impl Union {
    fn visit(
        &self,
        table: Fields<'_>,
        value: u16,
        field: &Field,
        checker: &mut Checker<'_>,
    ) -> Result<(), Fault> {
        let tag = value.saturating_sub(2);
        let found = match self.halves {
            Halves::Refused => checker.union(table, tag, value)?,
            Halves::Absent => {
                let tag = match checker.field(table, tag)? {
                    Some(tag) => Some(checker.read::<1>(tag)?),
                    None => None,
                };
                tag.zip(checker.field(table, value)?).map(|([tag], value)| (tag, value))
            }
        };
        let Some((tag, at)) = found else { return absent(field, table) };
        match *self.members.get(usize::from(tag)).unwrap_or(&Member::Unknown) {
            Member::Nothing => Ok(()),
            Member::Unknown => checker.unknown(at),
            Member::Table(table) => table.visit(at, checker),
            Member::Struct { size, alignment } => {
                checker.referred(at, size.into(), alignment.into())
            }
            Member::Text => checker.text(at).map(drop),
        }
    }
}

fn absent(field: &Field, table: Fields<'_>) -> Result<(), Fault> {
    if field.is_required {
        return Err(Fault::new("field", table.position() as u64, Problem::Missing));
    }
    Ok(())
}

/// Shows the name only: types may refer to each other in circles.
impl fmt::Debug for TableType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
