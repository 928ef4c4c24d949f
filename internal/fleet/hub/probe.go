// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
)

// A probe is a connection to the engine in this process, for one request: it proves that credentials are let
// in, and pushes claims.
type probe struct {
	c net.Conn
	r *bufio.Reader
}

// newProbe connects with credentials, and returns when they were let in. It closes c after an error. It
// blocks for at most [Patience].
func newProbe(c net.Conn, creds []byte) (_ *probe, err error) {
	p := &probe{c, bufio.NewReader(c)}
	defer func() {
		if err != nil {
			_ = c.Close() // the error says more
		}
	}()
	token, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return nil, err
	}
	pair, err := jwt.ParseDecoratedUserNKey(creds)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(Patience)); err != nil {
		return nil, err
	}
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	var info struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info); err != nil {
		return nil, err
	}
	sig, err := pair.Sign([]byte(info.Nonce))
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(map[string]any{"jwt": token, "sig": base64.RawURLEncoding.EncodeToString(sig),
		"lang": "go", "version": "1", "protocol": 1})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s\r\nPING\r\n", b); err != nil {
		return nil, err
	}
	_, err = p.until("PONG")
	return p, err
}

// line returns the next line of the engine.
func (p *probe) line() (string, error) {
	s, err := p.r.ReadString('\n')
	return strings.TrimRight(s, "\r\n"), err
}

// until returns the next line that begins with a word; an error of the engine is one.
func (p *probe) until(word string) (string, error) {
	for {
		s, err := p.line()
		switch {
		case err != nil:
			return "", err
		case strings.HasPrefix(s, "-ERR"):
			return "", errors.New(strings.ToLower(strings.Trim(strings.TrimPrefix(s, "-ERR"), " '")))
		case strings.HasPrefix(s, word):
			return s, nil
		case s == "PING":
			if _, err := io.WriteString(p.c, "PONG\r\n"); err != nil {
				return "", err
			}
		}
	}
}

// request sends a request, and returns an error if the answer is one.
func (p *probe) request(subject, body string) error {
	const inbox = "_INBOX.hub"
	if _, err := fmt.Fprintf(p.c, "SUB %s 1\r\nPUB %s %s %d\r\n%s\r\n", inbox, subject, inbox,
		len(body), body); err != nil {
		return err
	}
	head, err := p.until("MSG ")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(head[strings.LastIndexByte(head, ' ')+1:])
	if err != nil || n < 0 || n > maxPayload {
		return fmt.Errorf("unexpected message %q", head)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(p.r, b); err != nil {
		return err
	}
	var answer struct {
		Error *answerError `json:"error"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// An answerError is an answer of the engine that is an error.
type answerError struct {
	Description string `json:"description"`
	Code        uint16 `json:"err_code"` // of streams
}

func (e *answerError) Error() string { return e.Description }

func (p *probe) close() { _ = p.c.Close() } // nothing is left to be sent
