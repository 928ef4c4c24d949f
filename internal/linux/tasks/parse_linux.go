// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// errFormat says that a file of /proc is not as the kernel writes it.
var errFormat = errors.New("not in the kernel's format")

// maxName is the longest name of a process in its stat file: the names of kernel
// threads have up to 63 bytes, those of programs 15 (proc(5)).
const maxName = 64

// A statLine is the part of /proc/PID/task/TID/stat that a look needs (proc_pid_stat(5)).
type statLine struct {
	name           string
	state          byte
	group, session int
	terminal       uint32 // device number of the controlling terminal, 0 for none
	threads        int
	start          uint64
}

// Positions after the name, counted from the state as 0.
const (
	statGroup, statSession, statTerminal, statThreads, statStart = 2, 3, 4, 17, 19
	statFields                                                   = 20 // at least
)

// parseStat reads a stat file. The name can contain anything, also parentheses and
// newlines, but nothing after it contains a parenthesis.
func parseStat(text []byte) (statLine, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 2 || text[open-1] != ' ' || end < open || end-open-1 > maxName ||
		!bytes.HasSuffix(text, []byte("\n")) {
		return statLine{}, errFormat
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < statFields || len(fields[0]) != 1 {
		return statLine{}, errFormat
	}
	line := statLine{name: string(text[open+1 : end]), state: fields[0][0]}
	var pid int
	for _, number := range []struct {
		text []byte
		to   *int
	}{{text[:open-1], &pid}, {fields[statGroup], &line.group}, {fields[statSession], &line.session},
		{fields[statThreads], &line.threads}} {
		value, err := decimal(number.text)
		if err != nil || value > math.MaxInt32 {
			return statLine{}, errFormat
		}
		*number.to = int(value)
	}
	// The kernel prints the device number as a signed one.
	terminal, err := strconv.ParseInt(string(fields[statTerminal]), 10, 32)
	if err != nil {
		return statLine{}, errFormat
	}
	line.terminal = uint32(terminal)
	line.start, err = decimal(fields[statStart])
	return line, err
}

// decimal reads a number without sign, all of it.
func decimal(text []byte) (uint64, error) {
	if len(text) == 0 || text[0] < '0' || text[0] > '9' {
		return 0, errFormat
	}
	value, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0, errFormat
	}
	return value, nil
}

// A callLine is the content of /proc/PID/task/TID/syscall: that the thread runs, or the
// call that it is blocked in. The number is -1 for a thread that is blocked outside of
// calls, for instance by a page that is being read.
type callLine struct {
	running bool
	number  int64
	args    [6]uint64
	narrow  bool // the stack and the code lie below 4 GiB: a program of 32 bits
}

// parseCall reads a syscall file, see proc_pid_syscall(5).
func parseCall(text []byte) (callLine, error) {
	text, ok := bytes.CutSuffix(text, []byte("\n"))
	if !ok {
		return callLine{}, errFormat
	}
	if string(text) == "running" {
		return callLine{running: true, number: -1}, nil
	}
	fields := bytes.Split(text, []byte(" "))
	number, err := strconv.ParseInt(string(fields[0]), 10, 32)
	if err != nil {
		return callLine{}, errFormat
	}
	var registers [8]uint64
	count := len(registers)
	if number == -1 {
		count = 2 // without the arguments
	}
	if len(fields) != 1+count {
		return callLine{}, errFormat
	}
	for i, field := range fields[1:] {
		hex, ok := bytes.CutPrefix(field, []byte("0x"))
		if registers[i], err = strconv.ParseUint(string(hex), 16, 64); !ok || err != nil {
			return callLine{}, errFormat
		}
	}
	line := callLine{number: number, narrow: registers[count-2]|registers[count-1] <= math.MaxUint32}
	copy(line.args[:], registers[:count-2])
	return line, nil
}

// parseSwitches reads a status file and returns how often the thread gave up its
// processor (proc_pid_status(5)). The kernel escapes the newlines of the name in there.
func parseSwitches(text []byte) (uint64, error) {
	var sum uint64
	var found int
	for line := range bytes.Lines(text) {
		key, value, ok := bytes.Cut(line, []byte("_ctxt_switches:\t"))
		if !ok || string(key) != "voluntary" && string(key) != "nonvoluntary" {
			continue
		}
		value, ended := bytes.CutSuffix(value, []byte("\n"))
		count, err := decimal(value)
		if err != nil || !ended {
			return 0, errFormat
		}
		sum += count
		found++
	}
	if found != 2 {
		return 0, errFormat
	}
	return sum, nil
}

// An epollMember is one "tfd:" line of /proc/PID/fdinfo/FD of an epoll descriptor,
// see proc_pid_fdinfo(5).
type epollMember struct {
	fd     int
	events uint32
	inode  uint64 // of the file that was added; valid with exact
	exact  bool
}

// parseEpoll returns the members of an epoll set that are waited on for reading.
// Other lines are ignored. The last line counts only if it is ended.
func parseEpoll(text []byte) ([]epollMember, error) {
	var members []epollMember
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("tfd:")) || line[len(line)-1] != '\n' {
			continue
		}
		fields := bytes.Fields(line)
		if len(fields) < 6 || string(fields[2]) != "events:" || string(fields[4]) != "data:" {
			return nil, errFormat
		}
		fd, err := decimal(fields[1])
		if err != nil || fd > math.MaxInt32 {
			return nil, errFormat
		}
		events, err := strconv.ParseUint(string(fields[3]), 16, 32)
		if err != nil {
			return nil, errFormat
		}
		member := epollMember{fd: int(fd), events: uint32(events)}
		for _, field := range fields[6:] {
			hex, ok := bytes.CutPrefix(field, []byte("ino:"))
			if !ok {
				continue
			}
			if member.inode, err = strconv.ParseUint(string(hex), 16, 64); err != nil {
				return nil, errFormat
			}
			member.exact = true
		}
		if member.events&(unix.EPOLLIN|pollNormal) != 0 {
			members = append(members, member)
		}
	}
	return members, nil
}

// pollDescriptors returns the descriptors of an array of struct pollfd (poll(2)) that
// are waited on for reading. Half an entry at the end is left out.
func pollDescriptors(memory []byte) []int {
	var fds []int
	for ; len(memory) >= sizeofPollFd; memory = memory[sizeofPollFd:] {
		fd := int32(binary.NativeEndian.Uint32(memory))
		events := binary.NativeEndian.Uint16(memory[4:])
		if fd >= 0 && events&(unix.POLLIN|pollNormal) != 0 {
			fds = append(fds, int(fd))
		}
	}
	return fds
}

// pollNormal is POLLRDNORM and EPOLLRDNORM, which mean the same as POLLIN to poll(2).
const pollNormal = 0x40

// sizeofPollFd is the size of struct pollfd: an int and two shorts.
const sizeofPollFd = 8

// setDescriptors returns the descriptors below n in the memory of an fd_set: an array
// of longs, of which the kernel copies as many as n needs (select(2)).
func setDescriptors(memory []byte, n int) []int {
	var fds []int
	for word := 0; word*64 < n && len(memory) >= (word+1)*8; word++ {
		bits := binary.NativeEndian.Uint64(memory[word*8:])
		for bit := 0; bits != 0; bit, bits = bit+1, bits>>1 {
			if fd := word*64 + bit; bits&1 != 0 && fd < n {
				fds = append(fds, fd)
			}
		}
	}
	return fds
}

// duration returns the time in the memory of a struct timespec, or of a struct timeval
// if unit is a microsecond. The kernel refuses negative and overlong fractions, so a
// blocked call has none.
func duration(memory []byte, unit time.Duration) (time.Duration, error) {
	if len(memory) < sizeofTimespec {
		return 0, errFormat
	}
	seconds := int64(binary.NativeEndian.Uint64(memory))
	part := int64(binary.NativeEndian.Uint64(memory[8:]))
	if seconds < 0 || part < 0 || part >= int64(time.Second/unit) {
		return 0, errFormat
	}
	if seconds > math.MaxInt64/int64(time.Second)-1 {
		return math.MaxInt64, nil
	}
	return time.Duration(seconds)*time.Second + time.Duration(part)*unit, nil
}

// sizeofTimespec is the size of struct timespec and struct timeval of programs of 64
// bits.
const sizeofTimespec = 16

// residentPages returns nil if every entry of a pagemap says that its page is in memory
// or in swap.
func residentPages(entries []byte) error {
	for ; len(entries) >= 8; entries = entries[8:] {
		if binary.NativeEndian.Uint64(entries)&(pagePresent|pageSwapped) == 0 {
			return errAway
		}
	}
	return nil
}
