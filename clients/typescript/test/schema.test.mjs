// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { test } from "node:test";

import { generate, name, type } from "../scripts/generate.mjs";

const root = new URL("../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

test("src/schema.ts is what docs/protocol.schema.json says", () => {
  const text = generate(JSON.parse(read("../../docs/protocol.schema.json")));
  assert.ok(read("src/schema.ts") === text, "src/schema.ts is out of date: run `node scripts/generate.mjs`");
});

for (const [from, to] of Object.entries({
  "run/start params": "RunStartParams",
  "capabilityRoots/discoverV1 result": "CapabilityRootsDiscoverV1Result",
  "event approval_decided": "ApprovalDecidedEvent",
  ApprovalDecided: "ApprovalDecided",
  Event: "Event",
})) {
  test(`the type of ${from}`, () => assert.equal(name(from), to));
}

for (const [what, schema, want] of [
  ["a string", { type: "string", minLength: 1 }, "string"],
  ["optional", { anyOf: [{ type: "integer" }, { type: "null" }] }, "number | null"],
  ["words", { enum: ["a", "b"], type: "string" }, '"a" | "b"'],
  ["a list of words", { type: "array", items: { enum: ["a", "b"] } }, '("a" | "b")[]'],
  ["a reference", { $ref: "#/$defs/run~1start params" }, "RunStartParams"],
  ["anything", {}, "unknown"],
  ["a map", { type: "object", additionalProperties: { type: "string" } }, "{ [name: string]: string }"],
  [
    "members",
    { type: "object", properties: { a: { type: "null" }, "b-c": true }, required: ["a"] },
    '{\n  a: null;\n  "b-c"?: unknown;\n}',
  ],
]) {
  test(`a type: ${what}`, () => assert.equal(type(schema), want));
}

test("what the script does not know is an error", () => {
  assert.throws(() => type({ allOf: [] }), /allOf/);
  assert.throws(() => type({ type: "date" }), /date/);
  assert.throws(() => type({ $ref: "other.json" }), /other.json/);
  assert.throws(() => generate({ $defs: { "a b": {}, "a/b": {} } }), /one name/);
});

test("the entry for browsers imports no module of Node", () => {
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = read(file);
    assert.doesNotMatch(text, /\b(require\(|process\.|Buffer\.|import\()/, file);
    for (const [, from] of text.matchAll(/^(?:import|export)[^;]*?from "([^"]+)";/gms)) {
      assert.ok(!from.startsWith("node:") && !builtinModules.includes(from), `${file} imports ${from}`);
      assert.ok(from.startsWith("./"), `${file} imports the package ${from}`);
      visit(`dist/${from.slice(2)}`);
    }
  };
  visit("dist/index.js");
  assert.ok(seen.size >= 8, [...seen].join());
  assert.ok(![...seen].some((f) => f.includes("node")), [...seen].join());
});

test("there are no dependencies", () => {
  const p = JSON.parse(read("package.json"));
  for (const kind of ["dependencies", "peerDependencies", "optionalDependencies", "bundleDependencies"]) {
    assert.equal(p[kind], undefined);
  }
  const types = ["dist/index.d.ts", "dist/node.d.ts", "dist/node-websocket.d.ts", "dist/run.d.ts"];
  for (const file of types) assert.doesNotMatch(read(file), /NodeJS|"node:|Buffer|types="node"/, file);
});
