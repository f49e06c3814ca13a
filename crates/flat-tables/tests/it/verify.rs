//! Buffers that are proved as a whole. The judge is the verifier of the crate `flatbuffers`.

use flat_tables::{
    Bounds, Buffer, Fault, Field, FieldType, Halves, Member, Problem, TableType, Union,
};
use flatbuffers::{ForwardsUOffset, Verifiable as _, Verifier, VerifierOptions};
use proptest::{collection::vec, prelude::any, proptest};
use test_support::{mutations, truncations};

use crate::sample::{NODE, Node, tree};

fn options(bounds: Bounds) -> VerifierOptions {
    VerifierOptions {
        max_depth: bounds.depth,
        max_tables: bounds.tables,
        max_apparent_size: bounds.apparent_size,
        ignore_missing_null_terminator: false,
    }
}

fn is_verified(bytes: &[u8], bounds: Bounds) -> bool {
    let options = options(bounds);
    <ForwardsUOffset<Node>>::run_verifier(&mut Verifier::new(&options, bytes), 0).is_ok()
}

/// Tells whether a fault is one that the verifier does not know.
fn is_own(fault: &Fault) -> bool {
    matches!(
        fault.problem(),
        Problem::NoOffset | Problem::VtableLength { .. } | Problem::TableLength { .. }
    )
}

/// Asserts that what is accepted is so by the verifier, and that what it accepts is refused for a
/// reason of our own only.
#[track_caller]
fn agree(bytes: &[u8]) -> Result<(), Fault> {
    let bytes: Box<[u8]> = bytes.into();
    let found = NODE.verify(&bytes, Bounds::default());
    match (&found, is_verified(&bytes, Bounds::default())) {
        (Ok(()), false) => panic!("the verifier refuses it"),
        // Tables of later schemas are not looked at by the verifier.
        (Err(fault), true) if !is_own(fault) && !fault.to_string().contains("Node.any ") => {
            panic!("{fault}")
        }
        _ => found,
    }
}

#[test]
fn sound_buffers() {
    for depth in [0, 1, 5, 9] {
        agree(&tree(depth)).unwrap();
    }
}

#[test]
fn cut_and_changed_buffers() {
    let bytes = tree(1);
    truncations(&bytes, |bytes| drop(agree(bytes)));
    mutations(&bytes, |bytes| drop(agree(bytes)));
}

proptest! {
    #[test]
    fn random_buffers(bytes in vec(any::<u8>(), 0..64)) {
        let _ = agree(&bytes);
    }

    #[test]
    fn small_numbers(bytes in vec(0_u8..16, 0..96)) {
        let _ = agree(&bytes);
    }

    #[test]
    fn many_changes(changes in vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut bytes = tree(1);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let _ = agree(&bytes);
    }
}

/// Returns the least number that is accepted.
fn least(accepts: impl Fn(usize) -> bool) -> usize {
    let mut range = 0..1_usize << 31;
    while range.start < range.end {
        let middle = range.start.midpoint(range.end);
        if accepts(middle) { range.end = middle } else { range.start = middle + 1 }
    }
    range.start
}

#[test]
fn bounds_are_those_of_the_verifier() {
    let bytes = tree(7);
    // Without the table of a later schema, which costs the verifier nothing.
    type Set = fn(&mut Bounds, usize);
    let set: [Set; 3] = [
        |bounds, limit| bounds.tables = limit,
        |bounds, limit| bounds.depth = limit,
        |bounds, limit| bounds.apparent_size = limit,
    ];
    for set in set {
        let bounds = |limit| {
            let mut bounds = Bounds::default();
            set(&mut bounds, limit);
            bounds
        };
        let ours = least(|limit| NODE.verify(&bytes, bounds(limit)).is_ok());
        assert_eq!(ours, least(|limit| is_verified(&bytes, bounds(limit))));
        assert!(NODE.verify(&bytes, bounds(ours - 1)).unwrap_err().problem().is_bound());
    }
}

#[test]
fn lists_of_fields_that_the_verifier_lets_through() {
    // The root at byte 8 has its list of fields in the last two bytes, without the length of the
    // table: accessors would read behind the end.
    let bytes = *b"\x08\0\0\0CIR0\xfc\xff\xff\xff\0\0";
    static EMPTY: TableType = TableType { name: "Empty", fields: &[] };
    struct Empty;
    impl flatbuffers::Verifiable for Empty {
        fn run_verifier(
            v: &mut Verifier<'_, '_>,
            at: usize,
        ) -> Result<(), flatbuffers::InvalidFlatbuffer> {
            v.visit_table(at)?.finish();
            Ok(())
        }
    }
    let options = options(Bounds::default());
    let mut verifier = Verifier::new(&options, &bytes);
    <ForwardsUOffset<Empty>>::run_verifier(&mut verifier, 0).unwrap();
    let fault = EMPTY.verify(&bytes, Bounds::default()).unwrap_err();
    let message = "table at byte 8 has a vtable of 0 bytes, expected an even number from 4 on";
    assert_eq!(fault.to_string(), message);
    let error = Buffer::from_slice(&bytes).root("model").unwrap_err().to_string();
    let message = "model at byte 8 has its vtable outside the buffer: 4 bytes at byte 12, expected \
                   before byte 14";
    assert_eq!(error, message);
}

/// A root at byte 16 with 5 fields, all of them absent: its list of fields is at byte 4.
const LIST: [u8; 24] = [20, 0, 0, 0, 14, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0];

#[test]
fn fields_are_named() {
    let fault = NODE.verify(&LIST, Bounds::default()).unwrap_err();
    let message = "Node.name at byte 20 is absent, expected in every such table";
    assert_eq!(fault.to_string(), message);
    assert_eq!((fault.what(), fault.at()), ("name", 20));
    assert_eq!(fault.kind(), tensor_core::ErrorKind::Malformed);
    assert_eq!(fault.moved(100).named("title").at(), 120);
    // Other places in the buffer move with that of the part.
    let mut bytes = LIST;
    bytes[20] = 24;
    let fault = NODE.verify(&bytes, Bounds::default()).unwrap_err().moved(100).to_string();
    let message = "table at byte 120 has its vtable outside the buffer: 4 bytes at byte 96, \
                   expected before byte 124";
    assert_eq!(fault, message);
    let error = Buffer::from_slice(&[8, 0, 0, 0]).root("model").unwrap_err();
    let flat_tables::Error::Fault(fault) = error else { panic!("{error}") };
    let message = "model at byte 100 has an offset that leads to byte 108, expected one before \
                   byte 104";
    assert_eq!(fault.moved(100).to_string(), message);
}

#[test]
fn half_unions_are_as_the_description_says() {
    static REFUSED: TableType = half(&[
        Field::new("tag", FieldType::Tag),
        Field::new("value", FieldType::Union(&Union { members: &[], halves: Halves::Refused })),
    ]);
    static ABSENT: TableType = half(&[
        Field::new("tag", FieldType::Tag),
        Field::new(
            "value",
            FieldType::Union(&Union { members: &[Member::Nothing], halves: Halves::Absent }),
        ),
    ]);
    const fn half(fields: &'static [Field]) -> TableType {
        TableType { name: "Half", fields }
    }
    let mut bytes = LIST;
    // The tag is there and the value is not.
    bytes[8] = 2;
    ABSENT.verify(&bytes, Bounds::default()).unwrap();
    let fault = REFUSED.verify(&bytes, Bounds::default()).unwrap_err().to_string();
    let message =
        "Half.value at byte 20 is half a union, expected both a tag and a value or neither";
    assert_eq!(fault, message);
    // The other way round.
    (bytes[8], bytes[10]) = (0, 2);
    ABSENT.verify(&bytes, Bounds::default()).unwrap();
    REFUSED.verify(&bytes, Bounds::default()).unwrap_err();
}

#[test]
fn structs_in_unions() {
    static HOLDER: TableType = TableType {
        name: "Holder",
        fields: &[
            Field::new("tag", FieldType::Tag),
            Field::new("value", FieldType::Union(&PAIR)),
            Field::new("unused", FieldType::Unused),
        ],
    };
    static PAIR: Union = Union {
        members: &[Member::Nothing, Member::Struct { size: 8, alignment: 4 }, Member::Unknown],
        halves: Halves::Refused,
    };
    let mut bytes = [&LIST[..], &[4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]].concat();
    // The tag at byte 28, the value at byte 24, which leads to byte 28.
    (bytes[6], bytes[8], bytes[10]) = (12, 8, 4);
    HOLDER.verify(&bytes, Bounds::default()).unwrap();
    HOLDER.verify(&bytes[..36], Bounds::default()).unwrap();
    let fault = HOLDER.verify(&bytes[..35], Bounds::default()).unwrap_err().to_string();
    assert_eq!(fault, "Holder.value at byte 28 needs 8 bytes, but 7 remain");
    bytes[28] = 2;
    let fault = HOLDER.verify(&bytes, Bounds::default()).unwrap_err().to_string();
    assert!(fault.starts_with("Holder.value at byte 28 has "), "{fault}");
}
