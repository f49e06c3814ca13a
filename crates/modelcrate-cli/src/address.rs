//! Files at addresses: where a path of the command line is one, and what opens it.

use std::{convert::Infallible, ffi::OsString, path::Path, sync::OnceLock};

use modelcrate::{find_address, is_address, without_secrets};

#[cfg(feature = "remote")]
pub(crate) use self::with_remote::*;
#[cfg(not(feature = "remote"))]
pub(crate) use self::without_remote::*;

/// Addresses that may have secrets, each with what is shown of it and stands for it.
static HIDDEN: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Takes what may be secret off addresses in arguments, wherever in them they start: from here on, nothing
/// can print it.
pub(crate) fn hide(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    let split = |text: &str| {
        let (before, address) = text.split_at_checked(find_address(text)?)?;
        Some((before.to_owned(), address.to_owned(), without_secrets(address)))
    };
    let addresses = arguments.iter().filter_map(|argument| split(&argument.to_string_lossy()));
    // What has no secrets is shown as it is.
    let mut shown: Vec<(String, String)> = Vec::new();
    shown.extend(addresses.filter(|(_, a, bare)| a == bare).map(|(_, a, bare)| (bare, a)));
    let hidden = arguments.into_iter().map(|argument| {
        let parts = split(&argument.to_string_lossy());
        let Some((before, address, bare)) = parts.filter(|(_, a, bare)| a != bare) else {
            return argument;
        };
        let known = shown.iter().find(|(_, known)| *known == address);
        let name = known.map(|(name, _)| name.clone()).unwrap_or_else(|| {
            // Several of one name are told apart by what is no part of an address.
            let numbered = |number: usize| match number {
                0 => bare.clone(),
                number => format!("{bare}#{number}"),
            };
            let is_free = |name: &String| !shown.iter().any(|(taken, _)| taken == name);
            (0..).map(numbered).find(is_free).unwrap_or_default()
        });
        shown.push((name.clone(), address));
        format!("{before}{name}").into()
    });
    let hidden = hidden.collect();
    // Nothing hides twice.
    let _ = HIDDEN.set(shown);
    hidden
}

/// Returns a text that is kept, and not opened, with the addresses in it as they were given.
pub(crate) fn text(text: &str) -> Result<String, Infallible> {
    let address = find_address(text).and_then(|start| text.split_at_checked(start));
    let Some((before, address)) = address else { return Ok(text.to_owned()) };
    Ok(format!("{before}{}", given(address)))
}

/// Returns an address as it was given.
fn given(shown: &str) -> &str {
    let mut hidden = HIDDEN.get().into_iter().flatten();
    hidden.find(|(name, _)| name == shown).map_or(shown, |(_, address)| address)
}

/// Returns the address that a path is, with its query.
fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| is_address(text)).map(given)
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

    use crate::{options::manner, output};

    /// Returns what asks servers.
    pub(crate) fn remote() -> &'static Remote {
        static REMOTE: OnceLock<Remote> = OnceLock::new();
        REMOTE.get_or_init(|| {
            let options = RemoteOptions::default().allow_http(manner().allow_http);
            Remote::new(options.env_proxy(manner().use_env_proxy))
        })
    }

    /// Returns the path of this machine that an address such as `file:///models` is.
    pub(crate) fn local(path: &Path) -> Option<PathBuf> {
        location(path).ok()??.as_path().map(Path::to_owned)
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

    /// The files that an address means.
    #[derive(Default)]
    pub(crate) struct Listing {
        pub(crate) files: Vec<AtAddress>,
        pub(crate) skipped: Vec<PathBuf>,
        /// Whether it means one alone, be it there or not.
        pub(crate) is_one: bool,
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
            listing.is_one = true;
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
            "https://h.example/a.zt",
            "--put=w=https://h.example/b.zt?sig=one",
            "w=https://h.example/a.zt?sig=two",
            "-ohttps://h.example/a.zt?sig=one",
            "s3://bucket/?.zt",
            "a=b?c",
            "s3://user:secret@bucket/key",
            "s3://bucket/k?X-Amz-Signature=secret",
            "ftp://user:secret@h/x?secret",
            "https:/one/slash?secret",
            "hf://owner/name@v1/x",
        ];
        let shown = hide(arguments.iter().map(OsString::from));
        let expected = [
            "convert",
            "https://h.example/a.zt#1",
            "https://h.example/a.zt",
            "--put=w=https://h.example/b.zt",
            "w=https://h.example/a.zt#2",
            "-ohttps://h.example/a.zt#1",
            "s3://bucket/?.zt",
            "a=b?c",
            "s3://bucket/key",
            "s3://bucket/k",
            "ftp://h/x",
            "https:/one/slash",
            "hf://owner/name@v1/x",
        ];
        assert_eq!(shown, expected);
        let address = |text: &'static str| address(Path::new(text));
        for (shown, given) in [
            ("https://h.example/a.zt#1", "https://h.example/a.zt?sig=one"),
            ("https://h.example/a.zt", "https://h.example/a.zt"),
            ("https://h.example/a.zt#2", "https://h.example/a.zt?sig=two"),
            ("https://h.example/b.zt", "https://h.example/b.zt?sig=one"),
            ("https://h.example/c.zt", "https://h.example/c.zt"),
        ] {
            assert_eq!(address(shown), Some(given));
        }
        let kept = text("source=https://h.example/b.zt");
        assert_eq!(kept, Ok("source=https://h.example/b.zt?sig=one".to_owned()));
        assert_eq!(address("model.zt"), None);
    }
}
