//! Verifying the digests of a large file.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::verify::Verify>()
}
