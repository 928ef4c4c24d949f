# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of the server's machine, for asyncio."""

from __future__ import annotations

import asyncio
import posixpath
import secrets
from base64 import b64encode
from typing import Any, Awaitable, List, Literal, Mapping, Protocol, Union, overload
from urllib.parse import quote

from . import protocol
from .errors import ConnectionError, FileNotFoundError, InvalidError, ProtocolError, RequestError
from .values import FileInfo, data_of

BLOCK = 1 << 20
"""The most of one request for a part of a file, in bytes."""
READS = 3
"""How often a file is read, if the connection is cut meanwhile."""
WHOLE = 8 << 20
"""What is more than that is written in parts, which is not atomic."""


class Call(Protocol):
    """AsyncClient.call."""

    def __call__(self, method: str, params: Any, *, repeat: bool = False) -> Awaitable[Any]: ...


class AsyncFiles:
    """Files, relative to a workspace. It is made by `client.files`."""

    def __init__(self, call: Call, workspace: str, confined: bool) -> None:
        if not workspace.startswith("/"):
            raise InvalidError(f"the workspace {workspace!r} is no absolute path")
        self._perform = call
        self.workspace = posixpath.normpath(workspace)
        self._more: Mapping[str, Any] = {"sandbox": _sandbox(self.workspace)} if confined else {}

    def _path(self, path: str) -> str:
        """Return an absolute path. Where `..` leads to is a matter of the server: links may be on the way."""
        if "\0" in path:
            raise InvalidError("a path has a NUL")
        return posixpath.join(self.workspace, path) if path not in ("", ".") else self.workspace

    async def _call(self, method: str, repeat: bool, **params: Any) -> Any:
        return await self._perform(method, {**params, **self._more}, repeat=repeat)

    @overload
    async def read(self, path: str, format: Literal["text"] = "text") -> str: ...

    @overload
    async def read(self, path: str, format: Literal["bytes"]) -> bytes: ...

    async def read(self, path: str, format: Literal["text", "bytes"] = "text") -> Union[str, bytes]:
        """Return what is in a regular file, as text in UTF-8 or as bytes."""
        if format not in ("text", "bytes"):
            raise InvalidError(f"the format {format!r} is unknown; use 'text' or 'bytes'")
        for cuts in range(READS):
            try:
                data = await self._read(path)
                break
            except ConnectionError as e:  # a handle ends with its connection
                if not e.sent or cuts + 1 == READS:
                    raise
        return data.decode("utf-8") if format == "text" else bytes(data)

    async def _read(self, path: str) -> bytearray:
        handle = secrets.token_hex(16)
        await self._call("fs/open", False, handleId=handle, path=_uri(self._path(path)), mode="read")
        data = bytearray()
        try:
            while True:
                params: protocol.FsReadBlockParams = {"handleId": handle, "offset": len(data), "len": BLOCK}
                got: protocol.FsReadBlockResult = await self._block("fs/readBlock", params)
                part = data_of(got["chunk"])
                data += part
                if got["eof"]:
                    return data
                if not part:
                    raise ProtocolError("the server sent a part of a file that is empty")
        finally:
            await self._close(handle)

    async def _block(self, method: str, params: Any) -> Any:
        try:
            return await self._perform(method, params)
        except FileNotFoundError as e:
            raise ConnectionError("the connection, and with it the handle of the file, ended before the answer",
                                  sent=True) from e

    async def write(self, path: str, data: Union[str, bytes]) -> FileInfo:
        """Write a file, and the directories on the way to it that are missing.

        Up to 8 MiB the new file takes the place of the old one at once, or not at all.
        """
        whole, data = self._path(path), data.encode("utf-8") if isinstance(data, str) else data
        try:
            await self._write(whole, data)
        except FileNotFoundError:
            await self._call("fs/createDirectory", True, path=_uri(posixpath.dirname(whole)), recursive=True)
            await self._write(whole, data)
        return FileInfo(posixpath.basename(whole), whole, "file", len(data))

    async def _write(self, path: str, data: bytes) -> None:
        if len(data) <= WHOLE:
            await self._call("fs/writeFile", True, path=_uri(path), dataBase64=_text(data), atomic=True)
            return
        handle = secrets.token_hex(16)
        await self._call("fs/open", False, handleId=handle, path=_uri(path), mode="replace")
        try:
            for at in range(0, len(data), BLOCK):
                params: protocol.FsWriteBlockParams = {
                    "handleId": handle, "offset": at, "chunk": _text(data[at:at + BLOCK])}
                await self._block("fs/writeBlock", params)
        finally:
            await self._close(handle)

    async def _close(self, handle: str) -> None:
        """Close a handle, also where the task is canceled. It ends with the connection in any case."""
        closing = asyncio.ensure_future(self._closed(handle))
        await asyncio.shield(closing)

    async def _closed(self, handle: str) -> None:
        try:
            await self._perform("fs/close", {"handleId": handle})
        except (RequestError, ConnectionError):
            pass

    async def append(self, path: str, data: Union[str, bytes]) -> None:
        """Write at the end of a file, which is created when it is missing."""
        data = data.encode("utf-8") if isinstance(data, str) else data
        await self._call("fs/append", False, path=_uri(self._path(path)), dataBase64=_text(data))

    async def list(self, path: str = ".") -> List[FileInfo]:
        """Return what is in a directory, by name."""
        whole = self._path(path)
        got: protocol.FsReadDirectoryResult = await self._call("fs/readDirectory", True, path=_uri(whole))
        infos = [FileInfo(e["fileName"], posixpath.join(whole, e["fileName"]), _kind(e)) for e in got["entries"]]
        return sorted(infos, key=lambda i: i.name)

    async def get_info(self, path: str) -> FileInfo:
        """Return what is known of a file or a directory; a link is followed."""
        whole = self._path(path)
        got: protocol.FsGetMetadataResult = await self._call("fs/getMetadata", True, path=_uri(whole))
        return FileInfo(posixpath.basename(whole), whole, _kind(got), got["size"], got["modifiedAtMs"])

    async def exists(self, path: str) -> bool:
        """Report whether there is something at a path."""
        try:
            await self.get_info(path)
        except FileNotFoundError:
            return False
        return True

    async def make_dir(self, path: str) -> bool:
        """Make a directory, and those on the way to it. Report whether it is new."""
        if await self.exists(path):
            return False
        await self._call("fs/createDirectory", True, path=_uri(self._path(path)), recursive=True)
        return True

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file, or a directory that is empty; with `recursive` all that is in it."""
        await self._call("fs/remove", False, path=_uri(self._path(path)), recursive=recursive, force=False)

    async def rename(self, source: str, destination: str, *, replace: bool = False) -> None:
        """Give another name to a file or a directory, on the same file system."""
        await self._call("fs/rename", False, sourcePath=_uri(self._path(source)),
                         destinationPath=_uri(self._path(destination)), replace=replace)


def _sandbox(workspace: str) -> dict[str, Any]:
    """Return the sandbox of requests: all can be read, and the workspace written."""
    def special(kind: str, access: str) -> dict[str, Any]:
        return {"access": access, "path": {"type": "special", "value": {"kind": kind}}}

    return {
        "cwd": _uri(workspace), "workspaceRoots": [_uri(workspace)], "windowsSandboxLevel": "disabled",
        "permissions": {"type": "managed", "network": "restricted", "file_system": {
            "type": "restricted", "entries": [special("root", "read"), special("project_roots", "write")]}},
    }


def _uri(path: str) -> str:
    """Return the URI of an absolute path."""
    try:
        return "file://" + quote(path, safe="/")
    except UnicodeEncodeError as e:
        raise InvalidError(f"the path {path!r} is not UTF-8: {e}") from None


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _kind(entry: Mapping[str, Any]) -> str:
    for member, word in (("isSymlink", "symlink"), ("isDirectory", "dir"), ("isFile", "file")):
        if entry.get(member):
            return word
    return "other"
