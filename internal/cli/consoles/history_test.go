// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// begin is when the first recorded run began.
var begin = time.UnixMilli(1_790_000_000_000)

// testEnv returns an environment with a home and a state directory of the test's.
func testEnv(t testing.TB) *Env {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	return &Env{Env: &args.Env{Environ: []string{"HOME=" + home}, Dir: home, Managed: t.TempDir()}}
}

// record adds runs to the audit log, each with lines about something else.
func record(t testing.TB, from, n int) {
	t.Helper()
	log, err := audit.Open(audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < from+n; i++ {
		r := explain.Record{Start: begin.Add(time.Duration(i) * time.Second), Result: sallyport.Result{
			Run: fmt.Sprintf("run-%06d", i), Args: []string{"make", "-C", fmt.Sprintf("target-%d", i), "all"},
			Dir: "/src/project", End: sallyport.EndExited, ExitCode: i % 3, Duration: time.Second,
			Attempts: []sallyport.Attempt{{}}}}
		if i%10 == 0 {
			r.SetDenials([]sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/src/out/file"},
				Errno: "EROFS", Source: sandbox.Notified, Grant: "--rw /src/out"}}, 0)
			r.Stage = &executor.Staged{ID: "abcd", Total: 2}
		}
		body, err := r.Body()
		for j := range 3 {
			err = errors.Join(err, log.Append("note",
				json.RawMessage(fmt.Sprintf(`{"run":"run-%06d","n":%d,"text":%q}`, i, j,
					"an event of about as many bytes as the events of a run have, which are read and are "+
						"not shown in the list"))))
		}
		if err = errors.Join(err, log.Append(explain.RecordKind, body)); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			if err := log.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// call performs a method and reads its result into v.
func call(t testing.TB, m func() (any, error), v any) {
	t.Helper()
	result, err := m()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(result)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHistoryPages pages through ten thousand runs, the newest first, and reads no further than a page needs.
func TestHistoryPages(t *testing.T) {
	runs := testenv.Rounds(2000, 10_000)
	h := &history{env: testEnv(t)}
	record(t, 0, runs)
	type page struct {
		Runs []recorded
		Next string
	}
	list := func(params string) (p page) {
		call(t, func() (any, error) { return h.list(t.Context(), json.RawMessage(params)) }, &p)
		return p
	}
	seen, pages := runs, 0
	for next := "first"; next != ""; pages++ {
		params := `{"limit":500}`
		if next != "first" {
			params = fmt.Sprintf(`{"limit":500,"before":%q}`, next)
		}
		p := list(params)
		for _, r := range p.Runs {
			seen--
			if want := fmt.Sprintf("run-%06d", seen); r.ID != want {
				t.Fatalf("page %d: %s, want %s", pages, r.ID, want)
			}
		}
		next = p.Next
		if pages == 1 {
			record(t, runs, 2) // what is new meanwhile moves no page
		}
	}
	if seen != 0 || pages != runs/500 {
		t.Errorf("%d runs are left after %d pages", seen, pages)
	}
	newest, last := list(`{"limit":3}`).Runs[0], runs+1
	want := recorded{ID: fmt.Sprintf("run-%06d", last),
		Started: begin.Add(time.Duration(last) * time.Second).UnixMilli(),
		Dir:     "/src/project", Args: []string{"make", "-C", fmt.Sprintf("target-%d", last), "all"},
		End:      "exited",
		ExitCode: last % 3, Duration: 1000}
	if last%10 == 0 {
		t.Fatal("a run with denials")
	}
	if diff := cmp.Diff(want, newest); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct {
		name, params string
		want         int
	}{
		{"the usual limit", `{}`, 100}, {"no more than 500", `{"limit":100000}`, 500}, {"less than none",
			`{"limit":-1}`, 100},
		{"a word of the command", `{"search":"TARGET-77 "}`, 1}, {"the directory",
			`{"search":"src/proj","limit":7}`, 7},
		{"an ID", `{"search":"run-000012"}`, 1}, {"nothing", `{"search":"nothing"}`, 0},
		{"behind the oldest", `{"before":"0.1.7"}`, 0}, {"of a log that is gone", `{"before":"7.1.7"}`, 0},
	} {
		if p := list(test.params); len(p.Runs) != test.want {
			t.Errorf("%s: %d runs, want %d", test.name, len(p.Runs), test.want)
		}
	}
	for _, params := range []string{`{"before":"x"}`, `{"limit":"1"}`, `[]`} {
		if _, err := h.list(t.Context(), json.RawMessage(params)); wireCode(err) != wire.CodeInvalidParams {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// TestHistoryWaits: a run that ends is told to a list that waits.
func TestHistoryWaits(t *testing.T) {
	testenv.NeedInotify(t)
	h := &history{env: testEnv(t)}
	end, err := h.follow()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	type page struct {
		Runs    []recorded
		Version string
	}
	list := func(since string, wait int) (p page) {
		params := fmt.Sprintf(`{"since":%q,"waitMs":%d}`, since, wait)
		call(t, func() (any, error) { return h.list(t.Context(), json.RawMessage(params)) }, &p)
		return p
	}
	<-h.ready
	version := list("", 0).Version
	if again := list(version, 1); again.Version != version || len(again.Runs) != 0 {
		t.Errorf("%+v", again)
	}
	for i := range 3 {
		told := make(chan page)
		go func() { told <- list(version, 600_000) }()
		record(t, i, 1)
		p := <-told
		if len(p.Runs) != i+1 || p.Version == version {
			t.Fatalf("run %d: %+v", i, p)
		}
		version = p.Version
	}
}

// TestHistoryRuns: no more runs are shown than history.runs says, over all pages, and their number comes with
// the list once they were counted, also of those that came since.
func TestHistoryRuns(t *testing.T) {
	testenv.NeedInotify(t)
	env := testEnv(t)
	h := &history{env: env}
	type page struct {
		Runs  []recorded
		Next  string
		Total int
	}
	list := func(before, search string) (p page) {
		params := fmt.Sprintf(`{"limit":4,"before":%q,"search":%q}`, before, search)
		call(t, func() (any, error) { return h.list(t.Context(), json.RawMessage(params)) }, &p)
		return p
	}
	record(t, 0, 20)
	if p := list("", ""); p.Total != 0 {
		t.Errorf("a total of %d before they were counted", p.Total)
	}
	end, err := h.follow()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	<-h.ready
	if p := list("", ""); p.Total != 20 {
		t.Errorf("total %d, want 20", p.Total)
	}
	record(t, 20, 3)
	if p, found := list("", ""), list("", "run-0"); p.Total != 23 || found.Total != 0 {
		t.Errorf("total %d, want 23; of a search %d", p.Total, found.Total)
	}
	settings(t, env, "history.runs = 10\n")
	for _, test := range []struct {
		name, search string
		want         int
	}{{"all", "", 10}, {"found", "run-00002", 3}, {"among those that are not shown", "run-000012", 0}} {
		shown, next := 0, ""
		for first := true; first || next != ""; first = false {
			p := list(next, test.search)
			if shown, next = shown+len(p.Runs), p.Next; test.search == "" && p.Total != 10 {
				t.Errorf("total %d", p.Total)
			}
		}
		if shown != test.want {
			t.Errorf("%s: %d runs, want %d", test.name, shown, test.want)
		}
	}
	log, err := audits.ReadRuns(env.Env, false)
	if err != nil || len(log.Records) != 10 || log.Records[9].Run != "run-000022" {
		t.Errorf("why --list has %d runs, %v", len(log.Records), err)
	}
}

// TestHistoryOutput: what was kept of the output of a run is read in parts, also when settings keep less now.
func TestHistoryOutput(t *testing.T) {
	env := testEnv(t)
	h := &history{env: env}
	said := strings.Repeat("0123456789abcde\n", maxPart/16) + "end\n"
	to, err := args.RunOutput(&config.Audit{Output: 10 * maxPart})
	if err == nil {
		err = to.Keep("ab12", said)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for {
		var p struct {
			Part  []byte
			Bytes int `json:"bytesTotal"`
		}
		params := fmt.Sprintf(`{"id":"ab12","from":%d}`, len(got))
		call(t, func() (any, error) { return h.output(t.Context(), json.RawMessage(params)) }, &p)
		if p.Bytes != len(said) {
			t.Errorf("%d bytes, want %d", p.Bytes, len(said))
		}
		if len(p.Part) == 0 {
			break
		}
		got += string(p.Part)
	}
	if got != said {
		t.Errorf("%d bytes were read, of %d", len(got), len(said))
	}
	for _, id := range []string{"ab13", "../audit/audit.jsonl", ""} {
		_, err := h.output(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%q}`, id)))
		if wire.RefusalOf(err).Reason != "unknownOutput" {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// settings writes settings of the machine.
func settings(t *testing.T, env *Env, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(env.Managed, "managed.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wireCode is the code of an error for a page; 0 for another one.
func wireCode(err error) int64 {
	var e *wire.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// TestHistoryRead has a run as why explains it.
func TestHistoryRead(t *testing.T) {
	h := &history{env: testEnv(t)}
	record(t, 0, 21)
	var d detail
	call(t, func() (any, error) { return h.read(t.Context(), json.RawMessage(`{"id":"run-000020"}`)) }, &d)
	if d.Run.ID != "run-000020" || d.Run.Denials != 1 || len(d.Denials) != 1 ||
		d.Denials[0].Grant != "--rw /src/out" ||
		d.Denials[0].Path != "/src/out/file" || d.Denials[0].Source != sandbox.Notified {
		t.Errorf("%+v", d)
	}
	want := &allowing{"sallyport run -C /src/project --rw /src/out -- make -C target-20 all",
		"sallyport config allow -C /src/project --rw /src/out"}
	if diff := cmp.Diff(want, d.Allow); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(d.Text, want.Command) || !json.Valid(d.Result) {
		t.Errorf("%s\n%s", d.Text, d.Result)
	}
	for _, id := range []string{"run-00002", "", "run-000021", `\"`} {
		_, err := h.read(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%q}`, id)))
		if wire.RefusalOf(err).Reason != "unknownRun" {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestAllow shows what would allow a denial in the project, and writes it when that is confirmed.
func TestAllow(t *testing.T) {
	env := testEnv(t)
	project := testenv.RealTemp(t)
	env.Proposed = func(flags []string) (*trust.Proposal, []trust.Setting, error) {
		if want := []string{"-C", "/src/project", "--rw", "/src/out"}; !slices.Equal(flags, want) {
			t.Errorf("%q", flags)
		}
		settings := []trust.Setting{{Path: []string{"project", "write"}, Value: "/src/out", List: true}}
		p, err := trust.Propose(project, settings, config.Check(config.Project))
		return p, settings, err
	}
	kept := ""
	env.Allowed = func(_ []trust.Setting, dir string) error {
		kept = dir
		return nil
	}
	h := &history{env: env}
	record(t, 0, 2)
	ask := func(params string) (p proposal) {
		call(t, func() (any, error) { return h.allow(t.Context(), json.RawMessage(params)) }, &p)
		return p
	}
	file := filepath.Join(project, ".sallyport", "config.toml")
	shown := ask(`{"id":"run-000000"}`)
	if _, err := os.Stat(file); shown.Done || shown.File != file || err == nil || kept != "" ||
		!strings.Contains(shown.Text, strings.Join(shown.Added, "\n")) || !strings.Contains(shown.Text,
		"/src/out") {
		t.Fatalf("%+v, %v", shown, err)
	}
	for params, reason := range map[string]string{`{"id":"run-000000","confirm":"x"}`: "otherDigest",
		`{"id":"run-000001"}`: "nothingToAllow", `{"id":"x"}`: "unknownRun"} {
		if _, err := h.allow(t.Context(), json.RawMessage(params)); wire.RefusalOf(err).Reason != reason {
			t.Errorf("%s: %v", params, err)
		}
	}
	// The file is another one than was shown.
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("# mine\n"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	confirm := fmt.Sprintf(`{"id":"run-000000","confirm":%q}`, shown.Digest)
	if _, err := h.allow(t.Context(), json.RawMessage(confirm)); err == nil {
		t.Error("a file that was not shown was changed, and trusted")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	done := ask(confirm)
	text, err := os.ReadFile(file)
	if !done.Done || err != nil || string(text) != shown.Text || kept != "/src/project" {
		t.Errorf("%+v: %q, %v", done, text, err)
	}
	if p, err := trust.Read(project); err != nil || p.State != trust.Trusted {
		t.Errorf("%v, %v", p.State, err)
	}
}
