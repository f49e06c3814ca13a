//! PyTorch Live models (`.ptl`), without PyTorch and without running anything in them: the
//! specification inside, which says how a call's parameters become the model's input and its output
//! the call's result, and the files themselves, read, checked and edited in place.
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
//! // Whatever executes the model gets the packed value and hands back what came out.
//! let double = |input: &Value| match input {
//!     Value::Int(n) => Ok(Value::Int(2 * n)),
//!     other => Err(format!("{} is not an int", other.kind()).into()),
//! };
//! let results = ptl_spec::run(&spec, &Params::new().with("n", 21), &double)?;
//! assert_eq!(results.to_string(), r#"{"doubled":42}"#);
//! # Ok::<(), ptl_spec::Error>(())
//! ```
//!
//! A model file, of either container:
//!
//! ```no_run
//! use ptl_spec::{Editor, Reader};
//!
//! let reader = Reader::open("model.ptl")?;
//! for tensor in reader.tensors()? {
//!     println!("{} {}", tensor.name(), tensor.info()?);
//! }
//! let weight = reader.tensor("fc.weight")?.ok_or("there is no fc.weight")?.read()?;
//! println!("{:?}", weight.to_vec::<f32>()?);
//! assert!(reader.validate().is_valid());
//!
//! let mut editor = Editor::open("model.ptl")?;
//! editor.set("labels.txt", "cat\ndog\n")?;
//! editor.commit()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is proved when
//!
//! | by | what |
//! |---|---|
//! | opening | the directory of a ZIP file, one root folder; or root table and extra files of a FlatBuffer |
//! | [`Reader::bytecode`], [`Reader::tensors`] | pickles by an allow list of opcodes and names, their checksums, methods; tables within the file, known types; nesting, counts and lengths within [`Limits`](tensor_core::Limits) |
//! | reading a tensor | that it lies in its storage, and that this has the length that it should |
//! | reading with [`Verify`](tensor_core::Verify) | the checksum of the record that holds its storage |
//! | [`Spec::parse`] | strict JSON, every field of a known type within its range |
//! | [`Spec::lint`] | vocabularies, parameters of two kinds, results of one name |
//! | [`Reader::lint`] | all these, without reading what tensors hold; alignment, versions, whether the spec fits the method `forward` |
//! | [`Reader::validate`] | all of these, every byte, checksums, indices of sparse tensors |
//!
//! # Data path
//!
//! ```text
//! 1. Json             the text, strict: no key twice, bounded in depth      spec/json.rs
//! 2. Spec             pack, unpack and vocabularies as typed values         spec/
//! 3. Signature        what a call takes and gives, without running it       spec/signature.rs
//! 4. Spec::call       parameters in the place of their stubs                call/{mod,stub}.rs
//! 5. Call::pack       numbers, pictures, texts and sound become tensors     call/packer.rs, image/, tokenizer/
//! 6. Model::forward   the caller's own                                      call/mod.rs
//! 7. Call::unpack     the model's output becomes named results              call/unpacker.rs
//! ```
//!
//! And of a model file:
//!
//! ```text
//! 1. Source           where the bytes are                                   tensor_core::Source
//! 2. Reader::open     which of two containers, which answer alike           read.rs, container.rs
//! 3. Zip, Flat        records below one folder; tables of a FlatBuffer      zip/, flat/
//! 4. Reader::spec     the spec among the extra files, or beside the model   embedded.rs, file.rs
//! 5. Pickle           opcodes and names; nothing is called                  pickle/
//! 6. Bytecode         methods, their types and operators                    module/
//! 7. Tensor           handles by name, then the first touch of their data   module/walk.rs, tensor.rs, sparse.rs
//! 8. validate, lint   container, code, tensors, spec, and whether they fit  validate.rs
//! 9. Editor           extra files; compact, strip, recover                  edit/
//! 10. torchscript     an archive for the full runtime                       torchscript.rs, pickle/write.rs
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `image` | yes | pictures as parameters: PNG, JPEG and raw pixels |
//! | `mmap` | no | memory-mapped sources |
//! | `serde` | no | `serde::Serialize` for reports |

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
mod torchscript;
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
    Editor, Strip, Stripped, WriteOptions, compact, recover, recoverable, rewrite, strip,
    with_extra_files,
};
pub use embedded::{SPEC, SpecSource, sidecar};
pub use error::{Error, Fault, PickleFault, Result, TensorFault, TorchScriptFault};
pub use file::{File, FileReader};
#[cfg(feature = "image")]
pub use image::{Filter, Image};
pub use module::code::{Attribute, Code, Instruction, Object};
pub use module::scalar::ScalarType;
pub use module::stored::{Place, Quantization};
pub use module::{Argument, Bytecode, Method, Operator};
pub use pickle::Scheme;
pub use read::{ReadOptions, Reader, sniff, sniff_archive};
pub use sparse::{SparseParts, SparseTensor};
pub use spec::colour::{Colour, ParseColourError};
pub use spec::dialect::Dialect;
pub use spec::json::Json;
pub use spec::pack::{
    ImageStep, Items, Pack, PackImage, PackString, PackTensor, TensorStep, Tokenizer,
};
pub use spec::signature::{Output, ParamKind, Parameter, ResultKind, Signature};
pub use spec::slot::Slot;
pub use spec::unpack::{BoundingBoxes, ElementType, Unpack};
pub use spec::{JSON_SCHEMA, Spec, SpecOptions};
pub use tensor::Tensor;
pub use tokenizer::bert::BertMode;
pub use tokenizer::gpt2::Gpt2Mode;
pub use torchscript::torchscript;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
