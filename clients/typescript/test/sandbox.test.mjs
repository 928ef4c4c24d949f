// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Client, CommandExitError, InvalidError, NotRunError, RequestError, Sandbox } from "../dist/node.js";
import { Sandbox as AnySandbox } from "../dist/index.js";
import { later, places, serve } from "./helpers.mjs";

test("Sandbox.create starts a server, and kill leaves nothing", async (t) => {
  const { launch } = places(t);
  const sandbox = await Sandbox.create({ program: launch.program, env: launch.env });
  const { workspace } = sandbox;
  assert.ok(existsSync(workspace));
  const out = [];
  const r = await sandbox.commands.run("pwd; echo err >&2", {
    onStdout: (text) => {
      out.push(text);
    },
  });
  assert.equal(r.exitCode, 0);
  assert.equal(r.stdout, workspace + "\n");
  assert.equal(r.stderr, "err\n");
  assert.equal(out.join(""), workspace + "\n");
  await sandbox.files.write("hello.txt", "hello");
  assert.equal(await sandbox.files.read("hello.txt"), "hello");
  assert.equal((await sandbox.commands.run("cat hello.txt")).stdout, "hello");
  await sandbox.kill();
  assert.equal(existsSync(workspace), false);
  await assert.rejects(sandbox.commands.run("true"));
});

async function shared(t, options = {}) {
  const p = places(t);
  const client = await Client.launch({ ...p.launch, ...options.client });
  later(t, () => client.close());
  const sandbox = await Sandbox.create({ client, workspace: p.work, ...options });
  return { ...p, client, sandbox };
}

test("commands share the network and /tmp", async (t) => {
  const { sandbox, client } = await shared(t);
  const server = await sandbox.commands.start(["python3", "-m", "http.server", "8000"]);
  assert.equal((await server.waitFor({ port: true }, { timeoutMs: 60_000 })).port, 8000);
  await sandbox.commands.run("echo note >/tmp/note");
  const { stdout } = await sandbox.commands.run(`cat /tmp/note; python3 -c '
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:8000/").status)'`);
  assert.equal(stdout, "note\n200\n");
  assert.deepEqual(
    (await client.listSandboxes()).map((s) => s.name),
    [sandbox.sandboxId],
  );
  assert.deepEqual(
    (await sandbox.commands.list()).map((r) => r.runId),
    [server.id],
  );
  await sandbox.kill();
  assert.deepEqual(await client.listSandboxes(), []);
  await assert.rejects(server.wait(), CommandExitError);
  assert.equal(await sandbox.isRunning(), false);
  await sandbox.kill(); // twice is once
});

test("another exit code than 0 is an error of commands.run, and none of exec", async (t) => {
  const { sandbox } = await shared(t);
  await assert.rejects(sandbox.commands.run("echo out; echo err >&2; exit 3"), (e) => {
    assert.ok(e instanceof CommandExitError);
    assert.equal(e.stdout, "out\n");
    assert.equal(e.stderr, "err\n");
    return e.exitCode === 3 && e.result.exitCode === 3;
  });
  assert.equal(await (await sandbox.exec(["sh", "-c", "exit 3"])).wait(), 3);
});

test("variables, directories and a time limit", async (t) => {
  const { sandbox, work } = await shared(t, { envs: { A: "1", B: "2" } });
  mkdirSync(join(work, "it's"));
  const { stdout } = await sandbox.commands.run("echo $A $B; pwd", { cwd: "it's", envs: { B: "x y" } });
  assert.equal(stdout, `1 x y\n${join(work, "it's")}\n`);
  await assert.rejects(sandbox.commands.run("true", { cwd: "none" }), CommandExitError);
  await assert.rejects(sandbox.commands.start(["true"], { cwd: "x" }), InvalidError);
  await assert.rejects(
    sandbox.commands.run("sleep 1000", { timeoutMs: 50 }),
    (e) => e.result.end === "timed_out",
  );
});

test("a command in the background: output, input, end", async (t) => {
  const { sandbox } = await shared(t);
  let text = "";
  const run = await sandbox.commands.run("while read x; do echo got $x; done", {
    background: true,
    openStdin: true,
    onStdout: (s) => {
      text += s;
    },
  });
  await sandbox.commands.sendStdin(run.id, "a\n");
  await sandbox.commands.connect(run.id).waitFor({ match: "got a", after: 0 });
  assert.equal(run.pid, run.id);
  assert.equal(await run.kill(), true);
  await assert.rejects(run.wait(), (e) => e.stdout === "got a\n");
  assert.equal(text, "got a\n");
  assert.equal(await sandbox.commands.kill(run.id), false);
});

test("a process with streams", async (t) => {
  const { sandbox } = await shared(t);
  const p = await sandbox.exec(["sh", "-c", "read x; echo out $x; read x; echo err $x >&2; exit 4"]);
  await p.stdin.writeText("a\n");
  await p.stdin.writeBytes(new TextEncoder().encode("b\n"));
  await p.stdin.close();
  assert.equal(await p.wait(), 4);
  assert.deepEqual([await p.stdout.readText(), await p.stderr.readText()], ["out a\n", "err b\n"]);
  const texts = [];
  for await (const text of p.stdout) texts.push(text);
  assert.equal(texts.join(""), "out a\n");
});

test("a command with a grant runs in a sandbox of its own, in the same workspace", async (t) => {
  const { sandbox, dir } = await shared(t);
  const out = join(dir, "out");
  mkdirSync(out);
  const script = `echo x >${out}/file`;
  const denied = await sandbox.commands.run(script).catch((e) => e);
  assert.deepEqual(denied.result.grants, [`--rw ${out}`]);
  await sandbox.commands.run(script, { grants: denied.result.grants });
  assert.ok(existsSync(join(out, "file")));
});

test("what does not run is an error", async (t) => {
  const { sandbox } = await shared(t);
  await assert.rejects(
    sandbox.exec(["no-such-program"]),
    (e) => e instanceof NotRunError && e.result.exitCode === 127,
  );
  await assert.rejects(sandbox.commands.run("true", { flags: ["--nonsense"] }), RequestError);
  await assert.rejects(AnySandbox.create(), InvalidError);
  await assert.rejects(AnySandbox.create({ client: sandbox.client, workspace: "/no/such/directory" }));
  const before = await sandbox.client.files("/tmp").list(".");
  await assert.rejects(AnySandbox.create({ client: sandbox.client, name: "a/b" }), RequestError);
  const left = (await sandbox.client.files("/tmp").list(".")).filter((e) =>
    /^sallyport-[0-9a-f]{32}$/.test(e.name),
  );
  assert.ok(
    left.every((e) => before.some((b) => b.name === e.name)),
    "the new workspace was left",
  );
});

test("two clients use one sandbox by its name", async (t) => {
  const { url, work } = await serve(t);
  const one = await Sandbox.create({ url, workspace: work, name: "web" });
  const two = await Sandbox.create({ url, workspace: work, name: "web" });
  await one.commands.run("echo hi >/tmp/x");
  assert.equal((await two.commands.run("cat /tmp/x")).stdout, "hi\n");
  await two.kill();
  await one.kill();
  assert.ok(existsSync(work));
});
