//! Opening files of many tensors, and looking tensors up.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::open::Open>()
}
