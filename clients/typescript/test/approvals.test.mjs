// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Client, NotRunError, RequestError } from "../dist/node.js";
import { later, places, serve } from "./helpers.mjs";

async function asked(t, onApproval, options = {}) {
  const p = places(t);
  const out = join(p.dir, "out");
  mkdirSync(out);
  const client = await Client.launch({ ...p.launch, ...options, onApproval });
  later(t, () => client.close());
  return { client, out, script: `echo x >>${out}/file` };
}

test("a command that asks for more runs when the program approves", async (t) => {
  const questions = [];
  const { client, out, script } = await asked(t, (q) => {
    questions.push(q);
    return "approved";
  });
  const r = await client.run(script, { askFor: [out], justification: "to write the report" });
  assert.equal(r.exitCode, 0);
  assert.equal(readFileSync(join(out, "file"), "utf8"), "x\n");
  assert.equal(questions.length, 1);
  const [q] = questions;
  assert.equal(q.kind, "command");
  assert.deepEqual(q.requires, [`write:${out}`]);
  assert.equal(q.justification, "to write the report");
  assert.ok(q.decisions.includes("approved") && q.decisions.includes("denied"));
  assert.match(q.argv.join(" "), /echo x/);
  assert.match(q.runId, /^[0-9]+$/);
  assert.equal(q.raw.type, "approval_request");
  assert.equal(r.approvals[0].decision, "approved");
});

test("an answer with a message, from a promise", async (t) => {
  const { client, out, script } = await asked(t, async () => ({
    decision: "denied",
    message: "not on a Friday",
  }));
  await assert.rejects(client.run(script, { askFor: [out] }), (e) => {
    assert.ok(e instanceof NotRunError);
    assert.equal(e.result.exitCode, 123);
    assert.ok(e.refused);
    return /not on a Friday/.test(e.message);
  });
  assert.equal(existsSync(join(out, "file")), false);
});

for (const [name, answer] of Object.entries({
  nothing: () => undefined,
  "an error": () => {
    throw new Error("mine");
  },
  "a word that is none": () => "yes",
  "a word that was not offered": () => "network_policy_amendment",
  "an object without a word": () => ({}),
})) {
  test(`${name} does not approve`, async (t) => {
    const { client, out, script } = await asked(t, answer);
    await assert.rejects(client.run(script, { askFor: [out] }), (e) => e instanceof NotRunError && e.refused);
    assert.equal(existsSync(join(out, "file")), false);
    assert.equal((await client.run("echo still here")).stdout, "still here\n");
  });
}

test("a denied command is asked about, and runs again with the grant", async (t) => {
  const questions = [];
  const { client, out, script } = await asked(t, (q) => {
    questions.push(q);
    return "approved";
  });
  const r = await client.run(script);
  assert.equal(r.exitCode, 0);
  assert.equal(questions[0].kind, "access");
  assert.equal(questions[0].denials[0].grant, `--rw ${out}`);
  assert.equal(r.first.exit_code !== 0, true);
  assert.equal(readFileSync(join(out, "file"), "utf8"), "x\n");
});

test("an offer to remember a rule is taken", async (t) => {
  const questions = [];
  const { client } = await asked(t, (q) => {
    questions.push(q);
    return q.offers.find((o) => o.decision === "approved_execpolicy_amendment")?.decision;
  });
  const options = { flags: ["--approval", "untrusted"] };
  assert.equal((await client.run(["touch", "a"], options)).exitCode, 0);
  assert.deepEqual(questions[0].offers[0].rule, ["touch", "a"]);
  assert.equal((await client.run(["touch", "a"], options)).exitCode, 0);
  assert.equal(questions.length, 1, "it asked again");
});

test("a question that is over is withdrawn", async (t) => {
  let withdrawn;
  const over = new Promise((resolve) => {
    withdrawn = resolve;
  });
  const own = new AbortController();
  const { client, out, script } = await asked(
    t,
    (q) =>
      new Promise((resolve) => {
        q.withdrawn.addEventListener("abort", () => {
          withdrawn();
          resolve("approved");
        });
        own.abort();
      }),
  );
  await assert.rejects(client.run(script, { askFor: [out], signal: own.signal }), { name: "AbortError" });
  await over;
  assert.equal(existsSync(join(out, "file")), false);
  assert.deepEqual(await client.list(), []);
});

test("another client answers, and only the first answer counts", async (t) => {
  const { url, dir } = await serve(t);
  const out = join(dir, "out");
  mkdirSync(out);
  let ask, gone;
  const asks = new Promise((resolve) => {
    ask = resolve;
  });
  const goes = new Promise((resolve) => {
    gone = resolve;
  });
  const one = await Client.connect(url, {
    onApproval: (q) =>
      new Promise(() => {
        ask(q);
        q.withdrawn.addEventListener("abort", gone);
      }),
  });
  later(t, () => one.close());
  const two = await Client.connect(url);
  later(t, () => two.close());
  const runs = one.run(`echo x >${out}/file`, { askFor: [out] });
  const question = await asks;
  const [same] = await two.questions();
  assert.equal(same.id, question.id);
  assert.equal(same.runId, question.runId);
  await two.answer(same, "approved");
  assert.equal((await runs).exitCode, 0);
  await goes;
  await assert.rejects(
    two.answer(same, "denied"),
    (e) => e instanceof RequestError && e.reason === "unknownQuestion",
  );
  assert.deepEqual(await two.questions(), []);
});

test("what is not remembered cannot be forgotten", async (t) => {
  const { client } = await asked(t, () => "approved");
  await assert.rejects(
    client.forget("1"),
    (e) => e instanceof RequestError && e.reason === "unknownQuestion",
  );
});
