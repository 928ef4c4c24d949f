// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// serveArg is the argument with which this program is an exec-server of its own, so that its memory
// can be measured.
const serveArg = "exec-server"

// serveMain is that server.
func serveMain() error {
	dir, err := os.MkdirTemp("", "logs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := options()
	o.Stdout, o.Server.Starts, o.Server.LogDir = os.Stdout, 16, dir
	if left := os.Getenv(leftEnv); left != "" {
		if o.Server.Leftovers, err = process.OpenLeftovers(left); err != nil {
			return err
		}
		defer o.Server.Leftovers.Close()
	}
	if kept := os.Getenv(durableEnv); kept != "" {
		if o.Server.Durable, err = durable.Open(kept); err != nil {
			return err
		}
		defer o.Server.Durable.Close()
	}
	return Run(context.Background(), o)
}

const (
	// codexEnv names the program of the peer's server; without it only ours is measured.
	codexEnv = "SALLYPORT_BENCH_CODEX"
	// outputEnv says how many MiB BenchmarkCompareOutput prints. The figures of the documentation
	// are for 512; without it there are 16.
	outputEnv = "SALLYPORT_BENCH_OUTPUT_MIB"
)

// A rival is a server that is measured.
type rival struct {
	name, url string
	pid       int
}

// rivals starts ours, and the peer's server where it is installed.
func rivals(b *testing.B) []rival {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	lines := []struct {
		name string
		argv []string
	}{{"ours", []string{program, serveArg}},
		{"peer", []string{os.Getenv(codexEnv), "exec-server", "--listen", "ws://127.0.0.1:0",
			"--concurrent-requests", "16"}}}
	var list []rival
	home := b.TempDir()
	for _, line := range lines {
		if line.argv[0] == "" {
			b.Log(codexEnv + " is not set: there is nothing to compare with")
			continue
		}
		cmd := exec.Command(line.argv[0], line.argv[1:]...)
		cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		})
		url, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, rival{line.name, strings.TrimSpace(url), cmd.Process.Pid})
	}
	return list
}

// A racer is a client that looks at nothing but what it needs, so that little of what is measured is
// its own.
type racer struct {
	*webSocket
	quick bool // it acknowledges at once
	n     int
	id    string
}

// race connects and makes or resumes a session. A server may not have seen the end of the connection
// before; then it is asked again.
func race(url string, quick, binary bool, resume string) (*racer, error) {
	text := fmt.Sprintf(`{"id":0,"method":"initialize","params":{"clientName":"bench","binaryOutput":%v}}`, binary)
	if resume != "" {
		text = fmt.Sprintf(`{"id":0,"method":"initialize","params":{"clientName":"bench","resumeSessionId":%q}}`, resume)
	}
	for {
		w, _, err := dial(url, nil)
		if err != nil {
			return nil, err
		}
		r := &racer{webSocket: w, quick: quick}
		if err := r.post(text); err != nil {
			return nil, err
		}
		answer, err := r.next()
		switch {
		case err != nil:
			return nil, err
		case bytes.Contains(answer, []byte("-32010")):
			_ = r.close()
			continue
		}
		_, rest, _ := bytes.Cut(answer, []byte(`"sessionId":"`))
		id, _, ok := bytes.Cut(rest, []byte(`"`))
		if !ok {
			return nil, fmt.Errorf("no session: %s", answer)
		}
		r.id = string(id)
		return r, r.post(`{"method":"initialized"}`)
	}
}

func (r *racer) post(text string) error { return r.send([]byte(text), false) }

// next receives a message, which is valid until the next call.
func (r *racer) next() ([]byte, error) {
	if r.quick {
		if err := quickAck(r.webSocket); err != nil {
			return nil, err
		}
	}
	return r.receive()
}

// quickAck has the system acknowledge what has come, and what comes next, at once. The system
// forgets it after a while, so it is called before every read.
func quickAck(w *webSocket) error {
	tcp, ok := w.Conn.(*net.TCPConn)
	if !ok {
		return errors.New("the connection is not TCP")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP,
			unix.TCP_QUICKACK, 1)
	})
	return errors.Join(err, failed)
}

// until receives until a message has a text.
func (r *racer) until(text string) ([]byte, error) {
	for {
		m, err := r.next()
		if err != nil || bytes.Contains(m, []byte(text)) {
			return m, err
		}
		if bytes.Contains(m[:min(len(m), 12)], []byte(`"error"`)) {
			return nil, fmt.Errorf("error in place of %s: %s", text, m)
		}
	}
}

// start posts a request to start a process, and returns its name.
func (r *racer) start(argv, options string) (string, error) {
	r.n++
	id := fmt.Sprint("p", r.n)
	return id, r.post(fmt.Sprintf(`{"id":%d,"method":"process/start","params":{"processId":%q,"argv":%s,"cwd":"file:///","env":{"PATH":"/usr/bin:/bin"},%s}}`, r.n, id, argv, options))
}

const (
	plain      = `"tty":false`
	piped      = `"tty":false,"pipeStdin":true`
	onTerminal = `"tty":true`
	// readOnly is a sandbox that may only read.
	readOnly = `"tty":false,"sandbox":{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}]},"network":"restricted"},"cwd":"file:///","workspaceRoots":["file:///"],"windowsSandboxLevel":"disabled","useLegacyLandlock":false}`
)

// data returns how many bytes of output a message has.
func data(m []byte) int {
	if o, err := wire.DecodeFrame(m); err == nil {
		return len(o.Chunk.Chunk)
	}
	n := 0
	for {
		_, rest, ok := bytes.Cut(m, []byte(`"chunk":"`))
		if !ok {
			return n
		}
		text, rest, _ := bytes.Cut(rest, []byte(`"`))
		n += base64.StdEncoding.DecodedLen(len(text)) - bytes.Count(text[max(len(text)-2, 0):], []byte("="))
		m = rest
	}
}

// drain receives until a process has printed so many bytes, and its end when over is set. The
// peer's events can come in another order.
func (r *racer) drain(id string, size int, over bool) error {
	named, closed := []byte(id), []byte(`"process/closed"`)
	for got := 0; got < size || over; {
		m, err := r.next()
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", got, err)
		}
		switch head := m[:min(len(m), 300)]; {
		case !bytes.Contains(head, named):
		case bytes.Contains(head, closed):
			over = false
		default:
			got += data(m)
		}
	}
	return nil
}

// variants returns a variant for each server and kind of client; binary ones only of ours.
func variants(b *testing.B, list []rival, binary bool, work func(*racer) error) []e2e.Variant {
	b.Helper()
	var vs []e2e.Variant
	add := func(s rival, quick, binary bool) {
		name := s.name + " ordinary"
		if quick {
			name = s.name + " quick-ack"
		}
		if binary {
			name += " binary"
		}
		r, err := race(s.url, quick, binary, "")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = r.close() })
		vs = append(vs, e2e.Variant{Name: name, Run: func() error { return work(r) }})
	}
	for _, s := range list {
		for _, quick := range []bool{false, true} {
			add(s, quick, false)
			if binary && s.name == "ours" {
				add(s, quick, true)
			}
		}
	}
	return vs
}

// report reports the medians, and ours as a share of the peer's with the same client.
func report(b *testing.B, rounds int, vs []e2e.Variant) {
	b.Helper()
	for b.Loop() {
		times, err := e2e.Rounds(rounds, vs)
		if err != nil {
			b.Fatal(err)
		}
		for i, v := range vs {
			b.Logf("%-22s %10.3f ms", v.Name, float64(e2e.Middle(times[i]).Microseconds())/1e3)
			words := strings.Fields(v.Name)
			peer := slices.IndexFunc(vs, func(v e2e.Variant) bool { return v.Name == "peer "+words[1] })
			if words[0] == "ours" && peer >= 0 {
				b.ReportMetric(e2e.Ratio(times[i], times[peer]), strings.Join(words[1:], "-")+"-x")
			}
		}
	}
}

// BenchmarkCompareStart guards: from process/start of /bin/true to process/exited takes at most 0.1
// of the peer's time for an ordinary client and 0.5 for one that acknowledges at once; in a sandbox
// 0.15 and 0.5. Sixteen at once have four times the rate.
func BenchmarkCompareStart(b *testing.B) {
	one := func(options string) func(*racer) error {
		return func(r *racer) error {
			_, err := r.start(`["/bin/true"]`, options)
			if err == nil {
				_, err = r.until(`"process/exited"`)
			}
			return err
		}
	}
	b.Run("plain", func(b *testing.B) { report(b, 100, variants(b, rivals(b), false, one(plain))) })
	b.Run("sandbox", func(b *testing.B) {
		testenv.NeedUserNS(b)
		report(b, 40, variants(b, rivals(b), false, one(readOnly)))
	})
	b.Run("16-in-flight", func(b *testing.B) {
		report(b, 7, variants(b, rivals(b), false, func(r *racer) error {
			for range 16 {
				if _, err := r.start(`["/bin/true"]`, plain); err != nil {
					return err
				}
			}
			for ended := range 200 {
				if _, err := r.until(`"process/exited"`); err != nil {
					return err
				}
				if ended < 200-16 {
					if _, err := r.start(`["/bin/true"]`, plain); err != nil {
						return err
					}
				}
			}
			return nil
		}))
	})
}

// BenchmarkCompareEcho guards: from process/write of a line to the first output of cat on a terminal
// takes at most 0.02 of the peer's time for an ordinary client and 1.5 for one that acknowledges at
// once.
func BenchmarkCompareEcho(b *testing.B) {
	type cat struct {
		id string
		n  int
	}
	cats := make(map[*racer]*cat)
	report(b, 100, variants(b, rivals(b), false, func(r *racer) error {
		c := cats[r]
		if c == nil {
			id, err := r.start(`["cat"]`, onTerminal)
			if err == nil {
				_, err = r.until(`"sandboxType"`)
			}
			if err != nil {
				return err
			}
			c = &cat{id: id}
			cats[r] = c
		}
		c.n++
		err := r.post(fmt.Sprintf(`{"id":"w%d","method":"process/write","params":{"processId":%q,"chunk":"eA==","writeId":"w%d"}}`, c.n, c.id, c.n))
		if err == nil {
			err = r.drain(c.id, 1, false)
		}
		return err
	}))
}

// BenchmarkCompareOutput guards: 512 MiB of output, of which every byte arrives, take at most 0.6 of
// the peer's time in base64, and 0.35 in binary messages.
func BenchmarkCompareOutput(b *testing.B) {
	mib := 16
	if text := os.Getenv(outputEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			b.Fatalf("%s is %q, which is no number of MiB", outputEnv, text)
		}
		mib = n
	}
	for name, options := range map[string]string{"pipe": plain, "terminal": onTerminal} {
		b.Run(name, func(b *testing.B) {
			report(b, 3, variants(b, rivals(b), true, func(r *racer) error {
				id, err := r.start(fmt.Sprintf(`["head","-c","%d","/dev/zero"]`, mib<<20), options)
				if err == nil {
					err = r.drain(id, mib<<20, true)
				}
				return err
			}))
		})
	}
}

// BenchmarkCompareResume guards: from the cut of a connection until the session is resumed and 1 MiB
// of output was read again takes at most 20 ms.
func BenchmarkCompareResume(b *testing.B) {
	const size = 1 << 20
	var vs []e2e.Variant
	for _, s := range rivals(b) {
		r, err := race(s.url, true, false, "")
		if err != nil {
			b.Fatal(err)
		}
		id, err := r.start(fmt.Sprintf(`["sh","-c","head -c %d /dev/zero; cat"]`, size), piped)
		if err == nil {
			err = r.drain(id, size, false)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = r.close() })
		vs = append(vs, e2e.Variant{Name: s.name + " quick-ack", Run: func() error {
			if err := r.close(); err != nil {
				return err
			}
			var err error
			if r, err = race(s.url, true, false, r.id); err != nil {
				return err
			}
			if err := r.post(fmt.Sprintf(`{"id":1,"method":"process/read","params":{"processId":%q,"afterSeq":0}}`, id)); err != nil {
				return err
			}
			m, err := r.until(`"chunks"`)
			if n := data(m); err == nil && n < size-64<<10 {
				// a chunk that is cut at the bound of what is retained
				err = fmt.Errorf("%d bytes were read", n)
			}
			return err
		}})
	}
	report(b, 30, vs)
}

// BenchmarkCompareMemory guards: the server takes at most 40 MiB idle, 40 KiB for each of 256 idle
// processes, and 64 MiB while a process floods.
func BenchmarkCompareMemory(b *testing.B) {
	for _, s := range rivals(b) {
		b.Run(s.name, func(b *testing.B) {
			r, err := race(s.url, true, false, "")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = r.close() }()
			idle := memory(b, s.pid, "VmRSS")
			for range 255 {
				if _, err := r.start(`["cat"]`, piped); err != nil {
					b.Fatal(err)
				}
				if _, err := r.until(`"sandboxType"`); err != nil {
					b.Fatal(err)
				}
			}
			many := memory(b, s.pid, "VmRSS")
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0); err != nil {
				b.Fatal(err)
			}
			id, err := r.start(`["head","-c","536870912","/dev/zero"]`, plain)
			if err == nil {
				err = r.drain(id, 512<<20, true)
			}
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() { //nolint:revive // what is measured is not time
			}
			b.ReportMetric(float64(idle)/1024, "MiB-idle")
			b.ReportMetric(float64(many-idle)/255, "KiB/process")
			b.ReportMetric(float64(memory(b, s.pid, "VmHWM"))/1024, "MiB-flood")
		})
	}
}

// memory returns a figure of a process in KiB.
func memory(b *testing.B, pid int, name string) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	n := 0
	if _, err := fmt.Sscan(rest, &n); err != nil {
		b.Fatal(err)
	}
	return n
}
