package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
)

type object = map[string]any

// Writes the bill of materials of an image: cargo-cyclonedx' bill of its program, and the packages beside it.
func sbom(args []string) error {
	set, told := flags("sbom")
	crates := set.String("crates", "", "bill of materials of the program, as cargo-cyclonedx writes it")
	checkout := set.String("checkout", "", "folder of the repository, which its ids are about")
	name := set.String("name", "", "name of the image")
	digest := set.String("digest", "", "digest of the image")
	out := set.String("out", "", "file to write")
	if err := told.parse(set, args); err != nil {
		return err
	}
	text, err := os.ReadFile(*crates)
	if err != nil {
		return err
	}
	local := "path+" + (&url.URL{Scheme: "file", Path: *checkout}).String()
	var bill object
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), local, "path+file:///dbplane")), &bill); err != nil {
		return err
	}
	packages, err := readPackages(told.packages)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("pkg:oci/%s@%s?arch=%s", *name, url.QueryEscape(*digest), told.architecture)
	if err := extend(bill, object{
		"bom-ref": id,
		"purl":    id,
		"type":    "container",
		"name":    *name,
		"version": told.version,
	}, packages); err != nil {
		return fmt.Errorf("%s: %w", *crates, err)
	}
	return write(*out, bill)
}

// Makes the image what the bill is about; it contains the program and the packages.
func extend(bill, image object, packages []debian) error {
	metadata, ok := bill["metadata"].(object)
	if !ok {
		return fmt.Errorf("no metadata")
	}
	program, ok := metadata["component"].(object)
	if !ok {
		return fmt.Errorf("no component that it is about")
	}
	components, _ := bill["components"].([]any)
	dependencies, _ := bill["dependencies"].([]any)
	metadata["component"] = image
	components = append(components, program)
	contained := []any{program["bom-ref"]}
	for _, one := range packages {
		components = append(components, object{
			"bom-ref": one.purl(),
			"purl":    one.purl(),
			"type":    "library",
			"name":    one.name,
			"version": one.version,
			"hashes":  []any{object{"alg": "SHA-256", "content": one.sha256}},
		})
		contained = append(contained, one.purl())
	}
	bill["components"] = components
	bill["dependencies"] = append(dependencies, object{"ref": image["bom-ref"], "dependsOn": contained})
	return nil
}

func write(path string, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
