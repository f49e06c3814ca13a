//! Making texts into tokens, with the vocabularies of BERT and GPT-2.

fn main() -> anyhow::Result<()> {
    benches::run::bench::<benches::ptl::tokens::PtlTokens>()
}
