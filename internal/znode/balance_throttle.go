package znode

import "strconv"

// BalanceThrottlePath is Barnabas' own: it is there while replicas may be listed as throttled because the controller moves
// partitions by itself (auto.balance.enable). It holds the rates in bytes a second that the controller has written for all
// brokers since, none where an operator's are in force: only those are the controller's to take away.
//
//	{"version":1,"rates":[50000000]}
const BalanceThrottlePath = "/admin/barnabas_balance_throttle"

// EncodeBalanceThrottle writes the znode.
func EncodeBalanceThrottle(rates []int64) []byte {
	dst := []byte(`{"version":1,"rates":[`)
	for i, rate := range rates {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, rate, 10)
	}
	return append(dst, "]}"...)
}

// DecodeBalanceThrottle reads the rates.
func DecodeBalanceThrottle(data []byte) ([]int64, error) {
	var v struct {
		Rates []int64 `json:"rates"`
	}
	err := decode(BalanceThrottlePath, data, &v)
	return v.Rates, err
}
