//! Prints how much memory opening, verifying and writing take at most, each in a process of its
//! own: for a small and a large tensor, and for models of PyTorch Live and nnpackages.
#![allow(clippy::print_stdout, reason = "a command line tool talks through its output")]

use std::{
    env, fs,
    io::{self, Write as _},
    num::{NonZeroU64, NonZeroUsize},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use benches::{
    Scale,
    convert::{convert, export, write_rten},
    nnpackage::{self, Weights},
    ptl::{files, image::PtlImage},
};
use modelcrate::{
    AnyReader, Target,
    page::{Page, PageOptions},
};
use ztensor::{
    Compression, Format, Reader, Role, Storage, WriteOptions,
    tensor_core::{DType, digest::Algorithm, output::Durability},
};

/// What a child process does.
const WORK: [&str; 10] = [
    "nothing",
    "open",
    "write raw",
    "verify raw",
    "write zstd",
    "write zstd frames",
    "convert raw",
    "convert zstd",
    "convert to onnx",
    "page with statistics",
];

const SIZES: [u64; 2] = [16 << 20, 1 << 30];

/// What a child process does with a file, or a picture, of one size.
const MODELS: [(&str, &str); 7] = [
    ("picture", "ptl: a picture of 4032 × 3024 pixels"),
    ("pack", "ptl: the same, and a tensor of 224 × 224 of it"),
    ("zip.ptl", "ptl: list the tensors of a ZIP file of 512 MiB"),
    ("flat.ptl", "ptl: list the tensors of a FlatBuffer of 512 MiB"),
    ("tables.zip", "nnpackage: open a model of 512 MiB and list its tensors"),
    ("mapped tables.zip", "nnpackage: the same, mapped"),
    ("behind.zip", "nnpackage: the same, weights behind the tables, by position"),
];

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            table()?;
            println!();
            models()
        }
        [work, path, len] => {
            perform(work, Path::new(path), len.parse()?)?;
            println!("{}", peak()?);
            Ok(())
        }
        _ => bail!("Usage: peak\n\nPrints the peak memory of opening, verifying and writing."),
    }
}

fn table() -> Result<()> {
    let folder = tempfile::Builder::new().prefix("benches.").tempdir()?;
    println!("| peak resident memory | 16 MiB tensor | 1 GiB tensor |\n|---|---:|---:|");
    let raw = SIZES.map(|len| folder.path().join(len.to_string()));
    for (path, len) in raw.iter().zip(SIZES) {
        child("write raw", path, len)?;
    }
    let zstd = |len| {
        let path = folder.path().join("zstd");
        child("write zstd", &path, len).map(|_| path)
    };
    let rten = |len| {
        let path = folder.path().join("model.rten");
        write_rten(&["w".to_owned()], &vec![0; usize::try_from(len)?], &path).map(|()| path)
    };
    for work in WORK {
        let mut cells = String::new();
        for (path, len) in raw.iter().zip(SIZES) {
            let other = folder.path().join("other");
            let path = if work.starts_with("write") { &other } else { path };
            let path = match work {
                "convert zstd" => &zstd(len)?,
                "convert to onnx" => &rten(len)?,
                _ => path,
            };
            let kibibytes = child(work, path, len)?;
            cells += &format!(" {:.1} MiB |", kibibytes as f64 / 1024.0);
        }
        println!("| {work} |{cells}");
    }
    Ok(())
}

fn models() -> Result<()> {
    let folder = tempfile::Builder::new().prefix("benches.").tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let len = (512 << 20) / files::TENSORS;
    files::write_zip(&path("zip.ptl"), len)?;
    files::write_flat(&path("flat.ptl"), len)?;
    for (name, weights) in [("tables.zip", Weights::InTables), ("behind.zip", Weights::Behind)] {
        fs::write(path("model"), nnpackage::circle(1024, weights))?;
        nnpackage::write_package(&path(name), &path("model"))?;
    }
    println!("| peak resident memory | |\n|---|---:|");
    for (work, title) in MODELS {
        let file = path(work.split(' ').next_back().unwrap_or(work));
        println!("| {title} | {:.1} MiB |", child(work, &file, 0)? as f64 / 1024.0);
    }
    Ok(())
}

/// Does a piece of work in a process of its own; returns its peak memory in KiB.
fn child(work: &str, path: &Path, len: u64) -> Result<u64> {
    let command =
        Command::new(env::current_exe()?).arg(work).arg(path).arg(len.to_string()).output();
    let output = command?;
    ensure!(output.status.success(), "{work}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn perform(work: &str, path: &Path, len: u64) -> Result<()> {
    let zstd = |frame| Storage::default().compression(Compression::Zstd { level: 3, frame });
    match work {
        "nothing" => Ok(()),
        "open" => {
            let reader = Reader::open(path)?;
            ensure!(reader.tensors().len() == 1, "there is one tensor");
            Ok(())
        }
        "verify raw" => {
            ensure!(Reader::open(path)?.validate().is_empty(), "the file has faults");
            Ok(())
        }
        "write raw" => write(path, Storage::default(), len),
        "write zstd" => write(path, zstd(None), len),
        "write zstd frames" => write(path, zstd(NonZeroU64::new(4 << 20)), len),
        "convert raw" | "convert zstd" => {
            convert(path, Target::Safetensors, 2, &path.with_extension("safetensors"))
        }
        "convert to onnx" => export(path, &path.with_extension("onnx")),
        "page with statistics" => {
            let (reader, options) = (AnyReader::open(path)?, PageOptions::default().stats(true));
            let findings = options.validate(&reader, |_| ());
            Page::of("model.zt", Some(&reader), findings, options).html(io::sink())?;
            Ok(())
        }
        "picture" => PtlImage::new(Scale::FULL).map(drop),
        "pack" => PtlImage::new(Scale::FULL)?.pack().map(drop),
        "zip.ptl" | "flat.ptl" => {
            let reader = ptl_spec::Reader::open(path)?;
            ensure!(files::list(&reader)? == files::TENSORS, "tensors");
            Ok(())
        }
        "tables.zip" | "behind.zip" => {
            nnpackage::open::list(&::nnpackage::Reader::open(path)?).map(drop)
        }
        "mapped tables.zip" => nnpackage::open::list(&nnpackage::open::map(path)?).map(drop),
        _ => bail!("no such work: {work:?}"),
    }
}

/// Writes one tensor in pieces of 1 MiB, with a digest, on two threads.
fn write(path: &Path, storage: Storage, len: u64) -> Result<()> {
    let piece: Vec<u8> = (0..1_u32 << 20).map(|at| at.wrapping_mul(at) as u8).collect();
    let threads = NonZeroUsize::new(2).context("two is not zero")?;
    let mut writer = WriteOptions::default()
        .storage(storage.digest(Algorithm::Sha256))
        .threads(threads)
        .durability(Durability::Cached)
        .create(path)?;
    let mut object = writer.object("weight")?;
    let mut component = object.component(Role::Data, DType::U8)?;
    for _ in 0..len / piece.len() as u64 {
        component.write_all(&piece)?;
    }
    component.finish()?;
    object.finish(Format::Dense, [len])?;
    writer.finish()?;
    Ok(())
}

/// Returns the peak resident memory of this process in KiB.
fn peak() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("only Linux tells")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()).context("VmHWM")?;
    Ok(number.parse()?)
}
