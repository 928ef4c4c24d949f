// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// Start are the parameters of process/start.
type Start struct {
	ProcessID string            `json:"processId" rule:"need"`
	Argv      []string          `json:"argv" rule:"need" schema:"filled"` // not empty
	CWD       string            `json:"cwd" rule:"need"`                  // a URI
	Env       map[string]string `json:"env" rule:"need"`                  // not nil when it is encoded
	TTY       bool              `json:"tty" rule:"need"`
	PipeStdin bool              `json:"pipeStdin,omitempty" rule:"nonnull"`
	Arg0      string            `json:"arg0,omitempty"`      // empty: the first of Argv
	EnvPolicy *EnvPolicy        `json:"envPolicy,omitempty"` // nil: Env is the whole environment
	Sandbox   *Sandbox          `json:"sandbox,omitempty"`   // nil for none
	// Size is an extension: the size of the terminal; nil for the usual one.
	Size *TTYSize `json:"ttySize,omitempty"`
	// Tmp is an extension: "private" for a /tmp of the process itself, where it has a sandbox;
	// empty for the machine's.
	Tmp string `json:"tmp,omitempty" rule:"one=private"`
	// Network is the managed network; nil for none.
	Network *NetworkProxy `json:"networkProxy,omitempty"`
	// Confine is an extension; nil for what the server does by itself, and no [Outcome].
	Confine *Confine `json:"confine,omitempty"`
	// Key is an extension: a start with the same one is not performed twice; empty for none.
	Key string `json:"idempotencyKey,omitempty" rule:"filled"`
	// Unsupported are the names of members that ask for what no server of this version does,
	// in the order of the protocol.
	Unsupported []string `json:"-"`
}

// UnmarshalJSON is for [Decode].
func (s *Start) UnmarshalJSON(text []byte) error {
	type plain Start
	var p struct {
		_ struct{} `rule:"name=ExecParams"`
		plain
		Managed     bool            `json:"enforceManagedNetwork" rule:"nonnull"`
		Older       json.RawMessage `json:"managedNetwork"`
		Snapshot    json.RawMessage `json:"shellSnapshot"`
		Credentials json.RawMessage `json:"credentialProviders"`
	}
	if err := strict.Decode(text, &p); err != nil {
		return err
	}
	*s = Start(p.plain)
	if s.Network != nil {
		s.Unsupported = slices.Clone(s.Network.Unsupported)
	}
	s.Unsupported = appendNames(s.Unsupported, []member{
		{"enforceManagedNetwork", p.Managed && s.Network == nil}, {"managedNetwork", asks(p.Older)},
		{"shellSnapshot", asks(p.Snapshot)}, {"credentialProviders", asks(p.Credentials)},
	})
	if s.Key != "" && len(s.ProcessID) > maxKey { // it is remembered
		return fmt.Errorf("processId must have at most %d bytes, with idempotencyKey", maxKey)
	}
	return cmp.Or(notEmpty("argv", s.Argv), checkKey(s.Key))
}

// maxKey is how many bytes an idempotencyKey has, at most.
const maxKey = 256

func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("idempotencyKey must have at most %d bytes", maxKey)
	}
	return nil
}

// A member is one that no server of this version does, and whether it asks for something.
type member struct {
	name string
	asks bool
}

// appendNames appends the names of those that ask.
func appendNames(names []string, members []member) []string {
	for _, m := range members {
		if m.asks {
			names = append(names, m.name)
		}
	}
	return names
}

// asks reports whether a value is there, and no object or array without members, which asks for
// nothing.
func asks(v json.RawMessage) bool { return given(v) && string(v) != "{}" && string(v) != "[]" }

func given(v json.RawMessage) bool { return v != nil && string(v) != "null" }

// TTYSize is the size of a terminal in characters. Neither number is 0.
type TTYSize struct {
	Cols uint16 `json:"cols" rule:"need,filled"`
	Rows uint16 `json:"rows" rule:"need,filled"`
}

// EnvPolicy says which variables of the server a process starts with.
type EnvPolicy struct {
	_                     struct{}          `rule:"name=ExecEnvPolicy"`
	Inherit               string            `json:"inherit" rule:"need,one=core|all|none"`
	IgnoreDefaultExcludes bool              `json:"ignoreDefaultExcludes" rule:"need"`
	Exclude               []string          `json:"exclude" rule:"need"`
	Set                   map[string]string `json:"set" rule:"need"`
	IncludeOnly           []string          `json:"includeOnly" rule:"need"`
}

// Sandbox is the sandbox of a process.
type Sandbox struct {
	// a permission profile, see package sandbox/wire
	Permissions json.RawMessage `json:"permissions" rule:"need"`
	// WindowsLevel is of a system that is not the server's; "disabled" when it is encoded.
	WindowsLevel   string   `json:"windowsSandboxLevel" rule:"need"`
	CWD            string   `json:"cwd,omitempty"`                  // a URI; empty when absent
	HomeDir        string   `json:"userHomeDir,omitempty"`          // a URI; empty when absent
	WorkspaceRoots []string `json:"workspaceRoots,omitempty"`       // URIs
	TempDirs       []string `json:"temporaryDirectories,omitempty"` // URIs
	Unsupported    []string `json:"-"`                              // as in Start
}

// UnmarshalJSON is for [Decode].
func (s *Sandbox) UnmarshalJSON(text []byte) error {
	type plain Sandbox
	var p struct {
		_ struct{} `rule:"name=FileSystemSandboxContext"`
		plain
		Landlock bool            `json:"useLegacyLandlock" rule:"nonnull"`
		Context  json.RawMessage `json:"policyContext"`
		Override *string         `json:"sandboxOverride"`
	}
	err := strict.Decode(text, &p)
	*s = Sandbox(p.plain)
	s.Unsupported = appendNames(nil, []member{
		{"useLegacyLandlock", p.Landlock}, {"policyContext", given(p.Context) && !s.isContext(p.Context)},
		{"sandboxOverride", p.Override != nil && *p.Override != "noOverride"},
	})
	return err
}

// isContext reports whether the places for which a policy was made are those of the sandbox.
func (s *Sandbox) isContext(text json.RawMessage) bool {
	c, err := Decode[struct {
		CWD            *string  `json:"cwd"`
		WorkspaceRoots []string `json:"workspaceRoots"`
	}](text)
	return err == nil && (c.CWD == nil || *c.CWD == s.CWD) &&
		(c.WorkspaceRoots == nil || slices.Equal(c.WorkspaceRoots, s.WorkspaceRoots))
}

// TmpPrivate is the word of Start.Tmp.
const TmpPrivate = "private"

// StartResult is the result of process/start.
type StartResult struct {
	ProcessID   string `json:"processId"`
	SandboxType string `json:"sandboxType"`
	// Sandbox is an extension: what is enforced, where the request has Confine.
	Sandbox *executor.Sandbox `json:"sandbox,omitempty"`
}

// Read are the parameters of process/read.
type Read struct {
	_         struct{} `rule:"name=ReadParams"`
	ProcessID string   `json:"processId" rule:"need"`
	AfterSeq  uint64   `json:"afterSeq"`
	WaitMs    uint64   `json:"waitMs,omitempty"`
	MaxBytes  *uint64  `json:"maxBytes,omitempty" rule:"as=usize"` // nil for no bound
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
	// Signal and Lost are those of Exited.
	Signal string `json:"signal,omitempty"`
	Lost   bool   `json:"lost,omitempty"`
	// SandboxType is an extension: that of StartResult, for a client that has lost it.
	SandboxType string `json:"sandboxType,omitempty"`
	// Outcome is that of Closed.
	Outcome json.RawMessage `json:"outcome,omitempty"`
}

// Write are the parameters of process/write.
type Write struct {
	_         struct{} `rule:"name=WriteParams"`
	ProcessID string   `json:"processId" rule:"need"`
	Chunk     []byte   `json:"chunk" rule:"need"` // not nil when it is encoded
	WriteID   string   `json:"writeId" rule:"need,filled"`
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
	// Lost is an extension: the machine that ran the command was lost, and what became of the command is not
	// known. ExitCode is [LostCode] then.
	Lost bool `json:"lost,omitempty"`
}

// LostCode is the exit code that is told of a process whose own one is not known.
const LostCode = 255

// Closed are the parameters of process/closed.
type Closed struct {
	ProcessID string `json:"processId"`
	Seq       uint64 `json:"seq"`
	// Outcome is an extension, an [Outcome] for processes that were started with Confine. One that a client
	// cannot read is no reason to miss the end.
	Outcome json.RawMessage `json:"outcome,omitempty"`
}

// Initialize are the parameters of initialize.
type Initialize struct {
	_          struct{} `rule:"name=InitializeParams"`
	ClientName string   `json:"clientName" rule:"need"`
	// ExtensionMethods is an extension: the client may call methods that are none of the
	// protocol. For other clients they do not exist, as those know it.
	ExtensionMethods bool `json:"extensionMethods,omitempty" rule:"nonnull"`
	// Approvals is an extension: the client answers run/approve.
	Approvals bool `json:"approvals,omitempty" rule:"nonnull"`
	// BinaryOutput is an extension: output comes as [Output.Frame], where messages can be binary.
	BinaryOutput bool `json:"binaryOutput,omitempty" rule:"nonnull"`
	// TakeOver is an extension: a connection that has the session of Resume ends, as one that was
	// cut without a word seems to have it for minutes.
	TakeOver bool `json:"takeOver,omitempty" rule:"nonnull"`
	// Resume is the session; empty for a new one.
	Resume string `json:"resumeSessionId,omitempty" rule:"filled"`
	// Observe is an extension: the session of another connection, which this one may look at; empty
	// for none.
	Observe string `json:"observeSessionId,omitempty" rule:"filled"`
}

// Validate returns what is wrong with the parameters.
func (i *Initialize) Validate() error {
	if i.Resume != "" && i.Observe != "" {
		return errors.New("resumeSessionId and observeSessionId exclude each other")
	}
	return nil
}

// NewSessionID returns a random UUID, version 4.
func NewSessionID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
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
	// RunSandboxes is an extension: the methods sandbox/*, and the members sandbox, transient and
	// unattended of run/start.
	RunSandboxes bool `json:"runSandboxes,omitempty"`
	// Stages is an extension: the methods stage/*, stage of run/start, and stage of confine in process/start.
	Stages bool `json:"stages,omitempty"`
	// These are extensions: methods of the same names.
	FSRename  bool `json:"fsRename,omitempty"`
	FSChmod   bool `json:"fsChmod,omitempty"`
	FSSymlink bool `json:"fsSymlink,omitempty"`
	FSAppend  bool `json:"fsAppend,omitempty"`
	// These are extensions: the notification request/cancel, and the member observeSessionId of
	// initialize.
	RequestCancel  bool `json:"requestCancel,omitempty"`
	SessionObserve bool `json:"sessionObserve,omitempty"`
	// Idempotency is an extension: the member idempotencyKey of process/start and run/start.
	Idempotency bool `json:"idempotency,omitempty"`
	// BinaryOutput is an extension: the member of that name of initialize.
	BinaryOutput bool `json:"binaryOutput,omitempty"`
	// These are extensions: ttySize and tmp of process/start.
	ProcessTTYSize    bool `json:"processTtySize,omitempty"`
	ProcessPrivateTmp bool `json:"processPrivateTmp,omitempty"`
	// These are extensions: confine of process/start, and the method process/awaitInput.
	ProcessConfine bool `json:"processConfine,omitempty"`
	ProcessAwait   bool `json:"processAwait,omitempty"`
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
