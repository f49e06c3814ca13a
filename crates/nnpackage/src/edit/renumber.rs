//! Models that come and go in a manifest, with what refers to them by number or position.

use crate::{Connection, IoRef, Manifest};

impl Manifest {
    /// Returns the first attribute that refers to a model.
    pub(crate) fn reference_to(&self, model: usize) -> Option<String> {
        let is_it = |reference: &IoRef| usize::from(reference.model) == model;
        if let Some(index) = self.pkg_inputs.iter().position(is_it) {
            return Some(format!("pkg-inputs[{index}]"));
        }
        if let Some(index) = self.pkg_outputs.iter().position(is_it) {
            return Some(format!("pkg-outputs[{index}]"));
        }
        let uses =
            |connection: &Connection| is_it(&connection.from) || connection.to.iter().any(is_it);
        let index = self.connections.iter().position(uses)?;
        Some(format!("model-connect[{index}]"))
    }

    /// Takes away a model and everything that refers to it; those behind it move up.
    pub(crate) fn without_model(&mut self, model: usize) {
        fn remove<T>(list: &mut Vec<T>, index: usize) {
            if index < list.len() {
                list.remove(index);
            }
        }
        remove(&mut self.models, model);
        self.model_types.iter_mut().for_each(|types| remove(types, model));
        remove(&mut self.model_infos, model);
        if self.model_infos.iter().all(String::is_empty) {
            self.model_infos.clear();
        }
        let moved = |reference: &IoRef| {
            let found = usize::from(reference.model);
            let up = u16::from(found > model);
            let moved = IoRef { model: reference.model.saturating_sub(up), ..*reference };
            (found != model).then_some(moved)
        };
        let all = |list: &[IoRef]| list.iter().filter_map(moved).collect::<Vec<_>>();
        self.pkg_inputs = all(&self.pkg_inputs);
        self.pkg_outputs = all(&self.pkg_outputs);
        let connections = self.connections.iter().filter_map(|connection| {
            Some(Connection { from: moved(&connection.from)?, to: all(&connection.to) })
        });
        self.connections = connections.filter(|connection| !connection.to.is_empty()).collect();
    }

    /// Adds the type of a model that comes behind the others.
    pub(crate) fn add_type(&mut self, path: &str, kind: &str) {
        if self.model_types.is_some() || extension(path) != Some(kind) {
            self.fill_types().push(kind.to_owned());
        }
    }

    pub(crate) fn set_type(&mut self, model: usize, kind: &str) {
        let path = self.models.get(model).map(String::as_str).unwrap_or_default();
        if self.model_types.is_none() && extension(path) == Some(kind) {
            return;
        }
        if let Some(old) = self.fill_types().get_mut(model) {
            kind.clone_into(old);
        }
    }

    /// Makes there be as many types as models; extensions tell those that are missing.
    fn fill_types(&mut self) -> &mut Vec<String> {
        let types = self.model_types.get_or_insert_default();
        let missing = self.models.iter().skip(types.len());
        let missing = missing.map(|path| extension(path).unwrap_or_default().to_owned());
        types.extend(missing.collect::<Vec<_>>());
        types.truncate(self.models.len());
        types
    }

    /// Adds a connection that there is not, to that of the same output where there is one.
    pub(crate) fn connect(&mut self, from: IoRef, to: IoRef) {
        if self.edges().any(|edge| edge == (from, to)) {
            return;
        }
        let known = self.connections.iter_mut().find(|connection| connection.from == from);
        match known {
            Some(connection) => connection.to.push(to),
            None => self.connections.push(Connection { from, to: vec![to] }),
        }
    }

    /// Names a file of information about a model.
    pub(crate) fn name_info(&mut self, model: usize, name: &str) {
        let infos = &mut self.model_infos;
        if infos.len() <= model {
            infos.resize(model.saturating_add(1), String::new());
        }
        if let Some(info) = infos.get_mut(model) {
            name.clone_into(info);
        }
    }
}

fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map(|(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(text: &str) -> IoRef {
        text.parse().unwrap()
    }

    fn manifest() -> Manifest {
        Manifest {
            models: ["a.circle", "b", "c.tflite"].map(str::to_owned).to_vec(),
            model_infos: ["", "b.json"].map(str::to_owned).to_vec(),
            pkg_inputs: vec![io("0:0:0"), io("1:0:1")],
            pkg_outputs: vec![io("2:0:0")],
            connections: vec![
                Connection { from: io("0:0:0"), to: vec![io("1:0:0"), io("2:0:1")] },
                Connection { from: io("1:0:0"), to: vec![io("2:0:0")] },
            ],
            ..Manifest::default()
        }
    }

    #[test]
    fn what_refers_to_a_model() {
        let by = |model| manifest().reference_to(model);
        assert_eq!(by(1).as_deref(), Some("pkg-inputs[1]"));
        assert_eq!(by(2).as_deref(), Some("pkg-outputs[0]"));
        assert_eq!(by(3), None);
        let wired = Manifest { pkg_outputs: Vec::new(), ..manifest() };
        assert_eq!(wired.reference_to(2).as_deref(), Some("model-connect[0]"));
    }

    #[test]
    fn models_behind_one_that_goes_move_up() {
        let mut found = manifest();
        found.without_model(1);
        let expected = Manifest {
            models: ["a.circle", "c.tflite"].map(str::to_owned).to_vec(),
            pkg_inputs: vec![io("0:0:0")],
            pkg_outputs: vec![io("1:0:0")],
            connections: vec![Connection { from: io("0:0:0"), to: vec![io("1:0:1")] }],
            ..Manifest::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn types_that_extensions_tell_are_left_out() {
        let mut found = manifest();
        found.add_type("d.circle", "circle");
        assert_eq!(found.model_types, None);
        found.set_type(0, "circle");
        assert_eq!(found.model_types, None);
        found.set_type(1, "bin");
        assert_eq!(found.model_types.as_ref().unwrap(), &["circle", "bin", "tflite"]);
        found.add_type("e", "tvn");
        assert_eq!(found.model_types.unwrap(), ["circle", "bin", "tflite", "tvn"]);
    }
}
