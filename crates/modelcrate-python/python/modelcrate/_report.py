"""What checks and comparisons say, as values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from .errors import Error

__all__ = ["Converted", "Diff", "Finding", "Note", "Report", "Rule"]


@dataclass(frozen=True)
class Finding:
    """One thing that a check found."""

    rule: str
    """A stable id, `<format>/<words>`, which `modelcrate.explain` explains."""
    severity: Literal["error", "warning", "note"]
    """How much it matters: it breaks the format, someone should mend it, or it is worth knowing."""
    at: Mapping[str, Any]
    """Where it is, as far as that is known: `path`, `offset`, `entry`, `tensor`, `line`, `column`."""
    message: str
    """What was found and what was expected."""


@dataclass(frozen=True)
class Report:
    """What checking a file found."""

    format: str | None
    """The format of the file; None where it was not made out."""
    verdict: Literal["valid", "warnings", "invalid"]
    """What the findings say of the file as a whole."""
    findings: Sequence[Finding]
    """Everything that was found, in the order of the file: of one rule at most 1,000."""
    coverage: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many `bytes` there are, and how many of them are `covered` by a digest or checksum."""
    model_hash: str | None = None
    """What identifies the model whatever its file, where the format has such a digest."""

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong; warnings are allowed."""
        return self.verdict != "invalid"

    def __bool__(self) -> bool:
        return self.valid

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html(found.severity)}</td><td><code>{html(found.rule)}</code></td>"
            f"<td>{html(place(found.at))}</td><td>{html(found.message)}</td></tr>"
            for found in self.findings[:_SHOWN]
        )
        more = len(self.findings) - _SHOWN
        rest = f"<p>and {more} more</p>" if more > 0 else ""
        return f"<p><b>{html(self.verdict)}</b></p><table>{rows}</table>{rest}"


@dataclass(frozen=True)
class Rule:
    """A rule that findings and errors name."""

    id: str
    severities: Sequence[str]
    """How grave it is to break it, the gravest first."""
    meaning: str
    """What is so where it is broken."""
    remedy: str
    """What to do then."""
    source: str
    """What the rule follows from."""


@dataclass(frozen=True)
class Note:
    """What became of a tensor that was not written as it was."""

    tensor: str
    effect: str


@dataclass(frozen=True)
class Converted:
    """What a conversion wrote."""

    to: str
    """The format."""
    nbytes: int
    """The length of the file."""
    notes: Sequence[Note] = ()
    """What became of tensors that were not written as they were."""
    left_out: Sequence[str] = ()
    """Keys of metadata that the format cannot hold."""
    findings: Sequence[Finding] = ()
    """What else there is to say."""


@dataclass(frozen=True)
class Diff:
    """What differs between two files; what is the same is only counted."""

    metadata: Sequence[Mapping[str, Any]]
    """Each with `name`, `old` and `new`."""
    apart: Sequence[Mapping[str, Any]]
    """Metadata that do not count: those that one format alone has, or that say how a file was
    written."""
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]
    files: Sequence[Mapping[str, Any]]
    operator_types: Sequence[Mapping[str, Any]]
    operators: Sequence[Mapping[str, Any]]
    tensors: Sequence[Mapping[str, Any]]
    """Each with the names `old` and `new`, what kind of `change` it is, and its figures."""
    same: int
    """How many tensors are the same."""

    @property
    def equal(self) -> bool:
        """Whether nothing is different that counts."""
        return not (
            self.metadata
            or self.inputs
            or self.outputs
            or self.files
            or self.operator_types
            or self.operators
            or self.tensors
        )


def report(text: str) -> Report:
    found = json.loads(text)
    found["findings"] = findings(found["findings"])
    return Report(**found)


def refused(error: Error) -> Report:
    """Returns the report on a file that does not open."""
    found = Finding(rule=error.rule, severity="error", at=error.at, message=str(error))
    return Report(format=None, verdict="invalid", findings=[found])


def findings(found: Sequence[Mapping[str, Any]]) -> list[Finding]:
    return [Finding(**one) for one in found]


def place(at: Mapping[str, Any]) -> str:
    """Says where something is."""
    return " ".join(f"{name} {at[name]}" for name in at)


def html(text: str) -> str:
    """Returns the start of a text for a notebook, which takes no halves of characters, such as names of
    files may have."""
    start = text[:_LONGEST] + ("…" if len(text) > _LONGEST else "")
    return escape(start.encode(errors="backslashreplace").decode())


_SHOWN = 100
_LONGEST = 200
