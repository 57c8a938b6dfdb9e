package znode

import (
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// Permissions of ZooKeeper's ACLs.
const (
	permRead = 1
	permAll  = 31
)

// SecureACL is what Kafka protects a znode with where zookeeper.set.acl is true: its creator, which is every
// broker that logs in as the same user, may do everything, and everybody may read, except for what holds
// secrets. /consumers stays open, since old consumers keep their offsets in it.
func SecureACL(path string) []coordination.ACL {
	if path == "/consumers" {
		return nil
	}
	acl := []coordination.ACL{{Permissions: permAll, Scheme: "auth"}}
	if !slices.ContainsFunc([]string{"/config/users", "/config/brokers", "/delegation_token/tokens"}, func(secret string) bool {
		return strings.HasPrefix(path, secret)
	}) {
		acl = append(acl, coordination.ACL{Permissions: permRead, Scheme: "world", ID: "anyone"})
	}
	return acl
}
