//! Descriptions of FlatBuffers schemas for `flat_tables`, from the code that flatc makes.
//!
//! What flatc writes for the verifier of the crate `flatbuffers` says everything, in one form:
//!
//! ```text
//! impl ::flatbuffers::Verifiable for Conv2DOptions<'_> {
//!         v.visit_table(pos)?
//!             .visit_field::<Padding>("padding", Self::VT_PADDING, false)?
//!             .finish();
//! ```

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result, bail};

/// The name of what both schemas of a file have, but not with the same fields or members; and how
/// many of them the one has, and the other, of which the names of own tables start with `Tflite`. A
/// later release may put something else in the place of what its schema lacks.
pub(crate) type Shared = (&'static str, [usize; 2]);

/// Returns the code of a module `tables` that describes the same tables.
pub(crate) fn describe(made: &str, halves: &str, shared: &[Shared]) -> Result<String> {
    let made: String = made.chars().filter(|char| !char.is_whitespace()).collect();
    let code = Code { made: &made, halves };
    let (mut tables, mut unions) = (String::new(), BTreeMap::new());
    for part in made.split("impl::flatbuffers::Verifiablefor").skip(1) {
        let Some((name, body)) = part.split_once("<'_>{") else { continue };
        let Some((body, _)) = body.split_once(".finish();") else { continue };
        // The implementation for an enum has no such end, and runs on into a table.
        if name.contains('{') {
            continue;
        }
        tables += &code.table(name, body, &mut unions).with_context(|| name.to_owned())?;
    }
    tables.extend(unions.into_values());
    let tables = separate(&tables, shared)?;
    Ok(format!(
        "\n/// What there is to prove of each table before anything above may be used on it.\n\
         pub(crate) mod tables {{\n\
         use flat_tables::{{Field, FieldType, Halves, Member, TableType, Union}};\n\
         {tables}}}\n"
    ))
}

/// Describes what is shared once for each of the two schemas.
fn separate(tables: &str, shared: &[Shared]) -> Result<String> {
    let stands_for = |code: &str, name: &str| code.contains(&format!("static {name}:"));
    if let Some((name, _)) = shared.iter().find(|(name, _)| !stands_for(tables, name)) {
        bail!("there is no {name} to share");
    }
    let cut = |code: &str, count: usize| -> String {
        let is_kept = |at: usize, line: &&str| at <= count || line.starts_with(']');
        // The first line is empty, the second one the start.
        let lines = code.split_inclusive('\n').enumerate();
        lines
            .filter(|(at, line)| is_kept(at.saturating_sub(1), line))
            .map(|(_, line)| line)
            .collect()
    };
    let renamed = |code: &str| {
        shared.iter().fold(code.to_owned(), |code, (name, _)| {
            let code = code.replace(&format!("&{name})"), &format!("&TFLITE_{name})"));
            code.replace(&format!("static {name}:"), &format!("static TFLITE_{name}:"))
        })
    };
    let both = |code: &str| match shared.iter().find(|(name, _)| stands_for(code, name)) {
        Some((_, [first, second])) => cut(code, *first) + &cut(&renamed(code), *second),
        None if code.contains("static TFLITE_") => renamed(code),
        None => code.to_owned(),
    };
    Ok(tables.split_inclusive("] };\n").map(both).collect())
}

/// Made code without blanks.
struct Code<'a> {
    made: &'a str,
    /// The name of the variant of `flat_tables::Halves`.
    halves: &'a str,
}

impl Code<'_> {
    fn table(
        &self,
        name: &str,
        body: &str,
        unions: &mut BTreeMap<String, String>,
    ) -> Result<String> {
        let mut fields = BTreeMap::new();
        for visit in body.split(".visit_").skip(2) {
            if let Some(visit) = visit.strip_prefix("field::<") {
                let (stored, rest) = visit.split_once(">(\"").context("a field without a name")?;
                let is_required = self.is_required(rest)?;
                let (field, place) = self.field(name, rest)?;
                fields.insert(place, (field, self.stored(stored)?, is_required));
                continue;
            }
            let visit = visit.trim_start_matches("loose_").strip_prefix("union::<");
            let visit = visit.context("neither a field nor a union")?;
            let (union, rest) = visit.split_once(",_>(\"").context("a union without a name")?;
            let (tag, place) = self.field(name, rest)?;
            fields.insert(place, (tag, "Tag".to_owned(), false));
            let rest = rest.splitn(3, ',').nth(2).context("a union without a value")?;
            let rest = rest.strip_prefix('"').context("a value without a name")?;
            let (value, value_place) = self.field(name, rest)?;
            if value_place != place + 2 {
                bail!("the value {value} does not follow its tag");
            }
            let is_required = self.is_required(rest)?;
            let field_type = format!("Union(&{})", constant(union));
            fields.insert(value_place, (value, field_type, is_required));
            unions.insert(union.to_owned(), self.union(union, rest)?);
        }
        let expected = self.code_of(name)?.matches(PLACE).count();
        if fields.len() != expected {
            bail!("{} fields are verified, expected {expected}", fields.len());
        }
        let mut code = format!(
            "\npub(crate) static {}: TableType = TableType {{ name: {name:?}, fields: &[\n",
            constant(name)
        );
        let last = fields.keys().next_back().copied().unwrap_or(2);
        for place in (4..=last).step_by(2) {
            match fields.get(&place) {
                None => code += "Field::new(\"unused\", FieldType::Unused),\n",
                Some((field, stored, is_required)) => {
                    let new = if *is_required { "required" } else { "new" };
                    writeln!(code, "Field::{new}({field:?}, FieldType::{stored}),")?;
                }
            }
        }
        Ok(code + "] };\n")
    }

    /// Returns the name of a field and where it is in the list of the table.
    fn field(&self, table: &str, rest: &str) -> Result<(String, u16)> {
        let (name, rest) = rest.split_once("\",Self::").context("a field without a place")?;
        let (place, _) = rest.split_once(',').context("a place without an end")?;
        let code = self.code_of(table)?;
        let value = format!("pubconst{place}:::flatbuffers::VOffsetT=");
        let (_, value) = code.split_once(&value).with_context(|| place.to_owned())?;
        let (value, _) = value.split_once(';').context("a constant without an end")?;
        Ok((name.to_owned(), value.parse()?))
    }

    /// Returns what a table is made to do: the places of its fields, and what reads them.
    fn code_of(&self, table: &str) -> Result<&str> {
        let start = format!("impl<'a>{table}<'a>{{");
        let (_, code) = self.made.split_once(&start).context("no constants")?;
        Ok(code.split_once("impl").map_or(code, |(code, _)| code))
    }

    fn is_required(&self, rest: &str) -> Result<bool> {
        match rest.split(',').nth(2).map(|word| word.trim_end_matches([')', '?'])) {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            found => bail!("{found:?} in {} bytes of code, expected a bool", self.made.len()),
        }
    }

    /// Returns the variant of `FieldType` for the type of a field.
    fn stored(&self, stored: &str) -> Result<String> {
        let inner = |stored: &'_ str, outer: &str| {
            let inner = stored.strip_prefix(outer)?.strip_suffix('>')?;
            Some(inner.trim_end_matches(',').to_owned())
        };
        let Some(target) = inner(stored, OFFSET) else {
            return Ok(format!("scalar({})", self.width(stored)?));
        };
        let Some(element) = inner(&target, "::flatbuffers::Vector<'_,") else {
            return Ok(match target.as_str() {
                "&str" => "Text".to_owned(),
                table => format!("Table(&{})", constant(table)),
            });
        };
        Ok(match inner(&element, OFFSET).as_deref() {
            Some("&str" | "&'_str") => "Texts".to_owned(),
            Some(table) => format!("Tables(&{})", constant(table)),
            None => format!("scalars({})", self.width(&element)?),
        })
    }

    /// Returns how many bytes a number has.
    fn width(&self, number: &str) -> Result<u8> {
        Ok(match number {
            "bool" | "u8" | "i8" => 1,
            "u16" | "i16" => 2,
            "u32" | "i32" | "f32" => 4,
            "u64" | "i64" | "f64" => 8,
            name => {
                let (_, code) = self
                    .made
                    .split_once(&format!("pubstruct{name}(pub"))
                    .with_context(|| name.to_owned())?;
                let (number, _) = code.split_once(')').context("a struct without an end")?;
                return self.width(number);
            }
        })
    }

    fn union(&self, name: &str, rest: &str) -> Result<String> {
        let (_, code) = self
            .made
            .split_once(&format!("impl{name}{{"))
            .with_context(|| format!("no members of {name}"))?;
        let (code, _) = code.split_once("pubconstENUM_VALUES").context("members without an end")?;
        let mut members = BTreeMap::new();
        for member in code.split("pubconst").skip(1) {
            // What is behind the members are their least and greatest number.
            let Some((member, value)) = member.split_once(":Self=Self(") else { continue };
            let (value, _) = value.split_once(')').context("a member without an end")?;
            members.insert(value.parse::<u8>()?, member);
        }
        let mut text = format!(
            "\nstatic {}: Union = Union {{ halves: Halves::{}, members: &[\n",
            constant(name),
            self.halves
        );
        let last = members.keys().next_back().copied().unwrap_or_default();
        for tag in 0..=last {
            let arm = members.get(&tag).and_then(|member| {
                let arm = format!("{name}::{member}=>v.verify_union_variant::<{OFFSET}");
                Some(rest.split_once(&arm)?.1.split_once('>')?.0)
            });
            match (tag, arm) {
                (0, _) => text += "Member::Nothing,\n",
                (_, Some("&str")) => text += "Member::Text,\n",
                (_, Some(table)) => writeln!(text, "Member::Table(&{}),", constant(table))?,
                (_, None) if members.contains_key(&tag) => {
                    // There is an accessor for it, of which nothing would be proved.
                    bail!("nothing verifies member {tag} of {name}");
                }
                (_, None) => text += "Member::Unknown,\n",
            }
        }
        Ok(text + "] };\n")
    }
}

/// Returns the name of the static for a type.
fn constant(name: &str) -> String {
    let mut constant = String::new();
    let mut was_lower = false;
    for char in name.chars() {
        if char.is_ascii_uppercase() && was_lower {
            constant.push('_');
        }
        was_lower = !char.is_ascii_uppercase();
        constant.push(char.to_ascii_uppercase());
    }
    constant
}

/// What the place of a field starts with.
const PLACE: &str = "pubconstVT_";

const OFFSET: &str = "::flatbuffers::ForwardsUOffset<";

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: &str = r#"
        pub struct Kind(pub u16);
        impl Any { pub const NONE: Self = Self(0); pub const Node: Self = Self(2);
            pub const ENUM_VALUES: &'static [Self] = &[]; }
        impl<'a> ::flatbuffers::Verifiable for Kind { fn run_verifier() { } }
        impl<'a> Node<'a> {
            pub const VT_NAME: ::flatbuffers::VOffsetT = 6;
            pub const VT_KIND: ::flatbuffers::VOffsetT = 8;
            pub const VT_ANY_TYPE: ::flatbuffers::VOffsetT = 10;
            pub const VT_ANY: ::flatbuffers::VOffsetT = 12;
        }
        impl ::flatbuffers::Verifiable for Node<'_> {
            fn run_verifier() {
                v.visit_table(pos)?
                    .visit_field::<::flatbuffers::ForwardsUOffset<&str>>("name", Self::VT_NAME, true)?
                    .visit_field::<::flatbuffers::ForwardsUOffset<::flatbuffers::Vector<'_, Kind>>>(
                        "kind", Self::VT_KIND, false,
                    )?
                    .visit_loose_union::<Any, _>("any_type", Self::VT_ANY_TYPE, "any", Self::VT_ANY,
                        false, |key, v, pos| match key {
                            Any::Node => v.verify_union_variant::<::flatbuffers::ForwardsUOffset<Node>>(
                                "Any::Node", pos),
                            _ => Ok(()),
                        })?
                    .finish();
            }
        }
    "#;

    #[track_caller]
    fn refuses(made: &str, message: &str) {
        let error = describe(made, "Absent", &[]).unwrap_err();
        assert_eq!(format!("{error:#}"), message);
    }

    #[test]
    fn what_nothing_verifies() {
        let made = MADE.replace("Any::Node =>", "Any::Other =>");
        refuses(&made, "Node: nothing verifies member 2 of Any");
        let more = "pub const VT_MORE: ::flatbuffers::VOffsetT = 14; pub const VT_ANY:";
        let made = MADE.replace("pub const VT_ANY:", more);
        refuses(&made, "Node: 4 fields are verified, expected 5");
    }

    #[test]
    fn fields_stand_at_their_ids() {
        let found = describe(MADE, "Absent", &[]).unwrap();
        let (_, tables) = found.split_once("pub(crate) static").unwrap();
        assert_eq!(
            tables,
            " NODE: TableType = TableType { name: \"Node\", fields: &[\n\
             Field::new(\"unused\", FieldType::Unused),\n\
             Field::required(\"name\", FieldType::Text),\n\
             Field::new(\"kind\", FieldType::scalars(2)),\n\
             Field::new(\"any_type\", FieldType::Tag),\n\
             Field::new(\"any\", FieldType::Union(&ANY)),\n] };\n\
             \nstatic ANY: Union = Union { halves: Halves::Absent, members: &[\n\
             Member::Nothing,\nMember::Unknown,\nMember::Table(&NODE),\n] };\n}\n"
        );
    }

    #[test]
    fn what_two_schemas_share_is_described_for_each() {
        let code =
            |prefix: &str, fields: &str| format!("\nstatic {prefix}A: T = T {{[\n{fields}] }};\n");
        let (one, more) = ("Field(1),\n", "Field(1),\nField(&B),\n");
        let root =
            |prefix: &str| format!("\nstatic {prefix}ROOT: T = T {{[\nField(&{prefix}A),\n] }};\n");
        let made = root("") + &root("TFLITE_").replace("&TFLITE_", "&") + &code("", more);
        let found = separate(&made, &[("A", [1, 2])]).unwrap();
        assert_eq!(found, root("") + &root("TFLITE_") + &code("", one) + &code("TFLITE_", more));
        separate(&made, &[("B", [1, 2])]).unwrap_err();
    }
}
