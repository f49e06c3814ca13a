//! The configuration that onert reads, and what it does not do.

use circle_format::Diagnoses;
use tensor_core::text::short;

use crate::{
    Config, ConfigKey, Diagnosis, Error, FileFault, Reaction, Reader,
    config::{ConfigEffect, ConfigEntry, ConfigType, ValueFault, fault, is_true},
    nearest::nearest,
};

use super::models::at_manifest;

pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    if reader.manifest().configs.first().is_some_and(String::is_empty) {
        let message =
            "configs[0] is an empty text, as the packaging tool writes it for no configuration";
        let diagnosis = Diagnosis::note("nnp/config-empty", message);
        findings.push(positioned(reader, diagnosis).ignored());
    }
    let Some(path) = reader.config_path() else { return };
    let config = match reader.config() {
        Ok(Some(config)) => config,
        Ok(None) => return,
        Err(error) => {
            let diagnosis = Diagnosis::error(error.rule(), tensor_core::Chain(&error).to_string());
            let diagnosis = positioned(reader, diagnosis);
            findings.push(match &error {
                Error::File { fault: FileFault::Path(_) | FileFault::Outside, .. } => {
                    diagnosis.onert(Reaction::Follows)
                }
                _ => diagnosis.ignored(),
            });
            return;
        }
    };
    findings.enter(Some(path));
    whole(&config, findings);
    for entry in config.entries() {
        check_entry(reader, entry, findings);
    }
    findings.enter(None);
}

fn positioned(reader: &Reader, diagnosis: Diagnosis) -> Diagnosis {
    let diagnosis = at_manifest(diagnosis, "/configs/0");
    match reader.parsed().config_places.first() {
        Some(position) => diagnosis.position(*position),
        None => diagnosis,
    }
}

/// What is about the file and not about one key.
fn whole(config: &Config, findings: &mut Diagnoses) {
    if config.has_bom() {
        let message = "starts with a byte order mark, which becomes part of its first key";
        findings.push(Diagnosis::warning("nnp/config-bom", message).ignored());
    }
    for &line in config.skipped_lines() {
        let message = "sets nothing: it has no \"=\" with something behind it";
        let diagnosis = Diagnosis::warning("nnp/config-line", message).ignored();
        findings.push(diagnosis.at(|at| at.line(line)));
    }
    let mut seen = std::collections::BTreeMap::new();
    for entry in config.entries() {
        if let Some(before) = seen.insert(entry.key.as_str(), entry.line) {
            let message = format!(
                "sets {:?} again, which line {before} has set; the last one counts",
                short(&entry.key)
            );
            findings.push(at(entry, Diagnosis::warning("nnp/config-repeated-key", message)));
        }
    }
}

fn check_entry(reader: &Reader, entry: &ConfigEntry, findings: &mut Diagnoses) {
    let (key, value) = (short(&entry.key), short(&entry.value));
    if entry.value.is_empty() {
        let message = format!("sets {key:?} to nothing, which counts as not set");
        findings.push(at(entry, Diagnosis::note("nnp/config-unset", message)).ignored());
        return;
    }
    let Some(known) = ConfigKey::find(&entry.key) else {
        let message = format!("key {key:?} is not one that onert knows");
        let diagnosis = at(entry, Diagnosis::warning("nnp/config-key", message)).ignored();
        // What is not listed needs no hint, and there may be very many.
        let is_full = findings.is_full("nnp/config-key");
        let like = (!is_full).then(|| nearest(&entry.key, ConfigKey::names())).flatten();
        findings.push(match like {
            Some(like) => diagnosis.hint(format!("{like:?} may have been meant")),
            None => diagnosis,
        });
        return;
    };
    if entry.value.ends_with('\r') {
        let message = format!(
            "value of {key} ends in a carriage return, which belongs to it: lines end at line feeds"
        );
        let diagnosis = at(entry, Diagnosis::error("nnp/config-cr", message));
        findings.push(consequence(entry, known, diagnosis));
    } else if entry.value.starts_with(['"', '\'']) {
        let message = format!("value of {key} is {value}, whose quotes belong to it");
        findings.push(at(entry, Diagnosis::warning("nnp/config-quotes", message)));
    }
    if let Some(fault) = fault(known.value_type, entry.value.trim_end_matches('\r')) {
        let message = format!("value {value:?} of {key} {fault}");
        let harmless = matches!(fault, ValueFault::ReadAs(_));
        let diagnosis = if harmless {
            Diagnosis::warning("nnp/config-value", message)
        } else {
            Diagnosis::error("nnp/config-value", message)
        };
        findings.push(consequence(entry, known, at(entry, diagnosis)));
    }
    let more = [effect(entry, known), writes(entry), loads(entry, known)];
    for diagnosis in more.into_iter().flatten() {
        findings.push(at(entry, diagnosis));
    }
    if entry.key == "OP_BACKEND_MAP" && reader.models().len() > 1 {
        let message = "OP_BACKEND_MAP is refused for packages of several models";
        findings.push(at(entry, Diagnosis::error("nnp/config-multi-model", message)));
    }
}

/// Says when the key takes effect.
fn effect(entry: &ConfigEntry, known: ConfigKey) -> Option<Diagnosis> {
    let key = &entry.key;
    Some(match known.effect {
        ConfigEffect::LaterSessions => {
            let message = format!(
                "{key} has no effect on this package: it applies to sessions that are created \
                 later in the process, whatever they load"
            );
            let diagnosis = Diagnosis::warning("nnp/config-no-effect", message);
            diagnosis.onert(Reaction::LaterSessions)
        }
        ConfigEffect::Half if is_true(&entry.value) => {
            let message =
                format!("{key} takes half effect on this package, which then does not run");
            Diagnosis::error("nnp/config-half-effect", message).run_fails("")
        }
        ConfigEffect::Never => {
            let message = format!("{key} has no effect in a package");
            Diagnosis::warning("nnp/config-no-effect", message).ignored()
        }
        ConfigEffect::ThisSession | ConfigEffect::Half => return None,
    })
}

/// Says what a key makes the runtime write.
fn writes(entry: &ConfigEntry) -> Option<Diagnosis> {
    let what = match entry.key.as_str() {
        "MINMAX_DUMP" if is_true(&entry.value) => "minmax.bin",
        "TRACING_MODE" if is_true(&entry.value) => "traces",
        "WORKSPACE_DIR" => "whatever is dumped",
        _ => return None,
    };
    let key = &entry.key;
    let message = format!("{key} makes the runtime write {what} into a folder of the system");
    let diagnosis = Diagnosis::warning("nnp/config-writes-files", message);
    Some(diagnosis.onert(Reaction::LaterSessions))
}

/// Says which libraries a key makes the runtime load that no release brings.
fn loads(entry: &ConfigEntry, known: ConfigKey) -> Option<Diagnosis> {
    if known.value_type != ConfigType::Backends {
        return None;
    }
    let strange = |name: &&str| !name.is_empty() && !BACKENDS.contains(name);
    let strange: Vec<&str> = entry.value.split(';').filter(strange).collect();
    if strange.is_empty() {
        return None;
    }
    let message = format!(
        "{} names backends that no release has, and for which a library libbackend_NAME.so is \
         loaded: {:?}",
        entry.key,
        short(&strange.join(", "))
    );
    let diagnosis = Diagnosis::warning("nnp/config-loads-library", message);
    Some(diagnosis.onert(Reaction::LaterSessions))
}

/// Says what a value that is none does.
fn consequence(entry: &ConfigEntry, known: ConfigKey, diagnosis: Diagnosis) -> Diagnosis {
    match (known.effect, known.value_type) {
        (ConfigEffect::ThisSession, ConfigType::Int)
            if crate::manifest::io_ref::stoi(&entry.value).is_none() =>
        {
            diagnosis.prepare_fails("stoi")
        }
        (ConfigEffect::ThisSession, _) => diagnosis.ignored(),
        _ => diagnosis.onert(Reaction::LaterSessions),
    }
}

fn at(entry: &ConfigEntry, diagnosis: Diagnosis) -> Diagnosis {
    diagnosis.at(|at| at.line(entry.line).path(short(&entry.key)))
}

/// Backends that a release has.
const BACKENDS: [&str; 9] =
    ["cpu", "acl_cl", "acl_neon", "ruy", "xnnpack", "gpu_cl", "trix", "bcq", "ggml"];
