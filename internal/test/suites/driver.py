# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
#
# driver.py MODULE FILE [RESOURCE...] runs one of CPython's test modules as "python3 -m test -u"
# does, and writes one line for each test as it ends.
import importlib
import json
import os
import sys
import unittest


class Lines(unittest.TestResult):
    """A result that writes each test down at once: a crash loses nothing."""

    def __init__(self, file):
        super().__init__()
        self.fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.owner = os.getpid()

    def put(self, test, state, reason=""):
        if os.getpid() == self.owner:  # a child that a test forked has nothing to say
            line = json.dumps({"test": test.id(), "state": state, "reason": reason})
            os.write(self.fd, line.encode() + b"\n")

    @staticmethod
    def last(err):
        return f"{err[0].__name__}: {err[1]}"

    def addSuccess(self, test):
        self.put(test, "pass")

    def addExpectedFailure(self, test, err):
        self.put(test, "pass")

    def addUnexpectedSuccess(self, test):
        self.put(test, "fail", "unexpected success")

    def addSkip(self, test, reason):
        self.put(test, "skip", reason)

    def addError(self, test, err):
        self.put(test, "fail", self.last(err))

    def addFailure(self, test, err):
        self.put(test, "fail", self.last(err))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.put(test, "fail", self.last(err))


def main():
    from test import support
    from test.support import os_helper

    support.use_resources = sys.argv[3:]
    support.verbose = 0
    result = Lines(sys.argv[2])
    with os_helper.temp_cwd(f"suites-{os.getpid()}", quiet=True):
        module = importlib.import_module("test." + sys.argv[1])
        unittest.defaultTestLoader.loadTestsFromModule(module).run(result)


if __name__ == "__main__":  # the children of multiprocessing import this file
    main()
