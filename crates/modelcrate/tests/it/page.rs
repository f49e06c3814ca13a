//! Pages about files.

use std::io;

use modelcrate::{
    AnyReader, DiffOptions, Verdict,
    carton_format::{self, Description, Runner, TensorSpec},
    circle_format::model::{BuiltinOperator, ModelBuilder, Operator, Schema, Tensor, TensorType},
    nnpackage::{Builder, WriteOptions},
    page::{Page, PageOptions, Suspicion},
    ptl_spec::{SPEC, with_extra_files},
    rten_format::{self, GraphBuilder, OperatorType, Value},
    ztensor::Writer,
};
use tensor_core::{DType, ReadAt, Source, TensorBuf, digest::Algorithm, symbolic::SymbolicShape};
use test_support::{files, testdata};

/// A name that would be more than text if it were not escaped.
const HOSTILE: &str = "</script><img src=x onerror=\"alert(1)\">'&|`\u{202e}\n";

const ESCAPED: &str =
    "&lt;/script&gt;&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&#39;&amp;|`U+202EU+000A";

fn page<'a>(reader: &'a AnyReader, options: PageOptions) -> Page<'a> {
    Page::of("model", Some(reader), reader.validate(), options)
}

fn html(page: &Page<'_>) -> String {
    let mut out = Vec::new();
    page.html(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn markdown(page: &Page<'_>) -> String {
    let mut out = Vec::new();
    page.markdown(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn floats(values: &[f32]) -> TensorBuf {
    TensorBuf::from_slice([values.len() as u64], values).unwrap()
}

fn zt_bytes(tensors: &[(&str, TensorBuf)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for (name, tensor) in tensors {
        writer.add(name, tensor).unwrap();
    }
    writer.finish().unwrap()
}

fn zt(tensors: &[(&str, TensorBuf)]) -> AnyReader {
    AnyReader::from_bytes(zt_bytes(tensors)).unwrap()
}

fn circle() -> Vec<u8> {
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph(HOSTILE);
    let x = graph.input(Tensor::new(HOSTILE, TensorType::Float32, [2]));
    let y = graph.output(Tensor::new("y", TensorType::Float32, [2]));
    graph.operator(BuiltinOperator::RELU, Operator::new([x], [y]));
    graph.finish();
    model.finish().to_bytes().unwrap()
}

fn rten() -> Vec<u8> {
    let mut graph = GraphBuilder::new();
    let input = graph.input(HOSTILE, Value::default()).unwrap();
    let output = graph.value("y", Value::default()).unwrap();
    graph.operator(HOSTILE, OperatorType::Relu, None, &[Some(input)], &[Some(output)]).unwrap();
    graph.output(output).unwrap();
    let model = rten_format::Model { graph: graph.finish(), metadata: None };
    rten_format::Writer::new(Vec::new(), &model).unwrap().finish().unwrap()
}

fn ptl() -> Vec<u8> {
    let bytes = std::fs::read(testdata("ptl/valid/torch251/img_nospec.ptl")).unwrap();
    let spec = serde_json::json!({
        "pack": {"type": "tensor", "dtype": "float", "sizes": [1, 2], "items": ["$a", 0.5]},
        "unpack": {"type": "tensor", "dtype": "float", "key": HOSTILE},
    });
    with_extra_files(&bytes, [(SPEC, Some(spec.to_string().into_bytes().into()))]).unwrap()
}

fn carton() -> Vec<u8> {
    let mut description = Description::new(Runner::new("x", "=1.0.0".parse().unwrap()));
    description.inputs = Some(vec![TensorSpec::new(HOSTILE, DType::F32, SymbolicShape::Any)]);
    let mut writer = carton_format::Writer::new(Vec::new());
    writer.description(&description).unwrap();
    writer.file("model/x", b"x").unwrap();
    writer.finish().unwrap().sink
}

fn nnpackage() -> Vec<u8> {
    let mut builder = Builder::default();
    builder.model("m.circle", Source::from_bytes(circle())).unwrap();
    WriteOptions::default().write_to(Vec::new(), &builder).finish().unwrap()
}

#[test]
fn names_are_text_in_every_format() {
    let zt = {
        let mut writer = Writer::new(Vec::new());
        writer.add(HOSTILE, &floats(&[1.0])).unwrap();
        writer.finish().unwrap()
    };
    for (format, bytes) in [
        ("carton", carton()),
        ("circle", circle()),
        ("nnpackage", nnpackage()),
        ("ptl", ptl()),
        ("rten", rten()),
        ("ztensor", zt),
    ] {
        let reader = AnyReader::from_bytes(bytes).unwrap();
        assert_eq!(reader.format().name(), format);
        let page = Page::of(HOSTILE, Some(&reader), reader.validate(), PageOptions::default());
        let html = html(&page);
        // The title, the heading, and the name in the model.
        assert!(html.matches(ESCAPED).count() > 2, "{format}: {html}");
        for raw in ["<img", "\u{202e}"] {
            assert!(!html.contains(raw), "{format}: {raw:?}");
        }
        let ends = html.matches("</script>").count();
        assert_eq!(ends, html.matches("<script").count(), "{format}");
        let markdown = markdown(&page);
        assert!(markdown.contains("&#60;img src=x onerror"), "{format}: {markdown}");
        assert!(!markdown.contains("<img") && !markdown.contains('\u{202e}'), "{format}");
    }
}

#[test]
fn the_policy_names_what_the_page_holds() {
    let reader = zt(&[("w", floats(&[1.0]))]);
    let html = html(&page(&reader, PageOptions::default()));
    let policy = html.split_once("Security-Policy\" content=\"").unwrap().1;
    let policy = policy.split_once('"').unwrap().0;
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    for part in ["style", "script"] {
        let text = html.split_once(&format!("<{part}>")).unwrap().1;
        let text = text.split_once(&format!("</{part}>")).unwrap().0;
        let digest = Algorithm::Sha256.digest(text.as_bytes()).to_string();
        let source = policy.split_once(&format!("{part}-src 'sha256-")).unwrap().1;
        let source = source.split_once('\'').unwrap().0;
        assert_eq!(format!("sha256:{}", hex_of_base64(source)), digest, "{part}");
    }
    for word in [" style=", " onload=", " onclick=", "http:", "https:", " src=", "unsafe"] {
        let markup = html.split_once("<body>").unwrap().1.split_once("<script>").unwrap().0;
        assert!(!markup.contains(word), "{word}");
    }
}

fn hex_of_base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte));
    let bits: String = digits.map(|digit| format!("{digit:06b}")).collect();
    let bytes = bits.as_bytes().chunks_exact(8);
    let byte = |bits: &[u8]| u8::from_str_radix(str::from_utf8(bits).unwrap(), 2).unwrap();
    bytes.map(|bits| format!("{:02x}", byte(bits))).collect()
}

#[test]
fn every_file_of_testdata_has_a_page() {
    for (folder, extension) in [
        ("carton/valid", "carton"),
        ("carton/invalid", "carton"),
        ("nnpackage/valid", "circle"),
        ("nnpackage/valid", "tflite"),
        ("nnpackage/valid", "zip"),
        ("ptl/valid/torch251", "ptl"),
        ("rten/valid", "rten"),
        ("rten/invalid", "rten"),
        ("weights", "gguf"),
        ("weights", "npz"),
        ("ztensor/valid/v1.1-ref", "zt"),
        ("ztensor/invalid", "zt"),
    ] {
        let (mut opened, files) = (0, files(folder, extension));
        for path in &files {
            let Ok(reader) = AnyReader::open(path) else { continue };
            opened += 1;
            // Statistics take their time in a build for tests.
            let options = PageOptions::default().stats(opened % 8 == 1);
            let page = page(&reader, options.digests(true));
            // What a page reads itself breaks no rule.
            let beside = PageOptions::default().stats(true).validate(&reader, |_| ());
            assert_eq!(beside, reader.validate(), "{path:?}");
            let html = html(&page);
            let tags = |tag: &str| html.matches(&format!("<{tag}")).count();
            let ends = |tag: &str| html.matches(&format!("</{tag}>")).count();
            for tag in ["section", "table", "tr>", "details", "svg", "dl", "ul"] {
                let end = tag.trim_end_matches('>');
                let rows = if tag == "tr>" { html.matches("<tr ").count() } else { 0 };
                assert_eq!(tags(tag) + rows, ends(end), "{path:?}: {tag}");
            }
            assert!(html.contains(&format!("<p class=\"verdict {0}\">{0}", page.verdict())));
            assert!(markdown(&page).contains(&format!("**{}**", page.verdict())));
        }
        assert!(opened > 0, "{folder} {extension}: {}", files.len());
    }
}

/// A store that cannot be read from some byte on.
struct Broken {
    bytes: Vec<u8>,
    from: u64,
}

impl ReadAt for Broken {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        if offset + buffer.len() as u64 > self.from && start < 8000 {
            return Err(io::Error::other("the disk is broken"));
        }
        buffer.copy_from_slice(&self.bytes[start..start + buffer.len()]);
        Ok(())
    }
}

/// Bytes are read once, by the check or for statistics, and what cannot be read is found either way.
#[test]
fn bytes_that_cannot_be_read_are_found() {
    let bytes = zt_bytes(&[("w", floats(&[0.5; 4000]))]);
    for stats in [false, true] {
        let store = Broken { bytes: bytes.clone(), from: 4000 };
        let reader = AnyReader::options().from_source(Source::from_read_at(store)).unwrap();
        let options = PageOptions::default().stats(stats);
        let findings = options.validate(&reader, |_| ());
        assert_eq!(findings.is_valid(), stats);
        let page = Page::of("w.zt", Some(&reader), findings, options);
        assert_eq!(page.verdict(), Verdict::Invalid);
        assert!(html(&page).contains("the disk is broken"), "{stats}");
    }
}

#[test]
fn findings_say_what_they_mean() {
    let path = testdata("ztensor/invalid/digest_crc_wrong.zt");
    let reader = AnyReader::open(path).unwrap();
    let page = page(&reader, PageOptions::default());
    for said in [
        "zt/digest-mismatch",
        "bytes do not have their digest: they are damaged or were changed",
        "get the file again",
    ] {
        assert!(html(&page).contains(said) && markdown(&page).contains(said), "{said}");
    }
}

#[test]
fn a_file_that_does_not_open_has_a_page() {
    let error = AnyReader::from_bytes(&b"nothing"[..]).unwrap_err();
    let mut report = tensor_core::Report::default();
    report.add(tensor_core::Finding::error(error.rule(), error.to_string()));
    let page = Page::of("nothing", None, report, PageOptions::default());
    let html = html(&page);
    assert!(html.contains("does not open") && html.contains("file/unknown-format"), "{html}");
}

#[test]
fn statistics_are_there_where_they_are_asked_for() {
    let ramp: Vec<f32> = (0..100_u8).map(f32::from).collect();
    let reader = zt(&[
        ("again", floats(&ramp)),
        ("nan", floats(&[f32::NAN, 1.0])),
        ("ramp", floats(&ramp)),
        ("zero", floats(&[0.0; 9])),
    ]);
    let without = page(&reader, PageOptions::default());
    assert!(without.suspects().is_empty());
    assert!(!html(&without).contains("class=\"histogram\""));
    let with = page(&reader, PageOptions::default().stats(true));
    let found: Vec<_> =
        with.suspects().iter().map(|one| (one.tensor, one.suspicions.as_slice())).collect();
    assert_eq!(
        found,
        [(1, &[Suspicion::Nan(1)][..]), (2, &[Suspicion::Equal(0)]), (3, &[Suspicion::Zero])]
    );
    let html = html(&with);
    assert!(html.contains("aria-label=\"1 % below 0, half below 49"), "{html}");
    assert!(html.contains("the same elements as <code>again</code>"));
    assert!(html.contains("<tr id=\"t3\" class=\"suspect\">"));
}

/// Makes a file of 6,000 tensors without elements.
fn six_thousand(name: impl Fn(usize) -> String) -> AnyReader {
    let mut header = String::from("{");
    for at in 0..6000 {
        let joint = if at == 0 { "" } else { "," };
        header += &format!(
            "{joint}\"{at}{}\":{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
            name(at)
        );
    }
    header += "}";
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    AnyReader::from_bytes(file).unwrap()
}

/// Names in a file may be as many as it has room for.
#[test]
fn long_lists_are_counted() {
    let reader = six_thousand(|_| "w".to_owned());
    let few = page(&reader, PageOptions::default());
    let written = html(&few);
    assert_eq!(written.matches("<tr id=\"t").count(), 5000);
    let rest = "… and 1,000 more tensors: <code>modelcrate inspect --tensors</code>";
    assert!(written.contains(rest));
    assert!(markdown(&few).contains("… and 1,000 more rows: `modelcrate inspect --tensors`"));
    // With all that there can be in a row, and names of which a page shows more where a pointer rests.
    let reader = six_thousand(|_| "<\u{202e}&>".repeat(300));
    for options in [PageOptions::default(), PageOptions::default().stats(true).digests(true)] {
        let written = html(&page(&reader, options));
        let rows = written.matches("<tr id=\"t").count();
        assert!(written.contains(&format!(
            "… and {},{:03} more tensors",
            (6000 - rows) / 1000,
            (6000 - rows) % 1000
        )));
        assert!(
            (500..5000).contains(&rows) && written.len() < 3_000_000,
            "{rows} {}",
            written.len()
        );
    }
}

fn chain(nodes: usize) -> AnyReader {
    let mut graph = GraphBuilder::new();
    let mut last = graph.input("x", Value::default()).unwrap();
    for at in 0..nodes {
        let name = format!("stage{}/{HOSTILE}{at}", at / 100);
        let made = graph.value(format!("{name}:out"), Value::default()).unwrap();
        graph.operator(&name, OperatorType::Relu, None, &[Some(last)], &[Some(made)]).unwrap();
        last = made;
    }
    graph.output(last).unwrap();
    let model = rten_format::Model { graph: graph.finish(), metadata: None };
    let bytes = rten_format::Writer::new(Vec::new(), &model).unwrap().finish().unwrap();
    AnyReader::from_bytes(bytes).unwrap()
}

#[test]
fn graphs_are_drawn_and_described() {
    let small = chain(3);
    let small = page(&small, PageOptions::default());
    let html = html(&small);
    assert_eq!(html.matches("<g class=\"node activation\"").count(), 3, "{html}");
    let data = html.split_once("<script type=\"application/json\">").unwrap().1;
    let data = data.split_once("</script>").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["nodes"][1][0], "Relu");
    assert_eq!(data["nodes"][1][1], format!("stage0/{HOSTILE}1"));
    assert_eq!(data["nodes"][0][5], data["nodes"][1][4]);
    assert!(markdown(&small).contains("```mermaid\nflowchart TD\n"));
}

#[test]
fn large_graphs_are_shown_in_groups() {
    let drawn = |html: &str| {
        let (shown, hidden) = html.split_once("<template").unwrap();
        [shown, hidden].map(|part| part.matches(" data-node=\"").count())
    };
    let many = chain(1000);
    let html_of_many = html(&page(&many, PageOptions::default()));
    // The first part of a name has two, as the hostile one has a slash.
    assert_eq!(drawn(&html_of_many), [10, 1000]);
    assert!(html_of_many.contains(" selected>by 1 part: 10 nodes</option>"));
    let more = chain(4001);
    let html_of_more = html(&page(&more, PageOptions::default()));
    assert_eq!(drawn(&html_of_more), [41, 0]);
    assert!(html_of_more.contains("What is too large for this page is left out"));
    assert!(!markdown(&page(&many, PageOptions::default())).contains("mermaid"));
}

#[test]
fn changed_operators_are_marked() {
    let [old, new] = [OperatorType::Relu, OperatorType::Sigmoid].map(|operator| {
        let mut graph = GraphBuilder::new();
        let x = graph.input("x", Value::default()).unwrap();
        let [h, h2, y] = ["h", "h2", "y"].map(|name| graph.value(name, Value::default()).unwrap());
        graph.operator("a/first", OperatorType::Abs, None, &[Some(x)], &[Some(h)]).unwrap();
        graph.operator("b/first", operator, None, &[Some(h)], &[Some(h2)]).unwrap();
        graph.operator("b/second", OperatorType::Abs, None, &[Some(h2)], &[Some(y)]).unwrap();
        graph.output(y).unwrap();
        let model = rten_format::Model { graph: graph.finish(), metadata: None };
        let bytes = rten_format::Writer::new(Vec::new(), &model).unwrap().finish().unwrap();
        AnyReader::from_bytes(bytes).unwrap()
    });
    let diff = old.diff(&new, &DiffOptions::default(), |_| true, |_| ()).unwrap();
    let page = page(&new, PageOptions::default())
        .compared_with(Page::of("old", Some(&old), old.validate(), PageOptions::default()), diff);
    let html = html(&page);
    // As a node, and in the group that it is in.
    let marks = html.matches(" changed\" data-node=\"1\"").count();
    assert_eq!(marks, 2, "{html}");
    assert_eq!(html.matches(" changed\" data-node=\"").count(), 2, "{html}");
}

#[test]
fn changes_show_where_tensors_differ() {
    let values: Vec<f32> = (0..640_u16).map(f32::from).collect();
    let mut others = values.clone();
    others[639] += 1.0;
    others[325] += 0.5;
    let old = zt(&[("w", floats(&values)), ("gone", floats(&[1.0]))]);
    let new = zt(&[("w", floats(&others)), ("new", floats(&[1.0]))]);
    let diff = old.diff(&new, &DiffOptions::default(), |_| true, |_| ()).unwrap();
    let page = page(&new, PageOptions::default())
        .compared_with(Page::of("old", Some(&old), old.validate(), PageOptions::default()), diff);
    let html = html(&page);
    let strip = "<rect class=\"h0\" x=\"0\" width=\"32\" height=\"8\"/>\
        <rect class=\"h5\" x=\"32\" width=\"1\" height=\"8\"/>\
        <rect class=\"h0\" x=\"33\" width=\"30\" height=\"8\"/>\
        <rect class=\"h9\" x=\"63\" width=\"1\" height=\"8\"/>";
    assert!(html.contains(strip), "{html}");
    assert!(html.contains("2 of 640 elements, at most 1 at [639]"), "{html}");
    for said in ["only in the old file", "only in the new file"] {
        assert!(html.contains(said) && markdown(&page).contains(said), "{said}");
    }
}
