// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"
	"testing"
)

// seen are the calls that a supervisor gets, and those beside them that it does not.
func seen() []answer {
	private := Options{OwnPID: true, Observe: true}
	reads := Options{OwnPID: true, Observe: true, ObserveReads: true}
	host := Options{OwnPID: true, Observe: true, HostNetwork: true}
	opened := Options{OwnPID: true, Observe: true, Allow: []string{openUnix}}
	bare := Options{HostSpaces: true, Observe: true}
	var rows []answer
	add := func(o Options, want, only, call string, args ...uint64) {
		rows = append(rows, answer{call + " seen", call, args, want, only, o})
	}
	for _, call := range []string{
		"openat2", "unlinkat", "renameat", "renameat2", "mkdirat", "symlinkat", "linkat", "truncate",
		"fchmodat", "fchmodat2",
		"fchmod", "fchown", "fchownat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
		"lremovexattr", "fremovexattr",
		"setxattrat", "removexattrat", "mknodat", "connect", "bind", "sendmsg", "sendmmsg", "chdir", "fchdir",
	} {
		add(private, "notify", "", call)
	}
	for _, call := range []string{"creat", "unlink", "rmdir", "rename", "mkdir", "mknod", "symlink", "link",
		"chmod", "chown", "lchown", "utime", "utimes", "futimesat"} {
		add(private, "notify", "amd64", call)
	}
	add(private, "allow", "", "openat", 0, 0, 0x80000)          // O_CLOEXEC
	add(private, "allow", "", "openat", 0, 0, 0x10000|garbage)  // O_DIRECTORY
	add(private, "notify", "", "openat", 0, 0, 1)               // O_WRONLY
	add(private, "notify", "", "openat", 0, 0, 2)               // O_RDWR
	add(private, "notify", "", "openat", 0, 0, 0x40)            // O_CREAT
	add(private, "notify", "", "openat", 0, 0, 0x200)           // O_TRUNC
	add(private, "EPERM", "", "openat", 0, 0, 0x41, 0o4755)     // what is refused anyway stays so
	add(private, "EPERM", "", "fchmodat", 0, 0, 0o4755)         //
	add(private, "EPERM", "", "mknodat", 0, 0, 0o060644)        // a device
	add(private, "allow", "", "sendto", 3, 1, 2, 0, 0, 0)       // without an address
	add(private, "notify", "", "sendto", 3, 1, 2, 0, 1<<32, 16) // the pointer has 64 bits
	add(private, "allow", "", "sendmsg", 3, 1, HandOver)        // of the listener
	add(private, "notify", "", "sendmsg", 3, 1, HandOver|1)     //
	add(private, "allow", "", "execve")                         // reading
	add(reads, "notify", "", "execve")                          //
	add(reads, "notify", "", "openat", 0, 0, 0)                 //
	add(private, "allow", "", "socket", 1, 1, 0)                // unix, stream
	add(private, "allow", "", "socket", 1, 5|0x80000, 0)        // seqpacket, close on exec
	add(private, "allow", "", "socket", 1, 2, 0)                // datagram
	add(private, "allow", "", "socketpair", 1, 2|0x80000, 0)    //
	add(private, "EPERM", "", "socket", 1|garbage, 3, 0)        // raw
	add(private, "EPERM", "", "socketpair", 1, 3, 0)            //
	add(host, "EPERM", "", "socket", 1, 2, 0)                   // where sends are not seen
	add(host, "EPERM", "", "socketpair", 1, 2, 0)               //
	add(host, "allow", "", "socketpair", 1, 5, 0)               //
	add(host, "notify", "", "connect")                          // unix sockets are judged there, too
	add(host, "notify", "", "listen")                           //
	add(private, "notify", "", "listen")                        //
	add(opened, "allow", "", "listen")                          // where they are not judged
	add(bare, "allow", "", "listen")                            //
	add(host, "allow", "", "sendto", 3, 1, 2, 0, 1, 16)         //
	add(host, "allow", "", "sendmsg", 3, 1, 0)                  //
	add(private, "notify", "", "getsockopt", 3, 1, 17, 1, 1)    // who has connected
	add(private, "notify", "", "getsockopt", 3, 1, 77, 1, 1)    //
	add(private, "allow", "", "getsockopt", 3, 1, 16, 1, 1)     //
	add(private, "allow", "", "getsockopt", 3, 6, 17, 1, 1)     // of TCP
	add(private, "notify", "", "setsockopt", 3, 1, 16, 1, 4)    // who sends
	add(private, "notify", "", "setsockopt", 3, 1, 76, 1, 4)    //
	add(private, "allow", "", "setsockopt", 3, 1, 2, 1, 4)      //
	add(host, "notify", "", "getsockopt", 3, 1, 17, 1, 1)       //
	add(host, "allow", "", "setsockopt", 3, 1, 16, 1, 4)        // sends are not made there
	add(opened, "allow", "", "getsockopt", 3, 1, 17, 1, 1)      // nor connects
	add(opened, "allow", "", "setsockopt", 3, 1, 16, 1, 4)      //
	add(bare, "allow", "", "getsockopt", 3, 1, 17, 1, 1)        //
	add(bare, "allow", "", "setsockopt", 3, 1, 16, 1, 4)        //
	add(bare, "EPERM", "", "socket", 2, 1, 0)                   // refused, and told
	add(bare, "EPERM", "", "socket", 1, 1, 0)                   //
	add(bare, "EPERM", "", "socketpair", 1, 2, 0)               //
	return slices.Clip(rows)
}

// TestSeal: the call that hands out the listener fails afterwards, and nothing else does.
func TestSeal(t *testing.T) {
	for _, machine := range []string{"amd64", "arm64"} {
		words, err := Seal(machine)
		if err != nil {
			t.Fatal(err)
		}
		prog := make([]Instruction, len(words))
		for i, w := range words {
			prog[i] = Instruction{Code: uint16(w), JT: uint8(w >> 16), JF: uint8(w >> 24), K: uint32(w >> 32)}
		}
		if err := Verify(prog); err != nil {
			t.Fatal(err)
		}
		a := archOf(machine)
		sendmsg := int32(slices.Index(a.names, "sendmsg"))
		for _, c := range []struct {
			name string
			data Data
			want Action
		}{
			{"hand-over", Data{NR: sendmsg, Arch: a.audit, Args: [6]uint64{3, 1, HandOver}}, Errno(ePerm)},
			{"garbage above", Data{NR: sendmsg, Arch: a.audit, Args: [6]uint64{3, 1, HandOver | 1<<40}}, Errno(ePerm)},
			{"other flags", Data{NR: sendmsg, Arch: a.audit, Args: [6]uint64{3, 1, HandOver | 1}}, Allow},
			{"other call", Data{NR: sendmsg + 1, Arch: a.audit, Args: [6]uint64{3, 1, HandOver}}, Allow},
			{"foreign", Data{NR: sendmsg, Arch: 1, Args: [6]uint64{3, 1, HandOver}}, Allow},
		} {
			if got, _, err := Run(prog, c.data); err != nil || Action(got) != c.want {
				t.Errorf("%s, %s: %#x, %v, want %#x", machine, c.name, got, err, c.want)
			}
		}
	}
	if _, err := Seal("vax"); err == nil {
		t.Error("a seal for an unknown machine")
	}
}
