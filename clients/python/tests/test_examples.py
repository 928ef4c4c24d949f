# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""The examples print what the README says."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import Place

HERE = Path(__file__).resolve().parent.parent


class Examples(unittest.TestCase):
    def run_example(self, name: str) -> None:
        place = Place(self)
        with tempfile.TemporaryDirectory(prefix="x-py-", dir="/var/tmp") as top:
            env = {**place.env, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            done = subprocess.run([sys.executable, str(HERE / "examples" / f"{name}.py"), top], env={
                **env, "SALLYPORT_BINARY": place.launch["program"]}, capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            printed = done.stdout.replace(top, "/srv/demo")
        shown = (HERE / "README.md").read_text().split(f"$ python3 examples/{name}.py /srv/demo\n")[1].split("```")[0]
        self.assertEqual(printed, shown)

    def test_first(self) -> None:
        self.run_example("first")
        source = (HERE / "examples" / "first.py").read_text().split("\n", 2)[2]
        shown = (HERE / "README.md").read_text().split("```python\n")[1].split("```")[0]
        self.assertEqual(source.strip(), shown.strip())

    def test_agent(self) -> None:
        self.run_example("agent")


if __name__ == "__main__":
    unittest.main()
