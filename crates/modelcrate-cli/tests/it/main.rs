//! The command, run as a process.

mod carton;
mod catalog;
mod circle;
mod command;
mod convert;
mod edit;
mod manners;
mod nnpackage;
mod output;
mod pack;
mod ptl;
mod readme;
mod remote;
mod report;
mod rten;
mod run;
mod schema;
#[cfg(unix)]
mod signals;
mod wait;
mod ztensor;
