// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { decode } from "./text.js";

/**
 * What is on the other side of the page: `connected`, `reconnecting` (it is tried again), `gone` (a new URL
 * is needed).
 */
export type State = "connected" | "reconnecting" | "gone";

/** An error of the server. `reason` is a word for programs. */
export class Refusal extends Error {
  readonly reason: string;
  /** Who was first, for `unknownQuestion`. */
  readonly by: string;

  constructor(message: string, data: { reason?: string; by?: string } = {}) {
    super(message);
    this.reason = data.reason ?? "";
    this.by = data.by ?? "";
  }
}

/** The connection ended before the answer. */
export class Cut extends Error {}

interface Call {
  resolve(result: never): void;
  reject(error: Error): void;
}

const secretKey = "sallyport.secret";
const minPause = 100;
const maxPause = 5000;

/**
 * The connection to the console: one WebSocket after the other, on which the exec-server's protocol is
 * spoken.
 */
export class Wire {
  state: State = "reconnecting";
  /** Why it is not connected; empty at the begin. */
  why = "";
  viewOnly = false;
  /** How often it was connected. */
  times = 0;
  readonly #listeners = new Set<() => void>();
  #calls = new Map<number, Call>();
  #last = 0;
  #socket: WebSocket | undefined;
  #pause = minPause;
  #retry: (() => void) | undefined;

  constructor() {
    // What may have brought the network back ends the pause.
    for (const event of ["online", "focus", "pageshow"]) addEventListener(event, () => this.#retry?.());
    addEventListener("hashchange", () => {
      const token = takeToken();
      if (token !== "") void this.#exchange(token).then(() => location.reload());
    });
  }

  /** Calls f after each change of the state. Returns what ends that. */
  listen(f: () => void): () => void {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }

  #set(state: State, why: string): void {
    this.state = state;
    this.why = why;
    for (const f of this.#listeners) f();
  }

  /** Connects, and goes on to do so until the console does not know the page any more. */
  async start(token: string): Promise<void> {
    if (token !== "") await this.#exchange(token);
    while (sessionStorage.getItem(secretKey) !== null) {
      const known = await this.#known();
      if (known === false) break;
      if (known) await this.#serve();
      await this.#wait();
    }
    sessionStorage.removeItem(secretKey);
    this.#set("gone", "This page has no access, or its 12 hours are over.");
  }

  // exchange gets a secret for a token; the cookie is set by the answer.
  async #exchange(token: string): Promise<void> {
    try {
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch("/session", { method: "POST", headers, body: JSON.stringify({ token }) });
      if (answer.ok) sessionStorage.setItem(secretKey, ((await answer.json()) as { secret: string }).secret);
    } catch {
      // The loop finds out: a page that was loaded again has a secret.
    }
  }

  // known asks whether the secrets count; undefined is without an answer.
  async #known(): Promise<boolean | undefined> {
    try {
      const headers = { "X-Sallyport-Secret": sessionStorage.getItem(secretKey) ?? "" };
      const answer = await fetch("/session", { headers, cache: "no-store" });
      if (answer.status === 401) return false;
      if (answer.ok) return true;
      this.#set("reconnecting", "The console answers with an error.");
    } catch {
      this.#set("reconnecting", "The console does not answer. Is sallyport console running?");
    }
    return undefined;
  }

  // wait pauses before the next attempt, longer each time.
  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#retry?.(), this.#pause);
      this.#pause = Math.min(this.#pause * 2, maxPause);
      this.#retry = () => {
        clearTimeout(timer);
        this.#retry = undefined;
        resolve();
      };
    });
  }

  // serve uses one connection until it ends.
  #serve(): Promise<void> {
    const url = location.origin.replace(/^http/, "ws") + "/ws";
    const socket = new WebSocket(url, ["sallyport", "sallyport.secret." + sessionStorage.getItem(secretKey)]);
    this.#socket = socket;
    return new Promise((resolve) => {
      socket.addEventListener("open", () => {
        const params = { clientName: "sallyport-console", extensionMethods: true };
        this.#send<{ viewOnly?: boolean }>("initialize", params).then((hello) => {
          socket.send(JSON.stringify({ method: "initialized", params: {} }));
          this.viewOnly = hello.viewOnly === true;
          this.times++;
          this.#pause = minPause;
          this.#set("connected", "");
        }, (e: Error) => {
          this.why = e.message;
          socket.close();
        });
      });
      socket.addEventListener("message", (e) => this.#receive(String(e.data)));
      socket.addEventListener("close", (e) => {
        const why = e.reason || this.why || "The connection has ended.";
        const calls = this.#calls;
        this.#calls = new Map();
        this.#socket = undefined;
        this.#set("reconnecting", why);
        for (const call of calls.values()) call.reject(new Cut("the connection has ended"));
        resolve();
      });
    });
  }

  #receive(text: string): void {
    const m = JSON.parse(text) as { id?: number; method?: string; result?: never; error?: { message: string;
      data?: object } };
    if (m.method !== undefined || m.id === undefined) return; // the page asks for no events
    const call = this.#calls.get(m.id);
    this.#calls.delete(m.id);
    if (m.error !== undefined) call?.reject(new Refusal(m.error.message, m.error.data));
    else call?.resolve(m.result as never);
  }

  #send<T>(method: string, params: object, signal?: AbortSignal): Promise<T> {
    const socket = this.#socket;
    if (socket === undefined || socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Cut("not connected to the console"));
    }
    return new Promise<T>((resolve, reject) => {
      const id = ++this.#last;
      const abort = (): void => {
        if (!this.#calls.delete(id)) return;
        if (socket.readyState === WebSocket.OPEN) {
          socket.send(JSON.stringify({ method: "request/cancel", params: { id } }));
        }
        reject(new Cut("canceled"));
      };
      signal?.addEventListener("abort", abort, { once: true });
      const end = (): void => signal?.removeEventListener("abort", abort);
      this.#calls.set(id, {
        resolve: (result) => (end(), resolve(result)),
        reject: (error) => (end(), reject(error)),
      });
      socket.send(JSON.stringify({ id, method, params }));
    });
  }

  /**
   * Performs a request. Rejects with a {@link Refusal}, or a {@link Cut} if it is not connected or not any
   * more.
   */
  call<T>(method: string, params: object = {}, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) return Promise.reject(new Cut("canceled"));
    if (this.state !== "connected") return Promise.reject(new Cut("not connected to the console"));
    return this.#send<T>(method, params, signal);
  }

  /** Resolves when it is connected; never after the signal. */
  ready(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.state !== "connected" || signal.aborted) return;
        end();
        resolve();
      };
      const end = this.listen(look);
      signal.addEventListener("abort", end, { once: true });
      look();
    });
  }

  /**
   * Gives f the answer to a method now, after each change that its `version` tells, and after each new
   * connection, until the signal ends. Errors go to f, too.
   */
  async watch<T extends { version?: string }>(
    method: string,
    params: object,
    signal: AbortSignal,
    f: (result: T | undefined, error: Error | undefined) => void,
  ): Promise<void> {
    let since: string | undefined;
    while (!signal.aborted) {
      await this.ready(signal);
      const times = this.times;
      try {
        const wait = since === undefined ? {} : { since, waitMs: 30_000 };
        const result = await this.call<T>(method, { ...params, ...wait }, signal);
        if (signal.aborted) return;
        if (since === undefined || result.version !== since) f(result, undefined);
        since = result.version;
        if (since === undefined) await this.#again(times, signal);
      } catch (e) {
        since = undefined;
        if (signal.aborted) return;
        if (e instanceof Cut) continue;
        f(undefined, e as Error);
        await this.#again(times, signal);
      }
    }
  }

  // again resolves with the next connection.
  #again(times: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = this.listen(() => {
        if (this.times === times) return;
        end();
        resolve();
      });
      signal.addEventListener("abort", () => (end(), resolve()), { once: true });
    });
  }
}

/** Reads a file from an offset on, in the parts in which a method has it. `end` is the offset after one. */
export async function* parts(method: string, params: object, from: number,
  signal: AbortSignal): AsyncGenerator<{ bytes: Uint8Array; end: number; total: number }> {
  for (let end = from; ;) {
    const r = await wire.call<{ part: string; bytesTotal: number }>(method, { ...params, from: end }, signal);
    const bytes = decode(r.part);
    end += bytes.length;
    yield { bytes, end, total: r.bytesTotal };
    if (bytes.length === 0 || end >= r.bytesTotal) return;
  }
}

/** Removes the token from the address, and returns it; empty is none. */
export function takeToken(): string {
  const token = /^#token=([^&]+)/.exec(location.hash)?.[1] ?? "";
  if (token !== "") history.replaceState(null, "", "/#/questions");
  return decodeURIComponent(token);
}

export const wire = new Wire();
