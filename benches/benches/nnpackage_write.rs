//! Building packages, and writing models, that are not forced to the disk.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::nnpackage::write::NnpackageWrite>()
}
