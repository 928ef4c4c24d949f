// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Start are the parameters of process/start.
type Start struct {
	ProcessID string            `json:"processId"`
	Argv      []string          `json:"argv"`                // not empty
	CWD       string            `json:"cwd"`                 // a URI
	Env       map[string]string `json:"env"`                 // not nil when it is encoded
	EnvPolicy *EnvPolicy        `json:"envPolicy,omitempty"` // nil: Env is the whole environment
	TTY       bool              `json:"tty"`
	PipeStdin bool              `json:"pipeStdin,omitempty"`
	Arg0      string            `json:"arg0,omitempty"`    // empty: the first of Argv
	Sandbox   *Sandbox          `json:"sandbox,omitempty"` // nil for none
	// Size is an extension: the size of the terminal; nil for the usual one.
	Size *TTYSize `json:"ttySize,omitempty"`
	// Tmp is an extension: "private" for a /tmp of the process itself, where it has a sandbox;
	// empty for the machine's.
	Tmp string `json:"tmp,omitempty"`
	// Network is the managed network; nil for none.
	Network *NetworkProxy `json:"networkProxy,omitempty"`
	// Unsupported are the names of members that ask for what no server of this version does,
	// in the order of the protocol.
	Unsupported []string `json:"-"`
}

// TTYSize is the size of a terminal in characters. Neither number is 0.
type TTYSize struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// EnvPolicy says which variables of the server a process starts with.
type EnvPolicy struct {
	Inherit               string            `json:"inherit"` // "all", "core" or "none"
	IgnoreDefaultExcludes bool              `json:"ignoreDefaultExcludes"`
	Exclude               []string          `json:"exclude"`
	Set                   map[string]string `json:"set"`
	IncludeOnly           []string          `json:"includeOnly"`
}

// Sandbox is the sandbox of a process.
type Sandbox struct {
	Permissions    json.RawMessage `json:"permissions"`                    // a permission profile, see package sandbox/wire
	CWD            string          `json:"cwd,omitempty"`                  // a URI; empty when absent
	WorkspaceRoots []string        `json:"workspaceRoots,omitempty"`       // URIs
	TempDirs       []string        `json:"temporaryDirectories,omitempty"` // URIs
	HomeDir        string          `json:"userHomeDir,omitempty"`          // a URI; empty when absent
	// WindowsLevel is of a system that is not the server's; "disabled" when it is encoded.
	WindowsLevel string   `json:"windowsSandboxLevel"`
	Unsupported  []string `json:"-"` // as in Start
}

// TmpPrivate is the word of Start.Tmp.
const TmpPrivate = "private"

// DecodeStart reads the parameters of process/start.
func DecodeStart(params json.RawMessage) (*Start, error) {
	f := object(params, "ExecParams")
	s := &Start{ProcessID: f.text("processId"), Argv: f.list("argv"), CWD: f.text("cwd"), Env: f.texts("env"), TTY: f.flag("tty", true)}
	s.PipeStdin = f.flag("pipeStdin", false)
	if arg0 := f.optionalText("arg0"); arg0 != nil {
		s.Arg0 = *arg0
	}
	if v := f.optional("envPolicy"); v != nil && f.err == nil {
		s.EnvPolicy, f.err = decodeEnvPolicy(v)
	}
	if v := f.optional("sandbox"); v != nil && f.err == nil {
		s.Sandbox, f.err = decodeSandbox(v)
	}
	if v := f.optional("ttySize"); v != nil {
		size := object(v, "TTYSize")
		s.Size = &TTYSize{Cols: size.length("cols"), Rows: size.length("rows")}
		f.fail(size.err)
	}
	if f.optional("tmp") != nil {
		s.Tmp = f.word("tmp", TmpPrivate)
	}
	if v := f.optional("networkProxy"); v != nil && f.err == nil {
		if s.Network, f.err = decodeNetworkProxy(v); f.err == nil {
			s.Unsupported = append(s.Unsupported, s.Network.Unsupported...)
		}
	}
	if f.flag("enforceManagedNetwork", false) && s.Network == nil {
		s.Unsupported = append(s.Unsupported, "enforceManagedNetwork")
	}
	for _, name := range []string{"managedNetwork", "shellSnapshot", "credentialProviders"} {
		if !empty(f.optional(name)) {
			s.Unsupported = append(s.Unsupported, name)
		}
	}
	if f.err == nil && len(s.Argv) == 0 {
		f.err = errors.New("argv must not be empty")
	}
	return s, f.err
}

// empty reports whether a value is absent, null, or an object or array without members, which
// asks for nothing.
func empty(v []byte) bool {
	return v == nil || string(v) == "{}" || string(v) == "[]"
}

func decodeEnvPolicy(v json.RawMessage) (*EnvPolicy, error) {
	f := object(v, "ExecEnvPolicy")
	p := &EnvPolicy{
		Inherit: f.word("inherit", "core", "all", "none"), IgnoreDefaultExcludes: f.flag("ignoreDefaultExcludes", true),
		Exclude: f.list("exclude"), Set: f.texts("set"), IncludeOnly: f.list("includeOnly"),
	}
	return p, f.err
}

func decodeSandbox(v json.RawMessage) (*Sandbox, error) {
	f := object(v, "FileSystemSandboxContext")
	s := &Sandbox{Permissions: f.need("permissions"), WindowsLevel: f.text("windowsSandboxLevel")}
	for _, to := range []struct {
		name string
		uri  *string
	}{{"cwd", &s.CWD}, {"userHomeDir", &s.HomeDir}} {
		if text := f.optionalText(to.name); text != nil {
			*to.uri = *text
		}
	}
	s.WorkspaceRoots = f.listOf(f.optional("workspaceRoots"))
	s.TempDirs = f.listOf(f.optional("temporaryDirectories"))
	if f.flag("useLegacyLandlock", false) {
		s.Unsupported = append(s.Unsupported, "useLegacyLandlock")
	}
	if v := f.optional("policyContext"); v != nil && !s.isContext(v) {
		s.Unsupported = append(s.Unsupported, "policyContext")
	}
	if o := f.optionalText("sandboxOverride"); o != nil && *o != "noOverride" {
		s.Unsupported = append(s.Unsupported, "sandboxOverride")
	}
	return s, f.err
}

// isContext reports whether the places for which a policy was made are those of the sandbox.
func (s *Sandbox) isContext(v json.RawMessage) bool {
	f := object(v, "PolicyContext")
	cwd, roots := f.optionalText("cwd"), f.listOf(f.optional("workspaceRoots"))
	return f.err == nil && (cwd == nil || *cwd == s.CWD) && (roots == nil || slices.Equal(roots, s.WorkspaceRoots))
}

// StartResult is the result of process/start.
type StartResult struct {
	ProcessID   string `json:"processId"`
	SandboxType string `json:"sandboxType"`
}

// Read are the parameters of process/read.
type Read struct {
	ProcessID string  `json:"processId"`
	AfterSeq  uint64  `json:"afterSeq"`
	MaxBytes  *uint64 `json:"maxBytes,omitempty"` // nil for no bound
	WaitMs    uint64  `json:"waitMs,omitempty"`
}

// DecodeRead reads the parameters of process/read.
func DecodeRead(params json.RawMessage) (*Read, error) {
	f := object(params, "ReadParams")
	r := &Read{ProcessID: f.text("processId")}
	after, wait := f.natural("afterSeq", "u64"), f.natural("waitMs", "u64")
	r.MaxBytes = f.natural("maxBytes", "usize")
	if after != nil {
		r.AfterSeq = *after
	}
	if wait != nil {
		r.WaitMs = *wait
	}
	return r, f.err
}

// Chunk is a piece of output.
type Chunk struct {
	Seq    uint64 `json:"seq"`
	Stream string `json:"stream"` // "stdout", "stderr" or "pty"
	Chunk  []byte `json:"chunk"`
}

// ReadResult is the result of process/read. Chunks must not be nil.
type ReadResult struct {
	Chunks        []Chunk `json:"chunks"`
	NextSeq       uint64  `json:"nextSeq"`
	Exited        bool    `json:"exited"`
	ExitCode      *int    `json:"exitCode"`
	Closed        bool    `json:"closed"`
	Failure       *string `json:"failure"`
	SandboxDenied bool    `json:"sandboxDenied"`
	// TruncatedBefore is an extension: the number of the first chunk that is retained, when a
	// chunk after AfterSeq is not; else 0.
	TruncatedBefore uint64 `json:"truncatedBefore,omitempty"`
	// TruncatedBytes is an extension: how many bytes of output there were before that chunk.
	TruncatedBytes uint64 `json:"truncatedBytes,omitempty"`
	// Signal is that of Exited.
	Signal string `json:"signal,omitempty"`
	// SandboxType is an extension: that of StartResult, for a client that has lost it.
	SandboxType string `json:"sandboxType,omitempty"`
}

// Write are the parameters of process/write.
type Write struct {
	ProcessID string `json:"processId"`
	Chunk     []byte `json:"chunk"`   // not nil when it is encoded
	WriteID   string `json:"writeId"` // not empty
}

// DecodeWrite reads the parameters of process/write.
func DecodeWrite(params json.RawMessage) (*Write, error) {
	f := object(params, "WriteParams")
	w := &Write{ProcessID: f.text("processId"), Chunk: f.data("chunk"), WriteID: f.text("writeId")}
	if f.err == nil && w.WriteID == "" {
		f.err = errors.New("writeId must not be empty")
	}
	return w, f.err
}

// The answers to process/write.
const (
	WriteAccepted    = "accepted"
	WriteUnknown     = "unknownProcess"
	WriteStdinClosed = "stdinClosed"
)

// WriteResult is the result of process/write.
type WriteResult struct {
	Status string `json:"status"`
}

// The notifications of a process.
const (
	MethodOutput = "process/output"
	MethodExited = "process/exited"
	MethodClosed = "process/closed"
)

// Output are the parameters of process/output.
type Output struct {
	ProcessID string `json:"processId"`
	Chunk
}

// Exited are the parameters of process/exited.
type Exited struct {
	ProcessID     string `json:"processId"`
	Seq           uint64 `json:"seq"`
	ExitCode      int    `json:"exitCode"`
	SandboxDenied bool   `json:"sandboxDenied"`
	// Signal is an extension: the name of the signal that ended the command, such as "SIGKILL"; empty
	// for none.
	Signal string `json:"signal,omitempty"`
}

// Closed are the parameters of process/closed.
type Closed struct {
	ProcessID string `json:"processId"`
	Seq       uint64 `json:"seq"`
}

// Initialize are the parameters of initialize.
type Initialize struct {
	ClientName string
	Resume     string // the session; empty for a new one
	// ExtensionMethods is an extension: the client may call methods that are none of the
	// protocol. For other clients they do not exist, as those know it.
	ExtensionMethods bool
	// Approvals is an extension: the client answers run/approve.
	Approvals bool
	// Observe is an extension: the session of another connection, which this one may look at; empty
	// for none.
	Observe string
	// BinaryOutput is an extension: output comes as [Output.Frame], where messages can be binary.
	BinaryOutput bool
	// TakeOver is an extension: a connection that has the session of Resume ends, as one that was
	// cut without a word seems to have it for minutes.
	TakeOver bool
}

// DecodeInitialize reads the parameters of initialize.
func DecodeInitialize(params json.RawMessage) (*Initialize, error) {
	f := object(params, "InitializeParams")
	i := &Initialize{ClientName: f.text("clientName"), ExtensionMethods: f.flag("extensionMethods", false), Approvals: f.flag("approvals", false), BinaryOutput: f.flag("binaryOutput", false), TakeOver: f.flag("takeOver", false)}
	if id := f.optionalText("resumeSessionId"); id != nil {
		if i.Resume = *id; *id == "" {
			f.fail(fmt.Errorf("resumeSessionId must not be empty"))
		}
	}
	if id := f.optionalText("observeSessionId"); id != nil {
		switch i.Observe = *id; {
		case *id == "":
			f.fail(errors.New("observeSessionId must not be empty"))
		case i.Resume != "":
			f.fail(errors.New("resumeSessionId and observeSessionId exclude each other"))
		}
	}
	return i, f.err
}

// InitializeResult is the result of initialize.
type InitializeResult struct {
	SessionID   string       `json:"sessionId"`
	Environment *Environment `json:"environmentInfo"`
}

// Environment is the result of environment/info. The directories are URIs; the lists must not
// be nil.
type Environment struct {
	Shell           Shell        `json:"shell"`
	Version         string       `json:"executorVersion"`
	ProviderID      string       `json:"providerId"`
	CWD             string       `json:"cwd"`
	HomeDir         string       `json:"userHomeDir,omitempty"`
	System          string       `json:"platformOs"`
	PrependPathDirs []string     `json:"prependPathDirs"`
	TempDirs        []string     `json:"temporaryDirectories"`
	TempDir         string       `json:"tempDir"`
	Capabilities    Capabilities `json:"capabilities"`
}

// Capabilities are what a server can do beyond what every server can. Those that are false are
// left out.
type Capabilities struct {
	FileWriteStreaming     bool `json:"fileWriteStreaming,omitempty"`
	SandboxedFileStreaming bool `json:"sandboxedFileStreaming,omitempty"`
	FSWatchMissing         bool `json:"fsWatchMissing,omitempty"`
	EnvironmentConfigRead  bool `json:"environmentConfigRead,omitempty"`
	HTTPHeaderEnvVars      bool `json:"httpHeaderEnvVars,omitempty"`
	// These are extensions: the member atomic of fs/writeFile, and takeOver of initialize.
	AtomicFileWrite bool `json:"atomicFileWrite,omitempty"`
	SessionTakeOver bool `json:"sessionTakeOver,omitempty"`
	// These are extensions: methods of the same names, names of signals in process/signal,
	// graceMs of process/terminate, and truncatedBefore of process/read.
	ProcessResize         bool `json:"processResize,omitempty"`
	ProcessCloseStdin     bool `json:"processCloseStdin,omitempty"`
	ProcessList           bool `json:"processList,omitempty"`
	ProcessSignalNames    bool `json:"processSignalNames,omitempty"`
	ProcessTerminateGrace bool `json:"processTerminateGrace,omitempty"`
	ReadTruncatedBefore   bool `json:"readTruncatedBefore,omitempty"`
	// ProcessExitSignal is an extension: signal of process/exited, process/read and process/list.
	ProcessExitSignal bool `json:"processExitSignal,omitempty"`
	// Runs is an extension: the methods run/*.
	Runs bool `json:"runs,omitempty"`
	// RunSandboxes is an extension: the methods sandbox/*, and the members sandbox, transient and unattended of
	// run/start.
	RunSandboxes bool `json:"runSandboxes,omitempty"`
	// These are extensions: methods of the same names.
	FSRename  bool `json:"fsRename,omitempty"`
	FSChmod   bool `json:"fsChmod,omitempty"`
	FSSymlink bool `json:"fsSymlink,omitempty"`
	FSAppend  bool `json:"fsAppend,omitempty"`
	// These are extensions: the notification request/cancel, and the member observeSessionId of
	// initialize.
	RequestCancel  bool `json:"requestCancel,omitempty"`
	SessionObserve bool `json:"sessionObserve,omitempty"`
	// BinaryOutput is an extension: the member of that name of initialize.
	BinaryOutput bool `json:"binaryOutput,omitempty"`
	// These are extensions: ttySize and tmp of process/start.
	ProcessTTYSize    bool `json:"processTtySize,omitempty"`
	ProcessPrivateTmp bool `json:"processPrivateTmp,omitempty"`
	// NetworkProxyLaunch is the member networkProxy of process/start.
	NetworkProxyLaunch bool `json:"networkProxyLaunch,omitempty"`
}

// Shell is the shell of the server's user.
type Shell struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// EnvironmentStatus is the result of environment/status.
type EnvironmentStatus struct {
	Status string `json:"status"` // "ready"
}

// DecodeNothing reads the parameters of a method without any: absent, null or an object.
func DecodeNothing(params json.RawMessage) (struct{}, error) {
	if len(params) == 0 || params[0] == 'n' || params[0] == '{' {
		return struct{}{}, nil
	}
	return struct{}{}, expected(params, "unit")
}
