# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to a server: tokens, sockets, TLS, and servers that are none."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import ssl
import subprocess
import sys
import unittest
from typing import Any, Callable
from unittest import mock

import sallyport
from sallyport import AsyncClient, _connection
from support import Fake, Place, Server, need_binary


class Servers(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.place = Place(self)

    async def works(self, url: str, **options: Any) -> None:
        async with await AsyncClient.connect(url, **options) as client:
            self.assertEqual((await client.run(["echo", "works"])).stdout, "works\n")

    async def test_token(self) -> None:
        token = self.place.top / "token"
        token.write_text("s3cret-s3cret-s3cret-s3cret-s3cret\n")
        token.chmod(0o600)
        server = Server(self, self.place, "--ws-auth", "capability-token", "--ws-token-file", str(token))
        await self.works(server.url, token=token.read_text().strip())
        for wrong in (None, "wrong"):
            with self.assertRaises(sallyport.StatusError) as caught:
                await AsyncClient.connect(server.url, token=wrong)
            self.assertEqual(caught.exception.status, 401)
            self.assertIn("set the token", str(caught.exception))

    async def test_unix(self) -> None:
        path = self.place.top / "a socket"
        Server(self, self.place, listen=f"unix://{path}")
        await self.works(f"unix://{path}")

    async def test_tls(self) -> None:
        if shutil.which("openssl") is None:
            self.skipTest("there is no openssl to make a certificate")
        cert, key = self.place.top / "cert.pem", self.place.top / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
        server = Server(self, self.place, "--tls-cert", str(cert), "--tls-key", str(key), listen="wss://127.0.0.1:0")
        await self.works(server.url, ssl=ssl.create_default_context(cafile=str(cert)))
        with self.assertRaises(sallyport.ConnectionError) as caught:
            await AsyncClient.connect(server.url)
        self.assertIn("CERTIFICATE_VERIFY_FAILED", str(caught.exception))

    async def test_urls(self) -> None:
        for url in ("", "http://h", "ws://", "unix://host/path", "unix:relative", "ws://user:pw@h", "ws://h:x", "h:1"):
            with self.subTest(url), self.assertRaises(sallyport.InvalidError) as caught:
                await AsyncClient.connect(url)
            self.assertNotIn("pw", str(caught.exception))
        with self.assertRaises(sallyport.InvalidError):
            await AsyncClient.connect("ws://h", token="a\r\nX: b")
        with self.assertRaises(sallyport.ConnectionError):
            await AsyncClient.connect(f"unix://{self.place.top}/none")

    async def test_launch_fails(self) -> None:
        with self.assertRaises(sallyport.ConnectionError):
            await AsyncClient.launch("/no/such/program")
        with self.assertRaises(sallyport.ConnectionError) as caught:
            await AsyncClient.launch(**self.place.launch, args=["--no-such-flag"])
        self.assertIn("--no-such-flag", str(caught.exception))

    async def test_launched_server_dies(self) -> None:
        """Its runs end with it, and calls are told."""
        client = await AsyncClient.launch(**self.place.launch)
        run = await client.start("exec sleep 60")
        task = asyncio.ensure_future(run.wait())
        await asyncio.sleep(0)
        transport: Any = client._connection._transport
        transport._process.kill()
        with self.assertRaises(sallyport.ConnectionError) as caught:
            await task
        self.assertIn("the server has ended", str(caught.exception))
        await client.close()


    async def test_program_is_killed(self) -> None:
        """A server that was started ends with this program, however that ends, and so do its runs."""
        program = "import os, sys, sallyport\nc = sallyport.Client.launch(sys.argv[1])\n" \
                  "c.start('exec sleep 60')\nprint(c._inner._connection._transport._process.pid, flush=True)\n" \
                  "sys.stdin.read()"
        env = {**self.place.env, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with subprocess.Popen([sys.executable, "-c", program, need_binary()], env=env, cwd=self.place.workspace,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            server = os.pidfd_open(int(process.stdout.readline()))
            try:
                process.kill()
                self.assertEqual(select.select([server], [], [], 30)[0], [server], "the server has ended")
            finally:
                os.close(server)


class OtherServers(unittest.IsolatedAsyncioTestCase):
    async def serve(self, answer: Callable[[bytes], bytes]) -> str:
        """Serve one answer for each connection."""
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer(self.heads[-1]))
            await writer.drain()
            writer.close()

        self.heads: list[bytes] = []
        server = await asyncio.start_server(one, "127.0.0.1", 0)
        self.addCleanup(server.close)
        return "ws://127.0.0.1:%d" % server.sockets[0].getsockname()[1]

    async def test_redirect(self) -> None:
        """Attack: a server that leads to another one, for its token. Wall: no redirect is followed."""
        other = await self.serve(lambda head: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        others = self.heads
        first = await self.serve(lambda head: (
            f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {other}/\r\nContent-Length: 0\r\n\r\n".encode()))
        with self.assertRaises(sallyport.StatusError) as caught:
            await AsyncClient.connect(first, token="t0ken")
        self.assertEqual(caught.exception.status, 307)
        self.assertIn(b"Authorization: Bearer t0ken\r\n", self.heads[0])
        self.assertEqual(others, [])

    async def test_proxy(self) -> None:
        """Attack: a proxy of the environment, which would read the token. Wall: no proxy is used."""
        proxy = await self.serve(lambda head: b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        seen = self.heads
        server = await self.serve(lambda head: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        url = proxy.replace("ws:", "http:")
        with mock.patch.dict("os.environ", {"http_proxy": url, "ws_proxy": url, "all_proxy": url, "no_proxy": ""}):
            with self.assertRaises(sallyport.StatusError):
                await AsyncClient.connect(server, token="t0ken")
        self.assertEqual(seen, [])

    async def test_no_web_socket(self) -> None:
        for name, answer, error in (
            ("not HTTP", b"SSH-2.0-OpenSSH_9\r\n\r\n", sallyport.ProtocolError),
            ("wrong key", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          b"Sec-WebSocket-Accept: x\r\n\r\n", sallyport.ProtocolError),
            ("nothing", b"", sallyport.ConnectionError),
            ("error", b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nfull", sallyport.StatusError),
        ):
            with self.subTest(name):
                url = await self.serve(lambda head, answer=answer: answer)
                with self.assertRaises(error):
                    await AsyncClient.connect(url)

    async def test_silent(self) -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1024):
                pass
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        self.addCleanup(server.close)
        with mock.patch.object(_connection, "HANDSHAKE_TIME", 0.2):
            with self.assertRaises(sallyport.ConnectionError) as caught:
                await AsyncClient.connect("ws://127.0.0.1:%d" % server.sockets[0].getsockname()[1])
        self.assertIn("did not answer", str(caught.exception))


class FakeServer(unittest.IsolatedAsyncioTestCase):
    """What a real server does not say."""

    async def open(self, **options: Any) -> AsyncClient:
        self.fake = fake = Fake(options.pop("capabilities", None))

        async def dial() -> Any:
            return fake

        opening = asyncio.ensure_future(AsyncClient._open(
            dial, options.get("on_approval"), options.get("on_event"), 0, "tests"))
        hello = await self.heard()
        self.assertEqual(hello["method"], "initialize")
        self.assertEqual(hello["params"]["approvals"], "on_approval" in options)
        self.say({"id": hello["id"], "result": {"sessionId": "s", "later": 1, "environmentInfo": {
            "capabilities": fake.capabilities, "later": [2]}}})
        client = await opening
        self.addAsyncCleanup(client.close)
        self.assertEqual(await self.heard(), {"method": "initialized", "params": {}})
        return client

    def say(self, message: Any) -> None:
        self.fake.says.put_nowait(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def heard(self) -> Any:
        return json.loads(await asyncio.wait_for(self.fake.told.get(), 10))

    async def test_no_runs(self) -> None:
        with self.assertRaises(sallyport.UnsupportedError):
            await self.open(capabilities={})

    async def test_unknown_members(self) -> None:
        client = await self.open()
        task = asyncio.ensure_future(client.attach("1").read())
        request = await self.heard()
        self.say({"method": "later/notification", "params": []})
        self.say({"method": "request/cancel", "params": {"id": []}})
        self.say({"method": "request/cancel", "params": {"id": "unknown"}})
        self.say({"id": 12345, "result": {}})
        self.say({"id": request["id"], "later": 1, "result": {"later": 1, "next": 1, "complete": True, "chunks": [
            {"offset": 0, "stream": "later", "chunk": "YQ==", "later": {}}]}})
        page = await task
        self.assertEqual((page.chunks[0].stream, page.chunks[0].data), ("later", b"a"))

    async def test_unknown_events(self) -> None:
        events: asyncio.Queue[sallyport.Event] = asyncio.Queue()
        await self.open(on_event=events.put_nowait)
        self.say({"method": "run/event", "params": {"runId": "7", "event": {"v": 9, "type": "later", "x": 1}}})
        self.assertEqual(await events.get(), sallyport.Event("7", "later", {"v": 9, "type": "later", "x": 1}))

    async def test_requests_of_the_server(self) -> None:
        await self.open(on_approval=lambda q: "approved")
        for request, code in ((("later/request", {}), -32601), (("run/approve", {}), -32602),
                              (("run/approve", {"request": {"id": "1"}}), -32603)):
            with self.subTest(request):
                self.say({"id": 1, "method": request[0], "params": request[1]})
                self.assertEqual((await self.heard())["error"]["code"], code)

    async def test_too_many_questions(self) -> None:
        async def never(question: Any) -> str:
            await asyncio.sleep(60)
            return "approved"

        await self.open(on_approval=never)
        request = {"id": "q", "kind": "command", "argv": [], "cwd": "/", "reason": "", "justification": "",
                   "requires": [], "denials": [], "offers": [], "available_decisions": [], "runs": 0}
        for number in range(65):
            self.say({"id": number, "method": "run/approve", "params": {"runId": "1", "request": request}})
        self.assertEqual((await self.heard()), {"id": 64, "error": {
            "code": -32603, "message": "too many requests at once"}})
        self.say({"method": "request/cancel", "params": {"id": 3}})
        self.assertEqual((await self.heard())["error"]["code"], -32800)

    async def test_start_that_came_too_late(self) -> None:
        """A command that has started although its start was withdrawn is ended."""
        client = await self.open()
        task = asyncio.ensure_future(client.start("true"))
        start = await self.heard()
        task.cancel()
        self.assertEqual(await self.heard(), {"method": "request/cancel", "params": {"id": start["id"]}})
        self.say({"id": start["id"], "result": {"runId": "9", "started": True}})
        remove = await self.heard()
        self.assertEqual((remove["method"], remove["params"]), ("run/remove", {"runId": "9"}))
        self.say({"id": remove["id"], "result": {}})
        with self.assertRaises(asyncio.CancelledError):
            await task

    async def test_malformed(self) -> None:
        for name, message in (
            ("no JSON", b"{"), ("not UTF-8", b'{"id":"\xff"}'), ("no message", b"[]"),
            ("levels", b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}"),
            ("id of a request", b'{"id":[],"method":"run/approve"}'), ("id of an answer", b'{"id":{},"result":{}}'),
            ("not understood", b'{"id":-1,"error":{"code":-32600,"message":"?"}}'),
        ):
            with self.subTest(name):
                client = await self.open()
                task = asyncio.ensure_future(client.run("true"))
                await self.heard()
                self.say(message)
                with self.assertRaises(sallyport.ProtocolError):
                    await task

    async def test_answers_that_lack_members(self) -> None:
        client = await self.open()
        for name, result in (("chunk", {"chunks": [{"chunk": "YQ=="}], "next": 1, "complete": True}),
                             ("base64", {"chunks": [{"offset": 0, "stream": "stdout", "chunk": "?"}], "next": 1,
                                         "complete": True}),
                             ("all", {}), ("null", None), ("list", [])):
            with self.subTest(name):
                task = asyncio.ensure_future(client.attach("1").read())
                self.say({"id": (await self.heard())["id"], "result": result})
                with self.assertRaises(sallyport.ProtocolError):
                    await task


if __name__ == "__main__":
    need_binary()
    unittest.main()
