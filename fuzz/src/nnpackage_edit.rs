//! What the fuzz target `nnpackage_edit` does with its input; a test of the crate replays the corpus.

use nnpackage::{Config, ConfigChange, IoRef, Manifest, PackageVersion, Sums, tensor_core::Limits};

/// Changes any bytes as each of the texts of a package: what can be changed reads as it was asked
/// for, and a second change of the same kind changes nothing.
pub(crate) fn run(bytes: &[u8]) {
    manifest(bytes);
    config(bytes);
    if let Ok(sums) = Sums::parse(bytes) {
        let again = Sums::parse(&sums.to_bytes()).expect("what was written is read");
        assert_eq!(again, sums);
    }
}

fn manifest(bytes: &[u8]) {
    let limits = Limits::default().with_document_bytes(1 << 16);
    let Ok(old) = Manifest::parse(bytes, &limits) else { return };
    assert_eq!(old.edit(bytes, &limits).ok().as_deref(), Some(bytes));
    let changes: [fn(&mut Manifest); 6] = [
        |manifest| manifest.version = PackageVersion::new(1, 3, 0),
        |manifest| {
            manifest.models.push("new".to_owned());
            manifest.is_main_model = false;
        },
        |manifest| drop(manifest.models.pop()),
        |manifest| manifest.model_types = None,
        |manifest| {
            manifest.pkg_inputs = vec![IoRef::new(1, 0, 0)];
            manifest.pkg_outputs.clear();
            manifest.connections.truncate(1);
        },
        |manifest| {
            manifest.configs = vec!["a\"b".to_owned()];
            manifest.model_infos.insert(0, String::new());
        },
    ];
    for change in changes {
        let mut new = old.clone();
        change(&mut new);
        if let Ok(edited) = new.edit(bytes, &limits) {
            assert_eq!(Manifest::parse(&edited, &limits).ok(), Some(new.clone()));
            assert_eq!(new.edit(&edited, &limits).ok(), Some(edited));
        }
    }
}

fn config(bytes: &[u8]) {
    let old = Config::parse(bytes);
    let set = [ConfigChange::set("KEY", "value")];
    let edited = Config::edit(bytes, &set).expect("a key can be set in anything");
    let new = Config::parse(&edited);
    assert_eq!(new.get("KEY").map(|entry| entry.value.as_str()), Some("value"));
    assert_eq!(Config::edit(&edited, &set).ok(), Some(edited));
    for entry in old.entries() {
        if let Ok(edited) = Config::edit(bytes, &[ConfigChange::unset(&entry.key)]) {
            assert!(Config::parse(&edited).get(&entry.key).is_none());
        }
    }
}
