// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// Environment is what clients are told of this machine.
func (s *Server) Environment() *wire.Environment { return s.info() }

// environment describes this machine to clients. What is not known is left out.
func (s *Server) environment() *wire.Environment {
	e := &wire.Environment{
		Version: s.opts.Version, CWD: wire.URI(s.opts.Dir), TempDir: wire.URI(os.TempDir()),
		PrependPathDirs: []string{}, TempDirs: []string{},
		Capabilities: wire.Capabilities{
			FileWriteStreaming: true, SandboxedFileStreaming: len(s.opts.FileHelper) > 0,
			AtomicFileWrite: true, SessionTakeOver: true,
			FSWatchMissing: files.CanWatch, EnvironmentConfigRead: true,
			HTTPHeaderEnvVars: s.opts.AllowHTTP && len(s.opts.HTTPEnv) > 0,
			ProcessResize:     true, ProcessCloseStdin: true, ProcessList: true, ReadTruncatedBefore: true,
			BinaryOutput: true, RequestCancel: true, SessionObserve: true, Idempotency: true,
			FSRename: true, FSChmod: true, FSSymlink: true, FSAppend: true,
			ProcessTTYSize: true, ProcessPrivateTmp: true, ProcessConfine: true, ProcessAwait: true,
			ProcessSignalNames: canTerminate(), ProcessTerminateGrace: canTerminate(),
			ProcessExitSignal: true,
			Runs:              s.runs != nil, RunSandboxes: s.runs != nil, Stages: true,
		},
	}
	if host, err := s.exec.Host(s.life); err == nil {
		// elsewhere no sandbox leads there
		e.System, e.Capabilities.NetworkProxyLaunch = host.OS, host.OS == "linux"
	}
	if argv, err := s.exec.Shell(s.life, "", "", false); err == nil && len(argv) > 0 {
		e.Shell = wire.Shell{Name: strings.TrimSuffix(filepath.Base(argv[0]), ".exe"), Path: argv[0]}
	}
	home, err := os.UserHomeDir()
	if err == nil {
		e.HomeDir = wire.URI(home)
	}
	if dir := os.Getenv("TMPDIR"); filepath.IsAbs(dir) {
		e.TempDirs = append(e.TempDirs, wire.URI(dir))
	}
	// The same machine and user give the same ID, and it says nothing about either.
	name, _ := os.Hostname() // empty after an error
	sum := sha256.Sum256([]byte("sallyport exec-server\x00" + name + "\x00" + home))
	e.ProviderID = "sha256:" + hex.EncodeToString(sum[:])
	return e
}
