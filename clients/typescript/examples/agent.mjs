// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// An agent loop with a scripted model: it asks for commands, gets a denial, asks for the grant, and the
// program approves.
//
//	node examples/agent.mjs [PROGRAM]     PROGRAM is the path of sallyport (default: in PATH)
// @ts-check
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import { Client, NotRunError } from "sallyport-client/node";

/** @typedef {{ command: string, askFor?: string[], justification?: string } | { say: string }} Step */

/**
 * What a model would answer to what it has seen. A real one gets `history` in its messages.
 * @param {string[]} history
 * @param {string} out
 * @returns {Step}
 */
function model(history, out) {
  const last = history.at(-1) ?? "";
  if (history.length === 0) return { command: "printf '2\\n1\\n' >numbers; sort -n numbers" };
  if (history.length === 1) return { command: `sort -n numbers >${out}/sorted` };
  const grant = /^denied: write .* \(grant: --rw (\S+)\)$/m.exec(last);
  if (grant) {
    return {
      command: `sort -n numbers >${out}/sorted && cat ${out}/sorted`,
      askFor: [/** @type {string} */ (grant[1])],
      justification: "the report belongs into that directory",
    };
  }
  return { say: "The numbers are sorted." };
}

const base = realpathSync(mkdtempSync(join(homedir(), "sallyport-example-")));
const work = join(base, "work");
const out = join(base, "reports");
mkdirSync(work);
mkdirSync(out);

const client = await Client.launch({
  ...(process.argv[2] === undefined ? {} : { program: process.argv[2] }),
  cwd: work,
  onApproval: (q) => {
    // A real program shows the question to a person. This one lets commands write the reports, and nothing
    // else.
    if (q.kind !== "command") return undefined; // the model asks itself
    const ok = q.requires.every((what) => what === `write:${out}`);
    console.log(
      `  question: ${q.requires.join(", ").replaceAll(base, "...")} (${q.justification}):`,
      ok ? "approved" : "denied",
    );
    return ok ? "approved" : { decision: "denied", message: "only the reports may be written" };
  },
});
try {
  /** @type {string[]} */
  const history = [];
  for (;;) {
    const step = model(history, out);
    if ("say" in step) {
      console.log(`model: ${step.say}`);
      break;
    }
    console.log(`model: ${step.command.replaceAll(base, "...")}`);
    const { command, ...options } = step;
    /** @type {string[]} */
    const seen = [];
    try {
      const result = await client.run(command, { ...options, cwd: work, timeoutMs: 60_000 });
      seen.push(`exit code ${result.exitCode}`);
      if (result.stdout !== "") seen.push(result.stdout.trimEnd());
      for (const d of result.denials) seen.push(`denied: ${d.op} ${d.path} (grant: ${d.grant || "none"})`);
    } catch (e) {
      if (!(e instanceof NotRunError)) throw e;
      seen.push(`not run: ${e.message}`);
    }
    history.push(seen.join("\n"));
    console.log(history.at(-1)?.replaceAll(base, "...").replace(/^/gm, "  "));
  }
} finally {
  await client.close();
  rmSync(base, { recursive: true });
}
