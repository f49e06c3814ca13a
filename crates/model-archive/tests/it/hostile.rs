//! Archives that lie: for each lie what the strict and the lenient profile make of it.
//!
//! Every archive is a good one with something changed. The headings name the classes of attack.

use std::io::Read as _;

use model_archive::{Archive, Method, ReadOptions, Symlinks};
use tensor_core::{Chain, Limits, Profile, Severity, Source, text::Quoted};
use test_support::zip::{self, Entry, Header, Zip, Zip64End};

use crate::deflated;

fn strict() -> ReadOptions {
    Archive::options()
}

fn lenient() -> ReadOptions {
    Archive::options().profile(Profile::Lenient)
}

/// Opens an archive and reads all of it; the error, with its causes, is the verdict.
fn read(bytes: &[u8], options: ReadOptions) -> Result<Archive, String> {
    let shown = |error: model_archive::Error| Chain(&error).to_string();
    let archive = options.from_source(Source::from_bytes(bytes.to_vec())).map_err(shown)?;
    for entry in archive.entries() {
        entry.verify().map_err(shown)?;
    }
    Ok(archive)
}

/// Returns what `check` reports in the lenient profile.
fn findings(bytes: &[u8]) -> Vec<(Severity, String)> {
    let archive = lenient().from_source(Source::from_bytes(bytes.to_vec())).unwrap();
    archive.lint().into_iter().map(|finding| (finding.severity, finding.message)).collect()
}

/// Expects that no profile reads it.
#[track_caller]
fn never_read(zip: &Zip, message: &str) {
    let bytes = zip.to_bytes();
    assert_eq!(read(&bytes, strict()).unwrap_err(), message, "strict");
    assert_eq!(read(&bytes, lenient()).unwrap_err(), message, "lenient");
}

/// Expects that the strict profile does not read it, and that the lenient one does and reports it.
#[track_caller]
fn strictly_refused(zip: &Zip, message: &str) {
    let bytes = zip.to_bytes();
    assert_eq!(read(&bytes, strict()).unwrap_err(), message);
    read(&bytes, lenient()).unwrap();
    assert_eq!(findings(&bytes), [(Severity::Error, message.to_owned())]);
}

/// Expects that reading meets nothing, and that `check` reports it.
#[track_caller]
fn found_by_check(zip: &Zip, severity: Severity, message: &str) {
    let bytes = zip.to_bytes();
    read(&bytes, strict()).unwrap();
    read(&bytes, lenient()).unwrap();
    assert_eq!(findings(&bytes), [(severity, message.to_owned())]);
}

/// Expects that nothing is wrong with it, and that it holds these contents.
#[track_caller]
fn fine(zip: &Zip, contents: &[&[u8]]) {
    let bytes = zip.to_bytes();
    for options in [strict(), lenient()] {
        let archive = read(&bytes, options).unwrap();
        assert_eq!(archive.entries().len(), contents.len());
        for (entry, content) in archive.entries().zip(contents) {
            assert_eq!(entry.checked_bytes().unwrap(), *content);
        }
    }
    assert_eq!(findings(&bytes), []);
}

fn two() -> Zip {
    Zip::of(&[("a.txt", b"hello"), ("b.txt", b"world")])
}

/// Two files, of which something was changed.
fn two_with(change: impl FnOnce(&mut Zip)) -> Zip {
    let mut zip = two();
    change(&mut zip);
    zip
}

fn compressed(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 3).unwrap()
}

/// The same file by each method that this build reads.
fn by_method(content: &[u8]) -> Vec<Entry> {
    let mut entries = vec![Entry::stored("a", content)];
    if cfg!(feature = "deflate") {
        entries.push(Entry::coded("a", content, 8, deflated(content)));
    }
    if cfg!(feature = "zstd") {
        entries.push(Entry::coded("a", content, 93, compressed(content)));
    }
    entries
}

fn alone(entry: Entry) -> Zip {
    Zip { entries: vec![entry], ..Zip::default() }
}

mod names {
    //! Z1, Z3, Z4, Z5: names that lead elsewhere, collide, or stand twice.

    use super::*;

    #[test]
    fn paths_that_lead_elsewhere() {
        let long = "a".repeat(256);
        let (absolute, dots) =
            ("is absolute, expected a relative path", "has a component \".\" or \"..\"");
        let (empty, backslash) = ("has an empty component", "has the character '\\\\'");
        let colon = "has the character ':'";
        for (name, fault) in [
            ("", "is empty"),
            ("/", absolute),
            ("//", absolute),
            ("/x", absolute),
            ("/etc/passwd", absolute),
            ("//host/share/x", absolute),
            ("/../x", absolute),
            ("..", dots),
            ("../", dots),
            ("../x", dots),
            ("../../x", dots),
            ("a/..", dots),
            ("a/../", dots),
            ("a/../b", dots),
            ("a/../../b", dots),
            ("a/b/../../../c", dots),
            (".", dots),
            ("./", dots),
            ("./a", dots),
            ("a/.", dots),
            ("a/./b", dots),
            ("a//b", empty),
            ("a//", empty),
            ("a///b", empty),
            ("C:\\x", colon),
            ("C:/x", colon),
            ("C:x", colon),
            ("c:", colon),
            ("a:stream", colon),
            ("a/b:c", colon),
            ("\\x", backslash),
            ("\\\\h\\s", backslash),
            ("\\\\?\\C", backslash),
            ("a\\..\\b", backslash),
            ("..\\x", backslash),
            ("a\0", "has the character '\\0'"),
            ("a\0.txt", "has the character '\\0'"),
            ("a\nb", "has the character '\\n'"),
            ("a\rb", "has the character '\\r'"),
            ("a\tb", "has the character '\\t'"),
            ("\u{1b}[0m", "has the character '\\u{1b}'"),
            ("a\u{7f}", "has the character '\\u{7f}'"),
            ("a\u{9b}b", "has the character '\\u{9b}'"),
            (&long, "has a component of more than 255 bytes"),
        ] {
            // Long names are cut in messages.
            let message = format!("entry {} at byte 0: name {fault}", Quoted(name));
            never_read(&Zip::of(&[(name, b"x")]), &message);
        }
    }

    #[test]
    fn names_that_are_not_utf8() {
        // CP437 for "é", an overlong "/", half a surrogate pair, a lone continuation byte.
        for name in [&b"caf\x82"[..], b"a\xc0\xafb", b"\xed\xa0\x80", b"\x80"] {
            for flag in [0, 1 << 11] {
                let entry = Entry::stored("x", b"x").both(|header| {
                    (header.name, header.flags) = (name.to_vec(), flag);
                });
                let shown = String::from_utf8_lossy(name);
                let message = format!("entry {shown:?} at byte 0: name is not UTF-8");
                never_read(&alone(entry), &message);
            }
        }
    }

    #[test]
    fn utf8_without_its_flag() {
        let entry = Entry::stored("ü", b"x").both(|header| header.flags = 0);
        let message = "entry \"ü\" at byte 0: name is UTF-8, but its flag is not set";
        found_by_check(&alone(entry), Severity::Warning, message);
    }

    #[test]
    fn files_that_others_lie_in() {
        for names in [["a", "a/b"], ["a/b", "a"], ["a", "a/"], ["a/b", "a/b/c/d"]] {
            let zip = Zip::of(&names.map(|name| (name, &b""[..])));
            let (file, inside) = match names[0].len() < names[1].len() {
                true => (0, names[1]),
                false => (1, names[0]),
            };
            let (name, at) = (names[file], zip.header_offset(file));
            let message =
                format!("entry {name:?} at byte {at}: is a file, but {inside:?} lies in it");
            never_read(&zip, &message);
        }
        fine(&Zip::of(&[("a-", b""), ("a/b", b""), ("a0", b"")]), &[b"", b"", b""]);
    }

    #[test]
    fn names_that_some_systems_take_for_one() {
        for [first, second] in [
            ["Model/A", "model/a"],
            ["caf\u{e9}", "cafe\u{301}"],
            ["\u{212a}.txt", "k.txt"],
            ["\u{130}", "i\u{307}"],
            ["I", "\u{131}"],
            ["stra\u{df}e", "STRASSE"],
        ] {
            let zip = Zip::of(&[(first, b"1"), (second, b"2")]);
            let at = zip.header_offset(1);
            let message = format!(
                "entry {second:?} at byte {at}: name collides with {first:?} where case and \
                 composition of letters do not count"
            );
            found_by_check(&zip, Severity::Warning, &message);
        }
    }

    #[test]
    fn files_that_some_systems_take_for_folders() {
        let zip = Zip::of(&[("A", b"1"), ("a/b", b"2")]);
        let message = "entry \"A\" at byte 0: name collides with \"a/b\" where case and \
                       composition of letters do not count";
        found_by_check(&zip, Severity::Warning, message);
    }

    #[test]
    fn names_that_windows_takes_for_others() {
        let device = "has a component that is a device on Windows";
        let dot = "has a component that ends in a dot or a blank";
        for (name, fault) in [
            ("NUL", device),
            ("nul", device),
            ("con.txt", device),
            ("model/AUX/x", device),
            ("prn.tar.gz", device),
            ("COM1", device),
            ("lpt9.log", device),
            ("com\u{b9}", device),
            ("CONIN$", device),
            ("nul .txt", device),
            ("a.", dot),
            ("a ", dot),
            ("a./b", dot),
            ("a /b", dot),
            ("...", dot),
        ] {
            let message = format!("entry {name:?} at byte 0: name {fault}");
            strictly_refused(&Zip::of(&[(name, b"x")]), &message);
        }
        fine(&Zip::of(&[("com0", b""), ("nul1", b""), ("a.con", b"")]), &[b"", b"", b""]);
    }

    #[test]
    fn names_that_stand_twice() {
        let mut zip = Zip::of(&[("a", b"1"), ("b", b"2"), ("a", b"3")]);
        let twice = |name: &str, at: usize| {
            format!("entry {name:?} at byte {at}: name stands twice in the directory")
        };
        let at = zip.directory_offset() + 2 * 47;
        never_read(&zip, &twice("a", at));
        zip.entries.extend([("a", b"4"), ("b", b"5")].map(|(name, x)| Entry::stored(name, x)));
        never_read(&zip, &twice("a", at + 2 * 31 + 2));
        // Beside zip64.
        let mut zip = alone(Entry::stored("a", b"1"));
        zip.entries.push(Entry::stored("a", b"2").zip64(32));
        zip.zip64 = Some(Zip64End::default());
        never_read(&zip, &twice("a", zip.directory_offset() + 47));
        // Once in an extra field.
        let zip =
            two_with(|zip| zip.entries[1].central.extra = zip::unicode_path("b.txt", "a.txt"));
        never_read(&zip, &twice("a.txt", zip.directory_offset() + 46 + 5));
        // Not in an extra field.
        let mut zip = Zip::of(&[("a", b"1"), ("a", b"2")]);
        zip.entries[0].central.extra = zip::unicode_path("a", "b");
        never_read(&zip, &twice("a", 32));
    }

    #[test]
    fn second_names_in_extra_fields() {
        let message = "entry \"a.txt\" at byte 0: extra field gives it the name \"evil\" too";
        let evil = zip::unicode_path("a.txt", "evil");
        strictly_refused(&two_with(|zip| zip.entries[0].local.extra = evil.clone()), message);
        strictly_refused(&two_with(|zip| zip.entries[0].central.extra = evil), message);
        let entry = Entry::stored("a", b"1").both(|h| h.extra = zip::unicode_path("a", "a"));
        fine(&alone(entry), &[b"1"]);
    }

    #[test]
    fn extra_fields_that_stand_twice() {
        let twice = [zip::unicode_path("a", "a"), zip::unicode_path("a", "b")].concat();
        let entry = Entry::stored("a", b"1").both(|header| header.extra = twice.clone());
        let message = "entry \"a\" at byte 0: extra field 0x7075 stands twice, expected once";
        let bytes = alone(entry).to_bytes();
        assert_eq!(read(&bytes, strict()).unwrap_err(), message);
        let mut zip64 = Entry::stored("a", b"1").zip64(0);
        zip64.central.extra.extend(zip64.central.extra.clone());
        let message = "entry \"a\" at byte 0: extra field 0x0001 stands twice, expected once";
        strictly_refused(&alone(zip64), message);
    }
}

mod kinds {
    //! Z2: what is neither a file nor a folder.

    use super::*;

    fn kept() -> ReadOptions {
        strict().symlinks(Symlinks::Kept)
    }

    fn link(name: &str, target: &[u8]) -> Entry {
        Entry::stored(name, target).mode(0o120_777)
    }

    #[test]
    fn special_files() {
        for mode in [0o060_644, 0o020_644, 0o010_644, 0o140_755, 0o030_000, 0o160_000] {
            for name in ["a", "a/"] {
                let message = format!(
                    "entry {name:?} at byte 0: has mode {mode:o}, expected a file or a folder"
                );
                never_read(&alone(Entry::stored(name, b"").mode(mode)), &message);
            }
        }
    }

    #[test]
    fn special_bits_of_files_are_told() {
        for mode in [0o104_755, 0o102_755, 0o101_777, 0o100_000, 0o755] {
            let bytes = alone(Entry::stored("a", b"x").mode(mode)).to_bytes();
            let archive = read(&bytes, strict()).unwrap();
            assert_eq!(archive.entry("a").unwrap().info().mode, Some(mode));
        }
    }

    #[test]
    fn folders_with_content() {
        for entry in [Entry::stored("a/", b"xy"), Entry::stored("a", b"xy").mode(0o040_755)] {
            let name = String::from_utf8(entry.central.name.clone()).unwrap();
            let message = format!(
                "entry {name:?} at byte 0: is a folder with 2 bytes of content, expected none"
            );
            never_read(&alone(entry), &message);
        }
    }

    #[cfg(feature = "deflate")]
    #[test]
    fn folders_with_hidden_content() {
        fine_folder(Entry::coded("a/", b"", 8, deflated(b"")));
        let hidden = Entry::coded("a/", b"", 8, deflated(b"hidden"));
        let message = "entry \"a/\" at byte 0: content is 1 bytes long, expected 0";
        never_read(&alone(hidden), message);
    }

    #[cfg(feature = "deflate")]
    fn fine_folder(entry: Entry) {
        let archive = read(&alone(entry).to_bytes(), strict()).unwrap();
        let error = archive.entries().next().unwrap().bytes().unwrap_err();
        assert_eq!(error.to_string(), "entry \"a/\" is a folder, expected a file");
    }

    #[test]
    fn links_where_none_may_be() {
        let message = "entry \"a\" at byte 0: is a symbolic link, expected a file or a folder";
        never_read(&alone(link("a", b"b")), message);
        // Of MS-DOS, where there are no links; the mode counts all the same.
        let mut entry = link("a", b"b");
        entry.listing.made_by = 20;
        never_read(&alone(entry), message);
        let message = "entry \"a/\" at byte 0: is a symbolic link, expected a file or a folder";
        let bytes = alone(link("a/", b"")).to_bytes();
        assert_eq!(read(&bytes, kept()).unwrap_err(), message);
    }

    fn resolved(links: Vec<Entry>) -> Result<String, String> {
        let archive = read(&Zip { entries: links, ..Zip::default() }.to_bytes(), kept())?;
        let first = archive.entries().next().unwrap();
        let found = first.resolve().map(|entry| entry.name().to_owned());
        let report = archive.lint();
        let found = found.map_err(|error| error.to_string());
        let first = report.findings().first().map(|finding| finding.message.clone());
        assert_eq!(first.as_ref(), found.as_ref().err(), "check says what resolving says");
        found
    }

    #[test]
    fn targets_that_are_followed() {
        for (target, found) in [
            (&b"b"[..], "model/b"),
            (b"./b", "model/b"),
            (b"../model/b", "model/b"),
            (b"../c", "c"),
            (b"sub//d", "model/sub/d"),
        ] {
            let files = ["model/b", "c", "model/sub/d"].map(|name| Entry::stored(name, b"x"));
            let entries = [vec![link("model/a", target)], files.to_vec()].concat();
            assert_eq!(resolved(entries).as_deref(), Ok(found));
        }
    }

    #[test]
    fn targets_that_are_not_followed() {
        let long = vec![b'b'; 4097];
        let (absolute, outside) =
            ("is absolute, expected a path relative to the link", "leads out of the archive");
        let (folder, missing) = ("is a folder, expected a file", "is not in the archive");
        let malformed = "is not UTF-8 text of plain path components";
        for (target, fault) in [
            (&b"/etc/passwd"[..], absolute),
            (b"/", absolute),
            (b"//h/s", absolute),
            (b"../../etc/passwd", outside),
            (b"../..", outside),
            (b"x/../../../y", outside),
            (b"gone", missing),
            (b"B", missing),
            (b"sub", folder),
            (b"sub/", folder),
            (b"..", missing),
            (b"empty", folder),
            (b"a", "leads back to itself or over more than 40 links"),
            (b"", malformed),
            (b"C:/x", malformed),
            (b"..\\b", malformed),
            (b"b\0c", malformed),
            (b"b\n", malformed),
            (b"b\xff", malformed),
            (&long, "is over the limit of 4096 bytes (Limits::name_bytes)"),
        ] {
            let entries = vec![
                link("model/a", target),
                Entry::stored("model/b", b"x"),
                Entry::stored("model/sub/d", b"x"),
                Entry::stored("model/empty/", b""),
            ];
            // A link that is too long is not read.
            let shown =
                if target.len() > 4096 { "".into() } else { String::from_utf8_lossy(target) };
            let message = format!("entry \"model/a\" at byte 0: links to {shown:?}, which {fault}");
            assert_eq!(resolved(entries), Err(message));
        }
    }

    #[test]
    fn chains_of_links() {
        let chain = |links: usize| {
            let link = |at: usize| link(&format!("a{at}"), format!("a{}", at + 1).as_bytes());
            let mut entries: Vec<Entry> = (0..links).map(link).collect();
            entries.push(Entry::stored(&format!("a{links}"), b"x"));
            resolved(entries)
        };
        assert_eq!(chain(40).as_deref(), Ok("a40"));
        let message = "entry \"a0\" at byte 0: links to \"a1\", which leads back to itself or over \
                       more than 40 links";
        assert_eq!(chain(41), Err(message.to_owned()));
        let circle = resolved(vec![link("a0", b"a1"), link("a1", b"a0")]);
        assert_eq!(circle, Err(message.to_owned()));
    }

    #[test]
    fn files_behind_links() {
        let entries = vec![link("model/a", b"/etc"), Entry::stored("model/a/passwd", b"x")];
        let bytes = Zip { entries, ..Zip::default() }.to_bytes();
        let message = "entry \"model/a\" at byte 0: is a file, but \"model/a/passwd\" lies in it";
        for options in [kept(), kept().profile(Profile::Lenient)] {
            assert_eq!(read(&bytes, options).unwrap_err(), message);
        }
    }
}

mod headers {
    //! Z6, Z7, Z12: local headers that disagree with the directory, and bytes that are shared.

    use super::*;

    #[test]
    fn local_fields_that_differ() {
        type Change = fn(&mut Header);
        let changes: [(Change, &str); 8] = [
            (
                |header| header.name = b"c.txt".to_vec(),
                "name \"c.txt\", but the directory has \"a.txt\"",
            ),
            (
                |header| header.name = b"\xff.txt".to_vec(),
                "name \"\u{fffd}.txt\", but the directory has \"a.txt\"",
            ),
            (
                |header| header.name = b"A.txt".to_vec(),
                "name \"A.txt\", but the directory has \"a.txt\"",
            ),
            (|header| header.flags = 1 << 11, "flags 2048, but the directory has 0"),
            (|header| header.method = 8, "method 8, but the directory has 0"),
            (|header| header.crc32 = 7, "CRC-32 7, but the directory has 907060870"),
            (|header| header.stored_size = 4, "stored size 4, but the directory has 5"),
            (|header| header.size = 6, "size 6, but the directory has 5"),
        ];
        for (change, fault) in changes {
            let mut zip = two();
            change(&mut zip.entries[0].local);
            strictly_refused(&zip, &format!("entry \"a.txt\" at byte 0: local header has {fault}"));
        }
    }

    /// Encrypted, strong encryption, masked: said by the local header alone, or by both.
    #[test]
    fn encrypted_entries() {
        for flag in [1, 1 << 6, 1 << 13] {
            let zip = two_with(|zip| zip.entries[0].local.flags = flag);
            let message = format!(
                "entry \"a.txt\" at byte 0: local header has flags {flag}, but the directory has 0"
            );
            strictly_refused(&zip, &message);
        }
        for flag in [1, 1 << 6, 1 << 13, 1 | 1 << 3] {
            let entry = Entry::stored("a", b"x").both(|header| header.flags |= flag);
            let message = "entry \"a\" at byte 0: is encrypted, expected plain data";
            never_read(&alone(entry), message);
        }
    }

    #[test]
    fn what_readers_do_not_look_at_may_differ() {
        let mut zip = two();
        let local = &mut zip.entries[0].local;
        (local.time, local.needed) = (0, 63);
        zip.entries[1].listing.comment = b"a comment".to_vec();
        fine(&zip, &[b"hello", b"world"]);
    }

    #[test]
    fn bytes_that_belong_to_nothing() {
        let message = |what: &str, bytes: usize| {
            format!("{what}: {bytes} bytes belong to no entry of the directory")
        };
        let first = "entry \"a.txt\" at byte 0";
        let unlisted = two_with(|zip| zip.entries[1].is_unlisted = true);
        found_by_check(&unlisted, Severity::Error, &message(first, 40));
        let between = two_with(|zip| zip.entries[1].gap = b"hidden".to_vec());
        found_by_check(&between, Severity::Error, &message(first, 6));
        let header = Zip::of(&[("c.txt", b"")]).to_bytes()[35..35 + 51].to_vec();
        let behind = two_with(|zip| zip.directory_rest = header);
        strictly_refused(&behind, &message("archive at byte 182", 51));
    }

    #[test]
    fn header_inside_another_entry() {
        let zip = two_with(|zip| zip.entries[1].listing.offset = Some(0));
        never_read(&zip, "entry \"a.txt\" at byte 0: shares bytes with entry \"b.txt\"");
        let inner = Zip::of(&[("b", b"x")]).to_bytes();
        let mut zip = Zip::of(&[("a", &inner), ("b", b"x")]);
        zip.entries[1].listing.offset = Some(31);
        never_read(&zip, "entry \"a\" at byte 0: shares bytes with entry \"b\"");
    }

    /// Fifield's quoted overlap: the extra field of the first holds the header of the second.
    #[test]
    fn header_inside_the_extra_field_of_another() {
        let mut zip = Zip::of(&[("a", b"x"), ("b", b"x")]);
        let second = zip.to_bytes()[32..63].to_vec();
        zip.entries[0].local.extra = zip::extra(0xface, &second);
        zip.entries[1].no_local = true;
        zip.entries[1].data.clear();
        zip.entries[1].listing.offset = Some(35);
        never_read(&zip, "entry \"a\" at byte 0: shares bytes with entry \"b\"");
    }

    #[test]
    fn data_that_is_longer_or_elsewhere() {
        let longer = |entry: &mut Entry| {
            *entry = entry.clone().both(|header| {
                header.stored_size += 1;
                header.size += 1;
            });
        };
        let shared = "entry \"a.txt\" at byte 0: shares bytes with entry \"b.txt\"";
        never_read(&two_with(|zip| longer(&mut zip.entries[0])), shared);
        never_read(&two_with(|zip| zip.entries[0].local.extra_len = Some(1)), shared);
        let behind = |zip: &Zip, start: u32, end: u64| {
            let message = format!(
                "entry \"b.txt\" at byte {start}: ends at byte {end}, but the directory starts \
                 at byte 80"
            );
            never_read(zip, &message);
        };
        behind(&two_with(|zip| longer(&mut zip.entries[1])), 40, 81);
        behind(&two_with(|zip| zip.entries[1].local.name_len = Some(u16::MAX)), 40, 65_610);
        for (start, end) in [(80, 120), (81, 121), (u32::MAX - 1, 4_294_967_334)] {
            behind(&two_with(|zip| zip.entries[1].listing.offset = Some(start)), start, end);
        }
    }

    #[test]
    fn headers_of_no_file_that_is_read() {
        let zip = two_with(|zip| zip.entries[1].local.signature = *b"PK\x03\x05");
        let message = "entry \"b.txt\" at byte 40: local header is malformed: signature is \
                       \"PK\\x03\\x05\", expected \"PK\\x03\\x04\"";
        never_read(&zip, message);
        let zip = two_with(|zip| zip.entries[1].listing.disk = 1);
        never_read(&zip, "entry \"b.txt\" at byte 40: starts on disk 1, expected 0");
        for method in [1, 6, 9, 12, 14, 20, 94, 95, 97, 98, 99, 1000, u16::MAX] {
            let entry = Entry::stored("a", b"x").both(|header| header.method = method);
            let message =
                format!("entry \"a\" at byte 0: method is {method}, expected 0 or 8 or 93");
            never_read(&alone(entry), &message);
        }
        let bytes = alone(Entry::coded("a", b"", 93, vec![])).to_bytes();
        let options = strict().methods(&[Method::Stored, Method::Deflate]);
        let message = "entry \"a\" at byte 0: method is 93, expected 0 or 8";
        assert_eq!(read(&bytes, options).unwrap_err(), message);
    }

    #[test]
    fn descriptors_of_all_forms() {
        for content in [&b"hello"[..], b""] {
            for signature in [&b"PK\x07\x08"[..], b""] {
                for wide in [false, true] {
                    let mut entry = Entry::stored("a", content).described();
                    let Header { crc32, size, .. } = entry.central;
                    entry.descriptor = [signature, &crc32.to_le_bytes()].concat();
                    for _ in 0..2 {
                        match wide {
                            true => entry.descriptor.extend(u64::from(size).to_le_bytes()),
                            false => entry.descriptor.extend(size.to_le_bytes()),
                        }
                    }
                    let entries = vec![entry, Entry::stored("b", b"x")];
                    fine(&Zip { entries, ..Zip::default() }, &[content, b"x"]);
                }
            }
        }
    }

    #[test]
    fn descriptors_that_lie() {
        let good = Entry::stored("a", b"hello").described();
        let message = "entry \"a\" at byte 0: data descriptor differs from the directory";
        for at in 0..good.descriptor.len() {
            let mut entry = good.clone();
            entry.descriptor[at] ^= 1;
            found_by_check(&alone(entry), Severity::Error, message);
        }
        for len in 0..good.descriptor.len() {
            let mut entry = good.clone();
            entry.descriptor.truncate(len);
            found_by_check(&alone(entry), Severity::Error, message);
        }
        let mut entry = good;
        entry.descriptor.extend(b"xyz");
        let message = "entry \"a\" at byte 0: 3 bytes belong to no entry of the directory";
        found_by_check(&alone(entry), Severity::Error, message);
    }

    /// With a descriptor the local sizes are 0, or those of the directory.
    #[test]
    fn sizes_before_a_descriptor() {
        let mut entry = Entry::stored("a", b"hello").described();
        entry.local.size = 5;
        fine(&alone(entry.clone()), &[b"hello"]);
        entry.local.size = 4;
        let message = "entry \"a\" at byte 0: local header has size 4, but the directory has 5";
        strictly_refused(&alone(entry), message);
    }
}

mod sizes {
    //! Z8, Z9: content of another size than was said, and far more of it than is stored.

    use super::*;

    #[test]
    fn sizes_that_lie() {
        for entry in by_method(b"hello") {
            for (size, stored) in [(6, 6), (4, 4)] {
                let method = entry.central.method;
                let entry = entry.clone().both(|header| header.size = size);
                let message = match method {
                    0 => format!("is stored in 5 bytes, but its size is {stored}"),
                    _ => format!("content is 5 bytes long, expected {size}"),
                };
                never_read(&alone(entry), &format!("entry \"a\" at byte 0: {message}"));
            }
        }
    }

    #[test]
    fn stored_data_that_is_shorter() {
        for mut entry in by_method(b"hello") {
            entry.data.pop();
            entry = entry.both(|header| header.stored_size -= 1);
            let message = match entry.central.method {
                0 => "is stored in 4 bytes, but its size is 5",
                8 => "deflate data cannot be decoded: its end is missing",
                _ => "zstd data cannot be decoded: its end is missing",
            };
            never_read(&alone(entry), &format!("entry \"a\" at byte 0: {message}"));
        }
    }

    #[cfg(feature = "deflate")]
    #[test]
    fn bytes_behind_deflate_data() {
        let mut data = deflated(b"hello");
        data.extend(b"junk");
        let zip = alone(Entry::coded("a", b"hello", 8, data));
        let message = "entry \"a\" at byte 0: 4 stored bytes stand behind the end of its data";
        assert_eq!(read(&zip.to_bytes(), strict()).unwrap_err(), message);
        read(&zip.to_bytes(), lenient()).unwrap();
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn bytes_behind_zstd_data() {
        for junk in [&b"junk"[..], b"j", &[0; 20]] {
            let data = [&compressed(b"hello"), junk].concat();
            let bytes = alone(Entry::coded("a", b"hello", 93, data)).to_bytes();
            let message = "entry \"a\" at byte 0: zstd data cannot be decoded: Unknown frame \
                           descriptor";
            for options in [strict(), lenient()] {
                assert_eq!(read(&bytes, options).unwrap_err(), message);
            }
        }
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn frames_one_behind_another() {
        let skippable = [&0x184d_2a53_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"xyz"].concat();
        for (data, frames) in [
            ([compressed(b"hel"), compressed(b"lo")].concat(), 2),
            ([compressed(b"hel"), compressed(b""), compressed(b"lo")].concat(), 3),
            ([skippable.clone(), compressed(b"hello")].concat(), 2),
            ([compressed(b"hello"), skippable.clone()].concat(), 2),
            ([compressed(b"hel"), skippable, compressed(b"lo")].concat(), 3),
        ] {
            let zip = alone(Entry::coded("a", b"hello", 93, data));
            fine(&zip, &[b"hello"]);
            let archive = Archive::from_bytes(zip.to_bytes()).unwrap();
            let mut reader = archive.entry("a").unwrap().reader().unwrap();
            reader.read_to_end(&mut Vec::new()).unwrap();
            assert_eq!(reader.frames(), frames);
        }
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn frames_that_need_a_dictionary() {
        let mut data = compressed(b"hello");
        // The flag of a dictionary of one byte, and its id behind the window descriptor.
        data[4] |= 1;
        data.insert(if data[4] & 0x20 == 0 { 6 } else { 5 }, 7);
        let message = "entry \"a\" at byte 0: zstd data cannot be decoded: Dictionary mismatch";
        never_read(&alone(Entry::coded("a", b"hello", 93, data)), message);
    }

    #[test]
    fn no_data_where_there_is_a_method() {
        for entry in by_method(b"hello").split_off(1) {
            let method = entry.central.method;
            let name = if method == 8 { "deflate" } else { "zstd" };
            let zip = alone(Entry::coded("a", b"", method, Vec::new()));
            let message =
                format!("entry \"a\" at byte 0: {name} data cannot be decoded: its end is missing");
            never_read(&zip, &message);
        }
    }

    #[test]
    fn bombs_that_say_so() {
        const SIZE: u64 = 16 << 20;
        for entry in by_method(&vec![0; 16 << 20]).split_off(1) {
            let bytes = alone(entry).to_bytes();
            let limits = Limits::default().with_decoded_bytes(1 << 20);
            let archive = strict().limits(limits).from_source(Source::from_bytes(bytes)).unwrap();
            assert_eq!(archive.total_size(), SIZE);
            let error = archive.entry("a").unwrap().bytes().unwrap_err();
            let message = "size of an entry in bytes is 16777216, over the limit of 1048576 \
                           (Limits::decoded_bytes)";
            assert_eq!(error.to_string(), message);
            let limit = (200 * archive.source().len()).max(1 << 20);
            let message = format!(
                "size of all entries in bytes is {SIZE}, over the limit of {limit} \
                 (Limits::expansion)"
            );
            assert_eq!(archive.check_total().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn bombs_that_lie_stop_at_their_size() {
        for entry in by_method(&vec![0; 16 << 20]).split_off(1) {
            let zip = alone(entry.both(|header| header.size = 1000));
            never_read(&zip, "entry \"a\" at byte 0: content is 1001 bytes long, expected 1000");
            let archive = Archive::from_bytes(zip.to_bytes()).unwrap();
            let mut content = Vec::new();
            archive.entry("a").unwrap().reader().unwrap().read_to_end(&mut content).unwrap_err();
            assert!(content.is_empty(), "nothing is handed out that is too much");
        }
    }

    #[test]
    fn total_of_sizes_that_overflow() {
        let mut zip = two();
        for entry in &mut zip.entries {
            entry.central.method = 8;
            entry.central.size = u32::MAX;
            entry.central.extra = zip::extra(1, &(u64::MAX - 1).to_le_bytes());
        }
        let bytes = zip.to_bytes();
        let archive = lenient().from_source(Source::from_bytes(bytes)).unwrap();
        assert_eq!(archive.total_size(), u64::MAX);
        let message = format!(
            "size of all entries in bytes is {}, over the limit of {} (Limits::expansion)",
            u64::MAX,
            8_u64 << 30
        );
        assert_eq!(archive.check_total().unwrap_err().to_string(), message);
    }

    #[test]
    fn limits() {
        let limits = Limits::default();
        for (limits, message) in [
            (
                limits.with_entries(1),
                "entries of the directory is 2, over the limit of 1 (Limits::entries)",
            ),
            (
                limits.with_directory_bytes(101),
                "directory in bytes is 102, over the limit of 101 (Limits::directory_bytes)",
            ),
            (
                limits.with_name_bytes(4),
                "entry \"a.txt\" at byte 0: name is 5 bytes long, over the limit of 4 (Limits::name_bytes)",
            ),
            (
                limits.with_name_components(0),
                "entry \"a.txt\" at byte 0: name has 1 components, over the limit of 0 (Limits::name_components)",
            ),
        ] {
            let bytes = two().to_bytes();
            for options in [strict(), lenient()] {
                assert_eq!(read(&bytes, options.limits(limits)).unwrap_err(), message);
            }
        }
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn windows_over_the_limit() {
        let mut data = compressed(&vec![7; 1 << 20]);
        // No single segment: the descriptor of the window follows, 2^11 bytes here.
        assert_eq!(data[4] & 0x20, 0);
        let limits = Limits::default().with_zstd_window_log(20);
        for log in [21, 27, 28, 31, 41] {
            data[5] = (log - 10) << 3;
            let bytes = alone(Entry::coded("a", &vec![7; 1 << 20], 93, data.clone())).to_bytes();
            let message = "entry \"a\" at byte 0: zstd data cannot be decoded: Frame requires too \
                           much memory for decoding";
            assert_eq!(read(&bytes, strict().limits(limits)).unwrap_err(), message);
            assert_eq!(read(&bytes, strict()).err(), (log > 27).then(|| message.to_owned()));
        }
    }
}

mod ends {
    //! Z10, Z11: end records that lie, and bytes around the archive.

    use super::*;

    fn unreadable(cause: &str) -> String {
        format!("directory of the archive cannot be read: {cause}")
    }

    fn entries(count: u64) -> Zip64End {
        Zip64End { entries: Some(count), ..Zip64End::default() }
    }

    fn directory_bytes(len: u64) -> Zip64End {
        Zip64End { directory_bytes: Some(len), ..Zip64End::default() }
    }

    fn directory_offset(offset: u64) -> Zip64End {
        Zip64End { directory_offset: Some(offset), ..Zip64End::default() }
    }

    #[test]
    fn no_archive_at_all() {
        for bytes in
            [&b""[..], b"PK", b"PK\x03\x04", &[0; 100], b"PK\x05\x05aaaaaaaaaaaaaaaaaaaaaa"]
        {
            let message = unreadable("there is no end record");
            assert_eq!(read(bytes, lenient()).unwrap_err(), message);
        }
        let message = unreadable("end record at byte 0 is cut off");
        assert_eq!(read(b"PK\x05\x06", lenient()).unwrap_err(), message);
    }

    #[test]
    fn empty_archives() {
        fine(&Zip::default(), &[]);
        fine(&Zip { zip64: Some(Zip64End::default()), ..Zip::default() }, &[]);
    }

    #[test]
    fn archive_of_one_empty_file() {
        fine(&Zip::of(&[("a", b"")]), &[b""]);
        for entry in by_method(b"") {
            fine(&alone(entry), &[b""]);
        }
    }

    #[test]
    fn counts_that_lie() {
        for (entries, message) in [
            (3, "102 bytes are to hold 3 headers"),
            (u16::MAX, "102 bytes are to hold 65535 headers"),
        ] {
            let mut zip = two();
            zip.end.entries = Some(entries);
            never_read(&zip, &unreadable(message));
        }
        let mut zip = two_with(|zip| zip.end.entries = Some(1));
        zip.entries[1].no_local = true;
        zip.entries[1].data.clear();
        strictly_refused(&zip, "archive at byte 91: 51 bytes belong to no entry of the directory");
        zip.end.entries = Some(0);
        let bytes = zip.to_bytes();
        let message = "archive at byte 40: 102 bytes belong to no entry of the directory";
        assert_eq!(read(&bytes, strict()).unwrap_err(), message);
        assert_eq!(read(&bytes, lenient()).unwrap().entries().len(), 0);
    }

    #[test]
    fn lengths_and_places_that_lie() {
        for (bytes, offset, message) in [
            (Some(1 << 28), None, "268435456 bytes from byte 80 on are to end at byte 182"),
            (Some(103), None, "103 bytes from byte 80 on are to end at byte 182"),
            (None, Some(81), "102 bytes from byte 81 on are to end at byte 182"),
            (None, Some(u32::MAX), "102 bytes from byte 4294967295 on are to end at byte 182"),
            (Some(0), Some(0), "0 bytes are to hold 2 headers"),
            (Some(101), None, "there is no header at byte 81"),
        ] {
            let mut zip = two();
            (zip.end.directory_bytes, zip.end.directory_offset) = (bytes, offset);
            let found = read(&zip.to_bytes(), lenient()).unwrap_err();
            assert!(found.starts_with(&unreadable("")) && found.ends_with(message), "{found}");
        }
    }

    /// The directory of another, earlier archive in the same file: the end record points there, but
    /// the directory does not end where the record starts.
    #[test]
    fn directory_that_ends_elsewhere() {
        let mut zip = two();
        zip.directory_rest = two().to_bytes()[80..182].to_vec();
        zip.end.directory_bytes = Some(102);
        let bytes = zip.to_bytes();
        let message = "entry \"a.txt\" at byte 102: local header is malformed: signature is";
        assert!(read(&bytes, lenient()).unwrap_err().starts_with(message));
        assert_eq!(
            read(&bytes, strict()).unwrap_err(),
            "archive at byte 0: 102 bytes stand before the archive"
        );
    }

    #[test]
    fn disks() {
        let message = unreadable("it is split over several files");
        for change in [
            |zip: &mut Zip| zip.end.disk = 1,
            |zip: &mut Zip| zip.end.directory_disk = 1,
            |zip: &mut Zip| zip.end.entries_here = Some(1),
        ] {
            let mut zip = two();
            change(&mut zip);
            never_read(&zip, &message);
        }
        for zip64 in [
            Zip64End { disk: 1, ..Zip64End::default() },
            Zip64End { directory_disk: 1, ..Zip64End::default() },
            Zip64End { entries_here: Some(1), ..Zip64End::default() },
            Zip64End { locator_disk: 1, ..Zip64End::default() },
            Zip64End { locator_disks: Some(2), ..Zip64End::default() },
        ] {
            let mut zip = two();
            zip.zip64 = Some(zip64);
            never_read(&zip, &message);
        }
    }

    /// As the writer of PyTorch does: both records are there and say the same.
    #[test]
    fn zip64_record_that_is_not_needed() {
        let mut zip = two();
        zip.zip64 = Some(Zip64End::default());
        fine(&zip, &[b"hello", b"world"]);
    }

    /// As other writers do: all fields of the short record point to the long one.
    #[test]
    fn zip64_record_that_is_needed() {
        let mut zip = two();
        zip.zip64 = Some(Zip64End::default());
        zip.end.entries = Some(u16::MAX);
        fine(&zip, &[b"hello", b"world"]);
        zip.end.directory_bytes = Some(u32::MAX);
        zip.end.directory_offset = Some(u32::MAX);
        fine(&zip, &[b"hello", b"world"]);
        (zip.end.disk, zip.end.directory_disk) = (u16::MAX, u16::MAX);
        fine(&zip, &[b"hello", b"world"]);
        zip.zip64 = Some(Zip64End { rest: b"more of it".to_vec(), ..Zip64End::default() });
        fine(&zip, &[b"hello", b"world"]);
    }

    #[test]
    fn zip64_record_that_disagrees() {
        for (zip64, fault) in [
            (entries(1), "entries 2, but the zip64 end record has 1"),
            (directory_bytes(51), "bytes of the directory 102, but the zip64 end record has 51"),
            (directory_offset(0), "start of the directory 80, but the zip64 end record has 0"),
        ] {
            let mut zip = two();
            zip.zip64 = Some(zip64);
            strictly_refused(&zip, &format!("archive at byte 258: end record has {fault}"));
        }
    }

    #[test]
    fn zip64_records_that_lie() {
        let count = (two().to_bytes().len() as u64) / 46;
        for (zip64, message) in [
            (entries(3), "102 bytes are to hold 3 headers"),
            (entries(count), "102 bytes are to hold 4 headers"),
            (
                entries(u64::from(u32::MAX)),
                "entries of the directory is 4294967295, over the limit of 1000000 (Limits::entries)",
            ),
            (
                entries(u64::MAX),
                "entries of the directory is 18446744073709551615, over the limit of 1000000 (Limits::entries)",
            ),
            (
                directory_bytes(u64::MAX),
                "directory in bytes is 18446744073709551615, over the limit of 268435456 (Limits::directory_bytes)",
            ),
            (directory_bytes(1 << 20), "1048576 bytes from byte 80 on are to end at byte 182"),
            (
                directory_offset(u64::MAX),
                "102 bytes from byte 18446744073709551615 on are to end at byte 182",
            ),
        ] {
            let mut zip = two();
            zip.zip64 = Some(zip64);
            zip.end.entries = Some(u16::MAX);
            zip.end.directory_bytes = Some(u32::MAX);
            zip.end.directory_offset = Some(u32::MAX);
            let prefix = if message.contains("Limits") { String::new() } else { unreadable("") };
            never_read(&zip, &format!("{prefix}{message}"));
        }
    }

    #[test]
    fn zip64_record_that_is_not_there() {
        for zip64 in [
            Zip64End { record_size: Some(0), ..Zip64End::default() },
            Zip64End { record_size: Some(u64::MAX), ..Zip64End::default() },
            Zip64End { record_size: Some(u64::MAX - 11), ..Zip64End::default() },
        ] {
            let mut zip = two();
            zip.zip64 = Some(zip64);
            zip.end.entries = Some(u16::MAX);
            never_read(&zip, &unreadable("there is no zip64 end record at byte 182"));
        }
        for offset in [0, 181, 183, 1 << 40, u64::MAX] {
            let mut zip = two();
            zip.zip64 = Some(Zip64End { locator_offset: Some(offset), ..Zip64End::default() });
            zip.end.entries = Some(u16::MAX);
            // It is found, where it should be, by us, and not by the parser, which only looks there.
            assert!(read(&zip.to_bytes(), lenient()).unwrap_err().starts_with(&unreadable("")));
        }
    }

    #[test]
    fn zip64_sizes_of_entries() {
        let entry = Entry::stored("a", b"hello").zip64(0);
        fine(&alone(entry.clone()), &[b"hello"]);
        // In the local header alone, as the writer of PyTorch does.
        let mut local = entry.clone();
        let plain = Entry::stored("a", b"hello");
        (local.central, local.listing) = (plain.central, plain.listing);
        fine(&alone(local), &[b"hello"]);
        for (extra, message) in [
            (Vec::new(), "ends at byte 4294967326, but the directory starts at byte 56"),
            (zip::extra(2, b""), "ends at byte 4294967326, but the directory starts at byte 56"),
        ] {
            let mut entry = entry.clone();
            (entry.central.extra, entry.listing.offset) = (extra, None);
            never_read(&alone(entry), &format!("entry \"a\" at byte 0: {message}"));
        }
        for len in [0, 7, 8, 15, 16, 23] {
            let mut entry = entry.clone();
            entry.central.extra = zip::extra(1, &entry.central.extra[4..4 + len]);
            never_read(
                &alone(entry),
                &unreadable("invalid Zip archive: ZIP64 extra field truncated"),
            );
        }
    }

    #[test]
    fn zip64_numbers_near_the_end_of_64_bits() {
        for huge in [u64::MAX, u64::MAX - 1, u64::MAX - 30, 1 << 63] {
            for field in 0..3 {
                let mut entry = Entry::stored("a", b"hello").zip64(0);
                let at = 4 + 8 * field;
                entry.central.extra[at..at + 8].copy_from_slice(&huge.to_le_bytes());
                if field < 2 {
                    // Both sizes, or the first difference is that between them.
                    entry.central.extra[4..12].copy_from_slice(&huge.to_le_bytes());
                    entry.central.extra[12..20].copy_from_slice(&huge.to_le_bytes());
                }
                let found = read(&alone(entry).to_bytes(), lenient()).unwrap_err();
                let end = match field {
                    2 => huge.saturating_add(31 + 5),
                    _ => huge.saturating_add(31),
                };
                let at = if field == 2 { huge } else { 0 };
                let message = format!(
                    "entry \"a\" at byte {at}: ends at byte {end}, but the directory starts at byte 56"
                );
                let overflow = unreadable("invalid Zip archive: Archive header is too large");
                assert!(found == message || field == 2 && found == overflow, "{found}");
            }
        }
    }

    #[test]
    fn more_entries_than_16_bits_count() {
        let names: Vec<String> = (0..70_000).map(|at| format!("{at:05}")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
        let mut zip = Zip::of(&files);
        zip.zip64 = Some(Zip64End::default());
        zip.end.entries = Some(u16::MAX);
        let source = Source::from_bytes(zip.to_bytes());
        let archive = Archive::from_source(source.clone()).unwrap();
        assert_eq!(archive.entries().len(), 70_000);
        assert!(archive.lint().is_empty());
        // Counted by 16 bits, the rest of the directory is hidden.
        zip.zip64 = None;
        zip.end.entries = None;
        let message = "bytes belong to no entry of the directory";
        assert!(read(&zip.to_bytes(), strict()).unwrap_err().ends_with(message));
    }

    #[test]
    fn bytes_before_the_archive() {
        for (is_shifted, prefix) in
            [(false, &b"#!/bin/sh\n"[..]), (true, b"#!/bin/sh\n"), (true, &[0; 70_000])]
        {
            let zip = Zip { prefix: prefix.to_vec(), is_shifted, ..two() };
            let len = prefix.len();
            strictly_refused(
                &zip,
                &format!("archive at byte 0: {len} bytes stand before the archive"),
            );
            let archive = read(&zip.to_bytes(), lenient()).unwrap();
            assert_eq!(archive.entry("b.txt").unwrap().bytes().unwrap(), b"world"[..]);
        }
        let zip = Zip { prefix: b"x".to_vec(), is_shifted: true, ..Zip::default() };
        strictly_refused(&zip, "archive at byte 0: 1 bytes stand before the archive");
    }

    #[test]
    fn bytes_before_an_archive_with_zip64() {
        for is_shifted in [false, true] {
            let zip64 = Some(Zip64End::default());
            let mut zip = Zip { prefix: b"#!/bin/sh\n".to_vec(), is_shifted, zip64, ..two() };
            for entries in [None, Some(u16::MAX)] {
                zip.end.entries = entries;
                strictly_refused(&zip, "archive at byte 0: 10 bytes stand before the archive");
            }
        }
    }

    #[test]
    fn bytes_behind_the_archive() {
        for suffix in [&b"x"[..], &[0; 500], b"PK\x03\x04", &[7; 65_535]] {
            let zip = Zip { suffix: suffix.to_vec(), ..two() };
            let len = suffix.len();
            strictly_refused(
                &zip,
                &format!("archive at byte 204: {len} bytes stand behind the archive"),
            );
        }
        let zip = Zip { suffix: vec![0; 70_000], ..two() };
        never_read(&zip, &unreadable("there is no end record"));
    }

    #[test]
    fn comments() {
        for comment in [&b"hello"[..], &[b'x'; 65_535], b"\xff\0"] {
            let mut zip = two();
            zip.end.comment = comment.to_vec();
            let message = format!("archive at byte 182: comment of {} bytes", comment.len());
            found_by_check(&zip, Severity::Note, &message);
        }
    }

    #[test]
    fn comments_that_are_shorter_than_said() {
        let zip = two_with(|zip| zip.end.comment_len = Some(1));
        never_read(&zip, &unreadable("end record at byte 182 is cut off"));
    }

    /// A whole other archive as the comment: the last one is read, and what hides the first is
    /// that it stands before it.
    #[test]
    fn archive_in_the_comment() {
        let mut zip = two();
        zip.end.comment = Zip::of(&[("evil", b"evil")]).to_bytes();
        let bytes = zip.to_bytes();
        let message = "archive at byte 0: 204 bytes stand before the archive";
        assert_eq!(read(&bytes, strict()).unwrap_err(), message);
        assert_eq!(findings(&bytes), [(Severity::Error, message.to_owned())]);
        let archive = read(&bytes, lenient()).unwrap();
        assert_eq!(archive.entries().next().unwrap().name(), "evil");
    }

    /// The signature alone, where a reader that looks for the last one finds it.
    #[test]
    fn signatures_behind_the_end_record() {
        let message = "archive at byte 182: 2 end records, expected 1";
        for comment in
            [&b"PK\x05\x06"[..], b"xPK\x05\x06 and more than 22 bytes of comment \xff\xff"]
        {
            let mut zip = two();
            zip.end.comment = comment.to_vec();
            assert_eq!(read(&zip.to_bytes(), strict()).unwrap_err(), message);
            assert_eq!(read(&zip.to_bytes(), lenient()).unwrap().entries().len(), 2);
        }
        let mut record = two().to_bytes().split_off(182);
        record[20] = 0xff;
        let zip = Zip { suffix: record, ..two() };
        assert_eq!(read(&zip.to_bytes(), strict()).unwrap_err(), message);
    }

    #[test]
    fn end_records_in_the_directory() {
        let mut zip = two();
        zip.entries[1].listing.comment = two().to_bytes().split_off(182);
        strictly_refused(&zip, "archive at byte 204: 2 end records, expected 1");
    }

    #[test]
    fn two_archives_one_behind_the_other() {
        let first = two().to_bytes();
        for is_shifted in [false, true] {
            let second = Zip::of(&[("c.txt", b"third")]);
            let zip = Zip { prefix: first.clone(), is_shifted, ..second };
            strictly_refused(&zip, "archive at byte 0: 204 bytes stand before the archive");
            let archive = read(&zip.to_bytes(), lenient()).unwrap();
            assert_eq!(archive.entries().next().unwrap().name(), "c.txt");
        }
    }

    /// Z14: what is stored is data, whatever it looks like.
    #[test]
    fn archives_inside_archives() {
        let mut inner = two();
        inner.end.comment = b"PK\x05\x06".to_vec();
        let inner = inner.to_bytes();
        let zip = Zip::of(&[("inner.zip", &inner), ("other.zip", &inner)]);
        fine(&zip, &[&inner, &inner]);
        for entry in by_method(&inner) {
            fine(&alone(entry), &[&inner]);
        }
    }
}

mod checksums {
    //! Z13: data that was changed.

    use super::*;

    #[test]
    fn changed_content() {
        for entry in by_method(b"hello, hello, hello") {
            let entry = entry.both(|header| header.crc32 ^= 1);
            let (crc, found) = (entry.central.crc32, entry.central.crc32 ^ 1);
            let message = format!(
                "entry \"a\" at byte 0: content has CRC-32 {found:08x}, expected {crc:08x}"
            );
            never_read(&alone(entry), &message);
        }
    }

    #[test]
    fn every_way_of_reading_but_one_compares() {
        for mut entry in by_method(b"hello, hello, hello") {
            let middle = entry.data.len() / 2;
            entry.data[middle] ^= 0x10;
            let bytes = alone(entry.clone()).to_bytes();
            for options in [strict(), lenient()] {
                let archive = options.from_source(Source::from_bytes(bytes.clone())).unwrap();
                let changed = archive.entry("a").unwrap();
                changed.verify().unwrap_err();
                changed.checked_bytes().unwrap_err();
                changed.read_into(&mut [0; 19]).unwrap_err();
                changed.reader().unwrap().read_to_end(&mut Vec::new()).unwrap_err();
                let is_stored = entry.central.method == 0;
                assert_eq!(changed.bytes().is_ok(), is_stored, "documented: not compared");
                assert!(archive.lint().is_empty(), "structure is all that is checked");
            }
        }
    }

    #[test]
    fn readers_that_failed_stay_failed() {
        let entry = Entry::stored("a", b"hello").both(|header| header.crc32 = 0);
        let archive = Archive::from_bytes(alone(entry).to_bytes()).unwrap();
        let mut reader = archive.entry("a").unwrap().reader().unwrap();
        let mut content = Vec::new();
        reader.read_to_end(&mut content).unwrap_err();
        let again = reader.read(&mut [0; 1]).unwrap_err();
        assert_eq!(again.to_string(), "the entry failed before");
    }

    #[test]
    fn buffers_of_another_length() {
        for entry in by_method(b"hello") {
            let archive = Archive::from_bytes(alone(entry).to_bytes()).unwrap();
            let entry = archive.entry("a").unwrap();
            for len in [0, 4, 6] {
                let error = entry.read_into(&mut vec![0; len]).unwrap_err();
                let message = format!("entry is 5 bytes long, but the buffer holds {len}");
                assert_eq!(error.to_string(), message);
            }
            entry.read_into(&mut [0; 5]).unwrap();
        }
    }
}
