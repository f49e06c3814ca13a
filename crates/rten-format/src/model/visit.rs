//! What the walk that proves model data does for the parts of it.

use bytes::Bytes;
use flat_tables::{Checker, Fault, Fields, Problem, UnknownTable};
use flatbuffers::{Table, VOffsetT};

/// A walk over all tables of model data.
pub(crate) trait Visit<'a> {
    fn checker(&mut self) -> &mut Checker<'a>;

    /// Takes note of a table that has fields from this one on.
    fn look_beyond(&mut self, table: Fields<'_>, field: VOffsetT);

    /// Visits a table of a kind that is not known: only that it is there counts, and not even that
    /// where the tag says that there is none.
    fn unknown(&mut self, what: &'static str, tag: u8, reference: usize) -> Checked;

    /// Visits the graph that an attribute leads to.
    fn graph(&mut self, branch: &'static str, reference: usize) -> Checked;
}

/// What is left of a check that went well.
pub(crate) type Checked<T = ()> = Result<T, Fault>;

/// A field of a table, and where it is if it is there.
#[derive(Clone, Copy)]
pub(crate) struct Place<'t> {
    pub(crate) name: &'static str,
    pub(crate) table: Fields<'t>,
    pub(crate) place: Option<usize>,
}

/// Says that a table lacks a field that each must have.
pub(crate) fn missing(field: &'static str, table: Fields<'_>) -> Fault {
    Fault::new(field, table.position() as u64, Problem::Missing)
}

/// Reads the table that a field of a table of proved model data refers to; `None` where the field is
/// absent.
pub(crate) fn unknown(
    what: &'static str,
    tag: u8,
    parent: Table<'_>,
    field: VOffsetT,
    model: &Bytes,
) -> Checked<Option<UnknownTable>> {
    let in_parent = usize::from(parent.vtable().get(field));
    let reference = parent.loc().saturating_add(in_parent);
    (in_parent > 0).then(|| UnknownTable::new(model, reference, tag, what)).transpose()
}
