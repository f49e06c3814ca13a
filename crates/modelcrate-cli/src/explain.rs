use std::fmt::Write as _;

use anyhow::ensure;
use modelcrate::rules::Rule;
use serde::Serialize;

use crate::{
    options::Print,
    outcome::Outcome,
    output::{self, table, table_text},
};

/// Say what a rule means that verify names, and what to do
///
/// Without a rule, all are listed; with the start of some, up to a slash or a hyphen, those.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate explain zt/padding
  modelcrate explain carton/manifest-")]
pub(crate) struct Explain {
    /// Rules such as zt/padding, or the start of some, such as zt/
    #[arg(value_name = "RULE")]
    rules: Vec<String>,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Explained {
    rules: Vec<Rule>,
}

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let mut rules = Vec::new();
        for pattern in &self.rules {
            let before = rules.len();
            rules.extend(Rule::matching(pattern));
            ensure!(rules.len() > before, "{pattern}: is no rule (explain alone lists all)");
        }
        if self.rules.is_empty() {
            rules.extend(Rule::all());
        }
        let is_list = self.rules.is_empty() || rules.len() > self.rules.len();
        let text = if is_list { list(&rules) } else { rules.iter().map(explained).collect() };
        output::print_result(self.print, &Explained { rules }, &text)?;
        Ok(Outcome::Fine)
    }
}

/// Writes a line for each rule.
fn list(rules: &[Rule]) -> String {
    let mut table = table(["rule", "severity", "meaning"], &[]);
    for rule in rules {
        table.add_row([rule.id, &severities(*rule), rule.meaning]);
    }
    table_text(&table)
}

fn explained(rule: &Rule) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!("{bold}{}{bold:#} ({})\n", rule.id, severities(*rule));
    for (what, said) in [("means", rule.meaning), ("do", rule.remedy), ("source", rule.source)] {
        let _ = writeln!(text, "  {what:<7} {said}");
    }
    text
}

fn severities(rule: Rule) -> String {
    let severities = rule.severities().map(|severity| severity.to_string());
    severities.collect::<Vec<_>>().join(" or ")
}
