//! The options of operators.

use flatbuffers::{UnionWIPOffset, VOffsetT, WIPOffset};

use super::{
    encode::{Encoder, arguments, unknown},
    scan::Scan,
};
use crate::{
    Result, WriteFault,
    generated::circle,
    model::{Schema, options::*},
};

/// Tells whether a schema has a member of the first union; both have all of the second one.
const fn has_member(tag: u8, schema: Schema) -> bool {
    matches!(schema, Schema::Circle) || tag < FIRST_OF_CIRCLE
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a field of a stored table; what Circle has not is its default there.
macro_rules! field {
    ($scan:ident, $table:ident.$field:ident) => {
        $scan.read($table.$field())
    };
    ($scan:ident, $table:ident.$field:ident, $schema:ident) => {
        match $scan.schema() {
            Schema::$schema => $scan.read($table.$field()),
            _ => Default::default(),
        }
    };
}

/// Counts a field of a stored table: 0 where the schema has it not.
macro_rules! count {
    ($scan:ident) => {
        1
    };
    ($scan:ident, $schema:ident) => {
        VOffsetT::from(matches!($scan.schema(), Schema::$schema))
    };
}

/// Writes a field of a stored table; what the schema has not has to be its default.
macro_rules! put {
    ($encoder:ident, $args:ident, $table:ident.$field:ident) => {
        $args.$field = $encoder.write(&$table.$field)?;
    };
    ($encoder:ident, $args:ident, $table:ident.$field:ident, $schema:ident) => {
        if $encoder.schema() == Schema::$schema {
            $args.$field = $encoder.write(&$table.$field)?;
        } else {
            let is_default = is_default(&$table.$field);
            $encoder.only(is_default, concat!("the option ", stringify!($field)))?;
        }
    };
}

/// Reads and writes unions and tables.
macro_rules! convert {
    ($(
        $(#[$union_doc:meta])*
        union $union:ident, $tag_field:ident at $vt:ident for $what:literal:
        $(
            $tag:literal $name:ident $getter:ident $table:ident {
                $(
                    $field:ident: $type:ty $(= $default:expr)? $(, only $schema:ident)? =>
                        $doc:literal;
                )*
            }
        )*
    )*) => {
        $(
            impl $union {
                pub(super) fn from_stored(
                    operator: &circle::Operator<'_>,
                    scan: &Scan<'_>,
                ) -> Result<Option<Self>> {
                    Ok(match operator.$tag_field().0 {
                        0 => None,
                        $(
                            $tag if has_member($tag, scan.schema()) => operator
                                .$getter()
                                .map(|table| Self::$name($table::from_stored(&table, scan))),
                        )*
                        tag => scan
                            .unknown($what, tag, operator._tab, circle::Operator::$vt)?
                            .map(Self::Unknown),
                    })
                }

                pub(super) fn to_stored(
                    &self,
                    encoder: &mut Encoder,
                ) -> Result<(circle::$union, WIPOffset<UnionWIPOffset>), WriteFault> {
                    if let (Some(name), false) =
                        (self.name(), has_member(self.tag(), encoder.schema()))
                    {
                        return Err(encoder.missing(format!("the table {name}")));
                    }
                    let table = match self {
                        $( Self::$name(table) => table.to_stored(encoder)?, )*
                        Self::Unknown(table) => return Err(unknown($what, table)),
                    };
                    Ok((circle::$union(self.tag()), table))
                }
            }

            $(
                #[allow(unused_variables, reason = "some tables are empty")]
                impl $table {
                    fn from_stored(table: &circle::$table<'_>, scan: &Scan<'_>) -> Self {
                        let fields: &[VOffsetT] = &[$( count!(scan $(, $schema)?) ),*];
                        scan.options(table._tab, fields.iter().sum());
                        Self {
                            $( $field: field!(scan, table.$field $(, $schema)?), )*
                        }
                    }

                    #[allow(unused_mut, reason = "some tables are empty")]
                    fn to_stored(
                        &self,
                        encoder: &mut Encoder,
                    ) -> Result<WIPOffset<UnionWIPOffset>, WriteFault> {
                        let mut args = arguments(circle::$table::create);
                        $( put!(encoder, args, self.$field $(, $schema)?); )*
                        Ok(circle::$table::create(encoder.table()?, &args).as_union_value())
                    }
                }
            )*
        )*
    };
}

option_tables! { convert }

/// The first member of the first union that only Circle has.
const FIRST_OF_CIRCLE: u8 = 247;
