//! Export to ONNX, for whoever has a `.rten` file whose original is lost.
//!
//! Every operator of the format has its counterpart, so what remains is what the format does not
//! say: its `Int32` stands for the truth values, the 32-bit and the 64-bit integers of ONNX alike.
//! An export finds out which of them each value is, and casts where two of them meet:
//!
//! ```text
//! 1. Scopes      the graphs, each found by the operator that holds it       types/scopes.rs
//! 2. Kinds       floats, integers or bytes, over all graphs at once         types/kinds.rs
//! 3. Demands     constants that all readers want to be of one other type    demands.rs
//! 4. Rule        what each operator takes and makes in ONNX                 types/rules.rs
//! 5. Lowering    names, order, casts; one node for each operator            lower.rs, operator.rs,
//!                                                                           control.rs, names.rs
//! 6. attributes  each table as the attributes of ONNX; inputs that were     attributes.rs,
//!                attributes                                                 adjust.rs
//! 7. shapes      ranks that the file does not say                           shapes.rs, types.rs
//! 8. Store       constants, in the model or in a data file                  constants.rs
//! 9. Export      the model around the graph, files                          export.rs, proto.rs
//! ```
//!
//! # What the model is like
//!
//! - Operator set 20 and IR version 9. `RotaryEmbedding` and `Attention` exist from operator set 23
//!   (IR version 11) on, and the seventh input of `Attention` from 24 (IR version 12): a model with
//!   them needs that.
//! - Integers are `INT64`: inputs, constants, what shapes and indices are made of. Comparisons make
//!   `BOOL`, `MatMulInteger` and `ConvInteger` make `INT32`, and their results stay what they are
//!   until something needs them otherwise. What a branch or a body gives out, what a loop carries
//!   along, and what sequences hold is `INT64` always. So arithmetic that overflows 32 bits in RTen
//!   does not overflow.
//! - An input of integers is `BOOL` or `INT32` where all that reads it takes that, and what it is told
//!   to be with [`Export::input_types`].
//! - Names are those of the file where they are there once; values without a name, or with one that
//!   another has, get new ones. Outputs that are inputs, or listed twice, go through an `Identity` and
//!   so have another name; the report says so. A constant that is an output leaves its name to that.
//! - A fixed dimension of 0 becomes an unknown one: that is what RTen's converter makes of those.
//! - Metadata becomes `metadata_props`, and the description `doc_string` as well.
//! - The same file gives the same bytes.
//!
//! What cannot be exported is an [`Error`] with the path of the node; the crate's README lists it.

mod adjust;
mod attributes;
mod constants;
mod control;
mod demands;
mod error;
mod export;
mod lower;
mod names;
mod operator;
mod proto;
mod shapes;
#[cfg(test)]
mod tests;
mod types;
mod window;

pub use error::{Error, Result};
pub use export::{Export, Exported, ExternalData};
