//! What is compared: sides that do the same work, and the targets for their ratios.

use std::{
    fmt,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use criterion::Throughput;

use crate::{Scale, fixture};

/// The cases over one set of files.
pub trait Topic: Sized {
    /// The name of the topic, and of its benchmark target.
    const NAME: &'static str;

    /// Makes the data and the files.
    ///
    /// # Errors
    ///
    /// Where files cannot be written.
    fn prepare(scale: Scale) -> Result<Self>;

    /// Returns the cases, ready to run.
    ///
    /// # Errors
    ///
    /// Where a file cannot be opened by one of the peers.
    fn cases(&self) -> Result<Vec<Case<'_>>>;
}

/// One piece of work, done in several ways.
pub struct Case<'f> {
    /// The name, unique in its topic.
    pub name: &'static str,
    /// How much is done in one run.
    pub throughput: Throughput,
    /// The ways to do it.
    pub sides: Vec<Side<'f>>,
    /// What is asked of their times.
    pub checks: Vec<Check>,
}

impl<'f> Case<'f> {
    /// Makes a case without sides and checks.
    #[must_use]
    pub fn new(name: &'static str, throughput: Throughput) -> Self {
        Self { name, throughput, sides: Vec::new(), checks: Vec::new() }
    }

    /// Adds a side: `run` does the work once and returns how long that took.
    #[must_use]
    pub fn side(mut self, name: &'static str, run: impl FnMut() -> Result<Duration> + 'f) -> Self {
        self.sides.push(Side { name, run: Box::new(run) });
        self
    }

    /// Adds a side that does nothing but what is timed. What it returns is dropped outside the time.
    #[must_use]
    pub fn run<T>(self, name: &'static str, mut work: impl FnMut() -> Result<T> + 'f) -> Self {
        self.side(name, move || time(&mut work))
    }

    /// Adds a side that makes a file or folder, which is not there before.
    #[must_use]
    pub fn make<T>(
        self,
        name: &'static str,
        target: &'f Path,
        mut work: impl FnMut() -> Result<T> + 'f,
    ) -> Self {
        self.side(name, move || {
            fixture::remove(target)?;
            time(&mut work)
        })
    }

    /// Adds a check of the side `ours` against the side `peer`.
    #[must_use]
    pub fn check(
        mut self,
        title: &'static str,
        ours: &'static str,
        peer: &'static str,
        bound: Bound,
    ) -> Self {
        self.checks.push(Check { title, ours, peers: vec![peer], bound });
        self
    }

    /// Adds another peer to the last check: the fastest counts.
    #[must_use]
    pub fn or(mut self, peer: &'static str) -> Self {
        self.checks.last_mut().into_iter().for_each(|check| check.peers.push(peer));
        self
    }
}

/// One way to do the work of a case.
pub struct Side<'f> {
    /// The name, unique in its case.
    pub name: &'static str,
    run: Box<dyn FnMut() -> Result<Duration> + 'f>,
}

impl Side<'_> {
    /// Does the work once and returns how long it took, preparation and clearing up left out.
    ///
    /// # Errors
    ///
    /// Where the work fails.
    pub fn run(&mut self) -> Result<Duration> {
        (self.run)().with_context(|| self.name)
    }
}

impl fmt::Debug for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A target for two sides of a case.
#[derive(Clone, Debug)]
pub struct Check {
    /// What the row is called in the table of ratios.
    pub title: &'static str,
    /// The side that is checked.
    pub ours: &'static str,
    /// The sides that it is compared with; the fastest counts.
    pub peers: Vec<&'static str>,
    /// What is asked.
    pub bound: Bound,
}

/// What is asked of the ratio of two times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Our time is at most so many times that of the peer.
    TimeAtMost(f64),
    /// Our speed is at least so many times that of the peer.
    SpeedAtLeast(f64),
    /// Our time is at most so many milliseconds, whatever the peer needs.
    Within(f64),
    /// Nothing is asked; the ratio is of times.
    Informative,
}

impl Bound {
    /// Returns the ratio that the bound is about.
    #[must_use]
    pub fn ratio(self, ours: Duration, peer: Duration) -> f64 {
        let time = ours.as_secs_f64() / peer.as_secs_f64();
        match self {
            Self::TimeAtMost(_) | Self::Within(_) | Self::Informative => time,
            Self::SpeedAtLeast(_) => time.recip(),
        }
    }

    /// Tells whether our time is within the bound; `None` where nothing is asked.
    #[must_use]
    pub fn is_met(self, ours: Duration, peer: Duration) -> Option<bool> {
        match self {
            Self::TimeAtMost(most) => Some(self.ratio(ours, peer) <= most),
            Self::SpeedAtLeast(least) => Some(self.ratio(ours, peer) >= least),
            Self::Within(most) => Some(ours.as_secs_f64() * 1e3 <= most),
            Self::Informative => None,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeAtMost(most) => write!(f, "≤ {most:.2} × the time"),
            Self::SpeedAtLeast(least) => write!(f, "≥ {least:.2} × the speed"),
            Self::Within(most) => write!(f, "≤ {most} ms"),
            Self::Informative => f.write_str("–"),
        }
    }
}

/// Times one call. What it returns is dropped outside the time.
pub(crate) fn time<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let started = Instant::now();
    let result = black_box(work());
    let took = started.elapsed();
    result.map(|_| took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_about_time_or_speed() {
        let (ours, peer) = (Duration::from_millis(50), Duration::from_millis(100));
        assert_eq!(Bound::TimeAtMost(0.5).ratio(ours, peer), 0.5);
        assert_eq!(Bound::SpeedAtLeast(2.0).ratio(ours, peer), 2.0);
        assert_eq!(Bound::TimeAtMost(0.49).is_met(ours, peer), Some(false));
        assert_eq!(Bound::SpeedAtLeast(1.8).is_met(ours, peer), Some(true));
        assert_eq!(Bound::Within(49.0).is_met(ours, peer), Some(false));
        assert_eq!(Bound::Informative.is_met(ours, peer), None);
    }
}
