// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { decode } from "./text.js";
import { wire } from "./wire.js";

/** An event of a recording: `at` in seconds, `kind` and `data` as in asciicast. */
export interface CastEvent {
  at: number;
  kind: string;
  data: string;
}

export interface Cast {
  cols: number;
  rows: number;
  events: CastEvent[];
  seconds: number;
  /** Bytes of the file that are too many to be played. */
  beyond: number;
}

// How much of a file is played; more would not fit into the memory of a page.
const most = 32 << 20;

/** Reads a recording, of version 2 or 3 of asciicast. */
export async function load(name: string, signal: AbortSignal, progress: (part: number)
  => void): Promise<Cast> {
  const cast: Cast = { cols: 80, rows: 24, events: [], seconds: 0, beyond: 0 };
  const decoder = new TextDecoder();
  let version = 0;
  let from = 0;
  let rest = "";
  const take = (l: string): void => {
    if (l.trim() === "" || l.startsWith("#")) return;
    let value: unknown;
    try {
      value = JSON.parse(l);
    } catch {
      return; // a line that was cut, as its writer was killed
    }
    if (version === 0) version = header(value as Header, cast);
    else event(value, version, cast);
  };
  for (;;) {
    const r = await wire.call<{ part: string; bytesTotal: number }>("recording/read", { name, from }, signal);
    const part = decode(r.part);
    from += part.length;
    const end = part.length === 0 || from >= r.bytesTotal || from >= most;
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const l of lines) take(l);
    if (end) {
      if (from >= r.bytesTotal) take(rest);
      cast.beyond = Math.max(0, r.bytesTotal - from);
      return cast;
    }
    progress(from / Math.min(most, r.bytesTotal));
  }
}

interface Header {
  version?: number;
  width?: number;
  height?: number;
  term?: { cols?: number; rows?: number };
}

const size = (n: unknown, other: number): number => (typeof n === "number" && n >= 1 && n <= 1000
  ? Math.floor(n) : other);

function header(h: Header, cast: Cast): number {
  if (h.version !== 2 && h.version !== 3) throw new Error("this is no asciicast of version 2 or 3");
  cast.cols = size(h.term?.cols ?? h.width, 80);
  cast.rows = size(h.term?.rows ?? h.height, 24);
  return h.version;
}

function event(e: unknown, version: number, cast: Cast): void {
  if (!Array.isArray(e) || typeof e[0] !== "number" || typeof e[1] !== "string") return;
  const at = version === 3 ? cast.seconds + e[0] : Math.max(cast.seconds, e[0]);
  cast.seconds = at;
  cast.events.push({ at, kind: e[1], data: String(e[2] ?? "") });
}

/** Returns the size in the data of an event `r`; undefined for none. */
export function sizeIn(data: string): { cols: number; rows: number } | undefined {
  const m = /^(\d{1,4})x(\d{1,4})$/.exec(data);
  return m === null ? undefined : { cols: size(Number(m[1]), 80), rows: size(Number(m[2]), 24) };
}
