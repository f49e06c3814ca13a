//! Every file of `testdata/ptl/invalid` gets the verdict of `cases.toml`, within its bounds of memory
//! and time; and no cut or change of a small file does more than give an error.

use std::{fs, time::Duration};

use ptl_spec::{
    Dialect, Params, Reader, Spec, Value,
    tensor_core::{Chain, Report, Severity},
};
use test_support::{
    cases::cases,
    files,
    memory::{Counting, measure},
    mutations, testdata, truncations,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
    let cases = cases("ptl");
    assert_eq!(cases.len(), files("ptl/invalid", "ptl").len());
    let mut wrong = Vec::new();
    for case in cases {
        let (name, file) = (case.file(), case.bytes());
        let taken = measure(|| verdict(&file));
        let expected = ["expect", "rule", "message"].map(|key| case.text(key));
        if taken.result != expected {
            wrong.push(format!("{name}: {:#?}", taken.result));
        }
        assert!(taken.bytes < 8 << 20, "{name} took {} bytes", taken.bytes);
        assert!(taken.time < Duration::from_secs(5), "{name} took {:?}", taken.time);
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
fn every_mutation() {
    for name in [ARCHIVE, FLATBUFFER] {
        let file = small(name);
        let taken = measure(|| mutations(&file, exhaust));
        assert!(taken.bytes < 16 << 20, "{name}: {} bytes", taken.bytes);
    }
}

#[test]
fn every_mutation_of_specs() {
    for path in files("ptl/calls/specs", "json") {
        let text = fs::read(&path).unwrap();
        truncations(text.trim_ascii_end(), |cut| {
            Spec::parse(cut).unwrap_err();
        });
        mutations(&text, |changed| {
            let report = Spec::options().lint(changed);
            let parsed = Spec::parse(changed);
            assert!(parsed.is_ok() || !report.is_valid());
            if let Ok(spec) = parsed {
                let _ = spec.signature().json_schema();
                Spec::parse(spec.to_text()).unwrap();
            }
        });
    }
}

/// Numbers of 16 bits are narrowed where they are.
#[cfg(feature = "image")]
#[test]
fn pictures_of_16_bits_are_held_once() {
    const SIDE: u32 = 1000;
    let samples = vec![0; (SIDE * SIDE * 6) as usize];
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIDE, SIDE);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Sixteen);
    encoder.write_header().unwrap().write_image_data(&samples).unwrap();
    let taken = measure(|| ptl_spec::Image::decode(&file).unwrap());
    assert!(taken.bytes < samples.len() as u64 + (1 << 20), "{}", taken.bytes);
}

#[test]
fn claims_of_pickles_take_no_memory() {
    let reader = Reader::from_bytes(small(ARCHIVE)).unwrap();
    let memory = measure(|| reader.tensors().unwrap().len()).bytes;
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
    let taken = measure(|| {
        let spec = Spec::options().dialect(Dialect::Android).parse(&text).unwrap();
        let signature = spec.signature();
        assert_eq!((signature.parameters.len(), signature.results.len()), (MANY, MANY));
        // Both rules are full, and say how many more there are.
        let report = spec.lint();
        assert_eq!(report.findings().len(), 2 * (Report::PER_RULE + 1));
        assert_eq!(report.omitted() as usize, MANY + MANY / 2 - 2 * Report::PER_RULE);
        spec
    });
    let spec = taken.result;
    assert!(taken.bytes < 24 * text.len() as u64, "{} for {}", taken.bytes, text.len());
    assert!(taken.time < Duration::from_secs(20), "{:?}", taken.time);
    let taken = measure(|| {
        let mut params = Params::new();
        for index in 0..MANY {
            params.insert(format!("p{index}"), 1);
        }
        let mut call = spec.call(&params).unwrap();
        call.pack().unwrap();
        call.unpack(&Value::Tuple(vec![Value::Int(1); MANY])).unwrap()
    });
    assert_eq!(taken.result.iter().len(), MANY / 2);
    assert!(taken.time < Duration::from_secs(20), "{:?}", taken.time);
}
