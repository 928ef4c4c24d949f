// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// The terminal emulator, in a part of the bundle of its own: only views with a terminal load it.
import { SearchAddon } from "@xterm/addon-search";
import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import { Terminal, type ITheme } from "@xterm/xterm";

export type { Terminal };

/** An emulator on the page: inert, until it is given keys. */
export interface Screen {
  term: Terminal;
  search: SearchAddon;
  /** Writes, and resolves when it is on the screen. */
  write(data: Uint8Array | string): Promise<void>;
  /** The size that fits into an element. */
  fits(into: HTMLElement): { cols: number; rows: number };
  dispose(): void;
}

// of returns a property of the page's style.
function of(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// theme takes the colors of the page; those of commands are the same in both schemes, on a dark ground.
function theme(): ITheme {
  return {
    background: of("--term-bg"), foreground: of("--term-ink"), cursor: of("--term-ink"),
      cursorAccent: of("--term-bg"),
    selectionBackground: of("--term-selection"), black: "#3b4252", red: "#f28b82", green: "#8fd3a0",
      yellow: "#e5c76b",
    blue: "#8ab4f8", magenta: "#d7aefb", cyan: "#7fd6d0", white: "#d8dbe2", brightBlack: "#8a93a6",
      brightRed: "#ffb3ab",
    brightGreen: "#b5e8c0", brightYellow: "#f5e0a0", brightBlue: "#b8d2fb", brightMagenta: "#e8d0fd",
    brightCyan: "#aeeae6", brightWhite: "#ffffff",
  };
}

// The emulator makes style elements, which the page's policy takes only with its nonce.
function withNonce(): void {
  const nonce = document.querySelector<HTMLLinkElement>("link[nonce]")?.nonce ?? "";
  const make = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const made = make(name, options);
    if (name.toLowerCase() === "style") made.nonce = nonce;
    return made;
  }) as typeof document.createElement;
}
withNonce();

// inert takes out all that reaches out of the screen: titles, links, the clipboard, notifications, and what
// asks the terminal, since the session has answered that.
function inert(term: Terminal): void {
  const drop = (): boolean => true;
  for (const code of [0, 1, 2, 7, 8, 9, 22, 50, 51, 52, 99, 133, 777,
    1337]) term.parser.registerOscHandler(code, drop);
  for (const code of [4, 10, 11, 12]) term.parser.registerOscHandler(code, (data) => data.includes("?"));
  for (const prefix of ["", "?", ">", "="]) {
    const p = prefix === "" ? {} : { prefix };
    term.parser.registerCsiHandler({ ...p, final: "c" }, drop);
    term.parser.registerCsiHandler({ ...p, final: "n" }, drop);
    term.parser.registerCsiHandler({ ...p, intermediates: "$", final: "p" }, drop);
  }
  term.parser.registerCsiHandler({ final: "t" }, drop);
  term.parser.registerCsiHandler({ prefix: ">", final: "q" }, drop);
  term.parser.registerCsiHandler({ prefix: "?", final: "u" }, drop);
  term.parser.registerCsiHandler({ final: "x" }, drop);
  term.parser.registerDcsHandler({ intermediates: "$", final: "q" }, drop);
  term.parser.registerDcsHandler({ intermediates: "+", final: "q" }, drop);
  term.parser.registerEscHandler({ final: "Z" }, drop);
}

// How much memory the lines above the screen may have, and how much a cell has.
const mostLines = 64 << 20;
const cellBytes = 12;

/** Makes an emulator in an element. */
export function open(into: HTMLElement, o: { cols: number; rows: number; convertEol: boolean;
  label: string }): Screen {
  const term = new Terminal({
    cols: o.cols, rows: o.rows, convertEol: o.convertEol, allowProposedApi: true, disableStdin: true,
    scrollback: Math.floor(mostLines / (o.cols * cellBytes)),
    fontFamily: of("--mono"), fontSize: Math.round(0.87 * parseFloat(of("font-size"))), lineHeight: 1.25,
    screenReaderMode: true, cursorInactiveStyle: "outline",
    minimumContrastRatio: 4.5, theme: theme(), macOptionIsMeta: true,
    linkHandler: { activate: () => undefined, allowNonHttpProtocols: false },
  });
  inert(term);
  const search = new SearchAddon();
  term.loadAddon(search);
  term.loadAddon(new UnicodeGraphemesAddon());
  term.open(into);
  term.textarea?.setAttribute("aria-label", o.label);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const themed = (): void => {
    term.options.theme = theme();
  };
  scheme.addEventListener("change", themed);
  return {
    term,
    search,
    write: (data) => new Promise((resolve) => term.write(data, resolve)),
    fits: (element) => {
      const screen = into.querySelector<HTMLElement>(".xterm-screen")!;
      const cell = { width: screen.clientWidth / term.cols, height: screen.clientHeight / term.rows };
      if (!(cell.width > 0 && cell.height > 0)) return { cols: term.cols, rows: term.rows };
        // it is not shown
      const style = getComputedStyle(element);
      const width = element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 14;
      const height = element.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
      return {
        cols: Math.min(1000, Math.max(20, Math.floor(width / cell.width))),
        rows: Math.min(500, Math.max(5, Math.floor(height / cell.height))),
      };
    },
    dispose: () => {
      scheme.removeEventListener("change", themed);
      term.dispose();
    },
  };
}

/** Returns the text of what is on the screen, or of the selection. */
export function textOf(term: Terminal): string {
  if (term.hasSelection()) return term.getSelection();
  const lines: string[] = [];
  const buffer = term.buffer.active;
  for (let y = 0; y < term.rows; y++) lines.push(buffer.getLine(buffer.viewportY + y)?.translateToString(true)
    ?? "");
  return lines.join("\n").trimEnd() + "\n";
}
