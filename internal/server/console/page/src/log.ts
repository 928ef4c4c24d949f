// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Screen } from "./term.js";
import { decode } from "./text.js";
import { Cut, Refusal, wire } from "./wire.js";

interface Read {
  chunks: { offset: number; missing?: number; stream: string; chunk: string }[];
  next: number;
  complete: boolean;
}

interface ScreenState {
  cols: number;
  rows: number;
  lines: string[];
  alternate: boolean;
  modes?: string;
}

// How much of a log is on the screen at once, at most, apart from what comes meanwhile.
const mostSpan = 256 << 10;
// How far the screen may be behind a log that it follows; it leaves out what is before.
const mostBehind = 2 << 20;
// How much one answer has while the log is followed.
const page = 256 << 10;

/** What a {@link Log} tells its view. */
export interface Place {
  /** The offsets of what is shown. */
  from: number;
  to: number;
  live: boolean;
  /** All output has come. */
  complete: boolean;
  missing: number;
}

/** Where a {@link Log} begins. */
export const start: Place = { from: 0, to: 0, live: true, complete: false, missing: 0 };

/**
 * The output of a session on a screen: followed live, or a range of it. No more than a range and the
 * emulator's own scrollback is in memory, however long the log is.
 */
export class Log {
  place = start;
  readonly #id: string;
  readonly #screen: Screen;
  readonly #tell: (place: Place) => void;
  readonly #fail: (e: unknown) => void;
  #work = new AbortController();

  constructor(id: string, screen: Screen, tell: (place: Place) => void, fail: (e: unknown) => void) {
    this.#id = id;
    this.#screen = screen;
    this.#tell = tell;
    this.#fail = fail;
  }

  stop(): void {
    this.#work.abort();
  }

  // span is how much is on the screen at once: no more lines than the emulator keeps.
  get #span(): number {
    return Math.min(mostSpan, 2 * (this.#screen.term.options.scrollback ?? 1000));
  }

  #begin(): AbortSignal {
    this.#work.abort();
    this.#work = new AbortController();
    this.#screen.term.reset();
    return this.#work.signal;
  }

  // set tells of a change. While a log is followed its end is told only by the offset, which nobody watches.
  #set(change: Partial<Place>): void {
    const before = this.place;
    this.place = { ...before, ...change };
    const { from, live, complete } = this.place;
    if (!live || from !== before.from || live !== before.live
      || complete !== before.complete) this.#tell(this.place);
  }

  /** Shows the end of the log and follows it, until it is complete. */
  async live(): Promise<void> {
    const signal = this.#begin();
    await wire.ready(signal);
    let next = await this.#tail(signal);
    while (!signal.aborted) {
      try {
        await wire.ready(signal);
        const r = await this.#read(next, page, 30_000, signal);
        const behind = r.next - next >= page;
        next = r.next;
        await this.#show(r, signal);
        if (signal.aborted) return;
        this.#set({ to: next, complete: r.complete });
        if (r.complete) return;
        if (behind && (await this.#end(signal)) - next > mostBehind) next = await this.#tail(signal);
      } catch (e) {
        if (signal.aborted) return;
        if (e instanceof Cut) continue; // goes on at the offset, with the next connection
        this.#fail(e);
        return;
      }
    }
  }

  /** Shows the range before, or after, the one that is shown. */
  async turn(back: boolean): Promise<void> {
    const { from, to } = this.place;
    if (back) return this.at(Math.max(0, from - this.#span), from);
    if (to >= (await this.#end(this.#work.signal))) return this.live();
    await this.at(to, to + this.#span);
    this.#screen.term.scrollToTop();
  }

  /** Shows a range. */
  async at(from: number, to: number): Promise<void> {
    const signal = this.#begin();
    let next = from;
    let missing = 0;
    let complete = false;
    while (next < to && !signal.aborted) {
      const r = await this.#read(next, Math.min(to - next, page), 0, signal);
      if (r.next === next) break;
      for (const c of r.chunks) missing += c.missing ?? 0;
      next = r.next;
      complete = r.complete;
      await this.#show(r, signal);
    }
    if (!signal.aborted) this.#set({ from, to: next, live: false, missing, complete });
  }

  /**
   * Looks for a text in the ranges before the one that is shown, or after it, shows the first that has it,
   * and reports whether there is one.
   */
  async find(text: string, back: boolean, progress: (offset: number) => void): Promise<boolean> {
    const signal = this.#work.signal;
    const wanted = text.toLowerCase();
    const span = this.#span;
    let { from, to } = this.place;
    const end = await this.#end(signal);
    while (!signal.aborted && (back ? from > 0 : to < end)) {
      [from, to] = back ? [Math.max(0, from - span), from] : [to, Math.min(end, to + span)];
      progress(from);
      // A bit more, for a text on the border.
      const got = await this.#text(from, to + 4096, signal);
      if (!got.toLowerCase().includes(wanted)) continue;
      await this.at(from, to + 4096);
      return true;
    }
    return false;
  }

  async #text(from: number, to: number, signal: AbortSignal): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    while (from < to) {
      const r = await this.#read(from, Math.min(to - from, page), 0, signal);
      if (r.next === from) break;
      for (const c of r.chunks) text += decoder.decode(decode(c.chunk), { stream: true });
      from = r.next;
    }
    // eslint-disable-next-line no-control-regex
    return text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])/g, "");
  }

  #read(after: number, maxBytes: number, waitMs: number, signal: AbortSignal): Promise<Read> {
    const wait = waitMs === 0 ? {} : { waitMs };
    return wire.call<Read>("run/read", { runId: this.#id, after, maxBytes, ...wait }, signal);
  }

  async #show(r: Read, signal: AbortSignal): Promise<void> {
    for (const c of r.chunks) {
      if (signal.aborted) return;
      if ((c.missing ?? 0) > 0) {
        const text = `[${c.missing} bytes of output are no longer retained]`;
        await this.#screen.write(`\r\n\x1b[2m${text}\x1b[0m\r\n`);
      }
      await this.#screen.write(decode(c.chunk));
    }
  }

  // end returns the offset after all output so far.
  async #end(signal: AbortSignal): Promise<number> {
    const params = { runId: this.#id, for: {}, timeoutMs: 0 };
    return (await wire.call<{ next: number }>("run/wait", params, signal)).next;
  }

  // tail prepares the screen for the last span of the log, and returns where that begins.
  async #tail(signal: AbortSignal): Promise<number> {
    try {
      const end = await this.#end(signal);
      const from = Math.max(0, end - this.#span);
      this.#screen.term.reset();
      if (from > 0) await this.#before(signal);
      this.#set({ from, to: from, live: true, missing: 0, complete: false });
      return from;
    } catch (e) {
      if (!(e instanceof Refusal) && !(e instanceof Cut)) throw e;
      if (e instanceof Refusal && e.reason === "unknownRun") this.#fail(e);
      this.#set({ from: 0, to: 0, live: true, missing: 0, complete: false });
      return 0;
    }
  }

  // before brings the screen into the state that output which is not shown has set.
  async #before(signal: AbortSignal): Promise<void> {
    const s = await this.screen(signal);
    if (s === undefined) return;
    let text = s.modes ?? "";
    if (s.alternate) s.lines.forEach((l, y) => (text += l === "" ? "" : `\x1b[${y + 1};1H${l}`));
    await this.#screen.write(text);
  }

  /** Returns what the terminal of the session shows; undefined without one. */
  async screen(signal: AbortSignal): Promise<ScreenState | undefined> {
    try {
      return await wire.call<ScreenState>("run/screen", { runId: this.#id }, signal);
    } catch (e) {
      if (e instanceof Refusal) return undefined;
      throw e;
    }
  }
}
