// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spec is what is recorded.
func spec() *executor.Spec {
	return &executor.Spec{Args: []string{"sh", "-c", "a \"b\""}, TTY: &executor.Size{Cols: 90},
		Env: []string{"SHELL=/bin/sh", "TERM=xterm", "SECRET=no"}}
}

// record records to a file what do does, and returns its lines without times.
func record(t *testing.T, o Options, do func(r *Recorder)) ([]string, event.Recorded) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.cast")
	o.Open = func() (*os.File, error) { return os.Create(path) }
	r := New(o)
	r.Begin(spec())
	do(r)
	made := r.End(3)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	if made.Path != path || made.Bytes != int64(len(file)) || made.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("it is %+v, for %d bytes with the sum %x", made, len(file), sum)
	}
	if o.MaxSize > 0 && made.Bytes > o.MaxSize {
		t.Errorf("%d bytes are more than %d", made.Bytes, o.MaxSize)
	}
	times := regexp.MustCompile(`(?m)^\[\d+\.\d{6}, |"timestamp":\d{10}`)
	text := times.ReplaceAllString(string(file), "")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), made
}

// TestRecorder holds what is written, line by line.
func TestRecorder(t *testing.T) {
	const v3 = `{"version":3,"term":{"cols":90,"rows":24,"type":"xterm"},,"command":"sh -c a \"b\"","env":{"SHELL":"/bin/sh"}}`
	const v2 = `{"version":2,"width":90,"height":24,,"command":"sh -c a \"b\"","title":"T","env":{"SHELL":"/bin/sh","TERM":"xterm"}}`
	for _, test := range []struct {
		name   string
		o      Options
		do     func(r *Recorder)
		want   []string
		hidden int64
	}{
		{"nothing", Options{}, func(*Recorder) {}, []string{v3, `"x", "3"]`}, 0},
		{"version 2", Options{Format: V2, Title: "T"}, func(r *Recorder) { r.Output([]byte("a"), nil) }, []string{v2, `"o", "a"]`}, 0},
		{"all events", Options{}, func(r *Recorder) {
			r.Output([]byte("\x1b[1mé\r\n\t\"\\\x00\x7f"), nil)
			r.Input([]byte("ls\r"), executor.EchoOn)
			r.Resize(executor.Size{Cols: 100, Rows: 50})
			r.Mark("denied: write /x")
		}, []string{v3, `"o", "\u001b[1mé\r\n\t\"\\\u0000` + "\x7f" + `"]`, `"i", "ls\r"]`, `"r", "100x50"]`,
			`"m", "denied: write /x"]`, `"x", "3"]`}, 0},
		{"a character in pieces", Options{}, func(r *Recorder) {
			r.Output([]byte("a\xe2\x82"), nil)
			r.Output([]byte("\xacb\xe2"), nil)
		}, []string{v3, `"o", "a"]`, `"o", "€b"]`, `"o", "` + "\ufffd" + `"]`, `"x", "3"]`}, 0},
		{"bytes that are no characters", Options{}, func(r *Recorder) { r.Output([]byte("a\xff\xe2\x82b\xed\xa0\x80"), nil) },
			[]string{v3, `"o", "a` + strings.Repeat("\ufffd", 2) + "b" + strings.Repeat("\ufffd", 3) + `"]`, `"x", "3"]`}, 0},
		{"a password", Options{}, func(r *Recorder) {
			r.Input([]byte("sec"), executor.EchoOff)
			r.Input([]byte("ret\n"), executor.EchoOff)
			r.Input([]byte("ok\n"), executor.EchoOn)
		}, []string{v3, `"m", "input that is not shown"]`, `"i", "ok\n"]`, `"x", "3"]`}, 1},
		{"a password without its end", Options{}, func(r *Recorder) { r.Input([]byte("sec"), executor.EchoOff) },
			[]string{v3, `"m", "input that is not shown"]`, `"x", "3"]`}, 1},
		{"keys that the program shows itself", Options{}, func(r *Recorder) {
			r.Input([]byte("l"), executor.EchoKeys)
			r.Input([]byte("s\r"), executor.EchoKeys)
		}, []string{v3, `"x", "3"]`}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines, made := record(t, test.o, test.do)
			if got, want := strings.Join(lines, "\n"), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			want := event.Recorded{Path: made.Path, Format: test.o.Format.String(), SHA256: made.SHA256,
				Bytes: made.Bytes, Hidden: test.hidden}
			if made != want {
				t.Errorf("it is %+v", made)
			}
		})
	}
}

// TestRecorderFull: what finds no room is counted, and the end is there all the same.
func TestRecorderFull(t *testing.T) {
	piece := bytes.Repeat([]byte("0123456789"), 100)
	lines, made := record(t, Options{MaxSize: 8 << 10}, func(r *Recorder) {
		for range 100 {
			r.Output(piece, nil)
		}
		r.Mark("late")
	})
	kept := len(lines) - 3
	if kept < 2 || made.Gaps != int64((100-kept)*len(piece)) || made.Error != "" {
		t.Errorf("%d lines and %+v", len(lines), made)
	}
	end := fmt.Sprintf("\"m\", \"%d bytes of output are missing\"]\n\"x\", \"3\"]", made.Gaps)
	if got := strings.Join(lines[len(lines)-2:], "\n"); got != end {
		t.Errorf("it ends with\n%s\nnot\n%s", got, end)
	}
}

// TestRecorderFails: a disk that fails ends the recording at the end of a line, and blocks nobody.
func TestRecorderFails(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Open: func() (*os.File, error) { return writer, nil }})
	r.Begin(spec())
	head := make(chan []byte)
	go func() {
		b := make([]byte, 1<<20)
		n, _ := io.ReadFull(reader, b)
		_ = reader.Close()
		head <- b[:n]
	}()
	line := bytes.Repeat([]byte("x"), 999)
	for range 4 * maxWaiting / 1000 {
		r.Output(line, nil)
	}
	made := r.End(0)
	got := <-head
	if made.Error == "" || made.Gaps == 0 || made.Bytes == 0 {
		t.Fatalf("it is %+v", made)
	}
	// What the pipe had taken beyond what was read is lost with it.
	n := min(int(made.Bytes), len(got))
	if n == int(made.Bytes) {
		if sum := sha256.Sum256(got[:n]); got[n-1] != '\n' || hex.EncodeToString(sum[:]) != made.SHA256 {
			t.Errorf("it is %+v, not of whole lines", made)
		}
	}
	r.Output(line, nil)
	r.Mark("late")
}

// TestRecorderWaits: the command waits for the disk, and not when it is stopped.
func TestRecorderWaits(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	for _, test := range []struct {
		name    string
		stopped chan struct{}
	}{{"it runs", nil}, {"it is stopped", stopped}} {
		t.Run(test.name, func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r := New(Options{Open: func() (*os.File, error) { return writer, nil }})
			r.Begin(spec())
			var file bytes.Buffer
			copied := make(chan error, 1)
			read := func() { _, err := file.ReadFrom(reader); copied <- err }
			if test.stopped == nil {
				go read()
			}
			line := bytes.Repeat([]byte("x"), 1000)
			n := int64(0)
			for ; n < 8*maxWaiting; n += 1000 {
				r.Output(line, test.stopped)
			}
			if test.stopped != nil {
				go read()
			}
			made := r.End(0)
			if err := <-copied; err != nil {
				t.Fatal(err)
			}
			_ = reader.Close()
			kept := int64(bytes.Count(file.Bytes(), []byte(`"o"`)) * 1000)
			if made.Error != "" || made.Gaps != n-kept || made.Bytes != int64(file.Len()) ||
				(made.Gaps > 0) != (test.stopped != nil) {
				t.Errorf("it is %+v, with %d of %d bytes", made, kept, n)
			}
		})
	}
}

// TestRecorderMisused: methods in another order do no harm.
func TestRecorderMisused(t *testing.T) {
	broken := errors.New("no disk")
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"no file", Options{}, errNoOpen.Error()},
		{"a file that cannot be made", Options{Open: func() (*os.File, error) { return nil, broken }}, "no disk"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := New(test.o)
			r.Mark("early")
			r.Output([]byte("early"), nil)
			r.Begin(spec())
			r.Output([]byte("x"), nil)
			r.Input([]byte("x"), executor.EchoOn)
			r.Resize(executor.Size{})
			if made := r.End(0); made.Error != test.want || made.Gaps != 6 {
				t.Errorf("it is %+v", made)
			}
		})
	}
	t.Run("used twice", func(t *testing.T) {
		r := New(Options{Open: func() (*os.File, error) { return os.Create(filepath.Join(t.TempDir(), "a")) }})
		r.Begin(spec())
		first := r.End(0)
		r.Begin(spec())
		if made := r.End(0); first.Error != "" || made.Error != errUsed.Error() {
			t.Errorf("it is %+v, then %+v", first, made)
		}
	})
}

// TestRecorderConcurrent: lines stay whole, and all are there.
func TestRecorderConcurrent(t *testing.T) {
	const each, many = 200, 8
	lines, _ := record(t, Options{MaxSize: -1}, func(r *Recorder) {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				for range each {
					switch i % 4 {
					case 0:
						r.Output(bytes.Repeat([]byte("o"), 100), nil)
					case 1:
						r.Input([]byte("i"), executor.EchoOn)
					case 2:
						r.Mark("m")
					default:
						r.Resize(executor.Size{})
					}
				}
			})
		}
		all.Wait()
	})
	if len(lines) != each*many+2 {
		t.Errorf("there are %d lines", len(lines))
	}
	whole := regexp.MustCompile(`^"(o", "o{100}"|i", "i"|m", "m"|r", "80x24"|x", "3")\]$`)
	for _, line := range lines[1:] {
		if !whole.MatchString(line) {
			t.Fatalf("a line is %.60s", line)
		}
	}
}
