package group

import "testing"

func TestPartitionForIsJavas(t *testing.T) {
	for group, hash := range map[string]int32{
		"": 0, "a": 97, "g-classic": javaHash("g-classic"), "polygenelubricants": -2147483648, "ä": 228, "𝄞": 1772394,
		"Aa": 2112, "BB": 2112,
	} {
		if got := javaHash(group); got != hash {
			t.Errorf("hash of %q is %d, want %d", group, got, hash)
		}
	}
	if got := PartitionFor("polygenelubricants", 50); got != 0 {
		t.Errorf("the smallest hash goes to partition %d, want 0", got)
	}
	// Where a real Kafka of 4 partitions put them.
	for group, want := range map[string]int32{
		"g-classic": 0, "g-static": 0, "g-simple": 0, "g-txn": 0, "g-848": 2, "g-deleted": 3, "g-offset-deleted": 3,
		"g-848-static": 3, "g-share": 3,
	} {
		if got := PartitionFor(group, 4); got != want {
			t.Errorf("%s goes to partition %d, want %d", group, got, want)
		}
	}
	if got := javaLength("aä𝄞"); got != 4 {
		t.Errorf("length %d, want 4", got)
	}
}
