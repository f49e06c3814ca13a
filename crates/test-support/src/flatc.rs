//! What a format says about FlatBuffers, against the code that flatc makes of its schema.

use std::collections::BTreeSet;

/// Proves what a module of `crate::generated` has, whose text is given too: these tables and no
/// others, each with these fields and no others, by their ids, which count from 0 without a gap; and
/// their types, and what an absent field means. What has no default value is absent by itself; a
/// table that requires a field is not read without it.
#[macro_export]
#[expect(clippy::crate_in_macro_def, reason = "the tables are those of the crate that calls")]
macro_rules! flatc_tables {
    (@absent $found:expr) => {
        $found.is_none()
    };
    (@absent $found:expr, $default:expr) => {
        $found == $default
    };
    (@read $table:ident, $read:expr, requires $required:ident $fields:tt) => {
        let Err(flatbuffers::InvalidFlatbuffer::MissingRequiredField { required, .. }) = $read
        else {
            panic!("{} is not required", stringify!($table.$required));
        };
        assert_eq!(required, stringify!($required));
    };
    (@read $table:ident, $read:expr, { $( $field:ident $(= $default:expr)?; )* }) => {
        let table = $read.unwrap();
        $(
            let found = table.$field();
            let is_absent = $crate::flatc_tables!(@absent found $(, $default)?);
            assert!(is_absent, stringify!($table.$field));
        )*
    };
    ($schema:ident, $source:expr, {$(
        $table:ident by $args:ident $(requires $required:ident)? {
            $( $field:ident: $type:ty $(= $default:expr)?; )*
        }
    )*}) => {
        mod $schema {
            use crate::generated::$schema::*;

            type Text = Option<&'static str>;
            type Numbers<T> = Option<flatbuffers::Vector<'static, T>>;
            type Tables<T> = Numbers<flatbuffers::ForwardsUOffset<T>>;
            type AnyTable = Option<flatbuffers::Table<'static>>;

            #[test]
            fn fields_have_their_types() {
                $($( let _: fn(&$table<'static>) -> $type = $table::<'static>::$field; )*)*
            }

            #[test]
            #[allow(unused_variables, reason = "some tables are empty")]
            fn absent_fields_are_read_as_defaults() {
                // The root at byte 8, the list of its fields at byte 4: none.
                let bytes = [8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0];
                $(
                    let read = flatbuffers::root::<$table<'_>>(&bytes);
                    $crate::flatc_tables! {
                        @read $table, read, $(requires $required)? { $( $field $(= $default)?; )* }
                    }
                )*
            }

            #[test]
            #[allow(unused_variables, reason = "some tables are empty")]
            fn absent_fields_are_built_from_defaults() {
                $(
                    let args = $args::default();
                    $(
                        let is_absent = $crate::flatc_tables!(@absent args.$field $(, $default)?);
                        assert!(is_absent, stringify!($table.$field));
                    )*
                )*
            }

            #[test]
            fn fields_are_at_their_places_and_there_are_no_others() {
                let tables: &[(&str, &[&str])] =
                    &[$( (stringify!($table), &[$( stringify!($field), )*]), )*];
                $crate::flatc::assert_fields($source, tables);
            }
        }
    };
}

/// Asserts that generated code has these tables, each with these fields in the order of their ids.
///
/// # Panics
///
/// Where it has others.
pub fn assert_fields(source: &str, tables: &[(&str, &[&str])]) {
    let mut found = BTreeSet::new();
    let mut table = "";
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("impl<'a> ") {
            table = rest.split('<').next().unwrap_or_default();
        }
        let field = line.trim_start().strip_prefix("pub const VT_");
        let field = field.and_then(|field| field.trim_end_matches(';').split_once(": "));
        if let Some((field, value)) = field {
            let place = value.rsplit(' ').next().and_then(|place| place.parse::<u16>().ok());
            found.insert((table, field.to_owned(), place));
        }
    }
    let mut expected = BTreeSet::new();
    for (table, fields) in tables {
        let places = (4..).step_by(2).map(Some);
        expected.extend(
            fields.iter().zip(places).map(|(field, at)| (*table, field.to_uppercase(), at)),
        );
        assert!(source.contains(&format!("pub struct {table}<'a> {{")), "{table}");
    }
    assert_eq!(found, expected);
    assert_eq!(source.matches("pub _tab: ::flatbuffers::Table<'a>").count(), tables.len());
}
