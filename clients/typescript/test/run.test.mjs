// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { before, after, test } from "node:test";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, existsSync } from "node:fs";
import { join } from "node:path";

import {
  Client,
  ClosedError,
  ConnectionError,
  InvalidError,
  NotRunError,
  RequestError,
  ShortWriteError,
  WaitTimeoutError,
} from "../dist/node.js";
import { all, later, places, program } from "./helpers.mjs";

let client, work, dir;
const cleanups = [];
const context = { after: (f) => cleanups.push(f) };

before(async () => {
  const p = places(context);
  ({ work, dir } = p);
  client = await Client.launch(p.launch);
});
after(async () => {
  await client?.close();
  for (const f of cleanups) await f();
});

test("a program runs and its result says what happened", async () => {
  const r = await client.run(["sh", "-c", "echo out; echo err >&2; exit 3"]);
  assert.equal(r.exitCode, 3);
  assert.equal(r.end, "exited");
  assert.equal(r.ok, false);
  assert.equal(r.stdout, "out\n");
  assert.equal(r.stderr, "err\n");
  assert.equal(r.output.length, 8);
  assert.deepEqual(r.denials, []);
  assert.equal(r.raw.sandbox.mode, "workspace-write");
  assert.deepEqual(await client.list(), [], "the run was not forgotten");
});

test("a script gets its directory, its environment and its input", async () => {
  mkdirSync(join(work, "sub"), { recursive: true });
  const r = await client.run("pwd; echo $NAME; cat", {
    cwd: join(work, "sub"),
    env: { PATH: process.env.PATH, NAME: "a b" },
    input: "typed",
  });
  assert.equal(r.stdout, `${join(work, "sub")}\na b\ntyped`);
});

test("output comes as it is printed, and characters are whole", async () => {
  const out = [],
    err = [];
  const r = await client.run("printf '\\303'; echo e >&2; printf '\\244'; echo", {
    onStdout: (text) => {
      out.push(text);
    },
    onStderr: (text) => {
      err.push(text);
    },
  });
  assert.equal(out.join(""), "ä\n");
  assert.equal(err.join(""), "e\n");
  assert.equal(r.exitCode, 0);
});

test("an error of onStdout ends the command and is that of run", async () => {
  const marker = new Error("mine");
  await assert.rejects(
    client.run("echo x; exec sleep 1000", {
      onStdout: () => {
        throw marker;
      },
    }),
    marker,
  );
  assert.deepEqual(await client.list(), []);
});

test("a command waits for its reader, and nothing is missing", async () => {
  const run = await client.start("head -c 6000000 /dev/zero; echo done >end", { reader: true });
  let bytes = 0;
  for await (const chunk of run.output()) {
    if (bytes === 0) {
      const { reason } = await run.waitFor({}, { timeoutMs: 300 });
      assert.equal(reason, "deadline", "the command did not wait for its reader");
    }
    assert.equal(chunk.missing, 0);
    assert.equal(chunk.offset, bytes);
    bytes += chunk.data.length;
  }
  assert.equal(bytes, 6_000_000);
  assert.equal((await run.wait()).exitCode, 0);
  await run.remove();
});

test("a command does not wait for a reader that has left", async () => {
  const run = await client.start("head -c 6000000 /dev/zero", { reader: true });
  for await (const chunk of run.output()) {
    assert.ok(chunk.data.length > 0);
    break;
  }
  assert.equal((await run.wait()).exitCode, 0);
  await run.remove();
});

test("without a reader what is missing is counted", async () => {
  const run = await client.start("head -c 6000000 /dev/zero");
  await run.wait();
  const chunks = await all(run.output());
  assert.equal(
    chunks.reduce((n, c) => n + c.data.length + c.missing, 0),
    6_000_000,
  );
  await run.remove();
});

test("a result that no message carries comes whole", async () => {
  const r = await client.run("head -c 1500000 /dev/zero | tr '\\0' '\\1'", {
    flags: ["--max-output", "4MB"],
  });
  assert.equal(r.stdout.length, 1_500_000); // 18 MB of JSON, with the output in it twice
});

test("a run is driven: input, waits, signals, end", async () => {
  const run = await client.start("echo ready; while read x; do echo got $x; done; echo end", {
    openStdin: true,
  });
  assert.match(run.id, /^[0-9]+$/);
  const ready = await run.waitFor({ match: "^ready" });
  assert.equal(ready.reason, "match");
  await run.write("one\n");
  const got = await run.waitFor({ match: "got one" });
  assert.equal(got.reason, "match");
  assert.ok(got.after > ready.after);
  assert.equal((await run.waitFor({ quietMs: 20 })).reason, "idle");
  assert.equal((await run.waitFor({ input: true }, { timeoutMs: 20_000 })).reason, "input_wait");
  assert.equal((await run.waitFor({ bytes: 1_000_000 }, { timeoutMs: 1 })).reason, "deadline");
  await assert.rejects(run.wait({ timeoutMs: 1 }), WaitTimeoutError);
  const listed = (await client.list()).find((r) => r.runId === run.id);
  assert.equal(listed.running, true);
  assert.equal(listed.waitsFor, "input");
  await run.closeStdin();
  const same = client.attach(run.id);
  const end = await same.waitFor({});
  assert.equal(end.reason, "exited");
  assert.equal(end.result.exitCode, 0);
  assert.equal((await same.wait()).stdout, "ready\ngot one\nend\n");
  assert.equal((await same.result({ output: false })).stdout, "");
  assert.equal(await run.terminate(), false);
  await assert.rejects(run.write("x"), RequestError);
  await run.remove();
  await assert.rejects(run.wait(), (e) => e instanceof RequestError && e.reason === "unknownRun");
});

test("signals and terminate", async () => {
  const run = await client.start("trap 'echo int; exit 5' INT; echo on; while :; do sleep 0.01; done");
  await run.waitFor({ match: "on" });
  await run.signal("SIGINT");
  assert.equal((await run.wait()).exitCode, 5);
  await run.remove();

  const other = await client.start(["sleep", "1000"]);
  assert.equal(await other.terminate(), true);
  assert.equal((await other.wait()).exitCode, 143);
  await other.remove();
});

test("a port that a command opens", async () => {
  const run = await client.start(["python3", "-m", "http.server", "18765"]);
  const { reason, port } = await run.waitFor({ port: true }, { timeoutMs: 60_000 });
  assert.deepEqual({ reason, port }, { reason: "port", port: 18765 });
  await run.remove();
});

test("a terminal", async () => {
  const run = await client.start("stty size; read x; stty size; printf '\\033[2;3Hthere'; read x", {
    tty: { cols: 40, rows: 10 },
    screen: true,
  });
  await run.waitFor({ match: "10 40" });
  await run.resize({ cols: 30, rows: 5 });
  await run.write("\n");
  await run.waitFor({ match: "there" });
  const screen = await run.screen();
  assert.equal(screen.rows, 5);
  assert.equal(screen.cols, 30);
  assert.equal(screen.lines.length, 5);
  assert.ok(
    screen.lines.some((l) => l.startsWith("  there") || l.includes("there")),
    screen.lines.join("\n"),
  );
  await run.remove();
});

test("a screen without a terminal is an error with a reason", async () => {
  const run = await client.start(["sleep", "1000"]);
  await assert.rejects(run.screen(), (e) => e instanceof RequestError && e.reason === "noScreen");
  await run.remove();
});

test("what does not run is an error with the result", async () => {
  await assert.rejects(client.run(["no-such-program"]), (e) => {
    assert.ok(e instanceof NotRunError);
    assert.equal(e.result.exitCode, 127);
    assert.match(e.message, /no-such-program/);
    return !e.forbidden && !e.refused;
  });
  await assert.rejects(
    client.run(["true"], { escalate: true }),
    (e) => e.result.exitCode === 122 && e.forbidden,
  );
});

test("invalid flags are an error with the exit code", async () => {
  await assert.rejects(client.run(["true"], { flags: ["--no-such-flag"] }), (e) => {
    assert.ok(e instanceof RequestError);
    assert.equal(e.reason, "invalid");
    return e.exitCode === 125;
  });
});

for (const [name, f] of Object.entries({
  "no program": () => client.run([]),
  "an empty script": () => client.run(""),
  "a time of 0": () => client.run(["true"], { timeoutMs: 0 }),
  "a grant that is no flag": () => client.run(["true"], { grants: ["/etc"] }),
  "a grant that hides another flag": () => client.run(["true"], { grants: ["-s full-access"] }),
  "a grant with an expansion": () => client.run(["true"], { grants: ["--rw $HOME"] }),
  "a grant with an open quote": () => client.run(["true"], { grants: ["--rw '/a"] }),
  "conditions that are none": async () => client.attach("1").waitFor(null),
  "a URL of another scheme": async () => Client.connect("http://127.0.0.1:1"),
  "a URL with a password": async () => Client.connect("ws://a:secret@127.0.0.1:1"),
  "no URL": async () => Client.connect("x"),
})) {
  test(`invalid: ${name}`, async () => {
    await assert.rejects(
      async () => f(),
      (e) => e instanceof InvalidError && !e.message.includes("secret"),
    );
  });
}

test("a time limit", async () => {
  const r = await client.run(["sleep", "1000"], { timeoutMs: 50 });
  assert.equal(r.end, "timed_out");
  assert.equal(r.exitCode, 124);
});

test("an aborted run is ended and forgotten", async () => {
  const own = new AbortController();
  const reason = new Error("enough");
  await assert.rejects(
    client.run("echo x; exec sleep 1000", { signal: own.signal, onStdout: () => own.abort(reason) }),
    reason,
  );
  assert.deepEqual(await client.list(), []);
  await assert.rejects(client.run(["true"], { signal: AbortSignal.abort(reason) }), reason);
});

test("an aborted wait leaves the command", async () => {
  const run = await client.start(["sleep", "1000"]);
  const own = new AbortController();
  const waits = run.wait({ signal: own.signal });
  own.abort();
  await assert.rejects(waits, { name: "AbortError" });
  assert.equal((await client.list())[0].running, true);
  await run.remove();
});

test("input for a command that does not read", async () => {
  const run = await client.start(["sleep", "1000"], { openStdin: true });
  const own = new AbortController();
  const writes = run.write("x".repeat(40 << 20), { signal: own.signal });
  const first = await Promise.race([
    writes.catch((e) => e),
    new Promise((r) => setTimeout(r, 2000, "waits")),
  ]);
  if (first === "waits") own.abort(first);
  else assert.ok(first instanceof ShortWriteError && first.taken > 0, String(first));
  await writes.catch(() => undefined);
  await run.remove();
});

test("a denial names the smallest grant, and the retry has it", async () => {
  const target = join(dir, "out dir");
  mkdirSync(target);
  const script = `echo x >"${target}/file"`;
  const denied = await client.run(script);
  assert.notEqual(denied.exitCode, 0);
  assert.equal(denied.denials[0].path, join(target, "file"));
  assert.deepEqual(denied.grants, [`--rw '${target}'`]);
  assert.equal(existsSync(join(target, "file")), false);
  const granted = await client.run(script, { grants: denied.grants });
  assert.equal(granted.exitCode, 0);
  assert.equal(readFileSync(join(target, "file"), "utf8"), "x\n");
});

test("events come in order, with their run", async (t) => {
  const { launch } = places(t);
  const events = [];
  const own = await Client.launch({ ...launch, onEvent: (e) => events.push(e) });
  later(t, () => own.close());
  await own.run("echo hi; cat /etc/shadow 2>/dev/null; true");
  const types = events.map((e) => e.type);
  assert.deepEqual(types.slice(0, 2), ["judged", "started"]);
  assert.equal(types.at(-1), "ended");
  assert.deepEqual(
    events.map((e) => e.data.seq),
    events.map((_, i) => i + 1),
  );
  assert.equal(new Set(events.map((e) => e.runId)).size, 1);
});

test("a client that is closed", async (t) => {
  const { launch } = places(t);
  const own = await Client.launch(launch);
  const run = await own.start(["sleep", "1000"]);
  const waits = assert.rejects(run.wait(), ClosedError);
  await own.close();
  await waits;
  assert.ok((await own.closed) instanceof ClosedError);
  await assert.rejects(own.list(), ClosedError);
  await own.close();
});

test("a server that ends says why", async (t) => {
  const { launch } = places(t);
  await assert.rejects(
    Client.launch({ ...launch, args: ["--no-such-flag"] }),
    (e) => e instanceof ConnectionError && /\(125\): .*no-such-flag/s.test(e.message),
  );
  await assert.rejects(
    Client.launch({ ...launch, program: "/no/such/program" }),
    (e) => e instanceof ConnectionError && /cannot start/.test(e.message),
  );
  await assert.rejects(Client.launch({ ...launch, signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.ok(program);
});
