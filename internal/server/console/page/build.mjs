// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Builds ../dist, byte for byte the same from package-lock.json. With --check nothing is written, and the
// exit code is 1 if ../dist is another bundle. Needs npm ci before, and go for esbuild.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync,
  writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const page = dirname(fileURLToPath(import.meta.url));
const dist = join(page, "..", "dist");
const esbuild = "github.com/evanw/esbuild/cmd/esbuild@v0.28.2";
const most = 350 * 1024; // bytes of the bundle, compressed
const packages = ["preact", "@xterm/xterm", "@xterm/addon-search", "@xterm/addon-unicode-graphemes"];

function run(program, args) {
  execFileSync(program, args, { cwd: page, stdio: ["ignore", "inherit", "inherit"] });
}

function files(dir) {
  const names = existsSync(dir) ? readdirSync(dir).sort() : [];
  return new Map(names.map((name) => [name, readFileSync(join(dir, name))]));
}

function build(out) {
  run(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "--noEmit"]);
  run("go", ["run", esbuild, "app=src/main.tsx", "app=src/page.css", "--bundle", "--splitting",
    "--format=esm",
    "--minify", "--target=es2022", "--charset=utf8", "--legal-comments=none", "--jsx=automatic",
    "--jsx-import-source=preact", "--chunk-names=chunk-[hash]", "--log-level=warning", `--outdir=${out}`]);
  writeFileSync(join(out, "index.html"), readFileSync(join(page, "src", "index.html")));
  const texts = packages.map((name) => {
    const { version } = JSON.parse(readFileSync(join(page, "node_modules", name, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(page, "node_modules", name, "LICENSE"),
      "utf8").trim()}\n`;
  });
  writeFileSync(join(out, "licenses.txt"), texts.join("\n\n"));
}

const out = mkdtempSync(join(tmpdir(), "sallyport-page-"));
try {
  build(out);
  const made = files(out);
  const size = [...made.values()].reduce((sum, text) => sum + gzipSync(text, { level: 9 }).length, 0);
  if (size > most) throw new Error(`the bundle has ${size} bytes compressed, more than ${most}`);
  if (process.argv.includes("--check")) {
    const committed = files(dist);
    const names = [...new Set([...made.keys(), ...committed.keys()])];
    const other = names.filter((name) => !made.get(name)?.equals(committed.get(name) ?? Buffer.alloc(0)));
    if (other.length > 0) {
      console.error(`dist differs from its source in ${other.join(", ")}; run node build.mjs`);
      process.exitCode = 1;
    }
  } else {
    rmSync(dist, { recursive: true, force: true });
    mkdirSync(dist);
    for (const [name, text] of made) writeFileSync(join(dist, name), text);
    console.log(`dist: ${size} bytes compressed`);
  }
} finally {
  rmSync(out, { recursive: true });
}
