// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func denied(path, errno string) sandbox.Denial {
	return sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: path}, Errno: errno}
}

func TestDenialsMerge(t *testing.T) {
	var d Denials
	for _, n := range []sandbox.Denial{denied("/a", "EROFS"), denied("/b", "EXDEV"), denied("/a", "EROFS"),
		denied("/b", "EROFS"), denied("/b", "EXDEV")} {
		d.Add(n)
	}
	if len(d.List) != 2 || d.Omitted != 0 {
		t.Fatalf("%+v", d)
	}
	for i, want := range []sandbox.Denial{{Count: 2, Errno: "EROFS"}, {Count: 3, Errno: "EROFS"}} {
		got := d.List[i]
		if got.Count != want.Count || got.Errno != want.Errno || got.Source != sandbox.Notified ||
			got.Time.IsZero() {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// TestDenialsApart: what differs in operation or address is not one.
func TestDenialsApart(t *testing.T) {
	var d Denials
	d.Add(denied("/a", "EROFS"))
	read := denied("/a", "EACCES")
	read.Op = sandbox.Read
	d.Add(read)
	for _, addr := range []string{"1.2.3.4:1", "1.2.3.4:2"} {
		d.Add(sandbox.Denial{Access: sandbox.Access{Op: sandbox.Connect, Addr: addr}})
	}
	if len(d.List) != 4 {
		t.Errorf("%+v", d.List)
	}
}

func TestDenialsLimit(t *testing.T) {
	var d Denials
	for i := range MaxDenials + 50 {
		d.Add(denied(fmt.Sprintf("/%d", i), "EROFS"))
	}
	d.Add(denied("/3", "EROFS")) // known ones are still counted
	if len(d.List) != MaxDenials || d.Omitted != 50 || d.List[3].Count != 2 {
		t.Errorf("%d kept, %d omitted, %+v", len(d.List), d.Omitted, d.List[3])
	}
}
