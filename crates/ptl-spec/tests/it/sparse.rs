//! Tensors that are made of others: sparse ones, and those with a scale for each slice.

use ptl_spec::{Place, Reader, SparseParts, SparseTensor, Tensor};
use test_support::zip::Zip;

/// A pickle in the making, of the opcodes that PyTorch writes.
struct Pickle(Vec<u8>);

impl Pickle {
    /// Starts the state of a module without attributes.
    fn module() -> Self {
        Self(b"\x80\x02c__torch__\nNet\n)\x81}(".to_vec())
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.0.push(b'X');
        self.0.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        self.0.extend(text.as_bytes());
        self
    }

    fn numbers(&mut self, numbers: &[i32]) -> &mut Self {
        self.0.push(b'(');
        for number in numbers {
            self.0.push(b'J');
            self.0.extend(number.to_le_bytes());
        }
        self.0.push(b't');
        self
    }

    fn number(&mut self, number: i32) -> &mut Self {
        self.0.push(b'J');
        self.0.extend(number.to_le_bytes());
        self
    }

    /// A tensor whose elements are all of the record of this number.
    fn tensor(&mut self, class: &str, record: u8, sizes: &[i32]) -> &mut Self {
        let behind = |at: usize| sizes[at + 1..].iter().product();
        let strides: Vec<i32> = (0..sizes.len()).map(behind).collect();
        self.strided(class, record, sizes, &strides)
    }

    /// A tensor whose record has as many elements as its strides reach.
    fn strided(&mut self, class: &str, record: u8, sizes: &[i32], strides: &[i32]) -> &mut Self {
        let reach = sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride);
        let elements = reach.sum::<i32>() + 1;
        self.0.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        self.text("storage").0.extend(format!("ctorch\n{class}Storage\n").into_bytes());
        self.text(&record.to_string()).text("cpu").number(elements).0.extend(b"tQK\x00");
        self.numbers(sizes).numbers(strides).hooks()
    }

    /// What ends the arguments of a tensor: no gradient, and no hooks.
    fn hooks(&mut self) -> &mut Self {
        self.0.extend(b"\x89ccollections\nOrderedDict\n)RtR");
        self
    }

    fn sparse(&mut self, layout: i32, sizes: &[i32]) -> &mut Self {
        self.0.extend(b"ctorch._utils\n_rebuild_sparse_tensor\n(");
        self.number(layout).numbers(sizes).0.push(0x88);
        self
    }

    fn end_sparse(&mut self) -> &mut Self {
        self.0.extend(b"ccollections\nOrderedDict\n)RtR");
        self
    }

    /// Ends the module, and puts it into a model whose records are these.
    fn model(&mut self, records: &[Vec<u8>]) -> Reader {
        self.0.extend(b"ub.");
        let names: Vec<String> = (0..records.len()).map(|at| format!("m/data/{at}")).collect();
        let mut files = vec![("m/data.pkl", self.0.as_slice())];
        files.extend(names.iter().map(String::as_str).zip(records.iter().map(Vec::as_slice)));
        Reader::from_bytes(Zip::of(&files).to_bytes()).unwrap()
    }
}

fn longs(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A list of three elements of a matrix of 3 by 4.
fn coo(indices: &[i64], sizes: &[i32], values: &[i32]) -> Reader {
    let mut pickle = Pickle::module();
    pickle.text("s").sparse(1, sizes);
    pickle.tensor("Long", 0, &[2, 3]).tensor("Float", 1, values).end_sparse();
    let len: i32 = values.iter().product();
    pickle.model(&[longs(indices), vec![0; 4 * len as usize]])
}

/// A matrix of 2 by 3 with three elements, in compressed rows.
fn csr(rows: &[i64], columns: &[i64]) -> Reader {
    let mut pickle = Pickle::module();
    pickle.text("s").sparse(2, &[2, 3]);
    pickle.tensor("Long", 0, &[rows.len() as i32]).tensor("Long", 1, &[columns.len() as i32]);
    pickle.tensor("Float", 2, &[3]).end_sparse();
    pickle.model(&[longs(rows), longs(columns), floats(&[1.0, 2.0, 3.0])])
}

fn only(reader: &Reader) -> SparseTensor<'_> {
    let mut all = reader.sparse_tensors().unwrap();
    assert_eq!(all.len(), 1);
    all.next().unwrap()
}

#[track_caller]
fn rejects(reader: &Reader, message: &str) {
    assert_eq!(only(reader).verify().unwrap_err().to_string(), message);
    let report = reader.validate();
    assert!(report.findings().iter().any(|finding| finding.message == message), "{report:?}");
}

#[test]
fn lists_of_coordinates() {
    let reader = coo(&[0, 1, 2, 2, 0, 3], &[3, 4], &[3]);
    let sparse = only(&reader);
    assert_eq!((sparse.name(), sparse.path(), sparse.place()), ("s", "s", Place::State));
    assert_eq!((sparse.shape().dims(), sparse.requires_grad()), (&[3, 4][..], true));
    let SparseParts::Coo { indices, values } = sparse.parts() else { panic!("{sparse:?}") };
    assert_eq!(indices.read().unwrap().view().to_vec::<i64>().unwrap(), [0, 1, 2, 2, 0, 3]);
    assert_eq!(values.bytes().unwrap().len(), 12);
    sparse.verify().unwrap();
    let names: Vec<&str> = reader.tensors().unwrap().map(Tensor::name).collect();
    assert_eq!(names, ["s.indices", "s.values"]);
    assert!(reader.tensor("s.values").unwrap().is_some());
}

#[test]
fn rows_of_a_list_are_elements() {
    only(&coo(&[0, 1, 2, 2, 0, 3], &[3, 4, 5, 2], &[3, 5, 2])).verify().unwrap();
}

#[test]
fn compressed_rows() {
    let reader = csr(&[0, 1, 3], &[2, 0, 1]);
    let sparse = only(&reader);
    let SparseParts::Csr { crow_indices, col_indices, values } = sparse.parts() else { panic!() };
    let shapes = [crow_indices, col_indices, values].map(|part| part.shape().dims()[0]);
    assert_eq!(shapes, [3, 3, 3]);
    sparse.verify().unwrap();
    let names: Vec<&str> = reader.tensors().unwrap().map(Tensor::name).collect();
    assert_eq!(names, ["s.crow_indices", "s.col_indices", "s.values"]);
}

#[test]
fn parts_that_do_not_fit() {
    rejects(
        &coo(&[0, 1, 3, 2, 0, 3], &[3, 4], &[3]),
        "tensor \"s\" has 3 among its indices, expected 0 to 3, exclusive",
    );
    rejects(
        &coo(&[0, 1, 2, 2, 0, -1], &[3, 4], &[3]),
        "tensor \"s\" has -1 among its indices, expected 0 to 4, exclusive",
    );
    rejects(
        &coo(&[0, 1, 2, 2, 0, 3], &[3, 4], &[4]),
        "tensor \"s\" has values of shape [4], expected [3]",
    );
    rejects(
        &coo(&[0, 1, 2, 2, 0, 3], &[3], &[3]),
        "tensor \"s\" has indices of shape [2, 3], expected [at most the dimensions of the tensor, \
         elements]",
    );
    rejects(
        &csr(&[0, 2, 1], &[2, 0, 1]),
        "tensor \"s\" has crow_indices that do not rise from 0 to 3",
    );
    rejects(
        &csr(&[0, 1, 2], &[2, 0, 1]),
        "tensor \"s\" has crow_indices that do not rise from 0 to 3",
    );
    rejects(
        &csr(&[0, 1, 3], &[2, 0, 3]),
        "tensor \"s\" has 3 among its col_indices, expected 0 to 3, exclusive",
    );
    rejects(&csr(&[0, 3], &[2, 0, 1]), "tensor \"s\" has crow_indices of shape [2], expected [3]");
    rejects(&csr(&[0, 1, 3], &[2, 0]), "tensor \"s\" has values of shape [3], expected [2]");
}

/// A storage of one element may stand for any number of them.
#[test]
fn indices_that_are_longer_than_the_file() {
    let mut pickle = Pickle::module();
    pickle.text("s").sparse(1, &[3]);
    pickle.strided("Long", 0, &[1, 1 << 29], &[0, 0]).strided("Float", 1, &[1 << 29], &[0]);
    let reader = pickle.end_sparse().model(&[longs(&[2]), floats(&[1.0])]);
    let report = reader.validate();
    let found = report.findings().iter().find(|finding| finding.rule == "ptl/long-indices");
    assert_eq!(
        found.map(|finding| finding.message.as_str()),
        Some("indices of \"s\" are longer than the file: not looked at")
    );
    let values = reader.tensor("s.values").unwrap().unwrap();
    let read = [values.bytes().map(drop), values.read().map(drop), values.read_into(&mut [])];
    let expected = "tensor in bytes is 2147483648, over the limit of 16777216 (Limits::expansion)";
    assert_eq!(read.map(|read| read.unwrap_err().to_string()), [expected; 3]);
}

#[test]
fn narrow_indices() {
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    for (columns, message) in [
        ([2, 0, 1], None),
        ([2, 0, -1], Some("tensor \"s\" has -1 among its col_indices, expected 0 to 3, exclusive")),
    ] {
        let mut pickle = Pickle::module();
        pickle.text("s").sparse(2, &[2, 3]).tensor("Int", 0, &[3]).tensor("Int", 1, &[3]);
        pickle.tensor("Float", 2, &[3]).end_sparse();
        let records = [ints(&[0, 1, 3]), ints(&columns), floats(&[0.0; 3])];
        let reader = pickle.model(&records);
        let found = only(&reader).verify().map_err(|error| error.to_string());
        assert_eq!(found.err().as_deref(), message);
    }
}

/// Each matrix of a batch has rows of its own.
#[test]
fn batches_of_compressed_rows() {
    for (rows, is_right) in [([0, 1, 2, 0, 0, 2], true), ([0, 1, 2, 1, 1, 2], false)] {
        let mut pickle = Pickle::module();
        pickle.text("s").sparse(2, &[2, 2, 4]).tensor("Long", 0, &[2, 3]);
        pickle.tensor("Long", 1, &[2, 2]).tensor("Float", 2, &[2, 2]).end_sparse();
        let reader = pickle.model(&[longs(&rows), longs(&[3, 0, 1, 2]), floats(&[0.0; 4])]);
        assert_eq!(only(&reader).verify().is_ok(), is_right, "{rows:?}");
    }
}

#[test]
fn indices_are_whole_numbers() {
    let mut pickle = Pickle::module();
    pickle.text("s").sparse(1, &[3]).tensor("Float", 0, &[1, 1]).tensor("Float", 0, &[1]);
    let reader = pickle.end_sparse().model(&[floats(&[0.0])]);
    rejects(&reader, "tensor \"s\" has indices of Float, expected Long or Int");
}

#[track_caller]
fn malformed(pickle: &mut Pickle, message: &str) {
    let reader = pickle.model(&[]);
    assert_eq!(reader.tensors().err().unwrap().to_string(), message);
}

#[test]
fn other_layouts() {
    let mut pickle = Pickle::module();
    pickle.text("s").sparse(3, &[2]).end_sparse();
    malformed(
        &mut pickle,
        "record \"data.pkl\" at byte 0: pickle has 3 in \"s\" as layout, expected 1 (COO) or 2 (CSR)",
    );
    let mut pickle = Pickle::module();
    pickle.text("s").sparse(1, &[2]).numbers(&[]).numbers(&[]).end_sparse();
    malformed(
        &mut pickle,
        "record \"data.pkl\" at byte 0: pickle has a tuple in \"s.indices\" as part of a tensor, \
         expected a dense tensor",
    );
}

/// Parts of tensors are plain ones: no chain of them can exhaust the stack.
#[test]
fn scales_are_not_quantized() {
    let mut pickle = Pickle::module();
    pickle.text("q");
    const LEVELS: usize = 100_000;
    for _ in 0..LEVELS {
        pickle.0.extend(b"ctorch._utils\n_rebuild_qtensor\n((");
        pickle.text("storage").0.extend(b"ctorch\nQInt8Storage\n");
        pickle.text("0").text("cpu").number(1).0.extend(b"tQK\x00");
        pickle.numbers(&[1]).numbers(&[1]).0.extend(b"(ctorch\nper_channel_affine\n");
    }
    pickle.0.push(b'N');
    for _ in 0..LEVELS {
        pickle.0.extend(b"NK\x00t");
        pickle.hooks();
    }
    malformed(
        &mut pickle,
        "record \"data.pkl\" at byte 0: pickle has a call in \"q.scales\" as part of a tensor, \
         expected a dense tensor",
    );
}

/// One tensor that stands in a list many times is listed as often, as far as the limit goes.
#[test]
fn lists_of_tensors_are_bounded() {
    let mut pickle = Pickle::module();
    let name = "n".repeat(4000);
    pickle.text(&name).0.push(b'(');
    pickle.tensor("Float", 0, &[1]).0.extend(b"q\x01");
    pickle.0.extend(b"h\x01".repeat(100_000));
    pickle.0.push(b'l');
    malformed(
        &mut pickle,
        "list of tensors in bytes is 67109612, over the limit of 67108864 (Limits::manifest_bytes)",
    );
}
