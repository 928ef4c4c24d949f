# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""The errors of this package. All of them are a SallyportError."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .values import Result

# The codes of a RequestError.
INVALID_REQUEST = -32600
NO_METHOD = -32601
INVALID_PARAMS = -32602
SYSTEM = -32603
NOT_FOUND = -32004
ATTACHED = -32010
CANCELED = -32800


class SallyportError(Exception):
    """The base of all errors of this package."""


class InvalidError(SallyportError, ValueError):
    """An argument is invalid; nothing was sent."""


class UnsupportedError(SallyportError):
    """The server does not have what was asked for."""


class ConnectionError(SallyportError, builtins.ConnectionError):
    """There is no connection, or it ended before the answer."""

    def __init__(self, message: str, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        """The request was sent: whether it was performed is not known."""


class ClosedError(ConnectionError):
    """The client was closed."""


class StatusError(ConnectionError):
    """The server answered the upgrade to a WebSocket with another status of HTTP than 101."""

    def __init__(self, status: int, text: str) -> None:
        more = f" ({text!r})" if text else ""
        fix = "; set the token of the server" if status == 401 else ""
        super().__init__(f"the server answered with HTTP status {status}{more}{fix}")
        self.status = status
        """The status of HTTP, such as 401."""


class ProtocolError(ConnectionError):
    """The server sent what the protocol does not allow."""


class RequestError(SallyportError):
    """The server refused a request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        known = data if isinstance(data, dict) else {}
        self.code = code
        """The code of the protocol, such as NO_METHOD."""
        self.reason: str = known["reason"] if isinstance(known.get("reason"), str) else ""
        """The word of the protocol for it, such as "unknownRun" or "runLimit"; empty where there is none."""
        self.taken: int = known["taken"] if isinstance(known.get("taken"), int) else 0
        """How many bytes of a write the command took."""
        self.exit_code: int = known["exitCode"] if isinstance(known.get("exitCode"), int) else 0
        """That of `sallyport run` for flags or settings that are invalid; else 0."""
        self.data = data
        """What the server adds; None where it adds nothing."""


class FileNotFoundError(RequestError, builtins.FileNotFoundError):
    """A file or a directory does not exist."""


class NotRunError(SallyportError):
    """A command that does not run: forbidden, refused, not found, or there is no sandbox for it."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.error or f"the command did not run ({result.end})")
        self.result = result
        """What the server says; its `end` and `exit_code` tell why."""

    @property
    def forbidden(self) -> bool:
        """A rule forbids it."""
        return self.result.end == "forbidden"

    @property
    def refused(self) -> bool:
        """It needs an approval, which was denied, or nobody could be asked."""
        return self.result.end == "refused"


class ShortWriteError(SallyportError):
    """Not all of the input was taken: the command does not read."""

    def __init__(self, taken: int) -> None:
        super().__init__("the input buffer is full: the command does not read")
        self.taken = taken
        """How many bytes of the input the command took."""


class WaitTimeoutError(SallyportError, TimeoutError):
    """The time of a wait is over, and the run goes on."""


class CommandExitError(SallyportError):
    """A command of Sandbox.commands ended with another exit code than 0."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"the command ended with exit code {result.exit_code} ({result.end})")
        self.result = result

    @property
    def exit_code(self) -> int:
        return self.result.exit_code

    @property
    def stdout(self) -> str:
        return self.result.stdout

    @property
    def stderr(self) -> str:
        return self.result.stderr


def refusal(error: Any) -> RequestError:
    """Return the error for an answer of the server that refuses."""
    e = error if isinstance(error, dict) else {}
    code = e["code"] if isinstance(e.get("code"), int) else 0
    message = e["message"] if isinstance(e.get("message"), str) else "the server gave no reason"
    kind = FileNotFoundError if code == NOT_FOUND else RequestError
    return kind(code, message, e.get("data"))
