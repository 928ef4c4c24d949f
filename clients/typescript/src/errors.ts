// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Result } from "./result.js";

/** The base of all errors of this package. */
export class SallyportError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** An argument is invalid; nothing was sent. */
export class InvalidError extends SallyportError {}

/** The server, or this platform, does not have what was asked for. */
export class UnsupportedError extends SallyportError {}

/** There is no connection, or it ended before the answer. */
export class ConnectionError extends SallyportError {
  /** The request was sent: whether it was performed is not known. */
  readonly sent: boolean;

  constructor(message: string, options: { sent?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.sent = options.sent ?? false;
  }
}

/** The client was closed. */
export class ClosedError extends ConnectionError {}

/** The server answered the upgrade to a WebSocket with another status of HTTP than 101. */
export class StatusError extends ConnectionError {
  /** The status of HTTP, such as 401. */
  readonly status: number;

  constructor(status: number, text: string) {
    const fix = status === 401 ? "; set the token of the server" : "";
    super(`the server answered with HTTP status ${status}${text ? ` (${JSON.stringify(text)})` : ""}${fix}`);
    this.status = status;
  }
}

/** The server sent what the protocol does not allow. */
export class ProtocolError extends ConnectionError {}

/** The codes of a {@link RequestError}. */
export const codes = {
  invalidRequest: -32600,
  noMethod: -32601,
  invalidParams: -32602,
  system: -32603,
  notFound: -32004,
  attached: -32010,
  canceled: -32800,
} as const;

/** The server refused a request. */
export class RequestError extends SallyportError {
  /** The code of the protocol, such as those of {@link codes}. */
  readonly code: number;
  /** The word of the protocol for it, such as "unknownRun" or "runLimit"; empty where there is none. */
  readonly reason: string;
  /** How many bytes of a write the command took. */
  readonly taken: number;
  /** The exit code of `sallyport run` for flags or settings that are invalid; else 0. */
  readonly exitCode: number;
  /** What the server adds; undefined where it adds nothing. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
    const known = (typeof data === "object" && data !== null ? data : {}) as Record<string, unknown>;
    this.reason = typeof known["reason"] === "string" ? known["reason"] : "";
    this.taken = typeof known["taken"] === "number" ? known["taken"] : 0;
    this.exitCode = typeof known["exitCode"] === "number" ? known["exitCode"] : 0;
  }
}

/** A command that does not run: it is forbidden, was denied, was not found, or no sandbox is available. */
export class NotRunError extends SallyportError {
  /** What the server says; `result.end` and `result.exitCode` tell why. */
  readonly result: Result;

  constructor(result: Result) {
    super(result.raw.error || `the command did not run (${result.end})`);
    this.result = result;
  }

  /** A rule forbids it. */
  get forbidden(): boolean {
    return this.result.end === "forbidden";
  }

  /** It needs an approval, which was denied, or nobody could be asked. */
  get refused(): boolean {
    return this.result.end === "refused";
  }
}

/** A command of {@link Commands.run} that ended with another exit code than 0. */
export class CommandExitError extends SallyportError {
  readonly result: Result;

  constructor(result: Result) {
    super(`the command ended with exit code ${result.exitCode} (${result.end})`);
    this.result = result;
  }

  get exitCode(): number {
    return this.result.exitCode;
  }
  get stdout(): string {
    return this.result.stdout;
  }
  get stderr(): string {
    return this.result.stderr;
  }
}

/** The time of a wait is over. The command goes on. */
export class WaitTimeoutError extends SallyportError {}

/** Not all of the input was taken: the command does not read. */
export class ShortWriteError extends SallyportError {
  /** How many bytes of the input the command took. */
  readonly taken: number;

  constructor(taken: number, cause: unknown) {
    super("the input buffer is full: the command does not read", { cause });
    this.taken = taken;
  }
}

/** A file or a directory does not exist. */
export class FileNotFoundError extends RequestError {}

/** The error for an answer of the server that refuses. */
export function refusal(error: unknown): RequestError {
  const e = (typeof error === "object" && error !== null ? error : {}) as Record<string, unknown>;
  const code = typeof e["code"] === "number" ? e["code"] : 0;
  const message = typeof e["message"] === "string" ? e["message"] : "the server gave no reason";
  return code === codes.notFound
    ? new FileNotFoundError(code, message, e["data"])
    : new RequestError(code, message, e["data"]);
}
