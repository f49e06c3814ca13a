//! Reading one large tensor from a warm page cache.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::read::Read>()
}
