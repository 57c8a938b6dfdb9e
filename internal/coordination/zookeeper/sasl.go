package zookeeper

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// digestURI is the service that ZooKeeper's servers expect in a digest.
const digestURI = "zookeeper/zk-sasl-md5"

// authenticate logs in with SASL DIGEST-MD5 (RFC 2831), quality of protection "auth":
//
//	client                     server
//	""                    ───▶
//	                      ◀─── realm="zk-sasl-md5",nonce="…",charset=utf-8,algorithm=md5-sess,qop="auth"
//	username, nonce, nc,
//	cnonce, response      ───▶
//	                      ◀─── rspauth=…   (the server knows the password too)
func (l *link) authenticate(who Credentials) error {
	challenge, err := l.saslStep([]byte{})
	if err != nil {
		return err
	}
	d, err := newDigest(challenge, who)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", coordination.ErrAuth, l.server, err)
	}
	final, err := l.saslStep(d.response())
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(parseDirectives(final)["rspauth"]), []byte(d.value(""))) != 1 {
		return fmt.Errorf("%w: %s does not know the password of %s", coordination.ErrAuth, l.server, who.Username)
	}
	return nil
}

// saslStep sends a token and returns the server's.
func (l *link) saslStep(token []byte) (string, error) {
	l.xid++
	code, body, err := l.exchange(l.xid, jute.OpSASL, &jute.SASLToken{Token: token})
	if err != nil {
		return "", err
	}
	if code != jute.OK {
		return "", fmt.Errorf("%w: %s refused the SASL login: %w", coordination.ErrAuth, l.server, code)
	}
	var answer jute.SASLToken
	if err := decode(body, &answer); err != nil {
		return "", err
	}
	if answer.Token == nil {
		return "", fmt.Errorf("%w: %s has no SASL login configured", coordination.ErrAuth, l.server)
	}
	return string(answer.Token), nil
}

// digest is one login.
type digest struct {
	who           Credentials
	realm, nonce  string
	cnonce, a1Hex string
}

// newDigest answers a challenge.
func newDigest(challenge string, who Credentials) (*digest, error) {
	directives := parseDirectives(challenge)
	d := &digest{who: who, realm: directives["realm"], nonce: directives["nonce"]}
	if d.nonce == "" {
		return nil, fmt.Errorf("its SASL challenge %q has no nonce: only DIGEST-MD5 is supported", challenge)
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	d.cnonce = hex.EncodeToString(random[:])
	d.begin()
	return d, nil
}

// begin computes what both values share: H(A1) of the algorithm md5-sess.
func (d *digest) begin() {
	secret := md5.Sum([]byte(latin1(d.who.Username) + ":" + latin1(d.realm) + ":" + latin1(d.who.Password)))
	a1 := md5.Sum(append(secret[:], ":"+d.nonce+":"+d.cnonce...))
	d.a1Hex = hex.EncodeToString(a1[:])
}

// value is the digest for a method: "AUTHENTICATE" from the client, "" from the server.
func (d *digest) value(method string) string {
	a2 := md5.Sum([]byte(method + ":" + digestURI))
	sum := md5.Sum([]byte(strings.Join([]string{
		d.a1Hex, d.nonce, "00000001", d.cnonce, "auth", hex.EncodeToString(a2[:]),
	}, ":")))
	return hex.EncodeToString(sum[:])
}

// response is the client's token.
func (d *digest) response() []byte {
	return fmt.Appendf(nil,
		`charset=utf-8,username=%s,realm=%s,nonce=%s,nc=00000001,cnonce=%s,digest-uri=%s,maxbuf=65536,response=%s,qop=auth`,
		quoted(d.who.Username), quoted(d.realm), quoted(d.nonce), quoted(d.cnonce), quoted(digestURI), d.value("AUTHENTICATE"))
}

// quoted is a quoted-string of RFC 2831.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// latin1 is what the digest hashes a text as: in ISO 8859-1 if it can be written so, otherwise in UTF-8.
func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff || r == utf8.RuneError {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// parseDirectives reads key=value and key="value", separated by commas. The first of a name counts.
func parseDirectives(s string) map[string]string {
	found := map[string]string{}
	for s != "" {
		var key, value string
		key, s, _ = strings.Cut(s, "=")
		key = strings.ToLower(strings.Trim(key, " \t,"))
		if strings.HasPrefix(s, `"`) {
			value, s = unquote(s[1:])
		} else {
			value, s, _ = strings.Cut(s, ",")
		}
		if _, ok := found[key]; !ok && key != "" {
			found[key] = strings.TrimSpace(value)
		}
	}
	return found
}

// unquote reads up to the closing quote and returns what follows it.
func unquote(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
