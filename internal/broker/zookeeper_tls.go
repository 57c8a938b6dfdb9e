package broker

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// zooKeeperTLS reads zookeeper.ssl.…; nil where zookeeper.ssl.client.enable is false. Stores are PEM files: a key
// store holds the certificates, the broker's first, and the key.
func zooKeeperTLS(c *config.Broker, files vfs.FS) (*tls.Config, error) {
	const prefix = "zookeeper.ssl."
	if !c.Bool(prefix + "client.enable") {
		return nil, nil //nolint:nilnil // no TLS
	}
	o := &tls.Config{MinVersion: tls.VersionTLS12}
	if text, err := readPEM(c, files, prefix+"truststore"); err != nil {
		return nil, err
	} else if text != nil {
		o.RootCAs = x509.NewCertPool()
		if !o.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%struststore.location=%s holds no certificate", prefix, c.String(prefix+"truststore.location"))
		}
	}
	if text, err := readPEM(c, files, prefix+"keystore"); err != nil {
		return nil, err
	} else if text != nil {
		pair, err := tls.X509KeyPair(text, text)
		if err != nil {
			return nil, fmt.Errorf("%skeystore.location=%s: %w (the key must not be encrypted)", prefix, c.String(prefix+"keystore.location"), err)
		}
		o.Certificates = []tls.Certificate{pair}
	}
	if err := limitTLS(c, o); err != nil {
		return nil, err
	}
	if c.String(prefix+"endpoint.identification.algorithm") == "" {
		checkChainOnly(o)
	}
	return o, nil
}

// readPEM reads a store; nil where none is named. Java's own formats are refused, with the way out.
func readPEM(c *config.Broker, files vfs.FS, store string) ([]byte, error) {
	path, kind := c.String(store+".location"), strings.ToUpper(c.String(store+".type"))
	if path == "" {
		return nil, nil
	}
	if kind == "" {
		kind = "JKS"
		for suffix, of := range map[string]string{".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"} {
			if strings.HasSuffix(strings.ToLower(path), suffix) {
				kind = of
			}
		}
	}
	if kind != "PEM" {
		return nil, fmt.Errorf("%[1]s.location=%[2]s is of type %[3]s, and only PEM is supported (%[1]s.type=PEM). To convert it: "+
			"keytool -importkeystore -srckeystore %[2]s -destkeystore store.p12 -deststoretype PKCS12 && openssl pkcs12 -in store.p12 -nodes -out store.pem",
			store, path, kind)
	}
	f, err := files.OpenFile(path, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("%s.location: %w", store, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("%s.location: %w", store, err)
	}
	text := make([]byte, min(size, maxStore))
	if _, err := f.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s.location: %w", store, err)
	}
	return text, nil
}

// maxStore bounds a file of certificates.
const maxStore = 4 << 20

// limitTLS applies the versions and cipher suites that are asked for by their Java names.
func limitTLS(c *config.Broker, o *tls.Config) error {
	versions := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}
	protocols := c.List("zookeeper.ssl.enabled.protocols")
	if len(protocols) == 0 && c.IsSet("zookeeper.ssl.protocol") {
		protocols = []string{c.String("zookeeper.ssl.protocol")}
	}
	for i, name := range protocols {
		version, ok := versions[name]
		switch {
		case name == "TLS":
			continue
		case !ok:
			return fmt.Errorf("%s is not supported towards ZooKeeper: TLSv1.2 and TLSv1.3 are", name)
		case i == 0:
			o.MinVersion, o.MaxVersion = version, version
		}
		o.MinVersion, o.MaxVersion = min(o.MinVersion, version), max(o.MaxVersion, version)
	}
	suites := map[string]uint16{}
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		suites[s.Name] = s.ID
	}
	for _, name := range c.List("zookeeper.ssl.cipher.suites") {
		id, ok := suites[name]
		if !ok {
			return fmt.Errorf("zookeeper.ssl.cipher.suites: %s is not known", name)
		}
		o.CipherSuites = append(o.CipherSuites, id)
	}
	return nil
}

// checkChainOnly accepts a certificate of any host, as long as somebody who is trusted has signed it.
func checkChainOnly(o *tls.Config) {
	roots := o.RootCAs
	o.InsecureSkipVerify = true //nolint:gosec // the chain is verified below
	o.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the server has no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
}
