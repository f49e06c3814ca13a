//! What a carton claims takes no memory, and what it says once is not said a thousand times: the
//! allocator of this program counts. What libzstd takes for itself is not seen here.
use std::{fmt::Write as _, num::NonZeroUsize};

use carton_format::{ReadOptions, Reader, Result};
use tensor_core::{Limits, Profile};
use test_support::{memory, zip::Zip};

use super::{
    cases::cases,
    made::{Carton, find, recode, zstd_frame},
};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Opens, reads and validates on this thread alone; returns the most memory that took, in bytes.
fn peak(options: &ReadOptions, bytes: Vec<u8>) -> u64 {
    let options = options.clone().threads(NonZeroUsize::MIN);
    let read = || {
        let Ok(reader) = options.from_bytes(bytes) else { return };
        let _ = reader.validate();
        let _ = reader.description();
        for tensor in reader.tensors().into_iter().flatten() {
            let _ = tensor.value();
            let _ = tensor.verify();
        }
        for file in reader.files() {
            let _ = file.bytes();
        }
    };
    memory::measure(read).bytes
}

#[track_caller]
fn takes_little(bytes: &[u8], limit: u64) {
    let len = bytes.len();
    for profile in [Profile::Strict, Profile::Lenient] {
        let peak = peak(&Reader::options().profile(profile), bytes.to_owned());
        assert!(peak < limit, "{peak} bytes for a carton of {len}");
    }
}

#[test]
fn claims_of_every_case() {
    for case in cases() {
        let peak = peak(&Reader::options().profile(Profile::Lenient), case.bytes);
        assert!(peak < 4 << 20, "{}: {peak} bytes", case.name);
    }
}

/// A document that is said to have as many bytes as a limit allows.
#[test]
fn sizes_of_documents() {
    for name in ["MANIFEST", "carton.toml", "tensor_data/index.toml", "tensor_data/tensor_1.toml"] {
        for size in [16 << 20, 64 << 20, 256 << 20, u32::MAX - 1] {
            let mut zip = Carton::full().zip();
            let content = find(&mut zip, name).data.clone();
            recode(&mut zip, name, 93, zstd_frame(&content));
            let entry = find(&mut zip, name);
            *entry = entry.clone().both(|header| header.size = size);
            takes_little(&zip.to_bytes(), 4 << 20);
        }
    }
}

#[test]
fn texts_of_2_to_40_elements() {
    for shape in ["[1099511627776]", "[1099511627776, 0]", "[1099511627776, 8388607]"] {
        let to = format!("shape = {shape}\n");
        takes_little(&Carton::full().index("shape = [3]\n", &to).bytes(), 4 << 20);
    }
}

/// An inner tensor of 64 KiB that stands 10,000 times in a nested one.
#[test]
fn nested_tensors_of_one_tensor() {
    let names = vec!["\"numbers\""; 10_000].join(", ");
    let carton = Carton::full()
        .index("shape = [3, 2]", "shape = [16384]")
        .index("[\"numbers\", \"numbers\"]", &format!("[{names}]"))
        .file("tensor_data/tensor_0.bin", vec![0; 1 << 16]);
    let mut zip = carton.zip();
    recode(&mut zip, "tensor_data/tensor_0.bin", 93, zstd_frame(&[0; 1 << 16]));
    let limits = Limits::default().with_decoded_bytes(1 << 24);
    let reader = Reader::options().limits(limits).from_bytes(zip.to_bytes()).unwrap();
    let value = || -> Result<_> { reader.tensor("list")?.unwrap().value() };
    assert!(
        value().unwrap_err().to_string().starts_with("nested tensor in bytes is 6"),
        "{:?}",
        value()
    );
    let peak = peak(&Reader::options().limits(limits), zip.to_bytes());
    assert!(peak < 32 << 20, "{peak} bytes");
}

/// A long name, symbol or shape that thousands of self tests refer to, each of them wrongly.
#[test]
fn long_names_are_not_repeated() {
    let long = "s".repeat(200_000);
    let dims = "1, ".repeat(64);
    for (x, shape) in [
        ("x", format!("['{long}', '{long}']")),
        ("x", format!("'{long}'")),
        ("x", format!("[{dims}]")),
        (&*long, "['n', 'n']".to_owned()),
    ] {
        let mut text = format!("[[input]]\nname = '{x}'\ndtype = 'string'\nshape = {shape}\n");
        for _ in 0..if x == "x" { 2000 } else { 1 } {
            let _ = write!(text, "[[self_test]]\ninputs = {{ '{x}' = '@tensor_data/a' }}\n");
        }
        if x != "x" {
            for number in 0..2000 {
                let _ =
                    write!(text, "[[input]]\nname = '{number}'\ndtype = 'int16'\nshape = ['n']\n");
            }
            let _ = write!(text, "[[self_test]]\ninputs = {{ '{x}' = '@tensor_data/a'");
            for number in 0..2000 {
                let _ = write!(text, ", '{number}' = '@tensor_data/a'");
            }
            text.push_str(" }\n");
        }
        let carton = Carton::with_tensors().toml("[runner]\n", &format!("{text}[runner]\n"));
        takes_little(&carton.bytes(), 40 << 20);
    }
}

#[test]
fn long_lines_are_not_shown() {
    for text in ["x".repeat(1 << 20), format!("x={}", "0".repeat(1 << 20)), {
        format!("{}={}\n", "x".repeat(1 << 20), "0".repeat(64))
    }] {
        let carton = Carton::small().manifest(|_| text);
        let error = Reader::from_bytes(carton.bytes()).unwrap_err();
        assert!(error.to_string().len() < 400, "{}", error.to_string().len());
    }
}

/// What is read of an archive of 5,000 tensors is a few times its size.
#[test]
fn many_tensors() {
    let mut index = String::new();
    let mut carton = Carton::small();
    for number in 0..5000 {
        let _ = write!(
            index,
            "[[tensor]]\nname = 't{number}'\ndtype = 'int8'\nshape = [1]\nfile = '{number}'\n"
        );
        carton = carton.file(&format!("tensor_data/{number}"), [1]);
    }
    let zip: Zip = carton.file("tensor_data/index.toml", index).zip();
    takes_little(&zip.to_bytes(), 24 << 20);
}
