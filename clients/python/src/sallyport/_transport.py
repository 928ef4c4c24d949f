# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Connections that carry one message after the other: WebSockets, and lines of a child process."""

from __future__ import annotations

import asyncio
import contextlib
import ssl as tls
from collections import deque
from typing import Any, Mapping, Protocol, Sequence
from urllib.parse import unquote, urlsplit

import websockets.client
from websockets.uri import parse_uri

from .errors import ConnectionError, InvalidError, ProtocolError, StatusError

MAX_MESSAGE = 16 << 20
"""The longest WebSocket message in bytes, of both sides."""
MAX_LINE = 64 << 20
"""The longest line on stdio in bytes."""
SILENCE = 90.0
"""A server pings every 30 seconds; one that sends nothing for this long is gone."""
END_TIME = 15.0
"""How long a server that was started has to end, which ends its runs."""

# The one class without input and output of its own, by its name since websockets 11, and before. The library
# would follow redirects and use proxies, with the token.
_WebSocket: Any = getattr(websockets.client, "ClientProtocol", None) or getattr(
    websockets.client, "ClientConnection"
)
_CONT, _TEXT, _BINARY, _CLOSE = 0, 1, 2, 8
_OPEN = 1


class Transport(Protocol):
    """A connection. Its errors are a ConnectionError."""

    async def read(self) -> bytes:
        """Return the next message."""

    async def write(self, message: bytes) -> None:
        """Send a message. The connection may not take it at once."""

    async def close(self) -> None:
        """End the connection."""


def check_url(url: str, token: str | None) -> None:
    """Raise an InvalidError for a server that cannot be connected to."""
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise InvalidError("the token has characters that a header does not carry")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as e:
        raise InvalidError(f"invalid URL: {e}") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidError("a user name or password in a URL is not supported; use a token")
    if parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/"):
        return
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise InvalidError(f"invalid URL {url!r}: use ws://HOST:PORT, wss://HOST:PORT or unix:///PATH")


async def dial(url: str, token: str | None, ssl: tls.SSLContext | None) -> Transport:
    """Connect to the server at a URL that check_url takes."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "unix":
            reader, writer = await asyncio.open_unix_connection(unquote(parts.path))
            url = "ws://localhost/"
        elif parts.scheme == "wss":
            context = ssl or tls.create_default_context()
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=context)
        else:
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    except OSError as e:
        raise ConnectionError(f"cannot connect to {url}: {e}") from e
    socket = WebSocket(reader, writer, url)
    try:
        await socket.upgrade(token)
    except BaseException:
        await socket.close()
        raise
    return socket


class WebSocket:
    """A WebSocket on a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: str) -> None:
        self._reader, self._writer = reader, writer
        self._socket = _WebSocket(parse_uri(url), max_size=MAX_MESSAGE)
        self._events: deque[Any] = deque()
        self._parts: list[bytes] = []
        self._ended = False
        self._draining = asyncio.Lock()

    async def upgrade(self, token: str | None) -> None:
        request = self._socket.connect()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        self._socket.send_request(request)
        await self._flush()
        while not self._events:
            await self._receive()
        response = self._events.popleft()
        if response.status_code != 101:
            text = (response.body or b"")[:1024].decode("utf-8", "replace").strip()
            raise StatusError(response.status_code, text)
        if self._socket.handshake_exc is not None:
            raise ProtocolError(f"the server opens no WebSocket: {self._socket.handshake_exc}")

    async def read(self) -> bytes:
        while True:
            while not self._events:
                await self._receive()
            frame = self._events.popleft()
            if frame.opcode not in (_CONT, _TEXT, _BINARY):
                continue
            self._parts.append(bytes(frame.data))
            if frame.fin:
                message, self._parts = b"".join(self._parts), []
                return message

    async def write(self, message: bytes) -> None:
        if self._socket.state != _OPEN:
            raise ConnectionError("the connection has ended")
        self._socket.send_text(message)
        await self._flush()

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            if self._socket.state == _OPEN:
                self._socket.send_close(1000)
                await asyncio.wait_for(self._flush(), 1)
        with contextlib.suppress(Exception):
            self._writer.close()
            await asyncio.wait_for(self._writer.wait_closed(), 1)

    async def _receive(self) -> None:
        """Wait for bytes, and take the events that they have."""
        if self._ended:
            raise ConnectionError("the server ended the connection")
        try:
            data = await asyncio.wait_for(self._reader.read(1 << 16), SILENCE)
        except asyncio.TimeoutError:
            raise ConnectionError(f"the server sent nothing for {SILENCE:g} s") from None
        except OSError as e:
            raise ConnectionError(f"the connection has ended: {e}") from e
        try:  # of the handshake, the library raises what it cannot read
            if data:
                self._socket.receive_data(data)
            else:
                self._ended = True
                self._socket.receive_eof()
        except EOFError:
            raise ConnectionError("the server ended the connection") from None
        except Exception as e:
            raise ProtocolError(f"the server opens no WebSocket: {e}") from None
        with contextlib.suppress(ConnectionError):
            await self._flush()
        self._events.extend(self._socket.events_received())
        why = self._socket.handshake_exc  # of newer libraries, which do not raise it
        if why is not None and not self._events and not isinstance(why.__cause__, EOFError):
            raise ProtocolError(f"the server opens no WebSocket: {why}")
        if data and not self._events and self._socket.parser_exc is not None:
            raise ProtocolError(f"the server sent no WebSocket message: {self._socket.parser_exc}")

    async def _flush(self) -> None:
        """Send what there is to send."""
        try:
            for data in self._socket.data_to_send():
                if data:
                    self._writer.write(data)
            async with self._draining:
                await self._writer.drain()
        except OSError as e:
            raise ConnectionError(f"the connection has ended: {e}") from e


class Child:
    """The standard input and output of a process, one message a line. The end of its input ends it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._draining = asyncio.Lock()
        self._said = b""
        self._listener = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(cls, program: str, args: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> Child:
        """Start a server."""
        words = ["exec-server", "--listen", "stdio", *args]
        pipe = asyncio.subprocess.PIPE
        try:
            # In a session of its own: Control-C at the terminal is for this program, which then ends it.
            process = await asyncio.create_subprocess_exec(
                program, *words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env, limit=MAX_LINE,
                start_new_session=True)
        except OSError as e:
            raise ConnectionError(f"cannot start {program!r}: {e}") from e
        return cls(process)

    async def _listen(self) -> None:
        """Keep the end of what the server says on its standard error."""
        assert self._process.stderr is not None
        while part := await self._process.stderr.read(1 << 12):
            self._said = (self._said + part)[-(1 << 10):]

    async def read(self) -> bytes:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                raise ProtocolError("the server sent a line that is too long") from None
            if not line:
                raise await self._over()
            if line := line.strip(b"\r\n"):
                return line

    async def write(self, message: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message + b"\n")
            async with self._draining:
                await self._process.stdin.drain()
        except OSError:
            raise await self._over() from None

    async def _over(self) -> ConnectionError:
        """Return the error for a server that has ended, which none takes the place of."""
        await asyncio.wait([self._listener], timeout=1)
        said = self._said.decode("utf-8", "replace").strip()
        return ProtocolError("the server has ended" + (f": {said}" if said else ""))

    async def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        with contextlib.suppress(Exception):  # of a pipe that was broken
            await asyncio.wait_for(self._process.stdin.wait_closed(), 1)
        drain = asyncio.ensure_future(self._discard(self._process.stdout))
        try:
            await asyncio.wait_for(self._process.wait(), END_TIME)
        except asyncio.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        finally:
            await asyncio.wait([drain, self._listener], timeout=1)
            drain.cancel()
            self._listener.cancel()

    @staticmethod
    async def _discard(stream: asyncio.StreamReader) -> None:
        with contextlib.suppress(Exception):
            while await stream.read(1 << 16):
                pass
