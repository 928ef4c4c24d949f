# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
"""The first minutes: python3 first.py DIRECTORY"""

import os
import sys

from sallyport import Client, Question

top = sys.argv[1]
os.makedirs(f"{top}/project", exist_ok=True)
os.makedirs(f"{top}/results", exist_ok=True)


def decide(question: Question) -> str:
    print("question:", question.kind, question.requires, "offers", question.decisions)
    return "denied"


with Client.launch(os.environ.get("SALLYPORT_BINARY", "sallyport"), cwd=f"{top}/project", on_approval=decide) as client:
    result = client.run("seq 3 | tee numbers", on_stdout=lambda text: print("output:", text.split()))
    print("exit code:", result.exit_code)

    command = ["cp", "numbers", f"{top}/results/numbers"]
    result = client.run(command)
    print("exit code:", result.exit_code, "denied:", [(d.op, d.path) for d in result.denials])
    print("grants:", result.grants)
    result = client.run(command, grants=result.grants)
    print("exit code:", result.exit_code)

    run = client.start(["sh", "-c", "printf 'name? '; read name; echo hello $name"], tty=True, screen=True)
    print("waits for input:", run.wait_for(input=True, timeout=30).reason)
    run.write("Ada\n")
    run.wait(timeout=30)
    print("screen:", run.screen().lines[:2])
    run.remove()
