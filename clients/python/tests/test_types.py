# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""The types are those of the schema of the protocol."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import sallyport
from sallyport import values

HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parents[2] / "docs" / "protocol.schema.json"

# The data classes, and the definitions that they are views of.
VIEWS = {
    "Denial": "Denial", "Attempt": "First", "Result": "Result", "Chunk": "RunChunk", "Page": "run/read result",
    "InputWait": "InputWait", "Reply": "run/wait result", "Screen": "run/screen result", "RunInfo": "ListedRun",
    "SandboxInfo": "ListedSandbox", "Question": "ApprovalRequest", "Stage": "Staged",
}
# Fields that are not members, or have another name and form.
OWN = {"raw", "elapsed", "run_id", "digest", "withdrawn"}


class Types(unittest.TestCase):
    def setUp(self) -> None:
        if not SCHEMA.exists():
            self.skipTest("the schema is in a checkout only")
        self.defs: dict[str, Any] = json.loads(SCHEMA.read_text())["$defs"]

    def test_generated(self) -> None:
        tool = HERE.parent / "tools" / "generate.py"
        done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_views(self) -> None:
        for name, definition in VIEWS.items():
            with self.subTest(name):
                schema = self.defs[definition]
                fields = {f.metadata.get("wire", f.name): f for f in dataclasses.fields(getattr(values, name))
                          if f.name not in OWN}
                self.assertEqual(set(fields) - set(schema["properties"]), set(), "fields that the schema lacks")
                for member, field in fields.items():
                    made = field.name in ("denials", "approvals", "error", "first", "changes")
                    if field.default is dataclasses.MISSING and not made:
                        self.assertIn(member, schema["required"], "a field without a default")

    def test_names(self) -> None:
        for name in sallyport.__all__:
            self.assertTrue(hasattr(sallyport, name), name)

    def test_options_are_parameters(self) -> None:
        members = set(self.defs["run/start params"]["properties"])
        self.assertLessEqual({"args", "startId", "events", "screen", "openStdin", "reader", "cwd", "tty", "sandbox"},
                             members)

    def test_blocking_has_all(self) -> None:
        for plain in ("Client", "Run", "Files", "Sandbox", "Commands", "CommandHandle", "Process"):
            other = getattr(sallyport, "Async" + plain)
            here = {n for n in dir(getattr(sallyport, plain)) if not n.startswith("_")}
            there = {n for n in dir(other) if not n.startswith("_")}
            self.assertEqual(there - here - {"waits_for_reader"}, set(), plain)


if __name__ == "__main__":
    unittest.main()
