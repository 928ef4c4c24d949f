# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a client gets and gives: results, denials, questions, output. `raw` is the JSON object of the protocol."""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import shlex
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, TypeVar, cast

from . import protocol
from .errors import ProtocolError

T = TypeVar("T")


def view(kind: type[T], value: Mapping[str, Any], **known: Any) -> T:
    """Return a value of a data class with the members that it knows; those of the wire may be in camelCase."""
    form: Any = kind
    for f in dataclasses.fields(form):
        name = f.metadata.get("wire", f.name)
        if f.name not in known and name in value:
            known[f.name] = value[name]
    try:
        return kind(**known)
    except TypeError as e:
        raise ProtocolError(f"the server left out a member of {kind.__name__}: {e}") from None


def data_of(text: Any) -> bytes:
    """Return the bytes of a text in base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as e:
        raise ProtocolError(f"the server sent invalid base64: {e}") from None


@dataclass(frozen=True)
class Denial:
    """An access that the sandbox denied."""

    op: str
    """What was tried: "read", "write", "exec", "connect", "bind", "signal" or "syscall"."""
    path: str
    """The file; empty for none."""
    addr: str
    errno: str
    source: str
    """How it is known: "notified", "proxied" and "audited" are facts, "guessed" is not."""
    program: str
    rule: str
    grant: str
    """The flags that allow it and no more; empty where there are none."""
    count: int
    call: str = ""
    pid: int = 0
    name: str = ""
    wider: str = ""
    """Flags that allow it and more than that, where `grant` is empty."""
    harmless: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def fact(self) -> bool:
        """It was seen, and not concluded from the output."""
        return self.source != "guessed"


def denials(values: Any) -> list[Denial]:
    """Return the denials of a result or a question."""
    return [view(Denial, v, raw=v) for v in values or []]


@dataclass(frozen=True)
class Attempt:
    """The first attempt of a command that was run again."""

    end: str
    exit_code: int
    signal: int
    duration_ms: int
    stdout: str
    stderr: str
    output: str
    denials: list[Denial]


@dataclass(frozen=True)
class Stage:
    """What holds the changes of commands until they are applied or discarded, on the server's machine."""

    id: str
    name: str
    """Empty for none."""


@dataclass(frozen=True)
class Result:
    """What happened to a command: the object of `sallyport run --json`."""

    raw: protocol.Result = field(repr=False)
    exit_code: int
    """Its own, 128 + the number of a signal, or one of sallyport: 121 to 125."""
    end: str
    """"exited", "signaled", "timed_out", "canceled", a limit, "lost", or why it did not run: "forbidden", "refused", ..."""
    signal: int
    stdout: str
    stderr: str
    output: str
    """Both streams in order of arrival."""
    duration_ms: int
    attempts: int
    denials: list[Denial]
    approvals: list[protocol.ApprovalDecided]
    error: str
    """Why it did not run; empty if it ran."""
    first: Optional[Attempt]
    """The first attempt of a command that was run again after an approval."""
    stage: Optional[Stage] = None
    """What the command changed is there; None where it changed the files themselves."""
    changes_total: int = 0
    """All changes in the stage, also those of earlier commands."""
    changes: list[protocol.Change] = field(default_factory=list)
    """The first of them."""

    @classmethod
    def of(cls, raw: Any) -> Result:
        """Return a Result for the JSON object of the protocol."""
        if not isinstance(raw, dict):
            raise ProtocolError("the server sent a result that is no object")
        first, stage = raw.get("first"), raw.get("stage")
        return view(cls, raw, raw=cast(protocol.Result, raw), denials=denials(raw.get("denials")),
                    approvals=raw.get("approvals") or [], error=raw.get("error") or "",
                    first=view(Attempt, first, denials=denials(first.get("denials"))) if first else None,
                    stage=view(Stage, stage) if stage else None, changes=raw.get("changes") or [])

    @property
    def ok(self) -> bool:
        """The command ran and ended with exit code 0."""
        return self.end == "exited" and self.exit_code == 0

    @property
    def lost(self) -> bool:
        """The machine that ran the command was lost. What became of the command is not known: it may have run."""
        return self.end == "lost"

    @property
    def stdout_data(self) -> bytes:
        """The standard output as bytes."""
        coded = self.raw.get("stdout_base64")
        return data_of(coded) if coded else self.stdout.encode("utf-8")

    @property
    def stderr_data(self) -> bytes:
        """The standard error as bytes."""
        coded = self.raw.get("stderr_base64")
        return data_of(coded) if coded else self.stderr.encode("utf-8")

    @property
    def grants(self) -> list[str]:
        """The flags that allow what was denied in fact, for `grants` of a next command."""
        return list(dict.fromkeys(d.grant for d in self.denials if d.grant and d.fact and not d.harmless))


def flags_of(grants: Any) -> list[str]:
    """Return the words of grants, which are quoted as for a shell."""
    return [word for grant in grants for word in shlex.split(grant)]


@dataclass(frozen=True)
class Chunk:
    """A piece of the output of a run."""

    offset: int
    """Of its first byte, in the output of both streams."""
    stream: str
    """"stdout" or "stderr"; a terminal has "stdout" only."""
    data: bytes = field(metadata={"wire": "chunk"})
    missing: int = 0
    """How many bytes directly before it are not retained."""
    joined: bool = False
    """It may hold bytes of both streams, whose order is known in blocks only."""

    @property
    def text(self) -> str:
        """The bytes as text, with replacements for what is not UTF-8."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Page:
    """An answer to a read."""

    chunks: list[Chunk]
    next: int
    """The offset after them."""
    complete: bool
    """The run has ended, and there is no output after `next`."""


@dataclass(frozen=True)
class InputWait:
    """What waits for input."""

    kind: str
    """"line", "key", "password" or "data"; later servers may have others."""
    pid: int
    program: str
    timed: bool = False


@dataclass(frozen=True)
class Reply:
    """The end of a wait."""

    reason: str
    """"exited", "deadline", "input_wait", "password", "output", "bytes", "match", "idle" or "port"."""
    next: int
    """The offset after all output so far."""
    after: int
    """The offset from which on a next wait looks at the output."""
    elapsed: float
    """In seconds."""
    input: Optional[InputWait] = None
    port: int = 0
    result: Optional[Result] = None
    """For "exited", without what one message does not carry."""


@dataclass(frozen=True)
class Screen:
    """What a terminal shows."""

    lines: list[str]
    """From top to bottom, without trailing blanks."""
    cols: int
    rows: int
    col: int
    """Of the cursor, from 0."""
    row: int
    hidden: bool
    title: str
    alternate: bool
    modes: str = ""


@dataclass(frozen=True)
class RunInfo:
    """What a list shows of a run."""

    id: str = field(metadata={"wire": "runId"})
    argv: list[str]
    cwd: str
    tty: bool
    started_ms: int = field(metadata={"wire": "startedAtMs"})
    last_used_ms: int = field(metadata={"wire": "lastUsedMs"})
    starting: bool
    running: bool
    exit_code: Optional[int] = field(metadata={"wire": "exitCode"})
    signal: int
    end: Optional[str]
    last_line: str = field(default="", metadata={"wire": "lastLine"})
    denials: Optional[int] = None
    cpu_ms: Optional[int] = field(default=None, metadata={"wire": "cpuMs"})
    memory_bytes: Optional[int] = field(default=None, metadata={"wire": "memoryBytes"})
    waits_for: str = field(default="", metadata={"wire": "waitsFor"})
    """"answer", "password", "input", or empty."""


@dataclass(frozen=True)
class SandboxInfo:
    """A named sandbox."""

    name: str
    workspace: str
    network: str
    started_ms: int = field(metadata={"wire": "startedAtMs"})
    running: int
    pid: int
    idle_ms: int = field(metadata={"wire": "idleMs"})
    idle_left_ms: Optional[int] = field(metadata={"wire": "idleLeftMs"})


@dataclass(frozen=True)
class Question:
    """A question of the server: may this command run, or have more than it had?"""

    id: str
    run_id: str
    kind: str
    """"command", "access" or "network"; later servers may have others."""
    argv: list[str]
    cwd: str
    reason: str
    justification: str
    """The words of who started the command."""
    requires: list[str]
    """What an approval opens, such as "write:/srv/out" or "outside"."""
    denials: list[Denial]
    offers: list[protocol.Offer]
    decisions: list[str] = field(metadata={"wire": "available_decisions"})
    """The words that answer it: "approved", "approved_for_session", "denied", "abort", ..."""
    runs: int
    """How often the command has run already."""
    waiting: bool = False
    """The command runs, and what it wants waits for the answer: it is not repeated."""
    digest: str = ""
    """Identifies what the question says, for `client.answer`."""
    withdrawn: asyncio.Event = field(default_factory=asyncio.Event, repr=False, compare=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Answer:
    """An answer to a Question."""

    decision: str
    message: str = ""
    """For who started the command."""
    path: str = ""
    """That of an offer, such as a directory; empty for the first one with the decision."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a run of this client: a line of `sallyport run --jsonl`."""

    run_id: str
    type: str
    """Such as "judged", "started", "denied" or "ended"; also a word that this version does not know."""
    data: Mapping[str, Any]


@dataclass(frozen=True)
class FileInfo:
    """A file or a directory."""

    name: str
    path: str
    type: str
    """"file", "dir", "symlink" or "other"."""
    size: Optional[int] = None
    """In bytes; None in lists."""
    modified_ms: Optional[int] = None
