//! Cartons that are worth exchanging, and what has to be found in them.

mod printed;

use std::collections::BTreeMap;

use carton_format::{
    Description, Example, Finished, Named, OptionValue, Place, Reader, Reference, Runner, SelfTest,
    TensorSpec, Value, WriteOptions, Writer, dtype,
};
use tensor_core::{
    DType, Shape,
    symbolic::{Dim, SymbolicShape},
};

use crate::samples;

/// What goes into a carton.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What `carton.toml` says.
    pub description: Description,
    /// Tensors by the names that the index has for them.
    pub tensors: Vec<(String, Value)>,
    /// Files of `model/` and `misc/` by their paths.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Symbolic links by their paths: their targets.
    pub links: Vec<(&'static str, &'static str)>,
}

impl Sample {
    /// Returns a carton with no more than the reference implementation needs.
    #[must_use]
    pub fn minimal() -> Self {
        let files = BTreeMap::from([("model/a".to_owned(), b"a".to_vec())]);
        Self {
            description: Description::new(runner()),
            tensors: Vec::new(),
            files,
            links: Vec::new(),
        }
    }

    /// Returns a carton with something in every place: all element types and forms of shapes, texts
    /// that need every form of quoting, empty and long files, links.
    #[must_use]
    pub fn full() -> Self {
        let mut sample = Self::minimal();
        sample.describe();
        sample.test();
        sample.show();
        for (path, content) in files() {
            sample.files.insert(path.to_owned(), content);
        }
        sample.links = vec![
            ("model/sub/link", "../noise.bin"),
            ("model/sub/second", "link"),
            ("misc/link =ü", "sub/text.txt"),
        ];
        sample
    }

    /// Reads back what was packed, links as what they lead to; what is only linked by a URL is left
    /// out.
    ///
    /// # Panics
    ///
    /// Where the reader refuses something.
    #[must_use]
    pub fn read(reader: &Reader) -> Self {
        let description = reader.description().expect("a description").clone();
        let tensors = reader.tensors().expect("an index of tensors").map(|tensor| {
            let value = tensor.value().expect("a tensor");
            (tensor.name().to_owned(), value)
        });
        let files = reader.model().chain(reader.misc()).filter(|file| file.place() == Place::Here);
        let files = files.map(|file| {
            let content = file.bytes().expect("a file");
            (file.path().to_owned(), content.to_vec())
        });
        let (tensors, files) = (tensors.collect(), files.collect());
        Self { description, tensors, files, links: Vec::new() }
    }

    /// Packs it: what is longer than 1 MiB as a stream whose length is not known before.
    ///
    /// # Panics
    ///
    /// Where the writer refuses something.
    #[must_use]
    pub fn pack(&self, options: WriteOptions) -> Finished<Vec<u8>> {
        self.pack_into(options.write_to(Vec::new())).expect("a sample can be written")
    }

    fn pack_into(&self, mut writer: Writer<Vec<u8>>) -> carton_format::Result<Finished<Vec<u8>>> {
        writer.description(&self.description)?;
        for (path, content) in &self.files {
            if content.len() > 1 << 20 {
                writer.stream(path, &content[..])?;
            } else {
                writer.file(path, content)?;
            }
        }
        for (path, target) in &self.links {
            writer.symlink(path, target)?;
        }
        for (name, value) in &self.tensors {
            writer.tensor(name, value)?;
        }
        writer.finish()
    }

    /// Returns the files below a folder and what links there lead to, by their paths in it.
    ///
    /// # Panics
    ///
    /// Where a link leads nowhere.
    #[must_use]
    pub fn below(&self, folder: &str) -> BTreeMap<String, &[u8]> {
        let mut contents: BTreeMap<&str, &[u8]> =
            self.files.iter().map(|(path, content)| (&**path, &content[..])).collect();
        for (path, target) in &self.links {
            let mut parts: Vec<&str> = path.split('/').collect();
            parts.pop();
            for part in target.split('/') {
                match part {
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            contents.insert(path, contents[&*parts.join("/")]);
        }
        let below = |(path, content): (&str, _)| Some((path.strip_prefix(folder)?.into(), content));
        contents.into_iter().filter_map(below).collect()
    }

    fn describe(&mut self) {
        let description = &mut self.description;
        description.model_name = Some("näme \"quoted\" 'and' \\escaped".to_owned());
        description.short_description = Some("é".repeat(100));
        description.model_description = Some(texts().join("\n"));
        description.license = Some("MIT OR Apache-2.0".to_owned());
        description.repository = Some("https://example.com/repository".to_owned());
        description.homepage = Some("https://example.com/?a=b#c".to_owned());
        let platforms = ["x86_64-unknown-linux-gnu", "arm64-apple-darwin", "wasm32-wasi"];
        let platforms = platforms.map(|platform| platform.parse().expect("a target triple"));
        description.required_platforms = Some(platforms.into());
        description.runner.options = Some(options());
        let mut inputs: Vec<TensorSpec> = dtype::STORED
            .map(|(dtype, name)| TensorSpec::new(name, dtype, SymbolicShape::Any))
            .into();
        for (at, shape) in shapes().into_iter().enumerate() {
            let mut spec = TensorSpec::new(format!("shape {at}"), dtype::STORED[at].0, shape);
            spec.description = (at % 2 == 0).then(|| format!("an input\nof shape {at}"));
            spec.internal_name = (at % 3 == 0).then(|| format!("scope/{at}:0"));
            inputs.push(spec);
        }
        description.inputs = Some(inputs.clone());
        description.outputs = Some(inputs.into_iter().rev().collect());
    }

    /// Adds self tests over tensors of every element type, of no and of many elements.
    fn test(&mut self) {
        let mut tests = Vec::new();
        for (at, shape) in [&[][..], &[0], &[3, 0, 2], &[7], &[2, 3, 4]].into_iter().enumerate() {
            let mut inputs = Named::default();
            // The reference's binding to Python has no form for no strings.
            let is_empty = shape.contains(&0);
            for (dtype, stored) in dtype::STORED {
                if dtype == DType::Str && is_empty {
                    continue;
                }
                let name = format!("{stored} {shape:?}");
                inputs.insert(stored, name.clone());
                self.tensors.push((name, tensor(dtype, shape)));
            }
            let mut test = SelfTest::new(inputs.clone());
            test.name = (at % 2 == 0).then(|| format!("test {at}"));
            test.description = (at % 3 == 0).then(|| format!("what\t\"{at}\" shows"));
            test.expected_out = (at > 1).then_some(inputs);
            tests.push(test);
        }
        self.description.self_tests = Some(tests);
    }

    /// Adds examples over files and over tensors with odd names.
    fn show(&mut self) {
        let mut inputs = Named::default();
        let mut outputs = Named::default();
        for (at, text) in texts().into_iter().enumerate() {
            // Nor has it one for empty strings alone.
            let strings = vec![text.clone(), "not empty".to_owned()];
            self.tensors.push((text.clone(), Value::Strings { shape: [2].into(), strings }));
            let named = if at % 2 == 0 { &mut inputs } else { &mut outputs };
            named.insert(text.clone(), Reference::Tensor(text));
        }
        inputs.insert("picture", Reference::Misc("picture.png".to_owned()));
        outputs.insert("text", Reference::Misc("sub/text.txt".to_owned()));
        let mut first = Example::new(inputs, outputs);
        first.name = Some("an example".to_owned());
        first.description = Some("with files".to_owned());
        let second = Example::new(Named::default(), Named::default());
        self.description.examples = Some(vec![first, second]);
    }
}

/// Returns the digest of bytes, in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    carton_format::Sha256::digest(bytes).to_string()
}

/// Returns texts that a careless reader or writer of TOML changes. None ends in NUL, as numpy takes
/// that for padding.
#[must_use]
pub fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "plain",
        "",
        " ",
        "\\",
        "\\n",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\"\"\"\"'''\\\"",
        "\nfirst line",
        "\n\n",
        "last line\n",
        "a\r\nb\rc",
        "\r\n",
        "tab\tand space \n at the ends \t",
        "ends with \\\n and a quote\"",
        "# no comment",
        "[no.table]",
        "a.b=c",
        "\u{feff}",
        "\u{202e}\u{2028}\u{2029}\u{85}",
        "\u{fffe}\u{ffff}\u{fdd0}",
        "重み u\u{308} 🦀 \u{10ffff}",
    ]
    .map(str::to_owned)
    .into();
    // Every control character, between others.
    let controls = (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32);
    texts.extend(controls.map(|control| format!("<{control}>")));
    texts
}

fn runner() -> Runner {
    let mut runner = Runner::new("noop", ">=1.0, <2".parse().expect("a requirement"));
    runner.compat_version = Some(1);
    runner
}

/// Returns every form of a shape.
fn shapes() -> [SymbolicShape; 5] {
    let symbol = |symbol: &str| Dim::Symbol(symbol.to_owned());
    [
        SymbolicShape::Any,
        SymbolicShape::Symbol("whole \"shape\"".to_owned()),
        SymbolicShape::Dims(Vec::new()),
        SymbolicShape::Dims(vec![symbol("batch"), Dim::Fixed(3), Dim::Any, symbol("")]),
        SymbolicShape::Dims(vec![Dim::Fixed(0), Dim::Fixed(i64::MAX.unsigned_abs())]),
    ]
}

/// Returns options of all four types, at the ends of what they can be.
fn options() -> Named<OptionValue> {
    let mut options: Named<OptionValue> = Named::default();
    for float in [
        0.0,
        -0.0,
        2.0,
        0.1,
        1e300,
        -1e-300,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ] {
        options.insert(format!("float {float:?}"), float.into());
    }
    // Digits that are hard to write and to read.
    for (at, bits) in noise(8 * 200).as_chunks().0.iter().enumerate() {
        options.insert(format!("bits {at}"), f64::from_be_bytes(*bits).into());
    }
    for integer in [0, -1, i64::MAX, i64::MIN] {
        options.insert(format!("integer {integer}"), integer.into());
    }
    for boolean in [true, false] {
        options.insert(format!("boolean {boolean}"), boolean.into());
    }
    for text in texts() {
        options.insert(text.clone(), text.into());
    }
    options
}

fn files() -> [(&'static str, Vec<u8>); 12] {
    let text = "all work and no play ".repeat(1 << 16).into_bytes();
    [
        ("model/.hidden/x", b"x".to_vec()),
        ("model/MANIFEST", b"not the root's".to_vec()),
        ("model/LINKS", b"not the root's".to_vec()),
        ("model/a=b=c", b"=".to_vec()),
        ("model/empty", Vec::new()),
        ("model/text.txt", text.clone()),
        ("model/noise.bin", noise((1 << 20) + 17)),
        ("model/sub/folder/ünï 重み 🦀.txt", b"name".repeat(100)),
        ("misc/picture.png", b"\x89PNG\r\n\x1a\n".to_vec()),
        ("misc/sub/text.txt", b"text ".repeat(1_000)),
        ("misc/long.txt", [&text[..], b"."].concat()),
        ("misc/noise.bin", noise((1 << 20) + 1)),
    ]
}

/// Returns bytes of which zstd makes nothing smaller.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| byte()).collect()
}

fn tensor(dtype: DType, dims: &[u64]) -> Value {
    let shape: Shape = dims.iter().copied().collect();
    if dtype != DType::Str {
        return Value::Numeric(samples::tensor(dtype, shape));
    }
    let count = shape.elements().expect("a sample is small");
    let strings: Vec<String> = texts().into_iter().cycle().zip(0..count).map(|(t, _)| t).collect();
    Value::Strings { shape, strings }
}
