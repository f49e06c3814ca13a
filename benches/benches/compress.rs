//! Writing zstd-compressed tensors.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::compress::Compress>()
}
