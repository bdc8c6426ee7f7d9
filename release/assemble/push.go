package main

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The login of docker, podman, helm or cosign.
var login = remote.WithAuthFromKeychain(authn.DefaultKeychain)

// Pushes OCI layouts, one for each architecture, as one index without a tag. Prints the digest of the index, and that of
// each image after its architecture.
func push(args []string) error {
	set, _ := flags("push")
	repository := set.String("repository", "", "name without a tag")
	if err := set.Parse(args); err != nil {
		return err
	}
	index, images, err := pushed(*repository, set.Args())
	if err != nil {
		return err
	}
	fmt.Println("index", index)
	for _, architecture := range sorted(images) {
		fmt.Println(architecture, images[architecture])
	}
	return nil
}

func pushed(repository string, folders []string) (digest v1.Hash, images map[string]v1.Hash, err error) {
	target, err := name.NewRepository(repository)
	if err != nil {
		return digest, nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	images = map[string]v1.Hash{}
	for _, folder := range folders {
		if index, err = addLayout(index, images, folder); err != nil {
			return digest, nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
	if len(images) == 0 {
		return digest, nil, errors.New("no layouts to push")
	}
	if digest, err = index.Digest(); err != nil {
		return digest, nil, err
	}
	return digest, images, remote.WriteIndex(target.Digest(digest.String()), index, login)
}

func addLayout(index v1.ImageIndex, images map[string]v1.Hash, folder string) (v1.ImageIndex, error) {
	written, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := written.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, one := range manifest.Manifests {
		image, err := written.Image(one.Digest)
		if err != nil {
			return nil, err
		}
		if _, again := images[one.Platform.Architecture]; again {
			return nil, fmt.Errorf("a second image for %s", one.Platform.Architecture)
		}
		images[one.Platform.Architecture] = one.Digest
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: one.Platform}})
	}
	return index, nil
}

// Gives what was pushed its tag.
func tag(args []string) error {
	set, _ := flags("tag")
	reference := set.String("reference", "", "name and tag")
	digest := set.String("digest", "", "digest of the index")
	if err := set.Parse(args); err != nil {
		return err
	}
	wanted, err := name.NewTag(*reference)
	if err != nil {
		return err
	}
	pushed, err := remote.Index(wanted.Context().Digest(*digest), login)
	if err != nil {
		return err
	}
	return remote.Tag(wanted, pushed, login)
}
