// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { plural } from "./text.js";
import { Code, Confirm, Empty, Failed, Foreign, Loading, tell, tellError, useCall, useWire,
  View } from "./ui.js";
import { wire } from "./wire.js";

interface Approval {
  id: string;
  what: string;
  when?: string | number;
  scope?: string;
}

interface Check {
  name: string;
  ok: boolean;
  detail: string;
  fix: string;
  needed: boolean;
}

interface Lack {
  wall?: string;
  why?: string;
}

interface Level {
  level: string;
  available: boolean;
  why?: string;
  fix?: string;
  holds?: string[];
  lacks?: (Lack | string)[];
}

interface Source {
  layer: string;
  file?: string;
  line?: number;
}

interface Machine {
  build: string;
  version: string;
  os: string;
  ok: boolean;
  level: string;
  doctor: Check[];
  levels: Level[];
  settings: { key: string; value: unknown; origin: Source[] }[];
  notes: string[];
  rules: { file: string; text: string }[];
  approvals: Approval[];
}

export function MachineView(): JSX.Element {
  const got = useCall<Machine>("machine/read", {});
  const m = got.value;
  return (
    <View name="machine" title="Machine" tools={<button onClick={got.reload}>Check again</button>}>
      {got.error !== undefined ? <Failed error={got.error} /> : m === undefined ? <Loading /> : (
        <div class="stack">
          <p class="dim">sallyport <Foreign text={m.build} /> on <Foreign text={m.os} /></p>
          {m.notes.map((n) => <p class="hint"><Foreign text={n} /></p>)}
          <Doctor m={m} />
          <Approvals list={m.approvals} done={got.reload} />
          <Part title="Levels" list={m.levels} none="No sandbox level is known for this machine.">
            {(l) => <LevelOf l={l} />}
          </Part>
          <Settings m={m} />
          <Part title="Rules" list={m.rules}
            none="No rules of your own. An answer that remembers a rule makes the first one.">
            {(r) => (
              <details>
                <summary><Code text={r.file} /></summary>
                <pre class="command"><code><Foreign text={r.text} lines /></code></pre>
              </details>
            )}
          </Part>
        </div>
      )}
    </View>
  );
}

function Part<T>(p: { title: string; list: T[]; none: string;
  children(of: T): ComponentChildren }): JSX.Element {
  return (
    <section class="card">
      <h2>{p.title}</h2>
      {p.list.length === 0 ? <p class="dim">{p.none}</p>
        : <ul class="plain">{p.list.map((of) => <li>{p.children(of)}</li>)}</ul>}
    </section>
  );
}

function LevelOf({ l }: { l: Level }): JSX.Element {
  const wall = (x: { wall?: string; why?: string }): string => (x.wall ?? "") + (x.why ? ` (${x.why})` : "");
  const lacks = (l.lacks ?? []).map((x) => (typeof x === "string" ? x : wall(x)));
  const holds = l.holds ?? [];
  return (
    <>
      <strong><Foreign text={l.level} /></strong>{" "}
      <span class={`badge ${l.available ? "live" : ""}`}>{l.available ? "available" : "not available"}</span>
      {l.why ? <p class="dim"><Foreign text={l.why} /></p> : null}
      {l.available && holds.length > 0
        ? <p class="dim">Enforces: <Foreign text={holds.join(", ")} /></p> : null}
      {l.available && lacks.length > 0 ? <p class="dim">Lacks: <Foreign text={lacks.join(", ")} /></p> : null}
      {l.fix ? <p class="hint">Fix: <Foreign text={l.fix} /></p> : null}
    </>
  );
}

function Doctor({ m }: { m: Machine }): JSX.Element {
  const [good, bad] = [m.doctor.filter((d) => d.ok), m.doctor.filter((d) => !d.ok)];
  const all = m.ok ? `the default sandbox is available (level: ${m.level})`
    : "the default sandbox is not available";
  return (
    <section class="card">
      <h2>Doctor <span class={`badge ${m.ok ? "live" : "bad"}`}><Foreign text={all} /></span></h2>
      <Checks list={bad} />
      <details>
        <summary>{plural(good.length, "check")} passed</summary>
        <Checks list={good} />
      </details>
    </section>
  );
}

function Checks({ list }: { list: Check[] }): JSX.Element {
  return (
    <ul class="plain doctor">
      {list.map((d) => (
        <li>
          <span class={`mark ${d.ok ? "good" : d.needed ? "bad" : ""}`} role="img"
            aria-label={d.ok ? "passed" : "did not pass"}>{d.ok ? "✓" : d.needed ? "✗" : "–"}</span>
          <div>
            <strong><Foreign text={d.name} /></strong> <Foreign text={d.detail} />
            {!d.ok && d.fix ? <p class="hint">Fix: <Foreign text={d.fix} /></p> : null}
          </div>
        </li>
      ))}
    </ul>
  );
}

// where says where a setting comes from.
function where(origin: Source[]): string {
  const of = (s: Source): string => (s.file ? `${s.file}${s.line ? `:${s.line}` : ""}` : s.layer);
  return origin.length === 0 ? "default" : [...new Set(origin.map(of))].join(", ");
}

function Settings({ m }: { m: Machine }): JSX.Element {
  const all = m.settings;
  return (
    <section class="card">
      <h2>Settings</h2>
      {all.length === 0 ? (
        <p class="dim">All settings have their defaults. Change them with <code>sallyport config</code>.</p>
      ) : (
        <table>
          <thead><tr><th scope="col">Setting</th><th scope="col">Value</th>
          <th scope="col">Origin</th></tr></thead>
          <tbody>
            {all.map((s) => (
              <tr>
                <td><Code text={s.key} /></td>
                <td><Code text={typeof s.value === "string" ? s.value : JSON.stringify(s.value)} /></td>
                <td class="dim"><Foreign text={where(s.origin)} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Approvals({ list, done }: { list: Approval[]; done(): void }): JSX.Element {
  const { viewOnly } = useWire();
  const [open, setOpen] = useState<Approval>();
  const answer = (yes: boolean): void => {
    const a = open!;
    setOpen(undefined);
    if (!yes) return;
    wire.call("approval/revoke", { id: a.id }).then(() => {
      tell("Revoked: it is asked about again.");
      done();
    }, tellError);
  };
  return (
    <section class="card">
      <h2>Approvals remembered</h2>
      {list.length === 0 ? <Empty title="No approvals are remembered">
        <p>What you approve for a session or by a rule is listed here, and can be revoked.</p></Empty> : null}
      <ul class="plain">
        {list.map((a) => (
          <li class="approval">
            <div class="row-main">
              <Code text={a.what} />
              <p class="dim meta">{a.scope ? <span><Foreign text={a.scope} /></span> : null}{a.when
                ? <span>{new Date(a.when).toLocaleString("en")}</span> : null}</p>
            </div>
            <button data-testid="revoke" class="danger-quiet" disabled={viewOnly}
              aria-label={`Revoke ${a.what}`} onClick={() => setOpen(a)}>Revoke</button>
          </li>
        ))}
      </ul>
      {open === undefined ? null : (
        <Confirm title="Revoke this approval?" action="Revoke" danger onClose={answer}>
          <pre class="command"><code><Foreign text={open.what} /></code></pre>
        </Confirm>
      )}
    </section>
  );
}
