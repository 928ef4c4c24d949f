// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy is the proxy through which a command reaches the hosts that its policy allows:
// HTTP in absolute form, CONNECT and SOCKS5 on one listener.
//
// The package decides nothing itself. For each request it asks the [network.Policy] of the
// [Command], resolves the name once, has the policy vet the addresses, and dials one of those. A
// name that the policy refuses is never resolved. What is dialed, sent and reported is the
// normalized host, never the spelling of the client.
//
// Everything that arrives is the text of a program that is not trusted: the parsers of HTTP,
// SOCKS5 and TLS are bounded, and refuse what two readers could understand differently. The server
// name in the first message of TLS is compared with the host. An [Interceptor] opens TLS where the policy
// asks for it; else it passes as it is.
package proxy
