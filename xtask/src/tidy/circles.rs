//! Circles of modules inside a crate: files that import each other, re-exports resolved.
//!
//! Read as text, in the simplest way that works: what a file imports are its `use` declarations and
//! the paths in its code that start with `crate`, `self` or `super`. A name that `lib.rs` or the
//! parent of a folder only re-exports leads to the file that declares it. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::{Files, Violation};
use crate::workspace::Member;

/// Files of a crate that may import each other in a circle.
const MOST: usize = 3;

/// The names of a path, from the root of its crate.
type Path = Vec<String>;

pub(super) fn check(members: &[Member], files: &Files, violations: &mut Vec<Violation>) {
    for member in members.iter().filter(|member| member.folder.starts_with("crates/")) {
        let folder = format!("{}/src", member.folder);
        for circle in Modules::read(&folder, files).circles() {
            if circle.len() > MOST {
                let (count, names) = (circle.len(), circle.join(", "));
                let message =
                    format!("{count} modules import each other, expected at most {MOST}: {names}");
                violations.push(Violation::new(&folder, message));
            }
        }
    }
}

/// The modules of a crate, by path.
struct Modules {
    imports: BTreeMap<Path, Vec<Path>>,
    /// What the module brings into its own scope, by name.
    scope: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl Modules {
    fn read(folder: &str, files: &Files) -> Self {
        let sources: BTreeMap<Path, String> = files
            .below(folder)
            .filter(|(path, _)| path.ends_with(".rs") && !is_left_out(path))
            .map(|(path, bytes)| (module(path), code(str::from_utf8(bytes).unwrap_or_default())))
            .collect();
        let mut modules = Self { imports: BTreeMap::new(), scope: BTreeMap::new() };
        for (module, code) in &sources {
            let (declared, rest) = uses(code);
            let declared = declared.into_iter();
            let declared: Vec<Path> =
                declared.filter_map(|path| absolute(module, path, &sources)).collect();
            let named = named(&rest).into_iter();
            let named = named.filter_map(|path| absolute(module, path, &sources));
            modules.imports.insert(module.clone(), declared.iter().cloned().chain(named).collect());
            let names = declared.into_iter().filter_map(|path| Some((path.last()?.clone(), path)));
            modules.scope.insert(module.clone(), names.collect());
        }
        modules
    }

    /// Returns the module that declares what a path leads to.
    fn declaring(&self, path: &[String], depth: usize) -> Option<Path> {
        let module = (0..=path.len()).rev().find_map(|len| {
            let module = path.get(..len)?;
            self.imports.contains_key(module).then_some(module)
        })?;
        let rest = path.get(module.len()..).unwrap_or_default();
        let imported = rest.first().and_then(|name| self.scope.get(module)?.get(name));
        match imported {
            Some(target) if depth > 0 && !path.starts_with(target) => {
                let after = rest.iter().skip(1);
                self.declaring(&target.iter().chain(after).cloned().collect::<Path>(), depth - 1)
            }
            _ => Some(module.to_vec()),
        }
    }

    /// Returns which modules each imports.
    fn graph(&self) -> BTreeMap<&Path, BTreeSet<Path>> {
        let mut graph = BTreeMap::new();
        for (module, paths) in self.imports.iter().filter(|(module, _)| !module.is_empty()) {
            let targets = paths.iter().filter_map(|path| self.declaring(path, 8));
            let targets = targets.filter(|target| !target.is_empty() && target != module);
            graph.insert(module, targets.collect());
        }
        graph
    }

    /// Returns the sets of modules that reach each other, the names of each sorted.
    fn circles(&self) -> Vec<Vec<String>> {
        let graph = self.graph();
        let reached: BTreeMap<&Path, BTreeSet<&Path>> =
            graph.keys().map(|&module| (module, reach(&graph, module))).collect();
        let mut circles = BTreeSet::new();
        for (&module, targets) in &reached {
            let back = targets.iter().filter(|target| reached[*target].contains(module));
            let circle: BTreeSet<String> = back.map(|module| module.join("::")).collect();
            if circle.len() > 1 {
                circles.insert(circle.into_iter().collect());
            }
        }
        circles.into_iter().collect()
    }
}

/// Returns everything that a module imports, and what that imports.
fn reach<'a>(graph: &'a BTreeMap<&Path, BTreeSet<Path>>, from: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Path> = graph[from].iter().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(graph.get(module).into_iter().flatten());
        }
    }
    reached
}

fn is_left_out(path: &str) -> bool {
    let mut names = path.split(['/', '.']);
    names.any(|name| matches!(name, "generated" | "tests"))
}

/// Returns the path of the module that a file is.
fn module(file: &str) -> Path {
    let names = file.trim_end_matches(".rs").split('/');
    let mut names: Path = names.map(str::to_owned).collect();
    if names.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

/// Returns a source without comments, texts and tests.
fn code(source: &str) -> String {
    let end = source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    let lines = source.get(..end).unwrap_or_default().lines();
    let lines = lines.map(|line| {
        // Every second part stands between quotes.
        let parts = line.split('"').step_by(2);
        let line = parts.collect::<Vec<_>>().join("\"\"");
        line.split("//").next().unwrap_or_default().to_owned() + "\n"
    });
    let mut code: String = lines.collect();
    while let Some(at) = code.find("#[cfg(test)]\n") {
        let rest = code.split_off(at);
        code.push_str(rest.split_once(';').map_or("", |(_, rest)| rest));
    }
    code
}

/// Returns the paths of all `use` declarations, taken apart, and the code between them.
fn uses(code: &str) -> (Vec<Path>, String) {
    let (mut paths, mut rest, mut left) = (Vec::new(), String::new(), code);
    while let Some((before, after)) = left.split_once("use ") {
        rest.push_str(before);
        left = after;
        let is_declaration = before.chars().next_back().is_none_or(char::is_whitespace);
        if let Some((tree, behind)) = after.split_once(';').filter(|_| is_declaration) {
            take_apart(tree, &[], &mut paths);
            left = behind;
        }
    }
    (paths, rest + left)
}

/// Adds the paths of one tree of a `use` declaration.
fn take_apart(tree: &str, prefix: &[String], paths: &mut Vec<Path>) {
    let (head, branches) = tree.split_once('{').unwrap_or((tree, ""));
    let names = head.split("::").map(|name| name.split_whitespace().next().unwrap_or_default());
    let names = names.filter(|name| !name.is_empty() && *name != "*").map(str::to_owned);
    let path: Path = prefix.iter().cloned().chain(names).collect();
    let Some(branches) = branches.trim_end().strip_suffix('}') else {
        paths.push(path);
        return;
    };
    let (mut depth, mut start) = (0_usize, 0);
    for (at, c) in branches.char_indices().chain([(branches.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let branch = branches.get(start..at).unwrap_or_default();
                if !branch.trim().is_empty() {
                    take_apart(branch, &path, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the paths in code that start with `crate`, `self` or `super`.
fn named(code: &str) -> Vec<Path> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = code.split(|c: char| !is_word(c) && c != ':');
    let paths = words.map(|word| word.split("::").map(str::to_owned).collect::<Path>());
    let roots = ["crate", "self", "super"];
    paths.filter(|path| path.len() > 1 && roots.contains(&path[0].as_str())).collect()
}

/// Returns a path from the root of the crate; `None` where it leads to another crate.
fn absolute(module: &[String], path: Path, modules: &BTreeMap<Path, String>) -> Option<Path> {
    let mut base = module.to_vec();
    let mut names = path.into_iter().peekable();
    match names.peek()?.as_str() {
        "crate" => base.clear(),
        "self" | "super" => {}
        first => {
            // A child of this module, as a declaration may name it.
            base.push(first.to_owned());
            let is_child = modules.contains_key(&base);
            base.pop();
            return is_child.then(|| base.into_iter().chain(names).collect());
        }
    }
    while let Some(root) = names.next_if(|name| matches!(name.as_str(), "crate" | "self" | "super"))
    {
        if root == "super" {
            base.pop();
        }
    }
    Some(base.into_iter().chain(names.filter(|name| !name.is_empty())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        let circles = Modules::read("src", &Files::of(files)).circles();
        circles.iter().map(|circle| circle.join(" ")).collect()
    }

    #[test]
    fn one_way_is_no_circle() {
        let files = [
            ("src/lib.rs", "mod a; mod b; pub use a::A;"),
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "// use crate::a::A;\nconst S: &str = \"crate::a::A\";"),
        ];
        assert_eq!(circles(files), [""; 0]);
    }

    #[test]
    fn names_of_the_root_lead_to_their_files() {
        let files = [
            ("src/lib.rs", "mod a; mod b; mod c; pub use a::{A, other::{B as C}}; pub use b::B;"),
            ("src/a.rs", "use crate::{B, Unknown};"),
            ("src/b.rs", "fn f(_: crate::c::D) {}"),
            ("src/c.rs", "use super::A;"),
        ];
        assert_eq!(circles(files), ["a b c"]);
    }

    #[test]
    fn folders_re_export_their_files() {
        let files = [
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a/mod.rs", "mod inner; pub(crate) use inner::I;"),
            ("src/a/inner.rs", "use super::{super::b};"),
            ("src/b.rs", "use crate::a::I;"),
        ];
        assert_eq!(circles(files), ["a::inner b"]);
    }

    #[test]
    fn tests_do_not_count() {
        let files = [
            (
                "src/a.rs",
                "#[cfg(test)]\nuse crate::b::B;\n#[cfg(test)]\nmod tests {\nuse crate::b;",
            ),
            ("src/b.rs", "use crate::a::A;"),
            ("src/tests/wire.rs", "use crate::{a, b};"),
        ];
        assert_eq!(circles(files), [""; 0]);
    }

    #[test]
    fn more_than_three_are_found() {
        let files = Files::of([
            ("crates/x/src/a.rs", "use crate::b;"),
            ("crates/x/src/b.rs", "use crate::c;"),
            ("crates/x/src/c.rs", "use crate::d;"),
            ("crates/x/src/d.rs", "use crate::a;"),
        ]);
        let found = crate::tidy::messages(|violations| {
            check(&[Member::library("crates/x")], &files, violations);
        });
        assert_eq!(
            found,
            ["crates/x/src: 4 modules import each other, expected at most 3: a, b, c, d"]
        );
    }
}
