package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pageCache fills the memory that is free with cached pages of a file of its own.
//
// A machine that has been up for a while has no free memory: what is cached takes it, and what is written takes the place
// of what was read before. A fresh one has much, and a virtual one has given it back to its host, which gives it again
// page by page, at several times the price of the write itself. Without this, that falls on whichever side comes next, and
// differs from one round to another; each topic that is deleted frees memory again. On such a machine it takes five
// seconds for each GB that a round frees, else next to nothing.
type pageCache struct {
	file *os.File
	at   int64
}

// freeAtMost is which part of memory is left free: the kernel keeps some hundredth so by itself.
const freeAtMost = 50

// fillPageCache is done before what writes much is measured.
func (c *comparison) fillPageCache() error {
	if !c.warmup {
		return nil
	}
	return c.pages.fill(c.place.Dir)
}

// fill leaves at most a fiftieth of memory free. The file has no blocks, so that pages of zeros come and no disk is read.
// Where files are memory themselves, nothing is cached, and it ends when it has read as much as there is memory.
func (p *pageCache) fill(dir string) error {
	total, err := memory("MemTotal")
	if err != nil {
		return err
	}
	if p.file == nil {
		if p.file, err = os.Create(filepath.Join(dir, "page-cache")); err != nil {
			return err
		}
		if err := p.file.Truncate(1 << 42); err != nil {
			return err
		}
	}
	buffer := make([]byte, 1<<20)
	for end := p.at + total; p.at < end; p.at += int64(len(buffer)) {
		if p.at%(16<<20) == 0 {
			free, err := memory("MemFree")
			if err != nil || free <= total/freeAtMost {
				return err
			}
		}
		if _, err := p.file.ReadAt(buffer, p.at); err != nil && err != io.EOF {
			return fmt.Errorf("filling the page cache: %w", err)
		}
	}
	return nil
}

func (p *pageCache) close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// memory is a figure of /proc/meminfo in bytes.
func memory(name string) (int64, error) {
	kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", name), " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/meminfo, %s: %w", name, err)
	}
	return kib << 10, nil
}
