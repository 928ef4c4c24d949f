// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Writes src/schema.ts, the types of the protocol, from docs/protocol.schema.json.
//
//	node scripts/generate.mjs          write the file
//	node scripts/generate.mjs --check  fail if the file is out of date
//
// A keyword that this script does not know is an error, so that no part of the schema is dropped in silence.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const source = new URL("../../../docs/protocol.schema.json", import.meta.url);
const target = new URL("../src/schema.ts", import.meta.url);

// Keywords that a type of TypeScript does not express.
const unexpressed = [
  "minimum",
  "maximum",
  "minLength",
  "minItems",
  "format",
  "contentEncoding",
  "title",
  "examples",
  "$schema",
  "default",
  "pattern",
];
const expressed = [
  "type",
  "properties",
  "required",
  "items",
  "enum",
  "const",
  "anyOf",
  "oneOf",
  "$ref",
  "additionalProperties",
  "description",
  "$defs",
];

/** name returns the name of the type for a definition: "run/start params" is RunStartParams. */
export function name(definition) {
  const words = definition.split(/[^A-Za-z0-9]+/).filter(Boolean);
  if (words[0] === "event" && words.length > 1) words.push(words.shift()); // DeniedEvent
  return words.map((w) => w[0].toUpperCase() + w.slice(1)).join("");
}

function refName(ref) {
  const prefix = "#/$defs/";
  if (!ref.startsWith(prefix)) throw new Error(`a reference that is not to $defs: ${ref}`);
  return name(ref.slice(prefix.length).replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** type returns the type for a schema. */
export function type(schema, indent = "") {
  if (schema === true) return "unknown";
  for (const key of Object.keys(schema)) {
    if (!expressed.includes(key) && !unexpressed.includes(key)) {
      throw new Error(`the keyword ${key} is not supported: add it to scripts/generate.mjs`);
    }
  }
  if (schema.$ref !== undefined) return refName(schema.$ref);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return [...new Set(choices.map((s) => type(s, indent)))].join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (Array.isArray(schema.type)) {
    return schema.type.map((t) => type({ ...schema, type: t }, indent)).join(" | ");
  }
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array": {
      const of = type(schema.items ?? true, indent);
      return / [|] /.test(of) ? `(${of})[]` : `${of}[]`;
    }
    case "object":
      return object(schema, indent);
    case undefined:
      return "unknown";
  }
  throw new Error(`the type ${schema.type} is not supported`);
}

function object(schema, indent) {
  const properties = Object.entries(schema.properties ?? {});
  const rest = schema.additionalProperties;
  if (properties.length === 0) {
    return typeof rest === "object"
      ? `{ [name: string]: ${type(rest, indent)} }`
      : "{ [name: string]: unknown }";
  }
  const required = schema.required ?? [];
  const members = properties.map(([key, of]) => {
    const word = /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key);
    const text = comment(of, indent + "  ");
    const optional = required.includes(key) ? "" : "?";
    return `${text}${indent}  ${word}${optional}: ${type(of, indent + "  ")};\n`;
  });
  return `{\n${members.join("")}${indent}}`;
}

function comment(schema, indent) {
  const words = [];
  if (schema.description) words.push(schema.description);
  if (schema.contentEncoding) words.push(`Bytes in ${schema.contentEncoding}.`);
  return words.length ? `${indent}/** ${words.join(" ").replaceAll("*/", "* /")} */\n` : "";
}

/** generate returns the text of src/schema.ts. */
export function generate(schema) {
  const out = [
    "// Copyright 2026 The sallyport Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n",
    "// Made by scripts/generate.mjs from docs/protocol.schema.json; do not edit.\n\n",
  ];
  const requests = [],
    notifications = [];
  const taken = new Map();
  const events = [];
  for (const [key, of] of Object.entries(schema.$defs)) {
    const as = name(key);
    if (taken.has(as)) throw new Error(`${key} and ${taken.get(as)} would have one name: ${as}`);
    taken.set(as, key);
    const body = type(of);
    out.push(
      comment(of, ""),
      body.startsWith("{\n") && body.endsWith("}") ? `export interface ${as} ${body}\n\n` : `export type ${as} = ${body};\n\n`,
    );
    if (key.startsWith("event ")) events.push(key.slice("event ".length));
    const method = /^(.*) params$/.exec(key)?.[1];
    if (method === undefined) continue;
    (`${method} result` in schema.$defs ? requests : notifications).push(method);
  }
  const row = (m) => `  ${JSON.stringify(m)}: `;
  out.push(
    "/** The parameters and the result of each request. */\nexport interface Requests {\n",
    ...requests.map((m) => `${row(m)}{ params: ${name(m + " params")}; result: ${name(m + " result")} };\n`),
    "}\n\n",
    "/** The parameters of each notification. */\nexport interface Notifications {\n",
    ...notifications.map((m) => `${row(m)}${name(m + " params")};\n`),
    "}\n",
  );
  if (events.length) {
    out.push(
      "\n/** The kinds of events that these types know. */\nexport const eventTypes = [\n",
      ...events.map((e) => `  ${JSON.stringify(e)},\n`),
      "] as const;\n",
    );
  }
  return out.join("");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = generate(JSON.parse(readFileSync(source, "utf8")));
  if (process.argv.includes("--check")) {
    if (readFileSync(target, "utf8") !== text) {
      console.error("src/schema.ts is out of date: run `node scripts/generate.mjs`");
      process.exit(1);
    }
  } else {
    writeFileSync(target, text);
  }
}
