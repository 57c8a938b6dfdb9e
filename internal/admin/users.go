package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Quotas are the quotas of the users, clients or addresses that match exactly the components.
func (c *Client) Quotas(ctx context.Context, filter []kadm.DescribeClientQuotaComponent) ([]kadm.DescribedClientQuota, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	quotas, err := c.admin.DescribeClientQuotas(ctx, true, filter)
	if err != nil {
		return nil, c.Explain(err)
	}
	return quotas, nil
}

// AlterQuotas changes the quotas of one entity.
func (c *Client) AlterQuotas(ctx context.Context, entry kadm.AlterClientQuotaEntry) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	altered, err := c.admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{entry})
	if err != nil {
		return c.Explain(err)
	}
	for _, a := range altered {
		if a.Err != nil {
			return &DetailedError{Code: a.Err, Message: a.ErrMessage}
		}
	}
	return nil
}

// SCRAM are the credentials of users, or of all, sorted by user. A user without any is an entry with an
// error.
func (c *Client) SCRAM(ctx context.Context, users ...string) ([]kadm.DescribedUserSCRAM, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	described, err := c.admin.DescribeUserSCRAMs(ctx, users...)
	if err != nil {
		return nil, c.Explain(err)
	}
	var all []kadm.DescribedUserSCRAM
	for _, d := range described {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b kadm.DescribedUserSCRAM) int { return cmp.Compare(a.User, b.User) })
	return all, nil
}

// AlterSCRAM deletes and sets credentials of one user.
//
// Passwords are salted and hashed on this side (KIP-554): what goes over the wire is the salted password.
func (c *Client) AlterSCRAM(ctx context.Context, deletions []kadm.DeleteSCRAM, upserts []kadm.UpsertSCRAM) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	altered, err := c.admin.AlterUserSCRAMs(ctx, deletions, upserts)
	if err != nil {
		return c.Explain(err)
	}
	for _, a := range altered {
		if a.Err != nil {
			return &DetailedError{Code: a.Err, Message: a.ErrMessage}
		}
	}
	return nil
}
