// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import "strings"

// modulePath is the module's import path; rooms are named relative to it, the
// root package by rootRoom.
const (
	modulePath = "github.com/sallyport-dev/sallyport"
	rootRoom   = "."
)

// Layers, lowest first. A package imports only packages of lower layers.
const (
	layerText      = iota + 1 // how text of others is shown and read
	layerTables               // what words and variables mean to the programs that obey them
	layerScripts              // what scripts run, by these tables
	layerWords                // values and leaf mechanisms: they know nothing of each other
	layerContracts            // what an executor is, how policies are written down
	layerPlans                // what will run, what comes out of it
	layerFacts                // what is known of this machine
	layerRooms                // one mechanism each: limits, caches, protected names, ...
	layerState                // the directories that outlive a run
	layerReach                // what a command can change, and what it was refused
	layerHosts                // one operating system each
	layerLocal                // executors
	layerRoot
	layerTools
	layerServers // what doors lead to
	layerDoors
	layerQuestions // what other processes of the user answer
	layerArgs      // the words of a command line
	layerVerbs     // what they do
	layerPages     // what a page of them does
	layerCLI
	layerMain
)

// layers is the table of rooms: every package of the module has a line, and rooms
// that are planned have theirs already.
var layers = map[string]int{
	"internal/names/gitstate": layerText,
	"internal/quietlog":       layerText,

	"internal/command/programs": layerTables,
	"internal/strict":           layerTables,

	"internal/command/script": layerScripts,

	"internal/agents/hooks":    layerWords,
	"internal/settings/syntax": layerWords,
	"internal/command/environ": layerTables,
	"internal/diff":            layerTables,
	"internal/linux/launch":    layerWords,
	"internal/linux/notify":    layerRooms,
	"internal/linux/perform":   layerWords,
	"internal/linux/rlimit":    layerWords,
	"internal/linux/seccomp":   layerWords,
	"internal/names/git":       layerWords,
	"internal/overlay":         layerWords,
	"internal/linux/tasks":     layerWords,
	"internal/safefile":        layerTables,
	"internal/patch":           layerWords,
	"internal/test/testenv":    layerWords,
	"internal/text":            layerText,
	"network":                  layerWords,
	"rules":                    layerWords,
	"sandbox":                  layerWords,

	"approval":              layerContracts,
	"executor":              layerContracts,
	"internal/names/grants": layerContracts,
	"internal/net/proxy":    layerContracts,
	"rules/files":           layerContracts,
	"sandbox/wire":          layerContracts,

	"event":                  layerPlans,
	"guardian":               layerPlans,
	"internal/command/judge": layerPlans,
	"internal/linux/plan":    layerPlans,
	"internal/net/intercept": layerPlans,
	"internal/run/output":    layerPlans,
	"internal/run/questions": layerPlans,
	"internal/server/wire":   layerPlans,

	"internal/linux/hostfacts": layerFacts,
	"internal/net/access":      layerFacts,
	"internal/run/accesses":    layerFacts,
	"internal/run/records":     layerFacts,
	"internal/run/tracing":     layerRooms,
	"internal/run/process":     layerFacts,
	"internal/run/durable":     layerFacts,
	"internal/fleet/bus":       layerWords,
	"internal/fleet/link":      layerFacts,
	"internal/server/files":    layerFacts,
	"internal/server/stages":   layerFacts,
	"network/inspect":          layerFacts,

	"internal/linux/caches":  layerRooms,
	"internal/linux/layers":  layerWords,
	"internal/linux/stage":   layerReach,
	"internal/linux/limits":  layerRooms,
	"internal/names/guard":   layerRooms,
	"internal/netstack":      layerRooms,
	"internal/run/tty":       layerRooms,
	"internal/linux/changes": layerPlans,
	"internal/linux/apply":   layerState,

	"approval/terminal":       layerState,
	"internal/dirs":           layerState,
	"internal/linux/observer": layerReach,
	"internal/names/protect":  layerState,
	"internal/names/reach":    layerReach,
	"internal/settings/trust": layerReach,

	"approval/program": layerHosts,
	"internal/linux":   layerHosts,
	"internal/otheros": layerHosts,

	"audit":                   layerLocal,
	"executor/local":          layerLocal,
	"executor/remote":         layerLocal,
	"internal/agents/install": layerLocal,
	"recording":               layerLocal,
	"telemetry":               layerLocal,

	rootRoom: layerRoot,

	"internal/run/runs":        layerTools,
	"internal/settings/config": layerTools,
	"unified":                  layerTools,

	"internal/cli/otel":          layerServers,
	"internal/server/execserver": layerServers,
	"internal/server/mcp":        layerServers,
	"internal/server/console":    layerServers,

	"client":                 layerDoors,
	"internal/cli/explain":   layerDoors,
	"internal/fleet":         layerTools,
	"internal/fleet/hub":     layerServers,
	"internal/fleet/node":    layerDoors,
	"internal/fleet/gateway": layerDoors,
	"internal/server/listen": layerQuestions,

	"internal/cli/args":       layerArgs,
	"internal/cli/recordings": layerDoors,

	"execserver":            layerVerbs,
	"internal/cli/sessions": layerVerbs,
	"internal/cli/stages":   layerVerbs,
	"internal/cli/fleets":   layerVerbs,
	"internal/cli/audits":   layerVerbs,
	"internal/cli/consoles": layerPages,
	"internal/cli/roff":     layerWords,

	"internal/cli": layerCLI,

	"cmd/sallyport":          layerMain,
	"internal/test/archtest": layerMain,
	"internal/test/e2e":      layerMain,
	"internal/test/suites":   layerMain,
}

// testOnly are rooms that only test files may import.
var testOnly = map[string]bool{
	"internal/test/archtest": true,
	"internal/test/suites":   true,
	"internal/test/e2e":      true,
	"internal/test/testenv":  true,
}

// doors and sinks are the rooms of those kinds.
var (
	doors = []string{"internal/settings/config", "internal/server/console", "internal/fleet/gateway",
		"internal/fleet/node", "internal/fleet/hub", "internal/server/mcp", "internal/server/listen"}
	sinks = []string{"audit", "recording", "telemetry"}
)

// A wall forbids edges of the import graph of non-test files: no package that from
// covers and apart does not may import one that to covers and except does not. The
// four are lists of patterns, see [matches].
type wall struct {
	from, apart []string
	to, except  []string
	reason      string
}

// anyRoom is the pattern for every package of this module.
const anyRoom = "(any room)"

// walls are the forbidden edges beyond the order of the layers.
var walls = []wall{
	{
		from: []string{anyRoom},
		apart: []string{"unified", "client", "internal/cli/explain", "internal/settings/config",
			"internal/server/console", "internal/fleet/gateway", "internal/server/mcp", "internal/cli", "internal/cli/args",
			"internal/cli/sessions", "internal/cli/stages", "internal/cli/audits", "internal/cli/consoles",
			"cmd/sallyport", "internal/test/e2e", "internal/test/archtest", "internal/run/runs"},
		to:     []string{rootRoom},
		reason: "the root tells the story of a run out of the rooms; a room that knows the story cannot be understood alone",
	},
	{
		from: doors, to: doors,
		reason: "a door translates one protocol; what two doors share belongs into a room, and only the command line knows them all",
	},
	{
		from: sinks, to: []string{anyRoom},
		// What a sink writes down: which directory is sallyport's own, and its locks. What telemetry makes of
		// events, which the command exports itself.
		except: []string{"event", "approval", "rules", "sandbox", "executor", "internal/text", "internal/dirs",
			"internal/safefile", "internal/run/tracing"},
		reason: "a sink hears what happened in public words; one that sees more could feed back into a run",
	},
	{
		from: []string{"internal/linux/launch"}, to: []string{anyRoom},
		reason: "between clone and exec there is no Go runtime; launch stays small enough to audit by importing only std and x/sys",
	},
	{
		from: []string{"cmd/sallyport"}, to: []string{anyRoom},
		except: []string{"internal/cli"},
		reason: "main only calls the command line; everything else would be out of reach of tests",
	},
	{
		from: []string{"sandbox"}, to: []string{anyRoom},
		except: []string{"internal/text"},
		reason: "the words of permission mean the same to every room because they rest on nothing",
	},
	{
		from: []string{"sandbox", "rules", "network", "internal/command/judge", "internal/text",
			"internal/command/script", "internal/command/programs"},
		to:     []string{"os", "os/exec", "net", "net/http", "syscall", "golang.org/x/sys/..."},
		reason: "a pure room gives the same answer on every machine, so it cannot look at this one",
	},
	{
		from:   []string{"internal/linux/plan", "executor"},
		to:     []string{"os/exec", "net", "net/http"},
		reason: "a plan is data made from the facts it is given; the hosts look and act",
	},
	{
		from:   []string{rootRoom},
		to:     []string{"syscall", "os/exec", "golang.org/x/sys/..."},
		reason: "the root is portable and makes no system calls; executors run things",
	},
	{
		from: []string{"internal/linux/launch", "internal/linux/seccomp",
			"internal/linux/notify", "internal/linux/observer"},
		to:     []string{"os/exec", "net", "net/http", "encoding/json", "log", "log/slog"},
		reason: "raw kernel calls stay raw: nothing in there formats, logs or talks",
	},
	{
		from: []string{anyRoom}, apart: []string{"internal/test/testenv", "internal/test/e2e",
			"internal/test/archtest", "internal/test/suites"},
		to:     []string{"testing/...", "flag"},
		reason: "a package that links package testing or flag puts their flags into every program that imports it",
	},
	{
		from: []string{anyRoom}, apart: []string{"internal/quietlog"}, to: []string{"log", "C"},
		reason: "there is no cgo, and no global logger: rooms return values",
	},
	{
		from: []string{anyRoom}, apart: []string{"internal/cli"}, to: []string{"internal/quietlog"},
		reason: "the logger of a program that uses the library is its own",
	},
}

// sharedModules may be imported by every room.
var sharedModules = map[string]string{
	"golang.org/x/sys": "numbers and thin wrappers of the kernel's interface",
}

// testModules may be imported by every test file and by nothing else.
var testModules = map[string]string{
	"github.com/google/go-cmp":        "differences between values, in words",
	"github.com/rogpeppe/go-internal": "command lines tested as text",
	"go.opentelemetry.io/proto/otlp":  "the definition of OTLP, for a collector",
	"go.uber.org/goleak":              "goroutines that a test leaves behind",
	"go.yaml.in/yaml/v3":              "the files for Kubernetes and Compose",
	"google.golang.org/protobuf":      "messages of OTLP",
	"pgregory.net/rapid":              "properties over drawn values",
}

// roomModules gives every third-party module its one room.
var roomModules = map[string][]string{
	"github.com/spf13/cobra": {"internal/cli"},
	"github.com/spf13/pflag": {"internal/cli"},
	// Encodings for text, widths of characters for screen, case folding for rules.
	"golang.org/x/text":               {"internal/text", "rules"},
	"golang.org/x/mod/sumdb":          {"audit"}, // the tree and the signed notes of Go's checksum database
	"golang.org/x/term":               {"internal/run/tty"},
	"golang.org/x/net/dns/dnsmessage": {"internal/net/access"},
	"golang.org/x/net/http/httpguts":  {"network", "internal/server/files", "internal/net/proxy"},
	"golang.org/x/net/http/httpproxy": {"network"},
	"golang.org/x/net/idna":           {"network"},
	"golang.org/x/net/proxy":          {"internal/net/proxy"},
	"golang.org/x/net/publicsuffix":   {"internal/net/intercept"},

	"go.starlark.net":                        {"rules"},
	"mvdan.cc/sh/v3":                         {"internal/command/script", "internal/command/programs"}, // scripts, and their words
	"github.com/coder/websocket":             {"internal/server/wire"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/server/mcp"},
	"github.com/google/jsonschema-go":        {"internal/server/mcp"}, // tests of its schemas
	"github.com/nats-io/nats.go":             {"internal/fleet/bus"},
	"github.com/nats-io/nats-server/v2":      {"internal/fleet/hub"},
	"github.com/nats-io/jwt/v2":              {"internal/fleet/hub"},
	"github.com/nats-io/nkeys":               {"internal/fleet/hub"},
	"go.opentelemetry.io":                    {"telemetry"},
	"gvisor.dev/gvisor":                      {"internal/netstack"},
	"github.com/pelletier/go-toml/v2":        {"internal/settings/syntax"},
	"github.com/golang-jwt/jwt/v5":           {"internal/server/listen"},
}

// A load is what a package must not link, however far away the import is.
type load struct {
	room   string
	never  []string
	reason string
}

// loads are checked against all dependencies of the room.
var loads = []load{
	{
		room: rootRoom,
		never: []string{"net/http", "github.com/nats-io/...", "go.opentelemetry.io/...",
			"github.com/modelcontextprotocol/...", "github.com/spf13/...", "gvisor.dev/...",
			"google.golang.org/...", "testing", "flag"},
		reason: "a program that only runs commands must not carry servers, brokers, exporters or a command line",
	},
	{
		room: "cmd/sallyport",
		// Not os/user, which nats-server links: without cgo it reads files.
		never:  []string{"testing", "google.golang.org/...", "go.opentelemetry.io/...", "plugin", "runtime/cgo"},
		reason: "the command is one static file that starts in milliseconds; some packages bring the C library along, and tests are no part of it",
	},
}

// perOSRooms may hold code for one operating system and ask which one it is.
var perOSRooms = []string{
	"approval", "executor/local", "internal/cli/consoles", "internal/cli/explain", "internal/dirs", "internal/linux",
	"internal/linux/apply", "internal/linux/caches", "internal/linux/changes",
	"internal/linux/hostfacts", "internal/linux/launch", "internal/linux/layers",
	"internal/linux/limits", "internal/linux/notify", "internal/linux/observer", "internal/linux/perform",
	"internal/linux/stage", "internal/linux/tasks", "internal/names/git", "internal/names/grants",
	"internal/names/guard", "internal/names/protect", "internal/otheros", "internal/overlay",
	"internal/run/output", "internal/run/process", "internal/run/tty", "internal/server/files",
	"internal/server/listen", "internal/settings/trust", "rules/files"}

// A waiver lets one file break one rule about sources, for a reason.
type waiver struct {
	file, rule, why string
}

// sourceWaivers has few lines, with good reasons.
var sourceWaivers = []waiver{
	{"internal/linux/changes/base.go", "type name",
		"changes.Base is the base of a comparison, as in a merge with a base"},
	{"internal/quietlog/quietlog.go", "no init", "the logger must be off before another module's packages are initialized"},
}

// matches reports whether one of the patterns covers name, which is the name of a
// room or the import path of a package outside the module. A pattern is such a
// name, a name followed by "/..." for it and everything below, or anyRoom.
func matches(patterns []string, name string, isRoom bool) bool {
	for _, pattern := range patterns {
		if pattern == name || pattern == anyRoom && isRoom {
			return true
		}
		if tree, ok := strings.CutSuffix(pattern, "/..."); ok && under(name, tree) {
			return true
		}
	}
	return false
}

// under reports whether the import path is tree or lies below it.
func under(path, tree string) bool {
	rest, ok := strings.CutPrefix(path, tree)
	return ok && (rest == "" || rest[0] == '/')
}
