//! Replays the inputs that fuzzing has found, and changed buffers, through the fuzz target.

use test_support::{mutations, replay, truncations};

use crate::{flat_tables_read::run, sample::tree};

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let replayed = replay(&["fuzz/corpus/flat_tables_read"], run);
    assert!(replayed > 3, "{replayed}");
}

#[test]
fn changed_buffers_break_nothing() {
    for depth in [0, 1] {
        let bytes = tree(depth);
        run(&bytes);
        truncations(&bytes, run);
        mutations(&bytes, run);
    }
}
