// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Drives sallyport mcp by the TypeScript SDK of the protocol, and prints each message of both sides as a line.
// node client.mjs MODULES SALLYPORT

import assert from "node:assert/strict";

const [, , modules, sallyport] = process.argv;
const sdk = `${modules}/@modelcontextprotocol/sdk/dist/esm`;
const { Client } = await import(`${sdk}/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
const { ElicitRequestSchema } = await import(`${sdk}/types.js`);

const transport = new StdioClientTransport({ command: sallyport, args: ["mcp"], env: process.env });
const print = (side, message) => console.log(JSON.stringify({ [side]: message }));
const send = transport.send.bind(transport);
transport.send = (message, options) => {
  print("client", message);
  return send(message, options);
};
const client = new Client({ name: "peer", version: "1" }, { capabilities: { elicitation: {} } });
let answer;
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  assert.match(params.message, /touch ran/);
  assert.deepEqual(params.requestedSchema.required, ["decision"]);
  return answer;
});
const connecting = client.connect(transport);
const receive = transport.onmessage;
transport.onmessage = (message, extra) => {
  print("server", message);
  receive(message, extra);
};
await connecting;
assert.equal((await client.listTools()).tools.length, 9); // from now on answers are validated
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  return result.isError ? result.content[0].text : result.structuredContent;
};

// A session with a pipe.
let r = await call("exec", { cmd: "mkfifo p && echo made" });
assert.equal(r.output, "made\n");
const script = 'echo ready; while read x && [ "$x" != quit ]; do echo "got $x"; done; echo bye; read x <p; exit 3';
r = await call("exec", { cmd: script, keep_stdin: true, wait_for: ["match=ready"], yield_time_ms: 60000 });
assert.equal(r.state, "running");
const id = r.session_id;
r = await call("write", { session_id: id, chars: "one\n", wait_for: ["match=got one"], yield_time_ms: 60000 });
assert.equal(r.output, "got one\n");
r = await call("write", { session_id: id, chars: "two\nerror: here\n", wait_for: ["match=error: here"], yield_time_ms: 60000 });
assert.equal(r.output, "got two\ngot error: here\n");
r = await call("write", { session_id: id, chars: "quit\n", close_stdin: true, wait_for: ["match=bye"], yield_time_ms: 60000 });
assert.equal(r.reason, "match");
r = await call("list", {});
assert.equal(r.sessions.length, 1);
await call("exec", { cmd: "echo >p" });
r = await call("wait", { session_id: id, timeout_ms: 60000 });
assert.deepEqual([r.state, r.exit_code, r.reason], ["ended", 3, "exit"]);
r = await call("read", { session_id: id, search: "error", context: 1 });
assert.deepEqual(r.matches, [{ line: 4, text: "got error: here" }]);

// A session with a terminal, and a signal.
r = await call("exec", { cmd: 'stty size; read x; echo "typed $x"', tty: true, wait_for: ["match=24 80"], yield_time_ms: 60000 });
assert.equal(r.state, "running");
const screen = await call("screen", { session_id: r.session_id });
assert.equal(screen.lines[0], "24 80");
r = await call("write", { session_id: r.session_id, chars: "hi\n", wait_for: ["exit"], yield_time_ms: 60000 });
assert.match(r.output, /typed hi/);
r = await call("exec", { cmd: "echo up; exec sleep 600", wait_for: ["match=up"], yield_time_ms: 60000 });
r = await call("signal", { session_id: r.session_id, signal: "KILL", yield_time_ms: 60000 });
assert.equal(r.exit_code, 137);

// Approvals.
const asks = { cmd: "echo x >>ran; touch ran; cat ran", sandbox_permissions: "require_escalated", justification: "it must" };
for (answer of [{ action: "decline" }, { action: "cancel" }, { action: "accept", content: { decision: "denied" } }]) {
  r = await call("exec", asks);
  assert.deepEqual([r.end, r.exit_code], ["refused", 123]);
}
answer = { action: "accept", content: { decision: "approved" } };
r = await call("exec", asks);
assert.deepEqual([r.exit_code, r.output], [0, "x\n"]); // it ran once

// Mistakes and a denial.
assert.match(await call("exec", { cmmd: "true" }), /cmd/);
assert.match(await call("wait", { session_id: "99" }), /99/);
r = await call("patch", { patch: "*** Begin Patch\n*** Add File: new.txt\n+line\n*** End Patch" });
assert.equal(r.applied, true);
assert.equal((await call("check", { cmd: "ls" })).decision, "allow");
await assert.rejects(client.readResource({ uri: "sallyport://runs/99/output" }), { code: -32002 });
await client.close();
