//! What opening does not prove: every rule, over every byte, as a report.

use std::sync::atomic::{AtomicU64, Ordering};

use tensor_core::{At, Chain, DType, Extent, Limits, Report, Severity, parallel};

use crate::{
    Blob, BlobReader, Component, Error, Fault, Format, Generation, Object, Reader, Role, Tensor,
    Verified,
    container::ALIGNMENT,
    error::{Decoded, Result, short},
    tensor::{
        GroupLayout, LayoutError, Len, Part,
        sparse::{self, RowOrder},
    },
};

impl Reader {
    /// Reads everything and reports every fault: digests, exact lengths, sparse invariants, bool
    /// bytes, padding, gaps, overlaps, and what the manifest holds beyond the schema.
    ///
    /// The stored bytes of a component are read once, on up to [`threads`](ReadOptions::threads)
    /// threads, in memory that does not grow with the size of the tensors; sparse data of
    /// generation 0.1 is taken apart in memory. What all objects decode to together is bounded by
    /// `Limits::expansion`.
    #[must_use]
    pub fn validate(&self) -> Report {
        validate(self, |_| ())
    }

    /// Does as [`validate`](Self::validate), and tells `progress` how many stored bytes were done
    /// each time an object is finished.
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        validate(self, progress)
    }
}

fn validate(reader: &Reader, progress: impl Fn(u64) + Sync) -> Report {
    let mut report = document(reader);
    let objects: Vec<usize> = (0..reader.manifest().len()).collect();
    let budget = Budget::of(reader);
    let checked = parallel::map(&objects, reader.thread_count(), |&index| {
        let tensor = Tensor::new(reader, index);
        let (report, extents) = (Report::default(), Vec::new());
        let mut check = Check { tensor, budget: &budget, report, extents };
        let result = check.object();
        if let Err(error) = result {
            check.error(&error);
        }
        progress(check.extents.iter().map(|extent| extent.len()).sum());
        (check.report, check.extents)
    });
    let mut blobs = Vec::new();
    for (index, (found, extents)) in checked.into_iter().enumerate() {
        report.append(found);
        blobs.extend(extents.into_iter().map(|extent| (extent, index)));
    }
    blobs.sort_unstable();
    overlaps(reader, &blobs, &mut report);
    gaps(reader, &blobs, &mut report);
    report
}

/// Checks what the manifest says about the file as a whole.
fn document(reader: &Reader) -> Report {
    let mut report = Report::default();
    let manifest = reader.manifest();
    let at = || At::file().offset(manifest.offset());
    let plain = match manifest.generation() {
        Generation::V0_1 => true,
        Generation::V1_0 => manifest.version() == "1.0",
        Generation::V1_1 | Generation::V1_2 => manifest.version().starts_with("1."),
    };
    if !plain {
        let message =
            format!("version is {:?}, expected \"1.1.0\" or the like", manifest.version());
        report.push(Severity::Warning, "zt/version-text", at().path("version"), message);
    }
    if let Err(error) = manifest.attributes() {
        report.push(
            Severity::Error,
            error.rule(),
            at().path("attributes"),
            Chain(&error).to_string(),
        );
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
            report.push(Severity::Note, "zt/manifest-encoding", at(), message);
        }
    }
    report
}

/// Notes the first of the keys that the format does not name, and how many others there are.
fn unknown_keys<'k>(
    report: &mut Report,
    at: &At,
    what: &str,
    mut keys: impl Iterator<Item = &'k str>,
) {
    let mut note = |message| report.push(Severity::Note, "zt/unknown-key", at.clone(), message);
    for key in keys.by_ref().take(KEYS) {
        note(format!("{what} has the key {:?}, which the format does not name", short(key)));
    }
    let others = keys.count();
    if others > 0 {
        note(format!("{what} has {others} more keys that the format does not name"));
    }
}

/// The check of one object.
struct Check<'a> {
    tensor: Tensor<'a>,
    budget: &'a Budget,
    report: Report,
    /// Where the components are that lie where they may.
    extents: Vec<Extent>,
}

impl<'a> Check<'a> {
    fn object(&mut self) -> Result<()> {
        let object = self.tensor.object()?;
        if let Err(error) = self.tensor.attributes() {
            self.error(&error);
        }
        let at = At::file().tensor(short(self.tensor.name()));
        unknown_keys(&mut self.report, &at, "object", object.unknown_keys());
        object.shape.elements()?;
        if let Format::Other(format) = &object.format {
            let message =
                format!("format {:?} is not known, so its layout is not checked", short(format));
            self.push(Severity::Warning, "zt/format", None, message);
        }
        let required = object.format.required_roles();
        let mut usable = true;
        for role in required {
            if object.component(role).is_none() {
                let (object_name, format) = (self.tensor.name().to_owned(), object.format.clone());
                let role = role.clone();
                self.error(&Error::MissingComponent { object: object_name, format, role });
                usable = false;
            }
        }
        for (role, component) in &object.components {
            usable &= self.definition(role, component, required);
        }
        if usable {
            self.contents(&object)?;
        }
        Ok(())
    }

    /// Checks what the manifest says of a component; tells whether its bytes can be read.
    fn definition(&mut self, role: &Role, component: &Component, required: &[Role]) -> bool {
        let blob = self.tensor.unsized_blob(role, component);
        unknown_keys(&mut self.report, &place(&blob), "component", component.unknown_keys());
        if !required.is_empty() && !required.contains(role) {
            let message = "the format of the object does not name the role".to_owned();
            self.push(Severity::Note, "zt/component-extra", Some(&blob), message);
        }
        if let (Some(logical), Some(dtype)) = (&component.logical_type, component.element_type())
            && component.logical_type_is_unknown()
        {
            let message = format!("type {logical:?} is not known, so elements are read as {dtype}");
            self.push(Severity::Warning, "zt/logical-type", Some(&blob), message);
        }
        let mut usable = true;
        match blob.extent() {
            Ok(extent) => self.extents.push(extent),
            Err(error) => {
                self.error_at(&error, &blob);
                usable = false;
            }
        }
        for error in [blob.element_type().err(), blob.check_encoding().err()].into_iter().flatten()
        {
            self.error_at(&error, &blob);
            usable = false;
        }
        usable
    }

    /// Reads all components, once each.
    fn contents(&mut self, object: &Object) -> Result<()> {
        match object.format {
            Format::SparseCsr => self.csr(object),
            Format::SparseCoo => self.coo(object),
            Format::QuantizedGroup => self.quantized(object),
            Format::InlineCsr | Format::InlineCoo => self.inline(object),
            Format::Dense | Format::Other(_) => self.components(object, &[]),
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
        let is_bool = blob.element_type().is_ok_and(|dtype| dtype == DType::Bool);
        let mut not_a_bool = None;
        let mut decoded = 0_u64;
        let result = self.open(blob).and_then(|mut stream| {
            let visited = stream.visit(|piece| {
                if is_bool && not_a_bool.is_none() {
                    let found = piece.iter().enumerate().find(|(_, byte)| **byte > 1);
                    not_a_bool = found.map(|(at, &byte)| (decoded.saturating_add(at as u64), byte));
                }
                decoded = decoded.saturating_add(piece.len() as u64);
            });
            visited.map_err(|error| blob.stream_fault(error))?;
            if blob.decoded_len().is_none() {
                self.budget.spend(decoded);
            }
            blob.finish_hashed(stream)
        });
        if let Some((index, found)) = not_a_bool {
            self.error_at(&blob.fault(Fault::NotABool { index, found }), blob);
        }
        let is_read = result.is_ok();
        self.outcome(blob, result);
        if !is_read {
            return None;
        }
        let width = blob.element_type().ok().and_then(DType::width).unwrap_or(1);
        if decoded.checked_rem(width) != Some(0) {
            let problem = format!(
                "component {:?} decodes to {decoded} bytes, expected whole elements of {width}",
                blob.role().as_str()
            );
            self.layout(LayoutError::from(problem));
        }
        self.recorded_length(blob, decoded);
        Some(decoded)
    }

    /// Compares the length that generation 1.2 records with the one that came out.
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
        let [values, indices, indptr] = self.required(object, &sparse::CSR_ROLES)?;
        let decoded = self.elements(&values).unwrap_or_default();
        let width = values.element_type()?.width().unwrap_or(1);
        let nnz = decoded.checked_div(width).unwrap_or_default();
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
                self.push(Severity::Warning, "zt/csr-order", Some(&indices), message);
            }
            Err(error) => self.layout(error),
        }
        for (blob, stream) in [(indices, index_stream), (indptr, pointer_stream)] {
            let result = blob.finish_hashed(stream);
            self.outcome(&blob, result);
        }
        self.components(object, &sparse::CSR_ROLES)
    }

    fn coo(&mut self, object: &Object) -> Result<()> {
        let [values, coords] = self.required(object, &sparse::COO_ROLES)?;
        let decoded = self.elements(&values).unwrap_or_default();
        let width = values.element_type()?.width().unwrap_or(1);
        let nnz = decoded.checked_div(width).unwrap_or_default();
        let expected = nnz.saturating_mul(object.shape.rank() as u64);
        let found = elements_of(&coords).unwrap_or(expected);
        let mut stream = self.open(&coords)?;
        let checked = (|| {
            let mut coordinates = sparse::stream_integers(&coords, &mut stream)?;
            sparse::check_coo(&object.shape, nnz, found, &mut coordinates)?;
            nothing_left("coords", expected, &mut coordinates)
        })();
        if let Err(error) = checked {
            self.layout(error);
        }
        let result = coords.finish_hashed(stream);
        self.outcome(&coords, result);
        self.components(object, &sparse::COO_ROLES)
    }

    fn quantized(&mut self, object: &Object) -> Result<()> {
        let roles = [Role::PackedWeight, Role::Scales, Role::Zeros];
        let blobs = self.required(object, &roles)?;
        let mut parts = Vec::new();
        for blob in &blobs {
            let len = self.elements(blob).unwrap_or_default();
            parts.push(Part { dtype: blob.element_type()?, len });
        }
        let attributes = self.tensor.attributes().ok().flatten().unwrap_or_default();
        match (GroupLayout::parse(&object.shape, &attributes), parts.as_slice()) {
            (Ok(layout), &[packed, scales, zeros]) => {
                // The format's text shows these sizes in an example and asks for none.
                if let Err(error) = layout.check(packed, scales, zeros) {
                    let message = Chain(&error.of(self.tensor.name())).to_string();
                    self.push(Severity::Warning, "zt/quantized-size", None, message);
                }
            }
            (Err(error), _) => {
                let message =
                    format!("sizes are not checked: {}", Chain(&error.of(self.tensor.name())));
                self.push(Severity::Warning, "zt/quantized-attributes", None, message);
            }
            _ => {}
        }
        self.components(object, &roles)
    }

    /// Returns handles on the components of some roles, which are there.
    fn required<const N: usize>(
        &self,
        object: &Object,
        roles: &[Role; N],
    ) -> Result<[Blob<'a>; N]> {
        let tensor = self.tensor;
        let blobs: Vec<Blob<'a>> =
            roles.iter().map(|role| tensor.required(object, role)).collect::<Result<_>>()?;
        let missing = |_| LayoutError::from("parts are missing".to_owned()).of(tensor.name());
        blobs.try_into().map_err(missing)
    }

    /// Opens a component, unless the file makes us read far more than it holds.
    fn open(&self, blob: &Blob<'_>) -> Result<BlobReader> {
        let component = blob.component();
        let decoded = blob.decoded_len().unwrap_or_default();
        self.budget
            .take(component.length.max(decoded))
            .map_err(|reason| blob.fault(Fault::Read { reason }))?;
        blob.hashed_stream()
    }

    /// Notes what reading a component has proved.
    fn outcome(&mut self, blob: &Blob<'_>, result: Result<Verified>) {
        match result {
            Ok(Verified::Digest | Verified::NoDigest) => {}
            Ok(Verified::UnknownAlgorithm) => {
                let digest = blob.component().digest.as_deref().unwrap_or_default();
                let message =
                    format!("digest {digest:?} is of no known algorithm, so nothing is proved");
                self.push(Severity::Warning, "zt/digest-unknown", Some(blob), message);
            }
            Err(error) => self.error_at(&error, blob),
        }
    }

    fn layout(&mut self, error: LayoutError) {
        let error = error.of(self.tensor.name());
        self.error(&error);
    }

    fn error(&mut self, error: &Error) {
        let at = At::file().tensor(short(self.tensor.name())).offset(error.offset());
        self.report.push(Severity::Error, error.rule(), at, Chain(error).to_string());
    }

    fn error_at(&mut self, error: &Error, blob: &Blob<'_>) {
        self.report.push(Severity::Error, error.rule(), place(blob), Chain(error).to_string());
    }

    fn push(
        &mut self,
        severity: Severity,
        rule: &'static str,
        blob: Option<&Blob<'_>>,
        message: String,
    ) {
        let at = blob.map_or_else(|| At::file().tensor(short(self.tensor.name())), place);
        self.report.push(severity, rule, at, message);
    }
}

/// How many bytes a file may make us read and decode, over all its objects: blobs may be shared by
/// any number of objects, and a few bytes of zstd decode to any number of bytes.
struct Budget {
    spent: AtomicU64,
    limit: u64,
}

impl Budget {
    fn of(reader: &Reader) -> Self {
        let Limits { expansion, decoded_bytes, .. } = *reader.limits();
        let limit = reader.source().len().saturating_mul(expansion).max(decoded_bytes);
        Self { spent: AtomicU64::new(0), limit }
    }

    /// Grants so many bytes, or none.
    fn take(&self, bytes: u64) -> tensor_core::Result<()> {
        let add = |spent: u64| spent.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let taken = self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        taken.map(drop).map_err(|spent| {
            let (what, field) = ("bytes of all objects together", "expansion");
            let found = spent.saturating_add(bytes);
            tensor_core::Error::OverLimit { what, found, limit: self.limit, field }
        })
    }

    /// Notes bytes that were not known before they were decoded.
    fn spend(&self, bytes: u64) {
        let add = |spent: u64| Some(spent.saturating_add(bytes));
        let _ = self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
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
    let path = format!("components.{:?}", short(blob.role().as_str()));
    At::file().tensor(short(blob.object())).path(path).offset(blob.component().offset)
}

/// Returns how many elements a component has, where that is known before it is decoded.
fn elements_of(blob: &Blob<'_>) -> Option<u64> {
    let width = blob.element_type().ok()?.width()?;
    match blob.len() {
        Len::Exactly(len) => len.checked_div(width),
        Len::AtMost(_) => None,
    }
}

/// Reports blobs that share bytes: a note where they are the same, a warning where they are not.
fn overlaps(reader: &Reader, blobs: &[(Extent, usize)], report: &mut Report) {
    let name = |index| short(reader.manifest().name(index));
    // The blob that reaches furthest so far.
    let mut widest: Option<(Extent, usize)> = None;
    for &(extent, index) in blobs.iter().filter(|(extent, _)| !extent.is_empty()) {
        if let Some((before, owner)) = widest
            && before.overlaps(extent)
        {
            let at = At::file().tensor(name(index)).offset(extent.offset());
            let other = name(owner);
            if before == extent {
                let message = format!("blob is shared with {other:?}");
                report.push(Severity::Note, "zt/blob-shared", at, message);
            } else {
                let message = format!(
                    "blob of {} bytes overlaps the one of {other:?}, {} bytes at byte {}",
                    extent.len(),
                    before.len(),
                    before.offset()
                );
                report.push(Severity::Warning, "zt/blob-overlap", at, message);
            }
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
    let mut end = room.offset();
    let last = Extent::between(room.end(), room.end());
    let starts = blobs.iter().map(|(extent, _)| *extent).filter(|extent| !extent.is_empty());
    for next in starts.chain([last]) {
        let gap = Extent::between(end, next.offset());
        end = end.max(next.end());
        // Nothing is padded up to the manifest, so there only an empty blob can leave a gap.
        let aligned = gap.offset().next_multiple_of(ALIGNMENT).min(gap.end());
        let padding = Extent::between(gap.offset(), aligned);
        let beyond = Extent::between(aligned, gap.end());
        match first_nonzero(reader, padding) {
            Ok(None) => {}
            Ok(Some(at)) => {
                let message = "padding is not zero, which hides bytes from every reader";
                report.push(Severity::Warning, "zt/padding", At::file().offset(at), message);
            }
            Err(error) => {
                report.push(Severity::Error, error.rule(), At::file(), Chain(&error).to_string());
            }
        }
        // A gap of zeros is what a coarser alignment leaves.
        if let Ok(Some(at)) = first_nonzero(reader, beyond) {
            let message =
                format!("{} bytes at byte {} belong to no object", beyond.len(), beyond.offset());
            report.push(Severity::Note, "zt/gap", At::file().offset(at), message);
        }
    }
}

/// Returns where in the file the first byte of an extent is that is not zero.
fn first_nonzero(reader: &Reader, extent: Extent) -> Result<Option<u64>> {
    use std::io::BufRead;
    let mut stream = reader.source().stream(extent, "gap")?;
    let mut offset = extent.offset();
    loop {
        let ready = stream.fill_buf();
        let ready =
            ready.map_err(|source| tensor_core::Error::Read { what: "gap", offset, source })?;
        if ready.is_empty() {
            return Ok(None);
        }
        if let Some(at) = ready.iter().position(|&byte| byte != 0) {
            return Ok(Some(offset.saturating_add(at as u64)));
        }
        let len = ready.len();
        stream.consume(len);
        offset = offset.saturating_add(len as u64);
    }
}

/// Keys of one map that are noted one by one.
const KEYS: usize = 16;
