// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestKnown(t *testing.T) {
	for name, want := range map[string]bool{
		"ssh-agent": true, "gpg-agent": true, "gpu": true, "docker": true, "git": false, "": false,
		"loopback:1": true, "loopback:65535": true, "loopback:65536": false, "loopback:0": false, "loopback:": false,
		"loopback:080": false, "loopback:+80": false, "loopback:PORT": false, "loopback": false,
	} {
		if got := KnownService(name); got != want {
			t.Errorf("Known(%q) = %v", name, got)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want []ServicePlace
	}{
		{"nothing set", nil, []ServicePlace{{GPGAgent, "/run/user/7/gnupg/S.gpg-agent"}, {Docker, "/var/run/docker.sock"}}},
		{
			"all set", []string{"SSH_AUTH_SOCK=/old", "SSH_AUTH_SOCK=/tmp//a/", "GNUPGHOME=/g", "HOME=/h",
				"DOCKER_HOST=unix:///d/s"},
			[]ServicePlace{{SSHAgent, "/tmp/a"}, {GPGAgent, "/g/S.gpg-agent"}, {Docker, "/d/s"}},
		},
		{"a home", []string{"HOME=/h", "DOCKER_HOST=ssh://host"}, []ServicePlace{{GPGAgent, "/run/user/7/gnupg/S.gpg-agent"}, {GPGAgent, "/h/.gnupg/S.gpg-agent"}}},
		{"relative", []string{"SSH_AUTH_SOCK=a", "GNUPGHOME=g", "DOCKER_HOST=unix://d"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ServicePlaces(tt.env, 7); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzPlaces: whatever variables hold, places are absolute and clean.
func FuzzPlaces(f *testing.F) {
	f.Add("/tmp/a", "unix:///x/../y")
	f.Add("", "unix://")
	f.Fuzz(func(t *testing.T, agent, docker string) {
		for _, p := range ServicePlaces([]string{"SSH_AUTH_SOCK=" + agent, "DOCKER_HOST=" + docker, "HOME=" +
			docker, "GNUPGHOME=" + agent}, 0) {
			if !filepath.IsAbs(p.Path) || filepath.Clean(p.Path) != p.Path {
				t.Errorf("%q", p.Path)
			}
		}
	})
}

func TestCheckNetwork(t *testing.T) {
	for _, tt := range []struct {
		name    string
		names   []string
		network sandbox.Network
		refused bool
	}{
		{"no port", []string{"docker"}, sandbox.NetworkNone, false},
		{"no network", []string{"docker", "loopback:80"}, sandbox.NetworkNone, true},
		{"a managed network", []string{"loopback:80"}, sandbox.NetworkProxy, true},
		{"the host's", []string{"loopback:80"}, sandbox.NetworkHost, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var no *sandbox.UnsupportedError
			if err := checkNetwork(tt.names, tt.network); errors.As(err, &no) != tt.refused || tt.refused &&
				no.Hint == "" {
				t.Errorf("%v", err)
			}
		})
	}
}
