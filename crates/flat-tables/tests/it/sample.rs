//! A schema of everything, once as a description and once as flatc would have it, and buffers of it.

use flatbuffers::{
    FlatBufferBuilder, ForwardsUOffset, InvalidFlatbuffer, TableFinishedWIPOffset, Vector,
    Verifiable, Verifier, WIPOffset,
};

pub(crate) use crate::flat_tables_read::NODE;

/// The fields of a node by where they are in the list.
pub(crate) const NAME: u16 = 4;
pub(crate) const SIZE: u16 = 6;
pub(crate) const CHILDREN: u16 = 8;
pub(crate) const ANY_TYPE: u16 = 10;
pub(crate) const ANY_VALUE: u16 = 12;
pub(crate) const NUMBERS: u16 = 14;
pub(crate) const FLAG: u16 = 16;
pub(crate) const NAMES: u16 = 18;

pub(crate) struct Node;

impl Verifiable for Node {
    fn run_verifier(v: &mut Verifier<'_, '_>, at: usize) -> Result<(), InvalidFlatbuffer> {
        v.visit_table(at)?
            .visit_field::<ForwardsUOffset<&str>>("name", NAME, true)?
            .visit_field::<u64>("size", SIZE, false)?
            .visit_field::<ForwardsUOffset<Vector<'_, ForwardsUOffset<Self>>>>(
                "children", CHILDREN, false,
            )?
            .visit_union::<u8, _>("any_type", ANY_TYPE, "any", ANY_VALUE, false, |tag, v, at| {
                match tag {
                    1 => v.verify_union_variant::<ForwardsUOffset<Self>>("Node", at),
                    2 => v.verify_union_variant::<ForwardsUOffset<&str>>("Text", at),
                    _ => Ok(()),
                }
            })?
            .visit_field::<ForwardsUOffset<Vector<'_, u64>>>("numbers", NUMBERS, false)?
            .visit_field::<bool>("flag", FLAG, false)?
            .visit_field::<ForwardsUOffset<Vector<'_, ForwardsUOffset<&str>>>>(
                "names", NAMES, false,
            )?
            .finish();
        Ok(())
    }
}

pub(crate) type Offset = WIPOffset<TableFinishedWIPOffset>;

/// Builds a node with a tag of its union and everything else.
pub(crate) fn node(
    fbb: &mut FlatBufferBuilder<'_>,
    name: &str,
    children: &[Offset],
    tag: u8,
) -> Offset {
    let any = match tag {
        2 => Some(fbb.create_string("any").value()),
        _ => children.first().map(|child| child.value()),
    };
    let children = fbb.create_vector(children);
    let numbers = fbb.create_vector(&[1_u64, 2, 3]);
    let names = [fbb.create_string("a"), fbb.create_string("bc")];
    let names = fbb.create_vector(&names);
    let name = fbb.create_string(name);
    let start = fbb.start_table();
    fbb.push_slot_always(SIZE, 77_u64);
    fbb.push_slot_always(NUMBERS, numbers);
    fbb.push_slot_always(NAMES, names);
    fbb.push_slot_always(CHILDREN, children);
    fbb.push_slot_always(NAME, name);
    if let Some(any) = any {
        fbb.push_slot_always(ANY_VALUE, WIPOffset::<Node>::new(any));
        fbb.push_slot_always(ANY_TYPE, tag);
    }
    fbb.push_slot_always(FLAG, true);
    fbb.end_table(start)
}

/// Returns a tree of nodes, whose first branches are so deep.
pub(crate) fn tree(depth: usize) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::new();
    let leaf = node(&mut fbb, "leaf", &[], 2);
    let other = node(&mut fbb, "of a later schema", &[leaf], 9);
    let mut root = node(&mut fbb, "first", &[leaf, other], 0);
    for _ in 0..depth {
        root = node(&mut fbb, "inner", &[root, leaf], 1);
    }
    fbb.finish(root, None);
    fbb.finished_data().to_vec()
}
