//! Files at addresses, as the command takes them.

#[cfg(feature = "remote")]
mod with_remote;

#[cfg(not(feature = "remote"))]
#[test]
fn addresses_are_refused_by_name() {
    let cd = std::env::temp_dir();
    for args in [&["inspect", "s3://b/x.zt"][..], &["verify", "s3://b/x.zt"]] {
        let (status, said) = crate::run::fails(&cd, args);
        let expected = "error: s3://b/x.zt: is an address, which this build does not read: cargo \
                        install --path crates/modelcrate-cli --features remote\n";
        assert_eq!((status, said.lines().next()), (2, expected.lines().next()));
    }
    let readme = std::fs::read_to_string(test_support::workspace().join("README.md")).unwrap();
    assert!(readme.contains("cargo install --path crates/modelcrate-cli --features remote"));
}
