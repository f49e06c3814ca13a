//! Where the parts of a carton stand. Format text: "Carton format".

pub(crate) const CARTON_TOML: &str = "carton.toml";
pub(crate) const MANIFEST: &str = "MANIFEST";
pub(crate) const LINKS: &str = "LINKS";
pub(crate) const MODEL: &str = "model/";
pub(crate) const MISC: &str = "misc/";
pub(crate) const TENSOR_DATA: &str = "tensor_data/";
pub(crate) const INDEX: &str = "tensor_data/index.toml";
