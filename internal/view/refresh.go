package view

import (
	"context"
	"errors"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Refresh reads the configuration of one entity from the store, and returns when the image shows it: whoever
// has changed it may then answer that it holds. The watch would bring it too, only later.
//
// Two may refresh at once, and the watch deliver meanwhile: mzxid decides which read is newer (configure).
func (v *View) Refresh(ctx context.Context, entity metadata.Entity) error {
	v.changing.Lock()
	defer v.changing.Unlock()
	if v.session == nil {
		return coordination.ErrNotSent
	}
	data, stat, err := v.session.Get(ctx, znode.EntityPath(entity))
	switch {
	case errors.Is(err, coordination.ErrNoNode):
		delete(v.configs, entity)
		v.change(nil, metadata.SetConfig{Entity: entity})
		return nil
	case err != nil:
		return err
	}
	v.change(nil, v.configure(nil, entity, data, stat.Mzxid)...)
	return nil
}

// Configured lists the names of the entities of one type that have properties, sorted. A node that is left
// without any says nothing.
func (v *View) Configured(kind string) []string {
	v.changing.Lock()
	defer v.changing.Unlock()
	var names []string
	image := v.Image()
	for entity := range v.configs {
		if entity.Type() != kind || len(image.Config(entity)) == 0 {
			continue
		}
		if name, err := znode.Desanitize(entity.Name()); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
