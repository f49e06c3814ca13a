//! Types as `TorchScript` writes them, and whether a spec fits them.

use tensor_core::{Finding, Report, text::short};

use crate::{Argument, Method, Pack, Spec, Unpack};

impl Spec {
    /// Reports where the spec does not fit a model's method `forward`, by the types of that.
    #[must_use]
    pub fn lint_against(&self, forward: &Method) -> Report {
        let mut report = Report::default();
        check(self, forward, &mut report);
        report
    }
}

/// A type, as far as a spec can tell it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Type {
    Tensor,
    Int,
    Float,
    Bool,
    Text,
    Tuple(Vec<Self>),
    List(Box<Self>),
    Dict(Box<Self>, Box<Self>),
    /// One that takes values of several kinds, or that is not known here.
    Other,
}

impl Type {
    fn parse(text: &str) -> Self {
        Parser { rest: text }.parse(MAX_DEPTH)
    }
}

/// Reads a type from the front of a text.
struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    fn parse(&mut self, depth: u32) -> Type {
        let Some(depth) = depth.checked_sub(1) else {
            // What is nested deeper than any model is not looked at.
            self.rest = "";
            return Type::Other;
        };
        self.rest = self.rest.trim_start();
        let len = self.rest.find(['[', ']', ',']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(len);
        self.rest = rest;
        let mut inner = Vec::new();
        if let Some(rest) = self.rest.strip_prefix('[') {
            self.rest = rest;
            while !self.rest.is_empty() && !self.rest.starts_with(']') {
                inner.push(self.parse(depth));
                self.rest = self.rest.trim_start();
                self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
            }
            self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
        }
        match (name.trim(), inner.as_mut_slice()) {
            ("Tensor", []) => Type::Tensor,
            ("int", []) => Type::Int,
            ("float", []) => Type::Float,
            ("bool", []) => Type::Bool,
            ("str", []) => Type::Text,
            ("Tuple", _) => Type::Tuple(inner),
            ("List", [item]) => Type::List(Box::new(std::mem::replace(item, Type::Other))),
            ("Optional", [item]) => std::mem::replace(item, Type::Other),
            ("Dict", [key, value]) => Type::Dict(
                Box::new(std::mem::replace(key, Type::Other)),
                Box::new(std::mem::replace(value, Type::Other)),
            ),
            _ => Type::Other,
        }
    }
}

/// Reports where a spec does not fit the method that it is for.
fn check(spec: &Spec, forward: &Method, report: &mut Report) {
    let error = |report: &mut Report, at: &str, message: String| {
        report.add(Finding::error("ptl/spec-type", message).path(at));
    };
    if let Some(arguments) = &forward.arguments {
        // The first one is the model itself.
        match arguments.get(1..).unwrap_or_default() {
            [argument] => {
                let fit = pack(spec.pack(), &Type::parse(&argument.type_name));
                if let Err((at, given)) = fit {
                    let message = format!(
                        "pack{at} makes {given}, but forward takes {}",
                        short(&argument.type_name)
                    );
                    error(report, "pack", message);
                }
            }
            others => {
                let found = others.len();
                let message =
                    format!("forward takes {found} values, but runtimes call it with one");
                error(report, "pack", message);
            }
        }
    }
    if let Some([Argument { type_name, .. }]) = forward.returns.as_deref()
        && let Err((at, wanted)) = unpack(spec.unpack(), &Type::parse(type_name))
    {
        let shown = short(type_name);
        let message = format!("unpack{at} wants {wanted}, but forward gives {shown}");
        error(report, "unpack", message);
    }
}

/// Where in a spec something does not fit, and what it is.
type Misfit = (String, String);

/// Compares a type of the method with one of the spec, which is `what` in words.
fn is(found: &Type, expected: &Type, what: impl Into<String>) -> Result<(), Misfit> {
    match found == expected || *found == Type::Other {
        true => Ok(()),
        false => Err((String::new(), what.into())),
    }
}

fn tuple_of<T>(items: &[T]) -> String {
    format!("a tuple of {}", items.len())
}

fn pack(pack: &Pack, wanted: &Type) -> Result<(), Misfit> {
    match pack {
        Pack::Tuple(items) => match wanted {
            Type::Tuple(types) if types.len() == items.len() => {
                let pairs = items.iter().zip(types).enumerate();
                fits(pairs.map(|(index, (item, kind))| (index, self::pack(item, kind))))
            }
            _ => is(wanted, &Type::Other, tuple_of(items)),
        },
        Pack::Bool(_) => is(wanted, &Type::Bool, "a bool"),
        Pack::Long(_) => is(wanted, &Type::Int, "an int"),
        Pack::Double(_) => is(wanted, &Type::Float, "a float"),
        Pack::Tensor(_) | Pack::Image(_) | Pack::String(_) | Pack::Audio { .. } => {
            is(wanted, &Type::Tensor, "a tensor")
        }
        Pack::Deferred(_) => Ok(()),
    }
}

fn unpack(unpack: &Unpack, given: &Type) -> Result<(), Misfit> {
    let tensors = Type::Dict(Box::new(Type::Text), Box::new(Type::Tensor));
    match (unpack, given) {
        (Unpack::Deferred(_), _) | (_, Type::Other) => Ok(()),
        (Unpack::Tuple(items), Type::Tuple(types)) if types.len() == items.len() => {
            let pairs = items.iter().zip(types).enumerate();
            fits(pairs.map(|(index, (item, kind))| (index, self::unpack(item, kind))))
        }
        (Unpack::Tuple(items), _) => is(given, &Type::Other, tuple_of(items)),
        (Unpack::List(items), Type::List(kind)) => {
            let items = items.iter().enumerate();
            fits(items.map(|(index, item)| (index, self::unpack(item, kind))))
        }
        (Unpack::List(_), _) => is(given, &Type::Other, "a list"),
        (Unpack::Dict(items), Type::Dict(key, kind)) if **key == Type::Text => {
            let items = items.iter().enumerate();
            fits(items.map(|(index, (_, item))| (index, self::unpack(item, kind))))
        }
        (Unpack::Dict(_), _) => is(given, &Type::Other, "a dictionary with texts as keys"),
        (Unpack::Long { .. }, _) => is(given, &Type::Int, "an int"),
        (Unpack::Float { .. }, _) => is(given, &Type::Float, "a float"),
        (Unpack::Bool { .. }, _) => is(given, &Type::Bool, "a bool"),
        (Unpack::String { .. }, _) => is(given, &Type::Text, "a str"),
        (Unpack::BertAnswer { .. } | Unpack::BoundingBoxes(_), _) => {
            is(given, &tensors, "a dictionary of tensors")
        }
        _ => is(given, &Type::Tensor, "a tensor"),
    }
}

/// Returns the first misfit among items, with its place.
fn fits(items: impl Iterator<Item = (usize, Result<(), Misfit>)>) -> Result<(), Misfit> {
    for (index, fit) in items {
        fit.map_err(|(at, what)| (format!(".items[{index}]{at}"), what))?;
    }
    Ok(())
}

/// Levels of a type that are looked at.
const MAX_DEPTH: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_torchscript() {
        let pair = Type::Tuple(vec![Type::Tensor, Type::List(Box::new(Type::Int))]);
        assert_eq!(Type::parse("Tuple[Tensor, List[int]]"), pair);
        assert_eq!(Type::parse("Optional[Tensor]"), Type::Tensor);
        let dict = Type::Dict(Box::new(Type::Text), Box::new(Type::Tensor));
        assert_eq!(Type::parse("Dict[str, Tensor]"), dict);
        assert_eq!(Type::parse("__torch__.Net"), Type::Other);
        assert_eq!(Type::parse("Tuple[]"), Type::Tuple(vec![]));
        for text in ["", "[[", "Tuple[int", "]", "List[int,", &"List[".repeat(10_000)] {
            Type::parse(text);
        }
    }
}
