# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""A session with a server, over one connection after the other."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, Awaitable, Callable, Optional

from . import protocol
from ._transport import MAX_MESSAGE, Transport
from .errors import (
    ATTACHED, CANCELED, NO_METHOD, SYSTEM, ClosedError, ConnectionError, InvalidError, ProtocolError, RequestError,
    SallyportError, StatusError, refusal,
)

HANDSHAKE_TIME = 10.0
"""How long connecting and the handshake may take together, in seconds."""
SETTLE_TIME = 10.0
"""How long the answer to a start that was canceled is waited for."""
MIN_PAUSE, MAX_PAUSE, USELESS_PAUSE = 0.02, 2.0, 0.1
"""The pauses between two attempts to resume. The first attempt is made at once."""
MAX_REQUESTS = 64
"""How many requests of the server are answered at once."""

Dial = Callable[[], Awaitable[Transport]]
OnRequest = Callable[[str, Any], Awaitable[Any]]
OnNotify = Callable[[str, Any], Awaitable[None]]


class _Call:
    """A request that waits for its answer."""

    def __init__(self, number: int, message: bytes, repeat: bool, sent: bool) -> None:
        self.id, self.message, self.repeat, self.sent = number, message, repeat, sent
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


def encode(message: dict[str, Any]) -> bytes:
    """Return the JSON form of a message."""
    try:
        data = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError) as e:  # such as half of a surrogate pair
        raise InvalidError(f"the request cannot be encoded: {e}") from None
    if len(data) > MAX_MESSAGE:
        raise InvalidError(f"the request is longer than {MAX_MESSAGE} bytes, the most that one message carries; "
                           "send less at once")
    return data


def final(error: BaseException) -> bool:
    """Report whether an error of a connection or a handshake stays the same when it is tried again."""
    if isinstance(error, RequestError):
        # The server has not seen the end of the last connection yet, or has trouble of its own.
        return error.code not in (ATTACHED, SYSTEM)
    if isinstance(error, StatusError):
        return error.status < 500
    return isinstance(error, (ProtocolError, InvalidError, ClosedError)) or not isinstance(error, ConnectionError)


class Connection:
    """A session. Its methods are for tasks of one event loop."""

    def __init__(self, dial: Dial, client_name: str, resume: float, on_request: Optional[OnRequest],
                 on_notify: OnNotify) -> None:
        self._dial, self._client_name, self._resume_time = dial, client_name, resume
        self._on_request, self._on_notify = on_request, on_notify
        self._transport: Optional[Transport] = None
        self._hello: Any = None
        self._last = 0
        self._calls: dict[int, _Call] = {}
        self._error: Optional[SallyportError] = None
        self._reader: Optional[asyncio.Task[None]] = None
        self._asked: dict[Any, asyncio.Task[None]] = {}
        self._resender: Optional[asyncio.Task[None]] = None
        self._useful = False

    @property
    def hello(self) -> protocol.InitializeResult:
        """What the server said when they met last."""
        hello: protocol.InitializeResult = self._hello
        return hello

    async def open(self) -> None:
        """Connect, and make a session."""
        self._transport = await self._meet("")
        self._reader = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        """End the connection. It may be called more than once."""
        if self._reader is None:
            return
        self._fail(ClosedError("the client is closed"))
        self._reader.cancel()
        await asyncio.wait([self._reader])
        for task in [*self._asked.values()]:
            task.cancel()
        if self._asked:
            await asyncio.wait([*self._asked.values()])

    async def call(self, method: str, params: Any, *, repeat: bool = False,
                   late: Optional[Callable[[Any], Awaitable[None]]] = None) -> Any:
        """Perform a request. It waits while there is no connection.

        A request that may be performed twice (repeat) is sent again after a cut. A task that is canceled
        withdraws it; one with late is then answered all the same, and late gets a result that came too late.
        """
        if self._error is not None:
            raise self._error
        self._last += 1
        message = encode({"id": self._last, "method": method, "params": params})
        call = _Call(self._last, message, repeat, self._transport is not None)
        self._calls[call.id] = call
        try:
            await self._send(message)
            return _complete(method, await asyncio.shield(call.answer))
        except asyncio.CancelledError:
            call.repeat = False  # another connection would perform it
            if method.startswith("run/"):
                cancel = self._send(encode({"method": "request/cancel", "params": {"id": call.id}}))
                await asyncio.shield(asyncio.ensure_future(cancel))
            if late is not None and call.sent:
                await asyncio.wait([call.answer], timeout=SETTLE_TIME)
                if call.answer.done() and call.answer.exception() is None:
                    await late(call.answer.result())
            raise
        finally:
            self._calls.pop(call.id, None)
            if call.answer.done() and not call.answer.cancelled():
                call.answer.exception()  # has been looked at

    async def _send(self, message: bytes) -> None:
        """Send a message; the reader sees the end of a connection."""
        transport = self._transport
        if transport is not None:
            try:
                await transport.write(message)
            except ConnectionError:
                pass

    async def _send_all(self, messages: list[bytes]) -> None:
        """Send messages beside the reader: a server that waits for it takes nothing."""
        for message in messages:
            await self._send(message)

    async def _run(self) -> None:
        """Read, and resume the session, until that is not possible any more."""
        cause: SallyportError = ClosedError("the client is closed")
        try:
            while True:
                transport = self._transport
                assert transport is not None
                self._useful = False
                try:
                    while True:
                        await self._take(transport, await transport.read())
                        self._useful = True
                except SallyportError as e:
                    cause = e
                self._detach(cause)
                await transport.close()
                if final(cause):
                    break
                try:
                    self._transport = await self._resume(cause)
                except SallyportError as e:
                    cause = e
                    break
                again = sorted(self._calls.values(), key=lambda c: c.id)
                for call in again:
                    call.sent = True
                self._resender = asyncio.ensure_future(self._send_all([c.message for c in again]))
        except Exception as e:  # of ours: no call waits for ever
            cause = ConnectionError(f"internal error: {e!r}")
            raise
        finally:
            transport, self._transport = self._transport, None
            self._fail(cause)
            if transport is not None:
                await transport.close()

    def _detach(self, cause: SallyportError) -> None:
        """Give up a connection, and end what must not be repeated."""
        self._transport = None
        for call in [*self._calls.values()]:
            if call.sent and not call.repeat and not call.answer.done():
                call.answer.set_exception(ConnectionError(
                    "the connection to the exec-server ended before the answer, so the request may have been "
                    f"performed: {cause}", sent=True))
        for task in [*self._asked.values()]:
            task.cancel()

    def _fail(self, cause: SallyportError) -> None:
        """End all calls, also later ones."""
        if self._error is None:
            if not isinstance(cause, ConnectionError):
                cause = ConnectionError(f"the session cannot be resumed: {cause}")
            self._error = cause
        for call in self._calls.values():
            if not call.answer.done():
                call.answer.set_exception(self._error)

    async def _resume(self, cut: SallyportError) -> Transport:
        """Connect again after a cut and resume the session, until the time is over or it is lost."""
        if self._resume_time <= 0:
            raise cut
        loop = asyncio.get_running_loop()
        until = loop.time() + self._resume_time
        # A connection that was not useful may be one of many that the server cuts.
        wait, pause = 0.0 if self._useful else USELESS_PAUSE, MIN_PAUSE
        while True:
            if loop.time() + wait > until:
                raise ConnectionError(f"the session was not resumed within {self._resume_time:g} s: {cut}")
            await asyncio.sleep(wait)
            try:
                return await self._meet(self.hello["sessionId"])
            except SallyportError as e:
                if final(e):
                    raise
                cut = e
            # Clients of one server do not come all at once.
            wait, pause = random.uniform(pause / 2, pause), min(2 * pause, MAX_PAUSE)

    async def _meet(self, session: str) -> Transport:
        """Connect, and make or resume a session."""
        try:
            return await asyncio.wait_for(self._greet(session), HANDSHAKE_TIME)
        except asyncio.TimeoutError:
            raise ConnectionError(f"the server did not answer within {HANDSHAKE_TIME:g} s") from None

    async def _greet(self, session: str) -> Transport:
        params: dict[str, Any] = {"clientName": self._client_name, "extensionMethods": True,
                                  "approvals": self._on_request is not None}
        if session:  # the server may not have seen yet that the connection before was cut
            params.update(resumeSessionId=session, takeOver=True)
        transport = await self._dial()
        try:
            self._last += 1
            number = self._last
            await transport.write(encode({"id": number, "method": "initialize", "params": params}))
            while True:
                data = await transport.read()
                message = _decode(data)
                if message.get("id") == number and "method" not in message:
                    break
                await self._take(transport, data)  # of the session, before the answer
            if "error" in message:
                raise refusal(message["error"])
            hello = message.get("result")
            got = hello.get("sessionId") if isinstance(hello, dict) else None
            if not isinstance(got, str) or not got or session not in ("", got):
                raise ProtocolError("the server gave another session than the one that was asked for")
            self._hello = hello
            await transport.write(encode({"method": "initialized", "params": {}}))
            return transport
        except BaseException:
            await transport.close()
            raise

    async def _take(self, transport: Transport, data: bytes) -> None:
        """Take a message of the server."""
        message = _decode(data)
        method, number = message.get("method"), message.get("id")
        if not isinstance(number, (str, int, type(None))):
            raise ProtocolError("the server sent a message with an invalid id")
        if isinstance(method, str) and number is not None:
            if len(self._asked) >= MAX_REQUESTS:  # to wait would hold up the answers that requests may wait for
                await transport.write(encode({"id": number, "error": {
                    "code": SYSTEM, "message": "too many requests at once"}}))
                return
            task = asyncio.ensure_future(self._answer(transport, number, method, message.get("params")))
            self._asked[number] = task
            task.add_done_callback(lambda t: self._asked.get(number) is t and self._asked.pop(number))
        elif method == "request/cancel":
            params = message.get("params")
            withdrawn = params.get("id") if isinstance(params, dict) else None
            if isinstance(withdrawn, (str, int)) and withdrawn in self._asked:
                self._asked[withdrawn].cancel()
        elif isinstance(method, str):
            await self._on_notify(method, message.get("params"))
        elif "error" in message and number == -1:
            raise ProtocolError(f"the server did not understand a message: {refusal(message['error'])}")
        else:
            call = self._calls.get(number) if isinstance(number, int) else None
            if call is not None and not call.answer.done():
                if "error" in message:
                    call.answer.set_exception(refusal(message["error"]))
                else:
                    call.answer.set_result(message.get("result"))

    async def _answer(self, transport: Transport, number: Any, method: str, params: Any) -> None:
        """Answer a request of the server."""
        answer: dict[str, Any] = {"id": number}
        try:
            if self._on_request is None:
                raise RequestError(NO_METHOD, "this client answers no requests")
            answer["result"] = await self._on_request(method, params)
            data = encode(answer)
        except asyncio.CancelledError:
            data = encode({"id": number, "error": {"code": CANCELED, "message": "the request was withdrawn"}})
        except Exception as e:
            code = e.code if isinstance(e, RequestError) else SYSTEM
            why = str(e).encode("utf-8", "replace").decode()
            data = encode({"id": number, "error": {"code": code, "message": why}})
        try:
            await transport.write(data)
        except ConnectionError:
            pass  # with the connection, the interest of the server has ended


def _complete(method: str, result: Any) -> Any:
    """Return a result that has what the protocol says."""
    lacks = [name for name in protocol.RESULTS.get(method, ()) if not isinstance(result, dict) or name not in result]
    if lacks:
        raise ProtocolError(f"the server's answer to {method} has no {lacks[0]}")
    return result


def _decode(data: bytes) -> dict[str, Any]:
    """Return a message."""
    try:
        message = json.loads(data)
    except ValueError as e:
        raise ProtocolError(f"the server sent no JSON: {e}") from None
    except RecursionError:
        raise ProtocolError("the server sent JSON with too many levels") from None
    if not isinstance(message, dict):
        raise ProtocolError("the server sent JSON that is no message")
    return message
