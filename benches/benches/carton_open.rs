//! Opening cartons and reading what describes them.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::carton::open::CartonOpen>()
}
