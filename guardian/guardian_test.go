// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/approval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testKey = "sk-test-0123456789"
	allow   = `{"outcome":"allow"}`
	deny    = `{"outcome":"deny","risk_level":"medium","user_authorization":"low","rationale":"it removes the tests"}`
)

// reply is a response of Chat Completions with these answers.
func reply(answers ...string) string {
	var choices []any
	for _, a := range answers {
		choices = append(choices, map[string]any{"message": map[string]any{"role": "assistant", "content": a}})
	}
	text, _ := json.Marshal(map[string]any{"choices": choices})
	return string(text)
}

// with is a response with one more member.
func with(response, member string) string { return "{" + member + "," + response[1:] }

// ended is a response whose only answer ended for a reason.
func ended(reason string) string {
	return strings.Replace(reply(allow), `"message"`, `"finish_reason":`+reason+`,"message"`, 1)
}

// A turn is what the server does with one request.
type turn func(w http.ResponseWriter, r *http.Request)

// says answers with a status and a body.
func says(status int, body string) turn {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cut closes the connection in the middle of the body.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, reply(allow))
	panic(http.ErrAbortHandler)
}

// A server answers by a script; the last turn is repeated.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	turns  []turn
	bodies []string
	heads  []http.Header
	paths  []string
}

func serve(t *testing.T, turns ...turn) *server {
	t.Helper()
	s := &server{turns: turns}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies, s.heads, s.paths = append(s.bodies, string(body)), append(s.heads, r.Header), append(s.paths, r.URL.Path)
		now := s.turns[0]
		if len(s.turns) > 1 {
			s.turns = s.turns[1:]
		}
		s.mu.Unlock()
		now(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *server) guardian() *Guardian {
	return &Guardian{BaseURL: s.URL + "/v1", Model: "m", Key: func() (string, error) { return testKey, nil }}
}

func request() *approval.Request {
	return &approval.Request{
		ID: "r-1", Kind: approval.KindCommand, Args: []string{"/bin/rm", "-r", "tests"}, Dir: "/w", Program: "/bin/rm",
		Reason: "no rule allows it", Justification: "cleaning", Requires: []string{approval.Outside},
		Available: []approval.Answer{approval.Approved, approval.ApprovedForSession, approval.Denied, approval.Abort},
	}
}

// TestReview has the rows E1 to E5: what the server does, and what becomes of the question. The
// clock of the back-off is that of the test.
func TestReview(t *testing.T) {
	high := `{"outcome":"allow","risk_level":"high","user_authorization":"AUTH","rationale":"x"}`
	for _, test := range []reviewRow{
		{"E1 allow alone", []turn{says(200, reply(allow))}, 1, approval.Approved, "(risk: low, authorization: unknown): Auto-review returned a low-risk allow decision."},
		{"E2 deny without a rationale", []turn{says(200, reply(`{"outcome":"deny"}`))}, 1, approval.Denied, "Reason: Auto-review returned a deny decision without a rationale."},
		{"deny with one", []turn{says(200, reply(deny))}, 1, approval.Denied, "due to unacceptable risk.\nReason: it removes the tests"},
		{"E3 prose around the object", []turn{says(200, reply("Sure:\n```json\n"+allow+"\n```\nDone."))}, 1, approval.Approved, "risk: low"},
		{"E4 no JSON", []turn{says(200, reply("I would allow it"))}, 3, approval.Denied, "review failed: its answer is not in the form that was asked for (3 attempts)"},
		{"E4 no JSON at first", []turn{says(200, reply("hm")), says(200, reply(allow))}, 2, approval.Approved, ""},
		{"E5 overload and errors are retried", []turn{says(429, ""), says(500, ""), says(200, reply(allow))}, 3, approval.Approved, ""},
		{"E5 overload at last", []turn{says(503, "")}, 3, approval.Denied, "HTTP status 503 (3 attempts)"},
		{"E5 a cut connection is retried", []turn{cut, says(200, reply(allow))}, 2, approval.Approved, ""},
		{"cut always", []turn{cut}, 3, approval.Denied, "the connection was cut"},
		{"E5 no key is not retried", []turn{says(401, `{"error":"bad key `+testKey+`"}`)}, 1, approval.Denied, "HTTP status 401; check the key"},
		{"E5 a bad request is not retried", []turn{says(400, "")}, 1, approval.Denied, "HTTP status 400"},
		{"E5 a denial is not asked again", []turn{says(200, reply(deny)), says(200, reply(allow))}, 1, approval.Denied, ""},
		{"an allow in a status that is no answer", []turn{says(203, reply(allow))}, 1, approval.Denied, "HTTP status 203"},
		{"garbage", []turn{says(200, "<html>")}, 3, approval.Denied, "no JSON of this API"},
		{"another API", []turn{says(200, `{"outcome":"allow"}`)}, 3, approval.Denied, ""},
		{"no choice", []turn{says(200, reply())}, 3, approval.Denied, ""},
		{"huge", []turn{says(200, reply(allow)+strings.Repeat(" ", maxResponse))}, 1, approval.Denied, "larger than 1 MiB"},
		{"as large as may be", []turn{says(200, reply(allow)+strings.Repeat(" ", maxResponse-len(reply(allow))))}, 1, approval.Approved, ""},
		{"contradictory choices", []turn{says(200, reply(allow, deny))}, 1, approval.Denied, "it removes the tests"},
		{"a denial beside garbage", []turn{says(200, reply("x", deny))}, 1, approval.Denied, "it removes the tests"},
		{"an allow beside garbage", []turn{says(200, reply(allow, "x"))}, 3, approval.Denied, ""},
		{"the highest risk of several", []turn{says(200, reply(allow, strings.Replace(high, "AUTH", "high", 1)))}, 1, approval.Denied, "needs the authorization medium, and it is unknown"},
		{"critical is denied whatever it says", []turn{says(200, reply(`{"outcome":"allow","risk_level":"critical","user_authorization":"high","rationale":"x"}`))}, 1, approval.Denied, "a critical risk is always denied"},
		{"high with little authorization", []turn{says(200, reply(strings.Replace(high, "AUTH", "low", 1)))}, 1, approval.Denied, "needs the authorization medium, and it is low"},
		{"high with enough", []turn{says(200, reply(strings.Replace(high, "AUTH", "medium", 1)))}, 1, approval.Approved, "authorization: medium"},
		{"another schema", []turn{says(200, reply(`{"outcome":"allow","confidence":"1"}`))}, 3, approval.Denied, ""},
		{"a redirect", []turn{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}}, 1, approval.Denied, "redirects are not followed"},
		{"the key in a rationale", []turn{says(200, reply(`{"outcome":"deny","rationale":"Bearer `+testKey+`"}`))}, 1, approval.Denied, "Bearer [key]"},
	} {
		t.Run(test.name, test.run)
	}
}

// TestEnvelope: an error, a refusal or an answer that was cut is no answer, whatever is beside it,
// and members have their exact names, once each.
func TestEnvelope(t *testing.T) {
	for _, test := range []reviewRow{
		{"two outcomes in one object", []turn{says(200, reply(`{"outcome":"allow","outcome":"allow"}`))}, 3, approval.Denied, "not in the form"},
		{"an error beside an answer", []turn{says(200, with(reply(allow), `"error":{"message":"overloaded"}`))}, 3, approval.Denied, "reports an error"},
		{"no error", []turn{says(200, with(reply(allow), `"error":null`))}, 1, approval.Approved, ""},
		{"two lists of choices", []turn{says(200, with(reply(allow), `"choices":[]`))}, 3, approval.Denied, "no JSON of this API"},
		{"choices in another case", []turn{says(200, strings.Replace(reply(allow), "choices", "Choices", 1))}, 3, approval.Denied, ""},
		{"content in another case", []turn{says(200, strings.Replace(reply(allow), "content", "Content", 1))}, 3, approval.Denied, ""},
		{"the end of an answer", []turn{says(200, ended(`"stop"`))}, 1, approval.Approved, ""},
		{"an answer that was cut", []turn{says(200, ended(`"length"`))}, 3, approval.Denied, "is not complete"},
		{"an answer that was filtered", []turn{says(200, ended(`"content_filter"`))}, 3, approval.Denied, "is not complete"},
		{"an answer beside a call", []turn{says(200, ended(`"tool_calls"`))}, 3, approval.Denied, "is not complete"},
		{"an answer that goes on", []turn{says(200, ended(`null`))}, 3, approval.Denied, "is not complete"},
		{"an end that is no word", []turn{says(200, ended(`0`))}, 3, approval.Denied, "is not complete"},
		{"a refusal beside an answer", []turn{says(200, strings.Replace(reply(allow), `"message":{`, `"message":{"refusal":"I cannot help",`, 1))}, 3, approval.Denied, "refused to answer"},
		{"an error in a message", []turn{says(200, strings.Replace(reply(allow), `"message":{`, `"message":{"error":"x",`, 1))}, 3, approval.Denied, "reports an error"},
		{"a message of the user", []turn{says(200, strings.Replace(reply(allow), `"assistant"`, `"user"`, 1))}, 3, approval.Denied, "no JSON of this API"},
		{"a call beside an answer", []turn{says(200, strings.Replace(reply(allow), `"message":{`, `"message":{"tool_calls":[{"id":"1"}],`, 1))}, 3, approval.Denied, "is not complete"},
		{"no call, from the model", []turn{says(200, strings.Replace(reply(allow), `"message":{`, `"message":{"tool_calls":[],"error":null,`, 1))}, 1, approval.Approved, ""},
		{"an error in a choice", []turn{says(200, strings.Replace(reply(allow), `"message":{`, `"error":{"code":502},"message":{`, 1))}, 3, approval.Denied, "reports an error"},
		{"no refusal", []turn{says(200, strings.Replace(reply(allow), `"message":{`, `"message":{"refusal":null,`, 1))}, 1, approval.Approved, ""},
	} {
		t.Run(test.name, test.run)
	}
}

// A reviewRow is what the server does, and what becomes of the question.
type reviewRow struct {
	name   string
	turns  []turn
	asked  int
	answer approval.Answer
	says   string // in the message, or the error
}

func (test *reviewRow) run(t *testing.T) {
	s := serve(t, test.turns...)
	synctest.Test(t, func(t *testing.T) {
		g := s.guardian()
		var seen []approval.Review
		g.Reviewed = func(r approval.Review) { seen = append(seen, r) }
		reported, ctx := reports(t.Context())
		start := time.Now()
		d, err := g.Approve(ctx, request())
		said := d.Message
		if err != nil {
			said = err.Error()
		}
		if d.Answer != test.answer || d.Source != approval.FromReviewer || !strings.Contains(said, test.says) || s.asked() != test.asked {
			t.Errorf("%s from %q, %q, after %d requests", d.Answer, d.Source, said, s.asked())
		}
		if strings.Contains(said, testKey) {
			t.Errorf("the key is in %q", said)
		}
		if err != nil && d.Answer.Approves() {
			t.Error("an approval with an error")
		}
		if len(seen) != 1 || seen[0].Attempts != test.asked || seen[0].Decision.Answer != test.answer {
			t.Errorf("reported as %+v", seen)
		}
		status := map[bool]approval.ReviewStatus{true: approval.ReviewApproved, false: approval.ReviewDenied}[d.Answer.Approves()]
		checkReports(t, *reported, status, said)
		wait := time.Since(start)
		if low, high := [...]int64{0, 180, 540}[test.asked-1], [...]int64{0, 220, 660}[test.asked-1]; wait.Milliseconds() < low || wait.Milliseconds() > high {
			t.Errorf("it took %v, want %v to %v", wait, low, high)
		}
	})
}

// reports returns a context with which reviews are collected.
func reports(ctx context.Context) (*[]approval.Review, context.Context) {
	var all []approval.Review
	return &all, approval.WithReviews(ctx, func(r approval.Review) { all = append(all, r) })
}

// checkReports compares the reports of one review with its end and with what was said of it.
func checkReports(t *testing.T, all []approval.Review, status approval.ReviewStatus, said string) {
	t.Helper()
	if len(all) != 2 || all[0].ID != all[1].ID || all[0].ID == "" {
		t.Fatalf("reports %+v", all)
	}
	first, last := all[0], all[1]
	if first.Status != approval.ReviewInProgress || !first.Completed.IsZero() || first.Request.ID != "r-1" || first.Model != "m" {
		t.Errorf("it begins with %+v", first)
	}
	if last.Status != status || last.Completed.Before(last.Started) || last.Started != first.Started {
		t.Errorf("it ends with %+v, want %s", last, status)
	}
	decided := status == approval.ReviewApproved || status == approval.ReviewDenied
	if !strings.Contains(said, last.Failure) || !strings.Contains(said, last.Rationale) || decided && (last.Failure == "") != (last.Outcome != "") {
		t.Errorf("it ends with %+v, and %q was said", last, said)
	}
}

// transport answers in place of the network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slow waits until the request ends.
func slow(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestDeadline: E6. One deadline holds for all attempts, and the end of the context ends them.
func TestDeadline(t *testing.T) {
	busy := func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	}
	for _, test := range []struct {
		name            string
		server          transport
		timeout, cancel time.Duration
		want            time.Duration
		answer          approval.Answer
		says            string
	}{
		{"E6 the default deadline", slow, 0, 0, 90 * time.Second, approval.TimedOut, "missed its deadline"},
		{"E6 a deadline of its own", slow, 5 * time.Second, 0, 5 * time.Second, approval.TimedOut, "missed its deadline"},
		{"E6 the back-off ends at the deadline", busy, 100 * time.Millisecond, 0, 100 * time.Millisecond, approval.TimedOut, "missed its deadline"},
		{"E6 canceled while the model thinks", slow, 0, time.Second, time.Second, 0, ""},
		{"E6 canceled in the back-off", busy, 0, 100 * time.Millisecond, 100 * time.Millisecond, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := errors.New("the run ended")
				g := &Guardian{BaseURL: "https://h/v1", Model: "m", Timeout: test.timeout, Client: &http.Client{Transport: test.server}}
				g.Breaker = &Breaker{consecutive: 2}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, func() { cancel(gone) })
				}
				reported, ctx := reports(ctx)
				start := time.Now()
				d, err := g.Approve(ctx, request())
				status := approval.ReviewTimedOut
				if test.cancel > 0 {
					status = approval.ReviewAborted
				}
				checkReports(t, *reported, status, d.Message)
				if time.Since(start) != test.want {
					t.Errorf("it took %v, want %v", time.Since(start), test.want)
				}
				switch {
				case test.cancel > 0:
					if !errors.Is(err, gone) {
						t.Errorf("%v, want the cause of the context", err)
					}
				case err != nil || d.Answer != test.answer || !strings.Contains(d.Message, test.says):
					t.Errorf("%s (%s), %v", d.Answer, d.Message, err)
				}
				if g.Breaker.consecutive != 0 {
					t.Error("what is no answer counted as a denial")
				}
			})
		})
	}
}

// TestSlowServer is the deadline on a connection.
func TestSlowServer(t *testing.T) {
	for name, turn := range map[string]turn{
		"no response": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half of one": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, reply(allow))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := serve(t, turn).guardian()
			g.Timeout = 50 * time.Millisecond
			if d, err := g.Approve(t.Context(), request()); err != nil || d.Answer != approval.TimedOut {
				t.Errorf("%s, %v", d.Answer, err)
			}
		})
	}
}

// TestBreaker: E7. Three denials in a row, or ten of fifty reviews, abort. Errors do not count.
func TestBreaker(t *testing.T) {
	for _, test := range []struct {
		name    string
		reviews string // d denied, - not
		fires   []int  // at which
	}{
		{"E7 three in a row", "ddd", []int{2}},
		{"E7 an approval or error between", "dd-dd-dd", nil},
		{"E7 it begins anew", "dddddd", []int{2, 5}},
		{"E7 ten of fifty", strings.Repeat("d--", 10), []int{27}},
		{"E7 nine of fifty", strings.Repeat("d-----", 20), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b Breaker
			var fires []int
			for i, c := range test.reviews {
				if b.count(c == 'd') != "" {
					fires = append(fires, i)
				}
			}
			if !slices.Equal(fires, test.fires) {
				t.Errorf("it fires at %v, want %v", fires, test.fires)
			}
		})
	}
	t.Run("E7 by answers", func(t *testing.T) {
		s := serve(t, says(200, reply(deny)), says(401, ""), says(200, reply(deny)))
		g := s.guardian()
		var got []string
		for range 5 {
			r := request()
			r.Justification = strings.Repeat("x", len(got))
			d, err := g.Approve(t.Context(), r)
			if err != nil {
				got = append(got, "failed")
				continue
			}
			got = append(got, d.Answer.String())
			if d.Answer == approval.Abort && !strings.Contains(d.Message, "too many approval requests for this turn (3 consecutive, 4 in the last 50 reviews); interrupting the turn.") {
				t.Errorf("the warning is %q", d.Message)
			}
		}
		if want := "denied failed denied denied abort"; strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestReuse: an equal question that was denied is denied again for a time, without the model; an
// approval and another question are asked.
func TestReuse(t *testing.T) {
	s := serve(t, says(200, reply(deny)), says(200, reply(deny)), says(200, reply(allow)))
	synctest.Test(t, func(t *testing.T) {
		g := s.guardian()
		step := func(what string, r *approval.Request, want approval.Answer, asked int) {
			t.Helper()
			d, err := g.Approve(t.Context(), r)
			if err != nil || d.Answer != want || s.asked() != asked {
				t.Errorf("%s: %s, %v, after %d requests", what, d.Answer, err, s.asked())
			}
		}
		same := request()
		same.ID = "r-2"
		step("first", request(), approval.Denied, 1)
		step("the same", same, approval.Denied, 1)
		g.Breaker = new(Breaker)
		other := request()
		other.Justification = "the user asked for it"
		step("another", other, approval.Denied, 2)
		<-time.After(reuse + time.Second)
		step("later", request(), approval.Approved, 3)
		step("an approval", request(), approval.Approved, 4)
	})
}

// TestShadow: it asks, reports and passes, whatever happens.
func TestShadow(t *testing.T) {
	// As many denials as end the turn of another one.
	s := serve(t, says(200, reply(deny)), says(200, reply(deny)), says(200, reply(deny)), says(200, reply(allow)), says(401, ""))
	g := s.guardian()
	g.Shadow = true
	var seen []string
	g.Reviewed = func(r approval.Review) {
		seen = append(seen, r.Decision.Answer.String())
		if r.Failure != "" {
			seen = append(seen, "failed")
		}
	}
	for i := range 5 {
		r := request()
		r.Script = strings.Repeat("x", i)
		if d, err := g.Approve(t.Context(), r); !errors.Is(err, approval.ErrPass) || d.Answer.Approves() {
			t.Errorf("%v, %v", d, err)
		}
	}
	if got := strings.Join(seen, " "); got != "denied denied denied approved denied failed" {
		t.Errorf("reported as %q", got)
	}
}

// TestSettings: settings that cannot be used deny, and nothing is sent.
func TestSettings(t *testing.T) {
	s := serve(t, says(200, reply(allow)))
	for _, test := range []struct {
		name   string
		change func(*Guardian)
		says   string
	}{
		{"no address", func(g *Guardian) { g.BaseURL = "" }, "no URL"},
		{"a broken address", func(g *Guardian) { g.BaseURL = "http://[" }, "no URL"},
		{"no host", func(g *Guardian) { g.BaseURL = "https:///v1" }, "no URL"},
		{"plain http", func(g *Guardian) { g.BaseURL = "http://example.com/v1" }, "needs https"},
		{"plain http to a name that begins as this machine", func(g *Guardian) { g.BaseURL = "http://localhost.example.com/v1" }, "needs https"},
		{"another scheme", func(g *Guardian) { g.BaseURL = "file://localhost/etc/passwd" }, "needs https"},
		{"a password", func(g *Guardian) { g.BaseURL = "https://a:secret@h/v1" }, "name or password"},
		{"no model", func(g *Guardian) { g.Model = "" }, "no model"},
		{"no key", func(g *Guardian) {
			g.Key = func() (string, error) { return "", errors.New("the variable K is not set") }
		}, "K is not set"},
		{"a key with a line end", func(g *Guardian) { g.Key = func() (string, error) { return "a\r\nX: " + testKey, nil } }, "characters that no key has"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := s.guardian()
			test.change(g)
			d, err := g.Approve(t.Context(), request())
			var failed *FailedError
			if d.Answer.Approves() || !errors.As(err, &failed) || !failed.Prepare || !strings.Contains(err.Error(), test.says) || s.asked() != 0 {
				t.Errorf("%v, %v, after %d requests", d, err, s.asked())
			}
			for _, secret := range []string{testKey, "secret"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q has a secret", err)
				}
			}
		})
	}
	t.Run("connection refused", func(t *testing.T) {
		gone := httptest.NewServer(nil)
		gone.Close()
		synctest.Test(t, func(t *testing.T) {
			g := &Guardian{BaseURL: gone.URL + "/v1?token=" + testKey, Model: "m"}
			d, err := g.Approve(t.Context(), request())
			if d.Answer.Approves() || err == nil || !strings.Contains(err.Error(), "connection refused (3 attempts)") || strings.Contains(err.Error(), testKey) {
				t.Errorf("%v, %v", d, err)
			}
		})
	})
	t.Run("a certificate that is not trusted", func(t *testing.T) {
		other := httptest.NewUnstartedServer(http.NotFoundHandler())
		other.Config.ErrorLog = log.New(io.Discard, "", 0)
		other.StartTLS()
		defer other.Close()
		synctest.Test(t, func(t *testing.T) {
			_, err := (&Guardian{BaseURL: other.URL, Model: "m"}).Approve(t.Context(), request())
			if err == nil || !strings.Contains(err.Error(), "not trusted") {
				t.Errorf("%v", err)
			}
		})
	})
}

// TestForms: what is sent in each form, and what is read of the response.
func TestForms(t *testing.T) {
	output := `{"status":"completed","output":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]},` +
		`{"type":"message","content":[{"type":"output_text","text":"{\"outcome\":\"allow\"}"}]}MORE]}`
	more := func(text string) string { return strings.Replace(output, "MORE", text, 1) }
	for _, test := range []struct {
		name, base string
		form       Form
		body       string
		path       string
		answer     approval.Answer
	}{
		{"chat by default", "/v1", "", reply(allow), "/v1/chat/completions", approval.Approved},
		{"chat by its address", "/x/chat/completions", "", reply(allow), "/x/chat/completions", approval.Approved},
		{"responses by its address", "/v1/responses", "", more(""), "/v1/responses", approval.Approved},
		{"responses by the setting", "/v1/", Responses, more(""), "/v1/responses", approval.Approved},
		{"a second output that denies", "/v1", Responses, more(`,{"type":"message","content":[{"type":"output_text","text":"{\"outcome\":\"deny\"}"}]}`), "/v1/responses", approval.Denied},
		{"a refusal beside it", "/v1", Responses, more(`,{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`), "/v1/responses", approval.Denied},
		{"incomplete", "/v1", Responses, strings.Replace(more(""), "completed", "incomplete", 1), "/v1/responses", approval.Denied},
		{"an error", "/v1", Responses, with(more(""), `"error":{"code":"server_error"}`), "/v1/responses", approval.Denied},
		{"details of what is missing", "/v1", Responses, with(more(""), `"incomplete_details":{"reason":"max_output_tokens"}`), "/v1/responses", approval.Denied},
		{"no details", "/v1", Responses, with(more(""), `"incomplete_details":null,"error":null`), "/v1/responses", approval.Approved},
		{"a message that was cut", "/v1", Responses, strings.Replace(more(""), `"type":"message"`, `"status":"incomplete","type":"message"`, 1), "/v1/responses", approval.Denied},
		{"a message that is complete", "/v1", Responses, strings.Replace(more(""), `"type":"message"`, `"status":"completed","type":"message"`, 1), "/v1/responses", approval.Approved},
		{"two outputs", "/v1", Responses, with(more(""), `"output":[]`), "/v1/responses", approval.Denied},
		{"a status in another case", "/v1", Responses, with(strings.Replace(more(""), "completed", "incomplete", 1), `"Status":"completed"`), "/v1/responses", approval.Denied},
		{"a call of a tool", "/v1", Responses, `{"output":[{"type":"function_call","name":"x"}]}`, "/v1/responses", approval.Denied},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, says(200, test.body))
			synctest.Test(t, func(t *testing.T) {
				g := s.guardian()
				g.BaseURL, g.Form = s.URL+test.base, test.form
				if d, _ := g.Approve(t.Context(), request()); d.Answer != test.answer {
					t.Errorf("%s (%s)", d.Answer, d.Message)
				}
			})
			if s.paths[0] != test.path || s.heads[0].Get("Authorization") != "Bearer "+testKey {
				t.Errorf("%s with %q", s.paths[0], s.heads[0].Get("Authorization"))
			}
			var sent map[string]any
			if err := json.Unmarshal([]byte(s.bodies[0]), &sent); err != nil || sent["model"] != "m" || sent["stream"] != false {
				t.Errorf("sent %v, %v", sent, err)
			}
			for _, has := range []string{`"strict":true`, `"type":"json_schema"`, `"additionalProperties":false`, `APPROVAL REQUEST START`} {
				if !strings.Contains(s.bodies[0], has) {
					t.Errorf("%s is not in %s", has, s.bodies[0])
				}
			}
			if strings.Contains(s.bodies[0], testKey) {
				t.Error("the key is in the body")
			}
		})
	}
}

// TestParallel: reviews at once have their own answers (for the race detector).
func TestParallel(t *testing.T) {
	s := serve(t, says(200, reply(allow)))
	g := s.guardian()
	g.Breaker = new(Breaker)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r := request()
			r.Script = strings.Repeat("x", i%5)
			if d, err := g.Approve(t.Context(), r); err != nil || !d.Answer.Approves() {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
	all.Wait()
}

// TestAsk: a failure denies with its text when the Runner asks.
func TestAsk(t *testing.T) {
	g := serve(t, says(401, "")).guardian()
	d, err := approval.Ask(t.Context(), g, request())
	if err != nil || d.Answer != approval.Denied || d.Source != approval.FromReviewer || !strings.Contains(d.Message, "could not be completed") {
		t.Errorf("%+v, %v", d, err)
	}
	next := approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		t.Error("a person is asked after a denial")
		return approval.Decision{Answer: approval.Approved}, nil
	})
	if d, _ := approval.Ask(t.Context(), approval.Chain(g, next), request()); d.Answer.Approves() {
		t.Error("approved")
	}
}
