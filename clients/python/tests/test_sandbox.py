# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of E2B and Modal, with a real server."""

from __future__ import annotations

import unittest

import sallyport
from sallyport import AsyncSandbox, Client, CommandExitError, Sandbox
from support import Place, Server


class Blocking(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Place(self)
        self.client = Client.launch(**self.place.launch)
        self.addCleanup(self.client.close)

    def test_commands(self) -> None:
        with Sandbox.create(client=self.client, envs={"A": "1", "B": "2"}) as sandbox:
            self.assertFalse(sandbox.is_running())
            got: list[str] = []
            r = sandbox.commands.run("echo $A $B; echo x >/tmp/shared; cat", envs={"B": "3"}, stdin="in",
                                     on_stdout=got.append)
            self.assertEqual((r.stdout, "".join(got)), ("1 3\nin", "1 3\nin"))
            self.assertTrue(sandbox.is_running())
            self.assertEqual(sandbox.commands.run(["cat", "/tmp/shared"]).stdout, "x\n")
            with self.assertRaises(CommandExitError) as caught:
                sandbox.commands.run("echo out; echo err >&2; exit 4")
            e = caught.exception
            self.assertEqual((e.exit_code, e.stdout, e.stderr), (4, "out\n", "err\n"))
            with self.assertRaises(CommandExitError) as caught:
                sandbox.commands.run("sleep 60", timeout=0.2)
            self.assertEqual(caught.exception.result.end, "timed_out")
            sandbox.files.write("a b/c", "x")
            for name, cmd in (("script", "pwd; cat <<E\nhere\nE"),
                              ("list", ["sh", "-c", "pwd; echo \"$1\"", "sh", "here"])):
                with self.subTest(name):
                    self.assertEqual(sandbox.commands.run(cmd, cwd="a b").stdout, f"{self.place.workspace}/a b\nhere\n")
            with self.assertRaises(CommandExitError):
                sandbox.commands.run("true", cwd="no such directory")
        self.assertEqual(self.client.list_sandboxes(), [])
        self.assertTrue(self.client.run("true").ok, "the client is the caller's")

    def test_background(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            handle = sandbox.commands.run("read x; echo got $x; exit 3", background=True)
            self.assertIn(handle.pid, [i.id for i in sandbox.commands.list()])
            sandbox.commands.send_stdin(handle.pid, "it\n")
            got: list[str] = []
            with self.assertRaises(CommandExitError) as caught:
                sandbox.commands.connect(handle.pid).wait(on_stdout=got.append)
            self.assertEqual((caught.exception.exit_code, got), (3, ["got it\n"]))
            handle = sandbox.commands.run("sleep 60", background=True)
            self.assertTrue(sandbox.commands.kill(handle.pid))
            self.assertFalse(handle.kill())
            self.assertFalse(sandbox.commands.kill("12345"))
            with self.assertRaises(sallyport.InvalidError):
                sandbox.commands.run("true", background=True, on_stdout=print)  # type: ignore[call-overload]

    def test_exec(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            p = sandbox.exec("sh", "-c", "read x; echo got $x; echo two; echo err >&2; exit 2")
            self.assertEqual((p.poll(), p.returncode), (None, None))
            p.write(b"it\n")
            p.write_eof()
            self.assertEqual(list(p.stdout), ["got it\n", "two\n"])
            self.assertEqual((p.stderr.read(), p.wait(), p.returncode, p.poll()), ("err\n", 2, 2, 2))
            for line in sandbox.exec("sh", "-c", "echo first; sleep 60").stdout:
                self.assertEqual(line, "first\n")
                break

    def test_apart(self) -> None:
        """A command with a grant has a sandbox of its own, and the shared one has not more than before."""
        with Sandbox.create(client=self.client) as sandbox:
            sandbox.commands.run("true")
            cmd = f"echo x >{self.place.outside}/f"
            (self.place.outside / "f").touch()
            with self.assertRaises(CommandExitError) as caught:
                sandbox.commands.run(cmd)
            grants = caught.exception.result.grants
            self.assertTrue(sandbox.commands.run(cmd, grants=grants).ok)
            with self.assertRaises(CommandExitError):
                sandbox.commands.run(cmd)

    def test_by_url(self) -> None:
        server = Server(self, self.place)
        with Sandbox.create(url=server.url, name="one") as first, Sandbox.create(url=server.url, name="one") as second:
            first.commands.run("echo x >/tmp/shared")
            self.assertEqual(second.commands.run("cat /tmp/shared").stdout, "x\n")
            self.assertTrue(second.kill())
            self.assertFalse(first.is_running())
        self.assertFalse(first.kill())

    def test_invalid(self) -> None:
        with self.assertRaises(sallyport.InvalidError):
            Sandbox.create(client=self.client, token="x")
        with self.assertRaises(sallyport.ConnectionError):
            Sandbox.create(program="/no/such/program")


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_same(self) -> None:
        place = Place(self)
        server = Server(self, place)
        async with await AsyncSandbox.create(url=server.url) as sandbox:
            await sandbox.files.write("f", "text")
            self.assertEqual((await sandbox.commands.run("cat f")).stdout, "text")
            handle = await sandbox.commands.run("python3 -m http.server 8000", background=True, timeout=0)
            self.assertEqual((await handle.wait_for(port=True, timeout=30)).port, 8000)
            process = await sandbox.exec("cat", workdir=".")
            await process.write("a\nb")
            await process.write_eof()
            self.assertEqual([line async for line in process.stdout], ["a\n", "b"])
            self.assertEqual(await process.wait(), 0)


if __name__ == "__main__":
    unittest.main()
