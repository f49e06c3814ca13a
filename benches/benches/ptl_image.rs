//! Making a picture of 12 megapixels into a tensor.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::ptl::image::PtlImage>()
}
