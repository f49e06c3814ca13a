//! Writing and editing RTen files.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::rten::write::RtenWrite>()
}
