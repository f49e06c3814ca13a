use clap::ValueEnum;
use modelcrate::rten_format::Model;

use crate::{options::Input, outcome::Outcome, output};

/// Draw the graph of a model, subgraphs included, as text for a drawing program
///
/// Operators are boxes; values and constants are the arrows between them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten graph model.rten | dot -Tsvg > model.svg
  modelcrate rten graph --language mermaid model.rten > model.mmd")]
pub(crate) struct Graph {
    /// The model; - is standard input
    file: Input,
    /// The language of the drawing
    #[arg(long, value_enum, default_value_t)]
    language: Language,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Language {
    /// DOT, for Graphviz
    #[default]
    Dot,
    /// Mermaid, for Markdown
    Mermaid,
}

impl Graph {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = super::open(&self.file)?;
        let model: &Model = reader.model();
        let text = match self.language {
            Language::Dot => model.dot().to_string(),
            Language::Mermaid => model.mermaid().to_string(),
        };
        output::print_text(&text)?;
        Ok(Outcome::Fine)
    }
}
