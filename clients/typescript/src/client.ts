// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { startParams, type Command, type CommandOptions, type StartOptions } from "./command.js";
import { Connection } from "./connection.js";
import { fromURI, toURI } from "./encoding.js";
import { NotRunError, RequestError, UnsupportedError } from "./errors.js";
import { Files } from "./files.js";
import { answer, Question, type Decision, type OnApproval } from "./question.js";
import { Result } from "./result.js";
import { randomId, Run, type OutputCallbacks } from "./run.js";
import type * as schema from "./schema.js";
import { webSocketDial, type Dial, type WebSocketLike } from "./transport.js";

/** An event of a command. */
export interface Event {
  runId: string;
  /** The kind, such as `"denied"`; later servers have more than {@link schema.eventTypes}. */
  type: string;
  /** The line of `sallyport run --jsonl`. */
  data: schema.Event;
}

/** How a client behaves. */
export interface ClientOptions {
  /** Told to the server; default `"sallyport-client"`. */
  clientName?: string;
  /** Answers the questions about commands of this client. Without it, what needs an approval does not run. */
  onApproval?: OnApproval;
  /** Gets the events of the commands of this client, in order. Those of the time of a cut are missing. */
  onEvent?: (event: Event) => void;
  /** Called when the session was resumed after a cut. */
  onResume?: () => void;
  /** How long a session is tried to be resumed after a cut; default 60 000, and 0 means not at all. */
  resumeMs?: number;
  /** Gives up connecting; later it has no effect. */
  signal?: AbortSignal;
}

/** How a client connects. */
export interface ConnectOptions extends ClientOptions {
  /** Makes the WebSocket in place of that of the platform, such as one with a token. */
  webSocket?: (url: string) => WebSocketLike;
}

/** How {@link Client.run} runs a command. */
export interface RunOptions extends CommandOptions, OutputCallbacks {
  /** The input; default empty. */
  input?: string | Uint8Array;
}

type RunKind<R extends Run> = new (connection: Connection, id: string, reader: boolean) => R;

/** A connection with an exec-server. One that is cut is made again; runs go on meanwhile. */
export class Client {
  readonly #connection: Connection;
  readonly #events: boolean;

  /** @internal */
  constructor(connection: Connection, events: boolean) {
    this.#connection = connection;
    this.#events = events;
  }

  /** Connects with a server at `ws://HOST:PORT` or `wss://HOST:PORT`. */
  static connect(url: string, options: ConnectOptions = {}): Promise<Client> {
    return this.open(webSocketDial(url, options.webSocket), options);
  }

  /** Makes a client over any transport. */
  static async open(dial: Dial, options: ClientOptions = {}): Promise<Client> {
    const { onApproval, onEvent } = options;
    const connection = await Connection.open(
      {
        dial,
        clientName: options.clientName ?? "sallyport-client",
        approvals: onApproval !== undefined,
        resumeMs: options.resumeMs ?? 60_000,
        request: (method, params, signal) => answer(onApproval, method, params, signal),
        notify: (method, params) => {
          if (method !== "run/event" || onEvent === undefined) return;
          const { event, runId } = params as schema.RunEventParams;
          guard(() => onEvent({ runId, type: event.type, data: event }));
        },
        resumed: () => guard(() => options.onResume?.()),
      },
      options.signal,
    );
    if (!connection.hello.environmentInfo?.capabilities?.runs) {
      await connection.close();
      throw new UnsupportedError(
        "the server has no judged runs: it is not an exec-server of sallyport, or an older one",
      );
    }
    return new this(connection, onEvent !== undefined);
  }

  /** What the server said of itself. */
  get environment(): schema.Environment {
    return this.#connection.hello.environmentInfo!;
  }

  /** The session with the server, the same after a cut. */
  get sessionId(): string {
    return this.#connection.hello.sessionId;
  }

  /** The directory of the server. */
  get cwd(): string {
    return fromURI(this.environment.cwd);
  }

  /** Resolves with the reason when the client cannot be used any more, also after {@link Client.close}. */
  get closed(): Promise<Error> {
    return this.#connection.over;
  }

  /** Ends the connection. Runs that were started by {@link Client.start} go on. */
  close(): Promise<void> {
    return this.#connection.close();
  }

  /**
   * Starts a command. It resolves when the command runs, which may take as long as an approval does. A
   * command
   * that does not run is a {@link NotRunError}.
   */
  start(command: Command, options: StartOptions = {}): Promise<Run> {
    return this.startAs(Run, command, options);
  }

  /** @internal */
  async startAs<R extends Run>(kind: RunKind<R>, command: Command, options: StartOptions): Promise<R> {
    const { signal } = options;
    const params = startParams(command, options, this.#events);
    params.startId = randomId(); // after a cut it is asked for again, and starts once
    const got = await this.#connection.call("run/start", params, { repeat: true, signal });
    if (!got.started) throw new NotRunError(new Result(got.result!));
    const run = new kind(this.#connection, got.runId, params.reader === true);
    if (signal?.aborted) {
      // it came too late
      await run.remove();
      throw signal.reason;
    }
    return run;
  }

  /**
   * Runs a command to its end and returns its result, whatever its exit code is. A command that does not run
   * is a {@link NotRunError}. No output is missing in `onStdout` and `onStderr`.
   */
  async run(command: Command, options: RunOptions = {}): Promise<Result> {
    const { onStdout, onStderr, input, ...rest } = options;
    const streams = onStdout !== undefined || onStderr !== undefined;
    const run = await this.start(command, { ...rest, openStdin: input !== undefined, reader: streams });
    let result: Result;
    try {
      result = await finish(run, options, streams);
    } catch (e) {
      await run.remove().catch(() => undefined); // e says more
      throw e;
    }
    await run.remove();
    return result;
  }

  /** A run of the server, which may have been started by another client of the same user. */
  attach(runId: string): Run {
    return this.attachAs(Run, runId);
  }

  /** @internal */
  attachAs<R extends Run>(kind: RunKind<R>, runId: string): R {
    return new kind(this.#connection, runId, false);
  }

  /** The runs that the server knows of this user: those that run, and the last that have ended. */
  async list(): Promise<schema.ListedRun[]> {
    return (await this.#connection.call("run/list", {}, { repeat: true })).runs;
  }

  /** The open questions about runs of this user, also of other clients. */
  async questions(): Promise<Question[]> {
    const { questions } = await this.#connection.call("question/list", {}, { repeat: true });
    return questions.map(
      (q) => new Question(q.request, q.runId ?? "", new AbortController().signal, q.digest),
    );
  }

  /**
   * Answers one of {@link Client.questions}. The first answer counts, on whatever way it comes. The path is that
   * of an offer; without it the first one with the decision is meant.
   */
  async answer(question: Question, decision: Decision, message?: string, path?: string): Promise<void> {
    await this.#connection.call("question/answer", {
      id: question.id,
      digest: question.digest,
      decision,
      ...(message === undefined ? {} : { message }),
      ...(path === undefined ? {} : { path }),
    });
  }

  /** Has the server ask again about what was approved for the session, by the ID of the question. */
  async forget(id: string): Promise<void> {
    await this.#connection.call("question/forget", { id });
  }

  /** The named sandboxes of this user. */
  async listSandboxes(): Promise<schema.ListedSandbox[]> {
    return (await this.#connection.call("sandbox/list", {}, { repeat: true })).sandboxes;
  }

  /** Ends a named sandbox with everything in it. */
  async stopSandbox(name: string): Promise<void> {
    await this.#connection.call("sandbox/stop", { name });
  }

  /**
   * Files as a command in the workspace has them (default: the directory of the server): relative paths
   * are below it, and only
   * what is below it can be written, without protected names such as `.git/hooks`. With `confined: false`
   * they are
   * those of the user of the server, without a sandbox.
   */
  files(workspace?: string, options: { confined?: boolean } = {}): Files {
    const uri = workspace === undefined ? this.environment.cwd : toURI(workspace, this.environment.cwd);
    return options.confined === false
      ? new Files(this.#connection, uri)
      : Files.confined(this.#connection, uri);
  }
}

// finish passes output on and waits for the end of a run. The end of the signal, and an error of a
// callback, end it.
async function finish(run: Run, options: RunOptions, streams: boolean): Promise<Result> {
  const { signal } = options;
  const input = options.input === undefined ? undefined : feed(run, options.input, signal);
  const read = streams ? run.stream(options, { signal }) : undefined;
  await Promise.all([input, read]);
  return run.wait({ signal });
}

// feed writes the input. A command that ends before it has read all of it is no failure.
async function feed(run: Run, input: string | Uint8Array, signal: AbortSignal | undefined): Promise<void> {
  try {
    await run.write(input, { signal });
    await run.closeStdin();
  } catch (e) {
    if (!(e instanceof RequestError && ["inputClosed", "ended", "unknownRun"].includes(e.reason))) throw e;
  }
}

// guard calls a function of the caller. Its error is not one of the connection: it goes where those of event
// listeners go.
function guard(f: () => void): void {
  try {
    f();
  } catch (e) {
    queueMicrotask(() => {
      throw e;
    });
  }
}
