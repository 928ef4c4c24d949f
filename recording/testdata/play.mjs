// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Plays a recording with the player of asciinema, without a screen: node play.mjs PACKAGE FILE. It prints what
// the player has shown.
import { readFileSync, readdirSync } from "node:fs";
const [, , dir, file] = process.argv;
const core = readdirSync(dir + "/dist").find((n) => n.startsWith("core-"));
globalThis.window ??= globalThis;
const { C: Core } = await import(dir + "/dist/" + core);
const logger = new Proxy({}, { get: () => () => {} });
const c = new Core({ data: readFileSync(file, "utf8") }, { logger, speed: 1e6, preload: true, autoPlay: false });
const got = { output: "", input: "", marker: [], resize: [], metadata: null };
c.addEventListener("output", (e) => (got.output += [e].flat().join("")));
c.addEventListener("input", (e) => (got.input += [e.data ?? e].flat().join("")));
c.addEventListener("marker", (e) => got.marker.push(e.label));
c.addEventListener("resize", (e) => got.resize.push([e.cols, e.rows]));
c.addEventListener("metadata", (e) => (got.metadata = e));
const ended = new Promise((ok) => c.addEventListener("ended", ok));
c.addEventListener("error", (e) => { console.error(e); process.exit(1); });
c.terminalReady();
await c.init();
await c.play();
await ended;
console.log(JSON.stringify(got));
process.exit(0);
