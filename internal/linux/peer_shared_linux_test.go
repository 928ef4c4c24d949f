// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peerActions are halves of what two commands do together: one gives, the other takes. "key" and "name"
// say by what they find each other. What takes reports BREACH when it has got it.
func peerActions() map[string]attack {
	return map[string]attack{
		"give-stream":   giveStream,
		"take-stream":   takeStream,
		"give-datagram": giveDatagrams,
		"take-datagram": takeDatagram,
		"got-datagram":  gotDatagram,
		"give-file":     func(kv map[string]string) outcome { return okIf(os.WriteFile(kv["name"], []byte(peerText), 0o600)) },
		"take-file": func(kv map[string]string) outcome {
			b, err := os.ReadFile(kv["name"])
			return gotText(b, err)
		},
		"give-pipe": givePipe,
		"take-pipe": takePipe,
		"give-shm":  giveSegment,
		"take-shm":  takeSegment,
		"give-sem": func(kv map[string]string) outcome {
			_, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(number(kv["key"])), 1, unix.IPC_CREAT|0o600)
			return okIf(errnoError(errno))
		},
		"take-sem": func(kv map[string]string) outcome {
			_, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(number(kv["key"])), 1, 0)
			return deniedIf(errnoError(errno), "found it")
		},
		"give-msg": giveMessage,
		"take-msg": takeMessage,
		"give-mq":  giveQueue,
		"take-mq":  takeQueue,
		"give-descriptor": func(kv map[string]string) outcome {
			kv["pass"] = kv["file"]
			return giveStream(kv)
		},
		"take-descriptor": takeDescriptor,
	}
}

const peerText = "from one command to another"

func okIf(err error) outcome {
	if err != nil {
		return bad("%v", err)
	}
	return fine("done")
}

func errnoError(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func gotText(b []byte, err error) outcome {
	if err == nil && string(b) != peerText {
		return bad("it is %q", b)
	}
	return deniedIf(err, "got it")
}

// giveStream listens at "name" of the network "net", and sends the text to each client, or a
// descriptor of the file "pass". It says where it listens.
func giveStream(kv map[string]string) outcome {
	l, err := net.Listen(kv["net"], kv["name"])
	if err != nil {
		return bad("%v", err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if u, ok := c.(*net.UnixConn); ok && kv["pass"] != "" {
				if f, err := os.Open(kv["pass"]); err == nil {
					_, _, _ = u.WriteMsgUnix([]byte("x"), unix.UnixRights(int(f.Fd())), nil)
					f.Close()
				}
			} else {
				_, _ = io.WriteString(c, peerText)
			}
			c.Close()
		}
	}()
	return fine("%s", l.Addr())
}

func takeStream(kv map[string]string) outcome {
	c, err := net.DialTimeout(kv["net"], kv["name"], 10*time.Second)
	if err != nil {
		return denied(err.Error())
	}
	defer c.Close()
	b := make([]byte, 100)
	n, err := c.Read(b)
	return gotText(b[:n], err)
}

// takeDescriptor connects and reads from the descriptor that is sent.
func takeDescriptor(kv map[string]string) outcome {
	c, err := net.Dial(kv["net"], kv["name"])
	if err != nil {
		return denied(err.Error())
	}
	defer c.Close()
	u, ok := c.(*net.UnixConn)
	if !ok {
		return bad("%T", c)
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := u.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return denied(err.Error())
	}
	m, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(m) != 1 {
		return bad("%d messages, %v", len(m), err)
	}
	fds, err := unix.ParseUnixRights(&m[0])
	if err != nil || len(fds) != 1 {
		return bad("%v, %v", fds, err)
	}
	b := make([]byte, 100)
	k, err := unix.Pread(fds[0], b, 0)
	if err != nil {
		return denied(errnoName(err))
	}
	return breach("read %q from it", b[:k])
}

var keptDatagrams = map[string]net.PacketConn{}

// giveDatagrams binds a socket at "name", for gotDatagram.
func giveDatagrams(kv map[string]string) outcome {
	c, err := net.ListenPacket(kv["net"], kv["name"])
	if err != nil {
		return bad("%v", err)
	}
	keptDatagrams[kv["name"]] = c
	return fine("%s", c.LocalAddr())
}

// takeDatagram sends one to "name". What arrives counts, see gotDatagram.
func takeDatagram(kv map[string]string) outcome {
	if strings.HasPrefix(kv["net"], "udp") {
		c, err := net.Dial(kv["net"], kv["name"])
		if err != nil {
			return denied(err.Error())
		}
		defer c.Close()
		_, err = io.WriteString(c, peerText)
		return deniedIf(err, "sent")
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return denied("socket " + errnoName(err))
	}
	defer unix.Close(s)
	to := &unix.SockaddrUnix{Name: kv["name"]}
	return firstBreach(
		func() (string, error) { return "sendto", unix.Sendto(s, []byte(peerText), 0, to) },
		func() (string, error) { return "connect", unix.Connect(s, to) },
		func() (string, error) { return "write", unix.Send(s, []byte(peerText), 0) })
}

// gotDatagram says whether one has arrived.
func gotDatagram(kv map[string]string) outcome {
	c := keptDatagrams[kv["name"]]
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if kv["now"] != "" {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond)) // what was sent is there
	}
	b := make([]byte, 100)
	n, _, err := c.ReadFrom(b)
	return gotText(b[:n], err)
}

// givePipe makes a named pipe with something in it.
func givePipe(kv map[string]string) outcome {
	if err := unix.Mkfifo(kv["name"], 0o600); err != nil {
		return bad("%v", err)
	}
	f, err := os.OpenFile(kv["name"], os.O_RDWR, 0)
	if err != nil {
		return bad("%v", err)
	}
	keptFiles = append(keptFiles, f)
	_, err = f.WriteString(peerText)
	return okIf(err)
}

func takePipe(kv map[string]string) outcome {
	f, err := os.OpenFile(kv["name"], os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return denied(errnoName(err))
	}
	defer f.Close()
	b := make([]byte, 100)
	n, err := f.Read(b)
	return gotText(b[:n], err)
}

func segment(key, flags int) (*[64]byte, error) {
	id, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(key), 4096, uintptr(flags))
	if errno != 0 {
		return nil, errno
	}
	b, err := unix.SysvShmAttach(int(id), 0, 0)
	if err != nil {
		return nil, err
	}
	return (*[64]byte)(b), nil
}

func giveSegment(kv map[string]string) outcome {
	b, err := segment(number(kv["key"]), unix.IPC_CREAT|0o600)
	if err == nil {
		copy(b[:], peerText)
	}
	return okIf(err)
}

func takeSegment(kv map[string]string) outcome {
	b, err := segment(number(kv["key"]), 0)
	if err != nil {
		return denied(errnoName(err))
	}
	return gotText(b[:len(peerText)], nil)
}

func giveMessage(kv map[string]string) outcome {
	id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(number(kv["key"])), unix.IPC_CREAT|0o600, 0)
	if errno != 0 {
		return bad("%v", errno)
	}
	msg := append(binary.NativeEndian.AppendUint64(nil, 1), peerText...)
	_, _, errno = unix.Syscall6(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&msg[0])), uintptr(len(peerText)),
		ipcNoWait, 0, 0)
	return okIf(errnoError(errno))
}

const ipcNoWait = 0o4000

func takeMessage(kv map[string]string) outcome {
	id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(number(kv["key"])), 0, 0)
	if errno != 0 {
		return denied(unix.ErrnoName(errno))
	}
	msg := make([]byte, 8+100)
	n, _, errno := unix.Syscall6(unix.SYS_MSGRCV, id, uintptr(unsafe.Pointer(&msg[0])), 100, 0, ipcNoWait, 0)
	return gotText(msg[8:8+n], errnoError(errno))
}

func giveQueue(kv map[string]string) outcome {
	fd, err := mqOpen(kv["key"], unix.O_CREAT|unix.O_RDWR)
	if err != nil {
		return bad("%v", err)
	}
	b := []byte(peerText)
	_, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDSEND, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
		uintptr(len(b)), 0, 0, 0)
	return okIf(errnoError(errno))
}

func takeQueue(kv map[string]string) outcome {
	fd, err := mqOpen(kv["key"], unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return denied(errnoName(err))
	}
	b := make([]byte, 64)
	n, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDRECEIVE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
		uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		return denied(fmt.Sprint(errno))
	}
	return gotText(b[:n], nil)
}
