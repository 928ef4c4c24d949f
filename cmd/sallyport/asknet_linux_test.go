// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// What a person sees who is asked about a host.
const (
	hostQuestion = `may this command reach a host\?(?s:.*)would open: the host new\.invalid:443\r\n(?s:.*)`
	choicesHost  = `\[y\] once  \[s\] for this session  \[h\] remember the host  ` +
		`\[p\] always in this project  \[n\] deny  \[a\] abort  > $`
)

// tunnels is a command that asks its proxy for a host so many times. Once it is allowed, the answer is
// another one: the name has no address.
func tunnels(act string, times int) string {
	return act + strings.Repeat(" tunnel new.invalid:443", times)
}

// TestAskNet: a person in front of the terminal is asked once about a host, while the command runs,
// and the command goes on with the answer.
func TestAskNet(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	act := placeAct(t) + "/act"
	const refused, open = "403 blocked-by-allowlist", "502 "
	for _, test := range []struct {
		name  string
		keys  string
		flags []string
		code  int
		want  string
	}{
		{"its own terminal, y", "y\r", []string{"-t"}, 0, open},
		{"its own terminal, n", "n\r", []string{"-t"}, 0, refused},
		{"its own terminal, a", "a\r", []string{"-t"}, 123, ""},
		{"its own terminal, end of file", "\x04", []string{"-t"}, 0, refused},
		{"ours, y", "y\r", []string{"-t=false"}, 0, open},
		{"ours, n", "n\r", []string{"-t=false"}, 0, refused},
		{"--json, s", "s\r", []string{"--json"}, 0, open},
		{"--json, n", "n\r", []string{"--json"}, 0, refused},
		{"never", "", []string{"-t", "-a", "never"}, 0, refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			words := append([]string{"--ask-net"}, test.flags...)
			x, out := d.asksOnce(t, append(words, "-c", "echo begin; "+tunnels(act, 3)),
				hostQuestion+choicesHost, test.keys, test.code)
			seen := x.Transcript() + out
			want := 3
			if test.flags[0] == "--json" {
				want = 6 // in stdout and in output
			}
			if n := strings.Count(seen, test.want); test.want != "" && n != want ||
				!strings.Contains(seen, "begin") {
				t.Errorf("%q %d times", test.want, n)
			}
			if n := strings.Count(seen, "may this command reach"); n > 1 {
				t.Errorf("asked %d times", n)
			}
			if t.Failed() {
				t.Logf("seen:\n%s", seen)
			}
		})
	}
}

// TestAskNetRemembers: the answer h is a rule, which later runs follow without a question.
func TestAskNetRemembers(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	act := placeAct(t) + "/act"
	x := d.run(t, "-t", "--ask-net", "-c", tunnels(act, 1))
	x.Expect(`host that can be remembered: new\.invalid, for https, on every port\r\n`)
	x.Expect(choicesHost)
	x.Send("h\r")
	x.Expect("502 ")
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x = d.run(t, "-t", "--net", "proxy", "-c", tunnels(act, 1))
	x.Expect("502 ")
	x.Wait()
	rules := x.Transcript()
	if strings.Contains(rules, "may this command") {
		t.Errorf("asked again:\n%s", rules)
	}
}

// TestAskNetKeeps: the answer p adds the host to the settings of the project, which later runs follow
// without a question.
func TestAskNetKeeps(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	act := placeAct(t) + "/act"
	x := d.run(t, "-t", "--ask-net", "-c", tunnels(act, 2))
	x.Expect(choicesHost)
	x.Send("p\r")
	x.Expect("502 \r\n502 ")
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	settings, err := os.ReadFile(filepath.Join(d.work, ".sallyport", "config.toml"))
	if want := "[project]\nhosts = [\"new.invalid:443\"]\n"; !strings.Contains(string(settings), want) || err != nil {
		t.Errorf("%q, %v, want %q", settings, err, want)
	}
	x = d.run(t, "-t", "-c", tunnels(act, 1))
	x.Expect("502 ")
	x.Wait()
	if said := x.Transcript(); strings.Contains(said, "may this command") {
		t.Errorf("asked again:\n%s", said)
	}
}

// TestAskNetDefault: on a terminal it is asked about hosts with a managed network, but not where
// settings say no.
func TestAskNetDefault(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	act := placeAct(t) + "/act"
	x := d.run(t, "-t", "--net", "proxy", "-c", tunnels(act, 1))
	x.Expect(choicesHost)
	x.Send("n\r")
	x.Expect("403 blocked-by-allowlist")
	x.Wait()
	config := filepath.Join(d.work, "..", "no.toml")
	must(t, os.WriteFile(config, []byte("network.ask = false\n"), 0o600))
	x = d.run(t, "-t", "--net", "proxy", "-a", "on-request", "--config", config, "-c", tunnels(act, 1)+"; exit 0")
	x.Expect("403 blocked-by-allowlist")
	x.Wait()
	if said := x.Transcript(); strings.Contains(said, "may this command") {
		t.Errorf("asked:\n%s", said)
	}
}

// TestAskNetCover: a command that writes to the terminal without an end can neither write over the
// question nor behind it.
func TestAskNetCover(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	act := placeAct(t) + "/act"
	for _, flag := range []string{"-t", "-t=false"} {
		t.Run(flag, func(t *testing.T) {
			d := newDesk(t)
			cover := `(while :; do printf '\033[2J\033[HFAKE\r\n'; done) & ` + tunnels(act, 1) + "; kill $!"
			x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--ask-net", flag, "-c", cover),
				viewCols, viewRows)
			x.Expect(choicesHost)
			if v := view(x); !strings.Contains(v.String(), "may this command reach a host?") ||
				!strings.HasSuffix(strings.TrimSpace(v.String()), ">") {
				t.Errorf("shown:\n%s", v)
			}
			x.Send("n\r")
			x.Wait()
			// The terminal echoes the answer before anything else comes.
			if after := regexp.MustCompile(`\[a\] abort  > (?s:(.{3}))`).FindStringSubmatch(x.Transcript()); after == nil || after[1] != "n\r\n" {
				t.Errorf("behind the question: %q", after)
			}
		})
	}
}

// TestAskNetScreen: a program with a screen of its own makes room for the question, and gets its screen
// and its modes back.
func TestAskNetScreen(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	act := placeAct(t) + "/act"
	// Bash performs no trap while it reads, and the refused program may have ended before the screen is
	// given back.
	script := `trap 'drawn=1; printf "REDRAWN $(stty size)"' WINCH; printf '\033[?1049h\033[?25l\033[?2004hDRAWN'; ` + tunnels(act, 1) + ` >/dev/null & while kill -0 $! 2>/dev/null; do sleep 0.01; done; until [ "$drawn" ]; do sleep 0.01; done; read x; printf '\033[?1049l\033[?25h\033[?2004l'`
	x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--ask-net", "-t", "-c", script),
		viewCols, viewRows)
	x.Expect(choicesHost)
	if v := view(x); v.Alternate || !v.Cursor.Visible ||
		!strings.Contains(v.String(), "may this command reach a host?") ||
		strings.HasPrefix(v.String(), "DRAWN") {
		t.Errorf("the question, alternate %v, cursor %+v:\n%s", v.Alternate, v.Cursor, v)
	}
	x.Send("n\r")
	x.Expect(fmt.Sprintf(`REDRAWN %d %d`, viewRows, viewCols))
	if v := view(x); !v.Alternate || v.Cursor.Visible {
		t.Errorf("afterwards, alternate %v, cursor %+v:\n%s", v.Alternate, v.Cursor, v)
	}
	x.Send("\r")
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
	}
	unchanged(t, x)
}
