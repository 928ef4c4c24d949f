// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import type { Socket } from "node:net";

import { ConnectionError, InvalidError, ProtocolError, StatusError } from "./errors.js";
import { maxMessage, type Dial, type Transport, type TransportEvents } from "./transport.js";

/** How a connection of Node is made. */
export interface NodeTarget {
  /** Sent as a bearer token. */
  token?: string | undefined;
  /** For wss; default: the authorities that Node trusts. */
  tls?: { ca?: string | Uint8Array; cert?: string | Uint8Array; key?: string | Uint8Array } | undefined;
}

// The server pings every 30 seconds. How long one that says nothing is believed to be there.
const silentMs = 100_000;
const refusalBytes = 1 << 10;
// How long the server has to confirm a close.
const closeMs = 2_000;

/**
 * A {@link Dial} for `ws://HOST:PORT`, `wss://HOST:PORT` or `unix:///PATH`, without the WebSocket of the
 * platform.
 */
export function nodeDial(url: string, target: NodeTarget = {}): Dial {
  const options = split(url);
  const key = () => randomBytes(16).toString("base64");
  return (events, signal) =>
    new Promise((resolve, reject) => {
      const nonce = key();
      const headers: Record<string, string> = {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": nonce,
      };
      if (target.token) headers["Authorization"] = `Bearer ${target.token}`;
      const make = options.protocol === "https:" ? httpsRequest : httpRequest;
      const files = Object.fromEntries(
        Object.entries(target.tls ?? {}).map(([name, file]) => [
          name,
          typeof file === "string" ? file : Buffer.from(file),
        ]),
      );
      const request = make({ ...options, ...files, headers, agent: false, signal });
      request.on("error", (e) => reject(new ConnectionError(`cannot connect: ${e.message}`, { cause: e })));
      request.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8");
        const refused = (): void => {
          reject(new StatusError(response.statusCode ?? 0, text.slice(0, refusalBytes).trim()));
          request.destroy();
        };
        response.on("data", (piece: string) => {
          text += piece;
          if (text.length >= refusalBytes) refused();
        });
        response.on("end", refused).on("error", refused);
      });
      request.on("upgrade", (response, socket: Socket, head) => {
        const accept = createHash("sha1")
          .update(nonce + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
          .digest("base64");
        if (response.headers["sec-websocket-accept"] !== accept) {
          socket.destroy();
          reject(new ProtocolError("the server does not speak WebSocket"));
          return;
        }
        const frames = new Frames(socket, events);
        resolve(frames);
        frames.start(head);
      });
      request.end();
    });
}

function split(url: string): RequestOptions {
  const fix = "use ws://HOST:PORT, wss://HOST:PORT or unix:///PATH";
  let u: URL;
  try {
    u = new URL(url);
  } catch (e) {
    throw new InvalidError(`invalid URL: ${fix}`, { cause: e }); // the URL may have a password
  }
  if (u.username !== "" || u.password !== "") {
    throw new InvalidError("a user name or password in a URL is not supported; use a token");
  }
  if (u.protocol === "unix:" && u.host === "" && u.pathname.startsWith("/")) {
    return { protocol: "http:", socketPath: decodeURIComponent(u.pathname), path: "/", host: "localhost" };
  }
  if ((u.protocol === "ws:" || u.protocol === "wss:") && u.host !== "") {
    const tls = u.protocol === "wss:";
    return {
      protocol: tls ? "https:" : "http:",
      host: u.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: u.port || (tls ? 443 : 80),
      path: u.pathname + u.search,
      ...(tls ? { minVersion: "TLSv1.3" as const } : {}),
    };
  }
  throw new InvalidError(`invalid URL ${JSON.stringify(url)}: ${fix}`);
}

const op = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

// Frames is the client's side of a WebSocket (RFC 6455).
class Frames implements Transport {
  readonly #socket: Socket;
  readonly #events: TransportEvents;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #timer: NodeJS.Timeout | undefined;
  #waiting: Buffer[] = []; // bytes that are no whole frame yet
  #length = 0;
  #message: Buffer[] = []; // frames of a message in fragments
  #messageLength = 0;
  #closing = false;
  #over = false;

  constructor(socket: Socket, events: TransportEvents) {
    this.#socket = socket;
    this.#events = events;
  }

  start(head: Buffer): void {
    const socket = this.#socket;
    socket.setNoDelay(true);
    this.#timer = setTimeout(
      () => this.#fail(new ConnectionError("the server has said nothing for too long")),
      silentMs,
    );
    this.#timer.unref();
    socket.on("error", (e) =>
      this.#fail(new ConnectionError(`the connection broke: ${e.message}`, { cause: e })),
    );
    socket.on("close", () => this.#fail(new ConnectionError("the server ended the connection")));
    socket.on("end", () => socket.destroy());
    socket.on("data", (data: Buffer) => this.#take(data));
    // What came with the answer is read when the caller has its connection.
    queueMicrotask(() => {
      if (head.length > 0) this.#take(head);
    });
  }

  send(message: string): void {
    if (!this.#over && !this.#closing) this.#write(op.text, Buffer.from(message));
  }

  close(): void {
    if (this.#over || this.#closing) return;
    this.#closing = true;
    this.#write(op.close, Buffer.from([1000 >> 8, 1000 & 255]));
    setTimeout(() => this.#fail(new ConnectionError("the connection was closed")), closeMs).unref();
  }

  #fail(why: Error): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#socket.destroy();
    this.#waiting = this.#message = [];
    this.#events.ended(why);
  }

  #write(opcode: number, data: Buffer): void {
    const extra = data.length < 126 ? 0 : data.length < 1 << 16 ? 2 : 8;
    const frame = Buffer.allocUnsafe(2 + extra + 4 + data.length);
    frame[0] = 0x80 | opcode;
    frame[1] = 0x80 | (extra === 0 ? data.length : extra === 2 ? 126 : 127);
    if (extra === 2) frame.writeUInt16BE(data.length, 2);
    if (extra === 8) frame.writeBigUInt64BE(BigInt(data.length), 2);
    const mask = randomBytes(4);
    const at = 2 + extra;
    mask.copy(frame, at);
    for (let i = 0; i < data.length; i++) frame[at + 4 + i] = data[i]! ^ mask[i & 3]!;
    this.#socket.write(frame);
  }

  #take(data: Buffer): void {
    if (this.#over) return;
    this.#timer?.refresh();
    this.#waiting.push(data);
    this.#length += data.length;
    try {
      while (!this.#over && this.#frame()) {
        /* the next one */
      }
    } catch (e) {
      this.#fail(e as Error);
    }
  }

  // frame performs the next frame, and reports whether there was one.
  #frame(): boolean {
    if (this.#length < 2) return false;
    const head = this.#peek(Math.min(this.#length, 10));
    const opcode = head[0]! & 15;
    const final = (head[0]! & 0x80) !== 0;
    let size = head[1]!;
    let at = 2;
    if ((head[0]! & 0x70) !== 0 || size > 127)
      throw new ProtocolError("the server sent a frame that is not allowed");
    if (size >= 126) {
      at = size === 126 ? 4 : 10;
      if (head.length < at) return false;
      size = at === 4 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
    }
    if (size + this.#messageLength > maxMessage)
      throw new ProtocolError(`the server sent more than ${maxMessage} bytes at once`);
    if (this.#length < at + size) return false;
    const all = this.#peek(at + size);
    const rest = this.#waiting[0]!.subarray(at + size);
    if (rest.length > 0) this.#waiting[0] = rest;
    else this.#waiting.shift();
    this.#length -= at + size;
    this.#perform(opcode, final, all.subarray(at));
    return true;
  }

  // peek returns the first n bytes.
  #peek(n: number): Buffer {
    if (this.#waiting[0]!.length < n) this.#waiting = [Buffer.concat(this.#waiting)];
    return this.#waiting[0]!.subarray(0, n);
  }

  #perform(opcode: number, final: boolean, data: Buffer): void {
    if (opcode >= op.close) {
      if (!final || data.length > 125) throw new ProtocolError("the server sent a frame that is not allowed");
      if (opcode === op.ping) this.#write(op.pong, data);
      if (opcode === op.close) {
        if (!this.#closing) this.#write(op.close, data.subarray(0, 2));
        const code = data.length >= 2 ? data.readUInt16BE(0) : 1005;
        this.#over = true;
        clearTimeout(this.#timer);
        this.#socket.end(() => this.#socket.destroy());
        this.#events.ended(
          new ConnectionError(
            this.#closing ? "the connection was closed" : `the server ended the connection (${code})`,
          ),
        );
      }
      return;
    }
    if (opcode > op.binary || (opcode === op.more) !== this.#message.length > 0) {
      throw new ProtocolError("the server sent a frame that is not allowed");
    }
    this.#message.push(data);
    this.#messageLength += data.length;
    if (!final) return;
    const message = this.#message.length === 1 ? data : Buffer.concat(this.#message);
    this.#message = [];
    this.#messageLength = 0;
    let text: string;
    try {
      text = this.#decoder.decode(message);
    } catch (e) {
      throw new ProtocolError("the server sent text that is not UTF-8", { cause: e });
    }
    this.#events.message(text);
  }
}
