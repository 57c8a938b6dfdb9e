package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// configChanges are the flags that change properties.
type configChanges struct {
	name                          string
	set, remove, extend, subtract []string
}

// register adds the flags; name is that of the one which sets a property.
func (c *configChanges) register(f *pflag.FlagSet, name, short string) {
	c.name = name
	f.StringArrayVarP(&c.set, name, short, nil, "set a property to a value, as key=value; may be repeated")
	f.StringArrayVar(&c.remove, "delete-config", nil, "take a property back to its default; may be repeated")
	f.StringArrayVar(&c.extend, "append-config", nil, "add a value to a property that is a list, as key=value")
	f.StringArrayVar(&c.subtract, "subtract-config", nil, "take a value out of a property that is a list, as key=value")
}

// ops are the changes in the words of the request.
//
// A property that two flags name is not refused here: the broker does that, with INVALID_REQUEST for the whole
// resource.
func (c *configChanges) ops() ([]admin.ConfigOp, error) {
	var ops []admin.ConfigOp
	for _, kind := range []struct {
		flag  string
		given []string
		op    kmsg.IncrementalAlterConfigOp
	}{
		{c.name, c.set, kmsg.IncrementalAlterConfigOpSet},
		{"append-config", c.extend, kmsg.IncrementalAlterConfigOpAppend},
		{"subtract-config", c.subtract, kmsg.IncrementalAlterConfigOpSubtract},
	} {
		for _, pair := range kind.given {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return nil, usageError{fmt.Errorf("--%s %q is not key=value", kind.flag, pair)}
			}
			ops = append(ops, admin.ConfigOp{Name: key, Kind: kind.op, Value: &value})
		}
	}
	for _, key := range c.remove {
		ops = append(ops, admin.ConfigOp{Name: key, Kind: kmsg.IncrementalAlterConfigOpDelete})
	}
	return ops, nil
}
