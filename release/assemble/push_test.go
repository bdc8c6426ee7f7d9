package main

import (
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/google/go-containerregistry/pkg/registry"
)

// A layout with one image, and the digest of that.
func written(t *testing.T, architecture string) (string, v1.Hash) {
	image, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), architecture)
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture})); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return folder, digest
}

func TestBothArchitecturesArePushedAsOneIndexThatIsTaggedLater(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/dbplane"
	small, first := written(t, "arm64")
	large, second := written(t, "amd64")
	index, images, err := pushed(repository, []string{large, small})
	if err != nil {
		t.Fatal(err)
	}
	if images["arm64"] != first || images["amd64"] != second {
		t.Fatalf("other digests: %v", images)
	}
	reference, err := name.NewTag(repository + ":1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(reference); err == nil {
		t.Fatal("it has a tag before it is signed")
	}
	if err := tag([]string{"--reference", reference.String(), "--digest", index.String()}); err != nil {
		t.Fatal(err)
	}
	for architecture, digest := range images {
		image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		if found, err := image.Digest(); err != nil || found != digest {
			t.Errorf("%s: %v instead of %v, %v", architecture, found, digest, err)
		}
	}
}

func TestTwoImagesOfOneArchitectureAreRefused(t *testing.T) {
	folder, _ := written(t, "amd64")
	other, _ := written(t, "amd64")
	if _, _, err := pushed("localhost:1/dbplane", []string{folder, other}); err == nil || !strings.Contains(err.Error(), "a second image for amd64") {
		t.Errorf("%v", err)
	}
}
