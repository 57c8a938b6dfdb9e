package znode

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
)

// ClusterIDPath holds the id of the cluster, which the first broker creates; the version is a string here:
//
//	{"version":"1","id":"0Xdv8gocR0SHlnUz4LPb7w"}
const ClusterIDPath = "/cluster/id"

// EncodeClusterID writes the znode.
func EncodeClusterID(id string) []byte {
	return append(appendText([]byte(`{"version":"1","id":`), id), '}')
}

// DecodeClusterID reads the znode.
func DecodeClusterID(data []byte) (string, error) {
	var v struct {
		ID string `json:"id"`
	}
	if err := decode(ClusterIDPath, data, &v); err != nil {
		return "", err
	}
	if v.ID == "" {
		return "", errors.New(ClusterIDPath + " holds no id")
	}
	return v.ID, nil
}

// NewClusterID draws an id as Kafka does: a random UUID in 22 characters of URL-safe base64.
func NewClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails since Go 1.24
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return base64.RawURLEncoding.EncodeToString(id[:])
}
