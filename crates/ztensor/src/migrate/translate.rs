//! The same definitions in the words of generation 1.1 and of 1.2.

use std::io;

use crate::{
    Component, Encoding, Format, Object, Role, StoredType, Tensor,
    manifest::{Key, dtype},
};

/// Says of the components of an object what they say in the words of generation 1.2.
pub(crate) fn translate_to_v1_2(tensor: Tensor<'_>, object: &mut Object) {
    let definition = object.clone();
    for (role, component) in &mut object.components {
        if component.encoding == Encoding::Zstd && component.uncompressed_length.is_none() {
            // Where sizes contradict each other, the copy says as little as the original.
            let blob = tensor.blob_of(&definition, role, component).ok();
            component.uncompressed_length = blob.and_then(|blob| {
                let counted = || io::copy(&mut blob.stream().ok()?, &mut io::sink()).ok();
                blob.decoded_len().or_else(counted)
            });
        }
        drop_keys(component, &V1_2_KEYS);
        name_as_in_v1_2(component);
    }
}

/// Removes keys that mean something in the generation that is written, and did not in the one that
/// was read; returns those that were there.
pub(super) fn drop_keys(component: &mut Component, keys: &[&str]) -> Vec<String> {
    let is_dropped = |(key, _): &mut (Key, _)| keys.contains(&key.as_str());
    component.other.extract_if(.., is_dropped).map(|(key, _)| key.as_str().to_owned()).collect()
}

/// Says of a component what it says in the words of generation 1.1; a `type` that is not known
/// stays.
pub(crate) fn translate_to_v1_1(format: &Format, role: &Role, component: &mut Component) {
    let Some(dtype) = component.element_type() else {
        return;
    };
    if !component.logical_type_is_unknown() && component.logical_type.take().is_some() {
        component.dtype = StoredType::Known(dtype);
    }
    // Elsewhere the shape does not tell the length, so the key that does is kept, though 1.1
    // ignores it.
    if (format, role) == (&Format::Dense, &Role::Data) {
        component.uncompressed_length = None;
    }
}

/// Names the element type by storage type and `type`, where generation 1.2 has such.
pub(crate) fn name_as_in_v1_2(component: &mut Component) {
    if component.logical_type.is_none()
        && let StoredType::Known(dtype) = component.dtype
        && let Some((stored, logical)) = dtype::storage_of(dtype)
    {
        component.dtype = StoredType::Known(stored);
        component.logical_type = Some(logical.to_owned());
    }
}

/// What only generation 1.2 names in a component.
pub(super) const V1_2_KEYS: [&str; 2] = ["type", "uncompressed_length"];
/// What the generations from 1.1 on name in a component, and 1.0 does not.
pub(super) const LATER_KEYS: [&str; 3] = ["dtype", "type", "uncompressed_length"];
