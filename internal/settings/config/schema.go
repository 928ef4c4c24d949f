// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
)

// A node of a JSON Schema.
type node map[string]any

// Schema is the JSON Schema of a file of settings, made from the table of keys.
func Schema() any {
	root := object("Settings of sallyport. Keys that say so are not supported in this version.")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "sallyport config.toml"
	profile := object("A profile: what commands may touch.")
	profile.put("extends", node{"type": "string",
		"description": "The mode or profile that this one adds to. Without it nothing but the platform's own files can be read."})
	profile.put("description", node{"type": "string", "description": "What the profile is for."})
	project := object("What a project opens, in its own file only, once it is trusted.")
	project.put("allow_rules", node{"type": "boolean",
		"description": "Let the allow rules of the project count."})
	for _, k := range Keys() {
		root.put(k.Name, k.schema())
		if k.Profile != "" {
			profile.put(k.Profile, k.schema())
		}
		if k.Project != "" {
			project.put(k.Project, k.schema())
		}
	}
	root.put("profiles", node{"type": "object", "description": "Profiles by name.",
		"additionalProperties": profile})
	root.put("project", project)
	kinds := object("When to ask, by kind of question: granular.")
	for _, name := range granular {
		kinds.put(name, node{"type": "boolean"})
	}
	root.put("approval", either(Find("approval").schema(), kinds))
	root.put("rules", either(Find("rules").schema(), required()))
	return root
}

// either is the schema of a key with two forms; the description is that of the first.
func either(one, two node) node {
	description := one["description"]
	delete(one, "description")
	return node{"description": description, "anyOf": []node{one, two}}
}

// required is the schema of the table that fileReader.requirements reads.
func required() node {
	text := node{"type": "string"}
	token, choice := object("One word."), object("One of several words.")
	token.put("token", text)
	choice.put("any_of", node{"type": "array", "items": text})
	token["required"], choice["required"] = []string{"token"}, []string{"any_of"}
	rule := object("What commands begin with that this is about.")
	rule.put("pattern", node{"type": "array", "items": node{"anyOf": []node{token, choice}}})
	rule.put("decision", node{"enum": []string{"prompt", "forbidden"}})
	rule.put("justification", text)
	rule.put("canonical_matching", node{"type": "boolean"})
	rule["required"] = []string{"pattern", "decision"}
	table := object("In a managed file only: rules that prompt or forbid.")
	table.put("prefix_rules", node{"type": "array", "minItems": 1, "items": rule})
	return table
}

func object(description string) node {
	return node{"type": "object", "description": description, "additionalProperties": false,
		"properties": node{}}
}

// put adds a property by its dotted name.
func (n node) put(name string, value node) {
	first, rest, deeper := strings.Cut(name, ".")
	properties, _ := n["properties"].(node) // object made it
	if !deeper {
		properties[name] = value
		return
	}
	below, ok := properties[first].(node)
	if !ok {
		below = object("The keys of [" + first + "].")
		properties[first] = below
	}
	below.put(rest, value)
}

// schema is the schema of one key.
func (k *Key) schema() node {
	help := k.Help
	if k.Later != "" {
		help += " Not supported in this version."
	}
	n := node{"description": help}
	switch in := types[k.Type].schema; len(in) {
	case 0:
		n["enum"] = k.Words
	case 1:
		n["type"] = in[0]
	default:
		n["type"] = in
	}
	switch k.Type {
	case List:
		n["items"] = node{"type": "string"}
	case Map:
		n["additionalProperties"] = node{"type": "string"}
	case Tables:
		n["additionalProperties"] = k.table.schema()
	case Text:
		if len(k.Words) > 0 {
			n["examples"] = k.Words
		}
	}
	switch {
	case k.Type == List && k.Default != "":
		n["default"] = []string{k.Default}
	case k.Type == Bool && k.Default != "":
		n["default"] = k.Default == "true"
	case k.Default != "":
		n["default"] = k.Default
	}
	return n
}
