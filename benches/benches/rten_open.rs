//! Opening RTen files, whatever the length of their tensor data.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::rten::open::RtenOpen>()
}
