//! Every fault of an archive, not only the first.

use std::collections::BTreeMap;

use tensor_core::Report;

use crate::{
    Archive, Entry, Fault, Kind, Profile, Result,
    name::fold,
    read::local::{self, Local},
};

impl Archive {
    /// Reports every fault of the structure: of the directory, of all local headers, of what stands
    /// between entries, and of symbolic links. The content of entries is not read but for those.
    ///
    /// What the strict profile refuses is an error here, whatever the profile of the archive.
    #[must_use]
    pub fn check(&self) -> Report {
        self.check_as(Profile::Strict)
    }

    /// Does as [`check`](Self::check); what the given profile refuses is an error.
    #[must_use]
    pub fn check_as(&self, profile: Profile) -> Report {
        let mut report = Report::default();
        for flaw in &self.directory().flaws {
            flaw.report_to(&mut report, profile);
        }
        for index in self.directory().by_offset() {
            if let Err(error) = self.check_entry(index, profile, &mut report) {
                let entry = Entry::new(self, index);
                error.report_to(&mut report, profile, Some(entry.name()));
            }
        }
        self.check_case(profile, &mut report);
        report
    }

    fn check_entry(&self, index: usize, profile: Profile, report: &mut Report) -> Result<()> {
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
            directory.flaw(index, fault).report_to(report, profile);
        }
        if record.info.kind == Kind::Symlink {
            Entry::new(self, index).resolve()?;
        }
        Ok(())
    }

    /// Reports names that are one on file systems that do not tell cases apart, and files that are
    /// folders there.
    fn check_case(&self, profile: Profile, report: &mut Report) {
        let mut folded: BTreeMap<String, usize> = BTreeMap::new();
        let collide = |index: usize, other: usize, report: &mut Report| {
            let other = Entry::new(self, other).name().to_owned();
            self.directory().flaw(index, Fault::Case { other }).report_to(report, profile);
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
