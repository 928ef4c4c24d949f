// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// ownTerminal makes a terminal in a devpts file system of its own, starts a program on
// it and hands out the master on descriptor 3.
const ownTerminal = `
import fcntl, os, socket, struct, subprocess, sys, termios
subprocess.run(['mount', '-t', 'devpts', '-o', 'newinstance,ptmxmode=666', 'devpts', '.'], check=True)
os.chdir(os.getcwd())
master = os.open('ptmx', os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
fcntl.ioctl(master, 0x40045431, struct.pack('i', 0))
slave = os.open('0', os.O_RDWR | os.O_NOCTTY)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in 0, 1, 2: os.dup2(slave, fd)
    os.chdir('/')
    os.execvp(sys.argv[1], sys.argv[1:])
os.close(slave)
channel = socket.socket(fileno=3)
socket.send_fds(channel, [b'x'], [master])
os.close(master)
os.waitpid(pid, 0)
`

// startInside starts a program on a terminal that lives in the mount, process and user
// namespaces of the program.
func startInside(t *testing.T, args ...string) *console {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	inside := append([]string{"unshare", "-Urm", "-p", "-f", "--mount-proc", python, "-c",
		ownTerminal}, args...)
	c := &console{t: t, cmd: command(t, inside...)}
	c.cmd.ExtraFiles = []*os.File{theirs}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var failure strings.Builder
	c.cmd.Stderr = &failure
	c.run(nil)
	theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		t.Fatalf("a connection of type %T", conn)
	}
	if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := socket.ReadMsgUnix(make([]byte, 1), rights)
	if errors.Is(err, io.EOF) {
		c.cmd.Wait()
		t.Fatalf("no terminal: %s", failure.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("no terminal: %v, %v", messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("no terminal: %v, %v", fds, err)
	}
	unix.CloseOnExec(fds[0])
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	c.input = os.NewFile(uintptr(fds[0]), "ptmx")
	c.collect(c.input)
	return c
}

// TestTerminalInside has dialogs on terminals that exist only inside of a sandbox.
func TestTerminalInside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, d := range dialogs() {
		switch d.name {
		case "bash", "cat", "python getpass", "password on /dev/tty", "vim", "node prompt":
			t.Run(d.name, func(t *testing.T) { hold(t, startInside(t, d.args...), d) })
		}
	}
}

// otherTerminal reads a terminal with the number of ours from another devpts file
// system, and keeps ours open.
const otherTerminal = `
import fcntl, os, struct, subprocess
want = os.minor(os.fstat(0).st_rdev)
subprocess.run(['mount', '-t', 'devpts', '-o', 'newinstance,ptmxmode=666', 'devpts', '.'], check=True)
os.chdir(os.getcwd())
masters = []
while True:
    master = os.open('ptmx', os.O_RDWR | os.O_NOCTTY)
    masters.append(master)
    number = struct.unpack('i', fcntl.ioctl(master, 0x80045430, b'\0\0\0\0'))[0]
    if number == want: break
fcntl.ioctl(master, 0x40045431, struct.pack('i', 0))
slave = os.open(str(number), os.O_RDWR | os.O_NOCTTY)
assert os.fstat(slave).st_rdev == os.fstat(0).st_rdev
print('go')
os.read(slave, 9)
`

// TestSameNumber has a program that reads another terminal with the same number.
func TestSameNumber(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	c := start(t, "unshare", "-Urm", python, "-c", otherTerminal)
	c.until(0, "go")
	c.settled("no process of")
	c.never(rounds)
}
