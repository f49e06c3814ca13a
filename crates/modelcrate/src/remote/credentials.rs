//! Credentials in files of the user. Those of the environment and of machines in a cloud are found by
//! `object_store`.

use std::{
    collections::HashMap,
    env, fs, io,
    path::{Path, PathBuf},
};

/// The settings of a profile of AWS, by their names in lower case: of `AWS_PROFILE`, or else of the
/// profile `default`. Those of the file of credentials count before those of the file of settings.
pub(super) fn aws_profile() -> HashMap<String, String> {
    let name = env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
    let file = |variable: &str, usual: &str| {
        let path = env::var_os(variable).map(PathBuf::from);
        path.or_else(|| Some(env::home_dir()?.join(".aws").join(usual)))
    };
    let mut settings = HashMap::new();
    let config = if name == "default" { name.clone() } else { format!("profile {name}") };
    for (path, section) in [
        (file("AWS_CONFIG_FILE", "config"), &config),
        (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &name),
    ] {
        let text = path.and_then(|path| read(&path).ok()).unwrap_or_default();
        settings.extend(section_of(&text, section));
    }
    settings
}

/// Returns the keys and values of a section of a file of settings. Indented lines belong to a setting
/// that has parts, none of which is asked for.
fn section_of<'t>(
    text: &'t str,
    wanted: &'t str,
) -> impl Iterator<Item = (String, String)> + use<'t> {
    let mut is_wanted = false;
    let lines = text.lines().filter(move |line| {
        if let Some(rest) = line.trim_end().strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default();
            is_wanted = name.split_whitespace().eq(wanted.split_whitespace());
            return false;
        }
        is_wanted && !line.starts_with([' ', '\t', '#', ';'])
    });
    lines.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        Some((key.trim().to_ascii_lowercase(), value.trim().to_owned()))
    })
}

/// Returns the token of a model hub: of `HF_TOKEN`, or the file that its own tools keep.
pub(super) fn hub_token() -> Option<String> {
    let variable = |name| env::var(name).ok();
    let folder = || {
        let cache = || Some(env::home_dir()?.join(".cache"));
        let home = env::var_os("HF_HOME").map(PathBuf::from);
        let cache = || env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(cache);
        home.or_else(|| Some(cache()?.join("huggingface")))
    };
    let path = || env::var_os("HF_TOKEN_PATH").map(PathBuf::from).or(Some(folder()?.join("token")));
    let file = || read(&path()?).ok();
    let token = variable("HF_TOKEN").or_else(file)?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_settings() {
        let text = "[default]\nregion = eu-west-1\naws_access_key_id=a=b\n# note = 1\n\
                    s3 =\n  endpoint_url = nested\n[profile  other]\nRegion = us-east-2\n";
        let found = |name| {
            let mut found: Vec<_> = section_of(text, name).collect();
            found.sort();
            found
        };
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>()
        };
        let expected = [("aws_access_key_id", "a=b"), ("region", "eu-west-1"), ("s3", "")];
        assert_eq!(found("default"), pairs(&expected));
        assert_eq!(found("profile other"), pairs(&[("region", "us-east-2")]));
        assert_eq!(found("none"), []);
    }
}
