// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type * as schema from "./schema.js";

/** What happened with a command. */
export class Result {
  /** All that the server says: the object of `sallyport run --json`. */
  readonly raw: schema.Result;

  constructor(raw: schema.Result) {
    this.raw = raw;
  }

  /** The exit code of the command, or that of `sallyport run`: 122 forbidden, 123 denied, 124 timed out. */
  get exitCode(): number {
    return this.raw.exit_code;
  }

  /** Why it ended: `"exited"`, `"timed_out"`, `"lost"`, `"forbidden"`, `"refused"`, ... */
  get end(): string {
    return this.raw.end;
  }

  /** It ended by itself with exit code 0. */
  get ok(): boolean {
    return this.end === "exited" && this.exitCode === 0;
  }

  /** The machine that ran the command was lost. What became of the command is not known: it may have run. */
  get lost(): boolean {
    return this.end === "lost";
  }

  get stdout(): string {
    return this.raw.stdout;
  }
  get stderr(): string {
    return this.raw.stderr;
  }

  /** Both streams, in order of arrival. */
  get output(): string {
    return this.raw.output;
  }

  /** What the sandbox denied. */
  get denials(): schema.Denial[] {
    return this.raw.denials;
  }

  /** The flags that allow what was denied, each once, for the option `grants`. */
  get grants(): string[] {
    return [
      ...new Set(
        this.denials
          .filter((d) => !d.harmless)
          .map((d) => d.grant)
          .filter((g) => g !== ""),
      ),
    ];
  }

  /** The questions that were decided. */
  get approvals(): schema.ApprovalDecided[] {
    return this.raw.approvals ?? [];
  }

  /** Where what it changed is; undefined where it changed the files themselves. */
  get stage(): schema.Staged | undefined {
    return this.raw.stage;
  }

  /** How many changes the stage has, also of earlier commands. */
  get changesTotal(): number {
    return this.raw.changes_total ?? 0;
  }

  /** The first changes of the stage. */
  get changes(): schema.Change[] {
    return this.raw.changes ?? [];
  }

  /** The first attempt, where an approval led to a second one. */
  get first(): schema.First | undefined {
    return this.raw.first;
  }
}
