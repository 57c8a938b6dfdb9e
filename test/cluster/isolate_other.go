//go:build !linux

package main

import "errors"

var errNoNamespaces = errors.New("only Linux has network namespaces")

func isolate() (bool, error) { return true, nil }

func canIsolate() error { return errNoNamespaces }

func mountVolume(string, int) error { return errNoNamespaces }

func unmountVolume(string) error { return nil }

func openFiles(int) (int, error) { return 0, nil }
