// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name    string
		environ []string
		look    func(c *config) string // what is looked at
		want    string
		wrong   string // a part of the only complaint; empty for none
	}{
		{"defaults", nil, urls, "http://localhost:4318/v1/traces http://localhost:4318/v1/metrics http://localhost:4318/v1/logs", ""},
		{"disabled", []string{"OTEL_SDK_DISABLED=TRUE"}, urls, "  ", ""},
		{"an endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c.example:1/base/"}, urls, "https://c.example:1/base/v1/traces https://c.example:1/base/v1/metrics https://c.example:1/base/v1/logs", ""},
		{"an endpoint of a signal is as it is", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://b/x"}, urls, "http://a/v1/traces http://a/v1/metrics http://b/x", ""},
		{"an empty endpoint is none", []string{"OTEL_EXPORTER_OTLP_ENDPOINT="}, func(c *config) string { return c.targets[traces].url }, "http://localhost:4318/v1/traces", ""},
		{"an invalid endpoint", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=user:s3cret@host"}, urls, " http://localhost:4318/v1/metrics http://localhost:4318/v1/logs", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is invalid; use a URL"},
		{"none", []string{"OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none"}, urls, "http://localhost:4318/v1/traces  ", ""},
		{"another exporter", []string{"OTEL_TRACES_EXPORTER=zipkin"}, urls, " http://localhost:4318/v1/metrics http://localhost:4318/v1/logs", "OTEL_TRACES_EXPORTER is invalid; use otlp or none"},
		{"a protocol", []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, urls, "http://localhost:4318/v1/traces http://localhost:4318/v1/metrics http://localhost:4318/v1/logs", ""},
		{"another protocol", []string{"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=grpc"}, urls, "http://localhost:4318/v1/traces http://localhost:4318/v1/metrics ", "logs is not sent, because OTEL_EXPORTER_OTLP_LOGS_PROTOCOL names a protocol that is not supported; use http/protobuf"},
		{"headers", []string{"OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b, x = y"}, func(c *config) string { return fmt.Sprint(c.targets[logs].headers) }, "map[api-key:a b x:y]", ""},
		{"headers of a signal", []string{"OTEL_EXPORTER_OTLP_HEADERS=a=b", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=c=d"}, func(c *config) string { return fmt.Sprint(c.targets[traces].headers, c.targets[logs].headers) }, "map[c:d] map[a:b]", ""},
		{"invalid headers", []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS=s3cret"}, func(c *config) string { return fmt.Sprint(c.targets[traces].headers) }, "map[]", "OTEL_EXPORTER_OTLP_TRACES_HEADERS is invalid"},
		{"a line in a header", []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=b%0d%0ac:d"}, func(c *config) string { return fmt.Sprint(c.targets[traces].headers) }, "map[]", "OTEL_EXPORTER_OTLP_TRACES_HEADERS is invalid"},
		{"a timeout", []string{"OTEL_EXPORTER_OTLP_TIMEOUT=1500", "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT=2000"}, func(c *config) string { return fmt.Sprint(c.targets[traces].timeout, c.targets[logs].timeout) }, "1.5s 2s", ""},
		{"an invalid timeout", []string{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=-1"}, func(c *config) string { return fmt.Sprint(c.targets[traces].timeout) }, "10s", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT is invalid"},
		{"compression", []string{"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=gzip"}, func(c *config) string { return fmt.Sprint(c.targets[traces].gzip, c.targets[logs].gzip) }, "true false", ""},
		{"a missing certificate", []string{"OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE=/nonexistent"}, urls, "http://localhost:4318/v1/traces http://localhost:4318/v1/metrics ", "logs is not sent: open /nonexistent"},
		{"resource", []string{"OTEL_RESOURCE_ATTRIBUTES=a=1,b=%C3%A9", "OTEL_SERVICE_NAME=s"}, func(c *config) string { return fmt.Sprint(c.resource) }, "[[a 1] [b é] [service.name s]]", ""},
		{"batches", []string{"OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_MAX_QUEUE_SIZE=3", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE=4"}, func(c *config) string { return fmt.Sprint(c.batches) }, "[{10000000 3 512} {0 0 0} {1000000000 2048 4}]", ""},
		{"an interval", []string{"OTEL_METRIC_EXPORT_INTERVAL=5000", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=Delta"}, func(c *config) string { return fmt.Sprint(c.interval, c.delta) }, "5s true", ""},
		{"a large number", []string{"OTEL_METRIC_EXPORT_INTERVAL=99999999999999999999"}, func(c *config) string { return fmt.Sprint(c.interval) }, "1m0s", "OTEL_METRIC_EXPORT_INTERVAL is invalid"},
		{"sampler", []string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.25"}, sampling, "{false 0.25}", ""},
		{"sampler of the parent", []string{"OTEL_TRACES_SAMPLER=parentbased_always_off"}, sampling, "{true 0}", ""},
		{"sampler without an argument", []string{"OTEL_TRACES_SAMPLER=parentbased_traceidratio"}, sampling, "{true 1}", ""},
		{"an invalid argument", []string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=NaN"}, sampling, "{false 1}", "OTEL_TRACES_SAMPLER_ARG is invalid"},
		{"another sampler", []string{"OTEL_TRACES_SAMPLER=jaeger_remote"}, sampling, "{true 1}", "OTEL_TRACES_SAMPLER is invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, wrong := parse(test.environ)
			if got := test.look(&c); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			said := strings.Join(wrong, "\n")
			if len(wrong) > 1 || test.wrong == "" && said != "" || !strings.Contains(said, test.wrong) ||
				strings.Contains(said, "s3cret") {
				t.Errorf("it says %q", said)
			}
		})
	}
}

func urls(c *config) string {
	return c.targets[traces].url + " " + c.targets[metrics].url + " " + c.targets[logs].url
}

func sampling(c *config) string { return fmt.Sprint(c.sampler) }

// TestSampler: with a ratio it is the trace that decides, so that all processes decide alike.
func TestSampler(t *testing.T) {
	low, high := [16]byte{8: 0x10}, [16]byte{8: 0xf0}
	for _, test := range []struct {
		name                string
		s                   sampler
		trace               [16]byte
		parent, sampled, on bool
	}{
		{"all", sampler{ratio: 1}, high, false, false, true},
		{"none", sampler{}, [16]byte{}, false, false, false},
		{"low", sampler{ratio: 0.5}, low, false, false, true},
		{"high", sampler{ratio: 0.5}, high, false, false, false},
		{"the parent is", sampler{parent: true}, high, true, true, true},
		{"the parent is not", sampler{parent: true, ratio: 1}, low, true, false, false},
		{"the parent does not count", sampler{ratio: 1}, low, true, false, true},
		{"no parent", sampler{parent: true, ratio: 1}, low, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.s.keeps(test.trace, test.parent, test.sampled); got != test.on {
				t.Errorf("%v", got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("OTEL_EXPORTER_OTLP_HEADERS", "a=b,c=%20")
	f.Add("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[::1]:4318")
	f.Add("OTEL_TRACES_SAMPLER_ARG", "1e-9")
	f.Fuzz(func(t *testing.T, name, value string) {
		if strings.Contains(name, "CERTIFICATE") || strings.Contains(name, "CLIENT_KEY") {
			return // these name files
		}
		c, _ := parse([]string{name + "=" + value, "OTEL_TRACES_SAMPLER=traceidratio"})
		for _, at := range c.targets {
			for key, v := range at.headers {
				if strings.ContainsAny(key+v, "\r\n\x00") || key == "" {
					t.Errorf("the header %q: %q", key, v)
				}
			}
			if at.url != "" && at.timeout < time.Millisecond {
				t.Errorf("the timeout is %v", at.timeout)
			}
		}
		if r := c.sampler.ratio; !(r >= 0 && r <= 1) || c.interval <= 0 || c.spanEvents < 1 {
			t.Errorf("%+v", c)
		}
	})
}
