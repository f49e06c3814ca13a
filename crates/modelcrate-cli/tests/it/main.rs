//! The command, run as a process.

#[cfg(all(feature = "carton", feature = "http"))]
mod carton;
#[cfg(feature = "nnpackage")]
mod circle;
#[cfg(all(
    feature = "http",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod command;
#[cfg(all(
    feature = "http",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod convert;
#[cfg(all(
    feature = "http",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod edit;
#[cfg(all(
    feature = "http",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod manners;
#[cfg(feature = "nnpackage")]
mod nnpackage;
#[cfg(all(
    feature = "http",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod output;
#[cfg(all(
    feature = "carton",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod pack;
#[cfg(all(feature = "ptl", feature = "ztensor"))]
mod ptl;
#[cfg(all(
    feature = "http",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod readme;
#[cfg(all(feature = "rten", feature = "ztensor"))]
mod rten;
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "a slim command has few tests"))]
mod run;
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "a slim command has few tests"))]
mod schema;
#[cfg(all(unix, feature = "carton"))]
mod signals;
#[cfg(all(
    feature = "http",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod wait;
#[cfg(all(feature = "http", feature = "ztensor"))]
mod ztensor;
