//! Which tensors go into which file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    metadata::{Carried, Carry, text},
    options::ConvertOptions,
    plan::Item,
    target::Target,
};
use crate::weights::{self, Layout};

/// A file that is to be written.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Some of the items, in their order or in that of the layout.
    Tensors { items: Vec<usize>, layout: Option<Layout> },
    /// An index of the files before it.
    Index(Vec<u8>),
}

impl Planned {
    /// Returns how long the file will be in bytes, where that is known before it is written.
    pub(super) fn byte_len(&self) -> Option<u64> {
        match &self.content {
            Content::Tensors { layout, .. } => layout.as_ref().map(Layout::file_len),
            Content::Index(text) => Some(text.len() as u64),
        }
    }
}

/// Says which files there are to be.
pub(super) fn plan(
    target: Target,
    items: &[Item<'_, '_>],
    metadata: &Carried,
    options: &ConvertOptions,
) -> weights::Result<Vec<Planned>> {
    let shards = split(items, options.shard_size);
    let (stem, extension) = (&options.stem, target.format().extensions().first().unwrap_or(&""));
    let count = shards.len();
    let mut files = Vec::new();
    for (number, items_of) in (1_usize..).zip(shards) {
        let name = match count {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number:05}-of-{count:05}.{extension}"),
        };
        let planned = items_of.iter().filter_map(|index| items.get(*index)).map(Item::planned);
        let layout = layout(target, &metadata.values, &planned.collect::<Vec<_>>())?;
        files.push(Planned { name, content: Content::Tensors { items: items_of, layout } });
    }
    if count > 1 {
        let name = format!("{stem}.{extension}.index.json");
        files.push(Planned { name, content: Content::Index(index(&files, items, metadata)) });
    }
    Ok(files)
}

fn layout(
    target: Target,
    metadata: &BTreeMap<String, Carry>,
    tensors: &[weights::Planned<'_>],
) -> weights::Result<Option<Layout>> {
    Ok(match target {
        Target::Gguf => Some(Layout::gguf(metadata, tensors)?),
        Target::Safetensors => {
            let texts = metadata
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), text(value.value()?))));
            Some(Layout::safetensors(&texts.collect(), tensors)?)
        }
        _ => None,
    })
}

/// Fills files with tensors in their order, each as far as it goes; one that is too large alone has a
/// file alone.
fn split(items: &[Item<'_, '_>], shard_size: Option<u64>) -> Vec<Vec<usize>> {
    let most = shard_size.unwrap_or(u64::MAX);
    let (mut shards, mut shard, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
    for (index, item) in items.iter().enumerate() {
        let after = bytes.saturating_add(item.byte_len);
        if after > most && !shard.is_empty() {
            shards.push(std::mem::take(&mut shard));
            bytes = 0;
        }
        bytes = bytes.saturating_add(item.byte_len);
        shard.push(index);
    }
    shards.push(shard);
    shards
}

/// Writes the index as `huggingface_hub` does.
fn index(files: &[Planned], items: &[Item<'_, '_>], metadata: &Carried) -> Vec<u8> {
    let mut map = BTreeMap::new();
    for file in files {
        let Content::Tensors { items: inside, .. } = &file.content else { continue };
        let inside = inside.iter().filter_map(|index| items.get(*index));
        map.extend(inside.map(|item| (&*item.name, &*file.name)));
    }
    let total = items.iter().map(|item| item.byte_len).fold(0, u64::saturating_add);
    let texts = metadata.values.iter();
    let mut about: BTreeMap<&str, Value> =
        texts.filter_map(|(key, value)| Some((&**key, value.value()?.clone()))).collect();
    about.insert("total_size", total.into());
    let index = json!({ "metadata": about, "weight_map": map });
    format!("{index:#}\n").into_bytes()
}
