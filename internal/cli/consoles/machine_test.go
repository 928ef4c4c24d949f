// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestMachineWaits: settings, rules and recordings that change come to a page that waits for them.
func TestMachineWaits(t *testing.T) {
	testenv.NeedInotify(t)
	env := testEnv(t)
	env.Upstream = func(context.Context) explain.Check { return explain.Check{} }
	config := filepath.Join(env.Dir, ".config", "sallyport") // of the home directory
	env.Dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(config, "rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := &history{env: env}
	end, err := h.follow()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	m := &machine{env, &h.changes, watcher(t).watch}
	write := func(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }
	set := func(p machinePage, key string) any {
		for _, s := range p.Settings {
			if s.Key == key {
				return s.Value
			}
		}
		return nil
	}
	recording := ""
	for _, test := range []struct {
		name   string
		method func(context.Context, json.RawMessage) (any, error)
		change func() error
		want   func(machinePage) bool
	}{
		{"settings", m.read, func() error {
			return write(filepath.Join(config, "config.toml"), "level = 'native'\n")
		}, func(p machinePage) bool { return set(p, "level") == "native" }},
		{"the ceiling", m.read, func() error {
			return write(filepath.Join(env.Managed, "managed.toml"), "audit.sync = true\n")
		}, func(p machinePage) bool { return set(p, "audit.sync") == true }},
		{"a rule", m.read, func() error {
			return write(filepath.Join(config, "rules", "a.rules"), "allow make\n")
		}, func(p machinePage) bool { return len(p.Rules) == 1 && p.Rules[0].Text != "" }},
		{"a recording", m.recordings, func() error {
			f, err := m.store().Create()
			if err != nil {
				return err
			}
			recording = filepath.Base(f.Name())
			_, err = f.WriteString("{\"version\":3,\"term\":{\"cols\":80,\"rows\":24}}\n")
			return errors.Join(err, f.Close())
		}, func(p machinePage) bool { return len(p.Recordings) == 1 && p.Recordings[0].Bytes > 0 }},
		{"no recording", m.recordings, func() error { return m.store().Remove(recording) },
			func(p machinePage) bool { return len(p.Recordings) == 0 }},
	} {
		t.Run(test.name, func(t *testing.T) { tells(t, test.method, test.change, test.want) })
	}
}

// A machinePage is what a method says of the machine.
type machinePage struct {
	Settings   []struct{ Key, Value any }
	Rules      []shownRules
	Recordings []shownRecording
	Version    string
}

// tells waits until a method that is waited for has told a change.
func tells(t *testing.T, method func(context.Context, json.RawMessage) (any, error), change func() error,
	want func(machinePage) bool) {
	t.Helper()
	list := func(since string, wait int) (p machinePage) {
		params := fmt.Sprintf(`{"since":%q,"waitMs":%d}`, since, wait)
		call(t, func() (any, error) { return method(t.Context(), json.RawMessage(params)) }, &p)
		return p
	}
	p := list("", 0)
	if again := list(p.Version, 1); again.Version != p.Version || want(again) {
		t.Fatalf("before: %+v", again)
	}
	told := make(chan machinePage)
	go func() {
		for p := p; ; {
			if p = list(p.Version, 600_000); want(p) {
				told <- p
				return
			}
		}
	}()
	if err := change(); err != nil {
		t.Fatal(err)
	}
	<-told
}
