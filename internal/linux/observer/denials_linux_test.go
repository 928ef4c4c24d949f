// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func denied(path, errno string) sandbox.Denial {
	return sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: path}, Errno: errno}
}

func TestDenialsMerge(t *testing.T) {
	var d denials
	for _, n := range []sandbox.Denial{denied("/a", "EROFS"), denied("/b", "EXDEV"), denied("/a", "EROFS"),
		denied("/b", "EROFS"), denied("/b", "EXDEV")} {
		d.add(n)
	}
	if len(d.list) != 2 || d.omitted != 0 {
		t.Fatalf("%+v", d)
	}
	for i, want := range []sandbox.Denial{{Count: 2, Errno: "EROFS"}, {Count: 3, Errno: "EROFS"}} {
		got := d.list[i]
		if got.Count != want.Count || got.Errno != want.Errno || got.Source != sandbox.Notified ||
			got.Time.IsZero() {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// TestDenialsApart: what differs in operation or address is not one.
func TestDenialsApart(t *testing.T) {
	var d denials
	d.add(denied("/a", "EROFS"))
	read := denied("/a", "EACCES")
	read.Op = sandbox.Read
	d.add(read)
	for _, addr := range []string{"1.2.3.4:1", "1.2.3.4:2"} {
		d.add(sandbox.Denial{Access: sandbox.Access{Op: sandbox.Connect, Addr: addr}})
	}
	if len(d.list) != 4 {
		t.Errorf("%+v", d.list)
	}
}

func TestDenialsLimit(t *testing.T) {
	var d denials
	for i := range MaxDenials + 50 {
		d.add(denied(fmt.Sprintf("/%d", i), "EROFS"))
	}
	d.add(denied("/3", "EROFS")) // known ones are still counted
	if len(d.list) != MaxDenials || d.omitted != 50 || d.list[3].Count != 2 {
		t.Errorf("%d kept, %d omitted, %+v", len(d.list), d.omitted, d.list[3])
	}
}
