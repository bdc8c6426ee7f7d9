package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Writes files and folders, each given as PLACE=SOURCE, into one compressed archive.
func archive(args []string) error {
	set, told := flags("archive")
	out := set.String("out", "", "file to write")
	if err := told.parse(set, args); err != nil {
		return err
	}
	files := map[string]file{}
	for _, named := range set.Args() {
		place, source, _ := strings.Cut(named, "=")
		if err := collect(files, place, source); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		return errors.New("no files for the archive")
	}
	packed, err := layer(files, told.time)
	if err != nil {
		return err
	}
	return os.WriteFile(*out, packed, 0o644)
}

func collect(into map[string]file, place, source string) error {
	return filepath.WalkDir(source, func(found string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(source, found)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(found)
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		into[path.Join(place, filepath.ToSlash(below))] = file{mode: mode, content: content}
		return err
	})
}
