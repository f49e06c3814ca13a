//! Claims of a file do not take memory, and no more time than its length: the allocator of this
//! program counts.
#![expect(unsafe_code, reason = "an allocator that counts cannot be had without it")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use circle_format::{Reader, flex};
use test_support::testdata;

/// Notes the bytes that each thread has, and the most that it had.
struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

// SAFETY: every call is handed on to the allocator of the system as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the most memory that something took, in bytes.
fn peak(run: impl FnOnce()) -> isize {
    let before = NOW.get();
    PEAK.set(before);
    run();
    PEAK.get() - before
}

#[test]
fn flexbuffers_of_shared_parts() {
    // Lists of 255 elements, each of which points at the list before.
    let mut bytes = vec![0, 0];
    for _ in 0..8 {
        bytes.push(200);
        bytes.extend((0..200).map(|index| (index + 3).min(255) as u8));
        bytes.extend([10 << 2; 200]);
    }
    bytes.extend([200, 10 << 2, 1]);
    let taken = peak(|| drop(flex::Value::parse(&bytes)));
    assert!(taken < 64 << 20, "{taken}");
}

/// Every sixth number of a model becomes a large one: no list is longer than the file.
#[test]
fn lengths_that_lie() {
    let model = std::fs::read(testdata("nnpackage/valid/everything.circle")).unwrap();
    for at in (8..model.len() - 4).step_by(24) {
        for number in [u32::MAX, 1 << 16] {
            let mut changed = model.clone();
            changed[at..at + 4].copy_from_slice(&number.to_le_bytes());
            let taken = peak(|| {
                if let Ok(reader) = Reader::from_bytes(changed) {
                    drop(reader.diagnoses());
                }
            });
            assert!(taken < 4 << 20, "{taken} bytes with {number} at byte {at}");
        }
    }
}
