// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { spawn } from "node:child_process";

import {
  Client as AnyClient,
  type ClientOptions,
  type ConnectOptions as AnyConnectOptions,
} from "./client.js";
import { ConnectionError, ProtocolError } from "./errors.js";
import { nodeDial, type NodeTarget } from "./node-websocket.js";
import { Sandbox as AnySandbox, type SandboxOptions as AnySandboxOptions } from "./sandbox.js";
import { webSocketDial, type Dial } from "./transport.js";

export * from "./index.js";

/** How a client connects. */
export interface ConnectOptions extends AnyConnectOptions, NodeTarget {}

/** Which server a client starts. */
export interface LaunchOptions extends ClientOptions {
  /** The program; default `"sallyport"`, looked up in PATH. */
  program?: string;
  /** Flags of `exec-server`. */
  args?: readonly string[];
  /** Its directory; default the current one. */
  cwd?: string;
  /** Its whole environment; default that of this process. */
  env?: Record<string, string>;
}

/** A connection with an exec-server, or with one that it starts. */
export class Client extends AnyClient {
  /** Connects with a server at `ws://HOST:PORT`, `wss://HOST:PORT` or `unix:///PATH`. */
  static override connect(url: string, options: ConnectOptions = {}): Promise<Client> {
    return this.open(
      options.webSocket ? webSocketDial(url, options.webSocket) : nodeDial(url, options),
      options,
    );
  }

  /**
   * Starts a server of its own, on standard input and output, which ends with the client and all of its runs.
   */
  static launch(options: LaunchOptions = {}): Promise<Client> {
    return this.open(launchDial(options), { ...options, resumeMs: 0 });
  }
}

/** How a sandbox is made. */
export interface SandboxOptions
  extends AnySandboxOptions, ConnectOptions, Omit<LaunchOptions, keyof ClientOptions> {
  cwd?: never;
}

/** A named sandbox with a workspace. Without `client` and `url` it is one of a server that it starts. */
export class Sandbox extends AnySandbox {
  static override create(options: SandboxOptions = {}): Promise<Sandbox> {
    return super.create(options);
  }

  /** @internal */
  protected static override connectFor(options: SandboxOptions): Promise<Client> {
    return options.url === undefined ? Client.launch(options) : Client.connect(options.url, options);
  }
}

const maxLine = 64 << 20;
const maxNotes = 4 << 10; // of standard error, for the error
const newline = 10;

function launchDial(options: LaunchOptions): Dial {
  return (events, signal) =>
    new Promise((resolve, reject) => {
      const program = options.program ?? "sallyport";
      const child = spawn(program, ["exec-server", "--listen", "stdio", ...(options.args ?? [])], {
        cwd: options.cwd,
        env: options.env ?? process.env,
        stdio: ["pipe", "pipe", "pipe"],
        windowsHide: true,
      });
      const decoder = new TextDecoder("utf-8", { fatal: true });
      let parts: Buffer[] = [];
      let length = 0;
      let notes = "";
      let failure: Error | undefined;
      let started = false;
      const fail = (why: Error): void => {
        failure ??= why;
        child.kill("SIGKILL");
      };
      child.once("spawn", () => {
        started = true;
        resolve({
          send: (message) => {
            if (child.stdin.writable) child.stdin.write(message + "\n");
          },
          close: () => child.stdin.end(),
        });
      });
      child.on("error", (e) => {
        if (!started)
          reject(new ConnectionError(`cannot start ${JSON.stringify(program)}: ${e.message}`, { cause: e }));
      });
      child.stdin.on("error", () => undefined); // its end says more
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        notes = (notes + text).slice(-maxNotes);
      });
      child.stdout.on("data", (data: Buffer) => {
        for (let from = 0; ;) {
          const at = data.indexOf(newline, from);
          const part = data.subarray(from, at < 0 ? undefined : at);
          parts.push(part);
          length += part.length;
          if (length > maxLine)
            return fail(new ProtocolError(`the server sent a line of more than ${maxLine} bytes`));
          if (at < 0) return;
          from = at + 1;
          const line = Buffer.concat(parts);
          parts = [];
          length = 0;
          let text: string;
          try {
            text = decoder.decode(line).trim();
          } catch (e) {
            return fail(new ProtocolError("the server sent text that is not UTF-8", { cause: e }));
          }
          if (text !== "" && failure === undefined) events.message(text);
        }
      });
      child.on("close", (code, by) => {
        const said = notes.trim() === "" ? "" : `: ${notes.trim()}`;
        events.ended(failure ?? new ConnectionError(`the server has ended (${by ?? code})${said}`));
      });
      signal.addEventListener("abort", () => fail(new ConnectionError("connecting was given up")), {
        once: true,
      });
    });
}
