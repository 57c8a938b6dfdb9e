package znode

import (
	"slices"
	"testing"
)

func TestBalanceThrottle(t *testing.T) {
	for text, rates := range map[string][]int64{`{"version":1,"rates":[]}`: {}, `{"version":1,"rates":[50000000,777]}`: {50000000, 777}} {
		if got := string(EncodeBalanceThrottle(rates)); got != text {
			t.Errorf("%v is %s", rates, got)
		}
		if got, err := DecodeBalanceThrottle([]byte(text)); err != nil || !slices.Equal(got, rates) {
			t.Errorf("%s reads as %v, %v", text, got, err)
		}
	}
	if _, err := DecodeBalanceThrottle([]byte("{")); err == nil {
		t.Error("half a znode is no error")
	}
}
