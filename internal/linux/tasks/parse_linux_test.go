// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// allow makes unexported fields visible to cmp.
var allow = cmp.AllowUnexported(statLine{}, callLine{}, epollMember{}, socket{})

const statTail = " S 2 3 4 34816 6 7 8 9 10 11 12 13 14 15 16 17 5 0 123456 22\n"

func TestParseStat(t *testing.T) {
	want := statLine{state: 'S', group: 3, session: 4, terminal: 34816, threads: 5, start: 123456}
	tests := []struct {
		name, text, program string
		bad                 bool
	}{
		{name: "plain", text: "1 (cat)" + statTail, program: "cat"},
		{name: "empty name", text: "1 ()" + statTail},
		{name: "parentheses", text: "1 (a) R 1 (b)" + statTail, program: "a) R 1 (b"},
		{name: "newline", text: "1 (a\nb)" + statTail, program: "a\nb"},
		{name: "bytes", text: "1 (\xff\x00 )" + statTail, program: "\xff\x00 "},
		{name: "longest name", text: "1 (" + strings.Repeat("x", maxName) + ")" + statTail, program: strings.Repeat("x", maxName)},
		{name: "name too long", text: "1 (" + strings.Repeat("x", maxName+1) + ")" + statTail, bad: true},
		{name: "nothing", bad: true},
		{name: "cut", text: "1 (cat)" + statTail[:30], bad: true},
		{name: "no newline", text: "1 (cat)" + strings.TrimSuffix(statTail, "\n"), bad: true},
		{name: "no number", text: "x (cat)" + statTail, bad: true},
		{name: "no name", text: "1 cat" + statTail, bad: true},
		{name: "parentheses turned", text: "1 )cat(" + statTail, bad: true},
		{name: "long state", text: "1 (cat)" + strings.Replace(statTail, "S", "SS", 1), bad: true},
		{name: "negative group", text: "1 (cat)" + strings.Replace(statTail, " 3 ", " -3 ", 1), bad: true},
		{name: "huge group", text: "1 (cat)" + strings.Replace(statTail, " 3 ", " 4294967296 ", 1), bad: true},
		{name: "terminal that is none", text: "1 (cat)" + strings.Replace(statTail, "34816", "tty", 1), bad: true},
		{name: "start that is none", text: "1 (cat)" + strings.Replace(statTail, "123456", "0x12", 1), bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseStat([]byte(test.text))
			if test.bad {
				if !errors.Is(err, errFormat) {
					t.Errorf("%+v, %v; want an error", got, err)
				}
				return
			}
			want := want
			want.name = test.program
			if diff := cmp.Diff(want, got, allow); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseCall(t *testing.T) {
	const registers = "0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd1f4483a8 0x7fb43311c2ad\n"
	six := [6]uint64{1, 2, 3, 4, 5, 6}
	tests := []struct {
		name, text string
		want       callLine
		bad        bool
	}{
		{name: "running", text: "running\n", want: callLine{running: true, number: -1}},
		{name: "call", text: "270 " + registers, want: callLine{number: 270, args: six}},
		{name: "no call", text: "-1 0x7ffd1f4483a8 0x7fb43311c2ad\n", want: callLine{number: -1}},
		{name: "largest", text: "0 0xffffffffffffffff " + registers[4:], want: callLine{args: [6]uint64{math.MaxUint64, 2, 3, 4, 5, 6}}},
		{name: "32 bits", text: "3 0x1 0x2 0x3 0x4 0x5 0x6 0xffc01234 0xf7f01234\n", want: callLine{number: 3, args: six, narrow: true}},
		{name: "code below 4 GiB", text: "3 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd1f4483a8 0x401000\n", want: callLine{number: 3, args: six}},
		{name: "nothing", bad: true},
		{name: "empty line", text: "\n", bad: true},
		{name: "no newline", text: "running", bad: true},
		{name: "too few", text: "270 0x1 0x2\n", bad: true},
		{name: "too many", text: "270 0x1 " + registers, bad: true},
		{name: "too many without a call", text: "-1 " + registers, bad: true},
		{name: "no prefix", text: "270 1 " + registers[4:], bad: true},
		{name: "sign", text: "270 0x-1 " + registers[4:], bad: true},
		{name: "overflow", text: "270 0x10000000000000000 " + registers[4:], bad: true},
		{name: "two spaces", text: "270  " + registers, bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseCall([]byte(test.text))
			if test.bad {
				if !errors.Is(err, errFormat) {
					t.Errorf("%+v, %v; want an error", got, err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got, allow); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseSwitches(t *testing.T) {
	const status = "Name:\ta\\nvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n"
	tests := []struct {
		name, text string
		want       uint64
		bad        bool
	}{
		{name: "switches", text: status, want: 7},
		{name: "half of the switches", text: status[:len(status)-30], bad: true},
		{name: "switches cut", text: status[:len(status)-1], bad: true},
		{name: "switches twice", text: status + status, bad: true},
		{name: "nothing", bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseSwitches([]byte(test.text))
			if got != test.want || errors.Is(err, errFormat) != test.bad {
				t.Errorf("%d, %v; want %d", got, err, test.want)
			}
		})
	}
}

func TestParseEpoll(t *testing.T) {
	tests := []struct {
		name, text string
		want       []epollMember
		bad        bool
	}{
		{name: "empty set", text: "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1060\n"},
		{name: "member", text: "pos:\t0\ntfd:        5 events:       19 data:                5  pos:0 ino:61 sdev:1d\n",
			want: []epollMember{{fd: 5, events: 0x19, inode: 0x61, exact: true}}},
		{name: "old kernel", text: "tfd:        5 events:       19 data:                5\n", want: []epollMember{{fd: 5, events: 0x19}}},
		{name: "urgent only", text: "tfd:        5 events:       1a data:                5\n"},
		{name: "normal data", text: "tfd:        5 events:       40 data:                5\n", want: []epollMember{{fd: 5, events: 0x40}}},
		{name: "used up", text: "tfd:        5 events: 40000000 data:                5\n"},
		{name: "cut", text: "tfd:        5 events:       19 data:      "},
		{name: "no descriptor", text: "tfd: x events: 19 data: 5\n", bad: true},
		{name: "descriptor too large", text: "tfd: 4294967296 events: 19 data: 5\n", bad: true},
		{name: "no events", text: "tfd: 5 19 data: 5 6 7\n", bad: true},
		{name: "too many events", text: "tfd: 5 events: 100000000 data: 5\n", bad: true},
		{name: "bad inode", text: "tfd: 5 events: 19 data: 5 pos:0 ino:x sdev:1\n", bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseEpoll([]byte(test.text))
			if diff := cmp.Diff(test.want, got, allow); diff != "" || errors.Is(err, errFormat) != test.bad {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDescriptors(t *testing.T) {
	pollfd := func(fd int32, events uint16) []byte {
		entry := binary.NativeEndian.AppendUint32(nil, uint32(fd))
		return append(binary.NativeEndian.AppendUint16(entry, events), 0xff, 0xff)
	}
	words := func(values ...uint64) (memory []byte) {
		for _, value := range values {
			memory = binary.NativeEndian.AppendUint64(memory, value)
		}
		return memory
	}
	tests := []struct {
		name string
		got  []int
		want []int
	}{
		{name: "poll", got: pollDescriptors(bytes.Join([][]byte{pollfd(3, 1), pollfd(4, 4), pollfd(-1, 1), pollfd(5, 0x41), pollfd(6, 2)}, nil)), want: []int{3, 5}},
		{name: "half an entry", got: pollDescriptors(pollfd(3, 1)[:7])},
		{name: "set", got: setDescriptors(words(1<<0|1<<63, 1<<1), 128), want: []int{0, 63, 65}},
		{name: "set ends", got: setDescriptors(words(1<<0|1<<5), 5), want: []int{0}},
		{name: "short memory", got: setDescriptors(words(1), 1024), want: []int{0}},
		{name: "none", got: setDescriptors(words(math.MaxUint64), 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	tests := []struct {
		name          string
		seconds, part int64
		unit          time.Duration
		want          time.Duration
		bad           bool
	}{
		{name: "nanoseconds", seconds: 1, part: 5, unit: time.Nanosecond, want: time.Second + 5},
		{name: "microseconds", seconds: 1, part: 5, unit: time.Microsecond, want: time.Second + 5000},
		{name: "longest", seconds: math.MaxInt64, unit: time.Nanosecond, want: math.MaxInt64},
		{name: "negative", seconds: -1, unit: time.Nanosecond, bad: true},
		{name: "negative part", part: -1, unit: time.Nanosecond, bad: true},
		{name: "a whole second of microseconds", part: 1_000_000, unit: time.Microsecond, bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			memory := binary.NativeEndian.AppendUint64(nil, uint64(test.seconds))
			memory = binary.NativeEndian.AppendUint64(memory, uint64(test.part))
			got, err := duration(memory, test.unit)
			if got != test.want || errors.Is(err, errFormat) != test.bad {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
			if _, err := duration(memory[:15], test.unit); !errors.Is(err, errFormat) {
				t.Errorf("half a time: %v", err)
			}
		})
	}
}

func TestResidentPages(t *testing.T) {
	entries := func(values ...uint64) (memory []byte) {
		for _, value := range values {
			memory = binary.NativeEndian.AppendUint64(memory, value)
		}
		return memory
	}
	if err := residentPages(entries(pagePresent|1, pageSwapped)); err != nil {
		t.Error(err)
	}
	if err := residentPages(entries(pagePresent, 1<<61)); !errors.Is(err, errAway) {
		t.Errorf("a page that is away: %v", err)
	}
}

func TestShortWait(t *testing.T) {
	const ms = time.Millisecond
	for w, want := range map[wait]bool{
		{}: false, {timed: true}: true, {timed: true, timeout: 49 * ms}: true,
		{timed: true, timeout: 50 * ms}: false, {timed: true, timeout: 100 * ms}: false,
	} {
		if got := w.short(); got != want {
			t.Errorf("%+v is short: %v", w, got)
		}
	}
}

func TestPollChannel(t *testing.T) {
	for name, want := range map[string]bool{
		"do_poll": true, "do_sys_poll": true, "poll_schedule_timeout": true, "poll_schedule_timeout.constprop.0": true,
		"": false, "0": false, "hrtimer_nanosleep": false, "do_poller": false, "futex_wait_queue": false,
	} {
		if got := pollChannel(name); got != want {
			t.Errorf("pollChannel(%q) is %v", name, got)
		}
	}
}

const tableHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

const table = tableHead +
	"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0\n" +
	"   1: 0100007F:0016 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1\n"

func TestParseSockets(t *testing.T) {
	six := strings.Replace(table, "0100007F:1F90 00000000:0000", strings.Repeat("0", 32)+":FFFF "+
		strings.Repeat("0", 32)+":0000", 1)
	tests := []struct {
		name, text string
		want       []socket
		bad        bool
	}{
		{name: "version 4", text: table, want: []socket{{port: 8080, loopback: true, inode: 4711}}},
		{name: "version 6", text: six, want: []socket{{port: 65535, loopback: true, inode: 4711}}},
		{name: "no sockets", text: tableHead},
		{name: "nothing", bad: true},
		{name: "cut", text: table[:len(table)-1], want: []socket{{port: 8080, loopback: true, inode: 4711}}, bad: true},
		{name: "half a line", text: tableHead + "   0: 0100007F:1F90 00000000:0000 0A\n", bad: true},
		{name: "long port", text: strings.Replace(table, "1F90", "1F900", 1), bad: true},
		{name: "long address", text: strings.Replace(table, "0100007F:1F90", "0100007F00:1F90", 1), bad: true},
		{name: "long state", text: strings.Replace(table, " 0A ", " 10A ", 1), bad: true},
		{name: "inode of letters", text: strings.Replace(table, "4711", "x", 1), bad: true},
		{name: "endless line", text: tableHead + strings.Repeat("x", 1<<20), bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseSockets(strings.NewReader(test.text), nil)
			if diff := cmp.Diff(test.want, got, allow); diff != "" || errors.Is(err, errFormat) != test.bad {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			slow, err := parseSockets(iotest.OneByteReader(strings.NewReader(test.text)), nil)
			if diff := cmp.Diff(test.want, slow, allow); diff != "" || errors.Is(err, errFormat) != test.bad {
				t.Errorf("byte by byte: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseSocketLink(t *testing.T) {
	for text, want := range map[string]uint64{
		"socket:[12]": 12, "socket:[0]": 0, "socket:[]": 0, "socket:[x]": 0, "socket:[12": 0, "/socket:[12]": 0, "pipe:[12]": 0,
		"socket:[99999999999999999999999]": 0,
	} {
		if got, ok := parseSocketLink([]byte(text)); ok != (want > 0) || ok && got != want {
			t.Errorf("%q is %d, %v", text, got, ok)
		}
	}
}

// seed adds the kernel's own files to a corpus.
func seed(f *testing.F, names ...string) {
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	seed(f, "/proc/self/stat", "/proc/1/stat")
	f.Add([]byte("1 (a) b (\n)" + statTail))
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := parseStat(text)
		if err == nil && (len(line.name) > maxName || line.group < 0 || line.session < 0 ||
			line.threads < 0) {
			t.Errorf("%q: %+v", text, line)
		}
	})
}

func FuzzParseCall(f *testing.F) {
	seed(f, "/proc/self/syscall", "/proc/1/syscall")
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := parseCall(text)
		if err == nil && line.running && line.number != -1 {
			t.Errorf("%q: %+v", text, line)
		}
		if kind := callOf(line.number); line.number < 0 && kind != callOther && kind != callForeign {
			t.Errorf("call %d is of kind %v", line.number, kind)
		}
	})
}

func FuzzParseSwitches(f *testing.F) {
	seed(f, "/proc/self/status")
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, err := parseSwitches(text); err != nil && n != 0 {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	})
}

func FuzzParseEpoll(f *testing.F) {
	f.Add([]byte("pos:\t0\ntfd:        5 events:       19 data:                5  pos:0 ino:61 sdev:1d\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		members, _ := parseEpoll(text)
		if len(members) > bytes.Count(text, []byte("tfd:")) {
			t.Errorf("%q: %+v", text, members)
		}
		for _, member := range members {
			if member.fd < 0 {
				t.Errorf("%q: %+v", text, member)
			}
		}
	})
}

func FuzzDescriptors(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0, 0xff}, 64)
	f.Fuzz(func(t *testing.T, memory []byte, n int) {
		for _, fd := range pollDescriptors(memory) {
			if fd < 0 {
				t.Errorf("descriptor %d", fd)
			}
		}
		for _, fd := range setDescriptors(memory, n) {
			if fd < 0 || fd >= n {
				t.Errorf("descriptor %d of %d", fd, n)
			}
		}
		if d, err := duration(memory, time.Microsecond); err == nil && d < 0 {
			t.Errorf("duration %v", d)
		}
	})
}

func FuzzParseSockets(f *testing.F) {
	seed(f, "/proc/net/tcp", "/proc/net/tcp6")
	f.Add([]byte(table))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, errWhole := parseSockets(bytes.NewReader(text), nil)
		parts, errParts := parseSockets(iotest.HalfReader(bytes.NewReader(text)), nil)
		if diff := cmp.Diff(whole, parts, allow); diff != "" || (errWhole == nil) != (errParts == nil) {
			t.Errorf("%v, %v: (-whole +parts):\n%s", errWhole, errParts, diff)
		}
		for _, s := range whole {
			if s.port < 0 || s.port > math.MaxUint16 {
				t.Errorf("port %d", s.port)
			}
		}
		parseSocketLink(text)
	})
}
