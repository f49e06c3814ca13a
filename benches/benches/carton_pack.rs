//! Packing, unpacking and copying one large file.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::carton::pack::CartonPack>()
}
