//! Lists of buckets, before `object_store` reads them: it gives up all of a page for one odd key.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use object_store::client::{HttpError, HttpErrorKind};

use super::{Error, answer::Version, bucket::Object, location::odd_part};

/// What lists of a bucket have that cannot be asked for.
#[derive(Debug, Default)]
pub(super) struct List {
    /// The lengths of objects with odd keys.
    odd: Mutex<BTreeMap<String, u64>>,
    /// How many pages without anything there were since one with something.
    empty: AtomicU32,
}

impl List {
    /// Forgets what earlier lists of a folder had.
    pub(super) fn begin(&self, folder: &str) {
        let mut odd = self.odd.lock().unwrap_or_else(PoisonError::into_inner);
        odd.retain(|key, _| !key.starts_with(folder));
    }

    /// Returns the objects with odd keys in a folder that were listed so far.
    pub(super) fn odd(&self, folder: &str) -> Vec<Object> {
        let odd = self.odd.lock().unwrap_or_else(PoisonError::into_inner);
        let odd = odd.iter().filter(|(key, _)| key.starts_with(folder));
        let object = |(key, len): (&String, &u64)| {
            let version = Version::default();
            Object { key: key.clone(), len: *len, version }
        };
        odd.map(object).collect()
    }

    /// Takes the objects out of a page of a list whose keys are odd, and those that stand for folders.
    pub(super) fn without_odd(&self, page: &[u8]) -> Result<Vec<u8>, HttpError> {
        let failed = |error| HttpError::new(HttpErrorKind::Unknown, error);
        let text = String::from_utf8_lossy(page);
        let (mut kept, mut rest, mut count) = (String::with_capacity(text.len()), &*text, 0_u32);
        while let Some((name, open, close)) = TAGS.into_iter().find_map(|(tag, name)| {
            let open = rest.find(&format!("<{tag}>"))?;
            let close = format!("</{tag}>");
            let end = rest.get(open..)?.find(&close)?;
            Some((name, open, open.checked_add(end)?.checked_add(close.len())?))
        }) {
            let (before, object) = (rest.get(..open), rest.get(open..close));
            let (before, object) = (before.unwrap_or_default(), object.unwrap_or_default());
            let key = unescaped(part(object, name).unwrap_or_default());
            kept.push_str(before);
            count = count.saturating_add(1);
            if odd_part(&key).is_some() {
                let len = part(object, "Size").or_else(|| part(object, "Content-Length"));
                let len = len.and_then(|len| len.parse().ok()).unwrap_or(0);
                let mut odd = self.odd.lock().unwrap_or_else(PoisonError::into_inner);
                odd.insert(key.into_owned(), len);
                if odd.len() > MOST_ODD {
                    let reason = format!("has more than {MOST_ODD} odd keys");
                    return Err(failed(Error::list(reason)));
                }
            } else if !key.ends_with('/') {
                kept.push_str(object);
            }
            rest = rest.get(close..).unwrap_or_default();
        }
        kept.push_str(rest);
        let empty = match count {
            0 => self.empty.fetch_add(1, Ordering::Relaxed),
            _ => self.empty.swap(0, Ordering::Relaxed),
        };
        if count == 0 && empty > MOST_EMPTY {
            return Err(failed(Error::list("has page after page without a file")));
        }
        Ok(kept.into_bytes())
    }
}

/// Returns the text of an element.
fn part<'x>(xml: &'x str, tag: &str) -> Option<&'x str> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(text, _)| text)
}

/// Returns a text without the escapes of XML.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut pieces = text.split('&');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once(';').unwrap_or((piece, ""));
        let number = |text: &str, radix| u32::from_str_radix(text, radix).ok();
        let code = match (name, name.strip_prefix("#x"), name.strip_prefix('#')) {
            ("amp", ..) => Some(0x26),
            ("lt", ..) => Some(0x3c),
            ("gt", ..) => Some(0x3e),
            ("quot", ..) => Some(0x22),
            ("apos", ..) => Some(0x27),
            (_, Some(hex), _) => number(hex, 16),
            (_, _, Some(decimal)) => number(decimal, 10),
            _ => None,
        };
        out.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
        out.push_str(rest);
    }
    out.into()
}

/// What an object is called in a page of a list, and its name in that.
const TAGS: [(&str, &str); 2] = [("Contents", "Key"), ("Blob", "Name")];

/// How many objects with odd keys are told.
const MOST_ODD: usize = 10_000;

/// How many pages in a row may have nothing.
const MOST_EMPTY: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(keys: &[&str]) -> String {
        let object = |key: &&str| format!("<Contents><Key>{key}</Key><Size>7</Size></Contents>");
        let objects: String = keys.iter().map(object).collect();
        format!("<L><Name>bucket</Name>{objects}<IsTruncated>false</IsTruncated></L>")
    }

    #[test]
    fn odd_keys_are_taken_out() {
        let odd = ["m//a.zt", "/b.zt", "m/../c.zt", "m/&#x1;.zt", "m/&#10;.zt"];
        let keys = [&["m/&amp;.zt", "m/"][..], &odd, &["n.zt"]].concat();
        let list = List::default();
        let kept = list.without_odd(page(&keys).as_bytes()).unwrap();
        assert_eq!(String::from_utf8(kept).unwrap(), page(&["m/&amp;.zt", "n.zt"]));
        let found = list.odd("m/");
        let keys: Vec<&str> = found.iter().map(|object| &*object.key).collect();
        assert_eq!(keys, ["m/\u{1}.zt", "m/\n.zt", "m/../c.zt", "m//a.zt"]);
        assert!(found.iter().all(|object| object.len == 7));
        list.begin("m/");
        assert_eq!((list.odd("m/").len(), list.odd("").len()), (0, 1));
        let blobs = "<Blobs><Blob><Name>a//b</Name></Blob><Blob><Name>c</Name></Blob></Blobs>";
        let kept = list.without_odd(blobs.as_bytes()).unwrap();
        assert_eq!(kept, b"<Blobs><Blob><Name>c</Name></Blob></Blobs>");
    }

    #[test]
    fn pages_without_end() {
        let list = List::default();
        let empty = page(&[]);
        let ends = (0..2_000).find(|_| list.without_odd(empty.as_bytes()).is_err());
        assert_eq!(ends, Some(1_001));
    }
}
