package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// A Debian package that the image has files of.
type debian struct {
	name, version, architecture string
	file, sha256                string
	// As dpkg keeps it: scanners read it.
	control []byte
	// By path without a leading slash.
	files map[string]file
}

type file struct {
	mode    int64
	link    string
	content []byte
}

// All packages in a folder, by name.
func readPackages(folder string) ([]debian, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no packages in %q", folder)
	}
	sort.Strings(paths)
	var all []debian
	for _, path := range paths {
		one, err := readPackage(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func readPackage(path string) (debian, error) {
	archive, err := os.ReadFile(path)
	if err != nil {
		return debian{}, err
	}
	control, err := exec.Command("dpkg-deb", "--field", path).Output()
	if err != nil {
		return debian{}, err
	}
	content, err := exec.Command("dpkg-deb", "--fsys-tarfile", path).Output()
	if err != nil {
		return debian{}, err
	}
	files, err := untar(content)
	sum := sha256.Sum256(archive)
	found := debian{file: filepath.Base(path), sha256: hex.EncodeToString(sum[:]), control: control, files: files}
	for _, line := range strings.Split(string(control), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Package":
			found.name = value
		case "Version":
			found.version = value
		case "Architecture":
			found.architecture = value
		}
	}
	return found, err
}

func untar(content []byte) (map[string]file, error) {
	files, reader := map[string]file{}, tar.NewReader(bytes.NewReader(content))
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(header.Name, "./")
		switch header.Typeflag {
		case tar.TypeReg:
			content, err := io.ReadAll(reader)
			if err != nil {
				return nil, err
			}
			files[name] = file{mode: header.Mode & 0o777, content: content}
		case tar.TypeSymlink:
			files[name] = file{mode: 0o777, link: header.Linkname}
		}
	}
}

// The name of a package in bills of materials: https://github.com/package-url/purl-spec
func (d debian) purl() string {
	return fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=debian-12", d.name, url.QueryEscape(d.version), d.architecture)
}
