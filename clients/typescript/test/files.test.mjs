// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Client, FileNotFoundError, InvalidError, RequestError } from "../dist/node.js";
import { later, places } from "./helpers.mjs";

async function open(t) {
  const p = places(t);
  const client = await Client.launch(p.launch);
  later(t, () => client.close());
  return { ...p, client };
}

for (const confined of [true, false]) {
  test(`files are written, read, listed and removed, confined: ${confined}`, async (t) => {
    const { client, work } = await open(t);
    const files = client.files(work, { confined });
    const name = "ä b%?#.txt";
    await files.write(name, "one\n");
    assert.equal(readFileSync(join(work, name), "utf8"), "one\n");
    await files.append(name, "two\n");
    assert.equal(await files.read(name), "one\ntwo\n");
    await files.write(name, new Uint8Array([0, 255]), { atomic: true });
    assert.deepEqual(await files.read(join(work, name), { format: "bytes" }), new Uint8Array([0, 255]));
    assert.equal((await files.getInfo(name)).size, 2);
    await files.makeDir("a/b");
    assert.deepEqual(
      (await files.list(".")).sort((a, b) => (a.name < b.name ? -1 : 1)),
      [
        { name: "a", type: "directory" },
        { name, type: "file" },
      ],
    );
    await files.rename(name, "a/c");
    assert.equal(await files.exists(name), false);
    await assert.rejects(files.rename("a/b", "a/c"), RequestError);
    await files.remove("a");
    assert.deepEqual(await files.list("."), []);
    await assert.rejects(files.read("none"), FileNotFoundError);
    await assert.rejects(files.remove("none"), RequestError);
  });

  test(`a file that no message carries, confined: ${confined}`, async (t) => {
    const { client, work } = await open(t);
    const files = client.files(undefined, { confined });
    const data = new Uint8Array(20 << 20).map((_, i) => i * 7);
    await files.write("big", data);
    assert.ok(Buffer.compare(readFileSync(join(work, "big")), data) === 0);
    assert.ok(Buffer.compare(await files.read("big", { format: "bytes" }), data) === 0);
    let bytes = 0;
    for await (const block of files.readStream("big")) {
      bytes += block.length;
      if (bytes > 1 << 20) break; // and the handle is closed
    }
    await assert.rejects(files.write("big", data, { atomic: true }), InvalidError);
  });
}

test("confined files do not lead out of the workspace", async (t) => {
  const { client, work, dir } = await open(t);
  execFileSync("git", ["init", "-q", work]);
  writeFileSync(join(dir, "outside"), "kept");
  mkdirSync(join(dir, "else"));
  symlinkSync(join(dir, "outside"), join(work, "link"));
  symlinkSync(join(dir, "else"), join(work, "way"));
  const files = client.files(work);
  for (const path of [
    "../outside",
    join(dir, "outside"),
    "link",
    "way/new",
    ".git/hooks/post-commit",
    ".git/config",
  ]) {
    await assert.rejects(files.write(path, "changed"), RequestError, path);
    await assert.rejects(files.append(path, "changed"), RequestError, path);
  }
  await assert.rejects(files.remove("../outside"), RequestError);
  assert.equal(readFileSync(join(dir, "outside"), "utf8"), "kept");
  assert.equal(existsSync(join(dir, "else/new")), false);
  assert.equal(existsSync(join(work, ".git/hooks/post-commit")), false);
  await client.files(work, { confined: false }).write("../outside", "changed");
  assert.equal(readFileSync(join(dir, "outside"), "utf8"), "changed");
});

test("paths that are none", async (t) => {
  const { client } = await open(t);
  for (const path of ["", "a\0b", "\ud800"]) await assert.rejects(client.files().read(path), InvalidError);
});
