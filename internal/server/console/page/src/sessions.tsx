// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes, duration, plural, words } from "./text.js";
import { Ago, Empty, ending, Failed, Foreign, Loading, Search, useCall, View } from "./ui.js";

export interface Run {
  runId: string;
  argv: string[];
  cwd: string;
  tty: boolean;
  size?: { cols: number; rows: number };
  startedAtMs: number;
  starting: boolean;
  running: boolean;
  exitCode: number | null;
  signal?: number;
  end: string | null;
  lastLine?: string;
  denials?: number;
  cpuMs?: number | null;
  memoryBytes?: number | null;
  waitsFor?: string;
}

export interface RunList {
  runs: Run[];
  version?: string;
}

const waits: Record<string, string> = { input: "waits for input", password: "waits for a password",
  answer: "waits for an answer" };

/** Returns what a session does, in words. */
export function stateOf(r: Run): { text: string; kind: string } {
  const waiting = r.waitsFor ? waits[r.waitsFor] ?? "waits" : "";
  if (r.starting) return { text: waiting || "starting", kind: "warn" };
  if (r.running) return waiting === "" ? { text: "running", kind: "live" } : { text: waiting, kind: "warn" };
  const e = ending(r.end, r.exitCode, r.signal);
  return { text: e.text, kind: e.bad ? "bad" : "" };
}

export function Sessions(): JSX.Element {
  const list = useCall<RunList>("run/list", {});
  const [filter, setFilter] = useState("");
  const all = [...(list.value?.runs ?? [])].sort((a, b) => b.startedAtMs - a.startedAtMs);
  const wanted = filter.toLowerCase();
  const text = (r: typeof all[number]): string => `${r.runId} ${words(r.argv)} ${r.lastLine ?? ""}`;
  const shown = all.filter((r) => text(r).toLowerCase().includes(wanted));
  const search = <Search label="Filter sessions" value={filter} onInput={setFilter} />;
  return (
    <View name="sessions" title="Sessions" tools={all.length === 0 ? undefined : search}>
      {list.error !== undefined ? <Failed error={list.error} /> : list.value === undefined ? <Loading />
        : null}
      {list.value !== undefined && all.length === 0 ? (
        <Empty title="No sessions" command={"sallyport run --detach -t -- bash"}>
          <p>A session is a run that goes on without a terminal. Start one, and it is here at once:</p>
        </Empty>
      ) : null}
      {all.length > 0 && shown.length === 0 ? <p class="hint">No session matches.</p> : null}
      <ul class="list">
        {shown.map((r) => <Row key={r.runId} r={r} />)}
      </ul>
    </View>
  );
}

function Row({ r }: { r: Run }): JSX.Element {
  const s = stateOf(r);
  const facts = [
    r.cpuMs ? `${duration(r.cpuMs)} of CPU` : "",
    r.memoryBytes ? bytes(r.memoryBytes) : "",
    r.denials ? plural(r.denials, "denial") : "",
  ].filter(Boolean);
  return (
    <li class="row" data-testid="session" data-id={r.runId}>
      <div class="row-main">
        <div class="row-top">
          <span class={`badge ${s.kind}`}>{s.text}</span>
          <code class="row-command"><Foreign text={words(r.argv)} /></code>
        </div>
        {r.lastLine ? <code class="last-line one-line"><Foreign text={r.lastLine} /></code> : null}
        <p class="dim meta">
          <span>{r.runId}</span>
          <Ago ms={r.startedAtMs} />
          <span class="cwd"><Foreign text={r.cwd} /></span>
          {facts.map((f) => <span>{f}</span>)}
        </p>
      </div>
      <a class="button" data-testid="session-open" href={`#/sessions/${encodeURIComponent(r.runId)}`}
        aria-label={`Open session ${r.runId}`}>Open</a>
    </li>
  );
}
