// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { duration, line, words } from "./text.js";
import { Code, Empty, Fact, Failed, Foreign, Loading, tell, tellError, useSeconds, useWire, View,
  type Loaded } from "./ui.js";
import { Refusal, wire } from "./wire.js";

interface Offer {
  decision: string;
  rule?: string[];
  host?: string;
  protocol?: string;
  deny?: boolean;
  path?: string;
}

interface Denial {
  op: string;
  path?: string;
  name?: string;
  addr?: string;
  errno?: string;
  source?: string;
}

interface Request {
  id: string;
  kind: string;
  argv: string[];
  script: string;
  cwd: string;
  arg0?: string;
  variables?: string[];
  input?: string;
  environment?: string;
  program: string;
  program_sha256?: string;
  files?: { path: string; role: string; sha256: string }[];
  reason: string;
  justification: string;
  requires: string[];
  denials: Denial[];
  runs: number;
  waiting?: boolean;
  wait_ms?: number;
  expires_at_ms?: number;
  offers: Offer[];
  available_decisions: string[];
}

export interface Question {
  id: string;
  digest: string;
  request: Request;
  runId?: string;
  expiresAtMs?: number;
}

export interface QuestionList {
  questions: Question[];
  omitted?: number;
  version?: string;
}

interface Answer {
  testid: string;
  key: string;
  label: string;
  detail?: string;
  decision: string;
  path?: string;
  deny: boolean;
}

const labels: Record<string, [key: string, label: string]> = {
  approved: ["y", "Once"],
  approved_for_session: ["s", "For this session"],
  approved_execpolicy_amendment: ["r", "Remember the rule"],
  network_policy_amendment: ["h", "Remember the host"],
  denied: ["n", "Deny"],
  abort: ["a", "Abort"],
};

// answers returns what can be answered: each decision, and each of its offers that names something.
function answers(r: Request): Answer[] {
  const all: Answer[] = [];
  const used = new Set<string>();
  for (const decision of r.available_decisions) {
    if (decision === "timed_out") continue;
    const [key, label] = labels[decision] ?? ["", decision];
    const deny = decision === "denied" || decision === "abort";
    const named = r.offers.filter((o) => o.decision === decision
      && (o.rule ?? o.host ?? o.path) !== undefined);
    named.forEach((o, n) => {
      const detail = o.rule !== undefined ? words(o.rule) + " …" : o.host ?? o.path!;
      const what = o.deny ? "Never this host" : label;
      all.push({ testid: `answer-${decision}-${n}`, key, label: what, detail, decision, deny: o.deny ?? deny,
        ...(o.path === undefined ? {} : { path: o.path }) });
    });
    if (named.length === 0) all.push({ testid: `answer-${decision}`, key, label, decision, deny });
  }
  for (const a of all) {
    // The letters of the terminal; a second one of a kind is numbered.
    let key = a.key;
    for (let n = 2; key === "" || used.has(key); n++) key = String(n);
    used.add(key);
    a.key = key;
  }
  return all;
}

function headline(r: Request): string {
  if (r.kind === "network") return "May this command reach a host?";
  if (r.waiting) return "May this command, which is waiting, do what its sandbox denies?";
  if (r.kind === "patch") return "May this patch change files?";
  if (r.requires[0] === "outside") return "May this command run outside of the sandbox?";
  return r.requires.length > 0 ? "May this command be given more?" : "May this command run?";
}

function opens(need: string): string {
  if (need === "outside")
    return "everything that this user may do, files and network: it runs without a sandbox";
  if (need === "network") return "every host: the network policy, which judges hosts in the sandbox, ends";
  const at = need.indexOf(":");
  const kinds: Record<string, string> = { write: "writing to ", read: "reading ", host: "the host ",
    grant: "the grant ", allow: "what is closed by default: " };
  return (kinds[need.slice(0, at)] ?? need.slice(0, at + 1)) + need.slice(at + 1);
}

const persons: Record<string, string> = {
  user: "a person at the terminal",
  console: "another console",
  hook: "an approver program",
  reviewer: "the reviewing model",
  cache: "an approval of before",
  config: "a rule",
  timeout: "the time limit of the question",
};

function late(e: Refusal): string {
  if (e.by === "") return "Too late: the question is not open any more (answered, over, or its run ended).";
  return `Too late: ${persons[e.by] ?? line(e.by)} (${line(e.by)}) was first.`;
}

// When the list was last changed below the hand of the person; answers are taken again shortly after.
let moved = -Infinity;
const settle = 400;

function Card({ q, viewOnly }: { q: Question; viewOnly: boolean }): JSX.Element {
  const r = q.request;
  const all = answers(r);
  const [sent, setSent] = useState("");
  const send = async (a: Answer): Promise<void> => {
    if (sent !== "") return;
    if (performance.now() - moved < settle) {
      tell("The list has just changed: look again, then answer.");
      return;
    }
    setSent(a.testid);
    mine.add(q.id); // before the list says that it is not open any more
    try {
      const path = a.path === undefined ? {} : { path: a.path };
      await wire.call("question/answer", { id: q.id, digest: q.digest, decision: a.decision, ...path });
    } catch (e) {
      setSent("");
      if (e instanceof Refusal && e.reason === "unknownQuestion") tell(late(e), true);
      else tellError(e);
    }
  };
  const ref = useRef<HTMLElement>(null);
  // A letter chooses a button, on which Enter answers; another key takes the choice back.
  const keys = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.altKey || e.metaKey || e.repeat) return;
    if (e.key !== "Escape" && e.key.length !== 1) return;
    const a = all.find((a) => a.key === e.key.toLowerCase());
    const chosen = (e.target as HTMLElement).closest(".answers") !== null;
    if (a === undefined && (!chosen || e.key === " ")) return;
    e.preventDefault();
    e.stopPropagation();
    if (a === undefined) ref.current?.focus();
    else document.getElementById(`${q.id}-${a.testid}`)?.focus();
  };
  return (
    <article class="card question" data-testid="question" data-id={q.id} tabIndex={0} ref={ref}
      onKeyDown={keys} aria-label={headline(r)}>
      <header class="card-head">
        <h2>{headline(r)}</h2>
        <Waits q={q} />
      </header>
      <pre class="command" data-testid="question-command"><code><Foreign text={r.script || words(r.argv)}
        lines={r.script !== ""} /></code></pre>
      <Facts q={q} />
      {viewOnly ? <p class="hint">This console is view-only: answer in the terminal or in another console.</p>
        : (
        <>
          <div class="buttons answers">
            {all.map((a) => (
              <button id={`${q.id}-${a.testid}`} data-testid={a.testid} class={a.deny ? "deny" : ""}
                disabled={sent !== ""} aria-keyshortcuts={`${a.key} Enter`} onClick={() => void send(a)}>
                <kbd aria-hidden="true">{a.key}</kbd>
                <span>{a.label}{a.detail === undefined ? null : <> <Code text={a.detail} /></>}</span>
              </button>
            ))}
          </div>
          <p class="hint keys">A letter chooses, Enter answers. ↑ ↓ move between questions.</p>
        </>
      )}
    </article>
  );
}

// Questions that this page has answered.
const mine = new Set<string>();

function Waits({ q }: { q: Question }): JSX.Element {
  const until = q.expiresAtMs ?? q.request.expires_at_ms;
  useSeconds(until !== undefined);
  if (until === undefined) return <span class="badge" data-testid="question-waits">waits for an answer</span>;
  const left = Math.max(0, until - Date.now());
  const text = left === 0 ? "time is over"
    : `${duration(Math.ceil(left / 1000) * 1000).replace(".0", "")} left`;
  return <span class={left < 30_000 ? "badge warn" : "badge"} data-testid="question-waits"
    role="timer">{text}</span>;
}

function Facts({ q }: { q: Question }): JSX.Element {
  const r = q.request;
  const more = r.program_sha256 !== undefined || (r.files ?? []).length > 0;
  return (
    <>
      <dl class="facts">
        <Fact name="in"><Code text={r.cwd} /></Fact>
        {r.program ? <Fact name="program"><Code text={r.program} /></Fact> : null}
        {r.arg0 ? <Fact name="named"><Code text={r.arg0} /></Fact> : null}
        {(r.variables ?? []).map((v) => <Fact name="variable"><Code text={v} /></Fact>)}
        {r.input ? <Fact name="input"><Foreign text={r.input} /></Fact> : null}
        {r.environment ? <Fact name="on"><Foreign text={r.environment} /></Fact> : null}
        {r.reason ? <Fact name="reason"><Foreign text={r.reason} /></Fact> : null}
        {r.denials.map((d) => (
          <Fact name="was denied"><Code text={`${d.op} ${d.path ?? d.addr ?? d.name ?? ""}`} />{" "}
            <span class="dim"><Foreign text={[d.errno, d.source].filter(Boolean).join(", ")} /></span></Fact>
        ))}
        {r.requires.map((n) => <Fact name="would open"><strong><Foreign text={opens(n)} /></strong></Fact>)}
        {r.waiting ? (
          <Fact name="waits">The command waits for the answer; without one the access is denied.</Fact>
        ) : null}
        {r.runs > 0 ? (
          <Fact name="ran already">
            {r.runs === 1 ? "once" : `${r.runs} times`}: what it did then is done again.
          </Fact>
        ) : null}
        {q.runId ? (
          <Fact name="session">
            <a href={`#/sessions/${encodeURIComponent(q.runId)}`}><Foreign text={q.runId} /></a>
          </Fact>
        ) : null}
      </dl>
      {r.justification ? (
        <figure class="caller">
          <figcaption>The caller says (not checked by sallyport):</figcaption>
          <blockquote><Foreign text={r.justification} lines /></blockquote>
        </figure>
      ) : null}
      {more ? (
        <details>
          <summary>Files and sums</summary>
          <dl class="facts">
            {r.program_sha256 ? <Fact name="program"><code class="sum">{r.program_sha256}</code></Fact>
              : null}
            {(r.files ?? []).map((f) => (
              <Fact name={f.role}><Code text={f.path} /> <code class="sum dim">{f.sha256}</code></Fact>
            ))}
          </dl>
        </details>
      ) : null}
    </>
  );
}

// useMoves notes when questions come and go, and tells of those that were answered elsewhere.
function useMoves(questions: Question[] | undefined): void {
  const before = useRef<Question[] | undefined>(undefined);
  useEffect(() => {
    const old = before.current;
    before.current = questions;
    if (old === undefined || questions === undefined) return;
    const now = new Set(questions.map((q) => q.id));
    const gone = old.filter((q) => !now.has(q.id));
    if (old.length > gone.length && questions.some((q) => !old.some((o) => o.id === q.id))) {
      moved = performance.now();
    }
    for (const q of gone) {
      if (mine.has(q.id)) continue;
      const command = words(q.request.argv).slice(0, 80);
      tell(`No longer open: ${command}. It was answered elsewhere, or nobody did in time.`);
    }
    if (gone.length > 0 && document.activeElement === document.body) {
      document.getElementById("view-title")?.focus();
    }
  }, [questions]);
}

export function Questions({ list }: { list: Loaded<QuestionList> }): JSX.Element {
  const { viewOnly } = useWire();
  const ref = useRef<HTMLDivElement>(null);
  const questions = list.value?.questions;
  useMoves(questions);
  useEffect(() => {
    const keys = (e: KeyboardEvent): void => {
      const cards = [...(ref.current?.querySelectorAll<HTMLElement>("[data-testid=question]") ?? [])];
      const target = e.target as HTMLElement;
      if (cards.length === 0 || document.querySelector("dialog[open]")
        || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      const at = cards.findIndex((c) => c.contains(target));
      const step = e.key === "ArrowDown" || e.key === "j" ? 1 : e.key === "ArrowUp" || e.key === "k" ? -1 : 0;
      if (step !== 0 && !e.ctrlKey && !e.altKey && !e.metaKey) {
        const next = cards[Math.min(cards.length - 1, Math.max(0, at + step))]!;
        e.preventDefault();
        next.focus();
        next.scrollIntoView({ block: "nearest" });
      } else if (at < 0 && e.key.length === 1 && performance.now() - moved >= settle) {
        // The newest question takes the letters that are typed nowhere else.
        const { key, ctrlKey, altKey, metaKey } = e;
        cards[0]!.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, altKey, metaKey }));
      }
    };
    document.addEventListener("keydown", keys);
    return () => document.removeEventListener("keydown", keys);
  }, []);
  return (
    <View name="questions" title="Questions">
      {list.error !== undefined ? <Failed error={list.error} /> : questions === undefined ? <Loading />
        : null}
      {questions?.length === 0 ? (
        <Empty title="No open questions"
          command="sallyport run -a untrusted --ask-in-console -- make deploy">
          <p>Commands that need an approval are shown here, and wait for your answer. Have an agent run
            one:</p>
        </Empty>
      ) : null}
      <div class="stack" ref={ref}>
        {questions?.map((q) => <Card key={q.id + q.digest} q={q} viewOnly={viewOnly} />)}
      </div>
      {(list.value?.omitted ?? 0) > 0 ? <p class="hint">{list.value!.omitted} more questions are shown when
        some of these are answered.</p> : null}
    </View>
  );
}
