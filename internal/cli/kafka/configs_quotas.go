package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// quotaEntities are the kinds of things that have quotas, in the words of the request and of the tool.
//
//	MatchType   0  this name    1  the default entity    2  any name
//
// in the request (KIP-546); the tool asks strictly, so that a quota of a user and a client is not among those
// of the user.
func quotaEntities() map[string][2]string {
	return map[string][2]string{
		"users":   {"user", "user-principal"},
		"clients": {"client-id", "client-id"},
		"ips":     {"ip", "ip"},
	}
}

// describeQuotas shows the quotas of users, clients or addresses, and the SCRAM credentials of users.
func describeQuotas(ctx context.Context, t *call, client *admin.Client, s subject) error {
	quotas, err := client.Quotas(ctx, quotaFilter(s))
	if err != nil {
		return err
	}
	for _, q := range quotas {
		var values []string
		for _, v := range q.Values {
			values = append(values, v.Key+"="+javaFloat(v.Value, 64))
		}
		t.printf("Quota configs for %s are %s\n", quotaName(q.Entity), strings.Join(values, ", "))
	}
	if s.has("ips", "clients") || slices.Contains(s.names, "") {
		return nil
	}
	credentials, err := client.SCRAM(ctx, s.names...)
	if err != nil {
		return err
	}
	for _, c := range credentials {
		if c.Err != nil {
			continue
		}
		var infos []string
		for _, info := range c.CredInfos {
			infos = append(infos, fmt.Sprintf("%s=iterations=%d", info.Mechanism, info.Iterations))
		}
		t.printf("SCRAM credential configs for user-principal '%s' are %s\n", c.User, strings.Join(infos, ", "))
	}
	return nil
}

// quotaFilter is what a command line is about in the words of the request.
func quotaFilter(s subject) []kadm.DescribeClientQuotaComponent {
	var filter []kadm.DescribeClientQuotaComponent
	for i, kind := range s.kinds {
		component := kadm.DescribeClientQuotaComponent{Type: quotaEntities()[kind][0], MatchType: 2}
		switch {
		case i >= len(s.names):
		case s.names[i] == "":
			component.MatchType = 1
		default:
			component.MatchType, component.MatchName = 0, &s.names[i]
		}
		filter = append(filter, component)
	}
	return filter
}

// quotaName is what a quota is for in the words of the tool.
func quotaName(entity kadm.ClientQuotaEntity) string {
	var parts []string
	for _, kind := range []string{"users", "clients", "ips"} {
		words := quotaEntities()[kind]
		for _, part := range entity {
			switch {
			case part.Type != words[0]:
			case part.Name == nil || *part.Name == "":
				parts = append(parts, "the default "+words[1])
			default:
				parts = append(parts, words[1]+" '"+*part.Name+"'")
			}
		}
	}
	return strings.Join(parts, ", ")
}

// alterQuotas changes quotas, or SCRAM credentials of a user.
//
// SCRAM passwords are given as SCRAM-SHA-256=[iterations=8192,password=secret] and salted here: what is sent,
// and what is stored, is never the password.
func alterQuotas(ctx context.Context, client *admin.Client, s subject, set map[string]string, remove []string) error {
	keys := append(slices.Sorted(maps.Keys(set)), remove...)
	if slices.ContainsFunc(keys, isSCRAM) {
		if !s.has("users") || len(s.kinds) != 1 || s.names[0] == "" || !all(keys, isSCRAM) {
			return badArgument{"SCRAM credentials belong to one user, and are not changed together with quotas."}
		}
		return alterSCRAM(ctx, client, s.names[0], set, remove)
	}
	for _, key := range keys {
		if !isQuota(key, s.has("ips")) {
			return badArgument{fmt.Sprintf("Only quota configs can be added for '%s' using --bootstrap-server. "+
				"Unexpected config names: %s", s.kinds[0], key)}
		}
	}
	if err := quotasExist(ctx, client, s, remove); err != nil {
		return err
	}
	var entry kadm.AlterClientQuotaEntry
	for i, kind := range s.kinds {
		part := kadm.ClientQuotaEntityComponent{Type: quotaEntities()[kind][0]}
		if s.names[i] != "" {
			part.Name = &s.names[i]
		}
		entry.Entity = append(entry.Entity, part)
	}
	for key, text := range set {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return badArgument{fmt.Sprintf("Cannot parse quota configuration value for %s: %s", key, text)}
		}
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: key, Value: value})
	}
	for _, key := range remove {
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: key, Remove: true})
	}
	return client.AlterQuotas(ctx, entry)
}

// quotasExist refuses to delete quotas that there are not.
func quotasExist(ctx context.Context, client *admin.Client, s subject, remove []string) error {
	if len(remove) == 0 {
		return nil
	}
	quotas, err := client.Quotas(ctx, quotaFilter(s))
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(remove), func(key string) bool {
		return len(quotas) > 0 && slices.ContainsFunc(quotas[0].Values, func(v kadm.ClientQuotaValue) bool { return v.Key == key })
	})
	if len(missing) > 0 {
		return badArgument{"Invalid config(s): " + strings.Join(missing, ",")}
	}
	return nil
}

func all(list []string, is func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !is(s) })
}

func isSCRAM(key string) bool { return key == "SCRAM-SHA-256" || key == "SCRAM-SHA-512" }

func isQuota(key string, ip bool) bool {
	if ip {
		return key == "connection_creation_rate"
	}
	return slices.Contains([]string{"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}, key)
}

// alterSCRAM sets and deletes credentials; a value is [iterations=n,]password=p without its brackets.
func alterSCRAM(ctx context.Context, client *admin.Client, user string, set map[string]string, remove []string) error {
	const fewest, usual = 4096, 4096
	var deletions []kadm.DeleteSCRAM
	for _, mechanism := range remove {
		deletions = append(deletions, kadm.DeleteSCRAM{User: user, Mechanism: mechanismOf(mechanism)})
	}
	var upserts []kadm.UpsertSCRAM
	for mechanism, value := range set {
		iterations := int64(usual)
		if rest, ok := strings.CutPrefix(value, "iterations="); ok {
			number, after, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil {
				return badArgument{fmt.Sprintf("Invalid credential property %s", mechanism)}
			}
			if n != -1 {
				iterations = n
			}
			value = after
		}
		password, ok := strings.CutPrefix(value, "password=")
		if !ok {
			return badArgument{fmt.Sprintf("Invalid credential property %s", mechanism)}
		}
		if iterations < fewest {
			return badArgument{fmt.Sprintf("Iterations %d is less than the minimum %d "+
				"required for %s", iterations, fewest, mechanism)}
		}
		upserts = append(upserts, kadm.UpsertSCRAM{
			User: user, Mechanism: mechanismOf(mechanism), Iterations: int32(iterations), Password: password,
		})
	}
	return client.AlterSCRAM(ctx, deletions, upserts)
}

func mechanismOf(name string) kadm.ScramMechanism {
	if name == "SCRAM-SHA-512" {
		return kadm.ScramSha512
	}
	return kadm.ScramSha256
}
