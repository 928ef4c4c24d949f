// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { ConnectionError, InvalidError, ProtocolError, UnsupportedError } from "./errors.js";

/** What a {@link Transport} calls. */
export interface TransportEvents {
  /** A message came. */
  message(text: string): void;
  /** The connection has ended; called once, with nothing after it. */
  ended(why: Error): void;
}

/** A connection that carries messages in order. */
export interface Transport {
  /** Sends a message. After the end of the connection it has no effect. */
  send(message: string): void;
  /** Ends the connection in the way of the protocol and calls `ended`. It may be called more than once. */
  close(): void;
}

/**
 * Makes a connection. When `signal` is aborted before that is done, nothing is left. It is called again after
 * a cut.
 */
export type Dial = (events: TransportEvents, signal: AbortSignal) => Promise<Transport>;

/** The largest message in bytes. */
export const maxMessage = 16 << 20;

/** The part of the WebSocket of browsers that is used. */
export interface WebSocketLike {
  binaryType: string;
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: never) => unknown) | null;
  onclose: ((event: never) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

/** A {@link Dial} over the WebSocket of the platform, or over the one that `make` returns. */
export function webSocketDial(url: string, make?: (url: string) => WebSocketLike): Dial {
  if (!/^wss?:\/\/[^/]/.test(url)) {
    throw new InvalidError(`invalid URL ${JSON.stringify(url)}: use ws://HOST:PORT or wss://HOST:PORT`);
  }
  return (events, signal) =>
    new Promise((resolve, reject) => {
      const native = (globalThis as { WebSocket?: new (url: string) => WebSocketLike }).WebSocket;
      if (make === undefined && native === undefined) {
        throw new UnsupportedError(
          'this platform has no WebSocket: import from "sallyport-client/node" in Node, ' +
            "or set the option webSocket",
        );
      }
      const socket = make !== undefined ? make(url) : new native!(url);
      const decoder = new TextDecoder("utf-8", { fatal: true });
      let open = false;
      let over = false;
      const end = (why: Error): void => {
        if (over) return;
        over = true;
        signal.removeEventListener("abort", abort);
        socket.onmessage = socket.onclose = socket.onerror = null;
        if (open) events.ended(why);
        else reject(why);
      };
      const abort = (): void => {
        socket.close();
        end(new ConnectionError("connecting was given up", { cause: signal.reason }));
      };
      socket.binaryType = "arraybuffer";
      socket.onopen = () => {
        if (over) {
          socket.close();
          return;
        }
        open = true;
        signal.removeEventListener("abort", abort);
        resolve({
          send: (message) => {
            if (!over) socket.send(message);
          },
          close: () => {
            if (over) return;
            socket.close(1000);
            end(new ConnectionError("the connection was closed"));
          },
        });
      };
      socket.onmessage = (event: { data: unknown }) => {
        let text: string;
        try {
          text = typeof event.data === "string" ? event.data : decoder.decode(event.data as ArrayBuffer);
        } catch (e) {
          socket.close();
          end(new ProtocolError("the server sent text that is not UTF-8", { cause: e }));
          return;
        }
        events.message(text);
      };
      // What goes wrong is told to no page: a refusal and a server that is not there look the same.
      socket.onerror = () => {
        if (!open) end(new ConnectionError(`cannot connect to ${url}`));
      };
      socket.onclose = (event: { code?: number; reason?: string }) =>
        end(
          new ConnectionError(
            `the server ended the connection (${event.code ?? 1006}${event.reason ? ", " + event.reason : ""})`,
          ),
        );
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
}
