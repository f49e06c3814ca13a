//! nnpackages and the Circle and TFLite models in them.

#![deny(unsafe_code)]

mod generated;
