// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Log, start, type Place } from "./log.js";
import { stateOf, type Run, type RunList } from "./sessions.js";
import type { Screen } from "./term.js";
import { bytes, encode, words } from "./text.js";
import { Confirm, copy, Failed, Foreign, Search, tell, tellError, useCall, useWire, View } from "./ui.js";
import { wire } from "./wire.js";

const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL", "SIGSTOP", "SIGCONT", "SIGUSR1",
  "SIGUSR2", "SIGWINCH"];

const leave = (): void => {
  location.hash = "#/sessions";
};

/** A terminal of the page, and what a person does with it. */
interface Desk {
  screen: Screen;
  log: Log;
  control: boolean;
  pick(control: boolean): void;
}

// connect makes the screen of a session, and returns what ends it.
async function connect(id: string, into: HTMLElement, signal: AbortSignal, o: {
  tty: boolean;
  size(): { cols: number; rows: number } | undefined; // that of its terminal; undefined without one
  place(p: Place): void;
  fail(e: unknown): void;
}): Promise<Desk | undefined> {
  const { open } = await import("./term.js");
  await wire.ready(signal);
  const screen = open(into, { ...(o.size() ?? { cols: 80, rows: 24 }), convertEol: !o.tty,
    label: "Terminal of session " + id });
  const log = new Log(id, screen, o.place, o.fail);
  const desk: Desk = { screen, log, control: false, pick: () => undefined };
  const resize = (): void => {
    const fits = screen.fits(into.parentElement!);
    if (o.size() === undefined || desk.control) screen.term.resize(fits.cols, fits.rows);
    if (desk.control && o.tty) wire.call("run/resize", { runId: id, ...fits }).catch(tellError);
  };
  resize();
  const observer = new ResizeObserver(resize);
  observer.observe(into.parentElement!);
  desk.pick = (control) => {
    desk.control = control;
    screen.term.options.disableStdin = !control;
    screen.term.options.cursorBlink = control;
    if (!control) return;
    resize();
    screen.term.focus();
  };
  const type = (data: string, binary = false): void => {
    if (data === "\x1c") return leave();
    if (!desk.control) return;
    const chunk = binary ? Uint8Array.from(data, (c) => c.charCodeAt(0)) : new TextEncoder().encode(data);
    wire.call("run/write", { runId: id, chunk: encode(chunk) }).catch(tellError);
  };
  screen.term.onData((data) => type(data));
  screen.term.onBinary((data) => type(data, true));
  screen.term.attachCustomKeyEventHandler((e) => {
    if (isDetach(e)) return false; // the view takes it
    if (desk.control) return true;
    const pages = e.type !== "keydown" ? 0 : e.key === "PageUp" ? -1 : e.key === "PageDown" ? 1 : 0;
    const top = screen.term.buffer.active.viewportY === 0;
    if (pages < 0 && top && log.place.from > 0) log.turn(true).catch(o.fail);
    else if (pages !== 0) screen.term.scrollPages(pages);
    return false;
  });
  signal.addEventListener("abort", () => {
    observer.disconnect();
    log.stop();
    screen.dispose();
  });
  void log.live().catch(o.fail);
  return desk;
}

// isDetach reports whether a key is that of sallyport attach which detaches.
function isDetach(e: KeyboardEvent): boolean {
  return e.ctrlKey && !e.altKey && !e.metaKey && (e.key === "\\" || e.key === "\x1c");
}

export function TerminalView({ id }: { id: string }): JSX.Element {
  const { viewOnly, state } = useWire();
  const list = useCall<RunList>("run/list", {});
  const run = list.value?.runs.find((r) => r.runId === id);
  const known = list.value !== undefined;
  const into = useRef<HTMLDivElement>(null);
  const desk = useRef<Desk | undefined>(undefined);
  const [place, setPlace] = useState(start);
  const [error, setError] = useState<Error>();
  const [control, setControl] = useState(false);
  const wanted = useRef(false);
  const tty = run?.tty ?? false;
  const size = useRef(run?.size);
  size.current = run?.size;
  useEffect(() => {
    if (!known || run === undefined) return undefined;
    const end = new AbortController();
    const fail = (e: unknown): void => {
      if (!end.signal.aborted) setError(e as Error);
    };
    const wants = { tty, size: () => size.current, place: setPlace, fail };
    connect(id, into.current!, end.signal, wants).then((d) => {
      if (end.signal.aborted || d === undefined) return;
      desk.current = d;
      d.pick(wanted.current); // it may have been taken before the terminal was there
    }, fail);
    return () => {
      end.abort();
      desk.current = undefined;
      wanted.current = false;
      setControl(false);
    };
  }, [id, known, run === undefined, tty]);
  useEffect(() => {
    const keys = (e: KeyboardEvent): void => {
      if (!isDetach(e) || document.querySelector("dialog[open]")) return;
      e.preventDefault();
      leave();
    };
    addEventListener("keydown", keys, true);
    return () => removeEventListener("keydown", keys, true);
  }, []);
  const { cols = 0, rows = 0 } = run?.size ?? {};
  useEffect(() => {
    if (cols > 0 && !control) desk.current?.screen.term.resize(cols, rows); // another terminal's
  }, [cols, rows, control]);
  const alive = run !== undefined && (run.running || run.starting);
  const take = (on: boolean): void => {
    wanted.current = on;
    setControl(on);
    desk.current?.pick(on);
  };
  useEffect(() => {
    if (!alive && control) take(false);
  }, [alive]);
  const title = run === undefined ? `Session ${id}` : words(run.argv);
  return (
    <View name="sessions" title={`Session ${id}`} wide tools={<button data-testid="detach"
      onClick={leave}>Back to sessions <kbd>Ctrl \</kbd></button>}>
      {known && run === undefined ? (
        <Failed error={new Error(`There is no session ${id}. Those that have ended are known for an hour.`)}
          />
      ) : error !== undefined ? <Failed error={error} /> : null}
      {run === undefined ? null : (
        <>
          <p class="term-head">
            <State run={run} />
            <code class="one-line" title={title}><Foreign text={title} /></code>
          </p>
          <Tools id={id} desk={desk} alive={alive} control={control} take={take} viewOnly={viewOnly}
            place={place} />
        </>
      )}
      <div class={control ? "term-frame control" : "term-frame"} hidden={run === undefined}>
        <div class="term" data-testid="terminal" ref={into} role="region"
          aria-label={`Output of session ${id}`} />
      </div>
      <p class="hint" role="status">{state !== "connected"
        ? "Not connected: the output goes on here when it is." : footer(place, control, alive)}</p>
    </View>
  );
}

function State({ run }: { run: Run }): JSX.Element {
  const s = stateOf(run);
  return <span class={`badge ${s.kind}`}>{s.text}</span>;
}

const mib = (n: number): string => (n / (1 << 20)).toFixed(2);

function footer(place: Place, control: boolean, alive: boolean): string {
  const to = place.live ? "on" : `to ${mib(place.to)} MiB`;
  const range = place.from > 0 || !place.live ? `Output from ${mib(place.from)} MiB ${to}. ` : "";
  if (control) return range + "Keys go to the command; take control again to give it back. Ctrl \\ leaves.";
  if (place.complete && place.live && !alive) return range + "The session has ended.";
  return range + (alive ? "You are watching: take control to type." : "");
}

function Tools(p: {
  id: string;
  desk: { current: Desk | undefined };
  alive: boolean;
  control: boolean;
  take(on: boolean): void;
  viewOnly: boolean;
  place: Place;
}): JSX.Element {
  const [signal, setSignal] = useState("SIGINT");
  const [stopping, setStopping] = useState(false);
  const usable = p.alive && !p.viewOnly;
  const send = (): void => {
    wire.call("run/signal", { runId: p.id, signal }).then(() => tell(`Sent ${signal}.`), tellError);
  };
  const stop = (yes: boolean): void => {
    setStopping(false);
    if (yes) wire.call("run/terminate", { runId: p.id }).catch(tellError);
  };
  return (
    <div class="bar">
      <button data-testid="take-control" class={p.control ? "accent" : ""} aria-pressed={p.control}
        disabled={!usable}
        title={p.viewOnly ? "This console is view-only" : ""} onClick={() => p.take(!p.control)}>
        Take control
      </button>
      <span class="group">
        <select aria-label="Signal" data-testid="signal-name" value={signal} disabled={!usable}
          onChange={(e) => setSignal(e.currentTarget.value)}>
          {signals.map((s) => <option value={s}>{s}</option>)}
        </select>
        <button data-testid="signal" disabled={!usable} onClick={send}>Send signal</button>
      </span>
      <button data-testid="stop" class="danger-quiet" disabled={!usable}
        onClick={() => setStopping(true)}>Stop</button>
      <span class="space" />
      <LogTools {...p} />
      {stopping ? (
        <Confirm title="Stop this session?" action="Stop" danger onClose={stop}>
          <p>The command and all of its processes are ended.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

function LogTools({ desk, place }: { desk: { current: Desk | undefined };
  place: Place }): JSX.Element {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState("");
  const find = async (back: boolean): Promise<void> => {
    const d = desk.current;
    if (d === undefined || text === "" || busy !== "") return;
    const { search, term } = d.screen;
    if (back ? search.findPrevious(text) : search.findNext(text)) return;
    setBusy("searching…");
    try {
      const found = await d.log.find(text, back, (at) => setBusy(`searching at ${bytes(at)}…`));
      if (found) {
        term.clearSelection();
        if (back) search.findPrevious(text);
        else search.findNext(text);
      } else {
        tell(`"${text}" is not in the output ${back ? "before" : "after"} this.`);
      }
    } catch (e) {
      tellError(e);
    } finally {
      setBusy("");
    }
  };
  const turn = (back: boolean): void => void desk.current?.log.turn(back).catch(tellError);
  return (
    <>
      <Search label="Search in output" value={text} onInput={(t) => {
        setText(t);
        if (t !== "") desk.current?.screen.search.findPrevious(t, { incremental: true });
      }} onEnter={(shift) => void find(!shift)} />
      {busy === "" ? null : <span class="hint">{busy}</span>}
      <span class="group">
        <button data-testid="log-older" title="Older output" disabled={place.from === 0}
          onClick={() => turn(true)}>Older</button>
        <button data-testid="log-newer" disabled={place.live}
          onClick={() => turn(false)}>Newer</button>
        <button data-testid="log-live" disabled={place.live}
          onClick={() => void desk.current?.log.live().catch(tellError)}>Live</button>
      </span>
      <button data-testid="copy-screen" onClick={() => {
        void import("./term.js").then(({ textOf }) => desk.current && copy(textOf(desk.current.screen.term)));
      }}>Copy</button>
    </>
  );
}
