use std::fmt;

/// What an entry is. ZIP application note, section 4.4.15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    #[default]
    File,
    /// A folder, whose name ends in a slash.
    Folder,
    /// A symbolic link, whose content is its target.
    Symlink,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Symlink => "a symbolic link",
        })
    }
}
