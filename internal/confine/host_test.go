// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestTry(t *testing.T) {
	var h Host
	defer h.Close()
	ws := t.TempDir()
	os.Mkdir(ws+"/.git", 0o755)
	sh := os.Getenv("TRY")
	if sh == "" {
		sh = "id; pwd; mount; ls -la /dev /tmp /run /sys; touch x && ls -la; touch .git/x; touch /etc/x; cat /proc/1/maps; ls -la /proc/self/fd; ip a; exit 3"
	}
	r := &Request{Args: []string{"sh", "-c", sh}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"},
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"})}
	p, err := h.Plan(r, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + p.Script.String())
	c, err := h.Start(context.Background(), r, os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(c.Wait())
	t.Log(c.WaitAll())
}
