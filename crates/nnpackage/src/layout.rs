//! Where the parts of a package are. Format text: "Packaging Structure".

/// The document that makes files a package.
pub(crate) const MANIFEST: &str = "metadata/MANIFEST";
/// The list of digests, which is not part of the format.
pub(crate) const SUMS: &str = "metadata/SHA256SUMS";
/// Golden data that go in.
pub(crate) const GOLDEN_INPUT: &str = "metadata/tc/input.h5";
/// Golden data that have to come out.
pub(crate) const GOLDEN_EXPECTED: &str = "metadata/tc/expected.h5";
/// The name of a configuration that is made.
pub(crate) const CONFIG: &str = "config.cfg";
/// The folder of kernels.
pub(crate) const KERNELS: &str = "custom_op/";

/// Bytes of a document that readers take by default, and that writers stay within.
pub(crate) const DOCUMENT_BYTES: u64 = 1 << 20;

/// Returns the path of a document from the root of a package.
pub(crate) fn document(name: &str) -> String {
    format!("metadata/{name}")
}

/// Tells whether a file says something about a model.
pub(crate) fn is_model_info(path: &str) -> bool {
    let name = path.strip_prefix("metadata/");
    name.is_some_and(|name| !name.contains('/') && name.ends_with(".json"))
}
