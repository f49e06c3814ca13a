//! Text from files, as messages show it.

/// Returns a text as a message shows it: quoted, escaped, and cut where it is long.
pub(crate) fn shown(text: &str) -> String {
    match start(text) {
        Some(start) => format!("{start:?}…"),
        None => format!("{text:?}"),
    }
}

/// Returns the start of a text that is longer than a message shows.
pub(crate) fn start(text: &str) -> Option<&str> {
    let (end, _) = text.char_indices().nth(SHOWN)?;
    text.get(..end)
}

/// Characters of a value that a message shows.
const SHOWN: usize = 64;
