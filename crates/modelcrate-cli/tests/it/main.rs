//! The command, run as a process.

mod carton;
mod command;
mod edit_model;
mod nnpackage;
mod ptl;
mod rten;
mod run;
