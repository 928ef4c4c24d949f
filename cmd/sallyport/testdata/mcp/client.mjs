// Drives sallyport mcp by the TypeScript SDK (npm @modelcontextprotocol/sdk): a session, an approval by elicitation,
// and every tool, whose answers the SDK validates. Arguments: the directory of the SDK, the program, a workspace.
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";

const [modules, program, dir] = process.argv.slice(2);
const sdk = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}`).href);
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { ElicitRequestSchema } = await sdk("types.js");

const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision: "approved" } };
});
await client.connect(new StdioClientTransport({ command: program, args: ["mcp", "-C", dir], env: process.env }));

async function call(name, args) {
  const answer = await client.callTool({ name, arguments: args });
  assert.ok(!answer.isError, `${name}: ${JSON.stringify(answer.content)}`);
  return answer.structuredContent;
}

const tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
assert.deepEqual(tools, ["check", "exec", "list", "patch", "read", "screen", "signal", "wait", "write"]);

let run = await call("exec", { cmd: "echo up; read x; echo got $x", tty: true, wait_for: ["match=up"] });
assert.equal(run.state, "running");
assert.equal((await call("screen", { session_id: run.session_id })).lines.length, 24);
assert.equal((await call("list", {})).sessions.length, 1);
await call("write", { session_id: run.session_id, chars: "hello\n" });
run = await call("wait", { session_id: run.run });
assert.equal(run.exit_code, 0);
assert.match((await call("read", { session_id: run.run, search: "^got" })).output, /got hello/);

run = await call("exec", { cmd: "echo outside", sandbox_permissions: "require_escalated", justification: "why" });
assert.equal(run.output, "outside\n");
assert.match(asked.join(), /echo outside/);

run = await call("exec", { cmd: "exec sleep 600", yield_time_ms: 250 });
assert.equal((await call("signal", { session_id: run.session_id, signal: "KILL", yield_time_ms: 10000 })).state, "ended");
assert.equal((await call("check", { cmd: "ls" })).decision, "allow");
assert.equal((await call("patch", { patch: "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch" })).applied, true);
await assert.rejects(client.readResource({ uri: "sallyport://runs/999999/output" }), { code: -32002 });
await client.close();
