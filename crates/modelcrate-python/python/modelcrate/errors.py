"""What can go wrong, as a small tree of exceptions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = [
    "BusyError",
    "Error",
    "ExistsError",
    "IoError",
    "LimitError",
    "MalformedError",
    "NotFoundError",
    "Refusal",
    "UnsupportedError",
    "UsageError",
]


class Error(Exception):
    """Why a file could not be read, checked or written.

    Every error of this package is one: of a subclass for each kind, so that a file that is at fault
    (`MalformedError`, `UnsupportedError`, `LimitError`) is told from its surroundings.
    """

    kind: ClassVar[str] = "error"
    rule: str
    """The stable id of the rule that is broken, which `modelcrate.explain` explains."""
    at: Mapping[str, Any]
    """Where it is, as far as that is known: `path`, `offset`, `entry`, `tensor`, `line`, `column`."""

    def __init__(
        self, message: str, *, rule: str = "file/usage", at: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self._message = message
        self.rule = rule
        self.at = dict(at or {})

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors go from one process to another. What the system said is no part of the dictionary.
        state = dict(self.__dict__)
        if isinstance(self, OSError):
            state.update(errno=self.errno, strerror=self.strerror, filename=self.filename)
        return _again, (type(self), self._message, state)


class MalformedError(Error, ValueError):
    """The file breaks its format's text, contradicts itself, or is of no known format."""

    kind = "malformed"


class UnsupportedError(Error):
    """The file may be sound, but has what this build does not read, such as a later version."""

    kind = "unsupported"


class LimitError(Error):
    """A value in the file is legal, but more than what is read of a file nobody vouches for."""

    kind = "over_limit"


class UsageError(Error, ValueError):
    """What was asked for cannot be done, whatever the file."""

    kind = "usage"
    refused: Sequence[Refusal] = ()
    """The tensors that the format of the output cannot hold, each with the option that would help."""


class IoError(Error, OSError):
    """The system failed: reading, writing, permissions, memory."""

    kind = "io"


class NotFoundError(IoError, FileNotFoundError):
    """There is no such file."""

    kind = "not_found"


class ExistsError(IoError, FileExistsError):
    """There is a file already."""


class BusyError(IoError):
    """Another process has the file, or replaced it meanwhile."""

    kind = "busy"


@dataclass(frozen=True)
class Refusal:
    """Why a tensor, or all of them, cannot be in a file of a format."""

    tensor: str | None
    """Its name; None where it is about the file."""
    reason: str
    """What the format does not have."""
    remedy: Mapping[str, str] | None = field(default=None)
    """What would make it possible: `option` of `convert`, and its `effect`."""


_KINDS: dict[str, type[Error]] = {
    kind.kind: kind
    for kind in (
        BusyError,
        IoError,
        LimitError,
        MalformedError,
        NotFoundError,
        UnsupportedError,
        UsageError,
    )
}


def _make(
    kind: str,
    message: str,
    rule: str,
    at: str,
    errno: int | None,
    path: str | os.PathLike[str] | None,
    refused: str,
) -> Error:
    of = _KINDS.get(kind, Error)
    if errno == 17 and of is IoError:
        of = ExistsError
    error = of(message, rule=rule, at=json.loads(at))
    if isinstance(error, OSError):
        error.errno = errno
        error.strerror = message
        error.filename = None if path is None else os.fspath(path)
    if isinstance(error, UsageError):
        error.refused = [Refusal(**_known(one)) for one in json.loads(refused)]
    return error


def _known(refused: Mapping[str, Any]) -> dict[str, Any]:
    return {name: refused.get(name) for name in ("tensor", "reason", "remedy")}


def _again(of: type[Error], message: str, state: dict[str, Any]) -> Error:
    error = of(message)
    for name, value in state.items():
        setattr(error, name, value)
    return error
