# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""A named sandbox in the shapes that users of E2B and Modal know, for asyncio."""

from __future__ import annotations

import posixpath
import secrets
import shlex
from typing import TYPE_CHECKING, AsyncGenerator, List, Literal, Mapping, Optional, Sequence, Union, overload

from ._client import (
    Asked, AsyncClient, AsyncRun, Command, OnApproval, OnEvent, Options, OnText,
)
from ._files import AsyncFiles
from .errors import CommandExitError, ConnectionError, InvalidError, RequestError, SallyportError
from .values import Result, RunInfo

if TYPE_CHECKING:
    import ssl as tls

    from typing_extensions import Unpack

APART = ("grants", "ask_for", "escalate")
"""The options of commands that a sandbox shared with others cannot give: such a command has one of its own."""


class AsyncCommandHandle(AsyncRun):
    """A command that runs in the background."""

    @property
    def pid(self) -> str:
        """The number of the run, as `run.id`: it is not that of a process."""
        return self.id

    async def wait(self, timeout: Optional[float] = None, *, on_stdout: Optional[OnText] = None,
                   on_stderr: Optional[OnText] = None) -> Result:
        """Wait for the end and return the Result; another exit code than 0 is a CommandExitError."""
        if on_stdout or on_stderr:
            await self.stream(on_stdout, on_stderr)
        return checked(await super().wait(timeout))

    async def kill(self) -> bool:
        """End the command, and report whether it was alive."""
        return await self.terminate()


def checked(result: Result) -> Result:
    """Return a result whose command ended well; that of another is a CommandExitError."""
    if not result.ok:
        raise CommandExitError(result)
    return result


class AsyncCommands:
    """The commands of a sandbox."""

    def __init__(self, client: AsyncClient, workspace: str, defaults: Options) -> None:
        self._client, self._workspace, self._defaults = client, workspace, defaults

    def _prepare(self, cmd: Command, cwd: Optional[str], envs: Optional[Mapping[str, str]],
                 timeout: Optional[float], options: Asked) -> tuple[Command, Options]:
        """Return a command with its options."""
        o = self._defaults.copy()
        o.update(options)  # type: ignore[typeddict-item]
        o["env"] = {**self._defaults.get("env", {}), **options.get("env", {}), **(envs or {})}
        o["flags"] = [*self._defaults.get("flags", ()), *options.get("flags", ())]
        o["timeout"] = timeout or None
        if any(o.get(name) for name in APART):
            o["sandbox"] = None
        if cwd is not None:  # the workspace is one for all commands of a sandbox; rules look at the lines below
            script = cmd if isinstance(cmd, str) else "exec " + shlex.join(cmd)
            cmd = f"cd -- {shlex.quote(posixpath.join(self._workspace, cwd))} || exit\n{script}"
        return cmd, o

    @overload
    async def run(
        self, cmd: Command, background: Literal[False] = False, *, envs: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None,
        stdin: Union[bytes, str, None] = None, timeout: Optional[float] = 60, **options: Unpack[Asked],
    ) -> Result: ...

    @overload
    async def run(
        self, cmd: Command, background: Literal[True], *, envs: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None, timeout: Optional[float] = 60, **options: Unpack[Asked],
    ) -> AsyncCommandHandle: ...

    async def run(
        self, cmd: Command, background: bool = False, *, envs: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None,
        stdin: Union[bytes, str, None] = None, timeout: Optional[float] = 60, **options: Unpack[Asked],
    ) -> Union[Result, AsyncCommandHandle]:
        """Run a script, or a list with a program and its arguments, and return its Result.

        Another exit code than 0 is a CommandExitError. `timeout` is in seconds, 0 for none. `background` returns
        an AsyncCommandHandle at once. With `grants`, `ask_for` or `escalate` the command has a sandbox of its own.
        """
        if background:
            if on_stdout or on_stderr or stdin is not None:
                raise InvalidError("a command in the background has its streams from its handle")
            return await self.start(cmd, envs=envs, cwd=cwd, timeout=timeout, **options)
        command, o = self._prepare(cmd, cwd, envs, timeout, options)
        return checked(await self._client.run(command, input=stdin, on_stdout=on_stdout, on_stderr=on_stderr, **o))

    async def start(
        self, cmd: Command, *, envs: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None,
        timeout: Optional[float] = 0, stdin: bool = True, tty: Union[bool, tuple[int, int]] = False,
        **options: Unpack[Asked],
    ) -> AsyncCommandHandle:
        """Start a command in the background. `send_stdin` writes to it, unless `stdin` is False."""
        command, o = self._prepare(cmd, cwd, envs, timeout, options)
        run = await self._client.start(command, open_stdin=stdin and not tty, tty=tty, screen=bool(tty), **o)
        return AsyncCommandHandle(self._client, run.id)

    async def list(self) -> List[RunInfo]:
        """Return the commands that run at the server, of all sandboxes of the credential."""
        return [info for info in await self._client.list() if info.running or info.starting]

    def connect(self, pid: str) -> AsyncCommandHandle:
        """Return a command that was started before."""
        return AsyncCommandHandle(self._client, pid)

    async def kill(self, pid: str) -> bool:
        """End a command, and report whether it was alive."""
        try:
            return await self.connect(pid).kill()
        except RequestError as e:
            if e.reason == "unknownRun":
                return False
            raise

    async def send_stdin(self, pid: str, data: Union[bytes, str]) -> None:
        """Write to the input of a command."""
        await self.connect(pid).write(data)


class AsyncStream:
    """A stream of a process: its text as it comes, from the beginning."""

    def __init__(self, run: AsyncRun, stream: str) -> None:
        self._run, self._stream = run, stream

    async def __aiter__(self) -> AsyncGenerator[str, None]:
        """Return the lines, with their ends."""
        rest = b""
        async for chunk in self._run.output():
            if chunk.stream == self._stream:
                *lines, rest = (rest + chunk.data).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace") + "\n"
        if rest:
            yield rest.decode("utf-8", "replace")

    async def read(self) -> str:
        """Return all of it, at its end."""
        return "".join([line async for line in self])


class AsyncProcess:
    """A process of `sandbox.exec`."""

    def __init__(self, run: AsyncCommandHandle) -> None:
        self.run = run
        self.stdout = AsyncStream(run, "stdout")
        self.stderr = AsyncStream(run, "stderr")
        self.returncode: Optional[int] = None
        """The exit code, after `wait` or `poll` has seen the end."""

    async def write(self, data: Union[bytes, str]) -> None:
        """Write to its input."""
        await self.run.write(data)

    async def write_eof(self) -> None:
        """End its input."""
        await self.run.close_stdin()

    async def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        self.returncode = (await AsyncRun.wait(self.run)).exit_code
        return self.returncode

    async def poll(self) -> Optional[int]:
        """Return the exit code; None while it runs."""
        reply = await self.run.wait_for(timeout=0)
        if reply.result is not None:
            self.returncode = reply.result.exit_code
        return self.returncode


class AsyncSandbox:
    """A named sandbox: its commands share a workspace, loopback, /tmp and /dev/shm. It is made by `create`."""

    def __init__(self, client: AsyncClient, name: str, workspace: str, defaults: Options, owned: bool) -> None:
        self.owned = owned
        self.client = client
        self.sandbox_id = name
        """Its name at the server."""
        self.workspace = workspace
        self.commands = AsyncCommands(client, workspace, defaults)
        self.files: AsyncFiles = client.files(workspace)

    @classmethod
    async def create(
        cls, *, url: Optional[str] = None, token: Optional[str] = None, ssl: Optional[tls.SSLContext] = None,
        program: str = "sallyport", client: Optional[AsyncClient] = None, name: Optional[str] = None,
        workspace: Optional[str] = None, network: bool = False, envs: Optional[Mapping[str, str]] = None,
        timeout: float = 600, flags: Sequence[str] = (), on_approval: Optional[OnApproval] = None,
        on_event: Optional[OnEvent] = None,
    ) -> AsyncSandbox:
        """Make a sandbox, or join one by its `name`, at a server: that of `url`, of a `client`, or one that is started.

        `workspace` is a directory of the server's machine (None: that of the server); its commands write there and
        nowhere else. `network` gives them that of the host. `timeout`: seconds that it stays without a command.
        Nothing starts before the first command.
        """
        owned = client is None
        if client is not None:
            if any(given is not None for given in (url, token, ssl, on_approval, on_event)):
                raise InvalidError("a client has its server, approvals and events; give them to it")
        elif url is not None:
            client = await AsyncClient.connect(url, token=token, ssl=ssl, on_approval=on_approval, on_event=on_event)
        else:
            client = await AsyncClient.launch(program, on_approval=on_approval, on_event=on_event)
        try:
            place = workspace if workspace is not None else client.cwd
            more = ["--net", "host"] if network else []
            name = name or f"sdk-{secrets.token_hex(8)}"
            return cls(client, name, place, {"flags": [*more, *flags], "env": envs or {}, "idle": timeout,
                                             "sandbox": name, "cwd": place}, owned)
        except SallyportError:
            if owned:
                await client.close()
            raise

    async def exec(self, *argv: str, envs: Optional[Mapping[str, str]] = None, workdir: Optional[str] = None,
                   timeout: Optional[float] = None, **options: Unpack[Asked]) -> AsyncProcess:
        """Start a program with its arguments."""
        return AsyncProcess(await self.commands.start(list(argv), envs=envs, cwd=workdir, timeout=timeout, **options))

    async def is_running(self) -> bool:
        """Report whether the sandbox is there: after its first command, and before its end."""
        return any(s.name == self.sandbox_id for s in await self.client.list_sandboxes())

    async def kill(self) -> bool:
        """End the sandbox with all that is in it, and its own connection. Report whether it was there."""
        try:
            await self.client.stop_sandbox(self.sandbox_id)
            return True
        except RequestError as e:
            if e.reason != "unknownSandbox":
                raise
            return False
        except ConnectionError:
            return False
        finally:
            if self.owned:
                await self.client.close()

    async def terminate(self) -> None:
        """End the sandbox, as `kill` does."""
        await self.kill()

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
