// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const deployDir = "../../deploy/"

// checkLine parses the words of a command line after the program's name, as the command itself does.
func checkLine(words []string) error {
	c := subcommand(words)
	if c == nil {
		return errors.New("no such subcommand")
	}
	rest, after, err := syntax.ParseFlagsAround(c.allFlags(new(options)), words[2:])
	if err == nil && len(rest)+len(after) > c.words {
		err = errors.New("too many words")
	}
	return err
}

// documents returns those of a YAML file. A key that is there twice is an error.
func documents(t *testing.T, name string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(deployDir + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var one map[string]any
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
}

// at returns what is at a path of keys and indexes; nil if it is not there.
func at(v any, path ...any) any {
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			l, _ := v.([]any)
			if key >= len(l) {
				return nil
			}
			v = l[key]
		}
	}
	return v
}

// list returns a list of texts.
func list(v any) []string {
	var all []string
	items, _ := v.([]any)
	for _, i := range items {
		s, _ := i.(string)
		all = append(all, s)
	}
	return all
}

// fleetLine is a line that runs sallyport fleet: of a unit, a comment, a script or an example.
var fleetLine = regexp.MustCompile(
	`(?m)^(?:#\t|\$ |ExecStart=/usr/local/bin/|.*\|\| |sudo -u .* )?sallyport (fleet [^|>&#\n]*)`)

// TestDeployedLines: every command line of sallyport fleet in the files for deployment and on the page about
// the fleet has flags that exist.
func TestDeployedLines(t *testing.T) {
	files, err := filepath.Glob(deployDir + "sallyport-fleet-*.service")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	more, err := filepath.Glob(deployDir + "kubernetes/*.yaml")
	if err != nil || len(more) != 3 {
		t.Fatal(more, err)
	}
	found := map[string]int{}
	for _, name := range append(append(files, more...), deployDir+"compose.yaml", "../../docs/fleet.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fleetLine.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(m[1])
			found[words[1]]++
			if err := checkLine(words); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(name), m[1], err)
			}
		}
	}
	for _, verb := range []string{"hub", "add-tenant", "add-node", "node", "gateway"} {
		if found[verb] == 0 {
			t.Errorf("no line of fleet %s", verb)
		}
	}
}

// TestCompose: the services are commands of the image that exist, who runs commands has what a sandbox needs,
// and no other one has; only the gateway is reached, from this machine.
func TestCompose(t *testing.T) {
	all := documents(t, "compose.yaml")
	services, _ := at(all[0], "services").(map[string]any)
	if len(all) != 1 || len(services) != 5 {
		t.Fatalf("%d documents, %d services", len(all), len(services))
	}
	for name, s := range services {
		if at(s, "image") != "sallyport" || !slices.Equal(list(at(s, "cap_drop")), []string{"ALL"}) {
			t.Errorf("%s: image %v, cap_drop %v", name, at(s, "image"), at(s, "cap_drop"))
		}
		security := list(at(s, "security_opt"))
		if slices.Contains(security, "seccomp=unconfined") != strings.HasPrefix(name, "node") ||
			!slices.Contains(security, "no-new-privileges:true") {
			t.Errorf("%s: %q", name, security)
		}
		if ports := list(at(s, "ports")); (len(ports) > 0) != (name == "gateway") ||
			len(ports) > 0 && !strings.HasPrefix(ports[0], "127.0.0.1:") {
			t.Errorf("%s: ports %q", name, ports)
		}
		if words := list(at(s, "command")); name != "setup" {
			if err := checkLine(words); err != nil {
				t.Errorf("%s: %q: %v", name, words, err)
			}
		}
		if strings.HasPrefix(name, "node") && (at(s, "volumes", 0, "read_only") != true ||
			at(s, "volumes", 0, "volume", "subpath") != "fleet/creds") {
			t.Errorf("%s sees the keys: %v", name, at(s, "volumes"))
		}
	}
}

// TestKubernetes: the objects belong together, the containers run commands that exist, no pod runs as root or
// has a token of the cluster, and secrets are for the group of the pod, as the commands accept them.
func TestKubernetes(t *testing.T) {
	for _, test := range []struct {
		file, kind, sandbox string
		kinds               []string
	}{
		{"kubernetes/nodes.yaml", "StatefulSet", "Unconfined", []string{"StatefulSet", "Service"}},
		{"kubernetes/gateway.yaml", "Deployment", "",
			[]string{"Deployment", "Service", "PodDisruptionBudget"}},
	} {
		t.Run(test.kind, func(t *testing.T) {
			all := documents(t, test.file)
			var kinds []string
			for _, d := range all {
				kind, _ := at(d, "kind").(string)
				kinds = append(kinds, kind)
				if at(d, "metadata", "namespace") != "sallyport" || at(d, "apiVersion") == nil {
					t.Errorf("%s: %v", kind, at(d, "metadata"))
				}
			}
			if !slices.Equal(kinds, test.kinds) {
				t.Fatalf("%q", kinds)
			}
			labels := at(all[0], "spec", "template", "metadata", "labels", "app")
			if labels == nil || at(all[0], "spec", "selector", "matchLabels", "app") != labels ||
				at(all[1], "spec", "selector", "app") != labels {
				t.Errorf("the selectors do not select %v", labels)
			}
			pod := at(all[0], "spec", "template", "spec")
			container := at(pod, "containers", 0)
			if err := checkLine(list(at(container, "args"))); err != nil {
				t.Errorf("%q: %v", at(container, "args"), err)
			}
			for path, want := range map[[2]string]any{
				{"securityContext", "runAsNonRoot"}: true, {"securityContext", "fsGroup"}: 1000,
			} {
				if got := at(pod, path[0], path[1]); got != want {
					t.Errorf("%v is %v, want %v", path, got, want)
				}
			}
			security := at(container, "securityContext")
			if at(pod, "automountServiceAccountToken") != false ||
				at(security, "allowPrivilegeEscalation") != false ||
				!slices.Equal(list(at(security, "capabilities", "drop")), []string{"ALL"}) {
				t.Errorf("the container may too much: %v", security)
			}
			if got, _ := at(security, "seccompProfile", "type").(string); got != test.sandbox {
				t.Errorf("seccomp %q, want %q", got, test.sandbox)
			}
			if test.sandbox != "" && (at(container, "securityContext", "procMount") != "Unmasked" ||
				at(pod, "hostUsers") != false) {
				t.Error("no sandbox is available in it")
			}
			if at(container, "startupProbe") == nil && at(container, "readinessProbe") == nil {
				t.Error("no probe")
			}
			mode, _ := at(pod, "volumes", 0, "secret", "defaultMode").(int)
			creds := filepath.Join(t.TempDir(), "creds")
			err := errors.Join(os.WriteFile(creds, nil, 0o600), os.Chmod(creds, os.FileMode(mode)))
			if err != nil {
				t.Fatal(err)
			}
			if err := bus.CheckCreds(creds); err != nil || mode != 0o440 {
				t.Errorf("secrets have mode %04o: %v", mode, err)
			}
		})
	}
	values := documents(t, "kubernetes/nats-values.yaml")
	config := at(values[0], "config")
	if at(config, "jetstream", "enabled") != true || at(config, "merge", "resolver") != "MEMORY" ||
		at(config, "merge", "max_payload") != "1MB" {
		t.Errorf("%v", values)
	}
}
