// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { Client, type ConnectOptions, type RunOptions } from "./client.js";
import type { Command, StartOptions } from "./command.js";
import { fromURI } from "./encoding.js";
import { CommandExitError, InvalidError, RequestError, SallyportError, type NotRunError } from "./errors.js";
import type { Files } from "./files.js";
import type { Result } from "./result.js";
import { randomId, Run, type Chunk, type WaitOptions } from "./run.js";
import type { ListedRun } from "./schema.js";

/** How a sandbox is made. */
export interface SandboxOptions extends ConnectOptions {
  /** A client to use, which {@link Sandbox.kill} does not close. */
  client?: Client;
  /** Where to connect, without `client`. */
  url?: string;
  /** Its name: 1 to 64 letters, digits, dots, hyphens and underscores; default a new one. */
  name?: string;
  /**
   * The directory of the commands, an absolute path of the server's machine; default a new one, removed by
   * `kill`.
   */
  workspace?: string;
  /** Flags of `sallyport run` for all commands. */
  flags?: readonly string[];
  /** What all commands may do beyond the settings of the server. */
  grants?: readonly string[];
  /** Variables for all commands, as those of a command with `envs`. */
  envs?: Record<string, string>;
  /** How long it stays without a command; default 10 minutes. */
  idleMs?: number;
}

/** How a command runs in a sandbox. */
export interface CommandRunOptions extends Omit<RunOptions, "cwd" | "sandbox" | "idleMs" | "env"> {
  /** A directory; a relative one is below the workspace. */
  cwd?: string;
  /** Variables beside those of the server. */
  envs?: Record<string, string>;
  /** Resolve with a {@link CommandHandle} when the command runs. */
  background?: boolean;
}

interface Shared {
  client: Client;
  name: string;
  workspace: string;
  options: SandboxOptions;
}

/** A command in the background. */
export class CommandHandle extends Run {
  /** The number of the run. */
  get pid(): string {
    return this.id;
  }

  /** Ends the command, and reports whether it was alive. */
  kill(): Promise<boolean> {
    return this.terminate();
  }

  /** Waits for the end. Another exit code than 0 is a {@link CommandExitError}. */
  override async wait(options: WaitOptions = {}): Promise<Result> {
    return checked(await super.wait(options));
  }
}

function checked(result: Result): Result {
  if (!result.ok) throw new CommandExitError(result);
  return result;
}

/** One stream of the output of a {@link Process}. */
export class ProcessStream {
  readonly #run: Run;
  readonly #stream: Chunk["stream"];

  /** @internal */
  constructor(run: Run, stream: Chunk["stream"]) {
    this.#run = run;
    this.#stream = stream;
  }

  /** Its text from the beginning, as it comes. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    for await (const chunk of this.#run.output())
      if (chunk.stream === this.#stream && chunk.text !== "") yield chunk.text;
  }

  /** All of it, at the end. */
  async readText(): Promise<string> {
    let all = "";
    for await (const text of this) all += text;
    return all;
  }
}

/** A process of {@link Sandbox.exec}. */
export class Process {
  readonly run: Run;
  readonly stdout: ProcessStream;
  readonly stderr: ProcessStream;
  readonly stdin: {
    writeText(text: string): Promise<void>;
    writeBytes(data: Uint8Array): Promise<void>;
    close(): Promise<void>;
  };

  /** @internal */
  constructor(run: Run) {
    this.run = run;
    this.stdout = new ProcessStream(run, "stdout");
    this.stderr = new ProcessStream(run, "stderr");
    this.stdin = {
      writeText: (text) => run.write(text),
      writeBytes: (data) => run.write(data),
      close: () => run.closeStdin(),
    };
  }

  /** Waits for the end, and returns the exit code. */
  async wait(): Promise<number> {
    return (await this.run.wait()).exitCode;
  }
}

/** Commands in a sandbox. */
export class Commands {
  readonly #s: Shared;

  /** @internal */
  constructor(shared: Shared) {
    this.#s = shared;
  }

  /**
   * Runs a script to its end. Another exit code than 0 is a {@link CommandExitError}; a script that does
   * not run
   * is a {@link NotRunError}.
   */
  run(script: string, options?: CommandRunOptions & { background?: false }): Promise<Result>;
  run(script: string, options: CommandRunOptions & { background: true }): Promise<CommandHandle>;
  async run(script: string, options: CommandRunOptions = {}): Promise<Result | CommandHandle> {
    const { background, ...rest } = options;
    if (background) return this.start(script, rest);
    return checked(await this.#s.client.run(within(script, options.cwd), this.options(rest)));
  }

  /**
   * Starts a script, or a program. With `onStdout` or `onStderr` its output is passed on, and none is
   * missing.
   */
  async start(command: Command, options: CommandRunOptions & StartOptions = {}): Promise<CommandHandle> {
    const { onStdout, onStderr, input, ...rest } = this.options(options);
    if (input !== undefined) throw new InvalidError("input is for run; use openStdin and sendStdin");
    const streams = onStdout !== undefined || onStderr !== undefined;
    const run = await this.#s.client.startAs(CommandHandle, within(command, options.cwd), {
      ...rest,
      ...(streams ? { reader: true } : {}),
    });
    if (streams) {
      run.stream({ ...(onStdout && { onStdout }), ...(onStderr && { onStderr }) }).catch((e: unknown) => {
        if (!(e instanceof SallyportError)) throw e; // of a callback; others are those of run.wait, too
      });
    }
    return run;
  }

  /** The commands of the server in this workspace. */
  async list(): Promise<ListedRun[]> {
    const { workspace } = this.#s;
    return (await this.#s.client.list()).filter(
      (r) => r.cwd === workspace || r.cwd.startsWith(workspace + "/"),
    );
  }

  /** A command that was started before, by the ID of its run. */
  connect(id: string): CommandHandle {
    return this.#s.client.attachAs(CommandHandle, id);
  }

  /** Writes to the input of a command that was started with `openStdin` or `tty`. */
  sendStdin(id: string, data: string | Uint8Array): Promise<void> {
    return this.connect(id).write(data);
  }

  /** Ends a command, and reports whether it was alive. */
  kill(id: string): Promise<boolean> {
    return this.connect(id).kill();
  }

  /** @internal */
  options<T extends CommandRunOptions>(o: T): Omit<T, "envs" | "background"> {
    const { envs, background: _, ...rest } = o;
    const { name, workspace, options } = this.#s;
    const flags = [...(options.flags ?? [])];
    for (const [key, value] of Object.entries({ ...options.envs, ...envs }))
      flags.push("--env", `${key}=${value}`);
    const out = {
      ...rest,
      cwd: workspace,
      flags: [...flags, ...(o.flags ?? [])],
      grants: [...(options.grants ?? []), ...(o.grants ?? [])],
    };
    // One sandbox has one policy: what asks for more runs in a sandbox of its own, in the same workspace.
    const alone = (o.grants?.length ?? 0) > 0 || (o.askFor?.length ?? 0) > 0 || o.escalate;
    if (alone) return out;
    return { ...out, sandbox: name, ...(options.idleMs === undefined ? {} : { idleMs: options.idleMs }) };
  }
}

// within has a script begin in another directory: one sandbox has one workspace, where commands begin.
function within(command: Command, cwd: string | undefined): Command {
  if (cwd === undefined) return command;
  if (typeof command !== "string")
    throw new InvalidError("cwd is for scripts; a program begins in the workspace");
  return `cd -- '${cwd.replaceAll("'", "'\\''")}' || exit\n${command}`;
}

/** A named sandbox of a server with a workspace, in the shape of those of E2B and Modal. */
export class Sandbox {
  readonly client: Client;
  /** Its name. */
  readonly sandboxId: string;
  /** The directory of its commands. */
  readonly workspace: string;
  readonly commands: Commands;
  /** The files of the workspace; {@link Client.files} has the rules. */
  readonly files: Files;
  readonly #owns: { client: boolean; workspace: boolean };

  /** @internal */
  constructor(shared: Shared, owns: { client: boolean; workspace: boolean }) {
    this.client = shared.client;
    this.sandboxId = shared.name;
    this.workspace = shared.workspace;
    this.commands = new Commands(shared);
    this.files = shared.client.files(shared.workspace);
    this.#owns = owns;
  }

  /**
   * Makes a sandbox, or joins that with the name. A sandbox that is not available is a {@link NotRunError}.
   */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const client = options.client ?? (await this.connectFor(options));
    const owns = { client: options.client === undefined, workspace: options.workspace === undefined };
    const workspace =
      options.workspace ??
      `${fromURI(client.environment.tempDir).replace(/\/$/, "")}/sallyport-${randomId()}`;
    const files = client.files(undefined, { confined: false });
    try {
      if (owns.workspace) await files.makeDir(workspace);
      const sandbox = new this(
        { client, name: options.name ?? `sandbox-${randomId()}`, workspace, options },
        owns,
      );
      await client.run(["true"], sandbox.commands.options({})); // opens it
      return sandbox;
    } catch (e) {
      if (owns.workspace) await files.remove(workspace).catch(() => undefined); // e says more
      if (owns.client) await client.close();
      throw e;
    }
  }

  /** @internal */
  protected static connectFor(options: SandboxOptions): Promise<Client> {
    if (options.url === undefined) throw new InvalidError("there is no server; set url or client");
    return Client.connect(options.url, options);
  }

  /** Starts a program, whose input is open. */
  async exec(argv: readonly string[], options: CommandRunOptions & StartOptions = {}): Promise<Process> {
    const { id } = await this.commands.start(argv, { openStdin: true, ...options });
    return new Process(this.client.attach(id));
  }

  /** Whether it is there: it ends when no command has run in it for `idleMs`. */
  async isRunning(): Promise<boolean> {
    return (await this.client.listSandboxes()).some((s) => s.name === this.sandboxId);
  }

  /** Ends the sandbox with everything in it, and removes its workspace if that was new. */
  async kill(): Promise<void> {
    try {
      await this.client.stopSandbox(this.sandboxId).catch((e: unknown) => {
        if (!(e instanceof RequestError && e.reason === "unknownSandbox")) throw e; // it has ended already
      });
      if (this.#owns.workspace)
        await this.client.files(undefined, { confined: false }).remove(this.workspace);
    } finally {
      if (this.#owns.client) await this.client.close();
    }
  }
}
