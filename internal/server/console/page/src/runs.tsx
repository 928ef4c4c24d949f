// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { bytes, duration, plural, time, words } from "./text.js";
import { Ago, Code, Confirm, copy, Empty, ending, Fact, Failed, Foreign, Loading, Search, tell, tellError,
  useCall, useWire, View } from "./ui.js";
import { parts, Refusal, wire } from "./wire.js";

interface Summary {
  id: string;
  startedAtMs: number;
  argv: string[];
  cwd: string;
  end: string;
  exitCode: number | null;
  signal?: number | string;
  durationMs: number;
  denials: number;
  staged?: number;
}

interface HistoryList {
  runs: Summary[];
  next?: string;
  total?: number;
  version?: string;
}

interface Denial {
  op: string;
  path?: string;
  host?: string;
  rule?: string;
  source?: string;
  text?: string;
  grant?: string;
  harmless?: string;
  program?: string;
}

// What the page shows of the result of a run.
interface Result {
  error?: string;
  network_hosts?: { host: string; port?: number; bytes_up?: number; bytes_down?: number }[];
  limits?: { limit: string; value?: number | string; by?: string; hit?: boolean }[];
  survivors?: number;
  survivor_list?: { pid?: number; name?: string; command?: string }[];
  stage?: { id: string; name?: string };
}

interface History {
  run: Summary;
  result?: Result;
  text?: string;
  version?: string;
  denials: Denial[];
  allow?: { command?: string; config?: string };
}

export function Runs(): JSX.Element {
  const [typed, setTyped] = useState("");
  const [search, setSearch] = useState("");
  const [before, setBefore] = useState<string[]>([]);
  useEffect(() => {
    if (typed === search) return undefined; // the page that was turned to stays
    const timer = setTimeout(() => {
      setSearch(typed);
      setBefore([]);
    }, 150);
    return () => clearTimeout(timer);
  }, [typed]);
  const at = before.at(-1);
  const params = { limit: 100, ...(search === "" ? {} : { search }), ...(at === undefined ? {}
    : { before: at }) };
  const list = useCall<HistoryList>("history/list", params, JSON.stringify(params));
  const runs = list.value?.runs;
  const turn = (to: string[]): void => {
    setBefore(to);
    document.getElementById("view-title")?.scrollIntoView();
  };
  return (
    <View name="runs" title="Runs" tools={<Search label="Search runs" value={typed} onInput={setTyped} />}>
      {list.error !== undefined ? <Failed error={list.error} /> : runs === undefined ? <Loading /> : null}
      {runs?.length === 0 && search === "" ? (
        <Empty title="No runs yet" command={"sallyport run -- make test"}>
          <p>What sallyport has run is listed here, with what it was denied. It is read from the audit
            log:</p>
        </Empty>
      ) : null}
      {runs?.length === 0 && search !== "" ? <p class="hint">No run matches.</p> : null}
      <ul class="list">
        {runs?.map((r) => <Row key={r.id} r={r} />)}
      </ul>
      {runs !== undefined && (before.length > 0 || list.value?.next) ? (
        <nav class="buttons pager" aria-label="Pages">
          <button data-testid="newer" disabled={before.length === 0}
            onClick={() => turn(before.slice(0, -1))}>← Newer</button>
          <span class="dim" data-testid="range">
            {before.length * 100 + 1} to {before.length * 100 + runs.length}
            {list.value?.total ? ` of ${list.value.total.toLocaleString("en")}` : ""}
          </span>
          <button data-testid="older" disabled={!list.value?.next}
            onClick={() => turn([...before, list.value!.next!])}>Older →</button>
        </nav>
      ) : null}
    </View>
  );
}

function Row({ r }: { r: Summary }): JSX.Element {
  const e = ending(r.end, r.exitCode, r.signal);
  return (
    <li class="row" data-testid="run" data-id={r.id}>
      <a class="row-link" href={`#/runs/${encodeURIComponent(r.id)}`}>
        <div class="row-top">
          <span class={`badge ${e.bad ? "bad" : ""}`}>{e.text}</span>
          <code class="row-command one-line"><Foreign text={words(r.argv)} /></code>
          {r.denials > 0 ? <span class="badge warn">{plural(r.denials, "denial")}</span> : null}
          {r.staged ? <span class="badge">staged</span> : null}
        </div>
        <p class="dim meta"><Ago ms={r.startedAtMs} /><span>{duration(r.durationMs)}</span><span class="cwd">
        <Foreign text={r.cwd} /></span></p>
      </a>
    </li>
  );
}

export function RunDetail({ id }: { id: string }): JSX.Element {
  const { viewOnly } = useWire();
  const got = useCall<History>("history/read", { id }, id);
  const h = got.value;
  return (
    <View name="runs" title="Run" tools={<a class="button" href="#/runs">All runs</a>}>
      {got.error !== undefined ? <Failed error={got.error} /> : h === undefined ? <Loading /> : (
        <div class="stack" data-testid="run-detail">
          <Head h={h} />
          <Denials h={h} viewOnly={viewOnly} id={id} />
          <Output id={id} />
          <Rest h={h} />
        </div>
      )}
    </View>
  );
}

function Head({ h }: { h: History }): JSX.Element {
  const r = h.run;
  const e = ending(r.end, r.exitCode, r.signal);
  const error = h.result?.error;
  return (
    <section class="card">
      <pre class="command"><code><Foreign text={words(r.argv)} /></code></pre>
      <dl class="facts">
        <Fact name="end"><span class={`badge ${e.bad ? "bad" : ""}`}>{e.text}</span></Fact>
        {error ? <Fact name="error"><Foreign text={error} /></Fact> : null}
        <Fact name="exit code">{r.exitCode ?? "none"}</Fact>
        <Fact name="started">{time(r.startedAtMs)}</Fact>
        <Fact name="duration">{duration(r.durationMs)}</Fact>
        <Fact name="in"><Code text={r.cwd} /></Fact>
        <Fact name="run"><Code text={r.id} /></Fact>
      </dl>
    </section>
  );
}

function Denials({ h, viewOnly, id }: { h: History; viewOnly: boolean; id: string }): JSX.Element {
  const [open, setOpen] = useState(false);
  const { command, config } = h.allow ?? {};
  return (
    <section class="card">
      <h2>{h.denials.length === 0 ? "Nothing was denied" : plural(h.denials.length, "denial")}</h2>
      {h.denials.length === 0 ? <p class="dim">No access was denied that sallyport could see.</p> : null}
      <ul class="plain">
        {h.denials.map((d) => (
          <li class="denial" data-testid="run-denial">
            <div><span class="badge bad">{d.op}</span> <Code text={d.path ?? d.host ?? ""} /></div>
            <p class="dim meta">
              {d.program ? <span>by <Code text={d.program} /></span> : null}
              {d.source ? <span><Foreign text={d.source} /></span> : null}
              {d.harmless ? <span>harmless: <Foreign text={d.harmless} /></span> : null}
              {d.rule ? <span>rule: <Code text={d.rule} /></span> : null}
              {d.grant ? <span>least grant: <Code text={d.grant} /></span> : null}
            </p>
          </li>
        ))}
      </ul>
      {command ? (
        <>
          <h3>Run it again with all of this allowed</h3>
          <pre class="command"><code><Foreign text={command} /></code></pre>
        </>
      ) : null}
      <div class="buttons">
        {command ? <button data-testid="copy-grant" onClick={() => void copy(command)}>Copy command</button>
          : null}
        {config ? <button data-testid="config-allow" disabled={viewOnly}
          onClick={() => setOpen(true)}>Allow in this project…</button> : null}
      </div>
      {config ? <p class="hint">The same in a terminal: <Code text={config} /></p> : null}
      {open ? <Allow id={id} close={() => setOpen(false)} /> : null}
    </section>
  );
}

const most = 64 << 10; // characters of output that are shown at once

function Output({ id }: { id: string }): JSX.Element {
  const [none, setNone] = useState(false);
  const [text, setText] = useState<string>();
  const [at, setAt] = useState(0);
  useEffect(() => {
    const end = new AbortController();
    const read = async (): Promise<void> => {
      const decoder = new TextDecoder();
      let all = "";
      for await (const p of parts("history/output", { id }, 0, end.signal)) {
        all += decoder.decode(p.bytes, { stream: true });
      }
      setText(all);
    };
    read().catch((e) => {
      if (e instanceof Refusal && e.reason === "unknownOutput") setNone(true);
      else if (!end.signal.aborted) tellError(e);
    });
    return () => end.abort();
  }, [id]);
  const size = text?.length ?? 0;
  return (
    <section class="card">
      <h2>Output</h2>
      {none ? <p class="dim">None is kept. It printed nothing through sallyport, or the
        setting <code>history.output</code> keeps none.</p> : text === undefined ? <Loading /> : (
        <pre class="command" data-testid="output" tabIndex={0} aria-label="Output"><code><Foreign
          text={text.slice(at, at + most)} lines /></code></pre>
      )}
      {size > most ? (
        <nav class="buttons pager" aria-label="Pages of output">
          <button data-testid="output-newer" disabled={at === 0} onClick={() => setAt(at - most)}>←
            Before</button>
          <span class="dim">{bytes(at)} to {bytes(Math.min(size, at + most))} of {bytes(size)}</span>
          <button data-testid="output-older" disabled={at + most >= size}
            onClick={() => setAt(at + most)}>Next →</button>
        </nav>
      ) : null}
    </section>
  );
}

interface Planned {
  file: string;
  text?: string;
  added: string[];
  digest: string;
}

function Allow({ id, close }: { id: string; close(): void }): JSX.Element | null {
  const [plan, setPlan] = useState<Planned>();
  useEffect(() => {
    wire.call<Planned>("config/allow", { id }).then(setPlan, (e) => {
      tellError(e);
      close();
    });
  }, []);
  if (plan === undefined) return null;
  const done = (yes: boolean): void => {
    close();
    if (!yes) return;
    const written = (): void => tell("Written, and trusted from the next run on.");
    wire.call("config/allow", { id, confirm: plan.digest }).then(written, tellError);
  };
  return (
    <Confirm title="Allow this in the project?" action="Write and trust" onClose={done}>
      <p>To <Code text={plan.file} /> will be added:</p>
      <pre class="diff"><code>
        {plan.added.map((l) => <span class="add">{"+ "}<Foreign text={l} />{"\n"}</span>)}
      </code></pre>
      {plan.text === undefined ? null : (
        <details>
          <summary>The file as it will be</summary>
          <pre class="command"><code><Foreign text={plan.text} lines /></code></pre>
        </details>
      )}
      <p class="hint">The file counts for every later run in this project.</p>
    </Confirm>
  );
}

function Rest({ h }: { h: History }): JSX.Element {
  const { network_hosts: hosts = [], limits = [], survivors: left = 0, survivor_list: survivors = [],
    stage } = h.result ?? {};
  return (
    <>
      {stage === undefined || !h.run.staged ? null : (
        <section class="card">
          <h2>Changes</h2>
          <p>
            What it changed is in the stage{" "}
            <a href={`#/changes/${encodeURIComponent(stage.id)}`}>
              <Foreign text={stage.name || stage.id} />
            </a>, until it is applied or discarded.
          </p>
        </section>
      )}
      <section class="card">
        <h2>Hosts</h2>
        {hosts.length === 0 ? <p class="dim">It reached no host by the managed network.</p> : (
          <ul class="plain">{hosts.map((o) => (
            <li>
              <Code text={o.port ? `${o.host}:${o.port}` : o.host} />{" "}
              <span class="dim">{bytes(o.bytes_up ?? 0)} up, {bytes(o.bytes_down ?? 0)} down</span>
            </li>
          ))}</ul>
        )}
      </section>
      <section class="card">
        <h2>Limits</h2>
        {limits.length === 0 ? (
          <p class="dim">
            It ran without limits. Set them
            with <code>--memory</code>, <code>--pids</code> or <code>--timeout</code>.
          </p>
        ) : (
          <ul class="plain">{limits.map((l) => (
            <li>
              <Code text={l.limit} /> {String(l.value ?? "")}{" "}
              <span class="dim"><Foreign text={l.by ? `by ${l.by}` : ""} /></span>
              {l.hit ? <span class="badge bad">exceeded</span> : null}
            </li>
          ))}</ul>
        )}
      </section>
      <section class="card">
        <h2>Survivors</h2>
        {left === 0 ? <p class="dim">No process was left when it ended.</p>
          : <p>{plural(left, "process").replace("processs", "processes")} had to be ended after it.</p>}
        <ul class="plain">
          {survivors.map((s) => <li><Code text={`${s.pid ?? ""} ${s.command ?? s.name ?? ""}`} /></li>)}
        </ul>
      </section>
      {h.text ? (
        <details>
          <summary>As <code>sallyport why</code> prints it</summary>
          <pre class="command"><code><Foreign text={h.text} lines /></code></pre>
        </details>
      ) : null}
    </>
  );
}
