// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The identity of a process is what the kernel tells others of it: who sends a message, and who has
// connected. Each action has a child that sends or connects, and compares what arrives with the child.
func identityActions() map[string]attack {
	pair := func(kind int, how string) attack {
		return func(map[string]string) outcome { return asItIs(pairSender(kind, how)) }
	}
	all := map[string]attack{
		"id-child": func(kv map[string]string) outcome {
			if err := identityChild(kv["how"], kv["to"]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return fine("sent")
		},
		"id-stream": pair(unix.SOCK_STREAM, "message"), "id-packets": pair(unix.SOCK_SEQPACKET, "message"),
		"id-datagrams": pair(unix.SOCK_DGRAM, "message"), "id-many": pair(unix.SOCK_SEQPACKET, "many"),
		"id-rights":   pair(unix.SOCK_SEQPACKET, "rights"),
		"id-explicit": pair(unix.SOCK_SEQPACKET, "explicit"),
		"id-both":     pair(unix.SOCK_STREAM, "both"), "id-plain": pair(unix.SOCK_STREAM, "plain"),
		"id-grandchild":  pair(unix.SOCK_SEQPACKET, "grandchild"),
		"id-full":        pair(unix.SOCK_SEQPACKET, "full"),
		"id-full-stream": pair(unix.SOCK_STREAM, "full"), "id-foreign": pair(unix.SOCK_SEQPACKET, "foreign"),
		"id-path-datagram": func(kv map[string]string) outcome {
			return asItIs(boundSender(kv["ws"] + "/id-datagrams"))
		},
		"id-name-datagram": func(kv map[string]string) outcome {
			return asItIs(boundSender("@" + kv["ws"] + "/id-datagrams"))
		},
		"id-netlink": func(map[string]string) outcome { return asItIs(netlinkNumber()) },
		"id-trace":   func(map[string]string) outcome { return traceSenders() },
	}
	for name, kind := range map[string]int{"stream": unix.SOCK_STREAM, "packets": unix.SOCK_SEQPACKET} {
		all["id-peer-"+name] = func(kv map[string]string) outcome {
			return asItIs(peerIs(kind, kv["ws"]+"/id-"+name))
		}
		all["id-peer-name-"+name] = func(kv map[string]string) outcome {
			return asItIs(peerIs(kind, "@"+kv["ws"]+"/id-"+name))
		}
	}
	return all
}

func asItIs(err error) outcome {
	if err != nil {
		return bad("%v", err)
	}
	return fine("as it is")
}

// ownUcred returns the credentials of a process of this user.
func ownUcred(pid int) *unix.Ucred {
	return &unix.Ucred{Pid: int32(pid), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
}

// startChild starts a child with a socket as descriptor 3.
func startChild(sock int, how, to string) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", partAttack, "id-child", "how="+how, "to="+to)
	if sock >= 0 {
		fd, err := unix.FcntlInt(uintptr(sock), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}

// identityChild sends its process id in one of several ways by descriptor 3, or to an address, or connects.
func identityChild(how, to string) error {
	text := []byte(strconv.Itoa(os.Getpid()))
	named := func(pid int) []byte {
		return unix.UnixCredentials(ownUcred(pid))
	}
	switch how {
	case "message":
		return unix.Sendmsg(3, text, nil, nil, 0)
	case "plain":
		_, err := unix.Write(3, text)
		return err
	case "rights":
		return unix.Sendmsg(3, text, unix.UnixRights(0), nil, 0)
	case "explicit":
		return unix.Sendmsg(3, text, named(os.Getpid()), nil, 0)
	case "both":
		return unix.Sendmsg(3, text, append(named(os.Getpid()), unix.UnixRights(0)...), nil, 0)
	case "foreign":
		if err := unix.Sendmsg(3, text, named(os.Getppid()), nil, 0); !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("sent as another process: %w", err)
		}
		return unix.Sendmsg(3, text, nil, nil, 0)
	case "many":
		return sendTexts(3, text)
	case "full":
		for range fullMessages {
			if err := unix.Sendmsg(3, text, nil, nil, 0); err != nil {
				return err
			}
		}
		return nil
	case "grandchild":
		cmd, err := startChild(3, "message", "")
		if err != nil {
			return err
		}
		return cmd.Wait()
	case "datagram":
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(s, text, 0, &unix.SockaddrUnix{Name: to})
	}
	kind, err := strconv.Atoi(how)
	if err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err == nil {
		err = unix.Connect(s, &unix.SockaddrUnix{Name: to})
	}
	if err == nil {
		_, err = unix.Read(s, make([]byte, 1)) // until it was looked at
	}
	return err
}

// sendTexts sends a message by sendmmsg(2).
func sendTexts(s int, text []byte) error {
	message := struct {
		head unix.Msghdr
		sent uint64
	}{head: unix.Msghdr{Iov: &unix.Iovec{Base: &text[0], Len: uint64(len(text))}, Iovlen: 1}}
	if _, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s), uintptr(unsafe.Pointer(&message)), 1, 0, 0,
		0); errno != 0 {
		return errno
	}
	return nil
}

// fullMessages are more than fit into a small buffer.
const fullMessages = 64

// pairSender compares who sends by a pair of sockets with who it is.
func pairSender(kind int, how string) error {
	p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(p[0]), "socket")
	defer in.Close()
	err = errors.Join(unix.SetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1),
		unix.SetsockoptInt(p[1], unix.SOL_SOCKET, unix.SO_SNDBUF, 4096))
	if err != nil {
		return err
	}
	cmd, err := startChild(p[1], how, "")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for full := how != "full"; !full; { // then the child has to wait, or soon
		select {
		case err := <-ended:
			return fmt.Errorf("the child did not wait: %w", err)
		default:
		}
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(p[1]), Events: unix.POLLOUT}}, 0)
		full = n == 0
	}
	unix.Close(p[1])
	for got := 0; ; {
		var n int
		if n, err = compareSender(p[0], cmd, how); err != nil || how != "full" {
			break
		}
		if got += n; got == fullMessages {
			break
		}
	}
	in.Close() // for this end a child would wait
	return errors.Join(err, <-ended)
}

// boundSender does the same for a datagram to an address.
func boundSender(at string) error {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	defer os.Remove(at)
	if err = unix.Bind(s, &unix.SockaddrUnix{Name: at}); err == nil {
		err = unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	}
	if err != nil {
		return err
	}
	cmd, err := startChild(-1, "datagram", at)
	if err != nil {
		return err
	}
	_, err = compareSender(s, cmd, "message")
	return errors.Join(err, cmd.Wait())
}

// compareSender receives a message and returns how many it held, which a stream may have joined.
func compareSender(sock int, cmd *exec.Cmd, how string) (int, error) {
	data, oob := make([]byte, 4096), make([]byte, 256)
	n, oobn, _, _, err := unix.Recvmsg(sock, data, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("received %d bytes: %w", n, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return 0, err
	}
	var by *unix.Ucred
	rights := 0
	for i := range messages {
		if c, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			by = c
		}
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			rights += len(fds)
		}
	}
	want := ownUcred(cmd.Process.Pid)
	one := []byte(strconv.Itoa(cmd.Process.Pid))
	if how == "grandchild" {
		pid, _ := strconv.Atoi(string(data[:n]))
		want.Pid, one = int32(pid), data[:n]
	}
	switch count := n / len(one); {
	case by == nil || *by != *want:
		return 0, fmt.Errorf("sent by %+v, want %+v", by, *want)
	case (how == "rights" || how == "both") != (rights == 1):
		return 0, fmt.Errorf("%d descriptors", rights)
	case !bytes.Equal(data[:n], bytes.Repeat(one, count)):
		return 0, fmt.Errorf("received %q, want %q", data[:n], one)
	default:
		return count, nil
	}
}

// peerIs compares who the kernel says has connected with who it is.
func peerIs(kind int, at string) error {
	l, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(l)
	defer os.Remove(at)
	if err = unix.Bind(l, &unix.SockaddrUnix{Name: at}); err == nil {
		err = unix.Listen(l, 8)
	}
	if err != nil {
		return err
	}
	cmd, err := startChild(-1, strconv.Itoa(kind), at)
	if err != nil {
		return err
	}
	s, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err == nil {
		err = comparePeer(s, cmd.Process.Pid)
		_, werr := unix.Write(s, []byte{0})
		err = errors.Join(err, werr)
		unix.Close(s)
	}
	return errors.Join(err, cmd.Wait())
}

func comparePeer(s, pid int) error {
	by, err := unix.GetsockoptUcred(s, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	if want := ownUcred(pid); *by != *want {
		return fmt.Errorf("connected by %+v, want %+v", *by, *want)
	}
	fd, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return nil // before Linux 6.5
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err == nil && !strings.Contains(string(info), fmt.Sprintf("\nPid:\t%d\n", pid)) {
		err = fmt.Errorf("descriptor of the peer's process: %s", info)
	}
	return err
}

// netlinkNumber sends by a netlink socket that has no number yet: it gets that of the process.
func netlinkNumber() error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	request := make([]byte, 32) // struct nlmsghdr and struct ifinfomsg
	request[0], request[4], request[6] = 32, unix.RTM_GETLINK, unix.NLM_F_REQUEST
	if err = unix.Sendmsg(s, request, nil, nil, 0); err != nil {
		return err
	}
	at, err := unix.Getsockname(s)
	if err != nil {
		return err
	}
	if own, ok := at.(*unix.SockaddrNetlink); !ok || int(own.Pid) != os.Getpid() {
		return fmt.Errorf("bound to %+v, want %d", at, os.Getpid())
	}
	return nil
}

// traceSenders reaches for whoever makes the sends of this process, which has memory of the observer.
func traceSenders() outcome {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	}
	if err != nil {
		return bad("%v", err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for range 300 {
			if err = unix.Sendmsg(p[1], []byte{0}, nil, nil, 0); err != nil {
				break
			}
			_, _, _, _, _ = unix.Recvmsg(p[0], make([]byte, 1), make([]byte, 64), 0)
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				return bad("%v", err)
			}
			return denied("no other process could be traced")
		default:
		}
		all, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range all {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if pid == os.Getpid() {
				continue
			}
			if f, err := os.OpenFile(dir+"/mem", os.O_RDWR, 0); err == nil {
				f.Close()
				return breach("opened %s/mem", dir)
			}
			if fds, err := os.ReadDir(dir + "/fd"); err == nil && len(fds) > 0 {
				return breach("listed %s/fd", dir)
			}
		}
	}
}

// TestIdentity: receivers and servers inside see who sends and who has connected, as outside.
func TestIdentity(t *testing.T) {
	testenv.RunAsOrdinary(t)
	outside := []string{
		"id-stream", "id-packets", "id-many", "id-rights", "id-explicit", "id-both", "id-plain",
		"id-grandchild", "id-full", "id-full-stream", "id-peer-stream", "id-peer-packets",
	}
	datagrams := []string{
		"id-datagrams", "id-path-datagram", "id-name-datagram", "id-peer-name-stream",
		"id-peer-name-packets", "id-netlink", "id-foreign",
	}
	open, err := network.New(network.Config{Mode: network.Full,
		Entries: []network.Entry{{Pattern: "api.example.com"}}})
	must(t, err)
	for _, c := range []struct {
		name    string
		network sandbox.Network
		hosts   *network.Live
		more    []string
	}{
		{"private", sandbox.NetworkNone, nil, datagrams},
		{"managed", sandbox.NetworkProxy, network.NewLive(open), datagrams},
		{"host", sandbox.NetworkHost, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			p := a.policy().WithNetwork(c.network)
			a.expect(t, wordOK, &job{policy: &p, hosts: c.hosts}, slices.Concat(outside, c.more))
			if c.more != nil {
				a.expect(t, wordDenied, &job{policy: &p, hosts: c.hosts}, []string{"id-trace"})
			}
		})
	}
	t.Run("outside", func(t *testing.T) {
		for name, act := range identityActions() {
			if name == "id-child" || name == "id-trace" || name == "id-foreign" && os.Geteuid() == 0 {
				continue // root may name others
			}
			cmd := exec.Command(os.Getenv(programVar), partAttack, name, "ws="+t.TempDir())
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), name+" "+wordOK) || act == nil {
				t.Errorf("%v %s", err, out)
			}
		}
	})
}
