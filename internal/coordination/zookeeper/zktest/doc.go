// Package zktest runs a real ZooKeeper for tests: one server, or an ensemble, each a plain java process that
// dies with the test.
//
// The jars are found, in this order, in
//
//	$BARNABAS_TEST_ZOOKEEPER            a Java class path
//	/usr/share/java                     Debian's packages libzookeeper-java and libnetty-java
//	$BARNABAS_TEST_CACHE/zookeeper      whatever jars lie there; test/run puts Maven's there
//
// A server is ready within a second or two. One for each test package, and a chroot for each test, is cheap.
package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing means that this machine has no ZooKeeper, or no Java.
var ErrMissing = errors.New("no ZooKeeper on this machine")

// debian holds the jars of Debian's packages that a server wants. The manifest of the first names most of the
// others; what TLS needs is missing there.
var debian = []string{
	"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "netty-buffer", "netty-codec", "netty-common", "netty-handler",
	"netty-resolver", "netty-transport", "netty-transport-native-epoll", "netty-transport-native-unix-common", "snappy-java",
	"metrics-core", "commons-cli",
}

// ClassPath is where the jars are. The error is ErrMissing, and says what to install.
func ClassPath() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("%w: there is no java (Debian: openjdk-17-jre-headless)", ErrMissing)
	}
	if path := os.Getenv("BARNABAS_TEST_ZOOKEEPER"); path != "" {
		return path, nil
	}
	if _, err := os.Stat("/usr/share/java/zookeeper.jar"); err == nil {
		jars := make([]string, len(debian))
		for i, name := range debian {
			jars[i] = "/usr/share/java/" + name + ".jar"
		}
		return strings.Join(jars, ":"), nil
	}
	cache := os.Getenv("BARNABAS_TEST_CACHE")
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache", "barnabas-test")
	}
	jars, err := filepath.Glob(filepath.Join(cache, "zookeeper", "*.jar"))
	if err != nil || len(jars) == 0 {
		return "", fmt.Errorf("%w (Debian: libzookeeper-java; or test/run tools)", ErrMissing)
	}
	return strings.Join(jars, string(os.PathListSeparator)), nil
}
