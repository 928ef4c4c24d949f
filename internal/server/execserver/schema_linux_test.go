// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"iter"
	"maps"
	"math"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/stages"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

var update = flag.Bool("update", false, "write docs/protocol.schema.json")

// schemaFile is the JSON Schema of the protocol.
const schemaFile = "../../../docs/protocol.schema.json"

type nothing struct{}

// A call is a method with the forms of its parameters and its result.
type call struct{ params, result any }

// calls are the requests of clients.
var calls = map[string]call{
	"initialize":                 {wire.Initialize{}, wire.InitializeResult{}},
	"environment/info":           {nothing{}, wire.Environment{}},
	"environment/status":         {nothing{}, wire.EnvironmentStatus{}},
	"process/start":              {wire.Start{}, wire.StartResult{}},
	"process/read":               {wire.Read{}, wire.ReadResult{}},
	"process/write":              {wire.Write{}, wire.WriteResult{}},
	"process/signal":             {wire.Signal{}, nothing{}},
	"process/terminate":          {wire.Terminate{}, wire.TerminateResult{}},
	"process/resize":             {wire.Resize{}, nothing{}},
	"process/closeStdin":         {wire.CloseStdin{}, wire.WriteResult{}},
	"process/list":               {nothing{}, wire.ListResult{}},
	"process/awaitInput":         {wire.Await{}, wire.AwaitResult{}},
	"http/request":               {wire.HTTPRequest{}, wire.HTTPResult{}},
	"environmentConfig/read":     {wire.ReadConfig{}, wire.ConfigResult{}},
	"capabilityRoots/discoverV1": {wire.Discover{}, wire.DiscoverResult{}},
	"fs/watchMissing":            {wire.WatchMissing{}, wire.WatchMissingResult{}},
	"fs/readFile":                {wire.File{}, wire.ReadFileResult{}},
	"fs/getMetadata":             {wire.File{}, wire.Metadata{}},
	"fs/canonicalize":            {wire.File{}, wire.CanonicalizeResult{}},
	"fs/readDirectory":           {wire.File{}, wire.ReadDirectoryResult{}},
	"fs/writeFile":               {wire.WriteFile{}, nothing{}},
	"fs/createDirectory":         {wire.CreateDirectory{}, nothing{}},
	"fs/remove":                  {wire.Remove{}, nothing{}},
	"fs/walk":                    {wire.Walk{}, wire.WalkResult{}},
	"fs/copy":                    {wire.Copy{}, nothing{}},
	"fs/rename":                  {wire.Rename{}, nothing{}},
	"fs/chmod":                   {wire.Chmod{}, nothing{}},
	"fs/symlink":                 {wire.Symlink{}, nothing{}},
	"fs/append":                  {wire.Append{}, nothing{}},
	"fs/open":                    {wire.Open{}, wire.OpenResult{}},
	"fs/readBlock":               {wire.ReadBlock{}, wire.ReadBlockResult{}},
	"fs/writeBlock":              {wire.WriteBlock{}, nothing{}},
	"fs/close":                   {wire.Close{}, nothing{}},
	"run/start":                  {wire.RunStart{}, wire.RunStartResult{}},
	"run/list":                   {wire.ListWait{}, wire.RunList{}},
	"run/read":                   {wire.RunRead{}, wire.RunReadResult{}},
	"run/write":                  {wire.RunWrite{}, nothing{}},
	"run/closeStdin":             {wire.RunParams{}, nothing{}},
	"run/wait":                   {wire.RunWait{}, wire.RunWaitResult{}},
	"run/screen":                 {wire.RunParams{}, wire.RunScreen{}},
	"run/resize":                 {wire.RunResize{}, nothing{}},
	"run/signal":                 {wire.RunSignal{}, nothing{}},
	"run/terminate":              {wire.RunParams{}, wire.TerminateResult{}},
	"run/result":                 {wire.RunResultOf{}, wire.RunResult{}},
	"run/remove":                 {wire.RunParams{}, nothing{}},
	"sandbox/list":               {nothing{}, wire.SandboxList{}},
	"sandbox/stop":               {wire.SandboxParams{}, nothing{}},
	"stage/list":                 {wire.ListWait{}, stages.List{}},
	"stage/changes":              {stages.ChangesOf{}, stages.Changes{}},
	"stage/diff":                 {stages.DiffOf{}, stages.Diff{}},
	"stage/apply":                {stages.Apply{}, stages.Applied{}},
	"stage/discard":              {stages.Discard{}, nothing{}},
	"question/list":              {wire.ListWait{}, wire.QuestionList{}},
	"question/answer":            {wire.QuestionAnswer{}, nothing{}},
	"question/forget":            {wire.QuestionID{}, nothing{}},
}

// serverCalls are the requests of the server.
var serverCalls = map[string]call{wire.MethodApprove: {wire.RunApprove{}, wire.RunApproval{}},
	wire.MethodPolicyRequest: {wire.PolicyRequest{}, wire.PolicyAnswer{}}}

// notices are the notifications of both sides.
var notices = map[string]any{
	"initialized": nothing{}, "request/cancel": wire.Canceled{}, wire.MethodOutput: wire.Output{}, wire.MethodExited: wire.Exited{}, wire.MethodClosed: wire.Closed{},
	wire.MethodMissingChanged: wire.MissingChanged{}, wire.MethodBodyDelta: wire.BodyDelta{},
	wire.MethodRunEvent: wire.RunEvent{}, wire.MethodPolicyDecision: wire.PolicyDecision{},
}

// A schema is a JSON Schema.
type schema = map[string]any

// A generator makes schemas of Go types.
type generator struct {
	defs    schema
	types   map[string]reflect.Type // of defs
	lenient bool                    // of parameters: optional members may be null, but booleans
}

// object returns the schema of a structure.
func (g *generator) object(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	for f := range members(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Tag.Get("schema") == "-" {
			continue
		}
		rules := strings.Split(f.Tag.Get("rule"), ",")
		s := bounded(g.field(t, f), append(rules, f.Tag.Get("schema")))
		optional, nullable := strings.HasPrefix(options, "omit"), f.Type.Kind() == reflect.Pointer
		if g.lenient {
			optional = !slices.Contains(rules, "need")
			nullable = optional && !slices.Contains(rules, "nonnull")
		} else if optional {
			nullable = false
		}
		if !optional {
			required = append(required, name)
		}
		if nullable {
			s = schema{"anyOf": []any{s, schema{"type": "null"}}}
		}
		properties[name] = s
	}
	o := schema{"type": "object"}
	if len(properties) > 0 {
		o["properties"] = properties
	}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// members returns the fields of a structure, with those of what is embedded without a name.
func members(t reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous && f.Tag.Get("json") == "" && f.Type.Kind() == reflect.Struct {
				for inner := range members(f.Type) {
					if !yield(inner) {
						return
					}
				}
			} else if !yield(f) {
				return
			}
		}
	}
}

// bounded adds what the tags say.
func bounded(s schema, tags []string) schema {
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		switch key {
		case "one":
			s["enum"] = strings.Split(value, "|")
		case "example":
			s["examples"] = []string{value}
		case "base64":
			s["contentEncoding"] = "base64"
		case "filled":
			s[map[any]string{"string": "minLength", "array": "minItems", "integer": "minimum"}[s["type"]]] = 1
		}
	}
	return s
}

// value returns the schema of a type.
func (g *generator) value(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[[]byte]():
		return schema{"type": "string", "contentEncoding": "base64"}
	case t == reflect.TypeFor[wire.ID]():
		return schema{"$ref": "#/$defs/id"}
	}
	if s := g.form(t); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Uint64:
		return schema{"type": "integer", "minimum": 0, "maximum": uint64(math.MaxUint64)}
	case reflect.Uint16, reflect.Uint32:
		return schema{"type": "integer", "minimum": 0, "maximum": uint64(1)<<t.Bits() - 1}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Pointer:
		return g.value(t.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": g.value(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": g.value(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return g.object(t)
		}
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if g.lenient {
			name += "Param"
		}
		if had := g.types[name]; had != nil && had != t { // the second one has its package in its name
			in := path.Base(t.PkgPath())
			name = strings.ToUpper(in[:1]) + in[1:] + name
		}
		switch had := g.types[name]; {
		case had == nil:
			g.types[name] = t
			g.defs[name] = g.object(t)
		case had != t:
			panic("two types are " + name)
		}
		return schema{"$ref": "#/$defs/" + name}
	}
	panic("no schema for " + t.String())
}

// document returns the whole schema.
func document() schema {
	defs := schema{
		"id":    schema{"anyOf": []any{schema{"type": "string"}, schema{"type": "integer", "minimum": math.MinInt64, "maximum": math.MaxInt64}}},
		"error": schema{"type": "object", "required": []string{"code", "message"}, "properties": schema{"code": schema{"type": "integer"}, "message": schema{"type": "string"}, "data": schema{}}},
	}
	types := map[string]reflect.Type{}
	in, out := &generator{defs, types, true}, &generator{defs, types, false}
	kind := func(method string, params schema, request, needed bool) schema {
		s := schema{"type": "object", "properties": schema{"method": schema{"const": method},
			"params": params}}
		required := []string{"method"}
		if request {
			as[schema](s["properties"])["id"] = schema{"$ref": "#/$defs/id"}
			required = append(required, "id")
		}
		if needed {
			required = append(required, "params")
		}
		s["required"] = required
		return s
	}
	defs["Refusal"] = out.object(reflect.TypeFor[wire.Refusal]())
	refusal := as[schema](defs["Refusal"])
	refusal["description"] = "The data of an error of run/*, stage/*, question/* and sandbox/*, " +
		"and of a start with a key."
	var messages []any
	add := func(method string, in, out *generator, c call) {
		params, result := in.object(reflect.TypeOf(c.params)), out.object(reflect.TypeOf(c.result))
		_, needed := params["required"]
		if !needed {
			params = schema{"anyOf": []any{params, schema{"type": "null"}}}
		}
		defs[method+" params"], defs[method+" result"] = params, result
		messages = append(messages, kind(method, schema{"$ref": "#/$defs/" + pointer(method) + " params"},
			true, needed))
	}
	for _, method := range slices.Sorted(maps.Keys(calls)) {
		add(method, in, out, calls[method])
	}
	for _, method := range slices.Sorted(maps.Keys(serverCalls)) {
		add(method, out, in, serverCalls[method])
	}
	for _, method := range slices.Sorted(maps.Keys(notices)) {
		params := out.object(reflect.TypeOf(notices[method]))
		defs[method+" params"] = params
		messages = append(messages, kind(method, schema{"$ref": "#/$defs/" + pointer(method) + " params"},
			false, method != "initialized"))
	}
	ref := schema{"$ref": "#/$defs/id"}
	messages = append(messages,
		schema{"type": "object", "required": []string{"id", "result"}, "properties": schema{"id": ref}},
		schema{"type": "object", "required": []string{"id", "error"},
			"properties": schema{"id": ref, "error": schema{"$ref": "#/$defs/error"}}})
	return schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Messages of the exec-server protocol with the extensions of sallyport",
		"description": "One message is one of these. Members that are not named here are ignored. Results are in $defs, by method. docs/protocol.md has the meaning.",
		"anyOf":       messages, "$defs": defs,
	}
}

// pointer escapes a part of a JSON pointer (RFC 6901).
func pointer(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1") }

// TestSchema: docs/protocol.schema.json is what the types of package wire say, and has every method
// that is served. Run it with -update after a change.
func TestSchema(t *testing.T) {
	served := slices.Concat(slices.Collect(maps.Keys(methods())), slices.Collect(maps.Keys(runMethods())),
		slices.Collect(maps.Keys(questionMethods())), slices.Collect(maps.Keys(stageMethods())))
	for name := range calls { // TestDocumented of package fsserver has the other direction
		if known, _ := files.Has(name); known {
			served = append(served, name)
		}
	}
	slices.Sort(served)
	if known := slices.Sorted(maps.Keys(calls)); !slices.Equal(known, served) {
		t.Errorf("the schema has %q, served are %q", known, served)
	}
	text := new(bytes.Buffer)
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(document()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	had, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(had, text.Bytes()) {
		t.Errorf("%s is not up to date (%v): run go test ./internal/server/execserver -run TestSchema -update", schemaFile, err)
	}
}
