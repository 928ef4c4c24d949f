// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { load, sizeIn, type Cast } from "./cast.js";
import type { Screen } from "./term.js";
import { bytes, duration } from "./text.js";
import { Ago, Code, Empty, Failed, Foreign, Loading, useCall, View } from "./ui.js";
import { wire } from "./wire.js";

interface Recording {
  name: string;
  startedAtMs?: number;
  durationMs?: number;
  bytes: number;
  title?: string;
}

export function Recordings(): JSX.Element {
  const list = useCall<{ recordings: Recording[]; version?: string }>("recording/list", {});
  const newer = (a: Recording, b: Recording): number => (b.startedAtMs ?? 0) - (a.startedAtMs ?? 0);
  const all = list.value === undefined ? undefined : [...list.value.recordings].sort(newer);
  return (
    <View name="recordings" title="Recordings">
      {list.error !== undefined ? <Failed error={list.error} /> : all === undefined ? <Loading /> : null}
      {all?.length === 0 ? (
        <Empty title="No recordings" command={"sallyport run -t --record -- bash"}>
          <p>A recording has what a terminal showed, with its times. Record a command, and play it here:</p>
        </Empty>
      ) : null}
      <ul class="list">
        {all?.map((r) => (
          <li class="row" data-testid="recording" data-name={r.name} key={r.name}>
            <a class="row-link" href={`#/recordings/${encodeURIComponent(r.name)}`}>
              <div class="row-top"><strong class="one-line"><Foreign text={r.title
                || r.name} /></strong></div>
              <p class="dim meta">{r.startedAtMs ? <Ago ms={r.startedAtMs} />
                : null}{r.durationMs === undefined ? null
                  : <span>{duration(r.durationMs)}</span>}<span>{bytes(r.bytes)}</span><span class="cwd">
                    <Foreign text={r.name} /></span></p>
            </a>
          </li>
        ))}
      </ul>
    </View>
  );
}

// A player shows a recording on a screen.
class Player {
  at = 0;
  playing = false;
  speed = 1;
  #next = 0;
  #frame = 0;
  #last = 0;
  #work: Promise<void> = Promise.resolve();

  // Over is called when the part was played to its end.
  constructor(readonly cast: Cast, readonly screen: Screen, readonly tell: () => void,
    readonly over: () => void) {}

  toggle(): void {
    if (!this.playing && this.at >= this.cast.seconds) this.seek(0);
    this.playing = !this.playing;
    this.#last = performance.now();
    if (this.playing) this.#frame = requestAnimationFrame((now) => this.#step(now));
    this.tell();
  }

  stop(): void {
    this.playing = false;
    cancelAnimationFrame(this.#frame);
  }

  seek(to: number): void {
    if (to < this.at) {
      this.#next = 0;
      this.#work = this.#work.then(() => {
        this.screen.term.reset();
        this.screen.term.resize(this.cast.cols, this.cast.rows);
      });
    }
    this.at = to > this.cast.seconds - 0.001 ? this.cast.seconds : to; // the browser rounds the end
    this.#show();
    this.tell();
  }

  #step(now: number): void {
    if (!this.playing) return;
    this.at = Math.min(this.cast.seconds, this.at + (Math.max(0, now - this.#last) / 1000) * this.speed);
    this.#last = now;
    this.#show();
    if (this.at >= this.cast.seconds) {
      this.playing = false;
      void this.#work.then(this.over);
    }
    this.tell();
    // The next step waits for the screen, so that output does not pile up.
    void this.#work.then(() => {
      if (this.playing) this.#frame = requestAnimationFrame((next) => this.#step(next));
    });
  }

  // show writes what has come until now.
  #show(): void {
    const { events } = this.cast;
    let text = "";
    const flush = (): void => {
      const data = text;
      text = "";
      if (data !== "") this.#work = this.#work.then(() => this.screen.write(data));
    };
    for (; this.#next < events.length && events[this.#next]!.at <= this.at; this.#next++) {
      const e = events[this.#next]!;
      if (e.kind === "o") text += e.data;
      const size = e.kind === "r" ? sizeIn(e.data) : undefined;
      if (size === undefined) continue;
      flush();
      this.#work = this.#work.then(() => this.screen.term.resize(size.cols, size.rows));
    }
    flush();
  }
}

const clock = (s: number): string => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;

export function PlayerView({ name }: { name: string }): JSX.Element {
  const into = useRef<HTMLDivElement>(null);
  const [player, setPlayer] = useState<Player>();
  const [, again] = useState(0);
  const [part, setPart] = useState(0);
  const [error, setError] = useState<Error>();
  const [before, setBefore] = useState<number[]>([]);
  const turn = useRef((_from: number, _go: boolean): void => undefined);
  useEffect(() => {
    const end = new AbortController();
    let playing: Player | undefined;
    const make = async (): Promise<void> => {
      await wire.ready(end.signal);
      const [first, { open }] = await Promise.all([load(name, 0, end.signal, setPart), import("./term.js")]);
      if (end.signal.aborted) return;
      const screen = open(into.current!, { cols: first.cols, rows: first.rows, convertEol: false,
        label: "Recording " + name });
      screen.term.attachCustomKeyEventHandler(() => false);
      end.signal.addEventListener("abort", () => {
        playing?.stop();
        screen.dispose();
      });
      const show = (cast: Cast): Player => {
        playing = new Player(cast, screen, () => again((n) => n + 1), () => {
          if (cast.next < cast.bytes) turn.current(cast.next, true);
        });
        setPlayer(playing);
        return playing;
      };
      // A part that follows goes on with the screen; for others what was before is not known.
      turn.current = (from, go): void => {
        const { speed } = playing!;
        playing!.stop();
        setPlayer(undefined);
        setBefore((all) => all.includes(from) ? all.slice(0, all.indexOf(from))
          : [...all, playing!.cast.from]);
        load(name, from, end.signal, setPart).then((cast) => {
          if (!go) screen.term.reset();
          const p = show(cast);
          p.speed = speed;
          if (go) p.toggle();
          else p.seek(0);
        }).catch(fail);
      };
      show(first).seek(0);
    };
    const fail = (e: Error): void => {
      if (!end.signal.aborted) setError(e);
    };
    make().catch(fail);
    return () => end.abort();
  }, [name]);
  const p = player;
  return (
    <View name="recordings" title="Recording" wide
      tools={<a class="button" href="#/recordings">All recordings</a>}>
      <p class="dim"><Code text={name} /></p>
      {error !== undefined ? <Failed error={error} />
        : p === undefined ? <p class="loading" aria-busy="true">Loading… {Math.round(part * 100)} %</p>
          : <Controls p={p} />}
      <div class="term-frame free" hidden={error !== undefined}>
        <div class="term" data-testid="terminal" ref={into} role="region"
          aria-label="Screen of the recording" />
      </div>
      {p !== undefined && p.cast.next - p.cast.from < p.cast.bytes ? (
        <nav class="buttons pager" aria-label="Parts">
          <button data-testid="newer" disabled={before.length === 0}
            onClick={() => turn.current(before.at(-1)!, false)}>← Before</button>
          <span class="dim">{bytes(p.cast.from)} to {bytes(p.cast.next)} of {bytes(p.cast.bytes)}</span>
          <button data-testid="older" disabled={p.cast.next >= p.cast.bytes}
            onClick={() => turn.current(p.cast.next, false)}>Next →</button>
        </nav>
      ) : null}
      {p === undefined ? null : <Marks p={p} />}
    </View>
  );
}

function Controls({ p }: { p: Player }): JSX.Element {
  return (
    <div class="bar player">
      <button data-testid="play" class="accent" onClick={() => p.toggle()}>{p.playing ? "Pause"
        : "Play"}</button>
      <input type="range" class="seek" data-testid="seek" aria-label="Position"
        aria-valuetext={`${clock(p.at)} of ${clock(p.cast.seconds)}`}
        min="0" max={String(p.cast.seconds)} step="any" value={String(p.at)}
          onInput={(e) => p.seek(Number(e.currentTarget.value))}
        onKeyDown={(e) => {
          const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
          if (step === 0) return;
          e.preventDefault();
          p.seek(Math.min(p.cast.seconds, Math.max(0, p.at + step * Math.max(1, p.cast.seconds / 50))));
        }} />
      <span class="clock" data-testid="clock">{clock(p.at)} / {clock(p.cast.seconds)}</span>
      <select data-testid="speed" aria-label="Speed" value={String(p.speed)}
        onChange={(e) => (p.speed = Number(e.currentTarget.value))}>
        {[0.5, 1, 2, 4, 8, 16].map((s) => <option value={String(s)}>{s}×</option>)}
      </select>
    </div>
  );
}

function Marks({ p }: { p: Player }): JSX.Element | null {
  const marks = p.cast.events.filter((e) => e.kind === "m").slice(0, 200);
  if (marks.length === 0) return null;
  return (
    <section class="card">
      <h2>Marks</h2>
      <ul class="plain">
        {marks.map((m) => (
          <li>
            <button class="quiet" onClick={() => p.seek(m.at)}>{clock(m.at)}</button>{" "}
            <Foreign text={m.data} />
          </li>
        ))}
      </ul>
    </section>
  );
}
