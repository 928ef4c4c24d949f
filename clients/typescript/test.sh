#!/bin/sh
# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the client for TypeScript, tests it against a real server, packs it, and uses the package in an empty
# project. SALLYPORT names a binary to test with; without it, one is built. What is made, besides node_modules
# and dist, goes to a directory that is removed. With --out DIR the package stays there.
set -eu
cd "$(dirname "$0")"
out=
[ "${1:-}" = --out ] && out=$2

room=$(mktemp -d "${SALLYPORT_TEST_DIR:-/var/tmp}/x-sallyport-ts.XXXXXX")
trap 'rm -rf "$room"' EXIT
if [ -z "${SALLYPORT:-}" ]; then
	(cd ../.. && go build -o "$room/sallyport" ./cmd/sallyport)
	SALLYPORT=$room/sallyport
fi
export SALLYPORT SALLYPORT_TEST_DIR="$room"

echo "- install, generate, compile"
npm ci --no-audit --no-fund --silent
node scripts/generate.mjs --check
rm -rf dist
npx --no-install tsc -p tsconfig.json
npx --no-install tsc -p tsconfig.check.json

echo "- test"
flag=
node -e 'process.exit(typeof WebSocket === "undefined" ? 0 : 1)' && flag=--experimental-websocket
node $flag --test --test-reporter=spec test/*.test.mjs >"$room/log" 2>&1 || { cat "$room/log"; exit 1; }
grep '^. \(tests\|pass\|fail\|skipped\) ' "$room/log"

echo "- pack, install, import"
cp ../../LICENSE LICENSE
trap 'rm -rf "$room" LICENSE' EXIT
npm pack --silent --pack-destination "$room" >"$room/name"
package=$room/$(cat "$room/name")
mkdir "$room/project"
cat >"$room/project/package.json" <<'END'
{ "name": "project", "private": true, "type": "module" }
END
cat >"$room/project/use.ts" <<'END'
import { Client, Sandbox, type Result, type schema } from "sallyport-client";
import { Client as NodeClient } from "sallyport-client/node";
export async function use(client: Client): Promise<string | undefined> {
  const result: Result = await client.run(["true"], { onStdout: (text) => console.log(text) });
  const denial: schema.Denial | undefined = result.denials[0];
  const sandbox = await Sandbox.create({ client });
  for await (const chunk of client.attach("1").output()) console.log(chunk.text.length);
  return denial?.grant ?? (await sandbox.files.read("a")).trim();
}
export const launched: Promise<Client> = NodeClient.launch({ onEvent: (e) => console.log(e.data.seq) });
END
compiler=$PWD/node_modules/typescript/bin/tsc
(
	cd "$room/project"
	npm install --offline --no-audit --no-fund --silent "$package"
	[ "$(ls node_modules)" = sallyport-client ]
	for resolution in nodenext bundler; do # types, without those of Node
		[ $resolution = nodenext ] && module=nodenext || module=esnext
		node "$compiler" --noEmit --strict --target es2022 --lib es2022,dom,dom.asynciterable \
			--module $module --moduleResolution $resolution use.ts
	done
	node --input-type=module -e '
		import * as any from "sallyport-client";
		import * as own from "sallyport-client/node";
		if (any.Client === undefined || own.Client.launch === undefined) throw new Error("an export is missing");'
	for example in agent sandbox; do
		node "node_modules/sallyport-client/examples/$example.mjs" "$SALLYPORT" >"$room/$example"
	done
)
for example in agent sandbox; do # the README shows what the examples print
	sed -n "/<!-- output: $example -->/,/^\`\`\`\$/p" README.md | sed '1,2d;$d' | diff - "$room/$example"
done
[ -z "$out" ] || { mkdir -p "$out" && cp "$package" "$out"; }
echo "- all holds"
