// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Puts the program itself at the place of bin/sallyport, so that no Node runs in front of it. Where that is
// not possible bin/sallyport stays the script that starts the program.
"use strict";

const fs = require("fs");
const path = require("path");

try {
  const from = require("./binary.js").find();
  const to = path.join(__dirname, "bin", "sallyport");
  const beside = `${to}.${process.pid}`;
  try {
    fs.linkSync(from, beside);
  } catch {
    fs.copyFileSync(from, beside);
  }
  fs.chmodSync(beside, 0o755);
  fs.renameSync(beside, to); // at no moment is there no program
} catch (e) {
  console.error(`sallyport: ${e.message}`);
}
