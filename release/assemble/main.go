// Assembles what a release publishes: archives, images, bills of materials (SBOM), and the statement of what was built
// from what (provenance). The same input gives the same bytes. It also pushes images.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// What all verbs are told.
type release struct {
	version  string
	revision string
	packages string
	// Of the processor, as Go and images name it.
	architecture string
	// Of the commit, so that it does not differ from build to build.
	time time.Time
}

var verbs = map[string]func([]string) error{
	"archive": archive, "image": image, "sbom": sbom, "provenance": provenance, "push": push, "tag": tag,
}

func main() {
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fail(fmt.Errorf("usage: assemble %s FLAGS", strings.Join(sorted(verbs), "|")))
	}
	if err := verbs[os.Args[1]](os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "assemble: %v\n", err)
	os.Exit(1)
}

// The flags of a verb, with those that all have.
func flags(verb string) (*flag.FlagSet, *release) {
	set, told := flag.NewFlagSet(verb, flag.ExitOnError), &release{}
	set.StringVar(&told.version, "version", "", "version of the release")
	set.StringVar(&told.revision, "revision", "", "commit that is built")
	set.StringVar(&told.packages, "packages", "", "folder with Debian packages")
	set.StringVar(&told.architecture, "architecture", runtime.GOARCH, "amd64 or arm64")
	return set, told
}

func (r *release) parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	return nil
}

// Flags that may be given several times.
type texts []string

func (t *texts) String() string { return fmt.Sprint(*t) }

func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}
