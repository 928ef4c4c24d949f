// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { InvalidError, ProtocolError } from "./errors.js";

const piece = 0x8000; // arguments of one call

/** Bytes in base64. */
export function toBase64(data: Uint8Array): string {
  let text = "";
  for (let i = 0; i < data.length; i += piece) text += String.fromCharCode(...data.subarray(i, i + piece));
  return btoa(text);
}

/** The bytes of base64. */
export function fromBase64(text: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch (e) {
    throw new ProtocolError("the server sent base64 that is not valid", { cause: e });
  }
  const data = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) data[i] = binary.charCodeAt(i);
  return data;
}

/** The bytes of a text in UTF-8, or the bytes themselves. */
export function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data;
}

/** The URI of a path; a relative one is below base, which is a URI. A path that is a file: URI is itself. */
export function toURI(path: string, base: string): string {
  if (typeof path !== "string" || path === "") throw new InvalidError("the path is empty");
  if (path.startsWith("file:")) return path;
  if (path.includes("\0")) throw new InvalidError("the path contains a NUL character");
  let encoded: string;
  try {
    encoded = path.split("/").map(encodeURIComponent).join("/");
  } catch (e) {
    throw new InvalidError("the path is no text of Unicode", { cause: e });
  }
  return path.startsWith("/") ? "file://" + encoded : base.replace(/\/$/, "") + "/" + encoded;
}

/** The path of a file: URI. */
export function fromURI(uri: string): string {
  const match = /^file:(?:\/\/(?:localhost)?)?(\/.*)$/i.exec(uri);
  try {
    if (match) return decodeURIComponent(match[1]!);
  } catch {
    // as below
  }
  throw new ProtocolError(`the server sent ${JSON.stringify(uri)} for a path`);
}

/** The words of a shell in a text that has no expansions; undefined where it has some, or ends in a quote. */
export function shellWords(text: string): string[] | undefined {
  const words: string[] = [];
  let rest = text.trimStart();
  while (rest !== "") {
    const match = /^(?:'[^']*'|"[^"\\$`]*"|\\[^\n]|[A-Za-z0-9%+,\-./:=@_^])+(?=\s|$)/.exec(rest);
    if (!match) return undefined;
    words.push(match[0].replace(/'([^']*)'|"([^"]*)"|\\(.)/gs, (_, a, b, c) => a ?? b ?? c));
    rest = rest.slice(match[0].length).trimStart();
  }
  return words;
}
