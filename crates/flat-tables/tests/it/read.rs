//! Tables that are read where they are asked for.

use flat_tables::{Buffer, Error, Table};
use test_support::{CountingSource, mutations, truncations};

use crate::sample::tree;

const NAMED: u64 = 100;

/// Reads everything that a node leads to.
fn walk(node: Table<'_>, depth: usize) -> Result<usize, Error> {
    let mut found = node.text(0, NAMED, "name")?.map_or(0, |name| name.len());
    node.u64(1, "size")?;
    node.u8(6, "flag")?;
    if let Some(numbers) = node.vector(5, 8, "numbers")? {
        let numbers = numbers.elements::<8>().map(Result::unwrap).map(usize::from_le_bytes);
        found = numbers.fold(found, usize::wrapping_add);
    }
    if let Some(names) = node.vector(7, 4, "names")? {
        for index in 0..names.count().min(9) {
            let name = names.text_at(index, NAMED, "name of a name")?.unwrap();
            found = found.wrapping_add(name.len());
        }
    }
    if let Some(children) = node.vector(2, 4, "children")? {
        for child in children.tables("child").take(if depth < 5 { 9 } else { 0 }) {
            found = found.wrapping_add(walk(child?, depth + 1)?);
        }
    }
    Ok(found)
}

#[track_caller]
fn rejects(bytes: &[u8], message: &str) {
    let buffer = Buffer::from_slice(bytes);
    let error = buffer.root("model").and_then(|root| walk(root, 0)).unwrap_err();
    assert_eq!(error.to_string(), message);
}

/// A root at byte 12 with a field of 4 bytes: its list of fields is at byte 4.
const SMALL: [u8; 20] = [12, 0, 0, 0, 6, 0, 8, 0, 4, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0];

/// Changes one byte of it.
fn with(at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = SMALL.to_vec();
    bytes[at] = byte;
    bytes
}

#[test]
fn numbers_are_where_the_list_says() {
    let buffer = Buffer::from_slice(&SMALL);
    let root = buffer.root("model").unwrap();
    assert_eq!((root.position(), root.field_count()), (12, 1));
    assert_eq!((root.extent().offset(), root.extent().len()), (12, 8));
    assert_eq!((root.vtable().offset(), root.vtable().len()), (4, 6));
    assert_eq!(root.u32(0, "size").unwrap(), 7);
    assert_eq!(root.field(0).unwrap(), Some(16));
    assert_eq!(root.u32(1, "absent").unwrap(), 0);
    assert_eq!(root.field(usize::MAX).unwrap(), None);
}

#[test]
fn broken_tables() {
    rejects(&SMALL[..3], "model at byte 0 needs 4 bytes, but 3 remain");
    rejects(&with(0, 0), "model at byte 0 has the offset 0, expected one that leads forward");
    rejects(
        &with(0, 20),
        "model at byte 0 has an offset that leads to byte 20, expected one before byte 20",
    );
    rejects(&with(0, 18), "model at byte 18 does not start at a multiple of 4 bytes");
    rejects(&with(12, 7), "vtable at byte 5 does not start at a multiple of 2 bytes");
    let outside = |needed, vtable: i64| {
        format!(
            "model at byte 12 has its vtable outside the buffer: {needed} bytes at byte {vtable}, \
             expected before byte 20"
        )
    };
    rejects(&with(12, 14), &outside(4, -2));
    rejects(&with(15, 0x80), &outside(4, 2_147_483_652));
    // Where it is outside, it does not matter that it is not aligned.
    rejects(&with(12, 0xf3), &outside(4, -231));
    let length = |found| {
        format!("model at byte 12 has a vtable of {found} bytes, expected an even number from 4 on")
    };
    for found in [0, 1, 2, 3, 5] {
        rejects(&with(4, found), &length(found));
    }
    rejects(&with(4, 18), &outside(18, 4));
    rejects(&with(6, 3), "model at byte 12 has 3 bytes by its vtable, expected from 4 to 8");
    rejects(&with(6, 9), "model at byte 12 has 9 bytes by its vtable, expected from 4 to 8");
}

#[test]
fn broken_fields() {
    let buffer = with(8, 6);
    let buffer = Buffer::from_slice(&buffer);
    let root = buffer.root("model").unwrap();
    let error = root.u32(0, "size").unwrap_err().to_string();
    assert_eq!(error, "size at byte 18 does not start at a multiple of 4 bytes");
    let error = root.u64(0, "size").unwrap_err().to_string();
    assert_eq!(error, "size at byte 18 does not start at a multiple of 8 bytes");
    let bytes = with(8, 8);
    let buffer = Buffer::from_slice(&bytes);
    let error = buffer.root("model").unwrap().u32(0, "size").unwrap_err().to_string();
    assert_eq!(error, "size at byte 20 ends 12 bytes into its table, which has 8");
}

#[test]
fn broken_vectors() {
    // The field leads to itself, to the end, and to a number that is too large.
    for (offset, message) in [
        (0, "list at byte 16 has the offset 0, expected one that leads forward"),
        (4, "list at byte 16 has an offset that leads to byte 20, expected one before byte 20"),
        (2, "list at byte 18 does not start at a multiple of 4 bytes"),
    ] {
        let bytes = with(16, offset);
        let buffer = Buffer::from_slice(&bytes);
        let root = buffer.root("model").unwrap();
        assert_eq!(root.vector(0, 4, "list").unwrap_err().to_string(), message);
    }
    let mut bytes = with(16, 4);
    bytes.extend([2, 0, 0, 0, 9]);
    let buffer = Buffer::from_slice(&bytes);
    let root = buffer.root("model").unwrap();
    let error = root.vector(0, 4, "list").unwrap_err().to_string();
    assert_eq!(error, "list at byte 24 needs 8 bytes, but 1 remain");
    let error = root.vector(0, usize::MAX, "list").unwrap_err().to_string();
    assert!(error.starts_with("list at byte 24 needs 18446744073709551615 bytes"), "{error}");
}

#[test]
fn texts_are_utf_8_and_short() {
    let mut bytes = with(16, 4);
    bytes.extend([2, 0, 0, 0, 0xc3, 0x28]);
    let buffer = Buffer::from_slice(&bytes);
    let root = buffer.root("model").unwrap();
    assert_eq!(root.text(0, 9, "name").unwrap_err().to_string(), "name at byte 24 is not UTF-8");
    let error = root.text(0, 1, "name").unwrap_err().to_string();
    assert_eq!(error, "name at byte 24 is a text of 2 bytes, expected at most 1");
}

#[test]
fn pages_say_what_memory_says() {
    let bytes = tree(3);
    let whole = walk(Buffer::from_slice(&bytes).root("model").unwrap(), 0).unwrap();
    let source = CountingSource::new(&bytes).source();
    let buffer = Buffer::new(&source);
    assert_eq!(walk(buffer.root("model").unwrap(), 0).unwrap(), whole);
}

#[test]
fn only_pages_that_are_looked_at_are_read() {
    let mut bytes = tree(3);
    bytes.resize(1 << 20, 0);
    let counting = CountingSource::new(&bytes);
    let source = counting.source();
    let buffer = Buffer::new(&source);
    walk(buffer.root("model").unwrap(), 0).unwrap();
    walk(buffer.root("model").unwrap(), 0).unwrap();
    assert_eq!(counting.total(), 4096);
}

#[test]
fn cut_and_changed_buffers_never_panic() {
    let bytes = tree(1);
    let read = |bytes: &[u8]| {
        // A buffer of its own, which ends where its bytes do.
        let bytes: Box<[u8]> = bytes.into();
        let whole = Buffer::from_slice(&bytes).root("model").and_then(|root| walk(root, 0));
        let source = CountingSource::new(&bytes).source();
        let paged = Buffer::new(&source).root("model").and_then(|root| walk(root, 0));
        assert_eq!(
            whole.map_err(|error| error.to_string()),
            paged.map_err(|error| error.to_string())
        );
    };
    truncations(&bytes, read);
    mutations(&bytes, read);
}
