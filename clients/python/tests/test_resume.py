# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Connections that are cut, at a real server."""

from __future__ import annotations

import asyncio
import unittest

import sallyport
from sallyport import AsyncClient
from support import Place, Server, Way


class Resume(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.place = Place(self)
        self.server = Server(self, self.place)
        self.way = await Way(self.server.url).__aenter__()
        self.addAsyncCleanup(self.way.__aexit__)

    async def connect(self, **options: object) -> AsyncClient:
        client = await AsyncClient.connect(self.way.url, **options)  # type: ignore[arg-type]
        self.addAsyncCleanup(client.close)
        return client

    async def test_wait_goes_on(self) -> None:
        client = await self.connect()
        session = client.session_id
        run = await client.start("read x; echo got $x", open_stdin=True)
        task = asyncio.ensure_future(run.wait())
        await asyncio.sleep(0)
        self.way.cut()
        await run.write("it\n")
        self.assertEqual((await task).stdout, "got it\n")
        self.assertEqual((client.session_id, self.way.connections), (session, 2))

    async def test_output_once(self) -> None:
        """However often the connection is cut, each byte of the output comes once and in order."""
        client = await self.connect()
        run = await client.start("seq 1 60000", reader=True)
        got = b""
        self.way.limit = 20000
        async for chunk in run.output():
            self.assertEqual((chunk.offset, chunk.missing), (len(got), 0))
            got += chunk.data
            if self.way.connections < 6:
                self.way.limit = 30000
        self.assertEqual(got, "".join(f"{i}\n" for i in range(1, 60001)).encode())
        self.assertGreaterEqual(self.way.connections, 2)

    async def test_start_once(self) -> None:
        """A start whose answer is lost runs the command once, at whatever byte the connection is cut."""
        client = await self.connect()
        for at in (1, 30, 60):
            with self.subTest(at):
                mark = self.place.workspace / f"mark{at}"
                self.way.limit = at
                r = await client.run(["sh", "-c", f"echo x >>{mark}"])
                self.assertTrue(r.ok)
                self.assertEqual(mark.read_text(), "x\n")

    async def test_input_once(self) -> None:
        client = await self.connect()
        run = await client.start(["cat"], open_stdin=True)
        for i in range(5):
            self.way.limit = 1 + 7 * i  # within the answer
            await run.write(f"{i}\n")
        await run.close_stdin()
        self.assertEqual((await run.wait()).stdout, "0\n1\n2\n3\n4\n")

    async def test_question_is_lost(self) -> None:
        """A question ends with its connection; after that the start is sent again, and it is asked again."""
        asked: list[sallyport.Question] = []
        first = asyncio.Event()

        async def decide(question: sallyport.Question) -> str:
            asked.append(question)
            if len(asked) == 1:
                first.set()
                await asyncio.sleep(60)
            return "denied"

        client = await self.connect(on_approval=decide)
        task = asyncio.ensure_future(client.run("touch ran", ask_for=[str(self.place.outside)]))
        await first.wait()
        self.way.cut()
        with self.assertRaises(sallyport.NotRunError) as caught:
            await task
        self.assertTrue(caught.exception.refused)
        self.assertEqual(len(asked), 2)
        self.assertTrue(asked[0].withdrawn.is_set())
        self.assertFalse((self.place.workspace / "ran").exists())

    async def test_files(self) -> None:
        """A file is read, and written at once, also when the connection is cut meanwhile; one in parts says so."""
        client = await self.connect()
        files = client.files()
        data = bytes(range(256)) * (3 << 12)
        self.way.limit = 5
        await files.write("f", data)
        self.way.limit = 1500000
        self.assertEqual(await files.read("f", "bytes"), data)
        self.assertGreaterEqual(self.way.connections, 3)
        self.way.limit = 50
        with self.assertRaises(sallyport.ConnectionError) as caught:
            await files.write("big", data * 3)
        self.assertTrue(caught.exception.sent)

    async def test_not_repeated(self) -> None:
        """What must not be done twice says that it may have been done."""
        client = await self.connect()
        run = await client.start(["cat"], open_stdin=True)
        self.way.limit = 1
        with self.assertRaises(sallyport.ConnectionError) as caught:
            await run.signal("TERM")
        self.assertTrue(caught.exception.sent)
        self.assertEqual((await run.wait(10)).exit_code, 143)

    async def test_no_server_any_more(self) -> None:
        client = await self.connect(resume=0.3)
        begun = asyncio.Event()
        task = asyncio.ensure_future(client.run("echo begun; exec sleep 60", on_stdout=lambda t: begun.set()))
        await begun.wait()
        self.way.closed = True
        self.way.cut()
        with self.assertRaises(sallyport.ConnectionError) as caught:
            await task
        self.assertIn("not resumed within 0.3 s", str(caught.exception))
        with self.assertRaises(sallyport.ConnectionError):
            await client.run("true")

    async def test_another_server(self) -> None:
        """A server that does not know the session ends it, at once."""
        client = await self.connect()
        begun = asyncio.Event()
        task = asyncio.ensure_future(client.run("echo begun; exec sleep 60", on_stdout=lambda t: begun.set()))
        await begun.wait()
        self.way.lead(Server(self, Place(self)).url)
        self.way.cut()
        with self.assertRaises(sallyport.ConnectionError) as caught:
            await task
        self.assertIn("the session cannot be resumed", str(caught.exception))

    async def test_not_at_all(self) -> None:
        client = await self.connect(resume=0)
        self.way.cut()
        with self.assertRaises(sallyport.ConnectionError):
            await client.run("true")

    async def test_another_client_finds_the_run(self) -> None:
        client = await self.connect()
        run = await client.start("read x; echo $x", open_stdin=True)
        await client.close()
        other = await self.connect()
        found = other.attach(run.id)
        await found.write("y\n")
        self.assertEqual((await found.wait()).stdout, "y\n")


if __name__ == "__main__":
    unittest.main()
