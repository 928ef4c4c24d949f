# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""Questions, denials and grants, with a real server."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any, Callable

import sallyport
from sallyport import Answer, AsyncClient, Client, NotRunError, Question
from support import Place, Server


class Approvals(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.place = Place(self)
        self.questions: list[Question] = []

    async def launch(self, decide: Callable[[Question], Any]) -> AsyncClient:
        def asked(question: Question) -> Any:
            self.questions.append(question)
            return decide(question)

        client = await AsyncClient.launch(**self.place.launch, on_approval=asked)
        self.addAsyncCleanup(client.close)
        return client

    async def test_denied_then_granted(self) -> None:
        """A denial has the grant that allows it, and the command is run again with it."""
        client = await self.launch(lambda q: "denied")
        command = f"echo x >{self.place.outside}/f"
        (self.place.outside / "f").touch()
        first = await client.run(command)
        self.assertFalse(first.ok)
        (denial,) = first.denials
        self.assertEqual((denial.op, denial.path, denial.fact), ("write", f"{self.place.outside}/f", True))
        self.assertEqual(first.grants, [f"--rw {self.place.outside}/f"])
        self.assertEqual([a["decision"] for a in first.approvals], ["denied"])
        (question,) = self.questions
        self.assertEqual((question.kind, question.requires, question.runs),
                         ("access", [f"write:{self.place.outside}/f"], 1))
        self.assertEqual(question.denials[0].grant, denial.grant)
        self.assertIn("approved", question.decisions)
        self.assertTrue((await client.run(command, grants=first.grants)).ok)
        self.assertEqual(len(self.questions), 1, "what was granted is not asked about")

    async def test_approved(self) -> None:
        client = await self.launch(lambda q: Answer("approved", "go on"))
        r = await client.run(f"echo said; mkdir {self.place.outside}/d")
        self.assertTrue(r.ok)
        self.assertEqual((r.attempts, r.stdout), (2, "said\n"))
        assert r.first is not None
        self.assertEqual((r.first.stdout, r.first.denials[0].op), ("said\n", "write"))
        self.assertEqual(r.approvals[0].get("message"), "go on")

    async def test_asked_before(self) -> None:
        client = await self.launch(lambda q: "approved")
        r = await client.run(f"echo x >{self.place.outside}/f", ask_for=[str(self.place.outside)],
                             justification="the result goes there")
        self.assertTrue(r.ok)
        (question,) = self.questions
        self.assertEqual((question.kind, question.requires, question.justification),
                         ("command", [f"write:{self.place.outside}"], "the result goes there"))

    async def test_what_denies(self) -> None:
        async def late(question: Question) -> str:
            await asyncio.sleep(0)
            return "denied"

        def fails(question: Question) -> str:
            raise KeyError("ours")

        for name, decide, log in (
            ("denied", lambda q: "denied", False), ("abort", lambda q: "abort", False), ("coroutine", late, False),
            ("not offered", lambda q: "approved_for_ever", True), ("of another kind", lambda q: 1, True),
            ("error", fails, True), ("nothing", lambda q: None, False), ("yes", lambda q: True, True),
        ):
            with self.subTest(name):
                client = await self.launch(decide)
                with self.assertRaises(NotRunError) as caught:
                    if log:
                        with self.assertLogs("sallyport", "ERROR"):
                            await client.run("true", escalate=True)
                    else:
                        await client.run("true", escalate=True)
                self.assertTrue(caught.exception.refused)
                self.assertEqual(caught.exception.result.exit_code, 123)
                await client.close()

    async def test_nobody_is_asked(self) -> None:
        client = await AsyncClient.launch(**self.place.launch)
        self.addAsyncCleanup(client.close)
        with self.assertRaises(NotRunError) as caught:
            await client.run("true", escalate=True)
        self.assertTrue(caught.exception.forbidden)

    async def test_withdrawn(self) -> None:
        """A start that is canceled withdraws its question, and nothing runs."""
        asked, withdrawn = asyncio.Event(), asyncio.Event()

        async def decide(question: Question) -> str:
            asked.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                withdrawn.set()
                raise
            return "approved"

        client = await self.launch(decide)
        task = asyncio.ensure_future(client.start("true", escalate=True))
        await asked.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(withdrawn.wait(), 10)
        self.assertEqual(await client.list(), [])

    async def test_answered_by_another(self) -> None:
        """The first answer counts, and the other client learns that its question is over."""
        server = Server(self, self.place)
        asked, over = asyncio.Event(), asyncio.Event()

        async def never(question: Question) -> str:
            asked.set()
            try:
                await asyncio.sleep(60)
            finally:
                over.set()
            return "denied"

        async with await AsyncClient.connect(server.url, on_approval=never) as one, \
                await AsyncClient.connect(server.url) as two:
            task = asyncio.ensure_future(one.run("echo ran", ask_for=[str(self.place.outside)]))
            await asked.wait()
            (question,) = await two.questions()
            self.assertTrue(question.digest)
            with self.assertRaises(sallyport.RequestError) as caught:
                await two.answer(question, "network_policy_amendment")
            self.assertEqual(caught.exception.reason, "notOffered")
            await two.answer(question, "approved")
            self.assertEqual((await task).stdout, "ran\n")
            await asyncio.wait_for(over.wait(), 10)
            with self.assertRaises(sallyport.RequestError) as caught:
                await two.answer(question, "denied")
            self.assertEqual(caught.exception.reason, "unknownQuestion")


class Blocking(unittest.TestCase):
    def test_function_uses_client(self) -> None:
        """A function that answers may block, and use the client that asks it."""
        place = Place(self)

        def decide(question: Question) -> str:
            return "approved" if client.run("echo yes").stdout == "yes\n" else "denied"

        with Client.launch(**place.launch, on_approval=decide) as client:
            self.assertTrue(client.run("true", ask_for=[str(place.outside)]).ok)


if __name__ == "__main__":
    unittest.main()
