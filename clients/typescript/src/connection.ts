// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import {
  ClosedError,
  codes,
  ConnectionError,
  InvalidError,
  ProtocolError,
  refusal,
  RequestError,
  SallyportError,
  StatusError,
  UnsupportedError,
} from "./errors.js";
import type { InitializeResult, Requests } from "./schema.js";
import { maxMessage, type Dial, type Transport } from "./transport.js";

// How long connecting and the handshake may take together, and how long the answer to a start that was
// canceled is waited for.
const handshakeMs = 10_000;
const settleMs = 10_000;
// The pauses between two attempts to resume. The first attempt is made at once.
const minPauseMs = 20;
const maxPauseMs = 2_000;
const uselessPauseMs = 100;

/** Options of a {@link Connection}. */
export interface ConnectionOptions {
  dial: Dial;
  clientName: string;
  approvals: boolean;
  /** How long a session without a connection is tried to be resumed; 0 means not at all. */
  resumeMs: number;
  /** Answers a request of the server. Its signal is aborted when the interest of the server has ended. */
  request(method: string, params: unknown, signal: AbortSignal): Promise<unknown>;
  notify(method: string, params: unknown): void;
  resumed(): void;
}

/** Options of {@link Connection.call}. */
export interface CallOptions {
  /** The request may be performed twice: it is sent again after a cut. */
  repeat?: boolean;
  /** Withdraws the request. */
  signal?: AbortSignal | undefined;
}

interface Call {
  message: string;
  repeat: boolean;
  sent: boolean;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface Message {
  id?: unknown;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

/** A session with a server, over one connection after the other. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #calls = new Map<number, Call>();
  readonly #life = new AbortController();
  readonly #over: Promise<Error>;
  #end!: (why: Error) => void;
  #transport: Transport | undefined;
  #hello!: InitializeResult;
  #last = 0;
  #error: Error | undefined;

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#over = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** Connects and makes a session. */
  static async open(options: ConnectionOptions, signal?: AbortSignal): Promise<Connection> {
    signal?.throwIfAborted();
    const c = new Connection(options);
    const abort = (): void => c.#life.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    try {
      await c.#meet("");
    } catch (e) {
      signal?.throwIfAborted();
      throw e;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
    return c;
  }

  /** What the server said when they met last. */
  get hello(): InitializeResult {
    return this.#hello;
  }

  /** Resolves with the reason when there will be no connection any more. */
  get over(): Promise<Error> {
    return this.#over;
  }

  /** Performs a request. It waits while there is no connection. */
  call<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    options: CallOptions = {},
  ): Promise<Requests[M]["result"]> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      if (this.#error !== undefined) {
        reject(this.#error);
        return;
      }
      const id = ++this.#last;
      const message = JSON.stringify({ id, method, params });
      if (message.length > maxMessage / 4 && new TextEncoder().encode(message).length > maxMessage) {
        reject(
          new InvalidError(
            `the request is longer than ${maxMessage} bytes, the most that one message carries; ` +
              "send less at once",
          ),
        );
        return;
      }
      let timer: ReturnType<typeof setTimeout> | undefined;
      const finish = (): void => {
        this.#calls.delete(id);
        signal?.removeEventListener("abort", abort);
        clearTimeout(timer);
      };
      const call: Call = {
        message,
        repeat: options.repeat ?? false,
        sent: this.#transport !== undefined,
        resolve: (result) => {
          finish();
          resolve(result as Requests[M]["result"]);
        },
        reject: (error) => {
          finish();
          const canceled = error instanceof RequestError && error.code === codes.canceled;
          reject((canceled && signal?.aborted ? signal.reason : error) as Error);
        },
      };
      // The server is told, so that nothing waits there any more. A start is then answered: with an error, or
      // it came too late.
      const abort = (): void => {
        call.repeat = false;
        if (method.startsWith("run/")) this.#send({ method: "request/cancel", params: { id } });
        if (method !== "run/start" || !call.sent) {
          call.reject(signal!.reason);
          return;
        }
        timer = setTimeout(
          () =>
            call.reject(
              new ConnectionError("no answer to a start that was canceled", {
                sent: true,
                cause: signal!.reason,
              }),
            ),
          settleMs,
        );
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#calls.set(id, call);
      this.#transport?.send(message);
    });
  }

  /** Ends the connection. The server keeps the session, and its runs go on. */
  async close(): Promise<void> {
    this.#fail(new ClosedError("the client is closed"));
    await this.#over;
  }

  #send(message: Message): void {
    this.#transport?.send(JSON.stringify(message));
  }

  // meet connects and performs the handshake within its time; session is one to resume, or empty.
  async #meet(session: string): Promise<void> {
    const life = this.#life.signal;
    const limit = new AbortController();
    const giveUp = (): void => limit.abort(life.reason);
    life.addEventListener("abort", giveUp, { once: true });
    if (life.aborted) giveUp();
    const silent = new ConnectionError(`the server did not answer within ${handshakeMs / 1000} s`);
    const timer = setTimeout(() => limit.abort(silent), handshakeMs);
    try {
      await this.#greet(session, limit.signal);
    } catch (e) {
      limit.abort(e); // a connection that is made, or was
      throw e;
    } finally {
      clearTimeout(timer);
      life.removeEventListener("abort", giveUp);
    }
  }

  // greet connects and performs the handshake. The connection is closed when the signal ends before that is done.
  #greet(session: string, signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const id = ++this.#last;
      let transport: Transport | undefined;
      let useful = false;
      let greeted = false;
      const work = new AbortController();
      const asked = new Map<unknown, AbortController>();
      const receive = (m: Message): void => {
        useful = greeted;
        if (greeted || m.id !== id || m.method !== undefined) {
          this.#receive(m, asked, work.signal, transport!);
          return;
        }
        this.#hello = helloOf(m, session);
        greeted = true;
        transport!.send(JSON.stringify({ method: "initialized", params: {} }));
        this.#attach(transport!);
        resolve();
      };
      const message = (text: string): void => {
        if (signal.aborted && !greeted) return;
        try {
          receive(parse(text));
        } catch (e) {
          reject(e as Error);
          if (greeted) this.#fail(e as Error); // it would do the same again
        }
      };
      const ended = (why: Error): void => {
        work.abort(why);
        if (greeted) this.#cut(why, useful);
        else reject(why);
      };
      const giveUp = (): void => {
        reject(signal.reason as Error);
        if (!greeted) transport?.close();
      };
      signal.addEventListener("abort", giveUp, { once: true });
      const dials = this.#options.dial({ message, ended }, signal);
      dials.then((t) => {
        transport = t;
        if (signal.aborted) t.close();
        else t.send(this.#initialize(id, session));
      }, reject);
    });
  }

  #initialize(id: number, session: string): string {
    const { clientName, approvals } = this.#options;
    // The server may not have seen yet that the connection before was cut.
    const resume = session === "" ? {} : { resumeSessionId: session, takeOver: true };
    const params = { clientName, extensionMethods: true, approvals, ...resume };
    return JSON.stringify({ id, method: "initialize", params });
  }

  // attach uses a new connection and sends what waits.
  #attach(transport: Transport): void {
    this.#transport = transport;
    for (const call of this.#calls.values()) {
      // in the order of their IDs
      call.sent = true;
      transport.send(call.message);
    }
  }

  #receive(m: Message, asked: Map<unknown, AbortController>, life: AbortSignal, transport: Transport): void {
    if (typeof m.method === "string") {
      if (m.id === undefined) {
        if (m.method === "request/cancel") asked.get((m.params as { id?: unknown } | undefined)?.id)?.abort();
        else this.#options.notify(m.method, m.params);
      } else {
        void this.#answer(m.id, m.method, m.params, asked, life, transport);
      }
      return;
    }
    if (m.error !== undefined && m.id === -1) {
      // of which request it is said is not known
      throw new ProtocolError(`the server could not read a message: ${refusal(m.error).message}`);
    }
    // One that was given up waits no more.
    const call = typeof m.id === "number" ? this.#calls.get(m.id) : undefined;
    if (m.error !== undefined) call?.reject(refusal(m.error));
    else call?.resolve(m.result);
  }

  async #answer(
    id: unknown,
    method: string,
    params: unknown,
    asked: Map<unknown, AbortController>,
    life: AbortSignal,
    transport: Transport,
  ): Promise<void> {
    const own = new AbortController();
    const end = (): void => own.abort(life.reason);
    life.addEventListener("abort", end, { once: true });
    asked.set(id, own);
    let message: Message;
    try {
      message = { id, result: await this.#options.request(method, params, own.signal) };
    } catch (e) {
      const code = e instanceof RequestError ? e.code : codes.system;
      message = { id, error: { code, message: e instanceof Error ? e.message : String(e) } };
    }
    life.removeEventListener("abort", end);
    if (asked.get(id) === own) asked.delete(id); // the ID may be used again
    if (!life.aborted) transport.send(JSON.stringify(message));
  }

  // cut gives up a connection, ends the calls that must not be repeated, and resumes the session.
  #cut(why: Error, useful: boolean): void {
    this.#transport = undefined;
    if (this.#error !== undefined) {
      this.#end(this.#error);
      return;
    }
    for (const call of [...this.#calls.values()]) {
      if (call.sent && !call.repeat) {
        call.reject(lost(why));
      }
    }
    this.#resume(why, useful).then(
      () => this.#options.resumed(),
      (e: unknown) => this.#fail(e as Error),
    );
  }

  async #resume(cut: Error, useful: boolean): Promise<void> {
    const { resumeMs } = this.#options;
    if (resumeMs <= 0 || final(cut)) throw cut;
    const until = Date.now() + resumeMs;
    let pause = useful ? 0 : uselessPauseMs;
    for (let step = minPauseMs; ; step = Math.min(2 * step, maxPauseMs)) {
      await sleep(pause, this.#life.signal);
      try {
        return await this.#meet(this.#hello.sessionId);
      } catch (e) {
        if (final(e))
          throw new ConnectionError(`the session cannot be resumed: ${(e as Error).message}`, { cause: e });
        cut = e as Error;
      }
      if (Date.now() >= until) {
        throw new ConnectionError(`the session was not resumed within ${resumeMs} ms: ${cut.message}`, {
          cause: cut,
        });
      }
      pause = step / 2 + (Math.random() * step) / 2; // clients of one server do not come all at once
    }
  }

  // fail ends all calls, also later ones.
  #fail(why: Error): void {
    if (this.#error !== undefined) return;
    this.#error = why instanceof SallyportError ? why : new ConnectionError(why.message, { cause: why });
    this.#life.abort(this.#error);
    for (const call of [...this.#calls.values()]) {
      call.reject(call.sent && !(why instanceof ClosedError) ? lost(this.#error) : this.#error);
    }
    if (this.#transport !== undefined)
      this.#transport.close(); // its end is the end
    else this.#end(this.#error);
  }
}

// helloOf returns what the answer to the handshake says.
function helloOf(m: Message, session: string): InitializeResult {
  if (m.error !== undefined) throw refusal(m.error);
  const hello = m.result as InitializeResult;
  if (typeof hello?.sessionId !== "string" || hello.sessionId === "") {
    throw new ProtocolError("the server gave no session");
  }
  if (session !== "" && hello.sessionId !== session) {
    throw new ProtocolError("the server gave another session than the one that was asked for");
  }
  return hello;
}

// lost is the error of a request whose answer does not come any more.
function lost(why: Error): ConnectionError {
  return new ConnectionError(
    `the connection ended before the answer, so the request may have been performed: ${why.message}`,
    { sent: true, cause: why },
  );
}

// final reports whether an error of a connection or a handshake stays the same when it is tried again.
function final(e: unknown): boolean {
  // Attached: the server has not seen the end of the last connection yet. System: it has trouble of its own.
  if (e instanceof RequestError) return e.code !== codes.attached && e.code !== codes.system;
  if (e instanceof StatusError) return e.status < 500;
  return (
    e instanceof ProtocolError ||
    e instanceof InvalidError ||
    e instanceof UnsupportedError ||
    e instanceof ClosedError
  );
}

function parse(text: string): Message {
  let m: unknown;
  try {
    m = JSON.parse(text);
  } catch (e) {
    throw new ProtocolError("the server sent a message that is not JSON", { cause: e });
  }
  if (typeof m !== "object" || m === null || Array.isArray(m)) {
    throw new ProtocolError("the server sent a message that is not an object");
  }
  return m;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
