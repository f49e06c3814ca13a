//! What flatc makes of `schemas/circle.fbs` and `schemas/circle_training.fbs`, with unions as below.
//! Nothing of it is public: the typed modules beside this one are.

#![allow(
    unsafe_code,
    dead_code,
    elided_lifetimes_in_paths,
    missing_docs,
    unreachable_pub,
    clippy::doc_markdown,
    clippy::extra_unused_lifetimes,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::wrong_self_convention,
    reason = "flatc writes it so, and nothing outside calls its unverified constructors"
)]

pub(crate) mod circle;
pub(crate) mod training;

use flat_tables::{Bounds, Fault};
use flatbuffers::{Follow, InvalidFlatbuffer, TableVerifier, VOffsetT, Verifiable, Verifier};

/// Returns the root of a Circle model, of which everything is proved that accessors rely on.
pub(crate) fn circle_model(bytes: &[u8], bounds: Bounds) -> Result<circle::Model<'_>, Fault> {
    circle::tables::MODEL.verify(bytes, bounds)?;
    // SAFETY: all tables of the type that can be reached are where they have to be.
    Ok(unsafe { flatbuffers::root_unchecked::<circle::Model<'_>>(bytes) })
}

/// Returns the root of a TFLite model, of which everything is proved that accessors rely on.
pub(crate) fn tflite_model(bytes: &[u8], bounds: Bounds) -> Result<circle::TfliteModel<'_>, Fault> {
    circle::tables::TFLITE_MODEL.verify(bytes, bounds)?;
    // SAFETY: as above.
    Ok(unsafe { flatbuffers::root_unchecked::<circle::TfliteModel<'_>>(bytes) })
}

/// Returns the root of training information, of which everything is proved that accessors rely on.
pub(crate) fn model_training(
    bytes: &[u8],
    bounds: Bounds,
) -> Result<training::ModelTraining<'_>, Fault> {
    training::tables::MODEL_TRAINING.verify(bytes, bounds)?;
    // SAFETY: as above.
    Ok(unsafe { flatbuffers::root_unchecked::<training::ModelTraining<'_>>(bytes) })
}

/// Verifies unions as C++ does: one of which a field is absent has no value. Writers that store
/// defaults say of every union without a value that it is NONE, and the crate `flatbuffers` would
/// refuse those files.
trait LooseUnions<'opts, 'buf>: Sized {
    fn visit_loose_union<Key, Verify>(
        self,
        key_name: &'static str,
        key: VOffsetT,
        value_name: &'static str,
        value: VOffsetT,
        required: bool,
        verify: Verify,
    ) -> Result<Self, InvalidFlatbuffer>
    where
        Key: Follow<'buf> + Verifiable,
        Verify: FnOnce(Key::Inner, &mut Verifier<'_, '_>, usize) -> Result<(), InvalidFlatbuffer>;
}

impl<'opts, 'buf> LooseUnions<'opts, 'buf> for TableVerifier<'_, 'opts, 'buf> {
    fn visit_loose_union<Key, Verify>(
        mut self,
        key_name: &'static str,
        key: VOffsetT,
        value_name: &'static str,
        value: VOffsetT,
        required: bool,
        verify: Verify,
    ) -> Result<Self, InvalidFlatbuffer>
    where
        Key: Follow<'buf> + Verifiable,
        Verify: FnOnce(Key::Inner, &mut Verifier<'_, '_>, usize) -> Result<(), InvalidFlatbuffer>,
    {
        if self.deref(key)?.is_some() && self.deref(value)?.is_some() {
            return self.visit_union::<Key, _>(key_name, key, value_name, value, required, verify);
        }
        self.visit_field::<Key>(key_name, key, required)
    }
}
