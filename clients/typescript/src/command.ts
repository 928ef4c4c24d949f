// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { shellWords } from "./encoding.js";
import { InvalidError } from "./errors.js";
import type { RunStartParams } from "./schema.js";

/** A program with its arguments, or a script for the shell. */
export type Command = readonly string[] | string;

/** The size of a terminal in characters. */
export interface Size {
  cols: number;
  rows: number;
}

/** How a command runs. */
export interface CommandOptions {
  /**
   * The working directory and workspace, an absolute path of the server's machine; default: that of the
   * server.
   */
  cwd?: string;
  /** The whole environment; default: that of the server. */
  env?: Record<string, string>;
  /** Flags of `sallyport run`, such as `["--read-only"]` or `["--memory", "1GiB"]`. */
  flags?: readonly string[];
  /** What it may do beyond the settings of the server, as denials tell it in `grant`: `"--rw /srv/out"`. */
  grants?: readonly string[];
  /** Paths to write and hosts to reach that the approver is asked about. */
  askFor?: readonly string[];
  /** Ask the approver whether it may run outside the sandbox. */
  escalate?: boolean;
  /** The reason, shown with a question. */
  justification?: string;
  /**
   * Has what it writes go to a new stage of the server's machine, or to the one with that name, and leaves the
   * files alone: the result has `stage` and `changes`.
   */
  stage?: boolean | string;
  /** Asks the approver about writes that the sandbox denies, while the command waits for the answer. */
  askWrites?: boolean;
  /** Ends the command after that time; its result has `timed_out`. */
  timeoutMs?: number;
  /** The name of a sandbox of the server that it joins, and that is made for the first one. */
  sandbox?: string;
  /** How long that sandbox stays without a command, where this one makes it; default 10 minutes. */
  idleMs?: number;
  /** Gives up: a command that has not started does not start, one that runs is terminated and forgotten. */
  signal?: AbortSignal;
}

/** How {@link Client.start} runs a command. */
export interface StartOptions extends CommandOptions {
  /** Run it on a terminal; true is 80 by 24. */
  tty?: boolean | Size;
  /** {@link Run.screen} shows the terminal; it needs `tty`. */
  screen?: boolean;
  /** {@link Run.write} takes input; without it, and without `tty`, the input is empty. */
  openStdin?: boolean;
  /**
   * {@link Run.output} is the one reader, for which the command waits as at a full pipe, so that no output is
   * missing. Default: the command never waits, and what the server does not retain is missing.
   */
  reader?: boolean;
}

const grantFlags = ["--rw", "--ro", "--grant", "--allow", "--allow-host", "--net"];

/**
 * The flags of `sallyport run` for a grant of a denial, such as `["--rw", "/srv/a b"]` for `--rw '/srv/a b'`.
 */
export function grantFlagsOf(grant: string): string[] {
  const words = shellWords(grant);
  const valid =
    words !== undefined &&
    words.length > 0 &&
    words.length % 2 === 0 &&
    words.every((w, i) => i % 2 === 1 || grantFlags.includes(w));
  if (!valid) {
    throw new InvalidError(
      `invalid grant ${JSON.stringify(grant)}: use flags with one value each, of ${grantFlags.join(", ")}`,
    );
  }
  return words;
}

/** The parameters of run/start. */
export function startParams(command: Command, o: StartOptions, events: boolean): RunStartParams {
  const args: string[] = [];
  for (const grant of o.grants ?? []) args.push(...grantFlagsOf(grant));
  for (const what of o.askFor ?? []) args.push("--ask-for", what);
  if (o.escalate) args.push("--escalate");
  if (o.justification !== undefined) args.push("--justification", o.justification);
  if (o.askWrites) args.push("--ask-writes");
  if (o.timeoutMs !== undefined) {
    if (!(o.timeoutMs > 0 && Number.isFinite(o.timeoutMs)))
      throw new InvalidError("timeoutMs must be more than 0");
    args.push("--timeout", `${Math.ceil(o.timeoutMs)}ms`);
  }
  args.push(...(o.flags ?? []));
  if (o.stage === "") throw new InvalidError("the name of the stage is empty; use true for a new one");
  // as a flag, which a server that has no stages refuses
  if (o.stage) args.push(o.stage === true ? "--stage" : `--stage=${o.stage}`);
  if (typeof command === "string") {
    if (command === "") throw new InvalidError("the script is empty");
    args.push("-c", command);
  } else {
    if (!Array.isArray(command) || command.length === 0)
      throw new InvalidError("there is no program; name one");
    args.push("--", ...(command as string[]));
  }
  const p: RunStartParams = { args };
  if (o.cwd !== undefined) p.cwd = o.cwd;
  if (o.env !== undefined) p.env = o.env;
  if (o.tty) p.tty = o.tty === true ? { cols: 80, rows: 24 } : { cols: o.tty.cols, rows: o.tty.rows };
  if (o.screen) p.screen = true;
  if (o.openStdin) p.openStdin = true;
  if (o.reader) p.reader = true;
  if (events) p.events = true;
  if (o.sandbox !== undefined)
    p.sandbox = { name: o.sandbox, ...(o.idleMs === undefined ? {} : { idleMs: o.idleMs }) };
  return p;
}
