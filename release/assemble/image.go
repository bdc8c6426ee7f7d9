package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// In bytes, compressed. What is pulled to every node on which the operator may start is kept small.
const largest = 20 << 20

type recipe struct {
	*release
	program, reference, description, licence, out string
	files, environment                            texts
}

// Writes the image of one program as an OCI layout, and prints its digest.
func image(args []string) error {
	set, release := flags("image")
	told := recipe{release: release}
	set.StringVar(&told.program, "program", "", "file of the program")
	set.StringVar(&told.reference, "reference", "", "name and tag of the image")
	set.StringVar(&told.description, "description", "", "one line about the program")
	set.StringVar(&told.licence, "licence", "", "file with the licence of the program")
	set.StringVar(&told.out, "out", "", "folder to write")
	set.Var(&told.files, "file", "PATH=FILE: a further file of the image")
	set.Var(&told.environment, "env", "NAME=VALUE: a variable")
	if err := release.parse(set, args); err != nil {
		return err
	}
	made, err := told.image()
	if err != nil {
		return err
	}
	if err := checkSize(made); err != nil {
		return err
	}
	if err := told.write(made); err != nil {
		return err
	}
	digest, err := made.Digest()
	fmt.Println(digest)
	return err
}

func (t recipe) image() (v1.Image, error) {
	program, err := os.ReadFile(t.program)
	if err != nil {
		return nil, err
	}
	packages, err := readPackages(t.packages)
	if err != nil {
		return nil, err
	}
	below, err := base(program, t.architecture, packages)
	if err != nil {
		return nil, err
	}
	title := filepath.Base(t.program)
	above := map[string]file{title: {mode: 0o755, content: program}}
	files := append(texts{"usr/share/doc/" + title + "/copyright=" + t.licence}, t.files...)
	for _, named := range files {
		place, source, _ := strings.Cut(named, "=")
		content, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		above[strings.TrimPrefix(place, "/")] = file{mode: 0o644, content: content}
	}
	made := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	// With no time of the release in it, the layer of packages stays the same until they change, and nodes have it already.
	for _, part := range []struct {
		files map[string]file
		from  string
		at    time.Time
	}{{below, "packages of Debian", time.Unix(0, 0).UTC()}, {above, title, t.time}} {
		if made, err = add(made, part.files, v1.History{Created: v1.Time{Time: part.at}, CreatedBy: part.from}); err != nil {
			return nil, err
		}
	}
	return t.configure(made, title)
}

func add(to v1.Image, files map[string]file, history v1.History) (v1.Image, error) {
	packed, err := layer(files, history.Created.Time)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	made, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	return mutate.Append(to, mutate.Addendum{Layer: made, History: history})
}

func (t recipe) configure(made v1.Image, title string) (v1.Image, error) {
	labels := map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": t.description,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     t.version,
		"org.opencontainers.image.revision":    t.revision,
		"org.opencontainers.image.created":     t.time.Format("2006-01-02T15:04:05Z07:00"),
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", t.architecture, v1.Time{Time: t.time}
	config.Config = v1.Config{
		User:       user,
		Entrypoint: []string{"/" + title},
		Env:        t.environment,
		WorkingDir: "/",
		Labels:     labels,
	}
	if made, err = mutate.ConfigFile(made, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(made, labels).(v1.Image), nil
}

func checkSize(made v1.Image) error {
	manifest, err := made.Manifest()
	if err != nil {
		return err
	}
	size := manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	if size > largest {
		return fmt.Errorf("the image has %d bytes, which is more than %d", size, largest)
	}
	return nil
}

// As an OCI layout that `docker load` reads too.
func (t recipe) write(made v1.Image) error {
	tag, err := name.NewTag(t.reference)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(t.out); err != nil {
		return err
	}
	folder, err := layout.Write(t.out, empty.Index)
	if err != nil {
		return err
	}
	annotations := map[string]string{
		"org.opencontainers.image.ref.name": tag.TagStr(),
		// The name under which containerd imports it, as nodes look for it.
		"io.containerd.image.name": strings.Replace(tag.Name(), "index.docker.io/", "docker.io/", 1),
	}
	platform := layout.WithPlatform(v1.Platform{OS: "linux", Architecture: t.architecture})
	if err := folder.AppendImage(made, layout.WithAnnotations(annotations), platform); err != nil {
		return err
	}
	manifest, err := made.Manifest()
	if err != nil {
		return err
	}
	blob := func(hash v1.Hash) string { return "blobs/" + hash.Algorithm + "/" + hash.Hex }
	described := tarball.Descriptor{Config: blob(manifest.Config.Digest), RepoTags: []string{t.reference}}
	for _, layer := range manifest.Layers {
		described.Layers = append(described.Layers, blob(layer.Digest))
	}
	text, err := json.Marshal(tarball.Manifest{described})
	if err := errors.Join(err, folder.WriteFile("manifest.json", text, 0o644)); err != nil {
		return err
	}
	written, err := folder.ImageIndex()
	if err != nil {
		return err
	}
	return validate.Index(written)
}
