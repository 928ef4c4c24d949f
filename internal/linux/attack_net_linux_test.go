// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ipcAttacks reach for objects of the kernel that have names of their own:
// "shm", "sem" and "msg" are System V keys, "mq" a message queue, "key" a key.
func ipcAttacks() map[string]attack {
	get := func(nr uintptr, arg string, args ...uintptr) attack {
		return func(kv map[string]string) outcome {
			full := append([]uintptr{uintptr(number(kv[arg]))}, args...)
			for len(full) < 3 {
				full = append(full, 0)
			}
			_, _, errno := unix.Syscall(nr, full[0], full[1], full[2])
			if errno != 0 {
				return denied(unix.ErrnoName(errno))
			}
			return breach("found it")
		}
	}
	return map[string]attack{
		"shm": get(unix.SYS_SHMGET, "shm", 0, 0),
		"sem": get(unix.SYS_SEMGET, "sem", 0, 0),
		"msg": get(unix.SYS_MSGGET, "msg", 0),
		"mq": func(kv map[string]string) outcome {
			_, err := mqOpen(kv["mq"], unix.O_RDONLY)
			return deniedIf(err, "opened the queue")
		},
		"dev-shm": func(kv map[string]string) outcome {
			_, err := os.Lstat("/dev/shm/" + kv["shm-file"])
			return deniedIf(err, "saw the file")
		},
		"key-search": func(map[string]string) outcome {
			_, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", keyName, 0)
			return deniedIf(err, "found the key")
		},
		"key-request": func(map[string]string) outcome {
			_, err := unix.RequestKey("user", keyName, "", 0)
			return deniedIf(err, "got the key")
		},
		"key-read": func(kv map[string]string) outcome {
			_, err := unix.KeyctlBuffer(unix.KEYCTL_READ, number(kv["key"]), make([]byte, 64), 64)
			return deniedIf(err, "read the key")
		},
		"key-add": func(map[string]string) outcome {
			_, err := unix.AddKey("user", keyName, []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return deniedIf(err, "added a key")
		},
	}
}

// keyName describes the key of the tests.
const keyName = "sallyport-test"

// mqOpen is mq_open(3) with small attributes; name has no slash.
func mqOpen(name string, flags int) (int, error) {
	b := append([]byte(name), 0)
	attr := [8]int64{0, 2, 64} // struct mq_attr: flags, maxmsg, msgsize
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&b[0])), uintptr(flags), 0o600,
		uintptr(unsafe.Pointer(&attr)), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// networkAttacks reach for listeners of the host: "tcp4", "tcp6" and "udp4" are
// addresses.
func networkAttacks() map[string]attack {
	dial := func(network, key string) attack {
		return func(kv map[string]string) outcome {
			c, err := net.DialTimeout(network, kv[key], 2*time.Second)
			if err == nil {
				_, err = c.Write([]byte("x"))
				if network == "udp4" && err == nil {
					// Sent is not received; only an answer is.
					_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
					_, err = c.Read(make([]byte, 1))
				}
				c.Close()
			}
			return deniedIf(err, "reached "+kv[key])
		}
	}
	return map[string]attack{
		"tcp4": dial("tcp4", "tcp4"), "tcp6": dial("tcp6", "tcp6"), "udp4": dial("udp4", "udp4"),
		"outside": func(kv map[string]string) outcome {
			v := denied("no address to try")
			for _, a := range []string{"192.0.2.1:9", "[2001:db8::1]:9", kv["own"]} {
				if a == "" {
					continue
				}
				_, err := net.DialTimeout("tcp", a, 3*time.Second) // no route is told at once
				if err == nil || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrDeadlineExceeded) {
					return breach("%s has a route: %v", a, err)
				}
				v = denied(errnoName(err))
			}
			return v
		},
		"interfaces": func(map[string]string) outcome {
			list, err := net.Interfaces()
			if err != nil {
				return bad("%v", err)
			}
			for _, i := range list {
				if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
					return breach("%s is up", i.Name)
				}
			}
			return denied("only loopback")
		},
		"own-loopback": ownLoopback,
	}
}

// ownLoopback is no attack: a server and a client in the sandbox must work.
func ownLoopback(map[string]string) outcome {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return bad("%v", err)
		}
		done := make(chan error, 1)
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, err = io.Copy(c, c)
				c.Close()
			}
			done <- err
		}()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return bad("%v", err)
		}
		if _, err := fmt.Fprint(c, "hello"); err != nil {
			return bad("%v", err)
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return bad("%T is no TCP connection", c)
		}
		if err := tcp.CloseWrite(); err != nil {
			return bad("%v", err)
		}
		b, err := io.ReadAll(c)
		if err != nil || string(b) != "hello" {
			return bad("%q %v", b, err)
		}
		c.Close()
		l.Close()
		if err := <-done; err != nil {
			return bad("%v", err)
		}
	}
	return fine("both families")
}

// connectAt connects to the socket of the host by a link whose name begins as abstract names
// are written.
func connectAt(kv map[string]string) outcome {
	if err := os.Symlink(kv["path"], "@s"); err != nil {
		return denied("symlink " + errnoName(err))
	}
	defer os.Remove("@s")
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return denied("socket " + errnoName(err))
	}
	a := unix.RawSockaddrUnix{Family: unix.AF_UNIX, Path: [108]int8{'@', 's'}}
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(s), uintptr(unsafe.Pointer(&a)),
		unsafe.Sizeof(a)); errno != 0 {
		return denied("connect " + unix.ErrnoName(errno))
	}
	return breach("connected")
}

// ownSocket connects to a socket of the command's own.
func ownSocket(map[string]string) outcome {
	l, err := net.Listen("unix", "own.sock")
	if err != nil {
		return denied("listen " + err.Error())
	}
	defer l.Close()
	c, err := net.Dial("unix", "own.sock")
	if err == nil {
		c.Close()
	}
	return deniedIf(err, "connected")
}

// handedIn calls listen(2) on the socket of the host that is its standard input, and connects
// to where that is bound.
func handedIn(map[string]string) outcome {
	at, err := unix.Getsockname(0)
	if err != nil {
		return bad("getsockname: %v", err)
	}
	if err := unix.Listen(0, 1); err != nil {
		return denied("listen " + errnoName(err))
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return denied("socket " + errnoName(err))
	}
	return deniedIf(unix.Connect(s, at), "connected")
}

// socketAttacks ask for kinds of sockets. "abstract" is a name; "path", "path-datagram" and
// "path-inside" are sockets of the host, the last one in the workspace. "own-path" and "mptcp"
// are no attacks.
func socketAttacks() map[string]attack {
	kind := func(family, typ, proto int) attack {
		return func(map[string]string) outcome {
			_, err := unix.Socket(family, typ, proto)
			return deniedIf(err, "made a socket")
		}
	}
	connect := func(key string, abstract bool, typ int) attack {
		return func(kv map[string]string) outcome {
			s, err := unix.Socket(unix.AF_UNIX, typ, 0)
			if err != nil {
				return denied("socket " + errnoName(err))
			}
			name := kv[key]
			if abstract {
				name = "@" + name
			}
			return deniedIf(unix.Connect(s, &unix.SockaddrUnix{Name: name}), "connected")
		}
	}
	const mptcp = 262 // IPPROTO_MPTCP
	return map[string]attack{
		"raw":            kind(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		"raw6":           kind(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6),
		"icmp":           kind(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP),
		"packet":         kind(unix.AF_PACKET, unix.SOCK_RAW, 0x300),
		"packet-dgram":   kind(unix.AF_PACKET, unix.SOCK_DGRAM, 0),
		"mptcp":          kind(unix.AF_INET, unix.SOCK_STREAM, mptcp),
		"sctp":           kind(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP),
		"udplite":        kind(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE),
		"vsock":          kind(unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		"alg":            kind(unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		"bluetooth":      kind(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1),
		"can":            kind(unix.AF_CAN, unix.SOCK_RAW, 1),
		"xdp":            kind(unix.AF_XDP, unix.SOCK_RAW, 0),
		"key-family":     kind(unix.AF_KEY, unix.SOCK_RAW, 2),
		"tipc":           kind(unix.AF_TIPC, unix.SOCK_RDM, 0),
		"qipcrtr":        kind(unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0),
		"netlink-filter": kind(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
		"netlink-uevent": kind(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT),
		"netlink-audit":  kind(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT),
		"netlink-diag":   kind(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG),
		"netlink-xfrm":   kind(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM),
		// The upper half of an int argument is cut off by the kernel.
		"netlink-high": func(map[string]string) outcome {
			_, _, errno := unix.Syscall(unix.SYS_SOCKET, 1<<32|unix.AF_NETLINK, unix.SOCK_RAW,
				1<<32|unix.NETLINK_NETFILTER)
			if errno != 0 {
				return denied(unix.ErrnoName(errno))
			}
			return breach("made a socket")
		},
		"abstract":      connect("abstract", true, unix.SOCK_STREAM),
		"path-at":       connectAt,
		"path-inside":   connect("path-inside", false, unix.SOCK_STREAM),
		"own-path":      ownSocket,
		"path":          connect("path", false, unix.SOCK_STREAM),
		"path-datagram": connect("path-datagram", false, unix.SOCK_DGRAM),
		"pair-datagram": func(kv map[string]string) outcome {
			p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return denied("socketpair " + errnoName(err))
			}
			return deniedIf(unix.Sendto(p[0], []byte("x"), 0, &unix.SockaddrUnix{Name: kv["path-datagram"]}),
				"sent a datagram")
		},
		"pair-raw": func(map[string]string) outcome {
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_RAW, 0)
			return deniedIf(err, "made a raw pair")
		},
		"pair-stream": func(map[string]string) outcome {
			for _, typ := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
				if _, err := unix.Socketpair(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0); err != nil {
					return bad("%v", err)
				}
			}
			return fine("pairs work")
		},
	}
}

// datagramAttacks reach for the datagram sockets of the host: "path-datagram",
// "path-inside-datagram", in the workspace, and "abstract-datagram". Those that are handed in send
// with the socket that is the standard input.
func datagramAttacks() map[string]attack {
	send := func(key string, handed bool) attack {
		return func(kv map[string]string) outcome {
			s := 0
			if !handed {
				var err error
				if s, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err != nil {
					return denied("socket " + errnoName(err))
				}
				defer unix.Close(s)
			}
			to := &unix.SockaddrUnix{Name: kv[key]}
			return firstBreach(
				func() (string, error) { return "sendto", unix.Sendto(s, []byte("x"), 0, to) },
				func() (string, error) { return "sendmsg", unix.Sendmsg(s, []byte("x"), nil, to, 0) },
				func() (string, error) { return "sendmmsg", sendMany(s, kv[key]) })
		}
	}
	connect := func(key string) attack {
		return func(kv map[string]string) outcome {
			s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return denied("socket " + errnoName(err))
			}
			defer unix.Close(s)
			return deniedIf(unix.Connect(s, &unix.SockaddrUnix{Name: kv[key]}), "connected")
		}
	}
	return map[string]attack{
		"datagram-path": connect("path-datagram"), "send-path": send("path-datagram", false),
		"datagram-inside": connect("path-inside-datagram"), "send-inside": send("path-inside-datagram", false),
		"datagram-abstract": connect("abstract-datagram"), "send-abstract": send("abstract-datagram", false),
		"handed-in-inside": send("path-inside-datagram", true), "handed-in-abstract": send("abstract-datagram", true),
	}
}

// sendMany sends a datagram by sendmmsg(2).
func sendMany(s int, name string) error {
	to := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	for i := range name {
		to.Path[i] = int8(name[i])
	}
	if strings.HasPrefix(name, "@") {
		to.Path[0] = 0
	}
	data := []byte("x")
	message := struct {
		head unix.Msghdr
		sent uint64
	}{head: unix.Msghdr{Name: (*byte)(unsafe.Pointer(&to)), Namelen: uint32(2 + len(name)),
		Iov: &unix.Iovec{Base: &data[0], Len: 1}, Iovlen: 1}}
	if _, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s), uintptr(unsafe.Pointer(&message)), 1, 0, 0,
		0); errno != 0 {
		return errno
	}
	return nil
}

// mqUnlink is mq_unlink(3); name has no slash.
func mqUnlink(name string) error {
	b := append([]byte(name), 0)
	if _, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&b[0])), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
