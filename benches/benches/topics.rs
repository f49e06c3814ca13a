//! All cases under criterion.

fn main() -> anyhow::Result<()> {
    benches::run::criterion()
}
