// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/recording"
)

func TestCommand(t *testing.T) {
	shared, own := recording.New(recording.Options{}), recording.New(recording.Options{})
	tools := &Tools{
		Record: func() event.Recorder { return own },
		Cmd: sallyport.Cmd{
			Dir: "/w", Args: []string{"not this"}, Timeout: time.Second, Signals: make(chan int),
			Allow: []string{"unix"}, Record: shared,
			Stdout: os.Stdout, Stderr: os.Stderr, Stdin: os.Stdin, OpenStdin: true,
			Retention: sallyport.Retention{Lines: 1},
		},
		Size: sallyport.Size{Cols: 100, Rows: 30},
	}
	c, err := tools.command(&Request{
		Command: "x", Dir: "sub", Shell: "bash", TTY: true, Permissions: RequireEscalated,
		Justification: "why", Yield: MinYield,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Script != "x" || c.Args != nil || c.Dir != "/w/sub" || c.Shell != "bash" || c.Login ||
		c.Timeout != 0 || c.Signals != nil ||
		!c.Unsandboxed || c.Justification != "why" || c.TTY == nil || *c.TTY != tools.Size ||
		c.Record != event.Recorder(own) ||
		!slices.Equal(c.Allow, []string{"unix"}) {
		t.Errorf("got %+v", c)
	}
	if c.Stdin != nil || c.Stdout != nil || c.Stderr != nil || c.OpenStdin ||
		c.Retention != (sallyport.Retention{}) {
		t.Errorf("got %+v", c)
	}
	c, err = tools.command(&Request{Command: "y", Permissions: UseDefault, Stdin: StdinPipe})
	if err != nil || c.TTY != nil || c.Record != nil || c.Unsandboxed || c.Dir != "/w" || !c.OpenStdin {
		t.Errorf("got %+v, %v", c, err)
	}
}
