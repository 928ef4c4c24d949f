# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""The same as the asynchronous classes, for blocking code: an event loop in a thread does the work."""

from __future__ import annotations

import asyncio
import functools
import inspect
import ssl as tls
import threading
from concurrent.futures import Future
from typing import (
    TYPE_CHECKING, Any, AsyncGenerator, Awaitable, Callable, Coroutine, Generic, Iterator, Literal, Mapping, Optional,
    Sequence, TypeVar, Union, overload,
)

from . import _client, _files, _sandbox, protocol
from ._client import READ_WAIT_MS, Asked, Command, Decision, Options
from .errors import ClosedError
from .values import Chunk, Event, Question, Result

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Self, Unpack

    P = ParamSpec("P")
else:
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")


CANCEL_TIME = 15.0
"""How long work that is canceled has to end, in seconds."""


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="sallyport", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Perform work and return its result. Control-C cancels it."""
        if not self.running:
            work.close()
            raise ClosedError("the client is closed")
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking client was used in its own event loop; use the asynchronous one there")
        over = threading.Event()

        async def whole() -> T:
            try:
                return await work
            finally:
                over.set()

        future: Future[T] = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():  # Control-C: a command that runs is ended before the caller goes on
                over.wait(CANCEL_TIME)
            raise

    @property
    def running(self) -> bool:
        return not self._loop.is_closed()

    def stop(self) -> None:
        """End the loop and the thread."""
        if not self.running:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _in_thread(function: Callable[[A], R], value: A) -> R:
    """Call a function of the caller in a thread, which may block, and call the client."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[R] = loop.create_future()

    def set_done(result: Any, error: Optional[BaseException]) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(result)

    def work() -> None:
        result, error = None, None
        try:
            result = function(value)
        except BaseException as e:
            error = e
        try:
            loop.call_soon_threadsafe(set_done, result, error)
        except RuntimeError:
            pass  # the client was closed meanwhile

    threading.Thread(target=work, daemon=True, name="sallyport-callback").start()
    return await done


def _aside(function: Optional[Callable[[A], R]]) -> Optional[Callable[[A], Awaitable[R]]]:
    """Return the asynchronous form of a function of the caller."""
    if function is None:
        return None
    if inspect.iscoroutinefunction(function):
        raise TypeError("a blocking client takes functions that are not asynchronous; use AsyncClient for those")
    return functools.partial(_in_thread, function)


OnText = Callable[[str], None]
OnApproval = Callable[[Question], Decision]
OnEvent = Callable[[Event], None]


class _Method(Generic[P, T]):
    """A method that performs the asynchronous one of the same name."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Callable[..., T]: ...

    @overload
    def __get__(self, instance: _Blocking[Any], owner: Any = None) -> Callable[P, T]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        method = self._method
        if instance is None:
            return method

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return instance._loop.call(method(instance._inner, *args, **kwargs))

        return call


class _Blocking(Generic[A]):
    """What stands for an asynchronous object."""

    def __init__(self, loop: _Loop, inner: A) -> None:
        self._loop, self._inner = loop, inner

    def __repr__(self) -> str:
        return repr(self._inner).replace("Async", "", 1)


R_ = TypeVar("R_", bound=_client.AsyncRun)


class _Run(_Blocking[R_]):
    @property
    def id(self) -> str:
        """Its number, in decimal."""
        return self._inner.id

    read = _Method(_client.AsyncRun.read)
    write = _Method(_client.AsyncRun.write)
    close_stdin = _Method(_client.AsyncRun.close_stdin)
    wait_for = _Method(_client.AsyncRun.wait_for)
    result = _Method(_client.AsyncRun.result)
    screen = _Method(_client.AsyncRun.screen)
    resize = _Method(_client.AsyncRun.resize)
    signal = _Method(_client.AsyncRun.signal)
    terminate = _Method(_client.AsyncRun.terminate)
    remove = _Method(_client.AsyncRun.remove)
    leave = _Method(_client.AsyncRun.leave)

    def stream(self, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None) -> None:
        """Give the output to functions, as text, up to its end."""
        self._loop.call(self._inner.stream(_aside(on_stdout), _aside(on_stderr)))

    def output(self, after: int = 0) -> Iterator[Chunk]:
        """Return the output from an offset on, as it comes, up to its end; as AsyncRun.output."""
        complete = False
        try:
            while not complete:
                page = self.read(after, wait=READ_WAIT_MS / 1000)
                yield from page.chunks
                after, complete = max(after, page.next), page.complete
        finally:
            if self._inner.waits_for_reader and not complete:
                self.leave(after)


class Run(_Run[_client.AsyncRun]):
    """A command that runs at a server, or has run there; as AsyncRun."""

    wait = _Method(_client.AsyncRun.wait)


class Files(_Blocking[_files.AsyncFiles]):
    """Files, relative to a workspace; as AsyncFiles."""

    @property
    def workspace(self) -> str:
        return self._inner.workspace

    @overload
    def read(self, path: str, format: Literal["text"] = "text") -> str: ...

    @overload
    def read(self, path: str, format: Literal["bytes"]) -> bytes: ...

    def read(self, path: str, format: Any = "text") -> Any:
        """Return what is in a regular file, as text in UTF-8 or as bytes."""
        return self._loop.call(self._inner.read(path, format))

    write = _Method(_files.AsyncFiles.write)
    append = _Method(_files.AsyncFiles.append)
    list = _Method(_files.AsyncFiles.list)
    get_info = _Method(_files.AsyncFiles.get_info)
    exists = _Method(_files.AsyncFiles.exists)
    make_dir = _Method(_files.AsyncFiles.make_dir)
    remove = _Method(_files.AsyncFiles.remove)
    rename = _Method(_files.AsyncFiles.rename)


class Client(_Blocking[_client.AsyncClient]):
    """A connection with an exec-server; as AsyncClient. Its methods may be called from several threads.

    Its functions `on_approval` and `on_event` are called in threads of their own, and may use the client.
    """

    @classmethod
    def _make(cls, make: Callable[[], Coroutine[Any, Any, _client.AsyncClient]]) -> Self:
        loop = _Loop()
        try:
            return cls(loop, loop.call(make()))
        except BaseException:
            loop.stop()
            raise

    @classmethod
    def connect(
        cls, url: str, *, token: Optional[str] = None, ssl: Optional[tls.SSLContext] = None,
        on_approval: Optional[OnApproval] = None, on_event: Optional[OnEvent] = None, resume: float = 60,
        client_name: str = "sallyport-python",
    ) -> Self:
        """Connect to the server at ws://HOST:PORT, wss://HOST:PORT or unix:///PATH; as AsyncClient.connect."""
        return cls._make(lambda: _client.AsyncClient.connect(
            url, token=token, ssl=ssl, on_approval=_aside(on_approval), on_event=_aside(on_event), resume=resume,
            client_name=client_name))

    @classmethod
    def launch(
        cls, program: str = "sallyport", *, args: Sequence[str] = (), cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None, on_approval: Optional[OnApproval] = None,
        on_event: Optional[OnEvent] = None, client_name: str = "sallyport-python",
    ) -> Self:
        """Start a server of this client, which ends with it; as AsyncClient.launch."""
        return cls._make(lambda: _client.AsyncClient.launch(
            program, args=args, cwd=cwd, env=env, on_approval=_aside(on_approval), on_event=_aside(on_event),
            client_name=client_name))

    @property
    def environment(self) -> protocol.Environment:
        """What the server says of its machine."""
        return self._inner.environment

    @property
    def cwd(self) -> str:
        """The directory of the server, in which commands run unless they say another one."""
        return self._inner.cwd

    @property
    def session_id(self) -> str:
        """The session that is resumed after a cut."""
        return self._inner.session_id

    def close(self) -> None:
        """End the connection. Runs that were started go on, unless the server ends with it."""
        if self._loop.running:
            self._loop.call(self._inner.close())
            self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self, command: Command, *, tty: Union[bool, tuple[int, int]] = False, screen: bool = False,
        open_stdin: bool = False, reader: bool = False, **options: Unpack[Options],
    ) -> Run:
        """Start a command: a script for the shell, or a list with a program and its arguments; as AsyncClient.start."""
        return Run(self._loop, self._loop.call(self._inner.start(
            command, tty=tty, screen=screen, open_stdin=open_stdin, reader=reader, **options)))

    def run(
        self, command: Command, *, input: Union[bytes, str, None] = None, on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None, **options: Unpack[Options],
    ) -> Result:
        """Run a command to its end, and return its Result. Its exit code is no error. As AsyncClient.run."""
        return self._loop.call(self._inner.run(
            command, input=input, on_stdout=_aside(on_stdout), on_stderr=_aside(on_stderr), **options))

    def attach(self, id: str) -> Run:
        """Return a run of the server, which may have been started by another client with the same credential."""
        return Run(self._loop, self._inner.attach(id))

    call = _Method(_client.AsyncClient.call)
    remove = _Method(_client.AsyncClient.remove)
    list = _Method(_client.AsyncClient.list)
    list_sandboxes = _Method(_client.AsyncClient.list_sandboxes)
    stop_sandbox = _Method(_client.AsyncClient.stop_sandbox)
    questions = _Method(_client.AsyncClient.questions)
    answer = _Method(_client.AsyncClient.answer)
    forget = _Method(_client.AsyncClient.forget)

    def files(self, workspace: Optional[str] = None, *, confined: bool = True) -> Files:
        """Return the files of the server's machine; as AsyncClient.files."""
        return Files(self._loop, self._inner.files(workspace, confined=confined))


class CommandHandle(_Run[_sandbox.AsyncCommandHandle]):
    """A command of a sandbox that runs in the background; as AsyncCommandHandle."""

    @property
    def pid(self) -> str:
        """The number of the run."""
        return self._inner.pid

    def wait(self, timeout: Optional[float] = None, *, on_stdout: Optional[OnText] = None,
             on_stderr: Optional[OnText] = None) -> Result:
        """Wait for the end and return the Result; another exit code than 0 is a CommandExitError."""
        return self._loop.call(self._inner.wait(timeout, on_stdout=_aside(on_stdout), on_stderr=_aside(on_stderr)))

    kill = _Method(_sandbox.AsyncCommandHandle.kill)


class Commands(_Blocking[_sandbox.AsyncCommands]):
    """The commands of a sandbox; as AsyncCommands."""

    @overload
    def run(
        self, cmd: Command, background: Literal[False] = False, *, envs: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None,
        stdin: Union[bytes, str, None] = None, timeout: Optional[float] = 60, **options: Unpack[Asked],
    ) -> Result: ...

    @overload
    def run(
        self, cmd: Command, background: Literal[True], *, envs: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None, timeout: Optional[float] = 60, **options: Unpack[Asked],
    ) -> CommandHandle: ...

    def run(
        self, cmd: Command, background: bool = False, *, envs: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None,
        stdin: Union[bytes, str, None] = None, timeout: Optional[float] = 60, **options: Unpack[Asked],
    ) -> Union[Result, CommandHandle]:
        """Run a script, or a list with a program and its arguments, and return its Result; as AsyncCommands.run."""
        inner: Any = self._inner  # its forms are those above
        got = self._loop.call(inner.run(
            cmd, background, envs=envs, cwd=cwd, on_stdout=_aside(on_stdout), on_stderr=_aside(on_stderr), stdin=stdin,
            timeout=timeout, **options))
        return got if isinstance(got, Result) else CommandHandle(self._loop, got)

    def start(
        self, cmd: Command, *, envs: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None,
        timeout: Optional[float] = 0, stdin: bool = True, tty: Union[bool, tuple[int, int]] = False,
        **options: Unpack[Asked],
    ) -> CommandHandle:
        """Start a command in the background; as AsyncCommands.start."""
        return CommandHandle(self._loop, self._loop.call(self._inner.start(
            cmd, envs=envs, cwd=cwd, timeout=timeout, stdin=stdin, tty=tty, **options)))

    def connect(self, pid: str) -> CommandHandle:
        """Return a command that was started before."""
        return CommandHandle(self._loop, self._inner.connect(pid))

    list = _Method(_sandbox.AsyncCommands.list)
    kill = _Method(_sandbox.AsyncCommands.kill)
    send_stdin = _Method(_sandbox.AsyncCommands.send_stdin)


async def _close(lines: AsyncGenerator[str, None]) -> None:
    await lines.aclose()


class Stream(_Blocking[_sandbox.AsyncStream]):
    """A stream of a process: its text as it comes, from the beginning."""

    def __iter__(self) -> Iterator[str]:
        """Return the lines, with their ends."""
        lines = self._inner.__aiter__()

        async def following() -> Optional[str]:
            return await anext(lines, None)

        try:
            while (line := self._loop.call(following())) is not None:
                yield line
        finally:
            self._loop.call(_close(lines))

    read = _Method(_sandbox.AsyncStream.read)


class Process(_Blocking[_sandbox.AsyncProcess]):
    """A process of `sandbox.exec`; as AsyncProcess."""

    @property
    def run(self) -> CommandHandle:
        return CommandHandle(self._loop, self._inner.run)

    @property
    def stdout(self) -> Stream:
        return Stream(self._loop, self._inner.stdout)

    @property
    def stderr(self) -> Stream:
        return Stream(self._loop, self._inner.stderr)

    @property
    def returncode(self) -> Optional[int]:
        """The exit code, after `wait` or `poll` has seen the end."""
        return self._inner.returncode

    write = _Method(_sandbox.AsyncProcess.write)
    write_eof = _Method(_sandbox.AsyncProcess.write_eof)
    wait = _Method(_sandbox.AsyncProcess.wait)
    poll = _Method(_sandbox.AsyncProcess.poll)


class Sandbox(_Blocking[_sandbox.AsyncSandbox]):
    """A named sandbox: its commands share a workspace, loopback, /tmp and /dev/shm; as AsyncSandbox."""

    @classmethod
    def create(
        cls, *, url: Optional[str] = None, token: Optional[str] = None, ssl: Optional[tls.SSLContext] = None,
        program: str = "sallyport", client: Optional[Client] = None, name: Optional[str] = None,
        workspace: Optional[str] = None, network: bool = False, envs: Optional[Mapping[str, str]] = None,
        timeout: float = 600, flags: Sequence[str] = (), on_approval: Optional[OnApproval] = None,
        on_event: Optional[OnEvent] = None,
    ) -> Self:
        """Make a sandbox, or join one by its `name`, at a server; as AsyncSandbox.create."""
        loop = client._loop if client is not None else _Loop()
        try:
            return cls(loop, loop.call(_sandbox.AsyncSandbox.create(
                url=url, token=token, ssl=ssl, program=program, client=client._inner if client is not None else None,
                name=name, workspace=workspace, network=network, envs=envs, timeout=timeout, flags=flags,
                on_approval=_aside(on_approval), on_event=_aside(on_event))))
        except BaseException:
            if client is None:
                loop.stop()
            raise

    @property
    def client(self) -> Client:
        return Client(self._loop, self._inner.client)

    @property
    def sandbox_id(self) -> str:
        """Its name at the server."""
        return self._inner.sandbox_id

    @property
    def workspace(self) -> str:
        return self._inner.workspace

    @property
    def commands(self) -> Commands:
        return Commands(self._loop, self._inner.commands)

    @property
    def files(self) -> Files:
        return Files(self._loop, self._inner.files)

    def exec(self, *argv: str, envs: Optional[Mapping[str, str]] = None, workdir: Optional[str] = None,
             timeout: Optional[float] = None, **options: Unpack[Asked]) -> Process:
        """Start a program with its arguments."""
        return Process(self._loop, self._loop.call(self._inner.exec(
            *argv, envs=envs, workdir=workdir, timeout=timeout, **options)))

    is_running = _Method(_sandbox.AsyncSandbox.is_running)

    def kill(self) -> bool:
        """End the sandbox with all that is in it, and its own connection. Report whether it was there."""
        if not self._loop.running:
            return False
        try:
            return self._loop.call(self._inner.kill())
        finally:
            if self._inner.owned:
                self._loop.stop()

    def terminate(self) -> None:
        """End the sandbox, as `kill` does."""
        self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
