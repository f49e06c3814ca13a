//! One carton for each kind of refusal or finding.

use test_support::zip;

use super::made::{Carton, deflate_block, find, recode, zstd_frame};

/// A file of `testdata/carton/invalid`.
pub(crate) struct Case {
    /// Without `.carton`.
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    /// Of the format text, or of the ZIP application note.
    pub(crate) section: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// Returns all cases, grouped by the section that they break.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Cases::default();
    archives(&mut cases);
    names(&mut cases);
    links_of_the_archive(&mut cases);
    contents(&mut cases);
    manifests(&mut cases);
    agreement(&mut cases);
    documents(&mut cases);
    types(&mut cases);
    shapes(&mut cases);
    runners(&mut cases);
    hints(&mut cases);
    references(&mut cases);
    indices(&mut cases);
    tensors(&mut cases);
    links(&mut cases);
    only_the_format(&mut cases);
    cases.list
}

#[derive(Default)]
struct Cases {
    list: Vec<Case>,
    section: &'static str,
}

impl Cases {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a table of cases made in place reads better"
    )]
    fn add(&mut self, name: &'static str, why: &'static str, carton: Carton) {
        self.raw(name, why, carton.bytes());
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "a table of cases made in place reads better"
    )]
    fn zip(
        &mut self,
        name: &'static str,
        why: &'static str,
        carton: Carton,
        edit: impl FnOnce(&mut zip::Zip),
    ) {
        let mut zip = carton.zip();
        edit(&mut zip);
        self.raw(name, why, zip.to_bytes());
    }

    /// Changes `carton.toml` of the full carton in one place.
    fn toml(&mut self, name: &'static str, why: &'static str, from: &str, to: &str) {
        self.add(name, why, Carton::full().toml(from, to));
    }

    /// Adds a line to `carton.toml` of the small carton, before all tables.
    fn key(&mut self, name: &'static str, why: &'static str, line: &str) {
        let to = format!("spec_version = 1\n{line}\n");
        self.add(name, why, Carton::small().toml("spec_version = 1\n", &to));
    }

    /// Changes the index of the full carton in one place.
    fn index(&mut self, name: &'static str, why: &'static str, from: &str, to: &str) {
        self.add(name, why, Carton::full().index(from, to));
    }

    fn raw(&mut self, name: &'static str, why: &'static str, bytes: Vec<u8>) {
        assert!(self.list.iter().all(|case| case.name != name), "{name} stands twice");
        self.list.push(Case { name, why, section: self.section, bytes });
    }
}

fn archives(cases: &mut Cases) {
    cases.section = "Carton format";
    let small = Carton::small;
    cases.raw("empty", "a file without a byte", Vec::new());
    cases.raw("text", "a text, not an archive", b"spec_version = 1\n".to_vec());
    let bytes = small().bytes();
    cases.raw("cut_in_the_end", "the end record is cut", bytes[..bytes.len() - 8].to_vec());
    cases.raw("cut_in_the_directory", "the directory is cut", bytes[..bytes.len() - 60].to_vec());
    cases.raw("cut_in_an_entry", "an entry is cut", bytes[..100].to_vec());
    cases.raw("cut_at_the_front", "bytes are missing at the front", bytes[40..].to_vec());
    cases.zip("method_lzma", "a method that the format does not know", small(), |zip| {
        recode(zip, "model/m", 14, b"lzma".to_vec());
    });
    cases.zip("method_deflate64", "a method close to one of the format's", small(), |zip| {
        recode(zip, "model/m", 9, deflate_block(b"model"));
    });
    cases.zip("encrypted", "an encrypted entry", small(), |zip| {
        let entry = find(zip, "model/m");
        *entry = entry.clone().both(|header| header.flags |= 1);
    });
    cases.zip("split", "an entry on another disk", small(), |zip| {
        find(zip, "model/m").listing.disk = 3;
    });
    cases.zip("fifo", "an entry with the mode of a pipe", small(), |zip| {
        find(zip, "model/m").listing.external = 0o010_644 << 16;
    });
    cases.zip("overlap", "two entries of one local header", small(), |zip| {
        let mut other = find(zip, "model/m").clone();
        other.central.name = b"model/n".to_vec();
        other.no_local = true;
        other.data.clear();
        other.listing.offset = Some(zip.header_offset(1) as u32);
        zip.entries.push(other);
    });
    cases.zip("local_name", "the local header has another name", small(), |zip| {
        find(zip, "model/m").local.name = b"model/x".to_vec();
    });
    cases.zip("local_method", "the local header has another method", small(), |zip| {
        find(zip, "model/m").local.method = 8;
    });
    cases.zip("gap", "bytes between two entries", small(), |zip| {
        find(zip, "model/m").gap = b"hidden".to_vec();
    });
    cases.zip("prefix", "bytes before the archive", small(), |zip| zip.prefix = b"#!".to_vec());
    cases.zip("suffix", "bytes behind the archive", small(), |zip| zip.suffix = b"end".to_vec());
    cases.zip("comment", "a comment of the archive", small(), |zip| {
        zip.end.comment = b"packed on a Sunday".to_vec();
    });
    cases.zip("end_twice", "an end record in the comment of another", small(), |zip| {
        zip.end.comment = Carton::small().bytes()[bytes.len() - 22..].to_vec();
    });
}

fn names(cases: &mut Cases) {
    cases.section = "Carton format";
    for (name, why, path) in [
        ("name_absolute", "an absolute name", "/model/m"),
        ("name_parent", "a name that leads up", "model/../../m"),
        ("name_dot", "a name with a component that leads nowhere", "model/./m"),
        ("name_backslash", "a name with the other slash", "model\\m"),
        ("name_drive", "a name with the letter of a drive", "c:m"),
        ("name_control", "a name that would move a cursor", "model/\u{1b}[2J"),
        ("name_null", "a name that ends early in C", "model/m\0.txt"),
        ("name_empty_component", "two slashes", "model//m"),
        ("name_empty", "no name", ""),
        ("name_is_a_folder", "content under the name of a folder", "model/n/"),
        ("name_device", "a name that is a device on Windows", "model/NUL.txt"),
        ("name_trailing_dot", "a name that Windows cuts", "model/m."),
    ] {
        cases.zip(name, why, Carton::small(), |zip| {
            zip.entries.push(zip::Entry::stored(path, b"evil"));
        });
    }
    cases.zip("name_not_utf8", "a name that is not UTF-8", Carton::small(), |zip| {
        let mut entry = zip::Entry::stored("", b"evil");
        entry = entry.both(|header| header.name = b"model/\xff".to_vec());
        zip.entries.push(entry);
    });
    cases.zip("name_twice", "two entries of one name", Carton::small(), |zip| {
        zip.entries.push(zip::Entry::stored("model/m", b"evil"));
    });
    cases.zip(
        "name_utf8_flag",
        "a name of UTF-8 without its flag",
        Carton::small().file("model/ü", ""),
        |zip| {
            let entry = find(zip, "model/ü");
            *entry = entry.clone().both(|header| header.flags = 0);
        },
    );
    cases.zip("name_second", "another name in an extra field", Carton::small(), |zip| {
        find(zip, "model/m").central.extra = zip::unicode_path("model/m", "model/x");
    });
    cases.add(
        "name_file_and_folder",
        "a file that another lies in",
        Carton::small().file("model/m/n", ""),
    );
    cases.add(
        "name_case",
        "names that differ in case only",
        Carton::small().file("Model/M", "another"),
    );
    cases.add(
        "name_composition",
        "names that differ in the composition of a letter only",
        Carton::small().file("model/\u{e9}", "1").file("model/e\u{301}", "2"),
    );
}

fn links_of_the_archive(cases: &mut Cases) {
    // The format's text is silent; its own library knows them.
    cases.section = "Carton format";
    let link = |target| Carton::small().symlink("model/l", target, "model");
    cases.add("symlink_loop", "a link to itself", link("l"));
    cases.add(
        "symlink_loop_of_two",
        "two links to each other",
        link("k").symlink("model/k", "l", "model"),
    );
    cases.add("symlink_outside", "a link that leads out", link("../../../etc/passwd"));
    cases.add("symlink_absolute", "an absolute link", link("/etc/passwd"));
    cases.add("symlink_missing", "a link to nothing", link("x"));
    cases.add("symlink_folder", "a link to a folder", link("../tensor_data"));
    cases.add("symlink_malformed", "a link whose text is not a path", link("c:\\m"));
    cases.add(
        "symlink_digest",
        "a link with another digest than its target",
        Carton::small().symlink("model/l", "m", "other"),
    );
    cases.add(
        "symlink_unlisted",
        "a link to a file that is not listed",
        link("n").unlisted("model/n", "model"),
    );
    cases.add("symlink_linked", "a link to a file that is only linked", {
        let carton = link("n").listed("model/n", "model");
        let urls = format!("{} = ['https://models.example.com/n']\n", carton.digest("model/n"));
        carton.links(format!("version = 1\n[urls]\n{urls}"))
    });
    cases.add("symlink_through", "a file below a link", {
        link("m").file("model/l/passwd", "evil")
    });
}

fn contents(cases: &mut Cases) {
    cases.section = "MANIFEST";
    for (name, why, path, changed) in [
        ("digest_model", "another model", "model/m", "Model"),
        ("digest_toml", "another carton.toml", "carton.toml", "spec_version = 1\n"),
        ("digest_misc", "another picture", "misc/plot.png", "\u{2}PNG"),
        ("digest_index", "another index", "tensor_data/index.toml", "tensor = []\n"),
        ("digest_numbers", "other numbers", "tensor_data/tensor_0.bin", &"\0".repeat(24)),
        ("digest_texts", "other texts", "tensor_data/tensor_1.toml", "data = ['a', 'b', 'c']\n"),
    ] {
        cases.add(name, why, Carton::full().sealed().file(path, changed));
    }
    cases.add(
        "digest_of_broken_toml",
        "another carton.toml, which is broken",
        Carton::small().sealed().file("carton.toml", "spec_version ="),
    );
    cases.section = "Carton format";
    let crc = |zip: &mut zip::Zip, name: &str| {
        let entry = find(zip, name);
        *entry = entry.clone().both(|header| header.crc32 ^= 1);
    };
    let small = Carton::small;
    cases.zip("crc", "a wrong checksum", small(), |zip| crc(zip, "model/m"));
    cases.zip("crc_toml", "a wrong checksum of carton.toml", small(), |zip| {
        crc(zip, "carton.toml");
    });
    cases.zip("crc_index", "a wrong checksum of the index", small(), |zip| {
        crc(zip, "tensor_data/index.toml");
    });
    cases.zip("crc_manifest", "a wrong checksum of MANIFEST", small(), |zip| crc(zip, "MANIFEST"));
    cases.zip("crc_zstd", "a wrong checksum of a compressed file", small(), |zip| {
        recode(zip, "model/m", 93, zstd_frame(b"model"));
        crc(zip, "model/m");
    });
    cases.zip("crc_and_digest", "other content", small().sealed(), |zip| {
        find(zip, "model/m").data = b"Model".to_vec();
    });
    cases.zip(
        "crc_unlisted",
        "a wrong checksum of a file that is not listed",
        small().unlisted("model/n", "n"),
        |zip| crc(zip, "model/n"),
    );
    cases.zip("size_stored", "two sizes of what is stored as it is", small(), |zip| {
        let entry = find(zip, "model/m");
        *entry = entry.clone().both(|header| header.size = 6);
    });
    for (name, why, size) in [
        ("size_short", "a size that is too small", 4),
        ("size_long", "a size that is too large", 6),
        ("size_huge", "a size of 4 GiB", u32::MAX - 1),
    ] {
        cases.zip(name, why, small(), |zip| {
            recode(zip, "model/m", 93, zstd_frame(b"model"));
            let entry = find(zip, "model/m");
            *entry = entry.clone().both(|header| header.size = size);
        });
    }
    cases.zip("zstd_garbage", "zstd that is none", small(), |zip| {
        recode(zip, "model/m", 93, b"model".to_vec());
    });
    cases.zip("zstd_cut", "zstd that is cut", small(), |zip| {
        let mut frame = zstd_frame(b"model");
        frame.pop();
        recode(zip, "model/m", 93, frame);
    });
    let two = |a: &[u8], b: &[u8]| [zstd_frame(a), zstd_frame(b)].concat();
    cases.zip("zstd_frames", "two zstd frames", small(), |zip| {
        recode(zip, "model/m", 93, two(b"mo", b"del"));
    });
    cases.zip("zstd_frames_manifest", "MANIFEST as two zstd frames", small(), |zip| {
        let manifest = find(zip, "MANIFEST").data.clone();
        let (a, b) = manifest.split_at(100);
        recode(zip, "MANIFEST", 93, two(a, b));
    });
    cases.zip("zstd_frames_texts", "texts as two zstd frames", Carton::full(), |zip| {
        let texts = find(zip, "tensor_data/tensor_1.toml").data.clone();
        let (a, b) = texts.split_at(10);
        recode(zip, "tensor_data/tensor_1.toml", 93, two(a, b));
    });
    cases.zip("deflate_garbage", "deflate that is none", small(), |zip| {
        recode(zip, "model/m", 8, b"\xffodel".to_vec());
    });
    let longer = |block: Vec<u8>| [&block[..], b"hidden"].concat();
    cases.zip("deflate_leftover", "bytes behind deflate", small(), |zip| {
        recode(zip, "model/m", 8, longer(deflate_block(b"model")));
    });
    cases.zip("deflate_leftover_texts", "bytes behind texts", Carton::full(), |zip| {
        let texts = find(zip, "tensor_data/tensor_1.toml").data.clone();
        recode(zip, "tensor_data/tensor_1.toml", 8, longer(deflate_block(&texts)));
    });
}

fn manifests(cases: &mut Cases) {
    cases.section = "MANIFEST";
    let small = Carton::small;
    let hex = small().digest("model/m");
    let line = format!("model/m={hex}\n");
    let mut edit = |name, why, to: &str| {
        cases.add(
            name,
            why,
            small().manifest(|text| {
                assert_eq!(text.matches(&line).count(), 1);
                text.replace(&line, to)
            }),
        );
    };
    edit("manifest_no_digest", "a line without a sign", "model/m\n");
    edit("manifest_blank_line", "a blank line", &format!("{line}\n"));
    edit("manifest_space", "a space before the digest", &format!("model/m= {hex}\n"));
    edit("manifest_short", "a digest of 63 digits", &format!("model/m={}\n", &hex[1..]));
    edit("manifest_long", "a digest of 65 digits", &format!("model/m={hex}0\n"));
    edit("manifest_no_hex", "a digest with a letter g", &format!("model/m=g{}\n", &hex[1..]));
    edit("manifest_upper", "a digest in capitals", &format!("model/m={}\n", hex.to_uppercase()));
    edit("manifest_trailing_space", "a space behind a line", &format!("model/m={hex} \n"));
    edit("manifest_twice", "a line twice", &format!("{line}{line}"));
    let other = hex.replace('a', "b");
    edit("manifest_two_digests", "a path with two digests", &format!("{line}model/m={other}\n"));
    edit("manifest_itself", "MANIFEST lists itself", &format!("MANIFEST={hex}\n{line}"));
    edit("manifest_links", "MANIFEST lists LINKS", &format!("LINKS={hex}\n{line}"));
    edit("manifest_parent", "a path that leads up", &format!("{line}model/../../m={hex}\n"));
    edit("manifest_absolute", "an absolute path", &format!("/etc/passwd={hex}\n{line}"));
    edit("manifest_backslash", "a path with the other slash", &format!("{line}model\\n={hex}\n"));
    edit("manifest_no_path", "no path", &format!("={hex}\n{line}"));
    edit("manifest_dot", "a path with a dot alone", &format!("./model/m={hex}\n"));
    edit("manifest_control", "a path with an escape", &format!("{line}model/\u{1b}[2J={hex}\n"));
    edit("manifest_folder", "a folder", &format!("model/={hex}\n{line}"));
    edit("manifest_file_and_folder", "a path in a file", &format!("{line}model/m/n={hex}\n"));
    let sort = |text: String| text.lines().rev().map(|line| format!("{line}\n")).collect();
    cases.add("manifest_unsorted", "lines in another order", small().manifest(sort));
    let crlf = |text: String| text.replace('\n', "\r\n");
    cases.add("manifest_crlf", "lines that end as on Windows", small().manifest(crlf));
    let cut = |text: String| text.trim_end().to_owned();
    cases.add("manifest_no_newline", "no newline at the end", small().manifest(cut));
    let marked = |text| format!("\u{feff}{text}");
    cases.add("manifest_bom", "a byte order mark", small().manifest(marked));
    cases.add("manifest_empty", "an empty MANIFEST", small().manifest(|_| String::new()));
    let latin = |text: Vec<u8>| [&text[..], b"model/\xfc=0\n"].concat();
    cases.add("manifest_not_utf8", "a path that is not UTF-8", small().manifest_bytes(latin));
    cases.zip("manifest_missing", "no MANIFEST", small(), |zip| {
        zip.entries.retain(|entry| entry.central.name != b"MANIFEST");
    });
}

fn agreement(cases: &mut Cases) {
    let small = Carton::small;
    cases.section = "MANIFEST";
    cases.add("unlisted", "a file that is not listed", small().unlisted("model/extra.py", "x"));
    cases.section = "LINKS";
    cases.add("missing", "a file that is nowhere", small().left_out("model/m"));
    let url =
        |urls: &str| format!("version = 1\n\n[urls]\n{} = {urls}\n", small().digest("model/m"));
    cases.add("missing_linked", "a file that is linked", {
        small().left_out("model/m").links(url("[\"https://models.example.com/m\"]"))
    });
    cases.add("missing_no_url", "a file that is linked to nowhere", {
        small().left_out("model/m").links(url("[]"))
    });
    cases.add("missing_two_linked", "two files that are linked", {
        small()
            .left_out("model/m")
            .listed("model/n", "model")
            .links(url("[\"https://models.example.com/m\"]"))
    });
    let linked = |path| {
        let line = url("[\"https://models.example.com/m\"]");
        small().listed(path, "model").links(line)
    };
    cases.section = "MANIFEST";
    cases.add("path_device", "a device on Windows, linked", linked("model/nul"));
    cases.add("path_case", "paths that differ in case only, one linked", linked("model/M"));
    cases.add("path_in_a_file", "a path in a file, linked", linked("model/m/n"));
    cases.section = "Carton format";
    cases.add("no_toml", "no carton.toml", small().without("carton.toml"));
    cases.add("no_model", "no model", small().without("model/m"));
    cases.add("unlisted_toml", "carton.toml is not listed", {
        small().unlisted("carton.toml", "spec_version = 1\n")
    });
    cases.add("other_place", "a file outside the folders", small().file("notes.txt", "x"));
    cases.section = "`tensor_data`";
    cases.add("no_index", "tensors without an index", {
        small().without("tensor_data/index.toml").file("tensor_data/tensor_0.bin", "1234")
    });
}

fn documents(cases: &mut Cases) {
    cases.section = "`carton.toml`";
    let depth = |text: &str| text.repeat(600);
    cases.key("toml_syntax", "no value", "model_name =");
    cases.key("toml_unquoted", "a text without quotes", "model_name = full");
    cases.key("toml_open_string", "a text without an end", "model_name = \"full");
    cases.key("toml_twice", "a key twice", "model_name = 'a'\nmodel_name = 'b'");
    cases.key("toml_deep_array", "arrays in arrays", &format!("a = {}", depth("[")));
    cases.key("toml_deep_table", "tables in tables", &format!("a = {}", depth("{a=")));
    cases.key("toml_deep_key", "a key of many parts", &format!("a{} = 1", depth(".a")));
    cases.add("toml_deep_header", "a table of many parts", {
        Carton::small().toml("[runner]", &format!("[a{}]\n[runner]", depth(".a")))
    });
    cases.add("toml_table_twice", "a table twice", {
        Carton::small().toml("[runner]", "[runner]\n[runner]")
    });
    let latin = |text: &[u8]| [text, b"# \xfc\n"].concat();
    let text = Carton::small().zip().entries[0].data.clone();
    cases.add("toml_not_utf8", "a comment that is not UTF-8", {
        Carton::small().file("carton.toml", latin(&text))
    });
    cases.key("toml_1_1", "what only TOML 1.1 has", "model_name = \"\\x41\"");
    cases.key("unknown_key", "a key that the format does not name", "author = 'x'");
    cases.add("unknown_keys", "keys that the format does not name, in tables", {
        Carton::full()
            .toml("[[output]]", "unit = 'm'\n\n[[output]]")
            .toml("threads = 1", "threads = 1\n\n[training]\nepochs = 3")
            .index("shape = [3, 2]", "shape = [3, 2]\norder = 'C'")
    });
    let version = |cases: &mut Cases, name, why, text: &str| {
        cases.add(name, why, Carton::small().toml("spec_version = 1\n", text));
    };
    version(cases, "spec_missing", "no version", "");
    version(cases, "spec_0", "version 0", "spec_version = 0\n");
    version(cases, "spec_2", "version 2", "spec_version = 2\n");
    version(cases, "spec_text", "a version that is a text", "spec_version = \"1\"\n");
    version(cases, "spec_float", "a version that is a float", "spec_version = 1.0\n");
    version(cases, "spec_negative", "a version below zero", "spec_version = -1\n");
}

/// Every key with a value of another type.
fn types(cases: &mut Cases) {
    cases.section = "`carton.toml`";
    cases.key("type_model_name", "a name that is a number", "model_name = 1");
    cases.key("type_short_description", "a text that is a list", "short_description = ['a']");
    cases.key("type_model_description", "a text that is a table", "model_description = {}");
    cases.key("type_license", "a text that is a boolean", "license = true");
    cases.key("type_repository", "a text that is a date", "repository = 2023-01-22");
    cases.key("type_homepage", "a text that is a float", "homepage = 1.5");
    cases.key("type_platforms", "a list that is a text", "required_platforms = 'x86_64'");
    cases.key("type_platform", "a platform that is a number", "required_platforms = [1]");
    cases.key("platform_unknown", "no target triple", "required_platforms = ['linux']");
    cases.key("platform_empty", "no platform", "required_platforms = ['']");
    cases.key("type_input", "a list that is a table", "input = {}");
    cases.key("type_input_item", "an input that is a text", "input = ['x']");
    cases.key("type_output", "a list that is a text", "output = 'y'");
    cases.key("type_self_test", "a list that is a number", "self_test = 1");
    cases.key("type_example", "a list that is a boolean", "example = false");
    let x = "name = \"x\"\n";
    cases.toml("type_input_name", "a name that is a number", x, "name = 1\n");
    cases.toml("input_no_name", "an input without a name", x, "");
    let dtype = "dtype = \"float32\"\n";
    cases.toml("type_dtype", "an element type that is a number", dtype, "dtype = 32\n");
    cases.toml("input_no_dtype", "an input without an element type", dtype, "");
    cases.toml(
        "type_input_description",
        "a text that is a number",
        x,
        "name = 'x'\ndescription = 1\n",
    );
    cases.toml(
        "type_internal_name",
        "a text that is a list",
        x,
        "name = 'x'\ninternal_name = []\n",
    );
    let inputs = "inputs = { x = \"@tensor_data/numbers\" }\n";
    cases.toml("type_test_name", "a name that is a number", inputs, &format!("{inputs}name = 1\n"));
    cases.toml("type_test_inputs", "a table that is a list", inputs, "inputs = ['x']\n");
    cases.toml("type_test_input", "a reference that is a number", inputs, "inputs = { x = 1 }\n");
    cases.toml("test_no_inputs", "a self test without inputs", inputs, "");
    let out = "expected_out = { y = \"@tensor_data/texts\" }\n";
    cases.toml("type_expected_out", "a table that is a text", out, "expected_out = 'y'\n");
    let misc = "inputs = { x = \"@misc/plot.png\" }\n";
    cases.toml("type_example_inputs", "a table that is a text", misc, "inputs = 'x'\n");
    cases.toml(
        "type_example_text",
        "a text that is a number",
        misc,
        &format!("{misc}description = 1\n"),
    );
    let sample = "sample_out = { y = \"@tensor_data/texts\" }\n";
    cases.toml(
        "type_sample_out",
        "a reference that is a list",
        sample,
        "sample_out = { y = [] }\n",
    );
}

fn shapes(cases: &mut Cases) {
    cases.section = "`carton.toml`";
    let dtype = "dtype = \"float32\"";
    cases.toml("dtype_unknown", "an element type of others", dtype, "dtype = 'bool'");
    cases.toml(
        "dtype_capital",
        "an element type with a capital letter",
        dtype,
        "dtype = 'Float32'",
    );
    cases.toml("dtype_nested", "what only tensors may be", dtype, "dtype = 'nested'");
    let shape = "shape = [\"n\", 2]";
    cases.toml("shape_missing", "an input without a shape", shape, "");
    cases.toml("shape_negative", "a dimension below zero", shape, "shape = ['n', -2]");
    cases.toml("shape_float", "a dimension that is a float", shape, "shape = ['n', 2.0]");
    cases.toml("shape_bool", "a dimension that is a boolean", shape, "shape = ['n', true]");
    cases.toml("shape_nested", "a dimension that is a list", shape, "shape = ['n', [2]]");
    cases.toml("shape_bare", "a dimension without a list", shape, "shape = 2");
    cases.toml("shape_huge", "a dimension of 2^63", shape, "shape = ['n', 9223372036854775808]");
    let long = format!("shape = [{}]", "1,".repeat(65));
    cases.toml("shape_rank", "a shape of 65 dimensions", shape, &long);
}

fn runners(cases: &mut Cases) {
    cases.section = "`carton.toml`";
    let mut edit = |name, why, from: &str, to: &str| {
        cases.add(name, why, Carton::small().toml(from, to));
    };
    edit("runner_missing", "no runner", "[runner]\n", "[other]\n");
    let name = "runner_name = \"noop\"\n";
    edit("runner_no_name", "a runner without a name", name, "");
    edit("type_runner_name", "a name that is a list", name, "runner_name = ['noop']\n");
    edit("runner_name_empty", "a name without a letter", name, "runner_name = ''\n");
    let version = "required_framework_version = \"=1.2.3\"\n";
    edit("version_missing", "a runner without a version", version, "");
    edit(
        "type_version",
        "a version that is a float",
        version,
        "required_framework_version = 1.2\n",
    );
    for (name, why, text) in [
        ("version_empty", "an empty version", ""),
        ("version_python", "a version as Python writes it", "==1.2.3"),
        ("version_four_parts", "a version of four parts", "1.2.3.4"),
        ("version_no_comma", "two versions without a comma", ">=1.10 <2"),
        ("version_or", "an alternative", "1 || 2"),
        ("version_latest", "a word", "latest"),
        ("version_zero", "a number that starts with 0", "01.2.3"),
    ] {
        edit(name, why, version, &format!("required_framework_version = '{text}'\n"));
    }
    let compat = "runner_compat_version = 1\n";
    edit("compat_text", "a number that is a text", compat, "runner_compat_version = '1'\n");
    edit("compat_negative", "a number below zero", compat, "runner_compat_version = -1\n");
    edit("compat_missing", "no number that the format's own library needs", compat, "");
    for (name, why, value) in [
        ("option_list", "an option that is a list", "[1]"),
        ("option_table", "an option that is a table", "{ a = 1 }"),
        ("option_date", "an option that is a date", "2023-01-22"),
        ("option_huge", "an option of 2^63", "9223372036854775808"),
        ("option_float_huge", "an option above all floats", "1e400"),
    ] {
        edit(name, why, compat, &format!("{compat}\n[runner.opts]\na = {value}\n"));
    }
    edit("type_opts", "options that are a number", compat, "runner_compat_version = 1\nopts = 1\n");
    cases.key("type_runner", "two runners", "runner = 1");
    cases.add(
        "type_runner_list",
        "a list of runners",
        Carton::small().toml("[runner]", "[[runner]]"),
    );
}

/// What readers tolerate, or what can be true of no model.
fn hints(cases: &mut Cases) {
    cases.section = "`carton.toml`";
    let long = format!("short_description = '{}'", "é".repeat(101));
    cases.key("hint_short_description", "a text of 101 characters", &long);
    cases.key("hint_license", "no SPDX expression", "license = 'my own'");
    cases.key("hint_repository", "no URL", "repository = 'git@host:x.git'");
    cases.key("hint_homepage", "no absolute URL", "homepage = '//models.example.com'");
    for (name, why, text) in [
        ("hint_http_image", "a picture by http", "![x](http://models.example.com/x.png)"),
        ("hint_relative_link", "a relative link", "[x](docs/x.md)"),
        ("hint_html", "raw HTML", "<script>alert(1)</script>"),
        ("description_misc", "a picture that is not there", "![x](@misc/none.png)"),
        ("description_misc_up", "a picture that is elsewhere", "![x](@misc/../model/m)"),
        ("description_misc_empty", "a picture without a name", "![x](@misc/)"),
    ] {
        cases.key(name, why, &format!("model_description = '''\n\n{text}'''"));
    }
    cases.key("hint_platforms", "one platform under two names", {
        "required_platforms = ['x86_64-linux', 'x86_64-unknown-linux']"
    });
    let spec = |list, name| format!("[[{list}]]\nname = '{name}'\ndtype = 'int8'\nshape = ['n']\n");
    let declares =
        |specs: &[String]| Carton::small().toml("[runner]", &format!("{}[runner]", specs.concat()));
    cases.add("inputs_alone", "inputs without outputs", declares(&[spec("input", "x")]));
    cases.add("outputs_alone", "outputs without inputs", declares(&[spec("output", "y")]));
    let specs = [spec("input", "x"), spec("input", "x"), spec("output", "y")];
    cases.add("input_twice", "two inputs of one name", declares(&specs));
    let specs = [spec("input", "x"), spec("output", "y"), spec("output", "y")];
    cases.add("output_twice", "two outputs of one name", declares(&specs));
    let specs = [spec("input", "x"), spec("output", "y").replace("['n']", "'n'")];
    cases.add("symbol_two_meanings", "a symbol for a dimension and a shape", declares(&specs));
    let test = "[[self_test]]\ninputs = {}\n".to_owned();
    cases.add("test_alone", "a self test without inputs and outputs", declares(&[test]));
    let example = "[[example]]\ninputs = {}\nsample_out = {}\n".to_owned();
    cases.add("example_alone", "an example without inputs and outputs", declares(&[example]));
    let of_test = "inputs = { x = \"@tensor_data/numbers\" }\n";
    cases.toml("test_other_input", "a self test of what is not declared", of_test, {
        "inputs = { x = \"@tensor_data/numbers\", z = \"@tensor_data/numbers\" }\n"
    });
    cases.toml("test_lacks_input", "a self test without an input", of_test, "inputs = {}\n");
    let of_test = "expected_out = { y = \"@tensor_data/texts\" }\n";
    cases.toml("test_other_output", "a self test of another output", of_test, {
        "expected_out = { z = \"@tensor_data/texts\" }\n"
    });
    let of_example = "inputs = { x = \"@misc/plot.png\" }\n";
    cases.toml("example_no_inputs", "an example without inputs", of_example, "");
    cases.toml("example_other_input", "an example of what is not declared", of_example, {
        "inputs = { z = \"@misc/plot.png\" }\n"
    });
    let of_example = "sample_out = { y = \"@tensor_data/texts\" }\n";
    cases.toml("example_no_sample", "an example without outputs", of_example, "");
}

fn references(cases: &mut Cases) {
    cases.section = "`carton.toml`";
    let test = "\"@tensor_data/numbers\"";
    cases.toml("test_no_prefix", "a tensor without a prefix", test, "\"numbers\"");
    cases.toml("test_prefix", "a tensor behind another prefix", test, "\"@tensors/numbers\"");
    cases.toml("test_misc", "a picture in a self test", test, "\"@misc/plot.png\"");
    cases.toml("test_unknown", "a tensor that is not there", test, "\"@tensor_data/other\"");
    cases.toml("test_file_name", "the file of a tensor", test, "\"@tensor_data/tensor_0.bin\"");
    let example = "\"@misc/plot.png\"";
    cases.toml("example_no_prefix", "a file without a prefix", example, "\"plot.png\"");
    cases.toml("example_unknown_misc", "a file that is not there", example, "\"@misc/p.png\"");
    cases.toml("example_misc_up", "a file elsewhere", example, "\"@misc/../carton.toml\"");
    cases.toml("example_misc_empty", "a file without a name", example, "\"@misc/\"");
    cases.toml("example_unknown_tensor", "a tensor that is not there", example, {
        "\"@tensor_data/other\""
    });
    cases.add("test_no_index", "a self test without tensors", {
        let test = "[[self_test]]\ninputs = { x = \"@tensor_data/x\" }\n[runner]";
        Carton::small().without("tensor_data/index.toml").toml("[runner]", test)
    });
    let dtype = "dtype = \"float32\"\nshape = [\"n\", 2]";
    cases.toml("test_dtype", "a tensor of another type than declared", dtype, {
        "dtype = \"int32\"\nshape = [\"n\", 2]"
    });
    cases.toml("test_rank", "a tensor of another rank than declared", dtype, {
        "dtype = \"float32\"\nshape = [\"n\"]"
    });
    cases.toml("test_dimension", "a tensor of another shape than declared", dtype, {
        "dtype = \"float32\"\nshape = [\"n\", 3]"
    });
    cases.toml("test_symbol", "a symbol of two values in an input and an output", dtype, {
        "dtype = \"float32\"\nshape = [\"m\", \"n\"]"
    });
    cases.toml("test_symbol_twice", "a symbol of two values in one input", dtype, {
        "dtype = \"float32\"\nshape = [\"n\", \"n\"]"
    });
    cases.toml("test_nested_dtype", "a nested tensor of another type than declared", {
        "inputs = { x = \"@tensor_data/numbers\" }\nexpected_out = { y = \"@tensor_data/texts\" }"
    }, "inputs = { x = \"@tensor_data/numbers\" }\nexpected_out = { y = \"@tensor_data/list\" }");
    cases.toml("example_dtype", "an example of another type than declared", example, test_texts());
    cases.toml(
        "example_shape",
        "an example of another shape than declared",
        "inputs = { x = \"@misc/plot.png\" }\nsample_out = { y = \"@tensor_data/texts\" }",
        "inputs = {}\nsample_out = { y = \"@tensor_data/numbers\" }",
    );
}

const fn test_texts() -> &'static str {
    "\"@tensor_data/texts\""
}

fn indices(cases: &mut Cases) {
    cases.section = "`tensor_data`";
    let dtype = "dtype = \"float32\"";
    cases.index("index_syntax", "an index that is not TOML", dtype, "dtype = float32");
    cases.index("index_dtype", "an element type of others", dtype, "dtype = 'bool'");
    cases.index("index_dtype_missing", "a tensor without an element type", dtype, "");
    let name = "name = \"numbers\"\n";
    cases.index("index_name_missing", "a tensor without a name", name, "");
    cases.index("index_name_type", "a name that is a number", name, "name = 1\n");
    cases.index("index_name_twice", "two tensors of one name", name, "name = 'texts'\n");
    let shape = "shape = [3, 2]\n";
    cases.index("index_shape_missing", "a tensor without a shape", shape, "");
    cases.index("index_shape_negative", "a dimension below zero", shape, "shape = [3, -2]\n");
    cases.index("index_shape_symbol", "a symbol in a tensor", shape, "shape = ['n', 2]\n");
    cases.index("index_shape_text", "a shape that is a text", shape, "shape = '*'\n");
    let long = format!("shape = [{}]\n", "1,".repeat(65));
    cases.index("index_rank", "a tensor of 65 dimensions", shape, &long);
    let file = "file = \"tensor_0.bin\"\n";
    cases.index("index_file_missing", "a tensor without a file", file, "");
    cases.index("index_file_type", "a file that is a number", file, "file = 0\n");
    cases.index("index_file_up", "a file elsewhere", file, "file = '../carton.toml'\n");
    cases.index("index_file_absolute", "an absolute file", file, "file = '/etc/passwd'\n");
    cases.index("index_file_empty", "a file without a name", file, "file = ''\n");
    cases.index("index_file_unlisted", "a file that is not listed", file, "file = 'x.bin'\n");
    cases.index("index_file_other_place", "a file from the root", file, {
        "file = 'tensor_data/tensor_0.bin'\n"
    });
    let plain = "file = \"tensor_0.bin\"\ninner = []\n";
    cases.index("index_inner_of_plain", "inner tensors of a plain one", plain, {
        "file = 'tensor_0.bin'\ninner = ['texts']\n"
    });
    let inner = "inner = [\"numbers\", \"numbers\"]";
    cases.index("nested_no_inner", "a nested tensor without a list", inner, "");
    cases.index("nested_unknown", "a nested tensor of what is not there", inner, "inner = ['x']");
    cases.index("nested_itself", "a nested tensor in itself", inner, "inner = ['list']");
    cases.index("nested_in_nested", "a nested tensor in another", inner, {
        "inner = ['other']\n[[tensor]]\nname = 'other'\ndtype = 'nested'\ninner = ['numbers']"
    });
    cases.index("nested_empty", "a nested tensor of nothing", inner, "inner = []");
    cases.index("nested_type", "a list that is a text", inner, "inner = 'numbers'");
    cases.index("nested_inner_type", "a name that is a number", inner, "inner = [1]");
    cases.index("nested_twice", "an inner tensor twice, and in two nested ones", inner, {
        "inner = ['numbers']\n[[tensor]]\nname = 'other'\ndtype = 'nested'\ninner = ['numbers']"
    });
    cases.add("index_tensor_type", "a list that is a number", {
        Carton::small().file("tensor_data/index.toml", "tensor = 1\n")
    });
    cases.add("index_tensor_item", "a tensor that is a number", {
        Carton::small().file("tensor_data/index.toml", "tensor = [1]\n")
    });
    cases.index(
        "index_toml_1_1",
        "what only TOML 1.1 has",
        "name = \"list\"",
        "name = \"\\x6cist\"",
    );
    cases.add("index_unused_file", "a file of no tensor", {
        Carton::small().file("tensor_data/x.bin", "x")
    });
}

fn tensors(cases: &mut Cases) {
    cases.section = "`tensor_data`";
    let shape = "shape = [3, 2]";
    cases.index("tensor_short", "fewer bytes than the shape needs", shape, "shape = [3, 3]");
    cases.index("tensor_long", "more bytes than the shape needs", shape, "shape = [3, 1]");
    cases.index("tensor_none", "bytes of a tensor without elements", shape, "shape = [0, 2]");
    cases.index("tensor_wraps", "a product above 2^64", shape, {
        "shape = [1099511627776, 1099511627776]"
    });
    cases.index("tensor_wraps_to_0", "a product above 2^64 beside a 0", shape, {
        "shape = [1099511627776, 1099511627776, 0]"
    });
    cases.index(
        "tensor_2_to_60",
        "a claim of 2^60 elements",
        shape,
        "shape = [1152921504606846976]",
    );
    cases.index("tensor_bytes_wrap", "2^63 bytes of 4 bytes each", shape, {
        "shape = [9223372036854775807]"
    });
    let bin = "tensor_data/tensor_0.bin";
    cases.add("tensor_odd", "a part of an element", Carton::full().file(bin, vec![0; 23]));
    cases.add("tensor_linked_wraps", "a product above 2^64 of what is linked", {
        let carton = Carton::full().index(shape, "shape = [1099511627776, 1099511627776]");
        let digest = carton.digest(bin);
        carton.left_out(bin).links(format!(
            "version = 1\n[urls]\n{digest} = [\"https://models.example.com/numbers\"]\n"
        ))
    });
    let texts = "shape = [3]\n";
    cases.index("texts_few", "fewer texts than the shape needs", texts, "shape = [4]\n");
    cases.index("texts_many", "more texts than the shape needs", texts, "shape = [2]\n");
    cases.index("texts_wrap", "a product of texts above 2^64", texts, {
        "shape = [1099511627776, 1099511627776]\n"
    });
    let path = "tensor_data/tensor_1.toml";
    let mut file = |name, why, text: &str| {
        cases.add(name, why, Carton::full().file(path, text));
    };
    file("texts_syntax", "texts that are not TOML", "data = [a, b, c]\n");
    file("texts_no_data", "no texts", "texts = ['a', 'b', 'c']\n");
    file("texts_type", "texts that are one", "data = 'abc'\n");
    file("texts_numbers", "texts of which one is a number", "data = ['a', 2, 'c']\n");
    file("texts_nested", "texts in lists", "data = [['a', 'b', 'c']]\n");
    file("texts_unknown_key", "a key beside the texts", "data = ['a', 'b', 'c']\nx = 1\n");
    file("texts_toml_1_1", "what only TOML 1.1 has", "data = ['a', 'b', \"\\x63\"]\n");
    cases.add("texts_not_utf8", "texts that are not UTF-8", {
        Carton::full().file(path, b"data = ['a', 'b', '\xfc']\n".to_vec())
    });
    let another = "[[tensor]]\nname = \"list\"";
    cases.index("texts_shared", "texts of two tensors of which one has another shape", another, {
        "[[tensor]]\nname = 'other'\ndtype = 'string'\nshape = [2]\nfile = 'tensor_1.toml'\n\
         inner = []\n\n[[tensor]]\nname = \"list\""
    });
    cases.add("texts_behind_a_link", "texts behind a link, of which there are too few", {
        Carton::full().without(path).file("tensor_data/real.toml", "data = ['a', 'b']\n").symlink(
            path,
            "real.toml",
            "data = ['a', 'b']\n",
        )
    });
}

fn links(cases: &mut Cases) {
    cases.section = "LINKS";
    let digest = Carton::small().digest("model/m");
    let url = "https://models.example.com/m";
    let mut with = |name, why, text: &str| {
        cases.add(name, why, Carton::small().links(text.replace("{digest}", &digest)));
    };
    let one = format!("[urls]\n{{digest}} = [\"{url}\"]\n");
    with("links_syntax", "LINKS that is not TOML", "version 1\n");
    with("links_no_version", "no version", &one);
    with("links_version_2", "version 2", &format!("version = 2\n{one}"));
    with("links_version_text", "a version that is a text", &format!("version = \"1\"\n{one}"));
    with("links_no_urls", "no URLs", "version = 1\n");
    with("links_urls_type", "URLs that are a list", &format!("version = 1\nurls = ['{url}']\n"));
    let mut urls =
        |name, why, line: &str| with(name, why, &format!("version = 1\n\n[urls]\n{line}\n"));
    urls("links_key_short", "a key that is not a digest", &format!("abc = ['{url}']"));
    urls("links_key_path", "a key that leads up", &format!("\"../../x\" = ['{url}']"));
    urls("links_bare", "a URL without a list", &format!("{{digest}} = '{url}'"));
    urls("links_number", "a URL that is a number", "{digest} = [1]");
    urls("links_empty", "no URL of a file that is here", "{digest} = []");
    urls("links_http", "a URL of http", "{digest} = ['http://models.example.com/m']");
    urls("links_ftp", "a URL of ftp", "{digest} = ['ftp://models.example.com/m']");
    urls("links_file", "a URL of a file", "{digest} = ['file:///etc/passwd']");
    urls("links_relative", "a URL without a host", "{digest} = ['m']");
    urls("links_no_host", "a URL without a host", "{digest} = ['https:///m']");
    urls("links_secret", "a URL with a password", {
        "{digest} = ['https://user:secret@models.example.com/m']"
    });
    urls("links_unused", "a link of no file", &format!("{} = ['{url}']", "0".repeat(64)));
    urls("links_unknown_key", "a key that the format does not name", "[mirrors]\na = 1");
    urls("links_toml_1_1", "what only TOML 1.1 has", &format!("{{digest}} = [\"{url}\\x41\"]"));
    let upper = digest.to_uppercase();
    cases.add("links_upper", "a key in capitals", {
        let line = format!("version = 1\n[urls]\n{upper} = ['{url}']\n");
        Carton::small().left_out("model/m").links(line)
    });
}

/// Sound cartons that the format's own library does not read.
fn only_the_format(cases: &mut Cases) {
    cases.section = "`tensor_data`";
    cases.add("spec_no_tensors", "the folder tensor_data is optional", {
        Carton::small().without("tensor_data/index.toml")
    });
    cases.add("spec_no_inner", "plain tensors of the text have no key inner", {
        Carton::full()
            .index("file = \"tensor_0.bin\"\ninner = []\n", "file = \"tensor_0.bin\"\n")
            .index("file = \"tensor_1.toml\"\ninner = []\n", "file = \"tensor_1.toml\"\n")
    });
    cases.index("spec_shared_file", "two tensors may share a file", "name = \"list\"", {
        "name = 'other'\ndtype = 'int32'\nshape = [6]\nfile = 'tensor_0.bin'\ninner = []\n\n\
         [[tensor]]\nname = \"list\""
    });
    cases.section = "LINKS";
    let small = Carton::small();
    let line = |path| format!("{} = ['https://models.example.com/x']\n", small.digest(path));
    let links = ["carton.toml", "tensor_data/index.toml"].map(line).concat();
    cases.add("spec_linked_documents", "documents may be linked", {
        Carton::small()
            .left_out("carton.toml")
            .left_out("tensor_data/index.toml")
            .links(format!("version = 1\n[urls]\n{links}"))
    });
}
