package record

// Compressor keeps what compression needs between batches. The zero value is ready; it is safe for
// concurrent use.
type Compressor struct{}
