//! PyTorch Live models: pictures and texts for them, and their files.

pub mod files;
pub mod image;
pub mod tokens;
