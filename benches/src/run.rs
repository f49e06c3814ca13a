//! Running cases under criterion, and side by side.

use std::{
    env,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use criterion::{Criterion, SamplingMode};

use crate::{
    Bound, Check, Scale, Side, Topic,
    carton::{open::CartonOpen, pack::CartonPack, tensors::CartonTensors, verify::CartonVerify},
    command::Processes,
    compress::Compress,
    content::Content,
    convert::Convert,
    nnpackage::{open::NnpackageOpen, write::NnpackageWrite},
    open::Open,
    ptl::{files::PtlFiles, image::PtlImage, tokens::PtlTokens},
    read::Read,
    rten::{open::RtenOpen, write::RtenWrite},
    verify::Verify,
    write::Write,
    ztensor2::ZTensor2,
};

/// A topic, whatever its type.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Compares its sides; see [`compare`].
    pub compare: fn(Scale, usize) -> Result<Vec<Row>>,
    bench: fn() -> Result<()>,
}

const fn entry<T: Topic>() -> Entry {
    Entry { name: T::NAME, compare: compare::<T>, bench: bench::<T> }
}

/// All topics, in the order of the table.
pub const TOPICS: [Entry; 20] = [
    entry::<Read>(),
    entry::<Open>(),
    entry::<Write>(),
    entry::<Verify>(),
    entry::<ZTensor2>(),
    entry::<Compress>(),
    entry::<Content>(),
    entry::<Convert>(),
    entry::<Processes>(),
    entry::<CartonOpen>(),
    entry::<CartonTensors>(),
    entry::<CartonVerify>(),
    entry::<CartonPack>(),
    entry::<RtenOpen>(),
    entry::<RtenWrite>(),
    entry::<PtlImage>(),
    entry::<PtlTokens>(),
    entry::<PtlFiles>(),
    entry::<NnpackageOpen>(),
    entry::<NnpackageWrite>(),
];

/// Runs the benchmarks under criterion, whose arguments those of the process are. Where the filter
/// starts with the name of a topic, as in `open/look up`, only that one is prepared.
///
/// # Errors
///
/// Where files cannot be made, or a side fails.
pub fn criterion() -> Result<()> {
    let is_named = |topic: &Entry| env::args().any(|arg| arg.split('/').next() == Some(topic.name));
    let all = !TOPICS.iter().any(is_named);
    TOPICS.iter().filter(|topic| all || is_named(topic)).try_for_each(|topic| (topic.bench)())
}

fn bench<T: Topic>() -> Result<()> {
    let topic = T::prepare(Scale::of_bench())?;
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    for mut case in topic.cases()? {
        let mut group = criterion.benchmark_group(format!("{}/{}", T::NAME, case.name));
        group.sampling_mode(SamplingMode::Flat).throughput(case.throughput.clone());
        for side in &mut case.sides {
            let mut result = Ok(());
            group.bench_function(side.name, |bencher| {
                bencher.iter_custom(|runs| repeat(side, runs, &mut result));
            });
            result?;
        }
        group.finish();
    }
    criterion.final_summary();
    Ok(())
}

/// Runs a side some times; a failure is left in `result`, and ends the repetition.
fn repeat(side: &mut Side<'_>, runs: u64, result: &mut Result<()>) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..runs {
        match side.run() {
            Ok(took) => total += took,
            Err(error) => {
                *result = Err(error);
                break;
            }
        }
    }
    // Criterion takes no time of 0.
    total.max(Duration::from_nanos(1))
}

/// One row of the table of ratios.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was asked.
    pub check: Check,
    /// Our least time.
    pub ours: Duration,
    /// The fastest peer.
    pub peer: &'static str,
    /// Its least time.
    pub theirs: Duration,
    /// The ratio that the bound is about.
    pub ratio: f64,
}

impl Row {
    /// Tells whether the target is met; `None` where there is none.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        self.check.bound.is_met(self.ours, self.theirs)
    }
}

/// Runs the sides of every case in turn, `rounds` times and for half a second at least, and
/// compares their least times.
///
/// # Errors
///
/// Where files cannot be made, or a side fails.
pub fn compare<T: Topic>(scale: Scale, rounds: usize) -> Result<Vec<Row>> {
    let topic = T::prepare(scale)?;
    let mut rows = Vec::new();
    for mut case in topic.cases()? {
        let mut least = vec![Duration::MAX; case.sides.len()];
        // The first round warms up.
        for side in &mut case.sides {
            side.run()?;
        }
        let started = Instant::now();
        let mut done = 0;
        while done < rounds || (started.elapsed() < LEAST_TIME && done < MOST_ROUNDS) {
            for (side, least) in case.sides.iter_mut().zip(&mut least) {
                *least = side.run()?.min(*least);
            }
            done += 1;
        }
        let time = |name: &str| {
            let at = case.sides.iter().position(|side| side.name == name);
            at.and_then(|at| least.get(at).copied()).with_context(|| format!("no side {name:?}"))
        };
        for check in &case.checks {
            let ours = time(check.ours)?;
            let peers = check.peers.iter().map(|&peer| Ok((time(peer)?, peer)));
            let peers = peers.collect::<Result<Vec<_>>>()?;
            let (theirs, peer) = peers.into_iter().min().context("a check names a peer")?;
            let (check, ratio) = (check.clone(), check.bound.ratio(ours, theirs));
            rows.push(Row { check, ours, peer, theirs, ratio });
        }
    }
    Ok(rows)
}

/// Formats rows as a Markdown table.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| case | ours | fastest peer or limit | its time | ratio | target | |\n\
         |---|---:|---|---:|---:|---|---|\n",
    );
    for row in rows {
        let Check { title, bound, .. } = &row.check;
        let verdict = match row.is_met() {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        let (ours, theirs) = (milliseconds(row.ours), milliseconds(row.theirs));
        let kind = if matches!(bound, Bound::SpeedAtLeast(_)) { " (speed)" } else { "" };
        out += &format!(
            "| {title} | {ours} | {} | {theirs} | {:.3}{kind} | {bound} | {verdict} |\n",
            row.peer, row.ratio
        );
    }
    out
}

fn milliseconds(time: Duration) -> String {
    let time = time.as_secs_f64() * 1e3;
    let decimals = if time < 10.0 { 3 } else { 1 };
    format!("{time:.decimals$} ms")
}

/// How long the sides of a case run at least, unless [`MOST_ROUNDS`] come first.
const LEAST_TIME: Duration = Duration::from_millis(1500);

const MOST_ROUNDS: usize = 50;
