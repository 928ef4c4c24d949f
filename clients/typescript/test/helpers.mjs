// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, watch } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** The program under test. */
export const program = process.env.SALLYPORT;
if (!program) throw new Error("set SALLYPORT to the path of a sallyport binary");

const base = process.env.SALLYPORT_TEST_DIR ?? tmpdir();

const stacks = new WeakMap();

/** Has a function called after the test. The last one is called first, unlike those of t.after. */
export function later(t, f) {
  if (!stacks.has(t)) {
    const stack = [];
    stacks.set(t, stack);
    t.after(async () => {
      for (const each of stack.reverse()) await each();
    });
  }
  stacks.get(t).push(f);
}

/** A new directory that is removed after the test. Commands have a private /tmp, so it is not below that. */
export function directory(t) {
  const dir = realpathSync(mkdtempSync(join(base, "sallyport-ts-")));
  later(t, () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The environment for a server with a home of its own. */
export function environment(home) {
  const env = { ...process.env };
  for (const name of Object.keys(env)) if (/^(XDG_|SALLYPORT_|NODE_)/.test(name)) delete env[name];
  return { ...env, HOME: home, SHELL: "/bin/sh" };
}

/** A home and a workspace, side by side. */
export function places(t) {
  const dir = directory(t);
  const home = join(dir, "home");
  const work = join(dir, "work");
  mkdirSync(home);
  mkdirSync(work);
  return { dir, home, work, launch: { program, cwd: work, env: environment(home) } };
}

/** Starts a server and returns its URL. It ends with the test. */
export async function serve(t, listen = "ws://127.0.0.1:0", flags = []) {
  const { dir, home, work } = places(t);
  const child = spawn(program, ["exec-server", "--listen", listen.replace("DIR", dir), ...flags], {
    cwd: work,
    env: environment(home),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  later(t, async () => {
    child.kill("SIGTERM");
    await ended;
  });
  for await (const line of createInterface({ input: child.stdout }))
    return { url: line, dir, home, work, child, ended };
  throw new Error("the server told no URL");
}

/** A relay in front of a server, whose connections can be cut. `pass` changes what the client sends first. */
export async function relay(t, url, pass = (head) => head) {
  const { hostname, port } = new URL(url);
  const open = new Set();
  let refuse = false,
    hold = false;
  const server = net.createServer((client) => {
    if (refuse) return client.destroy();
    const upstream = net.connect(Number(port), hostname);
    open.add(client).add(upstream);
    for (const [a, b] of [
      [client, upstream],
      [upstream, client],
    ]) {
      a.on("error", () => undefined).on("close", () => {
        open.delete(a);
        b.destroy();
      });
    }
    client.once("data", (head) => {
      upstream.write(pass(head));
      client.pipe(upstream);
    });
    upstream.on("data", (data) => {
      if (!hold) client.write(data);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(t, () => {
    server.close();
    for (const s of open) s.destroy();
  });
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    cut() {
      for (const s of open) s.destroy();
    },
    refuse(on) {
      refuse = on;
    },
    /** Loses what the server says. */
    hold(on) {
      hold = on;
    },
  };
}

/** Resolves when there is a file. */
export function appears(file) {
  return new Promise((resolve) => {
    const check = () => {
      if (!existsSync(file)) return;
      changes.close();
      resolve();
    };
    const changes = watch(dirname(file), check);
    check();
  });
}

/** Collects the pieces of an iterator. */
export async function all(iterator) {
  const out = [];
  for await (const x of iterator) out.push(x);
  return out;
}
