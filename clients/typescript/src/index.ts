// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

export { Client, type ClientOptions, type ConnectOptions, type Event, type RunOptions } from "./client.js";
export { type Command, type CommandOptions, type Size, type StartOptions } from "./command.js";
export * from "./errors.js";
export { type Entry, type Files } from "./files.js";
export { Question, type Answer, type Decision, type OnApproval } from "./question.js";
export { Result } from "./result.js";
export {
  type Chunk,
  type Conditions,
  type OutputCallbacks,
  type OutputOptions,
  type Reply,
  type Run,
  type WaitOptions,
} from "./run.js";
export {
  Sandbox,
  type CommandHandle,
  type CommandRunOptions,
  type Commands,
  type Process,
  type ProcessStream,
  type SandboxOptions,
} from "./sandbox.js";
export * as schema from "./schema.js";
export { type Dial, type Transport, type TransportEvents, type WebSocketLike } from "./transport.js";
