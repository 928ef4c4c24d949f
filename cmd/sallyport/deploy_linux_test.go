// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// deployed returns the text of a file of deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// settings returns the settings of a unit file, as "Section.Name", each with its values.
func settings(t *testing.T, name string) map[string][]string {
	t.Helper()
	found, section := map[string][]string{}, ""
	for line := range strings.Lines(deployed(t, name)) {
		line = strings.TrimSpace(line)
		key, value, assigned := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		case assigned && section != "" && key != "" && !strings.ContainsAny(key, " \t"):
			found[section+"."+key] = append(found[section+"."+key], value)
		default:
			t.Errorf("%s: %q is no line of a unit", name, line)
		}
	}
	return found
}

// TestUnits: the units are those of one service, its program knows the flags, and no directive
// takes away what a sandbox needs.
func TestUnits(t *testing.T) {
	t.Parallel()
	service, socket := settings(t, "sallyport-exec-server.service"),
		settings(t, "sallyport-exec-server.socket")
	for key, want := range map[string]string{
		"Service.Delegate": "yes", "Service.KillMode": "mixed", "Service.NoNewPrivileges": "yes", "Service.CapabilityBoundingSet": "",
		"Service.User": "sallyport", "Unit.Requires": "sallyport-exec-server.socket", "Install.Also": "sallyport-exec-server.socket",
	} {
		if got := service[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, name := range breaksSandboxes {
		if got, ok := service["Service."+name]; ok {
			t.Errorf("%s=%q breaks sandboxes", name, got)
		}
	}
	for key, want := range map[string]string{"Socket.SocketMode": "0600", "Socket.SocketUser": "sallyport",
		"Install.WantedBy": "sockets.target"} {
		if got := socket[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := socket["Socket.ListenStream"]; len(got) != 1 || !filepath.IsAbs(got[0]) {
		t.Errorf("ListenStream is %q, want one path", got)
	}
	words := strings.Fields(service["Service.ExecStart"][0])
	if words[0] != "/usr/local/bin/sallyport" {
		t.Errorf("ExecStart begins with %s", words[0])
	}
	text, err := newSeat(t).command(t, append([]string{"sallyport"}, words[1:]...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(text), "no socket was passed to this process") {
		t.Errorf("%s, %v", text, err)
	}
}

// breaksSandboxes are directives that take away what a sandbox needs.
var breaksSandboxes = []string{
	"RestrictNamespaces", "PrivateUsers", "SystemCallFilter", "ProtectKernelTunables", "ProtectKernelLogs",
	"ProtectProc", "ProcSubset", "ProtectControlGroups", "MemoryDenyWriteExecute", "RestrictAddressFamilies",
}

// TestFleetUnits: each part of a fleet has a user of its own, gets secrets by LoadCredential alone, and what
// runs no commands has no rights to run them; the node has what a sandbox needs.
func TestFleetUnits(t *testing.T) {
	t.Parallel()
	users := map[string]bool{}
	for _, part := range []string{"hub", "node", "gateway"} {
		s := settings(t, "sallyport-fleet-"+part+".service")
		for key, want := range map[string]string{"Service.Type": "exec", "Service.NoNewPrivileges": "yes",
			"Service.CapabilityBoundingSet": "", "Service.ProtectSystem": "strict", "Service.UMask": "0077",
			"Service.StateDirectoryMode": "0700", "Service.Restart": "on-failure",
			"Install.WantedBy": "multi-user.target"} {
			if got := s[key]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s is %q, want %q", part, key, got, want)
			}
		}
		for _, name := range breaksSandboxes {
			_, has := s["Service."+name]
			// The hub and the gateway have most of them.
			if part == "node" && has || part != "node" && !has && slices.Contains([]string{"RestrictNamespaces",
				"SystemCallFilter", "MemoryDenyWriteExecute"}, name) {
				t.Errorf("%s: %s=%q", part, name, s["Service."+name])
			}
		}
		users[strings.Join(s["Service.User"], " ")] = true
		state := strings.Join(s["Service.StateDirectory"], " ")
		if !slices.Contains(s["Service.Environment"], "HOME=/var/lib/"+state) {
			t.Errorf("%s: the home is not its state directory: %q", part, s["Service.Environment"])
		}
		line := strings.Join(s["Service.ExecStart"], "\n")
		if !strings.HasPrefix(line, "/usr/local/bin/sallyport fleet "+part+" ") {
			t.Errorf("ExecStart is %q", line)
		}
		for _, file := range regexp.MustCompile(`--(?:creds|ws-token-file) (\S+)`).FindAllStringSubmatch(line, -1) {
			loaded := slices.ContainsFunc(s["Service.LoadCredential"], func(c string) bool {
				id, path, _ := strings.Cut(c, ":")
				return file[1] == "%d/"+id && filepath.IsAbs(path)
			})
			if !loaded {
				t.Errorf("%s: %s is no credential of %q", part, file[1], s["Service.LoadCredential"])
			}
		}
	}
	if len(users) != 3 || users[""] {
		t.Errorf("users %v, want three", users)
	}
}

// TestUnitsVerified: systemd itself, where it is installed, finds no error in the units.
func TestUnitsVerified(t *testing.T) {
	t.Parallel()
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("without systemd only TestUnits looks at the units")
		return
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"sallyport-exec-server.service", "sallyport-exec-server.socket",
		"sallyport-fleet-hub.service", "sallyport-fleet-node.service", "sallyport-fleet-gateway.service"} {
		units = append(units, filepath.Join(dir, name))
		text := strings.ReplaceAll(deployed(t, name), "/usr/local/bin/sallyport", "/bin/sh") // that exists
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := exec.Command(verify, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "sallyport-") { // others are about this machine
			t.Errorf("%s", line)
		}
	}
	if err != nil {
		t.Logf("%s: %v", text, err)
	}
}

// TestDockerfile: the image is built as CI builds, by the Go of go.mod, and its command is one of
// the program.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := deployed(t, "Dockerfile")
	ci, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	build := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0) (go build) .*\./cmd/sallyport$`).FindStringSubmatch(text)
	if build == nil || !regexp.MustCompile(build[1]+` .*`+build[2]).Match(ci) {
		t.Errorf("the build is %q, unlike that of .ci/run", build)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var image, needed [2]int
	parse := func(pattern, text string, to *[2]int) {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s", pattern)
		}
		for i := range to {
			if err := json.Unmarshal([]byte(m[i+1]), &to[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	parse(`(?m)^FROM golang:(\d+)\.(\d+)`, text, &image)
	parse(`(?m)^go (\d+)\.(\d+)`, string(module), &needed)
	if slices.Compare(image[:], needed[:]) < 0 {
		t.Errorf("the image has Go %d, go.mod needs %d", image, needed)
	}
	if !strings.Contains(text, "\nUSER sallyport\n") {
		t.Error("the image runs as root")
	}
	var words []string
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if list, ok := strings.CutPrefix(lines.Text(), "CMD "); ok {
			if err := json.Unmarshal([]byte(list), &words); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := newSeat(t).command(t, append([]string{"sallyport"}, words...)...)
	cmd.Stdin = strings.NewReader(`{"id":1,"method":"initialize","params":{"clientName":"t"}}` + "\n")
	answer, err := cmd.Output()
	if err != nil || !strings.Contains(string(answer), `"sessionId"`) {
		t.Errorf("%s, %v", answer, err)
	}
}

// TestImage: the archive is one that docker load reads, its user is not root, and its command is the program.
func TestImage(t *testing.T) {
	t.Parallel()
	testenv.Long(t) // it links the program anew
	testenv.NeedProgram(t, "bash")
	name := filepath.Join(t.TempDir(), "image.tar")
	cmd := exec.CommandContext(t.Context(), "bash", "../../deploy/image", name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image := map[string][]byte{}
	for archive := tar.NewReader(f); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if image[strings.TrimPrefix(header.Name, "./")], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
	var manifest []struct {
		Config string
		Layers []string
	}
	var config struct {
		Config struct {
			User       string
			Entrypoint []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := errors.Join(json.Unmarshal(image["manifest.json"], &manifest),
		json.Unmarshal(image["config.json"], &config)); err != nil || len(manifest) != 1 {
		t.Fatalf("%v %s", err, image["manifest.json"])
	}
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(image[manifest[0].Layers[0]]))
	if config.Config.User != "1000:1000" || config.RootFS.DiffIDs[0] != sum ||
		!slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/sallyport"}) {
		t.Errorf("%s, the layer is %s", image["config.json"], sum)
	}
}
