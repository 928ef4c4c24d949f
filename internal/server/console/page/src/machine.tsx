// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Confirm, Empty, Failed, Foreign, Loading, tell, tellError, useCall, useWire, View } from "./ui.js";
import { wire } from "./wire.js";

interface Approval {
  id: string;
  what: string;
  when?: string | number;
  scope?: string;
}

interface Machine {
  version: string;
  os: string;
  doctor?: { check: string; ok: boolean | null; detail?: string; fix?: string }[];
  levels?: unknown[];
  limits?: unknown[];
  settings?: { key: string; value: unknown; origin?: string }[];
  rules?: { file: string; text?: string; lines?: string[] }[];
  approvals?: Approval[];
}

export function MachineView(): JSX.Element {
  const got = useCall<Machine>("machine/read", {});
  const m = got.value;
  return (
    <View name="machine" title="Machine" tools={<button onClick={got.reload}>Check again</button>}>
      {got.error !== undefined ? <Failed error={got.error} /> : m === undefined ? <Loading /> : (
        <div class="stack">
          <p class="dim">sallyport <Foreign text={m.version} /> on <Foreign text={m.os} /></p>
          <Doctor m={m} />
          <Approvals list={m.approvals ?? []} done={got.reload} />
          <Part title="Levels" list={m.levels ?? []} none="No sandbox level is known for this machine.">{(l) => <Thing of={l} />}</Part>
          {m.limits === undefined ? null : <Part title="Limits" list={m.limits} none="No limits are set.">{(l) => <Thing of={l} />}</Part>}
          <Settings m={m} />
          <Part title="Rules" list={m.rules ?? []} none="No rules of your own. Add some with sallyport rules, or by an answer that remembers one.">
            {(r) => (
              <details>
                <summary><code><Foreign text={r.file} /></code></summary>
                <pre class="command"><code><Foreign text={r.text ?? (r.lines ?? []).join("\n")} lines /></code></pre>
              </details>
            )}
          </Part>
        </div>
      )}
    </View>
  );
}

function Part<T>(p: { title: string; list: T[]; none: string; children(of: T): ComponentChildren }): JSX.Element {
  return (
    <section class="card">
      <h2>{p.title}</h2>
      {p.list.length === 0 ? <p class="dim">{p.none}</p> : <ul class="plain">{p.list.map((of) => <li>{p.children(of)}</li>)}</ul>}
    </section>
  );
}

// Thing shows a value of a kind that the server decides, such as a level.
function Thing({ of }: { of: unknown }): JSX.Element {
  if (typeof of !== "object" || of === null) return <Foreign text={String(of)} />;
  const parts = Object.entries(of).filter(([, v]) => v !== null && v !== "" && v !== undefined);
  return <>{parts.map(([k, v]) => <span class="pair"><span class="dim">{k}</span> <Foreign text={typeof v === "string" ? v : JSON.stringify(v)} /></span>)}</>;
}

function Doctor({ m }: { m: Machine }): JSX.Element {
  const all = m.doctor ?? [];
  const bad = all.filter((d) => d.ok === false).length;
  return (
    <section class="card">
      <h2>Doctor {bad === 0 ? <span class="badge live">all well</span> : <span class="badge bad">{bad} to fix</span>}</h2>
      {all.length === 0 ? <p class="dim">No check was made. Run <code>sallyport doctor</code>.</p> : null}
      <ul class="plain doctor">
        {all.map((d) => (
          <li>
            <span class={`mark ${d.ok === false ? "bad" : d.ok ? "good" : ""}`} role="img" aria-label={d.ok === false ? "not well" : d.ok ? "well" : "not known"}>{d.ok === false ? "✗" : d.ok ? "✓" : "–"}</span>
            <div><strong><Foreign text={d.check} /></strong> <Foreign text={d.detail ?? ""} />{d.fix ? <p class="hint">Fix: <Foreign text={d.fix} /></p> : null}</div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Settings({ m }: { m: Machine }): JSX.Element {
  const all = m.settings ?? [];
  return (
    <section class="card">
      <h2>Settings</h2>
      {all.length === 0 ? <p class="dim">All settings have their defaults. Change them with <code>sallyport config</code>.</p> : (
        <table>
          <thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">Origin</th></tr></thead>
          <tbody>
            {all.map((s) => (
              <tr>
                <td><code><Foreign text={s.key} /></code></td>
                <td><code><Foreign text={typeof s.value === "string" ? s.value : JSON.stringify(s.value)} /></code></td>
                <td class="dim"><Foreign text={s.origin ?? "default"} /></td>
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
      {list.length === 0 ? <Empty title="No approvals are remembered"><p>What you approve for a session or by a rule is listed here, and can be revoked.</p></Empty> : null}
      <ul class="plain">
        {list.map((a) => (
          <li class="approval">
            <div class="row-main">
              <code><Foreign text={a.what} /></code>
              <p class="dim meta">{a.scope ? <span><Foreign text={a.scope} /></span> : null}{a.when ? <span>{new Date(a.when).toLocaleString("en")}</span> : null}</p>
            </div>
            <button data-testid="revoke" class="danger-quiet" disabled={viewOnly} aria-label={`Revoke ${a.what}`} onClick={() => setOpen(a)}>Revoke</button>
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
