//! Where the parts of a carton stand. Format text: "Carton format".

pub(crate) const CARTON_TOML: &str = "carton.toml";
pub(crate) const MANIFEST: &str = "MANIFEST";
pub(crate) const LINKS: &str = "LINKS";
pub(crate) const MODEL: &str = "model/";
pub(crate) const MISC: &str = "misc/";
pub(crate) const TENSOR_DATA: &str = "tensor_data/";
pub(crate) const INDEX: &str = "tensor_data/index.toml";
/// What is limited of each document.
pub(crate) const INDEX_BYTES: &str = "tensor_data/index.toml in bytes";
pub(crate) const LINKS_BYTES: &str = "LINKS in bytes";
pub(crate) const MANIFEST_BYTES: &str = "MANIFEST in bytes";

/// Returns the shortest path from the folder of a link to another path of the carton.
pub(crate) fn relative(link: &str, target: &str) -> String {
    let from: Vec<&str> = link.split('/').collect();
    let to: Vec<&str> = target.split('/').collect();
    let folder = from.split_last().map_or(&[][..], |(_, folder)| folder);
    let target_folder = to.split_last().map_or(&[][..], |(_, folder)| folder);
    let shared = folder.iter().zip(target_folder).take_while(|(a, b)| a == b).count();
    let up = folder.len().saturating_sub(shared);
    let mut parts = vec![".."; up];
    parts.extend(to.get(shared..).unwrap_or_default());
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_as_short_as_they_can_be() {
        for (link, target, expected) in [
            ("model/a", "model/b", "b"),
            ("model/x/a", "model/b", "../b"),
            ("model/x/a", "model/x/y/b", "y/b"),
            ("model/x/y/a", "model/z/b", "../../z/b"),
            ("a", "b", "b"),
        ] {
            assert_eq!(relative(link, target), expected);
        }
    }
}
