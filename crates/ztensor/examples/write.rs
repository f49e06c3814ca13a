//! Writes dense and sparse tensors, compressed and with digests.
//!
//! ```sh
//! cargo run -p ztensor-format --example write -- new.zt
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use ztensor::{
    Compression, Csr, Storage, Writer,
    tensor_core::{TensorBuf, digest::Algorithm},
};

fn main() -> ztensor::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "new.zt".to_owned());
    let zstd = Compression::Zstd { level: 3, frame: None };
    let storage = Storage::default().compression(zstd).digest(Algorithm::Sha256);
    let mut writer = Writer::options().storage(storage).create(&path)?;
    writer.set_attributes(&[("license", "MIT")].into_iter().collect());
    writer.add("weight", &TensorBuf::from_vec([2, 3], vec![1_i32, 2, 3, 4, 5, 6])?)?;
    let csr = Csr::from_parts(
        [2, 3],
        TensorBuf::from_slice([2], &[0.5_f32, 1.5])?,
        TensorBuf::from_slice([2], &[0_u64, 2])?,
        TensorBuf::from_slice([3], &[0_u64, 1, 2])?,
    )?;
    writer.add_csr("sparse", &csr)?;
    // There is no file before this.
    writer.finish()?;
    println!("{path} is written");
    Ok(())
}
