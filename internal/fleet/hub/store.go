// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The names in a store.
const (
	keysName   = "keys"          // directory, 0700
	fleetName  = "fleet.json"    // in keys: the seeds and all tenants and nodes
	credsName  = "creds"         // directory, 0700: NAME.creds, 0600
	jwtName    = "jwt"           // directory: the claims of accounts, which the engine reads
	serverName = "accounts.json" // the same for an engine that runs elsewhere
	lockName   = "lock"          // held by who changes the store
	socketName = "hub.sock"      // of the hub that runs
	dataName   = "jetstream"     // directory: streams, which the engine writes
)

// A store is an open directory of a hub, locked against other processes until close.
type store struct {
	path string
	root *os.Root
	lock *os.File
}

// DefaultStore is where a hub keeps its files if no directory is named: in the state directory.
func DefaultStore() (string, error) {
	dir, err := dirs.Dir()
	if err != nil {
		return "", fmt.Errorf("no directory for the hub: %w; name one with `--store`", err)
	}
	return filepath.Join(dir, "fleet"), nil
}

// openStore opens a store, which is made if it is missing, and blocks while another process changes it, at
// most for [safefile.LockPatience]. Empty means [DefaultStore].
func openStore(path string) (s *store, err error) {
	if path == "" {
		if path, err = DefaultStore(); err != nil {
			return nil, err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot use the store %s: %w", text.Word(path), err)
		}
	}()
	open := safefile.OpenTreePath // a directory that exists is not closed to others behind their back
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		open = safefile.MakeDirs
	}
	root, err := open(path)
	if err != nil {
		return nil, err
	}
	s = &store{path: path, root: root}
	if s.lock, err = root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|safefile.NoWait, 0o600); err == nil {
		err = safefile.WaitLock(s.lock)
	}
	for _, dir := range []string{keysName, credsName, jwtName} {
		if err == nil {
			err = makeDir(root, dir)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func makeDir(root *os.Root, name string) error {
	dir, err := safefile.MakeDir(root, name)
	if err != nil {
		return err
	}
	return dir.Close()
}

// unlock lets others change the store, which stays open.
func (s *store) unlock() {
	if s.lock != nil {
		safefile.Unlock(s.lock)
		s.lock.Close()
		s.lock = nil
	}
}

// close unlocks and closes the store.
func (s *store) close() {
	s.unlock()
	s.root.Close()
}

func (s *store) socket() string { return filepath.Join(s.path, socketName) }

// A fleet is who may use a hub: the only truth, from which all claims are made. The seeds are secret.
type fleet struct {
	Operator string `json:"operator"` // seed; empty in a store that never had a tenant or a node
	System   string `json:"system"`   // seed of the system account
	// Shared is the account of the nodes that serve every tenant, and Tenants are the others.
	Shared  *account   `json:"shared"`
	Tenants []*account `json:"tenants"`
}

// An account is that of a tenant, or NODES.
type account struct {
	Name  string `json:"name"`
	Seed  string `json:"seed"`
	Nodes []node `json:"nodes"`
	// Revoked are the public keys of users that were removed.
	Revoked []string `json:"revoked"`
}

// A node is a user of an account.
type node struct {
	Name string `json:"name"`
	Key  string `json:"key"` // public
}

// load reads the fleet; old is the text of the file, nil if there is none.
func (s *store) load() (f *fleet, old []byte, err error) {
	f = new(fleet)
	name := filepath.Join(keysName, fleetName)
	old, err = s.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(old, f)
	}
	if err == nil && (f.Operator == "" || f.System == "" || f.Shared == nil) {
		err = errors.New("it lacks the keys")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the keys in %s: %w; restore the file from a copy",
			text.Word(filepath.Join(s.path, name)), err)
	}
	return f, old, nil
}

// save writes the fleet, which was old, and the claims for a server that runs elsewhere. It returns when they
// are on the disk.
func (s *store) save(f *fleet, old []byte) error {
	c, err := f.claims()
	if err != nil {
		return err
	}
	before, _ := s.root.ReadFile(serverName) // there is none the first time
	for _, file := range []struct {
		name string
		old  []byte
		v    any
	}{{serverName, before, map[string]any{"operator": c.token, "system_account": c.system,
		"resolver": "MEMORY", "resolver_preload": c.tokens}}, {filepath.Join(keysName, fleetName), old, f}} {
		b, err := json.MarshalIndent(file.v, "", "  ")
		if err == nil {
			err = safefile.ReplaceIn(s.root, file.name, file.old, b, 0o600, nil)
		}
		if err != nil {
			return fmt.Errorf("cannot write the accounts: %w", err)
		}
	}
	return nil
}

// accounts are all accounts but that of the system.
func (f *fleet) accounts() []*account {
	if f.Shared == nil {
		return nil
	}
	return append([]*account{f.Shared}, f.Tenants...)
}

// tenant returns the place of a tenant, or -1.
func (f *fleet) tenant(name string) int {
	return slices.IndexFunc(f.Tenants, func(a *account) bool { return a.Name == name })
}

// node returns the account of a node and its place there; nil for none.
func (f *fleet) node(name string) (*account, int) {
	for _, a := range f.accounts() {
		if i := slices.IndexFunc(a.Nodes, func(n node) bool { return n.Name == name }); i >= 0 {
			return a, i
		}
	}
	return nil, -1
}

// credsPath is the name of the credentials of a tenant or node in the store.
func credsPath(name string) string { return filepath.Join(credsName, name+".creds") }

// writeCreds writes credentials, which must not exist, and returns the path of the file.
func (s *store) writeCreds(name string, creds []byte) (path string, err error) {
	path = filepath.Join(s.path, credsPath(name))
	f, err := s.root.OpenFile(credsPath(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s exists, and is not overwritten; move it away", text.Word(path))
	}
	if err == nil {
		_, err = f.Write(creds)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			_ = s.root.Remove(credsPath(name)) // the error says more
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the credentials: %w", err)
	}
	return path, nil
}

// removeCreds removes credentials, if they are still there.
func (s *store) removeCreds(name string) error {
	err := s.root.Remove(credsPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
