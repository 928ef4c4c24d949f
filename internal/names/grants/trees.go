// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// json is mask for JSON. The names come out sorted. What stands in
// auth is, in the settings of Docker, the base64 of USER:PASSWORD, and clients refuse other text.
func (m *masking) json(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var all any
	if err := d.Decode(&all); err != nil {
		m.failed = true
		return ""
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		m.failed = true
		return ""
	}
	all = m.node("", all, false)
	if !m.changed {
		return text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(all); err != nil {
		m.failed = true
	}
	return b.String()
}

// node is json for one value. Secret says that every text below is one.
func (m *masking) node(name string, v any, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		// agents say in auth how one logs in
		secret = secret || name != "auths" && name != "auth" && secretKey(name)
		for k, below := range v {
			v[k] = m.node(k, below, secret)
			if name == "auths" {
				continue // a host
			}
			if masked := m.text(k); masked != k {
				m.failed = true // a name with a secret
			}
		}
		return v
	case []any:
		for i, below := range v {
			v[i] = m.node(name, below, secret)
		}
		return v
	case string:
		switch {
		case name == "auth" && v != "":
			return m.replace(v, basicDummy())
		case secret && v != "":
			return m.replace(v, SecretDummy)
		}
		return m.value(name, v)
	case json.Number:
		if secret {
			m.failed = true
		}
	}
	return v
}

// harmlessServer reports whether an element of a server in Maven's settings has no secret. What is in others,
// such as headers, has any form.
func harmlessServer(name string) bool { return name == "id" || name == "username" }

// xml is mask for XML, of Maven and NuGet. Comments are left out.
func (m *masking) xml(text string) string {
	d := xml.NewDecoder(strings.NewReader(text))
	var b strings.Builder
	var path []string
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			m.failed = true
			return ""
		}
		switch t := t.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			b.WriteString("<" + t.Name.Local + m.attributes(path, t.Attr) + ">")
		case xml.EndElement:
			path = path[:len(path)-1]
			b.WriteString("</" + t.Name.Local + ">")
		case xml.CharData:
			_ = xml.EscapeText(&b, []byte(m.element(path, string(t)))) // it cannot fail
		case xml.ProcInst:
			if t.Target != "xml" {
				m.failed = true
			}
			b.WriteString("<?xml " + string(t.Inst) + "?>\n")
		case xml.Comment:
			if m.probe(string(t)) || secretKeyIn(string(t)) {
				m.changed = true
			}
		default:
			m.failed = true // a document type may have entities
		}
	}
	if !m.changed {
		return text
	}
	return b.String()
}

// element returns what stands for the text of an element.
func (m *masking) element(path []string, text string) string {
	if strings.TrimSpace(text) == "" || len(path) == 0 {
		return text
	}
	last := path[len(path)-1]
	for i, name := range path[:len(path)-1] {
		if name == "server" && i > 0 && path[i-1] == "servers" &&
			!(len(path) == i+2 && harmlessServer(last)) {
			return m.replace(text, SecretDummy)
		}
		if secretKey(name) {
			return m.replace(text, SecretDummy)
		}
	}
	return m.value(last, text)
}

// attributes returns the attributes of an element. NuGet has settings in two of them, key and value.
func (m *masking) attributes(path []string, list []xml.Attr) string {
	key, secret := "", false
	for _, a := range list {
		if a.Name.Local == "key" {
			key = a.Value
		}
	}
	for _, name := range path {
		secret = secret || secretKey(name) || strings.EqualFold(name, "apikeys") ||
			strings.EqualFold(name, "packageSourceCredentials")
	}
	secret = secret && !strings.EqualFold(key, "Username")
	var b strings.Builder
	for _, a := range list {
		name, value := a.Name.Local, a.Value
		if a.Name.Space != "" {
			if a.Name.Space != "xmlns" && a.Name.Space != "http://www.w3.org/2001/XMLSchema-instance" {
				m.failed = true
			}
			name = map[bool]string{true: "xmlns:", false: "xsi:"}[a.Name.Space == "xmlns"] + name
		}
		switch {
		case name == "key" || strings.HasPrefix(name, "xmlns") || strings.HasPrefix(name, "xsi:"):
			value = m.text(value)
		case secret && value != "":
			value = m.replace(value, SecretDummy)
		case name == "value" && key != "":
			value = m.value(key, value)
		default:
			value = m.value(name, value)
		}
		var escaped strings.Builder
		_ = xml.EscapeText(&escaped, []byte(value)) // it cannot fail
		b.WriteString(" " + name + `="` + escaped.String() + `"`)
	}
	return b.String()
}
