//! Reports in a browser: what `xtask/pages/check.mjs` asks of them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use rten_format::{DataType, Dim, GraphBuilder, Model, OperatorType, Value, Writer};

use crate::{cargo, command, npm, output, root, succeed};

/// Makes reports, and runs the checks; prints a line where there is no browser. One that the variable
/// `CHROMIUM` names has to be there.
pub(crate) fn check() -> Result<()> {
    run(&[])
}

/// The same, but pictures that are not as they were replace those that are kept.
pub(crate) fn keep() -> Result<()> {
    run(&["--keep"])
}

fn run(options: &[&str]) -> Result<()> {
    let Some(browser) = browser()? else {
        println!("skipped: no browser (Debian: package chromium; CHROMIUM names another)");
        return Ok(());
    };
    npm::install()?;
    let [playwright, axe] = ["playwright-core", "axe-core"].map(npm::package);
    let packages = playwright.zip(axe).filter(|_| output(command("node").arg("--version")).is_ok());
    let Some((playwright, axe)) = packages else {
        ensure!(env::var_os("CHROMIUM").is_none(), "there is no node or npm to drive {browser}");
        println!("skipped: there is no node or npm to drive {browser} (Debian: package npm)");
        return Ok(());
    };
    let folder = made()?;
    let mut node = command("node");
    node.arg("xtask/pages/check.mjs").arg(browser).arg(playwright).arg(axe);
    succeed(node.arg(folder).arg("docs/gallery").args(options))
}

/// Returns the browser that `CHROMIUM` names, or else one that is found.
fn browser() -> Result<Option<String>> {
    let is_there = |name: &str| output(Command::new(name).arg("--version")).is_ok();
    if let Some(named) = env::var_os("CHROMIUM") {
        let named = named.into_string().ok().filter(|name| is_there(name));
        return Ok(Some(named.context("CHROMIUM names no browser that runs")?));
    }
    let names = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    Ok(names.into_iter().find(|name| is_there(name)).map(str::to_owned))
}

/// Makes the reports that are not in the gallery, and returns where they are.
fn made() -> Result<PathBuf> {
    succeed(cargo().args(["build", "--quiet", "-p", "modelcrate-cli"]))?;
    let folder = root().join("target/pages");
    fs::create_dir_all(&folder).with_context(|| format!("{folder:?}"))?;
    large(&folder.join("large.rten"))?;
    for (name, args) in [
        ("large", &["target/pages/large.rten", "--stats"][..]),
        ("invalid", &["testdata/ztensor/invalid/digest_crc_wrong.zt"]),
        ("changes", &["testdata/rten/valid/mlp.v1.rten", "testdata/rten/valid/convnet.v1.rten"]),
    ] {
        let mut report = report()?;
        report.args(args).args(["--overwrite", "-o"]).arg(folder.join(format!("{name}.html")));
        output(&mut report)?;
    }
    Ok(folder)
}

/// Returns the command that was built beside this one, to be told what to report.
pub(crate) fn report() -> Result<Command> {
    let mut report = command(env::current_exe()?.with_file_name("modelcrate"));
    report.arg("report");
    Ok(report)
}

/// Writes a model of 3,000 operators in groups.
fn large(path: &Path) -> Result<()> {
    let mut graph = GraphBuilder::new();
    let value = || Value::new([Dim::from("batch"), Dim::Fixed(64)], DataType::Float);
    let mut last = graph.input("x", value())?;
    for at in 0..NODES {
        let name = format!("stage{}/block{}/op{at}", at / 300, at / 15);
        let made = graph.value(format!("{name}:out"), value())?;
        let (operator, inputs) = match at % 3 {
            0 => (OperatorType::Relu, vec![Some(last)]),
            1 => (OperatorType::Add, vec![Some(last), Some(last)]),
            _ => (OperatorType::Sigmoid, vec![Some(last)]),
        };
        graph.operator(&name, operator, None, &inputs, &[Some(made)])?;
        last = made;
    }
    graph.output(last)?;
    let model = Model { graph: graph.finish(), metadata: None };
    let bytes = Writer::new(Vec::new(), &model)?.finish()?;
    fs::write(path, bytes).with_context(|| format!("{path:?}"))
}

const NODES: usize = 3000;
