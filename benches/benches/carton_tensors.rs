//! Reading many small tensors of a carton.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::carton::tensors::CartonTensors>()
}
