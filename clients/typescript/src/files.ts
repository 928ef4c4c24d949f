// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Connection } from "./connection.js";
import { fromBase64, toBase64, toBytes, toURI } from "./encoding.js";
import { FileNotFoundError, InvalidError, RequestError } from "./errors.js";
import { randomId } from "./run.js";
import type { DirectoryEntry, FsGetMetadataResult, Requests, SandboxParam } from "./schema.js";

// The most of one block, and of a file in one message: the server has 12 MiB less some bytes.
const blockBytes = 1 << 20;
const wholeBytes = 11 << 20;

/** An entry of a directory. */
export interface Entry {
  name: string;
  type: "file" | "directory" | "other";
}

// What does no harm when it is performed twice.
const harmless: readonly string[] = ["fs/readFile", "fs/writeFile", "fs/getMetadata", "fs/readDirectory"];

type FileMethod = Extract<keyof Requests, `fs/${string}`>;

/** Files of the server's machine. Relative paths are below one directory. */
export class Files {
  readonly #connection: Connection;
  readonly #base: string;
  readonly #sandbox: SandboxParam | undefined;

  /** @internal base is the URI of a directory. */
  constructor(connection: Connection, base: string, sandbox?: SandboxParam) {
    this.#connection = connection;
    this.#base = base;
    this.#sandbox = sandbox;
  }

  /** @internal Files as a command in a workspace has them. */
  static confined(connection: Connection, uri: string): Files {
    return new Files(connection, uri, {
      windowsSandboxLevel: "disabled",
      cwd: uri,
      workspaceRoots: [uri],
      permissions: {
        type: "managed",
        network: "restricted",
        file_system: {
          type: "restricted",
          entries: [
            { access: "read", path: { type: "special", value: { kind: "root" } } },
            { access: "write", path: { type: "path", path: uri } },
          ],
        },
      },
    });
  }

  /** Reads a file, as text in UTF-8 unless `format` is `"bytes"`. */
  async read(path: string, options?: { format?: "text" }): Promise<string>;
  async read(path: string, options: { format: "bytes" }): Promise<Uint8Array>;
  async read(path: string, options: { format?: "text" | "bytes" } = {}): Promise<string | Uint8Array> {
    const data = await this.#readAll(path);
    return options.format === "bytes" ? data : new TextDecoder().decode(data);
  }

  async #readAll(path: string): Promise<Uint8Array> {
    try {
      return fromBase64((await this.#call("fs/readFile", { path: this.#uri(path) })).dataBase64);
    } catch (e) {
      if (!(e instanceof RequestError) || e instanceof FileNotFoundError) throw e;
      if ((await this.getInfo(path)).size <= wholeBytes) throw e;
    }
    const parts: Uint8Array[] = [];
    for await (const part of this.readStream(path)) parts.push(part);
    const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
    let at = 0;
    for (const p of parts) {
      all.set(p, at);
      at += p.length;
    }
    return all;
  }

  /** Reads a file in blocks of 1 MiB. */
  async *readStream(path: string): AsyncGenerator<Uint8Array, void, undefined> {
    const handleId = randomId();
    await this.#call("fs/open", { handleId, path: this.#uri(path), mode: "read" });
    try {
      for (let offset = 0; ;) {
        const got = await this.#connection.call("fs/readBlock", { handleId, offset, len: blockBytes });
        const data = fromBase64(got.chunk);
        if (data.length > 0) yield data;
        offset += data.length;
        if (got.eof) return;
      }
    } finally {
      await this.#connection.call("fs/close", { handleId });
    }
  }

  /**
   * Writes a file; its directory must exist. With `atomic` a new file takes the place of the old one, for at
   * most 11 MiB.
   */
  async write(path: string, data: string | Uint8Array, options: { atomic?: boolean } = {}): Promise<void> {
    const bytes = toBytes(data);
    if (bytes.length <= wholeBytes) {
      await this.#call("fs/writeFile", {
        path: this.#uri(path),
        dataBase64: toBase64(bytes),
        ...(options.atomic ? { atomic: true } : {}),
      });
      return;
    }
    if (options.atomic)
      throw new InvalidError(`atomic is for at most ${wholeBytes} bytes; write a new file and rename it`);
    const handleId = randomId();
    await this.#call("fs/open", { handleId, path: this.#uri(path), mode: "replace" });
    try {
      for (let offset = 0; offset < bytes.length; offset += blockBytes) {
        await this.#connection.call("fs/writeBlock", {
          handleId,
          offset,
          chunk: toBase64(bytes.subarray(offset, offset + blockBytes)),
        });
      }
    } finally {
      await this.#connection.call("fs/close", { handleId });
    }
  }

  /** Writes at the end of a file, which is created when it is missing. */
  async append(path: string, data: string | Uint8Array): Promise<void> {
    await this.#call("fs/append", { path: this.#uri(path), dataBase64: toBase64(toBytes(data)) });
  }

  /** The entries of a directory. */
  async list(path: string): Promise<Entry[]> {
    const { entries } = await this.#call("fs/readDirectory", { path: this.#uri(path) });
    return entries.map((e: DirectoryEntry) => ({
      name: e.fileName,
      type: e.isDirectory ? "directory" : e.isFile ? "file" : "other",
    }));
  }

  /** What the system says of a file or a directory. */
  getInfo(path: string): Promise<FsGetMetadataResult> {
    return this.#call("fs/getMetadata", { path: this.#uri(path) });
  }

  /** Whether there is a file or a directory. */
  async exists(path: string): Promise<boolean> {
    try {
      await this.getInfo(path);
      return true;
    } catch (e) {
      if (e instanceof FileNotFoundError) return false;
      throw e;
    }
  }

  /** Makes a directory and those above it. */
  async makeDir(path: string): Promise<void> {
    await this.#call("fs/createDirectory", { path: this.#uri(path) });
  }

  /** Removes a file, or a directory with what is in it. That there is none is an error. */
  async remove(path: string): Promise<void> {
    await this.#call("fs/remove", { path: this.#uri(path), recursive: true, force: false });
  }

  /** Renames a file or a directory. What exists is replaced only with `replace`. */
  async rename(from: string, to: string, options: { replace?: boolean } = {}): Promise<void> {
    await this.#call("fs/rename", {
      sourcePath: this.#uri(from),
      destinationPath: this.#uri(to),
      replace: options.replace ?? false,
    });
  }

  #uri(path: string): string {
    return toURI(path, this.#base);
  }

  #call<M extends FileMethod>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]> {
    const p = this.#sandbox === undefined ? params : { ...params, sandbox: this.#sandbox };
    return this.#connection.call(method, p, { repeat: harmless.includes(method) });
  }
}
