//! Models without what their authors may not want to hand out.

use modelcrate::ptl_spec::{self, File, Reader};

use crate::{
    editing::{Changes, Done, Editing},
    failure::About,
    options::Input,
    outcome::Outcome,
};

/// Rewrite a model without what its author may not want to hand out
///
/// Debug records hold lines of the author's Python and paths of the author's machine; every runtime
/// works without them. The full runtime does not work without the source of the model's classes. A
/// FlatBuffer has no debug records, but may have that source.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl strip model.ptl --dry-run
  modelcrate ptl strip model.ptl -o phone.ptl --code")]
pub(crate) struct Strip {
    /// The model to read; - is standard input
    input: Input,
    /// Take out the source of the model's classes, too, which the lite interpreter does not read
    #[arg(long)]
    code: bool,
    #[command(flatten)]
    editing: Editing,
}

impl Strip {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let Self { input, editing, .. } = &self;
        let what = if self.code { ptl_spec::Strip::Code } else { ptl_spec::Strip::DebugRecords };
        let opened = editing.open(input).about(input)?;
        let reader = Reader::from_source(opened.source.clone()).about(input)?;
        let removed = removed(&reader, what).about(input)?;
        let changed = editing.rewrite(input, &opened, &reader.lint(), |mut sink| {
            ptl_spec::rewrite(&reader, |record| !what.removes(record), &mut sink)?;
            Ok(sink)
        })?;
        let done = Changes { removed, ..Changes::default() }.done(changed);
        editing.report(input, &Done { what: "stripped".to_owned(), ..done })
    }
}

/// Returns the names of what is taken out, if that can be.
fn removed(reader: &Reader, what: ptl_spec::Strip) -> ptl_spec::Result<Vec<String>> {
    what.check(reader)?;
    let names = reader.files()?.map(File::path).filter(|name| what.removes(name));
    Ok(names.map(str::to_owned).collect())
}
