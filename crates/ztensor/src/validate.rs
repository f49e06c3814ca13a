//! What opening does not prove: every rule, over every byte, as a report.

use tensor_core::{
    At, Budget, Chain, DType, Extent, Finding, Report, Severity, Verified, parallel,
    text::{Quoted, short},
};

use crate::{
    Blob, BlobReader, Component, ElementType, Encoding, Error, Fault, Format, Generation, Object,
    Reader, Role, Rule, Tensor,
    container::{ALIGNMENT, is_old_manifest},
    error::{Decoded, Result},
    tensor::{
        GroupLayout, LayoutError, Part,
        sparse::{self, RowOrder},
    },
    v2::{
        FLOOR, FOOTER,
        profile::{self, Remark},
    },
};

impl Reader {
    /// Reads everything and reports every fault: what [`lint`](Self::lint) reports, digests, exact
    /// lengths after decoding, sparse invariants and bool bytes.
    ///
    /// The stored bytes of a component are read once, on up to
    /// [`threads`](crate::ReadOptions::threads) threads, in memory that does not grow with the size
    /// of the tensors; sparse data of generation 0.1 is taken apart in memory. What all objects
    /// decode to together is bounded by `Limits::expansion`.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many stored bytes were done each
    /// time an object is finished.
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        check(self, Some(&self.budget()), Plain::Read, progress)
    }

    /// Like [`validate_with`](Self::validate_with), for who reads all dense tensors as well: elements
    /// that are stored raw, without a digest and without a rule for each of them, are left out, as
    /// reading them shows all that can be wrong with them.
    pub fn validate_beside_reads(&self, progress: impl Fn(u64) + Sync) -> Report {
        check(self, Some(&self.budget()), Plain::LeftOut, progress)
    }

    /// Returns how much of the file may be read and decoded in all: for
    /// [`Tensor::validate_within`].
    #[must_use]
    pub fn budget(&self) -> Budget {
        let what = "bytes of all objects together";
        Budget::expansion(what, self.limits(), self.source().len())
    }

    /// Says that the end of the file is [missing](Self::recovered), as [`lint`](Self::lint) does;
    /// nothing where it is there.
    #[must_use]
    pub fn recovery(&self) -> Option<Finding> {
        let lost = self.recovered()?;
        let message = format!(
            "the last {lost} bytes are not a complete file; what stands before them was read"
        );
        Some(Finding::warning("zt/recovered", message).offset(self.source().len()))
    }

    /// Reports what can be said without reading a tensor: faults of the manifest and of every
    /// definition in it, blobs that overlap, padding and gaps between them. That a build lacks the
    /// feature `zstd` is not a fault of a definition: only [`validate`](Self::validate) reports it.
    #[must_use]
    pub fn lint(&self) -> Report {
        check(self, None, Plain::LeftOut, |_| ())
    }
}

impl Tensor<'_> {
    /// Reports what [`Reader::lint`] does of this object alone.
    #[must_use]
    pub fn lint(self) -> Report {
        Check::run(self, None, Plain::LeftOut).report
    }

    /// Reports what [`Reader::validate`] does of this object alone.
    #[must_use]
    pub fn validate(self) -> Report {
        self.validate_within(&self.reader().budget())
    }

    /// Like [`validate`](Self::validate), but takes what it reads from a
    /// [budget](Reader::budget) that several objects share.
    #[must_use]
    pub fn validate_within(self, budget: &Budget) -> Report {
        Check::run(self, Some(budget), Plain::Read).report
    }
}

/// What is done about bytes of which nothing but that they can be read is to be proved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Read,
    LeftOut,
}

/// Checks all objects: what they hold as well, where there is a budget for reading that.
fn check(
    reader: &Reader,
    budget: Option<&Budget>,
    plain: Plain,
    progress: impl Fn(u64) + Sync,
) -> Report {
    let mut report = document(reader, budget.is_some());
    let objects: Vec<usize> = (0..reader.manifest().len()).collect();
    let check = |&index: &usize| {
        let check = Check::run(Tensor::new(reader, index), budget, plain);
        progress(check.extents.iter().map(|extent| extent.len()).sum());
        (check.report, check.extents)
    };
    let portion = |index: usize| reader.manifest().body(index).checked_div(PORTION);
    let mut blobs = Vec::new();
    for objects in objects.chunk_by(|&a, &b| portion(a) == portion(b)) {
        let checked = parallel::map(objects, reader.thread_count(), check);
        for (&index, (found, extents)) in objects.iter().zip(checked) {
            report.append(found);
            blobs.extend(extents.into_iter().map(|extent| (extent, index)));
        }
    }
    blobs.sort_unstable();
    overlaps(reader, &blobs, &mut report);
    gaps(reader, &blobs, &mut report);
    report
}

/// Checks what the manifest says about the file as a whole.
fn document(reader: &Reader, reads: bool) -> Report {
    let mut report = Report::default();
    report.extend(reader.recovery());
    report.extend(reader.shard_findings(reads));
    let manifest = reader.manifest();
    let at = || At::file().offset(manifest.offset());
    let plain = match manifest.generation() {
        Generation::V0_1 => true,
        Generation::V1_0 => manifest.version() == "1.0",
        Generation::V1_1 | Generation::V1_2 => manifest.version().starts_with("1."),
        Generation::V2 => true,
    };
    if !plain {
        let version = Quoted(manifest.version());
        let message = format!("version is {version}, expected \"1.1.0\" or the like");
        report.add(Finding::warning("zt/version-text", message).at(at().path("version")));
    }
    if let Err(error) = manifest.attributes() {
        report.add(finding(&error).at(at().path("attributes")));
    }
    unknown_keys(&mut report, &at(), "manifest", manifest.unknown_keys());
    let unusual = manifest.unusual();
    // Generation 0.1 was written with open lengths.
    let indefinite = unusual.indefinite && manifest.generation() != Generation::V0_1;
    for (found, what) in [
        (indefinite, "lengths that are left open"),
        (unusual.wide, "numbers that take more bytes than they need"),
        (unusual.tagged, "tags"),
    ] {
        if found {
            let message = format!("manifest has {what}, which some decoders refuse");
            report.add(Finding::note("zt/manifest-encoding", message).at(at()));
        }
    }
    report
}

/// Notes the keys that the format does not name.
fn unknown_keys<'k>(report: &mut Report, at: &At, what: &str, keys: impl Iterator<Item = &'k str>) {
    report.extend(keys.map(|key| {
        let message = format!("{what} has the key {}, which the format does not name", Quoted(key));
        Finding::note("zt/unknown-key", message).at(at.clone())
    }));
}

pub(crate) fn finding(error: &Error) -> Finding {
    Finding::error(error.rule(), Chain(error).to_string()).at(error.at())
}

/// The check of one object.
struct Check<'a> {
    tensor: Tensor<'a>,
    /// What may be read; `None` where nothing is.
    budget: Option<&'a Budget>,
    plain: Plain,
    report: Report,
    /// Where the components are that lie where they may.
    extents: Vec<Extent>,
}

/// What can be read of a component whose definition was checked.
enum Readable<'a> {
    /// Its elements.
    Elements(Blob<'a>),
    /// Its stored bytes, for their digest.
    Stored(Blob<'a>),
    Nothing,
}

impl<'a> Check<'a> {
    fn run(tensor: Tensor<'a>, budget: Option<&'a Budget>, plain: Plain) -> Self {
        let (report, extents) = (Report::default(), Vec::new());
        let mut check = Self { tensor, budget, plain, report, extents };
        if let Err(error) = check.object() {
            check.error(&error);
        }
        check
    }

    fn object(&mut self) -> Result<()> {
        let object = self.tensor.object()?;
        if let Err(error) = self.tensor.attributes() {
            self.error(&error);
        }
        let at = self.place();
        unknown_keys(&mut self.report, &at, "object", object.unknown_keys());
        let mut whole = self.layout_of(&object);
        if let Format::Other(format) = &object.format
            && !self.is_known_in_v2(format)
        {
            let format = Quoted(format);
            let message = format!("format {format} is not known, so its layout is not checked");
            self.report.add(Finding::warning("zt/format", message).at(at));
        }
        if self.tensor.reader().generation() == Generation::V2 {
            self.profile(&object);
        }
        let required = object.format.required_roles();
        for role in required {
            if object.component(role).is_none() {
                let (object_name, format) = (self.tensor.name().to_owned(), object.format.clone());
                let role = role.clone();
                self.error(&Error::MissingComponent { object: object_name, format, role });
                whole = false;
            }
        }
        let mut readable = Vec::new();
        for (role, component) in &object.components {
            let found = self.definition(&object, role, component, required);
            whole &= matches!(found, Readable::Elements(_));
            readable.push(found);
        }
        if whole && object.format == Format::QuantizedGroup {
            let blobs = self.tensor.required_all(&object, &QUANTIZED_ROLES)?;
            self.group(&object, &blobs, blobs.each_ref().map(Blob::decoded_len))?;
        }
        match self.budget {
            None => Ok(()),
            Some(_) if whole => self.contents(&object),
            Some(_) => {
                self.rest(&readable);
                Ok(())
            }
        }
    }

    fn is_known_in_v2(&self, layout: &str) -> bool {
        self.tensor.reader().generation() == Generation::V2 && profile::blocks(layout)
    }

    /// Checks the layouts of generation 2 that opening lets pass.
    fn profile(&mut self, object: &Object) {
        let attributes = self.tensor.attributes().ok().flatten().unwrap_or_default();
        let finding = match profile::check(object, &attributes) {
            Ok(()) => return,
            Err(Remark::Broken(problem)) => Finding::error(Rule::LayoutRule.id(), problem),
            Err(Remark::Unchecked(problem)) => {
                let message = format!("sizes are not checked: {problem}");
                Finding::warning("zt/quantized-attributes", message)
            }
        };
        self.report.add(finding.at(self.place()));
    }

    /// Checks what the format asks of shape and element types; tells whether the parts can be read
    /// together.
    fn layout_of(&mut self, object: &Object) -> bool {
        let indices: &[Role] = match object.format {
            Format::SparseCsr => &[Role::Indices, Role::Indptr],
            Format::SparseCoo => &[Role::Coords],
            _ => &[],
        };
        let size = object.elements().err().map(LayoutError::from);
        let shape = match object.format {
            Format::SparseCsr | Format::InlineCsr => sparse::matrix(&object.shape).err(),
            _ => None,
        };
        let types = indices.iter().filter_map(|role| {
            let dtype = object.component(role)?.element_type()?;
            sparse::index_width(dtype).err()
        });
        let problems: Vec<LayoutError> = size.into_iter().chain(shape).chain(types).collect();
        let fits = problems.is_empty();
        problems.into_iter().for_each(|problem| self.layout(problem));
        fits
    }

    /// Checks what the manifest says of a component.
    fn definition(
        &mut self,
        object: &Object,
        role: &Role,
        component: &Component,
        required: &[Role],
    ) -> Readable<'a> {
        let blob = self.tensor.unsized_blob(role, component);
        self.remarks(&blob, required);
        let extent = blob.extent();
        let digest = blob.check_digest();
        let (dtype, encoding) = (blob.elements(), blob.check_encoding());
        let usable = digest.is_ok() && dtype.is_ok() && encoding.is_ok();
        let readable = match &extent {
            Ok(extent) => {
                if component.shard.is_none() {
                    self.extents.push(*extent);
                }
                if usable {
                    self.sized(object, role, component)
                } else {
                    Readable::Stored(blob.clone())
                }
            }
            Err(_) => Readable::Nothing,
        };
        let is_reported = self.budget.is_some()
            || !matches!(component.encoding, Encoding::Zstd | Encoding::ZstdSeekable);
        let encoding = encoding.err().filter(|_| is_reported);
        // A type that is not known was remarked on, and does not break generation 2.
        let dtype = dtype.err().filter(|_| !component.is_v2);
        let errors = [extent.err(), digest.err(), dtype, encoding];
        for error in errors.into_iter().flatten() {
            self.error_at(&error, &blob);
        }
        readable
    }

    /// Reports what is worth knowing of a component whose bytes can be read all the same.
    fn remarks(&mut self, blob: &Blob<'_>, required: &[Role]) {
        let (at, component) = (place(blob), blob.component());
        unknown_keys(&mut self.report, &at, "component", component.unknown_keys());
        // Some quantized tensors have zero points, and others do not.
        let is_named = required.contains(blob.role())
            || required.contains(&Role::Scales) && *blob.role() == Role::Zeros;
        if !required.is_empty() && !is_named {
            let message = "the format of the object does not name the role";
            self.report.add(Finding::note("zt/component-extra", message).at(at.clone()));
        }
        if let (Some(logical), Some(dtype)) = (&component.logical_type, component.element_type())
            && component.logical_type_is_unknown()
        {
            let logical = Quoted(logical);
            let message = format!("type {logical} is not known, so elements are read as {dtype}");
            self.report.add(Finding::warning("zt/logical-type", message).at(at.clone()));
        }
        if component.is_v2 && component.elements().is_none() {
            let logical = Quoted(component.logical_type.as_deref().unwrap_or_default());
            let message = format!("type {logical} is not known, so elements are not read");
            self.report.add(Finding::warning("zt/logical-type", message).at(at.clone()));
        }
        if let Ok(Verified::UnknownAlgorithm) = blob.check_digest() {
            let digest = Quoted(component.digest.as_deref().unwrap_or_default());
            let message = format!("digest {digest} is of no known algorithm, so nothing is proved");
            self.report.add(Finding::warning("zt/digest-unknown", message).at(at));
        }
    }

    /// Checks the lengths of a component that lies where it may and can be decoded.
    fn sized(&mut self, object: &Object, role: &Role, component: &Component) -> Readable<'a> {
        let blob = match self.tensor.blob_of(object, role, component) {
            Ok(blob) => blob,
            Err(error) => {
                // A shape of too many elements was reported with the object.
                if object.elements().is_ok() {
                    self.error(&error);
                }
                return Readable::Stored(self.tensor.unsized_blob(role, component));
            }
        };
        if let Err(error) = blob.check_length() {
            self.error_at(&error, &blob);
            return Readable::Stored(blob);
        }
        if let Some(len) = blob.decoded_len() {
            self.whole_elements(&blob, len);
            self.recorded_length(&blob, len);
        }
        Readable::Elements(blob)
    }

    /// Reads what can be read of an object whose parts cannot be read together.
    fn rest(&mut self, readable: &[Readable<'a>]) {
        for part in readable {
            match part {
                Readable::Elements(blob) => drop(self.elements(blob)),
                Readable::Stored(blob) => {
                    if !matches!(blob.check_digest(), Ok(Verified::Digest)) {
                        continue;
                    }
                    let verified = self.take(blob).and_then(|()| blob.verify());
                    self.outcome(blob, verified);
                }
                Readable::Nothing => {}
            }
        }
    }

    /// Reads all components, once each.
    fn contents(&mut self, object: &Object) -> Result<()> {
        match object.format {
            Format::SparseCsr => self.csr(object),
            Format::SparseCoo => self.coo(object),
            Format::QuantizedGroup => self.quantized(object),
            Format::InlineCsr | Format::InlineCoo => self.inline(object),
            Format::Dense | Format::QuantGroup | Format::Mx | Format::Other(_) => {
                self.components(object, &[])
            }
        }
    }

    /// Reads sparse data of generation 0.1, which is taken apart in memory.
    fn inline(&mut self, object: &Object) -> Result<()> {
        self.components(object, &[])?;
        let data = self.tensor.required(object, &Role::Data)?;
        // Its parts take at most as much again.
        drop(self.open(&data)?);
        match object.format {
            Format::InlineCsr => self.tensor.csr().map(drop),
            _ => self.tensor.coo().map(drop),
        }
    }

    /// Reads the components that are not among `done`.
    fn components(&mut self, object: &Object, done: &[Role]) -> Result<()> {
        for (role, component) in &object.components {
            if !done.contains(role) {
                let blob = self.tensor.blob_of(object, role, component)?;
                self.elements(&blob);
            }
        }
        Ok(())
    }

    /// Reads a component whose elements are checked one by one; returns how many bytes it decodes
    /// to, where it does.
    fn elements(&mut self, blob: &Blob<'_>) -> Option<u64> {
        let odd_half = self.odd_half(blob);
        let mut last = None;
        let is_bool = blob.element_type().is_ok_and(|dtype| dtype == DType::Bool);
        if self.plain == Plain::LeftOut
            && !(is_bool || odd_half)
            && self.is_plain(blob)
            && let Some(len) = blob.decoded_len()
        {
            return Some(len);
        }
        let mut not_a_bool = None;
        let mut decoded = 0_u64;
        let result = self.open(blob).and_then(|mut stream| {
            let visited = stream.visit(|piece| {
                if is_bool && not_a_bool.is_none() {
                    let found = piece.iter().enumerate().find(|(_, byte)| **byte > 1);
                    not_a_bool = found.map(|(at, &byte)| (decoded.saturating_add(at as u64), byte));
                }
                decoded = decoded.saturating_add(piece.len() as u64);
                last = piece.last().copied().or(last);
            });
            visited.map_err(|error| blob.stream_fault(error))?;
            if let (None, Some(budget)) = (blob.decoded_len(), self.budget) {
                budget.spend(decoded);
            }
            blob.finish_hashed(stream)
        });
        if let Some((index, found)) = not_a_bool {
            self.error_at(&blob.fault(Fault::NotABool { index, found }), blob);
        }
        if let (true, Some(found @ 16..)) = (odd_half, last) {
            let problem = format!(
                "the high half of the last byte of {} is {}, expected 0",
                blob.role(),
                found >> 4
            );
            self.layout(LayoutError::from(problem));
        }
        let is_read = result.is_ok();
        self.outcome(blob, result);
        if !is_read {
            return None;
        }
        if blob.decoded_len().is_none() {
            self.whole_elements(blob, decoded);
        }
        Some(decoded)
    }

    /// Tells whether a component is all elements of a dense tensor, as they are, without a digest.
    fn is_plain(&self, blob: &Blob<'_>) -> bool {
        let is_dense = self.tensor.object().is_ok_and(|object| object.format == Format::Dense);
        is_dense
            && *blob.role() == Role::Data
            && blob.component().encoding == Encoding::Raw
            && blob.element_type().is_ok_and(|dtype| dtype.bits().is_some())
            && matches!(blob.check_digest(), Ok(Verified::NoDigest))
    }

    /// Tells whether the last byte of a component holds one element of half a byte, and nothing else.
    fn odd_half(&self, blob: &Blob<'_>) -> bool {
        let Ok(ElementType::Packed { bits: 4, .. }) = blob.elements() else { return false };
        self.tensor.object().is_ok_and(|object| {
            let elements = object.elements().unwrap_or_default();
            object.format == Format::Dense && !elements.is_multiple_of(2)
        })
    }

    fn whole_elements(&mut self, blob: &Blob<'_>, len: u64) {
        let width = blob.element_type().ok().and_then(DType::width).unwrap_or(1);
        if len.checked_rem(width) != Some(0) {
            let role = Quoted(blob.role().as_str());
            let problem = format!(
                "component {role} decodes to {len} bytes, expected whole elements of {width}"
            );
            self.layout(LayoutError::from(problem));
        }
    }

    /// Compares the length that generation 1.2 records with the one that its object needs.
    fn recorded_length(&mut self, blob: &Blob<'_>, decoded: u64) {
        let (recorded, offset) = (blob.component().uncompressed_length, blob.component().offset);
        if let Some(expected) = recorded
            && expected != decoded
        {
            let found = Decoded::Exactly(decoded);
            self.error_at(&blob.fault(Fault::DecodedLength { offset, found, expected }), blob);
        }
    }

    fn csr(&mut self, object: &Object) -> Result<()> {
        let [values, indices, indptr] = self.tensor.required_all(object, &sparse::CSR_ROLES)?;
        let nnz = self.stored(&values, elements_of(&indices))?;
        let found = elements_of(&indices).unwrap_or(nnz);
        let (mut index_stream, mut pointer_stream) = (self.open(&indices)?, self.open(&indptr)?);
        let order = (|| {
            let mut pointers = sparse::stream_integers(&indptr, &mut pointer_stream)?;
            let mut columns = sparse::stream_integers(&indices, &mut index_stream)?;
            let order = sparse::check_csr(&object.shape, nnz, found, &mut pointers, &mut columns)?;
            nothing_left("indices", nnz, &mut columns)?;
            Ok(order)
        })();
        match order {
            Ok(RowOrder::Ascending) => {}
            Ok(RowOrder::BrokenIn(row)) => {
                let message = format!("columns of row {row} are not in ascending order");
                let is_v2 = indices.component().is_v2;
                let severity = if is_v2 { Severity::Error } else { Severity::Warning };
                let finding = Finding::new(severity, "zt/csr-order", message);
                self.report.add(finding.at(place(&indices)));
            }
            Err(error) => self.layout(error),
        }
        for (blob, stream) in [(indices, index_stream), (indptr, pointer_stream)] {
            let result = blob.finish_hashed(stream);
            self.outcome(&blob, result);
        }
        self.components(object, &sparse::CSR_ROLES)
    }

    /// Reads the values of a sparse object; returns how many there are.
    fn stored(&mut self, values: &Blob<'_>, indices: Option<u64>) -> Result<u64> {
        let decoded = self.elements(values).unwrap_or_default();
        if let (Ok(ElementType::Packed { .. }), Some(indices)) = (values.elements(), indices) {
            // Opening has proved that there are as many.
            return Ok(indices);
        }
        let width = values.element_type()?.width().unwrap_or(1);
        Ok(decoded.checked_div(width).unwrap_or_default())
    }

    fn coo(&mut self, object: &Object) -> Result<()> {
        let [values, coords] = self.tensor.required_all(object, &sparse::COO_ROLES)?;
        let rank = object.shape.rank() as u64;
        let listed = elements_of(&coords).and_then(|listed| listed.checked_div(rank));
        let nnz = self.stored(&values, listed)?;
        let expected = nnz.saturating_mul(object.shape.rank() as u64);
        let found = elements_of(&coords).unwrap_or(expected);
        let mut stream = self.open(&coords)?;
        let checked = (|| {
            let mut coordinates = sparse::stream_integers(&coords, &mut stream)?;
            sparse::check_coo(&object.shape, nnz, found, &mut coordinates)?;
            nothing_left("coords", expected, &mut coordinates)
        })();
        let fits = checked.is_ok();
        if let Err(error) = checked {
            self.layout(error);
        }
        let result = coords.finish_hashed(stream);
        let is_read = result.is_ok();
        self.outcome(&coords, result);
        if coords.component().is_v2 && fits && is_read {
            self.cells(object, &coords, nnz)?;
        }
        self.components(object, &sparse::COO_ROLES)
    }

    /// Proves that no cell of a sparse tensor is listed twice: what generation 2 asks for.
    fn cells(&mut self, object: &Object, coords: &Blob<'_>, nnz: u64) -> Result<()> {
        let most = self.tensor.reader().limits().sparse_values;
        if nnz > most {
            let message = format!(
                "has {nnz} values, over the limit of {most} (Limits::sparse_values), so that it is \
                 not checked that no element is stored twice"
            );
            self.report.add(Finding::note("zt/cells-unchecked", message).at(self.place()));
            return Ok(());
        }
        let mut stream = coords.stream()?;
        let checked = sparse::stream_integers(coords, &mut stream).and_then(|mut coordinates| {
            sparse::repeated_cell(&object.shape, nnz, &mut coordinates)
        });
        if let Err(error) = checked {
            self.layout(error);
        }
        Ok(())
    }

    fn quantized(&mut self, object: &Object) -> Result<()> {
        let blobs = self.tensor.required_all(object, &QUANTIZED_ROLES)?;
        let decoded = blobs.each_ref().map(|blob| self.elements(blob));
        if blobs.iter().any(|blob| blob.decoded_len().is_none()) {
            self.group(object, &blobs, decoded.map(|len| Some(len.unwrap_or_default())))?;
        }
        self.components(object, &QUANTIZED_ROLES)
    }

    /// Compares the sizes of quantized parts with what shape and attributes say, where all are
    /// known. The format's text shows these sizes in an example and asks for none.
    fn group(
        &mut self,
        object: &Object,
        blobs: &[Blob<'_>; 3],
        lens: [Option<u64>; 3],
    ) -> Result<()> {
        let [Some(packed), Some(scales), Some(zeros)] = lens else { return Ok(()) };
        let [packed_blob, scales_blob, zeros_blob] = blobs;
        let part = |blob: &Blob<'_>, len| Ok::<_, Error>(Part { dtype: blob.element_type()?, len });
        let (packed, scales) = (part(packed_blob, packed)?, part(scales_blob, scales)?);
        let zeros = part(zeros_blob, zeros)?;
        let attributes = self.tensor.attributes().ok().flatten().unwrap_or_default();
        let (rule, message) = match GroupLayout::parse(&object.shape, &attributes) {
            Ok(layout) => match layout.check(packed, scales, zeros) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let message = Chain(&error.of(self.tensor.name())).to_string();
                    ("zt/quantized-size", message)
                }
            },
            Err(error) => {
                let error = error.of(self.tensor.name());
                ("zt/quantized-attributes", format!("sizes are not checked: {}", Chain(&error)))
            }
        };
        self.report.add(Finding::warning(rule, message).at(self.place()));
        Ok(())
    }

    /// Opens a component, unless the file makes us read far more than it holds.
    fn open(&self, blob: &Blob<'_>) -> Result<BlobReader> {
        self.take(blob)?;
        blob.hashed_stream()
    }

    fn take(&self, blob: &Blob<'_>) -> Result<()> {
        let bytes = blob.component().length.max(blob.decoded_len().unwrap_or_default());
        let taken = self.budget.map_or(Ok(()), |budget| budget.take(bytes));
        taken.map_err(|reason| blob.fault(Fault::Read { reason }))
    }

    /// Reports what reading a component has met.
    fn outcome(&mut self, blob: &Blob<'_>, result: Result<Verified>) {
        if let Err(error) = result {
            self.error_at(&error, blob);
        }
    }

    fn layout(&mut self, error: LayoutError) {
        let error = error.of(self.tensor.name());
        self.error(&error);
    }

    fn error(&mut self, error: &Error) {
        self.report.add(finding(error).tensor(short(self.tensor.name())));
    }

    fn error_at(&mut self, error: &Error, blob: &Blob<'_>) {
        self.report.add(finding(error).at(place(blob)));
    }

    fn place(&self) -> At {
        At::file().tensor(short(self.tensor.name()))
    }
}

/// Proves that a component has no more elements than those that were looked at.
fn nothing_left(
    part: &str,
    expected: u64,
    rest: &mut dyn Iterator<Item = Result<u64, LayoutError>>,
) -> Result<(), LayoutError> {
    match rest.next() {
        None => Ok(()),
        Some(_) => Err(format!("{part} has more than {expected} elements").into()),
    }
}

fn place(blob: &Blob<'_>) -> At {
    let path = format!("components.{}", Quoted(blob.role().as_str()));
    At::file().tensor(short(blob.object())).path(path).offset(blob.component().offset)
}

/// Returns how many elements a component has, where that is known before it is decoded.
fn elements_of(blob: &Blob<'_>) -> Option<u64> {
    blob.decoded_len()?.checked_div(blob.element_type().ok()?.width()?)
}

/// Reports blobs that share bytes: a note where they are the same, a warning where they are not.
fn overlaps(reader: &Reader, blobs: &[(Extent, usize)], report: &mut Report) {
    // The blob that reaches furthest so far.
    let mut widest: Option<(Extent, usize)> = None;
    for &(extent, index) in blobs.iter().filter(|(extent, _)| !extent.is_empty()) {
        if let Some((before, owner)) = widest
            && before.overlaps(extent)
        {
            let other = Quoted(reader.manifest().name(owner));
            let finding = if before == extent {
                Finding::note("zt/blob-shared", format!("blob is shared with {other}"))
            } else {
                let message = format!(
                    "blob of {} bytes overlaps the one of {other}, {} bytes at byte {}",
                    extent.len(),
                    before.len(),
                    before.offset()
                );
                Finding::warning("zt/blob-overlap", message)
            };
            let name = short(reader.manifest().name(index));
            report.add(finding.tensor(name).offset(extent.offset()));
        }
        if widest.is_none_or(|(before, _)| extent.end() > before.end()) {
            widest = Some((extent, index));
        }
    }
}

/// Reports padding that is not zero, and bytes that belong to nothing. Format text: Part I,
/// section 1, and Part IV, section 2.
fn gaps(reader: &Reader, blobs: &[(Extent, usize)], report: &mut Report) {
    let room = reader.blobs();
    let is_v2 = reader.generation() == Generation::V2;
    // The manifest of generation 2 is a blob like others, and so is its place.
    let (start, alignment) = if is_v2 { (MAGIC_LEN, FLOOR) } else { (room.offset(), ALIGNMENT) };
    let mut end = start;
    // A file of generation 2 may end before blobs could start.
    let last = if is_v2 { reader.source().len().saturating_sub(FOOTER) } else { room.end() };
    let last = Extent::between(last, last);
    let mut starts: Vec<Extent> = blobs.iter().map(|(extent, _)| *extent).collect();
    if is_v2 {
        starts.push(reader.manifest().extent());
        starts.sort_unstable();
    }
    let starts = starts.into_iter().filter(|extent| !extent.is_empty());
    for next in starts.chain([last]) {
        let gap = Extent::between(end, next.offset());
        end = end.max(next.end());
        // Nothing is padded up to the manifest, so there only an empty blob can leave a gap.
        let aligned = gap.offset().next_multiple_of(alignment).min(gap.end());
        let padding = Extent::between(gap.offset(), aligned);
        let beyond = Extent::between(aligned, gap.end());
        match first_nonzero(reader, padding) {
            Ok(None) => {}
            Ok(Some(at)) if is_left_by_an_edit(reader, Extent::between(at, gap.end())) => {
                let (bytes, start) = (gap.len(), gap.offset());
                let message =
                    format!("{bytes} bytes at byte {start} are left of the file before an edit");
                report.add(Finding::note("zt/gap", message).offset(at));
                continue;
            }
            Ok(Some(at)) => {
                let message = "padding is not zero, which hides bytes from every reader";
                report.add(Finding::warning("zt/padding", message).offset(at));
            }
            Err(error) => report.add(finding(&error)),
        }
        match first_nonzero(reader, beyond) {
            // A gap of zeros is what a coarser alignment leaves.
            Ok(None) => {}
            Ok(Some(at)) => {
                let (bytes, start) = (beyond.len(), beyond.offset());
                let message = format!("{bytes} bytes at byte {start} belong to no object");
                report.add(Finding::note("zt/gap", message).offset(at));
            }
            Err(error) => report.add(finding(&error)),
        }
    }
}

fn is_left_by_an_edit(reader: &Reader, extent: Extent) -> bool {
    is_old_manifest(reader.source(), extent, reader.limits()).unwrap_or_default()
}

/// Returns where in the file the first byte of an extent is that is not zero.
pub(crate) fn first_nonzero(reader: &Reader, extent: Extent) -> Result<Option<u64>> {
    let (source, mut offset) = (reader.source(), extent.offset());
    loop {
        offset = source.skip_hole(offset);
        let piece = Extent::between(offset, extent.end().min(offset.saturating_add(PIECE)));
        if piece.is_empty() {
            return Ok(None);
        }
        let bytes = match source.read(piece, "gap") {
            // An editor had made the file longer for a while.
            Err(tensor_core::Error::Read { source, .. })
                if source.kind() == std::io::ErrorKind::UnexpectedEof =>
            {
                return Ok(None);
            }
            read => read?,
        };
        if let Some(at) = bytes.iter().position(|&byte| byte != 0) {
            return Ok(Some(offset.saturating_add(at as u64)));
        }
        offset = piece.end();
    }
}

/// How much of a gap is read at once, in bytes.
const PIECE: u64 = 256 << 10;
/// How many bytes of the manifest are checked before their findings are counted together: those of
/// a hostile file take a hundred times as much memory.
const PORTION: usize = 128 << 10;
/// The length of the magic in bytes.
const MAGIC_LEN: u64 = 8;

const QUANTIZED_ROLES: [Role; 3] = [Role::PackedWeight, Role::Scales, Role::Zeros];
