//! What was found in a model or a package, with what onert makes of it.

use std::{borrow::Cow, fmt};

use tensor_core::{At, Finding, Report, Severity};

/// One thing that a check found, what to do about it, and what onert does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// What was found. The path of its place is a JSON pointer in a manifest, such as `/models/1`,
    /// and the place in a model, such as `subgraph 0/operator 3`.
    pub finding: Finding,
    /// What would mend it.
    pub hint: Option<String>,
    /// What onert 0.1.0 does about it; `None` where it was not tried.
    pub onert: Option<Reaction>,
}

impl From<Finding> for Diagnosis {
    fn from(finding: Finding) -> Self {
        Self { finding, hint: None, onert: None }
    }
}

impl Diagnosis {
    /// Makes an error.
    #[must_use]
    pub fn error(rule: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Finding::error(rule, message).into()
    }

    /// Makes a warning.
    #[must_use]
    pub fn warning(rule: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Finding::warning(rule, message).into()
    }

    /// Makes a note.
    #[must_use]
    pub fn note(rule: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Finding::note(rule, message).into()
    }

    /// Says where it is, besides what is said already.
    #[must_use]
    pub fn at(mut self, more: impl FnOnce(At) -> At) -> Self {
        self.finding.at = more(self.finding.at);
        self
    }

    /// Says which file of a package it is about.
    #[must_use]
    pub fn entry(self, path: impl Into<String>) -> Self {
        self.at(|at| at.entry(path))
    }

    /// Says where in a document or a model it is.
    #[must_use]
    pub fn path(self, path: impl Into<String>) -> Self {
        self.at(|at| at.path(path))
    }

    /// Says where in a text it is, in lines and characters from 1.
    #[must_use]
    pub fn position(self, line_and_column: impl Into<(u64, u64)>) -> Self {
        let (line, column) = line_and_column.into();
        self.at(|at| at.line(line).column(column))
    }

    /// Says what would mend it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what onert does.
    #[must_use]
    pub fn onert(mut self, reaction: Reaction) -> Self {
        self.onert = Some(reaction);
        self
    }

    /// Says that onert takes no notice.
    #[must_use]
    pub fn ignored(self) -> Self {
        self.onert(Reaction::Ignores)
    }

    /// Says that loading fails with this message.
    #[must_use]
    pub fn load_fails(self, message: impl Into<String>) -> Self {
        self.onert(Reaction::Fails { stage: Stage::Load, message: message.into() })
    }

    /// Says that preparing a session fails with this message.
    #[must_use]
    pub fn prepare_fails(self, message: impl Into<String>) -> Self {
        self.onert(Reaction::Fails { stage: Stage::Prepare, message: message.into() })
    }

    /// Says that running fails with this message.
    #[must_use]
    pub fn run_fails(self, message: impl Into<String>) -> Self {
        self.onert(Reaction::Fails { stage: Stage::Run, message: message.into() })
    }

    /// Says that onert crashes.
    #[must_use]
    pub fn crashes(self, stage: Stage) -> Self {
        self.onert(Reaction::Crashes { stage })
    }

    /// Says that memory is read that does not belong to onert.
    #[must_use]
    pub fn undefined(self, stage: Stage) -> Self {
        self.onert(Reaction::Undefined { stage })
    }

    /// Tells whether it is as the format allows, and only stops onert, or keeps it waiting.
    #[must_use]
    pub fn is_about_onert(&self) -> bool {
        let is_stopped = |reaction: &Reaction| {
            reaction.stops_at().is_some()
                || matches!(reaction, Reaction::Untried | Reaction::Needs(_))
        };
        self.finding.severity != Severity::Error && self.onert.as_ref().is_some_and(is_stopped)
    }

    /// Returns the first thing of several that stops onert 0.1.0, else what makes it go wrong, what
    /// was not tried, or what the application has to do; `None` where it gets through without.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use circle_format::{Diagnosis, Reader};
    ///
    /// let diagnoses = Reader::open("model.circle")?.diagnoses();
    /// println!("{:?}", Diagnosis::forecast(&diagnoses));
    /// # Ok::<(), circle_format::Error>(())
    /// ```
    #[must_use]
    pub fn forecast(diagnoses: &[Self]) -> Option<Reaction> {
        let rank = |reaction: &Reaction| match reaction {
            Reaction::Fails { stage, .. } | Reaction::Crashes { stage } => Some((*stage as u8, 0)),
            Reaction::Undefined { stage } => Some((*stage as u8, 1)),
            Reaction::Garbage => Some((u8::MAX, 0)),
            Reaction::Follows => Some((u8::MAX, 1)),
            Reaction::Untried => Some((u8::MAX, 2)),
            Reaction::Needs(_) => Some((u8::MAX, 3)),
            Reaction::Ignores | Reaction::LaterSessions => None,
        };
        let reactions = diagnoses.iter().filter_map(|diagnosis| diagnosis.onert.as_ref());
        let ranked = reactions.filter_map(|reaction| Some((rank(reaction)?, reaction)));
        let first = ranked.min_by_key(|(rank, _)| *rank);
        first.map(|(_, reaction)| reaction.clone())
    }

    /// Returns it with hint and reaction in the sentence.
    #[must_use]
    pub fn into_finding(self) -> Finding {
        let mut finding = self.finding;
        if let Some(hint) = &self.hint {
            finding.message = format!("{}; {hint}", finding.message);
        }
        if let Some(onert) = &self.onert {
            finding.message = format!("{} (onert {onert})", finding.message);
        }
        finding
    }
}

/// How far onert has come with a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// It reads the manifest and the models.
    Load,
    /// It compiles the models.
    Prepare,
    /// It runs them.
    Run,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Load => "load",
            Self::Prepare => "prepare",
            Self::Run => "run",
        })
    }
}

/// What onert 0.1.0 does about something in a package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reaction {
    /// It does not look at it, or takes it as it should be.
    Ignores,
    /// It uses what is named, wherever in the system that is.
    Follows,
    /// It takes effect on sessions that are created later in the process, not on this one.
    LaterSessions,
    /// It goes on with wrong data.
    Garbage,
    /// It gets through once the application does its part.
    Needs(Need),
    /// It was not tried with this.
    Untried,
    /// It stops with an error.
    Fails {
        /// When.
        stage: Stage,
        /// What it prints; empty where that is not known.
        message: String,
    },
    /// The process crashes.
    Crashes {
        /// When.
        stage: Stage,
    },
    /// It reads memory that is not its own: it crashes, now or later, or goes on with wrong data.
    Undefined {
        /// From when on.
        stage: Stage,
    },
}

/// What an application has to do before onert runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To give inputs a shape.
    Shape,
    /// To register the kernel of a custom operator.
    Kernel,
}

impl Reaction {
    /// Returns how far onert comes; `None` where it gets through.
    #[must_use]
    pub const fn stops_at(&self) -> Option<Stage> {
        match self {
            Self::Fails { stage, .. } | Self::Crashes { stage } | Self::Undefined { stage } => {
                Some(*stage)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Reaction {
    /// Writes what reads on from "onert".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignores => f.write_str("takes no notice"),
            Self::Follows => f.write_str("follows it"),
            Self::LaterSessions => f.write_str("applies it to later sessions of the process only"),
            Self::Garbage => f.write_str("goes on with wrong data"),
            Self::Needs(Need::Shape) => f.write_str("needs a shape"),
            Self::Needs(Need::Kernel) => f.write_str("needs a kernel"),
            Self::Untried => f.write_str("was not tried with this"),
            Self::Fails { stage, message } if message.is_empty() => write!(f, "fails to {stage}"),
            Self::Fails { stage, message } => write!(f, "fails to {stage}: {message:?}"),
            Self::Undefined { .. } => f.write_str("crashes or goes on with wrong data"),
            Self::Crashes { stage: Stage::Load } => f.write_str("crashes while loading"),
            Self::Crashes { stage: Stage::Prepare } => f.write_str("crashes while preparing"),
            Self::Crashes { stage: Stage::Run } => f.write_str("crashes while running"),
        }
    }
}

/// Diagnoses in order, of which those are kept that a [`Report`] keeps: a hostile file can have
/// millions of faults.
#[derive(Clone, Debug, Default)]
pub struct Diagnoses {
    report: Report,
    /// One for each finding of the report; none for those that count others.
    listed: Vec<Option<Diagnosis>>,
    /// The file of the package that everything is about.
    entry: Option<String>,
}

impl Diagnoses {
    /// Adds one, or counts it where enough of its rule are listed.
    pub fn push(&mut self, mut diagnosis: Diagnosis) {
        if diagnosis.finding.at.entry.is_none() {
            diagnosis.finding.at.entry.clone_from(&self.entry);
        }
        let kept = (!self.is_full(&diagnosis.finding.rule)).then(|| diagnosis.clone());
        self.report.add(diagnosis.into_finding());
        if self.listed.len() < self.report.findings().len() {
            self.listed.push(kept);
        }
    }

    /// Tells whether no more of a rule is listed.
    #[must_use]
    pub fn is_full(&self, rule: &str) -> bool {
        self.report.is_full(rule)
    }

    /// Says which file everything from now on is about.
    pub fn enter(&mut self, entry: Option<String>) {
        self.entry = entry;
    }

    /// Returns those that are listed, and how many are not.
    #[must_use]
    pub fn finish(self) -> Vec<Diagnosis> {
        let both = self.listed.into_iter().zip(self.report);
        both.map(|(listed, finding)| listed.unwrap_or_else(|| finding.into())).collect()
    }

    /// Returns all as findings, with hints and reactions in their sentences.
    #[must_use]
    pub fn into_report(self) -> Report {
        self.report
    }
}
