// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console serves the web page of this user's machine, and the one WebSocket over which the page
// speaks the exec-server protocol.
//
// A [Server] has no methods of its own: it relays messages to an exec-server ([Options.Dial]), and gives
// those that [Options.Methods] names to a function of this process. What a page may do is decided here: the
// headers Host and Origin are looked at before anything else, every request but those for the page's own
// files needs two secrets, and a view-only console relays reads only.
//
// A page gets its secrets for a token ([Server.Token], once, within ten minutes; or [Options.FixedToken]).
// One of them is a cookie, which the browser sends to every port of the address, the other one is kept by the
// page, so that neither another server of the address nor another page has both. Hashes of them are kept in
// the state directory for twelve hours, so that a page finds a console that was started again on its address.
package console
