//! What the fuzz target `flat_tables_read` does with its input; a test of the crate replays the
//! corpus.

use std::io;

use flat_tables::{
    Bounds, Buffer, Error, Fault, Field, FieldType, Halves, Member, Problem, Result, Table,
    TableType, Union,
    tensor_core::{ReadAt, Source},
};

/// A type of tables with a field of every kind:
///
/// ```text
/// union Any { Node, Text: string }
/// table Node { name: string (required); size: ulong; children: [Node]; any: Any; numbers: [ulong];
///              flag: bool; names: [string]; }
/// ```
pub(crate) static NODE: TableType = TableType {
    name: "Node",
    fields: &[
        Field::required("name", FieldType::Text),
        Field::new("size", FieldType::scalar(8)),
        Field::new("children", FieldType::Tables(&NODE)),
        Field::new("any_type", FieldType::Tag),
        Field::new("any", FieldType::Union(&ANY)),
        Field::new("numbers", FieldType::scalars(8)),
        Field::new("flag", FieldType::scalar(1)),
        Field::new("names", FieldType::Texts),
    ],
};

static ANY: Union = Union {
    members: &[Member::Nothing, Member::Table(&NODE), Member::Text],
    halves: Halves::Refused,
};

/// Reads any bytes as a buffer of such tables: in memory and by pages alike, nothing but errors may
/// come of it, and none where the buffer is proved.
pub(crate) fn run(bytes: &[u8]) {
    // So that nothing behind the end can be read unnoticed.
    let bytes: Box<[u8]> = bytes.into();
    let bounds = Bounds { tables: 1 << 10, depth: 32, apparent_size: 1 << 20 };
    let proved = NODE.verify(&bytes, bounds);
    let read = walked(&Buffer::from_slice(&bytes));
    let source = Source::from_read_at(Stored(bytes));
    assert_eq!(walked(&Buffer::new(&source).page_len(7)), read);
    match (proved, read) {
        (Ok(()), Err(fault)) => {
            // A number may lie behind its table, and no text is read that is long.
            let fine = matches!(fault.problem(), Problem::FieldOutside { .. });
            assert!(fine || fault.problem().is_bound(), "the buffer was proved, but {fault}");
        }
        (Err(fault), _) => drop(fault.moved(u64::MAX / 2).to_string()),
        (Ok(()), Ok(_)) => {}
    }
}

/// Bytes that are not in memory, as far as anybody knows.
struct Stored(Box<[u8]>);

impl ReadAt for Stored {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).expect("the bytes are in memory");
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        Ok(())
    }
}

/// Reads the first tables, and returns how many there are or what is wrong with them.
fn walked(buffer: &Buffer<'_>) -> Result<usize, Fault> {
    let mut count = 0;
    let found = buffer.root("root").and_then(|root| walk(root, 0, &mut count));
    match found {
        Ok(()) => Ok(count),
        Err(Error::Fault(fault)) => Err(fault),
        Err(Error::Core(error)) => panic!("{error}"),
    }
}

fn walk(table: Table<'_>, depth: usize, count: &mut usize) -> Result<()> {
    *count += 1;
    if *count > 1 << 10 || depth > 32 {
        return Ok(());
    }
    assert!(table.extent().end() <= 1 << 31 && table.vtable().len() >= 4);
    let _ = (table.text(0, MOST, "name")?, table.u64(1, "size")?, table.u8(6, "flag")?);
    if let Some(numbers) = table.vector(5, 8, "numbers")? {
        for number in numbers.elements::<8>().take(16) {
            number?;
        }
    }
    if let Some(names) = table.vector(7, 4, "names")? {
        for index in 0..names.count().min(16) {
            names.text_at(index, MOST, "names")?;
        }
    }
    match table.u8(3, "any_type")? {
        1 => {
            if let Some(any) = table.table(4, "any")? {
                walk(any, depth + 1, count)?;
            }
        }
        2 => drop(table.text(4, MOST, "any")?),
        _ => {}
    }
    if let Some(children) = table.vector(2, 4, "children")? {
        for child in children.tables("children").take(16) {
            walk(child?, depth + 1, count)?;
        }
    }
    Ok(())
}

/// Bytes of the longest text that is read.
const MOST: u64 = 1 << 10;
