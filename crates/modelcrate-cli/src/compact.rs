use anyhow::bail;
use modelcrate::{
    AnyReader, Format,
    tensor_core::{Report, Severity},
};
use serde::Serialize;

use crate::{
    editing::{Done, Editing, Opened},
    failure::About,
    only::{Only, format_of},
    options::Input,
    outcome::Outcome,
};

/// Rewrite a file without the bytes that nothing refers to, such as edits leave behind
///
/// Tensors and files keep their order and their stored bytes, and what is shared stays shared. A model
/// of PyTorch Live or RTen gets the layout that its own tools give it, and the files of a carton are
/// compressed again as the options say; its model hash stays. Stored bytes are compared with their
/// digests on the way: where they differ, or the new file would have another fault, nothing is written
/// without --force, which reports each fault.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate compact model.zt
  modelcrate compact model.ptl -o small.ptl
  modelcrate compact model.carton --compression zstd --level 19")]
pub(crate) struct Compact {
    /// The file to rewrite; - is standard input
    file: Input,
    #[cfg(feature = "carton")]
    #[command(flatten, next_help_heading = "Cartons")]
    store: Only<crate::carton::store::Store>,
    #[command(flatten)]
    editing: Editing,
}

#[derive(Serialize)]
struct Nothing {}

impl Compact {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let Self { file, editing, .. } = &self;
        let opened = match file.is_dir() {
            true => None,
            false => Some(editing.open(file).about(file)?),
        };
        let format = format_of(file, opened.as_ref().map(|opened| &opened.source)).about(file)?;
        #[cfg(feature = "carton")]
        if format == Format::Carton {
            return self.carton(opened);
        }
        #[cfg(feature = "carton")]
        self.store.check(format, &[]).about(file)?;
        let Some(opened) = opened else { bail!("{}: is a folder", file.display()) };
        self.rewrite(format, &opened)
    }

    fn rewrite(&self, format: Format, opened: &Opened) -> anyhow::Result<Outcome> {
        let Self { file, editing, .. } = self;
        let reader = AnyReader::from_source(opened.source.clone()).about(file)?;
        let changed = editing.rewrite(file, opened, &reader.lint(), |mut sink| match &reader {
            #[cfg(feature = "ptl")]
            AnyReader::Ptl(reader) => {
                modelcrate::ptl_spec::rewrite(reader, |_| true, &mut sink)?;
                Ok(sink)
            }
            #[cfg(feature = "rten")]
            AnyReader::Rten(reader) => {
                use modelcrate::rten_format::{Editor, Error, WriteOptions};
                let options = WriteOptions::default().unchecked();
                let editor = Editor::from_reader(reader.clone(), options);
                Ok(editor.write(sink, |_| Err(Error::NonePending))?)
            }
            #[cfg(feature = "ztensor")]
            AnyReader::ZTensor(reader) => {
                use modelcrate::ztensor::{WriteOptions, rewrite};
                let verify = editing.force.verify();
                Ok(rewrite(reader, sink, WriteOptions::default().verify(verify))?)
            }
            _ => bail!("is {}, in which nothing is unused", format.title()),
        })?;
        // What was not compared on the way.
        let is_unchecked = editing.force.force && format == Format::ZTensor;
        let found = if is_unchecked { reader.validate() } else { Report::default() };
        let errors = found.into_iter().filter(|finding| finding.severity == Severity::Error);
        let changed = changed.found(errors);
        let what = "compacted".to_owned();
        editing.report(file, &Done { what, changes: Nothing {}, lines: Vec::new(), changed })
    }

    #[cfg(feature = "carton")]
    fn carton(self, opened: Option<Opened>) -> anyhow::Result<Outcome> {
        use modelcrate::carton_format::{self, Reader};

        use crate::{
            carton::rewrite::{Done, Rewrite},
            progress::Progress,
        };

        #[derive(Serialize)]
        struct Files {
            files: usize,
        }

        let options = self.store.options.options()?;
        let rewrite = Rewrite::new(self.file, self.editing);
        let reader = rewrite.open_as(opened, Reader::options())?;
        let bytes = reader.files().filter_map(|file| file.len().ok()).fold(0, u64::saturating_add);
        let bar = Progress::new(&rewrite.input, bytes);
        let outcome = rewrite.run(&reader, options, |writer| {
            let finished = carton_format::repack(&reader, writer, |bytes| bar.inc(bytes))?;
            bar.finish();
            let changes = Files { files: reader.manifest().len() };
            Ok((finished, Done { what: "compacted".to_owned(), changes, lines: Vec::new() }))
        });
        bar.finish();
        outcome
    }
}
