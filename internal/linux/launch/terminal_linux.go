// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import "golang.org/x/sys/unix"

// tiocgptpeer opens the other end of a terminal by its master end, wherever the
// terminal file system is mounted (TIOCGPTPEER, asm-generic/ioctls.h; Linux 4.13). Package unix has it
// for some machines only.
const tiocgptpeer = 0x5441

// lowerTerminal makes a terminal and sends its master end out. It lies in the terminal file
// system that the command sees, which this task has made: job control and ttyname(3) work there.
func (l *lowering) lowerTerminal(s *Step) {
	switch {
	case l.fds.terminal == 0:
		l.fail("terminal needs Files.Terminal")
	case l.inCommand:
		l.fail("terminal behind start-command: process 1 leads the session")
	case s.Stdio < 1 || s.Stdio > 3:
		l.fail("terminal takes the place of one to three standard descriptors")
	case l.terminal:
		l.fail("terminal appears twice")
	}
	if l.err != nil {
		return
	}
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	master, msg := l.message()
	peer := l.newSlot()
	l.call("openat", unix.SYS_OPENAT, num(unix.AT_FDCWD), l.text(s.Path), num(flags), num(0)).store(master)
	l.call("ioctl TIOCSPTLCK", unix.SYS_IOCTL, held(master), num(unix.TIOCSPTLCK), pin(l, new(int32)))
	l.call("ioctl TIOCGPTPEER", unix.SYS_IOCTL, held(master), num(tiocgptpeer), num(flags)).store(l.place)
	l.above(l.place, peer)
	size := &unix.Winsize{Row: s.Rows, Col: s.Cols}
	l.call("ioctl TIOCSWINSZ", unix.SYS_IOCTL, held(peer), num(unix.TIOCSWINSZ), pin(l, size))
	l.call("ioctl TCSETS", unix.SYS_IOCTL, held(peer), num(unix.TCSETS), pin(l, usualModes()))
	l.call("ioctl TIOCSCTTY", unix.SYS_IOCTL, held(peer), num(unix.TIOCSCTTY), num(0))
	l.call("sendmsg", unix.SYS_SENDMSG, num(l.fds.terminal), msg, num(unix.MSG_NOSIGNAL)).expect(1)
	l.close(master)
	for i := range s.Stdio {
		l.reopened[i] = peer
	}
	l.terminal = true
}

// kernelTermios is struct termios (asm-generic/termbits.h), which is what TCSETS
// takes; the one of package unix has the C library's size.
type kernelTermios struct {
	iflag, oflag, cflag, lflag uint32
	_                          uint8 // the line discipline
	cc                         [19]uint8
}

// usualModes are those of a terminal as the kernel makes it (tty_std_termios), with
// the erasing of whole characters that UTF-8 needs.
func usualModes() *kernelTermios {
	t := &kernelTermios{
		iflag: unix.ICRNL | unix.IXON | unix.IUTF8,
		oflag: unix.OPOST | unix.ONLCR,
		cflag: unix.B38400 | unix.CS8 | unix.CREAD | unix.HUPCL,
		lflag: unix.ISIG | unix.ICANON | unix.ECHO | unix.ECHOE | unix.ECHOK | unix.ECHOCTL | unix.ECHOKE | unix.IEXTEN,
	}
	// INIT_C_CC of asm-generic/termios.h.
	for at, c := range map[int]uint8{
		unix.VINTR: 3, unix.VQUIT: 28, unix.VERASE: 127, unix.VKILL: 21, unix.VEOF: 4, unix.VMIN: 1,
		unix.VSTART: 17, unix.VSTOP: 19, unix.VSUSP: 26, unix.VREPRINT: 18, unix.VDISCARD: 15,
		unix.VWERASE: 23, unix.VLNEXT: 22,
	} {
		t.cc[at] = c
	}
	return t
}
