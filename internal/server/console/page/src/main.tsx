// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

import { render, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Changes, StageView } from "./changes.js";
import { MachineView } from "./machine.js";
import { Questions, type QuestionList } from "./questions.js";
import { PlayerView, Recordings } from "./recordings.js";
import { RunDetail, Runs } from "./runs.js";
import { Sessions } from "./sessions.js";
import { TerminalView } from "./terminal.js";
import { Foreign, Notes, useCall, useWire, type Loaded } from "./ui.js";
import { takeToken, wire } from "./wire.js";

// The views, and their signs: paths on a ground of 24 by 24.
const views: [name: string, title: string, sign: string][] = [
  ["questions", "Questions", "M4 5h16v11H9l-5 4zM9 9h6M9 12h4"],
  ["sessions", "Sessions", "M3 5h18v14H3zM7 9l3 3-3 3M12 15h5"],
  ["runs", "Runs", "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01"],
  ["changes", "Changes",
    "M6 3v12M6 15a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 9c0 5-5 6-9 8"],
  ["recordings", "Recordings", "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM10 8.5v7l6-3.5z"],
  ["machine", "Machine", "M4 4h16v7H4zM4 13h16v7H4zM8 7.5h.01M8 16.5h.01"],
];

// place returns the view of the address, and what it is about; empty for all.
function place(): [view: string, of: string] {
  const m = /^#\/(\w+)(?:\/(.+))?$/.exec(location.hash);
  const view = views.some(([name]) => name === m?.[1]) ? m![1]! : "questions";
  try {
    return [view, decodeURIComponent(m?.[2] ?? "")];
  } catch {
    return [view, ""];
  }
}

function Shown({ view, of, questions }: { view: string; of: string;
  questions: Loaded<QuestionList> }): JSX.Element {
  switch (view) {
    case "sessions":
      return of === "" ? <Sessions /> : <TerminalView id={of} key={of} />;
    case "runs":
      return of === "" ? <Runs /> : <RunDetail id={of} key={of} />;
    case "changes":
      return of === "" ? <Changes /> : <StageView id={of} key={of} />;
    case "recordings":
      return of === "" ? <Recordings /> : <PlayerView name={of} key={of} />;
    case "machine":
      return <MachineView />;
    default:
      return <Questions list={questions} />;
  }
}

function Connection(): JSX.Element {
  const { state, why, viewOnly } = useWire();
  return (
    <div class="connection" title={why}>
      <span class={`dot ${state}`} aria-hidden="true" />
      <span data-testid="connection-state" role="status">{state}</span>
      {viewOnly ? <span class="badge">view-only</span> : null}
    </div>
  );
}

function Lost(): JSX.Element | null {
  const { state, why, times } = useWire();
  if (state === "connected" || (state === "reconnecting" && times === 0 && why === "")) return null;
  return (
    <div class="lost" role="alert">
      {state === "gone" ? (
        <p>
          <strong>This page is closed.</strong> <Foreign text={why} /> Run <code>sallyport console</code> and
          open the address that it prints.
        </p>
      ) : (
        <p><strong>Reconnecting.</strong> <Foreign text={why} /> What you see may be old.</p>
      )}
    </div>
  );
}

function App(): JSX.Element {
  const [[view, of], setPlace] = useState(place());
  const questions = useCall<QuestionList>("question/list", {});
  const open = questions.value?.questions.length ?? 0;
  useEffect(() => {
    const go = (): void => {
      setPlace(place());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, []);
  const title = views.find(([name]) => name === view)![1];
  useEffect(() => {
    document.title = `${open > 0 ? `(${open}) ` : ""}${title} · sallyport`;
  }, [open, title]);
  return (
    <div class="app">
      <a class="skip" href="#main" onClick={(e) => {
        e.preventDefault();
        document.getElementById("view-title")?.focus();
      }}>Skip to the view</a>
      <aside class="side">
        <p class="brand">
          <svg viewBox="0 0 24 24" aria-hidden="true">
            <path d="M4 21V9a8 8 0 0 1 16 0v12M9 21v-9a3 3 0 0 1 6 0v9M2 21h20" />
          </svg>
          sallyport
        </p>
        <nav aria-label="Views">
          {views.map(([name, text, sign]) => (
            <a href={`#/${name}`} data-testid={`nav-${name}`} key={name}
              aria-current={name === view ? "page" : undefined}>
              <svg viewBox="0 0 24 24" aria-hidden="true"><path d={sign} /></svg>
              <span class="nav-text">{text}</span>
              {name === "questions" && open > 0
                ? <span class="count" aria-label={`${open} open`}>{open}</span> : null}
            </a>
          ))}
        </nav>
        <Connection />
      </aside>
      <main id="main">
        <Lost />
        <Shown view={view} of={of} questions={questions} />
      </main>
      <Notes />
    </div>
  );
}

const token = takeToken();
render(<App />, document.getElementById("app")!);
void wire.start(token);
