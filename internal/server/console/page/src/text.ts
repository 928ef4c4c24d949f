// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Everything that does not show itself: controls, formats such as those of bidirectional text, blanks but
// the space, and letters without a picture (as internal/text.Visible).
const hidden = new RegExp(
  "[\\p{C}\\p{Zl}\\p{Zp}\\p{Variation_Selector}\\u2800\\u2d7f\\u034f\\u115f\\u1160\\u17b4\\u17b5" +
    "\\u3164\\uffa0\\u{1107f}\\u{13440}\\u{13447}-\\u{13455}\\u{16fe4}\\u{1d159}]|(?! )\\p{Zs}",
  "u",
);

const short: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x07": "\\a", "\b": "\\b" };

function escaped(c: string): string {
  const code = c.codePointAt(0)!;
  if (short[c] !== undefined) return short[c];
  if (code < 0x80) return "\\x" + code.toString(16).padStart(2, "0");
  return code > 0xffff ? "\\U" + code.toString(16).padStart(8, "0") : "\\u" + code.toString(16).padStart(4,
    "0");
}

/** A piece of a text as it is shown: `hidden` ones stand for a character that does not show itself. */
export interface Piece {
  text: string;
  hidden: boolean;
}

/** Returns a text of others in pieces that are safe to show. With `lines` line ends and tabs stay. */
export function pieces(text: string, lines = false): Piece[] {
  const all: Piece[] = [];
  let plain = "";
  for (const c of text) {
    if (!hidden.test(c) || (lines && (c === "\n" || c === "\t"))) {
      plain += c;
      continue;
    }
    if (plain !== "") all.push({ text: plain, hidden: false });
    plain = "";
    all.push({ text: escaped(c), hidden: true });
  }
  if (plain !== "") all.push({ text: plain, hidden: false });
  return all;
}

/** Returns a text of others in one piece that is safe to show, such as for a title. */
export function line(text: string): string {
  return pieces(text)
    .map((p) => p.text)
    .join("");
}

/** Returns a command as it would be typed. */
export function words(argv: string[]): string {
  return argv
    .map((a) => (a === "" || /[^\w@%+=:,./-]/.test(a) ? "'" + a.replaceAll("'", "'\\''") + "'" : a))
    .join(" ");
}

export function plural(n: number, one: string): string {
  return `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
}

/** Returns a duration in milliseconds, such as `1m 4s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = Math.round(ms / 1000);
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Returns how long ago a time in milliseconds was, such as `5 min ago`. */
export function ago(ms: number): string {
  const s = Math.max(0, Math.floor((Date.now() - ms) / 1000));
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

/** Returns a time, such as `Nov 29, 14:03:07`. */
export function time(ms: number): string {
  const format = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
    second: "2-digit" } as const;
  return new Date(ms).toLocaleString("en", { ...format, hourCycle: "h23" });
}

/** Returns a number of bytes, such as `3.4 MiB`. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

/** Returns the bytes of a text in base64. */
export function decode(base64: string): Uint8Array {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

/** Returns bytes in base64. */
export function encode(data: Uint8Array): string {
  let text = "";
  for (const b of data) text += String.fromCharCode(b);
  return btoa(text);
}
