# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients and runs for asyncio."""

from __future__ import annotations

import asyncio
import codecs
import inspect
import json
import logging
import math
import secrets
import ssl as tls
from base64 import b64encode
from typing import (
    TYPE_CHECKING, Any, AsyncGenerator, Awaitable, Callable, Iterable, List, Mapping, Optional, Sequence, TypedDict,
    Union,
)
from urllib.parse import unquote, urlsplit

from . import protocol
from ._connection import Connection
from ._files import AsyncFiles
from ._transport import Child, Transport, check_url, dial
from .errors import (
    INVALID_PARAMS, NO_METHOD, ConnectionError, InvalidError, NotRunError, ProtocolError, RequestError, ShortWriteError,
    UnsupportedError, WaitTimeoutError,
)
from .values import (
    Answer, Chunk, Event, InputWait, Page, Question, Reply, Result, RunInfo, SandboxInfo, Screen, data_of, denials,
    flags_of, view,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("sallyport")

Command = Union[str, Sequence[str]]
"""A script for the shell, or a program and its arguments."""
Decision = Union[str, Answer, None]
OnApproval = Callable[[Question], Union[Decision, Awaitable[Decision]]]
OnEvent = Callable[[Event], Union[None, Awaitable[None]]]
OnText = Callable[[str], Union[None, Awaitable[None]]]

READ_BYTES = 1 << 20
"""The most that one request for output returns."""
READ_WAIT_MS = 600_000
"""How long the server waits for output before it answers."""
WRITE_BYTES = 1 << 20
"""The most of one request with input."""
MAX_EVENTS = 1024
"""How many events wait for on_event, before it holds up answers."""
EVENT_TIME = 5.0
"""How long the end of a client waits for on_event, in seconds."""


class Asked(TypedDict, total=False):
    """What a command is and may do. All of it may be absent."""

    flags: Sequence[str]
    """Flags of `sallyport run`, such as "--read-only"; not those about the streams of the caller."""
    grants: Iterable[str]
    """Flags in one text each, quoted as for a shell: those of Result.grants."""
    env: Mapping[str, str]
    """Variables to set, beside those of the server."""
    sandbox: Optional[str]
    """The name of a sandbox that the command joins, and that is made for the first one."""
    idle: Optional[float]
    """Seconds that this sandbox stays without a run, if this one makes it."""
    ask_for: Sequence[str]
    """Paths to write and hosts to reach, which are asked about before the command runs."""
    escalate: bool
    """Ask to run the command outside the sandbox."""
    justification: Optional[str]
    """The reason, shown with the question."""
    stage: Union[bool, str]
    """Have what the command writes go to a new stage, or to the one with that name, and leave the files alone."""
    ask_writes: bool
    """Ask on_approval about writes that the sandbox denies, while the command waits: `question.waiting` is true."""


class Options(Asked, total=False):
    """The options of commands. All of them may be absent."""

    cwd: Optional[str]
    """The directory and workspace, an absolute path; the directory of the server."""
    timeout: Optional[float]
    """Seconds after which the command is ended."""


def _milliseconds(seconds: float) -> int:
    """Return a time in milliseconds, rounded up."""
    if not 0 <= seconds < 1e12:
        raise InvalidError(f"{seconds!r} is no number of seconds")
    return math.ceil(seconds * 1000)


def _words(command: Command, o: Options) -> list[str]:
    """Return the words after `sallyport run`."""
    for several in ("flags", "grants", "ask_for"):
        if isinstance(o.get(several), (str, bytes)):
            raise InvalidError(f"{several} takes a list of texts, not one text")
    words = [*o.get("flags", ()), *flags_of(o.get("grants", ()))]
    timeout = o.get("timeout")
    if timeout is not None:
        words += ["--timeout", f"{_milliseconds(timeout)}ms"]
    for name, value in o.get("env", {}).items():
        if not name or "=" in name or "\0" in name + value:
            raise InvalidError(f"env: the name {name!r} is empty or contains =, or there is a NUL")
        words += ["--env", f"{name}={value}"]
    for what in o.get("ask_for", ()):
        words += ["--ask-for", what]
    if o.get("escalate"):
        words.append("--escalate")
    justification = o.get("justification")
    if justification is not None:
        words += ["--justification", justification]
    stage = o.get("stage")
    if stage is not None and not isinstance(stage, (bool, str)) or stage == "":
        raise InvalidError(f"stage: {stage!r} is not True, False or the name of a stage")
    if stage:  # as a flag, which a server that has no stages refuses
        words.append("--stage" if stage is True else f"--stage={stage}")
    if o.get("ask_writes"):
        words.append("--ask-writes")
    if isinstance(command, str):
        return [*words, "--command", command]
    if not command:
        raise InvalidError("there is no program; name one")
    return [*words, "--", *command]


class AsyncRun:
    """A command that runs at a server, or has run there. The server knows the last 64 that have ended, for an hour."""

    def __init__(self, client: AsyncClient, id: str, reader: bool = False) -> None:
        self._client, self.waits_for_reader = client, reader
        self.id = id
        """Its number, in decimal."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def _call(self, method: str, **params: Any) -> Any:
        return await self._client.call(method, {"runId": self.id, **params}, repeat=True)

    async def read(self, after: int = 0, *, max_bytes: int = READ_BYTES, wait: float = 0) -> Page:
        """Return the output from an offset on that there is, or comes within a time in seconds."""
        return await self._page(after, max_bytes, _milliseconds(wait), {"reader": {}} if self.waits_for_reader else {})

    async def _page(self, after: int, most: int, wait_ms: int, more: Mapping[str, Any]) -> Page:
        got: protocol.RunReadResult = await self._call(
            "run/read", after=after, maxBytes=most, waitMs=wait_ms, **more)
        chunks = [view(Chunk, c, data=data_of(c.get("chunk"))) for c in got["chunks"]]
        return Page(chunks, got["next"], got["complete"])

    async def output(self, after: int = 0) -> AsyncGenerator[Chunk, None]:
        """Return the output from an offset on, as it comes, up to its end.

        A run that was started with `reader` waits for this, so nothing is missing; when the iteration ends
        before, the run goes on alone.
        """
        complete = False
        try:
            while not complete:
                page = await self.read(after, wait=READ_WAIT_MS / 1000)
                for chunk in page.chunks:
                    yield chunk
                after, complete = max(after, page.next), page.complete
        finally:
            if self.waits_for_reader and not complete:
                await self.leave(after)

    async def stream(self, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None) -> None:
        """Give the output to functions, as text, up to its end."""
        ways = {"stdout": on_stdout, "stderr": on_stderr}
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ways}

        async def give(stream: str, data: bytes, last: bool) -> None:
            on_text, decoder = ways.get(stream), decoders.get(stream)
            text = decoder.decode(data, last) if decoder else ""
            if on_text is not None and text:
                done = on_text(text)
                if inspect.isawaitable(done):
                    await done

        chunks = self.output()
        try:
            async for chunk in chunks:
                await give(chunk.stream, chunk.data, False)
        finally:
            await chunks.aclose()
        for stream in ways:
            await give(stream, b"", True)

    async def leave(self, after: int = 0) -> None:
        """Let a run that was started with `reader` go on without one."""
        try:
            await self._page(after, 1, 0, {"reader": {"leaves": True}})
        except (ConnectionError, RequestError):
            pass  # a minute after the end of the connection it goes on as well

    async def write(self, data: Union[bytes, str]) -> None:
        """Write to the input of the command. Each byte arrives once, also where the connection is cut.

        A command that does not read is a ShortWriteError.
        """
        data = data.encode("utf-8") if isinstance(data, str) else data
        for at in range(0, len(data), WRITE_BYTES):
            part = data[at:at + WRITE_BYTES]
            try:
                await self._call("run/write", chunk=b64encode(part).decode(), writeId=secrets.token_hex(16))
            except RequestError as e:
                if e.reason == "inputFull":
                    raise ShortWriteError(at + e.taken) from e
                raise

    async def close_stdin(self) -> None:
        """End the input, after what was written."""
        await self._call("run/closeStdin")

    async def wait_for(
        self, *, exit: bool = True, quiet: float = 0, input: bool = False, match: str = "", port: bool = False,
        first_output: bool = False, bytes: int = 0, raw: bool = False, after: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> Reply:
        """Wait for the first of several conditions, and always for the end of the run.

        `quiet`: no output for so many seconds. `input`: it waits for input. `match`: output that a regular
        expression (RE2) matches. `port`: it listens at a port. `first_output`, `bytes`: output, and so many bytes
        of it. Output counts from the offset `after`, the `after` of the Reply before, or without it from the
        last such wait on. The end of `timeout` is the reason "deadline", and no error.
        """
        conditions: dict[str, Any] = {"exit": exit, "quietMs": _milliseconds(quiet), "input": input, "match": match,
                                      "port": port, "firstOutput": first_output, "bytes": bytes, "raw": raw}
        wanted = {name: value for name, value in conditions.items() if value}
        if after is not None:
            wanted["after"] = after
        limit = {} if timeout is None else {"timeoutMs": _milliseconds(timeout)}
        got: protocol.RunWaitResult = await self._call("run/wait", **{"for": wanted}, **limit)
        asked = got.get("input")
        result = got.get("result")
        return view(Reply, got, elapsed=got["elapsedMs"] / 1000, input=view(InputWait, asked) if asked else None,
                    result=Result.of(result) if result else None)

    async def wait(self, timeout: Optional[float] = None) -> Result:
        """Wait for the end of the run and return its Result, with its output.

        A run that has not ended after `timeout` seconds is a WaitTimeoutError, and goes on.
        """
        reply = await self.wait_for(timeout=timeout)
        if reply.reason == "deadline":
            raise WaitTimeoutError(f"the run {self.id} has not ended within {timeout} s, and goes on")
        return await self.result()

    async def result(self, output: bool = True) -> Result:
        """Return the Result of a run that has ended, with or without its output."""
        text = b""
        while True:
            params: dict[str, Any] = {"output": output, **({"from": len(text)} if output else {})}
            got: protocol.RunResultResult = await self._call("run/result", **params)
            if got.get("result") is not None:
                return Result.of(got["result"])
            part = data_of(got.get("part", ""))
            text += part
            if got.get("complete"):
                return Result.of(_json(text))
            if not part:
                raise ProtocolError("the server sent a part of a result that is empty")

    async def screen(self) -> Screen:
        """Return what the terminal shows, of a run that was started with `screen`."""
        return view(Screen, await self._call("run/screen"))

    async def resize(self, cols: int, rows: int) -> None:
        """Change the size of the terminal."""
        await self._call("run/resize", cols=cols, rows=rows)

    async def signal(self, name: str) -> None:
        """Send a signal, such as "TERM" or "SIGINT", to the process group."""
        name = name if name.startswith("SIG") else "SIG" + name
        await self._client.call("run/signal", {"runId": self.id, "signal": name})

    async def terminate(self) -> bool:
        """End the run: SIGTERM, and SIGKILL after its time for that. Wait for it, and report whether it was alive."""
        got: protocol.RunTerminateResult = await self._call("run/terminate")
        return got["running"]

    async def remove(self) -> None:
        """Terminate the run, if it is alive, and have the server forget it."""
        await self._client.remove(self.id)


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise ProtocolError(f"the server sent a result that cannot be read: {e}") from None


class AsyncClient:
    """A connection with an exec-server. A connection that is cut is made again, and runs go on meanwhile.

    It is made by `connect` or `launch`, and ended by `close` or the end of `async with`.
    """

    def __init__(self, connection: Connection, events: Optional[asyncio.Queue[Optional[Event]]],
                 on_event: Optional[OnEvent]) -> None:
        self._connection = connection
        self._events = events
        self._pump = asyncio.ensure_future(_deliver(events, on_event)) if events and on_event else None
        self._wants_events = self._pump is not None

    @classmethod
    async def connect(
        cls, url: str, *, token: Optional[str] = None, ssl: Optional[tls.SSLContext] = None,
        on_approval: Optional[OnApproval] = None, on_event: Optional[OnEvent] = None, resume: float = 60,
        client_name: str = "sallyport-python",
    ) -> AsyncClient:
        """Connect to the server at ws://HOST:PORT, wss://HOST:PORT or unix:///PATH.

        `token` goes into the header Authorization, to that host only: redirects and proxies are not used.
        `on_approval` answers the questions about the commands of this client; without it none is asked, and
        what needs an approval does not run. It gets several at once. `on_event` gets their events, one at a time
        and in order; those of the time of a cut are missing. `resume`: seconds that a session without a
        connection is tried to be resumed.
        """
        check_url(url, token)
        return await cls._open(lambda: dial(url, token, ssl), on_approval, on_event, resume, client_name)

    @classmethod
    async def launch(
        cls, program: str = "sallyport", *, args: Sequence[str] = (), cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None, on_approval: Optional[OnApproval] = None,
        on_event: Optional[OnEvent] = None, client_name: str = "sallyport-python",
    ) -> AsyncClient:
        """Start a server of this client, which ends with it, and so do its runs.

        `args` are flags of `sallyport exec-server`; `cwd` and `env` are those of the server (None: as here), and
        so of its commands.
        """
        async def start() -> Transport:
            return await Child.start(program, args, cwd, env)

        return await cls._open(start, on_approval, on_event, 0, client_name)

    @classmethod
    async def _open(cls, dial: Callable[[], Awaitable[Transport]], on_approval: Optional[OnApproval],
                    on_event: Optional[OnEvent], resume: float, client_name: str) -> AsyncClient:
        events: Optional[asyncio.Queue[Optional[Event]]] = asyncio.Queue(MAX_EVENTS) if on_event else None

        async def notify(method: str, params: Any) -> None:
            data = params.get("event") if isinstance(params, dict) else None
            if events is not None and method == "run/event" and isinstance(data, dict):
                await events.put(Event(str(params.get("runId", "")), str(data.get("type", "")), data))

        async def asked(method: str, params: Any) -> Any:
            assert on_approval is not None
            return await _answer(on_approval, method, params)

        connection = Connection(dial, client_name, resume, asked if on_approval else None, notify)
        await connection.open()
        environment: Any = connection.hello.get("environmentInfo") or {}
        if not (environment.get("capabilities") or {}).get("runs"):
            await connection.close()
            raise UnsupportedError(
                "the server has no judged runs; it is not an exec-server of sallyport, or an older one")
        return cls(connection, events, on_event)

    @property
    def environment(self) -> protocol.Environment:
        """What the server says of its machine."""
        environment = self._connection.hello["environmentInfo"]
        assert environment is not None  # _open has looked
        return environment

    @property
    def cwd(self) -> str:
        """The directory of the server, in which commands run unless they say another one."""
        return path_of(self.environment["cwd"])

    @property
    def session_id(self) -> str:
        """The session that is resumed after a cut."""
        return self._connection.hello["sessionId"]

    async def close(self) -> None:
        """End the connection. Runs that were started go on, unless the server ends with it."""
        await self._connection.close()
        if self._pump is not None and self._events is not None:
            try:  # what came is delivered, unless on_event blocks
                await asyncio.wait_for(self._events.put(None), EVENT_TIME)
                await asyncio.wait_for(self._pump, EVENT_TIME)
            except (asyncio.TimeoutError, asyncio.CancelledError):
                self._pump.cancel()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(self, method: str, params: Any, *, repeat: bool = False,
                   late: Optional[Callable[[Any], Awaitable[None]]] = None) -> Any:
        """Make a request of the protocol; with `repeat` again after a cut."""
        return await self._connection.call(method, params, repeat=repeat, late=late)

    async def start(
        self, command: Command, *, tty: Union[bool, tuple[int, int]] = False, screen: bool = False,
        open_stdin: bool = False, reader: bool = False, **options: Unpack[Options],
    ) -> AsyncRun:
        """Start a command: a script for the shell, or a list with a program and its arguments.

        It returns when the command runs, which may take as long as an approval does. A command that does not run
        is a NotRunError. `tty`: a terminal of 80 by 24, or of (cols, rows). `screen`: `run.screen` shows it.
        `open_stdin`: `run.write` takes input; without it and without `tty` the input is empty. `reader`: the
        command waits for `run.output`, so that nothing is missing. The other arguments are those of Options.
        """
        o = options
        unknown = set(o) - set(Options.__annotations__)
        if unknown:
            raise InvalidError(f"unknown option {sorted(unknown)[0]!r}; options are {sorted(Options.__annotations__)}")
        params: dict[str, Any] = {"args": _words(command, o), "startId": secrets.token_hex(16),
                                  "events": self._wants_events, "screen": screen, "openStdin": open_stdin,
                                  "reader": reader}
        params = {name: value for name, value in params.items() if value}
        if (cwd := o.get("cwd")) is not None:
            params["cwd"] = cwd
        if tty:
            cols, rows = (80, 24) if tty is True else tty
            params["tty"] = {"cols": cols, "rows": rows}
        if (name := o.get("sandbox")) is not None:
            params["sandbox"] = {"name": name}
            if (idle := o.get("idle")) is not None:
                params["sandbox"]["idleMs"] = _milliseconds(idle)

        async def late(got: protocol.RunStartResult) -> None:
            if got["started"]:
                await self.remove(got["runId"])

        got: protocol.RunStartResult = await self.call("run/start", params, repeat=True, late=late)
        if not got["started"]:
            raise NotRunError(Result.of(got.get("result")))
        return AsyncRun(self, got["runId"], reader)

    async def run(
        self, command: Command, *, input: Union[bytes, str, None] = None, on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None, **options: Unpack[Options],
    ) -> Result:
        """Run a command to its end, and return its Result. Its exit code is no error.

        `input` is its standard input. `on_stdout` and `on_stderr` get its output as it comes, and the command
        waits for them. A task that is canceled ends the command. The rest is as of `start`.
        """
        streams = bool(on_stdout or on_stderr)
        data = input.encode("utf-8") if isinstance(input, str) else input
        run = await self.start(command, open_stdin=data is not None, reader=streams, **options)
        feeder = asyncio.ensure_future(_feed(run, data)) if data is not None else None
        try:
            if streams:
                await run.stream(on_stdout, on_stderr)
            return await run.wait()
        finally:
            if feeder is not None:
                feeder.cancel()
            # Also where the task was canceled: the command does not go on for no one.
            await asyncio.shield(asyncio.ensure_future(_forget(run)))

    async def remove(self, id: str) -> None:
        """Terminate a run, if it is alive, and have the server forget it."""
        try:
            await self.call("run/remove", {"runId": id})
        except ConnectionError as e:
            if not e.sent:
                raise
            try:
                await self.call("run/remove", {"runId": id}, repeat=True)
            except RequestError as again:
                if again.reason != "unknownRun":  # the answer to the first request was lost
                    raise

    def attach(self, id: str) -> AsyncRun:
        """Return a run of the server, which may have been started by another client with the same credential."""
        return AsyncRun(self, id)

    async def list(self) -> List[RunInfo]:
        """Return the runs that the server knows: those that run, and the last that have ended."""
        got: protocol.RunListResult = await self.call("run/list", {}, repeat=True)
        return [view(RunInfo, r, id=r["runId"]) for r in got["runs"]]

    async def list_sandboxes(self) -> List[SandboxInfo]:
        """Return the named sandboxes."""
        got: protocol.SandboxListResult = await self.call("sandbox/list", {}, repeat=True)
        return [view(SandboxInfo, s) for s in got["sandboxes"]]

    async def stop_sandbox(self, name: str) -> None:
        """End a named sandbox and everything in it."""
        await self.call("sandbox/stop", {"name": name})

    async def questions(self) -> List[Question]:
        """Return the open questions about runs of this credential, also those of other clients."""
        got: protocol.QuestionListResult = await self.call("question/list", {}, repeat=True)
        return [_question(q["request"], q.get("runId", ""), q["digest"]) for q in got["questions"]]

    async def answer(self, question: Question, decision: str, message: str = "", path: str = "") -> None:
        """Answer a question of `questions`. The first answer counts; a later one is a RequestError.

        `path` is that of an offer; without it the first one with the decision is meant.
        """
        params = {"id": question.id, "digest": question.digest, "decision": decision, "message": message}
        await self.call("question/answer", {**params, "path": path} if path else params)

    async def forget(self, id: str) -> None:
        """Ask again about what was approved for the session by the question with that ID."""
        await self.call("question/forget", {"id": id})

    def files(self, workspace: Optional[str] = None, *, confined: bool = True) -> AsyncFiles:
        """Return the files of the server's machine, relative to a workspace (None: the server's directory).

        They are reached in the sandbox that a command has by default: all files can be read but secrets, and
        those of the workspace written. Without `confined` they are those that the user of the server reaches.
        """
        return AsyncFiles(self.call, self.cwd if workspace is None else workspace, confined)


def path_of(uri: str) -> str:
    """Return the path of a file URI; that of another text is the text."""
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri


async def _deliver(events: asyncio.Queue[Optional[Event]], on_event: OnEvent) -> None:
    """Give events to a function, one at a time."""
    while (event := await events.get()) is not None:
        try:
            done = on_event(event)
            if inspect.isawaitable(done):
                await done
        except Exception:
            log.exception("on_event failed for an event of type %r", event.type)


def _question(request: Any, run_id: str, digest: str = "") -> Question:
    """Return the Question of a request of the protocol."""
    return view(Question, request, run_id=run_id, digest=digest, denials=denials(request.get("denials")), raw=request,
                withdrawn=asyncio.Event())


async def _answer(on_approval: OnApproval, method: str, params: Any) -> protocol.RunApproveResult:
    """Answer a request of the server. All but an offered word denies."""
    if method != "run/approve":
        raise RequestError(NO_METHOD, f"unknown method {method}")
    request = params.get("request") if isinstance(params, dict) else None
    if not isinstance(request, dict):
        raise RequestError(INVALID_PARAMS, "run/approve has no request")
    question = _question(request, str(params.get("runId", "")))
    try:
        said = on_approval(question)
        if inspect.isawaitable(said):
            said = await said
    except asyncio.CancelledError:
        question.withdrawn.set()
        raise
    except Exception:
        log.exception("on_approval failed, so the answer is no: %r", question.argv)
        raise
    if said is None:
        return {"decision": "none", "message": "the client decides nothing"}
    given = said if isinstance(said, Answer) else Answer(str(said))
    if given.decision not in question.decisions:
        log.error("on_approval returned %r, which was not offered, so the answer is no; offered are %r",
                  given.decision, question.decisions)
    answer: protocol.RunApproveResult = {"decision": given.decision, "message": given.message}
    if given.path:
        answer["path"] = given.path
    return answer


async def _feed(run: AsyncRun, data: bytes) -> None:
    """Write the input of a command. One that ends or does not read needs no more of it."""
    try:
        await run.write(data)
        await run.close_stdin()
    except (ShortWriteError, RequestError, ConnectionError):
        pass


async def _forget(run: AsyncRun) -> None:
    try:
        await run.remove()
    except (RequestError, ConnectionError):
        pass  # what ended before says more
