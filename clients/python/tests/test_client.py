# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs, waits, terminals and files, with a real server."""

from __future__ import annotations

import asyncio
import builtins
import os
import signal
import subprocess
import sys
import threading
import unittest

import sallyport
from sallyport import AsyncClient, Client, RequestError
from support import Place, Server


class Runs(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.place = Place(self)
        self.client = await AsyncClient.launch(**self.place.launch)
        self.addAsyncCleanup(self.client.close)

    async def test_results(self) -> None:
        for name, command, options, want in (
            ("program", ["printf", "a b"], {}, (0, "exited", "a b", "")),
            ("script", "printf x; printf y >&2; exit 7", {}, (7, "exited", "x", "y")),
            ("script that looks like a flag", "--rw=/ x", {}, (127, "exited", "", None)),
            ("program that looks like a flag", ["sh", "-c", "printf %s \"$1\"", "sh", "--rw=/"], {},
             (0, "exited", "--rw=/", "")),
            ("variable", 'printf %s "$X"', {"env": {"X": "1 =2"}}, (0, "exited", "1 =2", "")),
            ("directory", "pwd", {"cwd": str(self.place.outside)}, (0, "exited", f"{self.place.outside}\n", "")),
            ("flag", "echo x >f", {"flags": ["--sandbox", "read-only"]}, (None, "exited", "", None)),
            ("time limit", ["sleep", "60"], {"timeout": 0.2}, (124, "timed_out", "", "")),
            ("signal", "kill -KILL $$", {}, (137, "signaled", "", "")),
            ("input", ["cat"], {"input": "é\n" * 3}, (0, "exited", "é\n" * 3, "")),
            ("no input", ["cat"], {}, (0, "exited", "", "")),
        ):
            with self.subTest(name):
                r = await self.client.run(command, **options)
                code, end, stdout, stderr = want
                self.assertEqual(r.end, end)
                self.assertEqual(r.stdout, stdout)
                if code is not None:
                    self.assertEqual(r.exit_code, code)
                if stderr is not None:
                    self.assertEqual(r.stderr, stderr)
                self.assertEqual(r.ok, code == 0)
        self.assertEqual(await self.client.list(), [], "runs that ended are forgotten")

    async def test_bytes(self) -> None:
        r = await self.client.run(r"printf 'a\377b'")
        self.assertEqual(r.stdout_data, b"a\xffb")
        big = bytes(range(256)) * 8192  # 2 MiB of input, and more than one message of result
        r = await self.client.run(["wc", "-c"], input=big)
        self.assertEqual(r.stdout.strip(), str(len(big)))

    async def test_callbacks(self) -> None:
        """Text comes as it is written, without broken letters, and the command waits for who takes it."""
        got: list[str] = []
        first = asyncio.Event()

        async def take(text: str) -> None:
            got.append(text)
            first.set()
            await asyncio.sleep(0)

        script = r"printf '\303'; sleep 0.1; printf '\251'; printf e >&2; head -c 3000000 /dev/zero | tr '\0' y"
        r = await self.client.run(script, on_stdout=take)
        self.assertTrue(r.ok)
        self.assertEqual("".join(got), "é" + "y" * 3000000)

    async def test_callback_fails(self) -> None:
        def take(text: str) -> None:
            raise KeyError(text)

        with self.assertRaises(KeyError):
            await self.client.run("echo x; sleep 60", on_stdout=take)
        self.assertEqual(await self.client.list(), [])

    async def test_canceled(self) -> None:
        begun = asyncio.Event()
        task = asyncio.ensure_future(self.client.run("echo begun; exec sleep 60", on_stdout=lambda t: begun.set()))
        await begun.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(await self.client.list(), [])

    async def test_not_run(self) -> None:
        for name, command, flags, end, code in (
            ("not found", ["/no/such/program"], [], "not_found", 127),
            ("needs an approval", ["true"], ["--escalate", "-a", "on-request"], "refused", 123),
        ):
            with self.subTest(name), self.assertRaises(sallyport.NotRunError) as caught:
                await self.client.run(command, flags=flags)
            self.assertEqual((caught.exception.result.end, caught.exception.result.exit_code), (end, code))
            self.assertEqual(caught.exception.refused, end == "refused")

    async def test_invalid(self) -> None:
        with self.assertRaises(RequestError) as caught:
            await self.client.run("true", flags=["--no-such-flag"])
        self.assertEqual((caught.exception.reason, caught.exception.exit_code), ("invalid", 125))
        for name, command, options in (
            ("no program", [], {}), ("name", "true", {"env": {"A=B": "x"}}), ("NUL", "true", {"env": {"A": "\0"}}),
            ("time", "true", {"timeout": -1}), ("not a number", "true", {"timeout": float("nan")}),
            ("surrogate", ["\ud800"], {}), ("option", "true", {"no_such": 1}),
            ("flags in one text", "true", {"flags": "--read-only"}), ("one path", "true", {"ask_for": "/srv"}),
            ("one grant", "true", {"grants": "--rw /x"}), ("long", ["x" * (17 << 20)], {}),
        ):
            with self.subTest(name), self.assertRaises(sallyport.InvalidError):
                await self.client.run(command, **options)

    async def test_output(self) -> None:
        run = await self.client.start("echo one; echo two >&2; read x; echo $x", open_stdin=True)
        chunks = run.output()
        first = await chunks.__anext__()
        self.assertEqual((first.offset, first.stream, first.text), (0, "stdout", "one\n"))
        await run.write("three\n")
        rest = [c async for c in chunks]
        self.assertEqual(b"".join(c.data for c in rest if c.stream == "stdout"), b"three\n")
        self.assertEqual([c.text async for c in run.output(8)], ["three\n"])
        page = await run.read(4)
        self.assertTrue(page.complete)
        self.assertEqual(page.next, 14)

    async def test_reader_leaves(self) -> None:
        """A command that waits for its reader goes on when that stops."""
        run = await self.client.start("head -c 4000000 /dev/zero; echo end >&2", reader=True)
        chunks = run.output()
        await chunks.__anext__()
        reply = await run.wait_for(timeout=0.2)
        self.assertEqual(reply.reason, "deadline", "the command waits")
        await chunks.aclose()
        self.assertTrue((await run.wait(10)).ok)

    async def test_waits(self) -> None:
        run = await self.client.start("echo ready 1; read x; echo ready 2; read y; sleep 60", open_stdin=True)
        r = await run.wait_for(match=r"ready \d", timeout=10)
        self.assertEqual((r.reason, r.after), ("match", 7))
        r = await run.wait_for(input=True, timeout=10)
        self.assertEqual(r.reason, "input_wait")
        assert r.input is not None
        self.assertEqual(r.input.kind, "data")
        await run.write("\n")
        self.assertEqual((await run.wait_for(match=r"ready \d", timeout=10)).after, 15)
        self.assertEqual((await run.wait_for(first_output=True, after=8, timeout=10)).reason, "output")
        self.assertEqual((await run.wait_for(bytes=14, after=0, timeout=10)).reason, "bytes")
        self.assertEqual((await run.wait_for(quiet=0.05, timeout=10)).reason, "idle")
        self.assertEqual((await run.wait_for(timeout=0.05)).reason, "deadline")
        with self.assertRaises(sallyport.WaitTimeoutError) as caught:
            await run.wait(0.05)
        self.assertIsInstance(caught.exception, TimeoutError)
        with self.assertRaises(RequestError) as refused:
            await run.wait_for(match="(")
        self.assertEqual(refused.exception.reason, "invalid")
        both = asyncio.gather(run.wait(), run.wait_for(match="never"))
        self.assertTrue(await run.terminate())
        result, reply = await both
        self.assertEqual((result.end, reply.reason), ("canceled", "exited"))
        self.assertFalse(await run.terminate())

    async def test_terminal(self) -> None:
        script = "stty size; read x; stty size; exec cat"
        run = await self.client.start(["sh", "-c", script], tty=(100, 30), screen=True)
        await run.wait_for(match=r"30 100", timeout=10)
        await run.resize(60, 20)
        await run.write("\n")
        await run.wait_for(match=r"20 60", timeout=10)
        screen = await run.screen()
        self.assertEqual((screen.cols, screen.rows, screen.lines[0]), (60, 20, "30 100"))
        self.assertEqual((await run.wait_for(input=True, timeout=10)).reason, "input_wait")
        await run.signal("INT")
        self.assertEqual((await run.wait(10)).exit_code, 130)
        pipe = await self.client.start(["cat"], open_stdin=True)
        with self.assertRaises(RequestError) as caught:
            await pipe.screen()
        self.assertEqual(caught.exception.reason, "noScreen")
        await pipe.close_stdin()
        with self.assertRaises(RequestError) as caught:
            await pipe.write("x")
        self.assertIn(caught.exception.reason, ("inputClosed", "ended"))
        self.assertTrue((await pipe.wait()).ok)

    async def test_input_full(self) -> None:
        run = await self.client.start(["sleep", "60"], open_stdin=True)
        with self.assertRaises(sallyport.ShortWriteError) as caught:
            await asyncio.gather(*(run.write(b"x" * (1 << 20)) for _ in range(20)))
        self.assertLessEqual(caught.exception.taken, 1 << 20)
        await run.remove()

    async def test_list_and_attach(self) -> None:
        run = await self.client.start(["sh", "-c", "echo here; exec sleep 60"])
        await run.wait_for(first_output=True)
        (info,) = await self.client.list()
        self.assertEqual((info.id, info.running, info.last_line, info.exit_code), (run.id, True, "here", None))
        other = self.client.attach(run.id)
        await other.remove()
        with self.assertRaises(RequestError) as caught:
            await run.wait()
        self.assertEqual(caught.exception.reason, "unknownRun")

    async def test_files(self) -> None:
        files = self.client.files()
        info = await files.write("a dir/é%?#.txt", "text\n")
        self.assertEqual(info.path, str(self.place.workspace / "a dir/é%?#.txt"))
        await files.append("a dir/é%?#.txt", b"more\n")
        self.assertEqual(await files.read("a dir/é%?#.txt"), "text\nmore\n")
        self.assertEqual([(i.name, i.type) for i in await files.list("a dir")], [("é%?#.txt", "file")])
        self.assertTrue(await files.make_dir("d/e"))
        self.assertFalse(await files.make_dir("d/e"))
        await files.rename("a dir/é%?#.txt", "d/e/f")
        self.assertEqual((await files.get_info("d/e/f")).size, 10)
        self.assertFalse(await files.exists("a dir/é%?#.txt"))
        with self.assertRaises(RequestError):
            await files.remove("d")
        await files.remove("d", recursive=True)
        with self.assertRaises(builtins.FileNotFoundError) as caught:
            await files.read("d/e/f")
        self.assertIsInstance(caught.exception, sallyport.FileNotFoundError)
        with self.assertRaises(sallyport.FileNotFoundError):
            await files.remove("d")
        big = bytes(range(256)) * (9 << 12)  # 9 MiB: in parts
        await files.write("big", big)
        self.assertEqual(await files.read("big", "bytes"), big)
        await files.write("empty", b"")
        self.assertEqual(await files.read("empty", "bytes"), b"")

    async def test_files_are_confined(self) -> None:
        """Attack: a path, or a link in the workspace, that leads out. Wall: the sandbox of each request."""
        (self.place.outside / "secret").write_text("old")
        (self.place.workspace / "link").symlink_to(self.place.outside)
        (self.place.workspace / ".git").mkdir()
        files = self.client.files()
        for path in (str(self.place.outside / "secret"), "../outside/secret", "link/secret", "link/new",
                     "new/../../outside/new", ".git/hooks/pre-commit"):
            with self.subTest(path), self.assertRaises(RequestError):
                await files.write(path, "new")
        self.assertEqual((self.place.outside / "secret").read_text(), "old")
        self.assertEqual([p.name for p in self.place.outside.iterdir()], ["secret"])
        await self.client.files(confined=False).write(str(self.place.outside / "secret"), "new")
        self.assertEqual((self.place.outside / "secret").read_text(), "new")

    async def test_named_sandboxes(self) -> None:
        await self.client.run("echo note >/tmp/note", sandbox="web", idle=60)
        self.assertEqual((await self.client.run(["cat", "/tmp/note"], sandbox="web")).stdout, "note\n")
        (box,) = await self.client.list_sandboxes()
        self.assertEqual((box.name, box.workspace, box.network), ("web", str(self.place.workspace), "none"))
        with self.assertRaises(sallyport.NotRunError) as caught:
            await self.client.run("true", sandbox="web", flags=["--rw", str(self.place.outside)])
        self.assertEqual(caught.exception.result.exit_code, 122)
        await self.client.stop_sandbox("web")
        with self.assertRaises(RequestError) as gone:
            await self.client.stop_sandbox("web")
        self.assertEqual(gone.exception.reason, "unknownSandbox")

    async def test_closed(self) -> None:
        begun = asyncio.Event()
        waiting = asyncio.ensure_future(self.client.run("echo begun; exec sleep 60", on_stdout=lambda t: begun.set()))
        await begun.wait()
        await self.client.close()
        await self.client.close()
        with self.assertRaises(sallyport.ClosedError):
            await waiting
        with self.assertRaises(sallyport.ClosedError):
            await self.client.run("true")


class Events(unittest.IsolatedAsyncioTestCase):
    async def test_events(self) -> None:
        place, events = Place(self), []

        def fails(event: sallyport.Event) -> None:
            events.append(event)
            if event.type == "judged":
                raise KeyError("ours")

        with self.assertLogs("sallyport", "ERROR"):
            async with await AsyncClient.launch(**place.launch, on_event=fails) as client:
                run = await client.start("echo x")
                await run.wait()  # what came is delivered
        self.assertEqual({e.run_id for e in events}, {run.id})
        kinds = [e.type for e in events]
        self.assertEqual([k for k in kinds if k != "output"], ["judged", "started", "exited", "ended"])
        self.assertEqual(events[-1].data["exit_code"], 0)


class Blocking(unittest.TestCase):
    def test_same(self) -> None:
        place, threads, events = Place(self), [], []
        with Client.launch(**place.launch, on_event=lambda e: events.append(e.type)) as client:
            got: list[str] = []

            def take(text: str) -> None:  # it may use the client
                got.append(text + client.run("printf z").stdout)
                threads.append(threading.current_thread())

            r = client.run(["cat"], input="abc", on_stdout=take, cwd=str(place.workspace))
            self.assertEqual((r.stdout, "".join(got)), ("abc", "abcz"))
            self.assertNotIn("sallyport", [t.name for t in threads])
            run = client.start("for i in 1 2 3; do echo $i; done; read x", open_stdin=True)
            for chunk in run.output():
                if chunk.text.endswith("3\n"):
                    break
            run.close_stdin()
            self.assertEqual(run.wait(10).exit_code, 1)
            self.assertEqual(repr(run), f"Run('{run.id}')")
            self.assertEqual(client.attach(run.id).result().stdout, "1\n2\n3\n")
            run.remove()
            self.assertEqual(client.list(), [])
            files = client.files()
            files.write("f", "x")
            self.assertEqual((files.read("f"), files.read("f", "bytes"), files.exists("g")), ("x", b"x", False))
            with self.assertRaises(sallyport.NotRunError):
                client.run(["/no/such/program"])
            with self.assertRaises(TypeError):
                client.run("true", on_stdout=asyncio.sleep)
        self.assertIn("ended", events)
        client.close()
        with self.assertRaises(sallyport.ClosedError):
            client.run("true")

    def test_interrupted(self) -> None:
        """Control-C ends the command, and then the program."""
        place = Place(self)
        server = Server(self, place)
        program = "import sys, sallyport\nwith sallyport.Client.connect(sys.argv[1]) as c:\n" \
                  "    c.run('echo begun; exec sleep 60', on_stdout=lambda t: print(t, end='', flush=True))"
        env = {**place.env, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with subprocess.Popen([sys.executable, "-c", program, server.url], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), "begun\n")
            process.send_signal(signal.SIGINT)
            self.assertIn("KeyboardInterrupt", process.communicate(timeout=30)[1])
        with Client.connect(server.url) as client:
            self.assertEqual(client.list(), [])

    def test_threads(self) -> None:
        """A client is for several threads at once."""
        place, results = Place(self), []
        with Client.launch(**place.launch) as client:
            threads = [threading.Thread(target=lambda i=i: results.append(client.run(["echo", str(i)]).stdout.strip()))
                       for i in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(sorted(results), [str(i) for i in range(6)])


if __name__ == "__main__":
    unittest.main()
