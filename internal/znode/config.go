package znode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/metadata"
)

// ConfigChangePrefix is what the sequential znodes that announce a changed configuration begin with. They
// are purged when they are older than 15 minutes. Version 1 named type and name apart, and knew no users
// with clients:
//
//	{"version":2,"entity_path":"topics/orders"}
//	{"version":1,"entity_type":"topics","entity_name":"orders"}
const ConfigChangePrefix = ConfigChangesPath + "/config_change_"

// EntityPath is the configuration of one entity, such as /config/topics/orders; names are sanitised
// (see [Sanitize]):
//
//	{"version":1,"config":{"compression.type":"lz4","retention.ms":"86400000"}}
func EntityPath(entity metadata.Entity) string { return ConfigPath + "/" + string(entity) }

// ClientEntity names a quota's entity from its plain names: a user, a client, a client of a user.
// An empty string means that the part is missing.
func ClientEntity(user, client string) metadata.Entity {
	switch {
	case user == "":
		return metadata.Entity(metadata.ClientEntities + "/" + Sanitize(client))
	case client == "":
		return metadata.Entity(metadata.UserEntities + "/" + Sanitize(user))
	}
	return metadata.Entity(metadata.UserEntities + "/" + Sanitize(user) + "/" + metadata.ClientEntities + "/" + Sanitize(client))
}

// EncodeConfig writes an entity's configuration, with its keys sorted.
func EncodeConfig(values map[string]string) []byte {
	dst := []byte(`{"version":1,"config":{`)
	for _, key := range sortedKeys(values) {
		dst = appendText(appendKey(dst, key), values[key])
	}
	return append(dst, `}}`...)
}

// DecodeConfig reads an entity's configuration; a znode without data holds none.
func DecodeConfig(entity metadata.Entity, data []byte) (map[string]string, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var v struct {
		Config map[string]string `json:"config"`
	}
	if err := decode(EntityPath(entity), data, &v); err != nil {
		return nil, err
	}
	return v.Config, nil
}

// EncodeConfigChange writes a notification.
func EncodeConfigChange(entity metadata.Entity) []byte {
	return append(appendText([]byte(`{"version":2,"entity_path":`), string(entity)), '}')
}

// DecodeConfigChange reads a notification.
func DecodeConfigChange(data []byte) (metadata.Entity, error) {
	var v struct {
		Path string `json:"entity_path"`
		Type string `json:"entity_type"`
		Name string `json:"entity_name"`
	}
	if err := decode(ConfigChangesPath, data, &v); err != nil {
		return "", err
	}
	path := v.Path
	if path == "" {
		path = v.Type + "/" + v.Name
	}
	kind, name, ok := strings.Cut(path, "/")
	if !ok || kind == "" || name == "" {
		return "", fmt.Errorf("%s: entity %q is not type/name", ConfigChangesPath, path)
	}
	return metadata.Entity(path), nil
}

// sortedKeys lists a map's keys in order, since what is written must not depend on Go's random one.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
