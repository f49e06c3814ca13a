//! Writing files: many small tensors, and one large one.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::write::Write>()
}
