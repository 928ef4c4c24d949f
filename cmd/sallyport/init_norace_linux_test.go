// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// inits are the packages that do much before main, with a reason why that is borne. Every start of sallyport
// pays for each, whatever it does then.
var inits = map[string]string{
	"unicode": "every program", "compress/flate": "net/http", "encoding/xml": "files that hide a token",
	"net/http": "the proxy and the exec-server", "vendor/golang.org/x/net/http2/hpack": "net/http",
	"mime":                     "net/http",
	"mvdan.cc/sh/v3/fileutil":  "the parser of scripts",
	"go.starlark.net/starlark": "rules",
	// Of MCP, and of nothing else: decision 0147.
	"encoding/gob": "the SDK", "github.com/google/jsonschema-go/jsonschema": "the SDK",
	"github.com/modelcontextprotocol/go-sdk/mcp": "the SDK",
	// Of the fleet, and of nothing else: decision 0157.
	"github.com/klauspost/compress/flate": "NATS", "github.com/klauspost/compress/s2": "NATS",
	"github.com/nats-io/nkeys": "NATS", "github.com/nats-io/jwt/v2": "NATS", "github.com/nats-io/nats%2ego": "NATS",
	"github.com/nats-io/nats.go/jetstream": "NATS", "net/http/pprof": "NATS",
	"github.com/nats-io/nats-server/v2/server": "NATS",
	// Of this test binary only.
	"github.com/rogpeppe/go-internal/imports": "tests", "github.com/rogpeppe/go-internal/testscript": "tests",
	"github.com/google/go-cmp/cmp": "tests", "github.com/google/go-cmp/cmp/internal/diff": "tests",
	"github.com/google/go-cmp/cmp/internal/function":        "tests",
	"github.com/sallyport-dev/sallyport/cmd/sallyport":      "tests",
	"github.com/sallyport-dev/sallyport/cmd/sallyport.test": "tests",
}

// TestInits: a package that does much before main is one that somebody has decided on. What is counted is
// memory, for that is the same at each start. The race detector counts as well.
func TestInits(t *testing.T) {
	const mostBytes, mostAllocations = 4000, 100
	cmd := exec.Command("sallyport", "version")
	cmd.Env = append(testenv.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, (\d+) allocs$`)
	found := line.FindAllStringSubmatch(trace.String(), -1)
	if len(found) == 0 {
		t.Fatalf("no trace: %q", trace.String())
	}
	for _, m := range found {
		bytes, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		allocations, err := strconv.Atoi(m[3])
		if err != nil {
			t.Fatal(err)
		}
		if inits[m[1]] == "" && (bytes > mostBytes || allocations > mostAllocations) {
			t.Errorf("%s takes %d bytes in %d parts before main; do that at its first use (sync.OnceValue), "+
				"or drop the package", m[1], bytes, allocations)
		}
	}
}
