//! Verifying every digest of a carton.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::carton::verify::CartonVerify>()
}
