//! What the fuzz target `rten_read` does with its input; a test of the crate replays the corpus.

use rten_format::{Model, Reader, tensor_core::Limits, topology::Topology};

/// Opens, reads, validates, shows and rewrites any bytes: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    let limits = Limits::default().with_decoded_bytes(1 << 20);
    let reader = match Reader::options().limits(limits).from_bytes(bytes.to_vec()) {
        Ok(reader) => reader,
        Err(error) => {
            let _ = (error.to_string(), error.rule(), error.kind(), error.at());
            return;
        }
    };
    let model_data = reader.source().read(reader.model_data(), "model data").unwrap();
    // In a buffer of its own, which ends where the model data does.
    let model_data: Box<[u8]> = (*model_data).into();
    assert!(Model::parse(model_data, &limits).is_ok(), "only flat-tables accepts this");
    let valid = reader.validate().is_valid();
    for tensor in reader.tensors() {
        match (tensor.extent(), tensor.bytes()) {
            (Ok(extent), Ok(bytes)) => {
                let extent = extent.expect("elements are stored as they are");
                assert_eq!(extent.len(), bytes.len() as u64);
                assert_eq!(
                    tensor.info().and_then(|info| Ok(info.byte_len()?)).ok(),
                    Some(extent.len())
                );
                assert!(tensor.read().is_ok() && tensor.verify().is_ok());
            }
            (extent, bytes) => {
                assert!(extent.is_err() && bytes.is_err());
                assert!(!valid, "a constant cannot be read, but validation finds nothing");
            }
        }
        if let Some(found) = tensor.name().and_then(|name| reader.tensor(name)) {
            assert_eq!(found.name(), tensor.name());
        }
    }
    let model = reader.model();
    let topology = Topology::of(model);
    for scope in 0..topology.scopes().len() {
        let order = topology.order(scope);
        assert!(!valid || order.cycle.is_empty());
    }
    let _ = model.requirements(reader.version()).release();
    let totals = model.totals();
    let shown = [model.dump().to_string()];
    assert!(shown.iter().all(|text| text.is_ascii() || !text.contains('\u{202e}')));
    if let Ok(bytes) = model.to_bytes() {
        let again = Model::parse(bytes, &Limits::default());
        assert!(again.is_ok_and(|again| again.totals() == totals));
    }
}
