package logdir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/magiconair/properties"
)

// identityFile is Kafka's name for the file.
const identityFile = "meta.properties"

// Identity is a directory's meta.properties, which says to whom it belongs. Version 0, of Kafka with
// ZooKeeper, has broker.id and cluster.id; version 1, of KRaft, node.id, cluster.id and directory.id. Either
// is kept as it was found, so that Kafka can take the directory back; new directories get version 1.
//
//	#                                              #
//	#Sun Nov 30 12:00:00 UTC 2025                  #Sun Nov 30 12:00:00 UTC 2025
//	broker.id=1                                    node.id=1
//	version=0                                      directory.id=NV4_ueZYv-GIoATEVmlvTQ
//	cluster.id=J8qXRwI-Qyi2G0guFTiuYw              version=1
//	                                               cluster.id=J8qXRwI-Qyi2G0guFTiuYw
//
// Without the check a disk of another broker, mounted here by mistake, would be served as ours.
type Identity struct {
	// Version is 0 or 1.
	Version int
	// Node is the broker that the directory belongs to, or NoBroker where the file does not say, as with a
	// version 0 that has not been started yet.
	Node protocol.BrokerID
	// Cluster is the id of the cluster, or empty where the file does not say.
	Cluster string
	// Directory is the directory's own id, or zero where the file does not say.
	Directory DirectoryID
}

// DirectoryID names a directory for good, wherever it is mounted (KIP-858). It has the form of a topic id.
type DirectoryID = protocol.TopicID

// ReadIdentity reads meta.properties in dir. The error is fs.ErrNotExist where there is none.
func ReadIdentity(files vfs.FS, dir string) (Identity, error) {
	path := filepath.Join(dir, identityFile)
	text, err := readFile(files, path, 64<<10)
	if err != nil {
		return Identity{}, err
	}
	id, err := parseIdentity(text)
	if err != nil {
		return id, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}

// parseIdentity reads the text of meta.properties, with Java's escapes.
func parseIdentity(text []byte) (Identity, error) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := loader.LoadBytes(text)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Node: protocol.NoBroker, Cluster: p.GetString("cluster.id", "")}
	version, ok := p.Get("version")
	if !ok || version != "0" && version != "1" {
		return id, fmt.Errorf("version %q is neither 0 nor 1", version)
	}
	id.Version = int(version[0] - '0')
	key := "broker.id"
	if id.Version == 1 {
		key = "node.id"
	}
	if text, ok := p.Get(key); ok {
		node, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return id, fmt.Errorf("%s %q is not a number", key, text)
		}
		id.Node = protocol.BrokerID(node)
	}
	if text, ok := p.Get("directory.id"); ok {
		if id.Directory, err = protocol.ParseTopicID(text); err != nil {
			return id, fmt.Errorf("directory.id: %w", err)
		}
	}
	// Version 0 is written before the broker has an id (broker.id.generation); version 1 has all.
	if id.Version == 1 && (id.Node == protocol.NoBroker || id.Cluster == "") {
		return id, errors.New("version 1 without node.id or cluster.id")
	}
	return id, nil
}

// Format is the text of meta.properties as Java writes it, with the time as its comment.
func (id Identity) Format(now time.Time) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "#\n#%s\n", now.UTC().Format("Mon Jan 02 15:04:05 MST 2006"))
	if id.Version == 0 {
		fmt.Fprintf(&text, "broker.id=%d\nversion=0\n", id.Node)
	} else {
		fmt.Fprintf(&text, "node.id=%d\ndirectory.id=%s\nversion=1\n", id.Node, id.Directory)
	}
	fmt.Fprintf(&text, "cluster.id=%s\n", escapeProperty(id.Cluster))
	return text.Bytes()
}

// escapeProperty escapes what has a meaning in a value of a properties file. Ids that Kafka or we draw need
// none of it; a cluster id may be any text.
func escapeProperty(value string) string {
	var out []byte
	for i, c := range []byte(value) {
		if c == '\\' || c == '=' || c == ':' || c == '#' || c == '!' || c == ' ' && i == 0 {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
}

// WriteIdentity writes meta.properties in dir, durably.
func WriteIdentity(files vfs.FS, dir string, id Identity, now time.Time) error {
	return writeFile(files, filepath.Join(dir, identityFile), id.Format(now))
}

// check reports why a directory with this identity must not be used by the broker and the cluster.
func (id Identity) check(dir string, broker protocol.BrokerID, cluster string) error {
	if id.Node != protocol.NoBroker && broker != protocol.NoBroker && id.Node != broker {
		return fmt.Errorf("%s belongs to broker %d, as its %s says, and this is broker %d: set broker.id=%d (or node.id), or another log.dirs",
			dir, id.Node, identityFile, broker, id.Node)
	}
	if id.Cluster != "" && cluster != "" && id.Cluster != cluster {
		return fmt.Errorf("%s belongs to the cluster %s, as its %s says, and this broker to %s: it was made for another cluster, or the cluster's metadata was lost",
			dir, id.Cluster, identityFile, cluster)
	}
	return nil
}

// missing reports whether err says that a file is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
