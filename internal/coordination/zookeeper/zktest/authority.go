package zktest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates for a test, which hold for an hour.
type Authority struct {
	dir string
	key *ecdsa.PrivateKey
	// Certificate is its own, which lies in Path("trust") too.
	Certificate *x509.Certificate
}

// NewAuthority makes an authority that writes into dir.
func NewAuthority(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	if a.Certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, a.write("trust", &pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// certificate is a template.
func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// Pool trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// Path is the PEM file of a name: key and certificate, or of "trust" the authority's certificate.
func (a *Authority) Path(name string) string { return filepath.Join(a.dir, name+".pem") }

// Issue writes the PEM file of a name, with a certificate for addresses.
func (a *Authority) Issue(name string, addresses ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return a.write(name, &pem.Block{Type: "PRIVATE KEY", Bytes: private}, &pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (a *Authority) write(name string, blocks ...*pem.Block) error {
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(b)...)
	}
	return os.WriteFile(a.Path(name), text, 0o600)
}

// StartTLS runs a server that takes clients with a certificate of the authority only, which has issued one
// for name, and returns the address for them.
func (a *Authority) StartTLS(name string, o Options) (*Server, string, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, "", err
	}
	port, err := s.ports.Next()
	if err != nil {
		return nil, "", err
	}
	s.options.Properties = append([]string{
		fmt.Sprintf("secureClientPort=%d", port), "secureClientPortAddress=127.0.0.1", "ssl.clientAuth=need",
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
		"ssl.keyStore.location=" + a.Path(name), "ssl.keyStore.type=PEM",
		"ssl.trustStore.location=" + a.Path("trust"), "ssl.trustStore.type=PEM",
	}, o.Properties...)
	return s, fmt.Sprintf("127.0.0.1:%d", port), s.begin()
}

// Login adds SASL DIGEST-MD5 to a server's options: a user and its password. dir is an empty folder.
func Login(dir string, o Options, user, password string) (Options, error) {
	path := filepath.Join(dir, "jaas.conf")
	text := "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_" + user + "=\"" + password + "\"; };\n"
	o.Properties = append([]string{"authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}, o.Properties...)
	o.Java = append([]string{"-Djava.security.auth.login.config=" + path, "-Dfile.encoding=UTF-8"}, o.Java...)
	return o, os.WriteFile(path, []byte(text), 0o600)
}
