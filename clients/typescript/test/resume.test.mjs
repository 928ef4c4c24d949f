// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Client, ConnectionError, RequestError } from "../dist/node.js";
import { appears, later, relay, serve } from "./helpers.mjs";

async function behind(t, options = {}) {
  const server = await serve(t);
  const way = await relay(t, server.url);
  const client = await Client.connect(way.url, options);
  later(t, () => client.close());
  return { ...server, way, client };
}

test("output, waits and results go on after cuts, and nothing is missing or twice", async (t) => {
  let resumed = 0;
  const { way, client } = await behind(t, { onResume: () => resumed++ });
  const session = client.sessionId;
  const run = await client.start("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done", {
    reader: true,
  });
  const waits = run.wait();
  let text = "",
    cuts = 0;
  for await (const chunk of run.output()) {
    assert.equal(chunk.missing, 0);
    text += chunk.text;
    if (cuts < 5 && text.length > cuts * 20_000) {
      way.cut();
      cuts++;
    }
  }
  const lines = text.trimEnd().split("\n");
  assert.equal(lines.length, 20_000);
  assert.ok(lines.every((l, i) => l === `line ${i}`));
  assert.equal((await waits).exitCode, 0);
  assert.equal(client.sessionId, session);
  assert.ok(resumed >= 1);
});

test("input whose answer is lost arrives once", async (t) => {
  const { way, client, work } = await behind(t);
  const run = await client.start("while read x; do echo $x >>got; : >got.$x; done", { openStdin: true });
  let expected = "";
  for (let i = 0; i < 5; i++) {
    way.hold(true);
    const writes = run.write(`${i}\n`);
    await appears(join(work, `got.${i}`));
    way.hold(false);
    way.cut();
    await writes;
    expected += `${i}\n`;
  }
  await run.closeStdin();
  await run.wait();
  assert.equal(readFileSync(join(work, "got"), "utf8"), expected);
});

test("a start whose answer is lost starts once", async (t) => {
  const { way, client, work } = await behind(t);
  let expected = "";
  for (let i = 0; i < 5; i++) {
    way.hold(true);
    const starts = client.start(`echo ${i} >>log; : >log.${i}`);
    await appears(join(work, `log.${i}`));
    way.hold(false);
    way.cut();
    const run = await starts;
    assert.equal((await run.wait()).exitCode, 0);
    await run.remove();
    expected += `${i}\n`;
  }
  assert.equal(readFileSync(join(work, "log"), "utf8"), expected);
  assert.deepEqual(await client.list(), []);
});

test("requests that may not be repeated tell that they were cut", async (t) => {
  const { way, client } = await behind(t);
  const run = await client.start(["sleep", "1000"]);
  const files = client.files(undefined, { confined: false });
  const writes = files.append("x", "y".repeat(8 << 20)); // takes more than a moment
  setImmediate(() => way.cut());
  const e = await writes.then(
    () => undefined,
    (e) => e,
  );
  assert.ok(e instanceof ConnectionError && e.sent, String(e));
  await run.remove();
});

test("files whose answer is lost are written and read", async (t) => {
  const { way, client, work } = await behind(t);
  const files = client.files();
  way.hold(true);
  const writes = files.write("x", "whole");
  await appears(join(work, "x"));
  way.hold(false);
  way.cut();
  await writes;
  const reads = files.read("x");
  way.cut();
  assert.equal(await reads, "whole");
});

test("requests wait while there is no connection", async (t) => {
  const { way, client } = await behind(t);
  way.refuse(true);
  way.cut();
  await new Promise((resolve) => setImmediate(resolve));
  const lists = client.list();
  way.refuse(false);
  assert.deepEqual(await lists, []);
});

test("a client without resumption ends with its connection, and another one goes on with the run", async (t) => {
  const { way, client, url } = await behind(t, { resumeMs: 0 });
  const run = await client.start("echo a; read x; echo $x", { openStdin: true });
  const waits = assert.rejects(run.wait(), (e) => e instanceof ConnectionError && e.sent);
  way.cut();
  await waits;
  assert.ok((await client.closed) instanceof ConnectionError);
  const other = await Client.connect(url);
  later(t, () => other.close());
  const same = other.attach(run.id);
  await same.write("b\n");
  assert.equal((await same.wait()).stdout, "a\nb\n");
});

test("a client gives up when the time is over", async (t) => {
  const { way, client } = await behind(t, { resumeMs: 150 });
  way.refuse(true);
  const lists = client.attach("1").wait();
  way.cut();
  await assert.rejects(
    lists,
    (e) => e instanceof ConnectionError && /not resumed within 150 ms/.test(e.message),
  );
});

test("a session that is lost is not waited for", async (t) => {
  const first = await serve(t, "ws://127.0.0.1:0");
  let target = first.url;
  const way = await relay(t, first.url);
  const client = await Client.connect(way.url, { resumeMs: 60_000 });
  later(t, () => client.close());
  const run = await client.start(["sleep", "1000"]);
  const waits = run.wait().then(
    () => undefined,
    (e) => e,
  );
  first.child.kill("SIGKILL");
  await first.ended;
  target = new URL(target).port;
  // Another server at the same place does not know the session.
  await serve(t, `ws://127.0.0.1:${target}`);
  const e = await waits;
  assert.ok(e instanceof ConnectionError && /cannot be resumed/.test(e.message), String(e));
  assert.ok(e.cause.cause instanceof RequestError);
});

test("the question of a cut connection is withdrawn, and asked again", async (t) => {
  let way;
  const withdrawn = [],
    asked = [];
  const it = await behind(t, {
    onApproval: (q) => {
      asked.push(q.id);
      if (asked.length > 1) return "approved";
      q.withdrawn.addEventListener("abort", () => withdrawn.push(q.id));
      way.cut();
      return new Promise(() => undefined);
    },
  });
  way = it.way;
  assert.equal((await it.client.run("echo once", { askFor: [it.dir] })).stdout, "once\n");
  assert.equal(asked.length, 2);
  assert.deepEqual(withdrawn, [asked[0]]);
});
