// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Creds are what a file of credentials says of itself. The hub judges whether that is true.
type Creds struct {
	Name string // of the tenant or node
	// Node says that they are for one node and nothing else. Its connection needs Inbox.
	Node bool
	// Shared says that the node serves all tenants.
	Shared bool
}

// Inbox is the Options.Inbox for these credentials.
func (c *Creds) Inbox() string {
	if !c.Node {
		return ""
	}
	return "_INBOX." + c.Name
}

// ReadCreds reads what a file of credentials says, after CheckCreds. An empty name is that of no file, and the
// zero Creds.
func ReadCreds(name string) (c Creds, err error) {
	if name == "" {
		return c, nil
	}
	if err := CheckCreds(name); err != nil {
		return c, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return c, fmt.Errorf("cannot read the credentials: %w", err)
	}
	var claims struct {
		Name string `json:"name"`
		NATS struct {
			Pub struct{ Allow []string } `json:"pub"`
		} `json:"nats"`
	}
	if !readClaims(data, &claims) {
		return c, fmt.Errorf("%s has no credentials; sallyport fleet add-tenant and add-node write such files", name)
	}
	c.Name = claims.Name
	for _, subject := range claims.NATS.Pub.Allow {
		c.Node = c.Node || strings.HasPrefix(subject, "sp.")
		c.Shared = c.Shared || strings.HasPrefix(subject, "sp.all.")
	}
	return c, nil
}

// readClaims decodes the claims of the user JWT in a file, which is the first line behind the first one that marks
// it.
func readClaims(data []byte, claims any) bool {
	_, rest, found := bytes.Cut(data, []byte("-----BEGIN NATS USER JWT-----"))
	if !found {
		return false
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(rest)), "\n")
	parts := strings.Split(strings.TrimSpace(word), ".")
	if len(parts) != 3 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && json.Unmarshal(text, claims) == nil
}
