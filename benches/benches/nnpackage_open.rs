//! Opening packages and checking the models in them, however large their weights are.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::nnpackage::open::NnpackageOpen>()
}
