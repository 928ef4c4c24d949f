// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// oneRun are the flags of run without a key, and why: they concern one run.
var oneRun = map[string]string{
	"cd": "where it runs", "command": "what runs", "fd": "what it is handed", "interactive": "its stdin",
	"json": "who reads it", "jsonl": "who reads it", "jsonl-drop": "who reads it", "help": "nothing runs", "detach": "who waits", "join": "where it runs", "idle": "where it runs", "remote": "where it runs", "remote-token-file": "where it runs",
	"remote-tls-cert": "where it runs", "remote-tls-key": "where it runs", "remote-tls-ca": "where it runs",
	"creds": "where it runs", "queue": "where it runs",
	"escalate": "what it asks for", "ask-for": "what it asks for", "justification": "why it asks", "prefix-rule": "what is offered",
	"approved": "what was answered",
	"config":   "names the file", "no-config": "leaves out the files",
}

// TestFlags: every flag of run has a key, or a reason.
func TestFlags(t *testing.T) {
	for _, f := range RunFlags() {
		k := Find(f.Key)
		switch reason := oneRun[f.Long]; {
		case (k == nil) == (reason == ""):
			t.Errorf("--%s: key %q, reason %q", f.Long, f.Key, reason)
		case k == nil:
		case f.Value != "" && f.Sets != "":
			t.Errorf("--%s is no switch, and sets %q", f.Long, f.Sets)
		case f.Sets != "" && k.Check(f.Sets) != nil:
			t.Errorf("--%s: %v", f.Long, k.Check(f.Sets))
		case k.Later != "":
			t.Errorf("--%s: %s is for later", f.Long, k.Name)
		}
	}
}

// helpOrder is the order of the flags in the help text.
const helpOrder = `sandbox profile rw ro deny grant tmp stage no-stage no-caches no-observer
	protect-hard-links ownership net allow-host
	deny-host ask-net publish allow level approval approval-wait ask-in-console no-ask-in-console
	ask-writes no-ask-writes
	rules escalate ask-for justification
	approved prefix-rule approver cd command shell login env env-inherit tty record no-record fd interactive timeout detach join idle remote remote-token-file
	remote-tls-cert remote-tls-key remote-tls-ca creds queue kill-after memory cpus pids disk output json jsonl jsonl-drop
	max-output quiet verbose help config no-config`

// TestFlagOrder: the help text has the flags of all rows, in an order of its own.
func TestFlagOrder(t *testing.T) {
	var got []string
	for _, f := range RunFlags() {
		got = append(got, f.Long)
		if FindFlag(f.Name()) != f || FindFlag(f.Shortest()) != f || f.row == nil || f.Key != f.row.Name {
			t.Errorf("--%s is not found, or has another row", f.Long)
		}
	}
	if diff := cmp.Diff(strings.Fields(helpOrder), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// asked are the keys that no member of a run is for, because what holds is asked itself.
const asked = `sandbox approval rules network.allow network.deny network.allow_private network.allow_local_binding
	network.require_sni network.ask network.publish network.upstream network.mitm.exclude network.mitm.extra_ca
	network.mitm.rules network.credentials`

// TestMembers: each row has a member of a run that takes its values and forgets them, or is read elsewhere.
func TestMembers(t *testing.T) {
	for i := range keys {
		k := &keys[i]
		name := k.Name
		if name == "" {
			name = "--" + k.Flags[0].Long
		}
		if k.to == nil {
			if k.Later == "" && !slices.Contains(strings.Fields(asked), name) {
				t.Errorf("%s changes nothing", name)
			}
			continue
		}
		if slices.Contains(strings.Fields(asked), name) {
			t.Errorf("%s is read elsewhere, too", name)
		}
		changed := false
		for _, text := range append([]string{"true", "false", "7", "none", "a=b", "git", "unix",
			"high=medium", "https://a.b/v1", "/x"}, k.Words...) {
			if k.Check(text) != nil {
				continue
			}
			var r Run
			k.put(&r, text)
			changed = changed || !reflect.ValueOf(&r).Elem().IsZero()
			if clearMember(k.to(&r)); k.Name != "" && !reflect.ValueOf(&r).Elem().IsZero() {
				t.Errorf("%s keeps %s", name, text)
			}
		}
		if !changed {
			t.Errorf("no value of %s changes a run", name)
		}
	}
}

// TestKeys: the table is in itself right.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Name] || k.Help == "" || !strings.HasSuffix(k.Help, ".") {
			t.Errorf("%s: twice, or no sentence: %q", k.Name, k.Help)
		}
		seen[k.Name] = true
		if k.Default != "" && k.Check(k.Default) != nil {
			t.Errorf("%s: %v", k.Name, k.Check(k.Default))
		}
		if k.Order == Words && len(k.Words) < 2 {
			t.Errorf("%s has no words to order", k.Name)
		}
		if (k.Order == Opens) != (k.paths || k.covers != nil) || k.paths && k.covers != nil {
			t.Errorf("%s opens, and a ceiling permits nothing of it, or in two ways", k.Name)
		}
	}
}

// conforms returns what is wrong with a value by a schema; empty if nothing is. It knows what
// our schema uses, and stops at anything else.
func conforms(schema map[string]any, v any, at string) string {
	for name, rule := range schema {
		bad := ""
		switch name {
		case "description", "title", "$schema", "default", "examples", "items", "properties",
			"additionalProperties", "required":
		case "minItems":
			if n, ok := rule.(float64); ok && len(asList(v)) < int(n) {
				bad = "too few"
			}
		case "type":
			if !slices.ContainsFunc(asList(rule), func(k any) bool { return isKind(fmt.Sprint(k), v) }) {
				bad = fmt.Sprintf("%v is no %v", v, rule)
			}
		case "enum":
			if !slices.Contains(asList(rule), v) {
				bad = fmt.Sprintf("%v is none of %v", v, rule)
			}
		case "anyOf":
			fits := func(s any) bool {
				one, ok := s.(map[string]any)
				return ok && conforms(one, v, at) == ""
			}
			if !slices.ContainsFunc(asList(rule), fits) {
				bad = "none fits"
			}
		default:
			bad = "the schema uses " + name
		}
		if bad != "" {
			return at + ": " + bad
		}
	}
	items, _ := schema["items"].(map[string]any)
	if list, ok := v.([]any); ok && items != nil {
		for _, e := range list {
			if bad := conforms(items, e, at+"[]"); bad != "" {
				return bad
			}
		}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := object[fmt.Sprint(name)]; !ok {
			return fmt.Sprintf("%s: without %v", at, name)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil && schema["additionalProperties"] == nil {
		return "" // said by anyOf
	}
	for name, e := range object {
		s, ok := properties[name].(map[string]any)
		if !ok {
			s, ok = schema["additionalProperties"].(map[string]any)
		}
		if !ok {
			return at + "." + name + ": unknown"
		}
		if bad := conforms(s, e, at+"."+name); bad != "" {
			return bad
		}
	}
	return ""
}

func asList(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func isKind(kind string, v any) bool {
	n, number := v.(float64)
	switch kind {
	case "string":
		_, ok := v.(string)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	case "object":
		_, ok := v.(map[string]any)
		return ok
	case "integer":
		return number && n == float64(int64(n))
	}
	return kind == "number" && number
}

// tree is a file as JSON has it.
func tree(items []syntax.TOMLItem) map[string]any {
	root := map[string]any{}
	for _, i := range items {
		at := root
		for _, part := range i.Path[:len(i.Path)-1] {
			at = child(at, part)
		}
		if last := i.Path[len(i.Path)-1]; i.Value.Kind == syntax.Table {
			child(at, last)
		} else {
			at[last] = plain(i.Value)
		}
	}
	return root
}

func child(at map[string]any, name string) map[string]any {
	below, ok := at[name].(map[string]any)
	if !ok {
		below = map[string]any{}
		at[name] = below
	}
	return below
}

func plain(v syntax.TOMLValue) any {
	switch v.Kind {
	case syntax.Number:
		n, _ := strconv.ParseFloat(v.Text, 64)
		return n
	case syntax.Bool:
		return v.Text == "true"
	case syntax.Array:
		list := []any{}
		for _, e := range v.List {
			list = append(list, plain(e))
		}
		return list
	case syntax.Table:
		return tree(v.Items)
	}
	return v.Text
}

// TestSchema: the schema takes what the reader takes, and refuses unknown keys and wrong kinds.
func TestSchema(t *testing.T) {
	text, err := json.Marshal(Schema())
	var schema map[string]any
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) string {
		items, err := syntax.ParseTOML([]byte(text))
		if err != nil {
			return err.Error()
		}
		return conforms(schema, tree(items), "")
	}
	for _, k := range Keys() {
		if k.Later != "" {
			if schemaOf(schema, k.Name) == nil {
				t.Errorf("%s is not in the schema", k.Name)
			}
			continue
		}
		value := samples[k.Name][0]
		if bad := check(k.Name + " = " + value); bad != "" {
			t.Error(bad)
		}
		at := func(table, name string) string {
			if name == "" {
				name = k.Name
			}
			return check(table + name + " = " + value)
		}
		said := at("profiles.x.", k.Profile)
		if slices.Contains(inProfiles, k.Name) != (said == "") {
			t.Errorf("%s in a profile: %s", k.Name, said)
		}
		said = at("project.", k.Project)
		if slices.Contains(inProjects, k.Name) != (said == "") {
			t.Errorf("%s in [project]: %s", k.Name, said)
		}
		if k.Type != Text && check(k.Name+" = 'no such word'") == "" && k.Type != Size && k.Type != Duration {
			t.Errorf("%s takes any string", k.Name)
		}
	}
	for text, ok := range map[string]bool{
		"approval = { rules = true }": true, "approval = { ruls = true }": false, "project.allow_rules = true": true, "limits.timeout = 1.5": true,
		"sandox = 'x'": false, "[profiles.x]\nextends = 'read-only'\ndescription = 'y'": true, "extends = 'x'": false, "limits = 3": false,
	} {
		if bad := check(text); (bad == "") != ok {
			t.Errorf("%s: %q", text, bad)
		}
		if _, err := readFile(map[bool]Layer{true: Project}[strings.HasPrefix(text, "project")], "f",
			[]byte(text), ""); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSchemaManaged: the schema takes the rules of managed files, as the reader does.
func TestSchemaManaged(t *testing.T) {
	text, err := json.Marshal(Schema())
	var schema map[string]any
	if err = errors.Join(err, json.Unmarshal(text, &schema)); err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"pattern = [{ token = 'git' }, { any_of = ['push', 'pull'] }], decision = 'prompt'":                    true,
		"pattern = [{ token = 'rm' }], decision = 'forbidden', justification = 'x', canonical_matching = true": true,
		"pattern = [{ token = 'rm', any_of = ['x'] }], decision = 'prompt'":                                    false,
		"pattern = [{}], decision = 'prompt'":                                                                  false,
		"pattern = ['rm'], decision = 'prompt'":                                                                false,
		"pattern = [{ token = 'rm' }], decision = 'prompt', sandbox = 'outside'":                               false,
	} {
		file := "[rules]\nprefix_rules = [{ " + text + " }]\n"
		items, err := syntax.ParseTOML([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if bad := conforms(schema, tree(items), ""); (bad == "") != ok {
			t.Errorf("%s: %q", text, bad)
		}
		if _, err := readFile(Managed, "f", []byte(file), ""); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// schemaOf returns the schema of a key with a dotted name, or nil.
func schemaOf(schema map[string]any, name string) any {
	for part := range strings.SplitSeq(name, ".") {
		properties, _ := schema["properties"].(map[string]any)
		if schema, _ = properties[part].(map[string]any); schema == nil {
			return nil
		}
	}
	return schema
}

// TestShow: what is shown is TOML that reads as the same settings.
func TestShow(t *testing.T) {
	p := newPlace(t)
	w := world{terminal: true,
		user: "sandbox = 'p'\nrules = []\napproval = { rules = true }\n[profiles.p]\nextends = 'read-only'\ndeny = ['a\"b']\nwrite = ['/usr']\nlimits = { cpus = 1.5, memory = '1GiB' }\n[environment.set]\n'A B' = 'x\\'"}
	e, err := w.resolve(t, p)
	if err != nil {
		t.Fatal(err)
	}
	text := e.Show(true).String()
	again, err := (&world{terminal: true, user: text + "[profiles.p]\nextends = 'read-only'\n"}).resolve(t, p)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, k := range Keys() {
		if said(e, k.Name) != said(again, k.Name) {
			t.Errorf("%s: %s, was %s", k.Name, said(again, k.Name), said(e, k.Name))
		}
	}
	if !strings.Contains(text, "# user, "+p.user+"/config.toml:6:9, profile p") {
		t.Errorf("no origin in\n%s", text)
	}
	for _, name := range []string{"limits.cpus", "p", "git", "--rw", "-s"} {
		if text, err := e.Explain(name); err != nil || text == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.Explain("limits.cpu"); err == nil ||
		!strings.Contains(err.Error(), `did you mean "limits.cpus"?`) {
		t.Error(err)
	}
}

// TestDocument: docs/configuration.md lists every key with its default and the help text's first
// words, and no other.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); ok && Find(name) != nil {
			rows[name] = rest
		}
	}
	for i, block := range strings.Split(string(text), "```toml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if _, err := readFile([]Layer{User, Managed}[i], "example", []byte(block), "/home/x"); err != nil {
			t.Error(err)
		}
	}
	for _, k := range Keys() {
		row, ok := rows[k.Name]
		if ok != (k.Later == "") {
			t.Errorf("%s: in the table %v, supported %v", k.Name, ok, k.Later == "")
		}
		if want := k.row(); ok && row != want {
			t.Errorf("%s: the row is\n%s\nwant\n%s", k.Name, row, want)
		}
	}
}

// row is the row of a key in the document, after its name.
func (k *Key) row() string {
	values := map[Type]string{Bool: "`true`, `false`", Size: "size", Duration: "duration", Count: "number",
		CPUs: "number", List: "list", Map: "table", Tables: "tables", Text: "text"}[k.Type]
	if k.Type == Word || k.Name == "sandbox" || k.Name == "tmp" {
		values = "`" + strings.Join(k.Words, "`, `") + "`"
	}
	if k.Name == "sandbox" {
		values += ", a profile"
	}
	if k.Name == "tmp" {
		values += ", a directory"
	}
	initial, narrow := k.Default, map[Order]string{None: "no", Words: "earlier", Smaller: "smaller",
		TrueFirst: "`true`", FalseFirst: "`false`", Narrows: "adds", Fixes: "no",
		Opens: "`[project]`"}[k.Order]
	if k.Order == Opens && k.Project == "" {
		narrow = "no"
	}
	if initial != "" {
		initial = "`" + initial + "`"
	}
	return fmt.Sprintf("%s | %s | %s |", values, initial, narrow)
}
