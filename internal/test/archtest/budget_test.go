// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The bounds of production code, in lines with code: without comments and blank lines,
// without tests and rooms for tests, without generated files.
const (
	// Of all packages. The engine alone had to stay below 36 000, and took 34 900; what was
	// built on it since is new: secrets on disk and in variables, git's files that lead to
	// programs, removal by descriptors, unix sockets of other programs, hard links, files that
	// other programs run later. Daily use added denials by seccomp with their reasons, the
	// job control and descriptors that people expect, ownership changes, manual pages, and
	// sends of datagram sockets. Rules about commands are 1 900 lines: the language, the files,
	// the command check; what shell scripts run takes 2 900; services by name 400; settings in
	// layers, with profiles and trust, 3 500; what rules decide about a run 400; approvals and
	// second attempts 1 700, a model that reviews 900, answers from other processes 900; the
	// exec-server with its connections 2 750, operations on files for its clients 1 500,
	// HTTP requests for them 600. Detached runs are a daemon of 200 and verbs of 1 250. The
	// client of an exec-server and its executor take 2 150. Judged runs for clients of the
	// exec-server are 1 350, with their approvals. Binary output and messages written together are 150,
	// runs on other machines in front of the user 180. Which hosts a command reaches takes 1 300,
	// with their settings and the command that asks 1 700. Clients are told the end of a server in
	// 200, and show certificates in 100.
	// The proxy that leads there takes 2 050, and what leads commands to it 700. Programs that know
	// of no proxy are led to it in 850, with the answers to their questions about names; in another way,
	// where the kernel has no rules, in 120.
	// Hosts over the wire, and records of them, are 400.
	// Hosts are reached by a proxy of the machine in 450. TLS is opened in 910.
	// Credentials that commands use and do not get take 1 270, with their settings.
	// Rules for requests take 620.
	// Sandboxes that runs join by their name take 1 070.
	// Shared sandboxes take 2 500: commands with one network, by the library, for each conversation, by name,
	// with their limits, kept mounts, one proxy, and unix sockets between commands of equal rights.
	// A slow reader of events gets the result behind them, and answers that signals interrupt are sent
	// again, in 12.
	// What was approved is what starts, and what decides is out of reach, in 1 600; which program runs
	// which of its words 1 900 more; git by what is allowed, watched while a run lasts, 1 200; secrets
	// by content, by variables and in settings 1 700; one gate for the bytes of a host 900; what cannot
	// be read, layers by policy and bounded locks 800; the rest of the second half of 2026-11 800.
	// Clients of the exec-server are bounded, and told what sandboxes did, in 700.
	maxCodeLines = 133_016
	// of one package; the observer says who sends and connects, and what is removed
	maxRoomLines = 4_187
	// Lines over 110 columns are rows of tables and texts that cannot be broken. Those of tests are
	// for the most part rows of tables, too.
	maxWideLines     = 991
	maxWideTestLines = 3875
)

// A budget is how many lines of code a package may have. Raising one needs a reason in
// the line: why the package has to grow.
type budget struct {
	lines int
	why   string // of the last raise; empty where there was none
}

// budgets has a line for every package with code.
var budgets = map[string]budget{
	".":                          {3676, "recordings: what a Recorder is told; stages, accesses that are asked about; what is given to a command is asked about; new names of patches; patches; failures of look-ups, ports that listen, names of the network that people keep; sandboxes that commands share, with limits, lists and an idle time; second attempts of sessions; outcomes of sandboxes; strict review; events of reviews; paths of questions as they lead when they are asked; questions, second attempts and what they rest on; rules and approval policy of a Runner, and what they make of a policy; commands that wait for a sink; their descriptors; what a wait returns is decided and taken in one step"},
	"approval":                   {918, "who has answered a question, consoles too"},
	"client":                     {409, "the trace context of the caller"},
	"audit":                      {2095, "events are encoded as they come, and the end of a log is read backwards"},
	"cmd/sallyport":              {15, ""},
	"approval/program":           {195, "new: a program decides"},
	"approval/terminal":          {225, "hosts that are kept for a project; a question as text, and one that was answered elsewhere; new: a person decides"},
	"event":                      {636, "the envelope of events without reflection"},
	"executor":                   {617, "machines that were lost; directories that only a stage has; the sum of a plan; stages and accesses: the contract; what an executor stands in front of; failures of the network; the contract of shared sandboxes, sums of what was used; records of a network, and hosts that were reached; hosts that the proxy refused; what the system said of a path; what is new, as part of the end of a process"},
	"executor/local":             {867, "sandboxes are closed at once; what is left of a server that was killed; times, memory and waits; shared sandboxes, also those of other processes, and one for each conversation; streams of a Go pipe block, as programs expect"},
	"executor/remote":            {1718, "machines that were lost; outcomes, waits; starts that were dropped with their connection; TLS that would be opened here; hosts; output that the server has on disk, binary output; new: commands through an exec-server"},
	"guardian":                   {959, "errors and speakers in messages; envelopes that are no answer; files that are read as code, and places that are not known; hosts; new: a model decides: evidence, its scripts, a client for two forms of the API, answers and thresholds"},
	"internal/linux/hostfacts":   {1144, "a program is looked for in a stage; control groups of version 1; one look at each mount that does not answer; mounts that do not answer, the repository above a workspace; the own program; new: from internal/cli; words of a program's first line; limits of inotify; the table of mounts, which internal/linux/limits uses as well, read again when it has changed"},
	"internal/diff":              {430, "new: unified diffs, from internal/agents/install, as git writes them"},
	"internal/linux/changes":     {1734, "times of the kernel, files without the right to read; a list that is read once; what a stage changed, and what it saw first; new: what commands changed in a stage, against the host's files, and the record of what a stage has seen"},
	"internal/linux/apply":       {1832, "names of one file that are applied one after the other"},
	"internal/linux/caches":      {1096, "layers only where they are of use; the tool that is run; directories of caches that are made; layers by policy, and those that are thrown away; layers that stay mounted for the next command of a shared sandbox"},
	"internal/cli/explain":       {2929, "the flag that accepts a weaker level; what is not possible in a sandbox; calls that no flag allows, entries that a flag cannot lift; ends that no shell tells, plain words for questions that are not asked, causes that are no denials; a run that is rehearsed by its Runner, in place of a second decision; the row that decided, and the answer of a run; what would become of a run; each command of a script; new: what the rules say about a command, in words and as JSON; the fix beside a running command; new: from internal/cli; limits and survivors, from internal/cli; what people are told about denials, from internal/cli; the named grant that a host is part of; new: from internal/cli; new: from internal/cli; the proxy of the machine; whether connections are redirected; the socket of the proxy; the diagnosis and what was cleaned up, from internal/cli, from internal/cli/doctor"},
	"internal/cli":               {3753, "the command fleet; output that is kept; the command console; revoked rules"},
	"internal/settings/config":   {3660, "history, fleets; ask_in_console"},
	"internal/otheros":           {493, "the own program"},
	"internal/net/intercept":     {1650, "frames of websockets; names of trailers; headers that ask for parts; copies of files with dummies; new: dummies of credentials, replaced in requests and responses, also in streams and encodings; fixed words for errors, hop-by-hop headers, targets and upgrades; rules for requests; certificates for Java; requests that are changed; new: TLS that is opened: an authority, the certificates that are trusted, and both sides of HTTP; names that the public list lacks; new: public suffixes"},
	"internal/command/environ":   {1412, "limits that runtimes see, hosts past the proxy; what a command is given, from the root; withheld variables that a failing program mentions; options of Java; new: the files and variables of certificates; logins of proxies in options and settings; hosts that are reached without the proxy; commands without a network get no password of a proxy; new: variables that lead programs to a proxy"},
	"internal/server/execserver": {4187, "sessions of nodes, starts with a key, admission, output that outlives the server, no run without a sandbox; lists that wait for a change"},
	"internal/server/stages":     {400, "new: stages for clients of an exec-server"},
	"internal/server/files":      {1576, "new: HTTP requests for clients of the exec-server; holes; names of ours; renames, permissions, links and appending; watches for missing files; new: operations on files for clients of the exec-server; new: requests about files, from internal/server/execserver"},
	"internal/run/questions":     {282, "what stands still while a question is open; new: questions while a command runs, and times that stand still meanwhile, from internal/net/access"},
	"internal/run/accesses":      {261, "questions about accesses; new: what is asked about accesses that wait, and what answers open"},
	"internal/run/records":       {710, "recordings; lists that are seldom there, from internal/lazyjson; new: the JSON form of results, from the root; the queue of events, from the root; records of a network; new: records of decisions, under the names of telemetry, from internal/run/eventlog"},
	"internal/run/tty":           {1476, "signals that a caller ignores are tried; background jobs, ends by a signal, questions that erase nothing; output waits while a question is on the terminal; a question takes the terminal; descriptors that this process was started with; what a program left on the terminal is undone before a question; new: a question on the controlling terminal; keys are left to a question; modes for whole lines, and keys that are discarded, for questions; keys that are typed for another job; the modes of a terminal that a command is given"},
	"internal/settings/syntax":   {900, "tables of TOML by their place; a command line without some flags; new: from internal/cli; new: from internal/cli; adding to a text without changing the rest of it; new: keys and values of TOML with their places, from internal/settings/toml"},
	"internal/names/git":         {2480, "GIT_CONFIG_COUNT; settings that name programs; bare repositories beside a broken one; less: what git writes has a package of its own; the search for repositories goes on until all is known; searches for deny patterns remember what they found"},
	"internal/names/guard":       {1941, "settings that the user allows beside a command; directories that are listed once; the watch of granted runs, and what was there before as all runs and later ones know it"},
	"internal/names/grants":      {3153, "home directories that are known, a table of names; one table of what runs later; what runs later in homes; a port of the loopback; new: hosts of package managers, by name; new: sockets of agents and Docker, graphics processors, by name; more editors and agents; many more names that programs run or obey later; more tools and copies; many more stores, those that variables name, secrets by content, and settings whose secrets are replaced, from internal/names/credentials"},
	"internal/net/access":        {1532, "services of a host; servers of the command itself, failures; new: questions about hosts while commands run; one proxy for the commands of a shared sandbox; refused credentials; records of a network; published ports; names that are asked for without a network; the socket for datagrams; policies that change; connections that are led to the proxy, and names; new: the network of one command, and what it was refused; new: names of a command and the addresses that stand for them"},
	"internal/linux/tasks":       {2670, "ports of the loopback, threads that read a terminal; which process has a socket; one address; new: rules of the kernel that redirect connections; which unix sockets commands of a shared sandbox have bound; new: addresses and sockets of commands, from internal/linux/observer, and sends on copies, from internal/linux/sockets"},
	"internal/server/wire":       {2577, "starts with a key, machines that were lost; lists that wait for a change; the trace context"},
	"internal/command/judge":     {745, "which program a name means, and what leaving lifts; the whole table of decisions as data, with a sentence for each row; new: what the rules decide about a run; the parts of a command are from internal/cli/explain"},
	"internal/linux/launch":      {2604, "a script is printed without fmt"},
	"internal/linux/limits":      {1644, "mounts that hang, and what others free; memory and times of a tree; files in memory, and deleted ones that are mapped; limits of a shared sandbox as a whole"},
	"internal/linux":             {3507, "settings that the user allows beside a command; staged runs; accesses that wait for an answer; mounts that hang; who sends and connects; copies of ssh settings of root, denials of files of others; files of approved commands, secrets that are replaced, directories that cannot be listed; shared sandboxes, with layers of caches that stay mounted: the holder, kept mounts, what commands have in common and what not; copies of files with dummies of credentials; connections that come by routes, without rules; certificates of commands whose TLS is opened; names that are asked for without a network; a socket for datagrams; connections that are led to the proxy; the proxy of a command; services that grants open are found before the plan and held until the end; programs in /tmp, sandboxes inside sandboxes; the observer gets what the filter was made from; the table of mounts is kept between runs; survivors are named without the processes of bubblewrap itself, from internal/linux/bwrap"},
	"internal/net/proxy":         {3049, "servers of the command itself, failures; what must be seen of a connection, decided once; requests in tunnels judged by their host; rules for requests; credentials over plain HTTP; connections whose TLS is opened; connections by a proxy of the machine: CONNECT, SOCKS5 and requests in absolute form; connections that were redirected; new: the proxy of a command: HTTP, CONNECT and SOCKS5 with UDP, each with a parser that is ours"},
	"internal/linux/observer":    {3676, "what this user may not do outside either; modes of the kernel's files; who sends and connects, what is removed; modes of directories, files of others, services of this machine, ports that listen; unix sockets between commands of equal rights; ports at which connections come to a proxy; calls wait for a duplicate of a socket; sends are made; connects to granted services; calls that the filter refuses are noted; changes of owners that cannot be made are answered; sockets on which a command listens are told from those of others; files with hard links are reported, or opened for the command; repositories that it makes are noted"},
	"internal/run/output":        {1855, "the log of processes, turns of writers; "},
	"internal/linux/perform":     {357, "denied calls that are made after an answer; calls that a sandbox denies are made for a command after a yes, on copies"},
	"internal/linux/plan":        {2901, "the sum of a plan; a script is told its name as given; control groups of version 1; limits of inotify, lower layers of caches; a command that starts before the rest of its mounts is proven; scripts of shared sandboxes; copies in the place of files with credentials; certificates for Java; connections that come by routes, without rules; certificates in the place of those of the system; published ports; the name server of commands without a network; a socket for datagrams; connections that are led to the proxy; the proxy: its socket and variables; devices beside the usual ones"},
	"internal/linux/notify":      {230, "new: notifications of calls and lists of denials, from internal/linux/observer"},
	"internal/text":              {1950, "lines that leave a screen at its top; blank letters; text without control sequences; also internal/run/screen"},
	"internal/safefile":          {901, "locks that are given back; no locks on other systems; a file that a killed writer left; changes of settings in place; directories that are listed once; files that are read with few calls; a bounded wait for leases; files that are replaced whole; devices and named pipes in the place of a file are not opened; removal by descriptors, of any depth, with an end, and the check of directories of our own; new: locks that are waited for with a bound"},
	"internal/run/durable":       {300, "new: output of commands and what is known of their ends, for the next process"},
	"internal/run/process":       {2653, "what is left of a server that was killed; whether what is typed is shown; patches, which are no processes; names of signals by number; numbers of signals by name; the exit of a command is told before its streams end, which may be awaited; a reader that is slow after the end is waited for without a timer; new: what runs and has run, by identity: places, limits, eviction and retention of sessions, runs and processes, from four tables, from internal/run/table; a wait for what was accepted; input is held while a question about another attempt is open; the one queue of three packages; signals that end a question; new: from the root, from internal/run/input"},
	"internal/names/protect":     {3507, "settings that the user allows beside a command; commits in repositories that commands made; homes, repositories that commands made; links at protected names, mounts that hang, a search beside the rest; what approved commands run, the own program, settings with secrets, git settings, what cannot be read; grants of hosts; what appears or vanishes meanwhile is inspected again as a whole; repositories that no command can reach; settings of sallyport are out of reach; sockets of granted services are shown, unless the policy denies them; state directories that a command could make are made before it; each deny pattern keeps a bound of its own; the search for repositories goes on while a command runs, and gives way to starts; deny patterns with one beginning are searched for at once; new: from internal/linux/observer"},
	"internal/quietlog":          {10, "new: what go.starlark.net logs where the address space is limited"},
	"internal/linux/rlimit":      {20, ""},
	"internal/run/runs":          {1917, "output that outlives the server, starts with a key; sizes; lists that wait for a change, who has answered"},
	"internal/cli/args":          {1910, "flags of servers, which fleet node and gateway have too; output of runs is kept; revoked approvals are recorded"},
	"internal/command/script":    {3071, "plain words of a contained command; code and settings from substitutions and data; start-up variables, prompts, options as programs parse them, descriptors; less: tables and words have packages of their own; new: which commands a script runs, also through other programs, variables, functions and here-documents"},
	"internal/linux/seccomp":     {951, "users that a sandbox of one lacks; requests of sockets about peers; leases, delegations and notifications of directories; numbers of calls, which are indexed once a run; the second filter, which closes the way of the listener; what is refused is told to a supervisor, with names of the arguments and what opens it"},
	"internal/dirs":              {1385, "the watch of directories, from internal/server/listen; a daemon that another one has started; what runs tell each other: where they write, what approved commands run; logs of output, from the executors; what is at the name of a state directory, and for root on the way to it, is checked before it is used; the rule file of approvals; new: where the user's settings are, and whether commands could have written them; a program that is started for others; new: the exec-server of this user that keeps detached runs; the one socket of a user; new: from internal/cli/pending, from internal/server/peer"},
	"internal/server/listen":     {1832, "questions of all processes are watched, and open consoles"},
	"internal/cli/sessions":      {3046, "commands and sessions of a fleet; the trace context of the caller; the console connects as they do; the trace context; the console connects as they do"},
	"internal/cli/consoles":      {969, "output, number of runs; new: the command console and its methods"},
	"internal/server/console":    {646, "new: the page, its secrets, the relay"},
	"internal/fleet/hub":         {1048, "new: the NATS server of a fleet, its tenants and nodes"},
	"internal/cli/fleets":        {735, "the verbs of a fleet; new: the command fleet: the hub and who may use it"},
	"internal/cli/audits":        {420, "new: the commands of the audit log, and why, from internal/cli"},
	"internal/cli/recordings":    {178, "output of runs; the console lists recordings"},
	"recording":                  {560, "new: recordings of terminals: the writer with its limits, the reader, both versions of the format"},
	"internal/cli/stages":        {504, "new: the verbs of stages: which stage and paths words name, lists, diffs, conflicts"},
	"internal/settings/trust":    {1112, "settings that the user allows beside a command; hosts of a project; new: the first settings of a project, and what is allowed from now on; files that changed or are gone; new: the files of a project, and the records of what the user has trusted"},
	"network/inspect":            {45, "new: TLS is opened for programs that use the library"},
	"network":                    {2043, "hosts of a project, private addresses in messages; carriers of IPv4, own addresses, spellings of headers; rules for requests; ports that entries name; whose TLS is opened; the proxy of the machine: its address, variables, and hosts that are reached without; new: which hosts a command reaches"},
	"rules":                      {1595, "prefixes that would allow anything, from internal/command/script; rules for commands that are known in part; f-strings and escapes as codex has them; texts of plain calls are read without the interpreter"},
	"rules/files":                {260, "lines are removed again; new: reading rule files, appending to them"},
	"sandbox":                    {1659, "a workspace beside the directory; a weaker level; what makes a policy wider; "},
	"sandbox/wire":               {375, ""},
	"internal/names/gitstate":    {695, "new: what git writes in a git directory, name by name, and the form of each value"},
	"internal/command/programs":  {1830, "data that programs execute; new: which program runs which of its words, as tables, from internal/command/script; variables win over a login profile; new: words of scripts, from internal/command/script, from internal/command/shell"},
	"internal/names/reach":       {2804, "caches below missing directories; what this user may not do outside either; what no program can do in a sandbox, keys of ssh; what removals and moves need, what else a directory opens; new: which files commands can change; files of a command by content, outputs, the look before a start; new: from the root, from internal/command/identity; places from which programs run later, with warnings; hosts that a proxy refused, in the order of causes; no suggestion for settings of sallyport; grants for services; paths in /tmp; denials known to be harmless, the order of causes, names made for one run, wider flags with their warnings; guesses about hidden stores; grants for files that other programs run later, from internal/names/suggest"},
	"internal/agents/hooks":      {266, "the question as the reason; new: hooks of agents"},
	"internal/agents/install":    {1288, "new: settings of agents"},
	"internal/server/mcp":        {2492, "new: the MCP server"},
	"internal/patch":             {1596, "bounds of work; new: patches as models write them"},
	"internal/strict":            {705, "the decoder of all messages; new: JSON that decides, from sandbox/wire; connections of callers; new: contexts that are nil, and panics of the caller, as errors, from internal/caller"},
	"execserver":                 {75, "new: the exec-server in the process of a caller"},
	"telemetry":                  {190, "new: spans, metrics and log records by the API of OpenTelemetry"},
	"internal/run/tracing":       {380, "new: what spans, metrics and log records are made of events"},
	"internal/cli/otel":          {1120, "new: exporters of the command: OTLP over HTTP by hand, Prometheus, the OTEL_ variables"},
	"unified":                    {1760, "one shared sandbox for each conversation; single permissions that calls ask for"},
	"internal/linux/layers":      {67, "new: directories of overlays, from internal/linux/caches"},
	"internal/linux/stage":       {1424, "what commands find at a path of a stage; what was synced; names of one file; new: stages: the store and the overlays of a run"},
	"internal/cli/roff":          {55, "new: from internal/cli"},
	"internal/fleet":             {886, "sessions of nodes that have left; new: what the parts of a fleet agree on, its nodes and placement"},
	"internal/fleet/bus":         {474, "the hub is asked again; new: connections to a hub and what it keeps; why a hub is not trusted"},
	"internal/fleet/gateway":     {1236, "nodes that go while a session is put on them, lists that cannot be read, sessions that started nothing; new: clients of the exec-server's protocol on the nodes of a fleet"},
	"internal/fleet/link":        {938, "calls without an answer; new: connections of the exec-server's protocol over messages"},
	"internal/fleet/node":        {595, "reservations of accounts; two nodes of one name; answers that were lost; asked while it leaves; new: an exec-server as a node of a fleet"},
}

// TestBudgets counts the lines of every package.
func TestBudgets(t *testing.T) {
	sources, err := parseSources(moduleDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range checkBudgets(roomLines(sources), budgets) {
		t.Error(finding)
	}
}

// TestWidth counts the lines over 110 columns. A tab is four.
func TestWidth(t *testing.T) {
	sources, err := parseSources(moduleDir(t))
	if err != nil {
		t.Fatal(err)
	}
	if n, tests := wideLines(sources); n > maxWideLines || tests > maxWideTestLines {
		t.Errorf("%d lines over %d columns and %d in tests, at most %d and %d: wrap them",
			n, columns, tests, maxWideLines, maxWideTestLines)
	}
}

const columns = 110

// wideLines counts them.
func wideLines(sources []source) (n, tests int) {
	for _, s := range sources {
		for line := range strings.Lines(s.text) {
			switch {
			case utf8.RuneCountInString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t",
				"    ")) <= columns:
			case strings.HasSuffix(s.path, "_test.go"):
				tests++
			default:
				n++
			}
		}
	}
	return n, tests
}

func TestWidthFinds(t *testing.T) {
	x := strings.Repeat("x", columns)
	sources := []source{
		{path: "a.go", text: x + "\n" + x + "y\n\t" + x[:columns-4] + "\n"},
		{path: "a_test.go", text: "\t" + x[:columns-3] + "\n\té" + x[:columns-5] + "\n"},
	}
	if n, tests := wideLines(sources); n != 1 || tests != 1 {
		t.Errorf("%d and %d, want one of each", n, tests)
	}
}

// roomLines returns the lines of production code of each package.
func roomLines(sources []source) map[string]int {
	lines := map[string]int{}
	for _, s := range sources {
		name := path.Dir(s.path)
		if strings.HasSuffix(s.path, "_test.go") || testOnly[name] || ast.IsGenerated(s.file) {
			continue
		}
		lines[name] += codeLines(s)
	}
	return lines
}

// codeLines counts the lines of a file that are neither blank nor only a comment.
func codeLines(s source) int {
	comment := map[int]bool{}
	file := s.fset.File(s.file.Pos())
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			for line := file.Line(c.Pos()); line <= file.Line(c.End()); line++ {
				comment[line] = true
			}
		}
	}
	n, count := 0, 0
	for line := range strings.Lines(s.text) {
		n++
		text := strings.TrimSpace(line)
		if text == "" || comment[n] && (strings.HasPrefix(text, "//") || strings.HasPrefix(text, "/*") ||
			strings.HasPrefix(text, "*") || !strings.ContainsAny(text, "{}()=;")) {
			continue
		}
		count++
	}
	return count
}

// checkBudgets returns the packages that are over their budget, and budgets without use.
func checkBudgets(lines map[string]int, budgets map[string]budget) []string {
	var findings []string
	sum := 0
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		n := lines[name]
		sum += n
		b, ok := budgets[name]
		switch {
		case !ok && n > 1:
			findings = append(findings,
				fmt.Sprintf("package %s has %d lines of code and no budget: give it a line in the table", name, n))
		case ok && n > b.lines:
			findings = append(findings,
				fmt.Sprintf("package %s has %d lines of code, its budget is %d: make it smaller, or raise the budget with a reason", name, n, b.lines))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		if b := budgets[name]; b.lines > maxRoomLines {
			findings = append(findings, fmt.Sprintf("package %s: a budget of %d lines, at most %d", name,
				b.lines, maxRoomLines))
		} else if _, ok := lines[name]; !ok {
			findings = append(findings, fmt.Sprintf("package %s has a budget and no code", name))
		}
	}
	if sum > maxCodeLines {
		findings = append(findings, fmt.Sprintf("%d lines of code in all, at most %d", sum, maxCodeLines))
	}
	return findings
}

func TestBudgetsFind(t *testing.T) {
	file := func(name, text string) source {
		s, err := parseSource(name, header+text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	lines := roomLines([]source{
		file("p/a.go", "// Package p is.\npackage p\n\n/* a\nb */\n\nvar x = 1 // one\n\n// f\nfunc f() {\n\t// nothing\n}\n"),
		file("p/a_test.go", "package p\n\nvar y = 1\n"),
		file("p/b.go", "// Code generated by x. DO NOT EDIT.\n\npackage p\n\nvar z = 1\n"),
		file("internal/test/testenv/a.go", "package testenv\n\nvar z = 1\n"),
	})
	if len(lines) != 1 || lines["p"] != 4 {
		t.Errorf("%v, want 4 lines of p", lines)
	}
	for _, test := range []struct {
		name    string
		lines   int
		budgets map[string]budget
		want    string
	}{
		{"within", 10, map[string]budget{"p": {10, ""}}, ""},
		{"over", 11, map[string]budget{"p": {10, ""}}, "its budget is 10"},
		{"none", 11, nil, "no budget"},
		{"too large", 10, map[string]budget{"p": {maxRoomLines + 1, "x"}}, "at most"},
		{"unused", 10, map[string]budget{"p": {10, ""}, "q": {10, ""}}, "package q has a budget and no code"},
		{"all", maxCodeLines + 1, map[string]budget{"p": {maxRoomLines, ""}}, "lines of code in all"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(checkBudgets(map[string]int{"p": test.lines}, test.budgets), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
