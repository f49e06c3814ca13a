//! PyTorch Live models (`.ptl`): the specification inside them, which says how a call's parameters
//! become the model's input and its output the call's result, and the files themselves.
//!
//! A [`Spec`] is read, checked and run without PyTorch: whoever has something that executes the
//! model gives it the packed [`Value`] and hands back what came out.
//!
//! # Data path
//!
//! ```text
//! 1. Json             the text, strict: no key twice, bounded in depth           json.rs
//! 2. Spec             pack, unpack and vocabularies as typed values              spec.rs, pack.rs, unpack.rs, parse.rs
//! 3. Signature        what a call takes and gives, without running anything      signature.rs, check.rs
//! 4. Spec::call       parameters in the place of their stubs, typed again        params.rs, stub.rs, call.rs
//! 5. Call::pack       numbers, pictures, texts and sound become tensors          packer.rs, image/, bert.rs, gpt2.rs
//! 6. Model::forward   the caller's own                                           call.rs
//! 7. Call::unpack     the model's output becomes named results                   unpacker.rs
//! ```
//!
//! And of a model file:
//!
//! ```text
//! 1. Source           where the bytes are                                        tensor_core::Source
//! 2. Reader::open     a ZIP file with one root folder, or a FlatBuffer           read.rs, container.rs, flat.rs, table.rs
//! 3. Reader::spec     the spec among the extra files, or beside the model        read.rs
//! 4. Pickle           opcodes and names from an allow list; nothing is called    pickle/
//! 5. Bytecode         methods, their types and operators                         module.rs
//! 6. Tensor           handles by path, from the state and the constants          walk.rs, stored.rs, tensor.rs, sparse.rs
//! 7. Tensor::bytes    bounds, then the first touch of tensor data                tensor.rs
//! 8. validate         container, code, tensors, spec, and whether they fit       validate.rs, types.rs
//! 9. Editor           extra files in place; compact and strip                    edit.rs, zip_edit.rs, flat_edit.rs, rewrite.rs, flat_rewrite.rs, layout.rs
//! ```
//!
//! # Examples
//!
//! ```
//! use ptl_spec::{Params, Spec, Value};
//!
//! let spec = Spec::parse(br#"{
//!     "pack": {"type": "scalar_long", "value": "$n"},
//!     "unpack": {"type": "scalar_long", "key": "doubled"}
//! }"#)?;
//! assert_eq!(spec.signature().to_string(), "(n: integer) -> (doubled: integer)");
//!
//! let params = Params::new().with("n", 21);
//! let double = |input: &Value| match input {
//!     Value::Int(n) => Ok(Value::Int(2 * n)),
//!     other => Err(format!("{} is no int", other.kind()).into()),
//! };
//! let results = ptl_spec::run(&spec, &params, &double)?;
//! assert_eq!(results.to_string(), r#"{"doubled":42}"#);
//! # Ok::<(), ptl_spec::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `image` | yes | pictures as parameters: PNG, JPEG and raw pixels |
//! | `mmap` | | memory-mapped sources |
//! | `serde` | | `serde::Serialize` for reports |

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod call;
mod container;
mod edit;
mod embedded;
mod error;
mod file;
mod flat;
#[cfg(feature = "image")]
mod image;
#[cfg(not(feature = "image"))]
#[path = "image/absent.rs"]
mod image;
mod module;
mod pickle;
mod read;
mod sparse;
mod spec;
mod tensor;
mod tokenizer;
mod validate;
mod zip;

pub use flat_tables;
pub use model_archive;
pub use tensor_core;

pub use call::params::{Param, Params};
pub use call::value::{BoundingBox, ResultValue, Results, Value};
pub use call::{Call, Model, run};
pub use container::ContainerKind;
pub use edit::{
    Editor, Strip, Stripped, WriteOptions, compact, recover, recoverable, rewrite, rewrite_file,
    strip, with_extra_files,
};
pub use embedded::{SPEC, SpecSource, side_file};
pub use error::{Error, Fault, PickleFault, Result, TensorFault};
pub use file::{File, FileReader};
#[cfg(feature = "image")]
pub use image::{Filter, Image};
pub use module::scalar::ScalarType;
pub use module::stored::{Place, Quantization};
pub use module::{Argument, Bytecode, Method, Operator};
pub use pickle::Scheme;
pub use read::{ReadOptions, Reader, sniff, sniff_archive};
pub use sparse::{SparseParts, SparseTensor};
pub use spec::colour::Colour;
pub use spec::dialect::Dialect;
pub use spec::json::Json;
pub use spec::pack::{
    ImageStep, Items, Pack, PackImage, PackString, PackTensor, TensorStep, Tokenizer,
};
pub use spec::schema::json_schema;
pub use spec::signature::{Kind, Output, Parameter, ResultKind, Signature};
pub use spec::slot::Slot;
pub use spec::unpack::{BoundingBoxes, ElementType, Unpack};
pub use spec::{Spec, SpecOptions};
pub use tensor::Tensor;
pub use tokenizer::bert::BertMode;
pub use tokenizer::gpt2::Gpt2Mode;
