//! Model files of 512 MiB in both containers: listing tensors, and replacing the spec in them.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::ptl::files::PtlFiles>()
}
