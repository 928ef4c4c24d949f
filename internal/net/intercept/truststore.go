// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import "encoding/asn1"

// Types of the parts of PKCS #12 (RFC 7292), and the attribute by which Java trusts a certificate.
var (
	oidData        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidCertBag     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 3}
	oidCertificate = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 22, 1}
	oidTrusted     = asn1.ObjectIdentifier{2, 16, 840, 1, 113894, 746875, 1, 1}
	oidAnyUsage    = asn1.ObjectIdentifier{2, 5, 29, 37, 0}
)

// A pfx is a file of PKCS #12 without a sum over it.
type pfx struct {
	Version int
	Content content
}

// A content is a sequence of others, or of bags, as bytes.
type content struct {
	Type  asn1.ObjectIdentifier
	Bytes []byte `asn1:"tag:0,explicit"`
}

// A bag has one certificate.
type bag struct {
	Type        asn1.ObjectIdentifier
	Certificate content     `asn1:"tag:0,explicit"`
	Attributes  []attribute `asn1:"set"`
}

type attribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.ObjectIdentifier `asn1:"set"`
}

// trustStore returns certificates as a file that Java reads. It has neither encryption nor
// a password: there is nothing secret in it, and the mount that shows it is read-only.
func trustStore(certificates [][]byte) ([]byte, error) {
	const version = 3
	trusted := []attribute{{oidTrusted, []asn1.ObjectIdentifier{oidAnyUsage}}}
	bags := make([]bag, len(certificates))
	for i, der := range certificates {
		bags[i] = bag{oidCertBag, content{oidCertificate, der}, trusted}
	}
	all, err := asn1.Marshal(bags)
	if err != nil {
		return nil, err
	}
	safe, err := asn1.Marshal([]content{{oidData, all}})
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(pfx{version, content{oidData, safe}})
}
