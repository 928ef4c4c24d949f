// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Risk is how much harm an action can do. The empty Risk is unknown.
type Risk string

// An Authorization is how clearly the user has asked for an action.
type Authorization string

// The words of answers, from little to much.
var (
	risks          = []string{"low", "medium", "high", "critical"}
	authorizations = []string{"unknown", "low", "medium", "high"}
)

// never is the threshold that no authorization reaches.
const never = "deny"

// Thresholds say which authorization a risk needs at least, or "deny". A risk that is not in it
// has the default: a high one needs "medium", a critical one is always denied, others need
// nothing.
type Thresholds map[Risk]Authorization

// ParseThreshold reads a threshold such as "high=medium".
func ParseThreshold(text string) (Risk, Authorization, error) {
	risk, need, _ := strings.Cut(text, "=")
	known := append(slices.Clone(authorizations), never)
	switch {
	case risk == "critical" && need != never:
		return "", "", errors.New("a critical risk is always denied")
	case !slices.Contains(risks, risk):
		return "", "", fmt.Errorf("unknown risk %q (%s)", risk, strings.Join(risks, ", "))
	case !slices.Contains(known, need):
		return "", "", fmt.Errorf("unknown authorization %q (%s)", need, strings.Join(known, ", "))
	}
	return Risk(risk), Authorization(need), nil
}

// short returns why an answer does not approve, as what follows its rationale; empty if it does.
// The rationale of a model that denies says it all.
func (t Thresholds) short(a *answer) string {
	need, ok := t[a.risk]
	switch {
	case !a.allow:
		return " "
	case a.risk == "critical" || need == never:
		return fmt.Sprintf(" (a %s risk is always denied)", a.risk)
	case !ok && a.risk == "high":
		need = "medium"
	case !ok:
		need = "unknown"
	}
	least, got := slices.Index(authorizations, string(need)),
		slices.Index(authorizations, string(a.authorization))
	if least < 0 || got < least || !slices.Contains(risks, string(a.risk)) {
		return fmt.Sprintf(" (a %s risk needs the authorization %s, and it is %s)", a.risk, need,
			a.authorization)
	}
	return ""
}

// An answer is what the model says.
type answer struct {
	allow         bool
	risk          Risk
	authorization Authorization
	rationale     string
}

// maxRationale is how much of the rationale is passed on, in bytes: it is one sentence or two,
// and goes to the caller's own model.
const maxRationale = 2000

// schema is the form of answers. Strict forms want all members to be required.
const schema = `{"type":"object","additionalProperties":false,"required":["outcome","risk_level","user_authorization","rationale"],"properties":{` +
	`"outcome":{"type":"string","enum":["allow","deny"]},` +
	`"risk_level":{"type":"string","enum":["low","medium","high","critical"]},` +
	`"user_authorization":{"type":"string","enum":["unknown","low","medium","high"]},` +
	`"rationale":{"type":"string"}}}`

// schemaMembers are the members of schema.
var schemaMembers = []string{"outcome", "risk_level", "user_authorization", "rationale"}

var errAnswer = errors.New("its answer is not in the form that was asked for")

// combine returns the most restrictive of several answers, without the key of the API, and an error
// if one cannot be read, unless another one denies.
func combine(texts []string, key string) (answer, error) {
	if len(texts) == 0 {
		return answer{}, errAnswer
	}
	var whole answer
	var failed error
	for i, text := range texts {
		a, err := parse(text, key)
		switch {
		case err != nil:
			failed = err
		case !a.allow:
			return a, nil
		case i == 0 || whole.risk == "":
			whole = a
		default:
			whole.risk = most(risks, whole.risk, a.risk)
			whole.authorization = least(authorizations, whole.authorization, a.authorization)
		}
	}
	return whole, failed
}

// parse reads one answer: the text, or what stands from its first { to its last }.
func parse(text, key string) (answer, error) {
	a, err := decode(text, key)
	if err == nil {
		return a, nil
	}
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return answer{}, errAnswer
	}
	return decode(text[from:to+1], key)
}

// decode reads one object with the members of schema, each once.
func decode(text, key string) (answer, error) {
	members, err := strict.Object([]byte(text))
	if err != nil {
		return answer{}, errAnswer
	}
	words := map[string]string{}
	for name, value := range members {
		var word string
		if !slices.Contains(schemaMembers, name) || value[0] != '"' || json.Unmarshal(value, &word) != nil {
			return answer{}, errAnswer
		}
		words[name] = word
	}
	a := answer{
		allow: words["outcome"] == "allow", risk: Risk(words["risk_level"]),
		authorization: Authorization(words["user_authorization"]), rationale: words["rationale"],
	}
	if !a.allow && words["outcome"] != "deny" || !known(risks, members, "risk_level", words) ||
		!known(authorizations, members, "user_authorization", words) {
		return answer{}, errAnswer
	}
	a.complete(key)
	return a, nil
}

// known reports whether a member is missing or has one of a list of words.
func known(list []string, members map[string]json.RawMessage, name string, words map[string]string) bool {
	_, ok := members[name]
	return !ok || slices.Contains(list, words[name])
}

// complete fills in what the model left out. The key of the API, if a server repeats it, is replaced
// before the rationale is cut: a part of it is a secret as well.
func (a *answer) complete(key string) {
	if a.authorization == "" {
		a.authorization = "unknown"
	}
	if a.risk == "" && a.allow {
		a.risk = "low"
	} else if a.risk == "" {
		a.risk = "high"
	}
	if key != "" {
		a.rationale = strings.ReplaceAll(a.rationale, key, "[key]")
	}
	a.rationale = strings.TrimSpace(text.Lines(a.rationale))
	if len(a.rationale) > maxRationale {
		a.rationale = strings.ToValidUTF8(a.rationale[:maxRationale], "") + "... (truncated)"
	}
	switch {
	case a.rationale != "":
	case a.allow:
		a.rationale = "Auto-review returned a low-risk allow decision."
	default:
		a.rationale = "Auto-review returned a deny decision without a rationale."
	}
}

// most returns the later of two words in a list; an empty one does not count.
func most[T ~string](list []string, a, b T) T {
	if slices.Index(list, string(a)) > slices.Index(list, string(b)) {
		return a
	}
	return b
}

// least returns the earlier one.
func least[T ~string](list []string, a, b T) T {
	if a == "" || slices.Index(list, string(a)) > slices.Index(list, string(b)) {
		return b
	}
	return a
}
