//! Tables of later schemas.

use bytes::Bytes;
use flat_tables::UnknownTable;

use crate::sample::tree;

#[test]
fn is_kept_with_its_buffer() {
    let bytes = Bytes::from(tree(0));
    let table = UnknownTable::new(&bytes, 0, 9, "node").unwrap();
    assert_eq!((table.tag(), table.fields()), (9, 8));
    assert_eq!(table.position(), usize::from(bytes[0]));
    assert_eq!(table.buffer(), &bytes);
    assert_eq!(table, UnknownTable::new(&bytes, 0, 9, "node").unwrap());
    assert_ne!(table, UnknownTable::new(&bytes, 0, 8, "node").unwrap());
}

#[test]
fn has_to_be_there() {
    // The list of fields is where the offset of the root stands.
    let bytes = Bytes::from_static(&[8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0]);
    let fault = UnknownTable::new(&bytes, 0, 9, "attributes").unwrap_err();
    let message = "attributes at byte 8 has 0 bytes by its vtable, expected from 4 to 4";
    assert_eq!(fault.to_string(), message);
    assert_eq!(UnknownTable::require(&bytes, 0, "attributes"), Err(fault));
}
