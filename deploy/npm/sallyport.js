#!/usr/bin/env node
// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Starts the program where npm has run no script of the package (install.js). The program gets the arguments,
// the descriptors and the signals of this process, which ends as it does.
"use strict";

const { spawn } = require("child_process");
const os = require("os");

let program;
try {
  program = require("../binary.js").find();
} catch (e) {
  console.error(`sallyport: ${e.message}`);
  process.exit(125);
}
const args = process.argv.slice(2);
if (process.execve) process.execve(program, [program, ...args], process.env); // Node 22.15

const child = spawn(program, args, { stdio: "inherit" });
// A key of the terminal reaches the child without this process; what was sent to this process alone is passed.
for (const signal of ["SIGHUP", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGCONT"]) {
  process.on(signal, () => child.kill(signal));
}
for (const signal of ["SIGINT", "SIGQUIT"]) {
  process.on(signal, () => process.stdin.isTTY || child.kill(signal));
}
child.on("error", (e) => {
  console.error(`sallyport: cannot start ${program}: ${e.message}`);
  process.exit(125);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  setInterval(() => process.exit(128 + os.constants.signals[signal]), 1000); // a signal that is ignored
});
