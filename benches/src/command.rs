//! Whole processes of the command: what starting costs, a folder of many small files, a report of a large
//! one, and a picture of a large graph.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use criterion::Throughput;
use rten_format::{DataType, Dim, GraphBuilder, Model, OperatorType, Value, Writer};
use tempfile::TempDir;
use ztensor::Storage;

use crate::{
    Bound::{SpeedAtLeast, Within},
    Case, Scale, Topic,
    content::read,
    fixture,
};

/// A folder of small files of all formats; `None` where the command is not built.
#[derive(Debug)]
pub struct Processes {
    given: Option<Given>,
}

#[derive(Debug)]
struct Given {
    command: PathBuf,
    small: PathBuf,
    files: TempDir,
    count: usize,
    /// A file of tensors that are not equal, in a folder of its own.
    large: PathBuf,
    len: usize,
    /// A model of [`NODES`] operators.
    graph: PathBuf,
    _folder: TempDir,
}

impl Topic for Processes {
    const NAME: &'static str = "command";

    fn prepare(scale: Scale) -> Result<Self> {
        let Some(command) = command() else { return Ok(Self { given: None }) };
        let valid = valid(&command)?;
        let small = valid.first().context("no file of testdata is valid")?.clone();
        let (files, count) = (fixture::folder()?, scale.tensors / 10);
        for (index, from) in (0..count).zip(valid.iter().cycle()) {
            let folder = files.path().join((index / 100).to_string());
            fs::create_dir_all(&folder)?;
            let name = from.file_name().and_then(|name| name.to_str()).context("name")?;
            fs::copy(from, folder.join(format!("{index}.{name}")))?;
        }
        let folder = fixture::folder()?;
        let (large, data) = (folder.path().join("large.zt"), fixture::elements(scale.large / 2));
        let len = data.len() / TENSORS / 4 * 4;
        let names = fixture::names(TENSORS);
        let writer = fixture::unsynced(Storage::default()).create(&large)?;
        let tensors = names.iter().map(String::as_str).zip(data.chunks_exact(len));
        fixture::write_ztensor(writer, &[(len / 4) as u64], tensors)?;
        fixture::warm(&large)?;
        let len = len * TENSORS;
        let graph = folder.path().join("graph.rten");
        tangled(&graph)?;
        let given = Given { command, small, files, count, large, len, graph, _folder: folder };
        Ok(Self { given: Some(given) })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        Ok(match &self.given {
            None => {
                skipped();
                Vec::new()
            }
            Some(given) => {
                vec![given.start(), given.inspect(), given.folder(), given.report(), given.graph()]
            }
        })
    }
}

impl Given {
    fn start(&self) -> Case<'_> {
        Case::new("start", Throughput::Elements(1))
            .run("ours", || run(Command::new(&self.command).arg("--version")))
            .run("true", || run(&mut Command::new("true")))
            .check("modelcrate --version, the whole process", "ours", "true", Within(3.0))
    }

    fn inspect(&self) -> Case<'_> {
        Case::new("inspect", Throughput::Elements(1))
            .run("ours", || run(Command::new(&self.command).arg("inspect").arg(&self.small)))
            .run("true", || run(&mut Command::new("true")))
            .check(
                "modelcrate inspect of a small file, the whole process",
                "ours",
                "true",
                Within(5.0),
            )
    }

    fn report(&self) -> Case<'_> {
        Case::new("report", Throughput::Bytes(self.len as u64))
            .run("ours", || {
                let mut report = Command::new(&self.command);
                run(report.args(["--threads", "1", "report", "--stats"]).arg(&self.large))
            })
            .run("read and sum", || read(&self.large))
            .check(
                "modelcrate report --stats of 512 MiB of f32, the whole process, 1 thread",
                "ours",
                "read and sum",
                SpeedAtLeast(0.4),
            )
    }

    fn graph(&self) -> Case<'_> {
        let draw = |format| {
            move || {
                run(Command::new(&self.command)
                    .args(["graph", "--format", format])
                    .arg(&self.graph))
            }
        };
        Case::new("graph", Throughput::Elements(NODES as u64))
            .run("svg", draw("svg"))
            .run("json", draw("json"))
            .check(
                "modelcrate graph of 3,000 nodes as SVG, the whole process",
                "svg",
                "json",
                Within(2000.0),
            )
    }

    fn folder(&self) -> Case<'_> {
        let verify = |threads| move || run(verify(&self.command, self.files.path()).args(threads));
        Case::new("folder", Throughput::Elements(self.count as u64))
            .run("2 threads", verify(["--threads", "2"]))
            .run("1 thread", verify(["--threads", "1"]))
            .check(
                "modelcrate verify of 10,000 small files, 2 threads",
                "2 threads",
                "1 thread",
                SpeedAtLeast(1.8),
            )
    }
}

/// Returns the command that was built beside this process, or that `MODELCRATE` names.
fn command() -> Option<PathBuf> {
    let beside = || Some(env::current_exe().ok()?.with_file_name("modelcrate"));
    let path = env::var_os("MODELCRATE").map(PathBuf::from).or_else(beside)?;
    path.is_file().then_some(path)
}

#[expect(clippy::print_stderr, reason = "a bench that measures nothing says so")]
fn skipped() {
    eprintln!("command is skipped: MODELCRATE names no command, and none is beside this one");
}

/// Returns the small files of testdata, one format after another, in which nothing is wrong.
fn valid(command: &Path) -> Result<Vec<PathBuf>> {
    let mut formats = FORMATS
        .iter()
        .map(|(format, extension)| {
            let files = test_support::files(&format!("{format}/golden"), extension);
            let is_small = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() <= SMALL);
            let is_valid = |path: &PathBuf| run(&mut verify(command, path)).is_ok();
            files.into_iter().filter(|path| is_small(path) && is_valid(path)).collect::<Vec<_>>()
        })
        .collect::<Vec<_>>();
    let most = formats.iter().map(Vec::len).max().unwrap_or_default();
    let mut valid = Vec::new();
    for index in 0..most {
        for files in formats.iter_mut().filter(|files| !files.is_empty()) {
            valid.extend(files.get(index % files.len()).cloned());
        }
    }
    Ok(valid)
}

fn verify(command: &Path, path: &Path) -> Command {
    let mut verify = Command::new(command);
    verify.args(["-q", "verify"]).arg(path);
    verify
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

const FORMATS: [(&str, &str); 5] = [
    ("ztensor", "zt"),
    ("rten", "rten"),
    ("carton", "carton"),
    ("ptl", "ptl"),
    ("nnpackage", "zip"),
];

/// Writes a model of operators that read two of the values shortly before each: their lines cross,
/// whatever their order is.
fn tangled(path: &Path) -> Result<()> {
    let value = || Value::new([Dim::Fixed(64)], DataType::Float);
    let (mut graph, mut random) = (GraphBuilder::new(), fixture::Random::new(3));
    let mut values = vec![graph.input("x", value())?];
    for at in 0..NODES {
        let inputs = [0; 2].map(|_| {
            let back = random.next() as usize % values.len().min(30);
            Some(values[values.len() - 1 - back])
        });
        let made = graph.value(format!("v{at}"), value())?;
        graph.operator(format!("op{at}"), OperatorType::Add, None, &inputs, &[Some(made)])?;
        values.push(made);
    }
    graph.output(values[NODES])?;
    let model = Model { graph: graph.finish(), metadata: None };
    fs::write(path, Writer::new(Vec::new(), &model)?.finish()?)?;
    Ok(())
}

/// Operators of the model that is drawn.
const NODES: usize = 3000;

/// Tensors of the large file: so many that what repeats in the data does not start anew with each.
const TENSORS: usize = 60;

/// Bytes of a file that is small.
const SMALL: u64 = 64 << 10;
