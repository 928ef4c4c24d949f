// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// The shape that users of E2B know.
//
//	node examples/sandbox.mjs [PROGRAM]     PROGRAM is the path of sallyport (default: in PATH)
// @ts-check
import { homedir } from "node:os";

import { CommandExitError, Sandbox } from "sallyport-client/node";

const sandbox = await Sandbox.create(process.argv[2] === undefined ? {} : { program: process.argv[2] });
try {
  await sandbox.files.write("hello.py", "print('hello from', 2026)\n");
  await sandbox.commands.run("python3 hello.py", { onStdout: (text) => process.stdout.write(text) });
  const server = await sandbox.commands.start(["python3", "-m", "http.server", "8000"]);
  const { port } = await server.waitFor({ port: true }, { timeoutMs: 60_000 });
  const { stdout } = await sandbox.commands.run(
    `python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:${port}/hello.py").status)'`,
  );
  console.log("the server answers", stdout.trim());
  await sandbox.commands.run("echo hi >~/note").catch((e) => {
    if (!(e instanceof CommandExitError)) throw e;
    const [denial] = e.result.denials;
    console.log(`exit code ${e.exitCode}: denied to ${denial?.op} ${denial?.path.replace(homedir(), "~")}`);
  });
} finally {
  await sandbox.kill();
}
