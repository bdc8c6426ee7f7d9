package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Whom the image's programs run as: nobody that exists on a node.
const user = "65532:65532"

//go:embed root
var fixed embed.FS

// What lies below the program: the few files of Debian's packages that it needs, and no shell.
func base(program []byte, architecture string, packages []debian) (map[string]file, error) {
	root, err := libraries(program, architecture, packages)
	if err != nil {
		return nil, err
	}
	if root["etc/ssl/certs/ca-certificates.crt"], err = authorities(packages); err != nil {
		return nil, err
	}
	for _, one := range packages {
		// Where scanners look for packages in images without dpkg.
		root["var/lib/dpkg/status.d/"+one.name] = file{mode: 0o644, content: one.control}
		if copyright, there := one.files["usr/share/doc/"+one.name+"/copyright"]; there {
			root["usr/share/doc/"+one.name+"/copyright"] = copyright
		}
	}
	return root, fs.WalkDir(fixed, "root", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fixed.ReadFile(name)
		root[strings.TrimPrefix(name, "root/")] = file{mode: 0o644, content: content}
		return err
	})
}

// The program's loader, and the libraries that it and they ask for.
func libraries(program []byte, architecture string, packages []debian) (map[string]file, error) {
	found := map[string]file{}
	loader, wanted, err := needs(program)
	if err != nil || loader == "" {
		return found, err
	}
	wanted = append(wanted, path.Base(loader))
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		place, library, err := library(name, architecture, packages)
		if err != nil {
			return nil, err
		}
		if _, again := found[place]; again {
			continue
		}
		found[place] = library
		_, more, err := needs(library.content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		wanted = append(wanted, more...)
	}
	loader = strings.TrimPrefix(loader, "/")
	for _, one := range packages {
		if link, there := one.files[loader]; there {
			found[loader] = link
			return found, nil
		}
	}
	return nil, fmt.Errorf("no package has the loader %s", loader)
}

// The path of a program's loader, and the names of the libraries that are loaded with it.
func needs(program []byte) (loader string, names []string, err error) {
	binary, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", nil, err
	}
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP {
			text := make([]byte, part.Filesz)
			if _, err := part.ReadAt(text, 0); err != nil {
				return "", nil, err
			}
			loader = strings.TrimRight(string(text), "\x00")
		}
	}
	names, err = binary.ImportedLibraries()
	return loader, names, err
}

// Where Debian has the libraries of an architecture.
var triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

func library(name, architecture string, packages []debian) (string, file, error) {
	triplet := triplets[architecture]
	for _, folder := range []string{"lib/" + triplet + "/", "usr/lib/" + triplet + "/"} {
		for _, one := range packages {
			if found, there := one.files[folder+name]; there && found.link == "" {
				return folder + name, found, nil
			}
		}
	}
	return "", file{}, fmt.Errorf("no package has %s", name)
}

// All certificate authorities in one file, as update-ca-certificates writes it.
func authorities(packages []debian) (file, error) {
	certificates := map[string][]byte{}
	for _, one := range packages {
		for name, found := range one.files {
			if strings.HasPrefix(name, "usr/share/ca-certificates/") && strings.HasSuffix(name, ".crt") {
				certificates[name] = found.content
			}
		}
	}
	if len(certificates) == 0 {
		return file{}, errors.New("no package has certificate authorities")
	}
	var bundle bytes.Buffer
	for _, name := range sorted(certificates) {
		bundle.Write(bytes.TrimRight(certificates[name], "\n"))
		bundle.WriteByte('\n')
	}
	return file{mode: 0o644, content: bundle.Bytes()}, nil
}

// The files as a compressed tar: sorted, of one time, and all of root.
func layer(files map[string]file, at time.Time) ([]byte, error) {
	var packed bytes.Buffer
	// This gzip is pinned with this module, while that of the standard library may change with Go.
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, folder := range folders(files) {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: at}); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(files) {
		one := files[name]
		header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: one.mode, Size: int64(len(one.content)), ModTime: at}
		if one.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, one.link
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(one.content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// Every folder above a file, from the top.
func folders(files map[string]file) []string {
	found := map[string]bool{}
	for name := range files {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			found[folder] = true
		}
	}
	return sorted(found)
}

func sorted[T any](values map[string]T) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
