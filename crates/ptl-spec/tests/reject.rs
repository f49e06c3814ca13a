//! Every file of `testdata/ptl/invalid` gets the verdict of `cases.toml`, within its bounds of memory
//! and time; and no cut or change of a small file does more than give an error.
#![expect(unsafe_code, reason = "memory is counted by the allocator of this test")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs,
    time::{Duration, Instant},
};

use ptl_spec::{
    Params, Profile, Reader, Spec, Value,
    tensor_core::{Chain, Severity},
};
use test_support::{files, mutations, testdata, truncations};

/// Counts the bytes that each thread holds, and the most that it held.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = HELD.try_with(|held| {
            held.set(held.get().saturating_add(layout.size()));
            let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
        });
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(layout.size())));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs something and returns the most memory that it held, in bytes, and how long it took.
fn measured<T>(run: impl FnOnce() -> T) -> (T, usize, Duration) {
    let before = HELD.get();
    MOST.set(before);
    let start = Instant::now();
    let result = run();
    (result, MOST.get().saturating_sub(before), start.elapsed())
}

/// What became of a file: the verdict, the rule and the message, as `cases.toml` has them.
fn verdict(file: &[u8]) -> [String; 3] {
    let reader = match Reader::from_bytes(file.to_vec()) {
        Ok(reader) => reader,
        Err(error) => {
            let message = Chain(&error).to_string();
            return ["open-error".to_owned(), error.rule().to_owned(), message];
        }
    };
    let report = reader.validate();
    let worst = report.worst();
    let verdict = match worst {
        Some(Severity::Error) => "verify-error",
        Some(Severity::Warning) => "verify-warning",
        _ => "valid",
    };
    let first = report.findings().iter().find(|finding| Some(finding.severity) == worst);
    let (rule, message) = first.map_or(("", ""), |f| (&f.rule, &f.message));
    [verdict.to_owned(), rule.to_owned(), message.to_owned()]
}

#[test]
fn every_case_has_its_verdict() {
    let cases = fs::read_to_string(testdata("ptl/cases.toml")).unwrap();
    let cases: toml::Table = cases.parse().unwrap();
    let cases = cases["case"].as_array().unwrap();
    assert_eq!(cases.len(), files("ptl/invalid", "ptl").len());
    let mut wrong = Vec::new();
    for case in cases {
        let name = case["file"].as_str().unwrap();
        let file = fs::read(testdata("ptl/invalid").join(name)).unwrap();
        let (found, memory, time) = measured(|| verdict(&file));
        let expected = ["expect", "rule", "message"].map(|key| case[key].as_str().unwrap());
        if found != expected {
            wrong.push(format!("{name}: {found:#?}"));
        }
        assert!(memory < 8 << 20, "{name} took {memory} bytes");
        assert!(time < Duration::from_secs(5), "{name} took {time:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Opens and reads everything of a file; nothing but errors may come of it.
fn exhaust(file: &[u8]) {
    let Ok(reader) = Reader::from_bytes(file.to_vec()) else { return };
    let is_valid = reader.validate().is_valid();
    if let Ok(tensors) = reader.tensors() {
        for tensor in tensors {
            let bytes = tensor.bytes();
            assert!(!is_valid || bytes.is_ok(), "valid, but {:?}", bytes.err());
        }
    }
    for file in reader.extra_files() {
        let _ = file.bytes();
    }
}

const ARCHIVE: &str = "quant.ptl";
const FLATBUFFER: &str = "img_nospec_fb.ptl";

fn small(name: &str) -> Vec<u8> {
    fs::read(testdata("ptl/valid/torch251").join(name)).unwrap()
}

#[test]
fn every_truncation() {
    for name in [ARCHIVE, FLATBUFFER] {
        let file = small(name);
        // A FlatBuffer whose end holds nothing that is looked at may still open.
        truncations(&file, exhaust);
        assert!(Reader::from_bytes(file[..8].to_vec()).is_err(), "{name}");
    }
}

#[test]
fn every_mutation_of_an_archive() {
    let file = small(ARCHIVE);
    let ((), memory, _) = measured(|| mutations(&file, exhaust));
    assert!(memory < 16 << 20, "{memory} bytes");
}

#[test]
fn every_mutation_of_a_flatbuffer() {
    let file = small(FLATBUFFER);
    let ((), memory, _) = measured(|| mutations(&file, exhaust));
    assert!(memory < 16 << 20, "{memory} bytes");
}

#[test]
fn every_mutation_of_specs() {
    for path in files("ptl/calls/specs", "json") {
        let text = fs::read(&path).unwrap();
        truncations(text.trim_ascii_end(), |cut| {
            Spec::parse(cut).unwrap_err();
        });
        mutations(&text, |changed| {
            let report = Spec::options().check(changed);
            let parsed = Spec::parse(changed);
            assert!(parsed.is_ok() || !report.is_valid());
            if let Ok(spec) = parsed {
                let _ = spec.signature().json_schema();
                Spec::parse(spec.to_text()).unwrap();
            }
        });
    }
}

#[test]
fn claims_of_pickles_take_no_memory() {
    let reader = Reader::from_bytes(small(ARCHIVE)).unwrap();
    let (_, memory, _) = measured(|| reader.tensors().unwrap().len());
    assert!(memory < 64 << 10, "{memory}");
}

/// Specs of nothing but stubs, texts for numbers, and results of one name: what is kept of them is
/// bounded, and no list is searched for each item of another.
#[test]
fn long_specs_take_time_as_they_are_long() {
    const MANY: usize = 50_000;
    let join = |item: &dyn Fn(usize) -> String| (0..MANY).map(item).collect::<Vec<_>>().join(",");
    let stubs = join(&|index| format!("\"$p{index}\""));
    let texts = join(&|_| "\"1\"".to_owned());
    let keys =
        join(&|index| format!(r#"{{"type":"scalar_long","key":"k{}"}}"#, index % (MANY / 2)));
    let text = format!(
        r#"{{"pack":{{"type":"tuple","items":[
            {{"type":"tensor","dtype":"long","sizes":[{MANY}],"items":[{stubs}]}},
            {{"type":"tensor","dtype":"long","sizes":[{MANY}],"items":[{texts}]}}]}},
            "unpack":{{"type":"tuple","items":[{keys}]}}}}"#
    );
    let (spec, memory, time) = measured(|| {
        let spec = Spec::options().profile(Profile::Android).parse(&text).unwrap();
        let signature = spec.signature();
        assert_eq!((signature.parameters.len(), signature.results.len()), (MANY, MANY));
        assert_eq!(spec.check().findings().len(), 1000 + 1000);
        spec
    });
    assert!(memory < 24 * text.len(), "{memory} for {}", text.len());
    assert!(time < Duration::from_secs(20), "{time:?}");
    let (results, _, time) = measured(|| {
        let mut params = Params::new();
        for index in 0..MANY {
            params.insert(format!("p{index}"), 1);
        }
        let mut call = spec.call(&params).unwrap();
        call.pack().unwrap();
        call.unpack(&Value::Tuple(vec![Value::Int(1); MANY])).unwrap()
    });
    assert_eq!(results.iter().len(), MANY / 2);
    assert!(time < Duration::from_secs(20), "{time:?}");
}
