//! What the fuzz target `ptl_read` does with its input; a test of the crate replays the corpus.

use ptl_spec::{Reader, SPEC, rewrite, tensor_core::Limits, torchscript, with_extra_files};

/// Opens, reads, validates, rewrites and edits any bytes: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    let limits = Limits::default().with_decoded_bytes(1 << 20).with_document_bytes(1 << 20);
    let Ok(reader) = Reader::options().limits(limits).from_bytes(bytes.to_vec()) else { return };
    let is_valid = reader.validate().is_valid();
    if let Ok(tensors) = reader.tensors() {
        for tensor in tensors {
            match (tensor.extent(), tensor.bytes()) {
                (Ok(_), Ok(bytes)) => {
                    let width = tensor.scalar_type().width();
                    let len = tensor.shape().elements().unwrap_or_default() * width;
                    assert_eq!(bytes.len() as u64, len);
                }
                // A limit, or a record that cannot be decoded.
                (Ok(_), Err(_)) => {}
                // No elements are read without a look at their record.
                (Err(_), bytes) => {
                    assert!(!is_valid && bytes.map_or(true, |bytes| bytes.is_empty()));
                }
            }
        }
    }
    for file in reader.extra_files() {
        let _ = file.bytes();
    }
    for sparse in reader.sparse_tensors().into_iter().flatten() {
        let _ = sparse.verify();
    }
    let mut written = Vec::new();
    if rewrite(&reader, |_| true, &mut written).is_ok() {
        let written = Reader::from_bytes(written).expect("a rewritten file opens");
        if let Ok(bytecode) = reader.bytecode() {
            assert_eq!(written.bytecode().ok(), Some(bytecode));
        }
    }
    let mut archive = Vec::new();
    if torchscript(&reader, &mut archive).is_ok() {
        let archive = Reader::from_bytes(archive).expect("an archive opens");
        assert!(archive.sources().is_ok_and(|mut sources| sources.next().is_some()));
    }
    let Ok(edited) = with_extra_files(bytes, [(SPEC, Some("{}".into()))]) else { return };
    let edited = Reader::from_bytes(edited).expect("an edited file opens");
    assert_eq!(edited.spec_text().ok().flatten().as_deref(), Some(&b"{}"[..]));
    // A part that reached beyond the end of a FlatBuffer may end inside now.
    if let Ok(bytecode) = reader.bytecode() {
        assert_eq!(edited.bytecode().ok(), Some(bytecode));
    }
}
