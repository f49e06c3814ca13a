//! What the writer emits: the bytes of each record, every option as another reader sees it, and
//! what is refused.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Write},
    num::NonZeroUsize,
};

use model_archive::{
    ArchiveWriter, Compression, Encoded, EntryOptions, Error, Kind, Method, Raw, WriteFault,
    Written, name::NameFault,
};
use proptest::prelude::*;
use tensor_core::{CursorMut, digest::Algorithm};
use test_support::{assert_bytes, noise};
use zip::{CompressionMethod, ZipArchive};

const PLAIN: fn() -> EntryOptions = EntryOptions::default;
/// What is encoded at once, and what decides of a stream.
const BLOCK: usize = 1 << 20;

fn compressions() -> Vec<Compression> {
    vec![
        Compression::Stored,
        #[cfg(feature = "deflate")]
        Compression::Deflate { level: 6 },
        #[cfg(feature = "deflate")]
        Compression::DeflateIfSmaller { level: 1 },
        #[cfg(feature = "zstd")]
        Compression::Zstd { level: 3 },
        #[cfg(feature = "zstd")]
        Compression::ZstdIfSmaller { level: -1 },
    ]
}

/// Bytes that compress well, the same each time.
fn regular(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 % 251) as u8).collect()
}

fn archive(write: impl FnOnce(&mut ArchiveWriter<Vec<u8>>)) -> Vec<u8> {
    let mut archive = ArchiveWriter::new(Vec::new());
    write(&mut archive);
    archive.finish().unwrap()
}

/// An entry as another implementation reads it.
#[derive(Debug, PartialEq)]
struct Peer {
    name: String,
    method: u16,
    mode: u32,
    data_offset: u64,
    content: Vec<u8>,
}

fn peer(archive: impl Read + Seek) -> Vec<Peer> {
    let mut archive = ZipArchive::new(archive).unwrap();
    archive.validate_header_consistency().unwrap();
    assert_eq!(archive.offset(), 0);
    let entries = (0..archive.len()).map(|index| {
        let mut entry = archive.by_index_raw(index).unwrap();
        let (crc32, size) = (entry.crc32(), entry.size());
        let mut stored = Vec::new();
        entry.read_to_end(&mut stored).unwrap();
        assert_eq!(stored.len() as u64, entry.compressed_size());
        assert_eq!(entry.last_modified(), Some(zip::DateTime::default()));
        let method = code(entry.compression());
        let content = decode(method, stored);
        assert_eq!(content.len() as u64, size);
        assert_eq!(crc32fast::hash(&content), crc32);
        Peer {
            name: entry.name().unwrap().into_owned(),
            method,
            mode: entry.unix_mode().unwrap(),
            data_offset: entry.data_start().unwrap(),
            content,
        }
    });
    entries.collect()
}

fn code(method: CompressionMethod) -> u16 {
    let known = [
        (CompressionMethod::STORE, 0),
        (CompressionMethod::DEFLATE, 8),
        (CompressionMethod::ZSTD, 93),
    ];
    known.iter().find(|(known, _)| *known == method).unwrap().1
}

fn decode(method: u16, stored: Vec<u8>) -> Vec<u8> {
    match method {
        0 => stored,
        #[cfg(feature = "deflate")]
        8 => {
            let mut content = Vec::new();
            let mut decoder = flate2::bufread::DeflateDecoder::new(&stored[..]);
            decoder.read_to_end(&mut content).unwrap();
            assert_eq!(decoder.total_in(), stored.len() as u64);
            content
        }
        #[cfg(feature = "zstd")]
        93 => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(&stored[..]).unwrap();
            let mut content = Vec::new();
            decoder.read_to_end(&mut content).unwrap();
            content
        }
        _ => panic!("method {method}"),
    }
}

#[test]
fn bytes_of_every_record() {
    let found = archive(|archive| {
        archive.add("a", b"hello", &PLAIN().alignment(64)).unwrap();
        archive.add_symlink("ü", "a").unwrap();
        archive.add_folder("f").unwrap();
    });
    let crc_of_hello = 0x3610_a686; // python3 -c 'import zlib; print(hex(zlib.crc32(b"hello")))'
    let crc_of_a = 0xe8b7_be43;
    let mut local = CursorMut::default();
    // Version needed, flags, method, time, date, CRC-32, sizes, lengths of name and extra field.
    local.bytes(b"PK\x03\x04").u16(10).u16(0).u16(0).u16(0).u16(0x0021);
    local.u32(crc_of_hello).u32(5).u32(5).u16(1).u16(33).bytes(b"a");
    // Alignment field: id, length, alignment, padding up to byte 64.
    local.u16(0xa11e).u16(29).u16(64).bytes(&[0; 27]).bytes(b"hello");
    local.bytes(b"PK\x03\x04").u16(10).u16(1 << 11).u16(0).u16(0).u16(0x0021);
    local.u32(crc_of_a).u32(1).u32(1).u16(2).u16(0).bytes("ü".as_bytes()).bytes(b"a");
    local.bytes(b"PK\x03\x04").u16(20).u16(0).u16(0).u16(0).u16(0x0021);
    local.u32(0).u32(0).u32(0).u16(2).u16(0).bytes(b"f/");
    let local = local.into_bytes();
    let mut directory = CursorMut::default();
    // Made by, then as above; comment, disk, internal and external attributes, offset.
    directory.bytes(b"PK\x01\x02").u16(0x033f).u16(10).u16(0).u16(0).u16(0).u16(0x0021);
    directory.u32(crc_of_hello).u32(5).u32(5).u16(1).u16(0);
    directory.u16(0).u16(0).u16(0).u32(0o100_644 << 16).u32(0).bytes(b"a");
    directory.bytes(b"PK\x01\x02").u16(0x033f).u16(10).u16(1 << 11).u16(0).u16(0).u16(0x0021);
    directory.u32(crc_of_a).u32(1).u32(1).u16(2).u16(0);
    directory.u16(0).u16(0).u16(0).u32(0o120_777 << 16).u32(69).bytes("ü".as_bytes());
    directory.bytes(b"PK\x01\x02").u16(0x033f).u16(20).u16(0).u16(0).u16(0).u16(0x0021);
    directory.u32(0).u32(0).u32(0).u16(2).u16(0);
    directory.u16(0).u16(0).u16(0).u32(0o040_755 << 16 | 0x10).u32(102).bytes(b"f/");
    let directory = directory.into_bytes();
    let mut end = CursorMut::default();
    // Disks, entries twice, length and offset of the directory, comment.
    end.bytes(b"PK\x05\x06").u16(0).u16(0).u16(3).u16(3);
    end.u32(directory.len() as u32).u32(local.len() as u32).u16(0);
    assert_bytes(&found, &[local, directory, end.into_bytes()].concat(), "archive");
}

#[test]
fn streams_of_known_size_have_small_descriptors() {
    let content = noise(BLOCK + 1);
    let size = content.len() as u32;
    let found = archive(|archive| {
        let mut entry = archive.stream("a", &PLAIN().size(size.into())).unwrap();
        entry.write_all(&content).unwrap();
        entry.finish().unwrap();
    });
    let mut local = CursorMut::default();
    // Bit 3 says that CRC-32 and sizes stand behind the data.
    local.bytes(b"PK\x03\x04").u16(10).u16(1 << 3).u16(0).u16(0).u16(0x0021);
    local.u32(0).u32(0).u32(0).u16(1).u16(0).bytes(b"a").bytes(&content);
    local.bytes(b"PK\x07\x08").u32(crc32fast::hash(&content)).u32(size).u32(size);
    let local = local.into_bytes();
    assert_bytes(&found[..local.len()], &local, "entry");
}

#[test]
fn streams_of_unknown_size_have_large_descriptors() {
    let content = noise(BLOCK + 1);
    let size = content.len() as u64;
    let found = archive(|archive| {
        let mut entry = archive.stream("a", &PLAIN()).unwrap();
        entry.write_all(&content).unwrap();
        entry.finish().unwrap();
    });
    let mut local = CursorMut::default();
    local.bytes(b"PK\x03\x04").u16(45).u16(1 << 3).u16(0).u16(0).u16(0x0021);
    local.u32(0).u32(u32::MAX).u32(u32::MAX).u16(1).u16(20).bytes(b"a");
    // Zip64 field: id, length, sizes that are not known yet.
    local.u16(1).u16(16).u64(0).u64(0).bytes(&content);
    local.bytes(b"PK\x07\x08").u32(crc32fast::hash(&content)).u64(size).u64(size);
    let local = local.into_bytes();
    assert_bytes(&found[..local.len()], &local, "entry");
}

#[test]
fn another_reader_finds_what_was_written() {
    let contents = [vec![], b"x".to_vec(), regular(5000), noise(5000), regular(3 * BLOCK + 5)];
    let mut written: Vec<Written> = Vec::new();
    let mut expected = Vec::new();
    let found = archive(|archive| {
        for compression in compressions() {
            for content in &contents {
                let options = PLAIN().compression(compression).digest(Algorithm::Sha256);
                let at = written.len();
                written.push(archive.add(&format!("a/{at}"), content, &options).unwrap());
                let mut entry = archive.stream(&format!("s/ø{at}"), &options).unwrap();
                entry.write_all(content).unwrap();
                written.push(entry.finish().unwrap());
                expected.extend([content.clone(), content.clone()]);
            }
        }
    });
    let entries = peer(Cursor::new(&found));
    assert_eq!(entries.len(), expected.len());
    for ((entry, written), content) in entries.iter().zip(&written).zip(&expected) {
        assert_eq!((&entry.name, entry.method), (&written.name, written.method.code()));
        assert_eq!((entry.mode, entry.data_offset), (0o100_644, written.data_offset));
        assert!(entry.content == *content, "{written:?}");
        assert_eq!(written.size, content.len() as u64);
        assert_eq!(written.crc32, crc32fast::hash(content));
        assert_eq!(written.digest, Some(Algorithm::Sha256.digest(content)));
    }
}

#[test]
fn data_starts_at_multiples() {
    for alignment in (0..=15).map(|shift| 1 << shift) {
        let long = noise(BLOCK + 3);
        let mut written = Vec::new();
        let found = archive(|archive| {
            let options = PLAIN().alignment(alignment);
            // Names of every length up to the shortest field are in the way of the data.
            for len in 1..9 {
                written.push(archive.add(&"n".repeat(len), b"odd", &options).unwrap());
            }
            let mut entry = archive.stream("stream", &options).unwrap();
            entry.write_all(&long).unwrap();
            written.push(entry.finish().unwrap());
            written.push(archive.add("empty", b"", &options).unwrap());
        });
        for (entry, written) in peer(Cursor::new(&found)).iter().zip(&written) {
            assert_eq!(entry.data_offset, written.data_offset);
            assert!(entry.data_offset.is_multiple_of(alignment.into()), "{alignment} {written:?}");
        }
    }
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_data_is_not_aligned() {
    let options = PLAIN().alignment(4096);
    let found = archive(|archive| {
        let always = options.compression(Compression::Zstd { level: 3 });
        let smaller = options.compression(Compression::ZstdIfSmaller { level: 3 });
        assert_eq!(archive.add("a", &regular(5000), &always).unwrap().data_offset, 31);
        let stored = archive.add("b", &noise(5000), &smaller).unwrap();
        assert_eq!((stored.method, stored.data_offset), (Method::Stored, 4096));
    });
    assert_eq!(peer(Cursor::new(&found)).len(), 2);
}

#[cfg(feature = "zstd")]
#[test]
fn compression_has_to_pay() {
    let smaller = PLAIN().compression(Compression::ZstdIfSmaller { level: 3 });
    let mixed = [noise(BLOCK), regular(BLOCK)].concat();
    let regular_first = [regular(BLOCK), noise(BLOCK)].concat();
    let mut archive = ArchiveWriter::new(Vec::new());
    for (name, content, method) in [
        ("empty", vec![], Method::Stored),
        ("one byte", vec![1], Method::Stored),
        ("regular", regular(9000), Method::Zstd),
        ("random", noise(9000), Method::Stored),
        // 4 in 100 bytes are saved.
        ("hardly", [noise(9600), regular(400)].concat(), Method::Stored),
        ("somewhat", [noise(9000), regular(1000)].concat(), Method::Zstd),
        // In memory, all of it is looked at.
        ("random first", mixed.clone(), Method::Zstd),
    ] {
        assert_eq!(archive.add(name, &content, &smaller).unwrap().method, method, "{name}");
    }
    // Of a stream, the first block decides.
    for (name, content, method) in
        [("late", mixed, Method::Stored), ("early", regular_first, Method::Zstd)]
    {
        let threads = NonZeroUsize::MIN;
        let written = archive.stream_from(name, &content[..], &smaller, threads).unwrap();
        assert_eq!(written.method, method, "{name}");
    }
}

/// Reads a few bytes at a time, never twice as many, and is interrupted now and then.
struct Trickle<'a> {
    rest: &'a [u8],
    calls: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(7) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = out.len().min(1 + self.calls * 7919 % 100_000);
        self.rest.read(&mut out[..most])
    }
}

#[test]
fn bytes_do_not_depend_on_threads_or_pieces() {
    for compression in compressions() {
        for len in [0, 1, BLOCK, BLOCK + 1, 5 * BLOCK, 6 * BLOCK + 12_345] {
            let content = [regular(len / 2), noise(len - len / 2)].concat();
            let options = PLAIN().compression(compression).digest(Algorithm::Sha256).alignment(64);
            let streamed = |threads| {
                archive(|archive| {
                    let content = Trickle { rest: &content, calls: 0 };
                    let threads = NonZeroUsize::new(threads).unwrap();
                    let written = archive.stream_from("a", content, &options, threads).unwrap();
                    assert!(written.digest.is_some());
                })
            };
            let expected = streamed(1);
            for threads in [2, 4] {
                assert!(streamed(threads) == expected, "{compression:?} {len} {threads}");
            }
            for piece in [len, 1000, 1_048_577] {
                let found = archive(|archive| {
                    let mut entry = archive.stream("a", &options).unwrap();
                    content.chunks(piece.max(1)).for_each(|piece| entry.write_all(piece).unwrap());
                    entry.finish().unwrap();
                });
                assert!(found == expected, "{compression:?} {len} in pieces of {piece}");
            }
            assert_eq!(peer(Cursor::new(&expected))[0].content, content);
        }
    }
}

#[test]
fn short_streams_are_written_as_from_memory() {
    for compression in compressions() {
        let options = PLAIN().compression(compression);
        let content = regular(BLOCK);
        let from_memory = archive(|archive| {
            archive.add("a", &content, &options).unwrap();
        });
        let streamed = archive(|archive| {
            let threads = NonZeroUsize::new(2).unwrap();
            archive.stream_from("a", &content[..], &options, threads).unwrap();
        });
        assert!(streamed == from_memory, "{compression:?}");
    }
}

fn fault(result: Result<impl Sized, Error>) -> WriteFault {
    match result {
        Err(Error::Write { fault, .. }) => fault,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("must be refused"),
    }
}

#[test]
fn refused_entries_leave_the_writer_usable() {
    let write = |refuse: fn(&mut ArchiveWriter<Vec<u8>>)| {
        archive(|archive| {
            archive.add("a/b", b"1", &PLAIN()).unwrap();
            refuse(archive);
            archive.add("c", b"2", &PLAIN()).unwrap();
        })
    };
    let refused = write(|archive| {
        let mut add = |name, options: EntryOptions| fault(archive.add(name, b"x", &options));
        assert_eq!(add("a/b", PLAIN()), WriteFault::Duplicate);
        let clash = WriteFault::FileAndFolder { other: "a/b".to_owned() };
        assert_eq!(add("a", PLAIN()), clash);
        assert_eq!(add("a/b/c", PLAIN()), clash);
        assert_eq!(add("../c", PLAIN()), WriteFault::Name(NameFault::DotComponent));
        assert_eq!(add("com1", PLAIN()), WriteFault::Name(NameFault::Device));
        assert_eq!(add("d", PLAIN().alignment(48)), WriteFault::Alignment { found: 48 });
        assert_eq!(add("d", PLAIN().size(2)), WriteFault::Size { found: 1, expected: 2 });
        assert_eq!(fault(archive.stream("a", &PLAIN())), clash);
        assert_eq!(fault(archive.add_folder("a/b")), clash);
        let target = fault(archive.add_symlink("l", "/etc/passwd"));
        assert_eq!(
            target.to_string(),
            "links to \"/etc/passwd\", which is absolute, expected a path relative to the link"
        );
        let kind = Kind::File;
        let raw = Raw { kind, method: Method::Stored, size: 3, stored_size: 2, crc32: 0 };
        let size = WriteFault::Size { found: 2, expected: 3 };
        assert_eq!(fault(archive.copy_raw("d", raw, 1, &b"xy"[..])), size);
    });
    assert_bytes(&refused, &write(|_| ()), "archive");
}

#[test]
fn a_dropped_entry_ends_the_archive() {
    let mut archive = ArchiveWriter::new(Vec::new());
    let mut entry = archive.stream("a", &PLAIN()).unwrap();
    entry.write_all(b"x").unwrap();
    drop(entry);
    let message = "entry \"a\" was begun and not finished";
    assert_eq!(archive.add("b", b"", &PLAIN()).unwrap_err().to_string(), message);
    assert_eq!(archive.finish().unwrap_err().to_string(), message);
}

#[test]
fn streams_of_another_size_than_said() {
    let threads = NonZeroUsize::new(2).unwrap();
    for (size, found) in [(5_u64, 4_u64), (3, 4), (2 << 20, (2 << 20) - 1), (2 << 20, 3 << 20)] {
        let content = regular(usize::try_from(found).unwrap());
        let options = PLAIN().size(size);
        let mut archive = ArchiveWriter::new(Vec::new());
        let refused = fault(archive.stream_from("a", &content[..], &options, threads));
        assert_eq!(refused, WriteFault::Size { found, expected: size });
        assert!(matches!(archive.finish(), Err(Error::Unfinished { .. })));
    }
}

/// Fails after so many bytes.
struct Torn(usize);

impl Read for Torn {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = out.len().min(self.0);
        self.0 -= read;
        if read == 0 { Err(io::Error::other("disk is gone")) } else { Ok(read) }
    }
}

#[test]
fn failing_reads_are_errors() {
    for threads in [1, 2].map(|threads| NonZeroUsize::new(threads).unwrap()) {
        for len in [0, 10, 3 * BLOCK, 9 * BLOCK + 1] {
            let mut archive = ArchiveWriter::new(io::sink());
            let error = archive.stream_from("a", Torn(len), &PLAIN(), threads).unwrap_err();
            assert_eq!(error.to_string(), "reading the content of an entry failed");
            assert!(matches!(archive.finish(), Err(Error::Unfinished { .. })));
        }
    }
}

/// Fails at the n-th write.
struct Failing(usize);

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("disk is full"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn every_failing_write_is_an_error() {
    let content = regular(3 * BLOCK + 7);
    let threads = NonZeroUsize::new(2).unwrap();
    for compression in compressions() {
        let options = PLAIN().compression(compression);
        let write = |writes: usize| {
            let mut archive = ArchiveWriter::new(Failing(writes));
            let write = |archive: &mut ArchiveWriter<_>| {
                archive.add("a", &noise(100), &options)?;
                archive.add_folder("f")?;
                archive.stream_from("b", &content[..], &options, threads)?;
                let mut entry = archive.stream("c", &options)?;
                let written = entry.write_all(&content);
                assert_eq!(written.is_err(), entry.write_all(b"x").is_err());
                entry.finish()
            };
            match write(&mut archive) {
                Ok(_) => archive.finish().map(drop),
                Err(error) => {
                    assert!(matches!(archive.finish(), Err(Error::Unfinished { .. })));
                    Err(error)
                }
            }
        };
        let enough = (0..).find(|&writes| write(writes).is_ok()).unwrap();
        assert!(enough > 9, "{enough}");
        for writes in 0..enough {
            let error = write(writes).unwrap_err();
            let is_expected = matches!(error, Error::Io { .. } | Error::Unfinished { .. });
            assert!(is_expected, "{writes} {error:?}");
        }
    }
}

#[test]
fn panics_of_the_stream_reach_the_caller() {
    struct Panicking(usize);
    impl Read for Panicking {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(out.len()).expect("the stream panics");
            Ok(out.len())
        }
    }
    let threads = NonZeroUsize::new(2).unwrap();
    let mut archive = ArchiveWriter::new(io::sink());
    let run = std::panic::AssertUnwindSafe(|| {
        archive.stream_from("a", Panicking(3 * BLOCK), &PLAIN(), threads)
    });
    std::panic::catch_unwind(run).unwrap_err();
    assert!(matches!(archive.finish(), Err(Error::Unfinished { .. })));
}

#[test]
fn raw_copies_keep_their_bytes() {
    for compression in compressions() {
        let content = [regular(4000), noise(4000)].concat();
        let options = PLAIN().compression(compression);
        let encoded = Encoded::new("a", &content, &options).unwrap();
        let (method, size, stored_size) = (encoded.method(), encoded.size(), encoded.stored_size());
        let mut original = ArchiveWriter::new(Vec::new());
        let Written { data_offset, crc32, .. } = original.add_encoded(encoded).unwrap();
        let start = usize::try_from(data_offset).unwrap();
        let original = original.finish().unwrap();
        let stored = &original[start..][..usize::try_from(stored_size).unwrap()];
        let raw = Raw { kind: Kind::File, method, size, stored_size, crc32 };
        let copy = archive(|archive| {
            archive.copy_raw("a", raw, 1, stored).unwrap();
        });
        assert_bytes(&copy, &original, "copy");
        let moved = archive(|archive| {
            archive.add("first", b"x", &PLAIN()).unwrap();
            let written = archive.copy_raw("a", raw, 512, stored).unwrap();
            assert_eq!(written.data_offset, 512);
        });
        assert_eq!(peer(Cursor::new(&moved))[1].content, content);
        for (stored, found) in
            [(&stored[1..], stored_size - 1), (&[stored, b"x"].concat(), stored_size + 1)]
        {
            let mut archive = ArchiveWriter::new(io::sink());
            let refused = fault(archive.copy_raw("a", raw, 1, stored));
            assert_eq!(refused, WriteFault::Size { found, expected: stored_size });
            assert!(matches!(archive.finish(), Err(Error::Unfinished { .. })));
        }
    }
}

#[test]
fn links_and_folders_have_their_modes() {
    let found = archive(|archive| {
        archive.add_folder("f/").unwrap();
        archive.add_symlink("f/l", "../w").unwrap();
        let raw = Raw {
            kind: Kind::Symlink,
            method: Method::Stored,
            size: 1,
            stored_size: 1,
            crc32: crc32fast::hash(b"w"),
        };
        archive.copy_raw("m", raw, 1, &b"w"[..]).unwrap();
    });
    let modes: Vec<_> = peer(Cursor::new(&found)).iter().map(|entry| entry.mode).collect();
    assert_eq!(modes, [0o040_755, 0o120_777, 0o120_777]);
}

/// A file that has holes where zeros are written.
struct Sparse(File);

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() < 4096 || bytes.iter().take(64).any(|byte| *byte != 0) {
            return self.0.write(bytes);
        }
        self.0.seek(SeekFrom::Current(bytes.len().try_into().unwrap()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn large_entries_and_what_follows_them() {
    const LARGE: u64 = (1 << 32) + 10;
    let mut archive = ArchiveWriter::new(Sparse(tempfile::tempfile().unwrap()));
    // The checksum is not looked at on the way, so the test need not compute it either.
    let (kind, method) = (Kind::File, Method::Stored);
    let raw = Raw { kind, method, size: LARGE, stored_size: LARGE, crc32: 7 };
    let zeros = BufReader::with_capacity(256 << 10, io::repeat(0).take(LARGE));
    let large = archive.copy_raw("large", raw, 4096, zeros).unwrap();
    assert_eq!(large.data_offset, 4096);
    let small = archive.add("small", b"x", &PLAIN().alignment(64)).unwrap();
    let Sparse(file) = archive.finish().unwrap();
    let mut archive = ZipArchive::new(file).unwrap();
    archive.validate_header_consistency().unwrap();
    let mut entry = archive.by_index_raw(0).unwrap();
    assert_eq!((entry.size(), entry.compressed_size()), (LARGE, LARGE));
    assert_eq!(entry.data_start(), Some(4096));
    entry.read_exact(&mut [0]).unwrap();
    drop(entry);
    let mut entry = archive.by_index_raw(1).unwrap();
    assert_eq!((entry.size(), entry.data_start()), (1, Some(small.data_offset)));
    let mut content = Vec::new();
    entry.read_to_end(&mut content).unwrap();
    assert_eq!(content, b"x");
}

#[test]
fn more_entries_than_16_bits_count() {
    for entries in [65_534_u32, 65_535, 65_536] {
        let found = archive(|archive| {
            for index in 0..entries {
                archive.add(&format!("{index:x}"), b"", &PLAIN()).unwrap();
            }
        });
        let has_zip64_end =
            found.ends_with(b"PK\x06\x07") || found[found.len() - 42..].starts_with(b"PK\x06\x07");
        assert_eq!(has_zip64_end, entries > 65_534);
        assert_eq!(ZipArchive::new(Cursor::new(&found)).unwrap().len(), entries as usize);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_entries_are_read_back(
        entries in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..300), 0..5_usize, 0..16_u32, any::<bool>()),
            0..9,
        ),
    ) {
        let compressions = compressions();
        let found = archive(|archive| {
            for (index, (content, compression, shift, is_stream)) in entries.iter().enumerate() {
                let compression = compressions[compression % compressions.len()];
                let options = PLAIN().compression(compression).alignment(1 << shift);
                let name = format!("{index}");
                if *is_stream {
                    archive.stream_from(&name, &content[..], &options, NonZeroUsize::MIN).unwrap();
                } else {
                    archive.add(&name, content, &options).unwrap();
                }
            }
        });
        let read = peer(Cursor::new(&found));
        let contents: Vec<_> = read.iter().map(|entry| &entry.content).collect();
        let expected: Vec<_> = entries.iter().map(|(content, ..)| content).collect();
        prop_assert_eq!(contents, expected);
    }
}
