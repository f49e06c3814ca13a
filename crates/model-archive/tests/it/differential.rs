//! Two readers of one archive: what the strict profile accepts, the `zip` crate reads in the same
//! way or not at all.
#![cfg(all(feature = "deflate", feature = "zstd"))]

use model_archive::Archive;
use proptest::{collection::vec, prelude::*, sample::select};
use test_support::zip::{Entry, Header, Zip, Zip64End, extra, unicode_path};

use crate::{
    changed::{Files, content, read_by_zip},
    deflated,
};

fn read(bytes: &[u8]) -> Option<Files> {
    let archive = Archive::from_bytes(bytes.to_vec()).ok()?;
    let files = archive.entries().map(|entry| Some((entry.name().to_owned(), content(entry)?)));
    let files = files.collect::<Option<Files>>()?;
    archive.lint().is_valid().then_some(files)
}

/// A file of any method, with whatever a writer may put around it.
fn entry() -> impl Strategy<Value = Entry> {
    let name = "[a-c]{1,2}(/[a-c\u{e9}]{1,3}){0,2}";
    let content = prop_oneof![vec(any::<u8>(), 0..40), vec(select(vec![0_u8, 1]), 0..2000)];
    (name, content, select(vec![0_u16, 8, 93]), any::<[bool; 4]>()).prop_map(
        |(name, content, method, [described, zip64, padded, moded])| {
            let data = match method {
                0 => content.clone(),
                8 => deflated(&content),
                _ => zstd::encode_all(&content[..], 1).unwrap(),
            };
            let mut entry = Entry::coded(&name, &content, method, data);
            if zip64 {
                let sizes = [u64::from(entry.central.size), u64::from(entry.central.stored_size)];
                entry = entry.both(|header| {
                    (header.size, header.stored_size) = (u32::MAX, u32::MAX);
                    header.extra = extra(1, &sizes.map(u64::to_le_bytes).concat());
                });
            } else if described {
                entry = entry.described();
            }
            if padded {
                entry.local.extra.extend(extra(0xd935, &[0; 30]));
            }
            if moded { entry.mode(0o100_644) } else { entry }
        },
    )
}

/// An archive as writers make it.
fn archive() -> impl Strategy<Value = Zip> {
    (vec(entry(), 0..6), any::<bool>(), vec(any::<u8>(), 0..30)).prop_map(
        |(entries, is_zip64, comment)| {
            let mut zip = Zip { entries, ..Zip::default() };
            let mut names = std::collections::HashSet::new();
            zip.entries.retain(|entry| names.insert(entry.local.name.clone()));
            zip.zip64 = is_zip64.then(Zip64End::default);
            // By itself, the crate looks for the directory in the wrong place where the record is
            // there and nothing points to it.
            zip.end.entries = is_zip64.then_some(u16::MAX);
            zip.end.comment = comment;
            zip
        },
    )
}

/// Changes one field of an archive: `which` field, of the entry `at`, to something with `value`.
fn change(zip: &mut Zip, which: u8, at: usize, value: u32) {
    let small = (value % 70) as u16;
    let second = zip.entries.get(at + 1).map(|entry| entry.local.name.clone());
    let end = (zip.entries.len() as u16).saturating_sub(1);
    let bytes = zip.to_bytes();
    if let Some(entry) = zip.entries.get_mut(at) {
        let name = String::from_utf8_lossy(&entry.central.name).into_owned();
        let header: &mut Header =
            if value.is_multiple_of(2) { &mut entry.local } else { &mut entry.central };
        match which {
            0 => header.flags ^= 1 << (value % 16),
            1 => header.method = [0, 8, 93][value as usize % 3],
            2 => header.crc32 = value,
            3 => header.stored_size = header.stored_size.wrapping_add(value % 5).wrapping_sub(2),
            4 => header.size = header.size.wrapping_add(value % 5).wrapping_sub(2),
            5 => header.name = second.unwrap_or_else(|| b"other".to_vec()),
            6 => header.name_len = Some(small),
            7 => header.extra_len = Some(small),
            8 => header.extra.extend(unicode_path(&name, "other")),
            9 => header.extra.extend(extra(1, &u64::from(value).to_le_bytes())),
            10 => header.signature[3] ^= 1,
            11 => entry.gap = vec![0; value as usize % 9],
            12 => entry.no_local = true,
            13 => entry.is_unlisted = true,
            14 => entry.listing.offset = Some(value % 300),
            15 => entry.listing.disk = small,
            16 => entry.listing.external = value,
            17 => entry.listing.comment = bytes[bytes.len() - 22..].to_vec(),
            18 => entry.descriptor.truncate(value as usize % 16),
            19 => entry.data.push(value as u8),
            _ => {}
        }
    }
    match which {
        20 => zip.prefix = bytes,
        21 => zip.is_shifted = true,
        22 => zip.suffix = bytes,
        23 => zip.directory_rest = bytes[bytes.len() / 2..].to_vec(),
        24 => zip.end.entries = Some(end),
        25 => zip.end.entries = Some(u16::MAX),
        26 => zip.end.directory_bytes = Some(value % 300),
        27 => zip.end.directory_offset = Some(value % 300),
        28 => zip.end.directory_offset = Some(u32::MAX),
        29 => zip.end.comment = bytes,
        30 => zip.end.comment_len = Some(small),
        31 => zip.zip64 = Some(Zip64End { entries: Some(end.into()), ..Zip64End::default() }),
        32 => {
            let offset = Some(u64::from(value % 300));
            zip.zip64 = Some(Zip64End { locator_offset: offset, ..Zip64End::default() });
        }
        33 => {
            let offset = Some(u64::from(value % 300));
            zip.zip64 = Some(Zip64End { directory_offset: offset, ..Zip64End::default() });
        }
        34 => zip.zip64 = Some(Zip64End { rest: bytes, ..Zip64End::default() }),
        35 => zip.end.disk = small,
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn good_archives_read_alike(zip in archive()) {
        // The names of files may be those of folders; such archives are refused.
        let bytes = zip.to_bytes();
        let Some(files) = read(&bytes) else {
            let names: Vec<_> = zip.entries.iter().map(|entry| &entry.local.name).collect();
            let lies_in = |a: &[u8], b: &[u8]| b.starts_with(a) && b.get(a.len()) == Some(&b'/');
            prop_assert!(names.iter().any(|a| names.iter().any(|b| lies_in(a, b))), "{names:?}");
            return Ok(());
        };
        prop_assert_eq!(Some(files), read_by_zip(&bytes));
    }

    #[test]
    fn changed_archives_read_alike_or_are_refused(
        zip in archive(),
        changes in vec((0_u8..36, 0_usize..4, any::<u32>()), 1..4),
    ) {
        let mut changed = zip;
        for (which, at, value) in changes {
            change(&mut changed, which, at, value);
        }
        let bytes = changed.to_bytes();
        if let (Some(files), Some(other)) = (read(&bytes), read_by_zip(&bytes)) {
            prop_assert_eq!(files, other);
        }
    }
}
