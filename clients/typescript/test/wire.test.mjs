// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// The protocol against a server that says what the test wants.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ConnectionError, ProtocolError, RequestError, UnsupportedError } from "../dist/index.js";

const environmentInfo = {
  cwd: "file:///work%20here",
  tempDir: "file:///tmp",
  capabilities: { runs: true },
  later: 1,
};

/** A server: answers are what `answers[method]` returns; what a client sends is in `got`. */
function fake(answers = {}) {
  const it = { got: [], dials: 0, events: undefined, closed: 0 };
  it.say = (m) => it.events.message(typeof m === "string" ? m : JSON.stringify(m));
  it.dial = async (events) => {
    it.dials++;
    it.events = events;
    return {
      send(text) {
        const m = JSON.parse(text);
        it.got.push(m);
        queueMicrotask(() => {
          const f =
            answers[m.method] ??
            (m.method === "initialize"
              ? () => ({ sessionId: "s", environmentInfo, unknown: [1] })
              : undefined);
          if (f === undefined || m.id === undefined) return;
          try {
            const result = f(m.params, m);
            if (result !== undefined) it.say({ id: m.id, result });
          } catch (error) {
            it.say({ id: m.id, error });
          }
        });
      },
      close() {
        it.closed++;
        events.ended(new ConnectionError("closed"));
      },
    };
  };
  return it;
}

const refuse = (code, message, data) => () => {
  throw { code, message, data };
};

test("the handshake", async () => {
  const s = fake();
  const client = await Client.open(s.dial, { clientName: "me", onApproval: () => "denied" });
  assert.deepEqual(
    s.got.map((m) => [m.method, m.params]),
    [
      ["initialize", { clientName: "me", extensionMethods: true, approvals: true }],
      ["initialized", {}],
    ],
  );
  assert.equal(client.sessionId, "s");
  assert.equal(client.cwd, "/work here");
  await client.close();
  assert.equal(s.closed, 1);
});

for (const [name, answer, type] of [
  ["a refusal", refuse(-32600, "no"), RequestError],
  ["no session", () => ({ environmentInfo }), ProtocolError],
  ["no runs", () => ({ sessionId: "s", environmentInfo: { capabilities: {} } }), UnsupportedError],
  ["no environment", () => ({ sessionId: "s", environmentInfo: null }), UnsupportedError],
]) {
  test(`a handshake with ${name}`, async () => {
    const s = fake({ initialize: answer });
    await assert.rejects(Client.open(s.dial), type);
    assert.equal(s.closed, 1);
    assert.equal(s.dials, 1);
  });
}

test("a server that does not answer the handshake is given up", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const s = fake({ initialize: () => undefined });
  const opens = assert.rejects(Client.open(s.dial), /did not answer within 10 s/);
  await new Promise((resolve) => setImmediate(resolve));
  t.mock.timers.tick(10_000);
  await opens;
  assert.equal(s.closed, 1);
});

for (const [name, text] of Object.entries({
  "no JSON": "{",
  "a list": "[]",
  "a number": "1",
  null: "null",
  "an error about a message of ours": '{"id":-1,"error":{"code":-32600,"message":"not a message"}}',
})) {
  test(`a message that is ${name} ends the client`, async () => {
    const s = fake();
    const client = await Client.open(s.dial);
    const lists = assert.rejects(client.list(), ConnectionError);
    s.say(text);
    await lists;
    assert.ok((await client.closed) instanceof ProtocolError);
    assert.equal(s.dials, 1, "it connected again");
  });
}

test("unknown members, notifications, answers and kinds of events are no errors", async () => {
  const s = fake({ "run/list": () => ({ runs: [], more: {} }) });
  const events = [];
  const client = await Client.open(s.dial, { onEvent: (e) => events.push(e) });
  s.say({ method: "later/thing", params: 1 });
  s.say({ id: 4711, result: {} });
  s.say({ id: "x", result: {}, jsonrpc: "2.0" });
  s.say({
    method: "run/event",
    params: { runId: "1", event: { type: "teleported", v: 9, where: "there" } },
    trace: {},
  });
  s.say({ method: "run/event", params: { runId: "1", event: { type: "listening", port: 1, later: true } } });
  assert.deepEqual(await client.list(), []);
  assert.deepEqual(events, [
    { runId: "1", type: "teleported", data: { type: "teleported", v: 9, where: "there" } },
    { runId: "1", type: "listening", data: { type: "listening", port: 1, later: true } },
  ]);
  await client.close();
});

test("a connection that comes too late is closed", async () => {
  const s = fake();
  const own = new AbortController();
  let dialed;
  const late = new Promise((resolve) => {
    dialed = resolve;
  });
  const opens = Client.open(
    async (events, signal) => {
      const transport = await s.dial(events, signal);
      dialed();
      return new Promise((resolve) =>
        signal.addEventListener("abort", () => setImmediate(resolve, transport)),
      );
    },
    { signal: own.signal },
  );
  await late;
  own.abort();
  await assert.rejects(opens, { name: "AbortError" });
  while (s.closed === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(s.got.length, 0);
});

test("requests of the server that are unknown are refused", async () => {
  const s = fake();
  const client = await Client.open(s.dial);
  s.say({ id: 1, method: "run/approve", params: { runId: "1", request: {} } });
  s.say({ id: 2, method: "later/question" });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    s.got.slice(2).map((m) => [m.id, m.error.code]),
    [
      [1, -32601],
      [2, -32601],
    ],
  );
  await client.close();
});

test("errors have what the server says", async () => {
  const s = fake({
    "run/list": refuse(-32603, "no space", { reason: "failed", taken: 3, exitCode: 125, later: 1 }),
    "question/list": refuse("x", 1, "y"),
  });
  const client = await Client.open(s.dial);
  await assert.rejects(client.list(), {
    name: "RequestError",
    code: -32603,
    message: "no space",
    reason: "failed",
    taken: 3,
    exitCode: 125,
  });
  await assert.rejects(client.questions(), { name: "RequestError", code: 0, reason: "", taken: 0 });
  await client.close();
});

test("a cut is resumed with takeOver, and only what may be repeated is sent again", async () => {
  const s = fake();
  const client = await Client.open(s.dial);
  const repeats = client.list();
  const not = assert.rejects(client.stopSandbox("x"), (e) => e instanceof ConnectionError && e.sent);
  s.got.length = 0;
  s.events.ended(new ConnectionError("cut"));
  await not;
  while (s.got.length < 3) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    s.got.map((m) => m.method),
    ["initialize", "initialized", "run/list"],
  );
  assert.deepEqual(
    { resume: s.got[0].params.resumeSessionId, over: s.got[0].params.takeOver },
    { resume: "s", over: true },
  );
  s.say({ id: s.got[2].id, result: { runs: [] } });
  assert.deepEqual(await repeats, []);
  await client.close();
});

test("another session than the one that was asked for ends the client", async () => {
  let n = 0;
  const s = fake({ initialize: () => ({ sessionId: `s${n++}`, environmentInfo }) });
  const client = await Client.open(s.dial);
  s.events.ended(new ConnectionError("cut"));
  assert.match((await client.closed).message, /another session/);
  assert.equal(s.dials, 2);
});

test("a start that is aborted is canceled, and one that came too late is removed", async () => {
  const s = fake();
  const client = await Client.open(s.dial);
  const own = new AbortController();
  const first = assert.rejects(client.start(["true"], { signal: own.signal }), { name: "AbortError" });
  const second = assert.rejects(client.start(["true"], { signal: own.signal }), { name: "AbortError" });
  const [a, b] = s.got.slice(2);
  assert.notEqual(a.params.startId, b.params.startId);
  own.abort();
  assert.deepEqual(
    s.got.slice(4).map((m) => [m.method, m.params.id]),
    [
      ["request/cancel", a.id],
      ["request/cancel", b.id],
    ],
  );
  s.say({ id: a.id, error: { code: -32800, message: "canceled" } });
  await first;
  s.say({ id: b.id, result: { runId: "7", started: true } });
  await new Promise((resolve) => setImmediate(resolve));
  const remove = s.got.at(-1);
  assert.deepEqual([remove.method, remove.params], ["run/remove", { runId: "7" }]);
  s.say({ id: remove.id, result: {} });
  await second;
  await client.close();
});

test("an error of onEvent is not one of the connection", async () => {
  const s = fake({ "run/list": () => ({ runs: [] }) });
  const marker = new Error("mine");
  const client = await Client.open(s.dial, {
    onEvent: () => {
      throw marker;
    },
  });
  const seen = new Promise((resolve) => {
    const [own] = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.once("uncaughtException", (e) => {
      if (own) process.on("uncaughtException", own);
      resolve(e);
    });
  });
  s.say({ method: "run/event", params: { runId: "1", event: { type: "x" } } });
  assert.equal(await seen, marker);
  assert.deepEqual(await client.list(), []);
  await client.close();
});
