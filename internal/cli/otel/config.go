// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A signal is one of the three kinds of telemetry.
type signal int

const (
	traces signal = iota
	metrics
	logs
	signals
)

// words are the parts of variables for signals, and of paths.
var words = [signals]string{"traces", "metrics", "logs"}

// config is what the OTEL_ variables say.
type config struct {
	targets     [signals]target
	resource    [][2]string
	sampler     sampler
	batches     [signals]limits // of traces and logs
	interval    time.Duration   // between exports of metrics
	delta       bool            // counters say what came since the last export
	spanEvents  int             // at most of one span
	valueLength int             // of texts, in characters; negative for any
}

// A target is where a signal goes; the zero target is nowhere.
type target struct {
	url     string
	headers map[string]string
	timeout time.Duration
	gzip    bool
	tls     *tls.Config // nil for the system's
}

// limits are those of a batch.
type limits struct {
	delay        time.Duration
	queue, batch int
}

// A reader reads variables, and collects what is wrong with them.
type reader struct {
	environ map[string]string
	wrong   []string
}

// parse reads the OTEL_ variables of an environment. What it cannot follow is said in sentences, and has the
// default, or turns a signal off.
func parse(environ []string) (config, []string) {
	r := &reader{environ: make(map[string]string)}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && value != "" && strings.HasPrefix(name, "OTEL_") {
			r.environ[name] = value
		}
	}
	var c config
	if !strings.EqualFold(r.environ["OTEL_SDK_DISABLED"], "true") {
		for s := range signals {
			c.targets[s] = r.target(s)
		}
	}
	c.resource = r.resource()
	c.sampler = r.sampler()
	c.batches[traces] = limits{r.duration("OTEL_BSP_SCHEDULE_DELAY", 5*time.Second),
		r.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048), r.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)}
	c.batches[logs] = limits{r.duration("OTEL_BLRP_SCHEDULE_DELAY", time.Second),
		r.number("OTEL_BLRP_MAX_QUEUE_SIZE", 2048), r.number("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512)}
	c.interval = r.duration("OTEL_METRIC_EXPORT_INTERVAL", time.Minute)
	c.spanEvents = r.number("OTEL_SPAN_EVENT_COUNT_LIMIT", 128)
	c.valueLength = r.number("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", math.MaxInt32)
	switch v := strings.ToLower(r.environ["OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"]); v {
	case "", "cumulative":
	case "delta", "lowmemory":
		c.delta = true
	default:
		r.invalid("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative or delta")
	}
	return c, r.wrong
}

// invalid notes a value that is not used. It is not repeated, for it may be a secret at the wrong place.
func (r *reader) invalid(name, use string) {
	r.say("telemetry: the value of %s is invalid; use %s", name, use)
}

func (r *reader) say(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// number returns a whole number of at least one.
func (r *reader) number(name string, otherwise int) int {
	v := r.environ[name]
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil || n == 0 {
		r.invalid(name, "a whole number of at least 1")
		return otherwise
	}
	return int(n)
}

// duration returns a number of milliseconds.
func (r *reader) duration(name string, otherwise time.Duration) time.Duration {
	return time.Duration(r.number(name, int(otherwise/time.Millisecond))) * time.Millisecond
}

// otlp returns the value of a variable of the exporter: that of the signal, or else that of all.
func (r *reader) otlp(s signal, name string) (variable, value string) {
	variable = "OTEL_EXPORTER_OTLP_" + strings.ToUpper(words[s]) + "_" + name
	if value = r.environ[variable]; value != "" {
		return variable, value
	}
	variable = "OTEL_EXPORTER_OTLP_" + name
	return variable, r.environ[variable]
}

// target returns where a signal goes.
func (r *reader) target(s signal) (t target) {
	name := "OTEL_" + strings.ToUpper(words[s]) + "_EXPORTER"
	switch r.environ[name] {
	case "", "otlp":
	case "none":
		return target{}
	default:
		r.invalid(name, "otlp or none")
		return target{}
	}
	if name, v := r.otlp(s, "PROTOCOL"); v != "" && v != "http/protobuf" {
		r.say("telemetry: %s is not sent, because %s names a protocol that is not supported; use http/protobuf",
			words[s], name)
		return target{}
	}
	name, t.url = r.otlp(s, "ENDPOINT")
	if t.url == "" {
		t.url = "http://localhost:4318"
	}
	at, err := url.Parse(t.url)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		r.invalid(name, "a URL such as http://localhost:4318")
		return target{}
	}
	if !strings.Contains(name, strings.ToUpper(words[s])+"_ENDPOINT") {
		t.url = at.JoinPath("v1", words[s]).String()
	}
	name, v := r.otlp(s, "TIMEOUT")
	r.environ[name] = v
	t.timeout = r.duration(name, 10*time.Second)
	t.headers = make(map[string]string)
	name, v = r.otlp(s, "HEADERS")
	for _, pair := range r.pairs(name, v) {
		t.headers[pair[0]] = pair[1]
	}
	switch name, v = r.otlp(s, "COMPRESSION"); v {
	case "", "none":
	case "gzip":
		t.gzip = true
	default:
		r.invalid(name, "gzip or none")
	}
	if t.tls, err = r.tls(s); err != nil {
		r.say("telemetry: %s is not sent: %s", words[s], text.Line(err.Error()))
		return target{}
	}
	return t
}

// tls returns which certificates are trusted and shown; nil for the usual.
func (r *reader) tls(s signal) (*tls.Config, error) {
	_, trusted := r.otlp(s, "CERTIFICATE")
	_, cert := r.otlp(s, "CLIENT_CERTIFICATE")
	_, key := r.otlp(s, "CLIENT_KEY")
	if trusted == "" && cert == "" {
		return nil, nil //nolint:nilnil // the usual
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if trusted != "" {
		pem, err := os.ReadFile(trusted)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE has no certificate; name a PEM file")
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// pairs reads "key=value,key=value" with percent signs, as W3C Baggage has it.
func (r *reader) pairs(name, list string) (out [][2]string) {
	if list == "" {
		return nil
	}
	for _, entry := range strings.Split(list, ",") {
		key, value, ok := strings.Cut(entry, "=")
		key = strings.TrimSpace(key)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case strings.TrimSpace(entry) == "":
		case !ok || key == "" || err != nil || strings.ContainsAny(key+value, "\x00\r\n"):
			r.invalid(name, "key=value,key=value")
			return nil
		default:
			out = append(out, [2]string{key, value})
		}
	}
	return out
}

// resource returns the attributes of this process that the user names.
func (r *reader) resource() [][2]string {
	const list = "OTEL_RESOURCE_ATTRIBUTES"
	out := r.pairs(list, r.environ[list])
	if name := r.environ["OTEL_SERVICE_NAME"]; name != "" {
		out = append(out, [2]string{"service.name", name})
	}
	return out
}

// A sampler says which traces are kept.
type sampler struct {
	parent bool    // that of the caller decides, where there is one
	ratio  float64 // of the traces without one
}

// sampler returns the one that is named.
func (r *reader) sampler() sampler {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	word, isParent := strings.CutPrefix(r.environ[name], "parentbased_")
	s := sampler{parent: isParent, ratio: 1}
	switch word {
	case "":
		return sampler{parent: true, ratio: 1}
	case "always_on":
	case "always_off":
		s.ratio = 0
	case "traceidratio":
		v := r.environ[argument]
		ratio, err := strconv.ParseFloat(v, 64)
		if v != "" && (err != nil || !(ratio >= 0 && ratio <= 1)) {
			r.invalid(argument, "a number from 0 to 1")
		} else if v != "" {
			s.ratio = ratio
		}
	default:
		r.invalid(name, "parentbased_always_on, always_on, always_off or traceidratio")
		return sampler{parent: true, ratio: 1}
	}
	return s
}
