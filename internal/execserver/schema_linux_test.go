// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/fsserver"
	"github.com/sallyport-dev/sallyport/internal/wire"
)

var update = flag.Bool("update", false, "write docs/protocol.schema.json")

// schemaFile is the JSON Schema of the protocol.
const schemaFile = "../../docs/protocol.schema.json"

// The parameters that package wire decodes into other forms than they have on the wire. Of those
// below, a member with omitempty is optional. The tag schema has further bounds.
type (
	nothing          struct{}
	initializeParams struct {
		ClientName       string  `json:"clientName"`
		ResumeSessionID  *string `json:"resumeSessionId,omitempty" schema:"min=1"`
		ObserveSessionID *string `json:"observeSessionId,omitempty" schema:"min=1"`
		ExtensionMethods bool    `json:"extensionMethods,omitempty"`
		Approvals        bool    `json:"approvals,omitempty"`
		BinaryOutput     bool    `json:"binaryOutput,omitempty"`
		TakeOver         bool    `json:"takeOver,omitempty"`
	}
	readParams struct {
		ProcessID string `json:"processId"`
		AfterSeq  uint64 `json:"afterSeq,omitempty"`
		MaxBytes  uint64 `json:"maxBytes,omitempty"`
		WaitMs    uint64 `json:"waitMs,omitempty"`
	}
	fileParams struct {
		Path           string        `json:"path"`
		FollowSymlinks bool          `json:"followSymlinks,omitempty"`
		Sandbox        *wire.Sandbox `json:"sandbox,omitempty"`
	}
	writeFileParams struct {
		fileParams
		Data   []byte `json:"dataBase64"`
		Atomic bool   `json:"atomic,omitempty"`
	}
	createParams struct {
		fileParams
		Recursive bool `json:"recursive,omitempty"`
	}
	removeParams struct {
		createParams
		Force bool `json:"force,omitempty"`
	}
	pairParams struct {
		Source      string        `json:"sourcePath"`
		Destination string        `json:"destinationPath"`
		Sandbox     *wire.Sandbox `json:"sandbox,omitempty"`
	}
	copyParams struct {
		pairParams
		Recursive      bool `json:"recursive"`
		FollowSymlinks bool `json:"followSymlinks,omitempty"` // false is refused
	}
	renameParams struct {
		pairParams
		Replace        bool `json:"replace,omitempty"`
		FollowSymlinks bool `json:"followSymlinks,omitempty"`
	}
	chmodParams struct {
		fileParams
		Mode uint32 `json:"mode"`
	}
	symlinkParams struct {
		fileParams
		Target string `json:"target"`
	}
	appendParams struct {
		fileParams
		Data []byte `json:"dataBase64"`
	}
	walkParams struct {
		fileParams
		Options walkOptions `json:"options"`
	}
	walkOptions struct {
		MaxDepth       uint64 `json:"maxDepth"`
		MaxDirectories uint64 `json:"maxDirectories"`
		MaxEntries     uint64 `json:"maxEntries"`
		Follow         bool   `json:"followDirectorySymlinks"`
		Prune          bool   `json:"pruneHiddenDirectories,omitempty"`
	}
	openParams struct {
		fileParams
		HandleID string `json:"handleId"`
		Mode     string `json:"mode,omitempty" schema:"enum=read|replace"`
	}
	readBlockParams struct {
		HandleID string `json:"handleId"`
		Offset   uint64 `json:"offset"`
		Len      uint64 `json:"len"`
	}
	writeBlockParams struct {
		HandleID string `json:"handleId"`
		Offset   uint64 `json:"offset"`
		Chunk    []byte `json:"chunk"`
	}
	watchParams struct {
		WatchID uint64        `json:"watchId"`
		Missing []string      `json:"missing"`
		Sandbox *wire.Sandbox `json:"sandbox,omitempty"`
	}
	httpParams struct {
		Method    string       `json:"method"`
		URL       string       `json:"url"`
		RequestID string       `json:"requestId"`
		Headers   []httpHeader `json:"headers,omitempty"`
		Body      []byte       `json:"bodyBase64,omitempty"`
		TimeoutMs uint64       `json:"timeoutMs,omitempty"`
		Redirect  string       `json:"redirectPolicy,omitempty" schema:"enum=follow|stop"`
		Stream    bool         `json:"streamResponse,omitempty"`
	}
	httpHeader struct {
		Name        string `json:"name"`
		Value       string `json:"value"`
		ValueEnvVar string `json:"valueEnvVar,omitempty" schema:"min=1"`
	}
	configParams struct {
		CWD              string     `json:"cwd"`
		ConfigPaths      [][]string `json:"configPaths"`
		RequirementPaths [][]string `json:"requirementsPaths"`
	}
	discoverParams struct {
		Roots []capabilityRoot `json:"roots"`
	}
	capabilityRoot struct {
		ID      string        `json:"id"`
		Path    string        `json:"path"`
		Sandbox *wire.Sandbox `json:"sandbox,omitempty"`
	}
	runStartParams struct {
		Args       []string          `json:"args" schema:"min=1"`
		CWD        string            `json:"cwd,omitempty"`
		Env        map[string]string `json:"env,omitempty"`
		TTY        *wire.TTYSize     `json:"tty,omitempty"`
		OpenStdin  bool              `json:"openStdin,omitempty"`
		Screen     bool              `json:"screen,omitempty"`
		Events     bool              `json:"events,omitempty"`
		Reader     bool              `json:"reader,omitempty"`
		Hidden     []string          `json:"hidden,omitempty"`
		Transient  bool              `json:"transient,omitempty"`
		Unattended bool              `json:"unattended,omitempty"`
		Sandbox    *runSandbox       `json:"sandbox,omitempty"`
	}
	runSandbox struct {
		Name   string `json:"name" schema:"min=1"`
		IdleMs uint64 `json:"idleMs,omitempty"`
	}
	sandboxParams struct {
		Name string `json:"name"`
	}
	runParams struct {
		RunID string `json:"runId"`
	}
	runReadParams struct {
		runParams
		After    uint64     `json:"after"`
		MaxBytes uint64     `json:"maxBytes,omitempty"`
		WaitMs   uint64     `json:"waitMs,omitempty"`
		Reader   *runReader `json:"reader,omitempty"`
	}
	runReader struct {
		StdoutClosed bool `json:"stdoutClosed,omitempty"`
		StderrClosed bool `json:"stderrClosed,omitempty"`
		Leaves       bool `json:"leaves,omitempty"`
	}
	runResultParams struct {
		runParams
		Output bool   `json:"output,omitempty"`
		From   uint64 `json:"from,omitempty"`
	}
	runWriteParams struct {
		runParams
		Chunk   []byte `json:"chunk"`
		WriteID string `json:"writeId,omitempty" schema:"min=1"`
	}
	runWaitParams struct {
		runParams
		For       runConditions `json:"for"`
		TimeoutMs uint64        `json:"timeoutMs,omitempty"`
	}
	runConditions struct {
		Exit        bool   `json:"exit,omitempty"`
		QuietMs     uint64 `json:"quietMs,omitempty"`
		Input       bool   `json:"input,omitempty"`
		Match       string `json:"match,omitempty"`
		Port        bool   `json:"port,omitempty"`
		FirstOutput bool   `json:"firstOutput,omitempty"`
		Bytes       uint64 `json:"bytes,omitempty"`
		Raw         bool   `json:"raw,omitempty"`
		After       uint64 `json:"after,omitempty"`
	}
	runResizeParams struct {
		runParams
		Cols uint16 `json:"cols" schema:"min=1"`
		Rows uint16 `json:"rows" schema:"min=1"`
	}
	runSignalParams struct {
		runParams
		Signal string `json:"signal" schema:"example=SIGTERM"`
	}
	cancelParams struct {
		ID json.RawMessage `json:"id"`
	}
	approveAnswer struct {
		Decision string `json:"decision"`
		Message  string `json:"message,omitempty"`
	}
)

// A call is a method with the forms of its parameters and its result.
type call struct{ params, result any }

// calls are the requests of clients.
var calls = map[string]call{
	"initialize":                 {initializeParams{}, wire.InitializeResult{}},
	"environment/info":           {nothing{}, wire.Environment{}},
	"environment/status":         {nothing{}, wire.EnvironmentStatus{}},
	"process/start":              {wire.Start{}, wire.StartResult{}},
	"process/read":               {readParams{}, wire.ReadResult{}},
	"process/write":              {wire.Write{}, wire.WriteResult{}},
	"process/signal":             {wire.Signal{}, nothing{}},
	"process/terminate":          {wire.Terminate{}, wire.TerminateResult{}},
	"process/resize":             {wire.Resize{}, nothing{}},
	"process/closeStdin":         {wire.CloseStdin{}, wire.WriteResult{}},
	"process/list":               {nothing{}, wire.ListResult{}},
	"http/request":               {httpParams{}, wire.HTTPResult{}},
	"environmentConfig/read":     {configParams{}, wire.ConfigResult{}},
	"capabilityRoots/discoverV1": {discoverParams{}, wire.DiscoverResult{}},
	"fs/watchMissing":            {watchParams{}, wire.WatchMissingResult{}},
	"fs/readFile":                {fileParams{}, wire.ReadFileResult{}},
	"fs/getMetadata":             {fileParams{}, wire.Metadata{}},
	"fs/canonicalize":            {fileParams{}, wire.CanonicalizeResult{}},
	"fs/readDirectory":           {fileParams{}, wire.ReadDirectoryResult{}},
	"fs/writeFile":               {writeFileParams{}, nothing{}},
	"fs/createDirectory":         {createParams{}, nothing{}},
	"fs/remove":                  {removeParams{}, nothing{}},
	"fs/walk":                    {walkParams{}, wire.WalkResult{}},
	"fs/copy":                    {copyParams{}, nothing{}},
	"fs/rename":                  {renameParams{}, nothing{}},
	"fs/chmod":                   {chmodParams{}, nothing{}},
	"fs/symlink":                 {symlinkParams{}, nothing{}},
	"fs/append":                  {appendParams{}, nothing{}},
	"fs/open":                    {openParams{}, wire.OpenResult{}},
	"fs/readBlock":               {readBlockParams{}, wire.ReadBlockResult{}},
	"fs/writeBlock":              {writeBlockParams{}, nothing{}},
	"fs/close":                   {wire.OpenResult{}, nothing{}}, // the same member
	"run/start":                  {runStartParams{}, wire.RunStartResult{}},
	"run/list":                   {nothing{}, wire.RunList{}},
	"run/read":                   {runReadParams{}, wire.RunReadResult{}},
	"run/write":                  {runWriteParams{}, nothing{}},
	"run/closeStdin":             {runParams{}, nothing{}},
	"run/wait":                   {runWaitParams{}, wire.RunWaitResult{}},
	"run/screen":                 {runParams{}, wire.RunScreen{}},
	"run/resize":                 {runResizeParams{}, nothing{}},
	"run/signal":                 {runSignalParams{}, nothing{}},
	"run/terminate":              {runParams{}, wire.TerminateResult{}},
	"run/result":                 {runResultParams{}, wire.RunResult{}},
	"run/remove":                 {runParams{}, nothing{}},
	"sandbox/list":               {nothing{}, wire.SandboxList{}},
	"sandbox/stop":               {sandboxParams{}, nothing{}},
}

// serverCalls are the requests of the server.
var serverCalls = map[string]call{wire.MethodApprove: {wire.RunApprove{}, approveAnswer{}}, wire.MethodPolicyRequest: {wire.PolicyRequest{}, wire.PolicyAnswer{}}}

// notices are the notifications of both sides.
var notices = map[string]any{
	"initialized": nothing{}, "request/cancel": cancelParams{}, wire.MethodOutput: wire.Output{}, wire.MethodExited: wire.Exited{}, wire.MethodClosed: wire.Closed{},
	wire.MethodMissingChanged: wire.MissingChanged{}, wire.MethodBodyDelta: wire.BodyDelta{}, wire.MethodRunEvent: wire.RunEvent{}, wire.MethodPolicyDecision: wire.PolicyDecision{},
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
	for _, f := range reflect.VisibleFields(t) {
		name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		s := bounded(g.field(t, f), f.Tag.Get("schema"))
		optional := tagged && strings.HasPrefix(options, "omit")
		if !optional {
			required = append(required, name)
		}
		if nullable := f.Type.Kind() == reflect.Pointer && !optional; nullable || g.lenient && optional && f.Type.Kind() != reflect.Bool {
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

// bounded adds what the tag says.
func bounded(s schema, tag string) schema {
	key, value, _ := strings.Cut(tag, "=")
	switch key {
	case "enum":
		s["enum"] = strings.Split(value, "|")
	case "example":
		s["examples"] = []string{value}
	case "min":
		n, _ := strconv.Atoi(value)
		s[map[any]string{"string": "minLength", "array": "minItems", "integer": "minimum"}[s["type"]]] = n
	}
	return s
}

// value returns the schema of a type.
func (g *generator) value(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[[]byte]():
		return schema{"type": "string", "contentEncoding": "base64"}
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
		s := schema{"type": "object", "properties": schema{"method": schema{"const": method}, "params": params}}
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
	var messages []any
	add := func(method string, in, out *generator, c call) {
		params, result := in.object(reflect.TypeOf(c.params)), out.object(reflect.TypeOf(c.result))
		_, needed := params["required"]
		if !needed {
			params = schema{"anyOf": []any{params, schema{"type": "null"}}}
		}
		defs[method+" params"], defs[method+" result"] = params, result
		messages = append(messages, kind(method, schema{"$ref": "#/$defs/" + pointer(method) + " params"}, true, needed))
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
		messages = append(messages, kind(method, schema{"$ref": "#/$defs/" + pointer(method) + " params"}, false, method != "initialized"))
	}
	ref := schema{"$ref": "#/$defs/id"}
	messages = append(messages,
		schema{"type": "object", "required": []string{"id", "result"}, "properties": schema{"id": ref}},
		schema{"type": "object", "required": []string{"id", "error"}, "properties": schema{"id": ref, "error": schema{"$ref": "#/$defs/error"}}})
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
	served := slices.Concat(slices.Collect(maps.Keys(methods)), slices.Collect(maps.Keys(runMethods)))
	for name := range calls { // TestDocumented of package fsserver has the other direction
		if known, _ := fsserver.Has(name); known {
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
		t.Errorf("%s is not up to date (%v): run go test ./internal/execserver -run TestSchema -update", schemaFile, err)
	}
}
