// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { test } from "node:test";

import { Client, ConnectionError, ProtocolError, StatusError, UnsupportedError } from "../dist/node.js";
import { Client as AnyClient } from "../dist/index.js";
import { directory, later, relay, serve } from "./helpers.mjs";

test("a unix socket", async (t) => {
  const { url } = await serve(t, "unix://DIR/s");
  const client = await Client.connect(url);
  assert.equal((await client.run("echo hi")).stdout, "hi\n");
  await client.close();
});

test("a token", async (t) => {
  const dir = directory(t);
  const file = join(dir, "token");
  writeFileSync(file, "s3cret\n");
  chmodSync(file, 0o600);
  const { url } = await serve(t, "ws://127.0.0.1:0", [
    "--ws-auth",
    "capability-token",
    "--ws-token-file",
    file,
  ]);
  const client = await Client.connect(url, { token: "s3cret" });
  assert.equal((await client.run("echo hi")).stdout, "hi\n");
  await client.close();
  await assert.rejects(
    Client.connect(url, { token: "wrong" }),
    (e) => e instanceof StatusError && e.status === 401 && /set the token/.test(e.message),
  );
});

test(
  "the WebSocket of the platform",
  { skip: typeof WebSocket === "undefined" && "needs Node 22, or --experimental-websocket" },
  async (t) => {
    const { url } = await serve(t);
    const way = await relay(t, url);
    const client = await AnyClient.connect(way.url);
    assert.equal((await client.run("echo hi")).stdout, "hi\n");
    const run = await client.start("echo a; read x; echo $x", { openStdin: true });
    way.cut();
    await run.write("b\n");
    assert.equal((await run.wait()).stdout, "a\nb\n");
    await client.close();
    await assert.rejects(AnyClient.connect("ws://127.0.0.1:1"), ConnectionError);
  },
);

test("a platform without WebSocket says what to import", async () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "WebSocket");
  delete globalThis.WebSocket;
  try {
    await assert.rejects(
      AnyClient.connect("ws://127.0.0.1:1"),
      (e) => e instanceof UnsupportedError && /sallyport-client\/node/.test(e.message),
    );
  } finally {
    if (own) Object.defineProperty(globalThis, "WebSocket", own);
  }
});

test("a page is refused, and let through by a relay that drops Origin", async (t) => {
  const { url } = await serve(t);
  const add = await relay(t, url, (head) =>
    Buffer.from(
      head.toString("latin1").replace("\r\n\r\n", "\r\nOrigin: https://a.example\r\n\r\n"),
      "latin1",
    ),
  );
  await assert.rejects(Client.connect(add.url), (e) => e instanceof StatusError && e.status === 403);
  const drop = await relay(t, add.url, (head) =>
    Buffer.from(head.toString("latin1").replace(/\r\nOrigin: [^\r]*/, ""), "latin1"),
  );
  await assert.rejects(Client.connect(drop.url), StatusError, "the relay behind it adds it again");
  const back = await relay(t, url, (head) =>
    Buffer.from(head.toString("latin1").replace(/\r\nOrigin: [^\r]*/, ""), "latin1"),
  );
  const page = await relay(t, back.url, (head) =>
    Buffer.from(
      head.toString("latin1").replace("\r\n\r\n", "\r\nOrigin: https://a.example\r\n\r\n"),
      "latin1",
    ),
  );
  const client = await Client.connect(page.url);
  assert.equal((await client.run("echo hi")).stdout, "hi\n");
  await client.close();
});

/** A server of frames: `play` gets the socket after the upgrade, and what the client sends. */
async function frames(t, play, accept = true) {
  const server = http.createServer((_, response) => {
    response.statusCode = 503;
    response.end("no room".repeat(1000));
  });
  server.on("upgrade", (request, socket) => {
    const key = createHash("sha1")
      .update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
      .digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept ? key : "no"}\r\n\r\n`,
    );
    socket.on("error", () => undefined);
    play?.(socket);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return `ws://127.0.0.1:${server.address().port}`;
}

function frame(first, data) {
  const n = data.length;
  const size =
    n < 126
      ? [n]
      : n < 65536
        ? [126, n >> 8, n & 255]
        : [127, 0, 0, 0, 0, n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255];
  return Buffer.concat([Buffer.from([first, ...size]), data]);
}

const environmentInfo = { cwd: "file:///w", tempDir: "file:///tmp", capabilities: { runs: true } };
const hello = (extra) =>
  Buffer.from(JSON.stringify({ id: 1, result: { sessionId: "s", environmentInfo, extra } }));

for (const [name, bytes] of Object.entries({
  "in one piece": frame(0x81, hello("ä")),
  "in a binary message": frame(0x82, hello()),
  "of middle size": frame(0x81, hello("x".repeat(30_000))),
  "of large size": frame(0x81, hello("x".repeat(300_000))),
  "in fragments with a ping between": Buffer.concat([
    frame(0x01, hello().subarray(0, 5)),
    frame(0x89, Buffer.from("are you there")),
    frame(0x00, hello().subarray(5, 9)),
    frame(0x80, hello().subarray(9)),
  ]),
})) {
  for (const step of [1 << 30, 7]) {
    test(`a message ${name}, ${step === 7 ? "a few bytes at a time" : "at once"}`, async (t) => {
      if (step === 7 && bytes.length > 10_000) return;
      let sent = Buffer.alloc(0);
      const url = await frames(t, (socket) => {
        socket.on("data", (d) => {
          sent = Buffer.concat([sent, d]);
        });
        const next = (at) =>
          at < bytes.length &&
          socket.write(bytes.subarray(at, at + step), () => setImmediate(next, at + step));
        next(0);
      });
      const client = await Client.connect(url, { resumeMs: 0 });
      assert.equal(client.cwd, "/w");
      await client.close();
      assert.equal(
        sent.includes(Buffer.from([0x8a, 0x80 | 13])),
        name.includes("ping"),
        "the answer to a ping",
      );
    });
  }
}

for (const [name, bytes] of Object.entries({
  "a reserved bit": frame(0xc1, hello()),
  "a mask": Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5]),
  "an unknown kind": frame(0x83, hello()),
  "a fragment of nothing": frame(0x80, hello()),
  "a message within a message": Buffer.concat([frame(0x01, hello()), frame(0x81, hello())]),
  "a long ping": frame(0x89, Buffer.alloc(126)),
  "a ping in fragments": frame(0x09, Buffer.alloc(1)),
  "more than 16 MiB": Buffer.from([0x81, 127, 0, 0, 0, 0, 1, 0, 0, 1]),
  "more than is a number": Buffer.from([0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255]),
  "text that is not UTF-8": frame(0x81, Buffer.from([0xff, 0xfe])),
})) {
  test(`a server that sends ${name}`, async (t) => {
    const url = await frames(t, (socket) => socket.write(bytes));
    await assert.rejects(Client.connect(url), ProtocolError);
  });
}

test("a server that is no WebSocket", async (t) => {
  await assert.rejects(Client.connect(await frames(t, undefined, false)), ProtocolError);
  const url = await frames(t, (socket) => socket.end(frame(0x88, Buffer.from([3, 0xe9]))));
  await assert.rejects(Client.connect(url), (e) => e instanceof ConnectionError && /1001/.test(e.message));
  await assert.rejects(
    Client.connect("ws://127.0.0.1:1"),
    (e) => e instanceof ConnectionError && /ECONNREFUSED/.test(e.message),
  );
});
