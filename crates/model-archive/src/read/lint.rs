//! Every fault of an archive, not only the first.

use std::collections::BTreeMap;

use tensor_core::{Profile, Report, parallel};

use crate::{
    Archive, Entry, Fault, Kind, Result,
    name::fold,
    read::local::{self, Local},
};

impl Archive {
    /// Reports every fault of the structure and of every byte of content: sizes, checksums, and what
    /// cannot be decoded.
    ///
    /// What the strict profile refuses is an error here, whatever the profile of the archive. Where
    /// all entries together exceed [`Limits::expansion`](tensor_core::Limits::expansion), that is
    /// said, and no content is decoded.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| {})
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many bytes of content were done
    /// since it was told last; [`total_size`](Self::total_size) says how many there are.
    #[must_use]
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        let (mut report, profile) = (Report::default(), Profile::Strict);
        let sound = self.inspect(profile, &mut report);
        if let Err(error) = self.check_total() {
            report.add(error.finding(profile));
            return report;
        }
        let verified = parallel::map(&sound, self.threads(), |&index| {
            Entry::new(self, index).verify_with(&progress)
        });
        for (&index, verified) in sound.iter().zip(verified) {
            if let Err(error) = verified {
                let mut finding = error.finding(profile);
                let entry = Entry::new(self, index).name();
                finding.at.entry.get_or_insert_with(|| entry.to_owned());
                report.add(finding);
            }
        }
        report
    }

    /// Reports every fault of the structure: of the directory, of all local headers, of what stands
    /// between entries, and of symbolic links. The content of entries is not read but for those.
    ///
    /// What the strict profile refuses is an error here, whatever the profile of the archive.
    #[must_use]
    pub fn lint(&self) -> Report {
        self.lint_with(Profile::Strict)
    }

    /// Like [`lint`](Self::lint), but what the given profile refuses is an error.
    #[must_use]
    pub fn lint_with(&self, profile: Profile) -> Report {
        let mut report = Report::default();
        self.inspect(profile, &mut report);
        report
    }

    /// Reports faults of the structure; returns the positions of the entries whose content can be
    /// found.
    fn inspect(&self, profile: Profile, report: &mut Report) -> Vec<usize> {
        let mut sound = Vec::new();
        report.extend(self.directory().faults.iter().map(|found| found.finding(profile)));
        for index in self.directory().by_offset() {
            match self.inspect_entry(index, profile, report) {
                Ok(()) => sound.push(index),
                Err(error) => {
                    let mut finding = error.finding(profile);
                    let entry = Entry::new(self, index).name();
                    finding.at.entry.get_or_insert_with(|| entry.to_owned());
                    report.add(finding);
                }
            }
        }
        self.inspect_case(profile, report);
        sound
    }

    fn inspect_entry(&self, index: usize, profile: Profile, report: &mut Report) -> Result<()> {
        let directory = self.directory();
        let Some(record) = directory.record(index) else { return Ok(()) };
        let local = Local::read(self.source(), directory, index, 0)?;
        let mut faults: Vec<Fault> = local.fault.into_iter().collect();
        match local::end_of(self.source(), record, local.data)? {
            Some(end) if end < record.room_end => {
                faults.push(Fault::Gap { bytes: record.room_end.saturating_sub(end) });
            }
            Some(_) => {}
            None => faults.push(Fault::Descriptor),
        }
        for fault in faults {
            report.add(directory.fault_at(index, fault).finding(profile));
        }
        if record.info.kind == Kind::Symlink {
            Entry::new(self, index).resolve()?;
        }
        Ok(())
    }

    /// Reports names that are one on file systems that do not tell cases apart, and files that are
    /// folders there.
    fn inspect_case(&self, profile: Profile, report: &mut Report) {
        let mut folded: BTreeMap<String, usize> = BTreeMap::new();
        let collide = |index: usize, other: usize, report: &mut Report| {
            let other = Entry::new(self, other).name().to_owned();
            report.add(self.directory().fault_at(index, Fault::Case { other }).finding(profile));
        };
        for (index, entry) in self.entries().enumerate() {
            let name = entry.name().trim_end_matches('/');
            if let Some(earlier) = folded.insert(fold(name), index) {
                collide(index, earlier, report);
            }
        }
        for (name, &index) in &folded {
            if Entry::new(self, index).info().kind == Kind::Folder {
                continue;
            }
            let folder = format!("{name}/");
            let mut inside = folded.range(folder.clone()..);
            if let Some((_, &other)) = inside.next().filter(|(name, _)| name.starts_with(&folder)) {
                collide(index, other, report);
            }
        }
    }
}
