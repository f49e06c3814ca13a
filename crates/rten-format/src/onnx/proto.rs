//! The part of ONNX's protobuf messages that an export needs: field numbers and types are those of
//! IR version 9 to 11, whose wire form is the same.
//!
//! Numbers that may be 0 are optional, as presence tells an attribute's type apart there; lists are
//! not packed.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, BufMut, Bytes};
use prost::{
    DecodeError, Message, Oneof,
    encoding::{DecodeContext, WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelProto {
    #[prost(int64, optional, tag = "1")]
    pub(super) ir_version: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) producer_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) producer_version: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub(super) doc_string: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSetIdProto>,
    #[prost(message, repeated, tag = "14")]
    pub(super) metadata_props: Vec<StringStringEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSetIdProto {
    #[prost(string, optional, tag = "1")]
    pub(super) domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub(super) version: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StringStringEntryProto {
    #[prost(string, optional, tag = "1")]
    pub(super) key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<NodeProto>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<Initializer>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "13")]
    pub(super) value_info: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) op_type: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<AttributeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeProto {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(float, optional, tag = "2")]
    pub(super) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(super) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) s: Option<Bytes>,
    #[prost(message, optional, tag = "5")]
    pub(super) t: Option<TensorProto>,
    #[prost(message, optional, tag = "6")]
    pub(super) g: Option<GraphProto>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
    #[prost(int32, optional, tag = "20")]
    pub(super) r#type: Option<i32>,
}

/// Numbers of `AttributeProto.AttributeType`.
pub(super) mod attribute_type {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const INT: i32 = 2;
    pub(crate) const STRING: i32 = 3;
    pub(crate) const TENSOR: i32 = 4;
    pub(crate) const GRAPH: i32 = 5;
    pub(crate) const INTS: i32 = 7;
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(super) data_type: Option<i32>,
    #[prost(string, optional, tag = "8")]
    pub(super) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(super) raw_data: Option<Bytes>,
    #[prost(message, repeated, tag = "13")]
    pub(super) external_data: Vec<StringStringEntryProto>,
    #[prost(int32, optional, tag = "14")]
    pub(super) data_location: Option<i32>,
}

/// A tensor whose elements may be left to be written behind what is encoded of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Initializer {
    pub(super) tensor: TensorProto,
    pub(super) later: Option<Later>,
}

impl From<TensorProto> for Initializer {
    fn from(tensor: TensorProto) -> Self {
        Self { tensor, later: None }
    }
}

/// Elements that are not in memory: all lengths are as if they were.
#[derive(Clone, Debug)]
pub(super) struct Later {
    /// Bytes that they take.
    pub(super) len: u64,
    /// Which of the pieces they are.
    pub(super) piece: usize,
    pub(super) gaps: Gaps,
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        (self.len, self.piece) == (other.len, other.piece)
    }
}

/// Where elements belong into what was encoded without them.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(Arc<Mutex<Vec<Gap>>>);

#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Bytes of the encoded message in front of it.
    pub(super) at: usize,
    pub(super) piece: usize,
}

impl Gaps {
    /// Encodes a message without the elements that are left out, and returns where they belong.
    pub(super) fn encode(&self, message: &ModelProto) -> (Vec<u8>, Vec<Gap>) {
        let mut encoded = Vec::new();
        let room = encoded.remaining_mut();
        self.take();
        message.encode_raw(&mut encoded);
        let at = |gap: Gap| Gap { at: room.saturating_sub(gap.at), ..gap };
        (encoded, self.take().into_iter().map(at).collect())
    }

    /// Notes a gap, by the room that is left in the buffer.
    fn note(&self, at: usize, piece: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Gap { at, piece });
    }

    fn take(&self) -> Vec<Gap> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Message for Initializer {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.tensor.encode_raw(buf);
        if let Some(Later { len, piece, gaps }) = &self.later {
            encode_key(RAW_DATA, WireType::LengthDelimited, buf);
            encode_varint(*len, buf);
            gaps.note(buf.remaining_mut(), *piece);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.tensor.merge_field(tag, wire_type, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        let later = self.later.as_ref().map_or(0, |later| {
            let len = usize::try_from(later.len).unwrap_or(usize::MAX);
            len.saturating_add(key_len(RAW_DATA)).saturating_add(encoded_len_varint(later.len))
        });
        self.tensor.encoded_len().saturating_add(later)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The number of the field `raw_data`.
const RAW_DATA: u32 = 9;

/// The number of `TensorProto.DataLocation` for data in another file.
pub(super) const EXTERNAL: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfoProto {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) r#type: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeProto {
    #[prost(oneof = "TypeValue", tags = "1, 4")]
    pub(super) value: Option<TypeValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum TypeValue {
    #[prost(message, tag = "1")]
    Tensor(TensorTypeProto),
    #[prost(message, tag = "4")]
    Sequence(Box<SequenceTypeProto>),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub(super) elem_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SequenceTypeProto {
    #[prost(message, optional, tag = "1")]
    pub(super) elem_type: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<DimensionProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DimensionProto {
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub(super) value: Option<DimensionValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum DimensionValue {
    #[prost(int64, tag = "1")]
    Fixed(i64),
    #[prost(string, tag = "2")]
    Symbol(String),
}

/// What a message may have, in bytes.
pub(super) const MAX_MESSAGE: u64 = i32::MAX as u64;
