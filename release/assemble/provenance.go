package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// https://github.com/in-toto/attestation/blob/main/spec/v1/resource_descriptor.md
type artifact struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// Writes what was built from what: an in-toto statement with SLSA's provenance (https://slsa.dev/spec/v1.0/provenance).
// Nobody has signed it: whoever publishes a release does.
func provenance(args []string) error {
	set, told := flags("provenance")
	var images, built, materials, tools texts
	set.Var(&images, "image", "NAME=DIGEST: an image that was built")
	set.Var(&built, "built", "a file that was built")
	set.Var(&materials, "material", "a file of the repository that pins what is fetched")
	set.Var(&tools, "tool", "NAME=VERSION: a tool that it was built with")
	out := set.String("out", "", "file to write")
	if err := told.parse(set, args); err != nil {
		return err
	}
	subjects, err := hashed(built, filepath.Base)
	if err != nil {
		return err
	}
	for _, image := range images {
		name, digest, _ := strings.Cut(image, "=")
		algorithm, hex, _ := strings.Cut(digest, ":")
		subjects = append(subjects, artifact{Name: name, Digest: map[string]string{algorithm: hex}})
	}
	dependencies, err := told.dependencies(materials)
	if err != nil {
		return err
	}
	versions := map[string]string{}
	for _, tool := range tools {
		name, version, _ := strings.Cut(tool, "=")
		versions[name] = version
	}
	return write(*out, object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            "https://dbplane.dev/release/v1",
				"externalParameters":   object{"version": told.version, "revision": told.revision},
				"internalParameters":   object{"tools": versions},
				"resolvedDependencies": dependencies,
			},
			"runDetails": object{"builder": object{"id": "https://dbplane.dev/release/make"}},
		},
	})
}

// The commit, the files that pin everything else, and the packages.
func (r *release) dependencies(materials texts) ([]artifact, error) {
	commit := map[string]string{"gitCommit": strings.TrimSuffix(r.revision, "-dirty")}
	named, err := hashed(materials, func(path string) string { return path })
	if err != nil {
		return nil, err
	}
	all := append([]artifact{{Name: "the repository", Digest: commit}}, named...)
	// On macOS nothing is made of packages.
	if r.packages == "" {
		return all, nil
	}
	packages, err := readPackages(r.packages)
	if err != nil {
		return nil, err
	}
	for _, one := range packages {
		all = append(all, artifact{Name: one.file, URI: one.purl(), Digest: map[string]string{"sha256": one.sha256}})
	}
	return all, nil
}

func hashed(paths []string, name func(string) string) ([]artifact, error) {
	var all []artifact
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("what was built: %w", err)
		}
		sum := sha256.Sum256(content)
		all = append(all, artifact{Name: name(path), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
	}
	return all, nil
}
