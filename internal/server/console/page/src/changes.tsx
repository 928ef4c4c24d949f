// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { bytes, decode, plural } from "./text.js";
import { Ago, Code, Confirm, Empty, Failed, Foreign, Loading, tell, tellError, useCall, useWire,
  View } from "./ui.js";
import { wire } from "./wire.js";

interface Stage {
  id: string;
  name: string;
  workspace: string;
  commands: number;
  changes: number;
  bytes: number;
  created: string;
  moved?: boolean;
}

interface Change {
  path: string; // relative to the root
  root: string;
  kind: string;
  file?: string;
  from?: string;
  mode?: string;
  size?: number;
  entries?: number;
  binary?: boolean;
  runs_later?: boolean;
}

interface StageList {
  stages: Stage[];
  omitted?: number;
  warning?: string;
  version?: string;
}

interface ChangeList {
  changesTotal: number;
  changes: Change[];
  version?: string;
}

interface Conflict {
  path: string;
  reason: string;
}

interface Applied {
  applied: string[];
  conflicts: Conflict[];
  left: number;
  refused: Conflict[];
}

// What a conflict is, in the words of sallyport apply.
const reasons: Record<string, string> = {
  content: "its content was changed outside of the stage meanwhile",
  mode: "its mode was changed outside of the stage meanwhile",
  kind: "it is another kind of file outside of the stage meanwhile",
  deleted: "it was deleted outside of the stage meanwhile",
};

const letters: Record<string, string> = { added: "A", deleted: "D", modified: "M", mode: "M", renamed: "R",
  type: "T" };

export function Changes(): JSX.Element {
  const list = useCall<StageList>("stage/list", {});
  const stages = list.value === undefined ? undefined : [...list.value.stages].reverse();
  return (
    <View name="changes" title="Changes">
      {list.error !== undefined ? <Failed error={list.error} /> : stages === undefined ? <Loading /> : null}
      {list.value?.warning ? <p class="hint"><Foreign text={list.value.warning} /></p> : null}
      {stages?.length === 0 ? (
        <Empty title="No staged changes" command={"sallyport run --stage -- make fmt"}>
          <p>With <code>--stage</code> a command changes a copy. What it changed is here, to look at,
            and to apply or discard:</p>
        </Empty>
      ) : null}
      <ul class="list">
        {stages?.map((s) => (
          <li class="row" data-testid="stage" data-id={s.id} key={s.id}>
            <a class="row-link" href={`#/changes/${encodeURIComponent(s.id)}`}>
              <div class="row-top">
                <strong><Foreign text={s.name || s.id} /></strong>
                <span class="badge">{s.moved ? "directory moved" : plural(s.changes, "change")}</span>
              </div>
              <p class="dim meta"><span>{s.id}</span><Ago ms={Date.parse(s.created)} />
              <span>{plural(s.commands, "command")}</span><span>{bytes(s.bytes)}</span><span class="cwd">
              <Foreign text={s.workspace} /></span></p>
            </a>
          </li>
        ))}
      </ul>
      {list.value?.omitted ? <p class="hint">{list.value.omitted} more stages are not listed.</p> : null}
    </View>
  );
}

export function StageView({ id }: { id: string }): JSX.Element {
  const { viewOnly } = useWire();
  const [after, setAfter] = useState(0);
  const params = { stageId: id, ...(after > 0 ? { after } : {}) };
  const got = useCall<ChangeList>("stage/changes", params, id + after);
  const stages = useCall<StageList>("stage/list", {});
  const stage = stages.value?.stages.find((s) => s.id === id);
  useEffect(() => {
    if (got.value !== undefined) got.reload();
  }, [stages.value?.version]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState("");
  const changes = got.value?.changes;
  const page = changes?.slice(0, 500).map((c) => ({ ...c, at: place(c.root, c.path) }));
  const inside = `${stage?.workspace}/`;
  const shown = (at: string): string => (at.startsWith(inside) ? at.slice(inside.length) : at);
  const toggle = (path: string, on: boolean): void => {
    const next = new Set(selected);
    if (on) next.add(path);
    else next.delete(path);
    setSelected(next);
  };
  const reload = (): void => {
    setSelected(new Set());
    got.reload();
  };
  return (
    <View name="changes" title={`Stage ${stage?.name || id}`}
      tools={<a class="button" href="#/changes">All stages</a>}>
      {got.error !== undefined ? <Failed error={got.error} /> : page === undefined ? <Loading /> : (
        <div class="stack" data-testid="stage" data-id={id}>
          {stage === undefined ? null : (
            <p class="dim">
              Changes to <Code text={stage.workspace} />, which is as before until they are applied.
            </p>
          )}
          <StageTools id={id} total={got.value!.changesTotal} selected={[...selected]} viewOnly={viewOnly}
            done={reload} />
          <ul class="list changes">
            {page.map((c) => (
              <li class="row change" data-testid="change" data-path={c.at} key={c.at}>
                <div class="change-line">
                  <input type="checkbox" data-testid="change-select" aria-label={`Select ${shown(c.at)}`}
                    disabled={viewOnly} checked={selected.has(c.at)}
                    onChange={(e) => toggle(c.at, e.currentTarget.checked)} />
                  <button class="change-open" aria-expanded={open === c.at}
                    onClick={() => setOpen(open === c.at ? "" : c.at)}>
                    <span class={`letter ${letters[c.kind] ?? ""}`}
                      title={c.kind}>{letters[c.kind] ?? "?"}</span>
                    <code>{c.from ? <><Foreign text={shown(place(c.root, c.from))} /> → </> : null}
                      <Foreign text={shown(c.at)} /></code>
                    <span class="dim">{c.entries ? plural(c.entries, "entry").replace("entrys", "entries")
                      : c.size === undefined ? "" : bytes(c.size)}</span>
                    {c.runs_later ? <span class="badge warn">runs later</span> : null}
                  </button>
                </div>
                {open === c.at ? <Diff id={id} path={c.at} /> : null}
              </li>
            ))}
          </ul>
          {after > 0 || page.length < got.value!.changesTotal - after ? (
            <nav class="buttons pager" aria-label="Pages">
              <button data-testid="newer" disabled={after === 0}
                onClick={() => setAfter(Math.max(0, after - 500))}>← Before</button>
              <span class="dim">
                {after + 1} to {after + page.length} of {got.value!.changesTotal.toLocaleString("en")}
              </span>
              <button data-testid="older" disabled={after + page.length >= got.value!.changesTotal}
                onClick={() => setAfter(after + page.length)}>Next →</button>
            </nav>
          ) : null}
        </div>
      )}
    </View>
  );
}

// place returns the absolute path of a change, by which a stage finds it in each of its roots.
function place(root: string, path: string): string {
  return path === "." ? root : `${root}/${path}`;
}

type Ask = { what: "apply" | "force" | "discard"; paths: string[] };

function StageTools(p: {
  id: string;
  total: number;
  selected: string[];
  viewOnly: boolean;
  done(): void;
}): JSX.Element {
  const [ask, setAsk] = useState<Ask>();
  const [conflicts, setConflicts] = useState<{ paths: string[]; list: Conflict[] }>();
  const [refused, setRefused] = useState<Conflict[]>([]);
  const [busy, setBusy] = useState(false); // the stage is locked until the answer
  const some = p.selected.length > 0;
  const what = some ? plural(p.selected.length, "change") : "all";
  const apply = async (paths: string[], force: boolean): Promise<void> => {
    const params = { stageId: p.id, ...(paths.length > 0 ? { paths } : {}), ...(force ? { force } : {}) };
    setBusy(true);
    try {
      const r = await wire.call<Applied>("stage/apply", params);
      const stopped = r.conflicts.length > 0 && !force;
      setConflicts(stopped ? { paths, list: r.conflicts } : undefined);
      setRefused(r.refused);
      if (stopped) tell("Nothing was applied: there are conflicts.", true);
      else tell(`Applied ${plural(r.applied.length, "change")}, ${r.left || "none"} left in the stage.`);
      settle(r.left, stopped);
    } catch (e) {
      tellError(e);
    } finally {
      setBusy(false);
    }
  };
  const settle = (left: number, stopped: boolean): void => {
    if (left === 0 && !stopped) location.hash = "#/changes";
    else p.done();
  };
  const discard = async (paths: string[]): Promise<void> => {
    try {
      await wire.call("stage/discard", { stageId: p.id, ...(paths.length > 0 ? { paths } : {}) });
      tell(paths.length > 0 ? `Discarded ${plural(paths.length, "change")}.` : "Discarded the stage.");
      settle(paths.length === 0 ? 0 : 1, false);
    } catch (e) {
      tellError(e);
    }
  };
  const answer = (yes: boolean): void => {
    const { what, paths } = ask!;
    setAsk(undefined);
    if (!yes) return;
    if (what === "discard") void discard(paths);
    else void apply(paths, what === "force");
  };
  return (
    <>
      <div class="bar sticky">
        <span>{plural(p.total, "change")}{some ? `, ${p.selected.length} selected` : ""}</span>
        <span class="space" />
        <button data-testid="apply" class="accent" disabled={p.viewOnly || busy || p.total === 0}
          onClick={() => void apply(p.selected, false)}>Apply {what}</button>
        <button data-testid="discard" class="danger-quiet" disabled={p.viewOnly || busy}
          onClick={() => setAsk({ what: "discard", paths: p.selected })}>Discard {what}</button>
      </div>
      {conflicts === undefined ? null : (
        <section class="card warn-card" role="alert">
          <h2>{plural(conflicts.list.length, "conflict")}: nothing was applied</h2>
          <Reasons list={conflicts.list} />
          <p class="dim">Select other changes, or overwrite what is there.</p>
          <div class="buttons">
            <button class="danger-quiet" data-testid="apply-force"
              onClick={() => setAsk({ what: "force", paths: conflicts.paths })}>Overwrite…</button>
          </div>
        </section>
      )}
      {refused.length === 0 ? null : (
        <section class="card">
          <h2>Not applied</h2>
          <Reasons list={refused} />
        </section>
      )}
      {ask === undefined ? null : ask.what === "discard" ? (
        <Confirm action="Discard" danger onClose={answer} title={ask.paths.length === 0
          ? "Discard all changes of the stage?" : `Discard ${plural(ask.paths.length, "change")}?`}>
          <p>They cannot be restored.</p>
        </Confirm>
      ) : (
        <Confirm title="Overwrite what was changed meanwhile?" action="Overwrite" danger onClose={answer}>
          <Reasons list={conflicts?.list ?? []} />
        </Confirm>
      )}
    </>
  );
}

function Reasons({ list }: { list: Conflict[] }): JSX.Element {
  return (
    <ul class="plain">
      {list.map((c) => (
        <li data-testid="conflict">
          <Code text={c.path} />: <Foreign text={reasons[c.reason] ?? c.reason} />
        </li>
      ))}
    </ul>
  );
}

const mostDiff = 512 << 10; // bytes that are shown at once

function Diff({ id, path }: { id: string; path: string }): JSX.Element {
  const [text, setText] = useState<string>();
  const [total, setTotal] = useState(0);
  useEffect(() => {
    const params = { stageId: id, paths: [path] };
    wire.call<{ part: string; bytesTotal: number }>("stage/diff", params).then((r) => {
      setTotal(r.bytesTotal);
      setText(new TextDecoder().decode(decode(r.part).subarray(0, mostDiff)));
    }, tellError);
  }, [id, path]);
  if (text === undefined) return <Loading />;
  return (
    <>
      <pre class="diff" data-testid="diff" tabIndex={0} aria-label={`Diff of ${path}`}>
        <code>
          {text.replace(/\n$/, "").split("\n").map((l) => (
            <span class={kindOf(l)}><Foreign text={l} />{"\n"}</span>
          ))}
        </code>
      </pre>
      {total > mostDiff ? <p class="hint">The first {bytes(mostDiff)} of {bytes(total)}. All of
        it: <code>sallyport changes --diff {id} {path}</code></p> : null}
    </>
  );
}

function kindOf(l: string): string {
  if (/^(diff|index|---|\+\+\+|new|deleted|old|similarity|rename)\b|^(---|\+\+\+) /.test(l)) return "dim";
  return l.startsWith("+") ? "add" : l.startsWith("-") ? "del" : l.startsWith("@@") ? "hunk" : "";
}
