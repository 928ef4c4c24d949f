# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Servers for tests, and a way to them that can be cut."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Optional

logging.getLogger("asyncio").setLevel(logging.ERROR)  # not what takes long on a busy machine
BINARY = os.environ.get("SALLYPORT_BINARY", "")


def need_binary() -> str:
    if not BINARY:
        raise unittest.SkipTest("SALLYPORT_BINARY names no server")
    return BINARY


class Place:
    """A directory with a workspace, and an environment in which nothing is of the user."""

    def __init__(self, case: unittest.TestCase) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="x-py-", dir="/var/tmp"))
        case.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.workspace, home = self.top / "workspace", self.top / "home"
        self.workspace.mkdir()
        home.mkdir()
        self.outside = self.top / "outside"
        self.outside.mkdir()
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(home), "SHELL": "/bin/sh",
                    "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": str(home), "XDG_STATE_HOME": str(home / "state")}
        self.launch = {"program": need_binary(), "cwd": str(self.workspace), "env": self.env}


class Server:
    """A server that listens."""

    def __init__(self, case: unittest.TestCase, place: Place, *args: str, listen: str = "ws://127.0.0.1:0") -> None:
        self.process = subprocess.Popen(
            [need_binary(), "exec-server", "--listen", listen, *args], cwd=place.workspace, env=place.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        case.addCleanup(self.stop)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        case.assertTrue(self.url, "the server did not start")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Way:
    """A port that leads to a server. Its connections can be cut, after some bytes or at once."""

    def __init__(self, url: str) -> None:
        self.lead(url)
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.limit: Optional[int] = None
        """How many more bytes of the server pass before the next cut; None for all."""
        self.connections = 0
        self.closed = False

    def lead(self, url: str) -> None:
        """Lead to a server from now on."""
        self._target = url.removeprefix("ws://").rstrip("/").split(":")

    async def __aenter__(self) -> Way:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = "ws://127.0.0.1:%d" % self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._server.close()
        self.cut()
        for task in [*self._pipes]:
            task.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    def cut(self) -> None:
        """End all connections without a word."""
        for writer in [*self._writers]:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.transport.abort()
            return
        self.connections += 1
        there, back = await asyncio.open_connection(*self._target)
        mine = {writer, back}
        self._writers |= mine

        async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter, counts: bool) -> None:
            try:
                while data := await source.read(1 << 12):
                    if counts and self.limit is not None:
                        data, self.limit = data[:self.limit], self.limit - len(data)
                        if self.limit <= 0:
                            self.limit = None
                            target.write(data)
                            await target.drain()
                            break
                    target.write(data)
                    await target.drain()
            except OSError:
                pass
            finally:
                for w in mine:
                    w.transport.abort()
                self._writers -= mine

        for way in (pipe(reader, back, False), pipe(there, writer, True)):
            task = asyncio.ensure_future(way)
            self._pipes.add(task)
            task.add_done_callback(self._pipes.discard)


class Fake:
    """A server in memory: what it is to say, and what it was told. It is a transport."""

    def __init__(self, capabilities: Optional[dict[str, bool]] = None) -> None:
        self.capabilities = {"runs": True} if capabilities is None else capabilities
        self.says: asyncio.Queue[bytes] = asyncio.Queue()
        self.told: asyncio.Queue[bytes] = asyncio.Queue()

    async def read(self) -> bytes:
        return await self.says.get()

    async def write(self, message: bytes) -> None:
        await self.told.put(message)

    async def close(self) -> None:
        pass
