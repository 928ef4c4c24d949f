// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	// authorityTime is how long the authority is valid: a run has no longest time unless one is
	// set, and a year is more than any of them take.
	authorityTime = 366 * 24 * time.Hour
	leafTime      = 7 * 24 * time.Hour
	renewTime     = 24 * time.Hour // before the end of a leaf
	skewTime      = time.Hour      // that clocks may differ
	maxLeaves     = 1024
	serialBits    = 128
)

// An authority makes certificates for hosts. Its key is nowhere but here.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[string]*leaf
	uses   uint64
}

// A leaf is the certificate of one host.
type leaf struct {
	make func() (*tls.Certificate, error)
	ends time.Time
	used uint64 // the use that was last
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "sallyport, in the memory of one process",
			Organization: []string{"sallyport"}},
		NotBefore: time.Now().Add(-skewTime), NotAfter: time.Now().Add(authorityTime + 24*time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, leaves: map[string]*leaf{}}, nil
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	return x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
}

// leaf returns the certificate of a host, which is made once however many ask for it.
func (a *authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	l := a.leaves[host]
	if l == nil || time.Until(l.ends) < renewTime {
		delete(a.leaves, host)
		if len(a.leaves) >= maxLeaves {
			a.drop()
		}
		ends := time.Now().Add(leafTime - skewTime)
		l = &leaf{make: sync.OnceValues(func() (*tls.Certificate, error) {
			return a.issue(host,
				ends)
		}), ends: ends}
		a.leaves[host] = l
	}
	a.uses++
	l.used = a.uses
	a.mu.Unlock()
	return l.make()
}

// drop forgets the certificate that was not used for longest.
func (a *authority) drop() {
	oldest, least := "", uint64(math.MaxUint64)
	for host, l := range a.leaves {
		if l.used < least {
			oldest, least = host, l.used
		}
	}
	delete(a.leaves, oldest)
}

// issue makes the certificate of a host, which is a name or an address.
func (a *authority) issue(host string, ends time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		NotBefore: time.Now().Add(-skewTime), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
