#[test]
fn print() {
    for path in test_support::files("nnpackage/valid", "zip") {
        let reader = nnpackage::Reader::open(&path).unwrap();
        println!(
            "== {:?} {}",
            path.file_name().unwrap(),
            reader.forecast().map_or("runs".to_owned(), |r| r.to_string())
        );
        for f in reader.verify().findings() {
            println!("  {} {} {:?} {}", f.severity, f.rule, f.at, f.message);
        }
    }
}
