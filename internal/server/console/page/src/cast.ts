// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { parts } from "./wire.js";

/** An event of a recording: `at` in seconds, `kind` and `data` as in asciicast. */
export interface CastEvent {
  at: number;
  kind: string;
  data: string;
}

/** A part of a recording. */
export interface Cast {
  cols: number;
  rows: number;
  events: CastEvent[];
  seconds: number;
  /** Bytes of the file: where the part begins, where the next one does, and all. */
  from: number;
  next: number;
  bytes: number;
}

// How much of a file is a part: more would not fit into the memory of a page.
const most = 32 << 20;

/** Reads the part of a recording that begins at a line, of version 2 or 3 of asciicast. */
export async function load(name: string, from: number, signal: AbortSignal, progress: (part: number)
  => void): Promise<Cast> {
  const cast: Cast = { cols: 80, rows: 24, events: [], seconds: 0, from, next: from, bytes: 0 };
  let version = 0;
  let began = from === 0 ? 0 : NaN; // seconds: version 2 counts from the begin of the recording
  const take = (l: string): void => {
    if (l.trim() === "" || l.startsWith("#")) return;
    let value: unknown;
    try {
      value = JSON.parse(l);
    } catch {
      return; // a line that was cut, as its writer was killed
    }
    if (version === 0) {
      version = header(value as Header, cast);
    } else if (Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "string") {
      if (Number.isNaN(began)) began = value[0];
      cast.seconds = version === 3 ? cast.seconds + value[0] : Math.max(cast.seconds, value[0] - began);
      cast.events.push({ at: cast.seconds, kind: value[1], data: String(value[2] ?? "") });
    }
  };
  const read = async (from: number, f: (line: string) => boolean): Promise<void> => {
    let rest = new Uint8Array();
    const decoder = new TextDecoder();
    for await (const p of parts("recording/read", { name }, from, signal)) {
      const bytes = new Uint8Array(rest.length + p.bytes.length);
      bytes.set(rest);
      bytes.set(p.bytes, rest.length);
      cast.bytes = p.total;
      let at = 0;
      for (let end = bytes.indexOf(10); end >= 0 || (p.end >= p.total && at < bytes.length);
        end = bytes.indexOf(10, at)) {
        const to = end < 0 ? bytes.length : end + 1;
        const more = f(decoder.decode(bytes.subarray(at, to)));
        at = to;
        cast.next = p.end - bytes.length + at;
        if (!more) return;
      }
      rest = bytes.subarray(at);
      progress(Math.min(1, (p.end - from) / Math.min(most, p.total - from)));
    }
  };
  if (from > 0) await read(0, (l) => (take(l), version === 0));
  cast.next = from;
  await read(from, (l) => (take(l), cast.next - from < most));
  return cast;
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

/** Returns the size in the data of an event `r`; undefined for none. */
export function sizeIn(data: string): { cols: number; rows: number } | undefined {
  const m = /^(\d{1,4})x(\d{1,4})$/.exec(data);
  return m === null ? undefined : { cols: size(Number(m[1]), 80), rows: size(Number(m[2]), 24) };
}
