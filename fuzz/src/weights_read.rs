//! What is done with bytes that may be safetensors, GGUF, npy or npz.

use modelcrate::{tensor_core::Limits, weights::Reader};

/// Opens, reads and validates any bytes as a file of named tensors.
pub(crate) fn run(bytes: &[u8]) {
    let limits = Limits::default().with_decoded_bytes(1 << 24).with_metadata_bytes(1 << 20);
    let options = Reader::options().limits(limits);
    let Ok(reader) = options.from_bytes(bytes.to_vec()) else { return };
    for tensor in reader.tensors() {
        assert_eq!(
            reader.tensor(tensor.name()).map(modelcrate::weights::Tensor::shape),
            Some(tensor.shape())
        );
        let Ok(bytes) = tensor.stored_bytes() else { continue };
        assert_eq!(bytes.len() as u64, tensor.byte_len());
        if let (Ok(info), Ok(read)) = (tensor.info(), tensor.read()) {
            assert_eq!(*read.info(), info);
            let mut into = vec![0; read.bytes().len()];
            tensor.read_into(&mut into).expect("what can be read can be read into a buffer");
            assert_eq!(into, *read.bytes());
        }
    }
    let _ = reader.validate();
}
