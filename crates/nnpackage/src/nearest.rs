//! What may have been meant by a word that means nothing.

/// Returns the known word that is most like another one; `None` where none is much like it.
pub(crate) fn nearest<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if found.len() > LONG {
        return None;
    }
    let ranked = known.map(|known| (distance(found, known), known));
    let (distance, known) = ranked.min_by_key(|(distance, _)| *distance)?;
    let most = known.chars().count() / 3;
    (distance <= most.max(1)).then_some(known)
}

/// Counts the characters to be put in, taken out, changed or swapped to make the one of the other;
/// case does not count.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut previous = row.clone();
    let mut before = None;
    for (i, &letter) in a.iter().enumerate() {
        let last = std::mem::take(&mut previous);
        previous = row;
        row = vec![i.saturating_add(1)];
        let mut left = None;
        for (j, &other) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX);
            let change = at(&previous, j).saturating_add(usize::from(letter != other));
            let remove = at(&previous, j.saturating_add(1)).saturating_add(1);
            let insert = at(&row, j).saturating_add(1);
            let mut best = change.min(remove).min(insert);
            if before == Some(other)
                && left == Some(letter)
                && let Some(j) = j.checked_sub(1)
            {
                best = best.min(at(&last, j).saturating_add(1));
            }
            row.push(best);
            left = Some(other);
        }
        before = Some(letter);
    }
    row.last().copied().unwrap_or_default()
}

/// Bytes of a word that is looked up; what is longer is like nothing.
const LONG: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "ABC", 0),
            ("EXCUTOR", "EXECUTOR", 1),
            ("modles", "models", 1),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("abc", "", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn only_what_is_much_alike() {
        let known = ["models", "model-types", "configs"];
        assert_eq!(nearest("model", known.into_iter()), Some("models"));
        assert_eq!(nearest("config", known.into_iter()), Some("configs"));
        assert_eq!(nearest("author", known.into_iter()), None);
    }
}
