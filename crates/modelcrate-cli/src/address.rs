//! Files at addresses: where a path of the command line is one, and what opens it.

use std::{ffi::OsString, path::Path, sync::OnceLock};

use modelcrate::is_address;

#[cfg(feature = "remote")]
pub(crate) use self::with_remote::*;
#[cfg(not(feature = "remote"))]
pub(crate) use self::without_remote::*;

/// Addresses whose queries may be secrets, each with what is shown of it and stands for it.
static HIDDEN: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Takes users, passwords and queries off addresses among arguments, or behind the `=` of one: from here on, nothing
/// can print them.
pub(crate) fn hide(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut hidden: Vec<(String, String)> = Vec::new();
    let arguments = arguments.map(|argument| {
        let Some(text) = argument.to_str() else { return argument };
        let whole = is_address(text).then_some(("", text));
        let parts = || text.split_once('=').filter(|(_, address)| is_address(address));
        let Some((before, address)) = whole.or_else(parts) else { return argument };
        let bare = without_secrets(address);
        if bare == address {
            return argument;
        }
        // Several of one name are told apart by what is no part of an address.
        let count = hidden.iter().filter(|(shown, _)| shown.starts_with(&bare)).count();
        let shown = if count == 0 { bare } else { format!("{bare}#{count}") };
        hidden.push((shown.clone(), address.to_owned()));
        let joint = if before.is_empty() { "" } else { "=" };
        format!("{before}{joint}{shown}").into()
    });
    let arguments = arguments.collect();
    // Nothing hides twice.
    let _ = HIDDEN.set(hidden);
    arguments
}

/// Returns an address without user and password, and that of a web server without its query.
fn without_secrets(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let is_web = scheme.to_ascii_lowercase().starts_with("http");
    let rest = rest.split(['?', '#']).next().filter(|_| is_web).unwrap_or(rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Returns the address that a path is, with its query.
fn address(path: &Path) -> Option<&str> {
    let text = path.to_str().filter(|text| is_address(text))?;
    let mut hidden = HIDDEN.get().into_iter().flatten();
    Some(hidden.find(|(shown, _)| shown == text).map_or(text, |(_, address)| address))
}

#[cfg(feature = "remote")]
mod with_remote {
    use std::{
        path::{Path, PathBuf},
        sync::OnceLock,
    };

    use anyhow::{bail, ensure};
    use modelcrate::{
        AnyReader, Format, ReadOptions,
        catalog::Entry,
        remote::{Error, Listed, Location, Opened, Remote, RemoteOptions},
        tensor_core::{ErrorKind, Source, output::Existing},
    };

    use crate::output;

    /// Returns what asks servers.
    pub(crate) fn remote() -> &'static Remote {
        static REMOTE: OnceLock<Remote> = OnceLock::new();
        REMOTE.get_or_init(|| Remote::new(RemoteOptions::default()))
    }

    /// Returns where a path is, if that is an address.
    pub(crate) fn location(path: &Path) -> anyhow::Result<Option<Location>> {
        Ok(super::address(path).map(Location::parse).transpose()?)
    }

    /// Opens the file that a path is the address of.
    pub(crate) fn source(path: &Path) -> anyhow::Result<Option<Source>> {
        let Some(location) = location(path)? else { return Ok(None) };
        Ok(Some(remote().open(&location)?.source().clone()))
    }

    /// Opens the model that a path is the address of.
    pub(crate) fn reader(path: &Path, options: ReadOptions) -> anyhow::Result<Option<AnyReader>> {
        let Some(location) = location(path)? else { return Ok(None) };
        Ok(Some(remote().reader(&location, options)?))
    }

    /// Refuses an address where only a path will do.
    pub(crate) fn refuse(path: &Path, what: &str) -> anyhow::Result<()> {
        ensure!(super::address(path).is_none(), "is an address, {what}");
        Ok(())
    }

    /// Refuses an address that nothing can be written to, or where something is.
    pub(crate) fn check_output(path: &Path, existing: Existing) -> anyhow::Result<bool> {
        let Some(location) = location(path)? else { return Ok(false) };
        let is_bucket =
            ["s3://", "gs://", "az://"].iter().any(|s| location.to_string().starts_with(s));
        ensure!(is_bucket, "is an address that cannot be written, expected one of a bucket");
        ensure!(!location.is_many(), "is a folder or a pattern, expected the address of a file");
        if existing == Existing::Keep {
            match remote().open(&location) {
                Ok(_) => bail!("is there already (--overwrite replaces it)"),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Uploads what was written.
    pub(crate) fn put(path: &Path, source: &Source, existing: Existing) -> anyhow::Result<()> {
        let Some(location) = location(path)? else { return Ok(()) };
        match remote().put(&location, source, existing, |_| ()) {
            Err(Error::At { error, .. }) if matches!(*error, Error::Exists) => {
                bail!("is there already (--overwrite replaces it)")
            }
            put => Ok(put?),
        }
    }

    /// The files that an address means, where it means several.
    #[derive(Default)]
    pub(crate) struct Listing {
        pub(crate) files: Vec<AtAddress>,
        pub(crate) skipped: Vec<PathBuf>,
    }

    /// A file at an address.
    #[derive(Clone, Debug)]
    pub(crate) struct AtAddress {
        location: Location,
        /// Its length, where a listing says it.
        pub(crate) len: Option<u64>,
        /// What else it says.
        listed: Option<Listed>,
    }

    impl AtAddress {
        /// Returns what is shown of the address.
        pub(crate) fn path(&self) -> PathBuf {
            self.location.to_string().into()
        }

        /// Returns what a catalogue has a row of.
        pub(crate) fn entry(self) -> Entry {
            match self.listed {
                Some(listed) => Entry::listed(remote(), listed),
                None => Entry::at_address(remote(), &self.location),
            }
        }

        /// Opens the file, and the model that it is.
        pub(crate) fn reader(&self, options: ReadOptions) -> anyhow::Result<(AnyReader, Opened)> {
            let opened = remote().open(&self.location)?;
            let reader = remote().reader_of(&opened, &self.location, options)?;
            Ok((reader, opened))
        }
    }

    /// Returns the files that an address means: of a folder those that are named as models, of a pattern
    /// all that fit.
    pub(crate) fn listing(path: &Path) -> anyhow::Result<Option<Listing>> {
        let Some(location) = location(path)? else { return Ok(None) };
        let mut listing = Listing::default();
        if !location.is_many() {
            listing.files.push(AtAddress { location, len: None, listed: None });
            return Ok(Some(listing));
        }
        let is_pattern = location.to_string().contains(['*', '?', '[']);
        for listed in remote().list(&location)? {
            let path = PathBuf::from(listed.location.to_string());
            let name = listed.location.file_name().unwrap_or_default();
            let is_hidden = name.starts_with('.') || name.is_empty();
            if is_pattern || !is_hidden && Format::from_path(&path).is_some() {
                let (location, len) = (listed.location.clone(), Some(listed.len));
                listing.files.push(AtAddress { location, len, listed: Some(listed) });
            } else {
                listing.skipped.push(path);
            }
        }
        Ok(Some(listing))
    }

    /// Says what was asked of servers.
    pub(crate) fn print_requests() {
        let stats = remote().stats();
        let (requests, retries) = (stats.requests, stats.retries);
        let bytes = output::size(stats.bytes);
        output::print_problem(&format!("{requests} requests, {bytes}, {retries} made again\n"));
    }
}

#[cfg(not(feature = "remote"))]
mod without_remote {
    use std::path::Path;

    use anyhow::ensure;
    use modelcrate::{AnyReader, ReadOptions, tensor_core::Source};

    /// Refuses an address.
    pub(crate) fn source(path: &Path) -> anyhow::Result<Option<Source>> {
        let read = "is an address, which this build does not read: cargo install --path \
                    crates/modelcrate-cli --features remote";
        ensure!(super::address(path).is_none(), read);
        Ok(None)
    }

    /// Refuses an address.
    pub(crate) fn reader(path: &Path, _: ReadOptions) -> anyhow::Result<Option<AnyReader>> {
        source(path).map(|_| None)
    }

    /// Refuses an address where only a path will do.
    pub(crate) fn refuse(path: &Path, what: &str) -> anyhow::Result<()> {
        ensure!(super::address(path).is_none(), "is an address, {what}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_hidden() {
        let arguments = [
            "convert",
            "https://h.example/a.zt?sig=one",
            "--put=w=https://x",
            "w=https://h.example/a.zt?sig=two",
            "s3://bucket/?.zt",
            "a=b?c",
            "s3://user:secret@bucket/key",
            "hf://owner/name@v1/x",
        ];
        let shown = hide(arguments.iter().map(OsString::from));
        let expected = [
            "convert",
            "https://h.example/a.zt",
            "--put=w=https://x",
            "w=https://h.example/a.zt#1",
            "s3://bucket/?.zt",
            "a=b?c",
            "s3://bucket/key",
            "hf://owner/name@v1/x",
        ];
        assert_eq!(shown, expected);
        let address = |text: &'static str| address(Path::new(text));
        assert_eq!(address("https://h.example/a.zt"), Some("https://h.example/a.zt?sig=one"));
        assert_eq!(address("https://h.example/a.zt#1"), Some("https://h.example/a.zt?sig=two"));
        assert_eq!(address("https://h.example/b.zt"), Some("https://h.example/b.zt"));
        assert_eq!(address("model.zt"), None);
    }
}
