// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Connection } from "./connection.js";
import { fromBase64, toBase64, toBytes } from "./encoding.js";
import {
  ConnectionError,
  InvalidError,
  ProtocolError,
  RequestError,
  ShortWriteError,
  WaitTimeoutError,
} from "./errors.js";
import type { Size } from "./command.js";
import { Result } from "./result.js";
import type * as schema from "./schema.js";
import type { InputWait, Requests, RunReadParams, RunScreenResult } from "./schema.js";

// The most that one request for output returns, how long the server waits for some before it answers, and the
// most of one request with input.
const readBytes = 1 << 20;
const readWaitMs = 600_000;
const writeBytes = 1 << 20;

/** A piece of output. */
export interface Chunk {
  /** Counts the bytes of the output of the run, both streams in order of arrival. */
  offset: number;
  stream: "stdout" | "stderr";
  data: Uint8Array;
  /** The same as text. A character that two pieces share is in the second one. */
  text: string;
  /** It goes on where the last piece of its stream ended, without a gap. */
  joined: boolean;
  /** How many bytes before it are not retained; 0 with the option `reader`. */
  missing: number;
}

/** What gets output as it comes. The next piece is passed on when what they return has resolved. */
export interface OutputCallbacks {
  onStdout?: (text: string) => unknown;
  onStderr?: (text: string) => unknown;
}

/** Where reading begins, and what ends it. */
export interface OutputOptions {
  /** The offset to begin at; default 0. */
  after?: number;
  signal?: AbortSignal | undefined;
}

/** What ends a wait. */
export interface WaitOptions {
  /** Default: no limit. */
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

/** What {@link Run.waitFor} waits for: the first that holds. The end of the run always ends it. */
export interface Conditions {
  /** The end, which always counts. */
  exit?: boolean;
  /** No output for so long, counted from the beginning of the wait. */
  quietMs?: number;
  /** The run waits for input. */
  input?: boolean;
  /** A regular expression (RE2) matches the output, without control sequences. */
  match?: string;
  /** The pattern of `match` is for the bytes, with control sequences. */
  raw?: boolean;
  /** The run listens on a port. */
  port?: boolean;
  /** There is output. */
  firstOutput?: boolean;
  /** There is so much output. */
  bytes?: number;
  /**
   * The offset of the output from which on `match`, `firstOutput` and `bytes` count; default: where the last
   * one ended.
   */
  after?: number;
}

/** How a wait ended. */
export interface Reply {
  /** `exited`, `deadline`, `input_wait`, `password`, `output`, `bytes`, `match`, `idle` or `port`. */
  reason: string;
  /** How much output there is, as an offset. */
  next: number;
  /** Where the next wait begins to look; for a match where it ends. */
  after: number;
  /** Who waits for input. */
  input?: InputWait;
  /** The port that the command listens on. */
  port?: number;
  /** The result of a command that has ended, as far as one message carries it. */
  result?: Result;
  elapsedMs: number;
}

/** A command that runs at a server, or has run there. */
export class Run {
  /** The number of the run, in decimal. */
  readonly id: string;
  readonly #connection: Connection;
  readonly #reader: boolean;

  /** @internal */
  constructor(connection: Connection, id: string, reader: boolean) {
    this.#connection = connection;
    this.id = id;
    this.#reader = reader;
  }

  /** The output from an offset on, as it comes, up to the end. */
  async *output(options: OutputOptions = {}): AsyncGenerator<Chunk, void, undefined> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    let at = options.after ?? 0;
    let complete = false;
    try {
      while (!complete) {
        const page = await this.#read({ after: at, waitMs: readWaitMs }, options.signal);
        for (const c of page.chunks) {
          const data = fromBase64(c.chunk);
          const stream = c.stream === "stderr" ? "stderr" : "stdout";
          yield {
            offset: c.offset,
            stream,
            data,
            missing: c.missing ?? 0,
            joined: c.joined ?? false,
            text: decoders[stream].decode(data, { stream: true }),
          };
        }
        complete = page.complete;
        at = Math.max(at, page.next);
      }
    } finally {
      if (this.#reader && !complete) {
        // the command is not to wait for what nobody reads
        await this.#read({ after: at, maxBytes: 1, reader: { leaves: true } }).catch(ignoreEnd);
      }
    }
  }

  #read(p: Omit<RunReadParams, "runId">, signal?: AbortSignal): Promise<Requests["run/read"]["result"]> {
    const params: RunReadParams = { runId: this.id, maxBytes: readBytes, ...p };
    if (this.#reader) params.reader ??= {};
    return this.#connection.call("run/read", params, { repeat: true, signal });
  }

  /** Passes the output on to functions, up to the end. An error that one of them throws ends it. */
  async stream(callbacks: OutputCallbacks, options: OutputOptions = {}): Promise<void> {
    for await (const chunk of this.output(options)) {
      if (chunk.text === "") continue;
      await (chunk.stream === "stderr" ? callbacks.onStderr : callbacks.onStdout)?.(chunk.text);
    }
  }

  /** Writes to the input. Each byte arrives once, also where the connection is cut. */
  async write(data: string | Uint8Array, options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const bytes = toBytes(data);
    for (let n = 0; n < bytes.length; n += writeBytes) {
      try {
        await this.#connection.call(
          "run/write",
          {
            runId: this.id,
            chunk: toBase64(bytes.subarray(n, n + writeBytes)),
            writeId: randomId(),
          },
          { repeat: true, signal: options.signal },
        );
      } catch (e) {
        if (e instanceof RequestError && e.reason === "inputFull") throw new ShortWriteError(n + e.taken, e);
        throw e;
      }
    }
  }

  /** Ends the input, after what was written. */
  async closeStdin(): Promise<void> {
    await this.#connection.call("run/closeStdin", { runId: this.id }, { repeat: true });
  }

  /** Waits for the first condition that holds, for the end of the run, or for `timeoutMs` (`deadline`). */
  async waitFor(conditions: Conditions, options: WaitOptions = {}): Promise<Reply> {
    if (conditions === null || typeof conditions !== "object")
      throw new InvalidError("conditions must be an object");
    const { result, ...rest } = await this.#connection.call(
      "run/wait",
      {
        runId: this.id,
        for: { ...conditions, exit: true },
        ...(options.timeoutMs === undefined ? {} : { timeoutMs: Math.ceil(options.timeoutMs) }),
      },
      { repeat: true, signal: options.signal },
    );
    return result == null ? rest : { ...rest, result: new Result(result) };
  }

  /**
   * Waits for the end, and returns the result with its output. After `timeoutMs` it is a {@link
   * WaitTimeoutError}.
   */
  async wait(options: WaitOptions = {}): Promise<Result> {
    const { reason } = await this.waitFor({}, options);
    if (reason === "deadline")
      throw new WaitTimeoutError(`the command did not end within ${options.timeoutMs} ms`);
    return this.result(options);
  }

  /** The result of a run that has ended; with `output: false` without its output. */
  async result(options: { output?: boolean; signal?: AbortSignal | undefined } = {}): Promise<Result> {
    if (options.output === false) {
      const { result } = await this.#connection.call(
        "run/result",
        { runId: this.id, output: false },
        { repeat: true, signal: options.signal },
      );
      if (result == null) throw new ProtocolError("the server sent no result");
      return new Result(result);
    }
    const parts: Uint8Array[] = [];
    for (let from = 0; ;) {
      // one message may not carry it
      const got = await this.#connection.call(
        "run/result",
        { runId: this.id, output: true, from },
        { repeat: true, signal: options.signal },
      );
      if (got.result != null) return new Result(got.result); // all of it, from servers that know no parts
      const part = fromBase64(got.part ?? "");
      parts.push(part);
      from += part.length;
      if (got.complete) return parseResult(parts);
      if (part.length === 0) throw new ProtocolError("the server sent a part of a result that is empty");
    }
  }

  /** What the terminal shows. It needs the options `tty` and `screen`. */
  screen(): Promise<RunScreenResult> {
    return this.#connection.call("run/screen", { runId: this.id }, { repeat: true });
  }

  /** Changes the size of the terminal. After the end it has no effect. */
  async resize(size: Size): Promise<void> {
    await this.#connection.call(
      "run/resize",
      { runId: this.id, cols: size.cols, rows: size.rows },
      { repeat: true },
    );
  }

  /** Sends a signal, such as `"SIGINT"`, to the process group. After the end it has no effect. */
  async signal(name: string): Promise<void> {
    await this.#connection.call("run/signal", { runId: this.id, signal: name });
  }

  /** Ends the run, waits for its end, and reports whether it was alive. */
  async terminate(): Promise<boolean> {
    return (await this.#connection.call("run/terminate", { runId: this.id }, { repeat: true })).running;
  }

  /** Terminates the run, if it is alive, and has the server forget it. */
  async remove(): Promise<void> {
    try {
      await this.#connection.call("run/remove", { runId: this.id });
    } catch (e) {
      if (!(e instanceof ConnectionError && e.sent)) throw e;
      await this.#connection
        .call("run/remove", { runId: this.id }, { repeat: true })
        .catch((again: unknown) => {
          // Unknown: the first one was performed.
          if (!(again instanceof RequestError && again.reason === "unknownRun")) throw again;
        });
    }
  }
}

/** A text that no other call has returned. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

function parseResult(parts: Uint8Array[]): Result {
  const text = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    text.set(p, at);
    at += p.length;
  }
  try {
    return new Result(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text)) as schema.Result);
  } catch (e) {
    throw new ProtocolError("the server sent a result that cannot be read", { cause: e });
  }
}

// A reader that leaves has no use for the answer.
function ignoreEnd(e: unknown): void {
  if (!(e instanceof RequestError || e instanceof ConnectionError)) throw e;
}
