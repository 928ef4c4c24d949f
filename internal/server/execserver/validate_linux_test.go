// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A checker validates values by the part of JSON Schema that the generator uses.
type checker struct{ root map[string]any }

// def returns a definition by its name in a reference.
func (c checker) def(name string) schema {
	return as[schema](as[schema](c.root["$defs"])[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)])
}

// as returns a value as a T; the zero T when it is another type.
func as[T any](v any) (t T) {
	t, _ = v.(T)
	return t
}

// check returns why a value is not as the schema says; nil when it is. Numbers are json.Number.
func (c checker) check(s map[string]any, v any, at string) error {
	for key, want := range s {
		if err := c.keyword(s, key, want, v, at); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) keyword(s map[string]any, key string, want, v any, at string) error {
	text, isText := v.(string)
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	switch key {
	case "$schema", "$defs", "title", "description", "examples":
	case "$ref":
		name := strings.TrimPrefix(as[string](want), "#/$defs/")
		return c.check(c.def(name), v, at)
	case "type":
		if got := typeOf(v); got != want && !(got == "integer" && want == "number") {
			return fmt.Errorf("%s is %s, want %s", at, got, want)
		}
	case "const":
		if !reflect.DeepEqual(v, want) {
			return fmt.Errorf("%s is %v, want %v", at, v, want)
		}
	case "enum":
		if !slices.Contains(as[[]any](want), v) {
			return fmt.Errorf("%s is %v, want one of %v", at, v, want)
		}
	case "format":
		if _, err := time.Parse(time.RFC3339, text); isText && err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	case "contentEncoding":
		if _, err := base64.StdEncoding.DecodeString(text); isText && err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	case "minLength", "minItems", "minimum", "maximum":
		return limit(key, want, v, at)
	case "required":
		for _, name := range as[[]any](want) {
			if _, ok := object[as[string](name)]; isObject && !ok {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
	case "properties":
		for name, property := range as[schema](want) {
			if member, ok := object[name]; isObject && ok {
				if err := c.check(as[schema](property), member, at+"."+name); err != nil {
					return err
				}
			}
		}
	case "additionalProperties":
		for name, member := range object {
			if err := c.check(as[schema](want), member, at+"."+name); err != nil && s["properties"] == nil {
				return err
			}
		}
	case "items":
		for i, item := range list {
			if err := c.check(as[schema](want), item, fmt.Sprint(at, "[", i, "]")); isList && err != nil {
				return err
			}
		}
	case "anyOf":
		var last error
		for _, one := range as[[]any](want) {
			if last = c.check(as[schema](one), v, at); last == nil {
				return nil
			}
		}
		return fmt.Errorf("%s is none of %d: %w", at, len(as[[]any](want)), last)
	default:
		return fmt.Errorf("keyword %s", key)
	}
	return nil
}

// limit checks a bound.
func limit(key string, want, v any, at string) error {
	var got string
	switch v := v.(type) {
	case json.Number:
		got = string(v)
	case string:
		got = fmt.Sprint(len(v))
	case []any:
		got = fmt.Sprint(len(v))
	}
	have, ok := new(big.Int).SetString(got, 10)
	bound, _ := new(big.Int).SetString(string(as[json.Number](want)), 10)
	if ok && (key == "maximum" && have.Cmp(bound) > 0 || key != "maximum" && have.Cmp(bound) < 0) {
		return fmt.Errorf("%s is %s, %s is %s", at, got, key, bound)
	}
	return nil
}

// typeOf returns the type of a value in words of JSON Schema.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case json.Number:
		if _, ok := new(big.Int).SetString(string(v), 10); ok {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// parse decodes JSON for a checker.
func parse(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// loadSchema returns the checker of the schema in docs, and its definitions.
func loadSchema(t *testing.T) (checker, map[string]any) {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	root := as[schema](parse(t, text))
	return checker{root}, as[schema](root["$defs"])
}

// sample returns a value that a schema allows.
func (c checker) sample(s map[string]any) any {
	switch {
	case s["$ref"] != nil:
		name := strings.TrimPrefix(as[string](s["$ref"]), "#/$defs/")
		return c.sample(c.def(name))
	case s["anyOf"] != nil:
		return c.sample(as[schema](as[[]any](s["anyOf"])[0]))
	case s["enum"] != nil:
		return as[[]any](s["enum"])[0]
	case s["examples"] != nil:
		return as[[]any](s["examples"])[0]
	case s["contentEncoding"] != nil:
		return "aGk="
	}
	switch s["type"] {
	case "string":
		return "x"
	case "integer", "number":
		return json.Number("1")
	case "boolean":
		return true
	case "array":
		return []any{c.sample(as[schema](s["items"]))}
	}
	o := map[string]any{}
	if properties, ok := s["properties"].(map[string]any); ok {
		for name, property := range properties {
			o[name] = c.sample(as[schema](property))
		}
	}
	return o
}

// TestSchemaIsServed: the server decodes what the schema allows, needs what it requires, and takes
// null and no other type where it says so.
func TestSchemaIsServed(t *testing.T) {
	c, defs := loadSchema(t)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			known, ok := methods()[name]
			if !ok {
				known, ok = runMethods()[name]
			}
			if !ok {
				known, ok = questionMethods()[name]
			}
			if !ok {
				known, ok = stageMethods()[name]
			}
			if !ok {
				known, _ = fileMethod(name)
			}
			decodes := func(params any) error {
				text, err := json.Marshal(params)
				if err != nil {
					t.Fatal(err)
				}
				_, err = known.decode(text)
				return err
			}
			s := as[schema](defs[name+" params"])
			if s["anyOf"] != nil {
				s = as[schema](as[[]any](s["anyOf"])[0])
			}
			full := as[schema](c.sample(s))
			switch name {
			case "initialize":
				delete(full, "observeSessionId") // not beside resumeSessionId
			case "process/start":
				hosts := map[string]any{"a.example": "allow"}
				full["networkProxy"] = map[string]any{"proxy": map[string]any{"enabled": true,
					"mode": "limited", "domains": hosts}}
			case "process/signal":
				full["signal"] = "SIGTERM"
			}
			if err := decodes(full); err != nil {
				t.Errorf("%v: %v", full, err)
			}
			needed, _ := s["required"].([]any)
			properties, _ := s["properties"].(map[string]any)
			for member, property := range properties {
				with := func(v any, there bool) error {
					changed := maps.Clone(full)
					delete(changed, member)
					if there {
						changed[member] = v
					}
					return decodes(changed)
				}
				required := slices.Contains(needed, any(member))
				if err := with(nil, false); (err != nil) != required {
					t.Errorf("without %s: %v, required is %v", member, err, required)
				}
				for _, v := range []any{nil, "", "x", json.Number("-1"), json.Number("1.5"),
					json.Number("18446744073709551616"), true, []any{}, []any{json.Number("1")},
					map[string]any{}} {
					allowed := c.check(as[schema](property), v, member)
					err := with(v, true)
					if name == "fs/writeFile" && member == "dataBase64" && v == "x" {
						continue // what is no base64 is refused later, as the reference does
					}
					if allowed != nil && err == nil && (v != nil || required) &&
						len(as[schema](property)) > 0 {
						t.Errorf("%s = %v is decoded, but the schema says: %v", member, v, allowed)
					}
					if v == nil && allowed == nil && err != nil && len(as[schema](property)) > 0 {
						t.Errorf("%s = null: %v", member, err)
					}
				}
			}
		})
	}
}

// TestSchemaOfRecords: every recorded message that was not meant to be wrong is as the schema says.
func TestSchemaOfRecords(t *testing.T) {
	c, defs := loadSchema(t)
	files, err := filepath.Glob("testdata/scenarios/*.jsonl")
	more, err2 := filepath.Glob("testdata/client/*.jsonl")
	if files = append(files, more...); err != nil || err2 != nil || len(files) < 50 {
		t.Fatalf("%d files, %v, %v", len(files), err, err2)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range recorded(t, text) {
				if err := c.check(c.root, m.message, "message"); err != nil {
					t.Errorf("%v: %v", m.message, err)
				}
				if m.result == nil {
					continue
				}
				if s, ok := defs[m.method+" result"].(map[string]any); ok {
					if err := c.check(s, m.result, m.method+" result"); err != nil {
						t.Errorf("%v: %v", m.result, err)
					}
				}
			}
		})
	}
}

// A record is a recorded message; a result has its method.
type record struct {
	message map[string]any
	method  string
	result  any
}

// isMeant reports whether an error is about parameters, or a method that the reference lacks.
func isMeant(failure map[string]any) bool {
	text, _ := failure["message"].(string)
	return failure["code"] == json.Number("-32602") || failure["code"] == json.Number("-32601") ||
		strings.Contains(text, "base64")
}

// recorded returns the messages of a record, without requests that were answered with an error
// about their parameters, or are about methods that are not served.
func recorded(t *testing.T, text []byte) (list []record) {
	t.Helper()
	asked := map[string]*record{} // by connection and ID
	var all []*record
	for line := range bytes.Lines(text) {
		line := as[schema](parse(t, line))
		message, ok := line["msg"].(map[string]any)
		if !ok {
			continue
		}
		r := &record{message: message}
		method, _ := message["method"].(string)
		key := fmt.Sprint(line["conn"], message["id"])
		request := asked[key]
		switch failure, failed := message["error"].(map[string]any); {
		case line["dir"] == "c2s" && message["id"] != nil:
			asked[key] = r
			r.method = method
			if _, served := calls[method]; !served {
				r.message = nil
			}
		case method != "":
		case failed && request != nil && isMeant(failure):
			request.message = nil
		case request != nil:
			r.method, r.result = request.method, message["result"]
		}
		if line["dir"] == "c2s" && message["id"] == nil && notices[method] == nil {
			continue // a notification that ends the connection
		}
		all = append(all, r)
	}
	for _, r := range all {
		if r.message != nil {
			list = append(list, *r)
		}
	}
	return list
}
