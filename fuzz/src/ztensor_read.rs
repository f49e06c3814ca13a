//! What the fuzz target `ztensor_read` does with its input; a test of the crate replays the corpus.

use ztensor::{
    Axis, CodeOrder, Convention, Reader, Writer,
    tensor_core::{Limits, Profile, Verify},
};

/// Opens, reads, validates, migrates and rewrites any bytes: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    let limits = Limits::default()
        .with_decoded_bytes(1 << 20)
        .with_metadata_bytes(1 << 16)
        .with_rank(1 << 10)
        .with_depth(64);
    let options = Reader::options().limits(limits).profile(Profile::Lenient).verify(Verify::Always);
    let Ok(reader) = options.from_bytes(bytes.to_vec()) else { return };
    let report = reader.validate();
    let lint = reader.lint();
    assert!(lint.findings().iter().all(|finding| report.findings().contains(finding)));
    let valid = report.is_valid();
    for tensor in reader.tensors() {
        let _ = tensor.info();
        let _ = tensor.attributes();
        let _ = tensor.verify();
        let _ = tensor.extent();
        let dense = tensor.read();
        if let Ok(dense) = &dense {
            assert_eq!(dense.info().byte_len().ok(), Some(dense.bytes().len() as u64));
            let mut buffer = vec![0; dense.bytes().len()];
            assert!(tensor.read_into(&mut buffer).is_ok() && buffer == dense.bytes()[..]);
        }
        if let Ok(group) = tensor.quantized() {
            for axis in [Axis::Last, Axis::First] {
                let order = CodeOrder::LowFirst;
                let _ = group.dequantize(Convention { axis, order, zero_offset: 1 });
            }
        }
        for blob in tensor.blobs().into_iter().flatten() {
            let _ = blob.bytes();
        }
    }
    let mut writer = Writer::new(Vec::new());
    if ztensor::migrate(&reader, &mut writer).is_ok()
        && let Ok(file) = writer.finish()
    {
        let migrated = Reader::from_bytes(file).expect("does not open");
        let new = migrated.lint().new_since(&lint);
        assert!(new.is_valid(), "{new:?}");
        assert!(!valid || migrated.validate().is_valid());
    }
}
