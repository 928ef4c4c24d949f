// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { codes, RequestError } from "./errors.js";
import type { ApprovalRequest, Denial, Offer, RunApproveParams } from "./schema.js";

/** The word of an answer, such as `"approved"`. Only words of {@link Question.decisions} count. */
export type Decision = Offer["decision"];

/** An answer with a message for who asked. */
export interface Answer {
  decision: Decision;
  message?: string;
  /** That of an offer, such as a directory; default: the first one with the decision. */
  path?: string;
}

/** A question of a server about a command. */
export class Question {
  readonly runId: string;
  /** All that the server says: what an approver program gets. */
  readonly raw: ApprovalRequest;
  /** Aborted when the question is over: answered elsewhere, or the command was canceled. */
  readonly withdrawn: AbortSignal;
  /** Identifies what the question says; empty in `onApproval`. */
  readonly digest: string;

  constructor(raw: ApprovalRequest, runId: string, withdrawn: AbortSignal, digest = "") {
    this.raw = raw;
    this.runId = runId;
    this.withdrawn = withdrawn;
    this.digest = digest;
  }

  get id(): string {
    return this.raw.id;
  }
  /** `"command"` before it runs, `"access"` after it was denied something, or about a host. */
  get kind(): string {
    return this.raw.kind;
  }
  get argv(): string[] {
    return this.raw.argv;
  }
  get cwd(): string {
    return this.raw.cwd;
  }
  /** Why the server asks. */
  get reason(): string {
    return this.raw.reason;
  }
  /** The reason of who wants to run it. */
  get justification(): string {
    return this.raw.justification;
  }
  /** What it would get: `"write:/srv/out"`, `"outside"`, ... */
  get requires(): string[] {
    return this.raw.requires;
  }
  get denials(): Denial[] {
    return this.raw.denials;
  }
  /** The command runs, and what it wants waits for the answer: it is not repeated. */
  get waiting(): boolean {
    return this.raw.waiting ?? false;
  }
  /** What can be remembered with an answer, and the paths that one opens. */
  get offers(): Offer[] {
    return this.raw.offers;
  }
  /** The words that count as an answer. */
  get decisions(): Decision[] {
    return this.raw.available_decisions;
  }
}

/**
 * Answers a question. Several may be asked at once. Nothing decides nothing: then the command does not run,
 * unless somebody else is asked. An error, and what is not among the decisions, deny.
 */
export type OnApproval = (
  question: Question,
) => Decision | Answer | null | undefined | void | Promise<Decision | Answer | null | undefined | void>;

/** Answers a request of the server. */
export async function answer(
  onApproval: OnApproval | undefined,
  method: string,
  params: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  if (method !== "run/approve" || onApproval === undefined) {
    throw new RequestError(codes.noMethod, `this client does not answer ${method}`);
  }
  const { request, runId } = params as RunApproveParams;
  const got = await onApproval(new Question(request, runId, signal));
  if (got === undefined || got === null) return { decision: "none" };
  return typeof got === "string" ? { decision: got } : got;
}
