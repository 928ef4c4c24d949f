// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { ago, line, pieces } from "./text.js";
import { Refusal, wire } from "./wire.js";

/** Shows words of others: what does not show itself is escaped, and marked. */
export function Foreign({ text, lines = false }: { text: string; lines?: boolean }): JSX.Element {
  return (
    <bdi>
      {pieces(text, lines).map((p) =>
        p.hidden ? <span class="hidden-char" title="a character that does not show itself">{p.text}</span>
          : p.text,
      )}
    </bdi>
  );
}

/** Text of others in a fixed font. */
export function Code({ text }: { text: string }): JSX.Element {
  return <code><Foreign text={text} /></code>;
}

/** Renders its user again when the state of the connection changes, and returns the connection. */
export function useWire(): typeof wire {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useLayoutEffect(() => wire.listen(() => again(undefined as never)), []); // before anything can change
  return wire;
}

/** What was loaded, or why it was not. */
export interface Loaded<T> {
  value?: T;
  error?: Error;
}

/**
 * Calls a method with the parameters that `key` stands for, again after each new connection and by `reload`,
 * and after each change if its answer has a `version`; else also when the window is looked at again.
 */
export function useCall<T extends { version?: string }>(
  method: string,
  params: object = {},
  key = "",
): Loaded<T> & { reload(): void } {
  const [got, set] = useState<Loaded<T> & { of?: string }>({});
  const [count, again] = useReducer((n: number) => n + 1, 0);
  const reload = (): void => again(undefined as never);
  const of = `${method} ${key}`;
  useEffect(() => {
    const end = new AbortController();
    void wire.watch<T>(method, params, end.signal, (value, error) =>
      set((old) => (error === undefined ? { of, value: value! } : { ...(old.of === of ? old
        : { of }), error })),
    );
    return () => end.abort();
  }, [of, count]);
  const watched = got.value?.version !== undefined;
  useEffect(() => {
    if (watched) return undefined;
    addEventListener("focus", reload);
    return () => removeEventListener("focus", reload);
  }, [watched]);
  const { value, error } = got.of === of ? got : {};
  return { ...(value === undefined ? {} : { value }), ...(error === undefined ? {} : { error }), reload };
}

/** Something to tell, until it is dismissed. */
export interface Note {
  id: number;
  text: string;
  bad: boolean;
}

let notes: Note[] = [];
let lastNote = 0;
const noteListeners = new Set<() => void>();

function setNotes(all: Note[]): void {
  notes = all.slice(-3);
  for (const f of noteListeners) f();
}

// How long good news stay.
const noteTime = 10_000;

/** Tells something. Words of others in it are escaped. What is bad stays until it is dismissed. */
export function tell(text: string, bad = false): void {
  const id = ++lastNote;
  setNotes([...notes.filter((n) => n.text !== text), { id, text, bad }]);
  if (!bad) setTimeout(() => setNotes(notes.filter((n) => n.id !== id)), noteTime);
}

/** Tells an error. */
export function tellError(e: unknown): void {
  tell(e instanceof Error ? e.message : String(e), true);
}

export function Notes(): JSX.Element {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useLayoutEffect(() => {
    const f = (): void => again(undefined as never);
    noteListeners.add(f);
    return () => noteListeners.delete(f) as unknown as void;
  }, []);
  return (
    <div class="notes" role="status" aria-live="polite">
      {notes.map((n) => (
        <div class={n.bad ? "note bad" : "note"} data-testid="notice" key={n.id}>
          <span><Foreign text={n.text} /></span>
          <button class="quiet" aria-label="Dismiss"
            onClick={() => setNotes(notes.filter((o) => o !== n))}>×</button>
        </div>
      ))}
    </div>
  );
}

/** A view: a heading, and what is below it. */
export function View(p: { name: string; title: string; tools?: ComponentChildren; wide?: boolean;
  children: ComponentChildren }): JSX.Element {
  return (
    <section class={p.wide ? "view wide" : "view"} data-testid={`view-${p.name}`}
      aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title" tabIndex={-1}>{p.title}</h1>
        {p.tools === undefined ? null : <div class="tools">{p.tools}</div>}
      </header>
      {p.children}
    </section>
  );
}

/** What a view says when it has nothing to show: how it is filled. */
export function Empty(p: { title: string; command?: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{p.title}</p>
      {p.children}
      {p.command === undefined ? null : <pre class="command"><code>{p.command}</code></pre>}
    </div>
  );
}

/** Says why something is not shown. */
export function Failed({ error }: { error: Error }): JSX.Element {
  const here = error instanceof Refusal && error.reason === "notHere";
  return (
    <div class="empty" role="alert">
      <p class="empty-title">{here ? "Not available for another machine" : "This cannot be shown"}</p>
      <p><Foreign text={error.message} /></p>
      {here ? <p>This console shows an exec-server of another machine. Run <code>sallyport
        console</code> there.</p> : null}
    </div>
  );
}

export function Loading(): JSX.Element | null {
  if (useWire().state === "gone") return null;
  return <p class="loading" aria-busy="true">Loading…</p>;
}

/** Shows how long ago a time was, and keeps it right. */
export function Ago({ ms }: { ms: number }): JSX.Element {
  useSeconds(ms > 0);
  return <time dateTime={new Date(ms).toISOString()} title={new Date(ms).toLocaleString()}>{ago(ms)}</time>;
}

/** Renders its user again each second, while `on`. */
export function useSeconds(on: boolean): void {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => again(undefined as never), 1000);
    return () => clearInterval(timer);
  }, [on]);
}

/** Copies a text, and says so. */
export async function copy(text: string): Promise<void> {
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (copied || copyByHand(text)) tell("Copied.");
  else tell("The browser does not allow to copy here; select the text, and copy it yourself.", true);
}

// copyByHand copies where the page may not use the clipboard, such as without TLS on another address.
function copyByHand(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}

/** Asks before something is done. The first button that has the focus is the one that does nothing. */
export function Confirm(p: {
  title: string;
  action: string;
  children?: ComponentChildren;
  danger?: boolean;
  onClose(yes: boolean): void;
}): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    ref.current?.querySelector<HTMLElement>("[data-testid=cancel]")?.focus();
    return () => (before instanceof HTMLElement ? before.focus() : undefined);
  }, []);
  const cancel = (e: Event): void => {
    e.preventDefault();
    p.onClose(false);
  };
  return (
    <dialog ref={ref} aria-labelledby="dialog-title" onCancel={cancel}>
      <h2 id="dialog-title">{p.title}</h2>
      {p.children}
      <div class="buttons end">
        <button data-testid="cancel" onClick={() => p.onClose(false)}>Cancel</button>
        <button data-testid="confirm" class={p.danger ? "danger" : "accent"}
          onClick={() => p.onClose(true)}>{p.action}</button>
      </div>
    </dialog>
  );
}

/** A search box. */
export function Search(p: { value: string; label: string; onInput(text: string): void;
  onEnter?(back: boolean): void }): JSX.Element {
  return (
    <input type="search" class="search" data-testid="search" aria-label={p.label} placeholder={p.label}
      value={p.value}
      spellcheck={false} autocomplete="off" onInput={(e) => p.onInput(e.currentTarget.value)}
      onKeyDown={(e) => {
        if (e.key !== "Enter") return;
        e.preventDefault();
        p.onEnter?.(e.shiftKey);
      }} />
  );
}

/** A name and what it stands for, in a list of them. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const ends: Record<string, string> = {
  timed_out: "time limit exceeded",
  oom: "memory limit exceeded",
  pids: "process limit exceeded",
  disk: "disk limit exceeded",
  output: "output limit exceeded",
  not_found: "program not found",
  unavailable: "sandbox not available",
};

/** Returns how something ended, in a word, and whether that is well. */
export function ending(end: string | null | undefined, exitCode: number | null | undefined,
  signal?: number | string): { text: string; bad: boolean } {
  switch (end) {
    case "exited":
      return { text: `exit ${exitCode ?? "?"}`, bad: exitCode !== 0 };
    case "signaled":
      return { text: signal ? `signal ${signal}` : `exit ${exitCode ?? "?"}`, bad: true };
    case null:
    case undefined:
    case "":
      return { text: exitCode === null || exitCode === undefined ? "no end known" : `exit ${exitCode}`,
        bad: exitCode !== 0 };
    default:
      return { text: ends[end] ?? line(end), bad: true };
  }
}
