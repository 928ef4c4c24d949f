// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// approvalRequest is what approvers of clients and approver programs get.
type approvalRequest struct {
	Type string `json:"type" rule:"one=approval_request"`
	approval.Request
}

// described are the members that package wire has as any JSON, and what stands there. Those without a type
// are any JSON for clients as well: the first two are the peer's, and are read by package sandbox/wire
// and by nothing.
var described = map[string]reflect.Type{
	"Sandbox.Permissions": nil, "NetworkProxy.AuditMetadata": nil,
	"RunStartResult.Result": reflect.TypeFor[records.Result](),
	"RunWaitResult.Result":  reflect.TypeFor[records.Result](),
	"RunReadResult.Result":  reflect.TypeFor[records.Result](),
	"RunResult.Result":      reflect.TypeFor[records.Result](),
	"RunWaitResult.Input":   reflect.TypeFor[executor.InputWait](),
	"RunApprove.Request":    reflect.TypeFor[approvalRequest](), "Question.Request": reflect.TypeFor[approvalRequest](),
	"RunEvent.Event":     reflect.TypeFor[event.Event](),
	"ReadResult.Outcome": reflect.TypeFor[wire.Outcome](), "Closed.Outcome": reflect.TypeFor[wire.Outcome](),
}

// field returns the schema of a field.
func (g *generator) field(t reflect.Type, f reflect.StructField) schema {
	if f.Type.Kind() != reflect.Interface && f.Type != reflect.TypeFor[json.RawMessage]() {
		return g.value(f.Type)
	}
	of, known := described[t.Name()+"."+f.Name]
	switch {
	case !known:
		panic("nothing says what stands in " + t.Name() + "." + f.Name)
	case of == nil:
		return schema{}
	}
	return g.value(of)
}

// form returns the schema of a type that encodes itself; nil for others.
func (g *generator) form(t reflect.Type) schema {
	zero := reflect.New(t).Interface()
	_, texts := zero.(encoding.TextMarshaler)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[wire.RunStage]():
		return schema{"anyOf": []any{schema{"type": "boolean"}, schema{"type": "string", "minLength": 1}}}
	case t == reflect.TypeFor[event.Event]():
		return g.events()
	case texts && t.Kind() == reflect.Uint8:
		return schema{"type": "string", "enum": words(t)}
	case t == reflect.TypeFor[executor.Usage]():
		return g.inferred(t)
	}
	return nil
}

// words are those of a type that has a number for each.
func words(t reflect.Type) (all []string) {
	for i := range 256 {
		v := reflect.New(t)
		v.Elem().SetUint(uint64(i))
		text, err := json.Marshal(v.Interface())
		var word string
		if err != nil || json.Unmarshal(text, &word) != nil || slices.Contains(all, word) {
			break
		}
		all = append(all, word)
	}
	return all
}

// inferred returns the schema of a type by what it encodes to when all is known of it. No member is required.
func (g *generator) inferred(t reflect.Type) schema {
	text, err := json.Marshal(filled(t).Interface())
	var members map[string]any
	if err = errors.Join(err, json.Unmarshal(text, &members)); err != nil {
		panic(err)
	}
	properties := schema{}
	for name, v := range members {
		properties[name] = schema{"type": map[reflect.Kind]string{reflect.String: "string",
			reflect.Float64: "integer"}[reflect.TypeOf(v).Kind()]}
	}
	g.defs[t.Name()] = schema{"type": "object", "properties": properties}
	return schema{"$ref": "#/$defs/" + t.Name()}
}

// events returns the schema of an event of any type.
func (g *generator) events() schema {
	all := event.Forms()
	var one []any
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if kind == "" {
			continue
		}
		s, head := g.object(reflect.TypeOf(all[kind])), g.object(reflect.TypeOf(all[""]))
		properties := as[schema](head["properties"])
		maps.Copy(properties, as[schema](s["properties"]))
		properties["v"], properties["type"] = schema{"const": event.Version}, schema{"const": kind}
		required, _ := head["required"].([]string)
		more, _ := s["required"].([]string)
		s["properties"], s["required"] = properties, append(required, more...)
		g.defs["event "+kind] = s
		one = append(one, schema{"$ref": "#/$defs/event " + kind})
	}
	g.defs["Event"] = schema{"anyOf": one,
		"description": "Later versions add types; a client ignores those that it does not know."}
	return schema{"$ref": "#/$defs/Event"}
}

// filled returns a value of a type in which nothing is zero.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	if t == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return v
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString("a<b")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(time.Second))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(filled(t.Elem()).Addr())
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(t.Elem())))
	case reflect.Struct:
		for i := range t.NumField() {
			if f := v.Field(i); f.CanSet() {
				f.Set(filled(f.Type()))
			}
		}
	}
	return v
}

// undescribed returns the path of a member that a schema does not name; empty if it names all. Of several
// forms the one counts that the value has.
func (c checker) undescribed(s map[string]any, v any, at string) string {
	if ref, ok := s["$ref"].(string); ok {
		return c.undescribed(c.def(strings.TrimPrefix(ref, "#/$defs/")), v, at)
	}
	for _, one := range as[[]any](s["anyOf"]) {
		if c.check(as[schema](one), v, at) == nil {
			return c.undescribed(as[schema](one), v, at)
		}
	}
	if len(s) == 0 {
		return at + " (any JSON)"
	}
	for i, item := range as[[]any](v) {
		if missing := c.undescribed(as[schema](s["items"]), item,
			fmt.Sprint(at, "[", i, "]")); missing != "" {
			return missing
		}
	}
	properties := as[schema](s["properties"])
	for name, member := range as[schema](v) {
		below, ok := properties[name].(map[string]any)
		if !ok {
			return at + "." + name
		}
		if missing := c.undescribed(below, member, at+"."+name); missing != "" {
			return missing
		}
	}
	return ""
}

// conforms reports JSON that is not as a definition says, or has what it does not name.
func (c checker) conforms(t *testing.T, name string, text []byte) {
	t.Helper()
	v := parse(t, text)
	if err := c.check(c.def(name), v, name); err != nil {
		t.Errorf("%v: %s", err, text)
	} else if missing := c.undescribed(c.def(name), v, name); missing != "" {
		t.Errorf("%s is not described: %s", missing, text)
	}
}

// TestSchemaOfForms: what has every member, and what has none that may be missing, is as the schema says.
func TestSchemaOfForms(t *testing.T) {
	c, _ := loadSchema(t)
	encode := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, v := range []any{&sallyport.Result{}, sallyport.ResultOf(nil, sallyport.ErrRefused),
		filled(reflect.TypeFor[records.Result]()).Interface()} {
		c.conforms(t, "Result", encode(v))
	}
	full, _ := filled(reflect.TypeFor[approval.Request]()).Interface().(approval.Request)
	for _, q := range []approval.Request{{}, full} {
		c.conforms(t, "ApprovalRequest", append([]byte(`{"type":"approval_request",`), encode(q)[1:]...))
	}
	for _, w := range []any{executor.InputWait{}, filled(reflect.TypeFor[executor.InputWait]()).Interface()} {
		c.conforms(t, "InputWait", encode(w))
	}
	for _, b := range []event.Body{
		event.Judged{}, event.ApprovalRequested{Request: &full}, event.ApprovalDecided{}, event.Retrying{},
		event.SandboxOutcome{}, event.Started{},
		event.Output{Data: []byte{0xff}}, event.Denied{}, event.Network{}, event.Quarantined{},
		event.Exited{}, event.Survived{}, event.Ended{},
		event.ReviewStarted{Review: approval.Review{Request: &full}},
		event.ReviewCompleted{Review: approval.Review{Request: &full}},
	} {
		c.conforms(t, "Event", encode(event.Event{Body: b}))
		text := encode(event.Event{Body: b})
		if err := c.check(c.def("Event"), parse(t, bytes.Replace(text, []byte(`"v":1`), []byte(`"v":2`), 1)),
			"Event"); err == nil {
			t.Errorf("another version is taken: %s", text)
		}
	}
	for kind, f := range event.Forms() {
		if kind == "" {
			continue
		}
		b := encode(filled(reflect.TypeOf(f)).Interface())
		head := fmt.Sprintf(`{"v":1,"type":%q,"time":"2026-08-01T12:00:00Z","seq":1,"run":"r","attempt":1,`, kind)
		c.conforms(t, "event "+kind, append([]byte(head), b[1:]...))
	}
}

// TestSchemaOfRuns: what a server says about runs is as the schema says, with all that is in it.
func TestSchemaOfRuns(t *testing.T) {
	testenv.NeedUserNS(t)
	c, _ := loadSchema(t)
	s := New(Options{Dir: t.TempDir(), Environ: []string{"PATH=/usr/bin:/bin"},
		Prepare: func(_ context.Context, r *runs.Request) (*runs.Prepared, error) {
			runner := &sallyport.Runner{Policy: sandbox.WorkspaceWrite("."), Approver: r.Approver,
				Approval: approval.Untrusted}
			return &runs.Prepared{Runner: runner, Cmd: &sallyport.Cmd{Args: r.Args, Dir: r.Dir,
				Env: r.Environ}}, nil
		}})
	t.Cleanup(func() { _ = s.Close() })
	var mu sync.Mutex
	met := map[string]bool{}
	look := func(name string, text []byte) {
		mu.Lock()
		defer mu.Unlock()
		met[name] = true
		c.conforms(t, name, text)
	}
	client, err := wire.Connect(t.Context(),
		wire.ClientTarget{Dial: func(ctx context.Context) (wire.Stream, error) {
			c, err := s.Dial(ctx)
			return wire.LinesOn(c), err
		}}, wire.ClientOptions{
			Name: "t", Extensions: true, Approvals: true, Resume: -1,
			OnNotify: func(method string, params json.RawMessage) {
				if method == wire.MethodRunEvent {
					look(method+" params", params)
				}
			},
			OnRequest: func(_ context.Context, method string, params json.RawMessage) (any, error) {
				look(method+" params", params)
				return map[string]string{"decision": "approved"}, nil
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	call := func(method string, params any) json.RawMessage {
		var result json.RawMessage
		if err := client.Call(t.Context(), method, params, &result); err != nil {
			t.Fatal(method, err)
		}
		look(method+" result", result)
		return result
	}
	var run struct {
		RunID string `json:"runId"`
	}
	start := map[string]any{"args": []string{"sh", "-c", "read x; echo é; printf '\\377' >&2; echo >/etc/x"},
		"openStdin": true, "events": true}
	if err := json.Unmarshal(call("run/start", start), &run); err != nil {
		t.Fatal(err)
	}
	waited := call("run/wait", map[string]any{"runId": run.RunID, "for": map[string]any{"input": true}})
	if !bytes.Contains(waited, []byte(`"input":{`)) {
		t.Errorf("no input in %s", waited)
	}
	call("run/closeStdin", run)
	ended := call("run/wait", map[string]any{"runId": run.RunID, "for": map[string]any{"exit": true}})
	for _, member := range []string{`"result":{`, `"denials":[{`, `"stderr_base64"`, `"approvals":[{`,
		`"usage":{`} {
		if !bytes.Contains(ended, []byte(member)) {
			t.Errorf("no %s in %s", member, ended)
		}
	}
	call("run/result", map[string]any{"runId": run.RunID, "output": true})
	call("run/start", map[string]any{"args": []string{"/no/such/program"}})
	checkRefusals(t, client, run.RunID, look)
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"run/event params", "run/approve params"} {
		if !met[name] {
			t.Errorf("no %s came", name)
		}
	}
}

// checkRefusals looks at the data of what a server refuses.
func checkRefusals(t *testing.T, client *wire.Client, ended string, look func(name string, text []byte)) {
	t.Helper()
	var refused *wire.Error
	for method, params := range map[string]any{
		"run/write":    wire.RunWrite{RunID: ended, Chunk: []byte("x")},
		"run/start":    map[string]any{"args": []string{"true"}, "cwd": "x"},
		"run/screen":   wire.RunParams{RunID: "x"},
		"sandbox/stop": map[string]any{"name": "x"},
	} {
		if err := client.Call(t.Context(), method, params, nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want an error of the server", method, err)
			continue
		}
		look("Refusal", refused.Data)
	}
}
