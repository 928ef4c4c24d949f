# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""A client of sallyport exec-server: commands that are judged, approved and run in a sandbox."""

from ._client import AsyncClient, AsyncRun, Options
from ._files import AsyncFiles
from ._sandbox import AsyncCommandHandle, AsyncCommands, AsyncProcess, AsyncSandbox
from ._sync import Client, CommandHandle, Commands, Files, Process, Run, Sandbox
from .errors import (
    ClosedError, CommandExitError, ConnectionError, FileNotFoundError, InvalidError, NotRunError, ProtocolError,
    RequestError, SallyportError, ShortWriteError, StatusError, UnsupportedError, WaitTimeoutError,
)
from .values import (
    Answer, Attempt, Chunk, Denial, Event, FileInfo, InputWait, Page, Question, Reply, Result, RunInfo, SandboxInfo,
    Screen, Stage,
)

__all__ = [
    "Answer", "AsyncClient", "AsyncCommandHandle", "AsyncCommands", "AsyncFiles", "AsyncProcess", "AsyncRun",
    "AsyncSandbox", "Attempt", "Chunk", "Client", "ClosedError", "CommandExitError", "CommandHandle", "Commands",
    "ConnectionError", "Denial", "Event", "FileInfo", "FileNotFoundError", "Files", "InputWait", "InvalidError",
    "NotRunError", "Options", "Page", "Process", "ProtocolError", "Question", "Reply", "RequestError", "Result",
    "Run", "RunInfo", "SallyportError", "Sandbox", "SandboxInfo", "Screen", "ShortWriteError", "Stage", "StatusError",
    "UnsupportedError", "WaitTimeoutError",
]
