//! Cartons built field by field, so that one thing of a good one is changed and that is visible.

use std::collections::BTreeMap;

use carton_format::Sha256;
use test_support::zip::{Entry, Zip};

/// A carton in the making. `MANIFEST` follows from the files unless it is edited.
#[derive(Clone, Default)]
pub(crate) struct Carton {
    entries: BTreeMap<String, Content>,
    manifest: Option<Vec<u8>>,
    links: Option<String>,
}

#[derive(Clone)]
enum Content {
    /// In the archive and listed.
    File(Vec<u8>),
    /// In the archive only.
    Unlisted(Vec<u8>),
    /// Listed only, with the digest of this content.
    Listed(Vec<u8>),
    /// A symbolic link, listed with the digest of this content.
    Symlink(String, Vec<u8>),
}

impl Carton {
    /// The least that a sound carton has.
    pub(crate) fn small() -> Self {
        Self::default()
            .file("carton.toml", SMALL)
            .file("model/m", "model")
            .file("tensor_data/index.toml", "tensor = []\n")
    }

    /// A small carton with tensors and a link.
    pub(crate) fn with_tensors() -> Self {
        let test = "[[self_test]]\ninputs = { a = \"@tensor_data/a\", b = \"@tensor_data/b\" }\n";
        let entry = |name, dtype, file| {
            format!(
                "[[tensor]]\nname = \"{name}\"\ndtype = \"{dtype}\"\nshape = [2]\nfile = \"{file}\"\n"
            )
        };
        let index = [entry("a", "int16", "a.bin"), entry("b", "string", "b.toml")].concat();
        Self::small()
            .toml("[runner]\n", &format!("{test}\n[runner]\n"))
            .symlink("model/l", "m", "model")
            .file("tensor_data/index.toml", index)
            .file("tensor_data/a.bin", [1, 2, 3, 4])
            .file("tensor_data/b.toml", "data = [\"x\", \"y\"]\n")
    }

    /// A carton with something of everything, in which there is nothing to find.
    pub(crate) fn full() -> Self {
        let numbers: Vec<u8> = (1..=6_u8).flat_map(|n| f32::from(n).to_le_bytes()).collect();
        Self::default()
            .file("carton.toml", FULL)
            .file("misc/plot.png", "\u{1}PNG")
            .file("model/m", "model")
            .file("tensor_data/index.toml", INDEX)
            .file("tensor_data/tensor_0.bin", numbers)
            .file("tensor_data/tensor_1.toml", "data = [\"a\", \"b\", \"c\"]\n")
    }

    /// Adds a file, or replaces its content.
    pub(crate) fn file(self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.put(path, Content::File(content.into()))
    }

    pub(crate) fn unlisted(self, path: &str, content: &str) -> Self {
        self.put(path, Content::Unlisted(content.into()))
    }

    pub(crate) fn listed(self, path: &str, content: &str) -> Self {
        self.put(path, Content::Listed(content.into()))
    }

    /// Adds a symbolic link whose line has the digest of `content`.
    pub(crate) fn symlink(self, path: &str, target: &str, content: &str) -> Self {
        self.put(path, Content::Symlink(target.to_owned(), content.into()))
    }

    pub(crate) fn links(mut self, text: impl Into<String>) -> Self {
        self.links = Some(text.into());
        self
    }

    pub(crate) fn without(mut self, path: &str) -> Self {
        assert!(self.entries.remove(path).is_some(), "{path}");
        self
    }

    /// Takes a file out of the archive; its line stays.
    pub(crate) fn left_out(mut self, path: &str) -> Self {
        let Some(Content::File(content)) = self.entries.remove(path) else { panic!("{path}") };
        self.put(path, Content::Listed(content))
    }

    /// Replaces what stands once in a file.
    pub(crate) fn edit(mut self, path: &str, from: &str, to: &str) -> Self {
        let Some(Content::File(content)) = self.entries.get_mut(path) else { panic!("{path}") };
        let text = String::from_utf8(std::mem::take(content)).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{from:?} in {path}");
        *content = text.replacen(from, to, 1).into_bytes();
        self
    }

    /// Replaces what stands once in `carton.toml`.
    pub(crate) fn toml(self, from: &str, to: &str) -> Self {
        self.edit("carton.toml", from, to)
    }

    /// Replaces what stands once in the index.
    pub(crate) fn index(self, from: &str, to: &str) -> Self {
        self.edit("tensor_data/index.toml", from, to)
    }

    /// Edits `MANIFEST` as it follows from the files so far; what changes later does not change it.
    pub(crate) fn manifest(mut self, edit: impl FnOnce(String) -> String) -> Self {
        self.manifest = Some(edit(self.manifest_text()).into_bytes());
        self
    }

    /// Like [`manifest`](Self::manifest), but with bytes that need not be text.
    pub(crate) fn manifest_bytes(mut self, edit: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        self.manifest = Some(edit(self.manifest_text().into_bytes()));
        self
    }

    /// Keeps `MANIFEST` as it is by now, so that later changes of files contradict it.
    pub(crate) fn sealed(self) -> Self {
        self.manifest(|text| text)
    }

    /// Returns the digest of what `MANIFEST` lists under a path.
    pub(crate) fn digest(&self, path: &str) -> String {
        Sha256::digest(self.entries[path].listed().unwrap()).to_string()
    }

    pub(crate) fn zip(&self) -> Zip {
        let mut entries = Vec::new();
        for (path, content) in &self.entries {
            entries.extend(match content {
                Content::File(bytes) | Content::Unlisted(bytes) => Some(Entry::stored(path, bytes)),
                Content::Symlink(target, _) => {
                    Some(Entry::stored(path, target.as_bytes()).mode(0o120_777))
                }
                Content::Listed(_) => None,
            });
        }
        let manifest = self.manifest.clone();
        let manifest = manifest.unwrap_or_else(|| self.manifest_text().into_bytes());
        entries.push(Entry::stored("MANIFEST", &manifest));
        entries.extend(self.links.as_ref().map(|text| Entry::stored("LINKS", text.as_bytes())));
        Zip { entries, ..Zip::default() }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.zip().to_bytes()
    }

    fn put(mut self, path: &str, content: Content) -> Self {
        self.entries.insert(path.to_owned(), content);
        self
    }

    fn manifest_text(&self) -> String {
        let lines = self.entries.iter().filter_map(|(path, content)| {
            Some(format!("{path}={}\n", Sha256::digest(content.listed()?)))
        });
        lines.collect()
    }
}

impl Content {
    /// Returns the content whose digest `MANIFEST` has.
    fn listed(&self) -> Option<&[u8]> {
        match self {
            Self::File(bytes) | Self::Listed(bytes) | Self::Symlink(_, bytes) => Some(bytes),
            Self::Unlisted(_) => None,
        }
    }
}

/// Puts every file of an archive into a zstd frame.
pub(crate) fn compress(zip: &mut Zip) {
    for entry in &mut zip.entries {
        if entry.listing.external == 0 {
            let frame = zstd_frame(&entry.data);
            set_data(entry, 93, frame);
        }
    }
}

/// Replaces the stored bytes of an entry by those of another method.
pub(crate) fn recode(zip: &mut Zip, name: &str, method: u16, data: Vec<u8>) {
    set_data(find(zip, name), method, data);
}

fn set_data(entry: &mut Entry, method: u16, data: Vec<u8>) {
    let len = data.len() as u32;
    entry.data = data;
    *entry = entry.clone().both(|header| (header.method, header.stored_size) = (method, len));
}

pub(crate) fn find<'z>(zip: &'z mut Zip, name: &str) -> &'z mut Entry {
    let entry = zip.entries.iter_mut().find(|entry| entry.central.name == name.as_bytes());
    entry.unwrap_or_else(|| panic!("no entry {name}"))
}

/// Compresses as one zstd frame: in a raw block, so that the bytes do not depend on an encoder.
/// RFC 8878, section 3.1.1.
pub(crate) fn zstd_frame(content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap();
    assert!(len < 1 << 17, "a block has 128 KiB at most");
    let block = len << 3 | 1;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
    // Single segment, content size of four bytes.
    frame.push(0xa0);
    frame.extend(len.to_le_bytes());
    frame.extend(&block.to_le_bytes()[..3]);
    frame.extend(content);
    frame
}

/// Compresses as one stored block. RFC 1951, section 3.2.4.
pub(crate) fn deflate_block(content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).unwrap();
    let mut data = vec![1];
    data.extend(len.to_le_bytes());
    data.extend((!len).to_le_bytes());
    data.extend(content);
    data
}

const SMALL: &str = "\
spec_version = 1

[runner]
runner_name = \"noop\"
required_framework_version = \"=1.2.3\"
runner_compat_version = 1
";

const FULL: &str = "\
spec_version = 1
model_name = \"full\"
model_description = \"[site](https://models.example.com) ![plot](@misc/plot.png)\"
required_platforms = [\"x86_64-unknown-linux-gnu\"]

[[input]]
name = \"x\"
dtype = \"float32\"
shape = [\"n\", 2]

[[output]]
name = \"y\"
dtype = \"string\"
shape = [\"n\"]

[[self_test]]
inputs = { x = \"@tensor_data/numbers\" }
expected_out = { y = \"@tensor_data/texts\" }

[[example]]
inputs = { x = \"@misc/plot.png\" }
sample_out = { y = \"@tensor_data/texts\" }

[runner]
runner_name = \"noop\"
required_framework_version = \"=1.2.3\"
runner_compat_version = 1

[runner.opts]
threads = 1
";

const INDEX: &str = "\
[[tensor]]
name = \"numbers\"
dtype = \"float32\"
shape = [3, 2]
file = \"tensor_0.bin\"
inner = []

[[tensor]]
name = \"texts\"
dtype = \"string\"
shape = [3]
file = \"tensor_1.toml\"
inner = []

[[tensor]]
name = \"list\"
dtype = \"nested\"
inner = [\"numbers\", \"numbers\"]
";
